//! Writes files from an index to the work tree, with contents that filters make elsewhere.

use crate::git::bytes::{as_path, nul_joined};
use crate::git::commit::stage::record;
use crate::git::copy_tree::metadata;
use crate::git::error::{GitError, io_error};
use crate::git::files::replace_file_by;
use crate::git::filters::Scratch;
use crate::git::filters::checkin::{Entry, entries};
use crate::git::filters::said::refuse_failed_filter;
use crate::git::repo::Repo;
use crate::plain_file;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// The directory in a scratch directory into which git writes files.
const FILES: &str = "files";

impl Repo {
    /// Writes these files from `index` to the work tree. With `notes`, the times and sizes of those that no
    /// filter converts are noted in the index.
    pub(crate) fn check_out_files(
        &self,
        index: &Path,
        paths: &[&[u8]],
        notes: bool,
    ) -> Result<(), GitError> {
        if paths.is_empty() {
            return Ok(());
        }
        let filtered = self.with_filters(index, paths)?;
        let converted = if filtered.is_empty() {
            None
        } else {
            Some(self.converted_files(index, &filtered)?)
        };
        let notes = notes.then_some("-u");
        let call = self
            .with_index(index)
            .args(["checkout-index", "-f", "-q"])
            .args(notes)
            .args(["-z", "--stdin"]);
        call.stdin(nul_joined(paths.iter().copied())).run()?;
        // git knows no filters there, so it has written what is in the repository.
        let Some(scratch) = converted else {
            return Ok(());
        };
        let mut replaced = Vec::new();
        for path in filtered {
            if self.replace_with(path, &scratch.join(FILES))? {
                replaced.push(path);
            }
        }
        match notes {
            Some(_) if !replaced.is_empty() => self.forget_sizes(index, &replaced),
            _ => Ok(()),
        }
    }

    /// Removes the times and sizes of these files from the index. What is noted there belongs to the content before
    /// its conversion, and git takes a file of another size for changed without converting it.
    fn forget_sizes(&self, index: &Path, paths: &[&[u8]]) -> Result<(), GitError> {
        let listed = self
            .with_index(index)
            .args(["ls-files", "-s", "-z"])
            .run()?
            .stdout;
        let records = entries(&listed, paths)
            .into_iter()
            .map(|(path, Entry { mode, oid })| record(mode, oid, path))
            .collect::<Vec<_>>()
            .concat();
        let call = self
            .with_index(index)
            .args(["update-index", "-z", "--index-info"]);
        call.stdin(records).run().map(drop)
    }

    /// Has git write these files, as a checkout would, to a directory of their own.
    fn converted_files(&self, index: &Path, paths: &[&[u8]]) -> Result<Scratch, GitError> {
        let scratch = Scratch::new(&self.private.root)?;
        let files = scratch.join(FILES);
        fs::create_dir(&files).map_err(io_error("create", &files))?;
        let mut prefix = std::ffi::OsString::from("--prefix=");
        prefix.push(files.join(""));
        let call = self
            .call_with_filters(&scratch)
            .env("GIT_INDEX_FILE", index)
            .args(["checkout-index", "-f", "-q"])
            .args([prefix])
            .args(["-z", "--stdin"]);
        let said = call.stdin(nul_joined(paths.iter().copied())).run()?.stderr;
        refuse_failed_filter("checkout-index", &said)?;
        Ok(scratch)
    }

    /// Gives a file of the work tree the content that a filter has made in `files`, and returns whether it has done
    /// so. Links are not filtered, and stay.
    fn replace_with(&self, path: &[u8], files: &Path) -> Result<bool, GitError> {
        let to = self.real.work_tree.join(as_path(path));
        if !metadata(&to)?.is_some_and(|meta| meta.is_file()) {
            return Ok(false);
        }
        let copied = |workshop: &Path| {
            replace_file_by(&to, workshop, |file: &mut File| {
                io::copy(&mut plain_file::open_below(files, as_path(path))?, file).map(drop)
            })
        };
        let beside: PathBuf = to.parent().unwrap_or(&self.real.work_tree).to_path_buf();
        copied(&self.real.git_dir)
            .or_else(|_| copied(&beside))
            .map_err(io_error("write", &to))
            .map(|()| true)
    }
}
