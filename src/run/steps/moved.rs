//! Commits that are in the repository already, taken for the branch once the checks pass on them.

use crate::domain::checks::verdict::Verdict;
use crate::domain::snapshot::RevId;
use crate::run::accounts::CheckMemory;
use crate::run::emitter::Emitter;
use crate::run::setup::Setup;
use crate::run::steps::verify::run_checks;
use crate::run::work_tree::WorkTree;
use crate::settings::TaskConfig;

/// Why the branch is where it was.
pub enum NotMoved {
    /// These checks fail on the commits.
    Fails(String),
    /// The run was asked to stop.
    Stopped,
    /// The repository cannot be moved there or back.
    Impossible(String),
}

/// Brings branch, index and work tree to `to` and verifies it there by every set of `checks`. Where they do not
/// pass, the branch is put back.
///
/// # Errors
/// When the run's own state cannot be written.
pub async fn move_and_verify<'c>(
    setup: &Setup,
    tree: &mut WorkTree,
    memory: &mut CheckMemory,
    emit: &mut Emitter<'_>,
    to: &RevId,
    checks: impl Iterator<Item = &'c TaskConfig>,
) -> anyhow::Result<Option<NotMoved>> {
    let intent = match tree.move_to(to)? {
        Ok(intent) => intent,
        Err(error) => return Ok(Some(NotMoved::Impossible(error.to_string()))),
    };
    let failed = verify_moved(setup, tree, memory, emit, checks).await?;
    match failed {
        None => tree.arrive(),
        Some(_) => tree.move_back(&intent, emit),
    }
    Ok(failed)
}

/// The same, where checks that fail are run again as often as the settings say.
///
/// # Errors
/// When the run's own state cannot be written.
pub async fn move_and_verify_with_reruns(
    setup: &Setup,
    tree: &mut WorkTree,
    memory: &mut CheckMemory,
    emit: &mut Emitter<'_>,
    to: &RevId,
    checks: &[&TaskConfig],
) -> anyhow::Result<Option<NotMoved>> {
    let reruns = checks.iter().map(|config| config.settings.flaky_reruns);
    let mut left = reruns.max().unwrap_or(0);
    loop {
        let checks = checks.iter().copied();
        match move_and_verify(setup, tree, memory, emit, to, checks).await? {
            Some(NotMoved::Fails(failing)) if left > 0 => {
                left -= 1;
                emit.warn(format!(
                    "these checks failed and are run once more: {failing}"
                ));
            }
            failed => return Ok(failed),
        }
    }
}

/// Runs every set of checks on the tree as it stands. What the checks change is undone: what is taken is
/// what was committed.
async fn verify_moved<'c>(
    setup: &Setup,
    tree: &mut WorkTree,
    memory: &mut CheckMemory,
    emit: &mut Emitter<'_>,
    checks: impl Iterator<Item = &'c TaskConfig>,
) -> anyhow::Result<Option<NotMoved>> {
    let mut seen: Vec<&TaskConfig> = Vec::new();
    for config in checks {
        if config.checks.is_empty() || seen.iter().any(|it| it.checks == config.checks) {
            continue;
        }
        seen.push(config);
        let (raw, _) = tree.last_snapshot(emit);
        let verification = run_checks(setup, tree, memory, emit, config, raw.as_deref()).await?;
        tree.settle(raw.as_deref(), emit);
        let exempt = tree.exempt();
        if let Err(error) = tree.repo.change().restore_tree(&exempt) {
            let why = format!("the tree could not be restored: {error}");
            return Ok(Some(NotMoved::Impossible(why)));
        }
        match verification.verdict {
            Verdict::Passed => {}
            Verdict::Aborted => return Ok(Some(NotMoved::Stopped)),
            _ => {
                let failing = verification.failing_checks().join(", ");
                return Ok(Some(NotMoved::Fails(failing)));
            }
        }
    }
    Ok(None)
}
