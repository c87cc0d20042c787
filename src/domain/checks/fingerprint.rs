//! Compares a failure with an earlier one.

use super::check::CheckOutcome;
use super::{blocks, normalise, reading};
use crate::text;
use std::collections::BTreeSet;

/// The number of lines that count at each end of an output without a known form.
const SIDE: usize = 2_000;

/// The fingerprint of one failed check. Ids, times, durations, addresses, temporary paths, line numbers and
/// the order of lines do not count. If the failed tests are known, their names and messages count; otherwise
/// the whole output does.
pub fn check_fingerprint(name: &str, outcome: &CheckOutcome, output: &str) -> String {
    let plain = text::plain(output);
    let lines: Vec<&str> = plain.lines().collect();
    let failing = reading::names_in(&lines);
    let material: BTreeSet<String> = if failing.is_empty() {
        sides(&lines).filter_map(normalise::line).collect()
    } else {
        let said = blocks::find(&lines).into_iter().flat_map(|block| {
            lines
                .get(block)
                .unwrap_or_default()
                .iter()
                .filter_map(|line| normalise::line(line))
        });
        let named = failing
            .iter()
            .map(|name| format!("test {}", normalised_name(name)));
        said.chain(named).collect()
    };
    let mut hasher = blake3::Hasher::new();
    field(&mut hasher, name);
    field(&mut hasher, &kind(outcome));
    for line in &material {
        field(&mut hasher, line);
    }
    digest(&hasher)
}

/// One fingerprint for the fingerprints of several checks, in order.
pub fn combined<'a>(each: impl Iterator<Item = &'a str>) -> String {
    let mut hasher = blake3::Hasher::new();
    each.for_each(|one| field(&mut hasher, one));
    digest(&hasher)
}

fn normalised_name(name: &str) -> String {
    normalise::line(name).unwrap_or_else(|| name.to_owned())
}

fn sides<'a>(lines: &'a [&'a str]) -> impl Iterator<Item = &'a str> {
    let tail = lines.len().saturating_sub(SIDE).max(SIDE);
    lines
        .iter()
        .take(SIDE)
        .chain(lines.iter().skip(tail))
        .copied()
}

/// How the check ended, without durations.
fn kind(outcome: &CheckOutcome) -> String {
    match outcome {
        CheckOutcome::Passed => "passed".to_owned(),
        CheckOutcome::Failed { exit } => format!("exit {exit}"),
        CheckOutcome::Signalled { signal } => format!("signal {signal}"),
        CheckOutcome::TimedOut { .. } => "timed out".to_owned(),
        CheckOutcome::NotStarted { why, .. } => format!("not started: {why}"),
        CheckOutcome::Aborted => "aborted".to_owned(),
        CheckOutcome::Skipped { .. } => "skipped".to_owned(),
    }
}

/// The length comes first, so that different lists of fields never hash the same bytes.
fn field(hasher: &mut blake3::Hasher, text: &str) {
    hasher.update(&(text.len() as u64).to_le_bytes());
    hasher.update(text.as_bytes());
}

fn digest(hasher: &blake3::Hasher) -> String {
    hasher.finalize().to_hex().chars().take(32).collect()
}
