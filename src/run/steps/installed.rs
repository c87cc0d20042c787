//! Installed dependencies: what lies in the work tree, is executed by checks, and is in no commit. Names, sizes and times
//! are recorded before an agent can change them.

use crate::domain::checks::uncommitted::{holds_dependencies, may_be_needed};
use crate::git::remove_tree;
use crate::plain_file::entries;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// The file by which compilers and test tools mark directories of products.
const TAG: &str = "CACHEDIR.TAG";

/// The file of an environment of Python, which uv marks in the same way.
const ENVIRONMENT: &str = "pyvenv.cfg";

/// The record of installed dependencies.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Installed {
    /// The directories, relative to the work tree, with what setup commands have made.
    roots: BTreeSet<String>,
    /// The programs in them that no agent has installed.
    programs: BTreeSet<String>,
    /// A digest of what each directory in them has, without those that programs make again while they run.
    seen: BTreeMap<String, String>,
    /// The same of those that programs make again, such as compiled modules of Python.
    remade: BTreeMap<String, String>,
}

impl Installed {
    /// Adds directories, and records what they have now.
    pub fn add(&mut self, top: &Path, roots: impl Iterator<Item = String>) {
        let is_kept = |root: &String| {
            let full = top.join(root);
            let is_product = || full.join(TAG).exists() && !full.join(ENVIRONMENT).exists();
            is_directory(&full) && (holds_dependencies(root) || !is_product())
        };
        let known = std::mem::take(&mut self.roots);
        self.roots = known.iter().cloned().chain(roots.filter(is_kept)).collect();
        let new = self.roots.difference(&known);
        let found = Found::of(top, new);
        self.seen.extend(found.seen);
        self.remade.extend(found.remade);
        let programs = self.seen.keys().filter(|path| is_on_shelf(path));
        self.programs.extend(programs.cloned());
    }

    /// Records what is there now.
    pub fn record(&mut self, top: &Path) {
        let Found { seen, remade } = Found::of(top, self.roots.iter());
        (self.seen, self.remade) = (seen, remade);
    }

    /// Removes what programs make again and the agent has changed, and returns the packages that it has changed. Whether
    /// new packages count says `counts_new`.
    pub fn changed(&self, top: &Path, counts_new: bool) -> Vec<String> {
        let now = Found::of(top, self.roots.iter());
        for (path, _) in differing(&self.remade, &now.remade) {
            // What is left makes a check fail, and is not passed over.
            let _ = remove_tree(&top.join(path));
        }
        let changed = differing(&self.seen, &now.seen).map(|(path, _)| path);
        let changed = changed.filter(|path| counts_new || !self.is_addition(path));
        let changed: BTreeSet<String> = changed.map(|path| self.package_of(path)).collect();
        changed.into_iter().collect()
    }

    /// Whether a program is new on a shelf of a recorded directory. What is new elsewhere is a change of what is there.
    pub fn is_new(&self, program: &str) -> Option<bool> {
        let mut around = self.roots.iter();
        let is_around = around.any(|root| Path::new(program).starts_with(root));
        is_around.then(|| is_on_shelf(program) && !self.programs.contains(program))
    }

    /// Whether a path is new on a shelf of packages or programs, or belongs to what is.
    fn is_addition(&self, path: &str) -> bool {
        let ends = path.match_indices('/').map(|(end, _)| end);
        let mut prefixes = ends.chain([path.len()]).filter_map(|end| path.get(..end));
        let is_root = |prefix: &&str| self.roots.iter().any(|root| root.starts_with(*prefix));
        let new = prefixes.find(|prefix| !is_root(prefix) && !self.seen.contains_key(*prefix));
        let shelf = new.and_then(|new| new.rsplit_once('/'));
        shelf.is_some_and(|(dir, name)| is_shelf(dir) && !runs_at_start(name))
    }

    /// Moves everything away, so that setup commands make it again.
    pub fn move_away(&self, top: &Path, to: &Path) {
        for (number, root) in self.roots.iter().enumerate() {
            // What cannot be moved is there while setup commands run, as it was without this.
            let _ = fs::rename(top.join(root), to.join(number.to_string()));
        }
    }

    /// Moves back what setup commands have not made again, and returns it.
    pub fn move_back(&self, top: &Path, from: &Path) -> Vec<&String> {
        let is_back = |(number, root): &(usize, &String)| {
            let full = top.join(root);
            full.symlink_metadata().is_err()
                && fs::rename(from.join(number.to_string()), full).is_ok()
        };
        let back = self.roots.iter().enumerate().filter(is_back);
        back.map(|(_, root)| root).collect()
    }

    /// The package or program that a path belongs to: what lies on the innermost shelf around it.
    fn package_of(&self, path: &str) -> String {
        let ends = path.match_indices('/').map(|(end, _)| end);
        let is_end = |end: &usize| path.get(..*end).is_some_and(is_shelf);
        let shelf = ends.rev().find(is_end);
        let start = shelf.map_or(0, |end| end + 1);
        let below = path.get(start..).unwrap_or_default();
        let end = below.find('/').map_or(path.len(), |end| start + end);
        path.get(..end).unwrap_or(path).to_owned()
    }
}

/// The entries that differ, with either digest.
fn differing<'a>(
    before: &'a BTreeMap<String, String>,
    now: &'a BTreeMap<String, String>,
) -> impl Iterator<Item = (&'a String, &'a String)> {
    let is_other = move |(path, digest): &(&String, &String)| before.get(*path) != Some(*digest);
    let is_gone = move |(path, _): &(&String, &String)| !now.contains_key(*path);
    let gone = before.iter().filter(is_gone);
    now.iter().filter(is_other).chain(gone)
}

/// What is found in directories: a digest by path.
#[derive(Default)]
struct Found {
    seen: BTreeMap<String, String>,
    remade: BTreeMap<String, String>,
}

impl Found {
    fn of<'r>(top: &Path, roots: impl Iterator<Item = &'r String>) -> Self {
        let mut found = Self::default();
        for root in roots {
            found.directory(top, root);
        }
        found
    }

    fn directory(&mut self, top: &Path, path: &str) {
        let mut hasher = blake3::Hasher::new();
        let is_shelf = is_shelf(path);
        for entry in entries(&top.join(path)) {
            let Some(name) = entry.file_name().and_then(|name| name.to_str()) else {
                add(&mut hasher, &entry);
                continue;
            };
            let below = format!("{path}/{name}");
            if !is_directory(&entry) {
                if is_shelf && !is_note(name) {
                    self.seen.insert(below, stamp(&entry));
                } else if !is_note(name) {
                    add(&mut hasher, &entry);
                }
            } else if is_remade(name) {
                self.remade.insert(below, stamp(&entry));
            } else {
                if !is_shelf {
                    hasher.update(name.as_bytes());
                }
                self.directory(top, &below);
            }
        }
        self.seen.insert(path.to_owned(), short(&hasher));
    }
}

/// Whether packages or programs lie beside each other in a directory.
fn is_shelf(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    matches!(name, "node_modules" | ".bin" | "bin" | "site-packages") || name.starts_with('@')
}

fn is_on_shelf(path: &str) -> bool {
    path.rsplit_once('/').is_some_and(|(dir, _)| is_shelf(dir))
}

/// Whether Python executes a file of this name whenever it starts.
fn runs_at_start(name: &str) -> bool {
    name.ends_with(".pth") || matches!(name, "sitecustomize.py" | "usercustomize.py")
}

/// Whether programs make a directory of this name again while they run.
fn is_remade(name: &str) -> bool {
    name == "__pycache__"
        || (name.starts_with('.') && name.ends_with("cache"))
        || (name.starts_with(".vite") && !may_be_needed(name, true))
}

/// Whether a package manager only keeps notes in a file of this name.
fn is_note(name: &str) -> bool {
    matches!(
        name,
        ".package-lock.json" | ".yarn-state.yml" | ".yarn-integrity" | ".lock" | ".modules.yaml"
    )
}

/// A digest of what is at a path and below it, without contents.
pub fn stamp(path: &Path) -> String {
    let mut hasher = blake3::Hasher::new();
    if is_directory(path) {
        add_all(&mut hasher, path);
    } else {
        add(&mut hasher, path);
    }
    short(&hasher)
}

fn short(hasher: &blake3::Hasher) -> String {
    hasher.finalize().to_hex()[..16].to_owned()
}

/// Name, kind, size and times of a file or link. No program can set the time of its inode's last change.
fn add(hasher: &mut blake3::Hasher, path: &Path) {
    hasher.update(path.file_name().unwrap_or_default().as_bytes());
    if let Ok(meta) = path.symlink_metadata() {
        for number in [meta.mode().into(), meta.size(), meta.ino()] {
            hasher.update(&number.to_le_bytes());
        }
        for (seconds, rest) in [
            (meta.mtime(), meta.mtime_nsec()),
            (meta.ctime(), meta.ctime_nsec()),
        ] {
            hasher
                .update(&seconds.to_le_bytes())
                .update(&rest.to_le_bytes());
        }
    }
}

fn add_all(hasher: &mut blake3::Hasher, directory: &Path) {
    for entry in entries(directory) {
        add(hasher, &entry);
        if is_directory(&entry) {
            add_all(hasher, &entry);
        }
    }
}

fn is_directory(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|meta| meta.is_dir())
}
