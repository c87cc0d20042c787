//! What is fed with foreign input: one row for each parser. `scripts/fuzz` gives these rows to a fuzzer, and
//! `fuzz_seeds` of the integration tests every input that is kept here.

mod agents;
mod checks;
mod git;
mod github;
mod plans;
mod runs;
mod texts;

use std::borrow::Cow;

/// One parser of foreign input.
pub struct Target {
    /// Its name: also that of the directory below `tests/fuzz/seeds` with the inputs that are kept for it.
    pub name: &'static str,
    /// Feeds it, and panics where something does not hold that has to hold whatever the input is.
    pub run: fn(&[u8]),
    /// Further inputs: files of the repository, and directories of them.
    pub samples: &'static [&'static str],
}

const fn row(name: &'static str, run: fn(&[u8]), samples: &'static [&'static str]) -> Target {
    Target { name, run, samples }
}

const TOOL_SAMPLES: &[&str] = &["src/domain/checks/tools/samples"];
const WORKFLOWS: &[&str] = &["examples/workflows", ".github/workflows", "action.yml"];

/// Every parser of foreign input.
pub const TARGETS: &[Target] = &[
    row("plan-yaml", plans::yaml, WORKFLOWS),
    row("plan-json", plans::json, &["tests/agent-clis/package.json"]),
    row("plan-markdown", plans::markdown, &["README.md"]),
    row("config", plans::config, WORKFLOWS),
    row("plan-draft", plans::draft, &[]),
    row("payload", github::payload, &[]),
    row("issue", github::issue, &["README.md"]),
    row("comment", github::comment, &[]),
    row("job-log", github::job_log, TOOL_SAMPLES),
    row(
        "agent-claude",
        agents::claude,
        &["tests/fixtures/agent-events/claude"],
    ),
    row(
        "agent-codex",
        agents::codex,
        &["tests/fixtures/agent-events/codex"],
    ),
    row(
        "agent-gemini",
        agents::gemini,
        &["tests/fixtures/agent-events/gemini"],
    ),
    row(
        "agent-opencode",
        agents::opencode,
        &["tests/fixtures/agent-events/opencode"],
    ),
    row(
        "agent-qwen",
        agents::qwen,
        &["tests/fixtures/agent-events/qwen"],
    ),
    row("agent-acp", agents::acp, &[]),
    row(
        "agent-command",
        agents::command,
        &["tests/fixtures/agent-events/codex"],
    ),
    row("model-response", agents::model_response, &[]),
    row("model-text", agents::model_text, &[]),
    row("api-error", agents::api_error, &[]),
    row("final-message", agents::final_message, &[]),
    row("structured-output", agents::structured_output, &[]),
    row("tool-output", checks::tool_output, TOOL_SAMPLES),
    row("junit", checks::junit, &[]),
    row("matchers", checks::matchers, &[]),
    row("check-definitions", checks::judges, &[]),
    row(
        "manifests",
        checks::manifests,
        &[
            "tests/agent-clis/package.json",
            "Cargo.toml",
            "examples/workflows",
        ],
    ),
    row("handed-over", runs::untrusted_run, &[]),
    row("report", runs::report, &[]),
    row("history", runs::history, &[]),
    row("events", runs::events, &[]),
    row("small-files", runs::small_files, &[]),
    row("git-tree", git::tree, &[]),
    row("git-commit", git::commit, &[]),
    row("git-loose-object", git::loose_object, &[]),
    row("commit-message", texts::commit_message, &[]),
    row("patch-lines", texts::patch_lines, &[]),
    row("review", texts::review, &[]),
    row("redaction", texts::redaction, &[]),
    row("terminal", texts::terminal, TOOL_SAMPLES),
    row("workflow-log", texts::workflow_log, TOOL_SAMPLES),
];

/// The input as text, with what is not UTF-8 replaced.
fn text(data: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(data)
}

/// The first line of a text, and what follows it.
fn first_and_rest(text: &str) -> (&str, &str) {
    text.split_once('\n').unwrap_or((text, ""))
}
