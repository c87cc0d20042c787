//! The end of a turn, for every kind of agent.

use crate::domain::agent::AgentReport;
use crate::domain::assess::TurnExit;
use crate::domain::session::Telemetry;
use crate::gateway::TurnCost;
use crate::process::CancelReason;

/// The end of an agent's turn.
#[derive(Debug)]
pub struct AgentEnd {
    /// How the process ended.
    pub exit: TurnExit,
    /// The signal or deadline that ended it.
    pub cancelled: Option<CancelReason>,
    /// The agent's report.
    pub report: AgentReport,
    /// The duration in milliseconds.
    pub elapsed_ms: u64,
    /// Whether the turn was meant to continue an earlier session.
    pub resumed: bool,
    /// Telemetry of the built-in agent's session.
    pub builtin: Option<Telemetry>,
    /// The cost of the turn according to the gateway.
    pub by_gateway: TurnCost,
    /// Replaced configuration files that the agent changed. Its changes to them are discarded.
    pub changed_configuration: Vec<String>,
}

impl AgentEnd {
    /// The end of a turn whose agent could not be started.
    pub fn not_started(why: String) -> Self {
        Self::of(TurnExit::NotStarted { why })
    }

    /// The end of a turn of which nothing else is known.
    pub fn of(exit: TurnExit) -> Self {
        Self {
            exit,
            cancelled: None,
            report: AgentReport::default(),
            elapsed_ms: 0,
            resumed: false,
            builtin: None,
            by_gateway: TurnCost::default(),
            changed_configuration: Vec::new(),
        }
    }

    /// Whether the agent seems not to have found the session to continue. True only if nothing changed
    /// either.
    pub fn may_have_lost_its_session(&self) -> bool {
        let error = self.report.api_error.as_ref();
        let refused = error.is_some_and(|error| error.status.is_none());
        self.resumed && refused && self.report.tool_calls == 0 && self.cancelled.is_none()
    }
}
