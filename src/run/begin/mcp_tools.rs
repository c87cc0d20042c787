//! Asks an MCP server for its tools, as an agent does: in JSON-RPC 2.0, by a message per line or by an HTTP request per
//! message.

use crate::domain::mcp::Header;
use crate::domain::text::excerpt;
use crate::http::{BoundedBody, Client, Network, TransportError};
use crate::process::{
    Cancel, CommandSpec, Dialogue, HeadTail, Input, Line, LineSplitter, StreamKind, clean_text, run,
};
use http_body_util::Full;
use hyper::Request;
use hyper::header::{ACCEPT, CONTENT_TYPE};
use serde_json::{Value, json};
use sprag_agent::model::sse::Events;
use std::time::Duration;

/// Time limit of a server's start and of its answers. Its package may have to be fetched.
pub(super) const LIMIT: Duration = Duration::from_secs(60);

const VERSION: &str = "2025-06-18";
const SESSION: &str = "mcp-session-id";

/// The id of the request that opens the session, and of the one for the tools.
const INITIALIZE: u64 = 1;
const LIST: u64 = 2;

/// Number of bytes that are read of an answer, and of the end of what a program says beside it.
const MAX_ANSWER: usize = 4 << 20;
const SAID: usize = 8 << 10;

const NO_ANSWER: &str = "it answers in another protocol";

/// The names of a server's tools, or why it named none.
pub(super) type Tools = Result<Vec<String>, String>;

/// All that is said to a server, in this order.
fn messages() -> [Value; 3] {
    let about = json!({
        "protocolVersion": VERSION,
        "capabilities": {},
        "clientInfo": { "name": "sprag", "version": env!("CARGO_PKG_VERSION") },
    });
    [
        json!({ "jsonrpc": "2.0", "id": INITIALIZE, "method": "initialize", "params": about }),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        json!({ "jsonrpc": "2.0", "id": LIST, "method": "tools/list" }),
    ]
}

/// The result in a message that answers the request with this id.
fn result(message: &[u8], id: u64) -> Option<Result<Value, String>> {
    let message: Value = serde_json::from_slice(message).ok()?;
    if message.get("id")?.as_u64() != Some(id) || message.get("method").is_some() {
        return None;
    }
    if let Some(error) = message.get("error") {
        let why = error.get("message").and_then(Value::as_str);
        return Some(Err(shown(why.unwrap_or("an error without a message"))));
    }
    message.get("result").cloned().map(Ok)
}

fn names(result: &Value) -> Vec<String> {
    let tools = result.get("tools").and_then(Value::as_array);
    let names = tools
        .into_iter()
        .flatten()
        .filter_map(|tool| tool["name"].as_str());
    names.map(shown).collect()
}

/// A text of a server, for people.
fn shown(text: &str) -> String {
    excerpt(&clean_text(text.as_bytes())).replace('\n', " ")
}

/// The tools of a server that is a program. It is started for this answer alone.
pub(super) async fn of_program(spec: CommandSpec, cancel: &Cancel) -> Tools {
    let dialogue = Dialogue::default();
    let say = |message: &Value| dialogue.say(format!("{message}\n").as_bytes());
    let [initialize, initialized, list] = messages();
    say(&initialize);
    let spec = CommandSpec {
        stdin: Input::Dialogue(dialogue.clone()),
        ..spec
    };
    let (mut lines, mut said) = (LineSplitter::new(MAX_ANSWER), HeadTail::new(0, SAID));
    let mut tools = None;
    let mut on_line = |line: Line<'_>| {
        let Line::Whole(line) = line else { return };
        match result(line, INITIALIZE) {
            Some(Ok(_)) => [&initialized, &list].into_iter().for_each(say),
            Some(Err(why)) => tools = Some(Err(why)),
            None => {
                if let Some(listed) = result(line, LIST) {
                    tools = Some(listed.map(|result| names(&result)));
                }
            }
        }
        if tools.is_some() {
            dialogue.end();
        }
    };
    let ended = run(&spec, cancel, &mut |stream, chunk: &[u8]| match stream {
        StreamKind::Stdout => lines.push(chunk, &mut on_line),
        StreamKind::Stderr => said.push(chunk),
    })
    .await;
    tools.unwrap_or_else(|| {
        let said = said.into_text();
        let last = said.lines().rfind(|line| !line.trim().is_empty());
        let more = last.map_or(String::new(), |line| format!(": {}", shown(line)));
        Err(format!("no list of its tools came ({}){more}", ended.exit))
    })
}

/// The tools of a server at an address. `headers` are those of the configuration with their values.
pub(super) async fn of_address(
    url: &str,
    headers: &[(&Header, String)],
    network: &Network,
) -> Tools {
    let client = Client::new(network, Some(LIMIT));
    let mut session = None;
    let mut tools = Vec::new();
    for message in messages() {
        let mut request = Request::post(url)
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json, text/event-stream");
        for (header, value) in headers {
            request = request.header(&header.name, value);
        }
        if let Some(session) = &session {
            request = request.header(SESSION, session);
            request = request.header("mcp-protocol-version", VERSION);
        }
        let whole = request
            .body(Full::new(message.to_string().into()))
            .map_err(|error| error.to_string())?;
        let answer = client.send(whole, LIMIT).await.map_err(why)?;
        if !answer.status().is_success() {
            return Err(format!("it answers with HTTP {}", answer.status()));
        }
        session = answer.headers().get(SESSION).cloned().or(session);
        let Some(id) = message["id"].as_u64() else {
            continue;
        };
        // The message is the whole body, or an event of a stream that may stay open.
        let (mut text, mut events, mut answered) = (Vec::new(), Events::default(), None);
        let mut body = BoundedBody::new(answer.into_body(), MAX_ANSWER);
        while answered.is_none()
            && let Some(chunk) = body.chunk(LIMIT).await.map_err(why)?
        {
            text.extend_from_slice(&chunk);
            let ended = events.push(&chunk).map_err(|_| NO_ANSWER)?;
            answered = ended.iter().find_map(|data| result(data, id));
        }
        let last = events.finish().unwrap_or(text);
        let answered = answered.or_else(|| result(&last, id));
        tools = names(&answered.ok_or(NO_ANSWER)??);
    }
    Ok(tools)
}

/// Why no answer came.
fn why(error: TransportError) -> String {
    match error {
        TransportError::Late => "it did not answer in time".to_owned(),
        TransportError::Unsent(why) | TransportError::Lost(why) | TransportError::Broken(why) => {
            why
        }
    }
}
