//! The attempts of a task, and what belongs to each. A task with several phases counts the attempts of each phase
//! anew, so a number alone does not name one.

use super::{CheckLine, TaskSummary, TurnSummary};
use crate::attempt::{Phase, PhaseName};
use crate::history::HistoryEntry;
use std::fmt;

/// The name of an attempt within its task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttemptName {
    /// Its number, from 1.
    pub number: u32,
    /// The round and the phase in which it is counted, if the task has several phases.
    pub counted: Option<(u32, Phase)>,
}

impl AttemptName {
    fn new(number: u32, place: Option<PhaseName>) -> Self {
        let counted = place.and_then(PhaseName::counted_in);
        Self { number, counted }
    }
}

impl fmt::Display for AttemptName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.counted {
            None => self.number.fmt(f),
            Some((1, phase)) => write!(f, "{} of {}", self.number, phase.as_str()),
            Some((n, phase)) => write!(f, "{} of {} in round {n}", self.number, phase.as_str()),
        }
    }
}

impl CheckLine {
    /// The attempt that it verified.
    pub fn attempt_name(&self) -> AttemptName {
        AttemptName::new(self.attempt, self.place)
    }
}

impl HistoryEntry {
    /// The attempt whose result it is.
    pub fn attempt_name(&self) -> AttemptName {
        AttemptName::new(self.attempt, self.phase)
    }
}

/// An attempt with what belongs to it, each in order.
#[derive(Debug, Clone)]
pub struct AttemptLines<'a> {
    /// Its name.
    pub name: AttemptName,
    /// Its turns without the reviews.
    pub turns: Vec<&'a TurnSummary>,
    /// Its checks.
    pub checks: Vec<&'a CheckLine>,
    /// The reviews of its work.
    pub reviews: Vec<&'a TurnSummary>,
    /// Its result; empty while it is under way.
    pub history: Vec<&'a HistoryEntry>,
}

impl AttemptLines<'_> {
    /// All of its turns.
    pub fn all_turns(&self) -> impl Iterator<Item = &TurnSummary> {
        self.turns.iter().chain(&self.reviews).copied()
    }
}

impl TaskSummary {
    /// The attempts in the order in which they began. A review belongs to the attempt that it judges.
    pub fn attempts_in_order(&self) -> Vec<AttemptLines<'_>> {
        let mut all: Vec<AttemptLines<'_>> = Vec::new();
        for turn in &self.turns {
            let name = AttemptName::new(turn.attempt, turn.place);
            let is_review = turn.place.is_some() && name.counted.is_none();
            let at = if is_review {
                all.len().checked_sub(1)
            } else {
                all.iter().position(|attempt| attempt.name == name)
            };
            let attempt = match at.and_then(|at| all.get_mut(at)) {
                Some(known) => known,
                None => all.push_mut(self.attempt_lines(name)),
            };
            let turns = if is_review {
                &mut attempt.reviews
            } else {
                &mut attempt.turns
            };
            turns.push(turn);
        }
        all
    }

    /// An attempt without its turns.
    fn attempt_lines(&self, name: AttemptName) -> AttemptLines<'_> {
        let mut checks: Vec<&CheckLine> = self.checks.iter().collect();
        checks.retain(|check| check.attempt_name() == name);
        let mut history: Vec<&HistoryEntry> = self.work.history.iter().collect();
        history.retain(|entry| entry.attempt_name() == name);
        AttemptLines {
            name,
            turns: Vec::new(),
            checks,
            reviews: Vec::new(),
            history,
        }
    }

    /// The phase in which the attempt is counted that a review, or what follows one, belongs to.
    pub(super) fn counted_place(&self, place: PhaseName) -> PhaseName {
        let known = self.turns.iter().rev().filter_map(|turn| turn.place);
        let mut places = std::iter::once(place).chain(known);
        let is_counted = |place: &PhaseName| place.counted_in().is_some();
        places.find(is_counted).unwrap_or(place)
    }
}
