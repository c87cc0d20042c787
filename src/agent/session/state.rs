//! The state of a session: a linear fold over its history.

use super::loops::{Loops, Verdict};
use super::{
    FormatError, Limits, ModelRequest, Note, OpenCall, SessionExit, Stagnation, Step, Suppressed,
    Thresholds,
};
use crate::context::Message;
use crate::ledger::Ledger;
use crate::model_error::ModelError;
use sprag_domain::agent::Usage;
use std::collections::{BTreeMap, BTreeSet};

/// The progress of the repair turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Repair {
    /// It was not needed so far.
    #[default]
    NotAsked,
    /// Its message was sent; one response is due.
    Asked,
    /// The response arrived and was applied completely.
    Answered,
}

/// The last event, on which the next decision depends.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(super) enum Last {
    /// Nothing yet.
    #[default]
    Begin,
    /// A response arrived. It is applied completely once no call is open.
    Step,
    /// The API failed.
    Failed(ModelError),
    /// A wait ended.
    Waited,
}

/// The final message of a response.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct FinalWords {
    pub text: String,
    /// Whether it reports failure in the required form.
    pub failed: bool,
    /// Whether it says in the required form, with a reason, that nothing needed doing.
    pub satisfied: bool,
}

/// The facts so far about the response that is being applied.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct OpenStep {
    pub finished_before: usize,
    pub changed: bool,
    /// Whether it did anything other than read.
    pub acted: bool,
    pub edit_failed: bool,
    pub read: BTreeSet<String>,
    pub calls: Option<u64>,
    /// Whether it contains a call.
    pub called: bool,
    pub words: BTreeSet<String>,
}

/// The counters of a session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Counts {
    /// Responses, including those of sessions on a single file.
    pub steps: u32,
    /// Tool calls, including those of sessions on a single file.
    pub tool_calls: u32,
    /// How often a final message was not accepted.
    pub final_suppressed: u32,
    /// Repair messages.
    pub repair_turns: u32,
    /// The highest stagnation score.
    pub stagnation_score_max: u32,
    /// Requests that demanded an edit.
    pub forced_mode_steps: u32,
    /// Sessions on a single file.
    pub fix_slices: u32,
    /// Steps that only read.
    pub read_only_steps: u32,
    /// Consecutive responses of which nothing could be carried out.
    pub format_errors: u32,
    /// Consecutive API failures.
    pub failures: u32,
    /// Requests that the API rejected as too long.
    pub refusals: u32,
}

/// Everything that the next decision depends on.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct State {
    pub(super) thresholds: Thresholds,
    pub(super) words_suffice: bool,
    /// The plan.
    pub(crate) ledger: Ledger,
    /// The files changed so far.
    pub(crate) changed: BTreeSet<String>,
    pub(crate) counts: Counts,
    /// The usage so far, as far as it is known.
    pub(crate) usage: Usage,
    /// The session's clock, in milliseconds.
    pub(crate) elapsed_ms: u64,
    pub(super) last: Last,
    /// The calls that are still to be carried out.
    pub(crate) open: Vec<OpenCall>,
    pub(super) answers: Vec<Message>,
    pub(super) step: OpenStep,
    pub(super) final_words: Option<FinalWords>,
    /// The last response, if it was only text and did not count as the final message.
    pub(super) plain_words: Option<FinalWords>,
    pub(super) format_error: Option<FormatError>,
    pub(super) stagnation: Stagnation,
    pub(super) loops: Loops,
    pub(super) repair: Repair,
    pub(super) suppressed: BTreeSet<Suppressed>,
    pub(super) edit_failures: BTreeMap<String, u32>,
    pub(super) sliced: BTreeSet<String>,
    /// The file of the session on a single file that was not reported to the model yet, and whether it was
    /// changed.
    pub(super) slice_ended: Option<(String, bool)>,
    pub(super) cancelled: bool,
}

impl State {
    /// The state before the first event.
    pub fn new(limits: &Limits) -> Self {
        Self {
            thresholds: limits.thresholds.clone(),
            words_suffice: limits.words_suffice,
            ..Self::default()
        }
    }

    /// Input and output tokens; `None` if the provider counted none.
    pub fn tokens(&self) -> Option<u64> {
        let counted = [self.usage.tokens_in, self.usage.tokens_out];
        counted.into_iter().flatten().reduce(u64::saturating_add)
    }

    /// The stagnation score, from 0 to 4.
    pub fn score(&self) -> u32 {
        self.stagnation.score(&self.thresholds)
    }

    /// The number of steps without progress.
    pub fn idle_steps(&self) -> u32 {
        self.stagnation.idle_steps()
    }

    /// The final message of the last response, if it had one, or its plain text.
    pub fn final_message(&self) -> Option<&str> {
        let words = self.final_words.as_ref().or(self.plain_words.as_ref());
        words.map(|words| words.text.as_str())
    }

    /// The API's last error, if nothing happened after it.
    pub fn model_error(&self) -> Option<&ModelError> {
        match &self.last {
            Last::Failed(error) => Some(error),
            _ => None,
        }
    }

    /// Whether something cannot be done: an item is blocked, or the final message reports failure.
    pub fn is_blocked(&self) -> bool {
        self.ledger.blocked() > 0 || self.final_words.as_ref().is_some_and(|words| words.failed)
    }

    /// Whether the plan alone shows that nothing needed doing: every item is done or already satisfied, and no
    /// file was changed.
    pub fn needed_no_change(&self, exit: SessionExit) -> bool {
        exit == SessionExit::Submitted
            && self.changed.is_empty()
            && self.ledger.is_complete()
            && !self.is_blocked()
    }

    /// Whether everything is finished: every item of the plan or, without a plan, the work that the model
    /// submitted.
    pub fn is_complete(&self, exit: SessionExit) -> bool {
        if self.ledger.planned() > 0 {
            return self.ledger.is_complete();
        }
        let words = self.final_words.as_ref();
        let satisfied = words.is_some_and(|words| words.satisfied);
        exit == SessionExit::Submitted && (!self.changed.is_empty() || satisfied)
    }

    /// Why the final message is not accepted yet. Each reason applies only once.
    pub(super) fn suppression(&self) -> Option<Suppressed> {
        let words = self.final_words.as_ref().filter(|words| !words.failed)?;
        let nothing = !self.words_suffice
            && self.changed.is_empty()
            && self.ledger.finished() == 0
            && self.ledger.blocked() == 0
            && !words.satisfied;
        let reasons = [
            (Suppressed::EditFailed, self.step.edit_failed),
            (Suppressed::ItemsLeft, self.ledger.remaining() > 0),
            (Suppressed::NothingChanged, nothing),
        ];
        reasons
            .into_iter()
            .find(|(reason, holds)| *holds && !self.suppressed.contains(reason))
            .map(|(reason, _)| reason)
    }

    /// Whether there is too little progress to continue.
    pub(super) fn is_stagnant(&self) -> bool {
        let remaining = self.ledger.remaining();
        self.loops.verdict() == Verdict::Stop
            || self.stagnation.is_stagnant(&self.thresholds, remaining)
    }

    /// Records that a step is about to run.
    pub(super) fn begin(&mut self, step: &Step) {
        match step {
            Step::AskModel(request) => self.ask(request),
            Step::FixSlice(slice) => {
                self.counts.fix_slices += 1;
                self.edit_failures.remove(&slice.file);
                self.sliced.insert(slice.file.clone());
            }
            Step::ApplyTools { .. } | Step::Wait { .. } | Step::End { .. } => {}
        }
    }

    fn ask(&mut self, request: &ModelRequest) {
        self.answers.clear();
        self.counts.refusals = request.refusals;
        for note in &request.notes {
            match note {
                Note::FinalSuppressed { why, .. } => {
                    self.suppressed.insert(*why);
                    self.counts.final_suppressed += 1;
                }
                Note::Forced { .. } => self.counts.forced_mode_steps += 1,
                Note::Repair { .. } => {
                    self.repair = Repair::Asked;
                    self.counts.repair_turns += 1;
                }
                Note::SliceEnded { .. } => self.slice_ended = None,
                Note::FormatError { .. } | Note::LoopWarning { .. } | Note::GoOn { .. } => {}
            }
        }
    }
}
