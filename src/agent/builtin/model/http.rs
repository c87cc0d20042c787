//! One request over HTTP, and its answer as it comes.

use crate::domain::builtin::model_error::{ModelError, retry_after};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER, USER_AGENT};
use hyper::{Method, Request};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use std::time::Duration;
use tokio::time::timeout;

/// The longest time that it may take to connect.
const CONNECT: Duration = Duration::from_secs(20);

/// The most of an answer that is read whole, in bytes, and the most of an error.
const MOST_BODY: usize = 32 << 20;
const MOST_ERROR: usize = 64 << 10;

/// Connections to the model's server, kept from one request to the next.
#[derive(Debug, Clone)]
pub(super) struct Http {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    idle: Duration,
}

/// The answer to a request that was not refused.
pub(super) struct Answer {
    /// Whether it comes in events.
    pub(super) streams: bool,
    body: Incoming,
    idle: Duration,
    read: usize,
}

impl Http {
    /// A client that gives an answer up after `idle` without a byte of it.
    pub(super) fn new(idle: Duration) -> Result<Self, ModelError> {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_connect_timeout(Some(CONNECT));
        tcp.set_nodelay(true);
        let tls = HttpsConnectorBuilder::new()
            .with_provider_and_webpki_roots(rustls::crypto::ring::default_provider())
            .map_err(|error| ModelError::network(&format!("TLS cannot be set up: {error}")))?
            .https_or_http()
            .enable_http1()
            .wrap_connector(tcp);
        Ok(Self {
            client: Client::builder(TokioExecutor::new()).build(tls),
            idle,
        })
    }

    /// Sends a request. Redirections are not followed: the key is for this address alone.
    ///
    /// # Errors
    /// A connection that failed, or what the server has against the request.
    pub(super) async fn post(
        &self,
        url: &str,
        headers: &[(&'static str, String)],
        body: Vec<u8>,
    ) -> Result<Answer, ModelError> {
        let request = request(url, headers, body)?;
        let answer = match timeout(self.idle, self.client.request(request)).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => return Err(ModelError::network(&chain(&error))),
            Err(_) => return Err(silent(self.idle)),
        };
        let status = answer.status();
        let header = |name| {
            answer
                .headers()
                .get(name)
                .and_then(|value: &HeaderValue| value.to_str().ok())
        };
        let wait = header(RETRY_AFTER).and_then(|text| retry_after(text, jiff::Timestamp::now()));
        let streams =
            header(CONTENT_TYPE).is_some_and(|kind| kind.starts_with("text/event-stream"));
        let mut answer = Answer {
            streams,
            body: answer.into_body(),
            idle: self.idle,
            read: 0,
        };
        if status.is_success() {
            return Ok(answer);
        }
        // Why the body of a refusal cannot be read whole does not matter: its status is enough.
        let mut text = Vec::new();
        while let Ok(Some(chunk)) = answer.chunk().await {
            text.extend_from_slice(&chunk);
            if text.len() > MOST_ERROR {
                text.truncate(MOST_ERROR);
                break;
            }
        }
        let text = String::from_utf8_lossy(&text);
        Err(ModelError::of_answer(status.as_u16(), &text, wait))
    }
}

impl Answer {
    /// More of the body; `None` at its end.
    ///
    /// # Errors
    /// A connection that failed, fell silent, or brings too much.
    pub(super) async fn chunk(&mut self) -> Result<Option<Bytes>, ModelError> {
        loop {
            let frame = match timeout(self.idle, self.body.frame()).await {
                Ok(None) => return Ok(None),
                Ok(Some(Ok(frame))) => frame,
                Ok(Some(Err(error))) => return Err(ModelError::network(&chain(&error))),
                Err(_) => return Err(silent(self.idle)),
            };
            if let Ok(data) = frame.into_data() {
                self.read = self.read.saturating_add(data.len());
                return match self.read > MOST_BODY {
                    true => Err(ModelError::network("the response is too long")),
                    false => Ok(Some(data)),
                };
            }
        }
    }
}

fn request(
    url: &str,
    headers: &[(&'static str, String)],
    body: Vec<u8>,
) -> Result<Request<Full<Bytes>>, ModelError> {
    let mut request = Request::builder()
        .method(Method::POST)
        .uri(url)
        .header(CONTENT_TYPE, "application/json")
        .header(ACCEPT, "text/event-stream, application/json")
        .header(USER_AGENT, concat!("sprag/", env!("CARGO_PKG_VERSION")));
    for (name, value) in headers {
        let value = HeaderValue::from_str(value).map(|mut value| {
            value.set_sensitive(true);
            value
        });
        let value = value.map_err(|_| {
            ModelError::of_answer(401, "the key cannot be sent: it is no plain text", None)
        })?;
        request = request.header(HeaderName::from_static(name), value);
    }
    request.body(Full::new(Bytes::from(body))).map_err(|error| {
        ModelError::of_answer(404, &format!("the address cannot be used: {error}"), None)
    })
}

fn silent(idle: Duration) -> ModelError {
    let after = humantime::format_duration(idle);
    ModelError::network(&format!("timed out: nothing came for {after}"))
}

/// An error with what caused it.
fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        cause = inner.source();
    }
    text
}
