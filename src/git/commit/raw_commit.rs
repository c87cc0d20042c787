//! Parses commits in the form in which git stores them.

use crate::domain::snapshot::RevId;
use crate::git::bytes::display_path;
use crate::git::error::GitError;
use crate::git::objects::reader::parents_in;
use crate::git::remote::error::RemoteError;
use crate::git::remote::names::checked_id;
use crate::git::repo::Repo;
use std::collections::BTreeSet;

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
    pub fn message_of(&self, commit: &RevId) -> Result<String, RemoteError> {
        let id = checked_id(commit)?;
        let _open = self.unseal_to_read()?;
        let commit = self.raw_commit(id)?;
        Ok(String::from_utf8_lossy(&commit.message).into_owned())
    }

    /// The id of a commit's tree. The commit's content is checked against its id.
    ///
    /// # Errors
    /// When there is no such commit, or the object with its id has other content.
    pub fn tree_of(&self, commit: &RevId) -> Result<String, RemoteError> {
        let id = checked_id(commit)?;
        let _open = self.unseal_to_read()?;
        Ok(self.raw_commit(id)?.tree)
    }

    /// The paths that differ between a commit and its first parent, sorted; all paths of a commit without one.
    ///
    /// # Errors
    /// When there is no such commit, or git cannot be run.
    pub fn files_of(&self, commit: &RevId) -> Result<Vec<String>, RemoteError> {
        let id = checked_id(commit)?;
        let _open = self.unseal_to_read()?;
        let reader = self.objects();
        let parents = parents_in(&reader.commit(id)?);
        let changed = reader.diff(parents.first().map(String::as_str), id, false)?;
        let files: BTreeSet<String> = changed
            .iter()
            .map(|diff| display_path(&diff.path))
            .collect();
        Ok(files.into_iter().collect())
    }

    pub(crate) fn raw_commit(&self, oid: &str) -> Result<RawCommit, GitError> {
        let content = self.objects().commit(oid)?;
        RawCommit::parse(&content).ok_or_else(|| GitError::Malformed {
            command: "cat-file",
            what: format!("commit {oid}"),
        })
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
