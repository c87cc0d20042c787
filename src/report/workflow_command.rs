//! Workflow commands of GitHub Actions: groups and annotations in the log of a step.

use super::actions_log::{ActionsLog, neutral};
use super::annotation::{Annotation, Level, annotations};
use super::{Reporter, text};
use crate::domain::event::{Event, EventKind};
use crate::domain::summary::RunSummary;
use std::io;

/// Maximum number of annotations of one level that GitHub shows for a step. It drops the others without
/// notice.
const MAX_PER_LEVEL: usize = 10;

/// Writes groups when tasks start and end, and annotations at the end of the run. Add it before the console,
/// so that the end of a task is logged outside of its group.
pub struct WorkflowCommands {
    log: ActionsLog,
    annotates: bool,
    in_group: bool,
}

impl WorkflowCommands {
    /// Writes to `log`, which the console also writes to. Without `annotates` only groups, for runs whose annotations
    /// are shown elsewhere.
    pub fn new(log: ActionsLog, annotates: bool) -> Self {
        Self {
            log,
            annotates,
            in_group: false,
        }
    }

    fn commands(&mut self, event: &Event, summary: &RunSummary) -> Vec<String> {
        let mut commands = Vec::new();
        let ends = matches!(
            event.kind,
            EventKind::TaskStarted { .. } | EventKind::TaskEnded(_) | EventKind::RunEnded { .. }
        );
        if ends && std::mem::take(&mut self.in_group) {
            commands.push("::endgroup::".to_owned());
        }
        match &event.kind {
            EventKind::TaskStarted { title } => {
                self.in_group = true;
                let task = event.place.task.as_deref().unwrap_or("");
                commands.push(group(&format!("{task} {title}")));
            }
            EventKind::RunEnded { .. } if self.annotates => {
                commands.extend(annotation_commands(&annotations(summary)));
            }
            _ => {}
        }
        commands
    }
}

impl Reporter for WorkflowCommands {
    fn report(&mut self, event: &Event, summary: &RunSummary) -> io::Result<()> {
        let commands = self.commands(event, summary);
        self.log.command(&commands)?;
        match event.kind {
            EventKind::RunEnded { .. } => self.log.finish(),
            _ => Ok(()),
        }
    }
}

/// Opens a foldable group.
pub fn group(title: &str) -> String {
    format!("::group::{}", data(&text::short_line(title, 200)))
}

/// Annotations as commands, within the number that GitHub shows for a step. The last one of each level counts
/// those left out.
pub fn annotation_commands(notes: &[Annotation]) -> Vec<String> {
    let levels = [Level::Error, Level::Warning, Level::Notice];
    let commands = levels.map(|level| of_level(notes, level));
    commands.concat()
}

fn of_level(notes: &[Annotation], level: Level) -> Vec<String> {
    let notes = notes.iter().filter(|note| note.level == level);
    let mut commands: Vec<String> = notes.map(command).collect();
    if commands.len() > MAX_PER_LEVEL {
        let rest = commands.split_off(MAX_PER_LEVEL - 1).len();
        let name = <&str>::from(level);
        let more = text::count(rest as u64, name);
        commands.push(format!(
            "::{name} title=Sprag::{more} more: see the step summary"
        ));
    }
    commands
}

fn command(note: &Annotation) -> String {
    let (first, last) = note.columns().unzip();
    let place = [
        ("line", note.line),
        ("endLine", note.end_line.filter(|_| note.line.is_some())),
        ("col", first),
        ("endColumn", last.filter(|_| last != first)),
    ];
    let place = place.map(|(name, number)| {
        let number = number.map(|number| format!(",{name}={number}"));
        number.unwrap_or_default()
    });
    format!(
        "::{} file={}{},title={}::{}",
        <&str>::from(note.level),
        property(&note.path),
        place.concat(),
        property(&note.title),
        data(&note.message)
    )
}

/// Escapes a command's text. The text that the runner prints contains no command either.
pub fn data(text: &str) -> String {
    let lines: Vec<String> = text.split('\n').map(neutral).collect();
    lines
        .join("\n")
        .replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

/// Escapes a property of a command.
pub fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::samples;
    use proptest::prelude::*;

    fn note(level: Level, n: u32) -> Annotation {
        Annotation {
            level,
            path: "src/a,b.rs".into(),
            line: Some(n),
            title: "test: failed".into(),
            message: "100%\nleft: 1".into(),
            ..Annotation::default()
        }
    }

    #[test]
    fn a_command_is_escaped() {
        assert_eq!(
            annotation_commands(&[note(Level::Error, 7)]),
            ["::error file=src/a%2Cb.rs,line=7,title=test%3A failed::100%25%0Aleft: 1"]
        );
    }

    #[test]
    fn a_command_tells_the_whole_place() {
        let at = |end_line, column, end_column| {
            let note = Annotation {
                end_line,
                column,
                end_column,
                ..note(Level::Error, 7)
            };
            let command = annotation_commands(&[note]).remove(0);
            command.split(",title=").next().unwrap().to_owned()
        };
        let file = "::error file=src/a%2Cb.rs,line=7";
        assert_eq!(at(None, Some(3), None), format!("{file},col=3"));
        assert_eq!(
            at(None, Some(3), Some(9)),
            format!("{file},col=3,endColumn=9")
        );
        assert_eq!(at(Some(8), Some(3), Some(9)), format!("{file},endLine=8"));
        assert_eq!(at(None, None, Some(9)), file);
    }

    #[test]
    fn what_github_would_drop_is_counted() {
        let notes: Vec<Annotation> = (1..=12)
            .map(|n| note(Level::Error, n))
            .chain((1..=10).map(|n| note(Level::Warning, n)))
            .collect();
        let commands = annotation_commands(&notes);
        assert_eq!(commands.len(), 20);
        assert_eq!(
            commands[9],
            "::error title=Sprag::3 errors more: see the step summary"
        );
        assert!(commands[19].starts_with("::warning file="));
    }

    #[test]
    fn failing_lines_come_first_then_stagnation_on_the_plan() {
        insta::assert_snapshot!(annotation_commands(&annotations(&samples::partial())).join("\n"), @r"
        ::error file=src/report.rs,line=41,title=test failed::assertion `left == right` failed: header differs
        ::error file=plans/csv.yaml,line=8,title=t2 failed (verification_failed)::the checks still fail and no retry is left
        ::error file=plans/csv.yaml,title=Sprag%3A the run's result::partial (verification_failed): 1 of 3 tasks done, t2 failed
        ::warning file=plans/csv.yaml,line=8,title=t2%3A 1 retry::attempt 1: failed tests: assertion `left == right` failed: header differs%0Aattempt 2: failed tests: assertion `left == right` failed: header differs; test csv::quote failed
        ::warning file=plans/csv.yaml,title=Sprag::files that the checks left behind: target/out.csv
        ::notice file=plans/csv.yaml,line=12,title=t3 pending::not reached
        ");
        insta::assert_snapshot!(annotation_commands(&annotations(&samples::planning_only())).join("\n"), @r"
        ::error file=plans/csv.yaml,title=Sprag%3A the run's result::failed (planning_only): 0 of 1 task done
        ::warning file=plans/csv.yaml,line=4,title=t1 failed (planning_only)::the agent planned and never changed a file
        ::warning file=plans/csv.yaml,line=4,title=t1%3A 3 nudges::turn 1: planned, changed nothing: I'll implement the route next · 1. Plan the columns%0Aturn 2: planned, changed nothing: Proceeding with the route%0Aturn 3: planned, changed nothing: Proceeding with the route%0Aturn 4: planned, changed nothing: Proceeding with the route
        ");
    }

    #[test]
    fn without_a_plan_file_notes_are_on_github() {
        let mut summary = samples::planning_only();
        summary.facts.plan.path = None;
        assert!(
            annotations(&summary)
                .iter()
                .all(|note| note.path == ".github" && note.line.is_none())
        );
    }

    proptest! {
        #[test]
        fn a_property_ends_no_command_and_data_ends_no_line(text in any::<String>()) {
            prop_assert!(!property(&text).contains([':', ',', '\r', '\n']));
            let data = data(&text);
            prop_assert!(!data.contains(['\r', '\n']));
            prop_assert!(!data.contains("##["));
        }
    }
}
