//! One turn of an agent: what it is started with, what is known of its end, and what reads its output.

use super::output;
use crate::domain::agent::{AgentEvent, AgentReport, ApiError, ApiErrorClass};
use crate::domain::api_error::classify;
use crate::domain::output_schema::OutputSchema;
use crate::process::Dialogue;
use std::ffi::{OsStr, OsString};
use std::fmt::Debug;
use std::path::{Path, PathBuf};

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
    /// Limit of this turn's cost in US dollars, for agents that know one.
    pub max_cost_usd: Option<f64>,
    /// Whether the agent may change the work tree (a reviewer may not).
    pub may_write: bool,
    /// Whether the agent confines its commands itself.
    pub own_sandbox: OwnSandbox,
    /// Where the files of the repository that configure the agent come from.
    pub repository_files: RepositoryFiles,
    /// Whether the process will run as root.
    pub is_root: bool,
    /// The JSON Schema that the final message has to fit, in a turn that is for that alone.
    pub output_schema: Option<&'a OutputSchema>,
    /// The environment that the process gets already: what is set there is not set anew.
    pub base_env: &'a [(OsString, OsString)],
}

/// Where the files of the repository that configure an agent come from in a turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RepositoryFiles {
    /// They are those of the work tree, whoever wrote them.
    #[default]
    AsTheyAre,
    /// Those of the base branch lie in the work tree.
    OfTheBase,
    /// There are none.
    Absent,
}

impl TurnRequest<'_> {
    /// The file in which the schema of the final message lies, where there is one.
    pub fn output_schema_file(&self) -> PathBuf {
        self.scratch.join("output-schema.json")
    }

    pub(super) fn base_env_has(&self, name: &str) -> bool {
        self.base_env_value(name).is_some()
    }

    pub(super) fn base_env_value(&self, name: &str) -> Option<&OsStr> {
        self.base_env
            .iter()
            .find(|(known, value)| known == name && !value.is_empty())
            .map(|(_, value)| value.as_os_str())
    }

    /// The session to continue, unless its id could be read as an option.
    pub(super) fn resumable(&self) -> Option<&str> {
        self.resume.filter(|id| output::is_session_id(id))
    }

    /// The argument that names the model, unless the user's arguments have one of these options.
    pub(super) fn model_argument(&self, options: &[&str]) -> Option<OsString> {
        let model = self.model.filter(|_| !self.overrides(options))?;
        Some(format!("--model={model}").into())
    }

    /// These variables, but for those that are set already.
    pub(super) fn unset<'v>(
        &self,
        variables: impl IntoIterator<Item = (&'v str, &'v OsStr)>,
    ) -> Vec<(OsString, OsString)> {
        let unset = variables.into_iter();
        let unset = unset.filter(|(name, _)| !self.base_env_has(name));
        unset
            .map(|(name, value)| (name.into(), value.into()))
            .collect()
    }

    /// Whether the user's arguments have one of these options, apart or with `=value`.
    pub(super) fn overrides(&self, options: &[&str]) -> bool {
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
    /// Files in [`TurnRequest::scratch`] to be written before the start, with their content.
    pub files: Vec<(PathBuf, String)>,
}

/// What an agent's stdin is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stdin {
    /// The prompt, then end of file.
    Prompt,
    /// What the reader of the agent's output says: [`TurnReader::dialogue`].
    Dialogue,
    /// Nothing.
    Null,
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
    pub(super) fn failed_by_itself(&self) -> bool {
        !self.killed_by_us && self.signal.is_none() && self.code.is_some_and(|code| code != 0)
    }

    /// The error of an agent that exited without a word of its protocol: it did not like its
    /// arguments, its configuration or its user, and will not like them on the next attempt either.
    /// Codes from 126 on are the shell's, and of processes that a signal ended.
    pub(super) fn refused_to_start(&self) -> Option<ApiError> {
        if !self.failed_by_itself() || self.code.is_some_and(|code| code >= 126) {
            return None;
        }
        let message = match last_lines(self.stderr_tail, 5) {
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

    /// The final message that the agent left in its file, if it is more than white space.
    pub(super) fn final_message(&self) -> Option<String> {
        let text = String::from_utf8_lossy(self.final_file?);
        let text = text.trim_end();
        (!text.trim_start().is_empty()).then(|| text.to_owned())
    }
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

/// Reads what one turn of an agent prints to stdout. Nothing that an agent prints is ever an error.
pub trait TurnReader: Debug {
    /// The events of one line, which comes without its newline and need not be UTF-8.
    fn line(&mut self, line: &[u8]) -> Vec<AgentEvent>;

    /// Takes in the beginning and the end of a line that is too long to be read whole, and so is
    /// not of the agent's protocol.
    fn cut_line(&mut self, head: &[u8], _end: &[u8]) -> Vec<AgentEvent> {
        output::raw(head)
    }

    /// Takes in whole lines, with their newlines, that hold no `{` and so are not of the agent's
    /// protocol, without making events of them.
    fn plain_lines(&mut self, _lines: &[u8]) {}

    /// By which the agent is spoken to, where that takes more than the prompt.
    fn dialogue(&self) -> Option<Dialogue> {
        None
    }

    /// What is known of the turn, now that the process has ended.
    ///
    /// Exit codes 126 and 127 are not read here: what they mean depends on whether the work tree
    /// changed.
    fn finish(self: Box<Self>, exit: ExitFacts<'_>) -> AgentReport;
}
