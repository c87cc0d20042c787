//! `--commit-via api`: GitHub creates the commits itself and signs them.

use crate::domain::event::{PushLine, RebasedLine};
use crate::domain::snapshot::RevId;
use crate::domain::text::count;
use crate::git::{ApiChanges, BranchName, Repo as GitRepo};
use crate::github::actions_environment::ActionsEnvironment;
use crate::github::api::{CommitOnBranch, Repo, Verification};

/// The commits that GitHub is to recreate.
#[derive(Debug, Clone, Copy)]
pub struct ApiPush<'a> {
    /// The local repository that has them.
    pub repo: &'a GitRepo,
    /// The branch to commit to.
    pub branch: &'a BranchName,
    /// The commit of the branch when the run began, or `None` if it did not exist.
    pub expected: Option<&'a RevId>,
    /// The commit that the run started from.
    pub start: &'a RevId,
}

/// Why the API did not create the commits.
#[derive(Debug)]
pub enum ApiCommitError {
    /// It is not possible: the API cannot express a commit, or the branch has moved.
    Impossible(String),
    /// GitHub created a commit whose tree is not the verified one, or is unknown.
    OtherTree(String),
}

impl<E: std::error::Error> From<E> for ApiCommitError {
    fn from(error: E) -> Self {
        Self::Impossible(error.to_string())
    }
}

/// Lets GitHub recreate each of the run's commits on the branch, and compares their trees with the verified
/// ones. `None` if there are no commits.
///
/// # Errors
/// [`ApiCommitError`].
pub async fn commit(
    actions: &ActionsEnvironment,
    push: ApiPush<'_>,
) -> Result<Option<PushLine>, ApiCommitError> {
    let Some(head) = push.repo.base().filter(|head| head != push.start) else {
        return Ok(None);
    };
    let commits = push.repo.commits_between(push.start, &head)?;
    // All possible refusals are checked before anything is created.
    let parents = std::iter::once(push.start).chain(&commits);
    let changes = parents.zip(&commits);
    let changes = changes.map(|(parent, commit)| push.repo.changes(parent, commit));
    let changes = changes.collect::<Result<Vec<_>, _>>()?;
    let repo = actions.repo()?;
    let mut at = ready(&repo, push).await?;
    let mut rebased: Vec<RebasedLine> = Vec::new();
    let mut signature = None;
    for (commit, change) in commits.iter().zip(changes) {
        let message = push.repo.message_of(commit)?;
        let made = made_by_github(push.branch, &at, &message, change);
        at = match repo.commit_on_branch(&made).await {
            Ok(new) => new,
            Err(error) if rebased.is_empty() => return Err(error.into()),
            // Some commits exist already. A push puts the rest on top of them.
            Err(error) => {
                let why = format!("after {} of them: {error}", rebased.len());
                return Err(ApiCommitError::Impossible(why));
            }
        };
        let tree = push.repo.tree_of(commit)?;
        signature = require_tree(&repo, push.branch, &at, &tree).await?;
        rebased.push(RebasedLine {
            old: commit.0.clone(),
            new: Some(at.clone()),
        });
    }
    let made = count(rebased.len() as u64, "commit");
    Ok(Some(PushLine {
        branch: push.branch.short().to_owned(),
        head: Some(at),
        pushed: true,
        detail: match signature {
            Some(signed) if signed.verified => format!("{made}, made and signed by GitHub"),
            Some(signed) => format!(
                "{made}, made by GitHub, which says of their signature: {}",
                signed.reason
            ),
            None => format!("{made}, made by GitHub"),
        },
        rebased,
        ..PushLine::default()
    }))
}

/// What GitHub is to commit on top of `head`.
fn made_by_github(
    branch: &BranchName,
    head: &str,
    message: &str,
    change: ApiChanges,
) -> CommitOnBranch {
    let (headline, body) = message.split_once('\n').unwrap_or((message, ""));
    CommitOnBranch {
        branch: branch.short().to_owned(),
        expected_head: head.to_owned(),
        headline: headline.trim().to_owned(),
        body: body.trim().to_owned(),
        additions: change.additions,
        deletions: change.deletions,
    }
}

/// Requires that a commit made by GitHub has the verified tree. Returns whether its signature is valid, and why
/// not, if GitHub says so.
async fn require_tree(
    repo: &Repo,
    branch: &BranchName,
    commit: &str,
    tree: &str,
) -> Result<Option<Verification>, ApiCommitError> {
    let there = match repo.git_commit(commit).await {
        Ok(facts) if facts.tree.sha == tree => return Ok(facts.verification),
        Ok(facts) => format!("of tree {}", facts.tree.sha),
        Err(error) => format!("whose tree cannot be read ({error})"),
    };
    Err(ApiCommitError::OtherTree(format!(
        "GitHub made commit {commit} {there}, and tree {tree} was verified; inspect {} before you merge anything",
        branch.short()
    )))
}

/// The commit of the branch on GitHub. A new branch is created there.
async fn ready(repo: &Repo, push: ApiPush<'_>) -> Result<String, ApiCommitError> {
    match push.expected {
        Some(expected) if expected != push.start => {
            return Err(ApiCommitError::Impossible(
                "the branch has moved".to_owned(),
            ));
        }
        Some(_) => {}
        None => repo.create_ref(&push.branch.full(), &push.start.0).await?,
    }
    Ok(push.start.0.clone())
}
