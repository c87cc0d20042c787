//! Applies an observation to the state.

use super::loops::Trace;
use super::stagnation::StepFacts;
use super::state::{FinalWords, Last, OpenStep};
use super::{
    FormatError, Observation, OpenCall, Repair, Response, SliceEnded, State, StopReason, ToolResult,
};
use crate::context::Message;
use crate::fence;
use crate::ledger::{Applied, Mode, same_file};
use crate::plan_text::{self, PlanBlock};
use crate::texts;
use crate::tool::{PlanItem, ToolCall, ToolRequest};
use crate::words::words;
use sprag_domain::assess::message::{MessageClass, failed_report, read_message};
use sprag_domain::text::first_line;
use std::hash::{DefaultHasher, Hash, Hasher};

impl State {
    pub(super) fn observe(&mut self, observation: &Observation) {
        match observation {
            Observation::ModelResponded(response) => self.responded(response),
            Observation::ModelFailed { error, elapsed_ms } => {
                self.clock(*elapsed_ms);
                self.counts.failures += 1;
                self.last = Last::Failed(error.clone());
            }
            Observation::ToolsApplied {
                results,
                elapsed_ms,
            } => {
                self.clock(*elapsed_ms);
                self.tools_applied(results);
            }
            Observation::SliceEnded(ended) => self.slice_ended(ended),
            Observation::Waited { elapsed_ms } => {
                self.clock(*elapsed_ms);
                self.last = Last::Waited;
            }
            Observation::Cancelled => self.cancelled = true,
        }
    }

    /// Records a response: usage, plan blocks, calls, final message. Without a call that accesses the work
    /// tree, the step ends at once.
    fn responded(&mut self, response: &Response) {
        self.clock(response.elapsed_ms);
        self.usage.add(&response.usage);
        self.counts.steps += 1;
        self.counts.failures = 0;
        self.last = Last::Step;
        let requests: Vec<_> = response.calls.iter().map(ToolRequest::of).collect();
        self.step = OpenStep {
            finished_before: self.ledger.finished(),
            calls: digest(response, &requests),
            called: !response.calls.is_empty(),
            ..OpenStep::default()
        };
        self.final_words = None;
        self.plain_words = None;
        let scan = fence::scan(&response.text);
        self.step.words = words(&format!("{}\n{}", response.reasoning, scan.prose));
        let blocks: Vec<PlanBlock> = scan.blocks.iter().map(PlanBlock::of).collect();
        for block in &blocks {
            self.plan_block(block, &scan.prose);
        }
        let mut understood = !blocks.is_empty();
        for (call, request) in response.calls.iter().zip(requests) {
            self.counts.tool_calls = self.counts.tool_calls.saturating_add(1);
            understood |= self.call(call, request, &scan.prose);
        }
        if response.calls.is_empty() && self.final_words.is_none() {
            understood |= self.plain_text(&scan.prose, response.stop);
        }
        if understood {
            self.plain_words = None;
            self.format_error = None;
            self.counts.format_errors = 0;
        } else {
            self.format_error = Some(FormatError::of(response));
            self.counts.format_errors += 1;
        }
        if self.open.is_empty() {
            self.close_step();
        }
    }

    fn plan_block(&mut self, block: &PlanBlock, prose: &str) -> Applied {
        if let PlanBlock::Final { text } = block {
            self.final_words = Some(FinalWords::of_or(text, prose));
        }
        let mode = match self.repair {
            Repair::Asked => Mode::Repair,
            Repair::NotAsked | Repair::Answered => Mode::Normal,
        };
        self.ledger.apply(block, &self.changed, mode)
    }

    /// Records a call. A call that accesses the work tree is opened, any other is answered. Returns whether
    /// the call was understood.
    fn call(&mut self, call: &ToolCall, request: Result<ToolRequest, String>, prose: &str) -> bool {
        let (ok, text) = match request {
            Ok(ToolRequest::UpdatePlan { items, replace }) => {
                let block = block_of(&items, replace || self.ledger.items().is_empty());
                let applied = self.plan_block(&block, "");
                (true, texts::plan_answer(&self.ledger, &applied))
            }
            Ok(ToolRequest::Finish { summary }) => {
                self.final_words = Some(FinalWords::of_or(summary.trim(), prose));
                (true, texts::NOTED.to_owned())
            }
            Ok(request) => {
                self.step.acted |= !request.is_read_only();
                self.open.push(OpenCall {
                    id: call.id.clone(),
                    request,
                });
                return true;
            }
            Err(why) => (false, why),
        };
        self.answers.push(Message::ToolResult {
            id: call.id.clone(),
            name: call.name.clone(),
            ok,
            output: text,
        });
        ok
    }

    /// Most models end their work with plain text, with or without a plan update before it. Such a response
    /// ends the session if it has one of the two forms that the prompt defines for that, or if no item of a
    /// plan is open, something was done, and the text announces nothing more.
    fn plain_text(&mut self, prose: &str, stop: StopReason) -> bool {
        let words = FinalWords::of(prose.trim());
        if words.text.is_empty() || stop != StopReason::End {
            return false;
        }
        let worked = self.words_suffice || !self.changed.is_empty() || self.ledger.finished() > 0;
        let over = worked && self.ledger.remaining() == 0 && !announces(&words.text);
        let counts = words.failed || words.satisfied || over;
        let place = if counts {
            &mut self.final_words
        } else {
            &mut self.plain_words
        };
        *place = Some(words);
        counts
    }

    fn tools_applied(&mut self, results: &[ToolResult]) {
        let calls = std::mem::take(&mut self.open);
        for (call, result) in calls.iter().zip(results) {
            self.step.read.extend(result.read.iter().cloned());
            self.files_changed(&result.changed);
            match call.request.edits() {
                Some(file) if result.ok => drop(self.edit_failures.remove(file)),
                Some(file) => {
                    self.step.edit_failed = true;
                    *self.edit_failures.entry(file.to_owned()).or_default() += 1;
                }
                None => {}
            }
        }
        self.close_step();
    }

    fn files_changed(&mut self, files: &[String]) {
        for file in files {
            self.step.changed = true;
            self.ledger.file_changed(file);
            self.changed.insert(file.clone());
        }
    }

    /// Closes the step once its response has been applied completely.
    fn close_step(&mut self) {
        let finished = self.ledger.finished() > self.step.finished_before;
        let facts = StepFacts {
            changed: self.step.changed,
            finished,
            read_only: !self.step.changed && !self.step.acted && !finished,
            read: std::mem::take(&mut self.step.read),
            open_items: self.ledger.remaining() > 0,
        };
        self.counts.read_only_steps += u32::from(facts.read_only);
        self.stagnation.add(&facts);
        self.counts.stagnation_score_max = self.counts.stagnation_score_max.max(self.score());
        let trace = Trace {
            calls: self.step.calls,
            words: std::mem::take(&mut self.step.words),
            progress: facts.changed || finished,
        };
        self.loops.add(trace, &self.thresholds);
        if self.repair == Repair::Asked {
            self.repair = Repair::Answered;
        }
    }

    fn slice_ended(&mut self, ended: &SliceEnded) {
        self.clock(ended.elapsed_ms);
        self.usage.add(&ended.usage);
        self.counts.steps = self.counts.steps.saturating_add(ended.steps);
        self.counts.tool_calls = self.counts.tool_calls.saturating_add(ended.tool_calls);
        self.files_changed(&ended.changed);
        let mut changed = ended.changed.iter();
        let fixed = changed.any(|changed| same_file(changed, &ended.file));
        if fixed {
            self.step.edit_failed = false;
        } else {
            self.ledger.file_blocked(&ended.file);
        }
        if !ended.changed.is_empty() {
            self.stagnation.changed_outside();
        }
        self.slice_ended = Some((ended.file.clone(), fixed));
        self.last = Last::Step;
    }

    fn clock(&mut self, elapsed_ms: u64) {
        self.elapsed_ms = self.elapsed_ms.max(elapsed_ms);
    }
}

/// Whether a text announces further work.
fn announces(text: &str) -> bool {
    matches!(
        read_message(text, false).class,
        MessageClass::PlanningOnly | MessageClass::AwaitingInput
    )
}

impl FormatError {
    fn of(response: &Response) -> Self {
        match (response.calls.len(), response.stop) {
            (0, StopReason::Length) => Self::CutOff,
            (0, StopReason::End | StopReason::Filter) => Self::NoAction,
            _ => Self::BadCalls,
        }
    }
}

impl FinalWords {
    /// The final message, or the prose of the response if it is empty.
    fn of_or(text: &str, prose: &str) -> Self {
        Self::of(if text.is_empty() { prose.trim() } else { text })
    }

    fn of(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            failed: failed_report(text, false).is_some(),
            satisfied: first_line(text).contains("ALREADY_SATISFIED")
                && read_message(text, false).satisfied_why.is_some(),
        }
    }
}

fn block_of(items: &[PlanItem], whole: bool) -> PlanBlock {
    let items = items.iter().take(plan_text::BLOCK_LINES);
    let lines = items
        .filter_map(|item| plan_text::line(item.state, &item.text))
        .collect();
    if whole {
        PlanBlock::Plan { lines }
    } else {
        PlanBlock::Update { lines }
    }
}

/// A digest of the calls and their arguments, or of the text if there is no call.
fn digest(response: &Response, requests: &[Result<ToolRequest, String>]) -> Option<u64> {
    if response.calls.is_empty() && response.text.trim().is_empty() {
        return None;
    }
    let mut hasher = DefaultHasher::new();
    if response.calls.is_empty() {
        response.text.hash(&mut hasher);
    }
    for (call, request) in response.calls.iter().zip(requests) {
        match request {
            Ok(request) => request.hash(&mut hasher),
            Err(_) => format!("{}{:?}", call.name, call.arguments).hash(&mut hasher),
        }
    }
    Some(hasher.finish())
}
