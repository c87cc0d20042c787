//! How a run left the repository when it ended in order, so that it is taken up only there: what
//! somebody else did since is not the agent's work.

use crate::domain::outcome::short;
use crate::domain::snapshot::{Head, KnownSnapshot};
use crate::git::{RawSnapshot, display_path};
use crate::run::emitter::Emitter;
use crate::run::layout::RunFile;
use crate::run::setup::Setup;
use crate::run::work_tree::WorkTree;
use serde::{Deserialize, Serialize};

/// Most files that the refusal names.
const SHOWN: usize = 20;

/// The repository at the end of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct OrderlyEnd {
    known: KnownSnapshot,
    dirty: Vec<Vec<u8>>,
}

/// Keeps how the run leaves the repository.
pub fn note_orderly_end(setup: &Setup, tree: &mut WorkTree, emit: &mut Emitter<'_>) {
    let (Some(raw), _) = tree.last_snapshot(emit) else {
        return;
    };
    let end = OrderlyEnd {
        dirty: raw.dirty_paths(),
        known: raw.known.clone(),
    };
    let kept = setup.run_dir.write_json(RunFile::OrderlyEnd, &end);
    emit.unless_kept(kept);
}

/// What keeps the run from being taken up: HEAD was moved or other files were changed since it
/// ended. A run that was killed has not said how it left the repository; what is there then
/// counts as its own. From here on that is so again.
pub fn changed_since_orderly_end(
    setup: &Setup,
    tree: &mut WorkTree,
    emit: &mut Emitter<'_>,
) -> Option<String> {
    let end: OrderlyEnd = setup.run_dir.read_json(RunFile::OrderlyEnd)?;
    tree.recall_artifacts(emit);
    let strange = tree.snapshot(emit).0.and_then(|now| end.strange(&now));
    if strange.is_none() {
        // A file that stays would only make a later, killed process look like an orderly one.
        setup.run_dir.remove(RunFile::OrderlyEnd);
    }
    strange
}

impl OrderlyEnd {
    fn strange(&self, now: &RawSnapshot) -> Option<String> {
        let (then, is) = (place(&self.known), place(&now.known));
        if then != is {
            return Some(format!("the run left {then}, and now it is {is}"));
        }
        let foreign: Vec<String> = now
            .dirty_paths()
            .into_iter()
            .filter(|path| !self.dirty.contains(path))
            .map(|path| display_path(&path))
            .collect();
        let more = match foreign.len().saturating_sub(SHOWN) {
            0 => String::new(),
            more => format!("\n  and {more} more"),
        };
        let shown: Vec<String> = foreign.into_iter().take(SHOWN).collect();
        (!shown.is_empty()).then(|| {
            format!(
                "files were changed since the run ended:\n  {}{more}",
                shown.join("\n  ")
            )
        })
    }
}

/// Branch and commit for a person.
fn place(known: &KnownSnapshot) -> String {
    let branch = known.branch.as_deref().map_or("no branch", |name| {
        name.strip_prefix("refs/heads/").unwrap_or(name)
    });
    match &known.head {
        Head::At(id) => format!("{branch} at {}", short(id)),
        Head::Unborn => format!("{branch} without a commit"),
    }
}
