//! The lists that the report in Markdown and the page have in common. Both only escape, cut and mark them up.

use super::{sentence, text};
use crate::domain::review;
use crate::domain::sandbox::denied_words;
use crate::domain::summary::{RunSummary, TaskSummary};

/// A list with its heading.
pub struct Section {
    /// Its heading.
    pub heading: &'static str,
    /// One of its lines in a word, to count those that are left out.
    pub unit: &'static str,
    /// The lines: a name, such as a place or a test, and the words about it.
    pub lines: Vec<(String, String)>,
}

impl Section {
    fn new(
        heading: &'static str,
        unit: &'static str,
        lines: impl Iterator<Item = (String, String)>,
    ) -> Self {
        Self {
            heading,
            unit,
            lines: lines.collect(),
        }
    }
}

/// The verdict of each review, the findings with open ones first, the cause of each failing test, and the results of
/// further runs of the checks.
pub fn of_task(task: &TaskSummary) -> [Section; 4] {
    let reviews = task.reviews.iter().map(sentence::review);
    let findings = review::open_first(&task.findings).map(|finding| {
        let (text, state) = (&finding.text, sentence::finding_state(finding));
        (
            format!("{}:{}", finding.path, finding.line),
            format!("{text} ({state})"),
        )
    });
    let tests = sentence::blamed(&task.work.failing_tests).iter();
    let tests = tests.map(|test| (test.name(), test.blame.as_str().to_owned()));
    let proofs = task.proofs.iter().map(|line| {
        let (attempt, took) = (line.attempt, text::duration(line.elapsed_ms));
        let says = format!("{} (in attempt {attempt}, {took})", line.says());
        (line.proof.as_str().to_owned(), says)
    });
    [
        Section::new("Reviews", "review", reviews.map(unnamed)),
        Section::new("Findings", "finding", findings),
        Section::new("Failing tests", "failing test", tests),
        Section::new("Proofs", "proof", proofs),
    ]
}

/// The notes that tasks left for later ones, newest first, and the warnings.
pub fn of_run(summary: &RunSummary) -> [Section; 2] {
    let notes = summary.notes.iter().rev();
    let notes = notes.map(|note| (note.task.clone(), note.text.clone()));
    let denied = Some(summary.denied_hosts()).filter(|denied| !denied.is_empty());
    let denied = denied.map(denied_words).into_iter();
    let warnings = denied.chain(summary.warnings.iter().cloned());
    [
        Section::new("Notes for later tasks", "note", notes),
        Section::new("Warnings", "warning", warnings.map(unnamed)),
    ]
}

fn unnamed(words: String) -> (String, String) {
    (String::new(), words)
}
