//! Plans that are drafted in the thread and run once somebody approves them.

use super::{own_comments, with_pull};
use crate::support::runner::{Runner, repository};

const DRAFT: &str = "printf 'title: Files\\ntasks:\\n  - id: c\\n    title: Write c.txt\\n'";

/// An issue for which a plan was drafted, and the code in the comment.
fn drafted(runner: &mut Runner, request: &str) -> (u64, String) {
    let number = runner
        .github
        .state()
        .open_issue("ada", "Files are missing", "c.txt is missing.");
    runner.say(number, "grace", request);
    let step = runner
        .by(
            &format!("touch junk; {DRAFT}"),
            &["--verify", "test -e c.txt"],
        )
        .expect(0);
    assert_eq!(step.output("status"), "success");
    (number, code(runner, number))
}

/// The code that the comment names last.
fn code(runner: &Runner, number: u64) -> String {
    let comment = runner.comment(number).unwrap();
    let mut marks = ["the code is ", "/sprag approve "].iter();
    let rest = marks.find_map(|mark| Some(comment.rsplit_once(mark)?.1));
    rest.unwrap_or_else(|| panic!("{comment}"))[..32].to_owned()
}

fn approve(runner: &mut Runner, number: u64, who: &str, code: &str) -> (i32, String) {
    runner.say(number, who, &format!("/sprag approve {code}"));
    let step = runner.by("echo c > c.txt", &["--verify", "test -e c.txt"]);
    (step.run.code, step.output("status").to_owned())
}

#[test]
fn a_plan_is_shown_and_runs_once_it_is_approved() {
    let mut runner = with_pull();
    let (number, code) = drafted(&mut runner, "/sprag plan in one task");
    let comment = runner.comment(number).unwrap();
    assert!(comment.contains("```yaml\ntitle: Files\n"), "{comment}");
    let prompt = runner.project.prompt(1);
    assert!(prompt.contains("in one task") && prompt.contains("c.txt is missing."));
    assert_eq!((runner.server.pushes(), own_comments(&runner)), (0, 1));
    assert_eq!(
        approve(&mut runner, number, "grace", &code),
        (0, "success".to_owned())
    );
    let branch = format!("sprag/issue-{number}");
    assert_eq!(
        runner.log(&branch),
        ["[sprag] Complete task c: Write c.txt", "base"]
    );
}

#[test]
fn characters_that_nobody_sees_are_not_in_a_plan_to_approve() {
    let mut runner = with_pull();
    let number = runner.github.state().open_issue("ada", "Files", "c.txt");
    runner.say(number, "grace", "/sprag plan");
    let hidden = DRAFT.replace("Write c.txt", "Write \u{202e}c.txt\u{200b}");
    runner.by(&hidden, &[]).expect(0);
    let comment = runner.comment(number).unwrap();
    assert!(!comment.contains(['\u{202e}', '\u{200b}']), "{comment}");
    let code = code(&runner, number);
    let approved = approve(&mut runner, number, "grace", &code);
    assert_eq!(approved, (0, "success".to_owned()));
}

#[test]
fn remarks_draft_again_with_the_plan_so_far() {
    let mut runner = with_pull();
    let (number, first) = drafted(&mut runner, "/sprag plan");
    runner.say(number, "grace", "/sprag plan with a header");
    let agent = runner
        .project
        .agent(&DRAFT.replace("Write c.txt", "Write c.txt with a header"));
    runner.step(&["--agent-command", &agent]).expect(0);
    let prompt = runner.project.prompt(2);
    assert!(prompt.contains("## The plan so far"), "{prompt}");
    assert!(prompt.contains("title: Write c.txt"), "{prompt}");
    assert_ne!(code(&runner, number), first);
    let (exit, status) = approve(&mut runner, number, "grace", &first);
    assert_eq!((exit, status.as_str()), (2, "invalid"), "an old code");
}

#[test]
fn another_plan_or_base_than_the_one_that_was_shown_is_not_run() {
    let mut runner = with_pull();
    let (number, shown) = drafted(&mut runner, "/sprag plan");
    let own = |runner: &Runner, change: &dyn Fn(&str) -> String| {
        let mut state = runner.github.state();
        let mut comments = state.comments.iter_mut();
        let own = comments
            .find(|comment| comment.author == "github-actions[bot]")
            .unwrap();
        own.body = change(&own.body);
    };
    own(&runner, &|body| {
        body.replace("title: Write c.txt", "title: Send the keys away")
    });
    assert_eq!(approve(&mut runner, number, "grace", &shown).0, 2);
    let comment = runner.comment(number).unwrap();
    assert!(comment.contains("Send the keys away"), "{comment}");
    let edited = code(&runner, number);
    assert_ne!(edited, shown);
    own(&runner, &|body| {
        body.replace("title: Send the keys away", "title: Write c.txt")
    });
    runner.push("main", "z.txt", "moved");
    assert_eq!(
        approve(&mut runner, number, "grace", &shown).0,
        2,
        "the base moved"
    );
    let now = code(&runner, number);
    assert_eq!(approve(&mut runner, number, "mallory", &now).0, 0);
    assert_eq!(
        approve(&mut runner, number, "grace", "").0,
        2,
        "without a code"
    );
    assert_eq!(runner.server.pushes(), 0);
    assert_eq!(runner.project.calls(), 1, "no agent worked");
    assert_eq!(
        approve(&mut runner, number, "grace", &now),
        (0, "success".to_owned())
    );
}

#[test]
fn a_label_only_drafts_where_an_approval_is_required() {
    let mut runner = with_pull();
    let number =
        runner
            .github
            .state()
            .open_issue("ada", "Files", "- [ ] Write c.txt\n- [ ] Write d.txt\n");
    runner.labelled(number, "grace");
    let agent = runner.project.agent(DRAFT);
    let args = ["--agent-command", &agent, "--approve", "required"];
    runner.step(&args).expect(0);
    assert_eq!(runner.server.pushes(), 0);
    assert!(
        runner
            .comment(number)
            .unwrap()
            .contains("title: Write c.txt")
    );
    runner.say(number, "grace", "/sprag retry");
    runner.step(&args).expect(0);
    assert_eq!(runner.server.pushes(), 0, "a retry needs the approval too");
}

fn scheduled(runner: &mut Runner, args: &[&str]) -> crate::support::runner::Step {
    let event = serde_json::json!({ "repository": repository(), "schedule": "0 3 * * *" });
    runner.event("schedule", "refs/heads/main", &event);
    let agent = runner.project.agent(DRAFT);
    let all = ["--agent-command", &agent, "--approve", "required"];
    runner.step(&[&all, args].concat())
}

#[test]
fn a_schedule_only_drafts_where_an_approval_is_required() {
    let mut runner = with_pull();
    let prompt = ["--prompt", "Update what is old"];
    scheduled(&mut runner, &prompt).expect(0);
    scheduled(&mut runner, &prompt).expect(0);
    assert_eq!(runner.server.pushes(), 0);
    let issues: Vec<u64> = runner.github.state().issues.keys().copied().collect();
    let [_, number] = issues[..] else {
        panic!("{issues:?}");
    };
    let comment = runner.comment(number).unwrap();
    assert!(comment.contains("title: Write c.txt"), "{comment}");
    assert!(runner.project.prompt(1).contains("Update what is old"));
    let code = code(&runner, number);
    assert_eq!(approve(&mut runner, number, "mallory", &code).0, 0);
    assert_eq!(runner.server.pushes(), 0);
    let approved = approve(&mut runner, number, "grace", &code);
    assert_eq!(approved, (0, "success".to_owned()));
    assert_eq!(
        runner.file(&format!("sprag/issue-{number}"), "c.txt"),
        "c\n"
    );
}

#[test]
fn a_schedule_with_a_queue_is_refused_where_an_approval_is_required() {
    let mut runner = with_pull();
    let step = scheduled(&mut runner, &["--queue", "plans"]).expect(2);
    let why = "a schedule drafts a plan from a prompt";
    assert!(step.run.stderr.contains(why), "{}", step.run.stderr);
    assert_eq!((runner.project.calls(), runner.server.pushes()), (0, 0));
}
