//! How an agent's turn ended, whichever agent it was.

use crate::domain::agent::AgentReport;
use crate::domain::assess::TurnExit;
use crate::domain::builtin::session::Telemetry;
use crate::gateway::TurnCost;
use crate::process::CancelReason;

/// How an agent's turn ended.
#[derive(Debug)]
pub struct AgentEnd {
    /// How the process ended.
    pub exit: TurnExit,
    /// The signal or deadline that ended it.
    pub cancelled: Option<CancelReason>,
    /// What the agent said.
    pub report: AgentReport,
    /// Milliseconds.
    pub elapsed_ms: u64,
    /// Whether an earlier session was to be continued.
    pub resumed: bool,
    /// The session of the built-in agent in numbers.
    pub builtin: Option<Telemetry>,
    /// What the agent has spent by way of the gateway.
    pub by_gateway: TurnCost,
    /// Files that configure the agent, which it changed although they were only lent to it. Its changes
    /// of them are gone.
    pub changed_configuration: Vec<String>,
}

impl AgentEnd {
    /// The end of a turn whose agent could not be started.
    pub fn not_started(why: String) -> Self {
        Self {
            exit: TurnExit::NotStarted { why },
            cancelled: None,
            report: AgentReport::default(),
            elapsed_ms: 0,
            resumed: false,
            builtin: None,
            by_gateway: TurnCost::default(),
            changed_configuration: Vec::new(),
        }
    }

    /// Whether the agent seems not to have found the session that it was to continue. It is so if
    /// nothing changed either.
    pub fn may_have_lost_its_session(&self) -> bool {
        let refused = self
            .report
            .api_error
            .as_ref()
            .is_some_and(|error| error.status.is_none());
        self.resumed && refused && self.report.tool_calls == 0 && self.cancelled.is_none()
    }
}
