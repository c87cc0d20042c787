//! The value that a later step of the job reads.

use super::{FIX, IS_FIXED, with_pull};
use crate::support::runner::Runner;

const OF_BASE: &str =
    r#"{"type": "object", "properties": {"said": {"type": "string"}}, "required": ["said"]}"#;
const OF_HEAD: &str = r#"{"type": "object"}"#;
const SAID: &str = "\nprintf '```json\\n{\"said\": \"a\\\\nb\"}\\n```\\n'";

/// A pull request that changes the schema.
fn with_schemas() -> Runner {
    let runner = with_pull();
    runner.push("main", "schema.json", OF_BASE);
    runner.push("feature", "schema.json", OF_HEAD);
    runner
}

#[test]
fn a_later_step_reads_the_value_in_one_line() {
    let mut runner = with_schemas();
    runner.say(1, "grace", "/sprag make a.txt say fixed");
    let agent = runner.project.agent(&format!("{FIX}{SAID}"));
    let args = ["--agent-command", &agent, "--verify", IS_FIXED];
    let step = runner
        .step(&[&args[..], &["--output-schema", "schema.json"]].concat())
        .expect(0);
    assert_eq!(step.output("structured-output"), r#"{"said":"a\nb"}"#);
    assert!(step.summary.contains("### Structured output"));
}

#[test]
fn a_pull_request_that_changes_the_schema_is_held_to_the_one_of_its_base() {
    let mut runner = with_schemas();
    runner.say(1, "grace", "/sprag make a.txt say fixed");
    let agent = runner
        .project
        .agent(&format!("{FIX}\necho '```json'; echo '{{}}'; echo '```'"));
    let args = [
        "--agent-command",
        &agent,
        "--verify",
        IS_FIXED,
        "--nudges",
        "0",
    ];
    let step = runner
        .step(&[&args[..], &["--output-schema", "schema.json"]].concat())
        .expect(1);
    assert_eq!(step.output("reason"), "output_mismatch");
    assert_eq!(step.output("structured-output"), "");
    assert_eq!(runner.server.pushes(), 0);
}
