//! What comes from GitHub.

use super::{first_and_rest, text};
use sprag::domain::plan::Plan;
use sprag::domain::settings::Settings;
use sprag::domain::trigger::context::{Context, FailedJob, ReviewComment, ThreadComment, prompt};
use sprag::domain::trigger::run_name::RunName;
use sprag::domain::trigger::settings::TriggerSettings;
use sprag::domain::trigger::triage::{Triage, triage};
use sprag::domain::trigger::{clean, issue, job_log, marker, payload, phrase, refname};

const EVENTS: [&str; 13] = [
    "issue_comment",
    "pull_request_review_comment",
    "issues",
    "pull_request",
    "pull_request_target",
    "pull_request_review",
    "workflow_run",
    "check_suite",
    "schedule",
    "workflow_dispatch",
    "repository_dispatch",
    "push",
    "fork",
];

pub(super) fn payload(data: &[u8]) {
    let Ok(payload) = serde_json::from_slice(data) else {
        return;
    };
    let settings = TriggerSettings::default();
    for name in EVENTS {
        let Ok(event) = payload::parse(name, &payload) else {
            continue;
        };
        let Triage::Candidate(candidate) = triage(&event, &settings) else {
            continue;
        };
        if let Some(branch) = &candidate.head_ref {
            assert_eq!(refname::check_branch(branch), Ok(()), "{branch:?}");
        }
        let told = prompt(&candidate, &context(candidate.review_body.as_deref()));
        assert!(told.len() <= 1 << 20);
        is_visible(&told);
    }
}

fn context(text: Option<&str>) -> Context {
    let body = text.unwrap_or("```\n<!-- x -->").to_owned();
    Context {
        comments: vec![ThreadComment {
            id: 1,
            body: body.clone(),
            ..ThreadComment::default()
        }],
        review_comments: vec![ReviewComment {
            id: 2,
            body: body.clone(),
            ..ReviewComment::default()
        }],
        jobs: vec![FailedJob {
            log: body,
            ..FailedJob::default()
        }],
        ..Context::default()
    }
}

/// Characters that nobody sees do not reach an agent.
fn is_visible(text: &str) {
    assert!(
        !text.contains(['\u{200b}', '\u{202e}', '\u{e0041}', '\r']),
        "{text:?}"
    );
}

/// The first line is a title, the rest the text.
pub(super) fn issue(data: &[u8]) {
    let text = text(data);
    let (title, body) = first_and_rest(&text);
    let read = issue::plan(title, body, |_| false).plan;
    configures_nothing(&read);
    let done: Vec<(&str, bool)> = read
        .tasks
        .iter()
        .map(|task| (task.title.as_str(), true))
        .collect();
    let checked = issue::with_done_checked(body, &done);
    assert_eq!(checked.len(), body.len(), "only marks of boxes change");
    assert_eq!(issue::with_done_checked(&checked, &done), checked);
    let clean = clean::clean(body);
    is_visible(&clean);
    assert_eq!(
        clean::clean(&clean),
        clean,
        "nothing hidden is left for a second look"
    );
}

fn configures_nothing(plan: &Plan) {
    assert_eq!(plan.settings, Settings::default());
    assert!(plan.setup.is_empty());
    assert!(
        plan.tasks
            .iter()
            .all(|task| task.settings == Settings::default())
    );
}

/// The first line is a comment of Sprag's own, the rest a comment of somebody.
pub(super) fn comment(data: &[u8]) {
    let text = text(data);
    let (own, body) = first_and_rest(&text);
    let name = RunName::of_job(Some("CI"), Some("fix"));
    if let Some(state) = marker::decode(own, &name) {
        let written = state.encode(&name);
        assert!(written.len() <= marker::MAX_MARKER_BYTES);
        let again = marker::decode(&written, &name).expect("a state is read again");
        assert_eq!(again.encode(&name), written);
    }
    let _ = phrase::find(body, "/sprag");
    let _ = RunName::of_other_job("CI", own);
    let _ = (refname::check_branch(own), refname::check_path(own));
}

pub(super) fn job_log(data: &[u8]) {
    let log = text(data);
    for budget in [200, 4_000] {
        let kept = job_log::failed_step(&log, budget);
        assert!(kept.len() <= budget, "{} of {budget}: {kept}", kept.len());
    }
}
