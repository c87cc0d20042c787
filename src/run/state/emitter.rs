//! Adds sequence number, time and context to every event.

use crate::domain::attempt::{PhaseName, Proof};
use crate::domain::duration::millis;
use crate::domain::event::{Event, EventKind, WarningTopic};
use crate::process::{Cancel, CancelReason};
use std::collections::HashSet;
use std::time::Instant;

/// Sends events to a sink.
pub struct Emitter<'a> {
    sink: &'a mut dyn FnMut(Event) -> anyhow::Result<()>,
    lost: Option<anyhow::Error>,
    seq: u64,
    began: Instant,
    before_ms: u64,
    task: Option<String>,
    attempt: Option<u32>,
    turn: Option<u32>,
    proof: Option<Proof>,
    phase: Option<PhaseName>,
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
            task: None,
            attempt: None,
            turn: None,
            proof: None,
            phase: None,
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
            task: self.task.clone(),
            attempt: self.attempt,
            turn: self.turn,
            proof: self.proof,
            phase: self.phase,
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
        self.emit(EventKind::Warning {
            message: message.into(),
            topic: None,
        });
    }

    /// Sends a warning about a topic on which reports depend.
    pub fn warn_about(&mut self, topic: WarningTopic, message: impl Into<String>) {
        self.emit(EventKind::Warning {
            message: message.into(),
            topic: Some(topic),
        });
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
        self.task = task.map(str::to_owned);
        self.attempt = attempt;
        self.turn = turn;
        self.proof = None;
        self.phase = None;
    }

    /// Sets the phase of the following events, until the next call of [`Self::at`].
    pub fn in_phase(&mut self, phase: Option<PhaseName>) {
        self.phase = phase;
    }

    /// Sets the proof of the following events.
    pub fn proving(&mut self, proof: Option<Proof>) {
        self.proof = proof;
    }
}
