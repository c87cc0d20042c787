//! Why a request to GitHub failed: the request and GitHub's message.

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;
use std::fmt;

/// A failed request. It does not contain the token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// The request (`GET /repos/octo/hello`).
    pub what: String,
    /// How it failed.
    pub kind: ErrorKind,
    /// GitHub's message, with its objections to single fields, or the cause.
    pub message: String,
}

/// How a request fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ErrorKind {
    /// 401: the token is invalid, expired or revoked.
    #[error(
        "GitHub does not accept the token (401), which is wrong, revoked or expired; that of a job ends with the job"
    )]
    Unauthorised,
    /// 403: the token is valid but lacks the permission.
    #[error("GitHub does not permit this (403)")]
    Forbidden,
    /// 404 or 410: the resource does not exist, or the token may not read it. GitHub does not say which.
    #[error("not found, or not visible to this token")]
    NotFound,
    /// 409: the request conflicts with the present state.
    #[error("conflict with the current state (409)")]
    Conflict,
    /// 422 or another 4xx: GitHub understood the request and refuses it.
    #[error("GitHub refused the request ({0})")]
    Invalid(u16),
    /// A rate limit with a wait that is too long: the earliest time for a retry, by GitHub's clock.
    #[error("GitHub's rate limit is used up until {0}")]
    RateLimited(Timestamp),
    /// The branch is no longer at the expected commit.
    #[error("the branch has moved")]
    Stale,
    /// No connection, no response in time, or a server error in the last attempt.
    #[error("GitHub cannot be reached")]
    Unreachable,
    /// The overall deadline passed.
    #[error("no time left for this request")]
    Deadline,
    /// An unparsable response, or settings with which nothing may be sent.
    #[error("")]
    Protocol,
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [&self.what, &self.kind.to_string(), &self.message];
        let parts = parts.map(String::as_str).into_iter();
        let parts: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
        out.write_str(&parts.join(": "))
    }
}

impl std::error::Error for Error {}

impl Error {
    pub(super) fn new(what: &str, kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            what: what.to_owned(),
            kind,
            message: message.into(),
        }
    }

    /// Whether the token lacks the permission: 401 or 403.
    pub fn is_permission(&self) -> bool {
        matches!(self.kind, ErrorKind::Unauthorised | ErrorKind::Forbidden)
    }

    /// Whether the token is valid and lacks a permission. No permission opens what is locked or archived.
    pub fn is_forbidden(&self) -> bool {
        let is_shut = ["locked", "archived"]
            .iter()
            .any(|it| self.message.contains(it));
        self.kind == ErrorKind::Forbidden && !is_shut
    }

    /// Whether the resource does not exist or is not visible to the token.
    pub fn is_not_found(&self) -> bool {
        self.kind == ErrorKind::NotFound
    }

    /// Whether a retry may succeed later: GitHub is unreachable, a rate limit, or a deadline.
    pub fn is_temporary(&self) -> bool {
        use ErrorKind::{Deadline, RateLimited, Unreachable};
        matches!(self.kind, RateLimited(_) | Unreachable | Deadline)
    }

    /// The error for an unsuccessful status.
    pub(super) fn of_answer(what: &str, status: u16, body: &str) -> Self {
        let message = words(body);
        let (kind, message) = match status {
            401 => (ErrorKind::Unauthorised, message),
            403 => (ErrorKind::Forbidden, message),
            404 | 410 => (ErrorKind::NotFound, message),
            409 => (ErrorKind::Conflict, message),
            400..500 => (ErrorKind::Invalid(status), message),
            500.. => (ErrorKind::Unreachable, format!("{status}: {message}")),
            _ => (ErrorKind::Protocol, format!("unexpected status {status}")),
        };
        Self::new(what, kind, message)
    }

    /// The error for a GraphQL response, which reports errors in a body with status 200.
    pub(super) fn of_graphql(what: &str, errors: &[GraphqlError]) -> Self {
        let messages: Vec<&str> = errors.iter().map(|error| error.message.as_str()).collect();
        let message = messages.join("; ");
        let kind = errors.iter().find_map(|error| error.kind.as_deref());
        let kind = match kind.unwrap_or_default() {
            "STALE_DATA" => ErrorKind::Stale,
            _ if message.contains("Expected branch to point to") => ErrorKind::Stale,
            "NOT_FOUND" => ErrorKind::NotFound,
            "FORBIDDEN" | "INSUFFICIENT_SCOPES" => ErrorKind::Forbidden,
            _ => ErrorKind::Invalid(200),
        };
        Self::new(what, kind, message)
    }

    pub(super) fn protocol(what: &str, why: impl Into<String>) -> Self {
        Self::new(what, ErrorKind::Protocol, why)
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

/// Maximum length in characters of a text of GitHub's in an error.
const WORDS: usize = 500;

/// The message in the body of a refusal, with its objections to single fields.
fn words(body: &str) -> String {
    let parsed: Value = serde_json::from_str(body).unwrap_or_default();
    let message = match parsed["message"].as_str() {
        Some(message) => message,
        None if matches!(body.trim().chars().next(), None | Some('<')) => "no reason given",
        None => body,
    };
    let fields: Vec<String> = match &parsed["errors"] {
        Value::Array(errors) => errors.iter().map(field).collect(),
        Value::Null => Vec::new(),
        other => vec![field(other)],
    };
    match fields.as_slice() {
        [] => short(message),
        fields => format!("{} ({})", short(message), fields.join("; ")),
    }
}

/// Formats one entry of `errors`: a text, or an object of resource, field, code and sometimes a message.
fn field(error: &Value) -> String {
    let text = |key: &str| error[key].as_str().filter(|text| !text.is_empty());
    let whole = error.to_string();
    short(&match (error.as_str().or(text("message")), text("code")) {
        (Some(message), _) => message.to_owned(),
        (None, Some(code)) => {
            let place = [text("resource"), text("field")];
            let place: Vec<&str> = place.into_iter().flatten().collect();
            format!("{} is {}", place.join("."), code.replace('_', " "))
        }
        (None, None) => whole,
    })
}

/// Puts a text on one line and limits its length.
pub(super) fn short(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    crate::domain::text::cap_chars(&words.join(" "), WORDS).into_owned()
}
