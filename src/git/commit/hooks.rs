//! The project's commit hooks, in their state at the start of the run.

use crate::git::commit::request::Staged;
use crate::git::error::{Result, io_error};
use crate::git::files::{copy_tree, make_dir, read, write};
use crate::git::objects::loose::loose_path;
use crate::git::private::adopted::hooks;
use crate::git::private::config::{Settings, filters_file, signing_file};
use crate::git::real::Real;
use crate::git::repo::Repo;
use crate::plain_file;
use std::ffi::OsString;
use std::fs;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Maximum length of a message in bytes.
const MESSAGE_LIMIT: u64 = 1 << 20;

/// Maximum length in bytes of the line that names the interpreter of a hook.
const FIRST_LINE: u64 = 256;

/// A hook that a commit runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hook<'a> {
    /// It may reject the commit or change files.
    PreCommit,
    /// It may reject or change the message.
    CommitMsg {
        /// The message to check.
        message: &'a str,
    },
}

/// How to run a hook, in the same way as the project's other commands. The hook gets a copy of the git
/// directory that is removed with this value, so its changes there have no effect.
#[derive(Debug)]
pub struct HookInvocation {
    /// The hook's executable.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Variables to set in addition to the scrubbed environment.
    pub env: Vec<(OsString, OsString)>,
    /// The top of the work tree.
    pub cwd: PathBuf,
    message: PathBuf,
    /// Where the hook may write; removed with this value.
    scratch: tempfile::TempDir,
}

impl HookInvocation {
    /// The directory outside of the work tree that the hook must be able to write.
    pub fn writes(&self) -> [PathBuf; 1] {
        [self.scratch.path().to_path_buf()]
    }

    /// The message after the hook has run.
    pub fn message(&self) -> Result<String> {
        // The hook may run code of the work tree, which can leave anything in the place of the message.
        let content = plain_file::read(&self.message, MESSAGE_LIMIT)
            .map_err(io_error("read", &self.message))?;
        Ok(String::from_utf8_lossy(&content).trim_end().to_owned())
    }
}

/// The hooks of a commit in this directory that Sprag does not run.
fn idle_hooks(dir: &Path) -> Vec<&'static str> {
    let names = ["prepare-commit-msg", "post-commit"].into_iter();
    names.filter(|name| is_runnable(&dir.join(name))).collect()
}

fn is_runnable(hook: &Path) -> bool {
    hook.metadata()
        .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// The hooks of a commit in the repository that Sprag does not run.
///
/// # Errors
/// When the configuration cannot be read.
pub fn idle_hooks_of(real: &Real) -> Result<Vec<&'static str>> {
    Ok(idle_hooks(&hooks(real, &Settings::read(real)?)?))
}

impl Repo {
    /// The hooks of a commit that the project has and that Sprag does not run.
    pub fn idle_hooks(&self) -> Vec<&'static str> {
        let Ok(_open) = self.unseal_to_read() else {
            return Vec::new();
        };
        let dir = self.private.hook("");
        dir.map_or_else(Vec::new, |dir| idle_hooks(&dir))
    }

    /// The first lines of the commit hooks that Sprag runs, by name.
    pub fn hook_beginnings(&self) -> Vec<(&'static str, String)> {
        let Ok(_open) = self.unseal_to_read() else {
            return Vec::new();
        };
        let beginning = |name: &'static str| {
            let hook = self.private.hook(name).filter(|hook| is_runnable(hook))?;
            let mut start = Vec::new();
            let file = fs::File::open(hook).ok()?;
            file.take(FIRST_LINE).read_to_end(&mut start).ok()?;
            let text = String::from_utf8_lossy(&start).into_owned();
            Some((name, text.lines().next().unwrap_or_default().to_owned()))
        };
        let names = ["pre-commit", "commit-msg"].into_iter();
        names.filter_map(beginning).collect()
    }

    /// Prepares a hook to run on the staged changes, or returns `None` if the project has no such hook.
    ///
    /// Afterwards the work tree decides: take a snapshot, and if its fingerprint differs, verify and stage
    /// again.
    ///
    /// # Errors
    /// When the copy of the git directory cannot be made.
    pub fn prepare_hook(&self, hook: &Hook<'_>, staged: &Staged) -> Result<Option<HookInvocation>> {
        let (name, message) = match hook {
            Hook::PreCommit => ("pre-commit", ""),
            Hook::CommitMsg { message } => ("commit-msg", *message),
        };
        let Some(program) = self.private.hook(name) else {
            return Ok(None);
        };
        let _open = self.unseal()?;
        if !is_runnable(&program) {
            return Ok(None);
        }
        let scratch = tempfile::Builder::new()
            .prefix("sprag-hook-")
            .tempdir()
            .map_err(io_error("create", &self.private.root))?;
        let dir = scratch.path().join("git");
        self.copy_git_dir(&dir)?;
        // The repository does not have them before the commit lands.
        for id in staged.content.objects.ids() {
            let from = loose_path(&self.own_objects(), id);
            copy_tree(&from, &loose_path(&dir.join("objects"), id))?;
        }
        let file = dir.join("COMMIT_EDITMSG");
        write(&file, format!("{}\n", message.trim_end()).as_bytes())?;
        let args = match hook {
            Hook::PreCommit => Vec::new(),
            Hook::CommitMsg { .. } => vec![file.clone().into()],
        };
        let cwd = self.real.work_tree.clone();
        let env: [(&str, OsString); 6] = [
            ("GIT_INDEX_FILE", dir.join("index").into()),
            ("GIT_DIR", dir.into()),
            ("GIT_WORK_TREE", cwd.clone().into()),
            ("GIT_EDITOR", ":".into()),
            ("GIT_TERMINAL_PROMPT", "0".into()),
            ("GIT_PREFIX", "".into()),
        ];
        Ok(Some(HookInvocation {
            program,
            args,
            env: env.map(|(name, value)| (name.into(), value)).into(),
            cwd,
            message: file,
            scratch,
        }))
    }

    fn copy_git_dir(&self, to: &Path) -> Result<()> {
        let from = self.private.git_dir();
        make_dir(&to.join("objects/info"))?;
        for name in ["HEAD", "config", "refs", "packed-refs", "info", "shallow"] {
            copy_tree(&from.join(name), &to.join(name))?;
        }
        let config = to.join("config");
        let mut settings = read(&config)?;
        let root = &self.private.root;
        for file in [filters_file(root), signing_file(root)] {
            settings.extend(read(&file)?);
        }
        write(&config, &settings)?;
        let alternates = "objects/info/alternates";
        copy_tree(&from.join(alternates), &to.join(alternates))?;
        copy_tree(&self.stage_index(), &to.join("index"))
    }
}
