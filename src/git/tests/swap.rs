//! Replaces the work tree with another tree, and restores it.

use super::support::*;
use crate::git::{Exempt, Repo, SwapError, discover};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

/// Kind, permissions and content of everything in the work tree except the repository itself.
pub(super) fn everything(top: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut open = vec![top.to_path_buf()];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(top).unwrap().display().to_string();
            let meta = path.symlink_metadata().unwrap();
            if name == ".git" {
                continue;
            }
            let mode = meta.permissions().mode();
            if meta.is_dir() {
                found.insert(name, "directory".to_owned());
                open.push(path);
            } else if meta.is_symlink() {
                found.insert(name, format!("to {:?}", fs::read_link(path).unwrap()));
            } else {
                found.insert(name, format!("{mode:o} {:?}", fs::read(path).unwrap()));
            }
        }
    }
    found
}

/// A base, and a result with every kind of change.
fn changed_in_every_way() -> Fixture {
    let ground = Worktree::unborn();
    for (path, content) in [
        ("same", "1\n"),
        ("edited", "old\n"),
        ("deleted", "gone\n"),
        ("run.sh", "#!/bin/sh\n"),
        ("kind", "a file\n"),
        ("place", "a file\n"),
        ("dir/below", "x\n"),
        ("tests/a", "old test\n"),
        (".gitignore", "*.o\n"),
    ] {
        ground.write(path, content);
    }
    ground.git(&["add", "."]);
    ground.git(&["commit", "-qm", "start"]);
    let g = ground.start();
    g.write("edited", "new\n");
    fs::set_permissions(g.path("edited"), fs::Permissions::from_mode(0o600)).unwrap();
    fs::remove_file(g.path("deleted")).unwrap();
    make_executable(&g.path("run.sh"));
    fs::remove_file(g.path("kind")).unwrap();
    symlink("same", g.path("kind")).unwrap();
    fs::remove_file(g.path("place")).unwrap();
    g.write("place/inside", "a directory now\n");
    fs::remove_dir_all(g.path("dir")).unwrap();
    g.write("dir", "a file now\n");
    g.write("tests/a", "new test\n");
    g.write("tests/b", "another\n");
    g.write("made/deep/file", "new\n");
    g.write("cache.o", "ignored\n");
    g
}

#[test]
fn the_work_tree_holds_the_other_tree_and_then_its_own_again() {
    let mut g = changed_in_every_way();
    let before = everything(&g.path("."));
    let unchanged = |g: &Fixture| {
        let of = |name: &str| g.path(name).metadata().unwrap();
        [of("same"), of("cache.o")].map(|meta| (meta.ino(), meta.mtime_nsec()))
    };
    let untouched = unchanged(&g);
    let snapshot = g.snapshot();
    let start = g.repo.base_tree();
    g.repo.swap_to(&snapshot, &start, &BTreeSet::new()).unwrap();
    assert_eq!(g.changes(), [], "the work tree is the start");
    assert!(!g.path("made").exists() && g.path("cache.o").exists());
    let swapped = g.snapshot();
    let twice = g.repo.swap_to(&swapped, &start, &BTreeSet::new());
    assert!(matches!(twice, Err(SwapError::Swapped)));

    // Changes that checks may make.
    g.write("same", "rewritten\n");
    g.write("edited", "rewritten\n");
    g.write("report.xml", "new\n");
    fs::remove_file(g.path("dir/below")).unwrap();
    fs::remove_dir(g.path("dir")).unwrap();
    symlink("/tmp", g.path("dir")).unwrap();
    g.write("kind.o", "built\n");
    g.repo.swap_back(&Exempt::default()).unwrap();
    let mut after = everything(&g.path("."));
    assert!(after.remove("kind.o").is_some(), "ignored files stay");
    assert_eq!(after, before);
    g.repo.swap_back(&Exempt::default()).unwrap();
    let again = unchanged(&g);
    assert_eq!(again[1], untouched[1], "an ignored file is not touched");
}

#[test]
fn only_what_differs_is_touched() {
    let mut g = changed_in_every_way();
    let of = |g: &Fixture| {
        let meta = g.path("same").metadata().unwrap();
        (
            meta.ino(),
            meta.mtime(),
            meta.mtime_nsec(),
            meta.ctime_nsec(),
        )
    };
    let before = of(&g);
    let (snapshot, start) = (g.snapshot(), g.repo.base_tree());
    let touched = g.repo.swap_to(&snapshot, &start, &BTreeSet::new()).unwrap();
    g.repo.swap_back(&Exempt::default()).unwrap();
    assert_eq!(of(&g), before);
    assert!(!touched.contains(&b"same".to_vec()));
}

#[test]
fn a_process_that_dies_in_another_tree_is_brought_back_by_the_next() {
    let mut g = changed_in_every_way();
    let before = everything(&g.path("."));
    let (snapshot, start) = (g.snapshot(), g.repo.base_tree());
    g.repo.swap_to(&snapshot, &start, &BTreeSet::new()).unwrap();
    let real = discover(&g.path("."), &environment(g.root())).unwrap();
    g.repo = Repo::reopen(real, &g.root().join("run/git")).unwrap();
    assert_eq!(everything(&g.path(".")), before);
    assert_eq!(g.snapshot().fingerprint(), snapshot.fingerprint());
}

#[test]
fn what_no_tree_contains_is_moved_away_and_brought_back() {
    let mut g = changed_in_every_way();
    g.git(&["init", "-q", "other"]);
    g.write("other/file", "theirs\n");
    g.write("built.o/x", "ignored\n");
    symlink("same", g.path("link.o")).unwrap();
    let before = everything(&g.path("."));
    let paths = ["other", "built.o", "cache.o", "link.o"];
    let away = paths.map(|path| path.as_bytes().to_vec()).into();
    for dies in [None, Some("halfway"), Some("after the last")] {
        let (snapshot, start) = (g.snapshot(), g.repo.base_tree());
        g.repo.swap_to(&snapshot, &start, &away).unwrap();
        for path in paths {
            assert!(g.path(path).symlink_metadata().is_err(), "{path}");
        }
        if dies == Some("halfway") {
            // The numbers are those of the sorted paths.
            fs::rename(g.root().join("run/git/swap/away/1"), g.path("cache.o")).unwrap();
        } else {
            // A check builds it again.
            g.write("built.o/y", "again\n");
            g.write("cache.o", "again\n");
        }
        match dies {
            None => drop(g.repo.swap_back(&Exempt::default()).unwrap()),
            Some(_) => {
                let real = discover(&g.path("."), &environment(g.root())).unwrap();
                g.repo = Repo::reopen(real, &g.root().join("run/git")).unwrap();
            }
        }
        assert_eq!(everything(&g.path(".")), before, "{dies:?}");
        assert!(g.path("other/.git/HEAD").exists(), "{dies:?}");
        assert!(!g.path(".git/sprag-away").exists(), "{dies:?}");
    }
}

/// A run that was killed between two jobs of one machine, and never resumed.
#[test]
fn what_another_run_moved_away_stays_there() {
    let mut g = changed_in_every_way();
    let theirs = g.path(".git/sprag-away/other/0");
    fs::create_dir_all(&theirs).unwrap();
    g.write(".git/sprag-away/other/0/x", "theirs\n");
    g.write("built.o/x", "ignored\n");
    let before = everything(&g.path("."));
    let away = [b"built.o".to_vec()].into();
    let (snapshot, start) = (g.snapshot(), g.repo.base_tree());
    g.repo.swap_to(&snapshot, &start, &away).unwrap();
    g.repo.swap_back(&Exempt::default()).unwrap();
    assert_eq!(everything(&g.path(".")), before);
    assert_eq!(fs::read(theirs.join("x")).unwrap(), b"theirs\n");
}

/// In a container action, the work tree and the directory of the run are mounts of their own.
#[test]
fn what_lies_beside_the_repository_after_a_death_is_named_with_its_path() {
    let mut g = changed_in_every_way();
    g.write("built.o/x", "ignored\n");
    let before = everything(&g.path("."));
    let real = discover(&g.path("."), &environment(g.root())).unwrap();
    let elsewhere = tempfile::tempdir_in("/dev/shm").unwrap();
    g.repo = Repo::create(real.clone(), &elsewhere.path().join("run-7/git")).unwrap();
    let away = [b"built.o".to_vec()].into();
    let (snapshot, start) = (g.snapshot(), g.repo.base_tree());
    g.repo.swap_to(&snapshot, &start, &away).unwrap();

    let next = Repo::create(real, &g.root().join("run-8/git")).unwrap();
    assert_eq!(next.left_away(), [g.path(".git/sprag-away/run-7")]);
    assert_eq!(g.read(".git/sprag-away/run-7/0.from"), "built.o");
    assert!(g.repo.left_away().is_empty());
    g.repo.swap_back(&Exempt::default()).unwrap();
    assert_eq!(everything(&g.path(".")), before);
    assert!(next.left_away().is_empty());
}

#[test]
fn trees_are_composed_of_two() {
    let mut g = changed_in_every_way();
    let snapshot = g.snapshot();
    let (start, result) = (
        g.repo.base_tree(),
        g.repo.write_snapshot_tree(&snapshot).unwrap(),
    );
    let tests = [b"tests/a".to_vec(), b"tests/b".to_vec(), b"place".to_vec()].into();
    let new_tests = g
        .repo
        .compose_tree(&start, &result, &tests, &BTreeMap::new())
        .unwrap();
    g.repo
        .swap_to(&snapshot, &new_tests, &BTreeSet::new())
        .unwrap();
    assert_eq!(g.read("tests/a"), "new test\n");
    assert_eq!(g.read("tests/b"), "another\n");
    assert_eq!(g.read("edited"), "old\n");
    assert!(
        !g.path("place").exists(),
        "the result has a directory there"
    );
    g.repo.swap_back(&Exempt::default()).unwrap();
    let old_tests = g
        .repo
        .compose_tree(&result, &start, &tests, &BTreeMap::new())
        .unwrap();
    g.repo
        .swap_to(&snapshot, &old_tests, &BTreeSet::new())
        .unwrap();
    assert_eq!(g.read("tests/a"), "old test\n");
    assert!(!g.path("tests/b").exists());
    assert_eq!(g.read("edited"), "new\n");
    assert_eq!(
        g.read("place"),
        "a file\n",
        "it takes the place of the directory"
    );
    g.repo.swap_back(&Exempt::default()).unwrap();
    assert_eq!(g.read("place/inside"), "a directory now\n");
    assert_eq!(g.snapshot().fingerprint(), snapshot.fingerprint());
}

#[test]
fn an_ignored_file_in_a_directory_that_would_become_a_file_stops_it() {
    let mut g = changed_in_every_way();
    g.write("place/kept.o", "ignored\n");
    let before = everything(&g.path("."));
    let (snapshot, start) = (g.snapshot(), g.repo.base_tree());
    let refused = g
        .repo
        .swap_to(&snapshot, &start, &BTreeSet::new())
        .unwrap_err();
    assert!(matches!(refused, SwapError::InTheWay(paths) if paths == [b"place".to_vec()]));
    assert_eq!(everything(&g.path(".")), before);
}

#[test]
fn nothing_behind_a_link_in_the_place_of_a_directory_is_saved_or_changed() {
    let mut g = Worktree::new().start();
    let outside = g.root().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("c"), "a secret\n").unwrap();
    g.remove("dir/c");
    fs::remove_dir(g.path("dir")).unwrap();
    symlink(&outside, g.path("dir")).unwrap();
    let before = everything(&g.path("."));
    let exempt = Exempt::default();
    let snapshot = g.snapshot();
    let base = g.repo.base_tree();
    g.repo.swap_to(&snapshot, &base, &BTreeSet::new()).unwrap();
    assert_eq!(g.read("dir/c"), "c\n");
    let saved = fs::read_dir(g.root().join("run/git/swap")).unwrap();
    for file in saved
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
    {
        let content = fs::read(&file).unwrap();
        assert!(!content.starts_with(b"a secret"), "{}", file.display());
    }
    g.repo.swap_back(&exempt).unwrap();
    assert_eq!(everything(&g.path(".")), before);
    assert_eq!(fs::read_to_string(outside.join("c")).unwrap(), "a secret\n");
}

#[test]
fn files_that_checks_make_and_hide_by_rules_of_their_own_are_removed() {
    let ground = Worktree::unborn();
    ground.write(".gitignore", ".gitignore\n");
    ground.write("tests/a", "x\n");
    ground.git(&["add", "-f", "."]);
    ground.git(&["commit", "-qm", "start"]);
    let mut g = ground.start();
    g.write("a", "work\n");
    let (snapshot, start) = (g.snapshot(), g.repo.base_tree());
    g.repo.swap_to(&snapshot, &start, &BTreeSet::new()).unwrap();
    g.write("tests/.gitignore", "made\n");
    g.write("tests/made", "by the checks\n");
    assert_ne!(g.changes(), [], "Sprag sees it all the same");
    g.repo.swap_back(&Exempt::default()).unwrap();
    assert!(!g.path("tests/made").exists());
    assert_eq!(g.read("a"), "work\n");
}
