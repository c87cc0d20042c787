//! A merge whose conflicts an agent resolves: the rules for its result, and its outcome.

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
            before: repo.tree_id_of(ours)?,
            subject,
            conflict,
            files,
            touched,
        })
    }

    /// Why the work tree is not a valid result, as a message for the agent that resolves the conflicts.
    pub fn problem(&self, repo: &Repo, raw: &RawSnapshot) -> Option<String> {
        let mut text = String::new();
        let left = self.markers_left(repo, raw);
        if !left.is_empty() {
            text.push_str(
                "Conflict markers of the merge are left. Resolve each conflict and remove all of its markers:\n",
            );
            append_names(&mut text, &left);
        }
        let strange: Vec<String> = self.untouched(raw);
        if !strange.is_empty() {
            text.push_str(
                "Neither side of the merge changed these files, so the merge may not change them either. Put them back as they were, and remove the ones that are new:\n",
            );
            append_names(&mut text, &strange);
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
            let own = self
                .files
                .iter()
                .find(|file| file.path == path)
                .map_or(&[][..], |file| file.markers.as_slice());
            let Some(content) = repo.work_file(path, SEARCHED) else {
                continue;
            };
            for (number, line) in lines(&content).enumerate() {
                let is_left = own.iter().any(|marker| marker == line)
                    || labelled.iter().any(|marker| *marker == line);
                if is_left {
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
