//! What is read in this process is what git says.

use super::support::*;
use crate::git::objects::loose::loose_path;
use crate::git::objects::reader::{LeftToGit, ObjectReader};
use crate::git::snapshot::listing::{RawDiff, parse_raw};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

/// A repository with a second commit that changes every kind of entry, and both commits.
fn two_commits(format: &str) -> (Worktree, [String; 2]) {
    let g = Worktree::with_format(format);
    for path in [
        "a",
        "a-b",
        "a.b",
        "a0",
        "dir/c",
        "dir/below/d",
        "kept/x",
        "gone/y",
        "file",
        "tree/z",
        "tool",
        "link",
        "é ü",
    ] {
        g.write(path, path);
    }
    g.git(&["add", "."]);
    g.git(&["commit", "-qm", "before"]);
    for path in ["a", "gone/y", "file", "tree/z", "link"] {
        g.remove(path);
    }
    fs::remove_dir(g.path("tree")).unwrap();
    for (path, content) in [
        ("a/inside", "1"),
        ("dir/below/d", "2"),
        ("file/inside", "3"),
        ("tree", "4"),
        ("new/deep/er", "5"),
        ("é ü", "6"),
    ] {
        g.write(path, content);
    }
    make_executable(&g.path("tool"));
    symlink("tool", g.path("link")).unwrap();
    g.git(&["add", "."]);
    let submodule = g.git(&["rev-parse", "HEAD"]);
    let entry = format!("160000,{submodule},sub");
    g.git(&["update-index", "--add", "--cacheinfo", &entry]);
    g.git(&["commit", "-qm", "after"]);
    let commits = ["HEAD~", "HEAD"].map(|name| g.git(&["rev-parse", name]));
    (g, commits)
}

fn reader(place: &Worktree) -> ObjectReader {
    ObjectReader::new(&objects(place))
}

fn objects(place: &Worktree) -> PathBuf {
    place.path(".git/objects")
}

fn diff_of_git(place: &Worktree, commits: &[String; 2], options: &[&str]) -> Vec<RawDiff> {
    let args = [
        "diff-tree",
        "-r",
        "--raw",
        "-z",
        "--no-abbrev",
        "--no-renames",
    ];
    let [from, to] = commits;
    let args = [&args[..], options, &[from, to]].concat();
    parse_raw(&try_git(place.root(), &place.path("."), &args, b"").stdout).unwrap()
}

#[test]
fn differences_sizes_and_contents_are_those_that_git_gives() {
    for (format, packed) in [
        ("--object-format=sha1", false),
        ("--object-format=sha1", true),
        ("--object-format=sha256", false),
    ] {
        let (g, commits) = two_commits(format);
        if packed {
            g.git(&["repack", "-qad"]);
        }
        let reader = reader(&g);
        let [from, to] = &commits;
        for (options, with_trees) in [(&[][..], false), (&["-t"], true)] {
            for [from, to] in [[from, to], [to, from], [from, from]] {
                let expected = diff_of_git(&g, &[from.clone(), to.clone()], options);
                assert_eq!(reader.diff(from, to, with_trees), Ok(expected));
            }
        }
        assert_eq!(reader.tree_of(to), Ok(g.git(&["rev-parse", "HEAD^{tree}"])));
        assert_eq!(
            reader.tree_of(&g.git(&["rev-parse", "HEAD^{tree}"])),
            Err(LeftToGit)
        );
        for (path, content) in [
            ("dir/below/d", Some("2")),
            ("link", Some("tool")),
            ("é ü", Some("6")),
            ("dir", None),
            ("dir/none", None),
            ("tree/z", None),
            ("sub", None),
        ] {
            let content = content.map(|content| content.as_bytes().to_vec());
            assert_eq!(reader.blob_at(to, path.as_bytes()), Ok(content), "{path}");
        }
        let id = g.git(&["rev-parse", "HEAD:a-b"]);
        assert_eq!(reader.size(&id), Ok(3));
        assert_eq!(reader.digest(&id), Ok(*blake3::hash(b"a-b").as_bytes()));
    }
}

#[test]
fn other_content_under_an_id_is_left_to_git() {
    let (g, [_, head]) = two_commits("--object-format=sha1");
    let [wanted, other] = ["HEAD:a-b", "HEAD:a0"].map(|name| g.git(&["rev-parse", name]));
    let planted = loose_path(&objects(&g), &wanted);
    fs::remove_file(&planted).unwrap();
    fs::copy(loose_path(&objects(&g), &other), planted).unwrap();
    let reader = reader(&g);
    assert_eq!(reader.digest(&wanted), Err(LeftToGit));
    assert_eq!(reader.blob_at(&head, b"a-b"), Err(LeftToGit));
    assert!(reader.digest(&other).is_ok());
}

#[test]
fn nothing_that_lies_in_the_place_of_objects_is_waited_for() {
    let (g, [_, head]) = two_commits("--object-format=sha1");
    g.git(&["repack", "-qad"]);
    let id = g.git(&["rev-parse", "HEAD:a-b"]);
    let loose = loose_path(&objects(&g), &id);
    fs::create_dir_all(loose.parent().unwrap()).unwrap();
    for (place, answer) in [
        (loose, Ok(3)),
        (objects(&g).join("pack/pack-1.idx"), Err(LeftToGit)),
    ] {
        rustix::fs::mkfifoat(rustix::fs::CWD, &place, 0o644.into()).unwrap();
        assert_eq!(reader(&g).size(&id), answer, "{}", place.display());
    }
    assert_eq!(reader(&g).tree_of(&head), Err(LeftToGit));
    assert_eq!(reader(&g).tree_of("HEAD"), Err(LeftToGit));
}

#[test]
fn a_large_object_is_left_to_git() {
    let g = Worktree::new();
    g.write("large", vec![b'x'; (16 << 20) + 1]);
    g.git(&["add", "."]);
    g.git(&["commit", "-qm", "large"]);
    let head = g.git(&["rev-parse", "HEAD"]);
    let id = g.git(&["rev-parse", "HEAD:large"]);
    for packed in [false, true] {
        if packed {
            g.git(&["repack", "-qad"]);
        }
        assert_eq!(reader(&g).size(&id), Ok((16 << 20) + 1));
        assert_eq!(reader(&g).blob_at(&head, b"large"), Err(LeftToGit));
        // A loose one is read in parts.
        assert_eq!(reader(&g).digest(&id).is_err(), packed);
    }
}
