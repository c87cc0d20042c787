//! The commit at the end of a plan.

use crate::domain::event::EventKind;
use crate::domain::protected_paths::ProtectedPaths;
use crate::git::display_path;
use crate::permit::Committable;
use crate::run::state::emitter::Emitter;
use crate::run::state::layout::RunFile;
use crate::run::state::setup::Setup;
use crate::run::state::work_tree::{WorkTree, head_of};
use crate::run::steps::landing::{identity, land, plan_name, stage};

/// Commits the statuses that no task's commit contains: at most one commit, at the end of the plan.
///
/// # Errors
/// When it cannot be made. The plan file is then unchanged.
pub fn record_plan_end(
    setup: &Setup,
    tree: &mut WorkTree,
    emit: &mut Emitter<'_>,
) -> anyhow::Result<()> {
    tree.save_plan()?;
    if !tree.plan.is_unsaved() || setup.config.settings.allow_dirty {
        return Ok(());
    }
    let (Some(raw), _) = tree.snapshot(emit) else {
        return Ok(());
    };
    if !raw.dirty_paths().is_empty() {
        emit.warn("the plan's status could not be saved: the tree is dirty");
        return Ok(());
    }
    let plan = tree.plan.content(None)?;
    // The commit contains only the plan, whose content the policy judges, so no path is protected.
    let nothing = ProtectedPaths::default();
    let permit = Committable::plan_only();
    let Some(staged) = stage(tree, permit, &raw, setup, &nothing, plan, head_of(&raw))? else {
        tree.plan.saved();
        return Ok(());
    };
    let message = format!(
        "[sprag] Record the status of {}\n\nSprag-Run: {}\n",
        plan_name(&tree.plan),
        setup.run_link()
    );
    let identity = identity(setup, tree, emit);
    let intent = tree.repo.commit_tree(staged, &message, &identity)?;
    setup.run_dir.write_json(RunFile::Landing, &intent)?;
    land(tree, emit, &intent)?;
    tree.plan.saved();
    let files = tree
        .plan
        .file
        .iter()
        .filter_map(|file| file.in_tree.as_deref())
        .map(display_path)
        .collect();
    emit.emit(EventKind::CommitCreated {
        commit: intent.commit.0.clone(),
        subject: intent.subject,
        files,
    });
    Ok(())
}
