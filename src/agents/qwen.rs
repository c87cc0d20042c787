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
use super::output;
use super::spec::{CliSpec, LoginFiles, Package};
use super::stream_json::{Dialect, Reader};
use super::turn::{Invocation, TurnRequest};
use crate::domain::agent::UsageBasis;
use crate::domain::api_error::classify_final;
use serde_json::Value;
use std::ffi::OsString;

/// The agent `qwen`.
pub static SPEC: CliSpec = CliSpec {
    name: "qwen",
    about: "`qwen --output-format stream-json`, every tool allowed, sessions resumed",
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
    reader: || Box::new(Reader::of(&DIALECT)),
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
    if request.base_env_has("OPENAI_API_KEY") {
        args.extend(request.unless("--auth-type", "--auth-type=openai"));
    }
    args.extend(shared_arguments(request));
    let defaults = request.scratch.join("qwen-defaults.json");
    Invocation {
        env: request.unset([("QWEN_CODE_SYSTEM_DEFAULTS_PATH", defaults.as_os_str())]),
        files: vec![(defaults, settings(request))],
        ..Invocation::of(SPEC.name, args)
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

static DIALECT: Dialect = Dialect {
    usage_basis: UsageBasis::Session,
    usage: |event| {
        let counts = "/usage/input_tokens /usage/cache_read_input_tokens /usage/output_tokens";
        output::usage(event, counts)
    },
    exit_code: |_, output, _, _| output::exit_code_in_words(output),
    is_new: |output, _| output.contains("created"),
    outcome,
    remedy: |error| SPEC.with_remedy(error),
};

/// Stores the outcome of the turn, and returns the message of a failure.
fn outcome(reader: &mut Reader, event: &Value) -> Option<String> {
    let said = json::text(event, "/result").or_else(|| json::text(event, "/error/message"));
    let refused = said.and_then(output::api_error_in);
    if refused.is_none() && !json::flag(event, "/is_error") {
        return reader.said(said);
    }
    let message = refused.or(said).unwrap_or_default();
    let status = message.split(' ').next().and_then(|word| word.parse().ok());
    let error = classify_final(status, message);
    reader.report.api_error = Some(SPEC.with_remedy(error));
    Some(message.to_owned())
}

#[cfg(test)]
mod tests;
