//! Names of branches and paths from events. They reach git commands and texts, so only names that git itself
//! accepts are allowed.

use crate::pattern::Pattern;
use crate::text::is_invisible;

/// The maximum length of a branch name, in bytes: git's files cannot have a longer component.
const MAX_BRANCH_BYTES: usize = 244;

const FORBIDDEN: &[char] = &[' ', '~', '^', ':', '?', '*', '[', '\\'];

/// Checks a branch name (without `refs/heads/`) by the rules of `git check-ref-format --branch`, and checks
/// that it is not one of GitHub's own pull request refs.
///
/// # Errors
/// The problem, as a fragment that follows "the branch name".
pub fn check_branch(name: &str) -> Result<(), &'static str> {
    let parts = || name.split('/');
    let control = |c: char| c.is_control() || is_invisible(c);
    let rules: [(bool, &'static str); 11] = [
        (name.is_empty(), "is empty"),
        (name.len() > MAX_BRANCH_BYTES, "is too long"),
        (name.starts_with('-'), "begins with `-`"),
        (name.contains(control), "has an invisible character"),
        (name.contains(FORBIDDEN), "has a character that git forbids"),
        (name.contains(".."), "has `..`"),
        (
            name.contains("@{") || name == "@" || name == "HEAD",
            "has a special meaning in git",
        ),
        (parts().any(str::is_empty), "has an empty part"),
        (
            parts().any(|part| part.starts_with('.')),
            "has a part that begins with `.`",
        ),
        (
            name.ends_with('.') || parts().any(|part| part.ends_with(".lock")),
            "has an ending that git forbids",
        ),
        (
            is_pull_ref(name),
            "is reserved for refs that GitHub creates for pull requests",
        ),
    ];
    let broken = rules.into_iter().find(|(broken, _)| *broken);
    broken.map_or(Ok(()), |(_, what)| Err(what))
}

/// Whether a name is `refs/…`, or like `12/merge`, the name of a checked-out pull request.
fn is_pull_ref(name: &str) -> bool {
    static PULL: Pattern = Pattern::new("^(?:refs/|(?:pull/)?[0-9]+/(?:merge|head)$)");
    PULL.is_match(name)
}

/// Checks the path of a plan or queue that somebody named: it must be relative, inside the repository, and
/// not mistakable for an option.
///
/// # Errors
/// The problem, as a fragment that follows "the path".
pub fn check_path(path: &str) -> Result<(), &'static str> {
    let control = |c: char| c.is_control() || is_invisible(c);
    let drive = path.as_bytes().get(1) == Some(&b':');
    let git = |part: &str| part.eq_ignore_ascii_case(".git");
    let rules: [(bool, &'static str); 8] = [
        (path.is_empty(), "is empty"),
        (path.len() > 1024, "is too long"),
        (path.contains(control), "has an invisible character"),
        (
            path.starts_with(['/', '~']) || drive,
            "is not relative to the repository",
        ),
        (path.starts_with('-'), "begins with `-`"),
        (
            path.contains('\\'),
            "has a backslash: write `/` between directories",
        ),
        (
            path.split('/').any(|part| part == ".."),
            "leads out of its directory with `..`",
        ),
        (path.split('/').any(git), "leads into git's own directory"),
    ];
    let broken = rules.into_iter().find(|(broken, _)| *broken);
    broken.map_or(Ok(()), |(_, what)| Err(what))
}

/// Whether a text is a commit id: 40 or 64 digits and letters a to f.
pub fn is_commit_id(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::{check_branch, check_path, is_commit_id};

    #[test]
    fn branch_names_follow_git() {
        for good in [
            "main",
            "feature/x",
            "sprag/plan-1",
            "a.b",
            "$(x)",
            "ä",
            "v1@2",
            "1/merged",
        ] {
            assert_eq!(check_branch(good), Ok(()), "{good}");
        }
        for bad in [
            "",
            "-rf",
            "--upload-pack=x",
            "a..b",
            "a b",
            "a~1",
            "a^",
            "a:b",
            "a?",
            "a*",
            "a[",
            "a\\b",
            "/a",
            "a/",
            "a//b",
            ".a",
            "a/.b",
            "a.",
            "a.lock",
            "a.lock/b",
            "@",
            "HEAD",
            "a@{1}",
            "a\nb",
            "a\u{7}",
            "a\u{202e}b",
            "a\u{200b}",
            "refs/heads/x",
            "refs/pull/1/merge",
            "12/merge",
            "pull/3/head",
        ] {
            assert!(check_branch(bad).is_err(), "{bad:?}");
        }
        assert!(check_branch(&"a".repeat(300)).is_err());
    }

    #[test]
    fn paths_stay_inside() {
        for good in ["plan.yaml", "plans/a.md", "./plans", "a b.yaml", "..a/b"] {
            assert_eq!(check_path(good), Ok(()), "{good}");
        }
        for bad in [
            "",
            "/etc/passwd",
            "../x",
            "a/../../x",
            "a/..",
            "~/x",
            "-x",
            "C:/x",
            "a\\b",
            ".git/config",
            "a/.GIT/x",
            "a\nb",
        ] {
            assert!(check_path(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn commit_ids_are_whole() {
        assert!(is_commit_id(&"a1".repeat(20)) && is_commit_id(&"0".repeat(64)));
        assert!(!is_commit_id("abc") && !is_commit_id(&"G".repeat(40)) && !is_commit_id(""));
    }
}
