//! git and the repository.

use crate::context::Context;
use crate::doctor::configuration::Configured;
use crate::doctor::finding::{Finding, judged};
use crate::domain::outcome::short;
use crate::domain::text::{count, some_of};
use crate::error::{Error, Result};
use crate::git::{
    self, Checkout, GitVersion, Identity, Nested, PersistedCredential, Real, UncommittedChanges,
    jj_remedy,
};
use crate::run::deliver::jj::has_jj;
use crate::run::state::past_runs::blocking_changes;
use std::path::Path;

pub(super) fn findings(
    context: &Context,
    real: &Result<Real>,
    configured: Option<&Configured>,
) -> Vec<Finding> {
    let environment = git::Environment::new(context.env.iter().cloned());
    let git = git::git_version(&context.cwd, &environment);
    let real = match real {
        Ok(real) => real,
        Err(error) => return vec![program(git.as_ref()), unusable(git.as_ref(), error)],
    };
    let allow_dirty = configured.is_some_and(|configured| configured.run.settings.allow_dirty);
    let is_jj = has_jj(real);
    let mut findings = vec![
        program(git.as_ref()),
        top(real.work_tree(), real.closed()),
        if context.in_actions() {
            identity_of_job()
        } else {
            judged("identity", git::identity_of(real), identity)
        },
        judged("work-tree", blocking_changes(context, real), |changes| {
            work_tree(&changes, allow_dirty, is_jj)
        }),
        judged("checkout", git::checkout(real), |found| {
            checkout(&found, context.in_actions())
        }),
        judged("credentials", git::persisted_credentials(real), |found| {
            credentials(&found)
        }),
    ];
    findings.extend(real.held_lock().as_deref().map(lock));
    let idle = git::idle_hooks_of(real).unwrap_or_default();
    if !idle.is_empty() {
        let found = format!(
            "only pre-commit and commit-msg run, and not {}",
            idle.join(", ")
        );
        findings.push(Finding::ok("hooks", found));
    }
    if is_jj {
        findings.push(jj(real.is_jj_alone(), context.find_program("jj").is_some()));
    }
    match git::nested(real) {
        Ok(nested) => findings.extend(nested_findings(nested)),
        Err(error) => findings.push(Finding::unknown("submodules", error.to_string())),
    }
    findings
}

pub(super) fn program(git: Option<&GitVersion>) -> Finding {
    const CHECK: &str = "git";
    match git {
        Some(GitVersion { program, version }) => {
            Finding::ok(CHECK, format!("{version} ({})", program.display()))
        }
        None => Finding::fail(
            CHECK,
            "there is no git on PATH",
            "install git 2.31 or later",
        ),
    }
}

/// Splits the message about an unusable repository at its semicolon into problem and remedy.
pub(super) fn unusable(git: Option<&GitVersion>, error: &Error) -> Finding {
    const CHECK: &str = "repository";
    if git.is_none() {
        return Finding::unknown(CHECK, "not checked without git");
    }
    let finding = Finding::of_error(CHECK, error);
    match finding.found.split_once("; ") {
        Some((found, remedy)) if error.hints.is_empty() => Finding::fail(CHECK, found, remedy),
        _ => finding,
    }
}

pub(super) fn top(work_tree: &Path, closed: Option<&Path>) -> Finding {
    const CHECK: &str = "repository";
    match closed {
        None => Finding::ok(CHECK, work_tree.display().to_string()),
        Some(closed) => Finding::fail(
            CHECK,
            format!("{} cannot be written", closed.display()),
            "run as its owner, or change its permissions",
        ),
    }
}

fn lock(path: &Path) -> Finding {
    Finding::warn(
        "lock",
        format!("{} is held by another git process", path.display()),
        "wait for it, or remove the file if none is running",
    )
}

pub(super) fn identity_of_job() -> Finding {
    Finding::ok("identity", "github-actions[bot] commits, as in every job")
}

pub(super) fn identity(identity: Option<Identity>) -> Finding {
    const CHECK: &str = "identity";
    match identity {
        Some(Identity { name, email }) => Finding::ok(CHECK, format!("{name} <{email}> commits")),
        None => Finding::warn(
            CHECK,
            "git knows no user.name and user.email; commits are made as sprag <sprag@localhost>",
            "git config --global user.name NAME && git config --global user.email MAIL",
        ),
    }
}

pub(super) fn work_tree(changes: &UncommittedChanges, allow_dirty: bool, is_jj: bool) -> Finding {
    const CHECK: &str = "work-tree";
    let UncommittedChanges { changed, untracked } = changes;
    let all: Vec<String> = changed.iter().chain(untracked).cloned().collect();
    let found = format!("not clean: {}", some_of(&all, 5));
    match (changed.as_slice(), untracked.as_slice()) {
        ([], []) => Finding::ok(CHECK, "clean"),
        _ if allow_dirty => Finding::warn(
            CHECK,
            format!("{found}; allow_dirty is set, so nothing will be committed"),
            "commit or stash these files, and remove allow_dirty",
        ),
        ([], [one]) => Finding::warn(
            CHECK,
            format!(
                "{one} is not committed: a run starts only if it is the plan, or checks of an earlier run left it"
            ),
            "commit it, add it to .gitignore, or start the run with it as the plan",
        ),
        _ if is_jj => Finding::fail(CHECK, found, jj_remedy(all.iter().map(String::as_bytes))),
        _ => Finding::fail(
            CHECK,
            found,
            "commit or stash these files, or use --allow-dirty (then nothing is committed)",
        ),
    }
}

/// Reports the state of the checkout. Shallow and detached checkouts are common and work.
pub(super) fn checkout(found: &Checkout, in_actions: bool) -> Finding {
    let history = match found.depth {
        None => String::new(),
        Some(depth) => format!(", shallow: {} of its history", count(depth, "commit")),
    };
    let on_pull = found.refs.iter().any(|name| name.contains("/pull/"));
    let switched = if in_actions && found.branch.is_none() && on_pull {
        "; a run for a pull request switches to its head branch"
    } else {
        ""
    };
    Finding::ok("checkout", format!("{}{history}{switched}", place(found)))
}

fn place(found: &Checkout) -> String {
    match (&found.branch, found.commit.as_ref().map(short)) {
        (Some(branch), Some(commit)) => format!("branch {branch} at {commit}"),
        (Some(branch), None) => format!("branch {branch}, which has no commit yet"),
        (None, commit) => {
            let commit = commit.unwrap_or_default();
            let named = match found.refs.as_slice() {
                [] => String::new(),
                refs => format!(" ({})", some_of(refs, 3)),
            };
            format!("detached at {commit}{named}")
        }
    }
}

pub(super) fn credentials(found: &[PersistedCredential]) -> Finding {
    const CHECK: &str = "credentials";
    if found.is_empty() {
        return Finding::ok(CHECK, "none in git's configuration");
    }
    let places: Vec<String> = found
        .iter()
        .map(|PersistedCredential { key, file, .. }| format!("{key} in {}", file.display()))
        .collect();
    let remedy = if found.iter().any(|credential| credential.local) {
        "give actions/checkout `persist-credentials: false`: Sprag pushes with its own token"
    } else {
        "remove it from your configuration: agents run as the same user and can use it"
    };
    Finding::warn(
        CHECK,
        format!(
            "git has a credential that an agent could push with: {}",
            some_of(&places, 3)
        ),
        remedy,
    )
}

/// Reports before a run what jj users might otherwise miss.
fn jj(alone: bool, installed: bool) -> Finding {
    const CHECK: &str = "jj";
    const GIT: &str = "commits, hooks, signing and pushes are git's";
    if !installed {
        return Finding::fail(
            CHECK,
            "the repository is also a jj repository, and jj is not on PATH",
            "install jj, or remove .jj if the repository is used with git alone",
        );
    }
    let found = if alone {
        format!(
            "has the repository alone: {GIT}, by git's configuration and not by jj's; jj imports the commits at the \
             end of a run"
        )
    } else {
        format!("beside git: {GIT}, and jj imports the commits at the end of a run")
    };
    Finding::ok(CHECK, found)
}

fn nested_findings(nested: Nested) -> Vec<Finding> {
    let mut findings = Vec::new();
    let (submodules, absent) = (nested.submodules, nested.absent);
    if absent > 0 {
        findings.push(Finding::warn(
            "submodules",
            format!("{absent} of {} not checked out", count(submodules as u64, "submodule")),
            "if the checks need them: `submodules: true` for actions/checkout, or git submodule update --init",
        ));
    } else if submodules > 0 {
        let found = format!(
            "{}; changes inside are not committed",
            count(submodules as u64, "submodule")
        );
        findings.push(Finding::ok("submodules", found));
    }
    match (nested.lfs, nested.lfs_ready) {
        (false, _) => {}
        (true, true) => findings.push(Finding::ok("lfs", "used and set up")),
        (true, false) => findings.push(Finding::warn(
            "lfs",
            "git-lfs stores files of this repository, and git is not set up for it here",
            "install git-lfs and run git lfs install; for actions/checkout `lfs: true` gets the files",
        )),
    }
    findings
}
