//! Classifies a shell command by its words: it prepares, builds, tests or lints, or it is unrelated to
//! checks.

mod table;
#[cfg(test)]
mod tests;

use crate::domain::checks::verdict::CheckKind;
use crate::domain::checks::verdict::CheckKind::{Build, Lint, Test};
use crate::domain::command_line::is_assignment;
use Purpose::{Check, Machine, Setup};
use table::Rule::{self, Args, Is, Named};
use table::{
    CARGO_CHOICES, ENVIRONMENTS, INTERPRETERS, ONLY_LOOKS, PLACES, PROGRAMS, REFUSED, REWRITES,
    RUNS_NONE, TAKES_TASKS, WRAPPER_VALUES, WRAPPERS,
};

/// The purpose of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Fetches the project's dependencies.
    Setup,
    /// Installs something on the machine, which a workflow step may do and a setup command should not.
    Machine,
    /// Checks the state of the project.
    Check(CheckKind),
}

/// A run of `cargo test` on the same packages, for a command that also measures coverage or tries every
/// combination of features, and therefore needs a program that Cargo does not have.
pub(super) fn plain_test(command: &str) -> Option<String> {
    let words: Vec<&str> = command.split_whitespace().collect();
    let at = words.iter().position(|word| *word == "cargo")?;
    let (variables, arguments) = (&words[..at], &words[at + 1..]);
    if !variables.iter().all(|word| is_assignment(word)) {
        return None;
    }
    let first = plain(arguments).next()?;
    if !matches!(first, "llvm-cov" | "hack" | "tarpaulin") {
        return None;
    }
    let mut kept: Vec<&str> = variables.to_vec();
    kept.extend(["cargo", "test"]);
    let mut rest = arguments.iter().copied().take_while(|word| *word != "--");
    while let Some(word) = rest.next() {
        let name = word.split('=').next().unwrap_or(word);
        let choice = CARGO_CHOICES.iter().find(|(choice, _)| *choice == name);
        if let Some((_, has_value)) = choice {
            kept.push(word);
            kept.extend((*has_value && name == word).then(|| rest.next()).flatten());
        }
    }
    Some(kept.join(" "))
}

/// The purpose of a command, or `None` if it is unknown or irrelevant to the project's state.
pub(super) fn purpose(command: &str) -> Option<Purpose> {
    let words = shlex::split(command)?;
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    of_words(&words)
}

fn of_words(words: &[&str]) -> Option<Purpose> {
    let words = after_assignments(words);
    let (first, arguments) = words.split_first()?;
    let program = program(first);
    let flagless = without_places(&program, arguments);
    if program == "sudo" {
        return of_words(arguments).filter(|purpose| *purpose == Machine);
    }
    let wrapper = WRAPPERS.iter().any(|(name, argument)| {
        *name == program && argument.is_none_or(|argument| arguments.contains(&argument))
    });
    if wrapper {
        let is_value = |at: usize| at > 0 && WRAPPER_VALUES.contains(&arguments[at - 1]);
        let mut words = (0..arguments.len()).filter(|at| !is_value(*at));
        let at = words.find(|at| rule(&self::program(arguments[*at])).is_some());
        return of_words(&arguments[at?..]);
    }
    if changes_files(&program, arguments) {
        return None;
    }
    if let Some(rule) = rule(&program) {
        let found = by_rule(rule, &program, arguments, &flagless);
        let runs_none = arguments.iter().any(|word| RUNS_NONE.contains(word));
        return match (found, program.as_str()) {
            (Some(Check(Test)), "cargo" | "stack") if runs_none => Some(Check(Build)),
            (Some(Check(Test)), _) if runs_none => None,
            _ => found,
        };
    }
    if program == "node" && arguments.contains(&"--test") {
        return Some(Check(Test));
    }
    let script = match INTERPRETERS.contains(&program.as_str()) {
        true if arguments.iter().any(|word| matches!(*word, "-c" | "-e")) => return None,
        true => flagless.first().filter(|script| **script != "setup.py")?,
        false if first.contains('/') => first,
        false => return None,
    };
    let directory = script.rsplit('/').nth(1);
    let in_tests = matches!(directory, Some("test" | "tests")).then_some(Check(Test));
    named(script).or(in_tests)
}

/// Subcommands that do not say what a check does.
const VAGUE: &[&str] = &[
    "run", "check", "build", "test", "compile", "verify", "package", "install",
];

/// The word of a command that says what it does: the subcommand, the script or the program.
pub(super) fn word(command: &str) -> Option<String> {
    let command = command.rsplit("&&").next()?;
    let words = shlex::split(command)?;
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let words = after_assignments(&words);
    let (at, rule) = (0..words.len()).find_map(|at| Some((at, rule(&program(words[at]))?)))?;
    let own = program(words[at]);
    let flagless: Vec<&str> = plain(&words[at + 1..]).collect();
    let word = match rule {
        Is(_) => own,
        Args(_) => (*flagless.first()?).to_owned(),
        Named(..) if matches!(own.as_str(), "tox" | "nox") => return None,
        Named(skipped, _) => tasks(skipped, &flagless).next()?.to_owned(),
    };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let word: String = word
        .chars()
        .map(|c| if is_plain(c) { c } else { '-' })
        .collect();
    (!VAGUE.contains(&word.as_str())).then_some(word)
}

fn by_rule(rule: Rule, program: &str, arguments: &[&str], flagless: &[&str]) -> Option<Purpose> {
    match rule {
        Is(purpose) => Some(purpose),
        Args(table) => {
            let begins = |key: &str| {
                let key: Vec<&str> = key.split(' ').collect();
                flagless.starts_with(&key)
            };
            let row = table.iter().filter(|(key, _)| begins(key));
            let (key, purpose) = row.max_by_key(|(key, _)| key.len())?;
            let others = flagless.iter().copied().skip(key.split(' ').count());
            (!names_refused(program, others)).then_some(*purpose)
        }
        Named(skipped, without) => {
            if matches!(program, "tox" | "nox") {
                return of_environments(arguments);
            }
            let mut names = tasks(skipped, flagless);
            if names_refused(program, names.clone()) {
                return None;
            }
            // A package's scripts have the same form as the commands of its manager.
            match (program, names.next()) {
                (_, None) => without,
                // `npm run ci` runs a script of the package.
                ("npm" | "pnpm" | "yarn" | "bun" | "composer", Some("ci" | "install" | "i"))
                    if !flagless.first().is_some_and(|word| skipped.contains(word)) =>
                {
                    let is_global = arguments
                        .iter()
                        .any(|word| matches!(*word, "-g" | "--global"));
                    Some(if is_global { Machine } else { Setup })
                }
                ("npm" | "pnpm" | "yarn" | "bun", Some("t" | "tst")) => Some(Check(Test)),
                ("make" | "gmake", Some("install")) => None,
                // Like npx: runs a tool of the package.
                ("yarn" | "pnpm" | "bun", Some(name)) if self::rule(name).is_some() => {
                    of_words(flagless)
                }
                (_, Some(name)) => named(name),
            }
        }
    }
}

/// The names of the tasks among the arguments of a program without flags. `make CC=clang test` sets a
/// variable first.
fn tasks<'a>(
    skipped: &'a [&'a str],
    flagless: &'a [&'a str],
) -> impl Iterator<Item = &'a str> + Clone {
    let words = flagless.iter().copied();
    words.filter(|word| !skipped.contains(word) && !is_assignment(word))
}

/// Whether one of the tasks that the program runs has a refused name.
fn names_refused<'a>(program: &str, mut tasks: impl Iterator<Item = &'a str>) -> bool {
    // Turborepo names a task of one package `package#task`.
    let is_refused = |task: &str| task.split('#').any(|part| is_refused(&last_part(part)));
    TAKES_TASKS.contains(&program) && tasks.any(is_refused)
}

/// The purpose of a call of `tox` or `nox`: a test, unless every environment that it names is known to be
/// something else.
fn of_environments(arguments: &[&str]) -> Option<Purpose> {
    let own = arguments.iter().take_while(|word| **word != "--");
    let own: Vec<&str> = own.copied().collect();
    let mut names: Vec<&str> = Vec::new();
    for (at, word) in own.iter().enumerate() {
        match word.split_once('=') {
            Some((option, value)) if ENVIRONMENTS.contains(&option) => names.push(value),
            None if ENVIRONMENTS.contains(word) => {
                let values = own[at + 1..].iter();
                names.extend(values.take_while(|value| !value.starts_with('-')));
            }
            _ => {}
        }
    }
    let names = names.iter().flat_map(|name| name.split(','));
    let mut purposes = names.map(|name| match named(name) {
        Some(Check(Lint)) => Some(Check(Lint)),
        _ if name.contains("doc") => None,
        _ if STATIC.iter().any(|tool| name.contains(tool)) => Some(Check(Lint)),
        _ => Some(Check(Test)),
    });
    let first = purposes.next().unwrap_or(Some(Check(Test)));
    if purposes.any(|purpose| purpose == Some(Check(Test))) {
        Some(Check(Test))
    } else {
        first
    }
}

/// Tools that read the code without running it, as environments of `tox` and `nox` are named after them.
const STATIC: &[&str] = &[
    "mypy",
    "pyright",
    "typing",
    "ruff",
    "flake8",
    "black",
    "isort",
    "pre-commit",
    "pre_commit",
    "manifest",
    "packaging",
    "zizmor",
];

/// The purpose of a task, target or script according to its name.
fn named(name: &str) -> Option<Purpose> {
    let name = last_part(name);
    let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
    let formats = has(&["fmt", "format", "prettier"]);
    if is_refused(&name) {
        None
    } else if formats {
        has(&["check", "verify", "lint", "ci"]).then_some(Check(Lint))
    } else if has(&[
        "lint",
        "style",
        "types",
        "typecheck",
        "type-check",
        "tsc",
        "clippy",
        "vet",
    ]) {
        Some(Check(Lint))
    } else if has(&[
        "test",
        "spec",
        "check",
        "coverage",
        "cover",
        "unit",
        "e2e",
        "verify",
        "validate",
        "presubmit",
    ]) || matches!(name.as_str(), "ci" | "cov")
    {
        Some(Check(Test))
    } else if has(&["build", "compile", "bundle"]) || name == "all" {
        Some(Check(Build))
    } else if has(&["deps", "dependencies", "bootstrap", "setup", "configure"]) {
        Some(Setup)
    } else {
        None
    }
}

fn last_part(name: &str) -> String {
    name.rsplit('/').next().unwrap_or(name).to_ascii_lowercase()
}

fn is_refused(name: &str) -> bool {
    REFUSED.iter().any(|word| name.contains(word))
}

fn rule(program: &str) -> Option<Rule> {
    let row = PROGRAMS.iter().find(|(names, _)| names.contains(&program));
    row.map(|(_, rule)| *rule)
}

/// Whether the command rewrites files to fix what it finds.
fn changes_files(program: &str, arguments: &[&str]) -> bool {
    let rewrites = REWRITES.iter().any(|(name, argument)| {
        *name == program && argument.is_none_or(|argument| arguments.contains(&argument))
    });
    let only_looks = arguments
        .iter()
        .any(|word| ONLY_LOOKS.contains(word) || (*word).starts_with("--check="));
    (rewrites && !only_looks)
        || arguments
            .iter()
            .any(|word| matches!(*word, "--fix" | "--write"))
}

/// A program's name without directory, version and extension: `python` for `/usr/bin/python3.12`.
fn program(word: &str) -> String {
    let name = word.rsplit('/').next().unwrap_or(word);
    let name = name
        .strip_suffix(".sh")
        .filter(|_| word.contains('/'))
        .unwrap_or(name);
    match name {
        "pip3" => "pip".to_owned(),
        _ if name.starts_with("python") => "python".to_owned(),
        _ => name.to_owned(),
    }
}

/// The arguments without flags and toolchain selectors.
fn plain<'a>(arguments: &'a [&'a str]) -> impl Iterator<Item = &'a str> {
    let all = arguments.iter().copied();
    all.filter(|word| !word.starts_with(['-', '+']))
}

/// The tasks of sbt without flags; `+publish` is `publish` with each version of Scala.
fn sbt_tasks<'a>(arguments: &'a [&'a str]) -> Vec<&'a str> {
    let tasks = arguments.iter().filter(|word| !word.starts_with('-'));
    tasks.map(|word| word.trim_start_matches('+')).collect()
}

/// The arguments without flags, without numbers of jobs, and without the place of a task.
fn without_places<'a>(program: &str, arguments: &'a [&'a str]) -> Vec<&'a str> {
    if program == "sbt" {
        return sbt_tasks(arguments);
    }
    let mut rows = PLACES.iter();
    let row = rows.find(|(programs, _)| programs.contains(&program));
    let Some((_, options)) = row else {
        return plain(arguments).collect();
    };
    let is_value = |at: usize| at > 0 && options.contains(&arguments[at - 1]);
    let is_number = |word: &str| word.chars().all(|c| c.is_ascii_digit());
    let words = (0..arguments.len()).filter(|at| !is_value(*at));
    let words: Vec<&str> = words.map(|at| arguments[at]).collect();
    let words: Vec<&str> = words
        .into_iter()
        .filter(|word| !word.starts_with(['-', '+']) && !is_number(word))
        .collect();
    match (program, words.as_slice()) {
        ("yarn", ["workspace", _, rest @ ..]) => rest.to_vec(),
        _ => words,
    }
}

fn after_assignments<'a, 'b>(words: &'a [&'b str]) -> &'a [&'b str] {
    let at = words.iter().position(|word| !is_assignment(word));
    &words[at.unwrap_or(words.len())..]
}
