//! A plan to draft, and the result.

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
    /// Whether it is committed, for a pull request.
    pub commits: bool,
    /// The written plan, once there is one.
    pub written: Rc<RefCell<Option<Written>>>,
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
