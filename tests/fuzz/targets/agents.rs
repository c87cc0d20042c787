//! What agents print and models answer.

use super::{first_and_rest, text};
use sprag::agents::{CliAgent, ExitFacts, OwnSandbox, RepositoryFiles, TurnRequest, cli};
use sprag::domain::assess::message::{failed_report, read_message};
use sprag::domain::output_schema::OutputSchema;
use sprag::domain::{api_error, notes};
use sprag::process::{Line, LineSplitter};
use sprag_agent::access::WireFormat;
use sprag_agent::model::Meter;
use sprag_agent::model_error::ModelError;
use sprag_agent::tool::{Arguments, ToolCall, ToolRequest};
use sprag_agent::{fence, plan_text};
use std::path::Path;

pub(super) fn claude(data: &[u8]) {
    known("claude", data);
}

pub(super) fn codex(data: &[u8]) {
    known("codex", data);
}

pub(super) fn gemini(data: &[u8]) {
    known("gemini", data);
}

pub(super) fn opencode(data: &[u8]) {
    known("opencode", data);
}

pub(super) fn qwen(data: &[u8]) {
    known("qwen", data);
}

pub(super) fn acp(data: &[u8]) {
    let command = "agent".to_owned();
    turn(&CliAgent::Acp { command }, data);
}

pub(super) fn command(data: &[u8]) {
    let command = "agent".to_owned();
    turn(&CliAgent::Command { command }, data);
}

fn known(name: &str, data: &[u8]) {
    let spec = cli(name).expect("an agent of this name");
    turn(&CliAgent::Known(spec), data);
}

/// Reads a turn, and once more with other ends of chunks: what is read is the same.
fn turn(agent: &CliAgent, data: &[u8]) {
    let whole = heard(agent, data, data.len().max(1));
    assert_eq!(whole, heard(agent, data, 7));
}

/// The events and the report of a turn in words. Lines of more than 4 KiB are cut.
fn heard(agent: &CliAgent, data: &[u8], chunk: usize) -> String {
    let request = TurnRequest {
        work_tree: Path::new("/work"),
        directory: Path::new("/work"),
        scratch: Path::new("/scratch"),
        model: None,
        extra_args: &[],
        resume: None,
        max_cost_usd: None,
        may_write: true,
        own_sandbox: OwnSandbox::Off,
        repository_files: RepositoryFiles::AsTheyAre,
        is_root: false,
        mcp: &[],
        output_schema: None,
        base_env: &[],
    };
    let mut reader = agent.reader(&request, "Do it.");
    let mut events = Vec::new();
    let mut lines = LineSplitter::new(4 << 10);
    let mut take = |line: Line<'_>| {
        events.extend(match line {
            Line::Whole(bytes) => reader.line(bytes),
            Line::Cut { head, end, .. } => reader.cut_line(head, end),
        });
    };
    data.chunks(chunk)
        .for_each(|chunk| lines.push(chunk, &mut take));
    lines.finish(&mut take);
    let exit = ExitFacts {
        code: Some(0),
        ..ExitFacts::default()
    };
    let report = reader.finish(exit);
    let written = serde_json::to_string(&events).expect("events are written");
    format!("{written}\n{report:?}")
}

pub(super) fn model_response(data: &[u8]) {
    for wire in [
        WireFormat::Chat,
        WireFormat::Responses,
        WireFormat::Messages,
        WireFormat::Gemini,
    ] {
        for streams in [false, true] {
            let whole = metered(wire, streams, data, data.len().max(1));
            assert_eq!(whole, metered(wire, streams, data, 5));
        }
    }
}

fn metered(wire: WireFormat, streams: bool, data: &[u8], chunk: usize) -> String {
    let mut meter = Meter::new(wire, streams);
    data.chunks(chunk).for_each(|chunk| meter.push(chunk));
    meter.end();
    let usage = meter.at_least(10, 0, "openai", "gpt-5");
    format!("{:?} {usage:?}", meter.so_far("openai", "gpt-5"))
}

pub(super) fn model_text(data: &[u8]) {
    let text = text(data);
    let scan = fence::scan(&text);
    for block in &scan.blocks {
        let _ = plan_text::read_lines(&block.body, true);
    }
    let (name, arguments) = first_and_rest(&text);
    let _ = ToolRequest::of(&ToolCall {
        id: "1".to_owned(),
        name: name.to_owned(),
        arguments: Arguments::from_json(arguments),
    });
}

pub(super) fn api_error(data: &[u8]) {
    let text = text(data);
    for status in [None, Some(400), Some(429), Some(500)] {
        let _ = api_error::read(status, &text);
        let _ = api_error::classify(status, &text);
    }
    let error = ModelError::of_answer(429, &text, None);
    assert!(error.message.len() <= 4 * 4_096, "{}", error.message.len());
    let _ = ModelError::of_stream(&text);
}

pub(super) fn final_message(data: &[u8]) {
    let text = text(data);
    for is_cut in [false, true] {
        let _ = read_message(&text, is_cut);
        let _ = failed_report(&text, is_cut);
    }
    let _ = notes::notes_of(&text);
}

/// The first line is a schema, the rest a final message.
pub(super) fn structured_output(data: &[u8]) {
    let text = text(data);
    let (schema, message) = first_and_rest(&text);
    let Ok(schema) = OutputSchema::parse(schema) else {
        return;
    };
    let _ = schema.is_strict();
    if let Ok(value) = schema.read(message) {
        let again = schema.read(&value.to_string());
        assert_eq!(again, Ok(value));
    }
}
