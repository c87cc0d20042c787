//! Sends one request and reads its response, within limits of time and size. The token goes only to the API's
//! own host.

use super::error::Error;
use super::policy::{Kind, Refusal};
use super::settings::Settings;
use crate::http::{BoundedBody, Connector, Network, TransportError, is_loopback};
use hyper::header::{
    ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, LINK, LOCATION, USER_AGENT,
};
use hyper::{Method, Request, Uri};
use hyper_util::client::legacy::Client as WireFormat;
use hyper_util::rt::TokioExecutor;
use jiff::fmt::rfc2822;
use octocrab::{AuthState, Octocrab, OctocrabBuilder};
use secrecy::{ExposeSecret as _, SecretString};
use serde::Serialize;
use serde_json::{Value, json};
use std::error::Error as StdError;
use std::str::FromStr;
use std::sync::OnceLock;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// Maximum size in bytes of an ordinary response.
const MAX_BODY_BYTES: usize = 16 << 20;

/// Maximum number of redirections that are followed.
const REDIRECTIONS: usize = 5;

/// The connection, and the headers of every request.
pub(super) struct Transport {
    crab: OnceLock<Octocrab>,
    connector: Connector,
    root: Uri,
    server: Option<Uri>,
    token: HeaderValue,
    secret: SecretString,
}

/// A request to send.
#[derive(Debug, Clone)]
pub(super) struct Call {
    pub(super) method: Method,
    /// The path below the API's root, starting with `/`, with its query, or the address of a file.
    pub(super) path: String,
    pub(super) body: Option<Vec<u8>>,
    /// The part of the response's body that is kept.
    pub(super) keep: Keep,
    pub(super) kind: Kind,
}

impl Call {
    /// A GET.
    pub(super) fn get(path: String) -> Self {
        Self::new(Method::GET, path, Kind::Read)
    }

    /// A GET that keeps only a part of the body.
    pub(super) fn keeping(path: String, keep: Keep) -> Self {
        Self {
            keep,
            ..Self::new(Method::GET, path, Kind::Read)
        }
    }

    /// A request without a body.
    pub(super) fn new(method: Method, path: String, kind: Kind) -> Self {
        Self {
            method,
            path,
            body: None,
            keep: Keep::AtMost(MAX_BODY_BYTES),
            kind,
        }
    }

    /// A request with a JSON body. A field that is `None` is left out.
    ///
    /// # Errors
    /// When the body cannot be serialized, which does not happen with the types of this module.
    pub(super) fn with_body(
        method: Method,
        path: String,
        kind: Kind,
        body: &impl Serialize,
    ) -> Result<Self, Error> {
        let mut call = Self::new(method, path, kind);
        let body = serde_json::to_value(body);
        let mut body = body.map_err(|error| Error::protocol(&call.what(), error.to_string()))?;
        drop_nulls(&mut body);
        call.body = Some(body.to_string().into_bytes());
        Ok(call)
    }

    /// A GraphQL query.
    pub(super) fn graphql(query: &str, variables: &Value, kind: Kind) -> Result<Self, Error> {
        let body = json!({ "query": query, "variables": variables });
        Self::with_body(Method::POST, "/graphql".to_owned(), kind, &body)
    }

    /// The request for people: method and path without the query.
    pub(super) fn what(&self) -> String {
        let path = self.path.split('?').next().unwrap_or_default();
        format!("{} {path}", self.method)
    }
}

/// Removes the fields that are `null`.
pub(super) fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

/// The part of a body that is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keep {
    /// The whole body. More than this number of bytes is an error.
    AtMost(usize),
    /// The last bytes, up to this number.
    Tail(usize),
}

/// A response with any status.
#[derive(Debug, Clone)]
pub(super) struct HttpResponse {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
    pub(super) headers: HeaderMap,
}

impl Transport {
    pub(super) fn new(settings: &Settings, network: &Network) -> Result<Self, Error> {
        let text = settings.api_url.trim_end_matches('/');
        let wrong = |why: &str| Error::protocol("the address of GitHub's API", why.to_owned());
        let root: Uri = text.parse().map_err(|_| wrong("it is not a valid URL"))?;
        let (Some(scheme), Some(host)) = (root.scheme_str(), root.host()) else {
            return Err(wrong("it is not a URL with a host"));
        };
        if scheme != "https" && !(scheme == "http" && is_loopback(host)) {
            return Err(wrong(
                "a token is sent only over https, or http to a loopback address",
            ));
        }
        if text.contains('@') {
            return Err(wrong("it must hold no user or password"));
        }
        let value = format!("Bearer {}", settings.token.expose_secret());
        let mut token = HeaderValue::from_str(&value)
            .map_err(|_| Error::protocol("the token", "it holds characters that no token has"))?;
        token.set_sensitive(true);
        Ok(Self {
            crab: OnceLock::new(),
            connector: Connector::new(network, None),
            root,
            server: settings.server_url.parse().ok(),
            token,
            secret: settings.token.clone(),
        })
    }

    /// Sends one request, follows redirections and reads the response, all by `deadline`.
    pub(super) async fn send(
        &self,
        request: &Call,
        deadline: Instant,
    ) -> Result<HttpResponse, TransportError> {
        let sent = timeout_at(deadline, self.follow(request));
        sent.await.unwrap_or(Err(TransportError::Late))
    }

    async fn follow(&self, request: &Call) -> Result<HttpResponse, TransportError> {
        let root = self.root.to_string();
        let root = root.trim_end_matches('/');
        let mut to = parsed(&match request.path.as_str() {
            // A private server has it beside `/api/v3`.
            "/graphql" => format!("{}/graphql", root.strip_suffix("/v3").unwrap_or(root)),
            path if path.starts_with('/') => format!("{root}{path}"),
            file => file.to_owned(),
        })?;
        for _ in 0..=REDIRECTIONS {
            let response = self.once(request, &to).await?;
            let status = response.status().as_u16();
            let location = response.headers().get(LOCATION).cloned();
            // GitHub answers 301 for a renamed repository, also to writes, which keep their method. With 303
            // the write has taken place.
            let moved = match (status, location) {
                (301 | 302 | 307 | 308, Some(location)) => Some(location),
                (303, Some(location)) if request.method == Method::GET => Some(location),
                _ => None,
            };
            let Some(location) = moved else {
                let (head, body) = response.into_parts();
                let mut keep = Keep::AtMost(MAX_BODY_BYTES);
                if head.status.is_success() {
                    keep = request.keep;
                }
                let (body, headers) = (kept(body, keep).await?, head.headers);
                return Ok(HttpResponse {
                    status,
                    body,
                    headers,
                });
            };
            let next = resolved(&to, location.to_str().unwrap_or_default())?;
            self.may_follow(request, &next)?;
            to = next;
        }
        let why = format!("more than {REDIRECTIONS} redirections");
        Err(TransportError::Broken(why))
    }

    /// Another host gets neither the token nor a write.
    fn may_follow(&self, request: &Call, to: &Uri) -> Result<(), TransportError> {
        let host = to.host().unwrap_or_default();
        let is_here = self.root.scheme_str() == Some("http") && is_loopback(host);
        let why = if to.scheme_str() != Some("https") && !is_here {
            " over plain http"
        } else if request.method != Method::GET && !is_on(to, &self.root) {
            "; writes are not sent to other hosts"
        } else {
            return Ok(());
        };
        Err(TransportError::Broken(format!("redirected to {host}{why}")))
    }

    async fn once(&self, request: &Call, to: &Uri) -> Result<Response, TransportError> {
        let mut built = Request::builder()
            .method(request.method.clone())
            .uri(to)
            .header(USER_AGENT, concat!("sprag/", env!("CARGO_PKG_VERSION")));
        // A file may be on the host of the pages, which takes the token as well.
        let is_file = !request.path.starts_with('/');
        if is_file && self.server.as_ref().is_some_and(|server| is_on(to, server)) {
            built = built.header(AUTHORIZATION, &self.token);
        } else if is_on(to, &self.root) {
            built = built
                .header(AUTHORIZATION, &self.token)
                .header(ACCEPT, "application/vnd.github+json")
                .header("x-github-api-version", "2022-11-28");
        }
        if request.body.is_some() {
            built = built.header(CONTENT_TYPE, "application/json");
        }
        let built = built
            .body(request.body.clone().unwrap_or_default())
            .map_err(|error| TransportError::Broken(error.to_string()))?;
        self.crab().execute(built).await.map_err(|error| {
            let mut cause: &(dyn StdError + 'static) = &error;
            // octocrab's own message starts a backtrace. The causes have the text.
            while let (true, Some(next)) = (cause.is::<octocrab::Error>(), cause.source()) {
                cause = next;
            }
            TransportError::of(cause)
        })
    }

    /// octocrab starts a task for its queue, so the first request creates it inside the runtime.
    fn crab(&self) -> &Octocrab {
        self.crab.get_or_init(|| {
            let wire = WireFormat::builder(TokioExecutor::new()).build(self.connector.clone());
            let builder = OctocrabBuilder::new_empty().with_service(wire);
            let Ok(crab) = builder.with_auth(AuthState::None).build();
            crab
        })
    }

    /// Removes the token from `text`, in case it was echoed.
    pub(super) fn without_token(&self, text: &str) -> String {
        match self.secret.expose_secret() {
            "" => text.to_owned(),
            secret => text.replace(secret, "***"),
        }
    }

    /// Whether the token belongs to an installation of an app. A job's token does.
    pub(super) fn is_installation_token(&self) -> bool {
        self.secret.expose_secret().starts_with("ghs_")
    }
}

type Body = http_body_util::combinators::BoxBody<hyper::body::Bytes, octocrab::Error>;
type Response = hyper::Response<Body>;

/// Reads the part of a body to keep. The caller sets the time limit.
async fn kept(body: Body, keep: Keep) -> Result<Vec<u8>, TransportError> {
    let (most, tail) = match keep {
        Keep::AtMost(most) => (most, usize::MAX),
        Keep::Tail(tail) => (usize::MAX, tail),
    };
    let mut body = BoundedBody::new(body, most);
    let mut bytes = Vec::new();
    loop {
        let data = match body.chunk(Duration::MAX).await {
            Ok(Some(data)) => data,
            Ok(None) => break,
            Err(TransportError::Unsent(_) | TransportError::Lost(_)) => {
                return Err(TransportError::Lost("the response broke off".to_owned()));
            }
            Err(error) => return Err(error),
        };
        bytes.extend_from_slice(&data);
        // Cut only at twice the size, so that a long log is not moved with every frame.
        if bytes.len() > tail.saturating_mul(2) {
            bytes.drain(..bytes.len() - tail);
        }
    }
    bytes.drain(..bytes.len().saturating_sub(tail));
    Ok(bytes)
}

impl HttpResponse {
    /// A header as text.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        let value = self.headers.get(name)?;
        value.to_str().ok().map(str::trim)
    }

    /// A header as a number.
    pub(super) fn number<T: FromStr>(&self, name: &str) -> Option<T> {
        self.text(name)?.parse().ok()
    }

    /// The response's headers and text about limits.
    pub(super) fn refusal(&self) -> Refusal {
        let date = self.text("date").and_then(|date| rfc2822::parse(date).ok());
        let lower = String::from_utf8_lossy(&self.body).to_lowercase();
        Refusal {
            status: self.status,
            retry_after: self.number("retry-after"),
            remaining: self.number("x-ratelimit-remaining"),
            reset: self.number("x-ratelimit-reset"),
            date: date.map(|date| date.timestamp().as_second()),
            says_limit: SIGNS_OF_LIMIT.iter().any(|words| lower.contains(words)),
        }
    }

    /// Whether another page follows.
    pub(super) fn has_next(&self) -> bool {
        let mut links = self.headers.get_all(LINK).iter();
        links.any(|link| link.to_str().unwrap_or_default().contains("rel=\"next\""))
    }
}

/// What GitHub says when there were too many requests.
const SIGNS_OF_LIMIT: [&str; 3] = [
    "secondary rate limit",
    "api rate limit exceeded",
    "abuse detection",
];

/// Whether a URL has this scheme, host and port.
fn is_on(to: &Uri, home: &Uri) -> bool {
    to.scheme() == home.scheme() && to.authority() == home.authority()
}

fn parsed(address: &str) -> Result<Uri, TransportError> {
    let wrong = |_| TransportError::Broken("the address is not a valid URL".to_owned());
    address.parse().map_err(wrong)
}

/// The target of a `location` header, resolved against `from`.
fn resolved(from: &Uri, location: &str) -> Result<Uri, TransportError> {
    let location = location.split('#').next().unwrap_or_default();
    if !location.starts_with('/') || location.starts_with("//") {
        return parsed(location);
    }
    let mut parts = from.clone().into_parts();
    parts.path_and_query = location.parse().ok();
    let wrong = |_| TransportError::Broken("redirected to an invalid URL".to_owned());
    Uri::from_parts(parts).map_err(wrong)
}
