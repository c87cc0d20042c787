//! A task's history: every record is on the disk before the next effect begins.

use crate::domain::attempt::{Observation, Record, Step, TaskState, fold};
use crate::run::directory::{HistoryFile, HistoryLine};

/// The history of one task and the state that follows from it.
#[derive(Debug)]
pub struct Journal {
    task: String,
    file: HistoryFile,
    next: u64,
    /// What follows from the history.
    pub state: TaskState,
}

impl Journal {
    /// Goes on with a task's history.
    pub fn new(task: &str, file: HistoryFile, earlier: &[Record]) -> Self {
        let next = earlier.iter().map(number).max().unwrap_or(0);
        Self {
            task: task.to_owned(),
            file,
            next,
            state: fold(earlier),
        }
    }

    /// Records what is about to be done.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn intend(&mut self, step: Step) -> anyhow::Result<()> {
        self.next += 1;
        self.write(Record::Intent {
            id: self.next,
            step,
        })
    }

    /// Records what came of it.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn observe(&mut self, observation: Observation) -> anyhow::Result<()> {
        self.write(Record::Observed {
            id: self.next,
            observation,
        })
    }

    /// Records that the task is over.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn finish(&mut self, outcome: crate::domain::outcome::Outcome) -> anyhow::Result<()> {
        self.write(Record::Finished { outcome })
    }

    fn write(&mut self, record: Record) -> anyhow::Result<()> {
        let line = HistoryLine {
            task: self.task.clone(),
            record,
        };
        let written = self.file.append(&line)?;
        self.state.apply(&written);
        Ok(())
    }
}

fn number(record: &Record) -> u64 {
    match record {
        Record::Intent { id, .. } | Record::Observed { id, .. } => *id,
        Record::Finished { .. } => 0,
    }
}
