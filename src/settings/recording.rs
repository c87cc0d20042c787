//! Reads recordings of the built-in agent from files.

use crate::domain::builtin::trajectory::{self, Recording};
use crate::error::{Error, Result};
use std::fs;
use std::io::Read as _;
use std::path::Path;

/// Maximum size in bytes of a recording: several turns, with at most 64 MiB for the transcript of each.
const MAX_RECORDING_BYTES: u64 = 256 << 20;

/// Reads a recording, or the trajectory of one turn.
///
/// # Errors
/// When the file does not exist or is not a recording.
pub fn read(path: &Path) -> Result<Recording> {
    let shown = path.display();
    let cannot = |error: std::io::Error| {
        Error::usage(format!("the recording {shown} cannot be read: {error}"))
    };
    let metadata = fs::metadata(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Error::usage(format!("there is no recording {shown}"))
            .hint("sprag run --record FILE makes one; every turn of the built-in agent leaves turns/NN-builtin.jsonl in the run directory"),
        _ => cannot(error),
    })?;
    if !metadata.is_file() {
        return Err(
            Error::usage(format!("the recording {shown} is not a file")).hint(
                "name a file that sprag run --record made, or one of turns/ in a run directory",
            ),
        );
    }
    if metadata.len() > MAX_RECORDING_BYTES {
        return Err(Error::usage(format!(
            "the recording {shown} has more than {} MiB",
            MAX_RECORDING_BYTES >> 20
        ))
        .hint("replay its turns one by one: turns/NN-builtin.jsonl in the run directory"));
    }
    let mut bytes = Vec::new();
    fs::File::open(path)
        .and_then(|file| file.take(MAX_RECORDING_BYTES).read_to_end(&mut bytes))
        .map_err(cannot)?;
    trajectory::read(&bytes).map_err(|why| {
        Error::usage(format!("{shown} is not a valid recording: {why}"))
            .hint("name a file that sprag run --record made, or turns/NN-builtin.jsonl of a run")
    })
}
