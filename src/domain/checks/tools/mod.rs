//! The known tools, one row per tool: how to recognise its output, the locations and failed tests that it
//! names, its numbers, and advice about its failures. [`TABLE`] lists them all.

mod annotations;
mod cargo_test;
mod catch2;
mod compilers;
mod gcc;
mod go;
mod javascript;
mod linters;
mod node;
mod other;
mod pytest;
mod python;
mod ruby;
mod runners;
mod rustc;
mod shape;
mod tap;
mod unittest;

pub(super) use node::hollow_results;
pub(super) use other::is_file;

use super::counts::Counts;
use super::diagnostic::{Diagnostic, Output, Sink};
use regex::{Regex, RegexSet, RegexSetBuilder};
use shape::Below;
use std::sync::LazyLock;

/// The kind of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolKind {
    /// It runs tests.
    Tests,
    /// It compiles or runs code.
    Code,
    /// It finds mistakes without running anything.
    Lint,
}

/// A tool. The parts that it lacks are those of [`Tool::NOTHING`].
pub(super) struct Tool {
    /// Its common name; the source of its diagnostics.
    pub(super) name: &'static str,
    pub(super) kind: ToolKind,
    /// Regular expressions. One of them matches a line in every output of this tool, and none matches a line
    /// of another tool. `^` and `$` match at line ends.
    pub(super) signs: &'static [&'static str],
    /// The first line above all findings, if the output has one: others of the same form are further above.
    pub(super) from: &'static str,
    /// Lines that report a finding. Their groups are `path`, `line`, `column`, `end`, `end_column`, `mark` (below the
    /// columns), `word` (the severity), `code` and `text`; `test` of a failed test, `about` of one that another line
    /// reports, or `listed` of one that is named and nothing more. The `suite` is a part of the name of a test, and what
    /// is `within` is one only in the list of the tests; a `whole` file that failed has no other name there. A line with
    /// a group `ignored` reports nothing.
    pub(super) lines: &'static [&'static str],
    /// A line whose groups hold for the findings below it, up to the next such line. A test that has `begun` there and
    /// does not end has ended the program.
    pub(super) above: &'static str,
    /// A line directly below that continues the name of a test, which ends with a colon.
    pub(super) more: &'static str,
    /// Between the `suite` and the name of a test.
    pub(super) between: &'static str,
    /// The end of a message, which has the `code`; the `text` is before it.
    pub(super) ending: &'static str,
    /// The message of a finding whose lines have none.
    pub(super) says: &'static str,
    /// The lines below such a line that belong to it.
    pub(super) below: Option<Below>,
    /// Adds the other findings of an output that has one of these signs.
    read: fn(Output<'_>, &mut Sink<'_>),
    /// A line without which those of `summary` are another tool's.
    pub(super) needs: &'static str,
    /// Lines with the numbers of tests; see [`shape::counts`].
    pub(super) summary: &'static [&'static str],
    /// The numbers of tests where there is no such line; `None` if the lines contain no summary of this tool.
    counts: fn(&[&str]) -> Option<Counts>,
    /// The name of the test whose result a line reports, and whether it failed. A tool that has several lines about
    /// one result reports it in one of them only.
    pub(super) result: fn(&str) -> Option<(&str, bool)>,
    /// Regular expressions for a line before the tests of every run, and for a line after them.
    pub(super) around: Option<(&'static str, &'static str)>,
    /// Like `around`, for a tool that prints the second line only in some of its modes: a run that has both
    /// shows how the tests ended, but a run that lacks the second is not an unfinished one.
    pub(super) encloses: Option<(&'static str, &'static str)>,
    /// Regular expressions for the first line of everything about one failure.
    pub(super) headers: &'static [&'static str],
    /// Advice about the failure that a line reports: the line, and a text with its groups; none if it is empty.
    pub(super) advice: &'static [(&'static str, &'static str)],
}

/// The tools in the order in which they read. If two of them find a location on the same line, the first one
/// wins.
pub(super) const TABLE: &[Tool] = &[
    linters::ESLINT,
    linters::SHELLCHECK,
    linters::RUBOCOP,
    linters::CLANG_TIDY,
    linters::CHECKSTYLE,
    linters::RUFF,
    linters::BLACK,
    linters::PRETTIER,
    linters::BIOME,
    linters::MYPY,
    linters::PYRIGHT,
    runners::UNITY,
    runners::GOOGLETEST,
    catch2::TOOL,
    runners::CTEST,
    runners::BATS,
    rustc::TOOL,
    gcc::TOOL,
    cargo_test::NEXTEST,
    cargo_test::TOOL,
    compilers::TSC,
    compilers::CSC,
    pytest::TOOL,
    unittest::TOOL,
    python::TOOL,
    linters::GOLANGCI_LINT,
    go::TOOL,
    javascript::PLAYWRIGHT,
    javascript::AVA,
    runners::CUCUMBER,
    javascript::JEST,
    javascript::VITEST,
    javascript::MOCHA,
    node::TOOL,
    runners::DENO_TEST,
    tap::TOOL,
    ruby::RSPEC,
    ruby::MINITEST,
    runners::PHPUNIT,
    runners::EXUNIT,
    runners::GRADLE,
    runners::SBT,
    runners::SWIFT_TEST,
    runners::MAVEN,
    runners::JUNIT_CONSOLE,
    runners::DOTNET_TEST,
    linters::GIT_DIFF,
    other::TOOL,
    annotations::TOOL,
];

impl Tool {
    /// A tool that reads nothing.
    const NOTHING: Self = Self {
        name: "",
        kind: ToolKind::Code,
        signs: &[],
        from: "",
        lines: &[],
        above: "",
        more: "",
        between: " › ",
        ending: "",
        // Formatters name files and nothing more.
        says: "it is not formatted",
        below: None,
        read: |_, _| {},
        needs: "",
        summary: &[],
        counts: |_| None,
        result: |_| None,
        around: None,
        encloses: None,
        headers: &[],
        advice: &[],
    };

    /// Adds the findings of an output that has one of the signs.
    pub(super) fn read(&self, output: Output<'_>, sink: &mut Sink<'_>) {
        shape::read(self, output, sink);
        (self.read)(output, sink);
    }

    /// The numbers of tests; `None` if the lines contain no summary of this tool.
    pub(super) fn counts(&self, lines: &[&str]) -> Option<Counts> {
        shape::counts(self, lines).or_else(|| (self.counts)(lines))
    }
}

/// The name and kind of every known tool, in the order of the table.
pub(super) fn tools() -> impl Iterator<Item = (&'static str, ToolKind)> {
    TABLE.iter().map(|tool| (tool.name, tool.kind))
}

impl Diagnostic {
    /// Whether a linter reported it. flake8 and its like print the form of a compiler, with a number for each rule.
    pub fn is_of_linter(&self) -> bool {
        let is_it = |(tool, kind)| self.source == tool && kind == ToolKind::Lint;
        let code = self.code.as_deref().unwrap_or_default();
        let is_numbered = self.source == "other" && code.ends_with(|c: char| c.is_ascii_digit());
        is_numbered || tools().any(is_it)
    }
}

/// The tools whose signs `plain` contains.
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
