//! `claude -p --output-format stream-json`.
//!
//! Known about version 2.1: an API error ends with `subtype: "success"` and `is_error: true`, so `is_error`
//! is read and never the subtype alone; a refused write exits with 0 and is reported only in
//! `permission_denials`; usage and cost are those of this process, also with `--resume`.

use super::gateway::{ANTHROPIC, BehindGateway};
use super::json;
use super::mcp::Form;
use super::output;
use super::spec::{CliSpec, LoginFiles, Package};
use super::stream_json::{Dialect, Reader};
use super::turn::{Invocation, OwnSandbox, RepositoryFiles, TurnRequest};
use crate::domain::agent::{ApiError, Usage, UsageBasis};
use crate::domain::api_error::{classify, classify_final};
use crate::domain::mcp::McpServer;
use serde_json::Value;
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// The agent `claude`.
pub static SPEC: CliSpec = CliSpec {
    name: "claude",
    about: "`claude -p --output-format stream-json`, edits and commands allowed, sessions resumed",
    package: Package::of("claude-code", "@anthropic-ai/claude-code"),
    tested: "2.1.197",
    variables: VARIABLES,
    keys: &["ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN"],
    login: LoginFiles {
        variable: Some("CLAUDE_CONFIG_DIR"),
        directory: ".claude",
        login: ".credentials.json",
        maybe: &["settings.json"],
        maybe_in_home: ".claude.json",
        keychain: true,
    },
    own_directories: "",
    login_options: "--settings",
    configuration: &["**/CLAUDE.md", "**/CLAUDE.local.md", "**/.claude/**"],
    gateway: Some(BehindGateway {
        provider: &ANTHROPIC,
        elsewhere: "ANTHROPIC_BASE_URL apiKeyHelper --settings",
        args: |_| Vec::new(),
    }),
    invocation,
    reader: || Box::new(Reader::of(&DIALECT)),
};

/// A cloud's variables are passed on only if that cloud is chosen.
const VARIABLES: &str = "
    key ANTHROPIC_API_KEY ANTHROPIC_AUTH_TOKEN CLAUDE_CODE_OAUTH_TOKEN
    secret ANTHROPIC_CUSTOM_HEADERS
    setting ANTHROPIC_BASE_URL ANTHROPIC_MODEL ANTHROPIC_SMALL_FAST_MODEL ANTHROPIC_DEFAULT_OPUS_MODEL
    setting ANTHROPIC_DEFAULT_SONNET_MODEL ANTHROPIC_DEFAULT_HAIKU_MODEL CLAUDE_CONFIG_DIR NODE_EXTRA_CA_CERTS
    cloud CLAUDE_CODE_USE_BEDROCK
    secret@CLAUDE_CODE_USE_BEDROCK AWS_BEARER_TOKEN_BEDROCK AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY
    secret@CLAUDE_CODE_USE_BEDROCK AWS_SESSION_TOKEN
    setting@CLAUDE_CODE_USE_BEDROCK AWS_REGION AWS_PROFILE ANTHROPIC_BEDROCK_BASE_URL
    cloud CLAUDE_CODE_USE_VERTEX
    setting@CLAUDE_CODE_USE_VERTEX ANTHROPIC_VERTEX_PROJECT_ID ANTHROPIC_VERTEX_BASE_URL CLOUD_ML_REGION
    setting@CLAUDE_CODE_USE_VERTEX GOOGLE_APPLICATION_CREDENTIALS
    cloud CLAUDE_CODE_USE_FOUNDRY
    secret@CLAUDE_CODE_USE_FOUNDRY ANTHROPIC_FOUNDRY_API_KEY
    setting@CLAUDE_CODE_USE_FOUNDRY ANTHROPIC_FOUNDRY_RESOURCE ANTHROPIC_FOUNDRY_BASE_URL";

const ROOT_REMEDY: &str = "run as another user, set IS_SANDBOX=1 in a disposable container, or leave \
                           --dangerously-skip-permissions out";

/// Settings for unattended use. The executor waits by itself and knows how long; claude's own ten retries
/// would delay a turn by three minutes.
const SETTINGS: &[(&str, &str)] = &[
    ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
    ("DISABLE_AUTOUPDATER", "1"),
    ("CLAUDE_CODE_MAX_RETRIES", "3"),
];

/// Tools that make no sense if nobody answers and the process ends with its turn, or that move the work to
/// another place.
const DISALLOWED: &str = "AskUserQuestion,EnterPlanMode,EnterWorktree,ScheduleWakeup,CronCreate";

/// What a reviewer may do: read, and inspect the change.
const READ_ONLY: &[&str] = &[
    "--permission-mode=default",
    "--allowedTools=Read,Grep,Glob,Bash(git diff:*),Bash(git log:*),Bash(git show:*),Bash(git status:*)",
];

/// Maximum size in bytes of a schema in an argument. The system allows 128 KiB per argument.
const MAX_SCHEMA: usize = 100_000;

/// The command line of a turn.
fn invocation(request: &TurnRequest<'_>) -> Invocation {
    let mut args: Vec<OsString> = ["-p", "--output-format", "stream-json", "--verbose"]
        .map(OsString::from)
        .into();
    let permissions = permissions(request);
    args.extend(permissions.iter().map(OsString::from));
    if permissions == EDITS {
        let tool = |server: &McpServer| format!("--allowedTools=mcp__{}", server.name).into();
        args.extend(request.mcp.iter().map(tool));
    }
    let disallowed = format!("--disallowedTools={DISALLOWED}");
    args.extend(request.unless("--disallowedTools --disallowed-tools --tools", disallowed));
    // git's status and similar information would precede the conversation, and change with each turn that
    // continues it.
    let stable = "--exclude-dynamic-system-prompt-sections";
    let prompts = format!("{stable} --system-prompt --system-prompt-file");
    args.extend(request.unless(&prompts, stable));
    args.extend(request.model_argument("--model"));
    let budget = request.max_cost_usd;
    if let Some(usd) = budget.filter(|usd| usd.is_finite() && *usd > 0.0) {
        args.extend(request.unless("--max-budget-usd", format!("--max-budget-usd={usd}")));
    }
    let schema = request.output_schema.map(|it| it.schema().to_string());
    if let Some(schema) = schema.filter(|text| text.len() <= MAX_SCHEMA) {
        args.extend(request.unless("--json-schema", format!("--json-schema={schema}")));
    }
    args.extend(repository_files(request));
    let servers = request.scratch.join("mcp.json");
    let mut files = Vec::new();
    if !request.mcp.is_empty() {
        args.push(mcp_config(&servers));
        let named = serde_json::json!({ "mcpServers": Form::Claude.servers(request.mcp) });
        files.push((servers, named.to_string()));
    }
    args.extend(request.resume_argument("--resume"));
    args.extend(request.extra_args.iter().map(OsString::from));
    Invocation {
        env: env(request, permissions == BYPASS),
        files,
        ..Invocation::of(SPEC.name, args)
    }
}

/// The settings and servers that apply from the repository's own configuration. Servers come only from the
/// named file: those of a session or of unreviewed settings do not start.
fn repository_files(request: &TurnRequest<'_>) -> Vec<OsString> {
    let sources = match request.repository_files {
        RepositoryFiles::AsTheyAre => return Vec::new(),
        RepositoryFiles::OfTheBase => "user,project",
        RepositoryFiles::Absent => "user",
    };
    let sources = format!("--setting-sources={sources}");
    let mut args = Vec::from_iter(request.unless("--setting-sources", sources));
    if !request.overrides("--strict-mcp-config --mcp-config") {
        args.push("--strict-mcp-config".into());
        let servers = request.work_tree.join(".mcp.json");
        if request.repository_files == RepositoryFiles::OfTheBase && servers.is_file() {
            args.push(mcp_config(&servers));
        }
    }
    args
}

/// The argument that names a file with servers.
fn mcp_config(file: &Path) -> OsString {
    let mut arg = OsString::from("--mcp-config=");
    arg.push(file);
    arg
}

const EDITS: &[&str] = &["--permission-mode=acceptEdits", "--allowedTools=Bash"];

const BYPASS: &[&str] = &["--permission-mode=bypassPermissions"];

/// In an outer sandbox, a role that writes may do everything. Otherwise it may edit only in the work tree. It
/// may always run commands, because an agent that cannot run the tests is useless; `claude` does not confine
/// them.
fn permissions(request: &TurnRequest<'_>) -> &'static [&'static str] {
    const OVERRIDES: &str =
        "--permission-mode --dangerously-skip-permissions --allowedTools --allowed-tools";
    match (request.own_sandbox, request.may_write) {
        _ if request.overrides(OVERRIDES) => &[],
        (_, false) => READ_ONLY,
        (OwnSandbox::Off, true) => BYPASS,
        (OwnSandbox::On, true) => EDITS,
    }
}

/// As root, `claude` bypasses permissions only if it is told that it is in a sandbox, which is then the case.
fn env(request: &TurnRequest<'_>, bypasses: bool) -> Vec<(OsString, OsString)> {
    let sandbox = (bypasses && request.is_root).then_some(("IS_SANDBOX", "1"));
    let settings = SETTINGS.iter().copied().chain(sandbox);
    request.unset(settings.map(|(name, value)| (name, OsStr::new(value))))
}

static DIALECT: Dialect = Dialect {
    usage_basis: UsageBasis::Turn,
    usage,
    exit_code,
    is_new: |_, event| json::text(event, "/tool_use_result/type") == Some("create"),
    outcome,
    remedy: with_remedies,
};

/// claude's error for a session that it cannot resume. Its report then names that session.
const SESSION_IS_GONE: &str = "No conversation found with session ID";

/// Stores the outcome of the turn, and returns the message of a failure.
fn outcome(reader: &mut Reader, event: &Value) -> Option<String> {
    let result = json::text(event, "/result");
    let report = &mut reader.report;
    match json::text(event, "/subtype") {
        Some(subtype) if subtype.starts_with("error") => {
            report.final_message.clone_from(&reader.last_text);
            report.stopped_by = Some(subtype.to_owned());
            let errors = json::list(event, "/errors").iter();
            let errors = errors
                .filter_map(Value::as_str)
                .collect::<Vec<_>>()
                .join("\n");
            if errors.contains(SESSION_IS_GONE) {
                report.session_id = None;
            }
            let error = classify(None, &errors).filter(|_| subtype == "error_during_execution");
            report.api_error = error.map(|error| SPEC.with_remedy(error));
            let message = Some(errors).filter(|errors| !errors.is_empty());
            Some(message.unwrap_or_else(|| subtype.to_owned()))
        }
        _ if json::flag(event, "/is_error") => {
            let message = result.unwrap_or("the turn failed without a message");
            let error = classify_final(json::status(event, "/api_error_status"), message);
            report.api_error = Some(SPEC.with_remedy(error));
            Some(message.to_owned())
        }
        _ => reader.said(result),
    }
}

fn with_remedies(mut error: ApiError) -> ApiError {
    if error.message.contains("root/sudo") {
        error.message = format!("{} ({ROOT_REMEDY})", error.message);
    }
    SPEC.with_remedy(error)
}

/// The tokens of all models and requests of this process if they are listed. The plain `usage` leaves out
/// those of subagents, titles and a turn that its budget ended.
fn usage(event: &Value) -> Usage {
    let models = event.get("modelUsage").and_then(Value::as_object);
    let models = models.filter(|models| !models.is_empty());
    let sum = |names: &str| -> Option<u64> {
        output::sum(models?.values().map(|model| sum_of(model, names)))
    };
    let plain = |names: &str| event.get("usage").and_then(|usage| sum_of(usage, names));
    Usage {
        tokens_in: sum("inputTokens cacheReadInputTokens cacheCreationInputTokens")
            .or_else(|| plain("input_tokens cache_read_input_tokens cache_creation_input_tokens")),
        tokens_cached: sum("cacheReadInputTokens").or_else(|| plain("cache_read_input_tokens")),
        tokens_out: sum("outputTokens").or_else(|| plain("output_tokens")),
        cost_usd: event.get("total_cost_usd").and_then(Value::as_f64),
    }
}

fn sum_of(counts: &Value, names: &str) -> Option<u64> {
    let count = |name: &str| counts.get(name).and_then(Value::as_u64);
    output::sum(names.split(' ').map(count))
}

/// The exit code of a command. claude states it as text, and only if it is not zero.
fn exit_code(tool: &str, output: &str, block: &Value, event: &Value) -> Option<i32> {
    if tool != "Bash" {
        return None;
    }
    if json::flag(block, "/is_error") {
        let code = output.strip_prefix("Exit code ")?.lines().next()?;
        return code.trim().parse().ok();
    }
    let result = event.get("tool_use_result")?;
    let ended = json::text(result, "/backgroundTaskId").is_none()
        && result.get("interrupted").and_then(Value::as_bool) == Some(false);
    ended.then_some(0)
}

#[cfg(test)]
mod tests;
