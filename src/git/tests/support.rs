//! A temporary repository, and the git that an agent or a person uses in it.

use crate::domain::snapshot::{Head, RevId};
use crate::git::{
    Change, ChangeKind, CommitError, CommitRequest, Environment, Exempt, Identity, LandingIntent,
    PlanContent, RawSnapshot, Repo, Stage, discover,
};
use crate::permit::Committable;
use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub(super) struct Fixture {
    dir: tempfile::TempDir,
    pub(super) repo: Repo,
}

pub(super) struct Worktree {
    dir: tempfile::TempDir,
}

impl Worktree {
    /// A repository with one commit of `a`, `b` and `dir/c`.
    pub(super) fn new() -> Self {
        let ground = Self::unborn();
        for (path, content) in [("a", "a\n"), ("b", "b\n"), ("dir/c", "c\n")] {
            ground.write(path, content);
        }
        ground.git(&["add", "."]);
        ground.git(&["commit", "-qm", "start"]);
        ground
    }

    /// Commits a submodule at `path` that is a clone of this repository.
    pub(super) fn add_submodule(&self, path: &str) {
        let url = self.path(".");
        let add = ["submodule", "add", "-q", url.to_str().unwrap(), path];
        self.git(&[&["-c", "protocol.file.allow=always"], &add[..]].concat());
        self.git(&["commit", "-qm", "sub"]);
    }

    pub(super) fn unborn() -> Self {
        Self::with_format("--object-format=sha1")
    }

    pub(super) fn with_format(format: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("home")).unwrap();
        fs::create_dir(dir.path().join("w")).unwrap();
        let ground = Self { dir };
        ground.git(&["init", "-q", "-b", "main", format]);
        ground.git(&["config", "user.name", "Person"]);
        ground.git(&["config", "user.email", "person@example.org"]);
        ground
    }

    pub(super) fn start(self) -> Fixture {
        let repo = self.open();
        Fixture {
            dir: self.dir,
            repo,
        }
    }

    pub(super) fn open(&self) -> Repo {
        let real = discover(&self.path("."), &environment(self.dir.path())).unwrap();
        Repo::create(real, &self.dir.path().join("run/git")).unwrap()
    }
}

pub(super) trait Place {
    fn root(&self) -> &Path;

    fn path(&self, path: impl AsRef<OsStr>) -> PathBuf {
        self.root().join("w").join(Path::new(path.as_ref()))
    }

    fn write(&self, path: impl AsRef<OsStr>, content: impl AsRef<[u8]>) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap()
    }

    fn remove(&self, path: &str) {
        fs::remove_file(self.path(path)).unwrap();
    }

    fn script(&self, path: &str, body: &str) -> PathBuf {
        let path = self.path(path);
        write_program(&path, &format!("#!/bin/sh\n{body}\n"));
        path
    }

    fn git(&self, args: &[&str]) -> String {
        git_in(self.root(), &self.path("."), args)
    }

    /// Commits the changes in a submodule, or nothing.
    fn commit_in_submodule(&self, name: &str) {
        let identity = ["-c", "user.name=x", "-c", "user.email=x"];
        let commit = ["commit", "-q", "--allow-empty", "-am", "in sub"];
        self.git(&[&["-C", name], &identity[..], &commit[..]].concat());
    }
}

impl Place for Worktree {
    fn root(&self) -> &Path {
        self.dir.path()
    }
}

impl Place for Fixture {
    fn root(&self) -> &Path {
        self.dir.path()
    }
}

/// A separate process writes the program: if this one had it open for writing, a child of another test could
/// inherit the descriptor, and the program could not be run until that child ends.
#[expect(clippy::disallowed_methods, reason = "tests start children")]
pub(super) fn write_program(path: &Path, content: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let mut child = Command::new("sh")
        .args(["-c", "cat >\"$1\" && chmod 755 \"$1\"", "sh"])
        .arg(path)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(content.as_bytes()).unwrap();
    drop(stdin);
    assert!(child.wait().unwrap().success());
}

pub(super) fn make_executable(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[expect(clippy::disallowed_methods, reason = "tests read PATH to find git")]
pub(super) fn environment(root: &Path) -> Environment {
    Environment::new([
        ("PATH".into(), std::env::var_os("PATH").unwrap()),
        ("HOME".into(), root.join("home").into_os_string()),
        ("GIT_CONFIG_NOSYSTEM".into(), "1".into()),
    ])
}

pub(super) fn git_in(root: &Path, dir: &Path, args: &[&str]) -> String {
    let output = try_git(root, dir, args, b"");
    assert!(
        output.status.success(),
        "git {args:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout)
        .trim_end()
        .to_owned()
}

#[expect(
    clippy::disallowed_methods,
    reason = "the git that an agent or a person uses"
)]
pub(super) fn try_git(
    root: &Path,
    dir: &Path,
    args: &[&str],
    stdin: &[u8],
) -> std::process::Output {
    let mut child = Command::new("git")
        .args(args)
        .current_dir(dir)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", root.join("home"))
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_ALLOW_PROTOCOL", "file")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(stdin).unwrap();
    child.wait_with_output().unwrap()
}

pub(super) fn identity() -> Identity {
    Identity {
        name: "Sprag".to_owned(),
        email: "sprag@example.org".to_owned(),
    }
}

impl Fixture {
    /// Starts another run in the same repository.
    pub(super) fn start_again(self) -> Self {
        let real = discover(&self.path("."), &environment(self.dir.path())).unwrap();
        let repo = Repo::create(real, &self.dir.path().join("run-again/git")).unwrap();
        Self { repo, ..self }
    }

    pub(super) fn snapshot(&self) -> RawSnapshot {
        self.repo.snapshot(&Exempt::default()).unwrap()
    }

    pub(super) fn tree(&self) -> String {
        self.snapshot().known.tree.0
    }

    pub(super) fn changes(&self) -> Vec<(String, ChangeKind)> {
        named(&self.snapshot().changes)
    }

    pub(super) fn head(&self) -> String {
        self.git(&["rev-parse", "HEAD"])
    }

    pub(super) fn stage(&mut self, plan: Option<PlanContent>) -> Result<Stage, CommitError> {
        let snapshot = self.snapshot();
        let parent = match &snapshot.known.head {
            Head::Unborn => None,
            Head::At(rev) => Some(rev.clone()),
        };
        let token = Committable::verified(snapshot.known.tree.clone());
        self.repo.stage(
            token,
            &CommitRequest {
                snapshot: &snapshot,
                plan,
                parent,
                merged: None,
            },
        )
    }

    pub(super) fn intent(&mut self, message: &str) -> LandingIntent {
        self.intent_with(message, None)
    }

    pub(super) fn intent_with(
        &mut self,
        message: &str,
        plan: Option<PlanContent>,
    ) -> LandingIntent {
        let Stage::Ready(staged) = self.stage(plan).unwrap() else {
            panic!("nothing to commit")
        };
        self.repo.commit_tree(staged, message, &identity()).unwrap()
    }

    pub(super) fn commit(&mut self, message: &str) -> RevId {
        let intent = self.intent(message);
        self.repo.land(&intent).unwrap();
        intent.commit
    }

    /// Every file of HEAD with its mode.
    pub(super) fn files(&self) -> Vec<String> {
        let listed = self.git(&["ls-tree", "-r", "--format=%(objectmode) %(path)", "HEAD"]);
        listed.lines().map(str::to_owned).collect()
    }

    /// The status of the work tree according to the person's own git.
    pub(super) fn status(&self) -> String {
        self.git(&["status", "--porcelain", "-uall"])
    }
}

pub(super) fn named(changes: &[Change]) -> Vec<(String, ChangeKind)> {
    let name = |change: &Change| (crate::git::display_path(&change.path), change.kind);
    changes.iter().map(name).collect()
}

pub(super) fn bytes_name(bytes: &[u8]) -> &OsStr {
    OsStr::from_bytes(bytes)
}

pub(super) fn changed(pairs: &[(&str, ChangeKind)]) -> Vec<(String, ChangeKind)> {
    pairs
        .iter()
        .map(|(path, kind)| ((*path).to_owned(), *kind))
        .collect()
}

/// Whether the installed git supports an option of `git init`.
pub(super) fn git_knows(option: &str) -> bool {
    let dir = tempfile::tempdir().unwrap();
    try_git(dir.path(), dir.path(), &["init", "-q", option], b"")
        .status
        .success()
}

/// Whether the commit is in the history of HEAD.
pub(super) fn landed(repo: &Repo, intent: &LandingIntent) -> bool {
    let id = &intent.commit.0;
    let tip = repo.head_state().unwrap().oid;
    repo.has_object(id).unwrap() && tip.is_some_and(|tip| repo.is_ancestor(id, &tip).unwrap())
}
