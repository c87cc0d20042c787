//! Classifies a shell command by its words: it prepares, builds, tests or lints, or it is unrelated to
//! checks.

mod table;
#[cfg(test)]
mod tests;

use crate::domain::checks::verdict::CheckKind;
use crate::domain::checks::verdict::CheckKind::{Build, Lint, Test};
use crate::domain::command_line::{CommandLine, Program, Simple, is_assignment};
use crate::domain::text::{begins_with_word, has_word};
use Purpose::{Check, Containers, Machine, Setup};
use table::Rule::{self, Args, Is, Named};
pub(super) use table::STATIC;
use table::{
    BUILDS, CHANGES_MORE, CONTAINERS, ENVIRONMENTS, INTERPRETERS, ONLY_LOOKS, PIP_ITSELF, PLACES,
    PROGRAMS, REFUSED, REWRITES, RUNS_NONE, RUNS_NONE_OF, RUNS_TEXT, SYSTEM_INSTALLERS,
    TAKES_TASKS,
};

/// The purpose of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Fetches the project's dependencies.
    Setup,
    /// Installs something on the machine, which a workflow step may do and a setup command should not.
    Machine,
    /// Runs or builds containers, which a run's sandbox does not do.
    Containers,
    /// Checks the state of the project.
    Check(CheckKind),
}

/// The purpose of a command line, or `None` if it is unknown or irrelevant to the project's state: a check if any of
/// its commands is one, otherwise that of the first known one.
pub(super) fn purpose(text: &str) -> Option<Purpose> {
    let line = CommandLine::read(text);
    let names = |names: &[&str]| {
        let mut programs = line.commands().filter_map(Simple::program);
        programs.any(|program| names.contains(&program.name()))
    };
    // `curl … | sh`, `sh -c "$(wget …)"`.
    if names(&["curl", "wget"]) && names(&["bash", "sh", "python"]) {
        return Some(Machine);
    }
    let found: Vec<Purpose> = line.commands().filter_map(of).collect();
    let containers = found.iter().find(|purpose| **purpose == Containers);
    let check = found.iter().find(|purpose| matches!(purpose, Check(_)));
    containers.or(check).or(found.first()).copied()
}

fn of(command: &Simple) -> Option<Purpose> {
    let program = command.program()?;
    let arguments: Vec<&str> = program.arguments.iter().map(String::as_str).collect();
    let purpose = of_words(program.word, &arguments);
    let is_privileged = ["sudo", "doas"].iter().any(|word| command.has_before(word));
    if is_privileged && purpose != Some(Containers) {
        return Some(Machine);
    }
    purpose
}

fn of_words(word: &str, arguments: &[&str]) -> Option<Purpose> {
    // `$PYTHON -m pytest`
    if let ["-m", module, rest @ ..] = arguments
        && word.starts_with('$')
    {
        return of_words(module, rest);
    }
    let program = program(word);
    let program = program.as_str();
    let flagless = without_places(program, arguments);
    let first = flagless.first().copied().unwrap_or_default();
    if installs_for_the_machine(program, first, arguments) {
        return Some(Machine);
    }
    if has_word(CONTAINERS, program) {
        let runs = ["compose", "run", "exec", "build", "up", "start", "buildx"];
        return runs.contains(&first).then_some(Containers);
    }
    // `python -m venv .venv`
    if program == "venv" {
        return Some(Setup);
    }
    if changes_files(program, arguments) {
        return None;
    }
    if let Some(rule) = rule(program) {
        let found = by_rule(rule, program, arguments, &flagless);
        return match found {
            Some(Check(Lint)) if !asks_about_itself(arguments) => found,
            Some(Check(_)) if asks_about_itself(arguments) => None,
            Some(Check(_)) if runs_none(program, arguments) => {
                has_word(BUILDS, program).then_some(Check(Build))
            }
            _ => found,
        };
    }
    if program == "node" && arguments.contains(&"--test") {
        return Some(Check(Test));
    }
    let is_interpreter = has_word(INTERPRETERS, program);
    if is_interpreter && arguments.iter().any(|word| has_word(RUNS_TEXT, word)) {
        return None;
    }
    let script = if is_interpreter {
        flagless
            .first()
            .copied()
            .filter(|script| *script != "setup.py")
    } else {
        Some(word).filter(|word| word.contains('/'))
    }?;
    let directory = script.rsplit('/').nth(1);
    let in_tests = matches!(directory, Some("test" | "tests")).then_some(Check(Test));
    // Nothing tells whether it installs into the work tree or for the user.
    let installs = last_part(script).contains("install").then_some(Machine);
    named(script).or(in_tests).or(installs)
}

fn asks_about_itself(arguments: &[&str]) -> bool {
    let mut own = arguments.iter().take_while(|word| **word != "--");
    own.any(|word| matches!(*word, "--help" | "--version"))
}

/// Whether a command for tests runs none, or one for tasks only shows them.
fn runs_none(program: &str, arguments: &[&str]) -> bool {
    let is_flag = |word: &&str| begins_with_word(RUNS_NONE, word) && !word.ends_with("=false");
    let all = format!(" {} ", arguments.join(" "));
    let is_of_program = |(programs, words): &(&str, &str)| {
        has_word(programs, program) && all.contains(&format!(" {words} "))
    };
    arguments.iter().any(is_flag) || RUNS_NONE_OF.iter().any(is_of_program)
}

/// Whether a command installs for the user or for the machine, and not in the work tree.
fn installs_for_the_machine(program: &str, first: &str, arguments: &[&str]) -> bool {
    let is_global = |word: &&str| {
        let cluster = word.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
        matches!(*word, "--global" | "--location=global" | "--user")
            || cluster.is_some_and(|letters| {
                letters.contains('g') && letters.chars().all(|c| c.is_ascii_alphabetic())
            })
    };
    let installs = matches!(
        first,
        "add" | "i" | "in" | "install" | "up" | "update" | "upgrade"
    );
    match program {
        _ if has_word(SYSTEM_INSTALLERS, program) => true,
        "npm" | "pnpm" | "yarn" | "bun" | "composer" | "dotnet" => {
            matches!(first, "global" | "link" | "ln")
                || ((installs || first == "tool") && arguments.iter().any(is_global))
        }
        "gem" | "pipx" | "cargo" | "go" => matches!(first, "install" | "inject"),
        "uv" => first == "tool" || first == "python",
        "pip" if first == "install" => {
            let mut packages = arguments
                .iter()
                .skip(1)
                .filter(|word| !word.starts_with('-'));
            let name = |word: &str| {
                word.split(['=', '<', '>', '~', '!', '['])
                    .next()
                    .map(str::to_owned)
            };
            let is_own = |word: &&str| name(word).is_some_and(|name| has_word(PIP_ITSELF, &name));
            let has_file = arguments
                .iter()
                .any(|word| matches!(*word, "-r" | "-e" | "--group"));
            arguments.contains(&"--user")
                || (!has_file && packages.clone().next().is_some() && packages.all(is_own))
        }
        _ => false,
    }
}

/// Whether a command of Cargo needs another target than that of the machine, or a nightly toolchain.
pub(super) fn needs_another_toolchain(command: &str) -> bool {
    let line = CommandLine::read(command);
    let of_cargo = |command: &Simple| {
        let program = command.program();
        program.is_some_and(|program| {
            let is_special = |word: &String| {
                matches!(word.as_str(), "--target" | "+nightly")
                    || word.starts_with("-Z")
                    || word.starts_with("--target=")
            };
            let is_cargo = program.name() == "cargo";
            program.name() == "cross" || (is_cargo && program.arguments.iter().any(is_special))
        })
    };
    line.commands().any(of_cargo)
}

/// Whether a command of a test runner or build tool names a part of the project only.
pub(super) fn selects_a_part(command: &str) -> bool {
    const OPTIONS: &str = "--lib --package --projects --test --tests -Dtest -k -m -p -pl -run";
    let line = CommandLine::read(command);
    let mut words = line
        .commands()
        .filter_map(Simple::program)
        .flat_map(|program| program.arguments);
    words.any(|word| has_word(OPTIONS, word.split('=').next().unwrap_or(word)))
}

/// Subcommands that do not say what a check does.
const VAGUE: &str = "run check build test compile verify package install";

/// The word of a command that says what it does: the subcommand, the script or the program.
pub(super) fn word(command: &str) -> Option<String> {
    let line = CommandLine::read(command);
    let last = line.commands().last()?.program()?;
    let own = program(last.word);
    let rule = rule(&own)?;
    let arguments: Vec<&str> = last.arguments.iter().map(String::as_str).collect();
    let flagless: Vec<&str> = plain(&arguments).collect();
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
    (!has_word(VAGUE, &word)).then_some(word)
}

fn by_rule(rule: Rule, program: &str, arguments: &[&str], flagless: &[&str]) -> Option<Purpose> {
    match rule {
        Is(purpose) => Some(purpose),
        Args(table) => {
            let begins = |key: &str| {
                let key: Vec<&str> = key.split(' ').collect();
                flagless.starts_with(&key)
            };
            let rows = table
                .iter()
                .flat_map(|(purpose, keys)| keys.split('|').map(move |key| (key, *purpose)));
            let known = rows.filter(|(key, _)| begins(key));
            let (key, purpose) = known.max_by_key(|(key, _)| key.len())?;
            let others = flagless.iter().copied().skip(key.split(' ').count());
            (!names_refused(program, others, CHANGES_MORE)).then_some(purpose)
        }
        Named(skipped, without) => {
            if matches!(program, "tox" | "nox") {
                return of_environments(arguments);
            }
            let mut names = tasks(skipped, flagless);
            if names_refused(program, names.clone(), REFUSED) {
                return None;
            }
            // A package's scripts have the same form as the commands of its manager.
            match (program, names.next()) {
                (_, None) => without,
                // `npm run ci` runs a script of the package.
                ("npm" | "pnpm" | "yarn" | "bun" | "composer", Some("ci" | "install" | "i"))
                    if !flagless.first().is_some_and(|word| has_word(skipped, word)) =>
                {
                    Some(Setup)
                }
                ("npm" | "pnpm" | "yarn" | "bun", Some("t" | "tst")) => Some(Check(Test)),
                ("make" | "gmake", Some("install")) => None,
                // Like npx: runs a tool of the package.
                ("yarn" | "pnpm" | "bun", Some(name)) if self::rule(name).is_some() => {
                    of_words(name, flagless.get(1..).unwrap_or_default())
                }
                (_, Some(name)) => named(name),
            }
        }
    }
}

/// The names of the tasks among the arguments of a program without flags. `make CC=clang test` sets a
/// variable first.
fn tasks<'a>(skipped: &'a str, flagless: &'a [&'a str]) -> impl Iterator<Item = &'a str> + Clone {
    let words = flagless.iter().copied();
    words.filter(move |word| !has_word(skipped, word) && !is_assignment(word))
}

/// Whether one of the tasks that the program runs has one of these words in its name.
fn names_refused<'a>(program: &str, mut tasks: impl Iterator<Item = &'a str>, words: &str) -> bool {
    // Turborepo names a task of one package `package#task`.
    let has_one = |part: &str| words.split(' ').any(|word| last_part(part).contains(word));
    let is_refused = |task: &str| task.split('#').any(has_one);
    has_word(TAKES_TASKS, program) && tasks.any(is_refused)
}

/// The purpose of a call of `tox` or `nox`: a test, unless every environment that it names is known to be
/// something else.
fn of_environments(arguments: &[&str]) -> Option<Purpose> {
    let own = arguments.iter().take_while(|word| **word != "--");
    let own: Vec<&str> = own.copied().collect();
    let mut names: Vec<&str> = Vec::new();
    for (at, word) in own.iter().enumerate() {
        match word.split_once('=') {
            Some((option, value)) if has_word(ENVIRONMENTS, option) => names.push(value),
            None if has_word(ENVIRONMENTS, word) => {
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
        _ => Some(Check(Test)),
    });
    let first = purposes.next().unwrap_or(Some(Check(Test)));
    if purposes.any(|purpose| purpose == Some(Check(Test))) {
        Some(Check(Test))
    } else {
        first
    }
}

/// The purpose of a task, target or script according to its name.
fn named(name: &str) -> Option<Purpose> {
    let name = last_part(name);
    let has = |words: &str| words.split(' ').any(|word| name.contains(word));
    let formats = has("fmt format prettier");
    if is_refused(&name) {
        None
    } else if formats {
        has("check verify lint ci").then_some(Check(Lint))
    } else if has(STATIC) {
        Some(Check(Lint))
    } else if has("test spec check coverage cover unit e2e verify validate presubmit")
        || matches!(name.as_str(), "ci" | "cov")
    {
        Some(Check(Test))
    } else if has("build compile bundle") || name == "all" {
        Some(Check(Build))
    } else if has("deps dependencies bootstrap setup configure") {
        Some(Setup)
    } else {
        None
    }
}

fn last_part(name: &str) -> String {
    name.rsplit('/').next().unwrap_or(name).to_ascii_lowercase()
}

fn is_refused(name: &str) -> bool {
    REFUSED.split_whitespace().any(|word| name.contains(word))
}

fn rule(program: &str) -> Option<Rule> {
    let row = PROGRAMS.iter().find(|(names, _)| has_word(names, program));
    row.map(|(_, rule)| *rule)
}

/// Whether the command rewrites files to fix what it finds.
fn changes_files(program: &str, arguments: &[&str]) -> bool {
    let rewrites = REWRITES.iter().any(|(name, argument)| {
        *name == program && argument.is_none_or(|argument| arguments.contains(&argument))
    });
    let only_looks = arguments
        .iter()
        .any(|word| has_word(ONLY_LOOKS, word) || (*word).starts_with("--check="));
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
    let arguments = &[];
    Program {
        word: name,
        arguments,
    }
    .name()
    .to_owned()
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
    let row = rows.find(|(programs, _)| has_word(programs, program));
    let Some((_, options)) = row else {
        return plain(arguments).collect();
    };
    let is_value = |at: usize| at > 0 && has_word(options, arguments[at - 1]);
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
