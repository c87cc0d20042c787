//! Turns that plan and do nothing: noticed, nudged, and never called done.

use crate::support::tasks::{assert_nothing_recorded, assessments, end, events, fixable, logged};
use serde_json::json;

const PLAN_ONLY: &str = "echo 'Plan: I will edit a.txt.'";

const NUDGES: [&str; 3] = [
    "Please implement the changes now, not just plan them.",
    "IMPORTANT: Execute the actual code changes immediately.",
    "CRITICAL: You must write actual code files NOW.",
];

#[test]
fn planning_detection() {
    let project = fixable();
    let agent = project.agent("printf 'Plan:\\n1. Plan the edit of a.txt.\\n'");
    let run = project.run(&agent, &[]).expect(1);
    let first = &run.task(0)["turns"][0];
    assert_eq!(first["assessment"], "planning_only");
    let indicators = first["indicators"].as_array().unwrap();
    assert!((1..=5).contains(&indicators.len()), "{indicators:?}");
    for indicator in indicators {
        let indicator = indicator.as_str().unwrap();
        assert!(indicator.chars().count() <= 120);
        assert!(logged(&run, indicator), "{indicator:?}: {}", run.stdout);
    }
    assert!(
        logged(&run, "Implementer appears to have planned but not executed"),
        "{}",
        run.stdout
    );
}

#[test]
fn needs_both_signals() {
    let project = fixable();
    let agent = project.agent("echo fixed > a.txt; echo 'Plan: I will edit a.txt.'");
    let run = project.run(&agent, &[]).expect(0);
    assert_eq!(project.calls(), 1);
    assert_eq!(assessments(run.task(0)), ["changed"]);
    assert_eq!(run.summary["totals"]["nudges"], 0);
}

#[test]
fn at_most_three_retries() {
    let project = fixable();
    let head = project.head();
    let run = project.by(PLAN_ONLY, &[]).expect(1);
    assert_eq!(project.calls(), 4);
    assert_eq!(assessments(run.task(0)), ["planning_only"; 4]);
    assert_eq!(end(run.task(0)), ("failed", "planning_only"));
    assert_eq!(end(&run.summary), ("failed", "planning_only"));
    assert_eq!(
        run.summary["totals"],
        json!({
            "tasks": 1, "done": 0, "attempts": 1, "retries": 0, "nudges": 3, "turns": 4,
            "verifications": 1, "verifications_skipped": 0,
        })
    );
    assert_eq!(project.checks(), 2, "one verification for evidence");
    assert_eq!(project.status(), "");
    assert_nothing_recorded(&project, &head);
    assert!(!NUDGES.iter().any(|nudge| project.prompt(1).contains(nudge)));
    for (index, nudge) in NUDGES.iter().enumerate() {
        let prompt = project.prompt(u32::try_from(index).unwrap() + 2);
        assert!(prompt.ends_with(nudge), "{prompt}");
        let others = NUDGES.iter().filter(|other| *other != nudge);
        assert_eq!(others.filter(|other| prompt.contains(**other)).count(), 0);
    }
    let first = project.prompt(1);
    assert!(first.contains("# Task fix: Fix a.txt\n\na.txt must say fixed\n"));
    for n in 2..=4 {
        let prompt = project.prompt(n);
        assert!(prompt.starts_with(&first), "{prompt}");
    }
    let said: Vec<&str> = events(&run, "retry.scheduled")
        .iter()
        .map(|event| event["message"].as_str().unwrap())
        .collect();
    let expected = [2, 3, 4].map(|k| {
        format!("Implementer appears to have planned but not executed. Retrying (attempt {k}/4)...")
    });
    assert_eq!(said, expected);
    for k in 1..4 {
        let line = format!("nudge {k} of 3: Implementer appears to have planned but not executed");
        assert!(logged(&run, &line), "{}", run.stdout);
    }
    assert!(!logged(&run, &expected[0]), "{}", run.stdout);
}

#[test]
fn passing_checks_do_not_make_a_plan_a_success() {
    let project = fixable();
    project.write("a.txt", "fixed\n");
    project.commit_all("fixed by somebody else");
    let head = project.head();
    let run = project.by(PLAN_ONLY, &[]).expect(1);
    assert_eq!(end(run.task(0)), ("failed", "planning_only"));
    assert_eq!(run.task(0)["checks"][0]["passed"], true);
    assert_nothing_recorded(&project, &head);
}

#[test]
fn plan_then_act() {
    let project = fixable();
    let agent = project
        .agent("case $N in 1) echo 'Plan: I will edit a.txt.' ;; *) echo fixed > a.txt; echo Done. ;; esac");
    let run = project.run(&agent, &[]).expect(0);
    assert_eq!(project.calls(), 2);
    assert_eq!(assessments(run.task(0)), ["planning_only", "changed"]);
    assert_eq!(end(run.task(0)), ("done", "verified"));
    assert_eq!(run.task(0)["attempts"], 1);
    assert_eq!(run.task(0)["nudges"], 1);
    assert!(
        logged(&run, "Planning without changes resolved on attempt 2/4"),
        "{}",
        run.stdout
    );
    assert_eq!(project.status(), "");
    assert_eq!(project.commits(), 3);
}

#[test]
fn budget_of_nudges_is_the_tasks() {
    let project = fixable();
    let agent = project.agent(
        "case $N in 3) echo wrong > a.txt; echo Done. ;; *) echo 'Plan: I will edit a.txt.' ;; esac",
    );
    let run = project.run(&agent, &[]).expect(1);
    // Two nudges in attempt 1, one in attempt 2; then the budget of three is spent.
    assert_eq!(project.calls(), 5);
    assert_eq!(run.task(0)["nudges"], 3);
    assert_eq!(run.task(0)["attempts"], 2);
    assert_eq!(end(run.task(0)), ("failed", "no_progress"));
    assert_eq!(project.checks(), 2, "no verification of an idle retry");
}
