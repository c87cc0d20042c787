//! Detects content that differs from the base only before it is converted for a commit.

use crate::git::entries::{Digest, OnDisk, split};
use crate::git::error::GitError;
use crate::git::repo::Repo;
use crate::git::snapshot::cache::Verdict;
use crate::git::snapshot::change::Candidate;
use std::collections::HashMap;
use std::sync::PoisonError;

const RULES: &[u8] = b".gitattributes";

/// A file whose bytes differ from those of its base, and whether they count as the same.
struct Open<'a> {
    path: &'a [u8],
    base: &'a str,
    digest: Digest,
    same: &'a mut bool,
}

impl Repo {
    /// Marks files as unchanged that differ only before conversion, by line endings or filters.
    pub(in crate::git) fn convert(
        &self,
        candidates: &[Candidate],
        seen: &[OnDisk],
        unchanged: &mut [bool],
        warnings: &mut Vec<String>,
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
        let modified = self.truly_modified(&self.private.index(), &paths, warnings)?;
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

    /// The candidates that can be the same after conversion: only regular files that had the same mode
    /// before.
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
    /// Applies git's earlier verdict on this exact content, if there is one.
    fn recall(&mut self, verdicts: &HashMap<Vec<u8>, Verdict>) -> bool {
        let known = verdicts
            .get(self.path)
            .filter(|(base, digest, _)| base == self.base && *digest == self.digest);
        if let Some((_, _, same)) = known {
            *self.same = *same;
        }
        known.is_some()
    }
}
