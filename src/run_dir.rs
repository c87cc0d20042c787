//! The directory in which a run keeps everything: never inside the work tree or its `.git`.

use crate::domain::attempt::Record;
use crate::domain::event::Event;
use anyhow::{Context as _, bail};
use serde::{Deserialize, Serialize};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
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

fn read_lines<T: serde::de::DeserializeOwned>(path: &Path) -> anyhow::Result<Vec<T>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => {
            return Err(error).with_context(|| format!("{} cannot be read", path.display()));
        }
    };
    let mut reader = BufReader::new(file);
    let mut values = Vec::new();
    let (mut line, mut next) = (Vec::new(), Vec::new());
    reader.read_until(b'\n', &mut next)?;
    for number in 1.. {
        std::mem::swap(&mut line, &mut next);
        next.clear();
        let is_last = reader.read_until(b'\n', &mut next)? == 0;
        if line.is_empty() || (is_last && is_torn(&line)) {
            break;
        }
        let why = match is_json(&line) {
            true => "is not understood: was it written by another version of Sprag?",
            false => "is damaged",
        };
        let value = serde_json::from_slice(&line)
            .with_context(|| format!("{}:{number} {why}", path.display()))?;
        values.push(value);
    }
    Ok(values)
}

/// Cuts off a torn last line, which a killed run was writing or a full disk cut short.
fn end_torn_line(path: &Path) -> io::Result<()> {
    let opened = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(no_follow())
        .open(path);
    let mut file = match opened {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        opened => opened?,
    };
    let length = file.metadata()?.len();
    let whole = whole_length(&mut file, length)?;
    if whole != length {
        file.set_len(whole)?;
        file.sync_all()?;
    }
    Ok(())
}

/// Where the last whole line ends, looked for from the end: such a file can be large.
fn whole_length(file: &mut File, length: u64) -> io::Result<u64> {
    let mut window = 64 << 10;
    loop {
        let start = length.saturating_sub(window);
        let mut tail = Vec::new();
        file.seek(SeekFrom::Start(start))?;
        file.take(length - start).read_to_end(&mut tail)?;
        if let Some(end) = whole_in(&tail, start == 0) {
            return Ok(start.saturating_add(u64::try_from(end).unwrap_or(u64::MAX)));
        }
        window = window.saturating_mul(4);
    }
}

/// Where the last whole line of `tail` ends; `None` when more must be seen to tell.
fn whole_in(tail: &[u8], is_all: bool) -> Option<usize> {
    let line_end = |bytes: &[u8]| memchr::memrchr(b'\n', bytes).map(|at| at + 1);
    let beginning = is_all.then_some(0);
    let end = line_end(tail).or(beginning)?;
    let start = line_end(tail.get(..end.saturating_sub(1))?).or(beginning)?;
    let is_whole = end == start || !is_torn(tail.get(start..end)?);
    Some(if is_whole { end } else { start })
}

/// Whether a last line was not written to its end. After a loss of power the end may be there and
/// what is before it not.
fn is_torn(line: &[u8]) -> bool {
    line.last() != Some(&b'\n') || !is_json(line)
}

fn is_json(line: &[u8]) -> bool {
    serde_json::from_slice::<serde::de::IgnoredAny>(line).is_ok()
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
    fn a_record_of_another_version_is_no_torn_line() {
        let temp = tempfile::tempdir().unwrap();
        let dir = RunDir::create(&temp.path().join("run")).unwrap();
        let text = "{\"task\":\"t1\",\"record\":\"foreseen\"}\n";
        fs::write(dir.path("history.jsonl"), text).unwrap();
        let error = format!("{:#}", dir.read_history().unwrap_err());
        assert!(
            error.contains("history.jsonl:1 is not understood"),
            "{error}"
        );
        dir.history().unwrap();
        assert_eq!(fs::read_to_string(dir.path("history.jsonl")).unwrap(), text);
    }

    #[test]
    fn a_manifest_of_another_version_is_refused_and_says_so() {
        let temp = tempfile::tempdir().unwrap();
        let dir = RunDir::create(&temp.path().join("run")).unwrap();
        fs::write(dir.path("manifest.json"), "{\"v\":2,\"what\":[]}").unwrap();
        let error = format!("{:#}", dir.manifest().unwrap_err());
        assert!(
            error.contains("is of version 2 and this Sprag knows version 1"),
            "{error}"
        );
    }

    #[test]
    fn a_history_cut_at_any_byte_of_its_last_two_records_is_read_up_to_there() {
        let temp = tempfile::tempdir().unwrap();
        let dir = RunDir::create(&temp.path().join("run")).unwrap();
        let lines = ["t1", "t\u{2}\n\u{1f980}", "t3"].map(line);
        let mut file = dir.history().unwrap();
        lines.iter().for_each(|line| file.append(line).unwrap());
        let path = dir.path("history.jsonl");
        let bytes = fs::read(&path).unwrap();
        let first = bytes.iter().position(|byte| *byte == b'\n').unwrap() + 1;
        for cut in first..=bytes.len() {
            fs::write(&path, &bytes[..cut]).unwrap();
            let whole = bytes[..cut].iter().filter(|byte| **byte == b'\n').count();
            assert_eq!(dir.read_history().unwrap(), lines[..whole], "cut at {cut}");
            let mut file = dir.history().unwrap();
            file.append(&line("next")).unwrap();
            let expected = [&lines[..whole], &[line("next")]].concat();
            assert_eq!(dir.read_history().unwrap(), expected, "cut at {cut}");
        }
    }

    proptest::proptest! {
        /// However a file of records is cut off, and whatever bytes the cut-off part was replaced
        /// by, the records before it are read, and the next one follows them.
        #[test]
        fn a_history_cut_anywhere_is_read_up_to_there_and_continued(
            tasks in proptest::collection::vec("[a-z\u{e9}\n\"]{0,40}", 1..6),
            cut in proptest::prelude::any::<proptest::sample::Index>(),
            garbage in proptest::sample::select(vec![&b""[..], b"\0\0\0", b"\0\n", b"{\"ta\n"]),
        ) {
            let temp = tempfile::tempdir().unwrap();
            let dir = RunDir::create(&temp.path().join("run")).unwrap();
            let mut file = dir.history().unwrap();
            let lines: Vec<_> = tasks.iter().map(|task| line(task)).collect();
            lines.iter().for_each(|line| file.append(line).unwrap());
            let path = dir.path("history.jsonl");
            let bytes = fs::read(&path).unwrap();
            let at = cut.index(bytes.len() + 1);
            let whole = bytes[..at].iter().filter(|byte| **byte == b'\n').count();
            fs::write(&path, [&bytes[..at], garbage].concat()).unwrap();
            proptest::prop_assert_eq!(dir.read_history().unwrap(), &lines[..whole]);
            dir.history().unwrap().append(&line("next")).unwrap();
            let mut expected = lines[..whole].to_vec();
            expected.push(line("next"));
            proptest::prop_assert_eq!(dir.read_history().unwrap(), expected);
        }

        /// The end of a large file is found without reading all of it.
        #[test]
        fn the_last_whole_line_is_found_in_a_window(
            before in 0usize..200_000, last in 0usize..200_000, torn in 0usize..200_000,
        ) {
            let string = |length: usize| format!("\"{}\"\n", "x".repeat(length));
            let whole = string(before) + &string(last);
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(whole.as_bytes()).unwrap();
            file.write_all("y".repeat(torn).as_bytes()).unwrap();
            let length = file.metadata().unwrap().len();
            let found = whole_length(&mut file, length).unwrap();
            proptest::prop_assert_eq!(found, whole.len() as u64);
        }
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
