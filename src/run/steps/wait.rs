//! Waits for a transient error to pass.

use crate::domain::attempt::Observation;
use crate::http::jittered;
use crate::run::setup::{Setup, interruption};

/// Waits so long and up to a quarter more, or until the run is to stop.
pub(crate) async fn wait(setup: &Setup, ms: u64) -> Observation {
    let pause = tokio::time::sleep(jittered(ms, setup.longest_wait()));
    tokio::select! {
        () = pause => Observation::Waited,
        reason = setup.cancel.cancelled() => Observation::interrupted(interruption(reason)),
    }
}
