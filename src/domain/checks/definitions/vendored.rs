//! Test frameworks that a project keeps a copy of: what they judge decides the result of a check.

/// Directories of code that a project has taken from others.
const FOREIGN: &[&str] = &[
    "deps",
    "extern",
    "external",
    "node_modules",
    "submodules",
    "third-party",
    "third_party",
    "thirdparty",
    "vendor",
    "vendored",
];

/// Test frameworks by the directories in which they usually lie. One with a version or the name of a part after it
/// belongs to it: `rspec-core-3.12`, `jest-circus`.
const FRAMEWORKS: &[&str] = &[
    "@jest",
    "@testing-library",
    "@vitest",
    "_pytest",
    "acutest",
    "ava",
    "bashunit",
    "bats",
    "behat",
    "catch2",
    "chai",
    "cmocka",
    "codeception",
    "cpputest",
    "cucumber",
    "doctest",
    "ginkgo",
    "gmock",
    "goconvey",
    "gomega",
    "googlemock",
    "googletest",
    "gotest.tools",
    "greatest",
    "gtest",
    "hypothesis",
    "jasmine",
    "jest",
    "minitest",
    "minunit",
    "mocha",
    "mockery",
    "munit",
    "nyc",
    "pest",
    "phpunit",
    "pluggy",
    "pytest",
    "qunit",
    "quicktest",
    "rspec",
    "sharness",
    "shellspec",
    "shunit2",
    "sinon",
    "supertest",
    "tape",
    "test-unit",
    "testify",
    "unittest2",
    "unity",
    "utest",
    "uvu",
    "vitest",
];

/// Whether a path lies in a copy of a test framework.
pub fn is_framework(path: &str) -> bool {
    let mut parts = path.split('/').skip_while(|part| !FOREIGN.contains(part));
    parts.next().is_some() && parts.any(is_of_framework)
}

fn is_of_framework(part: &str) -> bool {
    FRAMEWORKS.iter().any(|name| {
        let rest = part.strip_prefix(name);
        rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric()))
    })
}

#[cfg(test)]
mod tests {
    use super::is_framework;

    #[test]
    fn copies_of_test_frameworks_are_told_from_other_code_of_others() {
        for path in [
            "vendor/github.com/stretchr/testify/assert/assertions.go",
            "node_modules/jest-circus/build/run.js",
            "node_modules/@vitest/expect/dist/index.js",
            "third_party/googletest/include/gtest/gtest.h",
            "vendor/bundle/ruby/3.1.0/gems/rspec-core-3.12.0/lib/rspec/core.rb",
            "vendor/bats.sh",
            "lib/vendor/unity/src/unity.c",
        ] {
            assert!(is_framework(path), "{path}");
        }
        for path in [
            "vendor/github.com/spf13/cobra/command.go",
            "node_modules/left-pad/index.js",
            "node_modules/chaining/index.js",
            "src/mocha/latte.js",
            "third_party/zlib/zlib.c",
            "vendored.md",
        ] {
            assert!(!is_framework(path), "{path}");
        }
    }
}
