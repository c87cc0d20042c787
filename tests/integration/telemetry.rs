//! What a run sends to an OpenTelemetry collector.

use crate::support::http::{Reply, Request};
use crate::support::project::{Project, Run, plan};
use crate::support::scripted::{Scripted, json};
use serde_json::Value;
use std::fs;

const CANARY: &str = "canary-of-the-job-1234";
const KEY: &str = "key-of-the-collector-5678";
const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// An agent that tells what it used, mends `a.txt`, and says secrets.
fn run(project: &mut Project) -> Run {
    project.env("SOME_TOKEN", CANARY);
    project.write("plan.yaml", &plan("grep -q fixed a.txt"));
    project.commit_all("plan");
    let agent = project.agent(&format!(
        "echo '{{\"event\":\"agent.usage\",\"tokens_in\":1200,\"tokens_out\":30,\"cost_usd\":0.25}}'\n\
         echo '{{\"event\":\"agent.tool_call\",\"id\":\"1\",\"name\":\"shell\",\"summary\":\"cat words-of-the-call\"}}'\n\
         echo '{{\"event\":\"agent.tool_result\",\"id\":\"1\",\"ok\":true}}'\n\
         echo {CANARY} {KEY}; echo fixed > a.txt; echo 'SUGGESTED_COMMIT_MESSAGE: Mend it'"
    ));
    project.run(&agent, &[])
}

fn taken() -> Reply {
    json(200, "{}")
}

fn paths(requests: &[Request]) -> Vec<&str> {
    let mut paths: Vec<&str> = requests.iter().map(Request::path).collect();
    paths.sort_unstable();
    paths
}

fn body<'r>(requests: &'r [Request], path: &str) -> Value {
    let request: &'r Request = requests.iter().find(|it| it.path() == path).unwrap();
    serde_json::from_slice(&request.body).unwrap()
}

/// The lines in which a run told of its collector.
fn told(run: &Run) -> Vec<&str> {
    let lines = run.stderr.lines();
    lines
        .filter(|line| line.contains("OpenTelemetry"))
        .collect()
}

#[test]
fn a_collector_gets_the_spans_and_the_metrics_of_a_run_without_secrets() {
    let collector = Scripted::start([taken(), taken()]);
    let mut project = Project::new(&[("a.txt", "broken\n")]);
    project.env(
        "OTEL_EXPORTER_OTLP_ENDPOINT",
        format!("{}/base/", collector.url()),
    );
    project.env(
        "OTEL_EXPORTER_OTLP_HEADERS",
        format!("authorization=Bearer%20{KEY},x-team=a%2Cb"),
    );
    project.env("OTEL_SERVICE_NAME", "nightly");
    project.env(
        "OTEL_RESOURCE_ATTRIBUTES",
        format!("deployment.environment.name=ci,leak={CANARY}"),
    );
    project.env("TRACEPARENT", PARENT);
    let run = run(&mut project).expect(0);
    assert_eq!(told(&run), Vec::<&str>::new());

    let requests = collector.requests();
    assert_eq!(paths(&requests), ["/base/v1/metrics", "/base/v1/traces"]);
    for request in &requests {
        assert_eq!(request.method, "POST");
        assert_eq!(request.header("content-type"), Some("application/json"));
        assert_eq!(
            request.header("authorization"),
            Some(&*format!("Bearer {KEY}"))
        );
        assert_eq!(request.header("x-team"), Some("a,b"));
        let text = String::from_utf8_lossy(&request.body);
        assert!(!text.contains(KEY) && !text.contains(CANARY), "{text}");
        assert!(
            text.contains("\"nightly\"") && text.contains("deployment.environment.name"),
            "{text}"
        );
        // Words of the agent are nobody's but the report's.
        assert!(!text.contains("Mend it"), "{text}");
        assert!(!text.contains("words-of-the-call"), "{text}");
    }
    let traces = body(&requests, "/base/v1/traces");
    let spans = traces["resourceSpans"][0]["scopeSpans"][0]["spans"]
        .as_array()
        .unwrap();
    let names: Vec<&str> = spans
        .iter()
        .map(|span| span["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "sprag run",
            "sprag task",
            "sprag check",
            "invoke_agent command",
            "execute_tool shell",
            "sprag check"
        ]
    );
    assert!(
        spans
            .iter()
            .all(|span| span["traceId"] == "0af7651916cd43dd8448eb211c80319c")
    );
    assert_eq!(spans[0]["parentSpanId"], "b7ad6b7169203331");
    let metrics = body(&requests, "/base/v1/metrics").to_string();
    for name in [
        "gen_ai.client.token.usage",
        "gen_ai.client.operation.duration",
        "sprag.cost",
        "sprag.tasks",
    ] {
        assert!(metrics.contains(name), "{name}: {metrics}");
    }
    // The collector's key is a secret of the run like any other.
    for entry in fs::read_dir(run.dir.unwrap()).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read(&path).unwrap_or_default();
        assert!(
            !String::from_utf8_lossy(&text).contains(KEY),
            "{}",
            path.display()
        );
    }
}

#[test]
fn a_collector_that_does_not_answer_changes_no_run_and_is_told_of_once() {
    let refusing = || json(503, "{}");
    let silent = Scripted::start([Reply::Hang, Reply::Hang]);
    let refuses = Scripted::start([refusing(), refusing()]);
    let (soon, never) = ("200", "600000");
    for (address, timeout, why) in [
        ("http://127.0.0.1:1".to_owned(), never, "Connection refused"),
        (silent.url(), soon, "it did not answer in time"),
        (refuses.url(), never, "it answered 503"),
    ] {
        let mut project = Project::new(&[("a.txt", "broken\n")]);
        project.env("OTEL_EXPORTER_OTLP_ENDPOINT", &address);
        project.env("OTEL_EXPORTER_OTLP_TIMEOUT", timeout);
        let run = run(&mut project).expect(0);
        assert_eq!(run.summary["status"], "success");
        let told = told(&run);
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].contains(why), "{why}: {told:?}");
        let warnings = run.summary["warnings"].to_string();
        assert_eq!(warnings.matches("OpenTelemetry").count(), 1, "{warnings}");
    }
}

#[test]
fn the_standard_variables_are_heeded() {
    let collector = Scripted::start([taken(), taken(), taken()]);
    let url = collector.url();
    let sent = |variables: &[(&str, &str)], warnings: usize| {
        let mut project = Project::new(&[("a.txt", "broken\n")]);
        for (name, value) in variables {
            project.env(name, value);
        }
        let before = collector.requests().len();
        let run = run(&mut project).expect(0);
        assert_eq!(told(&run).len(), warnings, "{}", run.stderr);
        let requests = collector.requests();
        let paths = paths(&requests[before..]);
        paths.into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let nothing = Vec::<String>::new();
    let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", url.as_str());
    assert_eq!(sent(&[], 0), nothing);
    assert_eq!(sent(&[endpoint, ("OTEL_SDK_DISABLED", "true")], 0), nothing);
    let grpc = ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc");
    assert_eq!(sent(&[endpoint, grpc], 1), nothing);
    assert_eq!(
        sent(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "localhost:4318")], 1),
        nothing
    );
    let none = ("OTEL_METRICS_EXPORTER", "none");
    assert_eq!(sent(&[endpoint, none], 0), ["/v1/traces"]);
    // The address of one signal is taken as it is.
    let own = format!("{url}/own");
    let own = ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", own.as_str());
    assert_eq!(sent(&[own], 0), ["/own"]);
    // A trace that nobody records is not gone on with.
    let dropped = (
        "TRACEPARENT",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00",
    );
    assert_eq!(sent(&[endpoint, dropped], 0), ["/v1/metrics"]);
    assert_eq!(collector.steps_left(), 0);
}
