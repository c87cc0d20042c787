//! What was last seen of the repository, believed only while nothing can have changed it.
//!
//! A look costs several git processes, and a task asks for the state more often than it can have
//! changed. A look is kept here together with the only way to change the repository, which forgets
//! it, and it is believed while nothing that could write has run since or is still there. Somebody
//! whom Sprag has not started can write at any moment, so whatever is staged, saved or removed by a
//! look is decided by a new one.

use super::Performer;
use crate::domain::snapshot::Snapshot;
use crate::git::{Exempt, GitError, RawSnapshot, Repo};
use crate::process::{Calm, calm};
use std::collections::BTreeSet;
use std::ops::Deref;
use std::sync::Arc;

/// A repository and the last look at it. What only reads is called as on the repository itself.
#[derive(Debug)]
pub struct Watched {
    repo: Repo,
    seen: Option<Seen>,
}

/// A look, and what it depends on besides the repository.
#[derive(Debug)]
struct Seen {
    raw: Arc<RawSnapshot>,
    droppings: BTreeSet<Vec<u8>>,
    calm: Calm,
}

impl Watched {
    /// A repository at which nobody has looked yet.
    pub fn new(repo: Repo) -> Self {
        Self { repo, seen: None }
    }

    /// The repository, to be changed: what was seen of it is forgotten.
    pub fn change(&mut self) -> &mut Repo {
        self.seen = None;
        &mut self.repo
    }

    /// Looks at the repository as it is now. `progress_ignore` and the plan of `exempt` are the same
    /// throughout a run.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn look(&mut self, exempt: &Exempt) -> Result<Arc<RawSnapshot>, GitError> {
        self.seen = None;
        let before = calm();
        let raw = Arc::new(self.repo.snapshot(exempt)?);
        self.seen = before
            .filter(|before| calm() == Some(*before))
            .map(|calm| Seen {
                raw: Arc::clone(&raw),
                droppings: exempt.droppings.clone(),
                calm,
            });
        Ok(raw)
    }

    /// What was seen last, where nothing of ours can have changed it since; else a new look.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn last_look(&mut self, exempt: &Exempt) -> Result<Arc<RawSnapshot>, GitError> {
        match &self.seen {
            Some(seen) if seen.still_holds(calm(), exempt) => Ok(Arc::clone(&seen.raw)),
            _ => self.look(exempt),
        }
    }
}

impl Seen {
    fn still_holds(&self, now: Option<Calm>, exempt: &Exempt) -> bool {
        now == Some(self.calm) && self.droppings == exempt.droppings
    }
}

impl Deref for Watched {
    type Target = Repo;

    fn deref(&self) -> &Repo {
        &self.repo
    }
}

impl Performer<'_> {
    /// The state of the repository now, and the same as a value of the domain. What a person should
    /// know of it is said.
    pub fn look(&mut self) -> (Option<Arc<RawSnapshot>>, Snapshot) {
        let seen = self.repo.look(&self.exempt());
        self.told(seen)
    }

    /// As [`Self::look`], but for what was seen last where nothing of ours can have changed it.
    /// Nothing may be staged, saved or removed by it.
    pub fn last_look(&mut self) -> (Option<Arc<RawSnapshot>>, Snapshot) {
        let exempt = self.exempt();
        let seen = self.repo.last_look(&exempt);
        self.told(seen)
    }

    fn told(
        &mut self,
        seen: Result<Arc<RawSnapshot>, GitError>,
    ) -> (Option<Arc<RawSnapshot>>, Snapshot) {
        match seen {
            Ok(raw) => {
                for warning in &raw.warnings {
                    self.emit.warn_once(warning);
                }
                let known = Snapshot::Known(raw.known.clone());
                (Some(raw), known)
            }
            Err(error) => {
                let why = format!("{:#}", anyhow::Error::from(error));
                self.emit.warn_once(&format!(
                    "the state of the repository could not be read ({why}); progress detection is off for this turn"
                ));
                (None, Snapshot::Unknown { why })
            }
        }
    }
}
