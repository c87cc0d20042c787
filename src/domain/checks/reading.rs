//! Reads the output of a check: asks the problem matchers, and then the tools whose signs are in the output.

use super::diagnostic::{Diagnostic, Output, Reading, Sink, WorkTree, beginning};
use super::matcher::Matcher;
use super::tools;
use crate::text;
use std::collections::BTreeSet;

/// The diagnostics in `output`. Absolute paths are dropped. See [`parse_in`].
pub fn parse(output: &str) -> Vec<Diagnostic> {
    parse_in(output, "")
}

/// The diagnostics in `output`: errors first, otherwise in order, without duplicates, at most
/// [`MAX_DIAGNOSTICS`]. A path under the directory `root` is made relative to it; any other path is dropped
/// together with its line.
pub fn parse_in(output: &str, root: &str) -> Vec<Diagnostic> {
    parse_with(output, root, &[])
}

/// Like [`parse_in`]; the results of `matchers` take precedence over those of Sprag's own parsers.
pub fn parse_with(output: &str, root: &str, matchers: &[Matcher]) -> Vec<Diagnostic> {
    read(&text::plain(output), matchers, &WorkTree::at(root)).diagnostics
}

/// Reads `plain`, an output without escape sequences.
pub(super) fn read(plain: &str, matchers: &[Matcher], tree: &WorkTree<'_>) -> Reading {
    let whole: Vec<&str> = plain.lines().collect();
    let lines: Vec<&str> = whole.iter().map(|line| beginning(line)).collect();
    let mut sink = Sink::new(*tree, "matcher");
    for matcher in matchers {
        matcher.parse(&lines, &mut sink);
    }
    let output = Output {
        whole: &whole,
        lines: &lines,
    };
    for tool in tools::seen_in(plain) {
        sink.source = tool.name;
        tool.read(output, &mut sink);
    }
    sink.finish(&whole)
}

/// The names of the tests that `lines` report as failed.
pub(super) fn names_in(lines: &[&str]) -> BTreeSet<String> {
    let tests = read(&lines.join("\n"), &[], &WorkTree::at("")).failing_tests;
    tests.into_iter().map(|test| test.name).collect()
}
