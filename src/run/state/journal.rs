//! A task's history. Every record is on disk before the next effect starts.

use crate::domain::attempt::{Observation, Record, Step, TaskState, fold};
use crate::run::state::directory::{HistoryFile, HistoryLine};

/// The history of one task and the state derived from it.
#[derive(Debug)]
pub struct Journal {
    task: String,
    file: HistoryFile,
    next: u64,
    /// The state derived from the history.
    pub state: TaskState,
}

impl Journal {
    /// Continues a task's history after the `earlier` records.
    pub fn new(task: &str, file: HistoryFile, earlier: &[Record]) -> Self {
        let next = earlier.iter().map(number).max().unwrap_or(0);
        Self {
            task: task.to_owned(),
            file,
            next,
            state: fold(earlier),
        }
    }

    /// Records the step that is about to be performed. All records are on disk afterwards.
    ///
    /// # Errors
    /// When the history cannot be written.
    pub fn intend(&mut self, step: Step) -> anyhow::Result<()> {
        self.next += 1;
        self.write(Record::Intent {
            id: self.next,
            step,
        })?;
        self.sync()
    }

    /// Records an observation. It is on disk afterwards.
    ///
    /// # Errors
    /// When the history cannot be written.
    pub fn observe(&mut self, observation: Observation) -> anyhow::Result<()> {
        self.observe_before_intent(observation)?;
        self.sync()
    }

    /// Records an observation after which only the next step is decided. It is on disk together with the intent of
    /// that step, or after [`Self::sync`]: one sync is enough for two records with no effect between them.
    ///
    /// # Errors
    /// When the history cannot be written.
    pub fn observe_before_intent(&mut self, observation: Observation) -> anyhow::Result<()> {
        self.write(Record::Observed {
            id: self.next,
            observation,
        })
    }

    /// Syncs all records to disk.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn sync(&self) -> anyhow::Result<()> {
        self.file.sync()
    }

    /// Records the outcome of the task.
    ///
    /// # Errors
    /// When the history cannot be written.
    pub fn finish(&mut self, outcome: crate::domain::outcome::Outcome) -> anyhow::Result<()> {
        self.write(Record::Finished { outcome })?;
        self.sync()
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
