//! A client of MCP servers: JSON-RPC 2.0, by a message per line of a program or by an HTTP request per message.

use crate::domain::mcp::{McpKind, McpServer};
use crate::domain::text::excerpt;
use crate::http::{BoundedBody, Client, Network, TransportError};
use crate::json_rpc;
use crate::process::{
    Cancel, CommandSpec, Dialogue, HeadTail, Input, Limits, Line, LineSplitter, StreamKind,
    clean_text, run,
};
use crate::sandbox::Policy;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use http_body_util::Full;
use hyper::Request;
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use serde_json::{Value, json};
use sprag_agent::model::sse::Events;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::timeout;

/// Time limit of a server's start and of its list of tools. Its package may have to be fetched.
pub const LIMIT: Duration = Duration::from_secs(60);

/// How long a program may run on after its input was closed.
const GRACE: Duration = Duration::from_secs(2);

const VERSION: &str = "2025-06-18";
const SESSION: &str = "mcp-session-id";

/// The maximum number of pages of a list of tools.
const MAX_PAGES: usize = 20;

/// Number of bytes that are read of an answer, and of the end of what a program says beside it.
const MAX_ANSWER: usize = 4 << 20;
const SAID: usize = 8 << 10;

const LATE: &str = "it did not answer in time";
const NO_ANSWER: &str = "it answers in another protocol";

/// The result of a request, or why there is none.
pub type Answer = Result<Value, String>;

/// A session with a server.
pub struct Connection {
    /// The server's name.
    pub name: String,
    via: Via,
    last_id: Cell<u64>,
}

enum Via {
    Program(Box<Program>),
    Address(Box<Address>),
}

struct Program {
    spec: CommandSpec,
    dialogue: Dialogue,
    inbox: RefCell<Inbox>,
    news: Notify,
}

#[derive(Default)]
struct Inbox {
    answers: BTreeMap<u64, Answer>,
    /// Why no more answers come.
    ended: Option<String>,
}

struct Address {
    url: String,
    headers: Vec<(String, String)>,
    client: Client,
    session: RefCell<Option<HeaderValue>>,
}

impl Connection {
    /// A session that is not open yet. A program works in `cwd` within these limits. The variables hold the values
    /// that the server gets.
    ///
    /// # Errors
    /// A variable that is not set.
    pub fn of(
        server: &McpServer,
        cwd: &Path,
        env: Vec<(OsString, OsString)>,
        limits: Limits,
        sandbox: Option<Policy>,
    ) -> Result<Self, String> {
        let value = |name: &str| {
            let (_, value) = env.iter().find(|(known, _)| known == name)?;
            Some(value.clone())
        };
        let variables = server.variables();
        if let Some(name) = variables.into_iter().find(|name| value(name).is_none()) {
            return Err(format!("{name} is not set"));
        }
        let via = match &server.kind {
            McpKind::Command { command, args, .. } => {
                let dialogue = Dialogue::default();
                Via::Program(Box::new(Program {
                    dialogue: dialogue.clone(),
                    inbox: RefCell::default(),
                    news: Notify::new(),
                    spec: CommandSpec {
                        program: command.into(),
                        args: args.iter().map(Into::into).collect(),
                        cwd: cwd.to_path_buf(),
                        env,
                        stdin: Input::Dialogue(dialogue),
                        limits,
                        sandbox,
                    },
                }))
            }
            McpKind::Url { url, headers } => {
                let headers = headers.iter().filter_map(|header| {
                    let value = value(&header.variable)?.into_string().ok()?;
                    Some((header.name.clone(), value))
                });
                Via::Address(Box::new(Address {
                    url: url.clone(),
                    headers: headers.collect(),
                    client: Client::new(&Network::of(value), None),
                    session: RefCell::default(),
                }))
            }
        };
        Ok(Self {
            name: server.name.clone(),
            via,
            last_id: Cell::new(0),
        })
    }

    /// Opens the session and returns the server's tools as it describes them.
    ///
    /// # Errors
    /// Why the server gives no list.
    pub async fn tools(&self) -> Result<Vec<Value>, String> {
        let client = json_rpc::client_info();
        let about = json!({ "protocolVersion": VERSION, "capabilities": {}, "clientInfo": client });
        self.ask("initialize", about, LIMIT).await?;
        let is_open = json_rpc::notification("notifications/initialized", &json!({}));
        match &self.via {
            Via::Address(address) => drop(address.send(&is_open, None, LIMIT).await?),
            Via::Program(program) => program.say(&is_open),
        }
        let (mut tools, mut page) = (Vec::new(), json!({}));
        for _ in 0..MAX_PAGES {
            let mut listed = self.ask("tools/list", page, LIMIT).await?;
            if let Some(Value::Array(more)) = listed.get_mut("tools").map(Value::take) {
                tools.extend(more);
            }
            match listed.get("nextCursor").and_then(Value::as_str) {
                Some(cursor) => page = json!({ "cursor": cursor }),
                None => break,
            }
        }
        Ok(tools)
    }

    /// Calls a tool of the open session.
    ///
    /// # Errors
    /// Why there is no result.
    pub async fn call(&self, tool: &str, arguments: &Value, limit: Duration) -> Answer {
        let params = json!({ "name": tool, "arguments": arguments });
        self.ask("tools/call", params, limit).await
    }

    async fn ask(&self, method: &str, params: Value, limit: Duration) -> Answer {
        let id = self.last_id.get() + 1;
        self.last_id.set(id);
        let request = json_rpc::request(id, method, &params);
        let answered = async {
            match &self.via {
                Via::Address(address) => address.send(&request, Some(id), limit).await,
                Via::Program(program) => program.ask(&request, id).await,
            }
        };
        let answered = timeout(limit, answered).await;
        answered.unwrap_or_else(|_| Err(LATE.to_owned()))
    }
}

impl Program {
    fn say(&self, message: &Value) {
        self.dialogue.say(format!("{message}\n").as_bytes());
    }

    async fn ask(&self, request: &Value, id: u64) -> Answer {
        self.say(request);
        loop {
            let arrived = self.inbox.borrow_mut().answers.remove(&id);
            let ended = || self.inbox.borrow().ended.clone().map(Err);
            if let Some(answer) = arrived.or_else(ended) {
                return answer;
            }
            self.news.notified().await;
        }
    }

    /// Runs it until it ends, or its session.
    async fn run(&self, cancel: &Cancel) {
        let (mut lines, mut said) = (LineSplitter::new(MAX_ANSWER), HeadTail::new(0, SAID));
        let mut on_line = |line: Line<'_>| {
            if let Line::Whole(line) = line {
                self.heard(line);
            }
        };
        let ended = run(
            &self.spec,
            cancel,
            &mut |stream, chunk: &[u8]| match stream {
                StreamKind::Stdout => lines.push(chunk, &mut on_line),
                StreamKind::Stderr => said.push(chunk),
            },
        )
        .await;
        let said = said.into_text();
        let last = said.lines().rfind(|line| !line.trim().is_empty());
        let more = last.map_or(String::new(), |line| format!(": {}", shown(line)));
        self.inbox.borrow_mut().ended = Some(format!("it ended ({}){more}", ended.exit));
        self.news.notify_one();
    }

    fn heard(&self, line: &[u8]) {
        let Ok(message) = serde_json::from_slice::<Value>(line) else {
            return;
        };
        match (message["method"].as_str(), &message["id"]) {
            (_, Value::Null) => {}
            (Some("ping"), id) => self.say(&json_rpc::response(id, &json!({}))),
            (Some(method), id) => self.say(&json_rpc::refusal(id, method)),
            (None, id) => {
                if let Some((id, answer)) = id.as_u64().zip(answer(&message)) {
                    self.inbox.borrow_mut().answers.insert(id, answer);
                    self.news.notify_one();
                }
            }
        }
    }
}

impl Address {
    async fn send(&self, message: &Value, id: Option<u64>, limit: Duration) -> Answer {
        let mut request = Request::post(&self.url)
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json, text/event-stream");
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        if let Some(session) = &*self.session.borrow() {
            request = request.header(SESSION, session);
            request = request.header("mcp-protocol-version", VERSION);
        }
        let whole = request
            .body(Full::new(message.to_string().into()))
            .map_err(|error| error.to_string())?;
        let reply = self.client.send(whole, limit).await.map_err(why)?;
        if !reply.status().is_success() {
            return Err(format!("it answers with HTTP {}", reply.status()));
        }
        if let Some(session) = reply.headers().get(SESSION) {
            self.session.replace(Some(session.clone()));
        }
        if id.is_none() {
            return Ok(Value::Null);
        }
        // The message is the whole body, or an event of a stream that may stay open.
        let (mut text, mut events) = (Vec::new(), Events::default());
        let mut body = BoundedBody::new(reply.into_body(), MAX_ANSWER);
        let found = |text: &[u8]| {
            let message: Value = serde_json::from_slice(text).ok()?;
            let is_it = message["id"].as_u64() == id && message.get("method").is_none();
            is_it.then(|| answer(&message)).flatten()
        };
        while let Some(chunk) = body.chunk(limit).await.map_err(why)? {
            text.extend_from_slice(&chunk);
            let ended = events.push(&chunk).map_err(|_| NO_ANSWER)?;
            if let Some(answer) = ended.iter().find_map(|data| found(data)) {
                return answer;
            }
        }
        let last = events.finish().unwrap_or(text);
        found(&last).unwrap_or_else(|| Err(NO_ANSWER.to_owned()))
    }
}

/// Does `work` while the servers that are programs run. They end with it.
pub async fn beside<T>(
    connections: &[Connection],
    cancel: &Cancel,
    work: impl Future<Output = T>,
) -> T {
    let programs = || {
        connections
            .iter()
            .filter_map(|connection| match &connection.via {
                Via::Program(program) => Some(program),
                Via::Address(_) => None,
            })
    };
    let mut running: FuturesUnordered<_> = programs().map(|program| program.run(cancel)).collect();
    let mut work = std::pin::pin!(work);
    let done = loop {
        tokio::select! {
            done = &mut work => break done,
            Some(()) = running.next() => {}
        }
    };
    programs().for_each(|program| program.dialogue.end());
    // One that is still there after that ends with its future.
    let _ = timeout(GRACE, running.for_each(|()| async {})).await;
    done
}

/// The result or the error in an answer.
fn answer(message: &Value) -> Option<Answer> {
    if let Some(error) = message.get("error") {
        let why = error.get("message").and_then(Value::as_str);
        return Some(Err(shown(why.unwrap_or("an error without a message"))));
    }
    message.get("result").cloned().map(Ok)
}

/// A text of a server, for people.
pub fn shown(text: &str) -> String {
    excerpt(&clean_text(text.as_bytes())).replace('\n', " ")
}

/// Why no answer came.
fn why(error: TransportError) -> String {
    error.text_or(LATE)
}
