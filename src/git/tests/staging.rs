//! What is staged is the work tree.

use super::support::*;
use crate::git::PlanContent;
use std::fs;

fn is_committed(f: &Fixture) {
    assert_eq!(f.status(), "");
    assert_eq!(f.changes(), []);
    let tree = f.git(&["rev-parse", "HEAD^{tree}"]);
    // The tree that git makes of the files alone.
    f.git(&["read-tree", "--empty"]);
    f.git(&["add", "-A"]);
    assert_eq!(f.git(&["write-tree"]), tree);
    assert_eq!(f.git(&["fsck", "--strict", "--no-dangling"]), "");
}

#[test]
fn a_file_may_become_a_directory_or_a_link_and_back() {
    let mut f = Worktree::new().start();
    fs::remove_file(f.path("dir/c")).unwrap();
    f.write("dir/c/deep", "file became a directory");
    f.commit("One");
    is_committed(&f);
    fs::remove_dir_all(f.path("dir/c")).unwrap();
    f.write("dir/c", "directory became a file");
    f.commit("Two");
    is_committed(&f);
    std::os::unix::fs::symlink("a", f.path("link")).unwrap();
    f.write("dir/c", "and a link");
    f.commit("Three");
    is_committed(&f);
}

#[test]
fn the_index_knows_the_plan_file_that_was_written_after_the_commit() {
    let g = Worktree::new();
    g.write("plan.yaml", "status: pending\n");
    g.git(&["add", "."]);
    g.git(&["commit", "-qm", "plan"]);
    let mut f = g.start();
    f.write("dir/new", "new\n");
    let plan = PlanContent {
        path: b"plan.yaml".to_vec(),
        content: b"status: done\n".to_vec(),
    };
    let intent = f.intent_with("Some", Some(plan));
    f.repo.land(&intent).unwrap();
    assert_eq!(f.git(&["diff-index", "HEAD"]), "");
}

#[test]
fn attributes_that_no_commit_has_convert_nothing_unseen() {
    let g = Worktree::new();
    g.write(".git/info/exclude", ".gitattributes\n");
    g.write("dir/.gitattributes", "*.txt text\n");
    let mut f = g.start();
    f.write("a.txt", "a\r\n");
    f.write("dir/b.txt", "b\n");
    f.commit("Some");
    assert_eq!(f.status(), "");
    f.write("dir/c.txt", "c\r\n");
    let refused = f.stage(None).unwrap_err().to_string();
    assert!(refused.ends_with("dir/c.txt"), "{refused}");
}

#[test]
fn an_empty_directory_in_the_tree_of_the_base_is_left_out() {
    let g = Worktree::new();
    let tree = |listed: &str| {
        let made = try_git(g.root(), &g.path("."), &["mktree"], listed.as_bytes());
        String::from_utf8(made.stdout).unwrap().trim().to_owned()
    };
    let listed = g.git(&["ls-tree", "HEAD"]);
    let whole = tree(&format!("{listed}\n040000 tree {}\tempty\n", tree("")));
    let commit = g.git(&["commit-tree", "-p", "HEAD", "-m", "empty", &whole]);
    g.git(&["reset", "-q", "--hard", &commit]);
    let mut f = g.start();
    f.write("a", "other\n");
    f.commit("Some");
    is_committed(&f);
}
