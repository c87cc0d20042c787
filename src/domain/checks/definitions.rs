//! The files that decide what a check does: the programs and scripts of the work tree that its command names,
//! the ones that these name in turn, and the files that the programs it runs are known to read.
//!
//! A change to one of these files may make a check pass without doing the work. The files are therefore
//! determined from the state at the start of the task, never from what an agent left.

mod configured;
mod families;
mod manifests;
mod modules;
mod part;
mod rust_tests;
mod shell;
mod table;
mod vendored;
mod walk;

pub use part::{Part, Restored};

use super::tests_changed::is_test;
use families::FAMILIES;
use std::collections::BTreeSet;
use table::Added;

/// The entry at a path at the start of the task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// A file.
    File {
        /// Whether the file is executable.
        executable: bool,
    },
    /// A directory.
    Directory,
    /// A symbolic link, with its target.
    Link(String),
}

/// The state at the start of the task. Paths are relative to the top of the work tree.
pub trait Start {
    /// The entry at a path; links are not followed.
    fn entry(&self, path: &str) -> Option<Entry>;
    /// The content of a file, if it is text within a size limit.
    fn read(&self, path: &str) -> Option<String>;
    /// The names of the files and directories in a directory; an empty path stands for the top.
    fn names_in(&self, dir: &str) -> Vec<String>;
    /// Whether there are any test files below a directory; an empty path stands for the top.
    fn has_tests_below(&self, dir: &str) -> bool;
}

/// How a path affects the checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// A test: its content decides the result, and a new one adds to the existing tests.
    Test,
    /// Part of how a check is defined.
    Definition(Part),
}

/// The files that define a set of checks.
#[derive(Debug, Default)]
pub struct Definitions {
    families: BTreeSet<usize>,
    /// Whether a command runs a test runner that always reports a result.
    runs_tests: bool,
    /// Programs, scripts and configuration files of the work tree, and links on the paths to them.
    named: BTreeSet<String>,
    /// Programs that a package manager has installed in the work tree.
    installed: BTreeSet<String>,
    /// Names of programs outside of the work tree that commands run.
    programs: BTreeSet<String>,
    /// Whether a command runs programs of a virtual environment in the work tree.
    runs_environment: bool,
    /// Whether a command changes where programs are found.
    sets_path: bool,
    /// Files that would run instead of an installed module.
    shadows: BTreeSet<String>,
    /// Directories from which Python loads modules before its own.
    module_dirs: BTreeSet<String>,
    /// Files, and patterns for files, that a definition reads if they exist.
    optional: BTreeSet<String>,
    /// What make would make if it did not exist.
    goals: BTreeSet<String>,
    /// Directories in which commands run, other than the top of the work tree.
    directories: BTreeSet<String>,
    /// Directories and files that a command passes to a test runner.
    tests: BTreeSet<String>,
    /// Patterns for the paths of tests that a shell runs.
    test_paths: BTreeSet<String>,
    /// Names of test files that the project configures.
    test_names: BTreeSet<String>,
}

impl Definitions {
    /// Directories in which package managers install programs, relative to the top of a package.
    pub const INSTALLED: &'static [&'static str] = table::INSTALLED;

    /// The definitions of these command lines, which run at the top of the work tree.
    pub fn of<'a>(commands: impl IntoIterator<Item = &'a str>, start: &dyn Start) -> Self {
        walk::definitions(commands, start)
    }

    /// How a path that existed at the start affects the checks.
    pub fn of_old(&self, path: &str) -> Option<Role> {
        if self.optional.iter().any(|name| fits(name, path)) {
            return Some(WHOLE);
        }
        if vendored::is_framework(path) {
            return Some(WHOLE);
        }
        if self.listed(path).is_none() && self.configures_a_program(path) {
            return Some(WHOLE);
        }
        if self.named.contains(path) {
            return Some(
                self.listed(path)
                    .map_or(WHOLE, |file| Role::Definition(file.part)),
            );
        }
        let is_own_test = self.is_test(path);
        match self.listed(path) {
            // Tests inside a source file are a part of it; a file of tests is a test as a whole.
            Some(file) if file.part == Part::RustTests && is_own_test => Some(Role::Test),
            Some(file) => Some(Role::Definition(file.part)),
            None => is_own_test.then_some(Role::Test),
        }
    }

    /// How a new path affects the checks. It is a definition only if it may override an existing definition
    /// or leave out existing tests.
    pub fn of_new(&self, path: &str, start: &dyn Start) -> Option<Role> {
        let shadows = self.shadows.contains(path) || self.replaces_a_module(path);
        let is_read = self.optional.iter().any(|name| fits(name, path));
        let is_new = |goal: &str| start.entry(goal) != Some(Entry::Directory);
        let mut goals = self.goals.iter().filter(|goal| is_at_or_below(goal, path));
        let is_goal = goals.any(|goal| is_new(goal));
        // mypy and others read it instead of the module.
        let is_stub = path.ends_with(".pyi") && start.entry(path.trim_end_matches('i')).is_some();
        let is_in_place = self.is_test(path) && takes_the_place(path, start);
        // Python prefers a module to a directory without `__init__.py`.
        let package = path.strip_suffix(".py").unwrap_or_default();
        let is_package = !package.is_empty() && start.entry(package) == Some(Entry::Directory);
        let is_in_place = is_in_place
            || is_package
                && start.has_tests_below(package)
                && start.entry(&joined(package, "__init__.py")).is_none();
        let is_read = is_read || self.configures_a_program(path);
        let is_found_first = self.sets_path && table::USUAL_PROGRAMS.contains(&base(path));
        let shadows = shadows && start.has_tests_below("");
        if is_read || is_goal || is_stub || is_in_place || is_found_first || shadows {
            return Some(WHOLE);
        }
        let listed = self.listed(path);
        match listed.filter(|file| counts_when_added(file.added, path, start)) {
            Some(file) => Some(Role::Definition(file.part)),
            None if !self.is_test(path) => None,
            None => Some(Role::Test),
        }
    }

    /// Targets of make that may not have existed when the task started. While such a file exists, make need not
    /// run its recipe.
    pub fn goals(&self) -> impl Iterator<Item = &str> {
        self.goals.iter().map(String::as_str)
    }

    /// The programs and scripts of the work tree that the checks run, including those that a package manager
    /// installed there.
    pub fn programs(&self) -> impl Iterator<Item = &str> {
        self.named.iter().chain(&self.installed).map(String::as_str)
    }

    /// Whether the checks find a program in this directory of installed programs before those of the machine.
    pub fn finds_first(&self, directory: &str) -> bool {
        self.runs_environment || !directory.ends_with("venv/bin")
    }

    /// The directories below the top of the work tree in which commands run.
    pub fn directories(&self) -> Vec<String> {
        self.directories.iter().cloned().collect()
    }

    /// Whether the checks run a test runner that reports a result whenever its tests end.
    pub fn runs_tests(&self) -> bool {
        self.runs_tests
    }

    /// The names of the ecosystems whose programs the checks run.
    pub fn families(&self) -> Vec<&'static str> {
        let families = self.families.iter().filter_map(|at| FAMILIES.get(*at));
        families.map(|family| family.name).collect()
    }

    /// Whether Python would load a new file instead of a module of its own or of a test runner.
    fn replaces_a_module(&self, path: &str) -> bool {
        self.module_dirs.iter().any(|dir| {
            let below = if dir.is_empty() {
                Some(path)
            } else {
                path.strip_prefix(dir.as_str())
                    .and_then(|it| it.strip_prefix('/'))
            };
            let module = below.and_then(|it| match it.split_once('/') {
                Some((package, _)) => Some(package),
                None => is_of_python(it).then(|| it.split('.').next()).flatten(),
            });
            module.is_some_and(modules::is_known_to_python)
        })
    }

    /// Whether a file has the name under which a program that the checks run looks for its configuration, in a
    /// directory in which one looks.
    fn configures_a_program(&self, path: &str) -> bool {
        let dir = parent(path)
            .trim_end_matches(".cargo")
            .trim_end_matches(".config")
            .trim_end_matches('/');
        let is_above = |place: &String| is_at_or_below(dir, place);
        // Linters look for hidden files beside each file that they judge.
        let is_found = dir.is_empty() || base(path).starts_with('.');
        (is_found || self.directories.iter().any(is_above))
            && self
                .programs
                .iter()
                .any(|program| is_configuration(program, base(path)))
    }

    fn listed(&self, path: &str) -> Option<&'static table::File> {
        let families = self.families.iter().filter_map(|at| FAMILIES.get(*at));
        let mut files = families.flat_map(|family| family.files);
        files.find(|file| names_path(file.name, path))
    }

    fn is_test(&self, path: &str) -> bool {
        is_test(path)
            || self.tests.iter().any(|dir| is_at_or_below(dir, path))
            || self.test_paths.iter().any(|name| fits(name, path))
            || self.test_names.iter().any(|name| fits(name, base(path)))
    }
}

const WHOLE: Role = Role::Definition(Part::Whole);

fn counts_when_added(added: Added, path: &str, start: &dyn Start) -> bool {
    match added {
        Added::Never => false,
        Added::Always => true,
        Added::WithTests => start.has_tests_below(""),
        Added::InDirectory => {
            path.contains('/') && start.entry(parent(path)) == Some(Entry::Directory)
        }
        Added::AboveTests => path.contains('/') && start.has_tests_below(parent(path)),
        Added::Beside(others) => {
            let dirs = [parent(path), parent(parent(path)), ""];
            let paths = dirs
                .iter()
                .flat_map(|dir| others.iter().map(|name| joined(dir, name)));
            paths.into_iter().any(|path| start.entry(&path).is_some())
        }
    }
}

/// Whether a file name is that of a program's configuration or list of exceptions by the usual conventions:
/// `knip.json`, `.vale.ini`, `hardhat.config.js`, `.semgrepignore`, `.haml-lint_todo.yml`.
fn is_configuration(program: &str, name: &str) -> bool {
    const DATA: &[&str] = &[
        "cfg", "conf", "config", "hcl", "ini", "json", "json5", "jsonc", "toml", "xml", "yaml",
        "yml",
    ];
    let plain = name.strip_prefix('.').unwrap_or(name);
    const CODE: &[&str] = &["cjs", "js", "mjs", "php", "py", "rb", "ts"];
    const KINDS: &[&str] = &[
        "allowlist",
        "baseline",
        "config",
        "configuration",
        "exclude",
        "ignore",
        "local",
        "opts",
        "rc",
        "suppressions",
        "todo",
    ];
    let stem = program.trim_end_matches(|c: char| c.is_ascii_digit());
    let rest = plain.strip_prefix(program).or(plain.strip_prefix(stem));
    let Some(rest) = rest.filter(|_| !stem.is_empty()) else {
        return false;
    };
    let (kind, ending) = rest.rsplit_once('.').unwrap_or((rest, ""));
    match kind {
        "" if name.starts_with('.') => rest.is_empty() || [DATA, CODE].concat().contains(&ending),
        "" => DATA.contains(&ending),
        ".conf" | ".setup" => true,
        _ if KINDS.contains(&kind.trim_start_matches(['-', '.', '_'])) => true,
        _ => kind.starts_with('.') && kind != ".lock" && DATA.contains(&ending),
    }
}

/// Whether a new file among the tests would be loaded instead of one of the work or of Python. Test runners look
/// for modules beside the tests first, compilers for headers, and the Java virtual machine for classes. A new
/// `package.json` says how those beside it find modules, and a `node_modules` has them.
fn takes_the_place(path: &str, start: &dyn Start) -> bool {
    let name = base(path);
    if name == "package.json" {
        return start.entry(parent(path)) == Some(Entry::Directory);
    }
    if let Some((before, _)) = path.split_once("/node_modules/") {
        return is_test(&joined(before, "x"));
    }
    let (stem, ending) = match name.rsplit_once('.') {
        // What Python has compiled, or loads as a library, may have several endings.
        Some(_) if is_of_python(name) => (name.split('.').next().unwrap_or_default(), "py"),
        Some(both) => both,
        None => return false,
    };
    let is_there = |dirs: &[&str]| {
        let mut others = counterparts(path, dirs);
        others.any(|other| start.entry(&other).is_some())
    };
    let is_module = |module: &str| {
        let is_own = ["__init__", "__main__", "test", "tests"].contains(&base(module));
        let is_same = |other: String| {
            let file = format!("{other}.{ending}");
            // Nothing loads a module with the name of a test.
            (!is_test(&file) && start.entry(&file).is_some())
                || start.entry(&other) == Some(Entry::Directory)
        };
        !is_own && counterparts(module, OF_WORK).any(is_same)
    };
    if shadows_a_helper(path, (stem, ending), start) {
        return true;
    }
    let module = joined(parent(path), stem);
    match ending {
        "py" if stem == "__init__" => {
            let package = parent(path);
            let is_nested = || start.entry(&joined(parent(package), name)).is_some();
            is_module(package) && !is_nested()
        }
        "py" => is_module(&module) || modules::is_known_to_python(stem) && stem != "test",
        "rb" => is_module(&module),
        "pm" => is_there(&["lib"]),
        "h" | "hh" | "hpp" | "hxx" => is_there(OF_WORK) || is_there(&["include"]),
        "groovy" | "java" | "kt" | "scala" => {
            let of_main = path.replacen("/test/", "/main/", 1);
            of_main != path && start.entry(&of_main).is_some()
        }
        _ => false,
    }
}

/// Whether Python loads a file of this name as a module.
fn is_of_python(name: &str) -> bool {
    let endings = [".py", ".pyc", ".pyd", ".so"];
    endings.iter().any(|ending| name.ends_with(ending))
}

/// The paths that are left of a path without some of its directories, with one of `dirs` in their place:
/// `web/src/a.py` for `web/tests/a.py`. Tests are not among them.
fn counterparts<'p>(path: &'p str, dirs: &'p [&str]) -> impl Iterator<Item = String> + 'p {
    let above = std::iter::successors(Some(parent(path)), |dir| {
        (!dir.is_empty()).then(|| parent(dir))
    });
    let all =
        above.flat_map(move |above| below_each_directory(path).map(move |rest| (above, rest)));
    let shorter = all.filter(|(above, rest)| above.len() + rest.len() + 1 < path.len());
    let all = shorter.flat_map(move |(above, rest)| {
        let dirs = dirs.iter();
        dirs.map(move |dir| joined(&joined(above, dir), rest))
    });
    all.filter(|other| !is_test(other))
}

/// Whether a new file among the tests may be loaded instead of a helper that other tests load: pytest looks for modules in
/// the directory of every test that it has found, and Node adds endings to a name in an order of its own.
fn shadows_a_helper(path: &str, (stem, ending): (&str, &str), start: &dyn Start) -> bool {
    const JAVASCRIPT: &[&str] = &[
        "cjs", "cts", "js", "json", "jsx", "mjs", "mts", "node", "ts", "tsx",
    ];
    let dir = parent(path);
    if JAVASCRIPT.contains(&ending) {
        return start
            .names_in(dir)
            .iter()
            .any(|name| match name.rsplit_once('.') {
                Some((other, ending)) => other == stem && JAVASCRIPT.contains(&ending),
                None => name == stem,
            });
    }
    // Nothing loads a module with the name of a test, and `conftest.py` is listed.
    let is_test_module = stem.starts_with("test") || stem.ends_with("_test");
    if ending != "py" || is_test_module || stem.starts_with("__") || stem == "conftest" {
        return false;
    }
    let is_there = |dir: &str| {
        let names = [format!("{stem}.py"), format!("{stem}/__init__.py")];
        let mut others = names.iter().map(|name| joined(dir, name));
        others.any(|other| is_test(&other) && start.entry(&other).is_some())
    };
    let mut above = std::iter::successors(Some(dir), |dir| (!dir.is_empty()).then(|| parent(dir)));
    above.any(|above| {
        let beside = start.names_in(above).into_iter();
        is_there(above)
            || beside
                .map(|name| joined(above, &name))
                .any(|dir| is_there(&dir))
    })
}

/// Directories in which the work usually lies.
const OF_WORK: &[&str] = &["", "src", "lib"];

/// What is left of a path without its first directories.
fn below_each_directory(path: &str) -> impl Iterator<Item = &str> {
    let ends = path.match_indices('/');
    ends.filter_map(|(at, _)| path.get(at + 1..))
}

fn is_at_or_below(dir: &str, path: &str) -> bool {
    let rest = path.strip_prefix(dir);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn base(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(parent, _)| parent)
}

fn joined(dir: &str, name: &str) -> String {
    match (dir, name) {
        ("", name) => name.to_owned(),
        (dir, "") => dir.to_owned(),
        (dir, name) => format!("{dir}/{name}"),
    }
}

/// Whether a name from the table matches a path.
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

/// Whether a text matches a pattern in which `*` stands for any text.
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
