//! Reports an error before a run starts where users of the action look: in the outputs, in an annotation and
//! in the step summary.

use crate::context::Context;
use crate::domain::outcome::{Reason, RunStatus};
use crate::domain::text::fenced;
use crate::error::{Error, ErrorKind};
use crate::report::actions_log::neutral;
use crate::report::annotation::{Annotation, Level};
use crate::report::append::append_only;
use crate::report::outputs::{ReportStatus, of_no_run};
use crate::report::text;
use crate::report::workflow_command::annotation_commands;
use std::io::Write;
use std::path::Path;

/// Reports the error. `out` is the log of the step.
pub fn report(context: &Context, error: &Error, out: &mut impl Write) {
    for command in annotation_commands(&[annotation(error)]) {
        // Without a log there is no other place to report it.
        let _ = writeln!(out, "{command}");
    }
    let mut report_status = ReportStatus::Ok;
    if let Some(path) = context.path_var("GITHUB_STEP_SUMMARY")
        && append(&path, &step_summary(error)).is_err()
    {
        report_status = ReportStatus::Degraded;
    }
    if let Err(error) = write_outputs(context, end_of(error.kind), &error.message, report_status) {
        let _ = writeln!(out, "{}", neutral(&format!("no outputs: {error:#}")));
    }
}

/// Writes the outputs of a job in which no run starts.
pub(super) fn write_outputs(
    context: &Context,
    end: (RunStatus, Reason),
    why: &str,
    report_status: ReportStatus,
) -> anyhow::Result<()> {
    let Some(path) = context.path_var("GITHUB_OUTPUT") else {
        return Ok(());
    };
    let (status, reason) = end;
    let delimiter = format!("sprag_{}", uuid::Uuid::new_v4().simple());
    append(
        &path,
        &of_no_run(status, reason, why, report_status, &delimiter),
    )
}

/// How a run ends that cannot start because of such an error.
pub fn end_of(kind: ErrorKind) -> (RunStatus, Reason) {
    match kind {
        ErrorKind::Usage | ErrorKind::Config => (RunStatus::Invalid, Reason::Invalid),
        ErrorKind::Environment => (RunStatus::Environment, Reason::Environment),
        ErrorKind::AgentUnavailable => (RunStatus::Environment, Reason::AgentUnavailable),
        ErrorKind::Internal => (RunStatus::Environment, Reason::Internal),
    }
}

/// Formats the error for a log in which the runner interprets commands.
pub fn actions_log(error: &Error) -> String {
    let lines: Vec<String> = error.to_string().lines().map(neutral).collect();
    lines.join("\n")
}

pub(super) fn append(path: &Path, text: &str) -> anyhow::Result<()> {
    append_only(path)?.write_all(text.as_bytes())?;
    Ok(())
}

fn annotation(error: &Error) -> Annotation {
    let (path, line, what) = match &error.at {
        Some(at) => (
            at.file.clone(),
            u32::try_from(at.line).ok(),
            at.what.clone(),
        ),
        None => (".github".to_owned(), None, error.message.clone()),
    };
    let lines: Vec<String> = std::iter::once(what)
        .chain(error.hints.iter().cloned())
        .collect();
    Annotation {
        level: Level::Error,
        path,
        line,
        title: "Sprag cannot begin".to_owned(),
        message: text::block(&lines.join("\n")),
        ..Annotation::default()
    }
}

fn step_summary(error: &Error) -> String {
    let text = text::block(&error.to_string());
    format!("## ❌ Sprag cannot begin\n\n{}\n", fenced(&text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_runner_would_obey_is_neutral() {
        let error = Error::config("the work tree is not clean:\n    ::add-mask::x\n    ##[error]y")
            .hint("::error::z");
        assert_eq!(
            actions_log(&error),
            "the work tree is not clean:\n: :add-mask::x\n    ## [error]y\n: :error::z"
        );
        let commands = annotation_commands(&[annotation(&error)]);
        assert_eq!(
            commands,
            [
                "::error file=.github,title=Sprag cannot begin::the work tree is not clean:%0A: :add-mask::x%0A    ## [error]y%0A: :error::z"
            ]
        );
    }
}
