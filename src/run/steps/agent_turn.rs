//! The agent's process: its environment, its output, its end.

use super::listen::{Heard, Listener};
use super::prompting::Prompt;
use super::turn::turn_exit;
use super::{Performer, TaskRun};
use crate::agents::command::{TurnFacts, turn_env};
use crate::agents::{
    Agent, CliAgent, ExitFacts, Invocation, OwnSandbox, Stdin, TurnRequest, credentials_to_pass,
    invocation,
};
use crate::domain::agent::AgentReport;
use crate::domain::assess::TurnExit;
use crate::domain::attempt::{TurnKey, TurnPurpose};
use crate::domain::builtin::session::Telemetry;
use crate::domain::builtin::trajectory::TurnName;
use crate::domain::duration::millis;
use crate::process::{
    CancelReason, CappedLog, CommandSpec, Ended, Exit, Input, Limits, RawStatus, run,
};
use crate::run::layout::{Folder, RunFile};
use std::ffi::OsString;
use std::fs;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;

/// How much of the end of a final message's file is read.
const FINAL_FILE_TAIL: u64 = 1 << 20;

/// How an agent's turn ended.
#[derive(Debug)]
pub struct AgentEnd {
    /// How the process ended.
    pub exit: TurnExit,
    /// The signal or deadline that ended it.
    pub cancelled: Option<CancelReason>,
    /// What the agent said.
    pub report: AgentReport,
    /// Milliseconds.
    pub elapsed_ms: u64,
    /// Whether an earlier session was to be continued.
    pub resumed: bool,
    /// The session of the built-in agent in numbers.
    pub builtin: Option<Telemetry>,
}

impl AgentEnd {
    /// Whether the agent seems not to have found the session that it was to continue. It is so if
    /// nothing changed either.
    pub fn may_have_lost_its_session(&self) -> bool {
        let refused = self
            .report
            .api_error
            .as_ref()
            .is_some_and(|error| error.status.is_none());
        self.resumed && refused && self.report.tool_calls == 0 && self.cancelled.is_none()
    }
}

impl Performer<'_> {
    pub(super) async fn run_agent(
        &mut self,
        run: &mut TaskRun<'_>,
        key: TurnKey,
        purpose: &TurnPurpose,
        prompt: Prompt,
    ) -> anyhow::Result<AgentEnd> {
        let agent = match run.config.agent.clone() {
            Agent::Cli(agent) => agent,
            Agent::Builtin(agent) => {
                let name = turn_name(run, key, purpose);
                return self.run_builtin(run, &agent, name, prompt).await;
            }
        };
        let number = prompt.number;
        let scratch = tempfile::Builder::new()
            .prefix("turn-")
            .tempdir_in(self.run_dir.folder(Folder::State))?;
        let env = self.agent_environment(run, &agent);
        let resume = run.session.clone();
        let request = TurnRequest {
            work_tree: self.repo.real().work_tree(),
            scratch: scratch.path(),
            model: run.config.model.as_deref(),
            extra_args: &run.config.agent_args,
            resume: resume.as_deref(),
            max_cost_usd: self.cost_left(run),
            may_write: true,
            own_sandbox: OwnSandbox::On,
            is_root: self.is_root,
            base_env: &env,
        };
        let how = invocation(&agent, &request);
        let resumed = resume.is_some() && !matches!(agent, CliAgent::Command { .. });
        let spec = self.agent_spec(run, &agent, key, purpose, prompt, &how, env);
        let file = RunFile::Transcript(number, run.config.agent.name());
        let log = self.run_dir.path(file);
        let (ended, heard) = self.drive(&spec, &agent, &log).await?;
        if !ended.leaked.is_empty() {
            let names: Vec<&str> = ended
                .leaked
                .iter()
                .map(|one| one.command.as_str())
                .collect();
            self.warn(format!(
                "the agent left {} processes behind; they were ended: {}",
                ended.leaked.len(),
                names.join(", ")
            ));
        }
        let (final_file, final_file_cut) = match &how.final_message_file {
            Some(path) => read_end(path),
            None => (None, false),
        };
        let (code, signal) = match ended.raw {
            Some(RawStatus::Code(code)) => (Some(code), None),
            Some(RawStatus::Signal(signal)) => (None, Some(signal)),
            None => (None, None),
        };
        let mut report = heard.parser.finish(ExitFacts {
            code,
            signal,
            killed_by_us: !matches!(ended.exit, Exit::Code(_) | Exit::Signal(_)),
            stderr_tail: &heard.stderr,
            final_file: final_file.as_deref(),
            final_file_cut,
        });
        let mut error_lines = heard.stderr.lines().map(str::trim);
        report.last_error_line = error_lines
            .rfind(|line| !line.is_empty())
            .map(str::to_owned);
        let cancelled = match ended.exit {
            Exit::Cancelled(reason) => Some(reason),
            _ => None,
        };
        let elapsed_ms = millis(ended.elapsed);
        Ok(AgentEnd {
            exit: turn_exit(&ended.exit, &agent),
            cancelled,
            report,
            elapsed_ms,
            resumed,
            builtin: None,
        })
    }

    /// The allow-listed environment, the agent's login, and nothing of the runner's.
    fn agent_environment(
        &mut self,
        run: &TaskRun<'_>,
        agent: &CliAgent,
    ) -> Vec<(OsString, OsString)> {
        let is_set = |name: &str| {
            self.env
                .iter()
                .any(|(key, value)| key == name && !value.is_empty())
        };
        let mut names: Vec<String> = credentials_to_pass(agent, is_set)
            .map(|credential| credential.name.to_owned())
            .collect();
        names.extend(run.config.agent_env.iter().cloned());
        self.scrubbed(&names)
    }

    #[expect(clippy::too_many_arguments, reason = "a command has that many sources")]
    fn agent_spec(
        &self,
        run: &TaskRun<'_>,
        agent: &CliAgent,
        key: TurnKey,
        purpose: &TurnPurpose,
        prompt: Prompt,
        how: &Invocation,
        mut env: Vec<(OsString, OsString)>,
    ) -> CommandSpec {
        env.extend(how.env.iter().cloned());
        if let (CliAgent::Command { .. }, Some(final_file)) = (agent, &how.final_message_file) {
            env.extend(turn_env(&TurnFacts {
                prompt_file: &prompt.file,
                final_file,
                task_id: run.task.id.as_str(),
                attempt: key.attempt,
                turn: key.turn,
                purpose: purpose.as_str(),
            }));
        }
        CommandSpec {
            program: how.program.clone(),
            args: how.args.clone(),
            cwd: self.repo.real().work_tree().to_path_buf(),
            env,
            stdin: match how.stdin {
                Stdin::Prompt => Input::Bytes(prompt.text.into_bytes()),
                Stdin::Null => Input::Null,
            },
            limits: Limits {
                timeout: Some(run.config.turn_timeout),
                stall: Some(run.config.stall_timeout),
                ..Limits::default()
            },
        }
    }

    pub(super) fn cost_left(&self, run: &TaskRun<'_>) -> Option<f64> {
        let spent = self.spent.cost_usd + run.journal.state.spend.cost_usd;
        self.config
            .max_cost_usd
            .map(|limit| (limit - spent).max(0.01))
    }

    /// Runs the process and hands its lines to the parser and its events on.
    async fn drive(
        &mut self,
        spec: &CommandSpec,
        agent: &CliAgent,
        log: &Path,
    ) -> anyhow::Result<(Ended, Heard)> {
        let mut listener = Listener::new(agent, CappedLog::create(log)?, &mut self.emit);
        let ended = run(spec, &self.cancel, &mut |stream, chunk: &[u8]| {
            listener.hear(stream, chunk);
        })
        .await;
        let heard = listener.finish();
        if let Some(why) = &heard.lost {
            self.warn(format!(
                "the transcript {} is incomplete: {why}",
                log.display()
            ));
        }
        Ok((ended, heard))
    }
}

fn turn_name(run: &TaskRun<'_>, key: TurnKey, purpose: &TurnPurpose) -> TurnName {
    TurnName {
        task: run.task.id.to_string(),
        attempt: key.attempt,
        turn: key.turn,
        purpose: purpose.as_str().to_owned(),
    }
}

/// The end of a file that is no link, and whether its beginning is missing.
fn read_end(path: &Path) -> (Option<Vec<u8>>, bool) {
    let is_file = fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_file());
    if !is_file {
        return (None, false);
    }
    let Ok(mut file) = fs::File::open(path) else {
        return (None, false);
    };
    let length = file.metadata().map_or(0, |metadata| metadata.len());
    let cut = length > FINAL_FILE_TAIL;
    let mut bytes = Vec::new();
    let start = SeekFrom::Start(length.saturating_sub(FINAL_FILE_TAIL));
    match file
        .seek(start)
        .and_then(|_| file.take(FINAL_FILE_TAIL).read_to_end(&mut bytes))
    {
        Ok(_) => (Some(bytes), cut),
        Err(_) => (None, false),
    }
}
