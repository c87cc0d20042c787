//! Limits the length of text: whatever an agent prints, an event stays small enough to log and to send.

/// Maximum length in characters of a one-line summary of a tool call.
const SUMMARY_CHARS: usize = 200;

pub(super) use crate::domain::api_error::ERROR_CHARS;
use crate::domain::text;
pub(super) use crate::domain::text::{EXCERPT_CHARS, excerpt};

/// `text` as one line for a person, within [`SUMMARY_CHARS`].
pub(super) fn one_line(text: &str) -> String {
    text::one_line(text, SUMMARY_CHARS)
}

/// `text` if it has at most `max` characters, otherwise its first `max - 1` and an ellipsis.
pub(super) fn cut(text: &str, max: usize) -> String {
    text::cap_chars(text, max).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_summary_is_one_line() {
        assert_eq!(one_line("  cat <<'E'\n\ta\tb\r\nE\n"), "cat <<'E' a b E");
        assert_eq!(one_line(&"é".repeat(300)), format!("{}…", "é".repeat(199)));
    }

    #[test]
    fn an_excerpt_keeps_lines_and_loses_only_what_is_too_much() {
        assert_eq!(excerpt("a\n  b\n\n"), "a\n  b");
        assert_eq!(cut("abcd", 4), "abcd");
        assert_eq!(cut("abcde", 4), "abc…");
        assert_eq!(cut("abcde", 0), "", "never more than was asked for");
    }

    proptest! {
        #[test]
        fn summaries_are_bounded(text in "\\PC{0,900}") {
            let line = one_line(&text);
            prop_assert!(line.chars().count() <= SUMMARY_CHARS);
            prop_assert!(!line.contains('\n'));
        }
    }
}
