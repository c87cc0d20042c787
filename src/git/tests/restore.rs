use super::support::*;
use crate::git::ChangeKind::*;
use crate::git::commit::head_in_checks::HeadBeforeChecks;
use crate::git::{Exempt, Repo, discover};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;

fn mess(f: &Fixture) {
    f.write("a", "edited\n");
    f.remove("b");
    make_executable(&f.path("dir/c"));
    f.write("new/deep/file", "x");
    f.write("binary", b"\0\x01\xff\n".as_slice());
    symlink("/etc/passwd", f.path("link")).unwrap();
    f.write(bytes_name(b"odd\nname"), "x");
}

#[test]
fn a_patch_applies_and_leaves_no_trace() {
    let f = Worktree::new().start();
    mess(&f);
    let snapshot = f.snapshot();
    let objects = f.git(&["count-objects"]);
    let patch = f.repo.patch(&snapshot).unwrap();
    assert_eq!(f.git(&["count-objects"]), objects);
    assert_eq!(f.snapshot(), snapshot);

    let root = f.root();
    git_in(
        root,
        root,
        &[
            "clone",
            "-q",
            "--no-local",
            f.path(".").to_str().unwrap(),
            "copy",
        ],
    );
    let copy = root.join("copy");
    let applied = try_git(root, &copy, &["apply", "--binary", "-"], &patch);
    assert!(
        applied.status.success(),
        "{}",
        String::from_utf8_lossy(&applied.stderr)
    );
    assert_eq!(
        git_in(root, &copy, &["status", "--porcelain", "-uall"]),
        f.status()
    );
    assert_eq!(fs::read(copy.join("binary")).unwrap(), b"\0\x01\xff\n");
    assert_eq!(f.repo.patch(&f.snapshot()).unwrap(), patch);
}

#[test]
fn a_patch_of_an_unborn_branch_applies_too() {
    let f = Worktree::unborn().start();
    f.write("x", "x\n");
    let patch = f.repo.patch(&f.snapshot()).unwrap();
    let root = f.root();
    fs::create_dir(root.join("copy")).unwrap();
    let applied = try_git(
        root,
        &root.join("copy"),
        &["apply", "--binary", "-"],
        &patch,
    );
    assert!(applied.status.success());
    assert_eq!(fs::read_to_string(root.join("copy/x")).unwrap(), "x\n");
}

#[test]
fn a_restored_tree_is_the_base_again_but_for_check_artifacts_and_ignored_files() {
    let g = Worktree::new();
    g.write(".gitignore", "*.log\n");
    g.git(&["add", "."]);
    g.git(&["commit", "-qm", "ignore"]);
    let mut f = g.start();
    let head = f.head();
    mess(&f);
    f.write("x.log", "ignored");
    f.write("report.xml", "dropping");
    f.write(".gitignore", "*.log\nhidden\n");
    f.write("hidden", "x");
    f.git(&["add", "a", "new"]);
    f.git(&["commit", "-qm", "by the agent"]);
    let exempt = Exempt {
        check_artifacts: BTreeSet::from([b"report.xml".to_vec()]),
        ..Exempt::default()
    };
    let done = f.repo.restore_tree(&exempt).unwrap();
    let shown = |paths: &[Vec<u8>]| -> Vec<String> {
        paths
            .iter()
            .map(|path| crate::git::display_path(path))
            .collect()
    };
    assert_eq!(shown(&done.restored), [".gitignore", "a", "b", "dir/c"]);
    assert_eq!(
        shown(&done.removed),
        ["binary", "hidden", "link", "new/deep/file", "odd\\nname"]
    );
    assert_eq!(done.left, Vec::<String>::new());
    assert_eq!(f.head(), head);
    assert_eq!(f.status(), "?? report.xml");
    assert!(f.path("x.log").exists());
    assert!(!f.path("new").exists());
    assert_eq!(f.changes(), changed(&[("report.xml", Added)]));
}

#[test]
fn restoring_never_writes_through_a_link() {
    let mut f = Worktree::new().start();
    let outside = f.root().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("c"), "precious").unwrap();
    fs::write(outside.join("other"), "precious").unwrap();
    fs::remove_dir_all(f.path("dir")).unwrap();
    symlink(&outside, f.path("dir")).unwrap();
    f.remove("a");
    symlink(outside.join("other"), f.path("a")).unwrap();
    f.repo.restore_tree(&Exempt::default()).unwrap();
    assert_eq!(f.status(), "");
    assert_eq!(f.read("dir/c"), "c\n");
    assert_eq!(fs::read_to_string(outside.join("c")).unwrap(), "precious");
    assert_eq!(
        fs::read_to_string(outside.join("other")).unwrap(),
        "precious"
    );
}

#[test]
fn a_directory_in_the_place_of_a_file_gives_way() {
    let mut f = Worktree::new().start();
    f.remove("a");
    f.write("a/b/c", "x");
    f.repo.restore_tree(&Exempt::default()).unwrap();
    assert_eq!((f.status(), f.read("a")), (String::new(), "a\n".to_owned()));
}

#[test]
fn a_failed_tasks_commits_are_kept_aside_and_its_changes_stay() {
    let mut f = Worktree::new().start();
    let start = f.head();
    assert_eq!(f.repo.set_aside("run 1", "t1").unwrap(), None);
    f.write("a", "by the agent\n");
    f.git(&["commit", "-qam", "by the agent"]);
    let tip = f.head();
    let tree = f.tree();
    let kept = f.repo.set_aside("run 1", "../t1.lock").unwrap();
    assert_eq!(kept.as_deref(), Some("refs/sprag/run-1/---t1-lock"));
    assert_eq!(f.git(&["rev-parse", "refs/sprag/run-1/---t1-lock"]), tip);
    assert_eq!(f.head(), start);
    assert_eq!(f.git(&["symbolic-ref", "HEAD"]), "refs/heads/main");
    assert_eq!(f.read("a"), "by the agent\n");
    assert_eq!(f.tree(), tree);
}

#[test]
fn a_file_that_the_base_ignores_stays_also_if_it_was_added_to_a_commit() {
    let g = Worktree::new();
    g.write(".gitignore", "*.env\n");
    g.git(&["add", "."]);
    g.git(&["commit", "-qm", "ignore"]);
    let mut f = g.start();
    for name in ["staged.env", "dir/committed.env", "new"] {
        f.write(name, "content");
    }
    f.git(&["add", "--force", "dir/committed.env", "new"]);
    f.git(&["commit", "-qm", "by the agent"]);
    f.git(&["add", "--force", "staged.env"]);
    let done = f.repo.restore_tree(&Exempt::default()).unwrap();
    assert_eq!(done.removed, [b"new".to_vec()]);
    assert_eq!(f.status(), "");
    assert_eq!(f.read("staged.env"), "content");
    assert_eq!(f.read("dir/committed.env"), "content");
}

#[test]
fn a_file_that_the_base_ignores_stays_whatever_became_of_the_rules() {
    let rules: [fn(&Fixture); 4] = [
        |f| f.remove(".gitignore"),
        |f| f.write(".gitignore", ""),
        |f| f.write("dir/.gitignore", "!*\n"),
        |f| {
            f.remove(".gitignore");
            f.write(".gitignore/x", "x");
        },
    ];
    for (number, change) in rules.into_iter().enumerate() {
        let g = Worktree::new();
        g.write(".gitignore", "*.env\n");
        g.git(&["add", "."]);
        g.git(&["commit", "-qm", "ignore"]);
        let mut f = g.start();
        f.write("dir/own.env", "secret");
        change(&f);
        f.write("new", "x");
        let done = f.repo.restore_tree(&Exempt::default()).unwrap();
        assert_eq!(
            (f.status(), f.read("dir/own.env").as_str()),
            (String::new(), "secret"),
            "{number}"
        );
        assert!(!done.removed.contains(&b"dir/own.env".to_vec()), "{number}");
        assert!(!f.path("new").exists(), "{number}");
    }
}

fn reopened(f: &mut Fixture) {
    let real = discover(&f.path("."), &environment(f.root())).unwrap();
    f.repo = Repo::reopen(real, &f.root().join("run/git")).unwrap();
}

fn before_checks(f: &mut Fixture, hides_commits: bool) -> HeadBeforeChecks {
    let now = f.repo.snapshot(&Exempt::default()).unwrap().known;
    f.repo.head_before_checks(&now, hides_commits).unwrap()
}

/// A repository whose agent has committed, while checks run. Returns the commits of the agent and of the start, too.
fn in_checks() -> (Fixture, String, String) {
    let mut f = Worktree::new().start();
    let base = f.git(&["rev-parse", "HEAD"]);
    f.write("a", "work\n");
    f.git(&["commit", "-qam", "theirs"]);
    let tip = f.git(&["rev-parse", "HEAD"]);
    before_checks(&mut f, true);
    assert_eq!(f.git(&["rev-parse", "HEAD"]), base);
    (f, tip, base)
}

#[test]
fn commits_hidden_from_checks_are_shown_by_the_next_process_unless_head_was_moved() {
    let (mut f, tip, _) = in_checks();
    reopened(&mut f);
    assert_eq!(f.git(&["rev-parse", "main"]), tip);

    // Another branch at the same commit is nobody's work.
    let (mut f, tip, base) = in_checks();
    f.git(&["checkout", "-qb", "other"]);
    reopened(&mut f);
    assert_eq!(f.git(&["rev-parse", "main"]), base);
    assert_eq!(f.git(&["rev-parse", "other"]), base);
    f.git(&["checkout", "-q", "main"]);
    reopened(&mut f);
    assert_eq!(f.git(&["rev-parse", "main"]), tip);
    assert_eq!(f.git(&["rev-parse", "other"]), base);

    // Whoever has committed and goes back to the commit at which the run stopped finds all of it.
    let (mut f, tip, base) = in_checks();
    f.git(&["commit", "-qam", "mine"]);
    let mine = f.git(&["rev-parse", "HEAD"]);
    reopened(&mut f);
    assert_eq!(f.git(&["rev-parse", "HEAD"]), mine);
    f.git(&["reset", "-q", "--soft", &base]);
    reopened(&mut f);
    assert_eq!(f.git(&["rev-parse", "HEAD"]), tip);
}

#[test]
fn locks_of_a_git_that_died_while_it_hid_or_showed_commits_are_removed() {
    for shows in [false, true] {
        let (mut f, tip, base) = in_checks();
        let id = if shows { &tip } else { &base };
        f.write(".git/refs/heads/main.lock", format!("{id}\n"));
        f.write(".git/HEAD.lock", "");
        reopened(&mut f);
        assert_eq!(f.git(&["rev-parse", "main"]), tip);
        assert!(!f.path(".git/HEAD.lock").exists());
    }
    // The lock of somebody who moves the branch to something else.
    let (f, tip, _) = in_checks();
    f.write(".git/refs/heads/main.lock", "f".repeat(tip.len()));
    let real = discover(&f.path("."), &environment(f.root())).unwrap();
    assert!(Repo::reopen(real, &f.root().join("run/git")).is_err());
    assert!(f.path(".git/refs/heads/main.lock").exists());
}

#[test]
fn commits_that_were_removed_while_they_were_hidden_keep_no_run_from_being_resumed() {
    let (mut f, _, base) = in_checks();
    f.git(&["reflog", "expire", "--expire=now", "--all"]);
    f.git(&["gc", "-q", "--prune=now"]);
    reopened(&mut f);
    assert_eq!(f.git(&["rev-parse", "HEAD"]), base);
    assert_eq!(f.read("a"), "work\n");
}

#[test]
fn head_is_where_it_was_whatever_checks_do_to_it() {
    for (detached, hides, checks) in [
        (false, true, &["checkout", "-qB", "other"][..]),
        (false, true, &["checkout", "-q", "--detach"]),
        (false, true, &["commit", "-qm", "check", "--allow-empty"]),
        (false, true, &["update-ref", "-d", "refs/heads/main"]),
        (false, false, &["update-ref", "-d", "refs/heads/main"]),
        (false, false, &["checkout", "-qb", "other"]),
        (true, true, &["checkout", "-qb", "other"]),
        (true, false, &["commit", "-qm", "check", "--allow-empty"]),
    ] {
        let mut f = Worktree::new().start();
        if detached {
            f.git(&["checkout", "-q", "--detach"]);
        }
        f.write("a", "work\n");
        f.git(&["commit", "-qam", "theirs"]);
        let at = |f: &Fixture| f.git(&["rev-parse", "HEAD"]) + &f.git(&["status", "-sb", "-uno"]);
        let then = at(&f);
        let mut before = before_checks(&mut f, hides);
        f.git(checks);
        let warnings = f.repo.head_after_checks(&before).unwrap();
        assert_eq!(at(&f), then, "{checks:?}");
        assert!(warnings[0].starts_with("a check "), "{warnings:?}");
        before = before_checks(&mut f, hides);
        assert!(f.repo.head_after_checks(&before).unwrap().is_empty());
        assert_eq!(at(&f), then, "{checks:?}");
    }
}

#[test]
fn an_unborn_branch_is_unborn_again_for_checks() {
    let mut f = Worktree::unborn().start();
    f.write("a", "work\n");
    f.git(&["add", "a"]);
    f.git(&["commit", "-qm", "theirs"]);
    let tip = f.git(&["rev-parse", "HEAD"]);
    let before = before_checks(&mut f, true);
    assert_eq!(f.git(&["status", "--porcelain"]), "A  a");
    assert!(f.repo.head_after_checks(&before).unwrap().is_empty());
    assert_eq!(f.git(&["rev-parse", "HEAD"]), tip);
}

/// The index while checks run that ask git, with what `git diff` and `git diff --cached` name.
#[test]
#[expect(clippy::disallowed_methods, reason = "runs git as a check would")]
fn checks_that_ask_git_find_the_work_staged_and_the_index_is_restored() {
    for dies in [false, true] {
        let mut f = Worktree::new().start();
        f.write("a", "work\n");
        f.write("new", "work\n");
        f.write("staged", "by the agent\n");
        f.git(&["add", "staged"]);
        fs::remove_file(f.path("b")).unwrap();
        let before = f.git(&["status", "--porcelain"]);
        let snapshot = f.snapshot();
        let staged = f.repo.index_before_checks(&snapshot, true).unwrap();
        let staged = staged.unwrap();
        let asks = |args: &[&str], as_committed: bool| {
            let mut git = std::process::Command::new("git");
            git.args(args).current_dir(f.path("."));
            let variables = [Some(&staged.store), staged.as_committed.as_ref()];
            for (name, value) in variables
                .iter()
                .flatten()
                .take(1 + usize::from(as_committed))
            {
                git.env(name, value);
            }
            let output = git.output().unwrap();
            (
                output.status.code(),
                String::from_utf8(output.stdout).unwrap(),
            )
        };
        assert_eq!(f.git(&["diff", "--name-status"]), "");
        assert_eq!(f.git(&["ls-files", "--others"]), "");
        let names = ["diff", "--cached", "--name-status"];
        assert_eq!(f.git(&names), "M\ta\nD\tb\nA\tnew\nA\tstaged");
        assert_eq!(
            asks(&["status", "--porcelain"], true),
            (Some(0), String::new())
        );
        assert_eq!(asks(&["diff-index", "--quiet", "HEAD"], true).0, Some(0));
        assert_eq!(asks(&["diff-index", "--quiet", "HEAD"], false).0, Some(1));
        f.write("a", "rewritten\n");
        let (code, shown) = asks(&["diff", "--exit-code"], false);
        assert_eq!(code, Some(1), "{shown}");
        assert!(shown.contains("-work\n+rewritten\n"), "{shown}");
        assert_eq!(asks(&["status", "--porcelain"], true).1, " M a\n");
        f.write("a", "work\n");
        if dies {
            reopened(&mut f);
        } else {
            f.repo.index_after_checks().unwrap();
        }
        assert_eq!(f.git(&["status", "--porcelain"]), before);
        assert_eq!(f.git(&["for-each-ref", "refs/sprag"]), "");
    }
}

#[test]
fn the_index_belongs_to_the_tree_in_the_place_of_the_work() {
    let mut f = Worktree::new().start();
    f.write("a", "work\n");
    let (snapshot, start) = (f.snapshot(), f.repo.base_tree());
    f.repo.swap_to(&snapshot, &start, &BTreeSet::new()).unwrap();
    f.repo.index_before_checks(&snapshot, false).unwrap();
    assert_eq!(f.git(&["status", "--porcelain"]), "");
    f.repo.index_after_checks().unwrap();
    f.repo.swap_back(&Exempt::default()).unwrap();
    assert_eq!(f.git(&["status", "--porcelain"]), " M a");
}
