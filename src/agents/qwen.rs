//! `qwen --output-format stream-json`.
//!
//! Known about version 0.15: an API error ends with exit code 0, `is_error: false` and a final message `[API
//! Error: 401 …]`; a failed command is a tool result without `is_error` and its exit code as text; usage with
//! `--resume` covers the whole session, and no cost is reported; after a turn it makes a model write memories
//! of it, unless this is disabled.

use super::gateway::{BehindGateway, OPENAI};
use super::gemini::shared_arguments;
use super::json;
use super::mcp::Form;
use super::output::{self, OpenCalls};
use super::spec::{CliSpec, LoginFiles, Package};
use super::turn::{ExitFacts, Invocation, Stdin, TurnReader, TurnRequest};
use crate::domain::agent::{AgentEvent, AgentReport, TodoItem, UsageBasis};
use crate::domain::api_error::classify_final;
use serde_json::Value;
use std::ffi::OsString;

/// The agent `qwen`.
pub static SPEC: CliSpec = CliSpec {
    name: "qwen",
    about: "`qwen --output-format stream-json`, every tool allowed, sessions resumed",
    program: "qwen",
    package: Package::of("qwen-code", "@qwen-code/qwen-code"),
    tested: "0.15.10",
    variables: VARIABLES,
    keys: &["OPENAI_API_KEY", "DASHSCOPE_API_KEY"],
    login: LoginFiles {
        variable: Some("QWEN_HOME"),
        directory: ".qwen",
        login: "oauth_creds.json",
        maybe: &["settings.json"],
        maybe_in_home: "",
        keychain: false,
    },
    own_directories: "",
    login_options: "--auth-type --openai-api-key",
    configuration: &["**/QWEN.md", "**/.qwen/**"],
    gateway: Some(BehindGateway {
        provider: &OPENAI,
        elsewhere: "--auth-type --openai-base-url modelProviders baseUrl",
        args: |_| Vec::new(),
    }),
    invocation,
    reader: || Box::<Reader>::default(),
};

const VARIABLES: &str = "
    key OPENAI_API_KEY DASHSCOPE_API_KEY
    setting OPENAI_BASE_URL OPENAI_MODEL QWEN_HOME NODE_EXTRA_CA_CERTS";

/// Settings for unattended use, which apply unless other settings of qwen override them. Memories take
/// separate requests, and nobody reads them.
const SETTINGS: &str = r#"{"general":{"enableAutoUpdate":false},"memory":{"enableManagedAutoMemory":false},"privacy":{"usageStatisticsEnabled":false}}"#;

/// The command line of a turn. With a key for OpenAI's protocol, it selects that protocol.
fn invocation(request: &TurnRequest<'_>) -> Invocation {
    let mut args: Vec<OsString> = ["--output-format", "stream-json"]
        .map(OsString::from)
        .into();
    if request.base_env_has("OPENAI_API_KEY") && !request.overrides("--auth-type") {
        args.push("--auth-type=openai".into());
    }
    args.extend(shared_arguments(request));
    let defaults = request.scratch.join("qwen-defaults.json");
    Invocation {
        program: SPEC.program.into(),
        args,
        env: request.unset([("QWEN_CODE_SYSTEM_DEFAULTS_PATH", defaults.as_os_str())]),
        stdin: Stdin::Prompt,
        final_message_file: None,
        files: vec![(defaults, settings(request))],
    }
}

fn settings(request: &TurnRequest<'_>) -> String {
    let servers = Form::Gemini.servers(request.mcp);
    match SETTINGS.strip_suffix('}') {
        Some(settings) if !request.mcp.is_empty() => {
            format!("{settings},\"mcpServers\":{servers}}}")
        }
        _ => SETTINGS.to_owned(),
    }
}

/// Reads the stdout of one turn.
#[derive(Debug, Default)]
pub struct Reader {
    report: AgentReport,
    spoke: bool,
    last_text: Option<String>,
    open_calls: OpenCalls<Call>,
}

/// A tool call whose result has not arrived.
#[derive(Debug)]
struct Call {
    path: Option<String>,
    todo: Option<Vec<TodoItem>>,
}

impl TurnReader for Reader {
    fn line(&mut self, line: &[u8]) -> Vec<AgentEvent> {
        output::events_of(line, |event| self.event(event))
    }

    fn finish(mut self: Box<Self>, exit: ExitFacts<'_>) -> AgentReport {
        self.report.usage_basis = UsageBasis::Session;
        if self.report.final_message.is_none() && self.report.api_error.is_none() {
            self.report.final_message = self.last_text;
        }
        if !self.spoke {
            self.report.api_error = SPEC.refused_to_start(&exit);
        }
        self.report
    }
}

impl Reader {
    /// The events for a line of the protocol, or `None` for any other line.
    fn event(&mut self, event: &Value) -> Option<Vec<AgentEvent>> {
        let blocks = || json::list(event, "/message/content").iter();
        let events = match json::text(event, "/type")? {
            "system" => self.session(event).into_iter().collect(),
            "assistant" => blocks().filter_map(|block| self.block(block)).collect(),
            "user" => blocks()
                .filter(|block| json::text(block, "/type") == Some("tool_result"))
                .flat_map(|block| self.tool_result(block))
                .collect(),
            "result" => self.result(event),
            "stream_event" => Vec::new(),
            _ => return None,
        };
        self.spoke = true;
        Some(events)
    }

    fn session(&mut self, event: &Value) -> Option<AgentEvent> {
        output::session(
            &mut self.report.session_id,
            json::text(event, "/session_id"),
        )
    }

    fn block(&mut self, block: &Value) -> Option<AgentEvent> {
        match json::text(block, "/type")? {
            "text" => {
                let text = json::string(block, "/text");
                self.last_text = Some(text.clone());
                Some(AgentEvent::Message { text })
            }
            "thinking" => Some(AgentEvent::Reasoning {
                text: json::string(block, "/thinking"),
            }),
            "tool_use" => Some(self.call(block)),
            _ => None,
        }
    }

    fn call(&mut self, block: &Value) -> AgentEvent {
        let name = json::string(block, "/name");
        let input = block.get("input").unwrap_or(&Value::Null);
        let id = json::text(block, "/id").map(str::to_owned);
        if let Some(id) = &id {
            let edits = matches!(name.as_str(), "write_file" | "edit");
            let path = json::text(input, "/file_path").filter(|_| edits);
            let todos = json::list(input, "/todos").iter();
            let call = Call {
                path: path.map(str::to_owned),
                todo: (name == "todo_write").then(|| todos.map(output::todo_item).collect()),
            };
            self.open_calls.open(id, call);
        }
        output::tool_call(&mut self.report, id, &name, &output::summary_of(input))
    }

    fn tool_result(&mut self, block: &Value) -> Vec<AgentEvent> {
        let id = json::text(block, "/tool_use_id");
        let call = self.open_calls.close(id);
        let said = json::text(block, "/content").unwrap_or_default();
        let exit_code = output::exit_code_in_words(said);
        let ok = !json::flag(block, "/is_error") && exit_code.is_none_or(|code| code == 0);
        let mut events = vec![output::tool_result(id, ok, exit_code, said)];
        let Some(call) = call.filter(|_| ok) else {
            return events;
        };
        if let Some(path) = call.path {
            let is_new = said.contains("created");
            let kind = if is_new { "add" } else { "update" };
            events.push(output::file_change(path, kind));
        }
        if let Some(items) = call.todo {
            self.report.todo.clone_from(&items);
            events.push(AgentEvent::Todo { items });
        }
        events
    }

    fn result(&mut self, event: &Value) -> Vec<AgentEvent> {
        self.session(event);
        let counts = "/usage/input_tokens /usage/cache_read_input_tokens /usage/output_tokens";
        self.report.usage = output::usage(event, counts);
        let denials = json::list(event, "/permission_denials").len();
        self.report.permission_denials = denials.try_into().unwrap_or(u32::MAX);
        let mut events = vec![AgentEvent::Usage(self.report.usage)];
        let said = json::text(event, "/result")
            .or_else(|| json::text(event, "/error/message"))
            .unwrap_or_default();
        let refused = output::api_error_in(said);
        if refused.is_none() && !json::flag(event, "/is_error") {
            self.report.final_message =
                Some(said.to_owned()).filter(|text| !text.trim().is_empty());
            return events;
        }
        let message = refused.unwrap_or(said);
        let status = message.split(' ').next().and_then(|word| word.parse().ok());
        let error = classify_final(status, message);
        self.report.api_error = Some(SPEC.with_remedy(error));
        events.push(output::error(message, true));
        events
    }
}

#[cfg(test)]
mod tests;
