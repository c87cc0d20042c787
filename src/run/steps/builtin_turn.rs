//! A turn of the built-in agent, which is no process.

use super::agent_turn::AgentEnd;
use super::prompting::Prompt;
use super::{Performer, Recorder, TaskRun};
use crate::agents::builtin::{self, Builtin, Ended, Turn};
use crate::domain::assess::TurnExit;
use crate::domain::builtin::session::{CompletionKind, SessionExit};
use crate::domain::builtin::trajectory::{Line, TurnName};
use crate::domain::duration::millis;
use crate::domain::event::EventKind;
use crate::git::{RawSnapshot, display_path};
use crate::process::CappedLog;
use crate::run::layout::RunFile;
use std::ffi::OsString;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The longest that a model's server may be silent within a response.
const LONGEST_SILENCE: Duration = Duration::from_secs(5 * 60);

impl Performer<'_> {
    /// Lets the built-in agent work. Its trajectory is the turn's transcript.
    pub(super) async fn run_builtin(
        &mut self,
        run: &TaskRun<'_>,
        agent: &Builtin,
        turn: TurnName,
        prompt: Prompt,
    ) -> anyhow::Result<AgentEnd> {
        let began = Instant::now();
        let file = RunFile::Transcript(prompt.number, run.config.agent.name());
        let mut log = CappedLog::create(&self.run_dir.path(file))?;
        let mut lost = None;
        let env = self.builtin_environment(run);
        let (max_tokens, max_cost_usd) = (self.tokens_left(run), self.cost_left(run));
        let (cancel, network) = (self.cancel.clone(), self.network.clone());
        let work_tree = self.repo.real().work_tree().to_path_buf();
        let longest_wait = self.longest_wait();
        let exempt = self.exempt();
        // Looked at just before, so this is free.
        let mut seen = self.repo.last_look(&exempt).ok();
        let (repo, emit, recorder) = (&mut self.repo, &mut self.emit, &mut self.recorder);
        let ended = builtin::run(Turn {
            agent,
            name: turn,
            number: prompt.number,
            prompt: prompt.text,
            work_tree: &work_tree,
            env,
            network: &network,
            cancel: &cancel,
            timeout: run.config.turn_timeout,
            idle: run.config.stall_timeout.min(LONGEST_SILENCE),
            longest_wait,
            max_tokens,
            max_cost_usd,
            emit: &mut |event| emit.emit(EventKind::Agent(event)),
            record: &mut |line| {
                if let (None, Err(error)) = (&lost, write(&mut log, line)) {
                    lost = Some(error.to_string());
                }
                if let Some(recorder) = recorder {
                    recorder.write(line);
                }
            },
            changes: &mut || changes(&mut seen, repo.look(&exempt).ok()),
        })
        .await;
        let lost = lost.or_else(|| log.close().err().map(|error| error.to_string()));
        if let Some(why) = lost {
            self.warn(format!(
                "the transcript {} is incomplete: {why}",
                file.path()
            ));
        }
        if let Some(why) = self.recorder.as_mut().and_then(Recorder::lost) {
            self.warn(why);
        }
        let cancelled = self.cancel.reason();
        Ok(AgentEnd {
            exit: turn_exit(&ended, millis(began.elapsed())),
            cancelled,
            report: ended.report,
            elapsed_ms: millis(began.elapsed()),
            resumed: false,
            builtin: Some(ended.telemetry),
        })
    }

    /// The allow-listed environment. Keys of models are not in it, whoever asks for them: the agent's
    /// commands have no use for them.
    fn builtin_environment(&mut self, run: &TaskRun<'_>) -> Vec<(OsString, OsString)> {
        let mut env = self.scrubbed(&run.config.agent_env);
        env.retain(|(name, _)| !builtin::variables().any(|key| name == key));
        env
    }

    fn tokens_left(&self, run: &TaskRun<'_>) -> Option<u64> {
        let spent = self
            .spent
            .tokens
            .saturating_add(run.journal.state.spend.tokens);
        let limit = self.config.max_tokens?;
        Some(limit.saturating_sub(spent).max(1))
    }
}

fn write(log: &mut CappedLog, line: &Line) -> io::Result<()> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    log.write(&text)
}

/// The files that are not what they were in the look before, which this one takes the place of.
fn changes(seen: &mut Option<Arc<RawSnapshot>>, now: Option<Arc<RawSnapshot>>) -> Vec<String> {
    let Some(now) = now else { return Vec::new() };
    let changed = match seen.as_deref() {
        Some(before) => now.changed_since(before),
        None => Vec::new(),
    };
    *seen = Some(now);
    changed.iter().map(|path| display_path(path)).collect()
}

/// How a session's end reads as that of a process.
fn turn_exit(ended: &Ended, after_ms: u64) -> TurnExit {
    let is_complete = ended.telemetry.completion_kind == CompletionKind::CompleteUnverified;
    match ended.exit {
        SessionExit::ModelError => TurnExit::Code(1),
        SessionExit::Cancelled => TurnExit::Signal(15),
        SessionExit::TimeLimit if is_complete => TurnExit::Code(0),
        SessionExit::TimeLimit => TurnExit::TimedOut { after_ms },
        SessionExit::Submitted
        | SessionExit::StepLimit
        | SessionExit::TokenLimit
        | SessionExit::CostLimit
        | SessionExit::RepeatedFormatError
        | SessionExit::Stalled => TurnExit::Code(0),
    }
}
