//! The commands that read a plan: `sprag check` validates it or the configuration, and `sprag matrix` prints its
//! unfinished tasks for a job matrix.

use crate::cli::{CheckArgs, MatrixArgs, SettingFlags};
use crate::context::Context;
use crate::domain::plan::{self, Plan, Task, TaskId, TaskStatus};
use crate::error::{Error, Result};
use crate::git::{Real, path_within};
use crate::print::{masking, print, print_unmasked};
use crate::report;
use crate::report::actions_log::{neutral_json, print_warning};
use crate::report::append::append_only;
use crate::report::buffered_output::Time;
use crate::report::outputs::github_output;
use crate::run::begin::described::task_settings;
use crate::run::begin::prepare::{
    config_file, config_path, directory, not_writable, read_plan, refuse_unread, schema_source,
};
use crate::run::begin::repository::repository;
use crate::run::state::plan_state::ensure_writable;
use crate::settings::{self, RunConfig, Sources, TaskConfig};
use serde_json::json;
use std::io::Write as _;

/// Validates a plan or the configuration, shows its settings and returns the process's exit code.
///
/// # Errors
/// When the configuration or the plan is invalid.
pub fn check(context: &Context, args: &CheckArgs) -> Result<u8> {
    let real = repository(context)?;
    let work_tree = real.work_tree();
    let file = config_file(context, &args.common, work_tree, None)?;
    let above = settings::above(context, &SettingFlags::default())?;
    let directory = directory(context, &args.common, work_tree);
    let mut warnings: Vec<String> = file.warnings.iter().map(ToString::to_string).collect();
    let Some(path) = args.plan.as_ref().or(args.plan_flag.as_ref()) else {
        let sources = Sources::new(context, above, file.settings)?.within(directory);
        let run = check_run(context, &real, &sources, file.setup)?;
        let mut text = warning_lines(&warnings) + "the configuration is valid";
        if !config_path(context, &args.common, work_tree).is_file() {
            text += &format!(
                ": there is no {}, so every setting has its default or is set elsewhere",
                settings::DEFAULT_FILE
            );
        }
        text += "\n";
        for command in &run.setup {
            text += &format!("  setup: {command}\n");
        }
        // A task that overrides nothing.
        for task in &settings::plan_of_prompt("any")?.tasks {
            text += &task_settings(&settings::shown_task_config(&sources, task)?);
        }
        print(context, &text)?;
        return Ok(0);
    };
    let path = context.cwd.join(path);
    let name = path_within(&path, work_tree);
    let bytes = settings::read_file(&path, "plan")?;
    let read = plan::open(&name, &bytes).map_err(settings::located)?;
    let (opened, plan) = (&read.value, read.value.plan());
    warnings.extend(read.warnings.iter().map(ToString::to_string));
    refuse_unread(&above, plan, work_tree, &directory)?;
    let below = plan.settings.clone().or(file.settings);
    let sources = Sources::new(context, above, below)?.within(directory);
    if plan.settings.review_only == Some(true) {
        return Err(settings::set_in_plan("review_only"));
    }
    if plan.settings.branch.is_some() {
        return Err(settings::set_in_plan("branch"));
    }
    check_run(context, &real, &sources, Vec::new())?;
    let order = plan::selection(plan, &[]).map_err(|error| Error::usage(error.to_string()))?;
    let with_config = |task| Ok((task, settings::shown_task_config(&sources, task)?));
    let tasks: Vec<(&Task, TaskConfig)> =
        order.into_iter().map(with_config).collect::<Result<_>>()?;
    let open = plan
        .tasks
        .iter()
        .filter(|task| task.status != TaskStatus::Done);
    let written = ensure_writable(opened, open.map(|task| &task.id));
    written.map_err(|error| not_writable(&error))?;
    if args.json {
        return check_json(context, plan, &tasks, &warnings);
    }
    let shown = warning_lines(&warnings) + &format!("{name} is valid: ") + &described(plan, &tasks);
    print(context, &shown)?;
    Ok(0)
}

fn warning_lines(warnings: &[String]) -> String {
    let line = |warning: &String| format!("warning: {warning}\n");
    warnings.iter().map(line).collect()
}

/// The plan for people, with the settings of each task.
fn described(plan: &Plan, tasks: &[(&Task, TaskConfig)]) -> String {
    let count = report::text::count(plan.tasks.len() as u64, "task");
    let mut text = format!("{} ({count})\n", plan.title);
    for note in plan.understood() {
        text += &format!("  {note}\n");
    }
    let settings: Vec<String> = tasks.iter().map(|(_, one)| task_settings(one)).collect();
    let are_shared = settings.len() > 1 && settings.iter().all(|one| *one == settings[0]);
    if are_shared {
        text += &format!("\nevery task:\n{}", settings[0]);
    }
    for ((task, _), settings) in tasks.iter().zip(&settings) {
        let status = task.status.word();
        text += &format!("\ntask {} ({status}): {}\n", task.id, task.title);
        if !task.depends_on.is_empty() {
            let ids: Vec<&str> = task.depends_on.iter().map(TaskId::as_str).collect();
            text += &format!("  depends on: {}\n", ids.join(", "));
        }
        for criterion in &task.acceptance {
            let line = report::text::short_line(criterion, 200);
            text += &format!("  acceptance: {line}\n");
        }
        if !are_shared {
            text += settings;
        }
    }
    text
}

/// The settings for the whole run.
fn check_run(
    context: &Context,
    real: &Real,
    sources: &Sources,
    setup: Vec<String>,
) -> Result<RunConfig> {
    let run = settings::run_config(sources, setup)?;
    if let Some(schema) = schema_source(context, sources, &run, real) {
        schema.load(context, real, None, None)?;
    }
    Ok(run)
}

fn check_json(
    context: &Context,
    plan: &Plan,
    tasks: &[(&Task, TaskConfig)],
    warnings: &[String],
) -> Result<u8> {
    let masked = masking(context);
    // What programs look up is not masked.
    let tasks: Vec<_> = tasks
        .iter()
        .map(|(task, config)| {
            let has_agent = config.missing.as_ref().is_none_or(|it| !it.is_own);
            json!({
                "id": task.id.as_str(),
                "title": masked(json!(task.title)),
                "status": task.status.word(),
                "kind": task.kind,
                "acceptance": masked(json!(task.acceptance)),
                "depends_on": task.depends_on,
                "agent": has_agent.then(|| config.agent.name()),
                "max_retries": config.settings.max_retries,
                "checks": masked(json!(config.checks)),
                "line": task.line,
            })
        })
        .collect();
    let value = json!({
        "title": masked(json!(plan.title)),
        "tasks": tasks,
        "warnings": masked(json!(warnings)),
        "understood": masked(json!(plan.understood())),
    });
    print_unmasked(&neutral_json(format!("{value:#}\n")))?;
    Ok(0)
}

/// Prints the unfinished tasks of a plan as rows of a job matrix and returns the process's exit code. In a step of a job it also sets the output
/// `matrix`.
///
/// # Errors
/// When the plan is invalid.
pub fn matrix(context: &Context, args: &MatrixArgs) -> Result<u8> {
    let path = args.path.as_ref().or(args.plan.as_ref());
    let path =
        path.ok_or_else(|| Error::usage("no plan was given").hint("name one: sprag matrix PLAN"))?;
    let mut warnings = Vec::new();
    let name = path.display().to_string();
    let (plan, _) = read_plan(&context.cwd.join(path), &name, &mut warnings)?;
    for warning in warnings {
        print_warning(&warning, Time::Enough);
    }
    let rows = plan::matrix(&plan, args.shards.map(usize::from));
    let rows = serde_json::to_string(&rows)?;
    print_unmasked(&format!("{rows}\n"))?;
    if let Some(file) = context.path_var("GITHUB_OUTPUT") {
        let delimiter = format!("sprag_{}", uuid::Uuid::new_v4().simple());
        let text = github_output(&[("matrix", rows)], &delimiter);
        let written = append_only(&file).and_then(|mut file| Ok(file.write_all(text.as_bytes())?));
        written.map_err(|error| {
            Error::environment(format!(
                "the output (GITHUB_OUTPUT) cannot be written: {error:#}"
            ))
        })?;
    }
    Ok(0)
}
