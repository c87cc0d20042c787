//! What git says differs, as a list of paths to be looked at.

use crate::git::Repo;
use crate::git::bytes::{as_path, nul_fields};
use crate::git::command::Call;
use crate::git::error::GitError;
use std::collections::BTreeSet;
use std::path::Path;

/// Mode and object of a path in the index or in a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::git) struct Recorded {
    pub(in crate::git) mode: u32,
    pub(in crate::git) oid: String,
}

/// A path that may differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::git) struct Listed {
    pub(in crate::git) path: Vec<u8>,
    /// What the index has; `None` for an untracked path.
    pub(in crate::git) indexed: Option<Recorded>,
    /// The work tree has what the index has; only the index differs from HEAD.
    pub(in crate::git) staged_only: bool,
}

/// The answer of `git status`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::git) struct Status {
    pub(in crate::git) listed: Vec<Listed>,
    /// Untracked directories that are repositories of their own, without the final slash.
    pub(in crate::git) nested: Vec<Vec<u8>>,
    pub(in crate::git) warnings: Vec<String>,
}

/// One line of a raw diff.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::git) struct RawDiff {
    pub(in crate::git) status: u8,
    pub(in crate::git) before: Recorded,
    pub(in crate::git) after: Recorded,
    pub(in crate::git) path: Vec<u8>,
}

/// Beyond this many paths all are asked for, to stay within the limit of a command line.
const PATHS_PER_COMMAND: usize = 200;
pub(in crate::git) const GITLINK: u32 = 0o160_000;
pub(in crate::git) const SYMLINK: u32 = 0o120_000;

impl Repo {
    /// What differs between the work tree and `index`, untracked files included.
    pub(in crate::git) fn status(&self, index: &Path) -> Result<Status, GitError> {
        let args = [
            "status",
            "--porcelain=v2",
            "-z",
            "-uall",
            "--no-renames",
            "--no-ahead-behind",
        ];
        let call = self.call().env("GIT_INDEX_FILE", index).args(args);
        let output = call.args(["--ignore-submodules=all"]).run()?;
        let mut status = parse(&output.stdout)?;
        status.warnings = output.stderr.lines().map(str::to_owned).collect();
        Ok(status)
    }

    /// Of tracked paths, those whose content differs once it is converted as for a commit. Status
    /// lists a file of another size without looking further.
    pub(in crate::git) fn truly_modified(
        &self,
        paths: &[&[u8]],
    ) -> Result<BTreeSet<Vec<u8>>, GitError> {
        let args = [
            "diff",
            "--name-only",
            "-z",
            "--no-renames",
            "--ignore-submodules=all",
            "--",
        ];
        let mut call = self.call().args(args);
        if paths.len() <= PATHS_PER_COMMAND {
            call = call.args(paths.iter().map(|path| as_path(path)));
        }
        Ok(nul_fields(&call.run()?.stdout)
            .map(<[u8]>::to_vec)
            .collect())
    }

    /// Differences of two trees.
    pub(in crate::git) fn diff_trees(
        &self,
        from: &str,
        to: &str,
    ) -> Result<Vec<RawDiff>, GitError> {
        self.diff_trees_by(self.call(), from, to)
    }

    /// As [`Repo::diff_trees`], by a command that sees objects of its own.
    pub(in crate::git) fn diff_trees_by(
        &self,
        call: Call<'_>,
        from: &str,
        to: &str,
    ) -> Result<Vec<RawDiff>, GitError> {
        let args = [
            "diff-tree",
            "-r",
            "--raw",
            "-z",
            "--no-abbrev",
            "--no-renames",
            from,
            to,
        ];
        parse_raw(&call.args(args).run()?.stdout)
    }

    /// Differences of the base and the repository's own index, which the agent may have staged to.
    pub(in crate::git) fn diff_real_index(&self) -> Result<Vec<RawDiff>, GitError> {
        self.diff_index(self.real_call().git())
    }

    /// Differences of the base and an index that has no part in another file.
    pub(in crate::git) fn diff_private_index(
        &self,
        index: &Path,
    ) -> Result<Vec<RawDiff>, GitError> {
        self.diff_index(self.call().env("GIT_INDEX_FILE", index))
    }

    /// Looks at the index alone, so no submodule is entered.
    fn diff_index(&self, call: Call<'_>) -> Result<Vec<RawDiff>, GitError> {
        let args = [
            "diff-index",
            "--cached",
            "--raw",
            "-z",
            "--no-abbrev",
            "--no-renames",
            "--ignore-submodules=none",
        ];
        let call = call.args(args).args([&self.private.state.base_tree]);
        parse_raw(&call.run()?.stdout)
    }
}

fn malformed(field: &[u8]) -> GitError {
    GitError::Malformed {
        command: "status",
        what: crate::git::bytes::display_path(field),
    }
}

fn parse(output: &[u8]) -> Result<Status, GitError> {
    let mut status = Status::default();
    for field in nul_fields(output) {
        let rest = field.get(2..).ok_or_else(|| malformed(field))?;
        match field[0] {
            b'1' => status
                .listed
                .push(ordinary(rest).ok_or_else(|| malformed(field))?),
            b'u' => status
                .listed
                .push(unmerged(rest).ok_or_else(|| malformed(field))?),
            b'?' => match rest.strip_suffix(b"/") {
                Some(nested) => status.nested.push(nested.to_vec()),
                None => status.listed.push(Listed::untracked(rest)),
            },
            b'#' | b'!' => {}
            _ => return Err(malformed(field)),
        }
    }
    Ok(status)
}

impl Listed {
    fn untracked(path: &[u8]) -> Self {
        Self {
            path: path.to_vec(),
            indexed: None,
            staged_only: false,
        }
    }
}

/// `XY sub mH mI mW hH hI path`
fn ordinary(rest: &[u8]) -> Option<Listed> {
    let fields: Vec<&[u8]> = rest.splitn(8, |byte| *byte == b' ').collect();
    let [states, _, _, mode, _, _, oid, path] = fields.as_slice() else {
        return None;
    };
    let recorded = recorded(mode, oid)?;
    Some(Listed {
        path: path.to_vec(),
        indexed: (recorded.mode != 0).then_some(recorded),
        staged_only: states.last() == Some(&b'.'),
    })
}

/// `XY sub m1 m2 m3 mW h1 h2 h3 path`
fn unmerged(rest: &[u8]) -> Option<Listed> {
    let path = rest.splitn(10, |byte| *byte == b' ').nth(9)?;
    Some(Listed::untracked(path))
}

pub(in crate::git) fn recorded(mode: &[u8], oid: &[u8]) -> Option<Recorded> {
    let mode = u32::from_str_radix(std::str::from_utf8(mode).ok()?, 8).ok()?;
    Some(Recorded {
        mode,
        oid: std::str::from_utf8(oid).ok()?.to_owned(),
    })
}

/// `:mode mode oid oid status NUL path NUL`
fn parse_raw(output: &[u8]) -> Result<Vec<RawDiff>, GitError> {
    let mut fields = nul_fields(output);
    let mut diffs = Vec::new();
    while let Some(head) = fields.next() {
        let path = fields.next().ok_or_else(|| malformed(head))?;
        diffs.push(raw(head, path).ok_or_else(|| malformed(head))?);
    }
    Ok(diffs)
}

fn raw(head: &[u8], path: &[u8]) -> Option<RawDiff> {
    let fields: Vec<&[u8]> = head
        .strip_prefix(b":")?
        .split(|byte| *byte == b' ')
        .collect();
    let [mode_before, mode_after, before, after, status] = fields.as_slice() else {
        return None;
    };
    Some(RawDiff {
        status: *status.first()?,
        before: recorded(mode_before, before)?,
        after: recorded(mode_after, after)?,
        path: path.to_vec(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_line_is_read() {
        let output = b"1 .M N... 100644 100755 100644 aa bb a b\0? new\nline\0? nested/\0u UU N... 100644 100644 100644 100644 1 2 3 both\0";
        let indexed = Some(Recorded {
            mode: 0o100_755,
            oid: "bb".to_owned(),
        });
        assert_eq!(
            parse(output).unwrap(),
            Status {
                listed: vec![
                    Listed {
                        path: b"a b".to_vec(),
                        indexed,
                        staged_only: false
                    },
                    Listed::untracked(b"new\nline"),
                    Listed::untracked(b"both"),
                ],
                nested: vec![b"nested".to_vec()],
                warnings: Vec::new(),
            }
        );
        assert!(parse(b"x y\0").is_err());
        assert!(parse(b"1 .M\0").is_err());
    }

    #[test]
    fn raw_differences_are_read() {
        let output = b":000000 160000 00 ff A\0sub dir\0";
        let diff = RawDiff {
            status: b'A',
            before: Recorded {
                mode: 0,
                oid: "00".to_owned(),
            },
            after: Recorded {
                mode: GITLINK,
                oid: "ff".to_owned(),
            },
            path: b"sub dir".to_vec(),
        };
        assert_eq!(parse_raw(output).unwrap(), [diff]);
        assert!(parse_raw(b":1 2 3\0a\0").is_err());
    }
}
