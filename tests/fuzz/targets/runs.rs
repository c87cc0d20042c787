//! What runs leave: run directories of somebody else, and reports made of them.

use super::text;

use sprag::domain::attempt::{PhaseSpec, Policy, Spend, Step, decide, fold};
use sprag::domain::event::Event;
use sprag::domain::kept_work::KeptMeta;
use sprag::domain::notes::Notebook;
use sprag::domain::outcomes::RunLine;
use sprag::domain::settings::choice::{
    Baseline, KnownFailures, ProveNewTests, SignalPolicy, TestChangePolicy,
};
use sprag::domain::summary::RunSummary;

use sprag::report::html::Sources;
use sprag::report::markdown::{self, CHECK_RUN_BYTES, COMMENT_BYTES, ReportContext};
use sprag::report::{Format, check_annotation, outputs, render};
use sprag::run::state::directory::HistoryLine;
use sprag::run::state::untrusted_run::read;
use sprag::secrets::redact::Redactor;
use std::fs;

const SECRET: &str = "kept-secret-0123456789";

/// A run directory of another job.
pub(super) fn untrusted_run(data: &[u8]) {
    let dir = tempfile::tempdir().expect("a directory");
    fs::write(dir.path().join("summary.json"), data).expect("a file");
    fs::write(dir.path().join("work.bundle"), "").expect("a file");
    if let Ok(found) = read(dir.path(), &Redactor::new([SECRET])) {
        let written = serde_json::to_string(&found.summary).expect("a summary is written");
        assert!(!written.contains(SECRET), "{written}");
        shown(&found.summary);
    }
}

/// A summary, in every form.
pub(super) fn report(data: &[u8]) {
    if let Ok(summary) = serde_json::from_slice::<RunSummary>(data) {
        shown(&summary);
    }
}

fn shown(summary: &RunSummary) {
    let around = ReportContext::default();
    for budget in [0, 300, 3_000, 60_000] {
        within(&markdown::step_summary(summary, budget), budget);
    }
    within(&markdown::comment(summary, &around), COMMENT_BYTES);
    within(
        &markdown::status_comment(Some(summary), &around),
        COMMENT_BYTES,
    );
    let (_, text) = markdown::pull_request(summary, &around);
    within(&text, COMMENT_BYTES);
    let check = markdown::check_run(summary, &around);
    within(&check.summary, CHECK_RUN_BYTES);
    within(&check.text, CHECK_RUN_BYTES);
    let (notes, _) = check_annotation::check_annotations(summary);
    assert!(notes.iter().all(|note| note.message.len() <= 64 << 10));
    let _ = outputs::one_line(summary);
    for format in [Format::Md, Format::Html, Format::Json] {
        let _ = render(summary, &Sources::default(), format);
    }
}

/// Markdown of at most so many bytes, in which every fence is closed.
fn within(markdown: &str, budget: usize) {
    assert!(
        markdown.len() <= budget,
        "{} of {budget} bytes",
        markdown.len()
    );
    let mut fence: Option<usize> = None;
    for line in markdown.lines() {
        let line = line.trim();
        let ticks = line.chars().take_while(|&c| c == '`').count();
        let is_bare = line.len() == ticks;
        fence = match fence {
            Some(open) if ticks >= open && is_bare => None,
            None if ticks >= 3 && !line.trim_start_matches('`').contains('`') => Some(ticks),
            other => other,
        };
    }
    assert!(
        fence.is_none() || budget < 1_000,
        "an open fence:\n{markdown}"
    );
}

/// The history of a run that is taken up.
pub(super) fn history(data: &[u8]) {
    let text = text(data);
    let lines = text.lines().map(serde_json::from_str::<HistoryLine>);
    let records: Vec<_> = lines.map_while(|line| Some(line.ok()?.record)).collect();
    let policy = policy();
    for end in 0..=records.len() {
        let state = fold(records.iter().take(end));
        let step = decide(&policy, &state);
        let written = serde_json::to_string(&step).expect("a step is written");
        let again: Step = serde_json::from_str(&written).expect("a step is read again");
        assert_eq!(again, step);
    }
}

fn policy() -> Policy {
    Policy {
        phases: vec![PhaseSpec {
            retries: 2,
            nudges: 2,
            ..PhaseSpec::PLAIN
        }],
        identical_failures: 2,
        waits: 2,
        only_checks: false,
        is_question: false,
        has_checks: true,
        accept_unverified: false,
        baseline: Baseline::OnFailure,
        flaky_reruns: 1,
        known_failures: KnownFailures::Fail,
        test_changes: TestChangePolicy::Prove,
        prove_new_tests: ProveNewTests::Off,
        signals: SignalPolicy::Report,
        commits: true,
        wants_output: false,
        max_tokens: Some(1_000_000),
        max_cost_usd: Some(10.0),
        spent_before: Spend::default(),
        deadline_ms: None,
        wait_base_ms: 1_000,
    }
}

/// The events of a run that is taken up, or brought together with others.
pub(super) fn events(data: &[u8]) {
    let text = text(data);
    let lines = text.lines().map(serde_json::from_str::<Event>);
    let events: Vec<Event> = lines.map_while(Result::ok).collect();
    shown(&RunSummary::of(&events));
}

/// Files and lines of a few fields.
pub(super) fn small_files(data: &[u8]) {
    let _ = KeptMeta::read(data);
    let _ = Notebook::read(data, "plan");
    let text = text(data);
    if let Some(line) = RunLine::read(&text) {
        let marker = line.marker();
        assert_eq!(marker.matches("-->").count(), 1, "{marker}");
    }
}
