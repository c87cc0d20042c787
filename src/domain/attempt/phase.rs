//! The phases of a task as table rows. A new role is a row here plus its prompt.

use super::{Grounds, Record, Step, TurnPurpose};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Rounds of fixes and reviews after the first review.
pub const ROUNDS: u32 = 5;

/// Nudges for a tester or a fixer that changes nothing.
const NUDGES_OF_HELPERS: u32 = 1;

/// The role of the agent in a phase.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
#[derive(strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Role {
    /// Does the work of the task.
    Implementer,
    /// Adds the tests that the task needs.
    Tester,
    /// Reviews the work without changing it, and gives a verdict.
    Reviewer,
    /// Fixes a reviewer's findings.
    Fixer,
}

impl Role {
    /// The word used in events, reports and `SPRAG_ROLE`.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// The kind of work in a phase.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
#[derive(strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Phase {
    /// The work of the task is done.
    Implement,
    /// Tests are added to the work.
    Test,
    /// The work is reviewed.
    Review,
    /// The findings of a review are fixed.
    Fix,
    /// Failing tests are written.
    Red,
    /// The tests are made to pass.
    Green,
    /// The work is improved, and the tests still pass.
    Refactor,
    /// A question is answered.
    Answer,
}

impl Phase {
    /// The word used in events, reports and `SPRAG_PURPOSE`.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Why the agent runs when the phase starts. `grounds` says why the existing work is acceptable, if there
    /// is any.
    pub fn purpose(self, grounds: Option<Grounds>) -> TurnPurpose {
        match self {
            Self::Implement => TurnPurpose::Implement,
            phase => TurnPurpose::Phase { phase, grounds },
        }
    }
}

/// What a turn of a phase may change. Any other change is reverted and reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writes {
    /// What the policy allows.
    Anything,
    /// Only tests.
    Tests,
    /// Nothing.
    Nothing,
}

/// The condition that ends a phase successfully.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// The checks pass.
    Pass,
    /// The checks fail in new tests.
    Fail,
    /// The agent's verdict is that the work is acceptable.
    Acceptable,
    /// The final message is the answer.
    Answer,
}

/// One phase of a task as data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PhaseSpec {
    /// What is done in this phase.
    pub phase: Phase,
    /// The agent's role in this phase.
    pub role: Role,
    /// The round that the phase belongs to, from 1; each round ends with a review.
    pub cycle: u32,
    /// What its turns may change.
    pub writes: Writes,
    /// The condition that ends it successfully.
    pub expect: Expect,
    /// Whether this phase continues the attempt of the previous row: the first turn with changes there leads
    /// here instead of to the checks. When the checks fail, the previous row gets the next attempt.
    pub joins: bool,
    /// Whether the task can do without this phase: a turn without changes ends it, and changes that fail the
    /// checks are reverted without a retry.
    pub optional: bool,
    /// Retries after the first attempt.
    pub retries: u32,
    /// Nudges allowed in the phase.
    pub nudges: u32,
}

/// Names the phase that an event, a turn or an attempt belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct PhaseName {
    /// The role of the agent.
    pub role: Role,
    /// The round, from 1.
    pub cycle: u32,
    /// The phase.
    pub phase: Phase,
}

impl PhaseName {
    /// The cycle and phase in which its attempts are counted. `None` for a review, which belongs to the
    /// attempt that it judges.
    pub fn counted_in(self) -> Option<(u32, Phase)> {
        match self.phase {
            Phase::Review => None,
            Phase::Test => Some((self.cycle, Phase::Implement)),
            phase => Some((self.cycle, phase)),
        }
    }
}

/// The settings that determine a task's phases.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PhasesAsked {
    /// Whether tests are written before the work.
    pub tdd: bool,
    /// Whether the work is reviewed before it is committed.
    pub review: bool,
    /// Whether there is a tester.
    pub tester: bool,
    /// Whether the task only reviews what is already committed.
    pub review_only: bool,
    /// Whether the task only asks a question.
    pub asks: bool,
    /// Retries allowed in a phase.
    pub retries: u32,
    /// Nudges allowed in a phase.
    pub nudges: u32,
}

/// The phases of a task, in order.
pub fn phases(asked: PhasesAsked) -> Vec<PhaseSpec> {
    let row = |phase, cycle| PhaseSpec::new(phase, cycle, &asked);
    if asked.asks || asked.review_only {
        let answers = asked.asks;
        return vec![row(
            if answers {
                Phase::Answer
            } else {
                Phase::Review
            },
            1,
        )];
    }
    let rows = match (asked.tdd, asked.review && asked.tester) {
        (true, _) => vec![Phase::Red, Phase::Green, Phase::Refactor],
        (false, true) => vec![Phase::Implement, Phase::Test],
        (false, false) => vec![Phase::Implement],
    };
    let mut rows: Vec<PhaseSpec> = rows.into_iter().map(|phase| row(phase, 1)).collect();
    if asked.review {
        rows.push(row(Phase::Review, 1));
        for cycle in 2..=ROUNDS + 1 {
            rows.extend([row(Phase::Fix, cycle), row(Phase::Review, cycle)]);
        }
    }
    rows
}

/// Whether turns and attempts carry the name of their phase: whenever a task has any phase besides
/// `implement`.
pub fn are_named(rows: &[PhaseSpec]) -> bool {
    rows.iter().any(|row| row.phase != Phase::Implement)
}

/// Whether each turn of a history belongs to the phase that these rows have at its place.
pub fn have_phases_of(history: &[Record], rows: &[PhaseSpec]) -> bool {
    let of_row = |row: &PhaseSpec| are_named(rows).then_some((row.cycle, row.phase));
    history.iter().all(|record| match record {
        Record::Intent {
            step: Step::RunAgent { key, .. },
        } => {
            let of_turn = key.name.map(|name| (name.cycle, name.phase));
            rows.get(key.phase).map(of_row) == Some(of_turn)
        }
        _ => true,
    })
}

impl PhaseSpec {
    /// One attempt at the task.
    pub const PLAIN: Self = Self {
        phase: Phase::Implement,
        role: Role::Implementer,
        cycle: 1,
        writes: Writes::Anything,
        expect: Expect::Pass,
        joins: false,
        optional: false,
        retries: 0,
        nudges: 0,
    };

    fn new(phase: Phase, cycle: u32, asked: &PhasesAsked) -> Self {
        let plain = Self {
            phase,
            cycle,
            retries: asked.retries,
            nudges: asked.nudges,
            ..Self::PLAIN
        };
        match phase {
            Phase::Implement | Phase::Green => plain,
            Phase::Test => Self {
                role: Role::Tester,
                joins: true,
                nudges: asked.nudges.min(NUDGES_OF_HELPERS),
                ..plain
            },
            Phase::Review => Self {
                role: Role::Reviewer,
                writes: Writes::Nothing,
                expect: Expect::Acceptable,
                retries: 0,
                nudges: 0,
                ..plain
            },
            Phase::Answer => Self {
                writes: Writes::Nothing,
                expect: Expect::Answer,
                retries: 0,
                nudges: 0,
                ..plain
            },
            Phase::Fix => Self {
                role: Role::Fixer,
                nudges: asked.nudges.min(NUDGES_OF_HELPERS),
                ..plain
            },
            Phase::Red => Self {
                role: if asked.tester {
                    Role::Tester
                } else {
                    plain.role
                },
                writes: Writes::Tests,
                expect: Expect::Fail,
                ..plain
            },
            Phase::Refactor => Self {
                optional: true,
                retries: 0,
                nudges: 0,
                ..plain
            },
        }
    }

    /// The phase's full name.
    pub fn name(&self) -> PhaseName {
        PhaseName {
            role: self.role,
            cycle: self.cycle,
            phase: self.phase,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::TurnKey;
    use super::*;

    fn words(asked: PhasesAsked) -> String {
        let rows = phases(asked);
        let words = rows
            .iter()
            .map(|row| format!("{}{}", row.phase.as_str(), row.cycle));
        words.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn without_being_asked_for_anything_there_is_one_phase() {
        assert_eq!(words(PhasesAsked::default()), "implement1");
        let tester = PhasesAsked {
            tester: true,
            ..PhasesAsked::default()
        };
        assert_eq!(words(tester), "implement1");
    }

    #[test]
    fn a_question_or_a_review_alone_is_one_phase_whatever_else_is_asked_for() {
        let asked = PhasesAsked {
            review_only: true,
            ..PhasesAsked::default()
        };
        assert_eq!(words(asked), "review1");
        let all = PhasesAsked {
            tdd: true,
            review: true,
            tester: true,
            ..asked
        };
        assert_eq!(words(all), "review1");
        assert_eq!(words(PhasesAsked { asks: true, ..all }), "answer1");
        assert!(are_named(&phases(asked)) && !are_named(&phases(PhasesAsked::default())));
    }

    #[test]
    fn turns_have_the_phases_in_which_they_ran_and_may_be_followed_by_more() {
        let asked = |tdd, review, tester| {
            phases(PhasesAsked {
                tdd,
                review,
                tester,
                ..PhasesAsked::default()
            })
        };
        let turn = |rows: &[PhaseSpec], phase: usize| Record::Intent {
            step: Step::RunAgent {
                key: TurnKey {
                    phase,
                    name: are_named(rows).then(|| rows[phase].name()),
                    attempt: 1,
                    turn: 1,
                },
                purpose: TurnPurpose::Implement,
            },
        };
        let (plain, reviewed) = (asked(false, false, false), asked(false, true, false));
        let (tested, first) = (asked(false, true, true), asked(true, false, false));
        assert!(have_phases_of(&[], &plain));
        assert!(have_phases_of(&[turn(&plain, 0)], &plain));
        assert!(have_phases_of(&[turn(&reviewed, 0)], &tested));
        assert!(have_phases_of(&[turn(&first, 1)], &asked(true, true, true)));
        for (began, phase, now) in [
            (&plain, 0, &reviewed),
            (&plain, 0, &first),
            (&reviewed, 0, &plain),
            (&reviewed, 1, &plain),
            (&reviewed, 1, &tested),
            (&reviewed, 0, &first),
            (&first, 1, &reviewed),
        ] {
            assert!(!have_phases_of(&[turn(began, phase)], now));
        }
    }

    #[test]
    fn there_are_at_most_six_reviews() {
        let asked = PhasesAsked {
            review: true,
            tester: true,
            ..PhasesAsked::default()
        };
        let rounds = "review1 fix2 review2 fix3 review3 fix4 review4 fix5 review5 fix6 review6";
        assert_eq!(words(asked), format!("implement1 test1 {rounds}"));
        let asked = PhasesAsked { tdd: true, ..asked };
        assert_eq!(words(asked), format!("red1 green1 refactor1 {rounds}"));
    }
}
