//! Classifies a remote's error messages as final or worth a retry.

use crate::domain::snapshot::RevId;
use crate::git::error::GitError;
use Meaning::{Kind, Moved, Transient};
use RefusalKind::{
    Archived, Credential, Hook, LargeFile, Locked, NotFound, Other, Permission, Protected, Renamed,
    Secret, Workflows,
};
use std::time::Duration;

/// Why a remote refuses a push or a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RefusalKind {
    /// A branch protection rule or a ruleset.
    Protected,
    /// The token may not change workflow files.
    Workflows,
    /// A file is larger than the remote allows, or its large-file content is missing there.
    LargeFile,
    /// Push protection found a secret in the commits.
    Secret,
    /// A hook of the remote refused.
    Hook,
    /// The credential is missing or lacks a permission.
    Permission,
    /// The credential is wrong, revoked or expired.
    Credential,
    /// The repository is archived.
    Archived,
    /// There is no such repository, or the credential may not read it.
    NotFound,
    /// The repository has another address, to which neither commits nor the credential are sent.
    Renamed,
    /// Another process on the remote has locked the branch.
    Locked,
    /// Anything else.
    Other,
}

/// A remote's refusal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The kind of refusal.
    pub kind: RefusalKind,
    /// The message of the remote or git, at most [`WORDS_KEPT`] characters, without the credential.
    pub words: String,
}

/// Why an exchange with a remote failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExchangeFailure {
    /// A refusal. Repeating the exchange changes nothing.
    Refused(Refusal),
    /// The branch of the remote is not at the expected commit.
    Moved,
    /// The network or the server failed. The operation may have succeeded nevertheless.
    Transient(String),
}

/// Number of characters that are kept of a remote's message.
const WORDS_KEPT: usize = 1000;

/// Pauses before the second, third and fourth attempt at an exchange after a transient failure. The functions
/// here do not wait: the caller does, and can be cancelled meanwhile.
pub const RETRY_PAUSES: [Duration; 3] = [
    Duration::from_secs(2),
    Duration::from_secs(8),
    Duration::from_secs(30),
];

enum Meaning {
    Kind(RefusalKind),
    Moved,
    Transient,
}

/// Parts of messages in lower case, the more specific ones first: GitHub states its objection before git
/// reports that a hook declined, and a rejected push ends with a general sentence about its refs anyway. Those of one
/// meaning are separated by ` | `.
const MEANINGS: &[(Meaning, &str)] = &[
    (
        Kind(Workflows),
        "create or update workflow | without `workflow` scope | without `workflows` permission",
    ),
    (
        Kind(Secret),
        "push protection | secret scanning | push cannot contain secrets",
    ),
    (
        Kind(LargeFile),
        "gh001 | gh003 | gh008 | this exceeds github's file size limit | exceeds maximum allowed size",
    ),
    (
        Kind(Protected),
        "gh006 | gh013 | repository rule violations | protected branch",
    ),
    (
        Moved,
        "stale info | fetch first | non-fast-forward | remote ref updated since checkout | \
         but expected | reference already exists",
    ),
    (
        Kind(Locked),
        "cannot lock ref | failed to lock | failed to update ref",
    ),
    (Kind(Hook), "pre-receive hook declined | hook declined"),
    (Kind(Archived), "was archived so it is read-only"),
    (
        Kind(Credential),
        "bad credentials | authentication failed | invalid username or | returned error: 401",
    ),
    (
        Kind(Permission),
        "returned error: 403 | could not read username | could not read password | permission to | \
         permission denied | write access to repository not granted | resource not accessible | \
         access denied",
    ),
    (
        Kind(NotFound),
        "returned error: 404 | repository not found | does not appear to be a git repository",
    ),
    (
        Kind(Renamed),
        "returned error: 301 | returned error: 302 | returned error: 307 | returned error: 308 | \
         unable to update url base from redirection",
    ),
    (
        Transient,
        "returned error: 408 | returned error: 429 | returned error: 5 | the remote end hung up | \
         unexpected disconnect | early eof | connection reset | connection refused | \
         connection timed out | operation timed out | operation too slow | timed out | timeout | \
         could not resolve host | couldn't connect to server | failed to connect | \
         empty reply from server | transfer closed with outstanding | was not closed cleanly | \
         internal server error | rpc failed | gnutls recv error | ssl_error_syscall",
    ),
];

/// Classifies `said`, which is git's error output together with the line about the branch.
pub fn classify(said: &str) -> ExchangeFailure {
    let lower = said.to_lowercase();
    let is_said = |parts: &str| parts.split(" | ").any(|part| lower.contains(part));
    let found = MEANINGS.iter().find(|(_, parts)| is_said(parts));
    let words = kept(said);
    let kind = match found {
        Some((Moved, _)) => return ExchangeFailure::Moved,
        Some((Transient, _)) => return ExchangeFailure::Transient(words),
        Some((Kind(kind), _)) => *kind,
        None => Other,
    };
    ExchangeFailure::Refused(Refusal { kind, words })
}

/// The part of a message worth showing: without progress and `remote:` prefixes, shortened to the limit.
fn kept(said: &str) -> String {
    let lines = said
        .split(['\n', '\r'])
        .map(|line| line.trim_start_matches("remote:").trim());
    let lines = lines
        .filter(|line| !line.is_empty() && !PROGRESS.iter().any(|step| line.starts_with(step)));
    let text = lines.collect::<Vec<&str>>().join("\n");
    let is_shown = |c: &char| *c == '\n' || !c.is_control();
    text.chars().filter(is_shown).take(WORDS_KEPT).collect()
}

/// How the lines begin in which git tells its progress.
const PROGRESS: [&str; 7] = [
    "Enumerating objects:",
    "Counting objects:",
    "Compressing objects:",
    "Writing objects:",
    "Delta compression",
    "Resolving deltas:",
    "Total ",
];

/// Why an operation on a remote failed.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// Not the URL of a repository.
    #[error("the remote's address is not of the form https://host/owner/repository.git")]
    BadUrl,
    /// A name that git does not accept.
    #[error("git does not accept `{}` as the name of a branch", .0.escape_debug())]
    BadName(String),
    /// The pushed commit does not continue the branch. Nothing was sent.
    #[error("{new} does not descend from {expected}, and a branch is never rewritten")]
    NotFastForward {
        /// The current commit of the branch.
        expected: RevId,
        /// The commit to push.
        new: RevId,
    },
    /// The remote refuses. Repeating the operation changes nothing.
    #[error("the remote refused: {}", .0.words)]
    Refused(Refusal),
    /// The network or the server failed. See [`crate::git::RETRY_PAUSES`].
    #[error("the remote could not be reached: {0}")]
    Transient(String),
    /// git itself failed.
    #[error(transparent)]
    Git(#[from] GitError),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meant(said: &str) -> String {
        match classify(said) {
            ExchangeFailure::Moved => "moved".to_owned(),
            ExchangeFailure::Transient(_) => "transient".to_owned(),
            ExchangeFailure::Refused(refusal) => format!("{:?}", refusal.kind),
        }
    }

    #[test]
    fn what_remotes_say_is_told_apart() {
        let table = [
            (
                "remote: error: GH006: Protected branch update failed for refs/heads/main.\nremote: error: Changes must be made through a pull request.\n! [remote rejected] main -> main (protected branch hook declined)",
                "Protected",
            ),
            (
                "remote: error: GH013: Repository rule violations found for refs/heads/main.\n! [remote rejected] (push declined due to repository rule violations)",
                "Protected",
            ),
            (
                "remote: error: GH013: Repository rule violations found for refs/heads/x.\nremote: - GITHUB PUSH PROTECTION\nremote:   - Push cannot contain secrets",
                "Secret",
            ),
            (
                "! [remote rejected] x -> x (refusing to allow a GitHub App to create or update workflow `.github/workflows/ci.yml` without `workflows` permission)",
                "Workflows",
            ),
            (
                "! [remote rejected] x -> x (refusing to allow a Personal Access Token to create or update workflow `.github/workflows/ci.yml` without `workflow` scope)",
                "Workflows",
            ),
            (
                "remote: error: GH001: Large files detected. You may want to try Git Large File Storage\nremote: error: File a.bin is 120.00 MB; this exceeds GitHub's file size limit of 100.00 MB\n! [remote rejected] x -> x (pre-receive hook declined)",
                "LargeFile",
            ),
            (
                "remote: error: GH003: Sorry, pack exceeds maximum allowed size",
                "LargeFile",
            ),
            (
                "remote: error: GH008: Your push referenced at least 1 unknown Git LFS object",
                "LargeFile",
            ),
            (
                "! [remote rejected] x -> x (pre-receive hook declined)",
                "Hook",
            ),
            (
                "! [remote rejected] x -> x (cannot lock ref 'refs/heads/x': Unable to create '/r/x.lock': File exists.)",
                "Locked",
            ),
            (
                "remote: error: cannot lock ref 'refs/heads/x': is at aaaa but expected bbbb",
                "moved",
            ),
            ("! [rejected] x -> x (stale info)", "moved"),
            ("! [rejected] x -> x (non-fast-forward)", "moved"),
            ("! [rejected] x -> x (fetch first)", "moved"),
            (
                "fatal: unable to access 'https://github.com/o/r.git/': The requested URL returned error: 403",
                "Permission",
            ),
            (
                "remote: Permission to o/r.git denied to github-actions[bot].\nfatal: unable to access 'https://github.com/o/r.git/': The requested URL returned error: 403",
                "Permission",
            ),
            (
                "fatal: could not read Username for 'https://github.com': terminal prompts disabled",
                "Permission",
            ),
            (
                "fatal: Authentication failed for 'https://github.com/o/r.git/'",
                "Credential",
            ),
            (
                "fatal: unable to access 'https://github.com/o/r.git/': The requested URL returned error: 401",
                "Credential",
            ),
            (
                "remote: This repository was archived so it is read-only.\nfatal: unable to access 'https://github.com/o/r.git/': The requested URL returned error: 403",
                "Archived",
            ),
            (
                "remote: Repository not found.\nfatal: repository 'https://github.com/o/r.git/' not found",
                "NotFound",
            ),
            (
                "fatal: unable to access 'https://github.com/o/r.git/': The requested URL returned error: 404",
                "NotFound",
            ),
            (
                "fatal: unable to access 'https://github.com/o/old.git/': The requested URL returned error: 301",
                "Renamed",
            ),
            (
                "fatal: unable to access 'https://github.com/o/r.git/': The requested URL returned error: 502",
                "transient",
            ),
            (
                "error: RPC failed; HTTP 500 curl 22 The requested URL returned error: 500\nsend-pack: unexpected disconnect while reading sideband packet\nfatal: the remote end hung up unexpectedly",
                "transient",
            ),
            (
                "fatal: unable to access 'https://x/': Could not resolve host: x",
                "transient",
            ),
            (
                "fatal: unable to access 'https://x/': Operation too slow. Less than 1 bytes/sec transferred the last 60 seconds",
                "transient",
            ),
            ("remote: Internal Server Error", "transient"),
            ("something nobody has seen", "Other"),
            ("", "Other"),
        ];
        for (said, wanted) in table {
            assert_eq!(meant(said), wanted, "{said}");
        }
    }

    #[test]
    fn words_are_short_and_without_progress_or_control_characters() {
        let said = format!(
            "Writing objects: 100% (3/3)\rremote: \x1b[31mno\x1b[0m\nTotal 3\n{}",
            "x".repeat(5000)
        );
        let ExchangeFailure::Refused(refusal) = classify(&said) else {
            panic!()
        };
        assert!(refusal.words.starts_with("[31mno[0m\nxxx"));
        assert_eq!(refusal.words.chars().count(), WORDS_KEPT);
    }
}
