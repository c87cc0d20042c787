//! Reads the entries of an index.

use crate::git::bytes::{display_path, fields_and_path};
use crate::git::command::Call;
use crate::git::entries::split;
use crate::git::error::{GitError, Result};
use crate::git::snapshot::listing::{GITLINK, SYMLINK};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

/// What matters of an index beyond the paths that differ.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Submodules and their recorded commits, except those outside of a sparse checkout.
    pub(crate) gitlinks: BTreeMap<Vec<u8>, String>,
    /// The blobs of all `.gitignore` files.
    pub(crate) ignore_files: BTreeMap<Vec<u8>, String>,
    /// All `.gitattributes` files. With any, git may convert content.
    pub(crate) attribute_files: BTreeSet<Vec<u8>>,
    /// All symbolic links.
    pub(crate) links: BTreeSet<Vec<u8>>,
    /// Every directory that contains tracked files at any depth. The top directory is the empty path.
    pub(crate) directories: BTreeSet<Vec<u8>>,
}

/// The layout of an index, and its entries that hide changes.
#[derive(Default)]
pub(crate) struct IndexRead {
    pub(crate) layout: Layout,
    /// Entries with the assume-unchanged bit.
    pub(crate) assumed: Vec<Vec<u8>>,
    /// Entries with the skip-worktree bit.
    pub(crate) skipped: Vec<Vec<u8>>,
}

/// The layout of one base, by its tree.
pub(crate) type LayoutCache = Mutex<Option<(String, Arc<Layout>)>>;

/// Reads the index that `call` uses.
pub(crate) fn read_index(call: Call<'_>) -> Result<IndexRead> {
    parse(&call.words("ls-files -s -v -z").stdout()?)
}

/// Parses lines of `tag mode oid stage TAB path`. The tag `S` is the skip-worktree bit, and a lower-case letter is the
/// assume-unchanged bit.
fn parse(listed: &[u8]) -> Result<IndexRead> {
    let mut read = IndexRead::default();
    read.layout.directories.insert(Vec::new());
    for line in listed.split_inclusive(|byte| *byte == 0) {
        let fields = line.strip_suffix(b"\0").and_then(|line| {
            let (mut fields, path) = fields_and_path(line)?;
            let tag = *fields.next()?.as_bytes().first()?;
            let mode = u32::from_str_radix(fields.next()?, 8).ok()?;
            Some((tag, mode, fields.next()?.to_owned(), path))
        });
        let Some((tag, mode, oid, path)) = fields else {
            return Err(GitError::malformed("ls-files", display_path(line)));
        };
        let is_skipped = tag.eq_ignore_ascii_case(&b'S');
        if tag.is_ascii_lowercase() {
            read.assumed.push(path.to_vec());
        }
        if is_skipped {
            read.skipped.push(path.to_vec());
        }
        let (directory, name) = split(path);
        let layout = &mut read.layout;
        add_directories(&mut layout.directories, directory);
        if mode == SYMLINK {
            layout.links.insert(path.to_vec());
        }
        if mode == GITLINK && !is_skipped {
            layout.gitlinks.insert(path.to_vec(), oid);
        } else if name == b".gitattributes" {
            layout.attribute_files.insert(path.to_vec());
        } else if name == b".gitignore" {
            layout.ignore_files.insert(path.to_vec(), oid);
        }
    }
    Ok(read)
}

pub(crate) fn add_directories(directories: &mut BTreeSet<Vec<u8>>, mut directory: &[u8]) {
    while directories.insert(directory.to_vec()) {
        directory = split(directory).0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_are_collected_up_to_the_top() {
        let mut directories = BTreeSet::from([Vec::new()]);
        add_directories(&mut directories, b"a/b/c");
        add_directories(&mut directories, b"a/d");
        let expected: [&[u8]; 5] = [b"", b"a", b"a/b", b"a/b/c", b"a/d"];
        assert_eq!(
            directories.iter().map(Vec::as_slice).collect::<Vec<_>>(),
            expected
        );
    }

    #[test]
    fn a_list_is_read_by_kind_and_name() {
        let list = b"H 100644 aa 0\t.gitignore\0H 100644 bb 0\ta/.gitattributes\0\
            H 100644 cc 0\ta/b/x\ty\0H 160000 dd 0\tsub\0S 160000 ee 0\tfar/sub\0\
            H 120000 ff 0\ta/link\0";
        let directories: [&[u8]; 4] = [b"", b"a", b"a/b", b"far"];
        let expected = Layout {
            gitlinks: BTreeMap::from([(b"sub".to_vec(), "dd".to_owned())]),
            ignore_files: BTreeMap::from([(b".gitignore".to_vec(), "aa".to_owned())]),
            attribute_files: BTreeSet::from([b"a/.gitattributes".to_vec()]),
            links: BTreeSet::from([b"a/link".to_vec()]),
            directories: directories.map(<[u8]>::to_vec).into(),
        };
        assert_eq!(parse(list).unwrap().layout, expected);
        for list in [
            b"H 100644 aa 0\tx\0nonsense\0".as_slice(),
            b"H 100644 aa 0\tx",
        ] {
            assert!(parse(list).is_err());
        }
    }
}
