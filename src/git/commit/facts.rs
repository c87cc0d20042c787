//! Properties of commits that somebody else made, read before they are trusted.

use crate::domain::snapshot::RevId;
use crate::git::command::Call;
use crate::git::commit::raw_commit::{RawCommit, Signature};
use crate::git::error::GitError;
use crate::git::objects::new_objects::NewObjects;
use crate::git::objects::reader::ObjectReader;
use crate::git::remote::error::RemoteError;
use crate::git::remote::names::checked_id;
use crate::git::repo::Repo;
use crate::git::snapshot::listing::{ChangedPath, GITLINK, RawDiff};
use std::collections::HashMap;
use std::path::Path;

const COMMIT_LIMIT: usize = 1000;

/// The properties of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitFacts {
    /// The commit.
    pub id: RevId,
    /// Its parents; exactly one in a [`CommitLine`].
    pub parents: Vec<RevId>,
    /// The author.
    pub author: Signature,
    /// The committer.
    pub committer: Signature,
    /// The names of its headers, in order.
    pub headers: Vec<String>,
    /// The whole message.
    pub message: Vec<u8>,
    /// The paths that differ from its parent.
    pub changed: Vec<ChangedPath>,
}

/// A linear sequence of commits: the only parent of each is the one before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitLine {
    /// The last commit.
    pub head: RevId,
    /// All commits, oldest first.
    pub commits: Vec<CommitFacts>,
    /// Sizes in bytes of the changed files, by blob id.
    pub sizes: HashMap<String, u64>,
}

/// Why commits are not a linear sequence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoLine {
    /// There are more commits than Sprag inspects.
    #[error("there are more than {COMMIT_LIMIT} commits")]
    TooMany,
    /// A commit does not have exactly one parent.
    #[error("it holds a merge or a commit without a parent")]
    Merge,
    /// The first commit does not continue the expected one.
    #[error("its commits are not one line from the expected commit")]
    Elsewhere,
    /// There are no commits.
    #[error("it holds no commits after the expected one")]
    Empty,
    /// A commit cannot be read.
    #[error("{0}")]
    Unreadable(String),
    /// The content of some objects does not match their ids.
    #[error("the object store holds something else under the ids {}", .0.join(", "))]
    Unsound(Vec<String>),
}

impl Repo {
    /// The commits from the base to `head`, which somebody else made.
    ///
    /// # Errors
    /// When git cannot be run or the id is invalid. The inner error says why the commits are not a linear
    /// sequence.
    pub fn commits_since_base(
        &self,
        head: &RevId,
    ) -> Result<Result<CommitLine, NoLine>, RemoteError> {
        match self.base() {
            Some(base) => self.commits_since(&base, head),
            None => Ok(Err(NoLine::Merge)),
        }
    }

    /// The commits from `start` to `head`, which somebody else made.
    ///
    /// # Errors
    /// As for [`Repo::commits_since_base`].
    pub fn commits_since(
        &self,
        start: &RevId,
        head: &RevId,
    ) -> Result<Result<CommitLine, NoLine>, RemoteError> {
        let start = checked_id(start)?;
        let head = checked_id(head)?;
        let _open = self.unseal_to_read()?;
        let line = self.commit_line(None, start, head)?;
        let Ok(line) = line else {
            return Ok(line);
        };
        let mut ids = Vec::new();
        for commit in &line.commits {
            let tree = self.raw_commit(&commit.id.0)?.tree;
            for parent in &commit.parents {
                let diffs = self.diff_trees_and_subtrees(&parent.0, &commit.id.0)?;
                let objects = NewObjects::of_tree(&tree, &diffs).and_commit(&commit.id.0);
                ids.extend(objects.ids().map(str::to_owned));
            }
        }
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        Ok(match self.unsound_in_repository(&ids)? {
            unsound if unsound.is_empty() => Ok(line),
            unsound => Err(NoLine::Unsound(unsound)),
        })
    }

    /// A command that also reads the objects in this directory.
    pub(crate) fn seeing(&self, objects: Option<&Path>) -> Call<'_> {
        match objects {
            Some(objects) => self.bare_call().env("GIT_OBJECT_DIRECTORY", objects),
            None => self.bare_call(),
        }
    }

    pub(crate) fn commit_line(
        &self,
        objects: Option<&Path>,
        base: &str,
        head: &str,
    ) -> Result<Result<CommitLine, NoLine>, GitError> {
        let max = format!("--max-count={}", COMMIT_LIMIT + 1);
        let args = ["rev-list", "--topo-order", "--parents", &max, head];
        let listed = self
            .seeing(objects)
            .args(args)
            .args([&format!("^{base}"), "--"])
            .status()?;
        if listed.status != Some(0) {
            return Ok(Err(NoLine::Unreadable(listed.stderr)));
        }
        let text = String::from_utf8_lossy(&listed.stdout).into_owned();
        let lines: Vec<&str> = text.lines().collect();
        if lines.len() > COMMIT_LIMIT {
            return Ok(Err(NoLine::TooMany));
        }
        if lines.iter().any(|line| line.split(' ').count() != 2) {
            return Ok(Err(NoLine::Merge));
        }
        let reader = ObjectReader::by(|| self.seeing(objects));
        let mut commits = Vec::new();
        let mut parent = base;
        for (id, found) in lines.iter().rev().filter_map(|line| line.split_once(' ')) {
            if found != parent {
                return Ok(Err(NoLine::Elsewhere));
            }
            match commit_facts(&reader, id, parent)? {
                Some(facts) => commits.push(facts),
                None => {
                    let why = format!("commit {id} cannot be read");
                    return Ok(Err(NoLine::Unreadable(why)));
                }
            }
            parent = id;
        }
        if commits.is_empty() || parent != head {
            return Ok(Err(NoLine::Empty));
        }
        let changes = commits.iter().flat_map(|commit| &commit.changed);
        let blobs = changes.filter(|change| ![0, GITLINK].contains(&change.after));
        let blobs: Vec<&str> = blobs.map(|change| change.oid.as_str()).collect();
        Ok(Ok(CommitLine {
            head: RevId(head.to_owned()),
            sizes: blob_sizes(self.seeing(objects), &blobs)?,
            commits,
        }))
    }
}

fn commit_facts(
    reader: &ObjectReader<'_>,
    id: &str,
    parent: &str,
) -> Result<Option<CommitFacts>, GitError> {
    let Some(commit) = RawCommit::parse(&reader.commit(id)?) else {
        return Ok(None);
    };
    let diffs = reader.diff(Some(parent), id, false)?;
    Ok(Some(CommitFacts {
        id: RevId(id.to_owned()),
        parents: vec![RevId(parent.to_owned())],
        author: commit.author,
        committer: commit.committer,
        headers: commit.headers,
        message: commit.message,
        changed: diffs.into_iter().map(RawDiff::changed).collect(),
    }))
}

/// Sizes of blobs, with a command that may read other object stores.
fn blob_sizes(call: Call<'_>, oids: &[&str]) -> Result<HashMap<String, u64>, GitError> {
    let lines: String = oids.iter().map(|oid| format!("{oid}\n")).collect();
    let call = call.args(["cat-file", "--batch-check=%(objectname) %(objectsize)"]);
    let listed = call.stdin(lines.into_bytes()).run()?.stdout;
    let text = String::from_utf8_lossy(&listed);
    let size = |line: &str| {
        let (oid, size) = line.split_once(' ')?;
        Some((oid.to_owned(), size.parse().ok()?))
    };
    Ok(text.lines().filter_map(size).collect())
}
