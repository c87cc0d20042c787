//! Finds the trigger phrase in a comment. Only a phrase that people can see counts as a request.

use super::{Request, clean, head};
use pulldown_cmark::{Event, Options, Parser, Tag};
use std::cell::LazyCell;
use std::ops::Range;

/// The maximum number of bytes of a comment that are read: GitHub allows 65,536 characters.
pub const MAX_BODY_BYTES: usize = 4 * 65_536;

/// The maximum length of an instruction, in bytes.
const MAX_INSTRUCTION_BYTES: usize = 32 * 1024;

/// The request in the first line of `body` that starts with `phrase`. Lines in code, in quotes and in HTML
/// comments do not count, and neither does the phrase within a line or at the beginning of a longer word. The
/// case of ASCII letters is ignored, as by the functions of a workflow's conditions. `None` if there is no request.
pub fn find(body: &str, phrase: &str) -> Option<Request> {
    if phrase.is_empty() {
        return None;
    }
    let body = head(body, MAX_BODY_BYTES)
        .replace("\r\n", "\n")
        .replace('\r', "\n");
    let quoted = LazyCell::new(|| quoted(&body));
    let mut at = 0;
    for line in body.split_inclusive('\n') {
        let words = line.trim_start_matches(' ');
        let begins = at + line.len() - words.len();
        if let Some((found, rest)) = words.split_at_checked(phrase.len())
            && found.eq_ignore_ascii_case(phrase)
            && rest.chars().next().is_none_or(char::is_whitespace)
            && !quoted.iter().any(|range| range.contains(&begins))
        {
            let from = begins + phrase.len();
            return Some(request(body.get(from..).unwrap_or_default()));
        }
        at += line.len();
    }
    None
}

/// The ranges of code, quotes and raw HTML.
fn quoted(body: &str) -> Vec<Range<usize>> {
    Parser::new_ext(body, Options::ENABLE_TABLES)
        .into_offset_iter()
        .filter_map(|(event, range)| {
            let quotes = matches!(
                event,
                Event::Start(Tag::CodeBlock(_) | Tag::BlockQuote(_) | Tag::HtmlBlock)
                    | Event::Code(_)
                    | Event::InlineHtml(_)
            );
            quotes.then_some(range)
        })
        .collect()
}

/// The request in the text after the phrase. A command is a line of its own; anything else is an instruction,
/// which continues to the end of the comment.
fn request(text: &str) -> Request {
    let line = clean::clean_line(text.split('\n').next().unwrap_or_default(), 2_000);
    let mut words = line.split(' ').filter(|word| !word.is_empty());
    let command = match (words.next(), words.next()) {
        (None, _) => instruction(text).is_empty().then_some(Request::Help),
        (Some(word), None) => command(word),
        (Some(word), Some(_)) if word.eq_ignore_ascii_case("run") => {
            plan(line.get(word.len()..).unwrap_or_default().trim())
        }
        _ => None,
    };
    command.unwrap_or_else(|| Request::Instruction(instruction(text)))
}

fn command(word: &str) -> Option<Request> {
    Some(
        match word
            .trim_end_matches(['.', '!'])
            .to_ascii_lowercase()
            .as_str()
        {
            "retry" => Request::Retry,
            "continue" | "resume" => Request::Continue,
            "rebase" => Request::Rebase,
            "stop" | "cancel" => Request::Stop,
            "status" => Request::Status,
            "help" | "run" | "" => Request::Help,
            _ => return None,
        },
    )
}

/// A path is a single word with a `/` or a `.`, or is in backticks: `run the tests` is an instruction.
fn plan(rest: &str) -> Option<Request> {
    let ticked = rest
        .strip_prefix('`')
        .and_then(|rest| rest.strip_suffix('`'))
        .filter(|path| !path.contains('`'));
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
            "/sprag: fix",
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
