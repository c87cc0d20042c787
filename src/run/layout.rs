//! The layout of a run directory: every file in it, how it is kept, and when it is written.

use crate::report::Format;
use std::borrow::Cow;
use std::fmt::Write as _;

/// The name of the summary.
pub const SUMMARY: &str = Format::Json.file();

/// The name of the bundle with the run's commits.
pub const BUNDLE: &str = "work.bundle";

/// How a file is kept, which says what the death of the process or a loss of power can take of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// Appended and synced before anything that depends on it. A torn last line is cut off.
    Log,
    /// There whole or not at all: temporary file, sync, rename, sync of the directory.
    Whole,
    /// Not synced: made anew, or only for people.
    Derived,
}

/// A directory in a run directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Folder {
    /// Transcripts and final messages.
    Turns,
    /// Prompts as they were sent.
    Prompts,
    /// Logs of the checks.
    Checks,
    /// The work of tasks that failed.
    Patches,
    /// What only Sprag reads.
    State,
    /// The private git directory, whose layout is that of `git`.
    Git,
}

impl Folder {
    /// The directories that a new run begins with.
    pub const OF_NEW_RUN: [Self; 5] = [
        Self::Turns,
        Self::Prompts,
        Self::Checks,
        Self::Patches,
        Self::State,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Turns => "turns",
            Self::Prompts => "prompts",
            Self::Checks => "verify",
            Self::Patches => "patches",
            Self::State => "state",
            Self::Git => "git",
        }
    }
}

/// A file in a run directory. Numbers are those of turns and checks, counted over the whole run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunFile<'a> {
    /// What is fixed when a run begins.
    Manifest,
    /// Every intent and observation.
    History,
    /// The events that a process needs which takes the run up.
    EventRecord,
    /// The commit that is about to land, and from where.
    Landing,
    /// A move of the branch that is under way.
    Move,
    /// The plan as it was when the run began.
    Plan,
    /// What was asked for on GitHub.
    Request,
    /// The commit that the run began from.
    StartCommit,
    /// HEAD and refs at the start of the open turn.
    TurnMark,
    /// HEAD and tree at the start of the phase, where something of it may have to be undone.
    PhaseStart,
    /// What the agent said last.
    FinalMessage,
    /// The session that a further turn can continue, with what it has used up.
    Session,
    /// What tasks left for later ones, those of earlier runs included.
    Notes,
    /// Untracked files that only the checks left behind.
    CheckArtifacts,
    /// The untracked files before the checks that are running.
    BeforeChecks,
    /// What the programs were that checks run and no commit holds.
    InstalledPrograms,
    /// The setup commands have run.
    SetupDone,
    /// How a run that ended in order left the repository.
    OrderlyEnd,
    /// The check run and comment of the run on GitHub.
    OnGithub,
    /// Problem matchers as they stood when the run first read them, by the digest of their path.
    Matcher(&'a str),
    /// The prompt of a turn.
    Prompt(u32),
    /// The final message of a turn.
    TurnMessage(u32),
    /// The work of a task that failed.
    Patch(&'a str),
    /// The run in one of the formats of `sprag report`.
    Report(Format),
    /// What the run's commits changed, for people.
    Commits,
    /// The run's commits where they could not be pushed.
    Bundle,
    /// The number of the last event of a process that came to its end and told of it.
    Ended,
    /// The run has done all that it was to do.
    Finished,
    /// Every event.
    Events,
    /// What an agent, named here, printed in a turn.
    Transcript(u32, &'a str),
    /// What a check, named here, printed.
    CheckLog(u32, &'a str),
}

/// What the layout says of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Relative to the run directory.
    pub path: Cow<'static, str>,
    /// How it is kept.
    pub durability: Durability,
    /// When it is written.
    pub written: &'static str,
}

const AS_TRUE: &str = "as it becomes true";
const BEFORE_EVENT: &str = "before the event that names it";
const AT_END: &str = "at the end";
const AFTER_SUMMARY: &str = "after the summary: a run that dies before is taken up to tell its end";
const AS_IT_HAPPENS: &str = "as it happens; a torn last line is cut off when the run is taken up";

impl RunFile<'_> {
    /// One of each, with stand-ins for numbers and names, in the order of the documentation.
    pub const ALL: [RunFile<'static>; 33] = [
        RunFile::Manifest,
        RunFile::History,
        RunFile::EventRecord,
        RunFile::Landing,
        RunFile::Move,
        RunFile::Plan,
        RunFile::Request,
        RunFile::StartCommit,
        RunFile::TurnMark,
        RunFile::PhaseStart,
        RunFile::FinalMessage,
        RunFile::Session,
        RunFile::Notes,
        RunFile::CheckArtifacts,
        RunFile::BeforeChecks,
        RunFile::InstalledPrograms,
        RunFile::SetupDone,
        RunFile::OrderlyEnd,
        RunFile::OnGithub,
        RunFile::Matcher("DIGEST"),
        RunFile::Prompt(1),
        RunFile::TurnMessage(1),
        RunFile::Patch("TASK"),
        RunFile::Report(Format::Md),
        RunFile::Report(Format::Json),
        RunFile::Report(Format::Html),
        RunFile::Commits,
        RunFile::Bundle,
        RunFile::Ended,
        RunFile::Finished,
        RunFile::Events,
        RunFile::Transcript(1, "AGENT"),
        RunFile::CheckLog(1, "CHECK"),
    ];

    /// Its path, relative to the run directory.
    pub fn path(self) -> Cow<'static, str> {
        self.entry().path
    }

    /// Whether it is kept word for word: what Sprag reads back and nobody else has a say in, and what
    /// is made of values without secrets. In every other file secrets are redacted.
    pub fn is_exact(self) -> bool {
        match self {
            Self::Manifest
            | Self::Landing
            | Self::Move
            | Self::Plan
            | Self::Request
            | Self::StartCommit
            | Self::TurnMark
            | Self::PhaseStart
            | Self::CheckArtifacts
            | Self::BeforeChecks
            | Self::InstalledPrograms
            | Self::SetupDone
            | Self::OrderlyEnd
            | Self::OnGithub
            | Self::Matcher(_)
            | Self::Report(Format::Json)
            | Self::Bundle
            | Self::Ended
            | Self::Finished => true,
            Self::History
            | Self::EventRecord
            | Self::FinalMessage
            | Self::Session
            | Self::Notes
            | Self::Prompt(_)
            | Self::TurnMessage(_)
            | Self::Patch(_)
            | Self::Report(_)
            | Self::Commits
            | Self::Events
            | Self::Transcript(..)
            | Self::CheckLog(..) => false,
        }
    }

    /// Everything that the layout says of it.
    pub fn entry(self) -> Entry {
        let log = |path: &'static str, written| (path.into(), Durability::Log, written);
        let whole = |path: &'static str, written| (path.into(), Durability::Whole, written);
        let made = |path: String, written| (path.into(), Durability::Whole, written);
        let derived = |path: String, written| (path.into(), Durability::Derived, written);
        let (path, durability, written): (Cow<'static, str>, _, _) = match self {
            Self::Manifest => whole(
                "manifest.json",
                "once and last: a directory without it is nobody's run",
            ),
            Self::History => log("history.jsonl", "before and after each effect"),
            Self::EventRecord => log(
                "state/events.jsonl",
                "before the record that follows from it; synced where an event holds what the history does not: turns, commits, ends",
            ),
            Self::Landing => whole(
                "state/landing.json",
                "before the branch is moved, for which commit and from where",
            ),
            Self::Move => whole(
                "state/move.json",
                "before the branch is moved onto commits of somebody else",
            ),
            Self::Plan => whole("state/plan", "before the manifest"),
            Self::Request => whole("state/request.json", "before the first event"),
            Self::StartCommit => whole("state/began-at", "before the first event"),
            Self::TurnMark => whole("state/turn-mark.json", AS_TRUE),
            Self::PhaseStart => whole("state/phase-start.json", AS_TRUE),
            Self::FinalMessage => whole("state/final-message.md", AS_TRUE),
            Self::Session => whole("state/session", AS_TRUE),
            Self::Notes => whole("state/notes.json", AS_TRUE),
            Self::CheckArtifacts => whole("state/check-artifacts.json", AS_TRUE),
            Self::BeforeChecks => whole("state/before-checks.json", AS_TRUE),
            Self::InstalledPrograms => whole("state/installed-programs.json", AS_TRUE),
            Self::SetupDone => whole("state/setup-done", AS_TRUE),
            Self::OrderlyEnd => whole("state/left.json", AS_TRUE),
            Self::OnGithub => whole("state/github.json", AS_TRUE),
            Self::Matcher(digest) => made(format!("state/matcher-{digest}.json"), AS_TRUE),
            Self::Prompt(number) => made(format!("prompts/{number:02}.md"), BEFORE_EVENT),
            Self::TurnMessage(number) => made(format!("turns/{number:02}-final.md"), BEFORE_EVENT),
            Self::Patch(task) => made(format!("patches/{task}.patch"), BEFORE_EVENT),
            Self::Report(format) => whole(format.file(), AT_END),
            Self::Commits => derived("commits.patch".to_owned(), "at the end, before the report"),
            Self::Bundle => derived(
                BUNDLE.to_owned(),
                "at the end, where the commits are for another job or could not be pushed",
            ),
            Self::Ended => whole("state/ended", AFTER_SUMMARY),
            Self::Finished => whole("state/finished", AFTER_SUMMARY),
            Self::Events => derived("events.jsonl".to_owned(), AS_IT_HAPPENS),
            Self::Transcript(number, agent) => {
                derived(format!("turns/{number:02}-{agent}.jsonl"), AS_IT_HAPPENS)
            }
            Self::CheckLog(number, check) => {
                derived(format!("verify/{number:02}-{check}.log"), AS_IT_HAPPENS)
            }
        };
        Entry {
            path,
            durability,
            written,
        }
    }
}

/// The layout as a table of Markdown, one row for all files that are kept and written alike.
pub fn table() -> String {
    let mut rows: Vec<(Durability, &str, Vec<String>)> = Vec::new();
    for entry in RunFile::ALL.map(RunFile::entry) {
        let name = format!("`{}`", entry.path);
        let alike =
            |row: &&mut (Durability, &str, _)| (row.0, row.1) == (entry.durability, entry.written);
        match rows.iter_mut().find(alike) {
            Some((_, _, names)) => names.push(name),
            None => rows.push((entry.durability, entry.written, vec![name])),
        }
    }
    let mut text = String::from("| file of the run directory | form | written |\n|---|---|---|\n");
    for (durability, written, names) in rows {
        let form = match durability {
            Durability::Log => "log",
            Durability::Whole => "whole",
            Durability::Derived => "derived",
        };
        // Writing to a string does not fail.
        let _ = writeln!(text, "| {} | {form} | {written} |", names.join(", "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_two_files_have_one_path_and_each_lies_in_a_known_folder() {
        let paths: BTreeSet<String> = RunFile::ALL.map(|file| file.path().into_owned()).into();
        assert_eq!(paths.len(), RunFile::ALL.len());
        let folders = Folder::OF_NEW_RUN.map(Folder::name);
        for path in &paths {
            if let Some((folder, name)) = path.split_once('/') {
                assert!(folders.contains(&folder) && !name.contains('/'), "{path}");
            }
        }
    }

    #[test]
    fn numbers_have_two_digits_or_more() {
        assert_eq!(RunFile::Prompt(7).path(), "prompts/07.md");
        assert_eq!(RunFile::CheckLog(123, "test").path(), "verify/123-test.log");
    }
}
