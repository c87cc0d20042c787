//! How a person continues a run that is not completely done.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a person continues a run that is not completely done.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Continuation {
    /// With a command on the machine of the run.
    #[default]
    Here,
    /// Not at all: the command that started it is repeated.
    Anew,
    /// On GitHub, because the machine of the job is gone.
    Job {
        /// The start of a comment that Sprag obeys; `null` if the workflow has to be started again.
        phrase: Option<String>,
        /// Whether the run merges the base branch.
        merges_base: bool,
    },
}

impl Continuation {
    /// By starting the workflow again.
    pub const BY_WORKFLOW: Self = Self::Job {
        phrase: None,
        merges_base: false,
    };

    /// Whether it is the default.
    pub fn is_here(&self) -> bool {
        *self == Self::Here
    }
}
