//! `sprag run`.

use crate::cli::RunArgs;
use crate::context::Context;
use crate::domain::attempt::Spend;
use crate::domain::event::{EventKind, RunStarted, TaskLine};
use crate::domain::outcome::{NoChanges, Outcome, Reason, run_end};
use crate::domain::plan::{Plan, Task, TaskId};
use crate::domain::schedule::Rules;
use crate::domain::snapshot::{Head, Snapshot};
use crate::error::{Error, Result};
use crate::git::Real;
use crate::github::actions_environment::{self, ActionsEnvironment};
use crate::github::delivery::{Delivered, end_of};
use crate::github::lookup;
use crate::github::queue::count_run;
use crate::github::request::RunRequest;
use crate::process::{self, Cancel, CancelReason};
use crate::run::delivery::deliver;
use crate::run::directory::RunDir;
use crate::run::layout::{Folder, RunFile};
use crate::run::lock::{LockError, RunLock};
use crate::run::new_run::{begin_new, refuse_read_only};
use crate::run::prepare::{Prepared, prepare};
use crate::run::reopen::{Earlier, TakenUp, recall_statuses, resume, spent};
use crate::run::reporting::Reporting;
use crate::run::source::{self, Ready, Start};
use crate::run::steps::{Emitter, Performer, PlanBook, Recorder, TaskStart, Watched};
use crate::run::{RunPlan, run};
use crate::secrets::sources::{find_secrets, redact};
use crate::settings::inputs::with_inputs;
use crate::settings::{RunConfig, TaskConfig};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{Write as _, stdout};
use std::panic::AssertUnwindSafe;
use std::time::Duration;
use tokio::runtime::Runtime;

/// Runs the command and says the process's exit code.
///
/// # Errors
/// What keeps the run from beginning, or Sprag's own failure.
pub fn command(context: &Context, args: &RunArgs) -> Result<u8> {
    process::hide_from_same_user().map_err(anyhow::Error::from)?;
    let args = &with_inputs(context, args)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(anyhow::Error::from)?;
    runtime
        .block_on(async { process::survive_file_size_limit() })
        .map_err(anyhow::Error::from)?;
    if args.resume {
        return resume(context, args, runtime);
    }
    let Ready {
        source,
        request,
        config,
        lock: held,
    } = match source::begin(context, args, &runtime)? {
        Start::Over(ended) => return Ok(lookup::ended(context, &ended, &mut stdout())),
        Start::Run(ready) => *ready,
    };
    let mut args = args.clone();
    if config.is_some() {
        args.common.config = config;
    }
    let args = &args;
    let is_foreign = request
        .as_ref()
        .is_some_and(|request| request.context.report_only);
    let prepared = prepare(
        context,
        &args.common,
        &args.settings,
        &args.tasks,
        source,
        is_foreign,
        None,
    );
    let prepared =
        prepared.inspect_err(|error| not_begun(context, request.as_ref(), error, &runtime))?;
    if args.dry_run {
        return crate::commands::small::dry_run(context, &prepared);
    }
    let _lock = match held {
        Some(held) => held,
        None => lock(context, &prepared.real)?,
    };
    let request = request.map(|mut request| {
        let token = ActionsEnvironment::of(context).is_some();
        request.settle(&prepared.run.delivery, context.in_actions(), token);
        request
    });
    execute(context, args, prepared, request, None, runtime)
}

/// One run per repository on a machine.
pub(crate) fn lock(context: &Context, real: &Real) -> Result<RunLock> {
    let directory = context.state_home().join("locks");
    let holder = format!("pid {}", std::process::id());
    RunLock::acquire(&directory, real.common_dir(), &holder).map_err(|error| {
        let told = Error::environment(error.to_string());
        match error {
            LockError::Held { .. } => told,
            LockError::Io { .. } => {
                told.hint("see to that place, or name another one for state in XDG_STATE_HOME")
            }
        }
    })
}

/// Makes everything ready, runs, and reports the end.
pub(crate) fn execute(
    context: &Context,
    args: &RunArgs,
    prepared: Prepared,
    request: Option<RunRequest>,
    taken_up: Option<TakenUp>,
    runtime: Runtime,
) -> Result<u8> {
    let begun = begun(context, args, &prepared, taken_up);
    let begun = begun.inspect_err(|error| not_begun(context, request.as_ref(), error, &runtime));
    let (begun, mut reporting, recorder) = begun?;
    let run_dir = begun.run_dir.clone();
    if let Some(request) = &request {
        run_dir.write(
            RunFile::Request,
            &serde_json::to_vec_pretty(request).map_err(anyhow::Error::from)?,
        )?;
        let resumed = begun.earlier.is_some();
        reporting.publish(context, request, &run_dir, &begun.run_id, resumed);
    }
    let begun = (begun, recorder);
    let working = work(context, prepared, begun, request.as_ref(), &mut reporting);
    let ended = unless_it_panics(|| runtime.block_on(working));
    // Children that were ended late must not hold the process up.
    runtime.shutdown_timeout(Duration::from_millis(200));
    match ended {
        Ok(code) => {
            let last = reporting.finish(context, &run_dir);
            note_ended(&run_dir, code, last);
            Ok(code)
        }
        Err(error) => {
            // What went wrong is told in any case; the report of it where that is possible.
            reporting.broke_off(&error);
            reporting.finish(context, &run_dir);
            Err(error)
        }
    }
}

/// A defect of the program must not leave a check run open or a child behind.
fn unless_it_panics<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    // What the work has left half done is read by nobody but the reports, which tell of events alone.
    std::panic::catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|payload| {
        process::kill_descendants();
        let words = payload
            .downcast_ref::<&str>()
            .map(|text| (*text).to_owned());
        let words = words.or_else(|| payload.downcast_ref::<String>().cloned());
        let words = words.unwrap_or_else(|| "no message".into());
        let error = anyhow::anyhow!("a defect of Sprag ended the run: {words}");
        Err(error.into())
    })
}

fn not_begun(context: &Context, request: Option<&RunRequest>, error: &Error, runtime: &Runtime) {
    if let Some(request) = request {
        source::tell(context, request, error, runtime);
    }
}

fn begun(
    context: &Context,
    args: &RunArgs,
    prepared: &Prepared,
    taken_up: Option<TakenUp>,
) -> Result<(Begun, Reporting, Option<Recorder>)> {
    crate::commands::small::require_agents(context, prepared)?;
    refuse_read_only(&prepared.real, !prepared.run.allow_dirty)?;
    let recorder = crate::run::record::recorder(context, args, prepared)?;
    let opened = match taken_up {
        None => begin_new(context, args, prepared),
        Some(it) => go_on(context, args, it),
    };
    match (opened, recorder) {
        (Ok((begun, reporting)), recorder) => Ok((begun, reporting, recorder)),
        (Err(error), recorder) => {
            recorder.into_iter().for_each(Recorder::discard);
            Err(error)
        }
    }
}

fn go_on(context: &Context, args: &RunArgs, it: TakenUp) -> Result<(Begun, Reporting)> {
    let reporting = Reporting::open(context, args, &it.run_dir, Some(&it.earlier.summary))?;
    let begun = Begun {
        run_dir: it.run_dir,
        run_id: it.run_id,
        earlier: Some(it.earlier),
        repo: it.repo,
    };
    Ok((begun, reporting))
}

/// A run whose directories are there: a new one, or one that is taken up again.
pub(crate) struct Begun {
    pub(crate) run_dir: RunDir,
    pub(crate) run_id: String,
    pub(crate) earlier: Option<Earlier>,
    pub(crate) repo: Watched,
}

/// Says that the run has come to its end and told of it, up to this event. A run that dies before that
/// is taken up to tell of its end.
fn note_ended(run_dir: &RunDir, code: u8, last: u64) {
    let noted = run_dir.write(RunFile::Ended, last.to_string().as_bytes());
    let noted = noted.and_then(|_| match code {
        0 => run_dir.write(RunFile::Finished, b"").map(drop),
        _ => Ok(()),
    });
    // What was done is done, and the exit code says so.
    if let Err(error) = noted {
        let _ = writeln!(std::io::stderr(), "warning: {error:#}");
    }
}

async fn work(
    context: &Context,
    prepared: Prepared,
    (mut begun, recorder): (Begun, Option<Recorder>),
    request: Option<&RunRequest>,
    reporting: &mut Reporting,
) -> Result<u8> {
    let cancel = ends(context, prepared.run.deadline)?;
    reporting.heed(&cancel);
    let mut sink = |event| reporting.take(event);
    let earlier = begun.earlier.take();
    let (seq, before_ms) = earlier
        .as_ref()
        .map_or((0, 0), |earlier| (earlier.seq, earlier.summary.elapsed_ms));
    let emit = Emitter::new(&mut sink, seq, before_ms);
    let Prepared {
        book,
        run: config,
        tasks,
        done,
        all,
        named,
        warnings,
        ..
    } = prepared;
    let no_changes = config.no_changes;
    let mut performer = performer(context, begun, book, config, cancel, emit);
    performer.recorder = recorder;
    let taken_up = earlier.is_some();
    if let Some(earlier) = &earlier {
        recall(&mut performer, earlier)?;
    }
    performer.note_begun_at()?;
    let started = started(&mut performer, &all, &tasks, taken_up);
    performer
        .emit
        .emit(EventKind::RunStarted(Box::new(started)));
    for warning in warnings {
        performer.warn(warning);
    }
    let just_failed = earlier.as_ref().and_then(Earlier::just_failed);
    let plan = run_plan(&performer, tasks, &named, earlier, no_changes);
    if taken_up {
        performer.take_up_run(plan.tasks.iter().map(|(_, start)| start))?;
    }
    if let Some((task, outcome)) = just_failed {
        performer.make_room_after(&task, &outcome);
    }
    // Setup, agent, checks and services run code that nobody has looked at.
    performer.hide_credentials();
    let worked = work_off(context, &mut performer, &plan, &done, request, no_changes).await;
    performer.restore_credentials();
    let (outcomes, delivered) = worked?;
    Ok(end(&mut performer, &outcomes, no_changes, delivered))
}

/// Works the plan off and brings what was committed to where it is meant to be.
async fn work_off(
    context: &Context,
    performer: &mut Performer<'_>,
    plan: &RunPlan,
    done: &[TaskConfig],
    request: Option<&RunRequest>,
    no_changes: NoChanges,
) -> Result<(BTreeMap<String, Outcome>, Delivered)> {
    let outcomes = match performer.setup(!plan.tasks.is_empty()).await? {
        None => run(performer, plan).await?,
        Some(outcome) => BTreeMap::from([("setup".to_owned(), outcome)]),
    };
    performer.end_services().await;
    if outcomes.values().all(|outcome| !outcome.ends_run())
        && let Err(error) = performer.plan_end()
    {
        performer.warn(format!("the plan's status could not be saved: {error:#}"));
    }
    let delivered = match request {
        Some(request) => deliver(context, performer, request, plan, done, &outcomes).await?,
        None => {
            keep_if_unpushed(context, performer)?;
            Delivered::Not
        }
    };
    // A run that tells GitHub nothing is counted by the job that publishes it.
    let counts = |request: &&RunRequest| request.delivery.push || request.delivery.report;
    if let Some(request) = request.filter(|it| it.queued.is_some()).filter(counts) {
        let (status, _) = run_end(&in_plan_order(&performer.book.plan, &outcomes), no_changes);
        let uncounted = count_run(context, request, status, &performer.run_id).await;
        uncounted.into_iter().for_each(|why| performer.warn(why));
    }
    Ok((outcomes, delivered))
}

/// Where there is nothing to push to, the commits of a job are kept for one that may.
fn keep_if_unpushed(context: &Context, performer: &mut Performer<'_>) -> Result<()> {
    let is_wanted = context.in_actions() || performer.config.delivery.push == Some(false);
    if let Some(start) = performer.begun_at()?.filter(|_| is_wanted) {
        performer.keep_for_publish(&start)?;
    }
    Ok(())
}

/// What ends the run before its time: signals, the runner's going away, the deadline.
fn ends(context: &Context, deadline: Option<Duration>) -> Result<Cancel> {
    let cancel = Cancel::new();
    process::listen(&cancel).map_err(anyhow::Error::from)?;
    process::become_subreaper().map_err(anyhow::Error::from)?;
    if context.in_actions() {
        process::watch_parent(&cancel).map_err(anyhow::Error::from)?;
    }
    watch_deadline(&cancel, deadline);
    Ok(cancel)
}

/// Everything that a run works with, as if it were new.
fn performer<'e>(
    context: &Context,
    begun: Begun,
    book: PlanBook,
    config: RunConfig,
    cancel: Cancel,
    emit: Emitter<'e>,
) -> Performer<'e> {
    Performer {
        repo: begun.repo,
        turns: begun.run_dir.highest_number(Folder::Prompts),
        checks: begun.run_dir.highest_number(Folder::Checks),
        run_dir: begun.run_dir,
        run_id: begun.run_id,
        network: actions_environment::network(context),
        env: context.env.clone(),
        is_root: context.is_root,
        in_actions: context.in_actions(),
        cancel,
        config,
        book,
        emit,
        droppings: BTreeSet::new(),
        spent: Spend::default(),
        services: Vec::new(),
        verdicts: HashMap::new(),
        matchers: BTreeMap::new(),
        session_usage: HashMap::new(),
        changed_files: BTreeSet::new(),
        redact: redact(context),
        find_secrets: find_secrets(context),
        recorder: None,
    }
}

/// Takes up what an earlier process of the run has brought, if it left the repository as it is.
fn recall(performer: &mut Performer<'_>, earlier: &Earlier) -> Result<()> {
    // The limit is the job's, and a run that is taken up has a job of its own.
    let before = Duration::from_millis(earlier.summary.elapsed_ms);
    let deadline = &mut performer.config.deadline;
    *deadline = deadline.map(|limit| limit.saturating_add(before));
    let keep_going = performer.config.keep_going;
    recall_statuses(&mut performer.book, earlier, keep_going);
    performer.spent = spent(earlier);
    performer.changed_files = earlier.summary.changed_files_so_far();
    match performer.changed_since_left() {
        None => Ok(()),
        Some(strange) => Err(
            Error::config(format!("the run cannot be taken up: {strange}"))
                .hint("undo that, or commit or stash what is there and start a new run"),
        ),
    }
}

/// Says how the run ended.
fn end(
    performer: &mut Performer<'_>,
    outcomes: &BTreeMap<String, Outcome>,
    no_changes: NoChanges,
    delivered: Delivered,
) -> u8 {
    let outcomes = in_plan_order(&performer.book.plan, outcomes);
    let late = performer.cancel.reason().and_then(CancelReason::signal);
    let (status, reason) = end_of(run_end(&outcomes, no_changes), delivered, late.is_some());
    let signal = outcomes.iter().find_map(|outcome| match outcome {
        Outcome::Cancelled { signal } => Some(*signal),
        _ => None,
    });
    let exit_code = status.exit_code(signal.or(late));
    if no_changes == NoChanges::Warn && reason_is_idle(reason) {
        performer.warn("a task changed nothing");
    }
    performer.note_left();
    let head = match performer.last_look().1 {
        Snapshot::Known(known) => match known.head {
            Head::At(id) => Some(id.0),
            Head::Unborn => None,
        },
        Snapshot::Unknown { .. } => None,
    };
    let changed_files = performer.changed_files.iter().cloned().collect();
    performer.emit.at(None, None, None);
    performer.emit.emit(EventKind::RunEnded {
        status,
        reason,
        exit_code,
        head,
        changed_files,
    });
    exit_code
}

/// The outcomes as the plan lists their tasks; what is no task's comes first.
fn in_plan_order<'o>(plan: &Plan, outcomes: &'o BTreeMap<String, Outcome>) -> Vec<&'o Outcome> {
    let places: HashMap<&str, usize> = plan
        .tasks
        .iter()
        .enumerate()
        .map(|(place, task)| (task.id.as_str(), place))
        .collect();
    let mut ordered: Vec<(Option<usize>, &Outcome)> = outcomes
        .iter()
        .map(|(id, outcome)| (places.get(id.as_str()).copied(), outcome))
        .collect();
    ordered.sort_by_key(|(place, _)| *place);
    ordered.into_iter().map(|(_, outcome)| outcome).collect()
}

fn reason_is_idle(reason: Reason) -> bool {
    matches!(reason, Reason::NoProgress | Reason::PlanningOnly)
}

fn started(
    performer: &mut Performer<'_>,
    all: &[Task],
    tasks: &[(Task, TaskConfig)],
    resumed: bool,
) -> RunStarted {
    // What a person should know of the look is said once the run has been told of.
    let exempt = performer.exempt();
    let seen = performer.repo.last_look(&exempt).ok();
    let branch = seen.and_then(|seen| seen.known.branch.as_deref().map(short_branch));
    let book = &performer.book;
    let first = tasks.first();
    let selected: HashMap<&TaskId, &TaskConfig> = tasks
        .iter()
        .map(|(task, config)| (&task.id, config))
        .collect();
    let line = |task: &Task| {
        let config = selected.get(&task.id);
        TaskLine {
            id: task.id.to_string(),
            title: task.title.clone(),
            done: book.is_done(&task.id),
            selected: config.is_some(),
            line: book.file.as_ref().and(u32::try_from(task.line).ok()),
            max_retries: config.map_or(0, |config| config.max_retries),
        }
    };
    RunStarted {
        run_id: performer.run_id.clone(),
        plan_title: book.plan.title.clone(),
        plan_path: book.file.as_ref().map(|file| file.name.clone()),
        branch,
        base: performer.repo.base().map(|id| id.0),
        agent: first
            .map_or("none", |(_, config)| config.agent.name())
            .to_owned(),
        checks: first.map_or_else(Vec::new, |(_, config)| {
            crate::domain::checks::verdict::ordered(&config.checks)
                .into_iter()
                .map(|check| check.name.clone())
                .collect()
        }),
        tasks: all.iter().map(line).collect(),
        run_dir: performer.run_dir.root().display().to_string(),
        resumed,
    }
}

fn run_plan(
    performer: &Performer<'_>,
    tasks: Vec<(Task, TaskConfig)>,
    named: &[TaskId],
    earlier: Option<Earlier>,
    no_changes: NoChanges,
) -> RunPlan {
    let (outcomes, mut histories, mut agent_commits) = match earlier {
        Some(earlier) => (earlier.outcomes, earlier.histories, earlier.agent_commits),
        None => Default::default(),
    };
    let done = performer
        .book
        .plan
        .tasks
        .iter()
        .filter(|task| performer.book.is_done(&task.id));
    RunPlan {
        done_before: done.map(|task| task.id.to_string()).collect(),
        tasks: tasks
            .into_iter()
            .map(|(task, config)| {
                let earlier = histories.remove(task.id.as_str()).unwrap_or_default();
                let agent_commits = agent_commits.remove(task.id.as_str()).unwrap_or_default();
                let start = TaskStart {
                    config,
                    earlier,
                    agent_commits,
                };
                (task, start)
            })
            .collect(),
        outcomes,
        rules: Rules {
            keep_going: performer.config.keep_going,
            no_changes,
            alone: named.iter().map(ToString::to_string).collect(),
        },
    }
}

fn watch_deadline(cancel: &Cancel, deadline: Option<Duration>) {
    let Some(deadline) = deadline else { return };
    let cancel = cancel.clone();
    tokio::spawn(async move {
        tokio::time::sleep(deadline).await;
        cancel.trigger(CancelReason::Deadline);
    });
}

fn short_branch(name: &str) -> String {
    name.strip_prefix("refs/heads/").unwrap_or(name).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error_with_its_words() {
        let still = std::panic::catch_unwind(|| unless_it_panics(|| Ok(7)));
        assert!(matches!(still, Ok(Ok(7))));
        let number = 3;
        for (ended, words) in [
            (unless_it_panics::<()>(|| panic!("constant")), "constant"),
            (unless_it_panics(|| panic!("number {number}")), "number 3"),
        ] {
            let error = ended.unwrap_err();
            assert_eq!(error.exit_code(), 70);
            assert!(error.to_string().contains(words), "{error}");
        }
    }
}
