//! What is committed and what is left out, in repositories of every kind.

use super::support::*;
use crate::git::{CommitRequest, Exempt, PlanContent, Repo, Stage, discover, upper_paths};
use crate::permit::Committable;
use std::fs;
use std::os::unix::fs::symlink;

#[test]
fn a_sha256_repository_is_committed_to() {
    let g = Worktree::with_format("--object-format=sha256");
    g.write("x", "x");
    let mut f = g.start();
    assert_eq!(f.commit("First").0.len(), 64);
    assert_eq!(f.status(), "");
}

#[test]
fn a_fresh_checkout_has_what_is_tracked_and_before_the_first_commit_what_is_not_ignored() {
    let g = Worktree::unborn();
    g.write(".gitignore", "out/\n");
    for path in ["a", "gen/a", "out/a", "web/a", "web/src/deep/a"] {
        g.write(path, "x");
    }
    let paths = || {
        let real = discover(&g.path("."), &environment(g.root())).unwrap();
        Vec::from_iter(upper_paths(&real).unwrap())
    };
    assert_eq!(paths(), [".gitignore", "a", "gen/a", "web/a", "web/src"]);
    g.git(&["add", "web"]);
    g.git(&["commit", "-qm", "first"]);
    assert_eq!(paths(), ["web/a", "web/src"]);
    g.git(&["add", "gen"]);
    assert_eq!(paths(), ["gen/a", "web/a", "web/src"]);
}

#[test]
fn a_partial_clone_is_known_as_one() {
    let g = Worktree::new();
    g.git(&["config", "uploadpack.allowFilter", "true"]);
    let url = format!("file://{}", g.path(".").display());
    for (filter, is_partial) in [(None, false), (Some("--filter=blob:none"), true)] {
        let clone = g.root().join(format!("clone-{is_partial}"));
        let args = ["clone", "--quiet", &url, clone.to_str().unwrap()];
        g.git(&Vec::from_iter(args.into_iter().chain(filter)));
        let real = discover(&clone, &environment(g.root())).unwrap();
        assert_eq!(real.is_partial(), is_partial);
    }
}

#[test]
fn a_sparse_checkout_commits_what_was_touched_and_no_deletion() {
    let g = Worktree::new();
    g.write("far/away", "x");
    g.git(&["add", "."]);
    g.git(&["commit", "-qm", "far"]);
    g.git(&["sparse-checkout", "set", "--cone", "dir"]);
    assert!(!g.path("far").exists());
    let mut f = g.start();
    assert_eq!(f.changes(), []);
    f.write("dir/c", "edited\n");
    f.commit("Sparse");
    assert_eq!(
        f.git(&["diff", "--name-status", "HEAD~", "HEAD"]),
        "M\tdir/c"
    );
    assert_eq!(f.status(), "");
    assert!(!f.path("far").exists());
}

#[test]
fn a_filter_set_up_before_the_run_is_applied() {
    let g = Worktree::new();
    g.git(&["config", "filter.shout.clean", "tr a-z A-Z"]);
    g.git(&["config", "filter.shout.smudge", "tr A-Z a-z"]);
    g.write(".gitattributes", "*.loud filter=shout\n");
    g.write("x.loud", "quiet\n");
    g.git(&["add", "."]);
    g.git(&["commit", "-qm", "filter"]);
    let mut f = g.start();
    assert_eq!(f.changes(), []);
    f.write("y.loud", "new\n");
    f.commit("Loud");
    assert_eq!(f.git(&["cat-file", "blob", "HEAD:y.loud"]), "NEW");
    assert_eq!(f.status(), "");
}

#[test]
fn a_submodules_new_commit_is_recorded_and_nested_repositories_are_not() {
    let g = Worktree::new();
    g.add_submodule("sub");
    let mut f = g.start();
    f.write("sub/a", "x\n");
    f.commit_in_submodule("sub");
    f.git(&["init", "-q", "nested"]);
    f.write("nested/file", "x");
    f.write("a", "x\n");
    f.commit("Sub");
    assert_eq!(
        f.git(&["rev-parse", "HEAD:sub"]),
        f.git(&["-C", "sub", "rev-parse", "HEAD"])
    );
    assert_eq!(f.git(&["diff", "--name-only", "HEAD~", "HEAD"]), "a\nsub");
    assert_eq!(f.status(), "?? nested/");
}

#[test]
fn a_reftable_repository_is_committed_to_and_guarded() {
    if !git_knows("--ref-format=reftable") {
        return;
    }
    let g = Worktree::with_format("--ref-format=reftable");
    g.write("x", "x");
    g.git(&["add", "."]);
    g.git(&["commit", "-qm", "x"]);
    let mut f = g.start();
    let mark = f.repo.mark_turn().unwrap();
    f.git(&["tag", "evil"]);
    f.write("x", "y");
    assert_eq!(f.repo.inspect_turn(&mark).unwrap().violations.len(), 1);
    let commit = f.commit("Reftable");
    assert_eq!(f.head(), commit.0);
    assert_eq!(f.git(&["tag"]), "");
    assert_eq!(f.status(), "");
}

#[test]
fn linked_work_trees_and_submodule_checkouts_are_committed_to() {
    let g = Worktree::new();
    g.git(&["worktree", "add", "-q", "../linked", "-b", "other"]);
    let url = g.path(".");
    g.git(&[
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "add",
        "-q",
        url.to_str().unwrap(),
        "sub",
    ]);
    let root = g.root().to_path_buf();
    for (number, place) in [root.join("linked"), g.path("sub")].into_iter().enumerate() {
        let real = discover(&place, &environment(&root)).unwrap();
        let mut repo = Repo::create(real, &root.join(format!("run{number}"))).unwrap();
        fs::write(place.join("a"), "edited\n").unwrap();
        let snapshot = repo.snapshot(&Exempt::default()).unwrap();
        let token = Committable::verified(snapshot.known.tree.clone());
        let request = CommitRequest {
            snapshot: &snapshot,
            plan: None,
            parent: repo.base(),
            merged: None,
        };
        let Stage::Ready(staged) = repo.stage(token, &request).unwrap() else {
            panic!()
        };
        let intent = repo.commit_tree(staged, "Elsewhere", &identity()).unwrap();
        repo.land(&intent).unwrap();
        assert_eq!(
            git_in(&root, &place, &["rev-parse", "HEAD"]),
            intent.commit.0
        );
        assert_eq!(git_in(&root, &place, &["status", "--porcelain"]), "");
    }
}

#[test]
fn a_partial_clone_with_a_sparse_checkout_works_without_the_missing_blobs() {
    let g = Worktree::new();
    g.write("far/away", "never fetched");
    g.git(&["add", "."]);
    g.git(&["commit", "-qm", "far"]);
    g.git(&["config", "uploadpack.allowFilter", "true"]);
    let root = g.root().to_path_buf();
    let url = format!("file://{}", g.path(".").display());
    git_in(
        &root,
        &root,
        &[
            "clone",
            "-q",
            "--filter=blob:none",
            "--sparse",
            &url,
            "part",
        ],
    );
    let place = root.join("part");
    let real = discover(&place, &environment(&root)).unwrap();
    let mut repo = Repo::create(real, &root.join("run/git")).unwrap();
    fs::write(place.join("a"), "edited\n").unwrap();
    let snapshot = repo.snapshot(&Exempt::default()).unwrap();
    assert_eq!(
        named(&snapshot.changes),
        changed(&[("a", crate::git::ChangeKind::Modified)])
    );
    repo.patch(&snapshot).unwrap();
    let token = Committable::verified(snapshot.known.tree.clone());
    let request = CommitRequest {
        snapshot: &snapshot,
        plan: None,
        parent: repo.base(),
        merged: None,
    };
    let Stage::Ready(staged) = repo.stage(token, &request).unwrap() else {
        panic!()
    };
    let intent = repo.commit_tree(staged, "Partial", &identity()).unwrap();
    repo.land(&intent).unwrap();
    assert_eq!(
        git_in(&root, &place, &["diff", "--name-only", "HEAD~", "HEAD"]),
        "a"
    );
    assert_eq!(git_in(&root, &place, &["status", "--porcelain"]), "");
}

#[test]
fn executable_bits_count_where_the_work_tree_has_those_of_the_index_whatever_is_configured() {
    let g = Worktree::new();
    g.git(&["config", "core.fileMode", "false"]);
    let mut f = g.start();
    make_executable(&f.path("a"));
    f.write("new", "x");
    make_executable(&f.path("new"));
    f.commit("Modes");
    assert_eq!(
        f.files(),
        ["100755 a", "100644 b", "100644 dir/c", "100755 new"]
    );
}

#[test]
fn executable_bits_do_not_count_where_they_differ_from_the_start() {
    let g = Worktree::new();
    g.git(&["config", "core.fileMode", "false"]);
    make_executable(&g.path("b"));
    let mut f = g.start();
    make_executable(&f.path("a"));
    assert_eq!(f.changes(), []);
    f.write("new", "x");
    make_executable(&f.path("new"));
    f.commit("Modes");
    assert_eq!(
        f.files(),
        ["100644 a", "100644 b", "100644 dir/c", "100644 new"]
    );
}

#[test]
fn a_file_is_not_committed_as_a_link() {
    let g = Worktree::new();
    symlink("a", g.path("link")).unwrap();
    g.git(&["add", "."]);
    g.git(&["commit", "-qm", "link"]);
    g.git(&["config", "core.symlinks", "false"]);
    let mut f = g.start();
    assert_eq!(f.changes(), []);
    f.remove("link");
    f.write("link", "b");
    let refused = f.stage(None).unwrap_err().to_string();
    assert!(
        refused.starts_with("git would commit files as symbolic links: link;"),
        "{refused}"
    );
    f.remove("link");
    symlink("b", f.path("link")).unwrap();
    f.commit("Link to b");
    assert_eq!(f.git(&["cat-file", "blob", "HEAD:link"]), "b");
}

#[test]
fn line_endings_are_converted_as_configured() {
    let g = Worktree::new();
    g.git(&["config", "core.autocrlf", "true"]);
    g.write("plan.yaml", "status: pending\r\n");
    g.git(&["add", "."]);
    g.git(&["commit", "-qm", "plan"]);
    let mut f = g.start();
    f.write("a", "a\r\n");
    assert_eq!(f.changes(), [], "only touched");
    f.write("a", "edited\r\n");
    let content = b"status: done\r\n".to_vec();
    let intent = f.intent_with(
        "x",
        Some(PlanContent {
            path: b"plan.yaml".to_vec(),
            content,
        }),
    );
    f.repo.land(&intent).unwrap();
    assert_eq!(
        f.git(&["cat-file", "blob", "HEAD:plan.yaml"]),
        "status: done"
    );
    assert_eq!(f.read("plan.yaml"), "status: done\r\n");
    assert_eq!(f.read("a"), "edited\r\n");
    assert_eq!(f.status(), "");
}

#[test]
fn a_directory_with_an_empty_git_directory_is_an_ordinary_one() {
    let mut f = Worktree::new().start();
    fs::create_dir_all(f.path("odd/.git")).unwrap();
    f.write("odd/file", "x");
    f.commit("Odd");
    assert_eq!(
        f.files(),
        ["100644 a", "100644 b", "100644 dir/c", "100644 odd/file"]
    );
    assert_eq!(f.status(), "");
}

#[test]
fn a_submodule_that_the_agent_added_is_committed_as_one() {
    let mut f = Worktree::new().start();
    let url = f.path(".");
    f.git(&[
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "add",
        "-q",
        url.to_str().unwrap(),
        "sub",
    ]);
    let snapshot = f.snapshot();
    let told = [
        "changes to .git/config were undone",
        "changes to .git/modules/sub/config were undone",
        "sub is a new submodule",
    ];
    assert_eq!(snapshot.warnings, told);
    assert_eq!(snapshot.nested, Vec::<Vec<u8>>::new());
    f.commit("Sub");
    assert_eq!(f.files()[4..], ["160000 sub"]);
    assert_eq!(f.status(), "");
}
