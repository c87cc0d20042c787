//! Integrates the work of several jobs on one plan: the commits of each shard are rebased onto the
//! shards before it and verified there.

mod shards;

use self::shards::{Shard, ShardReader, Work};
use crate::context::Context;
use crate::domain::agent::Usage;
use crate::domain::attempt::{BlamedTest, Interruption};
use crate::domain::event::{EventKind, TaskEnded, TaskWork};
use crate::domain::outcome::{Outcome, Reason, TaskEnd, short};
use crate::domain::plan::{StatusUpdate, Task, TaskStatus};
use crate::domain::snapshot::RevId;
use crate::domain::summary::TaskSummary;
use crate::git::{RebaseError, display_path, display_paths};
use crate::run::begin::beginning::RunPlan;
use crate::run::merge::merging::{accepted, impossible};
use crate::run::state::parts::Parts;
use crate::run::state::plan_state::completed_at;
use crate::run::steps::{Before, Moved, NotMoved, move_and_verify_with_reruns};
use crate::settings::TaskConfig;
use std::collections::{BTreeMap, BTreeSet};

/// Integrates the shards and returns the outcome of each task.
///
/// # Errors
/// When the run's own state cannot be read or written.
pub(crate) async fn integrate(
    context: &Context,
    parts: &mut Parts<'_>,
    plan: &RunPlan,
    shards: &[String],
) -> anyhow::Result<BTreeMap<String, Outcome>> {
    let shards = ShardReader::new(context, parts, plan).read(shards);
    let mut integration = Integration {
        before: Before::at(parts.tree.repo.base_tree()),
        parts,
        plan,
        outcomes: BTreeMap::new(),
        origins: BTreeMap::new(),
    };
    let mut why = Outcome::without_agent(
        TaskEnd::Pending,
        Reason::MissingShard,
        "no shard delivered it; it can be run again".to_owned(),
    );
    for shard in &shards {
        if let Some(by) = integration.take(shard).await? {
            why = by.outcome();
            break;
        }
    }
    integration.end_others(&why);
    integration.parts.emit.at(None, None, None);
    Ok(integration.outcomes)
}

/// The state of an integration in progress.
struct Integration<'i, 'e> {
    parts: &'i mut Parts<'e>,
    plan: &'i RunPlan,
    outcomes: BTreeMap<String, Outcome>,
    /// Checks that failed before any shard was integrated.
    before: Before,
    /// The task and the shard that last changed a file in this integration.
    origins: BTreeMap<String, (String, String)>,
}

/// A shard rebased onto the current branch, before verification.
struct Picked {
    head: RevId,
    /// The rebased commits, by task.
    commits: BTreeMap<String, Vec<(RevId, Work)>>,
    /// Tasks that were not integrated.
    undone: BTreeMap<String, Outcome>,
    /// Tests that fail on it, each with what caused the failure.
    failing: Vec<BlamedTest>,
}

impl Integration<'_, '_> {
    /// Integrates a shard. Returns why the run should stop, if it should.
    async fn take(&mut self, shard: &Shard) -> anyhow::Result<Option<Interruption>> {
        if let Some(by) = self.parts.setup.interruption() {
            return Ok(Some(by));
        }
        let Some(base) = self.parts.tree.repo.base() else {
            return Ok(None);
        };
        let mut picked = self.pick(shard, &base);
        let brings = shard.tasks.iter().filter(|task| {
            let is_left = !picked.undone.contains_key(&task.id);
            task.status == TaskEnd::Done && is_left
        });
        let brings: Vec<&TaskSummary> = brings.collect();
        if let (Some(last), true) = (brings.last(), shard.refused.is_empty()) {
            self.parts.emit.at(Some(&last.id), Some(1), None);
            match self.verify(&picked.head, &brings).await? {
                Ok(known) => picked.failing = known,
                Err(NotMoved::Stopped) => return Ok(self.parts.setup.interruption()),
                Err(failed) => {
                    let outcome = not_taken(&shard.name, &failed);
                    let all = brings.iter().map(|task| (task.id.clone(), outcome.clone()));
                    picked.undone.extend(all);
                    picked.commits.clear();
                    if let NotMoved::Fails(failing) = failed {
                        picked.failing = failing.tests;
                    }
                }
            }
        }
        for task in &shard.tasks {
            self.end(shard, task, &picked);
        }
        self.parts.tree.save_plan()?;
        self.parts.emit.ensure_stored()?;
        Ok(None)
    }

    /// Rebases the commits of a shard in memory. A task with a conflict is left out, with all tasks that
    /// depend on it.
    fn pick(&self, shard: &Shard, base: &RevId) -> Picked {
        let mut picked = Picked {
            head: base.clone(),
            commits: BTreeMap::new(),
            undone: BTreeMap::new(),
            failing: Vec::new(),
        };
        let file = self.parts.tree.plan.file.as_ref();
        let kept = file.and_then(|file| file.in_tree.as_deref());
        for task in &shard.tasks {
            if let Some(outcome) = self.not_takeable(shard, task, &picked) {
                picked.undone.insert(task.id.clone(), outcome);
                continue;
            }
            let mut head = picked.head.clone();
            let mut made = Vec::new();
            for work in shard.commits.iter().filter(|work| work.task == task.id) {
                let repo = &self.parts.tree.repo;
                match repo.rebase(&head, std::slice::from_ref(&work.id), kept) {
                    Ok(rebased) => {
                        let new = rebased.commits.into_iter().filter_map(|it| it.new);
                        made.extend(new.map(|id| (id, work.clone())));
                        head = rebased.head;
                    }
                    Err(error) => {
                        let outcome = self.conflict(shard, work, &error);
                        picked.undone.insert(task.id.clone(), outcome);
                        break;
                    }
                }
            }
            if !picked.undone.contains_key(&task.id) {
                picked.head = head;
                picked.commits.insert(task.id.clone(), made);
            }
        }
        picked
    }

    /// Why a task is not integrated, independently of its commits. `None`: it can be.
    fn not_takeable(&self, shard: &Shard, task: &TaskSummary, picked: &Picked) -> Option<Outcome> {
        if task.status != TaskEnd::Done {
            let reason = task.reason.unwrap_or(Reason::MissingShard);
            let (end, message) = (task.status, task.message.clone());
            return Some(Outcome::without_agent(end, reason, message));
        }
        if !shard.refused.is_empty() {
            let why = format!("shard {}: {}", shard.name, shard.refused.join("; "));
            let (end, reason) = (TaskEnd::Blocked, Reason::PolicyViolation);
            return Some(Outcome::without_agent(end, reason, why));
        }
        if !shard.has_work_of(task) {
            let name = &shard.name;
            let why = format!("shard {name} has no commit of it; it can be run again");
            let (end, reason) = (TaskEnd::Pending, Reason::MissingShard);
            return Some(Outcome::without_agent(end, reason, why));
        }
        let is_done = |id: &str| {
            let here = self.outcomes.get(id).map(Outcome::task_end);
            picked.commits.contains_key(id)
                || here == Some(TaskEnd::Done)
                || self.plan.done_before.contains(id)
        };
        let needs = &self.task(&task.id)?.0.depends_on;
        let on = needs.iter().find(|id| !is_done(id.as_str()))?;
        Some(Outcome::DependencyFailed { on: on.to_string() })
    }

    fn conflict(&self, shard: &Shard, work: &Work, error: &RebaseError) -> Outcome {
        let RebaseError::Conflict { paths, .. } = error else {
            return impossible(format!("shard {}: {error}", shard.name));
        };
        let named = paths.iter().map(|path| display_path(path));
        let others: BTreeSet<String> = named
            .filter_map(|path| self.origins.get(&path))
            .map(|(task, shard)| format!("task {task} (shard {shard})"))
            .collect();
        let other = if others.is_empty() {
            "the branch".to_owned()
        } else {
            Vec::from_iter(others).join(" and ")
        };
        let why = format!(
            "commit {} of shard {} changes the same lines as {other} in {}",
            short(&work.made_as),
            shard.name,
            display_paths(paths)
        );
        Outcome::without_agent(TaskEnd::Blocked, Reason::Conflict, why)
    }

    /// Moves the branch to the rebased head if the checks of all tasks done so far pass there.
    async fn verify(&mut self, head: &RevId, brings: &[&TaskSummary]) -> anyhow::Result<Moved> {
        let brought: BTreeSet<&str> = brings.iter().map(|task| task.id.as_str()).collect();
        let is_done = |id: &str| {
            let here = self.outcomes.get(id).map(Outcome::task_end);
            here == Some(TaskEnd::Done) || brought.contains(id)
        };
        let tasks = self.plan.tasks.iter();
        let done = tasks.filter(|(task, _)| is_done(task.id.as_str()));
        let checks: Vec<&TaskConfig> = done.map(|(_, start)| &start.config).collect();
        let before = &mut self.before;
        move_and_verify_with_reruns(self.parts, head, before, &checks).await
    }

    /// Emits the end of a task and its commits on the branch.
    fn end(&mut self, shard: &Shard, task: &TaskSummary, picked: &Picked) {
        let Some((planned, config)) = self.task(&task.id) else {
            return;
        };
        let (planned, has_checks) = (planned.clone(), !config.checks.is_empty());
        let commits = picked.commits.get(&task.id).map_or(&[][..], Vec::as_slice);
        let undone = picked.undone.get(&task.id).cloned();
        let outcome =
            undone.unwrap_or_else(|| done(task, commits.last(), has_checks, &picked.failing));
        let emit = &mut self.parts.emit;
        emit.at(Some(&task.id), None, None);
        emit.emit(EventKind::TaskStarted {
            title: planned.title.clone(),
        });
        let mut changed_files = BTreeSet::new();
        for (id, work) in commits {
            emit.emit(EventKind::CommitCreated {
                commit: id.0.clone(),
                subject: work.subject.clone(),
                files: work.files.clone(),
            });
            for file in &work.files {
                let origin = (task.id.clone(), shard.name.clone());
                self.origins.insert(file.clone(), origin);
                changed_files.insert(file.clone());
            }
        }
        let keeps = self.parts.setup.config.settings.keep_going;
        let status = match outcome.task_end() {
            TaskEnd::Done => Some(TaskStatus::Done),
            TaskEnd::Failed if keeps => Some(TaskStatus::Failed),
            TaskEnd::Blocked if keeps => Some(TaskStatus::Blocked),
            _ => None,
        };
        if let Some(status) = status {
            let is_done = status == TaskStatus::Done && !commits.is_empty();
            let update = StatusUpdate {
                status,
                attempts: Some(task.attempts).filter(|count| *count > 0),
                completed_at: is_done.then(completed_at),
            };
            self.parts.tree.plan.set(&planned.id, update);
        }
        let all = &mut self.parts.accounts.changed_files;
        all.extend(changed_files.iter().cloned());
        // Test failures of this integration replace those of the shard's own run.
        let mut brought = task.clone();
        if task.status == TaskEnd::Done && !picked.failing.is_empty() {
            brought.work.failing_tests.clone_from(&picked.failing);
        }
        let files = Vec::from_iter(changed_files);
        self.tell(&task.id, &outcome, files, brought);
        self.outcomes.insert(task.id.clone(), outcome);
    }

    /// Ends the tasks that were not integrated.
    fn end_others(&mut self, outcome: &Outcome) {
        let tasks = self.plan.tasks.iter().map(|(task, _)| task.id.to_string());
        let others: Vec<String> = tasks.filter(|id| !self.outcomes.contains_key(id)).collect();
        for id in others {
            self.tell(&id, outcome, Vec::new(), TaskSummary::default());
            self.outcomes.insert(id, outcome.clone());
        }
    }

    fn tell(&mut self, id: &str, outcome: &Outcome, files: Vec<String>, task: TaskSummary) {
        let emit = &mut self.parts.emit;
        emit.at(Some(id), None, None);
        let ended = TaskEnded {
            attempts: task.attempts,
            changes_made: !files.is_empty(),
            work: TaskWork {
                changed_files: files,
                failing_tests: task.work.failing_tests,
                ..TaskWork::default()
            },
            elsewhere: Some(task.usage).filter(|usage| *usage != Usage::default()),
            elapsed_ms: task.elapsed_ms,
            ..TaskEnded::without_turns(outcome.clone())
        };
        emit.emit(EventKind::TaskEnded(Box::new(ended)));
    }

    fn task(&self, id: &str) -> Option<(&Task, &TaskConfig)> {
        let mut tasks = self.plan.tasks.iter();
        let (task, start) = tasks.find(|(task, _)| task.id.as_str() == id)?;
        Some((task, &start.config))
    }
}

/// The outcome of a task whose work is on the branch and passed its checks there, if it has any.
fn done(
    task: &TaskSummary,
    last: Option<&(RevId, Work)>,
    has_checks: bool,
    known: &[BlamedTest],
) -> Outcome {
    let commit = last.map(|(id, _)| id.clone());
    match task.reason.unwrap_or(Reason::Unverified) {
        Reason::Unverified if !known.is_empty() => accepted(commit, has_checks, known),
        Reason::Verified => accepted(commit, has_checks, known),
        Reason::AlreadySatisfied => Outcome::AlreadySatisfied {
            verified: has_checks,
        },
        reason => {
            let told = last.map(|(id, work)| {
                let (old, new) = (short(&work.made_as), short(id));
                task.message.replace(old, new)
            });
            Outcome::WithoutAgent {
                end: TaskEnd::Done,
                reason,
                message: told.unwrap_or_else(|| task.message.clone()),
                commit,
            }
        }
    }
}

/// The outcome of a shard's tasks if the checks do not pass on them.
fn not_taken(shard: &str, failed: &NotMoved) -> Outcome {
    let (end, reason, why) = match failed {
        NotMoved::Fails(failing) => {
            let why = format!(
                "on top of the earlier shards, these checks fail with shard {shard}: {failing}"
            );
            (TaskEnd::Failed, Reason::VerificationFailed, why)
        }
        NotMoved::Impossible(why) => {
            return impossible(format!("shard {shard} could not be used: {why}"));
        }
        NotMoved::Stopped => (TaskEnd::Pending, Reason::Cancelled, "stopped".to_owned()),
    };
    Outcome::without_agent(end, reason, why)
}
