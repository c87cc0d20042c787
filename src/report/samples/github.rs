//! Sample runs with the full context of the texts on GitHub.

use super::{
    BASE, EventRecorder, FIRST, LEFT, attempt, blocked, budget, cancelled, check, commit,
    no_progress, partial, planning_only, success, warning,
};
use crate::domain::agent::{AgentEvent, TodoItem, TodoStatus};
use crate::domain::assess::AssessmentKind;
use crate::domain::event::{EventKind, PullRequestLine, PushLine, RetryKind, ReviewLine};
use crate::domain::review::{Finding, ReviewVerdict};
use crate::domain::summary::RunSummary;
use crate::domain::trigger::place::{Place, WorkflowRun};
use crate::report::markdown::ReportContext;

const SECOND: &str = "c0ffee1234567890abcdef1234567890abcdef12";

/// The context of a run on a pull request of a sample repository.
pub fn context() -> ReportContext {
    ReportContext {
        place: Place {
            server_url: "https://github.com".into(),
            repository: "example/reports".into(),
            run: Some(WorkflowRun {
                id: "901".into(),
                attempt: "1".into(),
            }),
            ..Place::default()
        },
        check_url: Some("https://github.com/example/reports/runs/77".into()),
        comment_url: Some("https://github.com/example/reports/pull/7#issuecomment-5".into()),
        artifact_url: Some(
            "https://github.com/example/reports/actions/runs/901/artifacts/3".into(),
        ),
        trigger_phrase: Some("/sprag".into()),
        head: Some(BASE.into()),
        state_line: Some("<!-- sprag:state v=1 run=01H-run -->".into()),
        asked_by: Some("octocat".into()),
        ..ReportContext::default()
    }
}

fn push(head: &str) -> PushLine {
    PushLine {
        branch: "feature/csv".into(),
        head: Some(head.into()),
        pushed: true,
        pull_request: Some(PullRequestLine {
            number: 7,
            url: "https://github.com/example/reports/pull/7".into(),
            opened: true,
        }),
        detail: "pushed with a lease on the old head".into(),
        ..PushLine::default()
    }
}

/// A run in its second task, second attempt.
pub fn live() -> RunSummary {
    let titles = ["Serve /report.csv", "Quote fields", "Document the route"];
    let mut recorder = EventRecorder::new(&titles, &["test"]);
    recorder
        .task("t1", titles[0])
        .turn(1, AssessmentKind::Changed, &[])
        .check("test", None);
    let verified = commit(&mut recorder, FIRST, "Serve reports as CSV");
    recorder.end_task(verified, &[attempt(1, &["src/report.rs"], &[])]);
    recorder
        .task("t2", titles[1])
        .turn(1, AssessmentKind::Changed, &[])
        .check("test", Some((LEFT, 2)))
        .schedule(RetryKind::Retry, 1, 3, &[]);
    recorder.turn(2, AssessmentKind::Changed, &[]);
    let todo = |text: &str, status| TodoItem {
        text: text.into(),
        status,
    };
    let items = vec![
        todo("Read the failing test", TodoStatus::Completed),
        todo("Quote fields that hold a comma", TodoStatus::InProgress),
        todo("Run the tests", TodoStatus::Pending),
    ];
    recorder.push(EventKind::Agent(AgentEvent::Todo { items }));
    recorder.summary()
}

fn begun() -> RunSummary {
    EventRecorder::new(&["Serve /report.csv"], &["test"]).summary()
}

/// Every kind of run by name, with its context.
pub fn github_runs() -> Vec<(&'static str, RunSummary, ReportContext)> {
    let around = context;
    let with = |mut summary: RunSummary, push: Option<PushLine>| {
        summary.push = push;
        summary
    };
    let rescued = PushLine {
        pushed: false,
        rescue: Some("sprag/rescue/01H-run".into()),
        pull_request: None,
        detail: "the branch is protected".into(),
        ..push(FIRST)
    };
    vec![
        (
            "success",
            with(success(), Some(push(SECOND))),
            ReportContext {
                ci_will_not_start: true,
                ..around()
            },
        ),
        (
            "partial",
            with(partial(), Some(push(FIRST))),
            ReportContext {
                ci_will_not_start: true,
                dispatched: vec!["ci.yml".into()],
                ..around()
            },
        ),
        ("rescued", with(budget(), Some(rescued)), around()),
        ("blocked", blocked(), around()),
        ("planning_only", planning_only(), around()),
        (
            "no_progress",
            no_progress(),
            ReportContext {
                report_only: true,
                trigger_phrase: None,
                ..around()
            },
        ),
        ("cancelled", cancelled(), around()),
        ("budget", with(budget(), Some(push(FIRST))), around()),
        ("unverified", super::unverified(), ReportContext::default()),
        ("live", live(), around()),
        ("begun", begun(), around()),
    ]
}

/// A run in which every text is `text`.
pub fn every_text(text: &str) -> RunSummary {
    let mut recorder = EventRecorder::new(&["a", "b", "c"], &["test"]);
    recorder
        .task("t1", "a")
        .turn(1, AssessmentKind::Changed, &[text]);
    let verified = commit(&mut recorder, FIRST, text);
    recorder.end_task(verified, &[attempt(1, &[text], &[])]);
    recorder
        .task("t2", "b")
        .turn(1, AssessmentKind::PlanningOnly, &[text])
        .turn(2, AssessmentKind::Changed, &[text]);
    recorder.push(EventKind::CheckEnded(Box::new(check(
        "test",
        Some((text, 2)),
    ))));
    recorder.push(reviewed(text));
    recorder.push(warning(text));
    let items = vec![TodoItem {
        text: text.into(),
        status: TodoStatus::InProgress,
    }];
    recorder.push(EventKind::Agent(AgentEvent::Todo { items }));
    let failed = crate::domain::outcome::Outcome::FailedReport {
        summary: text.into(),
    };
    recorder
        .end_task(
            failed,
            &[attempt(1, &[text], &[text]), attempt(2, &[text], &[text])],
        )
        .end();
    let mut summary = recorder.summary();
    summary.push = Some(PushLine {
        branch: text.into(),
        detail: text.into(),
        rescue: Some(text.into()),
        pushed: false,
        ..push(FIRST)
    });
    summary.tasks[1].failed_report = blocked().tasks[0].failed_report.clone();
    let (current, todo) = (summary.current.take(), std::mem::take(&mut summary.todo));
    let mut value = serde_json::to_value(&summary).unwrap();
    for place in texts_in(&value, "") {
        let mut other = value.clone();
        *other.pointer_mut(&place).unwrap() = text.into();
        // Keywords of the format are kept: with another one, the value is no summary.
        if serde_json::from_value::<RunSummary>(other.clone()).is_ok() {
            value = other;
        }
    }
    let mut summary: RunSummary = serde_json::from_value(value).unwrap();
    summary.current = current.map(|_| text.to_owned());
    summary.todo = todo;
    for item in &mut summary.todo {
        item.text = text.to_owned();
    }
    // GitHub itself gives the URL of the pull request.
    if let Some(line) = &mut summary.push {
        line.pull_request = push(FIRST).pull_request;
    }
    summary
}

/// A review with one open finding.
fn reviewed(text: &str) -> EventKind {
    EventKind::ReviewEnded(Box::new(ReviewLine {
        round: 1,
        of: 6,
        verdict: ReviewVerdict::NeedsFixes,
        incomplete: false,
        findings: vec![Finding {
            end_line: None,
            suggestion: None,
            path: text.into(),
            line: 7,
            text: text.into(),
            round: 1,
            resolved: false,
        }],
    }))
}

/// The JSON pointers of all texts in a JSON value.
fn texts_in(value: &serde_json::Value, at: &str) -> Vec<String> {
    use serde_json::Value;
    match value {
        Value::String(_) => vec![at.to_owned()],
        Value::Array(values) => {
            let of = |(index, value)| texts_in(value, &format!("{at}/{index}"));
            values.iter().enumerate().flat_map(of).collect()
        }
        Value::Object(fields) => {
            let of = |(name, value)| texts_in(value, &format!("{at}/{name}"));
            fields.iter().flat_map(of).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}
