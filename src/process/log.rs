//! A log file with a maximum size, which keeps its start and its end.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

/// How many bytes are searched for the end of a line near the cut.
const LINE_SEARCH: usize = 64 << 10;

/// A file that is written as output arrives. Beyond its maximum size, the middle is left out: the first
/// half is written to the file at once, the second half to an unnamed temporary file next to it until
/// [`CappedLog::close`]. Uses almost no memory.
#[derive(Debug)]
pub struct CappedLog {
    file: File,
    directory: PathBuf,
    head_cap: u64,
    tail_cap: u64,
    head: u64,
    ends_with_newline: bool,
    tail: Option<File>,
    /// All bytes that were written to the tail, including overwritten ones.
    tail_written: u64,
    /// The first error, after which nothing is written.
    failed: Option<io::Error>,
}

/// Writing never fails: [`CappedLog::close`] returns the first error, because output is read to its end even if it
/// cannot be kept.
impl Write for CappedLog {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.failed.is_none() {
            self.failed = self.append(bytes).err();
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl CappedLog {
    /// Creates a file of at most 64 MiB, plus one line that says how much was left out.
    ///
    /// # Errors
    /// When the path exists already, even as a symbolic link, or the file cannot be created.
    pub fn create(path: &Path) -> io::Result<Self> {
        Self::with_caps(path, 32 << 20, 32 << 20)
    }

    /// As [`CappedLog::create`], with other sizes, in bytes, for the start and the end.
    ///
    /// # Errors
    /// As [`CappedLog::create`].
    fn with_caps(path: &Path, head: u64, tail: u64) -> io::Result<Self> {
        // `create_new` fails on a link of any kind, so nothing is written through one.
        let file = OpenOptions::new().write(true).create_new(true).open(path)?;
        Ok(Self {
            file,
            directory: path.parent().unwrap_or(Path::new(".")).to_owned(),
            head_cap: head,
            tail_cap: tail,
            head: 0,
            ends_with_newline: true,
            tail: None,
            tail_written: 0,
            failed: None,
        })
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let room = usize::try_from(self.head_cap - self.head).unwrap_or(usize::MAX);
        let (head, rest) = bytes.split_at(room.min(bytes.len()));
        if let Some(last) = head.last() {
            self.file.write_all(head)?;
            self.head += head.len() as u64;
            self.ends_with_newline = *last == b'\n';
        }
        if rest.is_empty() {
            return Ok(());
        }
        self.write_tail(rest)
    }

    /// Appends the end of the output to the file, after a line that says how many bytes are missing.
    /// Returns that number.
    ///
    /// # Errors
    /// When the file cannot be written, or could not be before.
    pub fn close(mut self) -> io::Result<u64> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let omitted = self.tail_written.saturating_sub(self.tail_cap);
        if omitted == 0 {
            self.copy_tail(0, self.tail_written)?;
            return Ok(0);
        }
        let oldest = self.tail_written % self.tail_cap;
        let skipped = self.partial_line(oldest)?;
        self.write_notice(omitted + skipped)?;
        let from = oldest + skipped;
        self.copy_tail(from.min(self.tail_cap), self.tail_cap)?;
        self.copy_tail(from.saturating_sub(self.tail_cap), oldest)?;
        Ok(omitted + skipped)
    }

    /// The tail file is a ring buffer: new bytes overwrite the oldest.
    fn write_tail(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        let file = match self.tail.take() {
            Some(file) => file,
            None => tempfile::tempfile_in(&self.directory)?,
        };
        while !bytes.is_empty() {
            let at = self.tail_written % self.tail_cap;
            let room = usize::try_from(self.tail_cap - at).unwrap_or(usize::MAX);
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            file.write_all_at(now, at)?;
            self.tail_written += now.len() as u64;
            bytes = later;
        }
        self.tail = Some(file);
        Ok(())
    }

    /// The length of an incomplete line at the start of the tail, if it ends soon.
    fn partial_line(&mut self, oldest: u64) -> io::Result<u64> {
        let Some(file) = &mut self.tail else {
            return Ok(0);
        };
        let mut start = Vec::new();
        file.seek(SeekFrom::Start(oldest))?;
        file.take(LINE_SEARCH as u64).read_to_end(&mut start)?;
        if start.len() < LINE_SEARCH {
            let wanted = (LINE_SEARCH - start.len()) as u64;
            file.seek(SeekFrom::Start(0))?;
            file.take(wanted.min(oldest)).read_to_end(&mut start)?;
        }
        Ok(memchr::memchr(b'\n', &start).map_or(0, |end| end as u64 + 1))
    }

    fn write_notice(&mut self, omitted: u64) -> io::Result<()> {
        let separator = if self.ends_with_newline { "" } else { "\n" };
        writeln!(
            self.file,
            "{separator}[sprag: {omitted} bytes left out here]"
        )
    }

    fn copy_tail(&mut self, from: u64, to: u64) -> io::Result<()> {
        if let (Some(file), true) = (&mut self.tail, from < to) {
            file.seek(SeekFrom::Start(from))?;
            io::copy(&mut file.take(to - from), &mut self.file)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::prelude::*;

    use super::*;

    fn logged(head: u64, tail: u64, chunks: &[Vec<u8>]) -> (u64, Vec<u8>) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let mut log = CappedLog::with_caps(&path, head, tail).unwrap();
        chunks
            .iter()
            .for_each(|chunk| log.write_all(chunk).unwrap());
        let omitted = log.close().unwrap();
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
        (omitted, fs::read(&path).unwrap())
    }

    #[test]
    fn the_middle_is_left_out_and_said_so() {
        let lines: Vec<Vec<u8>> = (10..40).map(|n| format!("{n}\n").into_bytes()).collect();
        let (omitted, content) = logged(8, 8, &lines);
        let text = String::from_utf8(content).unwrap();
        assert_eq!(
            text,
            "10\n11\n12\n[sprag: 76 bytes left out here]\n38\n39\n"
        );
        assert_eq!(omitted, 76);
    }

    #[test]
    fn what_fits_is_written_as_it_is() {
        let chunks = [b"\xff\0 a".to_vec(), b"\rb".to_vec(), vec![b'c'; 10]];
        assert_eq!(logged(8, 8, &chunks), (0, chunks.concat()));
    }

    #[test]
    fn nothing_is_written_through_a_link() {
        let directory = tempfile::tempdir().unwrap();
        let (target, link) = (
            directory.path().join("target"),
            directory.path().join("link"),
        );
        std::os::unix::fs::symlink(&target, &link).unwrap();
        let error = CappedLog::create(&link).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert!(!target.exists());
    }

    proptest! {
        #[test]
        fn beginning_and_end_survive_however_they_arrive(
            chunks in prop::collection::vec(prop::collection::vec(b'a'..=b'z', 0..9), 0..12),
            head in 0_u64..12,
            tail in 1_u64..12,
        ) {
            let text = chunks.concat();
            let from = text.len().min(usize::try_from(head).unwrap());
            let to = from.max(text.len().saturating_sub(usize::try_from(tail).unwrap()));
            let (omitted, content) = logged(head, tail, &chunks);
            prop_assert_eq!(omitted, (to - from) as u64);
            let mut expected = text[..from].to_vec();
            if omitted > 0 {
                let separator = if from == 0 { "" } else { "\n" };
                let notice = format!("{separator}[sprag: {omitted} bytes left out here]\n");
                expected.extend(notice.into_bytes());
            }
            expected.extend(&text[to..]);
            prop_assert_eq!(content, expected);
        }
    }
}
