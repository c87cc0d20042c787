//! F23 and F29: clones and stores of every kind work, or are refused before any turn.

use super::{assert_exact, delta_at, has, work, work_at};
use crate::support::project::{Project, Run};
use std::fs;

const FIX: &str = "echo edited > a.txt; echo new > new.txt; git rm -q gone.txt";
const FIXED: [&str; 3] = ["A new.txt", "D gone.txt", "M a.txt"];

fn project() -> Project {
    Project::new(&[("a.txt", "a\n"), ("dir/b.txt", "b\n"), ("gone.txt", "x\n")])
}

/// Does the work in a clone made with these arguments, which lies beside the origin.
fn in_clone(args: &[&str], prepare: impl Fn(&Project, &str)) -> (Project, Run, Vec<String>) {
    let project = project();
    project.write("a.txt", "second\n");
    project.commit_all("second");
    project.git(&["config", "uploadpack.allowFilter", "true"]);
    let clone = project.outside("clone");
    let clone = clone.to_str().unwrap();
    let url = format!("file://{}", project.repo().display());
    project.git(&[&["clone", "--quiet"], args, &[&url, clone]].concat());
    prepare(&project, clone);
    let base = project.git(&["-C", clone, "rev-parse", "HEAD"]);
    let run = work_at(&project, clone, FIX, &[]);
    assert_eq!(run.code, 0, "{args:?}\n{}\n{}", run.stdout, run.stderr);
    let changed = delta_at(&project, clone, &base);
    assert_eq!(
        project.git(&["-C", clone, "status", "--porcelain"]),
        "",
        "{args:?}"
    );
    (project, run, changed)
}

#[test]
fn shallow_and_detached_clones_are_committed_to() {
    let (.., changed) = in_clone(&["--depth", "1"], |_, _| {});
    assert_eq!(changed, FIXED);
    let (project, run, changed) = in_clone(&["--depth", "1"], |project, clone| {
        project.git(&["-C", clone, "checkout", "--quiet", "--detach"]);
        project.git(&["-C", clone, "update-ref", "-d", "refs/remotes/origin/main"]);
    });
    assert_eq!(changed, FIXED);
    let clone = project.outside("clone");
    let head = fs::read_to_string(clone.join(".git/HEAD")).unwrap();
    assert!(!head.starts_with("ref:"), "{head}");
    assert!(run.summary["branch"].is_null());
}

#[test]
fn a_partial_sparse_clone_whose_origin_is_gone_is_committed_to() {
    let (.., changed) = in_clone(&["--filter=blob:none", "--sparse"], |project, clone| {
        fs::rename(project.repo().join(".git"), project.outside("hidden")).unwrap();
        assert!(!std::path::Path::new(clone).join("dir").exists());
    });
    assert_eq!(changed, FIXED);
}

#[test]
fn a_linked_work_tree_is_committed_to_and_the_main_one_is_left() {
    let project = project();
    let linked = project.outside("linked");
    let linked = linked.to_str().unwrap();
    project.git(&["worktree", "add", "--quiet", "-b", "other", linked]);
    let base = project.head();
    work_at(&project, linked, FIX, &[]).expect(0);
    assert_eq!(delta_at(&project, linked, &base), FIXED);
    assert_eq!(project.git(&["-C", linked, "status", "--porcelain"]), "");
    assert_eq!((project.head(), project.status()), (base, String::new()));
}

#[test]
fn a_split_index_and_an_index_of_version_four_are_committed_to() {
    for args in [
        ["update-index", "--split-index"].as_slice(),
        &["update-index", "--index-version", "4"],
        &["update-index", "--untracked-cache"],
        &["config", "feature.manyFiles", "true"],
    ] {
        let project = project();
        project.git(args);
        project.git(&["status"]);
        let base = project.head();
        let run = work(&project, FIX);
        assert_exact(&project, run, &base, &FIXED);
    }
}

/// A repository made by `git init` with these arguments in the place of the project's own.
fn of_format(args: &[&str]) -> Project {
    let project = project();
    fs::remove_dir_all(project.repo().join(".git")).unwrap();
    project.git(&[&["init", "--quiet", "--initial-branch=main"], args].concat());
    project.git(&["config", "user.name", "Tester"]);
    project.git(&["config", "user.email", "tester@example.invalid"]);
    project.commit_all("base");
    project
}

#[test]
fn a_sha256_repository_is_committed_to() {
    let project = of_format(&["--object-format=sha256"]);
    let base = project.head();
    assert_eq!(base.len(), 64);
    let run = work(&project, FIX);
    let run = assert_exact(&project, run, &base, &FIXED);
    assert_eq!(run.summary["commits"][0], project.head());
}

#[test]
fn a_reftable_repository_is_committed_to() {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().join("r");
    let probe = [
        "git",
        "init",
        "-q",
        "--ref-format=reftable",
        place.to_str().unwrap(),
    ];
    if !has("A GIT WITH REFTABLE", &probe) {
        return;
    }
    let project = of_format(&["--ref-format=reftable"]);
    let base = project.head();
    let run = work(&project, FIX);
    assert_exact(&project, run, &base, &FIXED);
}

#[test]
fn an_unborn_branch_gets_its_first_commit() {
    let project = Project::new(&[]);
    project.git(&["checkout", "--quiet", "--orphan", "fresh"]);
    let run = work(&project, "echo first > a.txt").expect(0);
    assert_eq!(project.commits(), 1, "{}", run.stdout);
    assert_eq!(project.git(&["ls-tree", "--name-only", "HEAD"]), "a.txt");
    assert_eq!(project.git(&["symbolic-ref", "HEAD"]), "refs/heads/fresh");
}

#[test]
fn a_repository_of_an_unknown_format_is_refused() {
    let project = project();
    project.git(&["config", "core.repositoryFormatVersion", "1"]);
    project.git(&["config", "extensions.fromTheFuture", "true"]);
    let run = work(&project, FIX);
    assert_eq!((run.code, project.calls()), (2, 0), "{}", run.stderr);
    let said = "error: git cannot open the repository ";
    assert!(
        run.stderr.starts_with(said) && run.stderr.contains("fromthefuture"),
        "{}",
        run.stderr
    );
}

#[test]
fn a_corrupt_repository_is_refused() {
    let project = project();
    let tree = project.git(&["rev-parse", "HEAD^{tree}"]);
    let object = project
        .repo()
        .join(".git/objects")
        .join(&tree[..2])
        .join(&tree[2..]);
    fs::remove_file(&object).unwrap();
    fs::write(&object, "rubbish").unwrap();
    let run = work(&project, FIX);
    assert_eq!(
        (run.code, project.calls()),
        (4, 0),
        "{}\n{}",
        run.stdout,
        run.stderr
    );
    assert!(run.stderr.contains(&tree), "{}", run.stderr);
}

#[test]
fn a_pre_populated_alternate_is_used() {
    let (.., changed) = in_clone(&["--shared"], |_, _| {});
    assert_eq!(changed, FIXED);
}
