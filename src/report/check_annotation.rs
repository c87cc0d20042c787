//! The annotations of the check run, within GitHub's limits.

use super::annotation::{self, Annotation, DETAILS_BYTES};
use super::text;
use crate::domain::summary::RunSummary;

/// Maximum number of annotations of one check run. Hundreds of them freeze the page.
const MAX_ANNOTATIONS: usize = 200;

const TITLE_BYTES: usize = 255;
const TEXT_BYTES: usize = 64 * 1024;

/// The most important annotations, at most [`MAX_ANNOTATIONS`], each with a first and a last line, and the
/// number of those left out.
pub fn check_annotations(summary: &RunSummary) -> (Vec<Annotation>, usize) {
    let mut all = annotation::annotations(summary);
    let rest = all.len().saturating_sub(MAX_ANNOTATIONS);
    all.truncate(MAX_ANNOTATIONS);
    (all.into_iter().map(within_limits).collect(), rest)
}

fn within_limits(note: Annotation) -> Annotation {
    let path = inside(&note.path);
    let start = note.line.filter(|_| path.is_some()).unwrap_or(1);
    let end = note.end_line.filter(|_| path.is_some()).unwrap_or(start);
    let (column, end_column) = note.columns().filter(|_| path.is_some()).unzip();
    let cut = |text: &str, most| text::head_bytes(text, most).to_owned();
    let details = note.details.map(|text| cut(&text, DETAILS_BYTES));
    let message = Some(cut(&note.message, TEXT_BYTES)).filter(|text| !text.is_empty());
    Annotation {
        level: note.level,
        path: path.unwrap_or_else(|| ".github".into()),
        line: Some(start),
        end_line: Some(end.max(start)),
        column,
        end_column,
        title: cut(&note.title, TITLE_BYTES),
        message: message.unwrap_or_else(|| "no message".into()),
        details: details.filter(|text| !text.is_empty()),
    }
}

/// A relative path that does not leave the tree.
fn inside(path: &str) -> Option<String> {
    let path = path.strip_prefix("./").unwrap_or(path);
    let parts_fit = path.split('/').all(|part| !matches!(part, "" | "." | ".."));
    let is_plain = !path.contains(['\\', ':']) && path.len() <= 1_000;
    (parts_fit && is_plain).then(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::checks::diagnostic::Diagnostic;
    use crate::report::annotation::Level;
    use crate::report::samples;

    #[test]
    fn failing_lines_are_failures_on_their_lines_and_the_task_has_the_output() {
        let (notes, rest) = check_annotations(&samples::partial());
        let first = &notes[0];
        assert_eq!(rest, 0);
        assert_eq!(
            (first.level, first.path.as_str(), first.line),
            (Level::Error, "src/report.rs", Some(41))
        );
        let task = notes
            .iter()
            .find(|note| note.title.starts_with("t2 failed"))
            .unwrap();
        assert_eq!((task.path.as_str(), task.line), ("plans/csv.yaml", Some(8)));
        assert!(task.details.as_ref().unwrap().contains("csv::header"));
        assert!(notes.is_sorted_by_key(|note| note.level));
    }

    #[test]
    fn a_check_that_failed_again_on_the_same_tree_is_told_once() {
        let mut summary = samples::partial();
        let task = &mut summary.tasks[1];
        let mut again = task.checks.last().unwrap().clone();
        again.log = Some("verify/09-test.log".into());
        task.checks.push(again);
        let told: Vec<Option<&str>> = annotation::last_failing(task)
            .map(|check| check.log.as_deref())
            .collect();
        assert_eq!(told, [Some("verify/09-test.log")]);
        let text = crate::report::markdown::step_summary(&summary, 100_000);
        assert_eq!(text.matches("**Check `test`** in attempt 2").count(), 1);
    }

    #[test]
    fn skipped_checks_and_leftovers_are_notices() {
        use crate::domain::checks::verdict::CheckKind;
        use crate::domain::event::WarningTopic;
        let mut summary = samples::partial();
        let left = "these files of checks stay here: a.log".to_owned();
        summary.warnings.clear();
        summary.warn("something else".into(), None);
        summary.warn(left.clone(), Some(WarningTopic::CheckArtifacts));
        summary.facts.checks = vec!["test".into(), "lint".into()];
        let failing = |summary: &mut RunSummary, kind| {
            for check in &mut summary.tasks[1].checks {
                check.kind = kind;
            }
            check_annotations(summary).0
        };
        let levels = |notes: &[Annotation], message: &str| -> Vec<Level> {
            let found = notes.iter().filter(|note| note.message == message);
            found.map(|note| note.level).collect()
        };
        let notes = failing(&mut summary, CheckKind::Test);
        let skipped = "not run because the check test failed: lint";
        assert_eq!(levels(&notes, &left), [Level::Notice]);
        assert_eq!(levels(&notes, "something else"), [Level::Warning]);
        assert_eq!(levels(&notes, skipped), []);
        let notes = failing(&mut summary, CheckKind::Build);
        assert_eq!(levels(&notes, skipped), [Level::Notice]);
    }

    #[test]
    fn columns_stand_on_one_line_only() {
        let mut summary = samples::partial();
        let place = &mut summary.tasks[1].checks[1].diagnostics[0];
        (place.column, place.end_line) = (Some(7), None);
        assert_eq!(check_annotations(&summary).0[0].column, Some(7));
        summary.tasks[1].checks[1].diagnostics[0].end_line = Some(44);
        let (notes, _) = check_annotations(&summary);
        assert_eq!((notes[0].column, notes[0].end_line), (None, Some(44)));
        summary.tasks[1].checks[1].diagnostics[0].end_line = Some(2);
        assert_eq!(check_annotations(&summary).0[0].end_line, Some(41));
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
            (notes[0].path.as_str(), notes[0].line),
            (".github", Some(1))
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
        assert_eq!(
            (notes.len(), rest),
            (MAX_ANNOTATIONS, whole - MAX_ANNOTATIONS)
        );
        for note in notes {
            assert!(note.title.len() <= TITLE_BYTES && note.message.len() <= TEXT_BYTES);
            assert!(
                note.details
                    .is_none_or(|details| details.len() <= TEXT_BYTES)
            );
        }
    }
}
