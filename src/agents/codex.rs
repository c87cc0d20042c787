//! `codex exec --json`.
//!
//! Known about version 0.169: the exit code is 1 for every failure; an `error` event is final only if no turn
//! ends after it; usage on `resume` covers the whole thread; a server error contains its status only as
//! prose; an unknown model adds an error item to a successful turn.

use super::gateway::{BehindGateway, OPENAI};
use super::output::{self, OpenCalls, is_session_id};
use super::spec::{CliSpec, LoginFiles, Package};
use super::turn::{ExitFacts, Invocation, OwnSandbox, TurnReader, TurnRequest};
use super::{json, text};
use crate::domain::agent::{AgentEvent, AgentReport, TodoItem, TodoStatus, UsageBasis};
use crate::domain::api_error::{classify, classify_final};
use crate::domain::mcp::{Header, McpKind, McpServer};
use serde_json::Value;
use std::ffi::OsString;

/// The agent `codex`.
pub static SPEC: CliSpec = CliSpec {
    name: "codex",
    about: "`codex exec --json`, its sandbox on below level 2 of Sprag's, sessions resumed",
    package: Package::of("codex", "@openai/codex"),
    tested: "0.169.0",
    variables: VARIABLES,
    keys: &["CODEX_API_KEY", "OPENAI_API_KEY"],
    login: LoginFiles {
        variable: Some("CODEX_HOME"),
        directory: ".codex",
        login: "auth.json",
        maybe: &["config.toml"],
        maybe_in_home: "",
        keychain: false,
    },
    own_directories: "",
    login_options: "-c --config -p --profile --oss --local-provider",
    configuration: &["**/.codex/**"],
    gateway: Some(BehindGateway {
        provider: &OPENAI,
        elsewhere: "model_provider openai_base_url chatgpt_base_url --profile --oss --local-provider",
        args: gateway_args,
    }),
    invocation,
    reader: || Box::<Reader>::default(),
};

const VARIABLES: &str = "
    key CODEX_API_KEY OPENAI_API_KEY
    setting CODEX_HOME CODEX_SQLITE_HOME CODEX_CA_CERTIFICATE OPENAI_BASE_URL OPENAI_ORGANIZATION OPENAI_PROJECT";

/// Configuration for unattended use: no analytics (without network they delay the exit by five seconds), no
/// update check, no questions. The keys that pay for the model are kept from the commands that the model
/// runs.
const CONFIG: &[&str] = &[
    "analytics.enabled=false",
    "check_for_update_on_startup=false",
    "approval_policy=\"never\"",
    "shell_environment_policy.exclude=[\"CODEX_API_KEY\",\"OPENAI_API_KEY\"]",
];

const SANDBOX_REMEDY: &str = "codex cannot confine its commands on this host: allow unprivileged \
                              user namespaces, or confine codex as a whole and give it \
                              --sandbox=danger-full-access";

/// The command line of a turn. Everything except the session and the prompt's `-` precedes the user's
/// arguments.
fn invocation(request: &TurnRequest<'_>) -> Invocation {
    let final_message_file = request.scratch.join("final-message.md");
    let first = "exec --json --color never --skip-git-repo-check --cd";
    let mut args: Vec<OsString> = first.split(' ').map(OsString::from).collect();
    args.push(request.directory.into());
    args.push("--output-last-message".into());
    args.push(final_message_file.clone().into());
    let config = CONFIG.iter().map(|setting| (*setting).to_owned());
    args.extend(overrides(config.chain(servers(request.mcp))).map(OsString::from));
    args.extend(sandbox(request).iter().map(OsString::from));
    args.extend(request.model_argument("-m --model"));
    // The API refuses other schemas.
    let schema = request.output_schema.filter(|schema| schema.is_strict());
    if schema.is_some() && !request.overrides("--output-schema") {
        args.push("--output-schema".into());
        args.push(request.output_schema_file().into());
    }
    args.extend(request.extra_args.iter().map(OsString::from));
    if let Some(session) = request.resumable() {
        args.extend(["resume".into(), session.into()]);
    }
    args.push("-".into());
    Invocation {
        env: env(request),
        final_message_file: Some(final_message_file),
        ..Invocation::of(SPEC.name, args)
    }
}

/// `workspace-write` gives the agent's commands no network, which is codex's own default. Users can add
/// `-c sandbox_workspace_write.network_access=true`.
fn sandbox(request: &TurnRequest<'_>) -> &'static [&'static str] {
    const OVERRIDES: &str = "-s --sandbox --full-auto --yolo --approve-for-me --dangerously-bypass-approvals-and-sandbox";
    if request.overrides(OVERRIDES) {
        return &[];
    }
    match (request.own_sandbox, request.may_write) {
        (OwnSandbox::Off, _) => &["--dangerously-bypass-approvals-and-sandbox"],
        (OwnSandbox::On, true) => &["--sandbox", "workspace-write"],
        (OwnSandbox::On, false) => &["--sandbox", "read-only"],
    }
}

/// The MCP servers as overrides of the configuration. Without a person to ask, their tools are approved.
fn servers(servers: &[McpServer]) -> Vec<String> {
    let text = |value: &str| Value::from(value).to_string();
    let mut settings = Vec::new();
    for server in servers {
        let mut set = |key: &str, value: String| {
            settings.push(format!("mcp_servers.{}.{key}={value}", server.name));
        };
        match &server.kind {
            McpKind::Command { command, args, env } => {
                set("command", text(command));
                set("args", Value::from(args.clone()).to_string());
                set("env_vars", Value::from(env.clone()).to_string());
            }
            McpKind::Url { url, headers } => {
                set("url", text(url));
                let pair =
                    |header: &Header| format!("{}={}", text(&header.name), text(&header.variable));
                let pairs: Vec<String> = headers.iter().map(pair).collect();
                set("env_http_headers", format!("{{{}}}", pairs.join(",")));
            }
        }
        set("default_tools_approval_mode", text("approve"));
    }
    settings
}

/// Settings of the configuration as arguments.
fn overrides(settings: impl IntoIterator<Item = String>) -> impl Iterator<Item = String> {
    let settings = settings.into_iter();
    settings.flat_map(|setting| ["-c".to_owned(), setting])
}

/// `codex exec` reads its key only from `CODEX_API_KEY`, while users set `OPENAI_API_KEY`.
fn env(request: &TurnRequest<'_>) -> Vec<(OsString, OsString)> {
    match request.base_env_value("OPENAI_API_KEY") {
        Some(key) if !request.base_env_has("CODEX_API_KEY") => {
            vec![("CODEX_API_KEY".into(), key.into())]
        }
        _ => Vec::new(),
    }
}

/// Defines a separate provider: with the built-in one, codex first tries a kind of connection that the
/// gateway does not have, seven times.
fn gateway_args(base: &str) -> Vec<String> {
    let settings = [
        "model_provider=\"sprag\"".to_owned(),
        "model_providers.sprag.name=\"sprag\"".to_owned(),
        format!("model_providers.sprag.base_url=\"{base}\""),
        "model_providers.sprag.env_key=\"CODEX_API_KEY\"".to_owned(),
        "model_providers.sprag.wire_api=\"responses\"".to_owned(),
    ];
    overrides(settings).collect()
}

/// Reads the stdout of one turn.
#[derive(Debug, Default)]
pub struct Reader {
    report: AgentReport,
    spoke: bool,
    ended: bool,
    last_error: Option<String>,
    open_items: OpenCalls<()>,
    commands: u32,
    unconfined: u32,
    sandbox_error: Option<String>,
}

impl TurnReader for Reader {
    fn event(&mut self, event: &Value) -> Option<Vec<AgentEvent>> {
        let events = match json::text(event, "/type")? {
            "thread.started" => {
                let id = json::text(event, "/thread_id").filter(|id| is_session_id(id))?;
                let started = output::session(&mut self.report.session_id, Some(id));
                started.into_iter().collect()
            }
            "turn.started" | "item.plan.delta" => Vec::new(),
            stage @ ("item.started" | "item.updated" | "item.completed") => {
                self.item(stage, event.get("item")?)?
            }
            "turn.completed" => {
                self.ended = true;
                self.report.api_error = None;
                let counts = "/usage/input_tokens /usage/cached_input_tokens /usage/output_tokens";
                self.report.usage = output::usage(event, counts);
                vec![AgentEvent::Usage(self.report.usage)]
            }
            "turn.failed" => {
                let message = json::text(event, "/error/message")?;
                self.ended = true;
                self.report.api_error = Some(SPEC.with_remedy(classify_final(None, message)));
                vec![output::error(message, true)]
            }
            "error" => {
                let message = json::string(event, "/message");
                self.last_error = Some(message.clone());
                vec![output::error(&message, false)]
            }
            _ => return None,
        };
        self.spoke = true;
        Some(events)
    }

    fn finish(mut self: Box<Self>, exit: ExitFacts<'_>) -> AgentReport {
        self.report.usage_basis = UsageBasis::Session;
        if let Some(message) = exit.final_message() {
            self.report.final_message = Some(message);
            self.report.final_message_cut = exit.final_file_cut;
        }
        if !self.ended {
            let reported = self.last_error.and_then(|message| classify(None, &message));
            let refused = || exit.refused_to_start().filter(|_| !self.spoke);
            let error = reported.or_else(refused);
            self.report.api_error = error.map(|error| SPEC.with_remedy(error));
        }
        if let Some(message) = self.sandbox_error
            && self.unconfined == self.commands
            && self.report.api_error.is_none()
        {
            // The sandbox kept every command from running.
            let error = output::unavailable(format!("{message} ({SANDBOX_REMEDY})"));
            self.report.api_error = Some(error);
        }
        self.report
    }
}

impl Reader {
    fn item(&mut self, stage: &str, item: &Value) -> Option<Vec<AgentEvent>> {
        let is_over = stage == "item.completed";
        let kind = json::text(item, "/type")?;
        if is_over && kind == "error" {
            return Some(vec![output::error(&json::string(item, "/message"), false)]);
        }
        let is_update = stage == "item.updated";
        if !is_update {
            self.last_error = None;
        }
        Some(match kind {
            "todo_list" => vec![self.todo(item)],
            _ if is_update => Vec::new(),
            "agent_message" | "plan" if is_over => {
                let text = json::string(item, "/text");
                self.report.final_message = Some(text.clone());
                vec![AgentEvent::Message { text }]
            }
            "reasoning" if is_over => vec![AgentEvent::Reasoning {
                text: json::string(item, "/text"),
            }],
            _ => {
                let mut events: Vec<_> = self.call(item)?.into_iter().collect();
                if is_over {
                    self.open_items.close(json::text(item, "/id"));
                    self.watch_sandbox(item);
                    events.push(result(item));
                    events.extend(file_changes(item));
                }
                events
            }
        })
    }

    /// The call event of an item: `None` if it is not a tool call, `Some(None)` if the call was already
    /// reported.
    fn call(&mut self, item: &Value) -> Option<Option<AgentEvent>> {
        let (name, summary) = tool(item)?;
        let id = json::text(item, "/id");
        if id.is_some_and(|id| self.open_items.has(id)) {
            return Some(None);
        }
        self.open_items.open(id, ());
        let call = output::tool_call(&mut self.report, id, &name, &summary);
        Some(Some(call))
    }

    /// Detects a broken sandbox: if codex's sandbox does not work, every command fails with the sandbox's own
    /// error message and the turn succeeds, as if the agent had done nothing.
    fn watch_sandbox(&mut self, item: &Value) {
        if json::text(item, "/type") != Some("command_execution") {
            return;
        }
        self.commands = self.commands.saturating_add(1);
        let output = json::text(item, "/aggregated_output")
            .unwrap_or_default()
            .trim();
        let of_the_sandbox = output.starts_with("bwrap: ") && !output.contains('\n');
        let of_the_command = json::text(item, "/command").is_some_and(|c| c.contains("bwrap"));
        if of_the_sandbox && !of_the_command && !succeeded(item) {
            self.unconfined = self.unconfined.saturating_add(1);
            self.sandbox_error = Some(text::one_line(output));
        }
    }

    fn todo(&mut self, item: &Value) -> AgentEvent {
        let todo = |item: &Value| TodoItem {
            text: json::string(item, "/text"),
            status: if json::flag(item, "/completed") {
                TodoStatus::Completed
            } else {
                TodoStatus::Pending
            },
        };
        let items = json::list(item, "/items").iter().map(todo).collect();
        output::todo(&mut self.report, items)
    }
}

/// A tool's name and arguments, for an item that is a tool call.
fn tool(item: &Value) -> Option<(String, String)> {
    let named = |name: &str, summary: String| Some((name.to_owned(), summary));
    match json::text(item, "/type")? {
        "command_execution" => named("shell", script_of(&json::string(item, "/command"))),
        "file_change" => named("apply_patch", paths_of(item).join(", ")),
        "web_search" => named("web_search", json::string(item, "/query")),
        "mcp_tool_call" => {
            let (server, tool) = (json::string(item, "/server"), json::string(item, "/tool"));
            let arguments = item.get("arguments").map(Value::to_string);
            named(&format!("{server}.{tool}"), arguments.unwrap_or_default())
        }
        "collab_tool_call" => named(&json::string(item, "/tool"), json::string(item, "/prompt")),
        _ => None,
    }
}

/// The script in codex's wrapper `/bin/bash -lc SCRIPT`, otherwise the unmodified command.
fn script_of(command: &str) -> String {
    match shlex::split(command).as_deref() {
        Some([_, flag, script]) if flag == "-lc" || flag == "-c" => script.clone(),
        _ => command.to_owned(),
    }
}

fn paths_of(item: &Value) -> Vec<&str> {
    json::list(item, "/changes")
        .iter()
        .filter_map(|change| json::text(change, "/path"))
        .collect()
}

fn succeeded(item: &Value) -> bool {
    let unfailed = !matches!(json::text(item, "/status"), Some("failed" | "declined"));
    unfailed && json::exit_code(item, "/exit_code").is_none_or(|code| code == 0)
}

fn result(item: &Value) -> AgentEvent {
    let said = json::text(item, "/aggregated_output")
        .or_else(|| json::text(item, "/error/message"))
        .or_else(|| json::text(item, "/result/content/0/text"))
        .unwrap_or_default();
    let exit_code = json::exit_code(item, "/exit_code");
    output::tool_result(json::text(item, "/id"), succeeded(item), exit_code, said)
}

fn file_changes(item: &Value) -> Vec<AgentEvent> {
    if json::text(item, "/type") != Some("file_change") || !succeeded(item) {
        return Vec::new();
    }
    let change = |change: &Value| {
        let kind = json::string(change, "/kind");
        output::file_change(json::string(change, "/path"), &kind)
    };
    json::list(item, "/changes").iter().map(change).collect()
}

#[cfg(test)]
mod tests;
