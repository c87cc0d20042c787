//! The end of a run: its reports, and the way of its commits to the remote.

pub(crate) mod cost_limits;
pub(crate) mod delivery;
pub(crate) mod finish;
pub(crate) mod jj;
pub mod outcomes;
pub(crate) mod push_failure;
pub mod report_sources;
pub mod reporting;
pub(crate) mod telemetry;
pub(crate) mod work_keeper;
