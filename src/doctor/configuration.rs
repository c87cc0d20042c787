//! The configuration, its checks, and the programs that its commands need.

use crate::cli::DoctorArgs;
use crate::context::Context;
use crate::doctor::finding::Finding;
use crate::domain::mcp::McpServer;
use crate::domain::settings::{IfUnverified, Settings};
use crate::domain::text::some_of;
use crate::error::{Error, Result};
use crate::git::path_within;
use crate::run::begin::prepare::{config_file, config_path};
use crate::run::begin::requirements::{self, MissingProgram};
use crate::run::begin::trial;
use crate::settings::{self, RunConfig, TaskConfig};
use std::collections::BTreeSet;
use std::path::Path;

/// The configuration of a task without its own settings.
pub(super) struct Configured {
    file: Option<String>,
    /// All settings, before their defaults.
    pub(super) settings: Settings,
    pub(super) run: RunConfig,
    pub(super) task: TaskConfig,
    /// The source that names the agent, if one does.
    pub(super) agent_named_by: Option<&'static str>,
}

impl Configured {
    pub(super) fn read(context: &Context, args: &DoctorArgs, work_tree: &Path) -> Result<Self> {
        let file = config_file(context, &args.common, work_tree, None)?;
        let path = config_path(context, &args.common, work_tree);
        let above = settings::above(context, &args.settings)?;
        let all = above.clone().or(file.settings.clone());
        let is_named =
            all.agent_command.is_some() || all.agent.as_deref().is_some_and(|name| name != "auto");
        let sources = [
            (&args.settings.settings()?, "a flag"),
            (&above, "an input or a variable"),
            (&file.settings, "the configuration"),
        ];
        let names_agent =
            |settings: &Settings| settings.agent.is_some() || settings.agent_command.is_some();
        let agent_named_by = sources
            .iter()
            .find(|(settings, _)| is_named && names_agent(settings))
            .map(|(_, source)| *source);
        let (run, task) = trial::configuration(context, &args.common, above, file, work_tree)?;
        Ok(Self {
            file: path.is_file().then(|| path_within(&path, work_tree)),
            settings: all,
            run,
            task,
            agent_named_by,
        })
    }
}

pub(super) fn findings(
    context: &Context,
    configured: &Result<Configured>,
    work_tree: &Path,
) -> Vec<Finding> {
    let Configured {
        file, run, task, ..
    } = match configured {
        Ok(configured) => configured,
        Err(error) => return invalid(error),
    };
    let names: Vec<String> = task.checks.iter().map(|check| check.name.clone()).collect();
    let missing = requirements::missing(context, work_tree, &run.setup, &task.checks);
    let unread = settings::unread_variables(context);
    let mut findings = vec![
        valid(file.as_deref()),
        checks(&names, task.settings.if_unverified),
    ];
    findings.extend(programs(&missing, !run.setup.is_empty()));
    findings.extend(run.mcp.iter().map(|one| server(context, one)));
    findings.extend(
        unread
            .iter()
            .map(|variable| Finding::warn("variables", &variable.found, &variable.remedy)),
    );
    findings
}

pub(super) fn valid(file: Option<&str>) -> Finding {
    let found = match file {
        Some(file) => format!("{file} is valid"),
        None => "no file; settings have their defaults or are set elsewhere".to_owned(),
    };
    Finding::ok("configuration", found)
}

pub(super) fn invalid(error: &Error) -> Vec<Finding> {
    let mut finding = Finding::of_error("configuration", error);
    if error.hints.is_empty() {
        finding.remedy = Some("correct it; sprag check shows the same error".to_owned());
    }
    vec![
        finding,
        Finding::unknown("checks", "not known without the configuration"),
    ]
}

pub(super) fn checks(names: &[String], if_unverified: IfUnverified) -> Finding {
    const CHECK: &str = "checks";
    if !names.is_empty() {
        return Finding::ok(CHECK, some_of(names, 8));
    }
    let found = if if_unverified == IfUnverified::Fail {
        "none, and with `if_unverified: fail` every task without checks in its plan fails"
    } else {
        "none: tasks without checks in their plan are committed as unverified"
    };
    Finding::warn(
        CHECK,
        found,
        "add `verify` to the configuration or the plan; sprag init proposes commands",
    )
}

/// An MCP server and its variables. Nothing of the configuration is started without `--try`.
fn server(context: &Context, server: &McpServer) -> Finding {
    const CHECK: &str = "mcp";
    let (name, variables) = (&server.name, server.variables());
    match variables.iter().find(|name| context.var(name).is_none()) {
        None => Finding::ok(
            CHECK,
            format!("{name}: `sprag doctor --try` lists its tools"),
        ),
        Some(unset) => Finding::warn(
            CHECK,
            format!("{name} needs {unset}, which is not set"),
            "set it; in Actions from a secret, in `env` of Sprag's step",
        ),
    }
}

/// The missing programs of checks and setup commands. A setup command may install the program of a check.
pub(super) fn programs(missing: &[MissingProgram], has_setup: bool) -> Option<Finding> {
    let names: BTreeSet<String> = missing
        .iter()
        .map(|missing| format!("{} needs {}", missing.of, missing.program))
        .collect();
    let names: Vec<String> = names.into_iter().collect();
    if names.is_empty() {
        return None;
    }
    let renamed = missing.iter().find_map(|missing| {
        let other = missing.also_called?;
        let program = &missing.program;
        Some(format!(
            "{other} is installed: write {other} instead of {program}"
        ))
    });
    Some(Finding::bad(
        !has_setup || missing.iter().any(|missing| missing.in_setup),
        "programs",
        format!("not found: {}", some_of(&names, 8)),
        renamed.unwrap_or_else(|| {
            "install it, correct the command, or let a `setup` command install it".to_owned()
        }),
    ))
}
