//! The permissions of a token, as far as reading shows them.

use super::call::Call;
use super::client::Repo;
use super::error::Error;
use super::facts::Facts;
use super::transport::HttpResponse;

/// A permission that a workflow's `permissions` can grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Permission {
    /// `contents: read`
    ContentsRead,
    /// `contents: write`
    ContentsWrite,
    /// `issues: read`
    IssuesRead,
    /// `issues: write`
    IssuesWrite,
    /// `pull-requests: read`
    PullRequestsRead,
    /// `pull-requests: write`
    PullRequestsWrite,
    /// `checks: read`
    ChecksRead,
    /// `checks: write`
    ChecksWrite,
    /// `actions: read`
    ActionsRead,
    /// `actions: write`
    ActionsWrite,
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
    /// Every permission once. Those that were not checked are unknown.
    pub permissions: Vec<(Permission, PermissionState)>,
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
        let write = writing(&self.client.inner.transport, &answer, &facts);
        let mut permissions = Vec::new();
        let mut broke_off = None;
        for (reading, writing, path) in reads(&facts) {
            let read = match &broke_off {
                Some(_) => PermissionState::Unknown,
                None => match self.reads(&path, facts.private).await {
                    Ok(standing) => standing,
                    Err(error) => {
                        broke_off = Some(error);
                        PermissionState::Unknown
                    }
                },
            };
            permissions.push((reading, read));
            let standing = match (read, writing) {
                (PermissionState::Refused, _) => PermissionState::Refused,
                (_, Permission::ChecksWrite) => write.checks,
                _ => write.others,
            };
            permissions.push((writing, standing));
        }
        Ok(Survey {
            rate: rate(&answer),
            facts,
            permissions,
            broke_off,
        })
    }

    async fn reads(&self, path: &str, private: bool) -> Result<PermissionState, Error> {
        match self.client.answer(&Call::get(self.path(path))).await {
            Ok(_) if private => Ok(PermissionState::Known),
            Ok(_) => Ok(PermissionState::Unknown),
            Err(Error::Forbidden { .. }) => Ok(PermissionState::Refused),
            // GitHub answers "not found" for private resources that the token may not read.
            Err(Error::NotFound { .. }) if private => Ok(PermissionState::Refused),
            // An empty repository has no commits (409), and a disabled issue tracker no issues (410).
            Err(Error::NotFound { .. } | Error::Conflict { .. } | Error::Invalid { .. }) => {
                Ok(PermissionState::Unknown)
            }
            Err(error) => Err(error),
        }
    }
}

/// For each area, the permission to read, the permission to write, and a path to read.
fn reads(facts: &Facts) -> [(Permission, Permission, String); 5] {
    use Permission as P;
    let at = super::facts::part(&facts.default_branch);
    let of = |path: &str| format!("{path}?per_page=1");
    let checks = of(&format!("/commits/{at}/check-runs"));
    // A list, which is empty or a conflict if the branch does not exist, but never "not found".
    let branch = format!(
        "/git/matching-refs/heads/{}",
        super::facts::name(&facts.default_branch)
    );
    [
        (P::ContentsRead, P::ContentsWrite, branch),
        (P::IssuesRead, P::IssuesWrite, of("/issues")),
        (P::PullRequestsRead, P::PullRequestsWrite, of("/pulls")),
        (P::ChecksRead, P::ChecksWrite, checks),
        (P::ActionsRead, P::ActionsWrite, of("/actions/runs")),
    ]
}

fn rate(answer: &HttpResponse) -> Option<RateLimit> {
    let number = |name: &str| -> Option<u64> {
        let value = answer.headers.get(name)?.to_str().ok()?;
        value.trim().parse().ok()
    };
    Some(RateLimit {
        remaining: number("x-ratelimit-remaining")?,
        limit: number("x-ratelimit-limit")?,
    })
}

/// What is known about writing before any attempt.
struct WriteAccess {
    others: PermissionState,
    checks: PermissionState,
}

fn writing(
    transport: &super::transport::Transport,
    answer: &HttpResponse,
    facts: &Facts,
) -> WriteAccess {
    let scopes = answer
        .headers
        .get("x-oauth-scopes")
        .and_then(|scopes| scopes.to_str().ok());
    let scopes = scopes.filter(|scopes| !scopes.trim().is_empty());
    let pushes = facts.permissions.map(|permissions| permissions.push);
    if facts.archived {
        let none = PermissionState::Refused;
        return WriteAccess {
            others: none,
            checks: none,
        };
    }
    if transport.is_installation_token() {
        let unknown = PermissionState::Unknown;
        return WriteAccess {
            others: unknown,
            checks: unknown,
        };
    }
    let granted = scopes.is_some_and(|scopes| {
        let mut scopes = scopes.split(',').map(str::trim);
        scopes.any(|scope| scope == "repo" || (scope == "public_repo" && !facts.private))
    });
    let others = match (scopes.is_some(), granted, pushes) {
        (_, _, Some(false)) => PermissionState::Refused,
        (true, true, Some(true)) => PermissionState::Known,
        (true, false, _) => PermissionState::Refused,
        _ => PermissionState::Unknown,
    };
    // Classic scopes belong to people's tokens, and only apps may create check runs.
    let checks = match scopes {
        Some(_) => PermissionState::Refused,
        None => PermissionState::Unknown,
    };
    WriteAccess { others, checks }
}
