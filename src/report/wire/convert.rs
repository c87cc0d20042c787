//! Converts internal events to public ones, and an agent's public events back.

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
    match &event.kind {
        EventKind::RunStarted(started) => run_started(started),
        EventKind::TaskStarted { title } => Body::TaskStarted {
            title: title.clone(),
        },
        EventKind::TurnStarted {
            purpose,
            agent,
            prompt,
        } => Body::TurnStarted {
            purpose: purpose.clone(),
            agent: agent.clone(),
            prompt: prompt.clone(),
        },
        EventKind::Agent(agent) => agent_body(agent),
        EventKind::TurnProgress(progress) => turn_progress(progress),
        EventKind::TurnEnded {
            exit,
            elapsed_ms,
            usage,
        } => Body::TurnEnded {
            exit: exit.clone(),
            duration_ms: *elapsed_ms,
            usage: *usage,
        },
        EventKind::TurnAssessed(line) => turn_assessed(line),
        EventKind::ReviewEnded(line) => review_ended(line),
        EventKind::SetupStarted { command } => Body::SetupStarted {
            command: command.clone(),
        },
        EventKind::SetupEnded {
            command,
            exit,
            passed,
            elapsed_ms,
            log,
        } => Body::SetupEnded {
            command: command.clone(),
            exit: exit.clone(),
            passed: *passed,
            duration_ms: *elapsed_ms,
            log: log.clone(),
        },
        EventKind::CheckStarted { name, check } => Body::CheckStarted {
            name: name.clone(),
            kind: *check,
        },
        EventKind::CheckEnded(result) => check_ended(result),
        EventKind::RetryScheduled {
            how,
            n,
            of,
            reason,
            indicators,
            delay_ms,
        } => {
            let last = sentence::last_assessment(summary, event.task.as_deref());
            let last = (last, event.phase);
            Body::RetryScheduled {
                kind: *how,
                n: *n,
                of: *of,
                reason: reason.clone(),
                indicators: sentence::indicators(indicators),
                delay_ms: *delay_ms,
                message: sentence::scheduled(*how, (*n, *of), reason, *delay_ms, last),
            }
        }
        EventKind::NudgeResolved { k, of } => {
            let unchanged = sentence::last_unchanged(summary, event.task.as_deref());
            let counts = (*k, *of);
            let message = sentence::resolved(counts, unchanged);
            note(message, WireNote::NudgeResolved, Some(counts), Vec::new())
        }
        EventKind::ProofStarted { .. } => Body::ProofStarted {},
        EventKind::ProofEnded(line) => proof_ended(line),
        EventKind::VerificationSkipped { reason } => Body::VerificationSkipped {
            reason: reason.clone(),
        },
        EventKind::CommitCreated {
            commit,
            subject,
            files,
        } => Body::CommitCreated {
            commit: commit.clone(),
            subject: subject.clone(),
            files: files.clone(),
        },
        EventKind::AgentCommits { commits } => agent_commits(commits),
        EventKind::CommitRejected { reason, by_hook } => Body::CommitRejected {
            reason: reason.clone(),
            by_hook: *by_hook,
        },
        EventKind::PushEnded(push) => Body::PushEnded((**push).clone()),
        EventKind::TaskEnded(ended) => task_ended(ended),
        EventKind::CancelRequested { signal } => Body::CancelRequested { signal: *signal },
        EventKind::HostsDenied { hosts } => Body::NetworkDenied {
            hosts: hosts.clone(),
        },
        EventKind::Warning { message, topic } => warning(message, topic.as_ref()),
        EventKind::RunEnded {
            status,
            reason,
            exit_code,
            head,
            changed_files,
        } => Body::RunEnded {
            status: *status,
            reason: *reason,
            exit_code: *exit_code,
            head: head.clone(),
            changed_files: changed_files.clone(),
        },
    }
}

fn proof_ended(line: &ProofLine) -> Body {
    Body::ProofEnded {
        result: line.result,
        details: line.details.clone(),
        message: line.says(),
        duration_ms: line.elapsed_ms,
    }
}

fn agent_commits(commits: &[String]) -> Body {
    let count = text::count(commits.len() as u64, "commit");
    let message = format!("the agent made {count} itself");
    note(message, WireNote::AgentCommits, None, commits.to_vec())
}

fn warning(message: &str, topic: Option<&WarningTopic>) -> Body {
    Body::Warning {
        message: message.to_owned(),
        topic: topic.cloned(),
        code: None,
        k: None,
        of: None,
        commits: Vec::new(),
    }
}

fn turn_progress(progress: &TurnProgress) -> Body {
    Body::TurnProgress {
        duration_ms: progress.elapsed_ms,
        last_tool: progress.last_tool.clone(),
        changed_files: progress.changed_files,
        usage: progress.usage,
    }
}

fn review_ended(line: &ReviewLine) -> Body {
    Body::ReviewEnded {
        round: line.round,
        of: line.of,
        verdict: line.verdict,
        incomplete: line.incomplete,
        findings: line.findings.clone(),
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

fn run_started(started: &RunStarted) -> Body {
    Body::RunStarted {
        run_id: started.run_id.clone(),
        plan: PlanLine {
            title: started.plan_title.clone(),
            path: started.plan_path.clone(),
        },
        branch: started.branch.clone(),
        base: started.base.clone(),
        agent: started.agent.clone(),
        checks: started.checks.clone(),
        tasks: started.tasks.clone(),
        run_dir: started.run_dir.clone(),
        resumed: started.resumed,
        name: started.name.clone(),
        limits: started.limits.clone(),
        sandbox: started.sandbox.clone(),
        gateway: started.gateway.clone(),
    }
}

fn agent_body(event: &AgentEvent) -> Body {
    match event.clone() {
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

fn turn_assessed(line: &TurnLine) -> Body {
    Body::TurnAssessed {
        purpose: line.purpose.clone(),
        assessment: line.assessment,
        indicators: sentence::indicators(&line.indicators),
        detail: line.detail.clone(),
        before: StateLine::from(&line.before),
        after: StateLine::from(&line.after),
        exit: line.exit.clone(),
        duration_ms: line.elapsed_ms,
        usage: line.usage,
        failed_report: line.failed_report.clone(),
        notes: line.notes.iter().map(|note| note.text.clone()).collect(),
    }
}

fn check_ended(result: &CheckResult) -> Body {
    let (outcome, exit_code, detail) = match &result.outcome {
        CheckOutcome::Passed => (WireCheckOutcome::Passed, Some(0), None),
        CheckOutcome::Failed { exit } => (WireCheckOutcome::Failed, Some(*exit), None),
        CheckOutcome::Signalled { signal } => (
            WireCheckOutcome::Signalled,
            None,
            Some(signal_name(*signal)),
        ),
        CheckOutcome::TimedOut { after_ms } => {
            let detail = format!("after {}", text::duration(*after_ms));
            (WireCheckOutcome::TimedOut, None, Some(detail))
        }
        CheckOutcome::NotStarted { why, .. } => {
            (WireCheckOutcome::NotStarted, None, Some(why.clone()))
        }
        CheckOutcome::Aborted => (WireCheckOutcome::Aborted, None, None),
        CheckOutcome::Skipped { because } => {
            (WireCheckOutcome::Skipped, None, Some(because.clone()))
        }
    };
    Body::CheckEnded {
        name: result.name.clone(),
        kind: result.kind,
        outcome,
        passed: outcome == WireCheckOutcome::Passed,
        exit_code,
        detail,
        passed_count: result.counts.passed,
        failed_count: result.counts.failed,
        duration_ms: result.elapsed_ms,
        log: result.log.clone(),
        errors: result.errors.clone(),
    }
}

fn task_ended(ended: &TaskEnded) -> Body {
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
        changed_files: ended.changed_files.clone(),
        structured_output: ended.structured_output.clone(),
        patch: ended.patch.clone(),
        agent_commits: ended.agent_commits,
        duration_ms: ended.elapsed_ms,
    }
}
