//! The pictures of the issue, as files of the run directory.

use crate::domain::trigger::picture::{MAX_PICTURE_BYTES, MAX_PICTURES, media_type};
use crate::plain_file;
use crate::run::state::directory::RunDir;
use crate::run::state::layout::{Folder, RunFile};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sprag_agent::model::Picture;
use std::path::PathBuf;

/// Writes pictures into the run directory.
///
/// # Errors
/// When a file cannot be written.
pub fn save(run_dir: &RunDir, pictures: &[Vec<u8>]) -> anyhow::Result<()> {
    for (number, bytes) in (1..).zip(pictures) {
        let kind = media_type(bytes).and_then(|kind| kind.strip_prefix("image/"));
        let file = RunFile::Picture(number, kind.unwrap_or("bin"));
        run_dir.write(file, bytes)?;
    }
    Ok(())
}

/// Their paths as text, for prompts.
pub fn names(run_dir: &RunDir) -> Vec<String> {
    let paths = saved(run_dir).into_iter();
    paths.map(|path| path.display().to_string()).collect()
}

/// The paths of the pictures, in their order in the issue.
pub fn saved(run_dir: &RunDir) -> Vec<PathBuf> {
    let mut paths = plain_file::entries(&run_dir.folder(Folder::Pictures));
    paths.truncate(MAX_PICTURES);
    paths
}

/// The pictures for a model. A file that is no picture is left out.
pub fn for_model(paths: &[PathBuf]) -> Vec<Picture> {
    let one = |path: &PathBuf| {
        let bytes = plain_file::read(path, MAX_PICTURE_BYTES as u64).ok()?;
        Some(Picture {
            media_type: media_type(&bytes)?,
            base64: STANDARD.encode(bytes),
        })
    };
    paths.iter().filter_map(one).collect()
}
