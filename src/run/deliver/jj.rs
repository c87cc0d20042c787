//! Support for repositories that jj and git share. Sprag uses git. At the end of a run it makes jj
//! import the commits, so that every tool that reads jj's view sees them.

use crate::context::Context;
use crate::domain::outcome::short_id;
use crate::error::{Error, Result};
use crate::git::{GitError, Real};
use crate::plain_file;
use crate::process::environment::environment;
use crate::process::{
    Cancel, CommandSpec, Exit, HeadTail, Input, Limits, StreamKind, clean_text, run,
};
use crate::run::begin::isolation::{Isolation, Purpose, with_temporary};
use crate::run::state::emitter::Emitter;
use crate::run::state::setup::Setup;
use crate::run::state::work_tree::{WorkTree, head_of};
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

/// How many operations are looked at for their workspaces.
const MAX_OPERATIONS: &str = "--limit=1000";

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
    if let Some(since) = real.unimported_since() {
        let allowed = environment(&context.env, &CONFIGURATION.map(str::to_owned));
        let jj = Jj {
            cwd: real.work_tree(),
            env: with_temporary(allowed.variables, isolation, Purpose::Setup),
            sandbox: isolation.policy(Purpose::Setup),
            cancel: Cancel::new(),
        };
        // Since that run died, jj may have been used by somebody else than its agent.
        jj.import_head(real, &since, false).await.map_err(|why| {
            let why = with_import_remedy(real, &since, &why);
            let message = "the commits of an earlier run could not be imported into jj";
            Error::environment(format!("{message}: {why}"))
        })?;
        if !is_resumed {
            real.follow_jj()
                .map_err(|error| Error::environment(error.to_string()))?;
        }
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
    let operation = ["op", "log", "--no-graph", "--limit=1", "-T", "id"];
    let operation = jj.run_jj(&operation).await;
    let operation =
        operation.map_err(|why| anyhow::anyhow!("jj does not report its position: {why}"))?;
    Ok(real.mark_unimported(operation.trim())?)
}

/// The number of commits that the agent has made with jj in a repository without a `.git`, where git does not see them:
/// those below the working-copy change that the run did not find there.
pub(crate) async fn commits_by_agent(
    setup: &Setup,
    tree: &WorkTree,
    emit: &mut Emitter<'_>,
) -> usize {
    let real = tree.repo.real();
    let head = real.head_commit().ok().flatten();
    if !real.is_jj_alone() || head.is_none() {
        return 0;
    }
    let at_start = match real.unimported_since() {
        Some(since) => format!("at_operation({since}, @-)"),
        None => head.unwrap_or_default(),
    };
    let made = format!("::@- ~ ::{at_start}");
    let jj = Jj::of(setup, real, emit);
    match jj.ask(&log_of(&made, COMMIT_LINE)).await {
        Ok(ids) => ids.lines().count(),
        Err(why) => {
            emit.warn(format!(
                "whether the agent made commits with jj is not known: {why}"
            ));
            0
        }
    }
}

/// Makes jj import the run's commits. Afterwards its working-copy commit is on top of them. Existing jj
/// commits, bookmarks and operations stay. A cancelled run skips this in a repository that git can read
/// directly, because the next jj command imports the commits there by itself.
pub(crate) async fn import_commits(setup: &Setup, tree: &mut WorkTree, emit: &mut Emitter<'_>) {
    let real = tree.repo.real();
    let has_commits = tree.repo.base() != setup.start_commit();
    let told = match real.unimported_since() {
        Some(since) => {
            let jj = Jj::of(setup, real, emit);
            let told = jj.import_head(real, &since, true).await;
            told.map_err(|why| with_import_remedy(real, &since, &why))
        }
        None => {
            let is_cancelled = setup.cancel.beyond_deadline().reason().is_some();
            let has_jj = || tree.repo.started_with_jj() && has_jj(real);
            if !has_commits || is_cancelled || !has_jj() {
                return;
            }
            let jj = Jj::of(setup, real, emit);
            let told = jj.run_jj(&["git", "import"]).await;
            told.map(|_| None)
                .map_err(|why| format!("{why}; the next jj command does it"))
        }
    };
    match told {
        Ok(warning) => warning.into_iter().for_each(|what| emit.warn(what)),
        Err(why) => emit.warn(format!("the commits were not imported into jj: {why}")),
    }
    for what in setup.violations() {
        emit.warn(what);
    }
    let (raw, _) = tree.snapshot(emit);
    if raw.is_some_and(|raw| head_of(&raw) != tree.repo.base()) {
        emit.warn("HEAD is no longer at the run's last commit: jj moved it");
    }
}

/// Why an import failed, with the commands that do without it.
fn with_import_remedy(real: &Real, since: &str, why: &str) -> String {
    let head = real.head_commit().ok().flatten().unwrap_or_default();
    let (since, head) = (short_id(since), short_id(&head));
    format!(
        "{why}; `jj op restore {since}`, `jj git import` and `jj new {head}` do it, but undo what was done with jj since \
         the run began, and take what is not committed out of the work tree: copy it elsewhere first"
    )
}

/// Who has used jj since an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Users {
    Nobody,
    /// Only whoever works in this work tree: the agent, as far as is known.
    ThisWorkspace,
    /// Somebody else too, or too many operations to know.
    Others,
}

impl Users {
    /// What is said of an import after which jj is not as before the run. `before` is the last operation before the
    /// import.
    fn warning(self, before: &str) -> Option<String> {
        match self {
            Self::Nobody => None,
            Self::ThisWorkspace => Some(format!(
                "what was done with jj during the run was undone, and the files are as they were left; jj's operation \
                 {before} still has it (`jj --at-op {before} log`)"
            )),
            Self::Others => Some(format!(
                "jj was used in other workspaces too during the run, or it cannot be told where, so nothing that was \
                 done with jj was undone; `jj op log` shows it up to operation {before}"
            )),
        }
    }
}

/// The template that prints the id of each commit on a line of its own.
const COMMIT_LINE: &str = "commit_id ++ \"\\n\"";

/// The command that prints each commit with a template.
const fn log_of<'a>(revisions: &'a str, template: &'a str) -> [&'a str; 6] {
    ["log", "--no-graph", "-r", revisions, "-T", template]
}

/// The command that prints the ids of commits.
const fn ids_of(revisions: &str) -> [&str; 6] {
    log_of(revisions, "commit_id")
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
            env: setup.environment(Purpose::Setup, &CONFIGURATION.map(str::to_owned), emit),
            sandbox: setup.isolation.policy(Purpose::Setup),
            // If only Sprag can import the commits into jj, do it even after a first signal. A second
            // one stops it.
            cancel: if real.is_jj_alone() {
                Cancel::new()
            } else {
                setup.cancel.beyond_deadline()
            },
        }
    }

    /// Makes jj import HEAD in a repository without a `.git` of its own. `since` is jj's operation before the run.
    /// With `undoes`, what the agent has done with jj since then is undone. The working-copy change is rebased onto
    /// HEAD. It keeps the files, which no command touches: their content is that of the last snapshot. All of it
    /// becomes part of jj's operation log at once. Returns a warning if jj is not as before the run.
    async fn import_head(
        &self,
        real: &Real,
        since: &str,
        undoes: bool,
    ) -> Result<Option<String>, String> {
        let told = |error: GitError| error.to_string();
        let Some(head) = real.head_commit().map_err(told)? else {
            real.mark_imported().map_err(told)?;
            return Ok(None);
        };
        let users = match self.users_since(since).await {
            Users::ThisWorkspace if !undoes => Users::Others,
            users => users,
        };
        let last = ["op", "log", "--no-graph", "--limit=1", "-T", "id.short()"];
        let last = self.ask(&last).await?;
        let before = self.run_jj(&ids_of("@")).await?;
        let branch = real.branch_of_head().map_err(told)?;
        let branch = branch.filter(|_| users == Users::Others);
        let mut moved = None;
        if let Some(branch) = &branch {
            moved = self.moved(branch, since).await?;
        }
        let mut pending = Pending {
            jj: self,
            last: None,
        };
        if users == Users::ThisWorkspace {
            pending.add(&["op", "restore", since]).await?;
        }
        let is_there = pending.ask(&ids_of("@-")).await? == head;
        let mut passes = false;
        if !is_there {
            passes = real.name_head(TEMPORARY_BOOKMARK).map_err(told)?;
            pending.add(&["git", "import"]).await?;
            pending.rebase(&head, since, users).await?;
            if passes {
                pending
                    .add(&["bookmark", "delete", TEMPORARY_BOOKMARK])
                    .await?;
            }
        }
        if !is_there || users != Users::Nobody {
            // A merge would lose the open work's content where it reverts or changes committed lines.
            pending
                .add(&["restore", "--from", &before, "--into", "@"])
                .await?;
        }
        if let Some(branch) = &branch {
            let to = pending.place_of(moved.as_deref(), &head).await?;
            let args = ["bookmark", "set", branch, "-r", &to, "--allow-backwards"];
            pending.add(&args).await?;
        }
        pending.integrate().await?;
        let below = format!("present({head}) & ::@");
        if self.ask(&ids_of(&below)).await?.is_empty() {
            return Err("jj's working copy is not on top of them".to_owned());
        }
        if passes {
            self.ask(&["git", "export"]).await?;
        }
        real.mark_imported().map_err(told)?;
        Ok(users.warning(&last))
    }

    /// The change to which somebody has moved a bookmark since an operation.
    async fn moved(&self, branch: &str, since: &str) -> Result<Option<String>, String> {
        let bookmark = format!("bookmarks(exact:{branch:?})");
        let moved = format!("{bookmark} ~ at_operation({since}, {bookmark})");
        let args = log_of(&moved, "change_id ++ \"\\n\"");
        Ok(only_line(&self.ask(&args).await?))
    }

    /// Who has used jj since an operation. What cannot be determined, as with an older jj, counts as others.
    async fn users_since(&self, since: &str) -> Users {
        let template = "id.short(32) ++ \" \" ++ workspace_name ++ if(snapshot, \" \") ++ \"\\n\"";
        let log = ["op", "log", "--no-graph", MAX_OPERATIONS, "-T", template];
        let here = "if(target.current_working_copy(), name ++ \"\\n\")";
        let (Ok(log), Ok(here)) = (
            self.ask(&log).await,
            self.ask(&["workspace", "list", "-T", here]).await,
        ) else {
            return Users::Others;
        };
        let is_here = |name: &str| here.lines().any(|own| Some(own) == name.strip_suffix('@'));
        let mut users = Users::Nobody;
        for line in log.lines() {
            match line.split_once(' ') {
                Some((id, _)) if since.starts_with(id) => return users,
                Some((_, name)) if is_here(name) => users = Users::ThisWorkspace,
                // A snapshot changes nothing but the content of the working-copy change.
                Some((_, name)) if is_here(name.trim_end()) => {}
                _ => return Users::Others,
            }
        }
        Users::Others
    }

    /// Runs a jj command that neither reads nor writes the files.
    async fn ask(&self, args: &[&str]) -> Result<String, String> {
        self.run_jj(&[args, &["--ignore-working-copy"]].concat())
            .await
    }

    /// Runs a jj command and returns its standard output.
    async fn run_jj(&self, args: &[&str]) -> Result<String, String> {
        let (printed, _) = self.call(args, &["--quiet"]).await?;
        Ok(printed)
    }

    /// Runs a jj command and returns its standard output and the end of its standard error.
    async fn call(&self, args: &[&str], options: &[&str]) -> Result<(String, String), String> {
        let fixed = ["--no-pager", "--color=never"].iter().chain(options);
        let spec = CommandSpec {
            program: "jj".into(),
            args: fixed.chain(args).map(Into::into).collect(),
            cwd: self.cwd.to_path_buf(),
            env: self.env.clone(),
            stdin: Input::Null,
            limits: Limits::within(TIMEOUT),
            sandbox: self.sandbox.clone(),
        };
        let mut printed = Vec::new();
        let mut said = HeadTail::new(0, READ);
        let mut keep = |stream, chunk: &[u8]| match stream {
            StreamKind::Stdout if printed.len() < READ => printed.extend_from_slice(chunk),
            StreamKind::Stdout => {}
            StreamKind::Stderr => said.push(chunk),
        };
        let ended = run(&spec, &self.cancel, &mut keep).await;
        let said = clean_text(&said.into_parts().1);
        if matches!(ended.exit, Exit::Code(0)) {
            return Ok((String::from_utf8_lossy(&printed).into_owned(), said));
        }
        let said: String = said.trim().chars().take(SHOWN).collect();
        let first = args[..args.len().min(2)].join(" ");
        Err(format!("`jj {first}` ended with {}: {said}", ended.exit))
    }
}

/// Operations of jj that are not part of its log yet, so that nobody sees them before all are there.
struct Pending<'a> {
    jj: &'a Jj<'a>,
    last: Option<String>,
}

impl<'a> Pending<'a> {
    fn at(&self) -> impl Iterator<Item = &str> {
        let last = self.last.iter();
        last.flat_map(|operation| ["--at-op", operation])
    }

    /// Adds the operation of a command, which neither reads nor writes the files. It rewrites only commits of this
    /// run and the open work, whatever the configuration calls immutable.
    async fn add(&mut self, args: &[&str]) -> Result<(), String> {
        let options = [
            "--no-integrate-operation",
            "--ignore-working-copy",
            "--ignore-immutable",
        ];
        let args = self.at().chain(args.iter().copied());
        let args: Vec<&str> = args.chain(options).collect();
        let (_, said) = self.jj.call(&args, &[]).await?;
        // A command that changes nothing has no operation.
        self.last = operation_in(&said).or_else(|| self.last.take());
        Ok(())
    }

    async fn ask(&self, args: &[&str]) -> Result<String, String> {
        let args: Vec<&str> = self.at().chain(args.iter().copied()).collect();
        self.jj.ask(&args).await
    }

    /// Rebases the working-copy change onto the run's commits. If jj was used by others than the agent, also the
    /// commits below it that are newer than the operation `since`, as far as the run's commits lack their content.
    async fn rebase(&mut self, head: &str, since: &str, users: Users) -> Result<(), String> {
        if users == Users::Others {
            let last = self.last.clone();
            let newer = format!("roots(((::@ ~ ::{head}) ~ at_operation({since}, all())) | @)");
            let args = ["rebase", "-s", &newer, "--onto", head, "--skip-emptied"];
            self.add(&args).await?;
            let broken = format!("conflicts() & {head}..@-");
            if self.ask(&ids_of(&broken)).await?.is_empty() {
                return Ok(());
            }
            // They stay as they are, beside the run's commits.
            self.last = last;
        }
        self.add(&["rebase", "-r", "@", "--onto", head]).await
    }

    /// The commit that a change became, if that is below the working-copy change and on `head`. Otherwise `head`.
    async fn place_of(&self, change: Option<&str>, head: &str) -> Result<String, String> {
        let Some(change) = change else {
            return Ok(head.to_owned());
        };
        let place = format!("present({change}) & {head}::@");
        let found = only_line(&self.ask(&log_of(&place, COMMIT_LINE)).await?);
        Ok(found.unwrap_or_else(|| head.to_owned()))
    }

    async fn integrate(self) -> Result<(), String> {
        if let Some(last) = &self.last {
            self.jj.ask(&["op", "integrate", last]).await?;
        }
        Ok(())
    }
}

fn only_line(printed: &str) -> Option<String> {
    let mut lines = printed.lines();
    lines
        .next()
        .filter(|_| lines.next().is_none())
        .map(str::to_owned)
}

/// The id of the operation that jj says it has not added to its log.
fn operation_in(said: &str) -> Option<String> {
    let mut lines = said.lines().rev();
    let line = lines.find(|line| line.contains("--no-integrate-operation"))?;
    let id = line.split_whitespace().next_back()?;
    let is_id = id.len() >= 8 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_id.then(|| id.to_owned())
}

#[cfg(test)]
mod tests {
    use super::operation_in;

    #[test]
    fn the_operation_of_a_command_is_named_at_the_end_of_its_line() {
        let said = "bookmark: main@git [updated] tracked\nOperation left uncommitted because --no-integrate-operation was requested: d4e22fd9d9d5\n";
        assert_eq!(operation_in(said).as_deref(), Some("d4e22fd9d9d5"));
        assert_eq!(operation_in("Nothing changed.\n"), None);
        assert_eq!(operation_in("--no-integrate-operation: none"), None);
    }
}
