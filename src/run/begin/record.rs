//! `sprag run --record FILE`.

use crate::agents::Agent;
use crate::cli::RunArgs;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::run::begin::prepare::Prepared;
use crate::run::state::recorder::Recorder;
use crate::secrets::sources::redactor;
use std::io::ErrorKind;

/// The new file for recording sessions, if one is named.
///
/// # Errors
/// When the agent of a task cannot be recorded, or the file cannot be created.
pub(crate) fn recorder(
    context: &Context,
    args: &RunArgs,
    prepared: &Prepared,
) -> Result<Option<Recorder>> {
    let Some(file) = &args.record else {
        return Ok(None);
    };
    refuse_other_agents(prepared)?;
    let path = context.cwd.join(file);
    let shown = file.display();
    if prepared
        .real
        .contains(&crate::run::state::places::resolved(&path))
    {
        return Err(
            Error::usage(format!("the recording {shown} lies inside the repository"))
                .hint("choose a place outside of the work tree: the agent could write there"),
        );
    }
    let recorder =
        Recorder::create(&path, redactor(&context.env)).map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => Error::usage(format!("{shown} already exists"))
                .hint("a recording is a new file: name another one, or move that one away"),
            _ => Error::usage(format!("the recording {shown} cannot be made: {error}"))
                .hint("name a file in an existing directory that can be written"),
        })?;
    Ok(Some(recorder))
}

fn refuse_other_agents(prepared: &Prepared) -> Result<()> {
    let mut tasks = prepared.tasks.iter();
    let other = tasks.find(|(_, config)| !matches!(config.agent, Agent::Builtin(_)));
    match other {
        None => Ok(()),
        Some((task, config)) => Err(Error::usage(format!(
            "--record keeps the sessions of the built-in agent only, and task {} has the agent {}",
            task.id,
            config.agent.name()
        ))
        .hint("the output of other agents is in turns/ of the run directory in any case")
        .hint("or use --agent builtin")),
    }
}
