//! The directory in which a run keeps everything: never inside the work tree or its `.git`.

use crate::domain::attempt::Record;
use crate::domain::event::Event;
use anyhow::{Context as _, bail};
use serde::{Deserialize, Serialize};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// Runs that are kept; older ones are removed when a new one begins.
const KEPT_RUNS: usize = 20;

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
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
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
    /// When it cannot be read.
    pub fn manifest(&self) -> anyhow::Result<Manifest> {
        let path = self.root.join("manifest.json");
        let text = fs::read(&path).with_context(|| format!("{} cannot be read", path.display()))?;
        serde_json::from_slice(&text).with_context(|| format!("{} is damaged", path.display()))
    }

    /// Opens the history for appending.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn history(&self) -> anyhow::Result<HistoryFile> {
        let path = self.root.join("history.jsonl");
        end_torn_line(&path)?;
        let file = append_only(&path)?;
        Ok(HistoryFile { file, path })
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
        .filter(|run| !run.join("state/finished").exists())
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
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    if let Ok(metadata) = fs::symlink_metadata(path).and_then(|_| fs::metadata(path)) {
        file.as_file().set_permissions(metadata.permissions())?;
    }
    file.persist(path).map_err(|error| error.error)?;
    File::open(parent)?.sync_all()?;
    Ok(())
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

fn read_lines<T: serde::de::DeserializeOwned>(path: &Path) -> anyhow::Result<Vec<T>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => {
            return Err(error).with_context(|| format!("{} cannot be read", path.display()));
        }
    };
    let mut reader = BufReader::new(file);
    let mut values = Vec::new();
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        if reader.read_until(b'\n', &mut line)? == 0 {
            break;
        }
        if line.last() != Some(&b'\n') {
            break;
        }
        let value = serde_json::from_slice(&line)
            .with_context(|| format!("{}:{number} is damaged", path.display()))?;
        values.push(value);
    }
    Ok(values)
}

/// Cuts off a last line without an end, which a killed run was writing.
fn end_torn_line(path: &Path) -> anyhow::Result<()> {
    let Ok(mut file) = File::open(path) else {
        return Ok(());
    };
    let mut last = [0];
    // The whole of it is read only where there is something to be cut off.
    if file.seek(SeekFrom::End(-1)).is_err()
        || (file.read_exact(&mut last).is_ok() && last == [b'\n'])
    {
        return Ok(());
    }
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    let whole = bytes
        .iter()
        .rposition(|&byte| byte == b'\n')
        .map_or(0, |at| at + 1);
    if whole != bytes.len() {
        let file = OpenOptions::new()
            .write(true)
            .custom_flags(no_follow())
            .open(path)?;
        file.set_len(u64::try_from(whole)?)?;
        file.sync_all()?;
    }
    Ok(())
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

    pub(super) fn serialize<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
        let form = match path.to_str() {
            Some(text) => Form::Text(text.to_owned()),
            None => Form::Bytes(path.as_os_str().as_bytes().to_vec()),
        };
        form.serialize(to)
    }

    pub(super) fn deserialize<'d, D: Deserializer<'d>>(from: D) -> Result<PathBuf, D::Error> {
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
mod tests {
    use super::*;
    use crate::domain::attempt::Observation;

    fn line(task: &str) -> HistoryLine {
        let record = Record::Observed {
            id: 1,
            observation: Observation::Waited,
        };
        HistoryLine {
            task: task.into(),
            record,
        }
    }

    #[test]
    fn a_history_with_a_torn_last_line_is_read_and_continued() {
        let temp = tempfile::tempdir().unwrap();
        let dir = RunDir::create(&temp.path().join("run")).unwrap();
        dir.history().unwrap().append(&line("t1")).unwrap();
        let path = dir.path("history.jsonl");
        let mut file = append_only(&path).unwrap();
        file.write_all(b"{\"task\":\"t").unwrap();
        assert_eq!(dir.read_history().unwrap(), [line("t1")]);
        dir.history().unwrap().append(&line("t2")).unwrap();
        assert_eq!(dir.read_history().unwrap(), [line("t1"), line("t2")]);
    }

    #[test]
    fn a_damaged_line_in_the_middle_is_an_error_that_names_it() {
        let temp = tempfile::tempdir().unwrap();
        let dir = RunDir::create(&temp.path().join("run")).unwrap();
        fs::write(dir.path("history.jsonl"), "nonsense\n{}\n").unwrap();
        let error = format!("{:#}", dir.read_history().unwrap_err());
        assert!(error.contains("history.jsonl:1 is damaged"), "{error}");
    }

    #[test]
    fn neither_a_link_nor_a_full_directory_becomes_a_run_directory() {
        let temp = tempfile::tempdir().unwrap();
        let target = temp.path().join("target");
        fs::create_dir(&target).unwrap();
        let link = temp.path().join("link");
        std::os::unix::fs::symlink(&target, &link).unwrap();
        assert!(RunDir::create(&link).is_err());
        fs::write(target.join("file"), "kept").unwrap();
        assert!(RunDir::create(&target).is_err());
        assert_eq!(fs::read_dir(&target).unwrap().count(), 1);
    }

    #[test]
    fn files_behind_planted_links_stay_as_they_are() {
        let temp = tempfile::tempdir().unwrap();
        let dir = RunDir::create(&temp.path().join("run")).unwrap();
        let outside = temp.path().join("outside");
        fs::write(&outside, "kept").unwrap();
        std::os::unix::fs::symlink(&outside, dir.path("history.jsonl")).unwrap();
        assert!(dir.history().is_err());
        std::os::unix::fs::symlink(&outside, dir.path("summary.json")).unwrap();
        dir.write("summary.json", b"new").unwrap();
        assert_eq!(fs::read_to_string(&outside).unwrap(), "kept");
        assert_eq!(fs::read_to_string(dir.path("summary.json")).unwrap(), "new");
    }

    #[test]
    fn the_newest_twenty_runs_stay() {
        let temp = tempfile::tempdir().unwrap();
        let manifest = Manifest {
            v: 1,
            run_id: "r".into(),
            work_tree: "/w".into(),
            plan: None,
            prompt: None,
            tasks: Vec::new(),
            config: None,
            flags: serde_json::Value::Null,
        };
        let mut last = None;
        for n in 0..25 {
            let dir = RunDir::create(&temp.path().join(format!("run-{n:02}"))).unwrap();
            dir.write_manifest(&manifest).unwrap();
            last = Some(dir);
        }
        fs::create_dir(temp.path().join("not-a-run")).unwrap();
        last.unwrap().prune_siblings();
        let mut left: Vec<_> = fs::read_dir(temp.path())
            .unwrap()
            .map(|e| e.unwrap().file_name())
            .collect();
        left.sort();
        assert_eq!(left.len(), KEPT_RUNS + 1);
        assert_eq!(left.last().unwrap(), "run-24");
        assert_eq!(
            newest_unfinished(temp.path(), Path::new("/w")),
            Some(temp.path().join("run-24"))
        );
    }

    #[test]
    fn every_event_is_read_back_as_it_was_written() {
        let temp = tempfile::tempdir().unwrap();
        let dir = RunDir::create(&temp.path().join("run")).unwrap();
        let events = crate::report::samples::every_event();
        let mut file = append_only(&dir.path("state/events.jsonl")).unwrap();
        for event in &events {
            serde_json::to_writer(&mut file, event).unwrap();
            file.write_all(b"\n").unwrap();
        }
        assert_eq!(dir.read_events().unwrap(), events);
    }
}
