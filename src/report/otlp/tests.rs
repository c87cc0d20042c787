use super::*;
use crate::domain::summary::RunSummary;
use crate::report::samples;

/// The public events of a run with two tasks, of which the second fails.
fn events() -> Vec<Value> {
    let at = |seq: u64, event: Value| {
        let mut all = json!({ "v": 1, "seq": seq, "ts": format!("2026-03-01T12:00:{seq:02}Z"), "elapsed_ms": seq * 1000 });
        for (key, value) in event.as_object().unwrap() {
            all[key] = value.clone();
        }
        all
    };
    let usage = |tokens: u64| json!({ "tokens_in": tokens, "tokens_cached": 10, "tokens_out": 5, "cost_usd": 0.5 });
    let assessed = |assessment: &str, tokens: u64| json!({ "event": "turn.assessed", "purpose": "implement", "assessment": assessment, "usage": usage(tokens) });
    let check = |outcome: &str| json!({ "event": "check.ended", "name": "test", "kind": "test", "outcome": outcome, "duration_ms": 1000 });
    let all = [
        json!({ "event": "run.started", "run_id": "r1", "plan": { "title": "Plan" }, "branch": "main", "base": null,
            "agent": "codex", "model": "gpt", "resumed": false }),
        json!({ "event": "task.started", "task": "a", "title": "A" }),
        json!({ "event": "turn.started", "task": "a", "attempt": 1, "turn": 1, "purpose": "implement", "agent": "codex" }),
        json!({ "event": "agent.session", "task": "a", "session_id": "s1" }),
        json!({ "event": "turn.ended", "task": "a", "exit": "exit 0", "duration_ms": 1000 }),
        assessed("changed", 100),
        json!({ "event": "check.started", "task": "a", "name": "test", "kind": "test" }),
        check("passed"),
        json!({ "event": "commit.created", "task": "a", "commit": "c0ffee", "subject": "A", "files": [] }),
        json!({ "event": "task.ended", "task": "a", "status": "done", "reason": "verified", "attempts": 1, "nudges": 0 }),
        json!({ "event": "task.started", "task": "b", "title": "B" }),
        json!({ "event": "turn.started", "task": "b", "attempt": 1, "turn": 1, "purpose": "implement", "agent": "claude" }),
        json!({ "event": "turn.ended", "task": "b", "exit": "exit 1", "duration_ms": 1000 }),
        assessed("agent_crashed", 70_000),
        json!({ "event": "check.started", "task": "b", "name": "test", "kind": "test" }),
        check("failed"),
        json!({ "event": "retry.scheduled", "task": "b", "kind": "retry" }),
        json!({ "event": "task.ended", "task": "b", "status": "failed", "reason": "verification_failed", "attempts": 2, "nudges": 0 }),
        json!({ "event": "run.ended", "status": "partial", "reason": "verification_failed", "exit_code": 1, "head": "c0ffee" }),
    ];
    all.into_iter()
        .zip(1..)
        .map(|(event, seq)| at(seq, event))
        .collect()
}

fn folded() -> Telemetry {
    let mut telemetry = Telemetry::new(|agent, _| (agent == "codex").then_some("openai"));
    for event in events() {
        telemetry.apply_value(&event);
    }
    telemetry
}

fn spans(telemetry: &Telemetry, origin: &Origin) -> Vec<Value> {
    let document = telemetry.traces(origin).unwrap();
    document["resourceSpans"][0]["scopeSpans"][0]["spans"]
        .as_array()
        .unwrap()
        .clone()
}

fn names(spans: &[Value]) -> Vec<&str> {
    let names = spans.iter().map(|span| span["name"].as_str());
    names.map(Option::unwrap).collect()
}

/// The encoded value of an attribute.
fn of<'v>(span: &'v Value, key: &str) -> &'v Value {
    let mut all = span["attributes"].as_array().unwrap().iter();
    all.find(|it| it["key"] == key)
        .map_or(&Value::Null, |it| &it["value"])
}

#[test]
fn spans_hang_from_their_task_and_tasks_from_the_run() {
    let spans = spans(&folded(), &Origin::default());
    assert_eq!(
        names(&spans),
        [
            "sprag run",
            "sprag task",
            "invoke_agent codex",
            "sprag check",
            "sprag task",
            "invoke_agent claude",
            "sprag check"
        ]
    );
    let above = |n: usize| {
        let parent = &spans[n]["parentSpanId"];
        spans.iter().position(|span| span["spanId"] == *parent)
    };
    let tree: Vec<Option<usize>> = (0..spans.len()).map(above).collect();
    assert_eq!(
        tree,
        [None, Some(0), Some(1), Some(1), Some(0), Some(4), Some(4)]
    );
    let ids: std::collections::BTreeSet<&str> = spans
        .iter()
        .map(|span| span["spanId"].as_str().unwrap())
        .collect();
    assert_eq!(ids.len(), spans.len());
    assert!(
        spans
            .iter()
            .all(|span| span["traceId"] == spans[0]["traceId"])
    );
    assert_eq!(spans[0]["traceId"].as_str().unwrap().len(), 32);
    // The second lasts from the first to the last event of the turn.
    assert_eq!(spans[2]["startTimeUnixNano"], "1772366403000000000");
    assert_eq!(spans[2]["endTimeUnixNano"], "1772366405000000000");
    assert_eq!(spans[0]["endTimeUnixNano"], "1772366419000000000");
}

#[test]
fn a_turn_tells_agent_model_tokens_and_cost_by_the_conventions() {
    let spans = spans(&folded(), &Origin::default());
    let turn = &spans[2];
    for (key, value) in [
        (
            "gen_ai.operation.name",
            json!({ "stringValue": "invoke_agent" }),
        ),
        ("gen_ai.agent.name", json!({ "stringValue": "codex" })),
        ("gen_ai.provider.name", json!({ "stringValue": "openai" })),
        ("gen_ai.request.model", json!({ "stringValue": "gpt" })),
        ("gen_ai.conversation.id", json!({ "stringValue": "s1" })),
        ("gen_ai.usage.input_tokens", json!({ "intValue": "100" })),
        (
            "gen_ai.usage.cache_read.input_tokens",
            json!({ "intValue": "10" }),
        ),
        ("gen_ai.usage.output_tokens", json!({ "intValue": "5" })),
        ("sprag.cost", json!({ "doubleValue": 0.5 })),
    ] {
        assert_eq!(of(turn, key), &value, "{key}");
    }
    assert!(turn.get("status").is_none());
    // Another agent has its own model, which was not reported.
    assert_eq!(of(&spans[5], "gen_ai.request.model"), &Value::Null);
}

#[test]
fn what_did_not_end_well_is_an_error_of_its_kind() {
    let spans = spans(&folded(), &Origin::default());
    let errors: Vec<Option<&str>> = spans
        .iter()
        .map(|span| {
            let error = of(span, "error.type")["stringValue"].as_str();
            assert_eq!(span["status"]["code"] == 2, error.is_some(), "{span}");
            error
        })
        .collect();
    let expected = [
        Some("partial"),
        None,
        None,
        None,
        Some("verification_failed"),
        Some("agent_crashed"),
        Some("failed"),
    ];
    assert_eq!(errors, expected);
    assert_eq!(
        of(&spans[0], "cicd.pipeline.result")["stringValue"],
        "failure"
    );
    assert_eq!(
        of(&spans[3], "cicd.pipeline.task.run.result")["stringValue"],
        "success"
    );
    assert_eq!(spans[1]["events"][0]["name"], "sprag.commit");
}

#[test]
fn metrics_are_added_up_by_their_attributes() {
    let telemetry = folded();
    let document = telemetry.metrics(&Origin::default()).unwrap();
    let metrics = &document["resourceMetrics"][0]["scopeMetrics"][0]["metrics"];
    let metric = |name: &str| {
        let mut all = metrics.as_array().unwrap().iter();
        all.find(|it| it["name"] == name)
            .unwrap_or_else(|| panic!("no {name}"))
    };
    let tokens = metric("gen_ai.client.token.usage")["histogram"]["dataPoints"]
        .as_array()
        .unwrap();
    assert_eq!(tokens.len(), 4, "two agents, in and out");
    assert_eq!(tokens[0]["count"], "1");
    assert_eq!(tokens[0]["sum"], 100.0);
    // 100 is above 64 and at most 256, the fifth bound.
    assert_eq!(tokens[0]["bucketCounts"][4], "1");
    let costs = &metric("sprag.cost")["sum"];
    assert_eq!(
        (&costs["isMonotonic"], &costs["aggregationTemporality"]),
        (&json!(true), &json!(2))
    );
    assert_eq!(costs["dataPoints"][0]["asDouble"], 0.5);
    assert_eq!(
        metric("sprag.tasks")["sum"]["dataPoints"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    assert_eq!(
        metric("sprag.retries")["sum"]["dataPoints"][0]["asDouble"],
        1.0
    );
    assert_eq!(
        metric("sprag.check.duration")["histogram"]["dataPoints"][0]["sum"],
        1.0
    );
    assert_eq!(
        metric("cicd.pipeline.run.duration")["histogram"]["dataPoints"][0]["sum"],
        18.0
    );
    let delta = Origin {
        is_delta: true,
        ..Origin::default()
    };
    let document = telemetry.metrics(&delta).unwrap().to_string();
    assert!(
        document.contains("\"aggregationTemporality\":1")
            && !document.contains("\"aggregationTemporality\":2")
    );
}

#[test]
fn a_trace_from_outside_is_gone_on_with_and_a_dropped_one_is_not() {
    let parent = Parent::read("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01").unwrap();
    let origin = Origin {
        parent: Some(parent),
        ..Origin::default()
    };
    let spans = spans(&folded(), &origin);
    assert_eq!(spans[0]["parentSpanId"], "b7ad6b7169203331");
    assert!(
        spans
            .iter()
            .all(|span| span["traceId"] == "0af7651916cd43dd8448eb211c80319c")
    );
    let parent = Parent::read("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00");
    assert_eq!(
        folded().traces(&Origin {
            parent,
            ..Origin::default()
        }),
        None
    );
    for wrong in [
        "",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
        "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
        "00-00000000000000000000000000000000-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
        "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
    ] {
        assert_eq!(Parent::read(wrong), None, "{wrong}");
    }
}

#[test]
fn the_resource_has_what_is_given_before_what_is_known() {
    let resource = vec![
        ("service.name".to_owned(), "nightly".to_owned()),
        ("team".to_owned(), "infra".to_owned()),
    ];
    let origin = Origin {
        resource,
        ..Origin::default()
    };
    let document = folded().traces(&origin).unwrap();
    let resource = &document["resourceSpans"][0]["resource"];
    assert_eq!(of(resource, "service.name")["stringValue"], "nightly");
    assert_eq!(of(resource, "team")["stringValue"], "infra");
    assert_eq!(of(resource, "service.instance.id")["stringValue"], "r1");
    let names = resource["attributes"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|it| it["key"] == "service.name");
    assert_eq!(names.count(), 1);
}

#[test]
fn every_event_is_taken_in_and_spans_that_nobody_ended_end_with_the_last() {
    let mut telemetry = Telemetry::new(|_, _| None);
    for event in samples::every_event() {
        telemetry.apply(&WireEvent::new(&event, &RunSummary::default()));
    }
    for span in spans(&telemetry, &Origin::default()) {
        let nanos = |key: &str| span[key].as_str().unwrap().parse::<u64>().unwrap();
        assert!(
            nanos("startTimeUnixNano") <= nanos("endTimeUnixNano"),
            "{span}"
        );
    }
    assert_eq!(Telemetry::new(|_, _| None).traces(&Origin::default()), None);
    assert_eq!(
        Telemetry::new(|_, _| None).metrics(&Origin::default()),
        None
    );
}

#[test]
fn each_tool_call_is_a_span_below_its_turn_without_its_words() {
    let mut telemetry = Telemetry::new(|_, _| None);
    let mut seq = 0;
    let mut tell = |event: Value| {
        seq += 1;
        let mut all = json!({ "seq": seq, "ts": format!("2026-03-01T12:00:{seq:02}Z") });
        for (key, value) in event.as_object().unwrap() {
            all[key] = value.clone();
        }
        telemetry.apply_value(&all);
    };
    let call = |id: Value, name: &str| json!({ "event": "agent.tool_call", "id": id, "name": name, "summary": "cat secret" });
    let result = |id: Value, ok: bool| json!({ "event": "agent.tool_result", "id": id, "ok": ok, "exit_code": 7, "summary": "the secret" });
    tell(json!({ "event": "run.started", "run_id": "r1", "agent": "codex" }));
    tell(json!({ "event": "task.started", "task": "a" }));
    tell(call(json!("early"), "none"));
    tell(json!({ "event": "turn.started", "task": "a", "agent": "codex" }));
    tell(call(json!("1"), "shell"));
    tell(call(json!("2"), "edit"));
    tell(result(json!("1"), false));
    tell(result(json!("2"), true));
    tell(call(Value::Null, "look"));
    tell(result(Value::Null, true));
    tell(call(json!("3"), "shell"));
    tell(json!({ "event": "turn.ended", "duration_ms": 1000 }));
    let spans = spans(&telemetry, &Origin::default());
    let tools = ["shell", "edit", "look", "shell"];
    assert_eq!(
        names(&spans[3..]),
        tools.map(|name| format!("execute_tool {name}"))
    );
    let times = spans[3..].iter().map(|span| {
        let of = |key: &str| span[key].as_str().unwrap()[8..10].to_owned();
        (of("startTimeUnixNano"), of("endTimeUnixNano"))
    });
    let times: Vec<(String, String)> = times.collect();
    let expected = [("05", "07"), ("06", "08"), ("09", "10"), ("11", "12")];
    assert_eq!(
        times,
        expected.map(|(from, to)| (from.to_owned(), to.to_owned()))
    );
    for span in &spans[3..] {
        assert_eq!(span["parentSpanId"], spans[2]["spanId"]);
        assert_eq!(span["kind"], 1);
        let operation = of(span, "gen_ai.operation.name");
        assert_eq!(*operation, json!({ "stringValue": "execute_tool" }));
        assert!(!span.to_string().contains("secret"), "{span}");
    }
    assert_eq!(
        *of(&spans[3], "error.type"),
        json!({ "stringValue": "tool_failed" })
    );
    assert_eq!(
        *of(&spans[3], "sprag.tool.exit_code"),
        json!({ "intValue": "7" })
    );
    assert!(of(&spans[4], "error.type").is_null());
}

#[test]
fn a_turn_with_very_many_tool_calls_has_a_bounded_number_of_spans() {
    let mut telemetry = Telemetry::new(|_, _| None);
    let ts = "2026-03-01T12:00:00Z";
    telemetry.apply_value(&json!({ "event": "run.started", "seq": 1, "ts": ts }));
    telemetry.apply_value(&json!({ "event": "turn.started", "seq": 2, "ts": ts }));
    for seq in 3..3 + 2 * TOOLS_OF_A_TURN {
        let call = json!({ "event": "agent.tool_call", "seq": seq, "ts": ts, "name": "shell" });
        telemetry.apply_value(&call);
    }
    let count = spans(&telemetry, &Origin::default()).len();
    assert_eq!(count, 2 + TOOLS_OF_A_TURN);
}
