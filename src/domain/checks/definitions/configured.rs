//! Follows the names in the configuration of test runners: files that configure them further or run before the
//! tests, and directories of tests under other names than the usual ones.

use super::table::PRODUCT_DIRECTORIES;
use crate::pattern::Pattern;

/// The usual configuration files of test runners. The files of other names are those that options name.
pub const CONFIGURATIONS: &[&str] = &[
    ".mocharc.cjs",
    ".mocharc.js",
    ".mocharc.json",
    ".mocharc.jsonc",
    ".mocharc.yaml",
    ".mocharc.yml",
    "ava.config.cjs",
    "ava.config.js",
    "ava.config.mjs",
    "cypress.config.js",
    "cypress.config.ts",
    "jasmine.json",
    "jest.config.cjs",
    "jest.config.js",
    "jest.config.json",
    "jest.config.mjs",
    "jest.config.ts",
    "karma.conf.js",
    "package.json",
    "playwright.config.js",
    "playwright.config.ts",
    "spec/support/jasmine.json",
    "vite.config.js",
    "vite.config.mjs",
    "vite.config.ts",
    "vitest.config.js",
    "vitest.config.mjs",
    "vitest.config.mts",
    "vitest.config.ts",
    "vitest.workspace.js",
    "vitest.workspace.ts",
];

/// The usual configuration files of compilers and linters.
pub const OF_LINTERS: &[&str] = &[
    ".eslintrc",
    ".eslintrc.cjs",
    ".eslintrc.js",
    ".eslintrc.json",
    ".eslintrc.yaml",
    ".eslintrc.yml",
    "eslint.config.cjs",
    "eslint.config.js",
    "eslint.config.mjs",
    "eslint.config.ts",
    "tsconfig.json",
];

/// Files that configure pytest, and that may name its plugins.
pub const OF_PYTEST: &[&str] = &[
    ".pytest.ini",
    "conftest.py",
    "pyproject.toml",
    "pytest.ini",
    "setup.cfg",
    "test/conftest.py",
    "tests/conftest.py",
    "tox.ini",
];

/// Files that name what PHPUnit loads before all tests.
pub const OF_PHPUNIT: &[&str] = &["phpunit.dist.xml", "phpunit.xml", "phpunit.xml.dist"];

/// Files that name what RSpec loads before all tests.
pub const OF_RSPEC: &[&str] = &[".rspec"];

/// Endings under which a module is found.
pub const ENDINGS: &[&str] = &[
    "",
    ".rb",
    ".js",
    ".cjs",
    ".mjs",
    ".ts",
    ".json",
    "/index.js",
    "/index.ts",
];

/// What a configuration names.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Named {
    /// Files that run or configure: paths relative to the configuration, perhaps without an ending.
    pub files: Vec<String>,
    /// Files, directories or patterns of tests.
    pub tests: Vec<String>,
}

/// The part of a `package.json` that configures test runners.
pub fn of_manifest(text: &str) -> String {
    let json: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
    let runners = [
        "ava", "c8", "jasmine", "jest", "mocha", "nyc", "tap", "vitest",
    ];
    let parts = runners.into_iter().filter_map(|key| json.get(key));
    parts.map(|part| format!("{part}\n")).collect()
}

/// What the text of a configuration file of JavaScript names.
pub fn of_javascript(text: &str) -> Named {
    static FILES: Pattern = Pattern::new(
        r#"(?x)["']?\b(?:setupFiles|setupFilesAfterEnv|globalSetup|globalTeardown|require|import|file
            |testEnvironment|environment|runner|testRunner|reporters|preset|resolver|extends|testSequencer|helpers
            |snapshotResolver|snapshotSerializers|testResultsProcessor|transform|diff|dependencyExtractor|watchPlugins
            |projects|supportFile)["']?\s*:
            (\s*\[[^\]]*\] | \s*\{[^{}]*\} | (?:\s*\n\s*-\s[^\n]*)+ | \s*[^\n,}]*)"#,
    );
    static TESTS: Pattern = Pattern::new(
        r#"(?x)["']?\b(?:testMatch|testRegex|roots|spec|include|testDir|specPattern|spec_dir|spec_files)
            ["']?\s*:(\s*\[[^\]]*\] | (?:\s*\n\s*-\s[^\n]*)+ | \s*[^\n,}]*)"#,
    );
    static IMPORT: Pattern = Pattern::new(
        r#"(?:\brequire(?:\.resolve)?\s*\(|\bfrom\b|\bimport\b\s*\(?)\s*["'](\.{1,2}/[^"'\n]+)["']"#,
    );
    let values = |pattern: &'static Pattern, of: fn(&str) -> Option<String>| -> Vec<String> {
        let all = pattern.captures_iter(text);
        all.flat_map(|found| words(&found[1]).filter_map(of).collect::<Vec<_>>())
            .collect()
    };
    let mut files = values(&FILES, local_file);
    files.extend(IMPORT.captures_iter(text).map(|found| found[1].to_owned()));
    Named {
        files,
        tests: values(&TESTS, test_place),
    }
}

/// The local modules that the text of a configuration of pytest, or of a `conftest.py`, names as plugins.
pub fn plugins_of_pytest(text: &str) -> Vec<String> {
    static OPTION: Pattern = Pattern::new(r#"(?:^|[\s"'=,])-p[\s"',=]*([A-Za-z_][\w.]*)"#);
    static LIST: Pattern =
        Pattern::new(r#"\bpytest_plugins\s*=\s*(\[[^\]]*\]|\([^)]*\)|"[^"\n]*"|'[^'\n]*')"#);
    let options = OPTION.captures_iter(text).map(|found| found[1].to_owned());
    let lists = LIST.captures_iter(text).flat_map(|found| {
        let names = found[1]
            .split(|c: char| !(c.is_alphanumeric() || "._".contains(c)))
            .filter(|name| !name.is_empty())
            .map(str::to_owned);
        names.collect::<Vec<_>>()
    });
    options.chain(lists).collect()
}

/// The words of a value, without the marks of a list.
fn words(value: &str) -> impl Iterator<Item = &str> {
    let is_end = |c: char| c.is_whitespace() || "[]\"'`,{}()|^".contains(c);
    value
        .split(is_end)
        .filter(|word| !matches!(*word, "" | "-"))
}

/// A word without what stands for the directory of the configuration.
fn plain(word: &str) -> &str {
    let word = word.strip_prefix("<rootDir>").unwrap_or(word);
    let word = word.strip_prefix("**").unwrap_or(word);
    word.trim_start_matches('/')
}

fn local_file(word: &str) -> Option<String> {
    let is_local =
        word.starts_with("./") || word.starts_with("../") || word.starts_with("<rootDir>");
    (is_local && !word.contains('*')).then(|| plain(word).to_owned())
}

/// The directory that a pattern of tests searches, or the file that it names.
fn test_place(word: &str) -> Option<String> {
    let word = plain(word.trim_start_matches("./"));
    let fixed = word
        .split(['*', '?', '\\', '+', '$'])
        .next()
        .unwrap_or_default();
    let place = if fixed.len() == word.len() {
        fixed.trim_end_matches('/')
    } else {
        fixed.rsplit_once('/').map_or("", |(dir, _)| dir)
    };
    let first = place.split('/').next().unwrap_or_default();
    (!PRODUCT_DIRECTORIES.contains(&first) && first != "node_modules").then(|| place.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_and_tests_that_a_configuration_names_are_found() {
        for (text, files, tests) in [
            (
                r#"{"jest": {"setupFiles": ["./conf/s.js", "dotenv/config"], "testMatch": ["**/qa/*.js"]}}"#,
                &["./conf/s.js"][..],
                &["qa"][..],
            ),
            (
                "module.exports = {\n  roots: ['<rootDir>/checks', '<rootDir>/src'],\n  globalSetup: '<rootDir>/conf/g',\n}",
                &["conf/g"],
                &["checks"],
            ),
            (
                "module.exports = require('./conf/base.js');",
                &["./conf/base.js"],
                &[],
            ),
            (
                "import base from '../base';\nexport default base",
                &["../base"],
                &[],
            ),
            (
                "require: ./conf/s.js\nspec:\n  - qa/*.js\n  - more/one.js\n",
                &["./conf/s.js"],
                &["qa", "more/one.js"],
            ),
            (
                "transform: {\n  '.*': './conf/t.js',\n},\nenvironment: './conf/e.ts'",
                &["./conf/t.js", "./conf/e.ts"],
                &[],
            ),
            (
                "moduleNameMapper: {'^@/(.*)$': '<rootDir>/components/$1'}",
                &[],
                &[],
            ),
        ] {
            let found = of_javascript(text);
            assert_eq!(found.files, files, "{text}");
            assert_eq!(found.tests, tests, "{text}");
        }
    }

    #[test]
    fn of_a_manifest_only_the_runners_count() {
        let text = r#"{"exports": {"import": "./wrapper.mjs"}, "files": ["a/b"], "mocha": {"require": "./s.js"}}"#;
        let found = of_javascript(&of_manifest(text));
        assert_eq!(
            (found.files, found.tests),
            (vec!["./s.js".to_owned()], vec![])
        );
    }

    #[test]
    fn the_plugins_that_pytest_loads_are_found() {
        for (text, expected) in [
            (
                "[pytest]\naddopts = -q -p my.plug -p no:cacheprovider\n",
                &["my.plug", "no"][..],
            ),
            ("addopts = [\"-p\", \"plug\"]", &["plug"]),
            (
                "pytest_plugins = [\"support.hooks\", 'b']\n",
                &["support.hooks", "b"],
            ),
            ("pytest_plugins = 'one'\n", &["one"]),
            ("import pytest\n", &[]),
        ] {
            assert_eq!(plugins_of_pytest(text), expected, "{text}");
        }
    }
}
