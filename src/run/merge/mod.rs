//! Merges of the work of others: the base branch, and other jobs on one plan.

pub(crate) mod base_merge;
pub(crate) mod integrate;
pub mod merging;
