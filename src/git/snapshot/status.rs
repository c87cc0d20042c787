//! What git says differs, as a list of paths to be looked at.

use crate::git::bytes::{as_path, nul_fields};
use crate::git::command::Call;
use crate::git::error::GitError;
use crate::git::repo::Repo;
use crate::git::snapshot::listing::{RawDiff, Status, parse, parse_raw};
use std::collections::BTreeSet;
use std::path::Path;

/// Beyond this many paths all are asked for, to stay within the limit of a command line.
const PATHS_PER_COMMAND: usize = 200;

impl Repo {
    /// What differs between the work tree and `index`, untracked files included.
    pub(in crate::git) fn status(&self, index: &Path) -> Result<Status, GitError> {
        let args = [
            "status",
            "--porcelain=v2",
            "-z",
            "-uall",
            "--no-renames",
            "--no-ahead-behind",
        ];
        let call = self.call().env("GIT_INDEX_FILE", index).args(args);
        let output = call.args(["--ignore-submodules=all"]).run()?;
        let mut status = parse(&output.stdout)?;
        status.warnings = output.stderr.lines().map(str::to_owned).collect();
        Ok(status)
    }

    /// Of tracked paths, those whose content differs once it is converted as for a commit. Status
    /// lists a file of another size without looking further.
    pub(in crate::git) fn truly_modified(
        &self,
        paths: &[&[u8]],
    ) -> Result<BTreeSet<Vec<u8>>, GitError> {
        let args = [
            "diff",
            "--name-only",
            "-z",
            "--no-renames",
            "--ignore-submodules=all",
            "--",
        ];
        let mut call = self.call().args(args);
        if paths.len() <= PATHS_PER_COMMAND {
            call = call.args(paths.iter().map(|path| as_path(path)));
        }
        Ok(nul_fields(&call.run()?.stdout)
            .map(<[u8]>::to_vec)
            .collect())
    }

    /// Differences of two trees.
    pub(in crate::git) fn diff_trees(
        &self,
        from: &str,
        to: &str,
    ) -> Result<Vec<RawDiff>, GitError> {
        self.diff_trees_by(self.call(), from, to)
    }

    /// As [`Repo::diff_trees`], with the trees below that differ.
    pub(in crate::git) fn diff_trees_and_subtrees(
        &self,
        from: &str,
        to: &str,
    ) -> Result<Vec<RawDiff>, GitError> {
        let args = [
            "diff-tree",
            "-r",
            "-t",
            "--raw",
            "-z",
            "--no-abbrev",
            "--no-renames",
        ];
        parse_raw(&self.call().args(args).args([from, to]).run()?.stdout)
    }

    /// As [`Repo::diff_trees`], by a command that sees objects of its own.
    pub(in crate::git) fn diff_trees_by(
        &self,
        call: Call<'_>,
        from: &str,
        to: &str,
    ) -> Result<Vec<RawDiff>, GitError> {
        let args = [
            "diff-tree",
            "-r",
            "--raw",
            "-z",
            "--no-abbrev",
            "--no-renames",
            from,
            to,
        ];
        parse_raw(&call.args(args).run()?.stdout)
    }

    /// Differences of the base and the repository's own index, which the agent may have staged to.
    pub(in crate::git) fn diff_real_index(&self) -> Result<Vec<RawDiff>, GitError> {
        self.diff_index(self.real_call().git())
    }

    /// Differences of the base and an index that has no part in another file.
    pub(in crate::git) fn diff_private_index(
        &self,
        index: &Path,
    ) -> Result<Vec<RawDiff>, GitError> {
        self.diff_index(self.call().env("GIT_INDEX_FILE", index))
    }

    /// Looks at the index alone, so no submodule is entered.
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
