//! The private git directory: made before the first turn, out of the agent's reach.

use crate::git::bytes::as_path;
use crate::git::damage;
use crate::git::error::{GitError, Result, io_error};
use crate::git::files::{self, copy_content, make_dir, metadata, write_record};
use crate::git::objects::reader::ObjectReader;
use crate::git::private::adopted::{State, are_modes_kept, copy_hooks, hooks};
use crate::git::private::calls::{HOME, git_dir, private_call, read_head, real_call};
use crate::git::private::config::{Settings, included, lost_filters};
use crate::git::private::places::{links, links_below, named_in_configuration, record};
use crate::git::real::Real;
use crate::git::snapshot::index_list::{IndexRead, Layout, read_index};
use std::fs;
use std::io::Write;
use std::iter::once;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};
use tempfile::{NamedTempFile, TempDir};

/// Version 2: the configuration names no programs.
const VERSION: u32 = 2;

const STATE: &str = "state.json";

/// The location and the state of the private directory.
#[derive(Debug)]
pub(crate) struct PrivateDir {
    pub(crate) root: PathBuf,
    pub(crate) state: State,
}

impl PrivateDir {
    /// Creates the directory at `root`, which must be outside of the repository.
    pub(crate) fn create(real: &Real, root: &Path) -> Result<(Self, Layout)> {
        refuse_location(real, root)?;
        damage::refuse_emptied(&real.git_dir, &real.common_dir)?;
        for dir in [HOME, "no-hooks", "tmp"] {
            make_dir(&root.join(dir))?;
        }
        let settings = Settings::read(real)?;
        let head = read_head(|| real_call(real, root))?;
        let mut state = State {
            version: VERSION,
            repository: digest(real),
            branch: head.branch.clone(),
            are_modes_kept: are_modes_kept(real, root, &settings)?,
            ..State::default()
        };
        let with_jj = metadata(&real.work_tree.join(".jj"))?.is_some();
        state.adopt(real, root, &settings, with_jj, &|_| true)?;
        for dir in [&real.git_dir, &real.common_dir] {
            copy_content(&dir.join("shallow"), &git_dir(root).join("shallow"))?;
        }
        let written = links(real, head.branch.as_deref().unwrap_or("HEAD")).into_iter();
        state.links = written
            .map(|path| path.into_os_string().into_vec())
            .collect();
        state.links_below = links_below(real);
        let hooks = hooks(real, &settings)?;
        state.hooks = copy_hooks(real, root, &hooks)?;
        point_head(root, head.branch.as_deref(), head.oid.as_deref())?;
        let base_tree = match &head.oid {
            Some(oid) => ObjectReader::by(|| private_call(real, root)).root_of(oid)?,
            // git compares with the empty tree.
            None => private_call(real, root)
                .words("hash-object -w -t tree --stdin")
                .line()?,
        };
        let sparse = settings.is_true("core.sparsecheckout", false);
        let layout = copy_index(real, root, head.oid.as_deref(), sparse)?;
        state.lost_filters = lost_filters(real, &layout, &settings);
        let named = once(hooks).chain(included(real, &settings)?);
        let (tracked, mut others) = named_in_configuration(real, root, named)?;
        state.named = tracked;
        let submodules = layout.gitlinks.keys();
        others.extend(submodules.map(|path| real.work_tree.join(as_path(path)).join(".git")));
        record(real, root, &others)?;
        state.base = head.oid;
        state.base_tree = base_tree;
        let private = Self {
            root: root.to_path_buf(),
            state,
        };
        private.save()?;
        Ok((private, layout))
    }

    /// Opens a directory that an earlier process of the same run created.
    pub(crate) fn reopen(real: &Real, root: &Path) -> Result<Self> {
        let path = root.join(STATE);
        let private = Self {
            root: root.to_path_buf(),
            state: serde_json::from_slice(&files::read(&path)?)
                .map_err(|error| GitError::private(root, error.to_string()))?,
        };
        let State {
            version,
            repository,
            ..
        } = &private.state;
        if *version != VERSION {
            return Err(GitError::private(
                root,
                format!("it is of version {version}"),
            ));
        }
        if *repository != digest(real) {
            return Err(GitError::private(root, "it belongs to another repository"));
        }
        private.point_head()?;
        Ok(private)
    }

    /// Sets HEAD and its branch in the private directory according to the state. They are set again whenever
    /// a directory is opened, so they need not survive a crash.
    pub(crate) fn point_head(&self) -> Result<()> {
        let branch = &self.state.branch;
        let base = &self.state.base;
        point_head(&self.root, branch.as_deref(), base.as_deref())
    }

    /// Writes the state atomically.
    pub(crate) fn save(&self) -> Result<()> {
        write_record(&self.root.join(STATE), &self.state)
    }

    /// A temporary directory for git.
    pub(crate) fn scratch_dir(&self) -> Result<TempDir> {
        let tmp = self.root.join("tmp");
        TempDir::new_in(&tmp).map_err(io_error("create", &tmp))
    }

    /// A temporary file for git.
    pub(crate) fn scratch_file(&self) -> Result<NamedTempFile> {
        let tmp = self.root.join("tmp");
        NamedTempFile::new_in(&tmp).map_err(io_error("create", &tmp))
    }

    pub(crate) fn git_dir(&self) -> PathBuf {
        git_dir(&self.root)
    }

    pub(crate) fn index(&self) -> PathBuf {
        git_dir(&self.root).join("index")
    }

    pub(crate) fn hook(&self, name: &str) -> Option<PathBuf> {
        let hooks = self.state.hooks.as_ref()?;
        Some(self.root.join(as_path(hooks)).join(name))
    }
}

fn refuse_location(real: &Real, root: &Path) -> Result<()> {
    let parent = root.parent().unwrap_or(root);
    make_dir(parent)?;
    let resolved = fs::canonicalize(parent).map_err(io_error("resolve", parent))?;
    if real.contains(&resolved) {
        return Err(GitError::private(root, "it lies inside the repository"));
    }
    if metadata(root)?.is_some() {
        return Err(GitError::private(root, "something is there already"));
    }
    Ok(())
}

fn digest(real: &Real) -> String {
    let mut hasher = blake3::Hasher::new();
    for path in [&real.work_tree, &real.git_dir, &real.common_dir] {
        hasher.update(path.as_os_str().as_bytes()).update(&[0]);
    }
    hasher.finalize().to_hex().to_string()
}

/// Sets the private directory's HEAD and the branch that it is on.
fn point_head(root: &Path, branch: Option<&str>, commit: Option<&str>) -> Result<()> {
    let line = |text: &str| format!("{text}\n").into_bytes();
    let branch = match (branch, commit) {
        (None, Some(commit)) => return write_ref(root, "HEAD", &line(commit)),
        (None, None) => "refs/heads/main",
        (Some(branch), _) => branch,
    };
    if let Some(commit) = commit {
        write_ref(root, branch, &line(commit))?;
    }
    write_ref(root, "HEAD", &line(&format!("ref: {branch}")))
}

/// Replaces a ref of the private directory atomically.
pub(crate) fn write_ref(root: &Path, name: &str, content: &[u8]) -> Result<()> {
    let stays_inside = Path::new(name)
        .components()
        .all(|part| matches!(part, Component::Normal(_)));
    if !stays_inside || !(name == "HEAD" || name.starts_with("refs/")) {
        let why = format!("`{name}` is not a valid ref name");
        return Err(GitError::private(root, why));
    }
    let path = git_dir(root).join(name);
    let tmp = root.join("tmp");
    make_dir(&tmp)?;
    if let Some(parent) = path.parent() {
        make_dir(parent)?;
    }
    let written = NamedTempFile::new_in(&tmp).and_then(|mut file| {
        file.write_all(content)?;
        file.persist(&path).map(drop).map_err(|error| error.error)
    });
    written.map_err(io_error("write", &path))
}

/// Copies the stat data of the repository's index, but nothing that hides a change: the private configuration
/// disables split indexes, untracked caches and file system monitors, so git drops them when it reads and
/// writes the index. Returns the layout of the base.
pub(super) fn copy_index(
    real: &Real,
    root: &Path,
    base: Option<&str>,
    sparse: bool,
) -> Result<Layout> {
    let index = git_dir(root).join("index");
    let call = || private_call(real, root);
    let Some(base) = base else {
        call().words("read-tree --empty").run()?;
        return Ok(read_index(call())?.layout);
    };
    let found = real.git_dir.join("index");
    if found.is_file() {
        files::copy_index(&found, &index)?;
    }
    for name in files::names(&real.git_dir)? {
        if name.as_bytes().starts_with(b"sharedindex.") {
            copy_content(&real.git_dir.join(&name), &git_dir(root).join(&name))?;
        }
    }
    call().words("read-tree --reset -i").arg(base).run()?;
    let mut read = read_index(call())?;
    if clear_flags(real, root, sparse, &read)? {
        read = read_index(call())?;
    }
    Ok(read.layout)
}

/// Clears assume-unchanged bits, which hide changes, and skip-worktree bits unless a sparse checkout needs
/// them. Returns whether there were any.
fn clear_flags(real: &Real, root: &Path, sparse: bool, read: &IndexRead) -> Result<bool> {
    let skipped: &[Vec<u8>] = if sparse { &[] } else { &read.skipped };
    for (flag, paths) in [
        ("--no-assume-unchanged", read.assumed.as_slice()),
        ("--no-skip-worktree", skipped),
    ] {
        if !paths.is_empty() {
            let call = private_call(real, root).args(["update-index", flag, "-z", "--stdin"]);
            call.paths(paths).run()?;
        }
    }
    Ok(!read.assumed.is_empty() || !skipped.is_empty())
}
