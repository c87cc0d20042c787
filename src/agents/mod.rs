//! Coding agents: the built-in one, and those that are separate programs, each described by one [`CliSpec`]
//! with the builder of its command line and the reader of its output.
//!
//! Everything except [`builtin`] is pure. The caller starts the process, pipes the prompt in, and passes
//! every line of stdout and finally the facts about its end to the [`TurnReader`].

mod acp;
pub mod builtin;
pub mod claude;
pub mod codex;
pub mod command;
pub mod gateway;
mod gemini;
mod json;
mod key_names;
mod mcp;
mod opencode;
mod output;
mod qwen;
pub mod routes;
mod spec;
mod stream_json;
mod text;
mod turn;

pub use key_names::key_mistake;
pub use spec::{CliSpec, Login, LoginFiles, LoginSources, Package, Variable, VariableKind};
use sprag_agent::turn::Builtin;
pub use turn::{ExitFacts, Invocation, OwnSandbox, RepositoryFiles, TurnReader, TurnRequest};

/// The agent CLIs that Sprag runs, one row for each.
pub static CLIS: &[&CliSpec] = &[
    &codex::SPEC,
    &claude::SPEC,
    &gemini::SPEC,
    &opencode::SPEC,
    &qwen::SPEC,
];

/// The maker of an agent's model, as OpenTelemetry's conventions name it: the agent's own provider, otherwise
/// the one at the start of the model's name.
pub fn model_vendor(agent: &str, model: Option<&str>) -> Option<&'static str> {
    let spec = CLIS.iter().find(|spec| spec.name == agent);
    let own = spec.and_then(|spec| spec.gateway.as_ref());
    let named = || {
        let maker = model?.split_once('/')?.0;
        // Some have more than one API, such as `openai-responses`.
        let is_it = |name: &str| {
            let rest = maker.strip_prefix(name);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        };
        let mut known = gateway::PROVIDERS.iter().copied();
        known.find(|provider| is_it(provider.name))
    };
    let provider = own.map(|gateway| gateway.provider).or_else(named)?;
    Some(provider.convention)
}

/// The name of the built-in agent.
pub const BUILTIN: &str = "builtin";

/// The name of the agent that is a user's command.
pub const COMMAND: &str = "command";

/// The name of the agent that is a command with the Agent Client Protocol.
pub const ACP: &str = "acp";

/// The agents that a setting can name, in the order in which they are suggested.
pub fn names() -> impl Iterator<Item = &'static str> {
    let clis = CLIS.iter().map(|spec| spec.name);
    clis.chain([BUILTIN, ACP, COMMAND])
}

/// The agent CLI with this name.
pub fn cli(name: &str) -> Option<&'static CliSpec> {
    CLIS.iter().copied().find(|spec| spec.name == name)
}

/// The agent that `NAME@VERSION` installs, with the name that the input `install-agent` has for it.
pub fn installed(wanted: &str) -> Option<&'static CliSpec> {
    let name = wanted.split_once('@').map_or(wanted, |(name, _)| name);
    CLIS.iter().copied().find(|spec| spec.package.name == name)
}

/// The packages that the action's input `install-agent` can name.
pub fn packages() -> impl Iterator<Item = Package> {
    CLIS.iter().map(|spec| spec.package)
}

/// Globs of repository files that configure several agents, or editors with agents.
const SHARED_CONFIGURATION: &[&str] = &[
    "**/AGENTS*.md",
    "**/.agents/**",
    "**/.mcp.json",
    "**/.cursor/**",
    "**/.cursorrules",
];

/// Globs of the repository files that configure any known agent.
pub fn configuration() -> impl Iterator<Item = &'static str> {
    let clis = CLIS.iter().flat_map(|spec| spec.configuration);
    clis.chain(SHARED_CONFIGURATION).copied()
}

/// An agent.
#[derive(Debug, Clone, PartialEq)]
pub enum Agent {
    /// An agent that is started as a program.
    Cli(CliAgent),
    /// The built-in agent.
    Builtin(Box<Builtin>),
}

impl Agent {
    /// Its name for people.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Cli(agent) => agent.name(),
            Self::Builtin(_) => BUILTIN,
        }
    }
}

/// An agent that is started as a program, once for each turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CliAgent {
    /// One of [`CLIS`].
    Known(&'static CliSpec),
    /// A user's command that speaks the Agent Client Protocol.
    Acp {
        /// Run by `sh -c`.
        command: String,
    },
    /// A user's command.
    Command {
        /// Run by `sh -c`.
        command: String,
    },
}

impl CliAgent {
    /// Its name for people.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Known(spec) => spec.name,
            Self::Acp { .. } => ACP,
            Self::Command { .. } => COMMAND,
        }
    }

    /// The command line of one turn.
    pub fn invocation(&self, request: &TurnRequest<'_>) -> Invocation {
        match self {
            Self::Known(spec) => (spec.invocation)(request),
            Self::Acp { command } => Invocation {
                final_message_file: None,
                ..command::invocation(command, request)
            },
            Self::Command { command } => command::invocation(command, request),
        }
    }

    /// A reader of one turn's stdout, which may also send messages to the agent.
    pub fn reader(&self, request: &TurnRequest<'_>, prompt: &str) -> Box<dyn TurnReader> {
        match self {
            Self::Known(spec) => (spec.reader)(),
            Self::Acp { .. } => Box::new(acp::Reader::new(request, prompt)),
            Self::Command { .. } => Box::<command::Reader>::default(),
        }
    }

    /// The names of the variables to pass on to the agent, given which ones are set.
    pub fn variables_to_pass(&self, is_set: impl Fn(&str) -> bool) -> Vec<&'static str> {
        match self {
            Self::Known(spec) => spec.variables_to_pass(is_set).map(|it| it.name).collect(),
            Self::Acp { .. } | Self::Command { .. } => Vec::new(),
        }
    }

    /// The user's command that a shell runs.
    pub fn command(&self) -> Option<&str> {
        match self {
            Self::Known(_) => None,
            Self::Acp { command } | Self::Command { command } => Some(command),
        }
    }
}

#[cfg(test)]
mod tests;
