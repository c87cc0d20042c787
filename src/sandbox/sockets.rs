//! The kinds of sockets that a child may have where Landlock limits its network: Landlock knows TCP alone, and not
//! every way to open a TCP connection.

use nix::libc;
use seccompiler::{
    SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch, apply_filter,
};
use std::collections::BTreeMap;

/// The bit by which the second system call interface of x86-64 is told from the first.
#[cfg(target_arch = "x86_64")]
const X32: i64 = 0x4000_0000;

type Rules = BTreeMap<libc::c_long, Vec<SeccompRule>>;

/// Leaves this process, and what it starts, TCP and the sockets that do not leave the machine.
pub(super) fn limit() -> Result<(), String> {
    let told = |error: &dyn std::fmt::Display| format!("seccomp: {error}");
    let architecture =
        TargetArch::try_from(std::env::consts::ARCH).map_err(|error| told(&error))?;
    let rules = rules().map_err(|error| told(&error))?;
    let refused = u32::try_from(libc::EACCES).unwrap_or(1);
    let filter = SeccompFilter::new(
        rules,
        SeccompAction::Allow,
        SeccompAction::Errno(refused),
        architecture,
    );
    let filter = filter.map_err(|error| told(&error))?;
    let program = seccompiler::BpfProgram::try_from(filter).map_err(|error| told(&error))?;
    apply_filter(&program).map_err(|error| told(&error))
}

/// What is refused.
fn rules() -> Result<Rules, seccompiler::BackendError> {
    let fast_open = |argument| {
        let mask = libc::MSG_FASTOPEN as u64;
        all([is(argument, SeccompCmpOp::MaskedEq(mask), mask)])
    };
    let mut rules = Rules::from([
        (libc::SYS_socket, sockets()?),
        // A connection that is made by what is sent first is not one that Landlock sees being made.
        (libc::SYS_sendto, vec![fast_open(3)?]),
        (libc::SYS_sendmsg, vec![fast_open(2)?]),
        (libc::SYS_sendmmsg, vec![fast_open(3)?]),
        // It opens and connects sockets without any of these calls.
        (libc::SYS_io_uring_setup, Vec::new()),
    ]);
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

/// The sockets that are refused: all but local ones, those that ask the kernel, and TCP.
fn sockets() -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
    const FAMILY: u8 = 0;
    const KIND: u8 = 1;
    const PROTOCOL: u8 = 2;
    let differs = |argument, value: i32| is(argument, SeccompCmpOp::Ne, value as u64);
    let internet = [libc::AF_INET, libc::AF_INET6];
    let known = [libc::AF_UNIX, libc::AF_NETLINK]
        .into_iter()
        .chain(internet);
    let mut refused = vec![all(known.map(|family| differs(FAMILY, family)))?];
    for family in internet {
        let of_family = || is(FAMILY, SeccompCmpOp::Eq, family as u64);
        // A stream is the kind whose number is 1, in the lowest four bits.
        for (bit, value) in [(1, 0), (2, 2), (4, 4), (8, 8)] {
            let is_other = is(KIND, SeccompCmpOp::MaskedEq(bit), value);
            refused.push(all([of_family(), is_other])?);
        }
        let other_protocol = [differs(PROTOCOL, 0), differs(PROTOCOL, libc::IPPROTO_TCP)];
        refused.push(all([of_family()].into_iter().chain(other_protocol))?);
    }
    Ok(refused)
}

type Condition = Result<SeccompCondition, seccompiler::BackendError>;

fn is(argument: u8, how: SeccompCmpOp, value: u64) -> Condition {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, how, value)
}

fn all(
    conditions: impl IntoIterator<Item = Condition>,
) -> Result<SeccompRule, seccompiler::BackendError> {
    SeccompRule::new(conditions.into_iter().collect::<Result<_, _>>()?)
}
