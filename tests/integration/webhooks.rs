//! The example payloads of npm's `@octokit/webhooks-examples`: GitHub's own events are read, and
//! start what they should.

use super::support::npm;
use octocrab::models::webhook_events::WebhookEvent;
use serde_json::Value;
use sprag::domain::trigger::payload::parse;
use sprag::domain::trigger::settings::TriggerSettings;
use sprag::domain::trigger::triage::{Triage, triage};
use std::collections::BTreeMap;
use std::fs;

/// Events that are read, with how many examples of each the package has at least.
const EVENTS: &[(&str, usize)] = &[
    ("check_suite", 9),
    ("issue_comment", 9),
    ("issues", 29),
    ("pull_request", 29),
    ("pull_request_review", 4),
    ("pull_request_review_comment", 5),
    ("push", 7),
    ("repository_dispatch", 2),
    ("workflow_dispatch", 2),
    ("workflow_run", 5),
];

/// The examples by event; `None` where npm cannot install them, which is said loudly.
fn examples() -> Option<BTreeMap<String, Vec<Value>>> {
    let modules = match npm::installed("webhooks") {
        Ok(modules) => modules,
        Err(why) => {
            npm::not_tested("GitHub's example payloads", &why);
            return None;
        }
    };
    let file = modules.join("@octokit/webhooks-examples/api.github.com/index.json");
    let definitions: Vec<Value> = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    let by_name = definitions.into_iter().map(|definition| {
        let name = definition["name"].as_str().unwrap().to_owned();
        (name, definition["examples"].as_array().unwrap().clone())
    });
    Some(by_name.collect())
}

fn triaged(name: &str, payload: &Value, settings: &TriggerSettings) -> Triage {
    let event = parse(name, payload).unwrap_or_else(|error| panic!("{error}: {payload}"));
    triage(&event, settings)
}

#[test]
fn every_example_of_github_is_read() {
    let Some(examples) = examples() else { return };
    for (name, least) in EVENTS {
        let payloads = &examples[*name];
        assert!(payloads.len() >= *least, "{name}: {}", payloads.len());
        for payload in payloads {
            triaged(name, payload, &TriggerSettings::default());
        }
    }
    for payload in &examples["pull_request"] {
        triaged("pull_request_target", payload, &TriggerSettings::default());
    }
    let others = examples
        .iter()
        .filter(|(name, _)| !EVENTS.iter().any(|(known, _)| known == name));
    for (name, payload) in
        others.flat_map(|(name, payloads)| payloads.iter().map(move |payload| (name, payload)))
    {
        let triage = triaged(name, payload, &TriggerSettings::default());
        assert!(
            matches!(triage, Triage::Nothing { .. }),
            "{name}: {triage:?}"
        );
    }
}

#[test]
fn examples_start_nothing_by_themselves() {
    let Some(examples) = examples() else { return };
    let commented = [
        "issue_comment",
        "pull_request_review",
        "pull_request_review_comment",
        "issues",
        "pull_request",
    ];
    for name in commented {
        for payload in &examples[name] {
            let triage = triaged(name, payload, &TriggerSettings::default());
            assert!(
                matches!(triage, Triage::Nothing { .. }),
                "{name}: {triage:?}"
            );
        }
    }
}

#[test]
fn an_example_with_the_phrase_starts_work() {
    let Some(examples) = examples() else { return };
    for name in ["issue_comment", "pull_request_review_comment"] {
        let mut started = 0;
        for payload in &examples[name] {
            let mut payload = payload.clone();
            payload["comment"]["body"] = "/sprag fix it".into();
            let triage = triaged(name, &payload, &TriggerSettings::default());
            match (payload["action"].as_str(), triage) {
                (Some("created"), Triage::Candidate(candidate)) => {
                    assert_eq!(
                        candidate.default_branch.as_deref(),
                        payload["repository"]["default_branch"].as_str()
                    );
                    started += 1;
                }
                // Some examples are comments of bots.
                (_, Triage::Nothing { .. }) => {}
                (action, other) => panic!("{action:?}: {other:?}"),
            }
        }
        assert!(started >= 3, "{name}: {started}");
    }
}

#[test]
fn an_example_with_the_label_starts_work() {
    let Some(examples) = examples() else { return };
    for name in ["issues", "pull_request"] {
        let labelled = examples[name]
            .iter()
            .filter(|payload| payload["action"] == "labeled");
        let mut seen = 0;
        for payload in labelled {
            let mut payload = payload.clone();
            payload["label"]["name"] = "sprag".into();
            let triage = triaged(name, &payload, &TriggerSettings::default());
            assert!(matches!(triage, Triage::Candidate(_)), "{name}: {triage:?}");
            seen += 1;
        }
        assert_eq!(seen, 2, "{name}");
    }
}

/// Why the payload types are Sprag's own: should this fail because octocrab reads more, they can go.
#[test]
fn octocrab_does_not_read_every_example() {
    let Some(examples) = examples() else { return };
    let mut unread = Vec::new();
    for (name, _) in EVENTS {
        for payload in &examples[*name] {
            let bytes = serde_json::to_vec(payload).unwrap();
            if let Err(error) = WebhookEvent::try_from_header_and_body(name, &bytes) {
                unread.push(format!("{name}: {error}"));
            }
        }
    }
    assert_eq!(unread.len(), 2, "{unread:#?}");
    assert!(
        unread.iter().all(|why| why.starts_with("issues: ")),
        "{unread:#?}"
    );
}
