//! Waits before a transient error is retried.

use crate::domain::attempt::Observation;
use crate::http::jittered;
use crate::run::state::setup::{Setup, interruption};

/// Waits for `ms` milliseconds plus up to a quarter, or until the run is cancelled.
pub(crate) async fn wait(setup: &Setup, ms: u64) -> Observation {
    let pause = tokio::time::sleep(jittered(ms, setup.longest_wait()));
    tokio::select! {
        () = pause => Observation::Waited,
        reason = setup.cancel.cancelled() => Observation::interrupted(interruption(reason)),
    }
}
