//! The failures that every report shows first: the place and the message of each.

use super::{annotation, text};
use crate::domain::outcome::TaskEnd;
use crate::domain::review;
use crate::domain::summary::{CheckLine, RunSummary, TaskSummary};
use std::collections::{BTreeSet, HashSet};

/// Maximum number of shown failures of one check.
const MAX_OF_A_CHECK: usize = 5;
/// Maximum length of a line in characters.
const LINE_CHARS: usize = 300;
/// Maximum number of lines of a tool's further output.
const MORE_LINES: usize = 8;

/// A failure of a check, or an unresolved finding of a review.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The task.
    pub task: String,
    /// The check, or `None` for a finding of a review.
    pub check: Option<String>,
    /// File, line and column, if the tool names them.
    pub place: Option<String>,
    /// The first line of the message.
    pub message: String,
    /// The remaining lines of the message, and the tool's further output about it.
    pub more: String,
}

/// The failures that keep tasks from being done, in the order of the tasks: the first ones of each check.
pub fn failures(summary: &RunSummary) -> Vec<Failure> {
    let undone = summary
        .tasks
        .iter()
        .filter(|task| task.status != TaskEnd::Done);
    // A check that runs again in the same attempt repeats its failures.
    let mut seen = BTreeSet::new();
    let is_new = |it: &Failure| {
        seen.insert((
            it.task.clone(),
            it.check.clone(),
            it.place.clone(),
            it.message.clone(),
        ))
    };
    undone.flat_map(of_task).filter(is_new).collect()
}

/// How many failures keep a task from being done. [`failures`] has the first ones of each check.
pub fn count(task: &TaskSummary) -> usize {
    if task.status == TaskEnd::Done {
        return 0;
    }
    let mut seen = HashSet::new();
    for check in annotation::last_failing(task) {
        let name = check.name.as_str();
        let places = check.diagnostics.iter().map(|it| {
            let place = (it.path.as_deref(), it.line, it.column);
            (name, Some((place, it.message.as_str())))
        });
        seen.extend(places);
        if check.diagnostics.is_empty() {
            seen.insert((name, None));
        }
    }
    seen.len() + review::open(&task.findings).count()
}

fn of_task(task: &TaskSummary) -> Vec<Failure> {
    let found = review::open(&task.findings)
        .take(MAX_OF_A_CHECK)
        .map(|finding| Failure {
            task: task.id.clone(),
            check: None,
            place: Some(format!("{}:{}", text::line(&finding.path), finding.line)),
            message: text::short_line(&finding.text, LINE_CHARS),
            more: String::new(),
        });
    let failing = annotation::last_failing(task).flat_map(|check| of_check(task, check));
    failing.chain(found).collect()
}

fn of_check(task: &TaskSummary, check: &CheckLine) -> Vec<Failure> {
    let of = |place: Option<String>, words: &str, details: &str| {
        let mut lines = words.lines().filter(|line| !line.trim().is_empty());
        let message = text::short_line(lines.next().unwrap_or_default(), LINE_CHARS);
        let more = lines.chain(details.lines()).take(MORE_LINES);
        Failure {
            task: task.id.clone(),
            check: Some(check.name.clone()),
            place,
            message,
            more: more.collect::<Vec<_>>().join("\n"),
        }
    };
    let told: Vec<Failure> = check
        .diagnostics
        .iter()
        .take(MAX_OF_A_CHECK)
        .map(|it| {
            let numbers = [it.line, it.column].into_iter().flatten();
            let place = it.path.as_deref().map(|path| {
                numbers.fold(text::line(path), |place, number| {
                    format!("{place}:{number}")
                })
            });
            of(
                place,
                &it.message,
                it.details.as_deref().unwrap_or_default(),
            )
        })
        .collect();
    if !told.is_empty() {
        return told;
    }
    // If nothing is known about its lines, the record in the history is used.
    let last = task
        .history
        .iter()
        .rev()
        .find(|entry| !entry.errors.is_empty());
    let known = last.and_then(|entry| entry.errors.first());
    vec![of(None, known.unwrap_or(&check.detail), "")]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::checks::diagnostic::Diagnostic;
    use crate::report::samples;

    #[test]
    fn the_failure_of_a_task_that_is_not_done_is_told_with_its_message() {
        let told = failures(&samples::partial());
        assert_eq!(told[0].task, "t2");
        assert_eq!(told[0].check.as_deref(), Some("test"));
        assert!(!told[0].message.is_empty());
        assert_eq!(failures(&samples::success()), []);
    }

    #[test]
    fn all_failures_are_counted_and_none_twice() {
        let mut summary = samples::partial();
        let place = summary.tasks[1].checks[1].diagnostics[0].clone();
        let many = (1..=100).chain(1..=100).map(|line| Diagnostic {
            line: Some(line),
            ..place.clone()
        });
        summary.tasks[1].checks[1].diagnostics = many.collect();
        assert_eq!(failures(&summary).len(), MAX_OF_A_CHECK);
        assert_eq!(count(&summary.tasks[1]), 100);
        summary.tasks[1].checks[1].diagnostics.clear();
        assert_eq!(count(&summary.tasks[1]), 1);
        assert_eq!(count(&summary.tasks[0]), 0);
    }
}
