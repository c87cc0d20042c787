use super::*;
use crate::agents::TurnReader as _;
use crate::domain::agent::AgentEvent;
use crate::domain::event::EventKind;
use crate::domain::output_schema::OutputSchema;
use crate::report::samples;
use std::collections::BTreeSet;

/// The event names of the contract, with `agent.*` and `commit.*` written out.
const NAMES: [&str; 32] = [
    "run.started",
    "task.started",
    "turn.started",
    "agent.message",
    "agent.tool_call",
    "agent.tool_result",
    "agent.file_change",
    "agent.todo",
    "agent.usage",
    "agent.error",
    "agent.raw",
    "agent.session",
    "turn.progress",
    "turn.ended",
    "turn.assessed",
    "review.ended",
    "setup.started",
    "setup.ended",
    "check.started",
    "check.ended",
    "proof.started",
    "proof.ended",
    "retry.scheduled",
    "verification.skipped",
    "commit.created",
    "commit.rejected",
    "network.denied",
    "push.ended",
    "task.ended",
    "cancel.requested",
    "warning",
    "run.ended",
];

fn name(value: &Value) -> String {
    value["event"].as_str().unwrap().to_owned()
}

#[test]
fn every_event_validates_against_the_schema() {
    let schema_value = schema();
    let schema = OutputSchema::parse(&schema_value.to_string()).unwrap();
    let mut summary = RunSummary::default();
    for event in samples::every_event() {
        summary.apply(&event);
        let wire = WireEvent::new(&event, &summary);
        let json = serde_json::to_value(&wire).unwrap();
        let judged = schema.judge(json.clone());
        assert!(judged.is_ok(), "{judged:?}");
        let described = properties(&schema_value, &json);
        for key in json.as_object().unwrap().keys() {
            assert!(described.contains(key), "{key} is not public: {json}");
        }
    }
}

#[test]
fn every_event_is_read_back_as_it_was_saved() {
    for event in samples::every_event() {
        let saved = serde_json::to_string(&event).unwrap();
        assert_eq!(serde_json::from_str::<Event>(&saved).unwrap(), event);
    }
}

/// The names that the schema gives to the fields of this event, all events' fields included.
fn properties(schema: &Value, event: &Value) -> BTreeSet<String> {
    let variants = schema["oneOf"].as_array().unwrap();
    let is_of = |variant: &&Value| variant["properties"]["event"]["const"] == event["event"];
    let variant = variants.iter().find(is_of).unwrap();
    let mut places = vec![variant, schema];
    places.extend(schema["allOf"].as_array().into_iter().flatten());
    places.extend(schema["anyOf"].as_array().into_iter().flatten());
    let mut names = BTreeSet::new();
    while let Some(place) = places.pop() {
        let named = place["properties"].as_object().into_iter().flatten();
        names.extend(named.map(|(name, _)| name.clone()));
        if let Some(name) = place["$ref"].as_str() {
            places.push(&schema["$defs"][name.trim_start_matches("#/$defs/")]);
        }
    }
    names
}

#[test]
fn the_schema_rejects_what_is_no_event() {
    let schema = OutputSchema::parse(&schema().to_string()).unwrap();
    let event = samples::event(1, samples::warning("x"));
    let good = serde_json::to_value(WireEvent::new(&event, &RunSummary::default())).unwrap();
    assert!(schema.judge(good.clone()).is_ok());
    for (key, value) in [
        ("event", "run.stopped".into()),
        ("seq", serde_json::json!(-1)),
        ("message", 1.into()),
    ] {
        let mut bad = good.clone();
        bad[key] = value;
        assert!(schema.judge(bad).is_err(), "{key}");
    }
}

#[test]
fn the_names_are_those_of_the_contract() {
    let summary = RunSummary::default();
    let said: BTreeSet<String> = samples::every_event()
        .iter()
        .map(|event| name(&serde_json::to_value(WireEvent::new(event, &summary)).unwrap()))
        .collect();
    assert_eq!(said, NAMES.map(str::to_owned).into());
    let schema = schema();
    let variants = schema["oneOf"].as_array().unwrap();
    let described: BTreeSet<String> = variants
        .iter()
        .map(|variant| {
            variant["properties"]["event"]["const"]
                .as_str()
                .unwrap()
                .to_owned()
        })
        .collect();
    assert_eq!(described, said);
}

#[test]
fn the_documentation_names_every_event_output_and_exit_code() {
    let page = include_str!("../../../docs/events.md");
    let outputs = crate::report::outputs::outputs(&RunSummary::default(), &Default::default());
    let mut names: Vec<&str> = outputs.iter().map(|(name, _)| *name).collect();
    names.extend(NAMES);
    let words =
        |json: Value| -> Vec<String> { json.as_object().unwrap().keys().cloned().collect() };
    let summary = serde_json::to_value(samples::partial()).unwrap();
    let mut fields = words(summary.clone());
    fields.extend(words(summary["tasks"][1].clone()));
    fields.extend(words(summary["totals"].clone()));
    fields.extend(words(summary["tasks"][1]["checks"][0].clone()));
    fields.extend(words(summary["tasks"][1]["turns"][0].clone()));
    names.extend(fields.iter().map(String::as_str));
    let named = |name: &&&str| {
        page.split(|c: char| !"._-".contains(c) && !c.is_alphanumeric())
            .any(|word| word == **name)
    };
    let missing: Vec<&&str> = names.iter().filter(|name| !named(name)).collect();
    assert_eq!(missing, Vec::<&&str>::new());
}

#[test]
fn the_samples_hold_every_kind_of_event() {
    // Fails to compile or to hold if a kind is added without a sample.
    let kinds: BTreeSet<usize> = samples::every_event()
        .iter()
        .map(|event| match event.kind {
            EventKind::RunStarted(_) => 0,
            EventKind::TaskStarted { .. } => 1,
            EventKind::TurnStarted { .. } => 2,
            EventKind::Agent(AgentEvent::SessionStarted { .. }) => 3,
            EventKind::Agent(AgentEvent::Message { .. }) => 4,
            EventKind::Agent(AgentEvent::Reasoning { .. }) => 5,
            EventKind::Agent(AgentEvent::ToolCall { .. }) => 6,
            EventKind::Agent(AgentEvent::ToolResult { .. }) => 7,
            EventKind::Agent(AgentEvent::FileChange { .. }) => 8,
            EventKind::Agent(AgentEvent::Todo { .. }) => 9,
            EventKind::Agent(AgentEvent::Usage(_)) => 10,
            EventKind::Agent(AgentEvent::Error { .. }) => 11,
            EventKind::Agent(AgentEvent::Raw { .. }) => 12,
            EventKind::TurnEnded { .. } => 13,
            EventKind::TurnAssessed(_) => 14,
            EventKind::CheckStarted { .. } => 15,
            EventKind::CheckEnded(_) => 16,
            EventKind::RetryScheduled { .. } => 17,
            EventKind::NudgeResolved { .. } => 18,
            EventKind::VerificationSkipped { .. } => 19,
            EventKind::CommitCreated { .. } => 20,
            EventKind::AgentCommits { .. } => 21,
            EventKind::CommitRejected { .. } => 22,
            EventKind::PushEnded { .. } => 23,
            EventKind::TaskEnded(_) => 24,
            EventKind::CancelRequested { .. } => 25,
            EventKind::Warning { .. } => 26,
            EventKind::RunEnded { .. } => 27,
            EventKind::ProofStarted { .. } => 28,
            EventKind::ProofEnded(_) => 29,
            EventKind::TurnProgress(_) => 30,
            EventKind::ReviewEnded(_) => 31,
            EventKind::HostsDenied { .. } => 32,
            EventKind::SetupStarted { .. } => 33,
            EventKind::SetupEnded { .. } => 34,
        })
        .collect();
    assert_eq!(kinds, (0..35).collect());
}

#[test]
fn an_event_has_the_fields_of_the_contract_in_their_order() {
    let event = samples::nudge();
    let summary = samples::planning_only();
    let json = serde_json::to_string_pretty(&WireEvent::new(&event, &summary)).unwrap();
    insta::assert_snapshot!(json, @r#"
    {
      "v": 1,
      "seq": 6,
      "ts": "2026-03-01T12:00:00Z",
      "elapsed_ms": 41500,
      "event": "retry.scheduled",
      "kind": "nudge",
      "n": 1,
      "of": 3,
      "reason": "the tree is unchanged",
      "indicators": [
        "I'll implement the route next",
        "1. Plan the columns"
      ],
      "delay_ms": 0,
      "message": "Implementer appears to have planned but not executed. Retrying (attempt 2/4)...",
      "task": "t1",
      "attempt": 1,
      "turn": 1
    }
    "#);
}

/// The events that Sprag reads from this line of a command agent.
fn understood(line: &str) -> Vec<AgentEvent> {
    crate::agents::command::Reader::default().line(line.as_bytes())
}

#[test]
fn the_events_of_an_agent_are_understood_when_a_command_prints_them() {
    let mut seen = 0;
    for event in samples::every_event() {
        let line = serde_json::to_string(&WireEvent::new(&event, &RunSummary::default())).unwrap();
        match event.kind {
            EventKind::Agent(mut agent) => {
                seen += 1;
                // Fields that must be one line are made one.
                if let AgentEvent::ToolCall { summary, .. } = &mut agent {
                    *summary = summary.replace('\n', " ");
                }
                assert_eq!(understood(&line), [agent]);
            }
            _ => assert!(
                matches!(understood(&line).as_slice(), [AgentEvent::Raw { .. }]),
                "{line}"
            ),
        }
    }
    assert!(seen >= 10);
}

#[test]
fn a_command_may_leave_out_what_it_does_not_know() {
    let expected = AgentEvent::ToolCall {
        id: None,
        name: "shell".into(),
        summary: String::new(),
    };
    let line = r#"{"event":"agent.tool_call","name":"shell","more":1}"#;
    assert_eq!(understood(line), [expected]);
}

#[test]
fn every_summary_validates_against_its_schema() {
    let schema = OutputSchema::parse(&summary_schema().to_string()).unwrap();
    for (name, summary) in samples::all() {
        let json = serde_json::to_value(&summary).unwrap();
        let judged = schema.judge(json);
        assert!(judged.is_ok(), "{name}: {judged:?}");
    }
}
