//! What the checks show of the work of a task, beside the word that stands for their result.

use super::{ProofResult, TaskState, names};
use crate::checks::judges::is_product_source;
use crate::outcome::Outcome;
use crate::text::{count, some_of};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Maximum number of names in the sentence of one line.
const MAX_NAMES: usize = 5;

/// The kind of a line of evidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EvidenceKind {
    /// Tests, or checks that do not name their tests, failed on the tree on which the task started and pass now.
    RedToGreen,
    /// The tests of new files fail on the tree on which the task started.
    NewTests,
    /// Every check passed on the tree on which the task started.
    PassedBefore,
    /// The result of the checks on that tree is unknown.
    UnknownBefore,
    /// Checks passed and ran no test.
    NoTestRan,
    /// The task changed no source of the product, and no check went from failing to passing.
    NoProductCode,
    /// The agent's last turn ended with an exit code other than 0, or with an error and no change.
    AgentFailed,
    /// The work is without changes of protected paths.
    HeldBack,
}

/// One fact about what the checks show of a task that is done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EvidenceLine {
    /// The kind.
    pub kind: EvidenceKind,
    /// The tests, the files of tests, the checks, the exit code or error, the protected paths, or the reason why the result is unknown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
}

impl EvidenceLine {
    fn new(kind: EvidenceKind, names: impl IntoIterator<Item = String>) -> Self {
        Self {
            kind,
            names: names.into_iter().collect(),
        }
    }

    /// The line, unless it names nothing.
    fn naming(kind: EvidenceKind, names: impl IntoIterator<Item = String>) -> Option<Self> {
        Some(Self::new(kind, names)).filter(|line| !line.names.is_empty())
    }

    /// The fact in one sentence without a final period.
    pub fn says(&self) -> String {
        let names = some_of(&self.names, MAX_NAMES);
        match self.kind {
            EvidenceKind::RedToGreen => {
                let tests = self.names.iter().all(|name| !name.starts_with("check "));
                let noun = if tests { "test" } else { "failure" };
                let number = count(self.names.len() as u64, noun);
                format!("{number} went from failing to passing: {names}")
            }
            EvidenceKind::NewTests => {
                format!("the new tests fail without this change: {names}")
            }
            EvidenceKind::PassedBefore => {
                "every check already passed before this task: they do not tell whether it is done"
                    .into()
            }
            EvidenceKind::UnknownBefore if names.is_empty() => {
                "the checks were not run before this task: they may have passed already".into()
            }
            EvidenceKind::NoTestRan if self.names.len() == 1 => {
                format!("check {names} ran no test")
            }
            EvidenceKind::NoTestRan => format!("checks {names} ran no test"),
            EvidenceKind::NoProductCode => "no product code changed".into(),
            EvidenceKind::AgentFailed => {
                let is_code = names.parse::<i32>().is_ok();
                let what = if is_code { "exit code " } else { "" };
                format!("the agent ended with {what}{names}, and the checks judged its work")
            }
            EvidenceKind::HeldBack => {
                format!("changes of protected paths are left out and wait for you: {names}")
            }
            EvidenceKind::UnknownBefore => {
                format!("it is not known whether the checks passed before this task: {names}")
            }
        }
    }
}

/// What the checks show of the work with which a task ended. Empty unless the work was committed or kept after
/// a run of the checks.
pub fn evidence(state: &TaskState, outcome: &Outcome) -> Vec<EvidenceLine> {
    let mut lines = match outcome {
        Outcome::Verified { .. } => since_start(state, Some(&BTreeSet::new())),
        Outcome::ChangedExpectations { unknown, .. } if unknown.is_some() => {
            since_start(state, None)
        }
        Outcome::KnownFailures { tests, .. } | Outcome::ChangedExpectations { tests, .. } => {
            since_start(state, Some(&tests.iter().cloned().collect()))
        }
        Outcome::Unverified { .. } | Outcome::AlreadySatisfied { .. } => Vec::new(),
        _ => return Vec::new(),
    };
    let idle = state.reported.idle.iter().cloned();
    lines.extend(EvidenceLine::naming(EvidenceKind::NoTestRan, idle));
    let error = state.last_error.clone().filter(|_| !lines.is_empty());
    lines.extend(EvidenceLine::naming(EvidenceKind::AgentFailed, error));
    let held: BTreeSet<&String> = state.held.iter().flat_map(|held| &held.paths).collect();
    let held = held.into_iter().cloned();
    lines.extend(EvidenceLine::naming(EvidenceKind::HeldBack, held));
    lines
}

/// The results of the checks compared with those on the tree on which the task started. The failures in `still` are the
/// same as there; without it, it is not known whether any failure has gone.
fn since_start(state: &TaskState, still: Option<&BTreeSet<String>>) -> Vec<EvidenceLine> {
    let proofs = &state.proofs;
    // Tests that were written first have failed before the work began; others only where a proof shows it.
    let new_tests = state.of_current_tree(proofs.new_tests.as_ref());
    let proved = state.red_tests.is_some() || matches!(new_tests, Some(ProofResult::Failed { .. }));
    let mut lines = Vec::new();
    if let Some(ProofResult::Failed { failed }) = &proofs.baseline {
        let green = names(failed).into_iter();
        let green = green.filter(|name| still.is_some_and(|still| !still.contains(name)));
        lines.extend(EvidenceLine::naming(EvidenceKind::RedToGreen, green));
    }
    let tests = &state.tests;
    let changed = tests.changed.iter().filter(|_| tests.added.is_empty());
    let shown = tests.added.iter().chain(changed).filter(|_| proved);
    lines.extend(EvidenceLine::naming(EvidenceKind::NewTests, shown.cloned()));
    let before = match &proofs.baseline {
        Some(ProofResult::Unknown { why }) => {
            Some((EvidenceKind::UnknownBefore, Some(why.clone())))
        }
        _ if proved => None,
        Some(ProofResult::Passed) => Some((EvidenceKind::PassedBefore, None)),
        Some(ProofResult::Failed { .. } | ProofResult::CannotStart { .. }) => None,
        None => Some((EvidenceKind::UnknownBefore, None)),
    };
    lines.extend(before.map(|(kind, why)| EvidenceLine::new(kind, why)));
    let is_shown = |line: &EvidenceLine| {
        matches!(line.kind, EvidenceKind::RedToGreen | EvidenceKind::NewTests)
    };
    let has_product = state.changes.iter().any(|path| is_product_source(path));
    if !state.changes.is_empty() && !has_product && !lines.iter().any(is_shown) {
        lines.push(EvidenceLine::new(EvidenceKind::NoProductCode, []));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::{EvidenceKind, EvidenceLine, evidence};
    use crate::attempt::{FailedCheck, ProofResult, TaskState, TestChanges};
    use crate::outcome::Outcome;
    use std::collections::{BTreeMap, BTreeSet};

    fn failed(tests: &[&str]) -> ProofResult {
        let failed = FailedCheck {
            check: "test".into(),
            end: "failed with exit code 1".into(),
            fingerprint: "f".into(),
            tests: tests.iter().map(|test| (*test).to_owned()).collect(),
            all_named: true,
            hides_some: false,
            passed: Some(1),
            results: BTreeMap::new(),
            failed_by_run: Vec::new(),
            places: BTreeMap::new(),
            refused: None,
        };
        ProofResult::Failed {
            failed: vec![failed].into(),
        }
    }

    fn after(baseline: Option<ProofResult>, outcome: &Outcome) -> Vec<String> {
        let mut state = TaskState::default();
        state.proofs.baseline = baseline;
        evidence(&state, outcome)
            .iter()
            .map(EvidenceLine::says)
            .collect()
    }

    const VERIFIED: Outcome = Outcome::Verified { commit: None };

    #[test]
    fn tests_that_were_red_are_named() {
        assert_eq!(
            after(Some(failed(&["a", "b"])), &VERIFIED),
            ["2 tests went from failing to passing: a, b"]
        );
        assert_eq!(
            after(Some(failed(&[])), &VERIFIED),
            ["1 failure went from failing to passing: check test"]
        );
    }

    #[test]
    fn failures_that_are_left_did_not_become_green() {
        let known = Outcome::KnownFailures {
            commit: None,
            tests: vec!["b".into()],
        };
        assert_eq!(
            after(Some(failed(&["a", "b"])), &known),
            ["1 test went from failing to passing: a"]
        );
    }

    #[test]
    fn nothing_became_green_where_the_original_tests_are_not_known_to_pass() {
        let unknown = Outcome::ChangedExpectations {
            commit: None,
            accepted: true,
            files: Vec::new(),
            not_committed: true,
            only_with: None,
            tests: Vec::new(),
            unknown: Some("check test ran 2 tests".into()),
        };
        assert!(after(Some(failed(&["a"])), &unknown).is_empty());
    }

    #[test]
    fn checks_that_passed_before_prove_nothing() {
        assert_eq!(
            after(Some(ProofResult::Passed), &VERIFIED),
            ["every check already passed before this task: they do not tell whether it is done"]
        );
        assert_eq!(
            after(None, &VERIFIED),
            ["the checks were not run before this task: they may have passed already"]
        );
        let unknown = ProofResult::Unknown {
            why: "test timed out".into(),
        };
        assert_eq!(
            after(Some(unknown), &VERIFIED),
            ["it is not known whether the checks passed before this task: test timed out"]
        );
    }

    #[test]
    fn tests_that_were_written_first_failed_without_the_work() {
        let mut state = TaskState {
            red_tests: Some("digest".into()),
            tests: TestChanges {
                added: vec!["t.sh".into()],
                ..TestChanges::default()
            }
            .into(),
            ..TaskState::default()
        };
        state.proofs.baseline = Some(ProofResult::Passed);
        let said = evidence(&state, &VERIFIED)[0].says();
        assert_eq!(said, "the new tests fail without this change: t.sh");
    }

    #[test]
    fn work_without_a_verdict_has_no_evidence() {
        let outcomes = [
            Outcome::VerificationFailed,
            Outcome::AlreadySatisfied { verified: true },
        ];
        for outcome in &outcomes {
            assert!(after(Some(ProofResult::Passed), outcome).is_empty());
        }
    }

    #[test]
    fn long_lists_of_names_are_cut() {
        let names: BTreeSet<String> = (0..7).map(|n| format!("t{n}")).collect();
        let line = EvidenceLine::new(EvidenceKind::RedToGreen, names);
        assert_eq!(
            line.says(),
            "7 tests went from failing to passing: t0, t1, t2, t3, t4 and 2 more"
        );
    }
}
