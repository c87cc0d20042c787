//! Reduces the log of a failed GitHub Actions job to the failure.

use super::{head, tail};
use crate::pattern::Pattern;
use crate::text;

/// The maximum number of bytes read from the end of a log: GitHub's logs have no size limit.
const MAX_LOG_BYTES: usize = 8 * 1024 * 1024;

/// The failed step of a job's log: its first line and its end, without time stamps, escape sequences and the
/// runner's markers, in at most `budget` bytes. If no step reports a failure, the end of the log.
pub fn failed_step(log: &str, budget: usize) -> String {
    let log = tail(log, MAX_LOG_BYTES).trim_start_matches('\u{feff}');
    let log = text::plain(log);
    let lines: Vec<&str> = log.lines().map(without_time).collect();
    let last = |lines: &[&str], begin: &str| lines.iter().rposition(|line| line.starts_with(begin));
    let exit = last(&lines, "##[error]Process completed with exit code");
    let end = exit.or_else(|| last(&lines, "##[error]"));
    let upto = &lines[..end.map_or(lines.len(), |end| end + 1)];
    let begin = end.and_then(|_| last(upto, "##[group]Run "));
    let step = &upto[begin.unwrap_or_default()..];
    let shown: Vec<String> = step.iter().filter_map(|line| shown(line)).collect();
    let shown = shown.join("\n");
    fit(shown.trim(), budget)
}

/// GitHub writes `2024-05-01T10:00:00.1234567Z ` before each line.
fn without_time(line: &str) -> &str {
    static TIME: Pattern = Pattern::new("^[0-9-]{10}T[0-9:.]{8,}Z(?: |$)");
    TIME.find_at(line, 0).map_or(line, |time| &line[time.end..])
}

/// A line without the runner's markers; `None` for a line that consists only of them.
fn shown(line: &str) -> Option<String> {
    let marker = line.strip_prefix("##[");
    let Some((kind, rest)) = marker.and_then(|marker| marker.split_once(']')) else {
        return Some(line.to_owned());
    };
    match kind {
        "endgroup" | "debug" => None,
        "error" | "warning" | "notice" => Some(format!("{kind}: {rest}")),
        "group" | "command" | "section" => Some(rest.to_owned()),
        _ => Some(line.to_owned()),
    }
}

/// The first line, and as many of the last lines as fit.
fn fit(step: &str, budget: usize) -> String {
    if step.len() <= budget {
        return step.to_owned();
    }
    let (first, rest) = step.split_once('\n').unwrap_or(("", step));
    let first = head(first, budget / 8);
    let room = budget.saturating_sub(first.len() + 48);
    let kept = tail(rest, room);
    let whole = kept.split_once('\n').map_or(kept, |(_, whole)| whole);
    let lost = rest.lines().count().saturating_sub(whole.lines().count());
    let cut = format!("{first}\n[{lost} lines left out]\n{whole}");
    head(cut.trim_start(), budget).to_owned()
}

#[cfg(test)]
mod tests {
    use super::failed_step;
    use proptest::prelude::*;

    const LOG: &str = "\u{feff}2024-05-01T10:00:00.1234567Z ##[group]Run actions/checkout@v4\n\
        2024-05-01T10:00:00.2234567Z ##[endgroup]\n\
        2024-05-01T10:00:01.1234567Z fetched\n\
        2024-05-01T10:00:02.1234567Z ##[group]Run cargo test\n\
        2024-05-01T10:00:02.1234567Z \u{1b}[36;1mcargo test\u{1b}[0m\n\
        2024-05-01T10:00:02.2234567Z shell: /usr/bin/bash -e {0}\n\
        2024-05-01T10:00:02.3234567Z ##[endgroup]\n\
        2024-05-01T10:00:03.1234567Z test a ... \u{1b}[31mFAILED\u{1b}[0m\n\
        2024-05-01T10:00:03.1234567Z\n\
        2024-05-01T10:00:04.1234567Z ##[error]Process completed with exit code 101.\n\
        2024-05-01T10:00:05.1234567Z Post job cleanup.\n";

    #[test]
    fn the_failing_step_is_told() {
        insta::assert_snapshot!(failed_step(LOG, 1_000), @"
        Run cargo test
        cargo test
        shell: /usr/bin/bash -e {0}
        test a ... FAILED

        error: Process completed with exit code 101.
        ");
        assert_eq!(failed_step("only\ntext\n", 100), "only\ntext");
        assert_eq!(failed_step("", 100), "");
    }

    #[test]
    fn the_end_is_kept() {
        let lines: String = (0..1_000)
            .map(|n| format!("2024-05-01T10:00:00.1234567Z line {n}\n"))
            .collect();
        let log =
            format!("##[group]Run make\n{lines}##[error]Process completed with exit code 2.\nrest");
        let step = failed_step(&log, 200);
        assert!(
            step.len() <= 200 && step.starts_with("Run make\n["),
            "{step}"
        );
        assert!(
            step.ends_with("line 999\nerror: Process completed with exit code 2."),
            "{step}"
        );
    }

    proptest! {
        #[test]
        fn any_log_fits(log in "(##\\[(group|error)\\]|Run |Process completed with exit code 1|\n|\r|\\PC)*", budget in 0usize..300) {
            prop_assert!(failed_step(&log, budget).len() <= budget);
        }
    }
}
