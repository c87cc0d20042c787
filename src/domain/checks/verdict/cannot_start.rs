//! Recognises a check that failed because a program is missing. Such a failure says nothing about the tree,
//! and no agent can fix it.

use super::CheckOutcome;
use crate::checks::counts;
use crate::checks::counts::Counts;
use crate::command_line::{CommandLine, Simple};
use crate::pattern::{Pattern, group};
use crate::text;

/// The number of lines at the end of an output that are searched for the missing program.
const LAST_LINES: usize = 20;

/// The real outcome of a check that ran as `sh -c run`: exit codes 126 and 127, and messages of module
/// runners, show that it never started. A check whose output has test counts did start.
pub(super) fn read(run: &str, outcome: CheckOutcome, output: &str) -> CheckOutcome {
    let CheckOutcome::Failed { exit } = outcome else {
        return outcome;
    };
    let plain = text::plain(output);
    let tail: Vec<&str> = plain.lines().rev().take(LAST_LINES).collect();
    let exit = tail.iter().find_map(|line| made(line)).unwrap_or(exit);
    let says = |line: &&str| missing_runner(line).or_else(|| shell_says(line, exit));
    let by_code = || matches!(exit, 126 | 127).then(|| first_program(run));
    match tail.iter().find_map(says).or_else(by_code) {
        Some(program) if counts(output) == Counts::UNKNOWN => CheckOutcome::NotStarted {
            why: match exit {
                126 => format!("{program} cannot be run (exit code 126)"),
                _ => format!("{program} was not found (exit code {exit})"),
            },
            program,
        },
        _ => CheckOutcome::Failed { exit },
    }
}

/// The exit code of a missing program, as make reports it. Its own is another one.
fn made(line: &str) -> Option<i32> {
    static FAILED: Pattern = Pattern::new(r"^make(?:\[\d+\])?: \*\*\* \[.*\] Error (12[67])$");
    group(&FAILED.captures(line)?, 1).parse().ok()
}

/// A program that a module runner does not find.
fn missing_runner(line: &str) -> Option<String> {
    static PYTHON: Pattern =
        Pattern::new(r"^(?:\S*/)?python[\d.]*(?:\.exe)?: No module named (\S+)$");
    static CARGO: Pattern = Pattern::new(r"^error: no such (?:sub)?command: `([^`]+)`");
    let named = |pattern: &Pattern, what: &str| {
        let found = pattern.captures(line)?;
        Some(format!("{what} {}", group(&found, 1)))
    };
    named(&PYTHON, "Python module").or_else(|| named(&CARGO, "cargo"))
}

/// The program that a shell, `env` or a script's first line does not find or may not run.
fn shell_says(line: &str, exit: i32) -> Option<String> {
    static NOT_FOUND: [Pattern; 5] = [
        // bash, zsh
        Pattern::new(r"^(?:\S+: )?(?:line \d+: )?([^\s:]+): command not found$"),
        // bundler
        Pattern::new(r"^\S+: command not found: ([^\s:]+)$"),
        // dash, ash
        Pattern::new(r"^\S+: (?:\d+: |line \d+: )?([^\s:]+): not found$"),
        // env, and the interpreter that a script names
        Pattern::new(r"^(?:\S*/)?env: ['‘’`]?([^'‘’`]+?)['‘’`]?: No such file or directory$"),
        Pattern::new(
            r"^\S+: (?:\d+: |line \d+: )?([^\s:]+): (?:cannot execute: )?(?:required file not found|bad interpreter.*|No such file or directory)$",
        ),
    ];
    static NOT_RUN: Pattern = Pattern::new(
        r"^\S+: (?:\d+: |line \d+: )?([^\s:]+): (?:Permission denied|cannot execute.*)$",
    );
    let not_run = NOT_RUN.captures(line).filter(|_| exit == 126);
    let not_found = || NOT_FOUND.iter().find_map(|pattern| pattern.captures(line));
    let found = not_run.or_else(not_found);
    let found = found.filter(|_| matches!(exit, 126 | 127));
    found.map(|found| group(&found, 1).to_owned())
}

/// The first word of a command that is a program. Which of several commands is missing its program is not known.
fn first_program(run: &str) -> String {
    let line = CommandLine::read(run);
    let mut programs = line.commands().filter_map(Simple::started);
    match (programs.next(), programs.next()) {
        (Some(program), None) => program.word.to_owned(),
        _ => "one of its programs".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(run: &str, exit: i32, output: &str) -> Option<String> {
        match read(run, CheckOutcome::Failed { exit }, output) {
            CheckOutcome::NotStarted { program, .. } => Some(program),
            _ => None,
        }
    }

    #[test]
    fn the_missing_program_is_named() {
        for (run, exit, output, missing) in [
            ("pytest -q", 127, "sh: 1: pytest: not found\n", "pytest"),
            ("pytest -q", 127, "/bin/sh: pytest: not found\n", "pytest"),
            (
                "./t.sh",
                127,
                "./t.sh: line 3: jq: command not found\n",
                "jq",
            ),
            (
                "npm test",
                127,
                "> a@1 test\n> jest\n\nsh: 1: jest: not found\n",
                "jest",
            ),
            (
                "bundle exec rubocop",
                127,
                "bundler: command not found: rubocop\nInstall missing gem executables with `bundle install`\n",
                "rubocop",
            ),
            (
                "./t.py",
                127,
                "/usr/bin/env: ‘python3’: No such file or directory\n",
                "python3",
            ),
            (
                "./t.sh",
                126,
                "sh: 1: ./t.sh: Permission denied\n",
                "./t.sh",
            ),
            ("./t.sh", 127, "sh: 1: ./t.sh: not found\n", "./t.sh"),
            (
                "make test",
                2,
                "jest --ci\n/bin/sh: 1: jest: not found\nmake: *** [Makefile:2: test] Error 127\n",
                "jest",
            ),
            (
                "make test",
                2,
                "jest --ci\nmake: jest: No such file or directory\nmake: *** [Makefile:2: test] Error 127\n",
                "jest",
            ),
            ("CI=1 go test ./...", 127, "", "go"),
            ("touch a; x 2> log", 127, "", "one of its programs"),
            (
                "python -m pytest",
                1,
                "/usr/bin/python3: No module named pytest\n",
                "Python module pytest",
            ),
            (
                "cargo nextest run",
                101,
                "error: no such command: `nextest`\n\nhelp: view all\n",
                "cargo nextest",
            ),
        ] {
            assert_eq!(
                program(run, exit, output).as_deref(),
                Some(missing),
                "{run} {output}"
            );
        }
    }

    #[test]
    fn what_has_started_and_failed_is_no_missing_program() {
        for (exit, output) in [
            (
                1,
                "FAILED tests/test_a.py::test_b - assert 1 == 2\n1 failed, 3 passed in 0.1s\n",
            ),
            (
                127,
                "test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out\n",
            ),
            (1, "ModuleNotFoundError: No module named 'app.missing'\n"),
            (2, "sh: 1: jest: not found\n"),
        ] {
            assert_eq!(program("x", exit, output), None, "{output}");
        }
    }
}
