use super::super::tests::{
    call, exit, file_change, killed, message, raw_line, request, result, todo,
};
use super::*;
use crate::domain::agent::ApiErrorClass::{Rejected, Unavailable};
use crate::domain::agent::TodoStatus;

/// The messages of the reader since the last call.
fn said(reader: &Reader) -> Vec<Value> {
    let bytes = reader.dialogue.take();
    let lines = bytes
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty());
    lines
        .map(|line| serde_json::from_slice(line).expect("JSON"))
        .collect()
}

fn hear(reader: &mut Reader, message: &Value) -> Vec<AgentEvent> {
    reader.line(message.to_string().as_bytes())
}

fn answer(reader: &mut Reader, id: u64, result: &Value) -> Vec<AgentEvent> {
    hear(
        reader,
        &json!({ "jsonrpc": "2.0", "id": id, "result": result }),
    )
}

fn update(reader: &mut Reader, update: &Value) -> Vec<AgentEvent> {
    let params = json!({ "sessionId": "s1", "update": update });
    hear(
        reader,
        &json!({ "jsonrpc": "2.0", "method": "session/update", "params": params }),
    )
}

fn chunk(text: &str) -> Value {
    json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": text } })
}

fn initialized(loads: bool) -> Value {
    json!({ "protocolVersion": 1, "agentCapabilities": { "loadSession": loads } })
}

/// A reader whose agent has received its prompt.
fn prompted(request: &TurnRequest<'_>, loads: bool) -> Reader {
    let mut reader = Reader::new(request, "Do it.");
    answer(&mut reader, INITIALIZE, &initialized(loads));
    answer(&mut reader, SESSION, &json!({ "sessionId": "s1" }));
    said(&reader);
    reader
}

fn finish(reader: Reader, exit: ExitFacts<'_>) -> AgentReport {
    Box::new(reader).finish(exit)
}

#[test]
fn a_turn_is_an_initialization_a_session_and_a_prompt() {
    let mut reader = Reader::new(&request(), "Do it.");
    let [first] = &said(&reader)[..] else {
        panic!("one message")
    };
    assert_eq!(first["method"], "initialize");
    let offered =
        json!({ "fs": { "readTextFile": false, "writeTextFile": false }, "terminal": false });
    assert_eq!(first["params"]["clientCapabilities"], offered);
    assert_eq!(answer(&mut reader, INITIALIZE, &initialized(true)), []);
    let [session] = &said(&reader)[..] else {
        panic!("one message")
    };
    assert_eq!(
        (&session["method"], &session["params"]),
        (
            &json!("session/new"),
            &json!({ "cwd": "/w", "mcpServers": [] })
        )
    );
    let began = answer(&mut reader, SESSION, &json!({ "sessionId": "s1" }));
    let started = AgentEvent::SessionStarted {
        session_id: "s1".into(),
    };
    assert_eq!(began, [started]);
    let [prompt] = &said(&reader)[..] else {
        panic!("one message")
    };
    assert_eq!(prompt["method"], "session/prompt");
    let text = json!({ "sessionId": "s1", "prompt": [{ "type": "text", "text": "Do it." }] });
    assert_eq!(prompt["params"], text);
    assert!(!reader.dialogue.is_over());
    update(&mut reader, &chunk("All "));
    update(&mut reader, &chunk("done.\n"));
    let events = answer(&mut reader, PROMPT, &json!({ "stopReason": "end_turn" }));
    assert_eq!(events, [message("All done.\n")]);
    assert!(reader.dialogue.is_over());
    let report = finish(reader, exit(0, ""));
    assert_eq!(report.session_id.as_deref(), Some("s1"));
    assert_eq!(report.final_message.as_deref(), Some("All done."));
    assert_eq!((report.api_error, report.stopped_by), (None, None));
}

#[test]
fn an_earlier_session_is_loaded_where_the_agent_can_and_what_it_tells_again_is_not_new() {
    let resumes = TurnRequest {
        resume: Some("s0"),
        ..request()
    };
    let mut reader = Reader::new(&resumes, "Go on.");
    answer(&mut reader, INITIALIZE, &initialized(true));
    let loads = said(&reader).pop().expect("a request");
    assert_eq!(loads["method"], "session/load");
    assert_eq!(loads["params"]["sessionId"], "s0");
    assert_eq!(update(&mut reader, &chunk("Of the turn before.")), []);
    answer(&mut reader, SESSION, &Value::Null);
    let prompt = said(&reader).pop().expect("a request");
    assert_eq!(prompt["params"]["sessionId"], "s0");
    answer(&mut reader, PROMPT, &json!({ "stopReason": "end_turn" }));
    let report = finish(reader, exit(0, ""));
    assert_eq!(report.session_id.as_deref(), Some("s0"));
    assert_eq!(report.final_message, None);

    let mut reader = Reader::new(&resumes, "Go on.");
    answer(&mut reader, INITIALIZE, &initialized(false));
    let new = said(&reader).pop().expect("a request");
    assert_eq!(new["method"], "session/new");
    answer(&mut reader, SESSION, &json!({ "sessionId": "s2" }));
    let report = finish(reader, exit(0, ""));
    assert_eq!(report.session_id, None, "nobody can go on with it");
}

#[test]
fn a_session_that_is_gone_is_a_refusal_and_forgotten() {
    let resumes = TurnRequest {
        resume: Some("s0"),
        ..request()
    };
    let mut reader = Reader::new(&resumes, "Go on.");
    answer(&mut reader, INITIALIZE, &initialized(true));
    let error = json!({ "code": -32602, "message": "Invalid params", "data": { "details": "no session s0" } });
    hear(
        &mut reader,
        &json!({ "jsonrpc": "2.0", "id": SESSION, "error": error }),
    );
    assert!(reader.dialogue.is_over());
    let report = finish(reader, exit(0, ""));
    let error = report.api_error.expect("an error");
    assert_eq!(
        (error.class, error.message.as_str()),
        (Rejected, "Invalid params: no session s0")
    );
    assert_eq!(report.session_id, None);
}

#[test]
fn a_tool_call_has_a_result_and_the_files_it_changed() {
    let mut reader = prompted(&request(), true);
    update(&mut reader, &chunk("I look first."));
    let begun = json!({
        "sessionUpdate": "tool_call", "toolCallId": "c1", "title": "Edit a.txt", "kind": "edit",
        "status": "pending",
    });
    let events = update(&mut reader, &begun);
    assert_eq!(
        events,
        [message("I look first."), call("c1", "edit", "Edit a.txt")]
    );
    let content = json!([
        { "type": "diff", "path": "/w/a.txt", "oldText": "a", "newText": "b" },
        { "type": "diff", "path": "/w/b.txt", "newText": "b" },
    ]);
    let diff = json!({ "sessionUpdate": "tool_call_update", "toolCallId": "c1", "status": "in_progress", "content": content });
    assert_eq!(update(&mut reader, &diff), []);
    let text = json!([{ "type": "content", "content": { "type": "text", "text": "ok" } }]);
    let done = json!({ "sessionUpdate": "tool_call_update", "toolCallId": "c1", "status": "completed", "content": text });
    assert_eq!(
        update(&mut reader, &done),
        [
            result("c1", true, None, "ok"),
            file_change("/w/a.txt", "update"),
            file_change("/w/b.txt", "add"),
        ]
    );
    let failed = json!({ "sessionUpdate": "tool_call", "toolCallId": "c2", "title": "make", "kind": "execute", "status": "failed" });
    let events = update(&mut reader, &failed);
    assert_eq!(
        events,
        [call("c2", "execute", "make"), result("c2", false, None, "")]
    );
    let report = finish(reader, killed());
    assert_eq!((report.tool_calls, report.final_message), (2, None));
}

#[test]
fn plan_entries_are_its_list_and_a_cost_in_dollars_is_told() {
    let mut reader = prompted(&request(), true);
    let entries = json!([
        { "content": "a", "priority": "high", "status": "completed" },
        { "content": "b", "priority": "low", "status": "in_progress" },
        { "content": "c", "priority": "low", "status": "pending" },
    ]);
    let items = vec![
        todo("a", TodoStatus::Completed),
        todo("b", TodoStatus::InProgress),
        todo("c", TodoStatus::Pending),
    ];
    let plan = json!({ "sessionUpdate": "plan", "entries": entries });
    let told = AgentEvent::Todo {
        items: items.clone(),
    };
    assert_eq!(update(&mut reader, &plan), [told]);
    let cost = |currency: &str| json!({ "sessionUpdate": "usage_update", "used": 5, "size": 100, "cost": { "amount": 0.25, "currency": currency } });
    assert_eq!(update(&mut reader, &cost("EUR")), []);
    update(&mut reader, &cost("USD"));
    let report = finish(reader, exit(0, ""));
    assert_eq!((report.todo, report.usage.cost_usd), (items, Some(0.25)));
}

fn asks(kind: &str, options: &[&str]) -> Value {
    let options: Vec<Value> = options
        .iter()
        .map(|kind| json!({ "optionId": format!("o-{kind}"), "name": kind, "kind": kind }))
        .collect();
    let params = json!({ "sessionId": "s1", "toolCall": { "toolCallId": "c", "kind": kind }, "options": options });
    json!({ "jsonrpc": "2.0", "id": "ask-7", "method": "session/request_permission", "params": params })
}

#[test]
fn what_a_run_allows_is_allowed_once_and_a_reader_is_refused_what_is_not_reading() {
    let all = ["allow_always", "allow_once", "reject_once", "reject_always"];
    let reads = TurnRequest {
        may_write: false,
        ..request()
    };
    let selected = |option: &str| json!({ "outcome": "selected", "optionId": option });
    let cancelled = json!({ "outcome": "cancelled" });
    for (request, kind, options, outcome, denials) in [
        (request(), "edit", &all[..], selected("o-allow_once"), 0),
        (request(), "other", &all[..1], selected("o-allow_always"), 0),
        (request(), "edit", &all[2..], cancelled.clone(), 0),
        (reads, "read", &all[..], selected("o-allow_once"), 0),
        (reads, "execute", &all[..], selected("o-reject_once"), 1),
        (reads, "edit", &all[3..], selected("o-reject_always"), 1),
        (reads, "edit", &all[..2], cancelled, 1),
    ] {
        let mut reader = prompted(&request, true);
        hear(&mut reader, &asks(kind, options));
        let reply = said(&reader).pop().expect("an answer");
        assert_eq!(reply["id"], "ask-7");
        assert_eq!(reply["result"]["outcome"], outcome, "{kind} {options:?}");
        assert_eq!(finish(reader, exit(0, "")).permission_denials, denials);
    }
}

#[test]
fn what_is_not_offered_is_refused_and_what_is_no_message_is_a_line() {
    let mut reader = prompted(&request(), true);
    let write = json!({ "jsonrpc": "2.0", "id": 9, "method": "fs/write_text_file", "params": { "path": "/etc/passwd" } });
    assert_eq!(hear(&mut reader, &write), []);
    let reply = said(&reader).pop().expect("an answer");
    assert_eq!(
        (&reply["id"], &reply["error"]["code"]),
        (&json!(9), &json!(-32601))
    );
    for line in [
        "{\"jsonrpc\":\"2.0\",\"id\":",
        "Loaded cached credentials.",
        "{\"jsonrpc\":\"2.0\"}",
        "{\"id\":77,\"result\":{}}",
    ] {
        assert_eq!(reader.line(line.as_bytes()), [raw_line(line)]);
    }
    assert_eq!(said(&reader), Vec::<Value>::new());
    answer(
        &mut reader,
        PROMPT,
        &json!({ "stopReason": "max_turn_requests" }),
    );
    let report = finish(reader, exit(0, ""));
    assert_eq!(report.stopped_by.as_deref(), Some("max_turn_requests"));
}

#[test]
fn a_turn_without_an_answer_a_refusal_and_a_cancellation_are_no_limits() {
    for (reason, stop) in [
        (None, CutOff::Unanswered),
        (Some("cancelled"), CutOff::Unanswered),
        (Some("refusal"), CutOff::Refused),
    ] {
        let mut reader = prompted(&request(), true);
        update(&mut reader, &chunk("Half."));
        if let Some(reason) = reason {
            answer(&mut reader, PROMPT, &json!({ "stopReason": reason }));
        }
        let report = finish(reader, exit(0, ""));
        assert_eq!(report.stop, stop);
        assert!(report.stopped_by.is_some());
    }
}

#[test]
fn another_session_of_the_agent_says_nothing_about_the_turn() {
    let mut reader = prompted(&request(), true);
    let params = json!({ "sessionId": "s2", "update": chunk("FAILED: no") });
    let other = json!({ "jsonrpc": "2.0", "method": "session/update", "params": params });
    assert_eq!(hear(&mut reader, &other), []);
    update(&mut reader, &chunk("Done."));
    answer(&mut reader, PROMPT, &json!({ "stopReason": "end_turn" }));
    let report = finish(reader, exit(0, ""));
    assert_eq!(report.final_message.as_deref(), Some("Done."));
}

#[test]
fn another_version_of_the_protocol_a_missing_login_and_silence_make_the_agent_unavailable() {
    let mut reader = Reader::new(&request(), "Do it.");
    answer(&mut reader, INITIALIZE, &json!({ "protocolVersion": 2 }));
    let error = finish(reader, exit(0, "")).api_error.expect("an error");
    assert_eq!(error.class, Unavailable);
    assert!(error.message.contains("version 2"), "{}", error.message);

    let mut reader = Reader::new(&request(), "Do it.");
    answer(&mut reader, INITIALIZE, &initialized(true));
    let error = json!({ "code": LOGIN_REQUIRED, "message": "Authentication required" });
    hear(
        &mut reader,
        &json!({ "jsonrpc": "2.0", "id": SESSION, "error": error }),
    );
    let error = finish(reader, exit(0, "")).api_error.expect("an error");
    assert_eq!(error.class, Unavailable);
    assert!(error.message.contains("agent_env"), "{}", error.message);

    let reader = Reader::new(&request(), "Do it.");
    let report = finish(reader, exit(2, "error: unknown option --acp\n"));
    let error = report.api_error.expect("an error");
    assert!(
        error.message.contains("unknown option"),
        "{}",
        error.message
    );
}
