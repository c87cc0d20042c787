//! Determines which programs the commands of a run start, without running them, and which of those are
//! missing.

use crate::context::Context;
use crate::domain::checks::verdict::Check;
use crate::domain::command_line::{CommandLine, Simple};
use crate::process::find_program;
use std::path::Path;

/// Shell built-ins.
const BUILT_IN: &[&str] = &[
    ":", "[", "[[", "break", "cd", "continue", "echo", "exit", "export", "false", "getopts",
    "hash", "local", "popd", "printf", "pushd", "pwd", "read", "readonly", "return", "set",
    "shift", "test", "times", "trap", "true", "type", "ulimit", "umask", "unalias", "unset",
    "wait",
];

/// Shell built-ins that may define commands or change where they are found, as an environment's `activate`
/// does.
const DEFINES_COMMANDS: &[&str] = &[".", "alias", "eval", "source"];

/// Other names under which a program may be installed.
const ALSO_CALLED: &[(&str, &str)] = &[
    ("fd", "fdfind"),
    ("gmake", "make"),
    ("make", "gmake"),
    ("nodejs", "node"),
    ("node", "nodejs"),
    ("pip", "pip3"),
    ("pip3", "pip"),
    ("python", "python3"),
    ("python3", "python"),
];

/// A program that a command needs and that is not there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingProgram {
    /// The command, as it is named for people.
    pub of: String,
    /// Whether it is a setup command.
    pub in_setup: bool,
    /// The program, as the command names it.
    pub program: String,
    /// Another name under which it is there.
    pub also_called: Option<&'static str>,
}

/// The programs that setup commands and checks need and that are not there. A setup command may install the
/// program of a check.
pub fn missing(
    context: &Context,
    work_tree: &Path,
    setup: &[String],
    checks: &[Check],
) -> Vec<MissingProgram> {
    let search_path = context.var_os("PATH").unwrap_or_default();
    let is_there = |program: &str| find_program(program.as_ref(), search_path, work_tree).is_some();
    let setup = setup.iter().map(|line| (true, "setup".to_owned(), line));
    let checks = checks
        .iter()
        .map(|check| (false, format!("check {}", check.name), &check.run));
    setup
        .chain(checks)
        .flat_map(|(in_setup, of, line)| {
            let missing = programs(line)
                .into_iter()
                .filter(|program| !is_there(program));
            missing.map(move |program| {
                let mut others = ALSO_CALLED
                    .iter()
                    .filter(|(name, _)| *name == program)
                    .map(|(_, other)| *other);
                MissingProgram {
                    of: of.clone(),
                    in_setup,
                    also_called: others.find(|other| is_there(other)),
                    program,
                }
            })
        })
        .collect()
}

/// The first program that a command line needs and that is not installed. A path in the work tree may lead to
/// a program that does not exist yet.
pub fn missing_of(context: &Context, work_tree: &Path, line: &str) -> Option<String> {
    let search_path = context.var_os("PATH").unwrap_or_default();
    let is_there =
        |program: &String| find_program(program.as_ref(), search_path, work_tree).is_some();
    let is_installed = |program: &String| !program.contains('/') || program.starts_with('/');
    let mut needed = programs(line).into_iter().filter(is_installed);
    needed.find(|program| !is_there(program))
}

/// The programs that a command line starts unconditionally, in order. Everything that depends on a condition,
/// a variable or another program's output is left out, and so is everything after it that it may affect.
fn programs(line: &str) -> Vec<String> {
    let mut found = Vec::new();
    let line = CommandLine::read(line);
    if line.not_understood.contains("an open quote") {
        return found;
    }
    let certain = |command: &&Simple| command.is_certain && !command.is_substitution;
    for command in line.commands().filter(certain) {
        // What follows may be found elsewhere than this process looks.
        if command.assignments.iter().any(|(name, _)| name == "PATH") {
            break;
        }
        let Some(program) = command.started() else {
            continue;
        };
        if !command.sourced.is_empty() || DEFINES_COMMANDS.contains(&program.word) {
            break;
        }
        let is_here = command.directory.as_deref() == Some("") || !program.word.contains('/');
        let is_built_in = BUILT_IN.contains(&program.word);
        if is_plain(program.word)
            && !is_built_in
            && is_here
            && !found.contains(&program.word.to_owned())
        {
            found.push(program.word.to_owned());
        }
    }
    found
}

fn is_plain(word: &str) -> bool {
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+@".contains(c);
    !word.is_empty() && !word.starts_with('-') && word.chars().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_programs_of_a_command_line_are_those_that_are_started_in_any_case() {
        for (line, expected) in [
            ("cargo test", &["cargo"][..]),
            ("npm ci && npm test -- --ci", &["npm"]),
            ("CI=1 ./gradlew check", &["./gradlew"]),
            ("cd web && ./run && yarn test", &["yarn"]),
            ("make lint; make test | tee log 2>&1", &["make", "tee"]),
            ("env FOO=x pytest -k 'a && b'", &["pytest"]),
            ("! grep -r TODO src", &["grep"]),
            ("pip --version || python -m ensurepip", &["pip"]),
            ("if [ -f x ]; then prettier; fi", &[]),
            ("$RUNNER test", &[]),
            (". .venv/bin/activate && pytest", &[]),
            ("cargo fmt; source env.sh; pytest", &["cargo"]),
            ("export PATH=\"$PWD/bin:$PATH\"; jest", &[]),
            ("PATH=bin:$PATH jest", &[]),
            ("PATH=bin:$PATH\njest", &[]),
            ("eval \"$(pyenv init -)\" && pytest", &[]),
            ("(cd web; yarn)", &["yarn"]),
            ("true", &[]),
            ("echo 'a | b'", &[]),
            ("test -f x && jq . x &> log", &["jq"]),
            ("unbalanced 'quote", &[]),
            ("", &[]),
        ] {
            assert_eq!(programs(line), expected, "{line}");
        }
    }
}
