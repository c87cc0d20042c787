//! The documents: their links lead somewhere, and the tests that they name are there.

use super::sources::{all_sources, product_lines, root, rust_files};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The directories with documents, which have no further ones below them.
const DIRECTORIES: &[&str] = &[
    "",
    "docs",
    "examples/workflows",
    "tests/evidence",
    "tests/github-api",
];

/// A page of `tests/evidence`.
fn evidence(name: &str) -> String {
    fs::read_to_string(root().join("tests/evidence").join(name)).unwrap()
}

fn files_with(extension: &str) -> impl Iterator<Item = PathBuf> {
    DIRECTORIES
        .iter()
        .flat_map(|directory| fs::read_dir(root().join(directory)).unwrap())
        .map(|entry| entry.unwrap().path())
        .filter(move |path| path.extension().is_some_and(|ending| ending == extension))
}

#[test]
fn every_link_of_the_documents_leads_somewhere() {
    let mut broken = Vec::new();
    let mut count = 0;
    for page in files_with("md") {
        let text = fs::read_to_string(&page).unwrap();
        let targets = text
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split(')').next());
        for target in targets.filter(|target| !target.contains("://")) {
            count += 1;
            if !is_there(&page, target) {
                broken.push(format!("{}: {target}", page.display()));
            }
        }
    }
    assert!(count > 100, "{count}");
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

/// What the program and the workflows print or say of the documents leads somewhere, too.
#[test]
fn every_page_that_the_program_names_is_there() {
    let mut texts = all_sources();
    let others = files_with("yml").chain([root().join("docker/action.yml")]);
    texts.extend(others.map(|path| (path.clone(), fs::read_to_string(path).unwrap())));
    let mut broken = Vec::new();
    let mut count = 0;
    let is_part = |c: char| c.is_ascii_alphanumeric() || "-_/.#".contains(c);
    for (path, text) in texts {
        for (number, line) in product_lines(&text) {
            for (at, _) in line.match_indices("docs/") {
                let name = line[at..].split(|c| !is_part(c)).next().unwrap();
                let name = name.trim_end_matches('.');
                if name.contains(".md") {
                    count += 1;
                    if !is_there(&root().join("README.md"), name) {
                        broken.push(format!("{}:{number}: {name}", path.display()));
                    }
                }
            }
        }
    }
    assert!(count >= 5, "{count}");
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

/// Whether this link of a page leads to a file and to a heading in it.
fn is_there(page: &Path, target: &str) -> bool {
    let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
    let path = match file {
        "" => page.to_owned(),
        file => page.parent().unwrap().join(file),
    };
    path.exists()
        && (anchor.is_empty() || anchors(&fs::read_to_string(path).unwrap()).contains(anchor))
}

/// The anchors that GitHub gives to the headings of a page.
fn anchors(page: &str) -> BTreeSet<String> {
    let mut is_code = false;
    let mut anchors = BTreeSet::new();
    for line in page.lines() {
        is_code ^= line.starts_with("```");
        let heading = line.trim_start_matches('#');
        if !is_code && heading.len() < line.len() && heading.starts_with(' ') {
            let kept = |c: &char| c.is_alphanumeric() || " -_".contains(*c);
            let words: String = heading.trim().to_lowercase().chars().filter(kept).collect();
            anchors.insert(words.replace(' ', "-"));
        }
    }
    anchors
}

/// What the documents say that tests show is shown by tests.
#[test]
fn the_tests_that_the_documents_name_are_there() {
    let document = evidence("attacks.md") + &evidence("verdicts.md");
    let rows = document.lines().filter(|line| line.starts_with('|'));
    let names = rows.flat_map(quoted_names);
    let names: Vec<&str> = names
        .filter(|name| name.matches('_').count() >= 3)
        .collect();
    assert!(names.len() > 100, "{names:?}");
    assert_eq!(not_in_the_sources(&names), Vec::<&str>::new());
}

/// Every feature of `features.md` has a test, and it is there.
#[test]
fn every_feature_of_earlier_tools_names_tests_that_are_there() {
    let document = evidence("features.md");
    let rows = tests_of_rows(&document, "| feature", 1);
    let names: Vec<&str> = rows.concat();
    assert!(names.len() > 130, "{}", names.len());
    assert_eq!(not_in_the_sources(&names), Vec::<&str>::new());
}

/// Every complaint of `ci-complaints.md` has tests that are there, one of them of a whole job.
#[test]
fn every_complaint_about_ci_names_a_test_of_a_whole_job() {
    let document = evidence("ci-complaints.md");
    let rows = tests_of_rows(&document, "| complaint", 2);
    assert!(rows.len() > 18, "{}", rows.len());
    assert_eq!(not_in_the_sources(&rows.concat()), Vec::<&str>::new());
    let tests = root().join("tests/integration");
    let mut jobs = rust_files(&tests.join("on_github"));
    jobs.push(tests.join("act.rs"));
    let code: String = jobs
        .iter()
        .map(|path| fs::read_to_string(path).unwrap())
        .collect();
    for names in rows {
        let is_of_job = |name: &&str| code.contains(&format!("fn {name}("));
        assert!(names.iter().any(is_of_job), "no test of a job: {names:?}");
    }
}

/// The tests that each row of a table of three columns names in one of them.
fn tests_of_rows<'d>(document: &'d str, head: &str, column: usize) -> Vec<Vec<&'d str>> {
    let rows = document.lines().filter(|line| line.starts_with("| "));
    let rows = rows.filter(|line| !line.starts_with(head));
    rows.map(|line| {
        let cells: Vec<&str> = line.split(" | ").collect();
        assert_eq!(cells.len(), 3, "three columns: {line}");
        let tests: Vec<&str> = quoted_names(cells[column]).collect();
        assert!(!tests.is_empty(), "no test shows it: {line}");
        tests
    })
    .collect()
}

/// What stands in backquotes and may be the name of a function.
fn quoted_names(text: &str) -> impl Iterator<Item = &str> {
    let is_part = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let quoted = text.split('`').skip(1).step_by(2);
    quoted.filter(move |name| name.chars().all(is_part))
}

/// Those of these names that no test of the sources and of the integration tests has.
fn not_in_the_sources<'a>(names: &[&'a str]) -> Vec<&'a str> {
    let files = [root().join("src"), root().join("tests")];
    let files = files.iter().flat_map(|dir| rust_files(dir));
    let tests: BTreeSet<String> = files
        .flat_map(|path| tests_of(&fs::read_to_string(path).unwrap()))
        .collect();
    let names = names.iter().copied();
    names.filter(|name| !tests.contains(*name)).collect()
}

/// The names of the functions of a file that are tests and are not ignored.
fn tests_of(code: &str) -> Vec<String> {
    let (mut names, mut is_test, mut is_ignored) = (Vec::new(), false, false);
    for line in code.lines().map(str::trim) {
        is_test |= line.starts_with("#[") && line.ends_with("test]");
        is_ignored |= line.starts_with("#[ignore");
        let Some((_, rest)) = line.split_once("fn ") else {
            continue;
        };
        let name = rest.split('(').next().unwrap();
        if std::mem::take(&mut is_test) && !std::mem::take(&mut is_ignored) {
            names.push(name.to_owned());
        }
    }
    names
}
