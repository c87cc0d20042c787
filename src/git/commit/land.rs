//! Moves the branch to a commit, and updates the plan file, the indexes and the base afterwards.

use crate::domain::snapshot::RevId;
use crate::git::bytes::as_path;
use crate::git::commit::request::{
    CommitError, Identity, LandingIntent, PlanLanding, StagedTree, hex,
};
use crate::git::entries::{OnDisk, PathInspector, inspect_all, split};
use crate::git::error::{Result, io_error};
use crate::git::files::{copy_index, make_dir, read, remove, replace_file, sync_parent};
use crate::git::private::calls::HeadState;
use crate::git::repo::Repo;
use crate::git::snapshot::listing::NewObjects;
use crate::plain_file;
use std::borrow::Cow;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

/// The most bytes of a ref's lock that are read. It contains an id.
const MAX_LOCK: u64 = 100;
/// How long a ref's lock must stay unchanged before it counts as abandoned.
const STALE_AFTER: Duration = Duration::from_secs(1);
const LOCK_POLL: Duration = Duration::from_millis(25);

impl Repo {
    /// Copies the objects of the commit into the repository, moves HEAD's branch to it if the branch is still
    /// where the intent expects it, and updates the rest. If the commit has already landed, only the rest is
    /// updated.
    ///
    /// Returns what was corrected on the way, for warnings.
    ///
    /// # Errors
    /// [`CommitError::Locked`] and [`CommitError::HeadMoved`] leave everything unchanged. After an error once
    /// the branch has moved, call [`Repo::finish_landing`].
    pub fn land(&mut self, intent: &LandingIntent) -> Result<Vec<String>, CommitError> {
        let _open = self.unseal()?;
        let _unbroken = self.real.git.stop.unbroken();
        let mut warnings = intent.warnings.clone();
        warnings.extend(self.restore_metadata()?);
        let lock = self.lock_index()?;
        let head = self.head_state()?;
        if head.oid.as_ref() != Some(&intent.commit.0) {
            let expected = HeadState {
                branch: intent.branch.clone(),
                oid: intent.old.as_ref().map(|old| old.0.clone()),
            };
            if head != expected {
                return Err(CommitError::HeadMoved {
                    expected: described(&expected),
                    found: described(&head),
                });
            }
            self.refuse_links(intent.branch.as_deref().unwrap_or("HEAD"))?;
            warnings.extend(self.adopt(&self.objects_of(intent)?)?);
            self.move_head(intent)?;
        }
        self.finish(intent, lock)?;
        Ok(warnings)
    }

    /// Removes the ref locks that a git process of this run left when it was killed while landing this
    /// commit, whose intent was written at `since`. No process of the run may be alive.
    pub fn release_refs(&self, intent: &LandingIntent, since: SystemTime) -> Result<()> {
        if self.base().as_ref() == Some(&intent.commit) {
            return Ok(());
        }
        self.release_locks(intent.branch.as_deref(), &[&intent.commit.0], since)
    }

    /// Removes the locks of HEAD and of its branch, or of a detached HEAD, that a killed git process of this run left:
    /// they are not older than `since`, contain nothing but one of these ids, and do not change for a while.
    pub(crate) fn release_locks(
        &self,
        branch: Option<&str>,
        ids: &[&str],
        since: SystemTime,
    ) -> Result<()> {
        let branch = branch.unwrap_or("HEAD");
        let branch = self.real.common_dir.join(format!("{branch}.lock"));
        let locks = [branch, self.real.git_dir.join("HEAD.lock")];
        let left = |path: &PathBuf| -> Option<(u64, SystemTime)> {
            let meta = path.symlink_metadata().ok()?;
            let modified = meta.modified().ok()?;
            let content = plain_file::read(path, MAX_LOCK).ok()?;
            let content = content.trim_ascii_end();
            let ours = content.is_empty() || ids.iter().any(|id| id.as_bytes() == content);
            (ours && modified >= since).then_some((meta.ino(), modified))
        };
        let seen = locks.map(|path| (left(&path), path));
        if seen.iter().any(|(left, _)| left.is_some()) {
            thread::sleep(STALE_AFTER);
        }
        for (before, path) in seen {
            if before.is_some() && before == left(&path) {
                remove(&path)?;
            }
        }
        Ok(())
    }

    /// Performs what follows the move of the branch: updates the plan file, both indexes and the base.
    /// Repeating it is safe.
    ///
    /// # Errors
    /// When the index is locked or a file cannot be written.
    pub fn finish_landing(&mut self, intent: &LandingIntent) -> Result<(), CommitError> {
        let _open = self.unseal()?;
        let _unbroken = self.real.git.stop.unbroken();
        let lock = self.lock_index()?;
        self.finish(intent, lock)
    }

    /// Makes a commit of the agent the new base when there is nothing to add to it.
    pub fn advance_base(&mut self, commit: &RevId) -> Result<()> {
        let _open = self.unseal()?;
        let _unbroken = self.real.git.stop.unbroken();
        let index = self.private.index();
        self.read_tree_into(&index, &commit.0)?;
        self.set_base(&commit.0, None)
    }

    /// The objects that the commit adds to the base.
    pub(crate) fn objects_of(&self, intent: &LandingIntent) -> Result<NewObjects> {
        let staged = self.staged_tree.as_ref();
        let staged = staged.filter(|staged| intent.tree.as_ref() == Some(&staged.tree));
        let objects = if let Some(staged) = staged {
            staged.objects.clone()
        } else {
            let tree = match &intent.tree {
                Some(tree) => tree.clone(),
                None => self.raw_commit(&intent.commit.0)?.tree,
            };
            let base = &self.private.state.base_tree;
            NewObjects::of_tree(&tree, &self.diff_trees_and_subtrees(base, &tree)?)
        };
        Ok(objects.and_commit(&intent.commit.0))
    }

    fn move_head(&self, intent: &LandingIntent) -> Result<()> {
        let (old, initial) = match &intent.old {
            Some(old) => (old.0.clone(), ""),
            None => (self.no_object(), " (initial)"),
        };
        let reason = format!("commit{initial}: {}", intent.subject);
        let name = intent.branch.as_deref().unwrap_or("HEAD");
        let to = &intent.commit.0;
        let call = self.move_ref(name)?.words("update-ref --no-deref -m");
        let call = call.args([&reason, name, to, &old]).durably();
        let Identity { name, email } = &intent.identity;
        call.in_name_of(name, email).run().map(drop)
    }

    fn finish(&mut self, intent: &LandingIntent, lock: IndexLock) -> Result<(), CommitError> {
        let staged = self.staged_tree.take();
        let staged = staged.filter(|staged| intent.tree.as_ref() == Some(&staged.tree));
        if let Some(plan) = &intent.plan {
            let content = staged.as_ref().and_then(|staged| staged.plan.as_deref());
            self.write_plan(&intent.commit.0, plan, content)?;
        }
        let index = self.stage_index();
        if staged.is_some() && index.exists() {
            // The plan file was not yet written when it was staged.
            if let Some(plan) = &intent.plan {
                let refresh = self.with_index(&index).words("add --refresh --");
                refresh.arg(as_path(&plan.path)).status()?;
            }
        } else {
            if !index.exists() {
                copy_index(&self.private.index(), &index)?;
            }
            self.read_tree_into(&index, &intent.commit.0)?;
        }
        lock.replace(&index)?;
        let own = self.private.index();
        fs::rename(&index, &own).map_err(io_error("write", &own))?;
        if let Some(StagedTree { tree, changed, .. }) = &staged {
            self.carry_layout(tree, changed);
        }
        self.set_base(&intent.commit.0, intent.tree.clone())?;
        Ok(())
    }

    /// Loads a commit into an index and keeps the stat data of unchanged entries.
    fn read_tree_into(&self, index: &Path, commit: &str) -> Result<()> {
        self.with_index(index)
            .words("read-tree --reset -i")
            .arg(commit)
            .run()?;
        self.refresh(index)
    }

    /// Notes the stat data of unchanged files in an index.
    pub(crate) fn refresh(&self, index: &Path) -> Result<()> {
        let refresh = "update-index -q --refresh --ignore-submodules";
        self.with_index(index).words(refresh).status().map(drop)
    }

    /// Makes this commit the base for later comparisons. `tree` is the commit's tree, if known.
    fn set_base(&mut self, commit: &str, tree: Option<String>) -> Result<()> {
        self.private.state.base_tree = match tree {
            Some(tree) => tree,
            None => self.raw_commit(commit)?.tree,
        };
        self.private.state.base = Some(commit.to_owned());
        self.private.point_head()?;
        self.private.save()
    }

    /// Writes the commit's plan file to the work tree, unless somebody changed it in the meantime.
    fn write_plan(&self, commit: &str, plan: &PlanLanding, known: Option<&[u8]>) -> Result<()> {
        let seen = inspect_all(&self.real.work_tree, &[&plan.path]);
        let now = match seen.first() {
            Some(OnDisk::File { digest, .. }) => Some(hex(digest)),
            Some(OnDisk::Missing) => None,
            _ => return Ok(()),
        };
        let is_real = PathInspector::new(&self.real.work_tree).is_real(split(&plan.path).0);
        if now != plan.before || !is_real {
            return Ok(());
        }
        let content = match known {
            Some(content) => Cow::Borrowed(content),
            None => {
                let wanted = [commit.as_bytes(), b":", &plan.path].concat();
                let call = self.converting()?.words("cat-file --filters");
                Cow::Owned(call.arg(as_path(&wanted)).stdout()?)
            }
        };
        let path = self.at(&plan.path);
        let parent = path.parent().unwrap_or(&self.real.work_tree);
        replace_file(&path, &content, &self.real.git_dir)
            .or_else(|_| replace_file(&path, &content, parent))
            .map_err(io_error("write", &path))
    }
}

fn described(head: &HeadState) -> String {
    let branch = head.branch.as_deref().map_or("detached", |name| {
        name.strip_prefix("refs/heads/").unwrap_or(name)
    });
    let oid = head.oid.as_deref().unwrap_or("no commit yet");
    format!("{branch} at {oid}")
}

/// The repository's own `index.lock`, which every git process takes. A record in the private directory marks
/// it as Sprag's, so that a restart after a kill can remove it.
pub(crate) struct IndexLock {
    path: PathBuf,
    file: File,
    index: PathBuf,
    note: PathBuf,
    replaced: bool,
}

impl Repo {
    /// Locks the repository's index, and waits for a while if it is locked.
    ///
    /// The lock is created under another name, recorded as Sprag's, and then renamed, so a kill at any moment
    /// leaves no unrecorded lock.
    pub(crate) fn lock_index(&self) -> Result<IndexLock, CommitError> {
        self.ensure_in_place()?;
        let path = self.real.git_dir.join("index.lock");
        let ours = self.own_lock();
        remove(&ours)?;
        let create = |path: &Path| OpenOptions::new().write(true).create_new(true).open(path);
        let mut lock = IndexLock {
            file: create(&ours).map_err(io_error("create", &ours))?,
            path: ours.clone(),
            index: self.real.git_dir.join("index"),
            note: self.private.root.join("index-lock"),
            replaced: false,
        };
        let note = |file: &Path| fs::write(&lock.note, file_identity(file).unwrap_or_default());
        note(&ours).map_err(io_error("write", &lock.note))?;
        let deadline = Instant::now() + self.lock_wait;
        loop {
            let taken = match fs::hard_link(&ours, &path) {
                // Not every file system supports hard links.
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                    create(&path).and_then(|file| note(&path).map(|()| Some(file)))
                }
                other => other.map(|()| None),
            };
            match taken {
                Ok(None) => break,
                Ok(Some(file)) => {
                    lock.file = file;
                    break;
                }
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(io_error("create", &path)(error).into());
                }
                Err(_) if Instant::now() >= deadline => return Err(CommitError::Locked(path)),
                Err(_) => thread::sleep(LOCK_POLL),
            }
        }
        lock.path = path;
        remove(&ours)?;
        Ok(lock)
    }

    /// The path where the lock is prepared.
    fn own_lock(&self) -> PathBuf {
        self.real.git_dir.join("sprag-index.lock")
    }

    /// Removes the locks that an earlier process of this run held when it was killed.
    pub(crate) fn recover(&self) -> Result<()> {
        let names = ["index", "index.stage", "HEAD", "packed-refs"].into_iter();
        for name in names.chain(self.private.state.branch.as_deref()) {
            remove(&self.private.git_dir().join(format!("{name}.lock")))?;
        }
        let tmp = self.private.root.join("tmp");
        remove(&tmp)?;
        make_dir(&tmp)?;
        let note = self.private.root.join("index-lock");
        let lock = self.real.git_dir.join("index.lock");
        let owned = fs::read_to_string(&note).ok();
        if owned.is_some() && owned == file_identity(&lock) {
            remove(&lock)?;
        }
        remove(&self.own_lock())?;
        remove(&note)
    }
}

fn file_identity(path: &Path) -> Option<String> {
    let meta = path.symlink_metadata().ok()?;
    Some(format!("{}:{}", meta.dev(), meta.ino()))
}

impl IndexLock {
    /// Makes the repository's index a copy of `from` and releases the lock.
    pub(crate) fn replace(mut self, from: &Path) -> Result<()> {
        let content = read(from)?;
        let mut write = || {
            self.file.write_all(&content)?;
            // As for any copy of an index.
            self.file.set_modified(fs::metadata(from)?.modified()?)?;
            self.file.sync_all()
        };
        write().map_err(io_error("write", &self.path))?;
        fs::rename(&self.path, &self.index).map_err(io_error("write", &self.index))?;
        self.replaced = true;
        sync_parent(&self.index).map_err(io_error("write", &self.index))
    }
}

impl Drop for IndexLock {
    fn drop(&mut self) {
        if !self.replaced {
            let _ = fs::remove_file(&self.path);
        }
        let _ = fs::remove_file(&self.note);
    }
}
