//! `sprag report`: prints the summary of a run in another format.

use crate::cli::ReportArgs;
use crate::context::Context;
use crate::domain::summary::RunSummary;
use crate::error::{Error, Result};
use crate::print::print_document;
use crate::report::{Format, render};
use crate::run::deliver::report_sources::sources;
use crate::run::state::layout::RunFile;
use crate::run::state::past_runs::{directory, newest_ended};
use std::fs;

/// Runs the command and returns the process's exit code.
///
/// # Errors
/// When there is no such run.
pub fn command(context: &Context, args: &ReportArgs) -> Result<u8> {
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
