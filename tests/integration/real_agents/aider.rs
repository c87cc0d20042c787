//! The command line that the documentation gives for aider, run as it is.

use super::*;
use crate::support::tasks::{assessments, end};
use std::path::PathBuf;

/// The settings of the documentation.
fn documented() -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(root.join("docs/agents.md")).unwrap();
    let mut blocks = text.split("```yaml\n").skip(1);
    let block = blocks.find(|block| block.contains("aider")).unwrap();
    block.split("```").next().unwrap().to_owned()
}

/// A run of the documented command with this model; `None` unless `SPRAG_TEST_AIDER` names its directory.
fn with_aider(steps: impl IntoIterator<Item = Step>, code: i32) -> Option<(Project, Run)> {
    let bin = std::env::var_os("SPRAG_TEST_AIDER").map(PathBuf::from)?;
    let api = ModelApi::without_tools(steps).unwrap();
    let plan = plan("grep -q fixed a.txt") + &documented();
    let mut project = Project::new(&[("a.txt", "broken\n"), ("plan.yaml", &plan)]);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = [bin].into_iter().chain(std::env::split_paths(&path));
    project.env("PATH", std::env::join_paths(path).unwrap());
    project.env("SPRAG_SANDBOX", "auto");
    project.env("OPENAI_API_KEY", "not-a-key");
    project.env("OPENAI_API_BASE", format!("{}/v1", api.url()));
    let args = ["run", "--plan", "plan.yaml", "--network-allow", "deny"];
    let run = project.sprag(&args).expect(code);
    assert_eq!(api.steps_left(), 0);
    Some((project, run))
}

const SUBJECT: &str =
    "Let a.txt say what everybody who has read the plan of this project expects of it";

#[test]
fn aider_plans_is_nudged_and_has_its_work_committed() {
    let edit = format!(
        "a.txt\n<<<<<<< SEARCH\nbroken\n=======\nfixed\n>>>>>>> REPLACE\n\nSUGGESTED_COMMIT_MESSAGE: {SUBJECT}"
    );
    let steps = [text(PLANNED), text(&edit)];
    let Some((project, run)) = with_aider(steps, 0) else {
        return;
    };
    let task = run.task(0);
    assert_eq!(end(task), ("done", "verified"));
    assert_eq!(assessments(task), ["planning_only", "changed"]);
    let commit = project.git(&["log", "-1", "--format=%s", "--name-only"]);
    assert_eq!(commit, format!("{SUBJECT}\n\na.txt\nplan.yaml"));
    assert_eq!(project.status(), "");
}

#[test]
fn a_report_of_aider_is_read() {
    let report = text("FAILED: a.txt cannot be mended\n\nProblems:\nnobody says how");
    let Some((_, run)) = with_aider([report], 3) else {
        return;
    };
    assert_eq!(end(run.task(0)), ("blocked", "failed_report"));
}
