//! Cleans foreign text for display, and formats values that every report shows in the same way.

pub use crate::domain::spend::dollars;
pub use crate::domain::text::{count, is_invisible, some_of};
use std::borrow::Cow;
use unicode_width::UnicodeWidthChar;

/// Requests the colours of an emoji, and is invisible otherwise.
pub const COLOURED: char = '\u{fe0f}';

/// Makes one line of plain text: removes ANSI sequences and control, bidirectional, zero-width and tag
/// characters except for joiners in words and emoji, replaces line ends and tabs by spaces, and trims. Everything
/// that an agent, a plan or a check wrote passes through here, or through [`block`], before a person sees it.
pub fn line(text: &str) -> String {
    beginning(text, usize::MAX)
}

/// Like [`line`], with at most `max` characters, including an ellipsis if something was cut.
pub fn short_line(text: &str, max: usize) -> String {
    clip_chars(&beginning(text, max), max).into_owned()
}

/// Like [`line`], with the spaces at its start.
pub fn indented(text: &str) -> String {
    let words = text.trim_start_matches(' ');
    " ".repeat(text.len() - words.len()) + &line(words)
}

/// Like [`line`], but of a long text only the first lines, with more than `most` characters.
fn beginning(text: &str, most: usize) -> String {
    let unified = text.replace("\r\n", "\n");
    let mut flat = String::new();
    let mut length = 0;
    for line in unified.split(is_line_end).map(visible) {
        let line = if flat.is_empty() {
            line.trim_start()
        } else {
            flat.push(' ');
            length += 1;
            line.as_str()
        };
        flat.push_str(line);
        let words = line.trim_end();
        if !words.is_empty() && length + words.chars().count() > most {
            break;
        }
        length += line.chars().count();
    }
    flat.trim().to_owned()
}

/// Several lines of plain text, each cleaned as by [`line`] but with its indentation. A tab becomes four
/// spaces. A carriage return ends a line, as for the runner of GitHub Actions.
pub fn block(text: &str) -> String {
    let unified = text.replace("\r\n", "\n");
    let mut block = String::with_capacity(unified.len());
    let mut add = |line: &str| {
        block.push_str(line.trim_end());
        block.push('\n');
    };
    for line in unified.split('\n') {
        if is_plain(line) {
            add(line)
        } else {
            line.split(is_line_end).for_each(|part| add(&visible(part)))
        }
    }
    block.trim_matches('\n').to_owned()
}

/// Lines of plain text, each cleaned as by [`line`] but with its indentation. Empty lines stay.
pub fn visible_lines(text: &str) -> String {
    let lines: Vec<String> = text.split('\n').map(visible).collect();
    lines.join("\n")
}

/// At most `max` characters. The last one is an ellipsis if something was cut.
pub fn clip_chars(text: &str, max: usize) -> Cow<'_, str> {
    match text.char_indices().nth(max) {
        None => Cow::Borrowed(text),
        Some(_) => {
            let kept: String = text.chars().take(max.saturating_sub(1)).collect();
            Cow::Owned(format!("{}…", kept.trim_end()))
        }
    }
}

/// At most `columns` terminal columns. The last character is an ellipsis if something was cut. `text` must be
/// plain.
pub fn clip_columns(text: &str, columns: usize) -> Cow<'_, str> {
    let width = |c: char| match c {
        // Makes the character before it up to one column wider.
        COLOURED => 1,
        c => c.width().unwrap_or(0),
    };
    if text.chars().map(width).sum::<usize>() <= columns {
        return Cow::Borrowed(text);
    }
    let mut kept = String::new();
    let mut used = 0;
    for c in text.chars() {
        if used + width(c) + 1 > columns {
            break;
        }
        used += width(c);
        kept.push(c);
    }
    if columns > 0 {
        kept.push('…');
    }
    Cow::Owned(kept)
}

/// The longest prefix with at most `max` bytes that ends at a character boundary.
pub fn head_bytes(text: &str, max: usize) -> &str {
    text.get(..text.floor_char_boundary(max)).unwrap_or("")
}

/// The longest suffix with at most `max` bytes that starts at a character boundary.
pub fn tail_bytes(text: &str, max: usize) -> &str {
    let from = text.len().saturating_sub(max);
    text.get(text.ceil_char_boundary(from)..).unwrap_or("")
}

/// A duration for a person: `0.4s`, `12s`, `3m 05s`, `2h 07m`.
pub fn duration(ms: u64) -> String {
    let seconds = ms / 1000;
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, 0) if ms == 0 => "0s".into(),
        (0, 0, s) if s < 10 => format!("{s}.{}s", ms % 1000 / 100),
        (0, 0, s) => format!("{s}s"),
        (0, m, s) => format!("{m}m {s:02}s"),
        (h, m, _) => format!("{h}h {m:02}m"),
    }
}

/// A number with a short unit: `950`, `12.3k`, `4.1M`.
pub fn tokens(n: u64) -> String {
    let scaled = |unit: u64| format!("{}.{}", n / unit, n % unit * 10 / unit);
    match n {
        0..1_000 => n.to_string(),
        1_000..1_000_000 => scaled(1_000) + "k",
        _ => scaled(1_000_000) + "M",
    }
}

/// The text behind some words, or nothing if it is empty.
pub fn behind(words: &str, text: &str) -> String {
    match text {
        "" => String::new(),
        text => format!("{words}{text}"),
    }
}

/// The texts that are not empty, with this between them.
pub fn joined<T: AsRef<str>>(between: &str, texts: impl IntoIterator<Item = T>) -> String {
    let mut joined = String::new();
    for text in texts {
        let before = if joined.is_empty() { "" } else { between };
        joined += &behind(before, text.as_ref());
    }
    joined
}

/// The first lines of a list, and a last one about the number of the others.
pub fn first_of<T>(
    mut lines: impl Iterator<Item = T>,
    most: usize,
    rest: impl FnOnce(u64) -> T,
) -> Vec<T> {
    let mut shown: Vec<T> = lines.by_ref().take(most).collect();
    let more = lines.count() as u64;
    shown.extend((more > 0).then(|| rest(more)));
    shown
}

/// Whether a text has only characters of ASCII that can be seen, and spaces, as nearly every line has.
fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
}

fn is_line_end(c: char) -> bool {
    matches!(
        c,
        '\n' | '\r' | '\u{0b}' | '\u{0c}' | '\u{85}' | '\u{2028}' | '\u{2029}'
    )
}

/// A line without its ANSI sequences and invisible characters. An escape sequence never extends beyond the
/// end of its line, so an unterminated one hides only its own line.
fn visible(line: &str) -> String {
    let spaced = line.replace('\t', "    ");
    if is_plain(&spaced) {
        return spaced;
    }
    let plain = if spaced.contains(['\u{1b}', '\u{9b}']) {
        crate::domain::text::plain(&spaced).into_owned()
    } else {
        spaced
    };
    let mut shown = String::with_capacity(plain.len());
    let mut chars = plain.chars().filter(|c| !c.is_control()).peekable();
    while let Some(c) = chars.next() {
        let is_between = shown.ends_with(is_joined) && chars.peek().is_some_and(|&c| is_joined(c));
        if !is_invisible(c) || (is_joiner(c) && is_between) {
            shown.push(c);
        }
    }
    shown
}

/// Whether a character belongs to the spelling of some languages, or makes one emoji of two. A single one between
/// two characters of such a kind hides nothing.
fn is_joiner(c: char) -> bool {
    matches!(c, '\u{200c}' | '\u{200d}')
}

fn is_joined(c: char) -> bool {
    !c.is_ascii() && !c.is_whitespace() && !is_invisible(c)
}

/// The start of a run in UTC to the minute, from the start of its id.
pub fn time_of_id(id: &str) -> Option<String> {
    let at = moment_of_id(id)?;
    Some(at.strftime("%Y-%m-%d %H:%M UTC").to_string())
}

/// The start of a run, from its id.
pub fn moment_of_id(id: &str) -> Option<jiff::Timestamp> {
    let digits: String = id.chars().filter(|c| *c != '-').take(12).collect();
    let millis = i64::from_str_radix(&digits, 16).ok()?;
    let at = jiff::Timestamp::from_millisecond(millis).ok()?;
    (digits.len() == 12).then_some(at)
}

/// Capitalises a fragment that starts a sentence, unless it starts with a path.
pub fn upper_first(text: &str) -> String {
    let word = text.split_whitespace().next().unwrap_or_default();
    if word.contains('/') {
        return text.to_owned();
    }
    let mut chars = text.chars();
    match chars.next() {
        None => String::new(),
        Some(first) => first.to_uppercase().chain(chars).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_line_is_one_line_of_what_can_be_seen() {
        let text = "\u{1b}[31mred\u{1b}[0m\r\nnext\tcol\0\u{202e}rtl\u{200b}\u{e0041}\u{2028}end ";
        assert_eq!(line(text), "red next    colrtl end");
        assert_eq!(line("\u{2764}\u{fe0f}\u{fe0e}"), "\u{2764}\u{fe0f}");
    }

    #[test]
    fn joiners_stay_where_they_join() {
        for honest in [
            "\u{645}\u{6cc}\u{200c}\u{62e}\u{648}",
            "\u{995}\u{9cd}\u{200d}\u{9af}",
            "\u{2764}\u{fe0f}\u{200d}\u{1f525}",
        ] {
            assert_eq!(line(honest), honest);
        }
        let hiding = "a\u{200d}b\u{200c}\u{e9}\u{200d}\u{200c}\u{e9}\u{200d} \u{3000}\u{200d}\u{3000}c\u{200c}";
        assert_eq!(line(hiding), "ab\u{e9}\u{200c}\u{e9} \u{3000}\u{3000}c");
    }

    #[test]
    fn an_escape_that_is_not_closed_hides_its_own_line_only() {
        assert_eq!(block("a\u{1b}]0;title\nsecond\rthird"), "a\nsecond\nthird");
    }

    #[test]
    fn durations_counts_and_amounts_read_well() {
        let durations: Vec<String> = [0, 400, 9_900, 12_000, 185_000, 7_620_000]
            .map(duration)
            .into();
        assert_eq!(durations, ["0s", "0.4s", "9.9s", "12s", "3m 05s", "2h 07m"]);
        let counts = [
            count(1, "task"),
            count(2, "retry"),
            count(0, "branch"),
            count(3, "turn"),
        ];
        assert_eq!(counts, ["1 task", "2 retries", "0 branches", "3 turns"]);
        assert_eq!(
            [tokens(999), tokens(12_345), tokens(4_190_000)],
            ["999", "12.3k", "4.1M"]
        );
        assert_eq!(
            [dollars(0.0), dollars(0.004), dollars(1.5)],
            ["$0.00", "$0.0040", "$1.50"]
        );
    }

    #[test]
    fn cuts_say_so() {
        assert_eq!(short_line("one two three", 5), "one…");
        assert_eq!(short_line("three", 5), "three");
        assert_eq!(clip_columns("日本語", 5), "日本…");
        assert_eq!(clip_columns("日本語", 6), "日本語");
        assert_eq!(clip_columns("\u{a9}\u{fe0f}bc", 4), "\u{a9}\u{fe0f}bc");
        assert_eq!(clip_columns("\u{a9}\u{fe0f}bc", 3), "\u{a9}\u{fe0f}…");
    }

    proptest! {
        #[test]
        fn a_short_line_is_the_line_cut(text in "(?s)[ a-z\r\n\t\u{200b}\u{1b}\\[]{0,60}", max in 0_usize..40) {
            let whole = line(&text);
            prop_assert_eq!(short_line(&text, max), clip_chars(&whole, max));
        }

        #[test]
        fn an_invisible_character_in_every_line_changes_nothing(
            text in "(?s)[ a~\n\t\u{1b}\\[\u{85}\u{7f}é]{0,60}",
        ) {
            let marked: Vec<String> =
                text.split('\n').map(|line| format!("\u{200b}{line}")).collect();
            prop_assert_eq!(block(&text), block(&marked.join("\n")));
            let marked: Vec<String> =
                text.split('\n').map(|line| format!("{line}\u{200b}")).collect();
            prop_assert_eq!(line(&text), line(&marked.join("\n")));
        }

        #[test]
        fn lines_and_blocks_hold_nothing_invisible(text in any::<String>(), max in 0usize..40) {
            let one = line(&text);
            let hides = |c: char| c.is_control() || (is_invisible(c) && !is_joiner(c));
            prop_assert!(!one.chars().any(hides));
            let several = block(&text);
            prop_assert!(!several.chars().any(|c| c != '\n' && hides(c)));
            prop_assert!(clip_chars(&one, max).chars().count() <= max.max(1));
            prop_assert!(head_bytes(&text, max).len() <= max);
            prop_assert!(tail_bytes(&text, max).len() <= max);
            prop_assert!(text.starts_with(head_bytes(&text, max)));
            prop_assert!(text.ends_with(tail_bytes(&text, max)));
        }

        #[test]
        fn clipped_text_fits_the_columns(text in any::<String>(), columns in 0usize..40) {
            let clean = line(&text);
            let clipped = clip_columns(&clean, columns);
            prop_assert!(unicode_width::UnicodeWidthStr::width(&*clipped) <= columns);
        }
    }
}
