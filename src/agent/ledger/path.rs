//! Finds the files that an item's text names.

use sprag_domain::text::has_word;

/// File names with neither a slash nor an extension.
const BARE_NAMES: &str = "makefile dockerfile justfile gemfile rakefile procfile jenkinsfile license readme changelog codeowners";

/// Extensions that mark a name without a slash as a file.
const ENDINGS: &str = "astro bash bat bazel bzl c cc cfg cjs clj cmake conf cpp cs css csv cxx dart ejs env erb erl ex exs fish fs go
    gradle graphql h hcl hpp hs html ini ipynb java jl js json jsonc jsx kt kts less lock lua m md mdx mjs mk ml
    mod nix php pl properties proto ps1 py pyi r rb rs rst sass sbt scala scss sh snap sql sum svelte svg swift tf
    toml ts tsx txt vue xml yaml yml zig";

/// The maximum number of files that an item can name.
const MAX_FILES: usize = 50;

/// The files that an item is about, in order and without duplicates.
///
/// They are at its beginning, separated by commas or `and` and followed by a colon or a dash, or anywhere in
/// backticks. Absolute paths and paths with a `..` component are ignored, because the agent could not change
/// them. `[...slug].tsx` is a valid name.
pub(super) fn files_in(text: &str) -> Vec<String> {
    let head = head(text);
    let listed = listed(head.unwrap_or(text), head.is_some());
    let mut files: Vec<String> = Vec::new();
    for file in listed.unwrap_or_else(|| in_backticks(text)) {
        if !files.contains(&file) && files.len() < MAX_FILES {
            files.push(file);
        }
    }
    files
}

/// Whether an item names a changed file: the same path, the end of its path, or a directory above it.
pub(super) fn is_at(named: &str, changed: &str) -> bool {
    if let Some(directory) = named.strip_suffix('/') {
        return below(directory, changed);
    }
    named == changed || ends_with(changed, named) || ends_with(named, changed)
}

/// `path` in the form that the ledger compares; `None` if it cannot name a file of the work tree.
pub(super) fn normal(raw: &str) -> Option<String> {
    let mut path = raw.trim().replace('\\', "/");
    while let Some(rest) = path.strip_prefix("./") {
        path = rest.to_owned();
    }
    let outside = path.starts_with(['/', '~']) || path.split('/').any(|part| part == "..");
    let parts: Vec<&str> = path
        .split('/')
        .filter(|part| !part.is_empty() && *part != ".")
        .collect();
    if outside || parts.is_empty() {
        return None;
    }
    let end = if path.ends_with('/') { "/" } else { "" };
    Some(parts.join("/") + end)
}

fn below(directory: &str, changed: &str) -> bool {
    let inside = |path: &str| {
        path.strip_prefix(directory)
            .is_some_and(|rest| rest.starts_with('/'))
    };
    inside(changed)
        || changed
            .match_indices('/')
            .any(|(at, _)| inside(&changed[at + 1..]))
}

fn ends_with(path: &str, end: &str) -> bool {
    path.strip_suffix(end)
        .is_some_and(|before| before.ends_with('/'))
}

/// The text before the first colon or dash that separates.
fn head(text: &str) -> Option<&str> {
    [": ", " - ", " – ", " — ", " -> ", " → "]
        .iter()
        .filter_map(|separator| text.find(separator))
        .min()
        .map(|at| &text[..at])
        .or_else(|| text.strip_suffix(':'))
}

/// The files of a list that contains only files. Without a separator after it, only its first word counts,
/// and only if it has a slash.
fn listed(head: &str, separated: bool) -> Option<Vec<String>> {
    let whole = list_items(head)
        .map(|item| file(item, true))
        .collect::<Option<Vec<String>>>()
        .filter(|files| !files.is_empty());
    if whole.is_some() || separated {
        return whole;
    }
    let first = head
        .split_whitespace()
        .next()?
        .trim_end_matches([',', ':', ';']);
    file(first, false)
        .filter(|file| file.contains('/'))
        .map(|file| vec![file])
}

fn list_items(head: &str) -> impl Iterator<Item = &str> {
    head.split([',', ';'])
        .flat_map(|part| part.split(" and "))
        .flat_map(|part| part.split(" & "))
        .flat_map(|part| part.split(" + "))
        .map(|part| part.trim())
        .map(|part| part.strip_prefix("and ").unwrap_or(part))
        .filter(|part| !part.is_empty())
}

fn in_backticks(text: &str) -> Vec<String> {
    let inside = text.split('`').skip(1).step_by(2);
    inside.filter_map(|part| file(part, false)).collect()
}

/// `raw` as a file, if it looks like one. A path may contain spaces only in backticks at the beginning of an
/// item.
fn file(raw: &str, at_head: bool) -> Option<String> {
    let bare = raw.trim().trim_matches(['*', '"', '\'']);
    let inside = bare
        .strip_prefix('`')
        .and_then(|rest| rest.strip_suffix('`'));
    let spaces = at_head && inside.is_some();
    let path = without_line(inside.unwrap_or(bare));
    let path = normal(path)?;
    let legal = path.chars().all(|c| {
        let odd = matches!(
            c,
            '<' | '>' | '|' | '"' | '\'' | ';' | '*' | '?' | '!' | ':' | '`' | '$' | ',' | '='
        );
        !odd && !c.is_control() && (spaces || !c.is_whitespace())
    });
    let call = path.ends_with(['(', ')']);
    (legal && !call && names_a_file(&path)).then_some(path)
}

/// Removes the lines from `src/a.rs:12` and `src/a.rs:12-20`.
fn without_line(path: &str) -> &str {
    match path.rsplit_once(':') {
        Some((before, lines))
            if !lines.is_empty() && lines.chars().all(|c| c.is_ascii_digit() || c == '-') =>
        {
            before
        }
        _ => path,
    }
}

fn names_a_file(path: &str) -> bool {
    if path.contains('/') {
        return path.chars().any(char::is_alphanumeric);
    }
    let lower = path.to_lowercase();
    let dotfile = lower
        .strip_prefix('.')
        .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_alphabetic()));
    let ending = lower
        .rsplit_once('.')
        .is_some_and(|(stem, end)| !stem.is_empty() && has_word(ENDINGS, end));
    dotfile || ending || has_word(BARE_NAMES, &lower)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn files_are_found_where_items_name_them() {
        let cases: &[(&str, &[&str])] = &[
            (
                "src/a.rs, src/b.rs: add the parser",
                &["src/a.rs", "src/b.rs"],
            ),
            ("src/a.rs and src/b.rs: add", &["src/a.rs", "src/b.rs"]),
            ("`src/a.rs`, `src/b.rs` — add", &["src/a.rs", "src/b.rs"]),
            ("**src/a.rs** - add", &["src/a.rs"]),
            ("`docs/my file.md`: write", &["docs/my file.md"]),
            ("./src//a.rs:12-20: fix", &["src/a.rs"]),
            ("src\\win\\a.cs: fix", &["src/win/a.cs"]),
            ("Cargo.toml: add serde", &["Cargo.toml"]),
            (
                ".gitignore, Makefile: ignore target",
                &[".gitignore", "Makefile"],
            ),
            ("app/[...slug].tsx: catch all", &["app/[...slug].tsx"]),
            ("[...slug].tsx: catch all", &["[...slug].tsx"]),
            ("app/(auth)/page.tsx: log in", &["app/(auth)/page.tsx"]),
            ("src/parser/: split", &["src/parser/"]),
            ("src/a.rs", &["src/a.rs"]),
            ("src/a.rs:", &["src/a.rs"]),
            ("src/a.rs add the parser", &["src/a.rs"]),
            (
                "Add the parser to `src/a.rs` and `lib.rs`",
                &["src/a.rs", "lib.rs"],
            ),
            ("src/a.rs, src/a.rs: twice", &["src/a.rs"]),
        ];
        for (text, files) in cases {
            assert_eq!(files_in(text), *files, "{text}");
        }
    }

    #[test]
    fn other_words_are_no_files() {
        for text in [
            "add the parser",
            "Update the docs: say how",
            "Call `self.state` and `std::fs` and `run()`",
            "Run `cargo test src/a.rs`",
            "e.g. the parser: fix",
            "https://example.com/a.rs: read",
            "/etc/passwd: read",
            "../other/a.rs: change",
            "src/../../a.rs: change",
            "~/a.rs: change",
            "src/*.rs: format",
            "",
            ":",
        ] {
            assert_eq!(files_in(text), Vec::<String>::new(), "{text}");
        }
    }

    #[test]
    fn a_changed_file_is_matched_by_its_end_or_its_directory() {
        for (named, changed) in [
            ("src/a.rs", "src/a.rs"),
            ("a.rs", "src/a.rs"),
            ("src/a.rs", "crates/x/src/a.rs"),
            ("crates/x/src/a.rs", "src/a.rs"),
            ("src/parser/", "src/parser/lex.rs"),
            ("parser/", "src/parser/deep/lex.rs"),
        ] {
            assert!(is_at(named, changed), "{named} {changed}");
        }
        for (named, changed) in [
            ("a.rs", "src/ba.rs"),
            ("src/a.rs", "src/b.rs"),
            ("src/parser/", "src/parser.rs"),
            ("src/parser/", "src/parsers/a.rs"),
            ("a.rs", "a.rs.bak"),
        ] {
            assert!(!is_at(named, changed), "{named} {changed}");
        }
    }

    proptest! {
        #[test]
        fn no_file_is_ever_outside(text in "[ ./a-c~:,`\\[\\]é]{0,40}") {
            for file in files_in(&text) {
                prop_assert!(!file.starts_with('/') && !file.starts_with('~'));
                prop_assert!(file.split('/').all(|part| part != ".."));
                prop_assert_eq!(normal(&file), Some(file));
            }
        }
    }
}
