//! The message of a commit: what the agent suggests, made harmless, and what stands in for it.

use regex::Regex;
use std::sync::LazyLock;

/// A commit message taken from the agent's final message, free of everything that may not come from
/// an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SuggestedMessage {
    /// The first line, never empty.
    pub subject: String,
    /// The paragraphs after it, without blank lines at either end; empty when there are none.
    pub body: String,
}

const MARKER: &str = "SUGGESTED_COMMIT_MESSAGE:";
const END: &str = "END_COMMIT_MESSAGE";

/// Trailers that an agent may set. What closes an issue loses its reference like any other text.
const ALLOWED_TRAILERS: [&str; 14] = [
    "bug",
    "changelog",
    "closes",
    "fixes",
    "issue",
    "issues",
    "link",
    "ref",
    "references",
    "refs",
    "related",
    "related-to",
    "resolves",
    "see-also",
];

/// Lines at the end of a final message in which a suggestion is looked for.
const LAST_LINES: usize = 100;

/// Takes the last suggestion out of the last 100 lines of a final message. The lines after it are
/// its body if `END_COMMIT_MESSAGE` closes them. `None` when there is no suggestion or nothing is
/// left of it.
pub fn suggested_commit_message(text: &str) -> Option<SuggestedMessage> {
    let mut lines: Vec<&str> = text.trim_end().lines().rev().take(LAST_LINES).collect();
    lines.reverse();
    let (at, first) =
        find_last(&lines, after_marker).or_else(|| find_last(&lines, after_mention))?;
    let rest = lines.get(at + 1..).unwrap_or_default();
    let closed = rest
        .iter()
        .position(|line| undecorated(line).starts_with(END));
    let mut raw = vec![first];
    match closed {
        Some(end) => raw.extend(&rest[..end]),
        // The prompt's form has its text on one line; some put it on the next.
        None if first.is_empty() => raw.extend(rest.iter().find(|line| !is_fence_or_blank(line))),
        None => {}
    }
    clean(&raw)
}

/// Takes a whole message that the agent gave a commit of its own as its suggestion. `None` when nothing
/// is left of it.
pub fn suggested_by_commit(message: &str) -> Option<SuggestedMessage> {
    clean(&message.lines().collect::<Vec<_>>())
}

/// Text that closes no issue and calls nobody when it arrives on GitHub as the message of a commit:
/// `Fixes #4` becomes `Fixes issue 4` and `@octocat` becomes `octocat`. A plain `#4` that closes
/// nothing stays; what names an issue of another repository does not, because it shows there. Addresses
/// of issues count on every host: GitHub Enterprise Server has a name of its own.
pub fn without_references(text: &str) -> String {
    let (Some(closing), Some(foreign), Some(own), Some(mention)) = (
        CLOSING.as_ref(),
        FOREIGN_ISSUE.as_ref(),
        OWN_ISSUE.as_ref(),
        MENTION.as_ref(),
    ) else {
        return text.replace(['#', '@'], " ");
    };
    let text = foreign.replace_all(
        text,
        "${before}issue ${number}${url_number} of ${repository}${url_repository}",
    );
    let text = closing.replace_all(&text, |found: &regex::Captures<'_>| {
        let found = found.get(0).map_or("", |found| found.as_str());
        own.replace_all(found, "issue ${number}").into_owned()
    });
    mention.replace_all(&text, "$before$name").into_owned()
}

/// The whole message: the suggestion, or `[sprag] Complete task <id>: <title>`, then `trailers` as
/// its last paragraph and one newline. Line breaks in the title are folded, and it closes no issue;
/// the trailers are the executor's own and stay as they are.
pub fn compose(
    suggested: Option<&SuggestedMessage>,
    task_id: &str,
    task_title: &str,
    trailers: &[(String, String)],
) -> String {
    let mut message = match suggested {
        Some(message) if message.body.is_empty() => message.subject.clone(),
        Some(message) => format!("{}\n\n{}", message.subject, message.body),
        None => format!(
            "[sprag] Complete task {}: {}",
            without_references(&fold(task_id)),
            without_references(&fold(task_title))
        ),
    };
    message.truncate(message.trim_end().len());
    for (place, (key, value)) in trailers.iter().enumerate() {
        let joins = place > 0 || suggested.is_some_and(|message| ends_in_trailers(&message.body));
        message.push_str(if joins { "\n" } else { "\n\n" });
        message.push_str(&format!("{}: {}", fold(key), fold(value)));
    }
    message.push('\n');
    message
}

/// A message that came from elsewhere, read again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reviewed {
    /// The message as Sprag would have written it. One of Sprag's own stays as it is.
    pub text: String,
    /// What its last paragraph names in `Sprag-Run`, in order.
    pub runs: Vec<String>,
    /// The ids of the tasks that its last paragraph names in `Sprag-Task`, in order.
    pub tasks: Vec<String>,
}

/// Cleans a whole message with its trailers by the rules for suggestions. `None` when nothing is left
/// of it.
pub fn reviewed(message: &str) -> Option<Reviewed> {
    let message = message.trim_end();
    let (head, last) = message.rsplit_once("\n\n")?;
    let is_own = |line: &&str| line.starts_with("Sprag-Task: ") || line.starts_with("Sprag-Run: ");
    let (own, rest): (Vec<&str>, Vec<&str>) = last.lines().partition(is_own);
    let mut lines: Vec<&str> = head.lines().collect();
    if !rest.is_empty() {
        lines.push("");
        lines.extend(rest);
    }
    let clean = clean(&lines)?;
    let trailers: Vec<(String, String)> = own
        .iter()
        .filter_map(|line| line.split_once(": "))
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect();
    let values = |wanted: &'static str| {
        let named = trailers.iter().filter(move |(key, _)| key == wanted);
        named.map(|(_, value)| value.as_str())
    };
    let id = |value: &str| value.rsplit('/').next().unwrap_or(value).to_owned();
    Some(Reviewed {
        text: compose(Some(&clean), "", "", &trailers),
        runs: values("Sprag-Run").map(str::to_owned).collect(),
        tasks: values("Sprag-Task").map(id).collect(),
    })
}

fn find_last<'a>(
    lines: &[&'a str],
    read: fn(&'a str) -> Option<&'a str>,
) -> Option<(usize, &'a str)> {
    lines
        .iter()
        .enumerate()
        .rev()
        .find_map(|(at, line)| read(line).map(|text| (at, text)))
}

/// What follows the marker at the beginning of a line, whatever markup stands before it.
fn after_marker(line: &str) -> Option<&str> {
    Some(unclosed(undecorated(line).strip_prefix(MARKER)?))
}

/// What follows the marker within a line. The form itself, named in passing, is no suggestion.
fn after_mention(line: &str) -> Option<&str> {
    let (before, after) = line.rsplit_once(MARKER)?;
    let apart = before.ends_with(char::is_whitespace);
    (apart && !after.trim().is_empty() && !after.trim_start().starts_with('<'))
        .then(|| unclosed(after))
}

fn undecorated(line: &str) -> &str {
    line.trim_start_matches([' ', '\t', '>', '*', '`', '#', '_', '-'])
}

/// Drops the closing markup of a marker or a line that was bold or code.
fn unclosed(text: &str) -> &str {
    let text = text.trim();
    let bold = text
        .strip_prefix("**")
        .or_else(|| text.strip_suffix("**"))
        .unwrap_or(text)
        .trim();
    let odd = bold.matches('`').count() % 2 == 1;
    if odd {
        bold.trim_start_matches('`').trim_end_matches('`').trim()
    } else {
        bold
    }
}

fn is_fence_or_blank(line: &str) -> bool {
    let line = line.trim();
    line.is_empty() || line.starts_with("```") || line.starts_with("~~~")
}

/// Makes the lines harmless and tells subject from body.
fn clean(raw: &[&str]) -> Option<SuggestedMessage> {
    let text = raw
        .iter()
        .map(|line| without_controls(line))
        .collect::<Vec<_>>()
        .join("\n");
    let text = without_skips(text);
    let mut kept: Vec<&str> = Vec::new();
    let mut dropping = false;
    for line in text.lines().map(str::trim_end) {
        let continues = dropping && line.starts_with([' ', '\t']) && !line.trim().is_empty();
        dropping = continues || is_foreign_trailer(line);
        if !dropping {
            kept.push(line);
        }
    }
    let first = kept.iter().position(|line| !is_fence_or_blank(line))?;
    let subject = kept.get(first)?.trim().to_owned();
    let placeholder = matches!(subject.as_str(), "<message>" | "<subject>");
    let mut body = kept.get(first + 1..).unwrap_or_default();
    while let Some((_, rest)) = body
        .split_first()
        .filter(|(line, _)| is_fence_or_blank(line))
    {
        body = rest;
    }
    while let Some((line, rest)) = body.split_last() {
        let opens = body
            .iter()
            .filter(|l| l.trim_start().starts_with("```"))
            .count()
            % 2
            == 0;
        if !line.trim().is_empty() && (!is_fence_or_blank(line) || opens) {
            break;
        }
        body = rest;
    }
    let body = without_trailers(body);
    // What closes an issue may stand in subject and body, so both are looked at as one text.
    let whole = without_references(&format!("{subject}\n\n{}", body.join("\n")));
    let (subject, body) = whole.split_once("\n\n")?;
    (!placeholder).then(|| SuggestedMessage {
        subject: subject.trim().to_owned(),
        body: body.to_owned(),
    })
}

/// A body whose last paragraph holds no trailers but those that an agent may set.
fn without_trailers<'a>(body: &[&'a str]) -> Vec<&'a str> {
    let mut kept = body.to_vec();
    loop {
        let end = kept.iter().rposition(|line| !line.is_empty());
        kept.truncate(end.map_or(0, |end| end + 1));
        let blank = kept.iter().rposition(|line| line.is_empty());
        let start = blank.map_or(0, |blank| blank + 1);
        let Some(last) = kept.get(start..).filter(|last| !last.is_empty()) else {
            return kept;
        };
        let is_part =
            |line: &&str| line.starts_with([' ', '\t']) || matches_any(&TRAILER_LIKE, line);
        let begins = last
            .first()
            .is_some_and(|line| matches_any(&TRAILER_LIKE, line));
        if !begins || !last.iter().all(is_part) {
            return kept;
        }
        let mut allowed = false;
        let mut trailers = last.to_vec();
        trailers.retain(|line| {
            if !line.starts_with([' ', '\t']) {
                allowed = is_allowed_trailer(line);
            }
            allowed
        });
        kept.truncate(start);
        if !trailers.is_empty() {
            kept.extend(trailers);
            return kept;
        }
    }
}

/// Whether an agent may set the trailer of this line. All of them only point somewhere.
fn is_allowed_trailer(line: &str) -> bool {
    let key = line.split(':').next().unwrap_or_default().trim();
    ALLOWED_TRAILERS
        .iter()
        .any(|allowed| key.eq_ignore_ascii_case(allowed))
}

/// A line without control characters and without the marks that reorder text on a screen.
fn without_controls(line: &str) -> String {
    let plain = line.chars().map(|c| if c == '\t' { ' ' } else { c });
    plain
        .filter(|&c| !c.is_control() && !is_reordering(c))
        .collect()
}

fn is_reordering(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

/// Rounds in which forms that stand within one another are taken out.
const SKIP_ROUNDS: usize = 8;

/// Takes out the forms with which a commit tells GitHub to run no workflow. What is left must not be
/// one either, so removing goes on until there is none.
fn without_skips(mut text: String) -> String {
    let Some(skip) = SKIP.as_ref() else {
        return text;
    };
    for _ in 0..SKIP_ROUNDS {
        if !skip.is_match(&text) {
            return text;
        }
        text = skip.replace_all(&text, "").into_owned();
    }
    if skip.is_match(&text) {
        text.replace('[', "(")
    } else {
        text
    }
}

fn matches_any(pattern: &LazyLock<Option<Regex>>, line: &str) -> bool {
    pattern.as_ref().is_some_and(|regex| regex.is_match(line))
}

/// Whether the last paragraph is trailers already, so that more of them belong to it.
fn ends_in_trailers(body: &str) -> bool {
    let last = body.rsplit("\n\n").next().unwrap_or_default();
    !last.trim().is_empty() && last.lines().all(|line| matches_any(&TRAILER, line))
}

/// Whether a line is a trailer that may not come from an agent, wherever it stands. A single word before
/// a colon is prose too often, so it counts only in the last paragraph.
fn is_foreign_trailer(line: &str) -> bool {
    matches_any(&FOREIGN_TRAILER, line)
        || (matches_any(&COMPOUND_TRAILER, line) && !is_allowed_trailer(line))
}

/// One line: every line break, and what surrounds it, is one space.
fn fold(text: &str) -> String {
    let lines = text
        .split(['\n', '\r'])
        .map(str::trim)
        .filter(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join(" ")
}

static SKIP: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i) ?\[\s*(?:(?:skip|no)[\s_-]+ci|ci[\s_-]+skip|skip[\s_-]+actions|actions[\s_-]+skip)\s*\]").ok()
});
static FOREIGN_TRAILER: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?i)^\s*(?:sprag-[\w-]*|co-authored-by|signed-off-by|reviewed-by|acked-by|skip-checks)\s*:",
    )
    .ok()
});
/// A key of several words before a colon, which is how trailers that say who did what are written.
static COMPOUND_TRAILER: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^[A-Za-z0-9]+(?:-[A-Za-z0-9]+)+\s*:").ok());
/// What git takes for a trailer where every line of the last paragraph is one.
static TRAILER_LIKE: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^(?:[A-Za-z0-9-]+\s*:|\(cherry picked from commit )").ok());
/// A word that closes an issue, and the references after it. What may stand between is more than
/// GitHub allows.
static CLOSING: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?i)\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?)\b[^A-Za-z0-9#]{0,12}(?:GH-|[\w.-]*#)[0-9]+(?:(?:\s*(?:,|&|and)\s*)+(?:GH-|#)[0-9]+)*",
    )
    .ok()
});
static OWN_ISSUE: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?i)(?:\bGH-|[\w.-]*#)(?<number>[0-9]+)").ok());
static FOREIGN_ISSUE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?i)(?<before>^|[^\w./-])(?:(?:https?://[^\s/]+|[\w-]+(?:\.[\w-]+)+(?::[0-9]+)?)/(?<url_repository>[\w.-]+/[\w.-]+)/(?:issues|pull|discussions)/(?<url_number>[0-9]+)|(?<repository>[\w.-]+/[\w.-]+)#(?<number>[0-9]+)\b)",
    )
    .ok()
});
static MENTION: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?<before>^|[^A-Za-z0-9_@])@+(?<name>[A-Za-z0-9])").ok());
static TRAILER: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^[A-Za-z0-9][A-Za-z0-9-]*: \S").ok());

#[cfg(test)]
mod tests;
