use super::support::*;
use crate::domain::snapshot::{Head, RevId};
use crate::git::{TurnReport, Violation};
use std::fs;

fn quiet(head: &str) -> TurnReport {
    TurnReport {
        warnings: Vec::new(),
        violations: Vec::new(),
        agent_commits: Vec::new(),
        operation: None,
        head: Head::At(RevId(head.to_owned())),
    }
}

#[test]
fn a_turn_that_leaves_the_repository_alone_has_nothing_to_report() {
    let mut f = Worktree::new().start();
    let mark = f.repo.mark_turn().unwrap();
    f.write("a", "x");
    f.git(&["add", "a"]);
    assert_eq!(f.repo.inspect_turn(&mark).unwrap(), quiet(&f.head()));
}

#[test]
fn a_root_commit_on_an_unborn_branch_is_accepted() {
    let mut f = Worktree::unborn().start();
    let mark = f.repo.mark_turn().unwrap();
    f.write("a", "x");
    f.git(&["add", "."]);
    f.git(&["commit", "-qm", "root"]);
    let report = f.repo.inspect_turn(&mark).unwrap();
    assert_eq!(
        (report.violations, report.agent_commits.len()),
        (Vec::new(), 1)
    );
}

#[test]
fn what_housekeeping_writes_for_dumb_clients_is_no_tampering() {
    let mut f = Worktree::new().start();
    let mark = f.repo.mark_turn().unwrap();
    f.git(&["gc", "-q"]);
    f.git(&["update-server-info"]);
    assert!(f.path(".git/info/refs").exists());
    assert_eq!(f.repo.inspect_turn(&mark).unwrap(), quiet(&f.head()));
}

#[test]
fn a_link_in_the_place_of_info_is_undone_and_leaves_its_target_alone() {
    let mut f = Worktree::new().start();
    let mark = f.repo.mark_turn().unwrap();
    f.write("target/refs", "kept");
    fs::remove_dir_all(f.path(".git/info")).unwrap();
    std::os::unix::fs::symlink("../target", f.path(".git/info")).unwrap();
    let report = f.repo.inspect_turn(&mark).unwrap();
    assert_eq!(report.warnings, ["changes to .git/info were undone"]);
    assert_eq!(f.read("target/refs"), "kept");
}

#[test]
fn a_configuration_that_git_cannot_read_or_that_points_elsewhere_is_put_back() {
    let mut f = Worktree::new().start();
    let mark = f.repo.mark_turn().unwrap();
    for evil in [
        "[core\n",
        "[core]\n\tworktree = /etc\n\tbare = true\n[extensions]\n\tfoo = bar\n",
    ] {
        f.write(".git/config", evil);
        let report = f.repo.inspect_turn(&mark).unwrap();
        assert_eq!(report.warnings, ["changes to .git/config were undone"]);
    }
}

#[test]
fn rewriting_history_is_a_violation_and_undone() {
    let mut f = Worktree::new().start();
    let head = f.head();
    let mark = f.repo.mark_turn().unwrap();
    f.git(&["commit", "-q", "--amend", "-m", "amended"]);
    let amended = f.head();
    let report = f.repo.inspect_turn(&mark).unwrap();
    let expected = Violation::HistoryRewritten {
        from: head.clone(),
        to: Some(amended),
    };
    assert_eq!(report.violations, [expected]);
    assert_eq!(f.head(), head);

    f.git(&["update-ref", "-d", "refs/heads/main"]);
    let report = f.repo.inspect_turn(&mark).unwrap();
    assert_eq!(
        report.violations,
        [Violation::HistoryRewritten {
            from: head.clone(),
            to: None
        }]
    );
    assert_eq!(f.head(), head);
}

#[test]
fn branches_of_a_remote_that_others_replaced_are_put_back() {
    for count in [1, 12] {
        let g = Worktree::new();
        for n in 0..count {
            for name in [format!("{n}"), format!("deep/{n}/x")] {
                g.git(&["update-ref", &format!("refs/remotes/origin/{name}"), "HEAD"]);
            }
        }
        let mut f = g.start();
        let refs = f.git(&["for-each-ref"]);
        let mark = f.repo.mark_turn().unwrap();
        for n in 0..count {
            let all = [
                (format!("{n}"), format!("{n}/x")),
                (format!("deep/{n}/x"), format!("deep/{n}")),
            ];
            for (gone, new) in all {
                f.git(&["update-ref", "-d", &format!("refs/remotes/origin/{gone}")]);
                f.git(&["update-ref", &format!("refs/remotes/origin/{new}"), "HEAD"]);
            }
        }
        let report = f.repo.inspect_turn(&mark).unwrap();
        assert_eq!((report.violations, report.warnings.len()), (vec![], 1));
        assert_eq!(f.git(&["for-each-ref"]), refs);
    }
}

#[test]
fn foreign_refs_are_put_back() {
    let g = Worktree::new();
    g.git(&["branch", "kept"]);
    g.git(&["branch", "moved"]);
    g.git(&["tag", "v1"]);
    g.git(&["update-ref", "refs/remotes/origin/old", "HEAD"]);
    g.git(&["update-ref", "refs/remotes/origin/gone", "HEAD"]);
    g.git(&[
        "symbolic-ref",
        "refs/remotes/origin/HEAD",
        "refs/remotes/origin/old",
    ]);
    let mut f = g.start();
    let refs = f.git(&["for-each-ref"]);
    let mark = f.repo.mark_turn().unwrap();
    f.write("a", "x");
    f.git(&["commit", "-qam", "x"]);
    f.git(&["branch", "-qD", "kept"]);
    f.git(&["branch", "-qf", "moved", "HEAD"]);
    f.git(&["tag", "-f", "v1", "HEAD"]);
    f.git(&["tag", "v2"]);
    f.git(&["replace", "HEAD~", "HEAD"]);
    f.git(&["update-ref", "refs/remotes/origin/main", "HEAD"]);
    f.git(&["update-ref", "refs/remotes/origin/old", "HEAD"]);
    f.git(&["update-ref", "-d", "refs/remotes/origin/gone"]);
    let tip = f.git(&["rev-parse", "--short=12", "HEAD"]);
    let report = f.repo.inspect_turn(&mark).unwrap();
    let names: Vec<String> = report.violations.iter().map(ToString::to_string).collect();
    assert_eq!(names.len(), 5);
    let warned = "refs/remotes/origin/gone and 1 more, which the agent moved, is where it was";
    assert!(report.warnings.iter().any(|it| it.starts_with(warned)));
    assert_eq!(names[0], "refs/heads/kept was deleted");
    assert_eq!(names[1], format!("refs/heads/moved was moved to {tip}"));
    assert!(names[2].starts_with("refs/replace/"), "{names:?}");
    let tags = [
        format!("refs/tags/v1 was moved to {tip}"),
        format!("refs/tags/v2 was created at {tip}"),
    ];
    assert_eq!(names[3..], tags);
    assert_eq!(
        report.agent_commits.len(),
        1,
        "the branch's own commit stands"
    );
    f.git(&["update-ref", "-d", "refs/remotes/origin/main"]);
    f.git(&["reset", "-q", "--soft", "HEAD~"]);
    assert_eq!(f.git(&["for-each-ref"]), refs);
}

#[test]
fn what_a_check_does_to_refs_is_put_back_by_the_rule_for_turns() {
    let g = Worktree::new();
    g.git(&["branch", "release"]);
    let mut f = g.start();
    let refs = f.git(&["for-each-ref"]);
    let mark = f.repo.mark_turn().unwrap();
    let evil = f.git(&["commit-tree", "-m", "evil", "HEAD^{tree}"]);
    f.git(&["update-ref", "refs/heads/release", &evil]);
    f.git(&["tag", "v1"]);
    f.git(&["replace", "HEAD", &evil]);
    let told = f.repo.undo_moved_refs(&mark, "a check").unwrap();
    let moved = format!(
        "refs/heads/release was moved to {} by a check; that was undone",
        &evil[..12]
    );
    assert_eq!((told.len(), &told[0]), (3, &moved), "{told:?}");
    assert_eq!(f.git(&["for-each-ref"]), refs);
    assert_eq!(f.repo.undo_moved_refs(&mark, "a check").unwrap(), [""; 0]);
}

#[test]
fn the_boundary_of_a_shallow_clone_changes_only_as_a_fetch_changes_it() {
    let g = Worktree::new();
    g.git(&["commit", "-q", "--allow-empty", "-m", "second"]);
    let mut f = g.start();
    let mark = f.repo.mark_turn().unwrap();
    f.write(".git/shallow", format!("{}\n", f.head()));
    assert_eq!(f.git(&["rev-list", "--count", "HEAD"]), "1");
    let undone = ["changes to .git/shallow were undone"];
    assert_eq!(f.repo.inspect_turn(&mark).unwrap().warnings, undone);
    assert_eq!(f.git(&["rev-list", "--count", "HEAD"]), "2");

    let url = format!("file://{}", f.path(".").display());
    let clone = Worktree::unborn();
    clone.git(&["fetch", "-q", "--depth=1", &url, "main"]);
    clone.git(&["reset", "-q", "--hard", "FETCH_HEAD"]);
    let mut c = clone.start();
    let mark = c.repo.mark_turn().unwrap();
    let boundary = c.read(".git/shallow");
    c.remove(".git/shallow");
    assert_eq!(c.repo.inspect_turn(&mark).unwrap().warnings, undone);
    assert_eq!(c.read(".git/shallow"), boundary);
    f.git(&["branch", "other", "HEAD~"]);
    for (fetch, count) in [("--depth=1", "1"), ("--unshallow", "2")] {
        c.git(&[
            "fetch",
            "-q",
            fetch,
            &url,
            "main",
            "other:refs/remotes/origin/other",
        ]);
        assert_eq!(
            c.repo.inspect_turn(&mark).unwrap(),
            quiet(&c.head()),
            "{fetch}"
        );
        assert_eq!(c.git(&["rev-list", "--count", "HEAD"]), count);
    }
}

#[test]
fn the_state_of_an_operation_goes_back_and_what_was_moved_there_is_kept() {
    let mut f = Worktree::new().start();
    let mark = f.repo.mark_turn().unwrap();
    for name in ["MERGE_HEAD", "MERGE_MSG", "ORIG_HEAD", "shallow.lock"] {
        f.write(format!(".git/{name}"), f.head());
    }
    fs::rename(f.path(".git/logs"), f.path(".git/l2")).unwrap();
    let report = f.repo.inspect_turn(&mark).unwrap();
    let told = report.warnings.join("\n");
    for name in ["MERGE_HEAD", "MERGE_MSG", "ORIG_HEAD", "shallow.lock", "l2"] {
        assert!(!f.path(format!(".git/{name}")).exists(), "{name}");
        assert_eq!(told.contains(name), name != "ORIG_HEAD", "{told}");
    }
    let kept = fs::read_dir(f.root().join("run/git/undone")).unwrap();
    let mut logs = kept.map(|kept| kept.unwrap().path().join("HEAD"));
    assert!(logs.any(|log| log.exists()), "{told}");
}

#[test]
fn a_branch_turned_into_a_link_to_another_is_put_back() {
    let g = Worktree::new();
    g.git(&["branch", "other"]);
    let mut f = g.start();
    let mark = f.repo.mark_turn().unwrap();
    f.git(&["symbolic-ref", "refs/heads/main", "refs/heads/other"]);
    let report = f.repo.inspect_turn(&mark).unwrap();
    assert_eq!(report.violations.len(), 1, "{:?}", report.violations);
    assert_eq!(
        f.git(&["for-each-ref", "--format=%(refname)%(symref)"]),
        "refs/heads/main\nrefs/heads/other"
    );
}

#[test]
fn a_lock_left_by_the_turn_is_removed_and_one_from_before_is_not() {
    let mut f = Worktree::new().start();
    let mark = f.repo.mark_turn().unwrap();
    f.write(".git/index.lock", "");
    let report = f.repo.inspect_turn(&mark).unwrap();
    assert_eq!(
        report.warnings,
        ["a lock left behind was removed: .git/index.lock"]
    );
    assert!(!f.path(".git/index.lock").exists());
    f.write(".git/index.lock", "");
    let mark = f.repo.mark_turn().unwrap();
    assert_eq!(f.repo.inspect_turn(&mark).unwrap(), quiet(&f.head()));
    assert!(f.path(".git/index.lock").exists());
}

#[test]
fn a_lock_of_a_living_process_stays_and_one_that_goes_away_is_no_matter() {
    let mut f = Worktree::new().start();
    f.repo.lock_wait = std::time::Duration::from_secs(30);
    let mark = f.repo.mark_turn().unwrap();
    let lock = f.path(".git/index.lock");
    let holder = |script: &str| {
        #[expect(
            clippy::disallowed_methods,
            reason = "somebody who works beside the run"
        )]
        let mut holder = std::process::Command::new("sh");
        holder.args(["-c", script, "sh"]).arg(&lock);
        let holder = holder.stdin(std::process::Stdio::piped()).spawn().unwrap();
        while !lock.exists() {
            std::thread::yield_now();
        }
        holder
    };
    // A child of the shell, because those of this process are Sprag's.
    let mut living = holder("sh -c 'read x' 9>\"$1\"; :");
    let report = f.repo.inspect_turn(&mark).unwrap();
    drop(living.stdin.take());
    living.wait().unwrap();
    assert_eq!(
        report.warnings,
        ["another process holds .git/index.lock: the commit waits for it"]
    );
    assert!(lock.exists());
    fs::remove_file(&lock).unwrap();

    let mut brief = holder(": > \"$1\"; sleep 0.2; rm \"$1\"");
    assert_eq!(f.repo.inspect_turn(&mark).unwrap(), quiet(&f.head()));
    brief.wait().unwrap();
}

/// `jj commit` detaches HEAD at the new commit and leaves the branch where it was.
#[test]
fn a_commit_with_jj_is_one_on_the_branch() {
    let ground = Worktree::new();
    ground.write(".jj/repo", "");
    let mut f = ground.start();
    let before = f.head();
    let mark = f.repo.mark_turn().unwrap();
    f.git(&["checkout", "-q", "--detach"]);
    f.write("a", "by jj\n");
    f.git(&["commit", "-qam", "Made with jj"]);
    let made = f.head();
    let report = f.repo.inspect_turn(&mark).unwrap();
    assert_eq!(report.violations, []);
    assert_eq!(report.agent_commits.len(), 1);
    assert_eq!(f.git(&["symbolic-ref", "HEAD"]), "refs/heads/main");
    assert_eq!(f.head(), made);

    // It is no excuse for another line of work.
    let mark = f.repo.mark_turn().unwrap();
    f.git(&["checkout", "-q", "--detach", &before]);
    let report = f.repo.inspect_turn(&mark).unwrap();
    assert_eq!(report.violations.len(), 1, "{:?}", report.violations);
    assert_eq!(f.head(), made);
}

#[test]
fn a_linked_work_trees_git_file_is_put_back() {
    let g = Worktree::new();
    g.git(&["worktree", "add", "-q", "../linked", "-b", "other"]);
    let root = g.root().to_path_buf();
    let real = crate::git::discover(&root.join("linked"), &environment(&root)).unwrap();
    let mut repo = crate::git::Repo::create(real, &root.join("run/git")).unwrap();
    let mark = repo.mark_turn().unwrap();
    let content = fs::read_to_string(root.join("linked/.git")).unwrap();
    fs::write(root.join("linked/.git"), "gitdir: /etc\n").unwrap();
    assert_eq!(
        repo.inspect_turn(&mark).unwrap().warnings,
        ["changes to .git were undone"]
    );
    assert_eq!(
        fs::read_to_string(root.join("linked/.git")).unwrap(),
        content
    );
}

#[test]
fn nothing_is_written_through_a_link_planted_in_the_git_directory() {
    let mut f = Worktree::new().start();
    let outside = f.root().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("profile"), "precious").unwrap();
    f.write("a", "x\n");
    let intent = f.intent("x; evil");
    let log = f.path(".git/logs/refs/heads/main");
    fs::remove_file(&log).unwrap();
    std::os::unix::fs::symlink(outside.join("profile"), &log).unwrap();
    let told = f.repo.land(&intent).unwrap();
    let removed = ".git/logs/refs/heads/main led elsewhere and was removed";
    assert_eq!(told, [removed]);
    assert_eq!(
        fs::read_to_string(outside.join("profile")).unwrap(),
        "precious"
    );

    f.write("a", "y\n");
    let intent = f.intent("y");
    fs::rename(f.path(".git/refs/heads"), outside.join("heads")).unwrap();
    std::os::unix::fs::symlink(outside.join("heads"), f.path(".git/refs/heads")).unwrap();
    assert!(f.repo.land(&intent).is_err());
    assert_eq!(
        fs::read_to_string(outside.join("heads/main"))
            .unwrap()
            .trim_end(),
        f.repo.base().unwrap().0
    );
}
