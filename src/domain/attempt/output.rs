//! The value that the run's last task must return when an output schema is set.

use super::facts::untouched;
use super::moves::{satisfied, verify_or_accept};
use super::phases::join_attempt;
use super::{Policy, Step, TaskState, TurnEnded, TurnPurpose, VerifyPurpose};
use crate::assess::AssessmentKind;
use crate::attempt::nudge::NudgeKind;

/// After a turn that was asked only for the value and changed nothing: judges the work as before.
pub(super) fn after_output(policy: &Policy, state: &TaskState, turn: &TurnEnded) -> Option<Step> {
    use AssessmentKind as K;
    let is_asked = matches!(
        state.purpose,
        Some(TurnPurpose::Nudge {
            kind: NudgeKind::Output,
            ..
        })
    );
    let is_idle = matches!(
        turn.assessment.kind,
        K::AwaitingInput
            | K::ReportsBlocked
            | K::AlreadySatisfied
            | K::ClaimsDone
            | K::PlanningOnly
            | K::Empty
            | K::NoChange
    );
    (is_asked && is_idle).then(|| {
        if untouched(state) {
            satisfied(policy, state)
        } else {
            join_attempt(policy, state)
                .unwrap_or_else(|| verify_or_accept(policy, state, VerifyPurpose::Attempt))
        }
    })
}
