//! The layout of a run directory: every file, how it is stored, and when it is written.

use crate::report::Format;
use clap::ValueEnum as _;
use std::borrow::Cow;
use std::fmt::Write as _;

/// The file name of the summary.
pub const SUMMARY: &str = Format::Json.file();

/// The file name of the manifest, which makes a directory that of a run.
pub const MANIFEST: &str = "manifest.json";

/// The file name of the bundle with the run's commits.
pub const BUNDLE: &str = "work.bundle";

/// How a file is stored, which decides what survives the death of the process or a loss of power.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// Appended and synced before anything that depends on it. An incomplete last line is cut off.
    Log,
    /// Replaced atomically: temporary file, sync, rename, sync of the directory.
    Whole,
    /// Not synced: it can be made again, or only people read it.
    Derived,
}

/// A subdirectory of a run directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Folder {
    /// Transcripts and final messages.
    Turns,
    /// Prompts, exactly as sent.
    Prompts,
    /// Logs of the setup commands and the checks.
    Checks,
    /// Patches with the work of failed tasks.
    Patches,
    /// The pictures of the issue.
    Pictures,
    /// Files that only Sprag reads.
    State,
    /// The private git directory. The module `git` defines its layout.
    Git,
}

impl Folder {
    /// The directories that a new run creates.
    pub const OF_NEW_RUN: [Self; 6] = [
        Self::Turns,
        Self::Prompts,
        Self::Checks,
        Self::Patches,
        Self::Pictures,
        Self::State,
    ];

    /// The directory's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Turns => "turns",
            Self::Prompts => "prompts",
            Self::Checks => "verify",
            Self::Patches => "patches",
            Self::Pictures => "pictures",
            Self::State => "state",
            Self::Git => "git",
        }
    }
}

/// A file in a run directory. The numbers count turns, setup commands or checks over the whole run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunFile<'a> {
    /// What is fixed when a run starts.
    Manifest,
    /// Every intent and observation.
    History,
    /// The events that a process needs to resume the run.
    EventRecord,
    /// The commit that is about to become the branch's head, and the head before it.
    Landing,
    /// A move of the branch that is in progress.
    Move,
    /// The plan as it was when the run started.
    Plan,
    /// The request from GitHub.
    Request,
    /// The commit that the run started from.
    StartCommit,
    /// HEAD and refs at the start of the current turn.
    TurnMark,
    /// HEAD and tree at the start of the phase, if changes in it may have to be undone.
    PhaseStart,
    /// The agent's last final message.
    FinalMessage,
    /// The session that a further turn can continue, with its usage so far.
    Session,
    /// The answers of people to the questions of a task.
    Answer,
    /// Notes that tasks left for later ones, including those of earlier runs.
    Notes,
    /// Untracked files that only the checks left behind.
    CheckArtifacts,
    /// The untracked files before the current checks started.
    BeforeChecks,
    /// What checks see and no commit contains: digests of installed programs, and the paths of other files.
    Uncommitted,
    /// Since when the tests are those of somebody else than the agents of the run.
    OriginalTests,
    /// A marker that the setup commands have run.
    SetupDone,
    /// The state of the repository at the orderly end of the run.
    OrderlyEnd,
    /// The check run and comment of the run on GitHub.
    OnGithub,
    /// A problem matcher as first read in this run, by the digest of its path.
    Matcher(&'a str),
    /// The prompt of a turn.
    Prompt(u32),
    /// The final message of a turn.
    TurnMessage(u32),
    /// A patch with the work of a failed task.
    Patch(&'a str),
    /// A picture of the issue, with its kind.
    Picture(u32, &'a str),
    /// The report in one of the formats of `sprag report`.
    Report(Format),
    /// The changes of the run's commits, for people.
    Commits,
    /// The run's commits, if they were not pushed.
    Bundle,
    /// The number of the last event of a process that ended and reported its end.
    Ended,
    /// A marker that the run finished successfully.
    Finished,
    /// Every event.
    Events,
    /// The output of the agent with this name in a turn.
    Transcript(u32, &'a str),
    /// The output of a setup command.
    SetupLog(u32),
    /// The output of the check with this name.
    CheckLog(u32, &'a str),
}

/// The layout of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Path relative to the run directory.
    pub path: Cow<'static, str>,
    /// How the file is stored.
    pub durability: Durability,
    /// When it is written.
    pub written: &'static str,
    /// Whether the file is stored unchanged: files that Sprag reads back and whose content no other
    /// program decides, and files made from values without secrets. In all other files secrets are
    /// redacted.
    pub is_exact: bool,
}

const AS_TRUE: &str = "when the state changes";
const BEFORE_EVENT: &str = "before the event that names it";
const AT_END: &str = "at the end";
const AFTER_SUMMARY: &str =
    "after the summary: a run that dies before this is resumed to report its end";
const AS_IT_HAPPENS: &str =
    "as it happens; an incomplete last line is removed when the run is resumed";

impl RunFile<'_> {
    /// One of each, with sample numbers and names, in the order of the documentation.
    pub fn all() -> Vec<RunFile<'static>> {
        let reports = Format::value_variants()
            .iter()
            .map(|format| RunFile::Report(*format));
        let mut files = vec![
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
            RunFile::Answer,
            RunFile::Notes,
            RunFile::CheckArtifacts,
            RunFile::BeforeChecks,
            RunFile::Uncommitted,
            RunFile::OriginalTests,
            RunFile::SetupDone,
            RunFile::OrderlyEnd,
            RunFile::OnGithub,
            RunFile::Matcher("DIGEST"),
            RunFile::Prompt(1),
            RunFile::TurnMessage(1),
            RunFile::Patch("TASK"),
            RunFile::Picture(1, "png"),
        ];
        files.extend(reports);
        files.extend([
            RunFile::Commits,
            RunFile::Bundle,
            RunFile::Ended,
            RunFile::Finished,
            RunFile::Events,
            RunFile::Transcript(1, "AGENT"),
            RunFile::SetupLog(1),
            RunFile::CheckLog(1, "CHECK"),
        ]);
        files
    }

    /// The path relative to the run directory.
    pub fn path(self) -> Cow<'static, str> {
        self.entry().path
    }

    /// Path, durability and time of writing.
    pub fn entry(self) -> Entry {
        use Durability::{Derived, Log, Whole};
        let entry = |path: Cow<'static, str>, durability, written| Entry {
            path,
            durability,
            written,
            is_exact: false,
        };
        let exact = |path: Cow<'static, str>, durability, written| Entry {
            is_exact: true,
            ..entry(path, durability, written)
        };
        match self {
            Self::Manifest => exact(
                MANIFEST.into(),
                Whole,
                "once and last: a directory without it is not a run",
            ),
            Self::History => entry("history.jsonl".into(), Log, "before and after each effect"),
            Self::EventRecord => entry(
                "state/events.jsonl".into(),
                Log,
                "before the record that depends on it; synced if an event contains more than the history: turns, commits, ends",
            ),
            Self::Landing => exact(
                "state/landing.json".into(),
                Whole,
                "before the branch is moved: the old and the new commit",
            ),
            Self::Move => exact(
                "state/move.json".into(),
                Whole,
                "before the branch is moved onto commits by others",
            ),
            Self::Plan => exact("state/plan".into(), Whole, "before the manifest"),
            Self::Request => exact("state/request.json".into(), Whole, "before the first event"),
            Self::StartCommit => exact("state/began-at".into(), Whole, "before the first event"),
            Self::TurnMark => exact("state/turn-mark.json".into(), Whole, AS_TRUE),
            Self::PhaseStart => exact("state/phase-start.json".into(), Whole, AS_TRUE),
            Self::FinalMessage => entry("state/final-message.md".into(), Whole, AS_TRUE),
            Self::Session => entry("state/session".into(), Whole, AS_TRUE),
            Self::Answer => entry("state/answer.json".into(), Whole, AS_TRUE),
            Self::Notes => entry("state/notes.json".into(), Whole, AS_TRUE),
            Self::CheckArtifacts => exact("state/check-artifacts.json".into(), Whole, AS_TRUE),
            Self::BeforeChecks => exact("state/before-checks.json".into(), Whole, AS_TRUE),
            Self::Uncommitted => exact("state/uncommitted.json".into(), Whole, AS_TRUE),
            Self::OriginalTests => exact("state/original-tests.json".into(), Whole, AS_TRUE),
            Self::SetupDone => exact("state/setup-done".into(), Whole, AS_TRUE),
            Self::OrderlyEnd => exact("state/left.json".into(), Whole, AS_TRUE),
            Self::OnGithub => exact("state/github.json".into(), Whole, AS_TRUE),
            Self::Matcher(digest) => exact(
                format!("state/matcher-{digest}.json").into(),
                Whole,
                AS_TRUE,
            ),
            Self::Prompt(number) => entry(
                format!("prompts/{number:02}.md").into(),
                Whole,
                BEFORE_EVENT,
            ),
            Self::TurnMessage(number) => entry(
                format!("turns/{number:02}-final.md").into(),
                Whole,
                BEFORE_EVENT,
            ),
            Self::Patch(task) => entry(format!("patches/{task}.patch").into(), Whole, BEFORE_EVENT),
            Self::Picture(number, kind) => exact(
                format!("pictures/{number:02}.{kind}").into(),
                Whole,
                "before the first event",
            ),
            Self::Report(Format::Json) => exact(SUMMARY.into(), Whole, AT_END),
            Self::Report(format) => entry(format.file().into(), Whole, AT_END),
            Self::Commits => entry(
                "commits.patch".into(),
                Derived,
                "at the end, before the report",
            ),
            Self::Bundle => exact(
                BUNDLE.into(),
                Derived,
                "at the end, if the commits are for another job or could not be pushed",
            ),
            Self::Ended => exact("state/ended".into(), Whole, AFTER_SUMMARY),
            Self::Finished => exact("state/finished".into(), Whole, AFTER_SUMMARY),
            Self::Events => entry("events.jsonl".into(), Derived, AS_IT_HAPPENS),
            Self::Transcript(number, agent) => entry(
                format!("turns/{number:02}-{agent}.jsonl").into(),
                Derived,
                AS_IT_HAPPENS,
            ),
            Self::SetupLog(number) => entry(
                format!("verify/setup-{number:02}.log").into(),
                Derived,
                AS_IT_HAPPENS,
            ),
            Self::CheckLog(number, check) => entry(
                format!("verify/{number:02}-{check}.log").into(),
                Derived,
                AS_IT_HAPPENS,
            ),
        }
    }
}

/// The layout as a Markdown table. Files with the same durability and time of writing share a row.
pub fn table() -> String {
    let mut rows: Vec<(Durability, &str, Vec<String>)> = Vec::new();
    for entry in RunFile::all().into_iter().map(RunFile::entry) {
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
        // Writing to a string cannot fail.
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
        let all = RunFile::all();
        let paths = all.iter().map(|file| file.path().into_owned());
        let paths: BTreeSet<String> = paths.collect();
        assert_eq!(paths.len(), all.len());
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
