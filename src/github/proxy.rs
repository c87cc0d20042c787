//! Connections, directly or through an HTTP proxy's `CONNECT`.

use hyper::Uri;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::proxy::matcher::Matcher;
use hyper_util::rt::TokioIo;
use std::error::Error as StdError;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::net::TcpStream;
use tower_service::Service;

/// A proxy for https, as curl reads the variables.
#[derive(Debug, Clone, Default)]
pub struct Proxy {
    /// `HTTPS_PROXY`: `http://[user:password@]host:port`.
    pub https: String,
    /// `NO_PROXY`: hosts, domains and networks that are reached directly, separated by commas.
    pub none_for: String,
}

/// Makes TCP connections, through the proxy where there is one for the host.
#[derive(Clone)]
pub(super) struct Connector {
    tcp: HttpConnector,
    proxy: Option<Arc<Matcher>>,
}

impl Connector {
    pub(super) fn new(tcp: HttpConnector, proxy: Option<&Proxy>) -> Self {
        let matcher = |proxy: &Proxy| {
            let builder = Matcher::builder().https(proxy.https.clone());
            Arc::new(builder.no(proxy.none_for.clone()).build())
        };
        Self {
            tcp,
            proxy: proxy.map(matcher),
        }
    }
}

type BoxError = Box<dyn StdError + Send + Sync>;

impl Service<Uri> for Connector {
    type Response = TokioIo<TcpStream>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.tcp.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        let proxy = self.proxy.as_ref().and_then(|proxy| proxy.intercept(&to));
        let Some(proxy) = proxy else {
            let connecting = self.tcp.call(to);
            return Box::pin(async move { connecting.await.map_err(Into::into) });
        };
        let mut tunnel = Tunnel::new(proxy.uri().clone(), self.tcp.clone());
        if let Some(auth) = proxy.basic_auth() {
            tunnel = tunnel.with_auth(auth.clone());
        }
        let connecting = tunnel.call(to);
        Box::pin(async move { connecting.await.map_err(Into::into) })
    }
}
