//! A plan to draft, and the result.

use crate::domain::text::one_line;
use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;

/// A plan to draft, instead of a plan to run.
#[derive(Debug, Clone)]
pub struct DraftRequest {
    /// The text to plan from.
    pub request: String,
    /// The absolute path of the new file; `None` to name it after the plan.
    pub output: Option<PathBuf>,
    /// Whether it is only shown, and not written to a file.
    pub only_shown: bool,
    /// Whether it is committed, for a pull request.
    pub commits: bool,
    /// The written plan, once there is one.
    pub written: Rc<RefCell<Option<Written>>>,
}

impl DraftRequest {
    /// The request for a plan that is shown in the thread.
    pub(crate) fn to_be_shown(text: &str) -> Self {
        Self {
            request: text.to_owned(),
            output: None,
            only_shown: true,
            commits: false,
            written: Rc::default(),
        }
    }
}

/// A plan that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// Its path, relative to the work tree if it lies there.
    pub path: String,
    /// The title of the plan.
    pub title: String,
    /// The number of its tasks.
    pub tasks: usize,
}

/// The plan of the drafting run: one task, whose work is to draft a plan.
pub(crate) fn plan_of_draft(about: &str, text: &str) -> String {
    let plan = serde_json::json!({
        "title": one_line(&format!("Plan for {about}"), 100),
        "tasks": [{ "id": "plan", "title": "Draft a plan", "description": text }],
    });
    plan.to_string()
}
