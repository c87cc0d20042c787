//! The programs that git's configuration named at the start of the run: filters, and programs that sign.
//!
//! The configuration of the private directory names no program. The settings that do are in files of
//! their own, which only those git processes are given that have to run the programs.

use crate::git::bytes::as_path;
use crate::git::command::Call;
use crate::git::error::GitError;
use crate::git::files::write;
use crate::git::private::config::{Setting, Settings, render};
use crate::git::real::Real;
use crate::git::snapshot::index_list::Layout;
use crate::plain_file;
use std::collections::BTreeSet;
use std::env;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Component, Path, PathBuf};

/// The largest file of attributes that is read, in bytes.
const ATTRIBUTES_LIMIT: u64 = 1 << 20;

/// The sections that name programs.
const FILTER: &[u8] = b"filter.";
const SIGNING: &[u8] = b"gpg.";

/// The section of the filter that git-lfs installs.
const LFS: &[u8] = b"filter.lfs.";

/// The directory of the files with their settings, relative to the private directory.
pub(crate) const PROGRAMS: &str = "programs";

/// The variables of a filter that name a program.
const COMMANDS: [&[u8]; 3] = [b".clean", b".smudge", b".process"];

/// The file with the settings of the filters.
pub(crate) fn filters_file(root: &Path) -> PathBuf {
    root.join(PROGRAMS).join("filters")
}

/// The file with the settings for signing.
pub(crate) fn signing_file(root: &Path) -> PathBuf {
    root.join(PROGRAMS).join("signing")
}

/// Makes a command read one of the two files, too.
pub(crate) fn with_configuration<'a>(call: Call<'a>, file: &Path) -> Call<'a> {
    call.with_settings(&[("include.path", file.as_os_str())])
}

/// Writes both files.
pub(crate) fn write_programs(root: &Path, settings: &Settings) -> Result<(), GitError> {
    let of = |section: &'static [u8]| {
        let is_of_it = move |one: &&Setting| one.key.starts_with(section);
        render(settings.0.iter().filter(is_of_it))
    };
    write(&filters_file(root), &of(FILTER))?;
    write(&signing_file(root), &of(SIGNING))
}

/// The commands of all filters, by the last value of each variable.
fn filter_commands(settings: &Settings) -> impl Iterator<Item = &[u8]> {
    let is_last = |at: usize, one: &Setting| {
        let mut later = settings.0.iter().skip(at + 1);
        !later.any(|other| other.key == one.key)
    };
    let is_command = |one: &Setting| {
        one.key.starts_with(FILTER) && COMMANDS.iter().any(|name| one.key.ends_with(name))
    };
    let all = settings.0.iter().enumerate();
    let last = all.filter(move |(at, one)| is_command(one) && is_last(*at, one));
    last.filter_map(|(_, one)| one.value.as_deref())
        .filter(|command| !command.is_empty())
}

/// The filters that the attributes of the checkout name and that no configured program implements: git commits their
/// files as they are, or not at all.
pub(super) fn lost_filters(real: &Real, layout: &Layout, settings: &Settings) -> Vec<String> {
    let mut named = BTreeSet::new();
    for path in &layout.attribute_files {
        let text = plain_file::read(&real.work_tree.join(as_path(path)), ATTRIBUTES_LIMIT);
        let text = String::from_utf8_lossy(&text.unwrap_or_default()).into_owned();
        let words = text.split_whitespace();
        named.extend(words.filter_map(|word| Some(word.strip_prefix("filter=")?.to_owned())));
    }
    named.retain(|name| {
        let set = |command: &str| settings.text(&format!("filter.{name}.{command}"));
        let program = set("process").or_else(|| set("clean"));
        let program =
            program.and_then(|command| Some(command.split_whitespace().next()?.to_owned()));
        program.is_none_or(|program| !is_found(real, &program))
    });
    named.into_iter().collect()
}

/// Whether a program can be started from the work tree.
fn is_found(real: &Real, program: &str) -> bool {
    let path = real.environment.get("PATH").unwrap_or_default();
    let is_a_path = program.contains(['/', '$', '"', '\'']);
    is_a_path || env::split_paths(path).any(|dir| dir.join(program).is_file())
}

/// Whether any filter is configured.
pub(crate) fn has_filters(settings: &Settings) -> bool {
    filter_commands(settings).next().is_some()
}

/// The directory in which git-lfs keeps contents: in the repository, where the next checkout looks for them.
pub(crate) fn lfs_storage(real: &Real, settings: &Settings) -> PathBuf {
    let set = settings
        .last("lfs.storage")
        .and_then(|one| one.value.clone())
        .map(|value| PathBuf::from(std::ffi::OsString::from_vec(value)));
    real.common_dir.join(
        set.filter(|path| !path.as_os_str().is_empty())
            .unwrap_or("lfs".into()),
    )
}

/// Whether a filter may be git-lfs: it is called so, its command names it, or there are contents that it keeps. Its
/// command can also be a script that starts it.
pub(crate) fn has_lfs(real: &Real, settings: &Settings) -> bool {
    let is_called_so = |one: &Setting| one.key.starts_with(LFS);
    let names_it = |command: &[u8]| {
        let mut names = [b"git-lfs", b"git lfs"].iter();
        names.any(|name| memchr::memmem::find(command, *name).is_some())
    };
    has_filters(settings)
        && (settings.0.iter().any(is_called_so)
            || filter_commands(settings).any(names_it)
            || lfs_storage(real, settings).is_dir())
}

/// A program in the work tree or a git directory that signing would execute, or a file there that it would
/// hand to a program. An agent can change it.
pub(crate) fn signer_in_repository(real: &Real, settings: &Settings) -> Option<PathBuf> {
    let format = settings.text("gpg.format").unwrap_or("openpgp".into());
    let keys = [
        format!("gpg.{format}.program"),
        "gpg.program".into(),
        "gpg.ssh.defaultkeycommand".into(),
    ];
    let is_used = |key: &&String| match key.as_str() {
        "gpg.program" => format == "openpgp",
        "gpg.ssh.defaultkeycommand" => format == "ssh",
        _ => true,
    };
    let values = keys
        .iter()
        .filter(is_used)
        .filter_map(|key| settings.last(key)?.value.as_deref());
    let mut words = values.flat_map(|value| value.split(u8::is_ascii_whitespace));
    words.find_map(|word| in_repository(real, word))
}

/// The path that a word names, if that is in the repository. A word without a slash is searched in `PATH`,
/// which has no directory of the work tree, unless a file of this name is at the top of the work tree.
fn in_repository(real: &Real, word: &[u8]) -> Option<PathBuf> {
    let quotes = |byte: &u8| matches!(byte, b'"' | b'\'');
    let word: Vec<u8> = word.iter().copied().filter(|byte| !quotes(byte)).collect();
    if word.is_empty() {
        return None;
    }
    let path = real.work_tree.join(std::ffi::OsStr::from_bytes(&word));
    let is_path = word.contains(&b'/') || path.symlink_metadata().is_ok();
    let mut found = [Some(without_dots(&path)), path.canonicalize().ok()]
        .into_iter()
        .flatten();
    found.find(|path| is_path && real.contains(path))
}

fn without_dots(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain
}
