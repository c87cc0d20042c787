//! Collects the facts about everything that a run needs, without writing anything.

mod actions_job;
mod agent;
mod machine;
mod network;
mod repository;

use crate::agents::Agent;
use crate::cli::DoctorArgs;
use crate::context::Context;
use crate::doctor::{Configuration, Confinement, Delivery, Facts, Machine, Problem};
use crate::domain::settings::{IfUnverified, PullRequest, Report, Settings};
use crate::error::{Error, Result};
use crate::git::{Real, path_within};
use crate::process::{self, Cancel, CancelReason};
use crate::run::begin::isolation::{self, Scope};
use crate::run::begin::prepare::{config_file, config_path};
use crate::run::begin::programs;
use crate::run::begin::repository::repository as discover;
use crate::run::state::places;
use crate::settings::{self, RunConfig, Sources, TaskConfig};
use std::path::Path;

/// The result of collecting the facts.
pub enum Gathered {
    /// All facts were collected.
    Facts(Box<Facts>),
    /// A signal ended the collection.
    Cancelled(CancelReason),
}

/// Collects the facts about everything that a run needs.
///
/// # Errors
/// When signal handlers cannot be installed.
pub async fn gather(context: &Context, args: &DoctorArgs) -> Result<Gathered> {
    let git = repository::program(context);
    let real = discover(context);
    let work_tree = match &real {
        Ok(real) => real.work_tree(),
        Err(_) => &context.cwd,
    };
    let configured = configured(context, args, work_tree);
    let cancel = Cancel::new();
    process::listen(&cancel).map_err(anyhow::Error::from)?;
    let subreaper = process::become_subreaper().is_ok() && cfg!(target_os = "linux");
    let settings = configured.as_ref().map(|it| it.settings.clone());
    let known = configured.as_ref().ok();
    let asked = async {
        tokio::join!(
            agent::gather(context, known, work_tree, &cancel),
            actions_job::gather(context),
            machine::user_namespaces(context, &cancel),
            confinement(context, real.as_ref().ok(), known),
        )
    };
    let (agent, actions_job, user_namespaces, confinement) = tokio::select! {
        biased;
        reason = cancel.cancelled() => return Ok(Gathered::Cancelled(reason)),
        asked = asked => asked,
    };
    let runs = known
        .and_then(|it| it.run.run_dir(context))
        .unwrap_or_else(|| places::runs_of(context, work_tree));
    Ok(Gathered::Facts(Box::new(Facts {
        in_actions: context.in_actions(),
        git,
        repository: match &real {
            Ok(real) => Ok(repository::gather(context, real)),
            Err(error) => Err(repository::trouble(error)),
        },
        configuration: match &configured {
            Ok(configured) => Ok(configured.facts(context, work_tree)),
            Err(error) => Err(trouble(error)),
        },
        agent,
        actions_job,
        network: network::gather(context, known.and_then(model_server)),
        trigger: actions_job::trigger(context, &settings.unwrap_or_default()),
        machine: Machine {
            confinement,
            ..machine::gather(context, &runs, user_namespaces, subreaper)
        },
    })))
}

/// The URL of the model that the built-in agent uses.
fn model_server(configured: &Configured) -> Option<&str> {
    match &configured.task.agent {
        Agent::Builtin(builtin) => Some(&builtin.access.base),
        Agent::Cli(_) => None,
    }
}

/// How the children of a run in this repository would be confined.
async fn confinement(
    context: &Context,
    real: Option<&Real>,
    configured: Option<&Configured>,
) -> Option<Confinement> {
    let (real, configured) = (real?, configured?);
    let scope = Scope {
        context,
        real,
        run: &configured.run,
        agents: vec![&configured.task.agent],
        run_dir: None,
        makes: false,
    };
    let confinement_levels = isolation::confinement_levels(&scope).await.ok()?;
    Some(Confinement {
        setting: configured.run.settings.sandbox,
        line: confinement_levels.line,
        highest: confinement_levels.highest,
        obstacle: machine::obstacle(),
    })
}

/// The configuration of a task without its own settings.
struct Configured {
    file: Option<String>,
    settings: Settings,
    run: RunConfig,
    task: TaskConfig,
    /// What names the agent, if something does.
    agent_named_by: Option<&'static str>,
}

fn configured(context: &Context, args: &DoctorArgs, work_tree: &Path) -> Result<Configured> {
    let file = config_file(context, &args.common, work_tree, None)?;
    let path = config_path(context, &args.common, work_tree);
    let above = settings::above(context, &args.settings)?;
    let settings = above.clone().or(file.settings.clone());
    let sources = [
        (&args.settings.settings()?, "a flag"),
        (&above, "an input or a variable"),
        (&file.settings, "the configuration"),
    ];
    let names = |it: &Settings| it.agent.is_some() || it.agent_command.is_some();
    let is_named = settings.agent_command.is_some()
        || settings.agent.as_deref().is_some_and(|name| name != "auto");
    let source = sources.iter().find(|(it, _)| names(it));
    let agent_named_by = source.filter(|_| is_named).map(|(_, source)| *source);
    let sources = Sources::new(context, above, file.settings);
    let run = settings::run_config(&sources, file.setup)?;
    let plan = settings::plan_of_prompt("any")?;
    let [task] = plan.tasks.as_slice() else {
        return Err(Error::config("a plan of one task is none"));
    };
    let task = settings::shown_task_config(&sources, task)?;
    Ok(Configured {
        file: path.is_file().then(|| path_within(&path, work_tree)),
        settings,
        run,
        task,
        agent_named_by,
    })
}

impl Configured {
    fn facts(&self, context: &Context, work_tree: &Path) -> Configuration {
        let delivery = &self.run.settings;
        let checks = self.task.checks.iter();
        Configuration {
            file: self.file.clone(),
            checks: checks.map(|check| check.name.clone()).collect(),
            missing: programs::missing(context, work_tree, &self.run.setup, &self.task.checks),
            has_setup: !self.run.setup.is_empty(),
            unverified_fails: self.task.settings.if_unverified == IfUnverified::Fail,
            allow_dirty: delivery.allow_dirty,
            delivery: Delivery {
                push: delivery.push,
                pull_request: matches!(
                    delivery.pull_request,
                    Some(PullRequest::Draft | PullRequest::Ready)
                ),
                report: delivery.report == Report::Github,
                dispatch: !delivery.dispatch_workflows.is_empty(),
            },
            unread: settings::unread_variables(context),
        }
    }
}

fn trouble(error: &Error) -> Problem {
    let cause = error.source.as_ref().map(crate::error::with_causes);
    let message = match cause {
        Some(cause) => format!("{}: {cause}", error.message),
        None => error.message.clone(),
    };
    Problem {
        message,
        hints: error.hints.clone(),
    }
}
