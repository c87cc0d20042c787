//! The client, and access to one repository.

use super::error::Error;
use super::settings::{Limits, Settings};
use super::transport::Transport;
use crate::http::Network;
use std::collections::BTreeMap;
use std::fmt;
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
            inner: Arc::new(Inner {
                transport: Transport::new(&settings, network)?,
                limits: settings.limits,
                api_url: settings.api_url,
                incidents: Mutex::default(),
                last_write: tokio::sync::Mutex::default(),
                #[cfg(test)]
                waits: Mutex::default(),
            }),
            deadline: None,
            is_hurried: false,
        })
    }

    /// One line for each wait, retry and fault since the last call, for the log. They contain no secrets.
    pub fn take_incidents(&self) -> Vec<String> {
        std::mem::take(&mut *locked(&self.inner.incidents))
    }

    /// Records an incident for the log.
    pub(super) fn note(&self, incident: &str) {
        let mut incidents = locked(&self.inner.incidents);
        if incidents.len() < MAX_INCIDENTS {
            incidents.push(self.inner.transport.without_token(incident));
        }
    }

    /// A repository by its `owner/name`.
    ///
    /// # Errors
    /// An invalid name.
    pub fn repo(&self, name: &str) -> Result<Repo, Error> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let is_allowed =
            |part: &str| !matches!(part, "" | "." | "..") && part.chars().all(is_plain);
        match name.split_once('/') {
            Some((owner, repo)) if is_allowed(owner) && is_allowed(repo) => Ok(Repo {
                client: self.clone(),
                owner: owner.to_owned(),
                name: repo.to_owned(),
            }),
            _ => {
                let why = format!("'{}' is not of the form OWNER/NAME", name.escape_debug());
                Err(Error::protocol("the repository", why))
            }
        }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Client(..)")
    }
}

/// One repository on GitHub.
#[derive(Debug, Clone)]
pub struct Repo {
    /// The client.
    pub client: Client,
    pub(super) owner: String,
    pub(super) name: String,
}

impl Repo {
    /// The same with a time limit for everything that follows.
    #[must_use]
    pub fn within(self, patience: Duration) -> Self {
        self.until(std::time::Instant::now() + patience)
    }

    /// The same with a deadline for everything that follows.
    #[must_use]
    pub fn until(mut self, deadline: std::time::Instant) -> Self {
        self.client.deadline = Some(deadline.into());
        self
    }

    /// The same without pauses between writes, if a process is about to be killed.
    #[must_use]
    pub fn hurried(mut self, is_hurried: bool) -> Self {
        self.client.is_hurried = is_hurried;
        self
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
    incidents: Mutex<Vec<String>>,
    pub(super) last_write: tokio::sync::Mutex<Option<Instant>>,
    #[cfg(test)]
    pub(super) waits: Mutex<Option<Vec<Duration>>>,
}

impl Inner {
    /// Lets no request of this process be sent before `wait` is over, because GitHub asks for it. Returns the
    /// end of this wait.
    pub(super) fn hold(&self, wait: Duration) -> Instant {
        let until = Instant::now() + wait;
        let mut holds = locked(&HOLDS);
        let known = holds.entry(self.api_url.clone()).or_insert(until);
        *known = until.max(*known);
        until
    }

    /// Until when GitHub wants no further request, if a limit was met.
    pub(super) fn held(&self) -> Option<Instant> {
        let until = locked(&HOLDS).get(&self.api_url).copied();
        until.filter(|until| *until > Instant::now())
    }

    /// Ends the hold that was waited for until then. One that another request has prolonged meanwhile stays.
    pub(super) fn released(&self, until: Instant) {
        locked(&HOLDS).retain(|url, known| *url != self.api_url || *known > until);
    }

    pub(super) async fn wait(&self, wait: Duration) {
        #[cfg(test)]
        if let Some(waits) = self.waits.lock().unwrap().as_mut() {
            waits.push(wait);
            return;
        }
        sleep(wait).await;
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
