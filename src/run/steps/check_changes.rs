//! What the work has made of that which judges it, and what a proof puts back.

use crate::domain::attempt::TestChanges;
use crate::domain::checks::judges::{
    Judges, Named, Part, Restored, Role, Start, is_product_source, may_rule_by_name, tests_inside,
};
use crate::domain::checks::tests_changed::{holds_tests, is_test, may_rule_others};
use crate::domain::checks::verdict::Check;
use crate::git::{
    BlobReader, Change, ChangeKind, GITLINK, RawSnapshot, Repo, SYMLINK, TreeId, display_path,
};
use crate::run::steps::uncommitted::Uncommitted;
use crate::settings::TaskConfig;
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;

/// The largest file, in bytes, that is read to find out what a check does.
const MAX_BYTES: u64 = 1 << 20;

/// The most files that are searched for the name of data.
const MAX_SEARCHED: usize = 5_000;

/// The changes of what judges, and what a proof puts back.
#[derive(Debug, Default)]
pub struct CheckChanges {
    /// The changes, by file name.
    pub tests: TestChanges,
    /// The files to put back, in order, with the tree to take each from; a file that it does not have goes away.
    pub old: Vec<(Vec<u8>, TreeId)>,
    /// Content of those of which only a part judges: that part as before, the rest as it is now.
    pub mixed: BTreeMap<Vec<u8>, Vec<u8>>,
    /// New tests that cannot rule the others. They go away in a first proof and stay in a second one.
    pub new_tests: BTreeSet<Vec<u8>>,
    /// What the checks see and a fresh checkout of the commit does not have: files that the commit removes
    /// although they still exist, and what git leaves out of it, also if checks made it.
    pub away: BTreeSet<Vec<u8>>,
    /// Why the result of the checks without these changes cannot be known, if that is the case.
    pub unknown: Option<String>,
}

impl CheckChanges {
    /// Whether something else than tests is put back.
    pub fn are_others_than_tests(&self) -> bool {
        !(self.tests.definitions.is_empty() && self.tests.earlier.is_empty())
    }
}

/// What these checks name, determined from the state at the start of the task.
pub fn named_at_start<'c>(
    repo: &Repo,
    raw: &RawSnapshot,
    checks: impl IntoIterator<Item = &'c Check>,
) -> Named {
    let changes = raw.changes.iter().chain(&raw.uncounted).cloned();
    let start = StartTree::new(repo, &Rc::new(repo.blob_reader()), None, changes);
    Named::of(checks.into_iter().map(|check| check.run.as_str()), &start)
}

/// What judges and differs from the start of the task, or from `original`, the tree before the first of the tasks whose
/// work was verified. The plan judges nothing.
pub fn check_changes(
    repo: &Repo,
    raw: &RawSnapshot,
    config: &TaskConfig,
    uncommitted: &Uncommitted,
    original: Option<TreeId>,
    plan: Option<&[u8]>,
) -> CheckChanges {
    let mut found = CheckChanges::default();
    let mut left;
    (found.away, left) = uncommitted.since_start(repo, raw);
    let own = raw.changes.iter().chain(&raw.uncounted).cloned();
    let own = own.filter(|change| Some(change.path.as_slice()) != plan);
    let own: BTreeMap<Vec<u8>, Change> = own.map(|change| (change.path.clone(), change)).collect();
    let all = match original.as_ref().map(|tree| repo.base_since(tree)) {
        None => own.clone(),
        Some(Ok(earlier)) => since_then(earlier, &own),
        Some(Err(error)) => {
            found.unknown = Some(format!("the original tests cannot be read: {error}"));
            found.tests.earlier.push("the original tests".to_owned());
            own.clone()
        }
    };
    let objects = Rc::new(repo.blob_reader());
    let start = StartTree::new(repo, &objects, original.as_ref(), all.into_values());
    let settings = &config.settings;
    let commands = config.checks.iter().map(|check| check.run.as_str());
    let judges = Judges::of(commands, &start, &settings.judges, &settings.product);
    let moved = start.moved(&judges);
    for (path, change) in &start.changes {
        let own = own.get(&change.path);
        if moved.contains(path) || Some(change.path.as_slice()) == plan {
            continue;
        }
        // A file that an earlier task has added was there when this one started.
        let since_base = change.kind == ChangeKind::Added
            && own.is_some_and(|own| own.kind != ChangeKind::Added);
        let at_base = StartTree::new(repo, &objects, None, own.cloned());
        let (start, change) = match own.filter(|_| since_base) {
            Some(own) => (&at_base, own),
            None => (&start, change),
        };
        let is_new_submodule = change.kind == ChangeKind::Added
            && matches!(raw.content(&change.path), Some((GITLINK, _)));
        let role = start.role(&judges, change);
        // A fresh checkout has nothing there, whatever its name is.
        let is_left = is_new_submodule
            || role == Role::Work && (start.is_left(change) || start.is_elsewhere(change, raw));
        if is_left && own.is_some() {
            left.insert(change.path.clone());
        } else if !is_new_submodule {
            note(&mut found, start, own.is_some(), change, role);
        }
    }
    let top = repo.real().work_tree();
    let is_empty =
        |goal: &&String| fs::read_dir(top.join(goal)).is_ok_and(|mut all| all.next().is_none());
    let goals = judges.named.goals.iter().filter(is_empty);
    left.extend(goals.map(|goal| goal.as_bytes().to_vec()));
    let packages = uncommitted.installed().changed(top, false).into_iter();
    let (there, gone): (Vec<String>, Vec<String>) =
        packages.partition(|path| top.join(path).symlink_metadata().is_ok());
    left.extend(there.into_iter().map(String::into_bytes));
    let shadowing = uncommitted.shadowing_programs(repo, &judges.named);
    for path in shadowing.into_iter().chain(gone) {
        found.unknown = Some(format!(
            "{path} is used by the checks, is not committed, and changed since the task started"
        ));
        found.tests.definitions.push(path);
    }
    found.tests.left = left.iter().map(|path| display_path(path)).collect();
    found.away.append(&mut left);
    found.tests.digest = digest(&found.tests, raw);
    found
}

/// The changes since an earlier tree, of those between it and the base and those of the task.
fn since_then(earlier: Vec<Change>, own: &BTreeMap<Vec<u8>, Change>) -> BTreeMap<Vec<u8>, Change> {
    use ChangeKind as K;
    let earlier = earlier.into_iter();
    let earlier = earlier.map(|change| (change.path.clone(), change));
    let mut all: BTreeMap<Vec<u8>, Change> = earlier.collect();
    for change in own.values() {
        let before = all.get(&change.path).map(|before| before.kind);
        let kind = match (before, change.kind) {
            (Some(K::Added), K::Deleted) => {
                all.remove(&change.path);
                continue;
            }
            (Some(K::Added), _) => K::Added,
            (None, kind) | (Some(_), kind @ (K::Deleted | K::TypeChanged)) => kind,
            (Some(K::TypeChanged), _) => K::TypeChanged,
            (Some(_), _) => K::Modified,
        };
        let mut change = change.clone();
        change.kind = kind;
        all.insert(change.path.clone(), change);
    }
    all
}

/// Notes a change of a path with this role. `is_own` says that the task has made it.
fn note(
    found: &mut CheckChanges,
    start: &StartTree<'_>,
    is_own: bool,
    change: &Change,
    role: Role,
) {
    let path = display_path(&change.path);
    let is_new = change.kind == ChangeKind::Added;
    let (names, rules) = match role {
        Role::Work | Role::Data => return,
        // No commit contains it: it is moved away for the proof.
        _ if is_new && change.newly_ignored => return,
        Role::Test if is_new => {
            let rules = start.has_tests()
                && (may_rule_by_name(&path) || may_rule_others(&path, &start.now(change)));
            if is_own {
                found.tests.added.push(path.clone());
            }
            (&mut found.tests.definitions, rules)
        }
        Role::Test => (&mut found.tests.changed, true),
        Role::Judge(part) => {
            let restored = match change.kind {
                ChangeKind::Modified => start.restored(&change.path, part),
                // A new file counts if it has a part that judges.
                ChangeKind::Added if part != Part::Whole => {
                    let new = start.now(change);
                    let decides = part.restored(part.empty(), &new).is_some();
                    decides.then_some(Restored::Old)
                }
                // A source that is gone counts if there were tests in it.
                ChangeKind::Deleted if part == Part::RustTests => {
                    let old = start.old(&change.path).unwrap_or_default();
                    part.restored(&old, "").map(|_| Restored::Old)
                }
                _ => Some(Restored::Old),
            };
            if let Some(Restored::Mixed(text)) = &restored {
                let text = text.clone().into_bytes();
                found.mixed.insert(change.path.clone(), text);
            }
            (&mut found.tests.definitions, restored.is_some())
        }
    };
    if rules {
        (if is_own {
            names
        } else {
            &mut found.tests.earlier
        })
        .push(path);
        found.old.push((change.path.clone(), start.tree.clone()));
    } else if role == Role::Test && is_own {
        found.new_tests.insert(change.path.clone());
    }
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
fn digest(tests: &TestChanges, raw: &RawSnapshot) -> String {
    if !tests.are_tests_touched() {
        return String::new();
    }
    let mut hasher = blake3::Hasher::new();
    for path in tests.changed.iter().chain(&tests.added) {
        hasher.update(path.as_bytes()).update(&[0]);
        if let Some((mode, digest)) = raw.content(path.as_bytes()) {
            hasher.update(&mode.to_le_bytes()).update(&digest);
        }
    }
    hasher.finalize().to_hex().to_string()
}

/// The state before the changes.
struct StartTree<'r> {
    repo: &'r Repo,
    /// One process of git reads all files.
    objects: Rc<BlobReader<'r>>,
    tree: TreeId,
    /// Whether the tree is the base.
    is_base: bool,
    changes: BTreeMap<String, Change>,
    paths: OnceCell<Vec<String>>,
    /// The links before the changes, with their targets in the work tree.
    links: OnceCell<Vec<(String, PathBuf)>>,
}

impl<'r> StartTree<'r> {
    fn new(
        repo: &'r Repo,
        objects: &Rc<BlobReader<'r>>,
        tree: Option<&TreeId>,
        changes: impl IntoIterator<Item = Change>,
    ) -> Self {
        let changes = changes.into_iter();
        let changes = changes.map(|change| (display_path(&change.path), change));
        Self {
            repo,
            objects: Rc::clone(objects),
            tree: tree.cloned().unwrap_or_else(|| repo.base_tree()),
            is_base: tree.is_none(),
            changes: changes.collect(),
            paths: OnceCell::new(),
            links: OnceCell::new(),
        }
    }

    /// How a changed path affects the checks.
    fn role(&self, judges: &Judges, change: &Change) -> Role {
        let path = display_path(&change.path);
        let is_new = change.kind == ChangeKind::Added;
        let role = match change.kind {
            // Whatever is put back into the directory takes its place again.
            ChangeKind::Added if self.is_directory(&path) => Role::Work,
            ChangeKind::Added => judges.of_new(&path),
            // A submodule counts as what is below it.
            ChangeKind::Submodule if is_test(&format!("{path}/x")) => Role::Test,
            ChangeKind::Submodule => Role::Work,
            _ => judges.of_old(&path),
        };
        let role = match role {
            Role::Test | Role::Judge(Part::Whole) if judges.is_of_product(&path, self) => {
                Role::Work
            }
            role => role,
        };
        match role {
            Role::Work if !is_new => {
                let old = self.old(&change.path).unwrap_or_default();
                if holds_tests(&path, &old) || judges.is_helper(&path, &old, self) {
                    return Role::Test;
                }
                let by_link = self.role_by_a_link(&path, judges);
                let inside = tests_inside(&path).map(Role::Judge);
                by_link.or(inside).unwrap_or(role)
            }
            Role::Data if self.is_of_work(judges, &path, is_new) => Role::Work,
            Role::Data => Role::Judge(Part::Whole),
            // A package in a new directory brings its own manifest.
            Role::Judge(part) if part != Part::Whole && is_new => {
                let dir = path.rsplit_once('/').map(|(dir, _)| dir);
                let is_apart = dir.is_some_and(|dir| !self.is_directory(dir));
                if is_apart { Role::Work } else { role }
            }
            role => role,
        }
    }

    /// Whether product code names data, and no test and no check does. What was there before must have been named before,
    /// or a comment would be enough. A program without an ending is also the work if tests name it.
    fn is_of_work(&self, judges: &Judges, data: &str, is_new: bool) -> bool {
        let name = data.rsplit('/').next().unwrap_or(data);
        let has_ending = name.contains('.');
        let slash = if has_ending { "" } else { "/" };
        let name = format!("{slash}{name}");
        let is_script = || self.read(data).is_some_and(|text| text.starts_with("#!"));
        let is_program = !has_ending && !is_new && is_script();
        let mut words = judges.named.words.iter();
        if !is_program && words.any(|word| word.contains(&name)) {
            return false;
        }
        let mut is_named = false;
        let new = self.changes.keys().filter(|_| is_new);
        for path in self.paths().iter().chain(new).take(MAX_SEARCHED) {
            let text = match self.changes.get(path).filter(|_| is_new) {
                Some(change) => self.now(change),
                None => self.read(path).unwrap_or_default(),
            };
            if path == data || !text.contains(&name) {
                continue;
            }
            match judges.of_old(path) {
                Role::Work => is_named |= is_product_source(path),
                Role::Test if is_program => is_named = true,
                Role::Test | Role::Judge(_) if !is_program => return false,
                _ => {}
            }
        }
        is_named
    }

    /// Files that only moved, with both of their paths: their content, their name and the first directory are the same,
    /// and they judge in the same way.
    fn moved(&self, judges: &Judges) -> BTreeSet<String> {
        let name = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
        let all = || self.changes.iter();
        let of_kind = |kind| all().filter(move |(_, change)| change.kind == kind);
        let mut moved = BTreeSet::new();
        for (from, gone) in of_kind(ChangeKind::Deleted) {
            let old = OnceCell::new();
            let old = || old.get_or_init(|| self.old_bytes(&gone.path)).as_ref();
            let to = of_kind(ChangeKind::Added).find(|(to, new)| {
                (name(to) == name(from) || from.ends_with(".rs") && to.ends_with(".rs"))
                    && to.split('/').next() == from.split('/').next()
                    && judges.of_old(to) == judges.of_old(from)
                    && !moved.contains(*to)
                    && old().is_some()
                    && old() == self.repo.work_file(&new.path, MAX_BYTES).as_ref()
            });
            if let Some((to, _)) = to {
                moved.extend([from.clone(), to.clone()]);
            }
        }
        moved
    }

    /// Whether the commit removes a file that still exists in the work tree, and not only behind a link.
    fn is_left(&self, change: &Change) -> bool {
        let top = self.repo.real().work_tree();
        let path = Path::new(OsStr::from_bytes(&change.path));
        let meta = top.join(path).symlink_metadata();
        let dirs = || path.ancestors().skip(1).filter(|dir| *dir != Path::new(""));
        change.kind == ChangeKind::Deleted
            && meta.is_ok_and(|meta| meta.is_file() || meta.is_symlink())
            && !dirs().any(|dir| top.join(dir).is_symlink())
    }

    /// Whether a change is a link out of the work tree: a fresh checkout has something else there, or nothing.
    fn is_elsewhere(&self, change: &Change, raw: &RawSnapshot) -> bool {
        let path = Path::new(OsStr::from_bytes(&change.path));
        let target = fs::read_link(self.repo.real().work_tree().join(path));
        matches!(raw.content(&change.path), Some((SYMLINK, _)))
            && target.is_ok_and(|target| target_of(path, &target).is_none())
    }

    /// The role that this path has because a link led to it or to a directory around it. What a link inside of a
    /// directory of tests leads to is mostly the work.
    fn role_by_a_link(&self, path: &str, judges: &Judges) -> Option<Role> {
        let links = self.links.get_or_init(|| {
            let links = self.repo.base_links().unwrap_or_default().into_iter();
            let with_target = |path: Vec<u8>| {
                let link = display_path(&path);
                let target = match self.changes.get(&link) {
                    Some(_) => PathBuf::from(self.old(&path)?),
                    None => fs::read_link(self.repo.real().work_tree().join(&link)).ok()?,
                };
                let target = target_of(Path::new(&link), &target)?;
                (!target.as_os_str().is_empty()).then_some((link, target))
            };
            links.filter_map(with_target).collect()
        });
        links.iter().find_map(|(link, target)| {
            let below = Path::new(path).strip_prefix(target).ok()?;
            let name = link.rsplit('/').next().unwrap_or_default();
            let at_link = Path::new(link).join(below);
            match judges.of_old(at_link.to_string_lossy().trim_end_matches('/')) {
                Role::Test if is_test(name) || is_test(&format!("{name}/x")) => Some(Role::Test),
                role @ Role::Judge(_) if !is_test(link) => Some(role),
                _ => None,
            }
        })
    }

    fn has_tests(&self) -> bool {
        self.paths().iter().any(|path| is_test(path))
    }

    /// The text of a changed file; empty if there is none.
    fn now(&self, change: &Change) -> String {
        let text = self.repo.work_file(&change.path, MAX_BYTES);
        String::from_utf8_lossy(&text.unwrap_or_default()).into_owned()
    }

    fn old_bytes(&self, path: &[u8]) -> Option<Vec<u8>> {
        self.objects.file_in(&self.tree, path).ok().flatten()
    }

    fn old(&self, path: &[u8]) -> Option<String> {
        String::from_utf8(self.old_bytes(path)?).ok()
    }

    /// The part of a changed file to restore. The whole file if the change cannot be determined.
    fn restored(&self, path: &[u8], part: Part) -> Option<Restored> {
        if part == Part::Whole {
            return Some(Restored::Old);
        }
        let new = self.repo.work_file(path, MAX_BYTES);
        let new = new.and_then(|new| String::from_utf8(new).ok());
        match self.old(path).zip(new) {
            Some((old, new)) => part.restored(&old, &new),
            None => Some(Restored::Old),
        }
    }
}

impl Start for StartTree<'_> {
    fn is_file(&self, path: &str) -> bool {
        match self.changes.get(path) {
            Some(change) => change.kind != ChangeKind::Added,
            None => {
                let meta = self.repo.real().work_tree().join(path).symlink_metadata();
                meta.is_ok_and(|meta| !meta.is_dir())
            }
        }
    }

    fn is_directory(&self, path: &str) -> bool {
        let below = format!("{path}/");
        let of_changes = self.changes.range(below.clone()..);
        let mut of_changes = of_changes.take_while(|(known, _)| known.starts_with(&below));
        if self.is_base {
            return self.repo.has_tracked_files(path);
        }
        let is_below = |known: &String| known.starts_with(&below);
        of_changes.any(|(_, change)| change.kind != ChangeKind::Added)
            || self.paths().iter().any(is_below)
    }

    fn paths(&self) -> &[String] {
        self.paths.get_or_init(|| {
            let paths = self.repo.base_paths().unwrap_or_default();
            let mut paths: BTreeSet<String> = paths.iter().map(|path| display_path(path)).collect();
            for (path, change) in self.changes.iter().filter(|_| !self.is_base) {
                match change.kind {
                    ChangeKind::Added => drop(paths.remove(path)),
                    ChangeKind::Deleted => drop(paths.insert(path.clone())),
                    _ => {}
                }
            }
            paths.into_iter().collect()
        })
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
}
