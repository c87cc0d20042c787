//! Further runs of the checks that tell what a verdict is worth.

use super::{Performer, TaskRun};
use crate::domain::attempt::{Interruption, Observation, Proof, ProofLine, ProofResult, Proved};
use crate::domain::checks::verdict::Verdict;
use crate::domain::event::EventKind;

impl Performer<'_> {
    pub(super) async fn proof(
        &mut self,
        run: &mut TaskRun<'_>,
        proof: Proof,
    ) -> anyhow::Result<Observation> {
        let began = self.emit.elapsed_ms();
        self.emit.proving(Some(proof));
        self.emit.emit(EventKind::ProofStarted { proof });
        let tree = self.last_look().1.tree().cloned();
        let result = match proof {
            Proof::Flake => self.same_tree_again(run).await?,
            Proof::Baseline | Proof::OldTests | Proof::NewTests => Some(ProofResult::Unknown {
                why: "the checks are run on the work tree alone".into(),
            }),
        };
        let Some(result) = result else {
            let by = self.interruption().unwrap_or(Interruption::Deadline);
            return Ok(Observation::interrupted(by));
        };
        let elapsed_ms = self.emit.elapsed_ms();
        self.emit.emit(EventKind::ProofEnded(Box::new(ProofLine {
            proof,
            result: result.word(),
            details: result.details(),
            attempt: run.journal.state.attempt(),
            elapsed_ms: elapsed_ms.saturating_sub(began),
        })));
        Ok(Observation::Proved(Box::new(Proved {
            proof,
            tree,
            result,
            elapsed_ms,
        })))
    }

    /// Runs the checks once more on the tree in front, whatever is remembered of it. `None` when the
    /// run was stopped.
    async fn same_tree_again(
        &mut self,
        run: &mut TaskRun<'_>,
    ) -> anyhow::Result<Option<ProofResult>> {
        let (raw, before) = self.last_look();
        let verification = self.run_checks(&run.config, raw.as_deref()).await?;
        if verification.verdict == Verdict::Aborted {
            return Ok(None);
        }
        let (_, after) = self.settle(raw.as_deref());
        self.judge(run, (&before, &after), &verification);
        Ok(Some(match before.same_as(&after) {
            Some(true) => ProofResult::of_verdict(&verification.verdict, verification.failed()),
            _ => ProofResult::Unknown {
                why: "the checks changed what they checked".into(),
            },
        }))
    }
}
