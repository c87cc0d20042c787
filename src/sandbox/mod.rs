//! What children may reach: how far they are confined, and the program that confines them.
//!
//! Every child that runs code of the repository or of an agent is started by way of a launcher, which
//! is this program under a hidden subcommand: it restricts itself as a [`Policy`] says and then becomes
//! the child. A launcher that cannot do all that the policy says starts nothing.

mod caches;
#[cfg(target_os = "linux")]
mod child;
mod files;
#[cfg(target_os = "linux")]
mod launcher;
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

pub use caches::{CACHES, Cache, Place, TOOLS, places};
pub use files::{Surroundings, open_policy, policy};
#[cfg(target_os = "linux")]
pub use launcher::main;
pub use policy::{Launch, Network, OWN_PROGRAM, Policy, SUBCOMMAND};
pub use report::Report;

/// The highest level that the kernel has, but for namespaces, which only an attempt can tell; and what is
/// missing for the next.
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

/// Confinement is Linux's alone: nothing is a launcher elsewhere.
#[cfg(not(target_os = "linux"))]
pub fn main(_: impl Iterator<Item = std::ffi::OsString>) -> Option<std::process::ExitCode> {
    None
}
