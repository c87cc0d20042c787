//! Takes a snapshot of the working copy.

use crate::domain::snapshot::{Fingerprint, KnownSnapshot};
use crate::git::bytes::{as_path, display_path, nul_fields};
use crate::git::entries::{OnDisk, directories_of, inspect_all};
use crate::git::error::{GitError, Result};
use crate::git::files::remove;
use crate::git::private::calls::HeadState;
use crate::git::private::config::{Setting, parse_setting};
use crate::git::repo::Repo;
use crate::git::snapshot::change::{
    Candidate, Change, ChangeKind, Entry, Exempt, RawSnapshot, TrackedBy, Unread,
};
use crate::git::snapshot::index_list::Layout;
use crate::git::snapshot::listing::{GITLINK, Listed, RawDiff, Recorded, SYMLINK};
use crate::git::snapshot::status::without_committed_files;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

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
    pub fn snapshot(&self, exempt: &Exempt) -> Result<RawSnapshot> {
        // A filter may write there where it is not confined, as git-lfs does.
        let _open = if self.private.state.filters {
            self.unseal()?
        } else {
            self.unseal_to_look()?
        };
        let mut warnings = self.make_readable()?;
        let take = || {
            let taken = self.take_snapshot(exempt);
            if taken.is_err() {
                // git leaves its lock if it is ended meanwhile.
                remove(&self.private.git_dir().join("index.lock"))?;
            }
            taken
        };
        let mut taken = take();
        if let Err(GitError::HeldBySpecialFiles(_, paths)) = &taken {
            warnings.extend(self.clear(paths.iter().cloned())?);
            taken = take();
        }
        let mut raw = taken?;
        raw.warnings.splice(0..0, warnings);
        Ok(raw)
    }

    /// Undoes what others did to the files that every git process reads: a git process would block on an included
    /// pipe. Returns what it did.
    pub(crate) fn make_readable(&self) -> Result<Vec<String>> {
        self.ensure_in_place()?;
        let read = "config config.worktree commondir gitdir alternates .git";
        let is_one = |place: &Path| read.split(' ').any(|name| place.ends_with(name));
        let mut warnings = self.restore_places(is_one)?;
        warnings.extend(self.clear_required_files()?);
        warnings.extend(self.restore_shallow()?);
        Ok(warnings)
    }

    fn take_snapshot(&self, exempt: &Exempt) -> Result<RawSnapshot> {
        let status = self.status(&self.private.index())?;
        let layout = self.layout()?;
        let head = self.head_state()?;
        let mut warnings = status.warnings.clone();
        let staged = match self.staged() {
            Err(error) if !matches!(error, GitError::HeldBySpecialFiles { .. }) => {
                warnings.push(format!("the repository's index cannot be read: {error}"));
                Vec::new()
            }
            staged => staged?,
        };
        let unmerged = staged.iter().filter(|diff| diff.status == b'U');
        let unmerged: BTreeSet<Vec<u8>> = unmerged.map(|diff| diff.path.clone()).collect();
        let state = &self.private.state;
        let committed = match &head.oid {
            Some(oid) if head.oid != state.base => self.diff_trees(&state.base_tree, oid)?,
            _ => Vec::new(),
        };
        let newly_ignored = self.newly_ignored(&status, &layout)?;
        let unreadable = self.unreadable_directories(&status);
        let (mut nested, mut ignored) = (status.nested, status.ignored);
        let given_up = self.given_up(&staged, &committed)?;
        let mut candidates = candidates(status.listed, newly_ignored, &layout, &staged, &committed);
        candidates.extend(given_up);
        let candidates = self.without_lost_gitlinks(united(candidates))?;
        ignored.extend(without_committed_files(unreadable, &layout, &candidates)?);
        let gitlinks = candidates.iter().filter(|one| one.gitlink);
        let gitlinks: BTreeSet<&Vec<u8>> = gitlinks.map(|one| &one.path).collect();
        nested.retain(|path| !gitlinks.contains(path));
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

    /// Keeps only the submodules that the base has, or for which `.gitmodules` gives an address for a fresh
    /// checkout. Any other repository that the agent made git track is left where it is, because its commits
    /// exist nowhere else. The files in a new submodule belong to the submodule.
    fn without_lost_gitlinks(&self, mut candidates: Vec<Candidate>) -> Result<Vec<Candidate>> {
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
                taken.insert(one.path.clone());
            }
        }
        candidates.retain(|one| !directories_of(&one.path).any(|above| taken.contains(above)));
        Ok(candidates)
    }

    /// Paths for which the `.gitmodules` of the work tree has a URL.
    fn described_submodules(&self) -> Result<BTreeSet<Vec<u8>>> {
        let text = self.work_file(b".gitmodules", GITMODULES_LIMIT);
        let Some(text) = text else {
            return Ok(BTreeSet::new());
        };
        let call = self.git("config --file - --no-includes --null --list");
        let listed = call.stdin(text).status()?.stdout;
        let (mut paths, mut with_address) = (BTreeMap::new(), BTreeSet::new());
        for entry in nul_fields(&listed) {
            let Setting { key, value } = parse_setting(entry);
            let value = value.unwrap_or_default();
            let Some(name) = key.strip_prefix(b"submodule.".as_slice()) else {
                continue;
            };
            if let Some(name) = name.strip_suffix(b".path".as_slice()) {
                let path = value.strip_suffix(b"/").unwrap_or(&value).to_vec();
                paths.insert(name.to_vec(), path);
            } else if let Some(name) = name.strip_suffix(b".url".as_slice()) {
                if value.trim_ascii().is_empty() {
                    with_address.remove(name);
                } else {
                    with_address.insert(name.to_vec());
                }
            }
        }
        paths.retain(|name, _| with_address.contains(name));
        Ok(paths.into_values().collect())
    }

    /// Inspects the candidates and keeps those that differ.
    fn compare(
        &self,
        candidates: Vec<Candidate>,
        exempt: &Exempt,
        raw: &mut RawSnapshot,
    ) -> Result<()> {
        let is_artifact = |one: &Candidate| {
            let uncommitted = one.base.is_none() && one.tracked_by != TrackedBy::Commit;
            uncommitted && exempt.check_artifacts.contains(&one.path)
        };
        let (dropped, kept): (Vec<_>, Vec<_>) = candidates.into_iter().partition(is_artifact);
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
    ) -> Result<()> {
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
        let shown = || display_path(&change.path);
        if let OnDisk::File { length, .. } = on_disk
            && length > MAX_PUSHED_FILE_BYTES
        {
            let has = format!("{} has {} MiB", shown(), length >> 20);
            raw.warnings
                .push(format!("{has}; GitHub refuses files larger than 100 MiB"));
        }
        if let Some(why) = change.unreadable {
            raw.warnings.push(format!("{} {why}", shown()));
        }
        if let Some(plan) = exempt.plan.as_ref().filter(|plan| plan.path == change.path)
            && matches!(on_disk, OnDisk::File { .. })
            && let Some(stripped) = self.stripped_plan(plan)
        {
            let base = candidate
                .base
                .as_ref()
                .filter(|_| kind == ChangeKind::Modified);
            let base = base.map(|base| self.stripped_base(plan, &base.oid));
            if base.transpose()?.flatten().as_ref() == Some(&stripped) {
                return Ok(());
            }
            entry.digest = *blake3::hash(&stripped).as_bytes();
        }
        raw.entries.insert(change.path.clone(), entry);
        if exempt.progress_ignore.is_match(as_path(&change.path)) {
            raw.uncounted.push(change);
        } else {
            raw.changes.push(change);
        }
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
        let (mode, digest) = match on_disk {
            OnDisk::File { digest, .. } | OnDisk::Link { digest } if candidate.given_up => {
                (0, *digest)
            }
            OnDisk::Directory if candidate.gitlink => return self.gitlink(candidate, raw),
            OnDisk::Missing | OnDisk::Directory | OnDisk::Special => (0, [0; 32]),
            OnDisk::Link { digest } => (SYMLINK, *digest),
            OnDisk::File {
                executable, digest, ..
            } => (self.file_mode(*executable, base), *digest),
            OnDisk::Unreadable { digest } | OnDisk::TooLarge { digest } => (0o100_644, *digest),
        };
        let is_read = matches!(on_disk, OnDisk::File { .. } | OnDisk::Link { .. });
        let kind = match base.map(|base| base.mode) {
            None if mode == 0 => return None,
            None => ChangeKind::Added,
            Some(_) if mode == 0 => ChangeKind::Deleted,
            Some(_) if !is_read => ChangeKind::Modified,
            Some(before) if before >> 12 != mode >> 12 => ChangeKind::TypeChanged,
            Some(before) if same_content && before == mode => return None,
            Some(_) if same_content => ChangeKind::ModeChanged,
            Some(_) => ChangeKind::Modified,
        };
        Some((Entry { mode, digest }, kind))
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
        let base = candidate.base.as_ref().filter(|base| base.mode == GITLINK);
        let Some(head) = self.nested_head(&candidate.path) else {
            if candidate.base.is_none() {
                raw.warnings
                    .push(format!("submodule {shown} has no commit checked out"));
            }
            return None;
        };
        let kind = match base {
            Some(base) if base.oid == head => return None,
            Some(_) => ChangeKind::Submodule,
            None => ChangeKind::Added,
        };
        if base.is_none() {
            raw.warnings.push(format!("{shown} is a new submodule"));
        }
        let digest = *blake3::hash(head.as_bytes()).as_bytes();
        let mode = GITLINK;
        Some((Entry { mode, digest }, kind))
    }

    pub(crate) fn fingerprint_of(&self, raw: &RawSnapshot) -> Fingerprint {
        let mut hasher = blake3::Hasher::new();
        hasher.update(b"sprag tree 1\0");
        hasher.update(self.private.state.base_tree.as_bytes());
        for change in &raw.changes {
            if let Some(entry) = raw.entries.get(&change.path) {
                hasher.update(&(change.path.len() as u64).to_le_bytes());
                hasher.update(&change.path);
                hasher.update(&entry.mode.to_le_bytes());
                hasher.update(&entry.digest);
            }
        }
        Fingerprint(hasher.finalize().to_hex().to_string())
    }

    /// Whether the working copy differs from HEAD, which the agent may have moved beyond the base.
    fn is_dirty(&self, head: &HeadState, exempt: &Exempt, raw: &RawSnapshot) -> Result<bool> {
        let moved = head
            .oid
            .as_ref()
            .filter(|_| head.oid != self.private.state.base);
        let Some(oid) = moved else {
            return Ok(raw.changes.iter().any(|change| !change.newly_ignored));
        };
        let index = self.index_with(oid, &self.private.index())?;
        for one in self.converted_status(&index)?.listed {
            let plan = exempt.plan.as_ref().filter(|plan| plan.path == one.path);
            let exempted = exempt.progress_ignore.is_match(as_path(&one.path))
                || (one.indexed.is_none() && exempt.check_artifacts.contains(&one.path));
            if !exempted && !one.staged_only && !self.is_same_plan(plan, one.indexed.as_ref())? {
                return Ok(true);
            }
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
    let listed = listed.into_iter();
    let mut found: Vec<Candidate> = listed
        .map(|one| Candidate::new(one.path, one.indexed))
        .collect();
    found.extend(layout.gitlinks.iter().map(|(path, oid)| {
        let (mode, oid) = (GITLINK, oid.clone());
        Candidate {
            gitlink: true,
            ..Candidate::new(path.clone(), Some(Recorded { mode, oid }))
        }
    }));
    found.extend(newly_ignored.into_iter().map(|path| Candidate {
        newly_ignored: true,
        ..Candidate::new(path, None)
    }));
    for (diffs, tracked_by) in [(staged, TrackedBy::Index), (committed, TrackedBy::Commit)] {
        for diff in diffs.iter().filter(|diff| diff.after.mode != 0) {
            let gitlink = diff.after.mode == GITLINK;
            let base = (diff.before.mode != 0).then(|| diff.before.clone());
            if base.is_none() || gitlink {
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
