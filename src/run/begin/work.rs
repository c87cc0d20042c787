//! What a run is for.

use crate::domain::continuation::Continuation;
use crate::github::request::RunRequest;
use crate::run::begin::draft_request::DraftRequest;
use crate::run::begin::reviewed_change::ReviewedChange;

/// The work of a run.
#[derive(Debug, Clone, Default)]
pub enum Work {
    /// The tasks of a plan.
    #[default]
    Tasks,
    /// A review of this change.
    Review(ReviewedChange),
    /// The work of other jobs on the plan: their run directories and branches.
    Integration(Vec<String>),
    /// A plan to draft.
    Draft(DraftRequest),
}

impl Work {
    /// Whether an agent works. An integration has no cost, and the other jobs already keep the work.
    pub fn has_agent(&self) -> bool {
        !matches!(self, Self::Integration(_))
    }

    /// The change to review, if the run only reviews.
    pub fn reviewed(&self) -> Option<&ReviewedChange> {
        match self {
            Self::Review(change) => Some(change),
            _ => None,
        }
    }

    /// Whether the run drafts a plan.
    pub fn is_draft(&self) -> bool {
        matches!(self, Self::Draft(_))
    }

    /// How a person continues the run.
    pub(crate) fn continuation(
        &self,
        in_actions: bool,
        request: Option<&RunRequest>,
    ) -> Continuation {
        match self {
            Self::Draft(draft) if !draft.only_shown => Continuation::Anew,
            _ if in_actions => request.map_or(Continuation::BY_WORKFLOW, |request| {
                request.context.continuation()
            }),
            // Somebody who has fixed the findings has moved HEAD, and a resumed run reviews the same change.
            Self::Draft(_) | Self::Review(_) => Continuation::Anew,
            Self::Tasks | Self::Integration(_) => Continuation::Here,
        }
    }
}
