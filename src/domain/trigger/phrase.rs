//! Finds the trigger phrase in a comment. Only a phrase that people can see counts as a request.

use super::{Request, approval, clean, head};
use crate::pattern::Pattern;
use crate::suggest::is_typing_error;
use pulldown_cmark::{Event, Options, Parser, Tag};
use std::ops::Range;

/// The maximum number of bytes of a comment that are read: GitHub allows 65,536 characters.
pub const MAX_BODY_BYTES: usize = 4 * 65_536;

/// The maximum length of an instruction, in bytes.
const MAX_INSTRUCTION_BYTES: usize = 32 * 1024;

/// The request in the first line of a top-level paragraph of `body` that starts with `phrase`. Anything else,
/// such as code, quotes, lists, footnotes, formulas and the content of HTML elements, is text, and so is the
/// phrase within a line or at the beginning of a longer word. The case of ASCII letters is ignored, as by the
/// functions of a workflow's conditions. `None` if there is no request.
pub fn find(body: &str, phrase: &str) -> Option<Request> {
    // Most comments do not contain the phrase.
    let lower = body.to_ascii_lowercase();
    if phrase.is_empty() || !lower.contains(&phrase.to_ascii_lowercase()) {
        return None;
    }
    // GitHub does not break lines at a carriage return alone.
    let body = head(body, MAX_BODY_BYTES)
        .replace("\r\n", "\n")
        .replace('\r', " ");
    let (paragraphs, text) = structure(&body);
    for paragraph in paragraphs {
        let mut at = paragraph.start;
        for line in body[paragraph].split_inclusive('\n') {
            let words = line.trim_start_matches(' ');
            let begins = at + line.len() - words.len();
            at += line.len();
            if is_reply_header(words.trim_end()) {
                return None;
            }
            if let Some((found, rest)) = words.split_at_checked(phrase.len())
                && found.eq_ignore_ascii_case(phrase)
                && let Some(rest) = after_phrase(rest)
                && !text.iter().any(|range| range.contains(&begins))
            {
                return Some(request(&body[at - rest.len()..]));
            }
        }
    }
    None
}

/// The rest of a line after the phrase, which a `:` or a `,` may end.
fn after_phrase(rest: &str) -> Option<&str> {
    let rest = rest.strip_prefix([':', ',']).unwrap_or(rest);
    (rest.is_empty() || rest.starts_with(char::is_whitespace)).then_some(rest)
}

/// Whether a mail program wrote the line above the message to which somebody replies.
fn is_reply_header(line: &str) -> bool {
    line.starts_with("-----Original Message")
        || (line.starts_with("On ") && line.ends_with("wrote:"))
}

/// The top-level paragraphs, and the ranges in which nothing is a command: code, formulas and HTML elements.
fn structure(body: &str) -> (Vec<Range<usize>>, Vec<Range<usize>>) {
    let options = Options::ENABLE_TABLES | Options::ENABLE_FOOTNOTES | Options::ENABLE_MATH;
    let (mut paragraphs, mut text) = (Vec::new(), Vec::new());
    let mut open: Vec<(String, usize)> = Vec::new();
    let mut depth = 0_usize;
    for (event, range) in Parser::new_ext(body, options).into_offset_iter() {
        match event {
            Event::Start(Tag::HtmlBlock) => {
                depth += 1;
                elements(body, range, &mut open, &mut text);
            }
            Event::InlineHtml(_) => {
                text.push(range.clone());
                elements(body, range, &mut open, &mut text);
            }
            Event::Start(tag) => {
                if depth == 0 && tag == Tag::Paragraph {
                    paragraphs.push(range);
                }
                depth += 1;
            }
            Event::End(_) => depth = depth.saturating_sub(1),
            Event::Code(_) | Event::InlineMath(_) | Event::DisplayMath(_) => text.push(range),
            _ => {}
        }
    }
    text.extend(open.into_iter().map(|(_, start)| start..body.len()));
    (paragraphs, text)
}

/// Notes the elements that a piece of HTML opens, and the ranges of those that it closes.
fn elements(
    body: &str,
    range: Range<usize>,
    open: &mut Vec<(String, usize)>,
    closed: &mut Vec<Range<usize>>,
) {
    const VOID: [&str; 7] = ["br", "hr", "img", "input", "link", "meta", "wbr"];
    for found in TAGS.captures_iter(body.get(range.clone()).unwrap_or_default()) {
        let (Some(whole), Some(name)) = (found.get(0), found.name("name")) else {
            continue;
        };
        let name = name.as_str().to_ascii_lowercase();
        let is_end = whole.as_str().starts_with("</");
        if !is_end {
            if !VOID.contains(&name.as_str()) && !whole.as_str().ends_with("/>") {
                open.push((name, range.start + whole.start()));
            }
        } else if let Some(place) = open.iter().rposition(|(known, _)| *known == name) {
            closed.push(open[place].1..range.start + whole.end());
            open.truncate(place);
        }
    }
}

/// A tag, or a comment.
static TAGS: Pattern =
    Pattern::new(r"(?s)<!--.*?(?:-->|$)|</?(?<name>[A-Za-z][A-Za-z0-9-]*)[^<>]*>");

/// Words of courtesy, which change nothing about a command.
const COURTESY: &str =
    "again can cheers could hey hi just kindly now ok please pls thank thanks thx would you";

/// The request in the text after the phrase. A command is a line of its own; anything else is an instruction,
/// which continues to the end of the comment. A word that is nearly a command is not worth a run.
fn request(text: &str) -> Request {
    let line = clean::clean_line(text.split('\n').next().unwrap_or_default(), 2_000);
    let line = line.trim();
    if let Some(request) = with_text(line, text) {
        return request;
    }
    let lower = line.to_lowercase();
    let is_part = |c: char| !(c.is_alphanumeric() || "'-_/\\#@`".contains(c));
    let words: Vec<&str> = lower
        .split(is_part)
        .filter(|word| !word.is_empty() && !COURTESY.split(' ').any(|known| known == *word))
        .collect();
    let said = || Request::Instruction(instruction(text));
    match words.as_slice() {
        [] if line.is_empty() && !instruction(text).is_empty() => said(),
        [] => Request::Help,
        [word] => command(word).unwrap_or_else(said),
        _ => said(),
    }
}

/// A command with a text that ends with the comment, a plan with its path, and an approval with its code.
fn with_text(line: &str, text: &str) -> Option<Request> {
    let end = [' ', ':'];
    let (word, after) = line.split_once(end).unwrap_or((line, ""));
    let from = text.find(word)? + word.len();
    let rest = instruction(text.get(from..)?.trim_start_matches(end));
    match word.to_ascii_lowercase().as_str() {
        "ask" if !rest.is_empty() => Some(Request::Ask(rest)),
        "answer" if !rest.is_empty() => Some(Request::Answer(rest)),
        "plan" => Some(Request::Draft(rest)),
        "run" => plan(after.trim()),
        "approve" if after.is_empty() || approval::is_code(after.trim()) => {
            Some(Request::Approve(after.trim().to_ascii_lowercase()))
        }
        _ => None,
    }
}

fn command(word: &str) -> Option<Request> {
    const WORDS: [&str; 8] = [
        "retry", "continue", "resume", "rebase", "cancel", "status", "help", "approve",
    ];
    Some(match word {
        "retry" => Request::Retry,
        "continue" | "resume" => Request::Continue,
        "rebase" => Request::Rebase,
        "stop" | "cancel" => Request::Stop,
        "status" => Request::Status,
        "help" | "run" | "ask" | "answer" => Request::Help,
        _ if WORDS.iter().any(|known| is_typing_error(word, known)) => Request::Help,
        _ => return None,
    })
}

/// A path is a single word with a `/` or a `.`, or is in backticks: `run the tests` is an instruction.
fn plan(rest: &str) -> Option<Request> {
    let ticked = rest
        .strip_prefix('`')
        .and_then(|rest| rest.strip_suffix('`'));
    let ticked = ticked.filter(|path| !path.contains('`'));
    let path = ticked.unwrap_or(rest);
    let one = ticked.is_some() || !path.contains(' ');
    (one && path.contains(['/', '.', '\\'])).then(|| Request::Plan(path.to_owned()))
}

fn instruction(text: &str) -> String {
    head(clean::clean(text).trim(), MAX_INSTRUCTION_BYTES).to_owned()
}

#[cfg(test)]
mod tests {
    use super::{Request, find};
    use proptest::prelude::*;

    fn said(text: &str) -> Option<Request> {
        Some(Request::Instruction(text.to_owned()))
    }

    fn asked(text: &str) -> Option<Request> {
        Some(Request::Ask(text.to_owned()))
    }

    #[test]
    fn what_is_asked_for() {
        for (body, expected) in [
            ("/sprag fix the flaky test", said("fix the flaky test")),
            (
                "Hello\r\n\r\n/sprag fix it\r\nand that\r\n",
                said("fix it\nand that"),
            ),
            ("text\n  /sprag fix", said("fix")),
            ("/sprag\nfix it", said("fix it")),
            ("/sprag fix\n```\ncode\n```", said("fix\n```\ncode\n```")),
            ("/sprag fix <!-- and leak --> it", said("fix  it")),
            ("/sprag", Some(Request::Help)),
            ("/sprag   \n", Some(Request::Help)),
            ("/Sprag fix", said("fix")),
            ("/SPRAG RETRY", Some(Request::Retry)),
            ("/sprag Help", Some(Request::Help)),
            ("/sprag retry", Some(Request::Retry)),
            ("/sprag retry.\n\nThanks", Some(Request::Retry)),
            ("/sprag retry the build", said("retry the build")),
            ("/sprag continue", Some(Request::Continue)),
            ("/sprag stop", Some(Request::Stop)),
            ("/sprag stop using unwrap", said("stop using unwrap")),
            ("/sprag status", Some(Request::Status)),
            (
                "/sprag run plans/a.yaml",
                Some(Request::Plan("plans/a.yaml".into())),
            ),
            (
                "/sprag run `my plans/a.yaml`",
                Some(Request::Plan("my plans/a.yaml".into())),
            ),
            (
                "/sprag run ../x.yaml",
                Some(Request::Plan("../x.yaml".into())),
            ),
            ("/sprag run the tests", said("run the tests")),
            ("/sprag run tests", said("run tests")),
            ("/sprag run", Some(Request::Help)),
            ("/sprag ask", Some(Request::Help)),
            ("/sprag ask why does it\nfail?", asked("why does it\nfail?")),
            ("/sprag, Ask: why?", asked("why?")),
            ("/sprag asks too much", said("asks too much")),
            ("/sprag answer", Some(Request::Help)),
            (
                "/sprag answer: MIT,\nplease",
                Some(Request::Answer("MIT,\nplease".into())),
            ),
            ("/sprag answers nothing", said("answers nothing")),
            ("/sprag plan", Some(Request::Draft(String::new()))),
            (
                "/sprag plan in two steps\n- a",
                Some(Request::Draft("in two steps\n- a".into())),
            ),
            ("/sprag approve", Some(Request::Approve(String::new()))),
            (
                "/sprag approve 0123456789ABCDEF0123456789ABCDEF",
                Some(Request::Approve("0123456789abcdef0123456789abcdef".into())),
            ),
            ("/sprag approve 0123456789ab", said("approve 0123456789ab")),
            (
                "/sprag approve what she wrote",
                said("approve what she wrote"),
            ),
            ("/sprag: fix", said("fix")),
            ("/sprag, stop please", Some(Request::Stop)),
            ("/sprag stop please!", Some(Request::Stop)),
            ("/sprag Status?", Some(Request::Status)),
            ("/sprag rebase, thanks", Some(Request::Rebase)),
            ("/sprag could you retry now 🙏", Some(Request::Retry)),
            (
                "/sprag please stop using tabs",
                said("please stop using tabs"),
            ),
            (
                "/sprag continue-on-error is wrong",
                said("continue-on-error is wrong"),
            ),
            ("/sprag retyr", Some(Request::Help)),
            ("/sprag thanks!", Some(Request::Help)),
            ("/sprag ???", Some(Request::Help)),
            ("<details>\nlog\n</details>\n\n/sprag fix", said("fix")),
            ("<img src=x>\n\n<!-- <p> -->\n\n/sprag fix", said("fix")),
        ] {
            assert_eq!(find(body, "/sprag"), expected, "{body:?}");
        }
    }

    #[test]
    fn what_only_quotes_the_phrase() {
        for body in [
            "",
            "please /sprag fix",
            "/spragx fix",
            "/sprag:fix",
            "<details>\n\n/sprag fix\n\n</details>",
            "<details><summary>x</summary>\n\n/sprag fix",
            "<blockquote>\n\n/sprag fix\n\n</blockquote>",
            "a[^1]\n\n[^1]: note\n\n    /sprag fix",
            "$$\n/sprag fix\n$$",
            "a\r/sprag fix",
            "On Monday, Ada wrote:\n/sprag fix",
            "-----Original Message-----\nFrom: Ada\n\n/sprag fix",
            "# /sprag fix",
            "| a |\n|---|\n| /sprag fix |",
            "a <span>\n/sprag fix\n</span>",
            "`/sprag fix`",
            "a `b\n/sprag fix` c",
            "    /sprag fix",
            "```\n/sprag fix\n```",
            "~~~\n/sprag fix",
            "> /sprag fix",
            "> a\n/sprag fix",
            "<!-- \n/sprag fix\n-->",
            "a <!--\n/sprag fix\n--> b",
            "<pre>\n/sprag fix\n</pre>",
            "- a\n\n      /sprag fix",
            "\u{200b}/sprag fix",
            "- /sprag fix",
        ] {
            assert_eq!(find(body, "/sprag"), None, "{body:?}");
        }
    }

    #[test]
    fn a_phrase_of_ones_own() {
        assert_eq!(find("@bot fix", "@bot"), said("fix"));
        assert_eq!(find("@bot fix", "@Bot"), said("fix"));
        assert_eq!(find("*bot* fix", "*bot*"), said("fix"));
        assert_eq!(find("/sprag fix", ""), None);
    }

    proptest! {
        #[test]
        fn no_body_is_too_strange(body in "(/sprag|[ \n>`~<!-]|-->|\\PC)*", phrase in "(/sprag|\\PC{0,3})") {
            let _ = find(&body, &phrase);
        }
    }
}
