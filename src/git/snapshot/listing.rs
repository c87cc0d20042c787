//! Parses git's lists of differences.

use crate::git::bytes::nul_fields;
use crate::git::error::{GitError, Result};

/// The mode of a submodule entry.
pub const GITLINK: u32 = 0o160_000;

/// The mode of a symbolic link.
pub const SYMLINK: u32 = 0o120_000;

pub(crate) const TREE: u32 = 0o040_000;

/// Mode and object id of a path in the index or in a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Recorded {
    pub(crate) mode: u32,
    pub(crate) oid: String,
}

/// A path that a commit changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedPath {
    /// Relative to the top of the tree.
    pub path: Vec<u8>,
    /// Mode before, or 0 if it is new.
    pub before: u32,
    /// Mode after, or 0 if it is deleted.
    pub after: u32,
    /// Object id after, or zeros if it is deleted.
    pub oid: String,
}

/// A path that may differ from HEAD.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Listed {
    pub(crate) path: Vec<u8>,
    /// The index entry, or `None` for an untracked path.
    pub(crate) indexed: Option<Recorded>,
    /// Whether the work tree equals the index and only the index differs from HEAD.
    pub(crate) staged_only: bool,
}

/// The output of `git status`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Status {
    pub(crate) listed: Vec<Listed>,
    /// Untracked directories that are separate repositories, without the final slash.
    pub(crate) nested: Vec<Vec<u8>>,
    /// Ignored files, and directories that are ignored as a whole, without the final slash.
    pub(crate) ignored: Vec<Vec<u8>>,
    pub(crate) warnings: Vec<String>,
}

/// One line of a raw diff.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RawDiff {
    pub(crate) status: u8,
    pub(crate) before: Recorded,
    pub(crate) after: Recorded,
    pub(crate) path: Vec<u8>,
}

impl RawDiff {
    pub(crate) fn changed(self) -> ChangedPath {
        ChangedPath {
            path: self.path,
            before: self.before.mode,
            after: self.after.mode,
            oid: self.after.oid,
        }
    }
}

/// The ids of the objects that a commit adds to its base, ordered so that every object comes after those that it refers to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct NewObjects {
    blobs: Vec<String>,
    /// Subtrees come before their parents.
    trees: Vec<String>,
    commit: Vec<String>,
}

impl NewObjects {
    /// The objects that the tree `root` adds to another tree, given the differences in files and subtrees.
    pub(crate) fn of_tree(root: &str, diffs: &[RawDiff]) -> Self {
        if diffs.is_empty() {
            return Self::default();
        }
        let there = diffs
            .iter()
            .filter(|diff| ![0, GITLINK].contains(&diff.after.mode));
        let (mut trees, blobs): (Vec<&RawDiff>, Vec<&RawDiff>) =
            there.partition(|diff| diff.after.mode == TREE);
        let depth = |diff: &RawDiff| diff.path.iter().filter(|byte| **byte == b'/').count();
        trees.sort_by_key(|diff| std::cmp::Reverse(depth(diff)));
        let id = |diff: &RawDiff| diff.after.oid.clone();
        let mut trees: Vec<String> = trees.into_iter().map(id).collect();
        trees.push(root.to_owned());
        Self {
            blobs: blobs.into_iter().map(id).collect(),
            trees,
            commit: Vec::new(),
        }
    }

    /// Adds the commit to the objects.
    pub(crate) fn and_commit(mut self, id: &str) -> Self {
        self.commit = vec![id.to_owned()];
        self
    }

    /// All ids, referenced objects first.
    pub(crate) fn ids(&self) -> impl Iterator<Item = &str> {
        self.stages().into_iter().flatten().map(String::as_str)
    }

    /// The ids in groups, referenced objects first.
    pub(crate) fn stages(&self) -> [&[String]; 3] {
        [&self.blobs, &self.trees, &self.commit]
    }
}

fn malformed(field: &[u8]) -> GitError {
    GitError::malformed("status", crate::git::bytes::display_path(field))
}

pub(crate) fn parse(output: &[u8]) -> Result<Status> {
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
            b'!' => {
                let path = rest.strip_suffix(b"/").unwrap_or(rest);
                status.ignored.push(path.to_vec());
            }
            b'#' => {}
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

/// Parses `XY sub mH mI mW hH hI path`.
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

/// Parses `XY sub m1 m2 m3 mW h1 h2 h3 path`.
fn unmerged(rest: &[u8]) -> Option<Listed> {
    let path = rest.splitn(10, |byte| *byte == b' ').nth(9)?;
    Some(Listed::untracked(path))
}

pub(crate) fn recorded(mode: &[u8], oid: &[u8]) -> Option<Recorded> {
    let mode = u32::from_str_radix(std::str::from_utf8(mode).ok()?, 8).ok()?;
    Some(Recorded {
        mode,
        oid: std::str::from_utf8(oid).ok()?.to_owned(),
    })
}

/// Parses `:mode mode oid oid status NUL path NUL`.
pub(crate) fn parse_raw(output: &[u8]) -> Result<Vec<RawDiff>> {
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
        let output = b"1 .M N... 100644 100755 100644 aa bb a b\0? new\nline\0? nested/\0! out/\0! a.log\0u UU N... 100644 100644 100644 100644 1 2 3 both\0";
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
                ignored: vec![b"out".to_vec(), b"a.log".to_vec()],
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
