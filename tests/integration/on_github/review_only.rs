//! The reviewer alone on a pull request: the check run, its annotations, and one review with comments on lines.

use super::with_pull;
use crate::support::events;
use crate::support::github::{Access, Area, Fault, Line, Token, Trouble};
use crate::support::runner::{Runner, Step, TOKEN, repository};
use serde_json::{Value, json};
use std::fs;

/// Finds something on a line of the change, something elsewhere, and suggests what should stand there.
const FINDS: &str = "cat <<'END'
- b.txt:1: @team should say more <b>here</b>
  ```suggestion
  feature, and more
  ```
- a.txt:1: nobody reads this
VERDICT: NEEDS_FIXES
END";

/// The pull request whose branch has a commit more than `main`, as the event of the job.
fn asked() -> Runner {
    asked_after(1)
}

/// The same after `main` has gone on by so many commits.
fn asked_after(commits: u32) -> Runner {
    let mut runner = with_pull();
    for n in 0..commits {
        runner.push("main", "of-main.txt", &n.to_string());
    }
    pushed(&mut runner);
    runner
}

/// The event of a push to the pull request.
fn pushed(runner: &mut Runner) {
    runner.merge_ref(1);
    let mut event = json!({ "action": "synchronize", "number": 1, "repository": repository(),
        "sender": { "login": "ada", "type": "User" } });
    event["pull_request"] = events::pull(&runner.github.state(), 1);
    runner.event("pull_request", "refs/pull/1/merge", &event);
}

fn review(runner: &mut Runner, script: &str, code: i32, args: &[&str]) -> Step {
    let agent = runner.project.agent(script);
    let first = ["--review-only", "--agent-command", &agent];
    runner.step(&[&first[..], args].concat()).expect(code)
}

/// The texts of Sprag's own reviews, and path, lines and text of its comments.
fn posted(runner: &Runner) -> (Vec<String>, Vec<(String, u64, String)>) {
    let state = runner.github.state();
    let reviews = state.reviews.iter().map(|review| review.body.clone());
    let comments = state.review_comments.iter().map(|comment| {
        let line = comment.line.clone().unwrap();
        (line.path, line.line, comment.body.clone())
    });
    (reviews.collect(), comments.collect())
}

#[test]
fn findings_are_annotations_and_the_check_run_is_neutral() {
    let mut runner = asked_after(60);
    let head = runner.at("feature");
    let step = review(&mut runner, FINDS, 1, &[]);
    assert_eq!(step.output("status"), "failed");
    assert_eq!(step.output("reason"), "review_findings");
    assert_eq!(runner.at("feature"), head);
    assert_eq!(runner.server.pushes(), 0);
    let prompt = runner.project.prompt(1);
    assert!(prompt.contains("Review pull request 1: Add b"), "{prompt}");
    assert!(
        prompt.contains("+++ b/b.txt") && !prompt.contains("of-main"),
        "{prompt}"
    );
    {
        let state = runner.github.state();
        assert_eq!(state.checks.len(), 1);
        let check = &state.checks[0];
        assert_eq!(check.head_sha, head);
        assert_eq!(check.conclusion.as_deref(), Some("neutral"));
        let at = |path: &str| {
            let mut found = check.annotations.iter();
            found.any(|it| it["path"] == path && it["start_line"] == 1)
        };
        assert!(at("b.txt") && at("a.txt"), "{:?}", check.annotations);
    }
    assert_eq!(
        posted(&runner),
        (Vec::new(), Vec::new()),
        "nobody asked for it"
    );
    let mut runner = asked();
    review(&mut runner, FINDS, 1, &["--review-findings", "fail"]);
    let state = runner.github.state();
    assert_eq!(state.checks[0].conclusion.as_deref(), Some("failure"));
}

#[test]
fn an_acceptable_pull_request_has_a_check_run_that_says_so() {
    let mut runner = asked();
    let accept = "echo 'VERDICT: ACCEPTABLE'";
    let step = review(&mut runner, accept, 0, &["--review-comments"]);
    assert_eq!(step.output("reason"), "acceptable");
    let conclusion = runner.github.state().checks[0].conclusion.clone();
    assert_eq!(conclusion.as_deref(), Some("success"));
    assert_eq!(
        posted(&runner),
        (Vec::new(), Vec::new()),
        "there is nothing to tell"
    );
}

#[test]
fn findings_are_posted_once_on_their_lines_with_what_should_stand_there() {
    let mut runner = asked();
    review(&mut runner, FINDS, 1, &["--review-comments"]);
    let (reviews, comments) = posted(&runner);
    assert_eq!(
        (reviews.len(), comments.len()),
        (1, 1),
        "{reviews:?} {comments:?}"
    );
    let (path, line, body) = &comments[0];
    assert_eq!((path.as_str(), *line), ("b.txt", 1));
    assert!(
        body.ends_with("```suggestion\nfeature, and more\n```"),
        "{body}"
    );
    assert!(!body.contains("<b>") && !body.contains(" @team"), "{body}");
    assert!(
        reviews[0].contains("a.txt:1") && !reviews[0].contains("b.txt:1"),
        "{reviews:?}"
    );
    // The same again, and something new.
    let more =
        format!("{FINDS}\necho '- b.txt:1: on a line that has a comment'\necho '- c.txt:4: new'");
    runner.checkout("main");
    review(&mut runner, &more, 1, &["--review-comments"]);
    let (reviews, comments) = posted(&runner);
    assert_eq!(
        (reviews.len(), comments.len()),
        (2, 1),
        "{reviews:?} {comments:?}"
    );
    assert!(
        reviews[1].contains("c.txt:4") && !reviews[1].contains("a.txt"),
        "{reviews:?}"
    );
    runner.checkout("main");
    review(&mut runner, &more, 1, &["--review-comments"]);
    assert_eq!(posted(&runner).0.len(), 2, "nothing is new");
}

/// A reviewer that finds these things.
fn finds(findings: &[&str]) -> String {
    let lines: Vec<String> = findings.iter().map(|line| format!("- {line}")).collect();
    let verdict = if findings.is_empty() {
        "ACCEPTABLE"
    } else {
        "NEEDS_FIXES"
    };
    format!("cat <<'END'\n{}\nVERDICT: {verdict}\nEND", lines.join("\n"))
}

/// Reviews the pull request as it is now.
fn review_now(runner: &mut Runner, script: &str, code: i32) -> Step {
    runner.checkout("main");
    pushed(runner);
    review(runner, script, code, &["--review-comments"])
}

#[test]
fn what_a_later_push_has_mended_is_resolved_and_nothing_else() {
    let mut runner = asked();
    runner.push("feature", "d.txt", "one\ntwo\nthree\n");
    let all = [
        "b.txt:1: says too little",
        "d.txt:1: is wrong",
        "d.txt:2: is odd",
        "d.txt:3: is old",
    ];
    review_now(&mut runner, &finds(&all), 1);
    let ids: Vec<u64> = runner
        .github
        .state()
        .review_comments
        .iter()
        .map(|it| it.id)
        .collect();
    assert_eq!(ids.len(), 4);
    let resolved =
        |runner: &Runner| -> Vec<u64> { runner.github.state().resolved.iter().copied().collect() };
    // Another review of the same commit, and those that did not come to their end, resolve nothing.
    review_now(&mut runner, &finds(&all[..1]), 1);
    assert_eq!(resolved(&runner), Vec::<u64>::new());
    runner.push("feature", "b.txt", "feature, and more");
    review_now(&mut runner, "echo 'I look.'; exit 1", 1);
    assert_eq!(resolved(&runner), Vec::<u64>::new());
    let cut_off = format!("echo '- {}'", all[1]);
    let step = review_now(&mut runner, &cut_off, 1);
    assert_eq!(resolved(&runner), Vec::<u64>::new());
    let told = "review 1 of at most 1: NEEDS_FIXES (no verdict), 1 finding open";
    assert!(step.run.stdout.contains(told), "{}", step.run.stdout);
    // Somebody has answered one, another name has told one, and two are found once more, one in other words.
    let line = |first: u64, path: &str| Line {
        path: path.to_owned(),
        line: 2,
        in_reply_to: Some(first),
        ..Line::default()
    };
    runner
        .github
        .state()
        .review_comment(1, "ada", "That is meant.", line(ids[2], "d.txt"));
    let later = ["d.txt:1: is wrong", "d.txt:3: in other words"];
    review_now(&mut runner, &finds(&later), 1);
    assert_eq!(resolved(&runner), [ids[0]]);
    runner.push("feature", "e.txt", "new");
    let step = review_now(&mut runner, &finds(&[]), 0);
    assert_eq!(step.output("reason"), "acceptable");
    assert_eq!(resolved(&runner), [ids[0], ids[1], ids[3]]);
    assert_eq!(posted(&runner).1.len(), 5, "nothing was posted meanwhile");
}

#[test]
fn what_is_mended_is_said_where_threads_cannot_be_resolved() {
    let mut runner = asked();
    review_now(&mut runner, &finds(&["b.txt:1: says too little"]), 1);
    runner.push("feature", "b.txt", "feature, and more");
    let missing = Trouble::status(404, "Not Found");
    runner
        .github
        .fault(Fault::every("POST", "/graphql", missing));
    let step = review_now(&mut runner, &finds(&[]), 0);
    let told = "outdated comments could not be resolved: GraphQL is not available here";
    assert!(step.run.stdout.contains(told), "{}", step.run.stdout);
}

#[test]
fn the_second_of_two_jobs_posts_what_the_first_one_found() {
    let mut runner = asked();
    const READER: &str = "ghs_reader0000000000000000000000000000";
    runner.github.token(READER, Token::fork());
    runner.server.read_only(READER);
    runner.project.env("INPUT_GITHUB-TOKEN", READER);
    let args = ["--report", "none", "--review-comments"];
    let step = review(&mut runner, FINDS, 1, &args);
    assert_eq!(posted(&runner), (Vec::new(), Vec::new()));
    assert_eq!(runner.github.state().checks.len(), 0);
    let handed = runner.project.beside("artifact");
    fs::create_dir(&handed).unwrap();
    let summary = step.dir.unwrap().join("summary.json");
    fs::copy(summary, handed.join("summary.json")).unwrap();
    runner.checkout("main");
    runner.project.env("INPUT_GITHUB-TOKEN", TOKEN);
    runner.project.env("INPUT_REVIEW-ONLY", "true");
    runner.project.env("INPUT_REVIEW-COMMENTS", "true");
    let output = runner
        .command_of("publish", &[handed.to_str().unwrap()])
        .output()
        .unwrap();
    runner.ended(&output).expect(1);
    let (reviews, comments) = posted(&runner);
    assert_eq!((reviews.len(), comments.len()), (1, 1), "{reviews:?}");
    let conclusion = runner.github.state().checks[0].conclusion.clone();
    assert_eq!(conclusion.as_deref(), Some("neutral"));
}

#[test]
fn a_token_that_may_not_comment_is_a_warning_and_the_end_stays_the_same() {
    let mut runner = asked();
    runner
        .github
        .token(TOKEN, Token::job().may(Area::Pulls, Access::Read));
    let step = review(
        &mut runner,
        FINDS,
        1,
        &["--review-comments", "--no-status-comment"],
    );
    let path = step.dir.unwrap().join("summary.json");
    let summary: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    let warnings = summary["warnings"].to_string();
    assert!(warnings.contains("not posted as a review"), "{warnings}");
}
