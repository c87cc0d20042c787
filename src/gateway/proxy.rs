//! The proxy through which agents and checks reach allowed hosts: tunnels, and requests over plain HTTP.

use super::answer::{Answer, REFUSAL, kept, own, passed};
use super::body::Passing;
use super::forward::forward;
use super::shared::Shared;
use crate::http::{Connector, describe_error};
use http_body_util::{Either, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::PROXY_AUTHORIZATION;
use hyper::http::uri::Authority;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode, Uri};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, copy_bidirectional};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;

/// The timeout for connecting to a host or a provider.
pub(super) const CONNECT: Duration = Duration::from_secs(20);

/// Why there is no connection.
enum Refused {
    /// It is not allowed.
    Denied(String),
    /// It failed.
    Failed(String),
}

impl Refused {
    fn answer(self) -> Answer {
        let (status, why) = match self {
            Self::Denied(why) => (StatusCode::FORBIDDEN, why),
            Self::Failed(why) => (StatusCode::BAD_GATEWAY, why),
        };
        own(status, "text/plain", format!("{REFUSAL} {why}\n"))
    }
}

/// A connection to a host, and whether another proxy reads the requests.
struct Connected {
    stream: Box<dyn Stream>,
    is_proxied: bool,
}

trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// Opens a tunnel or forwards a request, if the host is allowed.
pub(super) async fn proxy(mut request: Request<Incoming>, shared: &Arc<Shared>) -> Answer {
    let is_tunnel = request.method() == Method::CONNECT;
    let uri = request.uri().clone();
    let port = uri.port_u16().or((!is_tunnel).then_some(80));
    let (Some(host), Some(port)) = (uri.host(), port) else {
        return Refused::Failed("the request names no host and port".into()).answer();
    };
    let is_own = shared.is_own(host, port);
    if is_own && !is_tunnel {
        // Programs send all requests through their proxy, even those to the gateway.
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        if let Ok(path) = path.parse() {
            *request.uri_mut() = path;
        }
        return forward(request, shared).await;
    }
    if !is_tunnel && uri.scheme_str() != Some("http") {
        return Refused::Failed("only http is forwarded without a tunnel".into()).answer();
    }
    let connecting = async {
        if is_own {
            // Some programs request a tunnel for every protocol, even to the gateway.
            plainly(&[shared.address], host).await
        } else {
            connect(host, port, is_tunnel, shared).await
        }
    };
    let connected = match timeout(CONNECT, connecting).await {
        Ok(Ok(connected)) => connected,
        Ok(Err(refused)) => {
            if let Refused::Denied(_) = refused {
                shared.denied.note(host);
            }
            return refused.answer();
        }
        Err(_) => return Refused::Failed(format!("{host} does not answer")).answer(),
    };
    if is_tunnel {
        tunnel(request, connected, shared)
    } else {
        pass(request, connected, shared).await
    }
}

async fn connect(
    host: &str,
    port: u16,
    is_tunnel: bool,
    shared: &Shared,
) -> Result<Connected, Refused> {
    let Some(allow) = shared.allow.as_ref().filter(|allow| allow.admits(host)) else {
        let why = format!("{host} is not in the allow-list of the setting `network`");
        return Err(Refused::Denied(why));
    };
    let failed = |error: &dyn std::fmt::Display| Refused::Failed(format!("{host}: {error}"));
    let scheme = if is_tunnel { "https" } else { "http" };
    let uri: Uri = format!("{scheme}://{host}:{port}")
        .parse()
        .map_err(|error| failed(&error))?;
    let via = shared.network.via(&uri).map_err(|error| failed(&error))?;
    if via.is_some() {
        // The job's own proxy resolves the name.
        let connector = Connector::new(&shared.network, Some(CONNECT));
        let link = connector.link(uri).await;
        let link = link.map_err(|error| failed(&describe_error(&*error).0))?;
        return Ok(Connected {
            stream: Box::new(TokioIo::new(link)),
            is_proxied: !is_tunnel,
        });
    }
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    // The resolver of musl distinguishes `LOCALHOST` from `localhost`.
    let found = lookup_host((bare.to_ascii_lowercase(), port)).await;
    let (open, closed): (Vec<SocketAddr>, Vec<SocketAddr>) = found
        .map_err(|error| failed(&error))?
        .partition(|address| allow.may_connect(address.ip()));
    if let (true, Some(address)) = (open.is_empty(), closed.first()) {
        return Err(Refused::Denied(format!(
            "{host} resolves to {}, which is not public and not itself in the allow-list of the setting `network`",
            address.ip()
        )));
    }
    plainly(&open, host).await
}

/// A connection to the first of exactly these addresses, which were checked, that accepts one.
async fn plainly(addresses: &[SocketAddr], host: &str) -> Result<Connected, Refused> {
    let stream = TcpStream::connect(addresses).await;
    let stream = stream.map_err(|error| Refused::Failed(format!("{host}: {error}")))?;
    let _ = stream.set_nodelay(true);
    Ok(Connected {
        stream: Box::new(stream),
        is_proxied: false,
    })
}

/// Accepts the tunnel, then copies bytes in both directions until both sides have ended.
fn tunnel(request: Request<Incoming>, mut connected: Connected, shared: &Shared) -> Answer {
    let Ok(permit) = Arc::clone(&shared.tunnels).try_acquire_owned() else {
        return Refused::Failed("there are too many tunnels".into()).answer();
    };
    tokio::spawn(async move {
        let _permit = permit;
        if let Ok(upgraded) = hyper::upgrade::on(request).await {
            let mut agent = TokioIo::new(upgraded);
            // A side that disconnects is not an error.
            let _ = copy_bidirectional(&mut agent, &mut connected.stream).await;
        }
    });
    Response::new(Either::Left(Full::new(Bytes::new())))
}

/// Forwards one request over plain HTTP, and returns the response.
async fn pass(mut request: Request<Incoming>, connected: Connected, shared: &Shared) -> Answer {
    let uri = request.uri().clone();
    *request.headers_mut() = kept(request.headers());
    let Some(authority) = uri.authority().map(without_user) else {
        return Refused::Failed("the request names no host".into()).answer();
    };
    // The requested address decides, not a `Host` header that may differ.
    if let Ok(host) = authority.parse() {
        request.headers_mut().insert(hyper::header::HOST, host);
    }
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    if connected.is_proxied
        && let Some(login) = shared.network.proxy_authorization(&uri)
    {
        request.headers_mut().insert(PROXY_AUTHORIZATION, login);
    }
    let target = if connected.is_proxied {
        format!("http://{authority}{path}")
    } else {
        path.to_owned()
    };
    match target.parse() {
        Ok(target) => *request.uri_mut() = target,
        Err(_) => return Refused::Failed(format!("{authority}: no such address")).answer(),
    }
    let failed = |error: hyper::Error| Refused::Failed(error.to_string()).answer();
    let stream = TokioIo::new(connected.stream);
    let (mut sender, connection) = match hyper::client::conn::http1::handshake(stream).await {
        Ok(made) => made,
        Err(error) => return failed(error),
    };
    tokio::spawn(connection);
    match sender.send_request(request).await {
        Ok(answer) => {
            let (head, body) = answer.into_parts();
            passed(&head, Either::Right(Passing::uncounted(body)))
        }
        Err(error) => failed(error),
    }
}

/// A host with its port, without user and password.
fn without_user(authority: &Authority) -> &str {
    let whole = authority.as_str();
    whole.rsplit_once('@').map_or(whole, |(_, host)| host)
}

/// How long the head of a request may take to arrive.
const HEAD: Duration = Duration::from_secs(60);

/// The wait after a connection that could not be accepted.
const PAUSE: Duration = Duration::from_millis(50);

/// Serves a listener until the future is dropped.
pub(super) async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else {
        return;
    };
    loop {
        let Ok(permit) = Arc::clone(&shared.connections).acquire_owned().await else {
            return;
        };
        match listener.accept().await {
            Ok((stream, _)) => {
                let shared = Arc::clone(&shared);
                tokio::spawn(async move {
                    serve(stream, &shared).await;
                    drop(permit);
                });
            }
            // Too many open files, or a connection that is closed already.
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

/// Serves the requests of one connection. If the client disconnects, its requests end and no error is
/// reported.
async fn serve(stream: TcpStream, shared: &Arc<Shared>) {
    let _ = stream.set_nodelay(true);
    let answer = service_fn(|request: Request<Incoming>| {
        let shared = Arc::clone(shared);
        async move {
            let is_for_proxy =
                request.method() == Method::CONNECT || request.uri().authority().is_some();
            Ok::<_, Infallible>(if is_for_proxy && shared.allow.is_some() {
                proxy(request, &shared).await
            } else {
                forward(request, &shared).await
            })
        }
    });
    let _ = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .serve_connection(TokioIo::new(stream), answer)
        .with_upgrades()
        .await;
}
