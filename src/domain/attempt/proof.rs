//! Further runs of the checks that show how much a verdict is worth and what caused a failure.

mod new_tests;

use crate::checks::verdict::Verdict;
use crate::checks::{FailedCheck, Reported};
use crate::snapshot::Fingerprint;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Another run of the checks, on another tree or again on the same tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[derive(strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Proof {
    /// On the tree on which the task started: what failed before the agent's work?
    Baseline,
    /// On the same tree again, before the task is given up, if the failure may be flaky.
    Flake,
    /// On the work with everything put back that judged it before: does it pass only because this was changed?
    OldTests,
    /// On the tree on which the task started, with the new tests: do they fail without the work?
    NewTests,
}

impl Proof {
    /// The word used in events and reports.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// A description of the run for a log line.
    pub const fn describe(self) -> &'static str {
        match self {
            Self::Baseline => "running the checks on the tree on which the task started",
            Self::Flake => {
                "running the checks once more on the same tree, since the failure may be flaky"
            }
            Self::OldTests => "running the checks on the work with what judged it before",
            Self::NewTests => {
                "running the checks on the tree on which the task started, with the new tests"
            }
        }
    }
}

/// The result of a proof.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProofWord {
    /// Every check passed.
    Passed,
    /// At least one check failed.
    Failed,
    /// The result is unknown.
    Unknown,
}

/// A proof, as reports show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProofLine {
    /// The kind of proof.
    pub proof: Proof,
    /// The result of the checks.
    pub result: ProofWord,
    /// The failures, or why the result is unknown.
    pub details: Vec<String>,
    /// The attempt in which it ran.
    pub attempt: u32,
    /// The duration in milliseconds.
    pub elapsed_ms: u64,
}

impl ProofLine {
    /// The conclusion in one sentence.
    pub fn says(&self) -> String {
        let [passed, failed, unknown] = match self.proof {
            Proof::Baseline => [
                "every check passed before the task",
                "failed before the task",
                "what failed before the task is not known",
            ],
            Proof::Flake => [
                "the same tree passes this time: the failure was flaky",
                "failed again",
                "the repeated run is inconclusive",
            ],
            Proof::OldTests => [
                "the work passes with what judged it before",
                "with what judged the work before, these fail",
                "whether the work passes with what judged it before is not known",
            ],
            Proof::NewTests => [
                "the new tests pass without the change: they prove nothing",
                "the new tests fail without the change",
                "whether the new tests fail without the change is not known",
            ],
        };
        let says = match self.result {
            ProofWord::Passed => return passed.to_owned(),
            ProofWord::Failed => failed,
            ProofWord::Unknown => unknown,
        };
        format!("{says}: {}", self.details.join(", "))
    }
}

/// The result of a proof.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "result", rename_all = "snake_case")]
pub enum ProofResult {
    /// Every check passed.
    Passed,
    /// At least one check failed.
    Failed {
        /// The checks that failed.
        failed: Arc<[FailedCheck]>,
    },
    /// A check could not start on that tree.
    CannotStart {
        /// The check.
        check: String,
        /// The program that is missing.
        program: String,
    },
    /// The proof is inconclusive: neither a pass nor a failure.
    Unknown {
        /// The reason, in one line.
        why: String,
    },
}

impl ProofResult {
    /// The result that a verdict stands for; `failed` lists its failed checks.
    pub fn of_verdict(verdict: &Verdict, failed: Vec<FailedCheck>) -> Self {
        let unknown = |why: String| Self::Unknown { why };
        match verdict {
            Verdict::Passed => Self::Passed,
            Verdict::Failed { .. } => Self::Failed {
                failed: failed.into(),
            },
            Verdict::CannotStart { check, program } => Self::CannotStart {
                check: check.clone(),
                program: program.clone(),
            },
            Verdict::TimedOut { checks } => unknown(format!("{} timed out", checks.join(", "))),
            Verdict::Aborted => unknown("the checks were stopped".into()),
            Verdict::NotRun => unknown("no check is configured".into()),
        }
    }

    /// The result in one word.
    pub const fn word(&self) -> ProofWord {
        match self {
            Self::Passed => ProofWord::Passed,
            Self::Failed { .. } => ProofWord::Failed,
            Self::CannotStart { .. } | Self::Unknown { .. } => ProofWord::Unknown,
        }
    }

    /// The result as reports show it, of a first attempt that took no time.
    pub fn line(&self, proof: Proof) -> ProofLine {
        ProofLine {
            proof,
            result: self.word(),
            details: self.details(),
            attempt: 1,
            elapsed_ms: 0,
        }
    }

    /// The failures, or why the result is unknown, one per line. Empty for a pass.
    pub fn details(&self) -> Vec<String> {
        match self {
            Self::Passed => Vec::new(),
            Self::Failed { failed } => names(failed),
            Self::CannotStart { check, program } => {
                vec![format!("check {check} cannot start: {program} is missing")]
            }
            Self::Unknown { why } => vec![why.clone()],
        }
    }
}

/// A completed proof. The work tree is restored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proved {
    /// The kind of proof.
    pub proof: Proof,
    /// The tree of the work that the proof is about; `None` when it could not be read.
    pub tree: Option<Fingerprint>,
    /// The result.
    #[serde(flatten)]
    pub result: ProofResult,
    /// What the checks reported about their tests.
    pub reported: Arc<Reported>,
    /// The changed file with which alone the checks pass, if it was looked for and found.
    pub only_with: Option<String>,
    /// The run's clock, in milliseconds.
    pub elapsed_ms: u64,
}

/// What judges the work and differs from the start of the task.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TestChanges {
    /// Test files that existed before and were changed or deleted.
    pub changed: Vec<String>,
    /// New test files.
    pub added: Vec<String>,
    /// Other files that judge and whose judging part was changed, and new files that may rule those that judge.
    pub definitions: Vec<String>,
    /// The same, as far as only earlier tasks of the run have changed them and their work was verified.
    pub earlier: Vec<String>,
    /// What the checks see and a fresh checkout of the work does not have: files that it removes from the
    /// repository and that still exist, new ignored files, repositories, and links out of the work tree.
    pub left: Vec<String>,
    /// A digest of these test files' content; empty when there are none.
    pub digest: String,
}

impl TestChanges {
    /// Whether a test was changed or added.
    pub fn are_tests_touched(&self) -> bool {
        !self.changed.is_empty() || !self.added.is_empty()
    }

    /// Whether the checks may pass only because a test or another file that judges changed, or because of
    /// files that a fresh checkout does not have.
    pub fn touch_what_was_there(&self) -> bool {
        self.are_rewritten() || !self.left.is_empty()
    }

    /// Whether something that judges the work is another than before.
    pub fn are_rewritten(&self) -> bool {
        !(self.changed.is_empty() && self.definitions.is_empty() && self.earlier.is_empty())
    }

    /// The changed files, definitions first.
    pub fn touched(&self) -> Vec<String> {
        [&self.definitions, &self.changed, &self.earlier, &self.left]
            .map(Vec::as_slice)
            .concat()
    }
}

/// The origin of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Blame {
    /// It passed before the agent's work.
    New,
    /// It already failed on the tree on which the task started.
    WasRedBefore,
    /// It failed and passed on the same tree.
    Flaky,
    /// The origin is unknown.
    Unknown,
}

impl Blame {
    /// The words used in prompts and reports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::WasRedBefore => "was red before",
            Self::Flaky => "flaky",
            Self::Unknown => "not known whether it was red before",
        }
    }
}

/// A failing test, or a failing check that does not name its tests, with the origin of the failure.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct BlamedTest {
    /// The check.
    pub check: String,
    /// The test's id; `null` if the output does not name the tests.
    pub test: Option<String>,
    /// The origin of the failure.
    pub blame: Blame,
    /// The file in which it failed, relative to the work tree; `null` if the output does not name it.
    #[serde(default)]
    pub path: Option<String>,
    /// The line in that file.
    #[serde(default)]
    pub line: Option<u32>,
}

impl BlamedTest {
    /// The test's id, or else the check.
    pub fn name(&self) -> String {
        match &self.test {
            Some(test) => test.clone(),
            None => format!("check {}", self.check),
        }
    }

    /// The test and its blame, in one phrase.
    pub fn says(&self) -> String {
        format!("{}: {}", self.name(), self.blame.as_str())
    }
}

/// The results of a task's proofs so far.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Proofs {
    /// The result of the checks on the tree on which the task started.
    pub baseline: Option<ProofResult>,
    /// What the checks reported there about their tests.
    pub at_start: Arc<Reported>,
    /// How often the checks, or a proof with the old tests, ran again on a tree that had failed.
    pub reruns: u32,
    /// The tree that passed in such a rerun.
    pub passed_again: Option<Fingerprint>,
    /// Tests, and checks without named tests, that both failed and passed on the same tree.
    pub flaky: BTreeSet<(String, Option<String>)>,
    /// The tree that the last proof with the old tests is about, and its result.
    pub old_tests: Option<(Fingerprint, ProofResult)>,
    /// The changed file with which alone the checks pass, as far as it is known.
    pub only_with: Option<String>,
    /// The tree that the last proof with the new tests is about, and its result.
    pub new_tests: Option<(Fingerprint, ProofResult)>,
}

impl Proofs {
    /// Records a proof; `failed` lists the earlier failures on that tree.
    pub fn take(&mut self, proved: &Proved, failed: &[FailedCheck]) {
        let of_tree = || Some((proved.tree.clone()?, self.weighed(proved)));
        match proved.proof {
            Proof::Baseline => {
                self.baseline = Some(proved.result.clone());
                self.at_start.clone_from(&proved.reported);
            }
            Proof::OldTests if self.has_failed_with_old_tests(proved.tree.as_ref()) => {
                // Only a pass changes the result.
                let again = of_tree().filter(|(_, result)| *result == ProofResult::Passed);
                self.reruns += 1;
                self.old_tests = again.or(self.old_tests.take());
            }
            Proof::OldTests => {
                self.old_tests = of_tree();
                self.only_with.clone_from(&proved.only_with);
            }
            Proof::NewTests => self.new_tests = of_tree(),
            Proof::Flake => self.rerun(proved, failed),
        }
    }

    /// The result of a proof. That the original tests pass is not known if most of those that ran at the
    /// start of the task did not run.
    pub fn weighed(&self, proved: &Proved) -> ProofResult {
        let lost = proved.reported.lost_since(&self.at_start);
        match (proved.proof, &proved.result) {
            (Proof::OldTests, ProofResult::Passed) if !lost.is_empty() => ProofResult::Unknown {
                why: lost.join("; "),
            },
            (_, result) => result.clone(),
        }
    }

    /// Whether the last proof with the old tests failed and was about this tree.
    fn has_failed_with_old_tests(&self, tree: Option<&Fingerprint>) -> bool {
        matches!(&self.old_tests, Some((of, ProofResult::Failed { .. })) if Some(of) == tree)
    }

    fn rerun(&mut self, proved: &Proved, before: &[FailedCheck]) {
        self.reruns += 1;
        let now: &[FailedCheck] = match &proved.result {
            ProofResult::Passed => {
                self.passed_again.clone_from(&proved.tree);
                &[]
            }
            ProofResult::Failed { failed } => failed,
            ProofResult::CannotStart { .. } | ProofResult::Unknown { .. } => return,
        };
        for (one, other) in [(before, now), (now, before)] {
            self.flaky.extend(passed_in(one, other));
        }
    }

    /// The blame for each failure in `failed`.
    pub fn blame(&self, failed: &[FailedCheck]) -> Vec<BlamedTest> {
        let each = failed.iter().flat_map(|failed| {
            failures(failed).map(|(check, test)| {
                let place = test.as_ref().and_then(|test| failed.places.get(test));
                BlamedTest {
                    blame: self.blame_for(failed, test.as_deref()),
                    path: place.map(|(path, _)| path.clone()),
                    line: place.map(|(_, line)| *line),
                    check,
                    test,
                }
            })
        });
        each.collect()
    }

    fn blame_for(&self, failed: &FailedCheck, test: Option<&str>) -> Blame {
        let key = (failed.check.clone(), test.map(str::to_owned));
        if self.flaky.contains(&key) {
            return Blame::Flaky;
        }
        let before = match &self.baseline {
            Some(ProofResult::Passed) => return Blame::New,
            Some(ProofResult::Failed { failed }) => failed,
            Some(ProofResult::CannotStart { .. } | ProofResult::Unknown { .. }) | None => {
                return Blame::Unknown;
            }
        };
        let Some(before) = before.iter().find(|it| it.check == failed.check) else {
            return Blame::New;
        };
        let hides_others = failed.results.is_empty()
            && failed.tests.is_subset(&before.tests)
            && (failed.hides_some || failed.is_worse_in_numbers(before));
        match test {
            _ if hides_others => Blame::Unknown,
            Some(test) if failed.is_elsewhere(before, test) => Blame::Unknown,
            Some(test) if before.tests.contains(test) => failed.blame_of_name(before, test),
            Some(_) if before.tests.is_empty() => Blame::Unknown,
            Some(_) => Blame::New,
            None if before.fingerprint == failed.fingerprint => Blame::WasRedBefore,
            None => Blame::Unknown,
        }
    }

    /// Whether every failure in `failed` also occurred, in the same way, on the tree on which the task
    /// started. `false` when this cannot be determined.
    pub fn were_red_before(&self, failed: &[FailedCheck]) -> bool {
        let Some(ProofResult::Failed { failed: before }) = &self.baseline else {
            return false;
        };
        let known = |now: &FailedCheck| before.iter().any(|then| now.is_no_worse_than(then));
        !failed.is_empty() && failed.iter().all(known)
    }
}

impl FailedCheck {
    /// Whether this is the same failure as `then`, or consists of named tests of it. The names alone do not
    /// show that nothing else broke: at least as many tests must have passed, and the check must have ended
    /// in the same way.
    fn is_no_worse_than(&self, then: &Self) -> bool {
        let same_tests = self.all_named
            && then.all_named
            && !self.tests.is_empty()
            && self.tests.is_subset(&then.tests)
            && self.passed.is_some()
            && then.passed.is_some();
        self.check == then.check
            && self.end == then.end
            && (same_tests || !self.fingerprint.is_empty() && self.fingerprint == then.fingerprint)
            && !self.hides_some
            && !self.is_worse_in_numbers(then)
            && self
                .tests
                .iter()
                .all(|test| self.blame_of_name(then, test) == Blame::WasRedBefore)
            && !self.tests.iter().any(|test| self.is_elsewhere(then, test))
    }

    /// The origin of the failures of a name that failed in both runs. Tests of one name are told apart by their order,
    /// so that there must be as many of them. Of a tool that names only failed tests, others of this name are not known.
    fn blame_of_name(&self, before: &Self, test: &str) -> Blame {
        match (self.results.get(test), before.results.get(test)) {
            (Some(now), Some(then)) if now.total == then.total => {
                let is_known = now.failed.is_subset(&then.failed);
                if is_known {
                    Blame::WasRedBefore
                } else {
                    Blame::New
                }
            }
            (Some(only), None) | (None, Some(only)) if only.total == 1 => Blame::WasRedBefore,
            (None, None) => Blame::WasRedBefore,
            _ => Blame::Unknown,
        }
    }

    /// Whether a test failed in another file than in the other run: it may be another test of this name.
    fn is_elsewhere(&self, other: &Self, test: &str) -> bool {
        let files = self.places.get(test).zip(other.places.get(test));
        files.is_some_and(|((own, _), (other, _))| own != other)
    }

    /// Whether fewer tests have passed than in another run of the check, as far as both numbers are known, or more have
    /// failed in one of its runs of tests: several packages may have tests of one name.
    fn is_worse_in_numbers(&self, other: &Self) -> bool {
        let numbers = self.passed.zip(other.passed);
        let mut runs = self.failed_by_run.iter().zip(&other.failed_by_run);
        let is_more = |own: Option<u64>, other: Option<u64>| match other {
            Some(0) => own != Some(0),
            _ => own.zip(other).is_some_and(|(own, other)| own > other),
        };
        numbers.is_some_and(|(own, other)| own < other)
            || self.failed_by_run.len() == other.failed_by_run.len()
                && runs.any(|(own, other)| is_more(*own, *other))
    }
}

/// The failures of `one` run that passed in the `other` run on the same tree.
fn passed_in(
    one: &[FailedCheck],
    other: &[FailedCheck],
) -> impl Iterator<Item = (String, Option<String>)> {
    one.iter().flat_map(|failed| {
        let again = other.iter().find(|it| it.check == failed.check);
        failures(failed).filter(move |(_, test)| match (again, test) {
            (None, _) => true,
            (Some(again), Some(test)) => again.all_named && !again.tests.contains(test),
            (Some(_), None) => false,
        })
    })
}

/// The failed tests of a check, or the check itself when the tests are unknown.
fn failures(failed: &FailedCheck) -> impl Iterator<Item = (String, Option<String>)> {
    let unnamed = failed.tests.is_empty().then_some(None).into_iter();
    let named = failed.tests.iter().cloned().map(Some);
    unnamed
        .chain(named)
        .map(|test| (failed.check.clone(), test))
}

/// The ids of the failed tests, and the names of the checks whose tests are unknown.
pub fn names(failed: &[FailedCheck]) -> Vec<String> {
    let each = failed.iter().flat_map(|failed| {
        failures(failed).map(|(check, test)| test.unwrap_or_else(|| format!("check {check}")))
    });
    each.collect()
}
