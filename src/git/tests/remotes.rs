//! Tests with bare remotes in directories. None needs a network.

use super::support::*;
use crate::domain::snapshot::RevId;
use crate::git::{
    BranchName, Exempt, GitError, PushOutcome, PushSpec, RebaseError, RefusalKind, Remote,
    RemoteError, Repo, SwitchError, discover,
};
use crate::process::{Cancel, CancelReason};
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

/// A bare remote with the branch `main` of the initial repository.
struct Origin {
    path: PathBuf,
    remote: Remote,
}

fn origin_of(place: &impl Place) -> Origin {
    let path = place.root().join("origin.git");
    git_in(
        place.root(),
        place.root(),
        &["init", "-q", "--bare", "-b", "main", path.to_str().unwrap()],
    );
    let origin = Origin {
        remote: Remote::local(&path),
        path,
    };
    place.git(&[
        "push",
        "-q",
        origin.path.to_str().unwrap(),
        "HEAD:refs/heads/main",
    ]);
    origin
}

impl Origin {
    fn git(&self, args: &[&str]) -> String {
        git_in(self.path.parent().unwrap(), &self.path, args)
    }

    fn at(&self, branch: &str) -> RevId {
        RevId(self.git(&["rev-parse", &format!("refs/heads/{branch}")]))
    }

    fn has(&self, branch: &str) -> bool {
        !self
            .git(&["for-each-ref", &format!("refs/heads/{branch}")])
            .is_empty()
    }

    /// A commit by somebody else on a branch.
    fn somebody_commits(&self, branch: &str, path: &str, content: &str) -> RevId {
        let root = self.path.parent().unwrap();
        let clone = root.join(format!("somebody-{}", fs::read_dir(root).unwrap().count()));
        let clone_name = clone.to_str().unwrap();
        git_in(
            root,
            root,
            &[
                "clone",
                "-q",
                "-b",
                branch,
                self.path.to_str().unwrap(),
                clone_name,
            ],
        );
        fs::write(clone.join(path), content).unwrap();
        git_in(root, &clone, &["add", "."]);
        let identity = ["-c", "user.name=S", "-c", "user.email=s@example.org"];
        git_in(
            root,
            &clone,
            &[&identity[..], &["commit", "-qm", "theirs"]].concat(),
        );
        git_in(root, &clone, &["push", "-q", "origin", branch]);
        self.at(branch)
    }

    fn hook(&self, body: &str) {
        write_program(
            &self.path.join("hooks/pre-receive"),
            &format!("#!/bin/sh\n{body}\n"),
        );
    }
}

fn spec(branch: &str, new: &RevId, expected: Option<&RevId>) -> PushSpec {
    PushSpec {
        branch: BranchName::parse(branch).unwrap(),
        new: new.clone(),
        expected: expected.cloned(),
    }
}

fn push(f: &Fixture, o: &Origin, spec: &PushSpec) -> Result<PushOutcome, RemoteError> {
    f.repo.push(&o.remote, spec, &Cancel::new())
}

fn pushed(head: &RevId) -> PushOutcome {
    PushOutcome::Pushed { head: head.clone() }
}

fn work(f: &mut Fixture, path: &str, content: &str) -> RevId {
    f.write(path, content);
    f.commit(&format!("Change {path}\n\nSprag-Task: p/t1"))
}

#[test]
fn a_branch_is_moved_forward_and_read_back() {
    let mut f = Worktree::new().start();
    let o = origin_of(&f);
    let start = o.at("main");
    let new = work(&mut f, "a", "new\n");
    let forward = spec("main", &new, Some(&start));
    assert_eq!(push(&f, &o, &forward).unwrap(), pushed(&new));
    assert_eq!(o.at("main"), new);
    assert_eq!(push(&f, &o, &forward).unwrap(), PushOutcome::UpToDate);
    let found = f
        .repo
        .ls_remote(&o.remote, "refs/heads/main", &Cancel::new());
    assert_eq!(found.unwrap(), Some(new.clone()));
    let found = f
        .repo
        .ls_remote(&o.remote, "refs/heads/ain", &Cancel::new());
    assert_eq!(found.unwrap(), None);
    let rescue = spec(&crate::git::rescue_branch("r/1"), &new, None);
    assert_eq!(push(&f, &o, &rescue).unwrap(), pushed(&new));
    assert_eq!(o.at("sprag/rescue/r-1"), new);
}

#[test]
fn a_branch_that_moved_or_exists_is_left_alone() {
    let mut f = Worktree::new().start();
    let o = origin_of(&f);
    let start = o.at("main");
    let new = work(&mut f, "a", "new\n");
    let theirs = o.somebody_commits("main", "x", "x\n");
    let moved = PushOutcome::Moved {
        now: Some(theirs.clone()),
    };
    assert_eq!(
        push(&f, &o, &spec("main", &new, Some(&start))).unwrap(),
        moved
    );
    assert_eq!(push(&f, &o, &spec("main", &new, None)).unwrap(), moved);
    let gone = push(&f, &o, &spec("gone", &new, Some(&start))).unwrap();
    assert_eq!(gone, PushOutcome::Moved { now: None });
    assert_eq!(o.at("main"), theirs);
    assert!(!o.has("gone"));
}

#[test]
fn a_branch_is_never_rewritten() {
    let mut f = Worktree::new().start();
    let o = origin_of(&f);
    let start = o.at("main");
    let one = work(&mut f, "a", "one\n");
    assert_eq!(
        push(&f, &o, &spec("main", &one, Some(&start))).unwrap(),
        pushed(&one)
    );
    let back = push(&f, &o, &spec("main", &start, Some(&one)));
    assert!(
        matches!(back, Err(RemoteError::NotFastForward { .. })),
        "{back:?}"
    );
    let unknown = RevId("1".repeat(40));
    let odd = push(&f, &o, &spec("main", &one, Some(&unknown)));
    assert!(
        matches!(odd, Err(RemoteError::NotFastForward { .. })),
        "{odd:?}"
    );
    let odd = push(&f, &o, &spec("main", &RevId("--force".to_owned()), None));
    assert!(matches!(odd, Err(RemoteError::BadId(_))), "{odd:?}");
    assert_eq!(o.at("main"), one);
}

#[test]
fn what_the_remote_refuses_is_told_with_its_words() {
    let mut f = Worktree::new().start();
    let o = origin_of(&f);
    let start = o.at("main");
    let new = work(&mut f, "a", "new\n");
    for (said, kind) in [
        (
            "GH006: Protected branch update failed for refs/heads/main.",
            RefusalKind::Protected,
        ),
        (
            "GH013: Repository rule violations found",
            RefusalKind::Protected,
        ),
        ("no reason", RefusalKind::Hook),
    ] {
        o.hook(&format!("echo 'error: {said}' >&2; exit 1"));
        let PushOutcome::Refused(refusal) =
            push(&f, &o, &spec("main", &new, Some(&start))).unwrap()
        else {
            panic!("{said}")
        };
        assert_eq!(refusal.kind, kind);
        assert!(refusal.words.contains(said), "{}", refusal.words);
    }
    assert_eq!(o.at("main"), start);
}

#[test]
fn a_push_whose_answer_is_lost_has_landed_all_the_same() {
    let mut f = Worktree::new().start();
    let o = origin_of(&f);
    let start = o.at("main");
    let new = work(&mut f, "a", "new\n");
    write_program(
        &o.path.join("hooks/post-update"),
        "#!/bin/sh\nkill -9 $PPID\n",
    );
    assert_eq!(
        push(&f, &o, &spec("main", &new, Some(&start))).unwrap(),
        pushed(&new)
    );
}

#[test]
fn a_missing_remote_is_a_refusal_and_a_cancelled_question_ends() {
    let f = Worktree::new().start();
    let nowhere = Remote::local(&f.root().join("nowhere.git"));
    let asked = f
        .repo
        .ls_remote(&nowhere, "refs/heads/main", &Cancel::new());
    let Err(RemoteError::Refused(refusal)) = asked else {
        panic!("{asked:?}")
    };
    assert_eq!(refusal.kind, RefusalKind::NotFound);
    let cancel = Cancel::new();
    cancel.trigger(CancelReason::Interrupt);
    let asked = f.repo.ls_remote(&nowhere, "refs/heads/main", &cancel);
    assert!(
        matches!(asked, Err(RemoteError::Git(GitError::Cancelled { .. }))),
        "{asked:?}"
    );
    for odd in [
        "--upload-pack=touch x",
        "main",
        "refs/heads/*",
        "refs/heads/a b",
    ] {
        let asked = f.repo.ls_remote(&nowhere, odd, &Cancel::new());
        assert!(matches!(asked, Err(RemoteError::BadName(_))), "{odd}");
    }
}

#[test]
fn nothing_in_the_repository_decides_where_a_push_goes() {
    let mut f = Worktree::new().start();
    let o = origin_of(&f);
    let start = o.at("main");
    let new = work(&mut f, "a", "new\n");
    let canary = f.root().join("canary");
    let evil = format!("echo \"$0\" >> {}", canary.display());
    let program = f.script(".git/evil.sh", &evil).to_str().unwrap().to_owned();
    for hook in [
        "pre-push",
        "reference-transaction",
        "post-index-change",
        "post-checkout",
    ] {
        f.script(&format!(".git/hooks/{hook}"), &evil);
    }
    let sink = f.root().join("sink.git");
    git_in(
        f.root(),
        f.root(),
        &["init", "-q", "--bare", sink.to_str().unwrap()],
    );
    let to_sink = format!("file://{}", sink.display());
    let mut config = f.read(".git/config");
    config.push_str(&format!(
        "[url \"{to_sink}\"]\n\tinsteadOf = file://\n\tpushInsteadOf = file://\n\
         [http]\n\tproxy = http://127.0.0.1:1\n[credential]\n\thelper = {program}\n\
         [core]\n\tsshCommand = {program}\n\talternateRefsCommand = {program}\n\tgitProxy = {program}\n\
         \tfsmonitor = {program}\n\taskPass = {program}\n\
         [protocol]\n\tallow = always\n[push]\n\tgpgSign = true\n\trecurseSubmodules = on-demand\n\
         [gpg]\n\tprogram = {program}\n[remote \"{}\"]\n\turl = {to_sink}\n\treceivepack = {program}\n\
         \tuploadpack = {program}\n\tvcs = evil\n",
        o.remote.url()
    ));
    f.write(".git/config", config);
    f.write(
        ".gitmodules",
        format!("[submodule \"s\"]\n\tpath = s\n\turl = {to_sink}\n"),
    );
    assert_eq!(
        push(&f, &o, &spec("main", &new, Some(&start))).unwrap(),
        pushed(&new)
    );
    let theirs = o.somebody_commits("main", "x", "x\n");
    let got = f
        .repo
        .fetch(&o.remote, "refs/heads/main", None, &Cancel::new());
    assert_eq!(got.unwrap(), theirs);
    f.repo.rebase(&theirs, &[new], None).unwrap();
    let told = fs::read_to_string(&canary).unwrap_or_default();
    assert!(!canary.exists(), "{told}");
    assert_eq!(git_in(f.root(), &sink, &["for-each-ref"]), "");
    try_git(f.root(), &f.path("."), &["ls-remote", o.remote.url()], b"");
    try_git(f.root(), &f.path("."), &["status"], b"");
    assert!(
        canary.exists(),
        "the trap works: plain git runs what was planted"
    );
}

/// A detached checkout of a remote with depth 1, as actions/checkout makes it.
fn shallow_checkout(o: &Origin, root: &std::path::Path) -> Repo {
    let dir = root.join("checkout");
    let url = format!("file://{}", o.path.display());
    fs::create_dir(&dir).unwrap();
    git_in(root, &dir, &["init", "-q", "-b", "main"]);
    git_in(root, &dir, &["fetch", "-q", "--depth=1", &url, "main"]);
    git_in(root, &dir, &["checkout", "-q", "--detach", "FETCH_HEAD"]);
    let real = discover(&dir, &environment(root)).unwrap();
    Repo::create(real, &root.join("run2/git")).unwrap()
}

#[test]
fn a_shallow_detached_checkout_is_switched_committed_to_and_pushed() {
    let mut f = Worktree::new().start();
    let o = origin_of(&f);
    let start = work(&mut f, "a", "on main\n");
    push(&f, &o, &spec("main", &start, Some(&o.at("main")))).unwrap();
    let feature = work(&mut f, "feature", "on the branch\n");
    push(&f, &o, &spec("feature/x", &feature, None)).unwrap();
    let dir = f.root().join("checkout");
    let mut repo = shallow_checkout(&o, f.root());
    assert_eq!(repo.base(), Some(start));
    let branch = BranchName::parse("feature/x").unwrap();
    repo.switch_to(&o.remote, &branch, &feature, &Cancel::new())
        .unwrap();
    let git = |args: &[&str]| git_in(f.root(), &dir, args);
    assert_eq!(git(&["symbolic-ref", "HEAD"]), "refs/heads/feature/x");
    assert_eq!(git(&["rev-parse", "HEAD"]), feature.0);
    assert_eq!(git(&["status", "--porcelain"]), "");
    assert_eq!(
        git(&["rev-list", "--count", "HEAD"]),
        "1",
        "it stays shallow"
    );
    assert_eq!(git(&["fsck"]), "");
    assert_eq!(repo.base(), Some(feature.clone()));
    fs::write(dir.join("feature"), "more\n").unwrap();
    git(&[
        "-c",
        "user.name=x",
        "-c",
        "user.email=x",
        "commit",
        "-qam",
        "More",
    ]);
    let new = RevId(git(&["rev-parse", "HEAD"]));
    let outcome = repo.push(
        &o.remote,
        &spec("feature/x", &new, Some(&feature)),
        &Cancel::new(),
    );
    assert_eq!(outcome.unwrap(), pushed(&new));
    assert_eq!(o.git(&["rev-parse", "feature/x^"]), feature.0);
    assert_eq!(o.git(&["fsck"]), "");
}

#[test]
fn only_a_clean_work_tree_is_switched() {
    let mut f = Worktree::new().start();
    let o = origin_of(&f);
    let to = o.somebody_commits("main", "ignored", "theirs\n");
    let main = BranchName::parse("main").unwrap();
    f.write("a", "dirty\n");
    let refused = f.repo.switch_to(&o.remote, &main, &to, &Cancel::new());
    assert!(matches!(refused, Err(SwitchError::Dirty(_))), "{refused:?}");
    f.write("a", "a\n");
    f.write(".git/info/exclude", "/ignored\n");
    let mut f = f.start_again();
    f.write("ignored", "mine\n");
    let before = f.head();
    let refused = f.repo.switch_to(&o.remote, &main, &to, &Cancel::new());
    assert!(
        matches!(refused, Err(SwitchError::InTheWay(_))),
        "{refused:?}"
    );
    assert_eq!((f.head(), f.read("ignored").as_str()), (before, "mine\n"));
    f.remove("ignored");
    f.repo
        .switch_to(&o.remote, &main, &to, &Cancel::new())
        .unwrap();
    assert_eq!((f.head(), f.read("ignored").as_str()), (to.0, "theirs\n"));
}

#[test]
fn commits_of_a_local_branch_are_not_lost_when_it_is_moved() {
    let mut f = Worktree::new().start();
    let o = origin_of(&f);
    let mine = work(&mut f, "mine", "mine\n");
    let theirs = o.somebody_commits("main", "x", "x\n");
    let main = BranchName::parse("main").unwrap();
    f.repo
        .switch_to(&o.remote, &main, &theirs, &Cancel::new())
        .unwrap();
    assert_eq!(f.head(), theirs.0);
    assert!(!f.path("mine").exists() && f.path("x").exists());
    assert_eq!(
        f.git(&["rev-parse", &format!("refs/sprag/switched/{mine}")]),
        mine.0
    );
    assert_eq!(f.status(), "");
}

#[test]
fn work_is_put_on_top_of_a_moved_branch_verified_again_and_pushed() {
    let mut f = Worktree::new().start();
    let o = origin_of(&f);
    let one = work(&mut f, "a", "one\n");
    let two = work(&mut f, "new/file", "two\n");
    let theirs = o.somebody_commits("main", "x", "x\n");
    f.write("dropping", "left by a check\n");
    f.write(".git/info/exclude", "");
    f.repo
        .fetch(&o.remote, "refs/heads/main", None, &Cancel::new())
        .unwrap();
    let rebased = f
        .repo
        .rebase(&theirs, &[one.clone(), two.clone()], None)
        .unwrap();
    assert_eq!(f.head(), two.0, "nothing has moved yet");
    let show = |rev: &str| f.git(&["show", "-s", "--format=%an %ae %ad %cn %ce %cd %B", rev]);
    for (old, new) in [&one, &two].iter().zip(&rebased.commits) {
        assert_eq!(show(&old.0), show(&new.new.as_ref().unwrap().0));
    }
    let exempt = Exempt {
        check_artifacts: BTreeSet::from([b"dropping".to_vec()]),
        ..Exempt::default()
    };
    let intent = f.repo.plan_move(&rebased.head, &exempt).unwrap();
    f.repo.move_to(&intent, &exempt).unwrap();
    f.repo.move_to(&intent, &exempt).unwrap();
    assert_eq!(f.head(), rebased.head.0);
    assert_eq!(f.status(), "?? dropping");
    assert_eq!(
        (f.read("x"), f.read("a"), f.read("new/file")),
        ("x\n".into(), "one\n".into(), "two\n".into())
    );
    f.repo.move_back(&intent, &exempt).unwrap();
    assert_eq!((f.head(), f.status()), (two.0, "?? dropping".to_owned()));
    assert!(!f.path("x").exists());
    f.repo.move_to(&intent, &exempt).unwrap();
    assert_eq!(
        push(&f, &o, &spec("main", &rebased.head, Some(&theirs))).unwrap(),
        pushed(&rebased.head)
    );
    let again = f.repo.rebase(&rebased.head, &[one], None).unwrap();
    assert_eq!(again.commits[0].new, None, "its change is there already");
}

#[test]
fn a_move_cut_off_after_the_branch_moved_is_finished() {
    let mut f = Worktree::new().start();
    let o = origin_of(&f);
    let one = work(&mut f, "a", "one\n");
    let theirs = o.somebody_commits("main", "x", "x\n");
    f.repo
        .fetch(&o.remote, &theirs.0, None, &Cancel::new())
        .unwrap();
    let rebased = f.repo.rebase(&theirs, &[one], None).unwrap();
    let intent = f.repo.plan_move(&rebased.head, &Exempt::default()).unwrap();
    f.git(&["update-ref", "HEAD", &rebased.head.0]);
    f.repo.move_to(&intent, &Exempt::default()).unwrap();
    assert_eq!(
        (f.head(), f.status(), f.read("x")),
        (rebased.head.0, String::new(), "x\n".to_owned())
    );
    f.git(&["update-ref", "HEAD", &theirs.0]);
    let elsewhere = f.repo.move_to(&intent, &Exempt::default());
    assert!(
        matches!(elsewhere, Err(SwitchError::HeadMoved { .. })),
        "{elsewhere:?}"
    );
}

#[test]
fn a_conflict_is_told_with_its_paths_and_changes_nothing() {
    let mut f = Worktree::new().start();
    let o = origin_of(&f);
    let mine = work(&mut f, "a", "mine\n");
    let theirs = o.somebody_commits("main", "a", "theirs\n");
    f.repo
        .fetch(&o.remote, &theirs.0, None, &Cancel::new())
        .unwrap();
    let error = f
        .repo
        .rebase(&theirs, std::slice::from_ref(&mine), None)
        .unwrap_err();
    assert!(
        matches!(&error, RebaseError::Conflict { commit, paths } if *commit == mine && *paths == [b"a".to_vec()]),
        "{error:?}"
    );
    assert_eq!((f.head(), f.status()), (mine.0, String::new()));
    f.git(&[
        "merge", "-q", "--no-ff", "-s", "ours", "-m", "merge", &theirs.0,
    ]);
    let merge = RevId(f.head());
    assert!(matches!(
        f.repo.rebase(&theirs, &[merge], None),
        Err(RebaseError::NotLinear(_))
    ));
}

#[test]
#[expect(clippy::disallowed_methods, reason = "runs git as a check would")]
fn contents_of_git_lfs_are_uploaded_before_their_pointers_or_nothing_is_pushed() {
    let g = Worktree::new();
    let asked = std::process::Command::new("git")
        .args(["lfs", "version"])
        .output();
    if !asked.is_ok_and(|output| output.status.success()) {
        return;
    }
    g.git(&["lfs", "install", "--local", "--skip-repo"]);
    g.write(".gitattributes", "*.bin filter=lfs -text\n");
    g.git(&["add", "."]);
    g.git(&["commit", "-qm", "Store binaries elsewhere"]);
    let mut f = g.start();
    let o = origin_of(&f);
    let start = o.at("main");
    let kept = |o: &Origin| fs::read_dir(o.path.join("lfs/objects")).is_ok();
    let plain = work(&mut f, "b", "no binary\n");
    assert_eq!(
        push(&f, &o, &spec("main", &plain, Some(&start))).unwrap(),
        pushed(&plain)
    );
    assert!(!kept(&o));
    let new = work(&mut f, "a.bin", "content\n");
    assert!(f.git(&["show", "HEAD:a.bin"]).starts_with("version https"));
    let forward = spec("main", &new, Some(&plain));
    let objects = f.path(".git/lfs/objects");
    fs::rename(&objects, f.path(".git/lfs/away")).unwrap();
    let refused = push(&f, &o, &forward).unwrap();
    let PushOutcome::Refused(refusal) = &refused else {
        panic!("{refused:?}");
    };
    assert_eq!(refusal.kind, RefusalKind::LargeFile);
    assert!(refusal.words.contains("not pushed"), "{}", refusal.words);
    assert_eq!((o.at("main"), kept(&o)), (plain, false));
    // git-lfs has made empty directories.
    fs::remove_dir_all(&objects).unwrap();
    fs::rename(f.path(".git/lfs/away"), &objects).unwrap();
    // Whether the contents arrive is not shown: a remote on this machine shares the storage that Sprag names.
    assert_eq!(push(&f, &o, &forward).unwrap(), pushed(&new));
}
