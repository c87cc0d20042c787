//! Properties that no history may violate.

use super::super::*;
use crate::outcome::TaskEnd;
use crate::review::ReviewVerdict;
use crate::settings::{Baseline, KnownFailures, ProveNewTests, TestChangePolicy};

/// The effects that really happened, recorded independently of the state machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct Effects {
    /// The tree on which this process last ran the checks to their end, and whether they passed without
    /// changing it.
    pub(super) run: Option<(Fingerprint, bool)>,
    /// Reruns of the checks, or of the proof with the old tests, on a failed tree.
    pub(super) reruns: u32,
    /// Reviews that gave a verdict.
    pub(super) reviews: u32,
    /// The tree that a reviewer accepted last, or what a hook made of it.
    pub(super) accepted: Option<Fingerprint>,
    /// Whether tests that were written first have failed.
    pub(super) red: bool,
    /// Whether the last output value fits the schema.
    pub(super) fits: bool,
}

impl Effects {
    pub(super) fn sees(&mut self, state: &TaskState, step: &Step, observation: &Observation) {
        let phase = state.key.and_then(|key| key.name).map(|name| name.phase);
        match observation {
            Observation::TurnEnded(turn) => {
                if let Some(output) = &turn.output {
                    self.fits = output.is_ok();
                }
                if let Some(review) = &turn.review {
                    self.reviews += 1;
                    let accepts = review.verdict == ReviewVerdict::Acceptable;
                    self.accepted = turn.after.tree().filter(|_| accepts).cloned();
                }
            }
            Observation::HookChangedTree { after } if self.accepted.is_some() => {
                self.accepted = after.tree().cloned();
            }
            Observation::Verified(ended) => {
                let one_tree = ended.before.same_as(&ended.after) == Some(true);
                let tree = ended.after.tree().filter(|_| one_tree);
                self.run = tree.map(|tree| (tree.clone(), ended.verdict == Verdict::Passed));
                let failed = matches!(ended.verdict, Verdict::Failed { .. });
                let tests_first = matches!(step, Step::Verify { .. }) && phase == Some(Phase::Red);
                self.red |= failed && tests_first && ended.tests.are_tests_touched();
            }
            Observation::Proved(proved) if proved.proof == Proof::Flake => {
                self.reruns += 1;
                let passed = proved.result == ProofResult::Passed;
                self.run = proved.tree.clone().map(|tree| (tree, passed));
            }
            Observation::Proved(proved) if proved.proof == Proof::OldTests => {
                self.reruns += u32::from(has_failed_with_old_tests(state));
            }
            Observation::Resumed => self.run = None,
            _ => {}
        }
    }
}

pub(super) fn check(policy: &Policy, state: &TaskState, witness: &Effects, step: &Step) {
    check_phase(policy, state, witness, step);
    assert!(witness.reruns <= policy.flaky_reruns, "{state:?}");
    let interrupted = state.interrupted.is_some();
    match step {
        Step::Finish(outcome) => return check_end(policy, state, witness, outcome),
        _ => assert!(!interrupted, "{step:?} after a cancel"),
    }
    match step {
        Step::RunAgent { .. } | Step::Wait { .. } => {}
        _ if policy
            .phases
            .iter()
            .all(|row| row.writes == Writes::Nothing) =>
        {
            panic!("{step:?} where there is nothing but a review")
        }
        Step::Undo { key } => {
            assert!(policy.phases[key.phase].optional);
            assert!(!state.undone, "undone twice: {state:?}");
        }
        Step::Commit { grounds } => check_commit(policy, state, witness, *grounds),
        Step::Prove { proof, .. } => check_proof(policy, state, witness, *proof),
        Step::Verify { .. } | Step::Finish(_) => {}
    }
}

/// Retries, nudges and reviews stay within the limits of their rows, and every turn has a row.
fn check_phase(policy: &Policy, state: &TaskState, witness: &Effects, step: &Step) {
    let most = policy
        .phases
        .iter()
        .map(|row| row.retries)
        .max()
        .unwrap_or(0);
    assert!(state.attempt() <= most + 1, "{state:?}");
    let row = &policy.phases[state.key.map_or(0, |key| key.phase)];
    assert!(state.nudges <= row.nudges, "{state:?}");
    let reviews = policy
        .phases
        .iter()
        .filter(|row| row.expect == Expect::Acceptable);
    let reviews = u32::try_from(reviews.count()).unwrap();
    assert!(witness.reviews <= reviews, "{state:?}");
    if let Step::RunAgent { key, purpose } = step {
        let row = &policy.phases[key.phase];
        let is_plain = |row: &PhaseSpec| row.phase == Phase::Implement;
        let name = (!policy.phases.iter().all(is_plain)).then(|| row.name());
        assert_eq!(key.name, name);
        assert_eq!(key.turn, state.turns() + 1 - u32::from(is_resumed(state)));
        if let TurnPurpose::Phase { phase, .. } = purpose {
            assert_eq!(*phase, row.phase);
        }
    }
}

fn is_resumed(state: &TaskState) -> bool {
    matches!(&state.last, Last::Resumed(step) if matches!(**step, Step::RunAgent { .. }))
}

/// A proof is requested only while it is missing and there is something to prove.
fn check_proof(policy: &Policy, state: &TaskState, witness: &Effects, proof: Proof) {
    assert!(policy.has_checks);
    let tree = state.current.as_ref().and_then(|current| current.tree());
    let is_open = |kept: &Option<(Fingerprint, ProofResult)>| {
        kept.as_ref().is_none_or(|(of, _)| Some(of) != tree)
    };
    match proof {
        Proof::Baseline => assert!(state.proofs.baseline.is_none()),
        Proof::Flake => {
            assert!(witness.reruns < policy.flaky_reruns);
            assert!(state.failed_trees.iter().any(|it| Some(&it.tree) == tree));
            assert!(!has_start_tree(state), "runs the task's start once more");
        }
        Proof::OldTests => assert!(
            is_open(&state.proofs.old_tests)
                || has_failed_with_old_tests(state) && witness.reruns < policy.flaky_reruns
        ),
        Proof::NewTests => assert!(is_open(&state.proofs.new_tests)),
    }
}

/// Whether the proof with the old tests has failed on the current tree.
fn has_failed_with_old_tests(state: &TaskState) -> bool {
    let tree = state.current.as_ref().and_then(|current| current.tree());
    let last = state.proofs.old_tests.as_ref();
    last.is_some_and(|(of, result)| {
        Some(of) == tree && matches!(result, ProofResult::Failed { .. })
    })
}

fn is_at_start(state: &TaskState) -> bool {
    let (start, current) = (&state.task_start, &state.current);
    start.as_ref().unwrap().same_as(current.as_ref().unwrap()) == Some(true)
}

/// Whether the tree equals the starting tree, whatever commits the agent made.
fn has_start_tree(state: &TaskState) -> bool {
    let tree = |at: &Option<Snapshot>| at.as_ref().unwrap().tree().cloned();
    let start = tree(&state.task_start);
    start.is_some() && start == tree(&state.current)
}

fn check_commit(policy: &Policy, state: &TaskState, witness: &Effects, grounds: Grounds) {
    assert_eq!(grounds == Grounds::Unchecked, !policy.has_checks);
    assert!(
        !has_start_tree(state),
        "commits what equals the task's start"
    );
    assert!(
        witness.fits || !policy.wants_output,
        "commits without the value: {state:?}"
    );
    let tree = state.current.as_ref().unwrap().tree();
    if policy
        .phases
        .iter()
        .any(|row| row.expect == Expect::Acceptable)
        && tree.is_some()
    {
        assert_eq!(
            witness.accepted.as_ref(),
            tree,
            "commits what no reviewer accepted: {state:?}"
        );
    }
    if policy.phases.iter().any(|row| row.expect == Expect::Fail) {
        assert!(
            witness.red,
            "commits without tests that failed first: {state:?}"
        );
        let has_tests = tree.is_none() || state.tests.are_tests_touched();
        assert!(has_tests, "commits without a test: {state:?}");
    }
    let run = witness.run.as_ref().filter(|(of, _)| Some(of) == tree);
    match (grounds, run) {
        (Grounds::Unchecked, _) | (Grounds::Passed, Some((_, true))) => {}
        // Such a commit has no permit and fails.
        (Grounds::Passed, None) if tree.is_none() => {}
        (Grounds::KnownFailures, Some((_, false))) => {
            assert_eq!(policy.known_failures, KnownFailures::Tolerate);
            let last = state.last_failure.as_ref().unwrap();
            assert!(state.proofs.were_red_before(&last.failed));
        }
        _ => panic!("commits as {grounds:?} what was not just run: {witness:?} {state:?}"),
    }
    if policy.has_checks {
        check_tests(policy, state, tree);
    }
}

fn check_tests(policy: &Policy, state: &TaskState, tree: Option<&Fingerprint>) {
    let of_tree = |kept: &Option<(Fingerprint, ProofResult)>| {
        let kept = kept.as_ref().filter(|(of, _)| Some(of) == tree);
        kept.map(|(_, result)| result.clone())
    };
    let (changed, added) = (&state.tests.changed, &state.tests.added);
    let old = of_tree(&state.proofs.old_tests);
    let new = of_tree(&state.proofs.new_tests);
    match policy.test_changes {
        _ if changed.is_empty() => {}
        TestChangePolicy::Prove => assert!(old.is_some(), "the old tests were not run"),
        TestChangePolicy::Fail => assert_eq!(old, Some(ProofResult::Passed)),
        TestChangePolicy::Warn | TestChangePolicy::Ok => {}
    }
    if !added.is_empty() && policy.prove_new_tests == ProveNewTests::Require {
        assert!(matches!(new, Some(ProofResult::Failed { .. })));
    }
}

fn check_end(policy: &Policy, state: &TaskState, witness: &Effects, outcome: &Outcome) {
    let committed = matches!(state.last, Last::Committed(..));
    let done = outcome.task_end() == TaskEnd::Done;
    let satisfied = matches!(outcome, Outcome::AlreadySatisfied { .. });
    let writes_nothing = policy
        .phases
        .iter()
        .all(|row| row.writes == Writes::Nothing);
    let accepted = *outcome == Outcome::Acceptable;
    let answered = *outcome == Outcome::Answered;
    if accepted || answered {
        let (start, now) = (&state.task_start, &state.current);
        let same = start.as_ref().unwrap().same_as(now.as_ref().unwrap());
        assert!(writes_nothing && same != Some(false), "{state:?}");
    }
    if accepted {
        let verdict = state.review.as_ref().map(|review| review.verdict);
        assert_eq!(verdict, Some(ReviewVerdict::Acceptable));
    }
    let is_taken = (committed || satisfied || accepted || answered) && state.interrupted.is_none();
    let is_owed = policy.wants_output && done;
    assert!(
        witness.fits || !is_owed,
        "done without its value: {state:?}"
    );
    if policy.commits {
        assert_eq!(done, is_taken, "{outcome:?} {state:?}");
    }
    if satisfied {
        assert!(is_at_start(state), "satisfied by a tree that changed");
    }
    let is_proved = policy.test_changes.is_proved() && !state.tests.left.is_empty();
    if matches!(outcome, Outcome::AlreadySatisfied { verified: true }) && is_proved {
        let old = state.proofs.old_tests.as_ref().map(|(_, result)| result);
        assert_eq!(old, Some(&ProofResult::Passed), "{state:?}");
    }
    if matches!(outcome, Outcome::NoProgress { message, .. } if message.contains("no commit contains"))
    {
        assert!(has_failed_with_old_tests(state), "{state:?}");
        assert_eq!(witness.reruns, policy.flaky_reruns, "given up too early");
    }
    if let Last::Verified(VerifyPurpose::Evidence { .. }, _) = &state.last {
        assert!(!done, "evidence made a task done");
    }
    if matches!(outcome, Outcome::Verified { .. }) {
        assert!(!state.reported.is_no_evidence(), "no test ran: {state:?}");
    }
    let has_lost = !state.reported.lost_since(&state.proofs.at_start).is_empty();
    let is_doubtful = !state.reported.doubtful.is_empty() && policy.baseline != Baseline::Off;
    if matches!(outcome, Outcome::Verified { .. }) && policy.test_changes.is_proved() && is_doubtful
    {
        assert!(
            state.proofs.baseline.is_some(),
            "nothing to compare with: {state:?}"
        );
    }
    let is_touched = has_lost || !state.tests.changed.is_empty();
    let is_proved = policy.test_changes.is_proved() && is_touched;
    if matches!(outcome, Outcome::Verified { .. }) && is_proved {
        let old = state.proofs.old_tests.as_ref().map(|(_, result)| result);
        assert_eq!(old, Some(&ProofResult::Passed), "{state:?}");
    }
}
