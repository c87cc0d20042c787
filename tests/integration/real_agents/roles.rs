//! The real agents as reviewers of somebody else's work.

use super::*;
use crate::support::tasks::{subjects, warnings};

/// What the implementer and the fixer do.
const OTHERS: &str = "case $SPRAG_ROLE in
  implementer) echo fixed > a.txt; echo 'SUGGESTED_COMMIT_MESSAGE: Fix it' ;;
  fixer) echo 'fixed well' > a.txt; echo 'SUGGESTED_COMMIT_MESSAGE: Fix it well' ;;
esac";

/// Writes what it may not, and commits it.
const MEDDLE: &str = "echo meddled > a.txt; echo mine > own.txt; git add --all; \
                      git -c user.name=R -c user.email=r@example.org commit --quiet --message Mine";

/// A reviewer that tries to change the work, asks for fixes in Markdown and accepts what comes of it.
/// Returns the warnings of the run.
fn decides_and_changes_nothing(agent: Agent) -> Option<Vec<String>> {
    let small = Small::new(
        agent,
        [
            Step::Shell("git diff HEAD".into()),
            Step::Shell(MEDDLE.into()),
            text("I read the change.\n\n- a.txt:1: say how well\n\n**VERDICT: NEEDS_FIXES**"),
            text("The finding is resolved.\n\nVERDICT: **ACCEPTABLE**"),
        ],
    )?;
    let (project, api) = (&small.project, &small.api);
    let reviewer = json!({
        "agent": agent.name(), "model": agent.model(), "agent_args": agent.args(api),
    });
    let roles = json!({ "reviewer": reviewer }).to_string();
    let others = project.agent(OTHERS);
    let run = project
        .run(&others, &["--review", "--roles", &roles])
        .expect(0);
    let task = run.task(0);
    let verdicts = task["reviews"].as_array().unwrap().iter();
    let verdicts: Vec<&Value> = verdicts.map(|review| &review["verdict"]).collect();
    assert_eq!(verdicts, ["needs_fixes", "acceptable"]);
    assert_eq!(
        task["findings"],
        json!([{ "path": "a.txt", "line": 1, "text": "say how well", "round": 1, "resolved": true }])
    );
    assert_eq!(subjects(project), ["Fix it well", "base"]);
    assert_eq!(project.read("a.txt"), "fixed well\n");
    assert!(!project.repo().join("own.txt").exists());
    assert_eq!(project.status(), "");
    assert_eq!(api.steps_left(), 0);
    let again = api.model_requests().pop().unwrap();
    assert!(again.mentions("say how well") && again.mentions("+fixed well"));
    let warnings = warnings(&run).into_iter().map(str::to_owned);
    Some(warnings.collect())
}

/// Sprag's sandbox is around it, in which codex can have none of its own.
#[test]
fn codex_as_a_reviewer_has_what_it_changes_undone_and_reported() {
    let Some(warnings) = decides_and_changes_nothing(Codex) else {
        return;
    };
    let [commits, files] = warnings.as_slice() else {
        panic!("{warnings:?}");
    };
    assert!(commits.contains("they were removed from the branch"));
    assert!(files.ends_with("the changes were undone: a.txt, own.txt"));
}

#[test]
#[ignore = "scripts/test-full runs it"]
fn claude_as_a_reviewer_is_kept_from_changes_by_itself() {
    let warnings = decides_and_changes_nothing(Claude);
    assert!(warnings.is_none_or(|warnings| warnings.is_empty()));
}
