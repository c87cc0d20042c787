//! The built-in agent: a model behind an API, tools on the work tree, and a loop between them.
//!
//! Its decisions and the formats of models are in [`sprag_agent`]. This module carries them out.

mod agent_events;
mod http;
mod tools;

use crate::domain::agent::{AgentEvent, AgentReport, TurnName};
use crate::domain::duration::millis;
use crate::domain::session::Telemetry;
use crate::http::{Network, jittered};
use crate::process::Cancel;
use crate::sandbox::Policy;
use http::Http;
use sprag_agent::access::{Access, Account};
use sprag_agent::context::{Budget, declared_tokens};
use sprag_agent::model::Model;
use sprag_agent::options::Options;
use sprag_agent::session::{
    Limits, Observation, OpenCall, Record, Session, SessionExit, Slice, SliceEnded, Step,
    ToolResult, telemetry,
};
use sprag_agent::texts;
use sprag_agent::transcript::{Header, Line};
use std::ffi::OsString;
use std::path::Path;
use std::time::{Duration, Instant};
use tools::Toolbox;

/// The configured built-in agent.
#[derive(Debug, Clone, PartialEq)]
pub struct Builtin {
    /// How its model is reached.
    pub access: Access,
    /// Its own arguments.
    pub options: Options,
}

/// Everything that one turn needs.
pub struct Turn<'a> {
    /// The agent.
    pub agent: &'a Builtin,
    /// The name of the turn.
    pub name: &'a TurnName,
    /// What is to be done.
    pub prompt: String,
    /// The work tree, absolute.
    pub work_tree: &'a Path,
    /// The complete environment of its commands, without the model's key.
    pub env: Vec<(OsString, OsString)>,
    /// How its commands are confined.
    pub sandbox: Option<Policy>,
    /// The proxy and certificate settings for requests to the model.
    pub network: &'a Network,
    /// Signalled when the turn must end.
    pub cancel: &'a Cancel,
    /// Time limit of the turn.
    pub timeout: Duration,
    /// The longest time without data from the model's server.
    pub idle: Duration,
    /// The longest wait before a request is retried, whatever the provider asks for.
    pub longest_wait: Duration,
    /// The remaining tokens.
    pub max_tokens: Option<u64>,
    /// The remaining US dollars.
    pub max_cost_usd: Option<f64>,
    /// Receives the events.
    pub emit: &'a mut dyn FnMut(AgentEvent),
    /// Receives the lines of the transcript.
    pub record: &'a mut dyn FnMut(&Line<'_>),
    /// Returns the files that changed since its last call or since the start of the turn.
    pub changes: &'a mut dyn FnMut() -> Vec<String>,
}

/// The end of a turn.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnEnd {
    /// How its session ended.
    pub exit: SessionExit,
    /// The report of the agent.
    pub report: AgentReport,
    /// The session in numbers.
    pub telemetry: Telemetry,
}

/// Runs a turn.
pub async fn run(turn: Turn<'_>) -> TurnEnd {
    let Builtin { access, options } = turn.agent;
    let own = options.limits();
    let limits = Limits {
        time_ms: own.time_ms.min(millis(turn.timeout)),
        tokens: turn.max_tokens,
        cost_usd: turn.max_cost_usd,
        ..own
    };
    let budget = budget(access, options);
    let access = Access {
        response_tokens: budget.response_tokens,
        ..access.clone()
    };
    let mut runner = Runner {
        model: Model::new(&access, options, Http::new(turn.network, turn.idle)),
        tools: Toolbox::new(turn.work_tree, turn.env, turn.sandbox, turn.cancel),
        budget,
        access: &access,
        turn: turn.name,
        cancel: turn.cancel,
        longest_wait: turn.longest_wait,
        began: Instant::now(),
        emit: turn.emit,
        record: turn.record,
        changes: turn.changes,
    };
    let mut session = Session::new(limits, budget, texts::SYSTEM.to_owned(), turn.prompt);
    runner.begin(&session, None);
    let exit = runner.run(&mut session).await;
    let state = session.state();
    TurnEnd {
        exit,
        report: agent_events::report(state, exit, &Account::of(access.provider)),
        telemetry: telemetry(state, exit, None),
    }
}

/// The size limits of a request. If the user sets the context window, the response takes at most a quarter of
/// it, unless the user also sets its length.
fn budget(access: &Access, options: &Options) -> Budget {
    let response_tokens = match options.context_window {
        Some(window) => access.response_tokens.min(window / 4),
        None => access.response_tokens,
    };
    Budget {
        window_tokens: options.context_window.unwrap_or(access.window_tokens),
        response_tokens: options.max_output_tokens.unwrap_or(response_tokens),
        declared_tokens: declared_tokens(),
    }
}

struct Runner<'a> {
    model: Model<Http>,
    tools: Toolbox,
    budget: Budget,
    access: &'a Access,
    turn: &'a TurnName,
    cancel: &'a Cancel,
    longest_wait: Duration,
    /// The start of the session.
    began: Instant,
    emit: &'a mut dyn FnMut(AgentEvent),
    record: &'a mut dyn FnMut(&Line<'_>),
    changes: &'a mut dyn FnMut() -> Vec<String>,
}

impl Runner<'_> {
    /// Records the start of a session. `slice` is the file of a session on one file alone.
    fn begin(&mut self, session: &Session, slice: Option<&str>) {
        (self.record)(&Line::Session(Header {
            sprag: env!("CARGO_PKG_VERSION"),
            provider: self.access.provider,
            model: &self.access.model,
            turn: self.turn,
            slice,
            limits: session.limits(),
            budget: self.budget,
            messages: session.messages().collect(),
        }));
    }

    /// The loop. Every step is recorded before and after it runs.
    async fn run(&mut self, session: &mut Session) -> SessionExit {
        loop {
            let intent = session.next_step();
            (self.record)(&Line::Intent { intent: &intent });
            let observation = match intent {
                Step::AskModel(_) => self.ask(session).await,
                Step::ApplyTools { calls } => self.apply(session, &calls).await,
                Step::FixSlice(slice) => Box::pin(self.slice(session, &slice)).await,
                Step::Wait { ms } => self.wait(ms).await,
                Step::End { exit } => return exit,
            };
            (self.record)(&Line::Observed {
                observation: &observation,
            });
            let todo = session.state().ledger().todo();
            session.apply(&Record::Observed { observation });
            let now = session.state().ledger().todo();
            if now != todo {
                (self.emit)(AgentEvent::Todo { items: now });
            }
        }
    }

    async fn ask(&mut self, session: &Session) -> Observation {
        let messages = session.request();
        let left = self.left(session);
        let outcome = tokio::select! {
            biased;
            _ = self.cancel.cancelled() => return Observation::Cancelled,
            outcome = self.model.ask(&messages) => outcome,
            // The session itself detects that its time is over.
            () = tokio::time::sleep(left) => return Observation::Waited { elapsed_ms: self.elapsed() },
        };
        match outcome {
            Ok(mut response) => {
                response.elapsed_ms = self.elapsed();
                agent_events::response(&response, self.emit);
                Observation::ModelResponded(response)
            }
            Err(error) => {
                agent_events::error(&error, self.emit);
                Observation::ModelFailed {
                    error,
                    elapsed_ms: self.elapsed(),
                }
            }
        }
    }

    /// Carries out all calls in order.
    async fn apply(&mut self, session: &Session, calls: &[OpenCall]) -> Observation {
        let mut results: Vec<ToolResult> = Vec::new();
        for call in calls {
            if self.cancel.reason().is_some() {
                return Observation::Cancelled;
            }
            agent_events::call(call, self.emit);
            let left = self.left(session).max(Duration::from_secs(1));
            let result = self.tools.call(&call.request, left).await;
            agent_events::result(call, &result, self.emit);
            results.push(result);
        }
        if let Some(last) = calls.iter().rposition(|call| call.request.is_command()) {
            let changed = self.tools.changed_by_commands((self.changes)());
            agent_events::changed(&changed, self.emit);
            results[last].changed = changed;
        }
        Observation::ToolsApplied {
            results,
            elapsed_ms: self.elapsed(),
        }
    }

    /// Runs a session on one file alone, with its own clock.
    async fn slice(&mut self, session: &Session, slice: &Slice) -> Observation {
        let mut inner = session.slice(slice);
        let outer = std::mem::replace(&mut self.began, Instant::now());
        self.begin(&inner, Some(&slice.file));
        let exit = self.run(&mut inner).await;
        self.began = outer;
        if exit == SessionExit::Cancelled {
            return Observation::Cancelled;
        }
        let state = inner.state();
        Observation::SliceEnded(SliceEnded {
            file: slice.file.clone(),
            changed: state.changed().iter().cloned().collect(),
            steps: state.counts().steps,
            tool_calls: state.counts().tool_calls,
            usage: state.usage(),
            elapsed_ms: self.elapsed(),
        })
    }

    async fn wait(&mut self, ms: u64) -> Observation {
        let pause = jittered(ms, self.longest_wait);
        tokio::select! {
            biased;
            _ = self.cancel.cancelled() => Observation::Cancelled,
            () = tokio::time::sleep(pause) => Observation::Waited { elapsed_ms: self.elapsed() },
        }
    }

    fn elapsed(&self) -> u64 {
        millis(self.began.elapsed())
    }

    /// The remaining time of the session.
    fn left(&self, session: &Session) -> Duration {
        Duration::from_millis(session.limits().time_ms.saturating_sub(self.elapsed()))
    }
}
