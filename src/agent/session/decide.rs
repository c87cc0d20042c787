//! Decides the next step of a session.

use super::loops::Verdict;
use super::state::Last;
use super::telemetry::slice_limits;
use super::{Limits, ModelRequest, Note, Repair, SessionExit, Slice, State, Step, Suppressed};
use crate::ledger::{Item, same_file};
use crate::model_error::{ModelError, Remedy};

/// The maximum number of items that a repair message lists.
const LISTED_ITEMS: usize = 10;

/// The next step of a session.
///
/// Every limit is checked before a message is composed, so the model never receives a message that it cannot
/// answer.
pub fn decide(limits: &Limits, state: &State) -> Step {
    if state.cancelled {
        return end(SessionExit::Cancelled);
    }
    if !state.open.is_empty() {
        return Step::ApplyTools {
            calls: state.open.clone(),
        };
    }
    match &state.last {
        Last::Begin | Last::Waited => {
            over_limit(limits, state).map_or_else(|| ask(state, Vec::new()), end)
        }
        Last::Failed(error) => after_failure(limits, state, error),
        Last::Step => after_step(limits, state),
    }
}

/// The step after a response was applied completely.
fn after_step(limits: &Limits, state: &State) -> Step {
    let suppressed = state.suppression();
    if state.final_words.is_some() && suppressed.is_none() {
        return end(SessionExit::Submitted);
    }
    if state.repair == Repair::Answered {
        return end(after_repair(state));
    }
    if let Some(exit) = over_limit(limits, state) {
        return end(exit);
    }
    if state.counts.format_errors >= limits.format_errors.max(1) {
        // A model that only writes text has given its final message; the repository shows what it is worth.
        return end(match state.plain_words {
            Some(_) => SessionExit::Submitted,
            None => SessionExit::RepeatedFormatError,
        });
    }
    if let Some(slice) = slice_due(limits, state) {
        return Step::FixSlice(slice);
    }
    ask(state, notes(state, suppressed))
}

/// How the session ends after the response to the repair message, which is always its last.
fn after_repair(state: &State) -> SessionExit {
    if state.final_words.is_some() || state.ledger.is_complete() {
        SessionExit::Submitted
    } else {
        SessionExit::Stalled
    }
}

fn notes(state: &State, suppressed: Option<Suppressed>) -> Vec<Note> {
    let next = || state.ledger.next().map(|item| item.text.clone());
    let mut notes = Vec::new();
    notes.extend(suppressed.map(|why| Note::FinalSuppressed {
        why,
        remaining: state.ledger.remaining(),
        next: next(),
        unchanged: state.changed.is_empty(),
    }));
    notes.extend(state.format_error.map(|why| Note::FormatError { why }));
    notes.extend(
        state
            .slice_ended
            .clone()
            .map(|(file, changed)| Note::SliceEnded { file, changed }),
    );
    if state.is_stagnant() {
        notes.push(Note::Repair {
            open: open_items(state, |_| true),
            unchanged: state.changed.is_empty(),
        });
        return notes;
    }
    match state.loops.verdict() {
        Verdict::Warn(kind) => notes.push(Note::LoopWarning {
            kind,
            strong: false,
        }),
        Verdict::WarnHarder(kind) => notes.push(Note::LoopWarning { kind, strong: true }),
        Verdict::Fine | Verdict::Stop => {}
    }
    if state.score() >= state.thresholds.forced {
        notes.push(Note::Forced { next: next() });
    }
    if notes.is_empty() && !state.step.called {
        notes.push(Note::GoOn { next: next() });
    }
    notes
}

fn ask(state: &State, notes: Vec<Note>) -> Step {
    Step::AskModel(ModelRequest {
        answers: state.answers.clone(),
        notes,
        refusals: state.counts.refusals,
    })
}

fn after_failure(limits: &Limits, state: &State, error: &ModelError) -> Step {
    let failures = state.counts.failures;
    let allowed = match error.remedy() {
        Remedy::Wait => limits.waits,
        Remedy::Once => limits.waits.min(1),
        Remedy::Stop => 0,
        Remedy::Shrink if state.counts.refusals < limits.shrinks => {
            return match over_limit(limits, state) {
                Some(exit) => end(exit),
                None => Step::AskModel(ModelRequest {
                    refusals: state.counts.refusals + 1,
                    ..ModelRequest::default()
                }),
            };
        }
        Remedy::Shrink => 0,
    };
    let ms = error.wait_ms(failures);
    if failures > allowed || state.elapsed_ms.saturating_add(ms) >= limits.time_ms {
        return end(SessionExit::ModelError);
    }
    Step::Wait { ms }
}

fn over_limit(limits: &Limits, state: &State) -> Option<SessionExit> {
    let reached = [
        (
            SessionExit::StepLimit,
            state.counts.steps >= limits.steps || state.counts.tool_calls >= limits.tool_calls,
        ),
        (
            SessionExit::TokenLimit,
            matches!((limits.tokens, state.tokens()), (Some(limit), Some(used)) if used >= limit),
        ),
        (
            SessionExit::CostLimit,
            matches!((limits.cost_usd, state.usage.cost_usd), (Some(limit), Some(used)) if used >= limit),
        ),
        (SessionExit::TimeLimit, state.elapsed_ms >= limits.time_ms),
    ];
    let first = reached.into_iter().find(|(_, reached)| *reached);
    first.map(|(exit, _)| exit)
}

/// The session on the file whose edits keep failing, if another such session is allowed.
fn slice_due(limits: &Limits, state: &State) -> Option<Slice> {
    if state.counts.fix_slices >= limits.fix_slices {
        return None;
    }
    let failures = limits.edit_failures.max(1);
    let (file, _) = state
        .edit_failures
        .iter()
        .find(|(file, count)| **count >= failures && !state.sliced.contains(*file))?;
    Some(Slice {
        file: file.clone(),
        items: open_items(state, |item| {
            item.files
                .iter()
                .any(|target| same_file(&target.path, file))
        }),
        limits: slice_limits(limits, state),
    })
}

fn open_items(state: &State, wanted: impl Fn(&Item) -> bool) -> Vec<String> {
    let open = state.ledger.open().filter(|item| wanted(item));
    open.take(LISTED_ITEMS)
        .map(|item| item.text.clone())
        .collect()
}

fn end(exit: SessionExit) -> Step {
    Step::End { exit }
}
