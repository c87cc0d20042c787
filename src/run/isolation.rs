//! How far the children of a run are confined, found out by starting one, and what each kind may write.

mod places;

use crate::agents::Agent;
use crate::context::Context;
use crate::domain::sandbox::{Enforcement, Level, NetworkLine, SandboxLine, refused_path};
use crate::domain::settings::Sandbox;
use crate::error::{Error, Result};
use crate::gateway::{AllowList, Gateway};
use crate::git::Real;
use crate::github::actions_environment;
use crate::process::{Cancel, CommandSpec, Exit, Input, Limits, run};
use crate::sandbox::{self, Network, Policy};
use crate::settings::{RunConfig, TaskConfig};
use places::{Prepared, prepared};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

/// The variable that names the directory for temporary files.
pub const TEMPORARY: &str = "TMPDIR";

/// The variable with the highest level that is tried. Tests set it, to see each level on one machine.
const LIMIT: &str = "SPRAG_SANDBOX_LIMIT";

/// The variable that leaves out the better ways to limit the network, for the same reason.
const NETWORK_LIMIT: &str = "SPRAG_NETWORK_LIMIT";

/// The longest that an attempt to confine a child may take.
const ATTEMPT: Duration = Duration::from_secs(10);

/// What is missing for the third level where it was not asked for.
const NOT_ASKED_FOR: &str = "only `sandbox: require` asks for it";

/// What a child is for, as far as its confinement depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// An agent, or a command of the built-in one.
    Agent,
    /// A check or a hook.
    Check,
    /// A setup command, which may install tools.
    Setup,
}

/// How far the children of a run are confined.
#[derive(Debug, Default)]
pub struct Isolation {
    line: SandboxLine,
    policies: Option<Policies>,
    warnings: Vec<String>,
    /// Directories that have to be there before a child starts.
    missing: Vec<PathBuf>,
    /// Kept for its end: it removes the directory.
    temporary: Option<TempDir>,
    /// The proxy by which children reach what of the network they may.
    proxy: Option<Gateway>,
}

#[derive(Debug)]
struct Policies {
    agent: Policy,
    check: Policy,
    setup: Policy,
}

impl Policies {
    /// Limits the network of all children as that of an agent is by this policy.
    fn limit_network(&mut self, agent: &Policy, by: Enforcement) {
        for policy in [&mut self.check, &mut self.setup] {
            policy.network.clone_from(&agent.network);
            // Whoever may start a container has its network.
            if by == Enforcement::Namespace {
                policy.hidden.clone_from(&agent.hidden);
            }
        }
        self.agent.network.clone_from(&agent.network);
    }
}

impl Isolation {
    /// Makes the directories that have to be there before a child starts: what is not there cannot be made
    /// writable. To be called once it is certain that the run begins.
    pub fn make_directories(&self) {
        for path in &self.missing {
            // One that cannot be made is one that cannot be written.
            let _ = std::fs::create_dir_all(path);
        }
    }

    /// What reports tell.
    pub fn line(&self) -> &SandboxLine {
        &self.line
    }

    /// What a person should know of places that cannot be written.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// How a child is confined; `None` where nothing is.
    pub fn policy(&self, purpose: Purpose) -> Option<Policy> {
        let policies = self.policies.as_ref()?;
        let policy = match purpose {
            Purpose::Agent => &policies.agent,
            Purpose::Check => &policies.check,
            Purpose::Setup => &policies.setup,
        };
        Some(policy.clone())
    }

    /// The proxy, for whoever has more to do with it; the policies know its port.
    pub fn take_proxy(&mut self) -> Option<Gateway> {
        self.proxy.take()
    }

    /// The hosts that children may reach, and what enforces it.
    pub fn network(&self) -> Option<&NetworkLine> {
        self.line.network.as_ref()
    }

    /// A sentence on a place that a child was kept from writing, where its output tells of one.
    pub fn refusal(&self, output: &str) -> Option<String> {
        const SUDO: &str = "\"no new privileges\" flag is set";
        if self.policies.is_some() && output.contains(SUDO) {
            return Some(
                "sudo cannot give rights in the sandbox: put what needs them into a step before Sprag's, or set \
                 `sandbox: off`"
                    .into(),
            );
        }
        let policy = &self.policies.as_ref()?.check;
        let is_confined = self.line.level >= Level::Files;
        let lies_in = |places: &[PathBuf], path: &Path| {
            let mut places = places.iter();
            places.any(|place| path.starts_with(place))
        };
        let is_protected = |path: &Path| lies_in(&policy.read_only, path);
        let is_meant = |path: &str| {
            let path = Path::new(path);
            is_confined && (!lies_in(&policy.write, path) || is_protected(path))
        };
        let path = refused_path(output, is_meant)?;
        let remedy = match is_protected(Path::new(path)) {
            true => "It holds what the run or its machine relies on; only `sandbox: off` allows it",
            false => "Name the directory in `sandbox_write` if the work needs it",
        };
        Some(format!(
            "{path} could not be written: the sandbox keeps it as it is. {remedy}"
        ))
    }

    /// The directory for temporary files of the run's children, where they may not write in the common one.
    pub fn temporary(&self) -> Option<&Path> {
        let is_needed = self.line.level >= Level::Files;
        self.temporary
            .as_ref()
            .filter(|_| is_needed)
            .map(TempDir::path)
    }
}

/// What is needed to tell how a run is confined.
pub struct Scope<'a> {
    /// The process's surroundings.
    pub context: &'a Context,
    /// The repository.
    pub real: &'a Real,
    /// The settings of the run.
    pub run: &'a RunConfig,
    /// The agents whose own directories are writable for them.
    pub agents: Vec<&'a Agent>,
    /// The run's directory, where it is there already.
    pub run_dir: Option<&'a Path>,
    /// Whether a directory for temporary files is made.
    pub makes: bool,
}

impl<'a> Scope<'a> {
    /// That of a run with these tasks.
    pub fn of(
        context: &'a Context,
        real: &'a Real,
        run: &'a RunConfig,
        tasks: impl Iterator<Item = &'a TaskConfig>,
        run_dir: Option<&'a Path>,
    ) -> Self {
        Self {
            context,
            real,
            run,
            agents: tasks.map(|task| &task.agent).collect(),
            run_dir,
            makes: true,
        }
    }
}

/// Finds out how far children can be confined here, by starting one for each level from the highest on,
/// and holds that against what is asked for.
///
/// # Errors
/// When a level that is required is not reached.
pub async fn isolation(scope: &Scope<'_>) -> Result<Isolation> {
    let wanted = scope.run.settings.sandbox;
    let mut found = match wanted {
        Sandbox::Off => Isolation::default(),
        _ => reached(scope, wanted.required().is_some()).await?,
    };
    if let Some(network) = &scope.run.settings.network {
        let enforced = found.limit_network(scope, &network.allow).await?;
        if wanted.required() >= Some(Level::Namespaces) && enforced != Enforcement::Namespace {
            return Err(Error::environment(
                "`sandbox: require` asks for a network of the child's own, which `network` needs, and this machine \
                 does not give one",
            )
            .hint("docs/security.md says what enforces the allow-list where"));
        }
    }
    let level = found.line.level;
    match wanted.required() {
        Some(required) if level < required => {
            let missing = found.line.missing.as_deref().unwrap_or("unknown");
            let message = format!(
                "`sandbox: {}` asks for level {required}, and level {level} is what this machine gives: \
                 missing is {missing}",
                wanted.word()
            );
            Err(Error::environment(message)
                .hint("docs/security.md says where each level is to be had")
                .hint("or take what there is: --sandbox auto"))
        }
        _ => Ok(found),
    }
}

impl Isolation {
    /// Starts the proxy and keeps agents and checks to it, as far as that can be had here: by a network of their
    /// own, else by the port for TCP alone.
    async fn limit_network(&mut self, scope: &Scope<'_>, allow: &[String]) -> Result<Enforcement> {
        let network = actions_environment::network(scope.context);
        let proxy = Gateway::start(&network, Some(AllowList::of(allow)));
        let proxy = proxy.map_err(|error| {
            Error::environment(format!(
                "the proxy of the setting `network` cannot be started: {error}"
            ))
        })?;
        let port = proxy.port();
        let is_limited = scope.context.var(NETWORK_LIMIT).is_some();
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

/// How far children would be confined here as the settings say, and how far they could be.
pub struct Reach {
    /// What a run gets.
    pub line: SandboxLine,
    /// The highest level that can be had, and why it is not the third.
    pub highest: SandboxLine,
}

/// Tries that without making anything.
///
/// # Errors
/// When nothing can be tried.
pub async fn reach(scope: &Scope<'_>) -> Result<Reach> {
    let mut strict = reached(scope, true).await?;
    let highest = strict.line.clone();
    let mut found = match scope.run.settings.sandbox {
        Sandbox::Off => Isolation::default(),
        Sandbox::Auto => reached(scope, false).await?,
        _ => std::mem::take(&mut strict),
    };
    if let Some(network) = &scope.run.settings.network {
        found.limit_network(scope, &network.allow).await?;
    }
    Ok(Reach {
        line: found.line,
        highest,
    })
}

async fn reached(scope: &Scope<'_>, is_strict: bool) -> Result<Isolation> {
    let (highest, mut missing) = sandbox::without_namespaces();
    if highest == Level::Off {
        return Ok(not_confined(missing));
    }
    let prepared = prepared(scope, is_strict).map_err(|error| {
        Error::environment(format!("no directory for temporary files: {error}"))
            .hint("make room there, or name another place in TMPDIR")
    });
    let prepared = prepared?;
    let limit = scope.context.var(LIMIT);
    let limit: Option<u8> = limit.and_then(|limit| limit.parse().ok());
    for form in forms(is_strict, highest) {
        let level = form.level();
        if limit.is_some_and(|limit| level.number() > limit) {
            missing = Some(format!("leave to go further: {LIMIT} is set"));
            continue;
        }
        let policies = form.policies(&prepared);
        match attempt(&policies.agent, scope).await {
            Ok(()) => {
                let missing = match form {
                    Form::Strict(Level::Namespaces) => None,
                    Form::Open { hides: true } => Some(NOT_ASKED_FOR.into()),
                    _ => missing,
                };
                return Ok(Isolation {
                    line: SandboxLine {
                        level,
                        missing,
                        network: None,
                    },
                    warnings: form.warnings(&prepared),
                    policies: Some(policies),
                    missing: match level {
                        Level::Files | Level::Namespaces => prepared.missing,
                        Level::Off | Level::Privileges => Vec::new(),
                    },
                    temporary: prepared.temporary,
                    proxy: None,
                });
            }
            Err(why) => missing = Some(form.missing(&policies.agent, &why)),
        }
    }
    Ok(not_confined(missing))
}

/// The ways to confine children, the best one first.
fn forms(is_strict: bool, highest: Level) -> Vec<Form> {
    let last = Form::Strict(Level::Privileges);
    match (highest, is_strict) {
        (Level::Files | Level::Namespaces, true) => vec![
            Form::Strict(Level::Namespaces),
            Form::Strict(Level::Files),
            last,
        ],
        (Level::Files | Level::Namespaces, false) => vec![
            Form::Open { hides: true },
            Form::Open { hides: false },
            last,
        ],
        _ => vec![last],
    }
}

/// How children are confined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// To what is named, at this level.
    Strict(Level),
    /// At the second level, so that programs notice nothing unless they write what is protected.
    Open {
        /// Whether an agent is kept from sockets of programs that start processes for it.
        hides: bool,
    },
}

impl Form {
    fn level(self) -> Level {
        match self {
            Self::Strict(level) => level,
            Self::Open { .. } => Level::Files,
        }
    }

    fn policies(self, prepared: &Prepared) -> Policies {
        let Prepared {
            around,
            agent,
            check,
            setup,
            ..
        } = prepared;
        match self {
            Self::Strict(level) => {
                // Setup is the owner's: it may install programs where they are looked for.
                let installs = |path: &PathBuf| setup.iter().any(|place| path.starts_with(place));
                let in_cache = |path: &PathBuf| check.iter().any(|place| path.starts_with(place));
                let mut setup_around = around.clone();
                let protected = &mut setup_around.protected;
                protected.retain(|path| !installs(path) || in_cache(path));
                Policies {
                    agent: sandbox::policy(level, around, agent).0,
                    check: sandbox::policy(level, around, check).0,
                    setup: sandbox::policy(level, &setup_around, setup).0,
                }
            }
            Self::Open { hides } => {
                let level = self.level();
                let mut open = around.clone();
                // Checks talk to docker, and setup installs wherever its user may.
                open.hidden.clear();
                let mut everywhere = Policy::of(level);
                everywhere.signals = true;
                everywhere.write = vec!["/".into()];
                let confining = if hides { around } else { &open };
                Policies {
                    agent: sandbox::open_policy(level, confining, agent),
                    check: sandbox::open_policy(level, &open, check),
                    setup: everywhere,
                }
            }
        }
    }

    /// What is missing for this form where it could not be had.
    fn missing(self, agent: &Policy, why: &str) -> String {
        let kept = agent.read_only.first().map(|path| path.display());
        match (self, kept) {
            (Self::Open { .. }, Some(kept)) => format!(
                "mounts for the child alone, which keep {kept} from it although it lies where everybody writes: {why}"
            ),
            (Self::Open { hides: true }, None) => format!(
                "mounts for the child alone, which keep it from sockets such as docker's: {why}"
            ),
            _ => why.to_owned(),
        }
    }

    /// What a person should know of places that cannot be written although they were named.
    fn warnings(self, prepared: &Prepared) -> Vec<String> {
        let Self::Strict(level) = self else {
            return Vec::new();
        };
        let (_, refused) = sandbox::policy(level, &prepared.around, &prepared.agent);
        let told = refused
            .iter()
            .filter(|(place, _)| prepared.named.contains(place));
        let told = told.map(|(place, protected)| {
            format!(
                "sandbox_write: {} is not writable, because {} lies in it and must not be written; name what is \
                 needed of it",
                place.display(),
                protected.display()
            )
        });
        told.collect()
    }
}

fn not_confined(missing: Option<String>) -> Isolation {
    Isolation {
        line: SandboxLine {
            level: Level::Off,
            missing,
            network: None,
        },
        ..Isolation::default()
    }
}

/// Starts this program, confined, where it does nothing.
async fn attempt(policy: &Policy, scope: &Scope<'_>) -> std::result::Result<(), String> {
    let spec = CommandSpec {
        program: sandbox::OWN_PROGRAM.into(),
        args: vec!["--version".into()],
        cwd: scope.real.work_tree().to_path_buf(),
        env: Vec::new(),
        stdin: Input::Null,
        limits: Limits {
            timeout: Some(ATTEMPT),
            ..Limits::default()
        },
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

/// An environment with the directory for temporary files that its child may write.
pub fn with_temporary(
    mut env: Vec<(OsString, OsString)>,
    isolation: &Isolation,
) -> Vec<(OsString, OsString)> {
    if let Some(temporary) = isolation.temporary() {
        env.retain(|(name, _)| name != TEMPORARY);
        env.push((TEMPORARY.into(), temporary.into()));
    }
    env
}
