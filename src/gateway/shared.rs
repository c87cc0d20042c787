//! State that all connections share.

use super::account::Account;
use super::allow::AllowList;
use crate::domain::sandbox::DeniedHost;
use crate::http::{Client, Network};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Semaphore;

/// State that all connections share.
pub(super) struct Shared {
    pub(super) client: Client,
    pub(super) requests: Arc<Semaphore>,
    /// The accounts of the run.
    pub(super) accounts: Mutex<Vec<Arc<Account>>>,
    pub(super) network: Network,
    /// The allowed hosts, if the server is a proxy.
    pub(super) allow: Option<AllowList>,
    pub(super) denied: Denied,
    /// Limits the number of connections.
    pub(super) connections: Arc<Semaphore>,
    /// Limits the number of tunnels.
    pub(super) tunnels: Arc<Semaphore>,
    pub(super) address: SocketAddr,
}

impl Shared {
    pub(super) fn accounts(&self) -> MutexGuard<'_, Vec<Arc<Account>>> {
        lock(&self.accounts)
    }

    /// Whether this address is the server itself.
    pub(super) fn is_own(&self, host: &str, port: u16) -> bool {
        port == self.address.port() && host == self.address.ip().to_string()
    }
}

/// Locks a mutex, even if a thread has panicked while holding it.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How many refused hosts are reported, and the longest name of one, in bytes.
const MAX_HOSTS: usize = 100;
const MAX_HOST_BYTES: usize = 253;

/// The hosts that were requested and are not allowed, with the number of requests.
#[derive(Debug, Default)]
pub(super) struct Denied(Mutex<BTreeMap<String, u64>>);

impl Denied {
    pub(super) fn note(&self, host: &str) {
        let host = host.get(..MAX_HOST_BYTES).unwrap_or(host).to_owned();
        let mut denied = lock(&self.0);
        if denied.len() < MAX_HOSTS || denied.contains_key(&host) {
            *denied.entry(host).or_default() += 1;
        }
    }

    pub(super) fn take(&self) -> Vec<DeniedHost> {
        let denied = std::mem::take(&mut *lock(&self.0)).into_iter();
        denied
            .map(|(host, times)| DeniedHost { host, times })
            .collect()
    }
}
