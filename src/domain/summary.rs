//! The only read model of a run: a fold over its events, and the shape of `summary.json`.

mod parts;

use super::agent::{AgentEvent, TodoItem, Usage};
use super::assess::AssessmentKind;
use super::assess::message::FailedReport;
use super::attempt::{BlamedTest, Phase, PhaseName, Proof, ProofLine};
use super::builtin::session::Telemetry;
use super::checks::verdict::{CheckKind, CheckOutcome, CheckResult};
use super::event::{
    Event, EventKind, PushLine, RetryKind, ReviewLine, RunStarted, TaskEnded, TurnLine,
    TurnProgress,
};
use super::notes::Note;
use super::outcome::{Reason, RunStatus, TaskEnd};
use super::review::{self, Finding, ReviewVerdict};
use super::sandbox::SandboxLine;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A run, as far as it has come. Serialised it is `summary.json`, a public interface: fields may be
/// added, none removed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunSummary {
    /// Version of this format.
    pub v: u32,
    /// The run's id.
    pub run_id: String,
    /// The status; `null` while the run is going on.
    pub status: Option<RunStatus>,
    /// The reason code.
    pub reason: Option<Reason>,
    /// The process's exit code.
    pub exit_code: Option<u8>,
    /// Milliseconds.
    pub elapsed_ms: u64,
    /// The branch that is checked out, short.
    pub branch: Option<String>,
    /// HEAD at the end.
    pub head: Option<String>,
    /// HEAD at the beginning.
    pub base: Option<String>,
    /// The plan.
    pub plan: PlanLine,
    /// Where the run is recorded.
    #[serde(default)]
    pub run_dir: String,
    /// The name under which the run is told of on GitHub, such as `Sprag / CI / fix`; absent where GitHub has nothing to do with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What the run may cost, in one line; absent where there is no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<String>,
    /// The agent's name.
    pub agent: String,
    /// The model, where one is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The machine that the run began on, where it has a name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Names of the checks.
    pub checks: Vec<String>,
    /// How far the children of the run were confined; absent where the record does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxLine>,
    /// Files changed by the run.
    pub changed_files: Vec<String>,
    /// Sprag's commits, oldest first.
    pub commits: Vec<String>,
    /// What became of the commits on the remote; absent where nothing was to be pushed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub push: Option<PushLine>,
    /// What a person should know.
    pub warnings: Vec<String>,
    /// What the agents of tasks left for later ones, in the order of time; absent where there is nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Note>,
    /// Tokens and cost of all turns; `null` where unknown.
    pub usage: RunUsage,
    /// Counts over all tasks.
    pub totals: Totals,
    /// Every task of the plan.
    pub tasks: Vec<TaskSummary>,
    /// The task being worked on.
    #[serde(skip)]
    pub current: Option<String>,
    /// The prompt of the turn that was begun last.
    #[serde(skip)]
    pub prompt: Option<String>,
    /// The agent's own list of things to do, as it last stood.
    #[serde(skip)]
    pub todo: Vec<TodoItem>,
    /// How far the turn has come that is going on.
    #[serde(skip)]
    pub turn: Option<Box<TurnProgress>>,
}

/// Which plan.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlanLine {
    /// Its title.
    pub title: String,
    /// Its path; `null` when the plan is a prompt.
    pub path: Option<String>,
}

/// Tokens and cost; `null` where unknown, which is not zero.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunUsage {
    /// Tokens sent.
    pub tokens_in: Option<u64>,
    /// Tokens received.
    pub tokens_out: Option<u64>,
    /// US dollars.
    pub cost_usd: Option<f64>,
}

/// Counts over all tasks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Totals {
    /// Tasks of the plan.
    pub tasks: u32,
    /// Tasks that are done, earlier runs included.
    pub done: u32,
    /// Attempts begun.
    pub attempts: u32,
    /// Retries.
    pub retries: u32,
    /// Nudges.
    pub nudges: u32,
    /// Turns begun.
    pub turns: u32,
    /// Verifications run.
    pub verifications: u32,
    /// Verifications spared.
    pub verifications_skipped: u32,
}

/// One task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskSummary {
    /// Its id.
    pub id: String,
    /// Its title.
    pub title: String,
    /// Where it stands.
    pub status: TaskEnd,
    /// The reason code; `null` for a task that was not reached or was done before.
    pub reason: Option<Reason>,
    /// Sprag's commit.
    pub commit: Option<String>,
    /// Attempts begun.
    pub attempts: u32,
    /// Retries.
    pub retries: u32,
    /// Retries allowed.
    pub max_retries: u32,
    /// Nudges.
    pub nudges: u32,
    /// Its turns.
    pub turns: Vec<TurnSummary>,
    /// What the attempts came to.
    pub history: Vec<HistoryLine>,
    /// Every check run for it, in order, but for those of proofs.
    pub checks: Vec<CheckLine>,
    /// The proofs that were run for it, in order.
    #[serde(default)]
    pub proofs: Vec<ProofLine>,
    /// The tests that failed last, and whom each failure is to be blamed on.
    #[serde(default)]
    pub failing_tests: Vec<BlamedTest>,
    /// What its reviews came to, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reviews: Vec<ReviewSummary>,
    /// What its reviews have found.
    #[serde(default)]
    pub findings: Vec<Finding>,
    /// The agent's `FAILED:` report.
    pub failed_report: Option<FailedReport>,
    /// Whether the task left any change; `null` for a task that was not worked on.
    pub changes_made: Option<bool>,
    /// Files changed by the task.
    pub changed_files: Vec<String>,
    /// One line for a person.
    pub message: String,
    /// The failed work as a patch, relative to the run directory.
    pub patch: Option<String>,
    /// Commits that the agent made itself.
    pub agent_commits: u32,
    /// Verifications run.
    #[serde(default)]
    pub verifications: u32,
    /// Milliseconds.
    pub elapsed_ms: u64,
    /// Tokens and cost of its turns; `null` where unknown.
    #[serde(default)]
    pub usage: RunUsage,
    /// The task's line in the plan file.
    pub line: Option<u32>,
    /// Whether the run was to work on it.
    pub selected: bool,
    /// What is counted in each of its phases.
    #[serde(skip)]
    pub counted: Counted,
}

/// What is counted in each phase of a task. Only the fold needs it, so that two summaries that say the
/// same are equal whatever is in here.
#[derive(Debug, Clone, Default)]
pub struct Counted(BTreeMap<(u32, Phase), PhaseCounts>);

impl PartialEq for Counted {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// What is counted in a phase.
#[derive(Debug, Clone, Copy, Default)]
struct PhaseCounts {
    attempts: u32,
    retries: u32,
    nudges: u32,
}

/// One review.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReviewSummary {
    /// Which review of the task, from 1.
    pub round: u32,
    /// How many there may be.
    pub of: u32,
    /// What it came to.
    pub verdict: ReviewVerdict,
    /// Findings that were open after it.
    pub open: u32,
}

/// One turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TurnSummary {
    /// Its number in the task.
    pub turn: u32,
    /// The attempt that it belongs to; 0 where an older record does not tell.
    #[serde(default)]
    pub attempt: u32,
    /// `implement`, `nudge`, `retry`, or the word of the phase that begins.
    pub purpose: String,
    /// What the agent was told, relative to the run directory; its number is that of the turn's other files too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// Role, cycle and phase, where the task has several phases.
    #[serde(default, flatten, skip_serializing_if = "Option::is_none")]
    pub place: Option<PhaseName>,
    /// What it did.
    pub assessment: AssessmentKind,
    /// The phrases that decided.
    pub indicators: Vec<String>,
    /// One line for a person.
    pub detail: String,
    /// The state before.
    pub before: StateLine,
    /// The state after.
    pub after: StateLine,
    /// How the agent's process ended.
    pub exit: String,
    /// Milliseconds.
    pub elapsed_ms: u64,
    /// Tokens and cost of this turn alone; `null` where unknown.
    #[serde(default)]
    pub usage: RunUsage,
    /// The session of the built-in agent in numbers; other agents have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub builtin: Option<Telemetry>,
}

/// HEAD and tree; all `null` when they could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StateLine {
    /// HEAD's commit.
    pub head: Option<String>,
    /// Fingerprint of the working copy.
    pub tree: Option<String>,
    /// Whether the working copy differs from HEAD.
    pub dirty: Option<bool>,
}

/// One attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HistoryLine {
    /// Its number.
    pub attempt: u32,
    /// Role, cycle and phase, where the task has several phases.
    #[serde(default, flatten, skip_serializing_if = "Option::is_none")]
    pub place: Option<PhaseName>,
    /// Files changed since the task began.
    pub changes: Vec<String>,
    /// How it ended.
    pub outcome: String,
    /// One line for each of the first errors.
    pub errors: Vec<String>,
}

/// One run of a check.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CheckLine {
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: CheckKind,
    /// The attempt that it decided.
    pub attempt: u32,
    /// Whether it passed.
    pub passed: bool,
    /// Tests that passed; `null` when the output does not tell.
    pub passed_count: Option<u64>,
    /// Tests that failed; `null` when the output does not tell.
    pub failed_count: Option<u64>,
    /// Whether it hit its time limit.
    pub timed_out: bool,
    /// Milliseconds.
    pub elapsed_ms: u64,
    /// Its log, relative to the run directory.
    pub log: Option<String>,
    /// When it ended, RFC 3339.
    pub ended_at: String,
    /// How it ended, for a person.
    pub detail: String,
    /// The end of its output when it failed, bounded.
    pub excerpt: Option<String>,
    /// What it said about lines of files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<serde_json::Value>")]
    pub diagnostics: Vec<super::checks::diagnostic::Diagnostic>,
}

impl Default for RunSummary {
    fn default() -> Self {
        Self {
            v: 1,
            run_id: String::new(),
            status: None,
            reason: None,
            exit_code: None,
            elapsed_ms: 0,
            branch: None,
            head: None,
            base: None,
            plan: PlanLine::default(),
            run_dir: String::new(),
            agent: String::new(),
            model: None,
            host: None,
            checks: Vec::new(),
            sandbox: None,
            changed_files: Vec::new(),
            commits: Vec::new(),
            push: None,
            warnings: Vec::new(),
            notes: Vec::new(),
            usage: RunUsage::default(),
            totals: Totals::default(),
            tasks: Vec::new(),
            current: None,
            prompt: None,
            todo: Vec::new(),
            name: None,
            limits: None,
            turn: None,
        }
    }
}

impl RunSummary {
    /// Folds a run's events.
    pub fn of<'a>(events: impl IntoIterator<Item = &'a Event>) -> Self {
        let mut summary = Self::default();
        for event in events {
            summary.apply(event);
        }
        summary
    }

    /// Takes one event in.
    pub fn apply(&mut self, event: &Event) {
        self.elapsed_ms = event.elapsed_ms;
        // A task that is taken up again is not begun once more.
        if event.task.is_some() && !matches!(event.kind, EventKind::TaskEnded(_)) {
            self.current.clone_from(&event.task);
        }
        match &event.kind {
            EventKind::RunStarted(started) => self.started(started),
            EventKind::TaskStarted { .. } => self.task_started(event),
            EventKind::TurnStarted { prompt, .. } => {
                self.prompt = Some(prompt.clone());
                self.turn_started(event);
            }
            EventKind::TurnProgress(progress) => self.turn = Some(progress.clone()),
            EventKind::Agent(AgentEvent::Todo { items }) => self.todo.clone_from(items),
            EventKind::TurnEnded { usage, .. } => {
                self.turn = None;
                self.used(event, usage.as_ref());
            }
            EventKind::TurnAssessed(line) => self.turn_assessed(event, line),
            EventKind::ReviewEnded(line) => self.review_ended(event, line),
            EventKind::CheckEnded(result) => self.check_ended(event, result),
            EventKind::RetryScheduled { how, n, .. } => self.retry_scheduled(event, *how, *n),
            EventKind::ProofEnded(line) => {
                if let Some(task) = self.task_mut(event) {
                    task.proofs.push((**line).clone());
                }
            }
            EventKind::VerificationSkipped { .. } => self.totals.verifications_skipped += 1,
            // A run that died right after it made a commit says so once more.
            EventKind::CommitCreated { commit, .. } if self.commits.contains(commit) => {}
            EventKind::CommitCreated { commit, .. } => self.commits.push(commit.clone()),
            EventKind::AgentCommits { commits } => {
                let count = u32::try_from(commits.len()).unwrap_or(u32::MAX);
                if let Some(task) = self.task_mut(event) {
                    task.agent_commits = count;
                }
            }
            EventKind::PushEnded(push) => self.push_ended(push),
            EventKind::TaskEnded(ended) => self.task_ended(event, ended),
            EventKind::Warning { message } => self.warnings.push(message.clone()),
            EventKind::RunEnded {
                status,
                reason,
                exit_code,
                head,
                changed_files,
            } => {
                self.status = Some(*status);
                self.reason = Some(*reason);
                self.exit_code = Some(*exit_code);
                self.head.clone_from(head);
                self.changed_files.clone_from(changed_files);
                self.current = None;
            }
            EventKind::Agent(_)
            | EventKind::CheckStarted { .. }
            | EventKind::ProofStarted { .. }
            | EventKind::NudgeResolved { .. }
            | EventKind::CommitRejected { .. }
            | EventKind::CancelRequested { .. } => {}
        }
    }

    /// Files changed by the tasks that are done.
    pub fn changed_files_so_far(&self) -> std::collections::BTreeSet<String> {
        let done = self
            .tasks
            .iter()
            .filter(|task| task.status == TaskEnd::Done);
        done.flat_map(|task| task.changed_files.iter().cloned())
            .collect()
    }

    /// The task of that id.
    pub fn task(&self, id: &str) -> Option<&TaskSummary> {
        self.tasks.iter().find(|task| task.id == id)
    }

    fn started(&mut self, started: &RunStarted) {
        self.run_dir.clone_from(&started.run_dir);
        self.name.clone_from(&started.name);
        self.limits.clone_from(&started.limits);
        // Of a run that was taken up the lesser counts.
        let both = self.sandbox.iter().chain(&started.sandbox);
        self.sandbox = both.min_by_key(|line| line.level).cloned();
        if started.resumed && !self.run_id.is_empty() {
            return;
        }
        self.run_id.clone_from(&started.run_id);
        self.branch.clone_from(&started.branch);
        self.base.clone_from(&started.base);
        self.head.clone_from(&started.base);
        self.plan = PlanLine {
            title: started.plan_title.clone(),
            path: started.plan_path.clone(),
        };
        self.agent.clone_from(&started.agent);
        self.model.clone_from(&started.model);
        self.host.clone_from(&started.host);
        self.checks.clone_from(&started.checks);
        self.tasks = started.tasks.iter().map(TaskSummary::from_line).collect();
        self.totals.tasks = count(&self.tasks, |_| true);
        self.totals.done = count(&self.tasks, |task| task.status == TaskEnd::Done);
    }

    /// A task that failed and is taken again has its own counts anew; the run's go on.
    fn task_started(&mut self, event: &Event) {
        self.todo.clear();
        if let Some(task) = self.task_mut(event).filter(|task| task.reason.is_some()) {
            task.begin_anew();
        }
    }

    fn turn_started(&mut self, event: &Event) {
        self.totals.turns += 1;
        // A review belongs to the attempt that it judges.
        let part = match event.phase {
            None => Some((1, Phase::Implement)),
            Some(name) => name.counted_in(),
        };
        let (Some(attempt), Some(part)) = (event.attempt, part) else {
            return;
        };
        let Some(task) = self.task_mut(event) else {
            return;
        };
        let counted = task.counted.0.entry(part).or_default();
        let begun = attempt.saturating_sub(counted.attempts);
        counted.attempts += begun;
        task.attempts += begun;
        self.totals.attempts += begun;
    }

    /// A run that died right after it told of a review tells of it once more.
    fn review_ended(&mut self, event: &Event, line: &ReviewLine) {
        let Some(task) = self.task_mut(event) else {
            return;
        };
        let open = review::open(&line.findings);
        let review = ReviewSummary {
            round: line.round,
            of: line.of,
            verdict: line.verdict,
            open: u32::try_from(open.count()).unwrap_or(u32::MAX),
        };
        task.reviews.retain(|before| before.round != review.round);
        task.reviews.push(review);
        task.findings.clone_from(&line.findings);
    }

    /// A turn that was cut short has no line among the turns, but it has its price.
    fn used(&mut self, event: &Event, usage: Option<&Usage>) {
        let Some(usage) = usage else { return };
        self.usage.add(usage);
        if let Some(task) = self.task_mut(event) {
            task.usage.add(usage);
        }
    }

    fn turn_assessed(&mut self, event: &Event, line: &TurnLine) {
        self.used(event, Some(&line.usage));
        let told = |note: &Note| (note.task.clone(), note.text.clone());
        for note in &line.notes {
            if !self.notes.iter().any(|known| told(known) == told(note)) {
                self.notes.push(note.clone());
            }
        }
        let prompt = self.prompt.take();
        let Some(task) = self.task_mut(event) else {
            return;
        };
        if line.failed_report.is_some() {
            task.failed_report.clone_from(&line.failed_report);
        }
        let attempt = event.attempt.unwrap_or(task.attempts);
        // A run that died right after it told of a turn goes through that turn once more.
        task.turns.retain(|turn| turn.turn != line.turn);
        task.turns
            .push(TurnSummary::new(line, attempt, (prompt, event.phase)));
    }

    fn check_ended(&mut self, event: &Event, result: &CheckResult) {
        // What is run on another tree says nothing about the work.
        let of_work = matches!(event.proof, None | Some(Proof::Flake));
        let ran = of_work && !matches!(result.outcome, CheckOutcome::Skipped { .. });
        let attempt = event.attempt.unwrap_or(1);
        let Some(task) = self.task_mut(event) else {
            return;
        };
        if ran {
            task.checks.push(CheckLine::new(result, attempt, &event.ts));
        }
        let says = !matches!(result.outcome, CheckOutcome::Passed | CheckOutcome::Aborted);
        if ran && says {
            task.judge_session(false);
        }
    }

    /// A run that died right after it told of a retry tells of it once more, by the same number.
    fn retry_scheduled(&mut self, event: &Event, how: RetryKind, n: u32) {
        let id = event.task.as_deref();
        let task = self
            .tasks
            .iter_mut()
            .find(|task| Some(task.id.as_str()) == id);
        let Some(task) = task else { return };
        let (cycle, phase) = match event.phase {
            None => (1, Phase::Implement),
            Some(name) => (name.cycle, name.phase),
        };
        let counted = task.counted.0.entry((cycle, phase)).or_default();
        let (count, of_task, of_run) = match how {
            RetryKind::Nudge => (
                &mut counted.nudges,
                &mut task.nudges,
                &mut self.totals.nudges,
            ),
            RetryKind::Retry => (
                &mut counted.retries,
                &mut task.retries,
                &mut self.totals.retries,
            ),
            RetryKind::Wait => return,
        };
        let more = n.saturating_sub(*count);
        *count += more;
        *of_task += more;
        *of_run += more;
    }

    fn task_ended(&mut self, event: &Event, ended: &TaskEnded) {
        let Some(task) = self.task_mut(event) else {
            return;
        };
        // A task that was stopped and gone on with ends twice, and its second end counts all.
        let before = std::mem::replace(&mut task.verifications, ended.verifications);
        task.status = ended.outcome.task_end();
        task.reason = Some(ended.outcome.reason());
        task.commit = ended.outcome.commit().map(|id| id.0.clone());
        task.message = task.said_of_end(ended);
        task.history = ended.history.iter().map(HistoryLine::from).collect();
        task.changes_made = Some(ended.changes_made);
        task.changed_files.clone_from(&ended.changed_files);
        task.failing_tests.clone_from(&ended.failing_tests);
        task.patch.clone_from(&ended.patch);
        task.agent_commits = ended.agent_commits;
        task.elapsed_ms = ended.elapsed_ms;
        let satisfied = task.reason == Some(Reason::AlreadySatisfied) && !task.checks.is_empty();
        if task.reason == Some(Reason::Verified) || satisfied {
            task.judge_session(true);
        }
        let total = &mut self.totals.verifications;
        *total = total
            .saturating_sub(before)
            .saturating_add(ended.verifications);
        self.totals.done = count(&self.tasks, |task| task.status == TaskEnd::Done);
    }

    /// Commits that were made anew are known by their new ids from then on.
    fn push_ended(&mut self, push: &PushLine) {
        let now = |id: &String| match push.rebased.iter().find(|line| line.old == *id) {
            Some(line) => line.new.clone(),
            None => Some(id.clone()),
        };
        // Also where another branch or a file has them.
        self.commits = self.commits.iter().filter_map(now).collect();
        for task in &mut self.tasks {
            task.commit = task.commit.as_ref().and_then(now);
        }
        self.push = Some(push.clone());
    }

    fn task_mut(&mut self, event: &Event) -> Option<&mut TaskSummary> {
        let id = event.task.as_deref()?;
        self.tasks.iter_mut().find(|task| task.id == id)
    }
}

fn count(tasks: &[TaskSummary], wanted: impl Fn(&TaskSummary) -> bool) -> u32 {
    u32::try_from(tasks.iter().filter(|task| wanted(task)).count()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
