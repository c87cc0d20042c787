//! The state of the repository for a person who asks before a run. Nothing is written, not even a refreshed
//! index.

use crate::domain::outcomes::HistoryCommit;
use crate::domain::snapshot::RevId;
use crate::git::bytes::{as_path, display_path, nul_fields, nul_paths};
use crate::git::command::{Call, GitProgram};
use crate::git::commit::request::Identity;
use crate::git::discover::QUERY_TIMEOUT;
use crate::git::error::Result;
use crate::git::files::is_there;
use crate::git::private::config::{Settings, has_filters, has_lfs, lfs_storage, start_call};
use crate::git::real::{Environment, Real};
use crate::git::snapshot::index_list::{Layout, read_index};
use crate::plain_file;
use crate::sandbox::Policy;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Maximum number of bytes that are read from an attributes file.
const ATTRIBUTES_LIMIT: u64 = 1 << 20;

/// The git program and its version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitVersion {
    /// The program.
    pub program: PathBuf,
    /// For example `2.47.3`.
    pub version: String,
}

/// The git program that a run in `start` would use, or `None` if none runs.
pub fn git_version(start: &Path, environment: &Environment) -> Option<GitVersion> {
    let top = start.ancestors().find(|dir| is_there(&dir.join(".git")));
    let search_path = environment.get("PATH").unwrap_or_default();
    let git = GitProgram::find("git", search_path, top.unwrap_or(start))?;
    let call = git.call(Path::new("/")).timeout(QUERY_TIMEOUT);
    let line = call.words("--version").line().ok()?;
    let version = line.trim_start_matches("git version ").to_owned();
    let program = git.program;
    Some(GitVersion { program, version })
}

/// The checked-out commit and branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkout {
    /// The branch, or `None` for a detached HEAD.
    pub branch: Option<String>,
    /// The commit, or `None` before the first commit.
    pub commit: Option<RevId>,
    /// The full names of the first few refs that point to that commit.
    pub refs: Vec<String>,
    /// The number of available commits in a shallow clone, or `None` for a complete one.
    pub depth: Option<u64>,
}

/// Differences from HEAD. Paths are formatted for display.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UncommittedChanges {
    /// Tracked files with changes, staged or not.
    pub changed: Vec<String>,
    /// Untracked files that are not ignored.
    pub untracked: Vec<String>,
}

/// Submodules, and files that git-lfs stores.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Nested {
    /// The number of submodules in this checkout.
    pub submodules: usize,
    /// The number of submodules that are not checked out.
    pub absent: usize,
    /// Whether git-lfs stores files of the repository.
    pub lfs: bool,
    /// Whether git's configuration has the git-lfs filter.
    pub lfs_ready: bool,
}

/// A command that reads the repository with the user's own configuration, before any foreign code has run in
/// it.
fn query(real: &Real) -> Call<'_> {
    let call = start_call(real).env("GIT_OPTIONAL_LOCKS", "0");
    call.words("-c core.fsmonitor=false -c core.quotePath=false")
}

/// How a command is confined that compares files with the index, and so starts filters: one may be a file of the work
/// tree that the agent of an earlier run has changed. `None` if there are no filters.
fn filter_policy(real: &Real) -> Result<Option<Policy>> {
    let settings = Settings::read(real)?;
    let policy = real.filters.policy.clone();
    Ok(policy.filter(|_| has_filters(&settings)).map(|policy| {
        let storage = has_lfs(real, &settings).then(|| lfs_storage(real, &settings));
        policy.and_write(storage)
    }))
}

/// The committer identity in git's configuration, if there is one.
///
/// # Errors
/// If the configuration cannot be read.
pub fn identity_of(real: &Real) -> Result<Option<Identity>> {
    let settings = Settings::read(real)?;
    let identity = settings.text("user.name").zip(settings.text("user.email"));
    Ok(identity.map(|(name, email)| Identity { name, email }))
}

/// The checked-out commit and the depth of the history.
///
/// # Errors
/// If git fails.
pub fn checkout(real: &Real) -> Result<Checkout> {
    let branch = real.branch_of_head()?;
    let commit = real.head_commit()?.map(RevId);
    let mut checkout = Checkout {
        branch,
        commit,
        refs: Vec::new(),
        depth: None,
    };
    if let Some(at) = &checkout.commit {
        let call = query(real).words("for-each-ref --count=10 --format=%(refname)");
        let refs = call.arg(format!("--points-at={}", at.0)).stdout()?;
        checkout.refs = String::from_utf8_lossy(&refs)
            .lines()
            .map(str::to_owned)
            .collect();
        if query(real)
            .words("rev-parse --is-shallow-repository")
            .line()?
            == "true"
        {
            let counted = query(real).words("rev-list --count HEAD").line()?;
            checkout.depth = Some(counted.parse().unwrap_or_default());
        }
    }
    Ok(checkout)
}

/// The differences of the index and the work tree from HEAD. A submodule differs only if its commit does.
///
/// # Errors
/// If git fails.
pub fn uncommitted_changes(real: &Real) -> Result<UncommittedChanges> {
    let args = "status --porcelain=v1 -z --no-renames --untracked-files=normal
        --ignore-submodules=dirty";
    let call = query(real).watching(real.roots()).words(args);
    let output = call.confined(filter_policy(real)?).run()?;
    let mut changes = UncommittedChanges::default();
    for entry in output.stdout.split(|byte| *byte == 0) {
        let Some((state, path)) = entry.split_at_checked(3) else {
            continue;
        };
        let path = display_path(path);
        match state {
            b"?? " => changes.untracked.push(path),
            _ => changes.changed.push(path),
        }
    }
    Ok(changes)
}

/// The untracked files that are not ignored, each with its own path.
///
/// # Errors
/// If git fails.
pub fn untracked_files(real: &Real) -> Result<BTreeSet<Vec<u8>>> {
    let call = query(real).watching(real.roots());
    Ok(nul_paths(
        &call
            .words("ls-files --others --exclude-standard -z")
            .stdout()?,
    ))
}

/// The paths that a fresh checkout has, down to two levels: `web/src` for `web/src/app.js`. Those of tracked
/// files, and before the first commit those of all files that are not ignored. A path that is not UTF-8 is
/// omitted.
///
/// # Errors
/// If git fails.
pub fn upper_paths(real: &Real) -> Result<BTreeSet<String>> {
    let kinds = match real.head_commit()? {
        Some(_) => "ls-files -z --cached",
        None => "ls-files -z --cached --others --exclude-standard",
    };
    let listed = query(real).watching(real.roots()).words(kinds).stdout()?;
    let paths = nul_fields(&listed).filter_map(|path| std::str::from_utf8(path).ok());
    let upper = paths.map(|path| {
        let below = path.match_indices('/').nth(1);
        path[..below.map_or(path.len(), |(at, _)| at)].to_owned()
    });
    Ok(upper.collect())
}

/// The branch that finished work is merged into: the remote's default branch, otherwise the checked-out one.
///
/// # Errors
/// If git fails.
pub fn merge_target(real: &Real) -> Result<String> {
    for name in ["refs/remotes/origin/HEAD", "HEAD"] {
        let symbolic = query(real).words("symbolic-ref --quiet").arg(name);
        if let Some(name) = symbolic.answer()? {
            return Ok(name);
        }
    }
    Ok("HEAD".to_owned())
}

/// The commits of all branches and tags since a time whose messages contain one of these texts, newest first.
///
/// # Errors
/// If git fails, or there is no such branch.
pub fn history(
    real: &Real,
    since: &str,
    branch: &str,
    texts: &[&str],
) -> Result<Vec<HistoryCommit>> {
    let log = |format: &str| {
        let texts = texts.iter().map(|text| format!("--grep={text}"));
        let call = query(real).words("log -z --fixed-strings --no-show-signature");
        call.args([format!("--format={format}"), format!("--since={since}")])
            .args(texts)
    };
    let merged = log("%H").args(["--end-of-options", branch, "--"]).run()?;
    let merged = String::from_utf8_lossy(&merged.stdout).into_owned();
    let merged: BTreeSet<&str> = merged.split('\0').collect();
    let all = log("%H%n%B").words("--branches --tags --remotes HEAD --");
    let all = String::from_utf8_lossy(&all.stdout()?).into_owned();
    let commit = |record: &str| {
        let (id, message) = record.split_once('\n')?;
        Some(HistoryCommit {
            id: id.to_owned(),
            message: message.to_owned(),
            is_merged: merged.contains(id),
        })
    };
    Ok(all.split('\0').filter_map(commit).collect())
}

/// The submodules and the use of git-lfs.
///
/// # Errors
/// If git fails.
pub fn nested(real: &Real) -> Result<Nested> {
    let layout = read_index(query(real))?.layout;
    let dot_git = |path: &Vec<u8>| real.work_tree.join(as_path(path)).join(".git");
    let absent = layout
        .gitlinks
        .keys()
        .filter(|path| !is_there(&dot_git(path)));
    let settings = Settings::read(real)?;
    let mut filters = ["filter.lfs.clean", "filter.lfs.process"].iter();
    let lfs_ready = filters.any(|key| settings.last(key).is_some());
    Ok(Nested {
        submodules: layout.gitlinks.len(),
        absent: absent.count(),
        lfs: uses_lfs(real, &layout),
        lfs_ready,
    })
}

fn uses_lfs(real: &Real, layout: &Layout) -> bool {
    layout.attribute_files.iter().any(|path| {
        let text = plain_file::read(&real.work_tree.join(as_path(path)), ATTRIBUTES_LIMIT);
        let text = String::from_utf8_lossy(&text.unwrap_or_default()).into_owned();
        text.split_whitespace().any(|word| word == "filter=lfs")
    })
}
