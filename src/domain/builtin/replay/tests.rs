use super::*;
use crate::builtin::context::{Budget, Message};
use crate::builtin::model_error::ModelError;
use crate::builtin::session::{Limits, Thresholds};
use crate::builtin::tool::{Arguments, ToolCall};
use crate::builtin::trajectory::{self, Line};
use serde_json::{Value, json};

const BUDGET: Budget = Budget {
    window_tokens: 10_000,
    response_tokens: 1_000,
    declared_tokens: 0,
};

fn call(name: &str, arguments: Value) -> ToolCall {
    ToolCall {
        id: format!("{name}-1"),
        name: name.into(),
        arguments: Arguments::Given(arguments),
    }
}

fn says(text: &str, calls: Vec<ToolCall>) -> Observation {
    Observation::ModelResponded(Response {
        text: text.into(),
        calls,
        ..Response::default()
    })
}

fn edit(path: &str) -> ToolCall {
    call(
        "edit_file",
        json!({"path": path, "search": "a", "replace": "b"}),
    )
}

fn missed(path: &str) -> ToolCall {
    call(
        "edit_file",
        json!({"path": path, "search": "missing", "replace": "b"}),
    )
}

fn looks(path: &str) -> ToolCall {
    call("read_file", json!({"path": path}))
}

fn finish(summary: &str) -> ToolCall {
    call("finish", json!({"summary": summary}))
}

/// Tools that succeed, unless the text to replace is `missing`.
fn carried_out(open: &OpenCall) -> ToolResult {
    let mut result = ToolResult {
        ok: true,
        output: "fine".into(),
        ..ToolResult::default()
    };
    match &open.request {
        ToolRequest::EditFile { search, .. } if search == "missing" => {
            result.ok = false;
            result.output = "the text is not in the file\nthe nearest is".into();
        }
        ToolRequest::EditFile { path, .. } => result.changed.push(path.clone()),
        ToolRequest::ReadFile { path, .. } => {
            result.read.push(path.clone());
            result.output = "a line that is read\n".repeat(30);
        }
        _ => {}
    }
    result
}

/// Runs a session as the agent's loop does and records its lines. The last observation of the script is
/// repeated.
struct Stage {
    script: Vec<Observation>,
    next: usize,
    lines: Vec<Line>,
}

impl Stage {
    fn session(&mut self, limits: Limits, slice: Option<&str>) -> (Session, SessionExit) {
        let mut session = Session::new(limits, BUDGET, texts::system(true), "Fix it".into());
        self.lines.push(Line::Session(Box::new(Header {
            v: trajectory::VERSION,
            sprag: "0.1.0".into(),
            provider: "openai".into(),
            model: "m".into(),
            turn: TurnName {
                task: "fix".into(),
                attempt: 1,
                turn: 1,
                purpose: "implement".into(),
            },
            slice: slice.map(str::to_owned),
            limits: session.limits().clone(),
            budget: BUDGET,
            messages: session.messages().cloned().collect(),
        })));
        loop {
            let intent = session.next_step();
            let request = match &intent {
                Step::AskModel(_) => Some(Request::of(&session.request())),
                _ => None,
            };
            self.lines.push(Line::Intent {
                intent: intent.clone(),
                request,
            });
            let observation = match intent {
                Step::AskModel(_) => {
                    let at = self.next.min(self.script.len() - 1);
                    self.next += 1;
                    self.script[at].clone()
                }
                Step::ApplyTools { calls } => Observation::ToolsApplied {
                    results: calls.iter().map(carried_out).collect(),
                    elapsed_ms: 0,
                    inspected: None,
                },
                Step::FixSlice(slice) => {
                    let (inner, _) = self.session(slice.limits, Some(&slice.file));
                    let state = inner.state();
                    Observation::SliceEnded(SliceEnded {
                        file: slice.file,
                        changed: state.changed().iter().cloned().collect(),
                        steps: state.counts().steps,
                        tool_calls: state.counts().tool_calls,
                        usage: state.usage(),
                        elapsed_ms: 0,
                    })
                }
                Step::Wait { .. } => Observation::Waited { elapsed_ms: 0 },
                Step::End { exit } => return (session, exit),
            };
            self.lines.push(Line::Observed {
                observation: observation.clone(),
            });
            session.observe(observation);
        }
    }
}

fn played(limits: Limits, script: Vec<Observation>) -> Vec<Line> {
    let mut stage = Stage {
        script,
        next: 0,
        lines: Vec::new(),
    };
    stage.session(limits, None);
    stage.lines
}

fn text_of(lines: &[Line]) -> String {
    let lines = lines
        .iter()
        .map(|line| serde_json::to_string(line).unwrap());
    lines.map(|line| line + "\n").collect()
}

fn replayed(text: &str) -> Replay {
    replay(&trajectory::read(text.as_bytes()).unwrap())
}

const PLAN: &str = "Two files.\n```SPRAG_PLAN\n- [ ] src/a.rs: one\n- [ ] src/b.rs: two\n```\n";

/// A session that only reads, and does everything in the response to the repair message.
fn stalls() -> Vec<Line> {
    let mut script = vec![says(PLAN, vec![looks("src/a.rs")])];
    let look = |n: u32| call("read_file", json!({"path": "src/a.rs", "start": n}));
    script.extend((1..8).map(|n| says("I look again.", vec![look(n)])));
    script.push(says(
        "",
        vec![edit("src/a.rs"), edit("src/b.rs"), finish("Done")],
    ));
    played(Limits::default(), script)
}

/// A session in which one edit keeps failing until a session on that file alone makes it.
fn slices() -> Vec<Line> {
    let miss = |text: &str| says(text, vec![missed("src/a.rs")]);
    let script = vec![
        says(PLAN, Vec::new()),
        Observation::ModelFailed {
            error: ModelError::of_answer(429, "slow down", None),
            elapsed_ms: 0,
        },
        miss("First try."),
        miss("Second thought about it."),
        miss("Third, with other words."),
        says(
            "In the small session.",
            vec![edit("src/a.rs"), finish("a.rs is changed")],
        ),
        says("", vec![finish("Too early")]),
        says("", vec![edit("src/b.rs"), finish("Add one and two")]),
    ];
    let limits = Limits {
        cost_usd: Some(0.7),
        tokens: Some(1_000),
        ..Limits::default()
    };
    played(limits, script)
}

#[test]
fn what_was_recorded_is_decided_again() {
    let lines = [stalls(), slices()].concat();
    let replay = replayed(&text_of(&lines));
    let decisions = lines
        .iter()
        .filter(|line| matches!(line, Line::Intent { .. }));
    assert!(replay.same, "{}", replay.text());
    assert_eq!(replay.decisions, decisions.count());
    assert_eq!(replay.sessions.len(), 2);
    for session in &replay.sessions {
        assert!(session.requests_changed.is_empty() && session.system_prompt_same);
        assert_eq!(
            session.telemetry.as_ref().unwrap().exit,
            SessionExit::Submitted
        );
    }
}

#[test]
fn people_read_an_account() {
    insta::assert_snapshot!(replayed(&text_of(&slices())).text());
}

#[test]
fn a_stalled_session_shows_why_it_was_forced() {
    insta::assert_snapshot!(replayed(&text_of(&stalls())).text());
}

#[test]
fn a_decision_that_differs_is_named_and_hides_no_other() {
    let mut lines = stalls();
    // As if the version that recorded it had never demanded an edit.
    for line in &mut lines {
        if let Line::Intent {
            intent: Step::AskModel(request),
            ..
        } = line
        {
            request
                .notes
                .retain(|note| !matches!(note, Note::Forced { .. }));
        }
    }
    let replay = replayed(&text_of(&lines));
    assert!(!replay.same);
    let steps: Vec<u32> = replay.differences.iter().map(|it| it.step).collect();
    assert!(steps.len() > 1 && steps.is_sorted(), "{steps:?}");
    let first = &replay.differences[0];
    assert!(
        matches!(&first.now, Step::AskModel(request) if request.notes.iter().any(|it| matches!(it, Note::Forced { .. })))
    );
    let text = replay.text();
    let end = text
        .split("differ from what was recorded:\n")
        .nth(1)
        .unwrap();
    let shown = format!(
        "  session 1, step {} (line {})\n    then: ask the model\n    now:  ask the model; forced mode",
        first.step, first.line
    );
    assert!(end.starts_with(&shown), "{end}");
    assert_eq!(text.matches("DIFFERS, then: ").count(), steps.len());
    let json = serde_json::to_value(&replay).unwrap();
    assert_eq!(json["same"], false);
    assert_eq!(json["differences"][0]["then"]["step"], "ask_model");
}

#[test]
fn a_difference_that_words_do_not_show_is_shown_as_json() {
    let mut lines = stalls();
    for line in &mut lines {
        if let Line::Intent {
            intent: Step::AskModel(request),
            ..
        } = line
            && !request.notes.is_empty()
        {
            request.refusals = 0;
            request.answers.push(crate::builtin::session::CallAnswer {
                id: "x".into(),
                name: "finish".into(),
                ok: true,
                text: "t".into(),
            });
            break;
        }
    }
    let text = replayed(&text_of(&lines)).text();
    assert!(
        text.contains("then: {\"step\":\"ask_model\",\"answers\":[{\"id\":\"x\""),
        "{text}"
    );
}

#[test]
fn other_limits_are_decided_by_as_they_were() {
    let limits = Limits {
        steps: 2,
        thresholds: Thresholds {
            forced: 1,
            ..Thresholds::default()
        },
        ..Limits::default()
    };
    let lines = played(limits, vec![says(PLAN, vec![looks("src/a.rs")])]);
    let replay = replayed(&text_of(&lines));
    assert!(replay.same, "{}", replay.text());
    let telemetry = replay.sessions[0].telemetry.as_ref().unwrap();
    assert_eq!(telemetry.exit, SessionExit::StepLimit);
    let text = text_of(&lines).replacen("\"steps\":2", "\"steps\":3", 1);
    let replay = replayed(&text);
    assert_eq!(replay.differences.len(), 1);
    assert_eq!(
        replay.differences[0].then,
        Step::End {
            exit: SessionExit::StepLimit
        }
    );
}

#[test]
fn requests_that_would_read_differently_are_said_and_are_no_difference() {
    let lines = stalls();
    let text = text_of(&lines).replace("\"window_tokens\":10000", "\"window_tokens\":1100");
    let replay = replayed(&text);
    assert!(replay.same);
    let changed = &replay.sessions[0].requests_changed;
    assert!(!changed.is_empty() && changed.len() < replay.sessions[0].requests);
    assert!(
        replay
            .text()
            .contains("would read differently now, from step")
    );

    let mut lines = lines;
    if let Line::Session(header) = &mut lines[0] {
        header.messages[0] = Message::System {
            text: "You are another one.".into(),
        };
    }
    let replay = replayed(&text_of(&lines));
    assert!(replay.same);
    assert!(
        replay
            .text()
            .contains("the system prompt of this version is another one")
    );
}

#[test]
fn a_record_that_stops_is_told_up_to_there() {
    let whole = text_of(&slices());
    let lines: Vec<&str> = whole.lines().collect();
    for (kept, what) in [(3, "cut off"), (4, "cut off"), (lines.len() - 1, "cut off")] {
        let replay = replayed(&(lines[..kept].join("\n") + "\n"));
        assert!(replay.same, "{}", replay.text());
        assert_eq!(replay.sessions[0].telemetry, None);
        assert!(replay.text().contains(what), "{}", replay.text());
    }
    let torn = &whole[..whole.len() - 5];
    let text = replayed(torn).text();
    assert!(
        text.contains(&format!("line {} was cut off in its middle", lines.len())),
        "{text}"
    );
    let left_out = format!(
        "{}\n[sprag: 12345 bytes left out here]\n{}\n",
        lines[..6].join("\n"),
        lines[20]
    );
    let text = replayed(&left_out).text();
    assert!(
        text.contains("12,345 bytes were left out at line 7"),
        "{text}"
    );
}

#[test]
fn nothing_in_a_recording_moves_a_terminal() {
    let lines = played(
        Limits::default(),
        vec![says(
            "\u{1b}[2Jcleared\u{7}",
            vec![edit("\u{1b}]0;x\u{7}a.rs"), finish("\u{9b}2Jdone")],
        )],
    );
    let text = replayed(&text_of(&lines)).text();
    assert!(
        text.chars().all(|c| c == '\n' || !c.is_control()),
        "{text:?}"
    );
    assert!(text.contains("said: cleared"));
}

#[test]
fn a_cost_is_the_same_that_was_written_and_read() {
    let slice = |cost| {
        Step::FixSlice(Slice {
            file: "a".into(),
            items: Vec::new(),
            limits: Limits {
                cost_usd: cost,
                ..Limits::default()
            },
        })
    };
    assert!(same_step(&slice(Some(0.1 + 0.2)), &slice(Some(0.3))));
    assert!(!same_step(&slice(Some(0.3)), &slice(Some(0.31))));
    assert!(!same_step(&slice(Some(0.3)), &slice(None)));
    assert!(same_step(&slice(None), &slice(None)));
}
