//! The report as one HTML file for light and dark mode, without scripts or external resources.

mod changes;

use super::next_steps::NextStep;
use super::section::{self, Section};
use super::text;
use super::{annotation, failure, next_steps, sentence};
use crate::domain::assess::AssessmentKind;
use crate::domain::outcome::{Reason, TaskEnd};
use crate::domain::sandbox::{SandboxLine, gateway_words};
use crate::domain::summary::{
    AttemptLines, AttemptName, Hue, RunSummary, Standing, TaskSummary, TurnSummary,
};
use changes::Files;
use maud::{DOCTYPE, Markup, PreEscaped, html};

/// Maximum total size in bytes of the included files.
pub const SOURCES_BYTES: usize = 5 << 20;
/// Maximum size in bytes of one included file.
pub const SOURCE_BYTES: usize = 512 << 10;

const STYLE: &str = include_str!("html/style.css");

/// The kind of an included file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
pub enum SourceKind {
    /// The prompt of a turn.
    Prompt,
    /// The messages and actions of the agent.
    Transcript,
    /// The changes of each commit.
    Commits,
    /// The patch of unfinished work.
    #[strum(serialize = "Patch")]
    Diff,
    /// The output of a check.
    Log,
}

/// A file of the run with the part of its content to show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// Its kind.
    pub kind: SourceKind,
    /// Its path, relative to the run directory.
    pub name: String,
    /// Its text, or a part of a long one.
    pub text: String,
    /// Whether something was left out.
    pub cut: bool,
}

/// The files of the run in display order.
pub type Sources = Vec<Source>;

/// The whole report. It includes the first sources that fit in [`SOURCES_BYTES`].
pub fn report(summary: &RunSummary, sources: &Sources) -> String {
    let title = super::markdown::title(summary);
    let files = Files::new(sources);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'";
                title { "Sprag: " (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                (head(summary, &title))
                main {
                    (changes::changes(sources))
                    (timeline(summary))
                    (table(summary))
                    @for task in summary.tasks.iter().filter(|task| !task.turns.is_empty()) { (section(task, &files)) }
                    (sections(&section::of_run(summary), |heading| html! { h2 { (heading) } }))
                    (files.others(summary))
                }
            }
        }
    };
    page.into_string()
}

fn next_step(step: &NextStep) -> Markup {
    let (before, typed, after) = step.parts();
    html! {
        (text::line(&before)) @if let Some(typed) = typed { " " code { (text::line(typed)) } } (text::line(&after))
    }
}

fn head(summary: &RunSummary, title: &str) -> Markup {
    let next = next_steps::next_steps(summary);
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let sandbox = summary.facts.sandbox.as_ref().map(SandboxLine::words);
    let facts = [
        ("Plan", summary.facts.plan.title.clone()),
        ("Run", summary.facts.run_id.clone()),
        ("Began", text(&text::time_of_id(&summary.facts.run_id))),
        ("Host", text(&summary.facts.host)),
        ("Agent", summary.facts.agent.clone()),
        ("Sandbox", text(&sandbox)),
        ("Keys", text(&gateway_words(&summary.facts.gateway))),
        ("Model", text(&summary.facts.model)),
        ("Branch", text(&summary.facts.branch)),
        ("Head", sentence::short_id(&text(&summary.head))),
        ("Time", text::duration(summary.elapsed_ms)),
        ("Usage", text(&sentence::usage(&summary.usage))),
    ];
    let facts = facts.iter().filter(|(_, value)| !value.is_empty());
    html! {
        header class=(class(summary.hue())) {
            h1 { "Sprag: " (title) }
            @if let Some(reason) = summary.reason { p { (why(summary, reason)) " (" code { (reason.as_str()) } ")" } }
            (failed(summary))
            @for kept in next_steps::kept(summary) { p.kept { "Kept: " (text::line(&kept)) } }
            @if !next.is_empty() {
                h2 { "What to do next" }
                ul { @for step in &next { li { (next_step(step)) } } }
            }
            dl { @for (name, value) in facts { div { dt { (name) } dd { (text::short_line(value, 200)) } } } }
        }
    }
}

/// Maximum number of failures shown at the top.
const MAX_FAILURES: usize = 20;

/// The classes of the bars of the timeline, and their meaning.
const LEGEND: [(&str, &str); 5] = [
    ("turn", "the agent changed files"),
    ("idle", "it changed nothing"),
    ("good", "checks passed"),
    ("open", "passed, not verified"),
    ("bad", "checks failed"),
];

/// Each failure with its place and the first lines of its message.
fn failed(summary: &RunSummary) -> Markup {
    let all = failure::failures(summary);
    let counted: usize = summary.tasks.iter().map(failure::count).sum();
    let more = counted.saturating_sub(all.len().min(MAX_FAILURES));
    html! {
        @if !all.is_empty() {
            h2 { @if summary.review_in_words().is_some() { "What the review found" } @else { "What failed" } }
            @for it in all.iter().take(MAX_FAILURES) {
                div.failure {
                    p {
                        @if let Some(place) = &it.place { code { (place) } " " }
                        b { (it.message) }
                        span.soft { " · " (it.who()) " of " (text::short_line(&it.task, 60)) }
                    }
                    @if !it.more.trim().is_empty() { (pre(&it.more)) }
                }
            }
            @if more > 0 { p { (text::count(more as u64, "failure")) " more below." } }
        }
    }
}

/// The end of the run in words: those of the task that decided it, if there is one.
fn why(summary: &RunSummary, reason: Reason) -> String {
    match sentence::decisive(summary, reason).first() {
        Some(task) => text::short_line(&task.message, 500),
        None => sentence::end(summary, reason),
    }
}

/// One bar for each turn and each check with its duration as its width. All tasks have the same scale.
fn timeline(summary: &RunSummary) -> Markup {
    let with_turns = summary.tasks.iter().filter(|task| !task.turns.is_empty());
    let lanes = with_turns.take(200).map(|task| (task, bars(task)));
    let lanes: Vec<(&TaskSummary, Vec<Bar>)> = lanes.collect();
    let length = |bars: &[Bar]| bars.iter().map(|bar| bar.ms).sum::<u64>();
    let longest = lanes.iter().map(|(_, bars)| length(bars)).max();
    let longest = longest.unwrap_or(0);
    let share = |ms: u64| (ms.saturating_mul(1_000) / longest.max(1)).max(3);
    html! {
        @if !lanes.is_empty() {
            h2 { "Timeline" }
            div.timeline {
                @for (task, bars) in &lanes {
                    div.lane {
                        a href=(format!("#{}", anchor(task))) { (text::short_line(&task.id, 30)) }
                        div.bars {
                            @for bar in bars {
                                span class=(bar.class) style=(format!("flex-grow:{}", share(bar.ms))) title=(bar.title) {}
                            }
                            @if length(bars) < longest { span style=(format!("flex-grow:{}", share(longest - length(bars)))) {} }
                        }
                    }
                }
            }
            p.legend { @for (class, words) in LEGEND { span { i class=(class) {} " " (words) } " " } }
        }
    }
}

struct Bar {
    class: &'static str,
    ms: u64,
    title: String,
}

fn bars(task: &TaskSummary) -> Vec<Bar> {
    let is_unverified = task.standing() == Standing::Unverified;
    let of_attempt = |attempt: AttemptLines<'_>| {
        let turns = attempt.turns.into_iter().map(turn_bar);
        let checks = attempt.checks.into_iter().map(|check| Bar {
            class: match (check.passed, is_unverified) {
                (true, false) => "good",
                (true, true) => "open",
                (false, _) => "bad",
            },
            ms: check.elapsed_ms,
            title: text::line(&check.name) + ": " + &text::duration(check.elapsed_ms),
        });
        let reviews = attempt.reviews.into_iter().map(turn_bar);
        turns.chain(checks).chain(reviews).collect::<Vec<_>>()
    };
    let attempts = task.attempts_in_order().into_iter();
    attempts.flat_map(of_attempt).collect()
}

fn turn_bar(turn: &TurnSummary) -> Bar {
    let what = sentence::assessment(turn.assessment, &turn.detail);
    let changed = turn.assessment == AssessmentKind::Changed || turn.before != turn.after;
    let took = text::duration(turn.elapsed_ms);
    Bar {
        class: if changed { "turn" } else { "idle" },
        ms: turn.elapsed_ms,
        title: format!("Turn {}: {what}, {took}", turn.turn),
    }
}

fn table(summary: &RunSummary) -> Markup {
    html! {
        h2 { "Tasks" }
        table.tasks {
            thead { tr { th { "Task" } th { "Status" } th { "Attempts" } th { "Commit" } th { "Time" } th { "Tokens" } } }
            tbody {
                @for task in &summary.tasks {
                    tr {
                        td { (name(task)) }
                        td { (standing(task)) @if let Some(reason) = task.reason { br; span.soft { (reason.as_str()) } } }
                        td.number data-label="attempts" { (task.attempts) }
                        td data-label="commit" { code { (task.commit.as_deref().map_or("–".into(), sentence::short_id)) } }
                        td.number data-label="time" { (text::duration(task.elapsed_ms)) }
                        td.number data-label="tokens" { (task.usage.tokens().map_or("–".into(), text::tokens)) @if let Some(cost) = task.usage.cost_usd { br; span.soft { (text::dollars(cost)) } } }
                    }
                }
            }
        }
    }
}

/// The class of everything that has this colour.
fn class(hue: Hue) -> &'static str {
    match hue {
        Hue::Green => "good",
        Hue::Amber => "open",
        Hue::Red => "bad",
        Hue::Grey => "soft",
    }
}

fn name(task: &TaskSummary) -> Markup {
    html! { code { (text::short_line(&task.id, 60)) } " " (text::short_line(&task.title, 200)) }
}

fn standing(task: &TaskSummary) -> Markup {
    let standing = task.standing();
    html! { span class=(class(standing.hue())) { (standing.as_str()) } }
}

fn anchor(task: &TaskSummary) -> String {
    let is_plain = |c: &char| c.is_ascii_alphanumeric() || *c == '-';
    let id: String = task.id.chars().filter(is_plain).collect();
    format!("task-{id}")
}

fn section(task: &TaskSummary, files: &Files<'_>) -> Markup {
    let failing = annotation::last_failing(task).filter(|_| task.status != TaskEnd::Done);
    let work = &task.work;
    html! {
        section id=(anchor(task)) {
            h2 { (name(task)) ": " (standing(task)) }
            p { (text::line(&task.message)) }
            @if !work.signals.is_empty() {
                h3 { "Worth a look" }
                ul { @for signal in &work.signals { li { (text::short_line(&signal.says(), 400)) ": " code { (text::short_line(&signal.text, 200)) } } } }
            }
            @for line in &work.evidence { p.soft { (text::short_line(&line.says(), 1_000)) } }
            @if let Some((heading, words)) = sentence::last_words(task) { h3 { (heading) } (pre(words)) }
            @for (heading, words) in task.failed_report.iter().flat_map(sentence::report) { h3 { (heading) } (pre(words)) }
            @for check in failing {
                h3 { "Check " code { (text::line(&check.name)) } " in attempt " (check.attempt_name()) ": " (text::line(&check.detail)) }
                @if let Some(log) = &check.log { p { "Log: " code { (text::line(log)) } } }
                @if let Some(excerpt) = &check.excerpt { (pre(excerpt)) }
            }
            (sections(&section::of_task(task), |heading| html! { h3 { (heading) } }))
            (costs(task))
            (attempts(task, files))
            @if !work.changed_files.is_empty() { p { "Changed: " (text::line(&text::some_of(&work.changed_files, 100))) } }
            @if let Some(patch) = &work.patch { p { "Patch of the unfinished work: " code { (text::line(patch)) } } }
        }
    }
}

/// Lists with headings of this element.
fn sections(sections: &[Section], heading: fn(&str) -> Markup) -> Markup {
    html! {
        @for section in sections.iter().filter(|section| !section.lines.is_empty()) {
            (heading(section.heading))
            ul { @for (name, words) in section.lines.iter().take(500) { li {
                @if !name.is_empty() { code { (text::short_line(name, 300)) } ": " }
                (text::short_line(words, 2_000))
            } } }
        }
    }
}

/// The attempts: the turns, checks and reviews of each with their files, and the result.
fn attempts(task: &TaskSummary, files: &Files<'_>) -> Markup {
    html! {
        @for attempt in task.attempts_in_order() {
            h3 { @match attempt.name.number { 0 => "Turns", _ => { "Attempt " (attempt.name) } } }
            @for entry in &attempt.history {
                p { (text::line(&text::some_of(&entry.changes, 20))) " → " (text::line(&entry.outcome.as_str().replace('_', " "))) }
                @if !entry.errors.is_empty() { ul { @for error in &entry.errors { li { (text::short_line(error, 500)) } } } }
            }
            ol { @for line in &attempt.turns { (turn(line, files)) } }
            ul { @for check in &attempt.checks {
                li {
                    "Check " code { (text::short_line(&check.name, 100)) } ": "
                    span class=(if check.passed { "good" } else { "bad" }) { (text::line(&check.detail)) } ", " (text::duration(check.elapsed_ms))
                    (files.of_check(check))
                }
            } }
            @if !attempt.reviews.is_empty() { ol { @for line in &attempt.reviews { (turn(line, files)) } } }
        }
    }
}

/// Time and tokens of each attempt, as bars with the same scale.
fn costs(task: &TaskSummary) -> Markup {
    let of = |attempt: &AttemptLines<'_>| {
        let time: u64 = attempt.all_turns().map(|turn| turn.elapsed_ms).sum();
        let checked: u64 = attempt.checks.iter().map(|check| check.elapsed_ms).sum();
        let tokens: u64 = attempt
            .all_turns()
            .filter_map(|turn| turn.usage.tokens())
            .sum();
        (attempt.name, time + checked, tokens)
    };
    let attempts = task.attempts_in_order();
    let attempts: Vec<(AttemptName, u64, u64)> = attempts.iter().take(50).map(of).collect();
    let most_time = attempts.iter().map(|attempt| attempt.1).max().unwrap_or(0);
    let most_tokens = attempts.iter().map(|attempt| attempt.2).max().unwrap_or(0);
    let width =
        |part: u64, most: u64| format!("width:{}%", (part.saturating_mul(80) / most.max(1)).max(1));
    html! {
        @if attempts.len() > 1 {
            h3 { @if most_tokens > 0 { "Time and tokens of each attempt" } @else { "Time of each attempt" } }
            div.costs {
                @for (attempt, time, tokens) in attempts {
                    span { (attempt) }
                    span.cost { span.bar.time style=(width(time, most_time)) {} (text::duration(time)) }
                    span.cost { @if tokens > 0 { span.bar.tokens style=(width(tokens, most_tokens)) {} (text::tokens(tokens)) } }
                }
            }
        }
    }
}

fn turn(turn: &TurnSummary, files: &Files<'_>) -> Markup {
    let said = sentence::indicators(&turn.indicators);
    html! {
        li value=(turn.turn) {
            (text::line(&turn.purpose)) ", attempt " (turn.attempt) ": " b { (sentence::assessment(turn.assessment, &turn.detail)) } ", " (text::duration(turn.elapsed_ms)) ", " (text::line(&turn.exit))
            @if !said.is_empty() { ": " @for words in &said { q { (words) } " " } }
            (files.of_turn(turn))
        }
    }
}

fn pre(body: &str) -> Markup {
    html! { pre { (text::block(body)) } }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::samples;

    fn source(kind: SourceKind, text: &str) -> Source {
        Source {
            kind,
            name: "verify/01-test.log".into(),
            text: text.into(),
            cut: false,
        }
    }

    #[test]
    fn the_report_shows_the_run_and_loads_nothing() {
        let sources = vec![
            source(SourceKind::Prompt, "Do it\nnow"),
            source(SourceKind::Diff, "@@ -1 +1 @@\n-a\n+b"),
        ];
        let page = report(&samples::partial(), &sources);
        for expected in [
            "<title>Sprag: partly done, 1 of 3 tasks done, t2 failed</title>",
            "git apply /runs/01H-run/patches/t2.patch",
            "class=\"bad\"",
            "<span class=\"add\">+b</span>",
            "Do it\nnow",
            "href=\"#task-t2\"",
            "id=\"task-t2\"",
        ] {
            assert!(page.contains(expected), "{expected}: {page}");
        }
        for absent in ["<script", "src=", "url(", "http:", "https:", "@import"] {
            assert!(!page.contains(absent), "{absent}");
        }
    }

    #[test]
    fn foreign_text_is_text() {
        let text = "<script>x</script>\"'&<img src=x onerror=y> </pre></details>\u{202e}\u{1b}[31m";
        let sources = vec![
            source(SourceKind::Log, text),
            source(SourceKind::Diff, text),
        ];
        let page = report(&samples::every_text(text), &sources);
        for absent in [
            "<script",
            "<img",
            "</pre></details>\u{202e}",
            "\u{1b}",
            "\u{202e}",
        ] {
            assert!(!page.contains(absent), "{absent}");
        }
        assert!(page.contains("&lt;script&gt;"));
        assert_eq!(page.matches("<pre").count(), page.matches("</pre>").count());
    }

    #[test]
    fn files_beyond_the_budget_are_counted() {
        let big = "x".repeat(SOURCE_BYTES + 1);
        let sources = vec![source(SourceKind::Log, &big); 12];
        let page = report(&samples::partial(), &sources);
        assert!(page.len() < SOURCES_BYTES + 64 * 1024);
        assert!(
            page.contains("2 files more in the run directory.")
                && page.contains("(shortened; the full")
        );
    }
}
