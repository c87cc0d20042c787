//! Connections: TCP, through a proxy if one is set for the address, and TLS for https.

use super::{Fault, Network};
use hyper::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
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

    fn tls(&self) -> Result<Arc<ClientConfig>, Fault> {
        Ok(Arc::clone(&self.network.roots.load()?.config))
    }

    /// The path to an address, without the TLS of the address itself.
    fn path(&self, to: &Uri) -> Result<Path, Fault> {
        let proxy = self.network.rules.proxy_for(to)?;
        let to_proxy = match &proxy {
            Some(proxy) if proxy.via.is_https => Some(self.tls()?),
            _ => None,
        };
        Ok(Path {
            tcp: self.tcp.clone(),
            proxy,
            to_proxy,
        })
    }

    /// Connects to the host and port of an address, for any protocol. If a proxy is set for an https
    /// address, connects through a tunnel.
    ///
    /// # Errors
    /// When the connection cannot be made.
    pub async fn link(&self, to: Uri) -> Result<ServerConnection, BoxError> {
        let mut path = self.path(&to)?;
        path.call(to).await
    }

    fn connect(&self, to: Uri) -> Result<Connecting<MaybeHttpsStream<ServerConnection>>, Fault> {
        let path = self.path(&to)?;
        if to.scheme_str() == Some("https") {
            return Ok(HttpsConnector::from((path, self.tls()?)).call(to));
        }
        let mut path = path;
        let link = path.call(to);
        Ok(Box::pin(
            async move { Ok(MaybeHttpsStream::Http(link.await?)) },
        ))
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
        match self.connect(to) {
            Ok(connecting) => connecting,
            Err(fault) => Box::pin(async move { Err(fault.into()) }),
        }
    }
}

/// The path to one server, without the TLS of the server itself.
#[derive(Clone)]
struct Path {
    tcp: HttpConnector,
    proxy: Option<ProxyRoute>,
    /// The TLS settings for a proxy that requires TLS itself.
    to_proxy: Option<Arc<ClientConfig>>,
}

impl Service<Uri> for Path {
    type Response = ServerConnection;
    type Error = BoxError;
    type Future = Connecting<ServerConnection>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.tcp.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        let Some(ProxyRoute { intercept, via }) = self.proxy.clone() else {
            let connecting = self.tcp.call(to);
            return Box::pin(async move {
                let stream = MaybeHttpsStream::Http(connecting.await?);
                Ok(ServerConnection::new(stream, false))
            });
        };
        let mut hop = ProxyConnector {
            tcp: self.tcp.clone(),
            tls: self.to_proxy.clone(),
        };
        let address = intercept.uri().clone();
        if to.scheme_str() != Some("https") {
            let connecting = hop.call(address);
            return Box::pin(async move { Ok(ServerConnection::new(connecting.await?, true)) });
        }
        let mut tunnel = Tunnel::new(address, hop);
        if let Some(login) = intercept.basic_auth() {
            tunnel = tunnel.with_auth(login.clone());
        }
        let connecting = tunnel.call(to);
        Box::pin(async move {
            let stream = connecting.await.map_err(|error| {
                let error: BoxError = error.into();
                if error.to_string().contains("authorization required") {
                    BoxError::from(Fault(refused_login(&via)))
                } else {
                    format!(
                        "the proxy {}: {}",
                        via.proxy,
                        super::describe_error(&*error).0
                    )
                    .into()
                }
            })?;
            // A tunnel behaves like a direct connection.
            Ok(ServerConnection::new(stream, false))
        })
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

/// The connection to a proxy.
#[derive(Clone)]
struct ProxyConnector {
    tcp: HttpConnector,
    tls: Option<Arc<ClientConfig>>,
}

impl Service<Uri> for ProxyConnector {
    type Response = MaybeHttpsStream<TokioIo<TcpStream>>;
    type Error = BoxError;
    type Future = Connecting<Self::Response>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.tcp.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        if let Some(tls) = &self.tls {
            return HttpsConnector::from((self.tcp.clone(), Arc::clone(tls))).call(to);
        }
        let connecting = self.tcp.call(to);
        Box::pin(async move { Ok(MaybeHttpsStream::Http(connecting.await?)) })
    }
}

/// A connection to a server or a proxy.
#[derive(Debug)]
pub struct ServerConnection {
    stream: MaybeHttpsStream<TokioIo<TcpStream>>,
    /// Whether a proxy reads the requests, which must then have absolute addresses.
    proxied: bool,
}

impl ServerConnection {
    fn new(stream: MaybeHttpsStream<TokioIo<TcpStream>>, proxied: bool) -> Self {
        Self { stream, proxied }
    }
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
    /// Whether the connection to the proxy itself is encrypted.
    pub is_https: bool,
}

/// The proxy selected for an address.
#[derive(Debug, Clone)]
pub(super) struct ProxyRoute {
    pub(super) intercept: Intercept,
    pub(super) via: ProxyInUse,
}

/// The configured proxies, and the hosts that bypass them.
#[derive(Debug)]
pub(super) struct Rules {
    http: Setting,
    https: Setting,
    matcher: Matcher,
}

/// A proxy setting, with the variable that it comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Setting {
    None,
    Usable(&'static str),
    Unusable(&'static str),
}

/// Replaces an unusable proxy, so that hosts which need no proxy are still reached.
const PLACEHOLDER: &str = "http://unusable.invalid";

impl Rules {
    pub(super) fn of(var: &dyn Fn(&str) -> Option<OsString>) -> Self {
        let (https, https_value) = read(var, &["https_proxy", "HTTPS_PROXY"]);
        let (http, http_value) = read(var, &["http_proxy", "HTTP_PROXY"]);
        let none_for = ["no_proxy", "NO_PROXY"]
            .iter()
            .find_map(|name| var(name))
            .map(|value| value.to_string_lossy().into_owned());
        let matcher = Matcher::builder()
            .http(http_value)
            .https(https_value)
            .no(exceptions(none_for.as_deref().unwrap_or_default()))
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
        let setting = match to.scheme_str() {
            Some("https") => self.https,
            _ => self.http,
        };
        match setting {
            Setting::None => Ok(None),
            Setting::Unusable(variable) => Err(Fault(format!(
                "{variable} is not the address of an http or https proxy, such as \
                 http://proxy.example.com:3128 or http://user:password@proxy.example.com:3128, \
                 with %40 for an @ in the password"
            ))),
            Setting::Usable(variable) => Ok(Some(ProxyRoute {
                via: ProxyInUse {
                    proxy: intercept.uri().to_string().trim_end_matches('/').to_owned(),
                    variable,
                    is_https: intercept.uri().scheme_str() == Some("https"),
                },
                intercept,
            })),
        }
    }
}

/// The first of these variables that is set, else the one for all schemes.
fn read(var: &dyn Fn(&str) -> Option<OsString>, names: &[&'static str; 2]) -> (Setting, String) {
    let all = ["all_proxy", "ALL_PROXY"];
    let mut names = names.iter().chain(&all);
    let Some((name, value)) = names.find_map(|name| Some((*name, var(name)?))) else {
        return (Setting::None, String::new());
    };
    let value = value.to_str().unwrap_or_default().trim().to_owned();
    if is_usable(&value) {
        (Setting::Usable(name), value)
    } else {
        (Setting::Unusable(name), PLACEHOLDER.to_owned())
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
