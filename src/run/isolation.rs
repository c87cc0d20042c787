//! How far the children of a run are confined, found out by starting one, and what each kind may write.

use crate::agents::{Agent, CliAgent};
use crate::context::Context;
use crate::domain::sandbox::{Level, SandboxLine, refused_path};
use crate::domain::settings::Sandbox;
use crate::error::{Error, Result};
use crate::git::Real;
use crate::process::{Cancel, CommandSpec, Exit, Input, Limits, is_executable, run};
use crate::run::places::{resolved, runs_of};
use crate::sandbox::{self, CACHES, Place, Policy, Surroundings, TOOLS};
use crate::settings::{RunConfig, TaskConfig};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

/// The variable that names the directory for temporary files.
pub const TEMPORARY: &str = "TMPDIR";

/// The variable with the highest level that is tried. Tests set it, to see each level on one machine.
const LIMIT: &str = "SPRAG_SANDBOX_LIMIT";

/// The longest that an attempt to confine a child may take.
const ATTEMPT: Duration = Duration::from_secs(10);

/// The places of the files by which a job of GitHub Actions speaks to its runner.
const RUNNER_FILES: &[&str] = &[
    "GITHUB_ENV",
    "GITHUB_PATH",
    "GITHUB_OUTPUT",
    "GITHUB_STATE",
    "GITHUB_STEP_SUMMARY",
];

/// Sockets of programs that start processes for whoever asks.
const SOCKETS: &[&str] = &[
    "/run/docker.sock",
    "/run/containerd/containerd.sock",
    "/run/podman/podman.sock",
    "/run/systemd/private",
    "/run/dbus/system_bus_socket",
];

/// The same, in the user's own runtime directory.
const USER_SOCKETS: &[&str] = &[
    "docker.sock",
    "podman/podman.sock",
    "bus",
    "systemd/private",
];

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
    /// Kept for its end: it removes the directory.
    temporary: Option<TempDir>,
}

#[derive(Debug)]
struct Policies {
    agent: Policy,
    check: Policy,
    setup: Policy,
}

impl Isolation {
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

    /// A sentence on a place that a child was kept from writing, where its output tells of one.
    pub fn refusal(&self, output: &str) -> Option<String> {
        let policies = self.policies.as_ref()?;
        let is_confined = self.line.level >= Level::Files;
        let may = |path: &Path| {
            policies
                .check
                .write
                .iter()
                .any(|place| path.starts_with(place))
        };
        let is_meant = |path: &str| is_confined && !may(Path::new(path));
        let path = refused_path(output, is_meant)?;
        Some(format!(
            "{path} could not be written: the sandbox keeps it as it is. Name the directory in `sandbox_write` \
             if the work needs it"
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
    if wanted == Sandbox::Off {
        return Ok(Isolation::default());
    }
    let found = reached(scope).await?;
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

async fn reached(scope: &Scope<'_>) -> Result<Isolation> {
    let (highest, mut missing) = sandbox::without_namespaces();
    if highest == Level::Off {
        return Ok(not_confined(missing));
    }
    let prepared = prepared(scope).map_err(|error| {
        Error::environment(format!("no directory for temporary files: {error}"))
            .hint("make room there, or name another place in TMPDIR")
    });
    let prepared = prepared?;
    let levels = match highest {
        Level::Files => &[Level::Namespaces, Level::Files, Level::Privileges][..],
        _ => &[Level::Privileges],
    };
    let limit = scope
        .context
        .var(LIMIT)
        .and_then(|limit| limit.parse().ok());
    for &level in levels {
        if limit.is_some_and(|limit: u8| level.number() > limit) {
            missing = Some(format!("leave to go further: {LIMIT} is set"));
            continue;
        }
        let (policies, warnings) = policies(level, scope, &prepared);
        match attempt(&policies.agent, scope).await {
            Ok(()) => {
                let is_highest = level == Level::Namespaces;
                return Ok(Isolation {
                    line: SandboxLine {
                        level,
                        missing: missing.filter(|_| !is_highest),
                    },
                    policies: Some(policies),
                    warnings,
                    temporary: Some(prepared.temporary),
                });
            }
            Err(why) => missing = Some(why),
        }
    }
    Ok(not_confined(missing))
}

fn not_confined(missing: Option<String>) -> Isolation {
    Isolation {
        line: SandboxLine {
            level: Level::Off,
            missing,
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

/// What does not depend on the level.
struct PreparedPlaces {
    around: Surroundings,
    temporary: TempDir,
    agent: Vec<PathBuf>,
    check: Vec<PathBuf>,
    setup: Vec<PathBuf>,
}

fn prepared(scope: &Scope<'_>) -> std::io::Result<PreparedPlaces> {
    let context = scope.context;
    let base = context
        .path_var(TEMPORARY)
        .filter(|path| path.is_absolute());
    let base = base.unwrap_or_else(|| "/tmp".into());
    let temporary = tempfile::Builder::new()
        .prefix("sprag-")
        .tempdir_in(&base)?;
    let home = context.path_var("HOME").filter(|home| home.is_absolute());
    let home = home.as_deref();
    let is_there = |program: &str| context.find_program(program).is_some();
    let of = |table| made(sandbox::places(table, &context.env, home, is_there));
    let mut check = of(CACHES);
    check.extend(named(scope, home));
    let mut agent = check.clone();
    for it in &scope.agents {
        if let Agent::Cli(CliAgent::Known(spec)) = it {
            agent.extend(made(spec.own_places(&context.env, home)));
        }
    }
    let mut setup = check.clone();
    setup.extend(of(TOOLS));
    Ok(PreparedPlaces {
        around: Surroundings {
            work_tree: resolved(scope.real.work_tree()),
            git_dir: resolved(scope.real.git_dir()),
            common_dir: resolved(scope.real.common_dir()),
            temporary: resolved(temporary.path()),
            protected: protected(scope),
            hidden: hidden(context),
        },
        temporary,
        agent,
        check,
        setup,
    })
}

/// The places that the settings name.
fn named(scope: &Scope<'_>, home: Option<&Path>) -> Vec<PathBuf> {
    let named = scope.run.settings.sandbox_write.iter();
    let absolute = |text: &String| match (text.strip_prefix('~'), home) {
        (Some(rest), Some(home)) => Some(home.join(rest.trim_start_matches('/'))),
        (Some(_), None) => None,
        (None, _) => Some(PathBuf::from(text)),
    };
    named
        .filter_map(absolute)
        .map(|path| resolved(&path))
        .collect()
}

/// The places that exist, or could be made, without links.
fn made(places: Vec<Place>) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for place in places {
        if place.made {
            // One that cannot be made is one that cannot be written.
            let _ = fs::create_dir_all(&place.path);
        }
        if place.path.exists() {
            found.push(resolved(&place.path));
        }
    }
    found
}

/// What no child may write, wherever it lies, but in the work tree itself.
fn protected(scope: &Scope<'_>) -> Vec<PathBuf> {
    let (context, work_tree) = (scope.context, scope.real.work_tree());
    let mut all = vec![runs_of(context, work_tree), context.state_home()];
    all.extend(scope.run_dir.map(Path::to_path_buf));
    let named = scope.run.settings.run_dir.as_ref();
    all.extend(named.map(|path| context.cwd.join(path)));
    all.extend(context.path_var("RUNNER_TEMP"));
    let files = RUNNER_FILES
        .iter()
        .filter_map(|name| context.path_var(name));
    all.extend(files.filter_map(|file| Some(file.parent()?.to_path_buf())));
    let search_path = context.var_os("PATH").unwrap_or_default();
    let programs = std::env::split_paths(search_path).filter(|path| path.is_absolute());
    all.extend(programs.filter(|path| path.is_dir()));
    all.extend(
        fs::read_link(sandbox::OWN_PROGRAM)
            .ok()
            .filter(|path| is_executable(path)),
    );
    let mut all: Vec<PathBuf> = all.iter().map(|path| resolved(path)).collect();
    let inside = resolved(work_tree);
    all.retain(|path| !path.starts_with(&inside));
    all.sort();
    all.dedup();
    all
}

fn hidden(context: &Context) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = SOCKETS.iter().map(PathBuf::from).collect();
    let user = rustix::process::geteuid().as_raw();
    let runtime = context.path_var("XDG_RUNTIME_DIR");
    let runtime = runtime.unwrap_or_else(|| format!("/run/user/{user}").into());
    all.extend(USER_SOCKETS.iter().map(|name| runtime.join(name)));
    let host = context.var_os("DOCKER_HOST").and_then(OsStr::to_str);
    let host = host.and_then(|host| host.strip_prefix("unix://"));
    all.extend(host.map(PathBuf::from));
    let existing = all.iter().filter_map(|path| path.canonicalize().ok());
    existing.collect()
}

fn policies(level: Level, scope: &Scope<'_>, prepared: &PreparedPlaces) -> (Policies, Vec<String>) {
    let around = &prepared.around;
    let (agent, refused) = sandbox::policy(level, around, &prepared.agent);
    let (check, _) = sandbox::policy(level, around, &prepared.check);
    // Setup is the owner's: it may install programs where they are looked for.
    let installs = |path: &PathBuf| prepared.setup.iter().any(|place| path.starts_with(place));
    let mut setup_around = around.clone();
    setup_around.protected.retain(|path| {
        !installs(path) || prepared.check.iter().any(|place| path.starts_with(place))
    });
    let (setup, _) = sandbox::policy(level, &setup_around, &prepared.setup);
    let home = scope.context.path_var("HOME");
    let asked: Vec<PathBuf> = named(scope, home.as_deref());
    let is_asked = |place: &PathBuf| asked.contains(place);
    let told = refused.iter().filter(|(place, _)| is_asked(place));
    let warnings = told.map(|(place, protected)| {
        format!(
            "sandbox_write: {} is not writable, because {} lies in it and must not be written; name what is \
             needed of it",
            place.display(),
            protected.display()
        )
    });
    let policies = Policies {
        agent,
        check,
        setup,
    };
    (policies, warnings.collect())
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
