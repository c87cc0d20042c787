//! Installed packages whose files somebody changed in place.
//!
//! Package managers replace a package with its description (`package.json`, `RECORD`). A file that is younger
//! than the start of the run in a package whose description is older was changed by other means, and no
//! installation brings it. The time of the last change of a file cannot be set, unlike that of its content.

use crate::git::{Repo, display_path};
use std::collections::BTreeSet;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// The most files that are looked at.
const MAX_FILES: usize = 200_000;

/// A moment, in seconds and nanoseconds since 1970.
pub type Moment = (i64, i64);

/// Files of installed packages that were changed in place after a moment, one per package.
pub fn changed_in_place(repo: &Repo, families: &[&str], since: Moment) -> BTreeSet<String> {
    let top = repo.real().work_tree();
    let mut look = Look {
        since,
        left: MAX_FILES,
        found: Vec::new(),
    };
    if families.contains(&"JavaScript") {
        for dir in package_directories(repo) {
            look.node_modules(&top.join(dir).join("node_modules"));
        }
    }
    if families.contains(&"Python") {
        for environment in [".venv", "venv"] {
            look.environment(&top.join(environment));
        }
    }
    let shown = look
        .found
        .iter()
        .filter_map(|path| path.strip_prefix(top).ok());
    shown
        .map(|path| display_path(path.as_os_str().as_encoded_bytes()))
        .collect()
}

/// The directories of the repository with a `package.json`, and the top.
fn package_directories(repo: &Repo) -> BTreeSet<String> {
    let paths = repo.base_paths().unwrap_or_default();
    let manifests = paths.iter().map(|path| display_path(path));
    let dirs = manifests.filter_map(|path| {
        let dir = path.strip_suffix("package.json")?.trim_end_matches('/');
        Some(dir.to_owned())
    });
    dirs.chain([String::new()]).collect()
}

struct Look {
    since: Moment,
    left: usize,
    found: Vec<PathBuf>,
}

impl Look {
    fn is_younger(&self, meta: &Metadata) -> bool {
        (meta.ctime(), meta.ctime_nsec()) > self.since
    }

    fn is_older(&self, path: &Path) -> bool {
        path.symlink_metadata()
            .is_ok_and(|meta| !self.is_younger(&meta))
    }

    fn node_modules(&mut self, modules: &Path) {
        for entry in directories(modules) {
            let name = entry.file_name().unwrap_or_default().to_string_lossy();
            if name == ".pnpm" {
                for package in directories(&entry) {
                    self.node_modules(&package.join("node_modules"));
                }
            } else if name.starts_with('@') {
                for package in directories(&entry) {
                    self.package(&package);
                }
            } else if !name.starts_with('.') {
                self.package(&entry);
            }
        }
    }

    fn package(&mut self, package: &Path) {
        if self.is_older(&package.join("package.json")) {
            let changed = self.younger_below(package, &|_| true);
            self.found.extend(changed);
        }
        self.node_modules(&package.join("node_modules"));
    }

    fn environment(&mut self, environment: &Path) {
        if !self.is_older(&environment.join("pyvenv.cfg")) {
            return;
        }
        for version in directories(&environment.join("lib")) {
            let packages = version.join("site-packages");
            let is_record = |dir: &PathBuf| dir.extension().is_some_and(|end| end == "dist-info");
            let records = directories(&packages).into_iter().filter(is_record);
            let records = records.map(|dir| dir.join("RECORD"));
            let new = records.filter(|record| !self.is_older(record));
            let listed: String = new
                .filter_map(|path| fs::read_to_string(path).ok())
                .collect();
            let installed: BTreeSet<PathBuf> = listed
                .lines()
                .filter_map(|line| line.split(',').next())
                .map(|path| packages.join(path.trim_matches('"')))
                .collect();
            let changed = self.younger_below(&packages, &|path| !installed.contains(path));
            self.found.extend(changed);
        }
    }

    /// The first younger file below a directory for which `counts` is true. Caches, nested packages and what
    /// package managers note beside the packages do not count.
    fn younger_below(&mut self, dir: &Path, counts: &dyn Fn(&Path) -> bool) -> Option<PathBuf> {
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            let (name, path) = (entry.file_name(), entry.path());
            let name = name.to_string_lossy();
            let Ok(meta) = entry.metadata() else { continue };
            let is_noted =
                name.starts_with('.') || name.ends_with(".dist-info") || name.ends_with(".pyc");
            if is_noted || ["__pycache__", "node_modules"].contains(&&*name) {
                continue;
            }
            self.left = self.left.checked_sub(1)?;
            if meta.is_dir() {
                if let Some(found) = self.younger_below(&path, counts) {
                    return Some(found);
                }
            } else if meta.is_file() && self.is_younger(&meta) && counts(&path) {
                return Some(path);
            }
        }
        None
    }
}

/// The directories in a directory, without links.
fn directories(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let dirs = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    dirs.map(|entry| entry.path()).collect()
}
