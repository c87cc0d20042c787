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
    let note = Some(annotation(error));
    let (end, summary) = (end_of(error.kind), step_summary(error));
    let (why, report_status) = (&error.message, ReportStatus::Ok);
    tell(context, note, &summary, end, why, report_status, out);
}

/// Reports in an annotation, the step summary and the outputs how a job ends in which no run starts, and why. `out` is
/// the log of the step.
pub(super) fn tell(
    context: &Context,
    note: Option<Annotation>,
    summary: &str,
    end: (RunStatus, Reason),
    why: &str,
    mut report_status: ReportStatus,
    out: &mut impl Write,
) {
    for command in note
        .into_iter()
        .flat_map(|note| annotation_commands(&[note]))
    {
        // Without a log there is no other place to report it.
        let _ = writeln!(out, "{command}");
    }
    if let Some(path) = context.path_var("GITHUB_STEP_SUMMARY")
        && append(&path, summary).is_err()
    {
        report_status = ReportStatus::Degraded;
    }
    if let Some(path) = context.path_var("GITHUB_OUTPUT") {
        let delimiter = format!("sprag_{}", uuid::Uuid::new_v4().simple());
        let outputs = of_no_run(end.0, end.1, why, report_status, &delimiter);
        if let Err(error) = append(&path, &outputs) {
            let _ = writeln!(out, "{}", neutral(&format!("no outputs: {error:#}")));
        }
    }
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

fn append(path: &Path, text: &str) -> anyhow::Result<()> {
    append_only(path)?.write_all(text.as_bytes())?;
    Ok(())
}

fn annotation(error: &Error) -> Annotation {
    let at = error.at.as_ref();
    let mut lines = vec![at.map_or(&error.message, |at| &at.what).as_str()];
    lines.extend(error.hints.iter().map(String::as_str));
    Annotation {
        level: Level::Error,
        path: at.map_or(".github", |at| &at.file).to_owned(),
        line: at.and_then(|at| u32::try_from(at.line).ok()),
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
