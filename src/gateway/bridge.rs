//! Listeners in the network namespaces of children: a launcher that has created a network namespace
//! passes a listening socket to the gateway, which serves it like its own. No process is needed in
//! between.

use super::proxy::accept;
use super::shared::Shared;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use std::collections::VecDeque;
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::task::AbortHandle;
use tokio::time::timeout;

/// The most network namespaces that are served at a time; the oldest is dropped. Only one child at a
/// time needs its network, except for children that are just ending.
const MAX_NAMESPACES: usize = 64;

/// How long a launcher may take to pass its listener.
const LISTENER_TIMEOUT: Duration = Duration::from_secs(5);

/// A socket that receives listeners, with a random name.
pub(super) fn place() -> io::Result<(String, UnixListener)> {
    let name = format!("sprag-{}", uuid::Uuid::new_v4().simple());
    let listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name)?)?;
    listener.set_nonblocking(true)?;
    Ok((name, listener))
}

/// Receives listeners until the gateway ends.
pub(super) async fn receive_listeners(place: UnixListener, shared: Arc<Shared>) {
    let Ok(place) = tokio::net::UnixListener::from_std(place) else {
        return;
    };
    let mut answered: VecDeque<AbortHandle> = VecDeque::new();
    loop {
        let Ok((stream, _)) = place.accept().await else {
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let own = rustix::process::geteuid().as_raw();
        let is_own = stream.peer_cred().is_ok_and(|peer| peer.uid() == own);
        let Ok(Ok(listener)) = timeout(LISTENER_TIMEOUT, receive_listener(&stream)).await else {
            continue;
        };
        let address = listener.local_addr();
        let is_local = address.is_ok_and(|address| address.ip().is_loopback());
        if !is_own || !is_local || listener.set_nonblocking(true).is_err() {
            continue;
        }
        let answering = accept(listener, Arc::clone(&shared));
        answered.push_back(tokio::spawn(answering).abort_handle());
        while answered.len() > MAX_NAMESPACES {
            answered.pop_front().inspect(AbortHandle::abort);
        }
    }
}

async fn receive_listener(stream: &UnixStream) -> io::Result<TcpListener> {
    loop {
        stream.readable().await?;
        match stream.try_io(Interest::READABLE, || received(stream)) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            received => return received.map(TcpListener::from),
        }
    }
}

fn received(stream: &UnixStream) -> io::Result<OwnedFd> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let mut bytes = [IoSliceMut::new(&mut byte)];
    recvmsg(stream, &mut bytes, &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let mut descriptors = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
        _ => None,
    });
    let descriptor = descriptors.next().and_then(|mut it| it.next());
    descriptor.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
}
