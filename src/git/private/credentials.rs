//! Finds the credentials that a checkout left in git's configuration, and removes them while an agent works.
//!
//! An agent of the same user can still read files. The removal only prevents a push that works without asking
//! for a credential.

use crate::git::bytes::as_path;
use crate::git::error::{GitError, io_error};
use crate::git::files::{
    copy_tree, make_dir, read_record, remove, replace_file, write_atomically, write_record,
};
use crate::git::private::config::start_call;
use crate::git::private::places::recorded_places;
use crate::git::real::Real;
use crate::git::repo::Repo;
use crate::plain_file;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// The kind of setting that holds the credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PersistedKind {
    /// `http.<url>.extraheader`, as actions/checkout leaves it.
    Header,
    /// The URL of a remote.
    Address,
    /// A rule that rewrites URLs.
    Rewriting,
}

/// The location of a credential in git's configuration, without the credential itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PersistedCredential {
    /// The key, with secret parts removed.
    pub key: String,
    /// The file.
    pub file: PathBuf,
    /// The kind of setting that holds it.
    pub kind: PersistedKind,
    /// Whether the repository's own configuration contains or includes it, and not the user's.
    pub local: bool,
}

/// A value with a credential, unmodified.
struct Found {
    shown: PersistedCredential,
    key: OsString,
    value: Vec<u8>,
}

/// A file whose credential was removed, and the name of its original in the private directory.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Hidden {
    file: Vec<u8>,
    original: String,
}

/// Maximum size in bytes of a configuration file.
const FILE_LIMIT: u64 = 4 << 20;

/// The credentials that git finds in its configuration. Call this before the first turn.
///
/// # Errors
/// When the configuration cannot be read.
pub fn persisted_credentials(real: &Real) -> Result<Vec<PersistedCredential>, GitError> {
    Ok(found(real)?.into_iter().map(|found| found.shown).collect())
}

fn found(real: &Real) -> Result<Vec<Found>, GitError> {
    let args = "config --list -z --includes --show-scope --show-origin";
    let listed = start_call(real).words(args).run()?.stdout;
    let mut fields = listed.split(|byte| *byte == 0);
    let mut all = Vec::new();
    while let (Some(scope), Some(origin), Some(entry)) =
        (fields.next(), fields.next(), fields.next())
    {
        let Some(file) = origin.strip_prefix(b"file:") else {
            continue;
        };
        let file = real.work_tree.join(as_path(file));
        let Some(end) = memchr::memchr(b'\n', entry) else {
            continue;
        };
        let key = &entry[..end];
        let value = &entry[end + 1..];
        if let Some(kind) = kind_of(key, value) {
            let shown = PersistedCredential {
                key: without_userinfo(&String::from_utf8_lossy(key)),
                file,
                kind,
                local: matches!(scope, b"local" | b"worktree"),
            };
            let key = OsString::from_vec(key.to_vec());
            let value = value.to_vec();
            all.push(Found { shown, key, value });
        }
    }
    Ok(all)
}

fn kind_of(key: &[u8], value: &[u8]) -> Option<PersistedKind> {
    let key = String::from_utf8_lossy(key);
    let value = String::from_utf8_lossy(value);
    let lower = key.to_lowercase();
    let has_password = |text: &str| without_userinfo(text) != text;
    if lower.starts_with("http.") && lower.ends_with(".extraheader") {
        let is_credential = value
            .trim_start()
            .to_lowercase()
            .starts_with("authorization:");
        return is_credential.then_some(PersistedKind::Header);
    }
    let is_address = [".url", ".pushurl"].iter().any(|end| lower.ends_with(end));
    if lower.starts_with("remote.") && is_address && has_password(&value) {
        return Some(PersistedKind::Address);
    }
    (lower.starts_with("url.") && has_password(&key)).then_some(PersistedKind::Rewriting)
}

/// Removes the user information from an HTTP URL.
pub fn without_userinfo(text: &str) -> String {
    let Some(start) = text.find("://").map(|at| at + 3) else {
        return text.to_owned();
    };
    let scheme = text.get(..start).unwrap_or_default();
    let rest = text.get(start..).unwrap_or_default();
    if !scheme.ends_with("https://") && !scheme.ends_with("http://") {
        return text.to_owned();
    }
    let authority = rest.split('/').next().unwrap_or(rest);
    match authority.rfind('@') {
        Some(at) => format!("{scheme}{}", rest.get(at + 1..).unwrap_or_default()),
        None => text.to_owned(),
    }
}

impl Repo {
    /// Removes the credentials from the repository's own configuration before the first turn: deletes
    /// headers, and strips the user information from URLs. The private directory keeps the original files
    /// until [`Repo::restore_credentials`]. Repeating it after a crash is safe.
    ///
    /// Returns the credentials that remain in the user's own configuration, which is not changed, for a
    /// warning.
    ///
    /// # Errors
    /// When a file cannot be read or written.
    pub fn hide_credentials(&mut self) -> Result<Vec<PersistedCredential>, GitError> {
        let _open = self.unseal()?;
        let mut hidden = self.hidden()?;
        let found = found(&self.real)?;
        let mut left = Vec::new();
        let mut files = Vec::new();
        for one in &found {
            let hideable = one.shown.local
                && one.shown.kind != PersistedKind::Rewriting
                && plain_file::open(&one.shown.file).is_ok();
            match hideable {
                true if files.contains(&one.shown.file) => {}
                true => files.push(one.shown.file.clone()),
                false => left.push(one.shown.clone()),
            }
        }
        for file in &files {
            let of_file = found.iter().filter(|one| one.shown.file == *file);
            self.hide(file, of_file, &mut hidden)?;
        }
        Ok(left)
    }

    /// Restores the files that [`Repo::hide_credentials`] changed, if there are any.
    ///
    /// # Errors
    /// When a file cannot be written. Repeating it is safe.
    pub fn restore_credentials(&mut self) -> Result<(), GitError> {
        let _open = self.unseal()?;
        for one in self.hidden()? {
            let content = read(&self.hidden_dir().join(&one.original))?;
            self.replace(as_path(&one.file), &content)?;
        }
        remove(&self.hidden_dir())
    }

    fn hide<'a>(
        &self,
        file: &Path,
        found: impl Iterator<Item = &'a Found>,
        hidden: &mut Vec<Hidden>,
    ) -> Result<(), GitError> {
        let content = read(file)?;
        let dir = self.hidden_dir();
        make_dir(&dir)?;
        if !hidden.iter().any(|one| as_path(&one.file) == file) {
            let original = format!("{}.original", hidden.len());
            write_atomically(&dir.join(&original), &content)?;
            let file = file.as_os_str().as_bytes().to_vec();
            hidden.push(Hidden { file, original });
            write_record(&dir.join("list.json"), hidden)?;
        }
        let copy = dir.join("edited");
        write_atomically(&copy, &content)?;
        for one in found {
            let call = self.bare_call().args(["config", "--file"]).args([&copy]);
            let value = without_userinfo(&String::from_utf8_lossy(&one.value));
            let call = match one.shown.kind {
                PersistedKind::Header => call.args(["--unset-all"]).args([&one.key]),
                PersistedKind::Address => {
                    call.args(["--replace-all"]).args([&one.key]).args([value])
                }
                PersistedKind::Rewriting => continue,
            };
            call.status()?;
        }
        let edited = read(&copy)?;
        remove(&copy)?;
        self.replace(file, &edited)
    }

    /// Writes a configuration file, and its copy that the guard restores from.
    fn replace(&self, file: &Path, content: &[u8]) -> Result<(), GitError> {
        let parent = file.parent().unwrap_or(Path::new("/"));
        if !parent.is_dir() {
            return Ok(());
        }
        replace_file(file, content, parent).map_err(io_error("write", file))?;
        for (place, copy) in recorded_places(&self.real, &self.private.root) {
            if place == file {
                copy_tree(&place, &copy)?;
            }
        }
        Ok(())
    }

    fn hidden_dir(&self) -> PathBuf {
        self.private.root.join("hidden")
    }

    fn hidden(&self) -> Result<Vec<Hidden>, GitError> {
        let list = self.hidden_dir().join("list.json");
        Ok(read_record(&list)?.unwrap_or_default())
    }
}

fn read(path: &Path) -> Result<Vec<u8>, GitError> {
    plain_file::read(path, FILE_LIMIT).map_err(io_error("read", path))
}
