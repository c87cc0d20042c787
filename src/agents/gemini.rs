//! `gemini --output-format stream-json`.
//!
//! Known about version 0.61: the exit code is the HTTP status modulo 256 if the API refused (145 for 401, 173
//! for 429), 41 if no login method is chosen, even with a key if the URL of the API is set, 55 in an
//! untrusted directory; a `SIGTERM` makes it exit with 0 and without a `result`; a system defaults file below
//! a directory that others may write to is skipped with a warning; a failed command is a tool result with the
//! status `success` and its exit code as text.

use super::gateway::{BehindGateway, GEMINI};
use super::json;
use super::mcp::Form;
use super::output::{self, Chunks, OpenCalls};
use super::spec::{CliSpec, LoginFiles, Package};
use super::turn::{ExitFacts, Invocation, TurnReader, TurnRequest};
use crate::domain::agent::{AgentEvent, AgentReport, ApiError};
use crate::domain::api_error::classify_final;
use serde_json::Value;
use std::ffi::{OsStr, OsString};

const VERTEX: &str = "GOOGLE_GENAI_USE_VERTEXAI";

/// The agent `gemini`.
pub static SPEC: CliSpec = CliSpec {
    name: "gemini",
    about: "`gemini --output-format stream-json`, every tool allowed, sessions resumed",
    package: Package::of("gemini-cli", "@google/gemini-cli"),
    tested: "0.61.0",
    variables: VARIABLES,
    keys: &["GEMINI_API_KEY"],
    login: LoginFiles {
        variable: None,
        directory: ".gemini",
        login: "oauth_creds.json",
        maybe: &["settings.json"],
        maybe_in_home: "",
        keychain: false,
    },
    own_directories: "",
    login_options: "",
    configuration: &["**/GEMINI.md", "**/.gemini/**"],
    gateway: Some(BehindGateway {
        provider: &GEMINI,
        // Other login methods that its own settings can choose.
        elsewhere: "oauth-personal vertex-ai cloud-shell compute-default-credentials",
        args: |_| Vec::new(),
    }),
    invocation,
    reader: || Box::<Reader>::default(),
};

const VARIABLES: &str = "
    key GEMINI_API_KEY
    key@GOOGLE_GENAI_USE_VERTEXAI GOOGLE_API_KEY
    setting GOOGLE_GEMINI_BASE_URL GEMINI_MODEL NODE_EXTRA_CA_CERTS
    cloud GOOGLE_GENAI_USE_VERTEXAI
    setting@GOOGLE_GENAI_USE_VERTEXAI GOOGLE_CLOUD_PROJECT GOOGLE_CLOUD_LOCATION GOOGLE_APPLICATION_CREDENTIALS";

/// The command line of a turn. The work tree is trusted, because the run works in it; which of its files
/// configure the agent is decided before.
fn invocation(request: &TurnRequest<'_>) -> Invocation {
    let mut args: Vec<OsString> = ["--output-format", "stream-json"]
        .map(OsString::from)
        .into();
    args.extend(shared_arguments(request));
    let defaults = request.scratch.join("gemini-defaults.json");
    Invocation {
        env: request.unset([
            ("GEMINI_CLI_TRUST_WORKSPACE", OsStr::new("true")),
            ("GEMINI_CLI_SYSTEM_DEFAULTS_PATH", defaults.as_os_str()),
        ]),
        files: vec![(defaults, settings(request).to_string())],
        ..Invocation::of(SPEC.name, args)
    }
}

/// The arguments that qwen, a fork of gemini, accepts too: the approval mode, the model, the session, and the
/// user's arguments.
pub(super) fn shared_arguments(request: &TurnRequest<'_>) -> Vec<OsString> {
    // Without a person to ask, the default mode offers no tools that change something.
    let mode = if request.may_write { "yolo" } else { "default" };
    let mode = format!("--approval-mode={mode}");
    let mut args = Vec::from_iter(request.unless("--approval-mode -y --yolo", mode));
    args.extend(request.model_argument("-m --model"));
    args.extend(request.resume_argument("--resume"));
    args.extend(request.extra_args.iter().map(OsString::from));
    args
}

/// Settings for unattended use, which apply unless other settings of gemini override them. The executor waits
/// by itself and knows how long; gemini's own ten attempts would delay a turn by minutes.
fn settings(request: &TurnRequest<'_>) -> Value {
    let mut settings = serde_json::json!({
        "general": { "enableAutoUpdate": false, "maxAttempts": 3 },
        "privacy": { "usageStatisticsEnabled": false },
    });
    if request.base_env_has("GEMINI_API_KEY") && !request.base_env_has(VERTEX) {
        settings["security"]["auth"]["selectedType"] = "gemini-api-key".into();
    }
    if !request.mcp.is_empty() {
        settings["mcpServers"] = Form::Gemini.servers(request.mcp);
    }
    settings
}

/// Reads the stdout of one turn.
#[derive(Debug, Default)]
pub struct Reader {
    report: AgentReport,
    spoke: bool,
    ended: bool,
    said: Chunks,
    open_calls: OpenCalls<Option<String>>,
}

impl TurnReader for Reader {
    fn event(&mut self, event: &Value) -> Option<Vec<AgentEvent>> {
        let kind = json::text(event, "/type")?;
        let mut events = Vec::new();
        if kind != "message" {
            events.extend(self.flush());
        }
        events.extend(match kind {
            "init" => {
                let id = json::text(event, "/session_id");
                let started = output::session(&mut self.report.session_id, id);
                started.into_iter().collect()
            }
            "message" => self.message(event),
            "tool_use" => vec![self.call(event)],
            "tool_result" => self.tool_result(event),
            "error" => vec![output::error(&json::string(event, "/message"), false)],
            "result" => self.result(event),
            _ => return None,
        });
        self.spoke = true;
        Some(events)
    }

    fn finish(mut self: Box<Self>, exit: ExitFacts<'_>) -> AgentReport {
        self.flush();
        let told = self.report.final_message.is_some();
        self.report.final_message_cut = told && self.said.is_cut();
        if let (Some(error), Some(status)) = (&self.report.api_error, status_of(exit.code))
            && error.status.is_none()
        {
            let error = classify_final(Some(status), &error.message);
            self.report.api_error = Some(SPEC.with_remedy(error));
        }
        if !self.ended && !self.spoke {
            self.report.api_error = SPEC.refused_to_start(&exit);
        }
        self.report
    }
}

impl Reader {
    /// A chunk of a model's message.
    fn message(&mut self, event: &Value) -> Vec<AgentEvent> {
        if json::text(event, "/role") != Some("assistant") {
            return Vec::new();
        }
        let piece = json::text(event, "/content").unwrap_or_default();
        let part = self.said.push(piece);
        part.map(|text| self.said(text)).into_iter().collect()
    }

    /// The event of the message whose chunks are now complete.
    fn flush(&mut self) -> Option<AgentEvent> {
        let text = self.said.take()?;
        Some(self.said(text))
    }

    fn said(&mut self, text: String) -> AgentEvent {
        self.report.final_message = Some(text.trim_end().to_owned());
        AgentEvent::Message { text }
    }

    fn call(&mut self, event: &Value) -> AgentEvent {
        // A message before a tool call is not the final message.
        self.report.final_message = None;
        let name = json::string(event, "/tool_name");
        let input = event.get("parameters").unwrap_or(&Value::Null);
        let id = json::text(event, "/tool_id");
        let edits = matches!(name.as_str(), "write_file" | "replace");
        let path = json::text(input, "/file_path").filter(|_| edits);
        self.open_calls.open(id, path.map(str::to_owned));
        output::tool_call(&mut self.report, id, &name, &output::summary_of(input))
    }

    fn tool_result(&mut self, event: &Value) -> Vec<AgentEvent> {
        let id = json::text(event, "/tool_id");
        let path = self.open_calls.close(id).flatten();
        let said = json::text(event, "/output")
            .or_else(|| json::text(event, "/error/message"))
            .unwrap_or_default();
        let exit_code = output::exit_code_in_words(said);
        let succeeded = json::text(event, "/status") == Some("success");
        let ok = succeeded && exit_code.is_none_or(|code| code == 0);
        let result = output::tool_result(id, ok, exit_code, said);
        let change = path.filter(|_| ok);
        let change = change.map(|path| output::file_change(path, "update"));
        [result].into_iter().chain(change).collect()
    }

    fn result(&mut self, event: &Value) -> Vec<AgentEvent> {
        self.ended = true;
        let counts = "/stats/input_tokens /stats/cached /stats/output_tokens";
        self.report.usage = output::usage(event, counts);
        let mut events = vec![AgentEvent::Usage(self.report.usage)];
        if json::text(event, "/status") == Some("error") {
            let message = json::string(event, "/error/message");
            match json::text(event, "/error/type") {
                Some(limit @ "FatalTurnLimitedError") => {
                    self.report.stopped_by = Some(limit.to_owned());
                }
                _ => self.report.api_error = Some(api_error(&message)),
            }
            events.push(output::error(&message, true));
        }
        events
    }
}

/// The API status that an exit code was computed from.
fn status_of(code: Option<i32>) -> Option<u16> {
    let code = code?;
    (400..=511).find(|status| i32::from(status % 256) == code)
}

/// Parses `[API Error: {"error":{"code":401,"message":"…"}}]`, where the status is in the message.
fn api_error(message: &str) -> ApiError {
    let inner = output::api_error_in(message);
    let told = inner.and_then(|inner| json::object(inner.as_bytes()));
    let (status, words) = match &told {
        Some(told) => (
            json::status(told, "/error/code"),
            json::text(told, "/error/message"),
        ),
        None => (None, inner),
    };
    let error = classify_final(status, words.unwrap_or(message));
    SPEC.with_remedy(error)
}

#[cfg(test)]
mod tests;
