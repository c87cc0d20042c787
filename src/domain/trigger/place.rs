//! The place of a run on GitHub.

use super::run_name::RunName;
use serde::{Deserialize, Serialize};

/// The GitHub server, the repository, and the step of the workflow run. It contains no secrets.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// For example `https://github.com`, without a trailing slash.
    pub server_url: String,
    /// For example `https://api.github.com`, without a trailing slash.
    pub api_url: String,
    /// `owner/name`.
    pub repository: String,
    /// The workflow run, if this is a step of one.
    pub run: Option<WorkflowRun>,
    /// The run's name on GitHub.
    #[serde(default)]
    pub name: RunName,
}

/// A workflow run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkflowRun {
    /// The id from the runner.
    pub id: String,
    /// The attempt, from 1.
    pub attempt: String,
}

impl Place {
    /// The repository's URL for git.
    pub fn git_url(&self) -> String {
        format!("{}/{}.git", self.server_url, self.repository)
    }

    /// The URL of the workflow run's page.
    pub fn run_url(&self) -> Option<String> {
        let run = self.run.as_ref()?;
        let (server, repository) = (&self.server_url, &self.repository);
        Some(format!("{server}/{repository}/actions/runs/{}", run.id))
    }
}
