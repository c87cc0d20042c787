//! Which files of a project import another one: they tell a program that checks from one that starts the work, and a
//! source that helps tests from one that they test.

use super::{Judges, LANGUAGES, MANIFESTS, PRODUCT, Role, Start, has, is_product_source};
use crate::checks::tests_changed::is_test;
use crate::command_line::entered;
use crate::pattern::Pattern;
use crate::text::file_name;

/// The most files that are searched.
const MAX_SEARCHED: usize = 5_000;

/// The texts that import the file at a path, with their own paths. A manifest imports what it names as the package.
pub(super) fn importers<'s>(
    path: &'s str,
    start: &'s dyn Start,
) -> impl Iterator<Item = (&'s str, String)> {
    let is_read = move |other: &&String| {
        let is_text = has(LANGUAGES, other) || is_test(other) || MANIFESTS.is_match(other);
        *other != path && is_text
    };
    let others = start.paths().iter().take(MAX_SEARCHED).filter(is_read);
    let texts = others.filter_map(|other| Some((other.as_str(), start.read(other)?)));
    texts.filter(move |(other, text)| imports(text, other, path))
}

/// Whether the product, one of its tests or its manifest imports a file, or one beside it if it starts its directory.
pub(super) fn is_imported(path: &str, start: &dyn Start) -> bool {
    let counts =
        |other: &str| is_product_source(other) || is_test(other) || MANIFESTS.is_match(other);
    importers(path, start).any(|(other, _)| counts(other))
}

/// Whether a text imports the file at a path.
fn imports(text: &str, own: &str, path: &str) -> bool {
    static LINE: Pattern =
        Pattern::new(r#"\b(?:import|from|require|use|include|source|load)\b|["']-m["']"#);
    static NAMED: Pattern = Pattern::new(r#"\b(?:name|main|module)["']?\s*[:=]\s*["']([^"'\n]+)"#);
    let module = path.rsplit_once('.').map_or(path, |(stem, _)| stem);
    let module = ["/index", "/__main__", "/__init__"]
        .iter()
        .find_map(|start| module.strip_suffix(start))
        .unwrap_or(module);
    let dir = own.rsplit_once('/').map_or("", |(dir, _)| dir);
    let is_it = |word: &str| {
        let dots = word.len() - word.trim_start_matches('.').len();
        let name = if word.contains('/') {
            word.to_owned()
        } else {
            // `.a` and `..a` of Python are beside it and above.
            let parts = word.trim_start_matches('.').replace("::", "/");
            let up = "../".repeat(dots.saturating_sub(1));
            let here = if dots > 0 { "./" } else { "" };
            format!("{here}{up}{}", parts.replace('.', "/"))
        };
        let is_relative = name.starts_with('.');
        [dir, ""].iter().any(|dir| {
            let found = entered(Some(dir), &name).unwrap_or_default();
            let rest = found.strip_prefix(module);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '.']))
        }) || !is_relative
            && !name.is_empty()
            && format!("/{module}").ends_with(&format!("/{name}"))
            || word == file_name(path)
    };
    if MANIFESTS.is_match(own) {
        return NAMED.captures_iter(text).any(|found| is_it(&found[1]));
    }
    let mut lines = text.lines().filter(|line| LINE.is_match(line));
    lines.any(|line| names_in(line).iter().any(|word| is_it(word)))
}

/// The modules and files that a line names: its quoted words, or else all of them.
fn names_in(line: &str) -> Vec<String> {
    let quotes = ['"', '\'', '`'];
    if line.contains(quotes) {
        let quoted = line.split(quotes).skip(1).step_by(2);
        return quoted.map(str::to_owned).collect();
    }
    // `from a import b` of Python may mean `a.b`.
    if let Some((from, names)) = line.split_once(" import ")
        && let Some(from) = from.trim_start().strip_prefix("from ")
    {
        let from = from.trim();
        let dot = if from.ends_with('.') { "" } else { "." };
        let names = names
            .split([',', ' ', '(', ')'])
            .filter(|name| !name.is_empty());
        let inside = names.map(|name| format!("{from}{dot}{name}"));
        return inside.chain([from.to_owned()]).collect();
    }
    let is_end = |c: char| !(c.is_alphanumeric() || "._/@:-".contains(c));
    let words = line.split(is_end).map(|word| word.trim_matches(':'));
    words.map(str::to_owned).collect()
}

impl Judges {
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
