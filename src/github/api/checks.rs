//! Check runs and their annotations.

use super::client::Repo;
use super::error::Error;
use super::facts::part;
use super::policy::Kind;
use super::transport::{Call, Keep};
use crate::domain::outcome::Conclusion;
use hyper::Method;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::vec::IntoIter;

/// Maximum number of annotations that GitHub accepts in one request.
const BATCH: usize = 50;

/// The status of a check run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckStatus {
    /// Running.
    InProgress,
    /// Ended with a conclusion.
    Completed,
}

/// A message about lines of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Annotation {
    /// The file, relative to the repository's root.
    pub path: String,
    /// The first line, from 1.
    pub start_line: u32,
    /// The last line.
    pub end_line: u32,
    /// The first column, from 1. Only for a range within one line.
    pub start_column: Option<u32>,
    /// The last column.
    pub end_column: Option<u32>,
    /// The severity: `notice`, `warning` or `failure`.
    pub annotation_level: &'static str,
    /// The text, at most 64 KB.
    pub message: String,
    /// A short title, at most 255 characters.
    pub title: Option<String>,
    /// Details, at most 64 KB.
    pub raw_details: Option<String>,
}

/// The content of a check run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Output {
    /// The title.
    pub title: String,
    /// Markdown, at most 65,535 bytes.
    pub summary: String,
    /// Further Markdown, at most 65,535 bytes.
    pub text: Option<String>,
    /// At most 50. GitHub adds them to the existing ones.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub annotations: Vec<Annotation>,
}

/// A check run to create.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "GitHub's own words")]
pub struct NewCheckRun {
    pub name: String,
    /// The commit that is checked.
    pub head_sha: String,
    /// Sprag's own key, by which the check run is found again.
    pub external_id: String,
    /// Everything that may change later.
    #[serde(flatten)]
    pub state: CheckUpdate,
}

/// Changes to a check run. `None` keeps the present value.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "GitHub's own words")]
pub struct CheckUpdate {
    /// A conclusion sets it to completed.
    pub status: Option<CheckStatus>,
    pub conclusion: Option<Conclusion>,
    pub output: Option<Output>,
    /// The URL for further details.
    pub details_url: Option<String>,
}

/// A check run as GitHub returns it, or a job of GitHub Actions, which has the id of its check run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[expect(missing_docs, reason = "GitHub's own words")]
pub struct CheckRun {
    pub id: u64,
    /// The URL of its page.
    pub html_url: String,
    pub name: String,
    /// The commit that is checked.
    pub head_sha: String,
    /// The key from the creator of the check run.
    pub external_id: String,
    pub status: String,
    pub conclusion: Option<String>,
    /// The details URL from the creator of the check run.
    pub details_url: String,
    pub output: CheckRunOutput,
    /// Its steps, if it is a job of GitHub Actions that was asked for as one.
    pub steps: Vec<Step>,
}

/// A step of a job.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Step {
    /// Its name.
    pub name: String,
    /// Its conclusion, or `None` while it runs.
    pub conclusion: Option<String>,
}

/// The output of a check run as GitHub returns it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct CheckRunOutput {
    pub annotations_count: usize,
    pub title: String,
    pub summary: String,
    /// The longer text.
    pub text: String,
}

/// A page of check runs, or of jobs.
#[derive(Deserialize)]
struct CheckRuns {
    #[serde(alias = "jobs")]
    check_runs: Vec<CheckRun>,
}

impl IntoIterator for CheckRuns {
    type Item = CheckRun;
    type IntoIter = IntoIter<CheckRun>;

    fn into_iter(self) -> IntoIter<CheckRun> {
        self.check_runs.into_iter()
    }
}

impl Repo {
    /// Creates a check run. Without a clear response, looks for one with the same name, key and commit before
    /// creating another.
    ///
    /// # Errors
    /// See [`Error`]; `Forbidden` for every token that does not belong to an app.
    pub async fn create_check_run(&self, new: &NewCheckRun) -> Result<CheckRun, Error> {
        let existing = async || {
            let runs = self.check_runs(&new.head_sha, &new.name).await?;
            let is_same = |run: &CheckRun| {
                run.external_id == new.external_id
                    && run.name == new.name
                    && run.head_sha.eq_ignore_ascii_case(&new.head_sha)
            };
            Ok(runs.into_iter().find(is_same))
        };
        self.create("/check-runs", new, existing).await
    }

    /// A check run by its id.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn check_run(&self, id: u64) -> Result<CheckRun, Error> {
        self.get(&format!("/check-runs/{id}")).await
    }

    /// Updates a check run. Because annotations are added, an update with annotations is repeated only after
    /// counting them.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn update_check_run(&self, id: u64, update: &CheckUpdate) -> Result<CheckRun, Error> {
        let output = update.output.as_ref();
        if output.is_none_or(|output| output.annotations.is_empty()) {
            let call = self.update(id, Kind::Change, update)?;
            return self.client.call(&call).await;
        }
        let before = self.check_run(id).await?.output.annotations_count;
        self.add(id, update, before).await
    }

    /// All check runs of a commit, branch or tag, including older ones of the same name.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn all_check_runs(&self, commit: &str) -> Result<Vec<CheckRun>, Error> {
        let rest = format!("/commits/{}/check-runs?filter=all", part(commit));
        self.all_of(&rest).await
    }

    /// The check runs with a name for a commit, branch or tag, including older ones.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn check_runs(&self, commit: &str, name: &str) -> Result<Vec<CheckRun>, Error> {
        let (commit, name) = (part(commit), part(name));
        let rest = format!("/commits/{commit}/check-runs?check_name={name}&filter=all");
        self.all_of(&rest).await
    }

    async fn all_of(&self, rest: &str) -> Result<Vec<CheckRun>, Error> {
        self.client
            .pages::<CheckRuns>(&self.path(rest), |_| false)
            .await
    }

    /// Adds annotations, 50 per request. `annotations` are all that the check run must have, and `already` is
    /// the number that it has; the rest are sent. Without a clear response, the annotations are counted
    /// before any are sent again, so that none is lost or duplicated. Returns the final number.
    ///
    /// # Errors
    /// See [`Error`]. [`Repo::check_run`] then returns the number of annotations from which to continue.
    pub async fn add_annotations(
        &self,
        id: u64,
        output: &Output,
        annotations: &[Annotation],
        already: usize,
    ) -> Result<usize, Error> {
        let mut there = already;
        while let Some(rest) = annotations.get(there..).filter(|rest| !rest.is_empty()) {
            let batch: Vec<Annotation> = rest.iter().take(BATCH).cloned().collect();
            let sent = batch.len();
            let output = Output {
                annotations: batch,
                ..output.clone()
            };
            let update = CheckUpdate {
                output: Some(output),
                ..CheckUpdate::default()
            };
            self.add(id, &update, there).await?;
            there += sent;
        }
        Ok(there)
    }

    /// Sends an update with annotations to a check run that has `before` of them.
    async fn add(&self, id: u64, update: &CheckUpdate, before: usize) -> Result<CheckRun, Error> {
        let call = self.update(id, Kind::Create, update)?;
        let existing = async || {
            let run = self.check_run(id).await?;
            Ok(Some(run).filter(|run| run.output.annotations_count > before))
        };
        self.client.create(&call, existing).await
    }

    fn update(&self, id: u64, kind: Kind, update: &CheckUpdate) -> Result<Call, Error> {
        let path = self.path(&format!("/check-runs/{id}"));
        Call::with_body(Method::PATCH, path, kind, update)
    }

    /// The jobs of the latest attempt of a run.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn jobs(&self, run: u64) -> Result<Vec<CheckRun>, Error> {
        self.all_of(&format!("/actions/runs/{run}/jobs")).await
    }

    /// The jobs of a check suite. Suites of other apps than GitHub Actions have no logs.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn jobs_of_suite(&self, suite: u64) -> Result<Vec<CheckRun>, Error> {
        self.all_of(&format!("/check-suites/{suite}/check-runs"))
            .await
    }

    /// The latest checks of a commit, of GitHub Actions and of other apps.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn jobs_of_commit(&self, commit: &str) -> Result<Vec<CheckRun>, Error> {
        self.all_of(&format!("/commits/{}/check-runs", part(commit)))
            .await
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
        let path = self.path(&format!("/actions/jobs/{job}/logs"));
        let call = Call::keeping(path, Keep::Tail(max_bytes));
        let log = self.client.answer(&call).await?.body;
        // The first character may have been cut.
        let log = String::from_utf8_lossy(&log);
        Ok(log
            .trim_start_matches(char::REPLACEMENT_CHARACTER)
            .to_owned())
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
