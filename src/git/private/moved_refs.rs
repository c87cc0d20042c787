//! Puts back the refs that an agent or a check may not move.

use crate::domain::text::begins_with_word;
use crate::git::bytes::path_within;
use crate::git::error::Result;
use crate::git::files::{is_there, remove};
use crate::git::private::calls::HeadState;
use crate::git::private::guard::{TurnMark, Violation};
use crate::git::private::refs::{Refs, SYMBOLIC};
use crate::git::repo::Repo;
use crate::plain_file;
use std::collections::BTreeSet;
use std::io::Read;

/// Refs that a fetch, stash or bisect may move. The last ones keep jj's commits from being pruned, and
/// every jj command creates some.
const FREE_REFS: &str =
    "refs/remotes/ refs/stash refs/bisect/ refs/rewritten/ refs/prefetch/ refs/jj/";
/// Maximum number of bytes that are read of `FETCH_HEAD`.
const FETCH_HEAD_LIMIT: u64 = 16 * 1024 * 1024;

/// How many changed refs are named, and restored one by one.
const NAMED_REFS: usize = 10;

impl Repo {
    /// Puts back what `who`, such as a check, has done to refs since a mark, by the rule for turns. Returns that, for
    /// warnings.
    ///
    /// # Errors
    /// When the refs cannot be read or restored.
    pub fn undo_moved_refs(&mut self, mark: &TurnMark, who: &str) -> Result<Vec<String>> {
        let _open = self.unseal_to_read()?;
        let mut warnings = Vec::new();
        let (refs, _) = self.readable_refs(&mut warnings)?;
        warnings.extend(self.undo_refs(mark, &refs, who)?);
        Ok(warnings)
    }

    /// The same with refs that were read.
    pub(crate) fn undo_refs(&self, mark: &TurnMark, refs: &Refs, who: &str) -> Result<Vec<String>> {
        let (mut warnings, mut moved) = (Vec::new(), Vec::new());
        let who_and_fetch = (who, self.has_fetched_since(mark));
        self.check_refs(mark, refs, who_and_fetch, &mut moved, &mut warnings)?;
        warnings.extend(
            moved
                .iter()
                .map(|it| format!("{it} by {who}; that was undone")),
        );
        Ok(warnings)
    }

    /// Whether anybody has fetched since a mark.
    pub(super) fn has_fetched_since(&self, mark: &TurnMark) -> bool {
        self.fetch_mark() != mark.fetched
    }

    pub(super) fn fetch_mark(&self) -> Option<String> {
        let file = plain_file::open(&self.real.git_dir.join("FETCH_HEAD")).ok()?;
        let mut hasher = blake3::Hasher::new();
        hasher.update_reader(file.take(FETCH_HEAD_LIMIT)).ok()?;
        Some(hasher.finalize().to_hex().to_string())
    }

    /// Restores the refs that an agent or a check, `who`, may not move. Returns whether it did.
    pub(super) fn check_refs(
        &self,
        mark: &TurnMark,
        now: &Refs,
        (who, has_fetched): (&str, bool),
        violations: &mut Vec<Violation>,
        warnings: &mut Vec<String>,
    ) -> Result<bool> {
        let names: BTreeSet<&String> = mark.refs.keys().chain(now.keys()).collect();
        let mut changed = Vec::new();
        let mut tracked = Vec::new();
        for name in names {
            let from = mark.refs.get(name);
            let to = now.get(name);
            // The checked-out branch may move forward, which is checked elsewhere, but not become a symbolic ref.
            let is_own =
                mark.branch.as_ref() == Some(name) && to.is_none_or(|to| !to.starts_with(SYMBOLIC));
            if from == to || is_own {
                continue;
            }
            if name.starts_with("refs/remotes/") && from.is_some() && !self.started_with_jj() {
                tracked.push((name, from));
                continue;
            }
            if begins_with_word(FREE_REFS, name) {
                if name == "refs/stash" {
                    warnings.push(format!("{who} changed the stash (refs/stash)"));
                }
                continue;
            }
            if has_fetched && from.is_none() && name.starts_with("refs/tags/") {
                warnings.push(format!("{name} is new, from a fetch"));
                continue;
            }
            changed.push((name, from, to));
        }
        // A fetch that prunes may leave `origin/a/b` in place of `origin/a`.
        let is_in_the_way = |new: &&String| {
            let conflicts = |name: &str| is_below(new, name) || is_below(name, new);
            !mark.refs.contains_key(*new) && tracked.iter().any(|(name, _)| conflicts(name))
        };
        let in_the_way = now.keys().filter(is_in_the_way).map(|name| (name, None));
        let back: Vec<_> = in_the_way.chain(tracked.iter().copied()).collect();
        // Checks compare the work with them: `git diff origin/main`.
        self.put_refs(&back)?;
        if let Some((name, _)) = tracked.first() {
            let others = match tracked.len() - 1 {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            warnings.push(format!(
                "{name}{others}, which {who} moved, is where it was; the next fetch moves it again"
            ));
        }
        let before = changed.iter().map(|(name, from, _)| (*name, *from));
        self.put_refs(&before.collect::<Vec<_>>())?;
        let is_restored = !back.is_empty() || !changed.is_empty();
        let further = changed.len().saturating_sub(NAMED_REFS);
        let named = changed.into_iter().take(NAMED_REFS);
        violations.extend(named.map(|(name, from, to)| Violation::RefChanged {
            name: name.clone(),
            from: from.cloned(),
            to: to.cloned(),
        }));
        if further > 0 {
            violations.push(Violation::FurtherRefs { count: further });
        }
        Ok(is_restored)
    }

    /// Restores many refs.
    fn put_refs(&self, refs: &[(&String, Option<&String>)]) -> Result<()> {
        let (symbolic, plain): (Vec<_>, Vec<_>) = refs
            .iter()
            .partition(|(_, value)| value.is_some_and(|value| value.starts_with(SYMBOLIC)));
        if refs.len() > NAMED_REFS {
            let mut lines = String::new();
            for (name, value) in plain {
                self.refuse_links(name)?;
                lines += &match value {
                    None => format!("delete {name}\0\0"),
                    Some(oid) => format!("update {name}\0{oid}\0\0"),
                };
            }
            let call = self
                .real_git("update-ref --no-deref -z --stdin")
                .stdin(lines);
            // If one of them cannot be restored, none is, and each is tried.
            if call.succeeds()? {
                return symbolic
                    .into_iter()
                    .try_for_each(|(name, value)| self.put_ref(name, value));
            }
        }
        refs.iter()
            .try_for_each(|(name, value)| self.put_ref(name, *value))
    }

    /// The refs. If git cannot read the packed refs, their file is removed, and the refs are then restored
    /// individually.
    pub(crate) fn readable_refs(&self, warnings: &mut Vec<String>) -> Result<(Refs, HeadState)> {
        let packed = self.real.common_dir.join("packed-refs");
        self.refs_and_head().or_else(|error| {
            if !is_there(&packed) {
                return Err(error);
            }
            remove(&packed)?;
            let shown = path_within(&packed, &self.real.work_tree);
            warnings.push(format!("{shown} was unreadable and removed: {error}"));
            self.refs_and_head()
        })
    }

    pub(super) fn put_ref(&self, name: &str, value: Option<&String>) -> Result<()> {
        let call = self.move_ref(name)?;
        let call = match value.map(|value| value.strip_prefix(SYMBOLIC).ok_or(value)) {
            None => call.words("update-ref --no-deref -d").arg(name),
            Some(Ok(target)) => call.args(["symbolic-ref", name, target]),
            Some(Err(oid)) => call.words("update-ref --no-deref").args([name, oid]),
        };
        call.run().map(drop)
    }
}

/// Whether a ref needs a directory where the other one has its file.
fn is_below(name: &str, above: &str) -> bool {
    let rest = name.strip_prefix(above);
    rest.is_some_and(|rest| rest.starts_with('/'))
}
