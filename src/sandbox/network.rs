//! A network namespace for a child, in which only the gateway of the run is reachable.

use super::child::Failure;
use super::policy::{Network, Policy};
use nix::sched::CloneFlags;
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags,
    SocketType, recv, send, sendmsg, socket_with,
};
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::AsFd as _;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixStream};

/// What is still needed once the process is in its network namespace.
pub(super) struct Entrance {
    /// Connected to the gateway, from before the process left the run's network.
    gateway: UnixStream,
    port: u16,
}

/// Connects to the gateway before the process leaves the run's network.
pub(super) fn prepare(policy: &Policy) -> Result<Option<Entrance>, Failure> {
    let Some(Network::Own { socket, port }) = &policy.network else {
        return Ok(None);
    };
    let connect = || UnixStream::connect_addr(&SocketAddr::from_abstract_name(socket)?);
    let gateway = connect().map_err(|error| format!("the gateway: {error}"))?;
    Ok(Some(Entrance {
        gateway,
        port: *port,
    }))
}

/// The namespace flag that this needs.
pub(super) fn namespace(entrance: Option<&Entrance>) -> CloneFlags {
    entrance.map_or(CloneFlags::empty(), |_| CloneFlags::CLONE_NEWNET)
}

impl Entrance {
    /// Lets the gateway listen in the current network namespace.
    pub(super) fn open(self) -> Result<(), Failure> {
        raise_loopback().map_err(|error| format!("the loopback interface: {error}"))?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, self.port))
            .map_err(|error| format!("port {}: {error}", self.port))?;
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let descriptors = [listener.as_fd()];
        control.push(SendAncillaryMessage::ScmRights(&descriptors));
        let byte = [IoSlice::new(b"l")];
        let sent = sendmsg(&self.gateway, &byte, &mut control, SendFlags::empty());
        sent.map_err(|error| format!("the gateway: {error}"))?;
        Ok(())
    }
}

/// Enables the loopback interface, which is disabled in a new network namespace.
fn raise_loopback() -> io::Result<()> {
    const NEW_LINK: u16 = 16;
    const REQUEST_WITH_ANSWER: u16 = 1 | 4;
    const UP: u32 = 1;
    const LOOPBACK: i32 = 1;
    let socket = socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        None,
    )?;
    let mut message = Vec::with_capacity(32);
    // The header: length, type, flags, sequence number, sender.
    message.extend(32_u32.to_ne_bytes());
    message.extend(NEW_LINK.to_ne_bytes());
    message.extend(REQUEST_WITH_ANSWER.to_ne_bytes());
    message.extend([0; 8]);
    // The interface: family, type, index, flags, and the mask of flags to change.
    message.extend([0; 4]);
    message.extend(LOOPBACK.to_ne_bytes());
    message.extend(UP.to_ne_bytes());
    message.extend(UP.to_ne_bytes());
    send(&socket, &message, SendFlags::empty())?;
    let mut answer = [0_u8; 256];
    let (length, _) = recv(&socket, &mut answer, RecvFlags::empty())?;
    // The response is a header and a negated error number.
    let code = answer[..length]
        .get(16..20)
        .and_then(|bytes| bytes.try_into().ok());
    match code.map(i32::from_ne_bytes) {
        Some(0) => Ok(()),
        Some(code) => Err(io::Error::from_raw_os_error(-code)),
        None => Err(io::ErrorKind::InvalidData.into()),
    }
}
