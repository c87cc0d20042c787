//! git's report of differences, as a list of paths to inspect.

use crate::git::bytes::{as_path, nul_fields};
use crate::git::command::Call;
use crate::git::error::GitError;
use crate::git::objects::reader::LeftToGit;
use crate::git::repo::Repo;
use crate::git::snapshot::listing::{Listed, RawDiff, Status, parse, parse_raw};
use std::collections::BTreeSet;
use std::path::Path;

/// Maximum number of paths in a command line. Beyond it, git is asked about all paths.
const PATHS_PER_COMMAND: usize = 200;

/// The command for the differences between two trees, which are its last arguments.
const DIFF_TREE: [&str; 6] = [
    "diff-tree",
    "-r",
    "--raw",
    "-z",
    "--no-abbrev",
    "--no-renames",
];

impl Repo {
    /// The differences between the work tree and `index`, including untracked files. A file that its filter
    /// would convert to what the index has counts as different if its time or size has changed:
    /// [`Repo::truly_modified`] runs the filters.
    pub(in crate::git) fn status(&self, index: &Path) -> Result<Status, GitError> {
        let args = [
            "status",
            "--porcelain=v2",
            "-z",
            "-uall",
            "--no-renames",
            "--no-ahead-behind",
            // Lists an ignored directory and not what is in it.
            "--ignored=matching",
        ];
        let call = self.with_index(index).args(args);
        let output = call.args(["--ignore-submodules=all"]).run()?;
        let mut status = parse(&output.stdout)?;
        status.warnings = warnings(&output.stderr).collect();
        Ok(status)
    }

    /// Those tracked paths whose content differs after conversion for a commit. `git status` lists a file of
    /// another size without checking this.
    pub(in crate::git) fn truly_modified(
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
    pub(in crate::git) fn converted_status(&self, index: &Path) -> Result<Status, GitError> {
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

    /// The differences between two trees.
    pub(in crate::git) fn diff_trees(
        &self,
        from: &str,
        to: &str,
    ) -> Result<Vec<RawDiff>, GitError> {
        match self.objects().diff(from, to, false) {
            Ok(diffs) => Ok(diffs),
            Err(LeftToGit) => self.diff_trees_by(self.call(), from, to),
        }
    }

    /// Like [`Repo::diff_trees`], including the subtrees that differ.
    pub(in crate::git) fn diff_trees_and_subtrees(
        &self,
        from: &str,
        to: &str,
    ) -> Result<Vec<RawDiff>, GitError> {
        if let Ok(diffs) = self.objects().diff(from, to, true) {
            return Ok(diffs);
        }
        let call = self.call().args(DIFF_TREE).args(["-t", from, to]);
        parse_raw(&call.run()?.stdout)
    }

    /// Like [`Repo::diff_trees`], with a command that may read other object stores.
    pub(in crate::git) fn diff_trees_by(
        &self,
        call: Call<'_>,
        from: &str,
        to: &str,
    ) -> Result<Vec<RawDiff>, GitError> {
        parse_raw(&call.args(DIFF_TREE).args([from, to]).run()?.stdout)
    }

    /// The differences between the base and the repository's own index, to which the agent may have staged.
    pub(in crate::git) fn diff_real_index(&self) -> Result<Vec<RawDiff>, GitError> {
        self.diff_index(self.real_call().git())
    }

    /// The differences between the base and an index that has no part in another file.
    pub(in crate::git) fn diff_private_index(
        &self,
        index: &Path,
    ) -> Result<Vec<RawDiff>, GitError> {
        self.diff_index(self.call().env("GIT_INDEX_FILE", index))
    }

    /// Compares with the index alone, so no submodule is entered.
    fn diff_index(&self, call: Call<'_>) -> Result<Vec<RawDiff>, GitError> {
        let args = [
            "diff-index",
            "--cached",
            "--raw",
            "-z",
            "--no-abbrev",
            "--no-renames",
            "--ignore-submodules=none",
        ];
        let call = call.args(args).args([&self.private.state.base_tree]);
        parse_raw(&call.run()?.stdout)
    }
}

/// The paths whose content differs after conversion, among these or, if they are many, among all; and what git
/// says about them.
fn modified_by(call: Call<'_>, paths: &[&[u8]]) -> Result<(BTreeSet<Vec<u8>>, String), GitError> {
    let args = [
        "diff",
        "--name-only",
        "-z",
        "--no-renames",
        "--ignore-submodules=all",
        "--",
    ];
    let mut call = call.args(args);
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
