//! Sends requests under the retry policy: with deadlines, waits and retries, and one write at a time.

use super::client::{Client, Repo};
use super::error::{Error, GraphqlError};
use super::policy::{self, Fault, Kind, Next, Now, Refusal};
use super::transport::{HttpRequest, HttpResponse, Keep, after};
use crate::http::TransportError;
use hyper::Method;
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::Instant;

/// A request and its kind.
#[derive(Debug, Clone)]
pub(super) struct Call {
    request: HttpRequest,
    kind: Kind,
}

impl Call {
    /// A GET.
    pub(super) fn get(path: String) -> Self {
        Self::new(Method::GET, path, Kind::Read)
    }

    /// A GET that keeps only a part of the body.
    pub(super) fn keeping(path: String, keep: Keep) -> Self {
        let mut call = Self::get(path);
        call.request.keep = keep;
        call
    }

    /// A request without a body.
    pub(super) fn new(method: Method, path: String, kind: Kind) -> Self {
        let request = HttpRequest {
            method,
            path,
            body: None,
            keep: Keep::Whole,
        };
        Self { request, kind }
    }

    /// A request with a JSON body.
    ///
    /// # Errors
    /// When the body cannot be serialized, which does not happen with the types of this module.
    pub(super) fn with_body(
        method: Method,
        path: String,
        kind: Kind,
        body: &impl Serialize,
    ) -> Result<Self, Error> {
        let body = serde_json::to_vec(body)
            .map_err(|error| Error::protocol(&format!("{method} {path}"), error.to_string()))?;
        let mut call = Self::new(method, path, kind);
        call.request.body = Some(body);
        Ok(call)
    }

    /// A GraphQL query.
    pub(super) fn graphql(query: &str, variables: &Value, kind: Kind) -> Result<Self, Error> {
        let body = json!({ "query": query, "variables": variables });
        Self::with_body(Method::POST, "/graphql".to_owned(), kind, &body)
    }

    /// The request for people: method and path without the query.
    pub(super) fn what(&self) -> String {
        let path = self.request.path.split('?').next().unwrap_or_default();
        format!("{} {path}", self.request.method)
    }
}

/// The result of a request that was not finally refused.
enum End {
    Answered(HttpResponse),
    /// The request may have succeeded. The wait before the check is over.
    Unclear(Error),
}

impl Client {
    /// Records an incident for the log.
    pub(super) fn note(&self, incident: &str) {
        self.inner.note(incident);
    }

    /// Sends a request and parses its response as a `T`.
    pub(super) async fn call<T: DeserializeOwned>(&self, call: &Call) -> Result<T, Error> {
        let answer = self.answer(call).await?;
        read(&call.what(), &answer.body)
    }

    /// Sends a request and returns its response. An unclear result is an error.
    pub(super) async fn answer(&self, call: &Call) -> Result<HttpResponse, Error> {
        match self.drive(call, &mut 0).await? {
            End::Answered(answer) => Ok(answer),
            End::Unclear(error) => Err(error),
        }
    }

    /// Sends a request that creates something. Without a clear response, `existing` checks whether it has
    /// succeeded, and the request is repeated only if not.
    pub(super) async fn create<T: DeserializeOwned>(
        &self,
        call: &Call,
        existing: impl AsyncFn() -> Result<Option<T>, Error>,
    ) -> Result<T, Error> {
        let mut sent = 0;
        loop {
            let error = match self.drive(call, &mut sent).await? {
                End::Answered(answer) => return read(&call.what(), &answer.body),
                End::Unclear(error) => error,
            };
            if let Some(found) = existing().await? {
                self.note(&format!(
                    "{}: the request had succeeded after all",
                    call.what()
                ));
                return Ok(found);
            }
            if sent >= self.inner.limits.attempts || self.left() == Some(Duration::ZERO) {
                return Err(error);
            }
        }
    }

    /// All entries of a list, page by page, until `enough` is true for one.
    pub(super) async fn pages<T, P>(
        &self,
        path: &str,
        entries: impl Fn(P) -> Vec<T>,
        enough: impl Fn(&T) -> bool,
    ) -> Result<Vec<T>, Error>
    where
        P: DeserializeOwned,
    {
        let mut all = Vec::new();
        let separator = if path.contains('?') { '&' } else { '?' };
        for page in 1..=MAX_PAGES {
            let call = Call::get(format!("{path}{separator}per_page={PAGE}&page={page}"));
            let answer = self.answer(&call).await?;
            let found = entries(read(&call.what(), &answer.body)?);
            let full = found.len() >= PAGE || answer.has_next();
            let stop = found.iter().any(&enough);
            let empty = found.is_empty();
            all.extend(found);
            if stop || empty || !full {
                return Ok(all);
            }
        }
        self.note(&format!(
            "GET {path}: only the first {} entries were read",
            all.len()
        ));
        Ok(all)
    }

    /// Sends a GraphQL query, which `what` names in errors, and returns the `data` of its response.
    pub(super) async fn graphql(
        &self,
        query: &str,
        variables: &Value,
        kind: Kind,
        what: &str,
    ) -> Result<Value, Error> {
        let call = Call::graphql(query, variables, kind)?;
        let answer: GraphqlAnswer = self.call(&call).await?;
        answer.data(&format!("{} ({what})", call.what()))
    }

    /// The time until the overall deadline.
    fn left(&self) -> Option<Duration> {
        let deadline = self.deadline?;
        Some(deadline.saturating_duration_since(Instant::now()))
    }

    async fn drive(&self, call: &Call, sent: &mut u32) -> Result<End, Error> {
        loop {
            let (fault, error) = match self.once(call).await? {
                Ok(answer) => return Ok(End::Answered(answer)),
                Err(failed) => *failed,
            };
            *sent = sent.saturating_add(1);
            let now = Now {
                sent: *sent,
                left: self.left(),
                clock: Timestamp::now(),
                jitter: crate::http::random(),
            };
            match policy::next(&self.inner.limits, call.kind, &fault, &now) {
                Next::Again(wait) => {
                    self.note(&format!("{error}; again in {}", wait_text(wait)));
                    let is_limit = matches!(&fault, Fault::Answered(refusal) if refusal.is_limit());
                    let held = is_limit.then(|| self.inner.hold(wait));
                    self.inner.wait(wait).await;
                    if let Some(until) = held {
                        self.inner.released(until);
                    }
                }
                Next::Look(wait) => {
                    self.note(&format!(
                        "{error}; it is unknown whether the request succeeded"
                    ));
                    self.inner.wait(wait).await;
                    return Ok(End::Unclear(error));
                }
                Next::Limited(until) => {
                    let message = match fault {
                        Fault::Answered(refusal) => refusal_words(&refusal, &error),
                        Fault::Unsent | Fault::Lost => String::new(),
                    };
                    let error = Error::RateLimited {
                        what: call.what(),
                        until,
                        message,
                    };
                    self.note(&error.to_string());
                    return Err(error);
                }
                Next::GiveUp => {
                    if error.is_temporary() {
                        self.note(&error.to_string());
                    }
                    return Err(error);
                }
            }
        }
    }

    /// Sends the request once. The outer error is one that no retry can help.
    async fn once(&self, call: &Call) -> Result<Result<HttpResponse, Failed>, Error> {
        let what = call.what();
        let out_of_time = || {
            let error = Error::Deadline { what: what.clone() };
            self.note(&error.to_string());
            error
        };
        if let Some(until) = self.inner.held().filter(|_| !self.is_hurried) {
            let wait = until.saturating_duration_since(Instant::now());
            if self.left().is_some_and(|left| left <= wait) {
                return Err(out_of_time());
            }
            self.inner.wait(wait).await;
            self.inner.released(until);
        }
        let mut turn = None;
        if call.kind != Kind::Read {
            let mut last = self.inner.last_write.lock().await;
            if let Some(last) = last.filter(|_| !self.is_hurried) {
                let wait = self.inner.limits.spacing.saturating_sub(last.elapsed());
                if self.left().is_some_and(|left| left <= wait) {
                    return Err(out_of_time());
                }
                if !wait.is_zero() {
                    self.inner.wait(wait).await;
                }
            }
            *last = Some(Instant::now());
            turn = Some(last);
        }
        let own = after(self.inner.limits.request);
        let deadline = self.deadline.map_or(own, |deadline| deadline.min(own));
        if self.left() == Some(Duration::ZERO) {
            return Err(out_of_time());
        }
        self.inner.sent.fetch_add(1, Ordering::Relaxed);
        let answer = self.inner.transport.send(&call.request, deadline).await;
        if let Some(mut last) = turn {
            *last = Some(Instant::now());
        }
        let lost = |fault, why: String| {
            let what = what.clone();
            Ok(Err(Box::new((fault, Error::Unreachable { what, why }))))
        };
        match answer {
            Ok(answer) => Ok(self.judged(&what, answer)),
            Err(TransportError::Broken(why)) => Err(Error::protocol(&what, why)),
            Err(TransportError::Unsent(why)) => lost(Fault::Unsent, why),
            Err(TransportError::Lost(why)) => lost(Fault::Lost, why),
            Err(TransportError::Late)
                if self.left() == Some(Duration::ZERO) && call.kind != Kind::Create =>
            {
                Err(out_of_time())
            }
            Err(TransportError::Late) => {
                let limit = wait_text(self.inner.limits.request);
                lost(Fault::Lost, format!("no complete response within {limit}"))
            }
        }
    }

    fn judged(&self, what: &str, answer: HttpResponse) -> Result<HttpResponse, Failed> {
        let body = String::from_utf8_lossy(&answer.body);
        let limited = answer.status == 200 && is_graphql_limit(&body);
        if (200..300).contains(&answer.status) && !limited {
            return Ok(answer);
        }
        let status = if limited { 403 } else { answer.status };
        let words = self.inner.transport.without_token(&body);
        let error = Error::of_answer(what, status, &words);
        let mut refusal = answer.refusal();
        refusal.says_limit |= limited;
        Err(Box::new((Fault::Answered(refusal), error)))
    }
}

impl Repo {
    /// Reads a resource of the repository.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn get<T: DeserializeOwned>(&self, rest: &str) -> Result<T, Error> {
        self.client.call(&Call::get(self.path(rest))).await
    }

    /// Reads all entries of a list of the repository.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn list<T: DeserializeOwned>(&self, rest: &str) -> Result<Vec<T>, Error> {
        let path = self.path(rest);
        let all = |page: Vec<T>| page;
        self.client.pages(&path, all, |_| false).await
    }

    /// Sends a request of which only the success matters. An unclear result is an error.
    pub(super) async fn send(
        &self,
        method: Method,
        rest: &str,
        kind: Kind,
        body: &impl Serialize,
    ) -> Result<(), Error> {
        let call = Call::with_body(method, self.path(rest), kind, body)?;
        self.client.answer(&call).await.map(drop)
    }
}

/// A GraphQL response, which reports errors in a body with status 200.
#[derive(Deserialize)]
pub(super) struct GraphqlAnswer {
    data: Option<Value>,
    #[serde(default)]
    errors: Vec<GraphqlError>,
}

impl GraphqlAnswer {
    pub(super) fn with(data: Value) -> Self {
        Self {
            data: Some(data),
            errors: Vec::new(),
        }
    }

    pub(super) fn data(self, what: &str) -> Result<Value, Error> {
        match (self.errors.as_slice(), self.data) {
            ([], Some(data)) => Ok(data),
            ([], None) => Err(Error::protocol(what, "the response has no data")),
            (errors, _) => Err(Error::of_graphql(what, errors)),
        }
    }
}

/// Reads a value for which GitHub may send `null`.
pub(super) fn or_default<'de, D, T>(from: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

/// The fault, and the error with its message.
type Failed = Box<(Fault, Error)>;

/// Entries per page, and the maximum number of pages of a list.
const PAGE: usize = 100;
const MAX_PAGES: usize = 100;

/// GraphQL reports an exceeded limit with status 200 and an error of this type. No other answer has `errors`.
fn is_graphql_limit(body: &str) -> bool {
    const TYPE: &str = "RATE_LIMITED";
    let value: Option<Value> = body
        .contains(TYPE)
        .then(|| serde_json::from_str(body).ok())
        .flatten();
    let errors = value.as_ref().and_then(|value| value["errors"].as_array());
    errors.is_some_and(|errors| errors.iter().any(|error| error["type"] == TYPE))
}

fn refusal_words(refusal: &Refusal, error: &Error) -> String {
    let words = match error {
        Error::Forbidden { message, .. } | Error::Invalid { message, .. } => message.clone(),
        other => other.to_string(),
    };
    match refusal.retry_after {
        Some(seconds) => format!("{words} (retry-after {seconds} s)"),
        None => words,
    }
}

/// Parses a body as a `T` and ignores unknown fields.
pub(super) fn read<T: DeserializeOwned>(what: &str, body: &[u8]) -> Result<T, Error> {
    serde_json::from_slice(body)
        .map_err(|error| Error::protocol(what, format!("the response is invalid: {error}")))
}

fn wait_text(wait: Duration) -> String {
    match wait.as_secs() {
        0 => format!("{} ms", wait.as_millis()),
        _ => format!("{:.1} s", wait.as_secs_f64()),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn only_an_error_of_its_type_is_a_limit() {
        let limited = |body: &str| super::is_graphql_limit(body);
        let refused = r#"{"data":null,"errors":[{"message":"a"},{"type":"RATE_LIMITED"}]}"#;
        assert!(limited(refused));
        for body in [
            r#"{"name":"RATE_LIMITED","errors":[]}"#,
            r#"{"errors":[{"type":"NOT_FOUND","message":"RATE_LIMITED"}]}"#,
            r#"["RATE_LIMITED"]"#,
            "RATE_LIMITED",
        ] {
            assert!(!limited(body), "{body}");
        }
    }
}
