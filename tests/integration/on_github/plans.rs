//! `sprag plan` with a pull request.

use super::with_pull;
use crate::support::runner::{Runner, Step, repository};
use serde_json::json;

const PLAN: &str = "title: Missing files\\ntasks:\\n  - id: c\\n    title: Write c.txt\\n";

fn planned(runner: &mut Runner, args: &[&str]) -> Step {
    let event = json!({ "repository": repository(), "inputs": {}, "ref": "refs/heads/main" });
    runner.event("workflow_dispatch", "refs/heads/main", &event);
    runner.checkout("main");
    let script = format!("echo x > other.txt; printf '{PLAN}'");
    let agent = runner.project.agent(&script);
    let all = [&["--agent-command", &agent][..], args].concat();
    let output = runner.command_of("plan", &all).output().unwrap();
    runner.ended(&output)
}

#[test]
fn a_plan_for_an_issue_goes_to_a_branch_and_a_pull_request_of_its_own() {
    let mut runner = with_pull();
    let body = "We miss some.\n\n- [ ] c.txt\n- [ ] d.txt\n";
    let number = runner
        .github
        .state()
        .open_issue("ada", "Files are missing", body);
    let named = number.to_string();
    let main = runner.at("main");
    planned(&mut runner, &["--issue", &named, "--pull-request", "ready"]).expect(0);
    let branch = format!("sprag/plan-issue-{number}");
    let path = ".sprag/plans/missing-files.yaml";
    assert_eq!(runner.file(&branch, path), PLAN.replace("\\n", "\n"));
    assert_eq!(
        runner.log(&branch),
        ["[sprag] Draft plan: Missing files", "base"]
    );
    assert_eq!(runner.at("main"), main);
    let prompt = runner.project.prompt(1);
    for text in ["Files are missing", "We miss some.", "- c.txt", "- d.txt"] {
        assert!(prompt.contains(text), "{text}: {prompt}");
    }
    {
        let state = runner.github.state();
        let mut pulls = state.pulls.iter().filter(|(_, pull)| pull.head == branch);
        let (pull, opened) = pulls.next().unwrap();
        assert!(pulls.next().is_none());
        assert_eq!((opened.base.as_str(), opened.draft), ("main", false));
        assert!(
            !state.issues[pull].body.contains("Closes #"),
            "the plan is not the work"
        );
        assert_eq!(state.issues[&number].body, body);
        assert!(state.comments.is_empty());
    }
    // Another one does not touch the first.
    planned(&mut runner, &["--issue", &named, "--pull-request", "draft"]).expect(0);
    assert_eq!(runner.log(&format!("{branch}-2"))[1], "base");
    assert_eq!(runner.log(&branch).len(), 2);
}

#[test]
fn without_a_pull_request_nothing_leaves_the_machine() {
    let mut runner = with_pull();
    let step = planned(&mut runner, &["Add the missing files"]).expect(0);
    assert_eq!(
        runner.project.read(".sprag/plans/missing-files.yaml"),
        PLAN.replace("\\n", "\n")
    );
    assert_eq!(runner.project.status(), "?? .sprag/");
    assert_eq!(runner.github.state().pulls.len(), 1);
    assert!(runner.github.state().comments.is_empty());
    assert!(runner.checks().is_empty());
    assert!(step.dir.is_some());
}
