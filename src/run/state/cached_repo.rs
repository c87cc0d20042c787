//! The last snapshot of the repository, reused only while nothing can have changed the repository.
//!
//! A snapshot costs several git processes, and a task asks for the state more often than it can change.
//! The last snapshot is stored together with the only mutable access to the repository, which discards
//! it. It is reused while no process that could write has run since or is still running. A process that
//! Sprag did not start can write at any moment, so staging, saving and removing always use a new
//! snapshot.

use crate::git::{Exempt, FilterSandbox, GitError, RawSnapshot, Repo, SwapError};
use crate::process::{Quiescence, quiescence};
use std::collections::BTreeSet;
use std::ops::Deref;
use std::sync::Arc;

/// A repository and its last snapshot. Dereferences to the repository for read-only calls.
#[derive(Debug)]
pub struct CachedRepo {
    repo: Repo,
    last: Option<Last>,
}

/// A snapshot and the conditions under which it is valid.
#[derive(Debug)]
struct Last {
    raw: Arc<RawSnapshot>,
    check_artifacts: BTreeSet<Vec<u8>>,
    quiescent: Quiescence,
}

impl CachedRepo {
    /// A repository without a snapshot.
    pub fn new(repo: Repo) -> Self {
        Self { repo, last: None }
    }

    /// Mutable access to the repository. Discards the snapshot.
    pub fn change(&mut self) -> &mut Repo {
        self.last = None;
        &mut self.repo
    }

    /// Mutable access for hiding or restoring credentials in the repository's configuration. Snapshots
    /// do not depend on credentials, so the last one stays valid.
    pub fn change_credentials(&mut self) -> &mut Repo {
        &mut self.repo
    }

    /// Sets how filters are confined from now on.
    pub fn confine_filters(&mut self, sandbox: FilterSandbox) {
        self.repo.confine_filters(sandbox);
    }

    /// Takes a new snapshot. In `exempt`, only the check artifacts may differ from call to call:
    /// `progress_ignore` and the plan are the same throughout a run.
    ///
    /// # Errors
    /// When the repository cannot be read.
    pub fn snapshot(&mut self, exempt: &Exempt) -> Result<Arc<RawSnapshot>, GitError> {
        let before = quiescence();
        let raw = Arc::new(self.change().snapshot(exempt)?);
        self.keep(Arc::clone(&raw), before, exempt);
        Ok(raw)
    }

    /// Restores the work tree after [`Repo::swap_to`]. The state that was found then is the last snapshot.
    ///
    /// # Errors
    /// As [`Repo::swap_back`].
    pub fn swap_back(&mut self, exempt: &Exempt) -> Result<(), SwapError> {
        let before = quiescence();
        if let Some(raw) = self.change().swap_back(exempt)? {
            self.keep(Arc::new(raw), before, exempt);
        }
        Ok(())
    }

    /// Keeps a snapshot, if no process has been able to change the repository since `before` it was taken.
    fn keep(&mut self, raw: Arc<RawSnapshot>, before: Option<Quiescence>, exempt: &Exempt) {
        let still = before.filter(|before| quiescence() == Some(*before));
        self.last = still.map(|quiescent| Last {
            raw,
            check_artifacts: exempt.check_artifacts.clone(),
            quiescent,
        });
    }

    /// The last snapshot if no process started by Sprag can have changed the repository since, else a
    /// new one.
    ///
    /// # Errors
    /// When the repository cannot be read.
    pub fn last_snapshot(&mut self, exempt: &Exempt) -> Result<Arc<RawSnapshot>, GitError> {
        match &self.last {
            Some(last) if last.still_holds(quiescence(), exempt) => Ok(Arc::clone(&last.raw)),
            _ => self.snapshot(exempt),
        }
    }
}

impl Last {
    fn still_holds(&self, now: Option<Quiescence>, exempt: &Exempt) -> bool {
        now == Some(self.quiescent) && self.check_artifacts == exempt.check_artifacts
    }
}

impl Deref for CachedRepo {
    type Target = Repo;

    fn deref(&self) -> &Repo {
        &self.repo
    }
}
