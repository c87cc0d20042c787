//! Pushes one branch forward from its expected position, and reads it back afterwards.

use crate::domain::snapshot::RevId;
use crate::git::command::Output;
use crate::git::error::GitError;
use crate::git::remote::exchange::{Remote, TRANSFER_LIMIT};
use crate::git::remote::names::{BranchName, checked_id};
use crate::git::remote::refusal::{ExchangeFailure, Refusal, RefusalKind, RemoteError, classify};
use crate::git::repo::Repo;
use crate::process::Cancel;

/// The commit to push, and the branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushSpec {
    /// The branch of the remote.
    pub branch: BranchName,
    /// The new commit of the branch.
    pub new: RevId,
    /// The expected commit of the branch, or `None` if the branch must not exist.
    pub expected: Option<RevId>,
}

/// The result of a push.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PushOutcome {
    /// The remote has the commit, as read back after the push. `head` is the branch's commit: the pushed one,
    /// or a descendant that somebody else has pushed in the meantime.
    Pushed {
        /// The current commit of the branch.
        head: RevId,
    },
    /// The branch was already at the commit.
    UpToDate,
    /// The branch is not at the expected commit. Nothing was pushed.
    Moved {
        /// Its current commit, or `None` if the branch does not exist.
        now: Option<RevId>,
    },
    /// The remote refuses the push. Retrying does not help.
    Refused(Refusal),
    /// The network or the server failed, and the branch was not seen at the commit afterwards. Repeating the
    /// push is safe even if it did land. The caller repeats it after [`crate::git::RETRY_PAUSES`].
    Transient {
        /// The messages of git and the remote.
        words: String,
    },
}

impl Repo {
    /// Moves a branch of the remote forward to a commit, under a lease on its expected position and only to a
    /// descendant of that. Makes one attempt, and reads the remote back before it reports the result.
    ///
    /// # Errors
    /// [`RemoteError::NotFastForward`] before anything is sent. Otherwise when git cannot be run or the run
    /// is cancelled; then it is unknown whether the push landed.
    pub fn push(
        &self,
        remote: &Remote,
        spec: &PushSpec,
        cancel: &Cancel,
    ) -> Result<PushOutcome, RemoteError> {
        let new = checked_id(&spec.new)?;
        let expected = spec.expected.as_ref().map(checked_id).transpose()?;
        let _open = self.unseal()?;
        if let Some(expected) = expected
            && !self.is_ancestor(expected, new).unwrap_or(false)
        {
            return Err(RemoteError::NotFastForward {
                expected: RevId(expected.to_owned()),
                new: spec.new.clone(),
            });
        }
        if let Some(refusal) = self.upload_contents(remote, new, expected, cancel)? {
            return Ok(PushOutcome::Refused(refusal));
        }
        let name = spec.branch.full();
        let lease = format!("--force-with-lease={name}:{}", expected.unwrap_or_default());
        let refspec = format!("{new}:{name}");
        let call = self.remote_call(remote, cancel).timeout(TRANSFER_LIMIT);
        let call = call
            .words(PUSH)
            .args(["--porcelain", &lease, remote.url(), &refspec]);
        let trouble = match call.status() {
            Ok(output) => match reported(remote, &output, &name) {
                Ok('=') => return Ok(PushOutcome::UpToDate),
                Ok(_) => None,
                Err(words) => Some(words),
            },
            Err(error @ GitError::TimedOut { .. }) => Some(error.to_string()),
            Err(error) => return Err(error.into()),
        };
        self.compare_with_remote(remote, spec, trouble, cancel)
    }

    /// Compares git's report of a push with the state of the remote. `trouble` is git's message if the push
    /// failed; the branch may have moved nevertheless if the response was lost.
    fn compare_with_remote(
        &self,
        remote: &Remote,
        spec: &PushSpec,
        trouble: Option<String>,
        cancel: &Cancel,
    ) -> Result<PushOutcome, RemoteError> {
        let now = match self.ls_remote(remote, &spec.branch.full(), cancel) {
            Ok(now) => now,
            Err(RemoteError::Git(error)) => return Err(error.into()),
            Err(error) => return Ok(unread(trouble, &error)),
        };
        if now.as_ref() == Some(&spec.new) {
            let head = spec.new.clone();
            return Ok(PushOutcome::Pushed { head });
        }
        let Some(words) = trouble else {
            // Somebody has pushed on top of the branch, or moved it.
            if let Some(head) = &now {
                self.fetch(remote, &head.0, None, cancel)?;
                if self.is_ancestor(&spec.new.0, &head.0)? {
                    let head = head.clone();
                    return Ok(PushOutcome::Pushed { head });
                }
            }
            return Ok(PushOutcome::Moved { now });
        };
        let in_place = now == spec.expected;
        Ok(match classify(&words) {
            ExchangeFailure::Transient(words) if in_place => PushOutcome::Transient { words },
            ExchangeFailure::Moved if in_place => PushOutcome::Transient { words },
            ExchangeFailure::Refused(refusal) if in_place || is_final(refusal.kind) => {
                PushOutcome::Refused(refusal)
            }
            _ => PushOutcome::Moved { now },
        })
    }
}

/// A push of nothing but what is named.
pub(crate) const PUSH: &str =
    "push --no-verify --no-recurse-submodules --no-signed --no-follow-tags";

/// Refusals that do not depend on the branch's position.
fn is_final(kind: RefusalKind) -> bool {
    !matches!(
        kind,
        RefusalKind::Locked | RefusalKind::Other | RefusalKind::Hook
    )
}

/// The result from git's report alone, because the remote could not be read back.
fn unread(trouble: Option<String>, error: &RemoteError) -> PushOutcome {
    match trouble.as_deref().map(classify) {
        Some(ExchangeFailure::Refused(refusal)) => PushOutcome::Refused(refusal),
        _ => PushOutcome::Transient {
            words: match trouble {
                Some(words) => format!("{words}\n{error}"),
                None => format!("it may have landed, but {error}"),
            },
        },
    }
}

/// The flag that git's report of a push gives a branch, or why the push failed. A line of `git push --porcelain` is flag,
/// refs and summary, separated by tabs.
fn reported(remote: &Remote, output: &Output, name: &str) -> Result<char, String> {
    let stdout = remote.clean(&String::from_utf8_lossy(&output.stdout));
    let line = stdout.lines().find_map(|line| {
        let mut fields = line.splitn(3, '\t');
        let flag = fields.next()?.chars().next()?;
        let (_, to) = fields.next()?.split_once(':')?;
        Some((flag, fields.next()?)).filter(|_| to == name)
    });
    match line {
        Some((flag, _)) if flag == '=' || (flag != '!' && output.is_success()) => Ok(flag),
        line => {
            let summary = line.map(|(_, summary)| summary).unwrap_or_default();
            Err(format!("{}\n{summary}", remote.clean(&output.stderr)))
        }
    }
}

/// The first line of a pointer, and what comes before the digest of the content in the second one.
const POINTER: &str = "version https://git-lfs.github.com/spec/v1";
const DIGEST: &str = "oid sha256:";

/// The largest pointer, in bytes, as a filter of git.
const SMALL: &str = "--filter=blob:limit=1024";

impl Repo {
    /// Uploads the contents for the pointers in the commits that the remote lacks. Returns why that failed: the
    /// pointers must not be pushed then.
    pub(super) fn upload_contents(
        &self,
        remote: &Remote,
        new: &str,
        expected: Option<&str>,
        cancel: &Cancel,
    ) -> Result<Option<Refusal>, RemoteError> {
        if self.private.state.lfs_storage.is_none() {
            return Ok(None);
        }
        let call = self.real_call().args(["rev-list", "--objects", SMALL, new]);
        let call = call.words("--not --remotes").args(expected);
        let listed = call.of_any_size().stdout()?;
        let lines = listed.split(|byte| *byte == b'\n');
        let ids = lines.filter_map(|line| line.split(|byte| *byte == b' ').next());
        let ids: Vec<&[u8]> = ids.filter(|id| !id.is_empty()).collect();
        let call = self.real_git("cat-file --batch");
        let contents = call.of_any_size().stdin(ids.join(&b'\n')).stdout()?;
        let digests = pointed_to(&String::from_utf8_lossy(&contents));
        if digests.is_empty() {
            return Ok(None);
        }
        let call = self.remote_call(remote, cancel).timeout(TRANSFER_LIMIT);
        let call = call.args(["lfs", "push", "--object-id", remote.url()]);
        let output = call.args(&digests).status()?;
        if output.is_success() {
            return Ok(None);
        }
        let said = remote.clean(&output.stderr);
        Ok(Some(Refusal {
            kind: RefusalKind::LargeFile,
            words: format!(
                "git-lfs could not upload the contents of the commits, so they were not pushed: {said}"
            ),
        }))
    }
}

/// The digests of the contents to which the blobs in an output of `git cat-file --batch` point.
fn pointed_to(contents: &str) -> Vec<String> {
    let lines: Vec<&str> = contents.lines().collect();
    let is_blob = |line: &str| line.split(' ').nth(1) == Some("blob");
    let found = lines.windows(3).filter_map(|lines| match lines {
        [header, POINTER, digest] if is_blob(header) => digest.strip_prefix(DIGEST),
        _ => None,
    });
    found.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn said(status: i32, stdout: &str, stderr: &str) -> Result<char, String> {
        let output = Output {
            status: Some(status),
            stdout: stdout.as_bytes().to_vec(),
            stderr: stderr.to_owned(),
        };
        reported(&Remote::local(Path::new("/r")), &output, "refs/heads/x")
    }

    #[test]
    fn only_the_line_of_the_branch_counts() {
        assert_eq!(
            said(0, "To /r\n \taaaa:refs/heads/x\ta..b\nDone\n", ""),
            Ok(' ')
        );
        assert_eq!(said(0, "*\taaaa:refs/heads/x\t[new branch]\n", ""), Ok('*'));
        assert_eq!(said(0, "=\taaaa:refs/heads/x\t[up to date]\n", ""), Ok('='));
        assert_eq!(
            said(
                1,
                "!\taaaa:refs/heads/x\t[rejected] (stale info)\n",
                "error: no"
            ),
            Err("error: no\n[rejected] (stale info)".to_owned())
        );
        assert_eq!(
            said(0, " \taaaa:refs/heads/y\ta..b\nDone\n", ""),
            Err("\n".to_owned())
        );
        assert_eq!(said(128, "", "fatal: x"), Err("fatal: x\n".to_owned()));
    }
}
