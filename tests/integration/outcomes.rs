//! What Sprag's work of a period came to, told from the history and from what runs say of themselves.

use crate::support::project::Project;
use serde_json::{Value, json};

const PLAN: &str = "title: T\nverify: [{name: test, run: 'test -e a.txt', kind: test}]\ntasks: [{id: one, title: One}, {id: two, title: Two}]\n";

/// A repository with a run of two tasks and one that failed.
fn worked() -> Project {
    let project = Project::new(&[("a.txt", "old\n")]);
    project.write("plan.yaml", PLAN);
    project.commit_all("plan");
    let agent = project.agent("echo $SPRAG_TASK_ID > $SPRAG_TASK_ID.txt; echo done");
    project.run(&agent, &[]).expect(0);
    let agent = project.agent("echo 'FAILED: no'");
    project
        .sprag(&["run", "--agent-command", &agent, "--prompt", "Do more"])
        .expect(3);
    project
}

fn outcomes(project: &Project, args: &[&str]) -> Value {
    let args = [&["outcomes", "--json"][..], args].concat();
    serde_json::from_str(&project.sprag(&args).expect(0).stdout).unwrap()
}

#[test]
fn commits_tasks_and_reverts_are_told_from_the_history_and_runs_from_their_records() {
    let project = worked();
    project.git(&["revert", "--no-edit", "HEAD"]);
    let told = outcomes(&project, &["--since", "1d"]);
    let expected = [
        ("runs", json!(2)),
        ("runs_known", json!(2)),
        ("statuses", json!({"success": 1, "blocked": 1})),
        ("tasks", json!(3)),
        ("tasks_verified", json!(2)),
        ("tasks_committed", json!(2)),
        ("tasks_merged", json!(2)),
        ("tasks_reverted", json!(1)),
        ("commits_merged", json!(2)),
        ("commits_reverted", json!(1)),
        ("cost_usd", json!(null)),
        ("cost_usd_per_merged_task", json!(null)),
    ];
    for (key, value) in expected {
        assert_eq!(told[key], value, "{key}: {told}");
    }
    project
        .sprag(&["outcomes", "--since", "2999-01-01"])
        .expect(2);
}

#[test]
fn work_on_another_branch_is_not_merged() {
    let project = Project::new(&[("a.txt", "old\n")]);
    project.write("plan.yaml", PLAN);
    project.commit_all("plan");
    project.git(&["switch", "-qc", "work"]);
    let agent = project.agent("echo $SPRAG_TASK_ID > $SPRAG_TASK_ID.txt; echo done");
    project.run(&agent, &[]).expect(0);
    project.git(&["switch", "-q", "-"]);
    let told = outcomes(&project, &[]);
    assert_eq!(
        (&told["tasks_committed"], &told["tasks_merged"]),
        (&json!(2), &json!(0))
    );
    let told = outcomes(&project, &["--branch", "work"]);
    assert_eq!(told["tasks_merged"], json!(2));
}

#[test]
fn it_is_told_for_a_terminal_and_as_markdown_and_what_is_no_time_is_refused() {
    let project = worked();
    let shown = project.sprag(&["outcomes"]).expect(0).stdout;
    assert!(shown.contains("Tasks verified         2\n"), "{shown}");
    assert!(shown.contains("2: 2 merged, 0 reverted"), "{shown}");
    assert!(shown.contains("GITHUB_TOKEN"), "{shown}");
    let shown = project.sprag(&["outcomes", "--markdown"]).expect(0).stdout;
    assert!(shown.contains("| Tasks verified | 2 |"), "{shown}");
    let refused = project.sprag(&["outcomes", "--since", "soon"]).expect(2);
    assert!(refused.stderr.contains("2026-01-31"), "{}", refused.stderr);
    let refused = project
        .sprag(&["outcomes", "--branch", "nowhere"])
        .expect(2);
    assert!(
        refused.stderr.contains("git branch --all"),
        "{}",
        refused.stderr
    );
}
