//! Pushes the run's commits with a lease. If the branch has moved, rebases and verifies them again. If
//! that fails, keeps them elsewhere.

use crate::domain::event::{PushLine, RebasedLine};
use crate::domain::outcome::short;
use crate::domain::snapshot::RevId;
use crate::domain::text::count;
use crate::git::{Rebased, Rewritten, TreeId};
use crate::run::deliver::push_failure::{Destination, PushEnd, PushFailure};
use crate::run::state::layout::{BUNDLE, RunFile};
use crate::run::state::parts::Parts;
use crate::run::steps::moved::{Before, NotMoved, move_and_verify};
use crate::settings::TaskConfig;

/// How often the work is rebased onto a branch that has moved.
const REBASES: u32 = 3;

/// A push of the run's commits.
pub struct PushRequest<'a> {
    /// Where they go. A deadline does not cancel the push, so that finished work is delivered.
    pub to: Destination<'a>,
    /// Its commit at the start of the run; `None` if it did not exist.
    pub expected: Option<RevId>,
    /// The commit that the run started from.
    pub start: RevId,
    /// The checks that must pass on top of other people's commits.
    pub checks: &'a [TaskConfig],
}

/// A push in progress.
struct Push<'a, 'e> {
    parts: &'a mut Parts<'e>,
    request: &'a PushRequest<'a>,
    head: RevId,
    expected: Option<RevId>,
    rebased: Vec<RebasedLine>,
    moves: u32,
}

/// Pushes the run's commits; `None` if there are none.
///
/// # Errors
/// When the run's own state cannot be written.
pub async fn push_work(
    parts: &mut Parts<'_>,
    request: &PushRequest<'_>,
) -> anyhow::Result<Option<PushLine>> {
    let Some(head) = parts.tree.repo.base().filter(|head| *head != request.start) else {
        return Ok(None);
    };
    let mut push = Push {
        parts,
        request,
        head,
        expected: request.expected.clone(),
        rebased: Vec::new(),
        moves: 0,
    };
    let mut line = match push.push_until().await? {
        Ok(at) => request.to.pushed(at, push.push_message()),
        Err(failure) => push.keep(failure).await,
    };
    line.rebased = push.rebased;
    Ok(Some(line))
}

/// Saves the run's commits in a bundle for a publishing job.
pub fn keep_for_publish(parts: &mut Parts<'_>, start: &RevId) {
    let Some(head) = parts.tree.repo.base().filter(|head| head != start) else {
        return;
    };
    let path = parts.setup.run_dir.path(RunFile::Bundle);
    if let Err(error) = parts.tree.repo.bundle(&path, start, &head) {
        parts.warn(format!(
            "the commits could not be saved in a bundle: {error}"
        ));
    }
}

/// Moves the local branch to the remote's commits, which GitHub has recreated with the same trees.
pub fn follow_remote(parts: &mut Parts<'_>, request: &PushRequest<'_>, to: &RevId) {
    let (remote, cancel) = (request.to.remote, &request.to.cancel);
    let moved = match parts.tree.repo.fetch_for(remote, to, cancel) {
        Ok(_) => parts.tree.move_to(to, &mut parts.emit),
        Err(error) => Ok(Err(error.into())),
    };
    let why = match moved {
        Ok(Ok(_)) => return parts.tree.arrive(),
        Ok(Err(error)) => error.to_string(),
        Err(error) => format!("{error:#}"),
    };
    parts.warn(format!(
        "the local branch differs from the remote one: {why}"
    ));
}

impl Push<'_, '_> {
    async fn push_until(&mut self) -> anyhow::Result<Result<RevId, PushFailure>> {
        loop {
            let (repo, expected) = (&self.parts.tree.repo, self.expected.as_ref());
            let now = match self.request.to.push(repo, &self.head, expected).await {
                PushEnd::Pushed(head) => return Ok(Ok(head)),
                PushEnd::Moved(now) => now,
                PushEnd::Failed(failure) => return Ok(Err(failure)),
            };
            if self.moves == REBASES {
                let why = format!("the branch moved {} times during the push", REBASES + 1);
                return Ok(Err(PushFailure::here(why)));
            }
            self.moves += 1;
            if let Err(failure) = self.follow(now).await? {
                return Ok(Err(failure));
            }
        }
    }

    /// Rebases the work onto the branch's new commits and verifies it there.
    async fn follow(&mut self, now: RevId) -> anyhow::Result<Result<(), PushFailure>> {
        let rebased = match self.onto(&now) {
            Ok(Some(rebased)) => rebased,
            Ok(None) => {
                self.expected = Some(now);
                return Ok(Ok(()));
            }
            Err(failure) => return Ok(Err(failure)),
        };
        self.parts.warn(format!(
            "the branch {} has moved to {}: the work is rebased onto it and verified again",
            self.request.to.branch.short(),
            short(&now)
        ));
        let checks: Vec<&TaskConfig> = self.request.checks.iter().collect();
        let before = match self.parts.tree.repo.tree_of(&now).map(TreeId::known) {
            Ok(tree) => &mut Before::at(tree),
            Err(error) => return Ok(Err(PushFailure::here(error.to_string()))),
        };
        self.parts.emit.at(None, None, None);
        let why = match move_and_verify(self.parts, &rebased.head, before, &checks).await? {
            Ok(_) => {
                self.note(&rebased.commits);
                self.head = rebased.head;
                self.expected = Some(now);
                return Ok(Ok(()));
            }
            Err(NotMoved::Fails(failing)) => format!(
                "the branch has moved, and on top of its new commits these checks fail: {failing}"
            ),
            Err(NotMoved::Stopped) => "the run was stopped".to_owned(),
            Err(NotMoved::Impossible(why)) => why,
        };
        Ok(Err(PushFailure::here(why)))
    }

    /// The work on top of the branch's new commits; `None` if it contains them already.
    fn onto(&self, now: &RevId) -> Result<Option<Rebased>, PushFailure> {
        let (repo, request) = (&self.parts.tree.repo, self.request);
        let fetched = repo.fetch_for(request.to.remote, now, &request.to.cancel);
        fetched.map_err(|error| {
            PushFailure::here(format!(
                "the branch has moved, and its new commits cannot be fetched: {error}"
            ))
        })?;
        // If the branch was moved back, the removed commits must not return with the work.
        let is_forward = |was: &RevId| repo.contains_commit(now, was);
        let was_taken_back = !self.expected.as_ref().is_none_or(is_forward);
        if !was_taken_back && repo.contains_commit(&self.head, now) {
            return Ok(None);
        }
        let commits = repo.commits_between(&request.start, &self.head);
        let commits = commits.map_err(|error| PushFailure::here(error.to_string()))?;
        let rebased = repo.rebase(now, &self.current(&commits), None);
        rebased.map(Some).map_err(|error| {
            PushFailure::here(format!("the branch has moved to {}: {error}", short(now)))
        })
    }

    /// Keeps work that the branch does not accept: on another branch of the remote, or in a file of the
    /// run directory.
    async fn keep(&mut self, failure: PushFailure) -> PushLine {
        let (repo, setup) = (&self.parts.tree.repo, &self.parts.setup);
        let to = &self.request.to;
        let mut line = to.keep(repo, &setup.run_id, &self.head, failure).await;
        if line.rescue.is_some() {
            return line;
        }
        let path = setup.run_dir.path(RunFile::Bundle);
        match repo.bundle(&path, &self.request.start, &self.head) {
            Ok(()) => line.detail += &format!("; the commits are in {BUNDLE} of the run directory"),
            Err(error) => self.parts.warn(format!(
                "the commits could not be saved in a bundle; they are only in this checkout: {error}"
            )),
        }
        line
    }

    fn push_message(&self) -> String {
        let from = self.expected.as_ref().unwrap_or(&self.request.start);
        let commits = self.parts.tree.repo.commits_between(from, &self.head);
        let commits = count(commits.map_or(0, |commits| commits.len() as u64), "commit");
        if self.rebased.is_empty() {
            commits
        } else {
            format!("{commits} on top of {}, verified there again", short(from))
        }
    }

    /// Records the new id of each commit, across several rebases.
    fn note(&mut self, commits: &[Rewritten]) {
        for commit in commits {
            let new = commit.new.as_ref().map(|id| id.0.clone());
            let old = commit.old.0.clone();
            let mut known = self.rebased.iter_mut();
            match known.find(|line| line.new.as_ref() == Some(&old)) {
                Some(line) => line.new = new,
                None => self.rebased.push(RebasedLine { old, new }),
            }
        }
    }

    /// The run's own commits in a history that may start with other people's commits.
    fn current(&self, commits: &[RevId]) -> Vec<RevId> {
        let new = || self.rebased.iter().filter_map(|line| line.new.as_ref());
        let is_own = |id: &&RevId| self.rebased.is_empty() || new().any(|own| *own == id.0);
        commits.iter().filter(is_own).cloned().collect()
    }
}
