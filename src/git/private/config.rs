//! git's configuration at the start of the run, and the settings that the private directory adopts.

use crate::git::discover::QUERY_TIMEOUT;
use crate::git::error::GitError;
use crate::git::real::Real;

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
    pub(crate) fn read(real: &Real) -> Result<Self, GitError> {
        let output = start_call(real)
            .args(["config", "--list", "-z", "--includes"])
            .run()?;
        let settings = output
            .stdout
            .split(|byte| *byte == 0)
            .filter(|entry| !entry.is_empty());
        Ok(Self(settings.map(parse_setting).collect()))
    }

    /// The last value of `key`, which must be in lower case.
    pub(crate) fn last(&self, key: &str) -> Option<&Setting> {
        self.0
            .iter()
            .rev()
            .find(|setting| setting.key == key.as_bytes())
    }

    pub(crate) fn text(&self, key: &str) -> Option<String> {
        let value = self.last(key)?.value.as_deref()?;
        Some(String::from_utf8_lossy(value).into_owned())
    }

    pub(crate) fn is_true(&self, key: &str, default: bool) -> bool {
        match self.last(key) {
            None => default,
            Some(Setting { value: None, .. }) => true,
            Some(Setting {
                value: Some(value), ..
            }) => {
                let value = value.to_ascii_lowercase();
                let nonzero = std::str::from_utf8(&value)
                    .ok()
                    .and_then(|text| text.parse::<i64>().ok())
                    .is_some_and(|number| number != 0);
                nonzero || matches!(value.as_slice(), b"true" | b"yes" | b"on")
            }
        }
    }

    /// A value of `key` as a path. git expands a leading `~`, and is run only if there is one.
    pub(crate) fn path(&self, real: &Real, key: &str) -> Result<Option<Vec<u8>>, GitError> {
        if self.last(key).is_none() {
            return Ok(None);
        }
        let args = ["config", "-z", "--includes", "--type=path", "--get", key];
        let mut output = start_call(real).args(args).status()?;
        output
            .stdout
            .truncate(output.stdout.len().saturating_sub(1));
        Ok((output.status == Some(0) && !output.stdout.is_empty()).then_some(output.stdout))
    }

    /// The settings that the private git directory adopts.
    pub(crate) fn taken_over(&self) -> impl Iterator<Item = &Setting> {
        self.0.iter().filter(|setting| is_taken_over(&setting.key))
    }
}

/// A command in the real repository with the user's own configuration. Use it only for `git config` and for
/// queries outside of a run, and only before the first turn.
pub(crate) fn start_call(real: &Real) -> crate::git::command::Call<'_> {
    let call = real.git.call(&real.work_tree);
    real.environment
        .with_user(call)
        .env("GIT_DIR", &real.git_dir)
        .env("GIT_WORK_TREE", &real.work_tree)
        .watching(real.roots())
        .timeout(QUERY_TIMEOUT)
}

fn parse_setting(entry: &[u8]) -> Setting {
    match entry.iter().position(|byte| *byte == b'\n') {
        Some(end) => Setting {
            key: entry[..end].to_vec(),
            value: Some(entry[end + 1..].to_vec()),
        },
        None => Setting {
            key: entry.to_vec(),
            value: None,
        },
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
            text.extend_from_slice(b" \"");
            text.extend(escaped(&setting.key[first + 1..last]));
            text.push(b'"');
        }
        text.extend_from_slice(b"]\n\t");
        text.extend_from_slice(&setting.key[last + 1..]);
        if let Some(value) = &setting.value {
            text.extend_from_slice(b" = \"");
            text.extend(escaped(value));
            text.push(b'"');
        }
        text.push(b'\n');
    }
    text
}

fn escaped(bytes: &[u8]) -> Vec<u8> {
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
