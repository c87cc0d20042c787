//! Where runs are kept.

use crate::context::Context;
use std::path::{Path, PathBuf};

/// Where the runs of a repository are kept.
pub fn runs_of(context: &Context, work_tree: &Path) -> PathBuf {
    if context.in_actions()
        && let Some(temp) = context.path_var("RUNNER_TEMP")
    {
        return temp.join("sprag");
    }
    let name = work_tree
        .file_name()
        .map(|name| name.to_string_lossy().into_owned());
    let hash = blake3::hash(work_tree.as_os_str().as_encoded_bytes()).to_hex();
    let name = format!("{}-{}", name.unwrap_or_default(), &hash[..8]);
    context.state_home().join(name)
}

/// A path of which the last parts need not exist yet, without links in those that do.
pub fn resolved(path: &Path) -> PathBuf {
    match (path.canonicalize(), path.parent(), path.file_name()) {
        (Ok(path), _, _) => path,
        (Err(_), Some(parent), Some(name)) => resolved(parent).join(name),
        _ => path.to_path_buf(),
    }
}
