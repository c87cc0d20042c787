//! Facts about git and the repository.

use crate::context::Context;
use crate::doctor::{Checkout, Credential, Jj, Problem, Program, Queried, Repository};
use crate::error::Error;
use crate::git::{self, GitError, Real};
use crate::run::deliver::jj::has_jj;
use crate::run::state::past_runs::blocking_changes;

pub(crate) fn program(context: &Context) -> Option<Program> {
    let environment = git::Environment::new(context.env.iter().cloned());
    let found = git::git_version(&context.cwd, &environment)?;
    Some(Program {
        path: found.program.display().to_string(),
        version: found.version,
    })
}

/// Splits the message about an unusable repository at its semicolon into problem and remedy.
pub(crate) fn trouble(error: &Error) -> Problem {
    let mut trouble = crate::doctor::gather::trouble(error);
    if trouble.hints.is_empty()
        && let Some((what, remedy)) = trouble.message.split_once("; ")
    {
        trouble = Problem {
            hints: vec![remedy.to_owned()],
            message: what.to_owned(),
        };
    }
    trouble
}

pub(crate) fn gather(context: &Context, real: &Real) -> Repository {
    Repository {
        work_tree: real.work_tree().display().to_string(),
        closed: real.closed().map(|closed| closed.display().to_string()),
        lock: real.held_lock().map(|lock| lock.display().to_string()),
        idle_hooks: git::idle_hooks_of(real).unwrap_or_default(),
        identity: queried(git::identity_of(real))
            .map(|found| found.map(|identity| format!("{} <{}>", identity.name, identity.email))),
        changes: queried(blocking_changes(context, real)),
        checkout: queried(git::checkout(real)).map(|found| Checkout {
            branch: found.branch,
            commit: found.commit,
            refs: found.refs,
            depth: found.depth,
        }),
        credentials: queried(git::persisted_credentials(real)).map(|found| {
            let shown = |it: git::PersistedCredential| Credential {
                key: it.key,
                file: it.file.display().to_string(),
                local: it.local,
            };
            found.into_iter().map(shown).collect()
        }),
        nested: queried(git::nested(real)),
        jj: has_jj(real).then(|| Jj {
            alone: real.is_jj_alone(),
            installed: context.find_program("jj").is_some(),
        }),
    }
}

fn queried<T>(answer: Result<T, GitError>) -> Queried<T> {
    answer.map_err(|error| error.to_string())
}
