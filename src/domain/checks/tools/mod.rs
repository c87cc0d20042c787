//! What each tool prints, one file a tool: how its output is recognised, the places and failing
//! tests it names, its numbers, and what helps against its failures. [`TABLE`] lists them all.

mod bats;
mod cargo_test;
mod catch2;
mod checkstyle;
mod clang_tidy;
mod ctest;
mod deno_test;
mod dotnet_test;
mod eslint;
mod exunit;
mod gcc;
mod go;
mod golangci_lint;
mod googletest;
mod gradle;
mod javascript;
mod jest;
mod junit_console;
mod jvm;
mod maven;
mod minitest;
mod mocha;
mod mypy;
mod nextest;
mod node;
mod other;
mod phpunit;
mod pyright;
mod pytest;
mod python;
mod rspec;
mod rubocop;
mod ruff;
mod rustc;
mod sbt;
mod shellcheck;
mod swift_test;
mod tap;
mod tsc;
mod unittest;
mod unity;
mod vitest;

pub(super) use other::is_file;

use super::counts::Counts;
use super::diagnostic::{Output, Sink};
use regex::{Regex, RegexSet, RegexSetBuilder};
use std::sync::LazyLock;

/// What kind of tool it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolKind {
    /// It runs tests.
    Tests,
    /// It compiles or runs code.
    Code,
    /// It looks for mistakes without running anything.
    Lint,
}

/// One tool. What it does not have stays as in [`Tool::NOTHING`].
pub(super) struct Tool {
    /// As people call it; the source of its diagnostics.
    pub(super) name: &'static str,
    pub(super) kind: ToolKind,
    /// Regular expressions of which one fits a line of every output of this tool, and none a line
    /// of another tool's. `^` and `$` are the ends of a line.
    pub(super) signs: &'static [&'static str],
    /// Adds what an output with one of these signs says.
    pub(super) read: fn(Output<'_>, &mut Sink<'_>),
    /// The numbers of tests; `None` where no summary of this tool is in the lines.
    pub(super) counts: fn(&[&str]) -> Option<Counts>,
    /// Regular expressions of a line that stands before the tests of every run, and of one that stands
    /// after them.
    pub(super) around: Option<(&'static str, &'static str)>,
    /// Regular expressions of the lines above everything that is said about one failure.
    pub(super) headers: &'static [&'static str],
    /// What would help against the failure that a line speaks of.
    pub(super) hint: fn(&str) -> Option<String>,
}

/// The tools in the order in which they read: where two name a place on one line of output, what
/// the first says counts.
pub(super) const TABLE: &[Tool] = &[
    eslint::TOOL,
    shellcheck::TOOL,
    rubocop::TOOL,
    clang_tidy::TOOL,
    checkstyle::TOOL,
    ruff::TOOL,
    mypy::TOOL,
    pyright::TOOL,
    unity::TOOL,
    googletest::TOOL,
    catch2::TOOL,
    ctest::TOOL,
    bats::TOOL,
    rustc::TOOL,
    gcc::TOOL,
    nextest::TOOL,
    cargo_test::TOOL,
    tsc::TOOL,
    pytest::TOOL,
    unittest::TOOL,
    python::TOOL,
    golangci_lint::TOOL,
    go::TOOL,
    jest::TOOL,
    vitest::TOOL,
    mocha::TOOL,
    node::TOOL,
    deno_test::TOOL,
    tap::TOOL,
    rspec::TOOL,
    minitest::TOOL,
    phpunit::TOOL,
    exunit::TOOL,
    gradle::TOOL,
    sbt::TOOL,
    swift_test::TOOL,
    maven::TOOL,
    junit_console::TOOL,
    dotnet_test::TOOL,
    other::TOOL,
];

impl Tool {
    /// A tool that says nothing.
    const NOTHING: Self = Self {
        name: "",
        kind: ToolKind::Code,
        signs: &[],
        read: |_, _| {},
        counts: |_| None,
        around: None,
        headers: &[],
        hint: |_| None,
    };
}

/// The name and kind of every tool whose output is understood, in the order of the table.
pub fn tools() -> impl Iterator<Item = (&'static str, ToolKind)> {
    TABLE.iter().map(|tool| (tool.name, tool.kind))
}

/// The tools of which `plain` has a sign.
pub(super) fn seen_in(plain: &str) -> impl Iterator<Item = &'static Tool> {
    static SIGNS: LazyLock<Option<RegexSet>> = LazyLock::new(|| set(|tool| tool.signs));
    let matched = SIGNS.as_ref().map(|set| set.matches(plain));
    let mut next = 0;
    TABLE.iter().filter(move |tool| {
        let own = next..next + tool.signs.len();
        next = own.end;
        let seen = |matched: &regex::SetMatches| own.clone().any(|sign| matched.matched(sign));
        matched.as_ref().is_some_and(seen)
    })
}

/// Whether a line is the header of a failure.
pub(super) fn is_header(line: &str) -> bool {
    static HEADERS: LazyLock<Option<Regex>> = LazyLock::new(|| {
        let all: Vec<&str> = TABLE
            .iter()
            .flat_map(|tool| tool.headers)
            .copied()
            .collect();
        Regex::new(&format!("^(?:{})", all.join("|"))).ok()
    });
    HEADERS
        .as_ref()
        .is_some_and(|headers| headers.is_match(line))
}

fn set(of: impl Fn(&Tool) -> &'static [&'static str]) -> Option<RegexSet> {
    let all = TABLE.iter().flat_map(of);
    RegexSetBuilder::new(all).multi_line(true).build().ok()
}

#[cfg(test)]
mod tests;
