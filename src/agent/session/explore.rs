//! Explores every reachable canonical state of a session within small bounds, and random long sessions beyond
//! them, and checks the properties that must always hold.

use super::state::{Counts, Last};
use super::tests::{FINAL, bad_edit, call, carry_out, check, edit, plan, read, text, with};
use super::*;
use crate::context::{Budget, Message};
use crate::digest::{BuildDigest, Digest};
use crate::model_error::ModelErrorKind;
use proptest::prelude::*;
use serde_json::json;
use std::borrow::Cow;
use std::collections::{BTreeSet, HashSet, VecDeque};
use std::hash::Hash;

const A: &str = "src/a.rs: add";
const B: &str = "src/b.rs: add";

/// The model's possible responses, as far as decisions distinguish them.
fn responses() -> Vec<Response> {
    let late = format!("{}{}{FINAL}", check(&[A]), check(&[B]));
    let block = check(&[B]).replace("[x]", "[!]");
    let more = plan(&["src/c.rs: more"]).replace("SPRAG_PLAN", "SPRAG_PLAN_UPDATE");
    vec![
        text("I think about it."),
        text(&plan(&[A, B])),
        text(&more),
        text(&check(&[A])),
        text(&block),
        text(FINAL),
        text("FAILED: no"),
        with("", vec![read("src/a.rs")]),
        with("", vec![edit("src/a.rs")]),
        with("", vec![bad_edit("src/a.rs")]),
        with("", vec![call("nonsense", json!({}))]),
        with(&late, vec![edit("src/a.rs"), bad_edit("src/b.rs")]),
    ]
}

fn error(kind: ModelErrorKind) -> Observation {
    Observation::ModelFailed {
        error: ModelError {
            kind,
            ..ModelError::network("x")
        },
        elapsed_ms: 0,
    }
}

/// The possible results of a step.
fn observations(step: &Step) -> Vec<Observation> {
    let mut all = vec![Observation::Cancelled];
    match step {
        Step::AskModel(_) => {
            all.extend(responses().into_iter().map(Observation::ModelResponded));
            all.extend(
                [
                    ModelErrorKind::Overloaded,
                    ModelErrorKind::ContextTooLong,
                    ModelErrorKind::Login,
                ]
                .map(error),
            );
        }
        Step::ApplyTools { calls } => all.push(Observation::ToolsApplied {
            results: calls.iter().map(carry_out).collect(),
            elapsed_ms: 0,
        }),
        Step::FixSlice(slice) => {
            for changed in [vec![], vec![slice.file.clone()]] {
                all.push(Observation::SliceEnded(SliceEnded {
                    file: slice.file.clone(),
                    changed,
                    steps: 1,
                    ..SliceEnded::default()
                }));
            }
        }
        Step::Wait { .. } => all.push(Observation::Waited { elapsed_ms: 0 }),
        Step::End { .. } => all.clear(),
    }
    all
}

/// Small bounds under which every rule is reached within a few steps.
fn limits(steps: u32, give_up_no_change: u32, identical: u32) -> Limits {
    Limits {
        steps,
        format_errors: 2,
        waits: 1,
        shrinks: 1,
        edit_failures: 2,
        fix_slices: 1,
        thresholds: Thresholds {
            no_change: 1,
            same_reads: 2,
            no_item: 2,
            read_only: 2,
            forced: 1,
            give_up_score: 2,
            give_up_items: 2,
            give_up_no_change,
            give_up_no_item: 3,
            identical,
        },
        ..Limits::default()
    }
}

/// The parts of the path to a state that the properties need.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
struct PathFacts {
    /// Responses since the repair message, if it was sent.
    since_repair: Option<u32>,
    /// The number of work calls made.
    called: usize,
    /// The number of these calls that were carried out.
    applied: usize,
    /// The number of update blocks received.
    updates: u32,
}

impl PathFacts {
    fn step(mut self, step: &Step) -> Self {
        match step {
            Step::AskModel(request) if repairs(request) => {
                assert_eq!(self.since_repair, None, "a second repair message");
                self.since_repair = Some(0);
            }
            Step::ApplyTools { calls } => self.applied += calls.len(),
            _ => {}
        }
        self
    }

    fn observation(mut self, facts: Option<ResponseFacts>) -> Self {
        if let Some(facts) = facts {
            self.since_repair = self.since_repair.map(|count| count + 1);
            self.called += facts.calls;
            self.updates += facts.updates;
        }
        self
    }
}

/// What the properties need of a response.
#[derive(Debug, Clone, Copy)]
struct ResponseFacts {
    /// The number of work calls.
    calls: usize,
    /// The number of update blocks.
    updates: u32,
}

impl ResponseFacts {
    fn of(observation: &Observation) -> Option<Self> {
        let Observation::ModelResponded(response) = observation else {
            return None;
        };
        let calls = response.calls.iter().map(ToolRequest::of);
        Some(Self {
            calls: calls.filter(Result::is_ok).count(),
            updates: response.text.matches("SPRAG_PLAN_UPDATE").count() as u32,
        })
    }
}

fn repairs(request: &ModelRequest) -> bool {
    let mut notes = request.notes.iter();
    notes.any(|note| matches!(note, Note::Repair { .. }))
}

/// Checks the properties that every session must have.
fn check_step(limits: &Limits, state: &State, way: PathFacts, step: &Step) {
    let cancelled = matches!(
        step,
        Step::End {
            exit: SessionExit::Cancelled
        }
    );
    match step {
        Step::AskModel(request) => {
            assert_eq!(way.called, way.applied, "asked with calls open");
            assert!(state.counts.steps < limits.steps, "asked past the limit");
            assert!(
                way.since_repair.is_none_or(|count| count == 0),
                "asked again after the repair turn"
            );
            let last = request.notes.last();
            let answered = !matches!(state.last, Last::Step) || state.step.called;
            assert!(
                answered || last.is_some(),
                "a request that ends with what the model said"
            );
            assert!(!repairs(request) || matches!(last, Some(Note::Repair { .. })));
        }
        Step::ApplyTools { calls } => {
            assert_eq!(way.called - way.applied, calls.len(), "calls were dropped");
        }
        Step::FixSlice(slice) => {
            assert_eq!(way.called, way.applied);
            assert!(state.counts.fix_slices < limits.fix_slices);
            assert!(slice.limits.steps <= limits.steps - state.counts.steps);
            assert_eq!(slice.limits.fix_slices, 0);
        }
        Step::Wait { .. } => assert!(state.counts.failures <= limits.waits),
        Step::End { exit } => {
            assert!(
                cancelled || way.called == way.applied,
                "ended with calls open"
            );
            assert!(cancelled || state.open.is_empty());
            let broke_off = matches!(exit, SessionExit::Cancelled | SessionExit::ModelError);
            assert!(
                broke_off || way.since_repair.is_none_or(|count| count == 1),
                "a repair message without exactly one response"
            );
            if *exit == SessionExit::Stalled {
                assert_eq!(way.since_repair, Some(1), "given up without a repair turn");
            }
        }
    }
    assert!(
        state.ledger.updates() >= way.updates,
        "an update was dropped"
    );
    assert!(state.counts.final_suppressed <= 3);
    assert!(state.counts.repair_turns <= 1);
    assert!(state.counts.stagnation_score_max <= 4);
    assert!(state.counts.refusals <= limits.shrinks);
}

/// One value for all states with the same futures. Every field is named, so that a new field must be
/// considered here; fields that no decision reads are left out.
fn canonical(state: &State, way: PathFacts) -> u128 {
    let State {
        thresholds,
        words_suffice: _,
        ledger,
        changed,
        counts,
        usage: _,
        elapsed_ms,
        last,
        open,
        answers: _,
        step,
        final_words,
        plain_words,
        format_error,
        stagnation,
        loops,
        repair,
        suppressed,
        edit_failures,
        sliced,
        slice_ended,
        cancelled,
    } = state;
    let counts = Counts {
        tool_calls: 0,
        read_only_steps: 0,
        stagnation_score_max: 0,
        forced_mode_steps: 0,
        ..*counts
    };
    let mut digest = Digest::default();
    (thresholds, ledger, changed, counts, elapsed_ms).hash(&mut digest);
    (last, open, step, final_words, plain_words).hash(&mut digest);
    (format_error, stagnation, loops, repair, suppressed).hash(&mut digest);
    (edit_failures, sliced, slice_ended, cancelled).hash(&mut digest);
    let calls_open = way.called - way.applied;
    let missing = ledger.updates() - way.updates;
    (calls_open, missing, way.since_repair).hash(&mut digest);
    digest.value()
}

/// The kind of a step, without its content.
fn labels(step: &Step) -> Vec<String> {
    let word = |value: serde_json::Value| value.as_str().unwrap().to_owned();
    match step {
        Step::AskModel(request) => {
            let notes = request.notes.iter().map(|note| match note {
                Note::FinalSuppressed { why, .. } => format!("{why:?}"),
                Note::FormatError { why } => format!("{why:?}"),
                Note::LoopWarning { strong, .. } => format!("loop {strong}"),
                other => word(serde_json::to_value(other).unwrap()["note"].take()),
            });
            notes.collect()
        }
        Step::End { exit } => vec![<&str>::from(exit).to_owned()],
        _ => vec![word(serde_json::to_value(step).unwrap()["step"].take())],
    }
}

/// The possible results of a step.
fn results(step: &Step) -> Vec<(Observation, Option<ResponseFacts>)> {
    let all = observations(step).into_iter().map(|observation| {
        let facts = ResponseFacts::of(&observation);
        (observation, facts)
    });
    all.collect()
}

fn explore(limits: &Limits, reached: &mut BTreeSet<String>) -> usize {
    let of_model = results(&Step::AskModel(ModelRequest::default()));
    let mut seen: HashSet<u128, BuildDigest> = HashSet::default();
    let mut queue = VecDeque::from([(State::new(limits), PathFacts::default(), 0u32)]);
    while let Some((state, way, depth)) = queue.pop_front() {
        if !seen.insert(canonical(&state, way)) {
            continue;
        }
        assert!(depth <= limits.steps * 6 + 6, "no end: {state:?}");
        let step = decide(limits, &state);
        check_step(limits, &state, way, &step);
        reached.extend(labels(&step));
        let way = way.step(&step);
        let results = match &step {
            Step::AskModel(_) => Cow::Borrowed(&of_model),
            _ => Cow::Owned(results(&step)),
        };
        let mut begun = state;
        begun.begin(&step);
        for (observation, facts) in &*results {
            let mut next = begun.clone();
            next.observe(observation);
            queue.push_back((next, way.observation(*facts), depth + 1));
        }
    }
    seen.len()
}

#[test]
fn every_reachable_state_keeps_the_properties() {
    let mut states = 0;
    let mut reached = BTreeSet::new();
    for (steps, give_up_no_change, identical) in [(4, 2, 2), (3, 1, 2), (3, 9, 3), (1, 1, 2)] {
        states += explore(&limits(steps, give_up_no_change, identical), &mut reached);
    }
    assert!(states > 50_000, "the exploration saw only {states} states");
    let reached: Vec<&str> = reached.iter().map(String::as_str).collect();
    assert_eq!(
        reached,
        [
            "BadCalls",
            "EditFailed",
            "ItemsLeft",
            "NoAction",
            "NothingChanged",
            "apply_tools",
            "cancelled",
            "fix_slice",
            "forced",
            "loop false",
            "loop true",
            "model_error",
            "repair",
            "repeated_format_error",
            "slice_ended",
            "stalled",
            "step_limit",
            "submitted",
            "wait",
        ]
    );
}

/// Whether this observation ends the session or nearly does.
fn ends(observation: &Observation) -> bool {
    match observation {
        Observation::Cancelled => true,
        Observation::ModelFailed { error, .. } => error.kind != ModelErrorKind::Overloaded,
        Observation::ModelResponded(response) => {
            response.text.contains("FINAL") || response.text.starts_with("FAILED")
        }
        _ => false,
    }
}

/// One record of a session's history.
enum Record {
    Intent(Step),
    Observed(Observation),
}

/// Runs a session in a random world and returns its history and its end.
fn play(
    limits: &Limits,
    choices: &[(bool, prop::sample::Index)],
) -> (Session, Vec<Record>, Option<SessionExit>) {
    let mut session = Session::new(limits.clone(), Budget::default(), "task".into());
    let mut history = Vec::new();
    let mut way = PathFacts::default();
    for (any, choice) in choices {
        let step = decide(limits, session.state());
        check_step(limits, session.state(), way, &step);
        way = way.step(&step);
        session.begin(&step);
        history.push(Record::Intent(step.clone()));
        if let Step::End { exit } = step {
            return (session, history, Some(exit));
        }
        let mut possible = observations(&step);
        possible.retain(|observation| *any || !ends(observation));
        let observation = possible[choice.index(possible.len())].clone();
        way = way.observation(ResponseFacts::of(&observation));
        session.observe(&observation);
        history.push(Record::Observed(observation));
    }
    (session, history, None)
}

/// Every call has exactly one result before the model's next response.
fn check_transcript<'a>(messages: impl Iterator<Item = &'a Message>) {
    let mut open: Vec<&str> = Vec::new();
    for message in messages {
        match message {
            Message::Assistant { calls, .. } => {
                assert_eq!(open, [""; 0], "calls without a result");
                open = calls.iter().map(|call| call.id.as_str()).collect();
            }
            Message::ToolResult { id, .. } => {
                let at = open.iter().position(|open| open == id).unwrap();
                open.remove(at);
            }
            Message::Note { .. } => assert_eq!(open, [""; 0], "a note before the results"),
            Message::System { .. } | Message::Task { .. } => {}
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn long_sessions_end_and_replay(
        small: bool,
        steps in 1u32..80,
        choices in prop::collection::vec((prop::bool::weighted(0.03), any::<prop::sample::Index>()), 500),
    ) {
        let limits = if small { limits(steps, 3, 3) } else { Limits { steps, ..Limits::default() } };
        let (session, history, exit) = play(&limits, &choices);
        prop_assert!(exit.is_some(), "no end after {} records", history.len());
        check_transcript(session.messages());
        let mut folded = State::new(&limits);
        for record in &history {
            match record {
                Record::Intent(step) => folded.begin(step),
                Record::Observed(observation) => folded.observe(observation),
            }
        }
        prop_assert_eq!(&folded, session.state());
        let telemetry = telemetry(session.state(), exit.unwrap());
        prop_assert!(telemetry.plan_finished <= telemetry.plan_items);
    }

    #[test]
    fn whatever_a_model_writes_a_session_ends_within_its_limits(
        texts in prop::collection::vec(
            "(```|~~~|SPRAG_PLAN|SPRAG_PLAN_UPDATE|SPRAG_FINAL|\n|- \\[[ x>!~]\\] |src/[ab].rs: |do|\n){0,24}",
            1..8,
        ),
    ) {
        let limits = Limits { steps: 30, ..Limits::default() };
        let mut session = Session::new(limits.clone(), Budget::default(), String::new());
        let mut asked = 0;
        let exit = loop {
            match session.next_step() {
                Step::AskModel(_) => {
                    let said = &texts[asked % texts.len()];
                    asked += 1;
                    session.observe(&Observation::ModelResponded(text(said)));
                }
                Step::End { exit } => break exit,
                other => return Err(TestCaseError::fail(format!("{other:?}"))),
            }
        };
        prop_assert!(asked <= 30);
        prop_assert!(exit != SessionExit::StepLimit || asked == 30);
    }
}
