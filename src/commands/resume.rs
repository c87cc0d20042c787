//! `sprag run --resume`: what an earlier process of the run has left is read and taken up.

use super::begin::{PLAN_COPY, runs_of};
use super::prepare::{Before, Source, in_base, prepare};
use super::run::{execute, lock};
use crate::cli::{Common, RunArgs, SettingFlags};
use crate::context::Context;
use crate::domain::attempt::{Record, Spend, fold};
use crate::domain::outcome::{Outcome, TaskEnd};
use crate::domain::plan::{StatusUpdate, TaskStatus};
use crate::domain::summary::RunSummary;
use crate::error::{Error, Result};
use crate::perform::{PlanBook, Watched, finish_landing};
use crate::run_dir::{Manifest, RunDir, newest_unfinished};
use crate::vcs::git::{Real, Repo};
use serde::Deserialize as _;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// An earlier process of this run, as far as it came.
pub(super) struct Earlier {
    /// Tasks that are done.
    pub(super) outcomes: BTreeMap<String, Outcome>,
    /// What is known of the others.
    pub(super) histories: BTreeMap<String, Vec<Record>>,
    /// Those of the others that were not over.
    pub(super) open: Vec<String>,
    pub(super) summary: RunSummary,
    pub(super) seq: u64,
}

/// A run that is taken up again.
pub(super) struct TakenUp {
    pub(super) run_dir: RunDir,
    pub(super) run_id: String,
    pub(super) earlier: Earlier,
    pub(super) repo: Watched,
}

pub(super) fn resume(context: &Context, args: &RunArgs) -> Result<u8> {
    let real = super::repository(context)?;
    let root = match &args.settings.run_dir {
        Some(dir) => context.cwd.join(dir),
        None => unfinished(context, &real)?,
    };
    let run_dir = RunDir::open(&root).map_err(|error| Error::config(format!("{error:#}")))?;
    let manifest = run_dir
        .manifest()
        .map_err(|error| Error::config(format!("{error:#}")))?;
    if manifest.work_tree != real.work_tree() {
        return Err(Error::config(format!(
            "{} is a run of {}, not of {}",
            root.display(),
            manifest.work_tree.display(),
            real.work_tree().display()
        )));
    }
    let _lock = lock(context, &real)?;
    let mut repo = Repo::reopen(real, &run_dir.path("git"))
        .map_err(|error| Error::config(format!("the run cannot be taken up: {error}")))?;
    finish_landing(&mut repo, &run_dir)
        .map_err(|error| Error::environment(format!("the run cannot be taken up: {error:#}")))?;
    let earlier = read_earlier(&run_dir)?;
    let source = source_again(&repo, &run_dir, &manifest)?;
    let before = Before {
        repo: &repo,
        open: &earlier.open,
    };
    let (common, settings) = with_flags_of(&manifest, args)?;
    let prepared = prepare(
        context,
        &common,
        &settings,
        &manifest.tasks,
        source,
        Some(before),
    )?;
    let taken_up = TakenUp {
        run_dir,
        run_id: manifest.run_id,
        earlier,
        repo: Watched::new(repo),
    };
    execute(context, args, prepared, Some(taken_up))
}

fn unfinished(context: &Context, real: &Real) -> Result<PathBuf> {
    let parent = runs_of(context, real.work_tree());
    newest_unfinished(&parent, real.work_tree()).ok_or_else(|| {
        Error::config(format!(
            "there is no unfinished run in {}",
            parent.display()
        ))
        .hint("start one with sprag run --plan FILE, or name one with --run-dir DIR")
    })
}

/// The plan of a run that is taken up: as it was last committed, or as it was when the run began. In
/// the work tree it may be whatever the agent left.
fn source_again(repo: &Repo, run_dir: &RunDir, manifest: &Manifest) -> Result<Source> {
    let path = match (&manifest.plan, &manifest.prompt) {
        (Some(path), _) => path.0.clone(),
        (None, Some(prompt)) => return Ok(Source::Prompt(prompt.clone())),
        (None, None) => {
            return Err(Error::config(
                "the run's manifest names neither plan nor prompt",
            ));
        }
    };
    if !path.starts_with(repo.real().work_tree()) {
        return Ok(Source::File(path));
    }
    let content = match in_base(repo, &path)? {
        Some(content) => content,
        None if repo.real().ignores(&path) => return Ok(Source::File(path)),
        None => crate::config::read_file(&run_dir.path(PLAN_COPY), "copy of the plan")?,
    };
    Ok(Source::Known { path, content })
}

/// These flags, and those that the run was begun with where these do not say otherwise.
fn with_flags_of(manifest: &Manifest, args: &RunArgs) -> Result<(Common, SettingFlags)> {
    let common = Common {
        directory: args.common.directory.clone(),
        config: args.common.config.clone().or(manifest.config.clone()),
    };
    let mut settings = args.settings.clone();
    if !manifest.flags.is_null() {
        let earlier = SettingFlags::deserialize(&manifest.flags).map_err(|error| {
            Error::config(format!("the run's manifest has unknown flags: {error}"))
        })?;
        settings.earlier = Some(Box::new(earlier));
    }
    Ok((common, settings))
}

/// What an earlier process of the run has left. A task that failed is taken again with fresh counts,
/// from where it began; one that was stopped goes on.
fn read_earlier(run_dir: &RunDir) -> Result<Earlier> {
    let damaged =
        |error: anyhow::Error| Error::config(format!("the run cannot be taken up: {error:#}"));
    let events = run_dir.read_events().map_err(damaged)?;
    let mut outcomes = BTreeMap::new();
    let mut histories: BTreeMap<String, Vec<Record>> = BTreeMap::new();
    for line in run_dir.read_history().map_err(damaged)? {
        let history = histories.entry(line.task.clone()).or_default();
        match line.record {
            Record::Finished { outcome } if outcome.ends_run() => {}
            Record::Finished { outcome } if outcome.task_end() == TaskEnd::Done => {
                histories.remove(&line.task);
                outcomes.insert(line.task, outcome);
            }
            Record::Finished { .. } => history.truncate(1),
            record => history.push(record),
        }
    }
    let is_open = |history: &Vec<Record>| history.len() > 1;
    let open = histories.iter().filter(|(_, history)| is_open(history));
    let open = open.map(|(task, _)| task.clone()).collect();
    let summary = RunSummary::of(&events);
    let seq = events.last().map_or(0, |event| event.seq);
    Ok(Earlier {
        outcomes,
        histories,
        open,
        summary,
        seq,
    })
}

/// What the run has spent but for the tasks that are gone on with, whose histories tell it.
pub(super) fn spent(earlier: &Earlier) -> Spend {
    let usage = &earlier.summary.usage;
    let open = earlier
        .histories
        .values()
        .map(|history| fold(history).spend);
    let all = Spend {
        tokens: usage
            .tokens_in
            .unwrap_or(0)
            .saturating_add(usage.tokens_out.unwrap_or(0)),
        cost_usd: usage.cost_usd.unwrap_or(0.0),
    };
    open.fold(all, |left, open| Spend {
        tokens: left.tokens.saturating_sub(open.tokens),
        cost_usd: (left.cost_usd - open.cost_usd).max(0.0),
    })
}

/// A status that was to ride in a later commit is still to be saved.
pub(super) fn recall_statuses(book: &mut PlanBook, earlier: &Earlier) {
    for (id, outcome) in &earlier.outcomes {
        let Some(task) = book.plan.tasks.iter().find(|task| task.id.as_str() == id) else {
            continue;
        };
        let id = task.id.clone();
        if outcome.task_end() == TaskEnd::Done && !book.is_done(&id) {
            let attempts = earlier.summary.task(id.as_str()).map(|task| task.attempts);
            let update = StatusUpdate {
                status: TaskStatus::Done,
                attempts,
                completed_at: None,
            };
            book.set(&id, update);
        }
    }
}
