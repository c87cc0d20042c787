//! Normalises a message for the search for cues: plain quotes, no code, no markup, split into sentences that
//! record the kind of line that they were on.

use crate::pattern::Pattern;

/// Bytes read from the beginning and from the end of a long message. The part between them is never read, so
/// the cost is bounded.
const REGION_BYTES: usize = 12 * 1024;

/// A line longer than this, in bytes, is not joined with the next one.
const JOIN_LIMIT: usize = 2000;

/// A line with fewer characters than this that ends without punctuation is a sentence of its own.
const WRAPPED_LINE_MIN: usize = 50;

/// The kind of line that a sentence was on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Kind {
    /// Prose.
    Prose,
    /// A Markdown heading, or a short line that is entirely bold.
    Heading,
    /// A list item or a table row.
    Item,
    /// A code block, which was removed; its sentence is empty.
    #[default]
    Code,
}

/// One sentence.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Sentence {
    /// The sentence as it is quoted to a person.
    pub(super) shown: String,
    /// The sentence in lower case, for matching.
    pub(super) text: String,
    /// The kind of line that it was on.
    pub(super) kind: Kind,
    /// Whether the line had a tick mark.
    pub(super) ticked: bool,
}

/// A message in normal form.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Normalised {
    /// The sentences in order; a code block is an empty one.
    pub(super) sentences: Vec<Sentence>,
    /// The `KEY: value` lines of status blocks, in lower case.
    pub(super) status: Vec<(String, String)>,
    /// Whether it contains an edit in a format that a tool applies.
    pub(super) edits: bool,
}

/// Normalises the head and the tail of `text`.
pub(super) fn normalise(text: &str) -> Normalised {
    let plain = plain_characters(&regions(text));
    let mut normal = Normalised::default();
    let mut pending: Option<Line> = None;
    for block in without_code(&plain) {
        let line = match block {
            Block::Code(body) => {
                flush(&mut pending, &mut normal);
                for line in body {
                    read_status(line, &mut normal.status);
                    normal.edits |= EDIT.is_match(line);
                }
                normal.sentences.push(Sentence::default());
                continue;
            }
            Block::Text(line) => line,
        };
        if line.trim().is_empty() || is_frame(line) || read_status(line, &mut normal.status) {
            flush(&mut pending, &mut normal);
            continue;
        }
        let next = read_line(line);
        if let Some(open) = pending.as_mut().filter(|open| continues(open, &next)) {
            open.text.push(' ');
            open.text.push_str(&next.text);
        } else {
            flush(&mut pending, &mut normal);
            pending = Some(next);
        }
    }
    flush(&mut pending, &mut normal);
    normal
}

/// The whole text if it is short, otherwise its head and its tail as two paragraphs.
fn regions(text: &str) -> String {
    if text.len() <= 2 * REGION_BYTES {
        return text.to_owned();
    }
    let head = text.floor_char_boundary(REGION_BYTES);
    let tail = text.ceil_char_boundary(text.len() - REGION_BYTES);
    format!("{}\n\n{}", &text[..head], &text[tail..])
}

/// Replaces typographic characters with plain ones, and drops colours, control characters and decoration.
fn plain_characters(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for c in ANSI.replace_all(text, "").chars() {
        match c {
            '\u{2018}' | '\u{2019}' | '\u{201b}' | '\u{02bc}' | '\u{ff07}' | '\u{00b4}' => {
                plain.push('\'');
            }
            '\u{201c}' | '\u{201d}' | '\u{201e}' | '\u{00ab}' | '\u{00bb}' => plain.push('"'),
            '\u{2010}'..='\u{2015}' | '\u{2212}' => plain.push('-'),
            '\u{2026}' => plain.push_str("..."),
            '\u{ff1a}' => plain.push_str(": "),
            '\u{ff0c}' => plain.push_str(", "),
            '\u{00a0}' | '\u{202f}' | '\u{3000}' | '\t' => plain.push(' '),
            '\u{ff1f}' => plain.push_str("? "),
            '\u{ff01}' => plain.push_str("! "),
            '\u{2705}' | '\u{2714}' | '\u{2713}' | '\u{2611}' => plain.push(TICK),
            '\n' => plain.push('\n'),
            c if c.is_control() || is_decoration(c) => {}
            c => plain.push(c),
        }
    }
    plain
}

/// The character that replaces every tick mark.
const TICK: char = '\u{2713}';

fn is_decoration(c: char) -> bool {
    matches!(c,
        '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}' | '\u{fe0f}'
        | '\u{2190}'..='\u{21ff}' | '\u{2300}'..='\u{23ff}' | '\u{25a0}'..='\u{2712}'
        | '\u{2715}'..='\u{27bf}' | '\u{2b00}'..='\u{2bff}' | '\u{1f000}'..='\u{1faff}')
}

enum Block<'a> {
    Text(&'a str),
    Code(Vec<&'a str>),
}

/// Separates fenced code from text. If the number of fences is odd and the first one names no language, the
/// text was cut inside a code block. A fence that names a language always opens a block, so an error does not
/// spread past it.
fn without_code(text: &str) -> Vec<Block<'_>> {
    let mut blocks = Vec::new();
    let mut fences = text.lines().filter_map(|line| FENCE.captures(line));
    let cut = fences.next().is_some_and(|first| first[1].is_empty()) && fences.count() % 2 == 0;
    let mut open: Option<Vec<&str>> = cut.then(Vec::new);
    for line in text.lines() {
        let Some(fence) = FENCE.captures(line) else {
            match &mut open {
                Some(body) => body.push(line),
                None => blocks.push(Block::Text(line)),
            }
            continue;
        };
        let opens = fence.get(1).is_some_and(|info| !info.is_empty());
        match open.take() {
            Some(body) if opens => {
                blocks.extend(body.into_iter().map(Block::Text));
                open = Some(Vec::new());
            }
            Some(body) => blocks.push(Block::Code(body)),
            None => open = Some(Vec::new()),
        }
    }
    // A block that never closes is just as likely a stray fence followed by text.
    blocks.extend(open.into_iter().flatten().map(Block::Text));
    blocks
}

/// Records a `KEY: value` line of a status block. The keys are in capitals. The values are claims like any
/// other, and most are ignored.
fn read_status(line: &str, status: &mut Vec<(String, String)>) -> bool {
    if MARKER.is_match(line) {
        return true;
    }
    let Some(found) = STATUS.captures(line) else {
        return false;
    };
    status.push((found[1].to_lowercase(), found[2].trim().to_lowercase()));
    true
}

/// Whether a line is a horizontal rule, or a line that a wrapper adds to what it records.
fn is_frame(line: &str) -> bool {
    RULE.is_match(line) || (line.len() <= FRAME_LIMIT && STAMP.is_match(line))
}

/// The maximum length of a wrapper's line, in bytes.
const FRAME_LIMIT: usize = 120;

struct Line {
    text: String,
    kind: Kind,
    ticked: bool,
}

fn read_line(line: &str) -> Line {
    let line = line.trim().trim_start_matches('>').trim_start();
    let ticked = line.contains(TICK) || line.contains("[x]") || line.contains("[X]");
    let bold = BOLD_LINE.is_match(line) && line.chars().count() <= 90;
    let is_title = bold && !line.contains('?') && !line.trim_end_matches('*').ends_with('.');
    let marked = |pattern: &Pattern| pattern.find_at(line, 0).map(|found| &line[found.end..]);
    let (kind, rest) = match (marked(&HEADING), marked(&ITEM)) {
        (Some(rest), _) => (Kind::Heading, rest),
        (None, Some(rest)) => (Kind::Item, rest),
        _ if line.starts_with('|') => (Kind::Item, line),
        _ if is_title => (Kind::Heading, line),
        _ => (Kind::Prose, line),
    };
    let rest = TAG.replace_all(rest, "");
    let text = LINK.replace_all(&rest, "$1");
    let text = INLINE_CODE.replace_all(&text, "`x`");
    let text = text.replace(['*', '`', TICK], "").replace('|', " ");
    let text = text.replace("__", "").replace("[x]", "").replace("[ ]", "");
    let text = SPACES.replace_all(text.trim(), " ").into_owned();
    Line { text, kind, ticked }
}

/// Whether `next` continues the sentence in `open`: prose that is wrapped at a column.
fn continues(open: &Line, next: &Line) -> bool {
    open.kind != Kind::Heading
        && next.kind == Kind::Prose
        && open.text.len() < JOIN_LIMIT
        && open.text.chars().count() >= WRAPPED_LINE_MIN
        && !open.text.ends_with(['.', '!', '?', ':', ';', '。'])
        && next.text.starts_with(char::is_lowercase)
}

fn flush(pending: &mut Option<Line>, normal: &mut Normalised) {
    let Some(line) = pending.take() else { return };
    let mut start = 0;
    while start < line.text.len() {
        let found = SENTENCE_END.find_at(&line.text, start);
        let end = found.map_or(line.text.len(), |found| found.end);
        let shown = line.text[start..end].trim();
        start = end;
        if shown.chars().any(char::is_alphanumeric) {
            normal.sentences.push(Sentence {
                shown: shown.to_owned(),
                text: shown.to_lowercase(),
                kind: line.kind,
                ticked: line.ticked,
            });
        }
    }
}

static ANSI: Pattern = Pattern::new(r"\x1b\[[0-9;?]*[ -/]*[@-~]");
static FENCE: Pattern = Pattern::new(r"^\s*(?:`{3,}|~{3,})\s*([\w+#.:/-]*)[^`]*$");
static MARKER: Pattern = Pattern::new(r"^\W*-{2,}\s*[A-Z][A-Z_ ]{2,}\s*-{2,}\W*$");
static STATUS: Pattern =
    Pattern::new(r"^\W{0,4}([A-Z]+(?:_[A-Z]+)+|STATUS|RECOMMENDATION|STORY)\W{0,3}:\s*(.*)$");
static RULE: Pattern = Pattern::new(r"^\W+$");
static STAMP: Pattern = Pattern::new(
    r"^[^.!?]{0,40}\b\d{1,2}:\d{2}:\d{2}\b[^.!?]*\b20\d\d\b|^\W*20\d\d-\d\d-\d\d[T ]\d\d:\d\d\S*\W*$",
);
static EDIT: Pattern = Pattern::new(r"^(?:>{5,9} (?:REPLACE|UPDATED)|\*{3} End Patch)\s*$");
static TAG: Pattern = Pattern::new(r"^(?:\[[A-Z?!]{1,6}\]\s*)+");
static HEADING: Pattern = Pattern::new(r"^#{1,6}\s+");
static ITEM: Pattern = Pattern::new(r"^(?:[-*+•·]|\d{1,3}[.)]|[a-zA-Z]\))\s+(?:\[[ xX]\]\s*)?");
static BOLD_LINE: Pattern = Pattern::new(r"^\*\*[^*]+\*\*:?$");
static LINK: Pattern = Pattern::new(r"\[([^\]]*)\]\((?:<[^>]*>|[^)]*)\)");
static INLINE_CODE: Pattern = Pattern::new(r"`[^`]+`");
static SPACES: Pattern = Pattern::new(r"\s+");
static SENTENCE_END: Pattern = Pattern::new(r#"[.!?]+["')\]]*\s+|[。]+\s*"#);
