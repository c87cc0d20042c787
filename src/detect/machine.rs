//! The workflow steps that install on a runner what the checks need.

use super::{Found, Listing};
use std::collections::BTreeMap;

/// A row of [`ACTIONS`].
type ActionRow = (
    &'static str,
    &'static str,
    &'static [&'static str],
    &'static str,
    Option<&'static str>,
);

/// The actions that install a language: its name, the action at a commit, the files with the version, the
/// default version, and an input that keeps the job from writing a cache that other workflows read.
const ACTIONS: [ActionRow; 3] = [
    (
        "python",
        "actions/setup-python@5fda3b95a4ea91299a34e894583c3862153e4b97 # v7.0.0",
        &[".python-version"],
        "3.x",
        None,
    ),
    (
        "node",
        "actions/setup-node@820762786026740c76f36085b0efc47a31fe5020 # v7.0.0",
        &[".nvmrc", ".node-version"],
        "lts/*",
        Some("package-manager-cache: false"),
    ),
    (
        "go",
        "actions/setup-go@b7ad1dad31e06c5925ef5d2fc7ad053ef454303e # v7.0.0",
        &["go.mod"],
        "stable",
        Some("cache: false"),
    ),
];

/// What a lock file requires that a runner does not have.
const MANAGERS: [(&str, &str, &str); 5] = [
    ("pnpm-lock.yaml", "Install pnpm", "corepack enable"),
    ("yarn.lock", "Install Yarn", "corepack enable"),
    ("uv.lock", "Install uv", "pipx install uv"),
    ("poetry.lock", "Install Poetry", "pipx install poetry"),
    ("pdm.lock", "Install PDM", "pipx install pdm"),
];

/// The steps, each as lines of YAML without indentation.
pub(super) fn steps(
    files: &Listing,
    languages: &[&str],
    versions: &BTreeMap<String, String>,
    machine: &[Found<String>],
) -> Vec<String> {
    let mut steps = Vec::new();
    for (language, action, version_files, otherwise, cache) in ACTIONS {
        if !languages.contains(&language) && !versions.contains_key(language) {
            continue;
        }
        let version = match version_files.iter().find(|name| files.has(name)) {
            Some(file) => format!("{language}-version-file: {file}"),
            None => {
                let version = versions.get(language).map_or(otherwise, String::as_str);
                format!("{language}-version: {}", serde_json::Value::from(version))
            }
        };
        let cache = cache.map_or(String::new(), |line| format!("\n    {line}"));
        steps.push(format!("- uses: {action}\n  with:\n    {version}{cache}"));
    }
    if languages.contains(&"rust") {
        let run = match files.has_any(&["rust-toolchain.toml", "rust-toolchain"]) {
            true => "rustup toolchain install",
            false => "rustup toolchain install stable --profile minimal --component rustfmt,clippy",
        };
        steps.push(step("Install Rust", run));
    }
    for (_, name, run) in MANAGERS.iter().filter(|(lock, ..)| files.has(lock)) {
        steps.push(step(name, run));
    }
    for found in machine {
        let command = serde_json::Value::from(found.what.as_str());
        steps.push(format!("# {}\n- run: {command}", found.from));
    }
    steps
}

fn step(name: &str, run: &str) -> String {
    format!("- name: {name}\n  run: {run}")
}
