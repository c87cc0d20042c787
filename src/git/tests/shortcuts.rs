//! A snapshot omits git commands where nothing can have changed, and still misses nothing.

use super::support::*;
use crate::git::ChangeKind::*;
use crate::git::private::calls::HeadState;
use crate::git::{CommitRequest, Environment, Real, Repo, Stage, discover};
use crate::permit::Committable;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// A repository whose git logs every command to a file.
struct Counted<'a> {
    place: &'a Worktree,
    work_tree: PathBuf,
}

impl<'a> Counted<'a> {
    fn new(place: &'a Worktree) -> Self {
        let work_tree = place.root().join("w");
        Self { place, work_tree }
    }

    #[expect(clippy::disallowed_methods, reason = "tests read PATH to find git")]
    fn find(&self) -> Real {
        let root = self.place.root();
        let search_path = std::env::var_os("PATH").unwrap();
        let git = std::env::split_paths(&search_path)
            .map(|dir| dir.join("git"))
            .find(|path| path.is_file())
            .unwrap();
        let bin = root.join("bin");
        let script = format!(
            "#!/bin/sh\necho \"$1\" >> '{}'\nexec '{}' \"$@\"\n",
            root.join("log").display(),
            git.display()
        );
        write_program(&bin.join("git"), &script);
        let dirs = std::iter::once(bin).chain(std::env::split_paths(&search_path));
        let environment = Environment::new([
            ("PATH".into(), std::env::join_paths(dirs).unwrap()),
            ("HOME".into(), root.join("home").into_os_string()),
            ("GIT_CONFIG_NOSYSTEM".into(), "1".into()),
        ]);
        discover(&self.work_tree, &environment).unwrap()
    }

    fn open(&self) -> Repo {
        Repo::create(self.find(), &self.place.root().join("counted")).unwrap()
    }

    /// The git commands that one action runs, by name.
    fn commands<T>(&self, action: impl FnOnce() -> T) -> (T, Vec<String>) {
        let log = self.place.root().join("log");
        fs::write(&log, "").unwrap();
        let result = action();
        let noted = fs::read_to_string(log).unwrap();
        (result, noted.lines().map(str::to_owned).collect())
    }
}

fn changes(repo: &Repo) -> Vec<(String, crate::git::ChangeKind)> {
    named(&repo.snapshot(&Default::default()).unwrap().changes)
}

#[test]
fn a_tree_that_was_seen_before_costs_few_commands() {
    let g = Worktree::new();
    let counted = Counted::new(&g);
    let repo = counted.open();
    let expected = changed(&[("a", Modified), ("new", Added)]);
    g.write("a", "edited\n");
    g.write("new", "1");
    let (first, asked) = counted.commands(|| changes(&repo));
    assert_eq!(first, expected);
    assert_eq!(asked.len(), 4, "{asked:?}");
    let (again, mut asked) = counted.commands(|| changes(&repo));
    asked.sort();
    assert_eq!(
        (again, asked.join(" ")),
        (expected.clone(), "diff-index rev-parse status".to_owned())
    );
    g.git(&["add", "a"]);
    let (staged, mut asked) = counted.commands(|| changes(&repo));
    asked.retain(|command| command == "diff-index");
    assert_eq!((staged, asked.len()), (expected, 1));
}

#[test]
fn what_the_index_of_the_start_hides_or_adds_is_seen() {
    let g = Worktree::new();
    g.write("kept", "1");
    g.git(&["add", "."]);
    g.git(&["commit", "-qm", "kept"]);
    for (made, undone) in [
        (["add", "-N", "intended"], ["rm", "--cached", "intended"]),
        (["rm", "--cached", "kept"], ["add", "--", "kept"]),
        (
            ["update-index", "--assume-unchanged", "kept"],
            ["update-index", "--no-assume-unchanged", "kept"],
        ),
        (
            ["update-index", "--skip-worktree", "kept"],
            ["update-index", "--no-skip-worktree", "kept"],
        ),
    ] {
        g.write("intended", "1");
        g.git(&made);
        let place = tempfile::tempdir().unwrap();
        let real = discover(&g.path("."), &environment(g.root())).unwrap();
        let repo = Repo::create(real, &place.path().join("p")).unwrap();
        g.write("kept", "2");
        let expected = changed(&[("intended", Added), ("kept", Modified)]);
        assert_eq!(changes(&repo), expected, "{made:?}");
        g.write("kept", "1");
        g.git(&undone);
    }
}

#[test]
fn after_a_commit_of_ours_the_index_of_the_base_is_not_listed_anew() {
    let g = Worktree::new();
    let counted = Counted::new(&g);
    let mut repo = counted.open();
    for directory in ["", "dir/below/"] {
        g.write(format!("{directory}new"), "1");
        land(&mut repo);
        g.write("a", "again");
        let (seen, asked) = counted.commands(|| changes(&repo));
        assert_eq!(seen, changed(&[("a", Modified)]));
        assert!(!asked.contains(&"ls-files".to_owned()), "{asked:?}");
        g.git(&["checkout", "-q", "--", "a"]);
        // New rules beside a committed file hide nothing.
        let rules = format!("{directory}.gitignore");
        g.write(&rules, "hidden\n.gitignore\n");
        g.write(format!("{directory}hidden"), "1");
        let found = named(&repo.snapshot(&Default::default()).unwrap().changes);
        let hidden = (format!("{directory}hidden"), Added);
        assert!(found.contains(&hidden), "{found:?}");
        g.remove(&rules);
        g.remove(&format!("{directory}hidden"));
    }
    g.remove("new");
    land(&mut repo);
    let (_, asked) = counted.commands(|| changes(&repo));
    assert!(asked.contains(&"ls-files".to_owned()), "{asked:?}");
}

/// Commits the work tree.
fn land(repo: &mut Repo) {
    let snapshot = repo.snapshot(&Default::default()).unwrap();
    let request = CommitRequest {
        parent: repo.base(),
        merged: None,
        snapshot: &snapshot,
        plan: None,
    };
    let permit = Committable::verified(snapshot.known.tree.clone());
    let Stage::Ready(staged) = repo.stage(permit, &request).unwrap() else {
        panic!("nothing to commit")
    };
    let intent = repo.commit_tree(staged, "x", &identity()).unwrap();
    repo.land(&intent).unwrap();
}

#[test]
fn a_forged_index_with_the_size_and_time_of_the_last_look_is_read() {
    let g = Worktree::new();
    g.write(".gitignore", "*.log\n");
    g.git(&["add", "."]);
    g.git(&["commit", "-qm", "ignore"]);
    let f = g.start();
    f.write("x.log", "log");
    f.write("y.log", "log");
    f.git(&["add", "-f", "x.log"]);
    assert_eq!(f.changes(), changed(&[("x.log", Added)]));
    let index = f.path(".git/index");
    let before = fs::metadata(&index).unwrap();
    let seen = fs::read(&index).unwrap();
    f.git(&["rm", "-q", "--cached", "x.log"]);
    f.git(&["add", "-f", "y.log"]);
    let forged = fs::read(&index).unwrap();
    assert_eq!((forged.len() as u64, forged == seen), (before.len(), false));
    fs::write(&index, seen).unwrap();
    assert_eq!(f.changes(), changed(&[("x.log", Added)]));
    fs::write(&index, forged).unwrap();
    let file = fs::File::options().write(true).open(&index).unwrap();
    file.set_modified(before.modified().unwrap()).unwrap();
    assert_eq!(f.changes(), changed(&[("y.log", Added)]));
}

#[test]
fn an_index_in_parts_behind_a_link_or_gone_is_left_to_git() {
    let g = Worktree::new();
    g.write(".gitignore", "*.log\n");
    g.git(&["add", "."]);
    g.git(&["commit", "-qm", "ignore"]);
    let f = g.start();
    f.write("x.log", "log");
    f.write("y.log", "log");
    f.git(&["update-index", "--split-index"]);
    f.git(&["add", "-f", "x.log"]);
    assert_eq!(f.changes(), changed(&[("x.log", Added)]), "split");
    f.git(&["update-index", "--no-split-index"]);
    f.git(&["add", "-f", "y.log"]);
    fs::rename(f.path(".git/index"), f.root().join("elsewhere")).unwrap();
    symlink(f.root().join("elsewhere"), f.path(".git/index")).unwrap();
    let both = changed(&[("x.log", Added), ("y.log", Added)]);
    assert_eq!(f.changes(), both, "link");
    f.remove(".git/index");
    assert_eq!(f.changes(), [], "gone");
    f.write(".git/index", "garbage");
    let snapshot = f.snapshot();
    assert_eq!(named(&snapshot.changes), []);
    assert_eq!(snapshot.warnings.len(), 1, "{:?}", snapshot.warnings);
}

#[test]
fn other_attributes_than_those_of_the_base_are_asked_about_even_when_ignored() {
    let g = Worktree::new();
    g.write(".gitattributes", "*.txt text\n");
    g.write(".gitignore", "/dir/.gitattributes\n");
    g.write("dir/x.txt", "one\n");
    g.git(&["add", "."]);
    g.git(&["commit", "-qm", "attributes"]);
    let f = g.start();
    f.write("dir/x.txt", "one\r\n");
    assert_eq!(f.changes(), [], "only line endings");
    f.write("dir/.gitattributes", "*.txt -text\n");
    assert_eq!(f.changes(), changed(&[("dir/x.txt", Modified)]));
    f.remove("dir/.gitattributes");
    assert_eq!(f.changes(), []);
}

/// HEAD as read by an ordinary git.
fn heads_of_git(place: &Worktree, dir: &Path) -> HeadState {
    let ask = |args: &[&str]| {
        let output = try_git(place.root(), dir, args, b"");
        let text = String::from_utf8(output.stdout).unwrap();
        output.status.success().then(|| text.trim_end().to_owned())
    };
    HeadState {
        branch: ask(&["symbolic-ref", "-q", "HEAD"]),
        oid: ask(&["rev-parse", "-q", "--verify", "HEAD"]),
    }
}

#[test]
fn head_and_refs_are_what_an_ordinary_git_says() {
    let git = |args: &'static [&'static str]| move |g: &Worktree| drop(g.git(args));
    let chain = |g: &Worktree| {
        g.git(&["symbolic-ref", "refs/heads/alias", "refs/heads/main"]);
        g.git(&["symbolic-ref", "HEAD", "refs/heads/alias"]);
    };
    let arrange: [&dyn Fn(&Worktree); 7] = [
        &|_| {},
        &git(&["checkout", "-q", "--detach"]),
        &git(&["pack-refs", "--all"]),
        &git(&["checkout", "-qb", "odd@name"]),
        &git(&["checkout", "-q", "--orphan", "new"]),
        &git(&["symbolic-ref", "refs/heads/x", "refs/heads/none"]),
        &chain,
    ];
    for arrange in arrange {
        let g = Worktree::new();
        let repo = g.open();
        arrange(&g);
        let (refs, head) = repo.refs_and_head().unwrap();
        assert_eq!(head, heads_of_git(&g, &g.path(".")));
        assert_eq!(repo.head_state().unwrap(), head);
        let listed = try_git(g.root(), &g.path("."), &["for-each-ref"], b"").stdout;
        assert_eq!(
            refs.len(),
            String::from_utf8(listed).unwrap().lines().count()
        );
    }
}

#[test]
fn the_commit_of_a_submodule_is_read_from_its_repository() {
    let g = Worktree::new();
    g.add_submodule("sub");
    let repo = g.open();
    g.git(&["-C", "sub", "checkout", "-q", "--detach"]);
    assert_eq!(changes(&repo), []);
    g.commit_in_submodule("sub");
    assert_eq!(changes(&repo), changed(&[("sub", Submodule)]));
    fs::remove_dir_all(g.path(".git/modules/sub/objects")).unwrap();
    assert_eq!(changes(&repo), [], "no repository any more");
}

#[test]
fn packed_refs_that_git_refuses_are_refused() {
    for line in ["^garbage", "# comment", "^", "no line"] {
        let g = Worktree::new();
        g.git(&["tag", "-am", "one", "v1.0"]);
        g.git(&["pack-refs", "--all"]);
        let repo = g.open();
        let packed = fs::read_to_string(g.path(".git/packed-refs")).unwrap();
        g.write(".git/packed-refs", format!("{packed}{line}\n"));
        assert!(repo.refs_and_head().is_err(), "{line}");
    }
}
