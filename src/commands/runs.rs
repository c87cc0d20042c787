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
    let rows = runs.iter().map(|run| Row {
        run,
        summary: run.summary(),
        is_active: active.as_ref() == Some(&run.manifest.run_id),
    });
    let text = if args.json {
        let rows: Vec<Value> = rows.map(|row| row.json()).collect();
        format!("{:#}\n", json!({ "runs": rows }))
    } else if runs.is_empty() {
        "no run of this repository is recorded here; sprag run starts one\n".to_owned()
    } else {
        let lines: String = rows.map(|row| row.line()).collect();
        lines + "sprag report ID and sprag run --resume ID take these ids\n"
    };
    print(context, &text)?;
    Ok(0)
}

/// A run and its summary, if it has one. Without a status it is unfinished.
struct Row<'a> {
    run: &'a PastRun,
    summary: Option<RunSummary>,
    is_active: bool,
}

impl Row<'_> {
    fn json(&self) -> Value {
        let (run, summary) = (self.run, self.summary.as_ref());
        json!({
            "id": run.manifest.run_id,
            "short_id": run.short_id(),
            "started_at": text::moment_of_id(&run.manifest.run_id).map(|at| at.to_string()),
            "running": self.is_active,
            "status": summary.and_then(|it| it.status),
            "reason": summary.and_then(|it| it.reason),
            "tasks_done": summary.map(|it| it.totals.done),
            "tasks_total": summary.map(|it| it.totals.tasks),
            "title": self.title(),
            "run_dir": run.dir,
        })
    }

    /// The title of the plan, or the prompt.
    fn title(&self) -> String {
        let of_summary = self.summary.as_ref().map(|it| it.plan.title.clone());
        let title = of_summary.or(self.run.manifest.prompt.clone());
        title.unwrap_or_default()
    }

    fn line(&self) -> String {
        let (run, summary) = (self.run, self.summary.as_ref());
        let state = match summary.and_then(|summary| summary.status) {
            _ if self.is_active => "running",
            _ if summary.is_some_and(|it| it.review_in_words().is_some()) => "reviewed",
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
            text::short_line(&self.title(), TITLE)
        )
    }
}
