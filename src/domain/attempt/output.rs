//! The value that the run's last task must return when an output schema is set.

use super::facts::untouched;
use super::moves::{satisfied, verify_or_accept};
use super::phases::join_attempt;
use super::{Policy, Step, TaskState, TurnEnded, VerifyPurpose};

/// After a turn that was asked only for the value and changed nothing: judges the work as before.
pub(super) fn after_output(policy: &Policy, state: &TaskState, turn: &TurnEnded) -> Option<Step> {
    let is_idle = turn.assessment.kind.is_idle();
    (state.is_asked_for_output() && is_idle).then(|| {
        if untouched(state) {
            satisfied(policy, state)
        } else {
            join_attempt(policy, state)
                .unwrap_or_else(|| verify_or_accept(policy, state, VerifyPurpose::Attempt))
        }
    })
}
