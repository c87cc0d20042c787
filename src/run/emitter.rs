//! Gives every event its number, time and place.

use crate::domain::attempt::{PhaseName, Proof};
use crate::domain::duration::millis;
use crate::domain::event::{Event, EventKind};
use std::collections::HashSet;
use std::time::Instant;

/// Where events go.
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
}

impl<'a> Emitter<'a> {
    /// Events after the `seq`th, on a clock that already shows `before_ms` milliseconds. The sink
    /// fails when it cannot keep an event for a process that takes the run up.
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
        }
    }

    /// Sends an event.
    pub fn emit(&mut self, kind: EventKind) {
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

    /// Asked before the history says what the events have told: a process that takes the run up
    /// tells again what the history does not have, and nothing else.
    ///
    /// # Errors
    /// When an event could not be kept.
    pub fn all_kept(&mut self) -> anyhow::Result<()> {
        self.lost.take().map_or(Ok(()), Err)
    }

    /// Sends a warning.
    pub fn warn(&mut self, message: impl Into<String>) {
        self.emit(EventKind::Warning {
            message: message.into(),
        });
    }

    /// Warns of state that could not be kept.
    pub fn unless_kept(&mut self, kept: anyhow::Result<()>) {
        if let Err(error) = kept {
            self.warn(format!("{error:#}"));
        }
    }

    /// Sends a warning unless the same was sent before.
    pub fn warn_once(&mut self, message: &str) {
        if self.warned.insert(message.to_owned()) {
            self.warn(message);
        }
    }

    /// The number of the last event.
    pub fn last(&self) -> u64 {
        self.seq
    }

    /// The run's clock, in milliseconds.
    pub fn elapsed_ms(&self) -> u64 {
        self.before_ms.saturating_add(millis(self.began.elapsed()))
    }

    /// What the following events are about.
    pub fn at(&mut self, task: Option<&str>, attempt: Option<u32>, turn: Option<u32>) {
        self.task = task.map(str::to_owned);
        self.attempt = attempt;
        self.turn = turn;
        self.proof = None;
        self.phase = None;
    }

    /// The phase that the following events belong to, until they are about something else.
    pub fn in_phase(&mut self, phase: Option<PhaseName>) {
        self.phase = phase;
    }

    /// The proof that the following events belong to.
    pub fn proving(&mut self, proof: Option<Proof>) {
        self.proof = proof;
    }
}
