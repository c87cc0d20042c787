use super::account::Request;
use super::*;
use crate::agents::gateway::{ANTHROPIC, KeyHeader, Route};
use crate::http::Network;
use sprag_agent::access::{Secret, WireFormat};
use sprag_agent::model::Meter;
use sprag_agent::tokens::estimate;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc;
use std::thread;

const KEY: &str = "sk-canary-of-the-provider";

/// A provider at this address.
fn route(upstream: &str) -> Route {
    Route {
        provider: &ANTHROPIC,
        upstream: upstream.to_owned(),
        keys: vec![(
            "ANTHROPIC_API_KEY",
            KeyHeader::ApiKey,
            Secret::of(KEY.into()),
        )],
    }
}

/// A provider that writes these parts of a response one by one, each on demand, and reports the request
/// that it got.
fn provider(parts: Vec<String>) -> (String, mpsc::Sender<()>, mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (go, next) = mpsc::channel();
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut asked = Vec::new();
        let mut byte = [0];
        while !asked.ends_with(b"\r\n\r\n") {
            stream.read_exact(&mut byte).unwrap();
            asked.push(byte[0]);
        }
        tell.send(String::from_utf8(asked).unwrap()).unwrap();
        for part in parts {
            next.recv().unwrap();
            stream.write_all(part.as_bytes()).unwrap();
        }
    });
    (url, go, told)
}

/// Sends a request for a message and returns the connection.
fn ask(gateway: &Gateway, token: &str) -> TcpStream {
    let address = gateway.url().replace("http://", "");
    let mut stream = TcpStream::connect(address).unwrap();
    let body = r#"{"model":"claude-sonnet-4-5","stream":true,"messages":[]}"#;
    write!(
        stream,
        "POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-api-key: {token}\r\nconnection: close, x-mine\r\nx-mine: 1\r\n\
         x-other: 2\r\naccept-encoding: gzip\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    stream
}

fn read_until(stream: &mut TcpStream, text: &str) -> String {
    let mut all = Vec::new();
    let mut byte = [0];
    while !String::from_utf8_lossy(&all).contains(text) {
        stream.read_exact(&mut byte).unwrap();
        all.push(byte[0]);
    }
    String::from_utf8(all).unwrap()
}

#[test]
fn a_response_passes_through_as_it_comes_and_is_counted_before_it_is_seen() {
    let event = |data: &str| format!("data: {data}\n\n");
    let chunk = |text: String| format!("{:x}\r\n{text}\r\n", text.len());
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nset-cookie: a=b\r\n\
                transfer-encoding: chunked\r\n\r\n";
    let start =
        r#"{"type":"message_start","message":{"usage":{"input_tokens":1000,"output_tokens":1}}}"#;
    let end = r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":500}}"#;
    let (url, go, told) = provider(vec![
        head.to_owned() + &chunk(event(start)),
        chunk(event(end)) + "0\r\n\r\n",
    ]);
    let gateway = Gateway::start(&Network::direct(), None).unwrap();
    let account = gateway.account(&route(&url));
    gateway.begin_turn(SpendLimits::default());
    let mut stream = ask(&gateway, account.token());

    let asked = told.recv().unwrap().to_lowercase();
    for expected in [
        &format!("x-api-key: {KEY}"),
        "accept-encoding: identity",
        "x-other: 2",
    ] {
        assert!(asked.contains(expected), "{asked}");
    }
    for unexpected in ["x-mine", account.token(), "gzip"] {
        assert!(!asked.contains(unexpected), "{asked}");
    }
    // The second part is written only after the first one was read at the other end.
    go.send(()).unwrap();
    let seen = read_until(&mut stream, "message_start");
    assert!(!seen.contains("set-cookie"), "{seen}");
    go.send(()).unwrap();
    read_until(&mut stream, "message_delta");
    let cost = gateway.end_turn();
    let usage = cost.usage.unwrap();
    assert_eq!((usage.tokens_in, usage.tokens_out), (Some(1000), Some(500)));
    // 3 dollars per million tokens in, 15 out.
    assert!((usage.cost_usd.unwrap() - 0.0105).abs() < 1e-9, "{usage:?}");
    assert_eq!(gateway.end_turn(), TurnCost::default());
}

#[test]
fn a_key_that_the_provider_repeats_is_not_handed_on() {
    let body = format!("{{\"error\":\"the key {KEY} is wrong\"}}");
    let (url, go, _told) = provider(vec![format!(
        "HTTP/1.1 401 No\r\ncontent-type: application/json\r\nretry-after: 3\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )]);
    let gateway = Gateway::start(&Network::direct(), None).unwrap();
    let account = gateway.account(&route(&url));
    gateway.begin_turn(SpendLimits::default());
    go.send(()).unwrap();
    let mut answer = String::new();
    ask(&gateway, account.token())
        .read_to_string(&mut answer)
        .unwrap();
    assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
    assert!(answer.contains("retry-after: 3") && answer.contains("is wrong"));
    assert!(!answer.contains(KEY), "{answer}");
    let usage = gateway.end_turn().usage.unwrap();
    assert_eq!((usage.tokens_in, usage.tokens_out), (Some(0), Some(0)));
}

#[test]
fn a_redirection_is_not_followed_and_no_provider_is_an_error_of_the_gateways() {
    let (url, go, _told) = provider(vec![
        "HTTP/1.1 307 Elsewhere\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n"
            .into(),
    ]);
    go.send(()).unwrap();
    let gateway = Gateway::start(&Network::direct(), None).unwrap();
    for upstream in [url.as_str(), "http://127.0.0.1:1"] {
        let account = gateway.account(&route(upstream));
        gateway.begin_turn(SpendLimits::default());
        let mut answer = String::new();
        ask(&gateway, account.token())
            .read_to_string(&mut answer)
            .unwrap();
        assert!(answer.starts_with("HTTP/1.1 502"), "{answer}");
        assert!(
            answer.contains(REFUSAL) && !answer.contains("location"),
            "{answer}"
        );
    }
}

#[test]
fn requests_at_the_same_time_do_not_pass_a_limit_together() {
    let gateway = Gateway::start(&Network::direct(), None).unwrap();
    let account = gateway.account(&route("http://127.0.0.1:1"));
    gateway.begin_turn(SpendLimits {
        tokens: Some(1000),
        cost_usd: None,
    });
    let ask = || Request::new(&account, "claude-sonnet-4-5".into(), 2_000);
    let under_way = [ask(), ask()];
    let why = account.ledger.refusal().unwrap();
    assert!(why.contains("1000 of 1000"), "{why}");
    // Requests that the provider does not accept cost nothing.
    under_way.into_iter().for_each(Request::forget);
    assert_eq!(account.ledger.refusal(), None);
}

#[test]
fn the_token_is_valid_only_during_a_turn() {
    let gateway = Gateway::start(&Network::direct(), None).unwrap();
    let account = gateway.account(&route("http://127.0.0.1:1"));
    gateway.begin_turn(SpendLimits::default());
    gateway.end_turn();
    let mut answer = String::new();
    ask(&gateway, account.token())
        .read_to_string(&mut answer)
        .unwrap();
    assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
    assert!(answer.contains("only during a turn"), "{answer}");
}

#[test]
fn a_complete_response_without_usage_counts_as_the_longest() {
    let gateway = Gateway::start(&Network::direct(), None).unwrap();
    let account = gateway.account(&route("http://127.0.0.1:1"));
    for (is_whole, received) in [(true, 64_000), (false, 0)] {
        gateway.begin_turn(SpendLimits::default());
        let mut request = Request::new(&account, "claude-sonnet-4-5".into(), 400);
        request.meter(Meter::new(WireFormat::Responses, false));
        request.push(br#"{"id":"r","status":"queued","background":true,"output":[]}"#);
        request.finish(is_whole);
        let usage = gateway.end_turn().usage.unwrap();
        assert_eq!(
            (usage.tokens_in, usage.tokens_out),
            (Some(100), Some(received))
        );
    }
}

#[test]
fn what_a_provider_does_not_tell_is_estimated() {
    let gateway = Gateway::start(&Network::direct(), None).unwrap();
    let account = gateway.account(&route("http://127.0.0.1:1"));
    let unpriced = || Request::new(&account, "a-model-of-ones-own".into(), 400);
    let mut request = unpriced();
    request.meter(Meter::new(WireFormat::Messages, true));
    let text = "word ".repeat(100);
    let delta = format!(
        "data: {{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{{\"type\":\"text_delta\",\"text\":\"{text}\"}}}}\n\n"
    );
    request.push(delta.as_bytes());
    drop(request);
    let cost = gateway.end_turn();
    let usage = cost.usage.unwrap();
    assert_eq!(usage.tokens_in, Some(100));
    let received = u64::try_from(estimate(&text)).unwrap();
    assert!(received > 90);
    assert_eq!(usage.tokens_out, Some(received));
    assert_eq!(usage.cost_usd, None);
    assert_eq!(cost.unpriced.as_deref(), Some("a-model-of-ones-own"));

    // It cannot be used to get past a limit in dollars.
    gateway.begin_turn(SpendLimits {
        tokens: None,
        cost_usd: Some(0.000_001),
    });
    let _under_way = unpriced();
    let why = account.ledger.refusal().unwrap();
    assert!(why.contains("the cost limit is reached"), "{why}");
    assert!(gateway.end_turn().usage.unwrap().cost_usd.is_some());
}
