//! What is read in this process is what git says.

use super::support::*;
use crate::git::objects::count::{Counter, Extent};
use crate::git::objects::loose::loose_path;
use crate::git::objects::name::ObjectName;
use crate::git::objects::reader::{LeftToGit, ObjectReader};
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
        let listed = diff_of_git(&g, &commits, &[]);
        let longest = listed.iter().map(|diff| diff.path.len()).max();
        let reader = reader(&g);
        let mut counter = Counter::new(&reader);
        let [from, to] = commits.each_ref().map(String::as_str);
        let extent = counter.differing(Some(from), to).unwrap();
        assert_eq!(extent.files, listed.len() as u64);
        assert_eq!(Some(extent.path), longest);
        let back = counter.differing(Some(to), from).unwrap();
        assert_eq!(back.files, extent.files);
        assert_eq!(counter.differing(Some(to), to).unwrap(), Extent::default());
        let all = g.git(&["ls-tree", "-r", "--name-only", to]);
        let whole = counter.differing(None, to).unwrap();
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
    let reader = reader(&g);
    let extent = Counter::new(&reader).differing(None, &tree).unwrap();
    let expected = Extent {
        files: u64::MAX,
        path: 161,
    };
    assert_eq!(extent, expected);
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
        ("--object-format=sha256", true),
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

/// Checks that a reader sees what git sees, and that it leaves nothing to it if `is_plain`.
fn assert_as_git(g: &Worktree, [from, to]: [&str; 2], is_plain: bool) {
    for (options, with_trees) in [(&[][..], false), (&["-t"], true)] {
        let seen = reader(g).diff(from, to, with_trees);
        assert!(seen.is_ok() || !is_plain);
        if let Ok(seen) = seen {
            let of_git = diff_of_git(g, &[from.to_owned(), to.to_owned()], options);
            assert_eq!(seen, of_git, "{from} {to}");
        }
    }
}

#[test]
fn a_tree_that_git_reads_in_another_way_than_it_is_written_is_left_to_git() {
    let g = Worktree::unborn();
    let store = objects(&g);
    let blob = plant(&store, "blob", b"text");
    let plain = plant(&store, "tree", &tree_of(&[("100644", "x", &blob)]));
    for entries in [
        // Each of these is a directory, a link, a file or a submodule for git.
        &[("40755", "dir", &*plain)][..],
        &[("040000", "dir", &plain)],
        &[("+40000", "dir", &plain)],
        &[("120777", "x", &blob)],
        &[("100664", "x", &blob)],
        &[("0", "x", &blob)],
        // git does not accept these.
        &[("100644", "", &blob)],
        &[("100648", "x", &blob)],
        // git finds the first `x`, and `a/b` below `a`.
        &[
            ("100644", "x", &blob),
            ("40000", "x", &plain),
            ("100644", "x", &plain),
        ],
        &[("100644", "y", &blob), ("100644", "x", &blob)],
        &[("100644", "a/b", &blob)],
    ] {
        let odd = plant(&store, "tree", &tree_of(entries));
        assert_eq!(
            reader(&g).diff(&plain, &odd, true),
            Err(LeftToGit),
            "{entries:?}"
        );
        assert_eq!(
            reader(&g).diff(&odd, &plain, false),
            Err(LeftToGit),
            "{entries:?}"
        );
        assert_eq!(
            reader(&g).blob_at(&odd, b"a/b"),
            Err(LeftToGit),
            "{entries:?}"
        );
    }
}

#[test]
fn a_commit_that_git_does_not_accept_is_left_to_git() {
    let g = Worktree::new();
    let tree = g.git(&["rev-parse", "HEAD^{tree}"]);
    let head = g.git(&["rev-parse", "HEAD"]);
    for (lines, is_read) in [
        (format!("tree {tree}\nparent {head}\nauthor"), true),
        (format!("tree {tree}\nauthor"), true),
        (format!("tree {tree}"), false),
        (format!("tree {tree}x\nauthor"), false),
        (format!("tree {tree}\nparent {}\nauthor", &head[1..]), false),
        (
            format!("tree {}\nauthor", tree.replace(|_| true, "g")),
            false,
        ),
    ] {
        let content = format!("{lines} A <a@b> 1 +0000\n\ntext\n");
        let commit = plant(&objects(&g), "commit", content.as_bytes());
        let read = reader(&g).tree_of(&commit);
        assert_eq!(
            read,
            if is_read {
                Ok(tree.clone())
            } else {
                Err(LeftToGit)
            },
            "{lines}"
        );
        let args = ["rev-parse", "-q", "--verify", &format!("{commit}^{{tree}}")];
        let accepted = try_git(g.root(), &g.path("."), &args, b"").status.success();
        assert_eq!(accepted, is_read, "{lines}");
    }
}

#[test]
fn trees_inside_of_trees_without_end_are_left_to_git() {
    let g = Worktree::unborn();
    let store = objects(&g);
    let blob = plant(&store, "blob", b"text");
    let leaf = plant(&store, "tree", &tree_of(&[("100644", "x", &blob)]));
    let deep = (0..5_000).fold(leaf.clone(), |below, _| {
        plant(&store, "tree", &tree_of(&[("40000", "d", &below)]))
    });
    assert_eq!(reader(&g).diff(&leaf, &deep, false), Err(LeftToGit));
    // Ten thousand million files in ten objects.
    let names: Vec<String> = (0..10).map(|name| name.to_string()).collect();
    let many = (0..10).fold(leaf.clone(), |below, _| {
        let entries: Vec<_> = names
            .iter()
            .map(|name| ("40000", &**name, &*below))
            .collect();
        plant(&store, "tree", &tree_of(&entries))
    });
    assert_eq!(reader(&g).diff(&leaf, &many, false), Err(LeftToGit));
}

#[test]
fn no_pipe_in_an_object_store_is_opened() {
    let (g, [_, head]) = two_commits("--object-format=sha1");
    let id = g.git(&["rev-parse", "HEAD:a-b"]);
    let loose = loose_path(&objects(&g), &id);
    fs::remove_file(&loose).unwrap();
    let listed = objects(&g).join("info/alternates");
    fs::create_dir_all(listed.parent().unwrap()).unwrap();
    let other = Worktree::unborn();
    let alternates = format!("{}\n", objects(&g).display());
    fs::create_dir_all(objects(&other).join("info")).unwrap();
    fs::write(objects(&other).join("info/alternates"), alternates).unwrap();
    for place in [&loose, &listed] {
        rustix::fs::mkfifoat(rustix::fs::CWD, place, 0o644.into()).unwrap();
        assert_eq!(reader(&other).size(&id), Err(LeftToGit));
        assert_eq!(reader(&other).blob_at(&head, b"a-b"), Err(LeftToGit));
    }
}

#[test]
fn what_is_said_of_an_object_in_one_store_does_not_hold_for_another() {
    let (own, other) = (Worktree::unborn(), Worktree::unborn());
    let large = vec![b'x'; (16 << 20) + 1];
    let id = plant(&objects(&other), "blob", &large);
    plant_as(&objects(&own), &id, "blob", b"small");
    let tree = plant(&objects(&own), "tree", &tree_of(&[("100644", "x", &id)]));
    let alternates = format!("{}\n", objects(&other).display());
    fs::create_dir_all(objects(&own).join("info")).unwrap();
    fs::write(objects(&own).join("info/alternates"), alternates).unwrap();
    assert!(reader(&own).blob_at(&tree, b"x") == Err(LeftToGit));
}

#[test]
fn a_packed_object_is_preferred_to_a_loose_one_as_git_does() {
    let (g, _) = two_commits("--object-format=sha1");
    g.git(&["repack", "-qad"]);
    let id = g.git(&["rev-parse", "HEAD:a-b"]);
    plant_as(&objects(&g), &id, "blob", b"another size");
    assert_eq!(g.git(&["cat-file", "-s", &id]), "3");
    assert_eq!(reader(&g).size(&id), Ok(3));
    assert_eq!(reader(&g).digest(&id), Ok(*blake3::hash(b"a-b").as_bytes()));
}

/// Writes a pack with these objects, which are already in the form of a pack, and its index.
fn plant_pack(store: &Path, entries: &[(&str, Vec<u8>)]) {
    let mut pack = b"PACK\0\0\0\x02".to_vec();
    pack.extend(u32::try_from(entries.len()).unwrap().to_be_bytes());
    let mut listed = Vec::new();
    for (id, entry) in entries {
        listed.push((bytes_of(id), u32::try_from(pack.len()).unwrap()));
        pack.extend(entry);
    }
    listed.sort();
    let mut index = b"\xfftOc\0\0\0\x02".to_vec();
    for first in 0..=255 {
        let until = listed.iter().filter(|(id, _)| id[0] <= first).count();
        index.extend(u32::try_from(until).unwrap().to_be_bytes());
    }
    index.extend(listed.iter().flat_map(|(id, _)| id.clone()));
    index.extend(vec![0; 4 * listed.len()]);
    index.extend(listed.iter().flat_map(|(_, at)| at.to_be_bytes()));
    pack.extend([0; 20]);
    index.extend([0; 40]);
    fs::create_dir_all(store.join("pack")).unwrap();
    let name = store.join(format!("pack/pack-{}", "0".repeat(40)));
    fs::write(name.with_extension("pack"), pack).unwrap();
    fs::write(name.with_extension("idx"), index).unwrap();
}

/// A packed object of a kind with a short content, with the id of its base if it is a difference.
fn packed_entry(kind: u8, base: &[u8], content: &[u8]) -> Vec<u8> {
    let length = u8::try_from(content.len()).unwrap();
    assert!(length < 16);
    [&[kind << 4 | length], base, &deflated(content)].concat()
}

#[test]
fn packed_differences_are_followed_to_an_end() {
    const WHOLE: u8 = 3;
    const DIFFERENCE: u8 = 7;
    let g = Worktree::unborn();
    let [text, longer] = ["text", "text and"].map(|text| id_of("blob", text.as_bytes()));
    // Copies four bytes from the start, and adds four.
    let add = b"\x04\x08\x90\x04\x04 and";
    plant_pack(
        &objects(&g),
        &[
            (&text, packed_entry(WHOLE, b"", b"text")),
            (&longer, packed_entry(DIFFERENCE, &bytes_of(&text), add)),
        ],
    );
    assert_eq!(reader(&g).size(&longer), Ok(8));
    let digest = *blake3::hash(b"text and").as_bytes();
    assert_eq!(reader(&g).digest(&longer), Ok(digest));
    let circle = [
        (&*text, packed_entry(DIFFERENCE, &bytes_of(&longer), add)),
        (&*longer, packed_entry(DIFFERENCE, &bytes_of(&text), add)),
    ];
    plant_pack(&objects(&g), &circle);
    assert_eq!(reader(&g).digest(&longer), Err(LeftToGit));
    // Copies from behind the end of the base.
    let behind = b"\x04\x08\x91\x02\x04 and";
    plant_pack(
        &objects(&g),
        &[
            (&text, packed_entry(WHOLE, b"", b"text")),
            (&longer, packed_entry(DIFFERENCE, &bytes_of(&text), behind)),
        ],
    );
    assert_eq!(reader(&g).digest(&longer), Err(LeftToGit));
}

#[test]
fn differences_between_packed_versions_are_read() {
    let g = Worktree::unborn();
    let line = |number: usize| format!("line {number}\n");
    for version in 0..30 {
        let lines: String = (0..400).map(|at| line(at + version * at % 7)).collect();
        g.write("a", lines);
        g.git(&["add", "."]);
        g.git(&["commit", "-qm", "version"]);
    }
    g.git(&["repack", "-qadf", "--depth=50"]);
    for back in 0..30 {
        let commit = g.git(&["rev-parse", &format!("HEAD~{back}")]);
        let id = g.git(&["rev-parse", &format!("{commit}:a")]);
        let content = try_git(g.root(), &g.path("."), &["cat-file", "blob", &id], b"").stdout;
        assert_eq!(reader(&g).size(&id), Ok(content.len() as u64));
        assert_eq!(reader(&g).blob_at(&commit, b"a"), Ok(Some(content)));
    }
}

#[test]
fn no_damage_of_a_pack_is_believed_or_ends_the_process() {
    let (g, [_, head]) = two_commits("--object-format=sha1");
    g.git(&["repack", "-qad"]);
    let files = fs::read_dir(objects(&g).join("pack")).unwrap();
    let files: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
    let of_kind = |kind: &str| {
        let found = files
            .iter()
            .find(|file| file.extension() == Some(kind.as_ref()));
        (found.unwrap(), fs::read(found.unwrap()).unwrap())
    };
    for (path, whole) in [of_kind("idx"), of_kind("pack")] {
        make_writable(path);
        let damaged = (0..whole.len()).step_by(7).flat_map(|at| {
            let mut changed = whole.clone();
            changed[at] ^= 0xff;
            [changed, whole[..at].to_vec()]
        });
        for bytes in damaged {
            fs::write(path, bytes).unwrap();
            let read = reader(&g).blob_at(&head, b"dir/below/d");
            assert!(
                [Ok(Some(b"2".to_vec())), Err(LeftToGit)].contains(&read),
                "{read:?}"
            );
        }
        fs::write(path, whole).unwrap();
    }
}

fn make_writable(path: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(path, fs::Permissions::from_mode(0o644)).unwrap();
}

/// An entry of a tree: the numbers of its mode, its name, and its blob or subtree.
type Row = (usize, usize, usize);

/// Writes a tree with these entries, in their order if `is_plain`, otherwise as they come.
fn plant_rows(store: &Path, mut rows: Vec<Row>, subtrees: &[String], is_plain: bool) -> String {
    const MODES: [&str; 7] = [
        "100644", "100755", "120000", "160000", "40000", "40000", "40755",
    ];
    const NAMES: [&str; 6] = ["a", "a-", "a.b", "a0", "b", "é"];
    let mode = |row: &Row| MODES[if is_plain { row.0 % 6 } else { row.0 }];
    let is_tree = |row: &Row| mode(row).starts_with('4');
    if is_plain {
        rows.sort_by_key(|row| format!("{}{}", NAMES[row.1], if is_tree(row) { "/" } else { "" }));
        rows.dedup_by_key(|row| row.1);
    }
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
fn differences_between_any_trees_are_those_that_git_gives_or_left_to_it() {
    let g = Worktree::unborn();
    let store = objects(&g);
    let tree = || prop::collection::vec((0..7_usize, 0..6_usize, 0..4_usize), 0..6);
    let level = || prop::collection::vec(tree(), 2..4);
    let levels = (level(), level(), level(), prop::bool::weighted(0.8));
    let config = ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(64)
    };
    proptest!(config, |((leaves, middle, top, is_plain) in levels)| {
        let mut below = vec![plant(&store, "tree", b"")];
        for level in [leaves, middle, top] {
            let trees = level.into_iter().map(|rows| plant_rows(&store, rows, &below, is_plain));
            below = trees.collect();
        }
        assert_as_git(&g, [&below[0], &below[1]], is_plain);
    });
}
