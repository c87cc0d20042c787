//! The runs of a repository that are recorded on this machine.

use crate::context::Context;
use crate::domain::summary::RunSummary;
use crate::error::{Error, Result};
use crate::git::{self, GitError, Real};
use crate::report::Format;
use crate::run::directory::{Manifest, runs_of_tree};
use crate::run::layout::RunFile;
use crate::run::places::runs_of;
use crate::run::repository::repository;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The fewest characters of a run's id that name it.
const FEWEST: usize = 4;

/// How many characters of an id are shown: its random end, which tells runs of one minute apart.
const SHOWN: usize = 8;

/// A run that was begun here.
#[derive(Debug)]
pub struct PastRun {
    /// Its directory.
    pub dir: PathBuf,
    /// What was fixed when it began.
    pub manifest: Manifest,
}

impl PastRun {
    /// A short id, which the commands take.
    #[must_use]
    pub fn short_id(&self) -> &str {
        let id = &self.manifest.run_id;
        id.get(id.len().saturating_sub(SHOWN)..).unwrap_or(id)
    }

    /// What it came to, where it has ended.
    #[must_use]
    pub fn summary(&self) -> Option<RunSummary> {
        let bytes = fs::read(self.dir.join(&*RunFile::Report(Format::Json).path())).ok()?;
        serde_json::from_slice(&bytes).ok()
    }

    fn is_named(&self, name: &str) -> bool {
        let id = &self.manifest.run_id;
        name.len() >= FEWEST && (id.starts_with(name) || id.ends_with(name))
    }
}

/// The runs of a work tree, newest first.
#[must_use]
pub fn past_runs(context: &Context, work_tree: &Path) -> Vec<PastRun> {
    let mut runs: Vec<PastRun> = runs_of_tree(&runs_of(context, work_tree), work_tree)
        .into_iter()
        .map(|(dir, manifest)| PastRun { dir, manifest })
        .collect();
    // The ids begin with the time.
    runs.sort_by(|one, other| other.manifest.run_id.cmp(&one.manifest.run_id));
    runs
}

/// The directory of the run that a person names by its path, its id or its short id.
///
/// # Errors
/// No run of this repository, or more than one, has such an id.
pub fn directory(context: &Context, name: &Path) -> Result<PathBuf> {
    let path = context.cwd.join(name);
    let id = name
        .to_str()
        .filter(|id| !id.is_empty() && !id.contains('/'));
    let Some(id) = id.filter(|_| !path.exists()) else {
        return Ok(path);
    };
    let Ok(real) = repository(context) else {
        return Ok(path);
    };
    let runs = past_runs(context, real.work_tree());
    let mut named = runs.into_iter().filter(|run| run.is_named(id));
    match (named.next(), named.next()) {
        (Some(run), None) => Ok(run.dir),
        (Some(_), Some(_)) => Err(
            Error::usage(format!("more than one run has an id like {id}"))
                .hint("sprag runs lists them; name more of the id"),
        ),
        (None, _) => Err(Error::usage(format!(
            "{id} is neither a directory nor the id of a run of this repository"
        ))
        .hint("sprag runs lists the runs with their ids")),
    }
}

/// The directory of the newest run of this repository that has ended.
///
/// # Errors
/// There is no repository here, or no such run.
pub fn newest_ended(context: &Context) -> Result<PathBuf> {
    let real = repository(context)?;
    let runs = past_runs(context, real.work_tree());
    let ended = runs.into_iter().find(|run| run.summary().is_some());
    ended.map(|run| run.dir).ok_or_else(|| {
        Error::usage("no run of this repository that has ended is recorded here")
            .hint("sprag runs lists the runs; sprag run begins one")
    })
}

/// The name of the file beside the runs of a work tree that lists what `sprag init --try` left there.
const TRIED: &str = "tried.json";

/// Keeps which untracked files the commands of `sprag init --try` left behind. A job's runs are kept
/// in a directory that several work trees share, and nothing is kept there.
///
/// # Errors
/// The list cannot be written.
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

/// What a new run refuses to begin on: what differs from HEAD, but for the files that only setup
/// commands and checks left behind. Directories that git does not know are one entry.
///
/// # Errors
/// When git fails.
pub fn dirt_of_somebody(
    context: &Context,
    real: &Real,
) -> std::result::Result<git::Dirt, GitError> {
    let mut dirt = git::dirt(real)?;
    let known = check_artifacts(context, real.work_tree());
    if !dirt.untracked.is_empty() && !known.is_empty() {
        let all = git::untracked_files(real)?;
        let unknown = all.difference(&known);
        dirt.untracked = holding(dirt.untracked, unknown);
    }
    Ok(dirt)
}

/// Those of the entries of git's status that are, or hold, one of these files.
pub fn holding<'f>(
    mut entries: Vec<String>,
    files: impl IntoIterator<Item = &'f Vec<u8>>,
) -> Vec<String> {
    let files: Vec<String> = files.into_iter().map(|it| git::display_path(it)).collect();
    entries.retain(|entry| files.iter().any(|path| lies_in(path, entry)));
    entries
}

/// Whether a path is what an entry of git's status names: the file itself, or one in that directory.
pub fn lies_in(path: &str, entry: &str) -> bool {
    path == entry || (entry.ends_with('/') && path.starts_with(entry))
}

/// Untracked files that only setup commands and the checks of earlier runs, or of a trial, left behind.
#[must_use]
pub fn check_artifacts(context: &Context, work_tree: &Path) -> BTreeSet<Vec<u8>> {
    let runs = runs_of_tree(&runs_of(context, work_tree), work_tree).into_iter();
    let lists = runs.filter_map(|(dir, _)| {
        let bytes = fs::read(dir.join(&*RunFile::CheckArtifacts.path())).ok()?;
        serde_json::from_slice::<Vec<Vec<u8>>>(&bytes).ok()
    });
    lists.flatten().chain(tried(context, work_tree)).collect()
}
