//! Reads the output format `stream-json` of claude, which qwen writes too.

mod todo;

use super::json;
use super::output::{self, OpenCalls};
use super::turn::{ExitFacts, TurnReader};
use crate::domain::agent::{AgentEvent, AgentReport, ApiError, ApiErrorClass, Usage, UsageBasis};
use crate::domain::api_error::classify;
use serde_json::Value;

/// What differs between the programs that write the format.
#[derive(Debug)]
pub(super) struct Dialect {
    pub(super) usage_basis: UsageBasis,
    /// The usage in a result.
    pub(super) usage: fn(&Value) -> Usage,
    /// The exit code of a call of this tool, from its output, its block and the event.
    pub(super) exit_code: fn(&str, &str, &Value, &Value) -> Option<i32>,
    /// Whether an edited file is new, from the output of the call and the event.
    pub(super) is_new: fn(&str, &Value) -> bool,
    /// Stores the outcome of the turn that a result tells, and returns the message of a failure.
    pub(super) outcome: fn(&mut Reader, &Value) -> Option<String>,
    /// Adds the remedy to the error of a program that did not start.
    pub(super) remedy: fn(ApiError) -> ApiError,
}

/// Reads the stdout of one turn.
#[derive(Debug)]
pub(super) struct Reader {
    dialect: &'static Dialect,
    pub(super) report: AgentReport,
    pub(super) last_text: Option<String>,
    todo: todo::List,
    spoke: bool,
    ended: bool,
    retrying: Option<ApiError>,
    open_calls: OpenCalls<Call>,
}

/// A tool call whose result has not arrived.
#[derive(Debug, Default)]
struct Call {
    name: String,
    path: Option<String>,
    todo: Option<todo::Change>,
}

impl TurnReader for Reader {
    fn event(&mut self, event: &Value) -> Option<Vec<AgentEvent>> {
        let blocks = json::list(event, "/message/content").iter();
        let events = match json::text(event, "/type")? {
            "system" if json::text(event, "/subtype") == Some("api_retry") => {
                vec![self.retry(event)]
            }
            "system" => self.session(event).into_iter().collect(),
            // A synthetic message with an error, which the result repeats.
            "assistant" if json::text(event, "/error").is_some() => Vec::new(),
            "assistant" => {
                self.retrying = None;
                let is_own = json::text(event, "/parent_tool_use_id").is_none();
                blocks
                    .filter_map(|block| self.block(block, is_own))
                    .collect()
            }
            "user" => blocks
                .filter(|block| json::text(block, "/type") == Some("tool_result"))
                .flat_map(|block| self.tool_result(block, event))
                .collect(),
            "result" => self.result(event),
            "stream_event" | "rate_limit_event" | "tool_progress" | "tool_use_summary"
            | "auth_status" | "prompt_suggestion" | "keep_alive" => Vec::new(),
            _ => return None,
        };
        self.spoke = true;
        Some(events)
    }

    fn finish(mut self: Box<Self>, exit: ExitFacts<'_>) -> AgentReport {
        self.report.todo = self.todo.items();
        if !self.ended {
            self.report.final_message = self.last_text;
            let refused = exit.refused_to_start().filter(|_| !self.spoke);
            let refused = refused.map(self.dialect.remedy);
            self.report.api_error = self.retrying.or(refused);
        }
        self.report
    }
}

impl Reader {
    pub(super) fn of(dialect: &'static Dialect) -> Self {
        Self {
            dialect,
            report: AgentReport {
                usage_basis: dialect.usage_basis,
                ..AgentReport::default()
            },
            last_text: None,
            todo: todo::List::default(),
            spoke: false,
            ended: false,
            retrying: None,
            open_calls: OpenCalls::default(),
        }
    }

    /// The start of the session, reported once: it is repeated when claude continues by itself.
    fn session(&mut self, event: &Value) -> Option<AgentEvent> {
        let id = json::text(event, "/session_id");
        output::session(&mut self.report.session_id, id)
    }

    fn retry(&mut self, event: &Value) -> AgentEvent {
        let status = json::status(event, "/error_status");
        let what = json::text(event, "/error").unwrap_or("unknown");
        let what = status.map_or(what.to_owned(), |status| format!("{status} {what}"));
        let number = |pointer| json::count(event, pointer).unwrap_or_default();
        let (attempt, of) = (number("/attempt"), number("/max_retries"));
        self.retrying = Some(classify(status, &what).unwrap_or(ApiError {
            status,
            message: format!("connection failed: {what}"),
            retry_after_ms: None,
            class: ApiErrorClass::Transient,
        }));
        AgentEvent::Error {
            message: format!("API error: {what}; retry {attempt} of {of}"),
            is_final: false,
        }
    }

    fn block(&mut self, block: &Value, is_own: bool) -> Option<AgentEvent> {
        match json::text(block, "/type")? {
            "text" => {
                let text = json::string(block, "/text");
                if is_own {
                    self.last_text = Some(text.clone());
                }
                Some(AgentEvent::Message { text })
            }
            "thinking" => Some(AgentEvent::Reasoning {
                text: json::string(block, "/thinking"),
            }),
            "tool_use" | "server_tool_use" => Some(self.call(block)),
            _ => None,
        }
    }

    fn call(&mut self, block: &Value) -> AgentEvent {
        let name = json::string(block, "/name");
        let input = block.get("input").unwrap_or(&Value::Null);
        let id = json::text(block, "/id");
        let call = Call {
            name: name.clone(),
            path: edited_path(&name, input),
            todo: todo::Change::of(&name, input),
        };
        self.open_calls.open(id, call);
        output::tool_call(&mut self.report, id, &name, &output::summary_of(input))
    }

    fn tool_result(&mut self, block: &Value, event: &Value) -> Vec<AgentEvent> {
        let id = json::text(block, "/tool_use_id");
        let call = self.open_calls.close(id);
        let output = content_text(block.get("content"));
        let name = call.as_ref().map_or("", |call| call.name.as_str());
        let exit_code = (self.dialect.exit_code)(name, &output, block, event);
        let ok = !json::flag(block, "/is_error") && exit_code.is_none_or(|code| code == 0);
        let mut events = vec![output::tool_result(id, ok, exit_code, &output)];
        let Some(call) = call.filter(|_| ok) else {
            return events;
        };
        if let Some(path) = call.path {
            let is_new = (self.dialect.is_new)(&output, event);
            let kind = if is_new { "add" } else { "update" };
            events.push(output::file_change(path, kind));
        }
        if let Some(change) = call.todo {
            let result = event.get("tool_use_result");
            self.todo.apply(change, result, &output);
            events.push(AgentEvent::Todo {
                items: self.todo.items(),
            });
        }
        events
    }

    fn result(&mut self, event: &Value) -> Vec<AgentEvent> {
        self.ended = true;
        self.session(event);
        let denials = json::list(event, "/permission_denials").len();
        let report = &mut self.report;
        report.usage = (self.dialect.usage)(event);
        report.structured_output = event.get("structured_output").cloned();
        report.permission_denials = denials.try_into().unwrap_or(u32::MAX);
        (report.api_error, report.stopped_by, report.final_message) = (None, None, None);
        let mut events = vec![AgentEvent::Usage(report.usage)];
        let failure = (self.dialect.outcome)(self, event);
        events.extend(failure.map(|message| output::error(&message, true)));
        events
    }

    /// Stores the final message: this one, or the last text if it is blank. No failure.
    pub(super) fn said(&mut self, text: Option<&str>) -> Option<String> {
        let text = text.filter(|text| !text.trim().is_empty());
        let text = text.map(str::to_owned);
        self.report.final_message = text.or_else(|| self.last_text.clone());
        None
    }
}

/// The edited file, for the tools that edit one.
fn edited_path(tool: &str, input: &Value) -> Option<String> {
    const EDITS: &[&str] = &[
        "Write",
        "Edit",
        "MultiEdit",
        "NotebookEdit",
        "write_file",
        "edit",
    ];
    let path = json::text(input, "/file_path").or_else(|| json::text(input, "/notebook_path"));
    path.filter(|_| EDITS.contains(&tool)).map(str::to_owned)
}

/// The text of a tool result: a string, or the text among its blocks.
fn content_text(content: Option<&Value>) -> String {
    match content {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(blocks)) => {
            let texts = blocks.iter().filter_map(|block| json::text(block, "/text"));
            texts.collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}
