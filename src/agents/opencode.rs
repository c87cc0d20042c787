//! `opencode run --format json`.
//!
//! Known about version 1.18: there is neither a first nor a last event, and the session's id is on every
//! line; tokens and cost are those of a step and must be added up; an API error is a separate event, and the
//! exit code is 1; after a refused tool call it exits with 0 and no further message.

use super::json;
use super::mcp::Form;
use super::output;
use super::spec::{CliSpec, LoginFiles, Package};
use super::turn::{ExitFacts, Invocation, TurnReader, TurnRequest};
use crate::domain::agent::{AgentEvent, AgentReport, Usage};
use crate::domain::api_error::classify_final;
use serde_json::Value;
use std::ffi::{OsStr, OsString};

const CONFIG: &str = "OPENCODE_CONFIG_CONTENT";

/// The agent `opencode`.
pub static SPEC: CliSpec = CliSpec {
    name: "opencode",
    about: "`opencode run --format json`, every tool allowed, sessions resumed",
    package: Package::of("opencode", "opencode-ai"),
    tested: "1.18.33",
    variables: VARIABLES,
    keys: &["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY"],
    login: LoginFiles {
        variable: None,
        directory: ".local/share/opencode",
        login: "auth.json",
        maybe: &[],
        maybe_in_home: ".config/opencode/opencode.json .config/opencode/opencode.jsonc",
        keychain: false,
    },
    own_directories: ".config/opencode .cache/opencode .local/state/opencode",
    login_options: "",
    configuration: &["**/.opencode/**", "**/opencode.json", "**/opencode.jsonc"],
    gateway: None,
    invocation,
    reader: || Box::<Reader>::default(),
};

/// opencode supports many providers. Its configuration may contain a key.
const VARIABLES: &str = "
    key ANTHROPIC_API_KEY OPENAI_API_KEY OPENROUTER_API_KEY GEMINI_API_KEY OPENCODE_API_KEY
    key OPENCODE_CONFIG_CONTENT
    setting OPENCODE_CONFIG OPENCODE_CONFIG_DIR OPENCODE_DISABLE_MODELS_FETCH NODE_EXTRA_CA_CERTS";

/// What a reviewer may do: read, and inspect the change.
const READ_ONLY: &str = r#"{"edit":"deny","bash":{"*":"deny","git diff*":"allow","git log*":"allow","git show*":"allow","git status*":"allow"}}"#;

/// The command line of a turn.
fn invocation(request: &TurnRequest<'_>) -> Invocation {
    let mut args: Vec<OsString> = ["run", "--format", "json"].map(OsString::from).into();
    args.extend(request.model_argument("-m --model"));
    args.extend(request.resume_argument("--session"));
    args.extend(request.extra_args.iter().map(OsString::from));
    let reads = ("OPENCODE_PERMISSION", OsStr::new(READ_ONLY));
    let no_update = ("OPENCODE_DISABLE_AUTOUPDATE", OsStr::new("1"));
    let reads = (!request.may_write).then_some(reads);
    let mut env = request.unset([no_update].into_iter().chain(reads));
    env.extend(servers(request));
    Invocation {
        env,
        ..Invocation::of(SPEC.name, args)
    }
}

/// The user's configuration with the MCP servers.
fn servers(request: &TurnRequest<'_>) -> Option<(OsString, OsString)> {
    if request.mcp.is_empty() {
        return None;
    }
    let own = request.base_env_value(CONFIG).and_then(OsStr::to_str);
    let mut config: Value = serde_json::from_str(own.unwrap_or("{}")).ok()?;
    let mcp = config.as_object_mut()?.entry("mcp");
    let mcp = mcp.or_insert_with(|| Value::Object(serde_json::Map::new()));
    let Value::Object(servers) = Form::Opencode.servers(request.mcp) else {
        return None;
    };
    mcp.as_object_mut()?.extend(servers);
    Some((CONFIG.into(), config.to_string().into()))
}

/// Reads the stdout of one turn.
#[derive(Debug, Default)]
pub struct Reader {
    report: AgentReport,
    spoke: bool,
}

impl TurnReader for Reader {
    fn event(&mut self, event: &Value) -> Option<Vec<AgentEvent>> {
        let told = match json::text(event, "/type")? {
            "step_start" => Vec::new(),
            "text" => {
                let text = json::string(event, "/part/text");
                self.report.final_message = Some(text.clone());
                vec![AgentEvent::Message { text }]
            }
            "reasoning" => vec![AgentEvent::Reasoning {
                text: json::string(event, "/part/text"),
            }],
            "tool_use" => self.tool(event.get("part")?),
            "step_finish" => vec![self.step(event)],
            "error" => vec![self.error(event)],
            _ => return None,
        };
        self.spoke = true;
        let id = json::text(event, "/sessionID");
        let started = output::session(&mut self.report.session_id, id);
        Some(started.into_iter().chain(told).collect())
    }

    fn finish(mut self: Box<Self>, exit: ExitFacts<'_>) -> AgentReport {
        if !self.spoke {
            self.report.api_error = SPEC.refused_to_start(&exit);
        }
        self.report
    }
}

impl Reader {
    /// The events of a tool call, which arrives together with its result.
    fn tool(&mut self, part: &Value) -> Vec<AgentEvent> {
        // A message before a tool call is not the final message.
        self.report.final_message = None;
        let name = json::string(part, "/tool");
        let id = json::text(part, "/callID");
        let input = part.pointer("/state/input").unwrap_or(&Value::Null);
        let exit_code = json::exit_code(part, "/state/metadata/exit");
        let finished = json::text(part, "/state/status") == Some("completed");
        let ok = finished && exit_code.is_none_or(|code| code == 0);
        let said = json::text(part, "/state/output").or_else(|| json::text(part, "/state/error"));
        let summary = output::summary_of(input);
        let mut events = vec![
            output::tool_call(&mut self.report, id, &name, &summary),
            output::tool_result(id, ok, exit_code, said.unwrap_or_default()),
        ];
        let edits = matches!(name.as_str(), "write" | "edit" | "patch") && ok;
        if let Some(path) = json::text(input, "/filePath").filter(|_| edits) {
            let is_new = name == "write"
                && part.pointer("/state/metadata/exists") == Some(&Value::Bool(false));
            let kind = if is_new { "add" } else { "update" };
            events.push(output::file_change(path.to_owned(), kind));
        }
        if name == "todowrite" && ok {
            let todos = json::list(input, "/todos").iter();
            let items = todos.map(output::todo_item).collect();
            events.push(output::todo(&mut self.report, items));
        }
        events
    }

    fn step(&mut self, event: &Value) -> AgentEvent {
        let part = |name: &str| json::count(event, &format!("/part/tokens/{name}"));
        let cached = part("cache/read");
        let sent = output::sum([part("input"), cached, part("cache/write")]);
        let received = output::sum([part("output"), part("reasoning")]);
        let cost = event.pointer("/part/cost").and_then(Value::as_f64);
        let usage = &mut self.report.usage;
        let costs = [usage.cost_usd, cost].into_iter().flatten();
        *usage = Usage {
            tokens_in: output::sum([usage.tokens_in, sent]),
            tokens_cached: output::sum([usage.tokens_cached, cached]),
            tokens_out: output::sum([usage.tokens_out, received]),
            cost_usd: costs.reduce(|sum, more| sum + more),
        };
        AgentEvent::Usage(*usage)
    }

    fn error(&mut self, event: &Value) -> AgentEvent {
        let status = json::status(event, "/error/data/statusCode");
        let message = json::text(event, "/error/data/message")
            .or_else(|| json::text(event, "/error/message"))
            .or_else(|| json::text(event, "/error/name"))
            .unwrap_or("the turn failed without a message");
        let error = classify_final(status, message);
        self.report.api_error = Some(SPEC.with_remedy(error));
        output::error(message, true)
    }
}

#[cfg(test)]
mod tests;
