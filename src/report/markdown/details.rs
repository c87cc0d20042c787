//! The details of each task: what was tried, why it was retried, what failed.

use super::escape::{code, fence, inline, quotation};
use super::{Limits, and_more, headed, joined, upper_first};
use crate::domain::assess::message::FailedReport;
use crate::domain::outcome::TaskEnd;
use crate::domain::review;
use crate::domain::summary::{CheckLine, RunSummary, TaskSummary, TurnSummary};
use crate::domain::trigger::approval::{self, plan_to_approve};
use crate::report::annotation::last_failing;
use crate::report::text::first_of;
use crate::report::{sentence, text};

/// The details of all tasks that were worked on. Tasks that are not done come first in their own open
/// sections; successful tasks are folded.
pub(super) fn all(summary: &RunSummary, limits: &Limits) -> String {
    let worked = |task: &&TaskSummary| !task.turns.is_empty() || task.failed_report.is_some();
    let mut tasks: Vec<&TaskSummary> = summary.tasks.iter().filter(worked).collect();
    tasks.sort_by_key(|task| task.status == TaskEnd::Done);
    let sections = tasks.into_iter().map(|task| section(task, limits));
    let rest = |more| {
        let more = text::count(more, "task");
        format!("Details of {more} more are in the run directory.")
    };
    first_of(sections, limits.details, rest).join("\n\n")
}

/// The reports of agents that cannot do their task. They are not folded, because a person must act on them.
pub(super) fn reported(summary: &RunSummary, limits: &Limits) -> String {
    let blocked = summary
        .tasks
        .iter()
        .filter(|task| task.failed_report.is_some())
        .filter(|task| task.status != TaskEnd::Done);
    let blocks: Vec<String> = blocked
        .take(limits.details)
        .map(|task| {
            let report = failed_report(task.failed_report.as_ref(), limits);
            format!("### {}\n\n{report}", name(task))
        })
        .collect();
    blocks.join("\n\n")
}

/// The answers of agents, and the questions that they ask. A long one is folded.
pub(super) fn answers(summary: &RunSummary, limits: &Limits) -> String {
    let told = summary.tasks.iter().filter_map(|task| {
        let (heading, words) = sentence::last_words(task)?;
        if plan_to_approve(summary).is_some_and(|shown| shown.plan == words) {
            return Some(format!("### {heading}\n\n{}", approval::shown(words)));
        }
        let text = quotation(words, limits.section_bytes * ANSWER_SHARE);
        Some(if text.lines().count() > SHOWN_LINES {
            format!("<details>\n<summary><b>{heading}</b></summary>\n\n{text}\n\n</details>")
        } else {
            format!("### {heading} of {}\n\n{text}", name(task))
        })
    });
    told.collect::<Vec<_>>().join("\n\n")
}

/// How much more room an answer has than a section of a report that it is not about.
const ANSWER_SHARE: usize = 10;

/// The number of lines from which an answer is folded.
const SHOWN_LINES: usize = 40;

/// The history of every task that was worked on but is not done, and the proofs of the finished ones, folded.
pub(super) fn folded(summary: &RunSummary, limits: &Limits) -> String {
    let undone = summary
        .tasks
        .iter()
        .filter(|task| sentence::is_undone(task))
        .filter(|task| !task.turns.is_empty());
    let shown = |task: &&TaskSummary| {
        !task.proofs.is_empty() || !task.failing_tests.is_empty() || !task.reviews.is_empty()
    };
    let done = summary
        .tasks
        .iter()
        .filter(|task| task.status == TaskEnd::Done);
    let undone = undone.map(|task| {
        let parts = [
            failures(task, limits),
            reviews(task, limits),
            proofs(task, limits),
            course(task, limits),
        ];
        fold(task, &parts)
    });
    let done = done
        .filter(shown)
        .map(|task| fold(task, &[reviews(task, limits), proofs(task, limits)]));
    let blocks: Vec<String> = undone.chain(done).take(limits.details).collect();
    blocks.join("\n\n")
}

fn section(task: &TaskSummary, limits: &Limits) -> String {
    let is_open = task.reason.is_none();
    let told = is_open || task.status == TaskEnd::Done || task.failed_report.is_some();
    let message = if told {
        String::new()
    } else {
        upper_first(&inline(&task.message, 1_000))
    };
    let parts = [
        message,
        failed_report(task.failed_report.as_ref(), limits),
        failures(task, limits),
        reviews(task, limits),
        proofs(task, limits),
        course(task, limits),
    ];
    match task.status {
        TaskEnd::Done => fold(task, &parts),
        _ => {
            let reason = task
                .reason
                .map_or(String::new(), |reason| format!(" (`{}`)", reason.as_str()));
            let status = if is_open {
                "in progress"
            } else {
                task.status.as_str()
            };
            let name = name(task);
            format!("### {name}: {status}{reason}\n\n{}", joined(&parts))
        }
    }
}

fn name(task: &TaskSummary) -> String {
    format!("{} {}", code(&task.id, 60), inline(&task.title, 120))
}

fn course(task: &TaskSummary, limits: &Limits) -> String {
    joined(&[
        turns(task, limits),
        history(task, limits),
        left(task, limits),
    ])
}

fn fold(task: &TaskSummary, parts: &[String]) -> String {
    // Markdown has no effect inside HTML; only entities count.
    let (id, title) = (html(&task.id, 60), html(&task.title, 120));
    let message = html(&task.message, 300);
    format!(
        "<details>\n<summary><b>{id}</b> {title}: {message}</summary>\n\n{}\n\n</details>",
        joined(parts)
    )
}

fn html(text: &str, max: usize) -> String {
    inline(text, max).replace('\\', "")
}

fn failed_report(report: Option<&FailedReport>, limits: &Limits) -> String {
    let Some(report) = report else {
        return String::new();
    };
    let sections = [
        ("The agent reports", Some(&report.summary)),
        ("Requirements", report.requirements.as_ref()),
        ("Problems", report.problems.as_ref()),
        ("Possible solutions", report.solutions.as_ref()),
    ];
    let blocks: Vec<String> = sections
        .into_iter()
        .filter_map(|(heading, body)| Some((heading, body?)))
        .filter(|(_, body)| !body.trim().is_empty())
        .map(|(heading, body)| {
            format!("**{heading}**\n\n{}", quotation(body, limits.section_bytes))
        })
        .collect();
    blocks.join("\n\n")
}

fn failures(task: &TaskSummary, limits: &Limits) -> String {
    let failing: Vec<&CheckLine> = match task.status {
        TaskEnd::Done => Vec::new(),
        _ => last_failing(task).collect(),
    };
    let each = limits.excerpt_bytes / failing.len().max(1);
    let blocks: Vec<String> = failing
        .into_iter()
        .map(|check| failure(check, each))
        .collect();
    blocks.join("\n\n")
}

/// The verdict of each review, and the findings with open ones first.
fn reviews(task: &TaskSummary, limits: &Limits) -> String {
    let reviews = task
        .reviews
        .iter()
        .map(|review| format!("- {}", sentence::review(review)));
    let findings = review::open_first(&task.findings).map(|finding| {
        let (place, state) = (
            format!("{}:{}", finding.path, finding.line),
            sentence::finding_state(finding),
        );
        format!(
            "- {} {} ({state})",
            code(&place, 200),
            inline(&finding.text, 500)
        )
    });
    joined(&[
        list("Reviews", reviews, limits),
        list("Findings", findings, limits),
    ])
}

/// The results of further runs of the checks, and the cause of each failing test.
fn proofs(task: &TaskSummary, limits: &Limits) -> String {
    let tests = sentence::blamed(&task.failing_tests).iter().map(|test| {
        let name = match &test.test {
            Some(test) => code(test, 200),
            None => format!("check {}", code(&test.check, 100)),
        };
        format!("- {name}: {}", test.blame.as_str())
    });
    let proofs = task.proofs.iter().map(|line| {
        let says = inline(&line.says(), 500);
        format!("- {}: {says}", code(line.proof.as_str(), 20))
    });
    joined(&[
        list("Failing tests", tests, limits),
        list("Proofs", proofs, limits),
    ])
}

fn list(heading: &str, lines: impl Iterator<Item = String>, limits: &Limits) -> String {
    let lines = first_of(lines, limits.lines, |more| format!("- … and {more} more"));
    headed(&format!("**{heading}**"), lines.join("\n"))
}

fn failure(check: &CheckLine, excerpt_bytes: usize) -> String {
    let mut facts = Vec::new();
    facts.push(match (check.timed_out, check.detail.is_empty()) {
        (_, false) => inline(&check.detail, 200),
        (true, true) => "timed out".into(),
        (false, true) => "failed".into(),
    });
    facts.extend(check.failed_count.map(|n| format!("{n} failed")));
    facts.extend(check.passed_count.map(|n| format!("{n} passed")));
    facts.push(text::duration(check.elapsed_ms));
    let mut head = format!(
        "**Check {}** in attempt {}: {}",
        code(&check.name, 100),
        check.attempt_name(),
        facts.join(", ")
    );
    if let Some(log) = &check.log {
        head.push_str(&format!(" · log {}", code(log, 200)));
    }
    match &check.excerpt {
        Some(excerpt) if !excerpt.trim().is_empty() => {
            format!("{head}\n\n{}", fence(excerpt, excerpt_bytes))
        }
        _ => head,
    }
}

fn turns(task: &TaskSummary, limits: &Limits) -> String {
    let turns = task.turns.iter().map(turn);
    let lines = first_of(turns, limits.lines, |more| and_more(more, "turn"));
    headed("**Turns**", lines.join("\n"))
}

fn turn(turn: &TurnSummary) -> String {
    let mut line = format!(
        "- Turn {} ({}): {}, {}",
        turn.turn,
        inline(&turn.purpose, 20),
        inline(&sentence::assessment(turn.assessment, &turn.detail), 300),
        text::duration(turn.elapsed_ms)
    );
    if turn.exit != "code 0" && !turn.exit.is_empty() {
        line.push_str(&format!(", ended with {}", inline(&turn.exit, 100)));
    }
    let said = sentence::indicators(&turn.indicators);
    let said: Vec<String> = said
        .iter()
        .map(|text| format!("“{}”", inline(text, sentence::INDICATOR_CHARS)))
        .collect();
    if said.is_empty() {
        line
    } else {
        format!("{line}: {}", said.join(" · "))
    }
}

fn history(task: &TaskSummary, limits: &Limits) -> String {
    // A single successful attempt adds nothing to the table.
    if task.history.len() < 2 && task.status == TaskEnd::Done || task.history.is_empty() {
        return String::new();
    }
    let from = task.history.len().saturating_sub(limits.lines);
    let mut lines = Vec::new();
    if from > 0 {
        lines.push(format!(
            "- … {} before",
            text::count(from as u64, "attempt")
        ));
    }
    for entry in task.history.iter().skip(from) {
        let files = match entry.changes.as_slice() {
            [] => "no file".to_owned(),
            files => inline(&text::some_of(files, 6), 400),
        };
        let mut line = format!(
            "- Attempt {}: {files} → {}",
            entry.attempt_name(),
            inline(&entry.outcome.replace('_', " "), 60)
        );
        for error in entry.errors.iter().take(2) {
            line.push_str(&format!("\n  - {}", inline(error, 300)));
        }
        lines.push(line);
    }
    format!("**Attempts**\n\n{}", lines.join("\n"))
}

fn left(task: &TaskSummary, limits: &Limits) -> String {
    let mut lines = Vec::new();
    if task.agent_commits > 0 {
        let count = text::count(u64::from(task.agent_commits), "commit");
        lines.push(format!("The agent made {count} itself."));
    }
    if !task.changed_files.is_empty() {
        let files = task.changed_files.iter().map(|path| code(path, 200));
        let shown: Vec<String> = files.take(limits.lines).collect();
        let more = match task.changed_files.len() - shown.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        lines.push(format!("Changed: {}{more}", shown.join(", ")));
    }
    if let Some(patch) = task.patch.as_ref().filter(|_| task.status != TaskEnd::Done) {
        lines.push(format!(
            "Patch of the unfinished work: {}",
            code(patch, 200)
        ));
    }
    lines.join("  \n")
}
