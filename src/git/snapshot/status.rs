//! git's report of differences, as a list of paths to inspect.

use crate::git::bytes::{as_path, nul_fields};
use crate::git::command::Call;
use crate::git::error::GitError;
use crate::git::repo::Repo;
use crate::git::snapshot::listing::{Listed, RawDiff, Status, parse, parse_raw};
use std::collections::BTreeSet;
use std::path::Path;

/// Maximum number of paths in a command line. Beyond it, git is asked about all paths.
const PATHS_PER_COMMAND: usize = 200;

impl Repo {
    /// The differences between the work tree and `index`, including untracked files. A file that its filter
    /// would convert to what the index has counts as different if its time or size has changed:
    /// [`Repo::truly_modified`] runs the filters.
    pub(crate) fn status(&self, index: &Path) -> Result<Status, GitError> {
        // Lists an ignored directory and not what is in it.
        let args =
            "status --porcelain=v2 -z -uall --no-renames --no-ahead-behind --ignored=matching";
        let call = self.with_index(index).words(args);
        let output = call.args(["--ignore-submodules=all"]).run()?;
        let mut status = parse(&output.stdout)?;
        status.warnings = warnings(&output.stderr).collect();
        Ok(status)
    }

    /// Those tracked paths whose content differs after conversion for a commit. `git status` lists a file of
    /// another size without checking this.
    pub(crate) fn truly_modified(
        &self,
        index: &Path,
        paths: &[&[u8]],
        warnings: &mut Vec<String>,
    ) -> Result<BTreeSet<Vec<u8>>, GitError> {
        let filtered: BTreeSet<&[u8]> = self.with_filters(index, paths)?.into_iter().collect();
        let (filtered, plain): (Vec<&[u8]>, Vec<&[u8]>) = paths
            .iter()
            .copied()
            .partition(|path| filtered.contains(path));
        let mut modified = BTreeSet::new();
        // A filter has no say about any file but its own.
        for (paths, has_filters) in [(plain, false), (filtered, true)] {
            if paths.is_empty() {
                continue;
            }
            let call = if has_filters {
                self.converting()?
            } else {
                self.call()
            };
            let (found, said) = modified_by(call.env("GIT_INDEX_FILE", index), &paths)?;
            warnings.extend(self::warnings(&said));
            modified.extend(
                paths
                    .iter()
                    .filter(|path| found.contains(**path))
                    .map(|path| path.to_vec()),
            );
        }
        Ok(modified)
    }

    /// Like [`Repo::status`], without files that differ only before their filter has converted them.
    pub(crate) fn converted_status(&self, index: &Path) -> Result<Status, GitError> {
        let mut status = self.status(index)?;
        let is_tracked = |one: &&Listed| one.indexed.is_some() && !one.staged_only;
        let tracked = status.listed.iter().filter(is_tracked);
        let tracked: Vec<&[u8]> = tracked.map(|one| one.path.as_slice()).collect();
        let filtered = self.with_filters(index, &tracked)?;
        let modified = self.truly_modified(index, &filtered, &mut Vec::new())?;
        let unmodified = filtered
            .into_iter()
            .filter(|path| !modified.contains(*path));
        let unmodified: BTreeSet<Vec<u8>> = unmodified.map(<[u8]>::to_vec).collect();
        status.listed.retain(|one| !unmodified.contains(&one.path));
        Ok(status)
    }

    /// The differences between two trees or commits.
    pub(crate) fn diff_trees(&self, from: &str, to: &str) -> Result<Vec<RawDiff>, GitError> {
        if from == to {
            return Ok(Vec::new());
        }
        self.objects().diff(Some(from), to, false)
    }

    /// Like [`Repo::diff_trees`], including the subtrees that differ.
    pub(crate) fn diff_trees_and_subtrees(
        &self,
        from: &str,
        to: &str,
    ) -> Result<Vec<RawDiff>, GitError> {
        self.objects().diff(Some(from), to, true)
    }

    /// The differences between the base and the index of a command. No submodule is entered.
    pub(crate) fn diff_index(&self, call: Call<'_>) -> Result<Vec<RawDiff>, GitError> {
        let args = "diff-index --cached --raw -z --no-abbrev --no-renames --ignore-submodules=none";
        let call = call.words(args).args([&self.private.state.base_tree]);
        parse_raw(&call.run()?.stdout)
    }
}

/// The paths whose content differs after conversion, among these or, if they are many, among all; and what git
/// says about them.
fn modified_by(call: Call<'_>, paths: &[&[u8]]) -> Result<(BTreeSet<Vec<u8>>, String), GitError> {
    let args = "diff --name-only -z --no-renames --ignore-submodules=all --";
    let mut call = call.words(args);
    if paths.len() <= PATHS_PER_COMMAND {
        call = call.args(paths.iter().map(|path| as_path(path)));
    }
    let output = call.run()?;
    let found = nul_fields(&output.stdout).map(<[u8]>::to_vec);
    Ok((found.collect(), output.stderr))
}

/// What git warns of.
fn warnings(stderr: &str) -> impl Iterator<Item = String> {
    let lines = stderr.lines();
    lines.map(|line| line.strip_prefix("warning: ").unwrap_or(line).to_owned())
}
