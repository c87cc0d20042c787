//! The report as GitHub Markdown: the step summary, and with other limits the check run and the comment.

mod check_run;
mod comment;
mod context;
mod details;
mod escape;
mod fit;
mod mermaid;
mod parts;
mod pull_request;

pub use check_run::check_run;
pub use comment::{comment, help_comment, refusal_comment, status_comment};
pub use context::ReportContext;
pub use pull_request::pull_request;

use super::next_steps::NextStep;
use super::text::{first_of, upper_first};
use super::{failure, next_steps, sentence, text};
use crate::domain::outcome::{Reason, RunStatus};
use crate::domain::sandbox::{SandboxLine, denied_words, gateway_words};
use crate::domain::summary::{RunSummary, Standing, TaskSummary};
use context::link;
use escape::{code, fence, inline};

/// Maximum size in bytes of the step summary. GitHub drops a larger one completely, so some space is left for
/// the other parts of the step.
pub const STEP_SUMMARY_BYTES: usize = 1024 * 1024 - 16 * 1024;
/// Maximum size in bytes of the summary and of the text of a check run.
pub const CHECK_RUN_BYTES: usize = 65_535;
/// Maximum size of a comment: 65,536 characters, counted here as bytes.
pub const COMMENT_BYTES: usize = 65_535;

/// Limits for the parts of a report. Smaller limits are tried until the report fits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    rows: usize,
    details: usize,
    excerpt_bytes: usize,
    section_bytes: usize,
    lines: usize,
}

const DETAIL_LEVELS: [Limits; 4] = [
    Limits {
        rows: 1_000,
        details: 500,
        excerpt_bytes: 16_000,
        section_bytes: 16_000,
        lines: 40,
    },
    Limits {
        rows: 300,
        details: 100,
        excerpt_bytes: 4_000,
        section_bytes: 4_000,
        lines: 15,
    },
    Limits {
        rows: 100,
        details: 40,
        excerpt_bytes: 1_200,
        section_bytes: 1_500,
        lines: 8,
    },
    Limits {
        rows: 50,
        details: 15,
        excerpt_bytes: 500,
        section_bytes: 600,
        lines: 4,
    },
];

/// The whole report within `budget_bytes`: how the run ended, what to do next, the table of tasks, the
/// details of each task, warnings. Excerpts and details are shortened before anything is cut.
pub fn step_summary(summary: &RunSummary, budget_bytes: usize) -> String {
    smallest(&DETAIL_LEVELS, budget_bytes, fit::NOTICE, |limits| {
        whole(summary, limits)
    })
}

/// Renders with the first limits whose text fits. If none is small enough, the text is cut and ends with
/// `notice`.
fn smallest(
    ladder: &[Limits],
    budget_bytes: usize,
    notice: &str,
    text: impl Fn(&Limits) -> String,
) -> String {
    let mut written = String::new();
    for limits in ladder {
        written = text(limits);
        if written.len() <= budget_bytes {
            return written;
        }
    }
    fit::fit(written, budget_bytes, notice)
}

fn whole(summary: &RunSummary, limits: &Limits) -> String {
    blocks(&[
        heading(summary),
        happened_block(summary),
        details::answers(summary, limits),
        facts(summary),
        delivered(summary),
        what_remains(summary),
        next(summary),
        table(summary, limits),
        details::all(summary, limits),
        structured_output(summary, limits),
        notes(summary, limits),
        warnings(summary, limits),
    ])
}

/// Joins the non-empty blocks and ends with a line end.
fn blocks(blocks: &[String]) -> String {
    joined(blocks) + "\n"
}

/// Joins the non-empty blocks with a blank line between them.
fn joined(blocks: &[String]) -> String {
    joined_by("\n\n", blocks)
}

/// Joins the non-empty texts.
fn joined_by(separator: &str, texts: &[String]) -> String {
    let texts = texts.iter().map(String::as_str);
    let texts: Vec<&str> = texts.filter(|text| !text.is_empty()).collect();
    texts.join(separator)
}

/// A part with its heading, or nothing if it has no content.
fn headed(heading: &str, content: String) -> String {
    if content.is_empty() {
        content
    } else {
        format!("{heading}\n\n{content}")
    }
}

/// The first line of the report without its heading mark. It is also the title of a check run.
pub fn title(summary: &RunSummary) -> String {
    if let Some(review) = summary.review_in_words() {
        return review;
    }
    let done = text::line(&summary.tasks_in_words());
    match summary.status {
        None => format!("running, {done}"),
        Some(RunStatus::Answered) => done,
        Some(status) => format!("{}, {done}", sentence::status(status)),
    }
}

fn heading(summary: &RunSummary) -> String {
    format!(
        "## {} Sprag: {}",
        match summary.review_in_words() {
            Some(_) => task_icon(Standing::Reviewed),
            None => run_icon(summary.status),
        },
        inline(&title(summary), 1_000)
    )
}

/// The end of the run as a sentence and as codes, or empty while the run is in progress.
fn happened_block(summary: &RunSummary) -> String {
    let (Some(status), Some(reason)) = (summary.status, summary.reason) else {
        return String::new();
    };
    let why = happened(summary, reason);
    let end = format!("**{why}** (`{}` · `{}`)", status.as_str(), reason.as_str());
    joined(&[end, failed(summary), evidence(summary)])
}

/// Maximum number of tasks whose evidence is shown.
const MAX_EVIDENCE: usize = 10;

/// What the checks show of each task that is done, and what is worth a look.
pub(super) fn evidence(summary: &RunSummary) -> String {
    let shown = summary
        .tasks
        .iter()
        .filter(|task| !task.evidence.is_empty() || !task.signals.is_empty());
    let lines = shown.map(|task| {
        let says = [sentence::evidence(task), sentence::signals(task)];
        let says = joined_by(". ", &says);
        format!("- {}: {}", code(&task.id, 60), inline(&says, 600))
    });
    first_of(lines, MAX_EVIDENCE, |more| and_more(more, "task")).join("\n")
}

/// The last line of a list that was cut.
fn and_more(more: u64, unit: &str) -> String {
    format!("- … and {} more", text::count(more, unit))
}

/// Maximum number of failures that are shown first.
const MAX_FAILURES: usize = 3;

/// The first failures, each with its place and the first line of its message.
fn failed(summary: &RunSummary) -> String {
    let all = failure::failures(summary);
    let shown = all.iter().take(MAX_FAILURES).map(|failure| {
        let place = failure.place.as_deref().or(failure.check.as_deref());
        let place = code(place.unwrap_or("review"), 200);
        format!("- {place}: {}", inline(&failure.message, 300))
    });
    let counted: usize = summary.tasks.iter().map(failure::count).sum();
    let more = counted.max(all.len()).saturating_sub(MAX_FAILURES);
    let rest = (more > 0).then(|| and_more(more as u64, "failure"));
    shown.chain(rest).collect::<Vec<_>>().join("\n")
}

/// One sentence about the end of the run: that of the task that decided it, if there is one.
fn happened(summary: &RunSummary, reason: Reason) -> String {
    match sentence::decisive(summary, reason).as_slice() {
        [] => upper_first(&inline(&sentence::end(summary, reason), 500)),
        [task] => format!("{}: {}", code(&task.id, 60), inline(&task.message, 500)),
        [first, rest @ ..] => format!(
            "{}: {} (and {} more)",
            code(&first.id, 60),
            inline(&first.message, 500),
            text::count(rest.len() as u64, "task")
        ),
    }
}

fn facts(summary: &RunSummary) -> String {
    let mut facts = Vec::new();
    if !summary.plan.title.is_empty() {
        facts.push(format!("plan {}", inline(&summary.plan.title, 120)));
    }
    if let Some(branch) = &summary.branch {
        facts.push(format!("branch {}", code(branch, 120)));
    }
    if let Some(head) = &summary.head {
        facts.push(format!("head {}", code(&sentence::short_id(head), 12)));
    }
    if !summary.agent.is_empty() {
        facts.push(format!("agent {}", inline(&summary.agent, 60)));
    }
    facts.extend(summary.sandbox.as_ref().map(SandboxLine::words));
    facts.extend(gateway_words(&summary.gateway).map(|words| inline(&words, 300)));
    facts.push(text::duration(summary.elapsed_ms));
    facts.extend(sentence::usage(&summary.usage).map(|usage| inline(&usage, 100)));
    for (count, word) in [
        (summary.totals.retries, "retry"),
        (summary.totals.nudges, "nudge"),
    ] {
        if count > 0 {
            facts.push(text::count(u64::from(count), word));
        }
    }
    upper_first(&facts.join(" · "))
}

/// Where the work went, or why it is not there.
fn delivered(summary: &RunSummary) -> String {
    let Some(push) = &summary.push else {
        return String::new();
    };
    let words = upper_first(&inline(&sentence::push(push), 900));
    let pull = push.pull_request.as_ref();
    let pull = pull.map(|pull| {
        let shown = format!("pull request {}", pull.number);
        format!(" · {}", link(&shown, &pull.url))
    });
    format!("{words}{}", pull.unwrap_or_default())
}

fn what_remains(summary: &RunSummary) -> String {
    if matches!(
        summary.status,
        None | Some(RunStatus::Success | RunStatus::Unverified)
    ) {
        return String::new();
    }
    let kept: Vec<String> = next_steps::kept(summary)
        .iter()
        .map(|entry| format!("- {}", upper_first(&inline(entry, 600))))
        .collect();
    headed("**Kept**", kept.join("\n"))
}

fn next(summary: &RunSummary) -> String {
    let steps = next_steps::next_steps(summary);
    next_list(steps.iter().map(|step| next_step(step, None)))
}

/// The next steps as a list.
fn next_list(steps: impl Iterator<Item = String>) -> String {
    let steps: Vec<String> = steps
        .map(|step| format!("- {}", upper_first(&step)))
        .collect();
    headed("**What to do next**", steps.join("\n"))
}

/// A next step, with the URL of the run directory as an artifact if it has one.
fn next_step(step: &NextStep, artifact: Option<&str>) -> String {
    match step {
        NextStep::Advice(what) => inline(what, 300),
        NextStep::Command { what, command } => {
            format!("{}: {}", inline(what, 300), code(command, 2_000))
        }
        NextStep::Patch { task, command } => {
            let place = match (artifact, task) {
                (Some(url), Some(task)) => format!(
                    "the unfinished work of {} is in the run's {}. In a clean checkout",
                    code(task, 60),
                    link("artifact", url)
                ),
                (Some(url), None) => format!(
                    "the commits are in the run's {}. In a clean checkout",
                    link("artifact", url)
                ),
                (None, task) => inline(&next_steps::place_of_patch(task.as_deref()), 300),
            };
            format!("{place}: {}", code(command, 300))
        }
        NextStep::Comment { text, what } => {
            format!("comment {} to {}", code(text, 80), inline(what, 300))
        }
    }
}

fn table(summary: &RunSummary, limits: &Limits) -> String {
    if summary.tasks.is_empty() {
        return String::new();
    }
    let costs = summary
        .tasks
        .iter()
        .any(|task| task.usage.cost_usd.is_some());
    let usage = if costs { "Tokens, cost" } else { "Tokens" };
    // GitHub cuts tables with more than six columns.
    let mut rows = vec![
        format!("| Task | Status | Attempts | Commit | Time | {usage} |"),
        "|---|---|---:|---|---:|---:|".to_owned(),
    ];
    let rest = |more| format!("\n… and {} more.", text::count(more, "task"));
    rows.extend(first_of(summary.tasks.iter().map(row), limits.rows, rest));
    rows.join("\n")
}

fn row(task: &TaskSummary) -> String {
    const NONE: &str = "–";
    let worked = !task.turns.is_empty() || task.attempts > 0;
    let standing = task.standing();
    let status = unbroken(&format!("{} {}", task_icon(standing), standing.as_str()));
    let reason = task.reason.map(|reason| format!(" `{}`", reason.as_str()));
    let attempts = match (worked, task.nudges) {
        (false, _) => NONE.to_owned(),
        (true, 0) => task.attempts.to_string(),
        (true, nudges) => {
            let nudges = text::count(u64::from(nudges), "nudge");
            format!("{}, {}", task.attempts, unbroken(&nudges))
        }
    };
    let commit = task.commit.as_ref();
    let tokens = match (task.usage.tokens_in, task.usage.tokens_out) {
        (None, None) => None,
        (a, b) => Some(text::tokens(a.unwrap_or(0).saturating_add(b.unwrap_or(0)))),
    };
    let cost = task
        .usage
        .cost_usd
        .map(|cost| inline(&text::dollars(cost), 40));
    let usage: Vec<String> = tokens.into_iter().chain(cost).collect();
    let cells = [
        format!("{} {}", code(&task.id, 60), inline(&task.title, 120)),
        format!("{status}{}", reason.unwrap_or_default()),
        attempts,
        commit.map_or_else(|| NONE.to_owned(), |id| code(&sentence::short_id(id), 12)),
        if worked {
            unbroken(&text::duration(task.elapsed_ms))
        } else {
            NONE.to_owned()
        },
        if usage.is_empty() {
            NONE.to_owned()
        } else {
            usage.join(", ")
        },
    ];
    format!("| {} |", cells.join(" | "))
}

/// The run's structured output, cut to the limits.
fn structured_output(summary: &RunSummary, limits: &Limits) -> String {
    let value = summary.structured_output.as_ref();
    let text = value.map(|value| fence(&format!("{value:#}"), limits.section_bytes));
    headed("### Structured output", text.unwrap_or_default())
}

/// The notes that tasks left for later ones, newest first.
fn notes(summary: &RunSummary, limits: &Limits) -> String {
    let newest = summary.notes.iter().rev();
    let lines =
        newest.map(|note| format!("- {}: {}", code(&note.task, 64), inline(&note.text, 500)));
    let lines = first_of(lines, limits.lines * 2, |more| and_more(more, "note"));
    headed("### Notes for later tasks", lines.join("\n"))
}

fn warnings(summary: &RunSummary, limits: &Limits) -> String {
    let denied = Some(summary.denied_hosts()).filter(|denied| !denied.is_empty());
    let denied = denied.map(|hosts| format!("- {}", inline(&denied_words(hosts), 2000)));
    let lines = summary.warnings.iter();
    let lines = lines.map(|message| format!("- {}", inline(message, 500)));
    let lines = first_of(lines, limits.lines * 2, |more| and_more(more, "warning"));
    let lines: Vec<String> = denied.into_iter().chain(lines).collect();
    headed("### Warnings", lines.join("\n"))
}

/// Escapes foreign text as in all these reports, without a length limit.
pub(crate) fn escaped(text: &str) -> String {
    inline(text, usize::MAX)
}

fn run_icon(status: Option<RunStatus>) -> &'static str {
    match status {
        None => "⏳",
        Some(RunStatus::Success) => "✅",
        Some(RunStatus::Unverified | RunStatus::NoWork) => "⚪",
        Some(RunStatus::Answered) => "💬",
        Some(RunStatus::Failed | RunStatus::Invalid | RunStatus::Environment) => "❌",
        Some(RunStatus::Partial) => "🟠",
        Some(RunStatus::Blocked) => "✋",
        Some(RunStatus::Budget | RunStatus::Deadline) => "⏱️",
        Some(RunStatus::Cancelled) => "🛑",
    }
}

fn task_icon(standing: Standing) -> &'static str {
    match standing {
        Standing::Verified | Standing::DoneBefore => "✅",
        Standing::Unverified => "⚪",
        Standing::Answered | Standing::Reviewed => "💬",
        Standing::Failed => "❌",
        Standing::Waits | Standing::Blocked => "✋",
        Standing::Skipped => "⏭️",
        Standing::Pending => "⏸️",
    }
}

/// A table cell without line breaks.
fn unbroken(cell: &str) -> String {
    cell.replace(' ', "&nbsp;")
}

#[cfg(test)]
mod tests;
