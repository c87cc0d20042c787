//! Formats an event as lines of the log.

use super::end;
use super::line::{LINE_CHARS, Line, Tone, block, mark, place};
use super::{Style, Verbosity};
use crate::domain::agent::{AgentEvent, TodoStatus};
use crate::domain::assess::AssessmentKind;
use crate::domain::attempt::{Blame, Phase, ProofWord};
use crate::domain::checks::verdict::{CheckOutcome, CheckResult};
use crate::domain::event::{
    Event, EventKind, PushLine, ReviewLine, RunStarted, TaskEnded, TurnLine,
};
use crate::domain::outcome::{Reason, signal_name};
use crate::domain::review::{self, ReviewVerdict};
use crate::domain::sandbox::{SandboxLine, denied_words, gateway_words};
use crate::domain::summary::{RunSummary, Standing, TaskSummary};
use crate::report::text::first_of;
use crate::report::{sentence, text};

/// Maximum number of failing tests that are named at the end of a task.
const MAX_TESTS: usize = 20;
/// Maximum number of review findings that are named.
const MAX_FINDINGS: usize = 20;
/// Maximum number of lines of one message of the agent.
const MESSAGE_LINES: usize = 40;

/// Formats an event as lines of the log, without line ends. A pure function.
pub fn lines(event: &Event, summary: &RunSummary, style: &Style) -> Vec<String> {
    let lines = match style.verbosity {
        Verbosity::Quiet => quiet(event, summary),
        _ => event_lines(event, summary, style.verbosity),
    };
    lines.into_iter().map(|line| line.render(style)).collect()
}

fn quiet(event: &Event, summary: &RunSummary) -> Vec<Line> {
    match &event.kind {
        EventKind::HostsDenied { hosts } => vec![warning(&denied_words(hosts))],
        EventKind::Warning { message, .. } => vec![warning(message)],
        EventKind::CancelRequested { signal } => vec![cancel(*signal)],
        EventKind::RunEnded { .. } => end::lines(summary),
        _ => Vec::new(),
    }
}

fn event_lines(event: &Event, summary: &RunSummary, verbosity: Verbosity) -> Vec<Line> {
    let one = |tone, text: String| vec![Line::new(tone, text)];
    let task = event.task.as_deref();
    match &event.kind {
        EventKind::RunStarted(started) => run_started(started, summary),
        EventKind::TaskStarted { title } => {
            task_heading(task.unwrap_or_default(), title, summary).to_vec()
        }
        EventKind::TurnStarted { purpose, agent, .. } => {
            one(Tone::Plain, turn_started(event, purpose, agent))
        }
        EventKind::Agent(agent) => agent_lines(agent, verbosity),
        EventKind::TurnProgress(progress) => {
            let progress = sentence::turn_progress(progress);
            one(Tone::Dim, format!("    {progress}"))
        }
        EventKind::TurnEnded {
            exit, elapsed_ms, ..
        } if verbosity >= Verbosity::Verbose => {
            let (exit, took) = (text::line(exit), ms(*elapsed_ms));
            one(Tone::Dim, format!("    ended with {exit} after {took}"))
        }
        EventKind::TurnAssessed(line) => assessed(event, line, verbosity),
        EventKind::ReviewEnded(line) => reviewed(line, summary, task),
        EventKind::SetupStarted { command } => {
            let command = text::short_line(command, 100);
            one(Tone::Plain, format!("setup {command}: running"))
        }
        EventKind::SetupEnded {
            command,
            exit,
            passed,
            elapsed_ms,
            log,
        } => setup_ended(command, exit, *passed, *elapsed_ms, log.as_deref()),
        EventKind::CheckStarted { name, .. } => {
            let name = text::short_line(name, 100);
            one(Tone::Plain, format!("  check {name}: running"))
        }
        EventKind::CheckEnded(result) if event.proof.is_some() => {
            let mut lines = check_ended(result, Verbosity::Normal);
            lines.truncate(1);
            lines
        }
        EventKind::CheckEnded(result) => check_ended(result, verbosity),
        EventKind::ProofStarted { proof } => one(Tone::Dim, format!("  {}", proof.describe())),
        EventKind::ProofEnded(line) => {
            let tone = match line.result {
                ProofWord::Passed => Tone::Plain,
                ProofWord::Failed | ProofWord::Unknown => Tone::Warn,
            };
            let says = text::short_line(&line.says(), LINE_CHARS);
            one(tone, format!("  {says}"))
        }
        EventKind::RetryScheduled { .. } => retry_scheduled(event, summary, verbosity),
        EventKind::NudgeResolved { k, of } => {
            let unchanged = sentence::last_unchanged(summary, task);
            let resolved = sentence::resolved(*k, *of, unchanged);
            one(Tone::Good, format!("  {resolved}"))
        }
        EventKind::VerificationSkipped { reason } => {
            let reason = text::short_line(reason, LINE_CHARS);
            one(Tone::Warn, format!("  {reason}"))
        }
        EventKind::CommitCreated {
            commit,
            subject,
            files,
        } => one(Tone::Good, committed(commit, subject, files.len())),
        EventKind::AgentCommits { commits } => agent_commits(commits),
        EventKind::CommitRejected { reason, .. } => {
            block(Tone::Warn, "  commit rejected: ", reason, 20)
        }
        EventKind::PushEnded(push) => pushed(push),
        EventKind::TaskEnded(ended) => {
            let failing = failing_tests(ended).into_iter();
            failing.chain([task_ended(event, ended, summary)]).collect()
        }
        EventKind::CancelRequested { signal } => vec![cancel(*signal)],
        EventKind::HostsDenied { hosts } => vec![warning(&denied_words(hosts))],
        EventKind::Warning { message, .. } => vec![warning(message)],
        EventKind::RunEnded { .. } => end::lines(summary),
        EventKind::TurnEnded { .. } => Vec::new(),
    }
}

fn turn_started(event: &Event, purpose: &str, agent: &str) -> String {
    let (turn, agent) = (event.turn.unwrap_or(0), text::short_line(agent, 60));
    let purpose = text::short_line(purpose, 20);
    let role = event.phase.map(|place| place.role.as_str());
    let role = role.map_or_else(String::new, |role| format!(", {role}"));
    format!("  turn {turn} ({purpose}{role}): {agent} is working")
}

fn committed(commit: &str, subject: &str, files: usize) -> String {
    let count = text::count(files as u64, "file");
    let subject = text::short_line(subject, 200);
    let id = sentence::short_id(commit);
    format!("  committed {id} {subject} ({count})")
}

fn retry_scheduled(event: &Event, summary: &RunSummary, verbosity: Verbosity) -> Vec<Line> {
    let EventKind::RetryScheduled {
        how,
        n,
        of,
        reason,
        indicators,
        delay_ms,
        ..
    } = &event.kind
    else {
        return Vec::new();
    };
    let last = sentence::last_assessment(summary, event.task.as_deref());
    let say = if verbosity >= Verbosity::Verbose {
        sentence::scheduled
    } else {
        sentence::counted
    };
    let message = say(*how, *n, *of, reason, *delay_ms, (last, event.phase));
    let said = sentence::indicators(indicators);
    let first = Line::new(Tone::Warn, format!("  {message}"));
    std::iter::once(first)
        .chain(said.iter().map(|text| indicator(text)))
        .collect()
}

fn setup_ended(
    command: &str,
    exit: &str,
    passed: bool,
    elapsed_ms: u64,
    log: Option<&str>,
) -> Vec<Line> {
    let (command, took) = (text::short_line(command, 100), ms(elapsed_ms));
    if passed {
        let text = format!("setup {command} passed ({took})");
        return vec![Line::new(Tone::Plain, text)];
    }
    let exit = text::line(exit);
    let first = Line::new(
        Tone::Bad,
        format!("setup {command} failed: {exit} ({took})"),
    );
    let log = log.map(|log| Line::new(Tone::Dim, format!("  log: {}", text::line(log))));
    std::iter::once(first).chain(log).collect()
}

fn run_started(started: &RunStarted, summary: &RunSummary) -> Vec<Line> {
    let selected = started
        .tasks
        .iter()
        .filter(|task| task.selected && !task.done)
        .count();
    // The end of the run says that nothing was left to do, which is enough.
    if selected == 0 {
        return Vec::new();
    }
    let mut facts = vec![
        text::short_line(&started.plan.title, 120),
        text::count(selected as u64, "task"),
        format!("agent {}", text::short_line(&started.agent, 60)),
        if started.checks.is_empty() {
            "no check configured".into()
        } else {
            format!("checks {}", text::some_of(&started.checks, 6))
        },
    ];
    if let Some(branch) = &started.branch {
        facts.push(format!("branch {}", text::short_line(branch, 100)));
    }
    let word = if started.resumed {
        "resumed"
    } else {
        "recorded"
    };
    let (run, dir) = (
        text::short_line(&started.run_id, 80),
        text::line(&started.run_dir),
    );
    let mut lines = vec![
        Line::new(Tone::Heading, format!("Sprag: {}", facts.join(" · "))),
        Line::whole(Tone::Dim, format!("run {run} is {word} in {dir}")),
    ];
    lines.extend(started.sandbox.as_ref().map(sandbox));
    let gateway = gateway_words(&started.gateway);
    lines.extend(gateway.map(|words| Line::whole(Tone::Dim, text::short_line(&words, LINE_CHARS))));
    let limits = started.limits.iter();
    lines.extend(limits.map(|limits| Line::new(Tone::Dim, text::line(limits))));
    let understood = started
        .understood
        .iter()
        .map(|note| text::short_line(note, LINE_CHARS));
    lines.extend(understood.map(|note| Line::whole(Tone::Dim, note)));
    lines.extend(resumed(started, summary));
    lines
}

fn sandbox(line: &SandboxLine) -> Line {
    let missing = line.missing.as_deref();
    let missing = missing.map_or_else(String::new, |missing| {
        let next = line.level.number() + 1;
        format!(" (level {next}: {})", text::short_line(missing, 200))
    });
    Line::whole(Tone::Dim, format!("{}{missing}", line.words()))
}

fn task_heading(id: &str, title: &str, summary: &RunSummary) -> [Line; 2] {
    let (at, of) = place(summary, id);
    let heading = format!(
        "[{at}/{of}] {} {}",
        text::short_line(id, 60),
        text::short_line(title, 200)
    );
    [
        Line::new(Tone::Plain, ""),
        Line::new(Tone::Heading, heading),
    ]
}

/// The task at which a run is resumed. It has no second start event.
fn resumed(started: &RunStarted, summary: &RunSummary) -> Vec<Line> {
    let current = summary.current.as_deref().filter(|_| started.resumed);
    let task = current.and_then(|id| summary.task(id));
    task.map_or_else(Vec::new, |task| {
        task_heading(&task.id, &task.title, summary).to_vec()
    })
}

/// A review and its open findings.
fn reviewed(line: &ReviewLine, summary: &RunSummary, task: Option<&str>) -> Vec<Line> {
    let known = task.and_then(|id| summary.task(id)?.reviews.last());
    let says = known.map_or_else(String::new, sentence::review);
    let tone = match line.verdict {
        ReviewVerdict::Acceptable => Tone::Good,
        ReviewVerdict::NeedsFixes => Tone::Warn,
    };
    let open = review::open(&line.findings)
        .map(|finding| indicator(&text::short_line(&finding.says(), LINE_CHARS)));
    let rest = |more| indicator(&format!("and {more} more"));
    std::iter::once(Line::new(tone, format!("  {says}")))
        .chain(first_of(open, MAX_FINDINGS, rest))
        .collect()
}

fn assessed(event: &Event, line: &TurnLine, verbosity: Verbosity) -> Vec<Line> {
    let is_review = event
        .phase
        .is_some_and(|place| place.phase == Phase::Review);
    let what = if is_review && line.assessment.has_answer() {
        "reviewed".to_owned()
    } else {
        sentence::assessment(line.assessment, &line.detail)
    };
    let tone = if line.assessment == AssessmentKind::Changed || what == "reviewed" {
        Tone::Plain
    } else {
        Tone::Warn
    };
    let took = ms(line.elapsed_ms);
    let turn = event.turn.unwrap_or_default();
    let mut lines = vec![Line::new(tone, format!("  turn {turn}: {what} ({took})"))];
    let detail = text::short_line(&line.detail, LINE_CHARS);
    if tells_more(line.assessment, verbosity) && !detail.is_empty() {
        lines.push(Line::new(Tone::Dim, format!("    {detail}")));
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
    let name = text::short_line(&result.name, 100);
    let (tone, word) = match &result.outcome {
        CheckOutcome::Passed => (Tone::Good, "passed".to_owned()),
        CheckOutcome::Failed { .. } => (Tone::Bad, result.outcome.to_string()),
        CheckOutcome::Signalled { signal } => {
            (Tone::Bad, format!("was ended by {}", signal_name(*signal)))
        }
        CheckOutcome::TimedOut { after_ms } => (
            Tone::Bad,
            format!("reached its time limit of {}", ms(*after_ms)),
        ),
        CheckOutcome::NotStarted { why, .. } => (
            Tone::Bad,
            format!("could not be started: {}", text::short_line(why, 300)),
        ),
        CheckOutcome::Aborted => (Tone::Warn, "was stopped with the run".to_owned()),
        CheckOutcome::Skipped { because } => {
            let because = text::short_line(because, 300);
            return vec![Line::new(
                Tone::Dim,
                format!("  check {name} skipped: {because}"),
            )];
        }
    };
    let took = ms(result.elapsed_ms);
    let counts = sentence::counts(result);
    let mut lines = vec![Line::new(
        tone,
        format!("  check {name} {word}{counts} ({took})"),
    )];
    if tone == Tone::Bad {
        let errors = result.errors.iter().take(5);
        lines.extend(errors.map(|error| {
            Line::new(
                Tone::Plain,
                format!("    {}", text::short_line(error, LINE_CHARS)),
            )
        }));
        if verbosity >= Verbosity::Verbose && !result.excerpt.is_empty() {
            lines.extend(block(Tone::Dim, "    | ", &result.excerpt, 200));
        }
        if let Some(log) = &result.log {
            lines.push(Line::new(
                Tone::Dim,
                format!("    log: {}", text::line(log)),
            ));
        }
    }
    lines
}

fn agent_lines(event: &AgentEvent, verbosity: Verbosity) -> Vec<Line> {
    let dim = |text: String| vec![Line::new(Tone::Dim, text)];
    match event {
        AgentEvent::Error {
            message,
            is_final: true,
        } => {
            vec![Line::new(
                Tone::Warn,
                format!("    agent error: {}", text::short_line(message, 500)),
            )]
        }
        // It shows why a turn takes long.
        AgentEvent::Error {
            message,
            is_final: false,
        } => dim(format!("    agent: {}", text::short_line(message, 500))),
        _ if verbosity < Verbosity::Verbose => Vec::new(),
        AgentEvent::Message { text } => block(Tone::Plain, "    > ", text, MESSAGE_LINES),
        AgentEvent::Reasoning { text } => block(Tone::Dim, "    ~ ", text, MESSAGE_LINES),
        AgentEvent::ToolCall { name, summary, .. } => {
            let (name, summary) = (text::short_line(name, 60), text::short_line(summary, 500));
            dim(format!("    $ {name}: {summary}"))
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
            dim(format!("      {word} {}", text::short_line(summary, 300))
                .trim_end()
                .to_owned())
        }
        AgentEvent::FileChange { path, kind } => dim(format!(
            "    {} {}",
            text::short_line(kind, 20),
            text::short_line(path, 300)
        )),
        AgentEvent::Todo { items } => {
            let done = items
                .iter()
                .filter(|item| item.status == TodoStatus::Completed)
                .count();
            dim(format!("    to do: {done} of {} completed", items.len()))
        }
        _ if verbosity < Verbosity::Trace => Vec::new(),
        AgentEvent::SessionStarted { session_id } => {
            dim(format!("    session {}", text::short_line(session_id, 100)))
        }
        AgentEvent::Usage(usage) => {
            let known = |n: Option<u64>| n.map_or_else(|| "?".to_owned(), text::tokens);
            let (sent, got) = (known(usage.tokens_in), known(usage.tokens_out));
            dim(format!("    usage: {sent} in / {got} out tokens"))
        }
        AgentEvent::Raw { line } => dim(format!("    raw: {}", text::short_line(line, LINE_CHARS))),
    }
}

fn pushed(push: &PushLine) -> Vec<Line> {
    let tone = if push.pushed { Tone::Good } else { Tone::Warn };
    let mut lines = vec![Line::new(tone, sentence::push(push))];
    lines.extend(push.pull_request.as_ref().map(|pull| {
        let word = if pull.opened { "opened" } else { "updated" };
        let url = text::short_line(&pull.url, 300);
        Line::new(tone, format!("{word} pull request #{}: {url}", pull.number))
    }));
    lines
}

fn agent_commits(commits: &[String]) -> Vec<Line> {
    let count = text::count(commits.len() as u64, "commit");
    let first = Line::new(Tone::Warn, format!("  the agent made {count} itself"));
    let shown = commits.iter().take(10);
    std::iter::once(first)
        .chain(shown.map(|commit| indicator(&text::short_line(commit, 200))))
        .collect()
}

/// The tests that failed last, each with the cause of its failure if known.
fn failing_tests(ended: &TaskEnded) -> Vec<Line> {
    let tests = sentence::blamed(&ended.failing_tests);
    let lines = tests.iter().map(|test| {
        let tone = match test.blame {
            Blame::New | Blame::Unknown => Tone::Bad,
            Blame::WasRedBefore | Blame::Flaky => Tone::Warn,
        };
        let text = match test.blame {
            Blame::WasRedBefore => format!("already failing before: {}", test.name()),
            _ => format!("failing: {}", test.says()),
        };
        Line::new(tone, format!("  {}", text::short_line(&text, LINE_CHARS)))
    });
    first_of(lines, MAX_TESTS, |more| {
        let more = text::count(more, "failing test");
        Line::new(Tone::Dim, format!("  and {more} more"))
    })
}

fn task_ended(event: &Event, ended: &TaskEnded, summary: &RunSummary) -> Line {
    let id = text::short_line(event.task.as_deref().unwrap_or(""), 60);
    let known = event.task.as_deref().and_then(|id| summary.task(id));
    let message = known.map_or_else(|| ended.outcome.message(), sentence::task_message);
    let message = text::short_line(&message, LINE_CHARS);
    let counts = [
        text::count(u64::from(ended.attempts), "attempt"),
        text::count(u64::from(ended.turns), "turn"),
        ms(ended.elapsed_ms),
    ];
    let standing = known.map_or(Standing::Failed, TaskSummary::standing);
    let (tone, mark) = mark(standing);
    let word = standing.as_str();
    // The message of a passed task already says why it is done.
    let reason = match ended.outcome.reason() {
        reason if reason == Reason::Verified || reason.as_str() == word => String::new(),
        reason => format!(" ({})", reason.as_str()),
    };
    Line::new(
        tone,
        format!(
            "{mark} {id} {word}{reason}: {message} · {}",
            counts.join(", ")
        ),
    )
}

fn cancel(signal: i32) -> Line {
    let name = signal_name(signal);
    Line::new(
        Tone::Warn,
        format!("{name} received: stopping; a second signal ends at once"),
    )
}

fn warning(message: &str) -> Line {
    Line::new(
        Tone::Warn,
        format!("warning: {}", text::short_line(message, LINE_CHARS)),
    )
}

fn indicator(text: &str) -> Line {
    Line::new(Tone::Dim, format!("    \"{text}\""))
}

fn ms(ms: u64) -> String {
    text::duration(ms)
}
