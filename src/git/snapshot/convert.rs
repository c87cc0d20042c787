//! Content that differs from the base only until it is converted as for a commit.

use crate::git::entries::{Digest, OnDisk, split};
use crate::git::error::GitError;
use crate::git::repo::Repo;
use crate::git::snapshot::cache::Verdict;
use crate::git::snapshot::change::Candidate;
use std::collections::HashMap;
use std::sync::PoisonError;

const RULES: &[u8] = b".gitattributes";

/// A file whose bytes are not those of its base, and whether they count as the same.
struct Open<'a> {
    path: &'a [u8],
    base: &'a str,
    digest: Digest,
    same: &'a mut bool,
}

impl Repo {
    /// Marks as unchanged what differs only until it is converted: line endings, filters.
    pub(in crate::git) fn convert(
        &self,
        candidates: &[Candidate],
        seen: &[OnDisk],
        unchanged: &mut [bool],
    ) -> Result<(), GitError> {
        let layout = self.layout()?;
        let edits_rules = candidates.iter().any(|one| split(&one.path).1 == RULES);
        if !(self.private.state.converts || edits_rules || !layout.attribute_files.is_empty()) {
            return Ok(());
        }
        let pairs = candidates.iter().zip(seen).zip(unchanged);
        let mut open: Vec<Open<'_>> = pairs
            .filter_map(|((one, on_disk), same)| self.open(one, on_disk, same))
            .collect();
        if open.is_empty() {
            return Ok(());
        }
        let is_known = |path: &[u8]| layout.attribute_files.contains(path);
        let rules_are_known = !edits_rules && !self.has_stray(RULES, &layout, is_known);
        let mut verdicts = self
            .verdicts
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if rules_are_known && open.iter_mut().all(|one| one.recall(&verdicts)) {
            return Ok(());
        }
        let paths: Vec<&[u8]> = open.iter().map(|one| one.path).collect();
        let modified = self.truly_modified(&paths)?;
        let unmodified = open.iter().filter(|one| !modified.contains(one.path));
        let sound = self.sound_blobs(&unmodified.map(|one| one.base).collect::<Vec<_>>())?;
        verdicts.clear();
        for one in open {
            *one.same = !modified.contains(one.path) && sound.contains(one.base);
            if rules_are_known {
                let verdict = (one.base.to_owned(), one.digest, *one.same);
                verdicts.insert(one.path.to_vec(), verdict);
            }
        }
        Ok(())
    }

    /// Only a file that stayed one, with the same mode, can be the same once it is converted.
    fn open<'a>(
        &self,
        one: &'a Candidate,
        on_disk: &OnDisk,
        same: &'a mut bool,
    ) -> Option<Open<'a>> {
        let base = one.base.as_ref()?;
        let OnDisk::File {
            executable, digest, ..
        } = on_disk
        else {
            return None;
        };
        let is_open = !*same && self.file_mode(*executable, Some(base)) == base.mode;
        is_open.then(|| Open {
            path: &one.path,
            base: &base.oid,
            digest: *digest,
            same,
        })
    }
}

impl Open<'_> {
    /// Whether git has judged this very content before; its verdict is taken over.
    fn recall(&mut self, verdicts: &HashMap<Vec<u8>, Verdict>) -> bool {
        let known = verdicts.get(self.path);
        let known = known.filter(|(base, digest, _)| base == self.base && *digest == self.digest);
        if let Some((_, _, same)) = known {
            *self.same = *same;
        }
        known.is_some()
    }
}
