//! `sprag runs`: lists the runs of this repository, newest first.

use crate::cli::RunsArgs;
use crate::context::Context;
use crate::domain::summary::RunSummary;
use crate::error::Result;
use crate::print::print;
use crate::report::{sentence, text};
use crate::run::begin::repository::repository;
use crate::run::state::lock::active_run;
use crate::run::state::past_runs::{PastRun, past_runs};
use serde_json::{Value, json};

/// The longest title, in characters.
const TITLE: usize = 60;

/// Runs the command and returns the process's exit code.
///
/// # Errors
/// When there is no repository here.
pub fn command(context: &Context, args: &RunsArgs) -> Result<u8> {
    let real = repository(context)?;
    let runs = past_runs(context, real.work_tree());
    let active = active_run(context, &real);
    let is_active = |run: &PastRun| active.as_ref() == Some(&run.manifest.run_id);
    if args.json {
        let rows: Vec<Value> = runs.iter().map(|run| row(run, is_active(run))).collect();
        print(context, &format!("{:#}\n", json!({ "runs": rows })))?;
        return Ok(0);
    }
    if runs.is_empty() {
        print(
            context,
            "no run of this repository is recorded here; sprag run starts one\n",
        )?;
        return Ok(0);
    }
    let lines: String = runs.iter().map(|run| line(run, is_active(run))).collect();
    print(context, &lines)?;
    print(
        context,
        "sprag report ID and sprag run --resume ID take these ids\n",
    )?;
    Ok(0)
}

/// A run for programs. Without a status it is unfinished.
fn row(run: &PastRun, is_active: bool) -> Value {
    let summary = run.summary();
    let summary = summary.as_ref();
    json!({
        "id": run.manifest.run_id,
        "short_id": run.short_id(),
        "started_at": text::moment_of_id(&run.manifest.run_id).map(|at| at.to_string()),
        "running": is_active,
        "status": summary.and_then(|it| it.status),
        "reason": summary.and_then(|it| it.reason),
        "tasks_done": summary.map(|it| it.totals.done),
        "tasks_total": summary.map(|it| it.totals.tasks),
        "title": title(run, summary),
        "run_dir": run.dir,
    })
}

/// The title of the plan, or the prompt.
fn title(run: &PastRun, summary: Option<&RunSummary>) -> String {
    let of_summary = summary.map(|summary| summary.plan.title.clone());
    of_summary
        .or(run.manifest.prompt.clone())
        .unwrap_or_default()
}

fn line(run: &PastRun, is_active: bool) -> String {
    let summary = run.summary();
    let summary = summary.as_ref();
    let state = match summary.and_then(|summary| summary.status) {
        _ if is_active => "running",
        _ if summary.is_some_and(|summary| summary.review_in_words().is_some()) => "reviewed",
        Some(status) => sentence::status(status),
        None => "unfinished",
    };
    let tasks = summary.map_or(String::new(), |summary| {
        format!("{}/{}", summary.totals.done, summary.totals.tasks)
    });
    format!(
        "{}  {:<20}  {state:<22}  {tasks:>7}  {}\n",
        run.short_id(),
        text::time_of_id(&run.manifest.run_id).unwrap_or_default(),
        text::short_line(&title(run, summary), TITLE)
    )
}
