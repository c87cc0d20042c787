//! One turn of an agent: its request, the facts about its end, and the reader of its output.

use super::{json, output};
use crate::domain::agent::{AgentEvent, AgentReport, ApiError};
use crate::domain::api_error::classify;
use crate::domain::mcp::McpServer;
use crate::domain::output_schema::OutputSchema;
use crate::domain::text::has_word;
use crate::process::Dialogue;
use serde_json::Value;
use std::ffi::{OsStr, OsString};
use std::fmt::Debug;
use std::path::{Path, PathBuf};

/// Whether an agent confines its own commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnSandbox {
    /// Yes: no other confinement is known.
    On,
    /// No: an outer sandbox confines the whole agent, or the host cannot run the agent's own sandbox (a
    /// container without user namespaces) and the user accepts that.
    Off,
}

/// The request for one turn of an agent. It does not contain the prompt, which is sent by stdin, so that no
/// builder can put it on a command line.
#[derive(Debug, Clone, Copy)]
pub struct TurnRequest<'a> {
    /// The work tree as an absolute path.
    pub work_tree: &'a Path,
    /// The process's working directory: the work tree, or a directory below it.
    pub directory: &'a Path,
    /// An existing directory for this turn's files, outside of the work tree and empty before the turn: a
    /// final message from an earlier turn would count as this turn's.
    pub scratch: &'a Path,
    /// The agent's own name of a model. `None` leaves the choice to the agent.
    pub model: Option<&'a str>,
    /// The user's arguments, which follow Sprag's. An argument with the same effect as one of Sprag's
    /// (sandbox, permissions, model, budget) replaces it.
    pub extra_args: &'a [String],
    /// The session of an earlier turn that this turn continues.
    pub resume: Option<&'a str>,
    /// Limit of this turn's cost in US dollars, for agents that support one.
    pub max_cost_usd: Option<f64>,
    /// Whether the agent may change the work tree. A reviewer may not.
    pub may_write: bool,
    /// Whether the agent confines its commands itself.
    pub own_sandbox: OwnSandbox,
    /// The source of the repository files that configure the agent.
    pub repository_files: RepositoryFiles,
    /// Whether the process will run as root.
    pub is_root: bool,
    /// The MCP servers that the agent gets.
    pub mcp: &'a [McpServer],
    /// The JSON Schema for the final message, in a turn that only asks for this value.
    pub output_schema: Option<&'a OutputSchema>,
    /// The environment that the process gets. Variables in it are not set again.
    pub base_env: &'a [(OsString, OsString)],
}

/// The source of the repository files that configure an agent, for one turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RepositoryFiles {
    /// The files of the work tree, whoever wrote them.
    #[default]
    AsTheyAre,
    /// The files of the base branch, which are in the work tree during the turn.
    OfTheBase,
    /// There are none.
    Absent,
}

impl TurnRequest<'_> {
    /// The file for the schema of the final message, if there is one.
    pub fn output_schema_file(&self) -> PathBuf {
        self.scratch.join("output-schema.json")
    }

    pub(super) fn base_env_has(&self, name: &str) -> bool {
        self.base_env_value(name).is_some()
    }

    pub(super) fn base_env_value(&self, name: &str) -> Option<&OsStr> {
        let mut set = self.base_env.iter().filter(|(_, value)| !value.is_empty());
        let (_, value) = set.find(|(known, _)| known == name)?;
        Some(value)
    }

    /// The session to continue, unless its id could be parsed as an option.
    pub(super) fn resumable(&self) -> Option<&str> {
        self.resume.filter(|id| output::is_session_id(id))
    }

    /// The argument that continues the session, if there is one.
    pub(super) fn resume_argument(&self, option: &str) -> Option<OsString> {
        Some(format!("{option}={}", self.resumable()?).into())
    }

    /// The argument that names the model, unless the user's arguments contain one of these options, separated by
    /// spaces.
    pub(super) fn model_argument(&self, options: &str) -> Option<OsString> {
        self.unless(options, format!("--model={}", self.model?))
    }

    /// An argument, unless the user's arguments contain one of these options.
    pub(super) fn unless(&self, options: &str, arg: impl Into<OsString>) -> Option<OsString> {
        (!self.overrides(options)).then(|| arg.into())
    }

    /// Those of these variables that are not set already.
    pub(super) fn unset<'v>(
        &self,
        variables: impl IntoIterator<Item = (&'v str, &'v OsStr)>,
    ) -> Vec<(OsString, OsString)> {
        let unset = variables
            .into_iter()
            .filter(|(name, _)| !self.base_env_has(name));
        unset
            .map(|(name, value)| (name.into(), value.into()))
            .collect()
    }

    /// Whether the user's arguments contain one of these options, alone or as `option=value`.
    pub(super) fn overrides(&self, options: &str) -> bool {
        self.extra_args.iter().any(|arg| {
            let name = arg.split_once('=').map_or(arg.as_str(), |(name, _)| name);
            has_word(options, name)
        })
    }
}

/// The command line and files of one turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invocation {
    /// The program, looked up in `PATH`.
    pub program: OsString,
    /// Its arguments without the program's name.
    pub args: Vec<OsString>,
    /// Variables to add to the given environment.
    pub env: Vec<(OsString, OsString)>,
    /// The file for the agent's final message. [`ExitFacts::final_file`] is its content.
    pub final_message_file: Option<PathBuf>,
    /// Files in [`TurnRequest::scratch`] to write before the start, with their content.
    pub files: Vec<(PathBuf, String)>,
}

impl Invocation {
    /// A command line without further variables and files.
    pub(super) fn of(program: &str, args: Vec<OsString>) -> Self {
        Self {
            program: program.into(),
            args,
            env: Vec::new(),
            final_message_file: None,
            files: Vec::new(),
        }
    }
}

/// How many lines at the end of stderr are taken for the error of a process that failed.
const ERROR_LINES: usize = 5;

/// The facts about the end of an agent's process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ExitFacts<'a> {
    /// Its exit code, if it exited.
    pub code: Option<i32>,
    /// The signal that ended it, if one did.
    pub signal: Option<i32>,
    /// Whether the executor ended it (time limit, cancel). Some agents then exit with 0.
    pub killed_by_us: bool,
    /// The end of its stderr.
    pub stderr_tail: &'a str,
    /// Content of [`Invocation::final_message_file`], if the file exists.
    pub final_file: Option<&'a [u8]>,
    /// Whether that content is only the end of the file.
    pub final_file_cut: bool,
}

impl ExitFacts<'_> {
    /// Whether the process exited by itself with a code that means failure.
    fn failed_by_itself(&self) -> bool {
        !self.killed_by_us && self.signal.is_none() && self.code.is_some_and(|code| code != 0)
    }

    /// The error of an agent that exited without a message of its protocol: it refused its arguments, its
    /// configuration or its user, and would refuse them again on the next attempt. Codes from 126 on are
    /// excluded, because they come from the shell or from signals.
    pub(super) fn refused_to_start(&self) -> Option<ApiError> {
        if !self.failed_by_itself() || self.code.is_some_and(|code| code >= 126) {
            return None;
        }
        let message = match last_lines(self.stderr_tail, ERROR_LINES) {
            lines if lines.is_empty() => "exited at once without saying why".to_owned(),
            lines => lines,
        };
        Some(classify(None, &message).unwrap_or_else(|| output::unavailable(message)))
    }

    /// The API error in the last lines on stderr of a process that exited by itself with a failure.
    pub fn api_error(&self) -> Option<ApiError> {
        let failed = self.failed_by_itself();
        failed.then(|| classify(None, &last_lines(self.stderr_tail, ERROR_LINES)))?
    }

    /// The final message in the agent's file, if it is not only white space.
    pub(super) fn final_message(&self) -> Option<String> {
        let text = String::from_utf8_lossy(self.final_file?);
        let text = text.trim_end();
        (!text.trim_start().is_empty()).then(|| text.to_owned())
    }
}

/// The last `count` non-empty lines of `text`.
fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}

/// Reads the stdout of one turn of an agent. No output of an agent is ever an error.
pub trait TurnReader: Debug {
    /// The events of one line, which has no newline and need not be UTF-8.
    fn line(&mut self, line: &[u8]) -> Vec<AgentEvent> {
        let object = json::object(line);
        let events = object.and_then(|object| self.event(&object));
        events.unwrap_or_else(|| output::raw(line))
    }

    /// The events of a message of the agent's protocol, or `None` for any other object.
    fn event(&mut self, _message: &Value) -> Option<Vec<AgentEvent>> {
        None
    }

    /// Processes the start and the end of a line that is too long to be read completely, and so cannot be of
    /// the agent's protocol.
    fn cut_line(&mut self, head: &[u8], _end: &[u8]) -> Vec<AgentEvent> {
        output::raw(head)
    }

    /// Processes complete lines, with their newlines, that contain no `{` and so cannot be of the agent's
    /// protocol. They give no events.
    fn plain_lines(&mut self, _lines: &[u8]) {}

    /// The dialogue with the agent, which takes the place of the prompt as its input.
    fn dialogue(&self) -> Option<Dialogue> {
        None
    }

    /// The report of the turn after the process has ended.
    ///
    /// Exit codes 126 and 127 are not interpreted here: their meaning depends on whether the work tree
    /// changed.
    fn finish(self: Box<Self>, exit: ExitFacts<'_>) -> AgentReport;
}
