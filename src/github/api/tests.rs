//! Tests the client with a scripted server: the policy over the wire, lost responses, forged markers.

mod server;
mod wire;

use super::*;
use serde_json::{Value, json};
use server::{ReceivedRequest, Say, Server, json as answer, with};
use std::sync::{Arc, Mutex};

const COMMENTS: &str = "/repos/octo/hello/issues/7/comments";
const CHECKS: &str = "/repos/octo/hello/check-runs";
const MARKER: &str = "<!-- sprag:status -->";

fn me() -> Identity {
    Identity {
        login: "github-actions[bot]".to_owned(),
        assumed: false,
    }
}

fn comment(id: u64, login: &str, body: &str) -> Value {
    json!({ "id": id, "body": body, "html_url": "u", "user": { "login": login, "type": "Bot" }, "new": [] })
}

/// A server that stores comments. Its first responses to posting one follow `faults`.
fn comments(mut there: Vec<Value>, mut faults: Vec<(bool, Say)>) -> Server {
    Server::start(move |asked| {
        if asked.method == "GET" {
            return answer(200, &there);
        }
        let id = there.len() as u64 + 100;
        let new = comment(
            id,
            "github-actions[bot]",
            asked.body["body"].as_str().unwrap(),
        );
        if faults.is_empty() {
            there.push(new.clone());
            return answer(201, new);
        }
        let (lands, say) = faults.remove(0);
        if lands {
            there.push(new);
        }
        say
    })
}

#[tokio::test]
async fn a_comment_whose_answer_was_lost_is_found_and_not_written_again() {
    for lost in [Say::HangUp, answer(502, json!({}))] {
        let server = comments(Vec::new(), vec![(true, lost)]);
        let repo = server.repo();
        let body = format!("{MARKER}\nhello");
        let written = repo.create_comment(7, &body, MARKER, &me()).await.unwrap();
        assert_eq!((written.id, written.body), (100, body));
        assert_eq!(server.count("POST", COMMENTS), 1);
        let incidents = repo.client.take_incidents().join("\n");
        assert!(
            incidents.contains("the request had succeeded after all"),
            "{incidents}"
        );
    }
}

#[tokio::test]
async fn a_comment_that_did_not_land_is_written_again_after_a_look() {
    let faults = vec![(false, Say::HangUp), (false, answer(503, json!({})))];
    let server = comments(Vec::new(), faults);
    let body = format!("{MARKER}\nhello");
    server
        .repo()
        .create_comment(7, &body, MARKER, &me())
        .await
        .unwrap();
    let methods: Vec<String> = server
        .asked()
        .into_iter()
        .map(|asked| asked.method)
        .collect();
    assert_eq!(methods, ["POST", "GET", "POST", "GET", "POST"]);
}

#[tokio::test]
async fn a_marker_in_anybody_elses_comment_counts_for_nothing() {
    let forged = format!("{MARKER}\nforged");
    let mut there = vec![comment(1, "mallory", &forged)];
    there.push(comment(
        2,
        "github-actions[bot]",
        &format!("quoted\n{MARKER}"),
    ));
    let server = comments(there.clone(), Vec::new());
    assert_eq!(
        server.repo().own_comment(7, MARKER, &me()).await.unwrap(),
        None
    );
    there.push(comment(3, "github-actions[bot]", &forged));
    let server = comments(there, Vec::new());
    let found = server.repo().own_comment(7, MARKER, &me()).await.unwrap();
    assert_eq!(found.map(|comment| comment.id), Some(3));
}

#[tokio::test]
async fn our_comment_is_found_on_a_later_page() {
    let server = Server::start(|asked| {
        let first = asked.path.ends_with("&page=1");
        let page: Vec<Value> = if first {
            (0..100).map(|id| comment(id, "anna", "text")).collect()
        } else {
            vec![comment(500, "github-actions[bot]", MARKER)]
        };
        answer(200, page)
    });
    let found = server.repo().own_comment(7, MARKER, &me()).await.unwrap();
    assert_eq!(found.map(|comment| comment.id), Some(500));
}

fn new_check() -> NewCheckRun {
    NewCheckRun {
        name: "Sprag".to_owned(),
        head_sha: "a".repeat(40),
        external_id: "run-1".to_owned(),
        state: CheckUpdate {
            status: Some(CheckStatus::InProgress),
            ..CheckUpdate::default()
        },
    }
}

#[tokio::test]
async fn a_check_run_whose_answer_was_lost_is_found_by_name_key_and_commit() {
    let mut there: Vec<Value> = Vec::new();
    let server = Server::start(move |asked| match asked.method.as_str() {
        "GET" => answer(
            200,
            json!({ "total_count": there.len(), "check_runs": there }),
        ),
        _ => {
            let mut run = asked.body.clone();
            run["id"] = json!(9);
            let mut other = run.clone();
            other["external_id"] = json!("run-0");
            other["id"] = json!(8);
            there.extend([other, run]);
            Say::HangUp
        }
    });
    let run = server.repo().create_check_run(&new_check()).await.unwrap();
    assert_eq!(run.id, 9);
    assert_eq!(server.count("POST", CHECKS), 1);
}

fn annotation(number: u32) -> Annotation {
    Annotation {
        path: "src/lib.rs".to_owned(),
        start_line: number,
        end_line: number,
        start_column: None,
        end_column: None,
        annotation_level: "failure",
        message: "no".to_owned(),
        title: None,
        raw_details: None,
    }
}

/// Sends 1,234 annotations while the 13th request fails. Returns the lines that arrived and the requests.
async fn annotate(lands: bool) -> (Vec<u64>, usize, usize) {
    let there: Arc<Mutex<Vec<u64>>> = Arc::default();
    let lines = Arc::clone(&there);
    let mut patches = 0;
    let server = Server::start(move |asked: &ReceivedRequest| {
        let mut there = lines.lock().unwrap();
        if asked.method == "PATCH" {
            patches += 1;
            let batch = asked.body["output"]["annotations"].as_array().unwrap();
            assert!(batch.len() <= 50);
            if patches != 13 || lands {
                there.extend(
                    batch
                        .iter()
                        .map(|note| note["start_line"].as_u64().unwrap()),
                );
            }
            if patches == 13 {
                return answer(502, json!({ "message": "Server Error" }));
            }
        }
        answer(
            200,
            json!({ "id": 5, "output": { "annotations_count": there.len() } }),
        )
    });
    let notes: Vec<Annotation> = (1..=1_234).map(annotation).collect();
    let output = Output::default();
    let there_now = server
        .repo()
        .add_annotations(5, &output, &notes, 0)
        .await
        .unwrap();
    assert_eq!(there_now, 1_234);
    let path = format!("{CHECKS}/5");
    let arrived = there.lock().unwrap().clone();
    (
        arrived,
        server.count("PATCH", &path),
        server.count("GET", &path),
    )
}

#[tokio::test]
async fn annotations_are_neither_lost_nor_doubled_when_a_request_fails() {
    let all: Vec<u64> = (1..=1_234).collect();
    assert_eq!(annotate(true).await, (all.clone(), 25, 1));
    assert_eq!(annotate(false).await, (all, 26, 1));
}

#[tokio::test]
async fn an_open_pull_request_is_found_and_given() {
    let server = Server::start(|asked| match asked.method.as_str() {
        "POST" => answer(
            422,
            json!({ "message": "Validation Failed", "errors": [
            { "resource": "PullRequest", "code": "custom", "message": "A pull request already exists for octo:sprag/x." }
        ] }),
        ),
        _ => {
            assert!(
                asked.path.contains("head=octo%3Asprag%2Fx&base=main"),
                "{}",
                asked.path
            );
            answer(
                200,
                json!([{ "number": 12, "html_url": "https://github.com/octo/hello/pull/12" }]),
            )
        }
    });
    let new = NewPull {
        title: "t".to_owned(),
        body: String::new(),
        head: "sprag/x".to_owned(),
        base: "main".to_owned(),
        draft: true,
    };
    assert_eq!(server.repo().create_pull(&new).await.unwrap().number, 12);
}

fn commit() -> CommitOnBranch {
    CommitOnBranch {
        branch: "sprag/x".to_owned(),
        expected_head: "a".repeat(40),
        headline: "Fix it".to_owned(),
        body: String::new(),
        additions: vec![("a.txt".to_owned(), b"hello".to_vec())],
        deletions: vec!["b.txt".to_owned()],
    }
}

/// A branch that moves when a commit arrives. The first response is `first`.
fn branch(first: Option<Say>) -> Server {
    let mut head = "a".repeat(40);
    let mut first = first;
    Server::start(move |asked| match asked.method.as_str() {
        "POST" => {
            let input = &asked.body["variables"]["input"];
            assert_eq!(input["fileChanges"]["additions"][0]["contents"], "aGVsbG8=");
            if input["expectedHeadOid"] != head {
                return answer(
                    200,
                    json!({ "data": null, "errors": [{ "type": "STALE_DATA", "message": "Expected branch to point to \"x\" but it did not." }] }),
                );
            }
            head = "c".repeat(40);
            let made = json!({ "data": { "createCommitOnBranch": { "commit": { "oid": head } } } });
            first.take().unwrap_or_else(|| answer(200, made))
        }
        _ if asked.path.contains("/git/ref/") => answer(200, json!({ "object": { "sha": head } })),
        _ => answer(
            200,
            json!({
                "sha": "c".repeat(40), "tree": { "sha": "t" }, "message": "Fix it",
                "parents": [{ "sha": "a".repeat(40) }],
            }),
        ),
    })
}

#[tokio::test]
async fn a_commit_is_made_once_and_read_back() {
    for first in [None, Some(Say::HangUp)] {
        let server = branch(first);
        let made = server.repo().commit_on_branch(&commit()).await.unwrap();
        assert_eq!(made, "c".repeat(40));
        assert_eq!(server.count("POST", "/graphql"), 1);
        let again = server.repo().commit_on_branch(&commit()).await.unwrap_err();
        assert!(matches!(again, Error::Stale { .. }), "{again}");
    }
}

#[tokio::test]
async fn who_the_token_is() {
    let person = Server::start(|_| answer(200, json!({ "login": "anna" })));
    assert_eq!(person.client().identity().await.unwrap().login, "anna");
    let app = Server::start(|asked| match asked.path.as_str() {
        "/graphql" => answer(
            200,
            json!({ "data": { "viewer": { "login": "helper[bot]" } } }),
        ),
        _ => answer(
            403,
            json!({ "message": "Resource not accessible by integration" }),
        ),
    });
    assert_eq!(app.client().identity().await.unwrap().login, "helper[bot]");
    let job = Server::start(|_| {
        answer(
            403,
            json!({ "message": "Resource not accessible by integration" }),
        )
    });
    let assumed = job.client().identity().await.unwrap();
    assert_eq!(
        (assumed.login.as_str(), assumed.assumed),
        ("github-actions[bot]", true)
    );
}

#[tokio::test]
async fn nothing_is_written_to_learn_what_the_token_may_do() {
    let server = Server::start(|asked| match asked.path.as_str() {
        "/repos/octo/hello" => with(
            200,
            &["x-oauth-scopes: repo, gist"],
            json!({ "full_name": "octo/hello", "private": true, "default_branch": "main", "permissions": { "push": true } }),
        ),
        path if path.contains("/actions/") => answer(403, json!({ "message": "no" })),
        _ => answer(200, json!([])),
    });
    let found = server.repo().survey().await.unwrap().permissions;
    let of = |wanted| {
        found
            .iter()
            .find(|(permission, _)| *permission == wanted)
            .unwrap()
            .1
    };
    assert_eq!(of(Permission::ContentsWrite), PermissionState::Known);
    assert_eq!(of(Permission::ChecksWrite), PermissionState::Refused);
    assert_eq!(of(Permission::ActionsRead), PermissionState::Refused);
    assert!(server.asked().iter().all(|asked| asked.method == "GET"));
}
