//! An MCP server at an address of the loopback interface.

use super::http::{Reply, Request, Response, Server};
use serde_json::{Value, json};

/// What its header `Authorization` must hold.
pub const KEY: &str = "Bearer of-the-server-0001";

/// Starts a server with one tool. It answers only within its session, in JSON or as a stream of events.
pub fn start(streams: bool) -> Server {
    Server::start(move |request| Reply::Answer(answer(&request, streams))).unwrap()
}

fn answer(request: &Request, streams: bool) -> Response {
    let plain = |status| Response {
        status,
        ..Response::default()
    };
    if request.header("authorization") != Some(KEY) {
        return plain(401);
    }
    if request.method != "POST" {
        return plain(405);
    }
    let message: Value = serde_json::from_slice(&request.body).unwrap();
    let method = message["method"].as_str().unwrap_or_default();
    if method != "initialize" && request.header("mcp-session-id") != Some("s-1") {
        return plain(400);
    }
    let Some(id) = message.get("id") else {
        return plain(202);
    };
    let result = match method {
        "initialize" => json!({
            "protocolVersion": message["params"]["protocolVersion"],
            "capabilities": { "tools": {} },
            "serverInfo": { "name": "colours", "version": "1" },
        }),
        "tools/list" => json!({ "tools": [{
            "name": "colour",
            "description": "Says the colour",
            "inputSchema": { "type": "object", "properties": {} },
        }] }),
        _ => json!({ "content": [{ "type": "text", "text": "azure" }] }),
    };
    let text = json!({ "jsonrpc": "2.0", "id": id, "result": result });
    let (kind, body) = if streams {
        let body = format!(": hello\n\nevent: message\ndata: {text}\n\n");
        ("text/event-stream", body)
    } else {
        ("application/json", format!("{text:#}"))
    };
    Response {
        status: 200,
        headers: vec![
            ("content-type".into(), kind.into()),
            ("mcp-session-id".into(), "s-1".into()),
        ],
        body: body.into_bytes(),
    }
}
