//! `sprag init`: a configuration, an example plan and a workflow for a project that has none.

#[cfg(test)]
mod tests;

use crate::detect::{self, Listing};
use crate::domain::checks::verdict::{Check, CheckKind};
use anyhow::Context as _;
use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};

/// Where the configuration is, from the root of the project.
pub const CONFIG: &str = ".sprag/config.yaml";
/// Where the example plan is written, from the root of the project.
pub const EXAMPLE_PLAN: &str = ".sprag/plans/example.yaml";
/// Where the workflow is written, from the root of the project.
pub const WORKFLOW: &str = ".github/workflows/sprag.yml";

/// More than this of a manifest, in bytes, is not looked at.
const MANIFEST_LIMIT: u64 = 1 << 20;

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
# What decides whether a task is done. Nothing that could build or test this project was found:
# until there is a check, tasks are committed as `unverified`.
# verify:
#   - name: test
#     run: make test
#     kind: test
";
const CHECKS: &str = "\
# What decides whether a task is done, proposed from the files in this directory: run each once by
# hand. Checks of kind build come first, and skip the rest when they fail.
verify:
";

/// What [`write_new`] did, in paths from the root, in the order of [`files`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Written {
    /// Were not there, and are now.
    pub created: Vec<PathBuf>,
    /// Were there, and are as they were.
    pub kept: Vec<PathBuf>,
}

/// Writes those of [`files`] that are not there yet. Nothing that exists is touched, be it a file, a
/// directory or a symbolic link to nowhere.
///
/// # Errors
/// The root cannot be listed, or a file or its directory cannot be created; what had been written
/// before stays.
pub fn write_new(root: &Path) -> anyhow::Result<Written> {
    let listing = list(root).with_context(|| format!("cannot list {}", root.display()))?;
    let mut written = Written::default();
    for (path, text) in files(&listing) {
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

/// Reads what [`detect`] wants to know of a project: the names in its root, and the text of the
/// regular files among them that are manifests. A manifest that cannot be read, is larger than
/// 1 MiB or no UTF-8 counts by its name alone.
///
/// # Errors
/// The root cannot be listed.
pub fn list(root: &Path) -> io::Result<Listing> {
    let mut listing = Listing::new();
    for entry in fs::read_dir(root)? {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else {
            continue;
        };
        let is_manifest = detect::MANIFESTS.contains(&name.as_str());
        match is_manifest.then(|| read_manifest(&entry)).flatten() {
            Some(text) => listing.text(name, text),
            None => listing.name(name),
        }
    }
    Ok(listing)
}

/// The files that a project starts with, as paths from its root and texts.
#[must_use]
pub fn files(listing: &Listing) -> Vec<(PathBuf, String)> {
    let setup = detect::propose_setup(listing);
    let checks = detect::propose_checks(listing);
    vec![
        (CONFIG.into(), config(&setup, &checks)),
        (EXAMPLE_PLAN.into(), example_plan().to_owned()),
        (WORKFLOW.into(), workflow(env!("CARGO_PKG_VERSION"))),
    ]
}

/// The text of a configuration with these setup commands and checks, explained by comments.
#[must_use]
pub fn config(setup: &[String], checks: &[Check]) -> String {
    include_str!("init/config.yaml.txt")
        .replace("{{setup}}\n", &format!("{}\n", setup_section(setup)))
        .replace("{{verify}}\n", &format!("{}\n", verify_section(checks)))
}

/// The text of a plan of two tasks that any project could start with.
#[must_use]
pub fn example_plan() -> &'static str {
    include_str!("init/example-plan.yaml")
}

/// The text of a workflow that uses the action of this version's major version, on a comment or by hand.
#[must_use]
pub fn workflow(version: &str) -> String {
    let major = version.split('.').next().unwrap_or(version);
    include_str!("init/workflow.yaml.txt").replace("{{major}}", major)
}

fn setup_section(setup: &[String]) -> String {
    if setup.is_empty() {
        return NO_SETUP.to_owned();
    }
    let mut text = SETUP.to_owned();
    for command in setup {
        text += &format!("  - {}\n", scalar(command));
    }
    text
}

fn verify_section(checks: &[Check]) -> String {
    if checks.is_empty() {
        return NO_CHECKS.to_owned();
    }
    let mut text = CHECKS.to_owned();
    for check in checks {
        let kind = match check.kind {
            CheckKind::Build => "build",
            CheckKind::Test => "test",
            CheckKind::Lint => "lint",
            CheckKind::Other => "other",
        };
        text += &format!(
            "  - name: {}\n    run: {}\n    kind: {kind}\n",
            scalar(&check.name),
            scalar(&check.run)
        );
        if check.timeout_ms != detect::CHECK_TIMEOUT_MS {
            text += &format!("    timeout: {}s\n", check.timeout_ms.div_ceil(1000));
        }
    }
    text
}

/// A YAML scalar: as it is where that is safe, else in double quotes.
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
        // A JSON string is a double-quoted scalar of YAML.
        serde_json::Value::from(text).to_string()
    }
}

fn read_manifest(entry: &fs::DirEntry) -> Option<String> {
    let metadata = entry.metadata().ok()?;
    if !metadata.is_file() || metadata.len() > MANIFEST_LIMIT {
        return None;
    }
    let mut text = String::new();
    fs::File::open(entry.path())
        .ok()?
        .take(MANIFEST_LIMIT)
        .read_to_string(&mut text)
        .ok()?;
    Some(text)
}

/// Writes a new file and the directories it needs. False if something of that name is there.
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
        // Half a file would count as the user's own next time. The first error is the one to tell.
        let _ = fs::remove_file(path);
        return Err(error);
    }
    Ok(true)
}
