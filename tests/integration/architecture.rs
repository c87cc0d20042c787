//! The rules of who may import whom, and the invariants that are absences.

mod documents;
mod sources;

use sources::{
    all_sources, imports, module_of, named, paths_in, product_lines, root, root_modules, sources,
};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Modules that a module may name of the crate's own, besides itself.
const MAY_IMPORT: &[(&str, &[&str])] = &[
    ("permit", &["domain"]),
    ("plain_file", &[]),
    ("sandbox", &["domain"]),
    ("process", &["domain", "sandbox"]),
    ("http", &["domain"]),
    ("agents", &["domain", "http", "process", "sandbox"]),
    ("gateway", &["agents", "domain", "http"]),
    (
        "git",
        &["domain", "permit", "plain_file", "process", "sandbox"],
    ),
    (
        "checks",
        &[
            "domain",
            "permit",
            "plain_file",
            "process",
            "sandbox",
            "secrets",
        ],
    ),
    ("commit_policy", &["domain", "git", "secrets"]),
    ("secrets", &["domain"]),
    (
        "github",
        &[
            "context", "domain", "error", "git", "http", "process", "report", "secrets", "settings",
        ],
    ),
    (
        "publish",
        &[
            "cli",
            "commit_policy",
            "context",
            "domain",
            "error",
            "git",
            "github",
            "process",
            "report",
            "run",
            "secrets",
            "settings",
        ],
    ),
    ("report", &["doctor", "domain"]),
    ("detect", &["domain"]),
    ("init", &["detect", "domain", "process"]),
    ("error", &[]),
    ("print", &["context", "error", "report", "secrets"]),
    ("context", &["error", "process"]),
    ("settings", &["agents", "context", "domain", "error"]),
    ("cli", &["report", "settings"]),
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
            "agents",
            "checks",
            "cli",
            "commit_policy",
            "context",
            "domain",
            "error",
            "gateway",
            "git",
            "github",
            "http",
            "permit",
            "plain_file",
            "print",
            "process",
            "report",
            "sandbox",
            "secrets",
            "settings",
        ],
    ),
    (
        "commands",
        &[
            "cli", "context", "doctor", "domain", "error", "git", "init", "print", "process",
            "publish", "report", "run", "settings",
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

/// What carries out the decisions of the built-in agent.
const AGENT_EFFECTS: &[&str] = &["src/agent/tools", "src/agent/turn.rs"];

/// What writes to standard error, however long its reader takes.
const UNBOUNDED: &[&str] = &[
    "eprint!",
    "eprintln!",
    "!(stderr()",
    "io::stderr(),",
    "stderr().write",
];

/// The lines of the product that contain one of these texts, with their places.
fn product_lines_with(texts: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for module in root_modules().into_iter().chain(["agent".to_owned()]) {
        for (path, text) in sources(&module) {
            let lines = product_lines(&text)
                .filter(|(_, line)| texts.iter().any(|it| line.contains(it)))
                .map(|(number, line)| format!("{}:{number}: {line}", path.display()));
            found.extend(lines);
        }
    }
    found
}

#[test]
fn a_thread_that_cannot_be_started_is_no_panic() {
    let panics = product_lines_with(&["thread::spawn(", "scope.spawn("]);
    assert_eq!(panics, [""; 0], "thread::Builder returns an error");
}

#[test]
fn only_one_function_writes_to_standard_error() {
    let mut wrong = product_lines_with(UNBOUNDED);
    wrong.retain(|line| !line.contains("report/buffered_output.rs:"));
    assert_eq!(
        wrong, [""; 0],
        "print_to_stderr gives up a reader that stalls"
    );
}

#[test]
fn modules_import_only_what_they_may() {
    let mut wrong = Vec::new();
    for (module, allowed) in MAY_IMPORT {
        // The domain is a crate of its own: what it names is in it.
        for (path, text) in sources(module).into_iter().filter(|_| *module != "domain") {
            for (number, line) in product_lines(&text) {
                for other in named(&path, line) {
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
        .filter(|module| !ruled.contains(&module.as_str()))
        .collect();
    assert!(unruled.is_empty(), "add a rule for {unruled:?}");
}

#[test]
fn what_decides_does_no_io() {
    let mut wrong = Vec::new();
    for (path, text) in ["agent", "domain"].into_iter().flat_map(sources) {
        if AGENT_EFFECTS
            .iter()
            .any(|file| path.starts_with(root().join(file)))
        {
            continue;
        }
        for (number, line) in product_lines(&text) {
            for name in IMPURE.iter().filter(|name| line.contains(*name)) {
                wrong.push(format!("{}:{number}: {name}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The built-in agent is used like any other: it knows the domain's words for agents, and nothing of a run.
#[test]
fn the_agent_knows_nothing_of_runs_github_and_reports() {
    const MAY_NAME: &[&str] = &[
        "agent",
        "api_error",
        "assess",
        "duration",
        "session",
        "settings::variables",
        "suggest",
        "text",
        "wait",
    ];
    let mut wrong = Vec::new();
    for (path, text) in sources("agent") {
        for (number, line) in product_lines(&text) {
            for name in line.split("sprag_domain::").skip(1) {
                if !MAY_NAME.iter().any(|known| name.starts_with(known)) {
                    wrong.push(format!("{}:{number}: {line}", path.display()));
                }
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
            // A launcher starts nothing but the child that it was started for.
            let may_start = ["/process/", "/sandbox/"]
                .iter()
                .any(|room| shown.contains(room))
                || shown.ends_with("src/git/command.rs");
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

/// What is not in the table of variables is warned of as misspelt.
#[test]
fn variables_of_sprags_own_are_named_in_one_table() {
    let mut wrong = Vec::new();
    for (path, text) in all_sources() {
        let shown = path.display().to_string();
        // The names of blocks in a model's text begin alike.
        let homes = ["src/domain/settings/variables.rs", "src/agent/"];
        if homes.iter().any(|home| shown.contains(home)) {
            continue;
        }
        for (number, line) in product_lines(&text) {
            // What is read when Sprag is built has to be spelt out.
            let names = line.replace("option_env!(\"SPRAG_", "");
            let own = names.replace("\"SPRAG_\"", "");
            if own.contains("\"SPRAG_") {
                wrong.push(format!("{shown}:{number}: {line}"));
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
        let homes = ["src/agent", "src/agents", "src/domain/settings"];
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

/// Paths that only the layout of a run directory may spell out, and the formats of the report their own.
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
        if path.ends_with("src/run/state/layout.rs") || path.ends_with("src/report/mod.rs") {
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
fn no_file_of_the_crate_imports_itself_by_way_of_others() {
    let mut left = imports();
    assert!(left["run::begin::opening"].contains("run::state::setup"));
    assert!(left["agent::ledger::path"].contains("domain::text"));
    assert!(left["run::begin::start"].contains("run::steps::setup_commands"));
    // Whoever imports nothing that is left is in no circle, nor is who is imported by nobody.
    loop {
        let imported: BTreeSet<String> = left.values().flatten().cloned().collect();
        let free = left.iter().find(|(from, to)| {
            !imported.contains(*from) || to.iter().all(|to| !left.contains_key(to))
        });
        let Some(free) = free.map(|(from, _)| from.clone()) else {
            break;
        };
        left.remove(&free);
    }
    assert!(left.is_empty(), "files in circles: {left:#?}");
}

/// How many functions take a tuple apart in their parameters, or take one of references.
const TUPLE_PARAMETERS: usize = 5;

#[test]
fn parameters_have_names_of_their_own() {
    let mut found = Vec::new();
    for (path, text) in all_sources() {
        let code: Vec<&str> = product_lines(&text).map(|(_, line)| line.trim()).collect();
        for function in code.join(" ").split("fn ").skip(1) {
            let head = function.split(['{', ';']).next().unwrap_or_default();
            let parameters = head.split(") -> ").next().unwrap_or_default();
            // A closure's parameters are of no interest, and neither are the types of a function's.
            if parameters.contains("): (") || parameters.contains(": (&") {
                let name = function.split(['(', '<']).next().unwrap_or_default();
                found.push(format!("{}: {name}", path.display()));
            }
        }
    }
    assert!(
        found.len() <= TUPLE_PARAMETERS,
        "name each parameter, or make the values a struct: {found:#?}"
    );
}

#[test]
fn no_command_knows_of_another() {
    let mut wrong = Vec::new();
    for (path, text) in sources("commands") {
        let own = module_of(&path);
        for (number, line) in product_lines(&text) {
            let others = paths_in(&own, line)
                .into_iter()
                .filter(|it| it.starts_with("commands::"));
            wrong.extend(others.map(|it| format!("{}:{number}: {it}", path.display())));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_unsafe_code_anywhere() {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    assert!(manifest.contains("unsafe_code = \"forbid\""));
}
