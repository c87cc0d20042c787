//! GitHub's API: the calls that Sprag makes, in types of its own, with a retry policy of its own.
//!
//! The wire is octocrab over hyper and rustls. octocrab's own repetition is not compiled in: it
//! repeats every method at once and reads no `retry-after`. Proxies and certificates are those of
//! [`crate::net`].
//!
//! Everything runs on one tokio runtime: a client's connections belong to the runtime that made its
//! first request.

mod actions;
mod call;
mod checks;
mod comments;
mod commit;
mod doctor;
mod error;
mod facts;
mod identity;
mod issues;
pub mod policy;
mod pulls;
mod transport;

pub use actions::{Job, Step, WorkflowRun};
pub use checks::{
    Annotation, AnnotationLevel, CheckRun, CheckStatus, CheckUpdate, Conclusion, NewCheckRun,
    Output,
};
pub use comments::{Comment, Reaction, Target};
pub use commit::{CommitOnBranch, MAX_COMMIT_BYTES};
pub use doctor::{Permission, Rate, Standing, Survey};
pub use error::Error;
pub use facts::{Access, Author, Branch, CommitFacts, Facts, Permissions};
pub use identity::Identity;
pub use issues::{Issue, IssueFacts};
pub use pulls::{NewPull, Pull, PullChange, PullEnd, PullFacts, Review, ReviewComment};

use crate::http::Network;
use secrecy::SecretString;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Where GitHub is, and with what right.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The root of the REST API, as in `GITHUB_API_URL`: `https://api.github.com` or
    /// `https://HOST/api/v3`. Plain http only on a loopback address.
    pub api_url: String,
    /// The token, sent to that address and nowhere else.
    pub token: SecretString,
    /// How long and how often.
    pub limits: Limits,
}

/// How long and how often to try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// For one request, from connecting to the last byte of the answer.
    pub request: Duration,
    /// The longest single wait for GitHub; what would take longer is given up at once.
    pub longest_wait: Duration,
    /// The wait before the first repetition after a fault; it doubles from there.
    pub first_wait: Duration,
    /// How often a request is sent at most.
    pub attempts: u32,
    /// From one write to the next; GitHub advises a second.
    pub spacing: Duration,
}

impl Default for Limits {
    /// 10 s a request, 60 s a wait, 4 attempts, 1 s between writes and before the first repetition.
    fn default() -> Self {
        Self {
            request: Duration::from_secs(10),
            longest_wait: Duration::from_secs(60),
            first_wait: Duration::from_secs(1),
            attempts: 4,
            spacing: Duration::from_secs(1),
        }
    }
}

/// GitHub with a token. Clones share connections, counts and incidents.
#[derive(Clone)]
pub struct Client {
    inner: Arc<call::Inner>,
    deadline: Option<Instant>,
    is_hurried: bool,
}

impl Client {
    /// A client; nothing is sent yet.
    ///
    /// # Errors
    /// An address that is none, or plain http that leaves the machine; a token that cannot be sent.
    pub fn new(settings: Settings) -> Result<Self, Error> {
        Ok(Self {
            inner: Arc::new(call::Inner::new(settings, &Network::direct())?),
            deadline: None,
            is_hurried: false,
        })
    }

    /// As [`Client::new`], by a way out of this machine that is given.
    ///
    /// # Errors
    /// As [`Client::new`].
    pub fn through(settings: Settings, network: &Network) -> Result<Self, Error> {
        Ok(Self {
            inner: Arc::new(call::Inner::new(settings, network)?),
            deadline: None,
            is_hurried: false,
        })
    }

    /// The same client with a deadline for everything that follows: requests, their answers and the
    /// waits between them.
    #[must_use]
    pub fn until(&self, deadline: impl Into<Instant>) -> Self {
        Self {
            deadline: Some(deadline.into()),
            ..self.clone()
        }
    }

    /// The same client without the pauses between writes, for the last few of a process that is
    /// about to be killed.
    #[must_use]
    pub fn hurried(&self) -> Self {
        Self {
            is_hurried: true,
            ..self.clone()
        }
    }

    /// One line for each wait, repetition and fault since the last call, for the log. No secrets.
    pub fn take_incidents(&self) -> Vec<String> {
        self.inner.take_incidents()
    }

    /// The number of HTTP requests that were sent.
    pub fn requests(&self) -> u64 {
        self.inner.requests()
    }

    /// A repository by its `owner/name`.
    ///
    /// # Errors
    /// A name that is none.
    pub fn repo(&self, name: &str) -> Result<Repo, Error> {
        let allowed = |part: &str| {
            let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
            !part.is_empty() && !matches!(part, "." | "..") && part.chars().all(plain)
        };
        match name.split_once('/') {
            Some((owner, repo)) if allowed(owner) && allowed(repo) => Ok(Repo {
                client: self.clone(),
                owner: owner.to_owned(),
                name: repo.to_owned(),
            }),
            _ => Err(Error::protocol(
                "the repository",
                format!("'{}' is no OWNER/NAME", name.escape_debug()),
            )),
        }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Client")
            .field("deadline", &self.deadline)
            .finish_non_exhaustive()
    }
}

/// One repository on GitHub.
#[derive(Debug, Clone)]
pub struct Repo {
    client: Client,
    owner: String,
    name: String,
}

impl Repo {
    /// The same with a deadline, as [`Client::until`].
    #[must_use]
    pub fn until(&self, deadline: impl Into<Instant>) -> Self {
        Self {
            client: self.client.until(deadline),
            ..self.clone()
        }
    }

    /// `owner/name`.
    pub fn full_name(&self) -> String {
        format!("{}/{}", self.owner, self.name)
    }

    /// The address of something in this repository; `rest` begins with `/` or is empty.
    fn path(&self, rest: &str) -> String {
        format!("/repos/{}/{}{rest}", self.owner, self.name)
    }
}

#[cfg(test)]
mod tests;
