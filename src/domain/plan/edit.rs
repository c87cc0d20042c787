//! Sets one key of a mapping in a text and leaves everything else unchanged.

use crate::yaml::{Entry, Node, Style, Value};

/// A range of a text and its replacement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Splice {
    pub start: usize,
    pub end: usize,
    pub new: String,
}

impl Splice {
    pub fn new(start: usize, end: usize, new: &str) -> Self {
        Self {
            start,
            end,
            new: new.to_owned(),
        }
    }
}

/// Applies all splices, those at the same place in the given order. Returns `None` if two of them overlap.
pub(super) fn applied(text: &str, mut splices: Vec<Splice>) -> Option<String> {
    splices.sort_by_key(|splice| splice.start);
    let added: usize = splices.iter().map(|splice| splice.new.len()).sum();
    let mut out = String::with_capacity(text.len() + added);
    let mut from = 0;
    for splice in splices {
        out.push_str(text.get(from..splice.start)?);
        out.push_str(&splice.new);
        from = splice.end;
    }
    out.push_str(text.get(from..)?);
    Some(out)
}

/// The splice that sets `key` of `map` to `rendered`, or `None` if the text is written in an unsupported way.
/// `map` is a mapping of the tree of `text`; `rendered` is a plain word, a number, a quoted text or a `{ …
/// }`.
pub(super) fn key_splice(
    text: &str,
    map: &Node,
    key: &str,
    rendered: &str,
    json: bool,
) -> Option<Splice> {
    let Value::Map { entries, flow } = &map.value else {
        return None;
    };
    let direct: Vec<&Entry> = entries.iter().filter(|entry| !entry.merged).collect();
    if let Some(entry) = direct.iter().find(|entry| entry.key == key) {
        return replace(text, entry, rendered, json);
    }
    let pair = if json {
        format!("\"{key}\": {}", as_json(rendered))
    } else {
        format!("{key}: {rendered}")
    };
    if *flow {
        insert_in_flow(text, map, &direct, &pair)
    } else {
        insert_in_block(text, &direct, &pair)
    }
}

/// The splices that add these texts to the list under `key` of `map`, in the way in which it is written.
pub(super) fn list_splice(
    text: &str,
    map: &Node,
    key: &str,
    new: &[&str],
    json: bool,
) -> Option<Splice> {
    let list = map.get(key)?;
    let quoted = |word: &&str| serde_json::Value::from(*word).to_string();
    let quoted: Vec<String> = new.iter().map(quoted).collect();
    let Some(last) = list.items().last() else {
        return key_splice(text, map, key, &format!("[{}]", quoted.join(", ")), json);
    };
    let is_flow = text.get(list.span.clone())?.starts_with('[');
    let before = text.get(line_start(text, last.span.start)..last.span.start)?;
    if !is_flow && before.trim() != "-" {
        return None;
    }
    let separator = if is_flow {
        ", ".to_owned()
    } else {
        format!("{}{before}", line_break(text, last.span.start))
    };
    let added = quoted.iter().flat_map(|word| [separator.as_str(), word]);
    let end = last.span.end;
    Some(Splice::new(end, end, &added.collect::<String>()))
}

fn replace(text: &str, entry: &Entry, rendered: &str, json: bool) -> Option<Splice> {
    let value = &entry.value;
    if value.is_null() && value.span.is_empty() {
        let after = text.get(entry.key_span.end..)?;
        let colon = entry.key_span.end + after.find(':')? + 1;
        return Some(Splice::new(colon, colon, &format!(" {rendered}")));
    }
    let old = text.get(value.span.clone())?;
    let is_word = !rendered.starts_with(['{', '[', '"', '\''])
        && !rendered.bytes().all(|b| b.is_ascii_digit());
    let new = match (&value.value, old.chars().next()) {
        _ if json => as_json(rendered),
        (Value::Scalar { .. }, Some(quote @ ('"' | '\''))) if is_word => {
            format!("{quote}{rendered}{quote}")
        }
        _ => rendered.to_owned(),
    };
    Some(Splice::new(value.span.start, value.span.end, &new))
}

fn insert_in_flow(text: &str, map: &Node, direct: &[&Entry], pair: &str) -> Option<Splice> {
    let Some(last) = direct.last() else {
        let inside = map.span.start + 1;
        return Some(Splice::new(inside, inside, &format!(" {pair} ")));
    };
    let end = last.value.span.end.max(last.key_span.end);
    let line_start = line_start(text, last.key_span.start);
    let before = text.get(line_start..last.key_span.start)?;
    let separator = if line_start > 0 && before.trim().is_empty() {
        format!(",{}{before}", line_break(text, line_start))
    } else {
        ", ".to_owned()
    };
    Some(Splice::new(end, end, &format!("{separator}{pair}")))
}

/// Inserts after the line of an entry whose end is certain, preferably one of Sprag's own keys; otherwise
/// before the first key.
fn insert_in_block(text: &str, direct: &[&Entry], pair: &str) -> Option<Splice> {
    const NEIGHBOURS: [&str; 5] = ["attempts", "status", "done", "title", "id"];
    let mut certain = direct.iter().filter(|entry| end_of(text, entry).is_some());
    let named = |key: &&str| certain.clone().find(|entry| entry.key == *key);
    let neighbour = NEIGHBOURS.iter().find_map(named);
    let Some(neighbour) = neighbour.or_else(|| certain.next_back()) else {
        let first = direct.first()?.key_span.start;
        let line_start = line_start(text, first);
        let indent = blanks(text.get(line_start..first)?);
        let line_break = line_break(text, line_start.max(first));
        let inserted = format!("{pair}{line_break}{indent}");
        return Some(Splice::new(first, first, &inserted));
    };
    let key_start = neighbour.key_span.start;
    let indent = blanks(text.get(line_start(text, key_start)..key_start)?);
    let end = end_of(text, neighbour)?;
    let (at, inserted) = match text.get(end..)?.find('\n') {
        Some(newline) => {
            let at = end + newline + 1;
            (at, format!("{indent}{pair}{}", line_break(text, at)))
        }
        None => (
            text.len(),
            format!("{}{indent}{pair}", line_break(text, text.len())),
        ),
    };
    Some(Splice::new(at, at, &inserted))
}

/// The end of an entry, unless it is a block whose end depends on what follows.
fn end_of(text: &str, entry: &Entry) -> Option<usize> {
    let value = &entry.value;
    let is_certain = match &value.value {
        Value::Scalar { style, .. } => *style != Style::Block,
        Value::List { .. } | Value::Map { .. } => {
            text.get(value.span.clone())?.starts_with(['[', '{', '*'])
        }
    };
    // An empty value has no place of its own: its line is that of the key.
    let end = Some(value.span.end).filter(|_| !value.span.is_empty());
    let end = end.unwrap_or_default().max(entry.key_span.end);
    is_certain.then_some(end)
}

/// The last line break before `offset`, or else the first of the text.
pub(super) fn line_break(text: &str, offset: usize) -> &'static str {
    let before = &text[..offset.min(text.len())];
    let newline = before.rfind('\n').or_else(|| text.find('\n'));
    match newline {
        Some(newline) if text[..newline].ends_with('\r') => "\r\n",
        _ => "\n",
    }
}

fn line_start(text: &str, offset: usize) -> usize {
    text[..offset].rfind('\n').map_or(0, |newline| newline + 1)
}

fn blanks(prefix: &str) -> String {
    " ".repeat(prefix.chars().filter(|&c| c != '\u{feff}').count())
}

fn as_json(rendered: &str) -> String {
    let is_value = rendered.starts_with(['"', '{', '['])
        || matches!(rendered, "true" | "false")
        || rendered.bytes().all(|byte| byte.is_ascii_digit());
    let quote = if is_value { "" } else { "\"" };
    format!("{quote}{rendered}{quote}")
}
