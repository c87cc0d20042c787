//! The sentences that log, events and reports share, so that they never contradict each other.

use super::text;
use crate::domain::agent::Usage;
use crate::domain::assess::AssessmentKind;
use crate::domain::attempt::{Blame, BlamedTest, EvidenceLine, Phase, PhaseName, Role};
use crate::domain::checks::signals::Signal;
use crate::domain::checks::verdict::CheckResult;
use crate::domain::event::{PushLine, RetryKind, TurnProgress, WarningTopic};
use crate::domain::outcome::{Reason, RunStatus, TaskEnd};
use crate::domain::review::{Finding, ReviewVerdict};
use crate::domain::summary::{ReviewSummary, RunSummary, TaskSummary, TopicLine};
use crate::domain::trigger::approval::plan_to_approve;

/// Maximum number of indicators shown for one turn.
pub const MAX_INDICATORS: usize = 5;
/// Maximum length of an indicator in characters.
pub const INDICATOR_CHARS: usize = 120;

/// The indicators within these limits, each as one clean line.
pub fn indicators(all: &[String]) -> Vec<String> {
    let shown = all
        .iter()
        .map(|text| text::short_line(text, INDICATOR_CHARS));
    shown
        .filter(|text| !text.is_empty())
        .take(MAX_INDICATORS)
        .collect()
}

/// The assessment of the task's last turn, and its phase if the task has several.
pub type LastTurn = (Option<AssessmentKind>, Option<PhaseName>);

/// A scheduled nudge, retry or wait with its number.
pub fn counted(
    how: RetryKind,
    n: u32,
    of: u32,
    reason: &str,
    delay_ms: u64,
    last: LastTurn,
) -> String {
    match how {
        RetryKind::Retry => format!("retry {n} of {of}"),
        RetryKind::Output => format!("nudge {n} of {of}: {}", no_value(reason)),
        RetryKind::Nudge => format!("nudge {n} of {of}: {}", instead_of_work(last, reason)),
        RetryKind::Wait => {
            let why = text::short_line(reason, 300);
            format!("wait {n} of {of}, {}: {why}", text::duration(delay_ms))
        }
    }
}

/// A scheduled nudge, retry or wait, in the words of events and the detailed log.
pub fn scheduled(
    how: RetryKind,
    n: u32,
    of: u32,
    reason: &str,
    delay_ms: u64,
    last: LastTurn,
) -> String {
    match how {
        RetryKind::Retry => format!("Implementation retry {n}/{of}"),
        RetryKind::Output => format!("Asking for the value ({n}/{of}): {}", no_value(reason)),
        RetryKind::Wait => {
            let why = text::short_line(reason, 300);
            format!("Waiting {} ({n}/{of}): {why}", text::duration(delay_ms))
        }
        RetryKind::Nudge => {
            let (attempt, all) = (n.saturating_add(1), of.saturating_add(1));
            format!(
                "{}. Retrying (attempt {attempt}/{all})...",
                instead_of_work(last, reason)
            )
        }
    }
}

/// Why the agent is asked for the value of the output schema.
fn no_value(reason: &str) -> String {
    format!(
        "the final message does not fit the output schema: {}",
        text::short_line(reason, 300)
    )
}

/// Successful nudges, in the words of the log. `unchanged` is the assessment of the last turn without a
/// change.
pub fn resolved(k: u32, of: u32, unchanged: Option<AssessmentKind>) -> String {
    let what = match unchanged {
        Some(AssessmentKind::PlanningOnly) => "Planning without changes",
        Some(AssessmentKind::AwaitingInput) => "Waiting for an answer",
        Some(AssessmentKind::ReportsBlocked) => "Being blocked",
        Some(AssessmentKind::Empty) => "Silence",
        _ => "Lack of changes",
    };
    format!("{what} resolved on attempt {k}/{of}")
}

/// The outcome of a task in one line, with the failing checks if it is not done.
pub fn task_message(task: &TaskSummary) -> String {
    let failing = match task.reason {
        Some(Reason::NoProgress | Reason::PlanningOnly) => task.failing_checks(),
        _ => None,
    };
    match failing {
        None => task.message.clone(),
        Some(0) => format!("{}; every check passes", task.message),
        Some(1) => format!("{}; 1 check fails", task.message),
        Some(n) => format!("{}; {n} checks fail", task.message),
    }
}

/// The assessment of the task's last turn.
pub fn last_assessment(summary: &RunSummary, task: Option<&str>) -> Option<AssessmentKind> {
    let task = summary.task(task?)?;
    task.turns.last().map(|turn| turn.assessment)
}

/// The assessment of the last turn that left no change.
pub fn last_unchanged(summary: &RunSummary, task: Option<&str>) -> Option<AssessmentKind> {
    let task = summary.task(task?)?;
    let mut turns = task.turns.iter().rev().map(|turn| turn.assessment);
    turns.find(|kind| *kind != AssessmentKind::Changed)
}

fn instead_of_work(last: LastTurn, reason: &str) -> String {
    let (last, place) = last;
    let role = place.map_or(Role::Implementer, |place| place.role);
    let who = text::upper_first(role.as_str());
    // In these phases, the reason names the goal.
    let is_asked_for = place.is_some_and(|place| matches!(place.phase, Phase::Red | Phase::Fix));
    let known = match last.filter(|_| !is_asked_for) {
        Some(AssessmentKind::PlanningOnly) => "appears to have planned but not executed",
        Some(AssessmentKind::AwaitingInput) => "asked instead of executing",
        Some(AssessmentKind::ReportsBlocked) => {
            "says that it cannot continue but gave no FAILED report"
        }
        Some(AssessmentKind::ClaimsDone) => "says that the work is done but changed no file",
        Some(AssessmentKind::AlreadySatisfied) => {
            "says that nothing needs doing after it changed files"
        }
        Some(AssessmentKind::Empty) => "ended without a message or a change",
        Some(AssessmentKind::NoChange) => "changed no file",
        _ => {
            let reason = text::short_line(reason, 200);
            return if reason.is_empty() {
                format!("{who} changed no file")
            } else {
                format!("{who}: {}", reason.trim_end_matches('.'))
            };
        }
    };
    format!("{who} {known}")
}

/// Whether a finding is open, and since when.
pub fn finding_state(finding: &Finding) -> String {
    if finding.resolved {
        "resolved".to_owned()
    } else {
        format!("open since review {}", finding.round)
    }
}

/// What became of the commits on the remote, in one line.
pub fn push(push: &PushLine) -> String {
    let head = push
        .head
        .as_deref()
        .map_or(String::new(), |id| format!(" at {}", short_id(id)));
    let (word, branch) = match (&push.rescue, push.pushed) {
        (_, true) => ("pushed", &push.branch),
        (Some(rescue), false) => ("rescued to", rescue),
        (None, false) => ("not pushed", &push.branch),
    };
    let branch = text::short_line(branch, 200);
    let detail = text::short_line(&push.detail, 500);
    format!("{word} {branch}{head}: {detail}")
}

/// A review in one line.
pub fn review(review: &ReviewSummary) -> String {
    let verdict = review.verdict.as_str();
    let missing = if review.incomplete {
        " (no verdict)"
    } else {
        ""
    };
    let found = match (review.verdict, review.open) {
        (ReviewVerdict::Acceptable, _) => String::new(),
        (ReviewVerdict::NeedsFixes, open) => {
            format!(", {} open", text::count(u64::from(open), "finding"))
        }
    };
    format!(
        "review {} of at most {}: {verdict}{missing}{found}",
        review.round, review.of
    )
}

/// The tests that a check has counted, after its outcome; empty if it has counted none.
pub fn counts(result: &CheckResult) -> String {
    let failed = result.counts.failed.filter(|&n| n > 0);
    let failed = failed.map(|n| format!("{n} failed"));
    let passed = result.counts.passed.map(|n| format!("{n} passed"));
    let parts: Vec<String> = failed.into_iter().chain(passed).collect();
    if parts.is_empty() {
        String::new()
    } else {
        format!(": {}", parts.join(", "))
    }
}

/// The assessment of a turn in words. How an agent stopped is in the detail.
pub fn assessment(kind: AssessmentKind, detail: &str) -> String {
    use AssessmentKind as K;
    let words = match kind {
        K::AgentCrashed | K::AgentTransient if !detail.trim().is_empty() => {
            return text::short_line(detail, 300);
        }
        K::AgentUnavailable => "agent unavailable",
        K::AgentTransient => "temporary error of the agent's API",
        K::AgentCrashed => "agent crashed",
        K::TurnTimeout => "turn timed out",
        K::PolicyViolation => "policy violation",
        K::FailedReport => "FAILED report",
        K::Changed => "changed files",
        K::AwaitingInput => "asked and waited, changed nothing",
        K::ReportsBlocked => "said it is blocked, changed nothing",
        K::AlreadySatisfied => "said nothing needs doing",
        K::ClaimsDone => "said it is done, changed nothing",
        K::PlanningOnly => "planned, changed nothing",
        K::Empty => "said nothing, changed nothing",
        K::NoChange => "changed nothing",
        K::Unknown => "state of the repository unknown",
    };
    words.to_owned()
}

/// A status in words for people.
pub fn status(status: RunStatus) -> &'static str {
    match status {
        RunStatus::Success => "success",
        RunStatus::Unverified => "unverified",
        RunStatus::Answered => "answered",
        RunStatus::NoWork => "no work",
        RunStatus::Failed => "failed",
        RunStatus::Partial => "partly done",
        RunStatus::Invalid => "invalid",
        RunStatus::Blocked => "blocked",
        RunStatus::Environment => "environment not usable",
        RunStatus::Budget => "budget used up",
        RunStatus::Deadline => "deadline reached",
        RunStatus::Cancelled => "cancelled",
    }
}

/// A reason in words, for places where the code alone is not enough.
pub fn reason(reason: Reason) -> &'static str {
    match reason {
        Reason::Verified => "the checks passed",
        Reason::Unverified => "no check confirms it",
        Reason::AlreadySatisfied => "nothing needed doing",
        Reason::NoProgress => "the agent made no progress",
        Reason::PlanningOnly => "the agent never changed a file",
        Reason::Answered => "the agent answered and changed nothing",
        Reason::NeedsAnswer => "the agent asks a question that a person has to answer",
        Reason::VerificationFailed => "the checks still fail and no retry is left",
        Reason::RepeatingFailure => "the same failure occurred repeatedly",
        Reason::FailedReport => "the agent reported that it cannot do the task",
        Reason::NeedsPermission => "the work needs your permission to change protected paths",
        Reason::PolicyViolation => "the agent violated the policy",
        Reason::ReviewFindings => "a review still finds something to fix",
        Reason::Acceptable => "the reviewer accepts the change",
        Reason::OutputMismatch => "the final message does not fit the output schema",
        Reason::TddViolation => "no test failed before the work was done",
        Reason::AgentUnavailable => "no agent is available",
        Reason::AgentCrashed => "the agent crashed",
        Reason::TurnTimeout => "the agent's turn reached its time limit",
        Reason::CommitRejected => "the commit was rejected",
        Reason::UnstableChecks => "the checks change the work tree every time they run",
        Reason::ChangedExpectations => {
            "the checks pass only with changed files that judge the work, or with files that no commit has"
        }
        Reason::Budget => "the token or cost limit was reached",
        Reason::Deadline => "the run's deadline was reached",
        Reason::Cancelled => "the run was stopped",
        Reason::DependencyFailed => "a task that it depends on is not done",
        Reason::NoWork => "there was nothing to do",
        Reason::Invalid => "usage, configuration or plan is not valid",
        Reason::Environment => "an agent, a program, git, GitHub or a permission is missing",
        Reason::Internal => "internal error",
        Reason::Refused => "request refused",
        Reason::Conflict => "both sides changed the same lines",
        Reason::MissingShard => "no job delivered the task",
    }
}

/// The words of the agent with which a task ended, in full, and their heading: its answer, its plan or its question.
pub fn last_words(task: &TaskSummary) -> Option<(&'static str, &str)> {
    let heading = match task.reason {
        Some(Reason::Answered) => "Answer",
        Some(Reason::Verified) => "Plan",
        _ => "Question of the agent",
    };
    Some((heading, task.answer.as_deref().or(task.question())?))
}

/// The progress of a turn in one line.
pub fn turn_progress(progress: &TurnProgress) -> String {
    let last = progress.last_tool.as_deref();
    let changed = progress.changed_files.map(u64::from);
    let parts = [
        last.map(|tool| format!("last: {}", text::short_line(tool, 100))),
        changed.map(|count| format!("{} changed", text::count(count, "file"))),
        usage(&progress.usage),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    let elapsed = text::duration(progress.elapsed_ms);
    if parts.is_empty() {
        format!("still working after {elapsed}")
    } else {
        format!("still working after {elapsed}: {}", parts.join(" · "))
    }
}

/// Tokens and cost in one phrase, if any of them is known.
pub fn usage(usage: &Usage) -> Option<String> {
    let tokens = match (usage.tokens_in, usage.tokens_out) {
        (None, None) => None,
        (a, b) => {
            let part = |n: Option<u64>| n.map_or_else(|| "?".to_owned(), text::tokens);
            let cached = usage.tokens_cached.filter(|cached| *cached > 0);
            let cached = cached
                .map(|n| format!(" ({} cached)", text::tokens(n)))
                .unwrap_or_default();
            Some(format!("{} in{cached} / {} out tokens", part(a), part(b)))
        }
    };
    let cost = usage.cost_usd.map(text::dollars);
    let parts: Vec<String> = tokens.into_iter().chain(cost).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// What the checks show of a task, in one line; empty if nothing is known.
pub fn evidence(task: &TaskSummary) -> String {
    let says: Vec<String> = task.evidence.iter().map(EvidenceLine::says).collect();
    says.join("; ")
}

/// The first signals of a task, in one line; empty if it has none.
pub fn signals(task: &TaskSummary) -> String {
    let shown: Vec<String> = task
        .signals
        .iter()
        .take(MAX_SIGNALS)
        .map(Signal::says)
        .collect();
    let more = task.signals.len().saturating_sub(shown.len());
    match (shown.is_empty(), more) {
        (true, _) => String::new(),
        (false, 0) => format!("worth a look: {}", shown.join("; ")),
        (false, more) => format!("worth a look: {}; and {more} more", shown.join("; ")),
    }
}

/// Maximum number of signals of a task in one line.
const MAX_SIGNALS: usize = 3;

/// Whether a task has proofs: checks that were run to find out what a verdict is worth.
pub fn has_proofs(task: &TaskSummary) -> bool {
    !task.proofs.is_empty()
}

/// The failing tests, if the cause of any is known.
pub fn blamed(tests: &[BlamedTest]) -> &[BlamedTest] {
    if tests.iter().all(|test| test.blame == Blame::Unknown) {
        &[]
    } else {
        tests
    }
}

/// Whether the message of a finished task says more than that its checks passed: they did not, not as before, or
/// not each time.
pub fn is_done_with_a_reservation(task: &TaskSummary) -> bool {
    let fails = task.reason == Some(Reason::Unverified) && !task.failing_tests.is_empty();
    let is_flaky = task.reason == Some(Reason::Verified)
        && task
            .failing_tests
            .iter()
            .any(|test| test.blame == Blame::Flaky);
    let is_unproved = task.reason == Some(Reason::ChangedExpectations);
    task.status == TaskEnd::Done && (fails || is_flaky || is_unproved)
}

/// The tasks with the reason of a run's end that are not plainly done.
pub fn decisive(summary: &RunSummary, reason: Reason) -> Vec<&TaskSummary> {
    let of_reason = |task: &&TaskSummary| task.reason == Some(reason);
    let tasks = summary.tasks.iter().filter(of_reason);
    tasks
        .filter(|task| task.status != TaskEnd::Done || is_done_with_a_reservation(task))
        .collect()
}

/// The end of a run in words, where no single task decided it.
pub fn end(summary: &RunSummary, reason: Reason) -> String {
    let mut selected = summary.tasks.iter().filter(|task| task.selected);
    let is_done = summary.push.is_some() && selected.all(|task| task.status == TaskEnd::Done);
    match reason {
        Reason::Verified if plan_to_approve(summary).is_some() => {
            "the plan is drafted, and nothing is done until somebody approves it".to_owned()
        }
        Reason::Environment if is_done => "the work is done, but could not be delivered".to_owned(),
        Reason::Environment => error(summary).unwrap_or_else(|| self::reason(reason).to_owned()),
        reason => self::reason(reason).to_owned(),
    }
}

/// The first line of the error that ended the run.
fn error(summary: &RunSummary) -> Option<String> {
    let mut topics = summary.warning_topics.iter().rev();
    let is_error = |line: &&TopicLine| matches!(line.topic, WarningTopic::Error { .. });
    let text = summary.warnings.get(topics.find(is_error)?.warning)?;
    let first = text.lines().next()?.trim_end_matches(':');
    Some(text::short_line(first, 300))
}

/// The first twelve characters of a commit's id, cleaned.
pub fn short_id(id: &str) -> String {
    let id = text::line(id);
    id.chars().take(12).collect()
}

/// Whether a task was worked on but is not done.
pub fn is_undone(task: &TaskSummary) -> bool {
    task.reason.is_some() && task.status != TaskEnd::Done
}
