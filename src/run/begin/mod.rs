//! A run from its command line to its first step.

pub mod beginning;
pub(crate) mod branch_rules;
pub mod described;
pub mod isolation;
pub mod model_gateway;
pub(crate) mod open;
pub(crate) mod opening;
pub mod output_schema;
pub mod prepare;
pub mod reopen;
pub mod repository;
pub mod requirements;
pub(crate) mod resume;
pub mod reviewed_change;
pub mod source;
pub mod start;
pub mod trial;
pub mod work;
