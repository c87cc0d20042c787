//! Measures how much a session has stalled: one point for each of four signs.

use super::{RECENT_STEPS, Thresholds};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The facts about a completely applied step.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct StepFacts {
    /// Whether it changed a file.
    pub changed: bool,
    /// Whether it finished an item.
    pub finished: bool,
    /// Whether it only read: no change, no command, no finished item.
    pub read_only: bool,
    /// The files that it read.
    pub read: BTreeSet<String>,
    /// Whether items are open.
    pub open_items: bool,
}

/// The signs of a stall.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Stagnation {
    no_change: u32,
    no_item: u32,
    recent: VecDeque<bool>,
    reads: BTreeMap<BTreeSet<String>, u32>,
}

impl Stagnation {
    /// The score, from 0 to 4.
    pub fn score(&self, thresholds: &Thresholds) -> u32 {
        let looked = self.recent.iter().filter(|read_only| **read_only).count();
        let same_reads = self.reads.values().max().copied().unwrap_or_default();
        let signs = [
            self.no_change >= thresholds.no_change,
            same_reads >= thresholds.same_reads,
            self.no_item >= thresholds.no_item,
            looked >= thresholds.read_only as usize,
        ];
        signs.into_iter().map(u32::from).sum()
    }

    /// Whether a session with this score may be given up.
    pub fn is_stagnant(&self, thresholds: &Thresholds, remaining: usize) -> bool {
        self.score(thresholds) >= thresholds.give_up_score
            && remaining <= thresholds.give_up_items
            && (self.no_change >= thresholds.give_up_no_change
                || self.no_item >= thresholds.give_up_no_item)
    }

    /// The number of steps since the last change or, while items are left, the last finished item.
    pub fn idle_steps(&self) -> u32 {
        match self.no_item {
            0 => self.no_change,
            no_item => self.no_change.min(no_item),
        }
    }

    pub(super) fn add(&mut self, step: &StepFacts) {
        self.no_change += 1;
        self.no_item += 1;
        if step.changed {
            self.no_change = 0;
            self.reads.clear();
        }
        if step.finished || !step.open_items {
            self.no_item = 0;
        }
        if !step.read.is_empty() {
            *self.reads.entry(step.read.clone()).or_default() += 1;
        }
        self.recent.push_back(step.read_only);
        if self.recent.len() > RECENT_STEPS {
            self.recent.pop_front();
        }
    }

    /// Records a change that was made between two steps.
    pub(super) fn changed_outside(&mut self) {
        self.no_change = 0;
        self.reads.clear();
        self.recent.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(read: &[&str]) -> StepFacts {
        StepFacts {
            read_only: true,
            read: read.iter().map(|file| (*file).to_owned()).collect(),
            open_items: true,
            ..StepFacts::default()
        }
    }

    fn score(steps: &[StepFacts]) -> u32 {
        let mut stagnation = Stagnation::default();
        steps.iter().for_each(|step| stagnation.add(step));
        stagnation.score(&Thresholds::default())
    }

    #[test]
    fn four_of_the_last_five_steps_that_only_look_are_a_point() {
        let run = StepFacts {
            read_only: false,
            ..step(&[])
        };
        let looks = |n| vec![step(&[]); n];
        assert_eq!(score(&looks(3)), 0);
        assert_eq!(score(&looks(4)), 1);
        let edit = StepFacts {
            changed: true,
            ..run.clone()
        };
        let mixed = [vec![edit.clone()], looks(4)].concat();
        assert_eq!(score(&mixed), 1);
        let mixed = [vec![edit], looks(3), vec![run]].concat();
        assert_eq!(score(&mixed), 0);
    }

    #[test]
    fn five_steps_without_a_change_are_a_point() {
        let run = StepFacts {
            read_only: false,
            open_items: false,
            ..step(&[])
        };
        assert_eq!(score(&vec![run.clone(); 4]), 0);
        assert_eq!(score(&vec![run.clone(); 5]), 1);
        let change = StepFacts {
            changed: true,
            ..run.clone()
        };
        assert_eq!(
            score(&[vec![run.clone(); 4], vec![change], vec![run; 4]].concat()),
            0
        );
    }

    #[test]
    fn the_same_files_read_three_times_are_a_point_until_something_changes() {
        let same = [step(&["a", "b"]), step(&["b", "a"]), step(&["a", "b"])];
        assert_eq!(score(&same), 1);
        assert_eq!(score(&[step(&["a"]), step(&["a", "b"]), step(&["b"])]), 0);
        let change = StepFacts {
            changed: true,
            ..step(&["a", "b"])
        };
        assert_eq!(score(&[&same[..2], &[change]].concat()), 0);
    }

    #[test]
    fn eight_steps_with_no_item_finished_are_a_point_while_items_are_left() {
        let busy = StepFacts {
            changed: true,
            read_only: false,
            ..step(&[])
        };
        assert_eq!(score(&vec![busy.clone(); 7]), 0);
        assert_eq!(score(&vec![busy.clone(); 8]), 1);
        let finished = StepFacts {
            finished: true,
            ..busy.clone()
        };
        assert_eq!(
            score(&[vec![busy.clone(); 7], vec![finished], vec![busy.clone(); 7]].concat()),
            0
        );
        let unplanned = StepFacts {
            open_items: false,
            ..busy
        };
        assert_eq!(score(&vec![unplanned; 20]), 0);
    }

    #[test]
    fn a_session_is_past_hope_by_score_items_and_length() {
        let mut stagnation = Stagnation::default();
        let thresholds = Thresholds::default();
        for _ in 0..7 {
            stagnation.add(&step(&["a"]));
        }
        assert_eq!(stagnation.score(&thresholds), 3);
        assert!(!stagnation.is_stagnant(&thresholds, 1));
        stagnation.add(&step(&["a"]));
        assert_eq!(stagnation.score(&thresholds), 4);
        assert!(stagnation.is_stagnant(&thresholds, 10));
        assert!(!stagnation.is_stagnant(&thresholds, 11));
    }
}
