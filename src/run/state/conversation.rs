//! The agent's final message and its current session, saved so that another process can resume the run.

use crate::domain::agent::Usage;
use crate::run::state::directory::RunDir;
use crate::run::state::layout::RunFile;
use crate::run::state::parts::TaskRun;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// An agent's session that a further turn can continue.
#[derive(Debug, Serialize, Deserialize)]
struct Session {
    id: String,
    /// The session's total usage at the end of the last turn, for agents that report totals instead of
    /// usage per turn.
    used: Option<Usage>,
    /// The index of the phase that the session belongs to.
    phase: usize,
}

/// Clears both, because a message or session of an earlier task does not belong to the next one.
///
/// # Errors
/// When a file cannot be written.
pub fn forget(run_dir: &RunDir) -> anyhow::Result<()> {
    for file in [RunFile::FinalMessage, RunFile::Session] {
        keep(run_dir, file, "")?;
    }
    Ok(())
}

/// Loads both, as an earlier process of the run saved them.
pub fn recall(run_dir: &RunDir, run: &mut TaskRun<'_>, session_usage: &mut HashMap<String, Usage>) {
    run.final_message = kept(run_dir, RunFile::FinalMessage);
    if let Some(Session { id, used, phase }) = session(run_dir) {
        run.session_phase = phase;
        session_usage.extend(used.map(|used| (id.clone(), used)));
        run.session = Some(id);
    }
}

/// The agent's last final message.
pub fn final_message(run_dir: &RunDir) -> Option<String> {
    kept(run_dir, RunFile::FinalMessage)
}

/// The id of the agent's last session.
pub fn session_id(run_dir: &RunDir) -> Option<String> {
    session(run_dir).map(|session| session.id)
}

fn session(run_dir: &RunDir) -> Option<Session> {
    serde_json::from_str(&kept(run_dir, RunFile::Session)?).ok()
}

/// Saves the final message of turn `number`, for the report and as the last final message.
///
/// # Errors
/// When a file cannot be written.
pub fn save_final_message(run_dir: &RunDir, run: &TaskRun<'_>, number: u32) -> anyhow::Result<()> {
    let text = run.final_message.clone().unwrap_or_default();
    run_dir.write(RunFile::TurnMessage(number), text.as_bytes())?;
    keep(run_dir, RunFile::FinalMessage, &text)
}

/// Saves the current session and its usage.
///
/// # Errors
/// When the file cannot be written.
pub fn save_session(
    run_dir: &RunDir,
    run: &TaskRun<'_>,
    session_usage: &HashMap<String, Usage>,
) -> anyhow::Result<()> {
    let session = run.session.clone().map(|id| Session {
        used: session_usage.get(&id).copied(),
        id,
        phase: run.session_phase,
    });
    let text = session
        .map(|session| serde_json::to_string(&session))
        .transpose()?;
    keep(run_dir, RunFile::Session, &text.unwrap_or_default())
}

/// Writes the file only if its content differs.
fn keep(run_dir: &RunDir, file: RunFile<'_>, text: &str) -> anyhow::Result<()> {
    if kept(run_dir, file).unwrap_or_default() != text {
        run_dir.write(file, text.as_bytes())?;
    }
    Ok(())
}

fn kept(run_dir: &RunDir, file: RunFile<'_>) -> Option<String> {
    let text = String::from_utf8(run_dir.read(file)?).ok()?;
    (!text.is_empty()).then_some(text)
}
