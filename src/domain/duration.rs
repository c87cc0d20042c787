//! Durations in their usual notation: `90s`, `10m`, `1h30m`.

use std::time::Duration;

/// The input that [`parse`] accepts, for messages.
pub const EXPECTED: &str = "a duration such as 90s, 10m or 1h30m";

/// The maximum duration: 30 days.
const MAX_DURATION: Duration = Duration::from_secs(30 * 24 * 3600);

/// Reads `1h30m`, `10m`, `90s`, `500ms`, `1d`, or a plain number of seconds. Units are in descending order
/// and appear once, each after a whole number, without blanks or signs.
///
/// # Errors
/// A fragment that names the expected input.
pub fn parse(text: &str) -> Result<Duration, String> {
    let expected = || format!("must be {EXPECTED}, got `{}`", shortened(text));
    let too_long = || format!("must be at most 30 days, got `{}`", shortened(text));
    if text.is_empty() {
        return Err(expected());
    }
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        let seconds = text.parse().map_err(|_| too_long())?;
        return within(Duration::from_secs(seconds)).ok_or_else(too_long);
    }
    let mut total = Duration::ZERO;
    let mut finest = u64::MAX;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let unit_length = rest[digits..]
            .bytes()
            .take_while(u8::is_ascii_alphabetic)
            .count();
        let (number, unit) = (&rest[..digits], &rest[digits..digits + unit_length]);
        let milliseconds = unit_in_ms(unit).filter(|&ms| ms < finest && digits > 0);
        let Some(milliseconds) = milliseconds else {
            return Err(expected());
        };
        finest = milliseconds;
        let part = number
            .parse::<u64>()
            .ok()
            .and_then(|n| n.checked_mul(milliseconds));
        total = part
            .and_then(|ms| total.checked_add(Duration::from_millis(ms)))
            .and_then(within)
            .ok_or_else(too_long)?;
        rest = &rest[digits + unit_length..];
    }
    Ok(total)
}

/// The whole milliseconds of a duration, at most `u64::MAX`.
pub fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Writes a duration in the notation of [`parse`], down to milliseconds: `1h30m`, `0s`.
pub fn format(duration: Duration) -> String {
    let mut rest = millis(duration);
    let mut text = String::new();
    for unit in ["d", "h", "m", "s", "ms"] {
        let size = unit_in_ms(unit).unwrap_or(1);
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

fn unit_in_ms(unit: &str) -> Option<u64> {
    match unit {
        "d" => Some(24 * 3_600_000),
        "h" => Some(3_600_000),
        "m" | "min" => Some(60_000),
        "s" => Some(1000),
        "ms" => Some(1),
        _ => None,
    }
}

fn within(duration: Duration) -> Option<Duration> {
    (duration <= MAX_DURATION).then_some(duration)
}

fn shortened(text: &str) -> String {
    text.chars().take(40).collect()
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
