//! The commands that show past runs: `sprag runs`, `sprag report` and `sprag outcomes`.

use crate::cli::{OutcomesArgs, ReportArgs, RunsArgs};
use crate::context::Context;
use crate::domain::summary::RunSummary;
use crate::error::{Error, Result};
use crate::print::{print, print_document};
use crate::report::buffered_output::{Time, print_to_stderr};
use crate::report::outcomes::{markdown, terminal};
use crate::report::{Format, render, sentence, text};
use crate::run::begin::repository::repository;
use crate::run::deliver::outcomes::gather;
use crate::run::deliver::report_sources::sources;
use crate::run::state::layout::RunFile;
use crate::run::state::lock::active_run;
use crate::run::state::past_runs::{PastRun, directory, newest_ended, past_runs};
use serde_json::{Value, json};
use std::fs;

/// The longest title, in characters.
const TITLE: usize = 60;

/// Lists the runs of this repository, newest first, and returns the process's exit code.
///
/// # Errors
/// When there is no repository here.
pub fn runs(context: &Context, args: &RunsArgs) -> Result<u8> {
    let real = repository(context)?;
    let past = past_runs(context, real.work_tree());
    let active = active_run(context, &real);
    let rows = past.iter().map(|run| Row {
        run,
        summary: run.summary(),
        is_active: active.as_ref() == Some(&run.manifest.run_id),
    });
    let text = if args.json {
        let rows: Vec<Value> = rows.map(|row| row.json()).collect();
        format!("{:#}\n", json!({ "runs": rows }))
    } else if past.is_empty() {
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
        let of_summary = self.summary.as_ref().map(|it| it.facts.plan.title.clone());
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

/// Prints the summary of a run in another format and returns the process's exit code.
///
/// # Errors
/// When there is no such run.
pub fn report(context: &Context, args: &ReportArgs) -> Result<u8> {
    let dir = match &args.run_dir {
        Some(name) => directory(context, name)?,
        None => newest_ended(context)?,
    };
    let path = dir.join(&*RunFile::Report(Format::Json).path());
    let bytes = fs::read(&path).map_err(|error| {
        Error::usage(format!("{} cannot be read: {error}", path.display()))
            .hint("name the directory of a run that has ended; sprag run prints it")
    })?;
    let summary: RunSummary = serde_json::from_slice(&bytes)
        .map_err(|error| Error::usage(format!("{} is damaged: {error}", path.display())))?;
    let sources = if args.format.shows_sources() {
        sources(&dir)
    } else {
        Vec::new()
    };
    let text = render(&summary, &sources, args.format);
    print_document(context, &text, args.format)?;
    Ok(0)
}

/// Prints the results of Sprag's work in a period and returns the process's exit code.
///
/// # Errors
/// As [`gather`].
pub fn outcomes(context: &Context, args: &OutcomesArgs) -> Result<u8> {
    let gathered = gather(context, &args.since, args.branch.as_deref())?;
    let (found, missing) = (&gathered.outcomes, &gathered.missing);
    match (args.json, args.markdown) {
        (true, _) => {
            let json = serde_json::to_string_pretty(found)?;
            for line in missing {
                print_to_stderr(&format!("note: {line}\n"), Time::Enough);
            }
            print_document(context, &format!("{json}\n"), Format::Json)?;
        }
        (false, true) => print_document(context, &markdown(found, missing), Format::Md)?,
        (false, false) => print(context, &terminal(found, missing))?,
    }
    Ok(0)
}
