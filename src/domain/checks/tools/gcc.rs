//! gcc, clang and the linkers that they call.

use super::shape::severity;
use super::{Tool, ToolKind};
use crate::checks::diagnostic::{Location, Output, Sink, below};
use crate::pattern::{Pattern, group};
use regex::Captures;

/// See [`Tool`].
pub(super) const TOOL: Tool = Tool {
    name: "gcc",
    kind: ToolKind::Code,
    signs: &[
        r"(?i)^(?:[a-z]:)?[^:\n]*(?:/include/[^:\n]*|\.(?:c|cc|cpp|cxx|c\+\+|h|hh|hpp|hxx|h\+\+|inc|inl|ipp|tcc|tpp|mm?|s|cuh?|y|l|def|cppm)):\d{1,7}(?::\d{1,6})?: (?:fatal error|error|warning): ",
        r"(?:undefined reference to|multiple definition of) ",
        r"^(?:\S*/)?(?:ld(?:\.\w+)?|ld64\.lld|lld-link): ",
    ],
    read,
    ..Tool::NOTHING
};

static MESSAGE: Pattern = Pattern::new(
    r"^((?:[A-Za-z]:[\\/])?[^:]+):(\d{1,7})(?::(\d{1,6}))?: (fatal error|error|warning|note): (.+)$",
);
static FLAG: Pattern = Pattern::new(r"^(.+?) \[-W(?:error(?:=|,-W))?([\w+=-]+)\]$");
static INCLUDED: Pattern =
    Pattern::new(r"^(?:In file included from|\s+from) (\S[^:]*):(\d{1,7})(?::(\d{1,6}))?[:,]$");
/// The place where a template was used: not a message of its own.
static USED: Pattern = Pattern::new(
    r"^((?:[A-Za-z]:[\\/])?[^:]+):(\d{1,7})(?::(\d{1,6}))?:   (?:required (?:from|by)|recursively required|in .*expansion of) ?",
);
static LINKED: Pattern = Pattern::new(
    r"^(?:\S*ld(?:\.\w+)?: )?([^\s:][^:]*):(?:\([^()]*\)|(\d{1,7})): ((?:undefined reference to|multiple definition of) .+)$",
);
static LINKER: Pattern = Pattern::new(
    r"^(?:\S*/)?(?:ld(?:\.\w+)?|ld64\.lld|lld-link): (?:error: )?((?:undefined symbol: |cannot find |library not found|unable to find library ).+)$",
);
static REFERENCED: Pattern =
    Pattern::new(r"^>>> referenced by (?:.* \()?([^\s():]+):(\d{1,7})\)?$");

/// The maximum number of notes kept with a message.
const NOTES: usize = 6;
/// How many lines above a message its include or template trace may start, and how many lines below it its
/// notes may end.
const REACH: usize = 60;

fn read(output: Output<'_>, sink: &mut Sink<'_>) {
    let lines = output.lines;
    for (at, line) in lines.iter().enumerate() {
        if let Some(found) = LINKED.captures(line) {
            let place = Location::new(group(&found, 1), group(&found, 2));
            let place = Some(place).filter(|place| SOURCE.is_match(place.path));
            sink.error(at, place.unwrap_or_default(), group(&found, 3));
        } else if let Some(found) = LINKER.captures(line) {
            let users = below(lines, at, 4, |line| line.starts_with(">>> "));
            let user = REFERENCED.in_lines(&users).next();
            let place = user.map(|(_, user)| Location::of(&user));
            sink.error(at, place.unwrap_or_default(), group(&found, 1));
        } else if let Some(found) = USED.captures(line) {
            if SOURCE.is_match(group(&found, 1)) {
                sink.claim(at);
            }
        } else if let Some(found) = MESSAGE.captures(line) {
            message(lines, at, &found, sink);
        }
    }
}

/// Reads a compiler message with its notes. A note without a message is left to other parsers.
fn message(lines: &[&str], at: usize, found: &Captures<'_>, sink: &mut Sink<'_>) {
    let place = Location::of(found);
    if !SOURCE.is_match(place.path) || group(found, 4) == "note" {
        return;
    }
    let text = group(found, 5);
    let flagged = FLAG.captures(text);
    let (text, code) = match &flagged {
        Some(found) => (group(found, 1), Some(format!("-W{}", group(found, 2)))),
        None => (text, None),
    };
    // A file outside of the project is reached from the nearest place above, inside the project, that included the file
    // or used a template in it.
    let above = lines.get(at.saturating_sub(REACH)..at).unwrap_or_default();
    let above = above
        .iter()
        .rev()
        .take_while(|line| !MESSAGE.is_match(line));
    let mut users = above
        .filter_map(|line| INCLUDED.captures(line).or_else(|| USED.captures(line)))
        .map(|found| Location::of(&found));
    let is_inside = |place: &Location<'_>| sink.relative(place.path).is_some();
    let place = if is_inside(&place) {
        place
    } else {
        users.find(is_inside).unwrap_or(place)
    };
    let text = with_notes(lines, at, text, sink);
    let shown = below(lines, at, REACH, |line| line.starts_with(' '));
    sink.push(at, place, severity(group(found, 4)), code.as_deref(), &text)
        .lines(at..at + 1 + shown.len());
}

fn with_notes(lines: &[&str], at: usize, text: &str, sink: &mut Sink<'_>) -> String {
    let mut said = vec![text.to_owned()];
    let messages = MESSAGE.in_lines(lines.get(at + 1..).unwrap_or_default());
    let notes = messages.take_while(|(below, found)| *below < REACH && group(found, 4) == "note");
    for (below, found) in notes {
        sink.claim(at + 1 + below);
        let [line, note] = [2, 5].map(|index| group(&found, index));
        said.push(match sink.relative(group(&found, 1)) {
            Some(path) => format!("note: {path}:{line}: {note}"),
            None => format!("note: {note}"),
        });
    }
    said.truncate(1 + NOTES);
    said.join("\n")
}

/// A file that C compilers compile or that these include. The headers of the C++ library have no extension.
static SOURCE: Pattern = Pattern::new(
    r"(?i)[^/\\]\.(?:c|cc|cpp|cxx|c\+\+|h|hh|hpp|hxx|h\+\+|inc|inl|ipp|tcc|tpp|mm?|s|cuh?|y|l|def|cppm)$|/include/(?:.*[/\\])?[^./\\]*$",
);
