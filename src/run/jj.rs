//! Support for repositories that jj and git share. Sprag uses git. At the end of a run it makes jj
//! import the commits, so that every tool that reads jj's view sees them.

use crate::context::Context;
use crate::error::{Error, Result};
use crate::git::{GitError, Real};
use crate::plain_file;
use crate::process::environment::environment;
use crate::process::{
    Cancel, CommandSpec, Exit, HeadTail, Input, Limits, StreamKind, clean_text, run,
};
use crate::run::emitter::Emitter;
use crate::run::isolation::{Isolation, Purpose, with_temporary};
use crate::run::setup::Setup;
use crate::run::work_tree::{WorkTree, head_of};
use crate::sandbox::Policy;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// The timeout of one jj command. A large working copy takes long to read.
const TIMEOUT: Duration = Duration::from_secs(120);

/// How many bytes of jj's output are kept.
const READ: usize = 64 << 10;

/// How many characters of the output a warning shows.
const SHOWN: usize = 2 << 10;

/// Variables that locate the user's jj configuration, in addition to those that every child gets.
const CONFIGURATION: [&str; 1] = ["JJ_CONFIG"];

/// Maximum length in bytes of a file that contains a path.
const MAX_PATH_BYTES: u64 = 8 << 10;

/// A temporary bookmark, so that jj imports commits that are on no bookmark.
const TEMPORARY_BOOKMARK: &str = "sprag-temporary";

/// Whether the work tree is a working copy of a jj repository with the same git directory.
pub(crate) fn has_jj(real: &Real) -> bool {
    let store = real.work_tree().join(".jj/repo/store");
    let Ok(target) = plain_file::read(&store.join("git_target"), MAX_PATH_BYTES) else {
        return false;
    };
    let target = String::from_utf8_lossy(&target);
    let target = fs::canonicalize(store.join(target.trim_end_matches('\n')));
    target.is_ok_and(|target| target == real.common_dir())
}

/// Fails if the repository is also a jj repository and jj is not installed. Imports the commits of an
/// earlier run that died before it did so.
///
/// # Errors
/// When jj is not on PATH, or the import fails.
pub(crate) async fn prepare(
    context: &Context,
    real: &Real,
    isolation: &Isolation,
    is_resumed: bool,
) -> Result<()> {
    if !has_jj(real) {
        return Ok(());
    }
    if context.find_program("jj").is_none() {
        return Err(Error::environment(format!(
            "{} is also a jj repository, and jj was not found on PATH",
            real.work_tree().display()
        ))
        .hint("install jj, or remove .jj if the repository is used with git alone"));
    }
    if let (false, Some(since)) = (is_resumed, real.unimported_since()) {
        let allowed = environment(&context.env, &CONFIGURATION.map(str::to_owned));
        let jj = Jj {
            cwd: real.work_tree(),
            env: with_temporary(allowed.variables, isolation),
            sandbox: isolation.policy(Purpose::Setup),
            cancel: Cancel::new(),
        };
        jj.import_head(real, &since).await.map_err(|why| {
            Error::environment(format!(
                "the commits of an earlier run could not be imported into jj: {why}"
            ))
            .hint("`jj git import`, then `jj new COMMIT` with the last of these commits, does without the import")
        })?;
    }
    Ok(())
}

/// Records jj's current operation, to mark that jj does not know the commits that follow.
pub(crate) async fn record_operation(
    setup: &Setup,
    tree: &WorkTree,
    emit: &mut Emitter<'_>,
) -> anyhow::Result<()> {
    let real = tree.repo.real();
    if !real.is_jj_alone() || real.unimported_since().is_some() {
        return Ok(());
    }
    let jj = Jj::of(setup, real, emit);
    let operation = jj
        .run_jj(&["op", "log", "--no-graph", "--limit=1", "-T", "id"])
        .await;
    let operation =
        operation.map_err(|why| anyhow::anyhow!("jj does not report its position: {why}"))?;
    Ok(real.mark_unimported(operation.trim())?)
}

/// Makes jj import the run's commits. Afterwards its working-copy commit is on top of them. Existing jj
/// commits, bookmarks and operations stay. A cancelled run skips this in a repository that git can read
/// directly, because the next jj command imports the commits there by itself.
pub(crate) async fn import_commits(setup: &Setup, tree: &mut WorkTree, emit: &mut Emitter<'_>) {
    let real = tree.repo.real();
    let has_commits = tree.repo.base() != setup.start_commit();
    let told = match real.unimported_since() {
        Some(since) => Jj::of(setup, real, emit).import_head(real, &since).await,
        None => {
            let is_cancelled = setup.cancel.beyond_deadline().reason().is_some();
            let has_jj = || tree.repo.started_with_jj() && has_jj(real);
            if !has_commits || is_cancelled || !has_jj() {
                return;
            }
            let jj = Jj::of(setup, real, emit);
            jj.run_jj(&["git", "import"]).await.map(drop)
        }
    };
    if let Err(why) = told {
        emit.warn(format!(
            "the commits were not imported into jj; the next jj command or run imports them: {why}"
        ));
    }
    for what in setup.violations() {
        emit.warn(what);
    }
    let (raw, _) = tree.snapshot(emit);
    if raw.is_some_and(|raw| head_of(&raw) != tree.repo.base()) {
        emit.warn("HEAD is no longer at the run's last commit: jj moved it");
    }
}

/// How to start jj.
struct Jj<'a> {
    cwd: &'a Path,
    env: Vec<(OsString, OsString)>,
    sandbox: Option<Policy>,
    cancel: Cancel,
}

impl<'a> Jj<'a> {
    fn of(setup: &Setup, real: &'a Real, emit: &mut Emitter<'_>) -> Self {
        Self {
            cwd: real.work_tree(),
            env: setup.environment(&CONFIGURATION.map(str::to_owned), emit),
            sandbox: setup.isolation.policy(Purpose::Setup),
            // If only Sprag can import the commits into jj, do it even after a first signal. A second
            // one stops it.
            cancel: match real.is_jj_alone() {
                true => Cancel::new(),
                false => setup.cancel.beyond_deadline(),
            },
        }
    }

    /// Makes jj import HEAD in a repository without a `.git` of its own. The working-copy change is
    /// rebased onto HEAD and keeps its files. `since` is jj's operation before the run.
    async fn import_head(&self, real: &Real, since: &str) -> std::result::Result<(), String> {
        let told = |error: GitError| error.to_string();
        let Some(head) = real.head_commit().map_err(told)? else {
            return real.mark_imported().map_err(told);
        };
        let of = |revision: &str| {
            ["log", "--no-graph", "-r", revision, "-T", "commit_id"].map(str::to_owned)
        };
        let before = self.run_jj(&of("@")).await?;
        let parent = self.run_jj(&of("@-")).await?;
        if parent != head {
            let passes = real.name_head(TEMPORARY_BOOKMARK).map_err(told)?;
            self.run_jj(&["git", "import"]).await?;
            // Commits that the agent made with jj: their content is in the files, and so either in the
            // run's commits or in the open work.
            let own = format!("(::@- ~ ::{head}) ~ at_operation({since}, all())");
            let args = ["log", "--no-graph", "-r", &own, "-T", "commit_id"];
            if !self.run_jj(&args).await?.is_empty() {
                let args = [
                    "squash",
                    "--from",
                    &own,
                    "--into",
                    "@",
                    "--use-destination-message",
                ];
                self.rewrite(&args).await?;
            }
            self.rewrite(&["rebase", "-r", "@", "--onto", &head])
                .await?;
            // A merge would lose the open work's content where it reverts or changes committed lines.
            self.rewrite(&["restore", "--from", &before, "--into", "@"])
                .await?;
            if passes {
                self.run_jj(&["bookmark", "delete", TEMPORARY_BOOKMARK])
                    .await?;
                self.run_jj(&["git", "export"]).await?;
            }
        }
        real.mark_imported().map_err(told)
    }

    /// Runs a jj command that rewrites only commits of this run and the open work, whatever the configuration calls
    /// immutable.
    async fn rewrite(&self, args: &[&str]) -> std::result::Result<String, String> {
        self.run_jj(&[args, &["--ignore-immutable"]].concat()).await
    }

    /// Runs a jj command and returns its standard output.
    async fn run_jj(&self, args: &[impl AsRef<str>]) -> std::result::Result<String, String> {
        let quiet = ["--no-pager", "--color=never", "--quiet"];
        let given = args.iter().map(AsRef::as_ref);
        let spec = CommandSpec {
            program: "jj".into(),
            args: quiet.into_iter().chain(given).map(Into::into).collect(),
            cwd: self.cwd.to_path_buf(),
            env: self.env.clone(),
            stdin: Input::Null,
            limits: Limits {
                timeout: Some(TIMEOUT),
                ..Limits::default()
            },
            sandbox: self.sandbox.clone(),
        };
        let mut printed = Vec::new();
        let mut said = HeadTail::new(0, READ);
        let ended = run(
            &spec,
            &self.cancel,
            &mut |stream, chunk: &[u8]| match stream {
                StreamKind::Stdout if printed.len() < READ => printed.extend_from_slice(chunk),
                StreamKind::Stdout => {}
                StreamKind::Stderr => said.push(chunk),
            },
        )
        .await;
        if matches!(ended.exit, Exit::Code(0)) {
            return Ok(String::from_utf8_lossy(&printed).into_owned());
        }
        let said = clean_text(&said.into_parts().1);
        let said: String = said.trim().chars().take(SHOWN).collect();
        let first = args
            .iter()
            .take(2)
            .map(AsRef::as_ref)
            .collect::<Vec<&str>>();
        Err(format!(
            "`jj {}` ended with {}: {said}",
            first.join(" "),
            ended.exit
        ))
    }
}
