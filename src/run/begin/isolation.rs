//! How far the children of a run are confined, determined by starting one, and where each kind of child
//! may write.

mod places;

use crate::agents::Agent;
use crate::context::Context;
use crate::domain::sandbox::{Enforcement, Level, NetworkLine, SandboxLine};
use crate::domain::settings::{Sandbox, variables};
use crate::error::{Error, Result};
use crate::gateway::{AllowList, Gateway};
use crate::git::{FilterSandbox, Real};
use crate::github::actions_environment;
use crate::process::{Cancel, CommandSpec, Exit, Input, Limits, run};
pub use crate::sandbox::without_namespaces;
use crate::sandbox::{self, Network, Place, Policy, SandboxPaths};
use crate::settings::{RunConfig, TaskConfig};
pub use places::filters_before_the_run;
use places::{Layers, Prepared, TEMPORARY_PARTS, open_rows, prepared, several_directories};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

/// The variable that names the directory for temporary files.
pub const TEMPORARY: &str = "TMPDIR";

/// The timeout for starting a confined child. Only one that hangs may reach it: a machine that is slow for a while
/// must not lower the level of a run.
const ATTEMPT: Duration = Duration::from_secs(60);

/// The variable that names the socket of an `ssh-agent`.
const KEYS: &str = "SSH_AUTH_SOCK";

/// Shown as the missing part of level 3 if it was not requested.
const NOT_ASKED_FOR: &str = "`sandbox: require` turns it on";

/// The purpose of a child, as far as its confinement depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// An agent, or a command of the built-in agent.
    Agent,
    /// A check or a hook.
    Check,
    /// A setup command, which may install tools.
    Setup,
}

/// How the children of a run are confined.
#[derive(Debug, Default)]
pub struct Isolation {
    line: SandboxLine,
    policies: Option<Policies>,
    warnings: Vec<String>,
    /// Directories and files that must exist before a child starts.
    missing: Vec<Place>,
    /// Held until the run ends, because dropping them removes the directories.
    temporary: Option<TempDir>,
    _layers: Option<Layers>,
    /// The proxy through which children reach the allowed hosts.
    proxy: Option<Gateway>,
}

#[derive(Debug)]
struct Policies {
    agent: Policy,
    check: Policy,
    setup: Policy,
    /// For git processes that start filters.
    filter: Policy,
}

impl Policies {
    /// Applies the network limit of `agent` to all children.
    fn limit_network(&mut self, agent: &Policy, by: Enforcement) {
        for policy in [&mut self.check, &mut self.setup] {
            policy.network.clone_from(&agent.network);
            // A process that may start a container can use the container's network.
            if by == Enforcement::Namespace {
                policy.hidden.clone_from(&agent.hidden);
            }
        }
        self.filter.network.clone_from(&agent.network);
        self.agent.network.clone_from(&agent.network);
    }
}

impl Isolation {
    /// Creates the directories and files that must exist before a child starts, because only what exists can be made
    /// writable. Call this once it is certain that the run starts.
    pub fn make_directories(&self) {
        for place in &self.missing {
            // What cannot be created cannot be written either.
            let _ = place.make();
        }
    }

    /// The confinement, for reports.
    pub fn line(&self) -> &SandboxLine {
        &self.line
    }

    /// Warnings about directories that children cannot write.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// The policy for a child with this purpose; `None` if it is not confined.
    pub fn policy(&self, purpose: Purpose) -> Option<Policy> {
        let policies = self.policies.as_ref()?;
        let policy = match purpose {
            Purpose::Agent => &policies.agent,
            Purpose::Check => &policies.check,
            Purpose::Setup => &policies.setup,
        };
        Some(policy.clone())
    }

    /// How filters are confined, which also get these variables.
    pub fn filters(&self, variables: Vec<(OsString, OsString)>) -> FilterSandbox {
        FilterSandbox {
            policy: self.policies.as_ref().map(|it| it.filter.clone()),
            variables,
        }
    }

    /// Takes the proxy, to use it as the model gateway, too. The policies contain its port.
    pub fn take_proxy(&mut self) -> Option<Gateway> {
        self.proxy.take()
    }

    /// The hosts that children may reach, and how this is enforced.
    pub fn network(&self) -> Option<&NetworkLine> {
        self.line.network.as_ref()
    }

    /// A sentence about a path that a child could not write, if its output mentions one.
    pub fn refusal(&self, output: &str) -> Option<String> {
        const SUDO: &str = "\"no new privileges\" flag is set";
        if self.policies.is_some() && output.contains(SUDO) {
            return Some(
                "sudo does not work in the sandbox: move commands that need it into a step before Sprag's, or set \
                 `sandbox: off`"
                    .into(),
            );
        }
        let policy = &self.policies.as_ref()?.check;
        let path = policy.refused(output)?;
        let mut protected = policy.read_only.iter();
        let is_protected = protected.any(|place| Path::new(path).starts_with(place));
        let remedy = if is_protected {
            "The run or the machine relies on it; only `sandbox: off` allows it"
        } else {
            "Name the directory in `sandbox_write` if the work needs it"
        };
        Some(format!(
            "{path} could not be written: the sandbox protects it. {remedy}"
        ))
    }

    /// The directory for temporary files of children with this purpose.
    fn temporary(&self, purpose: Purpose) -> Option<PathBuf> {
        let is_separate = self.line.level >= Level::Files;
        let top = self.temporary.as_ref().filter(|_| is_separate)?;
        let [agent, checks] = TEMPORARY_PARTS;
        Some(top.path().join(match purpose {
            Purpose::Agent => agent,
            Purpose::Check | Purpose::Setup => checks,
        }))
    }
}

/// The inputs that decide how a run is confined.
pub struct Scope<'a> {
    /// Environment and working directory of Sprag's process.
    pub context: &'a Context,
    /// The repository.
    pub real: &'a Real,
    /// The settings of the run.
    pub run: &'a RunConfig,
    /// The agents that need their own directories to be writable.
    pub agents: Vec<&'a Agent>,
    /// The run directory, if it exists already.
    pub run_dir: Option<&'a Path>,
    /// Whether an agent gets the variable that names the socket of an `ssh-agent`.
    pub passes_keys: bool,
    /// Whether to create a directory for temporary files.
    pub makes: bool,
}

impl<'a> Scope<'a> {
    /// The scope of a run with these tasks.
    pub fn of(
        context: &'a Context,
        real: &'a Real,
        run: &'a RunConfig,
        tasks: impl Iterator<Item = &'a TaskConfig>,
        run_dir: Option<&'a Path>,
    ) -> Self {
        let tasks: Vec<&TaskConfig> = tasks.collect();
        let passes = |task: &&TaskConfig| task.settings.agent_env.iter().any(|name| name == KEYS);
        Self {
            context,
            real,
            run,
            passes_keys: tasks.iter().any(passes),
            agents: tasks.iter().flat_map(|task| task.every_agent()).collect(),
            run_dir,
            makes: true,
        }
    }
}

/// Determines how far children can be confined on this machine by starting one at each level, from the
/// highest down. Compares the result with the requested level.
///
/// # Errors
/// When a required level is not available.
pub async fn isolation(scope: &Scope<'_>) -> Result<Isolation> {
    let wanted = scope.run.settings.sandbox;
    let required = wanted.required();
    let mut found = match wanted {
        Sandbox::Off => Isolation::default(),
        _ => strongest(scope, required.is_some()).await?,
    };
    if let Some(network) = &scope.run.settings.network {
        let enforced = found.limit_network(scope, &network.allow).await?;
        if required >= Some(Level::Namespaces) && enforced != Enforcement::Namespace {
            return Err(Error::environment(
                "`sandbox: require` with `network` needs a separate network namespace for child processes, which this \
                 machine does not allow",
            )
            .hint("docs/security.md says how the allow-list is enforced"));
        }
    }
    let (line, word) = (&found.line, wanted.word());
    if let Some(required) = required.filter(|required| line.level < *required) {
        let missing = line.missing.as_deref().unwrap_or("unknown");
        let message = format!(
            "`sandbox: {word}` requires level {required}, but this machine allows only level {}; missing: {missing}",
            line.level
        );
        return Err(Error::environment(message)
            .hint("docs/security.md says what each level needs")
            .hint("or use the highest available level: --sandbox auto"));
    }
    if required == Some(Level::Namespaces) && !line.open.is_empty() {
        let open = line.open.join("; ");
        let message = format!("`sandbox: {word}` asks for more than this machine gives: {open}");
        return Err(Error::environment(message)
            .hint("`caches: shared` lets agents write the caches of checks"));
    }
    Ok(found)
}

impl Isolation {
    /// Starts the proxy and restricts agents and checks to it as far as this machine allows: with a
    /// separate network namespace, else with a rule for the proxy's TCP port.
    async fn limit_network(&mut self, scope: &Scope<'_>, allow: &[String]) -> Result<Enforcement> {
        let network = actions_environment::network(scope.context);
        let proxy = Gateway::start(&network, Some(AllowList::of(allow))).map_err(|error| {
            let message = format!("the proxy of the setting `network` cannot be started: {error}");
            Error::environment(message)
        })?;
        let port = proxy.port();
        let is_limited = scope.context.var(variables::NETWORK_LIMIT).is_some();
        let place = proxy.place().filter(|_| !is_limited);
        let own = place.map(|socket| Network::Own {
            socket: socket.to_owned(),
            port,
        });
        let by_port = (self.line.level >= Level::Files).then_some(Network::Port(port));
        let ways = [
            (own, Enforcement::Namespace),
            (by_port, Enforcement::TcpPort),
        ];
        let mut enforced = Enforcement::Nothing;
        if let Some(policies) = &mut self.policies {
            for (network, what) in ways {
                let tried = Policy {
                    network,
                    ..policies.agent.clone()
                };
                if tried.network.is_some() && attempt(&tried, scope).await.is_ok() {
                    policies.limit_network(&tried, what);
                    enforced = what;
                    break;
                }
            }
        }
        self.line.network = Some(NetworkLine {
            allow: allow.to_vec(),
            enforced,
            denied: Vec::new(),
        });
        self.proxy = Some(proxy);
        Ok(enforced)
    }
}

/// The confinement that the settings give on this machine, and the highest that is possible.
pub struct ConfinementLevels {
    /// The confinement of a run.
    pub line: SandboxLine,
    /// The highest available level, and why level 3 is not available.
    pub highest: SandboxLine,
}

/// Determines the confinement without creating anything.
///
/// # Errors
/// When no child can be started to find out.
pub async fn confinement_levels(scope: &Scope<'_>) -> Result<ConfinementLevels> {
    let mut strict = strongest(scope, true).await?;
    let highest = strict.line.clone();
    let mut found = match scope.run.settings.sandbox {
        Sandbox::Off => Isolation::default(),
        Sandbox::Auto => strongest(scope, false).await?,
        _ => std::mem::take(&mut strict),
    };
    if let Some(network) = &scope.run.settings.network {
        found.limit_network(scope, &network.allow).await?;
    }
    Ok(ConfinementLevels {
        line: found.line,
        highest,
    })
}

async fn strongest(scope: &Scope<'_>, is_strict: bool) -> Result<Isolation> {
    let (highest, mut missing) = without_namespaces();
    // In order of preference.
    let forms: &[Form] = match (highest, is_strict) {
        (Level::Off, _) => return Ok(not_confined(missing)),
        (Level::Privileges, _) => &[Form::LAST],
        (_, true) => &[
            Form::Strict(Level::Namespaces),
            Form::Strict(Level::Files),
            Form::LAST,
        ],
        (_, false) => &[
            Form::Open { hides: true },
            Form::Open { hides: false },
            Form::LAST,
        ],
    };
    let prepared = prepared(scope, is_strict).map_err(|error| {
        Error::environment(format!("the directories of the sandbox cannot be made: {error}"))
            .hint("free some space there or fix the permissions; TMPDIR and XDG_STATE_HOME name other places")
    })?;
    let limit = scope.context.var(variables::SANDBOX_LIMIT);
    let limit: Option<u8> = limit.and_then(|limit| limit.parse().ok());
    let has_layers = prepared.layers.is_some();
    for (form, with_copies) in forms
        .iter()
        .flat_map(|form| [(*form, true), (*form, false)])
    {
        let level = form.level();
        if with_copies && !(has_layers && level >= Level::Files) {
            continue;
        }
        if limit.is_some_and(|limit| level.number() > limit) {
            missing = Some(format!(
                "permission for a higher level: {} is set",
                variables::SANDBOX_LIMIT
            ));
            continue;
        }
        let policies = form.policies(&prepared, with_copies);
        if let Err(why) = attempt(&policies.agent, scope).await {
            missing = Some(form.missing(&policies.agent, &why));
            continue;
        }
        let missing = match form {
            Form::Strict(Level::Namespaces) => None,
            Form::Open { hides: true } if with_copies => Some(NOT_ASKED_FOR.into()),
            Form::Open { hides: true } => {
                let strict = Form::Strict(Level::Namespaces).policies(&prepared, false);
                let tried = attempt(&strict.agent, scope).await;
                Some(tried.err().unwrap_or_else(|| NOT_ASKED_FOR.into()))
            }
            _ => missing,
        };
        return Ok(Isolation {
            line: SandboxLine {
                level,
                missing,
                open: open_rows(form, has_layers && !with_copies),
                network: None,
            },
            warnings: form.warnings(&prepared, scope),
            policies: Some(policies),
            missing: match level {
                Level::Files | Level::Namespaces => prepared.missing,
                Level::Off | Level::Privileges => Vec::new(),
            },
            temporary: prepared.temporary,
            _layers: prepared.layers.filter(|_| with_copies),
            proxy: None,
        });
    }
    Ok(not_confined(missing))
}

/// A way to confine children.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// At this level, with write access only to the listed paths.
    Strict(Level),
    /// At level 2, with write access except to protected paths, so that most programs notice nothing.
    Open {
        /// Whether sockets of programs that start processes on request are hidden from an agent.
        hides: bool,
    },
}

impl Form {
    const LAST: Self = Self::Strict(Level::Privileges);

    fn level(self) -> Level {
        match self {
            Self::Strict(level) => level,
            Self::Open { .. } => Level::Files,
        }
    }

    fn policies(self, prepared: &Prepared, with_copies: bool) -> Policies {
        let (around, level) = (&prepared.around, self.level());
        let filter = sandbox::policy_of_filters(level, around, &prepared.filter);
        let [of_agent, of_checks] = TEMPORARY_PARTS.map(|part| {
            let mut own = around.clone();
            if own.temporary != Path::new("") {
                own.temporary = around.temporary.join(part);
            }
            own
        });
        // Setup belongs to the owner of the project and may install programs into directories on PATH.
        let installs = |path: &PathBuf| prepared.setup.iter().any(|place| path.starts_with(place));
        let in_cache = |path: &PathBuf| prepared.check.iter().any(|place| path.starts_with(place));
        let mut of_setup = of_checks.clone();
        let protected = &mut of_setup.protected;
        protected
            .retain(|path| !installs(path) || in_cache(path) || !prepared.programs.contains(path));
        let mut policies = match self {
            Self::Strict(_) => Policies {
                agent: sandbox::policy(level, &of_agent, &prepared.agent).0,
                check: sandbox::policy(level, &of_checks, &prepared.check).0,
                setup: sandbox::policy(level, &of_setup, &prepared.setup).0,
                filter,
            },
            Self::Open { hides } => {
                let policy = |mut around: SandboxPaths, places: &[PathBuf], hides: bool| {
                    // Checks and setup may use docker.
                    if !hides {
                        around.hidden.clear();
                    }
                    if with_copies {
                        let top = around.temporary.parent().map(Path::to_path_buf);
                        around.protected.extend(top);
                    }
                    let mut places = places.to_vec();
                    if around.temporary.is_dir() {
                        places.push(around.temporary.clone());
                    }
                    sandbox::open_policy(level, &around, &places)
                };
                // Where agents need no mounts there may be none.
                let agent = policy(of_agent, &prepared.agent, hides);
                let mut setup = prepared.setup.clone();
                setup.retain(|place| {
                    let mut kept = of_setup.protected.iter();
                    agent.has_mounts() || !kept.any(|path| path.starts_with(place))
                });
                Policies {
                    check: policy(of_checks, &prepared.check, false),
                    setup: policy(of_setup, &setup, false),
                    agent,
                    filter,
                }
            }
        };
        if let Some(Layers(layers)) = prepared.layers.as_ref().filter(|_| with_copies) {
            policies.agent = policies.agent.and_overlay(&prepared.caches, layers);
        }
        policies
    }

    /// What this machine lacks for this form.
    fn missing(self, agent: &Policy, why: &str) -> String {
        let kept = agent.read_only.first().map(|path| path.display());
        match (self, kept) {
            (Self::Open { .. }, Some(kept)) => format!(
                "separate mounts for the child, to protect {kept}, which lies where everybody writes: {why}"
            ),
            (Self::Open { hides: true }, None) => {
                format!("separate mounts for the child, to hide sockets such as docker's: {why}")
            }
            _ => why.to_owned(),
        }
    }

    /// Warnings about directories that were named as writable and are not, and about those of several agents.
    fn warnings(self, prepared: &Prepared, scope: &Scope<'_>) -> Vec<String> {
        let several = several_directories(scope);
        let Self::Strict(level) = self else {
            return several.into_iter().collect();
        };
        let (_, refused) = sandbox::policy(level, &prepared.around, &prepared.agent);
        let told = refused
            .iter()
            .filter(|(place, _)| prepared.named.contains(place))
            .map(|(place, protected)| {
                format!(
                    "sandbox_write: {} is not writable, because it contains {}, which must not be written; name only \
                     the parts that are needed",
                    place.display(),
                    protected.display()
                )
            });
        told.chain(several).collect()
    }
}

fn not_confined(missing: Option<String>) -> Isolation {
    Isolation {
        line: SandboxLine {
            missing,
            ..SandboxLine::default()
        },
        ..Isolation::default()
    }
}

/// Starts this program under the policy, as a command that does nothing.
async fn attempt(policy: &Policy, scope: &Scope<'_>) -> Result<(), String> {
    let spec = CommandSpec {
        program: sandbox::OWN_PROGRAM.into(),
        args: vec![sandbox::NOTHING.into()],
        cwd: scope.real.work_tree().to_path_buf(),
        env: Vec::new(),
        stdin: Input::Null,
        limits: Limits::within(ATTEMPT),
        sandbox: Some(policy.clone()),
    };
    let ended = run(&spec, &Cancel::new(), &mut |_, _| {}).await;
    match ended.exit {
        Exit::Code(0) => Ok(()),
        Exit::SpawnFailed { why } => Err(why
            .strip_prefix("it cannot be confined: ")
            .unwrap_or(&why)
            .to_owned()),
        exit => Err(format!("a confined program ended with {exit}")),
    }
}

/// Sets `TMPDIR` in an environment to the directory for temporary files that the child may write.
pub fn with_temporary(
    mut env: Vec<(OsString, OsString)>,
    isolation: &Isolation,
    purpose: Purpose,
) -> Vec<(OsString, OsString)> {
    if let Some(temporary) = isolation.temporary(purpose) {
        env.retain(|(name, _)| name != TEMPORARY);
        env.push((TEMPORARY.into(), temporary.into()));
    }
    env
}
