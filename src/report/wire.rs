//! The public form of events (`--events`, `sprag schema event`), which internal changes leave as it is.

use super::{sentence, text};
use crate::domain::agent::AgentEvent;
use crate::domain::attempt::ProofWord;
use crate::domain::checks::verdict::{CheckKind, CheckOutcome, CheckResult};
use crate::domain::event::{Event, EventKind, EventPlace, TaskEnded, TaskWork, WarningTopic};
use crate::domain::outcome::{Reason, TaskEnd, signal_name};
use crate::domain::summary::RunSummary;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use serde_json::Value;
use std::borrow::Cow;

/// One event of a run. While `v` is 1, fields may be added, but none is removed. Ignore fields and events
/// that you do not know.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct WireEvent {
    /// The version of this format.
    pub v: u32,
    /// The event's number within the run, from 1.
    pub seq: u64,
    /// Wall-clock time, RFC 3339 in UTC.
    pub ts: String,
    /// Milliseconds since the run started, from a monotonic clock.
    pub elapsed_ms: u64,
    /// What happened.
    #[serde(flatten)]
    pub body: Body,
    /// Where in the run it happened.
    #[serde(flatten)]
    pub place: EventPlace,
}

/// What happened, by name.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Body {
    /// The event itself, without its private fields.
    Same(EventKind),
    /// Another form of it.
    Other(OtherForm),
}

/// Schemas of an enum list its variants; this list is that of all three enums.
impl JsonSchema for Body {
    fn schema_name() -> Cow<'static, str> {
        "Body".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let all = [
            EventKind::json_schema(generator),
            AgentEvent::json_schema(generator),
            OtherForm::json_schema(generator),
        ];
        let listed: Vec<Value> = all
            .iter()
            .map(Schema::as_value)
            .flat_map(variants)
            .collect();
        json_schema!({ "description": "What happened, by name.", "oneOf": listed })
    }
}

/// The schemas of the variants, which an enum with an untagged variant nests.
fn variants(schema: &Value) -> Vec<Value> {
    let lists = ["oneOf", "anyOf"].map(|name| schema[name].as_array());
    let nested: Vec<&Value> = lists.into_iter().flatten().flatten().collect();
    if nested.is_empty() {
        vec![schema.clone()]
    } else {
        nested.into_iter().flat_map(variants).collect()
    }
}

/// The public forms that differ from the events.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "event")]
pub enum OtherForm {
    /// The agent wrote a message.
    #[serde(rename = "agent.message")]
    AgentMessage {
        /// The whole text.
        text: String,
        /// Whether it is the model's reasoning.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        reasoning: bool,
    },
    /// A check ended.
    #[serde(rename = "check.ended")]
    CheckEnded {
        /// Its name.
        name: String,
        /// Its kind.
        kind: CheckKind,
        /// The outcome.
        outcome: WireCheckOutcome,
        /// Whether it passed.
        passed: bool,
        /// Its exit code, if it has one.
        exit_code: Option<i32>,
        /// Why it was not run or was aborted, or the signal that ended it.
        detail: Option<String>,
        /// The number of tests that passed; `null` if the output does not contain it.
        passed_count: Option<u64>,
        /// The number of tests that failed; `null` if the output does not contain it.
        failed_count: Option<u64>,
        /// The duration in milliseconds.
        duration_ms: u64,
        /// The path of its log, relative to the run directory.
        log: Option<String>,
        /// The first errors, one line each.
        errors: Vec<String>,
    },
    /// A proof ended, and the work tree is restored.
    #[serde(rename = "proof.ended")]
    ProofEnded {
        /// The result of the checks.
        result: ProofWord,
        /// The failures, or why the result is unknown.
        details: Vec<String>,
        /// The conclusion, in one sentence.
        message: String,
        /// The duration in milliseconds.
        duration_ms: u64,
    },
    /// A task ended.
    #[serde(rename = "task.ended")]
    TaskEnded {
        /// Its status.
        status: TaskEnd,
        /// The reason code.
        reason: Reason,
        /// The result in one line, for a person.
        message: String,
        /// Sprag's commit.
        commit: Option<String>,
        /// The number of attempts.
        attempts: u32,
        /// The number of turns.
        turns: u32,
        /// The number of nudges.
        nudges: u32,
        /// Whether the task left any change.
        changes_made: bool,
        /// What it left.
        #[serde(flatten)]
        work: Box<TaskWork>,
        /// The duration in milliseconds.
        duration_ms: u64,
    },
    /// A warning for a person. With `code` it is a note, which `summary.json` does not have as a warning.
    #[serde(rename = "warning")]
    Warning {
        /// The text in one line.
        message: String,
        /// Its topic, if a report depends on it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        topic: Option<WarningTopic>,
        /// The kind of note.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<WireNote>,
        /// With `nudge_resolved`: the number of turns that it took within the attempt.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        k: Option<u32>,
        /// With `nudge_resolved`: the maximum number of turns.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        of: Option<u32>,
        /// With `agent_commits`: `<id> <author> <subject>`, oldest first.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        commits: Vec<String>,
    },
}

/// The outcome of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WireCheckOutcome {
    /// It passed.
    Passed,
    /// It exited with a code other than 0.
    Failed,
    /// A signal ended it.
    Signalled,
    /// It reached its time limit.
    TimedOut,
    /// It could not be started.
    NotStarted,
    /// The run aborted it.
    Aborted,
    /// It was not run.
    Skipped,
}

/// Notes without their own event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WireNote {
    /// A turn did the work after one or more nudges.
    NudgeResolved,
    /// The agent made commits itself.
    AgentCommits,
}

impl WireEvent {
    /// Converts an event to its public form. `summary` is the fold up to and including it: the sentences of
    /// nudges depend on the assessment of the task's last turn.
    pub fn new(event: &Event, summary: &RunSummary) -> Self {
        Self {
            v: 1,
            seq: event.seq,
            ts: event.ts.clone(),
            elapsed_ms: event.elapsed_ms,
            body: Body::new(event, summary),
            place: event.place.clone(),
        }
    }
}

impl Body {
    fn new(event: &Event, summary: &RunSummary) -> Self {
        let mut same = event.kind.clone();
        match &mut same {
            EventKind::TurnAssessed(line) => {
                line.indicators = sentence::indicators(&line.indicators);
                line.builtin = None;
            }
            EventKind::RetryScheduled(line) => {
                line.message = sentence::retry(line, event, summary, true);
                line.indicators = sentence::indicators(&line.indicators);
            }
            _ => {}
        }
        match same {
            EventKind::Agent(AgentEvent::Message { text }) => Self::message(text, false),
            EventKind::Agent(AgentEvent::Reasoning { text }) => Self::message(text, true),
            EventKind::CheckEnded(result) => Self::Other((*result).into()),
            EventKind::NudgeResolved { k, of } => {
                let message = sentence::resolved(k, of, event, summary);
                Self::note(message, WireNote::NudgeResolved, Some((k, of)), Vec::new())
            }
            EventKind::ProofEnded(line) => Self::Other(OtherForm::ProofEnded {
                result: line.result,
                message: line.says(),
                details: line.details,
                duration_ms: line.elapsed_ms,
            }),
            EventKind::AgentCommits { commits } => {
                let count = text::count(commits.len() as u64, "commit");
                let message = format!("the agent made {count} itself");
                Self::note(message, WireNote::AgentCommits, None, commits)
            }
            EventKind::TaskEnded(ended) => Self::Other((*ended).into()),
            same => Self::Same(same),
        }
    }

    fn message(text: String, reasoning: bool) -> Self {
        Self::Other(OtherForm::AgentMessage { text, reasoning })
    }

    fn note(
        message: String,
        code: WireNote,
        counts: Option<(u32, u32)>,
        commits: Vec<String>,
    ) -> Self {
        let (k, of) = counts.unzip();
        Self::Other(OtherForm::Warning {
            message,
            topic: None,
            code: Some(code),
            k,
            of,
            commits,
        })
    }
}

impl From<CheckResult> for OtherForm {
    fn from(result: CheckResult) -> Self {
        let (outcome, exit_code, detail) = match result.outcome {
            CheckOutcome::Passed => (WireCheckOutcome::Passed, Some(0), None),
            CheckOutcome::Failed { exit } => (WireCheckOutcome::Failed, Some(exit), None),
            CheckOutcome::Signalled { signal } => {
                (WireCheckOutcome::Signalled, None, Some(signal_name(signal)))
            }
            CheckOutcome::TimedOut { after_ms } => {
                let detail = format!("after {}", text::duration(after_ms));
                (WireCheckOutcome::TimedOut, None, Some(detail))
            }
            CheckOutcome::NotStarted { why, .. } => (WireCheckOutcome::NotStarted, None, Some(why)),
            CheckOutcome::Aborted => (WireCheckOutcome::Aborted, None, None),
            CheckOutcome::Skipped { because } => (WireCheckOutcome::Skipped, None, Some(because)),
        };
        Self::CheckEnded {
            name: result.name,
            kind: result.kind,
            outcome,
            passed: outcome == WireCheckOutcome::Passed,
            exit_code,
            detail,
            passed_count: result.counts.passed,
            failed_count: result.counts.failed,
            duration_ms: result.elapsed_ms,
            log: result.log,
            errors: result.errors,
        }
    }
}

impl From<TaskEnded> for OtherForm {
    fn from(ended: TaskEnded) -> Self {
        Self::TaskEnded {
            status: ended.outcome.task_end(),
            reason: ended.outcome.reason(),
            message: ended.outcome.message(),
            commit: ended.outcome.commit().map(|id| id.0.clone()),
            attempts: ended.attempts,
            turns: ended.turns,
            nudges: ended.nudges,
            changes_made: ended.changes_made,
            work: Box::new(ended.work),
            duration_ms: ended.elapsed_ms,
        }
    }
}

/// The JSON Schema of one line of events.
pub fn schema() -> Value {
    schemars::schema_for!(WireEvent).to_value()
}

/// The JSON Schema of `summary.json`.
pub fn summary_schema() -> Value {
    schemars::schema_for!(RunSummary).to_value()
}

#[cfg(test)]
mod tests;
