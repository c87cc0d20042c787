//! The directory that holds all files of a run. It is never inside the work tree or its `.git`.

mod lines;

use crate::domain::attempt::Record;
use crate::domain::event::Event;
use crate::plain_file::entries;
use crate::process::CappedLog;
use crate::report::append::append_only;
use crate::run::begin::reviewed_change::ReviewedChange;
use crate::run::state::layout::{Folder, RunFile};
use crate::secrets::redact::Redactor;
use crate::secrets::redact_stream::Redacting;
use anyhow::{Context as _, bail};
use lines::{end_torn_line, read_lines};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The number of runs to keep. A new run removes older ones.
const KEPT_RUNS: usize = 20;

/// Version of the manifest and of all other files that resuming a run needs.
const VERSION: u32 = 1;

/// A run's directory. Secrets are redacted in every file written to it, except in those that
/// [`RunFile::is_exact`] names.
#[derive(Debug, Clone)]
pub struct RunDir {
    root: PathBuf,
    redactor: Arc<Redactor>,
}

/// A log of the output of another program.
pub type Log = Redacting<CappedLog>;

/// The facts that are fixed when a run starts and verified when it resumes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of this format.
    pub v: u32,
    /// The run's id.
    pub run_id: String,
    /// The work tree, absolute.
    #[serde(with = "lossless")]
    pub work_tree: PathBuf,
    /// The resolved, absolute path of the plan; `None` for a prompt.
    pub plan: Option<PlanPath>,
    /// The prompt, if it is the plan.
    pub prompt: Option<String>,
    /// The plan's text, if the plan is neither a file nor a prompt.
    pub text: Option<String>,
    /// Ids of the tasks that the user selected.
    pub tasks: Vec<String>,
    /// Run directories of other jobs, if this run integrates their results instead of running tasks.
    pub shards: Vec<String>,
    /// The absolute path of the configuration file, unless it is the one in the root of the work tree.
    pub config: Option<PathBuf>,
    /// The directory below the work tree in which the run works; empty for its root.
    pub directory: String,
    /// The text of the configuration that is used instead of the one on the run's branch.
    pub trusted: Option<String>,
    /// The flags that override settings, in command-line form.
    pub flags: serde_json::Value,
    /// Whether the run only drafts a plan. Such a run cannot be resumed.
    pub is_draft: bool,
    /// The change to review, if the run only reviews.
    pub reviewed: Option<ReviewedChange>,
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
    /// Creates the directory of a new run, which must not exist or must be empty.
    ///
    /// # Errors
    /// When it cannot be created, is not empty, or is a symbolic link.
    pub fn create(root: &Path, redactor: Arc<Redactor>) -> anyhow::Result<Self> {
        if let Some(parent) = root.parent() {
            fs::create_dir_all(parent)
                .with_context(|| format!("{} cannot be made", parent.display()))?;
        }
        match DirBuilder::new().mode(0o700).create(root) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => adopt_empty(root)?,
            made => made.with_context(|| format!("{} cannot be made", root.display()))?,
        }
        let root = fs::canonicalize(root)?;
        let run_dir = Self { root, redactor };
        for folder in Folder::OF_NEW_RUN {
            let path = run_dir.folder(folder);
            DirBuilder::new().mode(0o700).create(path)?;
        }
        sync_parent(&run_dir.root)?;
        Ok(run_dir)
    }

    /// The same, whose files this redacts.
    #[must_use]
    pub fn redacted_by(self, redactor: Redactor) -> Self {
        let redactor = Arc::new(redactor);
        Self { redactor, ..self }
    }

    /// What redacts its files.
    pub fn redactor(&self) -> Arc<Redactor> {
        Arc::clone(&self.redactor)
    }

    /// Opens the directory of an earlier run.
    ///
    /// # Errors
    /// When it does not exist or is not the directory of a run.
    pub fn open(root: &Path, redactor: Arc<Redactor>) -> anyhow::Result<Self> {
        let root = fs::canonicalize(root)
            .with_context(|| format!("there is no run directory {}", root.display()))?;
        let run_dir = Self { root, redactor };
        if !run_dir.path(RunFile::Manifest).is_file() {
            bail!("{} is not the directory of a run", run_dir.root.display());
        }
        Ok(run_dir)
    }

    /// The directory itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The absolute path of a file in the run directory.
    pub fn path(&self, file: RunFile<'_>) -> PathBuf {
        self.root.join(&*file.path())
    }

    /// The absolute path of a subdirectory.
    pub fn folder(&self, folder: Folder) -> PathBuf {
        self.root.join(folder.name())
    }

    /// Whether the file exists.
    pub fn has(&self, file: RunFile<'_>) -> bool {
        self.path(file).exists()
    }

    /// The content of a file; `None` if it does not exist or cannot be read.
    pub fn read(&self, file: RunFile<'_>) -> Option<Vec<u8>> {
        fs::read(self.path(file)).ok()
    }

    /// The parsed content of a JSON file; `None` if it does not exist or cannot be read or parsed.
    pub fn read_json<T: DeserializeOwned>(&self, file: RunFile<'_>) -> Option<T> {
        serde_json::from_slice(&self.read(file)?).ok()
    }

    /// Removes a file. A failure is ignored: a later process then finds the file again, which does no
    /// harm.
    pub fn remove(&self, file: RunFile<'_>) {
        let _ = self.delete(file);
    }

    /// Removes a file, if it is there.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub fn delete(&self, file: RunFile<'_>) -> anyhow::Result<()> {
        let path = self.path(file);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(error).with_context(|| format!("{} cannot be removed", path.display()))
            }
            _ => Ok(()),
        }
    }

    /// Writes a file atomically, and durably unless it is derived.
    ///
    /// # Errors
    /// When the file cannot be written. The old file is then unchanged.
    pub fn write(&self, file: RunFile<'_>, bytes: &[u8]) -> anyhow::Result<PathBuf> {
        let path = self.path(file);
        let bytes = if file.is_exact() {
            Cow::Borrowed(bytes)
        } else {
            self.redactor.redact_bytes(bytes)
        };
        let written = replace(&path, &bytes, !file.is_derived());
        written.with_context(|| format!("{} cannot be written", path.display()))?;
        Ok(path)
    }

    /// Writes a value as JSON, atomically.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub fn write_json<T: Serialize>(&self, file: RunFile<'_>, value: &T) -> anyhow::Result<()> {
        self.write(file, &serde_json::to_vec(value)?).map(drop)
    }

    /// Creates a log with a limited size. Secrets are redacted in it.
    ///
    /// # Errors
    /// When the file already exists or cannot be created.
    pub fn log(&self, file: RunFile<'_>) -> io::Result<Log> {
        let log = CappedLog::create(&self.path(file))?;
        Ok(Redacting::new(log, self.redactor()))
    }

    /// Writes the manifest.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_manifest(&self, manifest: &Manifest) -> anyhow::Result<()> {
        let text = serde_json::to_vec_pretty(manifest)?;
        self.write(RunFile::Manifest, &text).map(drop)
    }

    /// Reads the manifest.
    ///
    /// # Errors
    /// When it cannot be read, or has a version that this Sprag does not support.
    pub fn manifest(&self) -> anyhow::Result<Manifest> {
        #[derive(Deserialize)]
        struct Versioned {
            v: u32,
        }
        let path = self.path(RunFile::Manifest);
        let text = fs::read(&path).with_context(|| format!("{} cannot be read", path.display()))?;
        let damaged = || format!("{} is damaged", path.display());
        let Versioned { v } = serde_json::from_slice(&text).with_context(damaged)?;
        if v != VERSION {
            bail!(
                "{} has version {v}, but this Sprag reads version {VERSION}: continue with the Sprag that started the run",
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
        Ok(HistoryFile {
            file: self.append_lines(RunFile::History)?,
            path: self.path(RunFile::History),
            redactor: self.redactor(),
        })
    }

    /// Opens a file of lines for appending and syncs its directory entry. An incomplete last line, left
    /// by a killed run or a full disk, is cut off so that the next line does not continue it.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn append_lines(&self, file: RunFile<'_>) -> anyhow::Result<File> {
        let path = self.path(file);
        let is_new = !path.exists();
        let cannot = || format!("{} cannot be opened", path.display());
        end_torn_line(&path).with_context(cannot)?;
        let file = append_only(&path)?;
        if is_new {
            sync_parent(&path).with_context(cannot)?;
        }
        Ok(file)
    }

    /// All records so far, without a last line that was incomplete when the run died.
    ///
    /// # Errors
    /// When the file cannot be read or a line other than the last is damaged.
    pub fn read_history(&self) -> anyhow::Result<Vec<HistoryLine>> {
        read_lines(&self.path(RunFile::History))
    }

    /// All events so far.
    ///
    /// # Errors
    /// As [`Self::read_history`].
    pub fn read_events(&self) -> anyhow::Result<Vec<Event>> {
        read_lines(&self.path(RunFile::EventRecord))
    }

    /// The highest number at the start of a file name in this directory; 0 if there is none.
    pub fn highest_number(&self, folder: Folder) -> u32 {
        let number = |path: PathBuf| {
            let name = path.file_name()?.to_string_lossy().into_owned();
            let end = name.find(|c: char| !c.is_ascii_digit())?;
            name[..end].parse().ok()
        };
        let files = entries(&self.folder(folder)).into_iter();
        files.filter_map(number).max().unwrap_or(0)
    }

    /// Removes the oldest runs next to this one and keeps the newest. Directories that are not runs
    /// stay. Of a run that [`Self::list_in`] has listed there, only the link is removed.
    pub fn prune_siblings(&self) {
        if let Some(parent) = self.root.parent() {
            prune(parent, &self.root);
        }
    }

    /// Lists this run, which lies elsewhere, among the runs of its repository in `runs`, by a link.
    ///
    /// # Errors
    /// When the link cannot be made.
    pub fn list_in(&self, runs: &Path, run_id: &str) -> io::Result<()> {
        fs::create_dir_all(runs)?;
        for link in entries(runs) {
            if link.is_symlink() && !is_run(&link) {
                // A link that stays does no harm, because its target is not the directory of a run.
                let _ = fs::remove_file(link);
            }
        }
        let link = runs.join(run_id);
        std::os::unix::fs::symlink(&self.root, &link)?;
        prune(runs, &link);
        Ok(())
    }
}

/// Removes the oldest runs in `parent`, by their names, but not `newest`.
fn prune(parent: &Path, newest: &Path) {
    let runs = runs_in(parent);
    let surplus = runs.len().saturating_sub(KEPT_RUNS);
    let old = runs.into_iter().take(surplus);
    for run in old.filter(|run| run.as_path() != newest) {
        // A new run starts even if an old one cannot be removed.
        let _ = if run.is_symlink() {
            fs::remove_file(run)
        } else {
            fs::remove_dir_all(run)
        };
    }
}

/// The runs of a work tree that are in `parent` or listed there, with their manifests.
pub fn runs_of_tree(parent: &Path, work_tree: &Path) -> Vec<(PathBuf, Manifest)> {
    let runs = runs_in(parent).into_iter().filter_map(|root| {
        let real = root.is_symlink().then(|| fs::canonicalize(&root).ok());
        real.unwrap_or(Some(root))
    });
    // A `--run-dir` that was removed and used again has a link for each of its runs, and holds only the last one.
    let runs: BTreeSet<PathBuf> = runs.collect();
    let of_tree = runs.into_iter().filter_map(|root| {
        let redactor = Arc::default();
        let run_dir = RunDir { root, redactor };
        let manifest = run_dir.manifest().ok()?;
        (manifest.work_tree == work_tree).then_some((run_dir.root, manifest))
    });
    of_tree.collect()
}

/// The newest unfinished run of a work tree that is in `parent` or listed there.
pub fn newest_unfinished(parent: &Path, work_tree: &Path) -> Option<PathBuf> {
    let unfinished = runs_of_tree(parent, work_tree)
        .into_iter()
        .filter(|(run, manifest)| {
            !manifest.is_draft && !run.join(&*RunFile::Finished.path()).exists()
        });
    // The ids start with the time.
    let newest = unfinished.max_by_key(|(run, manifest)| (manifest.run_id.clone(), run.clone()));
    newest.map(|(run, _)| run)
}

/// The history, open for appending. Every record is on disk before the next effect starts.
#[derive(Debug)]
pub struct HistoryFile {
    file: File,
    path: PathBuf,
    redactor: Arc<Redactor>,
}

impl HistoryFile {
    /// Appends a record, which is on disk after the next [`Self::sync`]. Returns the record as written, without
    /// secrets, so that the state derived from it equals the state that a later process derives.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn append(&mut self, line: &HistoryLine) -> anyhow::Result<Record> {
        let task = line.task.clone();
        let record = self.redactor.redacted(&line.record)?.into_owned();
        let line = HistoryLine { task, record };
        let mut text = serde_json::to_vec(&line)?;
        text.push(b'\n');
        let written = self.file.write_all(&text);
        written.with_context(|| format!("{} cannot be written", self.path.display()))?;
        Ok(line.record)
    }

    /// Syncs all records to disk.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn sync(&self) -> anyhow::Result<()> {
        let written = self.file.sync_data();
        written.with_context(|| format!("{} cannot be written", self.path.display()))
    }
}

/// Writes a file atomically: temporary file, sync, rename, sync of the directory. Other files in the directory
/// do not matter.
///
/// # Errors
/// When it cannot be written. The old file is then unchanged.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    replace(path, bytes, true)
}

/// Replaces a file by a new one, which is on disk before it gets its name if it is to be durable.
fn replace(path: &Path, bytes: &[u8], is_durable: bool) -> anyhow::Result<()> {
    let parent = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new();
    let mut file = file.prefix(".sprag-").tempfile_in(parent)?;
    file.as_file_mut().write_all(bytes)?;
    if is_durable {
        file.as_file().sync_all()?;
    }
    if let Ok(metadata) = fs::symlink_metadata(path).and_then(|_| fs::metadata(path)) {
        file.as_file().set_permissions(metadata.permissions())?;
    }
    file.persist(path).map_err(|error| error.error)?;
    if is_durable {
        sync_parent(path)?;
    }
    Ok(())
}

/// Syncs the directory that contains `path`, which makes its entries durable.
fn sync_parent(path: &Path) -> io::Result<()> {
    let parent = path.parent().unwrap_or(Path::new("."));
    File::open(parent)?.sync_all()
}

/// Accepts an existing directory only if it is empty and not a symbolic link.
fn adopt_empty(root: &Path) -> anyhow::Result<()> {
    if !fs::symlink_metadata(root)?.is_dir() {
        bail!("{} exists and is not a directory", root.display());
    }
    if fs::read_dir(root)?.next().is_some() {
        bail!(
            "{} is not empty: name a new directory, or use --resume to continue its run",
            root.display()
        );
    }
    Ok(())
}

fn runs_in(parent: &Path) -> Vec<PathBuf> {
    let mut runs = entries(parent);
    runs.retain(|path| is_run(path));
    runs
}

/// Whether this is the directory of a run, or a link to one that belongs to this user. The target of an old link may
/// be gone, and another user could create a directory in its place, whose files a resumed run would obey.
fn is_run(path: &Path) -> bool {
    let user = rustix::process::geteuid().as_raw();
    let own = || fs::metadata(path).is_ok_and(|found| found.uid() == user);
    path.join(&*RunFile::Manifest.path()).is_file() && (!path.is_symlink() || own())
}

/// Serializes a path as text if it is UTF-8, else as bytes.
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

#[cfg(test)]
mod tests;
