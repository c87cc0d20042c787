//! Detects a project's tools: the checks and the setup commands that `sprag init` proposes, and where each
//! was found.
//!
//! Pure: [`Listing`] holds what was read. The commands in the project's own CI take precedence over what its
//! manifests suggest. A command is proposed only if the project indicates that it has it, because a check
//! that never passes is worse than none.

mod command;
mod jobs;
mod machine;
mod matrix;
mod node;
mod python;
mod script;
mod tools;
mod workflow;

#[cfg(test)]
mod tests;

use crate::domain::checks::verdict::{Check, CheckKind};
use crate::domain::text::has_word;
use std::collections::{BTreeMap, BTreeSet};

/// Time limit of one run of a proposed check in milliseconds: the default of `verify_timeout`.
pub const CHECK_TIMEOUT_MS: u64 = 600_000;

/// The directory of the project's workflows.
pub const WORKFLOWS: &str = ".github/workflows";

/// The directory of the project's own actions.
pub const ACTIONS: &str = ".github/actions";

/// Directories that usually contain the tests of a Python project.
pub const TEST_DIRECTORIES: [&str; 2] = ["tests", "test"];

/// Whether the text of a file is read. For all others the name is enough.
pub fn is_read(name: &str) -> bool {
    has_word(MANIFESTS, name) || is_python_test(name)
}

/// The rows of a table with `|` between its columns.
fn rows<const COLUMNS: usize>(
    table: &'static str,
) -> impl Iterator<Item = [&'static str; COLUMNS]> {
    table.lines().filter_map(|row| {
        let columns: Vec<&str> = row.split('|').map(str::trim).collect();
        columns.try_into().ok()
    })
}

/// Whether a directory of the root may hold a part of the project with a manifest of its own.
pub fn may_hold_a_project(directory: &str) -> bool {
    let others = "build dist doc docs example examples fixtures node_modules target test tests third_party vendor";
    !directory.starts_with('.') && !has_word(others, directory)
}

/// Whether a file name is one of a Python test.
pub fn is_python_test(name: &str) -> bool {
    let stem = name.strip_suffix(".py");
    stem.is_some_and(|stem| stem.starts_with("test_") || stem.ends_with("_test") || stem == "test")
}

/// The recognised manifests in the root.
const MANIFESTS: &str = "CMakeLists.txt Cargo.toml GNUmakefile Justfile Makefile Pipfile Taskfile.dist.yaml Taskfile.dist.yml
    Taskfile.yaml Taskfile.yml build.zig composer.json deno.json deno.jsonc justfile makefile package.json
    pyproject.toml requirements-dev.txt requirements.txt setup.cfg setup.py taskfile.yaml taskfile.yml tox.ini
    .justfile";

/// The root of a project: the names in it, and the texts that are read. The name of a file in a directory
/// includes the directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listing {
    names: BTreeSet<String>,
    texts: BTreeMap<String, String>,
}

impl Listing {
    /// An empty root.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a file or directory without its text.
    pub fn name(&mut self, name: impl Into<String>) {
        self.names.insert(name.into());
    }

    /// Adds a file of the root with its text.
    pub fn text(&mut self, name: impl Into<String>, text: impl Into<String>) {
        let name = name.into();
        self.names.insert(name.clone());
        self.texts.insert(name, text.into());
    }

    /// Whether the root has a licence, as public projects have.
    #[must_use]
    pub fn has_licence(&self) -> bool {
        let starts = |start: &str| self.below(start).next().is_some();
        starts("LICENSE") || starts("LICENCE") || starts("COPYING")
    }

    fn has(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    fn has_any(&self, names: &[&str]) -> bool {
        names.iter().any(|name| self.has(name))
    }

    /// The text of a file, or an empty one if it was not read.
    fn read(&self, name: &str) -> &str {
        self.texts.get(name).map_or("", String::as_str)
    }

    /// The names with one of these suffixes, in order.
    fn ending<'a>(&'a self, endings: &'a [&str]) -> impl Iterator<Item = &'a str> {
        self.names
            .iter()
            .map(String::as_str)
            .filter(|name| !name.contains('/'))
            .filter(|name| endings.iter().any(|ending| name.ends_with(ending)))
    }

    /// The directories of the root whose files are listed, in order.
    fn directories(&self) -> BTreeSet<&str> {
        let parts = self.names.iter().filter_map(|name| name.split_once('/'));
        let first = parts.map(|(first, _)| first);
        first.filter(|name| may_hold_a_project(name)).collect()
    }

    /// What is in a directory of the root, as a root of its own.
    fn within(&self, directory: &str) -> Self {
        let inner = |name: &String| {
            let rest = name.strip_prefix(directory)?;
            Some(rest.strip_prefix('/')?.to_owned())
        };
        let texts = self.texts.iter();
        Self {
            names: self.names.iter().filter_map(inner).collect(),
            texts: texts
                .filter_map(|(name, text)| Some((inner(name)?, text.clone())))
                .collect(),
        }
    }

    /// The paths of the workflows, in order.
    fn workflows(&self) -> impl Iterator<Item = &str> {
        let names = self.texts.keys().map(String::as_str);
        names.filter(|name| {
            name.strip_prefix(WORKFLOWS)
                .is_some_and(|rest| rest.starts_with('/'))
        })
    }

    /// The names that start with this prefix.
    fn below<'a>(&'a self, start: &'a str) -> impl Iterator<Item = &'a str> {
        let names = self.names.iter().map(String::as_str);
        names.filter(move |name| name.starts_with(start))
    }

    /// Whether a line of the file, without leading spaces, starts with this.
    fn line_starts(&self, name: &str, start: &str) -> bool {
        self.read(name)
            .lines()
            .any(|line| line.trim().starts_with(start))
    }
}

/// A value with the place where it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found<T> {
    /// The value.
    pub what: T,
    /// The place for a person: a file, or a file and a line.
    pub from: String,
}

/// The proposed configuration for a project.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Proposal {
    /// Commands that fetch the dependencies of the checks, such as `npm ci`.
    pub setup: Vec<Found<String>>,
    /// The checks. Names are unique: `test`, or `cargo-test` and `npm-test` if two toolchains have tests.
    pub checks: Vec<Found<Check>>,
    /// Steps that a workflow needs before the checks, as lines of YAML.
    pub steps: Vec<String>,
    /// Commands that were found but are not proposed, each with the reason.
    pub left_out: Vec<Found<String>>,
    /// What was looked for but not found.
    pub not_found: Vec<String>,
    /// Workflows that were read.
    pub workflows: Vec<String>,
}

/// Proposes a configuration for the project. Checks in workflows that run for a change take precedence: if
/// they include tests, no other checks are proposed; otherwise the kinds that they lack come from the
/// manifests.
///
/// Targets of a makefile or justfile are used only for the kinds that no toolchain covers, because they
/// usually run the same commands.
#[must_use]
pub fn propose(files: &Listing) -> Proposal {
    let ci = workflow::workflows(files);
    let mut left_out = ci.left_out;
    let mut guessed = guessed(files);
    let runner = tools::runner(files);
    if guessed.is_empty() && runner.is_empty() && ci.found.commands.is_empty() {
        guessed = parts(files, &mut left_out);
    }
    if ci.read.is_empty() {
        left_out.extend(other_ci(files));
    }
    let languages: Vec<&'static str> = guessed.iter().filter_map(|found| found.language).collect();
    let (setup, mut commands) = completed(ci.found, guessed, runner, &mut left_out);
    commands.sort_by_key(|command| command.kind);
    let of_commands = named(&commands).into_iter().zip(&commands);
    let checks: Vec<Found<Check>> = of_commands
        .map(|(what, command)| Found {
            what,
            from: command.from.clone(),
        })
        .collect();
    let needed: Vec<&str> = setup
        .iter()
        .map(|it| it.what.as_str())
        .chain(checks.iter().map(|it| it.what.run.as_str()))
        .collect();
    let needs = machine::Needs {
        languages: &languages,
        versions: &ci.versions,
        actions: &ci.actions,
        machine: &ci.machine,
        commands: &needed,
    };
    Proposal {
        steps: machine::steps(files, &needs),
        not_found: not_found(&ci.read, &checks),
        setup,
        checks,
        left_out,
        workflows: ci.read,
    }
}

/// The setup commands and checks of the project's CI, completed by those of the manifests and then of a task
/// runner.
fn completed(
    ci: Toolchain,
    guessed: Vec<Toolchain>,
    runner: Vec<Command>,
    left_out: &mut Vec<Found<String>>,
) -> (Vec<Found<String>>, Vec<Command>) {
    let (mut setup, mut commands) = (ci.setup, ci.commands);
    let has_tests = commands.iter().any(|it| it.kind == CheckKind::Test);
    let has_setup = !setup.is_empty();
    for found in guessed {
        let known = commands.clone();
        // What CI runs is proposed as CI runs it.
        let is_proposed = |it: &Found<String>| {
            let command = it.what.split(": ").next().unwrap_or_default();
            known.iter().any(|other| other.run.contains(command))
        };
        left_out.extend(found.left_out.into_iter().filter(|it| !is_proposed(it)));
        let is_new = |it: &Command| {
            let may_fail = format!("{}: {}", it.run, script::MAY_FAIL);
            left_out.iter().all(|other| other.what != may_fail)
                && known
                    .iter()
                    .all(|other| other.kind != it.kind || !other.is_of_ci())
        };
        // Where CI runs the tests without a command for the dependencies, an action has installed them.
        if !has_setup && (!has_tests || has_word(BY_ACTIONS, &found.from)) {
            setup.extend(found.setup);
        } else if !has_tests {
            let other = |it: &Found<String>| setup.iter().all(|known| !installs_same(known, it));
            let more: Vec<Found<String>> = found.setup.into_iter().filter(other).collect();
            setup.extend(more);
        }
        if !has_tests {
            commands.extend(found.commands.into_iter().filter(is_new));
        }
    }
    if !has_tests {
        for command in runner {
            if commands.iter().all(|other| other.kind != command.kind) {
                commands.push(command);
            }
        }
    }
    (setup, commands)
}

/// Maximum number of directories with a manifest of their own whose commands are proposed.
const MAX_PARTS: usize = 4;

/// The toolchains of the directories of a project without any manifest in its root.
fn parts(files: &Listing, left_out: &mut Vec<Found<String>>) -> Vec<Toolchain> {
    let mut found = Vec::new();
    let directories = files.directories().into_iter();
    let with_manifest = directories
        .map(|directory| (directory, guessed(&files.within(directory))))
        .filter(|(_, of_directory)| of_directory.iter().any(|it| !it.commands.is_empty()));
    for (at, (directory, of_directory)) in with_manifest.enumerate() {
        if at < MAX_PARTS {
            found.extend(
                of_directory
                    .into_iter()
                    .map(|it| it.in_directory(directory)),
            )
        } else {
            left_out.extend(of_directory.into_iter().map(|it| Found {
                what: format!(
                    "the commands of {directory}: {MAX_PARTS} directories are enough to begin with"
                ),
                from: format!("{directory}/{}", it.from),
            }))
        }
    }
    found
}

/// The files of other CI systems, whose commands are not read.
fn other_ci(files: &Listing) -> Vec<Found<String>> {
    let known = ".appveyor.yml .buildkite .circleci .cirrus.yml .drone.yml .gitlab-ci.yml .travis.yml .woodpecker
        .woodpecker.yml Jenkinsfile appveyor.yml azure-pipelines.yml bitbucket-pipelines.yml";
    let there = known.split_whitespace().filter(|name| files.has(name));
    there
        .map(|name| Found {
            what: format!(
                "what {name} runs: only workflows of GitHub are read, so compare the checks with it"
            ),
            from: name.to_owned(),
        })
        .collect()
}

/// Manifests whose dependencies an action of CI often installs, so that no command shows how.
const BY_ACTIONS: &str = "Gemfile composer.json gems.rb mix.exs package.json";

/// Whether two setup commands are of one package manager. Those of pip may install different things.
fn installs_same(one: &Found<String>, other: &Found<String>) -> bool {
    let program = |it: &Found<String>| it.what.split_whitespace().next().map(str::to_owned);
    let by_pip = |it: &Found<String>| {
        let (_, what) = it.what.split_once("pip install ")?;
        Some(what.replace(['\'', '"'], ""))
    };
    match by_pip(other) {
        Some(what) => by_pip(one) == Some(what),
        None => program(one) == program(other),
    }
}

/// Whether a command installs for the user or the machine, and not in the work tree only.
#[must_use]
pub fn installs_for_the_machine(command: &str) -> bool {
    command::purpose(command) == Some(command::Purpose::Machine)
}

fn not_found(workflows: &[String], checks: &[Found<Check>]) -> Vec<String> {
    let mut missing = Vec::new();
    if workflows.is_empty() {
        missing.push(format!(
            "a workflow in {WORKFLOWS} that runs for a push or a pull request"
        ));
    }
    for (kind, what) in [
        (CheckKind::Build, "a command that builds the project"),
        (CheckKind::Test, "a command that tests it"),
        (CheckKind::Lint, "a linter that its setup installs"),
    ] {
        if checks.iter().all(|check| check.what.kind != kind) {
            missing.push(what.to_owned());
        }
    }
    missing
}

/// The commands that one manifest of the project offers.
#[derive(Debug, Default, PartialEq, Eq)]
struct Toolchain {
    /// The manifest.
    from: String,
    /// The language that a runner must have, if [`machine`] can install it.
    language: Option<&'static str>,
    setup: Vec<Found<String>>,
    commands: Vec<Command>,
    left_out: Vec<Found<String>>,
}

impl Toolchain {
    fn of(from: &str) -> Self {
        Self {
            from: from.to_owned(),
            ..Self::default()
        }
    }

    fn in_language(from: &str, language: &'static str) -> Self {
        Self {
            language: Some(language),
            ..Self::of(from)
        }
    }

    /// The same commands for a project in a directory of the root.
    fn in_directory(mut self, directory: &str) -> Self {
        let setup = self.setup.iter_mut().map(|it| (&mut it.what, &mut it.from));
        let is_plain = |c: &char| c.is_ascii_alphanumeric() || *c == '-';
        let name: String = directory.chars().filter(is_plain).collect();
        for command in self.commands.iter_mut().filter(|_| !name.is_empty()) {
            command.tool.clone_from(&name);
        }
        let commands = self
            .commands
            .iter_mut()
            .map(|it| (&mut it.run, &mut it.from));
        for (run, from) in setup.chain(commands) {
            *run = script::from_root(run, directory, &[]);
            *from = format!("{from} in {directory}");
        }
        for found in &mut self.left_out {
            found.from = format!("{} in {directory}", found.from);
        }
        self
    }

    fn setup(&mut self, command: impl Into<String>) {
        self.setup.push(Found {
            what: command.into(),
            from: self.from.clone(),
        });
    }

    fn check(&mut self, tool: &str, kind: CheckKind, run: impl Into<String>) {
        let from = self.from.clone();
        self.check_from(tool, kind, run, from);
    }

    fn check_from(&mut self, tool: &str, kind: CheckKind, run: impl Into<String>, from: String) {
        self.commands.push(Command {
            tool: tool.to_owned(),
            kind,
            run: run.into(),
            from,
        });
    }

    fn leave_out(&mut self, what: impl Into<String>) {
        self.left_out.push(Found {
            what: what.into(),
            from: self.from.clone(),
        });
    }
}

/// A check without a name.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Command {
    tool: String,
    kind: CheckKind,
    run: String,
    from: String,
}

impl Command {
    fn is_of_ci(&self) -> bool {
        self.from.starts_with(".github/")
    }
}

fn guessed(files: &Listing) -> Vec<Toolchain> {
    let mut found: Vec<Toolchain> = [
        tools::cargo,
        node::package,
        node::deno,
        python::project,
        tools::dotnet,
        tools::ruby,
        tools::php,
        tools::cmake,
        tools::zig,
    ]
    .into_iter()
    .filter_map(|detect| detect(files))
    .collect();
    found.extend(tools::simple(files));
    found
}

/// The commands as checks, each with the shortest unique name: its kind, else what it does, else its tool.
fn named(commands: &[Command]) -> Vec<Check> {
    let of_kind = |kind| commands.iter().filter(move |it| it.kind == kind).count();
    let is_alone = |command: &Command| of_kind(command.kind) == 1;
    let words: Vec<Option<String>> = commands
        .iter()
        .map(|command| {
            if is_alone(command) {
                Some(kind_word(command.kind).to_owned())
            } else {
                command::word(&command.run).filter(|word| word != kind_word(command.kind))
            }
        })
        .collect();
    let mut names: Vec<String> = Vec::new();
    for (command, word) in commands.iter().zip(&words) {
        let is_unique =
            |word: &&String| words.iter().flatten().filter(|it| it == word).count() == 1;
        let own = word.as_ref().filter(is_unique).cloned();
        let name = own.unwrap_or_else(|| format!("{}-{}", command.tool, kind_word(command.kind)));
        let mut numbered = (2..).map(|number| format!("{name}-{number}"));
        let free = if names.contains(&name) {
            numbered.find(|name| !names.contains(name))
        } else {
            Some(name.clone())
        };
        names.push(free.unwrap_or(name));
    }
    let checks = commands.iter().zip(names);
    checks.map(|(command, name)| check(command, name)).collect()
}

fn kind_word(kind: CheckKind) -> &'static str {
    match kind {
        CheckKind::Build => "build",
        CheckKind::Test => "test",
        CheckKind::Lint => "lint",
        CheckKind::Other => "check",
    }
}

fn check(command: &Command, name: String) -> Check {
    Check {
        name,
        run: command.run.clone(),
        kind: command.kind,
        timeout_ms: CHECK_TIMEOUT_MS,
        junit: None,
        problem_matcher: None,
    }
}
