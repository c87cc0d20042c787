//! Ignore rules of the base, so that an edited `.gitignore` hides nothing.

use super::Repo;
use super::bytes::{as_path, nul_fields};
use super::entries::{Layout, split};
use super::error::{GitError, io_error};
use super::status::Status;
use std::collections::BTreeSet;
use std::fs;

impl Repo {
    /// Untracked files that only the ignore rules of the work tree hide, not those of the base.
    /// Costs a second listing, made only when a `.gitignore` differs.
    pub(super) fn newly_ignored(
        &self,
        status: &Status,
        layout: &Layout,
    ) -> Result<Vec<Vec<u8>>, GitError> {
        if !self.ignore_rules_differ(status, layout) {
            return Ok(Vec::new());
        }
        let known: BTreeSet<&[u8]> = status
            .listed
            .iter()
            .map(|one| one.path.as_slice())
            .collect();
        let mut hidden = self.untracked_by_base_rules(layout)?;
        hidden.retain(|path| !known.contains(path.as_slice()));
        Ok(hidden)
    }

    /// Untracked files, nested repositories apart, as if the ignore rules were those of the base.
    pub(super) fn untracked_by_base_rules(
        &self,
        layout: &Layout,
    ) -> Result<Vec<Vec<u8>>, GitError> {
        let tmp = self.private.root.join("tmp");
        let rules = tempfile::NamedTempFile::new_in(&tmp).map_err(io_error("create", &tmp))?;
        fs::write(rules.path(), self.base_rules(layout)?)
            .map_err(io_error("write", rules.path()))?;
        let args = ["ls-files", "--others", "-z", "-X"];
        let listed = self.call().args(args).args([rules.path()]).run()?.stdout;
        let files = nul_fields(&listed).filter(|path| !path.ends_with(b"/"));
        Ok(files.map(<[u8]>::to_vec).collect())
    }

    /// A new `.gitignore` can hide itself. In a directory without tracked files that is how tools
    /// keep their caches out of the way; beside tracked files it could hide work.
    fn ignore_rules_differ(&self, status: &Status, layout: &Layout) -> bool {
        let is_rules = |path: &[u8]| split(path).1 == b".gitignore";
        status.listed.iter().any(|one| is_rules(&one.path))
            || layout.directories.iter().any(|directory| {
                let path = joined(directory, b".gitignore");
                !layout.ignore_files.contains_key(&path)
                    && self
                        .real
                        .work_tree
                        .join(as_path(&path))
                        .symlink_metadata()
                        .is_ok()
            })
    }

    /// All of the base's rules as one list, lowest precedence first.
    fn base_rules(&self, layout: &Layout) -> Result<Vec<u8>, GitError> {
        let info = self.private.git_dir().join("info");
        let mut rules = Vec::new();
        for name in ["global-exclude", "exclude"] {
            rules.extend(fs::read(info.join(name)).unwrap_or_default());
            rules.push(b'\n');
        }
        let mut files: Vec<(&[u8], &String)> = layout
            .ignore_files
            .iter()
            .map(|(path, oid)| (split(path).0, oid))
            .collect();
        files.sort_by_key(|(directory, _)| depth(directory));
        for (directory, oid) in files {
            let content = self.call().args(["cat-file", "blob", oid]).run()?.stdout;
            for line in content.split(|byte| *byte == b'\n') {
                rules.extend(anchored(directory, line));
                rules.push(b'\n');
            }
        }
        Ok(rules)
    }
}

fn depth(directory: &[u8]) -> usize {
    if directory.is_empty() {
        0
    } else {
        1 + directory.iter().filter(|byte| **byte == b'/').count()
    }
}

fn joined(directory: &[u8], name: &[u8]) -> Vec<u8> {
    if directory.is_empty() {
        name.to_vec()
    } else {
        [directory, b"/", name].concat()
    }
}

/// One line of a `.gitignore` in `directory`, as a line of a list that applies at the top.
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
    let mut text = Vec::with_capacity(directory.len());
    for byte in directory {
        if matches!(byte, b'*' | b'?' | b'[' | b'\\') {
            text.push(b'\\');
        }
        text.push(*byte);
    }
    text
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
