//! The work tree of a run: the repository, the files that its checks left behind, and the plan.

use crate::domain::event::EventKind;
use crate::domain::protected_paths::ProtectedPaths;
use crate::domain::snapshot::{Head, RevId, Snapshot};
use crate::domain::text::first_line;
use crate::error::with_causes;
use crate::git::{
    Change, ChangeKind, Exempt, GitError, MoveIntent, RawSnapshot, Repo, SwitchError, display_path,
    remove_tree,
};
use crate::run::merge::merging::Merging;
use crate::run::state::cached_repo::CachedRepo;
use crate::run::state::directory::RunDir;
use crate::run::state::emitter::Emitter;
use crate::run::state::layout::RunFile;
use crate::run::state::plan_state::PlanState;
use crate::run::steps::check_changes::{CheckChanges, check_changes};
use crate::run::steps::originals::OriginalTests;
use crate::run::steps::uncommitted::Uncommitted;
use crate::settings::TaskConfig;
use globset::GlobSet;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Arc;

/// The raw state of the repository, if it could be read, and the same as a value of the domain.
pub type SnapshotPair = (Option<Arc<RawSnapshot>>, Snapshot);

/// The files that the checks of earlier processes of a run left behind, as recorded.
pub fn check_artifacts(run_dir: &RunDir) -> BTreeSet<Vec<u8>> {
    let known = run_dir.read_json(RunFile::CheckArtifacts);
    known.unwrap_or_default()
}

/// The work tree of a run.
pub struct WorkTree {
    /// The repository and the run's private git directory.
    pub repo: CachedRepo,
    /// The plan, its file and the status of its tasks.
    pub plan: PlanState,
    /// The merge whose conflicts the agent is resolving, if any.
    pub merging: Option<Merging>,
    run_dir: RunDir,
    progress_ignore: GlobSet,
    /// Untracked files that only the checks left behind.
    check_artifacts: BTreeSet<Vec<u8>>,
    /// Digests of those files as the checks left them, as far as this process knows.
    artifact_contents: BTreeMap<Vec<u8>, [u8; 32]>,
    /// What checks see and no commit contains.
    pub uncommitted: Uncommitted,
    original_tests: OriginalTests,
}

impl WorkTree {
    /// The work tree of a run with state in `run_dir`. Changes to paths that `progress_ignore` matches
    /// do not count as progress.
    pub fn new(
        repo: CachedRepo,
        plan: PlanState,
        run_dir: RunDir,
        progress_ignore: GlobSet,
    ) -> Self {
        let uncommitted = run_dir.read_json(RunFile::Uncommitted);
        let original_tests = run_dir.read_json(RunFile::OriginalTests);
        Self {
            uncommitted: uncommitted.unwrap_or_default(),
            original_tests: original_tests.unwrap_or_default(),
            repo,
            plan,
            merging: None,
            run_dir,
            progress_ignore,
            check_artifacts: BTreeSet::new(),
            artifact_contents: BTreeMap::new(),
        }
    }

    /// Saves the statuses in a plan file that is not committed.
    ///
    /// # Errors
    /// When the file cannot be written, or the way to it has changed.
    pub fn save_plan(&mut self) -> anyhow::Result<()> {
        if let Some(file) = &self.plan.file {
            self.repo.refuse_links_to(&file.path)?;
        }
        self.plan.save_outside()
    }

    /// Changes that a state makes to what judges the work of a task.
    pub fn check_changes(&self, raw: &RawSnapshot, config: &TaskConfig) -> CheckChanges {
        let since = self.original_tests.before(&self.repo.base_tree()).cloned();
        let (uncommitted, plan) = (&self.uncommitted, self.plan.in_tree());
        check_changes(&self.repo, raw, config, uncommitted, since, plan)
    }

    /// Notes that a task starts on the base, or that it is done there and whether its work passes the original tests.
    ///
    /// # Errors
    /// When this cannot be written.
    pub fn save_judged(&mut self, ended: Option<bool>) -> anyhow::Result<()> {
        let base = self.repo.base_tree();
        let known = self.original_tests.clone();
        match ended {
            None => self.original_tests.start_task(base),
            Some(is_verified) => self.original_tests.end_task(base, is_verified),
        }
        if known == self.original_tests {
            return Ok(());
        }
        let run_dir = &self.run_dir;
        run_dir.write_json(RunFile::OriginalTests, &self.original_tests)
    }

    /// Records what checks see and no commit contains, before an agent works.
    ///
    /// # Errors
    /// When the record cannot be written.
    pub fn save_uncommitted(
        &mut self,
        raw: Option<&RawSnapshot>,
        config: &TaskConfig,
    ) -> anyhow::Result<()> {
        let Some(raw) = raw else { return Ok(()) };
        let own = raw.only(|path| config.protected_paths.cover(path, false));
        self.record(|uncommitted, repo| {
            uncommitted.start_as(repo, &own)?;
            uncommitted.start_task(repo, raw, config);
            Ok(())
        })
    }

    /// Whether one of the protected paths that somebody had changed before the task started is as it was then.
    pub fn is_as_started(&self, raw: &RawSnapshot, path: &[u8]) -> bool {
        let mut own = self.uncommitted.own.iter();
        own.any(|(own, content)| own == path && *content == raw.content(path))
    }

    /// Records the installed dependencies that setup commands have made since a state.
    ///
    /// # Errors
    /// When the record cannot be written.
    pub fn save_installed(
        &mut self,
        before: Option<&RawSnapshot>,
        emit: &mut Emitter<'_>,
    ) -> anyhow::Result<()> {
        let (after, _) = self.last_snapshot(emit);
        let Some((before, after)) = before.zip(after.as_deref()) else {
            return Ok(());
        };
        self.record(|uncommitted, repo| {
            uncommitted.after_setup(repo, before, after);
            Ok(())
        })
    }

    /// The packages that were changed since setup commands, or the run's start, made them.
    pub fn changed_dependencies(&self, counts_new: bool) -> Vec<String> {
        let top = self.repo.real().work_tree();
        self.uncommitted.installed().changed(top, counts_new)
    }

    /// Records what checks see and no commit contains, as `change` leaves it.
    ///
    /// # Errors
    /// When the change fails or the record cannot be written.
    pub fn record(
        &mut self,
        change: impl FnOnce(&mut Uncommitted, &Repo) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let known = self.uncommitted.clone();
        change(&mut self.uncommitted, &self.repo)?;
        if known == self.uncommitted {
            return Ok(());
        }
        (self.run_dir).write_json(RunFile::Uncommitted, &self.uncommitted)
    }

    /// What an agent has made and git ignores, as far as it stays. What programs execute by themselves is moved to `to`,
    /// and named second.
    pub fn hold_ignored(
        &mut self,
        raw: &RawSnapshot,
        protected: &ProtectedPaths,
        to: &Path,
    ) -> (Vec<String>, Vec<String>) {
        let uncommitted = &self.uncommitted;
        let (left, held) = uncommitted.ignored_by_agent(&self.repo, raw, protected);
        let top = self.repo.real().work_tree().to_path_buf();
        for path in &held {
            let path = OsStr::from_bytes(path);
            let (from, kept) = (top.join(path), to.join(path));
            let above = kept.parent().map(std::fs::create_dir_all);
            let is_moved = matches!(above, Some(Ok(()))) && std::fs::rename(&from, kept).is_ok();
            if !is_moved && self.repo.refuse_links_to(&from).is_ok() {
                // What cannot be kept, because it is on another file system, is removed.
                let _ = remove_tree(&from);
            }
        }
        if !held.is_empty() {
            self.repo.change();
        }
        (left, held.iter().map(|path| display_path(path)).collect())
    }

    /// If the task has changed nothing, what the agent has written nevertheless and git ignores.
    pub fn ignored_work(&self, raw: &RawSnapshot) -> Option<String> {
        let unchanged = Some(raw).filter(|raw| raw.changes.is_empty())?;
        let written = self.uncommitted.ignored_work(&self.repo, unchanged);
        (!written.is_empty()).then(|| format!("the agent wrote {}", written.join("; ")))
    }

    /// Emits the event of a commit that this process did not make, from what the repository says about it. Returns
    /// its files.
    pub fn report_commit(&self, commit: &RevId, emit: &mut Emitter<'_>) -> Vec<String> {
        let files = self.repo.files_of(commit).unwrap_or_default();
        let message = self.repo.message_of(commit).unwrap_or_default();
        emit.emit(EventKind::CommitCreated {
            commit: commit.0.clone(),
            subject: first_line(&message).to_owned(),
            files: files.clone(),
        });
        files
    }

    /// The snapshot without a plan that no commit has: it is its author's, and no work of an agent.
    pub fn without_new_plan(&self, raw: &RawSnapshot) -> RawSnapshot {
        let plan = self.plan.in_tree();
        let is_work = |change: &Change| !change.untracked || Some(change.path.as_slice()) != plan;
        let mut work = raw.clone();
        work.changes.retain(is_work);
        work.uncounted.retain(is_work);
        work
    }

    /// The files that do not count as changes.
    pub fn exempt(&self) -> Exempt {
        Exempt {
            progress_ignore: self.progress_ignore.clone(),
            check_artifacts: self.check_artifacts.clone(),
            plan: self.plan.exempt(),
        }
    }

    /// Takes a new snapshot of the repository. Its warnings are emitted.
    pub fn snapshot(&mut self, emit: &mut Emitter<'_>) -> SnapshotPair {
        let exempt = self.exempt();
        snapshot_pair(self.repo.snapshot(&exempt), emit)
    }

    /// As [`Self::snapshot`], but reuses the last one if no process started by Sprag can have changed
    /// the repository since. Do not stage, save or remove files based on it.
    pub fn last_snapshot(&mut self, emit: &mut Emitter<'_>) -> SnapshotPair {
        let exempt = self.exempt();
        snapshot_pair(self.repo.last_snapshot(&exempt), emit)
    }

    /// As [`Self::last_snapshot`], after git has converted the changed files as for a fresh checkout, so that
    /// checks judge what is committed.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn as_checked_out(&mut self, emit: &mut Emitter<'_>) -> anyhow::Result<SnapshotPair> {
        let (raw, known) = self.last_snapshot(emit);
        // What git cannot convert is refused at the commit.
        let files = raw
            .as_deref()
            .and_then(|raw| self.repo.checked_out_otherwise(raw).ok());
        let files = files.unwrap_or_default();
        if files.is_empty() {
            return Ok((raw, known));
        }
        self.repo.change().rewrite(&files)?;
        Ok(self.snapshot(emit))
    }

    /// Records the untracked files before the checks run, so that it is known what the checks left
    /// behind even if the run dies during them.
    ///
    /// # Errors
    /// When the record cannot be written.
    pub fn save_untracked(&self, before: Option<&RawSnapshot>) -> anyhow::Result<()> {
        let Some(before) = before else { return Ok(()) };
        let there: Vec<&[u8]> = paths(before).collect();
        self.run_dir.write_json(RunFile::BeforeChecks, &there)
    }

    /// Removes files that only the checks left behind and that were changed since. The checks create
    /// them again, as in a fresh checkout, so none passes because of what somebody else wrote there.
    ///
    /// # Errors
    /// When one cannot be removed.
    pub fn drop_altered_artifacts(&mut self) -> anyhow::Result<()> {
        self.uncommitted.before_checks(&self.repo);
        let known: Vec<&Vec<u8>> = self.artifact_contents.keys().collect();
        let now = self.repo.contents_of(&known);
        let of_both = self.artifact_contents.iter().zip(now);
        let altered = of_both.filter(|((_, then), now)| **then != *now);
        let altered: Vec<Vec<u8>> = altered.map(|((path, _), _)| path.clone()).collect();
        if !altered.is_empty() {
            self.repo.change().remove_files(&altered)?;
        }
        Ok(())
    }

    /// The state after the checks. Files that they created become check artifacts. Their changes to
    /// tracked files stay.
    pub fn collect_artifacts(
        &mut self,
        before: Option<&RawSnapshot>,
        emit: &mut Emitter<'_>,
    ) -> SnapshotPair {
        let after = self.snapshot(emit);
        self.collect_artifacts_of(after, before, emit)
    }

    /// As [`Self::collect_artifacts`], for a state that is known.
    pub fn collect_artifacts_of(
        &mut self,
        after: SnapshotPair,
        before: Option<&RawSnapshot>,
        emit: &mut Emitter<'_>,
    ) -> SnapshotPair {
        let settled = self.take_artifacts(after, before, emit);
        let artifacts: Vec<&Vec<u8>> = self.check_artifacts.iter().collect();
        let contents = self.repo.contents_of(&artifacts);
        self.artifact_contents = self.check_artifacts.iter().cloned().zip(contents).collect();
        // The file does not exist if no check ran.
        self.run_dir.remove(RunFile::BeforeChecks);
        settled
    }

    fn take_artifacts(
        &mut self,
        (after, known): SnapshotPair,
        before: Option<&RawSnapshot>,
        emit: &mut Emitter<'_>,
    ) -> SnapshotPair {
        let (Some(before), Some(after)) = (before, after) else {
            return (None, known);
        };
        let recorded = self.record(|uncommitted, repo| {
            uncommitted.after_checks(repo, before, &after);
            Ok(())
        });
        emit.warn_unless_stored(recorded);
        let there: BTreeSet<&[u8]> = paths(before).collect();
        let new = new_files(&after, |path| there.contains(path));
        if new.is_empty() {
            return (Some(after), known);
        }
        self.check_artifacts.extend(new);
        self.save_artifacts(emit);
        self.snapshot(emit)
    }

    /// Loads the artifacts of checks in earlier processes of this run, including those of checks during
    /// which a process died.
    pub fn load_artifacts(&mut self, emit: &mut Emitter<'_>) {
        self.check_artifacts.extend(check_artifacts(&self.run_dir));
        let there: Option<BTreeSet<Vec<u8>>> = self.run_dir.read_json(RunFile::BeforeChecks);
        let exempt = self.exempt();
        let now = there.is_some().then(|| self.repo.snapshot(&exempt).ok());
        let Some((there, now)) = there.zip(now.flatten()) else {
            return;
        };
        let new = new_files(&now, |path| there.contains(path));
        self.check_artifacts.extend(new);
        self.save_artifacts(emit);
        self.run_dir.remove(RunFile::BeforeChecks);
    }

    fn save_artifacts(&self, emit: &mut Emitter<'_>) {
        let (file, artifacts) = (RunFile::CheckArtifacts, &self.check_artifacts);
        emit.warn_unless_stored(self.run_dir.write_json(file, artifacts));
    }

    /// Moves branch, index and work tree to another commit. The move is recorded first, so that it can
    /// be undone if the process dies before [`Self::arrive`] or [`Self::move_back`].
    ///
    /// # Errors
    /// The outer error when the run's own state cannot be written, the inner one when the repository
    /// cannot be moved.
    pub fn move_to(
        &mut self,
        to: &RevId,
        emit: &mut Emitter<'_>,
    ) -> anyhow::Result<Result<MoveIntent, SwitchError>> {
        let exempt = self.exempt();
        let intent = match self.repo.plan_move(to, &exempt) {
            Ok(intent) => intent,
            Err(error) => return Ok(Err(error)),
        };
        self.run_dir.write_json(RunFile::Move, &intent)?;
        match self.repo.change().move_to(&intent, &exempt) {
            Ok(_) => Ok(Ok(intent)),
            Err(error) => {
                if error.changed_nothing() {
                    self.arrive()
                } else {
                    self.move_back(&intent, emit)
                }
                Ok(Err(error))
            }
        }
    }

    /// Completes a move: the branch stays at the target, or at a commit made on top of it.
    pub fn arrive(&mut self) {
        self.run_dir.remove(RunFile::Move);
    }

    /// Undoes a move, even an incomplete one. A failure is a warning, and resuming the run tries again.
    pub fn move_back(&mut self, intent: &MoveIntent, emit: &mut Emitter<'_>) {
        let exempt = self.exempt();
        match self.repo.change().undo_move(intent, &exempt) {
            Ok(_) => self.run_dir.remove(RunFile::Move),
            Err(error) => emit.warn(format!("the branch could not be restored: {error}")),
        }
    }
}

fn snapshot_pair(seen: Result<Arc<RawSnapshot>, GitError>, emit: &mut Emitter<'_>) -> SnapshotPair {
    match seen {
        Ok(raw) => {
            for warning in &raw.warnings {
                emit.warn_once(warning);
            }
            let known = Snapshot::Known(Arc::new(raw.known.clone()));
            (Some(raw), known)
        }
        Err(error) => {
            let why = with_causes(&error.into());
            emit.warn_once(&format!(
                "the state of the repository could not be read ({why}); progress detection is off for this turn"
            ));
            (None, Snapshot::Unknown { why })
        }
    }
}

/// Every path in a snapshot.
fn paths(snapshot: &RawSnapshot) -> impl Iterator<Item = &[u8]> {
    let all = snapshot.changes.iter().chain(&snapshot.uncounted);
    all.map(|change| change.path.as_slice())
}

/// Untracked files that did not exist before.
fn new_files(now: &RawSnapshot, was_there: impl Fn(&[u8]) -> bool) -> Vec<Vec<u8>> {
    let new = now.changes.iter().filter(|change| {
        change.kind == ChangeKind::Added && change.untracked && !was_there(&change.path)
    });
    new.map(|change| change.path.clone()).collect()
}

/// The changed files of a snapshot, for display.
pub fn changed_paths(raw: &RawSnapshot) -> Vec<String> {
    let paths = raw.changes.iter().map(|change| display_path(&change.path));
    paths.collect()
}

/// The commit at HEAD; `None` before the first commit.
pub fn head_of(raw: &RawSnapshot) -> Option<RevId> {
    match &raw.known.head {
        Head::Unborn => None,
        Head::At(id) => Some(id.clone()),
    }
}
