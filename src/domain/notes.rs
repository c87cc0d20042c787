//! Notes that an agent leaves for later tasks: lines `NOTE: …` in its final messages.

use crate::text::one_line;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The maximum length of all notes in a prompt, in characters.
const MAX_SHOWN: usize = 8_000;

const MARKER: &str = "NOTE:";
const MAX_NOTE: usize = 1_000;
const MAX_OF_MESSAGE: usize = 50;
const MAX_KEPT: usize = 500;
const MAX_NAME: usize = 64;

/// A note for later tasks.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Note {
    /// The task whose agent wrote it.
    pub task: String,
    /// The time, RFC 3339 in UTC.
    pub at: String,
    /// The text, in one line.
    pub text: String,
}

/// The notes in a final message, in order. Lines in a code fence do not count.
pub fn notes_of(message: &str) -> Vec<String> {
    let mut notes: Vec<String> = Vec::new();
    let mut is_fenced = false;
    for line in message.lines() {
        let line = line.trim_start();
        if line.starts_with("```") || line.starts_with("~~~") {
            is_fenced = !is_fenced;
        }
        let Some(text) = marked(line).filter(|_| !is_fenced) else {
            continue;
        };
        let text = one_line(text, MAX_NOTE);
        let is_example = text == "<one line>";
        if !text.is_empty() && !is_example && !notes.contains(&text) && notes.len() < MAX_OF_MESSAGE
        {
            notes.push(text);
        }
    }
    notes
}

/// The text after the marker, which may be a list item or bold.
fn marked(line: &str) -> Option<&str> {
    let item = line.strip_prefix("- ").or_else(|| line.strip_prefix("* "));
    let bare = item.unwrap_or(line).trim_start();
    match bare.strip_prefix("**") {
        Some(bold) => {
            let rest = bold.strip_prefix(MARKER)?;
            Some(rest.trim_start().strip_prefix("**").unwrap_or(rest))
        }
        None => bare.strip_prefix(MARKER),
    }
}

/// The notes of a plan from all of its known runs, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notebook {
    /// The plan that the notes are about.
    pub plan: String,
    notes: Vec<StoredNote>,
}

/// A note and the run that left it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct StoredNote {
    run: String,
    #[serde(flatten)]
    note: Note,
}

impl Notebook {
    /// An empty notebook.
    pub fn of(plan: String) -> Self {
        Self {
            plan,
            notes: Vec::new(),
        }
    }

    /// Reads kept notes, within the limits for new notes; `None` if they are damaged or belong to another
    /// plan.
    pub fn read(bytes: &[u8], plan: &str) -> Option<Self> {
        let read: Self = serde_json::from_slice(bytes).ok()?;
        let mut known = Self::of(plan.to_owned());
        let notes = (read.plan == plan).then_some(read.notes)?;
        for kept in notes {
            let note = Note {
                task: one_line(&kept.note.task, MAX_NAME),
                at: one_line(&kept.note.at, MAX_NAME),
                text: one_line(&kept.note.text, MAX_NOTE),
            };
            known.add(&one_line(&kept.run, MAX_NAME), note);
        }
        Some(known)
    }

    /// Adds a note of a run, unless the same task of that run already left it. The oldest notes make room.
    pub fn add(&mut self, run: &str, note: Note) {
        let is_same = |known: &StoredNote| {
            known.run == run && known.note.task == note.task && known.note.text == note.text
        };
        if self.notes.iter().any(is_same) {
            return;
        }
        let run = run.to_owned();
        self.notes.push(StoredNote { run, note });
        let excess = self.notes.len().saturating_sub(MAX_KEPT);
        self.notes.drain(..excess);
    }

    /// Adds the notes of another notebook, ordered by time.
    pub fn merge(&mut self, other: Self) {
        for kept in other.notes {
            self.add(&kept.run, kept.note);
        }
        self.notes
            .sort_by(|one, other| one.note.at.cmp(&other.note.at));
    }

    /// Whether there are no notes.
    pub fn is_empty(&self) -> bool {
        self.notes.is_empty()
    }

    /// Whether this run left a note.
    pub fn has_some_of(&self, run: &str) -> bool {
        self.notes.iter().any(|kept| kept.run == run)
    }

    /// The notes that the agent of a task reads: all except those of the same task in this run, newest first,
    /// within [`MAX_SHOWN`] characters. Empty if there are none. A note that was left several times, since
    /// agents repeat what they read, is shown once.
    pub fn shown(&self, run: &str, task: &str) -> String {
        let is_own = |kept: &StoredNote| kept.run == run && kept.note.task == task;
        let mut texts = BTreeSet::new();
        let mut of_others: Vec<&StoredNote> = self.notes.iter().rev().collect();
        of_others.retain(|kept| !is_own(kept) && texts.insert(&kept.note.text));
        let mut lines: Vec<String> = Vec::new();
        let mut room = MAX_SHOWN - OMITTED_ROOM;
        for StoredNote { note, .. } in &of_others {
            let line = format!("- {}, task {}: {}", note.at, note.task, note.text);
            let length = line.chars().count() + 1;
            if length > room {
                break;
            }
            room -= length;
            lines.push(line);
        }
        match of_others.len() - lines.len() {
            0 => {}
            1 => lines.push("(1 older note is left out)".to_owned()),
            n => lines.push(format!("({n} older notes are left out)")),
        }
        lines.join("\n")
    }
}

/// The space for the line about omitted notes, in characters.
const OMITTED_ROOM: usize = 40;

#[cfg(test)]
mod tests {
    use super::*;

    fn note(task: &str, at: &str, text: &str) -> Note {
        Note {
            task: task.to_owned(),
            at: at.to_owned(),
            text: text.to_owned(),
        }
    }

    #[test]
    fn lines_with_the_marker_are_notes_and_fenced_ones_are_not() {
        let message = "Done.\nNOTE: the cache lives in `tmp`\n  - NOTE:  use   port 1\n**NOTE:** bold\nA NOTE: not one\nnote: no\n```\nNOTE: output\n```\nNOTE:\nNOTE: the cache lives in `tmp`\n";
        let expected = ["the cache lives in `tmp`", "use port 1", "bold"];
        assert_eq!(notes_of(message), expected);
        let long = format!("NOTE: {}", "x".repeat(5_000));
        assert!(notes_of(&long)[0].chars().count() <= MAX_NOTE);
        assert_eq!(notes_of(&"NOTE: a\n".repeat(3)).len(), 1);
        let many: String = (0..80).map(|n| format!("NOTE: {n}\n")).collect();
        assert_eq!(notes_of(&many).len(), MAX_OF_MESSAGE);
    }

    #[test]
    fn the_newest_come_first_and_a_tasks_own_of_this_run_do_not() {
        let mut book = Notebook::of("p".to_owned());
        book.add("r1", note("a", "1", "old"));
        book.add("r2", note("a", "2", "own"));
        book.add("r2", note("b", "3", "new"));
        book.add("r2", note("b", "4", "new"));
        assert_eq!(book.shown("r2", "a"), "- 3, task b: new\n- 1, task a: old");
        assert!(book.has_some_of("r2") && !book.has_some_of("r3"));
        book.add("r3", note("b", "5", "old"));
        assert_eq!(
            book.shown("r3", "a").lines().next(),
            Some("- 5, task b: old")
        );
        assert_eq!(book.shown("r3", "a").matches("old").count(), 1);
    }

    #[test]
    fn what_is_shown_has_a_limit_and_says_what_is_left_out() {
        let mut book = Notebook::of("p".to_owned());
        for n in 0..20 {
            book.add(
                "r",
                note("a", &format!("{n:02}"), &format!("{n} {}", "ü".repeat(900))),
            );
        }
        let shown = book.shown("r", "b");
        assert!(
            shown.chars().count() <= MAX_SHOWN,
            "{}",
            shown.chars().count()
        );
        assert!(shown.starts_with("- 19, task a: 19 ü"));
        assert!(shown.ends_with("(12 older notes are left out)"), "{shown}");
    }

    #[test]
    fn a_notebook_comes_back_within_its_limits_and_only_for_its_plan() {
        let mut book = Notebook::of("p".to_owned());
        book.add("r", note("a", "1", "text"));
        let bytes = serde_json::to_vec(&book).unwrap();
        assert_eq!(Notebook::read(&bytes, "p"), Some(book));
        assert_eq!(Notebook::read(&bytes, "q"), None);
        assert_eq!(Notebook::read(b"{", "p"), None);
        let foreign = serde_json::json!({
            "plan": "p",
            "notes": [{ "run": "r", "task": "a", "at": "1", "text": "x\n".repeat(9_000) }],
        });
        let read = Notebook::read(foreign.to_string().as_bytes(), "p").unwrap();
        assert!(read.shown("s", "b").chars().count() < MAX_NOTE + 100);
    }

    #[test]
    fn two_notebooks_are_told_by_time() {
        let mut one = Notebook::of("p".to_owned());
        one.add("r1", note("a", "2", "second"));
        let mut other = Notebook::of("p".to_owned());
        other.add("r0", note("a", "1", "first"));
        other.add("r1", note("a", "2", "second"));
        one.merge(other);
        assert_eq!(
            one.shown("r2", "a"),
            "- 2, task a: second\n- 1, task a: first"
        );
    }
}
