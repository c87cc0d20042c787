//! Accepts connections.

use super::forward::forward;
use super::proxy::{is_for_proxy, proxy};
use super::shared::Shared;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;

/// The most connections at a time; further ones wait to be accepted.
const MAX_CONNECTIONS: usize = 256;

/// How long the head of a request may take to arrive.
const HEAD: Duration = Duration::from_secs(60);

/// The wait after a connection that could not be accepted.
const PAUSE: Duration = Duration::from_millis(50);

/// Limits the number of connections.
pub(super) type Connections = Arc<Semaphore>;

/// The limit of connections for one gateway.
pub(super) fn connections() -> Connections {
    Arc::new(Semaphore::new(MAX_CONNECTIONS))
}

/// Serves a listener until the future is dropped.
pub(super) async fn accept(listener: TcpListener, shared: Arc<Shared>, connections: Connections) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else {
        return;
    };
    loop {
        let Ok(permit) = Arc::clone(&connections).acquire_owned().await else {
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
    let answer = service_fn(|request| {
        let shared = Arc::clone(shared);
        async move {
            let is_proxied = shared.allow.is_some() && is_for_proxy(&request);
            Ok::<_, Infallible>(if is_proxied {
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
