//! What a project is made with, told from the files in its root: the checks and the setup commands
//! that `sprag init` proposes.
//!
//! Pure: [`Listing`] holds what was read. A command is proposed only where the project says that it
//! has it, because a check that never passes is worse than none.

mod node;
mod python;
mod tools;

#[cfg(test)]
mod tests;

use crate::domain::checks::verdict::{Check, CheckKind};
use std::collections::{BTreeMap, BTreeSet};

/// Limit of one run of a proposed check, in milliseconds: the default of `verify_timeout`.
pub const CHECK_TIMEOUT_MS: u64 = 600_000;

/// The files of a root whose text is looked at; of all others the name is enough.
pub const MANIFESTS: [&str; 19] = [
    "CMakeLists.txt",
    "Cargo.toml",
    "GNUmakefile",
    "Justfile",
    "Makefile",
    "Pipfile",
    "composer.json",
    "deno.json",
    "deno.jsonc",
    "justfile",
    "makefile",
    "package.json",
    "pyproject.toml",
    "requirements-dev.txt",
    "requirements.txt",
    "setup.cfg",
    "setup.py",
    "tox.ini",
    ".justfile",
];

/// The root of a project: the names in it, and the text of its [`MANIFESTS`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listing {
    names: BTreeSet<String>,
    texts: BTreeMap<String, String>,
}

impl Listing {
    /// A root in which nothing has been seen.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a file or directory of the root whose text does not matter.
    pub fn name(&mut self, name: impl Into<String>) {
        self.names.insert(name.into());
    }

    /// Adds a file of the root with its text.
    pub fn text(&mut self, name: impl Into<String>, text: impl Into<String>) {
        let name = name.into();
        self.names.insert(name.clone());
        self.texts.insert(name, text.into());
    }

    fn has(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    fn has_any(&self, names: &[&str]) -> bool {
        names.iter().any(|name| self.has(name))
    }

    /// The text of a file, empty if it was not read.
    fn read(&self, name: &str) -> &str {
        self.texts.get(name).map_or("", String::as_str)
    }

    /// The names with one of these endings, in order.
    fn ending<'a>(&'a self, endings: &'a [&str]) -> impl Iterator<Item = &'a str> {
        self.names
            .iter()
            .map(String::as_str)
            .filter(|name| endings.iter().any(|ending| name.ends_with(ending)))
    }

    /// Whether a line of the file, without blanks around it, starts with this.
    fn line_starts(&self, name: &str, start: &str) -> bool {
        self.read(name)
            .lines()
            .any(|line| line.trim().starts_with(start))
    }
}

/// The checks that fit the project: for each of its toolchains build, test and lint as far as it
/// has them, in this order. Names are unique: `test`, or `cargo-test` and `npm-test` where two
/// toolchains have tests. Empty if nothing was recognised.
///
/// Targets of a makefile or justfile stand in only for the kinds that no toolchain covers, since
/// they mostly run the same commands again.
#[must_use]
pub fn propose_checks(files: &Listing) -> Vec<Check> {
    let mut commands: Vec<Command> = toolchains(files)
        .into_iter()
        .flat_map(|toolchain| toolchain.commands)
        .collect();
    for command in tools::runner(files) {
        if commands.iter().all(|other| other.kind != command.kind) {
            commands.push(command);
        }
    }
    commands.sort_by_key(|command| command.kind);
    (0..commands.len())
        .map(|index| named(&commands, index))
        .collect()
}

/// The commands that fetch what the project needs before its checks can run, such as `npm ci`.
#[must_use]
pub fn propose_setup(files: &Listing) -> Vec<String> {
    toolchains(files)
        .into_iter()
        .flat_map(|toolchain| toolchain.setup)
        .collect()
}

/// What one manifest of the project offers.
#[derive(Debug, Default, PartialEq, Eq)]
struct Toolchain {
    setup: Vec<String>,
    commands: Vec<Command>,
}

impl Toolchain {
    fn setup(&mut self, command: impl Into<String>) {
        self.setup.push(command.into());
    }

    fn check(&mut self, tool: &'static str, kind: CheckKind, run: impl Into<String>) {
        self.commands.push(Command {
            tool,
            kind,
            run: run.into(),
        });
    }
}

/// A check that has no name yet.
#[derive(Debug, PartialEq, Eq)]
struct Command {
    tool: &'static str,
    kind: CheckKind,
    run: String,
}

fn toolchains(files: &Listing) -> Vec<Toolchain> {
    let mut found: Vec<Toolchain> = [
        tools::cargo,
        node::package,
        node::deno,
        tools::go,
        python::project,
        tools::jvm,
        tools::dotnet,
        tools::ruby,
        tools::php,
        tools::cmake,
    ]
    .into_iter()
    .filter_map(|detect| detect(files))
    .collect();
    found.extend(tools::simple(files));
    found
}

/// Gives a command the plainest name that no other has.
fn named(commands: &[Command], index: usize) -> Check {
    let command = &commands[index];
    let kind = match command.kind {
        CheckKind::Build => "build",
        CheckKind::Test => "test",
        CheckKind::Lint => "lint",
        CheckKind::Other => "check",
    };
    let others = || {
        commands
            .iter()
            .enumerate()
            .filter(|(at, other)| *at != index && other.kind == command.kind)
    };
    let same_tool_before = others()
        .filter(|(at, other)| *at < index && other.tool == command.tool)
        .count();
    let name = if others().next().is_none() {
        kind.to_owned()
    } else if same_tool_before == 0 {
        format!("{}-{kind}", command.tool)
    } else {
        format!("{}-{kind}-{}", command.tool, same_tool_before + 1)
    };
    Check {
        name,
        run: command.run.clone(),
        kind: command.kind,
        timeout_ms: CHECK_TIMEOUT_MS,
        junit: None,
        problem_matcher: None,
    }
}
