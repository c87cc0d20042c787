//! Workflow runs, their jobs and logs.

use super::call::Call;
use super::checks::{CheckRunOutput, CheckRuns};
use super::client::Repo;
use super::error::Error;
use super::facts::part;
use super::policy::Kind;
use super::transport::Keep;
use hyper::Method;
use serde::Deserialize;
use serde_json::json;

/// A job of a run.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[expect(missing_docs, reason = "GitHub's own words")]
pub struct Job {
    pub id: u64,
    #[serde(default)]
    pub name: String,
    /// Its conclusion, or `None` while it runs.
    pub conclusion: Option<String>,
    #[serde(default)]
    pub steps: Vec<Step>,
    /// The text of a check by another app, which has no log.
    #[serde(default)]
    pub output: CheckRunOutput,
}

/// A step of a job.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Step {
    /// Its name.
    #[serde(default)]
    pub name: String,
    /// Its conclusion, or `None` while it runs.
    pub conclusion: Option<String>,
}

#[derive(Deserialize)]
struct Jobs {
    jobs: Vec<Job>,
}

impl Repo {
    /// The jobs of the latest attempt of a run.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn jobs(&self, run: u64) -> Result<Vec<Job>, Error> {
        let path = self.path(&format!("/actions/runs/{run}/jobs"));
        self.client
            .pages(&path, |page: Jobs| page.jobs, |_| false)
            .await
    }

    /// The jobs of a check suite. In a suite of GitHub Actions, a job has the id of its check run. Suites of
    /// other apps have no logs.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn jobs_of_suite(&self, suite: u64) -> Result<Vec<Job>, Error> {
        self.checks_of(&format!("/check-suites/{suite}")).await
    }

    /// The latest checks of a commit, of GitHub Actions and of other apps.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn jobs_of_commit(&self, commit: &str) -> Result<Vec<Job>, Error> {
        self.checks_of(&format!("/commits/{}", part(commit))).await
    }

    async fn checks_of(&self, what: &str) -> Result<Vec<Job>, Error> {
        let path = self.path(&format!("{what}/check-runs"));
        let checks = |page: CheckRuns<Job>| page.check_runs;
        self.client.pages(&path, checks, |_| false).await
    }

    /// Cancels a workflow run, with the same effect as when a person cancels it.
    ///
    /// # Errors
    /// See [`Error`]; `Conflict` if the run has ended.
    pub async fn cancel_workflow_run(&self, id: u64) -> Result<(), Error> {
        let path = self.path(&format!("/actions/runs/{id}/cancel"));
        let call = Call::new(Method::POST, path, Kind::Create);
        self.client.answer(&call).await.map(drop)
    }

    /// The end of a job's log, at most `max_bytes`. GitHub redirects to another host for it, which does not
    /// get the token.
    ///
    /// # Errors
    /// See [`Error`]; `NotFound` also if the log has expired.
    pub async fn job_log(&self, job: u64, max_bytes: usize) -> Result<String, Error> {
        let call = Call::keeping(
            self.path(&format!("/actions/jobs/{job}/logs")),
            Keep::Tail(max_bytes),
        );
        let answer = self.client.answer(&call).await?;
        let is_middle = |byte: &u8| byte & 0b1100_0000 == 0b1000_0000;
        let torn = answer
            .body
            .iter()
            .take(3)
            .take_while(|byte| is_middle(byte))
            .count();
        let whole = answer.body.get(torn..).unwrap_or_default();
        Ok(String::from_utf8_lossy(whole).into_owned())
    }

    /// Starts a workflow by its file name on a branch or tag. The request is sent once: without a clear
    /// response, the workflow may have started or not.
    ///
    /// # Errors
    /// See [`Error`]; `Invalid` for a workflow without `workflow_dispatch`.
    pub async fn dispatch_workflow(&self, file: &str, at: &str) -> Result<(), Error> {
        let path = format!("/actions/workflows/{}/dispatches", part(file));
        let body = json!({ "ref": at });
        self.send(Method::POST, &path, Kind::Create, &body).await
    }
}
