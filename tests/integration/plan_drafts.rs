//! `sprag plan`: drafts that are checked, and nothing else that stays.

use crate::support::has;
use crate::support::project::{Project, Run};
use crate::support::tasks::{kept, warnings};
use serde_json::json;
use std::fs;

const PLAN: &str = "title: CSV export\\ngoal: Any report as CSV\\ntasks:\\n  - id: endpoint\\n    title: Serve it\\n  - id: docs\\n    title: Document it\\n    depends_on: [endpoint]\\n";
const FIRST: &str = ".sprag/plans/csv-export.yaml";

fn project() -> Project {
    Project::new(&[("a.txt", "text\n")])
}

fn draft(project: &Project, script: &str, args: &[&str]) -> Run {
    let agent = project.agent(script);
    let all = [&["plan", "--agent-command", &agent][..], args].concat();
    project.sprag(&all)
}

#[test]
fn a_fenced_plan_is_written_to_a_new_file_and_nothing_is_committed() {
    let project = project();
    let script = format!("printf 'Here it is:\\n\\n```yaml\\n{PLAN}```\\n'");
    let run = draft(&project, &script, &["Reports as CSV, with a header"]).expect(0);
    // Nothing has verified a plan.
    let task = run.task(0);
    assert_eq!(
        (&task["reason"], &task["verified"]),
        (&"drafted".into(), &false.into())
    );
    let expected = PLAN.replace("\\n", "\n");
    assert_eq!(project.read(FIRST), expected);
    assert_eq!(project.status(), "?? .sprag/");
    assert_eq!(project.commits(), 1);
    assert_eq!(project.calls(), 1);
    let prompt = project.prompt(1);
    has(
        &prompt,
        "## What is asked for\n\nReports as CSV, with a header\n",
    );
    has(
        &run.stdout,
        format!("{FIRST} is written: CSV export (2 tasks)"),
    );
    project.sprag(&["check", FIRST]).expect(0);

    // The next one of that name goes beside it, once the first is committed.
    project.commit_all("plan");
    draft(&project, &script, &["--prompt", "Reports as CSV"]).expect(0);
    assert_eq!(project.read(".sprag/plans/csv-export-2.yaml"), expected);
    assert_eq!(project.read(FIRST), expected);
}

#[test]
fn an_invalid_draft_is_given_back_with_its_error_at_most_twice() {
    let project = project();
    let invalid = "title: x\\ntasks:\\n  - id: a\\n    title: A\\n    depends_on: [b]\\n";
    let script = format!("if [ $N -lt 3 ]; then printf '{invalid}'; else printf '{PLAN}'; fi");
    let run = draft(&project, &script, &["CSV", "--output", "plan.yaml"]).expect(0);
    assert_eq!(project.calls(), 3);
    let error = "plan.yaml:5:18: depends_on names the task `b`, which does not exist";
    assert!(!project.prompt(1).contains("not valid"));
    for n in [2, 3] {
        let prompt = project.prompt(n);
        assert!(prompt.contains("    depends_on: [b]\n"), "{prompt}");
        assert!(prompt.contains(error), "{prompt}");
    }
    let warned = warnings(&run);
    assert!(
        warned[0].starts_with(&format!("draft 1 of 3 is not a valid plan: {error}")),
        "{warned:?}"
    );
    assert_eq!(project.read("plan.yaml"), PLAN.replace("\\n", "\n"));
    assert_eq!(run.task(0)["message"], "the draft is a valid plan");

    project.commit_all("plan");
    let again = draft(&project, "echo 'I will plan it.'", &["CSV"]).expect(1);
    assert_eq!(project.calls(), 6);
    assert_eq!(again.summary["status"], "failed");
    let message = again.task(0)["message"].as_str().unwrap();
    assert!(
        message.starts_with("no valid plan in 3 drafts: "),
        "{message}"
    );
    assert!(again.stdout.contains("say more exactly what is wanted"));
    assert!(!again.stdout.contains("failing check"), "{}", again.stdout);
    assert_eq!(project.status(), "");
}

#[test]
fn an_error_that_passes_is_waited_out_and_takes_no_draft() {
    let mut project = project();
    project.env("SPRAG_MODEL_WAIT_MS", "10");
    let overloaded = "{ echo 'API Error: 529 Overloaded, retry-after-ms: 10'; exit 1; }";
    let script = format!("test $N -lt 4 && {overloaded}; printf '{PLAN}'");
    let run = draft(&project, &script, &["CSV"]).expect(0);
    assert_eq!(project.calls(), 4);
    let waits = run
        .events
        .iter()
        .filter(|event| event["event"] == "retry.scheduled");
    let waits: Vec<_> = waits
        .map(|event| (&event["kind"], &event["attempt"], &event["n"]))
        .collect();
    let expected = [1, 2, 3].map(|n| (json!("wait"), json!(1), json!(n)));
    assert_eq!(
        waits,
        expected
            .each_ref()
            .map(|(kind, attempt, n)| (kind, attempt, n))
    );

    project.commit_all("plan");
    let run = draft(&project, overloaded, &["CSV"]).expect(4);
    assert_eq!(project.calls(), 10);
    let message = run.task(0)["message"].as_str().unwrap();
    has(message, "529 Overloaded");
    has(message, "5 waits");
}

#[test]
fn what_else_the_agent_changes_is_undone_and_told() {
    let project = project();
    let head = project.head();
    let script = format!(
        "echo mine > a.txt; mkdir new; echo x > new/file; git add -A; git commit -qm own; echo y > b.txt; printf '{PLAN}'"
    );
    let run = draft(&project, &script, &["CSV"]).expect(0);
    assert_eq!(project.head(), head);
    assert_eq!(project.status(), "?? .sprag/");
    assert_eq!(project.read("a.txt"), "text\n");
    let warned = warnings(&run).join("\n");
    has(&warned, "the changes were undone: a.txt, b.txt, new/file");
    has(
        &warned,
        "they were removed from the branch and kept under refs/sprag/",
    );
}

#[test]
fn a_plan_that_the_agent_wrote_into_a_file_counts() {
    let project = project();
    let script =
        format!("mkdir -p docs; printf '{PLAN}' > docs/plan.yaml; echo 'I wrote docs/plan.yaml.'");
    draft(&project, &script, &["CSV"]).expect(0);
    assert_eq!(project.read(FIRST), PLAN.replace("\\n", "\n"));
    assert_eq!(project.status(), "?? .sprag/");
}

#[test]
fn a_failed_report_blocks_and_a_missing_agent_is_an_environment_error() {
    let project = project();
    let run = draft(
        &project,
        "echo 'FAILED: nobody knows what that is'",
        &["CSV"],
    )
    .expect(3);
    assert_eq!(run.summary["reason"], "failed_report");
    assert_eq!(
        run.task(0)["failed_report"]["summary"],
        "nobody knows what that is"
    );
    let run = project.sprag(&["plan", "CSV", "--agent-command", "no-such-agent-at-all"]);
    assert_eq!(run.expect(4).summary["reason"], "agent_unavailable");
    assert_eq!(project.status(), "");
}

#[test]
fn settings_that_a_draft_brings_along_are_warned_of() {
    let project = project();
    let script = format!("printf 'setup: [ touch x ]\\n{PLAN}'");
    let run = draft(&project, &script, &["CSV"]).expect(0);
    let warned = warnings(&run).join("\n");
    has(
        &warned,
        format!("the plan contains setup, which can start programs: read {FIRST}"),
    );
    assert!(!project.repo().join("x").exists());
}

#[test]
fn the_command_line_is_checked_before_anything_is_asked() {
    let project = project();
    let refused = |args: &[&str], told: &str| {
        let run = draft(&project, "exit 1", args).expect(2);
        assert!(run.stderr.contains(told), "{}", run.stderr);
    };
    refused(&[], "nothing to plan");
    refused(
        &["CSV", "--issue", "1"],
        "--prompt and --issue were given together",
    );
    refused(&["CSV", "--output", "a.txt"], "this file already exists");
    refused(&["CSV", "--output", "b.txt"], "a plan is a YAML file");
    refused(
        &["CSV", "--allow-dirty"],
        "--allow-dirty cannot be used with sprag plan",
    );
    project.write("mine.txt", "mine\n");
    refused(&["CSV"], "the work tree is not clean");
    assert_eq!(project.read("mine.txt"), "mine\n");
    fs::remove_file(project.repo().join("mine.txt")).unwrap();
    let run = draft(&project, "exit 1", &["CSV", "--pull-request", "draft"]).expect(4);
    has(&run.stderr, "--pull-request needs GitHub");
    assert_eq!(project.calls(), 0);
}

#[test]
fn a_run_that_drafts_is_not_resumed() {
    let project = project();
    let run = draft(&project, "echo nothing", &["CSV"]).expect(1);
    assert!(kept(&run, "prompts/01.md").contains("# Draft a plan"));
    has(&run.stdout, " · 3 attempts, 3 turns, ");
    assert!(!run.stdout.contains("--resume"), "{}", run.stdout);
    let dir = run.dir.clone().unwrap();
    let resumed = project
        .sprag(&["run", "--resume", "--run-dir", dir.to_str().unwrap()])
        .expect(2);
    has(&resumed.stderr, "drafts a plan and cannot be resumed");
    let resumed = project.sprag(&["run", "--resume"]).expect(2);
    assert!(
        !resumed.stderr.contains("drafts a plan"),
        "{}",
        resumed.stderr
    );
    assert!(fs::metadata(dir).is_ok());
}
