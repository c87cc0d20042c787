//! Compares texts by their words.

use std::collections::BTreeSet;

/// The maximum number of words of a text that are compared.
const MAX_WORDS: usize = 2_000;

/// The words of a text, in lower case and without punctuation.
pub(super) fn words(text: &str) -> BTreeSet<String> {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .take(MAX_WORDS)
        .map(str::to_lowercase)
        .collect()
}

/// The similarity of two sets in percent: the size of the intersection divided by the size of the union (the
/// Jaccard index). It is 0 for two empty sets.
pub(super) fn likeness(a: &BTreeSet<String>, b: &BTreeSet<String>) -> usize {
    let shared = a.intersection(b).count();
    let all = a.len() + b.len() - shared;
    (shared * 100).checked_div(all).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{likeness, words};

    #[test]
    fn likeness_is_what_is_shared_of_everything() {
        let of = |a, b| likeness(&words(a), &words(b));
        assert_eq!(of("Add the parser.", "add THE parser"), 100);
        assert_eq!(of("a b c", "b c d"), 50);
        assert_eq!(of("a", "b"), 0);
        assert_eq!(of("", "  …"), 0);
    }
}
