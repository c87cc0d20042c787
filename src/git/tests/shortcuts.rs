//! A snapshot omits git commands where nothing can have changed, and still misses nothing.

use super::support::*;
use crate::git::ChangeKind::*;
use crate::git::private::calls::real_call;
use crate::git::private::head::{HeadState, read_head};
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

    fn head(&self, real: &Real) -> (HeadState, Vec<String>) {
        self.commands(|| read_head(&real_call(real, self.place.root())).unwrap())
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
fn a_tree_that_was_seen_before_costs_one_command() {
    let g = Worktree::new();
    g.write(".gitattributes", "*.txt text\n");
    g.write("lines.txt", "one\n");
    g.git(&["add", "."]);
    g.git(&["commit", "-qm", "attributes"]);
    let counted = Counted::new(&g);
    let repo = counted.open();
    let expected = changed(&[("a", Modified), ("b", Modified), ("new", Added)]);
    g.write("a", "edited\n");
    g.write("b", "B\n");
    g.write("new", "1");
    g.write("lines.txt", "one\r\n");
    let (first, asked) = counted.commands(|| changes(&repo));
    assert_eq!(first, expected);
    for command in ["status", "cat-file", "diff"] {
        assert!(asked.contains(&command.to_owned()), "{command}: {asked:?}");
    }
    // Both were read when the private directory was made.
    for command in ["ls-files", "diff-index"] {
        assert!(!asked.contains(&command.to_owned()), "{asked:?}");
    }
    let (again, asked) = counted.commands(|| changes(&repo));
    assert_eq!(
        (again, asked),
        (expected.clone(), vec!["status".to_owned()])
    );

    g.write("b", "b\r\n");
    let (_, asked) = counted.commands(|| changes(&repo));
    assert!(
        asked.contains(&"diff".to_owned()),
        "other content: {asked:?}"
    );
    g.write("b", "B\n");
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
fn a_commit_of_ours_leaves_nothing_to_be_read_anew() {
    let g = Worktree::new();
    let counted = Counted::new(&g);
    let mut repo = counted.open();
    for directory in ["", "dir/below/"] {
        g.write(format!("{directory}new"), "1");
        land(&mut repo);
        g.write("a", "again");
        let (seen, asked) = counted.commands(|| changes(&repo));
        assert_eq!(seen, changed(&[("a", Modified)]));
        for command in ["ls-files", "diff-index"] {
            assert!(!asked.contains(&command.to_owned()), "{asked:?}");
        }
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

/// Brings HEAD into a state, and checks how many commands it takes to read it.
fn head_takes(format: &str, arrange: impl FnOnce(&Worktree), commands: usize) {
    let g = Worktree::with_format(format);
    g.write("a", "a\n");
    g.git(&["add", "."]);
    g.git(&["commit", "-qm", "start"]);
    let counted = Counted::new(&g);
    let real = counted.find();
    arrange(&g);
    let (head, asked) = counted.head(&real);
    assert_eq!(head, heads_of_git(&g, &g.path(".")));
    assert_eq!(asked.len(), commands, "{asked:?}");
}

const SHA1: &str = "--object-format=sha1";

#[test]
fn a_plain_head_is_read_without_git() {
    for format in [SHA1, "--object-format=sha256"] {
        head_takes(format, |_| {}, 0);
        head_takes(format, |g| drop(g.git(&["checkout", "-q", "--detach"])), 0);
        head_takes(format, |g| drop(g.git(&["pack-refs", "--all"])), 0);
    }
    let moved_after_packing = |g: &Worktree| {
        g.git(&["pack-refs", "--all"]);
        g.git(&["commit", "-q", "--allow-empty", "-m", "later"]);
    };
    head_takes(SHA1, moved_after_packing, 0);
    head_takes(
        SHA1,
        |g| drop(g.git(&["checkout", "-qb", "feature/ä-1.x"])),
        0,
    );
}

#[test]
fn any_other_head_is_what_git_says() {
    let head = |content: &'static [u8]| move |g: &Worktree| g.write(".git/HEAD", content);
    head_takes(
        SHA1,
        |g| drop(g.git(&["checkout", "-q", "--orphan", "new"])),
        3,
    );
    head_takes(SHA1, |g| drop(g.git(&["checkout", "-qb", "odd@name"])), 1);
    head_takes(SHA1, head(b"ref:  refs/heads/main\n"), 1);
    head_takes(SHA1, head(b"ref: refs/heads/../../../outside\n"), 3);
    head_takes(SHA1, head(b"garbage\n"), 3);
    head_takes(SHA1, head(b""), 3);
    head_takes(SHA1, head(&[b'a'; 10_000]), 3);
    head_takes(SHA1, head(&[b'0'; 40]), 1);
    let link = |g: &Worktree| {
        g.remove(".git/HEAD");
        symlink("refs/heads/main", g.path(".git/HEAD")).unwrap();
    };
    head_takes(SHA1, link, 1);
    let ref_to_a_ref = |g: &Worktree| {
        g.git(&["symbolic-ref", "refs/heads/alias", "refs/heads/main"]);
        g.git(&["symbolic-ref", "HEAD", "refs/heads/alias"]);
    };
    head_takes(SHA1, ref_to_a_ref, 1);
    let linked_ref = |g: &Worktree| {
        fs::rename(g.path(".git/refs/heads/main"), g.root().join("main")).unwrap();
        symlink(g.root().join("main"), g.path(".git/refs/heads/main")).unwrap();
    };
    head_takes(SHA1, linked_ref, 1);
    let packed_twice = |g: &Worktree| {
        g.git(&["pack-refs", "--all"]);
        let packed = g.read(".git/packed-refs");
        let line = packed.lines().last().unwrap();
        g.write(".git/packed-refs", format!("{packed}{line}\n"));
    };
    head_takes(SHA1, packed_twice, 1);
}

#[test]
fn plain_files_beside_reftables_are_not_believed() {
    let format = "--ref-format=reftable";
    if !git_knows(format) {
        return;
    }
    head_takes(format, |_| {}, 1);
    let forged = |g: &Worktree| {
        let old = g.git(&["rev-parse", "HEAD"]);
        g.git(&["commit", "-q", "--allow-empty", "-m", "hidden"]);
        fs::remove_file(g.path(".git/refs/heads")).unwrap();
        g.write(".git/refs/heads/main", format!("{old}\n"));
        g.write(".git/HEAD", "ref: refs/heads/main\n");
    };
    head_takes(format, forged, 1);
}

#[test]
fn a_linked_work_tree_has_its_own_head_and_shares_branches() {
    let g = Worktree::new();
    g.git(&["worktree", "add", "-q", "../linked", "-b", "other"]);
    let counted = Counted {
        place: &g,
        work_tree: g.root().join("linked"),
    };
    let real = counted.find();
    for pack in [false, true] {
        if pack {
            g.git(&["pack-refs", "--all"]);
        }
        let (head, asked) = counted.head(&real);
        assert_eq!(head, heads_of_git(&g, &counted.work_tree));
        assert_eq!(head.branch.as_deref(), Some("refs/heads/other"));
        assert_eq!(asked, Vec::<String>::new());
    }
}

#[test]
fn a_submodules_commit_is_read_without_git() {
    let g = Worktree::new();
    g.add_submodule("sub");
    let counted = Counted::new(&g);
    let repo = counted.open();
    changes(&repo);
    g.git(&["-C", "sub", "checkout", "-q", "--detach"]);
    let (found, asked) = counted.commands(|| changes(&repo));
    assert_eq!((found, asked), (vec![], vec!["status".to_owned()]));
    g.commit_in_submodule("sub");
    let (found, asked) = counted.commands(|| changes(&repo));
    assert_eq!(found, changed(&[("sub", Submodule)]));
    assert_eq!(asked, ["status"]);
    fs::remove_dir_all(g.path(".git/modules/sub/objects")).unwrap();
    assert_eq!(changes(&repo), [], "no repository any more");
}

/// Brings the refs into a state, and checks that they are read as git lists them, with or without git.
fn refs_take(format: &str, arrange: impl FnOnce(&Worktree), commands: usize) {
    let g = Worktree::with_format(format);
    g.write("a", "a\n");
    g.git(&["add", "."]);
    g.git(&["commit", "-qm", "start"]);
    g.git(&["branch", "feature/x"]);
    g.git(&["tag", "-am", "one", "v1.0"]);
    let counted = Counted::new(&g);
    let repo = counted.open();
    arrange(&g);
    let (refs, asked) = counted.commands(|| repo.refs().unwrap());
    let format = "--format=%(refname) %(objectname) %(symref).";
    let listed = g.git(&["for-each-ref", format]);
    let shown = |(name, value): (&String, &String)| match value.strip_prefix("ref:") {
        Some(target) => format!("{name} {} {target}.", g.git(&["rev-parse", name])),
        None => format!("{name} {value} ."),
    };
    let refs: Vec<String> = refs.iter().map(shown).collect();
    assert_eq!(refs, listed.lines().collect::<Vec<_>>());
    assert_eq!(asked.len(), commands, "{asked:?}");
}

#[test]
fn plain_refs_are_read_without_git() {
    for format in [SHA1, "--object-format=sha256"] {
        refs_take(format, |_| {}, 0);
        refs_take(format, |g| drop(g.git(&["pack-refs", "--all"])), 0);
    }
    let moved_after_packing = |g: &Worktree| {
        g.git(&["pack-refs", "--all"]);
        g.git(&["commit", "-q", "--allow-empty", "-m", "later"]);
        g.git(&["branch", "-D", "-q", "feature/x"]);
    };
    refs_take(SHA1, moved_after_packing, 0);
    let symbolic = |g: &Worktree| {
        g.git(&[
            "symbolic-ref",
            "refs/remotes/origin/HEAD",
            "refs/heads/main",
        ]);
    };
    refs_take(SHA1, symbolic, 0);
}

#[test]
fn any_other_refs_are_what_git_says() {
    let symbolic = |name: &'static str, target: &'static str| {
        move |g: &Worktree| drop(g.git(&["symbolic-ref", name, target]))
    };
    refs_take(SHA1, symbolic("refs/heads/x", "refs/heads/none"), 1);
    let chain = |g: &Worktree| {
        symbolic("refs/heads/x", "refs/heads/main")(g);
        symbolic("refs/heads/y", "refs/heads/x")(g);
    };
    refs_take(SHA1, chain, 1);
    refs_take(SHA1, |g| drop(g.git(&["branch", "odd@name"])), 1);
    let file = |name: &'static str, content: &'static str| {
        move |g: &Worktree| g.write(format!(".git/refs/heads/{name}"), content)
    };
    refs_take(SHA1, file("x", "garbage\n"), 1);
    refs_take(SHA1, file("x", ""), 1);
    refs_take(SHA1, file("main.lock", ""), 1);
    refs_take(SHA1, file(".hidden", ""), 1);
    let link = |g: &Worktree| symlink("main", g.path(".git/refs/heads/x")).unwrap();
    refs_take(SHA1, link, 1);
    let both = |g: &Worktree| {
        g.git(&["pack-refs", "--all"]);
        let head = g.git(&["rev-parse", "HEAD"]);
        g.write(".git/refs/heads/main/below", format!("{head}\n"));
    };
    refs_take(SHA1, both, 0);
    let missing = |g: &Worktree| {
        let none = "1".repeat(40);
        g.write(".git/refs/heads/x", format!("{none}\n"));
    };
    refs_take(SHA1, missing, 0);
    let elsewhere = |g: &Worktree| {
        fs::rename(g.path(".git/refs"), g.root().join("refs")).unwrap();
        symlink(g.root().join("refs"), g.path(".git/refs")).unwrap();
    };
    refs_take(SHA1, elsewhere, 1);
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
        assert!(repo.refs().is_err(), "{line}");
    }
}

#[test]
fn the_refs_of_another_storage_or_of_a_linked_work_tree_are_what_git_says() {
    let g = Worktree::new();
    g.git(&["worktree", "add", "-q", "../linked", "-b", "other"]);
    let counted = Counted {
        place: &g,
        work_tree: g.root().join("linked"),
    };
    let repo = counted.open();
    let (refs, asked) = counted.commands(|| repo.refs().unwrap());
    assert_eq!(refs.len(), 2);
    assert_eq!(asked, ["for-each-ref"]);
    let format = "--ref-format=reftable";
    if git_knows(format) {
        refs_take(format, |_| {}, 1);
    }
}
