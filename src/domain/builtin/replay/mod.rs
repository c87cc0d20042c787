//! Repeats the decisions of a recorded session and gives an account of it.
//!
//! Every decision is made on the recorded history, whatever was decided before it, so a difference at one
//! step does not hide a later one. No step is carried out.

mod text;

#[cfg(test)]
mod tests;

use super::session::{
    ModelRequest, Note, Observation, OpenCall, Record, Response, Session, SessionExit, Slice,
    SliceEnded, Step, Telemetry, ToolResult, decide,
};
use super::texts;
use super::tool::ToolRequest;
use super::trajectory::{Ending, Entry, Header, Recorded, Recording, Request, TurnName};
use crate::text::{first_line, one_line, plain};
use serde::Serialize;

/// The maximum length of an excerpt, in characters.
const EXCERPT: usize = 160;

/// The result of a replay, also in machine-readable form.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Replay {
    /// The version of this format.
    pub v: u32,
    /// Whether every decision equals the recorded one.
    pub same: bool,
    /// The number of repeated decisions.
    pub decisions: usize,
    /// The decisions that differ.
    pub differences: Vec<Difference>,
    /// An account of every session.
    pub sessions: Vec<Account>,
}

/// A decision that differs from the recorded one.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Difference {
    /// The number of the turn's session, from 1.
    pub session: usize,
    /// The file, in a session on a single file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slice: Option<String>,
    /// The step: the number of the response that it waits for or acts on, from 1.
    pub step: u32,
    /// The number of the record's line, from 1.
    pub line: usize,
    /// The recorded decision.
    pub then: Step,
    /// The decision of this version.
    pub now: Step,
}

/// An account of a session.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Account {
    /// The turn that it belongs to.
    #[serde(flatten)]
    pub turn: TurnName,
    /// The file, in a session on a single file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slice: Option<String>,
    /// The model's provider.
    pub provider: String,
    /// The provider's name of the model.
    pub model: String,
    /// The version of Sprag that recorded it.
    pub sprag: String,
    /// The steps, in order.
    pub steps: Vec<StepAccount>,
    /// Where the record stops.
    #[serde(flatten)]
    pub ending: Ending,
    /// Its statistics; `null` for a session whose end is not recorded.
    pub telemetry: Option<Telemetry>,
    /// Whether the system prompt equals that of this version.
    pub system_prompt_same: bool,
    /// The number of requests that could be compared.
    pub requests: usize,
    /// The steps whose requests differ in this version.
    pub requests_changed: Vec<u32>,
}

/// The events around one response of the model.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct StepAccount {
    /// Its number, from 1.
    pub step: u32,
    /// The events, in order.
    pub happened: Vec<SessionEvent>,
}

/// An event in a session.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum SessionEvent {
    /// The session sent notes to the model.
    Told {
        /// The notes.
        notes: Vec<Note>,
    },
    /// The model wrote text.
    Said {
        /// The beginning of its text, on one line.
        text: String,
    },
    /// A tool was called.
    Called {
        /// Its name, or the name that the model used for a tool that does not exist.
        tool: String,
        /// The subject of the call, on one line.
        about: String,
        /// Whether it succeeded; `null` if this is not recorded.
        ok: Option<bool>,
        /// For a failure, the beginning of its result.
        #[serde(skip_serializing_if = "String::is_empty")]
        result: String,
    },
    /// The plan changed.
    Plan {
        /// The number of items, without superseded ones.
        items: usize,
        /// The number of finished items.
        finished: usize,
        /// The next item.
        next: Option<String>,
    },
    /// The model's API failed.
    Failed {
        /// Its text, on one line.
        error: String,
    },
    /// The session waited before the next request to the model.
    Waited {
        /// The minimum wait, in milliseconds.
        ms: u64,
    },
    /// A session on a single file.
    Slice {
        /// The file.
        file: String,
        /// Whether it changed the file; `null` if this is not recorded.
        changed: Option<bool>,
        /// Its account, if it is recorded.
        account: Option<Box<Account>>,
    },
    /// The session was cancelled.
    Cancelled,
    /// The session ended.
    Ended {
        /// How it ended.
        exit: SessionExit,
    },
    /// A decision differs from the recorded one.
    Differs {
        /// A description of the recorded decision.
        then: String,
        /// A description of this version's decision.
        now: String,
    },
}

/// Repeats every decision of a recording.
pub fn replay(recording: &Recording) -> Replay {
    let mut differences = Vec::new();
    let mut decisions = 0;
    let sessions = recording
        .sessions
        .iter()
        .enumerate()
        .map(|(index, recorded)| {
            let mut player = Player::new(index + 1, recorded);
            player.play(recorded);
            differences.append(&mut player.differences);
            decisions += player.decisions;
            player.account(recorded)
        })
        .collect();
    Replay {
        v: 1,
        same: differences.is_empty(),
        decisions,
        differences,
        sessions,
    }
}

/// The replay of one session.
struct Player {
    number: usize,
    slice: Option<String>,
    session: Session,
    decisions: usize,
    differences: Vec<Difference>,
    steps: Vec<StepAccount>,
    requests: usize,
    requests_changed: Vec<u32>,
    /// The number of responses so far.
    responses: u32,
    /// The number of items, the number of finished ones, and the next one, as last reported.
    plan: (usize, usize, Option<String>),
    /// Events that are reported after the calls of the response, to keep them in order.
    held: Vec<SessionEvent>,
}

impl Player {
    fn new(number: usize, recorded: &Recorded) -> Self {
        let Header {
            limits,
            budget,
            messages,
            ..
        } = &recorded.header;
        let session = Session::beginning_with(limits.clone(), *budget, messages.clone());
        Self::with(number, recorded, session)
    }

    /// The replay of a session within this one.
    fn inner(&self, recorded: &Recorded) -> Self {
        let Header {
            limits, messages, ..
        } = &recorded.header;
        let session = self.session.inner(limits.clone(), messages.clone());
        Self::with(self.number, recorded, session)
    }

    fn with(number: usize, recorded: &Recorded, session: Session) -> Self {
        Self {
            number,
            slice: recorded.header.slice.clone(),
            session,
            decisions: 0,
            differences: Vec::new(),
            steps: Vec::new(),
            requests: 0,
            requests_changed: Vec::new(),
            responses: 0,
            plan: (0, 0, None),
            held: Vec::new(),
        }
    }

    fn play(&mut self, recorded: &Recorded) {
        for entry in &recorded.entries {
            match &entry.record {
                Record::Intent { intent } => {
                    self.judge(entry.line, intent);
                    self.session.apply(&entry.record);
                    self.intended(recorded, entry, intent);
                }
                Record::Observed { observation } => {
                    self.observed(observation);
                    self.session.apply(&entry.record);
                    self.push_plan();
                }
            }
        }
    }

    /// Repeats a decision and compares it.
    fn judge(&mut self, line: usize, then: &Step) {
        let now = decide(self.session.limits(), self.session.state());
        self.decisions += 1;
        if same_step(then, &now) {
            return;
        }
        let (told_then, told_now) = text::both(then, &now);
        // Events of a step that asks the model belong to the response that it asks for.
        let step = match then {
            Step::AskModel(_) => self.responses + 1,
            _ => self.responses.max(1),
        };
        self.push_event_at(
            step,
            SessionEvent::Differs {
                then: told_then,
                now: told_now,
            },
        );
        self.differences.push(Difference {
            session: self.number,
            slice: self.slice.clone(),
            step,
            line,
            then: then.clone(),
            now,
        });
    }

    fn intended(&mut self, recorded: &Recorded, entry: &Entry, intent: &Step) {
        match intent {
            Step::AskModel(request) => self.asked(entry, request),
            Step::FixSlice(slice) => self.sliced(entry, slice),
            Step::Wait { ms } => {
                self.push_event_at(self.responses + 1, SessionEvent::Waited { ms: *ms })
            }
            Step::End { exit } => self.push_event(SessionEvent::Ended { exit: *exit }),
            // Calls are reported with their results; calls without results are reported here.
            Step::ApplyTools { calls } if is_last(recorded, entry) => {
                self.called(calls, &[]);
            }
            Step::ApplyTools { .. } => {}
        }
    }

    fn asked(&mut self, entry: &Entry, request: &ModelRequest) {
        let step = self.responses + 1;
        if !request.notes.is_empty() {
            let notes = request.notes.clone();
            self.push_event_at(step, SessionEvent::Told { notes });
        }
        if let Some(then) = &entry.request {
            self.requests += 1;
            if Request::of(&self.session.request()) != *then {
                self.requests_changed.push(step);
            }
        }
    }

    fn sliced(&mut self, entry: &Entry, slice: &Slice) {
        let account = entry.inner.as_deref().map(|inner| {
            let mut player = self.inner(inner);
            player.play(inner);
            self.decisions += player.decisions;
            self.differences.append(&mut player.differences);
            Box::new(player.account(inner))
        });
        self.push_event(SessionEvent::Slice {
            file: slice.file.clone(),
            changed: None,
            account,
        });
    }

    fn observed(&mut self, observation: &Observation) {
        match observation {
            Observation::ModelResponded(response) => self.responded(response),
            Observation::ModelFailed { error, .. } => {
                let error = excerpt(&error.message);
                self.push_event_at(self.responses + 1, SessionEvent::Failed { error });
            }
            Observation::ToolsApplied { results, .. } => {
                let calls = self.session.state().open_calls().to_vec();
                self.called(&calls, results);
            }
            Observation::SliceEnded(ended) => self.slice_ended(ended),
            Observation::Waited { .. } => {}
            Observation::Cancelled => self.push_event(SessionEvent::Cancelled),
        }
    }

    fn responded(&mut self, response: &Response) {
        self.responses += 1;
        let said = [&response.text, &response.reasoning]
            .into_iter()
            .find(|text| !text.trim().is_empty());
        let text = said.map(|text| excerpt(text)).unwrap_or_default();
        self.push_event(SessionEvent::Said { text });
        let requests: Vec<_> = response.calls.iter().map(ToolRequest::of).collect();
        let is_open =
            |it: &Result<ToolRequest, String>| matches!(it, Ok(it) if !it.is_answered_by_session());
        let last_open = requests.iter().rposition(is_open);
        for (index, (call, request)) in response.calls.iter().zip(&requests).enumerate() {
            // A call that reaches a tool is reported with its result.
            let Some(happened) = answered(&call.name, request) else {
                continue;
            };
            if last_open.is_some_and(|last| index > last) {
                self.held.push(happened)
            } else {
                self.push_event(happened)
            }
        }
    }

    fn called(&mut self, calls: &[OpenCall], results: &[ToolResult]) {
        for (index, call) in calls.iter().enumerate() {
            let result = results.get(index);
            let failed = result.filter(|result| !result.ok);
            self.push_event(SessionEvent::Called {
                tool: call.request.name().to_owned(),
                about: excerpt(&call.request.about()),
                ok: result.map(|result| result.ok),
                result: failed.map_or_else(String::new, |it| excerpt(first_line(&it.output))),
            });
        }
        for happened in std::mem::take(&mut self.held) {
            self.push_event(happened);
        }
    }

    fn slice_ended(&mut self, ended: &SliceEnded) {
        let happened = self.steps.iter_mut().rev().flat_map(|it| &mut it.happened);
        let told = happened.rev().find_map(|it| match it {
            SessionEvent::Slice { changed, .. } => Some(changed),
            _ => None,
        });
        if let Some(changed) = told {
            *changed = Some(!ended.changed.is_empty());
        }
    }

    fn push_plan(&mut self) {
        let ledger = self.session.state().ledger();
        let next = ledger.next().map(|item| excerpt(&item.text));
        let now = (ledger.planned(), ledger.finished(), next);
        if now == self.plan {
            return;
        }
        let (items, finished, next) = now.clone();
        self.plan = now;
        self.push_event(SessionEvent::Plan {
            items,
            finished,
            next,
        });
    }

    /// Reports an event of the current step.
    fn push_event(&mut self, happened: SessionEvent) {
        self.push_event_at(self.responses.max(1), happened);
    }

    fn push_event_at(&mut self, step: u32, happened: SessionEvent) {
        match self.steps.last_mut() {
            Some(last) if last.step == step => last.happened.push(happened),
            _ => self.steps.push(StepAccount {
                step,
                happened: vec![happened],
            }),
        }
    }

    fn account(self, recorded: &Recorded) -> Account {
        let header = &recorded.header;
        let exit = recorded.exit();
        let state = self.session.state();
        let system = header.messages.first();
        Account {
            turn: header.turn.clone(),
            slice: header.slice.clone(),
            provider: header.provider.clone(),
            model: header.model.clone(),
            sprag: header.sprag.clone(),
            telemetry: exit.map(|exit| Telemetry::of(state, exit, None)),
            ending: recorded.ending,
            system_prompt_same: system.is_some_and(is_own_system_prompt),
            steps: self.steps,
            requests: self.requests,
            requests_changed: self.requests_changed,
        }
    }
}

/// A call that the session itself answers.
fn answered(name: &str, request: &Result<ToolRequest, String>) -> Option<SessionEvent> {
    let (ok, about, result) = match request {
        Ok(ToolRequest::Finish { summary }) => (true, excerpt(summary), String::new()),
        Ok(request) if request.is_answered_by_session() => (true, String::new(), String::new()),
        Ok(_) => return None,
        Err(why) => (false, String::new(), excerpt(why)),
    };
    Some(SessionEvent::Called {
        tool: excerpt(name),
        about,
        ok: Some(ok),
        result,
    })
}

fn is_last(recorded: &Recorded, entry: &Entry) -> bool {
    let last = recorded.entries.last();
    last.is_some_and(|last| last.line == entry.line)
}

fn is_own_system_prompt(message: &super::context::Message) -> bool {
    match message {
        super::context::Message::System { text } => [true, false]
            .iter()
            .any(|native| texts::system(*native) == *text),
        _ => false,
    }
}

/// Whether two steps are equal. The rest of a cost limit always counts as equal, because a sum that was
/// written and read back differs in its last digit.
fn same_step(then: &Step, now: &Step) -> bool {
    let (Step::FixSlice(one), Step::FixSlice(other)) = (then, now) else {
        return then == now;
    };
    let close = match (one.limits.cost_usd, other.limits.cost_usd) {
        (Some(one), Some(other)) => (one - other).abs() < 1e-9,
        (one, other) => one == other,
    };
    let mut same = other.clone();
    same.limits.cost_usd = one.limits.cost_usd;
    close && *one == same
}

/// The beginning of a text on one line, without terminal control sequences.
fn excerpt(text: &str) -> String {
    one_line(&plain(text), EXCERPT)
}
