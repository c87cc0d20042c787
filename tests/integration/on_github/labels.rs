//! Runs that a label asks for, and `--issue`.

use super::{own_comments, with_pull};
use crate::support::github::{Access, Area, Fault, Subject, Token, Trouble};
use crate::support::has;
use crate::support::proc::wait_until;
use crate::support::runner::{Runner, TOKEN};
use std::fs;
use std::process::Stdio;

const BODY: &str = "Two things are wrong.\n\n- [x] `z.txt` was added\n- [ ] Write c.txt\n  with a word in it\n- [ ] Write d.txt\n";
const WRITE: &str = "case $SPRAG_TASK_ID in t2) echo c > c.txt;; *) echo d > d.txt;; esac";

fn issue(runner: &Runner, body: &str) -> u64 {
    runner
        .github
        .state()
        .open_issue("ada", "Files are missing", body)
}

#[test]
fn a_label_on_an_issue_brings_a_branch_a_draft_and_a_comment() {
    let mut runner = with_pull();
    let number = issue(&runner, BODY);
    runner.labelled(number, "grace");
    let step = runner.by(WRITE, &["--verify", "test -e a.txt"]).expect(0);
    let branch = format!("sprag/issue-{number}");
    assert_eq!(
        runner.log(&branch),
        [
            "[sprag] Complete task t3: Write d.txt",
            "[sprag] Complete task t2: Write c.txt",
            "base"
        ]
    );
    assert_eq!(runner.project.calls(), 2);
    assert!(runner.project.prompt(1).contains("with a word in it"));
    assert_eq!(
        runner.at("main"),
        runner
            .project
            .git(&["rev-parse", "refs/remotes/origin/main"])
    );
    let pull = opened(&runner, &branch, &format!("Closes #{number}"));
    assert_eq!(step.output("pull-request-number"), pull.to_string());
    assert_eq!(step.output("branch"), branch);
    let comment = runner.comment(number).unwrap();
    assert!(comment.contains("Write d.txt"), "{comment}");
    assert_eq!(runner.reactions(Subject::Issue(number)), ["eyes", "rocket"]);
    let ended: Vec<String> = runner
        .checks()
        .into_iter()
        .map(|(_, ended)| ended)
        .collect();
    assert_eq!(ended, ["neutral", "success"]);
}

#[test]
fn a_branch_in_the_way_is_named_before_the_first_turn() {
    for is_remote in [true, false] {
        let mut runner = with_pull();
        let number = issue(&runner, BODY);
        if is_remote {
            runner.branch("sprag", "x.txt", "x");
        } else {
            runner.project.git(&["branch", "sprag"]);
        }
        runner.labelled(number, "grace");
        let agent = runner.project.agent(WRITE);
        let step = runner.step(&["--agent-command", &agent]).expect(2);
        assert_eq!(runner.project.calls(), 0);
        let why =
            format!("git cannot make the branch `sprag/issue-{number}` beside the branch `sprag`");
        assert!(step.run.stderr.contains(&why), "{}", step.run.stderr);
        let comment = runner.comment(number).unwrap();
        assert!(comment.contains("ename or remove the branch"), "{comment}");
    }
}

#[test]
fn the_issues_boxes_are_checked_once_the_work_is_pushed() {
    let mut runner = with_pull();
    let body = "Intro <!-- hidden -->\r\n\r\n- [x] `z.txt` was added\r\n- [ ] Write c.txt\r\n  - [ ] a part\r\n* [ ] Write d.txt \r\n\r\n## Acceptance criteria\r\n- [ ] both are there\r\n";
    let number = issue(&runner, body);
    let event = serde_json::json!({ "repository": crate::support::runner::repository(), "inputs": {}, "ref": "refs/heads/main" });
    runner.event("workflow_dispatch", "refs/heads/main", &event);
    let agent = runner
        .project
        .agent("[ $SPRAG_TASK_ID = t2 ] && echo c > c.txt; true");
    let named = number.to_string();
    let args = [
        "--issue",
        &named,
        "--agent-command",
        &agent,
        "--max-retries",
        "0",
    ];
    runner.step(&args).expect(1);
    let text = |runner: &Runner| runner.github.state().issues[&number].body.clone();
    let first = body.replace("- [ ] Write c", "- [x] Write c");
    assert_eq!(text(&runner), first);

    // Somebody edits the text while the agent works: the boxes are looked for in it as it is then.
    let edited = first
        .replace("Intro", "Hello")
        .replace("a part", "another part");
    runner
        .project
        .agent("touch $OUT/begun; until [ -e $OUT/go ]; do sleep 0.02; done; echo d > d.txt");
    runner.checkout("main");
    let mut command = runner.command(&args);
    let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let begun = runner.project.outside("begun");
    wait_until("the agent works", || begun.exists());
    edited.clone_into(&mut runner.github.state().issues.get_mut(&number).unwrap().body);
    fs::write(runner.project.outside("go"), "").unwrap();
    let output = child.wait_with_output().unwrap();
    runner.ended(&output).expect(0);
    let all = edited.replace("* [ ] Write d", "* [x] Write d");
    assert_eq!(text(&runner), all);

    // What Sprag has done is no form that somebody has filled in.
    runner.checkout("main");
    let before = runner.project.calls();
    runner.step(&args).expect(0);
    runner.checkout("main");
    runner.step(&args).expect(0);
    assert_eq!(runner.project.calls(), before);
    assert_eq!(text(&runner), all);
    runner.checks();
}

#[test]
fn a_token_that_may_not_write_issues_leaves_the_boxes_and_says_so() {
    let mut runner = with_pull();
    let number = issue(&runner, BODY);
    runner.labelled(number, "grace");
    let path = format!("/repos/acme/widget/issues/{number}");
    let fault = Fault::every("PATCH", &path, Trouble::forbidden());
    runner.github.fault(fault);
    let step = runner.by(WRITE, &[]).expect(0);
    let summary = fs::read_to_string(step.dir.unwrap().join("summary.json")).unwrap();
    let summary: serde_json::Value = serde_json::from_str(&summary).unwrap();
    let warnings = summary["warnings"].to_string();
    has(
        &warnings,
        format!("the checkboxes of issue #{number} were not changed: "),
    );
    assert_eq!(runner.github.state().issues[&number].body, BODY);
}

/// The draft pull request of a branch that names the issue like this; there is no other of that branch.
fn opened(runner: &Runner, branch: &str, named: &str) -> u64 {
    let state = runner.github.state();
    let mut pulls = state.pulls.iter().filter(|(_, pull)| pull.head == branch);
    let (pull, opened) = pulls.next().unwrap();
    assert!(pulls.next().is_none());
    assert_eq!((opened.base.as_str(), opened.draft), ("main", true));
    let body = &state.issues[pull].body;
    assert!(body.contains(&format!("\n{named}.\n")), "{body}");
    assert!(!body.contains("in progress"), "{body}");
    *pull
}

#[test]
fn a_new_pull_request_is_what_the_settings_say_and_refusals_are_named() {
    let mut runner = with_pull();
    runner.branch("develop", "x.txt", "x");
    let number = issue(&runner, "Write c.txt");
    runner.labelled(number, "grace");
    let agent = runner.project.agent("echo c > c.txt");
    let settings = [
        "--base=develop",
        "--no-draft",
        "--pull-request-title=chore: {title}",
        "--labels=agent",
        "--labels=needs review",
        "--assignees=ada",
        "--reviewers=nobody-here",
        "--reviewers=acme/core",
        "--commit-message=conventional",
        "--signoff",
    ];
    let args = [&settings[..], &["--agent-command", &agent]].concat();
    let step = runner.step(&args).expect(0);
    let pull: u64 = step.output("pull-request-number").parse().unwrap();
    let state = runner.github.state();
    let opened = &state.pulls[&pull];
    assert_eq!((opened.base.as_str(), opened.draft), ("develop", false));
    let shown = &state.issues[&pull];
    assert_eq!(shown.title, "chore: Files are missing");
    assert_eq!(shown.labels, ["agent", "needs review"]);
    drop(state);
    let branch = format!("sprag/issue-{number}");
    assert_eq!(runner.log(&branch)[0], "docs: Files are missing");
    let bare = format!("--git-dir={}", runner.bare().display());
    let message = runner
        .project
        .git(&[&bare, "log", "-1", "--format=%B", &branch]);
    let bot = "Signed-off-by: github-actions[bot] <41898282+github-actions[bot]@users.noreply.github.com>";
    assert!(message.trim_end().ends_with(bot), "{message}");
    let refused = format!("nobody-here, acme/core were not asked for a review of #{pull}: ");
    assert!(step.run.stdout.contains(&refused), "{}", step.run.stdout);
}

#[test]
fn a_second_label_goes_on_with_the_branch_and_its_pull_request() {
    let mut runner = with_pull();
    let number = issue(&runner, "Write c.txt");
    let branch = format!("sprag/issue-{number}");
    runner.labelled(number, "grace");
    let agent = runner.project.agent("echo $N >> c.txt");
    let first = runner.step(&["--agent-command", &agent]).expect(0);
    runner.checkout("main");
    runner.github.state().clock_ahead = 60;
    runner.labelled(number, "grace");
    let second = runner.step(&["--agent-command", &agent]).expect(0);
    assert_eq!(runner.file(&branch, "c.txt"), "1\n2\n");
    assert_eq!(runner.log(&branch).len(), 3);
    let pull = opened(&runner, &branch, &format!("Part of #{number}")).to_string();
    assert_eq!(
        (
            first.output("pull-request-number"),
            second.output("pull-request-number")
        ),
        (pull.as_str(), pull.as_str())
    );
    assert_eq!(own_comments(&runner), 1);
    runner.checks();
    // The same label once more.
    runner.checkout("main");
    let again = runner.step(&["--agent-command", &agent]).expect(0);
    assert_eq!(again.output("status"), "no_work");
    assert_eq!(runner.project.calls(), 2);
}

#[test]
fn continue_leaves_out_what_is_done_of_an_issue_and_its_pull_request_closes_it_once_all_is_done() {
    let mut runner = with_pull();
    let number = issue(&runner, BODY);
    let branch = format!("sprag/issue-{number}");
    runner.labelled(number, "grace");
    let note = "echo $SPRAG_TASK_ID >> $OUT/tasks";
    let agent = runner.project.agent(&format!(
        "{note}\ntest $SPRAG_TASK_ID = t2 || exit 1\necho c > c.txt"
    ));
    let args = [
        "--agent-command",
        &agent,
        "--verify",
        "test -e c.txt",
        "--max-retries",
        "0",
    ];
    let step = runner.step(&args).expect(1);
    assert_eq!(step.output("status"), "partial");
    opened(&runner, &branch, &format!("Part of #{number}"));
    runner
        .project
        .agent(&format!("{note}\necho $SPRAG_TASK_ID >> d.txt"));
    runner.checkout("main");
    runner.say(number, "grace", "/sprag continue");
    runner.step(&args).expect(0);
    assert_eq!(runner.project.notes("tasks"), ["t2", "t3", "t3"]);
    assert_eq!(runner.file(&branch, "d.txt"), "t3\n");
    runner.checkout("main");
    runner.say(number, "grace", "/sprag retry");
    runner.step(&args).expect(0);
    assert_eq!(runner.file(&branch, "d.txt"), "t3\nt2\nt3\n");
    opened(&runner, &branch, &format!("Closes #{number}"));
    assert_eq!(own_comments(&runner), 1);
}

#[test]
fn a_missing_permission_is_named_where_the_next_step_is() {
    let undelivered = "The work is done, but could not be delivered";
    for (area, needed, code) in [
        (
            Area::Pulls,
            "the job needs `pull-requests: write`, and the repository must allow GitHub Actions",
            4,
        ),
        (
            Area::Contents,
            "the job needs the permission `contents: write`",
            4,
        ),
        (Area::Issues, "no comment: ", 0),
        (Area::Checks, "; the job needs `checks: write`", 0),
    ] {
        let mut runner = with_pull();
        let number = issue(&runner, "Write d.txt");
        runner.labelled(number, "grace");
        runner
            .github
            .token(TOKEN, Token::job().may(area, Access::Read));
        if area == Area::Contents {
            runner.server.read_only(TOKEN);
        }
        let agent = runner.project.agent(WRITE);
        let step = runner
            .step(&["--agent-command", &agent, "--verify", "true"])
            .expect(code);
        let told = &step.run.stdout;
        let told = format!("{told}{}", step.run.stderr);
        assert!(told.contains(needed), "{told}");
        let summary = step.summary.replace("\\`", "`");
        assert_eq!(summary.contains(undelivered), code == 4, "{summary}");
        if code == 4 {
            let next = summary.split("**What to do next**").nth(1).unwrap();
            let next = next.split("\n\n| Task").next().unwrap();
            has(next, "Remove this cause: ");
            has(next, needed);
            let machine = runner.project.beside("runner").display().to_string();
            assert!(!summary.contains(&machine), "{summary}");
        }
    }
}

#[test]
fn a_label_on_a_pull_request_works_on_its_head() {
    let mut runner = with_pull();
    "- [ ] Write c.txt\n".clone_into(&mut runner.github.state().issues.get_mut(&1).unwrap().body);
    let before = runner.at("feature");
    runner.merge_ref(1);
    runner.labelled(1, "grace");
    let step = runner
        .by("echo c > c.txt", &["--verify", "test -e b.txt"])
        .expect(0);
    assert_eq!(
        runner.log("feature")[..2],
        ["[sprag] Complete task t1: Write c.txt", "Somebody's work"]
    );
    assert_eq!(step.output("branch"), "feature");
    let head = runner.at("feature");
    assert_eq!(
        runner.checks(),
        [(before, "neutral".to_owned()), (head, "success".to_owned())]
    );
    assert!(runner.comment(1).is_some());
    assert_eq!(runner.github.state().pulls.len(), 1);
    assert_eq!(runner.reactions(Subject::Issue(1)), ["eyes", "rocket"]);
}

#[test]
fn an_issue_can_be_named_by_a_flag() {
    let mut runner = with_pull();
    let number = issue(&runner, "Write c.txt");
    let branch = format!("sprag/issue-{number}");
    let event = serde_json::json!({ "repository": crate::support::runner::repository(), "inputs": {}, "ref": "refs/heads/main" });
    runner.event("workflow_dispatch", "refs/heads/main", &event);
    let agent = runner.project.agent("echo $N >> c.txt");
    let named = number.to_string();
    let args = ["--issue", &named, "--agent-command", &agent];
    runner.step(&args).expect(0);
    runner.checkout("main");
    runner.step(&args).expect(0);
    assert_eq!(runner.file(&branch, "c.txt"), "1\n2\n");
    opened(&runner, &branch, &format!("Part of #{number}"));
    assert!(runner.comment(number).is_some());
    runner.checks();

    runner.checkout("main");
    "closed".clone_into(&mut runner.github.state().issues.get_mut(&number).unwrap().state);
    let step = runner.step(&args).expect(0);
    assert_eq!(step.output("status"), "no_work");
    runner
        .step(&["--issue", "1", "--agent-command", &agent])
        .expect(2);
    runner
        .step(&["--issue", "99", "--agent-command", &agent])
        .expect(4);
    assert_eq!(runner.project.calls(), 2);
}

#[test]
fn the_boxes_of_an_issue_form_are_not_tasks() {
    let mut runner = with_pull();
    let body = "### What is wrong?\n\nThe greeting says Helo.\n\n### Are you willing to open a pull request?\n\n- [ ] Yes, I can help\n\n### Code of Conduct\n\n- [X] I agree\n";
    let number = issue(&runner, body);
    runner.labelled(number, "grace");
    let agent = runner.project.agent("echo Hello > greeting.txt");
    let args = ["--agent-command", &agent, "--verify", "true"];
    let step = runner.step(&args).expect(0);
    assert_eq!(step.output("tasks-total"), "1");
    let prompt = runner.project.prompt(1);
    assert!(prompt.contains("The greeting says Helo."), "{prompt}");
    assert!(prompt.contains("# Task t1: Files are missing"), "{prompt}");
    assert_eq!(runner.github.state().issues[&number].body, body);
}

#[test]
fn a_tracking_issue_takes_the_texts_of_the_issues_it_names() {
    let mut runner = with_pull();
    let named = runner
        .github
        .state()
        .open_issue("grace", "Write c.txt", "With a word.");
    let body = format!("- [ ] #{named}\n- [ ] Write d.txt\n");
    let number = issue(&runner, &body);
    runner.labelled(number, "grace");
    let agent = runner.project.agent("echo x > $SPRAG_TASK_ID.txt");
    let args = ["--agent-command", &agent, "--verify", "true"];
    runner.step(&args).expect(0);
    let prompt = runner.project.prompt(1);
    for text in ["Write c.txt", "With a word."] {
        assert!(prompt.contains(text), "{text}: {prompt}");
    }
    assert_eq!(
        runner.github.state().issues[&number].body,
        body.replace("[ ]", "[x]")
    );

    let gone = issue(&runner, "- [ ] #4711\n");
    runner.labelled(gone, "grace");
    let calls = runner.project.calls();
    runner.step(&args).expect(2);
    assert_eq!(runner.project.calls(), calls);
    let comment = runner.comment(gone).unwrap();
    assert!(comment.contains("refers to an issue"), "{comment}");
}
