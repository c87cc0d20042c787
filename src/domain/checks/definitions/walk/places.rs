//! The directories in which a command may run, and the paths that a pattern of the shell stands for.

use super::super::{Entry, fits, joined};
use super::{Place, Walk};
use std::collections::BTreeSet;

/// The most directories in which one command is followed, with all values of its variables, and the most paths of one
/// pattern.
pub(super) const MAX_PLACES: usize = 64;

/// The places with different directories.
pub(super) fn distinct(places: Vec<Place>) -> Vec<Place> {
    let mut seen = BTreeSet::new();
    let new = places
        .into_iter()
        .filter(|place| seen.insert(place.dir.clone()));
    new.take(MAX_PLACES).collect()
}

/// Where the commands of a text or of a subshell in it may run.
pub(super) struct Level {
    pub(super) places: Vec<Place>,
    /// The places at its start.
    first: Vec<Place>,
    /// Whether no command yet may keep a change of directory from happening.
    pub(super) is_at_start: bool,
}

impl Level {
    pub(super) fn at(places: Vec<Place>) -> Self {
        Self {
            first: places.clone(),
            places,
            is_at_start: true,
        }
    }

    /// A change of directory may not have happened, or is undone: `x && cd a`, `cd -`.
    pub(super) fn may_be_back(&mut self) {
        let all = self.places.drain(..).chain(self.first.iter().cloned());
        self.places = distinct(all.collect());
    }
}

impl Walk<'_> {
    /// Records a directory in which commands run.
    pub(super) fn enters(&mut self, dir: &str) {
        if !dir.is_empty() {
            self.found.directories.insert(dir.to_owned());
        }
    }

    /// The words of a loop, with the directories that its patterns stand for beside them: `for p in packages/*`.
    pub(super) fn with_directories(&self, words: &[String], place: &Place) -> Vec<String> {
        let is_loop = matches!(words, [word, _, of, ..] if word == "for" && of == "in");
        let each = words.iter().flat_map(|word| {
            let found = if is_loop {
                self.paths(&place.dir, word)
            } else {
                Vec::new()
            };
            let is_directory = |path: &String| {
                self.start.entry(&joined(&place.dir, path)) == Some(Entry::Directory)
            };
            let found = found.into_iter().filter(is_directory);
            found.chain([word.clone()]).collect::<Vec<_>>()
        });
        each.collect()
    }

    /// The paths, relative to a directory, that a pattern stands for; none if it is no pattern, or searches at any
    /// depth.
    pub(super) fn paths(&self, dir: &str, pattern: &str) -> Vec<String> {
        let pattern = pattern.trim_start_matches("./").trim_end_matches('/');
        if !pattern.contains('*') || pattern.contains("**") || pattern.contains(['$', '{']) {
            return Vec::new();
        }
        let mut found = vec![String::new()];
        for part in pattern.split('/') {
            let mut next = Vec::new();
            for path in &found {
                if part.contains('*') {
                    let names =
                        self.start
                            .names_in(&joined(dir, path))
                            .into_iter()
                            .filter(|name| {
                                fits(part, name)
                                    && (part.starts_with('.') || !name.starts_with('.'))
                            });
                    next.extend(names.map(|name| joined(path, &name)));
                } else {
                    next.push(joined(path, part))
                }
            }
            next.retain(|path| self.start.entry(&joined(dir, path)).is_some());
            next.truncate(MAX_PLACES);
            found = next;
        }
        found
    }

    /// The directories that a pattern stands for, also one that searches at any depth, of which only the first one
    /// counts.
    pub(super) fn directories(&self, dir: &str, pattern: &str) -> Vec<String> {
        let pattern = pattern.replace("**", "*");
        let found = if pattern.contains('*') {
            self.paths(dir, &pattern)
        } else {
            vec![pattern.trim_matches(['.', '/']).to_owned()]
        };
        let found = found.into_iter().map(|path| joined(dir, &path));
        found
            .filter(|path| self.start.entry(path) == Some(Entry::Directory))
            .collect()
    }
}
