//! One turn of the agent: take a snapshot, run the agent, take another snapshot, assess.

use crate::domain::agent::{TurnName, Usage, UsageBasis};
use crate::domain::assess::{Assessment, AssessmentKind, TurnExit, TurnFacts, assess};
use crate::domain::attempt::{
    Expect, HeldBack, Last, Observation, Role, Spend, TestChanges, TurnEnded, TurnKey, TurnPurpose,
};
use crate::domain::commit_message::suggested_commit_message;
use crate::domain::event::{EventKind, ReviewLine, TurnLine};
use crate::domain::output_schema::StructuredOutput;
use crate::domain::review::{Review, read_review, take_review};
use crate::domain::settings::{AgentCommits, TestChangePolicy};
use crate::domain::snapshot::Snapshot;
use crate::domain::text::count;
use crate::error::Error;
use crate::git::{GitError, RawSnapshot, TurnMark, TurnReport};
use crate::report::text::head_bytes;
use crate::run::deliver::jj;
use crate::run::state::accounts::Accounts;
use crate::run::state::conversation;
use crate::run::state::parts::{Parts, SubstituteAgent, TaskRun};
use crate::run::state::setup::interruption;
use crate::run::state::work_tree::changed_paths;
use crate::run::steps::agent_end::AgentEnd;
use crate::run::steps::agent_turn::run_agent_with_its_files;
use crate::run::steps::announce::nudges_of;
use crate::run::steps::hold::{hold_protected, tell_ignored};
use crate::run::steps::plan_file::PlanBefore;
use crate::run::steps::prompt::write_prompt;
use crate::run::steps::turn_mark::{save_inspected, turn_mark};
use crate::run::steps::turn_violations::{of_changed_configuration, violations};
use crate::run::steps::undo::{keep_phase_start, undo_what_may_not_change};
use std::sync::Arc;

/// How many bytes at the end of a final message the history keeps.
const MESSAGE_BYTES: usize = 32 * 1024;

/// The repository before a turn.
struct TurnStart {
    state: Snapshot,
    /// HEAD and refs.
    mark: Result<TurnMark, GitError>,
    /// Untracked repositories inside the work tree.
    nested: Vec<Vec<u8>>,
    plan: Option<PlanBefore>,
}

/// The work tree after a turn, without the changes that the turn may not make.
struct TurnWork {
    raw: Option<Arc<RawSnapshot>>,
    state: Snapshot,
    /// The paths of undone changes.
    undone: Vec<String>,
    held: Option<HeldBack>,
    violations: Vec<String>,
    /// Whether what the turn did to the repository itself could be inspected, and undone.
    is_inspected: bool,
}

/// Runs the agent once and returns the observation.
///
/// # Errors
/// When the run's own state cannot be written.
pub async fn turn(
    parts: &mut Parts<'_>,
    run: &mut TaskRun<'_>,
    key: TurnKey,
    purpose: &TurnPurpose,
) -> anyhow::Result<Observation> {
    let before = run.substitute;
    run.begin_turn(key);
    announce_substitute(parts, run, before);
    let start = record_start(parts, run, key)?;
    let (number, end, usage) = call_agent(parts, run, key, purpose, &start.state).await?;
    if let Err(error @ GitError::Replaced { .. }) = parts.tree.repo.ensure_tree_in_place() {
        let remedy = "put the work tree back to its place, then continue with sprag run --resume";
        return Err(Error::environment(error.to_string()).hint(remedy).into());
    }
    let before = start.state.clone();
    let mut work = take_work(parts, run, key, number, start, &end);
    if run.config.settings.agent_commits == AgentCommits::Reject {
        let made = jj::commits_by_agent(&parts.setup, &parts.tree, &mut parts.emit).await;
        let what = format!("the agent made {} itself", count(made as u64, "commit"));
        work.violations.extend((made > 0).then_some(what));
    }
    // Once a signal has ended git, what a turn has done cannot be judged.
    let is_stopped = parts.tree.repo.real().is_stopped();
    let unseen = parts.setup.interruption().filter(|_| is_stopped);
    if let Some(by) = end.cancelled.map(interruption).or(unseen) {
        if work.is_inspected {
            save_inspected(parts);
        }
        save_session(parts, run);
        let spend = spend(&usage);
        return Ok(Observation::Interrupted { by, spend });
    }
    let notes = keep_report(parts, run, key, &end, number);
    if !end.report.todo.is_empty() && run.row(key).role != Role::Reviewer {
        run.plan.clone_from(&end.report.todo);
    }
    let assessment = assess(&TurnFacts {
        before: &before,
        after: &work.state,
        exit: &end.exit,
        report: &end.report,
        agent: run.config.agent.name(),
        violations: &work.violations,
    });
    if !run.agent_commits.is_empty() {
        let commits = run.agent_commits.clone();
        parts.emit.emit(EventKind::AgentCommits { commits });
    }
    let (word, after) = (purpose.as_str(), &work.state);
    let mut line = turn_line(word, &assessment, &before, after, &end, usage);
    line.notes = notes;
    parts.emit.emit(EventKind::TurnAssessed(Box::new(line)));
    if let (TurnPurpose::Nudge { n, kind }, AssessmentKind::Changed) = (purpose, assessment.kind)
        && kind.is_about_idleness()
    {
        let of = nudges_of(run, key.phase, *n, *kind) + 1;
        parts.emit.emit(EventKind::NudgeResolved { k: n + 1, of });
    }
    if falls_back(parts, run, key, &assessment) {
        // The cost of the first agent is included.
        let mut ended = Box::pin(turn(parts, run, key, purpose)).await?;
        match &mut ended {
            Observation::TurnEnded(ended) => Arc::make_mut(ended).spend.add(&spend(&usage)),
            Observation::Interrupted { spend: all, .. } => all.add(&spend(&usage)),
            _ => {}
        }
        return Ok(ended);
    }
    let review = review(parts, run, key, assessment.kind);
    let raw = work.raw.as_deref();
    let mut tests = TestChanges::default();
    if let Some(raw) = raw {
        if let Some(written) = parts.tree.ignored_work(raw) {
            parts.warn_once(&format!("task {}: {written}", run.task.id));
        }
        tell_ignored(parts, run, raw);
        tests = tests_changed(parts, run, raw);
    }
    Ok(Observation::TurnEnded(Arc::new(TurnEnded {
        assessment,
        after: work.state,
        changes: raw.map(changed_paths).unwrap_or_default(),
        tests: tests.into(),
        spend: spend(&usage),
        elapsed_ms: parts.emit.elapsed_ms(),
        undone: work.undone,
        held: work.held,
        message: run.keeps_messages().then(|| end_of_message(run)).flatten(),
        suggested: suggested(run),
        review,
        output: output(parts, run, key, &end),
    })))
}

/// Records the repository before a turn. A turn that a crash interrupted is judged from its start, not from
/// where it stopped.
fn record_start(
    parts: &mut Parts<'_>,
    run: &mut TaskRun<'_>,
    key: TurnKey,
) -> anyhow::Result<TurnStart> {
    let (found, now) = parts.last_snapshot();
    let nested = found.map_or_else(Vec::new, |raw| raw.nested.clone());
    let before = now.clone();
    run.journal.observe(Observation::TurnStarted { before })?;
    let state = run.journal.state.turn_start.clone().unwrap_or(now);
    let mark = turn_mark(parts, run, key)?;
    keep_phase_start(parts, run, key);
    let is_taken_up = matches!(run.journal.state.last, Last::Resumed(_));
    if is_taken_up {
        // A reviewer that is asked again must not judge what its interrupted turn has changed.
        undo_what_may_not_change(parts, run, key, None);
    }
    Ok(TurnStart {
        state,
        mark,
        nested,
        plan: PlanBefore::read(&parts.tree, is_taken_up),
    })
}

/// Undoes and holds back the changes that the turn may not make, and inspects what is left.
fn take_work(
    parts: &mut Parts<'_>,
    run: &mut TaskRun<'_>,
    key: TurnKey,
    number: u32,
    start: TurnStart,
    end: &AgentEnd,
) -> TurnWork {
    let mut inspected = inspect(parts, start.mark);
    let is_inspected = inspected.is_ok();
    let undone = undo_what_may_not_change(parts, run, key, inspected.as_mut().ok());
    let mut seen = parts.snapshot();
    let mut held = None;
    if end.cancelled.is_none() {
        (seen, held) = hold_protected(parts, run, number, seen);
        if let Some(plan) = start.plan {
            seen = plan.repair(&mut parts.tree, &mut parts.emit, &start.state, seen);
        }
    }
    let (raw, state) = seen;
    let mut violations = violations(parts, run, inspected, &start.nested, raw.as_deref());
    violations.extend(of_changed_configuration(parts, run, end));
    TurnWork {
        raw,
        state,
        undone,
        held,
        violations,
        is_inspected,
    }
}

/// Keeps the turn's session and final message. Returns the notes of the message.
fn keep_report(
    parts: &mut Parts<'_>,
    run: &mut TaskRun<'_>,
    key: TurnKey,
    end: &AgentEnd,
    number: u32,
) -> Vec<String> {
    run.session.clone_from(&end.report.session_id);
    run.final_message.clone_from(&end.report.final_message);
    let kept = conversation::save_final_message(&parts.setup.run_dir, run, number);
    parts.emit.warn_unless_stored(kept);
    save_session(parts, run);
    // What an optional phase changes may yet be undone.
    let message = run.final_message.as_deref();
    let message = message
        .filter(|_| !run.row(key).optional)
        .unwrap_or_default();
    let (run_dir, task) = (&parts.setup.run_dir, run.task.id.as_str());
    let (notes, kept) = parts.notes.take(run_dir, task, message);
    parts.emit.warn_unless_stored(kept);
    notes
}

/// The commit message that the turn's final message suggests.
fn suggested(run: &TaskRun<'_>) -> Option<String> {
    let message = suggested_commit_message(run.final_message.as_deref()?)?;
    let whole = format!("{}\n\n{}", message.subject, message.body);
    Some(whole.trim_end().to_owned())
}

/// Warns if another agent works from now on.
fn announce_substitute(parts: &mut Parts<'_>, run: &TaskRun<'_>, before: Option<SubstituteAgent>) {
    let why = match run.substitute {
        now if now == before => return,
        Some(SubstituteAgent::Escalation(number)) => format!(
            "verification has failed; `escalate` {number} of {} takes over",
            run.config.settings.escalate.len()
        ),
        Some(SubstituteAgent::Fallback) => {
            "the agent is unavailable; `fallback` takes over".to_owned()
        }
        None => "the task's own agent works again".to_owned(),
    };
    let agent = run.config.agent.name();
    let model = run.config.settings.model.as_deref();
    let model = model.map_or(String::new(), |model| format!(" with the model {model}"));
    parts.warn(format!("task {}: {why}: {agent}{model}", run.task.id));
}

/// Whether the fallback repeats the turn because this agent is unavailable: it reports so, or no more
/// waits for it are left.
fn falls_back(
    parts: &mut Parts<'_>,
    run: &mut TaskRun<'_>,
    key: TurnKey,
    assessment: &Assessment,
) -> bool {
    let role = key.role();
    let is_unavailable = match assessment.kind {
        AssessmentKind::AgentUnavailable => true,
        AssessmentKind::AgentTransient => run.journal.state.waits >= run.policy.waits,
        _ => false,
    };
    if !is_unavailable || !run.config.has_fallback() || run.unavailable.contains(&role) {
        return false;
    }
    parts.warn(format!(
        "task {}: the agent {} is unavailable: {}",
        run.task.id,
        run.config.agent.name(),
        assessment.detail
    ));
    run.unavailable.push(role);
    parts.accounts.unavailable.clone_from(&run.unavailable);
    true
}

/// The structured output in the final message. `None` if the task needs none, or if this turn need not
/// return one and has no valid one: then an earlier output stays.
fn output(
    parts: &Parts<'_>,
    run: &TaskRun<'_>,
    key: TurnKey,
    end: &AgentEnd,
) -> Option<StructuredOutput> {
    let schema = parts.setup.output_schema.as_ref()?;
    if !run.policy.wants_output || run.row(key).role == Role::Reviewer {
        return None;
    }
    let given = match &end.report.structured_output {
        Some(value) => schema.judge(value.clone()),
        None => schema.read(run.final_message.as_deref().unwrap_or_default()),
    };
    Some(given).filter(|given| run.needs_output(key) || given.is_ok())
}

/// The end of the final message.
fn end_of_message(run: &TaskRun<'_>) -> Option<String> {
    let text = run.final_message.as_deref()?;
    let from = text.len().saturating_sub(MESSAGE_BYTES);
    let from = (from..=text.len()).find(|at| text.is_char_boundary(*at))?;
    text.get(from..).map(str::to_owned)
}

/// Parses and emits a reviewer's answer; `None` if the turn has none.
fn review(
    parts: &mut Parts<'_>,
    run: &TaskRun<'_>,
    key: TurnKey,
    kind: AssessmentKind,
) -> Option<Review> {
    let row = run.row(key);
    if row.expect != Expect::Acceptable || !kind.has_answer() {
        return None;
    }
    let message = run.final_message.as_deref().unwrap_or_default();
    let root = parts.tree.repo.real().work_tree().to_string_lossy();
    let review = read_review(message, &root);
    let mut findings = run.journal.state.findings.clone();
    take_review(&mut findings, row.cycle, &review);
    let mut rows = run.policy.phases.iter().rev();
    let last = rows.find(|row| row.expect == Expect::Acceptable);
    parts.emit.emit(EventKind::ReviewEnded(Box::new(ReviewLine {
        round: row.cycle,
        of: last.map_or(row.cycle, |last| last.cycle),
        verdict: review.verdict,
        incomplete: review.incomplete,
        findings,
    })));
    Some(review)
}

/// Runs the agent, and once more without its session if that seems to be lost. Returns the number of the
/// turn's files, the end of the turn and its usage.
async fn call_agent(
    parts: &mut Parts<'_>,
    run: &mut TaskRun<'_>,
    key: TurnKey,
    purpose: &TurnPurpose,
    before: &Snapshot,
) -> anyhow::Result<(u32, AgentEnd, Usage)> {
    let prompt = write_prompt(parts, run, key, purpose, run.session.is_some())?;
    let mut number = prompt.number;
    let name = TurnName {
        task: run.task.id.to_string(),
        attempt: key.attempt,
        turn: key.turn,
        purpose: purpose.as_str().to_owned(),
    };
    parts.emit.emit(EventKind::TurnStarted {
        purpose: purpose.as_str().into(),
        agent: run.config.agent.name().into(),
        prompt: prompt.name.clone(),
    });
    let mut end = run_agent_with_its_files(parts, run, &name, prompt).await?;
    if end.may_have_lost_its_session() && parts.snapshot().1.same_as(before) == Some(true) {
        run.session = None;
        let prompt = write_prompt(parts, run, key, purpose, false)?;
        number = prompt.number;
        end = run_agent_with_its_files(parts, run, &name, prompt).await?;
    }
    let usage = turn_usage(&mut parts.accounts, &end);
    // A job has a limit by default, which nobody relies on.
    let has_limit = parts.setup.config.settings.max_cost_usd.is_some() && !parts.setup.in_actions;
    if has_limit && usage.cost_usd.is_none() && end.exit == TurnExit::Code(0) {
        parts.warn_once("max_cost_usd does not limit this agent: nobody knows what it costs");
    }
    parts.emit.emit(EventKind::TurnEnded {
        exit: end.exit.describe(),
        elapsed_ms: end.elapsed_ms,
        usage: end.cancelled.map(|_| usage),
    });
    Ok((number, end, usage))
}

/// What the turn did to the repository itself. Without a mark, only the current state is inspected.
fn inspect(
    parts: &mut Parts<'_>,
    mark: Result<TurnMark, GitError>,
) -> Result<TurnReport, GitError> {
    let mark = mark.or_else(|error| {
        parts.warn(format!(
            "the repository's refs could not be read before the turn: {error}"
        ));
        parts.tree.repo.mark_turn()
    })?;
    parts.tree.repo.change().inspect_turn(&mark)
}

/// Maximum length of a question of an agent in events and reports.
const QUESTION_BYTES: usize = 4_000;

/// A turn with its assessment, without notes.
pub(super) fn turn_line(
    purpose: &str,
    assessment: &Assessment,
    before: &Snapshot,
    after: &Snapshot,
    end: &AgentEnd,
    usage: Usage,
) -> TurnLine {
    let asks = assessment.kind == AssessmentKind::AwaitingInput;
    let question = end.report.final_message.as_deref().filter(|_| asks);
    TurnLine {
        purpose: purpose.into(),
        assessment: assessment.kind,
        indicators: assessment.indicators.clone(),
        detail: assessment.detail.clone(),
        before: before.into(),
        after: after.into(),
        exit: end.exit.describe(),
        elapsed_ms: end.elapsed_ms,
        usage,
        failed_report: assessment.failed_report.clone(),
        question: question.map(|text| head_bytes(text, QUESTION_BYTES).to_owned()),
        notes: Vec::new(),
        builtin: end.builtin.clone(),
    }
}

/// The task's changes of what judges it. Warns of changed tests if the policy says so. Whether the checks pass only with
/// other changed files is for the proof to say.
fn tests_changed(parts: &mut Parts<'_>, run: &TaskRun<'_>, raw: &RawSnapshot) -> TestChanges {
    let tests = parts.tree.check_changes(raw, &run.config).tests;
    let is_told = run.config.settings.test_changes == TestChangePolicy::Warn;
    if is_told && !tests.changed.is_empty() {
        parts.warn_once(&format!(
            "task {} changes existing tests: {}",
            run.task.id,
            tests.changed.join(", ")
        ));
    }
    tests
}

/// The usage of the turn: as the gateway counted, else as the agent reports.
pub(super) fn turn_usage(accounts: &mut Accounts, end: &AgentEnd) -> Usage {
    let mut told = end.report.usage;
    // Some agents report the totals of their session.
    let session = end.report.session_id.as_ref();
    if let Some(session) = session.filter(|_| end.report.usage_basis == UsageBasis::Session) {
        let before = accounts.session_usage.insert(session.clone(), told);
        let before = before.unwrap_or_default();
        let less = |now: Option<u64>, before: Option<u64>| {
            now.map(|now| now.saturating_sub(before.unwrap_or(0)))
        };
        let less_cost = |now: f64| (now - before.cost_usd.unwrap_or(0.0)).max(0.0);
        told = Usage {
            tokens_in: less(told.tokens_in, before.tokens_in),
            tokens_cached: less(told.tokens_cached, before.tokens_cached),
            tokens_out: less(told.tokens_out, before.tokens_out),
            cost_usd: told.cost_usd.map(less_cost),
        };
    }
    end.by_gateway.usage.map_or(told, |counted| Usage {
        // The agent may know the price of a model that Sprag does not know.
        cost_usd: counted.cost_usd.or(told.cost_usd),
        ..counted
    })
}

pub(super) fn spend(usage: &Usage) -> Spend {
    let (input, output) = (usage.tokens_in.unwrap_or(0), usage.tokens_out.unwrap_or(0));
    Spend {
        tokens: input.saturating_add(output),
        cost_usd: usage.cost_usd.unwrap_or(0.0),
    }
}

fn save_session(parts: &mut Parts<'_>, run: &TaskRun<'_>) {
    let used = &parts.accounts.session_usage;
    let kept = conversation::save_session(&parts.setup.run_dir, run, used);
    parts.emit.warn_unless_stored(kept);
}
