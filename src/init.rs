//! `sprag init`: creates a configuration, an example plan and a workflow for a project that has none.

#[cfg(test)]
mod tests;

pub use crate::detect::{Listing, Proposal, installs_for_the_machine, propose};

use crate::detect::{self, Found};
use crate::domain::checks::verdict::Check;
use anyhow::Context as _;
use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};

/// Path of the configuration, relative to the root of the project.
pub const CONFIG: &str = ".sprag/config.yaml";
/// Path of the example plan, relative to the root of the project.
pub const EXAMPLE_PLAN: &str = ".sprag/plans/example.yaml";
/// Path of the workflow, relative to the root of the project.
pub const WORKFLOW: &str = ".github/workflows/sprag.yml";

/// Maximum size in bytes of a file that is read.
const FILE_LIMIT: u64 = 1 << 20;

/// Maximum number of files that are read in a directory below the root.
const MAX_FILES: usize = 200;

const NO_SETUP: &str = "\
# Commands that run once, before the first turn.
# setup:
#   - npm ci
";
const SETUP: &str = "\
# Commands that run once, before the first turn.
setup:
";
const NO_CHECKS: &str = "\
# The checks that verify each task. No command that builds or tests this project was found:
# until there is a check, tasks are committed as `unverified`.
# verify:
#   - name: test
#     run: make test
#     kind: test
";
const CHECKS: &str = "\
# The checks that verify each task. The comment above a check says where it was found; `sprag init
# --try` runs each once. Checks of kind build run first; if one fails, the rest is skipped.
verify:
";

/// The result of [`write_new`]: paths relative to the root, in the order of [`files`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Written {
    /// Files that were created.
    pub created: Vec<PathBuf>,
    /// Files that existed and were not changed.
    pub kept: Vec<PathBuf>,
}

/// The form of the workflow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Form {
    /// One job that does the work and pushes it.
    #[default]
    OneJob,
    /// A job that does the work with no write access, and one that pushes and reports.
    TwoJobs,
}

/// Writes those of [`files`] that do not exist yet. Nothing that exists is changed, neither a file nor a
/// directory nor a dangling symbolic link.
///
/// # Errors
/// When a file or its directory cannot be created. Files written before stay.
pub fn write_new(root: &Path, proposal: &Proposal, form: Form) -> anyhow::Result<Written> {
    let mut written = Written::default();
    for (path, text) in files(proposal, form) {
        let created = create(&root.join(&path), &text)
            .with_context(|| format!("cannot write {}", path.display()))?;
        if created {
            written.created.push(path);
        } else {
            written.kept.push(path);
        }
    }
    Ok(written)
}

/// Reads what [`detect`] needs to know about a project: the names in its root, and the texts of its
/// manifests, workflows and Python tests. For a file that is unreadable, larger than 1 MiB or not UTF-8, only
/// the name is recorded.
///
/// Of the directories that may be parts of the project, only the files in `paths` count, the paths that a
/// fresh checkout has: a check in a directory that is ignored or generated would fail there.
///
/// # Errors
/// When the root cannot be listed.
pub fn list(root: &Path, paths: &BTreeSet<String>) -> io::Result<Listing> {
    let mut listing = Listing::new();
    for entry in fs::read_dir(root)? {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else {
            continue;
        };
        let is_read = detect::is_read(&name);
        add(root, name, is_read, &mut listing);
    }
    for directory in detect::TEST_DIRECTORIES {
        let is_read = |name: &str| detect::is_python_test(name);
        list_below(root, directory, is_read, &mut listing);
    }
    let is_yaml = |name: &str| name.ends_with(".yml") || name.ends_with(".yaml");
    list_below(root, detect::WORKFLOWS, is_yaml, &mut listing);
    for action in directories(&root.join(detect::ACTIONS)) {
        let directory = format!("{}/{action}", detect::ACTIONS);
        list_below(root, &directory, is_yaml, &mut listing);
    }
    let parts: BTreeSet<&str> = paths
        .iter()
        .filter_map(|path| Some(path.split_once('/')?.0))
        .collect();
    for directory in parts {
        if !detect::may_hold_a_project(directory) {
            continue;
        }
        let start = format!("{directory}/");
        let below = paths
            .range(start.clone()..)
            .take_while(|path| path.starts_with(&start));
        let there = below.filter(|path| root.join(path).symlink_metadata().is_ok());
        for path in there.take(MAX_FILES) {
            let is_read = detect::is_read(&path[start.len()..]);
            add(root, path.clone(), is_read, &mut listing);
        }
    }
    Ok(listing)
}

/// Adds a file with its text, or any other path with its name only.
fn add(root: &Path, path: String, is_read: bool, listing: &mut Listing) {
    match is_read.then(|| read(&root.join(&path))).flatten() {
        Some(text) => listing.text(path, text),
        None => listing.name(path),
    }
}

/// The directories in a directory, in order.
fn directories(at: &Path) -> Vec<String> {
    let entries = fs::read_dir(at).into_iter().flatten().flatten();
    let is_directory = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
    let names = entries.filter(is_directory).take(MAX_FILES);
    let mut names: Vec<String> = names
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort_unstable();
    names
}

fn list_below(root: &Path, directory: &str, is_read: impl Fn(&str) -> bool, listing: &mut Listing) {
    let entries = fs::read_dir(root.join(directory))
        .into_iter()
        .flatten()
        .flatten();
    for entry in entries.take(MAX_FILES) {
        let Ok(name) = entry.file_name().into_string() else {
            continue;
        };
        let path = format!("{directory}/{name}");
        add(root, path, is_read(&name), listing);
    }
}

/// The initial files of a project, with paths relative to its root and their texts.
#[must_use]
pub fn files(proposal: &Proposal, form: Form) -> Vec<(PathBuf, String)> {
    vec![
        (CONFIG.into(), config(&proposal.setup, &proposal.checks)),
        (EXAMPLE_PLAN.into(), example_plan().to_owned()),
        (
            WORKFLOW.into(),
            workflow(env!("CARGO_PKG_VERSION"), &proposal.steps, form),
        ),
    ]
}

/// The text of a configuration with these setup commands and checks, with explanatory comments.
#[must_use]
pub fn config(setup: &[Found<String>], checks: &[Found<Check>]) -> String {
    include_str!("init/config.yaml.txt")
        .replace("{{setup}}\n", &format!("{}\n", setup_section(setup)))
        .replace("{{verify}}\n", &format!("{}\n", verify_section(checks)))
}

/// The text of a plan with two tasks that suit any project.
#[must_use]
pub fn example_plan() -> &'static str {
    include_str!("init/example-plan.yaml")
}

/// The text of a workflow that runs these steps and then the action of this version's major version, on a
/// comment or by hand.
#[must_use]
pub fn workflow(version: &str, steps: &[String], form: Form) -> String {
    let major = version.split('.').next().unwrap_or(version);
    let template = match form {
        Form::OneJob => include_str!("init/workflow.yaml.txt"),
        Form::TwoJobs => include_str!("init/two-jobs.yaml.txt"),
    };
    template
        .replace("{{major}}", major)
        .replace("      {{steps}}\n", &steps_section(steps))
}

fn steps_section(steps: &[String]) -> String {
    if steps.is_empty() {
        return "      # Tools for the checks in .sprag/config.yaml, for example
      # - uses: actions/setup-node@...
"
        .to_owned();
    }
    let mut text =
        "      # Tools for the setup commands and the checks in .sprag/config.yaml.\n".to_owned();
    for line in steps.iter().flat_map(|step| step.lines()) {
        text += &format!("      {line}\n");
    }
    text
}

/// The repository's owner and name, if the URL is that of a repository on github.com.
#[must_use]
pub fn on_github(address: &str) -> Option<&str> {
    let starts = [
        "https://github.com/",
        "git@github.com:",
        "ssh://git@github.com/",
    ];
    let name = starts
        .iter()
        .find_map(|start| address.strip_prefix(start))?
        .trim_end_matches('/')
        .trim_end_matches(".git");
    let (owner, repository) = name.split_once('/')?;
    let is_name = |part: &str| {
        !part.is_empty()
            && part
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
    };
    (is_name(owner) && is_name(repository)).then_some(name)
}

fn setup_section(setup: &[Found<String>]) -> String {
    if setup.is_empty() {
        return NO_SETUP.to_owned();
    }
    let mut text = SETUP.to_owned();
    for command in setup {
        text += &format!(
            "  # {}\n  - {}\n",
            comment(&command.from),
            scalar(&command.what)
        );
    }
    text
}

fn verify_section(checks: &[Found<Check>]) -> String {
    if checks.is_empty() {
        return NO_CHECKS.to_owned();
    }
    let mut text = CHECKS.to_owned();
    for Found { what: check, from } in checks {
        text += &format!(
            "  # {}\n  - name: {}\n    run: {}\n    kind: {}\n",
            comment(from),
            scalar(&check.name),
            scalar(&check.run),
            check.kind.as_str(),
        );
        if check.timeout_ms != detect::CHECK_TIMEOUT_MS {
            text += &format!("    timeout: {}s\n", check.timeout_ms.div_ceil(1000));
        }
    }
    text
}

/// A text as one line for a comment.
fn comment(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

/// A YAML scalar: plain if that is safe, otherwise in double quotes.
fn scalar(text: &str) -> String {
    let plain = text.contains(|c: char| c.is_ascii_lowercase())
        && text.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '.' | '/'))
        && !text.ends_with(' ')
        && !matches!(
            text,
            "true" | "false" | "null" | "yes" | "no" | "on" | "off" | "y" | "n"
        )
        && text.chars().all(|c| {
            c.is_ascii_alphanumeric() || matches!(c, ' ' | '.' | '/' | '_' | '-' | '=' | '&')
        });
    if plain {
        text.to_owned()
    } else {
        // A JSON string is a double-quoted YAML scalar.
        serde_json::Value::from(text).to_string()
    }
}

fn read(path: &Path) -> Option<String> {
    let metadata = path.symlink_metadata().ok()?;
    if !metadata.is_file() || metadata.len() > FILE_LIMIT {
        return None;
    }
    let mut text = String::new();
    fs::File::open(path)
        .ok()?
        .take(FILE_LIMIT)
        .read_to_string(&mut text)
        .ok()?;
    Some(text)
}

/// Creates a new file and its directories. False if something with that name exists.
fn create(path: &Path, text: &str) -> io::Result<bool> {
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory)?;
    }
    let mut file = match OpenOptions::new().write(true).create_new(true).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::AlreadyExists => return Ok(false),
        Err(error) => return Err(error),
    };
    if let Err(error) = file.write_all(text.as_bytes()) {
        // An incomplete file would count as the user's own next time. The first error is the one to report.
        let _ = fs::remove_file(path);
        return Err(error);
    }
    Ok(true)
}
