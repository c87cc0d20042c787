//! The tests' GitHub refuses what GitHub refuses, and finds what GitHub would let pass and ignore.

use crate::support::github::{FindingKind, Github, Token};
use crate::support::http_client::Client;
use serde_json::{Value, json};

const TOKEN: &str = "ghs_canary0000000000000000000000000000";
const REPO: &str = "/repos/acme/widget";
const SHA: &str = "00112233445566778899aabbccddeeff00112233";

/// A GitHub that knows a job's token, a client that shows it, and issue 1.
fn github() -> (Github, Client) {
    let github = Github::start();
    github.token(TOKEN, Token::job());
    github.state().open_issue("dev", "Broken", "It is broken.");
    let client = Client::with_token(&github.url(), TOKEN);
    (github, client)
}

/// A check run's body with this of it replaced.
fn check_run(change: impl FnOnce(&mut Value)) -> Value {
    let mut body = json!({
        "name": "sprag",
        "head_sha": SHA,
        "status": "in_progress",
        "output": { "title": "Running", "summary": "One task." },
    });
    change(&mut body);
    body
}

fn annotations(lines: std::ops::RangeInclusive<u32>) -> Value {
    lines
        .map(|line| {
            json!({
                "path": "src/a.rs",
                "start_line": line,
                "end_line": line,
                "annotation_level": "failure",
                "message": format!("wrong in line {line}"),
            })
        })
        .collect()
}

/// Fails unless a request has this status and findings of this kind.
fn assert_refused(body: &Value, target: &str, status: u16, kind: FindingKind) {
    let (github, mut client) = github();
    let answer = client.post(&format!("{REPO}{target}"), body);
    assert_eq!(answer.status, status, "{body} {}", answer.text);
    let findings = github.take_findings();
    assert!(
        findings.iter().any(|found| found.kind == kind),
        "{body}: {findings:?}"
    );
}

#[test]
fn what_github_refuses_of_a_check_run_is_refused() {
    let annotation = |change: fn(&mut Value)| {
        check_run(|body| {
            body["output"]["annotations"] = annotations(1..=1);
            change(&mut body["output"]["annotations"][0]);
        })
    };
    let bodies = [
        check_run(|body| body["output"]["annotations"] = annotations(1..=51)),
        check_run(|body| body["output"]["summary"] = json!("é".repeat(32_768))),
        check_run(|body| body["output"]["text"] = json!("x".repeat(65_536))),
        check_run(|body| body["output"]["title"] = json!("x".repeat(256))),
        check_run(|body| drop(body["output"].as_object_mut().unwrap().remove("title"))),
        check_run(|body| body["status"] = json!("completed")),
        check_run(|body| body["conclusion"] = json!("success")),
        check_run(|body| body["conclusion"] = json!("great")),
        check_run(|body| body["head_sha"] = json!("abc123")),
        check_run(|body| drop(body.as_object_mut().unwrap().remove("name"))),
        annotation(|one| one["annotation_level"] = json!("error")),
        annotation(|one| one["start_line"] = json!("1")),
        annotation(|one| one["start_line"] = json!(2)),
        annotation(|one| (one["end_line"], one["start_column"]) = (json!(2), json!(1))),
        annotation(|one| (one["start_column"], one["end_column"]) = (json!(2), json!(1))),
        annotation(|one| one["path"] = json!("/src/a.rs")),
        annotation(|one| one["path"] = json!("./src/a.rs")),
        annotation(|one| one["title"] = json!("x".repeat(256))),
        annotation(|one| one["message"] = json!("x".repeat(65_537))),
        annotation(|one| one["raw_details"] = json!("x".repeat(65_537))),
    ];
    for body in &bodies {
        assert_refused(body, "/check-runs", 422, FindingKind::Body);
    }
}

#[test]
fn what_github_takes_of_a_check_run_is_taken() {
    let (_github, mut client) = github();
    let bodies = [
        check_run(|body| body["output"]["summary"] = json!("x".repeat(65_535))),
        check_run(|body| {
            (body["status"], body["conclusion"]) = (json!("completed"), json!("neutral"));
        }),
        check_run(|body| {
            body["output"]["annotations"] = annotations(1..=1);
            let one = &mut body["output"]["annotations"][0];
            (one["start_column"], one["end_column"]) = (json!(3), json!(9));
        }),
    ];
    for body in &bodies {
        let answer = client.post(&format!("{REPO}/check-runs"), body);
        assert_eq!(answer.status, 201, "{}", answer.text);
    }
}

#[test]
fn other_bodies_are_held_to_their_rules() {
    let refused = [
        (json!({}), "/issues/1/comments"),
        (json!({ "body": "" }), "/issues/1/comments"),
        (json!({ "body": "x".repeat(65_537) }), "/issues/1/comments"),
        (json!({ "content": "tada" }), "/issues/1/reactions"),
        (json!({ "head": "topic", "title": "No base" }), "/pulls"),
        (json!({ "ref": "refs/heads/x" }), "/git/refs"),
        (json!({ "ref": "x", "sha": SHA }), "/git/refs"),
        (json!({ "ref": "refs/heads/x", "sha": "main" }), "/git/refs"),
        (json!({ "event": "COMMENT" }), "/pulls/1/reviews"),
        (
            json!({ "inputs": {} }),
            "/actions/workflows/ci.yml/dispatches",
        ),
    ];
    for (body, target) in &refused {
        assert_refused(body, target, 422, FindingKind::Body);
    }
    let unknown = json!({ "body": "Hello", "bdoy": 1 });
    assert_refused(&unknown, "/issues/1/comments", 201, FindingKind::Unknown);
    assert_refused(
        &json!({ "body": "Hello" }),
        "/issues/1/remarks",
        404,
        FindingKind::Route,
    );
}

#[test]
fn queries_and_headers_are_held_to_their_rules() {
    let (github, mut client) = github();
    for (query, fits) in [
        ("per_page=100&page=1", true),
        ("per_page=101", false),
        ("page=0", false),
        ("sort=created", false),
    ] {
        client.get(&format!("{REPO}/issues/1/comments?{query}"));
        let findings = github.take_findings();
        assert_eq!(findings.is_empty(), fits, "{query}: {findings:?}");
    }
    client.get(&format!("{REPO}/pulls?state=weird"));
    assert_eq!(github.findings(), github.take_findings());
    client.get(&format!("{REPO}/pulls?state=weird"));
    assert_eq!(github.take_findings()[0].kind, FindingKind::Parameter);
    client.get(&format!("{REPO}/issues/one"));
    assert_eq!(github.take_findings()[0].kind, FindingKind::Parameter);
    for (name, value) in [
        ("user-agent", ""),
        ("authorization", "Basic x"),
        ("accept", "text/html"),
        ("x-github-api-version", "v3"),
    ] {
        let mut client = Client::with_token(&github.url(), TOKEN);
        client.set(name, value);
        client.get(REPO);
        let findings = github.take_findings();
        assert_eq!(findings[0].kind, FindingKind::Header, "{name}");
    }
}

#[test]
#[should_panic(expected = "GitHub would not take this traffic")]
fn findings_that_nobody_takes_fail_the_test() {
    let (_github, mut client) = github();
    client.get(&format!("{REPO}/pulls?state=weird"));
}

#[test]
fn graphql_is_held_against_the_schema() {
    let (github, mut client) = github();
    let no_variables = json!({});
    let input = "{ expectedHeadOid: \"x\", message: { headline: \"h\" } }";
    let incomplete =
        format!("mutation {{ createCommitOnBranch(input: {input}) {{ commit {{ oid }} }} }}");
    let wrong = [
        ("{ viewer { nickname } }", &no_variables),
        ("{ viewer }", &no_variables),
        ("{ viewer { login { x } } }", &no_variables),
        (
            "{ repository(user: \"a\") { nameWithOwner } }",
            &no_variables,
        ),
        (
            "query($a: String!) { viewer { login } }",
            &json!({ "a": "x" }),
        ),
        (
            "query($a: String!) { repository(name: $a) { isFork } }",
            &no_variables,
        ),
        ("{ repository(name: $a) { isFork } }", &no_variables),
        ("{ viewer { login }", &no_variables),
        (incomplete.as_str(), &no_variables),
    ];
    for (query, variables) in wrong {
        let answer = client.post(
            "/graphql",
            &json!({ "query": query, "variables": variables }),
        );
        assert!(answer.json["errors"].is_array(), "{query}");
        let findings = github.take_findings();
        assert_eq!(findings[0].kind, FindingKind::GraphQl, "{query}");
    }
    let refused = client
        .post("/graphql", &json!({ "query": "{ viewer { login } }" }))
        .json;
    assert_eq!(refused["errors"][0]["type"], "FORBIDDEN", "a job is nobody");
}
