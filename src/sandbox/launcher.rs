//! The program that starts a confined child and ends with its exit status.

use super::child::{FAILED, Failure, close_descriptors_but};
use super::policy::{Launch, NOTHING, SUBCOMMAND};
use super::report::Reporter;
use super::{mounts, namespaces, network, supervisor};
use crate::domain::sandbox::Level;
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd as _;
use std::process::ExitCode;

/// Runs as a launcher if the arguments of the process say so, otherwise returns `None`. Returns when the
/// child could not be started, or has ended with all of its descendants.
pub fn main(mut arguments: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    let word = arguments.next()?;
    if word == NOTHING {
        return Some(ExitCode::SUCCESS);
    }
    // The first process of a namespace is told by the descriptor to which it reports the child's end.
    let told = match word.to_str()?.strip_prefix(SUBCOMMAND)? {
        "" => None,
        told => Some(told.strip_prefix('=')?.parse().ok()?),
    };
    let failed = Some(ExitCode::from(FAILED));
    let Some(launch) = Launch::read(arguments) else {
        return failed;
    };
    let Ok(report) = reopened(launch.report) else {
        return failed;
    };
    let mut reporter = Reporter(report);
    let done = match told {
        None => outer(&launch, &mut reporter),
        Some(told) => first(&launch, told, &mut reporter),
    };
    match done {
        Ok(code) => return Some(code),
        Err(Failure::NotConfined(why)) => reporter.write("not_confined", why),
        Err(Failure::NotExecuted(error)) => match error.raw_os_error() {
            Some(number) => reporter.write("not_executed", number),
            None => reporter.write("not_confined", error.to_string()),
        },
    }
    failed
}

fn outer(launch: &Launch, reporter: &mut Reporter<File>) -> Result<ExitCode, Failure> {
    // Without a session of its own the child could write to the terminal in which the run was started.
    rustix::process::setsid().map_err(|error| format!("a session: {error}"))?;
    if launch.policy.level >= Level::Namespaces {
        // The first process inherits the descriptor under its number.
        close_descriptors_but(&[reporter.0.as_raw_fd(), launch.report]);
        return namespaces::launch(launch, reporter);
    }
    close_descriptors_but(&[reporter.0.as_raw_fd()]);
    let entrance = network::prepare(&launch.policy)?;
    if launch.policy.has_mounts() {
        mounts::own(&launch.policy, &launch.cwd, entrance)?;
    } else if let Some(entrance) = entrance {
        mounts::leave(network::namespace(Some(&entrance)), &launch.cwd)?;
        entrance.open()?;
    }
    supervisor::supervise(launch, reporter)
}

fn first(launch: &Launch, told: i32, reporter: &mut Reporter<File>) -> Result<ExitCode, Failure> {
    let told = reopened(told)?;
    close_descriptors_but(&[reporter.0.as_raw_fd(), told.as_raw_fd()]);
    namespaces::be_first(launch, told, &reporter.0)
}

/// Reopens an inherited pipe under another number, which no executed program inherits.
fn reopened(number: i32) -> Result<File, Failure> {
    let place = format!("/proc/self/fd/{number}");
    let opened = OpenOptions::new().write(true).open(&place);
    opened.map_err(|error| Failure::from(format!("{place}: {error}")))
}
