//! Confines children: policies, and the program that applies them.
//!
//! Every child that runs code of the repository or of an agent is started through a launcher, which is
//! this program with a hidden subcommand: it restricts itself as a [`Policy`] says, starts the child, and
//! ends with the same exit status. If a launcher cannot enforce the whole policy, it starts nothing. If
//! Sprag itself is killed, the launcher kills everything that the child has started.

mod caches;
#[cfg(target_os = "linux")]
mod child;
mod files;
#[cfg(target_os = "linux")]
mod launcher;
mod listeners;
mod policy;
mod report;

#[cfg(target_os = "linux")]
mod landlock;
#[cfg(target_os = "linux")]
mod mounts;
#[cfg(target_os = "linux")]
mod namespaces;
#[cfg(target_os = "linux")]
mod network;
#[cfg(target_os = "linux")]
mod privileges;
#[cfg(target_os = "linux")]
mod sockets;
#[cfg(target_os = "linux")]
mod supervisor;
#[cfg(target_os = "linux")]
mod system_calls;

pub use caches::{CACHES, Cache, Place, TOOLS, places};
pub use files::{SandboxPaths, open_policy, policy, policy_of_filters};
#[cfg(target_os = "linux")]
pub use launcher::main;
pub use listeners::reachable_sockets;
pub use policy::{Launch, NAME, NOTHING, Network, OWN_PROGRAM, Policy, SUBCOMMAND};
pub use report::{Report, Status};

/// The highest level that the kernel supports, apart from namespaces, which have to be tried; and what
/// is missing for the next level.
pub fn without_namespaces() -> (crate::domain::sandbox::Level, Option<String>) {
    use crate::domain::sandbox::Level;
    #[cfg(target_os = "linux")]
    match landlock::is_enough() {
        Ok(()) => (Level::Files, None),
        Err(why) => (Level::Privileges, Some(why)),
    }
    #[cfg(not(target_os = "linux"))]
    (Level::Off, Some("another system than Linux".into()))
}

/// Whether children of level 2 cannot signal processes outside.
pub fn keeps_signals() -> bool {
    #[cfg(target_os = "linux")]
    return landlock::keeps_signals();
    #[cfg(not(target_os = "linux"))]
    false
}

/// Confinement needs Linux: elsewhere no process is a launcher.
#[cfg(not(target_os = "linux"))]
pub fn main(_: impl Iterator<Item = std::ffi::OsString>) -> Option<std::process::ExitCode> {
    None
}
