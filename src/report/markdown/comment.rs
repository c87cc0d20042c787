//! The one comment of a run, and short comments that answer requests.

use super::context::{ReportContext, link};
use super::escape::{code, inline};
use super::{
    COMMENT_BYTES, DETAIL_LEVELS, Limits, details, facts, fit, happened_block, headed, heading,
    parts,
};
use crate::domain::summary::RunSummary;
use crate::report::{sentence, text};

/// The comment of a run in progress or ended: the hidden line, the state, the tasks as a checklist, the
/// commits, what to do next, failures, and links. GitHub's limit is 65,536 characters. However it counts
/// them, there are never more than bytes, so bytes are counted here.
pub fn comment(summary: &RunSummary, around: &ReportContext) -> String {
    // A comment does not link to itself.
    let own = ReportContext {
        comment_url: None,
        ..around.clone()
    };
    within_limits(around, |limits| {
        super::blocks(&[
            heading(summary),
            happened_block(summary),
            details::answers(summary, limits),
            progress(summary),
            facts(summary),
            parts::checklist(summary, around, limits),
            headed("**Commits**", parts::commits(summary, around, limits)),
            parts::next(summary, around),
            details::reported(summary, limits),
            parts::notes(summary, around, limits),
            details::folded(summary, limits),
            parts::places(summary, &own),
        ])
    })
}

/// The hidden line and a text with the largest limits within which both fit in a comment.
fn within_limits(around: &ReportContext, text: impl Fn(&Limits) -> String) -> String {
    let marker = marker_line(around);
    let room = COMMENT_BYTES.saturating_sub(marker.len());
    marker + &super::smallest(&DETAIL_LEVELS[1..], room, &notice(around), text)
}

/// The present activity of a run in progress.
pub(super) fn progress(summary: &RunSummary) -> String {
    if summary.status.is_some() {
        return String::new();
    }
    let current = summary.current.as_deref().and_then(|id| summary.task(id));
    let Some(task) = current else {
        return "**Getting ready**".into();
    };
    let (id, title) = (code(&task.id, 60), inline(&task.title, 120));
    let (attempt, took) = (parts::attempt(task), text::duration(summary.elapsed_ms));
    let turn = summary.turn.as_deref().map(sentence::turn_progress);
    let turn = turn.map_or_else(String::new, |turn| inline(&turn, 300));
    let line = format!("**Working on {id} {title}**, {attempt}, {took} since the run started");
    super::joined(&[line, turn])
}

/// The answer to a request that is not allowed or cannot be fulfilled. `why` is one sentence, `fix` is the
/// remedy.
pub fn refusal_comment(why: &str, fix: Option<&str>, around: &ReportContext) -> String {
    let asked = around.asked_by.as_deref();
    let asked = asked.map_or_else(String::new, |login| format!(", {}", code(login, 60)));
    let places = ReportContext {
        asked_by: None,
        ..around.clone()
    };
    let says = |text: &str| super::upper_first(&inline(text, 1_000));
    marker_line(around)
        + &super::blocks(&[
            format!("### ✋ Sprag did not start{asked}"),
            says(why),
            says(fix.unwrap_or_default()),
            parts::places(&RunSummary::default(), &places),
        ])
}

/// The answer to a question about the state. `summary` is that of the last run, if known.
pub fn status_comment(summary: Option<&RunSummary>, around: &ReportContext) -> String {
    let Some(summary) = summary else {
        let heading = "### Sprag has not run here yet".into();
        return marker_line(around) + &super::blocks(&[heading, commands(around)]);
    };
    within_limits(around, |limits| {
        super::blocks(&[
            heading(summary),
            happened_block(summary),
            progress(summary),
            parts::checklist(summary, around, limits),
            parts::next(summary, around),
            parts::places(summary, around),
        ])
    })
}

/// The commands that Sprag understands in a comment.
pub fn help_comment(around: &ReportContext) -> String {
    marker_line(around) + &super::blocks(&["### Sprag's commands".into(), commands(around)])
}

fn commands(around: &ReportContext) -> String {
    let Some(phrase) = &around.trigger_phrase else {
        return "This repository starts Sprag by its workflow, not by comments.".into();
    };
    let rows = COMMANDS.lines().filter_map(|line| line.split_once(": "));
    let rows = rows.map(|(word, what)| {
        let comment = code(&format!("{phrase} {word}"), 100);
        format!("| {comment} | {what} |\n")
    });
    format!(
        "| Comment | What it does |\n|---|---|\n{}\nThe command must be at the beginning of a line, and its author needs write access.",
        rows.collect::<String>()
    )
}

const COMMANDS: &str = "\
<the task>: does that on the branch of this pull request
ask <a question>: answers it here and changes nothing
answer <text>: goes on with the answer to the question of the agent
plan <remarks>: drafts a plan for this, or the one shown again with the remarks
approve <code>: runs exactly the plan that is shown
run <plan file>: runs the plan, task by task
retry: tries the unfinished tasks again, with new retries
continue: continues where the last run stopped
rebase: merges the base branch into this pull request and runs the checks
stop: cancels the active run
status: shows the current state
help: says this";

/// The notice for a text that was cut, with a link to the complete text.
pub(super) fn notice(around: &ReportContext) -> String {
    let run_url = around.place.run_url();
    let whole = [
        ("artifact", &around.artifact_url),
        ("check run", &around.check_url),
        ("workflow run", &run_url),
    ];
    let mut places = whole
        .iter()
        .filter_map(|(shown, url)| Some(link(shown, url.as_deref()?)));
    match places.next() {
        Some(place) => format!("*This text was shortened. The full text is in the {place}.*"),
        None => fit::NOTICE.to_owned(),
    }
}

fn marker_line(around: &ReportContext) -> String {
    let marker = around.marker();
    marker.map_or_else(String::new, |line| format!("{line}\n"))
}
