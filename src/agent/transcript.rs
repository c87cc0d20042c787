//! The transcript of a turn: a header, then one record before and one after every effect, each a line of JSON.

use super::context::{Budget, Message};
use super::session::{Limits, Observation, Step};
use serde::Serialize;
use sprag_domain::agent::TurnName;

/// One line of a transcript.
#[derive(Debug, Serialize)]
#[serde(tag = "record", rename_all = "snake_case")]
pub enum Line<'a> {
    /// A session begins. The following lines belong to it, until it ends or another session begins.
    Session(Header<'a>),
    /// A step that is about to be done.
    Intent {
        /// The step.
        intent: &'a Step,
    },
    /// The result of the step.
    Observed {
        /// The observation.
        observation: &'a Observation,
    },
}

/// The start of a session.
#[derive(Debug, Serialize)]
pub struct Header<'a> {
    /// The version of Sprag.
    pub sprag: &'static str,
    /// The provider of the model.
    pub provider: &'a str,
    /// The provider's name of the model.
    pub model: &'a str,
    /// The turn that the session is of.
    #[serde(flatten)]
    pub turn: &'a TurnName,
    /// The file, if this is a session on a single file. It is between the step `fix_slice` of the outer
    /// session and that step's result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slice: Option<&'a str>,
    /// The limits of the session.
    pub limits: &'a Limits,
    /// The size limits of a request.
    pub budget: Budget,
    /// The first messages to the model: the system prompt and the task.
    pub messages: Vec<&'a Message>,
}
