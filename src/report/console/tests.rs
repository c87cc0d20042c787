mod terminal;

use super::*;
use crate::domain::agent::AgentEvent;
use crate::domain::assess::AssessmentKind;
use crate::domain::event::RetryKind;
use crate::report::samples::{self, EventRecorder, Sink};
use crate::report::text;
use proptest::prelude::*;
use std::sync::{Arc, Mutex};
use terminal::Terminal;

fn log(events: &[Event], style: &Style) -> String {
    let mut summary = RunSummary::default();
    let mut all = Vec::new();
    for event in events {
        summary.apply(event);
        all.extend(lines(event, &summary, style));
    }
    all.join("\n")
}

fn with(verbosity: Verbosity) -> Style {
    Style {
        verbosity,
        ..Style::default()
    }
}

#[test]
fn a_good_run_says_what_was_done() {
    insta::assert_snapshot!(log(&samples::success_recorder().events, &Style::default()), @r#"
    Sprag: CSV export · 2 tasks · agent codex · checks build, test · branch feature/csv
    run 01H-run is recorded in /runs/01H-run

    [1/2] t1 Serve /report.csv
      turn 1 (implement): codex is working
      turn 1: planned, changed nothing (41s)
      nudge 1 of 3: Implementer appears to have planned but not executed
        "I'll implement the route next"
        "1. Plan the columns"
      turn 2 (nudge): codex is working
      turn 2: changed files (41s)
      Planning without changes resolved on attempt 2/4
      check build: running
      check build passed: 12 passed (8.3s)
      check test: running
      check test failed with exit code 101: 1 failed, 12 passed (8.3s)
        assertion `left == right` failed: header differs
        log: verify/01-test.log
      retry 1 of 3
      turn 3 (retry): codex is working
      turn 3: changed files (41s)
      check build: running
      check build passed: 12 passed (8.3s)
      check test: running
      check test passed: 12 passed (8.3s)
      committed 9b1e44c0aa27 Serve reports as CSV (1 file)
    ✓ t1 done: checks passed, committed 9b1e44c0aa27 · 2 attempts, 3 turns, 2m 37s

    [2/2] t2 Quote fields
      turn 1 (implement): codex is working
      turn 1: changed files (41s)
      check test: running
      check test passed: 12 passed (8.3s)
      committed c0ffee123456 Quote CSV fields (1 file)
    ✓ t2 done: checks passed, committed c0ffee123456 · 1 attempt, 1 turn, 49s

    ✓ Sprag: success (verified): 2 of 2 tasks done in 3m 27s · 73.6k in (36.0k cached) / 8.6k out tokens, $0.24
      ✓ t1 Serve /report.csv: done: checks passed, committed 9b1e44c0aa27
      ✓ t2 Quote fields: done: checks passed, committed c0ffee123456
      Done:
        2 commits on feature/csv
      Report: /runs/01H-run/report.html
    "#);
}

#[test]
fn a_failed_run_says_what_was_kept_and_what_to_type() {
    insta::assert_snapshot!(log(&samples::partial_recorder().events, &Style::default()), @r"
    Sprag: CSV export · 3 tasks · agent codex · checks test · branch feature/csv
    run 01H-run is recorded in /runs/01H-run

    [1/3] t1 Serve /report.csv
      turn 1 (implement): codex is working
      turn 1: changed files (41s)
      check test: running
      check test passed: 12 passed (8.3s)
      committed 9b1e44c0aa27 Serve reports as CSV (1 file)
    ✓ t1 done: checks passed, committed 9b1e44c0aa27 · 1 attempt, 1 turn, 49s

    [2/3] t2 Quote fields
    warning: files that the checks left behind: target/out.csv
      turn 1 (implement): codex is working
      turn 1: changed files (41s)
      check test: running
      check test failed with exit code 101: 2 failed, 12 passed (8.3s)
        assertion `left == right` failed: header differs
        log: verify/01-test.log
      retry 1 of 3
      turn 2 (retry): codex is working
      turn 2: changed files (41s)
      check test: running
      check test failed with exit code 101: 2 failed, 12 passed (8.3s)
        assertion `left == right` failed: header differs
        log: verify/01-test.log
    ✗ t2 failed (verification_failed): the checks still fail and no retry is left · 2 attempts, 2 turns, 1m 39s

    ✗ Sprag: partial (verification_failed): 1 of 3 tasks done, t2 failed in 2m 29s · 55.2k in (27.0k cached) / 6.4k out tokens, $0.18
      ✓ t1 Serve /report.csv: done: checks passed, committed 9b1e44c0aa27
      ✗ t2 Quote fields: failed (verification_failed): the checks still fail and no retry is left
          check test: src/report.rs:41: assertion `left == right` failed: header differs
          log: /runs/01H-run/verify/01-test.log
      · t3 Document the route: pending: not reached
      Kept:
        1 commit on feature/csv
        the work of t2 as a patch: /runs/01H-run/patches/t2.patch
        the changes of t2 are still in the work tree, not committed
      Next:
        look at the failing check: its log is in the run directory
        continue from here:
          sprag run --resume 01H-run
        apply the unfinished work to a clean checkout:
          git apply /runs/01H-run/patches/t2.patch
        discard the unfinished work here; the patch keeps it:
          git apply -R /runs/01H-run/patches/t2.patch
      Report: /runs/01H-run/report.html
    ");
}

#[test]
fn planning_is_named_with_what_shows_it() {
    insta::assert_snapshot!(log(&samples::planning_recorder().events, &Style::default()), @r#"
    Sprag: CSV export · 1 task · agent codex · checks test · branch feature/csv
    run 01H-run is recorded in /runs/01H-run

    [1/1] t1 Serve /report.csv
      turn 1 (implement): codex is working
      turn 1: planned, changed nothing (41s)
      nudge 1 of 3: Implementer appears to have planned but not executed
        "I'll implement the route next"
        "1. Plan the columns"
      turn 2 (nudge): codex is working
      turn 2: planned, changed nothing (41s)
      nudge 2 of 3: Implementer appears to have planned but not executed
        "I'll implement the route next"
        "1. Plan the columns"
      turn 3 (nudge): codex is working
      turn 3: planned, changed nothing (41s)
      nudge 3 of 3: Implementer appears to have planned but not executed
        "I'll implement the route next"
        "1. Plan the columns"
      turn 4 (nudge): codex is working
      turn 4: planned, changed nothing (41s)
      check test: running
      check test passed: 12 passed (8.3s)
    ✗ t1 failed (planning_only): the agent planned and never changed a file; every check passes · 1 attempt, 4 turns, 2m 53s

    ✗ Sprag: failed (planning_only): 0 of 1 task done in 2m 53s · 73.6k in (36.0k cached) / 8.6k out tokens, $0.24
      ✗ t1 Serve /report.csv: failed (planning_only): the agent planned and never changed a file; every check passes
      Next:
        say in the task which files to change and how, or try another model; if nothing needs to change, use --if-no-changes ok
        continue from here:
          sprag run --resume 01H-run
      Report: /runs/01H-run/report.html
    "#);
}

#[test]
fn no_progress_and_cancel_have_the_sentences_of_the_contract() {
    let log = |recorder: EventRecorder| log(&recorder.events, &Style::default());
    assert!(
        log(samples::no_progress_recorder())
            .contains("\n  No progress detected - agent made no file changes\n")
    );
    insta::assert_snapshot!(log(samples::cancelled_recorder()), @r"
    Sprag: CSV export · 2 tasks · agent codex · checks test · branch feature/csv
    run 01H-run is recorded in /runs/01H-run

    [1/2] t1 Serve /report.csv
      turn 1 (implement): codex is working
      turn 1: changed files (41s)
    SIGTERM received: stopping; a second signal ends at once
    · t1 pending (cancelled): cancelled by SIGTERM · 1 attempt, 1 turn, 41s

    ■ Sprag: cancelled (cancelled): 0 of 2 tasks done in 41s · 18.4k in (9.0k cached) / 2.1k out tokens, $0.06
      · t1 Serve /report.csv: pending (cancelled): cancelled by SIGTERM
      · t2 Quote fields: pending: not reached
      Kept:
        the work of t1 as a patch: /runs/01H-run/patches/t1.patch
        the changes of t1 are still in the work tree, not committed
      Next:
        continue from here:
          sprag run --resume 01H-run
        apply the unfinished work to a clean checkout:
          git apply /runs/01H-run/patches/t1.patch
        discard the unfinished work here; the patch keeps it:
          git apply -R /runs/01H-run/patches/t1.patch
      Report: /runs/01H-run/report.html
    ");
}

#[test]
fn quiet_is_warnings_and_the_end() {
    let log = log(&samples::partial_recorder().events, &with(Verbosity::Quiet));
    let lines: Vec<&str> = log.lines().collect();
    assert_eq!(
        lines[0],
        "warning: files that the checks left behind: target/out.csv"
    );
    assert_eq!(lines[1], "");
    assert!(
        lines[2].starts_with("✗ Sprag: partial (verification_failed)"),
        "{}",
        lines[2]
    );
}

#[test]
fn verbose_tells_what_the_agent_does_and_trace_the_rest() {
    let mut recorder = EventRecorder::new(&["One"], &[]);
    recorder.events.clear();
    for agent in samples::agent_events() {
        recorder.push(EventKind::Agent(agent));
    }
    assert_eq!(
        log(&recorder.events, &Style::default()),
        "    agent: Reconnecting 2/5"
    );
    insta::assert_snapshot!(log(&recorder.events, &with(Verbosity::Verbose)), @r"
    > I read the router.
    > Now the CSV.
    ~ columns first
    $ shell: cargo test ::error::x
      exit code 101 test csv ... FAILED
    update src/report.rs
    to do: 1 of 3 completed
    agent: Reconnecting 2/5
    ");
    insta::assert_snapshot!(log(&recorder.events, &with(Verbosity::Trace)), @r"
    session session-1
    > I read the router.
    > Now the CSV.
    ~ columns first
    $ shell: cargo test ::error::x
      exit code 101 test csv ... FAILED
    update src/report.rs
    to do: 1 of 3 completed
    usage: 5 in / ? out tokens
    agent: Reconnecting 2/5
    raw: not JSON
    ");
}

#[test]
fn nudges_say_their_own_cause() {
    use AssessmentKind as K;
    let kinds = [
        K::PlanningOnly,
        K::AwaitingInput,
        K::ReportsBlocked,
        K::ClaimsDone,
        K::Empty,
        K::NoChange,
    ];
    let said: Vec<String> = kinds
        .into_iter()
        .map(|kind| {
            let mut recorder = EventRecorder::new(&["One"], &[]);
            recorder
                .task("t1", "One")
                .turn(1, kind, &[])
                .schedule(RetryKind::Nudge, 1, 3, &[]);
            let log = log(&recorder.events, &Style::default());
            log.lines().last().unwrap_or("").to_owned()
        })
        .collect();
    insta::assert_snapshot!(said.join("\n"), @r"
    nudge 1 of 3: Implementer appears to have planned but not executed
    nudge 1 of 3: Implementer asked instead of executing
    nudge 1 of 3: Implementer says that it cannot continue but gave no FAILED report
    nudge 1 of 3: Implementer says that the work is done but changed no file
    nudge 1 of 3: Implementer ended without a message or a change
    nudge 1 of 3: Implementer changed no file
    ");
}

#[test]
fn indicators_are_at_most_five_of_at_most_120_characters() {
    let mut recorder = EventRecorder::new(&["One"], &[]);
    let long = "é".repeat(200);
    let said = [long.as_str(), "two\nlines", "", "c", "d", "e", "f"];
    recorder
        .task("t1", "One")
        .turn(1, AssessmentKind::PlanningOnly, &[]);
    let before = log(&recorder.events, &Style::default()).lines().count();
    recorder.schedule(RetryKind::Nudge, 1, 3, &said);
    let log = log(&recorder.events, &Style::default());
    let shown: Vec<&str> = log.lines().skip(before + 1).map(str::trim).collect();
    assert_eq!(shown[1..], ["\"two lines\"", "\"c\"", "\"d\"", "\"e\""]);
    assert_eq!(shown[0].chars().count(), 122);
}

#[test]
fn colours_only_add_sequences() {
    for recorder in [
        samples::success_recorder(),
        samples::partial_recorder(),
        samples::cancelled_recorder(),
    ] {
        let plain = log(&recorder.events, &Style::default());
        let colour = log(
            &recorder.events,
            &Style {
                color: true,
                ..Style::default()
            },
        );
        assert_ne!(colour, plain);
        assert_eq!(anstream::adapter::strip_str(&colour).to_string(), plain);
    }
}

#[test]
fn color_follows_flag_environment_and_terminal() {
    let table = [
        (Color::Auto, true, None, true),
        (Color::Auto, true, Some(false), false),
        (Color::Auto, false, Some(true), true),
        (Color::Auto, false, None, false),
        (Color::Always, false, Some(false), true),
        (Color::Never, true, None, false),
    ];
    for (color, terminal, wanted, expected) in table {
        assert_eq!(
            is_colored(color, terminal, wanted),
            expected,
            "{color:?} {terminal} {wanted:?}"
        );
    }
}

#[test]
fn the_flags_name_the_verbosity() {
    assert_eq!(Verbosity::from_flags(3, true), Verbosity::Quiet);
    assert_eq!(
        [0, 1, 2, 9].map(|v| Verbosity::from_flags(v, false)),
        [
            Verbosity::Normal,
            Verbosity::Verbose,
            Verbosity::Trace,
            Verbosity::Trace
        ]
    );
}

#[test]
fn the_frame_shows_where_the_run_is() {
    let mut recorder = EventRecorder::new(
        &["Serve /report.csv", "Quote fields", "Document"],
        &["test"],
    );
    recorder
        .task("t1", "Serve /report.csv")
        .turn(1, AssessmentKind::Changed, &[]);
    let outcome = crate::domain::outcome::Outcome::Verified { commit: None };
    recorder.end_task(outcome, &[]);
    recorder
        .task("t2", "Quote fields")
        .turn(1, AssessmentKind::Changed, &[]);
    for agent in samples::agent_events()
        .into_iter()
        .filter(|event| matches!(event, AgentEvent::Todo { .. } | AgentEvent::ToolCall { .. }))
    {
        recorder.push(EventKind::Agent(agent));
    }
    let mut progress = Progress::default();
    for event in &recorder.events {
        progress.apply(event);
    }
    let shown = frame(&recorder.summary(), &progress, &Style::default()).join("\n");
    insta::assert_snapshot!(shown, @r"
    task 2 of 3 · attempt 1 · turn 1 · to do 1/3
      ✓ t1 Serve /report.csv
      ▸ t2 Quote fields
      · t3 Document
      › shell: cargo test ::error::x
    ");
    // A process that resumes the run starts with the known state.
    let resumed = frame(&recorder.summary(), &Progress::default(), &Style::default());
    assert_eq!(resumed[0], "task 2 of 3 · to do 1/3");
    let preparing = frame(
        &RunSummary::default(),
        &Progress::default(),
        &Style::default(),
    );
    assert_eq!(preparing, ["preparing"]);
}

#[test]
fn a_long_checklist_keeps_the_current_task_in_sight() {
    let titles: Vec<String> = (1..=30).map(|n| format!("Task {n}")).collect();
    let titles: Vec<&str> = titles.iter().map(String::as_str).collect();
    for current in [1, 2, 15, 29, 30] {
        let mut recorder = EventRecorder::new(&titles, &[]);
        recorder.task(&format!("t{current}"), "x");
        let shown = frame(&recorder.summary(), &Progress::default(), &Style::default());
        assert!(
            shown
                .iter()
                .any(|line| line.starts_with(&format!("  ▸ t{current} "))),
            "{shown:?}"
        );
        assert!(shown.len() <= 12);
    }
}

#[test]
fn the_plain_console_writes_what_the_lines_are() {
    let sink = Sink::default();
    let mut console = Console::new(Box::new(sink.clone()), Style::default());
    let recorder = samples::partial_recorder();
    let mut summary = RunSummary::default();
    for event in &recorder.events {
        summary.apply(event);
        console.report(event, &summary).unwrap();
    }
    assert_eq!(sink.text(), log(&recorder.events, &Style::default()) + "\n");
}

#[test]
fn the_live_console_ends_with_the_whole_end_and_no_display() {
    let sink = Sink::default();
    let mut console = Console::live(Box::new(sink.clone()), Style::default(), of_size(60, 24));
    let mut summary = RunSummary::default();
    for event in &samples::partial_recorder().events {
        summary.apply(event);
        console.report(event, &summary).unwrap();
    }
    let text = sink.text();
    assert!(text.contains("sprag run --resume 01H-run\n"), "{text}");
    assert!(
        text.ends_with("Report: /runs/01H-run/report.html\n"),
        "{text}"
    );
}

fn of_size(columns: u16, rows: u16) -> Box<dyn Fn() -> Size + Send + Sync> {
    Box::new(move || Size { columns, rows })
}

#[test]
fn the_display_leaves_nothing_on_the_terminal_whatever_is_typed() {
    for (columns, rows) in [(300, 50), (80, 24), (40, 8), (24, 3)] {
        for verbosity in [Verbosity::Quiet, Verbosity::Normal, Verbosity::Verbose] {
            let terminal = Terminal::new(Size { columns, rows });
            let style = with(verbosity);
            let mut console =
                Console::live(Box::new(terminal.clone()), style, of_size(columns, rows));
            let mut summary = RunSummary::default();
            let (width, mut expected) = (usize::from(columns), Vec::new());
            for event in &samples::partial_recorder().events {
                summary.apply(event);
                console.report(event, &summary).unwrap();
                let log = Style {
                    width: Some(width * MAX_ROWS),
                    ..style
                };
                // A terminal shows a check that runs in the live display alone.
                let is_live = verbosity == Verbosity::Normal;
                if !(is_live && matches!(event.kind, EventKind::CheckStarted { .. })) {
                    expected.extend(lines(event, &summary, &log));
                }
                let is_shown = verbosity != Verbosity::Quiet;
                if is_shown && !matches!(event.kind, EventKind::RunEnded { .. }) {
                    terminal.echo("^C");
                }
            }
            let expected: Vec<String> = expected
                .iter()
                .map(|line| live::wrapped(line, width))
                .flat_map(|line| line.split('\n').map(str::to_owned).collect::<Vec<_>>())
                .flat_map(|line| rows_of(&line, width))
                .collect();
            assert_eq!(terminal.rows(), expected, "{columns}x{rows} {verbosity:?}");
        }
    }
}

/// Wraps a line as a terminal does.
fn rows_of(line: &str, width: usize) -> Vec<String> {
    let chars: Vec<char> = line.chars().collect();
    let rows = chars.chunks(width).map(|row| {
        let row: String = row.iter().collect();
        row.trim_end().to_owned()
    });
    if chars.is_empty() {
        vec![String::new()]
    } else {
        rows.collect()
    }
}

#[test]
fn a_drawing_goes_out_in_one_piece() {
    #[derive(Clone, Default)]
    struct Pieces(Arc<Mutex<Vec<String>>>);
    impl Write for Pieces {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let text = String::from_utf8(bytes.to_vec()).unwrap();
            self.0.lock().unwrap().push(text);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let pieces = Pieces::default();
    let mut console = Console::live(Box::new(pieces.clone()), Style::default(), of_size(80, 24));
    let events = samples::partial_recorder().events;
    for count in 1..4 {
        let summary = RunSummary::of(&events[..count]);
        console.report(&events[count - 1], &summary).unwrap();
    }
    let pieces = pieces.0.lock().unwrap().clone();
    let (first, drawn) = pieces.split_first().unwrap();
    let start = lines(&events[0], &RunSummary::of(&events[..1]), &Style::default());
    assert_eq!(*first, start.join("\n") + "\n");
    for piece in drawn {
        assert!(
            piece.contains(" 00:0") && piece.ends_with('\r'),
            "{piece:?}"
        );
    }
}

#[test]
fn a_closed_pipe_is_a_failure_of_the_reporter() {
    #[derive(Clone)]
    struct Closed(Arc<Mutex<u32>>);
    impl Write for Closed {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            *self.0.lock().unwrap() += 1;
            Err(io::ErrorKind::BrokenPipe.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let events = samples::partial_recorder().events;
    let closed = || Box::new(Closed(Arc::default()));
    let plain = Console::new(closed(), Style::default());
    let live = Console::live(closed(), Style::default(), of_size(80, 24));
    for mut console in [plain, live] {
        let failure = console.report(&events[0], &RunSummary::of(&events[..1]));
        assert_eq!(failure.unwrap_err().to_string(), "broken pipe");
    }
}

proptest! {
    #[test]
    fn foreign_text_stays_on_its_lines(text in any::<String>(), width in 1usize..100) {
        let mut recorder = EventRecorder::new(&[&text], &[&text]);
        recorder.task("t1", &text).turn(1, AssessmentKind::PlanningOnly, &[&text]);
        recorder.schedule(RetryKind::Nudge, 1, 3, &[&text]);
        recorder.check(&text, Some((&text, 1)));
        recorder.push(samples::warning(&text));
        let mut events = recorder.events;
        let more = samples::every_event().into_iter().filter_map(|event| match event.kind {
            EventKind::Agent(_) => Some(event),
            _ => None,
        });
        events.extend(more);
        events.push(samples::event(1, EventKind::Agent(AgentEvent::Message { text })));
        let style = Style { width: Some(width), verbosity: Verbosity::Trace, color: false };
        for line in log(&events, &style).split('\n') {
            let clean = text::line(line);
            prop_assert_eq!(line.trim(), clean);
            let holds_a_path = line == "run 01H-run is recorded in /runs/01H-run";
            let columns = unicode_width::UnicodeWidthStr::width(line);
            prop_assert!(holds_a_path || columns <= width);
        }
    }
}
