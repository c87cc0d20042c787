//! What the tests stand on.

pub mod act;
pub mod agent_clis;
pub mod disk;
pub mod events;
pub mod git_http;
pub mod github;
pub mod http;
pub mod http_client;
pub mod kill;
pub mod model_api;
pub mod model_calls;
pub mod model_wire;
pub mod npm;
pub mod proc;
pub mod project;
pub mod prompt_cache;
pub mod proxy;
pub mod real_crate;
pub mod runner;
pub mod scripted;
pub mod tasks;
pub mod time_limit;
pub mod tls;
pub mod user;

/// Whether the tests run in their longer form (scripts/test-full).
pub fn is_full() -> bool {
    std::env::var_os("SPRAG_TEST_FULL").is_some_and(|value| value == "1")
}

/// A number that the environment gives, in the place of a test's own.
pub fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}
