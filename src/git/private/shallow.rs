//! The boundary of a shallow clone: the commits whose parents git takes for absent.

use crate::git::error::GitError;
use crate::git::files::{metadata, remove, write_atomically};
use crate::git::objects::reader::{Found, parents_in};
use crate::git::repo::Repo;
use crate::plain_file;
use std::collections::BTreeSet;
use std::path::Path;

/// The largest boundary that is read, in bytes, and the largest commit in it.
const LIMIT: u64 = 16 << 20;

impl Repo {
    /// Lets the boundary differ from the known one only as a fetch changes it, and takes it over: no commit may be new in
    /// it whose parents are there, since that hides history from git, and none may be gone whose parents are missing.
    /// Returns whether something was undone, for warnings.
    pub(crate) fn restore_shallow(&self) -> Result<Option<String>, GitError> {
        let own = self.real.common_dir.join("shallow");
        let copy = self.private.git_dir().join("shallow");
        let (then, now) = (commits(&copy), commits(&own));
        let is_plain = metadata(&own)?.is_none_or(|meta| meta.is_file());
        if then == now && is_plain {
            return Ok(None);
        }
        let mut right: BTreeSet<&String> = then.intersection(&now).collect();
        for commit in then.symmetric_difference(&now) {
            let (is_cut, is_root) = self.ends_history(commit)?;
            if is_cut || (is_root && now.contains(commit)) {
                right.insert(commit);
            }
        }
        let text: String = right.iter().map(|commit| format!("{commit}\n")).collect();
        let put = |path: &Path| match text.as_str() {
            "" => remove(path),
            text => write_atomically(path, text.as_bytes()),
        };
        if !right.iter().copied().eq(&then) {
            let _open = self.unseal()?;
            put(&copy)?;
        }
        if is_plain && right.iter().copied().eq(&now) {
            return Ok(None);
        }
        remove(&own)?;
        put(&own)?;
        Ok(Some("changes to .git/shallow were undone".to_owned()))
    }

    /// Whether one of the parents of a commit is missing, and whether it has none. Neither if it is no commit.
    fn ends_history(&self, commit: &str) -> Result<(bool, bool), GitError> {
        let reader = self.objects();
        let Ok(content) = reader.commit(commit) else {
            return Ok((false, false));
        };
        let parents = parents_in(&content);
        for parent in &parents {
            if reader.read(parent, LIMIT, &mut |_| {})? == Found::Missing {
                return Ok((true, false));
            }
        }
        Ok((false, parents.is_empty()))
    }
}

/// The commits in a boundary. One that cannot be read has none.
fn commits(file: &Path) -> BTreeSet<String> {
    let text = plain_file::read(file, LIMIT).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    text.lines().map(str::to_owned).collect()
}
