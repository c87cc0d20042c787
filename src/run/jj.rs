//! jj beside git. Sprag works through git; a colocated jj repository has the same git directory, and its next
//! command takes in what git has. It is told at the end of a run, so that its view is right for whatever reads it.

use crate::context::Context;
use crate::error::{Error, Result};
use crate::git::Real;
use crate::process::{CommandSpec, Exit, HeadTail, Input, Limits, clean_text, run};
use crate::run::emitter::Emitter;
use crate::run::isolation::Purpose;
use crate::run::setup::Setup;
use crate::run::work_tree::{WorkTree, head_of};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The limit of one jj command: with a large working copy it has much to read.
const TIMEOUT: Duration = Duration::from_secs(120);

/// How much of the end of jj's output a warning shows.
const SHOWN: usize = 2 << 10;

/// Variables that lead jj to its user's configuration, besides those that every child has.
const CONFIGURATION: [&str; 1] = ["JJ_CONFIG"];

/// The nearest directory, from this one upwards, that is a working copy of jj's.
fn workspace(from: &Path) -> Option<&Path> {
    let mut above = from.ancestors();
    above.find(|dir| dir.join(".jj/repo").symlink_metadata().is_ok())
}

/// Whether the work tree is a working copy of a jj repository with the same git directory.
pub(crate) fn is_colocated(real: &Real) -> bool {
    let store = repository_of(real.work_tree()).join("store");
    let Ok(target) = fs::read_to_string(store.join("git_target")) else {
        return false;
    };
    let target = fs::canonicalize(store.join(target.trim_end_matches('\n')));
    target.is_ok_and(|target| target == real.common_dir())
}

/// jj's repository: in its first working copy a directory, in others a file with the path of that.
fn repository_of(work_tree: &Path) -> PathBuf {
    let own = work_tree.join(".jj");
    let place = own.join("repo");
    match fs::read_to_string(&place) {
        Ok(path) => own.join(path.trim_end_matches('\n')),
        Err(_) => place,
    }
}

/// Refuses a directory that belongs to a jj repository whose git directory nothing but jj sees. `real` is the git
/// repository that was found there, or above.
///
/// # Errors
/// The refusal, with the command that helps.
pub(crate) fn refuse_hidden(directory: &Path, real: Option<&Real>) -> Result<()> {
    let directory = fs::canonicalize(directory).unwrap_or_else(|_| directory.to_path_buf());
    let Some(root) = workspace(&directory) else {
        return Ok(());
    };
    // The nearer one is the one that is meant.
    if real.is_some_and(|real| real.work_tree().starts_with(root)) {
        return Ok(());
    }
    Err(Error::config(format!(
        "{} is a jj repository without a .git beside it, and Sprag works through git",
        root.display()
    ))
    .hint("run `jj git colocation enable` there and start again: jj keeps its whole history, and `jj git colocation disable` takes it back")
    .hint("in a further working copy of jj (jj workspace add) run Sprag in the first one instead"))
}

/// Fails where the repository is one of jj's, too, and jj is not there to be told of commits.
///
/// # Errors
/// When the program is missing.
pub(crate) fn require_program(context: &Context, real: &Real) -> Result<()> {
    if !is_colocated(real) || context.find_program("jj").is_some() {
        return Ok(());
    }
    Err(Error::environment(format!(
        "{} is a jj repository, too, and jj was not found on PATH",
        real.work_tree().display()
    ))
    .hint("install jj, or remove .jj if the repository is used with git alone"))
}

/// Tells jj of the run's commits. Its working-copy commit is on top of them afterwards; commits, bookmarks and
/// operations of its own stay. A run that was cancelled leaves that to the next command of jj's.
pub(crate) async fn tell(setup: &Setup, tree: &mut WorkTree, emit: &mut Emitter<'_>) {
    let real = tree.repo.real();
    let has_commits = tree.repo.base() != setup.start_commit();
    let cancel = setup.cancel.beyond_deadline();
    if !has_commits || !is_colocated(real) || cancel.reason().is_some() {
        return;
    }
    let cwd = real.work_tree().to_path_buf();
    let args = ["--no-pager", "--color=never", "git", "import"];
    let spec = CommandSpec {
        program: "jj".into(),
        args: args.map(Into::into).into(),
        cwd,
        env: setup.environment(&CONFIGURATION.map(str::to_owned), emit),
        stdin: Input::Null,
        limits: Limits {
            timeout: Some(TIMEOUT),
            ..Limits::default()
        },
        sandbox: setup.isolation.policy(Purpose::Setup),
    };
    let mut kept = HeadTail::new(0, SHOWN);
    let ended = run(&spec, &cancel, &mut |_, chunk: &[u8]| kept.push(chunk)).await;
    if !matches!(ended.exit, Exit::Code(0)) {
        let said = clean_text(&kept.into_parts().1);
        emit.warn(format!(
            "jj was not told of the commits, which its next command takes in: `jj git import` ended with {}: {}",
            ended.exit,
            said.trim()
        ));
    }
    for what in setup.violations() {
        emit.warn(what);
    }
    let (raw, _) = tree.snapshot(emit);
    if raw.is_some_and(|raw| head_of(&raw) != tree.repo.base()) {
        emit.warn("HEAD is not at the run's last commit any more: jj moved it");
    }
}
