//! The directory in which a run keeps everything: never inside the work tree or its `.git`.

mod lines;

use crate::domain::attempt::Record;
use crate::domain::event::Event;
use anyhow::{Context as _, bail};
use lines::{end_torn_line, read_lines};
use serde::{Deserialize, Serialize};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// Runs that are kept; older ones are removed when a new one begins.
const KEPT_RUNS: usize = 20;

/// Version of the manifest and of everything else that a run keeps for taking it up again.
const VERSION: u32 = 1;

/// Says that the run has done all that it was to do, relative to its directory.
pub const FINISHED: &str = "state/finished";

/// The number of the last event of a process that came to its end and told of it, relative to the
/// run's directory.
pub const ENDED: &str = "state/ended";

/// A run's directory.
#[derive(Debug, Clone)]
pub struct RunDir {
    root: PathBuf,
}

/// What is fixed when a run begins, and checked when it is taken up again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of this format.
    pub v: u32,
    /// The run's id.
    pub run_id: String,
    /// The work tree, absolute.
    #[serde(with = "lossless")]
    pub work_tree: PathBuf,
    /// The plan's resolved path, absolute; `None` for a prompt.
    pub plan: Option<PlanPath>,
    /// The prompt, when that is the plan.
    pub prompt: Option<String>,
    /// The plan's text, when it is neither a file nor a prompt.
    #[serde(default)]
    pub text: Option<String>,
    /// Ids of the tasks that were asked for by name.
    pub tasks: Vec<String>,
    /// The configuration file that a flag named, absolute.
    #[serde(default)]
    pub config: Option<PathBuf>,
    /// The flags that override settings, in the form of the command line.
    #[serde(default)]
    pub flags: serde_json::Value,
}

/// The path of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PlanPath(#[serde(with = "lossless")] pub PathBuf);

/// One line of `history.jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HistoryLine {
    /// The task.
    pub task: String,
    /// What was intended or observed.
    #[serde(flatten)]
    pub record: Record,
}

impl RunDir {
    /// Makes a new run's directory; all of it must be new.
    ///
    /// # Errors
    /// When it cannot be made, is there already, or is a symbolic link.
    pub fn create(root: &Path) -> anyhow::Result<Self> {
        if let Some(parent) = root.parent() {
            fs::create_dir_all(parent)
                .with_context(|| format!("{} cannot be made", parent.display()))?;
        }
        match DirBuilder::new().mode(0o700).create(root) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                adopt_empty(root)?;
            }
            Err(error) => {
                return Err(error).with_context(|| format!("{} cannot be made", root.display()));
            }
        }
        let root = fs::canonicalize(root)?;
        for name in ["turns", "prompts", "verify", "patches", "state"] {
            DirBuilder::new().mode(0o700).create(root.join(name))?;
        }
        sync_parent(&root)?;
        Ok(Self { root })
    }

    /// Opens the directory of an earlier run.
    ///
    /// # Errors
    /// When there is none.
    pub fn open(root: &Path) -> anyhow::Result<Self> {
        let root = fs::canonicalize(root)
            .with_context(|| format!("there is no run directory {}", root.display()))?;
        if !root.join("manifest.json").is_file() {
            bail!("{} is not the directory of a run", root.display());
        }
        Ok(Self { root })
    }

    /// The directory itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// A file or directory in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Writes a file so that it is there whole or not at all: temporary file, sync, rename, sync of
    /// the directory.
    ///
    /// # Errors
    /// When the file cannot be written; the old one is then untouched.
    pub fn write(&self, name: &str, bytes: &[u8]) -> anyhow::Result<PathBuf> {
        let path = self.root.join(name);
        write_atomically(&path, bytes)
            .with_context(|| format!("{} cannot be written", path.display()))?;
        Ok(path)
    }

    /// Records what the run is.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_manifest(&self, manifest: &Manifest) -> anyhow::Result<()> {
        self.write("manifest.json", &serde_json::to_vec_pretty(manifest)?)?;
        Ok(())
    }

    /// What the run is.
    ///
    /// # Errors
    /// When it cannot be read, or is of a version that this Sprag does not know.
    pub fn manifest(&self) -> anyhow::Result<Manifest> {
        #[derive(Deserialize)]
        struct Versioned {
            v: u32,
        }
        let path = self.root.join("manifest.json");
        let text = fs::read(&path).with_context(|| format!("{} cannot be read", path.display()))?;
        let damaged = || format!("{} is damaged", path.display());
        let Versioned { v } = serde_json::from_slice(&text).with_context(damaged)?;
        if v != VERSION {
            bail!(
                "{} is of version {v} and this Sprag knows version {VERSION}: go on with the Sprag that began the run",
                path.display()
            );
        }
        serde_json::from_slice(&text).with_context(damaged)
    }

    /// Opens the history for appending.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn history(&self) -> anyhow::Result<HistoryFile> {
        let file = self.append_lines("history.jsonl")?;
        let path = self.root.join("history.jsonl");
        Ok(HistoryFile { file, path })
    }

    /// Opens a file of lines for appending, its name on the disk. A last line that a killed run or a
    /// full disk left torn is cut off, so that the next one does not run into it.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn append_lines(&self, name: &str) -> anyhow::Result<File> {
        let path = self.root.join(name);
        let is_new = !path.exists();
        let cannot = || format!("{} cannot be opened", path.display());
        end_torn_line(&path).with_context(cannot)?;
        let file = append_only(&path)?;
        if is_new {
            sync_parent(&path).with_context(cannot)?;
        }
        Ok(file)
    }

    /// Every record so far. A last line that was being written when the run died is left out.
    ///
    /// # Errors
    /// When the file cannot be read or another line than the last is damaged.
    pub fn read_history(&self) -> anyhow::Result<Vec<HistoryLine>> {
        read_lines(&self.root.join("history.jsonl"))
    }

    /// Every event so far.
    ///
    /// # Errors
    /// As [`Self::read_history`].
    pub fn read_events(&self) -> anyhow::Result<Vec<Event>> {
        read_lines(&self.root.join("state/events.jsonl"))
    }

    /// The highest number with which the name of a file in this directory begins; 0 without any.
    pub fn highest_number(&self, directory: &str) -> u32 {
        let entries = fs::read_dir(self.root.join(directory));
        let number = |entry: fs::DirEntry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            let end = name.find(|c: char| !c.is_ascii_digit())?;
            name[..end].parse().ok()
        };
        let numbers = entries.into_iter().flatten().flatten().filter_map(number);
        numbers.max().unwrap_or(0)
    }

    /// Removes the oldest runs beside this one, so that the newest stay. A directory that is not a
    /// run's is left alone.
    pub fn prune_siblings(&self) {
        let Some(parent) = self.root.parent() else {
            return;
        };
        let mut runs = runs_in(parent);
        runs.sort();
        let surplus = runs.len().saturating_sub(KEPT_RUNS);
        for run in runs
            .into_iter()
            .take(surplus)
            .filter(|run| run != &self.root)
        {
            // An old run that cannot be removed is no reason not to begin a new one.
            let _ = fs::remove_dir_all(run);
        }
    }
}

/// The newest run of a work tree in `parent` that did not come to its end.
pub fn newest_unfinished(parent: &Path, work_tree: &Path) -> Option<PathBuf> {
    let mut runs = runs_in(parent);
    runs.sort();
    let is_of_tree = |run: &PathBuf| {
        RunDir { root: run.clone() }
            .manifest()
            .is_ok_and(|manifest| manifest.work_tree == work_tree)
    };
    runs.into_iter()
        .rev()
        .filter(|run| !run.join(FINISHED).exists())
        .find(is_of_tree)
}

/// The history, open for appending. Every record is on the disk before the next effect begins.
#[derive(Debug)]
pub struct HistoryFile {
    file: File,
    path: PathBuf,
}

impl HistoryFile {
    /// Appends a record and syncs it.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn append(&mut self, line: &HistoryLine) -> anyhow::Result<()> {
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        self.file
            .write_all(&text)
            .and_then(|()| self.file.sync_data())
            .with_context(|| format!("{} cannot be written", self.path.display()))
    }
}

/// A file that is only ever appended to and is no symbolic link.
///
/// # Errors
/// When it cannot be opened.
pub fn append_only(path: &Path) -> anyhow::Result<File> {
    OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .custom_flags(no_follow())
        .open(path)
        .with_context(|| format!("{} cannot be opened", path.display()))
}

/// Writes a file whole or not at all, next to whatever else is there.
///
/// # Errors
/// When it cannot be written; the old one is then untouched.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let parent = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new()
        .prefix(".sprag-")
        .tempfile_in(parent)?;
    file.as_file_mut().write_all(bytes)?;
    file.as_file().sync_all()?;
    if let Ok(metadata) = fs::symlink_metadata(path).and_then(|_| fs::metadata(path)) {
        file.as_file().set_permissions(metadata.permissions())?;
    }
    file.persist(path).map_err(|error| error.error)?;
    sync_parent(path)?;
    Ok(())
}

/// Puts the names in a path's directory on the disk.
fn sync_parent(path: &Path) -> io::Result<()> {
    let parent = path.parent().unwrap_or(Path::new("."));
    File::open(parent)?.sync_all()
}

/// A directory that is there already is taken only if it is a real one and empty.
fn adopt_empty(root: &Path) -> anyhow::Result<()> {
    let is_dir = fs::symlink_metadata(root)?.is_dir();
    if !is_dir {
        bail!("{} is there and is not a directory", root.display());
    }
    if fs::read_dir(root)?.next().is_some() {
        bail!(
            "{} is not empty: name a new directory, or --resume to go on with it",
            root.display()
        );
    }
    Ok(())
}

fn runs_in(parent: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.path())
        .filter(|path| path.join("manifest.json").is_file())
        .collect()
}

/// A path as text where it is UTF-8, as bytes where it is not.
mod lossless {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use std::ffi::OsString;
    use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
    use std::path::{Path, PathBuf};

    #[derive(Serialize, Deserialize)]
    #[serde(untagged)]
    enum Form {
        Text(String),
        Bytes(Vec<u8>),
    }

    pub(crate) fn serialize<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
        let form = match path.to_str() {
            Some(text) => Form::Text(text.to_owned()),
            None => Form::Bytes(path.as_os_str().as_bytes().to_vec()),
        };
        form.serialize(to)
    }

    pub(crate) fn deserialize<'d, D: Deserializer<'d>>(from: D) -> Result<PathBuf, D::Error> {
        Ok(match Form::deserialize(from)? {
            Form::Text(text) => text.into(),
            Form::Bytes(bytes) => OsString::from_vec(bytes).into(),
        })
    }
}

fn no_follow() -> i32 {
    i32::try_from(rustix::fs::OFlags::NOFOLLOW.bits()).unwrap_or(0)
}

#[cfg(test)]
mod tests;
