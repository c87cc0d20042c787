//! The commit at the end of a plan.

use crate::domain::event::EventKind;
use crate::git::display_path;
use crate::run::state::parts::Parts;
use crate::run::steps::landing::{commit_plan, plan_name};

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
    let message = format!(
        "[sprag] Record the status of {}\n\nSprag-Run: {}\n",
        plan_name(&parts.tree.plan),
        parts.setup.run_link()
    );
    let intent = commit_plan(parts, &raw, plan, &message)?;
    parts.tree.plan.saved();
    let Some(intent) = intent else {
        return Ok(());
    };
    let files = parts
        .tree
        .plan
        .file
        .iter()
        .filter_map(|file| file.in_tree.as_deref())
        .map(display_path)
        .collect();
    parts.emit.emit(EventKind::CommitCreated {
        commit: intent.commit.0.clone(),
        subject: intent.subject,
        files,
    });
    Ok(())
}
