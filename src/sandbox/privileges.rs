//! The first level: nothing that a child executes gives it more rights than it has.

use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, setrlimit};
use rustix::thread::{CapabilitySet, remove_capability_from_bounding_set, set_no_new_privs};
use std::io;

/// What root keeps: enough to own files, to bind ports and to become another user.
const KEPT: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETUID)
    .union(CapabilitySet::SETPCAP)
    .union(CapabilitySet::NET_BIND_SERVICE)
    .union(CapabilitySet::NET_RAW)
    .union(CapabilitySet::SYS_CHROOT)
    .union(CapabilitySet::AUDIT_WRITE)
    .union(CapabilitySet::SETFCAP);

/// Gives up privileges for all programs that this process executes from now on.
pub(super) fn give_up() -> io::Result<()> {
    set_no_new_privs(true)?;
    // The memory of a program may hold what nobody is to find in a file.
    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    setrlimit(Resource::Core, none)?;
    if rustix::process::geteuid().is_root() {
        drop_capabilities()?;
    }
    Ok(())
}

fn drop_capabilities() -> io::Result<()> {
    for bit in 0..u64::BITS {
        let capability = CapabilitySet::from_bits_retain(1 << bit);
        if KEPT.contains(capability) {
            continue;
        }
        match remove_capability_from_bounding_set(capability) {
            Ok(()) => {}
            // Past the last one that the kernel knows.
            Err(Errno::INVAL) => break,
            // A root without the right to give them up has been confined by somebody else.
            Err(Errno::PERM) => break,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
