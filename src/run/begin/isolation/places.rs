//! The paths on this machine that the children of a run may or may not write.

use super::{Scope, TEMPORARY};
use crate::agents::{Agent, CLIS, CliAgent};
use crate::context::{Context, EVENT_FILE, RUNNER_FILES};
use crate::process::is_executable;
use crate::run::state::places::{resolved, runs_of};
use crate::sandbox::{self, CACHES, Place, SandboxPaths, TOOLS};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The directories in which a runner keeps its command files.
const RUNNER_DIRECTORIES: &[&str] = &["_runner_file_commands", "file_commands"];

/// Sockets of programs that start processes on request.
const SOCKETS: &[&str] = &[
    "/run/docker.sock",
    "/run/containerd/containerd.sock",
    "/run/podman/podman.sock",
    "/run/buildkit/buildkitd.sock",
    "/run/crio/crio.sock",
    "/run/libvirt/libvirt-sock",
    "/run/snapd.socket",
    "/var/lib/incus/unix.socket",
    "/var/lib/lxd/unix.socket",
    "/var/snap/lxd/common/lxd/unix.socket",
    "/run/systemd/private",
    "/run/dbus/system_bus_socket",
];

/// Such sockets in the user's runtime directory.
const USER_SOCKETS: &[&str] = &[
    "docker.sock",
    "podman/podman.sock",
    "bus",
    "systemd/private",
];

/// Shared directories for temporary files.
const TEMPORARY_PLACES: &[&str] = &["/tmp", "/var/tmp", "/dev/shm"];

/// System directories. A work tree directly in one of them shares nothing with the other entries there. In a
/// container action, `/github` holds the home directory and the runner's files besides the work tree.
const SYSTEM: &[&str] = &[
    "/", "/boot", "/dev", "/etc", "/github", "/home", "/mnt", "/opt", "/proc", "/root", "/run",
    "/srv", "/sys", "/usr", "/var", "/Users",
];

/// The paths that do not depend on the level.
pub(super) struct Prepared {
    pub(super) around: SandboxPaths,
    /// The run's own directory for temporary files, in the strict form.
    pub(super) temporary: Option<TempDir>,
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
    let named = named(scope, home);
    let mut check = found(of(CACHES), &mut missing);
    check.extend(named.iter().cloned());
    let mut filter = check.clone();
    if !is_strict {
        let temporary = TEMPORARY_PLACES.iter().map(PathBuf::from);
        let temporary = temporary.chain(temporary_base(context));
        filter.extend(temporary.map(|path| resolved(&path)));
    }
    let shared = if is_strict {
        Vec::new()
    } else {
        shared(context, scope.real.work_tree())
    };
    check.extend(shared.iter().cloned());
    let mut agent = check.clone();
    for it in &scope.agents {
        agent.extend(found(own_places(it, context, home), &mut missing));
    }
    let mut setup = check.clone();
    if is_strict {
        setup.extend(found(of(TOOLS), &mut missing));
    }
    // A child could make a missing directory of programs itself, and put programs of its own into it.
    let protected = protected(scope, &shared);
    let is_in_a_place = |path: &PathBuf| setup.iter().chain(&agent).any(|it| path.starts_with(it));
    let to_make = |path: &PathBuf| protected.contains(path) && is_in_a_place(path);
    let programs = programs(context).filter(|path| !path.exists() && to_make(path));
    missing.extend(programs.map(Place::directory));
    let temporary = if is_strict && scope.makes {
        Some(own_temporary(context)?)
    } else {
        None
    };
    let path = temporary.as_ref().map(|it| resolved(it.path()));
    Ok(Prepared {
        around: SandboxPaths {
            work_tree: resolved(scope.real.work_tree()),
            git_dir: resolved(scope.real.git_dir()),
            common_dir: resolved(scope.real.common_dir()),
            temporary: path.unwrap_or_default(),
            protected,
            hidden: hidden(context),
        },
        temporary,
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
    tempfile::Builder::new()
        .prefix("sprag-")
        .tempdir_in(base.unwrap_or_else(|| "/tmp".into()))
}

fn temporary_base(context: &Context) -> Option<PathBuf> {
    let base = context.path_var(TEMPORARY);
    base.filter(|path| path.is_absolute())
}

/// The directories of an agent. A command may start any agent, so it gets the existing directories of
/// all.
fn own_places(agent: &Agent, context: &Context, home: Option<&Path>) -> Vec<Place> {
    match agent {
        Agent::Cli(CliAgent::Known(spec)) => spec.own_places(&context.env, home),
        Agent::Cli(CliAgent::Acp { .. } | CliAgent::Command { .. }) => {
            let known = CLIS.iter();
            let places = known.flat_map(|spec| spec.own_places(&context.env, home));
            places.map(|it| Place { made: false, ..it }).collect()
        }
        Agent::Builtin(_) => Vec::new(),
    }
}

/// The directories in the setting `sandbox_write`.
fn named(scope: &Scope<'_>, home: Option<&Path>) -> Vec<PathBuf> {
    let named = scope.run.settings.sandbox_write.iter();
    let named = named.filter_map(|text| absolute(text, home));
    named.map(|path| resolved(&path)).collect()
}

/// A place of the setting `sandbox_write` as an absolute path; `None` without a home for it.
pub(super) fn absolute(text: &str, home: Option<&Path>) -> Option<PathBuf> {
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
        let exists = path.exists();
        if !exists && place.made {
            missing.push(Place {
                path: path.clone(),
                ..place
            });
        }
        if exists || place.made {
            found.push(path);
        }
    }
    found
}

/// Paths that everybody may write in the open form: directories for temporary files, the parent
/// directory of the work tree, and the runtime directory of the user's session.
fn shared(context: &Context, work_tree: &Path) -> Vec<PathBuf> {
    let home = context.path_var("HOME");
    let is_home = |path: &Path| Some(path) == home.as_deref() || is_a_home(path);
    let own = temporary_base(context).filter(|path| !is_home(path));
    let beside = resolved(work_tree).parent().map(Path::to_path_buf);
    let beside = beside.filter(|path| !is_home(path) && is_of_one_project(path, work_tree));
    let mut all: Vec<PathBuf> = TEMPORARY_PLACES.iter().map(PathBuf::from).collect();
    all.extend(own);
    all.extend(beside);
    all.push(runtime_directory(context));
    if !context.is_root {
        // A user's processes need it to create namespaces and adjust themselves. Root could change the
        // kernel's settings.
        all.push("/proc".into());
    }
    let mut all: Vec<PathBuf> = all.iter().map(|path| resolved(path)).collect();
    all.retain(|path| path.is_dir());
    all.sort();
    all.dedup();
    all
}

/// Whether a path is or contains a user's home directory, or is a system directory.
fn is_a_home(path: &Path) -> bool {
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let mut homes = users.lines().filter_map(|line| line.split(':').nth(5));
    let holds_one = homes.any(|home| Path::new(home).starts_with(path));
    let parent = path.parent().unwrap_or(path);
    let is_among_homes = ["/home", "/Users"].iter().any(|it| Path::new(it) == parent);
    holds_one || is_among_homes || SYSTEM.iter().any(|it| Path::new(it) == path)
}

/// Whether a directory contains no repository but this one.
fn is_of_one_project(path: &Path, work_tree: &Path) -> bool {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    let others = entries.map(|entry| entry.path());
    let own = resolved(work_tree);
    let mut others = others.filter(|other| *other != own);
    !others.any(|other| other.join(".git").symlink_metadata().is_ok())
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
    let mut all: Vec<PathBuf> = all.iter().map(|path| resolved(path)).collect();
    let inside = resolved(work_tree);
    all.retain(|path| !path.starts_with(&inside) && !is_shared(path, shared));
    all.sort();
    all.dedup();
    all
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

/// The sockets of the user's session: of its services, and of programs that hold its terminals and keys. An
/// agent may get the variable that names an `ssh-agent`, so that one stays.
fn of_the_session(context: &Context, runtime: &Path) -> Vec<PathBuf> {
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
    ];
    let directories = directories.map(|path| resolved(&path));
    let ssh_agent = context.path_var("SSH_AUTH_SOCK");
    let ssh_agent = ssh_agent.map(|path| resolved(&path));
    let mut found = sandbox::reachable_sockets();
    found.retain(|path| {
        let mut session = directories.iter();
        session.any(|place| path.starts_with(place)) && Some(path) != ssh_agent.as_ref()
    });
    found
}

/// The sockets that this user can reach and through which a program outside acts for whoever connects. At
/// level 3 the launcher hides all others, too.
fn hidden(context: &Context) -> Vec<PathBuf> {
    use rustix::fs::{Access, access};
    let mut all: Vec<PathBuf> = SOCKETS.iter().map(PathBuf::from).collect();
    let runtime = runtime_directory(context);
    all.extend(of_the_session(context, &runtime));
    all.extend(USER_SOCKETS.iter().map(|name| runtime.join(name)));
    let host = context.var_os("DOCKER_HOST").and_then(OsStr::to_str);
    let host = host.and_then(|host| host.strip_prefix("unix://"));
    all.extend(host.map(PathBuf::from));
    let existing = all.iter().filter_map(|path| path.canonicalize().ok());
    existing
        .filter(|path| access(path, Access::WRITE_OK).is_ok())
        .collect()
}
