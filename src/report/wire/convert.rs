//! Converts internal events to public ones.

use super::{Body, WireCheckOutcome, WireNote};
use crate::domain::agent::AgentEvent;
use crate::domain::attempt::ProofLine;
use crate::domain::checks::verdict::{CheckOutcome, CheckResult};
use crate::domain::event::{
    Event, EventKind, ReviewLine, RunStarted, TaskEnded, TurnLine, TurnProgress, WarningTopic,
};
use crate::domain::outcome::signal_name;
use crate::domain::summary::{HistoryLine, PlanLine, RunSummary, StateLine};
use crate::report::{sentence, text};

pub(super) fn body(event: &Event, summary: &RunSummary) -> Body {
    match event.kind.clone() {
        EventKind::RunStarted(started) => run_started(*started),
        EventKind::TaskStarted { title } => Body::TaskStarted { title },
        EventKind::TurnStarted {
            purpose,
            agent,
            prompt,
        } => Body::TurnStarted {
            purpose,
            agent,
            prompt,
        },
        EventKind::Agent(agent) => agent_body(agent),
        EventKind::TurnProgress(progress) => turn_progress(*progress),
        EventKind::TurnEnded {
            exit,
            elapsed_ms: duration_ms,
            usage,
        } => Body::TurnEnded {
            exit,
            duration_ms,
            usage,
        },
        EventKind::TurnAssessed(line) => turn_assessed(*line),
        EventKind::ReviewEnded(line) => review_ended(*line),
        EventKind::SetupStarted { command } => Body::SetupStarted { command },
        EventKind::SetupEnded {
            command,
            exit,
            passed,
            elapsed_ms: duration_ms,
            log,
        } => Body::SetupEnded {
            command,
            exit,
            passed,
            duration_ms,
            log,
        },
        EventKind::CheckStarted { name, check: kind } => Body::CheckStarted { name, kind },
        EventKind::CheckEnded(result) => check_ended(*result),
        EventKind::RetryScheduled {
            how: kind,
            n,
            of,
            reason,
            indicators,
            delay_ms,
        } => {
            let last = sentence::last_assessment(summary, event.task.as_deref());
            let last = (last, event.phase);
            Body::RetryScheduled {
                message: sentence::scheduled(kind, (n, of), &reason, delay_ms, last),
                kind,
                n,
                of,
                reason,
                indicators: sentence::indicators(&indicators),
                delay_ms,
            }
        }
        EventKind::NudgeResolved { k, of } => {
            let unchanged = sentence::last_unchanged(summary, event.task.as_deref());
            let message = sentence::resolved((k, of), unchanged);
            note(message, WireNote::NudgeResolved, Some((k, of)), Vec::new())
        }
        EventKind::ProofStarted { .. } => Body::ProofStarted {},
        EventKind::ProofEnded(line) => proof_ended(*line),
        EventKind::VerificationSkipped { reason } => Body::VerificationSkipped { reason },
        EventKind::CommitCreated {
            commit,
            subject,
            files,
        } => Body::CommitCreated {
            commit,
            subject,
            files,
        },
        EventKind::AgentCommits { commits } => agent_commits(commits),
        EventKind::CommitRejected { reason, by_hook } => Body::CommitRejected { reason, by_hook },
        EventKind::PushEnded(push) => Body::PushEnded(*push),
        EventKind::TaskEnded(ended) => task_ended(*ended),
        EventKind::CancelRequested { signal } => Body::CancelRequested { signal },
        EventKind::HostsDenied { hosts } => Body::NetworkDenied { hosts },
        EventKind::Warning { message, topic } => warning(message, topic),
        EventKind::RunEnded {
            status,
            reason,
            exit_code,
            head,
            changed_files,
        } => Body::RunEnded {
            status,
            reason,
            exit_code,
            head,
            changed_files,
        },
    }
}

fn proof_ended(line: ProofLine) -> Body {
    Body::ProofEnded {
        result: line.result,
        message: line.says(),
        details: line.details,
        duration_ms: line.elapsed_ms,
    }
}

fn agent_commits(commits: Vec<String>) -> Body {
    let count = text::count(commits.len() as u64, "commit");
    let message = format!("the agent made {count} itself");
    note(message, WireNote::AgentCommits, None, commits)
}

fn warning(message: String, topic: Option<WarningTopic>) -> Body {
    Body::Warning {
        message,
        topic,
        code: None,
        k: None,
        of: None,
        commits: Vec::new(),
    }
}

fn turn_progress(progress: TurnProgress) -> Body {
    Body::TurnProgress {
        duration_ms: progress.elapsed_ms,
        last_tool: progress.last_tool,
        changed_files: progress.changed_files,
        usage: progress.usage,
    }
}

fn review_ended(line: ReviewLine) -> Body {
    Body::ReviewEnded {
        round: line.round,
        of: line.of,
        verdict: line.verdict,
        incomplete: line.incomplete,
        findings: line.findings,
    }
}

fn note(message: String, code: WireNote, counts: Option<(u32, u32)>, commits: Vec<String>) -> Body {
    let (k, of) = counts.unzip();
    Body::Warning {
        message,
        topic: None,
        code: Some(code),
        k,
        of,
        commits,
    }
}

fn run_started(started: RunStarted) -> Body {
    Body::RunStarted {
        run_id: started.run_id,
        plan: PlanLine {
            title: started.plan_title,
            path: started.plan_path,
        },
        branch: started.branch,
        base: started.base,
        agent: started.agent,
        checks: started.checks,
        tasks: started.tasks,
        run_dir: started.run_dir,
        resumed: started.resumed,
        name: started.name,
        limits: started.limits,
        sandbox: started.sandbox,
        gateway: started.gateway,
    }
}

fn agent_body(event: AgentEvent) -> Body {
    match event {
        AgentEvent::SessionStarted { session_id } => Body::AgentSession { session_id },
        AgentEvent::Message { text } => Body::AgentMessage {
            text,
            reasoning: false,
        },
        AgentEvent::Reasoning { text } => Body::AgentMessage {
            text,
            reasoning: true,
        },
        AgentEvent::ToolCall { id, name, summary } => Body::AgentToolCall { id, name, summary },
        AgentEvent::ToolResult {
            id,
            ok,
            exit_code,
            summary,
        } => Body::AgentToolResult {
            id,
            ok,
            exit_code,
            summary,
        },
        AgentEvent::FileChange { path, kind } => Body::AgentFileChange { path, kind },
        AgentEvent::Todo { items } => Body::AgentTodo { items },
        AgentEvent::Usage(usage) => Body::AgentUsage { usage },
        AgentEvent::Error { message, is_final } => Body::AgentError { message, is_final },
        AgentEvent::Raw { line } => Body::AgentRaw { line },
    }
}

fn turn_assessed(line: TurnLine) -> Body {
    Body::TurnAssessed {
        purpose: line.purpose,
        assessment: line.assessment,
        indicators: sentence::indicators(&line.indicators),
        detail: line.detail,
        before: StateLine::from(&line.before),
        after: StateLine::from(&line.after),
        exit: line.exit,
        duration_ms: line.elapsed_ms,
        usage: line.usage,
        failed_report: line.failed_report,
        notes: line.notes.into_iter().map(|note| note.text).collect(),
    }
}

fn check_ended(result: CheckResult) -> Body {
    let (outcome, exit_code, detail) = match result.outcome {
        CheckOutcome::Passed => (WireCheckOutcome::Passed, Some(0), None),
        CheckOutcome::Failed { exit } => (WireCheckOutcome::Failed, Some(exit), None),
        CheckOutcome::Signalled { signal } => {
            (WireCheckOutcome::Signalled, None, Some(signal_name(signal)))
        }
        CheckOutcome::TimedOut { after_ms } => {
            let detail = format!("after {}", text::duration(after_ms));
            (WireCheckOutcome::TimedOut, None, Some(detail))
        }
        CheckOutcome::NotStarted { why, .. } => (WireCheckOutcome::NotStarted, None, Some(why)),
        CheckOutcome::Aborted => (WireCheckOutcome::Aborted, None, None),
        CheckOutcome::Skipped { because } => (WireCheckOutcome::Skipped, None, Some(because)),
    };
    Body::CheckEnded {
        name: result.name,
        kind: result.kind,
        outcome,
        passed: outcome == WireCheckOutcome::Passed,
        exit_code,
        detail,
        passed_count: result.counts.passed,
        failed_count: result.counts.failed,
        duration_ms: result.elapsed_ms,
        log: result.log,
        errors: result.errors,
    }
}

fn task_ended(ended: TaskEnded) -> Body {
    Body::TaskEnded {
        status: ended.outcome.task_end(),
        reason: ended.outcome.reason(),
        message: ended.outcome.message(),
        commit: ended.outcome.commit().map(|id| id.0.clone()),
        attempts: ended.attempts,
        turns: ended.turns,
        nudges: ended.nudges,
        verifications: ended.verifications,
        history: ended.history.iter().map(HistoryLine::from).collect(),
        changes_made: ended.changes_made,
        changed_files: ended.changed_files,
        structured_output: ended.structured_output,
        patch: ended.patch,
        agent_commits: ended.agent_commits,
        duration_ms: ended.elapsed_ms,
    }
}
