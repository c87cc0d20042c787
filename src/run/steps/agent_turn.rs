//! Runs the agent's process: its environment, its output, its end.

use crate::agents::command::turn_env;
use crate::agents::{Agent, CliAgent, ExitFacts, Invocation, OwnSandbox, TurnReader, TurnRequest};
use crate::domain::agent::{AgentReport, TurnName};
use crate::domain::assess::TurnExit;
use crate::domain::attempt::{Role, Writes};
use crate::domain::duration::millis;
use crate::domain::sandbox::Level;
use crate::domain::text::left_running;
use crate::gateway::{REFUSAL, SpendLimits, TurnCost};
use crate::git::{Replaced, SwapError, display_path};
use crate::process::{self, CommandSpec, Ended, Exit, Input, Limits, Status};
use crate::run::begin::isolation::Purpose;
use crate::run::state::agent_files::AgentFiles;
use crate::run::state::emitter::Emitter;
use crate::run::state::layout::{Folder, RunFile};
use crate::run::state::parts::{Parts, TaskRun};
use crate::run::state::setup::Setup;
use crate::run::steps::agent_end::AgentEnd;
use crate::run::steps::builtin_turn::run_builtin;
use crate::run::steps::heartbeat::beating;
use crate::run::steps::listen::{Listener, TurnOutput};
use crate::run::steps::prompt::Prompt;
use anyhow::Context as _;
use std::borrow::Cow;
use std::cell::RefCell;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;
use std::time::Duration;

/// How many bytes at the end of a file with a final message are read.
const FINAL_FILE_TAIL: u64 = 1 << 20;

/// How long an agent that answers requests may take for its first word. Its package may have to be fetched.
const MAX_START: Duration = Duration::from_secs(2 * 60);

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
            let repo = parts.tree.repo.change();
            repo.put_back_replaced(&Replaced::default())?;
            let why = format!("its configuration could not be read from the base: {error}");
            return Ok(AgentEnd::not_started(why));
        }
    };
    let ended = run_agent(parts, run, name, prompt).await;
    let Some(replaced) = replaced else {
        return ended;
    };
    let changed = parts.tree.repo.change().put_back_replaced(&replaced);
    let changed = changed.context("the agent's configuration could not be restored")?;
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
    let replaced = (parts.tree.repo.change()).replace_files(&snapshot, commit.as_ref(), is_one)?;
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

/// Runs the agent of the task with a prompt.
///
/// # Errors
/// When the run's own state cannot be written.
async fn run_agent(
    parts: &mut Parts<'_>,
    run: &TaskRun<'_>,
    name: &TurnName,
    mut prompt: Prompt,
) -> anyhow::Result<AgentEnd> {
    let agent = match run.config.agent.clone() {
        Agent::Cli(agent) => agent,
        Agent::Builtin(mut agent) => {
            let key = run.journal.state.key;
            agent.options.answers = key.is_some_and(|key| run.writes(key) == Writes::Nothing);
            return run_builtin(parts, run, &agent, name, prompt).await;
        }
    };
    let folder = parts.setup.run_dir.folder(Folder::State);
    let scratch = tempfile::Builder::new()
        .prefix("turn-")
        .tempdir_in(folder)?;
    // Secrets are redacted in the saved prompt, but the agent gets its task unchanged.
    if let Cow::Owned(_) = parts.setup.redactor.redact(&prompt.text) {
        prompt.file = scratch.path().join("prompt.md");
        fs::write(&prompt.file, &prompt.text)?;
    }
    let file = RunFile::Transcript(prompt.number, run.config.agent.name());
    let is_resumed = run.session.is_some() && !matches!(agent, CliAgent::Command { .. });
    let mut env = agent_environment(&parts.setup, &mut parts.emit, run, &agent);
    let (config, spend) = (&parts.setup.config, run.journal.state.spend);
    let limits = parts.accounts.spend_limits(config, spend);
    let mut extra_args = match parts.setup.gateway.take_over(&run.config, limits, &mut env) {
        Ok(args) => args,
        Err(why) => return Ok(AgentEnd::not_started(why)),
    };
    extra_args.extend_from_slice(&run.config.settings.agent_args);
    let place = run.config.place(parts.tree.repo.real().work_tree());
    // The task may be to make its directory.
    let there = place.ancestors().find(|at| at.is_dir());
    let directory = there.unwrap_or(&place).to_path_buf();
    let request = turn_request(parts, run, &directory, scratch.path(), &extra_args, &env);
    let how = prepared(&agent, &request)?;
    let reader = agent.reader(&request, &prompt.text);
    let mut spec = agent_spec(run, &agent, name, prompt, &how, &directory, env);
    if let Some(dialogue) = reader.dialogue() {
        spec.stdin = Input::Dialogue(dialogue);
        spec.limits.start = Some(MAX_START.min(run.config.settings.stall_timeout));
    }
    let confined = parts.setup.isolation.policy(Purpose::Agent);
    spec.sandbox = confined.map(|policy| policy.and_write([scratch.path().to_path_buf()]));
    let (ended, heard) = drive(&parts.setup, &mut parts.emit, &spec, reader, file).await?;
    warn_of_left_processes(parts, &ended, &heard.stderr);
    let by_gateway = parts.setup.gateway.end_turn();
    let mut report = report_of(heard, &how, &ended);
    let mut exit = turn_exit(&ended.exit, &agent);
    let emit = &mut parts.emit;
    report.warnings.iter().for_each(|one| emit.warn_once(one));
    apply_gateway_report(emit, &by_gateway, limits, &mut report, &mut exit);
    Ok(AgentEnd {
        cancelled: match ended.exit {
            Exit::Cancelled(reason) => Some(reason),
            _ => None,
        },
        report,
        elapsed_ms: millis(ended.elapsed),
        resumed: is_resumed,
        by_gateway,
        ..AgentEnd::of(exit)
    })
}

/// What an agent needs to know to build the command line of the turn.
fn turn_request<'a>(
    parts: &'a Parts<'_>,
    run: &'a TaskRun<'_>,
    directory: &'a Path,
    scratch: &'a Path,
    extra_args: &'a [String],
    base_env: &'a [(OsString, OsString)],
) -> TurnRequest<'a> {
    let setup = &parts.setup;
    let schema = setup.output_schema.as_ref();
    let (config, spend) = (&setup.config, run.journal.state.spend);
    let may_write = run.journal.state.role() != Role::Reviewer;
    // A child at this level may not mount anything, which an agent's own sandbox needs.
    let own_sandbox = match setup.isolation.line().level {
        level if level >= Level::Files => OwnSandbox::Off,
        _ => OwnSandbox::On,
    };
    TurnRequest {
        work_tree: parts.tree.repo.real().work_tree(),
        directory,
        scratch,
        model: run.config.settings.model.as_deref(),
        extra_args,
        resume: run.session.as_deref(),
        max_cost_usd: parts.accounts.cost_left(config, spend),
        may_write,
        // What a tool of a server changes elsewhere is not for a reviewer.
        mcp: if may_write { &setup.config.mcp } else { &[] },
        own_sandbox,
        repository_files: setup.agent_files.prompt_files(),
        is_root: setup.is_root,
        output_schema: schema.filter(|_| run.journal.state.is_asked_for_output()),
        base_env,
    }
}

/// Warns of processes that the agent left behind and of writes that the sandbox refused.
fn warn_of_left_processes(parts: &mut Parts<'_>, ended: &Ended, stderr: &str) {
    if !ended.leaked.is_empty() {
        let left = left_running(ended.leaked.len() as u64);
        let names = ended.leaked.iter().map(|one| one.command.as_str());
        let names = names.collect::<Vec<_>>().join(", ");
        parts.warn(format!("the agent left {left}: {names}"));
    }
    if let Some(refusal) = parts.setup.isolation.refusal(stderr) {
        parts.warn(refusal);
    }
    parts.setup.report_denied_hosts(&mut parts.emit);
}

/// The reader's report on the agent's output and its exit status.
fn report_of(heard: TurnOutput, how: &Invocation, ended: &Ended) -> AgentReport {
    let read = how.final_message_file.as_deref().and_then(read_end);
    let (final_file, final_file_cut) = read.unzip();
    let (code, signal) = match ended.raw {
        Some(Status::Code(code)) => (Some(code), None),
        Some(Status::Signal(signal)) => (None, Some(signal)),
        None => (None, None),
    };
    let exit = ExitFacts {
        code,
        signal,
        killed_by_us: !matches!(ended.exit, Exit::Code(_) | Exit::Signal(_)),
        stderr_tail: &heard.stderr,
        final_file: final_file.as_deref(),
        final_file_cut: final_file_cut.unwrap_or(false),
    };
    let mut report = heard.reader.finish(exit);
    report.exit_error = exit.api_error();
    let mut lines = heard.stderr.lines().map(str::trim);
    let last = lines.rfind(|line| !line.is_empty());
    report.last_error_line = last.map(str::to_owned);
    report
}

/// Applies what the gateway reports about a turn. An agent that met a limit there has not failed: its
/// work so far counts, and the limit ends the task if it needs more.
fn apply_gateway_report(
    emit: &mut Emitter<'_>,
    cost: &TurnCost,
    limits: SpendLimits,
    report: &mut AgentReport,
    exit: &mut TurnExit,
) {
    if let (Some(model), Some(_)) = (&cost.unpriced, limits.cost_usd) {
        emit.warn_once(&format!(
            "the price of the model {model} is unknown: it counts as the most expensive known model"
        ));
    }
    let Some(refused) = &cost.refused else { return };
    emit.warn(format!("the gateway refuses further requests: {refused}"));
    report.api_error = None;
    report.exit_error = None;
    let is_refusal = |message: &String| message.contains(REFUSAL);
    if report.final_message.as_ref().is_some_and(is_refusal) {
        report.final_message = None;
    }
    if let TurnExit::Code(_) = exit {
        *exit = TurnExit::Code(0);
    }
}

/// The command line of the turn. Writes the files that it needs.
fn prepared(agent: &CliAgent, request: &TurnRequest<'_>) -> io::Result<Invocation> {
    if let Some(schema) = request.output_schema {
        fs::write(request.output_schema_file(), schema.text())?;
    }
    let how = agent.invocation(request);
    for (path, content) in &how.files {
        fs::write(path, content)?;
    }
    Ok(how)
}

/// The allow-listed environment and the agent's login, without the runner's variables.
fn agent_environment(
    setup: &Setup,
    emit: &mut Emitter<'_>,
    run: &TaskRun<'_>,
    agent: &CliAgent,
) -> Vec<(OsString, OsString)> {
    let is_set = |name: &str| {
        let mut set = setup.env.iter();
        set.any(|(key, value)| key == name && !value.is_empty())
    };
    let passed = agent.variables_to_pass(is_set).into_iter();
    let mut names: Vec<String> = passed.map(str::to_owned).collect();
    names.extend(run.config.settings.agent_env.iter().cloned());
    let servers = setup.config.mcp.iter();
    names.extend(servers.flat_map(|server| server.variables().into_iter().map(str::to_owned)));
    setup.environment(Purpose::Agent, &names, emit)
}

fn agent_spec(
    run: &TaskRun<'_>,
    agent: &CliAgent,
    name: &TurnName,
    prompt: Prompt,
    how: &Invocation,
    directory: &Path,
    mut env: Vec<(OsString, OsString)>,
) -> CommandSpec {
    env.extend(how.env.iter().cloned());
    if let (CliAgent::Command { .. }, Some(final_file)) = (agent, &how.final_message_file) {
        let role = run.journal.state.role().as_str();
        env.extend(turn_env(name, role, &prompt.file, final_file));
    }
    CommandSpec {
        program: how.program.clone(),
        args: how.args.clone(),
        cwd: directory.to_path_buf(),
        env,
        stdin: Input::Bytes(prompt.text.into_bytes()),
        limits: Limits {
            timeout: Some(run.config.settings.turn_timeout),
            stall: Some(run.config.settings.stall_timeout),
            ..Limits::default()
        },
        sandbox: None,
    }
}

/// Runs the process, passes its lines to the reader and emits the events.
async fn drive(
    setup: &Setup,
    emit: &mut Emitter<'_>,
    spec: &CommandSpec,
    reader: Box<dyn TurnReader>,
    transcript: RunFile<'_>,
) -> anyhow::Result<(Ended, TurnOutput)> {
    let log = setup.run_dir.log(transcript)?;
    let listener = RefCell::new(Listener::new(reader, log, emit));
    let mut on_output = |stream, chunk: &[u8]| listener.borrow_mut().receive(stream, chunk);
    let working = process::run(spec, &setup.cancel, &mut on_output);
    let ended = beating(working, setup.heartbeat(), || listener.borrow_mut().beat()).await;
    let heard = listener.into_inner().finish();
    if let Some(why) = &heard.lost {
        emit.warn(format!(
            "the transcript {} is incomplete: {why}",
            setup.run_dir.path(transcript).display()
        ));
    }
    Ok((ended, heard))
}

/// The end of a regular file, and whether its start is missing.
fn read_end(path: &Path) -> Option<(Vec<u8>, bool)> {
    let metadata = fs::symlink_metadata(path).ok();
    let length = metadata.filter(fs::Metadata::is_file)?.len();
    let mut file = fs::File::open(path).ok()?;
    let start = SeekFrom::Start(length.saturating_sub(FINAL_FILE_TAIL));
    file.seek(start).ok()?;
    let mut bytes = Vec::new();
    file.take(FINAL_FILE_TAIL).read_to_end(&mut bytes).ok()?;
    Some((bytes, length > FINAL_FILE_TAIL))
}

/// The exit status as a value of the domain. A shell reports a signal that killed its command as 128
/// plus the signal's number.
fn turn_exit(exit: &Exit, agent: &CliAgent) -> TurnExit {
    let in_shell = agent.command().is_some();
    match exit {
        Exit::Code(code @ 129..=143) if in_shell => TurnExit::Signal(code - 128),
        Exit::Code(code) => TurnExit::Code(*code),
        Exit::Signal(signal) => TurnExit::Signal(*signal),
        Exit::TimedOut { after } => TurnExit::TimedOut {
            after_ms: millis(*after),
        },
        Exit::Stalled { after } => TurnExit::Stalled {
            after_ms: millis(*after),
        },
        Exit::Dismissed => TurnExit::Code(0),
        Exit::Cancelled(_) => TurnExit::Signal(15),
        Exit::NotFound => TurnExit::NotFound,
        Exit::NotExecutable { why } | Exit::SpawnFailed { why } => {
            TurnExit::NotStarted { why: why.clone() }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reports_the_signal_that_ended_its_command() {
        let command = CliAgent::Command {
            command: "agent".into(),
        };
        let ends = |agent: &CliAgent| {
            [0, 1, 126, 127, 128, 130, 137, 143, 144, 255]
                .map(|code| turn_exit(&Exit::Code(code), agent))
        };
        let mut expected = [0, 1, 126, 127, 128, 130, 137, 143, 144, 255].map(TurnExit::Code);
        assert_eq!(ends(&CliAgent::Known(crate::agents::CLIS[0])), expected);
        expected[5..8].clone_from_slice(&[2, 9, 15].map(TurnExit::Signal));
        assert_eq!(ends(&command), expected);
    }
}
