//! Detects what a turn did to the repository itself, and restores it, reports it or treats it as a violation.

use crate::domain::outcome::short_id;
use crate::domain::snapshot::{Head, RevId};
use crate::git::bytes::{as_path, path_within};
use crate::git::error::{GitError, Result};
use crate::git::files::{
    copy_tree, is_directory, is_there, length, make_dir, move_tree, names, remove, same,
};
use crate::git::objects::reader::Counted;
use crate::git::preflight::Operation;
use crate::git::private::calls::HeadState;
use crate::git::private::places::{is_note, links_below, recorded_places};
use crate::git::private::refs::{Refs, SYMBOLIC};
use crate::git::private::seal::UNDONE;
use crate::git::repo::Repo;
use crate::git::special_files::is_special_file;
use crate::process::is_held;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// The file that `git gc` writes into `info` for clients of the dumb HTTP protocol. git itself does not read
/// it.
const SERVED: &str = "refs";

/// How long a lock that no process is seen to hold may take to go away, and the time between two looks at it.
const LOCK_GRACE: Duration = Duration::from_secs(2);
const LOCK_POLL: Duration = Duration::from_millis(25);

/// How much of what is undone is copied to another file system, in bytes.
const MOST_COPIED: u64 = 1 << 30;

/// How many files a commit of an agent may change. A few small objects can stand for more than git can list.
const MOST_FILES: u64 = 1_000_000;

/// How much is read to count them, in bytes.
const MOST_READ: u64 = 1 << 30;

/// How long a path may be in bytes: no file system of Linux has a longer one.
const LONGEST_PATH: usize = 4096;

/// HEAD and the refs at the start of a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnMark {
    pub(super) branch: Option<String>,
    oid: Option<String>,
    pub(super) refs: Refs,
    locks: BTreeSet<String>,
    pub(super) fetched: Option<String>,
}

impl TurnMark {
    /// The same HEAD with the refs, locks and fetches of `now`.
    #[must_use]
    pub fn with_refs_of(self, now: Self) -> Self {
        Self {
            branch: self.branch,
            oid: self.oid,
            ..now
        }
    }
}

/// A forbidden change to the repository during a turn. It has been undone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Violation {
    /// HEAD points to another branch or commit.
    #[error("HEAD was switched from {from} to {to}")]
    BranchSwitched {
        /// Branch or commit at the start.
        from: String,
        /// Branch or commit found.
        to: String,
    },
    /// The branch lost commits that it had.
    #[error("{}", match to {
        Some(to) => format!("history was rewritten: {to} does not descend from {from}"),
        None => format!("the branch was deleted (it was at {from})"),
    })]
    HistoryRewritten {
        /// Its commit at the start.
        from: String,
        /// The commit found, or `None` if the branch was deleted.
        to: Option<String>,
    },
    /// The branch has a commit whose changes cannot be read within Sprag's limits.
    #[error("the branch was moved to {commit}, which {why}")]
    UnreadableCommit {
        /// The commit, or the tip of the commits among which it is.
        commit: String,
        /// The reason.
        why: String,
    },
    /// More refs changed than are named.
    #[error("{count} more refs were changed")]
    FurtherRefs {
        /// How many more.
        count: usize,
    },
    /// A ref that the agent may not change was created, moved or deleted.
    #[error("{name} was {}", described(from.as_ref(), to.as_ref()))]
    RefChanged {
        /// Its full name.
        name: String,
        /// Its value at the start, or `None` if it is new.
        from: Option<String>,
        /// The value found, or `None` if it was deleted.
        to: Option<String>,
    },
}

/// How a ref changed. The commit may be somebody else's, and nothing else names it any more.
fn described(from: Option<&String>, to: Option<&String>) -> String {
    let Some(to) = to else {
        return "deleted".to_owned();
    };
    let how = from.map_or("created at", |_| "moved to");
    let to = to.strip_prefix(SYMBOLIC).unwrap_or_else(|| short_id(to));
    format!("{how} {to}")
}

/// A commit that the agent made itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentCommit {
    /// The commit.
    pub id: RevId,
    /// `Name <address>` as stored in the commit.
    pub author: String,
    /// First line of the message.
    pub subject: String,
}

/// What was found in the repository after a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnReport {
    /// What was restored or left as it is, one line each, for warnings.
    pub warnings: Vec<String>,
    /// The policy violations.
    pub violations: Vec<Violation>,
    /// Commits on top of the turn's start, newest first.
    pub agent_commits: Vec<AgentCommit>,
    /// A merge or similar operation that the agent left unfinished.
    pub operation: Option<Operation>,
    /// The current HEAD, after violations were undone.
    pub head: Head,
}

impl Repo {
    /// Records HEAD and the refs before a turn.
    ///
    /// # Errors
    /// When the repository cannot be read.
    pub fn mark_turn(&self) -> Result<TurnMark> {
        let _open = self.unseal_to_read()?;
        self.ensure_in_place()?;
        let (refs, head) = self.refs_and_head()?;
        let mut mark = TurnMark {
            locks: BTreeSet::new(),
            fetched: self.fetch_mark(),
            refs,
            branch: head.branch,
            oid: head.oid,
        };
        mark.locks = self.locks(&mark);
        Ok(mark)
    }

    /// Determines what a turn did to the repository, and undoes what is not allowed.
    ///
    /// # Errors
    /// When the repository is gone or cannot be read or restored.
    pub fn inspect_turn(&mut self, mark: &TurnMark) -> Result<TurnReport> {
        let _open = self.unseal_to_read()?;
        // What is put back tells no longer.
        let operation = Operation::under_way(&self.real.git_dir);
        let who = ("the agent", self.has_fetched_since(mark));
        let mut warnings = self.restore_metadata()?;
        for name in self.locks(mark).difference(&mark.locks) {
            let dirs = [&self.real.git_dir, &self.real.common_dir];
            let places = dirs.map(|dir| dir.join(name));
            if places.iter().any(|place| self.is_in_use(place)) {
                let what = format!("another process holds .git/{name}: the commit waits for it");
                warnings.push(what);
            } else if places.iter().any(|place| is_there(place)) {
                places.iter().try_for_each(|place| remove(place))?;
                warnings.push(format!("a lock left behind was removed: .git/{name}"));
            }
        }
        let mut violations = Vec::new();
        let (refs, mut head) = self.readable_refs(&mut warnings)?;
        if self.check_refs(mark, &refs, who, &mut violations, &mut warnings)? {
            head = self.head_state()?;
        }
        if self.check_head(mark, &head, &mut violations)? {
            head = self.head_state()?;
        }
        let undone = violations.len();
        let agent_commits = self.check_history(mark, &head, &mut violations)?;
        if violations.len() > undone {
            head = self.head_state()?;
        }
        Ok(TurnReport {
            warnings,
            violations,
            agent_commits,
            operation,
            head: head.head(),
        })
    }

    /// Restores configuration, hooks and similar files to their state at the start of the run, and names
    /// those that differed.
    ///
    /// # Errors
    /// When the repository is gone or one of them cannot be restored.
    pub fn restore_metadata(&self) -> Result<Vec<String>> {
        let _open = self.unseal_to_read()?;
        self.ensure_in_place()?;
        let mut warnings = self.restore_places(|_| true)?;
        let known = &self.private.state.links_below;
        for path in links_below(&self.real).difference(known) {
            let path = as_path(path);
            remove(path)?;
            let shown = path_within(path, &self.real.work_tree);
            warnings.push(format!("{shown} led elsewhere and was removed"));
        }
        warnings.extend(self.clear_git_dirs()?);
        warnings.extend(self.restore_shallow()?);
        Ok(warnings)
    }

    /// Puts back what was there when the run started, and leaves new directories such as those of submodules.
    pub(crate) fn undo_changed_configuration_of_start(&self) -> Result<Vec<String>> {
        let _open = self.unseal_to_read()?;
        self.ensure_in_place()?;
        let runs = "config config.worktree hooks info commondir alternates";
        let is_one = |place: &Path| runs.split(' ').any(|name| place.ends_with(name));
        let mut warnings = self.restore_places(is_one)?;
        warnings.extend(self.restore_shallow()?);
        Ok(warnings)
    }

    /// Restores those of these files and directories that are `wanted`, and names those that differed.
    pub(crate) fn restore_places(&self, wanted: impl Fn(&Path) -> bool) -> Result<Vec<String>> {
        let (mut warnings, mut further) = (Vec::new(), Vec::new());
        let recorded = recorded_places(&self.real, &self.private.root).into_iter();
        for (place, copy) in recorded.filter(|(place, _)| wanted(place)) {
            if place.ends_with("info") && is_directory(&place) {
                copy_tree(&copy.join(SERVED), &place.join(SERVED))?;
            }
            // What blocks git and is new is looked for everywhere.
            let is_new = !is_there(&copy);
            let is_left = is_new && is_special_file(&place);
            if is_left || same(&place, &copy).unwrap_or(false) {
                continue;
            }
            let kept = self.keep_undone(&place)?;
            copy_tree(&copy, &place)?;
            if is_note(&place) {
                continue;
            }
            let is_inside = place.parent().is_some_and(|dir| {
                let is_top = dir == self.real.git_dir || dir == self.real.common_dir;
                !is_top && dir.starts_with(&self.real.common_dir)
            });
            let undone = path_within(&place, &self.real.work_tree);
            match kept.filter(|kept| is_new && kept.is_dir()) {
                Some(kept) => {
                    let kept = kept.display();
                    warnings.push(format!("changes to {undone} were undone; it is now {kept}"));
                }
                None if is_inside => further.push(undone),
                None => warnings.push(format!("changes to {undone} were undone")),
            }
        }
        if let Some(first) = further.first() {
            let others = match further.len() - 1 {
                0 => String::new(),
                more => format!(" and {more} more in other git directories"),
            };
            warnings.push(format!("changes to {first}{others} were undone"));
        }
        Ok(warnings)
    }

    /// Moves what is undone into the run directory, because it may be what was moved there from elsewhere. Returns where
    /// it is then; what cannot be moved is left to be removed.
    fn keep_undone(&self, place: &Path) -> Result<Option<PathBuf>> {
        let dir = self.private.root.join(UNDONE);
        make_dir(&dir)?;
        let name = place.file_name().unwrap_or_default().to_string_lossy();
        let kept = dir.join(format!("{}-{name}", names(&dir)?.len()));
        // A copy on another file system takes as much room.
        let is_kept = fs::rename(place, &kept).is_ok()
            || (length(place)? <= MOST_COPIED && move_tree(place, &kept, place).is_ok());
        Ok(is_kept.then_some(kept))
    }

    /// The lock files in the git directories, such as those that a killed git left behind.
    fn locks(&self, mark: &TurnMark) -> BTreeSet<String> {
        let dirs = [&self.real.git_dir, &self.real.common_dir];
        let branch = mark.branch.as_ref().map(|branch| format!("{branch}.lock"));
        let exists = |name: &String| dirs.iter().any(|dir| is_there(&dir.join(name)));
        let all = dirs.iter().flat_map(|dir| names(dir).unwrap_or_default());
        let all = all.filter_map(|name| name.into_string().ok());
        let locks = all.filter(|name| name.ends_with(".lock"));
        locks.chain(branch.filter(exists)).collect()
    }

    /// Whether a living process holds a lock. A lock that no process is seen to hold gets a moment to go away, because
    /// not every program has its lock open all the time.
    fn is_in_use(&self, lock: &Path) -> bool {
        let deadline = Instant::now() + self.lock_wait.min(LOCK_GRACE);
        while is_there(lock) {
            if is_held(lock, &self.real.work_tree) {
                return true;
            }
            if Instant::now() >= deadline {
                return false;
            }
            thread::sleep(LOCK_POLL);
        }
        false
    }

    /// Restores HEAD to its branch. Returns whether it did.
    fn check_head(
        &self,
        mark: &TurnMark,
        head: &HeadState,
        violations: &mut Vec<Violation>,
    ) -> Result<bool> {
        if head.branch == mark.branch || (mark.branch.is_none() && mark.oid.is_none()) {
            return Ok(false);
        }
        if self.is_at_commit_of_jj(mark, head) {
            let name = mark.branch.as_deref().unwrap_or("HEAD");
            self.put_ref(name, head.oid.as_ref())?;
            self.switch_head(mark.branch.as_deref(), head.oid.as_deref())?;
            return Ok(true);
        }
        self.switch_head(mark.branch.as_deref(), mark.oid.as_deref())?;
        let from = named(mark.branch.as_ref(), mark.oid.as_ref());
        let to = named(head.branch.as_ref(), head.oid.as_ref());
        violations.push(Violation::BranchSwitched { from, to });
        Ok(true)
    }

    /// Whether jj, which never moves a branch of git by itself, has detached HEAD at a commit on top of the branch.
    fn is_at_commit_of_jj(&self, mark: &TurnMark, head: &HeadState) -> bool {
        let (Some(old), Some(new)) = (&mark.oid, &head.oid) else {
            return false;
        };
        self.started_with_jj()
            && mark.branch.is_some()
            && head.branch.is_none()
            && (old == new || self.is_ancestor(old, new).unwrap_or(false))
    }

    fn check_history(
        &self,
        mark: &TurnMark,
        head: &HeadState,
        violations: &mut Vec<Violation>,
    ) -> Result<Vec<AgentCommit>> {
        if head.oid == mark.oid {
            return Ok(Vec::new());
        }
        let forward = match (&mark.oid, &head.oid) {
            (None, Some(_)) => true,
            (Some(old), Some(new)) => self.is_ancestor(old, new).unwrap_or(false),
            (_, None) => false,
        };
        if let Some(tip) = head.oid.as_ref().filter(|_| forward) {
            let Some(unreadable) = self.unreadable_commit(mark.oid.as_deref(), tip)? else {
                return self.commits(mark.oid.as_deref(), tip);
            };
            violations.push(unreadable);
        } else {
            violations.push(Violation::HistoryRewritten {
                from: mark.oid.clone().unwrap_or_default(),
                to: head.oid.clone(),
            });
        }
        let name = mark.branch.as_deref().unwrap_or("HEAD");
        self.put_ref(name, mark.oid.as_ref())?;
        Ok(Vec::new())
    }

    fn commits(&self, from: Option<&str>, to: &str) -> Result<Vec<AgentCommit>> {
        let args = "log --no-mailmap --no-show-signature --encoding=UTF-8 --max-count=1000";
        let call = self.git(args).args(["--format=%H%x00%an <%ae>%x00%s", to]);
        let listed = call
            .args(from.map(|from| format!("^{from}")))
            .arg("--")
            .stdout()?;
        let text = String::from_utf8_lossy(&listed);
        let commit = |line: &str| {
            let mut fields = line.splitn(3, '\0').map(str::to_owned);
            Some(AgentCommit {
                id: RevId(fields.next()?),
                author: fields.next()?,
                subject: fields.next()?,
            })
        };
        Ok(text.lines().filter_map(commit).collect())
    }

    /// The first commit after `from` up to `to` whose changes are too many to be read, if there is one. No git process
    /// reads the trees of a commit that an agent made before this was found to end.
    fn unreadable_commit(&self, from: Option<&str>, to: &str) -> Result<Option<Violation>> {
        let call = self.git("rev-list --parents").arg(to);
        let listed = call
            .args(from.map(|from| format!("^{from}")))
            .arg("--")
            .stdout()?;
        let reader = self.objects().within(MOST_READ);
        let mut counted = Counted::new();
        for line in String::from_utf8_lossy(&listed).lines() {
            let mut ids = line.split(' ');
            let commit = ids.next().unwrap_or_default();
            let mut parents: Vec<Option<&str>> = ids.map(Some).collect();
            if parents.is_empty() {
                parents.push(None);
            }
            for parent in parents {
                let why = match reader.extent(parent, commit, &mut counted) {
                    Ok(extent) if extent.files > MOST_FILES => {
                        format!("changes more than {MOST_FILES} files")
                    }
                    Ok(extent) if extent.path > LONGEST_PATH => {
                        format!("has a path of {} bytes", extent.path)
                    }
                    Ok(_) => continue,
                    Err(error @ GitError::Cancelled { .. }) => return Err(error),
                    Err(error) => format!("has changes that cannot be read: {error}"),
                };
                let commit = commit.to_owned();
                return Ok(Some(Violation::UnreadableCommit { commit, why }));
            }
        }
        Ok(None)
    }
}

/// HEAD, for people.
pub(crate) fn named(branch: Option<&String>, oid: Option<&String>) -> String {
    let branch = branch.map(|name| name.strip_prefix("refs/heads/").unwrap_or(name));
    branch
        .or(oid.map(String::as_str))
        .unwrap_or("nothing")
        .to_owned()
}
