//! Makes foreign text harmless in GitHub's Markdown: it is displayed literally and has no effect. It mentions
//! nobody, closes nothing, loads no image, opens no HTML and ends no fence.

use crate::domain::text::{fence_around, longest_run};
use crate::report::actions_log::neutral;
use crate::report::text;

/// Invisible to a reader, but it stops GitHub's detection of mentions, references and URLs.
const BREAK: &str = "&#8203;";

/// One line of text with at most `max` characters, for paragraphs, list items and table cells.
pub(super) fn inline(text: &str, max: usize) -> String {
    let clean = text::short_line(text, max);
    let mut out = String::with_capacity(clean.len() + 16);
    let mut chars = clean.chars().peekable();
    while let Some(c) = chars.next() {
        let next = chars.peek().copied();
        let first = out.is_empty();
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '~' | '$' | '|' => {
                out.push('\\');
                out.push(c);
            }
            '@' | '#' if next.is_some_and(char::is_alphanumeric) => {
                out.push(c);
                out.push_str(BREAK);
            }
            // `GH-12` is a reference too.
            '-' if next.is_some_and(|c| c.is_ascii_digit()) && ends_with_word(&out, "gh") => {
                out.push('-');
                out.push_str(BREAK);
            }
            // GitHub converts `https://…` and `mailto:…` to links.
            ':' if next == Some('/') || ends_with_scheme(&out) => {
                out.push(':');
                out.push_str(BREAK);
            }
            '.' if ends_with_word(&out, "www") => {
                out.push_str(BREAK);
                out.push('.');
            }
            '#' | '+' | '-' | '=' if first => {
                out.push('\\');
                out.push(c);
            }
            '/' if first => out.push_str("&#47;"),
            '.' | ')' if next.is_none_or(char::is_whitespace) && is_number(&out) => {
                out.push('\\');
                out.push(c);
            }
            _ => out.push(c),
        }
    }
    out
}

/// Text of several lines as a quotation of at most `max_bytes`, each line as for [`inline`].
pub(super) fn quotation(text: &str, max_bytes: usize) -> String {
    let clean = text::block(text);
    let kept = text::head_bytes(&clean, max_bytes);
    let lines = kept.lines().map(|line| match line.trim() {
        "" => ">".to_owned(),
        _ => format!("> {}  ", inline(line, 1_000)),
    });
    let rest = (kept.len() < clean.len()).then(|| "> …".to_owned());
    lines.chain(rest).collect::<Vec<_>>().join("\n")
}

/// A word as code: an id, a path, a command. A `|` in it ends no table cell.
pub(super) fn code(text: &str, max: usize) -> String {
    let clean = text::short_line(text, max).replace('|', "\\|");
    if clean.is_empty() {
        return String::new();
    }
    let ticks = "`".repeat(longest_run(&clean, '`') + 1);
    let pad = if clean.starts_with('`') || clean.ends_with('`') {
        " "
    } else {
        ""
    };
    format!("{ticks}{pad}{clean}{pad}{ticks}")
}

/// Text as a fenced block whose fence is longer than any run of backticks in it. Of a text longer than
/// `max_bytes`, the start and twice as much of the end are kept, because failures are more often at the end,
/// with a line between them that says how much is missing. No text in it is a command, neither for a bot that
/// reads comments nor for a runner that prints the report in its log.
pub(super) fn fence(text: &str, max_bytes: usize) -> String {
    let body = shortened(&text::block(text), max_bytes);
    let body = body.lines().map(|line| command_free(&neutral(line)));
    let body = body.collect::<Vec<_>>().join("\n");
    let ticks = fence_around(&body);
    format!("{ticks}text\n{body}\n{ticks}")
}

fn shortened(text: &str, max_bytes: usize) -> String {
    if text.len() <= max_bytes {
        return text.to_owned();
    }
    let head = text::head_bytes(text, max_bytes / 3);
    let tail = text::tail_bytes(text, max_bytes - max_bytes / 3);
    // Complete lines, unless there is only one.
    let head = head.rsplit_once('\n').map_or(head, |(lines, _)| lines);
    let tail = tail.split_once('\n').map_or(tail, |(_, lines)| lines);
    let missing = text.len().saturating_sub(head.len() + tail.len());
    format!(
        "{head}\n[… {} not shown …]\n{tail}",
        text::count(missing as u64, "byte")
    )
}

/// Bots read `/merge` at the start of a line in the source, even in code. A path is left unchanged.
fn command_free(line: &str) -> String {
    let command = line.trim_start().strip_prefix('/');
    let word = command.and_then(|rest| rest.split_whitespace().next());
    let is_command = word.is_some_and(|word| {
        word.starts_with(|c: char| c.is_ascii_alphabetic()) && !word.contains(['/', '.'])
    });
    if is_command {
        format!("\u{200b}{line}")
    } else {
        line.to_owned()
    }
}

fn ends_with_scheme(out: &str) -> bool {
    ends_with_word(out, "mailto") || ends_with_word(out, "xmpp")
}

/// `1.` at the start of a line starts a list.
fn is_number(out: &str) -> bool {
    !out.is_empty() && out.chars().all(|c| c.is_ascii_digit())
}

fn ends_with_word(out: &str, word: &str) -> bool {
    let from = out.len().saturating_sub(word.len());
    out.get(from..)
        .is_some_and(|end| end.eq_ignore_ascii_case(word))
}
