//! A run from its command line to its first step.

pub(crate) mod answer;
pub mod beginning;
pub mod described;
pub mod draft;
pub mod draft_request;
pub(crate) mod earlier;
pub mod isolation;
pub mod model_gateway;
pub mod new_run;
pub(crate) mod open;
pub(crate) mod opening;
pub mod output_schema;
pub mod prepare;
pub mod programs;
pub mod reopen;
pub mod repository;
pub mod required_agents;
pub(crate) mod restore;
pub(crate) mod resume;
pub mod reviewed_change;
pub mod run_plan;
pub mod source;
pub mod start;
pub(crate) mod take_over;
pub mod trial;
pub mod work;
