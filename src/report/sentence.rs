//! The sentences that log, events and reports share, so that they never contradict each other.

use super::text;
use crate::domain::agent::Usage;
use crate::domain::assess::AssessmentKind;
use crate::domain::assess::message::FailedReport;
use crate::domain::attempt::{Blame, BlamedTest, EvidenceLine, Phase, Role};
use crate::domain::checks::signals::Signal;
use crate::domain::checks::verdict::CheckResult;
use crate::domain::event::{Event, PushLine, RetryKind, RetryLine, TurnProgress};
use crate::domain::outcome::{Reason, RunStatus, TaskEnd};
use crate::domain::review::{Finding, ReviewVerdict};
use crate::domain::summary::{ReviewSummary, RunSummary, TaskSummary, TurnSummary};
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

/// A scheduled nudge, retry or wait with its number. The sentences of events and of the detailed log are longer.
pub fn retry(line: &RetryLine, event: &Event, summary: &RunSummary, is_long: bool) -> String {
    let RetryLine { n, of, .. } = line;
    let why = match line.how {
        RetryKind::Nudge => instead_of_work(line, event, summary),
        RetryKind::Output => format!(
            "the final message does not fit the output schema: {}",
            text::short_line(&line.reason, 300)
        ),
        RetryKind::Retry | RetryKind::Wait => text::short_line(&line.reason, 300),
    };
    let delay = text::duration(line.delay_ms);
    match (line.how, is_long) {
        (RetryKind::Retry, false) => format!("retry {n} of {of}"),
        (RetryKind::Retry, true) => format!("Implementation retry {n}/{of}"),
        (RetryKind::Output | RetryKind::Nudge, false) => format!("nudge {n} of {of}: {why}"),
        (RetryKind::Output, true) => format!("Asking for the value ({n}/{of}): {why}"),
        (RetryKind::Nudge, true) => {
            let (attempt, all) = (n.saturating_add(1), of.saturating_add(1));
            format!("{why}. Retrying (attempt {attempt}/{all})...")
        }
        (RetryKind::Wait, false) => format!("wait {n} of {of}, {delay}: {why}"),
        (RetryKind::Wait, true) => format!("Waiting {delay} ({n}/{of}): {why}"),
    }
}

/// Successful nudges, in the words of the log: what the last turn without a change did instead.
pub fn resolved(k: u32, of: u32, event: &Event, summary: &RunSummary) -> String {
    let mut turns = turns_of(event, summary).iter().rev();
    let unchanged = turns.find(|turn| turn.assessment != AssessmentKind::Changed);
    let what = match unchanged.map(|turn| turn.assessment) {
        Some(AssessmentKind::PlanningOnly) => "Planning without changes",
        Some(AssessmentKind::AwaitingInput) => "Waiting for an answer",
        Some(AssessmentKind::ReportsBlocked) => "Being blocked",
        Some(AssessmentKind::Empty) => "Silence",
        _ => "Lack of changes",
    };
    format!("{what} resolved on attempt {k}/{of}")
}

/// The turns of the task of an event.
fn turns_of<'s>(event: &Event, summary: &'s RunSummary) -> &'s [TurnSummary] {
    let task = event.place.task.as_deref().and_then(|id| summary.task(id));
    task.map_or(&[], |task| &task.turns)
}

/// How a task stands, why, and what happened, with the failing checks if nothing was done.
pub fn standing(task: &TaskSummary) -> String {
    let word = task.standing().as_str();
    // The message of a passed task already says why it is done.
    let is_said = |reason: &Reason| {
        matches!(reason, Reason::Verified | Reason::Drafted) || reason.as_str() == word
    };
    let reason = task.reason.filter(|reason| !is_said(reason));
    let reason = reason.map_or_else(String::new, |reason| format!(" ({})", reason.as_str()));
    let failing = match task.reason {
        Some(Reason::NoProgress | Reason::PlanningOnly) => task.failing_checks(),
        _ => None,
    };
    let failing = match failing {
        None => String::new(),
        Some(0) => "; every check passes".to_owned(),
        Some(1) => "; 1 check fails".to_owned(),
        Some(n) => format!("; {n} checks fail"),
    };
    let message = text::short_line(&task.message, 400);
    format!("{word}{reason}: {message}{failing}")
}

fn instead_of_work(line: &RetryLine, event: &Event, summary: &RunSummary) -> String {
    let role = event
        .place
        .phase
        .map_or(Role::Implementer, |place| place.role);
    let who = text::upper_first(role.as_str());
    // In these phases, the reason names the goal.
    let is_asked_for =
        (event.place.phase).is_some_and(|place| matches!(place.phase, Phase::Red | Phase::Fix));
    let last = turns_of(event, summary).last().filter(|_| !is_asked_for);
    let known = match last.map(|turn| turn.assessment) {
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
        _ if line.reason.trim().is_empty() => "changed no file",
        _ => {
            let reason = text::short_line(&line.reason, 200);
            return format!("{who}: {}", reason.trim_end_matches('.'));
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
    let (word, branch) = match &push.rescue {
        _ if push.pushed => ("pushed", &push.branch),
        Some(rescue) => ("rescued to", rescue),
        None => ("not pushed", &push.branch),
    };
    let head = push.head.iter().map(|id| format!(" at {}", short_id(id)));
    format!(
        "{word} {}{}: {}",
        text::short_line(branch, 200),
        head.collect::<String>(),
        text::short_line(&push.detail, 500)
    )
}

/// A review in one line.
pub fn review(review: &ReviewSummary) -> String {
    let ReviewSummary { round, of, .. } = review;
    let missing = if review.incomplete {
        " (no verdict)"
    } else {
        ""
    };
    let found = match review.verdict {
        ReviewVerdict::Acceptable => String::new(),
        ReviewVerdict::NeedsFixes => {
            format!(", {} open", text::count(u64::from(review.open), "finding"))
        }
    };
    let verdict = review.verdict.as_str();
    format!("review {round} of at most {of}: {verdict}{missing}{found}")
}

/// The tests that a check has counted, after its outcome; empty if it has counted none.
pub fn counts(result: &CheckResult) -> String {
    let failed = result.counts.failed.filter(|&n| n > 0);
    let failed = failed.map(|n| format!("{n} failed"));
    let passed = result.counts.passed.map(|n| format!("{n} passed"));
    text::behind(": ", &text::joined(", ", failed.into_iter().chain(passed)))
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
        RunStatus::NoWork => "no work",
        RunStatus::Partial => "partly done",
        RunStatus::Environment => "environment not usable",
        RunStatus::Budget => "budget used up",
        RunStatus::Deadline => "deadline reached",
        status => status.as_str(),
    }
}

/// A reason in words, for places where the code alone is not enough.
pub fn reason(reason: Reason) -> &'static str {
    match reason {
        Reason::Verified => "the checks passed",
        Reason::Drafted => "the agent drafted a plan",
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
        Some(Reason::Drafted) => "Plan",
        _ => "Question of the agent",
    };
    Some((heading, task.work.answer.as_deref().or(task.question())?))
}

/// The parts of an agent's report that it cannot do the task, with their headings.
pub fn report(report: &FailedReport) -> impl Iterator<Item = (&'static str, &str)> {
    let parts = [
        ("The agent reports", Some(&report.summary)),
        ("Requirements", report.requirements.as_ref()),
        ("Problems", report.problems.as_ref()),
        ("Possible solutions", report.solutions.as_ref()),
    ];
    let parts = parts
        .into_iter()
        .filter_map(|(heading, words)| Some((heading, words?.trim())));
    parts.filter(|(_, words)| !words.is_empty())
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
    let parts = text::joined(" · ", parts.into_iter().flatten());
    let elapsed = text::duration(progress.elapsed_ms);
    format!(
        "still working after {elapsed}{}",
        text::behind(": ", &parts)
    )
}

/// Tokens and cost in one phrase, if any of them is known.
pub fn usage(usage: &Usage) -> Option<String> {
    let part = |n: Option<u64>| n.map_or_else(|| "?".to_owned(), text::tokens);
    let (sent, got) = (part(usage.tokens_in), part(usage.tokens_out));
    let cached = usage.tokens_cached.filter(|cached| *cached > 0);
    let cached = cached.map_or_else(String::new, |n| format!(" ({} cached)", text::tokens(n)));
    let tokens = usage.tokens_in.or(usage.tokens_out);
    let tokens = tokens.map(|_| format!("{sent} in{cached} / {got} out tokens"));
    let cost = usage.cost_usd.map(text::dollars);
    let parts = text::joined(", ", tokens.into_iter().chain(cost));
    (!parts.is_empty()).then_some(parts)
}

/// What the checks show of a task, in one line; empty if nothing is known.
pub fn evidence(task: &TaskSummary) -> String {
    let lines = task.work.evidence.iter();
    text::joined("; ", lines.map(EvidenceLine::says))
}

/// The first signals of a task, in one line; empty if it has none.
pub fn signals(task: &TaskSummary) -> String {
    let says = task.work.signals.iter().map(Signal::says);
    let says = text::first_of(says, MAX_SIGNALS, |more| format!("and {more} more"));
    text::behind("worth a look: ", &says.join("; "))
}

/// Maximum number of signals of a task in one line.
const MAX_SIGNALS: usize = 3;

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
    let mut tests = task.work.failing_tests.iter();
    task.status == TaskEnd::Done
        && match task.reason {
            Some(Reason::Unverified) => tests.next().is_some(),
            Some(Reason::Verified) => tests.any(|test| test.blame == Blame::Flaky),
            Some(Reason::ChangedExpectations) => true,
            _ => false,
        }
}

/// The tasks with the reason of a run's end that are not plainly done.
pub fn decisive(summary: &RunSummary, reason: Reason) -> Vec<&TaskSummary> {
    let is_decisive = |task: &&TaskSummary| {
        task.reason == Some(reason)
            && (task.status != TaskEnd::Done || is_done_with_a_reservation(task))
    };
    summary.tasks.iter().filter(is_decisive).collect()
}

/// The end of a run in words, where no single task decided it.
pub fn end(summary: &RunSummary, reason: Reason) -> String {
    let mut selected = summary.tasks.iter().filter(|task| task.selected);
    let is_done = summary.push.is_some() && selected.all(|task| task.status == TaskEnd::Done);
    match reason {
        Reason::Drafted if plan_to_approve(summary).is_some() => {
            "the plan is drafted, and nothing is done until somebody approves it".to_owned()
        }
        Reason::Environment if is_done => "the work is done, but could not be delivered".to_owned(),
        Reason::Environment => error(summary).unwrap_or_else(|| self::reason(reason).to_owned()),
        reason => self::reason(reason).to_owned(),
    }
}

/// The first line of the error that ended the run.
fn error(summary: &RunSummary) -> Option<String> {
    let (message, _) = summary.last_error()?;
    let first = message.lines().next()?.trim_end_matches(':');
    Some(text::short_line(first, 300))
}

/// The first twelve characters of a commit's id, cleaned.
pub fn short_id(id: &str) -> String {
    let id = text::line(id);
    id.chars().take(12).collect()
}
