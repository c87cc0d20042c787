//! Reads HEAD of the repository from its files if these have the plainest form.
//!
//! All other cases (a link, another ref storage, a ref to a ref, a missing file) are left to git, which takes
//! one to three more processes.

use crate::domain::snapshot::{Head, RevId};
use crate::git::error::GitError;
use crate::git::private::calls::RealCall;
use crate::plain_file;
use memchr::memmem;
use std::io::{self, Read};
use std::path::Path;

/// Where the repository's HEAD points.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::git) struct HeadState {
    /// Full name of the branch, or `None` if HEAD is detached.
    pub(in crate::git) branch: Option<String>,
    /// The commit, or `None` before the first commit.
    pub(in crate::git) oid: Option<String>,
}

/// Maximum size in bytes of HEAD or a ref file.
const REF_FILE_LIMIT: u64 = 4 * 1024;
const PACKED_REFS_LIMIT: u64 = 8 * 1024 * 1024;

impl HeadState {
    pub(in crate::git) fn head(&self) -> Head {
        self.oid
            .clone()
            .map_or(Head::Unborn, |oid| Head::At(RevId(oid)))
    }
}

pub(in crate::git) fn read_head(call: &RealCall<'_>) -> Result<HeadState, GitError> {
    let real = call.real;
    if let Some(head) = plain_head(&real.git_dir, &real.common_dir, real.id_length()) {
        return Ok(head);
    }
    match asked_at_once(call)? {
        Some(head) => Ok(head),
        None => asked_one_by_one(call),
    }
}

/// HEAD of a repository inside the work tree, which git must recognise as a repository too.
pub(in crate::git) fn plain_nested_head(git_dir: &Path, id_length: usize) -> Option<HeadState> {
    let is_whole = ["objects", "refs"]
        .iter()
        .all(|dir| git_dir.join(dir).is_dir());
    if !is_whole || !is_absent(&git_dir.join("commondir")) {
        return None;
    }
    plain_head(git_dir, git_dir, id_length)
}

/// HEAD according to the files, or `None` if git must be run.
fn plain_head(git_dir: &Path, common_dir: &Path, id_length: usize) -> Option<HeadState> {
    let other_storage = |dir: &&Path| !is_absent(&dir.join("reftable"));
    if [git_dir, common_dir].iter().any(other_storage) {
        return None;
    }
    let line = plain_ref_file(&git_dir.join("HEAD"))?;
    let Some(branch) = line.strip_prefix(b"ref: ") else {
        let oid = Some(plain_oid(&line, id_length)?);
        return Some(HeadState { branch: None, oid });
    };
    let branch = plain_branch(branch)?;
    let oid = match read_bounded(&common_dir.join(branch), REF_FILE_LIMIT) {
        Ok(content) => plain_oid(content.strip_suffix(b"\n")?, id_length)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            packed_oid(&packed_refs(common_dir)?, branch, id_length)?
        }
        Err(_) => return None,
    };
    Some(HeadState {
        branch: Some(branch.to_owned()),
        oid: Some(oid),
    })
}

/// The content of a file of one ref without its line end, or `None` if git must read it.
pub(super) fn plain_ref_file(path: &Path) -> Option<Vec<u8>> {
    let mut content = read_bounded(path, REF_FILE_LIMIT).ok()?;
    (content.pop() == Some(b'\n')).then_some(content)
}

/// The content of `packed-refs`, which is empty if there is no such file, or `None` if git must read it.
pub(super) fn packed_refs(common_dir: &Path) -> Option<Vec<u8>> {
    match read_bounded(&common_dir.join("packed-refs"), PACKED_REFS_LIMIT) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Some(Vec::new()),
        content => content.ok(),
    }
}

pub(super) fn is_absent(path: &Path) -> bool {
    let found = path.symlink_metadata();
    found.is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

/// The content of a regular file that is not a link and has at most `limit` bytes.
fn read_bounded(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    let file = plain_file::open(path)?;
    file.take(limit + 1).read_to_end(&mut content)?;
    if content.len() as u64 > limit {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(content)
}

/// Parses an object id as git writes it. The zero id means none.
pub(in crate::git) fn plain_oid(text: &[u8], length: usize) -> Option<String> {
    let is_hex = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let plain = text.len() == length && text.iter().all(is_hex) && text.iter().any(|b| *b != b'0');
    let text = std::str::from_utf8(text).ok()?;
    plain.then(|| text.to_owned())
}

/// Accepts the full name of a branch if [`is_plain_name`] does.
fn plain_branch(name: &[u8]) -> Option<&str> {
    let name = std::str::from_utf8(name).ok()?;
    let short = name.strip_prefix("refs/heads/")?;
    is_plain_name(short).then_some(name)
}

/// Whether no character in the name of a ref is special to git or to a file system.
pub(super) fn is_plain_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_alphanumeric() || "-_+=.".contains(c);
    let is_part = |part: &str| {
        !part.is_empty()
            && part.chars().all(is_plain)
            && !part.starts_with('.')
            && !part.ends_with('.')
            && !part.ends_with(".lock")
            && !part.contains("..")
    };
    name.split('/').all(is_part)
}

/// The id of `branch` in `packed-refs`, if exactly one line has it.
pub(in crate::git) fn packed_oid(packed: &[u8], branch: &str, length: usize) -> Option<String> {
    let wanted = format!(" {branch}\n");
    let mut found = memmem::find_iter(packed, wanted.as_bytes());
    let (at, None) = (found.next()?, found.next()) else {
        return None;
    };
    let start = at.checked_sub(length)?;
    let starts_line = start == 0 || packed[start - 1] == b'\n';
    plain_oid(&packed[start..at], length).filter(|_| starts_line)
}

/// Gets the usual answers from one command: an id, and the branch or `HEAD`.
fn asked_at_once(call: &RealCall<'_>) -> Result<Option<HeadState>, GitError> {
    let args = ["rev-parse", "HEAD", "--symbolic-full-name", "HEAD"];
    let output = call.git().args(args).status()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let mut lines = text.lines();
    let (Some(0), Some(oid), Some(name), None) =
        (output.status, lines.next(), lines.next(), lines.next())
    else {
        return Ok(None);
    };
    let branch = (name != "HEAD").then(|| name.to_owned());
    let known = branch.as_ref().is_none_or(|name| name.starts_with("refs/"));
    Ok(known.then(|| HeadState {
        branch,
        oid: Some(oid.to_owned()),
    }))
}

/// Distinguishes an unborn branch from a HEAD that points nowhere.
fn asked_one_by_one(call: &RealCall<'_>) -> Result<HeadState, GitError> {
    let branch = call.git().args(["symbolic-ref", "-q", "HEAD"]).status()?;
    let oid = call
        .git()
        .args(["rev-parse", "-q", "--verify", "HEAD"])
        .status()?;
    let text = |output: crate::git::command::Output| match output.status {
        Some(0) => Some(output.line()),
        _ => None,
    };
    Ok(HeadState {
        branch: text(branch),
        oid: text(oid),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_names_that_mean_nothing_else_are_read_as_branches() {
        for plain in ["main", "feature/x-1", "é", "v1.2_rc+3", "a/b/c"] {
            let name = format!("refs/heads/{plain}");
            assert_eq!(plain_branch(name.as_bytes()), Some(name.as_str()));
        }
        for odd in [
            "", ".invalid", "../x", "a/../b", "a//b", "a/", "x.lock", "x.lock/y", "a b", "a\n",
            "a\0", "a@{1}", "a~1", "*", "a\\b", "x.",
        ] {
            let name = format!("refs/heads/{odd}");
            assert_eq!(plain_branch(name.as_bytes()), None, "{odd:?}");
        }
        assert_eq!(plain_branch(b"refs/bisect/bad"), None);
        assert_eq!(plain_branch(b"refs/heads/\xff"), None);
    }

    #[test]
    fn only_ids_as_git_writes_them_are_taken() {
        assert_eq!(plain_oid(b"00ab", 4), Some("00ab".to_owned()));
        for odd in [
            b"00AB".as_slice(),
            b"0000",
            b"00a",
            b"00abc",
            b"00a ",
            b"-0ab",
        ] {
            assert_eq!(plain_oid(odd, 4), None);
        }
    }

    #[test]
    fn a_packed_ref_is_one_whole_line() {
        let of = |packed: &str| packed_oid(packed.as_bytes(), "refs/heads/x", 4);
        let header = "# pack-refs with: peeled fully-peeled sorted \n";
        assert_eq!(
            of(&format!(
                "{header}00aa refs/heads/w\n00ab refs/heads/x\n^00ac\n"
            )),
            Some("00ab".to_owned())
        );
        assert_eq!(of("00ab refs/heads/x\n"), Some("00ab".to_owned()));
        for odd in [
            "",
            "00ab refs/heads/x",
            "00ab refs/heads/xy\n",
            "100ab refs/heads/x\n",
            "ab refs/heads/x\n",
            "00ab refs/heads/x\n00ac refs/heads/x\n",
        ] {
            assert_eq!(of(odd), None, "{odd:?}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_a_reader_fail(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = packed_oid(&bytes, "refs/heads/x", 4);
            let _ = plain_oid(&bytes, 40);
            if let Some(name) = plain_branch(&bytes) {
                prop_assert!(name.starts_with("refs/heads/") && !name.contains(".."));
            }
        }
    }
}
