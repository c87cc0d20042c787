//! Runs the checks again to find out what a verdict is worth.

use crate::checks::Verification;
use crate::domain::attempt::{
    Interruption, Observation, Proof, ProofLine, ProofResult, ProofWord, Proved, TaskState,
};
use crate::domain::checks::Reported;
use crate::domain::checks::tests_changed::is_test;
use crate::domain::checks::verdict::Verdict;
use crate::domain::duration::millis;
use crate::domain::event::EventKind;
use crate::domain::settings::ProveNewTests;
use crate::domain::snapshot::Snapshot;
use crate::git::{RawSnapshot, SwapError, TreeId, display_path, display_paths};
use crate::run::state::accounts::CheckMemory;
use crate::run::state::parts::{Parts, TaskRun};
use crate::run::state::work_tree::WorkTree;
use crate::run::steps::check_changes::CheckChanges;
use crate::run::steps::swapped_files::{Contents, contents, forget_compiled, renew_declaring};
use crate::run::steps::verify::{check_work, judge, run_checks};
use crate::settings::TaskConfig;
use anyhow::Context;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Why a run of the checks gives no result.
enum NoResult {
    /// The run was stopped.
    Stopped,
    /// What they would show cannot be known, for this reason.
    Unknown(String),
    /// The run's own state cannot be written, or the work tree cannot be restored.
    Failed(anyhow::Error),
}

impl From<anyhow::Error> for NoResult {
    fn from(error: anyhow::Error) -> Self {
        Self::Failed(error)
    }
}

impl From<SwapError> for NoResult {
    fn from(error: SwapError) -> Self {
        Self::Unknown(error.to_string())
    }
}

/// Runs the checks on the tree that a proof is about, restores the work tree, and returns the result.
///
/// # Errors
/// When the run's own state cannot be written, or the work tree cannot be restored.
pub async fn prove(
    parts: &mut Parts<'_>,
    run: &mut TaskRun<'_>,
    proof: Proof,
) -> anyhow::Result<Observation> {
    let began = parts.emit.begin_proof(proof);
    let fingerprint = parts.last_snapshot().1.tree().cloned();
    // A merge starts from a tree with conflict markers, which cannot be a baseline.
    let known =
        known_baseline(&parts.accounts.checks, run, proof).filter(|_| parts.tree.merging.is_none());
    let found = match known {
        Some(known) => Ok(known),
        None => on_its_tree(parts, run, proof).await,
    };
    let (result, reported, only_with) = match found {
        Ok(found) => found,
        Err(NoResult::Unknown(why)) => (ProofResult::Unknown { why }, Arc::default(), None),
        Err(NoResult::Stopped) => {
            let by = parts.setup.interruption().unwrap_or(Interruption::Deadline);
            return Ok(Observation::interrupted(by));
        }
        Err(NoResult::Failed(error)) => return Err(error),
    };
    let proved = Proved {
        proof,
        tree: fingerprint,
        result,
        reported,
        only_with,
        elapsed_ms: parts.emit.elapsed_ms(),
    };
    let state = &run.journal.state;
    let line = ProofLine {
        attempt: state.attempt(),
        elapsed_ms: proved.elapsed_ms.saturating_sub(began),
        ..state.proofs.weighed(&proved).line(proof)
    };
    let is_told = run.config.settings.prove_new_tests == ProveNewTests::Warn;
    if is_told && proof == Proof::NewTests && line.result != ProofWord::Failed {
        let (tests, says) = (new_tests(state).join(", "), line.says());
        parts.warn(format!("task {}: {says} ({tests})", run.task.id));
    }
    parts.emit.emit(EventKind::ProofEnded(Box::new(line)));
    Ok(Observation::Proved(Arc::new(proved)))
}

/// The files with the new tests of a task.
fn new_tests(state: &TaskState) -> &[String] {
    if state.tests.added.is_empty() {
        &state.tests.changed
    } else {
        &state.tests.added
    }
}

/// The result on the tree at the start of the task, if this task or an earlier one ran the checks on it.
fn known_baseline(memory: &CheckMemory, run: &TaskRun<'_>, proof: Proof) -> Option<Found> {
    let start = run.journal.state.task_start.as_ref()?.tree()?;
    let known = memory.recall(start, &run.config);
    known.filter(|_| proof == Proof::Baseline).map(found)
}

/// The result of a proof, what the checks reported about their tests, and the file that has to be as the work has it.
type Found = (ProofResult, Arc<Reported>, Option<String>);

fn found(verification: &Verification) -> Found {
    // Whether a check was to report more matters only for the work.
    let reported = Reported::of(&verification.results, |_| false);
    (result_of(verification), reported.into(), None)
}

/// Runs the checks, even if a result for the tree is known.
async fn on_its_tree(
    parts: &mut Parts<'_>,
    run: &mut TaskRun<'_>,
    proof: Proof,
) -> Result<Found, NoResult> {
    let (raw, before) = parts.snapshot();
    let raw = raw.ok_or_else(|| NoResult::Unknown(UNREAD.into()))?;
    let changes = parts.tree.check_changes(&raw, &run.config);
    if let Some(why) = cannot_prove(run, proof, &changes) {
        return Err(NoResult::Unknown(why));
    }
    let mut trial = Trial {
        parts,
        config: &run.config,
        raw: &raw,
        changes: &changes,
    };
    let ran = trial.on_tree_of(proof).await?;
    if proof == Proof::OldTests
        && !ran.rewritten.is_empty()
        && !trial.is_rewritten_at_start(&ran.rewritten).await?
    {
        let paths: Vec<Vec<u8>> = ran.rewritten.into_keys().collect();
        let paths = display_paths(&paths);
        let why = format!("the checks changed the original files: {paths}");
        return Err(NoResult::Unknown(why));
    }
    let (mut result, reported, _) = found(&ran.verification);
    if proof == Proof::NewTests {
        result = trial.because_of_new_tests(run, result).await?;
    }
    if proof == Proof::Flake {
        let memory = &mut parts.accounts.checks;
        judge(memory, run, &before, &ran.left, &ran.verification);
        if ran.left.same_as(&before) != Some(true) {
            let why = "the checks changed what they checked";
            return Err(NoResult::Unknown(why.into()));
        }
    }
    Ok((result, reported, ran.only_with))
}

/// The work of a task, on which or instead of which the checks run again.
struct Trial<'a, 'e> {
    parts: &'a mut Parts<'e>,
    config: &'a TaskConfig,
    raw: &'a RawSnapshot,
    changes: &'a CheckChanges,
}

const UNREAD: &str = "the work tree could not be read";

impl Trial<'_, '_> {
    /// Runs the checks on the tree that a proof is about.
    async fn on_tree_of(&mut self, proof: Proof) -> Result<Ran, NoResult> {
        let tree = &self.parts.tree;
        let other = match proof {
            Proof::OldTests => return self.on_old_tests().await,
            Proof::Flake => self.work()?,
            Proof::Baseline => start_of(tree),
            Proof::NewTests => {
                let old = self.changes.old.iter().map(|(path, _)| path);
                let paths = old.chain(&self.changes.new_tests).cloned().collect();
                let nothing = BTreeMap::new();
                let start = start_of(tree);
                let (work, repo) = (self.work()?, &tree.repo);
                let composed = repo.compose_tree(&start, &work, &paths, &nothing);
                composed.map_err(SwapError::from)?
            }
        };
        self.on_other_tree(proof, &other, &BTreeSet::new()).await
    }

    /// The tree of the work.
    fn work(&self) -> Result<TreeId, SwapError> {
        Ok(self.parts.tree.repo.write_snapshot_tree(self.raw)?)
    }

    /// Runs the checks on the work with what judged it before.
    async fn on_old_tests(&mut self) -> Result<Ran, NoResult> {
        let changes = self.changes;
        if !changes.tests.left.is_empty() {
            let (now, away) = (self.work()?, &changes.away);
            let ran = self.on_other_tree(Proof::OldTests, &now, away).await?;
            // A new test may need what no commit contains, and the original tests do not.
            if !changes.tests.are_rewritten() || !ran.has_passed() {
                return Ok(ran);
            }
        }
        self.parts.accounts.checks.rebuilds = changes.are_others_than_tests();
        let ran = self.on_either_old_tree().await;
        self.parts.accounts.checks.rebuilds = false;
        ran
    }

    /// New tests may need what judges now, and sources may need the new tests, so that there are two trees with what
    /// judged before: either that passes is enough.
    async fn on_either_old_tree(&mut self) -> Result<Ran, NoResult> {
        let all = BTreeSet::new();
        let first = self.on_old_tree(&all, false).await;
        let has_failed = match &first {
            Ok(ran) => !ran.has_passed(),
            Err(why) => matches!(why, NoResult::Unknown(_)),
        };
        let mut ran = if has_failed && !self.changes.new_tests.is_empty() {
            match self.on_old_tree(&all, true).await {
                Ok(again) if again.has_passed() => again,
                Ok(_) | Err(NoResult::Unknown(_)) => first?,
                stopped => return stopped,
            }
        } else {
            first?
        };
        if finds_only_what_was_restored(&ran.verification, self.changes) {
            ran.verification.verdict = Verdict::Passed;
        } else if ran.has_failed() {
            ran.only_with = self.needed().await?;
        }
        Ok(ran)
    }

    /// The changed file on which the pass depends, if it is found: the first ones are left as the work has them, in
    /// halves.
    async fn needed(&mut self) -> anyhow::Result<Option<String>> {
        let files: Vec<&Vec<u8>> = self.changes.old.iter().map(|(path, _)| path).collect();
        // With as many files as `fails` it fails, and with as many as `passes` it passes.
        let (mut fails, mut passes) = (0, files.len());
        for _ in 0..MAX_SEARCHES {
            if passes - fails <= 1 {
                break;
            }
            let middle = usize::midpoint(fails, passes);
            let kept = files[..middle].iter().map(|path| (*path).clone()).collect();
            match self.on_old_tree(&kept, true).await {
                Ok(ran) if ran.has_passed() => passes = middle,
                Ok(ran) if ran.has_failed() => fails = middle,
                Err(NoResult::Failed(error)) => return Err(error),
                _ => return Ok(None),
            }
        }
        let found = files.get(fails).filter(|_| passes - fails == 1);
        Ok(found.map(|path| display_path(path)))
    }

    /// Runs the checks on the work with what judged it before, except these files. New tests that cannot rule the
    /// others may stay.
    async fn on_old_tree(
        &mut self,
        kept: &BTreeSet<Vec<u8>>,
        keeps_new: bool,
    ) -> Result<Ran, NoResult> {
        let (other, away) = (self.old_tree(kept, keeps_new)?, &self.changes.away);
        self.on_other_tree(Proof::OldTests, &other, away).await
    }

    fn old_tree(&self, kept: &BTreeSet<Vec<u8>>, keeps_new: bool) -> Result<TreeId, SwapError> {
        let (tree, changes) = (&self.parts.tree, self.changes);
        let mut all: BTreeMap<&TreeId, BTreeSet<Vec<u8>>> = BTreeMap::new();
        let (start, base) = (start_of(tree), tree.repo.base_tree());
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
        let mut composed = self.work()?;
        for (from, mut paths) in all {
            let mut mixed = changes.mixed.clone();
            mixed.retain(|path, _| paths.contains(path));
            paths.retain(|path| !mixed.contains_key(path));
            composed = tree.repo.compose_tree(&composed, from, &paths, &mixed)?;
        }
        Ok(composed)
    }

    /// Whether the checks make the same of the original files on the tree on which the task started, as formatters
    /// do. Then it is not the work that changes them.
    async fn is_rewritten_at_start(&mut self, rewritten: &Contents) -> Result<bool, NoResult> {
        let (start, nothing) = (self.parts.tree.repo.base_tree(), BTreeSet::new());
        match self.on_other_tree(Proof::Baseline, &start, &nothing).await {
            Ok(ran) => {
                let mut all = rewritten.iter();
                Ok(all.all(|(path, content)| ran.rewritten.get(path) == Some(content)))
            }
            Err(NoResult::Unknown(_)) => Ok(false),
            Err(stopped) => Err(stopped),
        }
    }

    /// What a run with the new tests shows of them. Unless their own files name the failures, this takes the result
    /// on the tree on which the task started, where something may have failed before.
    async fn because_of_new_tests(
        &mut self,
        run: &TaskRun<'_>,
        result: ProofResult,
    ) -> Result<ProofResult, NoResult> {
        let state = &run.journal.state;
        if result.word() != ProofWord::Failed || state.are_red_tests_changed() {
            return Ok(result);
        }
        if let Some(own) = result.failures_in(new_tests(state)) {
            return Ok(own);
        }
        let known = known_baseline(&self.parts.accounts.checks, run, Proof::Baseline);
        let known = known.map(|(before, ..)| before);
        let before = match known.or_else(|| state.proofs.baseline.clone()) {
            Some(before) => before,
            None => self.baseline_on(&self.parts.tree.repo.base_tree()).await?,
        };
        Ok(result.because_of_new_tests(&before))
    }

    /// The result of the checks on the tree before the work.
    async fn baseline_on(&mut self, start: &TreeId) -> Result<ProofResult, NoResult> {
        let nothing = BTreeSet::new();
        match self.on_other_tree(Proof::Baseline, start, &nothing).await {
            Ok(ran) => Ok(result_of(&ran.verification)),
            Err(NoResult::Unknown(why)) => Ok(ProofResult::Unknown { why }),
            Err(stopped) => Err(stopped),
        }
    }

    /// Runs the checks on another tree in place of the work, without the files in `away`, then restores the work.
    async fn on_other_tree(
        &mut self,
        proof: Proof,
        other: &TreeId,
        away: &BTreeSet<Vec<u8>>,
    ) -> Result<Ran, NoResult> {
        let put = self.parts.tree.repo.change().swap_to(self.raw, other, away);
        let tree = &self.parts.tree;
        let put = put.map(|differing| {
            renew_declaring(tree.repo.real().work_tree(), &differing);
            forget_compiled(tree, differing.iter());
            contents(tree, &differing)
        });
        let ran = match &put {
            Ok(there) => Some(self.checks_on(proof, there).await),
            Err(_) => None,
        };
        // The work is restored in every case.
        forget_compiled(&self.parts.tree, put.iter().flat_map(Contents::keys));
        let exempt = self.parts.tree.exempt();
        let back = self.parts.tree.repo.swap_back(&exempt);
        back.context("`sprag run --resume` tries again to restore the work")?;
        let restored = self.parts.last_snapshot();
        let (tree, emit) = (&mut self.parts.tree, &mut self.parts.emit);
        tree.collect_artifacts_of(restored, Some(self.raw), emit);
        put?;
        let Some(ran) = ran.transpose()? else {
            return Err(NoResult::Unknown("the checks were not run".into()));
        };
        if ran.verification.verdict == Verdict::Aborted {
            return Err(NoResult::Stopped);
        }
        Ok(ran)
    }

    /// Runs the checks on the tree that is in place, whose files that differ from the work are as in `there`.
    async fn checks_on(&mut self, proof: Proof, there: &Contents) -> anyhow::Result<Ran> {
        let (parts, config, raw) = (&mut *self.parts, self.config, Some(self.raw));
        let mut left = Snapshot::Known(Arc::new(self.raw.known.clone()));
        let mut verification = match proof {
            Proof::Flake => check_work(parts, config, raw).await?,
            Proof::Baseline => {
                let mut limited = config.clone();
                let limit = millis(config.settings.baseline_limit);
                let timeouts = limited.checks.iter_mut().map(|check| &mut check.timeout_ms);
                timeouts.for_each(|timeout| *timeout = limit.min(*timeout));
                run_checks(parts, &limited, raw).await?
            }
            Proof::OldTests | Proof::NewTests => run_checks(parts, config, raw).await?,
        };
        let changed = |tree: &WorkTree| {
            let mut now = contents(tree, there.keys());
            now.retain(|path, content| there.get(path) != Some(content));
            now
        };
        let rewritten = changed(&parts.tree);
        // A linter may fail because it has mended what it was given.
        let has_failed = matches!(verification.verdict, Verdict::Failed { .. });
        if proof == Proof::OldTests && has_failed && !rewritten.is_empty() {
            let again = run_checks(parts, config, raw).await;
            if changed(&parts.tree) == rewritten {
                verification = again?;
            }
        }
        if proof == Proof::Flake {
            left = parts.tree.collect_artifacts(raw, &mut parts.emit).1;
        }
        Ok(Ran {
            verification,
            left,
            rewritten,
            only_with: None,
        })
    }
}

/// Whether only linters failed, and all of their findings are in files that were put back: they say nothing of the work.
fn finds_only_what_was_restored(verification: &Verification, changes: &CheckChanges) -> bool {
    let Verdict::Failed { .. } = verification.verdict else {
        return false;
    };
    let restored = changes.old.iter().map(|(path, _)| display_path(path));
    let restored: BTreeSet<String> = restored.collect();
    let results = verification.results.iter();
    let mut failed = results.filter(|result| result.outcome.is_failure());
    failed.all(|result| {
        let is_there =
            |path: &Option<String>| path.as_ref().is_some_and(|path| restored.contains(path));
        let mut found = result.diagnostics.iter();
        result.failing_tests.is_empty()
            && result.counts.failed.is_none_or(|failed| failed == 0)
            && !result.diagnostics.is_empty()
            && found.all(|finding| finding.is_of_linter() && is_there(&finding.path))
    })
}

/// The most runs of the checks that look for the file on which a pass depends.
const MAX_SEARCHES: u32 = 4;

/// The tree on which the task started, to which a merge belongs.
fn start_of(tree: &WorkTree) -> TreeId {
    let merging = tree.merging.as_ref();
    merging.map_or_else(|| tree.repo.base_tree(), |merging| merging.before.clone())
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
    let began = parts.emit.begin_proof(proof);
    let (raw, changes) = (parts.snapshot().0, &CheckChanges::default());
    let result = match raw.as_deref() {
        Some(raw) => {
            let mut trial = Trial {
                parts,
                config,
                raw,
                changes,
            };
            match trial.baseline_on(start).await {
                Ok(result) => Some(result),
                Err(NoResult::Failed(error)) => return Err(error),
                Err(NoResult::Stopped | NoResult::Unknown(_)) => None,
            }
        }
        None => Some(ProofResult::Unknown { why: UNREAD.into() }),
    };
    if let Some(result) = &result {
        let line = ProofLine {
            elapsed_ms: parts.emit.elapsed_ms().saturating_sub(began),
            ..result.line(proof)
        };
        parts.emit.emit(EventKind::ProofEnded(Box::new(line)));
    }
    parts.emit.end_proof();
    Ok(result)
}

/// A run of the checks on another tree.
struct Ran {
    verification: Verification,
    /// The state that the checks left of the work, if they ran on it.
    left: Snapshot,
    /// What the checks made of the files that differ on the other tree, as far as they changed them.
    rewritten: Contents,
    /// The file that has to be as the work has it, if it was looked for and found.
    only_with: Option<String>,
}

impl Ran {
    fn has_passed(&self) -> bool {
        self.verification.verdict == Verdict::Passed
    }

    fn has_failed(&self) -> bool {
        matches!(self.verification.verdict, Verdict::Failed { .. })
    }
}

/// Why there is no tree to prove against: only committed content can replace the work.
fn cannot_prove(run: &TaskRun<'_>, proof: Proof, changes: &CheckChanges) -> Option<String> {
    let is_about_work = match proof {
        Proof::Flake => true,
        Proof::OldTests => !changes.tests.are_rewritten(),
        Proof::Baseline | Proof::NewTests => false,
    };
    let unknown = changes.unknown.clone();
    let unknown = unknown.filter(|_| proof == Proof::OldTests);
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
