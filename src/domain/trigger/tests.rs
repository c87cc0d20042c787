//! Tests with sample payloads, and with arbitrary payloads.

use super::authorise::{Facts, authorise};
use super::payload::{Event, parse};
use super::settings::TriggerSettings;
use super::triage::{Candidate, Triage, triage};
use super::{head, tail};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

pub(super) const SHA: &str = "1111111111111111111111111111111111111111";
pub(super) const BASE: &str = "2222222222222222222222222222222222222222";

pub(super) fn user(login: &str) -> Value {
    let kind = if login.ends_with("[bot]") {
        "Bot"
    } else {
        "User"
    };
    json!({"login": login, "type": kind})
}

fn common(action: &str, sender: &str) -> Value {
    json!({
        "action": action,
        "repository": {"full_name": "octo/tool", "default_branch": "main"},
        "sender": user(sender),
    })
}

fn with(mut base: Value, more: &Value) -> Value {
    for (key, value) in more.as_object().expect("an object") {
        base[key] = value.clone();
    }
    base
}

pub(super) fn comment(body: &str) -> Value {
    with(
        common("created", "ann"),
        &json!({
            "issue": {"number": 7, "title": "A title", "body": "A text", "state": "open", "user": user("bob"),
                "pull_request": {"url": "x"}},
            "comment": {"id": 99, "body": body, "user": user("ann"), "author_association": "MEMBER",
                "created_at": "2026-01-31T10:00:00Z"},
        }),
    )
}

fn pull() -> Value {
    json!({
        "number": 7, "title": "A title", "body": "A text", "state": "open", "user": user("bob"), "labels": [],
        "updated_at": "2026-01-31T10:00:00Z",
        "head": {"ref": "topic", "sha": SHA, "repo": {"full_name": "octo/tool"}},
        "base": {"ref": "main", "sha": BASE, "repo": {"full_name": "octo/tool"}},
    })
}

pub(super) fn labelled_pull(label: &str) -> Value {
    let more = json!({"pull_request": pull(), "label": {"name": label}});
    with(common("labeled", "ann"), &more)
}

pub(super) fn labelled_issue(label: &str) -> Value {
    let issue = json!({"number": 7, "title": "A title", "body": "- [ ] A task", "state": "open", "user": user("bob"),
        "updated_at": "2026-01-31T10:00:00Z"});
    with(
        common("labeled", "ann"),
        &json!({"issue": issue, "label": {"name": label}}),
    )
}

pub(super) fn review_comment(body: &str) -> Value {
    with(
        common("created", "ann"),
        &json!({
            "pull_request": pull(),
            "comment": {"id": 98, "body": body, "user": user("ann"), "author_association": "OWNER", "path": "a.rs",
                "line": 3, "diff_hunk": "@@ -1 +1 @@\n-a\n+b", "created_at": "2026-01-31T10:00:00Z"},
        }),
    )
}

pub(super) fn review(state: &str, body: &str) -> Value {
    with(
        common("submitted", "ann"),
        &json!({
            "pull_request": pull(),
            "review": {"id": 97, "state": state, "body": body, "user": user("ann"), "author_association": "MEMBER",
                "submitted_at": "2026-01-31T10:00:00Z"},
        }),
    )
}

pub(super) fn workflow_run(conclusion: &str) -> Value {
    with(
        common("completed", "ann"),
        &json!({"workflow_run": {
            "id": 55, "run_attempt": 2, "name": "CI", "path": ".github/workflows/ci.yml", "conclusion": conclusion,
            "head_sha": SHA, "head_branch": "topic", "head_repository": {"full_name": "octo/tool"},
            "pull_requests": [{"number": 7}], "actor": user("ann"), "updated_at": "2026-01-31T10:00:00Z",
        }}),
    )
}

pub(super) fn check_suite(conclusion: &str) -> Value {
    with(
        common("completed", "ann"),
        &json!({"check_suite": {
            "id": 54, "conclusion": conclusion, "head_sha": SHA, "head_branch": "topic",
            "pull_requests": [{"number": 7}], "app": {"name": "Other CI"},
        }}),
    )
}

pub(super) fn push() -> Value {
    let more =
        json!({"ref": "refs/heads/topic", "after": SHA, "head_commit": {"message": "Words"}});
    with(common("", "ann"), &more)
}

pub(super) fn event(name: &str, payload: &Value) -> Event {
    parse(name, payload).unwrap_or_else(|error| panic!("{error}"))
}

pub(super) fn triaged(name: &str, payload: &Value) -> Triage {
    triage(&event(name, payload), &TriggerSettings::default())
}

pub(super) fn candidate(name: &str, payload: &Value) -> Candidate {
    match triaged(name, payload) {
        Triage::Candidate(candidate) => *candidate,
        other => panic!("no candidate but {other:?}"),
    }
}

/// `payload` with the value at a JSON pointer replaced.
pub(super) fn but(mut payload: Value, pointer: &str, value: Value) -> Value {
    let (parent, key) = pointer.rsplit_once('/').expect("a pointer");
    payload.pointer_mut(parent).expect("a parent")[key] = value;
    payload
}

pub(super) const EVENTS: &[&str] = &[
    "issue_comment",
    "issues",
    "pull_request",
    "pull_request_target",
    "pull_request_review",
    "pull_request_review_comment",
    "workflow_run",
    "check_suite",
    "schedule",
    "workflow_dispatch",
    "repository_dispatch",
    "push",
    "fork",
];

pub(super) fn samples() -> Vec<(&'static str, Value)> {
    vec![
        ("issue_comment", comment("/sprag fix it")),
        ("issues", labelled_issue("sprag")),
        ("pull_request", labelled_pull("sprag")),
        ("pull_request_target", labelled_pull("sprag")),
        (
            "pull_request_review",
            review("changes_requested", "/sprag do"),
        ),
        (
            "pull_request_review_comment",
            review_comment("/sprag fix it"),
        ),
        ("workflow_run", workflow_run("failure")),
        ("check_suite", check_suite("failure")),
        ("schedule", json!({"schedule": "0 3 * * *"})),
        (
            "workflow_dispatch",
            json!({"ref": "refs/heads/main", "inputs": {"prompt": "Do it"}}),
        ),
        (
            "repository_dispatch",
            json!({"action": "x", "branch": "main", "client_payload": {"plan": "a.yaml"}}),
        ),
        ("push", push()),
    ]
}

/// Parses, triages and authorises any payload.
fn go_through(name: &str, payload: &Value) {
    let settings = TriggerSettings {
        rules: crate::settings::Resolved {
            allow_pull_request_target: true,
            ..Default::default()
        },
        ..TriggerSettings::default()
    };
    if let Ok(event) = parse(name, payload)
        && let Triage::Candidate(candidate) = triage(&event, &settings)
    {
        let _ = authorise(&candidate, &Facts::default(), &settings);
    }
}

#[test]
fn any_field_may_be_anything() {
    let odd = [
        Value::Null,
        json!(true),
        json!(-1),
        json!(1e300),
        json!(u64::MAX),
        json!("x"),
        json!("\u{0}\u{202e}"),
        json!([]),
        json!([[], {}, null]),
        json!({}),
        json!("é".repeat(3_000)),
    ];
    for (name, payload) in samples() {
        for pointer in pointers("", &payload) {
            for value in &odd {
                go_through(name, &but(payload.clone(), &pointer, value.clone()));
            }
        }
        for value in &odd {
            go_through(name, value);
        }
    }
}

fn pointers(at: &str, value: &Value) -> Vec<String> {
    let entries: Vec<(String, &Value)> = match value {
        Value::Object(map) => map
            .iter()
            .map(|(key, value)| (key.clone(), value))
            .collect(),
        _ => Vec::new(),
    };
    let of = |(key, value): (String, &Value)| {
        let here = format!("{at}/{key}");
        let mut all = pointers(&here, value);
        all.push(here);
        all
    };
    entries.into_iter().flat_map(of).collect()
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-z/<!-]{0,12}".prop_map(Value::from),
        Just(json!("created")),
        Just(json!("labeled")),
        Just(json!(SHA)),
        Just(json!("/sprag x")),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        let key = prop::sample::select(vec![
            "action",
            "issue",
            "pull_request",
            "comment",
            "review",
            "label",
            "name",
            "body",
            "user",
            "login",
            "id",
            "number",
            "head",
            "base",
            "ref",
            "sha",
            "repo",
            "full_name",
            "workflow_run",
            "check_suite",
            "inputs",
            "client_payload",
            "plan",
        ]);
        let entry = (key, inner.clone());
        prop_oneof![
            prop::collection::vec(inner, 0..4).prop_map(Value::from),
            prop::collection::vec(entry, 0..8).prop_map(|entries| {
                let map: Map<String, Value> = entries
                    .into_iter()
                    .map(|(key, value)| (key.to_owned(), value))
                    .collect();
                Value::from(map)
            }),
        ]
    })
}

proptest! {
    #[test]
    fn no_payload_is_too_strange(name in prop::sample::select(EVENTS.to_vec()), payload in any_json()) {
        go_through(name, &payload);
    }

    #[test]
    fn texts_are_cut_at_characters(text in any::<String>(), limit in 0usize..40) {
        prop_assert!(head(&text, limit).len() <= limit && text.starts_with(head(&text, limit)));
        prop_assert!(tail(&text, limit).len() <= limit && text.ends_with(tail(&text, limit)));
    }
}
