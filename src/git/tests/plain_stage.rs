//! What is staged in this process is what git would have staged.

use super::support::*;
use crate::git::PlanContent;
use crate::git::commit::index_edit::{IndexEdit, NewEntry};
use crate::git::objects::reader::{ObjectReader, binary};
use crate::git::objects::tree_writer::NewTrees;
use crate::git::snapshot::index_file::IndexFile;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::fs;

const NAMES: [&str; 12] = [
    "a",
    "b",
    "d-x",
    "d.x",
    "d0",
    "dir/c",
    "dir/d",
    "dir/deep/er/x",
    "dir/deep/y",
    "dir-x/z",
    "new/one",
    "new/two/x",
];

/// Checks the cache of trees in the index, as git's own tests do.
fn has_sound_cache(f: &Fixture, git_dir: &str) {
    let check = "GIT_TEST_CHECK_CACHE_TREE=1 git";
    let script = format!(
        "cd \"$1\" && export GIT_DIR={git_dir} GIT_WORK_TREE=. && {check} read-tree -m HEAD && {check} update-index --force-write-index"
    );
    let place = f.path(".");
    f.git(&[
        "-c",
        &format!("alias.check=!sh -c '{}' -", script.replace('\'', "'\\''")),
        "check",
        place.to_str().unwrap(),
    ]);
}

fn is_committed(f: &Fixture) {
    assert_eq!(f.status(), "");
    assert_eq!(f.changes(), []);
    let tree = f.git(&["rev-parse", "HEAD^{tree}"]);
    let listed = f.git(&["ls-tree", "-r", "HEAD"]);
    let staged = f.git(&[
        "ls-files",
        "--format=%(objectmode) blob %(objectname)%x09%(path)",
    ]);
    assert_eq!(staged, listed);
    has_sound_cache(f, ".git");
    // The tree that git makes of the files alone.
    f.git(&["read-tree", "--empty"]);
    f.git(&["add", "-A"]);
    assert_eq!(f.git(&["write-tree"]), tree);
    assert_eq!(f.git(&["fsck", "--strict", "--no-dangling"]), "");
}

fn change(f: &Fixture, (name, what): (usize, usize)) {
    let path = NAMES[name];
    match what {
        0 if f.path(path).exists() => {
            f.remove(path);
            // As an agent that removes the last file of a directory.
            let parent = f.path(path).parent().unwrap().to_owned();
            if parent != f.path(".") {
                let _ = fs::remove_dir(parent);
            }
        }
        0 => {}
        1 => {
            f.write(path, "the same\n");
            make_executable(&f.path(path));
        }
        size => f.write(path, "x".repeat(size)),
    }
}

#[test]
fn any_commits_of_plain_files_are_those_that_git_makes() {
    let one = prop::collection::vec((0..NAMES.len(), 0..6_usize), 1..6);
    let commits = prop::collection::vec(one, 1..4);
    let config = ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(16)
    };
    proptest!(config, |(commits in commits, sha256 in prop::bool::weighted(0.2))| {
        let format = if sha256 { "sha256" } else { "sha1" };
        let g = Worktree::with_format(&format!("--object-format={format}"));
        for path in ["a", "dir/c", "dir/deep/y"] {
            g.write(path, path);
        }
        g.git(&["add", "."]);
        g.git(&["commit", "-qm", "start"]);
        let mut f = g.start();
        for changes in commits {
            for one in changes {
                change(&f, one);
            }
            if !f.changes().is_empty() {
                f.commit("Some");
                is_committed(&f);
            }
        }
    });
}

#[test]
fn the_index_knows_the_trees_of_the_commit() {
    let mut f = Worktree::new().start();
    for (path, content) in [("a", "other\n"), ("dir/c", "other\n"), ("dir/new", "new\n")] {
        f.write(path, content);
    }
    f.commit("Some");
    let tree = f.git(&["rev-parse", "HEAD^{tree}"]);
    let entries = ObjectReader::new(&f.path(".git/objects")).tree(&tree);
    let index = IndexFile::read(&f.path(".git/index"), tree.len()).unwrap();
    assert!(index.is_tree(&entries.ok().unwrap()));
    is_committed(&f);
}

#[test]
fn other_kinds_of_changes_are_staged_by_git() {
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
fn the_time_of_an_index_is_needed_for_files_modified_when_it_was_written_or_later() {
    let g = Worktree::new();
    for path in ["a", "b", "dir/c"] {
        set_modified(&g, path, 1_000_000_060);
    }
    set_modified(&g, "a", 1_000_000_000);
    g.git(&["update-index", "-q", "--refresh"]);
    let index = fs::read(g.path(".git/index")).unwrap();
    let needs_time = |replaced: &[&str], modified| {
        let entry = |path: &&str| (path.as_bytes().to_vec(), Some(entry(&g)));
        let edit = IndexEdit {
            entries: &replaced.iter().map(entry).collect(),
            trees: Some(&NewTrees::default()),
            modified,
            id_length: 40,
        };
        edit.apply(&index).unwrap().needs_time
    };
    assert!(needs_time(&["new"], 1_000_000_059));
    assert!(needs_time(&["b"], 1_000_000_060));
    assert!(!needs_time(&["b"], 1_000_000_061));
    assert!(!needs_time(&["b", "dir/c"], 1_000_000_060));
}

#[test]
fn no_unchanged_file_is_called_modified_before_git_refreshes_the_index() {
    let g = Worktree::new();
    g.write("plan.yaml", "status: pending\n");
    g.git(&["add", "."]);
    // git compares the content of files from the future every time.
    set_modified(&g, "a", 4_000_000_000);
    g.git(&["commit", "-qm", "plan"]);
    let mut f = g.start();
    f.write("dir/new", "new\n");
    set_modified(&f, "dir/new", 4_000_000_000);
    let plan = PlanContent {
        path: b"plan.yaml".to_vec(),
        content: b"status: done\n".to_vec(),
    };
    let intent = f.intent_with("Some", Some(plan));
    f.repo.land(&intent).unwrap();
    assert_eq!(f.git(&["diff-index", "HEAD"]), "");
    f.write("a", "b\n");
    f.write("dir/new", "old\n");
    for path in ["a", "dir/new"] {
        set_modified(&f, path, 4_000_000_000);
    }
    assert_eq!(f.status(), " M a\n M dir/new");
}

#[test]
fn the_staged_index_is_replaced_as_a_whole() {
    let g = Worktree::new();
    g.write("plan.yaml", "status: pending\n");
    g.git(&["add", "."]);
    g.git(&["commit", "-qm", "plan"]);
    let mut f = g.start();
    f.write("a", "other\n");
    let plan = PlanContent {
        path: b"plan.yaml".to_vec(),
        content: b"status: done\n".to_vec(),
    };
    let intent = f.intent_with("Some", Some(plan));
    let open = f.repo.unseal().unwrap();
    let (staged, kept) = (f.repo.stage_index(), f.path(".git/kept"));
    fs::hard_link(&staged, &kept).unwrap();
    drop(open);
    let before = fs::read(&kept).unwrap();
    f.repo.land(&intent).unwrap();
    assert_ne!(fs::read(f.path(".git/index")).unwrap(), before);
    assert_eq!(fs::read(&kept).unwrap(), before);
}

#[test]
fn attributes_that_no_commit_has_are_left_to_git() {
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
fn an_empty_directory_in_the_tree_of_the_base_is_left_to_git() {
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

fn set_modified(place: &impl Place, path: &str, seconds: u64) {
    let file = fs::File::open(place.path(path)).unwrap();
    file.set_modified(filetime(seconds)).unwrap();
}

fn filetime(seconds: u64) -> std::time::SystemTime {
    std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(seconds)
}

fn entry(g: &Worktree) -> NewEntry {
    let id = g.git(&["hash-object", "a"]);
    let meta = g.path("a").metadata().unwrap();
    NewEntry::new(Some((0o100_644, binary(&id).unwrap())), Some(&meta))
}

#[test]
fn an_index_of_another_form_is_left_to_git() {
    let forms: [&[&str]; 4] = [
        &["update-index", "--assume-unchanged", "b"],
        &["update-index", "--skip-worktree", "b"],
        &["update-index", "--index-version", "4"],
        &["add", "-N", "new"],
    ];
    for form in forms {
        let g = Worktree::new();
        g.write("new", "new");
        g.git(form);
        let entries = BTreeMap::from([(b"a".to_vec(), Some(entry(&g)))]);
        let edit = IndexEdit {
            entries: &entries,
            trees: Some(&NewTrees::default()),
            modified: 0,
            id_length: 40,
        };
        let index = fs::read(g.path(".git/index")).unwrap();
        assert!(edit.apply(&index).is_none(), "{form:?}");
        for length in 0..index.len() {
            assert!(edit.apply(&index[..length]).is_none());
        }
    }
}
