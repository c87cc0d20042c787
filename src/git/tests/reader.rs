//! What is read of objects is what git says, and never something else that lies under their ids.

use super::support::*;
use crate::git::GitError;
use crate::git::objects::loose::{ObjectName, loose_path};
use crate::git::objects::reader::{Counted, Extent};
use crate::git::snapshot::listing::{RawDiff, parse_raw};
use flate2::Compression;
use flate2::write::ZlibEncoder;
use proptest::prelude::*;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

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

#[test]
fn the_files_that_differ_are_counted_as_git_lists_them() {
    for format in ["--object-format=sha1", "--object-format=sha256"] {
        let (g, commits) = two_commits(format);
        let listed = diff_of_git(&g, &commits, &["-t"]);
        let longest = listed.iter().map(|diff| diff.path.len()).max();
        let repo = g.open();
        let reader = repo.objects();
        let mut counted = Counted::new();
        let [from, to] = commits.each_ref().map(String::as_str);
        let extent = reader.extent(Some(from), to, &mut counted).unwrap();
        assert_eq!(extent.files, listed.len() as u64);
        assert_eq!(Some(extent.path), longest);
        let back = reader.extent(Some(to), from, &mut counted).unwrap();
        assert_eq!(back.files, extent.files);
        let same = reader.extent(Some(to), to, &mut counted).unwrap();
        assert_eq!(same, Extent::default());
        let all = g.git(&["ls-tree", "-r", "-t", "--name-only", to]);
        let whole = reader.extent(None, to, &mut counted).unwrap();
        assert_eq!(whole.files, all.lines().count() as u64);
    }
}

#[test]
fn trees_that_contain_each_other_are_counted_and_not_listed() {
    let (g, _) = two_commits("--object-format=sha1");
    let file = g.git(&["rev-parse", "HEAD:file/inside"]);
    let made = |entries: &str| {
        let made = try_git(g.root(), &g.path("."), &["mktree"], entries.as_bytes());
        String::from_utf8(made.stdout)
            .unwrap()
            .trim_end()
            .to_owned()
    };
    let mut tree = made(&format!("100644 blob {file}\tf\n"));
    for _ in 0..80 {
        let entry = |name| format!("040000 tree {tree}\t{name}\n");
        tree = made(&["a", "b", "c"].map(entry).concat());
    }
    let repo = g.open();
    let reader = repo.objects();
    let extent = reader.extent(None, &tree, &mut Counted::new()).unwrap();
    let expected = Extent {
        files: u64::MAX,
        path: 161,
    };
    assert_eq!(extent, expected);
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
fn differences_and_contents_are_those_that_git_gives() {
    for (format, packed) in [
        ("--object-format=sha1", false),
        ("--object-format=sha1", true),
        ("--object-format=sha256", true),
    ] {
        let (g, commits) = two_commits(format);
        if packed {
            g.git(&["repack", "-qad"]);
        }
        let repo = g.open();
        let reader = repo.objects();
        let [from, to] = &commits;
        for (options, with_trees) in [(&[][..], false), (&["-t"], true)] {
            for [from, to] in [[from, to], [to, from], [from, from]] {
                let expected = diff_of_git(&g, &[from.clone(), to.clone()], options);
                assert_eq!(reader.diff(Some(from), to, with_trees).unwrap(), expected);
            }
        }
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
            assert_eq!(
                reader.blob_at(to, path.as_bytes()).unwrap(),
                content,
                "{path}"
            );
        }
        let id = g.git(&["rev-parse", "HEAD:a-b"]);
        let digest = Some(*blake3::hash(b"a-b").as_bytes());
        assert_eq!(reader.digest(&id, 3).unwrap(), digest);
    }
}

#[test]
fn something_else_under_an_id_is_never_read() {
    let (g, [_, head]) = two_commits("--object-format=sha1");
    let repo = g.open();
    let [wanted, other] = ["HEAD:a-b", "HEAD:a0"].map(|name| g.git(&["rev-parse", name]));
    let tree = g.git(&["rev-parse", "HEAD:dir"]);
    for (id, kind, content) in [
        (&wanted, "blob", b"another size".to_vec()),
        (&wanted, "blob", b"a0!".to_vec()),
        (&tree, "tree", tree_of(&[("100644", "x", &wanted)])),
    ] {
        plant_as(&objects(&g), id, kind, &content);
        let reader = repo.objects();
        assert_eq!(reader.digest(id, u64::MAX).unwrap(), None);
        assert!(repo.objects().digest(&other, u64::MAX).unwrap().is_some());
    }
    for path in [b"a-b".as_slice(), b"dir/below/d"] {
        let read = repo.objects().blob_at(&head, path);
        assert!(matches!(read, Err(GitError::Malformed { .. })), "{read:?}");
    }
    let none = repo.objects().digest(&"1".repeat(40), 1);
    assert_eq!(none.unwrap(), None);
}

#[test]
fn an_object_is_read_up_to_its_limit_and_others_after_it() {
    let g = Worktree::new();
    g.write("large", vec![b'x'; (1 << 20) + 1]);
    g.git(&["add", "."]);
    g.git(&["commit", "-qm", "large"]);
    let [large, small] = ["HEAD:large", "HEAD:a"].map(|name| g.git(&["rev-parse", name]));
    let repo = g.open();
    let reader = repo.objects();
    assert_eq!(reader.digest(&large, 1 << 20).unwrap(), None);
    assert!(reader.digest(&small, 2).unwrap().is_some());
    assert!(reader.digest(&large, (1 << 20) + 1).unwrap().is_some());
    assert!(repo.objects().within(1 << 20).blob(&large).is_err());
    assert!(repo.objects().blob(&large).unwrap().is_some());
}

fn deflated(content: &[u8]) -> Vec<u8> {
    let mut deflate = ZlibEncoder::new(Vec::new(), Compression::fast());
    deflate.write_all(content).unwrap();
    deflate.finish().unwrap()
}

fn id_of(kind: &str, content: &[u8]) -> String {
    let mut name = ObjectName::of(kind, 40, content.len() as u64);
    name.update(content);
    name.hex()
}

/// Writes `content` as the loose object `id`, whether it is that or not.
fn plant_as(store: &Path, id: &str, kind: &str, content: &[u8]) {
    let path = loose_path(store, id);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let _ = fs::remove_file(&path);
    let header = format!("{kind} {}\0", content.len());
    fs::write(path, deflated(&[header.as_bytes(), content].concat())).unwrap();
}

fn plant(store: &Path, kind: &str, content: &[u8]) -> String {
    let id = id_of(kind, content);
    plant_as(store, &id, kind, content);
    id
}

fn bytes_of(id: &str) -> Vec<u8> {
    let digits = |at: usize| u8::from_str_radix(&id[at..at + 2], 16).unwrap();
    (0..id.len()).step_by(2).map(digits).collect()
}

/// The content of a tree with these modes, names and ids, as they are.
fn tree_of(entries: &[(&str, &str, &str)]) -> Vec<u8> {
    let mut content = Vec::new();
    for (mode, name, id) in entries {
        content.extend(format!("{mode} {name}\0").as_bytes());
        content.extend(bytes_of(id));
    }
    content
}

#[test]
fn a_tree_is_read_as_git_reads_it_or_refused() {
    let g = Worktree::unborn();
    let repo = g.open();
    let store = objects(&g);
    let blob = plant(&store, "blob", b"text");
    let plain = plant(&store, "tree", &tree_of(&[("100644", "x", &blob)]));
    for (entries, is_read) in [
        // Each of these is a directory, a link, a file or a submodule for git.
        (&[("40755", "dir", &*plain)][..], true),
        (&[("040000", "dir", &plain)], true),
        (&[("120777", "x", &blob)], true),
        (&[("100664", "x", &blob)], true),
        (&[("0", "x", &blob)], true),
        (&[("+40000", "dir", &plain)], false),
        (&[("100644", "", &blob)], false),
        (&[("100648", "x", &blob)], false),
        (&[("100644", "a/b", &blob)], false),
    ] {
        let odd = plant(&store, "tree", &tree_of(entries));
        let read = repo.objects().diff(Some(&plain), &odd, true);
        assert_eq!(read.is_ok(), is_read, "{entries:?}");
        if let Ok(read) = read {
            let of_git = diff_of_git(&g, &[plain.clone(), odd], &["-t"]);
            assert_eq!(read, of_git, "{entries:?}");
        }
    }
}

#[test]
fn trees_inside_of_trees_without_end_are_refused() {
    let g = Worktree::unborn();
    let repo = g.open();
    let store = objects(&g);
    let blob = plant(&store, "blob", b"text");
    let leaf = plant(&store, "tree", &tree_of(&[("100644", "x", &blob)]));
    let deep = (0..1_000).fold(leaf.clone(), |below, _| {
        plant(&store, "tree", &tree_of(&[("40000", "d", &below)]))
    });
    let reader = repo.objects();
    let refused = reader.diff(Some(&leaf), &deep, false).unwrap_err();
    assert!(refused.to_string().ends_with("is too deep in other trees"));
    assert!(reader.extent(None, &deep, &mut Counted::new()).is_err());
}

/// An entry of a tree: the numbers of its mode, its name, and its blob or subtree.
type Row = (usize, usize, usize);

/// Writes a tree with these entries in their order.
fn plant_rows(store: &Path, mut rows: Vec<Row>, subtrees: &[String]) -> String {
    const MODES: [&str; 7] = [
        "100644", "100755", "120000", "160000", "40000", "40000", "40755",
    ];
    const NAMES: [&str; 6] = ["a", "a-", "a.b", "a0", "b", "é"];
    let mode = |row: &Row| MODES[row.0];
    let is_tree = |row: &Row| mode(row).starts_with('4');
    rows.sort_by_key(|row| format!("{}{}", NAMES[row.1], if is_tree(row) { "/" } else { "" }));
    rows.dedup_by_key(|row| row.1);
    let id = |row: &Row| {
        if is_tree(row) {
            subtrees[row.2 % subtrees.len()].clone()
        } else {
            plant(store, "blob", row.2.to_string().as_bytes())
        }
    };
    let ids: Vec<String> = rows.iter().map(id).collect();
    let rows = rows.iter().zip(&ids);
    let entries: Vec<_> = rows
        .map(|(row, id)| (mode(row), NAMES[row.1], id.as_str()))
        .collect();
    plant(store, "tree", &tree_of(&entries))
}

#[test]
fn differences_between_any_trees_are_those_that_git_gives() {
    let g = Worktree::unborn();
    let repo = g.open();
    let store = objects(&g);
    let tree = || prop::collection::vec((0..7_usize, 0..6_usize, 0..4_usize), 0..6);
    let level = || prop::collection::vec(tree(), 2..4);
    let levels = (level(), level(), level());
    let config = ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(48)
    };
    proptest!(config, |((leaves, middle, top) in levels)| {
        let mut below = vec![plant(&store, "tree", b"")];
        for level in [leaves, middle, top] {
            let trees = level.into_iter().map(|rows| plant_rows(&store, rows, &below));
            below = trees.collect();
        }
        for (options, with_trees) in [(&[][..], false), (&["-t"], true)] {
            let seen = repo.objects().diff(Some(&below[0]), &below[1], with_trees);
            let of_git = diff_of_git(&g, &[below[0].clone(), below[1].clone()], options);
            prop_assert_eq!(seen.unwrap(), of_git);
        }
    });
}
