//! What the private directory takes from the repository: its configuration, rules, hooks and alternates.

use crate::git::bytes::{as_path, real_path};
use crate::git::error::{GitError, Result};
use crate::git::files::{
    copy_content, copy_tree, is_there, make_dir, names, read, remove, write, write_atomically,
};
use crate::git::private::calls::{git_dir, real_call};
use crate::git::private::config::{
    PROGRAMS, Settings, escaped, has_filters, has_lfs, lfs_storage, render, setting,
    signer_in_repository, write_programs,
};
use crate::git::real::Real;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// The state that must survive a restart.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct State {
    pub(super) version: u32,
    /// Digest of the repository's paths, so that the directory is never used with another repository.
    pub(super) repository: String,
    /// The commit that changes are compared with, or `None` before the first commit.
    pub(crate) base: Option<String>,
    /// Its tree, or the empty tree before the first commit.
    pub(crate) base_tree: String,
    /// The branch that was checked out at the start.
    pub(crate) branch: Option<String>,
    pub(crate) file_mode: bool,
    /// Whether the executable bits of the work tree are those of the index although `core.fileMode` is off, so that
    /// they count all the same.
    #[serde(default)]
    pub(super) are_modes_kept: bool,
    pub(crate) sign: bool,
    /// Whether git may convert files even without a `.gitattributes` file.
    pub(crate) converts: bool,
    pub(crate) identity: Option<(String, String)>,
    /// Parts of the repository's git directory that were links at the start.
    pub(crate) links: Vec<Vec<u8>>,
    /// Further places of it that lead elsewhere.
    #[serde(default)]
    pub(crate) links_below: BTreeSet<Vec<u8>>,
    /// Whether a filter was configured at the start.
    pub(crate) filters: bool,
    /// Filters that attributes name and that are not set up.
    #[serde(default)]
    pub(crate) lost_filters: Vec<String>,
    /// Where git-lfs keeps contents, if it is one of the filters.
    pub(crate) lfs_storage: Option<Vec<u8>>,
    /// A file of the repository that signing would execute.
    pub(crate) signer: Option<Vec<u8>>,
    /// What git's configuration names in the work tree as configuration or hooks and is tracked.
    #[serde(default)]
    pub(crate) named: Vec<Vec<u8>>,
    /// The copied hooks, relative to the private directory's root.
    pub(super) hooks: Option<Vec<u8>>,
    /// Whether a process that took a changed configuration over has not finished that.
    #[serde(default)]
    pub(crate) is_partial: bool,
}

impl State {
    /// Takes what the run needs of the repository besides its commits and hooks, and of the files with rules only
    /// those that the function names.
    pub(super) fn adopt(
        &mut self,
        real: &Real,
        root: &Path,
        settings: &Settings,
        with_jj: bool,
        is_taken: &dyn Fn(&Path) -> bool,
    ) -> Result<()> {
        self.file_mode = self.are_modes_kept || settings.is_true("core.filemode", true);
        init(real, root, settings, self.file_mode)?;
        copy_rules(real, root, settings, with_jj, is_taken)?;
        write_alternates(real, root)?;
        let bytes = |path: PathBuf| path.into_os_string().into_vec();
        self.sign = settings.is_true("commit.gpgsign", false);
        self.converts = converts(root, settings);
        self.identity = settings.text("user.name").zip(settings.text("user.email"));
        self.filters = has_filters(settings);
        let storage = has_lfs(real, settings).then(|| bytes(lfs_storage(real, settings)));
        self.lfs_storage = storage;
        self.signer = signer_in_repository(real, settings).map(bytes);
        Ok(())
    }
}

/// Quotes the path of an alternate in C style if it could otherwise be misread.
fn quoted_if_needed(path: &[u8]) -> Vec<u8> {
    if !path
        .iter()
        .any(|byte| matches!(byte, b'"' | b'\n' | b'\\' | b'#'))
    {
        return path.to_vec();
    }
    [b"\"", escaped(path).as_slice(), b"\""].concat()
}

fn converts(root: &Path, settings: &Settings) -> bool {
    let info = git_dir(root).join("info");
    let has = |name: &str| info.join(name).metadata().is_ok_and(|meta| meta.len() > 0);
    let mut keys = ["core.autocrlf", "core.eol"].into_iter();
    let is_configured = keys.any(|key| settings.last(key).is_some());
    is_configured || has("attributes") || has("global-attributes")
}

/// Whether the file system takes names in other letter case for the same. The configuration of a repository that was
/// copied from another machine may be wrong about it, and git then overlooks files. git asks in the same way, and is
/// deceived by a file that really has the other name.
fn ignores_case(real: &Real) -> bool {
    let other = "CoNfIg";
    let is_listed = || names(&real.common_dir).is_ok_and(|names| names.contains(&other.into()));
    is_there(&real.common_dir.join(other)) && !is_listed()
}

/// Whether git's configuration says that executable bits do not count, and those of all files in the work tree are
/// as in the index nevertheless. The checks see these bits, and a fresh checkout has those of the commit.
pub(super) fn are_modes_kept(real: &Real, root: &Path, settings: &Settings) -> Result<bool> {
    if settings.is_true("core.filemode", true) {
        return Ok(false);
    }
    let call = real_call(real, root).words("-c core.fileMode=true diff-files --raw");
    let listed = call.stdout()?;
    let is_same = |line: &[u8]| {
        let mut modes = line.split(|byte| matches!(byte, b' ' | b':'));
        let modes = (modes.nth(1), modes.next());
        !matches!(
            modes,
            (Some(b"100644"), Some(b"100755")) | (Some(b"100755"), Some(b"100644"))
        )
    };
    Ok(listed.split(|byte| *byte == b'\n').all(is_same))
}

/// Creates the directories and the configuration that, with a HEAD, make a git directory (gitrepository-layout(5)).
/// Created without `git init`, it always keeps its refs in files, whatever git's default is.
fn init(real: &Real, root: &Path, settings: &Settings, file_mode: bool) -> Result<()> {
    let dir = git_dir(root);
    for name in ["info", "objects/info", "objects/pack", "refs/heads"] {
        make_dir(&dir.join(name))?;
    }
    let inside = |name: &str| root.join(name).into_os_string().into_vec();
    let is_sha1 = real.object_format == "sha1";
    let version = if is_sha1 { "0" } else { "1" };
    let mut lines = vec![
        setting("core.repositoryformatversion", version),
        setting("core.bare", "false"),
    ];
    if !is_sha1 {
        lines.push(setting(
            "extensions.objectformat",
            real.object_format.as_str(),
        ));
    }
    lines.extend(settings.taken_over().cloned());
    lines.push(setting("core.filemode", file_mode.to_string()));
    if settings.is_true("core.ignorecase", false) && !ignores_case(real) {
        lines.push(setting("core.ignorecase", "false"));
    }
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
        setting("index.sparse", "false"),
        setting("gc.auto", "0"),
    ]);
    let off = "fsmonitor untrackedcache splitindex commitgraph logallrefupdates".split(' ');
    lines.extend(off.map(|name| setting(&format!("core.{name}"), "false")));
    write(&dir.join("config"), &render(&lines))?;
    make_dir(&root.join(PROGRAMS))?;
    write_programs(root, settings)
}

/// Copies the ignore, attribute and sparse checkout rules from outside of the work tree.
fn copy_rules(
    real: &Real,
    root: &Path,
    settings: &Settings,
    with_jj: bool,
    is_taken: &dyn Fn(&Path) -> bool,
) -> Result<()> {
    let info = git_dir(root).join("info");
    let exclude = real.common_dir.join("info/exclude");
    if is_taken(&exclude) {
        copy_exclude(&exclude, &info.join("exclude"), with_jj)?;
    }
    let mut rules = vec![
        (real.common_dir.join("info/attributes"), "attributes"),
        (real.git_dir.join("info/sparse-checkout"), "sparse-checkout"),
    ];
    for (key, default, copy) in [
        ("core.excludesfile", "git/ignore", "global-exclude"),
        ("core.attributesfile", "git/attributes", "global-attributes"),
    ] {
        let configured = settings.path(real, key)?;
        let configured = configured.map(|path| real.work_tree.join(as_path(&path)));
        let file = configured.or_else(|| user_config_dir(real).map(|dir| dir.join(default)));
        rules.extend(file.map(|file| (file, copy)));
    }
    for (file, copy) in rules.into_iter().filter(|(file, _)| is_taken(file)) {
        remove(&info.join(copy))?;
        copy_content(&file, &info.join(copy))?;
    }
    Ok(())
}

fn user_config_dir(real: &Real) -> Option<PathBuf> {
    let variable = |name| real.environment.get(name).map(Path::new);
    let xdg = variable("XDG_CONFIG_HOME").filter(|dir| !dir.as_os_str().is_empty());
    let home = || variable("HOME").map(|home| home.join(".config"));
    xdg.map(Path::to_path_buf).or_else(home)
}

/// Makes an object store that reads also from another one.
pub(crate) fn make_object_store(objects: &Path, store: &Path) -> Result<()> {
    make_dir(&objects.join("info"))?;
    write_list_of_stores(objects, &[store.to_path_buf()])
}

/// Writes the stores from which another one reads, too.
fn write_list_of_stores(objects: &Path, stores: &[PathBuf]) -> Result<()> {
    let mut text = Vec::new();
    for store in stores {
        text.extend(quoted_if_needed(store.as_os_str().as_bytes()));
        text.push(b'\n');
    }
    write(&objects.join("info/alternates"), &text)
}

/// Writes the whole chain of alternates, because git follows relative ones only at the first level.
fn write_alternates(real: &Real, root: &Path) -> Result<()> {
    let mut chain = vec![real.common_dir.join("objects")];
    let mut next = 0;
    while next < chain.len() && chain.len() < 32 {
        let list = chain[next].join("info/alternates");
        let list = if list.is_file() {
            fs::read(&list).unwrap_or_default()
        } else {
            Vec::new()
        };
        for line in list.split(|byte| *byte == b'\n') {
            if line.is_empty() || line.starts_with(b"#") {
                continue;
            }
            let path = real_path(&chain[next].join(as_path(line)));
            if !chain.contains(&path) {
                chain.push(path);
            }
        }
        next += 1;
    }
    write_list_of_stores(&git_dir(root).join("objects"), &chain)
}

/// The directory of the hooks, which need not exist.
pub(crate) fn hooks(real: &Real, settings: &Settings) -> Result<PathBuf> {
    Ok(match settings.path(real, "core.hookspath")? {
        Some(path) => real.work_tree.join(as_path(&path)),
        None => real.common_dir.join("hooks"),
    })
}

/// Copies the hooks, if there are any, and returns their path below `root`. For hooks inside the work tree, their
/// parent directory is copied too, because such scripts use files beside it (`$(dirname "$0")/..`).
pub(super) fn copy_hooks(real: &Real, root: &Path, hooks: &Path) -> Result<Option<Vec<u8>>> {
    let hooks = fs::canonicalize(hooks).ok();
    let Some(hooks) = hooks.as_deref().filter(|hooks| !holds_only_samples(hooks)) else {
        return Ok(None);
    };
    if real.work_tree.starts_with(hooks) {
        let why = "core.hooksPath is the work tree itself; give the hooks a directory";
        return Err(GitError::private(hooks, why));
    }
    let parent = hooks.parent().filter(|parent| {
        **parent != real.work_tree
            && parent.starts_with(&real.work_tree)
            && !parent.starts_with(&real.common_dir)
    });
    let copied = parent.unwrap_or(hooks);
    let top = Path::new("hooks").join(copied.file_name().unwrap_or_default());
    copy_tree(copied, &root.join(&top))?;
    let below = hooks.strip_prefix(copied).unwrap_or(Path::new(""));
    Ok(Some(top.join(below).into_os_string().into_vec()))
}

/// Whether this is a directory with nothing but the samples that `git init` puts there, which git never runs.
fn holds_only_samples(hooks: &Path) -> bool {
    let is_sample = |name: &OsString| name.as_bytes().ends_with(b".sample");
    names(hooks).is_ok_and(|names| names.iter().all(is_sample))
}

/// The last rule of a private directory that was made beside a repository of jj.
const RULE_FOR_JJ: &[u8] = b"\n/.jj/\n";

/// Whether the repository of a private directory was one of jj too when the run began. The agent can make any
/// repository one, and jj obeys what it then configures.
pub(crate) fn started_with_jj(git_dir: &Path) -> bool {
    let rules = fs::read(git_dir.join("info/exclude")).unwrap_or_default();
    rules.ends_with(RULE_FOR_JJ)
}

/// Ignores one file of the work tree, unless it is tracked.
pub(crate) fn ignore(git_dir: &Path, path: &[u8]) -> Result<()> {
    let exclude = git_dir.join("info/exclude");
    let mut rules = rule_for(path);
    let others = fs::read(&exclude).unwrap_or_default();
    if others.starts_with(&rules) {
        return Ok(());
    }
    rules.extend(others);
    write(&exclude, &rules)
}

/// The ignore rule for exactly one path. No rule can name a path that contains a line break.
fn rule_for(path: &[u8]) -> Vec<u8> {
    if path.contains(&b'\n') {
        return Vec::new();
    }
    let is_special = |byte: &u8| b"\\*?[ ".contains(byte);
    let escape = |byte: &u8| is_special(byte).then_some(b'\\').into_iter().chain([*byte]);
    let escaped: Vec<u8> = path.iter().flat_map(escape).collect();
    [b"/", escaped.as_slice(), b"\n"].concat()
}

/// Copies a file of rules, if it exists, and with jj excludes jj's own directory, which is not part of the work,
/// whatever happens to jj's ignore file in it.
pub(crate) fn copy_exclude(from: &Path, to: &Path, with_jj: bool) -> Result<()> {
    let mut rules = if from.is_file() {
        read(from)?
    } else {
        Vec::new()
    };
    if !with_jj {
        return write(to, &rules);
    }
    rules.extend(RULE_FOR_JJ);
    // The last rule is the only record of jj.
    write_atomically(to, &rules)
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
