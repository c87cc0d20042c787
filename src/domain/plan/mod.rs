//! Plans: what is to be done, task by task, from files in any of the formats people have.
//!
//! [`parse`] reads a plan, [`set_statuses`] writes states of tasks back without touching anything
//! else of the text, [`without_owned_keys`] tells whether two texts differ in more than such
//! states, and [`selection`] puts the tasks in order.

mod canonical;
mod edit;
mod foreign;
mod graph;
mod markdown;
mod marks;
mod matrix;
mod native;
mod order;
mod patch;
mod rights;
pub mod schema;
mod source;
mod task_list;

pub use canonical::without_owned_keys;
pub use markdown::boxes::{Checkbox, checkboxes, with_checked};
pub use marks::with_marks_of;
pub use matrix::{MAX_ROWS, Matrix, Row, matrix};
pub(crate) use native::PLAN_KEYS;
pub use order::{UnknownTask, selection};
pub use patch::{StatusUpdate, set_status, set_statuses};
pub use rights::keeps_settings;

use super::settings::Settings;
use super::text_error::{Fault, Located, Parsed, Position};
use serde::{Deserialize, Serialize};
use source::Source;
use std::fmt;

/// The largest plan or configuration file that is read, in bytes: 1 MiB.
pub const MAX_FILE_BYTES: usize = 1024 * 1024;

/// The longest task id, in characters.
pub const MAX_ID_LENGTH: usize = 64;

/// Why a plan cannot be used: the first error, at its place.
pub type PlanError = Located;

/// What is to be done.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The plan's own id, where it has one: other plans of a queue may depend on it.
    pub id: Option<String>,
    /// Its title; the file's name without its ending where none is given.
    pub title: String,
    /// What it is for, in a sentence; given to the agent with every task. Empty when not given.
    pub goal: String,
    /// More about it, given to the agent too. Empty when not given.
    pub details: String,
    /// What the plan overrides of the configuration.
    pub settings: Settings,
    /// Commands that run once before the first turn.
    pub setup: Vec<String>,
    /// Its place in a queue.
    pub priority: Option<Priority>,
    /// Plans of a queue that must be done first: names of files without ending, or ids.
    pub depends_on: Vec<String>,
    /// The tasks in the file's order, at least one. Ids are unique, dependencies exist and have
    /// no cycle.
    pub tasks: Vec<Task>,
    /// How the file is written.
    pub format: PlanFormat,
}

impl Plan {
    /// Gives the tasks a status of which `is_meant` says so.
    pub fn set_status(&mut self, status: TaskStatus, is_meant: impl Fn(&Task) -> bool) {
        for task in self.tasks.iter_mut().filter(|task| is_meant(task)) {
            task.status = status;
        }
    }

    /// The plan's texts as a plan file, without settings: what an issue says configures nothing.
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

/// JSON with escapes for the characters that JSON may have and YAML may not, by which it is read.
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
    /// One line; the beginning of the description where none is given.
    pub title: String,
    /// What is to be done. Empty when the title says it all.
    pub description: String,
    /// What must hold afterwards.
    pub acceptance: Vec<String>,
    /// Tasks that must be done first.
    pub depends_on: Vec<TaskId>,
    /// What the task overrides of plan and configuration.
    pub settings: Settings,
    /// How far it is, as the file says.
    pub status: TaskStatus,
    /// Attempts made, as the file says.
    pub attempts: Option<u32>,
    /// When it was done, as the file says.
    pub completed_at: Option<String>,
    /// The line of the file on which it begins, from 1.
    pub line: usize,
}

/// A task's id: 1 to 64 of `A-Z a-z 0-9 . _ -`, the first a letter or digit.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TaskId(String);

impl TaskId {
    /// Checks an id.
    ///
    /// # Errors
    /// What an id must be, as a fragment that follows "must be".
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

/// How far a task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// Not begun.
    #[default]
    Pending,
    /// Begun by a run that has not ended it.
    InProgress,
    /// Done and committed.
    Done,
    /// Given up.
    Failed,
    /// A person must act.
    Blocked,
}

impl TaskStatus {
    /// Every status.
    pub const ALL: [Self; 5] = [
        Self::Pending,
        Self::InProgress,
        Self::Done,
        Self::Failed,
        Self::Blocked,
    ];

    /// The word that plan files use.
    pub fn word(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::InProgress => "in_progress",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Blocked => "blocked",
        }
    }
}

/// A plan's place in a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Priority {
    /// After the others.
    Low,
    /// Where none is given.
    Medium,
    /// Before the others.
    High,
}

/// How a plan file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanFormat {
    /// A list `tasks` with states of its own: YAML, JSON, or a Markdown file's front matter.
    Sprag,
    /// Markdown whose top-level checkboxes are the tasks.
    Checklist,
    /// A `tasks.md` of spec-kit and its like: checkboxes with ids under headings that are phases.
    TaskList,
    /// Markdown whose `##` headings are the tasks; their states are in the front matter.
    Headings,
    /// A plan of rmplan or tim: `tasks[].done`, `steps`.
    Rmplan,
    /// A `plan.json` of rafa.
    Rafa,
    /// A `story.md` of ai-sdlc: one task.
    Story,
}

/// Reads a plan. The name's ending chooses between YAML, Markdown and JSON; where it is none of
/// these the text does. The dialect (our own or that of another tool) follows from the keys.
///
/// # Errors
/// The first error with its place. A plan that is read has at least one task, unique ids, known
/// dependencies without a cycle, and every value in range.
pub fn parse(name: &str, bytes: &[u8]) -> Result<Parsed<Plan>, PlanError> {
    let text = text_of(name, bytes)?;
    let mut warnings = Vec::new();
    let plan = Source::open(name, text)
        .and_then(|source| plan_of(name, &source, &mut warnings))
        .map_err(|fault| fault.in_file(name))?;
    warnings.sort_by_key(|warning: &Fault| warning.at);
    let warnings = warnings
        .into_iter()
        .map(|fault| fault.in_file(name))
        .collect();
    Ok(Parsed {
        value: plan,
        warnings,
    })
}

/// Whether a file of this many bytes is read at all: for whoever reads files, before doing so.
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
            "a zero byte: this is no text file; save it as UTF-8 text",
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
    let (mut plan, drafts) = match source.format {
        PlanFormat::Sprag => native::read(source)?,
        PlanFormat::Rmplan => foreign::read_rmplan(source, warnings)?,
        PlanFormat::Rafa => foreign::read_rafa(source, warnings)?,
        PlanFormat::Story => foreign::read_story(source, warnings)?,
        PlanFormat::TaskList => task_list::read(source, warnings)?,
        PlanFormat::Checklist | PlanFormat::Headings => markdown::read(source)?,
    };
    if plan.title.is_empty() {
        plan.title = stem(name).to_owned();
    }
    let mut drafts = drafts;
    if source.format == PlanFormat::Headings {
        let ids = graph::ids(&drafts)?;
        markdown::take_status(source, &ids, &mut drafts, warnings)?;
    }
    plan.tasks = graph::finish(drafts)?;
    Ok(plan)
}

/// A plan without tasks yet.
fn empty_plan(format: PlanFormat) -> Plan {
    Plan {
        id: None,
        title: String::new(),
        goal: String::new(),
        details: String::new(),
        settings: Settings::default(),
        setup: Vec::new(),
        priority: None,
        depends_on: Vec::new(),
        tasks: Vec::new(),
        format,
    }
}

fn stem(name: &str) -> &str {
    let file = name.rsplit(['/', '\\']).next().unwrap_or(name);
    file.split_once('.').map_or(file, |(stem, _)| stem)
}

#[cfg(test)]
mod tests;
