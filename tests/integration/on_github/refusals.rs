//! What starts nothing, and what is refused, before any agent is called.

use super::{FIX, IS_FIXED, own_comments, with_pull};
use crate::support::github::{Fault, Subject, Trouble};
use crate::support::runner::{Runner, Step};
use crate::support::{events, has};

fn step(runner: &mut Runner, code: i32) -> Step {
    runner.by(FIX, &["--verify", IS_FIXED]).expect(code)
}

#[test]
fn who_may_not_write_gets_a_reaction_and_no_comment() {
    let mut runner = with_pull();
    runner.github.state().role("eve", "read");
    for login in ["eve", "stranger"] {
        let id = runner.say(1, login, "/sprag make a.txt say fixed");
        let refused = step(&mut runner, 0);
        assert_eq!(refused.output("status"), "no_work");
        assert_eq!(refused.output("reason"), "refused");
        assert!(refused.output("summary").contains("has no write access"));
        let log = &refused.run.stdout;
        assert!(
            log.contains("::notice ") && !log.contains("::error"),
            "{log}"
        );
        assert_eq!(runner.reactions(Subject::Comment(id)), ["confused"]);
    }
    let number = runner.github.state().open_issue("eve", "x", "Do it");
    runner.labelled(number, "eve");
    step(&mut runner, 0);
    assert_eq!(own_comments(&runner), 0);
    runner.assert_untouched();
}

#[test]
fn nothing_is_written_for_somebody_whose_permission_is_unknown() {
    let mut runner = with_pull();
    let lookup = "/repos/*/*/collaborators/**";
    runner
        .github
        .fault(Fault::every("GET", lookup, Trouble::bad_gateway()));
    let id = runner.say(1, "stranger", "/sprag make a.txt say fixed");
    let ended = step(&mut runner, 4);
    assert_eq!(ended.output("status"), "environment");
    assert!(ended.output("summary").contains("could not determine"));
    assert!(runner.reactions(Subject::Comment(id)).is_empty());
    assert_eq!(own_comments(&runner), 0);
    runner.assert_untouched();
    // The same for a path that is refused whoever asks for it.
    let id = runner.say(1, "stranger", "/sprag run ../x.yaml");
    step(&mut runner, 4);
    assert!(runner.reactions(Subject::Comment(id)).is_empty());
    assert_eq!(own_comments(&runner), 0);
}

#[test]
fn whom_the_associations_leave_out_is_refused() {
    let mut runner = with_pull();
    let id = runner.say(1, "grace", "/sprag make a.txt say fixed");
    runner.project.env("INPUT_ALLOWED-ASSOCIATIONS", "OWNER");
    let refused = step(&mut runner, 0);
    assert_eq!(refused.output("reason"), "refused");
    assert_eq!(runner.reactions(Subject::Comment(id)), ["confused"]);
    assert_eq!(own_comments(&runner), 0);
    runner.assert_untouched();
    runner.project.env("INPUT_ALLOWED-USERS", "grace");
    step(&mut runner, 0);
    assert_eq!(runner.project.calls(), 1);
}

#[test]
fn what_nobody_asked_for_starts_nothing() {
    let mut runner = with_pull();
    for (login, body) in [
        ("github-actions[bot]", "/sprag make a.txt say fixed"),
        (
            "grace",
            "<!-- sprag:state v1 e30= -->\n/sprag make a.txt say fixed",
        ),
        ("grace", "Look:\n```\n/sprag make a.txt say fixed\n```\n"),
        ("grace", "Nothing at all."),
    ] {
        let id = runner.say(1, login, body);
        let ended = step(&mut runner, 0);
        assert_eq!(ended.output("status"), "no_work", "{login}: {body}");
        assert!(runner.reactions(Subject::Comment(id)).is_empty(), "{body}");
    }
    // An edited one asks for nothing either.
    let id = runner.say(1, "grace", "/sprag make a.txt say fixed");
    let (name, mut event) = events::comment(&runner.github.state(), id);
    event["action"] = "edited".into();
    runner.event(name, "refs/heads/main", &event);
    assert_eq!(step(&mut runner, 0).output("status"), "no_work");
    let own = own_comments(&runner);
    assert_eq!(own, 1, "the one that the test itself wrote");
    runner.assert_untouched();
}

#[test]
fn a_listed_bot_may() {
    let mut runner = with_pull();
    runner.project.env("INPUT_ALLOWED-BOTS", "renovate[bot]");
    runner.say(1, "renovate[bot]", "/sprag make a.txt say fixed");
    step(&mut runner, 0);
    assert_eq!(runner.file("feature", "a.txt"), "fixed");
}

#[test]
fn pull_request_target_is_refused_unless_it_is_meant() {
    let mut runner = with_pull();
    runner.labelled(1, "grace");
    let (_, event) = events::label(&runner.github.state(), 1, "grace");
    runner.event("pull_request_target", "refs/heads/main", &event);
    let refused = step(&mut runner, 2);
    assert_eq!(refused.output("status"), "invalid");
    runner.by(FIX, &["--prompt", "x"]).expect(2);
    runner.assert_untouched();
    runner
        .project
        .env("INPUT_ALLOW-PULL-REQUEST-TARGET", "true");
    step(&mut runner, 0);
    assert_eq!(runner.file("feature", "a.txt"), "fixed");
}

#[test]
fn a_closed_pull_request_is_refused_in_words() {
    let mut runner = with_pull();
    "closed".clone_into(&mut runner.github.state().issues.get_mut(&1).unwrap().state);
    let id = runner.say(1, "grace", "/sprag make a.txt say fixed");
    let refused = step(&mut runner, 3);
    assert_eq!(refused.output("status"), "blocked");
    assert_eq!(runner.reactions(Subject::Comment(id)), ["confused"]);
    let told = runner.comment(1).unwrap();
    has(&told, "is closed");
    has(&told, "Reopen");
    runner.assert_untouched();
}

#[test]
fn a_path_out_of_the_repository_is_refused_in_words_to_who_may_ask() {
    let mut runner = with_pull();
    for path in ["../x.yaml", ".git/config"] {
        let id = runner.say(1, "grace", &format!("/sprag run {path}"));
        let refused = step(&mut runner, 2);
        assert_eq!(refused.output("status"), "invalid");
        assert_eq!(
            runner.reactions(Subject::Comment(id)),
            ["confused"],
            "{path}"
        );
        let told = runner.comment(1).unwrap();
        assert!(told.contains(path), "{told}");
    }
    let id = runner.say(1, "stranger", "/sprag run ../y.yaml");
    step(&mut runner, 0);
    assert_eq!(runner.reactions(Subject::Comment(id)), ["confused"]);
    assert!(!runner.comment(1).unwrap().contains("y.yaml"));
    runner.assert_untouched();
}

#[test]
fn retry_where_nothing_ran_is_refused() {
    let mut runner = with_pull();
    let id = runner.say(1, "grace", "/sprag retry");
    let refused = step(&mut runner, 2);
    assert_eq!(refused.output("status"), "invalid");
    assert_eq!(runner.reactions(Subject::Comment(id)), ["confused"]);
    assert!(runner.comment(1).unwrap().contains("no earlier run"));
    runner.assert_untouched();
}

#[test]
fn the_runs_of_a_day_are_limited() {
    let mut runner = with_pull();
    runner.project.env("INPUT_MAX-RUNS-PER-DAY", "1");
    runner.say(1, "grace", "/sprag make a.txt say fixed");
    step(&mut runner, 0);
    runner.checkout("main");
    runner.say(1, "grace", "/sprag and once more");
    let refused = step(&mut runner, 3);
    assert_eq!(refused.output("status"), "blocked");
    assert_eq!(runner.project.calls(), 1);
    assert!(runner.comment(1).unwrap().contains("max-runs-per-day"));
}

#[test]
fn without_github_nothing_begins() {
    let mut runner = with_pull();
    runner.say(1, "grace", "/sprag make a.txt say fixed");
    runner
        .github
        .fault(Fault::every("*", "/**", Trouble::bad_gateway()));
    let ended = step(&mut runner, 4);
    assert_eq!(ended.output("status"), "environment");
    let told = &ended.run.stdout;
    assert!(told.contains("GitHub cannot be reached: 502: "), "{told}");
    // No permission is missing, and a workflow has no permission `metadata`.
    assert!(!told.contains("metadata: read"), "{told}");
    runner.github.heal();
    runner.assert_untouched();
    // The same job, begun again, does the work.
    step(&mut runner, 0);
    assert_eq!(runner.file("feature", "a.txt"), "fixed");
}

#[test]
fn the_reason_is_given_why_the_account_of_the_token_is_unknown() {
    let mut runner = with_pull();
    runner.say(1, "grace", "/sprag make a.txt say fixed");
    let fault = Fault::every("POST", "/graphql", Trouble::bad_gateway());
    runner.github.fault(fault);
    let ended = step(&mut runner, 4);
    let told = ended.output("summary");
    has(told, "POST /graphql: GitHub cannot be reached: 502");
    runner.assert_untouched();
}

#[test]
fn a_refused_token_is_named() {
    let mut runner = with_pull();
    runner.say(1, "grace", "/sprag make a.txt say fixed");
    runner
        .github
        .fault(Fault::every("*", "/**", Trouble::unauthorized()));
    let ended = step(&mut runner, 4);
    assert_eq!(ended.output("status"), "environment");
    runner.github.heal();
    runner.assert_untouched();
}

#[test]
fn without_a_token_an_event_is_not_worked_on() {
    let mut runner = with_pull();
    runner.say(1, "grace", "/sprag make a.txt say fixed");
    runner.project.env("INPUT_GITHUB-TOKEN", "");
    let ended = step(&mut runner, 4);
    assert_eq!(ended.output("status"), "environment");
    let text = format!("{}{}", ended.run.stdout, ended.run.stderr);
    assert!(text.contains("github-token"), "{text}");
    runner.assert_untouched();
}

#[test]
fn a_wrong_plan_is_said_where_it_was_asked_for() {
    let mut runner = with_pull();
    runner.push(
        "feature",
        "plans/wrong.yaml",
        "title: x\ntasks:\n  - { id: a, depends_on: [b] }\n",
    );
    let id = runner.say(1, "grace", "/sprag run plans/wrong.yaml");
    let refused = step(&mut runner, 2);
    assert_eq!(refused.output("status"), "invalid");
    let told = runner.comment(1).unwrap();
    assert!(told.contains("plans/wrong.yaml:3"), "{told}");
    assert_eq!(runner.reactions(Subject::Comment(id)), ["confused"]);
    runner.assert_untouched();
    // It is answered: only who runs the job again has it read once more.
    runner.checkout("main");
    runner.commented(id);
    assert_eq!(step(&mut runner, 0).output("status"), "no_work");
    // Another request is not held up by it.
    runner.say(1, "grace", "/sprag make a.txt say fixed");
    step(&mut runner, 0);
    assert_eq!(runner.file("feature", "a.txt"), "fixed");
}

#[test]
fn a_checkout_that_is_not_clean_is_said_where_it_was_asked_for() {
    let mut runner = with_pull();
    let id = runner.say(1, "grace", "/sprag make a.txt say fixed");
    runner.project.write("a.txt", "somebody's");
    let refused = step(&mut runner, 4);
    assert_eq!(refused.output("status"), "environment");
    let told = runner.comment(1).unwrap();
    assert!(told.contains("clean"), "{told}");
    assert_eq!(runner.reactions(Subject::Comment(id)), ["confused"]);
    assert_eq!(runner.project.read("a.txt"), "somebody's");
    runner.assert_untouched();
}

#[test]
fn nothing_is_said_where_no_report_is_wanted() {
    let mut runner = with_pull();
    for body in ["/sprag run plans/none.yaml", "/sprag run ../x.yaml"] {
        let id = runner.say(1, "grace", body);
        runner.by(FIX, &["--report", "none"]).expect(2);
        assert!(runner.reactions(Subject::Comment(id)).is_empty(), "{body}");
    }
    assert_eq!(own_comments(&runner), 0);
    runner.assert_untouched();
}

#[test]
fn a_wrong_workflow_is_said_where_it_was_asked_for() {
    let mut runner = with_pull();
    runner.project.env("INPUT_AGENT", "codx");
    runner.say(1, "grace", "/sprag make a.txt say fixed");
    step(&mut runner, 2);
    let comment = runner.comment(1).unwrap();
    assert!(comment.contains("did you mean"), "{comment}");
    // Not for somebody who may not ask.
    let before = runner.comment(1);
    runner.say(1, "stranger", "/sprag make a.txt say fixed");
    step(&mut runner, 2);
    assert_eq!(runner.comment(1), before);
    runner.assert_untouched();
}
