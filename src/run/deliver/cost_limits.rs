//! Cost limits of a run: its own limit and the remainder of the repository's daily limit.

use crate::context::Context;
use crate::domain::attempt::Spend;
use crate::domain::spend::dollars;
use crate::github::request::RunRequest;
use crate::github::spend::{add, spent_today};
use crate::run::state::parts::Parts;
use std::fmt::Write as _;
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
    let told = settled(context, parts, request).await;
    // Spend on another machine counts for the day and for the report, but each job has its own limits.
    let before = elsewhere.unwrap_or_default();
    let settings = &mut parts.setup.config.settings;
    settings.max_cost_usd = settings.max_cost_usd.map(|limit| limit + before.cost_usd);
    let tokens = |limit: u64| limit.saturating_add(before.tokens);
    settings.max_tokens = settings.max_tokens.map(tokens);
    told
}

async fn settled(
    context: &Context,
    parts: &mut Parts<'_>,
    request: Option<&RunRequest>,
) -> Option<String> {
    let settings = &mut parts.setup.config.settings;
    let mut told = settings
        .max_cost_usd
        .map(|limit| format!("cost limit: {} for this run", dollars(limit)));
    let day = settings.max_cost_usd_per_day.filter(|_| request.is_some());
    let Some(day) = day else { return told };
    match spent_today(context, SPEND_TIMEOUT).await {
        Ok(spent) => {
            let left = (day - spent).max(0.0);
            let limit = settings.max_cost_usd.map_or(left, |limit| limit.min(left));
            settings.max_cost_usd = Some(limit);
            let mut line = format!("cost limit: {} for this run", dollars(limit));
            let _ = write!(
                line,
                ", {} a day ({} spent)",
                dollars(day),
                dollars(spent)
            );
            told = Some(line);
        }
        Err(why) => parts.warn(format!(
            "the cost of the runs of the last 24 hours is unknown, so max_cost_usd_per_day does not limit this run: {why}"
        )),
    }
    told
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
    let head = request
        .context
        .head
        .clone()
        .or_else(|| parts.setup.start_commit().map(|id| id.0));
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
