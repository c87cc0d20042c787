//! The JSON value that the last task gives for the setting `output_schema`.

use crate::support::has;
use crate::support::project::{Project, Run, plan};
use serde_json::json;

const SCHEMA: &str =
    r#"{"type": "object", "properties": {"fixed": {"type": "boolean"}}, "required": ["fixed"]}"#;
/// Gives a value that fits.
const FITS: &str = "printf 'Done.\\n```json\\n{\"fixed\": true}\\n```\\n'";

fn project() -> Project {
    let project = Project::new(&[("a.txt", "old\n"), ("schema.json", SCHEMA)]);
    project.write("plan.yaml", &plan("grep -q new a.txt"));
    project.commit_all("plan");
    project
}

fn run(project: &Project, script: &str, args: &[&str]) -> Run {
    let agent = project.agent(script);
    let schema = ["--output-schema", "schema.json"];
    project.run(&agent, &[&schema[..], args].concat())
}

#[test]
fn the_value_is_in_the_summary_and_the_agent_is_shown_the_schema() {
    let project = project();
    let run = run(&project, &format!("echo new > a.txt; {FITS}"), &[]).expect(0);
    assert_eq!(run.summary["structured_output"], json!({"fixed": true}));
    assert_eq!(run.task(0)["structured_output"], json!({"fixed": true}));
    assert_eq!(project.calls(), 1);
    assert!(project.prompt(1).contains("\"fixed\""));
}

#[test]
fn a_message_that_does_not_fit_is_asked_for_again_and_the_work_stays_verified() {
    let project = project();
    let script = format!(
        "case $SPRAG_PURPOSE in
  implement) echo new > a.txt; printf 'SUGGESTED_COMMIT_MESSAGE: Say new\\n```json\\n{{\"fixed\": 1}}\\n```\\n' ;;
  nudge) echo old > a.txt; git commit -qam mine; {FITS} ;;
esac"
    );
    let run = run(&project, &script, &[]).expect(0);
    assert_eq!(run.summary["structured_output"], json!({"fixed": true}));
    assert_eq!(run.task(0)["reason"], "verified");
    assert_eq!(project.git(&["show", "HEAD:a.txt"]), "new");
    assert_eq!(
        (&run.task(0)["nudges"], &run.task(0)["retries"]),
        (&json!(1), &json!(0))
    );
    let asked = project.prompt(2);
    has(&asked, "at /fixed");
    has(&asked, "Change no file");
    has(&run.stdout, "does not fit the output schema: at /fixed");
    assert_eq!(project.git(&["log", "-1", "--format=%s"]).trim(), "Say new");
}

#[test]
fn without_a_value_that_fits_the_task_fails_and_nothing_is_committed() {
    let project = project();
    let head = project.head();
    let run = run(&project, "echo new > a.txt; echo Done.", &["--nudges", "1"]).expect(1);
    assert_eq!(run.task(0)["reason"], "output_mismatch");
    assert!(run.summary.get("structured_output").is_none());
    assert_eq!(project.calls(), 2);
    assert_eq!(project.head(), head);
}

#[test]
fn work_that_fails_its_checks_is_repaired_before_anything_is_asked() {
    let project = project();
    let script =
        format!("[ $SPRAG_ATTEMPT = 1 ] && echo wrong > a.txt && exit; echo new > a.txt; {FITS}");
    let run = run(&project, &script, &[]).expect(0);
    assert_eq!(
        (&run.task(0)["nudges"], &run.task(0)["retries"]),
        (&json!(0), &json!(1))
    );
}

#[test]
fn nothing_to_do_is_an_answer_too() {
    let project = project();
    project.write("a.txt", "new\n");
    project.commit_all("done before");
    let script = format!(
        "[ $SPRAG_PURPOSE = implement ] && echo 'ALREADY_SATISFIED: it is there' && exit; {FITS}"
    );
    let run = run(&project, &script, &[]).expect(0);
    assert_eq!(run.task(0)["reason"], "already_satisfied");
    assert_eq!(run.summary["structured_output"], json!({"fixed": true}));
}

#[test]
fn only_the_last_task_gives_a_value() {
    let project = project();
    let two = "title: T\ntasks: [{id: one, title: One}, {id: two, title: Two}]\n";
    project.write("plan.yaml", two);
    project.commit_all("two tasks");
    let script = format!("echo $SPRAG_TASK_ID >> a.txt; [ $SPRAG_TASK_ID = one ] || {FITS}");
    let run = run(&project, &script, &[]).expect(0);
    assert!(run.task(0).get("structured_output").is_none());
    assert_eq!(run.task(1)["structured_output"], json!({"fixed": true}));
    assert!(!project.prompt(1).contains("JSON Schema"));
}

#[test]
fn with_a_review_the_value_is_that_of_who_did_the_work() {
    let project = project();
    let script = format!(
        "case $SPRAG_ROLE-$SPRAG_PURPOSE in
  implementer-*) echo new > a.txt; [ $SPRAG_PURPOSE = implement ] || {FITS} ;;
  reviewer-*) echo 'VERDICT: ACCEPTABLE' ;;
esac"
    );
    let run = run(&project, &script, &["--review"]).expect(0);
    assert_eq!(run.summary["structured_output"], json!({"fixed": true}));
    assert_eq!(project.calls(), 3);
    assert!(!project.prompt(3).contains("JSON Schema"));
}

#[test]
fn what_is_no_schema_ends_the_run_before_an_agent_works() {
    let project = project();
    for (schema, expected) in [
        (
            r#"{"type": "objct"}"#,
            "output_schema: it is not a JSON Schema: at /type",
        ),
        (r#"{"type": }"#, "output_schema: it is not JSON"),
        ("missing.json", "there is no output schema"),
        ("a.txt", "the output schema a.txt: it is not JSON"),
    ] {
        let agent = project.agent("echo new > a.txt");
        let run = project.run(&agent, &["--output-schema", schema]).expect(2);
        assert!(run.stderr.contains(expected), "{schema}: {}", run.stderr);
    }
    assert_eq!(project.calls(), 0);
}
