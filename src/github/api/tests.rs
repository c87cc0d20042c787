//! Tests the client with a scripted server: the policy over the wire, lost responses, forged markers.

mod server;
mod wire;

use super::*;
use serde_json::{Value, json};
use server::{Say, Server, json as answer};

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

/// A server that stores these comments.
fn comments(there: Vec<Value>) -> Server {
    Server::start(move |_| answer(200, &there))
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
    let server = comments(there.clone());
    assert_eq!(
        server.repo().own_comment(7, MARKER, &me()).await.unwrap(),
        None
    );
    there.push(comment(3, "github-actions[bot]", &forged));
    let server = comments(there);
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
        assert_eq!(again.kind, ErrorKind::Stale, "{again}");
    }
}

#[tokio::test]
async fn who_the_token_is() {
    let person = Server::start(|_| answer(200, json!({ "login": "anna" })));
    assert_eq!(person.repo().identity().await.unwrap().login, "anna");
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
    assert_eq!(app.repo().identity().await.unwrap().login, "helper[bot]");
    let job = Server::start(|_| {
        answer(
            403,
            json!({ "message": "Resource not accessible by integration" }),
        )
    });
    let assumed = job.repo().identity().await.unwrap();
    assert_eq!(
        (assumed.login.as_str(), assumed.assumed),
        ("github-actions[bot]", true)
    );
}
