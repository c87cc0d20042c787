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
        let blocks = blocks::find(&lines).into_iter();
        let said = blocks.flat_map(|block| lines.get(block).unwrap_or_default());
        let said = said.filter_map(|line| normalise::line(line));
        let named = failing
            .iter()
            .map(|name| format!("test {}", normalised_name(name)));
        said.chain(named).collect()
    };
    // How it ended, without durations.
    let end = match outcome {
        CheckOutcome::TimedOut { .. } => "timed out".to_owned(),
        other => other.to_string(),
    };
    let all = [name, &end].into_iter();
    combined(all.chain(material.iter().map(String::as_str)))
}

/// One fingerprint for the fingerprints of several checks, in order.
pub fn combined<'a>(each: impl Iterator<Item = &'a str>) -> String {
    let mut hasher = blake3::Hasher::new();
    each.for_each(|one| field(&mut hasher, one));
    hasher.finalize().to_hex().chars().take(32).collect()
}

fn normalised_name(name: &str) -> String {
    normalise::line(name).unwrap_or_else(|| name.to_owned())
}

fn sides<'a>(lines: &'a [&'a str]) -> impl Iterator<Item = &'a str> {
    let tail = lines.len().saturating_sub(SIDE).max(SIDE);
    let (start, end) = (lines.iter().take(SIDE), lines.iter().skip(tail));
    start.chain(end).copied()
}

/// The length comes first, so that different lists of fields never hash the same bytes.
fn field(hasher: &mut blake3::Hasher, text: &str) {
    hasher.update(&(text.len() as u64).to_le_bytes());
    hasher.update(text.as_bytes());
}
