//! Runs git. No other module starts it.

use crate::git::error::GitError;
use crate::git::special_files::special_files_in;
use crate::process::{Cancel, is_executable, while_nothing_starts};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, FdFlags, fcntl_setfd};
use secrecy::{ExposeSecret as _, SecretString};
use std::ffi::{OsStr, OsString};
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Time limit of one git command. It is generous because the first read of a large tree from a cold disk and
/// large-file filters are slow; it only ensures that no command hangs for ever.
const TIMEOUT: Duration = Duration::from_secs(600);
/// After this time, and again after ten times as long, a command that still runs is checked for special files
/// that block it.
const BLOCKED_AFTER: Duration = Duration::from_secs(2);
/// How often a cancellable command checks whether it was cancelled.
const CANCEL_POLL: Duration = Duration::from_millis(100);
const STDERR_KEPT: usize = 8 * 1024;
const CHUNK: usize = 64 * 1024;

/// The git program and the environment that every git command of a run gets.
#[derive(Debug, Clone)]
pub(super) struct GitProgram {
    pub(super) program: PathBuf,
    pub(super) search_path: OsString,
}

/// The output of a git command.
#[derive(Debug)]
pub(super) struct Output {
    pub(super) status: Option<i32>,
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: String,
}

/// A user name and a password that git reads from a pipe when it asks for them.
#[derive(Debug)]
pub(super) struct Login {
    /// The server that the login is for: scheme, host and port.
    pub(super) server: String,
    pub(super) user: String,
    pub(super) password: SecretString,
}

impl Login {
    /// The read end of a pipe that holds the answer to git's credential request. Reading empties the pipe, so
    /// the password is never in the environment or in a file while git runs.
    fn pipe(&self) -> io::Result<OwnedFd> {
        let (answer, mut writer) = io::pipe()?;
        let password = self.password.expose_secret();
        write!(writer, "username={}\npassword={password}\n", self.user)?;
        Ok(answer.into())
    }

    /// The credential helper setting that makes git read the login from the pipe.
    fn setting(&self, pipe: &OwnedFd) -> String {
        let descriptors = match cfg!(target_os = "linux") {
            true => "/proc/self/fd",
            false => "/dev/fd",
        };
        // git appends the operation as a last argument. The `#` keeps it out of the command.
        format!(
            "credential.{}.helper=!cat {descriptors}/{} #",
            self.server,
            pipe.as_raw_fd()
        )
    }
}

/// A git command that has not started yet.
pub(super) struct Call<'a> {
    git: &'a GitProgram,
    cwd: &'a Path,
    args: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    stdin: Vec<u8>,
    login: Option<Login>,
    timeout: Duration,
    watched: Vec<PathBuf>,
    cancel: Option<Cancel>,
}

impl GitProgram {
    /// Finds the program `name` (git, or jj for what git cannot answer) in the absolute directories of
    /// `search_path`. Directories inside `forbidden` are skipped, because a work tree must not supply the
    /// programs that work on it.
    pub(super) fn find(name: &str, search_path: &OsStr, forbidden: &Path) -> Option<Self> {
        let dirs: Vec<PathBuf> = std::env::split_paths(search_path)
            .filter(|dir| dir.is_absolute() && !dir.starts_with(forbidden))
            .collect();
        let program = dirs
            .iter()
            .map(|dir| dir.join(name))
            .find(|path| is_executable(path))?;
        Some(Self {
            program,
            search_path: std::env::join_paths(dirs).ok()?,
        })
    }

    pub(super) fn call<'a>(&'a self, cwd: &'a Path) -> Call<'a> {
        let mut call = Call {
            git: self,
            cwd,
            args: Vec::new(),
            env: Vec::new(),
            stdin: Vec::new(),
            login: None,
            timeout: TIMEOUT,
            watched: Vec::new(),
            cancel: None,
        };
        call.env.push(("PATH".into(), self.search_path.clone()));
        for (name, value) in FIXED_ENVIRONMENT {
            call.env.push((name.into(), value.into()));
        }
        call
    }
}

/// No configuration except the repository's, no prompt, no pager, no network, no object replacement.
const FIXED_ENVIRONMENT: &[(&str, &str)] = &[
    ("LC_ALL", "C"),
    ("HOME", "/nonexistent"),
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_CONFIG_SYSTEM", "/dev/null"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_ATTR_NOSYSTEM", "1"),
    ("GIT_LITERAL_PATHSPECS", "1"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_ASKPASS", "false"),
    ("SSH_ASKPASS", "false"),
    ("GIT_EDITOR", ":"),
    ("GIT_PAGER", "cat"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_NO_REPLACE_OBJECTS", "1"),
    ("GIT_ALLOW_PROTOCOL", "none"),
    // git reads rules and references as a whole, however large somebody has made them.
    ("GIT_ALLOC_LIMIT", "3g"),
];

impl<'a> Call<'a> {
    pub(super) fn args<I, S>(mut self, args: I) -> Self
    where
        I: IntoIterator<Item = S>,
        S: AsRef<OsStr>,
    {
        self.args
            .extend(args.into_iter().map(|arg| arg.as_ref().to_os_string()));
        self
    }

    pub(super) fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        let (name, value) = (name.as_ref().to_os_string(), value.as_ref().to_os_string());
        self.env.retain(|(existing, _)| *existing != name);
        self.env.push((name, value));
        self
    }

    pub(super) fn without_env(mut self, name: &str) -> Self {
        self.env.retain(|(existing, _)| existing != name);
        self
    }

    pub(super) fn stdin(mut self, bytes: Vec<u8>) -> Self {
        self.stdin = bytes;
        self
    }

    pub(super) fn login(mut self, login: Option<Login>) -> Self {
        self.login = login;
        self
    }

    /// Makes git flush the objects and refs that it writes to disk before it ends, which it does not do by
    /// default.
    pub(super) fn durably(self) -> Self {
        self.configured(&["core.fsync=loose-object,pack,pack-metadata,reference"])
    }

    /// Like [`Self::durably`], but with one disk flush for all objects. Every file must be smaller than
    /// [`Self::IN_MEMORY_LIMIT`]: git streams larger files into a pack, which this mode does not support.
    pub(super) fn durably_together(self) -> Self {
        let big = format!("core.bigFileThreshold={}", Self::IN_MEMORY_LIMIT);
        self.durably().configured(&["core.fsyncMethod=batch", &big])
    }

    /// Size in bytes from which git does not hold a file in memory. This is git's own default.
    pub(super) const IN_MEMORY_LIMIT: u64 = 512 << 20;

    pub(super) fn configured(mut self, settings: &[&str]) -> Self {
        let settings = settings.iter().flat_map(|setting| ["-c", *setting]);
        self.args.splice(0..0, settings.map(OsString::from));
        self
    }

    pub(super) fn timeout(mut self, limit: Duration) -> Self {
        self.timeout = limit;
        self
    }

    /// Searches these directories for special files when the command takes long.
    pub(super) fn watching(mut self, roots: Vec<PathBuf>) -> Self {
        self.watched = roots;
        self
    }

    /// Ends the command when `cancel` is signalled.
    pub(super) fn cancelled_by(mut self, cancel: &Cancel) -> Self {
        self.cancel = Some(cancel.clone());
        self
    }

    /// Runs the command. An exit code other than 0 is an error.
    pub(super) fn run(self) -> Result<Output, GitError> {
        let command = self.name();
        self.status()?.expect_success(command)
    }

    /// Runs the command and accepts any exit code.
    pub(super) fn status(self) -> Result<Output, GitError> {
        let mut stdout = Vec::new();
        let mut output = self.stream(&mut |chunk| stdout.extend_from_slice(chunk))?;
        output.stdout = stdout;
        Ok(output)
    }

    /// Runs the command and returns its output as one line of text.
    pub(super) fn line(self) -> Result<String, GitError> {
        Ok(self.run()?.line())
    }

    /// Runs the command and passes its standard output on in chunks.
    ///
    /// The call never waits beyond the time limit: a stray descendant that keeps a pipe open must not block
    /// the run.
    pub(super) fn stream(mut self, on_stdout: &mut dyn FnMut(&[u8])) -> Result<Output, GitError> {
        let mut child = self.spawn()?;
        let deadline = Instant::now() + self.timeout;
        if let Some(stdin) = child.stdin.take() {
            let bytes = std::mem::take(&mut self.stdin);
            thread::spawn(move || feed(stdin, &bytes));
        }
        let mut stderr = Vec::new();
        let mut pipes = Pipes::of(&mut child);
        let drained = pipes.drain(deadline, &self, on_stdout, &mut stderr);
        if drained != Drained::Whole || !exited(&mut child, deadline) {
            kill_group(&mut child);
            let _ = child.wait();
            return Err(self.cut_off(drained));
        }
        match child.wait() {
            Ok(status) => Ok(Output {
                status: status.code(),
                stdout: Vec::new(),
                stderr: String::from_utf8_lossy(&stderr).trim().to_owned(),
            }),
            Err(source) => Err(GitError::Spawn {
                program: self.git.program.clone(),
                source,
            }),
        }
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "everything that runs git uses this: short-lived, bounded, synchronous"
    )]
    fn spawn(&self) -> Result<Child, GitError> {
        let stdin = match self.stdin.is_empty() {
            true => Stdio::null(),
            false => Stdio::piped(),
        };
        let failed = |source| GitError::Spawn {
            program: self.git.program.clone(),
            source,
        };
        let mut command = Command::new(&self.git.program);
        let pipe = self.login.as_ref().map(Login::pipe).transpose();
        let pipe = pipe.map_err(failed)?;
        if let (Some(login), Some(pipe)) = (&self.login, &pipe) {
            command.args(["-c", &login.setting(pipe)]);
        }
        command
            .args(&self.args)
            .env_clear()
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .current_dir(self.cwd)
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        let Some(pipe) = pipe else {
            return command.spawn().map_err(failed);
        };
        while_nothing_starts(|| {
            fcntl_setfd(&pipe, FdFlags::empty())?;
            let started = command.spawn();
            drop(pipe);
            started
        })
        .map_err(failed)
    }

    fn cut_off(&self, drained: Drained) -> GitError {
        let command = self.name();
        match drained {
            Drained::HeldBySpecialFiles(paths) => GitError::HeldBySpecialFiles { command, paths },
            Drained::Cancelled => GitError::Cancelled { command },
            Drained::Whole | Drained::TooLate => GitError::TimedOut {
                command,
                after: self.timeout,
            },
        }
    }

    fn is_cancelled(&self) -> bool {
        self.cancel
            .as_ref()
            .is_some_and(|cancel| cancel.reason().is_some())
    }

    fn name(&self) -> String {
        let mut args = self.args.iter();
        while let Some(arg) = args.next() {
            if arg == "-c" {
                args.next();
            } else {
                return arg.to_string_lossy().into_owned();
            }
        }
        String::new()
    }
}

impl Output {
    pub(super) fn expect_success(self, command: String) -> Result<Self, GitError> {
        if self.status == Some(0) {
            return Ok(self);
        }
        Err(GitError::Failed {
            command,
            status: self.status,
            stderr: self.stderr,
        })
    }

    pub(super) fn line(&self) -> String {
        String::from_utf8_lossy(&self.stdout)
            .trim_end_matches('\n')
            .to_owned()
    }
}

/// A child that does not read all of its input is not an error here. Its exit code decides.
fn feed(mut pipe: ChildStdin, bytes: &[u8]) {
    let _ = pipe.write_all(bytes);
}

/// How reading a command's output ended.
#[derive(Debug, PartialEq, Eq)]
enum Drained {
    Whole,
    TooLate,
    /// The caller cancelled the command.
    Cancelled,
    /// The command is blocked by special files that never reach an end of file.
    HeldBySpecialFiles(Vec<PathBuf>),
}

/// Standard output and standard error of a child, each `Some` until it is closed.
struct Pipes {
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    buffer: Vec<u8>,
}

impl Pipes {
    fn of(child: &mut Child) -> Self {
        Self {
            stdout: child.stdout.take(),
            stderr: child.stderr.take(),
            buffer: vec![0; CHUNK],
        }
    }

    fn drain(
        &mut self,
        deadline: Instant,
        call: &Call<'_>,
        on_stdout: &mut dyn FnMut(&[u8]),
        stderr: &mut Vec<u8>,
    ) -> Drained {
        let mut patience = BLOCKED_AFTER;
        let mut look = Instant::now() + patience;
        let mut on_stderr = |chunk: &[u8]| {
            stderr.extend_from_slice(chunk);
            stderr.drain(..stderr.len().saturating_sub(STDERR_KEPT));
        };
        while self.stdout.is_some() || self.stderr.is_some() {
            if call.is_cancelled() {
                return Drained::Cancelled;
            }
            let mut until = deadline;
            if !call.watched.is_empty() {
                until = until.min(look);
            }
            if call.cancel.is_some() {
                until = until.min(Instant::now() + CANCEL_POLL);
            }
            let Some((stdout, stderr)) = self.ready(until) else {
                if Instant::now() >= deadline {
                    return Drained::TooLate;
                }
                if call.watched.is_empty() || Instant::now() < look {
                    continue;
                }
                let special = special_files_in(&call.watched);
                if !special.is_empty() {
                    return Drained::HeldBySpecialFiles(special);
                }
                patience *= 10;
                look = Instant::now() + patience;
                continue;
            };
            if stdout {
                read_once(&mut self.stdout, &mut self.buffer, on_stdout);
            }
            if stderr {
                read_once(&mut self.stderr, &mut self.buffer, &mut on_stderr);
            }
        }
        Drained::Whole
    }

    /// Which of the two pipes can be read, or `None` if neither is ready before the deadline.
    fn ready(&self, deadline: Instant) -> Option<(bool, bool)> {
        let stdout = self
            .stdout
            .as_ref()
            .map(|pipe| PollFd::new(pipe, PollFlags::IN));
        let stderr = self
            .stderr
            .as_ref()
            .map(|pipe| PollFd::new(pipe, PollFlags::IN));
        let is_stdout = stdout.is_some();
        let mut fds: Vec<PollFd<'_>> = stdout.into_iter().chain(stderr).collect();
        loop {
            let left = Timespec::try_from(remaining(deadline)).ok()?;
            match poll(&mut fds, Some(&left)) {
                Ok(1..) => break,
                Err(Errno::INTR) => {}
                Ok(0) | Err(_) => return None,
            }
        }
        let mut found = fds.iter().map(|fd| !fd.revents().is_empty());
        let stdout = is_stdout && found.next().unwrap_or(false);
        Some((stdout, found.next().unwrap_or(false)))
    }
}

/// Reads what is in the pipe now, or drops the pipe at its end of file.
fn read_once<P: Read>(pipe: &mut Option<P>, buffer: &mut [u8], sink: &mut dyn FnMut(&[u8])) {
    match pipe.as_mut().map(|pipe| pipe.read(buffer)) {
        Some(Ok(read @ 1..)) => sink(&buffer[..read]),
        Some(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
        _ => *pipe = None,
    }
}

fn remaining(deadline: Instant) -> Duration {
    deadline.saturating_duration_since(Instant::now())
}

/// Whether the child, whose output has ended, exits before the deadline. It usually does so at once.
fn exited(child: &mut Child, deadline: Instant) -> bool {
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

fn kill_group(child: &mut Child) {
    if let Some(group) = i32::try_from(child.id())
        .ok()
        .and_then(rustix::process::Pid::from_raw)
    {
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
    let _ = child.kill();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "tests read PATH to find git")]
    fn a_login_is_told_once_and_to_its_server_and_stands_in_no_environment() {
        let path = std::env::var_os("PATH").unwrap();
        let git = GitProgram::find("git", &path, Path::new("/nonexistent")).unwrap();
        let login = |host: &str| Login {
            server: format!("https://{host}"),
            user: "x-access-token".into(),
            password: SecretString::from("s3cret-token"),
        };
        let ask = |login: Login, script: &str| {
            let alias = format!("alias.look=!{script}");
            let call = git.call(Path::new("/")).args(["-c", &alias, "look"]);
            let output = call.login(Some(login)).status().unwrap();
            String::from_utf8_lossy(&output.stdout).into_owned()
        };
        let fill = "printf 'protocol=https\\nhost=example.org\\n\\n' | git credential fill";
        let credentials = ask(login("example.org"), fill);
        let is_whole = credentials.contains("username=x-access-token\n")
            && credentials.contains("password=s3cret-token\n");
        assert!(is_whole, "{credentials}");
        let twice = ask(
            login("example.org"),
            &format!("{fill} >/dev/null; {fill} 2>/dev/null; echo asked"),
        );
        assert_eq!(twice, "asked\n");
        let elsewhere = ask(
            login("example.net"),
            &format!("{fill} 2>/dev/null; echo asked"),
        );
        assert_eq!(elsewhere, "asked\n");
        let seen = ask(
            login("example.org"),
            "env; tr '\\0' '\\n' </proc/self/cmdline; echo seen",
        );
        assert!(seen.contains("seen") && !seen.contains("s3cret"), "{seen}");
    }
}
