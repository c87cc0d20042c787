//! The layout of a run directory: every file, how it is stored, and when it is written.

use crate::report::Format;
use std::borrow::Cow;

/// The file name of the summary.
pub const SUMMARY: &str = Format::Json.file();

/// The file name of the manifest, which makes a directory that of a run.
pub const MANIFEST: &str = "manifest.json";

/// The file name of the bundle with the run's commits.
pub const BUNDLE: &str = "work.bundle";

/// A subdirectory of a run directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Folder {
    /// Transcripts and final messages.
    Turns,
    /// Prompts, exactly as sent.
    Prompts,
    /// Logs of the setup commands and the checks.
    #[strum(serialize = "verify")]
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
        self.into()
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

impl RunFile<'_> {
    /// The path relative to the run directory.
    pub fn path(self) -> Cow<'static, str> {
        let path = match self {
            Self::Manifest => MANIFEST,
            Self::History => "history.jsonl",
            Self::EventRecord => "state/events.jsonl",
            Self::Landing => "state/landing.json",
            Self::Move => "state/move.json",
            Self::Plan => "state/plan",
            Self::Request => "state/request.json",
            Self::StartCommit => "state/began-at",
            Self::TurnMark => "state/turn-mark.json",
            Self::PhaseStart => "state/phase-start.json",
            Self::FinalMessage => "state/final-message.md",
            Self::Session => "state/session",
            Self::Answer => "state/answer.json",
            Self::Notes => "state/notes.json",
            Self::CheckArtifacts => "state/check-artifacts.json",
            Self::BeforeChecks => "state/before-checks.json",
            Self::Uncommitted => "state/uncommitted.json",
            Self::OriginalTests => "state/original-tests.json",
            Self::SetupDone => "state/setup-done",
            Self::OrderlyEnd => "state/left.json",
            Self::OnGithub => "state/github.json",
            Self::Report(format) => format.file(),
            Self::Commits => "commits.patch",
            Self::Bundle => BUNDLE,
            Self::Ended => "state/ended",
            Self::Finished => "state/finished",
            Self::Events => "events.jsonl",
            Self::Matcher(digest) => return format!("state/matcher-{digest}.json").into(),
            Self::Prompt(number) => return format!("prompts/{number:02}.md").into(),
            Self::TurnMessage(number) => return format!("turns/{number:02}-final.md").into(),
            Self::Patch(task) => return format!("patches/{task}.patch").into(),
            Self::Picture(number, kind) => return format!("pictures/{number:02}.{kind}").into(),
            Self::Transcript(number, agent) => {
                return format!("turns/{number:02}-{agent}.jsonl").into();
            }
            Self::SetupLog(number) => return format!("verify/setup-{number:02}.log").into(),
            Self::CheckLog(number, check) => {
                return format!("verify/{number:02}-{check}.log").into();
            }
        };
        path.into()
    }

    /// Whether the file is stored unchanged: files that Sprag reads back and whose content no other
    /// program decides, and files made from values without secrets. In all other files secrets are
    /// redacted.
    pub fn is_exact(self) -> bool {
        matches!(
            self,
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
                | Self::Uncommitted
                | Self::OriginalTests
                | Self::SetupDone
                | Self::OrderlyEnd
                | Self::OnGithub
                | Self::Matcher(_)
                | Self::Picture(..)
                | Self::Report(Format::Json)
                | Self::Bundle
                | Self::Ended
                | Self::Finished
        )
    }

    /// Whether the file is not synced: it can be made again, or only people read it. What survives the death of the
    /// process or a loss of power are the others.
    pub fn is_derived(self) -> bool {
        matches!(
            self,
            Self::Commits
                | Self::Bundle
                | Self::Events
                | Self::Transcript(..)
                | Self::SetupLog(..)
                | Self::CheckLog(..)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_two_digits_or_more() {
        assert_eq!(RunFile::Prompt(7).path(), "prompts/07.md");
        assert_eq!(RunFile::CheckLog(123, "test").path(), "verify/123-test.log");
    }
}
