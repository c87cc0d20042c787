//! The agents that settings can name, and the files that configure them.
//!
//! Generated from the table of agents: `SPRAG_REGENERATE=1 cargo test --test integration generated`.

/// The agents that can be named.
#[rustfmt::skip]
pub const AGENTS: &[&str] = &[
    "auto",
    "builtin",
    "codex",
    "claude",
    "gemini",
    "opencode",
    "qwen",
    "acp",
    "command",
];

/// Globs of the files of a repository that configure an agent.
#[rustfmt::skip]
pub const AGENT_FILES: &[&str] = &[
    "**/.codex/**",
    "**/CLAUDE.md",
    "**/CLAUDE.local.md",
    "**/.claude/**",
    "**/GEMINI.md",
    "**/.gemini/**",
    "**/.opencode/**",
    "**/opencode.json",
    "**/opencode.jsonc",
    "**/QWEN.md",
    "**/.qwen/**",
    "**/AGENTS*.md",
    "**/.agents/**",
    "**/.mcp.json",
    "**/.cursor/**",
    "**/.cursorrules",
];
