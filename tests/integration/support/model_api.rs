//! A scripted model server: enough of OpenAI's *responses* and Anthropic's *messages* to drive the
//! real agents without a model.
//!
//! A script is a list of steps. Each model request that offers tools takes the next one; requests
//! without tools (titles, token counts) get a fixed answer and take none, unless the server plays a
//! model without tools ([`ModelApi::without_tools`]), which refuses the others. A request that finds no
//! step left, or no shell tool for a [`Step::Shell`], is refused with a 400 that says so, which
//! ends the agent's turn.

use super::http;
use super::model_calls;
use super::model_wire::{self, Answer, WireFormat};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

/// What the model does when it is asked once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// It says this and ends its turn.
    Text(String),
    /// It runs this command with the agent's shell tool; the agent then asks again.
    Shell(String),
    /// It says this and makes these calls; the agent then asks again.
    Calls(String, Vec<(&'static str, Value)>),
    /// The stream of its answer breaks off before its end.
    Cut,
    /// The request fails with this HTTP status. Agents retry some: every try takes a step.
    Status(u16),
    /// The request fails with this HTTP status and this text.
    Refused(u16, &'static str),
    /// The request is refused with 429 and may be made again after this many seconds.
    RateLimit(u32),
    /// The request gets no answer for as long as the agent waits for one.
    Silence,
}

/// A request as it came in.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    /// `POST`, `GET` …
    pub method: String,
    /// With its query.
    pub path: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// The JSON body; `null` if it is none.
    pub body: Value,
}

impl Recorded {
    /// The value of a header, by its name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }

    /// Whether the request could take a step of the script.
    pub fn offers_tools(&self) -> bool {
        !model_wire::tool_names(&self.body).is_empty()
    }

    /// Whether `text` stands anywhere in what the model was told.
    pub fn mentions(&self, text: &str) -> bool {
        fn any_string(value: &Value, text: &str) -> bool {
            match value {
                Value::String(string) => string.contains(text),
                Value::Array(values) => values.iter().any(|value| any_string(value, text)),
                Value::Object(fields) => fields.values().any(|value| any_string(value, text)),
                _ => false,
            }
        }
        any_string(&self.body, text)
    }
}

/// The server. It listens on a free port of the loopback interface until it is dropped.
pub struct ModelApi {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    stop: Arc<AtomicBool>,
    acceptor: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct State {
    steps: VecDeque<Step>,
    requests: Vec<Recorded>,
    answered: u32,
    no_tools: bool,
}

impl ModelApi {
    /// Starts a server with this script.
    pub fn start(steps: impl IntoIterator<Item = Step>) -> io::Result<Self> {
        Self::begin(steps, false)
    }

    /// Starts a server with this script for a model that can call no tools: it refuses requests that
    /// declare some, and each other one takes a step.
    pub fn without_tools(steps: impl IntoIterator<Item = Step>) -> io::Result<Self> {
        Self::begin(steps, true)
    }

    fn begin(steps: impl IntoIterator<Item = Step>, no_tools: bool) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let address = listener.local_addr()?;
        let steps = steps.into_iter().collect();
        let state = Arc::new(Mutex::new(State {
            steps,
            no_tools,
            ..State::default()
        }));
        let stop = Arc::new(AtomicBool::new(false));
        let acceptor = thread::spawn({
            let (state, stop) = (Arc::clone(&state), Arc::clone(&stop));
            move || accept(&listener, &state, &stop)
        });
        Ok(Self {
            address,
            state,
            stop,
            acceptor: Some(acceptor),
        })
    }

    /// `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Arguments that point `codex` here; it needs [`Self::codex_env`] too.
    pub fn codex_args(&self) -> Vec<String> {
        let settings = [
            "model_provider=\"scripted\"".to_owned(),
            "model_providers.scripted.name=\"scripted\"".to_owned(),
            format!("model_providers.scripted.base_url=\"{}/v1\"", self.url()),
            "model_providers.scripted.env_key=\"SCRIPTED_KEY\"".to_owned(),
            "model_providers.scripted.wire_api=\"responses\"".to_owned(),
            "model_providers.scripted.request_max_retries=0".to_owned(),
            "model_providers.scripted.stream_max_retries=0".to_owned(),
        ];
        settings
            .into_iter()
            .flat_map(|setting| ["-c".to_owned(), setting])
            .collect()
    }

    /// Variables that `codex` needs with [`Self::codex_args`].
    pub fn codex_env(&self) -> Vec<(String, String)> {
        vec![("SCRIPTED_KEY".to_owned(), "not-a-key".to_owned())]
    }

    /// Variables that point `claude` here.
    pub fn claude_env(&self) -> Vec<(String, String)> {
        vec![
            ("ANTHROPIC_BASE_URL".to_owned(), self.url()),
            ("ANTHROPIC_API_KEY".to_owned(), "not-a-key".to_owned()),
        ]
    }

    /// The configuration of `opencode` with a model of this server, `scripted/fake-model`.
    pub fn opencode_config(&self) -> Value {
        let model = json!({
            "name": "Scripted", "cost": { "input": 1, "output": 2 },
            "limit": { "context": 100_000, "output": 8000 },
        });
        let url = format!("{}/v1", self.url());
        json!({
            "autoupdate": false, "share": "disabled", "model": "scripted/fake-model",
            "provider": { "scripted": {
                "npm": "@ai-sdk/openai-compatible", "name": "Scripted",
                "options": { "baseURL": url, "apiKey": "not-a-key" },
                "models": { "fake-model": model },
            } },
        })
    }

    /// Every request so far.
    pub fn requests(&self) -> Vec<Recorded> {
        lock(&self.state).requests.clone()
    }

    /// The requests that offered tools, each of which took a step.
    pub fn model_requests(&self) -> Vec<Recorded> {
        self.requests()
            .into_iter()
            .filter(Recorded::offers_tools)
            .collect()
    }

    /// How many steps no request has taken.
    pub fn steps_left(&self) -> usize {
        lock(&self.state).steps.len()
    }
}

impl Drop for ModelApi {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        // The acceptor sees the flag when one more connection wakes it.
        let woken = TcpStream::connect(self.address).is_ok();
        if let Some(acceptor) = self.acceptor.take().filter(|_| woken) {
            let _ = acceptor.join();
        }
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn accept(listener: &TcpListener, state: &Arc<Mutex<State>>, stop: &AtomicBool) {
    for stream in listener.incoming() {
        if stop.load(Ordering::SeqCst) {
            return;
        }
        if let Ok(stream) = stream {
            let state = Arc::clone(state);
            thread::spawn(move || serve(stream, &state));
        }
    }
}

/// Answers one request and closes. A client that goes away is its own affair.
fn serve(stream: TcpStream, state: &Mutex<State>) {
    let mut reader = BufReader::new(stream);
    if let Ok(Some(request)) = read_request(&mut reader) {
        let answer = answer(request, &mut lock(state));
        let _ = match answer {
            Some(answer) => write_answer(&mut reader.into_inner(), &answer),
            None => io::copy(&mut reader, &mut io::sink()).map(drop),
        };
    }
}

fn read_request(reader: &mut impl BufRead) -> io::Result<Option<Recorded>> {
    let recorded = |request: http::Request| Recorded {
        body: serde_json::from_slice(&request.body).unwrap_or(Value::Null),
        method: request.method,
        path: request.target,
        headers: request.headers,
    };
    Ok(http::read_request(reader)?.map(recorded))
}

fn write_answer(stream: &mut impl Write, answer: &Answer) -> io::Result<()> {
    let Answer {
        status,
        content_type,
        retry_after,
        body,
    } = answer;
    let retry_after =
        retry_after.map_or_else(String::new, |seconds| format!("retry-after: {seconds}\r\n"));
    write!(
        stream,
        "HTTP/1.1 {status} Scripted\r\ncontent-type: {content_type}\r\ncontent-length: {}\r\n\
         {retry_after}connection: close\r\n\r\n{body}",
        body.len()
    )?;
    stream.flush()
}

/// The answer to a request; none to one that is to get none.
fn answer(request: Recorded, state: &mut State) -> Option<Answer> {
    let path = request
        .path
        .split('?')
        .next()
        .unwrap_or_default()
        .to_owned();
    state.requests.push(request.clone());
    Some(
        match (request.method.as_str(), WireFormat::of_path(&path)) {
            ("HEAD", _) => Answer {
                status: 200,
                content_type: "text/plain",
                retry_after: None,
                body: String::new(),
            },
            ("GET", _) if path.ends_with("/models") => {
                Answer::json(200, &json!({ "object": "list", "models": [], "data": [] }))
            }
            ("POST", _) if path.ends_with("/count_tokens") => {
                Answer::json(200, &json!({ "input_tokens": model_wire::TOKENS_IN }))
            }
            ("POST", Some(wire)) => return model_answer(wire, &request, state),
            _ => Answer::json(
                404,
                &json!({ "error": { "message": format!("no route {path}") } }),
            ),
        },
    )
}

fn model_answer(wire: WireFormat, request: &Recorded, state: &mut State) -> Option<Answer> {
    state.answered += 1;
    let number = state.answered;
    let streams = request.path.contains("stream") || request.body["stream"] == true;
    match (request.offers_tools(), state.no_tools) {
        (false, false) => {
            return Some(wire.text_reply(number, &request.body, streams, "A title"));
        }
        (true, true) => return Some(wire.error(400, "this model does not support tools")),
        (true, false) | (false, true) => {}
    }
    if model_wire::ends_with_the_models_words(&request.body) {
        let why = "the conversation must end with a user message";
        return Some(wire.error(400, why));
    }
    Some(match state.steps.pop_front() {
        Some(Step::Silence) => return None,
        Some(Step::RateLimit(seconds)) => Answer {
            retry_after: Some(seconds),
            ..wire.error(429, "scripted rate limit")
        },
        Some(Step::Calls(text, calls)) => model_calls::answer(wire, number, &text, &calls, streams),
        Some(Step::Cut) => model_calls::cut(wire, number),
        Some(Step::Text(text)) => wire.text_reply(number, &request.body, streams, &text),
        Some(Step::Refused(status, why)) => wire.error(status, why),
        Some(Step::Status(status)) => wire.error(status, &format!("scripted {status}")),
        Some(Step::Shell(command)) => wire
            .shell_reply(number, &request.body, streams, &command)
            .unwrap_or_else(|| {
                wire.error(400, "the script wants a shell and the agent offers none")
            }),
        None => wire.error(400, "the script has no step left"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn post(api: &ModelApi, path: &str, body: &Value) -> (String, String) {
        let mut stream = TcpStream::connect(api.address).unwrap();
        let body = body.to_string();
        let length = body.len();
        write!(
            stream,
            "POST {path} HTTP/1.1\r\nContent-Length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.lines().next().unwrap().to_owned(), body.to_owned())
    }

    fn asks<'a>(path: &'a str, tools: &Value) -> (&'a str, Value) {
        (
            path,
            json!({ "model": "m", "tools": tools, "input": [], "messages": [] }),
        )
    }

    #[test]
    fn each_request_with_tools_takes_a_step() {
        let steps = [
            Step::Shell("ls".into()),
            Step::Status(503),
            Step::Text("done".into()),
        ];
        let api = ModelApi::start(steps).unwrap();
        let tools = json!([{ "type": "function", "name": "exec_command" }, { "name": "Bash" }]);
        let (messages, with_tools) = asks("/v1/messages?beta=true", &tools);
        let (responses, without_tools) = asks("/v1/responses", &json!([]));

        let (status, body) = post(&api, messages, &with_tools);
        let body: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(
            (status.as_str(), &body["stop_reason"]),
            ("HTTP/1.1 200 Scripted", &json!("tool_use"))
        );
        assert_eq!(
            post(&api, responses, &without_tools).0,
            "HTTP/1.1 200 Scripted"
        );
        assert_eq!(post(&api, messages, &with_tools).0, "HTTP/1.1 503 Scripted");
        assert_eq!(api.steps_left(), 1);

        let (_, body) = post(&api, responses, &with_tools);
        let body: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(body["output"][0]["content"][0]["text"], "done");
        assert_eq!(
            post(&api, responses, &with_tools).0,
            "HTTP/1.1 400 Scripted"
        );
        assert_eq!((api.requests().len(), api.model_requests().len()), (5, 4));
    }

    #[test]
    fn a_stream_holds_the_reply_in_events_named_by_their_type() {
        for (path, last) in [
            ("/v1/responses", "response.completed"),
            ("/v1/messages", "message_stop"),
        ] {
            let api = ModelApi::start([Step::Text("hello".into())]).unwrap();
            let body = json!({ "stream": true, "tools": [{ "name": "Bash" }] });
            let (_, stream) = post(&api, path, &body);
            let events: Vec<_> = stream.split_terminator("\n\n").collect();
            let names = events.iter().map(|event| {
                let (name, data) = event.split_once("\ndata: ").unwrap();
                let data: Value = serde_json::from_str(data).unwrap();
                assert_eq!(name, format!("event: {}", data["type"].as_str().unwrap()));
                data["type"].clone()
            });
            let names: Vec<_> = names.collect();
            assert_eq!(names.last(), Some(&json!(last)));
            assert!(stream.contains("hello"));
        }
    }

    #[test]
    fn a_shell_that_is_not_offered_ends_the_turn() {
        let api = ModelApi::start([Step::Shell("ls".into())]).unwrap();
        let (path, body) = asks("/v1/messages", &json!([{ "name": "Read" }]));
        let (status, body) = post(&api, path, &body);
        assert_eq!(status, "HTTP/1.1 400 Scripted");
        assert!(body.contains("the agent offers none"), "{body}");
    }
}
