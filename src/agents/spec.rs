//! The description of a coding agent that is a separate program: one [`CliSpec`] each.

use super::gateway::BehindGateway;
use super::turn::{ExitFacts, Invocation, TurnReader, TurnRequest};
use crate::domain::agent::ApiError;
use crate::domain::api_error::with_remedy;
use crate::sandbox::Place;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Everything about one agent CLI. All other code gets agent names from here.
#[derive(Debug, Clone, Copy)]
pub struct CliSpec {
    /// The name in settings, events and reports, and of the program in `PATH`.
    pub name: &'static str,
    /// How it is run, as a Markdown fragment for the documentation.
    pub about: &'static str,
    /// The package that installs it.
    pub package: Package,
    /// The version that Sprag's tests use.
    pub tested: &'static str,
    /// The variables that the agent may get in addition to the common allow-list: a kind and names in each line.
    /// After `kind@OTHER`, they are passed on only if another variable is set, too.
    pub variables: &'static str,
    /// The variables that messages suggest when no key is set.
    pub keys: &'static [&'static str],
    /// The files that may contain a login instead of a key.
    pub login: LoginFiles,
    /// Additional directories in the home that the agent writes in every turn, separated by spaces.
    pub own_directories: &'static str,
    /// Options of the agent, separated by spaces, that may determine how its model is reached and paid for.
    pub login_options: &'static str,
    /// Globs of the repository files that configure the agent, which no task may change.
    pub configuration: &'static [&'static str],
    /// How to put it behind the model gateway, or `None` if its server cannot be set.
    pub gateway: Option<BehindGateway>,
    /// Builds the command line of one turn.
    pub invocation: fn(&TurnRequest<'_>) -> Invocation,
    /// Creates a reader of one turn's stdout.
    pub reader: fn() -> Box<dyn TurnReader>,
}

impl CliSpec {
    /// The files in the agent's own directory that may contain its configuration.
    pub fn own_configuration(&self, variable: Variables<'_>) -> Vec<PathBuf> {
        let directory = self.directory(variable).into_iter();
        let files = directory.flat_map(|at| self.login.maybe.iter().map(move |name| at.join(name)));
        files.collect()
    }

    /// The agent's own directories and files, which it writes in every turn.
    pub fn own_places(&self, variable: Variables<'_>) -> Vec<Place> {
        let further = self.own_directories.split_whitespace();
        let further = further.filter_map(|name| in_home(variable, name));
        let directories = self.directory(variable).into_iter().chain(further);
        let files = self.login.maybe_in_home.split_whitespace();
        let files = files.filter_map(|name| in_home(variable, name));
        let files = files.map(|path| Place {
            made: false,
            ..Place::directory(path)
        });
        directories.map(Place::directory).chain(files).collect()
    }

    /// The directory of the agent's own files.
    fn directory(&self, variable: Variables<'_>) -> Option<PathBuf> {
        let named = self.login.variable.and_then(variable).map(PathBuf::from);
        let named = named.filter(|path| path.is_absolute());
        named.or_else(|| in_home(variable, self.login.directory))
    }
}

/// Returns the value of a variable that is set and not empty.
pub type Variables<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// The directories in a home for which a variable of the XDG Base Directory Specification may name another place.
const BASE_DIRECTORIES: [(&str, &str); 4] = [
    (".config", "XDG_CONFIG_HOME"),
    (".cache", "XDG_CACHE_HOME"),
    (".local/state", "XDG_STATE_HOME"),
    (".local/share", "XDG_DATA_HOME"),
];

/// A path relative to the home as an absolute path.
fn in_home(variable: Variables<'_>, name: &str) -> Option<PathBuf> {
    let moved = BASE_DIRECTORIES.iter().find_map(|(base, named)| {
        let below = Path::new(name).strip_prefix(base).ok()?;
        Some(PathBuf::from(variable(named)?).join(below))
    });
    moved
        .or_else(|| Some(PathBuf::from(variable("HOME")?).join(name)))
        .filter(|path| path.is_absolute())
}

/// An npm package that the action installs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Package {
    /// Its name in the action's input `install-agent`.
    pub name: &'static str,
    /// Its name in the registry.
    pub npm: &'static str,
}

impl Package {
    pub(super) const fn of(name: &'static str, npm: &'static str) -> Self {
        Self { name, npm }
    }
}

/// A variable that contains an agent's login or the URL of its API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Variable {
    /// The name of the variable.
    pub name: &'static str,
    /// The kind of its value.
    pub kind: VariableKind,
    /// Another variable without which this one is useless and is not passed on.
    pub only_with: Option<&'static str>,
}

/// The kind of value of an agent's variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VariableKind {
    /// A key or token that is a complete login.
    Key,
    /// A part of a login, which is hidden like a key.
    Secret,
    /// The choice of a cloud, which then has its own login.
    Cloud,
    /// Nothing secret.
    Setting,
}

/// The files that contain an agent's login.
#[derive(Debug, Clone, Copy)]
pub struct LoginFiles {
    /// The variable with the directory of the agent's own files, if there is one.
    pub variable: Option<&'static str>,
    /// The default of that directory, relative to the home.
    pub directory: &'static str,
    /// The file in it that exists when the agent is logged in.
    pub login: &'static str,
    /// Files in it that may contain a login.
    pub maybe: &'static [&'static str],
    /// Files in the home that may contain a login, separated by spaces.
    pub maybe_in_home: &'static str,
    /// Whether the login is in the keychain on a Mac, where Sprag does not look for it.
    pub keychain: bool,
}

/// What is known about an agent's login.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Login {
    /// This variable is set.
    Variable(String),
    /// The agent is logged in according to this file.
    File(String),
    /// This file may contain a login. Sprag does not read it.
    Perhaps(String),
    /// Nothing was found.
    Nothing,
}

/// The places where a login is looked for.
pub struct LoginSources<'a> {
    /// The variables of the environment.
    pub variable: Variables<'a>,
    /// Whether a path is a file.
    pub is_file: &'a dyn Fn(&Path) -> bool,
    /// The variables that the user passes on to the agent.
    pub agent_env: &'a [String],
    /// The user's arguments for the agent.
    pub agent_args: &'a [String],
}

impl CliSpec {
    /// The command that installs the agent.
    pub fn install_command(&self) -> String {
        format!("npm install --global {}", self.package.npm)
    }

    /// The remedy if the agent has neither a key nor a login.
    pub fn login_remedy(&self) -> String {
        format!(
            "set {} from a secret, or log {} in",
            self.keys.join(" or "),
            self.name
        )
    }

    /// The error, with the remedy if it is about a missing or rejected login.
    pub(super) fn with_remedy(&self, error: ApiError) -> ApiError {
        with_remedy(error, &self.login_remedy())
    }

    /// The error of an agent that exited without a message of its protocol, if it refused to start.
    pub(super) fn refused_to_start(&self, exit: &ExitFacts<'_>) -> Option<ApiError> {
        exit.refused_to_start().map(|error| self.with_remedy(error))
    }

    /// The variables that the agent reads.
    pub fn variables(&self) -> impl Iterator<Item = Variable> + use<> {
        self.variables.lines().flat_map(|line| {
            let mut words = line.split_whitespace();
            let head = words.next().unwrap_or_default();
            let (kind, only_with) = match head.split_once('@') {
                Some((kind, other)) => (kind, Some(other)),
                None => (head, None),
            };
            let kind = match kind {
                "key" => VariableKind::Key,
                "cloud" => VariableKind::Cloud,
                "setting" => VariableKind::Setting,
                // What nobody knows is treated with the most care.
                _ => VariableKind::Secret,
            };
            words.map(move |name| Variable {
                name,
                kind,
                only_with,
            })
        })
    }

    /// The variables to pass on to the agent, given which ones are set.
    pub fn variables_to_pass(
        &self,
        is_set: impl Fn(&str) -> bool,
    ) -> impl Iterator<Item = Variable> {
        self.variables()
            .filter(move |variable| is_set(variable.name) && variable.only_with.is_none_or(&is_set))
    }

    /// The login of the agent, as far as it can be determined without running it.
    pub fn login(&self, sources: &LoginSources<'_>) -> Login {
        let is_set = |name: &str| (sources.variable)(name).is_some();
        let named = |kind: VariableKind| {
            let mut passed = self.variables_to_pass(is_set);
            passed.find(|variable| variable.kind == kind)
        };
        let sure = named(VariableKind::Key).or_else(|| named(VariableKind::Cloud));
        if let Some(variable) = sure {
            return Login::Variable(variable.name.to_owned());
        }
        if let Some(name) = sources.agent_env.iter().find(|name| is_set(name)) {
            return Login::Perhaps(format!("{name}, which `agent_env` passes,"));
        }
        if let Some(option) = sources.login_option(self.login_options) {
            return Login::Perhaps(format!("{option} in `agent_args`"));
        }
        if let Some(variable) = named(VariableKind::Secret) {
            return Login::Perhaps(variable.name.to_owned());
        }
        self.kept_login(sources)
    }

    /// The file that exists when the agent is logged in, if its directory is known.
    pub fn login_file(&self, sources: &LoginSources<'_>) -> Option<PathBuf> {
        Some(self.directory(sources.variable)?.join(self.login.login))
    }

    fn kept_login(&self, sources: &LoginSources<'_>) -> Login {
        let files = &self.login;
        let names = files.maybe_in_home.split_whitespace();
        let others = names.filter_map(|name| in_home(sources.variable, name));
        let there = |path: &PathBuf| (sources.is_file)(path);
        if let Some(path) = self.login_file(sources).filter(there) {
            return Login::File(path.display().to_string());
        }
        let maybe = self.own_configuration(sources.variable);
        match maybe.into_iter().chain(others).find(there) {
            Some(path) => Login::Perhaps(path.display().to_string()),
            None if files.keychain && cfg!(target_os = "macos") => {
                Login::Perhaps("the keychain".to_owned())
            }
            None => Login::Nothing,
        }
    }
}

impl LoginSources<'_> {
    /// The first of the user's arguments that is one of these options, alone or as `option=value`.
    fn login_option(&self, options: &'static str) -> Option<&'static str> {
        self.agent_args.iter().find_map(|arg| {
            let name = arg.split_once('=').map_or(arg.as_str(), |(name, _)| name);
            options.split_whitespace().find(|option| *option == name)
        })
    }
}

impl PartialEq for CliSpec {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for CliSpec {}
