//! One verification: runs the checks, or reuses their result for the same tree.

use crate::checks::{self, CheckContext, Progress, Verification};
use crate::domain::attempt::{Interruption, Observation, VerificationEnded};
use crate::domain::checks::judges::names_dependencies;
use crate::domain::checks::verdict::Verdict;
use crate::domain::checks::{Reported, read_matchers};
use crate::domain::event::EventKind;
use crate::domain::settings::{AgentCommits, SignalPolicy};
use crate::domain::snapshot::Snapshot;
use crate::domain::text::left_running;
use crate::error::{Error, machine_fault, with_causes};
use crate::git::{GitError, RawSnapshot, display_path};
use crate::run::begin::isolation::Purpose;
use crate::run::merge::merging;
use crate::run::state::accounts::CheckMemory;
use crate::run::state::layout::RunFile;
use crate::run::state::parts::{Parts, TaskRun};
use crate::run::state::work_tree::WorkTree;
use crate::run::steps::check_changes::named_at_start;
use crate::run::steps::hold::tell_ignored;
use crate::run::steps::setup_commands::install_again;
use crate::run::steps::signals::signals_of;
use crate::settings::TaskConfig;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::sync::Arc;

/// The name under which setup commands fail that run again.
const SETUP: &str = "setup";

/// Verifies the current tree with the checks of the task. If they pass, issues the permit to commit it.
///
/// # Errors
/// When the run's own state cannot be written.
pub async fn verify(parts: &mut Parts<'_>, run: &mut TaskRun<'_>) -> anyhow::Result<Observation> {
    let (raw_before, before) = parts.tree.as_checked_out(&mut parts.emit)?;
    let memory = &parts.accounts.checks;
    let recalled = before
        .tree()
        .and_then(|now| memory.recall(now, &run.config));
    // A recalled result applies to exactly the tree that it was looked up by.
    let (verification, raw_after, after) = if let Some(verification) = recalled.cloned() {
        let reason = "the checks already ran on this exact tree".to_owned();
        parts.emit.emit(EventKind::VerificationSkipped { reason });
        (verification, raw_before.clone(), before.clone())
    } else {
        let raw_before = raw_before.as_deref();
        // What checks create themselves is removed if it was changed since, so that none passes because of what the
        // agent wrote there.
        parts.tree.drop_altered_artifacts()?;
        if raw_before.is_some() {
            parts.tree.repo.change().remove_compiled_python()?;
        }
        let verification = check_work(parts, &run.config, raw_before).await?;
        if verification.verdict == Verdict::Aborted {
            let by = parts.setup.interruption().unwrap_or(Interruption::Deadline);
            return Ok(Observation::interrupted(by));
        }
        let (raw_after, after) = parts.tree.collect_artifacts(raw_before, &mut parts.emit);
        if let Some(raw) = raw_after.as_deref() {
            tell_ignored(parts, run, raw);
        }
        (verification, raw_after, after)
    };
    let memory = &mut parts.accounts.checks;
    judge(memory, run, &before, &after, &verification);
    let changes = |raw| parts.tree.check_changes(raw, &run.config).tests;
    let tests = raw_after.as_deref().map(changes).unwrap_or_default();
    let is_asked = run.config.settings.signals != SignalPolicy::Off;
    let is_looked_at = is_asked && verification.verdict == Verdict::Passed;
    let raw_passed = raw_after.as_deref().filter(|_| is_looked_at);
    let signals = raw_passed.map(|raw| signals_of(&parts.tree.repo, raw));
    let raw_before = raw_before.as_deref();
    let reported = reported(&parts.tree, raw_before, &run.config, &verification);
    let both = raw_before.zip(raw_after.as_deref());
    let altered = both.map_or_else(Vec::new, |(before, after)| after.changed_since(before));
    Ok(Observation::Verified(Arc::new(VerificationEnded {
        failed: verification.failed(),
        reported: reported.into(),
        tests: tests.into(),
        signals: signals.unwrap_or_default(),
        altered: altered.iter().map(|path| display_path(path)).collect(),
        errors: verification.errors(),
        failing_checks: verification.failing_checks(),
        hints: hints(parts, raw_before, &verification),
        failing_output: verification.failing_output,
        verdict: verification.verdict,
        before,
        after,
        elapsed_ms: parts.emit.elapsed_ms(),
    })))
}

/// Hints about the failures of a verification.
fn hints(parts: &Parts<'_>, raw: Option<&RawSnapshot>, verification: &Verification) -> Vec<String> {
    let mut hints = verification.hints();
    let changed = raw.map(RawSnapshot::dirty_paths).unwrap_or_default();
    let mut changed = changed.iter().map(|path| display_path(path));
    let is_setup = !parts.setup.config.setup.is_empty();
    let manifest = changed.find(|path| is_setup && names_dependencies(path));
    if let Some(manifest) = manifest.filter(|_| verification.verdict != Verdict::Passed) {
        hints.insert(0, format!("`{manifest}` changed, and the checks ran with what was installed before. If they need other versions now, install these in the work tree."));
    }
    hints
}

/// What the checks reported about their tests.
pub(crate) fn reported(
    tree: &WorkTree,
    raw: Option<&RawSnapshot>,
    config: &TaskConfig,
    verification: &Verification,
) -> Reported {
    let runs_tests = |name: &str| {
        let check = config.checks.iter().find(|check| check.name == name);
        raw.zip(check)
            .is_some_and(|(raw, check)| named_at_start(&tree.repo, raw, [check]).runs_tests)
    };
    Reported::of(&verification.results, runs_tests)
}

/// Sets the permit and remembers the result of the checks. Both apply to one tree, so neither exists if
/// the checks changed what they judged.
pub(crate) fn judge(
    memory: &mut CheckMemory,
    run: &mut TaskRun<'_>,
    before: &Snapshot,
    after: &Snapshot,
    verification: &Verification,
) {
    let one_tree = before.same_as(after) == Some(true);
    let tree = after.tree().filter(|_| one_tree);
    run.permit = tree.and_then(|tree| verification.permit(tree));
    let failed = matches!(verification.verdict, Verdict::Failed { .. });
    run.failed_on = tree.filter(|_| failed).cloned();
    if let Some(tree) = tree {
        memory.remember(&run.config, tree, verification);
    }
}

/// Runs the checks on the current work. If that is the result of a merge, the rules for merges are
/// checked first, and no check runs until they are met.
///
/// # Errors
/// When the run's own state cannot be written.
pub(crate) async fn check_work(
    parts: &mut Parts<'_>,
    config: &TaskConfig,
    before: Option<&RawSnapshot>,
) -> anyhow::Result<Verification> {
    let merging = parts.tree.merging.as_ref().zip(before);
    let problem = merging.and_then(|(merging, raw)| merging.problem(&parts.tree.repo, raw));
    let mut failed = problem.map(|problem| (merging::CHECK, problem));
    if failed.is_none() && !parts.setup.config.setup.is_empty() {
        let changed = parts.tree.changed_dependencies(true);
        if !changed.is_empty() {
            let why = install_again(parts, &changed).await?;
            failed = why.map(|why| (SETUP, why));
        }
    }
    let Some((name, problem)) = failed else {
        return run_checks(parts, config, before).await;
    };
    let failed = Verification::failed_before(name, &problem);
    for result in &failed.results {
        let (name, check) = (result.name.clone(), result.kind);
        let ended = EventKind::CheckEnded(Box::new(result.clone()));
        parts.emit.emit(EventKind::CheckStarted { name, check });
        parts.emit.emit(ended);
    }
    Ok(failed)
}

/// Runs these checks on the current tree, of which `before` is the snapshot, and undoes what the code that they execute
/// does to refs. Afterwards the caller calls [`WorkTree::collect_artifacts`].
///
/// # Errors
/// When the run's own state cannot be written, or HEAD or another ref cannot be moved.
pub async fn run_checks(
    parts: &mut Parts<'_>,
    config: &TaskConfig,
    before: Option<&RawSnapshot>,
) -> anyhow::Result<Verification> {
    let Some(now) = before.filter(|_| !config.checks.is_empty()) else {
        return run_all(parts, config, before).await;
    };
    // jj moves HEAD itself.
    if parts.tree.repo.started_with_jj() {
        let mark = parts.tree.repo.mark_turn().map_err(unmoved)?;
        let ran = run_all(parts, config, before).await;
        let undone = parts.tree.repo.change().undo_moved_refs(&mark, "a check");
        for warning in undone.map_err(unmoved)? {
            parts.warn_once(&warning);
        }
        return ran;
    }
    // A check that asks git what has changed would find nothing of what the agent has committed.
    let hides = config.settings.agent_commits != AgentCommits::Accept;
    let repo = parts.tree.repo.change();
    let head = repo.head_before_checks(&now.known, hides);
    let head = head.map_err(unmoved)?;
    let ran = run_all(parts, config, before).await;
    // First, since it undoes a configuration on which git would wait.
    let left = parts.tree.repo.change().head_after_checks(&head);
    parts.tree.repo.index_after_checks().map_err(unmoved)?;
    for warning in left.map_err(unmoved)? {
        parts.warn_once(&warning);
    }
    ran
}

/// Something else than Sprag keeps git from moving HEAD, such as a lock that a check has left.
fn unmoved(error: GitError) -> anyhow::Error {
    let error = anyhow::Error::from(error);
    if machine_fault(&error).is_some() {
        return error;
    }
    let message = format!(
        "HEAD or another ref could not be moved for the checks: {}",
        with_causes(&error)
    );
    let remedy = "remove the cause, then continue with sprag run --resume";
    Error::environment(message).hint(remedy).into()
}

async fn run_all(
    parts: &mut Parts<'_>,
    config: &TaskConfig,
    before: Option<&RawSnapshot>,
) -> anyhow::Result<Verification> {
    parts.tree.save_untracked(before)?;
    let are_as_made = parts.tree.changed_dependencies(false).is_empty();
    let altered = parts.tree.uncommitted.altered(&parts.tree.repo);
    let passed = &config.settings.verify_env;
    let mut env = (parts.setup).environment(Purpose::Check, passed, &mut parts.emit);
    if parts.accounts.checks.rebuilds {
        let own = env.iter().position(|(name, _)| name == "MAKEFLAGS");
        let mut flags = OsString::from("-B ");
        flags.extend(own.map(|at| env.swap_remove(at).1));
        env.push(("MAKEFLAGS".into(), flags));
    }
    load_matchers(parts, config)?;
    let mut directories: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut asks_git = false;
    let mut needing_commit = BTreeSet::new();
    for check in &config.checks {
        let named = before.map(|raw| named_at_start(&parts.tree.repo, raw, [check]));
        let named = named.unwrap_or_default();
        asks_git |= named.words.contains("git") || named.needs_commit();
        needing_commit.extend(named.needs_commit().then(|| check.name.clone()));
        let found = named.directories.into_iter().collect();
        directories.insert(check.name.clone(), found);
    }
    let mut as_committed = BTreeMap::new();
    if let Some(raw) = before.filter(|_| asks_git && !parts.tree.repo.started_with_jj()) {
        let needs_commit = !needing_commit.is_empty();
        let repo = parts.tree.repo.change();
        match repo.index_before_checks(raw, needs_commit) {
            Ok(staged) => {
                env.extend(staged.iter().map(|staged| staged.store.clone()));
                let variable = staged.and_then(|staged| staged.as_committed);
                let each = needing_commit.into_iter().zip(std::iter::repeat(variable));
                as_committed.extend(each.filter_map(|(name, variable)| Some((name, variable?))));
            }
            Err(error) => parts.warn(format!(
                "the work could not be staged for the checks: {}",
                with_causes(&error.into())
            )),
        }
    }
    let around = CheckContext {
        work_tree: parts.tree.repo.real().work_tree(),
        env: &env,
        as_committed,
        sandbox: parts.setup.isolation.policy(Purpose::Check),
        own_home: &parts.accounts.checks.own_home,
        cancel: &parts.setup.cancel,
        run_dir: parts.setup.run_dir.root(),
        log: |number, check| RunFile::CheckLog(number, check).path().into_owned(),
        redactor: &parts.setup.redactor,
        matchers: &parts.accounts.checks.matchers,
        directories: &directories,
    };
    let emit = &mut parts.emit;
    let mut on_progress = |progress: Progress<'_>| match progress {
        Progress::Started(check) => emit.emit(EventKind::CheckStarted {
            name: check.name.clone(),
            check: check.kind,
        }),
        Progress::Ended(result) => {
            emit.emit(EventKind::CheckEnded(Box::new(result.clone())));
        }
        Progress::Leaked(check, count) => {
            let left = left_running(count as u64);
            emit.warn(format!("check {} left {left}", check.name));
        }
        Progress::Odd(check, what) => {
            emit.warn(format!("check {}: {what}", check.name));
        }
        Progress::LogLost(why) => emit.warn(format!("a check's log is incomplete: {why}")),
    };
    let begun = &mut parts.accounts.checks.begun;
    let ran = checks::run_checks(&config.checks, &around, begun, &mut on_progress).await;
    parts.setup.report_denied_hosts(&mut parts.emit);
    if let Some(refusal) = parts.setup.isolation.refusal(&ran.failing_output) {
        parts.warn(refusal);
    }
    parts.tree.record(|uncommitted, repo| {
        uncommitted.take_changes(repo, are_as_made, &altered);
        Ok(())
    })?;
    Ok(ran)
}

/// Loads the problem matchers that the checks name, as they were when the run first read them. A copy is
/// saved, so that neither the agent's commits nor a resume change them.
fn load_matchers(parts: &mut Parts<'_>, config: &TaskConfig) -> anyhow::Result<()> {
    let named = config.checks.iter();
    for file in named.filter_map(|check| check.problem_matcher.clone()) {
        if parts.accounts.checks.matchers.contains_key(&file) {
            continue;
        }
        let digest = blake3::hash(file.as_bytes()).to_hex();
        let copy = RunFile::Matcher(&digest);
        let bytes = match parts.setup.run_dir.read(copy) {
            Some(bytes) => Some(bytes),
            None => parts.tree.repo.base_file(file.as_bytes())?,
        };
        let mut matchers = Vec::new();
        if let Some(bytes) = &bytes {
            parts.setup.run_dir.write(copy, bytes)?;
            let read = read_matchers(&file, bytes);
            read.warnings.into_iter().for_each(|one| parts.warn(one));
            matchers = read.matchers;
        } else {
            parts.warn(format!(
                "{file}: the start commit of the run has no such problem matcher file"
            ));
        }
        parts.accounts.checks.matchers.insert(file, matchers);
    }
    Ok(())
}
