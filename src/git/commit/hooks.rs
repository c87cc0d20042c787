//! The project's commit hooks, as they stood at the start of the run.

use crate::git::commit::request::Staged;
use crate::git::copy_tree::{copy_tree, look, make_dir};
use crate::git::error::{GitError, io_error};
use crate::git::objects::loose::loose_path;
use crate::git::repo::Repo;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// A hook that a commit runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hook<'a> {
    /// May refuse the commit, or change files.
    PreCommit,
    /// May refuse or change the message.
    CommitMsg {
        /// The message to be checked.
        message: &'a str,
    },
}

/// How a hook is run, by whoever runs the project's own commands. The git directory it sees is a
/// copy that is thrown away with this value: nothing it does there has an effect.
#[derive(Debug)]
pub struct HookInvocation {
    /// The hook's own file.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Variables to be set beside the scrubbed environment.
    pub env: Vec<(OsString, OsString)>,
    /// Top of the work tree.
    pub cwd: PathBuf,
    message: PathBuf,
    /// Where the hook may write; removed with this value.
    scratch: tempfile::TempDir,
}

impl HookInvocation {
    /// Where the hook has to write besides the work tree.
    pub fn writes(&self) -> [PathBuf; 1] {
        [self.scratch.path().to_path_buf()]
    }

    /// The message as the hook left it.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn message(&self) -> Result<String, GitError> {
        let content = fs::read(&self.message).map_err(io_error("read", &self.message))?;
        Ok(String::from_utf8_lossy(&content).trim_end().to_owned())
    }
}

impl Repo {
    /// Prepares a hook to be run on what is staged; `None` when the project has no such hook.
    ///
    /// Afterwards the work tree decides: take a snapshot, and when its fingerprint differs, verify
    /// and stage anew.
    ///
    /// # Errors
    /// When the hook's view of the repository cannot be made.
    pub fn prepare_hook(
        &self,
        hook: &Hook<'_>,
        staged: &Staged,
    ) -> Result<Option<HookInvocation>, GitError> {
        let _open = self.unseal()?;
        let (name, message) = match hook {
            Hook::PreCommit => ("pre-commit", ""),
            Hook::CommitMsg { message } => ("commit-msg", *message),
        };
        let Some(program) = self.private.hook(name) else {
            return Ok(None);
        };
        let runnable = program
            .metadata()
            .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0);
        if !runnable {
            return Ok(None);
        }
        let scratch = tempfile::Builder::new()
            .prefix("sprag-hook-")
            .tempdir()
            .map_err(io_error("create", &self.private.root))?;
        let dir = scratch.path().join("git");
        self.copy_git_dir(&dir)?;
        self.copy_staged_objects(staged, &dir.join("objects"))?;
        let file = dir.join("COMMIT_EDITMSG");
        fs::write(&file, format!("{}\n", message.trim_end())).map_err(io_error("write", &file))?;
        let args = match hook {
            Hook::PreCommit => Vec::new(),
            Hook::CommitMsg { .. } => vec![file.clone().into_os_string()],
        };
        let env = vec![
            ("GIT_INDEX_FILE".into(), dir.join("index").into_os_string()),
            ("GIT_DIR".into(), dir.into_os_string()),
            (
                "GIT_WORK_TREE".into(),
                self.real.work_tree.clone().into_os_string(),
            ),
            ("GIT_EDITOR".into(), ":".into()),
            ("GIT_TERMINAL_PROMPT".into(), "0".into()),
            ("GIT_PREFIX".into(), "".into()),
        ];
        let cwd = self.real.work_tree.clone();
        Ok(Some(HookInvocation {
            program,
            args,
            env,
            cwd,
            message: file,
            scratch,
        }))
    }

    fn copy_git_dir(&self, to: &Path) -> Result<(), GitError> {
        let from = self.private.git_dir();
        make_dir(&to.join("objects/info"))?;
        for name in ["HEAD", "config", "refs", "packed-refs", "info", "shallow"] {
            copy_tree(&from.join(name), &to.join(name))?;
        }
        let alternates = "objects/info/alternates";
        copy_tree(&from.join(alternates), &to.join(alternates))?;
        copy_tree(&self.stage_index(), &to.join("index"))
    }

    /// The repository has no object of a commit that has not landed.
    fn copy_staged_objects(&self, staged: &Staged, to: &Path) -> Result<(), GitError> {
        let own = self.own_objects();
        for id in staged.objects.ids() {
            let copy = loose_path(to, id);
            let from = loose_path(&own, id);
            if look(&from)?.is_some() {
                copy_tree(&from, &copy)?;
            }
        }
        // git puts very large files into packs.
        copy_tree(&own.join("pack"), &to.join("pack"))
    }
}
