//! The title and body of the pull request that a run opens.

use super::context::ReportContext;
use super::escape::{code, inline};
use super::{COMMENT_BYTES, DETAIL_LEVELS, Limits, comment, headed, list, parts};
use crate::domain::commit_message::without_references;
use crate::domain::outcome::{Reason, TaskEnd};
use crate::domain::summary::RunSummary;
use crate::report::text;

/// Maximum length of a title in characters. GitHub allows 256.
const TITLE_CHARS: usize = 120;

/// The title and the body. The title may become the subject of a commit when the pull request is merged, so
/// it contains no closing keyword or mention. The body ends with the hidden line, if there is one.
pub fn pull_request(summary: &RunSummary, around: &ReportContext) -> (String, String) {
    let title = without_references(&text::line(&summary.facts.plan.title));
    let title = match text::short_line(&title, TITLE_CHARS) {
        title if title.is_empty() => "Work done by Sprag".to_owned(),
        title => title,
    };
    let marker = around.marker();
    let marker = marker.map_or_else(String::new, |line| format!("\n{line}\n"));
    let room = COMMENT_BYTES.saturating_sub(marker.len());
    let notice = comment::notice(around);
    let body = super::smallest(&DETAIL_LEVELS[1..], room, &notice, |limits| {
        super::blocks(&[
            goal(summary, around),
            headed("### Tasks", parts::checklist(summary, around, limits)),
            headed("### How it was verified", verified(summary, limits)),
            left(summary),
            parts::notes(summary, around, limits),
            parts::places(summary, around),
        ])
    });
    (title, body + &marker)
}

fn goal(summary: &RunSummary, around: &ReportContext) -> String {
    let title = inline(&summary.facts.plan.title, 300);
    let plan = summary.facts.plan.path.as_deref().map(|path| {
        let shown = code(path, 200);
        format!("Plan: {}.", around.plan_line(&shown, Some(path), Some(1)))
    });
    let agent = Some(inline(&summary.facts.agent, 60)).filter(|agent| !agent.is_empty());
    let agent = agent.map(|agent| {
        format!("The agent {agent} wrote the changes; Sprag verified and committed them.")
    });
    let rest = text::joined(" ", plan.into_iter().chain(agent));
    format!("**{title}**\n\n{rest}")
}

/// The checks that verified the finished tasks.
fn verified(summary: &RunSummary, limits: &Limits) -> String {
    let number = |reason| {
        summary
            .done()
            .filter(|task| task.reason == Some(reason))
            .count()
    };
    let checks = summary.facts.checks.iter().take(limits.lines);
    let checks = text::joined(", ", checks.map(|name| code(name, 100)));
    let verified = match number(Reason::Verified) {
        _ if checks.is_empty() => "**Not at all**: no check is configured.".to_owned(),
        0 => format!("**Not at all**: no task was verified by these checks: {checks}."),
        1 => format!("These checks passed on exactly the tree that was committed: {checks}."),
        passed => format!(
            "After each of {passed} tasks these checks passed on exactly the tree that was committed: {checks}."
        ),
    };
    let satisfied = match number(Reason::AlreadySatisfied) as u64 {
        0 => String::new(),
        satisfied => format!(
            "Nothing needed doing for {}.",
            text::count(satisfied, "task")
        ),
    };
    super::joined(&[verified, super::evidence(summary), satisfied])
}

fn left(summary: &RunSummary) -> String {
    let tasks = summary.tasks.iter();
    let open = tasks.filter(|task| task.selected && task.status != TaskEnd::Done);
    let lines = open.map(|task| {
        let (id, title) = (code(&task.id, 60), inline(&task.title, 120));
        format!("{id} {title}: {}", inline(&task.message, 300))
    });
    list("### What is left", lines, 50, "task")
}
