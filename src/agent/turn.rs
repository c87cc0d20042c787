//! A turn: the loop between the session, the model and the tools.

use crate::access::{Access, Account};
use crate::context::{Budget, declared_tokens};
use crate::events;
use crate::host::Host;
use crate::model::{Model, Picture, Transport};
use crate::options::Options;
use crate::session::{
    Limits, Observation, OpenCall, Session, SessionExit, Slice, SliceEnded, Step, ToolResult,
    telemetry,
};
use crate::tool::Tool;
use crate::tools::Toolbox;
use crate::transcript::{Header, Line};
use sprag_domain::agent::{AgentEvent, AgentReport, TurnName};
use sprag_domain::duration::millis;
use sprag_domain::session::Telemetry;
use std::path::Path;
use std::time::{Duration, Instant};

/// The configured built-in agent.
#[derive(Debug, Clone, PartialEq)]
pub struct Builtin {
    /// How its model is reached.
    pub access: Access,
    /// Its own arguments.
    pub options: Options,
}

/// Everything that one turn needs.
pub struct Turn<'a, T, H> {
    /// The agent.
    pub agent: &'a Builtin,
    /// The name of the turn.
    pub name: &'a TurnName,
    /// What is to be done.
    pub prompt: String,
    /// The pictures that belong to it.
    pub pictures: Vec<Picture>,
    /// The tools of MCP servers, which the host calls.
    pub tools: &'a [Tool],
    /// The work tree, absolute.
    pub work_tree: &'a Path,
    /// The connection to the model's server.
    pub transport: T,
    /// The program that the agent works in.
    pub host: &'a H,
    /// Time limit of the turn.
    pub timeout: Duration,
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
    /// The report of the agent.
    pub report: AgentReport,
    /// The session in numbers.
    pub telemetry: Telemetry,
}

/// Runs a turn.
pub async fn run<T: Transport, H: Host>(turn: Turn<'_, T, H>) -> TurnEnd {
    let Builtin { access, options } = turn.agent;
    let own = options.limits();
    let limits = Limits {
        time_ms: own.time_ms.min(millis(turn.timeout)),
        tokens: turn.max_tokens,
        cost_usd: turn.max_cost_usd,
        ..own
    };
    let budget = budget(access, options, turn.tools);
    let access = Access {
        response_tokens: budget.response_tokens,
        ..access.clone()
    };
    let mut runner = Runner {
        model: Model::new(&access, options, turn.transport)
            .with_tools(turn.tools)
            .with_pictures(turn.pictures),
        tools: Toolbox::new(turn.work_tree, turn.host),
        budget,
        access: &access,
        turn: turn.name,
        host: turn.host,
        began: Instant::now(),
        emit: turn.emit,
        record: turn.record,
        changes: turn.changes,
    };
    let mut session = Session::new(limits, budget, turn.prompt);
    runner.begin(&session, None);
    let exit = runner.run(&mut session).await;
    let state = session.state();
    TurnEnd {
        report: events::report(state, exit, &Account::of(access.provider)),
        telemetry: telemetry(state, exit),
    }
}

/// The size limits of a request. If the user sets the context window, the response takes at most a quarter of
/// it, unless the user also sets its length.
fn budget(access: &Access, options: &Options, tools: &[Tool]) -> Budget {
    let quarter = options
        .context_window
        .map_or(usize::MAX, |window| window / 4);
    let response_tokens = access.response_tokens.min(quarter);
    Budget {
        window_tokens: options.context_window.unwrap_or(access.window_tokens),
        response_tokens: options.max_output_tokens.unwrap_or(response_tokens),
        declared_tokens: declared_tokens(tools),
    }
}

struct Runner<'a, T, H> {
    model: Model<T>,
    tools: Toolbox<'a, H>,
    budget: Budget,
    access: &'a Access,
    turn: &'a TurnName,
    host: &'a H,
    /// The start of the session.
    began: Instant,
    emit: &'a mut dyn FnMut(AgentEvent),
    record: &'a mut dyn FnMut(&Line<'_>),
    changes: &'a mut dyn FnMut() -> Vec<String>,
}

impl<T: Transport, H: Host> Runner<'_, T, H> {
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
            let todo = session.state().ledger.todo();
            session.observe(&observation);
            let now = session.state().ledger.todo();
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
            () = self.host.cancelled() => return Observation::Cancelled,
            outcome = self.model.ask(&messages) => outcome,
            // The session itself detects that its time is over.
            () = tokio::time::sleep(left) => return Observation::Waited { elapsed_ms: self.elapsed() },
        };
        match outcome {
            Ok(mut response) => {
                response.elapsed_ms = self.elapsed();
                events::response(&response, self.emit);
                Observation::ModelResponded(response)
            }
            Err(error) => {
                events::error(&error, self.emit);
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
            if self.host.is_cancelled() {
                return Observation::Cancelled;
            }
            events::call(call, self.emit);
            let left = self.left(session).max(Duration::from_secs(1));
            let result = self.tools.call(&call.request, left).await;
            events::result(call, &result, self.emit);
            results.push(result);
        }
        if let Some(last) = calls.iter().rposition(|call| call.request.is_command()) {
            let changed = self.tools.changed_by_commands((self.changes)());
            events::changed(&changed, self.emit);
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
            changed: state.changed.iter().cloned().collect(),
            steps: state.counts.steps,
            tool_calls: state.counts.tool_calls,
            usage: state.usage,
            elapsed_ms: self.elapsed(),
        })
    }

    async fn wait(&mut self, ms: u64) -> Observation {
        tokio::select! {
            biased;
            () = self.host.cancelled() => Observation::Cancelled,
            () = self.host.pause(ms) => Observation::Waited { elapsed_ms: self.elapsed() },
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
