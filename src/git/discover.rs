//! Finding the repository, and refusing what cannot be worked on safely.

use crate::git::bytes::as_path;
use crate::git::command::GitProgram;
use crate::git::error::GitError;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

const OLDEST_GIT: (u32, u32) = (2, 31);

/// The environment that Sprag was started with, as far as git reads it.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    variables: BTreeMap<OsString, OsString>,
}

impl Environment {
    /// Takes what it needs (`PATH`, `HOME`, `XDG_CONFIG_HOME`, `GIT_CONFIG*`, `GNUPGHOME`,
    /// `SSH_AUTH_SOCK`, `SUDO_UID`) from all `variables`.
    pub fn new(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        let wanted = |name: &OsStr| {
            let name = name.as_bytes();
            let exact: [&[u8]; 6] = [
                b"PATH",
                b"HOME",
                b"XDG_CONFIG_HOME",
                b"GNUPGHOME",
                b"SSH_AUTH_SOCK",
                b"SUDO_UID",
            ];
            exact.contains(&name) || (name.starts_with(b"GIT_CONFIG") && name != b"GIT_CONFIG")
        };
        Self {
            variables: variables
                .into_iter()
                .filter(|(name, _)| wanted(name))
                .collect(),
        }
    }

    pub(super) fn get(&self, name: &str) -> Option<&OsStr> {
        self.variables
            .get(OsStr::new(name))
            .map(OsString::as_os_str)
    }

    pub(super) fn configuration(&self) -> impl Iterator<Item = (&OsString, &OsString)> {
        self.variables.iter().filter(|(name, _)| {
            name.as_bytes().starts_with(b"GIT_CONFIG")
                || *name == "HOME"
                || *name == "XDG_CONFIG_HOME"
        })
    }

    pub(super) fn signing(&self) -> impl Iterator<Item = (&OsString, &OsString)> {
        let names = ["HOME", "GNUPGHOME", "SSH_AUTH_SOCK"];
        self.variables
            .iter()
            .filter(move |(name, _)| names.iter().any(|wanted| *name == *wanted))
    }
}

/// Why a directory cannot be worked in. Each message names the remedy.
#[derive(Debug, thiserror::Error)]
pub enum PreflightError {
    /// There is no git program.
    #[error("git was not found on PATH; install git {}.{} or later", OLDEST_GIT.0, OLDEST_GIT.1)]
    NoGit,
    /// The git program is too old.
    #[error("git {found} is too old; install git {}.{} or later", OLDEST_GIT.0, OLDEST_GIT.1)]
    OldGit {
        /// Its version.
        found: String,
    },
    /// No repository here.
    #[error("{} is not inside a git repository; check one out (actions/checkout) or run git init", path.display())]
    NotARepository {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// A repository without a work tree.
    #[error("{} is a bare repository; run in a checkout with a work tree", path.display())]
    Bare {
        /// The repository.
        path: PathBuf,
    },
    /// Inside the `.git` directory.
    #[error("{} is inside a git directory; run in the work tree", path.display())]
    InsideGitDirectory {
        /// The directory.
        path: PathBuf,
    },
    /// A merge, rebase or the like is under way.
    #[error("{operation} is in progress; finish it or run `{}`", operation.abort_command())]
    InProgress {
        /// What is under way.
        operation: Operation,
    },
    /// The repository belongs to somebody else.
    #[error(
        "{} belongs to user {owner}, not to user {user}; run as its owner or run `git config --global --add safe.directory {}`",
        path.display(), path.display()
    )]
    ForeignOwner {
        /// The directory that belongs to another user.
        path: PathBuf,
        /// Its owner's uid.
        owner: u32,
        /// The uid that runs.
        user: u32,
    },
    /// git itself cannot open it.
    #[error("git cannot open the repository {}: {why}", path.display())]
    Unreadable {
        /// The repository.
        path: PathBuf,
        /// git's reason.
        why: String,
    },
    /// git could not be run.
    #[error(transparent)]
    Git(#[from] GitError),
}

/// An operation of git that spans several commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// `git merge`.
    Merge,
    /// `git rebase`.
    Rebase,
    /// `git am`.
    ApplyMailbox,
    /// `git cherry-pick`.
    CherryPick,
    /// `git revert`.
    Revert,
    /// `git bisect`.
    Bisect,
}

impl Operation {
    fn abort_command(self) -> &'static str {
        match self {
            Self::Merge => "git merge --abort",
            Self::Rebase => "git rebase --abort",
            Self::ApplyMailbox => "git am --abort",
            Self::CherryPick => "git cherry-pick --abort",
            Self::Revert => "git revert --abort",
            Self::Bisect => "git bisect reset",
        }
    }

    /// The operation under way in a repository, by the files git keeps for it.
    pub(super) fn under_way(git_dir: &Path) -> Option<Self> {
        let markers = [
            ("rebase-merge", Self::Rebase),
            ("rebase-apply/applying", Self::ApplyMailbox),
            ("rebase-apply", Self::Rebase),
            ("MERGE_HEAD", Self::Merge),
            ("CHERRY_PICK_HEAD", Self::CherryPick),
            ("REVERT_HEAD", Self::Revert),
            ("BISECT_LOG", Self::Bisect),
        ];
        markers
            .into_iter()
            .find(|(file, _)| git_dir.join(file).symlink_metadata().is_ok())
            .map(|(_, operation)| operation)
    }
}

impl std::fmt::Display for Operation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Merge => "a merge",
            Self::Rebase => "a rebase",
            Self::ApplyMailbox => "a git am",
            Self::CherryPick => "a cherry-pick",
            Self::Revert => "a revert",
            Self::Bisect => "a bisect",
        })
    }
}

/// A repository that can be worked on, with every path resolved so that a link changed later
/// leads nowhere else.
#[derive(Debug, Clone)]
pub struct Real {
    pub(super) work_tree: PathBuf,
    pub(super) git_dir: PathBuf,
    pub(super) common_dir: PathBuf,
    pub(super) object_format: String,
    pub(super) git: GitProgram,
    pub(super) environment: Environment,
    pub(super) identity: (u64, u64),
}

impl Real {
    /// Top of the work tree.
    pub fn work_tree(&self) -> &Path {
        &self.work_tree
    }

    /// The git directory of this work tree.
    pub fn git_dir(&self) -> &Path {
        &self.git_dir
    }

    /// The git directory that all work trees of the repository share.
    pub fn common_dir(&self) -> &Path {
        &self.common_dir
    }

    /// The work tree or git directory that may not be written, if one may not.
    pub fn closed(&self) -> Option<&Path> {
        let may_write = |dir: &Path| {
            let wanted = rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
            rustix::fs::access(dir, wanted).is_ok()
        };
        let dirs = [&self.work_tree, &self.git_dir, &self.common_dir];
        dirs.into_iter()
            .map(PathBuf::as_path)
            .find(|dir| !may_write(dir))
    }

    /// Everything that git reads in a run but the private directory.
    pub(super) fn roots(&self) -> Vec<PathBuf> {
        let mut roots = vec![self.work_tree.clone()];
        for dir in [&self.git_dir, &self.common_dir] {
            if !roots.iter().any(|root| dir.starts_with(root)) {
                roots.push(dir.clone());
            }
        }
        roots
    }

    /// Whether git ignores `path`, a file of the work tree that it does not track. An answer that
    /// cannot be had is taken for no.
    pub fn ignores(&self, path: &Path) -> bool {
        let call = self.git.call(&self.work_tree);
        let list = [
            "-c",
            "core.fsmonitor=false",
            "ls-files",
            "--others",
            "--ignored",
            "--exclude-standard",
            "-z",
            "--",
        ];
        call.args(list)
            .args([path])
            .run()
            .is_ok_and(|output| !output.stdout.is_empty())
    }

    /// The address of the remote `origin`, as its configuration says it; none where git does not tell.
    pub fn origin(&self) -> Option<String> {
        let call = self.git.call(&self.work_tree);
        let output = call
            .args(["config", "--get", "remote.origin.url"])
            .run()
            .ok()?;
        let url = String::from_utf8(output.stdout).ok()?;
        Some(url.trim().to_owned()).filter(|url| !url.is_empty())
    }

    /// Whether `path` lies inside the work tree or the repository's git directories.
    pub fn contains(&self, path: &Path) -> bool {
        [&self.work_tree, &self.git_dir, &self.common_dir]
            .iter()
            .any(|dir| path.starts_with(dir))
    }
}

/// Finds the repository that `start` lies in.
///
/// # Errors
/// [`PreflightError`] when there is none, or none that can be worked on.
pub fn discover(start: &Path, environment: &Environment) -> Result<Real, PreflightError> {
    let search_path = environment.get("PATH").unwrap_or_default();
    let top = start
        .ancestors()
        .find(|dir| dir.join(".git").symlink_metadata().is_ok());
    let git = GitProgram::find(search_path, top.unwrap_or(start)).ok_or(PreflightError::NoGit)?;
    let asked = Asked {
        git: &git,
        start,
        environment,
    };
    let Answers {
        work_tree,
        git_dir,
        common_dir,
        object_format,
    } = match asked.all_at_once() {
        Some((answers, Some(version))) => {
            refuse_old(&version)?;
            answers
        }
        Some((answers, None)) => {
            asked.version()?;
            answers
        }
        None => {
            asked.version()?;
            asked.one_by_one()?
        }
    };
    let git = GitProgram::find(search_path, &work_tree).ok_or(PreflightError::NoGit)?;
    refuse_foreign_owner(&[&work_tree, &git_dir], &asked)?;
    if let Some(operation) = Operation::under_way(&git_dir) {
        return Err(PreflightError::InProgress { operation });
    }
    let identity = identity(&git_dir).ok_or_else(|| asked.missing())?;
    let environment = environment.clone();
    Ok(Real {
        work_tree,
        git_dir,
        common_dir,
        object_format,
        git,
        environment,
        identity,
    })
}

/// Device and inode of a directory, to tell it from another one put in its place.
pub(super) fn identity(dir: &Path) -> Option<(u64, u64)> {
    fs::symlink_metadata(dir)
        .ok()
        .filter(fs::Metadata::is_dir)
        .map(|meta| (meta.dev(), meta.ino()))
}

/// Questions put to git about the directory that Sprag was started in.
struct Asked<'a> {
    git: &'a GitProgram,
    start: &'a Path,
    environment: &'a Environment,
}

/// Where the repository is, and what its objects are named by.
struct Answers {
    work_tree: PathBuf,
    git_dir: PathBuf,
    common_dir: PathBuf,
    object_format: String,
}

impl Asked<'_> {
    /// The answers of one git process, where everything is as usual, and the version that it traces: `None`
    /// tells neither what is wrong nor which path has a line break in it.
    fn all_at_once(&self) -> Option<(Answers, Option<String>)> {
        let questions = [
            "--is-bare-repository",
            "--is-inside-git-dir",
            "--show-object-format",
            "--show-toplevel",
            "--absolute-git-dir",
            "--git-common-dir",
        ];
        let args = ["-c", "safe.directory=*", "rev-parse"];
        let call = self.git.call(self.start).env("GIT_TRACE2_EVENT", "2");
        let output = call.args(args).args(questions).status().ok()?;
        let version = traced_version(&output.stderr);
        let lines = output.stdout.strip_suffix(b"\n")?;
        let lines: Vec<&[u8]> = lines.split(|byte| *byte == b'\n').collect();
        let [b"false", b"false", format, top, git_dir, common] = lines.as_slice() else {
            return None;
        };
        let path = |answer: &[u8]| fs::canonicalize(self.start.join(as_path(answer))).ok();
        let answers = Answers {
            work_tree: path(top)?,
            git_dir: path(git_dir)?,
            common_dir: path(common)?,
            object_format: String::from_utf8_lossy(format).into_owned(),
        };
        (output.status == Some(0)).then_some((answers, version))
    }

    fn one_by_one(&self) -> Result<Answers, PreflightError> {
        self.refuse_bare()?;
        Ok(Answers {
            work_tree: self.path("--show-toplevel")?,
            git_dir: self.path("--absolute-git-dir")?,
            common_dir: self.path("--git-common-dir")?,
            object_format: String::from_utf8_lossy(&self.answer("--show-object-format")?)
                .into_owned(),
        })
    }

    fn version(&self) -> Result<(), PreflightError> {
        let line = self.git.call(Path::new("/")).args(["--version"]).line()?;
        refuse_old(line.trim_start_matches("git version "))
    }

    fn refuse_bare(&self) -> Result<(), PreflightError> {
        if !self.start.is_dir() {
            return Err(self.missing());
        }
        let path = self.start.to_path_buf();
        if self.answer("--is-bare-repository")? == b"true" {
            return Err(PreflightError::Bare { path });
        }
        if self.answer("--is-inside-git-dir")? == b"true" {
            return Err(PreflightError::InsideGitDirectory { path });
        }
        Ok(())
    }

    fn path(&self, question: &str) -> Result<PathBuf, PreflightError> {
        let answer = self.answer(question)?;
        let path = self.start.join(as_path(&answer));
        fs::canonicalize(&path).map_err(|source| {
            PreflightError::Git(GitError::Io {
                action: "resolve",
                path,
                source,
            })
        })
    }

    /// Ownership is judged by [`refuse_foreign_owner`], with a message of its own.
    fn answer(&self, question: &str) -> Result<Vec<u8>, PreflightError> {
        let args = ["-c", "safe.directory=*", "rev-parse", question];
        let mut output = self.git.call(self.start).args(args).status()?;
        if output.status == Some(0) {
            if output.stdout.last() == Some(&b'\n') {
                output.stdout.pop();
            }
            return Ok(output.stdout);
        }
        if output.stderr.contains("not a git repository") {
            return Err(self.missing());
        }
        let path = self.start.to_path_buf();
        Err(PreflightError::Unreadable {
            path,
            why: output.stderr,
        })
    }

    fn missing(&self) -> PreflightError {
        PreflightError::NotARepository {
            path: self.start.to_path_buf(),
        }
    }

    /// `safe.directory` counts only where git accepts it: outside of the repository.
    fn safe_directories(&self) -> Result<Vec<Vec<u8>>, PreflightError> {
        let mut call = self
            .git
            .call(Path::new("/"))
            .without_env("GIT_CONFIG_NOSYSTEM");
        call = call
            .without_env("GIT_CONFIG_SYSTEM")
            .without_env("GIT_CONFIG_GLOBAL");
        for (name, value) in self.environment.configuration() {
            call = call.env(name, value);
        }
        let args = ["config", "-z", "--type=path", "--get-all", "safe.directory"];
        let listed = call.env("GIT_DIR", "/dev/null").args(args).status()?;
        let mut values: Vec<Vec<u8>> = listed
            .stdout
            .split(|byte| *byte == 0)
            .map(<[u8]>::to_vec)
            .collect();
        values.pop();
        Ok(values)
    }
}

/// What git traces of itself (api-trace2(7)), in the first event.
fn traced_version(stderr: &str) -> Option<String> {
    let events = stderr.lines();
    let mut events = events.filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let version = events.find(|event| event["event"] == "version")?;
    version["exe"].as_str().map(str::to_owned)
}

fn refuse_old(version: &str) -> Result<(), PreflightError> {
    let mut numbers = version
        .split('.')
        .map_while(|part| part.parse::<u32>().ok());
    match (numbers.next(), numbers.next()) {
        (Some(major), Some(minor)) if (major, minor) < OLDEST_GIT => {
            let found = version.to_owned();
            Err(PreflightError::OldGit { found })
        }
        _ => Ok(()),
    }
}

/// Root works in anybody's checkout (the usual case of a container job); others only in their own
/// or in one that their configuration lists.
fn refuse_foreign_owner(dirs: &[&PathBuf], asked: &Asked<'_>) -> Result<(), PreflightError> {
    let user = rustix::process::geteuid();
    if user.is_root() {
        return Ok(());
    }
    for dir in dirs {
        let owner = fs::symlink_metadata(dir)
            .map(|meta| meta.uid())
            .unwrap_or(user.as_raw());
        if owner == user.as_raw() || is_listed(&asked.safe_directories()?, dirs) {
            continue;
        }
        let path = dir.to_path_buf();
        return Err(PreflightError::ForeignOwner {
            path,
            owner,
            user: user.as_raw(),
        });
    }
    Ok(())
}

/// An empty value clears the list before it; `/*` at the end takes in everything below.
fn is_listed(values: &[Vec<u8>], dirs: &[&PathBuf]) -> bool {
    let mut listed = false;
    for value in values {
        let value = value.as_slice();
        listed = match value {
            b"" => false,
            b"*" => true,
            _ => {
                listed
                    || dirs.iter().any(|dir| match value.strip_suffix(b"/*") {
                        Some(parent) => dir.starts_with(as_path(parent)),
                        None => fs::canonicalize(as_path(value)).is_ok_and(|path| path == **dir),
                    })
            }
        };
    }
    listed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(values: &[&str]) -> bool {
        let values: Vec<Vec<u8>> = values
            .iter()
            .map(|value| value.as_bytes().to_vec())
            .collect();
        is_listed(&values, &[&PathBuf::from("/srv/repo")])
    }

    #[test]
    fn a_directory_is_safe_as_git_reads_the_list() {
        assert!(listed(&["*"]));
        assert!(listed(&["/srv/*"]));
        assert!(listed(&["/other", "", "/srv/*"]));
        assert!(!listed(&["*", "", "/other"]));
        assert!(!listed(&[]));
        assert!(!listed(&["/sr/*"]));
    }
}
