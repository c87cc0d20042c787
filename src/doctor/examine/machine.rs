//! The machine: the user, the confinement, and the free space.

use crate::doctor::facts::{Agent, AgentKind, Confinement, Facts, Machine, Obstacle, Place};
use crate::doctor::finding::Finding;
use crate::domain::sandbox::{Enforcement, Level};
use crate::domain::settings::Sandbox;

/// Free space in bytes that is too little for a run: a single transcript may take 64 MiB.
const TOO_LITTLE: u64 = 64 << 20;
/// Free space in bytes that may be too little for builds and tests as well.
const LITTLE: u64 = 1 << 30;

pub(super) fn findings(facts: &Facts) -> Vec<Finding> {
    let machine = &facts.machine;
    let mut findings = vec![user(machine), sandbox(machine)];
    findings.extend(machine.confinement.as_ref().map(confinement));
    findings.extend(machine.confinement.as_ref().and_then(allow_list));
    findings.push(processes(machine));
    let run = room("run-directory", &machine.run_directory, "--run-dir");
    findings.push(run);
    if machine.state_directory.path != machine.run_directory.path {
        findings.push(written(
            "state-directory",
            &machine.state_directory,
            true,
            "make it writable for this user, or name another place in XDG_STATE_HOME",
        ));
    }
    let agent = facts.agent.as_ref();
    let is_cli = agent.is_some_and(|Agent { kind, .. }| matches!(kind, AgentKind::Cli(_)));
    findings.push(match &machine.home {
        Some(home) => written(
            "home",
            home,
            false,
            if home.exists { "make it writable for this user, or set HOME to another place: agents keep sessions there" } else { "create it, or set HOME to another place: agents keep sessions there" },
        ),
        None => Finding::warn(
            "home",
            "HOME is not set",
            "set it: agents and build tools keep files there",
        ),
    });
    findings.push(written(
        "temporary-directory",
        &machine.temporary,
        is_cli,
        "create it, or set TMPDIR to a directory that this user can write: agents hang without one",
    ));
    findings
}

fn user(machine: &Machine) -> Finding {
    const CHECK: &str = "user";
    if machine.is_root {
        Finding::warn(
            CHECK,
            "root: an agent can read the secrets of every process in /proc, including the runner's",
            "run as another user, or give the job no secret but the model's key",
        )
    } else {
        Finding::ok(
            CHECK,
            "not root; processes of the same user can still read each other's environment in /proc",
        )
    }
}

/// What the machine offers for a sandbox, either Sprag's or the agent's own.
fn sandbox(machine: &Machine) -> Finding {
    const CHECK: &str = "sandbox";
    let word = |name: &str, there: Option<bool>| match there {
        Some(true) => format!("{name}: yes"),
        Some(false) => format!("{name}: no"),
        None => format!("{name}: not known"),
    };
    let found = format!(
        "{}, {}",
        word("user namespaces", machine.user_namespaces),
        word("Landlock", Some(machine.landlock))
    );
    match (machine.user_namespaces, machine.landlock) {
        (Some(true), _) => Finding::ok(CHECK, found),
        (Some(false), true) => Finding::warn(
            CHECK,
            found,
            "an agent's own sandbox may not work here; allow unprivileged user namespaces if it fails",
        ),
        (Some(false), _) => Finding::warn(
            CHECK,
            found,
            "an agent's own sandbox will not work here; let the job or the container confine it",
        ),
        (None, _) => Finding::unknown(CHECK, found),
    }
}

/// The sandbox level that a run gets, and how to get the next one.
fn confinement(it: &Confinement) -> Finding {
    const CHECK: &str = "sandbox-level";
    let (got, highest) = (it.line.level, it.highest.level);
    let missing = it.line.missing.as_deref();
    let why = missing.map_or_else(String::new, |why| format!("; missing for the next: {why}"));
    match it.setting {
        Sandbox::Off => Finding::warn(
            CHECK,
            "`sandbox: off`: agents and checks can read and write everything that this user can",
            "remove the setting: `auto`, the default, confines them",
        ),
        setting if setting.required().is_some_and(|level| highest < level) => Finding::fail(
            CHECK,
            format!(
                "`sandbox: {}` requires more than level {highest}, which is the highest level here{why}",
                setting.word()
            ),
            remedy(it),
        ),
        setting => {
            let found = format!(
                "a run gets level {got} here, by `sandbox: {}`",
                setting.word()
            );
            match (got, highest) {
                (Level::Namespaces, _) => Finding::ok(CHECK, found),
                (Level::Files, Level::Namespaces) => Finding::ok(
                    CHECK,
                    format!(
                        "{found}; `sandbox: require` gives level 3, with its own process namespace"
                    ),
                ),
                (Level::Files, _) => {
                    Finding::ok(CHECK, format!("{found}; for level 3, {}", remedy(it)))
                }
                _ => Finding::warn(CHECK, format!("{found}{why}"), remedy(it)),
            }
        }
    }
}

/// How the setting `network` is enforced, if it is set.
fn allow_list(it: &Confinement) -> Option<Finding> {
    const CHECK: &str = "network-allow-list";
    let network = it.line.network.as_ref()?;
    let found = network.words();
    Some(match (network.enforced, it.setting) {
        (Enforcement::Namespace, _) => Finding::ok(CHECK, found),
        (_, Sandbox::Off) => Finding::warn(CHECK, found, "remove `sandbox: off`"),
        _ => Finding::warn(CHECK, found, remedy(it)),
    })
}

/// How to reach a higher level than the present one.
fn remedy(it: &Confinement) -> String {
    if it.highest.level < Level::Files {
        return "run on Linux 6.2 or later with Landlock among the kernel's security modules (`lsm=landlock,…`); in a \
                container, with a seccomp profile that allows it"
            .into();
    }
    if it.line.level < Level::Files {
        return "keep the run directory, RUNNER_TEMP and directories of PATH out of directories that everybody \
                writes, such as /tmp, or allow namespaces"
            .into();
    }
    match it.obstacle {
        Obstacle::AppArmor => "run `sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0` in a step before: \
                               this system keeps ordinary users from namespaces"
            .into(),
        Obstacle::Limit => "run `sudo sysctl -w user.max_user_namespaces=10000 kernel.unprivileged_userns_clone=1` \
                            before: the kernel keeps ordinary users from namespaces"
            .into(),
        Obstacle::Container => "start the container with a seccomp profile that allows namespaces and mounts \
                                (`--security-opt seccomp=unconfined`, or `--cap-add SYS_ADMIN`)"
            .into(),
        Obstacle::Unknown => format!(
            "allow namespaces of its own to a program of this user ({})",
            it.highest.missing.as_deref().unwrap_or("the reason is unknown")
        ),
    }
}

fn processes(machine: &Machine) -> Finding {
    const CHECK: &str = "processes";
    match (machine.subreaper, machine.lists_processes) {
        (true, true) => Finding::ok(
            CHECK,
            "Sprag inherits the processes that an agent leaves behind, and ends them",
        ),
        (true, false) => Finding::warn(
            CHECK,
            "there is no /proc, so Sprag does not find the processes that an agent leaves behind",
            "mount it (`mount -t proc proc /proc`), or run in a disposable container",
        ),
        (false, _) => Finding::warn(
            CHECK,
            "on this system, Sprag does not inherit the processes that an agent leaves behind",
            "run on Linux, or in a disposable container",
        ),
    }
}

fn room(check: &'static str, place: &Place, flag: &str) -> Finding {
    let remedy = format!("free some space there, or name another place with {flag}");
    let path = &place.path;
    if !place.writable {
        let remedy = format!("make it writable for this user, or name another place with {flag}");
        return Finding::fail(check, format!("{path} {}", why_closed(place)), remedy);
    }
    match place.free {
        None => Finding::ok(check, path),
        Some(free) => {
            let found = format!("{path}, {} free", size(free));
            match free {
                ..TOO_LITTLE => Finding::fail(check, found, remedy),
                TOO_LITTLE..LITTLE => Finding::warn(check, found, remedy),
                LITTLE.. => Finding::ok(check, found),
            }
        }
    }
}

fn written(check: &'static str, place: &Place, needed: bool, remedy: &str) -> Finding {
    let path = &place.path;
    if place.writable {
        Finding::ok(check, path)
    } else {
        Finding::bad(
            needed,
            check,
            format!("{path} {}", why_closed(place)),
            remedy,
        )
    }
}

/// Why a place cannot be written, as the rest of a sentence about it.
fn why_closed(place: &Place) -> &'static str {
    if place.exists {
        "cannot be written"
    } else {
        "does not exist"
    }
}

/// A size in whole GiB or MiB.
fn size(bytes: u64) -> String {
    match bytes {
        ..LITTLE => format!("{} MiB", bytes >> 20),
        LITTLE.. => format!("{} GiB", bytes >> 30),
    }
}
