//! GitHub: its API, the environment of a job, the requests of events, and the reports to it.

pub mod actions_environment;
pub mod api;
pub mod api_commits;
pub mod delivery;
pub mod lookup;
pub mod publisher;
pub mod queue;
pub mod refusal;
pub mod request;
pub mod review_comments;

/// A failed request fails a run because of its environment.
impl From<api::Error> for crate::error::Error {
    fn from(error: api::Error) -> Self {
        Self::environment(error.to_string())
    }
}
