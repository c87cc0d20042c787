//! Explores every reachable canonical state of a task for small bounds, and random long histories
//! beyond, for the properties that must never break.

use super::*;
use crate::assess::AssessmentKind as K;
use crate::outcome::TaskEnd;
use crate::snapshot::{Head, KnownSnapshot};
use proptest::prelude::*;
use std::collections::{HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

/// The task's start, two ways of changing it, and one of them as a commit of the agent's.
const STATES: [(&str, &str); 4] = [("h0", "base"), ("h0", "a"), ("h0", "b"), ("h1", "a")];

fn policy(retries: u32, nudges: u32, has_checks: bool) -> Policy {
    Policy {
        phases: vec![PhaseSpec {
            role: Role::Implement,
            expect: Expect::Pass,
            retries,
        }],
        nudges,
        identical_failures: 3,
        waits: 1,
        has_checks,
        accept_unverified: true,
        commits: true,
        max_tokens: None,
        max_cost_usd: None,
        spent_before: Spend::default(),
        deadline_ms: None,
        wait_base_ms: 1000,
    }
}

fn at(head: &str, tree: &str) -> Snapshot {
    Snapshot::Known(KnownSnapshot {
        head: Head::At(RevId(head.into())),
        branch: Some("refs/heads/main".into()),
        tree: Fingerprint(tree.into()),
        dirty: tree != "base",
    })
}

fn start() -> TaskState {
    let start = at("h0", "base");
    fold(&[Record::Observed {
        id: 0,
        observation: Observation::TaskStarted {
            start,
            elapsed_ms: 0,
        },
    }])
}

fn turn(kind: K, after: Snapshot) -> Observation {
    Observation::TurnEnded(Box::new(TurnEnded {
        assessment: Assessment {
            kind,
            indicators: Vec::new(),
            detail: "detail".into(),
            retry_after_ms: None,
            failed_report: None,
        },
        after,
        changes: Vec::new(),
        spend: Spend::default(),
        elapsed_ms: 0,
    }))
}

fn verification(verdict: Verdict, before: &Snapshot, after: Snapshot) -> Observation {
    Observation::Verified(Box::new(VerificationEnded {
        verdict,
        before: before.clone(),
        after,
        errors: Vec::new(),
        failing_output: String::new(),
        failing_checks: Vec::new(),
        hints: Vec::new(),
        elapsed_ms: 0,
    }))
}

fn failed(fingerprint: &str) -> Verdict {
    Verdict::Failed {
        fingerprint: fingerprint.into(),
        build: false,
        tests: Default::default(),
    }
}

/// Everything that can come of a step in the world of three trees and two heads.
fn observations(state: &TaskState, step: &Step) -> Vec<Observation> {
    let cancel = Observation::interrupted(Interruption::Cancel { signal: 2 });
    let current = state.current.clone().unwrap();
    let mut all = vec![cancel];
    match step {
        Step::RunAgent { .. } => {
            let any = [
                K::AgentUnavailable,
                K::AgentTransient,
                K::AgentCrashed,
                K::TurnTimeout,
            ];
            let idle = [
                K::FailedReport,
                K::AwaitingInput,
                K::ReportsBlocked,
                K::AlreadySatisfied,
                K::ClaimsDone,
                K::PlanningOnly,
                K::Empty,
                K::NoChange,
            ];
            for (head, tree) in STATES {
                let after = at(head, tree);
                all.extend(any.iter().map(|kind| turn(*kind, after.clone())));
                match current.same_as(&after) {
                    Some(true) => {
                        all.extend(idle.iter().map(|kind| turn(*kind, after.clone())));
                    }
                    _ => all.push(turn(K::Changed, after)),
                }
            }
            all.push(turn(K::PolicyViolation, current));
            all.push(turn(
                K::Unknown,
                Snapshot::Unknown {
                    why: "git failed".into(),
                },
            ));
            all.push(Observation::interrupted(Interruption::Deadline));
        }
        Step::Verify { .. } => {
            let verdicts = [
                Verdict::Passed,
                failed("f1"),
                failed("f2"),
                Verdict::TimedOut { checks: vec![] },
            ];
            for verdict in verdicts {
                all.push(verification(verdict.clone(), &current, current.clone()));
                all.push(verification(verdict, &current, at("h0", "b")));
            }
        }
        Step::Commit { .. } => {
            all.push(Observation::Committed {
                commit: Some(RevId("c".into())),
            });
            all.push(Observation::HookRejected {
                message: "no".into(),
            });
            all.push(Observation::HookChangedTree {
                after: at("h0", "b"),
            });
            all.push(Observation::CommitFailed {
                message: "no".into(),
            });
        }
        Step::Wait { .. } => all.push(Observation::Waited),
        Step::Finish(_) => all.clear(),
    }
    all
}

/// What no history may bring about.
fn check(policy: &Policy, state: &TaskState, step: &Step) {
    assert!(state.attempt() <= policy.phases[0].retries + 1, "{state:?}");
    assert!(state.nudges <= policy.nudges, "{state:?}");
    let interrupted = state.interrupted.is_some();
    match step {
        Step::RunAgent { key, .. } => {
            assert!(!interrupted, "the agent runs after a cancel");
            assert!(key.attempt <= policy.phases[0].retries + 1, "{key:?}");
        }
        Step::Commit { unverified } => check_commit(policy, state, *unverified),
        Step::Finish(outcome) => check_end(state, outcome),
        Step::Verify { .. } | Step::Wait { .. } => assert!(!interrupted),
    }
}

fn check_commit(policy: &Policy, state: &TaskState, unverified: bool) {
    assert!(state.interrupted.is_none());
    assert_eq!(unverified, !policy.has_checks);
    let known_same = state
        .task_start
        .as_ref()
        .unwrap()
        .same_as(state.current.as_ref().unwrap());
    assert_ne!(
        known_same,
        Some(true),
        "commits what does not differ from the task's start"
    );
    let just_verified = match &state.last {
        Last::Verified(purpose, ended) => {
            let evidence = matches!(purpose, VerifyPurpose::Evidence { .. });
            ended.verdict == Verdict::Passed
                && !evidence
                && Some(&ended.after) == state.current.as_ref()
        }
        _ => !policy.has_checks,
    };
    assert!(
        just_verified,
        "commits what was not just verified: {:?}",
        state.last
    );
}

fn check_end(state: &TaskState, outcome: &Outcome) {
    let committed = matches!(state.last, Last::Committed(..));
    let done = outcome.task_end() == TaskEnd::Done;
    let satisfied = matches!(outcome, Outcome::AlreadySatisfied { .. });
    assert_eq!(
        done,
        (committed || satisfied) && state.interrupted.is_none(),
        "{outcome:?} {state:?}"
    );
    if satisfied {
        let same = state
            .task_start
            .as_ref()
            .unwrap()
            .same_as(state.current.as_ref().unwrap());
        assert_eq!(same, Some(true), "satisfied by a tree that changed");
    }
    if let Last::Verified(VerifyPurpose::Evidence { .. }, _) = &state.last {
        assert!(!done, "evidence made a task done");
    }
}

/// The state without what no decision reads, so that equal futures are one state.
fn canonical(state: &TaskState) -> u64 {
    let mut state = state.clone();
    state.history.clear();
    state.changes.clear();
    state.last_failure = None;
    state.verifications = 0;
    state.purpose = None;
    state.turn_start = None;
    if let Some(key) = &mut state.key {
        key.turn = 0;
    }
    let mut hasher = DefaultHasher::new();
    format!("{state:?}").hash(&mut hasher);
    hasher.finish()
}

fn explore(policy: &Policy) -> usize {
    let mut seen = HashSet::new();
    let mut queue = VecDeque::from([(start(), 0u32)]);
    while let Some((state, depth)) = queue.pop_front() {
        if !seen.insert(canonical(&state)) {
            continue;
        }
        assert!(depth < 60, "a task without an end: {state:?}");
        let step = decide(policy, &state);
        check(policy, &state, &step);
        if matches!(step, Step::Finish(_)) {
            if state.interrupted.is_some() {
                queue.push_back((resumed(&state), depth + 1));
            }
            continue;
        }
        let mut open = state.clone();
        open.apply(&Record::Intent {
            id: 1,
            step: step.clone(),
        });
        let again = decide(policy, &resumed(&open));
        assert_eq!(
            taken_up(&again),
            taken_up(&step),
            "a crash changes what comes next"
        );
        for observation in observations(&state, &step) {
            let mut next = open.clone();
            next.apply(&Record::Observed { id: 1, observation });
            queue.push_back((next, depth + 1));
        }
    }
    seen.len()
}

fn resumed(state: &TaskState) -> TaskState {
    let mut state = state.clone();
    state.apply(&Record::Observed {
        id: 1,
        observation: Observation::Resumed,
    });
    state
}

/// What must come after a crash. A wait need not be waited out again: the turn behind it comes. A
/// commit needs the checks once more.
fn taken_up(step: &Step) -> &'static str {
    match step {
        Step::Wait { .. } | Step::RunAgent { .. } => "turn",
        Step::Verify { .. } | Step::Commit { unverified: false } => "verification",
        Step::Commit { unverified: true } => "commit",
        Step::Finish(_) => "end",
    }
}

#[test]
fn every_reachable_state_keeps_the_properties() {
    let mut states = 0;
    for (retries, nudges, has_checks) in [
        (2, 1, true),
        (1, 2, true),
        (0, 3, true),
        (2, 1, false),
        (0, 0, true),
    ] {
        states += explore(&policy(retries, nudges, has_checks));
    }
    assert!(states > 1_000, "the exploration saw only {states} states");
}

#[test]
fn without_commits_nothing_is_ever_committed() {
    let policy = Policy {
        commits: false,
        ..policy(1, 1, true)
    };
    let mut queue = VecDeque::from([start()]);
    let mut seen = HashSet::new();
    while let Some(state) = queue.pop_front() {
        if !seen.insert(canonical(&state)) {
            continue;
        }
        let step = decide(&policy, &state);
        assert!(!matches!(step, Step::Commit { .. }));
        for observation in observations(&state, &step) {
            let mut next = state.clone();
            next.apply(&Record::Intent {
                id: 1,
                step: step.clone(),
            });
            next.apply(&Record::Observed { id: 1, observation });
            queue.push_back(next);
        }
    }
}

/// Plays a random world against the machine and returns the history.
fn play(policy: &Policy, choices: &[prop::sample::Index]) -> (Vec<Record>, Option<Outcome>) {
    let start = at("h0", "base");
    let began = Observation::TaskStarted {
        start,
        elapsed_ms: 0,
    };
    let mut history = vec![Record::Observed {
        id: 0,
        observation: began,
    }];
    for (id, choice) in (1u64..).zip(choices) {
        let state = fold(&history);
        let step = decide(policy, &state);
        check(policy, &state, &step);
        if let Step::Finish(outcome) = step {
            return (history, Some(outcome));
        }
        let possible = observations(&state, &step);
        let observation = possible[choice.index(possible.len())].clone();
        history.push(Record::Intent { id, step });
        history.push(Record::Observed { id, observation });
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
            state.apply(&Record::Intent { id: 1, step });
            state.apply(&Record::Observed { id: 1, observation });
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
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn long_histories_end_and_replay(
        retries in 0u32..=10,
        nudges in 0u32..=3,
        has_checks: bool,
        choices in prop::collection::vec(any::<prop::sample::Index>(), 200),
    ) {
        let policy = policy(retries, nudges, has_checks);
        let (history, outcome) = play(&policy, &choices);
        prop_assert!(outcome.is_some(), "no end after {} records", history.len());
        let stored: Vec<String> =
            history.iter().map(|record| serde_json::to_string(record).unwrap()).collect();
        let read: Vec<Record> =
            stored.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
        prop_assert_eq!(&read, &history);
        for end in 1..=history.len() {
            prop_assert_eq!(
                decide(&policy, &fold(&read[..end])),
                decide(&policy, &fold(&history[..end]))
            );
        }
    }
}
