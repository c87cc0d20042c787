//! Filters that were configured before the run, and where they run.
//!
//! A filter may execute a file of the work tree, so it is as untrusted as the agent. It runs in a git process
//! that is started through a launcher and may write only to a directory of its own, which is removed with it,
//! and to the places that filters have been given. What such a process answers is the content of files,
//! which is compared and verified like that of the work tree. It writes no index, no object and no file of
//! the work tree: [`checkin`] and [`checkout`] take contents from its directory.

mod checkout;

use crate::git::bytes::nul_ended;
use crate::git::command::Call;
use crate::git::error::{GitError, Result, io_error};
use crate::git::private::adopted::make_object_store;
use crate::git::private::config::{filters_file, with_configuration};
use crate::git::real::FilterSandbox;
use crate::git::repo::Repo;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The directory in which a git process with its filters may write.
struct Scratch(TempDir);

impl Scratch {
    fn new(root: &Path) -> Result<Self> {
        let tmp = root.join("tmp");
        let made = fs::canonicalize(&tmp).and_then(|tmp| {
            let mut options = tempfile::Builder::new();
            let dir = options.prefix("filter-").tempdir_in(tmp)?;
            for name in [HOME, TEMPORARY] {
                fs::create_dir(dir.path().join(name))?;
            }
            Ok(dir)
        });
        made.map(Self)
            .map_err(io_error("create a directory in", &tmp))
    }

    fn join(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

/// The parts of a [`Scratch`].
const HOME: &str = "home";
const TEMPORARY: &str = "tmp";

impl Repo {
    /// Sets how filters are confined from now on.
    pub fn confine_filters(&mut self, sandbox: FilterSandbox) {
        self.real.filters = sandbox;
    }

    /// A command in the private directory that converts contents, and so may start filters. It changes
    /// nothing there.
    pub(crate) fn converting(&self) -> Result<Call<'_>> {
        if !self.private.state.filters {
            return Ok(self.call());
        }
        let scratch = Scratch::new(&self.private.root)?;
        let call = self.call_with_filters(&scratch);
        Ok(call.holding(scratch.0))
    }

    /// A command that may start filters and write to `scratch`.
    fn call_with_filters(&self, scratch: &Scratch) -> Call<'_> {
        let call = self.call().keeping_stderr().env("GIT_OPTIONAL_LOCKS", "0");
        let mut call = with_configuration(call, &filters_file(&self.private.root));
        let sandbox = &self.real.filters;
        for (name, value) in &sandbox.variables {
            call = call.env(name, value);
        }
        let Some(policy) = &sandbox.policy else {
            return call;
        };
        let mut policy = policy.clone().and_write([scratch.0.path().to_path_buf()]);
        policy.write.extend(self.lfs_storage());
        call.env("HOME", scratch.join(HOME))
            .env("TMPDIR", scratch.join(TEMPORARY))
            .confined(Some(policy))
    }

    /// The directory of git-lfs, which is made if it is missing. It is in a place that an agent can write: the
    /// launcher lets nobody write through a link there.
    fn lfs_storage(&self) -> Option<PathBuf> {
        let storage = self.private.state.lfs_storage.clone()?;
        let storage = PathBuf::from(OsString::from_vec(storage));
        let _ = fs::create_dir(&storage);
        Some(storage)
    }

    /// Those of these paths to which a filter applies, by the attributes of the work tree and of `index`.
    pub(crate) fn with_filters<'p>(
        &self,
        index: &Path,
        paths: &[&'p [u8]],
    ) -> Result<Vec<&'p [u8]>> {
        if !self.private.state.filters || paths.is_empty() {
            return Ok(Vec::new());
        }
        let call = self.with_index(index).words("check-attr -z --stdin filter");
        let listed = call.paths(paths).stdout()?;
        let fields = nul_ended(&listed);
        let triples = fields.chunks_exact(3);
        if triples.len() != paths.len() {
            let what = format!("{} paths instead of {}", triples.len(), paths.len());
            return Err(GitError::malformed("check-attr", what));
        }
        let none = [b"unspecified".as_slice(), b"unset", b"set", b""];
        let all = paths.iter().copied().zip(triples);
        let filtered = all.filter(|(_, triple)| !none.contains(&triple[2]));
        Ok(filtered.map(|(path, _)| path).collect())
    }
}

/// Makes an object store in `scratch` that reads also from `store`, and returns it.
fn object_store(scratch: &Scratch, store: &Path) -> Result<PathBuf> {
    let objects = scratch.join("objects");
    make_object_store(&objects, store)?;
    Ok(objects)
}
