//! The descriptions of the outputs.

use sprag::domain::summary::RunSummary;
use sprag::report::outputs::{OtherOutputs, outputs};

/// Every output and its description, in order.
pub const OUTPUTS: &[(&str, &str)] = &[
    (
        "status",
        "How the run ended: success, unverified, answered, no_work, failed, partial, invalid, blocked, environment, budget, deadline or cancelled.",
    ),
    ("reason", "Reason code of the run."),
    ("tasks-total", "Number of tasks of the run."),
    ("tasks-done", "Number of tasks that are done."),
    ("attempts", "Number of attempts, over all tasks."),
    (
        "retries",
        "Number of attempts after the first, over all tasks.",
    ),
    ("nudges", "Number of nudges, over all tasks."),
    ("commits", "Commits by the run, one per line."),
    (
        "head-sha",
        "Commit of HEAD; after a push, as read back from GitHub.",
    ),
    (
        "branch",
        "Branch that is checked out; empty when HEAD is detached.",
    ),
    (
        "changed-files",
        "Files that the commits changed, one per line.",
    ),
    (
        "known-failures",
        "Tests that fail and already failed before their task, one per line; `check NAME` for a check that does not name its tests.",
    ),
    (
        "pull-request-number",
        "Number of the pull request with the work; empty if there is none.",
    ),
    (
        "pull-request-url",
        "Address of the pull request with the work; empty if there is none.",
    ),
    ("tokens-in", "Input tokens; empty if unknown."),
    ("tokens-out", "Output tokens; empty if unknown."),
    ("cost-usd", "Cost in US dollars; empty if unknown."),
    (
        "run-dir",
        "The run directory: reports, transcripts, logs and patches.",
    ),
    ("report-path", "The HTML report of the run."),
    (
        "sandbox-level",
        "Sandbox level of the run's child processes: a number from 1 to 3, or off.",
    ),
    (
        "report-status",
        "Whether reporting succeeded: ok, degraded or failed.",
    ),
    ("summary", "A summary in one line."),
    (
        "session-id",
        "Id of the agent's last session; empty if it reported none.",
    ),
    (
        "final-message",
        "The agent's last message, cut to 100,000 bytes; empty if there is none.",
    ),
    (
        "structured-output",
        "The JSON value that the last task returned for the setting output_schema, in one line; empty if there is none.",
    ),
    (
        "matrix",
        "Rows of a job matrix as JSON, if the input matrix requests them; otherwise empty.",
    ),
];

#[test]
fn every_output_is_described() {
    let values = outputs(&RunSummary::default(), &OtherOutputs::default());
    let names: Vec<&str> = values.iter().map(|(name, _)| *name).collect();
    let described: Vec<&str> = OUTPUTS.iter().map(|(name, _)| *name).collect();
    assert_eq!(described, names);
}
