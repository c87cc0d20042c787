//! The pure core: no I/O, no clock, no process, no environment.
//!
//! Everything here is a value or a total function over values, so all of Sprag's decisions can be tested
//! without a repository, an agent or a network.

pub mod agent;
pub mod answer;
pub mod api_error;
pub mod assess;
pub mod attempt;
pub mod branch_rules;
pub mod check_run;
pub mod checks;
pub mod command_line;
pub mod commit_message;
pub mod config_file;
pub mod continuation;
pub mod draft;
pub mod duration;
pub mod event;
pub mod history;
pub mod kept_work;
pub mod mcp;
pub mod notes;
pub mod outcome;
pub mod outcomes;
pub mod output_schema;
pub mod patch_lines;
pub mod pattern;
pub mod plan;
pub mod prompt;
pub mod protected_paths;
pub mod queue;
pub mod review;
pub mod sandbox;
pub mod schedule;
pub mod session;
pub mod settings;
pub mod snapshot;
pub mod spend;
pub mod suggest;
pub mod summary;
pub mod text;
pub mod text_error;
pub mod trigger;
pub mod wait;
pub mod yaml;

// The exploration tests allocate constantly from several threads, and musl's allocator has a single lock.
#[cfg(test)]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
