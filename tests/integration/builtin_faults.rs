//! What goes wrong between the built-in agent and its model, in all four formats.

use crate::support::http::{Reply, Response};
use crate::support::model_calls::{self, Call};
use crate::support::model_wire::{TOKENS_CACHED, TOKENS_IN, TOKENS_OUT, WireFormat, server_sent};
use crate::support::project::{Project, Run, plan};
use crate::support::scripted::{Scripted, answer, json};
use crate::support::tasks::{MODEL_KEY, builtin};
use serde_json::{Value, json};
use std::time::Duration;

/// The formats, each with a model that speaks it and the last part of its address.
const WIRES: [(WireFormat, &str); 4] = [
    (WireFormat::Chat, "openai/m"),
    (WireFormat::Responses, "openai-responses/m"),
    (WireFormat::Messages, "anthropic/m"),
    (WireFormat::Gemini, "gemini/m"),
];

const SAID: &str = "Grüße — 你好 🎉";

fn write_fixed() -> Vec<Call> {
    vec![("write_file", json!({"path": "a.txt", "content": "fixed\n"}))]
}

fn finish() -> Vec<Call> {
    vec![("finish", json!({"summary": "Fix a.txt"}))]
}

/// The events of a response, and how many of them come before the one that ends it.
fn events(wire: WireFormat, calls: &[Call]) -> (Vec<String>, usize) {
    let (_, events) = model_calls::reply(wire, 1, SAID, calls);
    let after = match wire {
        WireFormat::Chat | WireFormat::Messages => 2,
        WireFormat::Responses | WireFormat::Gemini => 1,
    };
    let before = events.len() - after;
    (events.iter().map(server_sent).collect(), before)
}

fn stream(body: impl Into<Vec<u8>>) -> Response {
    answer(200, "text/event-stream", body)
}

fn good(wire: WireFormat, calls: &[Call]) -> Reply {
    Reply::Answer(stream(events(wire, calls).0.concat()))
}

/// The answers that end the task.
fn work(wire: WireFormat) -> [Reply; 2] {
    [good(wire, &write_fixed()), good(wire, &finish())]
}

fn project() -> Project {
    Project::new(&[
        ("a.txt", "broken\n"),
        ("plan.yaml", &plan("grep -q fixed a.txt")),
    ])
}

struct Played {
    run: Run,
    project: Project,
    api: Scripted,
}

impl Played {
    /// The waits that the agent's sessions decided on, in milliseconds.
    fn waits(&self) -> Vec<u64> {
        let dir = self.run.dir.as_ref().unwrap();
        let log = std::fs::read_to_string(dir.join("turns/01-builtin.jsonl")).unwrap();
        let records = log
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap());
        records
            .filter(|record| record["intent"]["step"] == "wait")
            .map(|record| record["intent"]["ms"].as_u64().unwrap())
            .collect()
    }

    fn expect(self, code: i32) -> Self {
        let Self { run, .. } = self;
        Self {
            run: run.expect(code),
            ..self
        }
    }

    /// Fails unless the task was done, with nothing but its own change.
    fn done(self) -> Self {
        let played = self.expect(0);
        assert_eq!(played.api.steps_left(), 0);
        assert_eq!(played.project.read("a.txt"), "fixed\n");
        assert!(!played.project.repo().join("cut.txt").exists());
        assert_eq!(
            (played.project.commits(), played.project.status().as_str()),
            (2, "")
        );
        played
    }
}

fn play(model: &str, script: Vec<Reply>, args: &[&str]) -> Played {
    let api = Scripted::start(script);
    let mut project = project();
    project.env("SPRAG_MODEL_WAIT_MS", "1");
    let args = builtin(&mut project, &api.url(), model, args);
    let run = project.sprag(&args);
    Played { run, project, api }
}

/// Plays these answers and then, if they are waited out, the work.
fn before_the_work(wire: &(WireFormat, &str), faults: Vec<Reply>) -> Played {
    let (wire, model) = *wire;
    play(model, faults.into_iter().chain(work(wire)).collect(), &[])
}

#[test]
fn a_response_may_come_byte_by_byte() {
    for (wire, model) in WIRES {
        let drip = |calls: &[Call]| {
            let body = events(wire, calls).0.concat();
            Reply::Drip(stream(body), Duration::ZERO)
        };
        let played = play(model, vec![drip(&write_fixed()), drip(&finish())], &[]).done();
        let mut said = played
            .run
            .events
            .iter()
            .filter(|event| event["event"] == "agent.message");
        assert_eq!(said.next().unwrap()["text"], SAID, "{model}");
    }
}

#[test]
fn a_stream_that_is_cut_anywhere_counts_for_nothing() {
    for (wire, model) in WIRES {
        let calls = [("write_file", json!({"path": "cut.txt", "content": "x"}))];
        let (parts, before) = events(wire, &calls);
        let whole = parts.concat().into_bytes();
        let most = parts[..before].concat().len();
        // Nine places, in the middle of whatever is there, and each end of an event.
        let ends = (1..=before).map(|count| parts[..count].concat().len());
        let places: Vec<usize> = (1..10).map(|n| most * n / 10).chain(ends).collect();
        let cut = |at: &usize| Reply::Answer(stream(&whole[..*at]));
        let mut script: Vec<Reply> = Vec::new();
        for group in places.chunks(5) {
            script.extend(group.iter().map(cut));
            script.push(good(wire, &[("list_files", json!({}))]));
        }
        script.push(Reply::Broken(stream(whole.clone())));
        script.push(Reply::Close);
        script.extend(work(wire));
        let expected = places.len() + 2;
        let played = play(model, script, &[]).done();
        assert_eq!(played.waits().len(), expected, "{model}");
    }
}

#[test]
fn an_answer_that_is_no_response_counts_for_nothing_and_is_told() {
    let page = "<html><head><title>Sign in</title></head></html>";
    for wire in &WIRES[..1] {
        let broken = [
            stream("data: {\"choices\": [{\n\n"),
            stream("data: null\n\ndata: []\n\ndata: \"text\"\n\ndata: 7\n\n"),
            stream(""),
            answer(200, "text/html; charset=utf-8", page),
            answer(200, "application/json", ""),
        ];
        let played = before_the_work(wire, broken.into_iter().map(Reply::Answer).collect()).done();
        assert_eq!(played.waits(), [2_000, 4_000, 8_000, 16_000, 32_000]);
        let errors: Vec<&str> = played
            .run
            .events
            .iter()
            .filter(|event| event["event"] == "agent.error")
            .map(|event| event["message"].as_str().unwrap())
            .collect();
        assert!(
            errors[3].contains("text/html") && errors[3].contains("Sign in"),
            "{errors:?}"
        );
        assert_eq!(errors[4], "the response is empty");
    }
}

#[test]
fn an_error_within_a_stream_is_waited_out() {
    let forms: [(usize, &[Value]); 4] = [
        (
            0,
            &[
                json!({"error": {"message": "The server had an error while processing your request", "type": "server_error"}}),
                json!({"error": {"code": 502, "message": "Provider disconnected"}, "choices": [{"delta": {"content": ""}, "finish_reason": "error"}]}),
            ],
        ),
        (
            1,
            &[
                json!({"type": "error", "code": "rate_limit_exceeded", "message": "Rate limit reached", "param": null, "sequence_number": 3}),
                json!({"type": "response.failed", "response": {"status": "failed", "error": {"code": "server_error", "message": "The model failed to generate a response."}}}),
            ],
        ),
        (
            2,
            &[
                json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
                json!({"type": "error", "error": {"type": "api_error", "message": "Internal server error"}}),
            ],
        ),
        (
            3,
            &[
                json!({"error": {"code": 503, "message": "The model is overloaded. Please try again later.", "status": "UNAVAILABLE"}}),
            ],
        ),
    ];
    for (which, errors) in forms {
        let calls = [("write_file", json!({"path": "cut.txt", "content": "x"}))];
        let (parts, before) = events(WIRES[which].0, &calls);
        let broken = errors.iter().map(|error| {
            let body = format!("{}{}", parts[..before].concat(), server_sent(error));
            Reply::Answer(stream(body))
        });
        let played = before_the_work(&WIRES[which], broken.collect()).done();
        assert_eq!(played.waits().len(), errors.len());
    }
}

fn with_header(status: u16, name: &str, value: &str, body: &str) -> Reply {
    let mut response = answer(status, "application/json", body);
    response.headers.push((name.into(), value.into()));
    Reply::Answer(response)
}

#[test]
fn what_passes_is_waited_out_for_as_long_as_the_provider_asks() {
    let limited = r#"{"error":{"type":"rate_limit_error","message":"slow down"}}"#;
    let long_ago = "Wed, 01 Jan 2020 00:00:00 GMT";
    for wire in &WIRES[..1] {
        let script = vec![
            with_header(429, "retry-after", "7", limited),
            with_header(503, "retry-after", long_ago, ""),
            with_header(
                529,
                "retry-after",
                "0.5",
                r#"{"type":"error","error":{"type":"overloaded_error"}}"#,
            ),
            json(500, "{}"),
            with_header(429, "retry-after", "100000", limited),
        ];
        let played = before_the_work(wire, script).done();
        assert_eq!(
            played.waits(),
            // Less than the first wait is no time to come back at: the waits grow instead.
            [7_000, 4_000, 8_000, 16_000, 300_000],
            "{}",
            wire.1
        );
    }
    let delay = r#"{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"You exceeded your current quota, please check your plan and billing details.","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34s"}]}}"#;
    let played = before_the_work(&WIRES[3], vec![json(429, delay)]).done();
    assert_eq!(played.waits(), [34_000]);
}

#[test]
fn a_limit_that_does_not_pass_is_waited_for_by_the_session_alone() {
    let limited = r#"{"error":{"type":"rate_limit_error","message":"slow down"}}"#;
    let endless = |_| with_header(429, "retry-after", "0", limited);
    let played = play(WIRES[0].1, (0..40).map(endless).collect(), &[]).expect(4);
    assert_eq!(played.api.requests().len(), 6);
    assert_eq!(played.waits(), [2_000, 4_000, 8_000, 16_000, 32_000]);
    let task = played.run.task(0);
    assert_eq!(task["reason"], "agent_unavailable");
    let message = task["message"].as_str().unwrap();
    assert!(
        message.contains("(429): slow down; run again later") && !message.contains('{'),
        "{message}"
    );
}

#[test]
fn a_date_to_come_back_at_is_waited_for() {
    let at = jiff::Timestamp::now() + jiff::SignedDuration::from_mins(3);
    let date = at.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
    let played =
        before_the_work(&WIRES[2], vec![with_header(429, "retry-after", &date, "")]).done();
    let waits = played.waits();
    // However slow this machine is, the moment is known to the second.
    assert!(
        waits.len() == 1 && waits[0] <= 180_000 && waits[0] != 2_000,
        "{waits:?}"
    );
}

#[test]
fn what_only_a_person_can_mend_ends_the_run_at_once() {
    let spent = r#"{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","type":"insufficient_quota","code":"insufficient_quota"}}"#;
    let model = r#"{"error":{"message":"The model `m` does not exist or you do not have access to it.","code":"model_not_found"}}"#;
    let key = r#"{"error":{"message":"Incorrect API key provided"}}"#;
    let errors = [(401, key), (404, model), (429, spent)];
    for ((status, body), (_, name)) in errors.into_iter().zip(WIRES.into_iter().cycle()) {
        let played = play(name, vec![json(status, body)], &[]).expect(4);
        let told = format!("{name} {status}");
        assert_eq!(played.run.task(0)["reason"], "agent_unavailable", "{told}");
        assert_eq!(played.run.summary["status"], "environment");
        let message = played.run.task(0)["message"].as_str().unwrap();
        assert!(!message.contains('{'), "{message}");
        let said = [&*played.run.stdout, &*played.run.stderr].concat();
        assert!(!said.contains(MODEL_KEY), "{said}");
        assert_eq!(played.api.requests().len(), 1, "{told}");
        assert_eq!(played.waits(), [] as [u64; 0]);
    }
}

#[test]
fn a_request_that_is_too_long_is_made_shorter() {
    let words = [
        (
            400,
            r#"{"error":{"message":"This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.","code":"context_length_exceeded"}}"#,
        ),
        (
            413,
            r#"{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}"#,
        ),
    ];
    let refusals = words.iter().map(|(status, body)| json(*status, body));
    let played = before_the_work(&WIRES[2], refusals.collect()).done();
    assert_eq!(played.waits(), [] as [u64; 0], "it is no use to wait");
}

#[test]
fn a_filter_is_asked_once_more() {
    let refused = r#"{"error":{"message":"The response was filtered due to the prompt triggering Azure OpenAI's content management policy.","code":"content_filter","status":400}}"#;
    before_the_work(&WIRES[0], vec![json(400, refused)]).done();
    let blocked = r#"{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"},"usageMetadata":{"promptTokenCount":7}}"#;
    before_the_work(&WIRES[3], vec![json(200, blocked)]).done();
    // A response that a filter ended is a response; the session goes on.
    let ended = [
        json!({"choices": [{"message": {"content": null, "refusal": null}, "finish_reason": "content_filter"}]}),
        json!({"object": "response", "status": "incomplete", "output": [], "incomplete_details": {"reason": "content_filter"}}),
        json!({"type": "message", "content": [], "stop_reason": "refusal", "usage": {"input_tokens": 1, "output_tokens": 1}}),
        json!({"candidates": [{"finishReason": "SAFETY"}], "usageMetadata": {"promptTokenCount": 7}}),
    ];
    for (wire, ended) in WIRES.iter().zip(ended) {
        before_the_work(wire, vec![json(200, &ended.to_string())]).done();
    }
}

#[test]
fn tokens_and_cost_are_counted_alike_and_parallel_calls_all_carried_out() {
    for (wire, model) in WIRES {
        let both = [
            ("write_file", json!({"path": "a.txt", "content": "fixed\n"})),
            ("run_command", json!({"command": "echo marker-$((40 + 2))"})),
            ("read_file", json!({"path": "plan.yaml"})),
        ];
        let script = vec![good(wire, &both), good(wire, &finish())];
        let played = play(model, script, &["--agent-arg=--price=1,0.1,10"]).done();
        let usage = &played.run.summary["usage"];
        assert_eq!(usage["tokens_in"], 2 * TOKENS_IN, "{model}");
        assert_eq!(usage["tokens_out"], 2 * TOKENS_OUT, "{model}");
        let fresh = (TOKENS_IN - TOKENS_CACHED) as f64;
        let one = fresh + TOKENS_CACHED as f64 * 0.1 + TOKENS_OUT as f64 * 10.0;
        let cost = usage["cost_usd"].as_f64().unwrap();
        assert!((cost - 2.0 * one / 1e6).abs() < 1e-9, "{model} {cost}");
        let second = String::from_utf8(played.api.requests()[1].body.clone()).unwrap();
        assert!(
            second.contains("marker-42") && second.contains("Fix a.txt"),
            "{model}"
        );
    }
}

#[test]
fn what_is_not_known_of_a_stream_is_ignored() {
    for (wire, model) in WIRES {
        let more = |calls: &[Call]| {
            let mut body = ": a comment\n\nid: 7\nretry: 10\n\n".to_owned();
            for part in events(wire, calls).0 {
                body += &part;
                body += "event: brand_new\ndata: {\"type\": \"brand_new\", \"brand\": {\"new\": [1]}}\n\n";
            }
            Reply::Answer(stream(body))
        };
        play(model, vec![more(&write_fixed()), more(&finish())], &[]).done();
    }
}

#[test]
fn a_model_without_thoughts_is_not_asked_for_them_again() {
    let refused = r#"{"error":{"message":"Encrypted content is not supported with this model.","type":"invalid_request_error","param":"include"}}"#;
    let reasons = (WireFormat::Responses, "openai-responses/gpt-6.1-sol");
    let played = before_the_work(&reasons, vec![json(400, refused)]).done();
    let asks = played.api.requests().into_iter().map(|request| {
        let body: Value = serde_json::from_slice(&request.body).unwrap();
        body.get("include").is_some()
    });
    assert_eq!(asks.collect::<Vec<_>>(), [true, false, false]);
    assert_eq!(played.waits(), [] as [u64; 0]);
}
