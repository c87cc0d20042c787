//! GitHub's API: the calls that Sprag makes, with its own types and its own retry policy.
//!
//! The transport is octocrab over hyper and rustls. octocrab's own retry feature is off: it repeats every
//! method at once and does not read `retry-after`. Proxies and certificates are those of [`crate::http`].
//!
//! Everything runs on one tokio runtime: a client's connections belong to the runtime that made its first
//! request.

mod call;
mod checks;
mod client;
mod doctor;
mod error;
mod facts;
mod issues;
pub mod policy;
mod pulls;
mod settings;
mod transport;

pub use crate::domain::outcome::Conclusion;
pub use checks::{Annotation, CheckRun, CheckStatus, CheckUpdate, NewCheckRun, Output, Step};
pub use client::{Client, Repo};
pub use doctor::{Area, AreaAccess, PermissionState, RateLimit, Survey};
pub use error::{Error, ErrorKind};
pub use facts::{
    Access, Author, CommitFacts, CommitOnBranch, Facts, Identity, MAX_COMMIT_BYTES, Permissions,
    Ruleset, Sha, Verification,
};
pub use issues::{Comment, IssueFacts, ReactTo, Reaction};
pub use pulls::{
    ChangedFile, NewLineComment, NewPull, NewReview, PullBranch, PullFacts, PullRepo, Review,
    ReviewComment, ReviewThread,
};
pub use settings::{Limits, Settings};

#[cfg(test)]
mod tests;
