//! Recorded sessions: a header, then one record before and one after every effect, each a line of JSON.
//!
//! The format is public and versioned. A trajectory alone suffices to fold every state of its sessions and
//! repeat the decisions ([`super::replay`]), or to reproduce the model's responses.

mod read;

#[cfg(test)]
mod tests;

pub use read::{Unreadable, read};

use super::context::{Budget, Message};
use super::session::{Limits, Observation, Record, Response, Session, SessionExit, Step};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The version of the format that is read and written.
pub const VERSION: u32 = 1;

/// One line of a trajectory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "record", rename_all = "snake_case")]
pub enum Line {
    /// A session begins. The following lines belong to it, until it ends or another session begins.
    Session(Box<Header>),
    /// A step that is about to be done.
    Intent {
        /// The step.
        intent: Step,
        /// The request, if the step asks the model and no secret was removed from the session's texts.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        request: Option<Request>,
    },
    /// The result of the step.
    Observed {
        /// The observation.
        observation: Observation,
    },
}

/// The start of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Header {
    /// The version of the format.
    pub v: u32,
    /// The version of Sprag.
    pub sprag: String,
    /// The provider of the model.
    pub provider: String,
    /// The provider's name of the model.
    pub model: String,
    /// The turn that the session is of.
    #[serde(flatten)]
    pub turn: TurnName,
    /// The file, if this is a session on a single file. It is between the step `fix_slice` of the outer
    /// session and that step's result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slice: Option<String>,
    /// The limits of the session.
    pub limits: Limits,
    /// The size limits of a request.
    pub budget: Budget,
    /// The first messages to the model: the system prompt and the task.
    pub messages: Vec<Message>,
}

/// Which turn it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TurnName {
    /// The id of the task.
    pub task: String,
    /// The attempt, from 1.
    pub attempt: u32,
    /// The turn, counted over the task, from 1.
    pub turn: u32,
    /// The purpose: `implement`, `nudge`, `retry`.
    pub purpose: String,
}

/// A summary of a request, sufficient to compare it with another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Request {
    /// The size of its messages as JSON, in bytes.
    pub bytes: usize,
    /// The BLAKE3 digest of its messages as JSON, in hexadecimal.
    pub blake3: String,
}

impl Request {
    /// A short description of a request with these messages.
    pub fn of(messages: &[&Arc<Message>]) -> Self {
        // Messages are plain data, so serialising them cannot fail.
        let json = serde_json::to_vec(messages).unwrap_or_default();
        Self {
            bytes: json.len(),
            blake3: blake3::hash(&json).to_hex().to_string(),
        }
    }
}

/// Describes the requests of one session. As each of them begins with the previous one, unless parts of that were
/// left out since, only the messages that were added are serialized.
#[derive(Debug, Default)]
pub struct RequestDigest {
    /// How many messages at the beginning were shortened, as far as possible.
    shortened: usize,
    /// How many messages are included.
    included: usize,
    bytes: usize,
    hasher: blake3::Hasher,
    /// The last message that was included, as JSON after its separator.
    json: Vec<u8>,
}

impl RequestDigest {
    /// The same as [`Request::of`] the current request of the session.
    pub fn of(&mut self, session: &Session) -> Request {
        if self.shortened != session.shortened() {
            *self = Self {
                shortened: session.shortened(),
                ..Self::default()
            };
        }
        let messages = session.request();
        for message in messages.iter().skip(self.included) {
            self.include(message);
        }
        let end: &[u8] = if self.included == 0 { b"[]" } else { b"]" };
        let digest = self.hasher.clone().update(end).finalize();
        Request {
            bytes: self.bytes + end.len(),
            blake3: digest.to_hex().to_string(),
        }
    }

    fn include(&mut self, message: &Message) {
        self.json.clear();
        self.json.push(if self.included == 0 { b'[' } else { b',' });
        // Messages are plain data, so serialising them cannot fail.
        let _ = serde_json::to_writer(&mut self.json, message);
        self.hasher.update(&self.json);
        self.bytes += self.json.len();
        self.included += 1;
    }
}

/// The recorded sessions, in order.
#[derive(Debug, Clone, PartialEq)]
pub struct Recording {
    /// The sessions of turns. Sessions on a single file are nested in them.
    pub sessions: Vec<Recorded>,
}

/// One recorded session.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    /// The number of its first line, from 1.
    pub line: usize,
    /// The session's header.
    pub header: Header,
    /// Its records, in order.
    pub entries: Vec<Entry>,
    /// Where its record stops.
    pub ending: Ending,
}

/// One record of a session.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The number of its line, from 1.
    pub line: usize,
    /// The record.
    pub record: Record,
    /// The request that it made, if known.
    pub request: Option<Request>,
    /// The session on a single file that the step started.
    pub inner: Option<Box<Recorded>>,
}

/// Where the record of a session stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(tag = "ending", rename_all = "snake_case")]
pub enum Ending {
    /// At the end of the session.
    Ended,
    /// Before the end: the session was cut off.
    Open,
    /// In the middle of a line.
    Torn {
        /// The number of the line, from 1.
        line: usize,
    },
    /// At the middle part that the log left out.
    LeftOut {
        /// The number of the line that says so, from 1.
        line: usize,
        /// The number of bytes left out.
        bytes: u64,
    },
}

impl Recorded {
    /// How the session ended, if this is recorded.
    pub fn exit(&self) -> Option<SessionExit> {
        self.entries.iter().find_map(|entry| match entry.record {
            Record::Intent {
                intent: Step::End { exit },
            } => Some(exit),
            _ => None,
        })
    }

    /// The model's responses in order, including those of sessions on a single file.
    pub fn responses(&self) -> Vec<&Response> {
        let mut responses = Vec::new();
        for entry in &self.entries {
            if let Record::Observed {
                observation: Observation::ModelResponded(response),
            } = &entry.record
            {
                responses.push(response);
            }
            responses.extend(entry.inner.iter().flat_map(|inner| inner.responses()));
        }
        responses
    }
}

/// The JSON Schema of one line.
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(Line).to_value()
}
