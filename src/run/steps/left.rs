//! How a run left the repository when it ended in order, so that it is taken up only there: what
//! somebody else did since is not the agent's work.

use super::Performer;
use crate::domain::outcome::short;
use crate::domain::snapshot::{Head, KnownSnapshot};
use crate::git::{RawSnapshot, display_path};
use crate::run::layout::RunFile;
use serde::{Deserialize, Serialize};

/// Most files that the refusal names.
const SHOWN: usize = 20;

/// The repository at the end of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Left {
    known: KnownSnapshot,
    dirty: Vec<Vec<u8>>,
}

impl Performer<'_> {
    /// Keeps how the run leaves the repository.
    pub fn note_left(&mut self) {
        let (Some(raw), _) = self.last_look() else {
            return;
        };
        let left = Left {
            dirty: raw.dirty_paths(),
            known: raw.known.clone(),
        };
        if let Err(error) = self.run_dir.write_json(RunFile::OrderlyEnd, &left) {
            self.warn(format!("{error:#}"));
        }
    }

    /// What keeps the run from being taken up: HEAD was moved or other files were changed since it
    /// ended. A run that was killed has not said how it left the repository; what is there then
    /// counts as its own. From here on that is so again.
    pub fn changed_since_left(&mut self) -> Option<String> {
        let left: Left = self.run_dir.read_json(RunFile::OrderlyEnd)?;
        self.recall_droppings();
        let strange = self.look().0.and_then(|now| left.strange(&now));
        if strange.is_none() {
            // A file that stays would only make a later, killed process look like an orderly one.
            self.run_dir.remove(RunFile::OrderlyEnd);
        }
        strange
    }
}

impl Left {
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
