//! The steps that all of Sprag's commits share: staging, the identity, landing, and warnings about what
//! a commit cannot contain.

use crate::domain::event::EventKind;
use crate::domain::protected_paths::ProtectedPaths;
use crate::domain::snapshot::RevId;
use crate::error::with_causes;
use crate::git::{
    CommitError, CommitRequest, Identity, LandingIntent, PlanContent, RawSnapshot, Stage, Staged,
    display_path, display_paths,
};
use crate::permit::Committable;
use crate::run::state::directory::RunDir;
use crate::run::state::layout::RunFile;
use crate::run::state::parts::Parts;
use crate::run::state::plan_state::PlanState;
use crate::run::state::work_tree::head_of;
use crate::run::steps::identity::{identity_of_commits, nobody};
use crate::run::steps::policy::of_staged;

/// The policy forbids what was staged. This is a violation and not a failed commit.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.join("; "))]
pub(crate) struct Forbidden(Vec<String>);

impl Forbidden {
    /// Passes if nothing was found.
    ///
    /// # Errors
    /// The findings.
    pub(crate) fn unless_empty(found: Vec<String>) -> Result<(), Self> {
        if found.is_empty() {
            Ok(())
        } else {
            Err(Self(found))
        }
    }
}

/// The message if an error on the way to a commit is a violation; `None` for other errors.
pub(crate) fn violation(error: &anyhow::Error) -> Option<String> {
    let is_forbidden = error.downcast_ref::<Forbidden>().is_some();
    let is_unlike = matches!(
        error.downcast_ref::<CommitError>(),
        Some(
            CommitError::ChangedMeanwhile(_)
                | CommitError::ConvertedOtherwise(_)
                | CommitError::OldGit
        )
    );
    (is_forbidden || is_unlike).then(|| with_causes(error))
}

/// Stages the tree of the permit and applies the policy to it; `None` if there is nothing to commit. The
/// staged content decides, regardless of earlier views of the work tree. A merge commit has both sides
/// as parents.
///
/// # Errors
/// When staging fails, the permit is for another tree, or the policy forbids the staged changes.
pub(crate) fn stage(
    parts: &mut Parts<'_>,
    permit: Committable,
    raw: &RawSnapshot,
    protected: &ProtectedPaths,
    plan: Option<PlanContent>,
    parent: Option<RevId>,
) -> anyhow::Result<Option<Staged>> {
    let merging = parts.tree.merging.as_ref();
    let merged = merging.map(|merging| merging.theirs.clone());
    let parent = merging.map(|merging| merging.ours.clone()).or(parent);
    let request = CommitRequest {
        snapshot: raw,
        plan,
        parent,
        merged,
    };
    let Stage::Ready(staged) = parts.tree.repo.change().stage(permit, &request)? else {
        return Ok(None);
    };
    Forbidden::unless_empty(of_staged(parts, protected, &staged).lines())?;
    Ok(Some(staged))
}

/// Moves the branch to a commit that was made.
///
/// # Errors
/// When the branch cannot be moved.
pub(crate) fn land(parts: &mut Parts<'_>, intent: &LandingIntent) -> Result<(), CommitError> {
    let warnings = parts.tree.repo.change().land(intent)?;
    for warning in warnings {
        parts.warn(warning);
    }
    Ok(())
}

/// Commits the plan alone, whose content the policy judges, so that no path is protected; `None` if there is nothing to
/// commit.
///
/// # Errors
/// When the commit cannot be made.
pub(crate) fn commit_plan(
    parts: &mut Parts<'_>,
    raw: &RawSnapshot,
    plan: Option<PlanContent>,
    message: &str,
) -> anyhow::Result<Option<LandingIntent>> {
    let (permit, nothing) = (Committable::plan_only(), ProtectedPaths::default());
    let Some(staged) = stage(parts, permit, raw, &nothing, plan, head_of(raw))? else {
        return Ok(None);
    };
    let intent = prepare_landing(parts, staged, message)?;
    land(parts, &intent)?;
    Ok(Some(intent))
}

/// Makes the commit, and records it before the branch is moved.
///
/// # Errors
/// When it cannot be made or recorded.
pub(crate) fn prepare_landing(
    parts: &mut Parts<'_>,
    staged: Staged,
    message: &str,
) -> anyhow::Result<LandingIntent> {
    let identity = identity(parts);
    let intent = parts.tree.repo.commit_tree(staged, message, &identity)?;
    parts.setup.run_dir.write_json(RunFile::Landing, &intent)?;
    Ok(intent)
}

/// Warns of changes that no commit of this repository can contain.
pub(crate) fn warn_of_submodules(parts: &mut Parts<'_>) {
    let dirty = parts.tree.repo.dirty_submodules();
    if !dirty.is_empty() {
        let names = display_paths(&dirty);
        parts.warn_once(&format!(
            "files changed inside submodules were not committed: {names}; only a submodule's own commits are"
        ));
    }
}

/// Warns of changes that remain in the tree after a commit.
pub(crate) fn warn_of_remaining_changes(parts: &mut Parts<'_>) {
    warn_of_submodules(parts);
    let (Some(raw), _) = parts.last_snapshot() else {
        return;
    };
    let dirty = raw.dirty_paths();
    if !dirty.is_empty() {
        let names = display_paths(&dirty);
        parts.warn(format!("the tree is not clean after the commit: {names}"));
    }
    if !raw.nested.is_empty() {
        let names = display_paths(&raw.nested);
        parts.warn_once(&format!("nested repositories were not committed: {names}"));
    }
}

/// The plan's short name: its id, or its file's name without the extension.
pub(crate) fn plan_name(state: &PlanState) -> String {
    let file = state.file.as_ref().and_then(|file| file.path.file_stem());
    let stem = file.map(|stem| stem.to_string_lossy().into_owned());
    let name = state.plan.id.clone().or(stem);
    let name = name.unwrap_or_else(|| "prompt".into());
    name.replace(|c: char| c.is_control() || c == '/', "-")
}

/// The identity of commits: the bot's in GitHub Actions, else the one configured in git.
pub(crate) fn identity(parts: &mut Parts<'_>) -> Identity {
    let identity = identity_of_commits(parts.setup.in_actions, &parts.tree.repo);
    if identity == nobody() {
        parts.warn_once(
            "git knows no user.name and user.email; commits are made as sprag <sprag@localhost>",
        );
    }
    identity
}

/// Commits the statuses that no task's commit contains: at most one commit, at the end of the plan.
///
/// # Errors
/// When it cannot be made. The plan file is then unchanged.
pub fn record_plan_end(parts: &mut Parts<'_>) -> anyhow::Result<()> {
    parts.tree.save_plan()?;
    if !parts.tree.plan.is_unsaved() || parts.setup.config.settings.allow_dirty {
        return Ok(());
    }
    let (Some(raw), _) = parts.snapshot() else {
        return Ok(());
    };
    if !raw.dirty_paths().is_empty() {
        parts.warn("the plan's status could not be saved: the tree is dirty");
        return Ok(());
    }
    let plan = parts.tree.plan.content(None)?;
    let (name, run) = (plan_name(&parts.tree.plan), parts.setup.run_link());
    let message = format!("[sprag] Record the status of {name}\n\nSprag-Run: {run}\n");
    let intent = commit_plan(parts, &raw, plan, &message)?;
    parts.tree.plan.saved();
    if let Some(intent) = intent {
        let files = parts.tree.plan.in_tree().map(display_path);
        parts.emit.emit(EventKind::CommitCreated {
            commit: intent.commit.0.clone(),
            subject: intent.subject,
            files: files.into_iter().collect(),
        });
    }
    Ok(())
}

/// The commit that landed last, or was about to when the run died.
///
/// # Errors
/// When its record is damaged.
pub(crate) fn last_landing(run_dir: &RunDir) -> anyhow::Result<Option<LandingIntent>> {
    let Some(bytes) = run_dir.read(RunFile::Landing) else {
        return Ok(None);
    };
    Ok(serde_json::from_slice(&bytes)?)
}
