//! What a token may do, as far as reads show.

use super::call::Call;
use super::client::Repo;
use super::error::Error;
use super::facts::Facts;
use super::transport::Answer;

/// A right that a workflow's `permissions` can give.
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

/// What is known of a right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// The token has it.
    Known,
    /// It does not.
    Refused,
    /// Nothing was found out; GitHub has no call that lists a job token's rights.
    Unknown,
}

/// Requests that a token may send in an hour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// Those that are left.
    pub remaining: u64,
    /// All of them.
    pub limit: u64,
}

/// What reads alone show about a repository and a token.
#[derive(Debug, Clone)]
pub struct Survey {
    /// The repository.
    pub facts: Facts,
    /// The rate limit, where GitHub tells it.
    pub rate: Option<Rate>,
    /// Every right once; those that were not got to are unknown.
    pub permissions: Vec<(Permission, Standing)>,
    /// Why not all was got to.
    pub broke_off: Option<Error>,
}

impl Repo {
    /// What of each right is known from reading alone; nothing is written to find out.
    ///
    /// Reading a public repository needs no right, so there it proves none. A classic personal token
    /// tells its scopes; check runs are refused to every token that is no app's.
    ///
    /// The repository itself and the rate limit come with it. Where GitHub is lost on the way, what was found out
    /// by then counts.
    ///
    /// # Errors
    /// A repository that cannot be read at all, or GitHub that cannot be reached.
    pub async fn survey(&self) -> Result<Survey, Error> {
        let call = Call::get(self.path(""));
        let answer = self.client.answer(&call).await?;
        let facts: Facts = super::call::read(&call.what(), &answer.body)?;
        let write = writing(&self.client.inner.transport, &answer, &facts);
        let mut permissions = Vec::new();
        let mut broke_off = None;
        for (reading, writing, path) in reads(&facts) {
            let read = match &broke_off {
                Some(_) => Standing::Unknown,
                None => match self.reads(&path, facts.private).await {
                    Ok(standing) => standing,
                    Err(error) => {
                        broke_off = Some(error);
                        Standing::Unknown
                    }
                },
            };
            permissions.push((reading, read));
            let standing = match (read, writing) {
                (Standing::Refused, _) => Standing::Refused,
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

    async fn reads(&self, path: &str, private: bool) -> Result<Standing, Error> {
        match self.client.answer(&Call::get(self.path(path))).await {
            Ok(_) if private => Ok(Standing::Known),
            Ok(_) => Ok(Standing::Unknown),
            Err(Error::Forbidden { .. }) => Ok(Standing::Refused),
            // Private things that a token may not see are "not found".
            Err(Error::NotFound { .. }) if private => Ok(Standing::Refused),
            // An empty repository has no commits (409), a disabled tracker no issues (410).
            Err(Error::NotFound { .. } | Error::Conflict { .. } | Error::Invalid { .. }) => {
                Ok(Standing::Unknown)
            }
            Err(error) => Err(error),
        }
    }
}

/// For each area what reads it: the right to read, the right to write, the path.
fn reads(facts: &Facts) -> [(Permission, Permission, String); 5] {
    use Permission as P;
    let at = super::facts::part(&facts.default_branch);
    let of = |path: &str| format!("{path}?per_page=1");
    let checks = of(&format!("/commits/{at}/check-runs"));
    // A list, which is empty or in conflict where the branch is not there, and never "not found".
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

fn rate(answer: &Answer) -> Option<Rate> {
    let number = |name: &str| -> Option<u64> {
        let value = answer.headers.get(name)?.to_str().ok()?;
        value.trim().parse().ok()
    };
    Some(Rate {
        remaining: number("x-ratelimit-remaining")?,
        limit: number("x-ratelimit-limit")?,
    })
}

/// What is known of writing before any of it is tried.
struct Writing {
    others: Standing,
    checks: Standing,
}

fn writing(transport: &super::transport::Transport, answer: &Answer, facts: &Facts) -> Writing {
    let scopes = answer
        .headers
        .get("x-oauth-scopes")
        .and_then(|scopes| scopes.to_str().ok());
    let scopes = scopes.filter(|scopes| !scopes.trim().is_empty());
    let pushes = facts.permissions.map(|permissions| permissions.push);
    if facts.archived {
        let none = Standing::Refused;
        return Writing {
            others: none,
            checks: none,
        };
    }
    if transport.is_installation_token() {
        let unknown = Standing::Unknown;
        return Writing {
            others: unknown,
            checks: unknown,
        };
    }
    let granted = scopes.is_some_and(|scopes| {
        let mut scopes = scopes.split(',').map(str::trim);
        scopes.any(|scope| scope == "repo" || (scope == "public_repo" && !facts.private))
    });
    let others = match (scopes.is_some(), granted, pushes) {
        (_, _, Some(false)) => Standing::Refused,
        (true, true, Some(true)) => Standing::Known,
        (true, false, _) => Standing::Refused,
        _ => Standing::Unknown,
    };
    // Classic scopes belong to people's tokens, and only apps may make check runs.
    let checks = match scopes {
        Some(_) => Standing::Refused,
        None => Standing::Unknown,
    };
    Writing { others, checks }
}
