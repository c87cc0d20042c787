//! The commands in the script of a workflow's step.

use super::command::{Purpose, purpose};

/// Words that start a compound command of the shell.
const COMPOUND: &[&str] = &[
    "if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done", "case", "esac",
    "function", "{", "}", "(",
];

/// Commands that affect the lines after them.
const CARRIES_ON: &[&str] = &["cd", "pushd", "export", "source", ".", "alias"];

/// Whether a line only prepares, clears or prints the measure of coverage of `cargo llvm-cov`.
fn is_about_coverage(line: &str) -> bool {
    let call = line.split_once("cargo llvm-cov ");
    call.is_some_and(|(_, rest)| {
        let first = rest.split_whitespace().next().unwrap_or_default();
        matches!(first, "show-env" | "clean" | "report")
    })
}

/// The commands of a script, one per line. A script that only works as a whole is one command: if it has `cd`
/// or `export`, its lines are joined, and a compound command is left unchanged.
pub(super) fn commands(script: &str) -> Vec<String> {
    let script = script.replace("\\\n", " ");
    let lines = script.lines().map(str::trim);
    let lines: Vec<&str> = lines
        .filter(|line| !line.is_empty() && !line.starts_with('#') && !line.starts_with("set -"))
        .filter(|line| !is_about_coverage(line))
        .collect();
    let first = |line: &str| {
        line.split_whitespace()
            .next()
            .unwrap_or_default()
            .to_owned()
    };
    let is_compound = |line: &&str| {
        COMPOUND.contains(&first(line).trim_end_matches(';'))
            || line.contains("<<")
            || line.contains("() {")
    };
    if lines.iter().any(is_compound) {
        return vec![lines.join("\n")];
    }
    if lines
        .iter()
        .any(|line| CARRIES_ON.contains(&first(line).as_str()))
    {
        return vec![lines.join(" && ")];
    }
    let apart = lines.iter().flat_map(|line| line.split(" && "));
    apart
        .map(|command| command.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect()
}

/// The command in the form in which `sh` runs it in the root of the project.
pub(super) fn from_root(command: &str, directory: &str, variables: &[(&str, String)]) -> String {
    let quoted = |text: &str| shlex::try_quote(text).map_or_else(|_| text.to_owned(), Into::into);
    let needs_bash = ["[[", "<(", "pipefail"]
        .iter()
        .any(|sign| command.contains(sign))
        || command
            .split_whitespace()
            .any(|word| matches!(word, "source" | "pushd"));
    let mut text = if needs_bash {
        format!("bash -ec {}", quoted(command))
    } else {
        command.to_owned()
    };
    let (export, then) = if command.contains(" && ") && !needs_bash {
        ("export ", " &&")
    } else {
        ("", "")
    };
    for (name, value) in variables.iter().rev() {
        text = format!("{export}{name}={}{then} {text}", quoted(value));
    }
    match directory {
        "" | "." | "./" => text,
        _ => format!("cd {} && {text}", quoted(directory)),
    }
}

/// Whether the failure of a command is ignored, as in `make lint || true`.
pub(super) fn succeeds_anyway(command: &str) -> bool {
    let last = command.rsplit_once("||").map(|(_, last)| last.trim());
    last.is_some_and(|last| {
        let first = last.split_whitespace().next().unwrap_or_default();
        matches!(first, "true" | ":" | "echo") || last == "exit 0"
    })
}

/// The purpose of a command or a script: a check if any of its lines is one, otherwise that of its first
/// known line.
pub(super) fn purpose_of(command: &str) -> Option<Purpose> {
    let parts = command.split('\n').flat_map(|line| line.split(" && "));
    let found: Vec<Purpose> = parts.filter_map(|part| purpose(part.trim())).collect();
    let check = found.iter().find(|what| matches!(what, Purpose::Check(_)));
    check.or(found.first()).copied()
}

/// Whether a command is another one with options for coverage, which may need more dependencies and do not
/// show whether the work is correct.
pub(super) fn measures(command: &str, plain: &str) -> bool {
    let more = command.strip_prefix(plain);
    let more = more.and_then(|more| more.strip_prefix(' '));
    more.is_some_and(|more| more.starts_with("--cov") || more.starts_with("-cover"))
}
