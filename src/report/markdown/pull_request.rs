//! The title and body of the pull request that a run opens.

use super::context::ReportContext;
use super::escape::{code, inline};
use super::{COMMENT_BYTES, DETAIL_LEVELS, Limits, comment, headed, parts};
use crate::domain::commit_message::without_references;
use crate::domain::outcome::{Reason, TaskEnd};
use crate::domain::summary::{RunSummary, TaskSummary};
use crate::report::text;

/// Maximum length of a title in characters. GitHub allows 256.
const TITLE_CHARS: usize = 120;

/// The title and the body. The title may become the subject of a commit when the pull request is merged, so
/// it contains no closing keyword or mention. The body ends with the hidden line, if there is one.
pub fn pull_request(summary: &RunSummary, around: &ReportContext) -> (String, String) {
    let title = text::short_line(
        &without_references(&text::line(&summary.plan.title)),
        TITLE_CHARS,
    );
    let title = if title.is_empty() {
        "Work done by Sprag".to_owned()
    } else {
        title
    };
    let marker = around
        .marker()
        .map_or(String::new(), |line| format!("\n{line}\n"));
    let room = COMMENT_BYTES.saturating_sub(marker.len());
    let body = super::smallest(
        &DETAIL_LEVELS[1..],
        room,
        &comment::notice(around),
        |limits| body(summary, around, limits),
    );
    (title, format!("{body}{marker}"))
}

fn body(summary: &RunSummary, around: &ReportContext, limits: &Limits) -> String {
    super::blocks(&[
        goal(summary, around),
        format!("### Tasks\n\n{}", parts::checklist(summary, around, limits)),
        format!("### How it was verified\n\n{}", verified(summary, limits)),
        left(summary),
        parts::notes(summary, around, limits),
        parts::places(summary, around),
    ])
}

fn goal(summary: &RunSummary, around: &ReportContext) -> String {
    let title = inline(&summary.plan.title, 300);
    let plan = summary.plan.path.as_deref().map_or(String::new(), |path| {
        let shown = code(path, 200);
        format!(" Plan: {}.", around.plan_line(&shown, Some(path), Some(1)))
    });
    let agent = if summary.agent.is_empty() {
        String::new()
    } else {
        format!(
            " The agent {} wrote the changes; Sprag verified and committed them.",
            inline(&summary.agent, 60)
        )
    };
    format!("**{title}**\n\n{}", format!("{plan}{agent}").trim_start())
}

/// The checks that verified the finished tasks.
fn verified(summary: &RunSummary, limits: &Limits) -> String {
    let done = || {
        summary
            .tasks
            .iter()
            .filter(|task| task.status == TaskEnd::Done)
    };
    let is = |reason: Reason| move |task: &&TaskSummary| task.reason == Some(reason);
    let checks: Vec<String> = summary
        .checks
        .iter()
        .take(limits.lines)
        .map(|name| code(name, 100))
        .collect();
    let mut lines = Vec::new();
    if checks.is_empty() {
        lines.push("**Not at all**: no check is configured.".to_owned());
    } else {
        let passed = done().filter(is(Reason::Verified)).count();
        let checks = checks.join(", ");
        lines.push(match passed {
            0 => format!("**Not at all**: no task was verified by these checks: {checks}."),
            1 => format!("These checks passed on exactly the tree that was committed: {checks}."),
            _ => format!(
                "After each of {passed} tasks these checks passed on exactly the tree that was committed: {checks}."
            ),
        });
    }
    let evidence = super::evidence(summary);
    if !evidence.is_empty() {
        lines.push(evidence);
    }
    let satisfied = done().filter(is(Reason::AlreadySatisfied)).count();
    if satisfied > 0 {
        let count = text::count(satisfied as u64, "task");
        lines.push(format!("Nothing needed doing for {count}."));
    }
    lines.join("\n\n")
}

fn left(summary: &RunSummary) -> String {
    let open = summary
        .tasks
        .iter()
        .filter(|task| task.selected && task.status != TaskEnd::Done);
    let lines: Vec<String> = open
        .take(50)
        .map(|task| {
            format!(
                "- {} {}: {}",
                code(&task.id, 60),
                inline(&task.title, 120),
                inline(&task.message, 300)
            )
        })
        .collect();
    headed("### What is left", lines.join("\n"))
}
