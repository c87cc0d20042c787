//! Names of branches and objects that git cannot interpret as anything else.

use crate::domain::snapshot::RevId;
use crate::git::error::{GitError, Result};
use crate::git::remote::refusal::RemoteError;
use git2::Reference;

/// The name of a branch that git accepts and cannot interpret as anything else.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BranchName(String);

impl BranchName {
    /// Parses a short name (`feature/x`, not `refs/heads/feature/x`) by the rules of git-check-ref-format(1).
    ///
    /// # Errors
    /// [`RemoteError::BadName`].
    pub fn parse(name: &str) -> Result<Self, RemoteError> {
        if !name.starts_with("refs/") && is_ref_name(name) && name != "HEAD" {
            Ok(Self(name.to_owned()))
        } else {
            Err(RemoteError::BadName(name.to_owned()))
        }
    }

    /// The branch that keeps the work of a run whose own branch cannot be pushed.
    pub fn rescue(run_id: &str) -> Self {
        Self(rescue_branch(run_id))
    }

    /// The short name.
    pub fn short(&self) -> &str {
        &self.0
    }

    /// The full name, below `refs/heads/`.
    pub fn full(&self) -> String {
        format!("refs/heads/{}", self.0)
    }
}

/// `sprag/rescue/<run>`, with characters replaced that a ref name cannot contain.
pub fn rescue_branch(run_id: &str) -> String {
    format!("sprag/rescue/{}", ref_component(run_id))
}

/// Converts any text to one component of a ref name.
pub(crate) fn ref_component(text: &str) -> String {
    let is_safe = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let name = text
        .chars()
        .take(80)
        .map(|c| if is_safe(c) { c } else { '-' });
    Some(name.collect())
        .filter(|name: &String| !name.is_empty())
        .unwrap_or_else(|| "-".to_owned())
}

/// The rules of git-check-ref-format(1), and a length that every file system supports.
fn is_ref_name(name: &str) -> bool {
    let is_short = name.len() <= 1000 && name.split('/').all(|part| part.len() <= 200);
    is_short
        && !name.starts_with('-')
        && name != "@"
        && Reference::is_valid_name(&format!("refs/heads/{name}"))
}

pub(crate) fn checked_id(rev: &RevId) -> Result<&str> {
    if is_id(&rev.0) {
        Ok(&rev.0)
    } else {
        Err(GitError::BadId(rev.0.clone()))
    }
}

/// Whether a text is a full object id other than the zero id.
pub(crate) fn is_id(text: &str) -> bool {
    let is_hex = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    matches!(text.len(), 40 | 64)
        && text.as_bytes().iter().all(is_hex)
        && text.bytes().any(|byte| byte != b'0')
}

pub(crate) fn checked_ref(name: &str) -> Result<&str, RemoteError> {
    if name.starts_with("refs/") && is_ref_name(name) {
        Ok(name)
    } else {
        Err(RemoteError::BadName(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_branches_are_taken() {
        for good in [
            "main",
            "feature/x-1",
            "é",
            "sprag/rescue/r1",
            "a@b",
            "$(x)",
            "a;b",
            "x'y",
        ] {
            assert_eq!(
                BranchName::parse(good).unwrap().full(),
                format!("refs/heads/{good}")
            );
        }
        for bad in [
            "",
            "@",
            "HEAD",
            "-x",
            "--upload-pack=x",
            "refs/heads/x",
            "a..b",
            "a b",
            "a\nb",
            "a:b",
            "a~1",
            "a^",
            "a?",
            "a*",
            "a[",
            "a\\b",
            "a@{1}",
            ".a",
            "a/.b",
            "a.lock",
            "a.lock/b",
            "a/",
            "/a",
            "a//b",
            "a.",
            "\u{7f}",
        ] {
            assert!(
                matches!(BranchName::parse(bad), Err(RemoteError::BadName(_))),
                "{bad:?}"
            );
        }
    }

    #[test]
    fn any_run_has_a_rescue_branch() {
        assert_eq!(rescue_branch("0198-ab"), "sprag/rescue/0198-ab");
        let odd = rescue_branch("https://x/../y z~");
        assert!(BranchName::parse(&odd).is_ok(), "{odd}");
        assert!(BranchName::parse(&rescue_branch("")).is_ok());
    }
}
