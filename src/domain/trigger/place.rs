//! Where a run belongs on GitHub.

use super::run_name::RunName;
use serde::{Deserialize, Serialize};

/// Which repository of which GitHub, and which step of which of its workflow runs; nothing in it is
/// secret.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// Such as `https://github.com`, without a slash at the end.
    pub server_url: String,
    /// Such as `https://api.github.com`, without a slash at the end.
    pub api_url: String,
    /// `owner/name`.
    pub repository: String,
    /// The workflow run, where this is a step of one.
    pub run: Option<WorkflowRun>,
    /// The name under which the run is told of.
    #[serde(default)]
    pub name: RunName,
}

/// A run of a workflow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkflowRun {
    /// The id that the runner gives.
    pub id: String,
    /// The attempt, from 1.
    pub attempt: String,
}

impl Place {
    /// The address that git knows the repository by.
    pub fn git_url(&self) -> String {
        format!("{}/{}.git", self.server_url, self.repository)
    }

    /// The page of the workflow run.
    pub fn run_url(&self) -> Option<String> {
        let run = self.run.as_ref()?;
        let (server, repository) = (&self.server_url, &self.repository);
        Some(format!("{server}/{repository}/actions/runs/{}", run.id))
    }
}
