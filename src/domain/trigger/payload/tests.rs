use super::super::tests::{SHA, but, comment, labelled_pull, samples, workflow_run};
use super::*;
use serde_json::json;

#[test]
fn a_pull_request_is_read() {
    let Ok(Event::PullRequest {
        target: true,
        event,
    }) = parse("pull_request_target", &labelled_pull("x"))
    else {
        panic!("another event");
    };
    let refs = event.subject.pull.expect("its commits");
    assert_eq!(
        (refs.head_ref.as_str(), refs.head_sha.as_str()),
        ("topic", SHA)
    );
    assert_eq!(refs.base_ref, "main");
    assert_eq!(event.label.as_deref(), Some("x"));
    assert_eq!(event.common.default_branch.as_deref(), Some("main"));
}

#[test]
fn every_sample_is_read_and_others_are_named() {
    for (name, payload) in samples() {
        assert!(
            !matches!(parse(name, &payload), Ok(Event::Other(_)) | Err(_)),
            "{name}"
        );
    }
    assert_eq!(
        parse("star\u{202e}", &json!(3)),
        Ok(Event::Other("star".into()))
    );
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
        "the issue_comment event's comment.id is not a whole number"
    );
    assert_eq!(
        short("/comment", Value::Null),
        "the issue_comment event has no comment"
    );
    assert_eq!(
        short("/issue/number", Value::Null),
        "the issue_comment event has no issue.number"
    );
    assert_eq!(
        short("/issue/labels", json!({})),
        "the issue_comment event's issue.labels is not a list"
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
        "the workflow_run event's workflow_run.head_sha is not a commit's id"
    );
    let long = told("push", &json!({"ref": "x".repeat(5_000), "after": SHA}));
    assert_eq!(long, "the push event's ref is not a short text");
    assert_eq!(told("push", &json!([])), "the push event has no ref");
}

#[test]
fn long_texts_are_cut() {
    let Ok(Event::IssueComment(event)) = parse("issue_comment", &comment(&"ä".repeat(400_000)))
    else {
        panic!("another event");
    };
    assert!(event.body.len() <= MAX_TEXT_BYTES && event.body.starts_with('ä'));
}

#[test]
fn a_deleted_account_and_a_deleted_fork_are_nobody() {
    let payload = but(labelled_pull("x"), "/pull_request/head/repo", Value::Null);
    let payload = but(payload, "/pull_request/user", Value::Null);
    let Ok(Event::PullRequest { event, .. }) = parse("pull_request", &payload) else {
        panic!("another event");
    };
    assert_eq!(event.subject.author, "");
    assert_eq!(
        event.subject.pull.expect("its commits").head_repository,
        None
    );
}
