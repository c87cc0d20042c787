//! `sprag report`: the summary of a run once more, in another format.

use crate::cli::{ReportArgs, ReportFormat};
use crate::context::Context;
use crate::domain::summary::RunSummary;
use crate::error::{Error, Result};
use crate::print::print;
use crate::report;
use crate::run::layout::RunFile;
use crate::run::report_sources::sources;
use std::fs;

/// Runs the command and says the process's exit code.
///
/// # Errors
/// When there is no such run.
pub fn command(context: &Context, args: &ReportArgs) -> Result<u8> {
    let path = context
        .cwd
        .join(&args.run_dir)
        .join(&*RunFile::Summary.path());
    let bytes = fs::read(&path).map_err(|error| {
        Error::usage(format!("{} cannot be read: {error}", path.display()))
            .hint("name the directory of a run that has ended; sprag run prints it")
    })?;
    let summary: RunSummary = serde_json::from_slice(&bytes)
        .map_err(|error| Error::usage(format!("{} is damaged: {error}", path.display())))?;
    let text = match args.format {
        ReportFormat::Md => report::render(&summary, report::Format::Markdown),
        ReportFormat::Json => report::render(&summary, report::Format::Json),
        ReportFormat::Html => {
            let sources = sources(&context.cwd.join(&args.run_dir));
            report::html::report(&summary, &sources)
        }
    };
    print(&text)?;
    Ok(0)
}
