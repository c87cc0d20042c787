//! The client, and access to one repository.

use super::error::Error;
use super::settings::{Limits, Settings};
use super::transport::Transport;
use crate::http::Network;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, sleep};

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

/// Until when no request may be sent to the API at this URL. A limit applies to the token, so it outlives the
/// request that met it and the client that sent it.
static HOLDS: Mutex<BTreeMap<String, Instant>> = Mutex::new(BTreeMap::new());

/// Maximum number of incidents that are kept until they are taken.
const MAX_INCIDENTS: usize = 200;

/// The state that all clones of a client share.
pub(super) struct Inner {
    pub(super) transport: Transport,
    pub(super) limits: Limits,
    api_url: String,
    pub(super) sent: AtomicU64,
    incidents: Mutex<Vec<String>>,
    pub(super) last_write: tokio::sync::Mutex<Option<Instant>>,
    #[cfg(test)]
    pub(super) waits: Mutex<Option<Vec<Duration>>>,
}

impl Inner {
    pub(super) fn new(settings: Settings, network: &Network) -> Result<Self, Error> {
        Ok(Self {
            transport: Transport::new(&settings, network)?,
            limits: settings.limits,
            api_url: settings.api_url,
            sent: AtomicU64::new(0),
            incidents: Mutex::default(),
            last_write: tokio::sync::Mutex::new(None),
            #[cfg(test)]
            waits: Mutex::new(None),
        })
    }

    pub(super) fn take_incidents(&self) -> Vec<String> {
        std::mem::take(
            &mut *self
                .incidents
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
        )
    }

    pub(super) fn requests(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    pub(super) fn note(&self, incident: &str) {
        let mut incidents = self
            .incidents
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if incidents.len() < MAX_INCIDENTS {
            incidents.push(self.transport.without_token(incident));
        }
    }

    /// Lets no request of this process be sent before `wait` is over, because GitHub asks for it. Returns the
    /// end of this wait.
    pub(super) fn hold(&self, wait: Duration) -> Instant {
        let until = Instant::now() + wait;
        let mut holds = holds();
        let known = holds.entry(self.api_url.clone()).or_insert(until);
        *known = until.max(*known);
        until
    }

    /// Until when GitHub wants no further request, if a limit was met.
    pub(super) fn held(&self) -> Option<Instant> {
        let until = holds().get(&self.api_url).copied();
        until.filter(|until| *until > Instant::now())
    }

    /// Ends the hold that was waited for until then. One that another request has prolonged meanwhile stays.
    pub(super) fn released(&self, until: Instant) {
        let mut holds = holds();
        if holds
            .get(&self.api_url)
            .is_some_and(|known| *known <= until)
        {
            holds.remove(&self.api_url);
        }
    }

    pub(super) async fn wait(&self, wait: Duration) {
        #[cfg(test)]
        if let Some(waits) = self.waits.lock().unwrap().as_mut() {
            waits.push(wait);
            return;
        }
        if !wait.is_zero() {
            sleep(wait).await;
        }
    }
}

fn holds() -> MutexGuard<'static, BTreeMap<String, Instant>> {
    HOLDS.lock().unwrap_or_else(PoisonError::into_inner)
}
