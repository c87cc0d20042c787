//! A merge whose conflicts an agent resolves: the rules for its result, and its outcome.

use crate::domain::attempt::BlamedTest;
use crate::domain::outcome::{Outcome, Reason, TaskEnd};
use crate::domain::snapshot::RevId;
use crate::git::{ConflictedFile, RawSnapshot, RemoteError, Repo, TreeId, display_path, lines};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// The largest file, in bytes, that is searched for markers. The agent gets no conflicts in larger
/// files.
const SEARCHED: u64 = 16 << 20;

/// How many lines and files one message names.
const NAMED: usize = 50;

/// The name of the rules for the result in reports and prompts, next to the project's checks.
pub const CHECK: &str = "merge";

/// The outcome of a task that failed without an agent, because something is missing here.
pub(super) fn impossible(why: impl ToString) -> Outcome {
    Outcome::without_agent(TaskEnd::Failed, Reason::Environment, why.to_string())
}

/// The outcome of work that is on the branch, where these tests already failed.
pub(super) fn accepted(commit: Option<RevId>, has_checks: bool, known: &[BlamedTest]) -> Outcome {
    if !known.is_empty() {
        let tests = known.iter().map(BlamedTest::name).collect();
        Outcome::KnownFailures { commit, tests }
    } else if has_checks {
        Outcome::Verified { commit }
    } else {
        let accepted = true;
        Outcome::Unverified { commit, accepted }
    }
}

/// A conflicting merge while its conflicts are resolved in the work tree.
#[derive(Debug)]
pub struct Merging {
    /// The head of the branch.
    pub ours: RevId,
    /// The commit that is merged into it.
    pub theirs: RevId,
    /// The tree of the branch before the merge.
    pub before: TreeId,
    /// First line of the merge's commit message.
    pub subject: String,
    /// The message for a person who has to merge by hand, in one line.
    pub conflict: String,
    files: Vec<ConflictedFile>,
    /// Files that either side has changed since the merge base, as shown in messages.
    touched: BTreeSet<String>,
}

impl Merging {
    /// A merge of `ours` and `theirs`, whose merge base is `fork`.
    ///
    /// # Errors
    /// When git cannot compare them.
    pub fn of(
        repo: &Repo,
        ours: &RevId,
        theirs: &RevId,
        fork: &RevId,
        files: Vec<ConflictedFile>,
        subject: String,
        conflict: String,
    ) -> Result<Self, RemoteError> {
        let mut touched = BTreeSet::from_iter(repo.paths_between(fork, ours)?);
        touched.extend(repo.paths_between(fork, theirs)?);
        Ok(Self {
            ours: ours.clone(),
            theirs: theirs.clone(),
            before: TreeId::known(repo.tree_of(ours)?),
            subject,
            conflict,
            files,
            touched,
        })
    }

    /// Why the work tree is not a valid result, as a message for the agent that resolves the conflicts.
    pub fn problem(&self, repo: &Repo, raw: &RawSnapshot) -> Option<String> {
        let mut text = String::new();
        for (told, found) in [
            (
                "Conflict markers of the merge are left. Resolve each conflict and remove all of its markers:\n",
                self.markers_left(repo, raw),
            ),
            (
                "Neither side of the merge changed these files, so the merge may not change them either. Put them back as they were, and remove the ones that are new:\n",
                self.untouched(raw),
            ),
        ] {
            if !found.is_empty() {
                text.push_str(told);
                append_names(&mut text, &found);
            }
        }
        (!text.is_empty()).then_some(text)
    }

    /// The remaining conflict markers, each with its location.
    fn markers_left(&self, repo: &Repo, raw: &RawSnapshot) -> Vec<String> {
        let labelled = self.files.iter().flat_map(|file| &file.markers);
        let labelled: Vec<&Vec<u8>> = labelled.filter(|line| line.contains(&b' ')).collect();
        let changed = raw.changes.iter().chain(&raw.uncounted);
        let mut paths: BTreeSet<&[u8]> = changed.map(|change| change.path.as_slice()).collect();
        paths.extend(self.files.iter().map(|file| file.path.as_slice()));
        let mut left = Vec::new();
        for path in paths {
            let file = self.files.iter().find(|file| file.path == path);
            let own = file.map_or(&[][..], |file| &file.markers);
            let Some(content) = repo.work_file(path, SEARCHED) else {
                continue;
            };
            for (number, line) in lines(&content).enumerate() {
                let mut markers = own.iter().chain(labelled.iter().copied());
                if markers.any(|marker| marker == line) {
                    let shown = String::from_utf8_lossy(line);
                    left.push(format!("{}:{}: {shown}", display_path(path), number + 1));
                }
            }
        }
        left
    }

    /// Files that differ from the merge although neither side has changed them.
    fn untouched(&self, raw: &RawSnapshot) -> Vec<String> {
        let changed = raw.changes.iter().chain(&raw.uncounted);
        let shown = changed.map(|change| display_path(&change.path));
        shown.filter(|path| !self.touched.contains(path)).collect()
    }

    /// The outcome of the task. `blocked` if a person has to resolve the conflicts after all.
    pub fn outcome(&self, of_agent: Outcome) -> Outcome {
        let is_unresolved = matches!(
            of_agent,
            Outcome::AlreadySatisfied { .. }
                | Outcome::NoProgress { .. }
                | Outcome::PlanningOnly
                | Outcome::VerificationFailed
                | Outcome::RepeatingFailure { .. }
                | Outcome::FailedReport { .. }
                | Outcome::ReviewFindings { .. }
                | Outcome::UnstableChecks { .. }
                | Outcome::AgentCrashed { .. }
                | Outcome::TurnTimeout
                | Outcome::CommitRejected { .. }
        );
        if !is_unresolved {
            return of_agent;
        }
        let why = of_agent.message();
        let told = format!("{}; the agent did not resolve them: {why}", self.conflict);
        Outcome::without_agent(TaskEnd::Blocked, Reason::Conflict, told)
    }
}

fn append_names(text: &mut String, all: &[String]) {
    for line in all.iter().take(NAMED) {
        let _ = writeln!(text, "{line}");
    }
    if let Some(more) = all.len().checked_sub(NAMED).filter(|more| *more > 0) {
        let _ = writeln!(text, "and {more} more");
    }
}
