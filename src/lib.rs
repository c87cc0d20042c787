//! Sprag runs a coding agent task by task on a checked-out branch, decides from the repository whether
//! anything happened, verifies with the project's own checks, and makes every commit.
//!
//! The modules in reading order: decisions, effects, reports, and the commands that combine them.

pub use sprag_domain as domain;

pub mod http;
mod json_rpc;
mod mcp;
pub mod permit;
mod plain_file;
pub mod process;
pub mod sandbox;

pub mod agents;
pub mod checks;
pub mod commit_policy;
pub mod gateway;
pub mod git;
pub mod secrets;

pub mod github;
pub mod publish;
pub mod run;

pub mod doctor;
pub mod report;

pub mod cli;
pub mod context;
pub mod error;
pub mod settings;

pub mod detect;
pub mod init;
pub mod print;

pub mod commands;
