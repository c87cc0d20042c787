//! What is read of an index in this process is what git says.

use super::support::*;
use crate::git::objects::reader::ObjectReader;
use crate::git::snapshot::index_file::IndexFile;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;

/// A repository with every kind of entry that the index of the usual form has.
fn repository(format: &str) -> Worktree {
    let g = Worktree::with_format(format);
    g.git(&["config", "core.quotePath", "false"]);
    for path in [
        ".gitignore",
        "a-b",
        "a/.gitignore",
        "a/.gitattributes",
        "a/below/deep/er",
        "a/below/other",
        "b",
        "name-of-seven",
        "z/one",
        "é ü",
    ] {
        g.write(path, path);
    }
    symlink("b", g.path("link")).unwrap();
    make_executable(&g.path("b"));
    g.git(&["add", "."]);
    let zeros = g.git(&["hash-object", "-w", "b"]);
    let entry = format!("160000,{zeros},sub");
    g.git(&["update-index", "--add", "--cacheinfo", &entry]);
    g.git(&["commit", "-qm", "all"]);
    g
}

fn read(g: &Worktree) -> Option<IndexFile> {
    let length = g.git(&["rev-parse", "HEAD"]).len();
    IndexFile::read(&g.path(".git/index"), length)
}

/// Whether the index holds what HEAD does, as far as it is known without git.
fn is_head(g: &Worktree) -> bool {
    let tree = g.git(&["rev-parse", "HEAD^{tree}"]);
    let entries = ObjectReader::new(&g.path(".git/objects")).tree(&tree);
    read(g).is_some_and(|index| index.is_tree(&entries.ok().unwrap()))
}

/// Compares with `git ls-files`.
fn is_as_listed(g: &Worktree) {
    let read = read(g).unwrap().read;
    let listed = g.git(&["ls-files", "-s", "-v"]);
    let paths = |keep: fn(char) -> bool| -> Vec<Vec<u8>> {
        let lines = listed.lines().filter(|line| line.starts_with(keep));
        let path = |line: &str| line.split_once('\t').unwrap().1.as_bytes().to_vec();
        lines.map(path).collect()
    };
    assert_eq!(read.assumed, paths(|tag| tag.is_ascii_lowercase()));
    assert_eq!(read.skipped, paths(|tag| tag.eq_ignore_ascii_case(&'S')));
    let named = |name: &str| -> BTreeSet<Vec<u8>> {
        let all = paths(|_| true).into_iter();
        let is_named = |path: &Vec<u8>| {
            let path = String::from_utf8(path.clone()).unwrap();
            path == name || path.ends_with(&format!("/{name}"))
        };
        all.filter(is_named).collect()
    };
    let layout = &read.layout;
    assert_eq!(layout.attribute_files, named(".gitattributes"));
    assert_eq!(layout.links, BTreeSet::from([b"link".to_vec()]));
    let ignore_files: BTreeSet<Vec<u8>> = layout.ignore_files.keys().cloned().collect();
    assert_eq!(ignore_files, named(".gitignore"));
    for (path, oid) in layout.ignore_files.iter().chain(&layout.gitlinks) {
        let path = String::from_utf8(path.clone()).unwrap();
        let entry = g.git(&["ls-files", "-s", "--", &path]);
        assert_eq!(entry.split(' ').nth(1), Some(oid.as_str()), "{path}");
    }
    let directories: BTreeSet<&[u8]> = layout.directories.iter().map(Vec::as_slice).collect();
    let expected: [&[u8]; 5] = [b"", b"a", b"a/below", b"a/below/deep", b"z"];
    assert_eq!(directories, expected.into());
}

#[test]
fn an_index_of_the_usual_form_is_read_as_git_lists_it() {
    for format in ["--object-format=sha1", "--object-format=sha256"] {
        if !git_knows(format) {
            continue;
        }
        let g = repository(format);
        assert!(is_head(&g), "{format}");
        is_as_listed(&g);
        assert_eq!(read(&g).unwrap().read.layout.gitlinks.len(), 1);
        g.git(&["update-index", "--assume-unchanged", "b", "a/below/other"]);
        g.git(&["update-index", "--skip-worktree", "z/one", "a/below/other"]);
        is_as_listed(&g);
        assert_eq!(read(&g).unwrap().read.skipped.len(), 2);
        // The trees of directories with such entries are known only once git has written them again.
        assert!(!is_head(&g), "{format}");
        g.git(&["write-tree"]);
        assert!(is_head(&g), "{format}");
        // Stat data that git refreshes, and an index that git writes anew.
        g.write("b", "b");
        g.git(&["status"]);
        g.git(&["read-tree", "HEAD"]);
        is_as_listed(&g);
        assert!(is_head(&g), "{format}");
    }
}

#[test]
fn an_index_that_differs_from_the_tree_is_not_taken_for_it() {
    let changes: [&[&str]; 7] = [
        &["add", "."],
        &["rm", "-q", "--cached", "b"],
        &["rm", "-q", "--cached", "a/below/deep/er"],
        &["rm", "-rq", "--cached", "a"],
        &["mv", "z/one", "y"],
        &["update-index", "--chmod=+x", "z/one"],
        &["update-index", "--force-remove", "sub"],
    ];
    for change in changes {
        let g = repository("--object-format=sha1");
        fs::write(g.path("a/below/new"), "new").unwrap();
        assert!(is_head(&g));
        g.git(change);
        assert!(!is_head(&g), "{change:?}");
        // The tree of the index is known again, and is another one.
        g.git(&["write-tree"]);
        assert!(!is_head(&g), "{change:?}");
    }
}

#[test]
fn a_rare_form_of_an_index_is_left_to_git() {
    let forms: [&[&[&str]]; 4] = [
        &[&["update-index", "--index-version", "4"]],
        &[&["update-index", "--split-index"]],
        &[&["add", "-N", "new"]],
        &[
            &["sparse-checkout", "set", "--cone", "--sparse-index", "a"],
            &["status"],
        ],
    ];
    for form in forms {
        let g = repository("--object-format=sha1");
        g.git(&["rm", "-q", "--cached", "sub"]);
        g.git(&["commit", "-qm", "without"]);
        g.write("new", "new");
        assert!(read(&g).is_some());
        for command in form {
            g.git(command);
        }
        assert!(read(&g).is_none(), "{form:?}");
    }
    let g = repository("--object-format=sha1");
    g.git(&["checkout", "-q", "-b", "other"]);
    g.write("b", "other");
    g.git(&["commit", "-qam", "other"]);
    g.git(&["checkout", "-q", "main"]);
    g.write("b", "main");
    g.git(&["commit", "-qam", "main"]);
    let merged = try_git(g.root(), &g.path("."), &["merge", "-q", "other"], b"");
    assert!(!merged.status.success());
    assert!(read(&g).is_none());
}

#[test]
fn an_index_that_is_cut_is_read_as_a_whole_or_not_at_all() {
    let g = repository("--object-format=sha1");
    let index = g.path(".git/index");
    let content = fs::read(&index).unwrap();
    let directories = read(&g).unwrap().read.layout.directories;
    for length in 0..content.len() {
        fs::write(&index, &content[..length]).unwrap();
        if let Some(cut) = IndexFile::read(&index, 40) {
            assert_eq!(cut.read.layout.directories, directories, "{length}");
        }
    }
}
