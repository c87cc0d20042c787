//! Plans: the tasks to do, read from files in any of several formats.
//!
//! [`parse`] reads a plan, [`set_statuses`] writes task states back without changing the rest of the text,
//! [`without_owned_keys`] shows whether two texts differ in more than such states, and [`selection`] orders
//! the tasks.

mod canonical;
mod edit;
mod foreign;
mod graph;
mod kind;
mod markdown;
mod marks;
mod matrix;
mod native;
mod order;
mod patch;
mod read;
mod rights;
pub mod schema;
mod source;
mod task_list;

pub use canonical::without_owned_keys;
pub use kind::is_question;
pub use markdown::boxes::{Checkbox, checkboxes, has_task_headings, with_checked};
pub use matrix::{MAX_ROWS, Matrix, Row, matrix};
pub use order::{UnknownTask, selection};
pub use patch::{StatusUpdate, set_statuses, with_facts};
pub use read::{Opened, open};
pub use rights::keeps_settings;
pub(crate) use source::front_matter;

use super::settings::Settings;
use super::settings::choice::choice;
use super::text_error::{Fault, Located, Parsed, Position};
use super::yaml;
use foreign::layout::Layout;
use serde::{Deserialize, Serialize};
use source::{Container, Source};
use std::fmt;

/// The maximum size of a plan or configuration file, in bytes: 1 MiB.
pub const MAX_FILE_BYTES: usize = 1024 * 1024;

/// The maximum length of a task id, in characters.
pub const MAX_ID_LENGTH: usize = 64;

/// Why a plan is invalid: the first error, with its position.
pub type PlanError = Located;

/// The tasks to do, and what applies to all of them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Plan {
    /// The plan's own id, if it has one: other plans of a queue may depend on it.
    pub id: Option<String>,
    /// Its title; the file's name without its extension if none is given.
    pub title: String,
    /// Its purpose in one sentence, given to the agent with every task. Empty if not given.
    pub goal: String,
    /// Further details, also given to the agent. Empty if not given.
    pub details: String,
    /// The settings that override the configuration.
    pub settings: Settings,
    /// Commands that run once before the first turn.
    pub setup: Vec<String>,
    /// Its priority in a queue.
    pub priority: Option<Priority>,
    /// The plans of a queue that must be done first: file names without extension, or ids.
    pub depends_on: Vec<String>,
    /// The tasks in the file's order, at least one. Ids are unique; dependencies exist and have no cycle.
    pub tasks: Vec<Task>,
    /// The format of the file.
    pub format: PlanFormat,
    /// Which parts of the file were taken for something else than tasks, for people.
    pub notes: Vec<String>,
}

impl Plan {
    /// A plan that has only a format.
    pub fn without_tasks(format: PlanFormat) -> Self {
        Self {
            format,
            ..Self::default()
        }
    }

    /// How the file was understood, for people: what was taken for something else, and which tasks only check.
    pub fn understood(&self) -> Vec<String> {
        let kinds = self.tasks.iter().filter_map(|task| {
            let what = match task.kind {
                TaskKind::Work => return None,
                TaskKind::Check => "only checks, and is done without a change if the checks pass",
                TaskKind::Ask => "asks a question, and is answered without a change",
            };
            Some(format!("task {} {what}", task.id))
        });
        self.notes.iter().cloned().chain(kinds).collect()
    }

    /// Sets the status of the tasks for which `is_meant` returns true.
    pub fn set_status(&mut self, status: TaskStatus, is_meant: impl Fn(&Task) -> bool) {
        for task in self.tasks.iter_mut().filter(|task| is_meant(task)) {
            task.status = status;
        }
    }

    /// The plan's texts as a plan file, without settings: the text of an issue must not configure anything.
    pub fn texts(&self) -> String {
        let task = |task: &Task| {
            let mut entry = serde_json::json!({
                "id": task.id,
                "title": task.title,
                "description": task.description,
                "acceptance": task.acceptance,
                "depends_on": task.depends_on,
            });
            if task.status == TaskStatus::Done {
                entry["status"] = serde_json::json!(TaskStatus::Done);
            }
            entry
        };
        let tasks: Vec<serde_json::Value> = self.tasks.iter().map(task).collect();
        let plan = serde_json::json!({
            "title": self.title,
            "goal": self.goal,
            "details": self.details,
            "tasks": tasks,
        });
        written_out(&plan.to_string())
    }
}

/// JSON with escapes for the characters that JSON allows and YAML does not, because a YAML parser reads it.
fn written_out(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '\u{7f}'..='\u{9f}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}' => {
                out.push_str(&format!("\\u{:04x}", u32::from(c)));
            }
            _ => out.push(c),
        }
    }
    out
}

/// One task of a plan.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    /// Unique in the plan.
    pub id: TaskId,
    /// One line; derived from the description if none is given.
    pub title: String,
    /// The work to do. Empty if the title says everything.
    pub description: String,
    /// Acceptance criteria: what must be true afterwards.
    pub acceptance: Vec<String>,
    /// Tasks that must be done first.
    pub depends_on: Vec<TaskId>,
    /// The directory in which its agent and its checks work, if it is not that of the run.
    pub directory: Option<String>,
    /// The settings that override the plan's and the configuration's.
    pub settings: Settings,
    /// Whether it asks for work.
    pub kind: TaskKind,
    /// Its status according to the file.
    pub status: TaskStatus,
    /// The number of attempts according to the file.
    pub attempts: Option<u32>,
    /// When it was done, according to the file.
    pub completed_at: Option<String>,
    /// The line of the file on which it starts, from 1.
    pub line: usize,
}

impl Task {
    /// A pending task that has only a title.
    pub fn new(id: TaskId, title: &str) -> Self {
        Self {
            id,
            title: title.to_owned(),
            description: String::new(),
            acceptance: Vec::new(),
            depends_on: Vec::new(),
            directory: None,
            settings: Settings::default(),
            kind: TaskKind::Work,
            status: TaskStatus::Pending,
            attempts: None,
            completed_at: None,
            line: 0,
        }
    }
}

/// A task's id: 1 to 64 of `A-Z a-z 0-9 . _ -`, the first a letter or digit.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TaskId(String);

impl TaskId {
    /// Validates an id.
    ///
    /// # Errors
    /// The requirement that the text violates, as a fragment that follows "must be".
    pub fn new(text: &str) -> Result<Self, &'static str> {
        let letters = text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-'));
        let begins = text.starts_with(|c: char| c.is_ascii_alphanumeric());
        if letters && begins && text.len() <= MAX_ID_LENGTH {
            Ok(Self(text.to_owned()))
        } else {
            Err("1 to 64 of the characters A-Z a-z 0-9 . _ -, the first a letter or digit")
        }
    }

    /// The id's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for TaskId {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::new(&text).map_err(|expected| format!("a task id must be {expected}, got `{text}`"))
    }
}

impl From<TaskId> for String {
    fn from(id: TaskId) -> Self {
        id.0
    }
}

impl std::str::FromStr for TaskId {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::try_from(text.to_owned())
    }
}

choice! {
    /// What a task asks for.
    #[derive(Default)]
    TaskKind {
        /// Work on the files.
        #[default]
        Work = "work",
        /// Nothing but a check: it is done without a change if the checks pass.
        Check = "check",
        /// An answer to a question. Nothing is changed.
        Ask = "ask",
    }
}
choice! {
    /// The status of a task.
    #[derive(Default)]
    TaskStatus {
        /// Not started.
        #[default]
        Pending = "pending",
        /// Started by a run that has not finished it.
        InProgress = "in_progress",
        /// Done and committed.
        Done = "done",
        /// Given up.
        Failed = "failed",
        /// A person must act.
        Blocked = "blocked",
    }
}
choice! {
    /// A plan's priority in a queue.
    #[derive(PartialOrd, Ord)]
    Priority {
        /// After the others.
        Low = "low",
        /// The default.
        Medium = "medium",
        /// Before the others.
        High = "high",
    }
}

/// The format of a plan file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanFormat {
    /// A list `tasks` with its own states: YAML, JSON, or the front matter of a Markdown file.
    #[default]
    Sprag,
    /// Markdown whose top-level checkboxes are the tasks.
    Checklist,
    /// A `tasks.md` as spec-kit writes it: checkboxes with ids, under headings that are phases.
    TaskList,
    /// Markdown whose `##` headings are the tasks; the front matter contains their states.
    Headings,
    /// A plan of rmplan or tim: `tasks[].done`, `steps`.
    Rmplan,
    /// A `plan.json` of rafa.
    Rafa,
    /// A `story.md` of ai-sdlc: one task.
    Story,
    /// A task of Backlog.md, which is a file.
    Backlog,
    /// A `prd.json` of Ralph loops: `userStories[].passes`.
    Ralph,
    /// A `tasks.json` of task-master.
    TaskMaster,
}

/// Reads a plan. The file extension selects YAML, Markdown or JSON; with any other extension, the text
/// decides. The dialect (Sprag's own or another tool's) follows from the keys.
///
/// # Errors
/// The first error, with its position. A plan that is returned has at least one task, unique ids, known
/// dependencies without a cycle, and only values in range.
pub fn parse(name: &str, bytes: &[u8]) -> Result<Parsed<Plan>, PlanError> {
    let Parsed { value, warnings } = open(name, bytes)?;
    let value = value.into_plan();
    Ok(Parsed { value, warnings })
}

/// Checks that a file of this size may be read, before it is read.
///
/// # Errors
/// When it is larger than [`MAX_FILE_BYTES`].
pub fn check_size(name: &str, bytes: u64) -> Result<(), PlanError> {
    if bytes <= MAX_FILE_BYTES as u64 {
        return Ok(());
    }
    let message =
        format!("the file has {bytes} bytes, but at most {MAX_FILE_BYTES} are read: split it");
    Err(Fault::new(Position::START, message).in_file(name))
}

/// The text of a file, without a byte order mark.
pub(crate) fn text_of<'a>(name: &str, bytes: &'a [u8]) -> Result<&'a str, Located> {
    check_size(name, bytes.len() as u64)?;
    let fault = |valid: usize, message: &str| {
        let before = String::from_utf8_lossy(&bytes[..valid]);
        Fault::new(Position::of_offset(&before, before.len()), message).in_file(name)
    };
    if let Some(nul) = bytes.iter().position(|&byte| byte == 0) {
        return Err(fault(
            nul,
            "a zero byte: this is not a text file; save it as UTF-8 text",
        ));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        fault(
            error.valid_up_to(),
            "not UTF-8: save the file as UTF-8 text",
        )
    })?;
    Ok(text.strip_prefix('\u{feff}').unwrap_or(text))
}

fn plan_of(name: &str, source: &Source<'_>, warnings: &mut Vec<Fault>) -> Result<Plan, Fault> {
    let layout = Layout::of(source.format);
    let (mut plan, mut drafts) = match (layout, source.format) {
        (Some(layout), _) => foreign::read(source, layout, warnings)?,
        (None, PlanFormat::TaskList) => task_list::read(source, warnings)?,
        (None, PlanFormat::Checklist | PlanFormat::Headings) => markdown::read(source, warnings)?,
        (None, _) => native::read(source)?,
    };
    if let Some(root) = &source.root
        && source.container != Container::Json
        && layout.is_none()
    {
        warnings.extend(yaml::slips(source.text, root)?);
    }
    if plan.title.is_empty() {
        plan.title = stem(name).to_owned();
    }
    if source.format == PlanFormat::Headings {
        let ids = graph::ids(&drafts)?;
        markdown::take_status(source, &ids, &mut drafts, warnings)?;
    }
    if source.format == source.listed.format {
        plan.notes.extend(source.listed.notes.iter().cloned());
    }
    let commits = drafts.iter().map(|draft| draft.commits).sum::<usize>();
    if commits > 0 {
        let steps = crate::text::count(commits as u64, "step");
        let note = format!("left out, because Sprag makes the commits: {steps}");
        plan.notes.push(note);
    }
    plan.tasks = graph::finish(drafts)?;
    Ok(plan)
}

fn stem(name: &str) -> &str {
    let file = name.rsplit(['/', '\\']).next().unwrap_or(name);
    file.split_once('.').map_or(file, |(stem, _)| stem)
}

#[cfg(test)]
mod tests;
