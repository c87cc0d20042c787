//! Which files decide what a check does: the programs and scripts of the work tree that its command
//! names, what these name in turn, and what the programs that it runs are known to read.
//!
//! Who changes one of these files may make a check pass without doing the work. So it is told from the
//! state on which the task started, never from what an agent has made of it.

mod families;
mod part;
mod shell;
mod table;
mod walk;

pub use part::{Part, Restored};
pub(super) use shell::commands;
pub use shell::is_assignment;

use super::tests_changed::is_test;
use families::FAMILIES;
use std::collections::BTreeSet;
use table::Added;

/// What lies at a path of the state on which the task started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// A file.
    File {
        /// Whether it may be run.
        executable: bool,
    },
    /// A directory.
    Directory,
    /// A symbolic link, with what it holds.
    Link(String),
}

/// The state on which the task started. Paths are relative to the top of the work tree.
pub trait Start {
    /// What lies at a path; links are not followed.
    fn entry(&self, path: &str) -> Option<Entry>;
    /// The content of a file, as far as it is text of a bounded size.
    fn read(&self, path: &str) -> Option<String>;
    /// Whether any file is one of tests.
    fn has_tests(&self) -> bool;
}

/// What a path is to the checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// A test: what it holds decides, and a new one adds to what was decided before.
    Test,
    /// Part of how a check is defined.
    Definition(Part),
}

/// What a set of checks is defined by.
#[derive(Debug, Default)]
pub struct Definitions {
    families: BTreeSet<usize>,
    /// Programs, scripts and configuration files of the work tree, and links on the way to them.
    named: BTreeSet<String>,
    /// Programs that a package manager has installed in the work tree.
    installed: BTreeSet<String>,
    /// Files that would be run in the place of a module that is installed.
    shadows: BTreeSet<String>,
    /// Directories and files that a test runner is given.
    tests: BTreeSet<String>,
    /// Names of test files that the project has chosen.
    test_names: BTreeSet<String>,
}

impl Definitions {
    /// Directories in which package managers install programs, relative to the top of a package.
    pub const INSTALLED: &'static [&'static str] = table::INSTALLED;

    /// What these command lines are defined by, run in the top of the work tree.
    pub fn of<'a>(commands: impl IntoIterator<Item = &'a str>, start: &dyn Start) -> Self {
        walk::definitions(commands, start)
    }

    /// What a path that existed at the start is to the checks.
    pub fn of_old(&self, path: &str) -> Option<Role> {
        if self.named.contains(path) {
            return Some(
                self.listed(path)
                    .map_or(WHOLE, |file| Role::Definition(file.part)),
            );
        }
        let is_own_test = self.is_test(path);
        match self.listed(path) {
            // Tests inside of a source file are a part of it; a file of tests is one as a whole.
            Some(file) if file.part == Part::RustTests && is_own_test => Some(Role::Test),
            Some(file) => Some(Role::Definition(file.part)),
            None => is_own_test.then_some(Role::Test),
        }
    }

    /// What a new path is to the checks. A definition is one only where something was decided before
    /// that it may change.
    pub fn of_new(&self, path: &str, start: &dyn Start) -> Option<Role> {
        let shadows = self.shadows.contains(path) && start.has_tests();
        let replaces = self
            .listed(path)
            .is_some_and(|file| counts_when_added(file.added, path, start));
        match shadows || replaces {
            true => Some(WHOLE),
            false => self.is_test(path).then_some(Role::Test),
        }
    }

    /// Programs and scripts of the work tree that the checks run, those included that a package manager has
    /// installed there.
    pub fn programs(&self) -> impl Iterator<Item = &str> {
        self.named.iter().chain(&self.installed).map(String::as_str)
    }

    /// Names of the ecosystems of which a program is run.
    pub fn families(&self) -> Vec<&'static str> {
        let families = self.families.iter().filter_map(|at| FAMILIES.get(*at));
        families.map(|family| family.name).collect()
    }

    fn listed(&self, path: &str) -> Option<&'static table::File> {
        let families = self.families.iter().filter_map(|at| FAMILIES.get(*at));
        let mut files = families.flat_map(|family| family.files);
        files.find(|file| names_path(file.name, path))
    }

    fn is_test(&self, path: &str) -> bool {
        let is_below = |dir: &String| {
            let rest = path.strip_prefix(dir.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        is_test(path)
            || self.tests.iter().any(is_below)
            || self.test_names.iter().any(|name| fits(name, base(path)))
    }
}

const WHOLE: Role = Role::Definition(Part::Whole);

fn counts_when_added(added: Added, path: &str, start: &dyn Start) -> bool {
    match added {
        Added::Never => false,
        Added::WithTests => start.has_tests(),
        Added::Beside(others) => {
            let dirs = [parent(path), parent(parent(path)), ""];
            let paths = dirs
                .iter()
                .flat_map(|dir| others.iter().map(|name| joined(dir, name)));
            paths.into_iter().any(|path| start.entry(&path).is_some())
        }
    }
}

fn base(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(parent, _)| parent)
}

fn joined(dir: &str, name: &str) -> String {
    match dir.is_empty() {
        true => name.to_owned(),
        false => format!("{dir}/{name}"),
    }
}

/// Whether a row of the table names a path.
fn names_path(name: &str, path: &str) -> bool {
    if let Some(dir) = name.strip_suffix('/') {
        return path.starts_with(name) || path.contains(&format!("/{dir}/"));
    }
    let depth = name.matches('/').count();
    let start = path
        .rmatch_indices('/')
        .nth(depth)
        .map_or(0, |(at, _)| at + 1);
    path.get(start..).is_some_and(|end| fits(name, end))
}

/// Whether a text fits a pattern in which `*` stands for anything.
fn fits(pattern: &str, text: &str) -> bool {
    let mut pieces = pattern.split('*');
    let first = pieces.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    let mut ends = true;
    let mut pieces = pieces.peekable();
    while let Some(piece) = pieces.next() {
        ends = piece.is_empty();
        if pieces.peek().is_none() {
            return rest.ends_with(piece);
        }
        match rest.find(piece) {
            Some(at) => rest = rest.get(at + piece.len()..).unwrap_or_default(),
            None => return false,
        }
    }
    ends && rest.is_empty()
}

#[cfg(test)]
mod tests;
