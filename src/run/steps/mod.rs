//! Step → effect → observation, with one file per kind of step.

mod agent_end;
mod agent_turn;
mod announce;
mod builtin_turn;
pub(super) mod check_changes;
mod commit;
pub(super) mod credentials;
mod draft;
mod finish_task;
mod heartbeat;
mod hold;
pub(super) mod hooks;
pub mod identity;
pub(super) mod installed;
mod landing;
mod listen;
mod moved;
pub(super) mod originals;
mod plan_file;
mod policy;
mod prompt;
mod proof;
mod push;
mod setup_commands;
mod signals;
mod start_task;
mod swapped_files;
mod turn;
mod turn_mark;
mod turn_violations;
pub(super) mod uncommitted;
mod undo;
mod verify;

pub use announce::announce;
pub use commit::commit;
pub(crate) use draft::draft_plan;
pub use finish_task::{FailedTask, finish_task, restore_for_next};
pub use landing::record_plan_end;
pub(crate) use landing::{identity, last_landing, plan_name};
pub use moved::{Before, Moved, NotMoved, move_and_verify_with_reruns};
pub(crate) use policy::secrets_in;
pub use prompt::first_prompt;
pub use proof::prove;
pub use push::{PushRequest, follow_remote, keep_for_publish, push_work};
pub use setup_commands::{Services, run_setup};
pub use start_task::start_task;
pub use turn::turn;
pub use undo::undo;
pub use verify::{run_checks, verify};

use crate::domain::attempt::{Interruption, Observation, Step};
use crate::error::machine_fault;
use crate::run::state::parts::{Parts, TaskRun};

/// Performs one step and returns the observation.
///
/// # Errors
/// When the run cannot continue at all because its own state cannot be written.
pub async fn perform(
    parts: &mut Parts<'_>,
    run: &mut TaskRun<'_>,
    step: &Step,
) -> anyhow::Result<Observation> {
    if let Some(by) = parts.setup.interruption() {
        return Ok(Observation::interrupted(by));
    }
    let performed = perform_whole(parts, run, step).await;
    // Once git is ended because of a signal, what a step has seen and done is not to be judged.
    match parts.setup.interruption() {
        Some(by) if parts.tree.repo.real().is_stopped() => interrupted(performed, by),
        _ => performed,
    }
}

/// The observation of a step during which git was ended. A step that git's end made fail is repeated when the run
/// is resumed.
fn interrupted(
    performed: anyhow::Result<Observation>,
    by: Interruption,
) -> anyhow::Result<Observation> {
    match performed {
        Ok(Observation::Committed { .. } | Observation::Interrupted { .. }) => performed,
        Ok(Observation::TurnEnded(ended)) => {
            let spend = ended.spend;
            Ok(Observation::Interrupted { by, spend })
        }
        Err(error) if machine_fault(&error).is_some() => Err(error),
        Ok(_) | Err(_) => Ok(Observation::interrupted(by)),
    }
}

async fn perform_whole(
    parts: &mut Parts<'_>,
    run: &mut TaskRun<'_>,
    step: &Step,
) -> anyhow::Result<Observation> {
    match step {
        Step::RunAgent { key, purpose } => turn(parts, run, *key, purpose).await,
        Step::Verify { .. } => {
            let verified = verify(parts, run).await?;
            Ok(unless_violated(parts, verified))
        }
        Step::Prove { proof, .. } => {
            let proved = prove(parts, run, *proof).await?;
            Ok(unless_violated(parts, proved))
        }
        Step::Undo { key } => Ok(undo(parts, run, *key)),
        Step::Commit { grounds } => commit(parts, run, *grounds).await,
        Step::Wait { ms, .. } => Ok(parts.setup.wait(*ms).await),
        Step::Finish(_) => Ok(Observation::Waited),
    }
}

/// Replaces the observation with the violations of children that have ended. For an interrupted step
/// they become warnings.
fn unless_violated(parts: &mut Parts<'_>, observation: Observation) -> Observation {
    let violations = parts.setup.violations();
    match observation {
        _ if violations.is_empty() => observation,
        Observation::Interrupted { .. } => {
            violations.into_iter().for_each(|what| parts.warn(what));
            observation
        }
        _ => Observation::Violated {
            what: violations.join("; "),
        },
    }
}
