//! The client, and access to one repository.

use super::connection::Inner;
use super::error::Error;
use super::settings::Settings;
use crate::http::Network;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// A GitHub client with a token. Clones share connections, counts and incidents.
#[derive(Clone)]
pub struct Client {
    pub(super) inner: Arc<Inner>,
    pub(super) deadline: Option<Instant>,
    pub(super) is_hurried: bool,
}

impl Client {
    /// Creates a client. Nothing is sent yet.
    ///
    /// # Errors
    /// An invalid URL, plain HTTP to another machine, or a token that cannot be sent.
    pub fn new(settings: Settings, network: &Network) -> Result<Self, Error> {
        Ok(Self {
            inner: Arc::new(Inner::new(settings, network)?),
            deadline: None,
            is_hurried: false,
        })
    }

    /// A clone with a deadline for everything that follows: requests, their responses and the waits between
    /// them.
    #[must_use]
    pub fn with_deadline(&self, deadline: impl Into<Instant>) -> Self {
        Self {
            deadline: Some(deadline.into()),
            ..self.clone()
        }
    }

    /// A clone without pauses between writes, for the last writes of a process that is about to be killed.
    #[must_use]
    pub fn without_pauses(&self) -> Self {
        Self {
            is_hurried: true,
            ..self.clone()
        }
    }

    /// One line for each wait, retry and fault since the last call, for the log. They contain no secrets.
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
    /// An invalid name.
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
                format!("'{}' is not of the form OWNER/NAME", name.escape_debug()),
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
    pub(super) client: Client,
    pub(super) owner: String,
    name: String,
}

impl Repo {
    /// The same with a time limit for everything that follows.
    #[must_use]
    pub fn within(self, patience: Duration) -> Self {
        Self {
            client: self.client.with_deadline(Instant::now() + patience),
            ..self
        }
    }

    /// `owner/name`.
    pub fn full_name(&self) -> String {
        format!("{}/{}", self.owner, self.name)
    }

    /// The path of a resource of this repository. `rest` starts with `/` or is empty.
    pub(super) fn path(&self, rest: &str) -> String {
        format!("/repos/{}/{}{rest}", self.owner, self.name)
    }
}
