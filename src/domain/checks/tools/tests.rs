//! Each sample is a tool's real output, below a header with its source and its expected interpretation.
//! `SPRAG_WRITE_SAMPLES=1` regenerates the headers; review them before you commit them.

use super::{TABLE, ToolKind, is_header, seen_in, set, tools};
use crate::checks::counts;
use crate::checks::counts::Counts;
use crate::checks::diagnostic::{self, Reading, WorkTree};
use crate::checks::unwrapped;
use crate::text;
use regex::Regex;
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

const RULE: &str = "\n====\n";

struct Sample {
    path: PathBuf,
    from: String,
    head: String,
    output: String,
}

/// Whether to write the headers and the table instead of comparing them.
#[expect(
    clippy::disallowed_methods,
    reason = "the program itself never reads it"
)]
fn writes() -> bool {
    std::env::var_os("SPRAG_WRITE_SAMPLES").is_some()
}

fn samples() -> Vec<Sample> {
    let dir = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("checks/tools/samples");
    let mut paths: Vec<PathBuf> = fs::read_dir(dir)
        .unwrap()
        .map(|it| it.unwrap().path())
        .collect();
    paths.sort();
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).unwrap();
        let (head, output) = text
            .split_once(RULE)
            .expect("a head, a line of ====, the output");
        let from = head.lines().next().unwrap().to_owned();
        Sample {
            path,
            from,
            head: head.to_owned(),
            output: output.to_owned(),
        }
    };
    paths.into_iter().map(read).collect()
}

fn reading(sample: &Sample) -> Reading {
    let plain = text::plain(&unwrapped(&sample.output)).into_owned();
    crate::checks::reading::read(&plain, &[], &WorkTree::at("/proj"))
}

/// The header for the interpretation of a sample.
fn head(sample: &Sample) -> String {
    let seen: Vec<&str> = seen_in(&text::plain(&unwrapped(&sample.output)))
        .map(|tool| tool.name)
        .filter(|name| *name != "other")
        .collect();
    let mut head = format!("{}\ntools: {}", sample.from, seen.join(", "));
    let number = |it: Option<u64>| it.map_or("?".to_owned(), |it| it.to_string());
    let of = counts(&unwrapped(&sample.output));
    if of != Counts::UNKNOWN {
        let _ = write!(
            head,
            "\ncounts: {} passed, {} failed",
            number(of.passed),
            number(of.failed)
        );
    }
    let read = reading(sample);
    let part = |it: Option<u32>| it.map_or("-".to_owned(), |it| it.to_string());
    for test in &read.failing_tests {
        let file = test.file.as_deref().unwrap_or("-");
        let said = test.message.lines().next().unwrap_or_default();
        let _ = write!(
            head,
            "\ntest: {} | {file}:{} | {said}",
            test.name,
            part(test.line)
        );
    }
    for it in &read.diagnostics {
        let _ = write!(
            head,
            "\n{:?}: {}:{}:{} to {}:{} {} {} | {}",
            it.severity,
            it.path.as_deref().unwrap_or("-"),
            part(it.line),
            part(it.column),
            part(it.end_line),
            part(it.end_column),
            it.source,
            it.code.as_deref().unwrap_or("-"),
            it.message.replace('\n', "⏎"),
        );
    }
    head
}

#[test]
fn every_sample_is_read_as_its_head_says_and_by_no_other_tool() {
    let write = writes();
    let mut wrong = Vec::new();
    for sample in samples() {
        let head = head(&sample);
        if write {
            fs::write(&sample.path, format!("{head}{RULE}{}", sample.output)).unwrap();
        } else if head != sample.head {
            wrong.push(format!(
                "{}:\n{head}\nexpected:\n{}",
                sample.path.display(),
                sample.head
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn every_sample_says_where_it_is_from_and_every_tool_has_one() {
    let mut seen = Vec::new();
    for sample in samples() {
        assert!(
            sample.from.starts_with("from: "),
            "{}",
            sample.path.display()
        );
        seen.extend(seen_in(&text::plain(&unwrapped(&sample.output))).map(|tool| tool.name));
    }
    let without: Vec<&str> = tools()
        .map(|(name, _)| name)
        .filter(|name| !seen.contains(name))
        .collect();
    assert_eq!(without, [""; 0], "without a sample");
}

/// The table in `docs/verification.md`, in alphabetical order.
fn table() -> String {
    let mut rows: Vec<String> = TABLE
        .iter()
        .filter(|tool| tool.name != "other")
        .map(|tool| {
            let kind = match tool.kind {
                ToolKind::Tests => "tests",
                ToolKind::Code => "compiler or runtime",
                ToolKind::Lint => "linter",
            };
            format!("| {} | {kind} |", tool.name)
        })
        .collect();
    rows.sort_by_key(|row| row.to_lowercase());
    format!("| tool | kind |\n|---|---|\n{}\n", rows.join("\n"))
}

#[test]
fn the_documents_list_every_tool() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/verification.md");
    let text = fs::read_to_string(&path).unwrap();
    let mark = "<!-- tools -->\n";
    let parts: Vec<&str> = text.split(mark).collect();
    let [before, _, after] = parts.as_slice() else {
        panic!("two lines {mark} are needed");
    };
    let whole = [before, mark, &table(), mark, after].concat();
    if writes() {
        fs::write(path, whole).unwrap();
    } else {
        assert_eq!(text, whole);
    }
}

/// Counts the failed tests in the samples: all, those with a file and a line, and those whose name or line a
/// diagnostic has.
#[test]
fn failing_tests_of_the_samples_are_named_and_placed() {
    let (mut all, mut placed, mut told) = (0, 0, 0);
    for sample in samples() {
        let read = reading(&sample);
        for test in &read.failing_tests {
            all += 1;
            placed += usize::from(test.line.is_some());
            let tells = |it: &diagnostic::Diagnostic| {
                it.message.contains(&test.name)
                    || (it.path.is_some() && (&it.path, it.line) == (&test.file, test.line))
            };
            told += usize::from(read.diagnostics.iter().any(tells));
        }
    }
    assert!(
        all >= 200 && placed * 100 >= all * 80 && told * 100 >= all * 94,
        "{all} failing tests, {placed} placed, {told} with a diagnostic"
    );
}

#[test]
fn every_pattern_of_the_table_compiles() {
    assert!(set(|tool| tool.signs).is_some());
    for tool in TABLE {
        for pattern in tool.signs.iter().chain(tool.headers) {
            assert!(Regex::new(pattern).is_ok(), "{}: {pattern}", tool.name);
        }
    }
    assert!(is_header("--- FAIL: TestX") && !is_header("PASS"));
    assert_eq!(seen_in("nothing\n").count(), 0);
    assert!(tools().any(|(_, kind)| kind == ToolKind::Lint));
}
