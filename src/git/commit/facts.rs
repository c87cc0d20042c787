//! Properties of commits that somebody else made, read before they are trusted.

use crate::domain::snapshot::RevId;
use crate::git::bytes::display_path;
use crate::git::command::Call;
use crate::git::error::{GitError, Result};
use crate::git::objects::reader::{ObjectReader, parents_in};
use crate::git::remote::names::checked_id;
use crate::git::repo::Repo;
use crate::git::snapshot::listing::NewObjects;
use crate::git::snapshot::listing::{ChangedPath, GITLINK, RawDiff};
use std::collections::{BTreeSet, HashMap};
use std::path::Path;

const COMMIT_LIMIT: usize = 1000;

const MERGE: &str = "it holds a merge or a commit without a parent";

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

impl Repo {
    /// The commits from the base to `head`, which somebody else made.
    ///
    /// # Errors
    /// When git cannot be run or the id is invalid. The inner error says why the commits are not a linear
    /// sequence.
    pub fn commits_since_base(&self, head: &RevId) -> Result<Result<CommitLine, String>> {
        match self.base() {
            Some(base) => self.commits_since(&base, head),
            None => Ok(Err(MERGE.to_owned())),
        }
    }

    /// The commits from `start` to `head`, which somebody else made.
    ///
    /// # Errors
    /// As for [`Repo::commits_since_base`].
    pub fn commits_since(&self, start: &RevId, head: &RevId) -> Result<Result<CommitLine, String>> {
        let _open = self.unseal_to_read()?;
        let line = match self.commit_line(None, checked_id(start)?, checked_id(head)?)? {
            Ok(line) => line,
            Err(no_line) => return Ok(Err(no_line)),
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
            unsound => {
                let ids = unsound.join(", ");
                Err(format!(
                    "the object store holds something else under the ids {ids}"
                ))
            }
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
    ) -> Result<Result<CommitLine, String>> {
        let max = format!("--max-count={}", COMMIT_LIMIT + 1);
        let args = ["rev-list", "--topo-order", "--parents", &max, head];
        let listed = self
            .seeing(objects)
            .args(args)
            .args([&format!("^{base}"), "--"])
            .status()?;
        if listed.status != Some(0) {
            return Ok(Err(listed.stderr));
        }
        let text = String::from_utf8_lossy(&listed.stdout).into_owned();
        let lines: Vec<&str> = text.lines().collect();
        if lines.len() > COMMIT_LIMIT {
            return Ok(Err(format!("there are more than {COMMIT_LIMIT} commits")));
        }
        if lines.iter().any(|line| line.split(' ').count() != 2) {
            return Ok(Err(MERGE.to_owned()));
        }
        let reader = ObjectReader::by(|| self.seeing(objects));
        let mut commits = Vec::new();
        let mut parent = base;
        for (id, found) in lines.iter().rev().filter_map(|line| line.split_once(' ')) {
            if found != parent {
                let why = "its commits are not one line from the expected commit";
                return Ok(Err(why.to_owned()));
            }
            let Some(commit) = RawCommit::parse(&reader.commit(id)?) else {
                return Ok(Err(format!("commit {id} cannot be read")));
            };
            let changed = reader.diff(Some(parent), id, false)?.into_iter();
            commits.push(CommitFacts {
                id: RevId(id.to_owned()),
                parents: vec![RevId(parent.to_owned())],
                author: commit.author,
                committer: commit.committer,
                headers: commit.headers,
                message: commit.message,
                changed: changed.map(RawDiff::changed).collect(),
            });
            parent = id;
        }
        if commits.is_empty() || parent != head {
            return Ok(Err("it holds no commits after the expected one".to_owned()));
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

/// Sizes of blobs, with a command that may read other object stores.
fn blob_sizes(call: Call<'_>, oids: &[&str]) -> Result<HashMap<String, u64>> {
    let call = call
        .arg("cat-file")
        .arg("--batch-check=%(objectname) %(objectsize)");
    let listed = call.stdin(oids.join("\n")).stdout()?;
    let text = String::from_utf8_lossy(&listed);
    let size = |line: &str| {
        let (oid, size) = line.split_once(' ')?;
        Some((oid.to_owned(), size.parse().ok()?))
    };
    Ok(text.lines().filter_map(size).collect())
}

/// The author or committer of a commit and the time, in git's own form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    /// Display name. Invalid UTF-8 is replaced.
    pub name: String,
    /// Email address.
    pub email: String,
    /// Seconds since 1970 and the offset, as in `1700000000 +0100`.
    pub when: String,
}

/// The parts of a commit that are preserved when it is recreated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RawCommit {
    pub(crate) tree: String,
    pub(crate) parents: Vec<String>,
    pub(crate) author: Signature,
    pub(crate) committer: Signature,
    pub(crate) encoding: Option<String>,
    /// The names of all headers, in order.
    pub(crate) headers: Vec<String>,
    pub(crate) message: Vec<u8>,
}

impl RawCommit {
    pub(crate) fn parse(content: &[u8]) -> Option<Self> {
        let end = memchr::memmem::find(content, b"\n\n")?;
        let headers = &content[..end];
        let message = &content[end + 2..];
        let lines = || headers.split(|byte| *byte == b'\n');
        let all = |name: &'static [u8]| {
            lines().filter_map(move |line| line.strip_prefix(name)?.strip_prefix(b" "))
        };
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Some(Self {
            tree: text(all(b"tree").next()?),
            parents: all(b"parent").map(text).collect(),
            author: Signature::parse(&text(all(b"author").next()?))?,
            committer: Signature::parse(&text(all(b"committer").next()?))?,
            encoding: all(b"encoding").next().map(text),
            headers: lines()
                .filter(|line| !line.starts_with(b" "))
                .map(|line| text(line.split(|byte| *byte == b' ').next().unwrap_or(line)))
                .collect(),
            message: message.to_vec(),
        })
    }
}

impl Signature {
    /// `name <email> seconds offset`
    fn parse(line: &str) -> Option<Self> {
        let (name, rest) = line.split_once('<')?;
        let (email, when) = rest.rsplit_once('>')?;
        Some(Self {
            name: name.trim().to_owned(),
            email: email.to_owned(),
            when: when.trim().to_owned(),
        })
    }
}

impl Repo {
    /// The message of a commit. Invalid UTF-8 is replaced.
    ///
    /// # Errors
    /// When there is no such commit.
    pub fn message_of(&self, commit: &RevId) -> Result<String> {
        let _open = self.unseal_to_read()?;
        let commit = self.raw_commit(checked_id(commit)?)?;
        Ok(String::from_utf8_lossy(&commit.message).into_owned())
    }

    /// The id of a commit's tree. The commit's content is checked against its id.
    ///
    /// # Errors
    /// When there is no such commit, or the object with its id has other content.
    pub fn tree_of(&self, commit: &RevId) -> Result<String> {
        let _open = self.unseal_to_read()?;
        Ok(self.raw_commit(checked_id(commit)?)?.tree)
    }

    /// The paths that differ between a commit and its first parent, sorted; all paths of a commit without one.
    ///
    /// # Errors
    /// When there is no such commit, or git cannot be run.
    pub fn files_of(&self, commit: &RevId) -> Result<Vec<String>> {
        let id = checked_id(commit)?;
        let _open = self.unseal_to_read()?;
        let reader = self.objects();
        let parents = parents_in(&reader.commit(id)?);
        let changed = reader.diff(parents.first().map(String::as_str), id, false)?;
        let files = changed.iter().map(|diff| display_path(&diff.path));
        Ok(BTreeSet::from_iter(files).into_iter().collect())
    }

    pub(crate) fn raw_commit(&self, oid: &str) -> Result<RawCommit> {
        let content = self.objects().commit(oid)?;
        RawCommit::parse(&content)
            .ok_or_else(|| GitError::malformed("cat-file", format!("commit {oid}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_is_read_as_git_writes_it() {
        let text = b"tree aa\nparent bb\nparent cc\nauthor A B <a@b> 1 +0100\ncommitter C <> 2 -0200\ngpgsig x\n y\nencoding latin1\n\nSubject\n\nparent dd\n";
        let commit = RawCommit::parse(text).unwrap();
        assert_eq!(commit.parents, ["bb", "cc"]);
        assert_eq!(
            (commit.author.name.as_str(), commit.author.when.as_str()),
            ("A B", "1 +0100")
        );
        assert_eq!(commit.committer.email, "");
        assert_eq!(commit.encoding.as_deref(), Some("latin1"));
        assert_eq!(
            commit.headers.join(" "),
            "tree parent parent author committer gpgsig encoding"
        );
        assert_eq!(commit.message, b"Subject\n\nparent dd\n");
        assert_eq!(RawCommit::parse(b"tree aa\n\n"), None);
    }
}
