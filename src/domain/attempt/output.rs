//! The value that the run's last task must return when an output schema is set.

use super::decide::{give_nudge, limit, satisfied, untouched, verify_or_accept};
use super::phases::{join_attempt, row};
use super::{Policy, Step, TaskState, TurnEnded, TurnPurpose, VerifyPurpose};
use crate::assess::AssessmentKind;
use crate::outcome::Outcome;
use crate::output_schema::StructuredOutput;
use crate::prompt::NudgeKind;

/// The step when the required value is missing, before work is accepted or passed to another phase: asks the
/// agent for it, or fails the task when no nudge is left. Returns `None` when nothing is missing.
pub(super) fn without_output(policy: &Policy, state: &TaskState) -> Option<Step> {
    let why = match &state.output {
        _ if !policy.wants_output => return None,
        Some(StructuredOutput::Fits { .. }) => return None,
        Some(StructuredOutput::Misfit { why }) => why.clone(),
        None => "there is no final message".to_owned(),
    };
    if let Some(end) = limit(policy, state) {
        return Some(Step::Finish(end));
    }
    Some(if state.nudges < row(policy, state).nudges {
        give_nudge(policy, state, NudgeKind::Output)
    } else {
        Step::Finish(Outcome::OutputMismatch { why })
    })
}

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
