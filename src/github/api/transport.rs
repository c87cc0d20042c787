//! Sends one request and reads its response, within limits of time and size. The token goes only to the API's
//! own host.

use super::error::Error;
use super::policy::Refusal;
use super::settings::Settings;
use crate::http::{BoundedBody, Connector, Network, TransportError, is_loopback};
use hyper::header::{
    ACCEPT, AUTHORIZATION, CONTENT_TYPE, DATE, HeaderMap, HeaderValue, LINK, LOCATION, RETRY_AFTER,
    USER_AGENT,
};
use hyper::{Method, Request, Uri};
use hyper_util::client::legacy::Client as WireFormat;
use hyper_util::rt::TokioExecutor;
use jiff::fmt::rfc2822;
use octocrab::{AuthState, Octocrab, OctocrabBuilder};
use secrecy::{ExposeSecret as _, SecretString};
use std::error::Error as StdError;
use std::sync::OnceLock;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// Maximum size in bytes of a response.
pub(super) const MAX_BODY_BYTES: usize = 16 << 20;

/// Maximum number of redirections that are followed.
const REDIRECTIONS: usize = 5;

/// The connection, and the headers of every request.
pub(super) struct Transport {
    crab: OnceLock<Octocrab>,
    connector: Connector,
    root: Uri,
    server: Option<Uri>,
    graphql: String,
    token: HeaderValue,
    secret: SecretString,
}

/// A request to send.
#[derive(Debug, Clone)]
pub(super) struct HttpRequest {
    pub(super) method: Method,
    /// The path below the API's root, starting with `/`, with its query, or the address of a file.
    pub(super) path: String,
    pub(super) body: Option<Vec<u8>>,
    /// The part of the response's body that is kept.
    pub(super) keep: Keep,
}

/// The part of a body that is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keep {
    /// The whole body. More than [`MAX_BODY_BYTES`] is an error.
    Whole,
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
        if root
            .authority()
            .is_some_and(|authority| authority.as_str().contains('@'))
        {
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
            graphql: graphql_address(text),
            token,
            secret: settings.token.clone(),
        })
    }

    /// Sends one request, follows redirections and reads the response, all by `deadline`.
    pub(super) async fn send(
        &self,
        request: &HttpRequest,
        deadline: Instant,
    ) -> Result<HttpResponse, TransportError> {
        let sent = timeout_at(deadline, self.follow(request));
        sent.await.unwrap_or(Err(TransportError::Late))
    }

    async fn follow(&self, request: &HttpRequest) -> Result<HttpResponse, TransportError> {
        let address = match request.path.as_str() {
            "/graphql" => self.graphql.clone(),
            path if path.starts_with('/') => {
                format!("{}{path}", self.root.to_string().trim_end_matches('/'))
            }
            file => file.to_owned(),
        };
        let mut to = parsed(&address)?;
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
                let headers = response.headers().clone();
                let keep = if response.status().is_success() {
                    request.keep
                } else {
                    Keep::Whole
                };
                let body = kept(response.into_body(), keep).await?;
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
        Err(TransportError::Broken(format!(
            "more than {REDIRECTIONS} redirections"
        )))
    }

    /// Another host gets neither the token nor a write.
    fn may_follow(&self, request: &HttpRequest, to: &Uri) -> Result<(), TransportError> {
        let host = to.host().unwrap_or_default();
        let plain = to.scheme_str() != Some("https");
        if plain && !(self.root.scheme_str() == Some("http") && is_loopback(host)) {
            return Err(TransportError::Broken(format!(
                "redirected to {host} over plain http"
            )));
        }
        if request.method == Method::GET || self.is_home(to) {
            Ok(())
        } else {
            Err(TransportError::Broken(format!(
                "redirected to {host}; writes are not sent to other hosts"
            )))
        }
    }

    /// Whether a URL has the API's own scheme, host and port.
    fn is_home(&self, to: &Uri) -> bool {
        to.scheme() == self.root.scheme() && to.authority() == self.root.authority()
    }

    /// Whether a file is on the host of the pages, which takes the token as well.
    fn is_page(&self, request: &HttpRequest, to: &Uri) -> bool {
        let is_server =
            |server: &Uri| to.scheme() == server.scheme() && to.authority() == server.authority();
        !request.path.starts_with('/') && self.server.as_ref().is_some_and(is_server)
    }

    async fn once(&self, request: &HttpRequest, to: &Uri) -> Result<Response, TransportError> {
        let mut built = Request::builder()
            .method(request.method.clone())
            .uri(to)
            .header(USER_AGENT, concat!("sprag/", env!("CARGO_PKG_VERSION")));
        if self.is_page(request, to) {
            built = built.header(AUTHORIZATION, &self.token);
        } else if self.is_home(to) {
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
        match self.crab().execute(built).await {
            Ok(response) => Ok(response),
            Err(error) => Err(self.failed(&error)),
        }
    }

    /// octocrab starts a task for its queue, so the first request creates it inside the runtime.
    fn crab(&self) -> &Octocrab {
        self.crab.get_or_init(|| {
            let wire = WireFormat::builder(TokioExecutor::new()).build(self.connector.clone());
            let built = OctocrabBuilder::new_empty()
                .with_service(wire)
                .with_auth(AuthState::None)
                .build();
            match built {
                Ok(crab) => crab,
            }
        })
    }

    fn failed(&self, error: &(dyn StdError + 'static)) -> TransportError {
        let mut cause = error;
        // octocrab's own message starts a backtrace. The causes have the text.
        while let (Some(_), Some(next)) = (cause.downcast_ref::<octocrab::Error>(), cause.source())
        {
            cause = next;
        }
        let told = |text: String| self.without_token(&super::error::short(&text));
        match TransportError::of(cause) {
            TransportError::Unsent(text) => TransportError::Unsent(told(text)),
            TransportError::Lost(text) => TransportError::Lost(told(text)),
            TransportError::Broken(text) => TransportError::Broken(told(text)),
            TransportError::Late => TransportError::Late,
        }
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
    let most = match keep {
        Keep::Whole => MAX_BODY_BYTES,
        Keep::AtMost(most) => most,
        Keep::Tail(_) => usize::MAX,
    };
    let mut body = BoundedBody::new(body, most);
    let mut bytes = Vec::new();
    let broke_off = |error| match error {
        TransportError::Unsent(_) | TransportError::Lost(_) => {
            TransportError::Lost("the response broke off".to_owned())
        }
        other => other,
    };
    while let Some(data) = body.chunk(Duration::MAX).await.map_err(broke_off)? {
        bytes.extend_from_slice(&data);
        // Cut only at twice the size, so that a long log is not moved with every frame.
        if let Keep::Tail(most) = keep
            && bytes.len() > most.saturating_mul(2)
        {
            cut_front(&mut bytes, most);
        }
    }
    if let Keep::Tail(most) = keep {
        cut_front(&mut bytes, most);
    }
    Ok(bytes)
}

/// Keeps the last `most` bytes.
fn cut_front(bytes: &mut Vec<u8>, most: usize) {
    let surplus = bytes.len().saturating_sub(most);
    bytes.drain(..surplus);
}

impl HttpResponse {
    /// The response's headers and text about limits.
    pub(super) fn refusal(&self) -> Refusal {
        let text = |name: &str| self.headers.get(name).and_then(|value| value.to_str().ok());
        let date = text(DATE.as_str()).and_then(|date| rfc2822::parse(date).ok());
        let lower = String::from_utf8_lossy(&self.body).to_lowercase();
        Refusal {
            status: self.status,
            retry_after: text(RETRY_AFTER.as_str()).and_then(|wait| wait.trim().parse().ok()),
            remaining: text("x-ratelimit-remaining").and_then(|left| left.trim().parse().ok()),
            reset: text("x-ratelimit-reset").and_then(|reset| reset.trim().parse().ok()),
            date: date.map(|date| date.timestamp().as_second()),
            says_limit: [
                "secondary rate limit",
                "api rate limit exceeded",
                "abuse detection",
            ]
            .iter()
            .any(|words| lower.contains(words)),
        }
    }

    /// Whether another page follows.
    pub(super) fn has_next(&self) -> bool {
        let links = self.headers.get_all(LINK).iter();
        links
            .filter_map(|link| link.to_str().ok())
            .any(|link| link.contains("rel=\"next\""))
    }
}

/// `https://api.github.com` has `/graphql` below it. A private server has it beside `/api/v3`.
fn graphql_address(root: &str) -> String {
    format!("{}/graphql", root.strip_suffix("/v3").unwrap_or(root))
}

fn parsed(address: &str) -> Result<Uri, TransportError> {
    address
        .parse()
        .map_err(|_| TransportError::Broken("the address is not a valid URL".to_owned()))
}

/// The target of a `location` header, resolved against `from`.
fn resolved(from: &Uri, location: &str) -> Result<Uri, TransportError> {
    let location = location.split('#').next().unwrap_or_default();
    if !location.starts_with('/') || location.starts_with("//") {
        return parsed(location);
    }
    let mut parts = from.clone().into_parts();
    parts.path_and_query = location.parse().ok();
    Uri::from_parts(parts)
        .map_err(|_| TransportError::Broken("redirected to an invalid URL".to_owned()))
}

/// The moment after `wait`, or a distant one if that overflows.
pub(super) fn after(wait: Duration) -> Instant {
    let now = Instant::now();
    now.checked_add(wait)
        .unwrap_or_else(|| now + Duration::from_secs(86_400))
}
