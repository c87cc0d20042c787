//! A small world for the state machine: three trees, two heads, and every possible result of a step.

use super::super::*;
use crate::assess::{AssessmentKind as K, CutOff};
use crate::output_schema::StructuredOutput;
use crate::review::read_review;
use crate::settings::{Baseline, KnownFailures, ProveNewTests, SignalPolicy, TestChangePolicy};
use crate::snapshot::{Head, KnownSnapshot};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The task's start, two changed trees, and one of these as a commit by the agent.
const STATES: [(&str, &str); 4] = [("h0", "base"), ("h0", "a"), ("h0", "b"), ("h1", "a")];

/// The part of the world to explore.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum World {
    /// Every possible agent behaviour.
    Whole,
    /// One turn of each kind, and a crash before every record.
    Crashes,
    /// The same with few results of checks, one of them a pass that reports no tests.
    Silence,
    /// The same, where every turn leaves something behind that no commit contains.
    Left,
}

impl World {
    /// Whether a crash comes before every record.
    pub(super) fn has_crashes(self) -> bool {
        self != Self::Whole
    }
}

pub(super) fn policy(retries: u32, nudges: u32, has_checks: bool) -> Policy {
    Policy {
        phases: phases(PhasesAsked {
            retries,
            nudges,
            ..PhasesAsked::default()
        }),
        identical_failures: 3,
        waits: 1,
        has_checks,
        only_checks: false,
        is_question: false,
        accept_unverified: true,
        baseline: Baseline::Off,
        flaky_reruns: 0,
        known_failures: KnownFailures::Fail,
        test_changes: TestChangePolicy::Ok,
        prove_new_tests: ProveNewTests::Off,
        signals: SignalPolicy::Report,
        commits: true,
        wants_output: false,
        max_tokens: None,
        max_cost_usd: None,
        spent_before: Spend::default(),
        deadline_ms: None,
        wait_base_ms: 1000,
    }
}

/// The policy with the default proofs.
pub(super) fn with_proofs(policy: Policy) -> Policy {
    Policy {
        baseline: Baseline::OnFailure,
        flaky_reruns: 1,
        test_changes: TestChangePolicy::Prove,
        ..policy
    }
}

/// The policy with a required output value.
pub(super) fn with_output(policy: Policy) -> Policy {
    Policy {
        wants_output: true,
        ..policy
    }
}

/// When a value is required, every turn but a reviewer's gives one that fits, or none.
pub(super) fn with_outputs(policy: &Policy, all: Vec<Observation>) -> Vec<Observation> {
    if !policy.wants_output {
        return all;
    }
    let fits: StructuredOutput = Ok(true.into());
    let misfit: StructuredOutput = Err("no".into());
    let both = |observation: Observation| match &observation {
        Observation::TurnEnded(turn) if turn.review.is_none() => [&fits, &misfit]
            .map(|output| {
                with(observation.clone(), |turn| {
                    turn.output = Some(output.clone())
                })
            })
            .to_vec(),
        _ => vec![observation],
    };
    all.into_iter().flat_map(both).collect()
}

/// The policy with the phases named in `words` and the given number of reviews.
pub(super) fn in_phases(policy: Policy, words: &str, reviews: u32) -> Policy {
    let asked = PhasesAsked {
        tdd: words.contains("tdd"),
        review: words.contains("review"),
        tester: words.contains("tester"),
        review_only: words == "review-only",
        asks: words == "answer",
        retries: policy.phases[0].retries,
        nudges: policy.phases[0].nudges,
    };
    let mut phases = phases(asked);
    phases.retain(|row| row.cycle <= reviews.max(1));
    Policy { phases, ..policy }
}

pub(super) fn at(head: &str, tree: &str) -> Snapshot {
    Snapshot::Known(Arc::new(KnownSnapshot {
        head: Head::At(RevId(head.into())),
        branch: None,
        tree: Fingerprint(tree.into()),
        dirty: tree != "base",
    }))
}

pub(super) fn start() -> TaskState {
    fold(&[Record::Observed {
        observation: Observation::TaskStarted {
            start: at("h0", "base"),
            elapsed_ms: 0,
        },
    }])
}

/// Tree `b` changes an existing test and adds one.
fn tests_of(tree: &Snapshot) -> Arc<TestChanges> {
    let tests = match tree.tree() {
        Some(tree) if tree.0 == "b" => TestChanges {
            changed: vec!["t".into()],
            added: vec!["n".into()],
            ..TestChanges::default()
        },
        _ => TestChanges::default(),
    };
    tests.into()
}

pub(super) fn turn(kind: K, after: Snapshot) -> Observation {
    cut_off(kind, None, after)
}

/// A turn that changed files and whose agent exited with code 1.
fn half_done(after: Snapshot) -> Observation {
    match turn(K::Changed, after) {
        Observation::TurnEnded(mut ended) => {
            Arc::make_mut(&mut ended).assessment.error_exit = Some(1);
            Observation::TurnEnded(ended)
        }
        other => other,
    }
}

fn cut_off(kind: K, cut_off: Option<CutOff>, after: Snapshot) -> Observation {
    Observation::TurnEnded(Arc::new(TurnEnded {
        assessment: Assessment {
            kind,
            indicators: Vec::new(),
            detail: String::new(),
            retry_after_ms: None,
            failed_report: None,
            error_exit: (kind == K::AgentCrashed && cut_off.is_none()).then_some(1),
            last_error: None,
            cut_off,
        },
        tests: tests_of(&after),
        after,
        changes: Vec::new(),
        spend: Spend::default(),
        elapsed_ms: 0,
        undone: Vec::new(),
        held: None,
        message: None,
        suggested: None,
        review: None,
        output: None,
    }))
}

/// A review after a turn that left this state.
pub(super) fn reviewed(accepts: bool, after: Snapshot) -> Observation {
    let word = if accepts { "ACCEPTABLE" } else { "NEEDS_FIXES" };
    let review = read_review(&format!("- a:1: wrong\nVERDICT: {word}"), "");
    with(turn(K::NoChange, after), |turn| turn.review = Some(review))
}

pub(super) fn brought_back(after: Snapshot) -> Observation {
    Observation::Undone {
        tests: tests_of(&after),
        after,
        changes: Vec::new(),
    }
}

/// A turn with reverted changes.
pub(super) fn undone(kind: K, after: Snapshot) -> Observation {
    with(turn(kind, after), |turn| turn.undone = vec!["x".into()])
}

fn with(turn: Observation, change: impl FnOnce(&mut TurnEnded)) -> Observation {
    match turn {
        Observation::TurnEnded(mut ended) => {
            change(Arc::make_mut(&mut ended));
            Observation::TurnEnded(ended)
        }
        other => other,
    }
}

pub(super) fn verification(verdict: Verdict, before: &Snapshot, after: Snapshot) -> Observation {
    let failed = match &verdict {
        Verdict::Failed { fingerprint, .. } => failure(fingerprint),
        _ => Vec::new(),
    };
    Observation::Verified(Arc::new(VerificationEnded {
        failed,
        signals: Vec::new(),
        reported: Arc::default(),
        verdict,
        before: before.clone(),
        altered: Vec::new(),
        tests: tests_of(&after),
        after,
        errors: Vec::new(),
        failing_output: String::new(),
        failing_checks: Vec::new(),
        hints: Vec::new(),
        elapsed_ms: 0,
    }))
}

pub(super) fn failed(fingerprint: &str) -> Verdict {
    Verdict::Failed {
        fingerprint: fingerprint.into(),
        build: false,
        lint: false,
        tests: Default::default(),
    }
}

/// A failure whose tests are unknown.
pub(super) fn failure(fingerprint: &str) -> Vec<FailedCheck> {
    vec![FailedCheck {
        check: "test".into(),
        end: "failed".into(),
        fingerprint: fingerprint.into(),
        tests: Default::default(),
        all_named: false,
        hides_some: false,
        passed: None,
        results: Default::default(),
        failed_by_run: Vec::new(),
        places: Default::default(),
        refused: None,
    }]
}

pub(super) fn proved(proof: Proof, tree: &Snapshot, result: ProofResult) -> Observation {
    Observation::Proved(Arc::new(Proved {
        proof,
        tree: tree.tree().cloned(),
        result,
        reported: Arc::default(),
        only_with: None,
        elapsed_ms: 0,
    }))
}

/// What a check reports that ran this number of tests; `None` if it reported no result, although one was to
/// be expected.
fn report(ran: Option<u64>) -> Arc<Reported> {
    let check = || "test".to_owned();
    let silent: BTreeSet<String> = ran.is_none().then(check).into_iter().collect();
    let reported = Reported {
        ran: ran.map(|ran| (check(), ran)).into_iter().collect(),
        doubtful: silent.clone(),
        silent,
        idle: (ran == Some(0)).then(check).into_iter().collect(),
        others_passed: ran != Some(0),
        contradictory: BTreeSet::new(),
        open: BTreeSet::new(),
    };
    reported.into()
}

/// The same observation of checks that report so much about their tests.
fn reporting(observation: Observation, ran: Option<u64>) -> Observation {
    match observation {
        Observation::Verified(mut ended) => {
            Arc::make_mut(&mut ended).reported = report(ran);
            Observation::Verified(ended)
        }
        Observation::Proved(mut proved) => {
            Arc::make_mut(&mut proved).reported = report(ran);
            Observation::Proved(proved)
        }
        other => other,
    }
}

fn unknown() -> Snapshot {
    Snapshot::Unknown {
        why: "git failed".into(),
    }
}

/// The part of a state on which the results of a step depend.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Snapshots {
    current: Snapshot,
    phase_start: Snapshot,
}

impl Snapshots {
    pub(super) fn of(state: &TaskState) -> Self {
        Self {
            current: state.current.clone().unwrap(),
            phase_start: state.phase_start.clone().unwrap(),
        }
    }
}

/// Every possible result of a step.
pub(super) fn observations(world: World, snapshots: &Snapshots, step: &Step) -> Vec<Observation> {
    let Snapshots {
        current,
        phase_start,
    } = snapshots;
    let mut all = vec![Observation::interrupted(Interruption::Cancel { signal: 2 })];
    match step {
        Step::RunAgent { key, .. } => match key.name.map(|name| name.phase) {
            Some(Phase::Review) => reviews(current, &mut all),
            Some(Phase::Red) => tests(current, &mut all),
            _ if world.has_crashes() => few_turns(current, &mut all),
            _ => turns(current, &mut all),
        },
        Step::Undo { .. } => {
            all.push(brought_back(phase_start.clone()));
            all.push(brought_back(current.clone()));
        }
        Step::Verify { .. } => verifications(world, current, &mut all),
        Step::Prove { proof, .. } => proofs(world, *proof, current, &mut all),
        Step::Commit { .. } if current.tree().is_none() => {
            all.push(Observation::CommitFailed {
                message: "no".into(),
            });
        }
        Step::Commit { .. } => {
            all.push(Observation::Committed {
                commit: Some(RevId("c".into())),
            });
            for of_message in [false, true] {
                all.push(Observation::HookRejected {
                    message: "no".into(),
                    of_message,
                });
            }
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
    if matches!(
        step,
        Step::Verify { .. } | Step::Prove { .. } | Step::Commit { .. }
    ) {
        let what = "theirs".into();
        all.push(Observation::Violated { what });
    }
    match world {
        World::Left => all.into_iter().map(leaving).collect(),
        World::Whole | World::Crashes | World::Silence => all,
    }
}

/// The same observation of a work tree that has what no commit contains.
fn leaving(mut observation: Observation) -> Observation {
    let tests = match &mut observation {
        Observation::TurnEnded(ended) => &mut Arc::make_mut(ended).tests,
        Observation::Verified(ended) => &mut Arc::make_mut(ended).tests,
        _ => return observation,
    };
    Arc::make_mut(tests).left = vec!["l".into()];
    observation
}

fn turns(current: &Snapshot, all: &mut Vec<Observation>) {
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
            Some(true) => all.extend(idle.iter().map(|kind| turn(*kind, after.clone()))),
            _ => all.push(turn(K::Changed, after)),
        }
    }
    all.push(turn(K::PolicyViolation, current.clone()));
    all.push(turn(K::Unknown, unknown()));
    all.push(Observation::interrupted(Interruption::Deadline));
}

fn reviews(current: &Snapshot, all: &mut Vec<Observation>) {
    for accepts in [true, false] {
        all.push(reviewed(accepts, current.clone()));
    }
    let other = match current.tree() {
        Some(tree) if tree.0 == "b" => at("h0", "a"),
        _ => at("h0", "b"),
    };
    // The reviewer's changes could not be reverted, or are unknown.
    all.push(reviewed(true, other));
    all.push(reviewed(true, unknown()));
    let ends = [K::AgentCrashed, K::TurnTimeout, K::FailedReport];
    all.extend(ends.iter().map(|kind| turn(*kind, current.clone())));
}

/// Only tree `b` has a test.
fn tests(current: &Snapshot, all: &mut Vec<Observation>) {
    for after in [current.clone(), at("h0", "b")] {
        let kind = match current.same_as(&after) {
            Some(true) => K::ClaimsDone,
            _ => K::Changed,
        };
        all.push(turn(kind, after.clone()));
        all.push(undone(kind, after.clone()));
        all.push(turn(K::AgentCrashed, after));
    }
    all.push(turn(K::PlanningOnly, current.clone()));
    all.push(turn(K::AlreadySatisfied, current.clone()));
    all.push(turn(K::Unknown, unknown()));
}

fn few_turns(current: &Snapshot, all: &mut Vec<Observation>) {
    let idle = [K::AlreadySatisfied, K::ClaimsDone, K::PlanningOnly];
    all.extend(idle.iter().map(|kind| turn(*kind, current.clone())));
    let own = Some(CutOff::OwnLimit);
    all.push(cut_off(K::AgentCrashed, own, current.clone()));
    let stalled = Some(CutOff::NoProgress);
    all.push(cut_off(K::AgentCrashed, stalled, current.clone()));
    let silence = Some(CutOff::Silence);
    all.push(cut_off(K::AgentTransient, silence, current.clone()));
    for tree in ["base", "a", "b"] {
        let after = at("h0", tree);
        let limit = Some(CutOff::TimeLimit);
        all.push(cut_off(K::TurnTimeout, limit, after.clone()));
        if current.same_as(&after) != Some(true) {
            all.push(turn(K::Changed, after.clone()));
            all.push(half_done(after));
        }
    }
}

fn verifications(world: World, current: &Snapshot, all: &mut Vec<Observation>) {
    if matches!(world, World::Silence | World::Left) {
        let passed = || verification(Verdict::Passed, current, current.clone());
        all.extend([
            passed(),
            reporting(passed(), None),
            verification(failed("f1"), current, current.clone()),
        ]);
        return;
    }
    let verdicts = [failed("f2"), Verdict::TimedOut { checks: vec![] }];
    let other = match current.tree() {
        Some(tree) if tree.0 == "b" => at("h0", "a"),
        _ => at("h0", "b"),
    };
    for verdict in verdicts {
        all.push(verification(verdict, current, current.clone()));
    }
    for verdict in [Verdict::Passed, failed("f1")] {
        for after in [current.clone(), other.clone()] {
            all.push(verification(verdict.clone(), current, after));
        }
    }
    if world == World::Crashes {
        let missing = Verdict::CannotStart {
            check: "test".into(),
            program: "x".into(),
        };
        all.push(verification(missing, current, current.clone()));
        all.push(verification(Verdict::Passed, current, unknown()));
    }
}

fn proofs(world: World, proof: Proof, current: &Snapshot, all: &mut Vec<Observation>) {
    let failed = ProofResult::Failed {
        failed: failure("f1").into(),
    };
    let unknown = ProofResult::Unknown { why: String::new() };
    let mut results = vec![ProofResult::Passed, failed, unknown];
    if proof == Proof::Baseline {
        results.push(ProofResult::CannotStart {
            check: "test".into(),
            program: "x".into(),
        });
    }
    let ran = (world == World::Silence).then_some(4);
    for result in results {
        all.push(match ran {
            Some(_) => reporting(proved(proof, current, result), ran),
            None => proved(proof, current, result),
        });
    }
    // The original tests pass, and none of them ran.
    if world == World::Silence && proof == Proof::OldTests {
        all.push(reporting(proved(proof, current, ProofResult::Passed), None));
    }
}
