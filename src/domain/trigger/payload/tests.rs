use super::super::tests::{SHA, but, comment, labelled_pull, samples, workflow_run};
use super::*;
use serde_json::json;

#[test]
fn a_pull_request_is_read() {
    let event = parse("pull_request_target", &labelled_pull("x")).expect("it is read");
    let pull = event.pull().expect("a pull request");
    let head = pull.head.as_ref().expect("its head");
    assert_eq!((head.branch.as_str(), head.sha.as_str()), ("topic", SHA));
    assert_eq!(pull.base.as_ref().expect("its base").branch, "main");
    assert_eq!(event.label.expect("a label").name.as_deref(), Some("x"));
    let repository = event.repository.expect("a repository");
    assert_eq!(repository.default_branch.as_deref(), Some("main"));
}

#[test]
fn every_sample_is_read_and_others_are_named() {
    for (name, payload) in samples() {
        assert_eq!(
            parse(name, &payload).map(|event| event.name),
            Ok(name.to_owned())
        );
    }
    let other = parse("star\u{202e}", &json!(3)).expect("it is named");
    assert_eq!(other.name, "star");
}

#[test]
fn what_is_wrong_is_named() {
    let told = |name: &str, payload: &Value| match parse(name, payload) {
        Err(error) => error.to_string(),
        Ok(event) => panic!("{event:?}"),
    };
    let short =
        |pointer: &str, value: Value| told("issue_comment", &but(comment("x"), pointer, value));
    assert_eq!(
        short("/comment/id", json!("1")),
        "the issue_comment event cannot be read: comment.id: invalid type: string \"1\", expected u64"
    );
    assert_eq!(
        short("/comment", Value::Null),
        "the issue_comment event has no comment"
    );
    assert_eq!(
        short("/issue/number", Value::Null),
        "the issue_comment event cannot be read: issue.number: invalid type: null, expected u64"
    );
    assert_eq!(
        short("/issue/labels", json!({})),
        "the issue_comment event cannot be read: issue.labels: invalid type: map, expected a sequence"
    );
    assert_eq!(
        told(
            "workflow_run",
            &but(
                workflow_run("failure"),
                "/workflow_run/head_sha",
                json!("--help")
            )
        ),
        "the workflow_run event cannot be read: workflow_run.head_sha: not a commit's id"
    );
    let strange = told("push", &json!({"ref": "x", "after": "--help"}));
    assert_eq!(strange, "the push event's after is not a commit's id");
    assert_eq!(told("push", &json!([])), "the push event has no ref");
}

#[test]
fn long_texts_are_cut() {
    let event = parse("issue_comment", &comment(&"ä".repeat(400_000))).expect("it is read");
    let body = event.comment.expect("a comment").body;
    assert!(body.len() <= MAX_TEXT_BYTES && body.starts_with('ä'));
}

#[test]
fn a_deleted_account_and_a_deleted_fork_are_nobody() {
    let payload = but(labelled_pull("x"), "/pull_request/head/repo", Value::Null);
    let payload = but(payload, "/pull_request/user", Value::Null);
    let event = parse("pull_request", &payload).expect("it is read");
    let pull = event.pull().expect("a pull request");
    assert_eq!(pull.user, None);
    assert_eq!(pull.head.as_ref().expect("its head").repository(), None);
}
