//! Replaces the agent's configuration files with those of the base during a turn.

use crate::domain::agent::TurnName;
use crate::git::{Replaced, SwapError, display_path};
use crate::run::state::agent_files::AgentFiles;
use crate::run::state::parts::{Parts, TaskRun};
use crate::run::steps::agent_end::AgentEnd;
use crate::run::steps::agent_turn::run_agent;
use crate::run::steps::prompt::Prompt;
use anyhow::Context as _;

/// Runs the agent with the configuration files that the run prescribes, and restores the work's own
/// files afterwards.
///
/// # Errors
/// When the run's own state cannot be written, or the work's own files cannot be restored.
pub(crate) async fn run_agent_with_its_files(
    parts: &mut Parts<'_>,
    run: &TaskRun<'_>,
    name: &TurnName,
    prompt: Prompt,
) -> anyhow::Result<AgentEnd> {
    let task = format!("{} {}", run.task.title, run.task.description);
    let replaced = match replace(parts, &task) {
        Ok(replaced) => replaced,
        // Do not start an agent that would read a stranger's configuration.
        Err(error) => {
            parts
                .tree
                .repo
                .change()
                .put_back_replaced(&Replaced::default())?;
            let why = format!("its configuration could not be read from the base: {error}");
            return Ok(AgentEnd::not_started(why));
        }
    };
    let ended = run_agent(parts, run, name, prompt).await;
    let Some(replaced) = replaced else {
        return ended;
    };
    let changed = parts
        .tree
        .repo
        .change()
        .put_back_replaced(&replaced)
        .context("the agent's configuration could not be restored")?;
    let mut ended = ended?;
    ended.changed_configuration = changed.iter().map(|path| display_path(path)).collect();
    Ok(ended)
}

/// `None` if no file needs to be replaced.
fn replace(parts: &mut Parts<'_>, task: &str) -> Result<Option<Replaced>, SwapError> {
    let files = &parts.setup.agent_files;
    let AgentFiles::From { commit, branch, .. } = files else {
        return Ok(None);
    };
    let exempt = parts.tree.exempt();
    let snapshot = parts.tree.repo.last_snapshot(&exempt)?;
    let is_one = |path: &[u8]| files.cover(path, task);
    let repo = parts.tree.repo.change();
    let replaced = repo.replace_files(&snapshot, commit.as_ref(), is_one)?;
    let paths: Vec<String> = replaced.paths().map(display_path).collect();
    if paths.is_empty() {
        return Ok(None);
    }
    let from = match branch {
        Some(branch) => format!("is taken from {branch}"),
        None => "is left out".to_owned(),
    };
    parts.warn_once(&format!(
        "the agent's configuration {from} during its turns; these files differ from it: {}",
        paths.join(", ")
    ));
    Ok(Some(replaced))
}
