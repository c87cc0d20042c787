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
pub mod mcp;
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

/// Those of the cases that are due: all of them in the longer form of the tests, every `step`th one in the gate.
pub fn due<T>(cases: &[T], step: usize) -> impl Iterator<Item = &T> {
    cases.iter().step_by(if is_full() { 1 } else { step })
}

/// Fails with the whole text unless it contains this part.
#[track_caller]
pub fn has(text: &str, part: impl AsRef<str>) {
    let part = part.as_ref();
    assert!(text.contains(part), "no {part:?} in:\n{text}");
}

/// A number that the environment gives, in the place of a test's own.
pub fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}
