use super::*;
use crate::agents::{ExitFacts, command};
use crate::domain::event::Event;
use proptest::prelude::*;

/// The events and the final message of a turn in which up to `raw` raw lines become events.
fn heard(chunks: &[&[u8]], raw: u32) -> (Vec<AgentEvent>, Option<String>) {
    let mut told = Vec::new();
    let mut sink = |event: Event| {
        if let EventKind::Agent(event) = event.kind {
            told.push(event);
        }
        Ok(())
    };
    let mut emit = Emitter::new(&mut sink, 0, 0);
    let directory = tempfile::tempdir().unwrap();
    let log = CappedLog::create(&directory.path().join("log")).unwrap();
    let log = Log::new(log, Default::default());
    let mut listener = Listener::new(Box::<command::Reader>::default(), log, &mut emit);
    listener.limiter.raw.events = raw;
    for chunk in chunks {
        listener.receive(StreamKind::Stdout, chunk);
    }
    let report = listener.finish().reader.finish(ExitFacts::default());
    (told, report.final_message)
}

fn raw(line: &str) -> AgentEvent {
    AgentEvent::Raw { line: line.into() }
}

const CALL: &str = r#"{"event":"agent.tool_call","name":"shell"}"#;

fn call() -> AgentEvent {
    AgentEvent::ToolCall {
        id: None,
        name: "shell".into(),
        summary: String::new(),
    }
}

#[test]
fn the_protocol_is_heard_in_a_flood_that_is_told_no_more() {
    let text = format!("a\nb\nc\nd {{\n{CALL}\ne\n  {CALL}\r\nlast");
    let (told, message) = heard(&[text.as_bytes()], 2);
    let rest = "[sprag: 4 more lines or events of this turn are in its transcript only]";
    assert_eq!(told, [raw("a"), raw("b"), call(), call(), raw(rest)]);
    assert_eq!(message.as_deref(), Some("a\nb\nc\nd {\ne\nlast"));
}

#[test]
fn the_end_of_a_line_of_any_length_is_in_the_final_message() {
    let long = "x".repeat(MAX_LINE_BYTES);
    let (told, message) = heard(&[b"{", long.as_bytes(), b"the end\n"], 9);
    assert_eq!(told.len(), 1);
    let message = message.unwrap();
    assert!(message.starts_with("{x") && message.ends_with("xthe end"));
}

#[test]
fn an_allowance_ends_with_the_first_event_that_is_too_much() {
    let mut events = Allowance {
        events: 2,
        bytes: 9,
    };
    assert_eq!(
        [events.take(1), events.take(1), events.take(1)],
        [true, true, false]
    );
    let mut bytes = Allowance {
        events: 9,
        bytes: 9,
    };
    assert_eq!(
        [bytes.take(9), bytes.take(1), bytes.take(0)],
        [true, false, false]
    );
}

proptest! {
    #[test]
    fn what_is_told_and_kept_does_not_depend_on_the_chunks(
        lines in prop::collection::vec(
            prop_oneof!["[a-c{ ]{0,5}", Just(CALL.to_owned()), Just("x\r".to_owned())],
            0..12,
        ),
        cut in 1_usize..9,
        allowed in 0_u32..6,
    ) {
        let text = lines.join("\n");
        let chunks: Vec<&[u8]> = text.as_bytes().chunks(cut).collect();
        let (told, message) = heard(&chunks, allowed);
        let (whole, of_whole) = heard(&[text.as_bytes()], allowed);
        prop_assert_eq!(&message, &of_whole);
        let known = |events: &[AgentEvent]| -> Vec<AgentEvent> {
            events.iter().filter(|event| !matches!(event, AgentEvent::Raw { line } if line.starts_with("[sprag"))).cloned().collect()
        };
        prop_assert_eq!(known(&told), known(&whole));
        prop_assert_eq!(message, heard(&[text.as_bytes()], 99).1);
    }
}
