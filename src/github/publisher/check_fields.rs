//! Converts reports into the fields of a check run.

use crate::domain::check_run::CheckOutput;
use crate::domain::outcomes::RunLine;
use crate::domain::summary::RunSummary;
use crate::github::api::{Annotation, CheckRun, CheckStatus, CheckUpdate, Conclusion, Output};
use crate::report::annotation::{Annotation as Note, Level};
use crate::report::markdown;

/// The update that completes a check run.
pub(super) fn completed(conclusion: Conclusion, output: Output) -> CheckUpdate {
    CheckUpdate {
        status: Some(CheckStatus::Completed),
        conclusion: Some(conclusion),
        output: Some(output),
        details_url: None,
    }
}

/// The update that replaces an ended check run by a later one of the same commit. `None` if there is nothing to
/// replace, or the later one ended without a verdict.
pub(super) fn replacement(earlier: &CheckRun, by: &CheckRun) -> Option<CheckUpdate> {
    let verdict = by.conclusion.as_deref();
    let is_of_it = !matches!(verdict, Some("neutral" | "cancelled") | None)
        && earlier.name == by.name
        && earlier.status == "completed"
        && earlier.conclusion.as_deref() != Some("neutral")
        && earlier.head_sha.eq_ignore_ascii_case(&by.head_sha);
    let url = &by.html_url;
    let there = format!("[A later run]({url}) on this commit replaces the result of this one.");
    let room = markdown::CHECK_RUN_BYTES.saturating_sub(there.len() + 2);
    let kept = earlier.output.summary.floor_char_boundary(room);
    let kept = earlier.output.summary.get(..kept).unwrap_or_default();
    let output = Output {
        title: earlier.output.title.clone(),
        summary: format!("{there}\n\n{kept}"),
        text: Some(earlier.output.text.clone()).filter(|text| !text.is_empty()),
        annotations: Vec::new(),
    };
    is_of_it.then(|| completed(Conclusion::Neutral, output))
}

/// A report as the output of a check run, without annotations.
pub(super) fn plain_output(text: &CheckOutput) -> Output {
    Output {
        title: text.title.clone(),
        summary: text.summary.clone(),
        text: Some(text.text.clone()).filter(|text| !text.is_empty()),
        annotations: Vec::new(),
    }
}

/// Adds the result of the run below the text, invisibly, in the form that `sprag outcomes` reads.
pub(super) fn with_outcome(output: Output, summary: &RunSummary) -> Output {
    let marker = RunLine::of(summary).marker();
    let mut text = output.text.unwrap_or_default();
    if text.len() <= markdown::CHECK_RUN_BYTES.saturating_sub(marker.len() + 2) {
        text += &format!("\n\n{marker}");
    }
    Output {
        text: Some(text.trim_start().to_owned()),
        ..output
    }
}

/// An annotation as GitHub takes it.
pub(super) fn annotated(note: &Note) -> Annotation {
    let first = note.line.unwrap_or(1);
    Annotation {
        path: note.path.clone(),
        start_line: first,
        end_line: note.end_line.unwrap_or(first),
        start_column: note.columns().map(|(first, _)| first),
        end_column: note.columns().map(|(_, last)| last),
        annotation_level: match note.level {
            Level::Error => "failure",
            Level::Warning => "warning",
            Level::Notice => "notice",
        },
        message: note.message.clone(),
        title: Some(note.title.clone()),
        raw_details: note.details.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::annotated;
    use crate::domain::summary::RunSummary;
    use crate::report::check_annotation::check_annotations;
    use crate::report::samples;
    use serde_json::json;

    #[test]
    fn places_and_details_of_a_diagnostic_reach_the_check_run() {
        let mut summary = samples::partial();
        let found = &mut summary.tasks[1].checks[1].diagnostics[0];
        (found.column, found.end_column) = (Some(7), Some(12));
        found.details = Some("left: 1\nright: 2".into());
        let sent = |summary: &RunSummary| {
            let (notes, _) = check_annotations(summary);
            serde_json::to_value(annotated(&notes[0])).unwrap()
        };
        let first = sent(&summary);
        for (field, value) in [
            ("start_line", json!(41)),
            ("end_line", json!(41)),
            ("start_column", json!(7)),
            ("end_column", json!(12)),
            ("raw_details", json!("left: 1\nright: 2")),
        ] {
            assert_eq!(first[field], value, "{field}");
        }
        summary.tasks[1].checks[1].diagnostics[0].end_line = Some(43);
        let first = sent(&summary);
        assert_eq!(first["end_line"], json!(43));
        assert!(first["start_column"].is_null());
    }
}
