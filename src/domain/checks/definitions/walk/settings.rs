//! Follows what makefiles include, and what the configuration of test runners names.

use super::super::configured::{
    self, CONFIGURATIONS, ENDINGS, OF_LINTERS, OF_PHPUNIT, OF_PYTEST, OF_RSPEC,
};
use super::super::table::PRODUCT_DIRECTORIES;
use super::super::{Entry, base, joined, parent};
use super::words::{prepares_tests, says_that_it_checks};
use super::{MAX_DEPTH, Place, Walk};
use crate::pattern::Pattern;
use std::collections::BTreeSet;

impl Walk<'_> {
    /// The text of a makefile with the files that it includes, which are recorded. A file that does not exist
    /// may be added.
    pub(super) fn with_included(&mut self, path: &str, here: &Place, depth: u32) -> String {
        let text = self.start.read(path).unwrap_or_default();
        let is_new = self.found.named.insert(path.to_owned());
        if depth > MAX_DEPTH || (depth > 0 && !is_new) {
            return text;
        }
        let included: Vec<String> = INCLUDE
            .captures_iter(&text)
            .flat_map(|found| {
                found[1]
                    .split_whitespace()
                    .map(str::to_owned)
                    .collect::<Vec<_>>()
            })
            .filter(|name| !name.contains('$'))
            .collect();
        for found in WILDCARD.captures_iter(&text) {
            self.found.optional.insert(joined(&here.dir, &found[1]));
        }
        let mut whole = text;
        for name in included {
            match self.resolve(here, &name) {
                Some((path, Entry::File { .. })) => {
                    whole.push('\n');
                    whole.push_str(&self.with_included(&path, here, depth + 1));
                }
                _ if !name.starts_with('/') => {
                    self.found.optional.insert(joined(&here.dir, &name));
                }
                _ => {}
            }
        }
        whole
    }

    /// Records what the configuration of the test runners names.
    pub(super) fn read_configurations(&mut self) {
        let families = self.found.families();
        let dirs = self.configured_directories();
        let in_each = |names: &[&str]| -> BTreeSet<String> {
            let all = dirs.iter();
            all.flat_map(|dir| names.iter().map(move |name| joined(dir, name)))
                .collect()
        };
        if families.contains(&"JavaScript") {
            let mut paths = in_each(&[CONFIGURATIONS, OF_LINTERS].concat());
            paths.extend(self.configurations.iter().cloned());
            for path in paths {
                self.configuration(&path, 0);
            }
        }
        if families.contains(&"Python") {
            for path in in_each(OF_PYTEST) {
                self.plugins_of_pytest(&path, &dirs);
            }
        }
        for (family, names) in [("PHP", OF_PHPUNIT), ("Ruby", OF_RSPEC)] {
            for path in in_each(names)
                .into_iter()
                .filter(|_| families.contains(&family))
            {
                self.loaded_at_start(&path);
            }
        }
    }

    /// The directories in which commands run or which are packages of the workspace.
    fn configured_directories(&self) -> BTreeSet<String> {
        let mut dirs = self.packages(&Place::default());
        dirs.extend(self.found.directories.iter().cloned());
        dirs
    }

    fn plugins_of_pytest(&mut self, path: &str, dirs: &BTreeSet<String>) {
        let text = self.start.read(path).unwrap_or_default();
        for module in configured::plugins_of_pytest(&text) {
            let module = module.replace('.', "/");
            for dir in dirs
                .iter()
                .flat_map(|dir| [dir.clone(), joined(dir, "src")])
            {
                for end in [".py", "/__init__.py"] {
                    let found = self.resolve_from(&dir, &format!("{module}{end}"));
                    if let Some((path, Entry::File { .. })) = found {
                        self.found.named.insert(path);
                    }
                }
            }
        }
    }

    /// Records the files that PHPUnit and RSpec load before all tests.
    fn loaded_at_start(&mut self, path: &str) {
        let text = self.start.read(path).unwrap_or_default();
        let dir = parent(path);
        for found in LOADED.captures_iter(&text) {
            let Some(file) = self.module_at(dir, &found[1]) else {
                continue;
            };
            if !is_work(&file, dir) {
                self.found.named.insert(file);
            }
        }
    }

    fn configuration(&mut self, path: &str, depth: u32) {
        let of_javascript = [
            ".js", ".cjs", ".mjs", ".ts", ".mts", ".json", ".jsonc", ".yml", ".yaml",
        ];
        let is_of_linter = OF_LINTERS.contains(&base(path)) || base(path).starts_with("tsconfig");
        let is_read = is_of_linter || of_javascript.iter().any(|end| path.ends_with(end));
        if !is_read || depth > MAX_DEPTH {
            return;
        }
        let mut text = self.start.read(path).unwrap_or_default();
        if base(path) == "package.json" {
            text = configured::of_manifest(&text);
        }
        let named = configured::of_javascript(&text);
        let dir = parent(path).to_owned();
        for word in named.files {
            let Some(file) = self.module_at(&dir, &word) else {
                continue;
            };
            if !is_work(&file, &dir) && self.found.named.insert(file.clone()) {
                self.configuration(&file, depth + 1);
            }
        }
        // What a compiler or a linter includes is the work.
        for word in named.tests.into_iter().filter(|_| !is_of_linter) {
            if let Some((place, _)) = self
                .resolve_from(&dir, &word)
                .filter(|(it, _)| !it.is_empty() && *it != dir)
            {
                self.found.tests.insert(place);
            }
        }
    }

    /// The file that JavaScript loads for the name of a local module.
    pub(super) fn module_at(&mut self, dir: &str, word: &str) -> Option<String> {
        ENDINGS.iter().find_map(|end| {
            let found = self.resolve_from(dir, &format!("{word}{end}"));
            found.and_then(|(path, entry)| matches!(entry, Entry::File { .. }).then_some(path))
        })
    }

    /// Records a module that a script of JavaScript loads, if its path says that it checks.
    pub(super) fn module_of_checks(&mut self, here: &Place, word: &str) {
        if let Some(path) = self.module_at(&here.script_dir, word)
            && !is_of_product(&path)
            && says_that_it_checks(&path)
        {
            self.script(path, here);
        }
    }

    /// Records the texts whose examples pytest runs, by the pattern in its options.
    pub(super) fn texts_of_doctest(&mut self, options: &str) {
        for found in DOCTEST_GLOB.captures_iter(options) {
            let pattern = found[1].to_owned();
            if pattern.contains('/') {
                self.found.test_paths.insert(pattern)
            } else {
                self.found.test_names.insert(pattern)
            };
        }
    }

    /// Reads pytest's settings for the locations and names of tests.
    pub(super) fn read_test_settings(&mut self) {
        if !self.found.families().contains(&"Python") {
            return;
        }
        let files = [
            "pytest.ini",
            ".pytest.ini",
            "pyproject.toml",
            "tox.ini",
            "setup.cfg",
        ];
        let dirs = self.configured_directories();
        for (dir, file) in dirs.iter().flat_map(|dir| files.map(|file| (dir, file))) {
            let text = self.start.read(&joined(dir, file)).unwrap_or_default();
            self.texts_of_doctest(&text);
            for found in TEST_SETTINGS.captures_iter(&text) {
                let is_list = |c: char| c.is_whitespace() || "[]\"',".contains(c);
                let words = found[2].split(is_list).filter(|word| !word.is_empty());
                let words: Vec<String> = words.map(str::to_owned).collect();
                match &found[1] {
                    "testpaths" => {
                        let place = Place::default().below(dir.clone(), dir.clone());
                        self.runner("pytest", &words, &place);
                    }
                    _ => self
                        .found
                        .test_names
                        .extend(words.into_iter().filter(|word| word != "*.py")),
                }
            }
        }
    }
}

/// Whether a file that a configuration in this directory loads is the work.
fn is_work(path: &str, dir: &str) -> bool {
    let below = path
        .strip_prefix(dir)
        .unwrap_or(path)
        .trim_start_matches('/');
    (is_of_product(below) && !prepares_tests(path)) || below.starts_with("index.")
}

fn is_of_product(path: &str) -> bool {
    let (first, _) = path.split_once('/').unwrap_or_default();
    !first.is_empty() && PRODUCT_DIRECTORIES.contains(&first)
}

static INCLUDE: Pattern =
    Pattern::new(r#"(?m)^ *(?:[-s]?include|import\??)[ \t]+["']?([^#\n"']+)"#);

static WILDCARD: Pattern =
    Pattern::new(r"(?m)^ *[-s]?include[ \t][^#\n]*\$[({]wildcard +([^$)}\s]+)[)}]");

static LOADED: Pattern =
    Pattern::new(r#"(?m)(?:\bbootstrap="|(?:^|\s)(?:--require|-r)[ =]?)((?:\./)?[\w./-]+)"#);

static DOCTEST_GLOB: Pattern = Pattern::new(r#"--doctest-glob[=\s"',]+([^\s"',\]]+)"#);

static TEST_SETTINGS: Pattern = Pattern::new(
    r"(?m)^\s*(testpaths|python_files)\s*=\s*(\[[^\]]*\]|[^\n]*(?:\n[ \t]+[^\n=]+$)*)",
);
