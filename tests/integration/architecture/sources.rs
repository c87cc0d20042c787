//! Reads the sources: their files, modules and imports.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

pub(super) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

pub(super) fn root_modules() -> Vec<String> {
    let text = fs::read_to_string(root().join("src/lib.rs")).unwrap();
    let names = text
        .lines()
        .filter_map(|line| line.strip_prefix("pub mod "));
    names
        .map(|name| name.trim_end_matches(';').to_owned())
        .collect()
}

pub(super) fn sources(module: &str) -> Vec<(PathBuf, String)> {
    let mut files = vec![root().join(format!("src/{module}.rs"))];
    files.extend(rust_files(&root().join("src").join(module)));
    read(files.into_iter().filter(|path| path.is_file()))
}

pub(super) fn all_sources() -> Vec<(PathBuf, String)> {
    read(rust_files(&root().join("src")).into_iter())
}

/// Files of the product; those of tests may do what they need.
fn read(files: impl Iterator<Item = PathBuf>) -> Vec<(PathBuf, String)> {
    let is_test = |path: &Path| {
        path.strip_prefix(root()).unwrap().components().any(|part| {
            let part = part.as_os_str().to_string_lossy();
            let stem = part.trim_end_matches(".rs");
            matches!(stem, "tests" | "explore" | "samples") || stem.ends_with("_tests")
        })
    };
    files
        .filter(|path| !is_test(path))
        .map(|path| (path.clone(), fs::read_to_string(path).unwrap()))
        .collect()
}

pub(super) fn rust_files(dir: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// Numbered lines of code before a file's own tests, without comments.
pub(super) fn product_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
    let lines = code
        .lines()
        .enumerate()
        .map(|(index, line)| (index + 1, line));
    lines.filter(|(_, line)| !line.trim_start().starts_with("//"))
}

/// The crate's own root modules that a line of a file names, as `crate::x` or by `super::`.
pub(super) fn named(path: &Path, line: &str) -> Vec<String> {
    let first = |full: String| full.split("::").next().unwrap_or_default().to_owned();
    paths_in(&module_of(path), line)
        .into_iter()
        .map(first)
        .collect()
}

/// The module that a file holds, from the root of the crate.
pub(super) fn module_of(path: &Path) -> String {
    let below = path.strip_prefix(root().join("src")).unwrap();
    let name = below.with_extension("").display().to_string();
    let name = name.trim_end_matches("/mod").trim_end_matches("/lib");
    name.replace('/', "::")
}

/// Full paths that a text in a module names as `crate::x` or by `super::`, without groups.
pub(super) fn paths_in(module: &str, code: &str) -> Vec<String> {
    let path_at = |rest: &str| -> String {
        let is_path = |c: &char| c.is_alphanumeric() || "_:".contains(*c);
        let path: String = rest.chars().take_while(is_path).collect();
        path.trim_end_matches(':').to_owned()
    };
    let mut found: Vec<String> = code.split("crate::").skip(1).map(path_at).collect();
    for rest in code
        .replace("super::super::", "super::^")
        .split("super::")
        .skip(1)
    {
        let ups = 1 + rest.chars().take_while(|c| *c == '^').count();
        let mut parts: Vec<&str> = module.split("::").collect();
        parts.truncate(parts.len().saturating_sub(ups));
        let below = path_at(rest.trim_start_matches('^'));
        parts.push(&below);
        found.push(parts.join("::"));
    }
    found
}

/// The groups of the imports in a text written out: `use a::{b, c::{d}};` is `use a::b; use a::c::d;`.
fn without_groups(code: &str) -> String {
    let mut plain = String::new();
    let mut rest = code;
    while let Some(at) = rest.find("use ") {
        let (before, import) = rest.split_at(at);
        let line = before.rfind('\n').map_or(0, |end| end + 1);
        let end = import.find(';');
        let (Some(end), "" | "pub" | "pub(crate)" | "pub(super)") = (end, before[line..].trim())
        else {
            plain += before;
            plain += "use ";
            rest = &import[4..];
            continue;
        };
        plain += &before[..line];
        for path in leaves(&import[4..end]) {
            plain += &format!("{} use {path};\n", before[line..].trim());
        }
        rest = &import[end + 1..];
    }
    plain + rest
}

fn leaves(tree: &str) -> Vec<String> {
    let tree: String = tree.split_whitespace().collect::<Vec<_>>().join(" ");
    let Some((stem, group)) = tree.split_once('{') else {
        return vec![tree];
    };
    let group = group.strip_suffix('}').unwrap_or(group);
    let (mut depth, mut part, mut parts) = (0, String::new(), Vec::new());
    for c in group.chars() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        match (c, depth) {
            (',', 0) => parts.push(std::mem::take(&mut part)),
            _ => part.push(c),
        }
    }
    parts.push(part);
    let parts = parts.iter().map(|part| part.trim());
    parts
        .filter(|part| !part.is_empty())
        .flat_map(|part| leaves(&format!("{stem}{part}")))
        .collect()
}

/// Every file of the product with the files that it imports from. A name that a room passes on
/// counts as imported from the file that has it.
pub(super) fn imports() -> BTreeMap<String, BTreeSet<String>> {
    let files: BTreeMap<String, String> = all_sources()
        .into_iter()
        .map(|(path, text)| {
            let lines: Vec<&str> = product_lines(&text).map(|(_, line)| line).collect();
            let mut code = without_groups(&lines.join("\n"));
            // The other crates of the workspace count as rooms of this one.
            for room in ["agent", "domain"] {
                if path.starts_with(root().join("src").join(room)) {
                    code = code.replace("crate::", &format!("crate::{room}::"));
                }
                code = code.replace(&format!("sprag_{room}::"), &format!("crate::{room}::"));
            }
            (module_of(&path), code)
        })
        .collect();
    let mut passed_on: BTreeMap<(String, String), String> = BTreeMap::new();
    for (module, code) in &files {
        let exports = code.split("pub use ").skip(1);
        for export in exports.filter_map(|rest| rest.split(';').next()) {
            let (path, name) = export.split_once(" as ").unwrap_or((export, export));
            let name = name.rsplit("::").next().unwrap_or(name).trim();
            let full = match path.strip_prefix("crate::") {
                Some(full) => full.to_owned(),
                None => format!("{module}::{path}"),
            };
            passed_on.insert((module.clone(), name.to_owned()), full);
        }
    }
    let file_of = |named: &str| -> Option<String> {
        let mut named = named.to_owned();
        // A name is passed on a few times at most.
        for _ in 0..5 {
            let parts: Vec<&str> = named.split("::").collect();
            let known = |count: &usize| files.contains_key(&parts[..*count].join("::"));
            let count = (1..=parts.len()).rev().find(known)?;
            let file = parts[..count].join("::");
            let item = parts
                .get(count)
                .map(|item| (file.clone(), (*item).to_owned()));
            match item.and_then(|item| passed_on.get(&item)) {
                Some(full) => named = full.clone(),
                None => return Some(file),
            }
        }
        None
    };
    let of_file = |(module, code): (&String, &String)| {
        let own: Vec<&str> = code
            .lines()
            .filter(|line| !line.contains("pub use "))
            .collect();
        let found = paths_in(module, &own.join("\n"))
            .into_iter()
            .filter_map(|path| file_of(&path));
        (module.clone(), found.filter(|to| to != module).collect())
    };
    files.iter().map(of_file).collect()
}
