//! Estimates an upper bound of the number of tokens in a text.
//!
//! Vocabularies are megabytes in size, and most of them are not public. The number of tokens can be estimated
//! well enough from adjacent kinds of characters: a vocabulary has one entry for a common word with its
//! leading space, none that spans a word and the number after it, and no long ones for random text. Each
//! character is therefore given a cost that depends on its kind and on the kind before it.
//!
//! The costs come from a linear quantile regression (98th percentile) on real texts, against the greater
//! count of the vocabularies `o200k_base` and `cl100k_base`, rounded up. `scripts/measure-tokens` measures
//! the accuracy, which `tests/evidence/tokens.md` records.

/// A kind of character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Lower,
    Upper,
    Digit,
    Space,
    LineEnd,
    Tab,
    Sign,
    Latin,
    Greek,
    Cyrillic,
    Kana,
    Han,
    Hangul,
    Other,
    Rare,
}

impl Kind {
    fn of(c: char) -> Self {
        match c {
            'a'..='z' => Self::Lower,
            'A'..='Z' => Self::Upper,
            '0'..='9' => Self::Digit,
            ' ' => Self::Space,
            '\n' | '\r' => Self::LineEnd,
            '\t' => Self::Tab,
            '\0'..='\u{7f}' => Self::Sign,
            '\u{80}'..='\u{24f}' | '\u{1e00}'..='\u{1eff}' => Self::Latin,
            '\u{370}'..='\u{3ff}' => Self::Greek,
            '\u{400}'..='\u{52f}' => Self::Cyrillic,
            '\u{3040}'..='\u{30ff}' => Self::Kana,
            '\u{4e00}'..='\u{9fff}' => Self::Han,
            '\u{ac00}'..='\u{d7af}' => Self::Hangul,
            '\u{10000}'.. => Self::Rare,
            _ => Self::Other,
        }
    }

    /// The cost of a character of this kind after one of kind `before`, in thousandths of a token.
    fn cost(self, before: Option<Self>) -> usize {
        use Kind as K;
        match (self, before) {
            (K::Lower, Some(K::Lower)) => 60,
            (K::Lower, Some(K::Upper)) => 350,
            (K::Lower, Some(K::Space)) => 200,
            (K::Lower, Some(K::Digit)) => 260,
            (K::Lower, _) => 770,
            (K::Upper, Some(K::Upper)) => 610,
            (K::Upper, Some(K::Space)) => 500,
            (K::Upper, Some(K::Lower)) => 1_050,
            (K::Upper, Some(K::Digit)) => 1_600,
            (K::Upper, Some(_)) => 560,
            (K::Digit, Some(K::Digit)) => 280,
            (K::Digit, _) => 1_600,
            (K::Space, Some(K::Space)) => 45,
            (K::Space, Some(K::LineEnd)) => 960,
            (K::Space, Some(_)) => 570,
            (K::LineEnd, Some(K::LineEnd)) => 110,
            (K::LineEnd, Some(K::Sign)) => 200,
            (K::LineEnd, _) => 2_250,
            (K::Tab, Some(K::Tab)) => 100,
            (K::Tab, _) => 1_030,
            (K::Sign, Some(K::Sign)) => 330,
            (K::Sign, Some(K::Lower | K::Upper | K::Digit | K::Space)) => 600,
            (K::Sign, _) => 1_300,
            // The first character has the maximum cost of its kind, so that two texts separately cost at
            // least as much as together.
            (K::Upper, None) => 1_600,
            (K::Space, None) => 960,
            (K::Latin, _) => 2_400,
            (K::Greek, _) => 970,
            (K::Cyrillic, _) => 500,
            (K::Kana, _) => 750,
            (K::Han, _) => 1_300,
            (K::Hangul, _) => 1_000,
            (K::Other, _) => 1_500,
            (K::Rare, _) => 3_600,
        }
    }
}

/// The length of a run of lower-case letters beyond which it is not a word of any language: random text is
/// split into pieces of two or three letters.
const MAX_WORD_CHARS: usize = 18;

/// The cost of each further letter in such a run, in thousandths of a token.
const RANDOM: usize = 500;

/// Estimates the number of tokens in a text: on real texts, the estimate is hardly ever too low.
///
/// A longer text never has a lower estimate, and the estimate of two joined texts hardly exceeds their sum.
pub fn estimate(text: &str) -> usize {
    let mut before = None;
    let mut run = 0;
    let mut cost: usize = 0;
    for c in text.chars() {
        let kind = Kind::of(c);
        run = if before == Some(kind) { run + 1 } else { 1 };
        let random = kind == Kind::Lower && run > MAX_WORD_CHARS;
        cost = cost.saturating_add(if random { RANDOM } else { kind.cost(before) });
        before = Some(kind);
    }
    cost.div_ceil(1_000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Texts with their true counts: the greater of `o200k_base` and `cl100k_base`.
    const KNOWN: &[(&str, usize)] = &[
        ("", 0),
        (
            "fn main() {\n    let total = values.iter().sum::<u64>();\n    println!(\"{total}\");\n}\n",
            22,
        ),
        (
            "def mean(values):\n    return sum(values) / (len(values) - 1)\n",
            18,
        ),
        (
            "{\"path\": \"src/main.rs\", \"start\": 12, \"end\": 48}",
            20,
        ),
        (
            "error[E0382]: borrow of moved value: `names`\n  --> src/main.rs:14:22\n",
            23,
        ),
        (
            "Look at what you need, then edit. Read a file before you edit it.",
            17,
        ),
        (
            "!function(e,t){\"object\"==typeof exports?module.exports=t():e.x=t()}(this);",
            22,
        ),
        ("H4sIAAAAAAAAA+1YbW/bNhD+7l9xdT8kKWzJkuW3", 27),
        ("9f86d081884c7d659a2feaa0c55ad015a3bf4f1b", 26),
        ("请在提交之前运行所有测试，并修复失败的测试。", 16),
        (
            "Пожалуйста, запустите все тесты перед отправкой изменений.",
            21,
        ),
        ("コミットする前にすべてのテストを実行してください。", 21),
    ];

    #[test]
    fn known_texts_are_not_taken_for_too_little_nor_for_far_too_much() {
        for (text, tokens) in KNOWN {
            let estimated = estimate(text);
            assert!(
                estimated * 100 >= tokens * 95 && estimated * 100 <= tokens * 190,
                "{estimated} for {tokens}: {text}"
            );
        }
    }

    #[test]
    fn letters_in_a_row_that_are_no_word_are_taken_for_what_they_are() {
        // 24 tokens per repetition.
        let bases = "acgtacgttgcaatcgggctaacgtagctagctagcatcgatcga".repeat(10);
        let estimated = estimate(&bases);
        assert!((210..=260).contains(&estimated), "{estimated}");
    }

    fn text() -> impl Strategy<Value = String> {
        prop_oneof![
            "[a-z A-Z0-9\n\t(){};=_.]{0,80}",
            "[a-z]{0,60}",
            "(let |x1 = |\r\n|   |über|你好|привет|🙂|\"|--){0,20}",
            any::<String>(),
        ]
    }

    /// The maximum additional cost when a run is joined in the middle of a word.
    const JOINED: usize = 1 + MAX_WORD_CHARS * RANDOM / 1_000;

    proptest! {
        #[test]
        fn more_text_never_takes_less(one in text(), two in text()) {
            let both = format!("{one}{two}");
            prop_assert!(estimate(&both) >= estimate(&one));
        }

        #[test]
        fn texts_together_take_hardly_more_than_apart(one in text(), two in text()) {
            let apart = estimate(&one) + estimate(&two);
            let both = format!("{one}{two}");
            prop_assert!(estimate(&both) <= apart + JOINED);
        }

        #[test]
        fn a_text_takes_something_and_at_most_four_tokens_a_character(text in text()) {
            prop_assert_eq!(estimate(&text) == 0, text.is_empty());
            prop_assert!(estimate(&text) <= 4 * text.chars().count());
        }
    }
}
