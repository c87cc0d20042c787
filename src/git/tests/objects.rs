//! Objects planted under the ids of a future commit, and where the objects of a commit are until it lands.

use super::support::*;
use crate::git::{CommitError, Exempt, Hook, Repo, Stage, Staged, discover};
use sha1::{Digest as _, Sha1};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

fn loose(g: &Fixture, id: &str) -> PathBuf {
    g.path(format!(".git/objects/{}/{}", &id[..2], &id[2..]))
}

/// An unrelated object of this kind, in the repository.
fn evil(g: &Fixture, kind: &str) -> String {
    g.write("../evil", "evil\n");
    let blob = g.git(&["hash-object", "-w", "../evil"]);
    let entry = format!("100644 blob {blob}\ta\n");
    let tree = || {
        let made = try_git(g.root(), &g.path("."), &["mktree"], entry.as_bytes());
        String::from_utf8(made.stdout).unwrap().trim().to_owned()
    };
    match kind {
        "blob" => blob,
        "tree" => tree(),
        _ => g.git(&["commit-tree", "-m", "evil", &tree()]),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    /// As a loose object.
    Loose,
    /// As a loose object file with invalid content.
    Garbage,
    /// As a directory in the place of the file.
    Directory,
    /// Through the index of a pack.
    Packed,
    /// Through the index of a pack and the multi-pack index.
    Listed,
}

const EVERY_WAY: [How; 5] = [
    How::Loose,
    How::Garbage,
    How::Directory,
    How::Packed,
    How::Listed,
];

/// Plants an object of this kind in the place of the one with this id.
fn plant(g: &Fixture, id: &str, kind: &str, how: How) {
    let place = loose(g, id);
    fs::create_dir_all(place.parent().unwrap()).unwrap();
    // The existing file is not writable.
    let _ = fs::remove_file(&place);
    match how {
        How::Loose => drop(fs::copy(loose(g, &evil(g, kind)), place).unwrap()),
        How::Garbage => fs::write(place, "garbage").unwrap(),
        How::Directory => fs::create_dir(place).unwrap(),
        How::Packed | How::Listed => {
            let evil = evil(g, kind);
            let args = ["pack-objects", "-q", ".git/objects/pack/pack"];
            let made = try_git(
                g.root(),
                &g.path("."),
                &args,
                format!("{evil}\n").as_bytes(),
            );
            let name = String::from_utf8(made.stdout).unwrap();
            let index = g.path(format!(".git/objects/pack/pack-{}.idx", name.trim()));
            let lie = renamed(fs::read(&index).unwrap(), id);
            fs::set_permissions(&index, fs::Permissions::from_mode(0o644)).unwrap();
            fs::write(&index, lie).unwrap();
            if how == How::Listed {
                g.git(&["multi-pack-index", "write"]);
            }
        }
    }
}

/// Changes the id of the only object in a pack index (gitformat-pack(5), version 2).
fn renamed(mut index: Vec<u8>, id: &str) -> Vec<u8> {
    let bytes: Vec<u8> = (0..id.len() / 2)
        .map(|at| u8::from_str_radix(&id[2 * at..2 * at + 2], 16).unwrap())
        .collect();
    for first in 0..=255_u8 {
        let count = u32::from(first >= bytes[0]);
        let at = 8 + 4 * usize::from(first);
        index[at..at + 4].copy_from_slice(&count.to_be_bytes());
    }
    index[1032..1052].copy_from_slice(&bytes);
    let body = index.len() - 20;
    let sum = Sha1::digest(&index[..body]);
    index[body..].copy_from_slice(&sum);
    index
}

fn assert_right(g: &Fixture, how: impl std::fmt::Debug) {
    assert_eq!(g.git(&["show", "HEAD:dir/c"]), "fixed", "{how:?}");
    assert_eq!(g.git(&["log", "-1", "--format=%s"]), "Fix", "{how:?}");
    assert_eq!(g.status(), "", "{how:?}");
    assert_sound(g);
}

fn assert_sound(g: &Fixture) {
    let checked = try_git(g.root(), &g.path("."), &["fsck", "--strict", "--full"], b"");
    let told = String::from_utf8_lossy(&checked.stderr);
    let told: Vec<&str> = told
        .lines()
        .filter(|line| !line.starts_with("notice"))
        .collect();
    assert!(checked.status.success() && told.is_empty(), "{told:?}");
}

/// The ids that the blob and the trees of [`changed`] will have.
fn future() -> [(String, &'static str); 3] {
    let mut other = Worktree::new().start();
    other.write("dir/c", "fixed\n");
    let Stage::Ready(staged) = other.stage(None).unwrap() else {
        panic!("nothing to commit")
    };
    let blob = other.git(&["hash-object", "dir/c"]);
    other.repo.adopt(&staged.content.objects).unwrap();
    let below = other.git(&["rev-parse", &format!("{}:dir", staged.content.tree)]);
    [
        (blob, "blob"),
        (below, "tree"),
        (staged.content.tree.clone(), "tree"),
    ]
}

fn staged(g: &mut Fixture) -> Staged {
    match g.stage(None).unwrap() {
        Stage::Ready(staged) => staged,
        Stage::Nothing => panic!("nothing to commit"),
    }
}

#[test]
fn objects_planted_before_staging_are_replaced() {
    for (id, kind) in future() {
        for how in EVERY_WAY {
            let mut g = Worktree::new().start();
            g.write("dir/c", "fixed\n");
            plant(&g, &id, kind, how);
            let intent = g.intent("Fix");
            let told = g.repo.land(&intent).unwrap().join("\n");
            assert!(
                how == How::Directory || told.contains("object store"),
                "{how:?}: {told}"
            );
            assert_right(&g, (kind, how));
        }
    }
}

#[test]
fn objects_planted_between_staging_and_landing_are_replaced() {
    for how in EVERY_WAY {
        for kind in ["blob", "tree", "commit"] {
            let mut g = Worktree::new().start();
            g.write("dir/c", "fixed\n");
            let staged = staged(&mut g);
            let blob = g.git(&["hash-object", "dir/c"]);
            let tree = staged.content.tree.clone();
            let intent = g.repo.commit_tree(staged, "Fix", &identity()).unwrap();
            let id = match kind {
                "blob" => blob,
                "tree" => tree,
                _ => intent.commit.0.clone(),
            };
            plant(&g, &id, kind, how);
            g.repo.land(&intent).unwrap();
            assert_right(&g, (kind, how));
        }
    }
}

#[test]
fn a_commit_planted_for_every_second_to_come_is_replaced() {
    let mut g = Worktree::new().start();
    g.write("dir/c", "fixed\n");
    let staged = staged(&mut g);
    let now: u64 = g.git(&["log", "-1", "--format=%ct"]).parse().unwrap();
    for second in now..now + 30 {
        let who = format!("Sprag <sprag@example.org> {second} +0000");
        let text = format!(
            "tree {}\nparent {}\nauthor {who}\ncommitter {who}\n\nFix\n",
            staged.content.tree,
            g.head()
        );
        let id = Sha1::digest(format!("commit {}\0{text}", text.len()));
        let id: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
        plant(&g, &id, "commit", How::Loose);
    }
    let intent = g.repo.commit_tree(staged, "Fix", &identity()).unwrap();
    let told = g.repo.land(&intent).unwrap().join("\n");
    assert!(told.contains(&intent.commit.0), "{told}");
    assert_right(&g, "commit");
}

#[test]
fn objects_of_sha256_are_replaced_too() {
    if !git_knows("--object-format=sha256") {
        return;
    }
    let ground = Worktree::with_format("--object-format=sha256");
    ground.write("dir/c", "c\n");
    ground.git(&["add", "."]);
    ground.git(&["commit", "-qm", "start"]);
    let mut g = ground.start();
    g.write("dir/c", "fixed\n");
    let id = g.git(&["hash-object", "dir/c"]);
    plant(&g, &id, "blob", How::Loose);
    let intent = g.intent("Fix");
    g.repo.land(&intent).unwrap();
    assert_right(&g, id);
}

#[test]
fn objects_are_in_the_repository_once_the_commit_lands_and_hooks_see_them_before() {
    let ground = Worktree::new();
    ground.script(".git/hooks/pre-commit", "git show :dir/c > \"$OUT\"");
    let mut g = ground.start();
    g.write("dir/c", "fixed\n");
    let blob = g.git(&["hash-object", "dir/c"]);
    let staged = staged(&mut g);
    let is_there = |g: &Fixture| {
        let asked = try_git(g.root(), &g.path("."), &["cat-file", "-e", &blob], b"");
        asked.status.success()
    };
    let hook = g
        .repo
        .prepare_hook(&Hook::PreCommit, &staged)
        .unwrap()
        .unwrap();
    let seen = g.root().join("seen");
    #[expect(clippy::disallowed_methods, reason = "runs a hook as the caller would")]
    let ended = std::process::Command::new(&hook.program)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("OUT", &seen)
        .envs(hook.env.iter().map(|(name, value)| (name, value)))
        .current_dir(&hook.cwd)
        .status()
        .unwrap();
    assert!(ended.success());
    assert_eq!(fs::read_to_string(seen).unwrap(), "fixed\n");
    let intent = g.repo.commit_tree(staged, "Fix", &identity()).unwrap();
    assert!(!is_there(&g));
    g.repo.land(&intent).unwrap();
    assert!(is_there(&g));
    assert_right(&g, "hook");
}

#[test]
fn a_run_that_dies_before_its_branch_moves_leaves_a_sound_repository_and_goes_on() {
    for adopted in [false, true] {
        let mut g = Worktree::new().start();
        g.write("dir/c", "fixed\n");
        let staged = staged(&mut g);
        let objects = staged.content.objects.clone();
        let intent = g.repo.commit_tree(staged, "Cut off", &identity()).unwrap();
        if adopted {
            g.repo.adopt(&objects.and_commit(&intent.commit.0)).unwrap();
        }
        assert_sound(&g);
        let real = discover(&g.path("."), &environment(g.root())).unwrap();
        g.repo = Repo::reopen(real, &g.root().join("run/git")).unwrap();
        assert!(!landed(&g.repo, &intent));
        // An object in Sprag's own store that is truncated by a crash is made again.
        let blob = g.git(&["hash-object", "dir/c"]);
        let own = g.repo.own_objects().join(&blob[..2]).join(&blob[2..]);
        fs::set_permissions(&own, fs::Permissions::from_mode(0o644)).unwrap();
        fs::write(&own, "").unwrap();
        assert_eq!(
            g.repo.snapshot(&Exempt::default()).unwrap().changes.len(),
            1
        );
        g.commit("Fix");
        assert_right(&g, adopted);
    }
}

#[test]
fn many_files_and_files_that_git_puts_into_packs_are_committed() {
    let ground = Worktree::new();
    ground.git(&["config", "core.bigFileThreshold", "2k"]);
    let mut g = ground.start();
    g.write("dir/c", "fixed\n");
    g.write("big", "big\n".repeat(5000));
    for number in 0..100 {
        g.write(
            format!("many/{}/{number}", number % 7),
            format!("{number}\n"),
        );
    }
    g.commit("Fix");
    assert_right(&g, "many");
    assert_eq!(g.git(&["show", "HEAD:big"]).len(), 4 * 5000 - 1);
    g.write("big", "bigger\n".repeat(5000));
    g.commit("Fix");
    assert_right(&g, "again");
}

#[test]
fn what_cannot_be_put_right_is_named_and_not_committed() {
    let mut g = Worktree::new().start();
    let head = g.head();
    g.write("dir/c", "fixed\n");
    // Packs in an alternate store do not belong to Sprag.
    let blob = g.git(&["hash-object", "dir/c"]);
    plant(&g, &blob, "blob", How::Packed);
    let other = g.root().join("other");
    fs::create_dir_all(other.join("pack")).unwrap();
    for entry in fs::read_dir(g.path(".git/objects/pack")).unwrap() {
        let entry = entry.unwrap();
        fs::rename(entry.path(), other.join("pack").join(entry.file_name())).unwrap();
    }
    let alternates = g.repo.own_objects().join("info/alternates");
    let open = g.repo.unseal().unwrap();
    let known = fs::read_to_string(&alternates).unwrap();
    fs::write(&alternates, format!("{known}{}\n", other.display())).unwrap();
    drop(open);
    let refused = g.stage(None).unwrap_err();
    assert!(
        matches!(&refused, CommitError::Unsound(ids) if *ids == [blob]),
        "{refused}"
    );
    assert_eq!(g.head(), head);
}

#[test]
fn commits_of_the_agents_own_are_not_kept_where_something_else_lies_under_their_ids() {
    let g = Worktree::new().start();
    g.write("dir/c", "own\n");
    g.git(&["commit", "-qam", "own"]);
    let head = crate::domain::snapshot::RevId(g.head());
    assert!(g.repo.commits_since_base(&head).unwrap().is_ok());
    let id = g.git(&["rev-parse", "HEAD:dir/c"]);
    plant(&g, &id, "blob", How::Loose);
    let line = g.repo.commits_since_base(&head).unwrap();
    assert!(
        matches!(&line, Err(why) if why.ends_with(&format!("under the ids {id}"))),
        "{line:?}"
    );
}
