//! Checks from the staged objects themselves whether they match what the snapshot read.

use crate::git::bytes::{as_path, fields_and_path, nul_ended, nul_fields, nul_joined};
use crate::git::command::Call;
use crate::git::commit::request::CommitError;
use crate::git::discover::is_older;
use crate::git::entries::{OnDisk, inspect_all, split};
use crate::git::error::{Result, io_error};
use crate::git::files::replace_file;
use crate::git::repo::Repo;
use crate::git::snapshot::change::{Change, Entry, RawSnapshot};
use crate::git::snapshot::listing::NewObjects;
use crate::git::snapshot::listing::{ChangedPath, GITLINK, RawDiff, SYMLINK, TREE};
use crate::plain_file;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The largest file in bytes that is converted in memory. A larger one is compared only with the result of a
/// fresh checkout.
const CONVERTED_LIMIT: u64 = 256 << 20;
/// The maximum number of files whose attributes may change; attributes are not meant to rewrite a whole
/// project.
const CONVERTED_OTHERWISE: usize = 2000;
/// The first git that can read the attributes of a tree that is not in the work tree.
const RULES_OF_TREES: (u32, u32) = (2, 41);
const ATTRIBUTES: &str = "eol working-tree-encoding ident filter text crlf";
/// The attributes that have no effect unless a setting converts line endings.
const BY_SETTING: [&[u8]; 2] = [b"text", b"crlf"];

impl Repo {
    /// Compares a staged tree with its snapshot: the content of every new object matches its id, and every
    /// blob matches what the snapshot read, either converted with the filters and attributes of the base or
    /// so that a fresh checkout reproduces it. Returns the paths that the tree changes compared with the
    /// base, and the objects that it adds.
    pub(crate) fn verify_staged(
        &self,
        tree: &str,
        snapshot: &RawSnapshot,
        changes: &[&Change],
        plan: Option<&[u8]>,
    ) -> Result<(Vec<ChangedPath>, NewObjects), CommitError> {
        let base = &self.private.state.base_tree;
        let mut files = self.diff_trees_and_subtrees(base, tree)?;
        let objects = NewObjects::of_tree(tree, &files);
        files
            .retain(|diff| diff.after.mode != TREE && (diff.after.mode | diff.before.mode) != TREE);
        let digests = self.sound_objects(&objects.ids().collect::<Vec<_>>())?;
        let staged = files.iter().map(|diff| (diff.path.as_slice(), diff));
        let staged: HashMap<&[u8], &RawDiff> = staged.collect();
        let (mut unlike, mut as_links) = (Vec::new(), Vec::new());
        for change in changes {
            if plan == Some(change.path.as_slice()) {
                continue;
            }
            let entry = snapshot.entries.get(&change.path);
            let diff = staged.get(change.path.as_slice());
            let is_link = diff.is_some_and(|diff| diff.after.mode == SYMLINK);
            if is_link && entry.is_some_and(|entry| entry.mode != SYMLINK) {
                as_links.push(change.path.clone());
            }
            let same = match (entry, diff) {
                (None, _) => false,
                (Some(entry), Some(diff)) => self.is_as_read(entry, diff, tree, &digests)?,
                (Some(entry), None) => self.is_as_snapshotted(&change.path, entry),
            };
            if !same {
                unlike.push(change.path.clone());
            }
        }
        if !unlike.is_empty() {
            return Err(CommitError::ChangedMeanwhile(unlike));
        }
        if !as_links.is_empty() {
            return Err(CommitError::FilesAsLinks(as_links));
        }
        // The commit has no attributes that are ignored, and git may have converted files by them.
        let changed = files.iter().map(|diff| &diff.path);
        let mut paths = changed.chain(&snapshot.ignored);
        if paths.any(|path| split(path).1 == b".gitattributes") {
            if is_older(&self.git("version").line()?, RULES_OF_TREES) {
                return Err(CommitError::OldGit);
            }
            self.refuse_converted_otherwise(tree)?;
        }
        Ok((files.into_iter().map(RawDiff::changed).collect(), objects))
    }

    fn is_as_read(
        &self,
        entry: &Entry,
        diff: &RawDiff,
        tree: &str,
        digests: &HashMap<String, [u8; 32]>,
    ) -> Result<bool> {
        let is_executable = |mode: u32| mode & 0o111 != 0;
        Ok(match diff.after.mode {
            0 => entry.mode == 0,
            GITLINK => *blake3::hash(diff.after.oid.as_bytes()).as_bytes() == entry.digest,
            SYMLINK => digests.get(&diff.after.oid) == Some(&entry.digest),
            mode => {
                let known_mode = !self.private.state.file_mode
                    || is_executable(mode) == is_executable(entry.mode);
                let is_same = digests.get(&diff.after.oid) == Some(&entry.digest)
                    || self.is_converted(entry, diff, tree)?;
                entry.mode != 0 && entry.mode != SYMLINK && known_mode && is_same
            }
        })
    }

    /// Whether the work tree still has what the snapshot read, for a path that the commit leaves as in the
    /// base.
    fn is_as_snapshotted(&self, path: &[u8], entry: &Entry) -> bool {
        match inspect_all(&self.real.work_tree, &[path]).first() {
            Some(OnDisk::File { digest, .. } | OnDisk::Link { digest }) => *digest == entry.digest,
            Some(OnDisk::Directory) => self
                .nested_head(path)
                .is_none_or(|head| *blake3::hash(head.as_bytes()).as_bytes() == entry.digest),
            _ => entry.mode == 0,
        }
    }

    /// Whether a blob is the snapshot's content converted by the rules of the base, or a fresh checkout
    /// reproduces that content.
    fn is_converted(&self, entry: &Entry, diff: &RawDiff, tree: &str) -> Result<bool> {
        let path = self.at(&diff.path);
        let file = plain_file::open(&path).map_err(io_error("read", &path))?;
        if let Ok(content) = plain_file::content_of(file, CONVERTED_LIMIT) {
            if blake3::hash(&content).as_bytes() != &entry.digest {
                return Ok(false);
            }
            let name = [b"--path=", diff.path.as_slice()].concat();
            let call = by_rules_of(self.converting()?, &self.private.state.base_tree);
            let call = call.words("hash-object --stdin").arg(as_path(&name));
            if call.stdin(content).line()? == diff.after.oid {
                return Ok(true);
            }
        }
        Ok(self.checked_out(tree, &diff.path, &diff.after.oid)? == entry.digest)
    }

    /// The changed files that a fresh checkout of them has with another content, because attributes convert
    /// them on the way, with that content.
    ///
    /// # Errors
    /// When git fails or does not accept a file.
    pub fn checked_out_otherwise(
        &self,
        snapshot: &RawSnapshot,
    ) -> Result<BTreeMap<Vec<u8>, Vec<u8>>, CommitError> {
        let paths = self.converted(snapshot)?;
        if paths.is_empty() {
            return Ok(BTreeMap::new());
        }
        let tree = self.write_snapshot_tree(snapshot)?;
        let _open = self.unseal()?;
        let diffs = self.diff_trees(&self.private.state.base_tree, tree.as_str())?;
        let mut otherwise = BTreeMap::new();
        for RawDiff { path, after, .. } in diffs {
            let entry = snapshot
                .entries
                .get(&path)
                .filter(|_| paths.contains(&path));
            let Some(entry) = entry.filter(|_| after.mode >> 12 == 0o10) else {
                continue;
            };
            if self.checked_out(tree.as_str(), &path, &after.oid)? == entry.digest {
                continue;
            }
            let mut content = Vec::new();
            self.filtered(tree.as_str(), &path, &after.oid, &mut |chunk| {
                content.extend_from_slice(chunk);
            })?;
            otherwise.insert(path, content);
        }
        Ok(otherwise)
    }

    /// Replaces the content of files.
    ///
    /// # Errors
    /// When one cannot be written.
    pub fn rewrite(&mut self, files: &BTreeMap<Vec<u8>, Vec<u8>>) -> Result<()> {
        for (path, content) in files {
            let path = self.at(path);
            let written = replace_file(&path, content, &self.private.root);
            written.map_err(io_error("write", &path))?;
        }
        Ok(())
    }

    /// The changed files that the attributes of the base may convert. Text without carriage returns stays as it
    /// is, unless a checkout has them. Other attributes are compared at the commit.
    fn converted(&self, snapshot: &RawSnapshot) -> Result<BTreeSet<Vec<u8>>> {
        if !self.private.state.converts && self.layout()?.attribute_files.is_empty() {
            return Ok(BTreeSet::new());
        }
        let is_file = |path: &[u8]| {
            let mode = snapshot.entries.get(path).map(|entry| entry.mode);
            mode.is_some_and(|mode| mode >> 12 == 0o10)
        };
        let readable = snapshot.readable().into_iter();
        let files: Vec<&[u8]> = readable
            .map(|change| change.path.as_slice())
            .filter(|path| is_file(path))
            .collect();
        let _open = self.unseal()?;
        let names = nul_joined(files);
        let mut found = BTreeSet::new();
        let mut text = BTreeSet::new();
        self.each_attribute(&self.private.state.base_tree, names, |path, name, value| {
            let is_set = is_set(value);
            match name {
                b"eol" if value == b"crlf" => found.insert(path.to_vec()),
                b"eol" | b"text" | b"crlf" if self.private.state.converts || is_set => {
                    text.insert(path.to_vec())
                }
                b"eol" | b"text" | b"crlf" => false,
                _ => is_set && found.insert(path.to_vec()),
            };
        })?;
        let has_returns = |path: &[u8]| {
            let text = self.work_file(path, CONVERTED_LIMIT);
            text.is_none_or(|text| memchr::memchr(b'\r', &text).is_some())
        };
        text.retain(|path| !found.contains(path) && has_returns(path));
        found.append(&mut text);
        Ok(found)
    }

    /// Digest of the file that a fresh checkout of `tree` has at a path.
    fn checked_out(&self, tree: &str, path: &[u8], blob: &str) -> Result<[u8; 32]> {
        let mut hasher = blake3::Hasher::new();
        self.filtered(tree, path, blob, &mut |chunk| {
            hasher.update(chunk);
        })?;
        Ok(*hasher.finalize().as_bytes())
    }

    /// Reads the file that a fresh checkout of `tree` has at a path.
    fn filtered(
        &self,
        tree: &str,
        path: &[u8],
        blob: &str,
        take: &mut dyn FnMut(&[u8]),
    ) -> Result<()> {
        let name = [b"--path=", path].concat();
        let call = by_rules_of(self.converting()?, tree).words("cat-file --filters");
        call.arg(as_path(&name)).arg(blob).stream(take)
    }

    /// Refuses changed attributes with which a fresh checkout would give other files than the checks saw,
    /// including files that nobody touched.
    fn refuse_converted_otherwise(&self, tree: &str) -> Result<(), CommitError> {
        let listed = self.git("ls-tree -r -z").arg(tree).stdout()?;
        let blobs = nul_fields(&listed).filter_map(|line| {
            let (mut fields, path) = fields_and_path(line)?;
            let mode = fields.next()?;
            let oid = fields.nth(1)?;
            mode.starts_with("100").then_some((path, oid))
        });
        let blobs: BTreeMap<&[u8], &str> = blobs.collect();
        let names = nul_joined(blobs.keys());
        let before = self.attributes(&self.private.state.base_tree, &names)?;
        let after = self.attributes(tree, &names)?;
        let differs = |path: &&[u8]| before.get(*path) != after.get(*path);
        let differing: Vec<&[u8]> = blobs.keys().copied().filter(differs).collect();
        if differing.len() > CONVERTED_OTHERWISE {
            let paths = differing.into_iter().map(<[u8]>::to_vec).collect();
            return Err(CommitError::ConvertedOtherwise(paths));
        }
        let seen = inspect_all(&self.real.work_tree, &differing);
        let mut unlike = Vec::new();
        for (path, on_disk) in differing.into_iter().zip(seen) {
            if let OnDisk::File { digest, .. } = on_disk
                && self.checked_out(tree, path, blobs[path])? != digest
            {
                unlike.push(path.to_vec());
            }
        }
        if unlike.is_empty() {
            Ok(())
        } else {
            Err(CommitError::ConvertedOtherwise(unlike))
        }
    }

    /// The attributes that convert content, by path. Paths without any are left out.
    fn attributes(&self, tree: &str, names: &[u8]) -> Result<BTreeMap<Vec<u8>, Vec<Vec<u8>>>> {
        let mut found: BTreeMap<Vec<u8>, Vec<Vec<u8>>> = BTreeMap::new();
        self.each_attribute(tree, names.to_vec(), |path, name, value| {
            let counts = match name {
                _ if !is_set(value) => false,
                b"eol" => value != b"lf",
                name if BY_SETTING.contains(&name) => self.private.state.converts,
                _ => true,
            };
            if counts {
                let set = [name, b"=".as_slice(), value].concat();
                found.entry(path.to_vec()).or_default().push(set);
            }
        })?;
        Ok(found)
    }

    /// Passes on path, name and value of each converting attribute that a tree gives these files.
    fn each_attribute(
        &self,
        tree: &str,
        names: Vec<u8>,
        mut take: impl FnMut(&[u8], &[u8], &[u8]),
    ) -> Result<()> {
        let call = by_rules_of(self.call(), tree).words("check-attr -z --stdin");
        let listed = call.words(ATTRIBUTES).stdin(names).stdout()?;
        // A value may be empty.
        let fields = nul_ended(&listed);
        for triple in fields.chunks_exact(3) {
            if let [path, name, value] = triple {
                take(path, name, value);
            }
        }
        Ok(())
    }
}

/// Makes a command read the attributes from this tree and not from the work tree ([`RULES_OF_TREES`]).
fn by_rules_of<'a>(call: Call<'a>, tree: &str) -> Call<'a> {
    call.env("GIT_ATTR_SOURCE", tree)
}

/// Whether a value of an attribute sets it.
fn is_set(value: &[u8]) -> bool {
    value != b"unspecified" && value != b"unset"
}
