//! `sprag replay`: repeats the decisions of a recorded session and describes them.

use crate::cli::{ReplayArgs, ReplayFormat};
use crate::context::Context;
use crate::domain::builtin::replay::replay;
use crate::domain::builtin::trajectory::Recording;
use crate::error::{Error, Result};
use crate::print::{print, print_document};
use crate::report::Format;
use crate::run::state::layout::Folder;
use crate::run::state::past_runs::directory;
use crate::settings::recording;
use std::path::{Path, PathBuf};

/// The end of the file names of the built-in agent's transcripts.
const TRANSCRIPT: &str = "-builtin.jsonl";

/// Runs the command and returns the process's exit code: 1 if a decision differs.
///
/// # Errors
/// When there is no readable recording.
pub fn command(context: &Context, args: &ReplayArgs) -> Result<u8> {
    let path = directory(context, &args.trajectory)?;
    let recording = if path.is_dir() {
        of_directory(&path, &args.trajectory)?
    } else {
        recording::read(&path)?
    };
    let replay = replay(&recording);
    match args.format {
        ReplayFormat::Text => print(context, &replay.text())?,
        ReplayFormat::Json => {
            let json = serde_json::to_string_pretty(&replay).map_err(anyhow::Error::from)?;
            print_document(context, &format!("{json}\n"), Format::Json)?;
        }
    }
    Ok(u8::from(!replay.same))
}

/// The turns of a run, in order.
fn of_directory(path: &Path, shown: &Path) -> Result<Recording> {
    let files = transcripts(path);
    if files.is_empty() {
        return Err(Error::usage(format!(
            "the directory {} has no transcript of the built-in agent",
            shown.display()
        ))
        .hint("name the directory of a run, or a file that sprag run --record made"));
    }
    let mut sessions = Vec::new();
    for file in files {
        sessions.extend(recording::read(&file)?.sessions);
    }
    Ok(Recording { sessions })
}

fn transcripts(path: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(path.join(Folder::Turns.name()))
        .into_iter()
        .flatten();
    let files = entries.flatten().map(|entry| entry.path());
    let is_ours = |file: &PathBuf| {
        let name = file.file_name().map(|name| name.to_string_lossy());
        name.is_some_and(|name| name.ends_with(TRANSCRIPT))
    };
    let mut files: Vec<PathBuf> = files.filter(is_ours).collect();
    // Turn numbers have two digits or more.
    files.sort_by_key(|file| {
        let name = file
            .file_name()
            .map(|name| name.to_string_lossy().into_owned());
        name.map(|name| (name.len(), name))
    });
    files
}
