mod lines;

use super::output::is_session_id;
use super::*;
use crate::domain::agent::{
    AgentEvent, AgentReport, ApiError, ApiErrorClass, TodoItem, TodoStatus, Usage,
};
use crate::domain::output_schema::OutputSchema;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;

/// The output of an agent in a recorded turn. The path is relative to the calling file.
macro_rules! recorded {
    ($agent:literal, $name:literal) => {
        include_str!(concat!(
            "../../../tests/fixtures/agent-events/",
            $agent,
            "/",
            $name,
            ".jsonl"
        ))
    };
}
pub(super) use recorded;

/// A writing turn in `/w` with no other settings, as an ordinary user.
pub(super) fn request() -> TurnRequest<'static> {
    TurnRequest {
        work_tree: Path::new("/w"),
        directory: Path::new("/w"),
        scratch: Path::new("/s"),
        model: None,
        extra_args: &[],
        resume: None,
        max_cost_usd: None,
        may_write: true,
        own_sandbox: OwnSandbox::On,
        repository_files: RepositoryFiles::AsTheyAre,
        is_root: false,
        mcp: &[],
        output_schema: None,
        base_env: &[],
    }
}

pub(super) fn strings(args: &[OsString]) -> Vec<&str> {
    args.iter()
        .map(|arg| arg.to_str().expect("UTF-8"))
        .collect()
}

pub(super) fn env(pairs: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
    pairs
        .iter()
        .map(|(name, value)| (name.into(), value.into()))
        .collect()
}

/// An exit with this code and this stderr.
pub(super) fn exit(code: i32, stderr_tail: &str) -> ExitFacts<'_> {
    ExitFacts {
        code: Some(code),
        stderr_tail,
        ..ExitFacts::default()
    }
}

/// An exit after the executor's SIGTERM.
pub(super) fn killed() -> ExitFacts<'static> {
    ExitFacts {
        signal: Some(15),
        killed_by_us: true,
        ..ExitFacts::default()
    }
}

pub(super) fn usage(tokens_in: u64, cached: u64, out: u64, cost_usd: Option<f64>) -> Usage {
    Usage {
        tokens_in: Some(tokens_in),
        tokens_cached: Some(cached),
        tokens_out: Some(out),
        cost_usd,
    }
}

pub(super) fn todo(text: &str, status: TodoStatus) -> TodoItem {
    TodoItem {
        text: text.to_owned(),
        status,
    }
}

pub(super) fn message(text: &str) -> AgentEvent {
    AgentEvent::Message {
        text: text.to_owned(),
    }
}

pub(super) fn raw_line(line: &str) -> AgentEvent {
    AgentEvent::Raw {
        line: line.to_owned(),
    }
}

pub(super) fn error(message: &str, is_final: bool) -> AgentEvent {
    AgentEvent::Error {
        message: message.to_owned(),
        is_final,
    }
}

pub(super) fn call(id: &str, name: &str, summary: &str) -> AgentEvent {
    AgentEvent::ToolCall {
        id: Some(id.to_owned()),
        name: name.to_owned(),
        summary: summary.to_owned(),
    }
}

pub(super) fn result(id: &str, ok: bool, exit_code: Option<i32>, summary: &str) -> AgentEvent {
    AgentEvent::ToolResult {
        id: Some(id.to_owned()),
        ok,
        exit_code,
        summary: summary.to_owned(),
    }
}

pub(super) fn file_change(path: &str, kind: &str) -> AgentEvent {
    AgentEvent::FileChange {
        path: path.to_owned(),
        kind: kind.to_owned(),
    }
}

pub(super) fn api_error(class: ApiErrorClass, status: Option<u16>, message: &str) -> ApiError {
    ApiError {
        status,
        message: message.to_owned(),
        retry_after_ms: None,
        class,
    }
}

/// Reads a complete stdout: all events, and the report.
pub(super) fn read(
    agent: &CliAgent,
    stdout: &str,
    exit: ExitFacts<'_>,
) -> (Vec<AgentEvent>, AgentReport) {
    let mut parser = agent.reader(&request(), "");
    let events = stdout
        .lines()
        .flat_map(|line| parser.line(line.as_bytes()))
        .collect();
    (events, parser.finish(exit))
}

fn agents() -> Vec<CliAgent> {
    let known = CLIS.iter().copied().map(CliAgent::Known);
    let command = CliAgent::Command {
        command: "cat".to_owned(),
    };
    let acp = CliAgent::Acp {
        command: "cat".to_owned(),
    };
    known.chain([acp, command]).collect()
}

#[test]
fn only_a_plain_session_id_is_given_back() {
    for id in ["01a1f8fe-f108-73c1-9c34-7608864f4586", "ses_1:a.b"] {
        assert!(is_session_id(id), "{id}");
    }
    for id in [
        "",
        "-p",
        "--last",
        "a b",
        "a\nb",
        "$(x)",
        "../x",
        &"a".repeat(129),
    ] {
        assert!(!is_session_id(id), "{id}");
    }
}

#[test]
fn an_option_of_the_users_is_known_with_and_without_its_value() {
    let args = [
        "--model=x".to_owned(),
        "-s".to_owned(),
        "read-only".to_owned(),
    ];
    let request = TurnRequest {
        extra_args: &args,
        ..request()
    };
    assert!(request.overrides("-m --model"));
    assert!(request.overrides("-s --sandbox"));
    assert!(!request.overrides("--mod read"));
}

#[test]
fn keys_of_a_cloud_are_passed_on_only_where_it_is_switched_on() {
    let names = |set: &[&str]| -> Vec<_> {
        CliAgent::Known(&claude::SPEC).variables_to_pass(|name| set.contains(&name))
    };
    assert_eq!(
        names(&["AWS_SECRET_ACCESS_KEY", "ANTHROPIC_API_KEY"]),
        ["ANTHROPIC_API_KEY"]
    );
    assert_eq!(
        names(&["AWS_SECRET_ACCESS_KEY", "CLAUDE_CODE_USE_BEDROCK"]),
        ["CLAUDE_CODE_USE_BEDROCK", "AWS_SECRET_ACCESS_KEY"]
    );
}

#[test]
fn every_key_and_token_counts_as_a_secret() {
    let named_like_one: BTreeSet<_> = CLIS
        .iter()
        .flat_map(|spec| spec.variables())
        .filter(|it| ["KEY", "TOKEN"].iter().any(|word| it.name.contains(word)))
        .filter(|it| !matches!(it.kind, VariableKind::Key | VariableKind::Secret))
        .map(|it| it.name)
        .collect();
    assert_eq!(named_like_one, BTreeSet::new());
}

/// The settings are in a crate that cannot use the table.
#[test]
fn the_settings_protect_what_configures_an_agent() {
    use crate::domain::settings::Settings;
    let protected = Settings::default().resolve(false).protected_paths;
    for glob in configuration() {
        assert!(protected.iter().any(|known| known == glob), "{glob}");
    }
}

/// An agent that has nothing in common with the known ones.
static MADE_UP: CliSpec = CliSpec {
    gateway: None,
    name: "madeup",
    package: Package::of("madeup", "@example/madeup"),
    variables: "
        key MADEUP_KEY
        cloud MADEUP_CLOUD
        secret MADEUP_HEADERS
        key@MADEUP_CLOUD MADEUP_CLOUD_KEY",
    keys: &["MADEUP_KEY"],
    login: LoginFiles {
        variable: Some("MADEUP_HOME"),
        directory: ".config/madeup",
        login: "login.json",
        maybe: &["settings.toml"],
        maybe_in_home: ".madeuprc",
        keychain: false,
    },
    login_options: "--login-from",
    ..codex::SPEC
};

#[test]
fn a_login_is_looked_for_where_the_agent_itself_keeps_it() {
    let login = |set: &[(&str, &str)], files: &[&str], args: &[&str]| {
        let set: Vec<_> = [
            ("HOME", "/h"),
            ("ANTHROPIC_API_KEY", "k"),
            ("OPENAI_API_KEY", "k"),
        ]
        .iter()
        .chain(set)
        .copied()
        .collect();
        let agent_args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        MADE_UP.login(&LoginSources {
            variable: &|name| {
                let found = set.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| OsString::from(value))
            },
            is_file: &|path| files.iter().any(|file| Path::new(file) == path),
            agent_env: &["EXTRA".to_owned()],
            agent_args: &agent_args,
        })
    };
    let perhaps = |what: &str| Login::Perhaps(what.to_owned());
    let variable = |name: &str| Login::Variable(name.to_owned());
    let others = ["/h/.codex/auth.json", "/h/.claude/.credentials.json"];
    assert_eq!(login(&[], &others, &[]), Login::Nothing);
    assert_eq!(
        login(&[("MADEUP_KEY", "k")], &[], &[]),
        variable("MADEUP_KEY")
    );
    assert_eq!(
        login(&[("MADEUP_CLOUD_KEY", "k")], &[], &[]),
        Login::Nothing
    );
    assert_eq!(
        login(&[("MADEUP_CLOUD", "1")], &[], &[]),
        variable("MADEUP_CLOUD")
    );
    assert_eq!(
        login(&[], &["/h/.config/madeup/login.json"], &[]),
        Login::File("/h/.config/madeup/login.json".into())
    );
    assert_eq!(
        login(&[("MADEUP_HOME", "/m")], &["/m/login.json"], &[]),
        Login::File("/m/login.json".into())
    );
    assert_eq!(
        login(
            &[("MADEUP_HOME", "/m")],
            &["/h/.config/madeup/login.json"],
            &[]
        ),
        Login::Nothing
    );
    for file in ["/h/.config/madeup/settings.toml", "/h/.madeuprc"] {
        assert_eq!(login(&[], &[file], &[]), perhaps(file));
    }
    assert_eq!(
        login(&[("XDG_CONFIG_HOME", "/x")], &["/x/madeup/login.json"], &[]),
        Login::File("/x/madeup/login.json".into())
    );
    assert_eq!(
        login(&[("MADEUP_HEADERS", "x")], &[], &[]),
        perhaps("MADEUP_HEADERS")
    );
    assert_eq!(
        login(&[("EXTRA", "x")], &[], &[]),
        perhaps("EXTRA, which `agent_env` passes,")
    );
    assert_eq!(
        login(&[], &[], &["--login-from=x"]),
        perhaps("--login-from in `agent_args`")
    );
    assert_eq!(
        MADE_UP.login_remedy(),
        "set MADEUP_KEY from a secret, or log madeup in"
    );
}

#[test]
fn an_agent_that_exits_without_a_word_refused_to_start() {
    let refused = |code, stderr| {
        exit(code, stderr)
            .refused_to_start()
            .map(|e| (e.class, e.message))
    };
    let unavailable = |message: &str| Some((ApiErrorClass::Unavailable, message.to_owned()));
    assert_eq!(
        refused(2, "\nerror: unexpected argument '-x'\n\n"),
        unavailable("error: unexpected argument '-x'")
    );
    assert_eq!(
        refused(1, "1\n2\n3\n4\n5\n6\n"),
        unavailable("2\n3\n4\n5\n6")
    );
    assert_eq!(
        refused(1, ""),
        unavailable("exited at once without saying why")
    );
    assert_eq!(
        refused(1, "status 503"),
        Some((ApiErrorClass::Transient, "status 503".to_owned()))
    );
    let gone = "Error: thread/resume failed: no rollout found for thread id abc (code -32600)";
    assert_eq!(
        refused(1, gone),
        Some((ApiErrorClass::Rejected, gone.to_owned()))
    );
    assert_eq!(refused(0, "x"), None);
    assert_eq!(refused(127, "sh: x: not found"), None);
    assert_eq!(refused(137, ""), None);
    assert_eq!(killed().refused_to_start(), None);
}

#[test]
fn a_turn_for_the_value_alone_has_the_schema_where_the_agent_takes_it() {
    let open = OutputSchema::parse(r#"{"type": "object"}"#).unwrap();
    let strict = OutputSchema::parse(
        r#"{"type": "object", "properties": {}, "additionalProperties": false}"#,
    )
    .unwrap();
    let given = |name: &str, schema| {
        let request = TurnRequest {
            output_schema: schema,
            ..request()
        };
        let invocation = (cli(name).unwrap().invocation)(&request);
        let args = strings(&invocation.args).join(" ");
        args.contains("schema").then_some(args)
    };
    assert_eq!(given("codex", None), None);
    assert_eq!(given("codex", Some(&open)), None, "the API refuses it");
    let args = given("codex", Some(&strict)).unwrap();
    assert!(
        args.contains("--output-schema /s/output-schema.json"),
        "{args}"
    );
    assert_eq!(given("claude", None), None);
    let args = given("claude", Some(&open)).unwrap();
    assert!(
        args.contains(r#"--json-schema={"type":"object"}"#),
        "{args}"
    );
}

#[test]
fn the_maker_of_models_is_the_agents_own_or_the_one_that_the_model_names() {
    for (agent, model, maker) in [
        ("codex", Some("gpt"), Some("openai")),
        ("builtin", Some("openai-responses/gpt"), Some("openai")),
        ("builtin", Some("gemini/flash"), Some("gcp.gemini")),
        ("builtin", Some("openaix/gpt"), None),
        ("builtin", Some("gpt"), None),
        ("command", None, None),
    ] {
        assert_eq!(model_vendor(agent, model), maker, "{agent} {model:?}");
    }
}
