//! The way to the model through proxies and with certificates of one's own.

use crate::support::has;
use crate::support::model_api::{ModelApi, Step};
use crate::support::project::{Project, Run, plan};
use crate::support::proxy::{Proxy, Rules};
use crate::support::runner::{Runner, TOKEN};
use crate::support::tls::{Authority, TlsServer};
use serde_json::{Value, json};
use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;

const PASSWORD: &str = "proxy-pass-0123456789";
/// `anna:proxy-pass-0123456789`.
const BASIC: &str = "Basic YW5uYTpwcm94eS1wYXNzLTAxMjM0NTY3ODk=";
const MODELS: &str = "models.github.ai:443";

fn script() -> [Step; 2] {
    let write = ("write_file", json!({"path": "a.txt", "content": "fixed\n"}));
    let finish = ("finish", json!({"summary": "Fix a.txt"}));
    [
        Step::Calls("I write it.".into(), vec![write]),
        Step::Calls(String::new(), vec![finish]),
    ]
}

fn project() -> Project {
    Project::new(&[
        ("a.txt", "broken\n"),
        ("plan.yaml", &plan("grep -q fixed a.txt")),
    ])
}

fn address(api: &ModelApi) -> SocketAddr {
    api.url().trim_start_matches("http://").parse().unwrap()
}

/// Runs with a model at `base`, of which nothing but the proxy knows where it is.
fn run(project: &mut Project, base: &str) -> Run {
    project.env("SPRAG_BASE_URL", base);
    project.env("OPENAI_API_KEY", "not-a-real-key");
    project.env("SPRAG_MODEL_WAIT_MS", "1");
    project.sprag(&["run", "--plan", "plan.yaml", "--model", "openai/m"])
}

/// Fails if a text stands in anything that a run printed or left.
fn assert_nowhere(text: &str, run: &Run) {
    assert!(!run.stdout.contains(text) && !run.stderr.contains(text));
    let mut places = vec![run.dir.clone().unwrap()];
    while let Some(place) = places.pop() {
        if place.is_dir() {
            places.extend(fs::read_dir(&place).unwrap().map(|it| it.unwrap().path()));
        } else if let Ok(bytes) = fs::read(&place) {
            let found = bytes.windows(text.len()).any(|it| it == text.as_bytes());
            assert!(!found, "{text} in {}", place.display());
        }
    }
}

fn message(run: &Run) -> String {
    run.task(0)["message"].as_str().unwrap().to_owned()
}

#[test]
fn a_model_over_https_is_reached_through_a_tunnel() {
    for (login, wanted) in [("", None), ("anna:proxy-pass-0123456789@", Some(BASIC))] {
        let api = ModelApi::start(script()).unwrap();
        let authority = Authority::new();
        let tls = TlsServer::start(&authority, "model.example.invalid", address(&api));
        let proxy = Proxy::start(Rules {
            login: wanted.map(str::to_owned),
            servers: vec![("model.example.invalid:8443", tls.address())],
        });
        let mut project = project();
        project.env("https_proxy", proxy.url(login));
        let root = authority.write(&project.outside("ca.pem"));
        project.env("SSL_CERT_FILE", &root);
        let run = run(&mut project, "https://model.example.invalid:8443/v1").expect(0);
        assert_eq!(run.task(0)["status"], "done");
        for asked in proxy.asked() {
            assert_eq!(
                (asked.method.as_str(), asked.target.as_str()),
                ("CONNECT", "model.example.invalid:8443")
            );
            assert_eq!(asked.header("proxy-authorization"), wanted);
            assert_eq!(asked.header("authorization"), None);
        }
        assert_eq!(tls.requests().len(), 2);
        for request in tls.requests() {
            assert_eq!(request.header("proxy-authorization"), None);
            assert_eq!(
                request.header("authorization"),
                Some("Bearer not-a-real-key")
            );
            assert_eq!(request.target, "/v1/chat/completions");
        }
        assert_nowhere(PASSWORD, &run);
    }
}

#[test]
fn a_model_over_plain_http_is_asked_of_the_proxy_by_its_whole_address() {
    let api = ModelApi::start(script()).unwrap();
    let proxy = Proxy::start(Rules {
        login: Some(BASIC.into()),
        servers: vec![("model.example.invalid", address(&api))],
    });
    let mut project = project();
    project.env("http_proxy", proxy.url("anna:proxy-pass-0123456789@"));
    let run = run(&mut project, "http://model.example.invalid/v1").expect(0);
    let asked = proxy.asked();
    assert_eq!(asked.len(), 2);
    assert_eq!(
        asked[0].target,
        "http://model.example.invalid/v1/chat/completions"
    );
    assert_eq!(
        api.model_requests()[0].header("host"),
        Some("model.example.invalid")
    );
    assert_nowhere(PASSWORD, &run);
}

#[test]
fn a_proxy_may_itself_be_spoken_to_over_tls() {
    let api = ModelApi::start(script()).unwrap();
    let proxy = Proxy::start(Rules {
        login: Some(BASIC.into()),
        servers: vec![("model.example.invalid", address(&api))],
    });
    let behind = proxy.url("").trim_start_matches("http://").parse().unwrap();
    let authority = Authority::new();
    let tls = TlsServer::start(&authority, "127.0.0.1", behind);
    let mut project = project();
    let login = format!("https://anna:{PASSWORD}@{}", tls.address());
    project.env("HTTP_PROXY", login);
    let root = authority.write(&project.outside("ca.pem"));
    project.env("SSL_CERT_FILE", &root);
    run(&mut project, "http://model.example.invalid/v1").expect(0);
    assert_eq!(tls.requests().len(), 2);
    assert_eq!(proxy.asked().len(), 2);
}

#[test]
fn a_login_that_a_proxy_refuses_ends_the_run_and_says_what_to_do() {
    for base in [
        "https://model.example.invalid/v1",
        "http://model.example.invalid/v1",
    ] {
        let proxy = Proxy::start(Rules {
            login: Some("Basic other".into()),
            servers: Vec::new(),
        });
        let mut project = project();
        project.env("ALL_PROXY", proxy.url("anna:proxy-pass-0123456789@"));
        let run = run(&mut project, base).expect(4);
        assert_eq!(run.task(0)["reason"], "agent_unavailable");
        let told = message(&run);
        has(&told, "requires a valid user and password");
        assert!(told.contains("ALL_PROXY"), "{told}");
        assert_eq!(proxy.asked().len(), 1, "asking again is of no use");
        assert_nowhere(PASSWORD, &run);
    }
}

#[test]
fn a_proxy_that_is_not_there_is_waited_for_and_named() {
    let gone = TcpListener::bind(("127.0.0.1", 0))
        .unwrap()
        .local_addr()
        .unwrap();
    let mut project = project();
    let proxy = format!("http://anna:{PASSWORD}@{gone}");
    project.env("HTTPS_PROXY", proxy);
    let run = run(&mut project, "https://model.example.invalid/v1").expect(4);
    assert_eq!(run.task(0)["reason"], "agent_unavailable");
    let told = message(&run);
    assert!(told.contains(&format!("the proxy http://{gone}")), "{told}");
    let errors = run
        .events
        .iter()
        .filter(|event| event["event"] == "agent.error");
    assert!(errors.count() > 1, "it is tried again");
    assert_nowhere(PASSWORD, &run);
}

#[test]
fn what_needs_no_proxy_is_reached_without_it() {
    let refuses = || Proxy::start(Rules::default());
    // This machine, whatever the variables say.
    let api = ModelApi::start(script()).unwrap();
    let proxy = refuses();
    let mut here = project();
    here.env("ALL_PROXY", proxy.url(""));
    let base = format!("{}/v1", api.url());
    run(&mut here, &base).expect(0);
    assert_eq!(proxy.asked(), []);
    // What `NO_PROXY` names is looked for directly, and this name is nowhere.
    let mut named = project();
    named.env("HTTPS_PROXY", proxy.url(""));
    named.env("NO_PROXY", ".invalid");
    let run = run(&mut named, "https://model.example.invalid/v1").expect(4);
    assert_eq!(proxy.asked(), []);
    assert!(message(&run).contains("dns error"), "{}", message(&run));
}

#[test]
fn a_certificate_of_an_unknown_authority_is_refused_with_what_to_do() {
    let api = ModelApi::start(script()).unwrap();
    let authority = Authority::new();
    let tls = TlsServer::start(&authority, "model.example.invalid", address(&api));
    let other = TlsServer::start(&authority, "other.example.invalid", address(&api));
    let proxy = Proxy::start(Rules {
        login: None,
        servers: vec![
            ("model.example.invalid:443", tls.address()),
            ("wrong.example.invalid:443", other.address()),
        ],
    });
    let mut unknown = project();
    unknown.env("HTTPS_PROXY", proxy.url(""));
    let ended = run(&mut unknown, "https://model.example.invalid/v1").expect(4);
    let told = message(&ended);
    assert!(told.contains("not signed by a trusted authority"), "{told}");
    assert!(told.contains("SSL_CERT_FILE"), "{told}");
    let mut wrong = project();
    wrong.env("HTTPS_PROXY", proxy.url(""));
    let root = authority.write(&wrong.outside("ca.pem"));
    wrong.env("SSL_CERT_FILE", &root);
    let ended = run(&mut wrong, "https://wrong.example.invalid/v1").expect(4);
    has(&message(&ended), "cannot be accepted");
    assert_eq!(proxy.asked().len(), 2, "asking again is of no use");
    assert_eq!(api.requests(), [], "nobody got the key");
}

#[test]
fn settings_that_cannot_be_used_are_named() {
    for (name, value, words) in [
        (
            "SSL_CERT_FILE",
            "/nowhere/ca.pem",
            "SSL_CERT_FILE=/nowhere/ca.pem cannot be read",
        ),
        (
            "HTTPS_PROXY",
            "socks5://u:proxy-pass-0123456789@p",
            "HTTPS_PROXY is not the address",
        ),
    ] {
        let mut project = project();
        project.env(name, value);
        let run = run(&mut project, "https://model.example.invalid/v1").expect(4);
        assert_eq!(run.task(0)["reason"], "agent_unavailable");
        assert!(message(&run).contains(words), "{}", message(&run));
        assert_nowhere(PASSWORD, &run);
        let found = project.sprag(&["doctor", "--json"]);
        assert_eq!(found.code, 4);
        assert!(found.stdout.contains(words), "{}", found.stdout);
        assert!(!found.stdout.contains(PASSWORD));
    }
}

#[test]
fn doctor_says_which_way_a_connection_takes() {
    let mut project = project();
    project.env("OPENAI_API_KEY", "not-a-real-key");
    project.env(
        "HTTPS_PROXY",
        format!("http://anna:{PASSWORD}@proxy.example.invalid:3128"),
    );
    project.env("NO_PROXY", "github.com");
    let run = project.sprag(&["doctor", "--json"]);
    let findings: Value = serde_json::from_str(&run.stdout).unwrap();
    let list = findings
        .as_array()
        .or(findings["findings"].as_array())
        .unwrap();
    let found = |check: &str| {
        let finding = list.iter().find(|it| it["check"] == check).unwrap();
        finding["found"].as_str().unwrap().to_owned()
    };
    assert_eq!(
        found("proxy"),
        "api.openai.com through http://proxy.example.invalid:3128 (HTTPS_PROXY); api.github.com directly"
    );
    assert!(found("certificates").contains("built-in roots"));
    assert!(!run.stdout.contains(PASSWORD));
}

/// The whole way of a job without any secret of its own: the token that the job has anyway goes to
/// GitHub Models, and to nobody else.
#[test]
fn a_job_works_with_github_models_and_its_own_token() {
    let environment = (
        "run_command",
        json!({"command": "env; cat /proc/self/environ | tr '\\0' '\\n'; echo marker-$((40 + 2))"}),
    );
    let look = Step::Calls("I look around.".into(), vec![environment]);
    let api = ModelApi::start(std::iter::once(look).chain(script())).unwrap();
    let authority = Authority::new();
    let tls = TlsServer::start(&authority, "models.github.ai", address(&api));
    let proxy = Proxy::start(Rules {
        login: None,
        servers: vec![(MODELS, tls.address())],
    });
    let mut runner = Runner::new(&[
        ("a.txt", "broken\n"),
        ("plan.yaml", &plan("grep -q fixed a.txt")),
    ]);
    let root = authority.write(&runner.project.outside("ca.pem"));
    runner.project.env("GITHUB_TOKEN", TOKEN);
    runner.project.env("HTTPS_PROXY", proxy.url(""));
    runner.project.env("SSL_CERT_FILE", &root);
    let payload = json!({"repository": crate::support::runner::repository()});
    runner.event("push", "refs/heads/main", &payload);
    let model = ["--model", "github/openai/gpt-4.1"];
    let step = runner
        .step(&[&["--plan", "plan.yaml"], &model[..]].concat())
        .expect(0);
    assert_eq!(step.output("status"), "success");
    assert_eq!(runner.file("main", "a.txt"), "fixed\n");

    let asked = proxy.asked();
    assert!(!asked.is_empty());
    for asked in &asked {
        assert_eq!(
            (asked.method.as_str(), asked.target.as_str()),
            ("CONNECT", MODELS)
        );
        assert!(!format!("{asked:?}").contains(TOKEN));
    }
    let requests = tls.requests();
    assert_eq!(requests.len(), 3);
    for request in &requests {
        assert_eq!(
            request.header("authorization"),
            Some(format!("Bearer {TOKEN}").as_str())
        );
        assert_eq!(request.header("host"), Some("models.github.ai"));
        assert_eq!(request.target, "/inference/chat/completions");
        let body: Value = serde_json::from_slice(&request.body).unwrap();
        assert_eq!(body["model"], "openai/gpt-4.1");
        assert!(
            !body.to_string().contains(TOKEN),
            "no command saw the token"
        );
    }
    assert!(api.model_requests()[1].mentions("marker-42"));
    let dir = step.dir.as_deref().unwrap();
    let log = fs::read_to_string(Path::new(dir).join("turns/01-builtin.jsonl")).unwrap();
    assert!(log.contains("marker-42") && !log.contains(TOKEN));
}

#[test]
fn the_jobs_token_goes_to_no_server_that_is_named_instead() {
    let api = ModelApi::start(script()).unwrap();
    let mut runner = Runner::new(&[
        ("a.txt", "broken\n"),
        ("plan.yaml", &plan("grep -q fixed a.txt")),
    ]);
    runner.project.env("GITHUB_TOKEN", TOKEN);
    runner
        .project
        .env("SPRAG_BASE_URL", format!("{}/v1", api.url()));
    let payload = json!({"repository": crate::support::runner::repository()});
    runner.event("push", "refs/heads/main", &payload);
    runner
        .step(&["--plan", "plan.yaml", "--model", "github/m"])
        .expect(0);
    let requests = api.requests();
    assert_eq!(requests.len(), 2);
    for request in requests {
        assert_eq!(request.header("authorization"), None);
    }
}
