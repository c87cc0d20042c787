//! Which files of a project import another one: they tell a program that checks from one that starts the work, and a
//! source that helps tests from one that they test.

use super::start::Start;
use super::{CONFIGURATION, Judges, LANGUAGES, MANIFESTS, PRODUCT, Role, has, is_product_source};
use crate::checks::tests_changed::is_test;
use crate::pattern::Pattern;
use crate::text::file_name;

/// The most files that are searched.
const MAX_SEARCHED: usize = 5_000;

/// The texts that import the file at a path, with their own paths.
pub(super) fn importers<'s>(
    path: &'s str,
    start: &'s dyn Start,
) -> impl Iterator<Item = (&'s str, String)> {
    let others = start.paths().iter().take(MAX_SEARCHED).map(String::as_str);
    let others = others.filter(move |other| {
        let is_text = has(LANGUAGES, other) || is_test(other) || MANIFESTS.is_match(other);
        is_text && *other != path
    });
    let texts = others.filter_map(|other| Some((other, start.read(other)?)));
    texts.filter(move |(other, text)| imports(text, other, path))
}

/// Whether the text of `other` imports the file at a path, by its stem. A manifest imports what it names as the package.
fn imports(text: &str, other: &str, path: &str) -> bool {
    static LINE: Pattern = Pattern::new(
        r#"(?m)^.*(?:\b(?:import|from|require|use|include|source|load)\b|["']-m["']).*$"#,
    );
    static GO: Pattern = Pattern::new(r#"(?m)^(?:import )?\s*(?:[\w.]+ )?"[^"\n]+"$"#);
    static PACKAGE: Pattern = Pattern::new(r#"\b(?:name|main|module)["']?\s*[:=]\s*["'][^"'\n]+"#);
    let module = path.rsplit_once('.').map_or(path, |(module, _)| module);
    let starts = ["/index", "/__main__", "/__init__"];
    let dir = starts.iter().find_map(|start| module.strip_suffix(start));
    let stem = file_name(dir.unwrap_or(module));
    let lines = match other {
        _ if MANIFESTS.is_match(other) => &PACKAGE,
        _ if other.ends_with(".go") => &GO,
        _ => &LINE,
    };
    let is_end = |c: char| !(c.is_alphanumeric() || "_-".contains(c));
    let mut lines = lines.captures_iter(text);
    lines.any(|line| line[0].split(is_end).any(|word| word == stem))
}

impl Judges {
    /// Whether a source lies in a package that sources of the product import, although its directory has the name of one
    /// of tests or of checks, and no program of the checks imports it.
    pub fn is_of_product(&self, path: &str, start: &dyn Start) -> bool {
        static NAMED: Pattern = Pattern::new(
            r"^(?:[^/]+/){0,2}?(?:[Ss]pecs?|checks|ci|e2e|hack|qa|scripts?)(?:/src)?/",
        );
        let Some(directory) = NAMED.find_at(path, 0).and_then(|found| path.get(found)) else {
            return false;
        };
        let name = directory.trim_end_matches('/').trim_end_matches("/src");
        let is_judge = |other: &str| {
            self.named.runs(other) || self.named.is_test(other) || CONFIGURATION.is_match(other)
        };
        let of_package = format!("{name}/__init__.py");
        let is_outside = |other: &str| is_product_source(other) && !other.starts_with(directory);
        has(LANGUAGES, path)
            && self.said(path).is_none()
            && !is_judge(path)
            && !is_test(file_name(path))
            && start.paths().len() <= MAX_SEARCHED
            && importers(&of_package, start).any(|(other, _)| is_outside(other))
            && !importers(path, start).any(|(other, _)| self.named.runs(other))
    }

    /// Whether a source only helps tests: it asserts, no source of the product imports it, and what judges does, or a
    /// test that also imports the source that it tests.
    pub fn is_helper(&self, path: &str, text: &str, start: &dyn Start) -> bool {
        if !asserts(text) || PRODUCT.is_match(path) || start.paths().len() > MAX_SEARCHED {
            return false;
        }
        let mut helps = false;
        for (other, text) in importers(path, start) {
            let tests = |tested: &&String| {
                *tested != path
                    && has(LANGUAGES, tested)
                    && self.of_old(tested) == Role::Work
                    && imports(&text, other, tested)
                    && !start.read(tested).is_some_and(|text| asserts(&text))
            };
            match self.of_old(other) {
                Role::Work | Role::Data => return false,
                Role::Judge(_) if MANIFESTS.is_match(other) => return false,
                Role::Test if file_name(other) != "conftest.py" => {
                    helps |= start.paths().iter().any(|it| tests(&it));
                }
                Role::Test | Role::Judge(_) => helps = true,
            }
        }
        helps
    }
}

/// Whether a source asserts and returns nothing, or uses a test tool.
fn asserts(text: &str) -> bool {
    static TOOL: Pattern = Pattern::new(
        r#"\b(?:import|from|require|use)\b\W*(?:pytest|unittest|vitest|chai|minitest|rspec|node:assert|assert|Test2?::)\b|\bexpect\s*\("#,
    );
    static ASSERTS: Pattern = Pattern::new(r"(?m)^\s*assert\b");
    static RETURNS: Pattern = Pattern::new(r"(?m)\b(?:return|yield)\b[ (]*\w");
    TOOL.is_match(text) || ASSERTS.is_match(text) && !RETURNS.is_match(text)
}
