//! `sprag init --try` and `sprag doctor --try`: runs the setup commands and the checks of the configuration once on the
//! present tree, and asks its MCP servers for their tools, confined as in a run.

use crate::checks::{CheckContext, OwnHome, Progress, run_checks};
use crate::context::Context;
use crate::domain::checks::first_errors;
use crate::domain::checks::verdict::{Check, CheckResult};
use crate::domain::config_file::ConfigFile;
use crate::domain::duration::millis;
use crate::domain::mcp::McpServer;
use crate::domain::settings::Settings;
use crate::domain::text::some_of;
use crate::error::Result;
use crate::gateway::Gateway;
use crate::git::{self, Real};
use crate::mcp::{self, Connection, beside};
use crate::print::print;
use crate::process::environment::environment;
use crate::process::{
    Cancel, CancelReason, CommandSpec, Exit, HeadTail, Input, Limits, listen, run, until_one_fails,
};
use crate::report::{sentence, text};
use crate::run::begin::isolation::{Isolation, Purpose, Scope, isolation, with_temporary};
use crate::run::begin::prepare::{config_file, directory};
use crate::run::begin::start::runtime;
use crate::run::state::past_runs::{holding, remember_tried};
use crate::run::state::setup::by_proxy;
use crate::secrets::sources::redactor;
use crate::settings::args::Common;
use crate::settings::flags::SettingFlags;
use crate::settings::{self, RunConfig, Sources, TaskConfig};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io::BufRead as _;
use std::path::Path;
use std::slice;
use std::sync::Arc;
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
    trial: &'a Trial<'a>,
    /// The variables of the commands.
    env: Vec<(OsString, OsString)>,
    isolation: Isolation,
    /// It serves the network of the commands until the trial ends.
    proxy: Option<Gateway>,
    cancel: Cancel,
}

impl Trial<'_> {
    /// Runs each command once and prints each result at once. Returns those that failed, as they are named for
    /// people. The files that are left behind are listed and do not block a later run.
    ///
    /// # Errors
    /// When the configuration cannot be used, or when a required level of the sandbox is not available.
    pub fn run(&self) -> Result<Result<Vec<String>, CancelReason>> {
        let runtime = runtime()?;
        let (context, work_tree) = (self.context, self.real.work_tree());
        let file = config_file(context, self.common, work_tree, None)?;
        let above = settings::above(context, self.flags)?;
        let (run, task) = configuration(context, self.common, above, file, work_tree)?;
        if run.setup.is_empty() && task.checks.is_empty() && run.mcp.is_empty() {
            return Ok(Ok(Vec::new()));
        }
        let before = git::untracked_files(self.real)?;
        let tried = runtime.block_on(self.run_all(&run, &task));
        runtime.shutdown_timeout(Duration::from_millis(200));
        let after = git::untracked_files(self.real)?;
        let new: BTreeSet<Vec<u8>> = after.difference(&before).cloned().collect();
        if !new.is_empty() {
            remember_tried(context, work_tree, &new)?;
            let untracked = git::uncommitted_changes(self.real)?.untracked;
            let left = holding(untracked, &new).join(", ");
            print(
                context,
                &format!(
                    "  left behind by these commands: {left}\n    add files that are not sources to .gitignore; a run ignores and does not commit them\n"
                ),
            )?;
        }
        tried
    }

    async fn run_all(
        &self,
        run: &RunConfig,
        task: &TaskConfig,
    ) -> Result<Result<Vec<String>, CancelReason>> {
        let cancel = Cancel::new();
        listen(&cancel)?;
        let scope = Scope::of(self.context, self.real, run, std::iter::once(task), None);
        let mut isolation = isolation(&scope).await?;
        isolation.make_directories();
        let proxy = isolation.take_proxy();
        let how = match isolation.policy(Purpose::Check) {
            Some(_) => format!(
                "in the sandbox (level {} of 3)",
                isolation.line().level.number()
            ),
            None => "without a sandbox".to_owned(),
        };
        let title = format!("trying the commands of the configuration {how}, as a run does:\n");
        print(self.context, &title)?;
        let mut running = Running {
            trial: self,
            env: Vec::new(),
            isolation,
            proxy,
            cancel,
        };
        running.env = running.environment(&task.settings.verify_env, Purpose::Check);
        let mut failed = running.setup(&run.setup).await;
        failed.extend(running.checks(&task.checks).await?);
        failed.extend(running.servers(&run.mcp).await);
        Ok(match running.cancel.reason() {
            Some(reason) => Err(reason),
            None => Ok(failed),
        })
    }
}

/// The configuration of a run, and of a task without its own settings.
///
/// # Errors
/// When a setting is invalid.
pub fn configuration(
    context: &Context,
    common: &Common,
    above: Settings,
    file: ConfigFile,
    work_tree: &Path,
) -> Result<(RunConfig, TaskConfig)> {
    let directory = directory(context, common, work_tree);
    let sources = Sources::new(context, above, file.settings)?.within(directory);
    let mut run = settings::run_config(&sources, file.setup)?;
    run.mcp = file.mcp;
    let plan = settings::plan_of_prompt("any")?;
    let task = settings::shown_task_config(&sources, &plan.tasks[0])?;
    Ok((run, task))
}

impl Running<'_> {
    async fn setup(&self, commands: &[String]) -> Vec<String> {
        let mut failed = Vec::new();
        for line in commands {
            if (self.trial.installs)(line) && !self.may_install(line) {
                self.say(&format!(
                    "  setup `{line}`: not run, because it installs outside of the work tree\n    \
                    put it into a step of the workflow, before Sprag's\n"
                ));
                continue;
            }
            self.say(&format!("  setup `{line}`: running\n"));
            let spec = CommandSpec {
                program: "sh".into(),
                args: until_one_fails(line),
                cwd: self.trial.real.work_tree().to_path_buf(),
                env: self.env.clone(),
                stdin: Input::Null,
                limits: Limits::within(SETUP_TIMEOUT),
                sandbox: self.isolation.policy(Purpose::Setup),
            };
            let mut kept = HeadTail::new(KEPT, KEPT);
            let ended = run(&spec, &self.cancel, &mut |_, chunk: &[u8]| kept.push(chunk)).await;
            let took = text::duration(millis(ended.elapsed));
            match ended.exit {
                Exit::Cancelled(_) => break,
                Exit::Code(0) => self.say(&format!("    done ({took})\n")),
                exit => {
                    failed.push(format!("setup `{line}`"));
                    let said = kept.into_text();
                    let shown = shown(&first_errors(&said, SHOWN, 300), &said);
                    self.say(&format!("    failed with {exit} ({took})\n{shown}"));
                    self.say_refusal(&said);
                }
            }
        }
        failed
    }

    async fn checks(&self, checks: &[Check]) -> Result<Vec<String>> {
        let context = self.trial.context;
        let logs = context.place_for_a_moment("sprag-trial-")?;
        let around = CheckContext {
            work_tree: self.trial.real.work_tree(),
            env: &self.env,
            as_committed: BTreeMap::new(),
            sandbox: self.isolation.policy(Purpose::Check),
            own_home: &OwnHome::default(),
            cancel: &self.cancel,
            run_dir: logs.path(),
            log: |number, check| format!("{number}-{check}.log"),
            redactor: &Arc::new(redactor(&context.env)),
            matchers: &BTreeMap::new(),
            directories: &BTreeMap::new(),
        };
        let mut on_progress = |progress: Progress<'_>| match progress {
            Progress::Started(check) => self.say(&format!(
                "  check {} `{}`: running\n",
                check.name, check.run
            )),
            Progress::Ended(result) => {
                self.say(&result_text(result));
                if result.outcome.is_failure() {
                    self.say_refusal(&result.excerpt);
                }
            }
            Progress::Leaked(..) | Progress::Odd(..) | Progress::LogLost(_) => {}
        };
        let ran = run_checks(checks, &around, &mut 0, &mut on_progress).await;
        let failing = ran.failing_checks().into_iter();
        Ok(failing.map(|name| format!("check {name}")).collect())
    }

    async fn servers(&self, servers: &[McpServer]) -> Vec<String> {
        let mut failed = Vec::new();
        let redactor = redactor(&self.trial.context.env);
        for server in servers {
            let name = format!("MCP server {}", server.name);
            self.say(&format!("  {name}: asked for its tools\n"));
            let tools = self.tools(server).await;
            if self.cancel.reason().is_some() {
                break;
            }
            let told = match tools {
                Ok(names) if names.is_empty() => "it has no tools".to_owned(),
                Ok(names) => some_of(&names, 20),
                Err(why) => {
                    failed.push(name);
                    format!("failed: {why}")
                }
            };
            self.say(&format!("    {}\n", redactor.redact(&told)));
        }
        failed
    }

    /// The names of a server's tools, with the variables that an agent would give it.
    async fn tools(&self, server: &McpServer) -> Result<Vec<String>, String> {
        let names: Vec<String> = server.variables().into_iter().map(str::to_owned).collect();
        let connection = Connection::of(
            server,
            self.trial.real.work_tree(),
            self.environment(&names, Purpose::Agent),
            Limits::within(mcp::LIMIT),
            self.isolation.policy(Purpose::Agent),
        )?;
        let listed = beside(
            slice::from_ref(&connection),
            &self.cancel,
            connection.tools(),
        );
        let tools = tokio::select! {
            biased;
            _ = self.cancel.cancelled() => return Ok(Vec::new()),
            tools = listed => tools?,
        };
        let names = tools.iter().filter_map(|tool| tool["name"].as_str());
        Ok(names.map(mcp::shown).collect())
    }

    /// The variables of a child, as a run gives them.
    fn environment(&self, extra: &[String], purpose: Purpose) -> Vec<(OsString, OsString)> {
        let allowed = environment(&self.trial.context.env, extra);
        let mut env = with_temporary(allowed.variables, &self.isolation, purpose);
        if let (Some(line), Some(proxy)) = (self.isolation.network(), &self.proxy) {
            by_proxy(&mut env, &proxy.url(), line);
        }
        env
    }

    fn say(&self, text: &str) {
        // The exit code and the later lines do not depend on a reader.
        let _ = print(self.trial.context, text);
    }

    /// Says which path the sandbox did not let a command write.
    fn say_refusal(&self, said: &str) {
        if let Some(refusal) = self.isolation.refusal(said) {
            self.say(&format!("      {refusal}\n"));
        }
    }

    /// Asks whether a command may run that installs outside of the work tree. Without a terminal it may not.
    fn may_install(&self, line: &str) -> bool {
        if !self.trial.context.stdout_is_terminal {
            return false;
        }
        self.say(&format!(
            "  setup `{line}` installs outside of the work tree. Run it? [y/N] "
        ));
        let mut answer = String::new();
        let read = std::io::stdin().lock().read_line(&mut answer);
        read.is_ok() && matches!(answer.trim(), "y" | "Y" | "yes")
    }
}

fn result_text(result: &CheckResult) -> String {
    let took = text::duration(result.elapsed_ms);
    let (outcome, counts) = (&result.outcome, sentence::counts(result));
    if !outcome.is_failure() {
        return format!("    {outcome}{counts} ({took})\n");
    }
    let (headline, mut errors) = (outcome.to_string(), result.errors.clone());
    errors.retain(|error| *error != headline);
    format!(
        "    {outcome}{counts} ({took}): tasks are judged by it, so fix it first or remove it\n{}",
        shown(&errors, &result.excerpt)
    )
}

/// The first lines with an error, because the last ones are often advice; without any, the last lines.
fn shown(errors: &[String], said: &str) -> String {
    let mut lines: Vec<&str> = errors.iter().map(String::as_str).take(SHOWN).collect();
    if lines.is_empty() {
        lines.extend(said.lines().filter(|line| !line.trim().is_empty()));
        lines.drain(..lines.len().saturating_sub(SHOWN));
    }
    lines.iter().map(|line| format!("      {line}\n")).collect()
}
