//! The built-in agent: a model behind an API, tools on the work tree, and a loop between them.
//!
//! What it decides is in [`crate::domain::builtin`]. Here the steps are carried out.

mod access;
pub mod model;
mod models;
mod options;
mod telling;
mod tools;

pub use access::{Access, BASE_URL, NoAccess, Secret, Wire, choose, key_variable, variables};
pub use models::Price;
pub use options::Options;

use crate::domain::agent::{AgentEvent, AgentReport};
use crate::domain::builtin::context::{Budget, declared_tokens};
use crate::domain::builtin::model_error::ModelError;
use crate::domain::builtin::session::{
    Limits, Observation, OpenCall, Record, Session, SessionExit, Slice, SliceEnded, Step,
    Telemetry, ToolResult,
};
use crate::domain::builtin::texts;
use crate::domain::duration::millis;
use crate::process::Cancel;
use model::Model;
use std::ffi::OsString;
use std::path::Path;
use std::time::{Duration, Instant};
use tools::Toolbox;

/// The built-in agent as it is configured.
#[derive(Debug, Clone, PartialEq)]
pub struct Builtin {
    /// How its model is reached.
    pub access: Access,
    /// Its own arguments.
    pub options: Options,
}

/// What one turn is carried out with.
pub struct Turn<'a> {
    /// The agent.
    pub agent: &'a Builtin,
    /// What is to be done.
    pub prompt: String,
    /// The work tree, absolute.
    pub work_tree: &'a Path,
    /// The complete environment of its commands. The model's key is no part of it.
    pub env: Vec<(OsString, OsString)>,
    /// Raised when the turn is to end.
    pub cancel: &'a Cancel,
    /// The longest that the turn may take.
    pub timeout: Duration,
    /// The longest that the model's server may be silent.
    pub idle: Duration,
    /// Tokens that are left.
    pub max_tokens: Option<u64>,
    /// US dollars that are left.
    pub max_cost_usd: Option<f64>,
    /// Takes what happens.
    pub emit: &'a mut dyn FnMut(AgentEvent),
    /// Takes the trajectory, in lines of JSON, as it grows.
    pub record: &'a mut dyn FnMut(&[u8]),
    /// Names the files that are not what they were when it was last called.
    pub changes: &'a mut dyn FnMut() -> Vec<String>,
}

/// How a turn ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Ended {
    /// How its session ended.
    pub exit: SessionExit,
    /// What the agent says.
    pub report: AgentReport,
    /// The session in numbers.
    pub telemetry: Telemetry,
}

/// Carries a turn out.
///
/// # Errors
/// When TLS cannot be set up.
pub async fn run(turn: Turn<'_>) -> Result<Ended, ModelError> {
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
        model: Model::new(&access, options, turn.idle)?,
        tools: Toolbox::new(turn.work_tree, turn.env, turn.cancel),
        cancel: turn.cancel,
        began: Instant::now(),
        emit: turn.emit,
        record: turn.record,
        changes: turn.changes,
    };
    let system = texts::system(!options.text_tools);
    let mut session = Session::new(limits, budget, system, turn.prompt);
    runner.save(session.messages());
    let exit = runner.run(&mut session).await;
    let state = session.state();
    Ok(Ended {
        exit,
        report: telling::report(state, exit),
        telemetry: Telemetry::of(state, exit, None),
    })
}

/// What a request may hold. In a window that the user sets, the response takes at most a quarter,
/// unless more is asked for.
fn budget(access: &Access, options: &Options) -> Budget {
    let own = match options.context_window {
        Some(window) => access.response_tokens.min(window / 4),
        None => access.response_tokens,
    };
    Budget {
        window_tokens: options.context_window.unwrap_or(access.window_tokens),
        response_tokens: options.max_output_tokens.unwrap_or(own),
        declared_tokens: match options.text_tools {
            true => 0,
            false => declared_tokens(),
        },
    }
}

struct Runner<'a> {
    model: Model,
    tools: Toolbox,
    cancel: &'a Cancel,
    /// When the session began.
    began: Instant,
    emit: &'a mut dyn FnMut(AgentEvent),
    record: &'a mut dyn FnMut(&[u8]),
    changes: &'a mut dyn FnMut() -> Vec<String>,
}

impl Runner<'_> {
    /// The loop. Everything is saved before and after it is done.
    async fn run(&mut self, session: &mut Session) -> SessionExit {
        loop {
            let intent = session.next_step();
            self.save(&Record::Intent {
                intent: intent.clone(),
            });
            let observation = match intent {
                Step::AskModel(_) => self.ask(session).await,
                Step::ApplyTools { calls } => self.apply(session, &calls).await,
                Step::FixSlice(slice) => Box::pin(self.slice(session, &slice)).await,
                Step::Wait { ms } => self.wait(ms).await,
                Step::End { exit } => return exit,
            };
            let record = Record::Observed { observation };
            self.save(&record);
            let todo = session.state().ledger().todo();
            session.apply(&record);
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
            // The session itself says that its time is over.
            () = tokio::time::sleep(left) => return Observation::Waited { elapsed_ms: self.elapsed() },
        };
        match outcome {
            Ok(mut response) => {
                response.elapsed_ms = self.elapsed();
                telling::response(&response, self.emit);
                Observation::ModelResponded(response)
            }
            Err(error) => {
                telling::error(&error, self.emit);
                Observation::ModelFailed {
                    error,
                    elapsed_ms: self.elapsed(),
                }
            }
        }
    }

    /// Carries every call out, in order.
    async fn apply(&mut self, session: &Session, calls: &[OpenCall]) -> Observation {
        let mut results: Vec<ToolResult> = Vec::new();
        for call in calls {
            if self.cancel.reason().is_some() {
                return Observation::Cancelled;
            }
            telling::call(call, self.emit);
            let left = self.left(session).max(Duration::from_secs(1));
            let result = self.tools.call(&call.request, left, self.changes).await;
            telling::result(call, &result, self.emit);
            results.push(result);
        }
        Observation::ToolsApplied {
            results,
            elapsed_ms: self.elapsed(),
        }
    }

    /// A session on one file alone, with a clock of its own.
    async fn slice(&mut self, session: &Session, slice: &Slice) -> Observation {
        let mut inner = session.slice(slice);
        let outer = std::mem::replace(&mut self.began, Instant::now());
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
        let jitter = u64::from(uuid::Uuid::new_v4().as_bytes()[0]) * (ms / 4) / 255;
        let pause = Duration::from_millis(ms.saturating_add(jitter));
        tokio::select! {
            biased;
            _ = self.cancel.cancelled() => Observation::Cancelled,
            () = tokio::time::sleep(pause) => Observation::Waited { elapsed_ms: self.elapsed() },
        }
    }

    fn elapsed(&self) -> u64 {
        millis(self.began.elapsed())
    }

    /// The time that the session may still take.
    fn left(&self, session: &Session) -> Duration {
        Duration::from_millis(session.limits().time_ms.saturating_sub(self.elapsed()))
    }

    fn save(&mut self, record: &(impl serde::Serialize + ?Sized)) {
        if let Ok(mut line) = serde_json::to_vec(record) {
            line.push(b'\n');
            (self.record)(&line);
        }
    }
}
