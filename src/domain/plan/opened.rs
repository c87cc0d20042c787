//! A plan with the text that it was read from.

use super::patch::{self, StatusUpdate};
use super::read::Read;
use super::{Plan, PlanError, TaskId, marks, text_of};
use crate::text_error::{Fault, Parsed};
use std::collections::HashSet;

/// A plan with its text, which can be edited without being read again.
pub struct Opened<'a> {
    name: &'a str,
    /// The byte order mark of the text, or nothing.
    mark: &'a str,
    read: Read<'a>,
}

/// Reads a plan like [`super::parse`], and keeps its text.
///
/// # Errors
/// As for [`super::parse`].
pub fn open<'a>(name: &'a str, bytes: &'a [u8]) -> Result<Parsed<Opened<'a>>, PlanError> {
    let text = text_of(name, bytes)?;
    let mark = bytes.get(..bytes.len() - text.len()).unwrap_or_default();
    let mark = std::str::from_utf8(mark).unwrap_or_default();
    let mut warnings = Vec::new();
    let read =
        Read::with_warnings(name, text, &mut warnings).map_err(|fault| fault.in_file(name))?;
    warnings.sort_by_key(|warning: &Fault| warning.at);
    let warnings = warnings.into_iter().map(|fault| fault.in_file(name));
    Ok(Parsed {
        value: Opened { name, mark, read },
        warnings: warnings.collect(),
    })
}

impl Opened<'_> {
    /// The plan.
    pub fn plan(&self) -> &Plan {
        &self.read.plan
    }

    /// The plan without its text.
    pub fn into_plan(self) -> Plan {
        self.read.plan
    }

    /// The text with the states of tasks set, as by [`super::set_statuses`].
    ///
    /// # Errors
    /// As for [`super::set_statuses`].
    pub fn with_statuses(&self, updates: &[(&TaskId, &StatusUpdate)]) -> Result<String, PlanError> {
        let text = patch::with_statuses(self.name, &self.read, updates)
            .map_err(|fault| fault.in_file(self.name))?;
        Ok(format!("{}{text}", self.mark))
    }

    /// The text with the status of the whole plan and the marks on parts of tasks reset to those in `before`,
    /// except for the parts of the tasks in `except`. A part is identified by its task and its text; a new part is
    /// not marked. `None` if nothing has to be reset, or a text cannot be read or edited with certainty.
    pub fn with_marks_of(&self, before: &str, except: &HashSet<&TaskId>) -> Option<String> {
        let text = marks::with_marks_of(self.name, &self.read, before, except)?;
        Some(format!("{}{text}", self.mark))
    }
}

/// Sets the states of tasks, each named once, in the text of a plan and changes nothing else: comments,
/// indentation, quotes, line breaks and all other keys stay. A value that the file already has is not written
/// again.
///
/// Not every format can represent every state. Checklists, task lists and rmplan know only done and not done.
/// rafa has no blocked status (failed is written instead) and no time. ai-sdlc has no failed status (blocked
/// is written instead), no attempts and no time. When a task is done, its rmplan steps are marked done, and
/// the boxes of a story's tasks and of a task's parts are checked; those of acceptance criteria never are. When all
/// tasks are done, the status of the whole plan says so in rmplan and rafa.
///
/// # Errors
/// When the text is not a valid plan, has no such task, or is written in a way that cannot be edited with
/// certainty. The result is parsed again, and is returned only if the states are there and everything else is
/// unchanged.
pub fn set_statuses(
    name: &str,
    text: &str,
    updates: &[(&TaskId, &StatusUpdate)],
) -> Result<String, PlanError> {
    open(name, text.as_bytes())?.value.with_statuses(updates)
}
