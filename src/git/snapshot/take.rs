//! Takes a snapshot of the working copy.

use crate::domain::snapshot::{Fingerprint, KnownSnapshot};
use crate::git::bytes::{as_path, display_path, nul_fields};
use crate::git::entries::{OnDisk, inspect_all};
use crate::git::error::GitError;
use crate::git::files::remove;
use crate::git::private::head::HeadState;
use crate::git::repo::Repo;
use crate::git::snapshot::change::{
    Candidate, Change, ChangeKind, Entry, Exempt, RawSnapshot, TrackedBy, Unread,
};
use crate::git::snapshot::index_list::Layout;
use crate::git::snapshot::listing::{GITLINK, Listed, RawDiff, Recorded, SYMLINK, Status};
use crate::git::snapshot::unreadable::without_committed_files;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

/// GitHub refuses a push with a larger file. In bytes.
const MAX_PUSHED_FILE_BYTES: u64 = 100 << 20;

/// Maximum size in bytes of a `.gitmodules` file.
const GITMODULES_LIMIT: u64 = 1 << 20;

impl Repo {
    /// Takes a snapshot. Writes only the stat data of the private index, and repairs what keeps git from
    /// reading the repository.
    ///
    /// # Errors
    /// When git fails or the repository is gone. The caller must treat the state as unknown.
    pub fn snapshot(&self, exempt: &Exempt) -> Result<RawSnapshot, GitError> {
        let _open = if self.private.state.filters {
            // A filter may write there where it is not confined, as git-lfs does.
            self.unseal()?
        } else {
            self.unseal_to_look()?
        };
        let mut warnings = self.make_readable()?;
        let mut taken = self.try_snapshot(exempt);
        if let Err(GitError::HeldBySpecialFiles { paths, .. }) = &taken {
            warnings.extend(self.clear(paths.iter().cloned())?);
            taken = self.try_snapshot(exempt);
        }
        let mut raw = taken?;
        raw.warnings.splice(0..0, warnings);
        Ok(raw)
    }

    /// Undoes what others did to the files that every git process reads: a git process would block on an included
    /// pipe. Returns what it did.
    pub(crate) fn make_readable(&self) -> Result<Vec<String>, GitError> {
        self.ensure_in_place()?;
        let read = "config config.worktree commondir gitdir alternates .git";
        let is_one = |place: &Path| read.split(' ').any(|name| place.ends_with(name));
        let mut warnings = self.restore_places(is_one)?;
        warnings.extend(self.clear_required_files()?);
        warnings.extend(self.restore_shallow()?);
        Ok(warnings)
    }

    /// Takes a snapshot, and removes the lock that git leaves in the private directory if it is ended meanwhile.
    fn try_snapshot(&self, exempt: &Exempt) -> Result<RawSnapshot, GitError> {
        let taken = self.take_snapshot(exempt);
        if taken.is_err() {
            remove(&self.private.git_dir().join("index.lock"))?;
        }
        taken
    }

    fn take_snapshot(&self, exempt: &Exempt) -> Result<RawSnapshot, GitError> {
        let status = self.status(&self.private.index())?;
        let layout = self.layout()?;
        let head = self.head_state()?;
        let staged = self.staged();
        let mut warnings = status.warnings.clone();
        if let Err(error @ GitError::HeldBySpecialFiles { .. }) = staged {
            return Err(error);
        }
        let staged = staged.unwrap_or_else(|error| {
            warnings.push(format!("the repository's index cannot be read: {error}"));
            Arc::default()
        });
        let unmerged: BTreeSet<Vec<u8>> = staged
            .iter()
            .filter(|diff| diff.status == b'U')
            .map(|diff| diff.path.clone())
            .collect();
        let committed = self.agent_tree(&head)?;
        let has_stray_rules = self.has_stray_rules(&layout);
        let newly_ignored = self.newly_ignored(&status, &layout, has_stray_rules)?;
        let unreadable = self.unreadable_directories(&status);
        let Status {
            listed,
            mut nested,
            mut ignored,
            ..
        } = status;
        let given_up = self.given_up(&staged, &committed)?;
        let mut candidates = candidates(listed, newly_ignored, &layout, &staged, &committed);
        candidates.extend(
            given_up
                .into_iter()
                .map(|(path, base)| Candidate::given_up(path, base)),
        );
        let candidates = self.without_lost_gitlinks(united(candidates))?;
        ignored.extend(without_committed_files(unreadable, &layout, &candidates)?);
        let gitlinks: BTreeSet<&[u8]> = candidates
            .iter()
            .filter(|one| one.gitlink)
            .map(|one| one.path.as_slice())
            .collect();
        nested.retain(|path| !gitlinks.contains(path.as_slice()));
        let mut raw = RawSnapshot {
            known: KnownSnapshot {
                head: head.head(),
                branch: head.branch.clone(),
                tree: Fingerprint(String::new()),
                dirty: false,
            },
            changes: Vec::new(),
            uncounted: Vec::new(),
            check_artifacts: Vec::new(),
            nested,
            ignored,
            unmerged: unmerged.into_iter().collect(),
            warnings,
            entries: BTreeMap::new(),
        };
        self.compare(candidates, exempt, &mut raw)?;
        raw.known.tree = self.fingerprint_of(&raw);
        raw.known.dirty = self.is_dirty(&head, exempt, &raw)?;
        Ok(raw)
    }

    fn agent_tree(&self, head: &HeadState) -> Result<Vec<RawDiff>, GitError> {
        match &head.oid {
            Some(oid) if head.oid != self.private.state.base => {
                self.diff_trees(&self.private.state.base_tree, oid)
            }
            _ => Ok(Vec::new()),
        }
    }

    /// Keeps only the submodules that the base has, or for which `.gitmodules` gives an address for a fresh
    /// checkout. Any other repository that the agent made git track is left where it is, because its commits
    /// exist nowhere else. The files in a new submodule belong to the submodule.
    fn without_lost_gitlinks(
        &self,
        mut candidates: Vec<Candidate>,
    ) -> Result<Vec<Candidate>, GitError> {
        let is_new = |one: &Candidate| {
            one.gitlink && one.base.as_ref().is_none_or(|base| base.mode != GITLINK)
        };
        if !candidates.iter().any(is_new) {
            return Ok(candidates);
        }
        let described = self.described_submodules()?;
        let mut taken = BTreeSet::new();
        for one in candidates.iter_mut().filter(|one| is_new(one)) {
            one.gitlink = described.contains(&one.path);
            if one.gitlink {
                taken.insert([one.path.as_slice(), b"/"].concat());
            }
        }
        let is_of_one = |one: &Candidate| {
            let mut dirs = one
                .path
                .iter()
                .enumerate()
                .filter(|(_, byte)| **byte == b'/')
                .filter_map(|(at, _)| one.path.get(..=at));
            dirs.any(|dir| taken.contains(dir))
        };
        candidates.retain(|one| !is_of_one(one));
        Ok(candidates)
    }

    /// Paths for which the `.gitmodules` of the work tree has a URL.
    fn described_submodules(&self) -> Result<BTreeSet<Vec<u8>>, GitError> {
        let text = self.work_file(b".gitmodules", GITMODULES_LIMIT);
        let Some(text) = text else {
            return Ok(BTreeSet::new());
        };
        let args = ["config", "--file", "-", "--no-includes", "--null", "--list"];
        let listed = self.call().args(args).stdin(text).status()?.stdout;
        let mut values: BTreeMap<(&[u8], bool), &[u8]> = BTreeMap::new();
        for entry in nul_fields(&listed) {
            let end = entry.iter().position(|byte| *byte == b'\n');
            let (key, value) = entry.split_at(end.unwrap_or(entry.len()));
            let value = value.get(1..).unwrap_or_default();
            for (end, is_path) in [(b".path".as_slice(), true), (b".url".as_slice(), false)] {
                let name = key.strip_prefix(b"submodule.".as_slice());
                if let Some(name) = name.and_then(|name| name.strip_suffix(end)) {
                    values.insert((name, is_path), value);
                }
            }
        }
        let has_address = |name: &[u8]| {
            let address = values.get(&(name, false));
            address.is_some_and(|address| !address.trim_ascii().is_empty())
        };
        let paths = values
            .iter()
            .filter(|((name, is_path), _)| *is_path && has_address(name));
        let whole = |path: &&[u8]| path.strip_suffix(b"/").unwrap_or(path).to_vec();
        Ok(paths.map(|(_, path)| whole(path)).collect())
    }

    /// Inspects the candidates and keeps those that differ.
    fn compare(
        &self,
        candidates: Vec<Candidate>,
        exempt: &Exempt,
        raw: &mut RawSnapshot,
    ) -> Result<(), GitError> {
        let is_artifact = |one: &Candidate| {
            let uncommitted = one.base.is_none() && one.tracked_by != TrackedBy::Commit;
            uncommitted && exempt.check_artifacts.contains(&one.path)
        };
        let (dropped, kept): (Vec<Candidate>, Vec<Candidate>) =
            candidates.into_iter().partition(is_artifact);
        let paths: Vec<&[u8]> = kept.iter().map(|one| one.path.as_slice()).collect();
        raw.warnings.extend(self.clear_attribute_files(&paths)?);
        let seen = inspect_all(&self.real.work_tree, &paths);
        let mut unchanged = self.same_as_base(&kept, &seen)?;
        self.convert(&kept, &seen, &mut unchanged, &mut raw.warnings)?;
        raw.check_artifacts = dropped.into_iter().map(|one| one.path).collect();
        for ((candidate, on_disk), same) in kept.into_iter().zip(seen).zip(unchanged) {
            self.judge(candidate, on_disk, same, exempt, raw)?;
        }
        Ok(())
    }

    fn judge(
        &self,
        candidate: Candidate,
        on_disk: OnDisk,
        same_content: bool,
        exempt: &Exempt,
        raw: &mut RawSnapshot,
    ) -> Result<(), GitError> {
        let found = self.entry(&candidate, &on_disk, same_content, raw);
        let Some((mut entry, kind)) = found else {
            return Ok(());
        };
        let change = Change {
            kind,
            untracked: candidate.base.is_none() && candidate.tracked_by == TrackedBy::Nothing,
            newly_ignored: candidate.newly_ignored,
            unreadable: match on_disk {
                OnDisk::Unreadable { .. } => Some(Unread::Refused),
                OnDisk::TooLarge { .. } => Some(Unread::TooLarge),
                _ => None,
            },
            path: candidate.path,
        };
        if let OnDisk::File { length, .. } = on_disk
            && length > MAX_PUSHED_FILE_BYTES
        {
            raw.warnings.push(format!(
                "{} has {} MiB; GitHub refuses files larger than 100 MiB",
                display_path(&change.path),
                length >> 20
            ));
        }
        if let Some(why) = change.unreadable {
            raw.warnings
                .push(format!("{} {why}", display_path(&change.path)));
        }
        if let Some(plan) = exempt.plan.as_ref().filter(|plan| plan.path == change.path)
            && matches!(on_disk, OnDisk::File { .. })
        {
            let stripped = self.stripped_plan(plan);
            let base = candidate
                .base
                .as_ref()
                .map(|base| self.stripped_base(plan, &base.oid));
            if let Some(stripped) = stripped {
                if base.transpose()?.flatten().as_ref() == Some(&stripped)
                    && kind == ChangeKind::Modified
                {
                    return Ok(());
                }
                entry.digest = *blake3::hash(&stripped).as_bytes();
            }
        }
        if exempt.progress_ignore.is_match(as_path(&change.path)) {
            raw.uncounted.push(change.clone());
        } else {
            raw.changes.push(change.clone());
        }
        raw.entries.insert(change.path, entry);
        Ok(())
    }

    /// The entry of a candidate and the kind of change, or `None` if it is unchanged.
    fn entry(
        &self,
        candidate: &Candidate,
        on_disk: &OnDisk,
        same_content: bool,
        raw: &mut RawSnapshot,
    ) -> Option<(Entry, ChangeKind)> {
        let base = candidate.base.as_ref();
        let of = |mode, digest| Entry { mode, digest };
        let added_or = |kind| {
            if base.is_none() {
                ChangeKind::Added
            } else {
                kind
            }
        };
        let retyped = |mode: u32| base.is_some_and(|base| base.mode >> 12 != mode >> 12);
        match on_disk {
            OnDisk::File { digest, .. } | OnDisk::Link { digest } if candidate.given_up => {
                Some((of(0, *digest), ChangeKind::Deleted))
            }
            OnDisk::Directory if candidate.gitlink => self.gitlink(candidate, raw),
            OnDisk::Missing | OnDisk::Directory | OnDisk::Special => {
                base.map(|_| (of(0, [0; 32]), ChangeKind::Deleted))
            }
            OnDisk::Link { .. } if same_content && !retyped(SYMLINK) => None,
            OnDisk::Link { digest } => {
                let kind = if retyped(SYMLINK) {
                    ChangeKind::TypeChanged
                } else {
                    ChangeKind::Modified
                };
                Some((of(SYMLINK, *digest), added_or(kind)))
            }
            OnDisk::File {
                executable, digest, ..
            } => {
                let mode = self.file_mode(*executable, base);
                let kind = match base {
                    None => ChangeKind::Added,
                    Some(_) if retyped(mode) => ChangeKind::TypeChanged,
                    Some(base) if base.mode != mode && same_content => ChangeKind::ModeChanged,
                    Some(base) if base.mode == mode && same_content => return None,
                    Some(_) => ChangeKind::Modified,
                };
                Some((of(mode, *digest), kind))
            }
            OnDisk::Unreadable { digest } | OnDisk::TooLarge { digest } => {
                Some((of(0o100_644, *digest), added_or(ChangeKind::Modified)))
            }
        }
    }

    /// The executable bit counts only if the file system stores it.
    pub(crate) fn file_mode(&self, executable: bool, base: Option<&Recorded>) -> u32 {
        let regular = base.map(|base| base.mode).filter(|mode| mode >> 12 == 0o10);
        match (self.private.state.file_mode, regular) {
            (false, Some(mode)) => mode,
            (false, None) => 0o100_644,
            (true, _) if executable => 0o100_755,
            (true, _) => 0o100_644,
        }
    }

    /// Compares a submodule. One that is not checked out counts as unchanged.
    fn gitlink(&self, candidate: &Candidate, raw: &mut RawSnapshot) -> Option<(Entry, ChangeKind)> {
        let shown = display_path(&candidate.path);
        let head = self.nested_head(&candidate.path);
        let base = candidate.base.as_ref().filter(|base| base.mode == GITLINK);
        let Some(head) = head else {
            if candidate.base.is_none() {
                raw.warnings
                    .push(format!("submodule {shown} has no commit checked out"));
            }
            return None;
        };
        if base.is_some_and(|base| base.oid == head) {
            return None;
        }
        let digest = *blake3::hash(head.as_bytes()).as_bytes();
        let kind = if base.is_some() {
            ChangeKind::Submodule
        } else {
            ChangeKind::Added
        };
        if base.is_none() {
            raw.warnings.push(format!("{shown} is a new submodule"));
        }
        Some((
            Entry {
                mode: GITLINK,
                digest,
            },
            kind,
        ))
    }

    pub(crate) fn fingerprint_of(&self, raw: &RawSnapshot) -> Fingerprint {
        let mut hasher = blake3::Hasher::new();
        hasher
            .update(b"sprag tree 1\0")
            .update(self.private.state.base_tree.as_bytes());
        for change in &raw.changes {
            let Some(entry) = raw.entries.get(&change.path) else {
                continue;
            };
            hasher
                .update(&(change.path.len() as u64).to_le_bytes())
                .update(&change.path);
            hasher
                .update(&entry.mode.to_le_bytes())
                .update(&entry.digest);
        }
        Fingerprint(hasher.finalize().to_hex().to_string())
    }

    /// Whether the working copy differs from HEAD, which the agent may have moved beyond the base.
    fn is_dirty(
        &self,
        head: &HeadState,
        exempt: &Exempt,
        raw: &RawSnapshot,
    ) -> Result<bool, GitError> {
        let Some(oid) = head
            .oid
            .as_ref()
            .filter(|_| head.oid != self.private.state.base)
        else {
            return Ok(raw.changes.iter().any(|change| !change.newly_ignored));
        };
        let index = self.index_with(oid, &self.private.index())?;
        for one in self.converted_status(&index)?.listed {
            let plan = exempt.plan.as_ref().filter(|plan| plan.path == one.path);
            let exempted = exempt.progress_ignore.is_match(as_path(&one.path))
                || (one.indexed.is_none() && exempt.check_artifacts.contains(&one.path));
            let indexed = one.indexed.as_ref();
            if exempted || self.is_same_plan(plan, indexed)? || one.staged_only {
                continue;
            }
            return Ok(true);
        }
        Ok(false)
    }
}

/// Every path that may differ from the base.
fn candidates(
    listed: Vec<Listed>,
    newly_ignored: Vec<Vec<u8>>,
    layout: &Layout,
    staged: &[RawDiff],
    committed: &[RawDiff],
) -> Vec<Candidate> {
    let listed = listed
        .into_iter()
        .map(|one| Candidate::new(one.path, one.indexed));
    let mut found: Vec<Candidate> = listed.collect();
    found.extend(layout.gitlinks.iter().map(|(path, oid)| {
        let base = Recorded {
            mode: GITLINK,
            oid: oid.clone(),
        };
        Candidate {
            gitlink: true,
            ..Candidate::new(path.clone(), Some(base))
        }
    }));
    found.extend(newly_ignored.into_iter().map(|path| Candidate {
        newly_ignored: true,
        ..Candidate::new(path, None)
    }));
    for (diffs, tracked_by) in [(staged, TrackedBy::Index), (committed, TrackedBy::Commit)] {
        for diff in diffs.iter().filter(|diff| diff.after.mode != 0) {
            let gitlink = diff.after.mode == GITLINK;
            if diff.before.mode == 0 || gitlink {
                let base = (diff.before.mode != 0).then(|| diff.before.clone());
                found.push(Candidate {
                    gitlink,
                    tracked_by,
                    ..Candidate::new(diff.path.clone(), base)
                });
            }
        }
    }
    found
}

/// Removes duplicate paths and sorts the rest.
fn united(mut found: Vec<Candidate>) -> Vec<Candidate> {
    // The sort is stable: if a path was found twice, the first candidate has its base.
    found.sort_by(|one, other| one.path.cmp(&other.path));
    found.dedup_by(|later, first| {
        let is_same = later.path == first.path;
        if is_same {
            first.absorb(later);
        }
        is_same
    });
    found
}
