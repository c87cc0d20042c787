//! A file that cannot be edited gets a session of its own.

use crate::builtin::{broken, calls, played, session};
use crate::support::model_api::Step;
use serde_json::{Value, json};

fn edit(search: &str) -> (&'static str, Value) {
    (
        "edit_file",
        json!({"path": "a.txt", "search": search, "replace": "fixed"}),
    )
}

/// Three edits that fail, after which the file gets a session of its own.
fn failing() -> Vec<Step> {
    let items = json!({"items": [{"text": "a.txt: fix it", "state": "pending"}]});
    vec![
        calls("", vec![("update_plan", items), edit("brokken")]),
        calls("", vec![edit("is broken")]),
        calls("", vec![edit("Broken.")]),
    ]
}

fn read() -> Step {
    calls("", vec![("read_file", json!({"path": "a.txt"}))])
}

fn finish(summary: &str) -> Step {
    calls("", vec![("finish", json!({"summary": summary}))])
}

#[test]
fn a_session_on_the_file_alone_changes_it_and_the_work_goes_on() {
    let mut script = failing();
    script.extend([
        read(),
        calls("", vec![edit("broken")]),
        finish("It is fixed now."),
        finish("Fix a.txt"),
    ]);
    let mut project = broken();
    let (run, requests) = played(&mut project, script);
    let run = run.expect(0);
    assert_eq!(requests.len(), 7);
    let inner = requests[3].body["messages"].as_array().unwrap();
    assert_eq!(inner.len(), 2, "it begins anew: {inner:?}");
    assert!(requests[3].mentions("Several edits of `a.txt` have failed"));
    assert!(requests[3].mentions("- a.txt: fix it"));
    assert!(
        requests[3].mentions("a.txt must say fixed"),
        "the task is named"
    );
    assert!(!requests[3].mentions("brokken"));
    let outer = &requests[6];
    assert!(outer.mentions("brokken") && outer.mentions("it was edited in a session of its own"));
    assert!(!outer.mentions("Several edits of"));
    let session = session(&run);
    assert_eq!(session["fix_slice_count"], 1);
    assert_eq!(session["tool_calls"], 8, "those of the inner session count");
    assert_eq!(session["plan_finished"], 1);
    assert_eq!(session["completion_kind"], "complete_verified");
    assert_eq!(project.commits(), 2);
    assert_eq!(project.read("a.txt"), "fixed\n");
}

/// A session on the file alone that does nothing: its first final words are not accepted.
fn idle() -> [Step; 3] {
    [read(), finish("I leave it."), finish("I leave it.")]
}

#[test]
fn a_session_of_its_own_that_does_not_help_blocks_the_item() {
    let mut script = failing();
    script.extend(idle());
    script.push(finish(
        "FAILED: a.txt cannot be edited\n\n## Problems\nIts text is not what was expected.\n",
    ));
    let mut project = broken();
    let head = project.head();
    let (run, requests) = played(&mut project, script);
    let run = run.expect(3);
    assert_eq!(requests.len(), 7);
    assert!(requests[5].mentions("nothing was changed and no item is satisfied"));
    assert!(requests[6].mentions("Its items are marked as blocked"));
    assert_eq!(run.summary["status"], "blocked");
    assert_eq!(run.task(0)["reason"], "failed_report");
    assert_eq!(run.task(0)["status"], "blocked");
    let problems = &run.task(0)["failed_report"]["problems"];
    assert_eq!(problems, "Its text is not what was expected.");
    let session = session(&run);
    assert_eq!(session["completion_kind"], "blocked");
    assert_eq!(session["fix_slice_count"], 1);
    assert_eq!(session["plan_finished"], 0);
    assert_eq!((project.head(), project.status().as_str()), (head, ""));
}

#[test]
fn a_blocked_item_does_not_outweigh_what_the_repository_and_the_checks_say() {
    let mut script = failing();
    script.extend(idle());
    let command = json!({"command": "echo fixed > a.txt"});
    script.push(calls("", vec![("run_command", command)]));
    script.push(finish("Fix a.txt"));
    let mut project = broken();
    let (run, _) = played(&mut project, script);
    let run = run.expect(0);
    assert_eq!(run.task(0)["reason"], "verified");
    assert_eq!(project.commits(), 2);
    assert_eq!(session(&run)["fix_slice_count"], 1);
}
