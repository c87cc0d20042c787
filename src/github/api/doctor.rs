//! The permissions of a token, as far as reading shows them.

use super::client::Repo;
use super::error::{Error, ErrorKind};
use super::facts::Facts;
use super::transport::{Call, HttpResponse};

/// An area of a workflow's `permissions`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "GitHub's own words")]
pub enum Area {
    Contents,
    Issues,
    PullRequests,
    Checks,
    Actions,
}

/// What is known about the permissions to read and to write in an area.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AreaAccess {
    /// The area.
    pub area: Area,
    /// To read.
    pub read: PermissionState,
    /// To write.
    pub write: PermissionState,
}

/// What is known about a permission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PermissionState {
    /// The token has the permission.
    Known,
    /// The token does not have it.
    Refused,
    /// Not determined. GitHub has no call that lists a job token's permissions.
    Unknown,
}

/// The hourly rate limit of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimit {
    /// The requests that remain.
    pub remaining: u64,
    /// The limit.
    pub limit: u64,
}

/// What reading alone shows about a repository and a token.
#[derive(Debug, Clone)]
pub struct Survey {
    /// The repository.
    pub facts: Facts,
    /// The rate limit, if GitHub reports it.
    pub rate: Option<RateLimit>,
    /// Every area once. Permissions that were not checked are unknown.
    pub areas: Vec<AreaAccess>,
    /// The error that ended the survey early.
    pub broke_off: Option<Error>,
}

impl Repo {
    /// Determines what is known about each permission from reading alone. Nothing is written.
    ///
    /// Reading a public repository needs no permission, so it proves none there. A classic personal token
    /// reports its scopes. GitHub refuses check runs to every token that does not belong to an app.
    ///
    /// The result includes the repository itself and the rate limit. If the connection to GitHub is lost, it
    /// contains what was found before.
    ///
    /// # Errors
    /// The repository cannot be read at all, or GitHub cannot be reached.
    pub async fn survey(&self) -> Result<Survey, Error> {
        let call = Call::get(self.path(""));
        let answer = self.client.answer(&call).await?;
        let facts: Facts = super::call::read(&call.what(), &answer.body)?;
        let is_installation = self.client.inner.transport.is_installation_token();
        let mut areas = Vec::new();
        let mut broke_off = None;
        for (area, path) in reads(&facts) {
            let mut read = PermissionState::Unknown;
            if broke_off.is_none() {
                match self.reads(&path, facts.private).await {
                    Ok(state) => read = state,
                    Err(error) => broke_off = Some(error),
                }
            }
            let write = match read {
                PermissionState::Refused => PermissionState::Refused,
                _ if facts.archived => PermissionState::Refused,
                _ if is_installation => PermissionState::Unknown,
                _ => writing(area, answer.text("x-oauth-scopes"), &facts),
            };
            areas.push(AreaAccess { area, read, write });
        }
        Ok(Survey {
            rate: rate(&answer),
            facts,
            areas,
            broke_off,
        })
    }

    async fn reads(&self, path: &str, private: bool) -> Result<PermissionState, Error> {
        match self.client.answer(&Call::get(self.path(path))).await {
            Ok(_) if private => Ok(PermissionState::Known),
            Ok(_) => Ok(PermissionState::Unknown),
            Err(error) => match error.kind {
                ErrorKind::Forbidden => Ok(PermissionState::Refused),
                // GitHub answers "not found" for private resources that the token may not read.
                ErrorKind::NotFound if private => Ok(PermissionState::Refused),
                // An empty repository has no commits (409), and a disabled issue tracker no issues (410).
                ErrorKind::NotFound | ErrorKind::Conflict | ErrorKind::Invalid(_) => {
                    Ok(PermissionState::Unknown)
                }
                _ => Err(error),
            },
        }
    }
}

/// Each area with a path to read.
fn reads(facts: &Facts) -> [(Area, String); 5] {
    let at = super::facts::part(&facts.default_branch);
    let of = |path: &str| format!("{path}?per_page=1");
    // A list, which is empty or a conflict if the branch does not exist, but never "not found".
    let name = super::facts::name(&facts.default_branch);
    let branch = format!("/git/matching-refs/heads/{name}");
    [
        (Area::Contents, branch),
        (Area::Issues, of("/issues")),
        (Area::PullRequests, of("/pulls")),
        (Area::Checks, of(&format!("/commits/{at}/check-runs"))),
        (Area::Actions, of("/actions/runs")),
    ]
}

fn rate(answer: &HttpResponse) -> Option<RateLimit> {
    Some(RateLimit {
        remaining: answer.number("x-ratelimit-remaining")?,
        limit: answer.number("x-ratelimit-limit")?,
    })
}

/// What is known about writing with a token of a person before any attempt.
fn writing(area: Area, scopes: Option<&str>, facts: &Facts) -> PermissionState {
    let Some(scopes) = scopes.filter(|scopes| !scopes.is_empty()) else {
        let is_reader = facts
            .permissions
            .is_some_and(|permissions| !permissions.push);
        return match area {
            Area::Checks => PermissionState::Unknown,
            _ if is_reader => PermissionState::Refused,
            _ => PermissionState::Unknown,
        };
    };
    // Classic scopes belong to people's tokens, and only apps may create check runs.
    if area == Area::Checks {
        return PermissionState::Refused;
    }
    let is_enough = |scope: &str| scope == "repo" || (scope == "public_repo" && !facts.private);
    let is_granted = scopes.split(',').map(str::trim).any(is_enough);
    match facts.permissions.map(|permissions| permissions.push) {
        Some(false) => PermissionState::Refused,
        _ if !is_granted => PermissionState::Refused,
        Some(true) => PermissionState::Known,
        None => PermissionState::Unknown,
    }
}
