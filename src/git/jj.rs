//! Repositories of jj without a `.git` beside them. git sees one through a git directory that Sprag keeps in
//! jj's own, as `git worktree` would make it for a further work tree: a HEAD and an index of its own, and the
//! objects and refs of jj's.

use crate::git::command::{Call, GitProgram, Output};
use crate::git::environment::Environment;
use crate::git::error::{GitError, io_error};
use crate::git::files::write_atomically;
use crate::git::preflight::PreflightError;
use crate::git::real::Real;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The longest that jj may take to say what its working copy is on.
const PATIENCE: Duration = Duration::from_secs(120);

/// What is there while jj does not know of a run's commits: the id of jj's operation before the run.
const UNTOLD: &str = "sprag-untold";

/// What jj is asked without looking at the files.
const QUIETLY: [&str; 3] = ["--no-pager", "--color=never", "--ignore-working-copy"];

/// The parents of the working-copy change and, a line each, the bookmarks on them.
const PARENTS: &str = "parents.map(|it| it.commit_id()).join(\" \") ++ \"\\n\" ++ \
                       parents.map(|it| it.local_bookmarks().map(|at| at.name()).join(\"\\n\")).join(\"\\n\")";

/// A working copy of jj's whose git directory nothing but jj sees.
pub(super) struct Workspace {
    pub(super) root: PathBuf,
    /// jj's git directory.
    store: PathBuf,
    jj: GitProgram,
}

/// The nearest directory, from this one upwards, that is a working copy of jj's, unless git has one that
/// is as near.
pub(super) fn root_of(start: &Path) -> Option<PathBuf> {
    let start = fs::canonicalize(start).ok()?;
    let is_there = |dir: &Path, name: &str| dir.join(name).symlink_metadata().is_ok();
    let mut above = start.ancestors();
    let nearest = above.find(|dir| is_there(dir, ".git") || is_there(dir, ".jj/repo"))?;
    (!is_there(nearest, ".git")).then(|| nearest.to_path_buf())
}

impl Workspace {
    /// # Errors
    /// Where it is a further working copy of a repository, does not keep its commits in git, or where the
    /// program `jj` is missing.
    pub(super) fn open(root: PathBuf, environment: &Environment) -> Result<Self, PreflightError> {
        let repository = root.join(".jj/repo");
        if repository.is_file() {
            return Err(PreflightError::FurtherWorkspace { path: root });
        }
        let place = repository.join("store");
        let target = fs::read_to_string(place.join("git_target"));
        let target = target.map(|line| place.join(line.trim_end_matches('\n')));
        let Ok(store) = target.and_then(fs::canonicalize) else {
            return Err(PreflightError::NoStore { path: root });
        };
        let search_path = environment.get("PATH").unwrap_or_default();
        match GitProgram::find("jj", search_path, &root) {
            Some(jj) => Ok(Self { root, store, jj }),
            None => Err(PreflightError::NoJj { path: root }),
        }
    }

    /// The git directory by which git sees the working copy, on the commit that this is on. While jj does not
    /// know of a run's commits, the directory stays as it is.
    ///
    /// # Errors
    /// When jj fails, the working-copy change has several parents, or the directory cannot be written.
    pub(super) fn git_dir(
        &self,
        git: &GitProgram,
        environment: &Environment,
    ) -> Result<PathBuf, PreflightError> {
        let name = blake3::hash(self.root.as_os_str().as_encoded_bytes()).to_hex();
        let dir = self
            .store
            .join("worktrees")
            .join(format!("sprag-{}", &name[..16]));
        if dir.join(UNTOLD).symlink_metadata().is_ok() {
            return Ok(dir);
        }
        let answer = self.asked(
            &["log", "--no-graph", "-r", "@", "-T", PARENTS],
            environment,
        )?;
        let answer = String::from_utf8_lossy(&answer.stdout).into_owned();
        let mut lines = answer.lines();
        let commit = lines.next().unwrap_or_default();
        if commit.contains(' ') {
            let path = self.root.clone();
            return Err(PreflightError::SeveralParents { path });
        }
        let is_root = commit.bytes().all(|byte| byte == b'0');
        let bookmarks: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
        let head = match (is_root, bookmarks.as_slice()) {
            (true, _) => self.unborn()?,
            (false, [one]) if self.has_branch((*one, commit), git, environment)? => {
                format!("ref: refs/heads/{one}\n")
            }
            (false, _) => format!("{commit}\n"),
        };
        let commit = (!is_root).then_some(commit);
        self.write(&dir, &head)?;
        self.index(&dir, commit, git)?;
        Ok(dir)
    }

    /// Whether git's branch of a bookmark is at the commit where jj has it. A store that others see through a
    /// git directory of their own has branches that are theirs.
    fn has_branch(
        &self,
        (name, commit): (&str, &str),
        git: &GitProgram,
        environment: &Environment,
    ) -> Result<bool, PreflightError> {
        if !self.store.starts_with(&self.root) {
            return Ok(false);
        }
        let branch = format!("refs/heads/{name}");
        let args = ["rev-parse", "--verify", "--quiet", &branch];
        let is_there = || -> Result<bool, PreflightError> {
            let found = git.call(&self.root).env("GIT_DIR", &self.store).args(args);
            let found = found.status()?;
            Ok(found.status == Some(0) && found.line() == commit)
        };
        if is_there()? {
            return Ok(true);
        }
        self.asked(&["git", "export"], environment)?;
        is_there()
    }

    /// The HEAD of jj's git directory, which names the branch of a first commit.
    fn unborn(&self) -> Result<String, PreflightError> {
        let path = self.store.join("HEAD");
        Ok(fs::read_to_string(&path).map_err(io_error("read", &path))?)
    }

    fn write(&self, dir: &Path, head: &str) -> Result<(), GitError> {
        let own = self.root.join(".jj/.gitignore");
        fs::create_dir_all(dir).map_err(io_error("create", dir))?;
        let files = [
            (dir.join("commondir"), "../..\n".to_owned()),
            (
                dir.join("gitdir"),
                format!("{}\n", self.root.join(".git").display()),
            ),
            // Nothing is at the place that `gitdir` names, which git would take for a work tree that is gone.
            (
                dir.join("locked"),
                "jj has this work tree, Sprag looks at it\n".to_owned(),
            ),
            (dir.join("HEAD"), head.to_owned()),
            // As jj has it where `.git` is beside it.
            (own, "/*\n".to_owned()),
        ];
        for (path, content) in files {
            if fs::read(&path).ok().as_deref() != Some(content.as_bytes()) {
                write_atomically(&path, content.as_bytes())?;
            }
        }
        Ok(())
    }

    /// Makes the index what the commit has, and keeps what it knows of the files.
    fn index(&self, dir: &Path, commit: Option<&str>, git: &GitProgram) -> Result<(), GitError> {
        let call = |args: &[&str]| {
            let call = git.call(&self.root).env("GIT_DIR", dir);
            call.env("GIT_WORK_TREE", &self.root).args(args)
        };
        let is_new = !dir.join("index").is_file();
        match commit {
            None => call(&["read-tree", "--empty"]).run()?,
            Some(commit) if is_new => call(&["read-tree", commit]).run()?,
            Some(commit) => call(&["read-tree", "--reset", commit]).run()?,
        };
        if is_new {
            // Files that differ are no failure.
            call(&[
                "-c",
                "core.fsmonitor=false",
                "update-index",
                "-q",
                "--refresh",
            ])
            .status()?;
        }
        Ok(())
    }

    fn asked(&self, args: &[&str], environment: &Environment) -> Result<Output, PreflightError> {
        let mut call = self.jj.call(&self.root).timeout(PATIENCE);
        for name in ["HOME", "XDG_CONFIG_HOME", "JJ_CONFIG"] {
            if let Some(value) = environment.get(name) {
                call = call.env(name, value);
            }
        }
        let output = call.args(QUIETLY).args(args).status()?;
        match output.status {
            Some(0) => Ok(output),
            _ => Err(PreflightError::Jj {
                path: self.root.clone(),
                why: output.stderr,
            }),
        }
    }
}

impl Real {
    /// Whether the work tree is jj's, and git sees it through a directory of Sprag's alone.
    pub fn is_jj_alone(&self) -> bool {
        self.is_jj_alone
    }

    /// The id of jj's operation before the run whose commits jj does not know; `None` where it knows all.
    pub fn untold_since(&self) -> Option<String> {
        fs::read_to_string(self.git_dir.join(UNTOLD)).ok()
    }

    /// Notes jj's operation before a run, until [`Self::note_told`].
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn note_untold(&self, operation: &str) -> Result<(), GitError> {
        write_atomically(&self.git_dir.join(UNTOLD), operation.as_bytes())
    }

    /// Notes that jj knows of all commits.
    ///
    /// # Errors
    /// When the note cannot be removed.
    pub fn note_told(&self) -> Result<(), GitError> {
        let path = self.git_dir.join(UNTOLD);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(io_error("remove", &path)(error))
            }
            _ => Ok(()),
        }
    }

    /// The commit that is checked out; `None` before the first one.
    ///
    /// # Errors
    /// When git fails.
    pub fn head_commit(&self) -> Result<Option<String>, GitError> {
        let found = self.quiet_call(&["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]);
        let found = found.status()?;
        Ok((found.status == Some(0)).then(|| found.line()))
    }

    /// Gives the commit that is checked out a branch of this name, by which jj finds it, where it is on none.
    /// Says whether it did.
    ///
    /// # Errors
    /// When git fails.
    pub fn name_head(&self, name: &str) -> Result<bool, GitError> {
        let on = self
            .quiet_call(&["symbolic-ref", "--quiet", "HEAD"])
            .status()?;
        if on.status == Some(0) {
            return Ok(false);
        }
        let branch = format!("refs/heads/{name}");
        self.quiet_call(&["update-ref", &branch, "HEAD"]).run()?;
        Ok(true)
    }

    /// A command in the repository that runs nothing which its configuration names.
    fn quiet_call(&self, args: &[&str]) -> Call<'_> {
        let off = [
            "-c",
            "core.hooksPath=/dev/null",
            "-c",
            "core.fsmonitor=false",
        ];
        self.plain_call().args(off).args(args)
    }
}
