//! Finds what is worth a look in work that passes its checks.

use crate::domain::checks::judges::is_product_source;
use crate::domain::checks::signals::{ChangedFile, Signal, signals, stem};
use crate::domain::checks::tests_changed::is_test;
use crate::git::{Change, RawSnapshot, Repo, display_path};
use std::collections::BTreeSet;

/// The most changed files that are read, and the most tests beside them.
const MAX_FILES: usize = 300;
/// The largest file, in bytes, that is read.
const MAX_BYTES: u64 = 512 << 10;

/// The signals of the changes since the task started. Empty if the base cannot be read.
pub fn signals_of(repo: &Repo, raw: &RawSnapshot) -> Vec<Signal> {
    let is_read = |change: &&Change| {
        let path = display_path(&change.path);
        (is_product_source(&path) || is_test(&path)) && !change.newly_ignored
    };
    let changes = raw.changes.iter().filter(is_read).take(MAX_FILES);
    let (base, objects) = (repo.base_tree(), repo.blob_reader());
    let mut files = Vec::new();
    for change in changes {
        let Ok(old) = objects.file_in(&base, &change.path) else {
            return Vec::new();
        };
        files.push(ChangedFile {
            path: display_path(&change.path),
            old: String::from_utf8(old.unwrap_or_default()).unwrap_or_default(),
            new: work_file(repo, &change.path),
        });
    }
    files.retain(|file| !file.new.is_empty());
    if files.is_empty() {
        return Vec::new();
    }
    signals(&files, || tests_about(repo, &files))
}

fn work_file(repo: &Repo, path: &[u8]) -> String {
    let content = repo.work_file(path, MAX_BYTES).unwrap_or_default();
    String::from_utf8(content).unwrap_or_default()
}

/// The texts of the tests that name a changed file of the product.
fn tests_about(repo: &Repo, files: &[ChangedFile]) -> Vec<String> {
    let product = files.iter().filter(|file| is_product_source(&file.path));
    let stems: BTreeSet<&str> = product.map(|file| stem(&file.path)).collect();
    if stems.is_empty() {
        return Vec::new();
    }
    let is_about = |text: &String| stems.iter().any(|stem| text.contains(stem));
    let changed = files.iter().filter(|file| is_test(&file.path));
    let changed = changed.map(|file| file.new.clone());
    let there = repo.base_paths().unwrap_or_default();
    let there = there.iter().filter(|path| is_test(&display_path(path)));
    let there = there.take(MAX_FILES).map(|path| work_file(repo, path));
    changed.chain(there).filter(is_about).collect()
}
