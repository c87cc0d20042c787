//! What the configuration of test runners names.

use super::{PRODUCT, Walk, modules, parent};
use crate::checks::judges::imports::importers;
use crate::checks::judges::is_product_source;
use crate::command_line::entered;
use crate::pattern::Pattern;
use crate::text::{file_name, has_word};
use serde_json::Value;
use std::collections::BTreeSet;

/// Files that configure test runners.
const CONFIGURATIONS: &str = "setup.cfg pytest.ini tox.ini pyproject.toml package.json .mocharc.yml .mocharc.yaml
    .mocharc.json .mocharc.js .mocharc.cjs phpunit.xml phpunit.xml.dist ava.config.js cypress.config.js
    cypress.config.ts jest.config.js jest.config.ts jest.config.mjs jest.config.cjs jest.config.json karma.conf.js
    playwright.config.js playwright.config.ts vite.config.js vite.config.ts vitest.config.js vitest.config.ts
    spec/support/jasmine.json conftest.py tests/conftest.py";

/// Keys of mocha's configuration that mean something else in other files.
const OF_MOCHA: &str = "require import file";

impl Walk<'_> {
    /// Directories of tests under other names, and files that a test runner loads beside the tests and no source of the
    /// product imports.
    pub(super) fn configured(&mut self) {
        static KEYS: Pattern = Pattern::new(
            r#"["']?\b(?:testpaths|testMatch|testRegex|roots|spec|testDir|specPattern|spec_dir|spec_files|directory|(?P<loads>addopts|pytest_plugins|setupFiles(?:AfterEnv)?|global(?:Setup|Teardown)|transform|testEnvironment|snapshotSerializers|resolver|runner|reporters|bootstrap|require|import|file))["']?\s*[:=>](?P<value>\s*\[[^\]]*\]|(?:\s*\n\s*-\s[^\n]*)+|(?:[ \t]*\n[ \t]+\w[^\n:=]*)+|[^\n,}]*)"#,
        );
        let mut dirs = vec![String::new()];
        dirs.extend(self.found.directories.iter().cloned());
        let names = CONFIGURATIONS.split_whitespace();
        let paths = names.flat_map(|name| dirs.iter().filter_map(|dir| entered(Some(dir), name)));
        for path in paths.collect::<Vec<_>>() {
            let Some(text) = self.start.read(&path) else {
                continue;
            };
            for found in KEYS.captures_iter(&text) {
                let key = found.name("loads").map(|key| key.as_str());
                if key.is_some_and(|key| has_word(OF_MOCHA, key) && !path.contains(".mocharc")) {
                    continue;
                }
                let words =
                    found["value"].split(|c: char| !(c.is_alphanumeric() || "./_-*".contains(c)));
                for word in words {
                    let word = word.replace("rootDir", "");
                    let word = word.split('*').next().unwrap_or_default();
                    let named = entered(Some(parent(&path)), word.trim_matches('/'));
                    let Some(named) = named.filter(|named| !named.is_empty()) else {
                        continue;
                    };
                    if key.is_some() {
                        self.loaded(&named);
                    } else if !PRODUCT.is_match(&named) && self.start.is_directory(&named) {
                        self.found.tests.insert(named);
                    }
                }
            }
        }
    }

    /// Notes a file that a test runner loads.
    fn loaded(&mut self, named: &str) {
        let files = modules(named).chain([named.to_owned()]).filter(|path| {
            let is_of_product = || importers(path, self.start).any(|(it, _)| is_product_source(it));
            self.start.is_file(path) && !is_of_product()
        });
        self.found.programs.extend(files);
    }

    /// Notes the packages of a workspace of cargo that only its tests use.
    pub(super) fn dev_dependencies(&mut self) {
        let (mut of_tests, mut others) = (BTreeSet::new(), BTreeSet::new());
        let manifests = self.start.paths().iter();
        for path in manifests
            .filter(|path| file_name(path) == "Cargo.toml")
            .take(64)
        {
            let text = self.start.read(path).unwrap_or_default();
            let manifest: Value = toml::from_str(&text).unwrap_or_default();
            for key in ["dev-dependencies", "dependencies", "build-dependencies"] {
                let dependencies = manifest[key].as_object().into_iter().flatten();
                let paths = dependencies.filter_map(|(_, it)| it["path"].as_str());
                let all = if key.starts_with("dev") {
                    &mut of_tests
                } else {
                    &mut others
                };
                all.extend(paths.filter_map(|dir| entered(Some(parent(path)), dir)));
            }
        }
        let has_program = |dir: &&String| self.start.is_file(&format!("{dir}/src/main.rs"));
        let only = of_tests.difference(&others).filter(|dir| !has_program(dir));
        self.found.programs.extend(only.cloned());
    }
}
