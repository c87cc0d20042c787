//! Plans that are shown in Sprag's comment, and their approval.

use super::fetch::EventLookup;
use super::place::start_of_work;
use crate::domain::text::fenced;
use crate::domain::trigger::authorise::Authorised;
use crate::domain::trigger::{Refusal, Request, approval};
use crate::github::api::Repo;
use crate::github::request::Page;

/// The plan that Sprag's own comment shows.
async fn shown_plan(repo: &Repo, comment: Option<&Page>) -> Option<String> {
    let comment = repo.comment(comment?.id).await.ok()?;
    approval::plan_in(&comment.body)
}

/// The text to draft a plan from, with the plan that the comment shows.
pub async fn with_earlier_plan(repo: &Repo, comment: Option<&Page>, text: String) -> String {
    match shown_plan(repo, comment).await {
        Some(plan) => format!("{text}\n\n## The plan so far\n\n{}", fenced(&plan)),
        None => text,
    }
}

/// The plan that the comment shows, if the request has its code on the commit that the work starts from.
pub async fn approved(
    lookup: &EventLookup<'_>,
    authorised: &Authorised,
    comment: Option<&Page>,
    request: &Request,
) -> Result<String, Refusal> {
    let plan = shown_plan(lookup.repo, comment).await;
    let plan = plan.ok_or(Refusal::NoPlan)?;
    let base = start_of_work(lookup, authorised, request).await;
    let base = base.map_err(|error| Refusal::BaseUnknown {
        why: error.to_string(),
    })?;
    let now = approval::code(&plan, &base);
    if *request == Request::Approve(now.clone()) {
        Ok(plan)
    } else {
        Err(Refusal::OtherPlan { code: now })
    }
}
