//! The rules of who may import whom, and the invariants that are absences.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Modules that a module may name of the crate's own, besides itself.
const MAY_IMPORT: &[(&str, &[&str])] = &[
    ("permit", &["domain"]),
    ("process", &[]),
    ("http", &["domain"]),
    ("agents", &["domain", "http", "process"]),
    ("git", &["domain", "permit", "process"]),
    ("checks", &["domain", "permit", "process", "secrets"]),
    ("secrets", &[]),
    (
        "github",
        &[
            "context", "domain", "error", "git", "http", "process", "report", "secrets", "settings",
        ],
    ),
    (
        "publish",
        &[
            "cli", "context", "domain", "error", "git", "github", "process", "report", "run",
            "secrets", "settings",
        ],
    ),
    ("report", &["doctor", "domain"]),
    ("detect", &["domain"]),
    ("init", &["detect", "domain"]),
    ("error", &[]),
    ("print", &["error"]),
    ("context", &["process"]),
    ("settings", &["agents", "context", "domain", "error"]),
    ("cli", &["settings"]),
    (
        "doctor",
        &[
            "agents", "cli", "context", "domain", "error", "git", "github", "http", "print",
            "process", "report", "run", "settings",
        ],
    ),
    (
        "run",
        &[
            "agents", "cli", "context", "domain", "error", "git", "github", "http", "permit",
            "print", "process", "report", "secrets", "settings", "checks",
        ],
    ),
];

/// What the pure core never names.
const IMPURE: &[&str] = &[
    "std::fs",
    "std::process",
    "std::env",
    "std::net",
    "std::thread",
    "std::io",
    "Instant",
    "SystemTime",
    "tokio",
    "git2",
    "rustix",
    "tempfile",
    "println!",
    "eprintln!",
];

#[test]
fn modules_import_only_what_they_may() {
    let mut wrong = Vec::new();
    for (module, allowed) in MAY_IMPORT {
        for (path, text) in sources(module) {
            for (number, line) in product_lines(&text) {
                for other in named(line) {
                    let known = other == *module || allowed.contains(&other.as_str());
                    if !known && root_modules().contains(&other) {
                        wrong.push(format!(
                            "{}:{number}: {module} names {other}",
                            path.display()
                        ));
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_module_of_the_crate_has_its_rule() {
    let ruled: Vec<&str> = MAY_IMPORT.iter().map(|(module, _)| *module).collect();
    let unruled: Vec<String> = root_modules()
        .into_iter()
        .filter(|module| !ruled.contains(&module.as_str()) && module != "commands")
        .collect();
    assert!(unruled.is_empty(), "add a rule for {unruled:?}");
}

#[test]
fn the_domain_does_no_io() {
    let mut wrong = Vec::new();
    for (path, text) in sources("domain") {
        for (number, line) in product_lines(&text) {
            for name in IMPURE.iter().filter(|name| line.contains(*name)) {
                wrong.push(format!("{}:{number}: {name}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn only_one_module_starts_children_and_one_reads_the_environment() {
    let mut wrong = Vec::new();
    for (path, text) in all_sources() {
        let shown = path.display().to_string();
        for (number, line) in product_lines(&text) {
            let starts = line.contains("Command::new(") && !line.contains("clap");
            let may_start = shown.contains("/process/") || shown.ends_with("src/git/command.rs");
            if starts && !may_start {
                wrong.push(format!("{shown}:{number}: starts a child"));
            }
            let reads = ["env::var", "env::vars", "env::current_dir"];
            if reads.iter().any(|name| line.contains(name)) && !shown.ends_with("src/context.rs") {
                wrong.push(format!("{shown}:{number}: reads the environment"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn inputs_and_variables_of_settings_are_read_in_one_room() {
    let keys = sprag::domain::settings::keys();
    let variables: Vec<String> = keys
        .iter()
        .map(|key| format!("\"{}\"", key.variable()))
        .collect();
    let mut wrong = Vec::new();
    for (path, text) in all_sources() {
        let shown = path.display().to_string();
        if shown.contains("src/settings/") {
            continue;
        }
        for (number, line) in product_lines(&text) {
            let is_variable = |name: &String| line.contains(name.as_str());
            let is_input = line.replace("\"INPUT_\"", "").contains("\"INPUT_");
            if is_input || variables.iter().any(is_variable) {
                wrong.push(format!(
                    "{shown}:{number}: reads an input or a variable of a setting"
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_names_of_agents_occur_only_where_the_agents_are() {
    let mut wrong = Vec::new();
    for (path, text) in all_sources() {
        // The settings of the domain have lists of their own, which a test of the agents compares.
        let homes = ["src/agents", "src/domain/settings"];
        if homes.iter().any(|home| path.starts_with(root().join(home))) {
            continue;
        }
        for (number, line) in product_lines(&text) {
            let lower = line.to_lowercase();
            let names = sprag::agents::CLIS.iter().map(|spec| spec.name);
            for name in names.filter(|name| lower.contains(name)) {
                wrong.push(format!("{}:{number}: names {name}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_permit_to_commit_is_minted_where_it_is_true_and_nowhere_else() {
    let minted: Vec<String> = all_sources()
        .into_iter()
        .filter(|(_, text)| {
            product_lines(text).any(|(_, line)| {
                line.contains("Committable::verified(") || line.contains("Committable::no_checks(")
            })
        })
        .map(|(path, _)| path.strip_prefix(root()).unwrap().display().to_string())
        .collect();
    assert_eq!(minted, ["src/checks/mod.rs"]);
}

/// Paths that only the layout of a run directory may spell out.
const RUN_PATHS: &[&str] = &[
    "\"state/",
    "\"prompts/",
    "\"turns/",
    "\"verify/",
    "\"patches/",
    "\"manifest.json",
    "\"history.jsonl",
    "\"events.jsonl",
    "\"summary.json",
    "\"report.md\"",
    "\"report.html",
    "\"work.bundle",
];

#[test]
fn only_the_layout_spells_out_paths_of_a_run_directory() {
    let mut wrong = Vec::new();
    for (path, text) in all_sources() {
        if path.ends_with("src/run/layout.rs") {
            continue;
        }
        for (number, line) in product_lines(&text) {
            if RUN_PATHS.iter().any(|name| line.contains(name)) {
                wrong.push(format!("{}:{number}: {}", path.display(), line.trim()));
            }
        }
    }
    assert!(wrong.is_empty(), "use RunFile: {}", wrong.join("\n"));
}

#[test]
fn the_documented_files_of_a_run_directory_are_those_of_the_layout() {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let table = sprag::run::layout::table();
    assert!(
        text.contains(&table),
        "ARCHITECTURE.md has another table than:\n{table}"
    );
}

#[test]
fn the_loop_fits_on_a_screen() {
    let text = fs::read_to_string(root().join("src/run/mod.rs")).unwrap();
    let start = text.find("async fn run_task").unwrap();
    let body = &text[start..];
    let lines = body
        .find("\n}\n")
        .map(|end| body[..end].lines().count())
        .unwrap();
    assert!(lines <= 40, "run_task has {lines} lines");
}

/// Rooms whose files import each other in one direction only.
const WITHOUT_CIRCLES: &[&str] = &["git", "github"];

#[test]
fn no_file_imports_itself_by_way_of_others() {
    for room in WITHOUT_CIRCLES {
        let files = sources(room);
        let path = |path: &Path| {
            let below = path.strip_prefix(root().join("src")).unwrap();
            let name = below.with_extension("").display().to_string();
            name.trim_end_matches("/mod").replace('/', "::")
        };
        let names: BTreeSet<String> = files.iter().map(|(file, _)| path(file)).collect();
        let mut imports: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (file, text) in &files {
            let from = path(file);
            let code: String = product_lines(text).map(|(_, line)| line).collect();
            let code = code.replace(&format!("pub(in crate::{room})"), "");
            assert!(
                !code.contains("use super::{") && !code.contains(&format!("crate::{room}::{{")),
                "{from}: name each file that is imported from"
            );
            let named = code.split("crate::").skip(1).map(|rest| {
                let is_path = |c: &char| c.is_alphanumeric() || "_:".contains(*c);
                rest.chars().take_while(is_path).collect::<String>()
            });
            let below = code.split(" super::").skip(1).map(|rest| {
                let is_path = |c: &char| c.is_alphanumeric() || "_:".contains(*c);
                let rest: String = rest.chars().take_while(is_path).collect();
                format!(
                    "{}::{rest}",
                    from.rsplit_once("::").map_or("", |parts| parts.0)
                )
            });
            let file_of = |named: String| {
                let mut named = named.as_str();
                while !names.contains(named) {
                    named = named.rsplit_once("::")?.0;
                }
                Some(named.to_owned())
            };
            let found = named.chain(below).filter_map(file_of);
            let found: BTreeSet<String> = found.filter(|to| *to != from).collect();
            assert!(
                !found.contains(*room),
                "{from}: import from the file itself, not from the room"
            );
            imports.insert(from, found);
        }
        // Whoever imports nothing that is left is in no circle.
        while let Some(free) = imports
            .iter()
            .find(|(_, to)| to.iter().all(|to| !imports.contains_key(to)))
            .map(|(from, _)| from.clone())
        {
            imports.remove(&free);
        }
        assert!(imports.is_empty(), "files in circles: {imports:#?}");
    }
}

#[test]
fn no_unsafe_code_anywhere() {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    assert!(manifest.contains("unsafe_code = \"forbid\""));
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn root_modules() -> Vec<String> {
    let text = fs::read_to_string(root().join("src/lib.rs")).unwrap();
    let names = text
        .lines()
        .filter_map(|line| line.strip_prefix("pub mod "));
    names
        .map(|name| name.trim_end_matches(';').to_owned())
        .collect()
}

fn sources(module: &str) -> Vec<(PathBuf, String)> {
    let mut files = vec![root().join(format!("src/{module}.rs"))];
    files.extend(rust_files(&root().join("src").join(module)));
    read(files.into_iter().filter(|path| path.is_file()))
}

fn all_sources() -> Vec<(PathBuf, String)> {
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

fn rust_files(dir: &Path) -> Vec<PathBuf> {
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
fn product_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
    let lines = code
        .lines()
        .enumerate()
        .map(|(index, line)| (index + 1, line));
    lines.filter(|(_, line)| !line.trim_start().starts_with("//"))
}

/// The crate's own modules that a line names as `crate::x`.
fn named(line: &str) -> Vec<String> {
    line.split("crate::")
        .skip(1)
        .map(|rest| {
            rest.chars()
                .take_while(|c| c.is_alphanumeric() || *c == '_')
                .collect()
        })
        .collect()
}
