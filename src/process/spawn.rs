//! Starts a child, and explains why it could not be started.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, ErrorKind};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use rustix::io::{FdFlags, fcntl_setfd};
use tokio::process::{Child, Command};
use uuid::Uuid;

use super::command::{CommandSpec, Input};
use super::exit::Exit;
use super::host::{self, Proc, State};
use super::launcher::Launcher;
use super::programs;
use super::registry::{self, Origin};
use super::service::Registration;
use crate::domain::settings::variables::PROCESS_ID;
use crate::sandbox::{self, Launch, Policy, Report};

/// A program that is open for writing cannot be executed. Another process's child may hold it open
/// between fork and exec, so the start is retried a few times.
const BUSY_TRIES: u32 = 10;
const BUSY_PAUSE: Duration = Duration::from_millis(20);

/// A child that was started.
pub(super) struct Started {
    pub(super) child: Child,
    pub(super) registration: Registration,
    /// The launcher, if the child has one.
    pub(super) launcher: Option<Launcher>,
}

/// Starts a child in its own process group and registers it.
pub(super) async fn start(spec: &CommandSpec) -> Result<Started, Exit> {
    let mut tries = 0;
    loop {
        match try_start(spec) {
            Err(error) if error.kind() == ErrorKind::ExecutableFileBusy && tries < BUSY_TRIES => {
                tries += 1;
                tokio::time::sleep(BUSY_PAUSE).await;
            }
            Err(error) => return Err(explain(spec, &error)),
            Ok(started) => return Ok(started),
        }
    }
}

fn try_start(spec: &CommandSpec) -> io::Result<Started> {
    let id = Uuid::new_v4().to_string();
    let stdin = match &spec.stdin {
        Input::Null => Stdio::null(),
        Input::Bytes(_) | Input::Dialogue(_) => Stdio::piped(),
    };
    let policy = spec.sandbox.as_ref();
    let confined = policy.map(|policy| confined(spec, policy)).transpose()?;
    let (program, name, args) = match &confined {
        Some(it) => (
            OsStr::new(sandbox::OWN_PROGRAM),
            sandbox::NAME.as_ref(),
            &it.args,
        ),
        None => (&*spec.program, &*spec.program, &spec.args),
    };
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the one place that starts children"
    )]
    let mut command = Command::new(program);
    command
        .arg0(name)
        .args(args)
        .current_dir(&spec.cwd)
        .env_clear()
        .envs(spec.env.iter().map(|(name, value)| (name, value)))
        .env(PROCESS_ID, &id)
        .kill_on_drop(true)
        .stdin(stdin)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    if confined.is_none() {
        // A launcher makes a session of its own instead, which is a group, too.
        command.process_group(0);
    }
    let launched: io::Result<_> = registry::start(|| {
        if let Some(it) = &confined {
            // Only this child is started while the registry is locked, so only it inherits the pipe.
            fcntl_setfd(&it.told, FdFlags::empty())?;
        }
        let child = command.spawn()?;
        let pid = child.id().and_then(|pid| i32::try_from(pid).ok());
        let pid = pid.ok_or_else(|| io::Error::other("the child has no process id"))?;
        let origin = Origin::new(birth(pid), format!("{PROCESS_ID}={id}"), confined.is_some());
        Ok((child, origin))
    });
    let (child, origin) = launched?;
    Ok(Started {
        child,
        registration: Registration {
            origin,
            released: false,
        },
        launcher: confined.map(|confined| confined.launcher),
    })
}

/// A child that is started through a launcher.
struct Confined {
    launcher: Launcher,
    args: Vec<OsString>,
    /// The launcher's end of the pipe.
    told: OwnedFd,
}

/// # Errors
/// When there is no such program, with the error that the system returns for a direct start.
fn confined(spec: &CommandSpec, policy: &Policy) -> io::Result<Confined> {
    let path = path_of(spec);
    let Some(program) = programs::find_program(&spec.program, path, &spec.cwd) else {
        let kind = match file_of(spec) {
            Some(_) => ErrorKind::PermissionDenied,
            None => ErrorKind::NotFound,
        };
        return Err(kind.into());
    };
    let (report, told) = io::pipe()?;
    let name = [spec.program.clone()];
    let launch = Launch {
        policy: policy.clone(),
        report: told.as_raw_fd(),
        cwd: spec.cwd.clone(),
        program,
        args: name.into_iter().chain(spec.args.iter().cloned()).collect(),
    };
    let mut args = vec![sandbox::SUBCOMMAND.into()];
    args.extend(launch.arguments());
    Ok(Confined {
        launcher: Launcher::new(OwnedFd::from(report).into())?,
        args,
        told: told.into(),
    })
}

/// Why the launcher did not start the child, if it did not.
pub(super) fn not_started(spec: &CommandSpec, report: &Report) -> Option<Exit> {
    match (&report.not_confined, report.not_executed) {
        (Some(why), _) => Some(Exit::SpawnFailed {
            why: format!("it cannot be confined: {why}"),
        }),
        (None, Some(number)) => Some(explain(spec, &io::Error::from_raw_os_error(number))),
        (None, None) => None,
    }
}

/// The child right after its start. It cannot have been reaped yet, so it is found unless the system
/// provides no process information.
fn birth(pid: i32) -> Proc {
    let unseen = Proc {
        pid,
        parent: host::own_pid(),
        group: pid,
        start: 0,
        state: State::Running,
    };
    host::find(pid).unwrap_or(unseen)
}

/// Finds the reason behind an error code: a missing program, a missing interpreter and a missing working
/// directory are all "no such file".
fn explain(spec: &CommandSpec, error: &io::Error) -> Exit {
    // The final dot requires permission to enter the directory, not only its existence.
    if let Err(error) = fs::metadata(spec.cwd.join(".")) {
        let why = format!("working directory {}: {error}", spec.cwd.display());
        return Exit::SpawnFailed { why };
    }
    let program = file_of(spec);
    let is_no_program = error.raw_os_error() == Some(rustix::io::Errno::NOEXEC.raw_os_error());
    let why = match (error.kind(), &program) {
        (ErrorKind::NotFound, Some(path)) => {
            let why = format!("the interpreter or loader of {} is missing", path.display());
            return Exit::NotExecutable { why };
        }
        (ErrorKind::NotFound | ErrorKind::NotADirectory, None) => return Exit::NotFound,
        (ErrorKind::PermissionDenied, Some(path)) if path.is_dir() => "a directory",
        (ErrorKind::PermissionDenied, Some(_)) => "permission denied",
        (_, Some(_)) if is_no_program => "not a program for this system",
        _ => {
            let why = error.to_string();
            return Exit::SpawnFailed { why };
        }
    };
    let program = program.unwrap_or_default();
    let why = format!("{}: {why}", program.display());
    Exit::NotExecutable { why }
}

/// The file for the program's name, executable or not.
fn file_of(spec: &CommandSpec) -> Option<PathBuf> {
    let path = path_of(spec);
    let is_path = spec.program.as_bytes().contains(&b'/');
    let mut places = programs::places(&spec.program, path, &spec.cwd).into_iter();
    places.find(|place| place.is_file() || (is_path && place.exists()))
}

fn path_of(spec: &CommandSpec) -> &OsStr {
    let path = spec.env.iter().rev().find(|(name, _)| name == "PATH");
    path.map_or(OsStr::new("/bin:/usr/bin"), |(_, value)| value)
}
