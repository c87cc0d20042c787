//! `sprag runs`: lists the runs of this repository, newest first.

use crate::context::Context;
use crate::error::Result;
use crate::print::print;
use crate::report::{sentence, text};
use crate::run::begin::repository::repository;
use crate::run::state::lock::active_run;
use crate::run::state::past_runs::{PastRun, past_runs};

/// The longest title, in characters.
const TITLE: usize = 60;

/// Runs the command and returns the process's exit code.
///
/// # Errors
/// When there is no repository here.
pub fn command(context: &Context) -> Result<u8> {
    let real = repository(context)?;
    let runs = past_runs(context, real.work_tree());
    if runs.is_empty() {
        print(
            context,
            "no run of this repository is recorded here; sprag run starts one\n",
        )?;
        return Ok(0);
    }
    let active = active_run(context, &real);
    let is_active = |run: &PastRun| active.as_ref() == Some(&run.manifest.run_id);
    let lines: String = runs.iter().map(|run| line(run, is_active(run))).collect();
    print(context, &lines)?;
    print(
        context,
        "sprag report ID and sprag run --resume ID take these ids\n",
    )?;
    Ok(0)
}

fn line(run: &PastRun, is_active: bool) -> String {
    let summary = run.summary();
    let summary = summary.as_ref();
    let state = match summary.and_then(|summary| summary.status) {
        _ if is_active => "running",
        Some(status) => sentence::status(status),
        None => "unfinished",
    };
    let tasks = summary.map_or(String::new(), |summary| {
        format!("{}/{}", summary.totals.done, summary.totals.tasks)
    });
    let title = match (summary, &run.manifest.prompt) {
        (Some(summary), _) => summary.plan.title.clone(),
        (None, Some(prompt)) => prompt.clone(),
        (None, None) => String::new(),
    };
    format!(
        "{}  {:<20}  {state:<22}  {tasks:>7}  {}\n",
        run.short_id(),
        text::time_of_id(&run.manifest.run_id).unwrap_or_default(),
        text::short_line(&title, TITLE)
    )
}
