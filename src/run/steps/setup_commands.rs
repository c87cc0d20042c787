//! The setup commands, which run once before the first turn.

use crate::domain::checks::first_errors;
use crate::domain::duration::millis;
use crate::domain::event::{EventKind, SetupLine};
use crate::domain::outcome::Outcome;
use crate::error::{Error, Result};
use crate::process::{
    CappedLog, CleanLines, CommandSpec, Exit, HeadTail, Input, Limits, Service, run_keeping,
    until_one_fails,
};
use crate::run::begin::isolation::Purpose;
use crate::run::state::layout::RunFile;
use crate::run::state::parts::Parts;
use crate::run::state::setup::{Setup, interruption};
use crate::secrets::redact_stream::Redacting;
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

/// The timeout of a setup command.
const SETUP_TIMEOUT: Duration = Duration::from_secs(30 * 60);

/// The time between SIGTERM and SIGKILL for services of setup commands, normally and when the run has to
/// end.
const SERVICE_GRACE: Duration = Duration::from_secs(5);
const SERVICE_GRACE_CANCELLED: Duration = Duration::from_millis(500);

/// How many bytes at the beginning and at the end of a setup command's output are kept for its error.
const KEPT_HEAD: usize = 64 << 10;
const KEPT_TAIL: usize = 4 << 10;

/// The most changed packages that are named.
const NAMED: usize = 20;

/// How many lines at the end of the output an error shows.
const LAST_LINES: usize = 15;

/// Runs the setup commands, unless an earlier process of the run did, and starts the services. Files that they create
/// do not count as the agent's work. Processes of services live until [`Services::end`]; others are ended here.
///
/// # Errors
/// When a command fails. No task is started then.
pub async fn run_setup(parts: &mut Parts<'_>, services: &mut Services) -> Result<Option<Outcome>> {
    let is_done = parts.setup.run_dir.has(RunFile::SetupDone);
    let config = &parts.setup.config;
    let commands = config.setup.iter().filter(|_| !is_done);
    let commands = commands.map(|command| (command.clone(), false));
    let named = config.settings.services.iter();
    let named = named.map(|command| (command.clone(), true));
    let commands: Vec<(String, bool)> = commands.chain(named).collect();
    if commands.is_empty() {
        return Ok(None);
    }
    let (before, _) = parts.last_snapshot();
    parts.tree.save_untracked(before.as_deref())?;
    for (command, is_service) in commands {
        let mut left = Services::default();
        let (exit, said) = run_command(parts, &mut left, &command).await;
        if is_service {
            services.0.extend(left.0);
        } else if !left.0.is_empty() {
            parts.warn(format!(
                "the setup command `{command}` left processes running; they were ended (`services` keeps them)"
            ));
            left.end(&parts.setup).await;
        }
        parts.setup.report_denied_hosts(&mut parts.emit);
        let violations = parts.setup.violations();
        if !violations.is_empty() {
            let what = format!("the setup command `{command}`: {}", violations.join("; "));
            parts.warn(what.clone());
            return Ok(Some(Outcome::PolicyViolation { what }));
        }
        match exit {
            Exit::Code(0) => {}
            Exit::Cancelled(reason) => return Ok(Some(interruption(reason).outcome())),
            exit => return Err(failed(&parts.setup, &command, &exit, &said)),
        }
    }
    let (before, emit) = (before.as_deref(), &mut parts.emit);
    parts.tree.collect_artifacts(before, emit);
    for warning in parts.tree.repo.adopt_setup().map_err(anyhow::Error::from)? {
        emit.warn(warning);
    }
    parts.tree.save_installed(before, emit)?;
    parts.setup.run_dir.write(RunFile::SetupDone, b"")?;
    Ok(None)
}

/// Makes installed dependencies again that an agent has changed: checks must not execute what it has put there. Returns
/// why that failed.
///
/// # Errors
/// When the run's own state cannot be written.
pub(super) async fn install_again(
    parts: &mut Parts<'_>,
    changed: &[String],
) -> anyhow::Result<Option<String>> {
    let first = changed.get(..NAMED).unwrap_or(changed).join(", ");
    parts.warn(format!(
        "setup runs again, because what it had installed was changed: {first}"
    ));
    let (top, uncommitted) = (
        parts.tree.repo.real().work_tree().to_path_buf(),
        &parts.tree.uncommitted,
    );
    let altered = uncommitted.altered(&parts.tree.repo);
    let away = tempfile::tempdir_in(parts.setup.run_dir.root())?;
    uncommitted.installed().move_away(&top, away.path());
    let (before, _) = parts.snapshot();
    let mut services = Services::default();
    let mut failed = None;
    for command in parts.setup.config.setup.clone() {
        let (exit, said) = run_command(parts, &mut services, &command).await;
        if !exit.is_success() {
            failed = Some(format!("the setup command `{command}`: {exit}\n{said}"));
            break;
        }
    }
    services.end(&parts.setup).await;
    let installed = parts.tree.uncommitted.installed();
    let back = installed.move_back(&top, away.path());
    let is_in = |root: &&&String| changed.iter().any(|path| Path::new(path).starts_with(root));
    if let Some(root) = back.iter().find(is_in) {
        let why = format!("{root} was changed, and the setup commands do not make it again");
        return Ok(failed.or(Some(why)));
    }
    let (before, emit) = (before.as_deref(), &mut parts.emit);
    parts.tree.collect_artifacts(before, emit);
    parts.tree.repo.change();
    parts.tree.save_installed(before, emit)?;
    parts.tree.record(|uncommitted, repo| {
        uncommitted.take_changes(repo, true, &altered);
        Ok(())
    })?;
    Ok(failed)
}

/// Runs one command. Returns how it ended and the end of its output.
async fn run_command(
    parts: &mut Parts<'_>,
    services: &mut Services,
    command: &str,
) -> (Exit, String) {
    let spec = CommandSpec {
        program: "sh".into(),
        args: until_one_fails(command),
        cwd: parts.tree.repo.real().work_tree().to_path_buf(),
        env: (parts.setup).environment(Purpose::Setup, &[], &mut parts.emit),
        stdin: Input::Null,
        limits: Limits::within(SETUP_TIMEOUT),
        sandbox: parts.setup.isolation.policy(Purpose::Setup),
    };
    parts.emit.emit(EventKind::SetupStarted {
        command: command.to_owned(),
    });
    // The first log that no earlier process of the run has written.
    let run_dir = &parts.setup.run_dir;
    let free = (1..).find(|number| !run_dir.has(RunFile::SetupLog(*number)));
    let file = RunFile::SetupLog(free.unwrap_or(u32::MAX));
    let mut log = parts.setup.run_dir.log(file).map(CleanLines::new);
    let mut kept = HeadTail::new(KEPT_HEAD, KEPT_TAIL);
    let (ended, service) = run_keeping(&spec, &parts.setup.cancel, &mut |_, chunk: &[u8]| {
        kept.push(chunk);
        let _ = log.as_mut().map(|log| log.write_all(chunk));
    })
    .await;
    services.0.extend(service);
    let written = log
        .and_then(CleanLines::finish)
        .and_then(Redacting::finish)
        .and_then(CappedLog::close);
    let path = file.path().into_owned();
    if let Err(error) = &written {
        parts.warn(format!("the log {path} is incomplete: {error}"));
    }
    let line = SetupLine {
        command: command.to_owned(),
        exit: ended.exit.to_string(),
        passed: matches!(ended.exit, Exit::Code(0)),
        elapsed_ms: millis(ended.elapsed),
        log: parts.setup.run_dir.has(file).then_some(path),
    };
    parts.emit.emit(EventKind::SetupEnded(Box::new(line)));
    (ended.exit, kept.into_text())
}

fn failed(setup: &Setup, command: &str, exit: &Exit, said: &str) -> Error {
    let shown = shown(said);
    let colon = if shown.is_empty() { "" } else { ":\n" };
    let message = format!("the setup command `{command}` ended with {exit}{colon}{shown}");
    let error = Error::environment(message)
        .hint("no agent was started; fix the command or remove it from `setup`");
    match setup.isolation.refusal(said) {
        Some(refusal) => error.hint(refusal),
        None => error,
    }
}

/// The reason for the failure and the last lines of an output, which are often advice.
fn shown(said: &str) -> String {
    let said = said.trim();
    let lines: Vec<&str> = said.lines().collect();
    let Some(before) = lines.len().checked_sub(LAST_LINES).filter(|n| *n > 0) else {
        return said.to_owned();
    };
    let last = &lines[before..];
    let mut shown = first_errors(said, 3, 300);
    shown.retain(|error| last.iter().all(|line| line.trim() != error));
    shown.push("…".to_owned());
    shown.extend(last.iter().map(|line| (*line).to_owned()));
    shown.join("\n")
}

/// The processes that commands left running for the run.
#[derive(Default)]
pub struct Services(Vec<Service>);

impl Services {
    /// Ends all services.
    pub async fn end(self, setup: &Setup) {
        let grace = match setup.cancel.reason() {
            Some(_) => SERVICE_GRACE_CANCELLED,
            None => SERVICE_GRACE,
        };
        let ends = self.0.into_iter().map(|service| service.end(grace));
        let ends = ends.map(tokio::spawn);
        for end in ends.collect::<Vec<_>>() {
            let _ = end.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_shown_with_its_reason_and_not_only_with_the_advice_after_it() {
        let reason = "npm error The `npm ci` command needs a package-lock.json";
        let advice: Vec<String> = (0..40).map(|n| format!("npm error --option-{n}")).collect();
        let said = format!("npm error code EUSAGE\n{reason}\n{}\n", advice.join("\n"));
        let lines = shown(&said);
        let lines: Vec<&str> = lines.lines().collect();
        assert_eq!(lines[..3], [reason, "…", "npm error --option-25"]);
        assert_eq!(lines.len(), 2 + LAST_LINES);
        assert_eq!(shown("a\nb\n"), "a\nb");
        assert_eq!(shown(" \n"), "");
    }
}
