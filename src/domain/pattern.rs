//! Regular expressions written as constants.

use regex::{Captures, Regex, RegexBuilder, Replacer};
use std::borrow::Cow;
use std::ops::Range;
use std::sync::OnceLock;

/// A regular expression in a `static`, compiled at its first use.
///
/// An invalid expression matches nothing. Every pattern is covered by a test of its user, so a mistake shows
/// up there and never as a panic in a run.
pub(crate) struct Pattern {
    source: &'static str,
    is_multi_line: bool,
    compiled: OnceLock<Option<Regex>>,
}

impl Pattern {
    /// A pattern with this source.
    pub(crate) const fn new(source: &'static str) -> Self {
        Self {
            source,
            is_multi_line: false,
            compiled: OnceLock::new(),
        }
    }

    /// A pattern with this source, whose `^` and `$` match at line ends.
    pub(crate) const fn of_lines(source: &'static str) -> Self {
        Self {
            source,
            is_multi_line: true,
            compiled: OnceLock::new(),
        }
    }

    /// Whether it occurs in `text`.
    pub(crate) fn is_match(&self, text: &str) -> bool {
        self.regex().is_some_and(|regex| regex.is_match(text))
    }

    /// Its first occurrence in `text`.
    pub(crate) fn captures<'t>(&self, text: &'t str) -> Option<Captures<'t>> {
        self.regex()?.captures(text)
    }

    /// All its occurrences in `text`, in order.
    pub(crate) fn captures_iter<'t>(&self, text: &'t str) -> impl Iterator<Item = Captures<'t>> {
        let found = self.regex().map(|regex| regex.captures_iter(text));
        found.into_iter().flatten()
    }

    /// The lines in which it occurs: the index of each, and its first occurrence there.
    pub(crate) fn in_lines<'t>(
        &self,
        lines: &[&'t str],
    ) -> impl Iterator<Item = (usize, Captures<'t>)> {
        let lines = lines.iter().enumerate();
        lines.filter_map(|(at, line)| Some((at, self.captures(line)?)))
    }

    /// The range of the first match at or behind `start`.
    pub(crate) fn find_at(&self, text: &str, start: usize) -> Option<Range<usize>> {
        self.regex()?
            .find_at(text, start)
            .map(|found| found.range())
    }

    /// `text` with every occurrence replaced.
    pub(crate) fn replace_all<'t>(&self, text: &'t str, by: impl Replacer) -> Cow<'t, str> {
        match self.regex() {
            Some(regex) => regex.replace_all(text, by),
            None => Cow::Borrowed(text),
        }
    }

    fn regex(&self) -> Option<&Regex> {
        self.compiled
            .get_or_init(|| {
                let mut builder = RegexBuilder::new(self.source);
                builder.multi_line(self.is_multi_line).build().ok()
            })
            .as_ref()
    }
}

/// The text of a group; empty if the group is not part of the match.
pub(crate) fn group<'t>(captures: &Captures<'t>, index: usize) -> &'t str {
    captures.get(index).map_or("", |found| found.as_str())
}

#[cfg(test)]
mod tests {
    use super::{Pattern, group};

    #[test]
    fn a_pattern_matches_captures_and_replaces() {
        static DIGITS: Pattern = Pattern::new(r"(\d)(x)?");
        let found = DIGITS
            .captures("a1b")
            .map(|it| (group(&it, 1), group(&it, 2)));
        assert_eq!(found, Some(("1", "")));
        assert_eq!(DIGITS.replace_all("a1b2x", "#"), "a#b#");
    }

    #[test]
    fn a_broken_pattern_matches_nothing() {
        static BROKEN: Pattern = Pattern::new("(");
        assert!(!BROKEN.is_match("("));
        assert_eq!(BROKEN.replace_all("(", "x"), "(");
    }
}
