//! A turn of the built-in agent, which runs inside this process.

use crate::agents::builtin::{Http, Servers, Shell, not_used};
use crate::domain::agent::TurnName;
use crate::domain::assess::TurnExit;
use crate::domain::attempt::Role;
use crate::domain::duration::millis;
use crate::domain::event::EventKind;
use crate::domain::session::{CompletionKind, SessionExit};
use crate::git::{RawSnapshot, display_path};
use crate::mcp::{Connection, beside};
use crate::process::{CappedLog, Limits};
use crate::run::begin::isolation::Purpose;
use crate::run::state::directory::Log;
use crate::run::state::layout::RunFile;
use crate::run::state::parts::{Parts, TaskRun};
use crate::run::state::pictures;
use crate::run::steps::agent_end::AgentEnd;
use crate::run::steps::heartbeat::{Heartbeat, beating};
use crate::run::steps::prompt::Prompt;
use sprag_agent::access;
use sprag_agent::transcript::Line;
use sprag_agent::turn::{self, Builtin, Turn, TurnEnd};
use std::cell::RefCell;
use std::ffi::OsString;
use std::io::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a model's server may be silent within a response.
const MAX_SILENCE: Duration = Duration::from_secs(5 * 60);

/// Runs the built-in agent.
///
/// # Errors
/// When the transcript cannot be created.
pub(crate) async fn run_builtin(
    parts: &mut Parts<'_>,
    run: &TaskRun<'_>,
    agent: &Builtin,
    name: &TurnName,
    prompt: Prompt,
) -> anyhow::Result<AgentEnd> {
    let began = Instant::now();
    let file = RunFile::Transcript(prompt.number, run.config.agent.name());
    let mut log = parts.setup.run_dir.log(file)?;
    let env = builtin_environment(parts, run);
    let connections = connections(parts, run);
    let (setup, spend) = (&parts.setup, run.journal.state.spend);
    let work_tree = parts.tree.repo.real().work_tree().to_path_buf();
    let exempt = parts.tree.exempt();
    // A snapshot was taken just before, so this reuses it.
    let mut seen = parts.tree.repo.last_snapshot(&exempt).ok();
    let repo = &mut parts.tree.repo;
    let told = RefCell::new((Heartbeat::new(), &mut parts.emit));
    let mut emit = |event| {
        let (heartbeat, emit) = &mut *told.borrow_mut();
        heartbeat.note(&event);
        emit.emit(EventKind::Agent(event));
    };
    let warn = |message: String| {
        let (_, emit) = &mut *told.borrow_mut();
        emit.warn_once(&message);
    };
    let mut record = |line: &Line<'_>| write(&mut log, line);
    let mut changes = || changes(&mut seen, repo.snapshot(&exempt).ok());
    let idle = run.config.settings.stall_timeout.min(MAX_SILENCE);
    let timeout = run.config.settings.turn_timeout;
    let work = async {
        let servers = Servers::open(&connections, warn).await;
        let shell = Shell {
            work_tree: &work_tree,
            env,
            sandbox: setup.isolation.policy(Purpose::Agent),
            servers: &servers,
            cancel: &setup.cancel,
            longest_wait: setup.longest_wait(),
        };
        let turn = Turn {
            agent,
            name,
            prompt: prompt.text,
            pictures: pictures::for_model(&pictures::saved(&setup.run_dir)),
            tools: &servers.tools,
            work_tree: &work_tree,
            transport: Http::new(&setup.network, idle),
            host: &shell,
            timeout: timeout.saturating_sub(began.elapsed()),
            max_tokens: parts.accounts.tokens_left(&setup.config, spend),
            max_cost_usd: parts.accounts.cost_left(&setup.config, spend),
            emit: &mut emit,
            record: &mut record,
            changes: &mut changes,
        };
        turn::run(turn).await
    };
    let working = beside(&connections, &setup.cancel, work);
    let beat = || {
        let (heartbeat, emit) = &mut *told.borrow_mut();
        emit.emit(heartbeat.beat());
    };
    let ended = beating(working, setup.heartbeat(), beat).await;
    let closed = log.finish().and_then(CappedLog::close);
    if let Err(why) = closed {
        let path = file.path();
        parts.warn(format!("the transcript {path} is incomplete: {why}"));
    }
    parts.setup.report_denied_hosts(&mut parts.emit);
    let elapsed_ms = millis(began.elapsed());
    let end = AgentEnd::of(turn_exit(&ended, elapsed_ms));
    Ok(AgentEnd {
        cancelled: parts.setup.cancel.reason(),
        report: ended.report,
        elapsed_ms,
        builtin: Some(ended.telemetry),
        ..end
    })
}

/// Writes a line of the transcript. The log keeps an error until it is closed.
fn write(log: &mut Log, line: &Line<'_>) {
    let mut text = serde_json::to_vec(line).unwrap_or_default();
    text.push(b'\n');
    let _ = log.write_all(&text);
}

/// The allow-listed environment without the keys of models, even if `agent_env` names them: the agent's
/// commands do not need them.
fn builtin_environment(parts: &mut Parts<'_>, run: &TaskRun<'_>) -> Vec<(OsString, OsString)> {
    let passed = &run.config.settings.agent_env;
    let mut env = (parts.setup).environment(Purpose::Agent, passed, &mut parts.emit);
    env.retain(|(name, _)| !access::keys().any(|key| name == key));
    env
}

/// The MCP servers of the configuration, except for a reviewer: what their tools change elsewhere is not for one.
/// Each program gets its own variables, which the agent's commands do not have.
fn connections(parts: &mut Parts<'_>, run: &TaskRun<'_>) -> Vec<Connection> {
    let mut connections = Vec::new();
    if run.journal.state.role() == Role::Reviewer {
        return connections;
    }
    for server in &parts.setup.config.mcp {
        let names: Vec<String> = server.variables().into_iter().map(str::to_owned).collect();
        let env = (parts.setup).environment(Purpose::Agent, &names, &mut parts.emit);
        let limits = Limits::within(run.config.settings.turn_timeout);
        let policy = parts.setup.isolation.policy(Purpose::Agent);
        let work_tree = parts.tree.repo.real().work_tree();
        match Connection::of(server, work_tree, env, limits, policy) {
            Ok(connection) => connections.push(connection),
            Err(why) => parts.emit.warn_once(&not_used(&server.name, &why)),
        }
    }
    connections
}

/// The files that changed since the previous snapshot. `now` replaces that snapshot.
fn changes(seen: &mut Option<Arc<RawSnapshot>>, now: Option<Arc<RawSnapshot>>) -> Vec<String> {
    let Some(now) = now else { return Vec::new() };
    let before = seen.replace(Arc::clone(&now));
    let changed = before.map_or_else(Vec::new, |before| now.changed_since(&before));
    changed.iter().map(|path| display_path(path)).collect()
}

/// The end of a session as the exit status of a process.
fn turn_exit(ended: &TurnEnd, after_ms: u64) -> TurnExit {
    let is_complete = ended.telemetry.completion_kind == CompletionKind::CompleteUnverified;
    match ended.telemetry.exit {
        SessionExit::ModelError => TurnExit::Code(1),
        SessionExit::Cancelled => TurnExit::Signal(15),
        SessionExit::TimeLimit if !is_complete => TurnExit::TimedOut { after_ms },
        _ => TurnExit::Code(0),
    }
}
