use super::support::*;
use crate::domain::snapshot::Head;
use crate::git::snapshot::change::Unread;
use crate::git::{CommitError, CommitRequest, Exempt, Hook, PlanContent, Repo, Stage, discover};
use crate::permit::Committable;
use std::fs;
use std::os::unix::fs::symlink;

#[test]
fn a_commit_holds_exactly_the_work_tree_and_leaves_it_clean() {
    let mut f = Worktree::new().start();
    f.write("a", "edited\n");
    f.remove("b");
    f.write("new/x", "x");
    symlink("a", f.path("link")).unwrap();
    make_executable(&f.path("new/x"));
    fs::remove_file(f.path("dir/c")).unwrap();
    f.write("dir/c/deep", "file became a directory");
    f.write(bytes_name(b"\xff\n-rf"), "odd");
    let before = f.head();
    let commit = f.commit("Do it\n\nBody.\n");
    assert_eq!(f.head(), commit.0);
    assert_eq!(f.git(&["rev-parse", "HEAD~"]), before);
    assert_eq!(
        f.git(&["log", "-1", "--format=%an <%ae>|%cn|%B"]),
        "Sprag <sprag@example.org>|Sprag|Do it\n\nBody."
    );
    assert_eq!(
        f.files(),
        [
            "100644 a",
            "100644 dir/c/deep",
            "120000 link",
            "100755 new/x",
            "100644 \"\\377\\n-rf\""
        ]
    );
    assert_eq!(f.status(), "");
    assert_eq!(f.changes(), []);
    assert_eq!(f.repo.base(), Some(commit));
    assert!(!f.path(".git/index.lock").exists());
    f.write("a", "again\n");
    f.commit("Second");
    assert_eq!(f.status(), "");
    f.git(&["fsck", "--strict"]);
}

#[test]
fn a_token_for_another_tree_commits_nothing() {
    let mut f = Worktree::new().start();
    f.write("a", "verified\n");
    let token = Committable::verified(f.snapshot().known.tree);
    f.write("a", "changed after\n");
    let snapshot = f.snapshot();
    let request = |parent| CommitRequest {
        snapshot: &snapshot,
        plan: None,
        parent,
        merged: None,
    };
    let refusal = f.repo.stage(token, &request(f.repo.base())).unwrap_err();
    assert!(matches!(refusal, CommitError::NotVerified), "{refusal}");
    let refusal = f
        .repo
        .stage(Committable::plan_only(), &request(f.repo.base()))
        .unwrap_err();
    assert!(matches!(refusal, CommitError::NotVerified), "{refusal}");

    let token = Committable::no_checks(snapshot.known.tree.clone());
    f.write("a", "changed under our feet\n");
    let refusal = f.repo.stage(token, &request(f.repo.base())).unwrap_err();
    assert_eq!(refusal.to_string(), "changed while committing: a");
}

#[test]
fn nothing_to_commit_is_no_commit() {
    let mut f = Worktree::new().start();
    assert!(matches!(f.stage(None).unwrap(), Stage::Nothing));
    f.write("a", "x");
    f.git(&["commit", "-qam", "by the agent"]);
    assert!(matches!(f.stage(None).unwrap(), Stage::Nothing));
}

#[test]
fn the_plans_status_is_in_the_commit_and_in_no_file_before_it() {
    let g = Worktree::new();
    g.write("plan.yaml", "status: pending\n");
    g.git(&["add", "."]);
    g.git(&["commit", "-qm", "plan"]);
    let mut f = g.start();
    f.write("a", "work\n");
    let content = b"status: done\n".to_vec();
    let intent = f.intent_with(
        "Task",
        Some(PlanContent {
            path: b"plan.yaml".to_vec(),
            content,
        }),
    );
    assert_eq!(f.read("plan.yaml"), "status: pending\n");
    assert!(!landed(&f.repo, &intent));
    f.repo.land(&intent).unwrap();
    assert!(landed(&f.repo, &intent));
    assert_eq!(f.read("plan.yaml"), "status: done\n");
    assert_eq!(
        f.git(&["diff", "--name-only", "HEAD~", "HEAD"]),
        "a\nplan.yaml"
    );
    assert_eq!(f.status(), "");
    assert_eq!(f.changes(), []);
}

#[test]
fn a_restart_after_the_branch_moved_finishes_the_rest_and_may_do_so_twice() {
    let g = Worktree::new();
    g.write("plan.yaml", "status: pending\n");
    g.git(&["add", "."]);
    g.git(&["commit", "-qm", "plan"]);
    let mut f = g.start();
    f.write("a", "work\n");
    let content = b"status: done\n".to_vec();
    let intent = f.intent_with(
        "Task",
        Some(PlanContent {
            path: b"plan.yaml".to_vec(),
            content,
        }),
    );
    let stored = serde_json::to_string(&intent).unwrap();
    f.repo.adopt(&f.repo.objects_of(&intent).unwrap()).unwrap();
    f.git(&["update-ref", "refs/heads/main", &intent.commit.0]);

    let real = discover(&f.path("."), &environment(f.root())).unwrap();
    let mut repo = Repo::reopen(real, &f.root().join("run/git")).unwrap();
    let intent = serde_json::from_str(&stored).unwrap();
    assert!(landed(&repo, &intent));
    for _ in 0..2 {
        repo.finish_landing(&intent).unwrap();
        assert_eq!(f.status(), "");
        assert_eq!(f.read("plan.yaml"), "status: done\n");
        assert_eq!(repo.base(), Some(intent.commit.clone()));
        assert_eq!(
            named(&repo.snapshot(&Exempt::default()).unwrap().changes),
            []
        );
    }
}

#[test]
fn a_branch_that_moved_meanwhile_is_left_alone() {
    let mut f = Worktree::new().start();
    f.write("a", "x\n");
    let intent = f.intent("Late");
    f.git(&["commit", "-qam", "somebody else"]);
    let head = f.head();
    let refusal = f.repo.land(&intent).unwrap_err();
    assert!(
        matches!(refusal, CommitError::HeadMoved { .. }),
        "{refusal}"
    );
    assert_eq!(f.head(), head);
    assert!(!f.path(".git/index.lock").exists());
    assert!(!landed(&f.repo, &intent));
}

#[test]
fn what_only_new_rules_ignore_is_not_committed_and_what_progress_ignores_is() {
    let mut f = Worktree::new().start();
    f.write(".gitignore", "build/\n");
    f.write("build/out", "x");
    f.commit("Ignore");
    assert_eq!(
        f.files(),
        ["100644 .gitignore", "100644 a", "100644 b", "100644 dir/c"]
    );
    assert_eq!(f.changes(), []);
    assert_eq!(f.status(), "");
}

#[test]
fn a_file_of_any_size_costs_no_time_and_is_refused_by_its_name_until_it_is_ignored() {
    let mut f = Worktree::new().start();
    let huge = fs::File::create(f.path("huge")).unwrap();
    huge.set_len(40 << 30).unwrap();
    f.write("small", "x");
    let snapshot = f.snapshot();
    assert_eq!(snapshot.changes[0].unreadable, Some(Unread::TooLarge));
    assert_eq!(snapshot.changes[1].unreadable, None);
    assert!(snapshot.warnings[0].starts_with("huge was not read"));
    let refused = f.stage(None).unwrap_err();
    assert!(matches!(&refused, CommitError::TooLarge(paths) if *paths == [b"huge"]));
    let patch = String::from_utf8(f.repo.patch(&snapshot).unwrap()).unwrap();
    assert!(patch.contains("+++ b/small") && !patch.contains("huge"));
    f.write(".gitignore", "huge\n");
    f.commit("Ignore");
    assert!(f.files().contains(&"100644 small".to_owned()));
}

#[test]
fn an_index_of_any_size_costs_no_time_and_is_restored() {
    let mut f = Worktree::new().start();
    let index = fs::OpenOptions::new()
        .write(true)
        .open(f.path(".git/index"))
        .unwrap();
    index.set_len(40 << 30).unwrap();
    f.write("a", "changed");
    f.commit("Change");
    assert_eq!(f.status(), "");
    assert!(fs::metadata(f.path(".git/index")).unwrap().len() < 1 << 20);
}

#[test]
fn hooks_are_those_of_the_start_and_what_they_do_to_their_git_directory_is_lost() {
    let g = Worktree::new();
    g.script(
        ".husky/_/pre-commit",
        ". \"$(dirname \"$0\")/../common.sh\"",
    );
    g.write(
        ".husky/common.sh",
        "echo start > hook-ran; git add -A; git config core.hooksPath evil",
    );
    g.git(&["config", "core.hooksPath", ".husky/_"]);
    g.git(&["add", "."]);
    g.git(&["commit", "-q", "--no-verify", "-m", "hooks"]);
    let mut f = g.start();
    f.script(".husky/_/pre-commit", "echo agent > hook-ran");
    f.write(".husky/common.sh", "echo agent > hook-ran");
    let Stage::Ready(staged) = f.stage(None).unwrap() else {
        panic!()
    };
    assert!(
        f.repo
            .prepare_hook(&Hook::CommitMsg { message: "m" }, &staged)
            .unwrap()
            .is_none()
    );
    let hook = f
        .repo
        .prepare_hook(&Hook::PreCommit, &staged)
        .unwrap()
        .unwrap();
    let before = f.tree();
    assert!(run(&hook));
    assert_eq!(f.read("hook-ran"), "start\n");
    assert_ne!(
        f.tree(),
        before,
        "what the hook changed in the work tree is a new tree"
    );
    assert_eq!(f.git(&["config", "core.hooksPath"]), ".husky/_");
}

#[expect(clippy::disallowed_methods, reason = "runs a hook as the caller would")]
fn run(hook: &crate::git::HookInvocation) -> bool {
    std::process::Command::new(&hook.program)
        .args(&hook.args)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .envs(hook.env.iter().map(|(name, value)| (name, value)))
        .current_dir(&hook.cwd)
        .status()
        .unwrap()
        .success()
}

#[test]
fn the_agents_head_can_become_the_base_without_a_commit() {
    let mut f = Worktree::new().start();
    f.write("a", "x\n");
    f.git(&["commit", "-qam", "by the agent"]);
    let Head::At(head) = f.snapshot().known.head else {
        panic!()
    };
    f.repo.advance_base(&head).unwrap();
    assert_eq!(f.changes(), []);
    assert_eq!(f.repo.base(), Some(head));
}

#[test]
fn an_index_lock_is_let_go_after_a_kill_if_it_was_ours() {
    let f = Worktree::new().start();
    let reopen = || {
        let real = discover(&f.path("."), &environment(f.root())).unwrap();
        Repo::reopen(real, &f.root().join("run/git")).unwrap()
    };
    let lock = f.path(".git/index.lock");
    std::mem::forget(f.repo.lock_index().unwrap());
    fs::write(f.root().join("run/git/git/index.lock"), "").unwrap();
    assert!(lock.exists());
    let repo = reopen();
    assert!(!lock.exists());
    assert_eq!(repo.snapshot(&Exempt::default()).unwrap().changes, []);
    fs::write(&lock, "somebody").unwrap();
    reopen();
    assert!(lock.exists());
}

#[test]
fn the_files_of_a_commit_are_read_from_it() {
    let mut f = Worktree::new().start();
    f.write("a", "edited\n");
    f.remove("b");
    f.write(bytes_name(b"\xff"), "odd");
    let commit = f.commit("Do it");
    let seen = f.repo.files_of(&commit).unwrap();
    assert_eq!(seen, ["\\xff", "a", "b"]);
    let nothing = crate::domain::snapshot::RevId("0".repeat(40));
    assert!(f.repo.files_of(&nothing).is_err());
}

#[test]
fn attributes_that_change_what_a_checkout_gives_are_refused() {
    for (rules, refused) in [
        ("b eol=crlf\n", true),
        ("b working-tree-encoding=UTF-16\n", true),
        ("* text=auto\n", false),
        ("b eol=lf\n", false),
        ("nothing eol=crlf\n", false),
    ] {
        let mut g = Worktree::new().start();
        g.write("a", "fixed\n");
        g.write(".gitattributes", rules);
        let staged = g.stage(None);
        match staged {
            Err(CommitError::ConvertedOtherwise(paths)) => {
                assert!(refused && paths == [b"b".to_vec()], "{rules}");
            }
            other => assert!(other.is_ok() && !refused, "{rules}: {other:?}"),
        }
    }
    // The same for a file that is new together with its rules.
    let mut g = Worktree::new().start();
    g.write("new.bat", "one\ntwo\n");
    g.write(".gitattributes", "*.bat eol=crlf\n");
    assert!(g.stage(None).is_err());
    g.write("new.bat", "one\r\ntwo\r\n");
    assert!(g.stage(None).is_ok(), "a checkout gives it back");
}
