//! Why a request to GitHub came to nothing: what was asked for, and GitHub's own words.

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

/// A request that came to nothing. `what` is the request (`GET /repos/octo/hello`), `message` what
/// GitHub said to it. The token is in none of them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// 401: the token is wrong, expired or withdrawn.
    #[error("{what}: GitHub does not accept the token (401): {message}")]
    Unauthorised {
        /// The request.
        what: String,
        /// GitHub's words.
        message: String,
    },
    /// 403: the token is good, and not good enough.
    #[error("{what}: GitHub does not permit this (403): {message}")]
    Forbidden {
        /// The request.
        what: String,
        /// GitHub's words.
        message: String,
    },
    /// 404 or 410: it is not there, or this token may not see it; GitHub does not tell which.
    #[error("{what}: not found, or not visible to this token: {message}")]
    NotFound {
        /// The request.
        what: String,
        /// GitHub's words.
        message: String,
    },
    /// 409: it does not go together with the present state.
    #[error("{what}: in conflict with the present state (409): {message}")]
    Conflict {
        /// The request.
        what: String,
        /// GitHub's words.
        message: String,
    },
    /// 422 or another 4xx: GitHub understood the request and does not take it.
    #[error(
        "{what}: GitHub refused the request ({status}): {message}{}",
        listed(fields)
    )]
    Invalid {
        /// The request.
        what: String,
        /// The status.
        status: u16,
        /// GitHub's words.
        message: String,
        /// What GitHub has against single fields, one text each.
        fields: Vec<String>,
    },
    /// A limit that it would take too long to wait for.
    #[error("{what}: GitHub's rate limit is used up until {until}: {message}")]
    RateLimited {
        /// The request.
        what: String,
        /// When to come back, by GitHub's clock.
        until: Timestamp,
        /// GitHub's words.
        message: String,
    },
    /// The branch is no longer where it was expected.
    #[error("{what}: the branch has moved: {message}")]
    Stale {
        /// The request.
        what: String,
        /// GitHub's words.
        message: String,
    },
    /// No connection, no answer in time, or an error of the server, as often as it was tried.
    #[error("{what}: GitHub cannot be reached: {why}")]
    Unreachable {
        /// The request.
        what: String,
        /// What happened last.
        why: String,
    },
    /// The overall deadline passed.
    #[error("{what}: no time is left for this request")]
    Deadline {
        /// The request.
        what: String,
    },
    /// An answer that cannot be understood, or a setting under which nothing may be sent.
    #[error("{what}: {why}")]
    Protocol {
        /// The request.
        what: String,
        /// What is wrong with it.
        why: String,
    },
}

impl Error {
    /// Whether the token lacks the right: 401 or 403.
    pub fn is_permission(&self) -> bool {
        matches!(self, Self::Unauthorised { .. } | Self::Forbidden { .. })
    }

    /// Whether it is not there, or not visible to the token.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::NotFound { .. })
    }

    /// Whether the same request may go through later: GitHub away, a limit, no time.
    pub fn is_temporary(&self) -> bool {
        matches!(
            self,
            Self::RateLimited { .. } | Self::Unreachable { .. } | Self::Deadline { .. }
        )
    }

    /// The error for a status that is no success.
    pub(super) fn of_answer(what: &str, status: u16, body: &str) -> Self {
        let what = what.to_owned();
        let Words { message, fields } = words(status, body);
        match status {
            401 => Self::Unauthorised { what, message },
            403 => Self::Forbidden { what, message },
            404 | 410 => Self::NotFound { what, message },
            409 => Self::Conflict { what, message },
            400..500 => Self::Invalid {
                what,
                status,
                message,
                fields,
            },
            500.. => Self::Unreachable {
                what,
                why: format!("{status}: {message}"),
            },
            _ => Self::Protocol {
                what,
                why: format!("an answer of status {status} was not expected"),
            },
        }
    }

    /// The error for an answer of GraphQL, which has its errors in a body of status 200.
    pub(super) fn of_graphql(what: &str, errors: &[GraphqlError]) -> Self {
        let what = what.to_owned();
        let messages: Vec<&str> = errors.iter().map(|error| error.message.as_str()).collect();
        let message = messages.join("; ");
        let kind = errors.iter().find_map(|error| error.kind.as_deref());
        let moved = message.contains("Expected branch to point to");
        match kind.unwrap_or_default() {
            "STALE_DATA" => Self::Stale { what, message },
            _ if moved => Self::Stale { what, message },
            "NOT_FOUND" => Self::NotFound { what, message },
            "FORBIDDEN" | "INSUFFICIENT_SCOPES" => Self::Forbidden { what, message },
            _ => Self::Invalid {
                what,
                status: 200,
                message,
                fields: Vec::new(),
            },
        }
    }

    pub(super) fn protocol(what: &str, why: impl Into<String>) -> Self {
        Self::Protocol {
            what: what.to_owned(),
            why: why.into(),
        }
    }
}

/// One error of a GraphQL answer.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct GraphqlError {
    #[serde(rename = "type")]
    pub(super) kind: Option<String>,
    #[serde(default)]
    pub(super) message: String,
}

/// What GitHub says in the body of a refusal.
struct Words {
    message: String,
    fields: Vec<String>,
}

/// Longest text of GitHub's that is taken into an error, in characters.
const WORDS: usize = 500;

fn words(status: u16, body: &str) -> Words {
    let parsed: Option<Value> = serde_json::from_str(body).ok();
    let message = parsed
        .as_ref()
        .and_then(|body| body.get("message")?.as_str());
    let plain = || match body.trim_start().starts_with('<') || body.trim().is_empty() {
        true => format!("no reason given with status {status}"),
        false => body.trim().to_owned(),
    };
    let errors = parsed.as_ref().and_then(|body| body.get("errors"));
    let fields = match errors {
        Some(Value::Array(errors)) => errors.iter().map(field).collect(),
        Some(other) => vec![field(other)],
        None => Vec::new(),
    };
    let message = message.map_or_else(plain, str::to_owned);
    Words {
        message: short(&message),
        fields: fields.iter().map(|field| short(field)).collect(),
    }
}

/// One entry of `errors`: a text, or an object of resource, field, code and sometimes a message.
fn field(error: &Value) -> String {
    let text = |key: &str| error.get(key).and_then(Value::as_str).unwrap_or_default();
    match error {
        Value::String(text) => text.clone(),
        Value::Object(_) if !text("message").is_empty() => text("message").to_owned(),
        Value::Object(_) if !text("code").is_empty() => {
            let place = [text("resource"), text("field")];
            let place: Vec<&str> = place.into_iter().filter(|part| !part.is_empty()).collect();
            format!("{} is {}", place.join("."), text("code").replace('_', " "))
        }
        other => other.to_string(),
    }
}

fn listed(fields: &[String]) -> String {
    match fields {
        [] => String::new(),
        fields => format!(" ({})", fields.join("; ")),
    }
}

/// On one line, and no longer than a person reads.
pub(super) fn short(text: &str) -> String {
    let mut words = String::new();
    for word in text.split_whitespace() {
        if !words.is_empty() {
            words.push(' ');
        }
        words.push_str(word);
    }
    crate::domain::text::cap_chars(&words, WORDS).into_owned()
}
