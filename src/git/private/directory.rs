//! The private git directory: made before the first turn, out of the agent's reach.

use crate::git::bytes::{as_path, nul_joined};
use crate::git::command::Call;
use crate::git::copy_tree::{copy_tree, make_dir, metadata};
use crate::git::entries::{Digest, hash};
use crate::git::error::{GitError, io_error};
use crate::git::files::{write, write_atomically};
use crate::git::objects::reader::ObjectReader;
use crate::git::private::calls::{HOME, git_dir, private_call, real_call};
use crate::git::private::config::{Setting, Settings, render, setting};
use crate::git::private::head::{HeadState, read_head};
use crate::git::private::ignore_rules::exclude_jj;
use crate::git::private::links::links;
use crate::git::private::programs::{
    PROGRAMS, has_filters, has_lfs, lfs_storage, signer_in_repository, write_programs,
};
use crate::git::real::Real;
use crate::git::snapshot::cache::Layout;
use crate::git::snapshot::index_list::{IndexRead, layout_of, read_index};
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

/// Version 2: the configuration names no programs.
const VERSION: u32 = 2;

/// The location and the state of the private directory.
#[derive(Debug)]
pub(in crate::git) struct PrivateDir {
    pub(in crate::git) root: PathBuf,
    pub(in crate::git) state: State,
}

/// The state that must survive a restart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::git) struct State {
    version: u32,
    /// Digest of the repository's paths, so that the directory is never used with another repository.
    repository: String,
    /// The commit that changes are compared with, or `None` before the first commit.
    pub(in crate::git) base: Option<String>,
    /// Its tree, or the empty tree before the first commit.
    pub(in crate::git) base_tree: String,
    /// The branch that was checked out at the start.
    pub(in crate::git) branch: Option<String>,
    pub(in crate::git) file_mode: bool,
    pub(in crate::git) sign: bool,
    /// Whether git may convert files even without a `.gitattributes` file.
    pub(in crate::git) converts: bool,
    pub(in crate::git) identity: Option<(String, String)>,
    /// Parts of the repository's git directory that were links at the start.
    pub(in crate::git) links: Vec<Vec<u8>>,
    /// Whether a filter was configured at the start.
    pub(in crate::git) filters: bool,
    /// Where git-lfs keeps contents, if it is one of the filters.
    pub(in crate::git) lfs_storage: Option<Vec<u8>>,
    /// A file of the repository that signing would execute.
    pub(in crate::git) signer: Option<Vec<u8>>,
    /// The copied hooks, relative to the private directory's root.
    hooks: Option<Vec<u8>>,
}

impl PrivateDir {
    /// Creates the directory at `root`, which must be outside of the repository.
    pub(in crate::git) fn create(real: &Real, root: &Path) -> Result<(Self, StartIndex), GitError> {
        refuse_location(real, root)?;
        for dir in [HOME, "no-hooks", "tmp"] {
            make_dir(&root.join(dir))?;
        }
        let settings = Settings::read(real)?;
        let head = read_head(&real_call(real, root))?;
        init(real, root, &settings)?;
        copy_rules(real, root, &settings)?;
        write_alternates(real, root)?;
        point_head(root, head.branch.as_deref(), head.oid.as_deref())?;
        let base_tree = match &head.oid {
            Some(oid) => tree_of(real, root, oid)?,
            None => empty_tree(real, root)?,
        };
        let sparse = settings.is_true("core.sparsecheckout", false);
        let index = copy_index(real, root, &head, (&base_tree, sparse))?;
        for (place, copy) in recorded_places(real, root) {
            copy_tree(&place, &copy)?;
        }
        let identity = settings.text("user.name").zip(settings.text("user.email"));
        let written = head.branch.as_deref().unwrap_or("HEAD");
        let bytes = |path: PathBuf| path.into_os_string().into_vec();
        let links = links(real, written).into_iter().map(bytes);
        let state = State {
            links: links.collect(),
            version: VERSION,
            repository: digest(real),
            base: head.oid,
            base_tree,
            branch: head.branch,
            file_mode: settings.is_true("core.filemode", true),
            sign: settings.is_true("commit.gpgsign", false),
            converts: converts(root, &settings),
            identity,
            filters: has_filters(&settings),
            lfs_storage: has_lfs(real, &settings).then(|| bytes(lfs_storage(real, &settings))),
            signer: signer_in_repository(real, &settings).map(bytes),
            hooks: copy_hooks(real, root, &settings)?,
        };
        let private = Self {
            root: root.to_path_buf(),
            state,
        };
        private.save()?;
        Ok((private, index))
    }

    /// Opens a directory that an earlier process of the same run created.
    pub(in crate::git) fn reopen(real: &Real, root: &Path) -> Result<Self, GitError> {
        let path = root.join("state.json");
        let text = fs::read(&path).map_err(io_error("read", &path))?;
        let unusable = |why: String| GitError::Private {
            path: root.to_path_buf(),
            why,
        };
        let state: State =
            serde_json::from_slice(&text).map_err(|error| unusable(error.to_string()))?;
        if state.version != VERSION {
            return Err(unusable(format!("it is of version {}", state.version)));
        }
        if state.repository != digest(real) {
            return Err(unusable("it belongs to another repository".to_owned()));
        }
        let private = Self {
            root: root.to_path_buf(),
            state,
        };
        private.point_head()?;
        Ok(private)
    }

    /// Sets HEAD and its branch in the private directory according to the state. They are set again whenever
    /// a directory is opened, so they need not survive a crash.
    pub(in crate::git) fn point_head(&self) -> Result<(), GitError> {
        let (branch, base) = (&self.state.branch, &self.state.base);
        point_head(&self.root, branch.as_deref(), base.as_deref())
    }

    /// Writes the state atomically.
    pub(in crate::git) fn save(&self) -> Result<(), GitError> {
        let path = self.root.join("state.json");
        let text = serde_json::to_vec(&self.state).map_err(|error| GitError::Private {
            path: self.root.clone(),
            why: error.to_string(),
        })?;
        write_atomically(&path, &text)
    }

    pub(in crate::git) fn git_dir(&self) -> PathBuf {
        git_dir(&self.root)
    }

    pub(in crate::git) fn index(&self) -> PathBuf {
        git_dir(&self.root).join("index")
    }

    pub(in crate::git) fn hook(&self, name: &str) -> Option<PathBuf> {
        let hooks = self.state.hooks.as_ref()?;
        Some(self.root.join(as_path(hooks)).join(name))
    }
}

/// The paths in the repository's git directory that an agent may not change, each with the path of its copy.
pub(in crate::git) fn recorded_places(real: &Real, root: &Path) -> Vec<(PathBuf, PathBuf)> {
    let shared = ["config", "hooks", "info", "objects/info/alternates"];
    let own = ["config.worktree", "info", "commondir", "gitdir"];
    let recorded = root.join("recorded");
    let mut places: Vec<(PathBuf, PathBuf)> = shared
        .iter()
        .map(|name| {
            (
                real.common_dir.join(name),
                recorded.join("shared").join(name),
            )
        })
        .collect();
    for name in own {
        let place = real.git_dir.join(name);
        if places.iter().all(|(known, _)| *known != place) {
            places.push((place, recorded.join("own").join(name)));
        }
    }
    let dot_git = real.work_tree.join(".git");
    if fs::symlink_metadata(&dot_git).is_ok_and(|meta| !meta.is_dir())
        || recorded.join("dot-git").symlink_metadata().is_ok()
    {
        places.push((dot_git, recorded.join("dot-git")));
    }
    places
}

fn refuse_location(real: &Real, root: &Path) -> Result<(), GitError> {
    let parent = root.parent().unwrap_or(root);
    make_dir(parent)?;
    let resolved = fs::canonicalize(parent).map_err(io_error("resolve", parent))?;
    let refuse = |why: &str| {
        Err(GitError::Private {
            path: root.to_path_buf(),
            why: why.to_owned(),
        })
    };
    if real.contains(&resolved) {
        return refuse("it lies inside the repository");
    }
    if metadata(root)?.is_some() {
        return refuse("something is there already");
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

fn converts(root: &Path, settings: &Settings) -> bool {
    let info = git_dir(root).join("info");
    let has = |name: &str| info.join(name).metadata().is_ok_and(|meta| meta.len() > 0);
    let configured = ["core.autocrlf", "core.eol"]
        .iter()
        .any(|key| settings.last(key).is_some());
    configured || has("attributes") || has("global-attributes")
}

/// Creates the directories, configuration and HEAD that make a git directory (gitrepository-layout(5)).
/// Created without `git init`, it always keeps its refs in files, whatever git's default is.
fn init(real: &Real, root: &Path, settings: &Settings) -> Result<(), GitError> {
    let dir = git_dir(root);
    for name in ["info", "objects/info", "objects/pack", "refs/heads"] {
        make_dir(&dir.join(name))?;
    }
    let inside = |name: &str| root.join(name).into_os_string().into_vec();
    let sha256 = real.object_format != "sha1";
    let mut lines = vec![
        setting(
            "core.repositoryformatversion",
            if sha256 { "1" } else { "0" },
        ),
        setting("core.bare", "false"),
    ];
    if sha256 {
        lines.push(setting(
            "extensions.objectformat",
            real.object_format.as_str(),
        ));
    }
    lines.extend(settings.taken_over().cloned());
    let storage = lfs_storage(real, settings).into_os_string().into_vec();
    lines.push(setting("lfs.storage", storage));
    if has_lfs(real, settings) {
        // Without it, git-lfs adds it to the configuration.
        lines.push(setting("lfs.repositoryformatversion", "0"));
    }
    lines.extend([
        setting("core.excludesfile", inside("git/info/global-exclude")),
        setting("core.attributesfile", inside("git/info/global-attributes")),
        setting("core.hookspath", inside("no-hooks")),
        setting("core.fsmonitor", "false"),
        setting("core.untrackedcache", "false"),
        setting("core.splitindex", "false"),
        setting("core.commitgraph", "false"),
        setting("core.logallrefupdates", "false"),
        setting("index.sparse", "false"),
        setting("gc.auto", "0"),
    ]);
    write(&dir.join("config"), &render(&lines as &[Setting]))?;
    make_dir(&root.join(PROGRAMS))?;
    write_programs(root, settings)
}

/// Copies the ignore, attribute and sparse checkout rules from outside of the work tree.
fn copy_rules(real: &Real, root: &Path, settings: &Settings) -> Result<(), GitError> {
    let info = git_dir(root).join("info");
    copy_content(&real.common_dir.join("info/exclude"), &info.join("exclude"))?;
    exclude_jj(real, &info.join("exclude"))?;
    copy_content(
        &real.common_dir.join("info/attributes"),
        &info.join("attributes"),
    )?;
    copy_content(
        &real.git_dir.join("info/sparse-checkout"),
        &info.join("sparse-checkout"),
    )?;
    copy_content(
        &real.git_dir.join("shallow"),
        &git_dir(root).join("shallow"),
    )?;
    copy_content(
        &real.common_dir.join("shallow"),
        &git_dir(root).join("shallow"),
    )?;
    for (key, default, copy) in [
        ("core.excludesfile", "git/ignore", "global-exclude"),
        ("core.attributesfile", "git/attributes", "global-attributes"),
    ] {
        write(&info.join(copy), b"")?;
        let configured = settings
            .path(real, key)?
            .map(|path| real.work_tree.join(as_path(&path)));
        if let Some(path) =
            configured.or_else(|| user_config_dir(real).map(|dir| dir.join(default)))
        {
            copy_content(&path, &info.join(copy))?;
        }
    }
    Ok(())
}

fn user_config_dir(real: &Real) -> Option<PathBuf> {
    let xdg = real
        .environment
        .get("XDG_CONFIG_HOME")
        .filter(|dir| !dir.is_empty());
    xdg.map(PathBuf::from).or_else(|| {
        real.environment
            .get("HOME")
            .map(|home| Path::new(home).join(".config"))
    })
}

/// Copies a file's content if the file exists. A link is followed, as git does.
fn copy_content(from: &Path, to: &Path) -> Result<(), GitError> {
    if !from.is_file() {
        return Ok(());
    }
    let content = fs::read(from).map_err(io_error("read", from))?;
    write(to, &content)
}

/// Writes the whole chain of alternates, because git follows relative ones only at the first level.
fn write_alternates(real: &Real, root: &Path) -> Result<(), GitError> {
    let mut chain = vec![real.common_dir.join("objects")];
    let mut next = 0;
    while next < chain.len() && chain.len() < 32 {
        let list = fs::read(chain[next].join("info/alternates")).unwrap_or_default();
        for line in list.split(|byte| *byte == b'\n') {
            if line.is_empty() || line.starts_with(b"#") {
                continue;
            }
            let path = chain[next].join(as_path(line));
            let path = fs::canonicalize(&path).unwrap_or(path);
            if !chain.contains(&path) {
                chain.push(path);
            }
        }
        next += 1;
    }
    let mut text = Vec::new();
    for path in chain {
        text.extend(quoted_if_needed(path.as_os_str().as_bytes()));
        text.push(b'\n');
    }
    write(&git_dir(root).join("objects/info/alternates"), &text)
}

/// Quotes the path of an alternate in C style if it could otherwise be misread.
pub(in crate::git) fn quoted_if_needed(path: &[u8]) -> Vec<u8> {
    if !path
        .iter()
        .any(|byte| matches!(byte, b'"' | b'\n' | b'\\' | b'#'))
    {
        return path.to_vec();
    }
    let mut quoted = vec![b'"'];
    for byte in path {
        match byte {
            b'"' | b'\\' => quoted.extend([b'\\', *byte]),
            b'\n' => quoted.extend(b"\\n"),
            _ => quoted.push(*byte),
        }
    }
    quoted.push(b'"');
    quoted
}

/// Sets the private directory's HEAD and the branch that it is on.
fn point_head(root: &Path, branch: Option<&str>, commit: Option<&str>) -> Result<(), GitError> {
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
pub(in crate::git) fn write_ref(root: &Path, name: &str, content: &[u8]) -> Result<(), GitError> {
    let stays_inside = Path::new(name)
        .components()
        .all(|part| matches!(part, Component::Normal(_)));
    if !stays_inside || !(name == "HEAD" || name.starts_with("refs/")) {
        return Err(GitError::Private {
            path: root.to_path_buf(),
            why: format!("`{name}` is not a valid ref name"),
        });
    }
    let path = git_dir(root).join(name);
    let tmp = root.join("tmp");
    make_dir(&tmp)?;
    if let Some(parent) = path.parent() {
        make_dir(parent)?;
    }
    let written = tempfile::NamedTempFile::new_in(&tmp).and_then(|mut file| {
        file.write_all(content)?;
        file.persist(&path).map(drop).map_err(|error| error.error)
    });
    written.map_err(io_error("write", &path))
}

pub(in crate::git) fn tree_of(real: &Real, root: &Path, commit: &str) -> Result<String, GitError> {
    if let Ok(tree) = ObjectReader::new(&git_dir(root).join("objects")).tree_of(commit) {
        return Ok(tree);
    }
    let wanted = format!("{commit}^{{tree}}");
    private_call(real, root)
        .args(["rev-parse", "--verify", "--quiet", &wanted])
        .line()
}

/// Writes the empty tree into the private directory, so that git can compare with it.
fn empty_tree(real: &Real, root: &Path) -> Result<String, GitError> {
    private_call(real, root)
        .args(["hash-object", "-w", "-t", "tree", "--stdin"])
        .line()
}

/// Properties of the index at the start of the run.
pub(in crate::git) struct StartIndex {
    pub(in crate::git) layout: Layout,
    /// The digest of the repository's index if it holds exactly the base.
    pub(in crate::git) is_base: Option<Digest>,
}

/// Copies the stat data of the repository's index, but nothing that hides a change: the private configuration
/// disables split indexes, untracked caches and file system monitors, so git drops them when it reads and
/// writes the index.
fn copy_index(
    real: &Real,
    root: &Path,
    head: &HeadState,
    (base_tree, sparse): (&str, bool),
) -> Result<StartIndex, GitError> {
    let index = git_dir(root).join("index");
    let call = || private_call(real, root);
    let Some(base) = &head.oid else {
        call().args(["read-tree", "--empty"]).run()?;
        let layout = layout_of(call())?;
        let is_base = None;
        return Ok(StartIndex { layout, is_base });
    };
    let shared = shared_indexes(&real.git_dir)?;
    let digest = copy_with_time(&real.git_dir.join("index"), &index)?;
    for name in &shared {
        copy_content(&real.git_dir.join(name), &git_dir(root).join(name))?;
    }
    let is_base = match digest.filter(|_| shared.is_empty() && !sparse) {
        Some(digest) => holds_only(call(), base_tree)?.then_some(digest),
        None => None,
    };
    if is_base.is_none() {
        call().args(["read-tree", "--reset", "-i", base]).run()?;
    }
    let mut read = read_index(call())?;
    if clear_flags(real, root, sparse, &read)? {
        read = read_index(call())?;
    }
    let layout = read.layout;
    Ok(StartIndex { layout, is_base })
}

/// Copies an index with its modification time, from which git knows which entries changed while it was
/// written. Returns the digest of the copied bytes, or `None` if there is no index.
fn copy_with_time(from: &Path, to: &Path) -> Result<Option<Digest>, GitError> {
    if !from.is_file() {
        return Ok(None);
    }
    let copy = || {
        let mut source = fs::File::open(from)?;
        let time = source.metadata()?.modified()?;
        let mut target = fs::File::create(to)?;
        let digest = hash(&mut source, &mut target)?;
        target.set_modified(time)?;
        Ok(digest)
    };
    copy().map(Some).map_err(io_error("copy", from))
}

/// Whether an index holds exactly this tree. Intent-to-add entries count as a difference.
fn holds_only(call: Call<'_>, tree: &str) -> Result<bool, GitError> {
    let args = [
        "diff-index",
        "--cached",
        "--quiet",
        "--ita-visible-in-index",
    ];
    let output = call.args(args).args(["--ignore-submodules=none", tree]);
    Ok(output.status()?.status == Some(0))
}

fn shared_indexes(git_dir: &Path) -> Result<Vec<std::ffi::OsString>, GitError> {
    let entries = fs::read_dir(git_dir).map_err(io_error("read", git_dir))?;
    let names = entries.filter_map(|entry| entry.ok().map(|entry| entry.file_name()));
    Ok(names
        .filter(|name| name.as_bytes().starts_with(b"sharedindex."))
        .collect())
}

/// Clears assume-unchanged bits, which hide changes, and skip-worktree bits unless a sparse checkout needs
/// them. Returns whether there were any.
fn clear_flags(real: &Real, root: &Path, sparse: bool, read: &IndexRead) -> Result<bool, GitError> {
    let skipped: &[Vec<u8>] = if sparse { &[] } else { &read.skipped };
    for (flag, paths) in [
        ("--no-assume-unchanged", read.assumed.as_slice()),
        ("--no-skip-worktree", skipped),
    ] {
        if !paths.is_empty() {
            let paths = nul_joined(paths.iter().map(Vec::as_slice));
            let call = private_call(real, root).args(["update-index", flag, "-z", "--stdin"]);
            call.stdin(paths).run()?;
        }
    }
    Ok(!read.assumed.is_empty() || !skipped.is_empty())
}

/// Copies the hooks and returns their path below `root`. For hooks inside the work tree, their parent
/// directory is copied too, because such scripts use files beside it (`$(dirname "$0")/..`).
fn copy_hooks(real: &Real, root: &Path, settings: &Settings) -> Result<Option<Vec<u8>>, GitError> {
    let configured = settings.path(real, "core.hookspath")?;
    let hooks = match configured {
        Some(path) => real.work_tree.join(as_path(&path)),
        None => real.common_dir.join("hooks"),
    };
    let Ok(hooks) = fs::canonicalize(&hooks) else {
        return Ok(None);
    };
    if holds_only_samples(&hooks) {
        return Ok(None);
    }
    if real.work_tree.starts_with(&hooks) {
        return Err(GitError::Private {
            path: hooks,
            why: "core.hooksPath is the work tree itself; give the hooks a directory".to_owned(),
        });
    }
    let parent = hooks.parent().filter(|parent| {
        **parent != real.work_tree
            && parent.starts_with(&real.work_tree)
            && !parent.starts_with(&real.common_dir)
    });
    let copied = parent.unwrap_or(&hooks);
    let top = Path::new("hooks").join(copied.file_name().unwrap_or_default());
    copy_tree(copied, &root.join(&top))?;
    let below = hooks.strip_prefix(copied).unwrap_or(Path::new(""));
    Ok(Some(top.join(below).into_os_string().into_vec()))
}

/// Whether this is a directory with nothing but the samples that `git init` puts there, which git never runs.
fn holds_only_samples(hooks: &Path) -> bool {
    let is_sample = |name: &OsStr| name.as_bytes().ends_with(b".sample");
    fs::read_dir(hooks).is_ok_and(|mut entries| {
        entries.all(|entry| entry.is_ok_and(|entry| is_sample(&entry.file_name())))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_no_hooks() {
        let dir = tempfile::tempdir().unwrap();
        assert!(holds_only_samples(dir.path()));
        fs::write(dir.path().join("pre-commit.sample"), "").unwrap();
        assert!(holds_only_samples(dir.path()));
        fs::write(dir.path().join("helper"), "").unwrap();
        assert!(!holds_only_samples(dir.path()));
        assert!(!holds_only_samples(Path::new("/dev/null")));
    }
}
