//! Level 3: namespaces for the child, and their first process.
//!
//! Three processes take part. The *launcher*, which the run has started and waits for, creates the
//! namespaces and starts the *first process* in them. The first process makes the mounts, confines
//! itself, starts the *child* and reaps orphans. Killing it ends all processes of its namespace. The
//! launcher ends with the child's exit status. The first process stays only while processes of the child
//! are running. If the run is killed, the kernel kills the launcher, and the first process ends, which
//! ends its namespace.

use super::child::{
    FAILED, Failure, close_descriptors_but, detach_standard_streams, nothing, restrict, spawn,
};
use super::listeners::reachable_sockets;
use super::policy::{Launch, NAME, OWN_PROGRAM, SUBCOMMAND};
use super::report::{Reporter, Status};
use super::supervisor::{Events, reap};
use super::{mounts, network};
use nix::sched::CloneFlags;
use nix::sys::signal::SigSet;
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::thread::{
    CapabilitySet, capabilities, clear_ambient_capability_set, configure_capability_in_ambient_set,
    set_capabilities,
};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode};

/// Sockets of services that answer who a user is.
const NAME_SERVICES: &[&str] = &[
    "/run/systemd/userdb",
    "/run/nslcd",
    "/var/lib/sss/pipes/nss",
];

/// The number of SIGKILL.
const KILL: i32 = 9;

/// Starts the first process, waits for the child, and ends with its exit status.
pub(super) fn launch(launch: &Launch, reporter: &mut Reporter<File>) -> Result<ExitCode, Failure> {
    // Signals to the whole group are meant for the child; the launcher has to see its end.
    let blocked = SigSet::all().thread_block();
    blocked.map_err(|error| format!("signals: {error}"))?;
    let launch = &with_sockets_hidden(launch);
    separate(launch)?;
    // After all changes of privileges, because these make the kernel forget the setting.
    end_with_parent()?;
    let (ends, told) = io::pipe().map_err(|error| format!("a pipe: {error}"))?;
    fcntl_setfd(&told, FdFlags::empty()).map_err(|error| format!("a pipe: {error}"))?;
    let mut first = first_process(launch, told.as_raw_fd())?;
    drop(told);
    close_descriptors_but(&[reporter.0.as_raw_fd(), ends.as_raw_fd()]);
    reporter.write("first_process", first.id());
    let let_go = nothing().and_then(|nothing| detach_standard_streams(&nothing));
    let_go.map_err(|error| format!("standard streams: {error}"))?;
    let Ok(end) = serde_json::from_reader::<_, End>(ends) else {
        // The first process has reported the problem, or was killed.
        if first.wait().is_ok_and(|status| status.code().is_none()) {
            reporter.write("signal", KILL);
        }
        return Ok(ExitCode::from(FAILED));
    };
    if !end.leaves || launch.policy.ends_all {
        let _ = first.wait();
    }
    if let Status::Signal(signal) = end.status {
        reporter.write("signal", signal);
    }
    Ok(end.status.exit_code())
}

/// The exit status of the child, and whether it has left processes running.
#[derive(Serialize, Deserialize)]
struct End {
    status: Status,
    leaves: bool,
}

/// The same launch with all sockets hidden that others listen on, except in places that the child may write,
/// and those that programs ask for the names of users.
fn with_sockets_hidden(launch: &Launch) -> Launch {
    let mut launch = launch.clone();
    let policy = &mut launch.policy;
    let is_kept = |path: &PathBuf| {
        let mut kept = policy.write.iter().map(PathBuf::as_path);
        kept.any(|place| path.starts_with(place))
            || NAME_SERVICES.iter().any(|place| path.starts_with(place))
    };
    let mut hidden = reachable_sockets();
    hidden.retain(|path| !is_kept(path) && !policy.hidden.contains(path));
    policy.hidden.extend(hidden);
    launch
}

/// Makes the kernel kill this process when the thread that started it ends. A run starts children only
/// in its main thread, which ends with the run.
fn end_with_parent() -> Result<(), Failure> {
    let signal = Some(rustix::process::Signal::KILL);
    let set = rustix::process::set_parent_process_death_signal(signal);
    set.map_err(|error| Failure::from(format!("the signal for the end of the run: {error}")))
}

/// Leaves the namespaces of the run.
fn separate(launch: &Launch) -> Result<(), Failure> {
    let entrance = network::prepare(&launch.policy)?;
    let own = CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWPID | CloneFlags::CLONE_NEWIPC;
    let in_user_namespace =
        mounts::leave(own | network::namespace(entrance.as_ref()), &launch.cwd)?;
    if let Some(entrance) = entrance {
        entrance.open()?;
    }
    // Before another program is executed, which keeps only the right to mount.
    mounts::overlays(&launch.policy)?;
    if !in_user_namespace {
        return Ok(());
    }
    // The first process is executed as another program, in which only root would keep the right to
    // mount.
    let keep_mount_capability = || {
        let mut sets = capabilities(None)?;
        sets.inheritable |= CapabilitySet::SYS_ADMIN;
        set_capabilities(None, sets)?;
        configure_capability_in_ambient_set(CapabilitySet::SYS_ADMIN, true)
    };
    keep_mount_capability().map_err(|error| Failure::from(format!("capabilities: {error}")))
}

/// Stops passing on the right to mount, so that the child does not get it.
fn drop_mount_capability() -> Result<(), Failure> {
    let keep = || {
        clear_ambient_capability_set()?;
        let mut sets = capabilities(None)?;
        sets.inheritable = CapabilitySet::empty();
        set_capabilities(None, sets)
    };
    keep().map_err(|error| Failure::from(format!("capabilities: {error}")))
}

/// Starts this program again, as the first process of the new namespaces.
#[expect(
    clippy::disallowed_methods,
    reason = "the first process of a namespace is started by the one that made it"
)]
fn first_process(launch: &Launch, told: i32) -> Result<Child, Failure> {
    let mut command = Command::new(OWN_PROGRAM);
    command
        .arg0(NAME)
        .arg(format!("{SUBCOMMAND}={told}"))
        .args(launch.arguments());
    let started = command.spawn();
    started.map_err(|error| Failure::from(format!("the first process: {error}")))
}

/// The work of the first process: makes the mounts, confines itself, starts the child, and waits.
pub(super) fn be_first(launch: &Launch, told: File, report: &File) -> Result<ExitCode, Failure> {
    mounts::own_processes()?;
    mounts::read_only_outside(&launch.policy)?;
    mounts::places(&launch.policy)?;
    drop_mount_capability()?;
    mounts::enter(&launch.cwd)?;
    restrict(&launch.policy)?;
    let events = Events::new().map_err(|error| format!("the end of the run: {error}"))?;
    let child = spawn(launch)?;
    let let_go = nothing().and_then(|nothing| detach_standard_streams(&nothing));
    let_go.map_err(|error| format!("standard streams: {error}"))?;
    let mut told = Some(told);
    // All other processes of the namespace end with this one. The child may have ended before its end was watched
    // for.
    loop {
        let reaped = reap(child);
        if let Some(status) = reaped.status
            && let Some(told) = told.take()
        {
            let leaves = reaped.is_something_left;
            let _ = serde_json::to_writer(told, &End { status, leaves });
        }
        let is_over = !reaped.is_something_left || launch.policy.ends_all;
        if (told.is_none() && is_over) || !events.wait(report) {
            break;
        }
    }
    Ok(ExitCode::SUCCESS)
}
