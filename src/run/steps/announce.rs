//! Emits what comes next before it happens.

use crate::domain::attempt::{Last, Step, TurnPurpose};
use crate::domain::event::{EventKind, RetryKind, RetryLine};
use crate::domain::prompt::NudgeKind;
use crate::domain::text::one_line;
use crate::run::state::emitter::Emitter;
use crate::run::state::parts::TaskRun;

/// The longest reason of an announcement, in characters.
const REASON_CHARS: usize = 300;

/// Sets the context of the following events, and announces nudges, retries and waits.
pub fn announce(emit: &mut Emitter<'_>, run: &TaskRun<'_>, step: &Step) {
    let state = &run.journal.state;
    let key = match step {
        Step::RunAgent { key, .. } => Some(*key),
        _ => state.key,
    };
    let phase = key.and_then(|key| key.name);
    // An announcement belongs to the attempt that caused it.
    let task = Some(run.task.id.as_str());
    emit.at(task, Some(state.attempt()), Some(state.turns()));
    emit.in_phase(phase);
    if let Some(line) = scheduled(run, step) {
        emit.emit(EventKind::RetryScheduled(Box::new(line)));
    }
    let attempt = key.map_or(1, |key| key.attempt);
    emit.at(task, Some(attempt), key.map(|key| key.turn));
    emit.in_phase(phase);
}

fn scheduled(run: &TaskRun<'_>, step: &Step) -> Option<RetryLine> {
    let state = &run.journal.state;
    // A repeated turn after a resume or a wait was announced when it was decided.
    if matches!(state.last, Last::Resumed(_) | Last::Waited) {
        return None;
    }
    let reason = match &state.last {
        Last::Turn(turn) => turn.assessment.detail.clone(),
        Last::Verified(_, ended) => {
            let error = ended.errors.first().map(|error| format!(": {error}"));
            let checks = ended.failing_checks.join(", ");
            format!("{checks} failed{}", error.unwrap_or_default())
        }
        Last::HookRejected(message) => one_line(message, REASON_CHARS),
        _ => String::new(),
    };
    let (key, purpose) = match step {
        Step::RunAgent { key, purpose } => (key, purpose),
        Step::Wait { ms, why } => {
            let (n, of) = (state.waits + 1, run.policy.waits);
            return Some(RetryLine {
                delay_ms: *ms,
                ..RetryLine::new(RetryKind::Wait, n, of, why)
            });
        }
        _ => return None,
    };
    let mut line = match purpose {
        TurnPurpose::Nudge {
            n,
            kind: NudgeKind::Output,
        } => {
            let reason = match &state.output {
                Some(Err(why)) => why.clone(),
                _ => String::new(),
            };
            let nudges = run.row(*key).nudges;
            return Some(RetryLine::new(RetryKind::Output, *n, nudges, reason));
        }
        TurnPurpose::Nudge { n, kind } => {
            let of = nudges_of(run, key.phase, *n, *kind);
            let reason = kind.reason().map_or(reason, str::to_owned);
            RetryLine::new(RetryKind::Nudge, *n, of, reason)
        }
        TurnPurpose::Retry { .. } => {
            let of = run.config.settings.max_retries;
            RetryLine::new(RetryKind::Retry, key.attempt - 1, of, reason)
        }
        TurnPurpose::Implement | TurnPurpose::Phase { .. } => return None,
    };
    if let Last::Turn(turn) = &state.last {
        line.indicators.clone_from(&turn.assessment.indicators);
    }
    Some(line)
}

/// The number of possible nudges. A turn that claims a result is nudged only once, any other until the
/// budget of its phase is spent.
pub(super) fn nudges_of(run: &TaskRun<'_>, phase: usize, n: u32, kind: NudgeKind) -> u32 {
    let row = run.policy.phases.get(phase);
    let row = row.filter(|_| !kind.shows_unchanged());
    row.map_or(n, |row| row.nudges)
}
