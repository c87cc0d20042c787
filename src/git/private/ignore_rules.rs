//! The ignore rules of the private directory that the repository does not have.

use crate::git::error::{GitError, io_error};
use crate::git::files::{write, write_atomically};
use std::fs;
use std::path::Path;

/// The last rule of a private directory that was made beside a repository of jj.
const RULE_FOR_JJ: &[u8] = b"\n/.jj/\n";

/// Whether the repository of a private directory was one of jj too when the run began. The agent can make any
/// repository one, and jj obeys what it then configures.
pub(crate) fn started_with_jj(git_dir: &Path) -> bool {
    let rules = fs::read(git_dir.join("info/exclude")).unwrap_or_default();
    rules.ends_with(RULE_FOR_JJ)
}

/// Ignores one file of the work tree, unless it is tracked.
pub(crate) fn ignore(git_dir: &Path, path: &[u8]) -> Result<(), GitError> {
    let exclude = git_dir.join("info/exclude");
    let mut rules = rule_for(path);
    let others = fs::read(&exclude).unwrap_or_default();
    if others.starts_with(&rules) {
        return Ok(());
    }
    rules.extend(others);
    write(&exclude, &rules)
}

/// The ignore rule for exactly one path. No rule can name a path that contains a line break.
fn rule_for(path: &[u8]) -> Vec<u8> {
    if path.contains(&b'\n') {
        return Vec::new();
    }
    let mut rule = vec![b'/'];
    for byte in path {
        if b"\\*?[ ".contains(byte) {
            rule.push(b'\\');
        }
        rule.push(*byte);
    }
    rule.push(b'\n');
    rule
}

/// Copies a file of rules, if it exists, and with jj excludes jj's own directory, which is not part of the work,
/// whatever happens to jj's ignore file in it.
pub(crate) fn copy_exclude(from: &Path, to: &Path, with_jj: bool) -> Result<(), GitError> {
    let mut rules = if from.is_file() {
        fs::read(from).map_err(io_error("read", from))?
    } else {
        Vec::new()
    };
    if !with_jj {
        return write(to, &rules);
    }
    rules.extend(RULE_FOR_JJ);
    // The last rule is the only record of jj.
    write_atomically(to, &rules)
}
