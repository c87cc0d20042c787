//! Mount namespaces for a child process: which of its writable directories stay read-only.

use super::child::Failure;
use super::network::{self, Entrance};
use super::policy::Policy;
use nix::sched::{CloneFlags, unshare};
use rustix::fs::StatVfsMountFlags;
use rustix::io::Errno;
use rustix::mount::{
    MountFlags, MountPropagationFlags, mount, mount_bind_recursive, mount_change, mount_remount,
};
use std::ffi::{CString, OsString};
use std::fs::{self, Metadata};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

/// The kernel's list of the mounts of this process.
const MOUNTS: &str = "/proc/self/mountinfo";

/// The directories that a child has for itself at level 3.
const OWN_MEMORY: &str = "/dev/shm";
const OWN_TERMINALS: &str = "/dev/pts";

/// The errors of paths that a child cannot reach either.
const UNREACHABLE: &[Errno] = &[Errno::ACCESS, Errno::NOENT, Errno::NOTCONN, Errno::STALE];

/// Leaves these namespaces of the run. Returns whether that needed a user namespace. Root needs none,
/// and without one files keep their owners.
///
/// # Errors
/// When the namespaces are not available, or would take from root the right to write in `cwd`: in a user
/// namespace, capabilities apply only to the files of its own users.
pub(super) fn leave(own: CloneFlags, cwd: &Path) -> Result<bool, Failure> {
    let is_root = rustix::process::geteuid().is_root();
    if is_root && unshare(own).is_ok() {
        return Ok(false);
    }
    let user = rustix::process::geteuid().as_raw();
    let group = rustix::process::getegid().as_raw();
    let found = rustix::fs::stat(cwd).map_err(|error| format!("{}: {error}", cwd.display()))?;
    let owner = found.st_uid;
    if is_root && owner != user {
        let why = format!(
            "namespaces: root has no CAP_SYS_ADMIN here, and in a user namespace it could not write the files of \
             user {owner}"
        );
        return Err(Failure::from(why));
    }
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
    leave(
        CloneFlags::CLONE_NEWNS | network::namespace(entrance.as_ref()),
        cwd,
    )?;
    if let Some(entrance) = entrance {
        entrance.open()?;
    }
    overlays(policy)?;
    places(policy)?;
    enter(cwd)
}

/// Mounts a process table, shared memory and pseudo-terminals for the namespace.
pub(super) fn own_processes() -> Result<(), Failure> {
    private()?;
    let (no_device, no_program) = (MountFlags::NODEV, MountFlags::NOEXEC);
    let terminals = c"newinstance,ptmxmode=0666,mode=0620";
    for (kind, place, flags, options) in [
        ("proc", "/proc", no_device | no_program, None),
        ("tmpfs", OWN_MEMORY, no_device, Some(c"mode=1777")),
        ("devpts", OWN_TERMINALS, no_program, Some(terminals)),
    ] {
        let place = Path::new(place);
        if kind == "proc" || place.is_dir() {
            let mounted = mount(kind, place, kind, flags | MountFlags::NOSUID, options);
            mounted.map_err(|error| at(place, error))?;
        }
    }
    Ok(())
}

/// Enters the working directory again, because the current one was entered before the mounts were made.
pub(super) fn enter(cwd: &Path) -> Result<(), Failure> {
    let entered = std::env::set_current_dir(cwd);
    entered.map_err(|error| Failure::from(format!("{}: {error}", cwd.display())))
}

fn at(path: &Path, error: Errno) -> Failure {
    Failure::from(format!("mount on {}: {error}", path.display()))
}

/// Hides all further mounts from other processes.
fn private() -> Result<(), Failure> {
    let root = Path::new("/");
    let private = MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC;
    mount_change(root, private).map_err(|error| at(root, error))
}

/// Makes everything read-only except the writable paths of a policy and the namespace's own directories,
/// so that files outside do not change in any way. Landlock does not cover modes, owners, times and
/// extended attributes.
pub(super) fn read_only_outside(policy: &Policy) -> Result<(), Failure> {
    let is_inner = |path: &PathBuf| {
        let mut places = policy.write.iter();
        places.any(|place| path.starts_with(place) && path != place)
    };
    let mut kept: Vec<PathBuf> = policy.write.clone();
    kept.retain(|path| !is_inner(path) && path.symlink_metadata().is_ok());
    for path in &kept {
        mount_bind_recursive(path, path).map_err(|error| at(path, error))?;
    }
    kept.extend([OWN_MEMORY, OWN_TERMINALS].map(PathBuf::from));
    let mut outside = mount_points().map_err(|error| format!("{MOUNTS}: {error}"))?;
    outside.retain(|path| !kept.iter().any(|place| path.starts_with(place)));
    let failed: Vec<Failure> = outside
        .iter()
        .filter_map(|path| remount(path, true).err().map(|error| at(path, error)))
        .collect();
    // A mount below another one, or in a directory that this user cannot enter, has no path.
    let is_writable = |path: &PathBuf| match rustix::fs::statvfs(path) {
        Ok(found) => !found.f_flag.contains(StatVfsMountFlags::RDONLY),
        Err(error) => !UNREACHABLE.contains(&error),
    };
    match outside.iter().find(|path| is_writable(path)) {
        None => Ok(()),
        Some(path) => Err(failed
            .into_iter()
            .next()
            .unwrap_or_else(|| format!("{} cannot be mounted read-only", path.display()).into())),
    }
}

/// The directories that mounts have been made on, from the list of the kernel. Automatic mounts, which
/// reading could trigger, are left out.
fn mount_points() -> std::io::Result<Vec<PathBuf>> {
    let list = fs::read(MOUNTS)?;
    let lines = list.split(|byte| *byte == b'\n');
    let point = |line: &[u8]| {
        let mut fields = line.split(|byte| *byte == b' ');
        let path = unescaped(fields.nth(4)?);
        let kind = fields.skip_while(|field| *field != b"-").nth(1)?;
        (kind != b"autofs").then(|| PathBuf::from(OsString::from_vec(path)))
    };
    Ok(lines.filter_map(point).collect())
}

/// A path of the list: white space and backslashes are octal numbers there.
fn unescaped(field: &[u8]) -> Vec<u8> {
    let mut parts = field.split(|byte| *byte == b'\\');
    let mut path = parts.next().unwrap_or_default().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at_checked(3).unwrap_or((part, b""));
        let number = std::str::from_utf8(digits).ok();
        path.extend(number.and_then(|digits| u8::from_str_radix(digits, 8).ok()));
        path.extend_from_slice(rest);
    }
    path
}

/// Mounts the directories of which the child changes copies. A link in the place of one is not followed.
pub(super) fn overlays(policy: &Policy) -> Result<(), Failure> {
    private()?;
    for (place, layer) in policy.overlaid.iter().zip(&policy.layers) {
        let Some(found) = place.symlink_metadata().ok().filter(Metadata::is_dir) else {
            continue;
        };
        let [upper, work] = ["upper", "work"].map(|name| layer.join(name));
        let made = fs::create_dir_all(&work).and_then(|()| {
            if upper.is_dir() {
                return Ok(());
            }
            fs::create_dir(&upper)?;
            fs::set_permissions(&upper, found.permissions())
        });
        made.map_err(|error| format!("{}: {error}", layer.display()))?;
        let mut options = b"userxattr,index=off".to_vec();
        for (name, path) in [
            ("lowerdir", place),
            ("upperdir", &upper),
            ("workdir", &work),
        ] {
            options.extend(format!(",{name}=").bytes());
            for byte in path.as_os_str().as_bytes() {
                options.extend(b"\\,:".contains(byte).then_some(b'\\'));
                options.push(*byte);
            }
        }
        let options =
            CString::new(options).map_err(|error| format!("{}: {error}", place.display()))?;
        let flags = MountFlags::NOSUID | MountFlags::NODEV;
        mount("overlay", place, "overlay", flags, Some(options.as_c_str())).map_err(|error| {
            Failure::from(format!("a private copy of {}: {error}", place.display()))
        })?;
    }
    Ok(())
}

/// Makes the mounts of a policy.
pub(super) fn places(policy: &Policy) -> Result<(), Failure> {
    for (path, access) in in_order(policy) {
        if path.symlink_metadata().is_err() {
            continue;
        }
        let onto = |source: &Path| mount_bind_recursive(source, &path);
        let done = match access {
            // A program may remove its socket at any time.
            Mode::Hidden => match onto(Path::new("/dev/null")) {
                Err(Errno::NOENT) => Ok(()),
                done => done,
            },
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
    use StatVfsMountFlags as Has;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mounts_of_this_machine_are_directories_and_files() {
        assert!(mount_points().unwrap().contains(&PathBuf::from("/proc")));
        assert_eq!(unescaped(br"/a\040b\134c"), br"/a b\c");
        assert_eq!(unescaped(b"/plain"), b"/plain");
    }
}
