//! Work that leaves a run by other ways than a push (bundles, changes for the API), and credentials that are
//! removed for a turn.

use super::support::*;
use crate::domain::snapshot::RevId;
use crate::git::{
    ApiChangesError, BundleError, PersistedKind, Repo, discover, persisted_credentials,
};
use std::fs;
use std::path::{Path, PathBuf};

/// A clone of the initial repository, as the publishing job has it.
fn publisher(f: &Fixture) -> (PathBuf, Repo) {
    let dir = f.root().join("publisher");
    let from = format!("file://{}", f.path(".").display());
    git_in(
        f.root(),
        f.root(),
        &["clone", "-q", "--depth=1", &from, dir.to_str().unwrap()],
    );
    let real = discover(&dir, &environment(f.root())).unwrap();
    let repo = Repo::create(real, &f.root().join("run-publish/git")).unwrap();
    (dir, repo)
}

fn rev(f: &Fixture, name: &str) -> RevId {
    RevId(f.git(&["rev-parse", name]))
}

fn refusal(repo: &Repo, bundle: &Path, base: &RevId) -> String {
    repo.unbundle(bundle, base).unwrap_err().to_string()
}

#[test]
fn messages_are_changed_without_anything_else_and_those_that_stay_keep_their_ids() {
    let mut f = Worktree::new().start();
    let (_, repo) = publisher(&f);
    let base = rev(&f, "HEAD");
    let made: Vec<RevId> = ["One", "Two", "Three"]
        .map(|name| {
            f.write(name, name);
            f.commit(name)
        })
        .into();
    let bundle = f.root().join("result.bundle");
    f.repo.bundle(&bundle, &base, &made[2]).unwrap();
    assert_eq!(Repo::bundle_base(&bundle).unwrap(), base);
    let facts = repo.unbundle(&bundle, &base).unwrap();
    let messages = |second: &str| {
        let texts = ["One\n".to_owned(), second.to_owned(), "Three\n".to_owned()]
            .into_iter()
            .map(String::into_bytes);
        made.iter().cloned().zip(texts).collect::<Vec<_>>()
    };
    let same = repo.reword(&base, &messages("Two\n")).unwrap();
    assert_eq!((same.head, same.commits.len()), (facts.head, 0));
    let other = repo.reword(&base, &messages("2\n")).unwrap();
    let old: Vec<&RevId> = other.commits.iter().map(|commit| &commit.old).collect();
    assert_eq!(old, [&made[1], &made[2]]);
    assert_eq!(other.commits[1].new.as_ref(), Some(&other.head));
    let new = other.commits[0].new.clone().unwrap();
    assert_eq!(repo.message_of(&new).unwrap(), "2\n");
    assert_eq!(repo.message_of(&other.head).unwrap(), "Three\n");
    assert_eq!(repo.file_of(&other.head, b"Two").unwrap().unwrap(), b"Two");
    let again = repo.reword(&base, &messages("2\n")).unwrap();
    assert_eq!(again, other);
}

#[test]
fn only_a_line_of_commits_from_the_expected_one_is_taken() {
    let mut f = Worktree::new().start();
    let (dir, repo) = publisher(&f);
    let base = rev(&f, "HEAD");
    f.write("a", "one\n");
    let one = f.commit("One");
    f.write("b", "two\n");
    let two = f.commit("Two");
    let bundle = f.root().join("hostile.bundle");
    let make = |refs: &[(&str, &RevId)], args: &[&str]| {
        for (name, id) in refs {
            f.git(&["update-ref", name, &id.0]);
        }
        f.git(&[&["bundle", "create", "-q", bundle.to_str().unwrap()], args].concat());
    };
    let not_base = format!("^{base}");
    let result = "refs/sprag/result";
    make(
        &[(result, &two), ("refs/sprag/other", &one)],
        &[result, "refs/sprag/other", &not_base],
    );
    assert!(refusal(&repo, &bundle, &base).contains("exactly one ref"));
    make(&[], &["refs/sprag/other", &not_base]);
    assert!(refusal(&repo, &bundle, &base).contains("its ref is not"));
    make(&[], &[result, &format!("^{one}")]);
    assert!(refusal(&repo, &bundle, &base).contains("does not continue"));
    make(&[], &[result]);
    assert!(refusal(&repo, &bundle, &base).contains("does not continue"));
    f.git(&["checkout", "-q", "-b", "side", &base.0]);
    f.git(&[
        "-c",
        "core.hooksPath=/dev/null",
        "commit",
        "-q",
        "--allow-empty",
        "-m",
        "side",
    ]);
    f.git(&["merge", "-q", "--no-ff", "-m", "merge", &two.0]);
    make(&[(result, &rev(&f, "HEAD"))], &[result, &not_base]);
    assert!(refusal(&repo, &bundle, &base).contains("a merge"));
    let orphan = f.git(&["commit-tree", "-m", "orphan", &format!("{two}^{{tree}}")]);
    let joined = f.git(&[
        "commit-tree",
        "-m",
        "x",
        "-p",
        &base.0,
        "-p",
        &orphan,
        &format!("{two}^{{tree}}"),
    ]);
    make(&[(result, &RevId(joined))], &[result, &not_base]);
    assert!(refusal(&repo, &bundle, &base).contains("without a parent"));
    for id in [&one, &two] {
        let there = try_git(f.root(), &dir, &["cat-file", "-e", &id.0], b"");
        assert!(
            !there.status.success(),
            "nothing of a refused bundle is kept"
        );
    }
    let unknown = RevId("1".repeat(40));
    assert!(refusal(&repo, &bundle, &unknown).contains("check it out"));
}

#[test]
fn a_damaged_or_oversized_bundle_is_refused() {
    let mut f = Worktree::new().start();
    let (_, repo) = publisher(&f);
    let base = rev(&f, "HEAD");
    f.write("a", "one\n");
    let one = f.commit("One");
    let bundle = f.root().join("x.bundle");
    f.repo.bundle(&bundle, &base, &one).unwrap();
    let whole = fs::read(&bundle).unwrap();
    for length in [0, 10, whole.len() / 3, whole.len() - 25, whole.len() - 1] {
        fs::write(&bundle, &whole[..length]).unwrap();
        assert!(
            matches!(repo.unbundle(&bundle, &base), Err(BundleError::Refused(_))),
            "{length}"
        );
    }
    let pack = memchr::memmem::find(&whole, b"PACK").unwrap();
    let mut many = whole.clone();
    many[pack + 8] = 0xff;
    fs::write(&bundle, &many).unwrap();
    assert!(refusal(&repo, &bundle, &base).contains("more objects than"));
    let mut filtered = b"# v3 git bundle\n@filter=blob:none\n".to_vec();
    filtered.extend_from_slice(&whole[b"# v2 git bundle\n".len()..]);
    fs::write(&bundle, &filtered).unwrap();
    assert!(refusal(&repo, &bundle, &base).contains("capability"));
    fs::File::create(&bundle)
        .unwrap()
        .set_len(200 << 20)
        .unwrap();
    assert!(refusal(&repo, &bundle, &base).contains("more bytes than"));
    fs::remove_file(&bundle).unwrap();
    std::os::unix::fs::symlink("/etc/hostname", &bundle).unwrap();
    assert!(matches!(
        repo.unbundle(&bundle, &base),
        Err(BundleError::Git(_))
    ));
}

#[test]
fn a_tree_that_writes_into_a_git_directory_is_refused() {
    let f = Worktree::new().start();
    let (_, repo) = publisher(&f);
    let base = rev(&f, "HEAD");
    let blob = f.git(&["rev-parse", "HEAD:a"]);
    let make_tree = |line: String| {
        let made = try_git(
            f.root(),
            &f.path("."),
            &["hash-object", "-t", "tree", "-w", "--stdin", "--literally"],
            &[line.as_bytes(), &hex_bytes(&blob)].concat(),
        );
        String::from_utf8(made.stdout).unwrap().trim().to_owned()
    };
    let tree = make_tree("100644 .git\0".to_owned());
    let commit = f.git(&["commit-tree", "-m", "evil", "-p", &base.0, &tree]);
    f.git(&["update-ref", "refs/sprag/result", &commit]);
    let bundle = f.root().join("evil.bundle");
    let bundle_name = bundle.to_str().unwrap();
    f.git(&[
        "bundle",
        "create",
        "-q",
        bundle_name,
        "refs/sprag/result",
        &format!("^{base}"),
    ]);
    let why = refusal(&repo, &bundle, &base);
    assert!(why.contains("hasDotgit"), "{why}");
}

fn hex_bytes(hex: &str) -> Vec<u8> {
    let pairs = (0..hex.len()).step_by(2);
    pairs
        .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap())
        .collect()
}

#[test]
fn a_change_is_told_as_the_api_takes_it_or_not_at_all() {
    let mut f = Worktree::new().start();
    let base = rev(&f, "HEAD");
    f.write("a", b"\x00\xff".as_slice());
    f.write("new file", "");
    f.remove("b");
    let one = f.commit("Plain");
    let changes = f.repo.changes(&base, &one).unwrap();
    assert_eq!(
        changes.additions,
        [
            ("a".to_owned(), b"\x00\xff".to_vec()),
            ("new file".to_owned(), Vec::new())
        ]
    );
    assert_eq!(changes.deletions, ["b"]);
    let refused = |f: &mut Fixture, message: &str| {
        let before = rev(f, "HEAD");
        let after = f.commit(message);
        match f.repo.changes(&before, &after) {
            Err(ApiChangesError::NotExpressible(why)) => why,
            other => panic!("{message}: {other:?}"),
        }
    };
    make_executable(&f.path("a"));
    assert!(refused(&mut f, "mode").contains("a: the API cannot write executable"));
    fs::set_permissions(
        f.path("a"),
        std::os::unix::fs::PermissionsExt::from_mode(0o644),
    )
    .unwrap();
    assert!(refused(&mut f, "back").contains("mode of a file"));
    std::os::unix::fs::symlink("a", f.path("link")).unwrap();
    assert!(refused(&mut f, "link").contains("symbolic"));
    f.write(bytes_name(b"odd\xff"), "x");
    assert!(refused(&mut f, "bytes").contains("UTF-8"));
    f.write("large", vec![b'x'; 31_000_000]);
    assert!(refused(&mut f, "large").contains("31000000 bytes"));
}

const HEADER: &str = "AUTHORIZATION: basic c2VjcmV0";

#[test]
fn a_checkouts_credential_is_out_of_use_for_the_agent_and_put_back_afterwards() {
    let g = Worktree::new();
    let key = "http.https://github.com/.extraheader";
    g.git(&["config", key, HEADER]);
    let included = g.root().join("git-credentials-1.config");
    let included_name = included.to_str().unwrap();
    g.git(&[
        "config",
        "--file",
        included_name,
        "http.https://ghe.example.org/.extraheader",
        HEADER,
    ]);
    let git_dir = g.path(".git").canonicalize().unwrap();
    g.git(&[
        "config",
        &format!("includeIf.gitdir:{}.path", git_dir.display()),
        included_name,
    ]);
    g.git(&[
        "remote",
        "add",
        "origin",
        "https://u:secret@github.com/o/r.git",
    ]);
    let before = (
        g.read(".git/config"),
        fs::read_to_string(&included).unwrap(),
    );
    let mut f = g.start();
    let seen = persisted_credentials(f.repo.real()).unwrap();
    let kinds: Vec<PersistedKind> = seen.iter().map(|one| one.kind).collect();
    assert_eq!(
        kinds,
        [
            PersistedKind::Header,
            PersistedKind::Header,
            PersistedKind::Address
        ]
    );
    assert!(seen.iter().all(|one| one.local) && !format!("{seen:?}").contains("secret"));
    assert_eq!(f.repo.hide_credentials().unwrap(), []);
    assert_eq!(
        f.repo.hide_credentials().unwrap(),
        [],
        "a restart does it again"
    );
    let listed = f.git(&["config", "--list", "--includes"]);
    assert!(
        !listed.contains("basic") && !listed.contains("secret"),
        "{listed}"
    );
    assert!(listed.contains("remote.origin.url=https://github.com/o/r.git"));
    let mark = f.repo.mark_turn().unwrap();
    f.git(&["config", "user.email", "agent@example.org"]);
    let report = f.repo.inspect_turn(&mark).unwrap();
    assert_eq!(report.warnings, ["changes to .git/config were undone"]);
    assert!(
        !f.read(".git/config").contains("basic"),
        "what is put back is without it"
    );
    f.repo.restore_credentials().unwrap();
    f.repo.restore_credentials().unwrap();
    assert_eq!(
        (
            f.read(".git/config"),
            fs::read_to_string(&included).unwrap()
        ),
        before
    );
    assert!(f.repo.inspect_turn(&mark).unwrap().warnings.is_empty());
}
