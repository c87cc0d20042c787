//! Connections: TCP, through a proxy if one is set for the address, and TLS for https.

use super::{Fault, Network};
use hyper::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use hyper_util::rt::TokioIo;
use rustls::{ClientConfig, RootCertStore};
use std::error::Error as StdError;
use std::ffi::OsString;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::net::TcpStream;
use tower_service::Service;

type BoxError = Box<dyn StdError + Send + Sync>;
type Connecting<T> = Pin<Box<dyn Future<Output = Result<T, BoxError>> + Send>>;

/// Makes the connections of an HTTP client.
#[derive(Clone)]
pub struct Connector {
    network: Network,
    tcp: HttpConnector,
}

impl Connector {
    /// A connector with a timeout for connections, if there is one.
    pub fn new(network: &Network, limit: Option<Duration>) -> Self {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(limit);
        Self {
            network: network.clone(),
            tcp,
        }
    }

    /// The TLS settings for a server. None are loaded for a connection without TLS.
    fn tls(&self, to: &Uri) -> Result<Arc<ClientConfig>, Fault> {
        if to.scheme_str() == Some("https") {
            Ok(Arc::clone(&self.network.roots.load()?.config))
        } else {
            super::roots::config(RootCertStore::empty())
        }
    }

    /// Connects to the host and port of an address, for any protocol. If a proxy is set for an https
    /// address, connects through a tunnel.
    ///
    /// # Errors
    /// When the connection cannot be made.
    pub async fn link(mut self, to: Uri) -> Result<ServerConnection, BoxError> {
        let connection = |stream, proxied| ServerConnection { stream, proxied };
        let Some(ProxyRoute { intercept, via }) = self.network.rules.proxy_for(&to)? else {
            let stream = self.tcp.call(to).await?;
            return Ok(connection(MaybeHttpsStream::Http(stream), false));
        };
        let address = intercept.uri().clone();
        let tls = self.tls(&address)?;
        let mut hop = HttpsConnector::from((self.tcp, tls));
        if to.scheme_str() != Some("https") {
            return Ok(connection(hop.call(address).await?, true));
        }
        let mut tunnel = Tunnel::new(address, hop);
        if let Some(login) = intercept.basic_auth() {
            tunnel = tunnel.with_auth(login.clone());
        }
        match tunnel.call(to).await {
            // A tunnel behaves like a direct connection.
            Ok(stream) => Ok(connection(stream, false)),
            Err(error) if error.to_string().contains("authorization required") => {
                Err(Fault(refused_login(&via)).into())
            }
            Err(error) => {
                let why = super::describe_error(&error).0;
                Err(format!("the proxy {}: {why}", via.proxy).into())
            }
        }
    }
}

impl Service<Uri> for Connector {
    type Response = MaybeHttpsStream<ServerConnection>;
    type Error = BoxError;
    type Future = Connecting<Self::Response>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.tcp.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        let connector = self.clone();
        Box::pin(async move {
            let tls = connector.tls(&to)?;
            HttpsConnector::from((Link(connector), tls)).call(to).await
        })
    }
}

/// Connects to servers without their TLS.
struct Link(Connector);

impl Service<Uri> for Link {
    type Response = ServerConnection;
    type Error = BoxError;
    type Future = Connecting<ServerConnection>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        Box::pin(self.0.clone().link(to))
    }
}

/// The message for a proxy that rejects the login that it got (407).
pub(super) fn refused_login(via: &ProxyInUse) -> String {
    format!(
        "the proxy {} requires a valid user and password; write them into {} as \
         http://USER:PASSWORD@HOST:PORT",
        via.proxy, via.variable
    )
}

/// A connection to a server or a proxy.
#[derive(Debug)]
pub struct ServerConnection {
    stream: MaybeHttpsStream<TokioIo<TcpStream>>,
    /// Whether a proxy reads the requests, which must then have absolute addresses.
    proxied: bool,
}

impl Connection for ServerConnection {
    fn connected(&self) -> Connected {
        self.stream.connected().proxy(self.proxied)
    }
}

impl Read for ServerConnection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl Write for ServerConnection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, buffer)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// The proxy in use, without secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxyInUse {
    /// Such as `http://proxy.example.com:3128`, without user and password.
    pub proxy: String,
    /// The variable that names it.
    pub variable: &'static str,
}

/// The proxy selected for an address.
#[derive(Debug, Clone)]
pub(super) struct ProxyRoute {
    pub(super) intercept: Intercept,
    pub(super) via: ProxyInUse,
}

/// The configured proxies with the variables that they come from, and the hosts that bypass them.
#[derive(Debug)]
pub(super) struct Rules {
    http: &'static str,
    https: &'static str,
    matcher: Matcher,
}

/// Replaces an unusable proxy, so that hosts which need no proxy are still reached.
const UNUSABLE: &str = "unusable.invalid";

impl Rules {
    pub(super) fn of(var: &dyn Fn(&str) -> Option<OsString>) -> Self {
        let (https, https_value) = read(var, &["https_proxy", "HTTPS_PROXY"]);
        let (http, http_value) = read(var, &["http_proxy", "HTTP_PROXY"]);
        let none_for = ["no_proxy", "NO_PROXY"].iter().find_map(|name| var(name));
        let none_for = none_for.unwrap_or_default();
        let matcher = Matcher::builder()
            .http(http_value)
            .https(https_value)
            .no(exceptions(&none_for.to_string_lossy()))
            .build();
        Self {
            http,
            https,
            matcher,
        }
    }

    /// The proxy for an address. Requests to this machine never use one, because a proxy elsewhere would
    /// look for them on its own machine.
    pub(super) fn proxy_for(&self, to: &Uri) -> Result<Option<ProxyRoute>, Fault> {
        if to.host().is_none_or(is_loopback) {
            return Ok(None);
        }
        let Some(intercept) = self.matcher.intercept(to) else {
            return Ok(None);
        };
        let variable = match to.scheme_str() {
            Some("https") => self.https,
            _ => self.http,
        };
        if intercept.uri().host() == Some(UNUSABLE) {
            return Err(Fault(format!(
                "{variable} is not the address of an http or https proxy, such as \
                 http://proxy.example.com:3128 or http://user:password@proxy.example.com:3128, \
                 with %40 for an @ in the password"
            )));
        }
        let proxy = intercept.uri().to_string().trim_end_matches('/').to_owned();
        let via = ProxyInUse { proxy, variable };
        Ok(Some(ProxyRoute { intercept, via }))
    }
}

/// The first of these variables that is set, else the one for all schemes, with its value.
fn read(
    var: &dyn Fn(&str) -> Option<OsString>,
    names: &[&'static str; 2],
) -> (&'static str, String) {
    let mut names = names.iter().chain(&["all_proxy", "ALL_PROXY"]);
    let found = names.find_map(|name| Some((*name, var(name)?)));
    let (name, value) = found.unwrap_or_default();
    let text = value.to_str().unwrap_or_default().trim();
    if value.is_empty() || is_usable(text) {
        (name, text.to_owned())
    } else {
        (name, format!("http://{UNUSABLE}"))
    }
}

/// Whether it names a host with http, with https or without a scheme, which means http.
fn is_usable(value: &str) -> bool {
    let Ok(address) = value.parse::<Uri>() else {
        return false;
    };
    let has_host = address.host().is_some_and(|host| !host.is_empty());
    // With a second `@`, the end of the password is ambiguous.
    let is_plain = value.matches('@').count() < 2;
    has_host && is_plain && matches!(address.scheme_str(), None | Some("http" | "https"))
}

/// `NO_PROXY` in the matcher's format. As in curl, blanks may separate entries, and `*.example.com`
/// means `.example.com`.
fn exceptions(value: &str) -> String {
    let entries = value
        .split([',', ' ', '\t'])
        .filter(|entry| !entry.is_empty())
        .map(|entry| match entry.strip_prefix('*') {
            Some(domain) if domain.starts_with('.') => domain,
            _ => entry,
        });
    entries.collect::<Vec<_>>().join(",")
}

/// Whether a host is this machine, by name or address.
pub fn is_loopback(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let address = bare.parse::<IpAddr>();
    host.eq_ignore_ascii_case("localhost")
        || address.is_ok_and(|address| address.is_loopback() || address.is_unspecified())
}
