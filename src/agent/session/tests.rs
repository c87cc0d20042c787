mod ends;
mod limits;
mod stalls;

use super::*;
use crate::context::{Budget, Message};
use crate::ledger::tests::checklist;
use crate::model_error::ModelErrorKind;
use crate::texts;
use crate::tool::Arguments;
use serde_json::{Value, json};

pub(super) fn text(text: &str) -> Response {
    Response {
        text: text.into(),
        ..Response::default()
    }
}

pub(super) fn call(name: &str, arguments: Value) -> ToolCall {
    ToolCall {
        id: format!("{name}-1"),
        name: name.into(),
        arguments: Arguments::Given(arguments),
    }
}

pub(super) fn with(said: &str, calls: Vec<ToolCall>) -> Response {
    Response {
        calls,
        ..text(said)
    }
}

pub(super) fn edit(path: &str) -> ToolCall {
    call(
        "edit_file",
        json!({"path": path, "search": "a", "replace": "b"}),
    )
}

pub(super) fn bad_edit(path: &str) -> ToolCall {
    call(
        "edit_file",
        json!({"path": path, "search": "missing", "replace": "b"}),
    )
}

pub(super) fn read(path: &str) -> ToolCall {
    call("read_file", json!({"path": path}))
}

pub(super) fn plan(items: &[&str]) -> String {
    block("SPRAG_PLAN", " ", items)
}

pub(super) fn check(items: &[&str]) -> String {
    block("SPRAG_PLAN_UPDATE", "x", items)
}

fn block(name: &str, mark: &str, items: &[&str]) -> String {
    let lines: Vec<String> = items
        .iter()
        .map(|item| format!("- [{mark}] {item}"))
        .collect();
    format!("```{name}\n{}\n```\n", lines.join("\n"))
}

pub(super) const FINAL: &str = "```SPRAG_FINAL\nI did it.\n```\n";

const A: &str = "src/a.rs: add the parser";
const B: &str = "src/b.rs: test the parser";

/// The tools of a test world in which every edit succeeds except that of `missing`.
pub(super) fn carry_out(open: &OpenCall) -> ToolResult {
    let mut result = ToolResult {
        ok: true,
        output: "ok".into(),
        ..ToolResult::default()
    };
    match &open.request {
        ToolRequest::ReadFile { path, .. } => result.read.push(path.clone()),
        ToolRequest::EditFile { search, .. } if search == "missing" => result.ok = false,
        ToolRequest::EditFile { path, .. } | ToolRequest::WriteFile { path, .. } => {
            result.changed.push(path.clone());
        }
        _ => {}
    }
    result
}

/// A session run to its end with a model that follows a script and then repeats the script's last line.
struct Played {
    session: Session,
    asks: Vec<ModelRequest>,
    slices: Vec<Slice>,
    exit: SessionExit,
}

impl Played {
    fn telemetry(&self) -> Telemetry {
        telemetry(self.session.state(), self.exit)
    }

    fn kind(&self) -> CompletionKind {
        self.telemetry().completion_kind
    }

    fn list(&self) -> String {
        checklist(&self.session.state().ledger)
    }

    /// Whether the notes of the n-th request, from 1, satisfy a condition.
    fn said(&self, n: usize, wanted: impl Fn(&Note) -> bool) -> bool {
        self.asks[n - 1].notes.iter().any(wanted)
    }

    fn position(&self, wanted: impl Fn(&Note) -> bool) -> Option<usize> {
        self.asks
            .iter()
            .position(|request| request.notes.iter().any(&wanted))
    }
}

fn play(script: &[Response]) -> Played {
    play_with(&Limits::default(), script, |_| SliceEnded::default())
}

fn play_with(limits: &Limits, script: &[Response], slice: impl Fn(&Slice) -> SliceEnded) -> Played {
    let mut session = Session::new(limits.clone(), Budget::default(), "task".into());
    let (mut asks, mut slices) = (Vec::new(), Vec::new());
    let exit = loop {
        assert!(asks.len() < 500, "no end");
        let observation = match session.next_step() {
            Step::AskModel(request) => {
                let at = asks.len().min(script.len() - 1);
                asks.push(request);
                Observation::ModelResponded(script[at].clone())
            }
            Step::ApplyTools { calls } => Observation::ToolsApplied {
                results: calls.iter().map(carry_out).collect(),
                elapsed_ms: 0,
            },
            Step::FixSlice(due) => {
                let ended = SliceEnded {
                    file: due.file.clone(),
                    ..slice(&due)
                };
                slices.push(due);
                Observation::SliceEnded(ended)
            }
            Step::Wait { .. } => Observation::Waited { elapsed_ms: 0 },
            Step::End { exit } => break exit,
        };
        session.observe(&observation);
    };
    Played {
        session,
        asks,
        slices,
        exit,
    }
}
