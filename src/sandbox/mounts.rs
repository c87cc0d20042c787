//! Mount namespaces for a child process: which of its writable directories stay read-only.

use super::child::Failure;
use super::network::{self, Entrance};
use super::policy::Policy;
use nix::sched::{CloneFlags, unshare};
use rustix::mount::{
    MountFlags, MountPropagationFlags, mount, mount_bind_recursive, mount_change, mount_remount,
};
use std::fs;
use std::path::{Path, PathBuf};

/// Leaves these namespaces of the run. Returns whether that needed a user namespace. Root needs none,
/// and without one files keep their owners.
pub(super) fn leave(own: CloneFlags) -> Result<bool, Failure> {
    let is_root = rustix::process::geteuid().is_root();
    if is_root && unshare(own).is_ok() {
        return Ok(false);
    }
    let (user, group) = (
        rustix::process::geteuid().as_raw(),
        rustix::process::getegid().as_raw(),
    );
    unshare(own | CloneFlags::CLONE_NEWUSER).map_err(|error| format!("namespaces: {error}"))?;
    let write = |path: &str, text: String| {
        fs::write(path, text).map_err(|error| format!("{path}: {error}"))
    };
    write("/proc/self/setgroups", "deny".into())?;
    write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    write("/proc/self/gid_map", format!("{group} {group} 1"))?;
    Ok(true)
}

/// Moves this process into a mount namespace and makes the mounts of a policy. With an entrance, also
/// moves it into a network namespace.
pub(super) fn own(policy: &Policy, cwd: &Path, entrance: Option<Entrance>) -> Result<(), Failure> {
    leave(CloneFlags::CLONE_NEWNS | network::namespace(entrance.as_ref()))?;
    if let Some(entrance) = entrance {
        entrance.open()?;
    }
    private()?;
    places(policy)?;
    enter(cwd)
}

/// Mounts a process table and shared memory for the namespace.
pub(super) fn own_processes() -> Result<(), Failure> {
    private()?;
    let plain = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    let proc = Path::new("/proc");
    mount("proc", proc, "proc", plain, None).map_err(|error| at(proc, error))?;
    let memory = Path::new("/dev/shm");
    if memory.is_dir() {
        let flags = MountFlags::NOSUID | MountFlags::NODEV;
        mount("tmpfs", memory, "tmpfs", flags, Some(c"mode=1777"))
            .map_err(|error| at(memory, error))?;
    }
    Ok(())
}

/// Enters the working directory again, because the current one was entered before the mounts were made.
pub(super) fn enter(cwd: &Path) -> Result<(), Failure> {
    let entered = std::env::set_current_dir(cwd);
    entered.map_err(|error| Failure::from(format!("{}: {error}", cwd.display())))
}

fn at(path: &Path, error: rustix::io::Errno) -> Failure {
    Failure::from(format!("mount on {}: {error}", path.display()))
}

/// Hides all further mounts from other processes.
fn private() -> Result<(), Failure> {
    let root = Path::new("/");
    let private = MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC;
    mount_change(root, private).map_err(|error| at(root, error))
}

/// Makes the mounts of a policy.
pub(super) fn places(policy: &Policy) -> Result<(), Failure> {
    for (path, access) in in_order(policy) {
        if path.symlink_metadata().is_err() {
            continue;
        }
        let onto = |source: &Path| mount_bind_recursive(source, &path);
        let done = match access {
            Mode::Hidden => onto(Path::new("/dev/null")),
            Mode::ReadOnly => onto(&path).and_then(|()| remount(&path, true)),
            Mode::Pinned => onto(&path),
            Mode::Writable => onto(&path).and_then(|()| remount(&path, false)),
        };
        done.map_err(|error| at(&path, error))?;
    }
    Ok(())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Hidden,
    ReadOnly,
    Pinned,
    Writable,
}

/// The paths of a policy from the outermost to the innermost, so that the innermost rule applies.
fn in_order(policy: &Policy) -> Vec<(PathBuf, Mode)> {
    let with = |paths: &[PathBuf], mode| -> Vec<(PathBuf, Mode)> {
        paths.iter().map(|path| (path.clone(), mode)).collect()
    };
    let mut places = with(&policy.pinned, Mode::Pinned);
    places.extend(with(&policy.read_only, Mode::ReadOnly));
    places.extend(with(&policy.write_below, Mode::Writable));
    places.extend(with(&policy.hidden, Mode::Hidden));
    places.sort_by_key(|(path, _)| path.components().count());
    places
}

/// Makes a mount read-only or writable. Its other flags stay, because only root may change some of them.
fn remount(path: &Path, read_only: bool) -> rustix::io::Result<()> {
    use rustix::fs::StatVfsMountFlags as Has;
    let has = rustix::fs::statvfs(path)?.f_flag;
    let mut flags = MountFlags::BIND;
    for (property, flag) in [
        (Has::NOSUID, MountFlags::NOSUID),
        (Has::NODEV, MountFlags::NODEV),
        (Has::NOEXEC, MountFlags::NOEXEC),
        (Has::NOATIME, MountFlags::NOATIME),
        (Has::NODIRATIME, MountFlags::NODIRATIME),
        (Has::RELATIME, MountFlags::RELATIME),
    ] {
        if has.contains(property) {
            flags |= flag;
        }
    }
    if read_only {
        flags |= MountFlags::RDONLY;
    }
    mount_remount(path, flags, "")
}
