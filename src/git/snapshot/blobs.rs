//! Compares work-tree content with recorded blobs in bounded memory.

use crate::domain::snapshot::RevId;
use crate::git::bytes::{as_path, nul_fields};
use crate::git::command::Call;
use crate::git::entries::{Digest, OnDisk, PathInspector, inspect_all, split};
use crate::git::error::GitError;

use crate::git::objects::name::ObjectName;
use crate::git::objects::reader::LeftToGit;
use crate::git::remote::error::RemoteError;
use crate::git::remote::names::checked_id;
use crate::git::repo::Repo;
use crate::git::snapshot::cache::Blob;
use crate::git::snapshot::change::Candidate;
use crate::git::snapshot::listing::{GITLINK, Recorded};
use crate::plain_file;
use std::collections::{HashMap, HashSet};
use std::fs;

use std::sync::PoisonError;

impl Repo {
    /// For each candidate, whether the bytes on disk equal those of its base blob. git lists an unchanged
    /// file if it would normalise its content, but this is not a change.
    pub(in crate::git) fn same_as_base(
        &self,
        candidates: &[Candidate],
        seen: &[OnDisk],
    ) -> Result<Vec<bool>, GitError> {
        let pairs: Vec<Option<(&Recorded, Digest, Option<u64>)>> = candidates
            .iter()
            .zip(seen)
            .map(|(one, on_disk)| comparable(one, on_disk))
            .collect();
        let mut known = self.blobs.0.lock().unwrap_or_else(PoisonError::into_inner);
        let listed: HashSet<&str> = pairs
            .iter()
            .flatten()
            .map(|(base, ..)| base.oid.as_str())
            .collect();
        known.retain(|oid, _| listed.contains(oid.as_str()));
        let new = listed.into_iter().filter(|oid| !known.contains_key(*oid));
        let objects = self.objects();
        let (sizes, left) = answered(new, |oid| objects.size(oid));
        let sizes = sizes.into_iter().chain(self.blob_sizes(&left)?);
        known.extend(sizes.map(|(oid, size)| (oid, Blob { size, digest: None })));
        let may_be_same = |(base, _, length): &&(&Recorded, Digest, Option<u64>)| {
            known.get(&base.oid).is_some_and(|blob| {
                blob.digest.is_none() && length.is_none_or(|length| length == blob.size)
            })
        };
        let undigested: HashSet<&str> = pairs
            .iter()
            .flatten()
            .filter(may_be_same)
            .map(|(base, ..)| base.oid.as_str())
            .collect();
        let (digests, left) = answered(undigested.into_iter(), |oid| objects.digest(oid));
        for (oid, digest) in digests.into_iter().chain(self.object_digests(&left)?) {
            if let Some(blob) = known.get_mut(&oid) {
                blob.digest = Some(digest);
            }
        }
        let same = |(base, digest, _): &(&Recorded, Digest, Option<u64>)| {
            known
                .get(&base.oid)
                .is_some_and(|blob| blob.digest == Some(*digest))
        };
        Ok(pairs
            .iter()
            .map(|pair| pair.as_ref().is_some_and(same))
            .collect())
    }

    /// A file's content in the base, or `None` if the base has no such file.
    ///
    /// # Errors
    /// When git cannot be run.
    pub fn base_file(&self, path: &[u8]) -> Result<Option<Vec<u8>>, GitError> {
        let _open = self.unseal_to_read()?;
        let tree = &self.private.state.base_tree;
        if let Some(known) = self.base_files.get(tree, path) {
            return Ok(Some(known));
        }
        let content = self.blob_at(tree, path)?;
        if let Some(content) = &content {
            self.base_files.put(tree, path, content);
        }
        Ok(content)
    }

    /// Whether the base commit still exists in the repository. Without it, nothing can be read from the base.
    ///
    /// # Errors
    /// When git cannot be run.
    pub fn has_base(&self) -> Result<bool, GitError> {
        let _open = self.unseal_to_read()?;
        self.has_object(&self.private.state.base_tree)
    }

    /// Whether the repository has an object, by its id or as git spells it: `ID^{commit}`.
    pub(in crate::git) fn has_object(&self, object: &str) -> Result<bool, GitError> {
        let output = self.call().args(["cat-file", "-e", object]).status()?;
        Ok(output.status == Some(0))
    }

    /// Every path of the base.
    ///
    /// # Errors
    /// When git cannot be run.
    pub fn base_paths(&self) -> Result<Vec<Vec<u8>>, GitError> {
        let _open = self.unseal_to_read()?;
        let args = ["ls-tree", "-r", "-z", "--name-only"];
        let listed = self
            .call()
            .args(args)
            .args([&self.private.state.base_tree])
            .run()?
            .stdout;
        Ok(nul_fields(&listed).map(<[u8]>::to_vec).collect())
    }

    /// The symbolic links of the base, sorted.
    ///
    /// # Errors
    /// When git cannot be run.
    pub fn base_links(&self) -> Result<Vec<Vec<u8>>, GitError> {
        let _open = self.unseal_to_read()?;
        Ok(self.layout()?.links.iter().cloned().collect())
    }

    /// The content of a file in the work tree. `None` if it is larger than `at_most` bytes, not a file, or
    /// unreadable.
    pub fn work_file(&self, path: &[u8], at_most: u64) -> Option<Vec<u8>> {
        plain_file::read(&self.real.work_tree.join(as_path(path)), at_most).ok()
    }

    /// Digests of the entries at these paths. They distinguish different contents, and a missing entry.
    pub fn contents_of(&self, paths: &[&Vec<u8>]) -> Vec<[u8; 32]> {
        let paths: Vec<&[u8]> = paths.iter().map(|path| path.as_slice()).collect();
        let seen = inspect_all(&self.real.work_tree, &paths);
        let digest = |seen: OnDisk| match seen {
            OnDisk::File { digest, .. } | OnDisk::Link { digest } | OnDisk::TooLarge { digest } => {
                digest
            }
            _ => [0; 32],
        };
        seen.into_iter().map(digest).collect()
    }

    /// Removes files and links, but nothing behind a directory that is a link.
    ///
    /// # Errors
    /// When one cannot be removed.
    pub fn remove_files(&mut self, paths: &[Vec<u8>]) -> Result<(), GitError> {
        let mut looker = PathInspector::new(&self.real.work_tree);
        for path in paths {
            if looker.is_real(split(path).0) {
                self.remove_file(path)?;
            }
        }
        Ok(())
    }

    /// Removes the files that Python compiled from sources in the base, because Python would run them in
    /// place of the sources.
    ///
    /// # Errors
    /// When the base cannot be read, or a file cannot be removed.
    pub fn remove_compiled_python(&mut self) -> Result<(), GitError> {
        let layout = {
            let _open = self.unseal_to_read()?;
            self.layout()?
        };
        let mut compiled = Vec::new();
        for directory in layout.directories.iter() {
            let cache = if directory.is_empty() {
                b"__pycache__".to_vec()
            } else {
                [directory, b"/__pycache__".as_slice()].concat()
            };
            let is_tracked = layout.directories.contains(&cache);
            let entries = fs::read_dir(self.real.work_tree.join(as_path(&cache)));
            for entry in entries
                .into_iter()
                .flatten()
                .flatten()
                .filter(|_| !is_tracked)
            {
                let name = entry.file_name();
                if name.as_encoded_bytes().ends_with(b".pyc") {
                    compiled.push([&cache, b"/".as_slice(), name.as_encoded_bytes()].concat());
                }
            }
        }
        self.remove_files(&compiled)
    }

    /// The content of a path in a commit that is in the repository.
    ///
    /// # Errors
    /// When git cannot be run, or the commit's id is invalid.
    pub fn file_of(&self, commit: &RevId, path: &[u8]) -> Result<Option<Vec<u8>>, RemoteError> {
        let _open = self.unseal_to_read()?;
        Ok(self.blob_at(checked_id(commit)?, path)?)
    }

    /// The content of a path in a tree or commit, or `None` if there is no such file.
    pub(in crate::git) fn blob_at(
        &self,
        tree: &str,
        path: &[u8],
    ) -> Result<Option<Vec<u8>>, GitError> {
        match self.objects().blob_at(tree, path) {
            Ok(content) => Ok(content),
            Err(LeftToGit) => blob_at(self.call(), tree, path),
        }
    }

    /// Sizes of blobs. Missing blobs are left out.
    pub(in crate::git) fn blob_sizes(
        &self,
        oids: &[&str],
    ) -> Result<HashMap<String, u64>, GitError> {
        blob_sizes_by(self.call(), oids)
    }

    /// Those of these blobs whose content matches their ids.
    pub(in crate::git) fn sound_blobs(&self, oids: &[&str]) -> Result<HashSet<String>, GitError> {
        Ok(self.object_digests(oids)?.into_keys().collect())
    }

    /// Digests of those objects whose content matches their ids.
    pub(in crate::git) fn object_digests(
        &self,
        oids: &[&str],
    ) -> Result<HashMap<String, Digest>, GitError> {
        self.object_digests_by(self.call(), oids)
    }

    /// Like [`Repo::object_digests`], with a command that may read other object stores.
    pub(in crate::git) fn object_digests_by(
        &self,
        call: Call<'_>,
        oids: &[&str],
    ) -> Result<HashMap<String, Digest>, GitError> {
        if oids.is_empty() {
            return Ok(HashMap::new());
        }
        let mut digests = BatchDigests::default();
        let format = "--batch=%(objectname) %(objecttype) %(objectsize)";
        let call = call.args(["cat-file", format]);
        call.stdin(lines(oids))
            .stream(&mut |chunk| digests.read(chunk))?
            .expect_success("cat-file".to_owned())?;
        Ok(digests.done)
    }
}

/// The answers about the objects that were read in this process, and the ids of those that are left to git.
fn answered<'a, T>(
    oids: impl Iterator<Item = &'a str>,
    ask: impl Fn(&str) -> Result<T, LeftToGit>,
) -> (HashMap<String, T>, Vec<&'a str>) {
    let (mut answers, mut left) = (HashMap::new(), Vec::new());
    for oid in oids {
        match ask(oid) {
            Ok(answer) => drop(answers.insert(oid.to_owned(), answer)),
            Err(LeftToGit) => left.push(oid),
        }
    }
    (answers, left)
}

/// Sizes of blobs, with a command that may read other object stores.
pub(in crate::git) fn blob_sizes_by(
    call: Call<'_>,
    oids: &[&str],
) -> Result<HashMap<String, u64>, GitError> {
    if oids.is_empty() {
        return Ok(HashMap::new());
    }
    let call = call.args(["cat-file", "--batch-check=%(objectname) %(objectsize)"]);
    let listed = call.stdin(lines(oids)).run()?.stdout;
    let text = String::from_utf8_lossy(&listed);
    let size = |line: &str| {
        let (oid, size) = line.split_once(' ')?;
        Some((oid.to_owned(), size.parse().ok()?))
    };
    Ok(text.lines().filter_map(size).collect())
}

fn comparable<'a>(
    candidate: &'a Candidate,
    on_disk: &OnDisk,
) -> Option<(&'a Recorded, Digest, Option<u64>)> {
    let base = candidate
        .base
        .as_ref()
        .filter(|base| base.mode != GITLINK)?;
    match on_disk {
        OnDisk::File { digest, length, .. } => Some((base, *digest, Some(*length))),
        OnDisk::Link { digest } => Some((base, *digest, None)),
        _ => None,
    }
}

fn lines(oids: &[&str]) -> Vec<u8> {
    let mut text = oids.join("\n").into_bytes();
    text.push(b'\n');
    text
}

/// Parses the stream `oid kind size LF content LF …`. A blob whose content does not match its id is left out:
/// git does not check this when it reads a blob, and whoever can write to the object store could make the
/// base agree with any file.
#[derive(Default)]
struct BatchDigests {
    done: HashMap<String, Digest>,
    header: Vec<u8>,
    current: Option<Incoming>,
    after_content: bool,
}

struct Incoming {
    oid: String,
    left: u64,
    digest: blake3::Hasher,
    name: ObjectName,
}

impl BatchDigests {
    fn read(&mut self, mut chunk: &[u8]) {
        while !chunk.is_empty() {
            chunk = if self.after_content {
                self.after_content = false;
                &chunk[1..]
            } else if self.current.is_some() {
                self.read_content(chunk)
            } else {
                self.read_header(chunk)
            };
        }
    }

    fn read_header<'a>(&mut self, chunk: &'a [u8]) -> &'a [u8] {
        let Some(end) = chunk.iter().position(|byte| *byte == b'\n') else {
            self.header.extend_from_slice(chunk);
            return b"";
        };
        self.header.extend_from_slice(&chunk[..end]);
        let header = String::from_utf8_lossy(&std::mem::take(&mut self.header)).into_owned();
        let mut fields = header.split(' ');
        if let (Some(oid), Some(kind), Some(size)) = (fields.next(), fields.next(), fields.next())
            && let Ok(size) = size.parse()
        {
            self.current = Some(Incoming {
                oid: oid.to_owned(),
                left: size,
                digest: blake3::Hasher::new(),
                name: ObjectName::of(kind, oid.len(), size),
            });
            self.finish_if_complete();
        }
        &chunk[end + 1..]
    }

    fn read_content<'a>(&mut self, chunk: &'a [u8]) -> &'a [u8] {
        let Some(blob) = &mut self.current else {
            return b"";
        };
        let left = usize::try_from(blob.left).unwrap_or(usize::MAX);
        let taken = left.min(chunk.len());
        blob.digest.update(&chunk[..taken]);
        blob.name.update(&chunk[..taken]);
        blob.left -= taken as u64;
        self.finish_if_complete();
        &chunk[taken..]
    }

    fn finish_if_complete(&mut self) {
        if let Some(blob) = self.current.take_if(|blob| blob.left == 0) {
            if blob.name.hex() == blob.oid {
                self.done
                    .insert(blob.oid, *blob.digest.finalize().as_bytes());
            }
            self.after_content = true;
        }
    }
}

/// The mode and blob of a path in a tree or commit, or `None` if there is no such file.
pub(in crate::git) fn blob_at(
    call: Call<'_>,
    tree: &str,
    path: &[u8],
) -> Result<Option<Vec<u8>>, GitError> {
    let wanted = [tree.as_bytes(), b":", path].concat();
    let output = call
        .args(["cat-file", "blob"])
        .args([as_path(&wanted)])
        .status()?;
    Ok((output.status == Some(0)).then_some(output.stdout))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn blobs_are_told_apart_however_the_stream_is_cut(
            blobs in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..6),
            cut in 1_usize..50,
        ) {
            let mut stream = Vec::new();
            let mut expected = HashMap::new();
            for (number, blob) in blobs.iter().enumerate() {
                let mut name = ObjectName::of("blob", if number % 2 == 0 { 40 } else { 64 }, blob.len() as u64);
                name.update(blob);
                let oid = name.hex();
                let forged = "0".repeat(oid.len());
                for oid in [&oid, &forged] {
                    stream.extend(format!("{oid} blob {}\n", blob.len()).into_bytes());
                    stream.extend(blob);
                    stream.push(b'\n');
                }
                stream.extend(format!("gone{number} missing\n").into_bytes());
                expected.insert(oid, *blake3::hash(blob).as_bytes());
            }
            let mut digests = BatchDigests::default();
            stream.chunks(cut).for_each(|chunk| digests.read(chunk));
            prop_assert_eq!(digests.done, expected);
        }
    }
}
