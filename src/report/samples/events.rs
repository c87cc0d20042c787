//! Single sample events for the tests of the reports.

use super::{FIRST, check, planning_recorder, success_recorder, warning};
use crate::domain::agent::{AgentEvent, TodoItem, TodoStatus, Usage};
use crate::domain::attempt::{Proof, ProofLine, ProofWord};
use crate::domain::checks::counts::Counts;
use crate::domain::checks::verdict::{CheckOutcome, CheckResult};
use crate::domain::event::{
    Event, EventKind, PullRequestLine, PushLine, RetryKind, ReviewLine, SetupLine, TurnProgress,
};
use crate::domain::review::{Finding, ReviewVerdict};
use crate::domain::sandbox::DeniedHost;

/// A push of two commits.
pub fn pushed() -> PushLine {
    PushLine {
        branch: "feature/csv".into(),
        head: Some(FIRST.into()),
        pushed: true,
        pull_request: Some(PullRequestLine {
            number: 7,
            url: "https://example.invalid/pull/7".into(),
            opened: true,
        }),
        detail: "2 commits".into(),
        ..PushLine::default()
    }
}

/// A nudge after a turn with planning only.
pub fn nudge() -> Event {
    let events = planning_recorder().events;
    let is_nudge = |event: &Event| matches!(event.kind, EventKind::RetryScheduled { .. });
    events.into_iter().find(is_nudge).unwrap()
}

pub fn agent_events() -> Vec<AgentEvent> {
    let todo = |text: &str, status| TodoItem {
        text: text.into(),
        status,
    };
    vec![
        AgentEvent::SessionStarted {
            session_id: "session-1".into(),
        },
        AgentEvent::Message {
            text: "I read the router.\nNow the CSV.".into(),
        },
        AgentEvent::Reasoning {
            text: "columns first".into(),
        },
        AgentEvent::ToolCall {
            id: Some("c1".into()),
            name: "shell".into(),
            summary: "cargo test\n::error::x".into(),
        },
        AgentEvent::ToolResult {
            id: Some("c1".into()),
            ok: false,
            exit_code: Some(101),
            summary: "test csv ... FAILED".into(),
        },
        AgentEvent::FileChange {
            path: "src/report.rs".into(),
            kind: "update".into(),
        },
        AgentEvent::Todo {
            items: vec![
                todo("read", TodoStatus::Completed),
                todo("write", TodoStatus::InProgress),
                todo("test", TodoStatus::Pending),
            ],
        },
        AgentEvent::Usage(Usage {
            tokens_in: Some(5),
            ..Usage::default()
        }),
        AgentEvent::Error {
            message: "Reconnecting 2/5".into(),
            is_final: false,
        },
        AgentEvent::Raw {
            line: "not \u{1b}[31mJSON".into(),
        },
    ]
}

/// A finding of a review.
pub fn finding(resolved: bool) -> Finding {
    Finding {
        end_line: None,
        suggestion: None,
        path: "src/report.rs".into(),
        line: 12,
        text: "the header is written twice".into(),
        round: 1,
        resolved,
    }
}

/// At least one event of every kind.
pub fn every_event() -> Vec<Event> {
    let mut recorder = success_recorder();
    recorder.events.pop();
    recorder.at = (Some("t2".into()), Some(1), Some(1));
    for agent in agent_events() {
        recorder.push(EventKind::Agent(agent));
    }
    recorder.push(EventKind::TurnProgress(Box::new(TurnProgress {
        elapsed_ms: 61_000,
        last_tool: Some("shell cargo test".into()),
        changed_files: Some(2),
        usage: Usage::default(),
    })));
    recorder.push(EventKind::SetupStarted {
        command: "npm ci".into(),
    });
    recorder.push(EventKind::SetupEnded(Box::new(SetupLine {
        command: "npm ci".into(),
        exit: "code 1".into(),
        passed: false,
        elapsed_ms: 1_200,
        log: Some("verify/setup-01.log".into()),
    })));
    for outcome in [
        CheckOutcome::Signalled { signal: 9 },
        CheckOutcome::TimedOut { after_ms: 600_000 },
        CheckOutcome::NotStarted {
            program: "sh".into(),
            why: "no such directory".into(),
        },
        CheckOutcome::Aborted,
        CheckOutcome::Skipped {
            because: "the build failed".into(),
        },
    ] {
        let result = CheckResult {
            outcome,
            counts: Counts::default(),
            ..check("lint", None)
        };
        recorder.push(EventKind::CheckEnded(Box::new(result)));
    }
    recorder.push(EventKind::ProofStarted {});
    recorder.push(EventKind::ProofEnded(Box::new(ProofLine {
        proof: Proof::Baseline,
        result: ProofWord::Failed,
        details: vec!["tests::total".into()],
        attempt: 1,
        elapsed_ms: 700,
    })));
    recorder.push(EventKind::ReviewEnded(Box::new(ReviewLine {
        round: 1,
        of: 6,
        verdict: ReviewVerdict::NeedsFixes,
        incomplete: false,
        findings: vec![finding(false)],
    })));
    recorder.schedule(RetryKind::Wait, 1, 5, &[]);
    recorder.push(EventKind::VerificationSkipped {
        reason: "known".into(),
    });
    recorder.push(EventKind::AgentCommits {
        commits: vec!["abc123 somebody Fix".into()],
    });
    recorder.push(EventKind::CommitRejected {
        reason: "hook says no".into(),
        by_hook: true,
    });
    recorder.push(EventKind::PushEnded(Box::new(pushed())));
    recorder.push(EventKind::CancelRequested { signal: 2 });
    recorder.push(EventKind::HostsDenied {
        hosts: vec![DeniedHost {
            host: "evil.example.com".into(),
            times: 2,
        }],
    });
    recorder.push(warning("the plan file is not in the work tree"));
    recorder.end();
    recorder.events
}
