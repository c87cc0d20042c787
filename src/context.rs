//! The only code that reads the process's environment: variables, working directory, terminals.

use crate::domain::settings::variables;
use crate::error::{Error, Result};
use crate::process::find_program;
use anyhow::Context as _;
use jiff::Timestamp;
use std::ffi::{OsStr, OsString};
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The runner's directory for temporary files.
const RUNNER_TEMP: &str = "RUNNER_TEMP";

/// The file with the event that started a workflow.
pub const EVENT_FILE: &str = "GITHUB_EVENT_PATH";

/// The files through which a job communicates with its runner.
pub const RUNNER_FILES: &[&str] = &[
    "GITHUB_ENV",
    "GITHUB_PATH",
    "GITHUB_OUTPUT",
    "GITHUB_STATE",
    "GITHUB_STEP_SUMMARY",
];

/// The environment of the process, read once at the start.
#[derive(Debug, Clone)]
pub struct Context {
    /// The working directory.
    pub cwd: PathBuf,
    /// Whether somebody asked for this directory, and it is not only the one of the shell.
    pub cwd_is_chosen: bool,
    /// Every variable.
    pub env: Vec<(OsString, OsString)>,
    /// Whether standard output is a terminal.
    pub stdout_is_terminal: bool,
    /// Whether standard error is a terminal.
    pub stderr_is_terminal: bool,
    /// Whether the process runs as root.
    pub is_root: bool,
    /// The first argument.
    pub first_argument: Option<OsString>,
}

impl Context {
    /// Reads the environment of this process.
    ///
    /// # Errors
    /// When the working directory does not exist any more, or ids and timestamps cannot express what the clock says.
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the one place that reads them"
    )]
    pub fn of_process() -> anyhow::Result<Self> {
        anyhow::ensure!(
            Timestamp::try_from(SystemTime::now()).is_ok_and(|now| now >= Timestamp::UNIX_EPOCH),
            "the clock of this machine is before 1970 or after 9999; set it, for example with `date`"
        );
        let cwd = std::env::current_dir().context("the working directory cannot be read")?;
        Ok(Self {
            env: std::env::vars_os()
                .map(|(name, value)| with_whole_path(&cwd, name, value))
                .collect(),
            cwd,
            cwd_is_chosen: false,
            stdout_is_terminal: std::io::stdout().is_terminal(),
            stderr_is_terminal: std::io::stderr().is_terminal(),
            is_root: rustix::process::geteuid().is_root(),
            first_argument: std::env::args_os().nth(1),
        })
    }

    /// The same environment with another working directory, for `-C`: paths on the command line are
    /// relative to it, as with git and make.
    pub fn within(self, directory: Option<&Path>) -> Self {
        let cwd = directory.map_or(self.cwd.clone(), |directory| self.cwd.join(directory));
        Self {
            cwd,
            cwd_is_chosen: directory.is_some(),
            ..self
        }
    }

    /// A variable's value, unless it is unset or empty.
    pub fn var_os(&self, name: &str) -> Option<&OsStr> {
        let (_, value) = self.env.iter().find(|(key, _)| key == name)?;
        Some(value.as_os_str()).filter(|value| !value.is_empty())
    }

    /// A variable's value, unless it is unset, empty or not UTF-8.
    pub fn var(&self, name: &str) -> Option<&str> {
        self.var_os(name).and_then(OsStr::to_str)
    }

    /// Whether the environment asks for colours or for none: `NO_COLOR` before `CLICOLOR_FORCE` and `FORCE_COLOR`.
    pub fn wants_color(&self) -> Option<bool> {
        if self.var("NO_COLOR").is_some() {
            return Some(false);
        }
        let is_on = |name: &str| self.var(name).is_some_and(|value| value != "0");
        (is_on("CLICOLOR_FORCE") || is_on("FORCE_COLOR")).then_some(true)
    }

    /// By what every limit of time after a signal is multiplied: 1, except in tests.
    pub fn times_after_signal(&self) -> u32 {
        let times = self.var(variables::AFTER_SIGNAL_TIMES);
        times.and_then(|times| times.parse().ok()).unwrap_or(1)
    }

    /// A limit of time after a signal.
    pub fn after_signal(&self, limit: Duration) -> Duration {
        limit.saturating_mul(self.times_after_signal())
    }

    /// A variable's value as a path.
    pub fn path_var(&self, name: &str) -> Option<PathBuf> {
        self.var_os(name).map(PathBuf::from)
    }

    /// The executable file for a program's name in this environment.
    pub fn find_program(&self, program: &str) -> Option<PathBuf> {
        let search_path = self.var_os("PATH").unwrap_or_default();
        find_program(program.as_ref(), search_path, &self.cwd)
    }

    /// Whether this is a step of a GitHub Actions job.
    pub fn in_actions(&self) -> bool {
        self.var("GITHUB_ACTIONS") == Some("true")
    }

    /// The name of this machine: the runner's in a job, else the system's.
    pub fn host(&self) -> Option<String> {
        if let Some(runner) = self.var("RUNNER_NAME").filter(|_| self.in_actions()) {
            return Some(runner.to_owned());
        }
        let name = std::fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
        Some(name.trim().to_owned()).filter(|name| !name.is_empty())
    }

    /// Whether the command is `sprag run`, as far as known before the arguments are parsed.
    pub fn is_run(&self) -> bool {
        self.first_argument.as_deref() == Some(OsStr::new("run"))
    }

    /// The runner's directory for temporary files in a job.
    pub fn runner_temp(&self) -> Option<PathBuf> {
        self.path_var(RUNNER_TEMP).filter(|_| self.in_actions())
    }

    /// The variable that names the directory in which runs are stored by default.
    pub fn names_place_of_runs(&self) -> &'static str {
        self.runner_temp().map_or("XDG_STATE_HOME", |_| RUNNER_TEMP)
    }

    /// A temporary directory: in the runner's in a job, else below [`Context::state_home`].
    ///
    /// # Errors
    /// When it cannot be created.
    pub fn place_for_a_moment(&self, prefix: &str) -> Result<tempfile::TempDir> {
        let place = self.runner_temp().unwrap_or_else(|| self.state_home());
        let make = || tempfile::Builder::new().prefix(prefix).tempdir_in(&place);
        let made = std::fs::create_dir_all(&place).and_then(|()| make());
        made.map_err(|error| {
            let message = format!("{} cannot be written: {error}", place.display());
            let variable = self.names_place_of_runs();
            let remedy = format!(
                "fix its permissions or free space, or name another directory in {variable}"
            );
            Error::machine(message, &remedy)
        })
    }

    /// The directory for runs outside of GitHub Actions: `$XDG_STATE_HOME/sprag`, by default
    /// `~/.local/state/sprag`. Without a home directory, one of the user's in the directory for
    /// temporary files.
    pub fn state_home(&self) -> PathBuf {
        let absolute = |path: PathBuf| path.is_absolute().then_some(path);
        if let Some(dir) = self.path_var("XDG_STATE_HOME").and_then(absolute) {
            return dir.join("sprag");
        }
        if let Some(home) = self.path_var("HOME").and_then(absolute) {
            return home.join(".local/state/sprag");
        }
        let user = rustix::process::geteuid().as_raw();
        std::env::temp_dir().join(format!("sprag-{user}"))
    }
}

/// A variable of the runner with a path that does not depend on the working directory, which `-C` changes.
fn with_whole_path(cwd: &Path, name: OsString, value: OsString) -> (OsString, OsString) {
    let mut paths = RUNNER_FILES.iter().chain(&[RUNNER_TEMP, EVENT_FILE]);
    if !value.is_empty() && paths.any(|path| name == *path) {
        (name, cwd.join(value).into_os_string())
    } else {
        (name, value)
    }
}
