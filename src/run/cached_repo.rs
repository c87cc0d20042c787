//! The last snapshot of the repository, reused only while nothing can have changed it.
//!
//! A snapshot costs several git processes, and a task asks for the state more often than it can have
//! changed. The last one is kept here together with the only way to change the repository, which
//! forgets it, and it is reused while nothing that could write has run since or is still there.
//! Somebody whom Sprag has not started can write at any moment, so whatever is staged, saved or
//! removed by a snapshot is decided by a new one.

use crate::git::{Exempt, GitError, RawSnapshot, Repo};
use crate::process::{Quiescence, quiescence};
use std::collections::BTreeSet;
use std::ops::Deref;
use std::sync::Arc;

/// A repository and its last snapshot. What only reads is called as on the repository itself.
#[derive(Debug)]
pub struct CachedRepo {
    repo: Repo,
    last: Option<Last>,
}

/// A snapshot, and what it depends on besides the repository.
#[derive(Debug)]
struct Last {
    raw: Arc<RawSnapshot>,
    check_artifacts: BTreeSet<Vec<u8>>,
    quiescent: Quiescence,
}

impl CachedRepo {
    /// A repository of which there is no snapshot yet.
    pub fn new(repo: Repo) -> Self {
        Self { repo, last: None }
    }

    /// The repository, to be changed: its snapshot is forgotten.
    pub fn change(&mut self) -> &mut Repo {
        self.last = None;
        &mut self.repo
    }

    /// The repository, to have credentials taken out of its configuration or put back, which no snapshot
    /// depends on.
    pub fn change_credentials(&mut self) -> &mut Repo {
        &mut self.repo
    }

    /// The repository as it is now. `progress_ignore` and the plan of `exempt` are the same
    /// throughout a run.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn snapshot(&mut self, exempt: &Exempt) -> Result<Arc<RawSnapshot>, GitError> {
        self.last = None;
        let before = quiescence();
        let raw = Arc::new(self.repo.snapshot(exempt)?);
        self.last = before
            .filter(|before| quiescence() == Some(*before))
            .map(|quiescent| Last {
                raw: Arc::clone(&raw),
                check_artifacts: exempt.check_artifacts.clone(),
                quiescent,
            });
        Ok(raw)
    }

    /// The last snapshot, where nothing of ours can have changed the repository since; else a new one.
    ///
    /// # Errors
    /// When it cannot be read.
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
