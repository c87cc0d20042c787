//! How much the commits of an agent change.
//!
//! A few small objects can stand for more files than git can list. No git process reads the trees of a commit that
//! an agent made before this was found to end.

use crate::git::command::Call;
use crate::git::error::GitError;
use crate::git::objects::allowance::Allowance;
use crate::git::objects::count::{Counter, Extent};
use crate::git::objects::reader::LeftToGit;
use crate::git::private::guard::Violation;
use crate::git::repo::Repo;
use std::time::Duration;

/// How many files a commit may change.
const FILES: u64 = 1_000_000;

/// How much is read in this process to count them, in bytes.
const READ: u64 = 1 << 30;

/// How long a path may be in bytes: no file system of Linux has a longer one.
const PATH: usize = 4096;

/// How long git may read the changes of all commits of a turn.
const TIMEOUT: Duration = Duration::from_secs(120);

impl Repo {
    /// The first commit after `from` up to `to` whose changes are too many to be read, if there is one.
    pub(in crate::git) fn unreadable_commit(
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
        let reader = self.objects().with_allowance(Allowance::of(READ));
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
                Err(LeftToGit) => return self.unreadable_by_git(&listed, to),
            };
            return Ok(Some(Violation::UnreadableCommit {
                commit: commit.to_owned(),
                why,
            }));
        }
        Ok(None)
    }

    /// Like [`Repo::unreadable_commit`], with git, for what is not plain enough to be counted here.
    fn unreadable_by_git(&self, listed: &str, to: &str) -> Result<Option<Violation>, GitError> {
        let commits = listed.lines().filter_map(|line| line.split(' ').next());
        let commits: String = commits.map(|commit| format!("{commit}\n")).collect();
        let read = read_changes(self.call(), commits.into_bytes());
        let why = match read.map(|output| output.expect_success("diff-tree".to_owned())) {
            Ok(Ok(_)) => return Ok(None),
            Err(error @ GitError::Cancelled { .. }) => return Err(error),
            Err(GitError::Flooded { .. }) => "has too many changes".to_owned(),
            Ok(Err(error)) | Err(error) => format!("has changes that cannot be read: {error}"),
        };
        Ok(Some(Violation::UnreadableCommit {
            commit: to.to_owned(),
            why,
        }))
    }
}

/// How much a commit changes compared with one of its parents, at most.
fn largest<'a>(
    counter: &mut Counter<'_>,
    commit: &str,
    parents: impl Iterator<Item = &'a str>,
) -> Result<Extent, LeftToGit> {
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

/// Reads the changes of these commits, unless they are many, and keeps nothing of them.
fn read_changes(call: Call<'_>, commits: Vec<u8>) -> Result<crate::git::command::Output, GitError> {
    let args = ["diff-tree", "--stdin", "-r", "-m", "--root", "--raw", "-z"];
    let call = call
        .args(args)
        .args(["--no-abbrev", "--no-renames"])
        .stdin(commits)
        .timeout(TIMEOUT);
    // For each commit one field, and for each of its changes two.
    let mut fields = 0;
    call.stream_while(&mut |chunk| {
        fields += memchr::memchr_iter(0, chunk).count() as u64;
        fields <= 2 * FILES
    })
}
