//! Follows what makefiles include, and what the configuration of test runners names.

use super::super::configured::{self, CONFIGURATIONS, ENDINGS, OF_LINTERS, OF_PYTEST};
use super::super::table::PRODUCT_DIRECTORIES;
use super::super::{Entry, base, joined, parent};
use super::words::says_that_it_checks;
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
        if families.contains(&"JavaScript") {
            let named = self.configurations.iter().cloned();
            let known = CONFIGURATIONS
                .iter()
                .chain(OF_LINTERS)
                .map(|name| (*name).to_owned());
            for path in named.chain(known).collect::<BTreeSet<_>>() {
                self.configuration(&path, 0);
            }
        }
        if families.contains(&"Python") {
            for path in OF_PYTEST {
                let text = self.start.read(path).unwrap_or_default();
                for module in configured::plugins_of_pytest(&text) {
                    let path = module.replace('.', "/");
                    for end in [".py", "/__init__.py"] {
                        let path = format!("{path}{end}");
                        if let Some((path, Entry::File { .. })) = self.resolve_from("", &path) {
                            self.found.named.insert(path);
                        }
                    }
                }
            }
        }
    }

    fn configuration(&mut self, path: &str, depth: u32) {
        let of_javascript = [
            ".js", ".cjs", ".mjs", ".ts", ".mts", ".json", ".jsonc", ".yml", ".yaml",
        ];
        let is_read =
            OF_LINTERS.contains(&path) || of_javascript.iter().any(|end| path.ends_with(end));
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
            let is_work = is_of_product(&file) || file.starts_with("index.");
            if !is_work && self.found.named.insert(file.clone()) {
                self.configuration(&file, depth + 1);
            }
        }
        // What a compiler or a linter includes is the work.
        let is_of_linter = OF_LINTERS.contains(&base(path)) || base(path).starts_with("tsconfig");
        for word in named.tests.into_iter().filter(|_| !is_of_linter) {
            if let Some((place, _)) = self
                .resolve_from(&dir, &word)
                .filter(|(it, _)| !it.is_empty())
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
            match pattern.contains('/') {
                true => self.found.test_paths.insert(pattern),
                false => self.found.test_names.insert(pattern),
            };
        }
    }

    /// Reads pytest's settings for the locations and names of tests.
    pub(super) fn read_test_settings(&mut self) {
        if !self.found.families().contains(&"Python") {
            return;
        }
        for file in [
            "pytest.ini",
            ".pytest.ini",
            "pyproject.toml",
            "tox.ini",
            "setup.cfg",
        ] {
            let text = self.start.read(file).unwrap_or_default();
            self.texts_of_doctest(&text);
            for found in TEST_SETTINGS.captures_iter(&text) {
                let is_list = |c: char| c.is_whitespace() || "[]\"',".contains(c);
                let words = found[2].split(is_list).filter(|word| !word.is_empty());
                let words: Vec<String> = words.map(str::to_owned).collect();
                match &found[1] {
                    "testpaths" => self.runner("pytest", &words, &Place::default()),
                    _ => self
                        .found
                        .test_names
                        .extend(words.into_iter().filter(|word| word != "*.py")),
                }
            }
        }
    }
}

fn is_of_product(path: &str) -> bool {
    let (first, _) = path.split_once('/').unwrap_or_default();
    !first.is_empty() && PRODUCT_DIRECTORIES.contains(&first)
}

static INCLUDE: Pattern =
    Pattern::new(r#"(?m)^ *(?:[-s]?include|import\??)[ \t]+["']?([^#\n"']+)"#);

static WILDCARD: Pattern =
    Pattern::new(r"(?m)^ *[-s]?include[ \t][^#\n]*\$[({]wildcard +([^$)}\s]+)[)}]");

static DOCTEST_GLOB: Pattern = Pattern::new(r#"--doctest-glob[=\s"',]+([^\s"',\]]+)"#);

static TEST_SETTINGS: Pattern = Pattern::new(
    r"(?m)^\s*(testpaths|python_files)\s*=\s*(\[[^\]]*\]|[^\n]*(?:\n[ \t]+[^\n=]+$)*)",
);
