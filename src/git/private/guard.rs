//! Detects what a turn did to the repository itself, and restores it, reports it or treats it as a violation.

use crate::domain::outcome::short_id;
use crate::domain::snapshot::{Head, RevId};
use crate::domain::text::begins_with_word;
use crate::git::bytes::{as_path, path_within};
use crate::git::error::GitError;
use crate::git::files::{copy_tree, metadata, remove, same};
use crate::git::preflight::Operation;
use crate::git::private::head::HeadState;
use crate::git::private::places::{links_below, recorded_places};
use crate::git::private::refs::{Refs, SYMBOLIC};
use crate::git::repo::Repo;
use crate::git::special_files::is_special_file;
use crate::plain_file;
use crate::process::is_held;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::io::Read;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// Refs that a fetch, stash or bisect by the agent may move. The last ones keep jj's commits from being pruned, and
/// every jj command creates some.
const FREE_REFS: &str =
    "refs/remotes/ refs/stash refs/bisect/ refs/rewritten/ refs/prefetch/ refs/jj/";
/// The file that `git gc` writes into `info` for clients of the dumb HTTP protocol. git itself does not read
/// it.
const SERVED: &str = "refs";
/// Maximum number of bytes that are read of `FETCH_HEAD`.
const FETCH_HEAD_LIMIT: u64 = 16 * 1024 * 1024;

/// How long a lock that no process is seen to hold may take to go away, and the time between two looks at it.
const LOCK_GRACE: Duration = Duration::from_secs(2);
const LOCK_POLL: Duration = Duration::from_millis(25);

/// How many changed refs are named, and restored one by one.
const NAMED_REFS: usize = 10;

/// HEAD and the refs at the start of a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnMark {
    branch: Option<String>,
    oid: Option<String>,
    refs: Refs,
    locks: BTreeSet<String>,
    fetched: Option<String>,
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
    pub fn mark_turn(&self) -> Result<TurnMark, GitError> {
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
    pub fn inspect_turn(&mut self, mark: &TurnMark) -> Result<TurnReport, GitError> {
        let _open = self.unseal_to_read()?;
        let operation = Operation::under_way(&self.real.git_dir);
        let mut warnings = self.restore_metadata()?;
        for name in self.locks(mark).difference(&mark.locks) {
            let dirs = [&self.real.git_dir, &self.real.common_dir];
            let places = dirs.map(|dir| dir.join(name));
            if places.iter().any(|place| self.is_in_use(place)) {
                warnings.push(format!(
                    "another process holds .git/{name}: the commit waits for it"
                ));
            } else if places.iter().any(|place| place.symlink_metadata().is_ok()) {
                places.iter().try_for_each(|place| remove(place))?;
                warnings.push(format!("a lock left behind was removed: .git/{name}"));
            }
        }
        let mut violations = Vec::new();
        let (refs, mut head) = self.readable_refs(&mut warnings)?;
        if self.check_refs(mark, &refs, &mut violations, &mut warnings)? {
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
    pub fn restore_metadata(&self) -> Result<Vec<String>, GitError> {
        let _open = self.unseal_to_read()?;
        self.ensure_in_place()?;
        let mut warnings = self.restore_places(|_| true)?;
        let known = &self.private.state.links_below;
        for path in links_below(&self.real).difference(known) {
            let path = as_path(path);
            remove(path)?;
            warnings.push(format!(
                "{} led elsewhere and was removed",
                path_within(path, &self.real.work_tree)
            ));
        }
        warnings.extend(self.clear_git_dirs()?);
        Ok(warnings)
    }

    /// Puts back what was there when the run started, and leaves new directories such as those of submodules.
    pub(crate) fn undo_changed_configuration_of_start(&self) -> Result<Vec<String>, GitError> {
        let _open = self.unseal_to_read()?;
        self.ensure_in_place()?;
        self.restore_places(|place| {
            let runs = "config config.worktree hooks info commondir alternates";
            runs.split(' ').any(|name| place.ends_with(name))
        })
    }

    /// Restores those of these files and directories that are `wanted`, and names those that differed.
    pub(crate) fn restore_places(
        &self,
        wanted: impl Fn(&Path) -> bool,
    ) -> Result<Vec<String>, GitError> {
        let (mut warnings, mut further) = (Vec::new(), Vec::new());
        let recorded = recorded_places(&self.real, &self.private.root).into_iter();
        for (place, copy) in recorded.filter(|(place, _)| wanted(place)) {
            if place.ends_with("info") && is_directory(&place)? {
                copy_tree(&copy.join(SERVED), &place.join(SERVED))?;
            }
            // What blocks git and is new is looked for everywhere.
            let is_new = copy.symlink_metadata().is_err();
            if is_new && is_special_file(&place) {
                continue;
            }
            if !same(&place, &copy).unwrap_or(false) {
                copy_tree(&copy, &place)?;
                let is_inside = place.parent().is_some_and(|dir| {
                    let is_top = dir == self.real.git_dir || dir == self.real.common_dir;
                    !is_top && dir.starts_with(&self.real.common_dir)
                });
                let shown = path_within(&place, &self.real.work_tree);
                if is_inside {
                    further.push(shown);
                } else {
                    warnings.push(format!("changes to {shown} were undone"));
                }
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

    /// The lock files that a killed git left behind.
    fn locks(&self, mark: &TurnMark) -> BTreeSet<String> {
        let branch = mark.branch.as_ref().map(|branch| format!("{branch}.lock"));
        let fixed = ["index.lock", "HEAD.lock", "packed-refs.lock", "config.lock"];
        let names = fixed.into_iter().map(str::to_owned).chain(branch);
        names
            .filter(|name| {
                [&self.real.git_dir, &self.real.common_dir]
                    .iter()
                    .any(|dir| dir.join(name).symlink_metadata().is_ok())
            })
            .collect()
    }

    /// Whether a living process holds a lock. A lock that no process is seen to hold gets a moment to go away, because
    /// not every program has its lock open all the time.
    fn is_in_use(&self, lock: &Path) -> bool {
        let deadline = Instant::now() + self.lock_wait.min(LOCK_GRACE);
        while lock.symlink_metadata().is_ok() {
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

    fn fetch_mark(&self) -> Option<String> {
        let file = plain_file::open(&self.real.git_dir.join("FETCH_HEAD")).ok()?;
        let mut hasher = blake3::Hasher::new();
        hasher.update_reader(file.take(FETCH_HEAD_LIMIT)).ok()?;
        Some(hasher.finalize().to_hex().to_string())
    }

    /// Restores the refs that the agent may not move. Returns whether it did.
    fn check_refs(
        &self,
        mark: &TurnMark,
        now: &Refs,
        violations: &mut Vec<Violation>,
        warnings: &mut Vec<String>,
    ) -> Result<bool, GitError> {
        let fetched = self.fetch_mark() != mark.fetched;
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
                    warnings.push("the agent changed the stash (refs/stash)".to_owned());
                }
                continue;
            }
            if fetched && from.is_none() && name.starts_with("refs/tags/") {
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
                "{name}{others}, which the agent moved, is where it was; the next fetch moves it again"
            ));
        }
        let before = changed.iter().map(|(name, from, _)| (*name, *from));
        self.put_refs(&before.collect::<Vec<_>>())?;
        let is_restored = !back.is_empty() || !changed.is_empty();
        let further = changed.len().saturating_sub(NAMED_REFS);
        violations.extend(changed.into_iter().take(NAMED_REFS).map(|changed| {
            let (name, from, to) = changed;
            let name = name.clone();
            let from = from.cloned();
            let to = to.cloned();
            Violation::RefChanged { name, from, to }
        }));
        if further > 0 {
            violations.push(Violation::FurtherRefs { count: further });
        }
        Ok(is_restored)
    }

    /// Restores many refs.
    fn put_refs(&self, refs: &[(&String, Option<&String>)]) -> Result<(), GitError> {
        if refs.len() > NAMED_REFS {
            let mut lines = Vec::new();
            for (name, value) in refs {
                self.refuse_links(name)?;
                match value {
                    None => lines.extend([b"delete ", name.as_bytes(), b"\0\0"].concat()),
                    Some(oid) if !oid.starts_with(SYMBOLIC) => {
                        let line = [b"update ", name.as_bytes(), b"\0", oid.as_bytes(), b"\0\0"];
                        lines.extend(line.concat());
                    }
                    Some(_) => {}
                }
            }
            let call = self
                .real_call()
                .args(["update-ref", "--no-deref", "-z", "--stdin"]);
            // If one of them cannot be restored, none is, and each is tried.
            if call.stdin(lines).status()?.status == Some(0) {
                let is_symbolic = |value: &&String| value.starts_with(SYMBOLIC);
                let mut left = refs
                    .iter()
                    .filter(|(_, value)| value.is_some_and(|value| is_symbolic(&value)));
                return left.try_for_each(|(name, value)| self.put_ref(name, *value));
            }
        }
        refs.iter()
            .try_for_each(|(name, value)| self.put_ref(name, *value))
    }

    /// The refs. If git cannot read the packed refs, their file is removed, and the refs are then restored
    /// individually.
    fn readable_refs(&self, warnings: &mut Vec<String>) -> Result<(Refs, HeadState), GitError> {
        let packed = self.real.common_dir.join("packed-refs");
        self.refs_and_head().or_else(|error| {
            if metadata(&packed)?.is_none() {
                return Err(error);
            }
            remove(&packed)?;
            warnings.push(format!(
                "{} was unreadable and removed: {error}",
                path_within(&packed, &self.real.work_tree)
            ));
            self.refs_and_head()
        })
    }

    fn put_ref(&self, name: &str, value: Option<&String>) -> Result<(), GitError> {
        let call = self.move_ref(name)?;
        let call = match value.map(|value| (value, value.strip_prefix(SYMBOLIC))) {
            None => call.args(["update-ref", "--no-deref", "-d", name]),
            Some((_, Some(target))) => call.args(["symbolic-ref", name, target]),
            Some((oid, None)) => call.args(["update-ref", "--no-deref", name, oid]),
        };
        call.run().map(drop)
    }

    /// Restores HEAD to its branch. Returns whether it did.
    fn check_head(
        &self,
        mark: &TurnMark,
        head: &HeadState,
        violations: &mut Vec<Violation>,
    ) -> Result<bool, GitError> {
        if head.branch == mark.branch {
            return Ok(false);
        }
        if mark.branch.is_none() && mark.oid.is_none() {
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
    ) -> Result<Vec<AgentCommit>, GitError> {
        if head.oid == mark.oid {
            return Ok(Vec::new());
        }
        let forward = match (&mark.oid, &head.oid) {
            (None, Some(_)) => true,
            (Some(old), Some(new)) => self.is_ancestor(old, new).unwrap_or(false),
            (_, None) => false,
        };
        let name = mark.branch.as_deref().unwrap_or("HEAD");
        if let Some(tip) = head.oid.as_ref().filter(|_| forward) {
            let Some(unreadable) = self.unreadable_commit(mark.oid.as_deref(), tip)? else {
                return self.commits(mark.oid.as_deref(), tip);
            };
            self.put_ref(name, mark.oid.as_ref())?;
            violations.push(unreadable);
            return Ok(Vec::new());
        }
        self.put_ref(name, mark.oid.as_ref())?;
        let from = mark.oid.clone().unwrap_or_default();
        violations.push(Violation::HistoryRewritten {
            from,
            to: head.oid.clone(),
        });
        Ok(Vec::new())
    }

    fn commits(&self, from: Option<&str>, to: &str) -> Result<Vec<AgentCommit>, GitError> {
        let format = "--format=%H%x00%an <%ae>%x00%s";
        let mut call = self
            .call()
            .args(["log", "--no-mailmap", "--no-show-signature"]);
        call = call.args(["--encoding=UTF-8", "--max-count=1000", format, to]);
        if let Some(from) = from {
            call = call.args([format!("^{from}")]);
        }
        let listed = call.args(["--"]).run()?.stdout;
        let text = String::from_utf8_lossy(&listed);
        let commit = |line: &str| {
            let mut fields = line.splitn(3, '\0').map(str::to_owned);
            let id = RevId(fields.next()?);
            Some(AgentCommit {
                id,
                author: fields.next()?,
                subject: fields.next()?,
            })
        };
        Ok(text.lines().filter_map(commit).collect())
    }
}

/// Whether a ref needs a directory where the other one has its file.
fn is_below(name: &str, above: &str) -> bool {
    name.strip_prefix(above)
        .is_some_and(|rest| rest.starts_with('/'))
}

/// HEAD, for people.
pub(crate) fn named(branch: Option<&String>, oid: Option<&String>) -> String {
    let branch = branch.map(|name| name.strip_prefix("refs/heads/").unwrap_or(name).to_owned());
    branch
        .or_else(|| oid.cloned())
        .unwrap_or_else(|| "nothing".to_owned())
}

fn is_directory(place: &Path) -> Result<bool, GitError> {
    Ok(metadata(place)?.is_some_and(|found| found.is_dir()))
}
