//! gcc, clang and the linkers that they call.

use super::{Tool, ToolKind};
use crate::checks::diagnostic::{Location, Output, Severity, Sink};
use crate::pattern::{Pattern, group};

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
            let place = if is_source(place.path) {
                place
            } else {
                Location::default()
            };
            sink.error(at, place, group(&found, 3));
        } else if let Some(found) = LINKER.captures(line) {
            linker(lines, at, group(&found, 1), sink);
        } else if let Some(found) = USED.captures(line) {
            if is_source(group(&found, 1)) {
                sink.claim(at);
            }
        } else if let Some(found) = MESSAGE.captures(line) {
            message(lines, at, &found, sink);
        }
    }
}

/// Reads a compiler message with its notes. A note without a message is left to other parsers.
fn message(lines: &[&str], at: usize, found: &regex::Captures<'_>, sink: &mut Sink<'_>) {
    let place = Location::of(found);
    let severity = match group(found, 4) {
        "warning" => Severity::Warning,
        "note" => return,
        _ => Severity::Error,
    };
    if !is_source(place.path) {
        return;
    }
    let text = group(found, 5);
    let flagged = FLAG.captures(text);
    let (text, code) = match &flagged {
        Some(found) => (group(found, 1), Some(group(found, 2))),
        None => (text, None),
    };
    let place = match sink.relative(place.path) {
        Some(_) => place,
        None => reached_from(lines, at, sink).unwrap_or(place),
    };
    let code = code.map(|code| format!("-W{code}"));
    let text = with_notes(lines, at, text, sink);
    let shown = lines
        .iter()
        .skip(at + 1)
        .take_while(|line| line.starts_with(' '));
    let end = at + 1 + shown.take(REACH).count();
    sink.push(at, place, severity, code.as_deref(), &text)
        .lines(at..end);
}

fn with_notes(lines: &[&str], at: usize, text: &str, sink: &mut Sink<'_>) -> String {
    let mut text = text.to_owned();
    let mut notes = 0;
    for (below, line) in lines.iter().enumerate().skip(at + 1).take(REACH) {
        let Some(found) = MESSAGE.captures(line) else {
            continue;
        };
        if group(&found, 4) != "note" {
            break;
        }
        sink.claim(below);
        if notes == NOTES {
            continue;
        }
        notes += 1;
        let note = group(&found, 5);
        text.push_str(&match sink.relative(group(&found, 1)) {
            Some(path) => format!("\nnote: {path}:{}: {note}", group(&found, 2)),
            None => format!("\nnote: {note}"),
        });
    }
    text
}

/// For a message about a file outside the project: the nearest location above it, inside the project, that
/// included the file or used a template in it.
fn reached_from<'a>(lines: &[&'a str], at: usize, sink: &Sink<'_>) -> Option<Location<'a>> {
    let above = lines.get(at.saturating_sub(REACH)..at)?;
    above
        .iter()
        .rev()
        .take_while(|line| !MESSAGE.is_match(line))
        .filter_map(|line| INCLUDED.captures(line).or_else(|| USED.captures(line)))
        .map(|found| Location::of(&found))
        .find(|place| sink.relative(place.path).is_some())
}

fn linker(lines: &[&str], at: usize, text: &str, sink: &mut Sink<'_>) {
    let below = lines.iter().skip(at + 1).take(4);
    let found = below
        .take_while(|line| line.starts_with(">>> "))
        .find_map(|line| REFERENCED.captures(line));
    let place = found
        .as_ref()
        .map(|found| Location::new(group(found, 1), group(found, 2)));
    sink.error(at, place.unwrap_or_default(), text);
}

/// Extensions of files that C compilers compile or that these include.
const ENDINGS: [&str; 24] = [
    "c", "cc", "cpp", "cxx", "c++", "h", "hh", "hpp", "hxx", "h++", "inc", "inl", "ipp", "tcc",
    "tpp", "m", "mm", "s", "cu", "cuh", "y", "l", "def", "cppm",
];

fn is_source(path: &str) -> bool {
    let name = path.rsplit(['/', '\\']).next().unwrap_or_default();
    match name.rsplit_once('.') {
        Some((stem, ending)) => {
            !stem.is_empty() && ENDINGS.contains(&ending.to_ascii_lowercase().as_str())
        }
        // The headers of the C++ library have no extension.
        None => path.contains("/include/"),
    }
}
