//! Detects a model that repeats itself: identical calls, a cycle of calls, or the same reasoning.

use super::Thresholds;
use crate::words::likeness;
use serde::Serialize;
use std::collections::{BTreeSet, VecDeque};

/// The similarity in percent from which two texts count as the same.
const SAME_THOUGHT: usize = 70;

/// The minimum number of different words for a comparison of texts.
const SHORT_THOUGHT: usize = 8;

/// The longest cycle that is detected, in steps.
const MAX_CYCLE: usize = 3;

/// How often a sequence must have run to count as a cycle.
const ROUNDS: usize = 2;

/// The number of steps that are remembered.
const MEMORY: usize = 16;

/// The kinds of loops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LoopKind {
    /// The same calls several times in a row.
    IdenticalCalls,
    /// A few different calls in a cycle.
    Cycle,
    /// Nearly the same reasoning several times in a row, without a change.
    Reasoning,
}

/// The facts about a step that the detectors need.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct Trace {
    /// A digest of its calls, or of its text if it has no call; `None` if both are empty.
    pub calls: Option<u64>,
    /// Its words.
    pub words: BTreeSet<String>,
    /// Whether it changed a file or finished an item.
    pub progress: bool,
}

/// The last steps, and the number of warnings given.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct Loops {
    steps: VecDeque<Trace>,
    warnings: u32,
    found: Option<LoopKind>,
}

/// The reaction to a loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Verdict {
    /// Nothing.
    Fine,
    /// Warn.
    Warn(LoopKind),
    /// Give the last warning.
    WarnHarder(LoopKind),
    /// Stop.
    Stop,
}

impl Loops {
    pub(super) fn add(&mut self, step: Trace, thresholds: &Thresholds) {
        let progress = step.progress;
        self.steps.push_back(step);
        if self.steps.len() > MEMORY {
            self.steps.pop_front();
        }
        self.found = self.detect(thresholds.identical.max(2) as usize);
        if self.found.is_some() {
            self.warnings += 1;
        } else if progress {
            self.warnings = 0;
        }
    }

    /// The reaction to the step that was added last.
    pub(super) fn verdict(&self) -> Verdict {
        match (self.found, self.warnings) {
            (None, _) | (_, 0) => Verdict::Fine,
            (Some(kind), 1) => Verdict::Warn(kind),
            (Some(kind), 2) => Verdict::WarnHarder(kind),
            (Some(_), _) => Verdict::Stop,
        }
    }

    fn detect(&self, identical: usize) -> Option<LoopKind> {
        let last = |count: usize| {
            let from = self.steps.len().checked_sub(count)?;
            Some(self.steps.range(from..).collect::<Vec<&Trace>>())
        };
        let calls =
            |count| -> Option<Vec<u64>> { last(count)?.iter().map(|step| step.calls).collect() };
        if calls(identical).is_some_and(|calls| calls.windows(2).all(|pair| pair[0] == pair[1])) {
            return Some(LoopKind::IdenticalCalls);
        }
        let cycle = |length: usize| {
            calls(length * ROUNDS).is_some_and(|calls| {
                calls[length..] == calls[..calls.len() - length]
                    && calls[..length].iter().any(|call| *call != calls[0])
            })
        };
        if (2..=MAX_CYCLE).any(cycle) {
            return Some(LoopKind::Cycle);
        }
        let thoughts = last(identical)?;
        let same = thoughts.windows(2).all(|pair| {
            let long = pair
                .iter()
                .all(|step| step.words.len() >= SHORT_THOUGHT && !step.progress);
            long && likeness(&pair[0].words, &pair[1].words) >= SAME_THOUGHT
        });
        same.then_some(LoopKind::Reasoning)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::words;

    fn verdicts(steps: impl IntoIterator<Item = Trace>) -> Vec<Verdict> {
        let mut loops = Loops::default();
        let steps = steps.into_iter();
        steps
            .map(|step| {
                loops.add(step, &Thresholds::default());
                loops.verdict()
            })
            .collect()
    }

    fn call(id: u64) -> Trace {
        Trace {
            calls: Some(id),
            ..Trace::default()
        }
    }

    fn calls(ids: &[u64]) -> Vec<Trace> {
        ids.iter().map(|id| call(*id)).collect()
    }

    fn thought(text: &str) -> Trace {
        Trace {
            words: words(text),
            ..Trace::default()
        }
    }

    #[test]
    fn identical_calls_warn_at_the_third_warn_harder_and_stop() {
        use LoopKind::IdenticalCalls;
        assert_eq!(
            verdicts(calls(&[1, 1, 1, 1, 1])),
            [
                Verdict::Fine,
                Verdict::Fine,
                Verdict::Warn(IdenticalCalls),
                Verdict::WarnHarder(IdenticalCalls),
                Verdict::Stop,
            ]
        );
        assert_eq!(verdicts(calls(&[1, 1, 2, 1, 1])), [Verdict::Fine; 5]);
    }

    #[test]
    fn alternating_cycles_warn_warn_harder_and_stop() {
        use LoopKind::Cycle;
        let end = [
            Verdict::Warn(Cycle),
            Verdict::WarnHarder(Cycle),
            Verdict::Stop,
        ];
        assert_eq!(verdicts(calls(&[1, 2, 1, 2, 1, 2]))[3..], end);
        assert_eq!(verdicts(calls(&[1, 2, 3, 1, 2, 3, 1, 2]))[5..], end);
        assert_eq!(
            verdicts(calls(&[1, 2, 3, 1, 2, 4, 1, 2])),
            [Verdict::Fine; 8]
        );
        let unlike = [call(1), Trace::default(), call(1), Trace::default()];
        assert_eq!(verdicts(unlike), [Verdict::Fine; 4]);
    }

    #[test]
    fn the_same_thought_with_nothing_changed_is_a_loop() {
        let same = "Let me look at the parser once more to see what it does";
        let near = "Let me look at the parser once again to see what it does";
        assert_eq!(
            verdicts([thought(same), thought(near), thought(same)])[2],
            Verdict::Warn(LoopKind::Reasoning)
        );
        let other = "The parser has no branch for comments so I add one there now";
        for steps in [
            [same, other, same].map(thought),
            ["Go on.", "Go on.", "Go on."].map(thought),
            [same, near, same].map(|text| Trace {
                progress: true,
                ..thought(text)
            }),
        ] {
            assert_eq!(verdicts(steps)[2], Verdict::Fine);
        }
    }

    #[test]
    fn progress_makes_up_for_a_warning_and_looking_elsewhere_does_not() {
        let progress = Trace {
            progress: true,
            ..call(9)
        };
        let steps = |between: Trace| {
            let again = calls(&[1, 1, 1]);
            verdicts([again.clone(), vec![between], again].concat())[6]
        };
        assert_eq!(steps(progress), Verdict::Warn(LoopKind::IdenticalCalls));
        assert_eq!(
            steps(call(9)),
            Verdict::WarnHarder(LoopKind::IdenticalCalls)
        );
    }
}
