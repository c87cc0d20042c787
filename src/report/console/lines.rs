//! Formats an event as lines of the log.

use super::end;
use super::line::{Line, Tone, block, mark, name, place};
use super::{Style, Verbosity};
use crate::domain::agent::{AgentEvent, TodoItem, TodoStatus};
use crate::domain::assess::AssessmentKind;
use crate::domain::attempt::{Blame, Phase, Proof, ProofWord};
use crate::domain::checks::verdict::{CheckOutcome, CheckResult};
use crate::domain::event::{
    Event, EventKind, PushLine, ReviewLine, RunStarted, SetupLine, TaskEnded, TaskLine, TurnLine,
};
use crate::domain::outcome::signal_name;
use crate::domain::review::{self, Finding, ReviewVerdict};
use crate::domain::sandbox::{SandboxLine, denied_words, gateway_words};
use crate::domain::summary::{RunSummary, TaskSummary};
use crate::report::text::{count, duration, first_of, short_line};
use crate::report::{sentence, text};

/// Maximum number of failing tests, or of findings of a review, that are named.
const MAX_NAMED: usize = 20;
/// Maximum number of lines of one message of the agent.
const MESSAGE_LINES: usize = 40;

/// Formats an event as lines of the log, without line ends. A pure function.
pub fn lines(event: &Event, summary: &RunSummary, style: &Style) -> Vec<String> {
    let is_for_quiet = matches!(
        event.kind,
        EventKind::HostsDenied { .. }
            | EventKind::Warning { .. }
            | EventKind::CancelRequested { .. }
            | EventKind::RunEnded { .. }
    );
    if style.verbosity == Verbosity::Quiet && !is_for_quiet {
        return Vec::new();
    }
    let lines = event_lines(event, summary, style.verbosity).into_iter();
    lines.map(|line| line.render(style)).collect()
}

fn event_lines(event: &Event, summary: &RunSummary, verbosity: Verbosity) -> Vec<Line> {
    let one = |tone, text: String| vec![Line::new(tone, text)];
    let dim = |text: String| one(Tone::Dim, text);
    let warning = |message: &str| one(Tone::Warn, format!("warning: {message}"));
    let task = event.place.task.as_deref().and_then(|id| summary.task(id));
    match &event.kind {
        EventKind::RunStarted(started) => run_started(started, summary),
        EventKind::TaskStarted { title } => task_heading(
            event.place.task.as_deref().unwrap_or_default(),
            title,
            summary,
        ),
        EventKind::TurnStarted { purpose, agent, .. } => {
            let role = event
                .place
                .phase
                .map(|it| format!(", {}", it.role.as_str()));
            let (turn, role) = (event.place.turn.unwrap_or(0), role.unwrap_or_default());
            let text = format!("  turn {turn} ({purpose}{role}): {agent} is working");
            one(Tone::Plain, text)
        }
        EventKind::Agent(agent) => agent_lines(agent, verbosity),
        EventKind::TurnProgress(progress) => {
            dim(format!("    {}", sentence::turn_progress(progress)))
        }
        EventKind::TurnEnded {
            exit, elapsed_ms, ..
        } if verbosity >= Verbosity::Verbose => dim(format!(
            "    ended with {exit} after {}",
            duration(*elapsed_ms)
        )),
        EventKind::TurnEnded { .. } => Vec::new(),
        EventKind::TurnAssessed(line) => assessed(event, line, verbosity),
        EventKind::ReviewEnded(line) => reviewed(line, task),
        EventKind::SetupStarted { command } => {
            let command = short_line(command, 100);
            one(Tone::Plain, format!("setup {command}: running"))
        }
        EventKind::SetupEnded(line) => setup_ended(line),
        EventKind::CheckStarted { name, .. } => {
            one(Tone::Plain, format!("  check {name}: running"))
        }
        EventKind::CheckEnded(result) if event.place.proof.is_some() => {
            check_ended(result, verbosity).into_iter().take(1).collect()
        }
        EventKind::CheckEnded(result) => check_ended(result, verbosity),
        EventKind::ProofStarted {} => dim(format!(
            "  {}",
            event.place.proof.map_or("", Proof::describe)
        )),
        EventKind::ProofEnded(line) => {
            let tone = match line.result {
                ProofWord::Passed => Tone::Plain,
                ProofWord::Failed | ProofWord::Unknown => Tone::Warn,
            };
            one(tone, format!("  {}", line.says()))
        }
        EventKind::RetryScheduled(line) => {
            let is_long = verbosity >= Verbosity::Verbose;
            let message = sentence::retry(line, event, summary, is_long);
            noted(Tone::Warn, message, &sentence::indicators(&line.indicators))
        }
        EventKind::NudgeResolved { k, of } => {
            let resolved = sentence::resolved(*k, *of, event, summary);
            one(Tone::Good, format!("  {resolved}"))
        }
        EventKind::VerificationSkipped { reason } => one(Tone::Warn, format!("  {reason}")),
        EventKind::CommitCreated {
            commit,
            subject,
            files,
        } => {
            let (id, subject) = (sentence::short_id(commit), short_line(subject, 200));
            let files = count(files.len() as u64, "file");
            one(Tone::Good, format!("  committed {id} {subject} ({files})"))
        }
        EventKind::AgentCommits { commits } => {
            let made = count(commits.len() as u64, "commit");
            let text = format!("the agent made {made} itself");
            noted(Tone::Warn, text, &commits[..commits.len().min(10)])
        }
        EventKind::CommitRejected { reason, .. } => {
            block(Tone::Warn, "  commit rejected: ", reason, 20)
        }
        EventKind::PushEnded(push) => pushed(push),
        EventKind::TaskEnded(ended) => {
            let mut lines = failing_tests(ended);
            lines.extend(task.map(|task| task_ended(ended, task)));
            lines
        }
        EventKind::CancelRequested { signal } => {
            let name = signal_name(*signal);
            let text = format!("{name} received: stopping; a second signal ends at once");
            one(Tone::Warn, text)
        }
        EventKind::HostsDenied { hosts } => warning(&denied_words(hosts)),
        EventKind::Warning { message, .. } => warning(message),
        EventKind::RunEnded { .. } => end::lines(summary),
    }
}

fn setup_ended(line: &SetupLine) -> Vec<Line> {
    let (command, took) = (short_line(&line.command, 100), duration(line.elapsed_ms));
    if line.passed {
        let text = format!("setup {command} passed ({took})");
        return vec![Line::new(Tone::Plain, text)];
    }
    let text = format!("setup {command} failed: {} ({took})", line.exit);
    let log = line.log.as_ref();
    let log = log.map(|log| Line::new(Tone::Dim, format!("  log: {log}")));
    [Line::new(Tone::Bad, text)]
        .into_iter()
        .chain(log)
        .collect()
}

fn run_started(started: &RunStarted, summary: &RunSummary) -> Vec<Line> {
    let facts = &started.facts;
    let is_next = |task: &&TaskLine| task.selected && !task.done;
    let selected = started.tasks.iter().filter(is_next).count();
    // The end of the run says that nothing was left to do, which is enough.
    if selected == 0 {
        return Vec::new();
    }
    let checks = match facts.checks.as_slice() {
        [] => "no check configured".into(),
        checks => format!("checks {}", text::some_of(checks, 6)),
    };
    let branch = facts.branch.as_ref();
    let told = [
        Some(short_line(&facts.plan.title, 120)),
        Some(count(selected as u64, "task")),
        Some(format!("agent {}", facts.agent)),
        Some(checks),
        branch.map(|branch| format!("branch {branch}")),
    ];
    let told: Vec<String> = told.into_iter().flatten().collect();
    let word = if started.resumed {
        "resumed"
    } else {
        "recorded"
    };
    let (run, dir) = (&facts.run_id, &facts.run_dir);
    let mut lines = vec![
        Line::new(Tone::Heading, format!("Sprag: {}", told.join(" · "))),
        Line::whole(Tone::Dim, format!("run {run} is {word} in {dir}")),
    ];
    let more = [
        facts.sandbox.as_ref().map(sandbox),
        gateway_words(&facts.gateway),
        facts.limits.clone(),
    ];
    let more = more.iter().flatten().chain(&started.understood);
    lines.extend(more.map(|note| Line::whole(Tone::Dim, note)));
    // The task at which a run is resumed has no second start event.
    let current = summary.current.as_deref().filter(|_| started.resumed);
    if let Some(task) = current.and_then(|id| summary.task(id)) {
        lines.extend(task_heading(&task.id, &task.title, summary));
    }
    lines
}

fn sandbox(line: &SandboxLine) -> String {
    let (words, next) = (line.words(), line.level.number() + 1);
    match &line.missing {
        Some(missing) => format!("{words} (level {next}: {missing})"),
        None => words,
    }
}

fn task_heading(id: &str, title: &str, summary: &RunSummary) -> Vec<Line> {
    let (at, of) = place(summary, id);
    let heading = format!("[{at}/{of}] {}", name(id, title));
    let empty = Line::new(Tone::Plain, "");
    vec![empty, Line::new(Tone::Heading, heading)]
}

/// A review and its open findings.
fn reviewed(line: &ReviewLine, task: Option<&TaskSummary>) -> Vec<Line> {
    let known = task.and_then(|task| task.reviews.last());
    let says = known.map_or_else(String::new, sentence::review);
    let tone = match line.verdict {
        ReviewVerdict::Acceptable => Tone::Good,
        ReviewVerdict::NeedsFixes => Tone::Warn,
    };
    let open = review::open(&line.findings).map(Finding::says);
    let shown = first_of(open, MAX_NAMED, |more| format!("and {more} more"));
    noted(tone, says, &shown)
}

fn assessed(event: &Event, line: &TurnLine, verbosity: Verbosity) -> Vec<Line> {
    let is_review = event
        .place
        .phase
        .is_some_and(|place| place.phase == Phase::Review && line.assessment.has_answer());
    let (tone, what) = if is_review {
        (Tone::Plain, "reviewed".to_owned())
    } else {
        let tone = match line.assessment {
            AssessmentKind::Changed => Tone::Plain,
            _ => Tone::Warn,
        };
        (tone, sentence::assessment(line.assessment, &line.detail))
    };
    let (turn, took) = (
        event.place.turn.unwrap_or_default(),
        duration(line.elapsed_ms),
    );
    let mut lines = vec![Line::new(tone, format!("  turn {turn}: {what} ({took})"))];
    if tells_more(line.assessment, verbosity) && !line.detail.trim().is_empty() {
        lines.push(Line::new(Tone::Dim, format!("    {}", line.detail)));
    }
    lines
}

/// Whether an assessment's detail says more than its name. This is not so if only the repository and the
/// final message decided.
fn tells_more(kind: AssessmentKind, verbosity: Verbosity) -> bool {
    use AssessmentKind as K;
    let named = matches!(
        kind,
        K::Changed
            | K::AwaitingInput
            | K::ReportsBlocked
            | K::ClaimsDone
            | K::PlanningOnly
            | K::Empty
            | K::NoChange
            | K::AgentCrashed
    );
    !named || verbosity >= Verbosity::Trace
}

fn check_ended(result: &CheckResult, verbosity: Verbosity) -> Vec<Line> {
    let (name, outcome) = (short_line(&result.name, 100), &result.outcome);
    let (counts, took) = (sentence::counts(result), duration(result.elapsed_ms));
    let text = format!("  check {name} {outcome}{counts} ({took})");
    match outcome {
        CheckOutcome::Passed => vec![Line::new(Tone::Good, text)],
        CheckOutcome::Aborted => vec![Line::new(Tone::Warn, text)],
        CheckOutcome::Skipped { .. } => {
            vec![Line::new(Tone::Dim, format!("  check {name} {outcome}"))]
        }
        CheckOutcome::Failed { .. }
        | CheckOutcome::Signalled { .. }
        | CheckOutcome::TimedOut { .. }
        | CheckOutcome::NotStarted { .. } => {
            let mut lines = vec![Line::new(Tone::Bad, text)];
            let errors = result.errors.iter().take(5);
            lines.extend(errors.map(|error| Line::new(Tone::Plain, format!("    {error}"))));
            if verbosity >= Verbosity::Verbose && !result.excerpt.is_empty() {
                lines.extend(block(Tone::Dim, "    | ", &result.excerpt, 200));
            }
            let log = result.log.iter();
            lines.extend(log.map(|log| Line::new(Tone::Dim, format!("    log: {log}"))));
            lines
        }
    }
}

fn agent_lines(event: &AgentEvent, verbosity: Verbosity) -> Vec<Line> {
    let dim = |text: String| vec![Line::new(Tone::Dim, text)];
    match event {
        AgentEvent::Error { message, is_final } => {
            let message = short_line(message, 500);
            if *is_final {
                let text = format!("    agent error: {message}");
                return vec![Line::new(Tone::Warn, text)];
            }
            // It shows why a turn takes long.
            dim(format!("    agent: {message}"))
        }
        _ if verbosity < Verbosity::Verbose => Vec::new(),
        AgentEvent::Message { text } => block(Tone::Plain, "    > ", text, MESSAGE_LINES),
        AgentEvent::Reasoning { text } => block(Tone::Dim, "    ~ ", text, MESSAGE_LINES),
        AgentEvent::ToolCall { name, summary, .. } => {
            dim(format!("    $ {name}: {}", short_line(summary, 500)))
        }
        AgentEvent::ToolResult {
            ok,
            exit_code,
            summary,
            ..
        } => {
            let word = match (ok, exit_code) {
                (true, _) => "ok".to_owned(),
                (false, Some(code)) => format!("exit code {code}"),
                (false, None) => "failed".to_owned(),
            };
            dim(format!("      {word} {}", short_line(summary, 300)))
        }
        AgentEvent::FileChange { path, kind } => dim(format!("    {kind} {path}")),
        AgentEvent::Todo { items } => {
            let is_done = |item: &&TodoItem| item.status == TodoStatus::Completed;
            let done = items.iter().filter(is_done).count();
            dim(format!("    to do: {done} of {} completed", items.len()))
        }
        _ if verbosity < Verbosity::Trace => Vec::new(),
        AgentEvent::SessionStarted { session_id } => dim(format!("    session {session_id}")),
        AgentEvent::Usage(usage) => {
            let usage = sentence::usage(usage).unwrap_or_default();
            dim(format!("    usage: {usage}"))
        }
        AgentEvent::Raw { line } => dim(format!("    raw: {line}")),
    }
}

fn pushed(push: &PushLine) -> Vec<Line> {
    let tone = if push.pushed { Tone::Good } else { Tone::Warn };
    let pull = push.pull_request.as_ref().map(|pull| {
        let word = if pull.opened { "opened" } else { "updated" };
        format!("{word} pull request #{}: {}", pull.number, pull.url)
    });
    let texts = std::iter::once(sentence::push(push)).chain(pull);
    texts.map(|text| Line::new(tone, text)).collect()
}

/// The tests that failed last, each with the cause of its failure if known.
fn failing_tests(ended: &TaskEnded) -> Vec<Line> {
    let tests = sentence::blamed(&ended.work.failing_tests).iter();
    let lines = tests.map(|test| match test.blame {
        Blame::New | Blame::Unknown => Line::new(Tone::Bad, format!("  failing: {}", test.says())),
        Blame::Flaky => Line::new(Tone::Warn, format!("  failing: {}", test.says())),
        Blame::WasRedBefore => {
            let text = format!("  already failing before: {}", test.name());
            Line::new(Tone::Warn, text)
        }
    });
    first_of(lines, MAX_NAMED, |more| {
        let more = count(more, "failing test");
        Line::new(Tone::Dim, format!("  and {more} more"))
    })
}

fn task_ended(ended: &TaskEnded, task: &TaskSummary) -> Line {
    let (tone, mark) = mark(task.standing().hue());
    let (id, says) = (&task.id, sentence::standing(task));
    let attempts = count(u64::from(ended.attempts), "attempt");
    let turns = count(u64::from(ended.turns), "turn");
    let took = duration(ended.elapsed_ms);
    let text = format!("{mark} {id} {says} · {attempts}, {turns}, {took}");
    Line::new(tone, text)
}

/// A line, and what was said about it.
fn noted(tone: Tone, text: String, said: &[String]) -> Vec<Line> {
    let said = said
        .iter()
        .map(|said| (Tone::Dim, format!("    \"{}\"", said.trim())));
    let lines = std::iter::once((tone, format!("  {text}"))).chain(said);
    lines.map(|(tone, text)| Line::new(tone, text)).collect()
}
