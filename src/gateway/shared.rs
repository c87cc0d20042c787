//! What all connections have in common.

use super::account::Account;
use crate::http::Client;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Semaphore;

/// The accounts of a run.
pub(super) type Accounts = Arc<Mutex<Vec<Arc<Account>>>>;

/// What all connections have in common.
pub(super) struct Shared {
    pub(super) client: Client,
    pub(super) requests: Arc<Semaphore>,
    pub(super) accounts: Accounts,
}

impl Shared {
    pub(super) fn accounts(&self) -> MutexGuard<'_, Vec<Arc<Account>>> {
        lock(&self.accounts)
    }
}

/// The guard of a mutex, also after a thread panicked with it.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
