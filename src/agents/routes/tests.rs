use super::*;
use crate::agents::CLIS;
use crate::agents::gateway::{ANTHROPIC, GEMINI, OPENAI};
use sprag_agent::access::WireFormat;
use std::ffi::OsStr;

fn env(set: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
    let set = set.iter();
    set.map(|(name, value)| (name.into(), value.into()))
        .collect()
}

fn routes_of(agent: &CliAgent, set: &[(&str, &str)], args: &[&str]) -> Result<Vec<Route>, String> {
    let args: Vec<String> = args.iter().map(|&arg| arg.to_owned()).collect();
    routes(
        &Agent::Cli(agent.clone()),
        &GatewayCandidate {
            env: &env(set),
            job: &env(set),
            args: &args,
            configuration: &[],
        },
    )
}

fn known(name: &str) -> CliAgent {
    CliAgent::Known(crate::agents::cli(name).unwrap())
}

fn command() -> CliAgent {
    CliAgent::Command {
        command: "agent".into(),
    }
}

#[test]
fn a_provider_is_asked_for_what_it_knows_and_nothing_else() {
    let asked = |provider: &Provider, path| {
        let endpoint = provider.endpoint(path)?;
        let (path, model) = (endpoint.path.to_owned(), endpoint.model.map(str::to_owned));
        Some((path, endpoint.wire, model))
    };
    let of = |path: &str, wire| Some((path.to_owned(), wire, None));
    assert_eq!(
        asked(&ANTHROPIC, "/v1/messages"),
        of("/v1/messages", Some(WireFormat::Messages))
    );
    assert_eq!(
        asked(&OPENAI, "/v1/responses"),
        of("/responses", Some(WireFormat::Responses))
    );
    assert_eq!(
        asked(
            &GEMINI,
            "/v1beta/models/gemini-3.8-flash:streamGenerateContent"
        ),
        Some((
            "/v1beta/models/gemini-3.8-flash:streamGenerateContent".into(),
            Some(WireFormat::Gemini),
            Some("gemini-3.8-flash".into())
        ))
    );
    for (provider, path) in [
        (&ANTHROPIC, "/v1/messages/"),
        (&ANTHROPIC, "/v1/messages/batches"),
        (&ANTHROPIC, "/v1/../v1/messages"),
        (&ANTHROPIC, "//v1/messages"),
        (&ANTHROPIC, "/v1/organizations/api_keys"),
        (&OPENAI, "/responses"),
        (&OPENAI, "/v1/models/.."),
        (&OPENAI, "/v1/models/a/b"),
        (&OPENAI, "/v1/models/%2e%2e"),
        (&OPENAI, "/v1/files"),
        (&GEMINI, "/v1beta/models/:generateContent"),
        (&GEMINI, "/v1beta/models/a/../b:generateContent"),
    ] {
        assert_eq!(asked(provider, path), None, "{path}");
    }
}

#[test]
fn no_variable_of_an_agent_behind_the_gateway_holds_its_key() {
    const KEY: &str = "sk-canary-1234";
    let agents = [
        (known("codex"), "OPENAI_API_KEY", "OPENAI_BASE_URL", "/v1"),
        (known("codex"), "CODEX_API_KEY", "OPENAI_BASE_URL", "/v1"),
        (
            known("claude"),
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_BASE_URL",
            "",
        ),
        (
            known("claude"),
            "ANTHROPIC_AUTH_TOKEN",
            "ANTHROPIC_BASE_URL",
            "",
        ),
        (command(), "GEMINI_API_KEY", "GOOGLE_GEMINI_BASE_URL", ""),
        (command(), "OPENAI_API_KEY", "OPENAI_API_BASE", "/v1"),
    ];
    for (agent, variable, base, prefix) in agents {
        let login = format!("{{\"key\": \"{KEY}\"}}");
        let set = [
            ("PATH", "/bin"),
            (variable, KEY),
            ("MY_COPY", KEY),
            ("MY_LOGIN", &login),
            ("CLAUDE_CODE_OAUTH_TOKEN", "another"),
        ];
        let route = routes_of(&agent, &set, &[]).unwrap().remove(0);
        let mut env = env(&set);
        let args = take_over(&route, &agent, "http://127.0.0.1:9", "token", &mut env);
        let shown = format!("{env:?} {args:?}");
        assert!(!shown.contains(KEY), "{shown}");
        let value = |name: &str| {
            let mut named = env.iter().filter(|(known, _)| known == name);
            named.next_back().map(|(_, value)| value.as_os_str())
        };
        assert_eq!(value(variable), Some(OsStr::new("token")));
        assert_eq!(value("PATH"), Some(OsStr::new("/bin")));
        let address = format!("http://127.0.0.1:9{prefix}");
        assert_eq!(value(base), Some(OsStr::new(&address)));
        let is_known = matches!(agent, CliAgent::Known(spec) if spec.name == "claude");
        assert_eq!(value("CLAUDE_CODE_OAUTH_TOKEN").is_none(), is_known);
    }
}

#[test]
fn the_jobs_own_server_is_asked_where_it_names_one() {
    let asked = |set: &[(&str, &str)]| {
        let mut routes = routes_of(&known("codex"), set, &[])?;
        Ok::<_, String>(routes.remove(0).upstream)
    };
    let key = ("OPENAI_API_KEY", "sk-1");
    assert_eq!(asked(&[key]).unwrap(), "https://api.openai.com/v1");
    let own = ("OPENAI_BASE_URL", "https://models.example.com/openai/v1/");
    assert_eq!(
        asked(&[key, own]).unwrap(),
        "https://models.example.com/openai/v1"
    );
    for odd in ["ftp://h/v1", "models.example.com", "https://h/?q=1"] {
        let why = asked(&[key, ("OPENAI_BASE_URL", odd)]).unwrap_err();
        assert!(why.contains("OPENAI_BASE_URL"), "{why}");
    }
}

/// An agent, its variables and arguments, and the expected message.
type Case<'c> = (&'c str, &'c [(&'c str, &'c str)], &'c [&'c str], &'c str);

#[test]
fn an_agent_that_asks_somebody_else_is_left_alone() {
    let key = ("ANTHROPIC_API_KEY", "sk-1");
    let cases: [Case<'_>; 6] = [
        (
            "claude",
            &[],
            &[],
            "ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN is not set",
        ),
        (
            "claude",
            &[("CLAUDE_CODE_OAUTH_TOKEN", "t")],
            &[],
            "is not set",
        ),
        (
            "claude",
            &[key, ("CLAUDE_CODE_USE_BEDROCK", "1")],
            &[],
            "CLAUDE_CODE_USE_BEDROCK is set",
        ),
        (
            "claude",
            &[key, ("ANTHROPIC_CUSTOM_HEADERS", "a: b")],
            &[],
            "ANTHROPIC_CUSTOM_HEADERS is set",
        ),
        ("claude", &[key], &["--settings=x.json"], "--settings"),
        (
            "codex",
            &[("OPENAI_API_KEY", "sk")],
            &["-c", "model_provider=\"azure\""],
            "model_provider",
        ),
    ];
    for (name, set, args, expected) in cases {
        let why = routes_of(&known(name), set, args).unwrap_err();
        assert!(why.contains(expected), "{why}");
    }
    assert!(routes_of(&command(), &[("PATH", "/bin")], &[]).is_err());
    let two = [("OPENAI_API_KEY", "a"), ("GEMINI_API_KEY", "b")];
    assert_eq!(routes_of(&command(), &two, &[]).unwrap().len(), 2);
}

#[test]
fn every_row_reads_keys_that_its_agent_is_given() {
    for spec in CLIS {
        let Some(behind) = spec.gateway else { continue };
        let given = |name: &str| spec.variables().any(|it| it.name == name);
        let mut keys = behind.provider.keys.iter();
        assert!(keys.any(|(name, _)| given(name)), "{}", spec.name);
    }
}
