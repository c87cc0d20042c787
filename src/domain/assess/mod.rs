//! Assesses a turn: first from the repository, then from the agent's words.

pub mod message;

pub use super::agent::CutOff;
use super::agent::{AgentReport, ApiError, ApiErrorClass};
use super::api_error::{classify, classify_final};
use super::snapshot::Snapshot;
use super::text::{cap_chars, first_line, has_word};
use message::{FailedReport, MessageClass, library_error, read_message};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The class of a turn, a public interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(
    missing_docs,
    reason = "the table in docs/assessment.md describes each"
)]
pub enum AssessmentKind {
    AgentUnavailable,
    AgentTransient,
    AgentCrashed,
    TurnTimeout,
    PolicyViolation,
    FailedReport,
    Changed,
    AwaitingInput,
    ReportsBlocked,
    AlreadySatisfied,
    ClaimsDone,
    PlanningOnly,
    Empty,
    NoChange,
    /// The state of the repository could not be read: never "unchanged".
    Unknown,
}

/// What a turn did, and the evidence for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assessment {
    /// The class.
    pub kind: AssessmentKind,
    /// Up to five phrases of the final message that decided the class, each of at most 120 characters.
    pub indicators: Vec<String>,
    /// A one-line description.
    pub detail: String,
    /// The wait that the agent's API asked for, in milliseconds.
    pub retry_after_ms: Option<u64>,
    /// The `FAILED:` report.
    pub failed_report: Option<FailedReport>,
    /// The limit that cut the turn off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut_off: Option<CutOff>,
    /// The exit code of the agent's process, if it is not 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_exit: Option<i32>,
    /// The error with which the agent's message ends, if the turn changed nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
}

/// How an agent's process ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnExit {
    /// It exited with this code.
    Code(i32),
    /// It was killed by this signal, which Sprag did not send.
    Signal(i32),
    /// Sprag ended it when it reached its time limit.
    TimedOut {
        /// The limit, in milliseconds.
        after_ms: u64,
    },
    /// Sprag ended it because it produced no output for too long.
    Stalled {
        /// The limit, in milliseconds.
        after_ms: u64,
    },
    /// The program does not exist.
    NotFound,
    /// The program cannot be started.
    NotStarted {
        /// The reason.
        why: String,
    },
}

/// The inputs of an assessment.
#[derive(Debug, Clone)]
pub struct TurnFacts<'a> {
    /// HEAD and tree before the turn.
    pub before: &'a Snapshot,
    /// HEAD and tree after it.
    pub after: &'a Snapshot,
    /// How the process ended.
    pub exit: &'a TurnExit,
    /// The agent's report.
    pub report: &'a AgentReport,
    /// The agent's name and how to install it, for the message when it is missing.
    pub agent: &'a str,
    /// Actions of the turn that the policy forbids.
    pub violations: &'a [String],
}

/// Assesses a turn. The first rule that applies wins.
pub fn assess(facts: &TurnFacts<'_>) -> Assessment {
    let error = facts.api_error();
    let assessment = unavailable(facts, error.as_ref())
        .or_else(|| transient(facts, error.as_ref()))
        .or_else(|| cut_off(facts, error.as_ref()))
        .or_else(|| violation(facts))
        .or_else(|| failed_report(facts))
        .unwrap_or_else(|| from_repository(facts));
    Assessment {
        error_exit: facts.error_exit(),
        ..assessment
    }
}

impl<'a> TurnFacts<'a> {
    fn error_exit(&self) -> Option<i32> {
        match self.exit {
            TurnExit::Code(code) if *code != 0 => Some(*code),
            _ => None,
        }
    }

    fn unchanged(&self) -> bool {
        self.before.same_as(self.after) == Some(true)
    }

    fn said(&self) -> &'a str {
        self.report
            .final_message
            .as_deref()
            .unwrap_or_default()
            .trim()
    }

    /// Whether the turn left no trace, so that its exit code is all that is known.
    fn is_silent(&self) -> bool {
        self.unchanged() && self.said().is_empty()
    }

    /// The last line that the agent wrote to stderr, as a suffix for a message about its end.
    fn last_error(&self) -> String {
        let line = self.report.last_error_line.as_deref();
        line.map_or_else(String::new, |line| format!(": {}", one_line(line)))
    }

    /// The API error that the agent reported; or the one that its final message is or, after a change, ends with; or, of
    /// an unchanged turn, the one with which it failed instead of giving a message.
    fn api_error(&self) -> Option<ApiError> {
        if self.report.api_error.is_some() {
            return self.report.api_error.clone();
        }
        let text = self.said();
        if !self.unchanged() {
            return error_at_end(text);
        }
        match read_message(text, self.report.final_message_cut).class {
            MessageClass::Error => classify(None, library_error(text).unwrap_or(text)),
            MessageClass::Empty | MessageClass::Other => self.report.exit_error.clone(),
            _ => None,
        }
    }
}

/// The error of a model, or the crash of the agent, with which a text ends.
fn error_at_end(text: &str) -> Option<ApiError> {
    let crash = || {
        let trace = message::crash_at_end(text)?;
        let says_why = |line: &&str| {
            line.contains(": ") && !line.starts_with(' ') && !line.starts_with("note: ")
        };
        let cause = trace.lines().find(says_why).map(str::to_owned);
        // Rust prints the cause below the place.
        let first = || trace.lines().take(2).collect::<Vec<_>>().join(" ");
        Some(ApiError {
            message: cause.unwrap_or_else(first),
            ..classify_final(None, trace)
        })
    };
    let error = message::error_at_end(text).and_then(|text| classify(None, text));
    error.or_else(crash)
}

fn unavailable(facts: &TurnFacts<'_>, error: Option<&ApiError>) -> Option<Assessment> {
    let agent = facts.agent;
    let why = match (facts.exit, error) {
        (TurnExit::NotFound, _) => "was not found".to_owned(),
        (TurnExit::NotStarted { why }, _) => format!("cannot be started ({why})"),
        (_, Some(error)) if error.class == ApiErrorClass::Unavailable => {
            let detail = format!("{agent} cannot work: {}", one_line(&error.message));
            return Some(plain(AssessmentKind::AgentUnavailable, detail));
        }
        (TurnExit::Code(126), _) if facts.is_silent() => {
            format!("is not executable (exit 126){}", facts.last_error())
        }
        (TurnExit::Code(127), _) if facts.is_silent() => {
            format!("was not found (exit 127){}", facts.last_error())
        }
        _ => return None,
    };
    let detail =
        format!("{agent} {why}; install it or name another agent with --agent or --agent-command");
    Some(plain(AssessmentKind::AgentUnavailable, detail))
}

fn transient(facts: &TurnFacts<'_>, error: Option<&ApiError>) -> Option<Assessment> {
    let agent = facts.agent;
    if let TurnExit::Stalled { after_ms } = facts.exit {
        let detail = format!("{agent} was silent for {} s", after_ms / 1000);
        let kind = AssessmentKind::AgentTransient;
        return Some(stopped(kind, CutOff::Silence, detail));
    }
    let error = error.filter(|error| error.class == ApiErrorClass::Transient)?;
    let detail = format!(
        "{agent} met a transient error: {}",
        one_line(&error.message)
    );
    Some(Assessment {
        retry_after_ms: error.retry_after_ms,
        ..plain(AssessmentKind::AgentTransient, detail)
    })
}

fn cut_off(facts: &TurnFacts<'_>, error: Option<&ApiError>) -> Option<Assessment> {
    const CRASHED: AssessmentKind = AssessmentKind::AgentCrashed;
    let (agent, report) = (facts.agent, facts.report);
    let refused = error.filter(|_| report.api_error.is_some() || !facts.unchanged());
    Some(match (facts.exit, refused, &report.stopped_by) {
        (TurnExit::TimedOut { after_ms }, ..) => {
            let detail = format!("{agent} reached the time limit of {} s", after_ms / 1000);
            stopped(AssessmentKind::TurnTimeout, CutOff::TimeLimit, detail)
        }
        (TurnExit::Signal(signal), ..) => {
            let name = super::outcome::signal_name(*signal);
            plain(CRASHED, format!("{agent} was killed by {name}"))
        }
        (_, Some(error), _) => {
            let message = one_line(&error.message);
            let detail = format!("{agent}'s request was refused: {message}");
            stopped(CRASHED, CutOff::Refused, detail)
        }
        (_, None, Some(why)) => {
            let detail = match report.stop {
                CutOff::NoProgress => format!("stopped: {why}"),
                CutOff::OwnLimit => format!("{agent} reached its own limit: {why}"),
                _ => format!("{agent} {why}"),
            };
            stopped(CRASHED, report.stop, detail)
        }
        (TurnExit::Code(code), ..) if *code != 0 && facts.is_silent() => {
            let error = facts.last_error();
            let detail = format!("{agent} exited with code {code} and no result{error}");
            plain(CRASHED, detail)
        }
        _ => return None,
    })
}

fn violation(facts: &TurnFacts<'_>) -> Option<Assessment> {
    let what = facts.violations.join("; ");
    (!what.is_empty()).then(|| plain(AssessmentKind::PolicyViolation, what))
}

fn failed_report(facts: &TurnFacts<'_>) -> Option<Assessment> {
    let report = message::failed_report(facts.said(), facts.report.final_message_cut)?;
    let shown = format!("FAILED: {}", report.summary);
    let detail = report.summary.clone();
    Some(Assessment {
        indicators: vec![cap_chars(&shown, 120).into_owned()],
        failed_report: Some(report),
        ..plain(AssessmentKind::FailedReport, detail)
    })
}

fn from_repository(facts: &TurnFacts<'_>) -> Assessment {
    let (kind, detail) = match (facts.before.same_as(facts.after), facts.error_exit()) {
        (None, _) => (
            AssessmentKind::Unknown,
            "the state of the repository could not be read".to_owned(),
        ),
        (Some(true), _) => return from_message(facts),
        (Some(false), None) => (AssessmentKind::Changed, "the repository changed".to_owned()),
        (Some(false), Some(code)) => {
            let (agent, error) = (facts.agent, facts.last_error());
            let detail = format!("{agent} changed files and exited with code {code}{error}");
            (AssessmentKind::Changed, detail)
        }
    };
    plain(kind, detail)
}

fn from_message(facts: &TurnFacts<'_>) -> Assessment {
    use AssessmentKind as K;
    let reading = read_message(facts.said(), facts.report.final_message_cut);
    let (kind, detail) = match reading.class {
        MessageClass::AwaitingInput => (K::AwaitingInput, "nothing changed and the agent asks"),
        MessageClass::ReportsBlocked | MessageClass::FailedReport => (
            K::ReportsBlocked,
            "nothing changed and the agent says that it cannot continue",
        ),
        MessageClass::AlreadySatisfied => (
            K::AlreadySatisfied,
            "nothing changed and the agent says that nothing needs doing",
        ),
        MessageClass::ClaimsDone | MessageClass::Empty | MessageClass::Other
            if facts.report.needed_no_change =>
        {
            (
                K::AlreadySatisfied,
                "nothing changed and every item of the agent's plan is done or needs no change",
            )
        }
        MessageClass::ClaimsDone => (
            K::ClaimsDone,
            "nothing changed and the agent says that it is done",
        ),
        MessageClass::PlanningOnly => (K::PlanningOnly, "the agent planned and changed nothing"),
        MessageClass::Empty => (K::Empty, "the agent said nothing and changed nothing"),
        MessageClass::Error | MessageClass::Other => (K::NoChange, "nothing changed"),
    };
    let detail = reading.satisfied_why.unwrap_or_else(|| detail.into());
    Assessment {
        last_error: error_at_end(facts.said()).map(|error| one_line(&error.message)),
        indicators: reading.indicators,
        ..plain(kind, detail)
    }
}

fn plain(kind: AssessmentKind, detail: String) -> Assessment {
    Assessment {
        kind,
        indicators: Vec::new(),
        detail,
        retry_after_ms: None,
        failed_report: None,
        cut_off: None,
        error_exit: None,
        last_error: None,
    }
}

fn stopped(kind: AssessmentKind, by: CutOff, detail: String) -> Assessment {
    Assessment {
        cut_off: Some(by),
        ..plain(kind, detail)
    }
}

/// The first line with content, cut to 300 characters.
fn one_line(text: &str) -> String {
    cap_chars(first_line(text), 300).into_owned()
}

/// The words by which a question asks for a fact, and not for permission.
const FACTS: &str = "how what when where which who whose";

impl Assessment {
    /// The question of an agent that waits for a fact that only a person knows. A question for permission, such as
    /// `Shall I go on?`, is none: every prompt says that nobody grants any.
    pub fn question_of_fact(&self) -> Option<String> {
        let asks = |phrase: &&String| {
            let lower = phrase.to_lowercase();
            let mut words = lower.split(|c: char| !c.is_alphanumeric());
            lower.contains('?') && words.any(|word| has_word(FACTS, word))
        };
        let waits = self.kind == AssessmentKind::AwaitingInput;
        self.indicators.iter().find(asks).filter(|_| waits).cloned()
    }
}

impl AssessmentKind {
    /// Whether the turn failed because the agent, or the service behind it, was unavailable.
    pub fn is_agent_unavailable(self) -> bool {
        matches!(self, Self::AgentUnavailable | Self::AgentTransient)
    }

    /// Whether the agent ended the turn in order and is known to have changed nothing.
    pub fn is_idle(self) -> bool {
        self.has_answer() && !matches!(self, Self::Changed | Self::Unknown)
    }

    /// Whether the agent ended the turn in order, so that its final message is its answer.
    pub fn has_answer(self) -> bool {
        !matches!(
            self,
            Self::AgentUnavailable
                | Self::AgentTransient
                | Self::AgentCrashed
                | Self::TurnTimeout
                | Self::PolicyViolation
                | Self::FailedReport
        )
    }
}

impl TurnExit {
    /// How the process ended, as reports put it.
    pub fn describe(&self) -> String {
        match self {
            Self::Code(code) => format!("code {code}"),
            Self::Signal(signal) => super::outcome::signal_name(*signal),
            Self::TimedOut { after_ms } => format!("timed out after {} s", after_ms / 1000),
            Self::Stalled { after_ms } => format!("silent for {} s", after_ms / 1000),
            Self::NotFound => "not found".into(),
            Self::NotStarted { why } => format!("not started: {why}"),
        }
    }
}

#[cfg(test)]
mod tests;
