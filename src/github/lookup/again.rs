//! Reads the request of an earlier run again, from what made it.
//!
//! The comment that names it has the account of the job's token, with which every workflow of the repository
//! writes, so what it says only decides where to look. Whoever asked must still be allowed to.

use super::fetch::EventLookup;
use crate::domain::trigger::authorise::{Authorised, Declined, Facts, may_ask};
use crate::domain::trigger::payload;
use crate::domain::trigger::settings::TriggerSettings;
use crate::domain::trigger::triage::{Candidate, Triage, triage};
use crate::domain::trigger::{Refusal, Request};
use crate::github::api::Error;
use serde_json::{Value, json};

impl EventLookup<'_> {
    /// Puts the request of the last run, with what it refers to, in the place of one to repeat it or to go on with
    /// it. If none is known, only kept work can go on.
    ///
    /// # Errors
    /// When it is not there any more, or whoever made it may not ask.
    pub async fn read_again(
        &self,
        authorised: &mut Authorised,
        triggers: &TriggerSettings,
    ) -> Result<(), Declined> {
        let now = &authorised.candidate;
        let key = authorised.state.asked.as_deref().unwrap_or_default();
        if key.is_empty() && now.request.continues() {
            return Ok(());
        }
        let gone = |why: String| {
            let why = format!(": {why}");
            Declined::from(Refusal::NoEarlierRun { why })
        };
        let unread = |error: Error| Refusal::HistoryUnknown {
            why: error.to_string(),
        };
        let event = self.event_of(key, now, triggers).await.map_err(unread)?;
        let (name, event) = event.ok_or_else(|| gone("it was not made here".to_owned()))?;
        let made = match triage(&payload::parse(name, &event).map_err(gone)?, triggers) {
            Triage::Candidate(made) => *made,
            Triage::Nothing { reason } => return Err(gone(reason)),
            Triage::Refused { refusal, .. } => return Err(refusal.into()),
        };
        let mut facts = Facts::default();
        self.permission(&made, &mut facts).await;
        may_ask(&made, &facts, triggers)?;
        let is_again = made.request == Request::Retry || made.request.continues();
        if made.number() != now.number() || !made.request.is_work() || is_again {
            return Err(gone("it names no work here".to_owned()));
        }
        authorised.candidate = Candidate {
            request: made.request,
            place: made.place,
            review_body: made.review_body,
            checks_name: made.checks_name,
            ..now.clone()
        };
        Ok(())
    }

    /// The event with this key, as GitHub tells of it now: its name and its payload. `None` if it does not belong to
    /// this thread.
    async fn event_of(
        &self,
        key: &str,
        now: &Candidate,
        triggers: &TriggerSettings,
    ) -> Result<Option<(&'static str, Value)>, Error> {
        let mut parts = key.split(':');
        let kind = parts.next();
        let id = parts.next().and_then(|id| id.parse::<u64>().ok());
        let (Some(kind), Some(id), Some(number)) = (kind, id, now.number()) else {
            return Ok(None);
        };
        let on = if now.is_pull() { "pulls" } else { "issues" };
        let thread = self.repo.get::<Value>(&format!("/{on}/{number}")).await?;
        let wanted = &triggers.rules.trigger_label;
        #[rustfmt::skip]
        let (name, action, part, place) = match kind {
            "comment" => ("issue_comment", "created", "comment", format!("/issues/{number}/comments")),
            "review-comment" => ("pull_request_review_comment", "created", "comment", format!("/pulls/{number}/comments")),
            "review" => ("pull_request_review", "submitted", "review", format!("/pulls/{number}/reviews")),
            "workflow-run" => ("workflow_run", "completed", "workflow_run", format!("/actions/runs/{id}")),
            "check-suite" => ("check_suite", "completed", "check_suite", format!("/check-suites/{id}")),
            // People without the right to manage issues cannot set a label.
            "label" => ("issues", "labeled", "label", String::new()),
            _ => return Ok(None),
        };
        let made = match part {
            "comment" | "review" => {
                let entries: Vec<Value> = self.repo.list(&place).await?;
                entries.into_iter().find(|entry| entry["id"] == id)
            }
            "label" => {
                let mut labels = now.subject.iter().flat_map(|subject| subject.label_names());
                let set = labels.find(|label| label.eq_ignore_ascii_case(wanted));
                set.map(|label| json!({ "name": label }))
            }
            _ => Some(self.repo.get(&place).await?),
        };
        let asker = now.asker.as_ref().map(|asker| &asker.login);
        let repository =
            json!({ "full_name": self.repo.full_name(), "default_branch": now.default_branch });
        let event = |made: Value| {
            json!({ "action": action, part: made, "issue": thread, "pull_request": thread,
                "sender": { "login": asker }, "repository": repository })
        };
        Ok(made.map(|made| (name, event(made))))
    }
}
