//! The annotations of the check run, within GitHub's limits.

use super::annotation::{self, Annotation, Level, last_failing};
use super::{sentence, text};
use crate::domain::check_run::{CheckAnnotation, CheckLevel};
use crate::domain::checks::diagnostic::Diagnostic;
use crate::domain::summary::RunSummary;

/// Most annotations of one check run; hundreds of them freeze the page.
pub const MOST: usize = 200;

const TITLE_BYTES: usize = 255;
const TEXT_BYTES: usize = 64 * 1024;

/// At most [`MOST`] annotations, the most important first, and how many more there would be.
pub fn check_annotations(summary: &RunSummary) -> (Vec<CheckAnnotation>, usize) {
    let all = annotation::annotations(summary);
    let rest = all.len().saturating_sub(MOST);
    let shown = all.into_iter().take(MOST);
    (
        shown.map(|note| within_limits(summary, note)).collect(),
        rest,
    )
}

fn within_limits(summary: &RunSummary, note: Annotation) -> CheckAnnotation {
    let path = inside(&note.path);
    let place = path.as_ref().and_then(|_| place_of(summary, &note));
    let start = note.line.filter(|_| path.is_some()).unwrap_or(1);
    let end = place
        .and_then(|place| place.end_line)
        .unwrap_or(start)
        .max(start);
    let column = place
        .and_then(|place| place.column)
        .filter(|&column| column > 0);
    let column = column.filter(|_| start == end);
    CheckAnnotation {
        level: match note.level {
            Level::Error => CheckLevel::Failure,
            Level::Warning => CheckLevel::Warning,
            Level::Notice => CheckLevel::Notice,
        },
        path: path.unwrap_or_else(|| ".github".into()),
        start_line: start,
        end_line: end,
        start_column: column,
        end_column: column,
        title: text::head_bytes(&note.title, TITLE_BYTES).to_owned(),
        raw_details: details(summary, &note),
        message: match text::head_bytes(&note.message, TEXT_BYTES) {
            "" => "no message".into(),
            message => message.to_owned(),
        },
    }
}

/// The diagnostic that a note was made of.
fn place_of<'s>(summary: &'s RunSummary, note: &Annotation) -> Option<&'s Diagnostic> {
    let undone = summary
        .tasks
        .iter()
        .filter(|task| sentence::is_undone(task));
    let mut all = undone
        .flat_map(last_failing)
        .flat_map(|check| &check.diagnostics);
    all.find(|found| {
        found.line == note.line
            && found.path.as_deref().map(text::line).as_deref() == Some(note.path.as_str())
            && note
                .message
                .starts_with(text::head_bytes(&text::block(&found.message), 200))
    })
}

/// The output of the check, on the first note of a task that did not get done.
fn details(summary: &RunSummary, note: &Annotation) -> Option<String> {
    let task = summary.tasks.iter().find(|task| {
        let reason = task.reason.map_or("", |reason| reason.as_str());
        let title = format!("{} {} ({reason})", task.id, task.status.as_str());
        sentence::is_undone(task) && text::line(&title) == note.title
    })?;
    let excerpt = last_failing(task).find_map(|check| check.excerpt.as_deref())?;
    Some(text::tail_bytes(&text::block(excerpt), TEXT_BYTES).to_owned())
}

/// A relative path that stays in the tree.
fn inside(path: &str) -> Option<String> {
    let path = path.strip_prefix("./").unwrap_or(path);
    let parts_fit = path
        .split('/')
        .all(|part| !part.is_empty() && part != ".." && part != ".");
    let is_plain = !path.contains(['\\', ':']) && path.len() <= 1_000;
    (parts_fit && is_plain).then(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::samples;

    #[test]
    fn failing_lines_are_failures_on_their_lines_and_the_task_has_the_output() {
        let (notes, rest) = check_annotations(&samples::partial());
        let first = &notes[0];
        assert_eq!(rest, 0);
        assert_eq!(
            (first.level, first.path.as_str(), first.start_line),
            (CheckLevel::Failure, "src/report.rs", 41)
        );
        let task = notes
            .iter()
            .find(|note| note.title.starts_with("t2 failed"))
            .unwrap();
        assert_eq!((task.path.as_str(), task.start_line), ("plans/csv.yaml", 8));
        assert!(task.raw_details.as_ref().unwrap().contains("csv::header"));
        assert!(notes.is_sorted_by_key(|note| note.level));
    }

    #[test]
    fn columns_stand_on_one_line_only() {
        let mut summary = samples::partial();
        let place = &mut summary.tasks[1].checks[1].diagnostics[0];
        (place.column, place.end_line) = (Some(7), None);
        assert_eq!(check_annotations(&summary).0[0].start_column, Some(7));
        summary.tasks[1].checks[1].diagnostics[0].end_line = Some(44);
        let (notes, _) = check_annotations(&summary);
        assert_eq!((notes[0].start_column, notes[0].end_line), (None, 44));
        summary.tasks[1].checks[1].diagnostics[0].end_line = Some(2);
        assert_eq!(check_annotations(&summary).0[0].end_line, 41);
    }

    #[test]
    fn a_path_out_of_the_tree_is_none() {
        for path in [
            "../x",
            "/etc/passwd",
            "a/../../b",
            "C:\\x",
            "a//b",
            "",
            "a/",
            "file://x",
        ] {
            assert_eq!(inside(path), None, "{path}");
        }
        assert_eq!(inside("./src/a b.rs").as_deref(), Some("src/a b.rs"));
        let mut summary = samples::partial();
        summary.tasks[1].checks[1].diagnostics[0].path = Some("../../etc/passwd".into());
        let (notes, _) = check_annotations(&summary);
        assert_eq!(
            (notes[0].path.as_str(), notes[0].start_line),
            (".github", 1)
        );
    }

    #[test]
    fn more_than_two_hundred_are_counted() {
        let mut summary = samples::partial();
        let place = summary.tasks[1].checks[1].diagnostics[0].clone();
        let many = (1..=1_234).map(|line| Diagnostic {
            line: Some(line),
            ..place.clone()
        });
        summary.tasks[1].checks[1].diagnostics = many.collect();
        summary.tasks[1].title = "é".repeat(70_000);
        summary.tasks[1].checks[1].excerpt = Some("é".repeat(70_000));
        let whole = annotation::annotations(&summary).len();
        let (notes, rest) = check_annotations(&summary);
        assert_eq!((notes.len(), rest), (MOST, whole - MOST));
        for note in notes {
            assert!(note.title.len() <= TITLE_BYTES && note.message.len() <= TEXT_BYTES);
            assert!(
                note.raw_details
                    .is_none_or(|details| details.len() <= TEXT_BYTES)
            );
        }
    }
}
