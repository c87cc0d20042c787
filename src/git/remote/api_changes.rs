//! Converts a commit's changes for GitHub's `createCommitOnBranch`.

use crate::domain::snapshot::RevId;
use crate::git::bytes::display_path;
use crate::git::error::GitError;
use crate::git::objects::loose::Piece;
use crate::git::objects::reader::missing;
use crate::git::remote::names::checked_id;
use crate::git::repo::Repo;
use crate::git::snapshot::listing::{GITLINK, RawDiff, SYMLINK};
use std::fmt::Display;

/// Files to write and to remove. Paths are relative to the top of the work tree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ApiChanges {
    /// Complete contents of new and changed files.
    pub additions: Vec<(String, Vec<u8>)>,
    /// Removed files.
    pub deletions: Vec<String>,
}

/// Why a change cannot be made through the API.
#[derive(Debug, thiserror::Error)]
pub enum ApiChangesError {
    /// The API cannot express the change. An ordinary push can.
    #[error("{0}")]
    NotExpressible(String),
    /// git failed.
    #[error(transparent)]
    Git(#[from] GitError),
}

/// Maximum total size of the contents in bytes. In base64 they are 40 MB; the API may reject larger requests.
const CONTENT_LIMIT: usize = 30_000_000;
const EXECUTABLE: u32 = 0o100_755;

impl Repo {
    /// The difference between a commit and its parent.
    ///
    /// # Errors
    /// [`ApiChangesError::NotExpressible`] for written executables, links, submodules, changes of mode, paths
    /// that are not UTF-8, and too much content.
    pub fn changes(&self, parent: &RevId, commit: &RevId) -> Result<ApiChanges, ApiChangesError> {
        let parent = checked_id(parent)?;
        let commit = checked_id(commit)?;
        let _open = self.unseal()?;
        let diffs = self.diff_trees(parent, commit)?;
        let mut changes = ApiChanges::default();
        let mut written = Vec::new();
        for diff in &diffs {
            let path = expressible(diff).map_err(|why| not_expressible(&diff.path, why))?;
            match diff.after.mode {
                0 => changes.deletions.push(path.to_owned()),
                _ => written.push((path.to_owned(), diff.after.oid.as_str())),
            }
        }
        let reader = self.objects();
        let mut total = 0;
        for (_, oid) in &written {
            reader.read(oid, u64::MAX, &mut |piece| {
                if let Piece::Content(bytes) = piece {
                    total += bytes.len();
                }
            })?;
        }
        if total > CONTENT_LIMIT {
            let why = format!("{total} bytes are more than the API accepts in one commit");
            return Err(ApiChangesError::NotExpressible(why));
        }
        for (path, oid) in written {
            let read = reader
                .blob(oid)
                .and_then(|content| content.ok_or_else(|| missing(oid)));
            let content = read.map_err(|error| not_expressible(path.as_bytes(), error))?;
            changes.additions.push((path, content));
        }
        Ok(changes)
    }
}

fn not_expressible(path: &[u8], why: impl Display) -> ApiChangesError {
    ApiChangesError::NotExpressible(format!("{}: {why}", display_path(path)))
}

/// The path if the API can express the change, otherwise the reason why not.
fn expressible(diff: &RawDiff) -> Result<&str, &'static str> {
    let (before, after) = (diff.before.mode, diff.after.mode);
    if [before, after].contains(&GITLINK) {
        return Err("the API cannot change submodules");
    }
    if after == SYMLINK {
        return Err("the API cannot write symbolic links");
    }
    if after == EXECUTABLE {
        return Err("the API cannot write executable files");
    }
    if before != 0 && after != 0 && before != after {
        return Err("the API cannot change the mode of a file");
    }
    std::str::from_utf8(&diff.path).map_err(|_| "the API accepts only paths in UTF-8")
}
