//! Black-box tests of the built binary, and of the real agents it drives.

#![expect(
    clippy::disallowed_methods,
    clippy::panic,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "tests start children, give up loudly and say how long things took"
)]

mod acp;
mod act;
mod action_file;
mod actions;
mod agent_ends;
mod allow_list;
mod architecture;
mod attack_matrix;
mod attacks;
mod bad_input;
mod browser;
mod builtin;
mod builtin_cancel;
mod builtin_context;
mod builtin_ends;
mod builtin_faults;
mod builtin_late;
mod builtin_repairs;
mod builtin_slices;
mod busy_git;
mod check_retries;
mod clock;
mod doctor;
mod dry_runs;
mod examples;
mod fan_out;
mod faults;
mod first_mistakes;
mod first_steps;
mod floods;
mod full_disk;
mod fuzz_seeds;
mod gates;
mod gateway;
mod generated;
mod git_directories;
mod github_rules;
mod honest_checks;
mod hostile_git;
mod install_agent;
mod interrupted;
mod jj;
mod killed;
mod left_running;
mod limits;
mod lost_tests;
mod mcp_servers;
mod monorepo;
mod network;
mod odd_machine;
mod on_github;
mod one_tree;
mod outcomes;
mod overhead;
mod pid1;
mod places;
mod plan_drafts;
mod plan_file;
mod plan_runs;
mod printed_commands;
mod processes;
mod prompt_cache;
mod proofs;
mod questions;
mod real_agents;
mod real_cli_smoke;
mod release_workflow;
mod repeated_attempts;
mod reports;
mod repositories;
mod resume;
mod review_only;
mod roles;
mod runner_files;
mod sandbox;
mod secrets;
mod several_runs;
mod soak;
mod stand_ins;
mod stdio;
mod structured_output;
mod support;
mod taken_up;
mod telemetry;
mod tests_first;
mod turns;
mod verification;
mod webhooks;
