//! The state of the repository at the orderly end of a run. The run resumes only in that state, because
//! other people's changes since then are not the agent's work.

use crate::domain::outcome::short;
use crate::domain::snapshot::{Head, KnownSnapshot};
use crate::git::{RawSnapshot, display_path};
use crate::run::state::directory::RunDir;
use crate::run::state::emitter::Emitter;
use crate::run::state::layout::RunFile;
use crate::run::state::setup::Setup;
use crate::run::state::work_tree::WorkTree;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// How many files the refusal names.
const SHOWN: usize = 20;

/// The repository at the end of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct OrderlyEnd {
    known: KnownSnapshot,
    dirty: Vec<Vec<u8>>,
    /// The content of each dirty path.
    contents: Vec<Content>,
    /// Whether nothing that the agent did to the repository's configuration and hooks was left.
    is_configured_as_found: bool,
}

/// Mode and digest of a file; `None` if it is not there.
type Content = Option<(u32, [u8; 32])>;

/// Saves the state in which the run leaves the repository.
pub fn save_orderly_end(setup: &Setup, tree: &mut WorkTree, emit: &mut Emitter<'_>) {
    let (Some(raw), _) = tree.last_snapshot(emit) else {
        return;
    };
    // Checks may have changed them since the last turn.
    for warning in tree.repo.restore_metadata().unwrap_or_default() {
        emit.warn(warning);
    }
    let dirty = raw.dirty_paths();
    let end = OrderlyEnd {
        contents: dirty.iter().map(|path| raw.content(path)).collect(),
        dirty,
        known: raw.known.clone(),
        is_configured_as_found: tree.repo.is_configured_as_found(),
    };
    let kept = setup.run_dir.write_json(RunFile::OrderlyEnd, &end);
    emit.warn_unless_stored(kept);
}

/// Why a run cannot be resumed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The difference in words.
    pub what: String,
    /// What to do about it.
    pub remedy: &'static str,
}

/// Why the run cannot be resumed: HEAD or files changed since it ended. A killed run has saved no state,
/// so everything that is there counts as its own work.
pub fn changed_since_orderly_end(
    run_dir: &RunDir,
    look: impl FnOnce() -> Option<Arc<RawSnapshot>>,
) -> Option<Difference> {
    let end: OrderlyEnd = run_dir.read_json(RunFile::OrderlyEnd)?;
    end.difference(&*look()?)
}

/// Whether later changes to the repository's configuration and hooks are somebody else's.
pub fn was_configured_as_found(run_dir: &RunDir) -> bool {
    let end: Option<OrderlyEnd> = run_dir.read_json(RunFile::OrderlyEnd);
    end.is_some_and(|end| end.is_configured_as_found)
}

/// Removes the saved state. If it stayed and the resumed process were killed, its end would look orderly, and what
/// its agent did to hooks would be taken for somebody's work.
///
/// # Errors
/// When it cannot be removed.
pub fn forget_orderly_end(run_dir: &RunDir) -> anyhow::Result<()> {
    run_dir.delete(RunFile::OrderlyEnd)
}

impl OrderlyEnd {
    fn difference(&self, now: &RawSnapshot) -> Option<Difference> {
        let (then, is) = (place(&self.known), place(&now.known));
        if then != is {
            let what = format!("the run ended with {then}, and now it is {is}");
            let remedy = "start a new run here, or go back to where the run ended and resume it";
            return Some(Difference { what, remedy });
        }
        let left: BTreeMap<&Vec<u8>, &Content> = self.dirty.iter().zip(&self.contents).collect();
        let mut foreign = now.dirty_paths();
        foreign.retain(|path| left.get(path) != Some(&&now.content(path)));
        let mut shown: Vec<String> = foreign.iter().map(|path| display_path(path)).collect();
        if foreign.len() > SHOWN {
            shown.truncate(SHOWN);
            shown.push(format!("and {} more", foreign.len() - SHOWN));
        }
        (!shown.is_empty()).then(|| Difference {
            what: format!(
                "files were changed since the run ended:\n  {}",
                shown.join("\n  ")
            ),
            remedy: "undo that, or commit or stash the changes and start a new run",
        })
    }
}

/// Branch and commit, for a message.
fn place(known: &KnownSnapshot) -> String {
    let branch = known.branch.as_deref().map_or("no branch", |name| {
        name.strip_prefix("refs/heads/").unwrap_or(name)
    });
    match &known.head {
        Head::At(id) => format!("{branch} at {}", short(id)),
        Head::Unborn => format!("{branch} without a commit"),
    }
}
