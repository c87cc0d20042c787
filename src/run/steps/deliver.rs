//! The run's commits on their way to the remote: pushed with a lease, put on top of what somebody else
//! has pushed meanwhile and verified there again, or kept where nothing else is possible.

use super::Performer;
use crate::domain::checks::verdict::Verdict;
use crate::domain::event::{PushLine, RebasedLine};
use crate::domain::outcome::short;
use crate::domain::snapshot::RevId;
use crate::git::{
    BranchName, MoveIntent, PushOutcome, PushSpec, Refusal, RefusalKind, Remote, RemoteError, Repo,
    Rewritten,
};
use crate::process::Cancel;
use crate::run::directory::RunDir;
use crate::run::layout::RunFile;
use crate::settings::TaskConfig;
use std::time::Duration;

/// How often the work is put on top of a branch that has moved.
const REBASES: u32 = 3;

/// What is to be pushed where.
pub struct Parcel<'a> {
    /// The repository on the server.
    pub remote: &'a Remote,
    /// The branch there.
    pub branch: BranchName,
    /// Where it was when the run began; `None` where it was not there.
    pub expected: Option<RevId>,
    /// The commit that the run began from.
    pub start: RevId,
    /// The checks that must pass on top of somebody else's commits.
    pub checks: &'a [TaskConfig],
    /// The pauses between the tries of a push that fails for the moment.
    pub pauses: &'a [Duration],
    /// What ends the way there. A deadline does not: what is done by then is to arrive.
    pub cancel: Cancel,
}

/// Why the branch did not take the work.
pub(super) struct Stuck {
    pub(super) why: String,
    /// Whether another branch of the remote may take it.
    pub(super) elsewhere: bool,
}

impl Stuck {
    pub(super) fn here(why: impl Into<String>) -> Self {
        let why = why.into();
        let elsewhere = true;
        Self { why, elsewhere }
    }

    pub(super) fn everywhere(why: impl Into<String>) -> Self {
        let why = why.into();
        let elsewhere = false;
        Self { why, elsewhere }
    }
}

/// A push as far as it has come.
struct Way {
    head: RevId,
    expected: Option<RevId>,
    rebased: Vec<RebasedLine>,
    moves: u32,
}

impl Performer<'_> {
    /// Pushes what the run has committed; `None` when that is nothing.
    ///
    /// # Errors
    /// When the run's own state cannot be written.
    pub async fn push_work(&mut self, parcel: &Parcel<'_>) -> anyhow::Result<Option<PushLine>> {
        let Some(head) = self.repo.base().filter(|head| *head != parcel.start) else {
            return Ok(None);
        };
        let mut way = Way {
            head,
            expected: parcel.expected.clone(),
            rebased: Vec::new(),
            moves: 0,
        };
        let ended = self.push_until(parcel, &mut way).await?;
        let branch = parcel.branch.short().to_owned();
        Ok(Some(match ended {
            Ok(at) => PushLine {
                branch,
                head: Some(at.0),
                pushed: true,
                rescue: None,
                pull_request: None,
                detail: self.told_of_push(parcel, &way),
                rebased: way.rebased,
                dispatched: Vec::new(),
            },
            Err(stuck) => self.keep(parcel, &way, &stuck).await,
        }))
    }

    /// The commit that the run began from, over all of its processes; `None` in an empty repository.
    ///
    /// # Errors
    /// When it cannot be kept.
    pub fn begun_at(&self) -> anyhow::Result<Option<RevId>> {
        let kept = self.run_dir.read(RunFile::StartCommit);
        let kept = kept.and_then(|bytes| String::from_utf8(bytes).ok());
        Ok(kept.filter(|id| !id.is_empty()).map(RevId))
    }

    /// Keeps the commit that the run begins from, unless an earlier process of the run has.
    ///
    /// # Errors
    /// When it cannot be kept.
    pub fn note_begun_at(&self) -> anyhow::Result<()> {
        if let (Some(base), false) = (self.repo.base(), self.run_dir.has(RunFile::StartCommit)) {
            self.run_dir
                .write(RunFile::StartCommit, base.0.as_bytes())?;
        }
        Ok(())
    }

    /// Keeps the run's commits for another job that may push them.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn keep_for_publish(&mut self, start: &RevId) -> anyhow::Result<()> {
        let Some(head) = self.repo.base().filter(|head| head != start) else {
            return Ok(());
        };
        if let Err(error) = self
            .repo
            .bundle(&self.run_dir.path(RunFile::Bundle), start, &head)
        {
            self.warn(format!(
                "the commits could not be kept in a bundle: {error}"
            ));
        }
        Ok(())
    }

    /// Brings the branch here to where the remote's is, whose trees are the same: the commits there
    /// are GitHub's own making.
    pub fn follow_remote(&mut self, parcel: &Parcel<'_>, to: &RevId) {
        let exempt = self.exempt();
        let moved = self
            .repo
            .fetch_for(parcel.remote, to, &parcel.cancel)
            .map_err(|error| error.to_string())
            .and_then(|_| self.repo.plan_move(to).map_err(|error| error.to_string()))
            .and_then(|intent| {
                let moved = self.repo.change().move_to(&intent, &exempt);
                moved.map(drop).map_err(|error| error.to_string())
            });
        if let Err(why) = moved {
            self.warn(format!(
                "the branch here is not where the remote's is: {why}"
            ));
        }
    }

    async fn push_until(
        &mut self,
        parcel: &Parcel<'_>,
        way: &mut Way,
    ) -> anyhow::Result<Result<RevId, Stuck>> {
        loop {
            let spec = PushSpec {
                branch: parcel.branch.clone(),
                new: way.head.clone(),
                expected: way.expected.clone(),
            };
            let now = match self.pushed(parcel, &spec).await {
                Ok(PushOutcome::Pushed { head }) => return Ok(Ok(head)),
                Ok(PushOutcome::UpToDate) => return Ok(Ok(way.head.clone())),
                Ok(PushOutcome::Moved { now: Some(now) }) => now,
                Ok(PushOutcome::Moved { now: None }) => {
                    return Ok(Err(Stuck::here("the branch is gone from the remote")));
                }
                Ok(PushOutcome::Refused(refusal)) => {
                    return Ok(Err(refused(refusal.kind, &refusal.words)));
                }
                Ok(PushOutcome::Transient { words }) => {
                    return Ok(Err(Stuck::everywhere(words)));
                }
                Err(RemoteError::NotFastForward { expected, .. }) => expected,
                Err(error) => return Ok(Err(Stuck::everywhere(error.to_string()))),
            };
            if way.moves == REBASES {
                let why = format!("the branch moved {} times meanwhile", REBASES + 1);
                return Ok(Err(Stuck::here(why)));
            }
            way.moves += 1;
            if let Err(stuck) = self.follow(parcel, way, now).await? {
                return Ok(Err(stuck));
            }
        }
    }

    /// Pushes, and does so again after what passes.
    async fn pushed(
        &self,
        parcel: &Parcel<'_>,
        spec: &PushSpec,
    ) -> Result<PushOutcome, RemoteError> {
        let mut pauses = parcel.pauses.iter();
        loop {
            let outcome = self.repo.push(parcel.remote, spec, &parcel.cancel)?;
            let passes = match &outcome {
                PushOutcome::Transient { .. } => true,
                PushOutcome::Refused(Refusal { kind, .. }) => *kind == RefusalKind::Locked,
                _ => false,
            };
            let Some(pause) = pauses.next().filter(|_| passes) else {
                return Ok(outcome);
            };
            tokio::select! {
                () = tokio::time::sleep(*pause) => {}
                _ = parcel.cancel.cancelled() => return Ok(outcome),
            }
        }
    }

    /// Puts the work on top of where the branch is now, and has it verified there.
    async fn follow(
        &mut self,
        parcel: &Parcel<'_>,
        way: &mut Way,
        now: RevId,
    ) -> anyhow::Result<Result<(), Stuck>> {
        let fetched = self.repo.fetch_for(parcel.remote, &now, &parcel.cancel);
        if let Err(error) = fetched {
            return Ok(Err(Stuck::here(format!(
                "the branch has moved, and its new commits cannot be fetched: {error}"
            ))));
        }
        // What somebody took back from the branch must not come back with the work.
        let is_forward = |was: &RevId| self.repo.contains_commit(&now, was);
        let was_taken_back = !way.expected.as_ref().is_none_or(is_forward);
        if !was_taken_back && self.repo.contains_commit(&way.head, &now) {
            way.expected = Some(now);
            return Ok(Ok(()));
        }
        let commits = match self.repo.commits_between(&parcel.start, &way.head) {
            Ok(commits) => commits,
            Err(error) => return Ok(Err(Stuck::here(error.to_string()))),
        };
        let commits = way.current(&commits);
        let rebased = match self.repo.rebase(&now, &commits) {
            Ok(rebased) => rebased,
            Err(error) => {
                return Ok(Err(Stuck::here(format!(
                    "the branch has moved to {}: {error}",
                    short(&now)
                ))));
            }
        };
        self.emit.warn(format!(
            "{} has moved to {}: the work is put on top of that and verified again",
            parcel.branch.short(),
            short(&now)
        ));
        match self.move_and_verify(parcel, &rebased.head).await? {
            Ok(()) => {
                way.note(&rebased.commits);
                way.head = rebased.head;
                way.expected = Some(now);
                Ok(Ok(()))
            }
            Err(why) => Ok(Err(Stuck::here(why))),
        }
    }

    async fn move_and_verify(
        &mut self,
        parcel: &Parcel<'_>,
        to: &RevId,
    ) -> anyhow::Result<Result<(), String>> {
        let exempt = self.exempt();
        let intent = match self.repo.plan_move(to) {
            Ok(intent) => intent,
            Err(error) => return Ok(Err(error.to_string())),
        };
        self.run_dir.write_json(RunFile::Move, &intent)?;
        if let Err(error) = self.repo.change().move_to(&intent, &exempt) {
            return Ok(Err(error.to_string()));
        }
        let why = match self.verify_again(parcel.checks).await? {
            None => {
                self.run_dir.remove(RunFile::Move);
                return Ok(Ok(()));
            }
            Some(why) => why,
        };
        if let Err(error) = self.repo.change().move_back(&intent, &exempt) {
            self.warn(format!("the branch could not be put back: {error}"));
        }
        self.run_dir.remove(RunFile::Move);
        Ok(Err(why))
    }

    /// Runs every set of checks on the tree as it stands; says what failed. What the checks change is
    /// undone: what is pushed is what was committed.
    async fn verify_again(&mut self, configs: &[TaskConfig]) -> anyhow::Result<Option<String>> {
        self.emit.at(None, None, None);
        let mut seen: Vec<&TaskConfig> = Vec::new();
        for config in configs {
            if config.checks.is_empty() || seen.iter().any(|it| it.checks == config.checks) {
                continue;
            }
            seen.push(config);
            let (raw, _) = self.last_look();
            let verification = self.run_checks(config, raw.as_deref()).await?;
            self.settle(raw.as_deref());
            let exempt = self.exempt();
            if let Err(error) = self.repo.change().restore_tree(&exempt) {
                return Ok(Some(format!("the tree could not be restored: {error}")));
            }
            match verification.verdict {
                Verdict::Passed => {}
                Verdict::Aborted => return Ok(Some("the run was stopped meanwhile".into())),
                _ => {
                    let failing = verification.failing_checks().join(", ");
                    return Ok(Some(format!(
                        "the branch has moved, and on top of its new commits these checks fail: {failing}"
                    )));
                }
            }
        }
        Ok(None)
    }

    /// Work that the branch does not take is never lost: another branch of the remote has it, or a
    /// file of the run directory.
    async fn keep(&mut self, parcel: &Parcel<'_>, way: &Way, stuck: &Stuck) -> PushLine {
        let mut line = PushLine {
            branch: parcel.branch.short().to_owned(),
            head: None,
            pushed: false,
            rescue: None,
            pull_request: None,
            detail: stuck.why.clone(),
            rebased: way.rebased.clone(),
            dispatched: Vec::new(),
        };
        if stuck.elsewhere {
            let spec = rescue_of(&self.run_id, &way.head);
            let there = match self.pushed(parcel, &spec).await {
                Ok(PushOutcome::Pushed { head }) => Some(head),
                Ok(PushOutcome::UpToDate) => Some(way.head.clone()),
                _ => None,
            };
            if let Some(head) = there {
                line.head = Some(head.0);
                line.rescue = Some(spec.branch.short().to_owned());
                return line;
            }
        }
        let path = self.run_dir.path(RunFile::Bundle);
        match self.repo.bundle(&path, &parcel.start, &way.head) {
            Ok(()) => {
                line.detail = format!("{}; the commits are in {}", stuck.why, path.display());
            }
            Err(error) => self.warn(format!(
                "the commits could not be kept in a bundle, they are in this checkout alone: {error}"
            )),
        }
        line
    }

    fn told_of_push(&self, parcel: &Parcel<'_>, way: &Way) -> String {
        let from = way.expected.as_ref().unwrap_or(&parcel.start);
        let count = self.repo.commits_between(from, &way.head);
        let count = count.map_or(0, |commits| commits.len());
        let word = if count == 1 { "commit" } else { "commits" };
        match way.rebased.is_empty() {
            true => format!("{count} {word}"),
            false => format!(
                "{count} {word} on top of {}, verified there again",
                short(from)
            ),
        }
    }
}

impl Way {
    /// Notes what became of each commit, through several rewritings.
    fn note(&mut self, commits: &[Rewritten]) {
        for commit in commits {
            let new = commit.new.as_ref().map(|id| id.0.clone());
            let known = self
                .rebased
                .iter_mut()
                .find(|line| line.new.as_ref() == Some(&commit.old.0));
            match known {
                Some(line) => line.new = new,
                None => self.rebased.push(RebasedLine {
                    old: commit.old.0.clone(),
                    new,
                }),
            }
        }
    }

    /// The run's commits of a history that may begin with somebody else's.
    fn current(&self, commits: &[RevId]) -> Vec<RevId> {
        let own: Vec<&String> = self
            .rebased
            .iter()
            .filter_map(|line| line.new.as_ref())
            .collect();
        let is_own = |id: &&RevId| self.rebased.is_empty() || own.contains(&&id.0);
        commits.iter().filter(is_own).cloned().collect()
    }
}

/// Work on a branch of its own, which must not be there yet.
fn rescue_of(run_id: &str, work: &RevId) -> PushSpec {
    PushSpec {
        branch: BranchName::rescue(run_id),
        new: work.clone(),
        expected: None,
    }
}

/// Puts work that its own branch does not take on one of its own; says on which, and its head.
pub(super) fn rescued(
    repo: &Repo,
    remote: &Remote,
    run_id: &str,
    work: &RevId,
    cancel: &Cancel,
) -> Option<(String, RevId)> {
    let spec = rescue_of(run_id, work);
    let name = spec.branch.short().to_owned();
    match repo.push(remote, &spec, cancel) {
        Ok(PushOutcome::Pushed { head }) => Some((name, head)),
        Ok(PushOutcome::UpToDate) => Some((name, work.clone())),
        _ => None,
    }
}

pub(super) fn refused(kind: RefusalKind, words: &str) -> Stuck {
    let (why, elsewhere) = match kind {
        RefusalKind::Protected => ("the branch is protected", true),
        RefusalKind::Workflows => (
            "the token may not change workflow files (only an app with the permission `workflows` may)",
            false,
        ),
        RefusalKind::LargeFile => ("a file is too large for the remote", false),
        RefusalKind::Secret => ("the remote found a secret in the commits", false),
        RefusalKind::Hook => ("a hook of the remote declined", true),
        RefusalKind::Permission => (
            "the token may not push (the job needs the permission `contents: write`)",
            false,
        ),
        RefusalKind::NotFound => ("the repository is not there, or not for this token", false),
        RefusalKind::Locked => ("another process holds the branch", true),
        RefusalKind::Other => ("the remote refused the push", true),
    };
    let why = match words.trim().is_empty() {
        true => why.to_owned(),
        false => format!("{why}: {}", words.trim()),
    };
    Stuck { why, elsewhere }
}

/// Undoes a move of the branch that was under way when the run died, so that the branch is where its
/// work was verified.
///
/// # Errors
/// When the repository is not where the move can have left it.
pub fn undo_move(repo: &mut Repo, run_dir: &RunDir) -> anyhow::Result<()> {
    let Some(bytes) = run_dir.read(RunFile::Move) else {
        return Ok(());
    };
    let intent: MoveIntent = serde_json::from_slice(&bytes)?;
    let exempt = crate::git::Exempt::default();
    if repo.base().as_ref() != Some(&intent.from) {
        // The checks may have been at work; what they changed is nobody's.
        repo.restore_tree(&exempt)?;
        repo.move_back(&intent, &exempt)?;
    }
    run_dir.remove(RunFile::Move);
    Ok(())
}
