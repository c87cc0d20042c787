//! Check runs and their annotations.

use super::call::Call;
use super::client::Repo;
use super::error::Error;
use super::facts::part;
use super::policy::Kind;
use hyper::Method;
use serde::{Deserialize, Serialize};

/// The most annotations that GitHub takes in one request.
const BATCH: usize = 50;

/// How far a check run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckStatus {
    /// Not begun.
    Queued,
    /// At work.
    InProgress,
    /// Over; a conclusion says how.
    Completed,
}

/// How a check run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Conclusion {
    /// Well.
    Success,
    /// Not well.
    Failure,
    /// Neither, and it blocks nothing.
    Neutral,
    /// It was stopped.
    Cancelled,
    /// It was not needed.
    Skipped,
    /// It took too long.
    TimedOut,
    /// A person must do something.
    ActionRequired,
}

/// How loud an annotation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AnnotationLevel {
    /// For information.
    Notice,
    /// Something to look at.
    Warning,
    /// Something failed.
    Failure,
}

/// A note on lines of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Annotation {
    /// The file, relative to the repository's root.
    pub path: String,
    /// The first line, from 1.
    pub start_line: u32,
    /// The last line.
    pub end_line: u32,
    /// The first column, from 1; only where it is one line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_column: Option<u32>,
    /// The last column.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_column: Option<u32>,
    /// How loud.
    pub annotation_level: AnnotationLevel,
    /// The text, at most 64 KB.
    pub message: String,
    /// A few words, at most 255 characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// More about it, at most 64 KB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw_details: Option<String>,
}

/// What a check run shows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Output {
    /// The title.
    pub title: String,
    /// Markdown, at most 65,535 bytes.
    pub summary: String,
    /// More Markdown, at most 65,535 bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// At most 50; they are added to those that are there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub annotations: Vec<Annotation>,
}

/// A check run to make.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NewCheckRun {
    /// Its name.
    pub name: String,
    /// The commit that it is for.
    pub head_sha: String,
    /// Our own key, by which it is found again.
    pub external_id: String,
    /// The page with more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details_url: Option<String>,
    /// How far it is; a conclusion makes it completed.
    pub status: CheckStatus,
    /// How it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conclusion: Option<Conclusion>,
    /// What it shows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<Output>,
}

/// What changes of a check run; `None` stays as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct CheckUpdate {
    /// How far it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<CheckStatus>,
    /// How it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conclusion: Option<Conclusion>,
    /// What it shows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<Output>,
    /// The page with more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details_url: Option<String>,
}

/// A check run as GitHub has it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(from = "RawCheckRun")]
pub struct CheckRun {
    /// Its id.
    pub id: u64,
    /// Its page.
    pub html_url: String,
    /// Its name.
    pub name: String,
    /// The commit that it is for.
    pub head_sha: String,
    /// The key that its maker gave it.
    pub external_id: String,
    /// How far it is.
    pub status: String,
    /// How it ended.
    pub conclusion: Option<String>,
    /// How many annotations it has.
    pub annotations: usize,
    /// The page that its maker gave it.
    pub details_url: String,
    /// The longer text that it shows.
    pub text: String,
}

#[derive(Deserialize)]
struct RawCheckRun {
    id: u64,
    html_url: Option<String>,
    #[serde(default)]
    name: String,
    #[serde(default)]
    head_sha: String,
    external_id: Option<String>,
    #[serde(default)]
    status: String,
    conclusion: Option<String>,
    output: Option<RawOutput>,
    details_url: Option<String>,
}

#[derive(Deserialize)]
struct RawOutput {
    #[serde(default)]
    annotations_count: usize,
    text: Option<String>,
}

impl From<RawCheckRun> for CheckRun {
    fn from(raw: RawCheckRun) -> Self {
        Self {
            id: raw.id,
            html_url: raw.html_url.unwrap_or_default(),
            name: raw.name,
            head_sha: raw.head_sha,
            external_id: raw.external_id.unwrap_or_default(),
            status: raw.status,
            conclusion: raw.conclusion,
            details_url: raw.details_url.unwrap_or_default(),
            annotations: raw
                .output
                .as_ref()
                .map_or(0, |output| output.annotations_count),
            text: raw.output.and_then(|it| it.text).unwrap_or_default(),
        }
    }
}

#[derive(Deserialize)]
struct CheckRuns {
    check_runs: Vec<CheckRun>,
}

impl Repo {
    /// Makes a check run. After an unclear answer it looks for one of the same name, key and commit
    /// before it makes another.
    ///
    /// # Errors
    /// See [`Error`]; `Forbidden` for every token that is no app's.
    pub async fn create_check_run(&self, new: &NewCheckRun) -> Result<CheckRun, Error> {
        let call = Call::with_body(Method::POST, self.path("/check-runs"), Kind::Create, new)?;
        let look = async || {
            let runs = self.check_runs(&new.head_sha, &new.name).await?;
            let same = |run: &CheckRun| {
                run.external_id == new.external_id
                    && run.name == new.name
                    && run.head_sha.eq_ignore_ascii_case(&new.head_sha)
            };
            Ok(runs.into_iter().find(same))
        };
        self.client.create(&call, look).await
    }

    /// A check run by its id.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn check_run(&self, id: u64) -> Result<CheckRun, Error> {
        self.client
            .call(&Call::get(self.path(&format!("/check-runs/{id}"))))
            .await
    }

    /// Changes a check run. Annotations of the output are added, so with them it is repeated only
    /// after a count.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn update_check_run(&self, id: u64, update: &CheckUpdate) -> Result<CheckRun, Error> {
        let adds = update
            .output
            .as_ref()
            .map_or(0, |output| output.annotations.len());
        if adds == 0 {
            return self
                .client
                .call(&self.patch(id, Kind::Change, update)?)
                .await;
        }
        let before = self.check_run(id).await?.annotations;
        self.add(id, update, before).await
    }

    /// All check runs on a commit, branch or tag, older ones of the same name included.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn all_check_runs(&self, commit: &str) -> Result<Vec<CheckRun>, Error> {
        let path = self.path(&format!("/commits/{}/check-runs?filter=all", part(commit)));
        let runs = |page: CheckRuns| page.check_runs;
        self.client.pages(&path, runs, |_| false).await
    }

    /// The check runs of a name on a commit, branch or tag, older ones of the same name included.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn check_runs(&self, commit: &str, name: &str) -> Result<Vec<CheckRun>, Error> {
        let of = format!("/commits/{}/check-runs", part(commit));
        let path = self.path(&format!("{of}?check_name={}&filter=all", part(name)));
        let runs = |page: CheckRuns| page.check_runs;
        self.client.pages(&path, runs, |_| false).await
    }

    /// Adds annotations, 50 a request. `annotations` are all that the check run is to have, `already`
    /// the number of those that it has; the others are sent, and after an unclear answer counted
    /// before anything is sent again, so that none is lost and none comes twice. Gives the number that
    /// it has in the end.
    ///
    /// # Errors
    /// See [`Error`]. [`Repo::check_run`] then tells how many there are, to go on from there.
    pub async fn add_annotations(
        &self,
        id: u64,
        output: &Output,
        annotations: &[Annotation],
        already: usize,
    ) -> Result<usize, Error> {
        let mut there = already;
        while let Some(rest) = annotations.get(there..).filter(|rest| !rest.is_empty()) {
            let batch = rest.iter().take(BATCH).cloned().collect();
            let update = CheckUpdate {
                output: Some(Output {
                    annotations: batch,
                    ..output.clone()
                }),
                ..CheckUpdate::default()
            };
            let sent = rest.len().min(BATCH);
            self.add(id, &update, there).await?;
            there += sent;
        }
        Ok(there)
    }

    /// Sends an update with annotations to a check run that has `before` of them.
    async fn add(&self, id: u64, update: &CheckUpdate, before: usize) -> Result<CheckRun, Error> {
        let call = self.patch(id, Kind::Create, update)?;
        let look = async || {
            let run = self.check_run(id).await?;
            Ok(Some(run).filter(|run| run.annotations > before))
        };
        self.client.create(&call, look).await
    }

    fn patch(&self, id: u64, kind: Kind, update: &CheckUpdate) -> Result<Call, Error> {
        let path = self.path(&format!("/check-runs/{id}"));
        Call::with_body(Method::PATCH, path, kind, update)
    }
}
