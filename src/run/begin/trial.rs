//! `sprag init --try` and `sprag doctor --try`: runs the setup commands and the checks of the configuration once on the
//! present tree, confined as in a run.

use crate::checks::OwnHome;
use crate::context::Context;
use crate::domain::checks::verdict::{Check, CheckOutcome, CheckResult, ordered};
use crate::error::{Error, Result};
use crate::git::{self, Real};
use crate::print::print;
use crate::process::environment::environment;
use crate::process::{
    Cancel, CancelReason, CommandSpec, Exit, HeadTail, Input, Limits, listen, run, until_one_fails,
};
use crate::run::begin::isolation::{Isolation, Purpose, Scope, isolation, with_temporary};
use crate::run::begin::prepare::{config_file, directory};
use crate::run::begin::start::runtime;
use crate::run::state::past_runs::{holding, remember_tried};
use crate::run::state::setup::by_proxy;
use crate::settings::args::Common;
use crate::settings::flags::SettingFlags;
use crate::settings::{self, RunConfig, Sources, TaskConfig};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::BufRead as _;
use std::path::Path;
use std::time::Duration;

/// Time limit of a setup command.
const SETUP_TIMEOUT: Duration = Duration::from_secs(30 * 60);

/// Number of bytes that are read from the start and from the end of an output.
const KEPT: usize = 256 << 10;

/// Number of lines that are shown of a failing command's output.
const SHOWN: usize = 5;

/// What a trial depends on.
pub struct Trial<'a> {
    /// Environment and terminal.
    pub context: &'a Context,
    /// The repository.
    pub real: &'a Real,
    /// The flags that name and replace the configuration.
    pub common: &'a Common,
    /// The settings that are given as flags.
    pub flags: &'a SettingFlags,
    /// Whether a command installs for the user or the machine. A person is asked before it runs.
    pub installs: fn(&str) -> bool,
}

/// A trial that has begun.
struct Running<'a> {
    context: &'a Context,
    root: &'a Path,
    env: Vec<(OsString, OsString)>,
    own_home: OwnHome,
    isolation: Isolation,
    cancel: Cancel,
}

impl Trial<'_> {
    /// Runs each command once and prints each result at once. Returns those that failed, as they are named for
    /// people. The files that are left behind are listed and do not block a later run.
    ///
    /// # Errors
    /// When the configuration cannot be used, or when a required level of the sandbox is not available.
    pub fn run(&self) -> Result<std::result::Result<Vec<String>, CancelReason>> {
        let runtime = runtime()?;
        let untracked = || {
            git::untracked_files(self.real).map_err(|error| Error::environment(error.to_string()))
        };
        let (run, task) = self.configuration()?;
        if run.setup.is_empty() && task.checks.is_empty() {
            return Ok(Ok(Vec::new()));
        }
        let before = untracked()?;
        let tried = runtime.block_on(self.run_all(&run, &task));
        runtime.shutdown_timeout(Duration::from_millis(200));
        let new: BTreeSet<Vec<u8>> = untracked()?.difference(&before).cloned().collect();
        if !new.is_empty() {
            remember_tried(self.context, self.real.work_tree(), &new)?;
            print(self.context, &left_behind(self.real, &new)?)?;
        }
        tried
    }

    /// The configuration of a task without its own settings.
    fn configuration(&self) -> Result<(RunConfig, TaskConfig)> {
        let file = config_file(self.context, self.common, self.real.work_tree(), None)?;
        let above = settings::above(self.context, self.flags)?;
        let directory = directory(self.context, self.common, self.real.work_tree());
        let sources = Sources::new(self.context, above, file.settings)?.within(directory);
        let run = settings::run_config(&sources, file.setup)?;
        let plan = settings::plan_of_prompt("any")?;
        let task = plan.tasks.first();
        let task = task.ok_or_else(|| Error::config("a plan of one task is none"))?;
        let task = settings::shown_task_config(&sources, task)?;
        Ok((run, task))
    }

    async fn run_all(
        &self,
        run: &RunConfig,
        task: &TaskConfig,
    ) -> Result<std::result::Result<Vec<String>, CancelReason>> {
        let cancel = Cancel::new();
        listen(&cancel).map_err(anyhow::Error::from)?;
        let scope = Scope::of(self.context, self.real, run, std::iter::once(task), None);
        let mut isolation = isolation(&scope).await?;
        isolation.make_directories();
        // It serves the network of the commands until the trial ends.
        let proxy = isolation.take_proxy();
        let allowed = environment(&self.context.env, &task.settings.verify_env);
        let mut env = with_temporary(allowed.variables, &isolation, Purpose::Check);
        if let (Some(line), Some(proxy)) = (isolation.network(), &proxy) {
            by_proxy(&mut env, &proxy.url(), line);
        }
        let how = match isolation.policy(Purpose::Check) {
            Some(_) => format!(
                "in the sandbox (level {} of 3)",
                isolation.line().level.number()
            ),
            None => "without a sandbox".to_owned(),
        };
        print(
            self.context,
            &format!("trying the commands of the configuration {how}, as a run does:\n"),
        )?;
        let running = Running {
            context: self.context,
            root: self.real.work_tree(),
            env,
            own_home: OwnHome::default(),
            isolation,
            cancel,
        };
        Ok(running.all(&run.setup, &task.checks, self.installs).await)
    }
}

impl Running<'_> {
    async fn all(
        &self,
        setup: &[String],
        checks: &[Check],
        installs: fn(&str) -> bool,
    ) -> std::result::Result<Vec<String>, CancelReason> {
        let mut failed = Vec::new();
        for line in setup {
            if installs(line) && !self.may_install(line) {
                self.say(&format!(
                    "  setup `{line}`: not run, because it installs outside of the work tree\n    \
                     put it into a step of the workflow, before Sprag's\n"
                ));
                continue;
            }
            self.say(&format!("  setup `{line}`: running\n"));
            let (exit, said, took) = self.run(line, SETUP_TIMEOUT, Purpose::Setup).await?;
            if exit == Exit::Code(0) {
                self.say(&format!("    done ({took})\n"));
            } else {
                failed.push(format!("setup `{line}`"));
                let errors = errors(&said);
                self.say(&format!("    failed with {exit} ({took})\n{errors}"));
                self.say_refusal(&said);
            }
        }
        for check in ordered(checks) {
            self.say(&format!(
                "  check {} `{}`: running\n",
                check.name, check.run
            ));
            let limit = Duration::from_millis(check.timeout_ms);
            let (mut exit, mut said, mut took) =
                self.run(&check.run, limit, Purpose::Check).await?;
            let policy = self.isolation.policy(Purpose::Check);
            let refused = policy.as_ref().and_then(|policy| policy.refused(&said));
            let is_made = |path: &str| self.own_home.is_made_for(path, &self.env);
            if exit != Exit::Code(0) && refused.is_some_and(is_made) {
                (exit, said, took) = self.run(&check.run, limit, Purpose::Check).await?;
            }
            let result = self.result(check, &exit, &said);
            self.say(&result_text(&result, &exit, &said, &took));
            if result.outcome != CheckOutcome::Passed {
                failed.push(format!("check {}", check.name));
                self.say_refusal(&said);
            }
        }
        Ok(failed)
    }

    fn say(&self, text: &str) {
        // The exit code and the later lines do not depend on a reader.
        let _ = print(self.context, text);
    }

    /// Says which path the sandbox did not let a command write.
    fn say_refusal(&self, said: &str) {
        if let Some(refusal) = self.isolation.refusal(said) {
            self.say(&format!("      {refusal}\n"));
        }
    }

    /// Asks whether a command may run that installs outside of the work tree. Without a terminal it may not.
    fn may_install(&self, line: &str) -> bool {
        if !self.context.stdout_is_terminal {
            return false;
        }
        self.say(&format!(
            "  setup `{line}` installs outside of the work tree. Run it? [y/N] "
        ));
        let mut answer = String::new();
        let read = std::io::stdin().lock().read_line(&mut answer);
        read.is_ok() && matches!(answer.trim(), "y" | "Y" | "yes")
    }

    async fn run(
        &self,
        line: &str,
        limit: Duration,
        purpose: Purpose,
    ) -> std::result::Result<(Exit, String, String), CancelReason> {
        let spec = CommandSpec {
            program: "sh".into(),
            args: until_one_fails(line),
            cwd: self.root.to_path_buf(),
            env: self.own_home.environment(&self.env),
            stdin: Input::Null,
            limits: Limits {
                timeout: Some(limit),
                ..Limits::default()
            },
            sandbox: self.isolation.policy(purpose),
        };
        let mut kept = HeadTail::new(KEPT, KEPT);
        let ended = run(&spec, &self.cancel, &mut |_, chunk: &[u8]| kept.push(chunk)).await;
        if let Exit::Cancelled(reason) = ended.exit {
            return Err(reason);
        }
        let said = kept.into_text();
        let took = format!("{:.1}s", ended.elapsed.as_secs_f64());
        Ok((ended.exit, said, took))
    }

    fn result(&self, check: &Check, exit: &Exit, said: &str) -> CheckResult {
        let outcome = match exit {
            Exit::Code(0) => CheckOutcome::Passed,
            Exit::Code(exit) => CheckOutcome::Failed { exit: *exit },
            _ => CheckOutcome::Failed { exit: 1 },
        };
        CheckResult::read(check, outcome, said, 0, &self.root.to_string_lossy())
    }
}

fn left_behind(real: &Real, new: &BTreeSet<Vec<u8>>) -> Result<String> {
    let changes =
        git::uncommitted_changes(real).map_err(|error| Error::environment(error.to_string()))?;
    Ok(format!(
        "  left behind by these commands: {}\n    add files that are not sources to .gitignore; a run ignores and does not commit them\n",
        holding(changes.untracked, new).join(", ")
    ))
}

fn result_text(result: &CheckResult, exit: &Exit, said: &str, took: &str) -> String {
    let number = |n: Option<u64>, word: &str| n.filter(|&n| n > 0).map(|n| format!("{n} {word}"));
    let counts: Vec<String> = [
        number(result.counts.failed, "failed"),
        number(result.counts.passed, "passed"),
    ]
    .into_iter()
    .flatten()
    .collect();
    let counts = if counts.is_empty() {
        String::new()
    } else {
        format!(": {}", counts.join(", "))
    };
    match &result.outcome {
        CheckOutcome::Passed => format!("    passed{counts} ({took})\n"),
        CheckOutcome::NotStarted { why, .. } => format!("    could not be started: {why}\n"),
        _ => {
            let errors: Vec<String> = result
                .errors
                .iter()
                .take(SHOWN)
                .map(|error| format!("      {error}\n"))
                .collect();
            let shown = if errors.is_empty() {
                tail(said)
            } else {
                errors.concat()
            };
            format!(
                "    failed with {exit}{counts} ({took}): tasks are judged by it, so fix it first or remove it\n{shown}"
            )
        }
    }
}

/// The first lines with an error of a setup command, whose last lines are often advice; without any, the last
/// lines.
fn errors(said: &str) -> String {
    let is_error = |line: &&str| {
        let has = ["error", "Error", "ERROR", "Failed", "failed"]
            .iter()
            .any(|it| line.contains(it));
        has && line.split_whitespace().count() > 3
    };
    let first: Vec<&str> = said.lines().filter(is_error).take(SHOWN).collect();
    if first.is_empty() {
        tail(said)
    } else {
        indented(&first)
    }
}

fn tail(said: &str) -> String {
    let lines: Vec<&str> = said
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    let last = &lines[lines.len().saturating_sub(SHOWN)..];
    indented(last)
}

fn indented(lines: &[&str]) -> String {
    lines.iter().map(|line| format!("      {line}\n")).collect()
}
