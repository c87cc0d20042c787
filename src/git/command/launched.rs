//! A git process that is started through a launcher, because it starts programs of its own.

use crate::domain::sandbox::{Level, refused_path};
use crate::domain::settings::variables::PROCESS_ID;
use crate::git::error::{GitError, Result};
use crate::process::{kill_marked, while_nothing_starts};
use crate::sandbox::{Launch, NAME, Policy, Report, SUBCOMMAND};
use rustix::io::{FdFlags, fcntl_setfd};
use std::io::{self, PipeReader, Read as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};
use uuid::Uuid;

/// How long a launcher may take to end everything once its report is no longer read.
const ENDING: Duration = Duration::from_secs(5);

/// A launcher that runs.
pub(super) struct Launched {
    /// The launcher ends everything as soon as this end is closed.
    report: PipeReader,
    /// Marks the launcher and its descendants, so that they can be ended if it is killed itself.
    mark: String,
    /// The subcommand of git, for errors.
    name: String,
    program: PathBuf,
}

impl Launched {
    /// Starts a command of this program, which has its context, as the launcher of a call with this name.
    pub(super) fn start(
        mut command: Command,
        mut launch: Launch,
        name: String,
    ) -> io::Result<(Child, Option<Self>)> {
        let (report, told) = io::pipe()?;
        launch.report = told.as_raw_fd();
        let mark = Uuid::new_v4().to_string();
        command.arg0(NAME).arg(SUBCOMMAND).args(launch.arguments());
        command.env(PROCESS_ID, &mark);
        // Whatever is started meanwhile would inherit the pipe.
        let child = while_nothing_starts(|| {
            fcntl_setfd(&told, FdFlags::empty())?;
            let child = command.spawn();
            drop(told);
            child
        })?;
        let program = launch.program;
        let launched = Self {
            report,
            mark,
            name,
            program,
        };
        Ok((child, Some(launched)))
    }

    /// Ends the launcher and everything that it has started.
    pub(super) fn end(self, child: &mut Child) {
        drop(self.report);
        if !exited(child, Instant::now() + ENDING) {
            kill_group(child);
        }
        let _ = child.wait();
        kill_marked(&self.mark);
    }

    /// The exit code of git, or `None` if a signal has ended it. If a program could not write because of the
    /// policy, `said` gets a sentence about it.
    ///
    /// # Errors
    /// When git was not started, or its launcher was killed.
    pub(super) fn status(
        mut self,
        policy: Option<&Policy>,
        status: ExitStatus,
        said: &mut String,
    ) -> Result<Option<i32>> {
        let report = Report::read(&self.reported());
        if let Some(why) = report.not_confined {
            return Err(GitError::NotConfined(self.name, why));
        }
        if let Some(number) = report.not_executed {
            let error = io::Error::from_raw_os_error(number);
            return Err(GitError::Spawn(self.program, error));
        }
        let Some(code) = status.code() else {
            kill_marked(&self.mark);
            return Err(GitError::Failed {
                command: self.name,
                status: None,
                stderr: format!("what confines it was killed\n{said}"),
            });
        };
        if let Some(refusal) = refusal(policy, said) {
            *said = format!("{refusal}\n{said}");
        }
        Ok(report.signal.is_none().then_some(code))
    }

    /// What the launcher, which has ended, has reported.
    fn reported(&mut self) -> Vec<u8> {
        let mut text = Vec::new();
        if rustix::io::ioctl_fionbio(&self.report, true).is_ok() {
            // Whoever inherited the other end holds it open without writing.
            let _ = self.report.read_to_end(&mut text);
        }
        text
    }
}

/// A sentence about a path that a program could not write, if it says so.
fn refusal(policy: Option<&Policy>, said: &str) -> Option<String> {
    let policy = policy.filter(|policy| policy.level >= Level::Files)?;
    let is_outside = |path: &str| {
        let mut places = policy.write.iter();
        !places.any(|place| Path::new(path).starts_with(place))
    };
    let path = refused_path(said, is_outside)?;
    Some(format!(
        "{path} could not be written: the sandbox protects it from programs that git starts. Name the directory in \
         `sandbox_write` if a filter needs it; `sandbox: off` confines nothing"
    ))
}

/// Whether the child, whose output has ended, exits before the deadline. It usually does so at once.
pub(super) fn exited(child: &mut Child, deadline: Instant) -> bool {
    let mut pause = Duration::from_micros(50);
    loop {
        match child.try_wait() {
            Ok(None) if Instant::now() < deadline => thread::sleep(pause),
            Ok(None) => return false,
            Ok(Some(_)) | Err(_) => return true,
        }
        pause = (pause * 2).min(Duration::from_millis(10));
    }
}

pub(super) fn kill_group(child: &mut Child) {
    if let Some(group) = i32::try_from(child.id())
        .ok()
        .and_then(rustix::process::Pid::from_raw)
    {
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
    let _ = child.kill();
}
