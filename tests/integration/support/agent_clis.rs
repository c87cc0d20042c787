//! The real agents, at the versions that `tests/agent-clis` locks.
//!
//! `scripts/test` installs them and names their directory in `SPRAG_TEST_AGENTS`; an empty value
//! says that it could not. Without the variable they are installed here, into the same place.

use super::npm;
use std::env;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The directory that holds the agents' programs, for `PATH`.
///
/// `None` when there are none here: the test that asks has then nothing to do, and its reader is
/// told so. With `SPRAG_CI_STRICT=1` that is a failure.
pub fn bin() -> Option<&'static Path> {
    static FOUND: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let why = match FOUND.get_or_init(find) {
        Ok(bin) => return Some(bin),
        Err(why) => why,
    };
    npm::not_tested("the real agents", why);
    None
}

fn find() -> Result<PathBuf, String> {
    match env::var_os("SPRAG_TEST_AGENTS") {
        Some(bin) if bin.is_empty() => {
            Err("scripts/test could not install them, or was told not to".into())
        }
        Some(all) if all == "all" => install(),
        Some(bin) => complete(PathBuf::from(bin)),
        None => install(),
    }
}

/// Installs the agents unless they are there.
fn install() -> Result<PathBuf, String> {
    let modules = npm::installed("agent-clis")?;
    complete(modules.join(".bin"))
}

fn complete(bin: PathBuf) -> Result<PathBuf, String> {
    let missing = ["codex", "claude", "gemini", "opencode", "qwen"]
        .into_iter()
        .find(|program| !bin.join(program).exists());
    match missing {
        Some(program) => Err(format!("there is no {program} in {}", bin.display())),
        None => Ok(bin),
    }
}
