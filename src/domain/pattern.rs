//! Regular expressions written as constants.

use regex::{Captures, Regex, RegexBuilder, Replacer};
use std::borrow::Cow;
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes of text that are examined without the expression before it is compiled for the others. Compiling takes
/// about as long as a few simple searches in so much text.
const WITHOUT_COMPILING: usize = 256 * 1024;

/// A regular expression in a `static`, compiled at its first use.
///
/// An invalid expression matches nothing. Every pattern is covered by a test of its user, so a mistake shows
/// up there and never as a panic in a run.
pub struct Pattern {
    source: &'static str,
    is_multi_line: bool,
    may_match: Option<fn(&str) -> bool>,
    /// Bytes of text that were examined by `may_match`.
    examined: AtomicUsize,
    compiled: OnceLock<Option<Regex>>,
}

impl std::fmt::Debug for Pattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.source)
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}

impl Eq for Pattern {}

impl Pattern {
    /// A pattern with this source.
    pub const fn new(source: &'static str) -> Self {
        Self::of(source, false, None)
    }

    /// A pattern with this source, whose `^` and `$` match at line ends.
    pub const fn of_lines(source: &'static str) -> Self {
        Self::of(source, true, None)
    }

    /// A pattern with this source, which does not occur in a text that `may_match` refuses. As long as all texts are
    /// short and refused, the expression is not compiled: that takes longer than everything else in a short run.
    pub const fn only_if(source: &'static str, may_match: fn(&str) -> bool) -> Self {
        Self::of(source, false, Some(may_match))
    }

    const fn of(
        source: &'static str,
        is_multi_line: bool,
        may_match: Option<fn(&str) -> bool>,
    ) -> Self {
        Self {
            source,
            is_multi_line,
            may_match,
            examined: AtomicUsize::new(0),
            compiled: OnceLock::new(),
        }
    }

    /// The expression as it is written.
    pub const fn source(&self) -> &'static str {
        self.source
    }

    /// Whether it occurs in `text`.
    pub fn is_match(&self, text: &str) -> bool {
        self.regex(text).is_some_and(|regex| regex.is_match(text))
    }

    /// Its first occurrence in `text`.
    pub fn captures<'t>(&self, text: &'t str) -> Option<Captures<'t>> {
        self.regex(text)?.captures(text)
    }

    /// All its occurrences in `text`, in order.
    pub fn captures_iter<'t>(&self, text: &'t str) -> impl Iterator<Item = Captures<'t>> {
        let found = self.regex(text).map(|regex| regex.captures_iter(text));
        found.into_iter().flatten()
    }

    /// The lines in which it occurs: the index of each, and its first occurrence there.
    pub fn in_lines<'t>(&self, lines: &[&'t str]) -> impl Iterator<Item = (usize, Captures<'t>)> {
        let lines = lines.iter().enumerate();
        lines.filter_map(|(at, line)| Some((at, self.captures(line)?)))
    }

    /// The range of the first match at or behind `start`.
    pub fn find_at(&self, text: &str, start: usize) -> Option<Range<usize>> {
        self.regex(text)?
            .find_at(text, start)
            .map(|found| found.range())
    }

    /// `text` with every occurrence replaced.
    pub fn replace_all<'t>(&self, text: &'t str, by: impl Replacer) -> Cow<'t, str> {
        match self.regex(text) {
            Some(regex) => regex.replace_all(text, by),
            None => Cow::Borrowed(text),
        }
    }

    /// The compiled expression; `None` if it cannot occur in `text`.
    fn regex(&self, text: &str) -> Option<&Regex> {
        if let (None, Some(may_match)) = (self.compiled.get(), self.may_match) {
            let examined = self.examined.fetch_add(text.len(), Ordering::Relaxed);
            if examined < WITHOUT_COMPILING && !may_match(text) {
                return None;
            }
        }
        self.compiled
            .get_or_init(|| {
                let mut builder = RegexBuilder::new(self.source);
                builder.multi_line(self.is_multi_line).build().ok()
            })
            .as_ref()
    }
}

/// The text of a group; empty if the group is not part of the match.
pub fn group<'t>(captures: &Captures<'t>, index: usize) -> &'t str {
    captures.get(index).map_or("", |found| found.as_str())
}

#[cfg(test)]
pub(crate) use tests::of_three_words;

#[cfg(test)]
mod tests {
    use super::{Pattern, WITHOUT_COMPILING, group};

    /// All texts of one, two or three of these words.
    pub(crate) fn of_three_words(words: &[&str]) -> impl Iterator<Item = String> {
        let none_or_one = || std::iter::once("").chain(words.iter().copied());
        let two = words
            .iter()
            .flat_map(move |one| none_or_one().map(move |other| format!("{one}{other}")));
        two.flat_map(move |two| none_or_one().map(move |last| format!("{two}{last}")))
    }

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
    fn a_condition_saves_compiling_for_short_texts_and_changes_no_result() {
        static LETTER: Pattern = Pattern::only_if("b", |text| text.contains('b'));
        assert!(!LETTER.is_match("a"));
        assert!(LETTER.compiled.get().is_none());
        assert!(LETTER.is_match("ab"));
        assert!(!LETTER.is_match("a"));
        static REFUSED: Pattern = Pattern::only_if("b", |_| false);
        let long = "b".repeat(WITHOUT_COMPILING);
        assert!(!REFUSED.is_match(&long));
        assert!(REFUSED.is_match(&long));
    }

    #[test]
    fn a_broken_pattern_matches_nothing() {
        static BROKEN: Pattern = Pattern::new("(");
        assert!(!BROKEN.is_match("("));
        assert_eq!(BROKEN.replace_all("(", "x"), "(");
    }
}
