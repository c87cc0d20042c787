//! Moves the branch to existing commits once the checks pass on them.

use crate::domain::attempt::{BlamedTest, ProofResult, Proofs};
use crate::domain::checks::verdict::{Check, Verdict};
use crate::domain::settings::{Baseline, KnownFailures};
use crate::domain::snapshot::RevId;
use crate::domain::text::some_of;
use crate::git::TreeId;
use crate::run::state::parts::Parts;
use crate::run::steps::proof::baseline_of_commits;
use crate::run::steps::verify::run_checks;
use crate::settings::TaskConfig;
use std::fmt;

/// How many failing tests one message names.
const NAMED: usize = 8;

/// The result of trying to move the branch to commits: it is there, where only these known failures occur, which
/// `known_failures` accepts, or it is where it was.
pub type Moved = Result<Vec<BlamedTest>, NotMoved>;

/// Why the branch is where it was.
pub enum NotMoved {
    /// Checks fail on the commits.
    Fails(Failing),
    /// The run was stopped.
    Stopped,
    /// The repository cannot be moved there or back.
    Impossible(String),
}

/// Checks that fail on the commits, and what caused the failures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failing {
    checks: Vec<String>,
    /// The failing tests, as far as they are known.
    pub tests: Vec<BlamedTest>,
}

impl fmt::Display for Failing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.checks.join(", "))?;
        let tests: Vec<String> = self.tests.iter().map(BlamedTest::says).collect();
        if tests.is_empty() {
            return Ok(());
        }
        write!(f, " ({})", some_of(&tests, NAMED))
    }
}

/// Results of the checks on the tree before the move, determined when a check fails after it.
#[derive(Debug)]
pub struct Before {
    tree: TreeId,
    known: Vec<(Vec<Check>, ProofResult)>,
}

impl Before {
    /// No results are known for this tree yet.
    pub fn at(tree: TreeId) -> Self {
        let known = Vec::new();
        Self { tree, known }
    }

    /// The result of these checks on the tree; `None` if the run was stopped.
    async fn baseline(
        &mut self,
        parts: &mut Parts<'_>,
        config: &TaskConfig,
    ) -> anyhow::Result<Option<ProofResult>> {
        let mut known = self.known.iter();
        if let Some((_, result)) = known.find(|(checks, _)| *checks == config.checks) {
            return Ok(Some(result.clone()));
        }
        let found = baseline_of_commits(parts, config, &self.tree).await?;
        if let Some(result) = &found {
            self.known.push((config.checks.clone(), result.clone()));
        }
        Ok(found)
    }
}

/// Moves branch, index and work tree to `to` and runs every set of `checks` there. If they do not pass,
/// moves back. Failures are compared with those `before`, as the settings say.
///
/// # Errors
/// When the run's own state cannot be written.
pub async fn move_and_verify(
    parts: &mut Parts<'_>,
    to: &RevId,
    before: &mut Before,
    checks: &[&TaskConfig],
) -> anyhow::Result<Moved> {
    let intent = match parts.tree.move_to(to, &mut parts.emit)? {
        Ok(intent) => intent,
        Err(error) => return Ok(Err(NotMoved::Impossible(error.to_string()))),
    };
    let moved = verify_moved(parts, before, checks).await?;
    match &moved {
        Ok(_) => parts.tree.arrive(),
        Err(_) => parts.tree.move_back(&intent, &mut parts.emit),
    }
    Ok(moved)
}

/// As [`move_and_verify`], but repeats failing checks as often as the settings say.
///
/// # Errors
/// When the run's own state cannot be written.
pub async fn move_and_verify_with_reruns(
    parts: &mut Parts<'_>,
    to: &RevId,
    before: &mut Before,
    checks: &[&TaskConfig],
) -> anyhow::Result<Moved> {
    let reruns = checks.iter().map(|config| config.settings.flaky_reruns);
    let mut left = reruns.max().unwrap_or(0);
    loop {
        match move_and_verify(parts, to, before, checks).await? {
            Err(NotMoved::Fails(failing)) if left > 0 => {
                left -= 1;
                parts.warn(format!("these checks failed and run again: {failing}"));
            }
            moved => return Ok(moved),
        }
    }
}

/// Runs every set of checks on the current tree. Changes that the checks make are undone, because the
/// commits are accepted as they are.
async fn verify_moved(
    parts: &mut Parts<'_>,
    before: &mut Before,
    checks: &[&TaskConfig],
) -> anyhow::Result<Moved> {
    let mut seen: Vec<&TaskConfig> = Vec::new();
    let mut known = Vec::new();
    for config in checks {
        if config.checks.is_empty() || seen.iter().any(|it| it.checks == config.checks) {
            continue;
        }
        seen.push(config);
        let (raw, _) = parts.last_snapshot();
        let raw = raw.as_deref();
        let verification = run_checks(parts, config, raw).await?;
        parts.tree.collect_artifacts(raw, &mut parts.emit);
        let exempt = parts.tree.exempt();
        if let Err(error) = parts.tree.repo.change().restore_tree(&exempt) {
            let why = format!("the tree could not be restored: {error}");
            return Ok(Err(NotMoved::Impossible(why)));
        }
        match verification.verdict {
            Verdict::Passed => continue,
            Verdict::Aborted => return Ok(Err(NotMoved::Stopped)),
            _ => {}
        }
        let mut proofs = Proofs::default();
        if config.settings.baseline != Baseline::Off {
            proofs.baseline = before.baseline(parts, config).await?;
            if proofs.baseline.is_none() {
                return Ok(Err(NotMoved::Stopped));
            }
        }
        let (failed, checks) = (verification.failed(), verification.failing_checks());
        let blamed = proofs.baseline.as_ref().map(|_| proofs.blame(&failed));
        let tests = blamed.unwrap_or_default();
        // Only known failures, if the settings accept them. After a failed build, nothing is known about the other
        // checks, because they were skipped.
        let is_tolerated = config.settings.known_failures == KnownFailures::Tolerate
            && matches!(verification.verdict, Verdict::Failed { build: false, .. })
            && proofs.were_red_before(&failed);
        if !is_tolerated {
            return Ok(Err(NotMoved::Fails(Failing { checks, tests })));
        }
        known.extend(tests);
    }
    Ok(Ok(known))
}
