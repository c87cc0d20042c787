//! Detects content that differs from the base only before it is converted for a commit.

use crate::git::entries::{OnDisk, split};
use crate::git::error::GitError;
use crate::git::repo::Repo;
use crate::git::snapshot::change::Candidate;

const RULES: &[u8] = b".gitattributes";

/// A file whose bytes differ from those of its base, and whether they count as the same.
struct Open<'a> {
    path: &'a [u8],
    base: &'a str,
    same: &'a mut bool,
}

impl Repo {
    /// Marks files as unchanged that differ only before conversion, by line endings or filters.
    pub(crate) fn convert(
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
        let paths: Vec<&[u8]> = open.iter().map(|one| one.path).collect();
        let modified = self.truly_modified(&self.private.index(), &paths, warnings)?;
        let objects = self.objects();
        for one in open.iter_mut().filter(|one| !modified.contains(one.path)) {
            *one.same = objects.digest(one.base, u64::MAX)?.is_some();
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
        let OnDisk::File { executable, .. } = on_disk else {
            return None;
        };
        let is_open = !*same && self.file_mode(*executable, Some(base)) == base.mode;
        is_open.then(|| Open {
            path: &one.path,
            base: &base.oid,
            same,
        })
    }
}
