//! The runs of a repository that are recorded on this machine.

use crate::context::Context;
use crate::domain::summary::RunSummary;
use crate::error::{Error, Result};
use crate::git::{self, GitError, Real};
use crate::report::Format;
use crate::report::next_steps::SHOWN_ID;
use crate::run::begin::repository::repository;
use crate::run::state::directory::{Manifest, runs_of_tree};
use crate::run::state::layout::RunFile;
use crate::run::state::places::runs_of;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The shortest abbreviation of a run id, in characters.
const MIN_ID_CHARS: usize = 4;

/// A run that was started on this machine.
#[derive(Debug)]
pub struct PastRun {
    /// The run directory.
    pub dir: PathBuf,
    /// What was fixed when the run started.
    pub manifest: Manifest,
}

impl PastRun {
    /// A short id, which the commands accept.
    #[must_use]
    pub fn short_id(&self) -> &str {
        let id = &self.manifest.run_id;
        id.get(id.len().saturating_sub(SHOWN_ID)..).unwrap_or(id)
    }

    /// The summary, if the run has ended.
    #[must_use]
    pub fn summary(&self) -> Option<RunSummary> {
        let bytes = fs::read(self.dir.join(&*RunFile::Report(Format::Json).path())).ok()?;
        serde_json::from_slice(&bytes).ok()
    }

    fn is_named(&self, name: &str) -> bool {
        let id = &self.manifest.run_id;
        name.len() >= MIN_ID_CHARS && (id.starts_with(name) || id.ends_with(name))
    }
}

/// The runs of a work tree, newest first.
#[must_use]
pub fn past_runs(context: &Context, work_tree: &Path) -> Vec<PastRun> {
    let runs = runs_of_tree(&runs_of(context, work_tree), work_tree).into_iter();
    let runs = runs.map(|(dir, manifest)| PastRun { dir, manifest });
    let mut runs: Vec<PastRun> = runs.collect();
    // The ids start with the time.
    runs.sort_by(|one, other| other.manifest.run_id.cmp(&one.manifest.run_id));
    runs
}

/// The directory of the run with this path, id or short id.
///
/// # Errors
/// When no run of this repository, or more than one, has such an id.
pub fn directory(context: &Context, name: &Path) -> Result<PathBuf> {
    let path = context.cwd.join(name);
    let may_be_id = |id: &&str| !id.is_empty() && !id.contains('/') && !path.exists();
    let id = name.to_str().filter(may_be_id);
    let Some((id, real)) = id.and_then(|id| Some((id, repository(context).ok()?))) else {
        return Ok(path);
    };
    let runs = past_runs(context, real.work_tree());
    let mut named = runs.into_iter().filter(|run| run.is_named(id));
    match (named.next(), named.next()) {
        (Some(run), None) => Ok(run.dir),
        (Some(_), Some(_)) => Err(Error::usage(format!(
            "more than one run has an id that starts with {id}"
        ))
        .hint("sprag runs lists them; give more characters of the id")),
        (None, _) => Err(Error::usage(format!(
            "{id} is neither a directory nor the id of a run of this repository"
        ))
        .hint("sprag runs lists the runs with their ids")),
    }
}

/// The directory of the newest run of this repository that has ended.
///
/// # Errors
/// When there is no repository here, or no such run.
pub fn newest_ended(context: &Context) -> Result<PathBuf> {
    let real = repository(context)?;
    let runs = past_runs(context, real.work_tree());
    let ended = runs.into_iter().find(|run| run.summary().is_some());
    ended.map(|run| run.dir).ok_or_else(|| {
        Error::usage("no finished run of this repository is recorded here")
            .hint("sprag runs lists the runs; sprag run starts one")
    })
}

/// The file, next to the runs of a work tree, that lists what `sprag init --try` left behind.
const TRIED: &str = "tried.json";

/// Saves which untracked files the commands of `sprag init --try` left behind. In a job nothing is
/// saved, because several work trees share the directory for runs.
///
/// # Errors
/// When the list cannot be written.
pub fn remember_tried(
    context: &Context,
    work_tree: &Path,
    files: &BTreeSet<Vec<u8>>,
) -> Result<()> {
    if context.in_actions() {
        return Ok(());
    }
    let all: BTreeSet<Vec<u8>> = tried(context, work_tree).chain(files.clone()).collect();
    let dir = runs_of(context, work_tree);
    let path = dir.join(TRIED);
    let bytes = serde_json::to_vec(&all).map_err(anyhow::Error::from)?;
    fs::create_dir_all(&dir)
        .and_then(|()| fs::write(&path, bytes))
        .map_err(|error| {
            Error::environment(format!("cannot write {}: {error}", path.display())).hint(
                "fix its permissions or free space, or name another directory for state in XDG_STATE_HOME",
            )
        })
}

fn tried(context: &Context, work_tree: &Path) -> impl Iterator<Item = Vec<u8>> {
    let path = runs_of(context, work_tree).join(TRIED);
    let bytes = fs::read(path).ok().filter(|_| !context.in_actions());
    let files = bytes.and_then(|bytes| serde_json::from_slice::<Vec<Vec<u8>>>(&bytes).ok());
    files.into_iter().flatten()
}

/// Changes on which a new run refuses to start: what differs from HEAD, except for files that only setup
/// commands and checks left behind. An untracked directory is one entry.
///
/// # Errors
/// When git fails.
pub fn blocking_changes(
    context: &Context,
    real: &Real,
) -> std::result::Result<git::UncommittedChanges, GitError> {
    let mut changes = git::uncommitted_changes(real)?;
    let known = check_artifacts(context, real.work_tree());
    if !changes.untracked.is_empty() && !known.is_empty() {
        let all = git::untracked_files(real)?;
        changes.untracked = holding(changes.untracked, all.difference(&known));
    }
    Ok(changes)
}

/// The entries of git's status that are or contain one of these files.
pub fn holding<'f>(
    mut entries: Vec<String>,
    files: impl IntoIterator<Item = &'f Vec<u8>>,
) -> Vec<String> {
    let files: Vec<String> = files.into_iter().map(|it| git::display_path(it)).collect();
    entries.retain(|entry| files.iter().any(|path| lies_in(path, entry)));
    entries
}

/// Whether an entry of git's status covers a path: the file itself or a directory around it.
pub fn lies_in(path: &str, entry: &str) -> bool {
    path == entry || (entry.ends_with('/') && path.starts_with(entry))
}

/// Untracked files that only setup commands and checks of earlier runs, or of a trial, left behind.
#[must_use]
pub fn check_artifacts(context: &Context, work_tree: &Path) -> BTreeSet<Vec<u8>> {
    let runs = runs_of_tree(&runs_of(context, work_tree), work_tree).into_iter();
    let lists = runs.filter_map(|(dir, _)| {
        let bytes = fs::read(dir.join(&*RunFile::CheckArtifacts.path())).ok()?;
        serde_json::from_slice::<Vec<Vec<u8>>>(&bytes).ok()
    });
    lists.flatten().chain(tried(context, work_tree)).collect()
}
