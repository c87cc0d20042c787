//! Changes that a task made to its checks: to tests and to check definitions.

use crate::domain::attempt::TestChanges;
use crate::domain::checks::definitions::{Definitions, Entry, Part, Restored, Role, Start};
use crate::domain::checks::tests_changed::{
    holds_tests, is_test, may_rule_others, sets_up_runners,
};
use crate::domain::checks::verdict::Check;
use crate::git::{Change, ChangeKind, GITLINK, RawSnapshot, Repo, SYMLINK, TreeId, display_path};
use crate::run::steps::uncommitted::Uncommitted;
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Component, Path, PathBuf};

/// The largest file, in bytes, that is read to find out what a check does.
const MAX_BYTES: u64 = 1 << 20;

/// The changes, and the files to use for running the checks with their earlier definitions.
#[derive(Debug, Default)]
pub struct CheckChanges {
    /// The changes, by file name.
    pub tests: TestChanges,
    /// Content of files of which only a part defines checks: that part as before the task, the rest as
    /// it is now.
    pub mixed: BTreeMap<Vec<u8>, Vec<u8>>,
    /// What the checks see and a fresh checkout of the commit does not have: files that the commit removes
    /// although they still exist, and what git leaves out of it, also if checks made it.
    pub away: BTreeSet<Vec<u8>>,
    /// What earlier tasks of the run have changed as well.
    pub earlier: Option<Earlier>,
    /// Why the result of the checks without these changes cannot be known, if that is the case.
    pub unknown: Option<String>,
}

/// Tests and check definitions that differ from those before the first task of the run.
#[derive(Debug)]
pub struct Earlier {
    /// The tree that has the original ones.
    pub tree: TreeId,
    /// The files to take from there.
    pub paths: BTreeSet<Vec<u8>>,
    /// As [`CheckChanges::mixed`].
    pub mixed: BTreeMap<Vec<u8>, Vec<u8>>,
}

/// What the checks run, determined from the state at the start of the task.
pub fn definitions_at_start(repo: &Repo, raw: &RawSnapshot, checks: &[Check]) -> Definitions {
    let start = Before::new(repo, raw);
    Definitions::of(checks.iter().map(|check| check.run.as_str()), &start)
}

/// Tests and check definitions that differ from the start of the task.
pub fn check_changes(
    repo: &Repo,
    raw: &RawSnapshot,
    checks: &[Check],
    (uncommitted, since): (&Uncommitted, Option<TreeId>),
) -> CheckChanges {
    let mut found = CheckChanges::default();
    let (new, mut left) = uncommitted.since_start(repo, raw);
    found.away = new;
    let start = Before::new(repo, raw);
    let commands = checks.iter().map(|check| check.run.as_str());
    let definitions = Definitions::of(commands, &start);
    for change in start.changes.values() {
        match role_of(&definitions, &start, change) {
            None if start.is_left(change) || start.is_elsewhere(change, raw) => {
                left.insert(change.path.clone());
            }
            role => note(&mut found, &start, change, role),
        }
    }
    if let Some(tree) = since {
        add_earlier(&mut found, repo, raw, checks, tree);
    }
    let top = repo.real().work_tree();
    let is_empty =
        |goal: &&str| fs::read_dir(top.join(goal)).is_ok_and(|mut all| all.next().is_none());
    let goals = definitions.goals().filter(is_empty);
    left.extend(goals.map(|goal| goal.as_bytes().to_vec()));
    for path in uncommitted.changed_programs(repo, &definitions) {
        found.unknown = Some(format!(
            "{path} is used by the checks, is not committed, and changed since the task started"
        ));
        found.tests.definitions.push(path);
    }
    found.tests.left = left.iter().map(|path| display_path(path)).collect();
    found.away.append(&mut left);
    found.tests.digest = digest(&found.tests, &start, raw);
    found
}

/// Adds what differs from the tests and check definitions in the tree before the first task of the run. What this task
/// has changed is among it, since it may have been changed twice.
fn add_earlier(
    found: &mut CheckChanges,
    repo: &Repo,
    raw: &RawSnapshot,
    checks: &[Check],
    tree: TreeId,
) {
    let changes = match repo.base_since(&tree) {
        Ok(changes) => since_then(changes, raw),
        Err(error) => {
            found.unknown = Some(format!("the original tests cannot be read: {error}"));
            found.tests.earlier.push("the original tests".to_owned());
            return;
        }
    };
    let start = Before {
        tree: Some(&tree),
        ..Before::of(repo, changes.values())
    };
    let definitions = Definitions::of(checks.iter().map(|check| check.run.as_str()), &start);
    let mut all = CheckChanges::default();
    for change in start.changes.values() {
        let role = role_of(&definitions, &start, change);
        note(&mut all, &start, change, role);
    }
    let (tests, known) = (all.tests, &found.tests);
    let mut names: BTreeSet<String> = tests.changed.iter().cloned().collect();
    names.extend(tests.definitions.iter().cloned());
    let is_known = |name: &String| known.changed.contains(name) || known.definitions.contains(name);
    let earlier = names.iter().filter(|name| !is_known(name));
    let earlier: Vec<String> = earlier.cloned().collect();
    // New tests may need changed definitions, as in the proof for one task.
    if !tests.definitions.is_empty() {
        names.extend(
            tests
                .added
                .into_iter()
                .filter(|path| !path.ends_with(".rs")),
        );
    }
    let of_name = |name: &String| Some(start.changes.get(name)?.path.clone());
    let mut paths: BTreeSet<Vec<u8>> = names.iter().filter_map(of_name).collect();
    paths.retain(|path| !all.mixed.contains_key(path));
    let mixed = all.mixed;
    found.tests.earlier = earlier;
    found.unknown = found.unknown.take().or(all.unknown);
    if !(paths.is_empty() && mixed.is_empty()) {
        found.earlier = Some(Earlier { tree, paths, mixed });
    }
}

/// The changes since an earlier tree, of those between it and the base and those of the task.
fn since_then(earlier: Vec<Change>, raw: &RawSnapshot) -> BTreeMap<Vec<u8>, Change> {
    let earlier = earlier
        .into_iter()
        .map(|change| (change.path.clone(), change));
    let mut all: BTreeMap<Vec<u8>, Change> = earlier.collect();
    for change in raw.changes.iter().chain(&raw.uncounted) {
        let before = all.get(&change.path).map(|before| before.kind);
        let kind = match (before, change.kind) {
            (Some(ChangeKind::Added), ChangeKind::Deleted) => {
                all.remove(&change.path);
                continue;
            }
            (Some(ChangeKind::Added), _) => ChangeKind::Added,
            (None, kind) | (Some(_), kind @ (ChangeKind::Deleted | ChangeKind::TypeChanged)) => {
                kind
            }
            (Some(ChangeKind::TypeChanged), _) => ChangeKind::TypeChanged,
            (Some(_), _) => ChangeKind::Modified,
        };
        let change = Change {
            kind,
            ..change.clone()
        };
        all.insert(change.path.clone(), change);
    }
    all
}

fn role_of(definitions: &Definitions, start: &Before<'_>, change: &Change) -> Option<Role> {
    match change.kind {
        ChangeKind::Added => definitions.of_new(&display_path(&change.path), start),
        _ => role_of_old(definitions, start, change),
    }
}

/// Notes a change of a path with this role.
fn note(found: &mut CheckChanges, start: &Before<'_>, change: &Change, role: Option<Role>) {
    let path = display_path(&change.path);
    match role {
        None if sets_up_runners(&path, &start.now(change)) => {
            found.tests.definitions.push(path);
        }
        None => {}
        Some(Role::Test) if change.kind == ChangeKind::Added => {
            if may_rule_others(&path, &start.now(change)) || start.is_other_package(&path) {
                found.tests.definitions.push(path.clone());
            }
            found.tests.added.push(path);
        }
        Some(Role::Test) => found.tests.changed.push(path),
        Some(Role::Definition(part)) => definition(found, start, change, part),
    }
}

/// The role of a path that existed. What a file holds counts more than that it may hold a part of the tests, and a
/// submodule counts as what is below it.
fn role_of_old(definitions: &Definitions, start: &Before<'_>, change: &Change) -> Option<Role> {
    let path = display_path(&change.path);
    if change.kind == ChangeKind::Submodule {
        return definitions
            .of_old(&path)
            .or_else(|| definitions.of_old(&format!("{path}/x")));
    }
    let role = definitions.of_old(&path);
    if !matches!(role, None | Some(Role::Definition(Part::RustTests))) {
        return role;
    }
    let is_test = start
        .old(&change.path)
        .is_some_and(|old| holds_tests(&path, &old));
    if is_test || start.is_test_by_a_link(&path) {
        return Some(Role::Test);
    }
    role.or_else(|| start.role_by_a_link(&path, definitions))
}

/// The path in the work tree to which a link leads; `None` if it leads out of it.
fn target_of(link: &Path, target: &Path) -> Option<PathBuf> {
    let mut path = link.parent()?.to_path_buf();
    for component in target.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => path.pop().then_some(())?,
            Component::Normal(name) => path.push(name),
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(path)
}

/// A digest of the names, modes and content of the test files.
fn digest(tests: &TestChanges, start: &Before<'_>, raw: &RawSnapshot) -> String {
    if !tests.are_tests_touched() {
        return String::new();
    }
    let mut hasher = blake3::Hasher::new();
    for path in tests.changed.iter().chain(&tests.added) {
        hasher.update(path.as_bytes()).update(&[0]);
        let change = start.changes.get(path);
        if let Some((mode, digest)) = change.and_then(|change| raw.content(&change.path)) {
            hasher.update(&mode.to_le_bytes()).update(&digest);
        }
    }
    hasher.finalize().to_hex().to_string()
}

fn definition(found: &mut CheckChanges, start: &Before<'_>, change: &Change, part: Part) {
    let path = display_path(&change.path);
    let restored = match change.kind {
        ChangeKind::Modified => start.restored(&change.path, part),
        // A new file counts if it has a part that decides.
        ChangeKind::Added if part != Part::Whole => {
            let new = start.repo.work_file(&change.path, MAX_BYTES);
            let new = new.and_then(|new| String::from_utf8(new).ok());
            let decides = new.is_none_or(|new| part.restored(part.empty(), &new).is_some());
            decides.then_some(Restored::Old)
        }
        _ => Some(Restored::Old),
    };
    match restored {
        None => return,
        Some(Restored::Old) => {}
        Some(Restored::Mixed(text)) => {
            found.mixed.insert(change.path.clone(), text.into_bytes());
        }
    }
    if change.newly_ignored {
        found.unknown = Some(format!(
            "{path} is used by the checks and would not be committed, because the change adds a rule that ignores it"
        ));
    }
    found.tests.definitions.push(path);
}

/// The state at the start of the task, computed from the changes since then.
struct Before<'r> {
    repo: &'r Repo,
    /// The tree at the start, if it is not the base.
    tree: Option<&'r TreeId>,
    changes: BTreeMap<String, &'r Change>,
    paths: OnceCell<Vec<String>>,
    /// The links at the start of the task, with their targets in the work tree.
    links: OnceCell<Vec<(String, PathBuf)>>,
}

impl<'r> Before<'r> {
    fn new(repo: &'r Repo, raw: &'r RawSnapshot) -> Self {
        Self::of(repo, raw.changes.iter().chain(&raw.uncounted))
    }

    fn of(repo: &'r Repo, all: impl Iterator<Item = &'r Change>) -> Self {
        Self {
            repo,
            tree: None,
            changes: all
                .map(|change| (display_path(&change.path), change))
                .collect(),
            paths: OnceCell::new(),
            links: OnceCell::new(),
        }
    }

    /// Whether the commit removes a file that still exists in the work tree, and not only behind a link.
    fn is_left(&self, change: &Change) -> bool {
        let top = self.repo.real().work_tree();
        let path = Path::new(std::ffi::OsStr::from_bytes(&change.path));
        let meta = top.join(path).symlink_metadata();
        let dirs = || path.ancestors().skip(1).filter(|dir| *dir != Path::new(""));
        change.kind == ChangeKind::Deleted
            && meta.is_ok_and(|meta| meta.is_file() || meta.is_symlink())
            && !dirs().any(|dir| top.join(dir).is_symlink())
    }

    /// Whether a change is a link out of the work tree or a new submodule: a fresh checkout has something else
    /// there, or nothing.
    fn is_elsewhere(&self, change: &Change, raw: &RawSnapshot) -> bool {
        match raw.content(&change.path) {
            Some((SYMLINK, _)) => {
                let path = std::ffi::OsStr::from_bytes(&change.path);
                let target = fs::read_link(self.repo.real().work_tree().join(path));
                target.is_ok_and(|target| target_of(Path::new(path), &target).is_none())
            }
            Some((GITLINK, _)) => change.kind == ChangeKind::Added,
            _ => false,
        }
    }

    /// Whether a link at the start of the task, whose own name is that of a test, led to this path or to a directory
    /// around it. What a link inside of a directory of tests leads to is mostly the work.
    fn is_test_by_a_link(&self, path: &str) -> bool {
        self.links_to(path).any(|(link, _)| {
            let name = link.rsplit('/').next().unwrap_or_default();
            is_test(name) || is_test(&format!("{name}/x"))
        })
    }

    /// The role that this path has because a link at the start of the task, which is a check definition, led to it or to
    /// a directory around it.
    fn role_by_a_link(&self, path: &str, definitions: &Definitions) -> Option<Role> {
        let mut roles = self.links_to(path).filter_map(|(link, below)| {
            let below = display_path(below.as_os_str().as_bytes());
            definitions.of_old(format!("{link}/{below}").trim_end_matches('/'))
        });
        roles.find(|role| *role != Role::Test)
    }

    /// The links at the start of the task that led to this path or to a directory around it, with the rest of the path.
    fn links_to<'p>(&'p self, path: &'p str) -> impl Iterator<Item = (&'p str, &'p Path)> {
        let links = self.links.get_or_init(|| {
            let links = self.repo.base_links().unwrap_or_default().into_iter();
            let links = links.map(|path| display_path(&path));
            let with_target = |link: String| match self.entry(&link)? {
                Entry::Link(target) => {
                    let target = target_of(Path::new(&link), Path::new(&target))?;
                    Some((link, target))
                }
                _ => None,
            };
            let links = links.filter_map(with_target);
            links.filter(|(_, to)| !to.as_os_str().is_empty()).collect()
        });
        let all = links.iter();
        all.filter_map(|(link, to)| Some((link.as_str(), Path::new(path).strip_prefix(to).ok()?)))
    }

    /// The paths at the start of the task, sorted.
    fn paths(&self) -> &[String] {
        self.paths.get_or_init(|| {
            let paths = self.repo.base_paths().unwrap_or_default();
            let paths = paths.iter().map(|path| display_path(path));
            let has =
                |path: &String, kind| self.changes.get(path).is_some_and(|it| it.kind == kind);
            let mut paths: BTreeSet<String> = paths.collect();
            if self.tree.is_some() {
                paths.retain(|path| !has(path, ChangeKind::Added));
                let gone = self.changes.keys();
                paths.extend(gone.filter(|path| has(path, ChangeKind::Deleted)).cloned());
            }
            paths.into_iter().collect()
        })
    }

    /// Those below a directory, relative to it.
    fn paths_below(&self, dir: &str) -> impl Iterator<Item = &str> {
        let dir = if dir.is_empty() {
            String::new()
        } else {
            format!("{dir}/")
        };
        let first = self.paths().partition_point(|path| *path < dir);
        let all = self.paths().get(first..).unwrap_or_default().iter();
        let below = all.map(move |path| path.strip_prefix(&dir));
        below.take_while(Option::is_some).flatten()
    }

    /// Whether a new file makes a package of tests that were there, so that Python looks for the modules beside them
    /// in the directory around the package instead, where others of their names are.
    fn is_other_package(&self, path: &str) -> bool {
        let Some(dir) = path.strip_suffix("/__init__.py") else {
            return false;
        };
        let top = self.repo.real().work_tree();
        let is_around = |module: &str| {
            let around = Path::new(dir).ancestors().skip(1);
            around.map(|around| top.join(around)).any(|around| {
                around.join(module).is_dir() || around.join(format!("{module}.py")).exists()
            })
        };
        let modules = self.paths_below(dir).filter(|path| !path.contains('/'));
        let mut modules = modules.filter_map(|path| path.strip_suffix(".py"));
        modules.any(is_around)
    }

    /// The text of a changed file; empty if there is none.
    fn now(&self, change: &Change) -> String {
        let text = self.repo.work_file(&change.path, MAX_BYTES);
        String::from_utf8_lossy(&text.unwrap_or_default()).into_owned()
    }

    fn old(&self, path: &[u8]) -> Option<String> {
        let content = match self.tree {
            Some(tree) => self.repo.file_in(tree, path),
            None => self.repo.base_file(path),
        };
        String::from_utf8(content.ok().flatten()?).ok()
    }

    /// The part of a changed file to restore. The whole file if the change cannot be determined.
    fn restored(&self, path: &[u8], part: Part) -> Option<Restored> {
        if part == Part::Whole {
            return Some(Restored::Old);
        }
        let new = self.repo.work_file(path, MAX_BYTES).map(String::from_utf8);
        match (self.old(path), new) {
            (Some(old), Some(Ok(new))) => part.restored(&old, &new),
            _ => Some(Restored::Old),
        }
    }

    fn below(&self, dir: &str) -> impl Iterator<Item = &Change> {
        let dir = format!("{dir}/");
        let below = self.changes.range(dir.clone()..);
        let below = below.take_while(move |(path, _)| path.starts_with(&dir));
        below.map(|(_, change)| *change)
    }

    fn is_below(&self, path: &str) -> bool {
        self.below(path)
            .any(|change| change.kind != ChangeKind::Added)
    }

    /// Whether a directory exists only because files were added to it.
    fn is_new(&self, dir: &str) -> bool {
        let was_there = || match self.tree {
            Some(_) => self.paths_below(dir).next().is_some(),
            None => self.repo.has_tracked_files(dir),
        };
        self.below(dir).next().is_some() && !was_there()
    }
}

impl Start for Before<'_> {
    fn entry(&self, path: &str) -> Option<Entry> {
        let full = self.repo.real().work_tree().join(path);
        let now = full.symlink_metadata().ok();
        let Some(change) = self.changes.get(path) else {
            if self.is_below(path) {
                return Some(Entry::Directory);
            }
            let now = now?;
            return match now.file_type() {
                kind if kind.is_dir() => (!self.is_new(path)).then_some(Entry::Directory),
                kind if kind.is_symlink() => {
                    let target = fs::read_link(&full).ok()?;
                    Some(Entry::Link(target.to_str()?.to_owned()))
                }
                kind if kind.is_file() => Some(Entry::File {
                    executable: now.permissions().mode() & 0o111 != 0,
                }),
                _ => None,
            };
        };
        let is_link = now.as_ref().is_some_and(|now| now.is_symlink());
        let runs = now.is_some_and(|now| now.permissions().mode() & 0o111 != 0);
        match change.kind {
            ChangeKind::Added => self.is_below(path).then_some(Entry::Directory),
            ChangeKind::Submodule => None,
            ChangeKind::TypeChanged if !is_link => Some(Entry::Link(self.old(&change.path)?)),
            ChangeKind::Modified if is_link => Some(Entry::Link(self.old(&change.path)?)),
            ChangeKind::ModeChanged => Some(Entry::File { executable: !runs }),
            _ => Some(Entry::File { executable: runs }),
        }
    }

    fn read(&self, path: &str) -> Option<String> {
        match self.changes.get(path) {
            Some(change) if change.kind == ChangeKind::Added => None,
            Some(change) => self.old(&change.path),
            None => {
                let content = self.repo.work_file(path.as_bytes(), MAX_BYTES)?;
                String::from_utf8(content).ok()
            }
        }
    }

    fn names_in(&self, dir: &str) -> Vec<String> {
        let names = self
            .paths_below(dir)
            .filter_map(|path| path.split('/').next());
        let names: BTreeSet<&str> = names.collect();
        names.into_iter().map(str::to_owned).collect()
    }

    fn has_tests_below(&self, dir: &str) -> bool {
        let dir = if dir.is_empty() {
            String::new()
        } else {
            format!("{dir}/")
        };
        self.paths_below(dir.trim_end_matches('/'))
            .any(|path| is_test(&format!("{dir}{path}")))
    }
}
