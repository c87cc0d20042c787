//! Programs in the work tree that checks run and no commit contains, such as those that a package
//! manager installs. They are compared with their state before the agent could change them.

use crate::domain::checks::definitions::Definitions;
use crate::git::Repo;
use crate::plain_file;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// The most files of a package that go into its digest.
const MAX_FILES: usize = 4_000;
/// The most bytes of a file that go into its digest.
const MAX_BYTES: u64 = 16 << 20;
/// The directory of modules that belong to a program, and of code that Python runs at every start.
const SITE_PACKAGES: &str = "site-packages";

/// The state of each program when the run first saw that a check runs it.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstalledPrograms {
    /// Digest by path: of the target for a link, of the surrounding package for a file.
    programs: BTreeMap<String, String>,
    /// The directories of installed programs that existed.
    directories: BTreeSet<String>,
}

impl InstalledPrograms {
    /// Adds the programs of these checks that are not recorded yet. Returns whether there were any.
    pub fn add(&mut self, repo: &Repo, definitions: &Definitions) -> bool {
        let before = (self.programs.len(), self.directories.len());
        let top = repo.real().work_tree();
        for path in installed(repo, definitions) {
            if !self.programs.contains_key(path)
                && let Some(digest) = digest(top, path)
            {
                self.programs.insert(path.to_owned(), digest);
            }
        }
        let there = |dir: &&&str| top.join(dir).is_dir() && !repo.has_tracked_files(dir);
        let there = Definitions::INSTALLED.iter().filter(there);
        self.directories.extend(there.map(|dir| (*dir).to_owned()));
        before != (self.programs.len(), self.directories.len())
    }

    /// Programs that were modified or removed, or that now shadow another program.
    pub fn changed(&self, repo: &Repo, definitions: &Definitions) -> BTreeSet<String> {
        let top = repo.real().work_tree();
        let mut changed: BTreeSet<String> = self
            .programs
            .iter()
            .filter(|(path, before)| digest(top, path).as_ref() != Some(before))
            .map(|(path, _)| path.clone())
            .collect();
        let is_new = |path: &&str| {
            let directory = path.rsplit_once('/').map_or("", |(directory, _)| directory);
            self.directories.contains(directory) && !self.programs.contains_key(*path)
        };
        let new = installed(repo, definitions).filter(is_new);
        changed.extend(new.map(str::to_owned));
        changed
    }
}

/// The programs that checks run from directories without tracked files.
fn installed<'d>(repo: &Repo, definitions: &'d Definitions) -> impl Iterator<Item = &'d str> {
    let is_installed = |path: &&str| {
        let directory = path.rsplit_once('/').map(|(directory, _)| directory);
        let is_likely = path.contains("bin/") || path.contains("node_modules/");
        is_likely && directory.is_some_and(|directory| !repo.has_tracked_files(directory))
    };
    definitions.programs().filter(is_installed)
}

/// A digest of a link, or of a file with its package; `None` if there is neither.
fn digest(top: &Path, path: &str) -> Option<String> {
    let full = top.join(path);
    let meta = full.symlink_metadata().ok()?;
    let mut hasher = blake3::Hasher::new();
    if meta.is_symlink() {
        let target = fs::read_link(&full).ok()?;
        hasher
            .update(b"link")
            .update(target.as_os_str().as_encoded_bytes());
        return Some(hasher.finalize().to_hex().to_string());
    }
    if !meta.is_file() {
        return None;
    }
    let mut files = vec![full.clone()];
    for root in around(top, path) {
        below(&root, &mut files);
    }
    for file in files {
        hasher
            .update(file.as_os_str().as_encoded_bytes())
            .update(&[0]);
        if let Ok(opened) = plain_file::open(&file) {
            let mut content = Vec::new();
            let _ = opened.take(MAX_BYTES).read_to_end(&mut content);
            hasher.update(blake3::hash(&content).as_bytes());
        }
    }
    Some(hasher.finalize().to_hex().to_string())
}

/// The package of a program: its directory in `node_modules`, or its modules in a virtual environment.
fn around(top: &Path, path: &str) -> Vec<PathBuf> {
    if let Some((before, inside)) = path.rsplit_once("node_modules/") {
        let parts = if inside.starts_with('@') { 2 } else { 1 };
        let package: Vec<&str> = inside.split('/').take(parts).collect();
        let is_package = !inside.starts_with('.') && inside.split('/').count() > parts;
        let root = top
            .join(before)
            .join("node_modules")
            .join(package.join("/"));
        return if is_package { vec![root] } else { Vec::new() };
    }
    let Some((environment, name)) = path.rsplit_once("/bin/") else {
        return Vec::new();
    };
    let environment = top.join(environment);
    if !environment.join("pyvenv.cfg").is_file() {
        return Vec::new();
    }
    let mut found = Vec::new();
    for version in sorted(&environment.join("lib")) {
        let packages = version.join(SITE_PACKAGES);
        found.push(packages.join(name));
        found.push(packages.join(format!("_{name}")));
        let runs_at_start = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.ends_with(".pth") || name == "sitecustomize.py" || name == "usercustomize.py"
        };
        found.extend(sorted(&packages).into_iter().filter(runs_at_start));
    }
    found
}

/// The files at and below a path, sorted, without caches and nested packages.
fn below(path: &Path, files: &mut Vec<PathBuf>) {
    let Ok(meta) = path.symlink_metadata() else {
        return;
    };
    if meta.is_file() {
        files.push(path.to_path_buf());
    } else if meta.is_dir() {
        for inside in sorted(path) {
            let name = inside.file_name().unwrap_or_default().to_string_lossy();
            let is_cache = name.starts_with('.') || name == "__pycache__" || name == "node_modules";
            if !is_cache && files.len() < MAX_FILES {
                below(&inside, files);
            }
        }
    }
}

fn sorted(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}
