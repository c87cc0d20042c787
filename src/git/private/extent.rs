//! How much the commits of an agent change.
//!
//! A few small objects can stand for more files than git can list. No git process reads the trees of a commit that
//! an agent made before this was found to end.

use crate::git::error::GitError;
use crate::git::objects::count::{Counter, Extent};
use crate::git::private::guard::Violation;
use crate::git::repo::Repo;

/// How many files a commit may change.
const FILES: u64 = 1_000_000;

/// How much is read to count them, in bytes.
const READ: u64 = 1 << 30;

/// How long a path may be in bytes: no file system of Linux has a longer one.
const PATH: usize = 4096;

impl Repo {
    /// The first commit after `from` up to `to` whose changes are too many to be read, if there is one.
    pub(crate) fn unreadable_commit(
        &self,
        from: Option<&str>,
        to: &str,
    ) -> Result<Option<Violation>, GitError> {
        let mut call = self.call().args(["rev-list", "--parents", to]);
        if let Some(from) = from {
            call = call.args([format!("^{from}")]);
        }
        let listed = call.args(["--"]).run()?.stdout;
        let listed = String::from_utf8_lossy(&listed);
        let reader = self.objects().within(READ);
        let mut counter = Counter::new(&reader);
        for line in listed.lines() {
            let mut ids = line.split(' ');
            let commit = ids.next().unwrap_or_default();
            let why = match largest(&mut counter, commit, ids) {
                Ok(extent) if extent.files > FILES => format!("changes more than {FILES} files"),
                Ok(extent) if extent.path > PATH => {
                    format!("has a path of {} bytes", extent.path)
                }
                Ok(_) => continue,
                Err(error @ GitError::Cancelled { .. }) => return Err(error),
                Err(error) => format!("has changes that cannot be read: {error}"),
            };
            return Ok(Some(Violation::UnreadableCommit {
                commit: commit.to_owned(),
                why,
            }));
        }
        Ok(None)
    }
}

/// How much a commit changes compared with one of its parents, at most.
fn largest<'a>(
    counter: &mut Counter<'_, '_>,
    commit: &str,
    parents: impl Iterator<Item = &'a str>,
) -> Result<Extent, GitError> {
    let mut parents = parents.peekable();
    if parents.peek().is_none() {
        return counter.differing(None, commit);
    }
    let mut most = Extent::default();
    for parent in parents {
        most = most.max(counter.differing(Some(parent), commit)?);
    }
    Ok(most)
}
