//! Properties of the base that matter beyond the paths that differ, and its ignore rules, so that an edited `.gitignore`
//! hides nothing.

use crate::git::bytes::{display_path, nul_fields, nul_joined, nul_paths};
use crate::git::entries::{directories_of, split};
use crate::git::error::{Result, io_error};
use crate::git::files::is_there;
use crate::git::repo::Repo;
use crate::git::snapshot::change::Candidate;
use crate::git::snapshot::index_list::{Layout, add_directories, read_index};
use crate::git::snapshot::listing::{
    ChangedPath, GITLINK, Listed, RawDiff, Recorded, SYMLINK, Status,
};
use git2::{Repository, RepositoryOpenFlags, StatusOptions};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::sync::{Arc, PoisonError};

impl Repo {
    /// Whether the base has a file below a directory, which is relative to the top of the work tree. True if
    /// this cannot be determined.
    pub fn has_tracked_files(&self, directory: &str) -> bool {
        let layout = self.unseal_to_read().and_then(|_open| self.layout());
        layout.map_or(true, |layout| {
            layout.directories.contains(directory.as_bytes())
        })
    }

    pub(crate) fn layout(&self) -> Result<Arc<Layout>> {
        let mut cached = self.layout.lock().unwrap_or_else(PoisonError::into_inner);
        let tree = &self.private.state.base_tree;
        if let Some((_, layout)) = cached.as_ref().filter(|(of, _)| of == tree) {
            return Ok(Arc::clone(layout));
        }
        let layout = Arc::new(read_index(self.call())?.layout);
        *cached = Some((tree.clone(), Arc::clone(&layout)));
        Ok(layout)
    }

    /// Reuses the layout of the base for a tree that differs in these paths, unless one of them is deleted, a
    /// submodule, a link or a rules file. Otherwise the layout is read again on demand.
    pub(crate) fn carry_layout(&self, tree: &str, changed: &[ChangedPath]) {
        let is_plain = |change: &ChangedPath| {
            let kinds = [change.before, change.after];
            let rules = [b".gitignore".as_slice(), b".gitattributes"];
            change.after != 0
                && !kinds.iter().any(|kind| [GITLINK, SYMLINK].contains(kind))
                && !rules.contains(&split(&change.path).1)
        };
        let mut cached = self.layout.lock().unwrap_or_else(PoisonError::into_inner);
        let base = &self.private.state.base_tree;
        let known = cached.as_mut().filter(|(of, _)| of == base);
        let Some((of, layout)) = known.filter(|_| changed.iter().all(is_plain)) else {
            return;
        };
        for change in changed {
            let directory = split(&change.path).0;
            if !layout.directories.contains(directory) {
                add_directories(&mut Arc::make_mut(layout).directories, directory);
            }
        }
        tree.clone_into(of);
    }

    /// Submodules with changed or new files inside, as far as libgit2 can tell, which runs no programs. git would run
    /// those that a submodule's own configuration names.
    pub fn dirty_submodules(&self) -> Vec<Vec<u8>> {
        let Ok(layout) = self.layout() else {
            return Vec::new();
        };
        let is_dirty = |path: &&Vec<u8>| self.is_dirty_inside(path).unwrap_or(false);
        layout.gitlinks.keys().filter(is_dirty).cloned().collect()
    }

    fn is_dirty_inside(&self, path: &[u8]) -> Option<bool> {
        let none: [&OsStr; 0] = [];
        let place = Some(self.at(path)).filter(|place| is_there(&place.join(".git")))?;
        let inside = Repository::open_ext(place, RepositoryOpenFlags::NO_SEARCH, none).ok()?;
        let mut options = StatusOptions::new();
        options.include_untracked(true).exclude_submodules(true);
        Some(!inside.statuses(Some(&mut options)).ok()?.is_empty())
    }
}

/// Whether git reads ignore rules from this path, or could if it were a file.
pub fn holds_ignore_rules(path: &[u8]) -> bool {
    path.split(|byte| *byte == b'/')
        .any(|name| name == b".gitignore")
}

impl Repo {
    /// Files that the agent removed from its index or commits and that rules now ignore, with their entries
    /// in the base. Without such a rule the file would be added again.
    pub(crate) fn given_up(
        &self,
        staged: &[RawDiff],
        committed: &[RawDiff],
    ) -> Result<Vec<Candidate>> {
        let is_there = |path: &[u8]| {
            let meta = self.at(path).symlink_metadata();
            meta.is_ok_and(|meta| meta.is_file() || meta.is_symlink())
        };
        let all = staged.iter().chain(committed);
        let gone: BTreeMap<&[u8], &Recorded> = all
            .filter(|diff| diff.status == b'D' && is_there(&diff.path))
            .map(|diff| (diff.path.as_slice(), &diff.before))
            .collect();
        let ignored = self.ignored_among(gone.keys())?.into_iter();
        let base = |path: Vec<u8>| Some(Candidate::given_up(gone.get(&*path)?, path));
        Ok(ignored.filter_map(base).collect())
    }

    /// Those of these paths that the rules in the work tree ignore, tracked or not.
    pub(crate) fn ignored_among(
        &self,
        paths: impl IntoIterator<Item = impl AsRef<[u8]>>,
    ) -> Result<BTreeSet<Vec<u8>>> {
        Ok(nul_paths(&self.check_ignore("-z", paths)?))
    }

    /// The answer of `git check-ignore`, or nothing for no paths.
    fn check_ignore(
        &self,
        options: &str,
        paths: impl IntoIterator<Item = impl AsRef<[u8]>>,
    ) -> Result<Vec<u8>> {
        let paths = nul_joined(paths);
        if paths.is_empty() {
            return Ok(Vec::new());
        }
        let call = self.git("check-ignore --no-index --stdin").words(options);
        let asked = call.without_env("GIT_LITERAL_PATHSPECS").stdin(paths);
        Ok(asked.status()?.stdout)
    }

    /// The paths among these that rules in the work tree ignore, with the file and the line of the rule:
    /// `lib/util.py, which .gitignore line 3 ignores`.
    ///
    /// # Errors
    /// When git does not say.
    pub fn ignored_by(&self, paths: &[Vec<u8>]) -> Result<Vec<String>> {
        let found = self.check_ignore("--verbose -z", paths)?;
        let fields: Vec<&[u8]> = nul_fields(&found).collect();
        let sentence = |found: &[&[u8]]| {
            let &[file, line, _, path] = found else {
                return None;
            };
            let rule = match split(file).1 {
                b".gitignore" => display_path(file),
                _ => "the exclude file of git".to_owned(),
            };
            let (path, line) = (display_path(path), display_path(line));
            Some(format!("{path}, which {rule} line {line} ignores"))
        };
        Ok(fields.chunks(4).filter_map(sentence).collect())
    }

    /// Untracked files that the ignore rules of the work tree hide, but not those of the base. It needs a
    /// second listing, which is made only if a `.gitignore` differs.
    pub(crate) fn newly_ignored(&self, status: &Status, layout: &Layout) -> Result<Vec<Vec<u8>>> {
        let is_rules = |one: &Listed| split(&one.path).1 == b".gitignore";
        if !self.has_stray_rules(layout) && !status.listed.iter().any(is_rules) {
            return Ok(Vec::new());
        }
        let known = status.listed.iter().map(|one| one.path.as_slice());
        let known: BTreeSet<&[u8]> = known.collect();
        let mut hidden = self.untracked_by_base_rules(layout)?;
        hidden.retain(|path| !known.contains(path.as_slice()));
        Ok(hidden)
    }

    /// Whether a directory with tracked files has a `.gitignore` that the base does not have, which can hide
    /// itself and the work. Directories without tracked files are exempt: tools hide their caches in this
    /// way.
    pub(crate) fn has_stray_rules(&self, layout: &Layout) -> bool {
        let mut rules = Vec::new();
        layout.directories.iter().any(|directory| {
            rules.clear();
            rules.extend_from_slice(directory);
            if !directory.is_empty() {
                rules.push(b'/');
            }
            rules.extend_from_slice(b".gitignore");
            !layout.ignore_files.contains_key(&rules) && is_there(&self.at(&rules))
        })
    }

    /// Untracked files according to the ignore rules of the base, without nested repositories.
    pub(crate) fn untracked_by_base_rules(&self, layout: &Layout) -> Result<Vec<Vec<u8>>> {
        let rules = self.private.scratch_file()?;
        let text = self.base_rules(layout)?;
        fs::write(rules.path(), text).map_err(io_error("write", rules.path()))?;
        let listed = self
            .git("ls-files --others -z -X")
            .arg(rules.path())
            .stdout()?;
        let files = nul_fields(&listed).filter(|path| !path.ends_with(b"/"));
        Ok(files.map(<[u8]>::to_vec).collect())
    }

    /// All rules of the base as one list, lowest precedence first.
    fn base_rules(&self, layout: &Layout) -> Result<Vec<u8>> {
        let info = self.private.git_dir().join("info");
        let mut rules = Vec::new();
        for name in ["global-exclude", "exclude"] {
            rules.extend(fs::read(info.join(name)).unwrap_or_default());
            rules.push(b'\n');
        }
        let mut files: Vec<(&Vec<u8>, &String)> = layout.ignore_files.iter().collect();
        files.sort_by_key(|(path, _)| directories_of(path).count());
        let reader = self.objects();
        for (path, oid) in files {
            let directory = split(path).0;
            let content = reader.blob(oid)?.unwrap_or_default();
            for line in content.split(|byte| *byte == b'\n') {
                rules.extend(anchored(directory, line));
                rules.push(b'\n');
            }
        }
        Ok(rules)
    }
}

/// Converts a line of a `.gitignore` in `directory` to one that applies at the top.
fn anchored(directory: &[u8], line: &[u8]) -> Vec<u8> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
    if directory.is_empty() || line.is_empty() || line.starts_with(b"#") {
        return line.to_vec();
    }
    let (negation, pattern): (&[u8], &[u8]) = match line.strip_prefix(b"!") {
        Some(pattern) => (b"!", pattern),
        None => (b"", line),
    };
    let trimmed = pattern.trim_ascii_end();
    let body = trimmed.strip_suffix(b"/").unwrap_or(trimmed);
    if body.is_empty() {
        return Vec::new();
    }
    let between: &[u8] = if body.contains(&b'/') { b"/" } else { b"/**/" };
    let pattern = pattern.strip_prefix(b"/").unwrap_or(pattern);
    [negation, b"/", &escaped(directory), between, pattern].concat()
}

fn escaped(directory: &[u8]) -> Vec<u8> {
    let is_special = |byte: &u8| matches!(byte, b'*' | b'?' | b'[' | b'\\');
    let escape = |byte: &u8| is_special(byte).then_some(b'\\').into_iter().chain([*byte]);
    directory.iter().flat_map(escape).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_keep_their_meaning_when_moved_to_the_top() {
        let moved = |directory: &str, line: &str| {
            String::from_utf8(anchored(directory.as_bytes(), line.as_bytes())).unwrap()
        };
        assert_eq!(moved("", "*.o\r"), "*.o");
        assert_eq!(moved("a/b", "*.o"), "/a/b/**/*.o");
        assert_eq!(moved("a", "!keep/"), "!/a/**/keep/");
        assert_eq!(moved("a", "/top"), "/a/top");
        assert_eq!(moved("a", "x/y"), "/a/x/y");
        assert_eq!(moved("a[1]*", "x"), "/a\\[1]\\*/**/x");
        assert_eq!(moved("a", "# comment"), "# comment");
        assert_eq!(moved("a", "\\#x"), "/a/**/\\#x");
        assert_eq!(moved("a", "/"), "");
    }
}
