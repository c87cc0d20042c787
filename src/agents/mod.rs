//! Coding agents: the built-in one, and those that are commands, for each of which there is an argv
//! builder and a parser of what it prints.
//!
//! Everything but [`builtin`] is pure. The caller starts the process, pipes the prompt in, hands every line
//! of stdout to the [`LineParser`] and, when the process has ended, what is known of its end.

pub mod builtin;
pub mod claude;
pub mod codex;
pub mod command;
mod json;
mod text;

use crate::domain::agent::{AgentEvent, AgentReport, ApiError, ApiErrorClass};
use crate::domain::api_error::classify;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// An agent.
#[derive(Debug, Clone, PartialEq)]
pub enum Agent {
    /// One that is started as a command.
    Cli(CliAgent),
    /// The one that is part of Sprag.
    Builtin(Box<builtin::Builtin>),
}

impl Agent {
    /// Its name for people.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Cli(CliAgent::Codex) => "codex",
            Self::Cli(CliAgent::Claude) => "claude",
            Self::Cli(CliAgent::Command { .. }) => "command",
            Self::Builtin(_) => "builtin",
        }
    }
}

/// An agent that is started as a command, once for each turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CliAgent {
    /// OpenAI's `codex exec`.
    Codex,
    /// Anthropic's `claude -p`.
    Claude,
    /// Any command of the user's.
    Command {
        /// Run by `sh -c`.
        command: String,
    },
}

/// Whether an agent shall confine its own commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnSandbox {
    /// It does: nothing else around it is known to.
    On,
    /// It does not: something outside confines the whole agent, or the host cannot run the
    /// agent's own sandbox (a container without user namespaces) and the user accepts that.
    Off,
}

/// What one turn of an agent is to be started with. The prompt is not among it: it goes in by
/// stdin, so that no builder can ever put it on a command line.
#[derive(Debug, Clone, Copy)]
pub struct TurnRequest<'a> {
    /// The work tree, absolute; also the directory that the process is to be started in.
    pub work_tree: &'a Path,
    /// An existing directory for this turn's files, outside of the work tree and empty before
    /// the turn: a final message in it from an earlier turn would be taken for this turn's.
    pub scratch: &'a Path,
    /// The agent's own name of a model; `None` leaves the choice to the agent.
    pub model: Option<&'a str>,
    /// The user's arguments, appended to ours. One that decides what an argument of ours
    /// decides (sandbox, permissions, model, budget) replaces it.
    pub extra_args: &'a [String],
    /// The session of an earlier turn that this turn continues.
    pub resume: Option<&'a str>,
    /// Limit of this turn's cost in US dollars, for agents that know one (`claude`).
    pub max_cost_usd: Option<f64>,
    /// Whether the agent may change the work tree (a reviewer may not).
    pub may_write: bool,
    /// Whether the agent confines its commands itself.
    pub own_sandbox: OwnSandbox,
    /// Whether the process will run as root.
    pub is_root: bool,
    /// The environment that the process gets already: what is set there is not set anew.
    pub base_env: &'a [(OsString, OsString)],
}

impl TurnRequest<'_> {
    fn base_env_has(&self, name: &str) -> bool {
        self.base_env_value(name).is_some()
    }

    fn base_env_value(&self, name: &str) -> Option<&OsStr> {
        self.base_env
            .iter()
            .find(|(known, value)| known == name && !value.is_empty())
            .map(|(_, value)| value.as_os_str())
    }

    /// The session to continue, unless its id could be read as an option.
    fn resumable(&self) -> Option<&str> {
        self.resume.filter(|id| is_session_id(id))
    }

    /// Whether the user's arguments have one of these options, apart or with `=value`.
    fn overrides(&self, options: &[&str]) -> bool {
        self.extra_args.iter().any(|arg| {
            let name = arg.split_once('=').map_or(arg.as_str(), |(name, _)| name);
            options.contains(&name)
        })
    }
}

/// How to start one turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invocation {
    /// The program, to be looked up in `PATH`.
    pub program: OsString,
    /// Its arguments, the program's name not included.
    pub args: Vec<OsString>,
    /// Variables to add to the environment that was given.
    pub env: Vec<(OsString, OsString)>,
    /// What stdin is.
    pub stdin: Stdin,
    /// Where the agent may leave its final message; [`ExitFacts::final_file`] is its content.
    pub final_message_file: Option<PathBuf>,
}

/// What an agent's stdin is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stdin {
    /// The prompt, then end of file.
    Prompt,
    /// Nothing.
    Null,
}

/// How to start one turn of `agent`.
pub fn invocation(agent: &CliAgent, request: &TurnRequest<'_>) -> Invocation {
    match agent {
        CliAgent::Codex => codex::invocation(request),
        CliAgent::Claude => claude::invocation(request),
        CliAgent::Command { command } => command::invocation(command, request),
    }
}

/// A variable that an agent reads its login or its API's address from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CredentialName {
    /// The variable.
    pub name: &'static str,
    /// Whether its value must never be shown.
    pub secret: bool,
    /// It is of use only where this other variable is set, and is not passed on elsewhere.
    pub only_with: Option<&'static str>,
}

impl CredentialName {
    const fn secret(name: &'static str) -> Self {
        Self {
            name,
            secret: true,
            only_with: None,
        }
    }

    const fn setting(name: &'static str) -> Self {
        Self {
            name,
            secret: false,
            only_with: None,
        }
    }

    const fn only_with(self, other: &'static str) -> Self {
        Self {
            only_with: Some(other),
            ..self
        }
    }
}

/// The variables of login and address that `agent` may be given, beyond the common allow-list.
pub fn credentials(agent: &CliAgent) -> &'static [CredentialName] {
    match agent {
        CliAgent::Codex => codex::CREDENTIALS,
        CliAgent::Claude => claude::CREDENTIALS,
        CliAgent::Command { .. } => &[],
    }
}

/// The names among [`credentials`] to pass on, given which variables are set.
pub fn credentials_to_pass(
    agent: &CliAgent,
    is_set: impl Fn(&str) -> bool,
) -> impl Iterator<Item = &'static CredentialName> {
    credentials(agent).iter().filter(move |credential| {
        is_set(credential.name) && credential.only_with.is_none_or(&is_set)
    })
}

/// What is known of the end of an agent's process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ExitFacts<'a> {
    /// Its exit code, if it exited.
    pub code: Option<i32>,
    /// The signal that ended it, if one did.
    pub signal: Option<i32>,
    /// Whether the executor ended it (time limit, cancel). Some agents exit 0 then.
    pub killed_by_us: bool,
    /// The end of what it printed to stderr.
    pub stderr_tail: &'a str,
    /// Content of [`Invocation::final_message_file`], if there is such a file.
    pub final_file: Option<&'a [u8]>,
    /// Whether that content is only the file's end.
    pub final_file_cut: bool,
}

impl ExitFacts<'_> {
    /// Whether the process ended by itself with an exit code that says it failed.
    fn failed_by_itself(&self) -> bool {
        !self.killed_by_us && self.signal.is_none() && self.code.is_some_and(|code| code != 0)
    }

    /// The final message that the agent left in its file, if it is more than white space.
    fn final_message(&self) -> Option<String> {
        let text = String::from_utf8_lossy(self.final_file?);
        let text = text.trim_end();
        (!text.trim_start().is_empty()).then(|| text.to_owned())
    }
}

/// Reads what one turn of an agent prints to stdout.
#[derive(Debug)]
pub enum LineParser {
    /// For `codex`.
    Codex(codex::Parser),
    /// For `claude`.
    Claude(claude::Parser),
    /// For a command.
    Command(command::Parser),
}

impl LineParser {
    /// A parser for one turn of `agent`.
    pub fn new(agent: &CliAgent) -> Self {
        match agent {
            CliAgent::Codex => Self::Codex(codex::Parser::default()),
            CliAgent::Claude => Self::Claude(claude::Parser::default()),
            CliAgent::Command { .. } => Self::Command(command::Parser::default()),
        }
    }

    /// What a line of stdout says. The line comes without its newline, as the bytes that they
    /// are. Nothing is ever an error.
    pub fn line(&mut self, line: &[u8]) -> Vec<AgentEvent> {
        match self {
            Self::Codex(parser) => parser.line(line),
            Self::Claude(parser) => parser.line(line),
            Self::Command(parser) => parser.line(line),
        }
    }

    /// What a line says of which only the beginning and the end are left: it is not of the
    /// agent's protocol.
    pub fn cut_line(&mut self, head: &[u8], end: &[u8]) -> Vec<AgentEvent> {
        if let Self::Command(parser) = self {
            parser.keep_cut(head, end);
        }
        raw(head)
    }

    /// Takes whole lines in, with their newlines, that hold no `{` and so are not of the agent's
    /// protocol, without making events of them.
    pub fn plain_lines(&mut self, lines: &[u8]) {
        if let Self::Command(parser) = self {
            parser.keep(lines);
        }
    }

    /// What is known of the turn, now that the process has ended.
    ///
    /// Exit codes 126 and 127 are not read here: what they mean depends on whether the work tree
    /// changed.
    pub fn finish(self, exit: ExitFacts<'_>) -> AgentReport {
        match self {
            Self::Codex(parser) => parser.finish(exit),
            Self::Claude(parser) => parser.finish(exit),
            Self::Command(parser) => parser.finish(exit),
        }
    }
}

/// Most tool calls that are remembered until their result comes: an agent that never gives the
/// results must not grow the executor.
const MAX_OPEN_CALLS: usize = 256;

/// The error of an agent that exited without a word of its protocol: it did not like its
/// arguments, its configuration or its user, and will not like them on the next attempt either.
/// Codes from 126 on are the shell's, and of processes that a signal ended.
fn refused_to_start(exit: ExitFacts<'_>) -> Option<ApiError> {
    if !exit.failed_by_itself() || exit.code.is_some_and(|code| code >= 126) {
        return None;
    }
    let message = match last_lines(exit.stderr_tail, 5) {
        lines if lines.is_empty() => "exited at once without saying why".to_owned(),
        lines => lines,
    };
    Some(classify(None, &message).unwrap_or(ApiError {
        status: None,
        message,
        retry_after_ms: None,
        class: ApiErrorClass::Unavailable,
    }))
}

/// The last `count` lines of `text` that are not empty.
fn last_lines(text: &str, count: usize) -> String {
    let mut lines: Vec<&str> = text
        .lines()
        .rev()
        .filter(|line| !line.trim().is_empty())
        .take(count)
        .collect();
    lines.reverse();
    lines.join("\n")
}

/// Whether an agent's session id may be given back to it on its command line.
fn is_session_id(id: &str) -> bool {
    !id.is_empty()
        && id.len() <= 128
        && !id.starts_with('-')
        && id
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':'))
}

/// The event for a line that is not of the agent's protocol; none for an empty one.
fn raw(line: &[u8]) -> Vec<AgentEvent> {
    // A character takes at most four bytes, so that this is more than an excerpt shows.
    let shown = line.len().min(4 * (text::EXCERPT_CHARS + 1));
    let text = String::from_utf8_lossy(&line[..shown]);
    let text = text.trim_end();
    if text.is_empty() {
        Vec::new()
    } else {
        vec![AgentEvent::Raw {
            line: text::excerpt(text),
        }]
    }
}

#[cfg(test)]
mod tests;
