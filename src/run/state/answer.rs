//! The answers of people to the questions of a task.

use serde::{Deserialize, Serialize};

/// The answers that a task has got, as the end of its description.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskAnswer {
    /// The task.
    pub task: String,
    /// The questions with their answers.
    pub text: String,
    /// Whether this process got the last of them, so that the agent's session goes on with it.
    #[serde(skip)]
    pub is_new: bool,
}
