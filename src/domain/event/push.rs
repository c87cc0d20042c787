//! The result of a push, and the pull request of its branch.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The result of a push.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PushLine {
    /// The short name of the intended branch on the remote.
    pub branch: String,
    /// The head of the branch that has the work, as read back from the remote.
    pub head: Option<String>,
    /// Whether the work is on that branch.
    pub pushed: bool,
    /// The short name of the branch that has the work instead, if the intended branch refused it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rescue: Option<String>,
    /// The pull request of the branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pull_request: Option<PullRequestLine>,
    /// A one-line description, for a person.
    pub detail: String,
    /// Why the work is not on that branch; absent if it is, and in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// How the pull request ended during the run, if the work is not on its branch because of that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed: Option<ClosedPull>,
    /// Why the pull request that was wanted could not be opened; absent if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pull_request_error: Option<String>,
    /// Workflows that were started on the pushed work.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dispatched: Vec<String>,
    /// The commits that were rewritten on top of other commits, or by GitHub, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rebased: Vec<RebasedLine>,
}

/// How a pull request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ClosedPull {
    /// It was closed. It can be reopened.
    Closed,
    /// It was merged.
    Merged,
}

impl ClosedPull {
    /// Why nothing is pushed to the branch of the pull request.
    pub fn why(self) -> &'static str {
        match self {
            Self::Closed => "the pull request was closed during the run",
            Self::Merged => "the pull request was merged during the run",
        }
    }
}

/// A rewritten commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RebasedLine {
    /// Its old id.
    pub old: String,
    /// Its new id; `null` if its change was already in the branch.
    pub new: Option<String>,
}

/// A pull request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PullRequestLine {
    /// Its number.
    pub number: u64,
    /// Its URL.
    pub url: String,
    /// Whether the run opened it.
    pub opened: bool,
}
