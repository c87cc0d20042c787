//! Restricts the sockets of a child with limited network access: a network namespace does not block
//! sockets that lead to the host of a virtual machine, and Landlock covers only TCP, and not every way
//! to open a TCP connection.

use super::policy::Network;
#[cfg(target_arch = "x86_64")]
use super::system_calls::X32;
use super::system_calls::{Condition, Rules, all, compiled, is, told};
use nix::libc;
use seccompiler::{BackendError, SeccompCmpOp, SeccompRule, apply_filter};

/// Blocks sockets that bypass the network restriction, for the calling thread and everything that it starts.
pub(super) fn limit(network: &Network) -> Result<(), String> {
    let rules = rules(network).map_err(|error| told(&error))?;
    let program = compiled(rules, libc::EACCES)?;
    apply_filter(&program).map_err(|error| told(&error))
}

/// The system calls that are refused.
fn rules(network: &Network) -> Result<Rules, BackendError> {
    let mut rules = Rules::from([
        (libc::SYS_socket, vec![other_families()?]),
        // io_uring opens and connects sockets without any of these calls.
        (libc::SYS_io_uring_setup, Vec::new()),
    ]);
    if let Network::Port(_) = network {
        let fast_open = |argument| {
            let mask = libc::MSG_FASTOPEN as u64;
            all([is(argument, SeccompCmpOp::MaskedEq(mask), mask)])
        };
        rules
            .entry(libc::SYS_socket)
            .or_default()
            .extend(all_but_tcp()?);
        // Landlock does not see a connection that is opened by sending data (TCP Fast Open).
        rules.insert(libc::SYS_sendto, vec![fast_open(3)?]);
        rules.insert(libc::SYS_sendmsg, vec![fast_open(2)?]);
        rules.insert(libc::SYS_sendmmsg, vec![fast_open(3)?]);
    }
    #[cfg(target_arch = "x86_64")]
    for number in [
        libc::SYS_socket,
        libc::SYS_sendto,
        518,
        538,
        libc::SYS_io_uring_setup,
    ] {
        rules.insert(number | X32, Vec::new());
    }
    Ok(rules)
}

const FAMILY: u8 = 0;
const KIND: u8 = 1;
const PROTOCOL: u8 = 2;

fn differs(argument: u8, value: i32) -> Condition {
    is(argument, SeccompCmpOp::Ne, value as u64)
}

/// Matches all families except local, netlink, packet and internet sockets.
fn other_families() -> Result<SeccompRule, BackendError> {
    let known = [
        libc::AF_UNIX,
        libc::AF_NETLINK,
        libc::AF_PACKET,
        libc::AF_INET,
        libc::AF_INET6,
    ];
    all(known.map(|family| differs(FAMILY, family)))
}

/// Matches all packet and internet sockets except TCP.
fn all_but_tcp() -> Result<Vec<SeccompRule>, BackendError> {
    let of = |family: i32| is(FAMILY, SeccompCmpOp::Eq, family as u64);
    let mut refused = vec![all([of(libc::AF_PACKET)])?];
    for family in [libc::AF_INET, libc::AF_INET6] {
        // The type of a stream socket is 1, in the lowest four bits.
        for (bit, value) in [(1, 0), (2, 2), (4, 4), (8, 8)] {
            let is_other = is(KIND, SeccompCmpOp::MaskedEq(bit), value);
            refused.push(all([of(family), is_other])?);
        }
        let other_protocol = [differs(PROTOCOL, 0), differs(PROTOCOL, libc::IPPROTO_TCP)];
        refused.push(all([of(family)].into_iter().chain(other_protocol))?);
    }
    Ok(refused)
}
