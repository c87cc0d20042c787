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
    let marker = marker_line(around);
    let room = COMMENT_BYTES.saturating_sub(marker.len());
    let rest = &DETAIL_LEVELS[1..];
    let body = super::smallest(rest, room, &notice(around), |limits| {
        body(summary, around, limits)
    });
    format!("{marker}{body}")
}

fn body(summary: &RunSummary, around: &ReportContext, limits: &Limits) -> String {
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
        parts::places(summary, &own(around)),
    ])
}

/// The context without the comment's own URL, because a comment does not link to itself.
fn own(around: &ReportContext) -> ReportContext {
    ReportContext {
        comment_url: None,
        ..around.clone()
    }
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
    let turn = summary.turn.as_deref().map(sentence::turn_progress);
    format!(
        "**Working on {} {}**, {}, {} since the run started{}",
        code(&task.id, 60),
        inline(&task.title, 120),
        parts::attempt(task),
        text::duration(summary.elapsed_ms),
        turn.map_or(String::new(), |turn| format!("\n\n{}", inline(&turn, 300)))
    )
}

/// The answer to a request that is not allowed or cannot be fulfilled. `why` is one sentence, `fix` is the
/// remedy.
pub fn refusal_comment(why: &str, fix: Option<&str>, around: &ReportContext) -> String {
    let asked = around
        .asked_by
        .as_deref()
        .map_or(String::new(), |login| format!(", {}", code(login, 60)));
    let fix = fix.map_or(String::new(), |fix| super::upper_first(&inline(fix, 1_000)));
    let body = super::blocks(&[
        format!("### ✋ Sprag did not start{asked}"),
        super::upper_first(&inline(why, 1_000)),
        fix,
        parts::places(
            &RunSummary::default(),
            &ReportContext {
                asked_by: None,
                ..around.clone()
            },
        ),
    ]);
    format!("{}{body}", marker_line(around))
}

/// The answer to a question about the state. `summary` is that of the last run, if known.
pub fn status_comment(summary: Option<&RunSummary>, around: &ReportContext) -> String {
    let Some(summary) = summary else {
        let body = super::blocks(&["### Sprag has not run here yet".into(), commands(around)]);
        return format!("{}{body}", marker_line(around));
    };
    let marker = marker_line(around);
    let room = COMMENT_BYTES.saturating_sub(marker.len());
    let body = super::smallest(&DETAIL_LEVELS[1..], room, &notice(around), |limits| {
        super::blocks(&[
            heading(summary),
            happened_block(summary),
            progress(summary),
            parts::checklist(summary, around, limits),
            parts::next(summary, around),
            parts::places(summary, around),
        ])
    });
    format!("{marker}{body}")
}

/// The commands that Sprag understands in a comment.
pub fn help_comment(around: &ReportContext) -> String {
    let body = super::blocks(&["### Sprag's commands".into(), commands(around)]);
    format!("{}{body}", marker_line(around))
}

fn commands(around: &ReportContext) -> String {
    let Some(phrase) = &around.trigger_phrase else {
        return "This repository starts Sprag by its workflow, not by comments.".into();
    };
    let rows = [
        ("<the task>", "does that on the branch of this pull request"),
        ("ask <a question>", "answers it here and changes nothing"),
        (
            "answer <text>",
            "goes on with the answer to the question of the agent",
        ),
        (
            "plan <remarks>",
            "drafts a plan for this, or the one shown again with the remarks",
        ),
        ("approve <code>", "runs exactly the plan that is shown"),
        ("run <plan file>", "runs the plan, task by task"),
        (
            "retry",
            "tries the unfinished tasks again, with new retries",
        ),
        ("continue", "continues where the last run stopped"),
        (
            "rebase",
            "merges the base branch into this pull request and runs the checks",
        ),
        ("stop", "cancels the active run"),
        ("status", "shows the current state"),
        ("help", "says this"),
    ];
    let rows: Vec<String> = rows
        .iter()
        .map(|(word, what)| format!("| {} | {what} |", code(&format!("{phrase} {word}"), 100)))
        .collect();
    format!(
        "| Comment | What it does |\n|---|---|\n{}\n\nThe command must be at the beginning of a line, and its author needs write access.",
        rows.join("\n")
    )
}

/// The notice for a text that was cut, with a link to the complete text.
pub(super) fn notice(around: &ReportContext) -> String {
    let run_url = around.place.run_url();
    let whole = [
        ("artifact", &around.artifact_url),
        ("check run", &around.check_url),
        ("workflow run", &run_url),
    ];
    let place = whole
        .iter()
        .find_map(|(shown, url)| Some(link(shown, url.as_deref()?)));
    match place {
        Some(place) => format!("*This text was shortened. The full text is in the {place}.*"),
        None => fit::NOTICE.to_owned(),
    }
}

fn marker_line(around: &ReportContext) -> String {
    around
        .marker()
        .map_or(String::new(), |line| format!("{line}\n"))
}
