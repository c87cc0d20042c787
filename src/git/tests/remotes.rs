//! Tests with bare remotes in directories. None needs a network.

use super::support::*;
use crate::domain::snapshot::RevId;
use crate::git::{
    BranchName, Exempt, GitError, PushOutcome, PushSpec, RefusalKind, Remote, RemoteError,
    SwitchError,
};
use crate::process::{Cancel, CancelReason};
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
    let odd = odd.unwrap_err().to_string();
    assert!(odd.contains("is not the id of a commit"), "{odd}");
    assert_eq!(o.at("main"), one);
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

fn is_refused<T>(done: &Result<T, SwitchError>, why: &str) -> bool {
    matches!(done, Err(SwitchError::Refused(said)) if said.contains(why))
}

#[test]
fn only_a_clean_work_tree_is_switched() {
    let mut f = Worktree::new().start();
    let o = origin_of(&f);
    let to = o.somebody_commits("main", "ignored", "theirs\n");
    let main = BranchName::parse("main").unwrap();
    f.write("a", "dirty\n");
    let refused = f.repo.switch_to(&o.remote, &main, &to, &Cancel::new());
    assert!(
        is_refused(&refused, "uncommitted changes: a"),
        "{refused:?}"
    );
    f.write("a", "a\n");
    f.write(".git/info/exclude", "/ignored\n");
    let mut f = f.start_again();
    f.write("ignored", "mine\n");
    let before = f.head();
    let refused = f.repo.switch_to(&o.remote, &main, &to, &Cancel::new());
    assert!(
        is_refused(&refused, "not under version control"),
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
        is_refused(&elsewhere, "not where it was left"),
        "{elsewhere:?}"
    );
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
