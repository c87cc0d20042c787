//! Finds the credentials that a checkout left in git's configuration, and removes them while an agent works.
//!
//! An agent of the same user can still read files. The removal only prevents a push that works without asking
//! for a credential.

use crate::git::bytes::as_path;
use crate::git::error::{Result, io_error};
use crate::git::files::{
    copy_tree, make_dir, read, read_record, remove, replace_file, write, write_record,
};
use crate::git::private::config::{Setting, parse_setting, start_call};
use crate::git::private::places::recorded_places;
use crate::git::real::Real;
use crate::git::repo::Repo;
use crate::plain_file;
use std::collections::BTreeMap;
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

/// The files whose credentials were removed, with their original contents.
type Originals = Vec<(Vec<u8>, Vec<u8>)>;

/// The record of them.
const ORIGINALS: &str = "list.json";

/// Maximum size in bytes of a configuration file.
const FILE_LIMIT: u64 = 4 << 20;

/// The credentials that git finds in its configuration. Call this before the first turn.
///
/// # Errors
/// When the configuration cannot be read.
pub fn persisted_credentials(real: &Real) -> Result<Vec<PersistedCredential>> {
    Ok(found(real)?.into_iter().map(|found| found.shown).collect())
}

fn found(real: &Real) -> Result<Vec<Found>> {
    let args = "config --list -z --includes --show-scope --show-origin";
    let listed = start_call(real).words(args).stdout()?;
    let fields: Vec<&[u8]> = listed.split(|byte| *byte == 0).collect();
    let found = |fields: &[&[u8]]| {
        let [scope, origin, entry] = [fields[0], fields[1], fields[2]];
        let file = real.work_tree.join(as_path(origin.strip_prefix(b"file:")?));
        let Setting { key, value } = parse_setting(entry);
        let value = value?;
        let shown = PersistedCredential {
            key: without_userinfo(&String::from_utf8_lossy(&key)),
            file,
            kind: kind_of(&key, &value)?,
            local: matches!(scope, b"local" | b"worktree"),
        };
        let key = OsString::from_vec(key);
        Some(Found { shown, key, value })
    };
    Ok(fields.chunks_exact(3).filter_map(found).collect())
}

fn kind_of(key: &[u8], value: &[u8]) -> Option<PersistedKind> {
    let key = String::from_utf8_lossy(key);
    let value = String::from_utf8_lossy(value);
    let lower = key.to_lowercase();
    let has_password = |text: &str| without_userinfo(text) != text;
    if lower.starts_with("http.") && lower.ends_with(".extraheader") {
        let header = value.trim_start().to_lowercase();
        return header
            .starts_with("authorization:")
            .then_some(PersistedKind::Header);
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
    pub fn hide_credentials(&mut self) -> Result<Vec<PersistedCredential>> {
        let _open = self.unseal()?;
        let mut originals = self.originals()?;
        let mut left = Vec::new();
        let mut edits: BTreeMap<PathBuf, Vec<Found>> = BTreeMap::new();
        for one in found(&self.real)? {
            let PersistedCredential {
                kind, local, file, ..
            } = &one.shown;
            if *local && *kind != PersistedKind::Rewriting && plain_file::open(file).is_ok() {
                edits.entry(file.clone()).or_default().push(one);
            } else {
                left.push(one.shown);
            }
        }
        for (file, found) in &edits {
            self.hide(file, found, &mut originals)?;
        }
        Ok(left)
    }

    /// Restores the files that [`Repo::hide_credentials`] changed, if there are any.
    ///
    /// # Errors
    /// When a file cannot be written. Repeating it is safe.
    pub fn restore_credentials(&mut self) -> Result<()> {
        let _open = self.unseal()?;
        for (file, content) in self.originals()? {
            self.replace(as_path(&file), &content)?;
        }
        remove(&self.hidden_dir())
    }

    fn hide(&self, file: &Path, found: &[Found], all: &mut Originals) -> Result<()> {
        let content = plain_file::read(file, FILE_LIMIT).map_err(io_error("read", file))?;
        let path = file.as_os_str().as_bytes();
        if !all.iter().any(|(known, _)| known == path) {
            all.push((path.to_vec(), content.clone()));
            make_dir(&self.hidden_dir())?;
            write_record(&self.hidden_dir().join(ORIGINALS), all)?;
        }
        let copy = self.private.scratch_file()?.into_temp_path();
        write(&copy, &content)?;
        for one in found {
            let call = self.bare_call().words("config --file").arg(&copy);
            let value = without_userinfo(&String::from_utf8_lossy(&one.value));
            let call = match one.shown.kind {
                PersistedKind::Header => call.arg("--unset-all").arg(&one.key),
                _ => call.arg("--replace-all").arg(&one.key).arg(value),
            };
            call.status()?;
        }
        self.replace(file, &read(&copy)?)
    }

    /// Writes a configuration file, and its copy that the guard restores from.
    fn replace(&self, file: &Path, content: &[u8]) -> Result<()> {
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

    fn originals(&self) -> Result<Originals> {
        let originals = read_record(&self.hidden_dir().join(ORIGINALS))?;
        Ok(originals.unwrap_or_default())
    }
}
