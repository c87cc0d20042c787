//! Replaces a few files with those of another commit, and restores them.

use super::support::*;
use super::swap::everything;
use crate::git::{Repo, SwapError, discover};
use std::fs;
use std::os::unix::fs::symlink;

fn is_config(path: &[u8]) -> bool {
    path == b"CLAUDE.md" || path.starts_with(b".claude")
}

/// The first commit is the base. The second changes, adds and removes the replaced files.
fn on_a_head() -> (Fixture, crate::domain::snapshot::RevId) {
    let ground = Worktree::unborn();
    for (path, content) in [
        ("CLAUDE.md", "of the base\n"),
        (".claude/agents/gone.md", "of the base\n"),
        ("src", "1\n"),
        (".gitignore", "*.o\n"),
    ] {
        ground.write(path, content);
    }
    ground.git(&["add", "."]);
    ground.git(&["commit", "-qm", "base"]);
    let base = crate::domain::snapshot::RevId(ground.git(&["rev-parse", "HEAD"]));
    ground.write("CLAUDE.md", "of the head\n");
    ground.write(".claude/settings.json", "{\"hooks\":{}}\n");
    fs::remove_dir_all(ground.path(".claude/agents")).unwrap();
    ground.git(&["add", "--all"]);
    ground.git(&["commit", "-qm", "head"]);
    (ground.start(), base)
}

#[test]
fn the_files_are_those_of_the_commit_and_then_their_own_again_while_other_work_stays() {
    let (mut g, base) = on_a_head();
    g.write("src", "2\n");
    let before = everything(&g.path("."));
    let snapshot = g.snapshot();
    let replaced = g
        .repo
        .replace_files(&snapshot, Some(&base), is_config)
        .unwrap();
    let paths: Vec<&[u8]> = replaced.paths().collect();
    assert_eq!(
        paths,
        [
            b".claude/agents/gone.md".as_slice(),
            b".claude/settings.json",
            b"CLAUDE.md"
        ]
    );
    assert_eq!(g.read("CLAUDE.md"), "of the base\n");
    assert_eq!(g.read(".claude/agents/gone.md"), "of the base\n");
    assert!(!g.path(".claude/settings.json").exists());
    assert_eq!(g.read("src"), "2\n");
    let twice = g.repo.replace_files(&snapshot, None, is_config);
    assert!(matches!(twice, Err(SwapError::Swapped)));

    g.write("src", "3\n");
    g.write("made/new", "work\n");
    let changed = g.repo.put_back_replaced(&replaced).unwrap();
    assert_eq!(changed, Vec::<Vec<u8>>::new());
    let mut after = everything(&g.path("."));
    assert!(after.remove("made/new").is_some());
    after.remove("made");
    assert!(after.insert("src".into(), before["src"].clone()).is_some());
    assert_eq!(after, before);
    assert_eq!(g.read("src"), "3\n");
    assert!(g.repo.put_back_replaced(&replaced).is_ok());
}

#[test]
fn what_somebody_does_to_them_meanwhile_is_named_and_gone() {
    let (mut g, base) = on_a_head();
    let before = everything(&g.path("."));
    let snapshot = g.snapshot();
    let replaced = g
        .repo
        .replace_files(&snapshot, Some(&base), is_config)
        .unwrap();
    fs::remove_file(g.path("CLAUDE.md")).unwrap();
    symlink("/etc/hostname", g.path("CLAUDE.md")).unwrap();
    fs::remove_dir_all(g.path(".claude")).unwrap();
    let elsewhere = g.root().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    fs::write(elsewhere.join("settings.json"), "theirs").unwrap();
    symlink(&elsewhere, g.path(".claude")).unwrap();
    let changed = g.repo.put_back_replaced(&replaced).unwrap();
    assert!(changed.contains(&b"CLAUDE.md".to_vec()), "{changed:?}");
    assert!(changed.contains(&b".claude/agents/gone.md".to_vec()));
    assert_eq!(everything(&g.path(".")), before);
    let there = fs::read_to_string(elsewhere.join("settings.json")).unwrap();
    assert_eq!(there, "theirs", "nothing outside is touched");
}

#[test]
fn without_a_commit_there_are_none_and_a_dead_process_puts_them_back_all_the_same() {
    let (mut g, _) = on_a_head();
    let before = everything(&g.path("."));
    let snapshot = g.snapshot();
    g.repo.replace_files(&snapshot, None, is_config).unwrap();
    assert!(!g.path("CLAUDE.md").exists() && !g.path(".claude").exists());
    g.write("new", "work\n");
    let real = discover(&g.path("."), &environment(g.root())).unwrap();
    g.repo = Repo::reopen(real, &g.root().join("run/git")).unwrap();
    let mut after = everything(&g.path("."));
    assert!(after.remove("new").is_some(), "the work stays");
    assert_eq!(after, before);
}

#[test]
fn nothing_happens_where_nothing_differs() {
    let (mut g, _) = on_a_head();
    let head = g.repo.base();
    let snapshot = g.snapshot();
    let replaced = g
        .repo
        .replace_files(&snapshot, head.as_ref(), is_config)
        .unwrap();
    assert_eq!(replaced.paths().count(), 0);
    let again = g.repo.replace_files(&snapshot, head.as_ref(), is_config);
    assert!(again.is_ok(), "no record is left");
}
