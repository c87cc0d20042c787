//! The repository that a run works on.

use crate::git::bytes::{as_path, nul_fields};
use crate::git::command::{Call, GitProgram};
use crate::git::error::Result;
use crate::git::files::is_there;
use crate::plain_file;
use crate::process::Cancel;
use crate::sandbox::Policy;
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

/// How the filters are confined that git starts.
#[derive(Debug, Clone, Default)]
pub struct FilterSandbox {
    /// What git and all filters may do; `None` if they are not confined.
    pub policy: Option<Policy>,
    /// Variables that filters get besides those of git: the addresses of proxies.
    pub variables: Vec<(OsString, OsString)>,
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
        let wanted = rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
        let dirs = [&self.work_tree, &self.git_dir, &self.common_dir].into_iter();
        let mut dirs = dirs.map(PathBuf::as_path);
        dirs.find(|dir| rustix::fs::access(*dir, wanted).is_err())
    }

    /// The lock file that blocks commits, if one exists.
    pub fn held_lock(&self) -> Option<PathBuf> {
        let [index, head] = ["index.lock", "HEAD.lock"].map(|name| self.git_dir.join(name));
        let refs = self.common_dir.join("reftable/tables.list.lock");
        let locks = [Some(index), Some(head), self.branch_lock(), Some(refs)];
        locks.into_iter().flatten().find(|lock| is_there(lock))
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
        let args = "ls-files --others --ignored --exclude-standard -z --";
        let call = self.quiet_call(args).arg(path);
        call.stdout().is_ok_and(|listed| !listed.is_empty())
    }

    /// The tracked files whose paths are UTF-8.
    ///
    /// # Errors
    /// If git fails.
    pub fn tracked_files(&self) -> Result<Vec<String>> {
        let listed = self.quiet_call("ls-files -z").stdout()?;
        let paths = nul_fields(&listed).map(|path| String::from_utf8(path.to_vec()));
        Ok(paths.filter_map(Result::ok).collect())
    }

    /// Whether the repository is a partial clone, whose missing objects git fetches when it needs them.
    pub fn is_partial(&self) -> bool {
        let packs = plain_file::entries(&self.common_dir.join("objects/pack"));
        packs
            .iter()
            .any(|file| file.extension() == Some("promisor".as_ref()))
    }

    /// The configured URL of the remote `origin`, or `None` if git does not return one.
    pub fn origin(&self) -> Option<String> {
        let url = self
            .plain_call()
            .words("config --get remote.origin.url")
            .line()
            .ok()?;
        Some(url.trim().to_owned()).filter(|url| !url.is_empty())
    }

    /// A command in the repository that runs no hook or monitor from the repository's configuration.
    pub(crate) fn quiet_call(&self, args: &str) -> Call<'_> {
        let off = "-c core.hooksPath=/dev/null -c core.fsmonitor=false";
        self.plain_call().words(off).words(args)
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
        let named = "PATH HOME XDG_CONFIG_HOME GNUPGHOME SSH_AUTH_SOCK SUDO_UID JJ_CONFIG TZ";
        let is_wanted = |name: &OsStr| {
            named.split(' ').any(|named| name == named)
                || (name.as_bytes().starts_with(b"GIT_CONFIG") && name != "GIT_CONFIG")
        };
        let wanted = variables.into_iter().filter(|(name, _)| is_wanted(name));
        Self {
            variables: wanted.collect(),
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
            .filter(move |(name, _)| names.iter().any(|it| *name == *it))
    }
}
