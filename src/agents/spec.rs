//! What Sprag knows of a coding agent that is a program of its own: one [`CliSpec`] each.

use super::gateway::BehindGateway;
use super::turn::{Invocation, TurnReader, TurnRequest};
use crate::sandbox::Place;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Everything about one agent CLI. Whatever else names an agent reads it here.
#[derive(Debug, Clone, Copy)]
pub struct CliSpec {
    /// The name in settings, events and reports.
    pub name: &'static str,
    /// How it is run, in half a sentence of Markdown for the documentation.
    pub about: &'static str,
    /// The program, to be looked up in `PATH`.
    pub program: &'static str,
    /// How it is installed.
    pub package: Package,
    /// The version that Sprag's tests drive.
    pub tested: &'static str,
    /// The variables that the agent may be given beyond the common allow-list.
    pub variables: &'static [Variable],
    /// The variables that a person is told to set where no key is set.
    pub keys: &'static [&'static str],
    /// Where a login may be kept instead of a key.
    pub login: LoginFiles,
    /// Further directories of the home that the agent writes in every turn.
    pub own_directories: &'static [&'static str],
    /// Options of the agent that may say how its model is reached and paid for.
    pub login_options: &'static [&'static str],
    /// Globs of the files of a repository that configure the agent, which no task may change.
    pub configuration: &'static [&'static str],
    /// How it is put behind the model gateway; `None` where it cannot be told whom to ask.
    pub gateway: Option<BehindGateway>,
    /// How to start one turn.
    pub invocation: fn(&TurnRequest<'_>) -> Invocation,
    /// Makes a reader of one turn's stdout.
    pub reader: fn() -> Box<dyn TurnReader>,
}

impl CliSpec {
    /// The files in the agent's own directory that may hold its configuration.
    pub fn own_configuration(
        &self,
        env: &[(OsString, OsString)],
        home: Option<&Path>,
    ) -> Vec<PathBuf> {
        let directory = self.own_directory(env, home);
        let names = self.login.maybe.iter();
        directory.map_or_else(Vec::new, |directory| {
            names.map(|name| directory.join(name)).collect()
        })
    }

    /// The directories and files of the agent's own, which it writes in every turn.
    pub fn own_places(&self, env: &[(OsString, OsString)], home: Option<&Path>) -> Vec<Place> {
        let directory = self.own_directory(env, home);
        let further = self.own_directories.iter();
        let further = further.filter_map(|name| Some(home?.join(name)));
        let directories = directory.into_iter().chain(further);
        let directories = directories.map(|path| Place { path, made: true });
        let in_home = self.login.maybe_in_home.iter();
        let files = in_home.filter_map(|name| home.map(|home| home.join(name)));
        let files = files.map(|path| Place { path, made: false });
        directories.chain(files).collect()
    }

    fn own_directory(&self, env: &[(OsString, OsString)], home: Option<&Path>) -> Option<PathBuf> {
        let variable = self.login.variable;
        let named = env
            .iter()
            .find(|(name, _)| variable.is_some_and(|it| name == it));
        let named = named.map(|(_, value)| PathBuf::from(value));
        let usual = || home.map(|home| home.join(self.login.directory));
        named.filter(|path| path.is_absolute()).or_else(usual)
    }
}

/// An npm package that the action installs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Package {
    /// The name that the action's input `install-agent` has for it.
    pub name: &'static str,
    /// The name in the registry.
    pub npm: &'static str,
}

/// A variable that an agent reads its login or its API's address from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Variable {
    /// The variable.
    pub name: &'static str,
    /// What it holds.
    pub kind: VariableKind,
    /// It is of use only where this other variable is set, and is not passed on elsewhere.
    pub only_with: Option<&'static str>,
}

/// What a variable of an agent holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VariableKind {
    /// A key or token that is enough to work with.
    Key,
    /// A part of a login, to be hidden like a key.
    Secret,
    /// The choice of a cloud, which then has a login of its own.
    Cloud,
    /// Nothing secret.
    Setting,
}

impl Variable {
    const fn new(name: &'static str, kind: VariableKind) -> Self {
        Self {
            name,
            kind,
            only_with: None,
        }
    }

    pub(super) const fn key(name: &'static str) -> Self {
        Self::new(name, VariableKind::Key)
    }

    pub(super) const fn secret(name: &'static str) -> Self {
        Self::new(name, VariableKind::Secret)
    }

    pub(super) const fn cloud(name: &'static str) -> Self {
        Self::new(name, VariableKind::Cloud)
    }

    pub(super) const fn setting(name: &'static str) -> Self {
        Self::new(name, VariableKind::Setting)
    }

    pub(super) const fn only_with(self, other: &'static str) -> Self {
        Self {
            only_with: Some(other),
            ..self
        }
    }
}

/// The files that a login of an agent leaves.
#[derive(Debug, Clone, Copy)]
pub struct LoginFiles {
    /// The variable that names the directory of the agent's own files, where there is one.
    pub variable: Option<&'static str>,
    /// That directory where the variable is not set, relative to the home.
    pub directory: &'static str,
    /// The file in it that says that the agent is logged in.
    pub login: &'static str,
    /// Files in it that may hold a login.
    pub maybe: &'static [&'static str],
    /// Files of the home that may hold a login.
    pub maybe_in_home: &'static [&'static str],
    /// Whether a Mac keeps the login in its keychain, where it is not looked for.
    pub keychain: bool,
}

/// What is known of an agent's right to use a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Login {
    /// This variable is set.
    Variable(String),
    /// The agent is logged in, as this file says.
    File(String),
    /// There may be a login here; Sprag does not read it.
    Perhaps(String),
    /// Nothing was found.
    Nothing,
}

/// Where a login is looked for.
pub struct LoginSources<'a> {
    /// The value of a variable that is set and not empty.
    pub variable: &'a dyn Fn(&str) -> Option<OsString>,
    /// Whether there is a file at a path.
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

    /// What a person can do where the agent has neither key nor login.
    pub fn login_remedy(&self) -> String {
        format!(
            "set {} from a secret, or log {} in",
            self.keys.join(" or "),
            self.name
        )
    }

    /// The variables to pass on to the agent, given which ones are set.
    pub fn variables_to_pass(
        &self,
        is_set: impl Fn(&str) -> bool,
    ) -> impl Iterator<Item = &'static Variable> {
        let needed = move |other| is_set(other);
        self.variables
            .iter()
            .filter(move |variable| needed(variable.name) && variable.only_with.is_none_or(&needed))
    }

    /// How the agent may be logged in, as far as it can be told without running it.
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
            return Login::Perhaps(format!("{name}, which `agent_env` passes on,"));
        }
        if let Some(option) = sources.login_option(self.login_options) {
            return Login::Perhaps(format!("{option} in `agent_args`"));
        }
        if let Some(variable) = named(VariableKind::Secret) {
            return Login::Perhaps(variable.name.to_owned());
        }
        self.kept_login(sources)
    }

    /// The file that would say that the agent is logged in, where its place is known.
    pub fn login_file(&self, sources: &LoginSources<'_>) -> Option<PathBuf> {
        Some(self.directory(sources)?.join(self.login.login))
    }

    /// The directory of the agent's own files.
    fn directory(&self, sources: &LoginSources<'_>) -> Option<PathBuf> {
        let path = |name: &str| (sources.variable)(name).map(PathBuf::from);
        let named = self.login.variable.and_then(path);
        named.or_else(|| Some(path("HOME")?.join(self.login.directory)))
    }

    fn kept_login(&self, sources: &LoginSources<'_>) -> Login {
        let files = &self.login;
        let home = (sources.variable)("HOME").map(PathBuf::from);
        let in_home = |name: &str| home.as_ref().map(|home| home.join(name));
        let directory = self.directory(sources);
        let in_directory = |name: &str| directory.as_ref().map(|directory| directory.join(name));
        let there = |path: &PathBuf| (sources.is_file)(path);
        if let Some(path) = self.login_file(sources).filter(there) {
            return Login::File(path.display().to_string());
        }
        let maybe = files.maybe.iter().filter_map(|name| in_directory(name));
        let maybe = maybe.chain(files.maybe_in_home.iter().filter_map(|name| in_home(name)));
        match maybe.into_iter().find(there) {
            Some(path) => Login::Perhaps(path.display().to_string()),
            None if files.keychain && cfg!(target_os = "macos") => {
                Login::Perhaps("the keychain".to_owned())
            }
            None => Login::Nothing,
        }
    }
}

impl LoginSources<'_> {
    /// The first of the user's arguments that is one of these options, apart or with `=value`.
    fn login_option(&self, options: &[&'static str]) -> Option<&'static str> {
        self.agent_args.iter().find_map(|arg| {
            let name = arg.split_once('=').map_or(arg.as_str(), |(name, _)| name);
            options.iter().copied().find(|option| *option == name)
        })
    }
}

impl PartialEq for CliSpec {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for CliSpec {}
