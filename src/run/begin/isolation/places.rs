//! The paths on this machine that the children of a run may or may not write.

use super::{Form, Scope, TEMPORARY};
use crate::agents::{Agent, CLIS, CliAgent, CliSpec};
use crate::context::{Context, EVENT_FILE, RUNNER_FILES};
use crate::domain::sandbox::Level;
use crate::domain::settings::{Caches, Sandbox, Settings, variables};
use crate::git::{FilterSandbox, Real, remove_tree};
use crate::process::is_executable;
use crate::run::state::places::{resolved, runs_of};
use crate::sandbox::{self, CACHES, Place, SandboxPaths, TOOLS, keeps_signals, without_namespaces};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The directories in which a runner keeps its command files.
const RUNNER_DIRECTORIES: &[&str] = &["_runner_file_commands", "file_commands"];

/// Sockets of programs that start processes on request.
const SOCKETS: &str = "
    /run/docker.sock /run/containerd/containerd.sock /run/podman/podman.sock /run/buildkit/buildkitd.sock
    /run/crio/crio.sock /run/libvirt/libvirt-sock /run/snapd.socket /var/lib/incus/unix.socket
    /var/lib/lxd/unix.socket /var/snap/lxd/common/lxd/unix.socket /run/systemd/private /run/dbus/system_bus_socket";

/// Such sockets in the user's runtime directory.
const USER_SOCKETS: [&str; 4] = [
    "docker.sock",
    "podman/podman.sock",
    "bus",
    "systemd/private",
];

/// Shared directories for temporary files.
const TEMPORARY_PLACES: &[&str] = &["/tmp", "/var/tmp", "/dev/shm"];

/// System directories. In a container action, `/github` holds the home directory and the runner's files.
const SYSTEM: &[&str] = &[
    "/", "/boot", "/dev", "/etc", "/github", "/home", "/mnt", "/opt", "/proc", "/root", "/run",
    "/srv", "/sys", "/usr", "/var", "/Users",
];

/// The directories for temporary files of agents, and of checks, hooks and setup commands: programs such as jest
/// keep code there that a later run of theirs executes.
pub(super) const TEMPORARY_PARTS: [&str; 2] = ["agent", "checks"];

/// The paths that do not depend on the level.
pub(super) struct Prepared {
    pub(super) around: SandboxPaths,
    /// The run's own directory for temporary files, with one directory for each of [`TEMPORARY_PARTS`].
    pub(super) temporary: Option<TempDir>,
    /// The caches of which agents change copies, and the directory of the copies.
    pub(super) caches: Vec<PathBuf>,
    pub(super) layers: Option<Layers>,
    /// The directories of `PATH`.
    pub(super) programs: Vec<PathBuf>,
    pub(super) agent: Vec<PathBuf>,
    pub(super) check: Vec<PathBuf>,
    pub(super) setup: Vec<PathBuf>,
    pub(super) filter: Vec<PathBuf>,
    /// The directories in the setting `sandbox_write`.
    pub(super) named: Vec<PathBuf>,
    /// Missing directories and files that must exist before a child starts.
    pub(super) missing: Vec<Place>,
}

/// Determines the paths.
///
/// # Errors
/// When no directory for temporary files can be created.
pub(super) fn prepared(scope: &Scope<'_>, is_strict: bool) -> std::io::Result<Prepared> {
    let context = scope.context;
    let home = context.path_var("HOME").filter(|home| home.is_absolute());
    let home = home.as_deref();
    let is_there = |program: &str| context.find_program(program).is_some();
    let of = |table| sandbox::places(table, &context.env, home, is_there);
    let mut missing = Vec::new();
    let named = named(&scope.run.settings.sandbox_write, home);
    let mut check = found(of(CACHES), &mut missing);
    let caches = caches(scope, &check, &named);
    check.extend(named.iter().cloned());
    let mut filter = check.clone();
    if !is_strict {
        let temporary = TEMPORARY_PLACES.iter().map(PathBuf::from);
        let temporary = temporary.chain(temporary_base(context));
        filter.extend(temporary.map(|path| resolved(&path)));
    }
    let mut shared = shared(context);
    if is_strict {
        shared.clear();
    }
    check.extend(shared.iter().cloned());
    let own = scope
        .agents
        .iter()
        .flat_map(|agent| own_places(agent, context));
    let own = found(own.collect(), &mut missing);
    let agent = sorted(check.iter().cloned().chain(own));
    let mut setup = check.clone();
    setup.extend(found(of(TOOLS), &mut missing));
    if !is_strict {
        setup.extend(installed_into(context));
    }
    // A child could make a missing directory of programs itself, and put programs of its own into it.
    let protected = protected(scope, &shared);
    let is_in_a_place = |path: &PathBuf| setup.iter().chain(&agent).any(|it| path.starts_with(it));
    let to_make = |path: &PathBuf| protected.contains(path) && is_in_a_place(path);
    let to_create = programs(context).filter(|path| !path.exists() && to_make(path));
    missing.extend(to_create.map(Place::directory));
    let (temporary, layers) = if scope.makes {
        let layers = (!caches.is_empty()).then(|| Layers::new(context));
        (Some(own_temporary(context)?), layers.transpose()?)
    } else {
        (None, None)
    };
    let probe = layers.as_ref().map(|Layers(layers)| layers.join(PROBE));
    let caches = caches.into_iter().chain(probe).collect();
    let path = temporary.as_ref().map(|it| resolved(it.path()));
    Ok(Prepared {
        around: SandboxPaths {
            temporary: path.unwrap_or_default(),
            protected,
            hidden: hidden(scope),
            ..around(scope.real)
        },
        temporary,
        caches,
        layers,
        programs: programs(context).collect(),
        agent,
        check,
        setup,
        filter,
        named,
        missing,
    })
}

fn own_temporary(context: &Context) -> std::io::Result<TempDir> {
    let base = temporary_base(context);
    let made = tempfile::Builder::new()
        .prefix("sprag-")
        .tempdir_in(base.unwrap_or_else(|| "/tmp".into()))?;
    for part in TEMPORARY_PARTS {
        fs::create_dir(made.path().join(part))?;
    }
    Ok(made)
}

/// A directory of the layers that is overlaid too. Caches may not exist while a launcher is tried.
const PROBE: &str = "probe";

/// The directory of the copies that agents change instead of the user's caches. It is removed with this value.
#[derive(Debug)]
pub(super) struct Layers(pub(super) PathBuf);

impl Layers {
    /// Creates the directory, and removes those of processes that are gone.
    fn new(context: &Context) -> std::io::Result<Self> {
        let all = context.state_home().join("caches");
        fs::create_dir_all(&all)?;
        let all = resolved(&all);
        for entry in fs::read_dir(&all)?.flatten() {
            let process = Path::new("/proc").join(entry.file_name());
            if !process.exists() {
                drop(Self(entry.path()));
            }
        }
        let own = all.join(std::process::id().to_string());
        fs::create_dir_all(own.join(PROBE))?;
        Ok(Self(own))
    }
}

impl Drop for Layers {
    fn drop(&mut self) {
        // What is left is removed by a later run.
        let _ = remove_tree(&self.0);
    }
}

/// The outermost of the user's caches that agents see as they are and change in copies: all but those around the
/// repository or a place that the setting `sandbox_write` names.
fn caches(scope: &Scope<'_>, all: &[PathBuf], named: &[PathBuf]) -> Vec<PathBuf> {
    if scope.run.settings.caches == Caches::Shared {
        return Vec::new();
    }
    let real = scope.real;
    let repository = [real.work_tree(), real.git_dir(), real.common_dir()].map(resolved);
    let is_apart = |place: &&PathBuf| {
        let mut kept = repository.iter().chain(named);
        !kept.any(|path| path.starts_with(place) || place.starts_with(path))
    };
    let is_outermost = |place: &&PathBuf| {
        let mut all = all.iter();
        !all.any(|other| place.starts_with(other) && other != *place)
    };
    // A file beside them is a lock.
    let is_directory = |place: &&PathBuf| place.is_dir() || !place.exists();
    let kept = all.iter().filter(is_apart).filter(is_outermost);
    sorted(kept.filter(is_directory).cloned())
}

/// The places of installed programs: what is around a directory of programs. What belongs to the system is root's.
fn installed_into(context: &Context) -> Vec<PathBuf> {
    let mut places: Vec<PathBuf> = programs(context).filter(|path| path.is_dir()).collect();
    let around = places.iter().filter_map(|path| path.parent());
    let around = around.filter(|path| !is_a_home(context, path));
    places.extend(Vec::from_iter(around.map(Path::to_path_buf)));
    if context.is_root {
        places.extend(["/usr", "/etc", "/opt", "/var", "/lib", "/bin", "/sbin"].map(PathBuf::from));
    }
    places
}

fn temporary_base(context: &Context) -> Option<PathBuf> {
    let base = context.path_var(TEMPORARY);
    base.filter(|path| path.is_absolute())
}

/// The directories of an agent. A command gets those of the agents that it names; one that names none may start any of
/// them, and gets the existing directories of all.
fn own_places(agent: &Agent, context: &Context) -> Vec<Place> {
    let variable = |name: &str| context.var_os(name).map(OsStr::to_owned);
    match agent {
        Agent::Cli(CliAgent::Known(spec)) => spec.own_places(&variable),
        Agent::Cli(CliAgent::Acp { command } | CliAgent::Command { command }) => {
            let is_named = |spec: &CliSpec| command.contains(spec.name);
            let names_one = CLIS.iter().any(|spec| is_named(spec));
            let specs = CLIS.iter().filter(|spec| !names_one || is_named(spec));
            let mut places: Vec<Place> =
                specs.flat_map(|spec| spec.own_places(&variable)).collect();
            places.retain(|place| names_one || place.path.exists());
            places
        }
        Agent::Builtin(_) => Vec::new(),
    }
}

/// A warning about a command that names no agent and may write the directories of all, whose configuration runs later.
pub(super) fn several_directories(scope: &Scope<'_>) -> Option<String> {
    let names_none = |agent: &&&Agent| match agent {
        Agent::Cli(CliAgent::Acp { command } | CliAgent::Command { command }) => {
            !CLIS.iter().any(|spec| command.contains(spec.name))
        }
        _ => false,
    };
    let commands = scope.agents.iter().filter(names_none);
    let places = commands.flat_map(|agent| own_places(agent, scope.context));
    let shown: BTreeSet<String> = places.map(|it| it.path.display().to_string()).collect();
    (!shown.is_empty()).then(|| {
        let shown = Vec::from_iter(shown).join(", ");
        format!(
            "the agent's command names no known agent and may write the configuration of each: {shown}; one that names an agent's program may write only that agent's"
        )
    })
}

/// The directories in the setting `sandbox_write`.
fn named<'a>(texts: impl IntoIterator<Item = &'a String>, home: Option<&Path>) -> Vec<PathBuf> {
    let named = texts.into_iter().filter_map(|text| absolute(text, home));
    named.map(|path| resolved(&path)).collect()
}

fn around(real: &Real) -> SandboxPaths {
    SandboxPaths {
        work_tree: resolved(real.work_tree()),
        git_dir: resolved(real.git_dir()),
        common_dir: resolved(real.common_dir()),
        ..SandboxPaths::default()
    }
}

/// A place of the setting `sandbox_write` as an absolute path; `None` without a home for it.
fn absolute(text: &str, home: Option<&Path>) -> Option<PathBuf> {
    match (text.strip_prefix('~'), home) {
        (Some(rest), Some(home)) => Some(home.join(rest.trim_start_matches('/'))),
        (Some(_), None) => None,
        (None, _) => Some(PathBuf::from(text)),
    }
}

/// The paths that exist or will be created, with links resolved. Those to create are added to `missing`.
fn found(places: Vec<Place>, missing: &mut Vec<Place>) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for place in places {
        let path = resolved(&place.path);
        if path.exists() {
            found.push(path);
        } else if place.made {
            found.push(path.clone());
            missing.push(Place { path, ..place });
        }
    }
    found
}

/// Paths that everybody may write in the open form: directories for temporary files and the runtime directory of the
/// user's session.
fn shared(context: &Context) -> Vec<PathBuf> {
    let own = temporary_base(context).filter(|path| !is_a_home(context, path));
    let mut all: Vec<PathBuf> = TEMPORARY_PLACES.iter().map(PathBuf::from).collect();
    all.extend(own);
    all.push(runtime_directory(context));
    if !context.is_root {
        // A user's processes need it to create namespaces and adjust themselves. Root could change the
        // kernel's settings.
        all.push("/proc".into());
    }
    let all = all.iter().map(|path| resolved(path));
    sorted(all.filter(|path| path.is_dir()))
}

/// Whether a path is or contains a user's home directory, or is a system directory.
fn is_a_home(context: &Context, path: &Path) -> bool {
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let mut homes = users.lines().filter_map(|line| line.split(':').nth(5));
    let holds_one = homes.any(|home| Path::new(home).starts_with(path));
    let parent = path.parent().unwrap_or(path);
    let is_among_homes = ["/home", "/Users"].iter().any(|it| Path::new(it) == parent);
    let is_own = context.path_var("HOME").as_deref() == Some(path);
    is_own || holds_one || is_among_homes || SYSTEM.iter().any(|it| Path::new(it) == path)
}

fn runtime_directory(context: &Context) -> PathBuf {
    let user = rustix::process::geteuid().as_raw();
    let runtime = context.path_var("XDG_RUNTIME_DIR");
    runtime.unwrap_or_else(|| format!("/run/user/{user}").into())
}

/// The paths that no child may write, except inside the work tree and in shared directories.
fn protected(scope: &Scope<'_>, shared: &[PathBuf]) -> Vec<PathBuf> {
    let (context, work_tree) = (scope.context, scope.real.work_tree());
    let mut all = vec![runs_of(context, work_tree), context.state_home()];
    all.extend(scope.run_dir.map(Path::to_path_buf));
    let named = scope.run.settings.run_dir.as_ref();
    all.extend(named.map(|path| context.cwd.join(path)));
    let runner = context.path_var("RUNNER_TEMP").into_iter();
    all.extend(runner.flat_map(|path| {
        if is_shared(&resolved(&path), shared) {
            runner_entries(&path)
        } else {
            vec![path]
        }
    }));
    all.extend(runner_files(context));
    all.extend(programs(context));
    let own = fs::read_link(sandbox::OWN_PROGRAM).ok();
    all.extend(own.filter(|path| is_executable(path)));
    let inside = resolved(work_tree);
    let all = all.iter().map(|path| resolved(path));
    sorted(all.filter(|path| !path.starts_with(&inside) && !is_shared(path, shared)))
}

/// Paths in their order, each once.
fn sorted(paths: impl Iterator<Item = PathBuf>) -> Vec<PathBuf> {
    BTreeSet::from_iter(paths).into_iter().collect()
}

/// The directories of `PATH`, also those that do not exist.
fn programs(context: &Context) -> impl Iterator<Item = PathBuf> {
    let search_path = context.var_os("PATH").unwrap_or_default();
    let absolute = std::env::split_paths(search_path).filter(|path| path.is_absolute());
    absolute.map(|path| resolved(&path))
}

/// Whether a path is a shared directory or contains one.
fn is_shared(path: &Path, shared: &[PathBuf]) -> bool {
    shared.iter().any(|place| place.starts_with(path))
}

/// The files through which a job communicates with its runner, or the runner's directory that contains
/// them.
fn runner_files(context: &Context) -> Vec<PathBuf> {
    let names = RUNNER_FILES.iter().chain([&EVENT_FILE]);
    let named = names.filter_map(|name| context.path_var(name));
    let kept = named.map(|file| {
        let parent = file.parent().filter(|parent| {
            let name = parent.file_name().and_then(OsStr::to_str);
            name.is_some_and(|name| RUNNER_DIRECTORIES.contains(&name))
        });
        parent.unwrap_or(&file).to_path_buf()
    });
    kept.filter(|path| path.is_absolute() && path.exists())
        .collect()
}

/// The runner's own entries in a shared directory.
fn runner_entries(directory: &Path) -> Vec<PathBuf> {
    let is_the_runners = |name: &str| {
        name.starts_with('_') || name.starts_with("git-credentials-") || name.ends_with(".sh")
    };
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let own = entries.filter(|entry| entry.file_name().to_str().is_some_and(is_the_runners));
    own.map(|entry| entry.path()).collect()
}

/// The sockets of the user's session: of its services, and of programs that hold its terminals and keys. The one of an
/// `ssh-agent` stays if an agent gets the variable that names it.
fn of_the_session(scope: &Scope<'_>, runtime: &Path) -> Vec<PathBuf> {
    let context = scope.context;
    let user = rustix::process::geteuid().as_raw();
    let tmux = context.path_var("TMUX_TMPDIR");
    let tmux = tmux.unwrap_or_else(|| "/tmp".into());
    let home = context.path_var("HOME").unwrap_or_default();
    let directories = [
        runtime.to_path_buf(),
        tmux.join(format!("tmux-{user}")),
        "/run/screen".into(),
        home.join(".screen"),
        home.join(".gnupg"),
        home.join(".ssh"),
    ]
    .map(|path| resolved(&path));
    let ssh_agent = context
        .path_var("SSH_AUTH_SOCK")
        .map(|path| resolved(&path));
    let mut found = sandbox::reachable_sockets();
    found.retain(|path| {
        if Some(path) == ssh_agent.as_ref() {
            !scope.passes_keys
        } else {
            directories.iter().any(|place| path.starts_with(place))
        }
    });
    found
}

/// The sockets that this user can reach and through which a program outside acts for whoever connects. At
/// level 3 the launcher hides all others, too.
fn hidden(scope: &Scope<'_>) -> Vec<PathBuf> {
    use rustix::fs::{Access, access};
    let context = scope.context;
    let mut all: Vec<PathBuf> = SOCKETS.split_whitespace().map(PathBuf::from).collect();
    let runtime = runtime_directory(context);
    all.extend(of_the_session(scope, &runtime));
    all.extend(USER_SOCKETS.iter().map(|name| runtime.join(name)));
    let host = context.var_os("DOCKER_HOST").and_then(OsStr::to_str);
    let host = host.and_then(|host| host.strip_prefix("unix://"));
    all.extend(host.map(PathBuf::from));
    let existing = all.iter().filter_map(|path| path.canonicalize().ok());
    existing
        .filter(|path| access(path, Access::WRITE_OK).is_ok())
        .collect()
}

/// What is open at the first level.
const ALL_OPEN: &str = "agents and checks may write, signal and connect wherever their user may";

/// What is open without mounts for the child.
const CACHES_OPEN: &str = "agents can change caches and temporary files that checks use";
const SOCKETS_OPEN: &str = "agents can use the sockets of docker, ssh-agent and the session";

/// What is open before Linux 6.12.
const SIGNALS_OPEN: &str = "agents and checks can end Sprag and its runner";

/// What this form leaves open, one sentence each.
pub(super) fn open_rows(form: Form, are_caches_open: bool) -> Vec<String> {
    let mut open = Vec::new();
    match form {
        Form::Strict(Level::Off | Level::Privileges) => return vec![ALL_OPEN.to_owned()],
        Form::Open { hides: false } => open.push(SOCKETS_OPEN),
        Form::Strict(_) | Form::Open { .. } => {}
    }
    open.extend(are_caches_open.then_some(CACHES_OPEN));
    let is_apart = form.level() >= Level::Namespaces;
    open.extend((!is_apart && !keeps_signals()).then_some(SIGNALS_OPEN));
    open.into_iter().map(str::to_owned).collect()
}

/// How filters are confined before it is determined how the run's children are, such as while a branch is
/// checked out: up to level 2, and with no other places than those of `sandbox_write`.
pub fn filters_before_the_run(
    context: &Context,
    real: &Real,
    settings: &Settings,
) -> FilterSandbox {
    let limit = context.var(variables::SANDBOX_LIMIT);
    let limit = limit.and_then(|limit| Level::of_number(limit.parse().ok()?));
    let (highest, _) = without_namespaces();
    let level = limit.map_or(highest, |limit| limit.min(highest));
    if level == Level::Off || settings.sandbox == Some(Sandbox::Off) {
        return FilterSandbox::default();
    }
    let home = context.path_var("HOME").filter(|home| home.is_absolute());
    let places = named(settings.sandbox_write.iter().flatten(), home.as_deref());
    FilterSandbox {
        policy: Some(sandbox::policy_of_filters(level, &around(real), &places)),
        variables: Vec::new(),
    }
}
