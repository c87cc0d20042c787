//! What is committed and what is left out, in repositories of every kind.

use super::support::*;
use crate::git::{CommitRequest, Exempt, PlanContent, Repo, Stage, discover};
use crate::permit::Committable;
use std::fs;
use std::os::unix::fs::symlink;

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
