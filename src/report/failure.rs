//! The failures that every report shows first: the place and the message of each.

use super::{annotation, text};
use crate::domain::outcome::TaskEnd;
use crate::domain::review;
use crate::domain::summary::{CheckLine, RunSummary, TaskSummary};
use std::collections::HashSet;

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

impl Failure {
    /// Who found it.
    pub fn who(&self) -> String {
        match &self.check {
            Some(check) => format!("check {}", text::short_line(check, 60)),
            None => "review".to_owned(),
        }
    }
}

/// The failures that keep tasks from being done, in the order of the tasks: the first ones of each check.
pub fn failures(summary: &RunSummary) -> Vec<Failure> {
    let tasks = summary.tasks.iter();
    let undone = tasks.filter(|task| task.status != TaskEnd::Done);
    let mut failures: Vec<Failure> = undone.flat_map(of_task).collect();
    // A check that runs again in the same attempt repeats its failures.
    let mut seen = HashSet::new();
    failures.retain(|it| {
        let (task, check, place) = (it.task.clone(), it.check.clone(), it.place.clone());
        seen.insert((task, check, place, it.message.clone()))
    });
    failures
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
    let found = review::open(&task.findings).take(MAX_OF_A_CHECK);
    let found = found.map(|finding| {
        let place = format!("{}:{}", text::line(&finding.path), finding.line);
        failure(task, None, Some(place), &finding.text, "")
    });
    let failing = annotation::last_failing(task).flat_map(|check| of_check(task, check));
    failing.chain(found).collect()
}

fn of_check(task: &TaskSummary, check: &CheckLine) -> Vec<Failure> {
    let shown = check.diagnostics.iter().take(MAX_OF_A_CHECK);
    let told: Vec<Failure> = shown
        .map(|it| {
            let numbers = [it.line, it.column].into_iter().flatten();
            let numbers: String = numbers.map(|number| format!(":{number}")).collect();
            let place = it.path.as_deref();
            let place = place.map(|path| text::line(path) + &numbers);
            let details = it.details.as_deref().unwrap_or_default();
            failure(task, Some(&check.name), place, &it.message, details)
        })
        .collect();
    if !told.is_empty() {
        return told;
    }
    // If nothing is known about its lines, the record in the history is used.
    let mut entries = task.work.history.iter().rev();
    let known = entries.find_map(|entry| entry.errors.first());
    let message = known.unwrap_or(&check.detail);
    vec![failure(task, Some(&check.name), None, message, "")]
}

/// A failure with the first line of its words as its message.
fn failure(
    task: &TaskSummary,
    check: Option<&String>,
    place: Option<String>,
    words: &str,
    details: &str,
) -> Failure {
    let mut lines = words.lines().filter(|line| !line.trim().is_empty());
    let message = text::short_line(lines.next().unwrap_or_default(), LINE_CHARS);
    let more: Vec<&str> = lines.chain(details.lines()).take(MORE_LINES).collect();
    Failure {
        task: task.id.clone(),
        check: check.cloned(),
        place,
        message,
        more: more.join("\n"),
    }
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
