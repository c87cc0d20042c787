//! Keys of a task in the lines below its heading or its box.

use super::Lines;
use crate::pattern::Pattern;
use crate::plan::TaskStatus;
use crate::plan::native::{Draft, OWNED_KEYS, read_task_entry};
use crate::plan::schema::TASK_KEYS;
use crate::settings;
use crate::suggest::did_you_mean;
use crate::text::has_word;
use crate::text_error::{Fault, Position};
use crate::yaml;
use std::ops::Range;

/// Reads the keys in the first lines of a task's text into the draft. Returns where they are.
pub(super) fn take_keys(
    draft: &mut Draft,
    lines: &Lines<'_>,
    range: Range<usize>,
    with_states: bool,
    warnings: &mut Vec<Fault>,
) -> Result<Vec<Range<usize>>, Fault> {
    let known = TASK_KEYS.iter().copied().chain(settings::names());
    let is_known = |key: &str| {
        let is_text = matches!(key, "title" | "description");
        let is_readable = with_states || !OWNED_KEYS.contains(&key);
        known.clone().any(|name| name == key) && !is_text && is_readable
    };
    let text = dedented(lines.text, &range);
    let mut text = text.into_iter().peekable();
    let mut found = Vec::new();
    while let Some((start, line)) = text.next_if(|(_, line)| {
        line.trim().is_empty() || key_of(line).is_some() || written_otherwise(line).is_some()
    }) {
        let at = Position::of_line(lines.position(start).line);
        let Some(key) = key_of(line) else {
            match written_otherwise(line) {
                Some((key, value)) if with_states && says_done(&key, value) => {
                    draft.status = TaskStatus::Done;
                }
                Some((key, value)) if key != "status" && is_known(&key) => {
                    let message =
                        format!("this line is read as text: as a key it is `{key}: {value}`");
                    warnings.push(Fault::new(at, message));
                }
                _ => {}
            }
            continue;
        };
        if !is_known(key) {
            let suggestion = did_you_mean(key, known.clone());
            let message = format!(
                "`{key}` is not a key of a task here: the line is read as text{suggestion}"
            );
            warnings.push(Fault::new(at, message));
            continue;
        }
        let (_, begun) = line.split_once(':').unwrap_or_default();
        let is_open =
            begun.trim().is_empty() || begun.trim_start().starts_with(['|', '>', '[', '{']);
        let continues = |line: &str| {
            let is_item = line.starts_with("- ") && !line.starts_with("- [");
            is_open && (line.starts_with([' ', '\t', ']', '}']) || is_item)
        };
        let mut value = line.to_owned();
        let is_more = |(_, line): &(usize, &str)| continues(line) && !line.trim().is_empty();
        while let Some((_, line)) = text.next_if(is_more) {
            value.push_str(line);
        }
        let end = text.peek().map_or(range.end, |(start, _)| *start);
        found.push(start..end);
        let moved = |mut fault: Fault| {
            fault.at.line += at.line - 1;
            fault
        };
        let root = yaml::parse(&value).map_err(moved)?;
        let entries = root.iter().flat_map(yaml::Node::entries);
        for entry in entries.filter(|entry| !entry.value.is_null()) {
            read_task_entry(draft, entry).map_err(moved)?;
        }
    }
    Ok(found)
}

/// The lines in a range, each with its offset and without the indentation of the first one.
fn dedented<'t>(text: &'t str, range: &Range<usize>) -> Vec<(usize, &'t str)> {
    let blank = |line: &str| line.len() - line.trim_start_matches([' ', '\t']).len();
    let lines = text[range.clone()].split_inclusive('\n');
    let first = lines.clone().find(|line| !line.trim().is_empty());
    let indent = first.map_or(0, blank);
    let mut start = range.start;
    let line = |line: &'t str| {
        let from = start;
        start += line.len();
        (from, &line[blank(line).min(indent)..])
    };
    lines.map(line).collect()
}

/// The key at the beginning of a line: lower-case words joined by `_`.
fn key_of(line: &str) -> Option<&str> {
    static KEY: Pattern = Pattern::new(r"^([a-z][a-z_]*):(?: |\s*$)");
    Some(KEY.captures(line)?.get(1)?.as_str())
}

/// The key and the value of a line that writes a key as prose does: `- verify: make`, `**Depends on:** a`.
fn written_otherwise(line: &str) -> Option<(String, &str)> {
    let line = line.trim().trim_start_matches(['-', '*', ' ']);
    let (key, value) = line.split_once(':')?;
    let key = key.trim_end_matches('*').to_lowercase().replace(' ', "_");
    let value = value.trim_matches(['*', ' ']);
    let is_key = key.chars().all(|c| c.is_ascii_lowercase() || c == '_');
    (is_key && !value.is_empty()).then_some((key, value))
}

/// Whether a line is the state of a task that is done: `**Status**: Complete`.
fn says_done(key: &str, value: &str) -> bool {
    let word = value.trim_matches(|c: char| !c.is_alphanumeric());
    key == "status" && has_word("complete completed done finished", &word.to_lowercase())
}
