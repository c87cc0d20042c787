//! Adds sequence number, time and context to every event.

use crate::domain::attempt::{Observation, PhaseName, Proof, Record, Step, TaskState, fold};
use crate::domain::duration::millis;
use crate::domain::event::{Event, EventKind, EventPlace, WarningTopic};
use crate::process::{Cancel, CancelReason};
use crate::run::state::directory::{HistoryFile, HistoryLine};
use std::collections::HashSet;
use std::time::Instant;

/// Sends events to a sink.
pub struct Emitter<'a> {
    sink: &'a mut dyn FnMut(Event) -> anyhow::Result<()>,
    lost: Option<anyhow::Error>,
    seq: u64,
    began: Instant,
    before_ms: u64,
    place: EventPlace,
    warned: HashSet<String>,
    /// What signals set; `None` once a signal has been reported.
    cancel: Option<Cancel>,
}

impl<'a> Emitter<'a> {
    /// An emitter whose first event has number `seq` + 1 and whose clock starts at `before_ms`
    /// milliseconds. The sink returns an error if it cannot store an event for a process that resumes
    /// the run.
    pub fn new(
        sink: &'a mut dyn FnMut(Event) -> anyhow::Result<()>,
        seq: u64,
        before_ms: u64,
    ) -> Self {
        Self {
            sink,
            lost: None,
            seq,
            began: Instant::now(),
            before_ms,
            place: EventPlace::default(),
            warned: HashSet::new(),
            cancel: None,
        }
    }

    /// Reports a signal that sets `cancel`, before the first event that may result from it.
    #[must_use]
    pub fn reporting(mut self, cancel: Cancel) -> Self {
        self.cancel = Some(cancel);
        self
    }

    /// Sends an event.
    pub fn emit(&mut self, kind: EventKind) {
        let reason = self.cancel.as_ref().and_then(Cancel::reason);
        if let Some(signal) = reason.and_then(CancelReason::signal) {
            self.cancel = None;
            self.send(EventKind::CancelRequested { signal });
        }
        self.send(kind);
    }

    fn send(&mut self, kind: EventKind) {
        self.seq += 1;
        let event = Event {
            seq: self.seq,
            ts: jiff::Timestamp::now().to_string(),
            elapsed_ms: self.elapsed_ms(),
            place: self.place.clone(),
            kind,
        };
        if let Err(error) = (self.sink)(event) {
            self.lost.get_or_insert(error);
        }
    }

    /// Call this before a record is appended to the history that follows from these events. A process
    /// that resumes the run repeats the events of records that the history lacks, and no others.
    ///
    /// # Errors
    /// When an event could not be stored.
    pub fn ensure_stored(&mut self) -> anyhow::Result<()> {
        self.lost.take().map_or(Ok(()), Err)
    }

    /// Sends a warning.
    pub fn warn(&mut self, message: impl Into<String>) {
        let (message, topic) = (message.into(), None);
        self.emit(EventKind::Warning { message, topic });
    }

    /// Sends a warning about a topic on which reports depend.
    pub fn warn_about(&mut self, topic: WarningTopic, message: impl Into<String>) {
        let (message, topic) = (message.into(), Some(topic));
        self.emit(EventKind::Warning { message, topic });
    }

    /// Warns if state could not be stored.
    pub fn warn_unless_stored(&mut self, kept: anyhow::Result<()>) {
        if let Err(error) = kept {
            self.warn(format!("{error:#}"));
        }
    }

    /// Sends a warning unless the same one was sent before.
    pub fn warn_once(&mut self, message: &str) {
        if self.warned.insert(message.to_owned()) {
            self.warn(message);
        }
    }

    /// The number of the last event.
    pub fn last(&self) -> u64 {
        self.seq
    }

    /// Elapsed time of the run, in milliseconds.
    pub fn elapsed_ms(&self) -> u64 {
        self.before_ms.saturating_add(millis(self.began.elapsed()))
    }

    /// Sets the task, attempt and turn of the following events, and clears proof and phase.
    pub fn at(&mut self, task: Option<&str>, attempt: Option<u32>, turn: Option<u32>) {
        self.place = EventPlace {
            task: task.map(str::to_owned),
            attempt,
            turn,
            ..EventPlace::default()
        };
    }

    /// Sets the phase of the following events, until the next call of [`Self::at`].
    pub fn in_phase(&mut self, phase: Option<PhaseName>) {
        self.place.phase = phase;
    }

    /// Emits the start of a proof, to which the following events belong. Returns its time on the run's clock.
    pub fn begin_proof(&mut self, proof: Proof) -> u64 {
        let began = self.elapsed_ms();
        self.place.proof = Some(proof);
        self.emit(EventKind::ProofStarted {});
        began
    }

    /// Ends the proof.
    pub fn end_proof(&mut self) {
        self.place.proof = None;
    }
}

/// The history of one task and the state derived from it.
#[derive(Debug)]
pub struct Journal {
    task: String,
    file: HistoryFile,
    /// The state derived from the history.
    pub state: TaskState,
}

impl Journal {
    /// Continues a task's history after the `earlier` records.
    pub fn new(task: &str, file: HistoryFile, earlier: &[Record]) -> Self {
        Self {
            task: task.to_owned(),
            file,
            state: fold(earlier),
        }
    }

    /// Records the step that is about to be performed. All records are on disk afterwards.
    ///
    /// # Errors
    /// When the history cannot be written.
    pub fn intend(&mut self, step: Step) -> anyhow::Result<()> {
        self.write(Record::Intent { step })?;
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
        self.write(Record::Observed { observation })
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
        let task = self.task.clone();
        let written = self.file.append(&HistoryLine { task, record })?;
        self.state.apply(&written);
        Ok(())
    }
}
