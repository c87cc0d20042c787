//! Recognises code that only tests use and that lies among the other code: assertions, mocks, fixtures.
//!
//! Code under test is often used by tests alone as well. So its content has to judge or to belong to a test
//! framework, its name has to say so, and no other code may name it.

use super::definitions::PRODUCT_DIRECTORIES;
use crate::pattern::Pattern;

/// Words in a path that mark a helper of tests anywhere.
const OF_TESTS: &[&str] = &[
    "assert",
    "assertion",
    "assertions",
    "expectations",
    "fixture",
    "fixtures",
    "harness",
    "matcher",
    "matchers",
    "mock",
    "mocks",
    "stub",
    "stubs",
    "testhelper",
    "testhelpers",
    "testing",
    "testlib",
    "testutil",
    "testutils",
];

/// Words that do so outside of the directories of the work itself.
const OUTSIDE: &[&str] = &[
    "check", "checks", "fake", "fakes", "helper", "helpers", "spec", "specs", "support", "test",
    "tests", "verify",
];

/// Endings of code that may name other code.
const CODE: &[&str] = &[
    "bash", "c", "cc", "cjs", "cpp", "cs", "cts", "cxx", "ex", "exs", "go", "h", "hh", "hpp",
    "htm", "html", "java", "js", "jsx", "kt", "lua", "mjs", "mts", "php", "pl", "pm", "py", "rb",
    "sh", "svelte", "swift", "ts", "tsx", "vue",
];

/// Files that say which code is the product.
const MANIFESTS: &[&str] = &[
    "composer.json",
    "package.json",
    "pyproject.toml",
    "setup.cfg",
    "setup.py",
];

/// Whether a file may be a helper of tests, by its path and its text.
pub fn may_help_tests(path: &str, text: &str) -> bool {
    static JUDGES: Pattern = Pattern::new(
        r"\bassert\w*\b|\bAssertionError\b|\bexpect\s*\(|\bfail\w*\s*\(|\babort\s*\(|\bt\.(?:Fatal|Error)f?\b",
    );
    static FRAMEWORK: Pattern = Pattern::new(
        r#"(?mx)^\s*(?:import|from)\s+(?:pytest|unittest|hypothesis)\b
            | ["'](?:node:test|chai|expect|vitest|sinon|supertest|@jest/globals|@testing-library/[^"'\n]+)["']
            | ^\s*\#\s*include\s*[<"](?:gtest/|gmock/|cmocka|check\.h|unity|CUnit|catch2|doctest)
            | ["'](?:minitest|rspec)\b | \bPHPUnit\\ | \borg\.(?:junit|assertj|hamcrest|mockito|testng)\b"#,
    );
    if !is_code(path) || is_own_name(path) {
        return false;
    }
    let (first, _) = path.split_once('/').unwrap_or_default();
    let is_of_product = !first.is_empty() && PRODUCT_DIRECTORIES.contains(&first);
    let lower = path.to_ascii_lowercase();
    let mut words = lower.split(|c: char| !c.is_ascii_alphanumeric());
    let is_named =
        words.any(|word| OF_TESTS.contains(&word) || !is_of_product && OUTSIDE.contains(&word));
    is_named && JUDGES.is_match(text) || FRAMEWORK.is_match(text)
}

/// How a file stands to the helper at the path `helper`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// It does not name it.
    None,
    /// It names it on a line that loads other code.
    Loads,
    /// It names it anywhere.
    Names,
}

/// How the file at `path` with this `text` uses the helper.
pub fn use_of(helper: &str, path: &str, text: &str) -> Use {
    static LOADS: Pattern =
        Pattern::new(r"\b(?:import|from|require\w*|include\w*|source|use|load)\b|^\s*\.\s");
    let file = path.rsplit('/').next().unwrap_or_default();
    if MANIFESTS.contains(&file) {
        return match text.contains(stem(helper).1) {
            true => Use::Names,
            false => Use::None,
        };
    }
    if !is_code(path) {
        return Use::None;
    }
    let (_, name) = stem(helper);
    let is_comment = |line: &&str| {
        let line = line.trim_start();
        line.starts_with("//") || line.starts_with('*') || line.starts_with("# ")
    };
    let naming = text
        .lines()
        .filter(|line| !is_comment(line) && has_word(line, name));
    naming.fold(Use::None, |found, line| match found {
        Use::Loads => found,
        _ if LOADS.is_match(line) => Use::Loads,
        _ => Use::Names,
    })
}

/// Whether a file may name others.
pub fn may_name_others(path: &str) -> bool {
    let file = path.rsplit('/').next().unwrap_or_default();
    is_code(path) || MANIFESTS.contains(&file)
}

fn is_code(path: &str) -> bool {
    let ending = path.rsplit_once('.').map(|(_, ending)| ending);
    ending.is_some_and(|ending| CODE.contains(&ending))
}

/// Whether other code cannot name a file by a name of its own.
fn is_own_name(path: &str) -> bool {
    stem(path).1.is_empty()
}

/// The directory of a module, and the name under which other code loads it.
fn stem(path: &str) -> (&str, &str) {
    let (dir, file) = path.rsplit_once('/').unwrap_or(("", path));
    let name = file.split('.').next().unwrap_or_default();
    match name {
        "index" | "__init__" | "mod" => stem(dir),
        _ if file.ends_with(".go") && !dir.is_empty() => stem(dir),
        _ => (dir, name),
    }
}

fn has_word(line: &str, word: &str) -> bool {
    let is_part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    line.match_indices(word).any(|(at, _)| {
        let (before, after) = (line.get(..at), line.get(at + word.len()..));
        !is_part(before.and_then(|it| it.chars().next_back()))
            && !is_part(after.and_then(|it| it.chars().next()))
    })
}

#[cfg(test)]
mod tests {
    use super::{Use, may_help_tests, use_of};

    #[test]
    fn helpers_of_tests_are_told_by_name_and_content() {
        for (path, text) in [
            ("support/checks.py", "def same(a, b):\n    assert a == b\n"),
            (
                "lib/assertions.js",
                "const assert = require('node:assert');\n",
            ),
            ("check.h", "#define CHECK(x) assert(x)\n"),
            ("tools/client.py", "import pytest\n"),
            (
                "src/render.tsx",
                "import { render } from '@testing-library/react';\n",
            ),
        ] {
            assert!(may_help_tests(path, text), "{path}");
        }
        for (path, text) in [
            ("helpers.js", "exports.two = () => 2;\n"),
            ("src/helpers.py", "def f(x):\n    assert x\n"),
            ("src/check.c", "void f(void) { abort(); }\n"),
            ("app/orders.py", "def f(x):\n    assert x\n"),
            ("support/notes.md", "assert\n"),
            ("index.js", "const assert = require('assert');\n"),
        ] {
            assert!(!may_help_tests(path, text), "{path}");
        }
    }

    #[test]
    fn what_names_a_helper_is_found() {
        for (helper, path, text, expected) in [
            (
                "support/checks.py",
                "tests/a.py",
                "from support.checks import same\n",
                Use::Loads,
            ),
            (
                "support/checks.py",
                "app.py",
                "from support import (\n    checks,\n)\n",
                Use::Names,
            ),
            (
                "support/checks.py",
                "app.py",
                "# the checks\nchecksum = 1\n",
                Use::None,
            ),
            (
                "lib/assertions.js",
                "a.test.js",
                "require('../lib/assertions.js')\n",
                Use::Loads,
            ),
            (
                "lib/assertions.js",
                "package.json",
                "{\"main\": \"lib/assertions\"}",
                Use::Names,
            ),
            ("check.h", "t.c", "#include \"../check.h\"\n", Use::Loads),
            (
                "x/testutil/a.go",
                "b_test.go",
                "import \"m/x/testutil\"\n",
                Use::Loads,
            ),
            ("helpers.sh", "t.sh", ". ./helpers.sh\n", Use::Loads),
            (
                "fixtures/index.js",
                "a.js",
                "import x from './fixtures';\n",
                Use::Loads,
            ),
            (
                "lib/assertions.js",
                "README.md",
                "require('./lib/assertions')\n",
                Use::None,
            ),
        ] {
            assert_eq!(use_of(helper, path, text), expected, "{path} {text}");
        }
    }
}
