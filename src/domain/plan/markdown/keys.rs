//! Keys of a task in the lines below its heading or its box.

use super::outline::{options, without_ranges};
use crate::plan::TaskStatus;
use crate::plan::kind::only_commits;
use crate::plan::native::{Draft, OWNED_KEYS, TASK_KEYS, read_task_entry};
use crate::settings;
use crate::suggest::did_you_mean;
use crate::text::has_word;
use crate::text_error::{Fault, Position};
use crate::yaml;
use pulldown_cmark::{Event, Parser, Tag, TagEnd};
use std::ops::Range;

/// Reads the keys in the first lines of a task's text, the first of which is the given line of the file, into
/// the draft. Returns the text without them.
pub(super) fn take_keys(
    draft: &mut Draft,
    text: &str,
    first_line: usize,
    with_states: bool,
    warnings: &mut Vec<Fault>,
) -> Result<String, Fault> {
    let is_known = |key: &str| {
        let is_state = OWNED_KEYS.contains(&key);
        let is_text = matches!(key, "title" | "description");
        (TASK_KEYS.contains(&key) && !is_text && (with_states || !is_state))
            || settings::NAMES.iter().any(|(name, _)| *name == key)
    };
    let mut rest = String::with_capacity(text.len());
    let mut lines = text.split_inclusive('\n').enumerate().peekable();
    let is_read = |line: &str| line.trim().is_empty() || key_of(line).is_some();
    while let Some((number, line)) =
        lines.next_if(|(_, line)| is_read(line) || written_otherwise(line).is_some())
    {
        let Some(key) = key_of(line) else {
            if let Some((key, value)) = written_otherwise(line) {
                if with_states && says_done(&key, value) {
                    draft.status = TaskStatus::Done;
                } else if key != "status" && is_known(&key) {
                    let at = Position {
                        line: first_line + number,
                        column: 1,
                    };
                    let message =
                        format!("this line is read as text: as a key it is `{key}: {value}`");
                    warnings.push(Fault::new(at, message));
                }
            }
            rest.push_str(line);
            continue;
        };
        let mut value = line.to_owned();
        let (_, begun) = line.split_once(':').unwrap_or_default();
        let is_open =
            begun.trim().is_empty() || begun.trim_start().starts_with(['|', '>', '[', '{']);
        let continues = |line: &str| {
            let is_item = line.starts_with("- ") && !line.starts_with("- [");
            is_open && (line.starts_with([' ', '\t', ']', '}']) || is_item)
        };
        let at = Position {
            line: first_line + number,
            column: 1,
        };
        if !is_known(key) {
            let known = TASK_KEYS
                .iter()
                .copied()
                .chain(settings::NAMES.iter().map(|(name, _)| *name));
            let suggestion = did_you_mean(key, known);
            let message = format!(
                "`{key}` is not a key of a task here: the line is read as text{suggestion}"
            );
            warnings.push(Fault::new(at, message));
            rest.push_str(&value);
            continue;
        }
        while let Some((_, line)) =
            lines.next_if(|(_, line)| continues(line) && !line.trim().is_empty())
        {
            value.push_str(line);
        }
        let moved = |fault: Fault| Fault {
            at: Position {
                line: fault.at.line + at.line - 1,
                ..fault.at
            },
            ..fault
        };
        let root = yaml::parse(&value).map_err(moved)?;
        for entry in root
            .iter()
            .flat_map(yaml::Node::entries)
            .filter(|entry| !entry.value.is_null())
        {
            read_task_entry(draft, entry).map_err(moved)?;
        }
    }
    lines.for_each(|(_, line)| rest.push_str(line));
    Ok(rest)
}

/// The key at the beginning of a line: lower-case words joined by `_`.
fn key_of(line: &str) -> Option<&str> {
    let (key, value) = line.split_once(':')?;
    let is_key = key.starts_with(|c: char| c.is_ascii_lowercase())
        && key
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    (is_key && (value.trim().is_empty() || value.starts_with(' '))).then_some(key)
}

/// The key and the value of a line that writes a key as prose does: `- verify: make`, `**Depends on:** a`.
fn written_otherwise(line: &str) -> Option<(String, &str)> {
    let line = line.trim().trim_start_matches(['-', '*', ' ']);
    let (key, value) = line.split_once(':')?;
    let key = key.trim_end_matches('*').to_lowercase().replace(' ', "_");
    let value = value.trim_matches(['*', ' ']);
    let is_key = key
        .bytes()
        .all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    (is_key && !value.is_empty()).then_some((key, value))
}

/// Whether a line is the state of a task that is done: `**Status**: Complete`.
fn says_done(key: &str, value: &str) -> bool {
    let word = value.trim_matches(|c: char| !c.is_alphanumeric());
    key == "status" && has_word("complete completed done finished", &word.to_lowercase())
}

/// The text without steps that only commit, and their number.
pub(super) fn without_commits(text: &str) -> (String, usize) {
    let mut removed: Vec<Range<usize>> = Vec::new();
    let mut words = String::new();
    let mut item = None;
    let mut number = 0;
    let mut after_commit = false;
    for (event, range) in Parser::new_ext(text, options()).into_offset_iter() {
        let mut ended = None;
        match event {
            Event::Start(Tag::Item) => {
                words.clear();
                item = Some(range);
                after_commit = false;
            }
            // A list below an item ends the item's line.
            Event::Start(Tag::List(_)) | Event::End(TagEnd::Item) => ended = item.take(),
            Event::Start(Tag::Paragraph | Tag::Heading { .. }) if item.is_none() => words.clear(),
            Event::End(TagEnd::Paragraph) if item.is_some() => ended = item.take(),
            Event::End(TagEnd::Paragraph | TagEnd::Heading(_)) => ended = Some(range),
            Event::Start(Tag::CodeBlock(_)) => {
                let code = text[range.clone()]
                    .lines()
                    .nth(1)
                    .unwrap_or_default()
                    .trim_start();
                if after_commit && code.starts_with("git ") {
                    removed.push(range);
                }
                after_commit = false;
            }
            Event::Text(text) | Event::Code(text) => words.push_str(&text),
            Event::SoftBreak | Event::HardBreak => words.push(' '),
            _ => {}
        }
        if let Some(range) = ended {
            after_commit = only_commits(&words);
            if after_commit {
                number += 1;
                removed.push(range);
            }
            words.clear();
        }
    }
    (without_ranges(text, 0, removed), number)
}
