//! `sprag doctor`: the conditions for a run here. Each check finds out one thing and judges it. Nothing is written.

mod actions_job;
mod agent;
mod configuration;
mod finding;
mod machine;
mod network;
mod repository;
mod trigger;

pub use finding::{Finding, State, could_work};

use crate::cli::DoctorArgs;
use crate::context::Context;
use crate::error::Result;
use crate::git::Real;
use crate::process::{self, Cancel, CancelReason};
use crate::run::begin::repository::repository as discover;
use configuration::Configured;

/// The findings of all checks, in the order in which a run needs what they check, or the signal that ended them.
///
/// # Errors
/// When signal handlers cannot be installed.
pub async fn examine(
    context: &Context,
    args: &DoctorArgs,
) -> Result<std::result::Result<Vec<Finding>, CancelReason>> {
    let real = discover(context);
    let work_tree = real.as_ref().map_or(context.cwd.as_path(), Real::work_tree);
    let configured = Configured::read(context, args, work_tree);
    let known = configured.as_ref().ok();
    let trigger = trigger::read(context, known);
    let cancel = Cancel::new();
    process::listen(&cancel).map_err(anyhow::Error::from)?;
    let processes = machine::processes(
        process::become_subreaper().is_ok() && cfg!(target_os = "linux"),
        process::can_list(),
    );
    let slow = async {
        tokio::join!(
            agent::findings(context, known, work_tree, &cancel),
            actions_job::findings(context, known, &trigger),
            machine::sandbox_findings(context, real.as_ref().ok().zip(known), &cancel),
        )
    };
    let (agent, actions_job, sandbox) = tokio::select! {
        biased;
        reason = cancel.cancelled() => return Ok(Err(reason)),
        findings = slow => findings,
    };
    Ok(Ok([
        repository::findings(context, &real, known),
        configuration::findings(context, &configured, work_tree),
        agent,
        actions_job,
        trigger.iter().map(trigger::finding).collect(),
        network::findings(context, known),
        vec![machine::user(context.is_root)],
        sandbox,
        vec![processes],
        machine::directories(context, known, work_tree),
    ]
    .concat()))
}

#[cfg(test)]
pub(crate) mod samples;
#[cfg(test)]
mod tests;
