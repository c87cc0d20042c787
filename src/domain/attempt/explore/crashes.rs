//! A run that crashes at any record and is resumed reaches the same outcome, in a world whose answers do not
//! depend on chance.

use super::world::{
    at, brought_back, failed, failure, in_phases, policy, proved, reviewed, turn, undone,
    verification, with_proofs,
};
use super::*;

/// A deterministic world: a turn's result depends on its number, and the checks' result depends on the tree
/// and on how often it was checked.
#[derive(Debug, Clone)]
struct Script {
    turns: Vec<(K, &'static str)>,
    /// How often the checks fail on trees `a` and `b` before they pass.
    fails: [u32; 2],
    start_fails: bool,
    old_tests_fail: bool,
    new_tests_fail: bool,
    hook: Hook,
    /// The round in which the reviewer accepts the work.
    accepts: u32,
}

#[derive(Debug, Clone, Copy)]
enum Hook {
    None,
    Rejects,
    ChangesToB,
}

/// A script and its progress.
struct Played<'a> {
    script: &'a Script,
    runs: [u32; 2],
}

impl Played<'_> {
    fn run(&mut self, tree: &str) -> bool {
        let index = match tree {
            "a" => 0,
            "b" => 1,
            _ => return !self.script.start_fails,
        };
        self.runs[index] += 1;
        self.runs[index] > self.script.fails[index]
    }

    fn answer(&mut self, state: &TaskState, step: &Step) -> Observation {
        let current = state.current.clone().unwrap();
        let tree = current.tree().unwrap().0.clone();
        let result = |passed: bool| {
            if passed {
                ProofResult::Passed
            } else {
                ProofResult::Failed {
                    failed: failure("f1").into(),
                }
            }
        };
        match step {
            Step::RunAgent { key, .. } if key.name.is_some_and(|it| it.phase == Phase::Review) => {
                let name = key.name.unwrap();
                reviewed(name.cycle >= self.script.accepts, current)
            }
            Step::RunAgent { key, .. } if key.name.is_some_and(|it| it.phase == Phase::Red) => {
                // Only tree `b` has a test; other changes are reverted.
                match self.script.turns.get(key.turn as usize - 1) {
                    Some((_, "b")) if tree != "b" => turn(K::Changed, at("h0", "b")),
                    Some((_, "a")) => undone(K::NoChange, current),
                    _ => turn(K::ClaimsDone, current),
                }
            }
            Step::Undo { .. } => brought_back(state.phase_start.clone().unwrap()),
            Step::RunAgent { key, .. } => {
                let scripted = self.script.turns.get(key.turn as usize - 1);
                let (kind, to) = *scripted.unwrap_or(&(K::ClaimsDone, ""));
                let after = match to {
                    "" => current.clone(),
                    to => at("h0", to),
                };
                let kind = match current.same_as(&after) {
                    Some(false) if !matches!(kind, K::AgentCrashed | K::TurnTimeout) => K::Changed,
                    Some(true) if kind == K::Changed => K::NoChange,
                    _ => kind,
                };
                turn(kind, after)
            }
            Step::Verify { .. } => {
                let verdict = if self.run(&tree) {
                    Verdict::Passed
                } else {
                    failed("f1")
                };
                verification(verdict, &current, current.clone())
            }
            Step::Prove { proof, .. } => {
                let passed = match proof {
                    Proof::Baseline => !self.script.start_fails,
                    Proof::Flake => self.run(&tree),
                    Proof::OldTests => !self.script.old_tests_fail,
                    Proof::NewTests => !self.script.new_tests_fail,
                };
                proved(*proof, &current, result(passed))
            }
            Step::Commit { .. } => match (self.script.hook, tree.as_str()) {
                (Hook::Rejects, "a") => Observation::HookRejected {
                    message: "no".into(),
                    of_message: false,
                },
                (Hook::ChangesToB, "a") => Observation::HookChangedTree {
                    after: at("h0", "b"),
                },
                _ => Observation::Committed {
                    commit: Some(RevId("c".into())),
                },
            },
            Step::Wait { .. } | Step::Finish(_) => Observation::Waited,
        }
    }
}

/// Runs the script to its end. The run crashes once, before record `crash` is written.
fn end(policy: &Policy, script: &Script, crash: Option<usize>) -> (Outcome, usize) {
    let mut played = Played {
        script,
        runs: [0; 2],
    };
    let mut state = start();
    let mut records = 0;
    let mut dies = |state: &mut TaskState| {
        records += 1;
        let now = crash == Some(records);
        if now {
            *state = resumed(state);
        }
        now
    };
    for _ in 0..300 {
        let step = decide(policy, &state);
        if let Step::Finish(outcome) = step {
            return (outcome, records);
        }
        if dies(&mut state) {
            continue;
        }
        state.apply(&Record::Intent { step: step.clone() });
        if dies(&mut state) {
            continue;
        }
        if let (Step::RunAgent { .. }, Some(before)) = (&step, state.current.clone()) {
            let observation = Observation::TurnStarted { before };
            state.apply(&Record::Observed { observation });
        }
        let observation = played.answer(&state, &step);
        state.apply(&Record::Observed { observation });
    }
    panic!("no end: {script:?}");
}

fn script(tolerates: bool) -> impl Strategy<Value = Script> {
    let kinds = prop::sample::select(vec![
        K::Changed,
        K::Changed,
        K::ClaimsDone,
        K::PlanningOnly,
        K::AlreadySatisfied,
        K::AgentCrashed,
        K::TurnTimeout,
    ]);
    let trees = prop::sample::select(vec!["base", "a", "b", ""]);
    // With a check that fails once and then passes, the outcome depends on when it runs if failures may be
    // accepted.
    let fails = if tolerates {
        vec![0, u32::MAX]
    } else {
        vec![0, 1, u32::MAX]
    };
    let fails = prop::sample::select(fails);
    let hook = prop::sample::select(vec![
        Hook::None,
        Hook::None,
        Hook::Rejects,
        Hook::ChangesToB,
    ]);
    let turns = prop::collection::vec((kinds, trees), 1..8);
    let answers = any::<(bool, bool, bool)>();
    let accepts = 1u32..=4;
    let parts = (turns, [fails.clone(), fails], answers, hook, accepts);
    parts.prop_map(|(turns, fails, answers, hook, accepts)| Script {
        accepts,
        turns,
        fails,
        start_fails: answers.0,
        old_tests_fail: answers.1,
        new_tests_fail: answers.2,
        hook,
    })
}

fn same_end(policy: &Policy, script: &Script) -> Result<(), TestCaseError> {
    let (expected, records) = end(policy, script, None);
    for crash in 1..=records {
        let (outcome, _) = end(policy, script, Some(crash));
        prop_assert_eq!(&outcome, &expected, "died before record {}", crash);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_run_that_died_comes_to_the_same_end(retries in 0u32..=3, script in script(false)) {
        same_end(&with_proofs(policy(retries, 1, true)), &script)?;
    }

    #[test]
    fn a_run_with_several_phases_that_died_comes_to_the_same_end(
        retries in 0u32..=2,
        asked in prop::sample::select(vec!["review", "tester review", "tdd", "tdd review"]),
        script in script(true),
    ) {
        same_end(&with_proofs(in_phases(policy(retries, 1, true), asked, 3)), &script)?;
    }

    #[test]
    fn a_run_that_died_comes_to_the_same_end_where_failures_are_tolerated(
        retries in 0u32..=2,
        script in script(true),
    ) {
        let policy = Policy {
            known_failures: KnownFailures::Tolerate,
            prove_new_tests: ProveNewTests::Require,
            ..with_proofs(policy(retries, 1, true))
        };
        same_end(&policy, &script)?;
    }
}
