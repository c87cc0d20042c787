//! Refuses system calls that reach what neither Landlock nor mounts cover: the keyrings of the user, the
//! limits of other processes, and the input of a terminal.

use nix::libc;
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
    SeccompFilter, SeccompRule, TargetArch, apply_filter,
};
use std::collections::BTreeMap;
use std::fmt::Display;

/// System calls with the conditions under which each is refused; always, if there are none.
pub(super) type Rules = BTreeMap<libc::c_long, Vec<SeccompRule>>;

/// A condition for an argument of a system call.
pub(super) type Condition = Result<SeccompCondition, BackendError>;

/// The bit that marks system calls of the second interface (x32) of x86-64.
#[cfg(target_arch = "x86_64")]
pub(super) const X32: i64 = 0x4000_0000;

/// The numbers of the refused system calls for programs of one kind.
struct Numbers {
    /// The kernel's number of the kind, if it differs from this program's.
    architecture: Option<u32>,
    /// `add_key`, `request_key` and `keyctl`.
    keyrings: [libc::c_long; 3],
    prlimit: libc::c_long,
    ioctl: libc::c_long,
}

const NUMBERS: &[Numbers] = &[
    Numbers {
        architecture: None,
        keyrings: [libc::SYS_add_key, libc::SYS_request_key, libc::SYS_keyctl],
        prlimit: libc::SYS_prlimit64,
        ioctl: libc::SYS_ioctl,
    },
    #[cfg(target_arch = "x86_64")]
    Numbers {
        architecture: Some(0x4000_0003),
        keyrings: [286, 287, 288],
        prlimit: 340,
        ioctl: 54,
    },
    #[cfg(target_arch = "aarch64")]
    Numbers {
        architecture: Some(0x4000_0028),
        keyrings: [309, 310, 311],
        prlimit: 369,
        ioctl: 54,
    },
];

/// Refuses them to the calling thread and everything that it starts, also to 32-bit programs.
pub(super) fn refuse_reach() -> Result<(), String> {
    for numbers in NUMBERS {
        let rules = rules(numbers).map_err(|error| told(&error))?;
        let mut program = compiled(rules, libc::EPERM)?;
        for_one_kind(&mut program, numbers.architecture)?;
        apply_filter(&program).map_err(|error| told(&error))?;
    }
    Ok(())
}

fn rules(numbers: &Numbers) -> Result<Rules, BackendError> {
    let mut rules: Rules = numbers.keyrings.map(|number| (number, Vec::new())).into();
    let of_another = all([
        is(0, SeccompCmpOp::Ne, 0),
        SeccompCondition::new(2, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, 0),
    ])?;
    rules.insert(numbers.prlimit, vec![of_another]);
    // These put characters into the input of a terminal, which a shell executes once the run is over.
    let types = [libc::TIOCSTI, libc::TIOCLINUX].map(|request| {
        #[allow(
            clippy::unnecessary_cast,
            reason = "the C libraries disagree about the type"
        )]
        all([is(1, SeccompCmpOp::Eq, request as u64)])
    });
    let types: Result<_, _> = types.into_iter().collect();
    rules.insert(numbers.ioctl, types?);
    #[cfg(target_arch = "x86_64")]
    if numbers.architecture.is_none() {
        const IOCTL: i64 = 514;
        for number in numbers.keyrings.into_iter().chain([numbers.prlimit, IOCTL]) {
            rules.insert(number | X32, Vec::new());
        }
    }
    Ok(rules)
}

/// Makes a filter concern programs of one kind only. As compiled it starts by loading the kind, comparing
/// it with this program's own, and killing all others.
fn for_one_kind(program: &mut BpfProgram, architecture: Option<u32>) -> Result<(), String> {
    match program.get_mut(1..3) {
        Some([compare, kill]) if kill.k == libc::SECCOMP_RET_KILL_PROCESS => {
            compare.k = architecture.unwrap_or(compare.k);
            kill.k = libc::SECCOMP_RET_ALLOW;
            Ok(())
        }
        _ => Err("seccomp: the filter has an unknown form".to_owned()),
    }
}

/// A filter that lets these system calls fail with an error number. It kills programs that use the
/// interface of another architecture.
pub(super) fn compiled(rules: Rules, error: libc::c_int) -> Result<BpfProgram, String> {
    let architecture =
        TargetArch::try_from(std::env::consts::ARCH).map_err(|error| told(&error))?;
    let refused = SeccompAction::Errno(u32::try_from(error).unwrap_or(1));
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refused, architecture)
        .map_err(|error| told(&error))?;
    BpfProgram::try_from(filter).map_err(|error| told(&error))
}

/// An error as text.
pub(super) fn told(error: &dyn Display) -> String {
    format!("seccomp: {error}")
}

/// A condition for the lower 32 bits of an argument.
pub(super) fn is(argument: u8, how: SeccompCmpOp, value: u64) -> Condition {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, how, value)
}

/// A rule that applies if all of these do.
pub(super) fn all(
    conditions: impl IntoIterator<Item = Condition>,
) -> Result<SeccompRule, BackendError> {
    SeccompRule::new(conditions.into_iter().collect::<Result<_, _>>()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_concerns_programs_of_one_kind_and_kills_none() {
        for numbers in NUMBERS {
            let mut program = compiled(rules(numbers).unwrap(), libc::EPERM).unwrap();
            let own = program[1].k;
            assert!(for_one_kind(&mut program, numbers.architecture).is_ok());
            assert_eq!(program[1].k, numbers.architecture.unwrap_or(own));
            let kills = |it: &seccompiler::sock_filter| it.k == libc::SECCOMP_RET_KILL_PROCESS;
            assert!(!program.iter().any(kills));
            // A filter that has this form already is refused.
            assert!(for_one_kind(&mut program, None).is_err());
        }
    }
}
