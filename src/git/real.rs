//! The repository that a run works on.

use crate::git::bytes::as_path;
use crate::git::command::{Call, GitProgram};
use crate::git::error::GitError;
use crate::git::filters::sandbox::FilterSandbox;
use crate::plain_file;
use crate::process::Cancel;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The most bytes of a HEAD that is read.
const MAX_HEAD: u64 = 8 << 10;

/// A repository that a run can work on. Every path is resolved, so that a later change of a link has no
/// effect.
#[derive(Debug, Clone)]
pub struct Real {
    pub(crate) work_tree: PathBuf,
    pub(crate) git_dir: PathBuf,
    pub(crate) common_dir: PathBuf,
    pub(crate) object_format: String,
    pub(crate) git: GitProgram,
    pub(crate) environment: Environment,
    /// How filters are confined that were configured before the run.
    pub(crate) filters: FilterSandbox,
    /// Device and inode of the git directory and of the work tree.
    pub(crate) identity: [Option<(u64, u64)>; 2],
    /// Whether the work tree has only jj's metadata and no `.git`.
    pub(crate) is_jj_alone: bool,
}

impl Real {
    /// Sets how filters are confined.
    pub fn confine_filters(&mut self, sandbox: FilterSandbox) {
        self.filters = sandbox;
    }

    /// Ends git processes soon after a signal has set this flag. `times` multiplies how long they may still work.
    pub fn stop_with(&self, cancel: &Cancel, times: u32) {
        self.git.stop.follow(cancel, times);
    }

    /// Whether git processes are no longer started, because a signal has asked the run to stop.
    pub fn is_stopped(&self) -> bool {
        self.git.stop.is_over()
    }

    /// The top directory of the work tree.
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

    /// The number of digits in an object id.
    pub(crate) fn id_length(&self) -> usize {
        match self.object_format.as_str() {
            "sha256" => 64,
            _ => 40,
        }
    }

    /// The first of the work tree and the git directories that is not writable, if any.
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

    /// The lock file that blocks commits, if one exists.
    pub fn held_lock(&self) -> Option<PathBuf> {
        let [index, head] = ["index.lock", "HEAD.lock"].map(|name| self.git_dir.join(name));
        let refs = self.common_dir.join("reftable/tables.list.lock");
        let locks = [Some(index), Some(head), self.branch_lock(), Some(refs)];
        let is_there = |lock: &PathBuf| lock.symlink_metadata().is_ok();
        locks.into_iter().flatten().find(is_there)
    }

    /// Where the lock of the checked-out branch would be.
    fn branch_lock(&self) -> Option<PathBuf> {
        let head = plain_file::read(&self.git_dir.join("HEAD"), MAX_HEAD).ok()?;
        let branch = head.strip_prefix(b"ref: refs/heads/")?.trim_ascii_end();
        let lock = [b"refs/heads/", branch, b".lock"].concat();
        Some(self.common_dir.join(as_path(&lock)))
    }

    /// All directories that git reads during a run, except the private directory.
    pub(crate) fn roots(&self) -> Vec<PathBuf> {
        let mut roots = vec![self.work_tree.clone()];
        for dir in [&self.git_dir, &self.common_dir] {
            if !roots.iter().any(|root| dir.starts_with(root)) {
                roots.push(dir.clone());
            }
        }
        roots
    }

    /// A command in the repository that uses only the repository's configuration.
    pub(crate) fn plain_call(&self) -> Call<'_> {
        let call = self.git.call(&self.work_tree);
        call.env("GIT_DIR", &self.git_dir)
            .env("GIT_WORK_TREE", &self.work_tree)
            .watching(self.roots())
    }

    /// Whether git ignores `path`, an untracked file of the work tree. False if git gives no answer.
    pub fn ignores(&self, path: &Path) -> bool {
        let call = self.plain_call();
        call.words("-c core.fsmonitor=false ls-files --others --ignored --exclude-standard -z --")
            .args([path])
            .run()
            .is_ok_and(|output| !output.stdout.is_empty())
    }

    /// The tracked files whose paths are UTF-8.
    ///
    /// # Errors
    /// If git fails.
    pub fn tracked_files(&self) -> Result<Vec<String>, GitError> {
        let args = ["-c", "core.fsmonitor=false", "ls-files", "-z"];
        let output = self.plain_call().args(args).run()?;
        let paths = output
            .stdout
            .split(|byte| *byte == 0)
            .filter_map(|path| String::from_utf8(path.to_vec()).ok());
        Ok(paths.filter(|path| !path.is_empty()).collect())
    }

    /// Whether the repository is a partial clone, whose missing objects git fetches when it needs them.
    pub fn is_partial(&self) -> bool {
        let mut packs = fs::read_dir(self.common_dir().join("objects/pack"))
            .into_iter()
            .flatten()
            .flatten();
        packs.any(|file| Path::new(&file.file_name()).extension() == Some("promisor".as_ref()))
    }

    /// The configured URL of the remote `origin`, or `None` if git does not return one.
    pub fn origin(&self) -> Option<String> {
        let call = self.plain_call();
        let output = call
            .args(["config", "--get", "remote.origin.url"])
            .run()
            .ok()?;
        let url = String::from_utf8(output.stdout).ok()?;
        Some(url.trim().to_owned()).filter(|url| !url.is_empty())
    }

    /// Whether `path` is inside the work tree or the repository's git directories.
    pub fn contains(&self, path: &Path) -> bool {
        [&self.work_tree, &self.git_dir, &self.common_dir]
            .iter()
            .any(|dir| path.starts_with(dir))
    }
}

/// Device and inode of a directory, which distinguish it from a directory that replaces it.
pub(crate) fn identity(dir: &Path) -> Option<(u64, u64)> {
    fs::symlink_metadata(dir)
        .ok()
        .filter(fs::Metadata::is_dir)
        .map(|meta| (meta.dev(), meta.ino()))
}

/// The variables that git reads from the environment in which Sprag was started.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    variables: BTreeMap<OsString, OsString>,
}

impl Environment {
    /// Selects the variables that git needs (`PATH`, `HOME`, `XDG_CONFIG_HOME`, `GIT_CONFIG*`, `GNUPGHOME`,
    /// `SSH_AUTH_SOCK`, `SUDO_UID`, `JJ_CONFIG`, `TZ`) from all `variables`.
    pub fn new(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        let wanted = |name: &OsStr| {
            let name = name.as_bytes();
            let exact: [&[u8]; 8] = [
                b"PATH",
                b"HOME",
                b"XDG_CONFIG_HOME",
                b"GNUPGHOME",
                b"SSH_AUTH_SOCK",
                b"SUDO_UID",
                b"JJ_CONFIG",
                b"TZ",
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

    pub(crate) fn get(&self, name: &str) -> Option<&OsStr> {
        self.variables
            .get(OsStr::new(name))
            .map(OsString::as_os_str)
    }

    /// Lets a command read the configuration of the system and of the user, as git does by itself.
    pub(crate) fn with_user<'a>(&self, mut call: Call<'a>) -> Call<'a> {
        for name in "GIT_CONFIG_NOSYSTEM GIT_CONFIG_SYSTEM GIT_CONFIG_GLOBAL".split(' ') {
            call = call.without_env(name);
        }
        for (name, value) in &self.variables {
            let is_setting = name.as_bytes().starts_with(b"GIT_CONFIG");
            if is_setting || name == "HOME" || name == "XDG_CONFIG_HOME" {
                call = call.env(name, value);
            }
        }
        call
    }

    pub(crate) fn signing(&self) -> impl Iterator<Item = (&OsString, &OsString)> {
        let names = ["HOME", "GNUPGHOME", "SSH_AUTH_SOCK"];
        self.variables
            .iter()
            .filter(move |(name, _)| names.iter().any(|wanted| *name == *wanted))
    }
}
