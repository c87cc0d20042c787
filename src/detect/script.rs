//! The commands in the script of a workflow's step.

use super::command::{Purpose, purpose};
use crate::domain::command_line::{After, CommandLine, Simple, Statement, entered};
use crate::domain::text::has_word;

/// Why a step is not proposed whose failure its job ignores.
pub(super) const MAY_FAIL: &str = "it may fail";

/// A part of a script that can be run by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Piece {
    /// The command as it is written.
    pub text: String,
    pub purpose: Purpose,
    /// The directory in which it runs, relative to that of the step.
    pub directory: String,
    /// The variables that the script has set before.
    pub variables: Vec<(String, String)>,
    /// The commands that read other files into the shell before it.
    pub sourced: Vec<String>,
    /// Why it cannot be taken out of its script, if that is so.
    pub because: Option<String>,
}

/// The parts of a script that have a purpose. Each has the directory and the variables that the lines before it set.
pub(super) fn pieces(script: &str) -> Vec<Piece> {
    let line = CommandLine::read(script);
    let mut pieces = Vec::new();
    let mut set: Vec<(String, String)> = Vec::new();
    for statement in &line.statements {
        for command in statement
            .commands
            .iter()
            .filter(|command| command.words.is_empty())
        {
            set.extend(command.assignments[command.exported..].iter().cloned());
        }
        let whole = line.source_of(statement);
        if statement.commands.iter().any(|command| command.is_inner) {
            pieces.extend(piece(&statement.commands, whole, &set));
            continue;
        }
        for group in groups(statement) {
            // `make test | tee log` fails if `tee` does.
            let shown = group
                .iter()
                .rposition(|command| command.words.first().is_none_or(|word| word != "tee"));
            if let (Some(first), Some(last)) = (group.first(), shown.and_then(|at| group.get(at))) {
                pieces.extend(piece(group, line.source_between(first, last), &set));
            }
        }
    }
    if let Some(what) = line.not_understood.first() {
        for piece in &mut pieces {
            piece.because = Some(format!("its script has {what}"));
        }
    }
    pieces
}

/// The commands between `&&`, each with those that judge it or read its output.
fn groups(statement: &Statement) -> Vec<&[Simple]> {
    let mut groups = Vec::new();
    let mut rest = statement.commands.as_slice();
    while !rest.is_empty() {
        let end = rest
            .iter()
            .skip(1)
            .position(|it| it.after == After::Success);
        // What follows `||` belongs to everything before it.
        let has_alternative = rest.iter().any(|it| it.after == After::Failure);
        let (group, others) = rest.split_at(
            end.filter(|_| !has_alternative)
                .map_or(rest.len(), |at| at + 1),
        );
        groups.push(group);
        rest = others;
    }
    groups
}

fn piece(commands: &[Simple], text: String, set: &[(String, String)]) -> Option<Piece> {
    let text = if text.contains(['\'', '"']) {
        text
    } else {
        let lines = text
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
        lines.collect::<Vec<_>>().join("\n")
    };
    let purpose = purpose(&text)?;
    let first = commands.first()?;
    let uses = |(name, _): &&(String, String)| uses_variable(&text, name);
    let mut variables = first.assignments.get(..first.exported)?.to_vec();
    variables.extend(set.iter().filter(uses).cloned());
    let mut sourced = first.sourced.clone();
    // Only the measure of coverage needs these.
    sourced.retain(|line| !line.contains("cargo llvm-cov") && !line.contains(".cargo/env"));
    let is_foreign = |line: &String| line.contains(['$', '<', '~']) || line.starts_with(". /");
    let because = if text.contains('\n') {
        Some("it is a script of several lines; put it into a file and name that")
    } else if commands
        .iter()
        .any(|command| command.is_inner && !command.is_certain)
    {
        Some("it runs on a condition of its script")
    } else if succeeds_anyway(&text) {
        Some(MAY_FAIL)
    } else if sourced.iter().any(is_foreign) {
        Some("it needs what its script has read into the shell")
    } else if variables
        .iter()
        .any(|(_, value)| value.contains(['$', '`']))
    {
        Some("it needs a variable that its script computes")
    } else if first.directory.is_none() {
        Some("the directory in which it runs is not known")
    } else {
        None
    };
    Some(Piece {
        purpose,
        directory: first.directory.clone().unwrap_or_default(),
        variables,
        sourced,
        because: because.map(str::to_owned),
        text,
    })
}

/// Whether a command reads a variable.
pub(super) fn uses_variable(command: &str, name: &str) -> bool {
    let short = format!("${name}");
    let is_end = |rest: &str| !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
    command.contains(&format!("${{{name}}}"))
        || command
            .match_indices(&short)
            .any(|(at, _)| is_end(&command[at + short.len()..]))
}

/// Variables that every shell or runner has.
const AMBIENT: &str =
    "CI GITHUB_WORKSPACE HOME HOSTNAME LANG LOGNAME OLDPWD PATH PWD SHELL TMPDIR USER";

/// The first variable in capitals that a command reads, and that is neither set nor has a default.
pub(super) fn unknown_variable<'a>(
    command: &'a str,
    known: &[(String, String)],
) -> Option<&'a str> {
    let mut read = command.split('$').skip(1).map(|rest| {
        let inner = rest.strip_prefix('{');
        let is_of_name = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
        let has_default = |rest: &str| inner.is_some() && rest.starts_with([':', '-', '+']);
        let rest = inner.unwrap_or(rest);
        let (name, rest) = rest.split_at(rest.find(|c| !is_of_name(c)).unwrap_or(rest.len()));
        (name, rest, has_default(rest))
    });
    let is_unknown = |(name, rest, has_default): &(&str, &str, bool)| {
        name.starts_with(|c: char| c.is_ascii_uppercase())
            && !has_default
            && !rest.starts_with(|c: char| c.is_ascii_lowercase())
            && !has_word(AMBIENT, name)
            && !known.iter().any(|(known, _)| known == name)
            && !command.contains(&format!("{name}="))
    };
    read.find(is_unknown).map(|(name, ..)| name)
}

/// The command in the form in which `sh` runs it in the root of the project.
pub(super) fn from_root(command: &str, directory: &str, variables: &[(String, String)]) -> String {
    let quoted = |text: &str| shlex::try_quote(text).map_or_else(|_| text.to_owned(), Into::into);
    let line = CommandLine::read(command);
    let is_of_bash = |command: &Simple| {
        let first = command.words.first();
        first.is_some_and(|word| matches!(word.as_str(), "[[" | "pushd" | "source" | "shopt"))
    };
    let needs_bash = line.commands().any(is_of_bash)
        || ["<(", "pipefail"].iter().any(|sign| command.contains(sign));
    let mut text = if needs_bash {
        format!("bash -ec {}", quoted(command))
    } else {
        command.to_owned()
    };
    // `A=x command $A` has the value of before.
    let is_read = variables
        .iter()
        .any(|(name, _)| uses_variable(command, name));
    let is_negated = command.starts_with('!');
    let is_one = !is_read && (needs_bash || (line.commands().count() == 1 && !is_negated));
    for (name, value) in variables.iter().rev() {
        text = if is_one {
            format!("{name}={} {text}", quoted(value))
        } else {
            format!("export {name}={} && {text}", quoted(value))
        };
    }
    match directory {
        "" => text,
        _ => format!("cd {} && {text}", quoted(directory)),
    }
}

/// A directory of a step, and one that its script enters from there, as one. `None` if it is not in the project.
pub(super) fn joined(directory: &str, within: &str) -> Option<String> {
    entered(Some(&entered(Some(""), directory)?), within)
}

/// Whether the failure of a command is ignored, as in `make lint || true`.
fn succeeds_anyway(command: &str) -> bool {
    let last = command.rsplit_once("||").map(|(_, last)| last.trim());
    last.is_some_and(|last| {
        let first = last.split_whitespace().next().unwrap_or_default();
        matches!(first, "true" | ":" | "echo") || last == "exit 0"
    })
}

/// Whether a command is another one with options for coverage, which may need more dependencies and do not
/// show whether the work is correct.
pub(super) fn measures(command: &str, plain: &str) -> bool {
    let more = command.strip_prefix(plain);
    let more = more.and_then(|more| more.strip_prefix(' '));
    more.is_some_and(|more| more.starts_with("--cov") || more.starts_with("-cover"))
}
