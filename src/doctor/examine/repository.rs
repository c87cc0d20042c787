//! git and the repository.

use crate::doctor::facts::{
    Checkout, Credential, Facts, Jj, Nested, Problem, Repository, UncommittedChanges,
};
use crate::doctor::finding::{Finding, some_of};
use crate::domain::outcome::short;
use crate::domain::text::count;
use crate::git::jj_remedy;

pub(super) fn program(facts: &Facts) -> Finding {
    match &facts.git {
        Some(git) => Finding::ok("git", format!("{} ({})", git.version, git.path)),
        None => Finding::fail(
            "git",
            "there is no git on PATH",
            "install git 2.31 or later",
        ),
    }
}

pub(super) fn findings(facts: &Facts) -> Vec<Finding> {
    let repository = match &facts.repository {
        Ok(repository) => repository,
        // The missing git was already reported.
        Err(_) if facts.git.is_none() => {
            return vec![Finding::unknown("repository", "not checked without git")];
        }
        Err(Problem { message, hints }) => {
            return vec![Finding::fail("repository", message, hints.join("\n"))];
        }
    };
    let mut findings = vec![
        top(repository),
        identity(repository, facts.in_actions),
        work_tree(repository, facts),
        checkout(repository, facts.in_actions),
        credentials(repository),
    ];
    findings.extend(repository.lock.as_deref().map(lock));
    if !repository.idle_hooks.is_empty() {
        let idle = repository.idle_hooks.join(", ");
        let found = format!("only pre-commit and commit-msg run, and not {idle}");
        findings.push(Finding::ok("hooks", found));
    }
    findings.extend(repository.jj.as_ref().map(jj));
    match &repository.nested {
        Ok(nested) => findings.extend(nested_findings(*nested)),
        Err(why) => findings.push(Finding::unknown("submodules", why)),
    }
    findings
}

fn top(repository: &Repository) -> Finding {
    match &repository.closed {
        None => Finding::ok("repository", &repository.work_tree),
        Some(closed) => Finding::fail(
            "repository",
            format!("{closed} cannot be written"),
            "run as its owner, or change its permissions",
        ),
    }
}

fn lock(path: &str) -> Finding {
    Finding::warn(
        "lock",
        format!("{path} is held by another git process"),
        "wait for it, or remove the file if none is running",
    )
}

fn identity(repository: &Repository, in_actions: bool) -> Finding {
    const CHECK: &str = "identity";
    match &repository.identity {
        _ if in_actions => Finding::ok(CHECK, "github-actions[bot] commits, as in every job"),
        Ok(Some(identity)) => Finding::ok(CHECK, format!("{identity} commits")),
        Ok(None) => Finding::warn(
            CHECK,
            "git knows no user.name and user.email; commits are made as sprag <sprag@localhost>",
            "git config --global user.name NAME && git config --global user.email MAIL",
        ),
        Err(why) => Finding::unknown(CHECK, why),
    }
}

fn work_tree(repository: &Repository, facts: &Facts) -> Finding {
    const CHECK: &str = "work-tree";
    let UncommittedChanges { changed, untracked } = match &repository.changes {
        Ok(changes) => changes,
        Err(why) => return Finding::unknown(CHECK, why),
    };
    let all: Vec<String> = changed.iter().chain(untracked).cloned().collect();
    let found = format!("not clean: {}", some_of(&all, 5));
    let allowed = facts.configuration.as_ref().is_ok_and(|it| it.allow_dirty);
    match (changed.as_slice(), untracked.as_slice()) {
        ([], []) => Finding::ok(CHECK, "clean"),
        _ if allowed => Finding::warn(
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
        _ if repository.jj.is_some() => {
            Finding::fail(CHECK, found, jj_remedy(all.iter().map(String::as_bytes)))
        }
        _ => Finding::fail(
            CHECK,
            found,
            "commit or stash these files, or use --allow-dirty (then nothing is committed)",
        ),
    }
}

/// Reports the state of the checkout. Shallow and detached checkouts are common and work.
fn checkout(repository: &Repository, in_actions: bool) -> Finding {
    const CHECK: &str = "checkout";
    let it = match &repository.checkout {
        Ok(checkout) => checkout,
        Err(why) => return Finding::unknown(CHECK, why),
    };
    let history = match it.depth {
        None => String::new(),
        Some(depth) => format!(", shallow: {} of its history", count(depth, "commit")),
    };
    let on_pull = it.refs.iter().any(|name| name.contains("/pull/"));
    let switched = if in_actions && it.branch.is_none() && on_pull {
        "; a run for a pull request switches to its head branch"
    } else {
        ""
    };
    Finding::ok(CHECK, format!("{}{history}{switched}", place(it)))
}

fn place(it: &Checkout) -> String {
    let commit = it.commit.as_ref().map(|commit| short(commit).to_owned());
    match (&it.branch, commit) {
        (Some(branch), Some(commit)) => format!("branch {branch} at {commit}"),
        (Some(branch), None) => format!("branch {branch}, which has no commit yet"),
        (None, commit) => {
            let commit = commit.unwrap_or_default();
            let named = match it.refs.as_slice() {
                [] => String::new(),
                refs => format!(" ({})", some_of(refs, 3)),
            };
            format!("detached at {commit}{named}")
        }
    }
}

fn credentials(repository: &Repository) -> Finding {
    const CHECK: &str = "credentials";
    let found = match &repository.credentials {
        Ok(found) => found,
        Err(why) => return Finding::unknown(CHECK, why),
    };
    if found.is_empty() {
        return Finding::ok(CHECK, "none in git's configuration");
    }
    let places: Vec<String> = found
        .iter()
        .map(|Credential { key, file, .. }| format!("{key} in {file}"))
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
fn jj(it: &Jj) -> Finding {
    const CHECK: &str = "jj";
    const GIT: &str = "commits, hooks, signing and pushes are git's";
    match it {
        Jj {
            installed: false, ..
        } => Finding::fail(
            CHECK,
            "the repository is also a jj repository, and jj is not on PATH",
            "install jj, or remove .jj if the repository is used with git alone",
        ),
        Jj { alone: false, .. } => Finding::ok(
            CHECK,
            format!("beside git: {GIT}, and jj imports the commits at the end of a run"),
        ),
        Jj { alone: true, .. } => Finding::ok(
            CHECK,
            format!(
                "has the repository alone: {GIT}, by git's configuration and not by jj's; jj imports the commits at \
                 the end of a run"
            ),
        ),
    }
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
