use super::support::*;
use crate::domain::snapshot::{Head, RevId};
use crate::git::ChangeKind::*;
use crate::git::{Exempt, discover};
use globset::{Glob, GlobSetBuilder};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;

#[test]
fn a_clean_checkout_has_no_changes() {
    let f = Worktree::new().start();
    let snapshot = f.snapshot();
    assert_eq!(named(&snapshot.changes), []);
    assert_eq!(snapshot.known.head, Head::At(RevId(f.head())));
    assert_eq!(snapshot.known.branch.as_deref(), Some("refs/heads/main"));
    assert!(!snapshot.known.dirty);
    assert_eq!(snapshot.warnings, Vec::<String>::new());
    assert_eq!(f.tree(), f.tree());
}

#[test]
fn every_kind_of_change_is_seen() {
    let f = Worktree::new().start();
    let mut trees = BTreeSet::from([f.tree()]);
    let mut expect = |what: &str, changes: &[(&str, _)]| {
        assert_eq!(f.changes(), changed(changes), "{what}");
        assert!(trees.insert(f.tree()), "{what} gives a tree of its own");
    };
    f.write("a", "edited\n");
    expect("edit", &[("a", Modified)]);
    f.write("a", "edited again\n");
    expect("edit of a dirty file", &[("a", Modified)]);
    f.remove("b");
    expect("deletion", &[("a", Modified), ("b", Deleted)]);
    f.write("b", "b\n");
    make_executable(&f.path("b"));
    expect("mode", &[("a", Modified), ("b", ModeChanged)]);
    f.remove("b");
    symlink("a", f.path("b")).unwrap();
    expect("link", &[("a", Modified), ("b", TypeChanged)]);
    f.write("new/one", "1");
    expect(
        "untracked",
        &[("a", Modified), ("b", TypeChanged), ("new/one", Added)],
    );
    f.write("new/two", "2");
    let all = [
        ("a", Modified),
        ("b", TypeChanged),
        ("new/one", Added),
        ("new/two", Added),
    ];
    expect("second file in an untracked directory", &all);
    f.git(&["mv", "dir/c", "dir/d"]);
    let renamed = [
        &all[..2],
        &[("dir/c", Deleted), ("dir/d", Added)],
        &all[2..],
    ]
    .concat();
    expect("rename", &renamed);
}

#[test]
fn the_same_tree_has_the_same_fingerprint_whatever_git_was_told() {
    let f = Worktree::new().start();
    f.write("a", "edited\n");
    f.write("new", "new\n");
    let tree = f.tree();
    assert!(f.snapshot().known.dirty);
    f.git(&["add", "-A"]);
    assert_eq!(f.tree(), tree, "staged");
    f.git(&["commit", "-qm", "by the agent"]);
    let snapshot = f.snapshot();
    assert_eq!(snapshot.known.tree.0, tree, "committed");
    assert_eq!(snapshot.known.head, Head::At(RevId(f.head())));
    assert!(!snapshot.known.dirty);
    f.write("b", "more\n");
    assert!(f.snapshot().known.dirty);
    f.write("b", "b\n");
    f.git(&["reset", "-q", "--hard", "HEAD~"]);
    assert_eq!(f.changes(), []);
}

#[test]
fn a_change_taken_back_is_none() {
    let f = Worktree::new().start();
    let tree = f.tree();
    f.write("a", "edited\n");
    f.write("a", "a\n");
    f.git(&["add", "a"]);
    assert_eq!(f.tree(), tree);
}

#[test]
fn ignored_files_do_not_count_until_somebody_tracks_them() {
    let g = Worktree::new();
    g.write(".gitignore", "*.log\n");
    g.git(&["add", "."]);
    g.git(&["commit", "-qm", "ignore"]);
    let f = g.start();
    f.write("x.log", "x");
    assert_eq!(f.changes(), []);
    f.git(&["add", "-f", "x.log"]);
    assert_eq!(f.changes(), changed(&[("x.log", Added)]), "staged by force");
    f.git(&["commit", "-qm", "force"]);
    assert_eq!(
        f.changes(),
        changed(&[("x.log", Added)]),
        "committed by force"
    );
}

#[test]
fn an_edited_gitignore_hides_nothing() {
    let g = Worktree::new();
    g.write(".gitignore", "old\n");
    g.write("dir/.gitignore", "*.o\n!keep.o\n/top\n");
    g.git(&["add", "."]);
    g.git(&["commit", "-qm", "ignore"]);
    let f = g.start();
    for ignored in ["old", "dir/x.o", "dir/deep/y.o", "dir/top"] {
        f.write(ignored, "always ignored");
    }
    f.write(".gitignore", "old\nhidden\n");
    f.write("hidden", "1");
    let snapshot = f.snapshot();
    assert_eq!(
        named(&snapshot.changes),
        changed(&[(".gitignore", Modified), ("hidden", Added)])
    );
    let newly: Vec<bool> = snapshot
        .changes
        .iter()
        .map(|change| change.newly_ignored)
        .collect();
    assert_eq!(newly, [false, true]);
    f.write("hidden", "2");
    assert_ne!(
        f.tree(),
        snapshot.known.tree.0,
        "a change of the hidden file is a change"
    );
}

#[test]
fn a_gitignore_that_hides_itself_beside_tracked_files_is_seen_and_a_tools_cache_is_not() {
    let f = Worktree::new().start();
    f.write("cache/.gitignore", "*\n");
    f.write("cache/data", "x");
    assert_eq!(f.changes(), [], "a tool's own directory");
    f.write("dir/.gitignore", "*\n");
    f.write("dir/new", "x");
    let seen = f.changes();
    assert!(seen.contains(&("dir/new".to_owned(), Added)), "{seen:?}");
}

#[test]
fn flags_set_before_the_run_hide_nothing_either() {
    let g = Worktree::new();
    g.git(&["update-index", "--assume-unchanged", "a"]);
    g.git(&["update-index", "--skip-worktree", "b"]);
    g.git(&["update-index", "--split-index"]);
    let f = g.start();
    f.write("a", "x\n");
    f.write("b", "y\n");
    assert_eq!(f.changes(), changed(&[("a", Modified), ("b", Modified)]));
}

#[test]
fn caches_made_before_the_run_hide_nothing_either() {
    let g = Worktree::new();
    let nothing = g.script(".git/nothing-changed", "printf 'token\\0'");
    g.git(&["config", "core.fsmonitor", nothing.to_str().unwrap()]);
    g.git(&["config", "core.fsmonitorHookVersion", "2"]);
    g.git(&["config", "core.untrackedCache", "true"]);
    g.git(&["update-index", "--untracked-cache", "--fsmonitor"]);
    g.git(&["status"]);
    let f = g.start();
    f.write("a", "x\n");
    f.write("new", "y\n");
    assert_eq!(f.changes(), changed(&[("a", Modified), ("new", Added)]));
}

#[test]
fn a_forged_time_hides_nothing() {
    let f = Worktree::new().start();
    f.snapshot();
    let time = fs::metadata(f.path("a")).unwrap().modified().unwrap();
    f.git(&["config", "core.checkStat", "minimal"]);
    f.write("a", "X\n");
    fs::File::options()
        .write(true)
        .open(f.path("a"))
        .unwrap()
        .set_modified(time)
        .unwrap();
    assert_eq!(f.changes(), changed(&[("a", Modified)]));
}

#[test]
fn files_that_are_only_touched_or_would_only_be_normalised_are_no_changes() {
    let g = Worktree::new();
    g.write("crlf.txt", "one\r\ntwo\r\n");
    g.git(&["add", "."]);
    g.git(&["commit", "-qm", "crlf"]);
    g.write(".gitattributes", "*.txt text=auto\n");
    g.git(&["add", ".gitattributes"]);
    g.git(&["commit", "-qm", "attributes"]);
    let f = g.start();
    assert_eq!(f.changes(), []);
    f.write("crlf.txt", "one\r\ntwo\r\n");
    f.write("a", "a\n");
    assert_eq!(f.changes(), []);
}

#[test]
fn a_tracked_directory_turned_into_a_link_is_not_followed() {
    let f = Worktree::new().start();
    fs::create_dir(f.root().join("outside")).unwrap();
    fs::write(f.root().join("outside/c"), "secret").unwrap();
    fs::remove_dir_all(f.path("dir")).unwrap();
    symlink(f.root().join("outside"), f.path("dir")).unwrap();
    assert_eq!(f.changes(), changed(&[("dir", Added), ("dir/c", Deleted)]));
}

#[test]
fn what_is_exempt_does_not_count() {
    let f = Worktree::new().start();
    let tree = f.tree();
    let mut globs = GlobSetBuilder::new();
    globs.add(Glob::new("notes/**").unwrap());
    let exempt = Exempt {
        progress_ignore: globs.build().unwrap(),
        check_artifacts: BTreeSet::from([b"report.xml".to_vec()]),
        plan: None,
    };
    f.write("notes/today", "x");
    f.write("report.xml", "x");
    let snapshot = f.repo.snapshot(&exempt).unwrap();
    assert_eq!(snapshot.known.tree.0, tree);
    assert!(!snapshot.known.dirty);
    assert_eq!(
        named(&snapshot.uncounted),
        changed(&[("notes/today", Added)])
    );
    assert_eq!(snapshot.check_artifacts, [b"report.xml".to_vec()]);
    f.git(&["add", "-A"]);
    assert_eq!(
        f.repo.snapshot(&exempt).unwrap().known.tree.0,
        tree,
        "staged by routine"
    );
    f.git(&["commit", "-qm", "by the agent", "report.xml"]);
    let committed = f.repo.snapshot(&exempt).unwrap();
    assert_eq!(
        named(&committed.changes),
        changed(&[("report.xml", Added)]),
        "history has it"
    );
}

#[test]
fn what_cannot_be_worked_on_is_refused_with_the_remedy() {
    let dir = tempfile::tempdir().unwrap();
    let refusal = |path: &std::path::Path| discover(path, &environment(dir.path())).unwrap_err();
    assert!(
        refusal(dir.path())
            .to_string()
            .contains("is not inside a git repository")
    );
    git_in(
        dir.path(),
        dir.path(),
        &["init", "-q", "--bare", "bare.git"],
    );
    assert!(
        refusal(&dir.path().join("bare.git"))
            .to_string()
            .contains("is a bare repository")
    );

    let g = Worktree::new();
    assert!(
        refusal(&g.path(".git"))
            .to_string()
            .contains("is inside a git directory")
    );
    g.git(&["checkout", "-qb", "other"]);
    g.write("a", "theirs\n");
    g.git(&["commit", "-qam", "theirs"]);
    g.git(&["checkout", "-q", "main"]);
    g.write("a", "ours\n");
    g.git(&["commit", "-qam", "ours"]);
    try_git(g.root(), &g.path("."), &["merge", "other"], b"");
    assert_eq!(
        refusal(&g.path("dir")).to_string(),
        "a merge is in progress; finish it or run `git merge --abort`"
    );
}

#[test]
fn a_submodule_outside_of_a_sparse_checkout_or_not_checked_out_is_no_change() {
    let g = Worktree::new();
    g.add_submodule("far/sub");
    g.git(&["submodule", "deinit", "-q", "--all"]);
    g.git(&["sparse-checkout", "set", "--cone", "dir"]);
    let f = g.start();
    let _ = fs::remove_dir_all(f.path("far"));
    assert_eq!(f.changes(), []);
}
