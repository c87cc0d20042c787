//! The setup commands, which run once before the first turn.

use crate::domain::duration::millis;
use crate::domain::event::EventKind;
use crate::domain::outcome::Outcome;
use crate::error::{Error, Result};
use crate::process::{
    CappedLog, CommandSpec, Exit, HeadTail, Input, Limits, Service, clean_text, run_keeping,
    until_one_fails,
};
use crate::run::directory::RunDir;
use crate::run::emitter::Emitter;
use crate::run::isolation::Purpose;
use crate::run::layout::RunFile;
use crate::run::setup::{Setup, interruption};
use crate::run::work_tree::WorkTree;
use std::ffi::OsString;
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

/// The timeout of a setup command.
const SETUP_TIMEOUT: Duration = Duration::from_secs(30 * 60);

/// The time between SIGTERM and SIGKILL for services of setup commands, normally and when the run has to
/// end.
const SERVICE_GRACE: Duration = Duration::from_secs(5);
const SERVICE_GRACE_CANCELLED: Duration = Duration::from_millis(500);

/// How many bytes at the end of a setup command's output an error shows.
const SHOWN: usize = 4 << 10;

/// Runs the setup commands, unless an earlier process of the run did. Files that they create do not
/// count as the agent's work. Processes that they leave running live until [`Services::end`].
///
/// # Errors
/// When a command fails. No task is started then.
pub async fn run_setup(
    setup: &Setup,
    tree: &mut WorkTree,
    emit: &mut Emitter<'_>,
    services: &mut Services,
) -> Result<Option<Outcome>> {
    if setup.config.setup.is_empty() || setup.run_dir.has(RunFile::SetupDone) {
        return Ok(None);
    }
    let (before, _) = tree.last_snapshot(emit);
    tree.note_untracked(before.as_deref())?;
    let env = setup.environment(&[], emit);
    let work_tree = tree.repo.real().work_tree().to_path_buf();
    for command in setup.config.setup.clone() {
        let (exit, said) = run_command(setup, emit, services, (&command, &work_tree, &env)).await;
        setup.report_denied_hosts(emit);
        let violations = setup.violations();
        if !violations.is_empty() {
            let what = format!("the setup command `{command}`: {}", violations.join("; "));
            emit.warn(what.clone());
            return Ok(Some(Outcome::PolicyViolation { what }));
        }
        match exit {
            Exit::Code(0) => {}
            Exit::Cancelled(reason) => {
                return Ok(Some(interruption(reason).outcome()));
            }
            exit => return Err(failed(setup, &command, &exit, &said)),
        }
    }
    tree.collect_artifacts(before.as_deref(), emit);
    // Services end with this process, so a resumed run has to start them again.
    if services.0.is_empty() {
        setup.run_dir.write(RunFile::SetupDone, b"")?;
    }
    Ok(None)
}

/// Runs one command. Returns how it ended and the end of its output.
async fn run_command(
    setup: &Setup,
    emit: &mut Emitter<'_>,
    services: &mut Services,
    (command, work_tree, env): (&str, &Path, &[(OsString, OsString)]),
) -> (Exit, String) {
    let spec = CommandSpec {
        program: "sh".into(),
        args: until_one_fails(command),
        cwd: work_tree.to_path_buf(),
        env: env.to_vec(),
        stdin: Input::Null,
        limits: Limits {
            timeout: Some(SETUP_TIMEOUT),
            ..Limits::default()
        },
        sandbox: setup.isolation.policy(Purpose::Setup),
    };
    emit.emit(EventKind::SetupStarted {
        command: command.to_owned(),
    });
    let file = new_log(&setup.run_dir);
    let mut log = setup.run_dir.log(file);
    let mut kept = HeadTail::new(0, SHOWN);
    let (ended, service) = run_keeping(&spec, &setup.cancel, &mut |_, chunk: &[u8]| {
        kept.push(chunk);
        if let Ok(to) = &mut log
            && let Err(error) = to.write_all(chunk)
        {
            log = Err(error);
        }
    })
    .await;
    services.0.extend(service);
    let written = log.and_then(|log| log.finish().and_then(CappedLog::close));
    let path = file.path().into_owned();
    if let Err(error) = &written {
        emit.warn(format!("the log {path} is incomplete: {error}"));
    }
    emit.emit(EventKind::SetupEnded {
        command: command.to_owned(),
        exit: ended.exit.to_string(),
        passed: matches!(ended.exit, Exit::Code(0)),
        elapsed_ms: millis(ended.elapsed),
        log: setup.run_dir.has(file).then_some(path),
    });
    (ended.exit, clean_text(&kept.into_parts().1))
}

/// The first log that no earlier process of the run has written.
fn new_log(run_dir: &RunDir) -> RunFile<'static> {
    let mut numbers = 1..;
    let free = numbers.find(|number| !run_dir.has(RunFile::SetupLog(*number)));
    RunFile::SetupLog(free.unwrap_or(u32::MAX))
}

fn failed(setup: &Setup, command: &str, exit: &Exit, said: &str) -> Error {
    let output = match said.trim() {
        "" => String::new(),
        said => format!(":\n{said}"),
    };
    let message = format!("the setup command `{command}` ended with {exit}{output}");
    let error = Error::environment(message)
        .hint("no agent was started; fix the command or remove it from `setup`");
    match setup.isolation.refusal(said) {
        Some(refusal) => error.hint(refusal),
        None => error,
    }
}

/// The processes that the setup commands left running for the run.
#[derive(Default)]
pub struct Services(Vec<Service>);

impl Services {
    /// Ends all services.
    pub async fn end(self, setup: &Setup) {
        let grace = match setup.cancel.reason() {
            Some(_) => SERVICE_GRACE_CANCELLED,
            None => SERVICE_GRACE,
        };
        let ends = self.0.into_iter();
        let ends = ends.map(|service| tokio::spawn(service.end(grace)));
        for end in ends.collect::<Vec<_>>() {
            let _ = end.await;
        }
    }
}
