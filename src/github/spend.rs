//! The daily cost of the repository's runs, stored in refs on GitHub.

use crate::context::Context;
use crate::domain::spend::{SPEND_REFS, day_spend, entry, is_uncounted};
use crate::github::actions_environment::ActionsEnvironment;
use crate::github::api::{Error, Repo};
use std::time::Duration;

/// Maximum number of outdated refs that one run removes.
const REMOVED: usize = 20;

/// The cost of all runs of the repository in the last 24 hours, in US dollars.
///
/// # Errors
/// When GitHub cannot be asked, as text.
pub async fn spent_today(context: &Context, patience: Duration) -> Result<f64, String> {
    let repo = repository(context, patience)?;
    let there = there(&repo).await.map_err(|error| error.to_string())?;
    let names = there.iter().map(|(name, _)| name.as_str());
    Ok(day_spend(names, now(), None).usd)
}

/// Adds the total costs of runs, by their ids. The entries of the run `own` are replaced, and those that
/// another run has added itself stay. `head` is a commit of the repository, which the refs need. Returns why
/// one could not be added.
pub async fn add(
    context: &Context,
    own: &str,
    spent: &[(String, f64)],
    head: &str,
    patience: Duration,
) -> Option<String> {
    let added = match repository(context, patience) {
        Ok(repo) => added(&repo, own, spent, head).await,
        Err(why) => return Some(told(&why)),
    };
    added.err().map(|error| told(&error.to_string()))
}

fn told(why: &str) -> String {
    format!("the cost of this run is not counted for max_cost_usd_per_day: {why}")
}

async fn added(repo: &Repo, own: &str, spent: &[(String, f64)], head: &str) -> Result<(), Error> {
    let there = there(repo).await?;
    let names = || there.iter().map(|(name, _)| name.as_str());
    let outdated = day_spend(names(), now(), Some(own)).outdated;
    for (run_id, usd) in spent {
        if run_id == own || is_uncounted(names(), run_id) {
            repo.create_ref(&entry(now(), run_id, *usd), head).await?;
        }
    }
    for name in outdated.iter().take(REMOVED) {
        repo.delete_ref(name).await?;
    }
    Ok(())
}

async fn there(repo: &Repo) -> Result<Vec<(String, String)>, Error> {
    repo.refs_below(SPEND_REFS).await
}

fn repository(context: &Context, patience: Duration) -> Result<Repo, String> {
    let actions = ActionsEnvironment::of(context).ok_or("there is no access to GitHub")?;
    let repo = actions.repo().map_err(|error| error.to_string())?;
    Ok(repo.within(patience))
}

/// Seconds since 1970.
fn now() -> u64 {
    u64::try_from(jiff::Timestamp::now().as_second()).unwrap_or(0)
}
