//! Sends one HTTP request and streams its response.

use crate::http::{BoundedBody, Client, Network, TransportError, is_loopback};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER, USER_AGENT};
use hyper::{Method, Request};
use sprag_agent::model::{Answer, Transport};
use sprag_agent::model_error::{ModelError, WAITS, retry_after};
use std::time::Duration;

/// Time limit for connecting.
const CONNECT: Duration = Duration::from_secs(20);

/// Maximum size in bytes of a response that is read at once, and of an error.
const MAX_BODY_BYTES: usize = 32 << 20;
const MAX_ERROR_BYTES: usize = 64 << 10;

/// Connections to the model's server, reused for later requests.
#[derive(Debug, Clone)]
pub struct Http {
    client: Client,
    idle: Duration,
}

/// The response to a successful request.
pub struct HttpAnswer {
    kind: String,
    body: BoundedBody<Incoming>,
    idle: Duration,
}

impl Http {
    /// A client that aborts a response after `idle` without data.
    pub fn new(network: &Network, idle: Duration) -> Self {
        Self {
            client: Client::new(network, Some(CONNECT)),
            idle,
        }
    }
}

impl Transport for Http {
    type Answer = HttpAnswer;

    async fn post(
        &self,
        url: &str,
        headers: &[(&'static str, String)],
        body: Vec<u8>,
    ) -> Result<HttpAnswer, ModelError> {
        let request = request(url, headers, body.into())?;
        let to = request.uri().authority().map(ToString::to_string);
        let is_here = request.uri().host().is_some_and(is_loopback);
        let answer = self.client.send(request, self.idle).await;
        let answer = answer.map_err(|error| match error {
            TransportError::Unsent(text) => {
                let to = to.unwrap_or_default();
                ModelError {
                    // A server that starts on this machine is there soon or not at all.
                    retry_after_ms: is_here.then_some(WAITS.first_ms),
                    ..ModelError::network(&format!("no connection to {to}: {text}"))
                }
            }
            error => failed(error, self.idle),
        })?;
        let status = answer.status();
        let header = |name| answer.headers().get(name)?.to_str().ok();
        let wait = header(RETRY_AFTER).and_then(|text| retry_after(text, jiff::Timestamp::now()));
        let kind = header(CONTENT_TYPE).unwrap_or_default().to_owned();
        let mut answer = HttpAnswer {
            kind,
            body: BoundedBody::new(answer.into_body(), MAX_BODY_BYTES),
            idle: self.idle,
        };
        if status.is_success() {
            return Ok(answer);
        }
        // If the body of an error cannot be read completely, its status is enough.
        let mut text = Vec::new();
        while let Ok(Some(chunk)) = answer.chunk().await {
            text.extend_from_slice(&chunk);
            if text.len() > MAX_ERROR_BYTES {
                text.truncate(MAX_ERROR_BYTES);
                break;
            }
        }
        let text = String::from_utf8_lossy(&text);
        Err(ModelError::of_answer(status.as_u16(), &text, wait))
    }
}

impl Answer for HttpAnswer {
    fn kind(&self) -> &str {
        &self.kind
    }

    async fn chunk(&mut self) -> Result<Option<Vec<u8>>, ModelError> {
        match self.body.chunk(self.idle).await {
            // Another response may be shorter.
            Err(TransportError::Broken(text)) => Err(ModelError::network(&text)),
            Err(error) => Err(failed(error, self.idle)),
            Ok(chunk) => Ok(chunk.map(Into::into)),
        }
    }
}

fn request(
    url: &str,
    headers: &[(&'static str, String)],
    body: Bytes,
) -> Result<Request<Full<Bytes>>, ModelError> {
    let mut request = Request::builder()
        .method(Method::POST)
        .uri(url)
        .header(CONTENT_TYPE, "application/json")
        .header(ACCEPT, "text/event-stream, application/json")
        .header(USER_AGENT, concat!("sprag/", env!("CARGO_PKG_VERSION")));
    for (name, value) in headers {
        let mut value = HeaderValue::from_str(value).map_err(|_| {
            ModelError::of_answer(401, "the key cannot be sent: it is not plain text", None)
        })?;
        value.set_sensitive(true);
        request = request.header(HeaderName::from_static(name), value);
    }
    request.body(Full::new(body)).map_err(|error| {
        ModelError::of_answer(404, &format!("the address cannot be used: {error}"), None)
    })
}

/// The error for a failed connection: transient, or permanent until a setting changes.
fn failed(error: TransportError, idle: Duration) -> ModelError {
    match error {
        TransportError::Broken(text) => ModelError::setup(&text),
        TransportError::Unsent(text) | TransportError::Lost(text) => ModelError::network(&text),
        TransportError::Late => {
            let after = humantime::format_duration(idle);
            ModelError::network(&format!("timed out: nothing came for {after}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_server_on_this_machine_that_is_not_there_is_not_waited_for_long() {
        let http = Http::new(&Network::direct(), Duration::from_secs(600));
        // A port that was given back may be another test's by now.
        let sent = http.post("http://127.0.0.1:1/v1", &[], Vec::new()).await;
        let error = sent.err().unwrap();
        let waits: Vec<u64> = (1..=5).map(|failures| error.wait_ms(failures)).collect();
        assert_eq!(waits, [WAITS.first_ms; 5], "{error:?}");
    }
}
