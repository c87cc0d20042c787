//! GitHub's API: the calls that Sprag makes, with its own types and its own retry policy.
//!
//! The transport is octocrab over hyper and rustls. octocrab's own retry feature is off: it repeats every
//! method at once and does not read `retry-after`. Proxies and certificates are those of [`crate::http`].
//!
//! Everything runs on one tokio runtime: a client's connections belong to the runtime that made its first
//! request.

mod actions;
mod call;
mod checks;
mod client;
mod comments;
mod commit;
mod connection;
mod doctor;
mod error;
mod facts;
mod identity;
mod issues;
pub mod policy;
mod pulls;
mod settings;
mod threads;
mod transport;

pub use crate::domain::outcome::Conclusion;
pub use actions::{Job, Step};
pub use checks::{Annotation, CheckRun, CheckStatus, CheckUpdate, NewCheckRun, Output};
pub use client::{Client, Repo};
pub use comments::{Comment, ReactTo, Reaction};
pub use commit::{CommitOnBranch, MAX_COMMIT_BYTES};
pub use doctor::{Area, AreaAccess, PermissionState, RateLimit, Survey};
pub use error::Error;
pub use facts::{Access, Author, CommitFacts, Facts, Permissions, Ruleset, Sha, Verification};
pub use identity::Identity;
pub use issues::IssueFacts;
pub use pulls::{
    ChangedFile, NewLineComment, NewPull, NewReview, Pull, PullBranch, PullFacts, PullRepo, Review,
    ReviewComment,
};
pub use settings::{Limits, Settings};
pub use threads::ReviewThread;

#[cfg(test)]
mod tests;
