//! Commit messages: sanitises the agent's suggestion, and provides the default message.

use crate::checks::judges::is_product_source;
use crate::checks::tests_changed::is_test;
use crate::pattern::{Pattern, group};
use crate::text::{cap_chars, file_name, plain};

/// A commit message from the agent's final message, without anything that an agent may not set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SuggestedMessage {
    /// The first line, never empty.
    pub subject: String,
    /// The paragraphs after it, without leading or trailing blank lines; empty if there are none.
    pub body: String,
}

const MARKER: &str = "SUGGESTED_COMMIT_MESSAGE:";
/// The marker with a colon that is as wide as a Chinese or Japanese letter.
const WIDE_MARKER: &str = "SUGGESTED_COMMIT_MESSAGE：";
const END: &str = "END_COMMIT_MESSAGE";

/// The maximum number of characters of a line that Sprag adds: hooks often refuse longer ones.
const MAX_LINE: usize = 100;
/// The beginning of the trailer that names the task of a commit.
pub const TASK_TRAILER: &str = "Sprag-Task: ";
/// The beginning of the trailer that names the run of a commit.
pub const RUN_TRAILER: &str = "Sprag-Run: ";

/// Trailers that an agent may set. Those that close an issue lose its reference, as in any other text.
const ALLOWED_TRAILERS: &str = "bug changelog closes fixes issue issues link ref references refs related related-to resolves see-also";

/// The number of lines at the end of a final message that are searched for a suggestion.
pub const SEARCHED_LINES: usize = 100;

/// The last suggestion in the last 100 lines of a final message. The lines after it are its body if
/// `END_COMMIT_MESSAGE` closes them. `None` if there is no suggestion, or nothing of it is left.
pub fn suggested_commit_message(text: &str) -> Option<SuggestedMessage> {
    let mut lines: Vec<&str> = text.trim_end().lines().rev().take(SEARCHED_LINES).collect();
    lines.reverse();
    let (at, first) =
        find_last(&lines, after_marker).or_else(|| find_last(&lines, after_mention))?;
    let rest = lines.get(at + 1..).unwrap_or_default();
    let mut each = rest.iter();
    let closed = each.position(|line| undecorated(line).starts_with(END));
    let mut raw = vec![first];
    match closed {
        Some(end) => raw.extend(&rest[..end]),
        // The requested form has the text on one line; some agents put it on the next.
        None if first.is_empty() => {
            let next = rest.iter().find(|line| !is_fence_or_blank(line));
            raw.extend(next.map(|line| unclosed(line)));
        }
        None => {}
    }
    clean(&raw)
}

/// Treats the message of a commit that the agent made as its suggestion. `None` if nothing of it is left.
pub fn suggested_by_commit(message: &str) -> Option<SuggestedMessage> {
    clean(&message.lines().collect::<Vec<_>>())
}

/// Text that neither closes an issue nor mentions a user when it reaches GitHub in a commit message: `Fixes
/// #4` becomes `Fixes issue 4`, and `@octocat` becomes `octocat`. A plain `#4` that closes nothing stays. A
/// reference to an issue of another repository is reworded, because it would show up on that issue. Issue URLs
/// are recognised on every host, because GitHub Enterprise Server has its own host name.
pub fn without_references(text: &str) -> String {
    // The patterns ignore the case of all letters, not only of those in ASCII.
    if text.is_ascii() && !may_refer(text) {
        return text.to_owned();
    }
    repeated(text, references_once)
}

fn references_once(text: &str) -> String {
    let text = FOREIGN_ISSUE.replace_all(
        text,
        "${before}issue ${number}${url_number} of ${repository}${url_repository}",
    );
    let text = CLOSING.replace_all(&text, |found: &regex::Captures<'_>| {
        let found = found.get(0).map_or("", |found| found.as_str());
        OWN_ISSUE.replace_all(found, "issue ${number}").into_owned()
    });
    MENTION.replace_all(&text, "$before$name").into_owned()
}

/// Whether an ASCII text may contain a reference or a mention. Most titles contain none, and compiling the patterns
/// takes longer than the rest of the message.
fn may_refer(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    let signs = ["#", "@", "gh-", "/issues/", "/pull/", "/discussions/"];
    signs.iter().any(|sign| text.contains(sign))
}

/// The complete message: the suggestion, or `[sprag] Complete task <id>: <title>`, followed by `trailers` as
/// the last paragraph and one newline. Line breaks in the title are folded; it closes no issue, skips no workflow
/// and has no control characters.
/// The trailers are the executor's own and stay unchanged.
pub fn compose(
    suggested: Option<&SuggestedMessage>,
    task_id: &str,
    task_title: &str,
    trailers: &[(String, String)],
) -> String {
    let mut message = match suggested {
        Some(message) if message.body.is_empty() => message.subject.clone(),
        Some(message) => format!("{}\n\n{}", message.subject, message.body),
        None => {
            let (id, title) = (without_references(&fold(task_id)), harmless(task_title));
            cap_chars(&format!("[sprag] Complete task {id}: {title}"), MAX_LINE).into_owned()
        }
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

/// What a form of commit messages may name.
#[derive(Debug, Clone, Copy)]
pub struct MessageFacts<'a> {
    /// The agent's subject, or the title of the task.
    pub subject: &'a str,
    /// The id of the task.
    pub task: &'a str,
    /// The title of the task.
    pub title: &'a str,
    /// The name of the plan.
    pub plan: &'a str,
    /// The changed files.
    pub changes: &'a [String],
}

/// The subject in a form: `conventional`, or a text with names in braces.
pub fn formed(form: &str, facts: &MessageFacts<'_>) -> String {
    static CONVENTIONAL: Pattern = Pattern::new(r"^([a-z]+)(\([^()\s]+\))?!?: (\S.*)$");
    let found = CONVENTIONAL.captures(facts.subject);
    let kind = match &found {
        Some(found) => group(found, 1),
        None => kind_of(facts),
    };
    let subject = match (form, &found) {
        ("conventional", Some(_)) => facts.subject.to_owned(),
        ("conventional", None) => format!("{kind}: {}", harmless(facts.subject)),
        _ => {
            let found = found.as_ref();
            let plain = found.map_or(facts.subject, |found| group(found, 3));
            let mut text = form.to_owned();
            for (name, value) in [
                ("{subject}", plain),
                ("{type}", kind),
                ("{task}", facts.task),
                ("{title}", facts.title),
                ("{plan}", facts.plan),
            ] {
                text = text.replace(name, &harmless(value));
            }
            text
        }
    };
    fold(&subject)
}

/// The type of a change, by the files that changed, or by the title of the task if product source is among them.
fn kind_of(facts: &MessageFacts<'_>) -> &'static str {
    static REPAIR: Pattern = Pattern::new(r"(?i)\b(?:fix|bug|repair|correct|broken|crash)");
    let is_document = |path: &str| {
        let name = file_name(path);
        let mut ends = [".md", ".rst", ".adoc", ".txt"].iter();
        path.starts_with("docs/") || ends.any(|end| name.ends_with(end))
    };
    let is_ci = |path: &str| path.starts_with(".github/") || path.starts_with(".gitlab");
    let all = |is: &dyn Fn(&str) -> bool| facts.changes.iter().all(|path| is(path));
    if facts.changes.iter().any(|path| is_product_source(path)) {
        let is_repair = REPAIR.is_match(facts.title);
        if is_repair { "fix" } else { "feat" }
    } else if all(&is_ci) {
        "ci"
    } else if all(&is_document) {
        "docs"
    } else if all(&is_test) {
        "test"
    } else {
        "chore"
    }
}

/// The value of `Sprag-Task`: the plan, whose name is shortened if the line would be too long, and the task.
pub fn task_value(plan: &str, task_id: &str) -> String {
    let rest = TASK_TRAILER.len() + "/".len() + task_id.len();
    let plan: String = plan.chars().take(MAX_LINE.saturating_sub(rest)).collect();
    format!("{plan}/{task_id}")
}

/// The value of `Sprag-Run`: the page of the workflow run, or the run's id if there is no page or the line would be
/// too long.
pub fn run_value(page: Option<String>, run_id: &str) -> String {
    let fits = |page: &String| RUN_TRAILER.len() + page.chars().count() <= MAX_LINE;
    page.filter(fits).unwrap_or_else(|| run_id.to_owned())
}

/// A message without the trailers that Sprag adds.
pub fn without_own_trailers(message: &str) -> String {
    let lines: Vec<&str> = message.lines().filter(|line| !is_own(line)).collect();
    format!("{}\n", lines.join("\n").trim_end())
}

fn is_own(line: &str) -> bool {
    line.starts_with(TASK_TRAILER) || line.starts_with(RUN_TRAILER)
}

/// The title of a task as a part of a subject.
fn harmless(title: &str) -> String {
    let once = |title: &str| {
        let plain = without_controls(&fold(title));
        without_references(&fold(&SKIP.replace_all(&plain, "")))
    };
    repeated(title, once)
}

/// The maximum number of passes that remove nested forms.
const ROUNDS: usize = 8;

/// Repeats a cleaning until nothing changes, because a removal may form something that was removed before:
/// `[skip @ci]`, `Signed-off-@by:`.
fn repeated(text: &str, clean: impl Fn(&str) -> String) -> String {
    let mut text = clean(text);
    for _ in 0..ROUNDS {
        let again = clean(&text);
        if again == text {
            return text;
        }
        text = again;
    }
    // All forms which are removed have one of these signs.
    clean(&text.replace(['[', '@', '#', ':'], " "))
}

/// A message from elsewhere, sanitised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reviewed {
    /// The message as Sprag would have written it. A message by Sprag stays unchanged.
    pub text: String,
    /// The `Sprag-Run` values in its last paragraph, in order.
    pub runs: Vec<String>,
    /// The names of plans and the task ids in the `Sprag-Task` trailers of its last paragraph, in order.
    pub tasks: Vec<(String, String)>,
}

/// Sanitises a complete message with its trailers by the rules for suggestions. `None` if nothing is left.
pub fn reviewed(message: &str) -> Option<Reviewed> {
    let message = message.trim_end();
    let (head, last) = message.rsplit_once("\n\n")?;
    let (own, rest): (Vec<&str>, Vec<&str>) = last.lines().partition(|line| is_own(line));
    let mut lines: Vec<&str> = head.lines().collect();
    if !rest.is_empty() {
        lines.push("");
        lines.extend(rest);
    }
    let clean = clean(&lines)?;
    let trailers = own.iter().filter_map(|line| line.split_once(": "));
    let trailers = trailers.map(|(key, value)| (key.to_owned(), value.to_owned()));
    let trailers: Vec<(String, String)> = trailers.collect();
    let values = |wanted: &'static str| {
        let named = trailers.iter().filter(move |(key, _)| key == wanted);
        named.map(|(_, value)| value.as_str())
    };
    let task = |value: &str| {
        let (plan, id) = value.split_once('/')?;
        Some((plan.to_owned(), id.to_owned()))
    };
    Some(Reviewed {
        text: compose(Some(&clean), "", "", &trailers),
        runs: values("Sprag-Run").map(str::to_owned).collect(),
        tasks: values("Sprag-Task").filter_map(task).collect(),
    })
}

fn find_last<'a>(
    lines: &[&'a str],
    read: fn(&'a str) -> Option<&'a str>,
) -> Option<(usize, &'a str)> {
    let mut from_end = lines.iter().enumerate().rev();
    from_end.find_map(|(at, line)| read(line).map(|text| (at, text)))
}

/// The text after the marker at the beginning of a line, ignoring markup before it.
fn after_marker(line: &str) -> Option<&str> {
    let line = undecorated(line);
    let marked = line.strip_prefix(MARKER);
    Some(unclosed(marked.or_else(|| line.strip_prefix(WIDE_MARKER))?))
}

/// The text after the marker within a line. A mention of the form itself is not a suggestion.
fn after_mention(line: &str) -> Option<&str> {
    let (before, after) = line.rsplit_once(MARKER)?;
    let apart = before.ends_with(char::is_whitespace);
    let is_said = apart && !after.trim().is_empty() && !after.trim_start().starts_with('<');
    is_said.then(|| unclosed(after))
}

fn undecorated(line: &str) -> &str {
    line.trim_start_matches([' ', '\t', '>', '*', '`', '#', '_', '-'])
}

/// Drops the closing markup of a bold or code marker or line, the quotes around a whole message, and the sign with
/// which YAML begins a block.
fn unclosed(text: &str) -> &str {
    let text = text.trim();
    let closes = |rest: &&str| rest.starts_with(char::is_whitespace);
    let bold = match text.strip_prefix("**").filter(closes) {
        Some(rest) => rest.trim(),
        None if text.matches("**").count() % 2 == 1 => text.trim_end_matches('*').trim(),
        None => text,
    };
    let odd = bold.matches('`').count() % 2 == 1;
    let mut text = if odd {
        bold.trim_matches('`').trim()
    } else {
        bold
    };
    for (open, close) in [('`', '`'), ('"', '"'), ('\'', '\''), ('“', '”')] {
        let inside = text.strip_prefix(open);
        let inside = inside.and_then(|rest| rest.strip_suffix(close));
        let inside = inside.filter(|inside| !inside.contains([open, close]));
        text = inside.unwrap_or(text).trim();
    }
    let opens_block = matches!(text, "|" | "|-" | ">" | ">-");
    Some(text).filter(|_| !opens_block).unwrap_or_default()
}

/// A subject without the marks around its bold beginning, or around the whole of it.
fn without_emphasis(subject: &str) -> String {
    if subject.starts_with("**") && subject.matches("**").count() > 1 {
        return subject.replacen("**", "", 2);
    }
    let inside = |mark: char| subject.strip_prefix(mark)?.strip_suffix(mark);
    let found = ['*', '_'].into_iter().find_map(inside);
    found.unwrap_or(subject).to_owned()
}

fn is_fence_or_blank(line: &str) -> bool {
    let line = line.trim();
    line.is_empty() || line.starts_with("```") || line.starts_with("~~~")
}

/// Sanitises the lines and splits them into subject and body.
fn clean(raw: &[&str]) -> Option<SuggestedMessage> {
    let once = |text: &str| cleaned_once(text).unwrap_or_default();
    let whole = repeated(&raw.join("\n"), once);
    let (subject, body) = whole.split_once("\n\n")?;
    let (subject, body) = (subject.to_owned(), body.to_owned());
    Some(SuggestedMessage { subject, body })
}

/// The sanitised subject, a blank line, and the body.
fn cleaned_once(text: &str) -> Option<String> {
    let lines: Vec<String> = text.lines().map(without_controls).collect();
    let text = lines.join("\n");
    let text = SKIP.replace_all(&text, "");
    let mut kept: Vec<&str> = Vec::new();
    let mut dropping = false;
    for line in text.lines().map(str::trim_end) {
        let continues = dropping && line.starts_with([' ', '\t']) && !line.trim().is_empty();
        dropping = continues || is_foreign_trailer(line);
        // Like git, which joins the blank lines on both sides of a line that is left out.
        let is_second_blank = line.is_empty() && kept.last().is_some_and(|last| last.is_empty());
        if !dropping && !is_second_blank {
            kept.push(line);
        }
    }
    let first = kept.iter().position(|line| !is_fence_or_blank(line))?;
    let subject = without_emphasis(kept.get(first)?.trim());
    let placeholder = matches!(subject.as_str(), "<message>" | "<subject>");
    let mut body = kept.get(first + 1..).unwrap_or_default();
    let start = body.iter().position(|line| !is_fence_or_blank(line));
    body = body.get(start.unwrap_or(body.len())..).unwrap_or_default();
    while let Some((line, rest)) = body.split_last() {
        let is_fence = |line: &&&str| line.trim_start().starts_with("```");
        let opens = body.iter().filter(is_fence).count() % 2 == 0;
        if !line.trim().is_empty() && (!is_fence_or_blank(line) || opens) {
            break;
        }
        body = rest;
    }
    let body = without_trailers(body);
    // A reference that closes an issue may span subject and body, so both are sanitised as one text.
    let whole = without_references(&format!("{subject}\n\n{}", body.join("\n")));
    (!placeholder).then_some(whole)
}

/// The body, whose last paragraph keeps only trailers that an agent may set.
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
        let is_part = |line: &&str| line.starts_with([' ', '\t']) || TRAILER_LIKE.is_match(line);
        let begins = last.first().is_some_and(|line| TRAILER_LIKE.is_match(line));
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

/// Whether an agent may set the trailer on this line. Such trailers only refer to something.
fn is_allowed_trailer(line: &str) -> bool {
    let key = line.split(':').next().unwrap_or_default().trim();
    let mut all = ALLOWED_TRAILERS.split_whitespace();
    all.any(|allowed| key.eq_ignore_ascii_case(allowed))
}

/// A line without escape sequences and control characters, and without marks that reorder text on a screen.
fn without_controls(line: &str) -> String {
    let plain = plain(line);
    let spaced = plain.chars().map(|c| if c == '\t' { ' ' } else { c });
    spaced.filter(|&c| !is_reordering(c)).collect()
}

fn is_reordering(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

/// Whether the last paragraph already consists of trailers, so that further trailers belong to it.
fn ends_in_trailers(body: &str) -> bool {
    let last = body.rsplit("\n\n").next().unwrap_or_default();
    !last.trim().is_empty() && last.lines().all(|line| TRAILER.is_match(line))
}

/// Whether a line, anywhere, is a trailer that an agent may not set. A single word before a colon is too
/// often prose, so it counts only in the last paragraph.
fn is_foreign_trailer(line: &str) -> bool {
    FOREIGN_TRAILER.is_match(line) || (COMPOUND_TRAILER.is_match(line) && !is_allowed_trailer(line))
}

/// One line: every line break, with the whitespace around it, becomes one space.
fn fold(text: &str) -> String {
    let mut lines: Vec<&str> = text.split(['\n', '\r']).map(str::trim).collect();
    lines.retain(|line| !line.is_empty());
    lines.join(" ")
}

static SKIP: Pattern = Pattern::new(
    r"(?i) ?\[\s*(?:(?:skip|no)[\s_-]+ci|ci[\s_-]+skip|skip[\s_-]+actions|actions[\s_-]+skip)\s*\]",
);
/// All letters outside of ASCII count as parts of a key, without folding their case: both are quick to compile.
static FOREIGN_TRAILER: Pattern = Pattern::new(
    r"(?i)^\s*(?:sprag-(?-i:[0-9A-Za-z_\x{80}-\x{10FFFF}-]*)|co-authored-by|signed-off-by|reviewed-by|acked-by|skip-checks)\s*:",
);
/// A key of several words before a colon, the usual form of trailers about authorship.
static COMPOUND_TRAILER: Pattern = Pattern::new(r"^[A-Za-z0-9]+(?:-[A-Za-z0-9]+)+\s*:");
/// A line that git takes for a trailer if every line of the last paragraph is one.
static TRAILER_LIKE: Pattern = Pattern::new(r"^(?:[A-Za-z0-9-]+\s*:|\(cherry picked from commit )");
/// A keyword that closes an issue, with the references after it. It allows more text between them than GitHub
/// does. Names of owners and repositories are ASCII, and so are the classes here: Unicode's `\w` takes
/// milliseconds to compile.
static CLOSING: Pattern = Pattern::new(
    r"(?i)\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?)\b[^A-Za-z0-9#]{0,12}(?:GH-|[0-9A-Za-z_.-]*#)[0-9]+(?:(?:\s*(?:,|&|and)\s*)+(?:GH-|#)[0-9]+)*",
);
static OWN_ISSUE: Pattern = Pattern::new(r"(?i)(?:\bGH-|[0-9A-Za-z_.-]*#)(?<number>[0-9]+)");
static FOREIGN_ISSUE: Pattern = Pattern::new(
    r"(?i)(?<before>^|[^0-9A-Za-z_./-])(?:(?:https?://[^\s/]+|[0-9A-Za-z_-]+(?:\.[0-9A-Za-z_-]+)+(?::[0-9]+)?)/(?<url_repository>[0-9A-Za-z_.-]+/[0-9A-Za-z_.-]+)/(?:issues|pull|discussions)/(?<url_number>[0-9]+)|(?<repository>[0-9A-Za-z_.-]+/[0-9A-Za-z_.-]+)#(?<number>[0-9]+)\b)",
);
static MENTION: Pattern = Pattern::new(r"(?<before>^|[^A-Za-z0-9_])@+(?<name>[A-Za-z0-9])");
static TRAILER: Pattern = Pattern::new(r"^[A-Za-z0-9][A-Za-z0-9-]*: \S");

#[cfg(test)]
mod tests;
