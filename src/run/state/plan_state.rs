//! The plan and the current status of its tasks, which is saved in the plan file.

use crate::domain::plan::{self, Opened, Plan, StatusUpdate, Task, TaskId, TaskStatus};
use crate::git::{PlanContent, PlanExempt};
use crate::plain_file;
use anyhow::Context as _;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

/// How many tasks' statuses are written on trial before the run. All tasks of a plan are usually written
/// alike.
const REHEARSED: usize = 25;

/// The largest plan that can have been read at the start, in bytes.
pub(crate) const PLAN_LIMIT: u64 = 1 << 20;

/// The file that a plan came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanFile {
    /// Absolute path.
    pub path: PathBuf,
    /// The name given to the parser, which decides the format.
    pub name: String,
    /// Its path in the work tree, if it lies there and git does not ignore it. Then its status is
    /// committed.
    pub in_tree: Option<Vec<u8>>,
}

/// The plan and the current status of its tasks.
#[derive(Debug, Clone)]
pub struct PlanState {
    /// The plan as it was read.
    pub plan: Plan,
    /// The file of the plan; `None` for a prompt.
    pub file: Option<PlanFile>,
    /// The status of every task, as it should be in the file.
    statuses: BTreeMap<TaskId, StatusUpdate>,
    /// The text as it was read, used if an agent leaves an invalid plan.
    text: String,
    /// Whether a status differs from the last saved one.
    unsaved: bool,
    /// The files that the finished tasks of this process have changed.
    changed: BTreeSet<String>,
}

impl PlanState {
    /// A plan with its file and the file's text.
    pub fn new(plan: Plan, file: Option<PlanFile>, text: String) -> Self {
        let tasks = plan.tasks.iter();
        let statuses = tasks.map(|task| (task.id.clone(), status_of(task)));
        Self {
            statuses: statuses.collect(),
            plan,
            file,
            text,
            unsaved: false,
            changed: BTreeSet::new(),
        }
    }

    /// Adds files that a task has changed, for plans that list them.
    pub fn add_changed_files(&mut self, files: &[String]) {
        self.changed.extend(files.iter().cloned());
    }

    /// The path of its file in the work tree, if it lies there and git does not ignore it.
    pub fn in_tree(&self) -> Option<&[u8]> {
        self.file.as_ref()?.in_tree.as_deref()
    }

    /// The text as it was read.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether this file says something else than the plan as it was read, apart from Sprag's own keys.
    pub fn is_otherwise_in(&self, path: &Path) -> bool {
        let name = self.file.as_ref().map_or("", |file| file.name.as_str());
        let words = |bytes: &[u8]| plan::without_owned_keys(name, bytes);
        let other = plain_file::read(path, PLAN_LIMIT);
        other.is_ok_and(|other| words(&other) != words(self.text.as_bytes()))
    }

    /// Whether the task is done, according to the current status.
    pub fn is_done(&self, id: &TaskId) -> bool {
        let update = self.statuses.get(id);
        update.is_some_and(|update| update.status == TaskStatus::Done)
    }

    /// Sets a task's status. The next commit saves it.
    pub fn set(&mut self, id: &TaskId, update: StatusUpdate) {
        if self.statuses.get(id) != Some(&update) {
            self.statuses.insert(id.clone(), update);
            self.unsaved = true;
        }
    }

    /// Whether a status still has to be saved.
    pub fn is_unsaved(&self) -> bool {
        self.unsaved && self.file.is_some()
    }

    /// Records that the statuses are saved.
    pub fn saved(&mut self) {
        self.unsaved = false;
    }

    /// How the plan file is excluded from the fingerprint.
    pub fn exempt(&self) -> Option<PlanExempt> {
        let name = self.file.as_ref()?.name.clone();
        Some(PlanExempt {
            path: self.in_tree()?.to_vec(),
            strip: Box::new(move |bytes| plan::without_owned_keys(&name, bytes)),
        })
    }

    /// The plan file for the commit, with the given status for the task in `beside`; `None` if the file
    /// is not committed.
    ///
    /// # Errors
    /// When the file cannot be read or patched.
    pub fn content(
        &self,
        beside: Option<(&TaskId, &StatusUpdate)>,
    ) -> anyhow::Result<Option<PlanContent>> {
        let (Some(file), Some(path)) = (&self.file, self.in_tree()) else {
            return Ok(None);
        };
        Ok(Some(PlanContent {
            path: path.to_vec(),
            content: self.text_now(file, beside)?.into_bytes(),
        }))
    }

    /// Saves the statuses in a plan file that is not committed.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn save_outside(&mut self) -> anyhow::Result<()> {
        let Some(file) = self.file.clone() else {
            return Ok(());
        };
        if file.in_tree.is_none() && self.unsaved {
            let text = self.text_now(&file, None)?;
            crate::run::state::directory::write_atomically(&file.path, text.as_bytes())
                .with_context(|| format!("{} cannot be written", file.path.display()))?;
            self.unsaved = false;
        }
        Ok(())
    }

    /// Verifies that the status of each of these tasks can be written.
    ///
    /// # Errors
    /// When the plan is written in a way that cannot be patched.
    pub fn ensure_writable<'t>(
        &self,
        tasks: impl Iterator<Item = &'t TaskId>,
    ) -> anyhow::Result<()> {
        let Some(file) = &self.file else {
            return Ok(());
        };
        ensure_writable(&open(&file.name, &self.text)?, tasks)
    }

    /// The file's current text with the current status of every task. Statuses that the agent wrote are
    /// corrected. If the agent left no valid plan, the text that was read at the start is used.
    fn text_now(
        &self,
        file: &PlanFile,
        beside: Option<(&TaskId, &StatusUpdate)>,
    ) -> anyhow::Result<String> {
        // The agent may have replaced the file with anything, even a pipe or a huge file.
        let is_plan = |meta: &fs::Metadata| meta.is_file() && meta.len() <= PLAN_LIMIT;
        let found = fs::metadata(&file.path).ok().filter(is_plan);
        let now = found.and_then(|_| fs::read_to_string(&file.path).ok());
        let now = now.as_deref();
        let opened = match now.and_then(|text| self.with_all_tasks(&file.name, text)) {
            Some(now) => now,
            None => open(&file.name, &self.text)?,
        };
        let present = opened.plan();
        let known = |id: &TaskId| match beside {
            Some((other, update)) if other == id => Some(update),
            _ => self.statuses.get(id),
        };
        // Parts of a task are done when the task is. Parts of unfinished tasks keep their marks.
        let begun = self.plan.tasks.iter();
        let done_before = begun.filter(|task| task.status == TaskStatus::Done);
        let done_before: HashSet<&TaskId> = done_before.map(|task| &task.id).collect();
        let is_done = |id| known(id).is_some_and(|update| update.status == TaskStatus::Done);
        let ids = present.tasks.iter().map(|task| &task.id);
        let done_now = ids.filter(|id| is_done(id) && !done_before.contains(id));
        let done_now: HashSet<&TaskId> = done_now.collect();
        let marked = opened.with_marks_of(&self.text, &done_now);
        let all = present.tasks.iter();
        let wrong = all.filter_map(|task| {
            let update = known(&task.id)?;
            let is_wrong = status_of(task) != *update || done_now.contains(&task.id);
            is_wrong.then_some((&task.id, update))
        });
        let wrong: Vec<(&TaskId, &StatusUpdate)> = wrong.collect();
        let written = match marked {
            Some(text) => plan::set_statuses(&file.name, &text, &wrong),
            None => opened.with_statuses(&wrong),
        };
        let written = written.map_err(|error| anyhow::anyhow!("{error}"))?;
        let times = wrong
            .iter()
            .filter_map(|(_, update)| update.completed_at.as_deref());
        let time = times.max();
        let facts =
            time.and_then(|time| plan::with_facts(&file.name, &written, &self.changed, time));
        Ok(facts.unwrap_or(written))
    }

    /// The plan in this text, if it has all tasks of this one.
    fn with_all_tasks<'a>(&self, name: &'a str, text: &'a str) -> Option<Opened<'a>> {
        let opened = open(name, text).ok()?;
        let present = opened.plan().tasks.iter();
        let ids: HashSet<&TaskId> = present.map(|task| &task.id).collect();
        let has_all = self.plan.tasks.iter().all(|task| ids.contains(&task.id));
        has_all.then_some(opened)
    }
}

fn status_of(task: &Task) -> StatusUpdate {
    StatusUpdate {
        status: task.status,
        attempts: task.attempts,
        completed_at: task.completed_at.clone(),
    }
}

fn open<'a>(name: &'a str, text: &'a str) -> anyhow::Result<Opened<'a>> {
    let read = plan::open(name, text.as_bytes());
    Ok(read.map_err(|error| anyhow::anyhow!("{error}"))?.value)
}

/// Verifies that the status of each of these tasks can be written into the plan.
///
/// # Errors
/// When the plan is written in a way that cannot be patched.
pub fn ensure_writable<'t>(
    opened: &Opened<'_>,
    tasks: impl Iterator<Item = &'t TaskId>,
) -> anyhow::Result<()> {
    let update = StatusUpdate {
        status: TaskStatus::Done,
        attempts: Some(1),
        completed_at: Some("2000-01-01T00:00:00Z".into()),
    };
    let updates: Vec<_> = tasks.take(REHEARSED).map(|id| (id, &update)).collect();
    let written = opened.with_statuses(&updates).map(drop);
    written.map_err(|error| anyhow::anyhow!("{error}"))
}

/// The current time in UTC, rounded to seconds.
pub(crate) fn completed_at() -> String {
    let now = jiff::Timestamp::now();
    let rounded = now.round(jiff::Unit::Second).unwrap_or(now);
    rounded.to_string()
}
