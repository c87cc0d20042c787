//! How a run begins.

use crate::git::Repo;
use crate::github::request::RunRequest;
use crate::run::begin::earlier::Earlier;
use crate::run::begin::prepare::Prepared;
use crate::run::state::cached_repo::CachedRepo;
use crate::run::state::directory::RunDir;
use crate::run::state::lock::RunLock;

/// The place of a run: its directory, and the repository with the private git directory.
pub(crate) struct Place {
    pub(crate) run_dir: RunDir,
    pub(crate) run_id: String,
    pub(crate) repo: CachedRepo,
}

/// How a run begins.
pub(crate) enum Beginning {
    /// With a new run directory.
    New,
    /// Where an earlier process on this machine stopped.
    Resumed(Place, Earlier),
    /// Where a process on another machine stopped.
    Restored(Place, Earlier),
}

impl Beginning {
    /// The place of the run, if it exists already.
    pub(crate) fn place(&self) -> Option<&Place> {
        match self {
            Self::New => None,
            Self::Resumed(place, _) | Self::Restored(place, _) => Some(place),
        }
    }

    /// The state that an earlier process reached, if there was one.
    pub(crate) fn earlier(&self) -> Option<&Earlier> {
        match self {
            Self::New => None,
            Self::Resumed(_, earlier) | Self::Restored(_, earlier) => Some(earlier),
        }
    }

    /// The same to change.
    pub(crate) fn place_mut(&mut self) -> Option<&mut Place> {
        match self {
            Self::New => None,
            Self::Resumed(place, _) | Self::Restored(place, _) => Some(place),
        }
    }

    /// The repository as the earlier process left it.
    pub(crate) fn repo(&self) -> Option<&Repo> {
        self.place().map(|place| &*place.repo)
    }
}

/// A run that was asked for, with everything that it needs.
pub(crate) struct Ready {
    pub(crate) prepared: Prepared,
    pub(crate) request: Option<RunRequest>,
    pub(crate) beginning: Beginning,
    /// Held until the run ends. A dry run needs none.
    pub(crate) lock: Option<RunLock>,
}
