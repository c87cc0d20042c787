//! A running session with its messages.

use super::{Limits, ModelRequest, Observation, Slice, State, Step, decide};
use crate::context::{Budget, Context, Message};
use crate::model_error::ModelErrorKind;
use crate::texts;

/// A running session: its state and its transcript, both folds of its history.
#[derive(Debug, Clone)]
pub struct Session {
    limits: Limits,
    state: State,
    context: Context,
    task: String,
}

impl Session {
    /// A session that has not started.
    pub fn new(limits: Limits, budget: Budget, task: String) -> Self {
        Self::with(limits, Context::new(budget), task)
    }

    /// A session on a single file that has not started.
    pub fn slice(&self, slice: &Slice) -> Self {
        let task = texts::slice_task(slice, &self.task);
        Self::with(slice.limits.clone(), self.context.afresh(), task)
    }

    fn with(limits: Limits, mut context: Context, task: String) -> Self {
        let (system, text) = (texts::SYSTEM.to_owned(), task.clone());
        context.push(Message::System { text: system });
        context.push(Message::Task { text });
        Self {
            state: State::new(&limits),
            limits,
            context,
            task,
        }
    }

    /// The next step. The step counts as started.
    pub fn next_step(&mut self) -> Step {
        let step = decide(&self.limits, &self.state);
        self.begin(&step);
        step
    }

    pub(super) fn begin(&mut self, step: &Step) {
        if let Step::AskModel(request) = step {
            self.asked(request);
        }
        self.state.begin(step);
    }

    /// Records the result of the step.
    pub fn observe(&mut self, observation: &Observation) {
        self.heard(observation);
        self.state.observe(observation);
    }

    /// The messages of the current request, within the budget.
    pub fn request(&self) -> Vec<&Message> {
        self.context.request()
    }

    /// The state.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The limits.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The complete transcript.
    pub fn messages(&self) -> impl Iterator<Item = &Message> {
        self.context.messages()
    }

    fn asked(&mut self, request: &ModelRequest) {
        for answer in &request.answers {
            self.context.push(answer.clone());
        }
        if !request.notes.is_empty() {
            let notes: Vec<String> = request.notes.iter().map(texts::note).collect();
            self.context.push(Message::Note {
                text: notes.join("\n\n"),
            });
        }
        self.context.prepare();
    }

    fn heard(&mut self, observation: &Observation) {
        match observation {
            Observation::ModelResponded(response) => {
                if let Some(tokens) = response.usage.tokens_in {
                    self.context.counted(tokens);
                }
                self.context.push(Message::Assistant {
                    text: response.text.clone(),
                    calls: response.calls.clone(),
                });
            }
            Observation::ModelFailed { error, .. } => {
                if error.kind == ModelErrorKind::ContextTooLong {
                    self.context.refused();
                }
            }
            Observation::ToolsApplied { results, .. } => {
                let results = self.state.open.iter().zip(results);
                let results = results.map(|(call, result)| Message::ToolResult {
                    id: call.id.clone(),
                    name: call.request.name().to_owned(),
                    ok: result.ok,
                    output: result.output.clone(),
                });
                self.context.push_results(results);
            }
            Observation::SliceEnded(_) | Observation::Waited { .. } | Observation::Cancelled => {}
        }
    }
}
