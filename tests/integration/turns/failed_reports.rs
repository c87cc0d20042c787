//! The FAILED report, and what only looks like one.

use crate::support::tasks::{
    FIX, assert_nothing_recorded, assessments, end, events, fixable, kept, several,
};
use serde_json::json;

const REPORT: &str = r#"cat <<'EOF'
FAILED: the service has no sandbox

Requirements:
- An account for tests

Problems:
- The API refuses every key

Possible solutions:
- Ask the owner for a key

Plan: I will try again.
EOF"#;

#[test]
fn failed_details() {
    let project = fixable();
    let head = project.head();
    let run = project.by(REPORT, &[]).expect(3);
    assert_eq!((project.calls(), project.checks()), (1, 1));
    assert_eq!(assessments(run.task(0)), ["failed_report"]);
    assert_eq!(end(run.task(0)), ("blocked", "failed_report"));
    assert_eq!(end(&run.summary), ("blocked", "failed_report"));
    let message = "the agent reported: the service has no sandbox";
    assert_eq!(run.task(0)["message"], message);
    assert_nothing_recorded(&project, &head);
    assert_eq!(
        run.task(0)["failed_report"],
        json!({
            "summary": "the service has no sandbox",
            "requirements": "- An account for tests",
            "problems": "- The API refuses every key",
            "solutions": "- Ask the owner for a key\n\nPlan: I will try again.",
        })
    );
    let assessed = events(&run, "turn.assessed");
    assert_eq!(assessed[0]["failed_report"], run.task(0)["failed_report"]);
}

#[test]
fn failed_with_changes() {
    let project = fixable();
    let head = project.head();
    let agent = project.agent("echo half > a.txt; echo 'FAILED: half of it only'");
    let run = project.run(&agent, &[]).expect(3);
    assert_eq!(end(run.task(0)), ("blocked", "failed_report"));
    assert_eq!(project.checks(), 1);
    assert_nothing_recorded(&project, &head);
    assert_eq!(project.read("a.txt"), "half\n");
    assert!(kept(&run, "patches/fix.patch").contains("\n+half\n"));
    assert_eq!(run.task(0)["changes_made"], true);
}

#[test]
fn failed_stops_the_plan_and_a_rerun_takes_the_task_again() {
    let project = several(&["one", "two"]);
    let agent = project
        .agent("[ $N = 1 ] && { echo 'FAILED: no key'; exit; }; touch $SPRAG_TASK_ID; echo Done.");
    let run = project.run(&agent, &[]).expect(3);
    assert_eq!(project.calls(), 1);
    assert_eq!(end(run.task(1)), ("pending", "-"));
    let again = project.run(&agent, &[]).expect(0);
    assert_eq!(again.summary["totals"]["done"], 2);
    assert_eq!(again.task(0)["attempts"], 1, "fresh counts");
}

#[test]
fn failed_in_a_file_counts_and_stdout_does_not() {
    let project = fixable();
    let agent = project.agent(&format!(
        "echo 'FAILED: on stdout'; {FIX} echo Fine. > $SPRAG_FINAL_FILE"
    ));
    let run = project.run(&agent, &[]).expect(0);
    assert_eq!(assessments(run.task(0)), ["changed"]);
}
