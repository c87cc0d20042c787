//! What checks see in the work tree and no commit contains. It is compared with its state before the agent could change
//! it, except for products and caches, which builds make again.

use crate::domain::checks::judges::Named;
use crate::domain::checks::uncommitted::{holds_dependencies, is_list_of_products, may_be_needed};
use crate::domain::protected_paths::ProtectedPaths;
use crate::git::{ChangeKind, CommitError, RawSnapshot, Repo, TreeId, display_path};
use crate::plain_file;
use crate::run::steps::installed::{Installed, stamp};
use crate::settings::TaskConfig;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::Metadata;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// The most ignored files that are looked at.
const MAX_FILES: usize = 4_000;
/// The most bytes that are read of a file.
const MAX_BYTES: u64 = 16 << 20;
/// The most ignored files that are named.
const NAMED_FILES: usize = 3;
/// Directories in which package managers install programs, relative to the top of a package.
const INSTALLED: &[&str] = &["node_modules/.bin", ".venv/bin", "venv/bin", "vendor/bin"];
/// The directories of the machine's own programs.
const MACHINE: &[&str] = &["/bin", "/usr/bin"];

/// The record of what checks see and no commit contains.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Uncommitted {
    /// The installed dependencies.
    installed: Installed,
    /// What else was there when the task started: ignored files and directories, and repositories of their own.
    /// Caches are left out, and so is what agents have left in earlier tasks of the run.
    at_start: BTreeSet<Vec<u8>>,
    /// Each of these with a digest of its state then, or as the checks have left it.
    stamps: BTreeSet<(Vec<u8>, String)>,
    /// Everything that git ignored then, also caches.
    ignored: BTreeSet<Vec<u8>>,
    /// What of it programs execute by themselves, with digests.
    starting: BTreeSet<(Vec<u8>, String)>,
    /// Whether a task of the run has started.
    has_started: bool,
    /// The same, made by checks since then, and not changed by others.
    made_by_checks: BTreeSet<Vec<u8>>,
    /// When checks last ended, in milliseconds.
    checked_at: i64,
    /// The protected paths that somebody had changed before the task started, with mode and digest.
    pub own: Vec<OwnChange>,
    /// The base with these changes, if there are any.
    pub start: Option<TreeId>,
}

/// A changed path with its mode and digest; without them if it is gone.
type OwnChange = (Vec<u8>, Option<(u32, [u8; 32])>);

impl Uncommitted {
    /// Records the protected paths that are changed before a task starts, which is so only if the run may start on
    /// changes.
    ///
    /// # Errors
    /// When one of them cannot be read.
    pub fn start_as(&mut self, repo: &Repo, own: &RawSnapshot) -> Result<(), CommitError> {
        let paths = own.changed_paths().into_iter().map(|entry| entry.path);
        let changes = paths.map(|path| (path.clone(), own.content(&path)));
        self.own = changes.collect();
        let tree = (!self.own.is_empty()).then(|| repo.write_snapshot_tree(own));
        self.start = tree.transpose()?;
        Ok(())
    }

    /// Records the state at the start of a task.
    pub fn start_task(&mut self, repo: &Repo, raw: &RawSnapshot, config: &TaskConfig) {
        let roots = raw.ignored.iter().filter_map(|path| directory(path));
        let roots = roots.filter(|path| holds_dependencies(path));
        self.installed.add(repo.real().work_tree(), roots);
        let altered = self.altered(repo);
        let made_by_checks = std::mem::take(&mut self.made_by_checks);
        let earlier = std::mem::take(&mut self.at_start);
        let is_first = !std::mem::replace(&mut self.has_started, true);
        if is_first {
            self.ignored.extend(raw.ignored.iter().cloned());
            self.starting = starting(repo, raw, &config.protected_paths);
        }
        self.at_start = uncommitted(repo, raw, |path| {
            let is_of_agent = || !covers(&earlier, path) || covers(&altered, path);
            is_first || !is_of_agent() || covers(&made_by_checks, path)
        });
        // Services write at any time.
        let is_quiet = config.settings.services.is_empty();
        let quiet = self.at_start.iter().filter(|_| is_quiet);
        self.stamps = quiet.map(|path| stamped(repo, path)).collect();
    }

    /// What was there when the task started, and is no longer as it was.
    pub fn altered(&self, repo: &Repo) -> BTreeSet<Vec<u8>> {
        let stamps = self.stamps.iter();
        let altered = stamps.filter(|known| **known != stamped(repo, &known.0));
        altered.map(|(path, _)| path.clone()).collect()
    }

    /// Those of these paths that git ignored when the task started, itself or with a directory around it.
    pub fn ignored_at_start(&self, paths: &[String]) -> Vec<Vec<u8>> {
        let paths = paths.iter().map(|path| path.as_bytes().to_vec());
        paths.filter(|path| covers(&self.at_start, path)).collect()
    }

    /// Records what checks have made between two states.
    pub fn after_checks(&mut self, repo: &Repo, before: &RawSnapshot, after: &RawSnapshot) {
        let there = before.ignored.iter().chain(&before.nested);
        let there: BTreeSet<&[u8]> = there.map(Vec::as_slice).collect();
        let is_new = |path: &[u8]| !there.contains(path);
        let new = after.ignored.iter().filter(|path| is_new(path));
        self.ignored.extend(new.cloned());
        self.made_by_checks.extend(uncommitted(repo, after, is_new));
        if !self.made_by_checks.is_empty() {
            self.checked_at = Timestamp::now().as_millisecond();
        }
    }

    /// Leaves to the agent what checks have made and it has changed since, before they run again.
    pub fn before_checks(&mut self, repo: &Repo) {
        let top = repo.real().work_tree();
        let checked_at = self.checked_at;
        self.made_by_checks.retain(|path| {
            let is_as_made =
                |meta: Metadata| meta.ctime() * 1_000 + meta.ctime_nsec() / 1_000_000 <= checked_at;
            let mut files = files_at(top, [path]).into_iter();
            files.all(|file| file.symlink_metadata().is_ok_and(is_as_made))
        });
    }

    /// What no commit contains and was not there when the task started, with the lists of what builds have made of
    /// it. The second set is the part that only the agent can have made.
    pub fn since_start(
        &self,
        repo: &Repo,
        raw: &RawSnapshot,
    ) -> (BTreeSet<Vec<u8>>, BTreeSet<Vec<u8>>) {
        let altered = self.altered(repo);
        let mut new = uncommitted(repo, raw, |path| {
            !covers(&self.at_start, path) || covers(&altered, path)
        });
        let by_agent = new.difference(&self.made_by_checks).cloned().collect();
        if !new.is_empty() {
            let lists = raw.ignored.iter();
            new.extend(lists.filter(|path| is_list_of_products(path)).cloned());
        }
        (new, by_agent)
    }

    /// What git ignores and the agent has made or changed, without caches and products of builds; and what is new of what
    /// programs execute by themselves, which these protected paths cover.
    pub fn ignored_by_agent(
        &self,
        repo: &Repo,
        raw: &RawSnapshot,
        protected: &ProtectedPaths,
    ) -> (Vec<String>, BTreeSet<Vec<u8>>) {
        let new = raw.ignored.iter();
        let new = new.filter(|path| !covers(&self.ignored, path));
        let (mut held, left): (BTreeSet<Vec<u8>>, BTreeSet<Vec<u8>>) = (new.cloned())
            .partition(|path| protected.cover(path.strip_suffix(b"/").unwrap_or(path), false));
        let known: BTreeSet<&Vec<u8>> = self.starting.iter().map(|(path, _)| path).collect();
        let starting = starting(repo, raw, protected);
        let other = starting.difference(&self.starting);
        let other = other.map(|(path, _)| path.clone());
        let (there, mut new): (Vec<_>, Vec<_>) = other.partition(|path| known.contains(path));
        new.retain(|path| !covers(&held, path));
        held.extend(new);
        let top = repo.real().work_tree();
        let is_written =
            |path: &Vec<u8>| may_be_needed(&display_path(path), top.join(os(path)).is_dir());
        let mut told = self.altered(repo);
        told.extend(left.into_iter().filter(is_written).chain(there));
        (told.iter().map(|path| display_path(path)).collect(), held)
    }

    /// Files that only the agent can have written and that git ignores, with the rule for each.
    pub fn ignored_work(&self, repo: &Repo, raw: &RawSnapshot) -> Vec<String> {
        let top = repo.real().work_tree();
        let files = files_at(top, &self.since_start(repo, raw).1);
        let paths = files.iter().filter_map(|file| file.strip_prefix(top).ok());
        let paths = paths.map(|path| path.as_os_str().as_bytes().to_vec());
        let paths: Vec<Vec<u8>> = paths.take(NAMED_FILES).collect();
        repo.ignored_by(&paths).unwrap_or_default()
    }

    /// Records what setup commands have made: directories that git ignores.
    pub fn after_setup(&mut self, repo: &Repo, before: &RawSnapshot, after: &RawSnapshot) {
        let there: BTreeSet<&Vec<u8>> = before.ignored.iter().collect();
        let new = after.ignored.iter().filter(|path| !there.contains(path));
        let top = repo.real().work_tree();
        self.installed.record(top);
        self.installed
            .add(top, new.filter_map(|path| directory(path)));
    }

    /// The installed dependencies.
    pub fn installed(&self) -> &Installed {
        &self.installed
    }

    /// Takes what checks have changed, in installed dependencies if no agent has changed any, and elsewhere but in what
    /// was `altered` before.
    pub fn take_changes(&mut self, repo: &Repo, are_as_made: bool, altered: &BTreeSet<Vec<u8>>) {
        if are_as_made {
            self.installed.record(repo.real().work_tree());
        }
        let stamps = std::mem::take(&mut self.stamps).into_iter();
        let stamps = stamps.map(|known| {
            if altered.contains(&known.0) {
                known
            } else {
                stamped(repo, &known.0)
            }
        });
        self.stamps = stamps.collect();
    }

    /// Installed programs that checks name and that now shadow another one, and dependencies that are gone.
    pub fn shadowing_programs(&self, repo: &Repo, named: &Named) -> BTreeSet<String> {
        let is_new = |path: &String| {
            let (directory, name) = path.rsplit_once('/').unwrap_or_default();
            let precedes = || {
                let mut machine = MACHINE.iter().map(|dir| Path::new(dir).join(name));
                (named.uses_environment() || !directory.ends_with("venv/bin"))
                    && machine.any(|program| program.exists())
            };
            let is_elsewhere = || !covers(&self.at_start, path.as_bytes()) && precedes();
            self.installed.is_new(path).unwrap_or_else(is_elsewhere)
        };
        let programs = installed(repo, named).into_iter();
        programs.filter(is_new).collect()
    }
}

/// What programs execute by themselves, among what git ignores, each with a digest of its state.
fn starting(
    repo: &Repo,
    raw: &RawSnapshot,
    protected: &ProtectedPaths,
) -> BTreeSet<(Vec<u8>, String)> {
    let top = repo.real().work_tree();
    let is_own = |path: &&Vec<u8>| !holds_dependencies(display_path(path).trim_end_matches('/'));
    let own = raw.ignored.iter().filter(is_own);
    let files = own.flat_map(|path| files_at(top, [path]));
    let paths = files.filter_map(|file| {
        let path = file.strip_prefix(top).ok()?.as_os_str().as_bytes();
        protected.cover(path, false).then(|| stamped(repo, path))
    });
    paths.collect()
}

fn stamped(repo: &Repo, path: &[u8]) -> (Vec<u8>, String) {
    let full = repo.real().work_tree().join(os(path));
    (path.to_vec(), stamp(&full))
}

fn os(path: &[u8]) -> &OsStr {
    OsStr::from_bytes(path)
}

/// An ignored directory without the slash at its end.
fn directory(path: &[u8]) -> Option<String> {
    let path = std::str::from_utf8(path).ok()?;
    Some(path.trim_end_matches('/').to_owned())
}

/// The files at and below these paths of the work tree.
fn files_at<'p>(top: &Path, paths: impl IntoIterator<Item = &'p Vec<u8>>) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for path in paths {
        below(&top.join(os(path)), &mut files);
    }
    files
}

/// Those paths which checks see in the work tree, which a fresh checkout of its commit does not have, and for which
/// `is_new` returns true. An ignored directory of which a file is committed nevertheless is left out.
fn uncommitted(
    repo: &Repo,
    raw: &RawSnapshot,
    is_new: impl Fn(&[u8]) -> bool,
) -> BTreeSet<Vec<u8>> {
    let top = repo.real().work_tree();
    let changes = raw.changes.iter().filter(|change| !change.newly_ignored);
    let committed: BTreeSet<Vec<u8>> = changes.map(|change| change.path.clone()).collect();
    let is_needed = |path: &Vec<u8>| {
        let may_be_needed = top.join(os(path)).symlink_metadata().is_ok_and(|meta| {
            may_be_needed(&display_path(path), meta.is_dir() || meta.is_symlink())
        });
        let may_be_needed = may_be_needed || is_without_origin(repo, raw, path);
        may_be_needed && !committed.contains(path) && !has_below(&committed, path)
    };
    let ignored = raw.ignored.iter();
    let ignored = ignored.filter(|path| is_new(path) && is_needed(path));
    let nested = raw.nested.iter().filter(|path| is_new(path));
    ignored.chain(nested).cloned().collect()
}

/// Whether what is usually made again may decide a result all the same: a compiled module of Python without its source,
/// packages of JavaScript below the top of the work tree that no manifest asked for, and what says that an installed package extends pytest.
fn is_without_origin(repo: &Repo, raw: &RawSnapshot, path: &[u8]) -> bool {
    let relative = Path::new(os(path));
    let (full, name) = (repo.real().work_tree().join(relative), relative.file_name());
    match name.and_then(|name| name.to_str()) {
        Some("node_modules") => relative.parent().is_some_and(|dir| {
            let manifest = dir.join("package.json");
            let is_new = || {
                let path = manifest.as_os_str().as_bytes();
                let mut added = raw.changes.iter().filter(|change| change.path == path);
                added.any(|change| change.kind == ChangeKind::Added)
                    && repo.has_tracked_files(&dir.to_string_lossy())
            };
            let is_below = dir.as_os_str() != "";
            is_below && (!full.with_file_name("package.json").exists() || is_new())
        }),
        Some("entry_points.txt") => extends_pytest(&full),
        Some(name) if name.ends_with("-info") => extends_pytest(&full.join("entry_points.txt")),
        Some(name) if name.ends_with(".pyc") => {
            let is_cache = |dir: &Path| dir.ends_with("__pycache__");
            !relative.parent().is_some_and(is_cache) && !full.with_extension("py").exists()
        }
        _ => false,
    }
}

fn extends_pytest(entry_points: &Path) -> bool {
    let opened = plain_file::open(entry_points);
    let mut text = String::new();
    let read = opened.and_then(|file| file.take(MAX_BYTES).read_to_string(&mut text));
    read.is_ok() && text.contains("[pytest11]")
}

/// Whether a set of paths contains a path, a directory around it, or something below it. Other rules for
/// ignored files may list the same files as a directory, or one by one.
fn covers(paths: &BTreeSet<Vec<u8>>, path: &[u8]) -> bool {
    let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
    let mut around = ends.map(|(end, _)| &path[..end]);
    paths.contains(path) || has_below(paths, path) || around.any(|dir| paths.contains(dir))
}

fn has_below(paths: &BTreeSet<Vec<u8>>, directory: &[u8]) -> bool {
    let below = [directory, b"/"].concat();
    let next = paths.range(below.clone()..).next();
    next.is_some_and(|path| path.starts_with(&below))
}

/// The programs that the words of checks name and that a package manager has installed in the work tree, in a directory
/// in which a check runs or around it, with what links lead to.
fn installed(repo: &Repo, named: &Named) -> BTreeSet<String> {
    let top = repo.real().work_tree();
    let dirs = named.directories.iter().map(String::as_str);
    let dirs = dirs.flat_map(|dir| Path::new(dir).ancestors().filter_map(Path::to_str));
    let dirs: BTreeSet<&str> = dirs.chain([""]).collect();
    let installed = || INSTALLED.iter();
    let in_dir = |dir| installed().map(move |place| Path::new(dir).join(place));
    let places = dirs.into_iter().flat_map(in_dir);
    let places: Vec<PathBuf> = places.filter(|place| top.join(place).is_dir()).collect();
    let mut found = BTreeSet::new();
    let is_likely = |word: &&String| !word.starts_with(['-', '.', '/']) || word.contains("bin/");
    for word in named.words.iter().filter(is_likely) {
        let of_place = places.iter().map(|place| place.join(word));
        let paths = of_place.chain([PathBuf::from(word.trim_start_matches("./"))]);
        for path in paths.filter(|path| top.join(path).is_file()) {
            let real = top.join(&path).canonicalize().ok();
            let real = real.and_then(|real| Some(real.strip_prefix(top).ok()?.to_path_buf()));
            found.extend([Some(path), real].into_iter().flatten());
        }
    }
    let is_installed = |path: &PathBuf| {
        let directory = path.parent().and_then(Path::to_str).unwrap_or_default();
        let name = path.to_string_lossy();
        let is_likely = name.contains("bin/") || name.contains("node_modules/");
        is_likely && !repo.has_tracked_files(directory)
    };
    let found = found.into_iter().filter(is_installed);
    let names = found.filter_map(|path| path.into_os_string().into_string().ok());
    names.collect()
}

/// The files at and below a path, sorted, without caches and nested packages.
fn below(path: &Path, files: &mut Vec<PathBuf>) {
    let Ok(meta) = path.symlink_metadata() else {
        return;
    };
    if meta.is_file() {
        files.push(path.to_path_buf());
    } else if meta.is_dir() {
        for inside in plain_file::entries(path) {
            let name = inside.file_name().unwrap_or_default().to_string_lossy();
            let is_cache = name.starts_with('.') || name == "__pycache__" || name == "node_modules";
            if !is_cache && files.len() < MAX_FILES {
                below(&inside, files);
            }
        }
    }
}
