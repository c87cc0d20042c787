//! Durations in their usual notation: `90s`, `10m`, `1h30m`.

use crate::pattern::Pattern;
use std::time::Duration;

/// The input that [`parse`] accepts, for messages.
pub const EXPECTED: &str = "a duration such as 90s, 10m or 1h30m";

/// The maximum duration: 30 days.
const MAX_DURATION: Duration = Duration::from_secs(30 * 24 * 3600);

/// The notation, except for a plain number of seconds.
pub(crate) static NOTATION: Pattern =
    Pattern::new("^([0-9]+d)?([0-9]+h)?([0-9]+(m|min))?([0-9]+s)?([0-9]+ms)?$");

/// The units, each with its group in the notation and its size in milliseconds.
const UNITS: [(&str, usize, u64); 5] = [
    ("d", 1, 24 * 3_600_000),
    ("h", 2, 3_600_000),
    ("m", 3, 60_000),
    ("s", 5, 1000),
    ("ms", 6, 1),
];

/// Reads `1h30m`, `10m`, `90s`, `500ms`, `1d`, or a plain number of seconds. Units are in descending order
/// and appear once, each after a whole number, without blanks or signs.
///
/// # Errors
/// A fragment that names the expected input.
pub fn parse(text: &str) -> Result<Duration, String> {
    let given: String = text.chars().take(40).collect();
    let expected = || format!("must be {EXPECTED}, got `{given}`");
    let total = if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        text.parse().ok().map(Duration::from_secs)
    } else {
        let found = NOTATION.captures(text).filter(|_| !text.is_empty());
        let found = found.ok_or_else(expected)?;
        UNITS
            .iter()
            .try_fold(Duration::ZERO, |total, (_, group, size)| {
                let part = found.get(*group).map_or("0", |part| part.as_str());
                let number = part.trim_end_matches(|c: char| c.is_ascii_alphabetic());
                let number = number.parse::<u64>().ok()?.checked_mul(*size)?;
                total.checked_add(Duration::from_millis(number))
            })
    };
    let total = total.filter(|total| *total <= MAX_DURATION);
    total.ok_or_else(|| format!("must be at most 30 days, got `{given}`"))
}

/// The whole milliseconds of a duration, at most `u64::MAX`.
pub fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Writes a duration in the notation of [`parse`], down to milliseconds: `1h30m`, `0s`.
pub fn format(duration: Duration) -> String {
    let mut rest = millis(duration);
    let mut text = String::new();
    for (unit, _, size) in UNITS {
        let count = rest / size;
        rest %= size;
        if count > 0 {
            text.push_str(&format!("{count}{unit}"));
        }
    }
    if text.is_empty() {
        text.push_str("0s");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_documented_form_is_read() {
        for (text, seconds) in [
            ("90s", 90),
            ("10m", 600),
            ("10min", 600),
            ("1h30m", 5400),
            ("1d2h3m4s", 93_784),
            ("45", 45),
            ("0", 0),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        assert_eq!(parse("1s500ms"), Ok(Duration::from_millis(1500)));
    }

    #[test]
    fn anything_else_says_what_was_expected() {
        for text in [
            "", "10 m", "-5m", "+5m", "1.5h", "m", "5x", "10m5h", "5m5m", "1h30", "ä", "5mé",
        ] {
            let expected = format!("must be {EXPECTED}, got `{text}`");
            assert_eq!(parse(text), Err(expected), "{text}");
        }
    }

    #[test]
    fn more_than_thirty_days_is_refused() {
        for text in [
            "31d",
            "99999999999999999999",
            "99999999999999999999h",
            "30d1ms",
        ] {
            let expected = format!("must be at most 30 days, got `{text}`");
            assert_eq!(parse(text), Err(expected), "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(ms in 0_u64..=30 * 24 * 3_600_000) {
            let duration = Duration::from_millis(ms);
            prop_assert_eq!(parse(&format(duration)), Ok(duration));
        }

        #[test]
        fn no_text_panics(text in "\\PC{0,12}") {
            if let Ok(duration) = parse(&text) {
                prop_assert!(duration <= MAX_DURATION);
            }
        }
    }
}
