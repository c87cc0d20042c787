//! Files of JSON lines whose last line may be incomplete.

use crate::report::append::no_follow;
use anyhow::Context as _;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// All lines without an incomplete last one; none if there is no file.
pub(super) fn read_lines<T: serde::de::DeserializeOwned>(path: &Path) -> anyhow::Result<Vec<T>> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        opened => opened.with_context(|| format!("{} cannot be read", path.display()))?,
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
        let why = if is_json(&line) {
            "is not understood: was it written by another version of Sprag?"
        } else {
            "is damaged"
        };
        let value = serde_json::from_slice(&line)
            .with_context(|| format!("{}:{number} {why}", path.display()))?;
        values.push(value);
    }
    Ok(values)
}

/// Cuts off an incomplete last line, left by a killed run or a full disk.
pub(super) fn end_torn_line(path: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).custom_flags(no_follow());
    let file = match options.open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        opened => opened?,
    };
    let whole = whole_length(&file)?;
    if whole != file.metadata()?.len() {
        file.set_len(whole)?;
        file.sync_all()?;
    }
    Ok(())
}

/// Where the last complete line ends.
fn whole_length(file: &File) -> io::Result<u64> {
    let mut reader = BufReader::new(file);
    let (mut line, mut next) = (Vec::new(), Vec::new());
    let mut end = 0;
    while reader.read_until(b'\n', &mut next)? > 0 && next.ends_with(b"\n") {
        end += next.len() as u64;
        std::mem::swap(&mut line, &mut next);
        next.clear();
    }
    let is_torn = !line.is_empty() && is_torn(&line);
    Ok(if is_torn {
        end - line.len() as u64
    } else {
        end
    })
}

/// Whether a last line is incomplete. After a loss of power, its end may be on disk and its start may
/// not.
fn is_torn(line: &[u8]) -> bool {
    line.last() != Some(&b'\n') || !is_json(line)
}

fn is_json(line: &[u8]) -> bool {
    serde_json::from_slice::<serde::de::IgnoredAny>(line).is_ok()
}
