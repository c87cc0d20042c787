//! What checks print, write and are made of.

use super::{first_and_rest, text};
use sprag::detect::{self, Listing};
use sprag::domain::checks::diagnostic::Diagnostic;
use sprag::domain::checks::judges::{Judges, Start};
use sprag::domain::checks::verdict::{CheckOutcome, CheckResult, Evidence, MAX_EXCERPT};
use sprag::domain::checks::{
    FailingTest, MAX_FAILING_TESTS, Matcher, excerpt, first_errors, hints, junit, read_matchers,
    unwrapped,
};
use sprag::domain::settings::check::CheckSpec;
use std::time::Duration;

const ROOT: &str = "/proj";

pub(super) fn tool_output(data: &[u8]) {
    let text = text(data);
    read(&text, None, &[]);
    for budget in [0, 100, 700] {
        let kept = excerpt(&text, budget);
        assert!(kept.chars().count() <= budget, "{kept}");
    }
    let errors = first_errors(&text, 3, 160);
    assert!(errors.len() <= 3);
    assert!(errors.iter().all(|it| is_one_line(it, 160)), "{errors:?}");
    assert!(hints(&text).len() <= 20);
}

pub(super) fn junit(data: &[u8]) {
    let mut report = junit::read(data, ROOT);
    read("", Some(&report), &[]);
    let other = junit::read(data, "");
    report.join(other);
    let _ = report.counts();
    are_inside(&report.diagnostics, &report.failing_tests);
}

/// The first line is a problem matcher, the rest an output.
pub(super) fn matchers(data: &[u8]) {
    let text = text(data);
    let (matcher, output) = first_and_rest(&text);
    let read_in = read_matchers("matcher.json", matcher.as_bytes());
    read(output, None, &read_in.matchers);
}

fn read(output: &str, report: Option<&junit::Report>, matchers: &[Matcher]) {
    let check = CheckSpec::of_command("make test").with_defaults(Duration::from_secs(1), "");
    let evidence = Evidence {
        is_file: |_, path| path.len() % 2 == 0,
        files: |_| vec!["a/x.go".to_owned(), "b/c/x.go".to_owned()],
        output: &unwrapped(output),
        is_whole: true,
        report,
        as_committed: false,
        matchers,
        directories: &["a".to_owned(), "b/c".to_owned()],
        root: ROOT,
    };
    let failed = CheckOutcome::Failed { exit: 1 };
    let result = CheckResult::of_evidence(&check, failed, &evidence, 1);
    assert!(result.excerpt.chars().count() <= MAX_EXCERPT);
    are_inside(&result.diagnostics, &result.failing_tests);
    assert!(
        result
            .failing_tests
            .is_sorted_by(|one, other| one.id < other.id)
    );
    let written = serde_json::to_string(&result).expect("a result is written");
    let again: CheckResult = serde_json::from_str(&written).expect("a result is read again");
    assert_eq!(again, result);
}

/// Nobody is sent to a file outside of the work tree, and no text is without a bound.
fn are_inside(diagnostics: &[Diagnostic], tests: &[FailingTest]) {
    let paths = diagnostics.iter().filter_map(|it| it.path.as_deref());
    for path in paths.chain(tests.iter().filter_map(|it| it.file.as_deref())) {
        let leads_out = path.split('/').any(|part| part == "..");
        assert!(!leads_out && !path.starts_with('/'), "{path:?}");
    }
    for one in diagnostics {
        assert!(one.message.chars().count() <= 2_000);
    }
    assert!(tests.len() <= MAX_FAILING_TESTS);
}

fn is_one_line(text: &str, limit: usize) -> bool {
    text.chars().count() <= limit && !text.contains('\n')
}

/// Every file has the same text.
struct Same<'a>(&'a str, Vec<String>);

impl Start for Same<'_> {
    fn is_file(&self, path: &str) -> bool {
        !path.len().is_multiple_of(5)
    }

    fn is_directory(&self, path: &str) -> bool {
        path.len().is_multiple_of(5)
    }

    fn paths(&self) -> &[String] {
        &self.1
    }

    fn read(&self, _path: &str) -> Option<String> {
        Some(self.0.to_owned())
    }
}

/// The first line is a command, the rest the text of every file.
pub(super) fn judges(data: &[u8]) {
    const PATHS: [&str; 4] = ["Makefile", "package.json", "tests/a.py", "x/pyproject.toml"];
    let text = text(data);
    let (command, file) = first_and_rest(&text);
    let start = Same(file, PATHS.map(str::to_owned).to_vec());
    let judges = Judges::of([command], &start, &[], &[]);
    for path in PATHS {
        let _ = (judges.of_old(path), judges.of_new(path));
    }
}

pub(super) fn manifests(data: &[u8]) {
    let text = text(data);
    for name in [
        "package.json",
        "pyproject.toml",
        "Cargo.toml",
        "tox.ini",
        "Makefile",
        "composer.json",
        ".github/workflows/ci.yml",
    ] {
        let mut files = Listing::new();
        files.text(name, text.as_ref());
        let _ = detect::propose(&files);
    }
}
