//! The state of a task: a linear fold over its history.

use super::{
    FailedTree, Grounds, HeldBack, Interruption, Observation, Phase, PhaseName, Proof, ProofResult,
    Proofs, Proved, Record, Role, Spend, Step, TestChanges, TurnEnded, TurnKey, TurnPurpose,
    VerificationEnded, VerifyPurpose, said_by_hook,
};
use crate::assess::AssessmentKind;
use crate::attempt::nudge::NudgeKind;
use crate::checks::Reported;
use crate::checks::signals::Signal;
use crate::checks::verdict::Verdict;
use crate::commit_message::suggested_commit_message;
use crate::history::{AttemptOutcome, HistoryEntry, UNKNOWN_CHANGES};
use crate::output_schema::StructuredOutput;
use crate::review::{Finding, Review, ReviewVerdict, take_review};
use crate::snapshot::{Fingerprint, RevId, Snapshot};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The last observation, on which the next decision depends.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Last {
    /// Nothing yet.
    #[default]
    Begin,
    /// A turn ended.
    Turn(Arc<TurnEnded>),
    /// A verification ended.
    Verified(VerifyPurpose, Arc<VerificationEnded>),
    /// The work tree was restored to the start of the phase.
    Undone,
    /// The commit landed.
    Committed(Option<RevId>, Grounds),
    /// A hook refused the commit.
    HookRejected(String),
    /// A hook changed the tree.
    HookChanged {
        /// Whether a hook had changed the tree in this attempt before.
        again: bool,
    },
    /// The commit failed permanently.
    CommitFailed(String),
    /// Checks or hooks broke a rule that applies to every task.
    Violated(String),
    /// A wait ended.
    Waited,
    /// The run was resumed while this step was open.
    Resumed(Box<Step>),
}

/// Everything that the next decision depends on.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TaskState {
    /// The snapshot at the start of the task.
    pub task_start: Option<Snapshot>,
    /// The snapshot at the start of the open or last turn.
    pub turn_start: Option<Snapshot>,
    /// The last known snapshot.
    pub current: Option<Snapshot>,
    /// The turn that started last.
    pub key: Option<TurnKey>,
    /// Why that turn started.
    pub purpose: Option<TurnPurpose>,
    /// Nudges given in the current phase.
    pub nudges: u32,
    /// Nudges given in the other phases, by phase index.
    pub nudges_elsewhere: BTreeMap<usize, u32>,
    /// Attempts started, by the cycle and phase in which they are counted.
    pub attempts: BTreeMap<(u32, Phase), u32>,
    /// The indexes of the phases that have started.
    pub begun: BTreeSet<usize>,
    /// The phase in which the current attempt is counted, when the task has several.
    pub counted: Option<PhaseName>,
    /// The snapshot at the start of the phase.
    pub phase_start: Option<Snapshot>,
    /// Why the work on which the phase started is acceptable.
    pub grounds: Option<Grounds>,
    /// Turns of the phase that were cut off, or reviews that said nothing.
    pub lost_turns: u32,
    /// Whether the work tree was restored to the start of the phase.
    pub undone: bool,
    /// The last reviewer's verdict; `None` while the next reviewer runs.
    pub review: Option<Review>,
    /// The tree that a reviewer accepted, or what a commit hook made of it.
    pub accepted: Option<Fingerprint>,
    /// The findings of the reviews.
    pub findings: Vec<Finding>,
    /// The last final message of an implementer or fixer that suggests a commit message.
    pub suggestion: Option<String>,
    /// The last final message of any role but the reviewer, when a task has several phases.
    pub answer: Option<String>,
    /// The output value of the last turn that gave one.
    pub output: Option<StructuredOutput>,
    /// Whether this attempt has received the nudge that shows the unchanged tree.
    pub shown_unchanged: bool,
    /// Waits for transient errors in this attempt.
    pub waits: u32,
    /// The exit code with which the agent's last turn ended, if it is not 0, or the error at its end.
    pub last_error: Option<String>,
    /// The question with which the last turn ended, if only a person can answer it.
    pub asks: Option<String>,
    /// Whether the turn before ended with the same one.
    pub asks_again: bool,
    /// Turns in a row that were cut off by a limit and changed nothing.
    pub idle_cuts: u32,
    /// Trees that failed verification in this phase.
    pub failed_trees: Vec<FailedTree>,
    /// The tree that a commit hook last refused.
    pub rejected: Option<Snapshot>,
    /// The commit message that the agent suggested last.
    pub suggested: Option<String>,
    /// The suggested commit message that a commit hook last refused; empty if there was none, `None` if the
    /// hook refused the files.
    pub refused_message: Option<String>,
    /// The last failure's fingerprint, and how often it occurred in a row.
    pub failure: Option<(String, u32)>,
    /// The results of the attempts.
    pub history: Vec<HistoryEntry>,
    /// Why the last attempt failed although its checks pass, for the prompts of this attempt.
    pub refused: Option<String>,
    /// How the turn before this attempt was cut off, if it was, for the prompts of this attempt.
    pub cut_off: Option<String>,
    /// The last failing verification, for the next prompt.
    pub last_failure: Option<Arc<VerificationEnded>>,
    /// The commit hook's output, when the hook ended the last attempt.
    pub hook_message: Option<String>,
    /// Whether a hook changed the tree in this attempt.
    pub hook_changed: bool,
    /// Files changed since the task started.
    pub changes: Vec<String>,
    /// The test files among the changes.
    pub tests: Arc<TestChanges>,
    /// Changes of protected paths that were taken out of the work.
    pub held: Vec<HeldBack>,
    /// What is worth a look in the work that the checks passed last.
    pub signals: Vec<Signal>,
    /// What the last verification reported about its tests.
    pub reported: Arc<Reported>,
    /// The digest of the tests that failed before the work began, when tests are written first.
    pub red_tests: Option<String>,
    /// The results of the proofs.
    pub proofs: Proofs,
    /// The tree on which this process last ran the checks to their end without a change by them. A permit to
    /// commit does not outlive the process, so a resumed run clears this.
    pub judged: Option<Fingerprint>,
    /// Whether the checks passed on that tree.
    pub has_passed: bool,
    /// Spend of this task.
    pub spend: Spend,
    /// The run's clock at the last observation, in milliseconds.
    pub elapsed_ms: u64,
    /// The number of verifications.
    pub verifications: u32,
    /// The last observation.
    pub last: Last,
    /// The commit that was created and may not have reached the branch.
    pub prepared: Option<RevId>,
    /// What interrupted the last step, until the run is resumed.
    pub interrupted: Option<Interruption>,
    /// The step that was started and has no observation yet.
    pub open: Option<Box<Step>>,
}

impl TaskState {
    /// The number of the current attempt, from 1.
    pub fn attempt(&self) -> u32 {
        self.key.map_or(1, |key| key.attempt)
    }

    /// The current tree, if it could be read.
    pub(super) fn tree(&self) -> Option<&Fingerprint> {
        self.current.as_ref().and_then(Snapshot::tree)
    }

    /// Attempts started in all phases.
    pub fn all_attempts(&self) -> u32 {
        self.attempts.values().sum()
    }

    /// Nudges given in all phases.
    pub fn all_nudges(&self) -> u32 {
        self.nudges_elsewhere.values().sum::<u32>() + self.nudges
    }

    /// The agent's role in the current phase.
    pub fn role(&self) -> Role {
        self.key.map_or(Role::Implementer, TurnKey::role)
    }

    /// Whether the open or last turn is for the structured output alone.
    pub fn is_asked_for_output(&self) -> bool {
        let kind = NudgeKind::Output;
        matches!(&self.purpose, Some(TurnPurpose::Nudge { kind: asked, .. }) if *asked == kind)
    }

    /// The results of the attempts of the current phase.
    pub fn history_of_phase(&self) -> impl Iterator<Item = &HistoryEntry> {
        let all = self.history.iter();
        all.filter(|entry| entry.phase == self.counted)
    }

    /// The number of turns started.
    pub fn turns(&self) -> u32 {
        self.key.map_or(0, |key| key.turn)
    }

    /// Applies one record to the state.
    pub fn apply(&mut self, record: &Record) {
        match record {
            Record::Intent { step, .. } => self.intend(step),
            Record::Observed { observation, .. } => self.observe(observation),
            Record::Finished { .. } => {}
        }
    }

    fn intend(&mut self, step: &Step) {
        if let Step::RunAgent { key, purpose } = step {
            self.note_refusal(purpose);
            let is_moved = self.key.is_some_and(|last| last.phase != key.phase);
            let joins = key.name.is_some_and(|name| name.phase == Phase::Test);
            if let Some(from) = self.key.filter(|_| is_moved) {
                // The counts go on when a retry returns to a phase.
                self.nudges_elsewhere.insert(from.phase, self.nudges);
                self.nudges = self.nudges_elsewhere.remove(&key.phase).unwrap_or(0);
                self.begin_phase(purpose);
            }
            if key.attempt != self.attempt() || self.key.is_none() || (is_moved && !joins) {
                self.shown_unchanged = false;
                self.hook_changed = false;
                self.waits = 0;
            }
            self.count_attempt(key);
            if self.key.is_none_or(|last| last.turn != key.turn) {
                self.turn_start = None;
            }
            if let TurnPurpose::Nudge { n, kind } = purpose {
                self.nudges = *n;
                self.shown_unchanged |= kind.shows_unchanged();
            }
            self.key = Some(*key);
            self.purpose = Some(purpose.clone());
        }
        self.open = Some(Box::new(step.clone()));
    }

    /// Resets the counters of a phase. A phase that a retry returns to, or that joins the previous one, keeps
    /// its counters.
    fn begin_phase(&mut self, purpose: &TurnPurpose) {
        self.shown_unchanged = false;
        self.lost_turns = 0;
        self.undone = false;
        let TurnPurpose::Phase { phase, grounds } = purpose else {
            return;
        };
        self.grounds = grounds.or(self.grounds);
        if *phase == Phase::Review {
            self.review = None;
            self.accepted = None;
        }
        if *phase == Phase::Green {
            let digest = &self.tests.digest;
            self.red_tests.get_or_insert_with(|| digest.clone());
        }
        if *phase != Phase::Test {
            self.failed_trees.clear();
            self.failure = None;
            self.idle_cuts = 0;
            self.phase_start.clone_from(&self.current);
        }
    }

    fn count_attempt(&mut self, key: &TurnKey) {
        self.begun.insert(key.phase);
        let work = Some((1, Phase::Implement));
        let Some(counted) = key.name.map_or(work, PhaseName::counted_in) else {
            return;
        };
        self.attempts.insert(counted, key.attempt);
        let name = key.name.filter(|name| name.phase != Phase::Test);
        self.counted = name.or(self.counted);
    }

    fn observe(&mut self, observation: &Observation) {
        match observation {
            Observation::TaskStarted { start, elapsed_ms } => {
                self.elapsed_ms = *elapsed_ms;
                self.task_start = Some(start.clone());
                self.phase_start = Some(start.clone());
                self.current = Some(start.clone());
                return;
            }
            Observation::TurnStarted { before } => {
                self.turn_start.get_or_insert_with(|| before.clone());
                return;
            }
            Observation::TurnEnded(turn) => self.turn_ended(turn),
            Observation::Verified(ended) => self.verified(ended),
            Observation::Proved(proved) => self.proved(proved),
            Observation::Undone {
                after,
                changes,
                tests,
            } => {
                self.current = Some(after.clone());
                self.changes.clone_from(changes);
                self.tests.clone_from(tests);
                self.undone = true;
                self.last = Last::Undone;
            }
            Observation::Committed { commit } => {
                let grounds = match self.open.as_deref() {
                    Some(Step::Commit { grounds }) => *grounds,
                    _ => Grounds::Passed,
                };
                self.last = Last::Committed(commit.clone(), grounds);
            }
            Observation::HookRejected {
                message,
                of_message,
            } => self.hook_rejected(message, *of_message),
            Observation::HookChangedTree { after } => {
                let again = std::mem::replace(&mut self.hook_changed, true);
                self.current = Some(after.clone());
                if self.accepted.is_some() {
                    self.accepted = after.tree().cloned();
                }
                self.last = Last::HookChanged { again };
            }
            Observation::CommitFailed { message } => {
                self.last = Last::CommitFailed(message.clone());
            }
            Observation::Violated { what } => self.last = Last::Violated(what.clone()),
            Observation::Waited => {
                self.waits += 1;
                self.last = Last::Waited;
            }
            Observation::CommitPrepared { commit } => {
                self.prepared = Some(commit.clone());
                return;
            }
            Observation::Interrupted { by, spend } => {
                self.spend.add(spend);
                // The step stays open: a resumed run continues it.
                self.interrupted = Some(*by);
                return;
            }
            Observation::Resumed => return self.resumed(),
        }
        self.prepared = None;
        self.open = None;
    }

    fn hook_rejected(&mut self, message: &str, of_message: bool) {
        self.rejected.clone_from(&self.current);
        self.refused_message = of_message.then(|| self.suggested.clone().unwrap_or_default());
        self.hook_message = Some(message.to_owned());
        self.last_failure = None;
        self.record_attempt(AttemptOutcome::CommitRejected, &said_by_hook(message));
        self.last = Last::HookRejected(message.to_owned());
    }

    fn resumed(&mut self) {
        self.interrupted = None;
        self.prepared = None;
        self.judged = None;
        self.ask_again_for_what_was_missing();
        let open = self.open.take();
        match (open, &self.last) {
            // The tree may be readable by now, and no permit exists for it yet; a missing program may be there.
            (open, Last::Verified(purpose, ended))
                if ended.passed_unread() || (open.is_none() && ended.cannot_start()) =>
            {
                self.last = Last::Resumed(Box::new(Step::Verify { purpose: *purpose }));
            }
            // The observation that led to the proof or commit is still the last one: it leads to the same
            // step again, once the work tree is restored.
            (Some(step), _) => match *step {
                Step::Prove { .. } | Step::Undo { .. } | Step::Commit { .. } => {}
                _ => self.last = Last::Resumed(step),
            },
            // Whoever resumes the run has dealt with the agent's problem or has waited long enough.
            (None, Last::Turn(turn)) if turn.assessment.kind.is_agent_unavailable() => {
                self.waits = 0;
                self.idle_cuts = 0;
                self.last = Last::Waited;
            }
            (None, _) => {}
        }
    }

    /// When a missing program ended the task, the resumed task looks for the program again.
    fn ask_again_for_what_was_missing(&mut self) {
        let ended_by_it = match &self.last {
            Last::Begin => true,
            Last::Verified(_, ended) => ended.cannot_start(),
            _ => false,
        };
        if ended_by_it && matches!(self.proofs.baseline, Some(ProofResult::CannotStart { .. })) {
            self.proofs.baseline = None;
        }
    }

    fn proved(&mut self, proved: &Proved) {
        self.elapsed_ms = proved.elapsed_ms;
        let is_that = |failed: &&FailedTree| Some(&failed.tree) == proved.tree.as_ref();
        let failed = self.failed_trees.iter().find(is_that);
        let failed = failed.map_or(&[][..], |tree| tree.verification.failed.as_slice());
        self.proofs.take(proved, failed);
        if proved.proof == Proof::Flake {
            self.verifications += 1;
            self.judged.clone_from(&proved.tree);
            self.has_passed = proved.result == ProofResult::Passed;
        }
    }

    fn turn_ended(&mut self, turn: &Arc<TurnEnded>) {
        // A hook that refused the message may accept another one for the same files.
        let is_other = turn.suggested.is_some() && turn.suggested != self.refused_message;
        if self.refused_message.is_some() && is_other {
            self.rejected = None;
        }
        self.suggested.clone_from(&turn.suggested);
        self.current = Some(turn.after.clone());
        self.changes.clone_from(&turn.changes);
        self.tests.clone_from(&turn.tests);
        self.held.extend(turn.held.clone());
        self.spend.add(&turn.spend);
        self.elapsed_ms = turn.elapsed_ms;
        let start = self.turn_start.as_ref();
        let is_idle = start.and_then(|start| start.same_as(&turn.after)) == Some(true);
        self.idle_cuts = match turn.assessment.cut_off {
            Some(_) if is_idle => self.idle_cuts + 1,
            _ => 0,
        };
        let question = turn.assessment.question_of_fact();
        self.asks_again = question.is_some() && question == self.asks;
        self.asks = question;
        self.heard(turn);
        if self.role() != Role::Reviewer {
            let exit = turn.assessment.error_exit.map(|code| code.to_string());
            self.last_error = exit.or_else(|| turn.assessment.last_error.clone());
        }
        self.last = Last::Turn(Arc::clone(turn));
        let outcome = match turn.assessment.kind {
            AssessmentKind::AgentCrashed if is_idle => AttemptOutcome::NoChange,
            AssessmentKind::AgentCrashed => AttemptOutcome::AgentCrashed,
            AssessmentKind::TurnTimeout => AttemptOutcome::TimedOut,
            _ => return,
        };
        // The attempt belongs to the work under review, which has not changed.
        if self.role() == Role::Reviewer {
            self.lost_turns += 1;
        } else {
            self.record_attempt(outcome, std::slice::from_ref(&turn.assessment.detail));
        }
    }

    /// Records the agent's message, when a task has several phases or must return a value.
    fn heard(&mut self, turn: &TurnEnded) {
        if let (Some(review), Some(name)) = (&turn.review, self.key.and_then(|key| key.name)) {
            take_review(&mut self.findings, name.cycle, review);
            self.lost_turns += u32::from(review.is_silent());
            self.review = Some(review.clone());
            let accepts = review.verdict == ReviewVerdict::Acceptable;
            self.accepted = turn.after.tree().filter(|_| accepts).cloned();
        }
        if turn.output.is_some() {
            self.output.clone_from(&turn.output);
        }
        let Some(message) = &turn.message else { return };
        if self.role() == Role::Reviewer {
            return;
        }
        if !self.is_asked_for_output() {
            self.answer = Some(message.clone());
        }
        // The commit is about the task, and not about its improvement, which may yet be undone.
        let phase = self.key.and_then(|key| key.name).map(|name| name.phase);
        let is_about_work = self.role() != Role::Tester && phase != Some(Phase::Refactor);
        if is_about_work && suggested_commit_message(message).is_some() {
            self.suggestion = Some(message.clone());
        }
    }

    fn verified(&mut self, ended: &Arc<VerificationEnded>) {
        self.verifications += 1;
        self.elapsed_ms = ended.elapsed_ms;
        self.current = Some(ended.after.clone());
        self.tests.clone_from(&ended.tests);
        self.reported.clone_from(&ended.reported);
        self.signals.clone_from(&ended.signals);
        self.judged = ended.judged().cloned();
        self.has_passed = ended.verdict == Verdict::Passed;
        let purpose = match self.open.as_deref() {
            Some(Step::Verify { purpose, .. }) => *purpose,
            _ => VerifyPurpose::Attempt,
        };
        match &ended.verdict {
            Verdict::Failed { fingerprint, .. } => {
                self.remember_failed_trees(ended);
                // A verdict that covers two trees is repeated, and counts then.
                if ended.judged().is_some() || purpose == VerifyPurpose::Recheck {
                    let known = self
                        .failure
                        .as_ref()
                        .filter(|(last, _)| last == fingerprint);
                    self.failure = Some((fingerprint.clone(), known.map_or(1, |(_, n)| n + 1)));
                }
            }
            Verdict::TimedOut { .. } => self.failure = None,
            Verdict::CannotStart { .. } => {
                self.remember_failed_trees(ended);
                self.failure = None;
            }
            Verdict::Passed | Verdict::Aborted | Verdict::NotRun => {}
        }
        if let Some(outcome) = ended.verdict.outcome() {
            let has_failed = outcome != AttemptOutcome::Passed;
            self.record_attempt(outcome, if has_failed { &ended.errors } else { &[] });
            if has_failed {
                self.proofs.passed_again = None;
                self.last_failure = Some(Arc::clone(ended));
                self.hook_message = None;
            }
        }
        self.last = Last::Verified(purpose, Arc::clone(ended));
    }

    /// Records both the tree that the checks saw and the tree that they left as failed: checks may rewrite a
    /// lock file, and an idle agent then leaves exactly that tree.
    fn remember_failed_trees(&mut self, ended: &Arc<VerificationEnded>) {
        let attempt = self.attempt();
        let trees = [ended.before.tree(), ended.after.tree()];
        for tree in trees.into_iter().flatten() {
            if !self.failed_trees.iter().any(|failed| &failed.tree == tree) {
                self.failed_trees.push(FailedTree {
                    attempt,
                    tree: tree.clone(),
                    verification: Arc::clone(ended),
                });
            }
        }
    }

    fn record_attempt(&mut self, outcome: AttemptOutcome, errors: &[String]) {
        let is_read = self.current.is_none() || self.tree().is_some();
        let unknown = || vec![UNKNOWN_CHANGES.to_owned()];
        let entry = HistoryEntry {
            attempt: self.attempt(),
            changes: if is_read {
                self.changes.clone()
            } else {
                unknown()
            },
            outcome,
            errors: errors.iter().take(2).cloned().collect(),
            phase: self.counted,
        };
        match self.history.last_mut() {
            // What was undone failed, whatever the checks say of the rest.
            Some(last) if last.attempt == entry.attempt && last.phase == entry.phase => {
                if !self.undone || outcome != AttemptOutcome::Passed {
                    *last = entry;
                }
            }
            _ => self.history.push(entry),
        }
    }
}

#[cfg(test)]
mod tests;
