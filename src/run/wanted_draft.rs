//! A plan that is to be drafted, and what has become of it.

use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;

/// A plan that is to be drafted instead of one that is to be worked off.
#[derive(Debug, Clone)]
pub struct WantedDraft {
    /// What the plan is to be about.
    pub request: String,
    /// The new file that it is written to, absolute; `None` for one that is named after the plan.
    pub output: Option<PathBuf>,
    /// Whether it is committed, for a pull request.
    pub commits: bool,
    /// The file that it was written to, and what a person should know of it.
    pub written: Rc<RefCell<Option<Written>>>,
}

/// A plan that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// Its file, relative to the work tree where it lies in it.
    pub path: String,
    /// Its title.
    pub title: String,
    /// The number of its tasks.
    pub tasks: usize,
}
