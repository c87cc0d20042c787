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

/// How commands that a person types in the shell that started the run name its directories.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Directories {
    /// The root of the repository, for commands of git; absent if the shell is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
    /// The directory that `-C` named; absent without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chosen: Option<String>,
}

impl Directories {
    /// Whether the shell is where every command works as it is.
    pub fn are_here(&self) -> bool {
        *self == Self::default()
    }
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
