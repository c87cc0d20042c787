//! Sample runs for the tests of the reports.

mod events;
mod github;

pub use events::{agent_events, every_event, nudge, pushed};
pub use github::{context, every_text, github_runs, live};

use crate::domain::agent::Usage;
use crate::domain::assess::AssessmentKind;
use crate::domain::assess::message::FailedReport;
use crate::domain::checks::Said;
use crate::domain::checks::counts::Counts;
use crate::domain::checks::diagnostic::Diagnostic;
use crate::domain::checks::verdict::{CheckKind, CheckOutcome, CheckResult};
use crate::domain::event::{
    Event, EventKind, EventPlace, PlanLine, RetryKind, RetryLine, RunFacts, RunStarted, TaskEnded,
    TaskLine, TaskWork, TurnLine,
};
use crate::domain::history::{AttemptOutcome, HistoryEntry};
use crate::domain::outcome::{Outcome, run_end};
use crate::domain::settings::OnFinding;
use crate::domain::snapshot::{Fingerprint, Head, KnownSnapshot, RevId, Snapshot};
use crate::domain::summary::RunSummary;
use std::io::{self, Write};
use std::sync::{Arc, Mutex};

pub const BASE: &str = "5f0c1d2e3a4b5968778695a4b3c2d1e0f9a8b7c6";

/// The bytes that a reporter wrote.
#[derive(Clone, Default)]
pub struct Sink(Arc<Mutex<Vec<u8>>>);

impl Sink {
    pub fn text(&self) -> String {
        String::from_utf8(self.bytes()).unwrap()
    }

    pub fn bytes(&self) -> Vec<u8> {
        self.0.lock().unwrap().clone()
    }
}

impl Write for Sink {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(text);
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// How long each turn and each check of a sample takes.
const TURN_MS: u64 = 41_000;
const CHECK_MS: u64 = 8_300;

/// An event without a task.
pub fn event(seq: u64, kind: EventKind) -> Event {
    Event {
        seq,
        ts: "2026-03-01T12:00:00Z".into(),
        elapsed_ms: seq * 1_000,
        place: EventPlace::default(),
        kind,
    }
}

pub fn warning(message: &str) -> EventKind {
    EventKind::Warning {
        message: message.into(),
        topic: None,
    }
}

/// A recorder of a run's events.
pub struct EventRecorder {
    pub events: Vec<Event>,
    at: (Option<String>, Option<u32>, Option<u32>),
    outcomes: Vec<Outcome>,
    nudges: u32,
    /// The time since the run started, and when the task did, so that the parts add up to the whole.
    clock_ms: u64,
    task_started_ms: u64,
}

impl EventRecorder {
    pub fn new(titles: &[&str], checks: &[&str]) -> Self {
        let tasks = titles.iter().zip(1u32..).map(|(title, n)| TaskLine {
            id: format!("t{n}"),
            title: (*title).into(),
            done: false,
            selected: true,
            line: Some(n * 4),
            max_retries: 3,
        });
        let facts = RunFacts {
            run_id: "01H-run".into(),
            plan: PlanLine {
                title: "CSV export".into(),
                path: Some("plans/csv.yaml".into()),
            },
            branch: Some("feature/csv".into()),
            base: Some(BASE.into()),
            agent: "codex".into(),
            checks: checks.iter().map(|&name| name.into()).collect(),
            run_dir: "/runs/01H-run".into(),
            ..RunFacts::default()
        };
        let started = RunStarted {
            facts,
            tasks: tasks.collect(),
            ..RunStarted::default()
        };
        let at = (None, None, None);
        let mut recorder = Self {
            events: Vec::new(),
            at,
            outcomes: Vec::new(),
            nudges: 0,
            clock_ms: 0,
            task_started_ms: 0,
        };
        recorder.push(EventKind::RunStarted(Box::new(started)));
        recorder
    }

    pub fn push(&mut self, kind: EventKind) -> &mut Self {
        let seq = self.events.len() as u64 + 1;
        let (task, attempt, turn) = self.at.clone();
        self.clock_ms += match &kind {
            EventKind::TurnEnded { .. } => TURN_MS,
            EventKind::CheckEnded(_) => CHECK_MS,
            _ => 100,
        };
        let place = EventPlace {
            task,
            attempt,
            turn,
            ..EventPlace::default()
        };
        self.events.push(Event {
            place,
            elapsed_ms: self.clock_ms,
            ..event(seq, kind)
        });
        self
    }

    pub fn task(&mut self, id: &str, title: &str) -> &mut Self {
        self.at = (Some(id.into()), None, None);
        self.nudges = 0;
        self.task_started_ms = self.clock_ms;
        self.push(EventKind::TaskStarted {
            title: title.into(),
        })
    }

    pub fn turn(&mut self, attempt: u32, assessment: AssessmentKind, said: &[&str]) -> &mut Self {
        let turn = self.at.2.unwrap_or(0) + 1;
        self.at.1 = Some(attempt);
        self.at.2 = Some(turn);
        let purpose = match (turn, self.nudges) {
            (1, _) => "implement",
            (_, 0) => "retry",
            _ => "nudge",
        };
        let changed = assessment == AssessmentKind::Changed;
        self.push(EventKind::TurnStarted {
            purpose: purpose.into(),
            agent: "codex".into(),
            prompt: format!("prompts/{turn:02}.md"),
        });
        self.push(EventKind::TurnEnded {
            exit: "code 0".into(),
            elapsed_ms: TURN_MS,
            usage: None,
        });
        self.push(EventKind::TurnAssessed(Box::new(TurnLine {
            purpose: purpose.into(),
            assessment,
            indicators: said.iter().map(|&text| text.into()).collect(),
            detail: "told from the repository".into(),
            before: (&snapshot("a", false)).into(),
            after: (&snapshot(if changed { "b" } else { "a" }, changed)).into(),
            exit: "code 0".into(),
            elapsed_ms: TURN_MS,
            usage: Usage {
                tokens_in: Some(18_400),
                tokens_cached: Some(9_000),
                tokens_out: Some(2_150),
                cost_usd: Some(0.061),
            },
            failed_report: None,
            question: None,
            notes: Vec::new(),
            builtin: None,
        })))
    }

    pub fn check(&mut self, name: &str, failure: Option<(&str, u64)>) -> &mut Self {
        self.push(EventKind::CheckStarted {
            name: name.into(),
            check: CheckKind::Test,
        });
        self.push(EventKind::CheckEnded(Box::new(check(name, failure))))
    }

    pub fn schedule(&mut self, how: RetryKind, n: u32, of: u32, said: &[&str]) -> &mut Self {
        self.nudges = if how == RetryKind::Nudge { n } else { 0 };
        self.push(EventKind::RetryScheduled(Box::new(RetryLine {
            indicators: said.iter().map(|&text| text.into()).collect(),
            ..RetryLine::new(how, n, of, "the tree is unchanged")
        })))
    }

    pub fn end_task(&mut self, outcome: Outcome, history: &[HistoryEntry]) -> &mut Self {
        let undone = outcome.task_end() != crate::domain::outcome::TaskEnd::Done;
        let changed = history.iter().any(|entry| !entry.changes.is_empty());
        let id = self.at.0.clone().unwrap_or_default();
        self.outcomes.push(outcome.clone());
        let changed_files = history.last().map(|entry| entry.changes.clone());
        self.push(EventKind::TaskEnded(Box::new(TaskEnded {
            attempts: self.at.1.unwrap_or(0),
            turns: self.at.2.unwrap_or(0),
            nudges: self.nudges,
            changes_made: changed,
            work: TaskWork {
                verifications: history.len() as u32,
                history: history.to_vec(),
                changed_files: changed_files.unwrap_or_default(),
                patch: (undone && changed).then(|| format!("patches/{id}.patch")),
                ..TaskWork::default()
            },
            elapsed_ms: self.clock_ms - self.task_started_ms,
            ..TaskEnded::without_turns(outcome)
        })))
    }

    pub fn end(&mut self) -> &mut Self {
        self.at = (None, None, None);
        let outcomes: Vec<&Outcome> = self.outcomes.iter().collect();
        let (status, reason) = run_end(&outcomes, OnFinding::Fail);
        self.push(EventKind::RunEnded {
            status,
            reason,
            exit_code: status.exit_code(Some(15)),
            head: Some("9b1e44c0aa27d5f3b6e8c1907f5d2a3e4c6b8d90".into()),
            changed_files: vec!["src/report.rs".into()],
        })
    }

    /// The fold, with the messages that other modules of the domain produce.
    pub fn summary(&self) -> RunSummary {
        let mut summary = RunSummary::of(&self.events);
        for task in &mut summary.tasks {
            for check in &mut task.checks {
                check.detail = if check.passed {
                    "passed"
                } else {
                    "exit code 101"
                }
                .into();
            }
        }
        summary
    }
}

pub fn snapshot(tree: &str, dirty: bool) -> Snapshot {
    Snapshot::Known(Arc::new(KnownSnapshot {
        head: Head::At(RevId(BASE.into())),
        branch: Some("refs/heads/feature/csv".into()),
        tree: Fingerprint(tree.repeat(8)),
        dirty,
    }))
}

pub fn diagnostic(path: &str, line: u32, message: &str) -> Diagnostic {
    Diagnostic {
        path: Some(path.into()),
        line: Some(line),
        message: message.into(),
        source: "cargo test".into(),
        ..Diagnostic::default()
    }
}

pub fn check(name: &str, failure: Option<(&str, u64)>) -> CheckResult {
    let failed = failure.map(|(output, _)| output);
    CheckResult {
        name: name.into(),
        kind: CheckKind::Test,
        outcome: match failure {
            None => CheckOutcome::Passed,
            Some(_) => CheckOutcome::Failed { exit: 101 },
        },
        counts: Counts {
            passed: Some(12),
            failed: Some(failure.map_or(0, |(_, count)| count)),
        },
        said: Said::default(),
        elapsed_ms: CHECK_MS,
        log: Some(format!("verify/01-{name}.log")),
        diagnostics: failed
            .iter()
            .map(|text| diagnostic("src/report.rs", 41, text))
            .collect(),
        failing_tests: Vec::new(),
        results: Default::default(),
        failed_by_run: Vec::new(),
        fingerprint: failed.map(|_| "f".into()),
        excerpt: failed.map_or_else(String::new, |text| {
            format!(
                "running 14 tests\ntest csv::header ... FAILED\n\n---- csv::header ----\n{text}\n"
            )
        }),
        errors: failed.iter().map(|&text| text.into()).collect(),
        refused: None,
    }
}

pub fn attempt(attempt: u32, changes: &[&str], errors: &[&str]) -> HistoryEntry {
    HistoryEntry {
        attempt,
        changes: changes.iter().map(|&path| path.into()).collect(),
        outcome: match errors {
            [] => AttemptOutcome::Passed,
            _ => AttemptOutcome::FailedTests,
        },
        errors: errors.iter().map(|&text| text.into()).collect(),
        phase: None,
    }
}

fn commit(recorder: &mut EventRecorder, id: &str, subject: &str) -> Outcome {
    recorder.push(EventKind::CommitCreated {
        commit: id.into(),
        subject: subject.into(),
        files: vec!["src/report.rs".into()],
    });
    Outcome::Verified {
        commit: Some(RevId(id.into())),
    }
}

const FIRST: &str = "9b1e44c0aa27d5f3b6e8c1907f5d2a3e4c6b8d90";
const PLANNED: [&str; 2] = ["I'll implement the route next", "1. Plan the columns"];
const LEFT: &str = "assertion `left == right` failed: header differs";

pub fn success_recorder() -> EventRecorder {
    let mut recorder =
        EventRecorder::new(&["Serve /report.csv", "Quote fields"], &["build", "test"]);
    recorder
        .task("t1", "Serve /report.csv")
        .turn(1, AssessmentKind::PlanningOnly, &PLANNED)
        .schedule(RetryKind::Nudge, 1, 3, &PLANNED)
        .turn(1, AssessmentKind::Changed, &[])
        .push(EventKind::NudgeResolved { k: 2, of: 4 });
    recorder.check("build", None).check("test", Some((LEFT, 1)));
    recorder.schedule(RetryKind::Retry, 1, 3, &[]);
    recorder
        .turn(2, AssessmentKind::Changed, &[])
        .check("build", None)
        .check("test", None);
    let verified = commit(&mut recorder, FIRST, "Serve reports as CSV");
    recorder.end_task(
        verified,
        &[
            attempt(1, &["src/report.rs"], &[LEFT]),
            attempt(2, &["src/report.rs", "src/csv.rs"], &[]),
        ],
    );
    recorder
        .task("t2", "Quote fields")
        .turn(1, AssessmentKind::Changed, &[])
        .check("test", None);
    let verified = commit(
        &mut recorder,
        "c0ffee1234567890abcdef1234567890abcdef12",
        "Quote CSV fields",
    );
    recorder
        .end_task(verified, &[attempt(1, &["src/csv.rs"], &[])])
        .end();
    recorder
}

pub fn success() -> RunSummary {
    success_recorder().summary()
}

pub fn partial_recorder() -> EventRecorder {
    let titles = ["Serve /report.csv", "Quote fields", "Document the route"];
    let mut recorder = EventRecorder::new(&titles, &["test"]);
    recorder
        .task("t1", titles[0])
        .turn(1, AssessmentKind::Changed, &[])
        .check("test", None);
    let verified = commit(&mut recorder, FIRST, "Serve reports as CSV");
    recorder.end_task(verified, &[attempt(1, &["src/report.rs"], &[])]);
    recorder.task("t2", titles[1]);
    recorder.push(warning("files that the checks left behind: target/out.csv"));
    for n in 1..=2 {
        recorder
            .turn(n, AssessmentKind::Changed, &[])
            .check("test", Some((LEFT, 2)));
        if n == 1 {
            recorder.schedule(RetryKind::Retry, 1, 3, &[]);
        }
    }
    let files = ["src/csv.rs"];
    recorder.end_task(
        Outcome::VerificationFailed,
        &[
            attempt(1, &files, &[LEFT]),
            attempt(2, &files, &[LEFT, "test csv::quote failed"]),
        ],
    );
    recorder.end();
    recorder
}

pub fn partial() -> RunSummary {
    partial_recorder().summary()
}

pub fn blocked() -> RunSummary {
    let mut recorder = EventRecorder::new(&["Serve /report.csv"], &["test"]);
    recorder
        .task("t1", "Serve /report.csv")
        .turn(1, AssessmentKind::FailedReport, &[]);
    let summary = "the schema of the reports table is not in the repository";
    recorder
        .end_task(
            Outcome::FailedReport {
                summary: summary.into(),
            },
            &[],
        )
        .end();
    let mut run = recorder.summary();
    run.tasks[0].failed_report = Some(FailedReport {
        summary: summary.into(),
        requirements: Some("- Serve every report as CSV\n- Keep the order of columns".into()),
        problems: Some("The table `reports` is created by another service.".into()),
        solutions: Some("1. Add the schema under db/\n2. Name the columns in the plan".into()),
    });
    run
}

pub fn planning_recorder() -> EventRecorder {
    let mut recorder = EventRecorder::new(&["Serve /report.csv"], &["test"]);
    recorder
        .task("t1", "Serve /report.csv")
        .turn(1, AssessmentKind::PlanningOnly, &PLANNED);
    for n in 1..=3 {
        recorder.schedule(RetryKind::Nudge, n, 3, &PLANNED);
        recorder.turn(
            1,
            AssessmentKind::PlanningOnly,
            &["Proceeding with the route"],
        );
    }
    recorder.check("test", None);
    recorder.end_task(Outcome::PlanningOnly, &[]).end();
    recorder
}

pub fn planning_only() -> RunSummary {
    planning_recorder().summary()
}

pub fn no_progress_recorder() -> EventRecorder {
    let mut recorder = EventRecorder::new(&["Serve /report.csv"], &["test"]);
    recorder
        .task("t1", "Serve /report.csv")
        .turn(1, AssessmentKind::Changed, &[]);
    recorder
        .check("test", Some((LEFT, 1)))
        .schedule(RetryKind::Retry, 1, 3, &[]);
    recorder.turn(2, AssessmentKind::ClaimsDone, &["All tests pass now"]);
    let message = crate::domain::attempt::NO_FILE_CHANGES;
    recorder.push(EventKind::VerificationSkipped {
        reason: message.into(),
    });
    let outcome = Outcome::NoProgress {
        message: message.into(),
        preflight: true,
        untouched: false,
    };
    recorder
        .end_task(outcome, &[attempt(1, &["src/report.rs"], &[LEFT])])
        .end();
    recorder
}

pub fn no_progress() -> RunSummary {
    no_progress_recorder().summary()
}

pub fn cancelled_recorder() -> EventRecorder {
    let mut recorder = EventRecorder::new(&["Serve /report.csv", "Quote fields"], &["test"]);
    recorder
        .task("t1", "Serve /report.csv")
        .turn(1, AssessmentKind::Changed, &[]);
    recorder.push(EventKind::CancelRequested { signal: 15 });
    let history = [attempt(1, &["src/report.rs"], &[])];
    recorder
        .end_task(Outcome::Cancelled { signal: 15 }, &history)
        .end();
    recorder
}

pub fn cancelled() -> RunSummary {
    cancelled_recorder().summary()
}

pub fn budget() -> RunSummary {
    let mut recorder = EventRecorder::new(&["Serve /report.csv", "Quote fields"], &["test"]);
    recorder
        .task("t1", "Serve /report.csv")
        .turn(1, AssessmentKind::Changed, &[])
        .check("test", None);
    let verified = commit(&mut recorder, FIRST, "Serve reports as CSV");
    recorder.end_task(verified, &[attempt(1, &["src/report.rs"], &[])]);
    recorder
        .task("t2", "Quote fields")
        .turn(1, AssessmentKind::Empty, &[]);
    let message = "the token limit is reached: 41100 of 40000".into();
    recorder.end_task(Outcome::Budget { message }, &[]).end();
    recorder.summary()
}

pub fn unverified() -> RunSummary {
    let mut recorder = EventRecorder::new(&["Serve /report.csv"], &[]);
    recorder
        .task("t1", "Serve /report.csv")
        .turn(1, AssessmentKind::Changed, &[]);
    commit(&mut recorder, FIRST, "Serve reports as CSV");
    let outcome = Outcome::Unverified {
        commit: Some(RevId(FIRST.into())),
        accepted: true,
    };
    recorder
        .end_task(outcome, &[attempt(1, &["src/report.rs"], &[])])
        .end();
    recorder.summary()
}

/// All sample runs by name.
pub fn all() -> Vec<(&'static str, RunSummary)> {
    vec![
        ("success", success()),
        ("partial", partial()),
        ("blocked", blocked()),
        ("planning_only", planning_only()),
        ("no_progress", no_progress()),
        ("cancelled", cancelled()),
        ("budget", budget()),
        ("unverified", unverified()),
    ]
}
