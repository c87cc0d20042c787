//! The machine: the user, the confinement, and the directories.

use crate::agents::{Agent, CliAgent};
use crate::context::Context;
use crate::doctor::configuration::Configured;
use crate::doctor::finding::Finding;
use crate::domain::sandbox::{Enforcement, Level};
use crate::domain::settings::Sandbox;
use crate::git::Real;
use crate::process::environment::environment;
use crate::process::{Cancel, CommandSpec, Exit, Input, Limits, run};
use crate::run::begin::isolation::{self, ConfinementLevels, Scope};
use crate::run::state::places;
use rustix::fs::{Access, access, statvfs};
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// Time limit for a program that only says something. Its first start can take seconds.
const QUICK: Duration = Duration::from_secs(30);

/// Free space in bytes that is too little for a run: a single transcript may take 64 MiB.
const TOO_LITTLE: u64 = 64 << 20;
/// Free space in bytes that may be too little for builds and tests as well.
const LITTLE: u64 = 1 << 30;

/// A rule of the system that keeps programs from creating namespaces.
pub(super) struct Obstacle {
    /// The files with such a rule. One of them has the value, or merely exists if there is no value.
    signs: &'static [(&'static str, Option<&'static str>)],
    remedy: &'static str,
}

/// AppArmor keeps ordinary users from namespaces, as in Ubuntu from 23.10 on.
pub(super) const APPARMOR: Obstacle = Obstacle {
    signs: &[(
        "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
        Some("1"),
    )],
    remedy: "run `sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0` in a step before: this system keeps \
             ordinary users from namespaces",
};

/// The kernel's limit of user namespaces is 0, or it denies them to ordinary users.
pub(super) const LIMIT: Obstacle = Obstacle {
    signs: &[
        ("/proc/sys/user/max_user_namespaces", Some("0")),
        ("/proc/sys/kernel/unprivileged_userns_clone", Some("0")),
    ],
    remedy: "run `sudo sysctl -w user.max_user_namespaces=10000 kernel.unprivileged_userns_clone=1` before: the kernel \
             keeps ordinary users from namespaces",
};

/// This is a container.
pub(super) const CONTAINER: Obstacle = Obstacle {
    signs: &[("/.dockerenv", None), ("/run/.containerenv", None)],
    remedy: "start the container with a seccomp profile that allows namespaces and mounts \
             (`--security-opt seccomp=unconfined`, or `--cap-add SYS_ADMIN`)",
};

impl Obstacle {
    fn is_here(&self) -> bool {
        self.signs.iter().any(|(path, value)| match value {
            None => Path::new(path).exists(),
            Some(value) => fs::read_to_string(path).is_ok_and(|text| text.trim() == *value),
        })
    }
}

/// A directory that may not exist yet.
#[derive(Clone)]
pub(super) struct Place {
    pub(super) path: String,
    /// Whether it exists, or need not exist yet.
    pub(super) exists: bool,
    /// Whether it, or its nearest existing parent, is writable.
    pub(super) is_writable: bool,
    /// Free space in bytes.
    pub(super) free: Option<u64>,
}

impl Place {
    /// A directory that may not exist yet, and is as writable as its nearest existing parent.
    fn planned(path: &Path) -> Self {
        let existing = path
            .ancestors()
            .find(|dir| dir.symlink_metadata().is_ok())
            .unwrap_or(Path::new("/"));
        Self {
            path: path.display().to_string(),
            ..Self::required(existing)
        }
    }

    /// A directory that must exist.
    fn required(path: &Path) -> Self {
        let free = statvfs(path).ok();
        Self {
            path: path.display().to_string(),
            exists: path.exists(),
            is_writable: path.is_dir() && access(path, Access::WRITE_OK | Access::EXEC_OK).is_ok(),
            free: free.map(|stat| stat.f_bavail.saturating_mul(stat.f_frsize)),
        }
    }
}

/// A program that only says something, outside of the repository.
pub(super) fn quick_command(context: &Context, program: OsString, args: &[&str]) -> CommandSpec {
    CommandSpec {
        program,
        args: args.iter().map(Into::into).collect(),
        cwd: "/".into(),
        env: environment(&context.env, &[]).variables,
        stdin: Input::Null,
        limits: Limits {
            timeout: Some(QUICK),
            grace: Duration::from_millis(500),
            ..Limits::default()
        },
        sandbox: None,
    }
}

pub(super) fn directories(
    context: &Context,
    configured: Option<&Configured>,
    work_tree: &Path,
) -> Vec<Finding> {
    let runs = configured
        .and_then(|configured| configured.run.run_dir(context))
        .unwrap_or_else(|| places::runs_of(context, work_tree));
    let state = context.state_home();
    let mut findings = vec![room("run-directory", &Place::planned(&runs), "--run-dir")];
    if state != runs {
        findings.push(state_directory(&Place::planned(&state)));
    }
    let home = context.path_var("HOME");
    let temporary = context.path_var("TMPDIR").unwrap_or_else(|| "/tmp".into());
    let hangs_without = configured.is_some_and(|configured| {
        let task = &configured.task;
        task.missing.is_none() && matches!(task.agent, Agent::Cli(CliAgent::Known(_)))
    });
    findings.extend([
        self::home(home.as_deref().map(Place::required).as_ref()),
        temporary_directory(&Place::required(&temporary), hangs_without),
    ]);
    findings
}

pub(super) fn state_directory(place: &Place) -> Finding {
    let remedy = "make it writable for this user, or name another place in XDG_STATE_HOME";
    written("state-directory", place, true, remedy)
}

pub(super) fn home(place: Option<&Place>) -> Finding {
    const CHECK: &str = "home";
    let Some(place) = place else {
        return Finding::warn(
            CHECK,
            "HOME is not set",
            "set it: agents and build tools keep files there",
        );
    };
    let first = if place.exists {
        "make it writable for this user"
    } else {
        "create it"
    };
    let remedy = format!("{first}, or set HOME to another place: agents keep sessions there");
    written(CHECK, place, false, &remedy)
}

pub(super) fn temporary_directory(place: &Place, is_needed: bool) -> Finding {
    let remedy =
        "create it, or set TMPDIR to a directory that this user can write: agents hang without one";
    written("temporary-directory", place, is_needed, remedy)
}

pub(super) fn user(is_root: bool) -> Finding {
    const CHECK: &str = "user";
    if is_root {
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

/// What the machine offers for a sandbox, and what a run gets of it if it could be found out.
pub(super) async fn sandbox_findings(
    context: &Context,
    run: Option<(&Real, &Configured)>,
    cancel: &Cancel,
) -> Vec<Finding> {
    let has_landlock = isolation::without_namespaces().0 >= Level::Files;
    let (namespaces, levels) = tokio::join!(user_namespaces(context, cancel), levels(context, run));
    let mut findings = vec![sandbox(namespaces, has_landlock)];
    if let Some((setting, levels)) = levels {
        let all = [&APPARMOR, &LIMIT, &CONTAINER];
        let obstacle = all.into_iter().find(|obstacle| obstacle.is_here());
        findings.push(sandbox_level(setting, &levels, obstacle));
        findings.extend(allow_list(setting, &levels, obstacle));
    }
    findings
}

/// The confinement of the children of a run in this repository, by the setting `sandbox`.
async fn levels(
    context: &Context,
    run: Option<(&Real, &Configured)>,
) -> Option<(Sandbox, ConfinementLevels)> {
    let (real, Configured { run, task, .. }) = run?;
    let scope = Scope {
        context,
        real,
        run,
        agents: task.every_agent().collect(),
        run_dir: None,
        passes_keys: false,
        makes: false,
    };
    let levels = isolation::confinement_levels(&scope).await.ok()?;
    Some((run.settings.sandbox, levels))
}

/// Whether a program can run in its own user namespace, tested by starting one. `None` if that is not known in time.
async fn user_namespaces(context: &Context, cancel: &Cancel) -> Option<bool> {
    if !cfg!(target_os = "linux") {
        return None;
    }
    let limit = fs::read_to_string("/proc/sys/user/max_user_namespaces").ok();
    if limit.is_some_and(|limit| limit.trim() == "0") {
        return Some(false);
    }
    let program = context.find_program("unshare")?;
    let args = ["--user", "--map-root-user", "true"];
    let command = quick_command(context, program.into(), &args);
    match run(&command, cancel, &mut |_, _| {}).await.exit {
        Exit::TimedOut { .. } => None,
        exit => Some(exit.is_success()),
    }
}

/// A sandbox is either Sprag's or the agent's own.
pub(super) fn sandbox(user_namespaces: Option<bool>, has_landlock: bool) -> Finding {
    const CHECK: &str = "sandbox";
    let word = |is_there: Option<bool>| match is_there {
        Some(true) => "yes",
        Some(false) => "no",
        None => "not known",
    };
    let found = format!(
        "user namespaces: {}, Landlock: {}",
        word(user_namespaces),
        word(Some(has_landlock))
    );
    match (user_namespaces, has_landlock) {
        (Some(true), _) => Finding::ok(CHECK, found),
        (Some(false), true) => Finding::warn(
            CHECK,
            found,
            "an agent's own sandbox may not work here; allow unprivileged user namespaces if it fails",
        ),
        (Some(false), false) => Finding::warn(
            CHECK,
            found,
            "an agent's own sandbox will not work here; let the job or the container confine it",
        ),
        (None, _) => Finding::unknown(CHECK, found),
    }
}

/// The sandbox level that a run gets, and how to get the next one.
pub(super) fn sandbox_level(
    setting: Sandbox,
    levels: &ConfinementLevels,
    obstacle: Option<&Obstacle>,
) -> Finding {
    const CHECK: &str = "sandbox-level";
    let (got, highest) = (levels.line.level, levels.highest.level);
    let why = match &levels.line.missing {
        Some(why) => format!("; missing for the next: {why}"),
        None => String::new(),
    };
    match setting {
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
            remedy(levels, obstacle),
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
                (Level::Files, _) => Finding::ok(
                    CHECK,
                    format!("{found}; for level 3, {}", remedy(levels, obstacle)),
                ),
                _ => Finding::warn(CHECK, format!("{found}{why}"), remedy(levels, obstacle)),
            }
        }
    }
}

/// How the setting `network` is enforced, if it is set.
fn allow_list(
    setting: Sandbox,
    levels: &ConfinementLevels,
    obstacle: Option<&Obstacle>,
) -> Option<Finding> {
    const CHECK: &str = "network-allow-list";
    let network = levels.line.network.as_ref()?;
    let found = network.words();
    Some(match (network.enforced, setting) {
        (Enforcement::Namespace, _) => Finding::ok(CHECK, found),
        (_, Sandbox::Off) => Finding::warn(CHECK, found, "remove `sandbox: off`"),
        _ => Finding::warn(CHECK, found, remedy(levels, obstacle)),
    })
}

/// How to reach a higher level than the present one.
fn remedy(levels: &ConfinementLevels, obstacle: Option<&Obstacle>) -> String {
    if levels.highest.level < Level::Files {
        return "run on Linux 6.2 or later with Landlock among the kernel's security modules (`lsm=landlock,…`); in a \
                container, with a seccomp profile that allows it"
            .into();
    }
    if levels.line.level < Level::Files {
        return "keep the run directory, RUNNER_TEMP and directories of PATH out of directories that everybody \
                writes, such as /tmp, or allow namespaces"
            .into();
    }
    match obstacle {
        Some(obstacle) => obstacle.remedy.into(),
        None => format!(
            "allow namespaces of its own to a program of this user ({})",
            levels
                .highest
                .missing
                .as_deref()
                .unwrap_or("the reason is unknown")
        ),
    }
}

/// Without a list of processes, Sprag does not find those that an agent leaves behind.
pub(super) fn processes(is_subreaper: bool, lists_processes: bool) -> Finding {
    const CHECK: &str = "processes";
    match (is_subreaper, lists_processes) {
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

pub(super) fn room(check: &'static str, place: &Place, flag: &str) -> Finding {
    let remedy = format!("free some space there, or name another place with {flag}");
    let path = &place.path;
    if !place.is_writable {
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

pub(super) fn written(check: &'static str, place: &Place, needed: bool, remedy: &str) -> Finding {
    let path = &place.path;
    if place.is_writable {
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
