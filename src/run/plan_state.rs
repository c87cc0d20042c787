//! The plan with what Sprag knows of its tasks: the statuses that go into its file.

use crate::domain::plan::{self, Plan, StatusUpdate, Task, TaskId, TaskStatus};
use crate::git::{PlanContent, PlanExempt};
use anyhow::Context as _;
use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::PathBuf;

/// Tasks for which writing a status is tried out before the run. Plans are written in one style.
const REHEARSED: usize = 25;

/// No larger plan was read at the start.
const PLAN_LIMIT: u64 = 1 << 20;

/// The file that a plan came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanFile {
    /// Absolute path.
    pub path: PathBuf,
    /// The name under which it is read, which decides its format.
    pub name: String,
    /// Its path in the work tree, when it lies there and git does not ignore it: its status is
    /// committed then.
    pub in_tree: Option<Vec<u8>>,
}

/// The plan and what is known of its tasks.
#[derive(Debug, Clone)]
pub struct PlanState {
    /// The plan as it was read.
    pub plan: Plan,
    /// Its file; `None` for a prompt.
    pub file: Option<PlanFile>,
    /// What the file says and is to say, for every task.
    statuses: BTreeMap<TaskId, StatusUpdate>,
    /// The text as it was read, for when an agent leaves one that is no plan.
    text: String,
    /// Tasks whose status is known and not saved yet.
    unsaved: bool,
}

impl PlanState {
    /// A plan with its file and the file's text.
    pub fn new(plan: Plan, file: Option<PlanFile>, text: String) -> Self {
        let statuses = plan
            .tasks
            .iter()
            .map(|task| {
                let update = StatusUpdate {
                    status: task.status,
                    attempts: task.attempts,
                    completed_at: task.completed_at.clone(),
                };
                (task.id.clone(), update)
            })
            .collect();
        Self {
            plan,
            file,
            statuses,
            text,
            unsaved: false,
        }
    }

    /// The text as it was read.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether the task is done, as far as is known.
    pub fn is_done(&self, id: &TaskId) -> bool {
        self.statuses
            .get(id)
            .is_some_and(|update| update.status == TaskStatus::Done)
    }

    /// Takes a task's status in; it is saved with the next commit.
    pub fn set(&mut self, id: &TaskId, update: StatusUpdate) {
        if self.statuses.get(id) != Some(&update) {
            self.statuses.insert(id.clone(), update);
            self.unsaved = true;
        }
    }

    /// Whether a status waits to be saved.
    pub fn is_unsaved(&self) -> bool {
        self.unsaved && self.file.is_some()
    }

    /// The statuses are saved.
    pub fn saved(&mut self) {
        self.unsaved = false;
    }

    /// How the plan file is kept out of the fingerprint.
    pub fn exempt(&self) -> Option<PlanExempt> {
        let file = self.file.as_ref()?;
        let path = file.in_tree.clone()?;
        let name = file.name.clone();
        Some(PlanExempt {
            path,
            strip: Box::new(move |bytes| plan::without_owned_keys(&name, bytes)),
        })
    }

    /// The plan file as it is to lie in the commit, in which the tasks of `beside` have these
    /// statuses; `None` when it does not lie in the work tree.
    ///
    /// # Errors
    /// When the file cannot be read or patched.
    pub fn content(
        &self,
        beside: Option<(&TaskId, &StatusUpdate)>,
    ) -> anyhow::Result<Option<PlanContent>> {
        let Some(file) = &self.file else {
            return Ok(None);
        };
        let Some(path) = file.in_tree.clone() else {
            return Ok(None);
        };
        let content = self.text_now(file, beside)?.into_bytes();
        Ok(Some(PlanContent { path, content }))
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
            crate::run::directory::write_atomically(&file.path, text.as_bytes())
                .with_context(|| format!("{} cannot be written", file.path.display()))?;
            self.unsaved = false;
        }
        Ok(())
    }

    /// Whether a status could be written for each of these tasks.
    ///
    /// # Errors
    /// When the plan is written in a way that cannot be patched.
    pub fn rehearse<'t>(&self, tasks: impl Iterator<Item = &'t TaskId>) -> anyhow::Result<()> {
        let Some(file) = &self.file else {
            return Ok(());
        };
        let update = StatusUpdate {
            status: TaskStatus::Done,
            attempts: Some(1),
            completed_at: Some("2000-01-01T00:00:00Z".into()),
        };
        let updates: Vec<(&TaskId, &StatusUpdate)> =
            tasks.take(REHEARSED).map(|id| (id, &update)).collect();
        plan::set_statuses(&file.name, &self.text, &updates)
            .map(drop)
            .map_err(|error| anyhow::anyhow!("{error}"))
    }

    /// The file's text with every task's status as it is known. Where the agent has written other
    /// statuses they are put right; where it has left no plan at all, the one that was read counts.
    fn text_now(
        &self,
        file: &PlanFile,
        beside: Option<(&TaskId, &StatusUpdate)>,
    ) -> anyhow::Result<String> {
        // The agent may have left anything in its place, a pipe or a huge file too.
        let is_plan = |meta: fs::Metadata| meta.is_file() && meta.len() <= PLAN_LIMIT;
        let now = fs::metadata(&file.path)
            .is_ok_and(is_plan)
            .then(|| fs::read(&file.path).ok())
            .flatten()
            .and_then(|bytes| String::from_utf8(bytes).ok())
            .and_then(|text| self.with_all_tasks(&file.name, text));
        let (text, present) = match now {
            Some(now) => now,
            None => {
                let read = plan::parse(&file.name, self.text.as_bytes())
                    .map_err(|error| anyhow::anyhow!("{error}"))?;
                (self.text.clone(), read.value)
            }
        };
        let known = |id: &TaskId| match beside {
            Some((other, update)) if other == id => Some(update),
            _ => self.statuses.get(id),
        };
        // Parts of a task are done with it, and those of any other as they were.
        let begun = self.plan.tasks.iter();
        let done_before: HashSet<&TaskId> = begun
            .filter(|task| task.status == TaskStatus::Done)
            .map(|task| &task.id)
            .collect();
        let is_done_now = |task: &&Task| {
            let is_done = known(&task.id).is_some_and(|update| update.status == TaskStatus::Done);
            is_done && !done_before.contains(&task.id)
        };
        let done_now = present
            .tasks
            .iter()
            .filter(is_done_now)
            .map(|task| &task.id);
        let done_now: HashSet<&TaskId> = done_now.collect();
        let text = plan::with_marks_of(&file.name, &text, &self.text, &done_now);
        let differs = |task: &Task, update: &StatusUpdate| {
            task.status != update.status
                || task.attempts != update.attempts
                || task.completed_at != update.completed_at
        };
        let wrong: Vec<(&TaskId, &StatusUpdate)> = present
            .tasks
            .iter()
            .filter_map(|task| Some((task, known(&task.id)?)))
            .filter(|(task, update)| differs(task, update) || done_now.contains(&task.id))
            .map(|(task, update)| (&task.id, update))
            .collect();
        plan::set_statuses(&file.name, &text, &wrong).map_err(|error| anyhow::anyhow!("{error}"))
    }

    /// The text and what it says, if it is a plan that has all tasks of this one.
    fn with_all_tasks(&self, name: &str, text: String) -> Option<(String, Plan)> {
        let present = plan::parse(name, text.as_bytes()).ok()?.value;
        let ids: HashSet<&TaskId> = present.tasks.iter().map(|task| &task.id).collect();
        let has_all = self.plan.tasks.iter().all(|task| ids.contains(&task.id));
        has_all.then_some((text, present))
    }
}
