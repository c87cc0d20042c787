//! Any agent that speaks the Agent Client Protocol, version 1: JSON-RPC 2.0, one message per line, over its
//! standard input and output.
//!
//! A turn is one process: `initialize`, `session/new` or `session/load`, one `session/prompt`, and the end of
//! its input. Sprag offers neither files nor terminals, so the agent works with its own tools, in the sandbox
//! in which it was started. It asks for permissions with `session/request_permission`: what the run allows is
//! allowed once, and a read-only role is refused everything except reading.
//!
//! Known about opencode 1.18: the tokens in the response to a prompt, a draft of the protocol, are those of
//! its last request and not of the session, so the tokens stay unknown; the session's cost is correct. Known
//! about gemini 0.61: it claims that it can load sessions but then finds none, so each turn is repeated in a
//! new one.
//!
//! The messages are parsed here, as leniently as those of every other agent, and not by the crate
//! `agent-client-protocol` (5.0): it must own both pipes, which here belong to the one module that supervises
//! children, and its types lose a whole message if one field has an unexpected type. It would add 24 crates,
//! its types alone 14.

use super::output::{self, Chunks, OpenCalls};
use super::turn::{ExitFacts, TurnReader, TurnRequest};
use super::{json, mcp};
use crate::domain::agent::{AgentEvent, AgentReport, ApiError, ApiErrorClass, CutOff, UsageBasis};
use crate::domain::api_error::{classify_final, with_remedy};
use crate::json_rpc;
use crate::process::Dialogue;
use serde_json::{Value, json};

/// The supported version of the protocol.
const VERSION: u64 = 1;

/// The ids of Sprag's requests.
const INITIALIZE: u64 = 1;
const SESSION: u64 = 2;
const PROMPT: u64 = 3;

/// The code of the error that the agent has no login.
const LOGIN_REQUIRED: i64 = -32000;

const LOGIN_REMEDY: &str = "log the agent in, or pass its key with `agent_env`";

/// Conducts one turn and reads the agent's output.
#[derive(Debug)]
pub struct Reader {
    dialogue: Dialogue,
    work_tree: String,
    prompt: String,
    may_write: bool,
    /// The MCP servers of the session.
    servers: Vec<Value>,
    /// The session of an earlier turn, which this turn continues.
    earlier: Option<String>,
    can_load: bool,
    /// The session, once the prompt was sent. The agent's earlier messages belong to an earlier turn, and those about
    /// another session to an agent of its own.
    session: Option<String>,
    spoke: bool,
    ended: bool,
    said: Chunks,
    thought: Chunks,
    open_calls: OpenCalls<Changes>,
    report: AgentReport,
    /// The events of the message that is being read.
    events: Vec<AgentEvent>,
}

/// The files that a tool call changes if it succeeds.
type Changes = Vec<(String, &'static str)>;

impl Reader {
    pub(super) fn new(request: &TurnRequest<'_>, prompt: &str) -> Self {
        let reader = Self {
            dialogue: Dialogue::default(),
            work_tree: request.directory.to_string_lossy().into_owned(),
            prompt: prompt.to_owned(),
            may_write: request.may_write,
            servers: mcp::of_session(request),
            earlier: request.resumable().map(str::to_owned),
            can_load: false,
            session: None,
            spoke: false,
            ended: false,
            said: Chunks::default(),
            thought: Chunks::default(),
            open_calls: OpenCalls::default(),
            report: AgentReport {
                usage_basis: UsageBasis::Session,
                ..AgentReport::default()
            },
            events: Vec::new(),
        };
        reader.request(
            INITIALIZE,
            "initialize",
            &json!({
                "protocolVersion": VERSION,
                "clientCapabilities": {
                    "fs": { "readTextFile": false, "writeTextFile": false },
                    "terminal": false,
                },
                "clientInfo": json_rpc::client_info(),
            }),
        );
        reader
    }

    fn request(&self, id: u64, method: &str, params: &Value) {
        self.send(&json_rpc::request(id, method, params));
    }

    fn send(&self, message: &Value) {
        self.dialogue.say(format!("{message}\n").as_bytes());
    }

    /// Handles the response to one of Sprag's requests. `None` if it is to none of them.
    fn answer(&mut self, id: u64, message: &Value) -> Option<()> {
        let result = message.get("result").unwrap_or(&Value::Null);
        match (id, message.get("error")) {
            (_, Some(error)) => self.refused(id, error),
            (INITIALIZE, None) => self.initialized(result),
            (SESSION, None) => self.session_began(result),
            (PROMPT, None) => self.prompt_ended(result),
            _ => return None,
        }
        Some(())
    }

    fn initialized(&mut self, result: &Value) {
        let version = json::count(result, "/protocolVersion");
        if version != Some(VERSION) {
            let spoken = version.map_or("none".to_owned(), |version| version.to_string());
            return self.end_with(output::unavailable(format!(
                "the agent speaks version {spoken} of the Agent Client Protocol, {VERSION} is needed"
            )));
        }
        self.can_load = json::flag(result, "/agentCapabilities/loadSession");
        let reaches_urls = json::flag(result, "/agentCapabilities/mcpCapabilities/http");
        let servers = std::mem::take(&mut self.servers).into_iter();
        let (servers, left_out): (Vec<Value>, Vec<Value>) =
            servers.partition(|server| reaches_urls || server.get("url").is_none());
        for server in left_out {
            let name = json::string(&server, "/name");
            let warning = format!("the agent gets no MCP servers with a URL: {name}");
            self.report.warnings.push(warning);
        }
        let mut params = json!({ "cwd": self.work_tree, "mcpServers": servers });
        self.earlier = self.earlier.take().filter(|_| self.can_load);
        let method = match &self.earlier {
            Some(session) => {
                params["sessionId"] = session.as_str().into();
                "session/load"
            }
            None => "session/new",
        };
        self.request(SESSION, method, &params);
    }

    fn session_began(&mut self, result: &Value) {
        let id = self.earlier.as_deref();
        let Some(id) = id.or_else(|| json::text(result, "/sessionId")) else {
            let message = "the agent began a session without an id";
            return self.end_with(classify_final(None, message));
        };
        let id = id.to_owned();
        // A later turn can continue the session only if the agent can load it.
        let known = Some(&*id).filter(|_| self.can_load);
        let started = output::session(&mut self.report.session_id, known);
        self.events.extend(started);
        let cancel = json_rpc::notification("session/cancel", &json!({ "sessionId": id }));
        self.dialogue
            .set_farewell(format!("{cancel}\n").into_bytes());
        let prompt = std::mem::take(&mut self.prompt);
        let params = json!({ "sessionId": id, "prompt": [{ "type": "text", "text": prompt }] });
        self.request(PROMPT, "session/prompt", &params);
        self.session = Some(id);
    }

    fn prompt_ended(&mut self, result: &Value) {
        self.flush();
        match json::text(result, "/stopReason") {
            None | Some("end_turn") => {}
            Some("refusal") => self.stopped("refuses to go on", CutOff::Refused),
            Some("cancelled") => self.stopped("cancelled the turn itself", CutOff::Unanswered),
            Some(reason) => self.stopped(reason, CutOff::OwnLimit),
        }
        self.end();
    }

    fn stopped(&mut self, why: &str, stop: CutOff) {
        self.report.stopped_by = Some(why.to_owned());
        self.report.stop = stop;
    }

    /// Ends the turn after an error in response to one of Sprag's requests.
    fn refused(&mut self, id: u64, error: &Value) {
        if id == SESSION {
            // A session that cannot be loaded is not requested again.
            self.report.session_id = None;
        }
        let mut message = json::string(error, "/message");
        let details = ["/data/details", "/data/message", "/data"];
        if let Some(details) = details.iter().find_map(|place| json::text(error, place)) {
            message = format!("{message}: {details}");
        }
        let told = classify_final(json::status(error, "/data/status"), &message);
        let code = error.get("code").and_then(Value::as_i64);
        self.end_with(if code == Some(LOGIN_REQUIRED) {
            ApiError {
                message: format!("{} ({LOGIN_REMEDY})", told.message),
                class: ApiErrorClass::Unavailable,
                ..told
            }
        } else {
            with_remedy(told, LOGIN_REMEDY)
        });
    }

    fn end_with(&mut self, error: ApiError) {
        self.flush();
        self.events.push(output::error(&error.message, true));
        self.report.api_error = Some(error);
        self.end();
    }

    fn end(&mut self) {
        self.ended = true;
        self.dialogue.end();
    }

    /// Allows or refuses a tool call by its declared kind. The sandbox and the repository show what it really
    /// does.
    fn permission(&mut self, id: &Value, message: &Value) {
        let kind = json::text(message, "/params/toolCall/kind").unwrap_or("other");
        let allowed = self.may_write || matches!(kind, "read" | "search" | "think");
        let wanted: &[&str] = if allowed {
            &["allow_once", "allow_always"]
        } else {
            &["reject_once", "reject_always"]
        };
        let options = json::list(message, "/params/options");
        let option = wanted.iter().find_map(|wanted| {
            let of_kind = |option: &&Value| json::text(option, "/kind") == Some(wanted);
            json::text(options.iter().find(of_kind)?, "/optionId")
        });
        if !allowed {
            self.report.permission_denials = self.report.permission_denials.saturating_add(1);
        }
        let outcome = match option.filter(|_| !self.ended) {
            Some(option) => json!({ "outcome": "selected", "optionId": option }),
            None => json!({ "outcome": "cancelled" }),
        };
        self.send(&json_rpc::response(id, &json!({ "outcome": outcome })));
    }

    fn update(&mut self, params: &Value) {
        let session = self.session.as_deref().filter(|_| !self.ended);
        let is_ours =
            session.is_some_and(|ours| ours == json::text(params, "/sessionId").unwrap_or(ours));
        let Some(update) = params.get("update").filter(|_| is_ours) else {
            return;
        };
        let chunk = json::text(update, "/content/text").unwrap_or_default();
        match json::text(update, "/sessionUpdate").unwrap_or_default() {
            "agent_message_chunk" => {
                let thought = self.thought.take();
                self.think(thought);
                let part = self.said.push(chunk);
                self.say(part);
            }
            "agent_thought_chunk" => {
                let part = self.thought.push(chunk);
                self.think(part);
            }
            "tool_call" => self.call(update),
            "tool_call_update" => self.call_changed(update),
            "plan" => {
                self.flush();
                let entries = json::list(update, "/entries").iter();
                let items = entries.map(output::todo_item).collect();
                self.events.push(output::todo(&mut self.report, items));
            }
            "usage_update" if json::text(update, "/cost/currency") == Some("USD") => {
                if let Some(amount) = update.pointer("/cost/amount").and_then(Value::as_f64) {
                    self.report.usage.cost_usd = Some(amount);
                    self.events.push(AgentEvent::Usage(self.report.usage));
                }
            }
            _ => {}
        }
    }

    /// Ends the messages whose chunks are now complete.
    fn flush(&mut self) {
        let thought = self.thought.take();
        self.think(thought);
        let said = self.said.take();
        self.say(said);
    }

    fn think(&mut self, thought: Option<String>) {
        let event = thought.map(|text| AgentEvent::Reasoning { text });
        self.events.extend(event);
    }

    fn say(&mut self, said: Option<String>) {
        if let Some(text) = said {
            self.report.final_message = Some(text.trim_end().to_owned());
            self.events.push(AgentEvent::Message { text });
        }
    }

    fn call(&mut self, update: &Value) {
        self.flush();
        // A message before a tool call is not the final message.
        self.report.final_message = None;
        let id = json::text(update, "/toolCallId");
        let title = json::text(update, "/title").filter(|title| !title.is_empty());
        let input = update.get("rawInput").unwrap_or(&Value::Null);
        let summary = title.map_or_else(|| output::summary_of(input), str::to_owned);
        self.open_calls.open(id, Changes::new());
        let name = json::text(update, "/kind").unwrap_or("other");
        let call = output::tool_call(&mut self.report, id, name, &summary);
        self.events.push(call);
        self.call_changed(update);
    }

    /// Handles a new state of a call: its result once it has ended, and the files that it then has changed.
    fn call_changed(&mut self, update: &Value) {
        let id = json::text(update, "/toolCallId");
        let mut changes = self.open_calls.close(id);
        let content = json::list(update, "/content");
        if let Some(changes) = &mut changes {
            for change in content.iter().filter_map(change) {
                if !changes.contains(&change) {
                    changes.push(change);
                }
            }
        }
        let status = json::text(update, "/status");
        if !matches!(status, Some("completed" | "failed")) {
            if let Some(changes) = changes {
                self.open_calls.open(id, changes);
            }
            return;
        }
        let texts = content
            .iter()
            .filter_map(|part| json::text(part, "/content/text"));
        let said = texts.collect::<Vec<_>>().join("\n");
        let exit_code = output::exit_code_in_words(&said);
        let ok = status == Some("completed") && exit_code.is_none_or(|code| code == 0);
        self.events
            .push(output::tool_result(id, ok, exit_code, &said));
        for (path, kind) in changes.filter(|_| ok).unwrap_or_default() {
            self.events.push(output::file_change(path, kind));
        }
    }
}

impl TurnReader for Reader {
    fn event(&mut self, message: &Value) -> Option<Vec<AgentEvent>> {
        let id = message.get("id").filter(|id| !id.is_null());
        match (json::text(message, "/method"), id) {
            (Some("session/update"), None) => self.update(message.get("params")?),
            (Some("session/request_permission"), Some(id)) => self.permission(id, message),
            (Some(method), Some(id)) => self.send(&json_rpc::refusal(id, method)),
            (Some(_), None) => {}
            (None, Some(id)) => self.answer(id.as_u64()?, message)?,
            (None, None) => return None,
        }
        self.spoke = true;
        Some(std::mem::take(&mut self.events))
    }

    fn dialogue(&self) -> Option<Dialogue> {
        Some(self.dialogue.clone())
    }

    fn finish(mut self: Box<Self>, exit: ExitFacts<'_>) -> AgentReport {
        self.flush();
        self.report.final_message_cut = self.said.is_cut() && self.report.final_message.is_some();
        if !self.ended && !exit.killed_by_us {
            // The process died during a turn, so its last message is not a final message.
            self.report.final_message = None;
            if exit.code == Some(0) {
                self.stopped("ended without an answer to the prompt", CutOff::Unanswered);
            }
        }
        if !self.spoke {
            let refused = exit.refused_to_start();
            self.report.api_error = refused.map(|error| with_remedy(error, LOGIN_REMEDY));
        }
        self.report
    }
}

/// The changed file in a tool call's content.
fn change(part: &Value) -> Option<(String, &'static str)> {
    if json::text(part, "/type")? != "diff" {
        return None;
    }
    let is_new = json::text(part, "/oldText").is_none();
    let kind = if is_new { "add" } else { "update" };
    Some((json::text(part, "/path")?.to_owned(), kind))
}

#[cfg(test)]
mod tests;
