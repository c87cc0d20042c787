//! Everything that a run has: its directory, its repository and plan, and running totals.

pub mod accounts;
pub mod agent_files;
pub mod cached_repo;
pub(crate) mod conversation;
pub mod directory;
pub mod emitter;
pub mod layout;
pub mod lock;
pub mod notes;
pub(crate) mod orderly_end;
pub mod parts;
pub mod past_runs;
pub mod pictures;
pub mod places;
pub mod plan_state;
pub mod runner_files;
pub mod setup;
pub mod untrusted_run;
pub mod work_tree;
