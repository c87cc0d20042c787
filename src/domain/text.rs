//! Functions for text from other programs.

use pulldown_cmark::{CodeBlockKind, Event, Parser, Tag, TagEnd};
use std::borrow::Cow;
use std::ops::Range;

/// Whether a list of words with space between them has this one.
pub fn has_word(list: &str, word: &str) -> bool {
    list.split_whitespace().any(|known| known == word)
}

/// Whether a text begins with a word of a list of words with space between them.
pub fn begins_with_word(list: &str, text: &str) -> bool {
    list.split_whitespace().any(|word| text.starts_with(word))
}

/// `raw` as a terminal would show it: without escape sequences and control characters except newline and tab,
/// and with only the final text of a line that carriage returns overwrote.
///
/// Unlike `strip-ansi-escapes`, it keeps tabs, and an unterminated sequence extends only to the end of its
/// line: a test must not be able to hide the failures after it.
pub fn plain(raw: &str) -> Cow<'_, str> {
    if !raw
        .chars()
        .any(|c| c.is_control() && c != '\n' && c != '\t')
    {
        return Cow::Borrowed(raw);
    }
    let mut text = String::with_capacity(raw.len());
    for (index, line) in raw.split('\n').enumerate() {
        if index > 0 {
            text.push('\n');
        }
        let line = line.trim_end_matches('\r');
        let shown = line
            .rsplit('\r')
            .find(|part| !part.is_empty())
            .unwrap_or_default();
        push_visible(shown, &mut text);
    }
    Cow::Owned(text)
}

/// Whether a character is invisible and can mislead: controls of direction, zero-width and filler characters,
/// variation selectors, tags, interlinear and format marks. The variation selector that requests an emoji's
/// colours is none of these; the others can encode arbitrary bytes.
pub fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{2800}' | '\u{3164}' | '\u{ffa0}' | '\u{feff}'
        | '\u{fe00}'..='\u{fe0e}'
        | '\u{fff0}'..='\u{fffb}'
        | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
}

/// At most `limit` characters of `text`, the last of them `…` if the text was cut.
pub fn cap_chars(text: &str, limit: usize) -> Cow<'_, str> {
    if text.len() <= limit || text.chars().count() <= limit {
        return Cow::Borrowed(text);
    }
    let Some(kept) = limit.checked_sub(1) else {
        return Cow::Borrowed("");
    };
    let mut cut: String = text.chars().take(kept).collect();
    cut.push('…');
    Cow::Owned(cut)
}

/// Maximum length in characters of an excerpt of a tool's output or of a raw line.
pub const EXCERPT_CHARS: usize = 2_000;

/// The start of `text` without trailing white space, at most [`EXCERPT_CHARS`] long.
pub fn excerpt(text: &str) -> String {
    cap_chars(text.trim_end(), EXCERPT_CHARS).into_owned()
}

/// The first line that is not blank, trimmed.
pub fn first_line(text: &str) -> &str {
    text.trim_start()
        .lines()
        .next()
        .unwrap_or_default()
        .trim_end()
}

/// `text` on one line of at most `limit` characters, with each run of whitespace replaced by one space.
pub fn one_line(text: &str, limit: usize) -> String {
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        if line.len() > limit.saturating_mul(4) {
            break;
        }
    }
    cap_chars(&line, limit).into_owned()
}

/// Appends `more` to `text`, with a blank line between them if neither is empty. The existing text does not
/// change.
pub fn add_paragraph(text: &mut String, more: &str) {
    if !text.is_empty() && !more.is_empty() {
        text.push_str(if text.ends_with('\n') { "\n" } else { "\n\n" });
    }
    text.push_str(more);
}

/// `text` in a Markdown code fence that is longer than any run of backticks in it, so that the text cannot
/// end the fence.
pub fn fenced(text: &str) -> String {
    let fence = fence_around(text);
    let body = text.trim_end_matches('\n');
    format!("{fence}\n{body}\n{fence}")
}

/// The fenced blocks of code in a Markdown text: the first word behind each fence, in lower case, and the code.
pub fn fenced_blocks(markdown: &str) -> Vec<(String, String)> {
    let mut blocks = Vec::new();
    let mut open: Option<(String, String)> = None;
    for event in Parser::new(markdown) {
        match event {
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(info))) => {
                let language = info.split([' ', ',', '\t']).next().unwrap_or_default();
                open = Some((language.to_ascii_lowercase(), String::new()));
            }
            Event::Text(text) => {
                if let Some((_, code)) = &mut open {
                    code.push_str(&text);
                }
            }
            Event::End(TagEnd::CodeBlock) => blocks.extend(open.take()),
            _ => {}
        }
    }
    blocks
}
/// A fence of backticks that no line of this text can close.
pub fn fence_around(text: &str) -> String {
    "`".repeat(longest_run(text, '`').max(2).saturating_add(1))
}

/// The longest run of `wanted` in a text.
pub fn longest_run(text: &str, wanted: char) -> usize {
    let runs = text.split(|c| c != wanted);
    runs.map(|run| run.chars().count()).max().unwrap_or(0)
}

/// The text from an offset on without these ranges, which are in order of their starts.
pub fn without_ranges(text: &str, mut from: usize, removed: &[Range<usize>]) -> String {
    let mut rest = String::with_capacity(text.len());
    for range in removed {
        if range.start >= from {
            rest.push_str(&text[from..range.start]);
        }
        from = from.max(range.end);
    }
    rest.push_str(&text[from..]);
    rest
}

/// `1 process running; it was ended`, `2 processes running; they were ended`.
pub fn left_running(n: u64) -> String {
    let were = if n == 1 { "it was" } else { "they were" };
    format!("{} running; {were} ended", count(n, "process"))
}

/// `1 task`, `2 tasks`.
pub fn count(n: u64, one: &str) -> String {
    match n {
        1 => format!("1 {one}"),
        _ if ["ch", "ss", "x"].iter().any(|end| one.ends_with(end)) => format!("{n} {one}es"),
        _ => match one.strip_suffix("ry") {
            Some(stem) => format!("{n} {stem}ries"),
            None => format!("{n} {one}s"),
        },
    }
}

/// The name of a file without its directories.
pub fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// What follows the last dot of the name of the file; empty without a dot.
pub fn file_ending(path: &str) -> &str {
    let name = file_name(path);
    name.rsplit_once('.').map_or("", |(_, ending)| ending)
}

/// The first names of a list, and the number of the others.
pub fn some_of<S: AsRef<str>>(names: &[S], most: usize) -> String {
    let shown: Vec<&str> = names.iter().take(most).map(AsRef::as_ref).collect();
    match names.len().saturating_sub(most) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// `n` with commas between groups of three digits.
pub fn grouped(n: usize) -> String {
    let (thousands, rest) = (n / 1_000, n % 1_000);
    match thousands {
        0 => rest.to_string(),
        _ => format!("{},{rest:03}", grouped(thousands)),
    }
}

/// The position of a line within an escape sequence; `Text` is the content of a sequence that only a
/// terminator ends.
enum Escape {
    None,
    Begun,
    Csi,
    Text,
    Ending,
}

fn push_visible(line: &str, text: &mut String) {
    let mut state = Escape::None;
    for c in line.chars() {
        state = match (state, c) {
            (Escape::None | Escape::Begun, '\u{1b}') => Escape::Begun,
            (Escape::None, '\u{9b}') => Escape::Csi,
            (Escape::None, '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}') => Escape::Text,
            (Escape::None, _) => {
                if !c.is_control() || c == '\t' {
                    text.push(c);
                }
                Escape::None
            }
            (Escape::Begun, '[') => Escape::Csi,
            (Escape::Begun, ']' | 'P' | 'X' | '^' | '_') => Escape::Text,
            (Escape::Begun, ' '..='/') => Escape::Begun,
            (Escape::Begun, _) => Escape::None,
            (Escape::Csi, '\u{40}'..='\u{7e}') => Escape::None,
            (Escape::Csi, _) => Escape::Csi,
            (Escape::Text, '\u{7}' | '\u{9c}') | (Escape::Ending, '\\') => Escape::None,
            (Escape::Text | Escape::Ending, '\u{1b}') => Escape::Ending,
            (Escape::Text | Escape::Ending, _) => Escape::Text,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::{add_paragraph, cap_chars, fenced, grouped, one_line, plain};
    use proptest::prelude::*;

    #[test]
    fn escape_sequences_and_overwritten_text_are_gone() {
        assert_eq!(plain("\u{1b}[1;31merror\u{1b}[0m: x\tz"), "error: x\tz");
        assert_eq!(
            plain("\u{1b}]8;;http://a\u{1b}\\link\u{1b}]8;;\u{7}!"),
            "link!"
        );
        assert_eq!(plain("\u{1b}(Bok"), "ok");
        assert_eq!(plain("10%\r50%\r100%\r\nnext\r\n"), "100%\nnext\n");
        assert_eq!(plain("bell\u{7} nul\u{0}"), "bell nul");
    }

    #[test]
    fn an_unended_escape_hides_no_further_line() {
        assert_eq!(plain("\u{1b}]title\nFAILED x\n"), "\nFAILED x\n");
    }

    #[test]
    fn text_is_cut_at_characters() {
        assert_eq!(cap_chars("äöü", 3), "äöü");
        assert_eq!(cap_chars("äöüß", 3), "äö…");
        assert_eq!(cap_chars("abc", 0), "");
        assert_eq!(one_line("  a\n\t b  ", 10), "a b");
        assert_eq!(one_line("abcdef", 4), "abc…");
    }

    #[test]
    fn a_fence_is_longer_than_any_inside() {
        assert_eq!(fenced("a\n````\nb\n"), "`````\na\n````\nb\n`````");
        assert_eq!(fenced("a"), "```\na\n```");
    }

    #[test]
    fn paragraphs_are_apart() {
        let added = |text: &str, more: &str| {
            let mut text = text.to_owned();
            add_paragraph(&mut text, more);
            text
        };
        assert_eq!(added("a", "b"), "a\n\nb");
        assert_eq!(added("a\n", "b"), "a\n\nb");
        assert_eq!(added("", "b"), "b");
        assert_eq!(added("a", ""), "a");
    }

    #[test]
    fn numbers_are_grouped() {
        let shown: Vec<_> = [0, 999, 1_000, 12_345, 1_234_567]
            .into_iter()
            .map(grouped)
            .collect();
        assert_eq!(shown, ["0", "999", "1,000", "12,345", "1,234,567"]);
    }

    proptest! {
        #[test]
        fn plain_text_is_plain_and_stays_so(raw in any::<String>()) {
            let once = plain(&raw).into_owned();
            prop_assert!(!once.chars().any(|c| c.is_control() && c != '\n' && c != '\t'));
            prop_assert_eq!(plain(&once), once.as_str());
        }
    }
}
