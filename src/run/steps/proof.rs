//! Runs the checks again to find out what a verdict is worth.

use crate::checks::Verification;
use crate::domain::attempt::{
    Interruption, Observation, Proof, ProofLine, ProofResult, ProofWord, Proved,
};
use crate::domain::checks::tests_changed::is_test;
use crate::domain::checks::verdict::Verdict;
use crate::domain::checks::{Reported, ToolKind, tools};
use crate::domain::event::EventKind;
use crate::domain::settings::ProveNewTests;
use crate::domain::snapshot::Snapshot;
use crate::git::{RawSnapshot, SwapError, TreeId, display_path, display_paths};
use crate::plain_file;
use crate::run::state::accounts::CheckMemory;
use crate::run::state::emitter::Emitter;
use crate::run::state::parts::Parts;
use crate::run::state::task::TaskRun;
use crate::run::state::work_tree::WorkTree;
use crate::run::steps::check_changes::CheckChanges;
use crate::run::steps::verify::{check_work, judge, run_checks};
use crate::settings::TaskConfig;
use anyhow::Context;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

/// Runs the checks on the tree that a proof is about, restores the work tree, and returns the result.
///
/// # Errors
/// When the run's own state cannot be written, or the work tree cannot be restored.
pub async fn prove(
    parts: &mut Parts<'_>,
    run: &mut TaskRun<'_>,
    proof: Proof,
) -> anyhow::Result<Observation> {
    let began = begin(&mut parts.emit, proof);
    let fingerprint = parts.last_snapshot().1.tree().cloned();
    // A merge starts from a tree with conflict markers, which cannot be a baseline.
    let known =
        known_baseline(&parts.accounts.checks, run, proof).filter(|_| parts.tree.merging.is_none());
    let result = match known {
        Some(known) => Some(known),
        None => on_its_tree(parts, run, proof).await?,
    };
    let Some((result, reported, only_with)) = result else {
        let by = parts.setup.interruption().unwrap_or(Interruption::Deadline);
        return Ok(Observation::interrupted(by));
    };
    let elapsed_ms = parts.emit.elapsed_ms();
    let took = elapsed_ms.saturating_sub(began);
    let proved = Proved {
        proof,
        tree: fingerprint,
        result,
        reported,
        only_with,
        elapsed_ms,
    };
    let result = run.journal.state.proofs.weighed(&proved);
    let line = line_of(proof, &result, run.journal.state.attempt(), took);
    let is_told = run.config.settings.prove_new_tests == ProveNewTests::Warn;
    if is_told && proof == Proof::NewTests && line.result != ProofWord::Failed {
        let tests = &run.journal.state.tests;
        let tests = if tests.added.is_empty() {
            tests.changed.join(", ")
        } else {
            tests.added.join(", ")
        };
        parts
            .emit
            .warn(format!("task {}: {} ({tests})", run.task.id, line.says()));
    }
    parts.emit.emit(EventKind::ProofEnded(Box::new(line)));
    Ok(Observation::Proved(Arc::new(proved)))
}

/// Emits the start of a proof. Returns its time on the run's clock.
fn begin(emit: &mut Emitter<'_>, proof: Proof) -> u64 {
    let began = emit.elapsed_ms();
    emit.proving(Some(proof));
    emit.emit(EventKind::ProofStarted { proof });
    began
}

/// The event line of a proof.
fn line_of(proof: Proof, result: &ProofResult, attempt: u32, elapsed_ms: u64) -> ProofLine {
    ProofLine {
        proof,
        result: result.word(),
        details: result.details(),
        attempt,
        elapsed_ms,
    }
}

/// The result on the tree at the start of the task, if this task or an earlier one ran the checks on it.
fn known_baseline(memory: &CheckMemory, run: &TaskRun<'_>, proof: Proof) -> Option<Found> {
    let start = run.journal.state.task_start.as_ref()?.tree()?;
    let known = memory.recall(start, &run.config);
    known.filter(|_| proof == Proof::Baseline).map(found)
}

/// The result of a proof, and what the checks reported about their tests.
type Found = (ProofResult, Arc<Reported>, Option<String>);

fn found(verification: &Verification) -> Found {
    // Whether a check was to report more matters only for the work.
    let reported = Reported::of(&verification.results, |_| false);
    (result_of(verification), reported.into(), None)
}

/// Runs the checks, even if a result for the tree is known. `None` if the run was stopped.
async fn on_its_tree(
    parts: &mut Parts<'_>,
    run: &mut TaskRun<'_>,
    proof: Proof,
) -> anyhow::Result<Option<Found>> {
    let unknown = |why: String| Ok(Some((ProofResult::Unknown { why }, Arc::default(), None)));
    let (raw, before) = parts.snapshot();
    let Some(raw) = raw else {
        return unknown("the work tree could not be read".into());
    };
    let changes = parts.tree.check_changes(&raw, &run.config);
    if let Some(why) = cannot_prove(run, proof, &changes) {
        return unknown(why);
    }
    let seen = Seen {
        raw: raw.as_ref(),
        before: &before,
    };
    let Ran {
        verification,
        left,
        rewritten,
        only_with,
    } = match on_tree_of(parts, &run.config, seen, proof, &changes).await? {
        Ok(ran) => ran,
        Err(why) => return unknown(why),
    };
    if verification.verdict == Verdict::Aborted {
        return Ok(None);
    }
    if proof == Proof::OldTests && !rewritten.is_empty() {
        match is_rewritten_at_start(parts, &run.config, seen, &rewritten).await? {
            Some(true) => {}
            Some(false) => {
                let paths: Vec<Vec<u8>> = rewritten.into_keys().collect();
                let paths = display_paths(&paths);
                return unknown(format!("the checks changed the original files: {paths}"));
            }
            None => return Ok(None),
        }
    }
    if proof == Proof::Flake {
        judge(
            &mut parts.accounts.checks,
            run,
            &before,
            &left,
            &verification,
        );
    }
    match left.same_as(&before) {
        Some(true) if proof == Proof::NewTests => {
            because_of_new_tests(parts, run, seen, found(&verification)).await
        }
        Some(true) => {
            let (result, reported, _) = found(&verification);
            Ok(Some((result, reported, only_with)))
        }
        _ => unknown("the checks changed what they checked".into()),
    }
}

/// The work that the proof is about: its files, and the tree with the state of the repository.
#[derive(Clone, Copy)]
struct Seen<'a> {
    raw: &'a RawSnapshot,
    before: &'a Snapshot,
}

/// Runs the checks on the tree that a proof is about. The inner error says why they did not run.
async fn on_tree_of(
    parts: &mut Parts<'_>,
    config: &TaskConfig,
    seen: Seen<'_>,
    proof: Proof,
    changes: &CheckChanges,
) -> anyhow::Result<Result<Ran, String>> {
    let raw = seen.raw;
    let other = match proof {
        Proof::OldTests => return on_old_tests(parts, config, seen, changes).await,
        Proof::Flake => parts.tree.repo.write_snapshot_tree(raw).map_err(Into::into),
        Proof::Baseline => Ok(start_of(&parts.tree)),
        Proof::NewTests => with_new_tests(&parts.tree, raw, changes),
    };
    let other = other.map(|other| (other, ExtraPaths::new()));
    on_other_tree(parts, config, seen, proof, other).await
}

/// Runs the checks on the work with what judged it before. New tests may need what judges now, and sources may need the
/// new tests, so that there are two such trees: either that passes is enough.
async fn on_old_tests(
    parts: &mut Parts<'_>,
    config: &TaskConfig,
    seen: Seen<'_>,
    changes: &CheckChanges,
) -> anyhow::Result<Result<Ran, String>> {
    let proof = Proof::OldTests;
    let passed = |ran: &Result<Ran, String>| {
        ran.as_ref()
            .is_ok_and(|ran| ran.verification.verdict == Verdict::Passed)
    };
    let all = BTreeSet::new();
    if !changes.tests.left.is_empty() {
        let now = parts
            .tree
            .repo
            .write_snapshot_tree(seen.raw)
            .map_err(Into::into);
        let now = now.map(|now| (now, changes.away.clone()));
        let ran = on_other_tree(parts, config, seen, proof, now).await?;
        // A new test may need what no commit contains, and the original tests do not.
        if !changes.tests.are_rewritten() || !passed(&ran) {
            return Ok(ran);
        }
    }
    parts.accounts.checks.rebuilds = changes.are_others_than_tests();
    let ran = on_old_tree(parts, config, seen, changes, &all, false).await;
    let ran = match ran {
        Ok(ran) if !passed(&ran) && !changes.new_tests.is_empty() && !is_stopped(&ran) => {
            let again = on_old_tree(parts, config, seen, changes, &all, true).await;
            again.map(|again| {
                if passed(&again) || is_stopped(&again) {
                    again
                } else {
                    ran
                }
            })
        }
        ran => ran,
    };
    let ran = match ran {
        Ok(Ok(mut ran)) if finds_only_what_was_restored(&ran.verification, changes) => {
            ran.verification.verdict = Verdict::Passed;
            Ok(Ok(ran))
        }
        Ok(Ok(mut ran)) if matches!(ran.verification.verdict, Verdict::Failed { .. }) => {
            ran.only_with = needed(parts, config, seen, changes).await?;
            Ok(Ok(ran))
        }
        ran => ran,
    };
    parts.accounts.checks.rebuilds = false;
    ran
}

/// Whether only linters failed, and all of their findings are in files that were put back: they say nothing of the work.
fn finds_only_what_was_restored(verification: &Verification, changes: &CheckChanges) -> bool {
    let Verdict::Failed { .. } = verification.verdict else {
        return false;
    };
    let restored: BTreeSet<String> = changes
        .old
        .iter()
        .map(|(path, _)| display_path(path))
        .collect();
    let is_lint = |name: &str| tools().any(|(tool, kind)| tool == name && kind == ToolKind::Lint);
    let mut failed = verification
        .results
        .iter()
        .filter(|result| result.outcome.is_failure());
    failed.all(|result| {
        let is_there =
            |path: &Option<String>| path.as_ref().is_some_and(|path| restored.contains(path));
        let mut found = result.diagnostics.iter();
        result.failing_tests.is_empty()
            && result.counts.failed.is_none_or(|failed| failed == 0)
            && !result.diagnostics.is_empty()
            && found.all(|finding| is_lint(&finding.source) && is_there(&finding.path))
    })
}

fn is_stopped(ran: &Result<Ran, String>) -> bool {
    ran.as_ref()
        .is_ok_and(|ran| ran.verification.verdict == Verdict::Aborted)
}

/// The most runs of the checks that look for the file on which a pass depends.
const MAX_SEARCHES: u32 = 4;

/// The changed file on which the pass depends, if it is found: the first ones are left as the work has them, in halves.
async fn needed(
    parts: &mut Parts<'_>,
    config: &TaskConfig,
    seen: Seen<'_>,
    changes: &CheckChanges,
) -> anyhow::Result<Option<String>> {
    let files: Vec<&Vec<u8>> = changes.old.iter().map(|(path, _)| path).collect();
    // With as many files as `fails` it fails, and with as many as `passes` it passes.
    let (mut fails, mut passes) = (0, files.len());
    for _ in 0..MAX_SEARCHES {
        if passes - fails <= 1 {
            break;
        }
        let middle = usize::midpoint(fails, passes);
        let kept = files[..middle].iter().map(|path| (*path).clone()).collect();
        match on_old_tree(parts, config, seen, changes, &kept, true).await? {
            Ok(ran) if ran.verification.verdict == Verdict::Passed => passes = middle,
            Ok(ran) if matches!(ran.verification.verdict, Verdict::Failed { .. }) => fails = middle,
            _ => return Ok(None),
        }
    }
    let found = files.get(fails).filter(|_| passes - fails == 1);
    Ok(found.map(|path| display_path(path)))
}

/// Runs the checks on the work with what judged it before, except these files. New tests that cannot rule the others may
/// stay.
async fn on_old_tree(
    parts: &mut Parts<'_>,
    config: &TaskConfig,
    seen: Seen<'_>,
    changes: &CheckChanges,
    kept: &BTreeSet<Vec<u8>>,
    keeps_new: bool,
) -> anyhow::Result<Result<Ran, String>> {
    let other = old_tree(&parts.tree, seen.raw, changes, kept, keeps_new);
    let other = other.map(|other| (other, changes.away.clone()));
    on_other_tree(parts, config, seen, Proof::OldTests, other).await
}

fn old_tree(
    tree: &WorkTree,
    raw: &RawSnapshot,
    changes: &CheckChanges,
    kept: &BTreeSet<Vec<u8>>,
    keeps_new: bool,
) -> Result<TreeId, SwapError> {
    let mut all: BTreeMap<&TreeId, BTreeSet<Vec<u8>>> = BTreeMap::new();
    let start = start_of(tree);
    let base = tree.repo.base_tree();
    for (path, from) in changes.old.iter().filter(|(path, _)| !kept.contains(path)) {
        // A merge starts from another tree than the base.
        let from = if *from == base { &start } else { from };
        all.entry(from).or_default().insert(path.clone());
    }
    // What lies beside the work and has only the name of a test may be a part of it, which the tests judge.
    let is_apart = |path: &&Vec<u8>| {
        let path = display_path(path);
        let dir = path.rsplit_once('/').map_or("", |(dir, _)| dir);
        changes.are_others_than_tests() || is_test(&format!("{dir}/"))
    };
    if !keeps_new {
        let apart = changes.new_tests.iter().filter(is_apart).cloned();
        all.entry(&start).or_default().extend(apart);
    }
    let mut composed = tree.repo.write_snapshot_tree(raw)?;
    for (from, mut paths) in all {
        let mixed = changes
            .mixed
            .iter()
            .filter(|(path, _)| paths.contains(*path));
        let mixed: BTreeMap<Vec<u8>, Vec<u8>> = mixed
            .map(|(path, text)| (path.clone(), text.clone()))
            .collect();
        paths.retain(|path| !mixed.contains_key(path));
        composed = tree.repo.compose_tree(&composed, from, &paths, &mixed)?;
    }
    Ok(composed)
}

/// The tree on which the task started, to which a merge belongs.
fn start_of(tree: &WorkTree) -> TreeId {
    let merging = tree.merging.as_ref();
    merging.map_or_else(|| tree.repo.base_tree(), |merging| merging.before.clone())
}

/// The tree on which the task started, with the tests of the work.
fn with_new_tests(
    tree: &WorkTree,
    raw: &RawSnapshot,
    changes: &CheckChanges,
) -> Result<TreeId, SwapError> {
    let now = tree.repo.write_snapshot_tree(raw)?;
    let old = changes.old.iter().map(|(path, _)| path);
    let paths = old.chain(&changes.new_tests).cloned().collect();
    Ok(tree
        .repo
        .compose_tree(&start_of(tree), &now, &paths, &BTreeMap::new())?)
}

/// Whether the checks make the same of the original files on the tree on which the task started, as formatters
/// do. Then it is not the work that changes them. `None` if the run was stopped.
async fn is_rewritten_at_start(
    parts: &mut Parts<'_>,
    config: &TaskConfig,
    seen: Seen<'_>,
    rewritten: &Contents,
) -> anyhow::Result<Option<bool>> {
    let start = Ok((parts.tree.repo.base_tree(), ExtraPaths::new()));
    Ok(
        match on_other_tree(parts, config, seen, Proof::Baseline, start).await? {
            Ok(ran) if ran.verification.verdict == Verdict::Aborted => None,
            Ok(ran) => Some(
                rewritten
                    .iter()
                    .all(|(path, content)| ran.rewritten.get(path) == Some(content)),
            ),
            Err(_) => Some(false),
        },
    )
}

/// What a run with the new tests shows of them. Unless their own files name the failures, this takes the result on the
/// tree on which the task started, where something may have failed before. `None` if the run was stopped.
async fn because_of_new_tests(
    parts: &mut Parts<'_>,
    run: &TaskRun<'_>,
    seen: Seen<'_>,
    found: Found,
) -> anyhow::Result<Option<Found>> {
    let (result, reported, _) = found;
    let state = &run.journal.state;
    let added = if state.tests.added.is_empty() {
        &state.tests.changed
    } else {
        &state.tests.added
    };
    if result.word() != ProofWord::Failed || state.are_red_tests_changed() {
        return Ok(Some((result, reported, None)));
    }
    if let Some(own) = result.failures_in(added) {
        return Ok(Some((own, reported, None)));
    }
    let known =
        known_baseline(&parts.accounts.checks, run, Proof::Baseline).map(|(before, ..)| before);
    let before = match known.or_else(|| state.proofs.baseline.clone()) {
        Some(before) => before,
        None => {
            let start = Ok((parts.tree.repo.base_tree(), ExtraPaths::new()));
            match on_other_tree(parts, &run.config, seen, Proof::Baseline, start).await? {
                Ok(ran) if ran.verification.verdict == Verdict::Aborted => return Ok(None),
                Ok(ran) => result_of(&ran.verification),
                Err(why) => ProofResult::Unknown { why },
            }
        }
    };
    let result = result.because_of_new_tests(&before);
    Ok(Some((result, reported, None)))
}

/// The result of these checks on the tree before a move to commits; `None` if the run was stopped.
///
/// # Errors
/// As [`prove`].
pub(crate) async fn baseline_of_commits(
    parts: &mut Parts<'_>,
    config: &TaskConfig,
    start: &TreeId,
) -> anyhow::Result<Option<ProofResult>> {
    let proof = Proof::Baseline;
    let began = begin(&mut parts.emit, proof);
    let result = match parts.snapshot() {
        (Some(raw), before) => {
            let seen = Seen {
                raw: raw.as_ref(),
                before: &before,
            };
            let other = Ok((start.clone(), ExtraPaths::new()));
            let ran = on_other_tree(parts, config, seen, proof, other).await?;
            match ran {
                Ok(ran) if ran.verification.verdict == Verdict::Aborted => None,
                Ok(ran) => Some(result_of(&ran.verification)),
                Err(why) => Some(ProofResult::Unknown { why }),
            }
        }
        (None, _) => Some(ProofResult::Unknown {
            why: "the work tree could not be read".into(),
        }),
    };
    if let Some(result) = &result {
        let took = parts.emit.elapsed_ms().saturating_sub(began);
        let line = line_of(proof, result, 1, took);
        parts.emit.emit(EventKind::ProofEnded(Box::new(line)));
    }
    parts.emit.proving(None);
    Ok(result)
}

/// Paths in the work tree that neither its tree nor the other tree contains.
type ExtraPaths = BTreeSet<Vec<u8>>;

/// Digests of files, by path.
type Contents = BTreeMap<Vec<u8>, [u8; 32]>;

/// A run of the checks on another tree.
struct Ran {
    verification: Verification,
    /// The state that the checks left.
    left: Snapshot,
    /// What the checks made of the files that differ on the other tree, as far as they changed them.
    rewritten: Contents,
    /// The file that has to be as the work has it, if it was looked for and found.
    only_with: Option<String>,
}

/// Runs the checks on another tree in place of the work, then restores the work. The inner error says why they
/// did not run.
async fn on_other_tree(
    parts: &mut Parts<'_>,
    config: &TaskConfig,
    seen: Seen<'_>,
    proof: Proof,
    other: Result<(TreeId, ExtraPaths), SwapError>,
) -> anyhow::Result<Result<Ran, String>> {
    let Seen { raw, before } = seen;
    let put = other.and_then(|(other, away)| {
        let differing = parts.tree.repo.change().swap_to(raw, &other, &away)?;
        renew_declaring(parts.tree.repo.real().work_tree(), &differing);
        forget_compiled(&parts.tree, differing.iter());
        Ok(contents(&parts.tree, &differing))
    });
    let ran = match &put {
        Ok(_) if proof == Proof::Flake => Some(check_work(parts, config, Some(raw)).await),
        Ok(_) if proof == Proof::Baseline => {
            let limited = within_baseline_limit(config);
            Some(run_checks(parts, &limited, Some(raw)).await)
        }
        Ok(_) => Some(run_checks(parts, config, Some(raw)).await),
        Err(_) => None,
    };
    let rewritten = put
        .as_ref()
        .map(|there| {
            let mut now = contents(&parts.tree, there.keys());
            now.retain(|path, content| there.get(path) != Some(content));
            now
        })
        .unwrap_or_default();
    let left = match (&ran, proof) {
        (Some(Ok(_)), Proof::Flake) => parts.tree.collect_artifacts(Some(raw), &mut parts.emit).1,
        _ => before.clone(),
    };
    // The work is restored in every case.
    let exempt = parts.tree.exempt();
    let back = parts.tree.repo.change().swap_back(&exempt);
    back.context("`sprag run --resume` tries again to restore the work")?;
    forget_compiled(&parts.tree, put.iter().flat_map(Contents::keys));
    parts.tree.collect_artifacts(Some(raw), &mut parts.emit);
    Ok(match (ran, put) {
        (Some(ran), _) => Ok(Ran {
            verification: ran?,
            left,
            rewritten,
            only_with: None,
        }),
        (None, Err(error)) => Err(error.to_string()),
        (None, Ok(_)) => Err("the checks were not run".into()),
    })
}

/// The configuration with the checks limited to the time that the run on the start tree may take.
fn within_baseline_limit(config: &TaskConfig) -> TaskConfig {
    let limit = config.settings.baseline_limit.as_millis();
    let limit = u64::try_from(limit).unwrap_or(u64::MAX);
    let mut limited = config.clone();
    for check in &mut limited.checks {
        check.timeout_ms = check.timeout_ms.min(limit);
    }
    limited
}

/// Gives the sources that may declare these modules of Rust a new time. Cargo compares the times of the files that the
/// last build has read, so that it would not see that a declaration finds another file now.
fn renew_declaring(work_tree: &Path, differing: &[Vec<u8>]) {
    let is_source = |path: &Path| path.extension().is_some_and(|ending| ending == "rs");
    let mut declaring = BTreeSet::new();
    for path in differing
        .iter()
        .map(|path| Path::new(OsStr::from_bytes(path)))
    {
        let Some(mut dir) = path.parent().filter(|_| is_source(path)) else {
            continue;
        };
        if path.file_stem().is_some_and(|stem| stem == "mod") {
            dir = dir.parent().unwrap_or(dir);
        }
        let entries = fs::read_dir(work_tree.join(dir)).into_iter().flatten();
        declaring.extend(entries.flatten().map(|entry| entry.path()));
        declaring.insert(work_tree.join(dir).with_extension("rs"));
    }
    for path in declaring.iter().filter(|path| is_source(path)) {
        // A file that is not there declares nothing.
        let _ = plain_file::open(path).and_then(|file| file.set_modified(SystemTime::now()));
    }
}

/// Removes what Python has compiled of these sources. Python compares only their size and the second of their time, which
/// may be the same for the source of another tree.
fn forget_compiled<'p>(tree: &WorkTree, differing: impl Iterator<Item = &'p Vec<u8>>) {
    let top = tree.repo.real().work_tree();
    for path in differing.map(|path| Path::new(OsStr::from_bytes(path))) {
        let (Some(parent), Some(stem)) = (path.parent(), path.file_stem()) else {
            continue;
        };
        let cache = parent.join("__pycache__");
        let is_source = path.extension().is_some_and(|ending| ending == "py");
        if !is_source || tree.repo.has_tracked_files(&cache.to_string_lossy()) {
            continue;
        }
        let is_compiled = |path: &Path| {
            let ends = path.extension().is_some_and(|ending| ending == "pyc");
            let name = path.file_name().map_or(&[][..], OsStr::as_bytes);
            let rest = name.strip_prefix(stem.as_bytes());
            ends && rest.is_some_and(|rest| rest.starts_with(b"."))
        };
        let is_directory = fs::symlink_metadata(top.join(&cache)).is_ok_and(|meta| meta.is_dir());
        let entries = is_directory
            .then(|| fs::read_dir(top.join(&cache)))
            .into_iter()
            .flatten()
            .flatten()
            .flatten();
        for compiled in entries.map(|entry| entry.path()) {
            if is_compiled(&compiled) {
                // What cannot be removed is as it was before this run.
                let _ = fs::remove_file(&compiled);
            }
        }
    }
}

fn contents<'p>(tree: &WorkTree, paths: impl IntoIterator<Item = &'p Vec<u8>>) -> Contents {
    let paths: Vec<&Vec<u8>> = paths.into_iter().collect();
    let contents = tree.repo.contents_of(&paths);
    paths.into_iter().cloned().zip(contents).collect()
}

/// Why there is no tree to prove against: only committed content can replace the work.
fn cannot_prove(run: &TaskRun<'_>, proof: Proof, changes: &CheckChanges) -> Option<String> {
    let is_about_work = match proof {
        Proof::Flake => true,
        Proof::OldTests => !changes.tests.are_rewritten(),
        Proof::Baseline | Proof::NewTests => false,
    };
    let unknown = match proof {
        Proof::OldTests => changes.unknown.clone(),
        Proof::Baseline | Proof::Flake | Proof::NewTests => None,
    };
    match &run.journal.state.task_start {
        _ if is_about_work => unknown,
        Some(Snapshot::Known(start)) if !start.dirty => unknown,
        Some(Snapshot::Known(_)) => {
            Some("the task started with changes that no commit has".to_owned())
        }
        _ => Some("the tree on which the task started could not be read".to_owned()),
    }
}

fn result_of(verification: &Verification) -> ProofResult {
    ProofResult::of_verdict(&verification.verdict, verification.failed())
}
