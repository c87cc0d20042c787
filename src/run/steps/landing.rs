//! What every commit of Sprag's has in common: it is staged, made under an identity and landed, and
//! what it could not hold is named.

use crate::domain::protected_paths::ProtectedPaths;
use crate::domain::snapshot::RevId;
use crate::git::{
    CommitError, CommitRequest, Identity, LandingIntent, PlanContent, RawSnapshot, Stage, Staged,
    display_path, display_paths,
};
use crate::permit::Committable;
use crate::run::emitter::Emitter;
use crate::run::identity::{identity_of_commits, nobody};
use crate::run::plan_state::PlanState;
use crate::run::setup::Setup;
use crate::run::steps::policy::of_staged;
use crate::run::work_tree::WorkTree;

/// The policy does not allow what was to be committed: not a fault of the commit, but a violation.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.join("; "))]
pub(crate) struct Forbidden(Vec<String>);

impl Forbidden {
    /// Passes where nothing was found.
    ///
    /// # Errors
    /// What was found.
    pub(crate) fn unless_empty(found: Vec<String>) -> Result<(), Self> {
        match found.is_empty() {
            true => Ok(()),
            false => Err(Self(found)),
        }
    }
}

/// What an error on the way to a commit says of a violation; `None` where it is another one.
pub(crate) fn violation(error: &anyhow::Error) -> Option<String> {
    let is_forbidden = error.downcast_ref::<Forbidden>().is_some();
    let is_unlike = matches!(
        error.downcast_ref::<CommitError>(),
        Some(CommitError::ChangedMeanwhile(_) | CommitError::ConvertedOtherwise(_))
    );
    (is_forbidden || is_unlike).then(|| format!("{error:#}"))
}

/// Stages what the permit is good for, and judges it; `None` where that is nothing. What is staged decides,
/// whatever was seen of the work tree before. Where the conflicts of a merge were resolved, its two sides are the
/// parents.
///
/// # Errors
/// When it cannot be staged, the permit is for another tree, or the policy does not allow what is staged.
pub(crate) fn stage(
    tree: &mut WorkTree,
    (permit, raw): (Committable, &RawSnapshot),
    (setup, protected): (&Setup, &ProtectedPaths),
    plan: Option<PlanContent>,
    parent: Option<RevId>,
) -> anyhow::Result<Option<Staged>> {
    let merging = tree.merging.as_ref();
    let merged = merging.map(|merging| merging.theirs.clone());
    let parent = merging.map(|merging| merging.ours.clone()).or(parent);
    let staged = match tree.repo.change().stage(
        permit,
        &CommitRequest {
            snapshot: raw,
            plan,
            parent,
            merged,
        },
    )? {
        Stage::Ready(staged) => staged,
        Stage::Nothing => return Ok(None),
    };
    Forbidden::unless_empty(of_staged(setup, tree, protected, &staged).lines())?;
    Ok(Some(staged))
}

/// Moves the branch to a commit that was made.
///
/// # Errors
/// When the branch does not take it.
pub(crate) fn land(
    tree: &mut WorkTree,
    emit: &mut Emitter<'_>,
    intent: &LandingIntent,
) -> Result<(), CommitError> {
    let warnings = tree.repo.change().land(intent)?;
    for warning in warnings {
        emit.warn(warning);
    }
    Ok(())
}

/// Changes that no commit of this repository can hold.
pub(crate) fn name_submodules(tree: &WorkTree, emit: &mut Emitter<'_>) {
    let dirty = tree.repo.dirty_submodules();
    if !dirty.is_empty() {
        let names = display_paths(&dirty);
        emit.warn_once(&format!(
            "files changed inside submodules were not committed: {names}; only a submodule's own commits are"
        ));
    }
}

/// Afterwards the tree is clean, but for what is named here.
pub(crate) fn name_leftovers(tree: &mut WorkTree, emit: &mut Emitter<'_>) {
    name_submodules(tree, emit);
    let (Some(raw), _) = tree.last_snapshot(emit) else {
        return;
    };
    let dirty: Vec<String> = raw
        .dirty_paths()
        .iter()
        .map(|path| display_path(path))
        .collect();
    if !dirty.is_empty() {
        emit.warn(format!(
            "the tree is not clean after the commit: {}",
            dirty.join(", ")
        ));
    }
    if !raw.nested.is_empty() {
        let names = display_paths(&raw.nested);
        emit.warn_once(&format!("nested repositories were not committed: {names}"));
    }
}

/// The plan's short name: its id, or its file's name without the ending.
pub(crate) fn plan_name(state: &PlanState) -> String {
    let file = state.file.as_ref().and_then(|file| file.path.file_stem());
    let stem = file.map(|stem| stem.to_string_lossy().into_owned());
    let name = state
        .plan
        .id
        .clone()
        .or(stem)
        .unwrap_or_else(|| "prompt".into());
    name.chars()
        .map(|c| if c.is_control() || c == '/' { '-' } else { c })
        .collect()
}

/// Whose name the commits have: the bot's in a job of GitHub Actions, else what git is configured for.
pub(crate) fn identity(setup: &Setup, tree: &WorkTree, emit: &mut Emitter<'_>) -> Identity {
    let identity = identity_of_commits(setup.in_actions, &tree.repo);
    if identity == nobody() {
        emit.warn_once(
            "git knows no user.name and user.email; commits are made as sprag <sprag@localhost>",
        );
    }
    identity
}
