//! Explores every reachable canonical state of a task within small bounds, and random long histories beyond
//! them, and checks the properties that must always hold.

mod crashes;
mod digest;
mod properties;
mod world;

use super::*;
use crate::assess::AssessmentKind as K;
use crate::settings::{Baseline, KnownFailures, ProveNewTests, TestChangePolicy};
use digest::{BuildDigest, Digest};
use properties::{Effects, check};
use proptest::prelude::*;
use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use world::{
    Snapshots, World, at, in_phases, observations, policy, start, turn, with_output, with_outputs,
    with_proofs,
};

/// One value for all states with the same futures. Every field is named, so that a new field must be
/// considered here; fields that no decision reads are left out.
fn canonical(state: &TaskState, witness: &Effects) -> u128 {
    let TaskState {
        task_start,
        turn_start: _,
        current,
        key,
        purpose: _,
        nudges,
        nudges_elsewhere,
        attempts,
        begun,
        counted: _,
        phase_start,
        grounds,
        lost_turns,
        undone,
        review,
        accepted,
        findings: _,
        suggestion: _,
        answer: _,
        output,
        shown_unchanged,
        waits,
        last_error: _,
        asks,
        asks_again,
        idle_cuts,
        failed_trees,
        rejected,
        suggested,
        refused_message,
        failure,
        history: _,
        refused: _,
        cut_off: _,
        last_failure: _,
        hook_message,
        hook_changed,
        changes: _,
        held: _,
        tests,
        red_tests,
        signals,
        reported,
        proofs,
        judged,
        has_passed,
        spend: _,
        elapsed_ms: _,
        verifications: _,
        last,
        prepared,
        interrupted,
        open,
    } = state;
    let mut hasher = Digest::default();
    (task_start, current, rejected, judged).hash(&mut hasher);
    let key = key.map(|key| (key.phase, key.attempt));
    (key, nudges, shown_unchanged, waits, asks, asks_again).hash(&mut hasher);
    let verdict = review.as_ref().map(|review| review.verdict);
    (attempts, begun, phase_start, grounds, nudges_elsewhere).hash(&mut hasher);
    (lost_turns, undone, verdict, accepted, has_passed).hash(&mut hasher);
    let fits = output.as_ref().map(Result::is_ok);
    (fits, state.is_asked_for_output()).hash(&mut hasher);
    // All counts of identical failures above the limit are equivalent.
    let failure = failure.as_ref().map(|(of, times)| (of, (*times).min(3)));
    // Of their order, only the last attempt matters.
    let mut trees: Vec<_> = failed_trees
        .iter()
        .map(|failed| (&failed.tree, failed.attempt))
        .collect();
    trees.sort_unstable();
    let last_failed = failed_trees.last().map(|failed| failed.attempt);
    (trees, last_failed, idle_cuts).hash(&mut hasher);
    signals.hash(&mut hasher);
    (failure, hook_message, hook_changed).hash(&mut hasher);
    (suggested, refused_message).hash(&mut hasher);
    (tests, red_tests, prepared, interrupted, witness).hash(&mut hasher);
    let Proofs {
        baseline,
        at_start,
        reruns,
        passed_again,
        flaky: _,
        old_tests,
        new_tests,
        only_with: _,
    } = proofs;
    (baseline, at_start, reported).hash(&mut hasher);
    (reruns, passed_again, old_tests, new_tests).hash(&mut hasher);
    hash_last(last, &mut hasher);
    open.hash(&mut hasher);
    hasher.value()
}

fn hash_last(last: &Last, hasher: &mut Digest) {
    std::mem::discriminant(last).hash(hasher);
    match last {
        Last::Begin | Last::Waited | Last::Undone => {}
        Last::Turn(turn) => {
            (turn.assessment.kind, turn.assessment.cut_off, &turn.undone).hash(hasher);
        }
        Last::Verified(purpose, ended) => {
            (purpose, &ended.before, &ended.after, &ended.failed).hash(hasher);
            std::mem::discriminant(&ended.verdict).hash(hasher);
        }
        Last::Committed(commit, grounds) => (commit, grounds).hash(hasher),
        Last::HookRejected(message) | Last::CommitFailed(message) | Last::Violated(message) => {
            message.hash(hasher);
        }
        Last::HookChanged { again } => again.hash(hasher),
        Last::Resumed(step) => step.hash(hasher),
    }
}

/// The states still to visit, each with the step that follows.
#[derive(Default)]
struct Frontier {
    /// The numbers of the states in the order in which they were reached and are visited.
    seen: HashMap<u128, usize, BuildDigest>,
    queue: VecDeque<(TaskState, Effects, Step, u32)>,
}

impl Frontier {
    /// Checks the state. It is visited later, unless it was seen before or is the end of the task; with
    /// `crashes`, a task goes on after an end of the run. Returns the number of a state with a future.
    fn reach(
        &mut self,
        policy: &Policy,
        mut state: TaskState,
        witness: Effects,
        depth: u32,
        crashes: bool,
    ) -> Option<usize> {
        state.history.clear();
        let step = decide(policy, &state);
        // What follows an interruption follows from the open step.
        let goes_on =
            |outcome: &Outcome| crashes && outcome.ends_run() && state.interrupted.is_none();
        if matches!(&step, Step::Finish(outcome) if !goes_on(outcome)) {
            check(policy, &state, &witness, &step);
            return None;
        }
        let new = self.seen.len();
        let number = *self.seen.entry(canonical(&state, &witness)).or_insert(new);
        if number == new {
            check(policy, &state, &witness, &step);
            self.queue.push_back((state, witness, step, depth));
        }
        Some(number)
    }
}

/// Visits every state that is reachable under a policy and returns the number of those with a future.
fn explore(policy: &Policy, world: World) -> usize {
    let crashes = world.has_crashes();
    let mut frontier = Frontier::default();
    let mut results: HashMap<_, _, BuildDigest> = HashMap::default();
    // By number, the states that follow without a crash.
    let mut followers: Vec<Vec<usize>> = Vec::new();
    frontier.reach(policy, start(), Effects::default(), 0, crashes);
    while let Some((state, witness, step, depth)) = frontier.queue.pop_front() {
        assert!(
            depth < 60 + 30 * policy.phases.len() as u32,
            "a task without an end: {state:?}"
        );
        let dead = Effects {
            run: None,
            ..witness.clone()
        };
        let mut reach = |next, witness| frontier.reach(policy, next, witness, depth + 1, crashes);
        if matches!(step, Step::Finish(_)) {
            reach(resumed(&state), dead);
            followers.push(Vec::new());
            continue;
        }
        let open = opened(&state, &step);
        let [before, during] = [&state, &open].map(resumed);
        for again in [&before, &during] {
            if !is_asked_again(&state.last) {
                assert_eq!(
                    expected_after_crash(&decide(policy, again)),
                    expected_after_crash(&step),
                    "a crash changes what comes next"
                );
            }
        }
        if crashes {
            reach(before, dead.clone());
        }
        // An interrupted step stays open.
        reach(during.clone(), dead);
        let possible = results
            .entry((Snapshots::of(&state), step.clone()))
            .or_insert_with_key(|(snapshots, step)| {
                with_outputs(policy, observations(world, snapshots, step))
            });
        let mut next_states = Vec::with_capacity(possible.len());
        for observation in &*possible {
            let observation = observation.clone();
            let mut next = open.clone();
            let mut witness = witness.clone();
            witness.sees(&state, &step, &observation);
            next.apply(&Record::Observed { observation });
            if next.interrupted.is_some() {
                assert_eq!(
                    resumed(&next),
                    during,
                    "an interruption is not a crash that was told"
                );
            }
            next_states.extend(reach(next, witness));
        }
        followers.push(next_states);
    }
    assert_every_path_ends(&followers);
    frontier.seen.len()
}

/// Without crashes, no task comes back to a state in which it was: it ends, whatever the agent does.
fn assert_every_path_ends(followers: &[Vec<usize>]) {
    let mut entries = vec![0; followers.len()];
    for follower in followers.iter().flatten() {
        entries[*follower] += 1;
    }
    let mut free: Vec<usize> = (0..entries.len()).filter(|it| entries[*it] == 0).collect();
    let mut sorted = 0;
    while let Some(state) = free.pop() {
        sorted += 1;
        for follower in &followers[state] {
            entries[*follower] -= 1;
            if entries[*follower] == 0 {
                free.push(*follower);
            }
        }
    }
    assert_eq!(sorted, followers.len(), "a task goes round in a circle");
}

/// The state while the step runs.
fn opened(state: &TaskState, step: &Step) -> TaskState {
    let mut open = state.clone();
    open.apply(&Record::Intent { step: step.clone() });
    if let (Step::RunAgent { .. }, Some(before)) = (step, state.current.clone()) {
        let observation = Observation::TurnStarted { before };
        open.apply(&Record::Observed { observation });
    }
    open
}

fn resumed(state: &TaskState) -> TaskState {
    let mut state = state.clone();
    state.apply(&Record::Observed {
        observation: Observation::Resumed,
    });
    state
}

/// Whether a resumed run repeats the request: the agent was unavailable, a check could not start, or a tree
/// could not be read.
fn is_asked_again(last: &Last) -> bool {
    match last {
        Last::Turn(turn) => turn.assessment.kind.is_agent_unavailable(),
        Last::Verified(_, ended) => {
            ended.passed_unread() || matches!(ended.verdict, Verdict::CannotStart { .. })
        }
        _ => false,
    }
}

/// The step that must follow a crash. A wait is not repeated: the turn after it follows. A commit needs a new
/// verification.
fn expected_after_crash(step: &Step) -> &'static str {
    match step {
        Step::Wait { .. } | Step::RunAgent { .. } => "turn",
        Step::Verify { .. } => "verification",
        Step::Commit { grounds } if *grounds != Grounds::Unchecked => "verification",
        Step::Prove { proof, .. } => proof.as_str(),
        Step::Undo { .. } => "undo",
        Step::Commit { .. } => "commit",
        Step::Finish(_) => "end",
    }
}

macro_rules! explored {
    ($($(#[$attribute:meta])* $name:ident: $policy:expr, $world:ident, $least:literal;)*) => {
        $(#[test]
        $(#[$attribute])*
        fn $name() {
            let states = explore(&$policy, World::$world);
            eprintln!("{}: {states} states", stringify!($name));
            assert!(states > $least, "the exploration saw only {states} states");
        })*
    };
}

// Each is a separate test, so that they run in parallel.
explored! {
    a_retry_alone: policy(1, 0, true), Whole, 1_000;
    a_retry_and_a_nudge: policy(1, 1, true), Whole, 1_000;
    nudges_alone: policy(0, 3, true), Whole, 100;
    without_a_check: policy(2, 1, false), Whole, 100;
    neither_retries_nor_nudges: policy(0, 0, true), Whole, 100;
    with_the_proofs_of_the_defaults: with_proofs(policy(0, 0, true)), Crashes, 1_000;
    with_tests_that_no_longer_run: with_proofs(policy(0, 0, true)), Silence, 1_000;
    with_what_no_commit_contains: with_proofs(policy(0, 1, true)), Left, 100;
    with_tests_that_no_longer_run_and_known_failures: Policy {
        known_failures: KnownFailures::Tolerate,
        ..with_proofs(policy(0, 0, true))
    }, Silence, 1_000;
    with_tests_that_no_longer_run_and_a_first_baseline: Policy {
        baseline: Baseline::First,
        test_changes: TestChangePolicy::Fail,
        flaky_reruns: 0,
        ..with_proofs(policy(1, 0, true))
    }, Silence, 1_000;
    with_known_failures: Policy {
        known_failures: KnownFailures::Tolerate,
        ..with_proofs(policy(0, 0, true))
    }, Crashes, 1_000;
    with_a_review: in_phases(policy(0, 0, true), "review", 2), Crashes, 1_000;
    with_a_review_and_a_retry: in_phases(policy(1, 0, true), "review", 1), Crashes, 1_000;
    with_reviews_and_no_check: in_phases(policy(0, 1, false), "review", 3), Crashes, 500;
    with_a_tester_and_a_review: in_phases(policy(1, 0, true), "tester review", 1), Crashes, 1_000;
    a_review_alone: in_phases(policy(1, 1, false), "review-only", 1), Whole, 4;
    a_question: in_phases(policy(1, 1, false), "answer", 1), Whole, 4;
    with_tests_first: in_phases(policy(0, 1, true), "tdd", 0), Crashes, 1_000;
    with_tests_first_and_a_review: in_phases(policy(0, 0, true), "tdd review", 2), Crashes, 1_000;
    with_an_output: with_output(policy(0, 1, true)), Crashes, 100;
    with_an_output_and_the_proofs: with_output(with_proofs(policy(0, 0, true))), Silence, 1_000;
    #[ignore = "scripts/test-full runs it"]
    with_an_output_and_the_proofs_and_every_result: with_output(with_proofs(policy(0, 0, true))), Crashes, 50_000;
    with_an_output_and_no_check: with_output(policy(0, 1, false)), Crashes, 50;
    with_an_output_and_a_review: with_output(in_phases(policy(0, 0, true), "review", 1)), Crashes, 100;
    with_an_output_and_tests_first: with_output(in_phases(policy(0, 0, true), "tdd", 0)), Crashes, 100;
    with_every_proof_required: Policy {
        baseline: Baseline::First,
        test_changes: TestChangePolicy::Fail,
        prove_new_tests: ProveNewTests::Require,
        flaky_reruns: 0,
        ..with_proofs(policy(0, 0, true))
    }, Crashes, 1_000;
    #[ignore = "scripts/test-full runs it"]
    with_every_proof_required_and_a_retry: Policy {
        baseline: Baseline::First,
        test_changes: TestChangePolicy::Fail,
        prove_new_tests: ProveNewTests::Require,
        flaky_reruns: 0,
        ..with_proofs(policy(1, 0, true))
    }, Crashes, 50_000;
}

#[test]
fn without_commits_nothing_is_ever_committed() {
    let policy = Policy {
        commits: false,
        ..with_proofs(policy(1, 0, true))
    };
    let mut frontier = Frontier::default();
    frontier.reach(&policy, start(), Effects::default(), 0, false);
    while let Some((state, witness, step, depth)) = frontier.queue.pop_front() {
        assert!(!matches!(step, Step::Commit { .. }));
        for observation in observations(World::Crashes, &Snapshots::of(&state), &step) {
            let mut next = state.clone();
            let mut witness = witness.clone();
            witness.sees(&state, &step, &observation);
            next.apply(&Record::Intent { step: step.clone() });
            next.apply(&Record::Observed { observation });
            frontier.reach(&policy, next, witness, depth + 1, false);
        }
    }
}

/// Runs the state machine against a random world and returns the history.
fn play(policy: &Policy, choices: &[prop::sample::Index]) -> (Vec<Record>, Option<Outcome>) {
    let began = Observation::TaskStarted {
        start: at("h0", "base"),
        elapsed_ms: 0,
    };
    let mut history = vec![Record::Observed { observation: began }];
    let mut witness = Effects::default();
    for choice in choices {
        let state = fold(&history);
        let step = decide(policy, &state);
        check(policy, &state, &witness, &step);
        if let Step::Finish(outcome) = step {
            return (history, Some(outcome));
        }
        let possible = with_outputs(
            policy,
            observations(World::Whole, &Snapshots::of(&state), &step),
        );
        let observation = possible[choice.index(possible.len())].clone();
        witness.sees(&state, &step, &observation);
        history.push(Record::Intent { step });
        history.push(Record::Observed { observation });
    }
    (history, None)
}

#[test]
fn a_run_without_an_agent_goes_on_with_the_same_turn_when_it_is_taken_up() {
    let policy = policy(1, 1, true);
    for kind in [K::AgentTransient, K::AgentUnavailable] {
        let mut state = start();
        let mut key = None;
        while let step @ (Step::RunAgent { .. } | Step::Wait { .. }) = decide(&policy, &state) {
            let observation = match &step {
                Step::RunAgent { key: now, .. } => {
                    key = Some(*now);
                    turn(kind, at("h0", "base"))
                }
                _ => Observation::Waited,
            };
            state.apply(&Record::Intent { step });
            state.apply(&Record::Observed { observation });
        }
        assert!(matches!(
            decide(&policy, &state),
            Step::Finish(Outcome::AgentUnavailable { .. })
        ));
        let key = key.unwrap();
        assert_eq!(
            decide(&policy, &resumed(&state)),
            Step::RunAgent {
                key: TurnKey {
                    turn: key.turn + 1,
                    ..key
                },
                purpose: TurnPurpose::Implement,
            }
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn long_histories_end_and_replay(
        retries in 0u32..=10,
        nudges in 0u32..=3,
        has_checks: bool,
        proofs: bool,
        output: bool,
        asked in prop::sample::select(vec!["", "review", "tester review", "tdd", "tdd review"]),
        choices in prop::collection::vec(any::<prop::sample::Index>(), 900),
    ) {
        let plain = in_phases(policy(retries, nudges, has_checks), asked, 6);
        let policy = if proofs { with_proofs(plain) } else { plain };
        let policy = if output { with_output(policy) } else { policy };
        let (history, outcome) = play(&policy, &choices);
        prop_assert!(outcome.is_some(), "no end after {} records", history.len());
        let stored: Vec<String> =
            history.iter().map(|record| serde_json::to_string(record).unwrap()).collect();
        let read: Vec<Record> =
            stored.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
        // Equal histories have equal prefixes, and both state machines are functions of the history.
        prop_assert_eq!(&read, &history);
        prop_assert_eq!(decide(&policy, &fold(&read)), decide(&policy, &fold(&history)));
    }
}
