//! Further runs of the checks that tell what a verdict is worth.

use crate::domain::attempt::{Interruption, Observation, Proof, ProofLine, ProofResult, Proved};
use crate::domain::checks::verdict::Verdict;
use crate::domain::event::EventKind;
use crate::run::accounts::CheckMemory;
use crate::run::emitter::Emitter;
use crate::run::setup::Setup;
use crate::run::steps::verify::{judge, run_checks};
use crate::run::task::TaskRun;
use crate::run::work_tree::WorkTree;

/// Runs the checks once more and says what that proves.
///
/// # Errors
/// When the run's own state cannot be written.
pub async fn prove(
    setup: &Setup,
    tree: &mut WorkTree,
    memory: &mut CheckMemory,
    emit: &mut Emitter<'_>,
    run: &mut TaskRun<'_>,
    proof: Proof,
) -> anyhow::Result<Observation> {
    let began = emit.elapsed_ms();
    emit.proving(Some(proof));
    emit.emit(EventKind::ProofStarted { proof });
    let fingerprint = tree.last_snapshot(emit).1.tree().cloned();
    let result = match proof {
        Proof::Flake => same_tree_again(setup, tree, memory, emit, run).await?,
        Proof::Baseline | Proof::OldTests | Proof::NewTests => Some(ProofResult::Unknown {
            why: "the checks are run on the work tree alone".into(),
        }),
    };
    let Some(result) = result else {
        let by = setup.interruption().unwrap_or(Interruption::Deadline);
        return Ok(Observation::interrupted(by));
    };
    let elapsed_ms = emit.elapsed_ms();
    emit.emit(EventKind::ProofEnded(Box::new(ProofLine {
        proof,
        result: result.word(),
        details: result.details(),
        attempt: run.journal.state.attempt(),
        elapsed_ms: elapsed_ms.saturating_sub(began),
    })));
    Ok(Observation::Proved(Box::new(Proved {
        proof,
        tree: fingerprint,
        result,
        elapsed_ms,
    })))
}

/// Runs the checks once more on the tree in front, whatever is remembered of it. `None` when the run
/// was stopped.
async fn same_tree_again(
    setup: &Setup,
    tree: &mut WorkTree,
    memory: &mut CheckMemory,
    emit: &mut Emitter<'_>,
    run: &mut TaskRun<'_>,
) -> anyhow::Result<Option<ProofResult>> {
    let (raw, before) = tree.last_snapshot(emit);
    let config = &run.config;
    let verification = run_checks(setup, tree, memory, emit, config, raw.as_deref()).await?;
    if verification.verdict == Verdict::Aborted {
        return Ok(None);
    }
    let (_, after) = tree.settle(raw.as_deref(), emit);
    judge(memory, run, (&before, &after), &verification);
    Ok(Some(match before.same_as(&after) {
        Some(true) => ProofResult::of_verdict(&verification.verdict, verification.failed()),
        _ => ProofResult::Unknown {
            why: "the checks changed what they checked".into(),
        },
    }))
}
