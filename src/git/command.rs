//! Runs git. No other module starts it.

pub(crate) mod batch;
mod launched;
mod limits;
mod pipes;

use crate::git::bytes::nul_joined;
use crate::git::error::{GitError, Result, refuse_failed_filter};
use crate::process::{Cancel, is_executable, while_nothing_starts};
use crate::sandbox::{Launch, OWN_PROGRAM, Policy};

use launched::{Launched, kill_group};
pub(crate) use limits::{MEMORY, Stop};
use limits::{OUTPUT, limit_memory};
use pipes::{Bounds, Drained, Pipes};
use rustix::io::{FdFlags, fcntl_setfd};
use secrecy::{ExposeSecret as _, SecretString};
use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Time limit of one git command. It is generous because the first read of a large tree from a cold disk and
/// large-file filters are slow; it only ensures that no command hangs for ever.
const TIMEOUT: Duration = Duration::from_secs(600);
const STDERR_KEPT: usize = 8 * 1024;
const STDERR_KEPT_OF_FILTERS: usize = 1 << 20;

/// The git program and the environment that every git command of a run gets.
#[derive(Debug, Clone)]
pub(crate) struct GitProgram {
    pub(crate) program: PathBuf,
    pub(crate) search_path: OsString,
    /// Ends what it does once the run is to stop.
    pub(crate) stop: Stop,
}

/// The output of a git command.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) status: Option<i32>,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

/// A user name and a password that git reads from a pipe when it asks for them.
#[derive(Debug)]
pub(crate) struct Login {
    /// The server that the login is for: scheme, host and port.
    pub(crate) server: String,
    pub(crate) password: SecretString,
}

/// The user name that goes with a token.
pub(crate) const USER: &str = "x-access-token";

impl Login {
    /// Starts a command that reads the answer to git's credential request from a pipe. Reading empties the pipe, so
    /// the password is never in the environment or in a file while git runs.
    fn start(&self, command: &mut Command, args: &[OsString]) -> io::Result<Started> {
        let (answer, mut writer) = io::pipe()?;
        let password = self.password.expose_secret();
        write!(writer, "username={USER}\npassword={password}\n")?;
        let descriptors = if cfg!(target_os = "linux") {
            "/proc/self/fd"
        } else {
            "/dev/fd"
        };
        let (server, pipe) = (&self.server, answer.as_raw_fd());
        // git appends the operation as a last argument. The `#` keeps it out of the command.
        let helper = format!("credential.{server}.helper=!cat {descriptors}/{pipe} #");
        command.args(["-c", &helper]).args(args);
        while_nothing_starts(|| {
            fcntl_setfd(&answer, FdFlags::empty())?;
            let started = command.spawn();
            drop(answer);
            Ok((started?, None))
        })
    }
}

/// A child, and its launcher if it has one.
type Started = (Child, Option<Launched>);

/// A git command that has not started yet.
pub(crate) struct Call<'a> {
    git: &'a GitProgram,
    cwd: &'a Path,
    args: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    stdin: Vec<u8>,
    login: Option<Login>,
    timeout: Duration,
    watched: Vec<PathBuf>,
    cancel: Option<Cancel>,
    /// How the command is confined, with all that it starts.
    sandbox: Option<Policy>,
    /// A directory that is removed when the command has ended.
    scratch: Option<TempDir>,
    /// How much of its standard error is kept.
    stderr_kept: usize,
    is_large: bool,
}

impl GitProgram {
    /// Finds the program `name` (git, or jj for what git cannot answer) in the absolute directories of
    /// `search_path`. Directories inside `forbidden` are skipped, because a work tree must not supply the
    /// programs that work on it.
    pub(crate) fn find(name: &str, search_path: &OsStr, forbidden: &Path) -> Option<Self> {
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
            stop: Stop::default(),
        })
    }

    pub(crate) fn call<'a>(&'a self, cwd: &'a Path) -> Call<'a> {
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
            sandbox: None,
            scratch: None,
            stderr_kept: STDERR_KEPT,
            is_large: false,
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
    /// Adds arguments that are separated by spaces.
    pub(crate) fn words(self, words: &str) -> Self {
        self.args(words.split_whitespace())
    }

    pub(crate) fn args(mut self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        let args = args.into_iter().map(|arg| arg.as_ref().to_os_string());
        self.args.extend(args);
        self
    }

    pub(crate) fn arg(self, arg: impl AsRef<OsStr>) -> Self {
        self.args([arg])
    }

    pub(crate) fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        let name = name.as_ref().to_os_string();
        let value = value.as_ref().to_os_string();
        self.env.retain(|(existing, _)| *existing != name);
        self.env.push((name, value));
        self
    }

    /// Sets configuration for this command alone.
    pub(crate) fn with_settings(mut self, settings: &[(&str, &OsStr)]) -> Self {
        self = self.env("GIT_CONFIG_COUNT", settings.len().to_string());
        for (number, (key, value)) in settings.iter().enumerate() {
            self = self.env(format!("GIT_CONFIG_KEY_{number}"), key);
            self = self.env(format!("GIT_CONFIG_VALUE_{number}"), value);
        }
        self
    }

    /// Writes commits in somebody's name.
    pub(crate) fn in_name_of(mut self, name: &str, email: &str) -> Self {
        for role in ["AUTHOR", "COMMITTER"] {
            self = self.env(format!("GIT_{role}_NAME"), name);
            self = self.env(format!("GIT_{role}_EMAIL"), email);
        }
        self
    }

    pub(crate) fn without_env(mut self, name: &str) -> Self {
        self.env.retain(|(existing, _)| existing != name);
        self
    }

    pub(crate) fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = bytes.into();
        self
    }

    /// Passes paths to the command's `-z --stdin`.
    pub(crate) fn paths(self, paths: impl IntoIterator<Item = impl AsRef<[u8]>>) -> Self {
        self.stdin(nul_joined(paths))
    }

    pub(crate) fn login(mut self, login: Option<Login>) -> Self {
        self.login = login;
        self
    }

    /// Makes git flush the objects and refs that it writes to disk before it ends, which it does not do by
    /// default.
    pub(crate) fn durably(self) -> Self {
        self.configured(&["core.fsync=loose-object,pack,pack-metadata,reference"])
    }

    /// Like [`Self::durably`], but with one disk flush for all objects, which must be [`Self::loose`].
    pub(crate) fn durably_together(self) -> Self {
        self.durably().configured(&["core.fsyncMethod=batch"])
    }

    /// Makes git write each file as an object of its own. By default it streams large files into a pack.
    pub(crate) fn loose(self) -> Self {
        self.configured(&["core.bigFileThreshold=3g"])
    }

    pub(crate) fn configured(mut self, settings: &[&str]) -> Self {
        let settings = settings.iter().flat_map(|setting| ["-c", *setting]);
        self.args.splice(0..0, settings.map(OsString::from));
        self
    }

    pub(crate) fn timeout(mut self, limit: Duration) -> Self {
        self.timeout = limit;
        self
    }

    /// Searches these directories for special files when the command takes long.
    pub(crate) fn watching(mut self, roots: Vec<PathBuf>) -> Self {
        self.watched = roots;
        self
    }

    /// Ends the command when `cancel` is signalled.
    pub(crate) fn cancelled_by(mut self, cancel: &Cancel) -> Self {
        self.cancel = Some(cancel.clone());
        self
    }

    /// Starts the command through a launcher, for a command that starts programs which the work tree may
    /// have a part in. Nothing that it starts outlives it.
    pub(crate) fn confined(mut self, policy: Option<Policy>) -> Self {
        self.sandbox = policy;
        self
    }

    /// Does not limit the memory of the command, for one that handles whole histories.
    pub(crate) fn of_any_size(mut self) -> Self {
        self.is_large = true;
        self
    }

    /// Keeps so much of standard error that what git says about a filter is not lost among what filters say.
    pub(crate) fn keeping_stderr(mut self) -> Self {
        self.stderr_kept = STDERR_KEPT_OF_FILTERS;
        self
    }

    /// Keeps a directory until the command has ended.
    pub(crate) fn holding(mut self, scratch: TempDir) -> Self {
        self.scratch = Some(scratch);
        self
    }

    fn bounds(&self, deadline: Instant) -> Bounds<'_> {
        Bounds {
            deadline,
            watched: &self.watched,
            cancel: self.cancel.as_ref(),
            stop: &self.git.stop,
            stderr_kept: self.stderr_kept,
        }
    }

    /// Runs the command. An exit code other than 0 is an error.
    pub(crate) fn run(self) -> Result<Output> {
        let command = self.name();
        self.status()?.expect_success(command)
    }

    /// Runs the command and accepts any exit code.
    pub(crate) fn status(self) -> Result<Output> {
        let mut stdout = Vec::new();
        let mut output = self.stream_while(&mut |chunk| {
            stdout.extend_from_slice(chunk);
            stdout.len() <= OUTPUT
        })?;
        output.stdout = stdout;
        Ok(output)
    }

    /// Runs the command and returns its output.
    pub(crate) fn stdout(self) -> Result<Vec<u8>> {
        Ok(self.run()?.stdout)
    }

    /// Runs the command. Whether its exit code is 0.
    pub(crate) fn succeeds(self) -> Result<bool> {
        Ok(self.status()?.is_success())
    }

    /// Runs the command and returns its output as one line of text.
    pub(crate) fn line(self) -> Result<String> {
        Ok(self.run()?.line())
    }

    /// Runs the command and returns its output as one line of text, or `None` if its exit code is not 0.
    pub(crate) fn answer(self) -> Result<Option<String>> {
        let output = self.status()?;
        Ok(output.is_success().then(|| output.line()))
    }

    /// Runs the command and passes its standard output on in chunks. An exit code other than 0 is an error.
    pub(crate) fn stream(self, on_stdout: &mut dyn FnMut(&[u8])) -> Result<()> {
        let command = self.name();
        let ended = self.stream_while(&mut |chunk| {
            on_stdout(chunk);
            true
        })?;
        ended.expect_success(command).map(drop)
    }

    /// Passes the output on in chunks, and ends the command with [`GitError::Flooded`] when `on_stdout` returns `false`.
    ///
    /// The call never waits beyond the time limit: a stray descendant that keeps a pipe open must not block
    /// the run.
    fn stream_while(mut self, on_stdout: &mut dyn FnMut(&[u8]) -> bool) -> Result<Output> {
        if self.git.stop.is_over() {
            return Err(cut_off(&self.name(), Drained::Cancelled, self.timeout));
        }
        let stdin = if self.stdin.is_empty() {
            Stdio::null()
        } else {
            Stdio::piped()
        };
        let (mut child, launched) = self.spawn(stdin)?;
        if launched.is_none() && !self.is_large {
            limit_memory(&child);
        }
        let deadline = Instant::now() + self.timeout;
        if let Some(stdin) = child.stdin.take() {
            let bytes = std::mem::take(&mut self.stdin);
            let feeding = thread::Builder::new().spawn(move || feed(stdin, &bytes));
            if let Err(error) = feeding {
                end(&mut child, launched);
                return Err(self.not_started(error));
            }
        }
        let mut stderr = Vec::new();
        let mut pipes = Pipes::of(&mut child);
        let bounds = self.bounds(deadline);
        let mut drained = pipes.drain(&bounds, on_stdout, &mut stderr);
        if drained == Drained::Whole {
            drained = bounds.until_exit(&mut child);
        }
        if drained != Drained::Whole {
            end(&mut child, launched);
            return Err(cut_off(&self.name(), drained, self.timeout));
        }
        let status = child.wait().map_err(|error| self.not_started(error))?;
        let mut stderr = String::from_utf8_lossy(&stderr).trim().to_owned();
        let status = match launched {
            Some(launched) => launched.status(self.sandbox.as_ref(), status, &mut stderr)?,
            None => status.code(),
        };
        if status != Some(0) && stderr.contains("ut of memory") {
            let most = MEMORY >> 30;
            let _ = write!(stderr, "\ngit may use {most} GiB of memory here");
        }
        Ok(Output {
            status,
            stdout: Vec::new(),
            stderr,
        })
    }

    fn not_started(&self, source: io::Error) -> GitError {
        GitError::Spawn(self.git.program.clone(), source)
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "everything that runs git uses this: short-lived, bounded, synchronous"
    )]
    fn spawn(&self, stdin: Stdio) -> Result<Started> {
        let program = &self.git.program;
        let mut command = match &self.sandbox {
            Some(_) => Command::new(OWN_PROGRAM),
            None => Command::new(program),
        };
        command
            .env_clear()
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .current_dir(self.cwd)
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let started = if let Some(policy) = &self.sandbox {
            let launch = Launch {
                policy: policy.clone(),
                report: -1,
                cwd: self.cwd.to_path_buf(),
                program: program.clone(),
                args: [&[program.into()], &self.args[..]].concat(),
            };
            Launched::start(command, launch, self.name())
        } else if let Some(login) = &self.login {
            login.start(command.process_group(0), &self.args)
        } else {
            let child = command.process_group(0).args(&self.args).spawn();
            child.map(|child| (child, None))
        };
        started.map_err(|error| self.not_started(error))
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
    pub(crate) fn is_success(&self) -> bool {
        self.status == Some(0)
    }

    pub(crate) fn expect_success(self, command: String) -> Result<Self> {
        if self.is_success() {
            return Ok(self);
        }
        refuse_failed_filter(&command, &self.stderr)?;
        Err(self.failed(command))
    }

    pub(crate) fn failed(self, command: String) -> GitError {
        GitError::Failed {
            command,
            status: self.status,
            stderr: self.stderr,
        }
    }

    pub(crate) fn line(&self) -> String {
        String::from_utf8_lossy(&self.stdout)
            .trim_end_matches('\n')
            .to_owned()
    }
}

fn cut_off(command: &str, drained: Drained, limit: Duration) -> GitError {
    let command = command.to_owned();
    match drained {
        Drained::HeldBySpecialFiles(paths) => GitError::HeldBySpecialFiles(command, paths),
        Drained::Cancelled => GitError::Cancelled(command),
        Drained::Flooded => GitError::Flooded(command),
        Drained::Whole | Drained::TooLate => GitError::TimedOut(command, limit),
    }
}

/// Kills a command with all that it has started.
fn end(child: &mut Child, launched: Option<Launched>) {
    match launched {
        Some(launched) => launched.end(child),
        None => kill_group(child),
    }
    let _ = child.wait();
}

/// A child that does not read all of its input is not an error here. Its exit code decides.
fn feed(mut pipe: ChildStdin, bytes: &[u8]) {
    let _ = pipe.write_all(bytes);
}

#[cfg(test)]
mod tests;
