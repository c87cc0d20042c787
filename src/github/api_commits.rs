//! `--commit-via api`: GitHub makes the commits itself and signs them.

use crate::domain::event::{PushLine, RebasedLine};
use crate::domain::snapshot::RevId;
use crate::error::Result;
use crate::github::actions_environment::ActionsEnvironment;
use crate::github::api::{CommitOnBranch, Repo};
use crate::run::steps::{Parcel, Performer};

/// Has GitHub make each of the run's commits anew on the branch. `None` where that cannot express a
/// commit or where the branch has moved: an ordinary push is to do it, which is said.
///
/// # Errors
/// When the run's own state cannot be written.
pub(crate) async fn commit(
    actions: &ActionsEnvironment,
    performer: &mut Performer<'_>,
    parcel: &Parcel<'_>,
) -> Result<Option<PushLine>> {
    match tried(actions, performer, parcel).await {
        Ok(line) => Ok(line),
        Err(why) => {
            performer.warn(format!(
                "the commits are pushed as they are, without GitHub's signature: {why}"
            ));
            Ok(None)
        }
    }
}

async fn tried(
    actions: &ActionsEnvironment,
    performer: &mut Performer<'_>,
    parcel: &Parcel<'_>,
) -> std::result::Result<Option<PushLine>, String> {
    let told = |error: &dyn std::fmt::Display| error.to_string();
    let Some(head) = performer.repo.base().filter(|head| *head != parcel.start) else {
        return Ok(None);
    };
    let commits = performer
        .repo
        .commits_between(&parcel.start, &head)
        .map_err(|error| told(&error))?;
    // Everything that can be refused here is, before anything is made.
    let mut changes = Vec::new();
    let mut parent = parcel.start.clone();
    for commit in &commits {
        let change = performer.repo.changes(&parent, commit);
        changes.push(change.map_err(|error| told(&error))?);
        parent = commit.clone();
    }
    let repo = actions
        .client()
        .and_then(|client| client.repo(&actions.place.repository))
        .map_err(|error| told(&error))?;
    let mut at = ready(&repo, parcel).await?;
    let mut rebased: Vec<RebasedLine> = Vec::new();
    for (commit, change) in commits.iter().zip(changes) {
        let message = performer
            .repo
            .message_of(commit)
            .map_err(|error| told(&error))?;
        let (headline, body) = message.split_once('\n').unwrap_or((&message, ""));
        let made = CommitOnBranch {
            branch: parcel.branch.short().to_owned(),
            expected_head: at.clone(),
            headline: headline.trim().to_owned(),
            body: body.trim().to_owned(),
            additions: change.additions,
            deletions: change.deletions,
        };
        at = match repo.commit_on_branch(&made).await {
            Ok(new) => new,
            Err(error) if rebased.is_empty() => return Err(told(&error)),
            // Some of the work is there: what follows goes on top of that by a push.
            Err(error) => return Err(format!("after {} of them: {error}", rebased.len())),
        };
        rebased.push(RebasedLine {
            old: commit.0.clone(),
            new: Some(at.clone()),
        });
    }
    let verified = repo
        .git_commit(&at)
        .await
        .ok()
        .and_then(|facts| facts.verified);
    let signed = match verified {
        Some((true, _)) => "made and signed by GitHub".to_owned(),
        Some((false, why)) => format!("made by GitHub, which says of their signature: {why}"),
        None => "made by GitHub".to_owned(),
    };
    let count = rebased.len();
    performer.follow_remote(parcel, &RevId(at.clone()));
    Ok(Some(PushLine {
        branch: parcel.branch.short().to_owned(),
        head: Some(at),
        pushed: true,
        rescue: None,
        pull_request: None,
        detail: format!(
            "{count} {}, {signed}",
            if count == 1 { "commit" } else { "commits" }
        ),
        rebased,
        dispatched: Vec::new(),
    }))
}

/// Where the branch is on GitHub; made there if it is new.
async fn ready(repo: &Repo, parcel: &Parcel<'_>) -> std::result::Result<String, String> {
    if let Some(expected) = &parcel.expected {
        return match *expected == parcel.start {
            true => Ok(expected.0.clone()),
            false => Err("the branch has moved".to_owned()),
        };
    }
    let full = parcel.branch.full();
    let made = repo.create_ref(&full, &parcel.start.0).await;
    made.map(|()| parcel.start.0.clone())
        .map_err(|error| error.to_string())
}
