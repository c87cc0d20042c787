//! The HTTP client: one request, its answer within limits of time and size, no redirection followed.

use super::{Connector, Network, told};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body, Bytes, Incoming};
use hyper::header::PROXY_AUTHORIZATION;
use hyper::{Request, Response, StatusCode};
use hyper_util::client::legacy;
use hyper_util::rt::TokioExecutor;
use std::error::Error as StdError;
use std::time::Duration;
use tokio::time::timeout;

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TransportError {
    /// No connection was made, so that nothing was sent.
    Unsent(String),
    /// The request, or part of it, was sent; the answer did not come, or not whole.
    Lost(String),
    /// It took longer than it may.
    Late,
    /// The answer must not be followed or cannot be taken, or a setting has to be changed first.
    Broken(String),
}

impl TransportError {
    /// Tells what kind of error of a client it is, by what caused it.
    pub fn of(error: &(dyn StdError + 'static)) -> Self {
        let mut unsent = false;
        let mut next = Some(error);
        while let Some(error) = next {
            let client = error.downcast_ref::<legacy::Error>();
            unsent |= client.is_some_and(legacy::Error::is_connect);
            next = error.source();
        }
        match (told(error), unsent) {
            ((text, true), _) => Self::Broken(text),
            ((text, false), true) => Self::Unsent(text),
            ((text, false), false) => Self::Lost(text),
        }
    }
}

/// Sends requests, and keeps connections from one to the next.
#[derive(Debug, Clone)]
pub struct Client {
    inner: legacy::Client<Connector, Full<Bytes>>,
    network: Network,
}

impl Client {
    /// A client that gives up a connection that is not made within `connect`, where that is set.
    pub fn new(network: &Network, connect: Option<Duration>) -> Self {
        let connector = Connector::new(network, connect);
        Self {
            inner: legacy::Client::builder(TokioExecutor::new()).build(connector),
            network: network.clone(),
        }
    }

    /// Sends a request; the head of the answer comes within `limit`. Redirections are not followed.
    ///
    /// # Errors
    /// A connection that fails, a proxy that wants another login, or no answer in time.
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

/// A body as it arrives, of which no more than so many bytes are taken.
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
    /// A body of which `most` bytes are taken.
    pub fn new(body: B, most: usize) -> Self {
        Self {
            body,
            left: most,
            most,
        }
    }

    /// More of the body, within `limit`; `None` at its end.
    ///
    /// # Errors
    /// A connection that fails or falls silent, or a body that is too large.
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
                    let text = format!("the answer is larger than {most} MiB");
                    return Err(TransportError::Broken(text));
                };
                self.left = left;
                return Ok(Some(data));
            }
        }
    }
}
