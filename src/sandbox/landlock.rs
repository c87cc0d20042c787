//! Level 2: writes only to listed paths, enforced by Landlock.

use super::policy::{Network, Policy};
use landlock::{
    ABI, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible as _, NetPort, PathBeneath,
    Ruleset, RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _, RulesetError,
    RulesetStatus, Scope,
};
use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::path::Path;

/// The oldest supported version (Linux 6.2). Earlier ones cannot forbid truncation, so a child could
/// empty every file of the user.
const NEEDED: ABI = ABI::V3;

/// Devices that every child may write.
const DEVICES: &str = "
    /dev/null /dev/zero /dev/full /dev/random /dev/urandom /dev/tty /dev/ptmx /dev/pts /dev/shm /dev/kvm
    /dev/dri /dev/nvidia0 /dev/nvidiactl /dev/nvidia-uvm";

/// All access rights that write.
fn writes() -> BitFlags<AccessFs> {
    AccessFs::from_write(ABI::V5)
}

/// The access rights in a writable path: all that write, except creating device files.
fn granted(is_directory: bool) -> BitFlags<AccessFs> {
    let all = writes() & !(AccessFs::MakeChar | AccessFs::MakeBlock);
    if is_directory {
        all
    } else {
        all & AccessFs::from_file(ABI::V5)
    }
}

/// A ruleset without exceptions. The kernel must support writes and, if needed, TCP ports. Newer
/// restrictions (no signals and abstract sockets to outside, no commands to devices) are used if
/// available.
fn ruleset(has_one_port: bool) -> Result<RulesetCreated, RulesetError> {
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_write(NEEDED))?;
    if has_one_port {
        ruleset = ruleset.handle_access(AccessNet::ConnectTcp)?;
    }
    ruleset
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(writes())?
        .scope(Scope::Signal | Scope::AbstractUnixSocket)?
        .create()
}

/// Whether the kernel supports this level, else why not.
pub(super) fn is_enough() -> Result<(), String> {
    match ruleset(false) {
        Ok(_) => Ok(()),
        Err(_) => Err("Landlock with ABI 3 (Linux 6.2), switched on in the kernel".into()),
    }
}

/// Whether the kernel keeps signals and abstract sockets inside (Linux 6.12).
pub(super) fn keeps_signals() -> bool {
    let tried = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .scope(Scope::Signal);
    tried.and_then(Ruleset::create).is_ok()
}

/// Restricts the calling thread, and everything that it starts, to write only the paths of a policy and
/// common devices. Paths that do not exist are left out, and so are those of the policy that contain a link: their
/// links were resolved when the run started, so an earlier child has made it.
pub(super) fn confine(policy: &Policy) -> Result<(), String> {
    let told = |error: RulesetError| format!("Landlock: {error}");
    let port = match policy.network {
        Some(Network::Port(port)) => Some(port),
        _ => None,
    };
    let mut ruleset = ruleset(port.is_some()).map_err(told)?;
    if let Some(port) = port {
        let rule = NetPort::new(port, AccessNet::ConnectTcp);
        ruleset = ruleset.add_rule(rule).map_err(told)?;
    }
    let devices = DEVICES.split_whitespace().map(Path::new);
    let devices = devices.map(|place| (place, ResolveFlags::empty()));
    let places = policy.write.iter();
    let places = places.map(|place| (place.as_path(), ResolveFlags::NO_SYMLINKS));
    for (place, resolve) in places.chain(devices) {
        let failed = |error: Errno| format!("{}: {error}", place.display());
        let descriptor = match name(place, resolve) {
            Err(Errno::NOENT | Errno::NOTDIR | Errno::ACCESS | Errno::LOOP) => continue,
            named => named.map_err(failed)?,
        };
        let found = rustix::fs::fstat(&descriptor).map_err(failed)?;
        let is_directory = FileType::from_raw_mode(found.st_mode).is_dir();
        let rule = PathBeneath::new(descriptor, granted(is_directory));
        ruleset = ruleset.add_rule(rule).map_err(told)?;
    }
    let status = ruleset.restrict_self().map_err(told)?;
    match status.ruleset {
        RulesetStatus::NotEnforced => Err("Landlock: the kernel enforces nothing".into()),
        _ => Ok(()),
    }
}

/// A descriptor for a path without opening the file: `/dev/tty` needs no terminal, and a pipe does not
/// block. The standard library, and with it `landlock::PathFd`, cannot do this on musl, where
/// `O_ACCMODE` contains `O_PATH`.
fn name(place: &Path, resolve: ResolveFlags) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    rustix::fs::openat2(CWD, place, flags, Mode::empty(), resolve)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_named_and_not_opened() {
        let top = tempfile::tempdir().unwrap();
        let pipe = top.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let devices = DEVICES.split_whitespace().map(Path::new);
        for place in devices.chain([pipe.as_path(), top.path()]) {
            let Ok(descriptor) = name(place, ResolveFlags::empty()) else {
                assert!(!place.exists(), "{}", place.display());
                continue;
            };
            let flags = rustix::fs::fcntl_getfl(&descriptor).unwrap();
            assert!(flags.contains(OFlags::PATH), "{}", place.display());
        }
    }
}
