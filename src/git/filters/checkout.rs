//! Writes files from an index to the work tree, with contents that filters make elsewhere.

use crate::git::bytes::{as_path, display_path, fields_and_path, nul_fields};
use crate::git::command::Call;
use crate::git::commit::stage::{Target, record};
use crate::git::error::{GitError, IGNORED, Result, io_error, refuse_failed_filter};
use crate::git::files::{copy_index, make_dir, metadata, replace_file_by, write};
use crate::git::filters::{Scratch, object_store};
use crate::git::objects::stores::import_object;
use crate::git::remote::names::is_id;
use crate::git::repo::Repo;
use crate::plain_file;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::Path;
use tempfile::TempPath;

/// Has git write files over others.
const CHECKOUT: &str = "checkout-index -f -q -z --stdin";

/// The directory in a scratch directory into which git writes files.
const FILES: &str = "files";

impl Repo {
    /// Writes these files from `index` to the work tree. With `notes`, the times and sizes of those that no
    /// filter converts are noted in the index.
    pub(crate) fn check_out_files(&self, index: &Path, paths: &[&[u8]], notes: bool) -> Result<()> {
        if paths.is_empty() {
            return Ok(());
        }
        let filtered = self.with_filters(index, paths)?;
        let scratch = if filtered.is_empty() {
            None
        } else {
            Some(self.converted_files(index, &filtered)?)
        };
        let call = self.with_index(index).words(CHECKOUT);
        call.args(notes.then_some("-u")).paths(paths).run()?;
        // git knows no filters there, so it has written what is in the repository.
        let Some(scratch) = scratch else {
            return Ok(());
        };
        let mut replaced = Vec::new();
        for path in filtered {
            if self.replace_with(path, &scratch.join(FILES))? {
                replaced.push(path);
            }
        }
        if notes && !replaced.is_empty() {
            self.forget_sizes(index, &replaced)?;
        }
        Ok(())
    }

    /// Removes the times and sizes of these files from the index. What is noted there belongs to the content before
    /// its conversion, and git takes a file of another size for changed without converting it.
    fn forget_sizes(&self, index: &Path, paths: &[&[u8]]) -> Result<()> {
        let listed = self.with_index(index).words("ls-files -s -z").stdout()?;
        let mut records = Vec::new();
        for (path, (mode, oid)) in entries(&listed, paths) {
            records.extend(record(mode, &oid, path));
        }
        let call = self.with_index(index).words("update-index -z --index-info");
        call.stdin(records).run().map(drop)
    }

    /// Has git write these files, as a checkout would, to a directory of their own.
    fn converted_files(&self, index: &Path, paths: &[&[u8]]) -> Result<Scratch> {
        let scratch = Scratch::new(&self.private.root)?;
        let files = scratch.join(FILES);
        make_dir(&files)?;
        let mut prefix = OsString::from("--prefix=");
        prefix.push(files.join(""));
        let call = self
            .call_with_filters(&scratch)
            .env("GIT_INDEX_FILE", index);
        let said = call.words(CHECKOUT).arg(prefix).paths(paths).run()?.stderr;
        refuse_failed_filter("checkout-index", &said)?;
        Ok(scratch)
    }

    /// Gives a file of the work tree the content that a filter has made in `files`, and returns whether it has done
    /// so. Links are not filtered, and stay.
    fn replace_with(&self, path: &[u8], files: &Path) -> Result<bool> {
        let to = self.at(path);
        if !metadata(&to)?.is_some_and(|meta| meta.is_file()) {
            return Ok(false);
        }
        let copied = |workshop: &Path| {
            replace_file_by(&to, workshop, |file: &mut File| {
                io::copy(&mut plain_file::open_below(files, as_path(path))?, file).map(drop)
            })
        };
        let beside = to.parent().unwrap_or(&self.real.work_tree);
        let replaced = copied(&self.real.git_dir).or_else(|_| copied(beside));
        replaced.map(|()| true).map_err(io_error("write", &to))
    }
}

type Paths<'p> = Vec<&'p [u8]>;

/// More bytes than an entry of an index has besides its path.
const ENTRY: u64 = 4096;

impl Repo {
    /// Splits files into those that a filter converts, and the others.
    pub(crate) fn split_by_filter<'p>(
        &self,
        index: &Path,
        files: Paths<'p>,
    ) -> Result<(Paths<'p>, Paths<'p>)> {
        let is_plain = |path: &&&[u8]| {
            self.at(path)
                .symlink_metadata()
                .is_ok_and(|it| it.is_file())
        };
        let plain: Paths<'_> = if self.private.state.filters {
            files.iter().filter(is_plain).copied().collect()
        } else {
            Vec::new()
        };
        let filtered: BTreeSet<&[u8]> = self.with_filters(index, &plain)?.into_iter().collect();
        Ok(files.into_iter().partition(|path| filtered.contains(path)))
    }

    /// Converts files by their filters. The blobs go to the store of `target`, if their content matches their
    /// ids, and the entries to `records`, in the form of `git update-index --index-info`. A filter can put any content
    /// into a blob, and nothing else into the index: the process that starts it has an index and a store of its own.
    /// Returns the files that git does not accept.
    pub(crate) fn filter_into(
        &self,
        target: &Target<'_>,
        files: &[&[u8]],
        records: &mut Vec<u8>,
    ) -> Result<Vec<Vec<u8>>> {
        let mut left_out = Vec::new();
        if files.is_empty() {
            return Ok(left_out);
        }
        let scratch = Scratch::new(&self.private.root)?;
        let index = scratch.join("index");
        copy_index(target.index, &index)?;
        let length = metadata(&index)?.map_or(0, |meta| meta.len());
        let objects = object_store(&scratch, &target.objects)?;
        let call = self.call_with_filters(&scratch).loose();
        let call = call
            .env("GIT_INDEX_FILE", &index)
            .env("GIT_OBJECT_DIRECTORY", &objects);
        let call = call.words("update-index --add --remove --replace -z --stdin");
        let said = call.paths(files).run()?.stderr;
        refuse_failed_filter("update-index", &said)?;
        let index = self.taken_out(&index, length, files)?;
        let listed = self.with_index(&index).words("ls-files -s -z").stdout()?;
        let there = entries(&listed, files);
        for path in files {
            if let Some((mode, oid)) = there.get(path) {
                import_object(&objects, &target.objects, oid, target.durable)?;
                records.extend(record(*mode, oid, path));
            } else if said.contains(IGNORED) {
                left_out.push(path.to_vec());
            } else {
                let what = format!("no entry for {}", display_path(path));
                return Err(GitError::malformed("update-index", what));
            }
        }
        Ok(left_out)
    }

    /// A copy of an index in whose place a filter can put anything. It is as long as the index was before, and as the
    /// entries of these files can be.
    fn taken_out(&self, index: &Path, before: u64, files: &[&[u8]]) -> Result<TempPath> {
        let entries = files.iter().map(|path| path.len() as u64 + ENTRY);
        let limit = before.saturating_add(entries.sum()).saturating_add(ENTRY);
        let content = plain_file::read(index, limit).map_err(io_error("copy", index))?;
        let copy = self.private.scratch_file()?.into_temp_path();
        write(&copy, &content)?;
        Ok(copy)
    }

    /// Converts content as that of a file at `path`, and returns the id of the blob.
    pub(crate) fn filter_content(
        &self,
        target: &Target<'_>,
        path: &[u8],
        content: &[u8],
    ) -> Result<String> {
        let hashing = |call: Call<'_>| {
            let name = [b"--path=", path].concat();
            let call = call.words("hash-object -w --stdin").arg(as_path(&name));
            call.stdin(content).run()
        };
        if self.with_filters(target.index, &[path])?.is_empty() {
            return Ok(hashing(self.staging(target))?.line());
        }
        let scratch = Scratch::new(&self.private.root)?;
        let objects = object_store(&scratch, &target.objects)?;
        let call = self
            .call_with_filters(&scratch)
            .env("GIT_INDEX_FILE", target.index);
        let output = hashing(call.env("GIT_OBJECT_DIRECTORY", &objects))?;
        refuse_failed_filter("hash-object", &output.stderr)?;
        let id = output.line();
        if !is_id(&id) {
            return Err(GitError::malformed("hash-object", id));
        }
        import_object(&objects, &target.objects, &id, target.durable)?;
        Ok(id)
    }
}

/// Mode and id of these files, which are regular ones: links are not filtered.
pub(super) fn entries<'l>(listed: &'l [u8], files: &[&[u8]]) -> BTreeMap<&'l [u8], (u32, String)> {
    let wanted: BTreeSet<&[u8]> = files.iter().copied().collect();
    let entry = |line: &'l [u8]| {
        let (mut fields, path) = fields_and_path(line)?;
        let mode = u32::from_str_radix(fields.next()?, 8).ok()?;
        let oid = fields.next().filter(|oid| is_id(oid))?.to_owned();
        let is_plain = fields.next() == Some("0") && [0o100_644, 0o100_755].contains(&mode);
        (is_plain && wanted.contains(path)).then_some((path, (mode, oid)))
    };
    nul_fields(listed).filter_map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_an_index_only_the_regular_files_that_were_asked_for_are_taken() {
        let oid = "8e27be7d6154a1f68ea9160ef0e18691d20560dc";
        let line = |mode: &str, stage: u32, path: &str| format!("{mode} {oid} {stage}\t{path}\0");
        let listed = [
            line("100644", 0, "a"),
            line("100755", 0, "b"),
            line("100644", 0, "planted"),
            line("120000", 0, "link"),
            line("160000", 0, "sub"),
            line("100644", 1, "stage"),
            "100644 HEAD 0\tc\0".to_owned(),
            "100644\0".to_owned(),
        ]
        .concat()
        .into_bytes();
        let files = ["a", "b", "link", "sub", "stage", "c"].map(str::as_bytes);
        let found = entries(&listed, &files);
        let found: Vec<(&[u8], u32)> = found.iter().map(|(path, it)| (*path, it.0)).collect();
        assert_eq!(found, [(&b"a"[..], 0o100_644), (b"b", 0o100_755)]);
    }
}
