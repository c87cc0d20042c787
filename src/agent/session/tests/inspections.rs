//! When the work tree is inspected for what commands changed.

use super::*;
use proptest::prelude::*;

fn run() -> ToolCall {
    call("run_command", json!({"command": "make"}))
}

/// One of the model's responses, and the file that its command changes, if any.
type Said = (Response, Option<&'static str>);

/// A session whose commands change files, inspected after every step or only where it must be.
struct World {
    session: Session,
    always: bool,
    /// What commands changed since the last inspection.
    unseen: Vec<String>,
    /// What the last inspection found, which is compared before the next one.
    watched: Vec<String>,
    inspections: u32,
    asked: usize,
}

impl World {
    fn new(always: bool) -> Self {
        Self {
            session: Session::new(
                Limits::default(),
                Budget::default(),
                "system".into(),
                "task".into(),
            ),
            always,
            unseen: Vec::new(),
            watched: Vec::new(),
            inspections: 0,
            asked: 0,
        }
    }

    fn inspect(&mut self, must: bool) -> Option<Vec<String>> {
        let due = must || (self.always && self.session.is_inspection_open());
        due.then(|| {
            self.inspections += 1;
            let seen = std::mem::take(&mut self.unseen);
            self.watched.clone_from(&seen);
            seen
        })
    }

    /// What is known to have changed without an inspection.
    fn changed_again(&mut self) -> Vec<String> {
        let watched = |path: &mut String| self.watched.contains(path);
        self.unseen.extract_if(.., watched).collect()
    }

    /// Takes one step and returns it.
    fn step(&mut self, script: &[Said]) -> Step {
        let step = self.session.next_step();
        let observation = match &step {
            Step::AskModel(_) => {
                self.asked += 1;
                let (mut response, _) = script[(self.asked - 1).min(script.len() - 1)].clone();
                response.inspected = self.inspect(self.session.must_inspect_before(&response));
                Observation::ModelResponded(response)
            }
            Step::ApplyTools { calls } => {
                let (_, changed) = &script[(self.asked - 1).min(script.len() - 1)];
                let runs = calls.iter().any(|call| call.request.is_command());
                self.unseen
                    .extend(changed.filter(|_| runs).map(str::to_owned));
                let mut results: Vec<_> = calls.iter().map(carry_out).collect();
                if let Some(last) = calls.iter().rposition(|call| call.request.is_command())
                    && self.session.must_inspect_after(&results)
                    && !self.always
                {
                    results[last].changed = self.changed_again();
                }
                let must = self.session.must_inspect_after(&results);
                let inspected = if self.always && runs {
                    self.inspect(true)
                } else {
                    self.inspect(must)
                };
                Observation::ToolsApplied {
                    results,
                    elapsed_ms: 0,
                    inspected,
                }
            }
            Step::FixSlice(slice) => Observation::SliceEnded(SliceEnded {
                file: slice.file.clone(),
                ..SliceEnded::default()
            }),
            Step::Wait { .. } => Observation::Waited { elapsed_ms: 0 },
            Step::End { .. } => {
                if self.session.is_inspection_open() {
                    let changed = self.inspect(true).unwrap_or_default();
                    self.session.inspected(&changed);
                }
                return step;
            }
        };
        self.session.observe(observation);
        step
    }

    /// Takes steps until the end, or until the model was asked a number of times.
    fn play(&mut self, script: &[Said], asks: usize) -> Option<SessionExit> {
        while self.asked < asks {
            if let Step::End { exit } = self.step(script) {
                return Some(exit);
            }
        }
        None
    }

    fn changed(&self) -> Vec<&str> {
        let changed = self.session.state().changed().iter();
        changed.map(String::as_str).collect()
    }
}

fn command(changed: Option<&'static str>) -> Said {
    (with("", vec![run()]), changed)
}

/// Different commands, none of which repeats an earlier one.
fn commands(count: usize, changed: Option<&'static str>) -> Vec<Said> {
    let numbered = |n| call("run_command", json!({"command": format!("make {n}")}));
    (0..count)
        .map(|n| (with("", vec![numbered(n)]), changed))
        .collect()
}

#[test]
fn commands_that_change_a_file_cost_an_inspection_once_and_at_the_end() {
    let mut world = World::new(false);
    let mut script = commands(20, Some("a.txt"));
    script.push((
        with("", vec![call("finish", json!({"summary": "s"}))]),
        None,
    ));
    assert_eq!(world.play(&script, 30), Some(SessionExit::Submitted));
    assert_eq!((world.changed(), world.inspections), (vec!["a.txt"], 2));
}

#[test]
fn commands_that_begin_to_change_another_file_cost_another_inspection() {
    let mut world = World::new(false);
    world.play(&commands(20, Some("a.txt")), 20);
    assert_eq!((world.changed(), world.inspections), (vec!["a.txt"], 1));
    world.play(&commands(30, Some("b.txt")), 26);
    assert_eq!(
        (world.changed(), world.inspections),
        (vec!["a.txt", "b.txt"], 2)
    );
}

#[test]
fn a_final_message_counts_what_no_inspection_has_shown_before() {
    for (changed, asked) in [(Some("a.txt"), 2), (None, 3)] {
        let mut world = World::new(false);
        let script = [command(changed), (text(FINAL), None)];
        assert_eq!(world.play(&script, 30), Some(SessionExit::Submitted));
        assert_eq!((world.asked, world.inspections), (asked, 1), "{changed:?}");
    }
}

#[test]
fn an_open_item_that_names_files_is_followed_step_by_step() {
    let mut world = World::new(false);
    let script = [
        (text(&plan(&[A])), None),
        command(None),
        command(Some("src/a.rs")),
        command(None),
    ];
    world.play(&script[..2], 3);
    assert_eq!(
        (world.inspections, world.session.state().ledger().finished()),
        (1, 0)
    );
    let mut world = World::new(false);
    world.play(&script[..3], 4);
    assert_eq!(
        (world.inspections, world.session.state().ledger().finished()),
        (2, 1)
    );
}

#[test]
fn a_session_that_ends_at_a_limit_knows_what_its_commands_changed() {
    let mut world = World::new(false);
    let limits = Limits {
        steps: 2,
        ..Limits::default()
    };
    world.session = Session::new(limits, Budget::default(), String::new(), String::new());
    let exit = world.play(&commands(3, Some("a.txt")), 30);
    assert_eq!(exit, Some(SessionExit::StepLimit));
    assert_eq!(world.changed(), ["a.txt"]);
}

#[test]
fn a_step_that_was_not_inspected_has_no_such_field() {
    let observation = Observation::ToolsApplied {
        results: Vec::new(),
        elapsed_ms: 0,
        inspected: None,
    };
    let stored = serde_json::to_value(&observation).unwrap();
    assert_eq!(stored.get("inspected"), None);
}

fn said() -> impl Strategy<Value = Said> {
    let file = prop::sample::select(vec![None, Some("src/a.rs"), Some("c.txt")]);
    let calls = prop::sample::select(vec![
        with("", vec![run()]),
        with(
            "Let me look at the parser once more to see what it does",
            vec![run()],
        ),
        with("", vec![call("run_command", json!({"command": "ls"}))]),
        with("", vec![read("src/a.rs"), run()]),
        with("", vec![read("src/a.rs")]),
        with("", vec![edit("src/b.rs"), run()]),
        with("", vec![bad_edit("src/b.rs")]),
        with(&plan(&[A, B]), vec![run()]),
        with(&plan(&["no file: think"]), vec![run()]),
        with(&check(&["no file: think"]), vec![run()]),
        text(&check(&[B])),
        text(FINAL),
        with("", vec![run(), call("finish", json!({"summary": "s"}))]),
    ]);
    (calls, file)
}

/// How much a step holds against the session.
fn severity(step: &Step) -> usize {
    let Step::AskModel(request) = step else {
        return usize::MAX;
    };
    let of_note = |note: &Note| match note {
        Note::LoopWarning { strong: false, .. } => 1,
        Note::LoopWarning { strong: true, .. } => 2,
        Note::Forced { .. } => 4,
        Note::Repair { .. } => 8,
        _ => 0,
    };
    request.notes.iter().map(of_note).sum()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// A session that inspects the work tree only where it must decides as one that always does. Only a change that
    /// it has not dated exactly lets it count fewer steps without a change, never more.
    #[test]
    fn nothing_is_held_against_a_session_for_an_inspection_that_was_left_out(
        script in prop::collection::vec(said(), 1..40),
        unchanging: bool,
    ) {
        let script: Vec<Said> = if unchanging { script.into_iter().map(|(response, _)| (response, None)).collect() } else { script };
        let (mut always, mut rarely) = (World::new(true), World::new(false));
        for _ in 0..200 {
            let (exact, late) = (always.step(&script), rarely.step(&script));
            if exact != late {
                prop_assert!(!unchanging, "{exact:?} and {late:?}");
                prop_assert!(severity(&late) < severity(&exact), "{exact:?} and {late:?}");
                break;
            }
            let score = |world: &World| world.session.state().score();
            prop_assert!(score(&rarely) <= score(&always));
            prop_assert!(rarely.inspections <= always.inspections);
            if matches!(exact, Step::End { .. }) {
                prop_assert_eq!(rarely.changed(), always.changed());
                prop_assert_eq!(
                    rarely.session.state().counts().steps,
                    always.session.state().counts().steps
                );
                break;
            }
        }
    }
}
