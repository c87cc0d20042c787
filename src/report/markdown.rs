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
use super::section::{self, Section};
use super::text::{first_of, upper_first};
use super::{failure, next_steps, sentence, text};
use crate::domain::event::PullRequestLine;
use crate::domain::outcome::{Reason, RunStatus};
use crate::domain::sandbox::{SandboxLine, gateway_words};
use crate::domain::summary::{Hue, RunSummary, Standing, TaskSummary};
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

impl Limits {
    const fn new(
        rows: usize,
        details: usize,
        excerpt_bytes: usize,
        section_bytes: usize,
        lines: usize,
    ) -> Self {
        Self {
            rows,
            details,
            excerpt_bytes,
            section_bytes,
            lines,
        }
    }
}

const DETAIL_LEVELS: [Limits; 4] = [
    Limits::new(1_000, 500, 16_000, 16_000, 40),
    Limits::new(300, 100, 4_000, 4_000, 15),
    Limits::new(100, 40, 1_200, 1_500, 8),
    Limits::new(50, 15, 500, 600, 4),
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
        table(summary, None, limits),
        details::all(summary, limits),
        structured_output(summary, limits),
        sections(&section::of_run(summary), ["### ", ""], limits.lines * 2),
    ])
}

/// Joins the non-empty blocks and ends with a line end.
fn blocks(blocks: &[String]) -> String {
    joined(blocks) + "\n"
}

/// Joins the non-empty blocks with a blank line between them.
fn joined(blocks: &[String]) -> String {
    text::joined("\n\n", blocks)
}

/// A part with its heading, or nothing if it has no content.
fn headed(heading: &str, content: String) -> String {
    if heading.is_empty() || content.is_empty() {
        content
    } else {
        format!("{heading}\n\n{content}")
    }
}

/// A list of at most `most` lines with its heading, or nothing if it has no line.
fn list(heading: &str, lines: impl Iterator<Item = String>, most: usize, unit: &str) -> String {
    let lines = lines.map(|line| format!("- {line}"));
    let lines = first_of(lines, most, |more| {
        format!("- … and {} more", text::count(more, unit))
    });
    headed(heading, lines.join("\n"))
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
    let title = inline(&title(summary), 1_000);
    format!("## {} Sprag: {title}", run_icon(summary))
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

/// What the checks show of each task that is done, and what is worth a look.
fn evidence(summary: &RunSummary) -> String {
    let lines = summary.tasks.iter().filter_map(|task| {
        let says = [sentence::evidence(task), sentence::signals(task)];
        let says = Some(text::joined(". ", &says)).filter(|says| !says.is_empty())?;
        Some(format!("{}: {}", code(&task.id, 60), inline(&says, 600)))
    });
    list("", lines, 10, "task")
}

/// Maximum number of failures that are shown first.
const MAX_FAILURES: usize = 3;

/// The first failures, each with its place and the first line of its message.
fn failed(summary: &RunSummary) -> String {
    let all = failure::failures(summary);
    let counted: usize = summary.tasks.iter().map(failure::count).sum();
    let more = counted.max(all.len()).saturating_sub(MAX_FAILURES);
    let shown = all.iter().take(MAX_FAILURES).map(|failure| {
        let place = failure.place.as_deref().or(failure.check.as_deref());
        let place = code(place.unwrap_or("review"), 200);
        format!("{place}: {}", inline(&failure.message, 300))
    });
    let rest = (more > 0).then(|| format!("… and {} more", text::count(more as u64, "failure")));
    list("", shown.chain(rest), usize::MAX, "failure")
}

/// One sentence about the end of the run: that of the task that decided it, if there is one.
fn happened(summary: &RunSummary, reason: Reason) -> String {
    let tasks = sentence::decisive(summary, reason);
    let Some((first, rest)) = tasks.split_first() else {
        return upper_first(&inline(&sentence::end(summary, reason), 500));
    };
    let more = match rest.len() as u64 {
        0 => String::new(),
        more => format!(" (and {} more)", text::count(more, "task")),
    };
    format!(
        "{}: {}{more}",
        code(&first.id, 60),
        inline(&first.message, 500)
    )
}

fn facts(summary: &RunSummary) -> String {
    let counted = |n: u32, unit| (n > 0).then(|| text::count(u64::from(n), unit));
    let named = |name: &str, value: String| (!value.is_empty()).then(|| format!("{name} {value}"));
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let facts = [
        named("plan", inline(&summary.facts.plan.title, 120)),
        named("branch", code(&text(&summary.facts.branch), 120)),
        named("head", code(&sentence::short_id(&text(&summary.head)), 12)),
        named("agent", inline(&summary.facts.agent, 60)),
        summary.facts.sandbox.as_ref().map(SandboxLine::words),
        gateway_words(&summary.facts.gateway).map(|words| inline(&words, 300)),
        Some(text::duration(summary.elapsed_ms)),
        sentence::usage(&summary.usage).map(|usage| inline(&usage, 100)),
        counted(summary.totals.retries, "retry"),
        counted(summary.totals.nudges, "nudge"),
    ];
    upper_first(&text::joined(" · ", facts.into_iter().flatten()))
}

/// Where the work went, or why it is not there.
fn delivered(summary: &RunSummary) -> String {
    let push = summary.push.as_ref().map(sentence::push);
    let push = push.map(|push| upper_first(&inline(&push, 900)));
    let pull = summary.pull_request().map(pull_request_link);
    text::joined(" · ", push.into_iter().chain(pull))
}

fn pull_request_link(pull: &PullRequestLine) -> String {
    link(&format!("pull request {}", pull.number), &pull.url)
}

fn what_remains(summary: &RunSummary) -> String {
    let plain = [RunStatus::Success, RunStatus::Unverified];
    if summary.status.is_none_or(|status| plain.contains(&status)) {
        return String::new();
    }
    let kept = next_steps::kept(summary);
    let kept = kept.iter().map(|entry| upper_first(&inline(entry, 600)));
    list("**Kept**", kept, usize::MAX, "")
}

fn next(summary: &RunSummary) -> String {
    let steps = next_steps::next_steps(summary);
    next_list(steps.iter().map(|step| next_step(step, None)))
}

/// The next steps as a list.
fn next_list(steps: impl Iterator<Item = String>) -> String {
    let steps = steps.map(|step| upper_first(&step));
    list("**What to do next**", steps, usize::MAX, "")
}

/// A next step, with the URL of the run directory as an artifact if it has one.
fn next_step(step: &NextStep, artifact: Option<&str>) -> String {
    if let (NextStep::Patch { task, command }, Some(url)) = (step, artifact) {
        let what = match task {
            Some(task) => format!("unfinished work of {} is", code(task, 60)),
            None => "commits are".to_owned(),
        };
        let (artifact, command) = (link("artifact", url), code(command, 300));
        return format!("the {what} in the run's {artifact}. In a clean checkout: {command}");
    }
    let (before, typed, after) = step.parts();
    let typed = code(typed.unwrap_or_default(), 2_000);
    text::joined(" ", [inline(&before, 300), typed, inline(&after, 300)])
}

fn table(summary: &RunSummary, around: Option<&ReportContext>, limits: &Limits) -> String {
    if summary.tasks.is_empty() {
        return String::new();
    }
    let mut tasks = summary.tasks.iter();
    let usage = if tasks.any(|task| task.usage.cost_usd.is_some()) {
        "Tokens, cost"
    } else {
        "Tokens"
    };
    // GitHub cuts tables with more than six columns.
    let mut rows = vec![
        format!("| Task | Status | Attempts | Commit | Time | {usage} |"),
        "|---|---|---:|---|---:|---:|".to_owned(),
    ];
    let rest = |more| format!("\n… and {} more.", text::count(more, "task"));
    let commit = |id: &str| match around {
        Some(around) => parts::commit(summary, around, id),
        None => code(&sentence::short_id(id), 12),
    };
    let tasks = summary.tasks.iter().map(|task| row(task, &commit));
    rows.extend(first_of(tasks, limits.rows, rest));
    rows.join("\n")
}

fn row(task: &TaskSummary, commit: &dyn Fn(&str) -> String) -> String {
    let worked = !task.turns.is_empty() || task.attempts > 0;
    let if_worked = |cell: String| worked.then_some(cell);
    let standing = task.standing();
    let status = unbroken(&format!("{} {}", task_icon(standing), standing.as_str()));
    let reason = task.reason.map(|reason| format!(" `{}`", reason.as_str()));
    let nudges = text::count(u64::from(task.nudges), "nudge");
    let attempts = match task.nudges {
        0 => task.attempts.to_string(),
        _ => format!("{}, {}", task.attempts, unbroken(&nudges)),
    };
    let usage = &task.usage;
    let cost = usage.cost_usd.map(|cost| inline(&text::dollars(cost), 40));
    let tokens = usage.tokens().map(text::tokens);
    let usage = text::joined(", ", tokens.into_iter().chain(cost));
    let cells = [
        Some(format!(
            "{} {}",
            code(&task.id, 60),
            inline(&task.title, 120)
        )),
        Some(format!("{status}{}", reason.unwrap_or_default())),
        if_worked(attempts),
        task.commit.as_deref().map(commit),
        if_worked(unbroken(&text::duration(task.elapsed_ms))),
        Some(usage).filter(|usage| !usage.is_empty()),
    ];
    let cells = cells.map(|cell| cell.unwrap_or_else(|| "–".to_owned()));
    format!("| {} |", cells.join(" | "))
}

/// The run's structured output, cut to the limits.
fn structured_output(summary: &RunSummary, limits: &Limits) -> String {
    let value = summary.structured_output.as_ref();
    let text = value.map(|value| fence(&format!("{value:#}"), limits.section_bytes));
    headed("### Structured output", text.unwrap_or_default())
}

/// Lists with headings between these marks.
fn sections(sections: &[Section], marks: [&str; 2], most: usize) -> String {
    let sections = sections.iter().map(|section| {
        let lines = section.lines.iter().map(|(name, words)| {
            let name = Some(code(name, 200)).filter(|name| !name.is_empty());
            let name = name.map_or_else(String::new, |name| format!("{name}: "));
            name + &inline(words, 2_000)
        });
        let heading = [marks[0], section.heading, marks[1]].concat();
        list(&heading, lines, most, section.unit)
    });
    joined(&sections.collect::<Vec<_>>())
}

/// Escapes foreign text as in all these reports, without a length limit.
pub(crate) fn escaped(text: &str) -> String {
    inline(text, usize::MAX)
}

fn run_icon(summary: &RunSummary) -> &'static str {
    match (summary.status, summary.hue()) {
        _ if summary.review_in_words().is_some() => task_icon(Standing::Reviewed),
        (None, _) => "⏳",
        (Some(RunStatus::Answered), _) => task_icon(Standing::Answered),
        (Some(RunStatus::Blocked), _) => "✋",
        (Some(RunStatus::Budget | RunStatus::Deadline), _) => "⏱️",
        (Some(RunStatus::Cancelled), _) => "🛑",
        (_, Hue::Green) => "✅",
        (_, Hue::Red) => "❌",
        (_, Hue::Amber | Hue::Grey) => "⚪",
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
