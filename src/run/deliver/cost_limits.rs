//! Cost limits of a run: its own limit and the remainder of the repository's daily limit.

use crate::context::Context;
use crate::domain::attempt::Spend;
use crate::domain::spend::{SPEND_REFS, day_spend, dollars, entry, is_uncounted};
use crate::github::actions_environment::ActionsEnvironment;
use crate::github::api::{Error, Repo};
use crate::github::request::RunRequest;
use crate::run::state::parts::Parts;
use std::time::Duration;

/// How long reading or updating the spend of the day may take.
const SPEND_TIMEOUT: Duration = Duration::from_secs(20);

/// Same as [`SPEND_TIMEOUT`], while the job is being cancelled.
const CANCELLED_SPEND_TIMEOUT: Duration = Duration::from_secs(2);

/// Lowers the run's limit to the remainder of the daily limit. Returns one line of text about the
/// limits; `None` if there are none. `elsewhere` is what the run spent on another machine.
pub(crate) async fn apply_daily_limit(
    context: &Context,
    parts: &mut Parts<'_>,
    request: Option<&RunRequest>,
    elsewhere: Option<Spend>,
) -> Option<String> {
    let mut limit = parts.setup.config.settings.max_cost_usd;
    let day = parts.setup.config.settings.max_cost_usd_per_day;
    let mut of_day = String::new();
    if let Some(day) = day.filter(|_| request.is_some()) {
        match spent_today(context).await {
            Ok(spent) => {
                let left = (day - spent).max(0.0);
                limit = Some(limit.map_or(left, |limit| limit.min(left)));
                of_day = format!(", {} a day ({} spent)", dollars(day), dollars(spent));
            }
            Err(why) => parts.warn(format!(
                "the cost of the runs of the last 24 hours is unknown, so max_cost_usd_per_day does not limit this run: {why}"
            )),
        }
    }
    // Spend on another machine counts for the day and for the report, but each job has its own limits.
    let before = elsewhere.unwrap_or_default();
    let settings = &mut parts.setup.config.settings;
    settings.max_cost_usd = limit.map(|limit| limit + before.cost_usd);
    let tokens = |limit: u64| limit.saturating_add(before.tokens);
    settings.max_tokens = settings.max_tokens.map(tokens);
    limit.map(|limit| format!("cost limit: {} for this run{of_day}", dollars(limit)))
}

/// Counts the cost of the run towards the daily limit, and the cost of the jobs whose work it
/// integrates.
pub(crate) async fn count(context: &Context, parts: &mut Parts<'_>, request: &RunRequest) {
    let own = (parts.setup.run_id.clone(), parts.accounts.spent.cost_usd);
    let mut spent = std::mem::take(&mut parts.accounts.spent_by_shards);
    spent.push(own);
    spent.retain(|(_, usd)| *usd > 0.0);
    let may_write = request.delivery.push || request.delivery.report;
    let is_counted = parts.setup.config.settings.max_cost_usd_per_day.is_some();
    let start = || parts.setup.start_commit().map(|id| id.0);
    let head = request.context.head.clone().or_else(start);
    let Some(head) = head.filter(|_| !spent.is_empty() && may_write && is_counted) else {
        return;
    };
    let patience = match parts.setup.cancel.beyond_deadline().reason() {
        Some(_) => context.after_signal(CANCELLED_SPEND_TIMEOUT),
        None => SPEND_TIMEOUT,
    };
    let uncounted = add(context, &parts.setup.run_id, &spent, &head, patience).await;
    uncounted.into_iter().for_each(|why| parts.warn(why));
}

/// Maximum number of outdated refs that one run removes.
const REMOVED: usize = 20;

/// The cost of all runs of the repository in the last 24 hours, in US dollars.
///
/// # Errors
/// When GitHub cannot be asked, as text.
async fn spent_today(context: &Context) -> Result<f64, String> {
    let repo = repository(context, SPEND_TIMEOUT)?;
    let there = repo.refs_below(SPEND_REFS).await;
    let there = there.map_err(|error| error.to_string())?;
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
        Ok(repo) => added(&repo, own, spent, head)
            .await
            .map_err(|error| error.to_string()),
        Err(why) => Err(why),
    };
    let why = added.err()?;
    Some(format!(
        "the cost of this run is not counted for max_cost_usd_per_day: {why}"
    ))
}

async fn added(repo: &Repo, own: &str, spent: &[(String, f64)], head: &str) -> Result<(), Error> {
    let there = repo.refs_below(SPEND_REFS).await?;
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

fn repository(context: &Context, patience: Duration) -> Result<Repo, String> {
    let actions = ActionsEnvironment::of(context).ok_or("there is no access to GitHub")?;
    let repo = actions.repo().map_err(|error| error.to_string())?;
    Ok(repo.within(patience))
}

/// Seconds since 1970.
fn now() -> u64 {
    u64::try_from(jiff::Timestamp::now().as_second()).unwrap_or(0)
}
