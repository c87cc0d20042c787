//! Sends requests under the retry policy: with deadlines, waits and retries, and one write at a time.

use super::client::{Client, Repo};
use super::error::{Error, ErrorKind, GraphqlError, short};
use super::policy::{self, Fault, Kind, Next, Now};
use super::transport::{Call, HttpResponse, drop_nulls};
use crate::http::TransportError;
use hyper::Method;
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::Duration;
use tokio::time::Instant;

/// The result of a request that was not finally refused. The inner error says that the request may have succeeded;
/// the wait before the check is over.
type End = Result<HttpResponse, Error>;

impl Client {
    /// Sends a request and parses its response as a `T`.
    pub(super) async fn call<T: DeserializeOwned>(&self, call: &Call) -> Result<T, Error> {
        let answer = self.answer(call).await?;
        read(&call.what(), &answer.body)
    }

    /// Sends a request and returns its response. An unclear result is an error.
    pub(super) async fn answer(&self, call: &Call) -> Result<HttpResponse, Error> {
        self.drive(call, &mut 0).await?
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
                Ok(answer) => return created(&call.what(), &answer.body),
                Err(error) => error,
            };
            if let Some(found) = existing().await? {
                let what = call.what();
                self.note(&format!("{what}: the request had succeeded after all"));
                return Ok(found);
            }
            if sent >= self.inner.limits.attempts || self.left() == Some(Duration::ZERO) {
                return Err(error);
            }
        }
    }

    /// All entries of a list, page by page, until `enough` is true for one.
    pub(super) async fn pages<P>(
        &self,
        path: &str,
        enough: impl Fn(&P::Item) -> bool,
    ) -> Result<Vec<P::Item>, Error>
    where
        P: DeserializeOwned + IntoIterator,
    {
        let mut all = Vec::new();
        let separator = if path.contains('?') { '&' } else { '?' };
        for page in 1..=MAX_PAGES {
            let call = Call::get(format!("{path}{separator}per_page={PAGE}&page={page}"));
            let answer = self.answer(&call).await?;
            let before = all.len();
            all.extend(read::<P>(&call.what(), &answer.body)?);
            let found = all.get(before..).unwrap_or_default();
            let is_full = found.len() >= PAGE || answer.has_next();
            if found.is_empty() || !is_full || found.iter().any(&enough) {
                return Ok(all);
            }
        }
        let count = all.len();
        self.note(&format!(
            "GET {path}: only the first {count} entries were read"
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
                Ok(answer) => return Ok(Ok(answer)),
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
                    let why = "it is unknown whether the request succeeded";
                    self.note(&format!("{error}; {why}"));
                    self.inner.wait(wait).await;
                    return Ok(Err(error));
                }
                Next::Limited(until) => {
                    let wait = match fault {
                        Fault::Answered(refusal) => refusal.retry_after,
                        Fault::Unsent | Fault::Lost => None,
                    };
                    let mut message = error.message;
                    if let Some(wait) = wait {
                        message += &format!(" (retry-after {wait} s)");
                    }
                    let error = Error::new(&error.what, ErrorKind::RateLimited(until), message);
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
            let error = Error::new(&what, ErrorKind::Deadline, "");
            self.note(&error.to_string());
            error
        };
        let lasts_too_long = |wait| self.left().is_some_and(|left| left <= wait);
        if let Some(until) = self.inner.held().filter(|_| !self.is_hurried) {
            let wait = until.saturating_duration_since(Instant::now());
            if lasts_too_long(wait) {
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
                if lasts_too_long(wait) {
                    return Err(out_of_time());
                }
                if !wait.is_zero() {
                    self.inner.wait(wait).await;
                }
            }
            *last = Some(Instant::now());
            turn = Some(last);
        }
        let own = Instant::now() + self.inner.limits.request.min(DAY);
        let deadline = self.deadline.map_or(own, |deadline| deadline.min(own));
        if self.left() == Some(Duration::ZERO) {
            return Err(out_of_time());
        }
        let answer = self.inner.transport.send(call, deadline).await;
        if let Some(mut last) = turn {
            *last = Some(Instant::now());
        }
        let lost = |fault, why: String| {
            let why = self.inner.transport.without_token(&short(&why));
            let error = Error::new(&what, ErrorKind::Unreachable, why);
            Ok(Err(Box::new((fault, error))))
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

    /// Reads a resource of the repository, or `None` if it does not exist.
    pub(super) async fn find<T: DeserializeOwned>(&self, rest: &str) -> Result<Option<T>, Error> {
        match self.get(rest).await {
            Ok(value) => Ok(Some(value)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Reads all entries of a list of the repository.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn list<T: DeserializeOwned>(&self, rest: &str) -> Result<Vec<T>, Error> {
        let path = self.path(rest);
        self.client.pages::<Vec<T>>(&path, |_| false).await
    }

    /// Creates a resource. See [`Client::create`].
    pub(super) async fn create<T: DeserializeOwned>(
        &self,
        rest: &str,
        body: &impl Serialize,
        existing: impl AsyncFn() -> Result<Option<T>, Error>,
    ) -> Result<T, Error> {
        let call = Call::with_body(Method::POST, self.path(rest), Kind::Create, body)?;
        self.client.create(&call, existing).await
    }

    /// Changes a resource, of which only the success matters.
    pub(super) async fn patch(&self, rest: &str, body: &impl Serialize) -> Result<(), Error> {
        self.send(Method::PATCH, rest, Kind::Change, body).await
    }

    /// Deletes a resource.
    pub(super) async fn delete(&self, rest: &str) -> Result<(), Error> {
        let call = Call::new(Method::DELETE, self.path(rest), Kind::Change);
        self.client.answer(&call).await.map(drop)
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
        let (data, errors) = (Some(data), Vec::new());
        Self { data, errors }
    }

    pub(super) fn data(self, what: &str) -> Result<Value, Error> {
        match (self.errors.as_slice(), self.data) {
            ([], Some(data)) => Ok(data),
            ([], None) => Err(Error::protocol(what, "the response has no data")),
            (errors, _) => Err(Error::of_graphql(what, errors)),
        }
    }
}

/// The fault, and the error with its message.
type Failed = Box<(Fault, Error)>;

/// The longest time for a request.
const DAY: Duration = Duration::from_secs(86_400);

/// Entries per page, and the maximum number of pages of a list.
const PAGE: usize = 100;
const MAX_PAGES: usize = 100;

/// GraphQL reports an exceeded limit with status 200 and an error of this type. No other answer has `errors`.
fn is_graphql_limit(body: &str) -> bool {
    const TYPE: &str = "RATE_LIMITED";
    let read = || serde_json::from_str::<Value>(body).ok();
    let value = body.contains(TYPE).then(read).flatten().unwrap_or_default();
    let errors = value["errors"].as_array();
    errors.is_some_and(|errors| errors.iter().any(|error| error["type"] == TYPE))
}

/// Parses a body as a `T` and ignores unknown fields. A field that is `null` counts as missing.
pub(super) fn read<T: DeserializeOwned>(what: &str, body: &[u8]) -> Result<T, Error> {
    let parsed = serde_json::from_slice(body).and_then(|mut value| {
        drop_nulls(&mut value);
        T::deserialize(value)
    });
    parsed.map_err(|error| invalid(what, &error))
}

/// Parses the response to a request that creates something. One that names nothing, such as an empty object
/// of a proxy, is no response: a thing without an id cannot be found again.
fn created<T: DeserializeOwned>(what: &str, body: &[u8]) -> Result<T, Error> {
    let value: Value = read(what, body)?;
    let names_something = |key| !value[key].is_null();
    if !["id", "data", "errors"].into_iter().any(names_something) {
        return Err(Error::protocol(what, "the response has no id"));
    }
    T::deserialize(value).map_err(|error| invalid(what, &error))
}

fn invalid(what: &str, error: &serde_json::Error) -> Error {
    Error::protocol(what, format!("the response is invalid: {error}"))
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
    fn a_response_that_names_nothing_creates_nothing() {
        let created = |body: &str| super::created::<serde_json::Value>("POST", body.as_bytes());
        for body in ["{}", r#"{"id":null}"#, "[]", "no JSON"] {
            assert!(created(body).is_err(), "{body}");
        }
        for body in [r#"{"id":1}"#, r#"{"data":{}}"#, r#"{"errors":[]}"#] {
            assert!(created(body).is_ok(), "{body}");
        }
    }

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
