//! The plan with what Sprag knows of its tasks: the statuses that go into its file.

use crate::domain::plan::{self, Plan, StatusUpdate, TaskId, TaskStatus};
use crate::vcs::git::{PlanContent, PlanExempt};
use anyhow::Context as _;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

/// Tasks for which writing a status is tried out before the run. Plans are written in one style,
/// and each trial reads the whole file.
const REHEARSED: usize = 25;

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
pub struct PlanBook {
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

impl PlanBook {
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

    /// A copy in which this task has this status.
    pub fn with(&self, id: &TaskId, update: StatusUpdate) -> Self {
        let mut book = self.clone();
        book.set(id, update);
        book
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

    /// The plan file as it is to lie in the commit; `None` when it does not lie in the work tree.
    ///
    /// # Errors
    /// When the file cannot be read or patched.
    pub fn content(&self) -> anyhow::Result<Option<PlanContent>> {
        let Some(file) = &self.file else {
            return Ok(None);
        };
        let Some(path) = file.in_tree.clone() else {
            return Ok(None);
        };
        let content = self.text_now(file)?.into_bytes();
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
            let text = self.text_now(&file)?;
            crate::run_dir::write_atomically(&file.path, text.as_bytes())
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
        let mut text = self.text.clone();
        for id in tasks.take(REHEARSED) {
            text = plan::set_status(&file.name, &text, id, &update)
                .map_err(|error| anyhow::anyhow!("{error}"))?;
        }
        Ok(())
    }

    /// The file's text with every task's status as it is known. Where the agent has written other
    /// statuses they are put right; where it has left no plan at all, the one that was read counts.
    fn text_now(&self, file: &PlanFile) -> anyhow::Result<String> {
        let now = fs::read(&file.path)
            .ok()
            .and_then(|bytes| String::from_utf8(bytes).ok());
        let text = match now {
            Some(text) if self.has_all_tasks(&file.name, &text) => text,
            _ => self.text.clone(),
        };
        let present = plan::parse(&file.name, text.as_bytes())
            .map_err(|error| anyhow::anyhow!("{error}"))?
            .value;
        let mut text = text;
        for task in &present.tasks {
            let Some(update) = self.statuses.get(&task.id) else {
                continue;
            };
            let same = task.status == update.status
                && task.attempts == update.attempts
                && task.completed_at == update.completed_at;
            if !same {
                text = plan::set_status(&file.name, &text, &task.id, update)
                    .map_err(|error| anyhow::anyhow!("{error}"))?;
            }
        }
        Ok(text)
    }

    fn has_all_tasks(&self, name: &str, text: &str) -> bool {
        plan::parse(name, text.as_bytes()).is_ok_and(|parsed| {
            let tasks = &parsed.value.tasks;
            self.plan
                .tasks
                .iter()
                .all(|task| tasks.iter().any(|other| other.id == task.id))
        })
    }
}
