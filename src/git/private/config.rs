//! git's configuration at the start of the run, and the settings that the private directory adopts.

use crate::git::bytes::{as_path, nul_fields};
use crate::git::command::Call;
use crate::git::discover::QUERY_TIMEOUT;
use crate::git::error::Result;
use crate::git::files::{is_there, write};
use crate::git::real::Real;
use crate::git::snapshot::index_list::Layout;
use crate::plain_file;
use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::path::{Component, Path, PathBuf};

/// One value of git's configuration. `value` is `None` for a key without a value, which means true.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Setting {
    pub(crate) key: Vec<u8>,
    pub(crate) value: Option<Vec<u8>>,
}

/// Every value that git would use in the repository, of all scopes. Later values override earlier ones.
#[derive(Debug, Default)]
pub(crate) struct Settings(pub(crate) Vec<Setting>);

/// Exact keys that decide what a file's content means or how a commit is made. None of them names a program
/// that git runs; `programs.rs` has those that do.
const TAKEN_KEYS: &str = "
    core.autocrlf core.eol core.safecrlf core.filemode core.ignorecase core.precomposeunicode core.symlinks
    core.protecthfs core.protectntfs core.checkroundtripencoding core.sparsecheckout core.sparsecheckoutcone
    commit.gpgsign user.signingkey";
const TAKEN_SECTIONS: &[&str] = &["user.", "author.", "committer.", "lfs."];

impl Settings {
    /// Reads the configuration of `real` with the environment in which Sprag was started.
    pub(crate) fn read(real: &Real) -> Result<Self> {
        let listed = start_call(real)
            .words("config --list -z --includes")
            .stdout()?;
        Ok(Self(nul_fields(&listed).map(parse_setting).collect()))
    }

    /// The last value of `key`, which must be in lower case.
    pub(crate) fn last(&self, key: &str) -> Option<&Setting> {
        let mut all = self.0.iter().rev();
        all.find(|setting| setting.key == key.as_bytes())
    }

    pub(crate) fn text(&self, key: &str) -> Option<String> {
        let value = self.last(key)?.value.as_deref()?;
        Some(String::from_utf8_lossy(value).into_owned())
    }

    pub(crate) fn is_true(&self, key: &str, default: bool) -> bool {
        let Some(setting) = self.last(key) else {
            return default;
        };
        let value = setting.value.as_deref().unwrap_or(b"true");
        let value = String::from_utf8_lossy(value).to_ascii_lowercase();
        let number = value.parse::<i64>();
        number.is_ok_and(|number| number != 0) || ["true", "yes", "on"].contains(&&*value)
    }

    /// A value of `key` as a path. git expands a leading `~`, and is run only if there is one.
    pub(crate) fn path(&self, real: &Real, key: &str) -> Result<Option<Vec<u8>>> {
        if self.last(key).is_none() {
            return Ok(None);
        }
        let call = start_call(real)
            .words("config -z --includes --type=path --get")
            .arg(key);
        let output = call.status()?;
        let path = output
            .stdout
            .strip_suffix(b"\0")
            .filter(|path| !path.is_empty());
        Ok(path.filter(|_| output.is_success()).map(<[u8]>::to_vec))
    }

    /// The settings that the private git directory adopts.
    pub(crate) fn taken_over(&self) -> impl Iterator<Item = &Setting> {
        self.0.iter().filter(|setting| is_taken_over(&setting.key))
    }
}

/// The files of the work tree that the configuration includes, whether they are there or not.
pub(crate) fn included(real: &Real, settings: &Settings) -> Result<Vec<PathBuf>> {
    let includes = |key: &[u8]| key.starts_with(b"include.") || key.starts_with(b"includeif.");
    if !settings.0.iter().any(|setting| includes(&setting.key)) {
        return Ok(Vec::new());
    }
    let args = "config --list --show-origin -z --includes";
    let listed = start_call(real).words(args).stdout()?;
    let fields: Vec<&[u8]> = listed.split(|byte| *byte == 0).collect();
    let file = |pair: &[&[u8]]| {
        let [origin, setting] = [*pair.first()?, *pair.get(1)?];
        let Setting { key, value } = parse_setting(setting);
        let value = value.filter(|value| includes(&key) && !value.starts_with(b"~"))?;
        let origin = real.work_tree.join(as_path(origin.strip_prefix(b"file:")?));
        Some(without_dots(&origin.parent()?.join(as_path(&value))))
    };
    let mut files: Vec<PathBuf> = fields.chunks(2).filter_map(file).collect();
    files.retain(|file| file.starts_with(&real.work_tree));
    Ok(files)
}

/// A command in the real repository with the user's own configuration. Use it only for `git config` and for
/// queries outside of a run, and only before the first turn.
pub(crate) fn start_call(real: &Real) -> Call<'_> {
    let call = real.git.call(&real.work_tree);
    real.environment
        .with_user(call)
        .env("GIT_DIR", &real.git_dir)
        .env("GIT_WORK_TREE", &real.work_tree)
        .watching(real.roots())
        .timeout(QUERY_TIMEOUT)
}

pub(crate) fn parse_setting(entry: &[u8]) -> Setting {
    let mut parts = entry.splitn(2, |byte| *byte == b'\n').map(<[u8]>::to_vec);
    Setting {
        key: parts.next().unwrap_or_default(),
        value: parts.next(),
    }
}

fn is_taken_over(key: &[u8]) -> bool {
    let is = |wanted: &str| key == wanted.as_bytes();
    let is_below = |section: &&str| key.starts_with(section.as_bytes());
    TAKEN_KEYS.split_whitespace().any(is) || TAKEN_SECTIONS.iter().any(is_below)
}

/// Formats `settings` as a configuration file, in order.
pub(crate) fn render<'a>(settings: impl IntoIterator<Item = &'a Setting>) -> Vec<u8> {
    let mut text = Vec::new();
    for setting in settings {
        let Some(first) = setting.key.iter().position(|byte| *byte == b'.') else {
            continue;
        };
        let last = setting
            .key
            .iter()
            .rposition(|byte| *byte == b'.')
            .unwrap_or(first);
        text.push(b'[');
        text.extend_from_slice(&setting.key[..first]);
        if last > first {
            let name = escaped(&setting.key[first + 1..last]);
            text.extend([b" \"", name.as_slice(), b"\""].concat());
        }
        text.extend([b"]\n\t", &setting.key[last + 1..]].concat());
        if let Some(value) = &setting.value {
            text.extend([b" = \"", escaped(value).as_slice(), b"\""].concat());
        }
        text.push(b'\n');
    }
    text
}

/// Bytes as they are written between quotes.
pub(crate) fn escaped(bytes: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(bytes.len());
    for byte in bytes {
        match byte {
            b'"' | b'\\' => text.extend([b'\\', *byte]),
            b'\n' => text.extend(b"\\n"),
            b'\t' => text.extend(b"\\t"),
            _ => text.push(*byte),
        }
    }
    text
}

pub(crate) fn setting(key: &str, value: impl Into<Vec<u8>>) -> Setting {
    Setting {
        key: key.as_bytes().to_vec(),
        value: Some(value.into()),
    }
}

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
pub(crate) fn write_programs(root: &Path, settings: &Settings) -> Result<()> {
    let of = |section: &'static [u8]| {
        let is_of_it = move |one: &&Setting| one.key.starts_with(section);
        render(settings.0.iter().filter(is_of_it))
    };
    write(&filters_file(root), &of(FILTER))?;
    write(&signing_file(root), &of(SIGNING))
}

/// The commands of all filters, by the last value of each variable.
fn filter_commands(settings: &Settings) -> impl Iterator<Item = &[u8]> {
    let is_command = |one: &&Setting| {
        one.key.starts_with(FILTER) && COMMANDS.iter().any(|name| one.key.ends_with(name))
    };
    let commands = settings.0.iter().filter(is_command);
    let last: BTreeMap<&[u8], Option<&[u8]>> = commands
        .map(|one| (one.key.as_slice(), one.value.as_deref()))
        .collect();
    last.into_values()
        .flatten()
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
        let command = set("process").or_else(|| set("clean")).unwrap_or_default();
        command
            .split_whitespace()
            .next()
            .is_none_or(|program| !is_found(real, program))
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
        .and_then(|one| one.value.as_deref());
    let set = set.filter(|path| !path.is_empty()).unwrap_or(b"lfs");
    real.common_dir.join(as_path(set))
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
    let further = match format.as_str() {
        "openpgp" => Some("gpg.program"),
        "ssh" => Some("gpg.ssh.defaultkeycommand"),
        _ => None,
    };
    let keys = [
        Some(format!("gpg.{format}.program")),
        further.map(str::to_owned),
    ];
    let keys = keys.iter().flatten();
    let values = keys.filter_map(|key| settings.last(key)?.value.as_deref());
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
    let path = real.work_tree.join(as_path(&word));
    if !word.contains(&b'/') && !is_there(&path) {
        return None;
    }
    let places = [Some(without_dots(&path)), path.canonicalize().ok()];
    places
        .into_iter()
        .flatten()
        .find(|path| real.contains(path))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_gives_content_its_meaning_is_taken_over() {
        let taken = [
            "core.autocrlf",
            "commit.gpgsign",
            "user.name",
            "user.signingkey",
            "lfs.url",
        ];
        let left = [
            "core.fsmonitor",
            "core.hookspath",
            "diff.external",
            "core.worktree",
            "alias.x",
            "core.pager",
            "core.sshcommand",
            "core.checkstat",
            "include.path",
            "url.a.insteadof",
            "core.excludesfile",
            "credential.helper",
            "diff.x.textconv",
            "filter.lfs.clean",
            "filter.x.required",
            "gpg.program",
            "gpg.ssh.defaultkeycommand",
        ];
        assert!(taken.iter().all(|key| is_taken_over(key.as_bytes())));
        assert_eq!(left.iter().find(|key| is_taken_over(key.as_bytes())), None);
    }

    #[test]
    fn values_are_quoted_so_that_they_cannot_end_their_line() {
        let settings = [
            setting("filter.a.\"b\\.clean", "x \"y\"\n[core]\n#;\\"),
            Setting {
                key: b"user.useconfigonly".to_vec(),
                value: None,
            },
        ];
        let text = String::from_utf8(render(&settings)).unwrap();
        assert_eq!(
            text,
            "[filter \"a.\\\"b\\\\\"]\n\tclean = \"x \\\"y\\\"\\n[core]\\n#;\\\\\"\n[user]\n\tuseconfigonly\n"
        );
    }

    #[test]
    fn booleans_are_read_as_git_reads_them() {
        let of = |value: Option<&str>| {
            let value = value.map(|text| text.as_bytes().to_vec());
            Settings(vec![Setting {
                key: b"a.b".to_vec(),
                value,
            }])
            .is_true("a.b", false)
        };
        assert_eq!(
            [
                of(None),
                of(Some("TRUE")),
                of(Some("yes")),
                of(Some("1")),
                of(Some("off")),
                of(Some("")),
                of(Some("0"))
            ],
            [true, true, true, true, false, false, false]
        );
        assert!(Settings::default().is_true("a.b", true));
    }
}
