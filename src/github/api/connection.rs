//! The state that all clones of a client share: the connection, its limits and the incidents.

use super::error::Error;
use super::settings::{Limits, Settings};
use super::transport::Transport;
use crate::http::Network;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, sleep};

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
