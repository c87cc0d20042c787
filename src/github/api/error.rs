//! Why a request to GitHub failed: the request and GitHub's message.

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

/// A failed request. `what` is the request (`GET /repos/octo/hello`), `message` is GitHub's response. Neither
/// contains the token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the sentence of each says what its fields are")]
pub enum Error {
    /// 401: the token is invalid, expired or revoked.
    #[error(
        "{what}: GitHub does not accept the token (401), which is wrong, revoked or expired; that of a job ends with \
         the job: {message}"
    )]
    Unauthorised { what: String, message: String },
    /// 403: the token is valid but lacks the permission.
    #[error("{what}: GitHub does not permit this (403): {message}")]
    Forbidden { what: String, message: String },
    /// 404 or 410: the resource does not exist, or the token may not read it. GitHub does not say which.
    #[error("{what}: not found, or not visible to this token: {message}")]
    NotFound { what: String, message: String },
    /// 409: the request conflicts with the present state.
    #[error("{what}: conflict with the current state (409): {message}")]
    Conflict { what: String, message: String },
    /// 422 or another 4xx: GitHub understood the request and refuses it.
    #[error(
        "{what}: GitHub refused the request ({status}): {message}{}",
        listed(fields)
    )]
    Invalid {
        what: String,
        status: u16,
        message: String,
        /// GitHub's objections to single fields, one text each.
        fields: Vec<String>,
    },
    /// A rate limit with a wait that is too long.
    #[error("{what}: GitHub's rate limit is used up until {until}: {message}")]
    RateLimited {
        what: String,
        /// The earliest time for a retry, by GitHub's clock.
        until: Timestamp,
        message: String,
    },
    /// The branch is no longer at the expected commit.
    #[error("{what}: the branch has moved: {message}")]
    Stale { what: String, message: String },
    /// No connection, no response in time, or a server error in the last attempt.
    #[error("{what}: GitHub cannot be reached: {why}")]
    Unreachable { what: String, why: String },
    /// The overall deadline passed.
    #[error("{what}: no time left for this request")]
    Deadline { what: String },
    /// An unparsable response, or settings with which nothing may be sent.
    #[error("{what}: {why}")]
    Protocol { what: String, why: String },
}

impl Error {
    /// Whether the token lacks the permission: 401 or 403.
    pub fn is_permission(&self) -> bool {
        matches!(self, Self::Unauthorised { .. } | Self::Forbidden { .. })
    }

    /// Whether the token is valid and lacks a permission. No permission opens what is locked or archived.
    pub fn is_forbidden(&self) -> bool {
        let is_shut = |message: &str| ["locked", "archived"].iter().any(|it| message.contains(it));
        matches!(self, Self::Forbidden { message, .. } if !is_shut(message))
    }

    /// Whether the resource does not exist or is not visible to the token.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::NotFound { .. })
    }

    /// Whether a retry may succeed later: GitHub is unreachable, a rate limit, or a deadline.
    pub fn is_temporary(&self) -> bool {
        matches!(
            self,
            Self::RateLimited { .. } | Self::Unreachable { .. } | Self::Deadline { .. }
        )
    }

    /// The error for an unsuccessful status.
    pub(super) fn of_answer(what: &str, status: u16, body: &str) -> Self {
        let what = what.to_owned();
        let RefusalBody { message, fields } = words(body);
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
                why: format!("unexpected status {status}"),
            },
        }
    }

    /// The error for a GraphQL response, which reports errors in a body with status 200.
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

/// One error of a GraphQL response.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct GraphqlError {
    #[serde(rename = "type")]
    pub(super) kind: Option<String>,
    #[serde(default)]
    pub(super) message: String,
}

/// The message in the body of a refusal.
struct RefusalBody {
    message: String,
    fields: Vec<String>,
}

/// Maximum length in characters of a text of GitHub's in an error.
const WORDS: usize = 500;

fn words(body: &str) -> RefusalBody {
    let parsed: Option<Value> = serde_json::from_str(body).ok();
    let message = parsed
        .as_ref()
        .and_then(|body| body.get("message")?.as_str());
    let plain = || {
        if body.trim_start().starts_with('<') || body.trim().is_empty() {
            "no reason given".to_owned()
        } else {
            body.trim().to_owned()
        }
    };
    let errors = parsed.as_ref().and_then(|body| body.get("errors"));
    let fields = match errors {
        Some(Value::Array(errors)) => errors.iter().map(field).collect(),
        Some(other) => vec![field(other)],
        None => Vec::new(),
    };
    let message = message.map_or_else(plain, str::to_owned);
    RefusalBody {
        message: short(&message),
        fields: fields.iter().map(|field| short(field)).collect(),
    }
}

/// Formats one entry of `errors`: a text, or an object of resource, field, code and sometimes a message.
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

/// Puts a text on one line and limits its length.
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
