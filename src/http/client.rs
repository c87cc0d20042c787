//! The HTTP client: one request and its response, with limits of time and size and without redirections.

use super::{Connector, Network, describe_error};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body, Bytes, Incoming};
use hyper::header::PROXY_AUTHORIZATION;
use hyper::{Request, Response, StatusCode};
use hyper_util::client::legacy;
use hyper_util::rt::TokioExecutor;
use std::error::Error as StdError;
use std::time::Duration;
use tokio::time::timeout;

/// Why there is no response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TransportError {
    /// No connection was made, so nothing was sent.
    Unsent(String),
    /// The request, or part of it, was sent; the response is missing or incomplete.
    Lost(String),
    /// The time limit was exceeded.
    Late,
    /// The response cannot be used, or a setting has to be changed first.
    Broken(String),
}

impl TransportError {
    /// Classifies an error of a client by its causes.
    pub fn of(error: &(dyn StdError + 'static)) -> Self {
        let mut unsent = false;
        let mut next = Some(error);
        while let Some(error) = next {
            let client = error.downcast_ref::<legacy::Error>();
            unsent |= client.is_some_and(legacy::Error::is_connect);
            next = error.source();
        }
        match describe_error(error) {
            (text, true) => Self::Broken(text),
            (text, false) if unsent => Self::Unsent(text),
            (text, false) => Self::Lost(text),
        }
    }

    /// Its text, or this one for an exceeded time limit.
    pub fn text_or(self, late: &str) -> String {
        match self {
            Self::Unsent(text) | Self::Lost(text) | Self::Broken(text) => text,
            Self::Late => late.to_owned(),
        }
    }
}

/// Sends requests and reuses connections.
#[derive(Debug, Clone)]
pub struct Client {
    inner: legacy::Client<Connector, Full<Bytes>>,
    network: Network,
}

impl Client {
    /// A client. With `connect`, that is the timeout for a connection.
    pub fn new(network: &Network, connect: Option<Duration>) -> Self {
        let connector = Connector::new(network, connect);
        Self {
            inner: legacy::Client::builder(TokioExecutor::new()).build(connector),
            network: network.clone(),
        }
    }

    /// Sends a request. The head of the response must arrive within `limit`. Redirections are not
    /// followed.
    ///
    /// # Errors
    /// When the connection fails, a proxy requires another login, or the time limit is exceeded.
    pub async fn send(
        &self,
        mut request: Request<Full<Bytes>>,
        limit: Duration,
    ) -> Result<Response<Incoming>, TransportError> {
        let to = request.uri().clone();
        if let Some(login) = self.network.proxy_authorization(&to) {
            request.headers_mut().insert(PROXY_AUTHORIZATION, login);
        }
        let answer = match timeout(limit, self.inner.request(request)).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => return Err(TransportError::of(&error)),
            Err(_) => return Err(TransportError::Late),
        };
        match self.network.refused_login(&to) {
            Some(fault) if answer.status() == StatusCode::PROXY_AUTHENTICATION_REQUIRED => {
                Err(TransportError::Broken(fault.to_string()))
            }
            _ => Ok(answer),
        }
    }
}

/// A body with a size limit.
#[derive(Debug)]
pub struct BoundedBody<B> {
    body: B,
    left: usize,
    most: usize,
}

impl<B> BoundedBody<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: StdError + 'static,
{
    /// A body that may have up to `most` bytes.
    pub fn new(body: B, most: usize) -> Self {
        Self {
            body,
            left: most,
            most,
        }
    }

    /// The next chunk of the body, within `limit`; `None` at its end.
    ///
    /// # Errors
    /// When the connection fails or stalls, or the body is too large.
    pub async fn chunk(&mut self, limit: Duration) -> Result<Option<Bytes>, TransportError> {
        loop {
            let frame = match timeout(limit, self.body.frame()).await {
                Ok(None) => return Ok(None),
                Ok(Some(Ok(frame))) => frame,
                Ok(Some(Err(error))) => return Err(TransportError::of(&error)),
                Err(_) => return Err(TransportError::Late),
            };
            if let Ok(data) = frame.into_data() {
                let Some(left) = self.left.checked_sub(data.len()) else {
                    let most = self.most >> 20;
                    let text = format!("the response is larger than {most} MiB");
                    return Err(TransportError::Broken(text));
                };
                self.left = left;
                return Ok(Some(data));
            }
        }
    }
}
