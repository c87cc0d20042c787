//! The outputs of the action, as text for the file that `GITHUB_OUTPUT` names.

use super::text;
use crate::domain::attempt::{Blame, BlamedTest};
use crate::domain::outcome::{Reason, RunStatus};
use crate::domain::summary::RunSummary;
use std::collections::BTreeSet;

/// Whether the reports were delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum ReportStatus {
    /// All of them.
    #[default]
    Ok,
    /// Some in a reduced form: cut, or in another place.
    Degraded,
    /// None: GitHub has neither a check run nor a comment, and the step has no summary.
    Failed,
}

impl ReportStatus {
    /// The value of the output `report-status`.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// The values of outputs that are not in the summary.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OtherOutputs {
    /// Whether the reports were delivered.
    pub report_status: ReportStatus,
    /// Path of the HTML report, if there is one.
    pub report_path: Option<String>,
    /// The agent's last session.
    pub session_id: Option<String>,
    /// The agent's last message, redacted.
    pub final_message: Option<String>,
}

/// Maximum size in bytes of a list in one output, so that all outputs of a job stay far below 1 MB.
const LIST_BYTES: usize = 100_000;

/// The outputs in order. Unknown values are empty: an unknown cost is never `0`.
pub fn outputs(summary: &RunSummary, beyond: &OtherOutputs) -> Vec<(&'static str, String)> {
    let (totals, usage) = (&summary.totals, &summary.usage);
    let number = |n: Option<u64>| n.map_or_else(String::new, |n| n.to_string());
    let word = |text: Option<&String>| text.map_or_else(String::new, |text| text::line(text));
    let pull = summary.pull_request();
    let status = summary.status.map_or("", RunStatus::as_str);
    let reason = summary.reason.map_or("", Reason::as_str);
    let cost = usage.cost_usd.map(plain_dollars);
    let sandbox = summary.facts.sandbox.as_ref();
    let level = sandbox.map(|line| line.level.to_string());
    let output = summary.structured_output.as_ref().map(ToString::to_string);
    let message = beyond.final_message.as_deref().unwrap_or_default();
    vec![
        ("status", status.into()),
        ("reason", reason.into()),
        ("tasks-total", totals.tasks.to_string()),
        ("tasks-done", totals.done.to_string()),
        ("attempts", totals.attempts.to_string()),
        ("retries", totals.retries.to_string()),
        ("nudges", totals.nudges.to_string()),
        ("commits", list(&summary.commits)),
        ("head-sha", word(summary.head.as_ref())),
        ("branch", word(summary.facts.branch.as_ref())),
        ("changed-files", list(&summary.changed_files)),
        ("known-failures", list(&known_failures(summary))),
        ("pull-request-number", number(pull.map(|pull| pull.number))),
        ("pull-request-url", word(pull.map(|pull| &pull.url))),
        ("tokens-in", number(usage.tokens_in)),
        ("tokens-out", number(usage.tokens_out)),
        ("cost-usd", cost.unwrap_or_default()),
        ("run-dir", text::line(&summary.facts.run_dir)),
        ("report-path", word(beyond.report_path.as_ref())),
        ("sandbox-level", level.unwrap_or_default()),
        ("report-status", beyond.report_status.as_str().into()),
        ("summary", one_line(summary)),
        ("session-id", word(beyond.session_id.as_ref())),
        // Cut at its end.
        (
            "final-message",
            text::head_bytes(message, LIST_BYTES).trim_end().into(),
        ),
        ("structured-output", output.unwrap_or_default()),
        ("matrix", String::new()),
    ]
}

/// The outputs of a job in which no run starts, in the format of `GITHUB_OUTPUT`.
pub fn of_no_run(
    status: RunStatus,
    reason: Reason,
    why: &str,
    report_status: ReportStatus,
    delimiter: &str,
) -> String {
    let summary = RunSummary {
        status: Some(status),
        reason: Some(reason),
        ..RunSummary::default()
    };
    let beyond = OtherOutputs {
        report_status,
        ..OtherOutputs::default()
    };
    let mut values = outputs(&summary, &beyond);
    if let Some((_, value)) = values.iter_mut().find(|(name, _)| *name == "summary") {
        *value = format!("{}: {}", status.as_str(), text::line(why));
    }
    github_output(&values, delimiter)
}

/// The outputs in the format of `GITHUB_OUTPUT`. Each value ends with `delimiter`, which must be random. If a
/// value contains it nevertheless, a longer one is used for that value, so that no value can end early and
/// start another output.
pub fn github_output(outputs: &[(&'static str, String)], delimiter: &str) -> String {
    let outputs = outputs.iter().map(|(name, value)| {
        let delimiter = distinct(delimiter, value);
        format!("{name}<<{delimiter}\n{value}\n{delimiter}\n")
    });
    outputs.collect()
}

/// The result of the run in one line for a person.
pub fn one_line(summary: &RunSummary) -> String {
    if let Some(review) = summary.review_in_words() {
        return review;
    }
    let done = text::line(&summary.tasks_in_words());
    match (summary.status, summary.reason) {
        (Some(RunStatus::Answered), _) => format!("answered: {done}"),
        (Some(status), Some(reason)) => {
            format!("{} ({}): {done}", status.as_str(), reason.as_str())
        }
        _ => done,
    }
}

/// The failing tests of all tasks that also failed before the work, each once.
fn known_failures(summary: &RunSummary) -> Vec<String> {
    let tests = summary
        .tasks
        .iter()
        .flat_map(|task| &task.work.failing_tests);
    let known = tests.filter(|test| test.blame == Blame::WasRedBefore);
    let names: BTreeSet<String> = known.map(BlamedTest::name).collect();
    names.into_iter().collect()
}

/// Dollars as a plain number, rounded because sums of floating-point numbers have long fractions.
fn plain_dollars(usd: f64) -> String {
    let text = format!("{usd:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// One name per line. Line ends within names are removed, because they would make several names.
fn list(names: &[String]) -> String {
    let mut room = LIST_BYTES;
    let names = names.iter().map(|name| text::line(name));
    let names = names.take_while(|name| {
        let fits = name.len() < room;
        room = room.saturating_sub(name.len() + 1);
        fits
    });
    names.collect::<Vec<_>>().join("\n")
}

fn distinct(delimiter: &str, value: &str) -> String {
    let mut distinct = delimiter.to_owned();
    while value.contains(&distinct) {
        distinct.push('_');
    }
    distinct
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::samples;
    use proptest::prelude::*;

    /// Parses the file as `FileCommandManager` of the runner does.
    fn read(file: &str) -> Vec<(String, String)> {
        let mut lines = file.lines();
        let mut outputs = Vec::new();
        while let Some(line) = lines.next() {
            let (name, delimiter) = line.split_once("<<").unwrap();
            let value: Vec<&str> = lines
                .by_ref()
                .take_while(|line| *line != delimiter)
                .collect();
            outputs.push((name.to_owned(), value.join("\n")));
        }
        outputs
    }

    #[test]
    fn the_outputs_are_those_of_the_contract() {
        let contract = "status, reason, tasks-total, tasks-done, attempts, retries, nudges, \
            commits, head-sha, branch, changed-files, known-failures, pull-request-number, pull-request-url, \
            tokens-in, tokens-out, cost-usd, run-dir, report-path, sandbox-level, report-status, summary, session-id, final-message, structured-output, matrix";
        let all = outputs(&RunSummary::default(), &OtherOutputs::default());
        let names: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
        assert_eq!(names.join(", "), contract);
    }

    #[test]
    fn outputs_read_back_as_they_were() {
        let beyond = OtherOutputs {
            report_status: ReportStatus::Degraded,
            report_path: Some("/runs/1/report.html".into()),
            session_id: Some("0192".into()),
            final_message: Some("Done.\nAll of it.".into()),
        };
        let summary = RunSummary {
            push: Some(samples::pushed()),
            ..samples::partial()
        };
        let written = github_output(&outputs(&summary, &beyond), "EOF-1f3a");
        insta::assert_snapshot!(written.replace("<<EOF-1f3a", "").replace("EOF-1f3a\n", ""), @r"
        status
        partial
        reason
        verification_failed
        tasks-total
        3
        tasks-done
        1
        attempts
        3
        retries
        1
        nudges
        0
        commits
        9b1e44c0aa27d5f3b6e8c1907f5d2a3e4c6b8d90
        head-sha
        9b1e44c0aa27d5f3b6e8c1907f5d2a3e4c6b8d90
        branch
        feature/csv
        changed-files
        src/report.rs
        known-failures

        pull-request-number
        7
        pull-request-url
        https://example.invalid/pull/7
        tokens-in
        55200
        tokens-out
        6450
        cost-usd
        0.183
        run-dir
        /runs/01H-run
        report-path
        /runs/1/report.html
        sandbox-level

        report-status
        degraded
        summary
        partial (verification_failed): 1 of 3 tasks done, t2 failed
        session-id
        0192
        final-message
        Done.
        All of it.
        structured-output

        matrix

        ");
    }

    #[test]
    fn what_is_unknown_is_empty_and_never_zero() {
        let mut summary = samples::success();
        summary.usage = crate::domain::agent::Usage::default();
        let all = outputs(&summary, &OtherOutputs::default());
        let unknown: Vec<&str> = all
            .iter()
            .filter(|(_, value)| value.is_empty())
            .map(|(name, _)| *name)
            .collect();
        assert_eq!(
            unknown,
            [
                "known-failures",
                "pull-request-number",
                "pull-request-url",
                "tokens-in",
                "tokens-out",
                "cost-usd",
                "report-path",
                "sandbox-level",
                "session-id",
                "final-message",
                "structured-output",
                "matrix"
            ]
        );
    }

    #[test]
    fn a_cost_is_a_plain_number() {
        let shown = [0.1 + 0.2, 0.0, 2.0, 10.0, 0.000_25, 1e-9].map(plain_dollars);
        assert_eq!(shown, ["0.3", "0", "2", "10", "0.00025", "0"]);
    }

    proptest! {
        #[test]
        fn no_value_injects_an_output(value in "[a-zDE\\n<=]{0,40}", names in proptest::collection::vec("[a-zD\\n\\r]{0,9}", 0..5)) {
            let pairs = [("summary", value.trim_end_matches('\n').to_owned()), ("changed-files", list(&names))];
            let back = read(&github_output(&pairs, "D"));
            let expected: Vec<(String, String)> =
                pairs.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
            prop_assert_eq!(back, expected);
        }
    }
}
