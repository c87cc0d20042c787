//! A network of the child's own, in which nobody answers but the gateway of the run.

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

/// What is left to do once the network is the child's own.
pub(super) struct Entrance {
    /// Leads to the gateway; it is opened while it can still be reached.
    gateway: UnixStream,
    port: u16,
}

/// Reaches the gateway, before the network is left in which it is.
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

/// The namespace that this takes.
pub(super) fn namespace(entrance: Option<&Entrance>) -> CloneFlags {
    match entrance {
        Some(_) => CloneFlags::CLONE_NEWNET,
        None => CloneFlags::empty(),
    }
}

impl Entrance {
    /// Lets the gateway answer in the network that this process is in now.
    pub(super) fn open(self) -> Result<(), Failure> {
        raise_loopback().map_err(|error| format!("the loopback interface: {error}"))?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, self.port));
        let listener = listener.map_err(|error| format!("port {}: {error}", self.port))?;
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

/// Switches the loopback interface of this network on: a new network has it switched off.
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
    // The head: length, kind, flags, number, sender.
    message.extend(32_u32.to_ne_bytes());
    message.extend(NEW_LINK.to_ne_bytes());
    message.extend(REQUEST_WITH_ANSWER.to_ne_bytes());
    message.extend([0; 8]);
    // The interface: family, kind, index, flags, and which of these are to be changed.
    message.extend([0; 4]);
    message.extend(LOOPBACK.to_ne_bytes());
    message.extend(UP.to_ne_bytes());
    message.extend(UP.to_ne_bytes());
    send(&socket, &message, SendFlags::empty())?;
    let mut answer = [0_u8; 256];
    let (length, _) = recv(&socket, &mut answer, RecvFlags::empty())?;
    // The answer is a head and the negated number of an error.
    let code = answer[..length].get(16..20);
    let code = code.and_then(|bytes| bytes.try_into().ok());
    match code.map(i32::from_ne_bytes) {
        Some(0) => Ok(()),
        Some(code) => Err(io::Error::from_raw_os_error(-code)),
        None => Err(io::ErrorKind::InvalidData.into()),
    }
}
