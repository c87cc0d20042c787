//! What the texts of a run say of its surroundings, owned for the thread that publishes them.

use crate::github::publisher::Known;
use crate::report::markdown::Surroundings;

/// See [`Surroundings`], of which this is the owned form.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is described where it is borrowed")]
pub struct Scene {
    pub server_url: String,
    pub repository: String,
    pub run_url: Option<String>,
    pub trigger_phrase: Option<String>,
    pub plan_commit: Option<String>,
    pub report_only: bool,
    pub asked_by: Option<String>,
    pub dispatched: Vec<String>,
    pub ci_will_not_start: bool,
    pub notes: Vec<String>,
    /// Whether there is a comment at all.
    pub comments: bool,
}

impl Scene {
    /// The same with the pages that are known and the hidden line of a comment.
    pub fn surroundings<'a>(
        &'a self,
        known: &'a Known,
        state_line: Option<&'a str>,
    ) -> Surroundings<'a> {
        Surroundings {
            server_url: &self.server_url,
            repository: &self.repository,
            run_url: self.run_url.as_deref(),
            check_url: known.check.as_ref().map(|page| page.url.as_str()),
            comment_url: known.comment.as_ref().map(|page| page.url.as_str()),
            artifact_url: None,
            trigger_phrase: self.trigger_phrase.as_deref(),
            plan_commit: self.plan_commit.as_deref(),
            report_only: self.report_only,
            superseded_by: None,
            state_line,
            asked_by: self.asked_by.as_deref(),
            dispatched: self.dispatched.clone(),
            ci_will_not_start: self.ci_will_not_start,
            notes: self.notes.clone(),
        }
    }
}
