//! Facts about the machine.

use crate::context::Context;
use crate::doctor::{Machine, Obstacle, Place};
use crate::domain::sandbox::Level;
use crate::process::environment::environment;
use crate::process::{self, Cancel, CommandSpec, Exit, Input, Limits, run};
use crate::run::begin::isolation;
use rustix::fs::{Access, access, statvfs};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Time limit for creating a namespace.
const NAMESPACE_TIMEOUT: Duration = Duration::from_secs(30);

pub(crate) fn gather(
    context: &Context,
    runs: &Path,
    user_namespaces: Option<bool>,
    subreaper: bool,
) -> Machine {
    let temporary = context.path_var("TMPDIR").unwrap_or_else(|| "/tmp".into());
    Machine {
        is_root: context.is_root,
        user_namespaces,
        landlock: isolation::without_namespaces().0 >= Level::Files,
        confinement: None,
        subreaper,
        lists_processes: process::can_list(),
        run_directory: place(runs),
        state_directory: place(&context.state_home()),
        home: context.path_var("HOME").map(|home| there(&home)),
        temporary: there(&temporary),
    }
}

/// Whether a program can run in its own user namespace, tested by starting one. `None` if that is not known in time.
pub(crate) async fn user_namespaces(context: &Context, cancel: &Cancel) -> Option<bool> {
    if !cfg!(target_os = "linux") {
        return None;
    }
    let limit = fs::read_to_string("/proc/sys/user/max_user_namespaces").ok();
    if limit.is_some_and(|limit| limit.trim() == "0") {
        return Some(false);
    }
    let spec = CommandSpec {
        program: context.find_program("unshare")?.into(),
        args: vec!["--user".into(), "--map-root-user".into(), "true".into()],
        cwd: "/".into(),
        env: environment(&context.env, &[]).variables,
        stdin: Input::Null,
        limits: Limits {
            timeout: Some(NAMESPACE_TIMEOUT),
            ..Limits::default()
        },
        sandbox: None,
    };
    match run(&spec, cancel, &mut |_, _| {}).await.exit {
        Exit::TimedOut { .. } => None,
        exit => Some(exit.is_success()),
    }
}

/// What prevents programs from creating namespaces, as far as the system shows.
pub(crate) fn obstacle() -> Obstacle {
    let is = |file: &str, value: &str| {
        let text = fs::read_to_string(Path::new("/proc/sys").join(file));
        text.is_ok_and(|text| text.trim() == value)
    };
    let markers = ["/.dockerenv", "/run/.containerenv"];
    if is("kernel/apparmor_restrict_unprivileged_userns", "1") {
        Obstacle::AppArmor
    } else if is("user/max_user_namespaces", "0") || is("kernel/unprivileged_userns_clone", "0") {
        Obstacle::Limit
    } else if markers.iter().any(|path| Path::new(path).exists()) {
        Obstacle::Container
    } else {
        Obstacle::Unknown
    }
}

/// A directory that may not exist yet. For a missing one, its nearest existing parent is examined.
fn place(path: &Path) -> Place {
    let existing = path
        .ancestors()
        .find(|dir| dir.symlink_metadata().is_ok())
        .map_or_else(|| PathBuf::from("/"), Path::to_path_buf);
    Place {
        path: path.display().to_string(),
        ..there(&existing)
    }
}

/// A directory that must exist.
fn there(path: &Path) -> Place {
    let free = statvfs(path).ok();
    Place {
        path: path.display().to_string(),
        exists: path.exists(),
        writable: path.is_dir() && access(path, Access::WRITE_OK | Access::EXEC_OK).is_ok(),
        free: free.map(|it| it.f_bavail.saturating_mul(it.f_frsize)),
    }
}
