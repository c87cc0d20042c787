//! Repositories of jj that have no `.git` beside them. git accesses such a repository through a git directory
//! that Sprag keeps inside jj's own, as `git worktree` would create it for another work tree: with its own
//! HEAD and index, and with jj's objects and refs.

use crate::git::command::{GitProgram, Output};
use crate::git::error::{Result, io_error};
use crate::git::files::{is_there, remove, write_atomically};
use crate::git::preflight::PreflightError;
use crate::git::real::{Environment, Real};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Time limit of one jj command.
const JJ_TIMEOUT: Duration = Duration::from_secs(120);

/// The file that exists while jj has not imported a run's commits. It holds the id of jj's operation before
/// the run.
const UNIMPORTED: &str = "sprag-unimported";

/// Options with which jj answers without reading the files.
const READ_ONLY_OPTIONS: [&str; 3] = ["--no-pager", "--color=never", "--ignore-working-copy"];

/// A template: the parents of the working-copy change on one line, then the bookmarks on them, one per line.
const PARENTS: &str = "parents.map(|it| it.commit_id()).join(\" \") ++ \"\\n\" ++ \
                       parents.map(|it| it.local_bookmarks().map(|at| at.name()).join(\"\\n\")).join(\"\\n\")";

/// A jj working copy whose git directory only jj knows of.
pub(crate) struct Workspace {
    pub(crate) root: PathBuf,
    /// jj's git directory.
    store: PathBuf,
    jj: GitProgram,
}

/// The nearest jj working copy at or above `start`, unless a git work tree is equally near.
pub(crate) fn root_of(start: &Path) -> Option<PathBuf> {
    let start = fs::canonicalize(start).ok()?;
    let has = |dir: &Path, name: &str| is_there(&dir.join(name));
    let nearest = start
        .ancestors()
        .find(|dir| has(dir, ".git") || has(dir, ".jj/repo"))?;
    (!has(nearest, ".git")).then(|| nearest.to_path_buf())
}

/// The name of a bookmark as git has it. jj quotes a name in a template if a revset needs quotes around it, as with
/// `fix-#12`; of what it escapes in quotes, only `"` can be in a name of git.
fn unquoted(name: &str) -> String {
    let inside = name
        .strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'));
    inside.map_or_else(|| name.to_owned(), |text| text.replace("\\\"", "\""))
}

fn refused(root: &Path, why: &str) -> PreflightError {
    PreflightError::Repository(format!("{} {why}", root.display()))
}

/// What makes a jj working copy clean in which these paths differ from HEAD.
pub fn jj_remedy<'a>(mut paths: impl Iterator<Item = &'a [u8]>) -> &'static str {
    // jj writes this file into the tree of a commit with conflicts, and into no work tree.
    if paths.any(|path| path == b"JJ-CONFLICT-README") {
        return "the commit below the working copy has conflicts: resolve them in the files and run `jj squash`";
    }
    "run `jj new`, so that they are in a separate commit (first resolve the conflicts, if `jj status` names any), or use --allow-dirty (then nothing is committed)"
}

impl Workspace {
    /// # Errors
    /// If it is an additional working copy of a repository, if it does not keep its commits in git, or if the
    /// program `jj` is missing.
    pub(crate) fn open(root: PathBuf, environment: &Environment) -> Result<Self, PreflightError> {
        let repository = root.join(".jj/repo");
        if repository.is_file() {
            return Err(refused(
                &root,
                "is a further working copy of a jj repository (jj workspace add); run Sprag in the first one",
            ));
        }
        let place = repository.join("store");
        let target = fs::read_to_string(place.join("git_target"))
            .map(|line| place.join(line.trim_end_matches('\n')));
        let Ok(store) = target.and_then(fs::canonicalize) else {
            return Err(refused(
                &root,
                "is a jj repository whose git directory cannot be found (.jj/repo/store/git_target); `jj git colocation enable` gives it a .git",
            ));
        };
        let search_path = environment.get("PATH").unwrap_or_default();
        match GitProgram::find("jj", search_path, &root) {
            Some(jj) => Ok(Self { root, store, jj }),
            None => Err(PreflightError::Machine(format!(
                "{} is a jj repository, and jj was not found on PATH; install jj",
                root.display()
            ))),
        }
    }

    /// The git directory through which git accesses the working copy, with HEAD at the commit that the
    /// working copy is based on. While jj has not imported a run's commits, the directory stays unchanged.
    ///
    /// # Errors
    /// If jj fails, the working-copy change has several parents, or the directory cannot be written.
    pub(crate) fn git_dir(
        &self,
        git: &GitProgram,
        environment: &Environment,
    ) -> Result<PathBuf, PreflightError> {
        let name = blake3::hash(self.root.as_os_str().as_encoded_bytes()).to_hex();
        let dir = self
            .store
            .join("worktrees")
            .join(format!("sprag-{}", &name[..16]));
        if is_there(&dir.join(UNIMPORTED)) {
            return Ok(dir);
        }
        let answer = self.query(
            &["log", "--no-graph", "-r", "@", "-T", PARENTS],
            environment,
        )?;
        let answer = String::from_utf8_lossy(&answer.stdout).into_owned();
        let mut lines = answer.lines();
        let commit = lines.next().unwrap_or_default();
        if commit.contains(' ') {
            return Err(PreflightError::Repository(format!(
                "the working-copy change of {} has several parents; run `jj new`, so that their merge is a commit to start from",
                self.root.display()
            )));
        }
        let is_root = commit.bytes().all(|byte| byte == b'0');
        let bookmarks = lines.filter(|line| !line.is_empty()).map(unquoted);
        let bookmarks: Vec<String> = bookmarks.collect();
        let head = match (is_root, bookmarks.as_slice()) {
            (true, _) => self.unborn()?,
            (false, [one]) if self.has_branch(one, commit, git, environment)? => {
                format!("ref: refs/heads/{one}\n")
            }
            (false, _) => format!("{commit}\n"),
        };
        let commit = (!is_root).then_some(commit);
        self.write(&dir, &head)?;
        self.index(&dir, commit, git)?;
        Ok(dir)
    }

    /// Whether git's branch for a bookmark is at the commit of the bookmark. Exports jj's bookmarks to git if
    /// it is not. False for a store outside of the work tree, because its branches may belong to others.
    fn has_branch(
        &self,
        name: &str,
        commit: &str,
        git: &GitProgram,
        environment: &Environment,
    ) -> Result<bool, PreflightError> {
        if !self.store.starts_with(&self.root) {
            return Ok(false);
        }
        let branch = format!("refs/heads/{name}");
        let is_there = || -> Result<bool, PreflightError> {
            let call = git.call(&self.root).env("GIT_DIR", &self.store);
            let found = call
                .words("rev-parse --verify --quiet")
                .arg(&branch)
                .answer()?;
            Ok(found.as_deref() == Some(commit))
        };
        if is_there()? {
            return Ok(true);
        }
        self.query(&["git", "export"], environment)?;
        is_there()
    }

    /// The HEAD of jj's git directory, which names the branch for the first commit.
    fn unborn(&self) -> Result<String, PreflightError> {
        let path = self.store.join("HEAD");
        Ok(fs::read_to_string(&path).map_err(io_error("read", &path))?)
    }

    fn write(&self, dir: &Path, head: &str) -> Result<()> {
        let own = self.root.join(".jj/.gitignore");
        fs::create_dir_all(dir).map_err(io_error("create", dir))?;
        let files = [
            (dir.join("commondir"), "../..\n".to_owned()),
            (
                dir.join("gitdir"),
                format!("{}\n", self.root.join(".git").display()),
            ),
            // No `.git` exists at the path in `gitdir`. Without the lock, git would prune the work tree as
            // deleted.
            (
                dir.join("locked"),
                "the work tree is that of jj, and Sprag uses it too\n".to_owned(),
            ),
            (dir.join("HEAD"), head.to_owned()),
            // The same content that jj writes if `.git` is beside it.
            (own, "/*\n".to_owned()),
        ];
        for (path, content) in files {
            if fs::read(&path).ok().as_deref() != Some(content.as_bytes()) {
                write_atomically(&path, content.as_bytes())?;
            }
        }
        Ok(())
    }

    /// Sets the index to the commit's tree, and keeps the cached file metadata.
    fn index(&self, dir: &Path, commit: Option<&str>, git: &GitProgram) -> Result<()> {
        let call = |args: &str| {
            let call = git.call(&self.root).env("GIT_DIR", dir);
            call.env("GIT_WORK_TREE", &self.root).words(args)
        };
        let is_new = !dir.join("index").is_file();
        let read = match commit {
            None => call("read-tree --empty"),
            Some(commit) if is_new => call("read-tree").arg(commit),
            Some(commit) => call("read-tree --reset").arg(commit),
        };
        read.run()?;
        if is_new {
            // Changed files make the command fail, which is no error here.
            call("-c core.fsmonitor=false update-index -q --refresh").status()?;
        }
        Ok(())
    }

    fn query(&self, args: &[&str], environment: &Environment) -> Result<Output, PreflightError> {
        let mut call = self.jj.call(&self.root).timeout(JJ_TIMEOUT);
        for name in ["HOME", "XDG_CONFIG_HOME", "JJ_CONFIG"] {
            if let Some(value) = environment.get(name) {
                call = call.env(name, value);
            }
        }
        let output = call.args(READ_ONLY_OPTIONS).args(args).status()?;
        match output.status {
            Some(0) => Ok(output),
            _ => Err(PreflightError::Repository(format!(
                "jj cannot open the repository {}: {}",
                self.root.display(),
                output.stderr
            ))),
        }
    }
}

impl Real {
    /// Whether the work tree has only jj's metadata, so that git accesses it only through Sprag's directory.
    pub fn is_jj_alone(&self) -> bool {
        self.is_jj_alone
    }

    /// Puts HEAD onto the commit below jj's working-copy change, after jj has imported the commits of an earlier run.
    ///
    /// # Errors
    /// As when the repository is opened.
    pub fn follow_jj(&self) -> Result<(), PreflightError> {
        let workspace = Workspace::open(self.work_tree.clone(), &self.environment)?;
        workspace.git_dir(&self.git, &self.environment).map(drop)
    }

    /// The id of jj's operation before the run whose commits jj has not imported, or `None` if it has all
    /// commits.
    pub fn unimported_since(&self) -> Option<String> {
        fs::read_to_string(self.git_dir.join(UNIMPORTED)).ok()
    }

    /// Stores the id of jj's operation before a run, until [`Self::mark_imported`].
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn mark_unimported(&self, operation: &str) -> Result<()> {
        write_atomically(&self.git_dir.join(UNIMPORTED), operation.as_bytes())
    }

    /// Records that jj has all commits.
    ///
    /// # Errors
    /// If the stored id cannot be removed.
    pub fn mark_imported(&self) -> Result<()> {
        remove(&self.git_dir.join(UNIMPORTED))
    }

    /// The checked-out commit, or `None` before the first commit.
    ///
    /// # Errors
    /// If git fails.
    pub fn head_commit(&self) -> Result<Option<String>> {
        self.quiet_call("rev-parse --verify --quiet HEAD^{commit}")
            .answer()
    }

    /// The short name of the checked-out branch, or `None` if HEAD is detached.
    ///
    /// # Errors
    /// If git fails.
    pub fn branch_of_head(&self) -> Result<Option<String>> {
        let on = self.quiet_call("symbolic-ref --quiet HEAD").answer()?;
        Ok(on.and_then(|name| name.strip_prefix("refs/heads/").map(str::to_owned)))
    }

    /// Creates a branch of this name at a detached HEAD, so that jj finds the commit. Returns whether it did.
    ///
    /// # Errors
    /// If git fails.
    pub fn name_head(&self, name: &str) -> Result<bool> {
        if self.branch_of_head()?.is_some() {
            return Ok(false);
        }
        let branch = format!("refs/heads/{name}");
        self.quiet_call("update-ref")
            .args([&branch, "HEAD"])
            .run()?;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::{jj_remedy, unquoted};

    #[test]
    fn a_bookmark_has_the_name_that_git_knows() {
        for (printed, name) in [
            ("main", "main"),
            ("feature/x-1.2", "feature/x-1.2"),
            ("\"fix-#12\"", "fix-#12"),
            ("\"a\\\"b\"", "a\"b"),
        ] {
            assert_eq!(unquoted(printed), name);
        }
    }

    #[test]
    fn a_commit_with_conflicts_has_a_remedy_of_its_own() {
        let open: [&[u8]; 2] = [b"a.txt", b"docs/JJ-CONFLICT-README"];
        assert!(jj_remedy(open.into_iter()).starts_with("run `jj new`"));
        let conflict: [&[u8]; 2] = [b".jjconflict-base-0/a.txt", b"JJ-CONFLICT-README"];
        assert!(jj_remedy(conflict.into_iter()).ends_with("run `jj squash`"));
    }
}
