use super::*;
use crate::event::{EventPlace, TaskLine};
use crate::outcome::Outcome;

fn event(kind: EventKind) -> Event {
    Event {
        seq: 1,
        ts: String::new(),
        elapsed_ms: 0,
        place: EventPlace {
            task: Some("a".into()),
            attempt: Some(1),
            ..EventPlace::default()
        },
        kind,
    }
}

fn ended(outcome: Outcome, verifications: u32) -> Event {
    event(EventKind::TaskEnded(Box::new(TaskEnded {
        attempts: 1,
        turns: 1,
        changes_made: true,
        work: TaskWork {
            verifications,
            changed_files: vec!["f".into()],
            ..TaskWork::default()
        },
        elapsed_ms: 1,
        ..TaskEnded::without_turns(outcome)
    })))
}

fn turn() -> Event {
    event(EventKind::TurnStarted {
        purpose: "implement".into(),
        agent: "command".into(),
        prompt: "prompts/01.md".into(),
    })
}

fn begun() -> RunSummary {
    let line = TaskLine {
        id: "a".into(),
        title: "A".into(),
        done: false,
        selected: true,
        line: None,
        max_retries: 3,
    };
    RunSummary {
        tasks: vec![TaskSummary::from_line(&line)],
        ..RunSummary::default()
    }
}

#[test]
fn a_task_that_was_stopped_and_gone_on_with_is_counted_once() {
    let mut summary = begun();
    for event in [
        turn(),
        ended(Outcome::Cancelled { signal: 2 }, 1),
        turn(),
        ended(Outcome::Verified { commit: None }, 2),
        ended(Outcome::Verified { commit: None }, 2),
    ] {
        summary.apply(&event);
    }
    assert_eq!((summary.totals.verifications, summary.totals.done), (2, 1));
    assert_eq!(summary.tasks[0].attempts, 1);
}

#[test]
fn a_failed_task_that_is_taken_again_has_fresh_counts_and_the_run_keeps_its_own() {
    let mut summary = begun();
    let again = event(EventKind::TaskStarted { title: "A".into() });
    for event in [
        turn(),
        ended(Outcome::VerificationFailed, 1),
        again,
        turn(),
        ended(Outcome::Verified { commit: None }, 1),
    ] {
        summary.apply(&event);
    }
    assert_eq!(
        (summary.totals.attempts, summary.totals.verifications),
        (2, 2)
    );
    assert_eq!(summary.tasks[0].attempts, 1);
}

#[test]
fn a_commit_that_is_told_twice_is_one_commit() {
    let mut summary = begun();
    let commit = event(EventKind::CommitCreated {
        commit: "c".into(),
        subject: "s".into(),
        files: Vec::new(),
    });
    summary.apply(&commit);
    summary.apply(&commit);
    assert_eq!(summary.commits, ["c"]);
}

#[test]
fn a_retry_that_is_told_twice_is_one_retry() {
    let mut summary = begun();
    let scheduled = |how, n| {
        let line = RetryLine::new(how, n, 3, "");
        event(EventKind::RetryScheduled(Box::new(line)))
    };
    for (how, n) in [
        (RetryKind::Nudge, 1),
        (RetryKind::Nudge, 1),
        (RetryKind::Retry, 1),
        (RetryKind::Wait, 1),
        (RetryKind::Retry, 2),
        (RetryKind::Retry, 2),
    ] {
        summary.apply(&scheduled(how, n));
    }
    assert_eq!((summary.totals.nudges, summary.totals.retries), (1, 2));
    assert_eq!((summary.tasks[0].nudges, summary.tasks[0].retries), (1, 2));
}

#[test]
fn a_turn_that_was_cut_short_has_its_price_and_no_line() {
    let usage = Usage {
        tokens_in: Some(100),
        tokens_cached: Some(40),
        tokens_out: Some(20),
        cost_usd: Some(0.5),
    };
    let end = |usage| {
        event(EventKind::TurnEnded {
            exit: "signal SIGTERM".into(),
            elapsed_ms: 1,
            usage,
        })
    };
    let mut summary = begun();
    for event in [turn(), end(None), turn(), end(Some(usage))] {
        summary.apply(&event);
    }
    let expected = Usage {
        tokens_in: Some(100),
        tokens_cached: Some(40),
        tokens_out: Some(20),
        cost_usd: Some(0.5),
    };
    assert_eq!(
        (summary.usage, summary.tasks[0].usage),
        (expected, expected)
    );
    assert!(summary.tasks[0].turns.is_empty());
}

#[test]
fn optional_facts_are_absent_where_an_event_has_none() {
    let read = |text: &str| serde_json::from_str::<EventKind>(text).unwrap();
    let mut summary = begun();
    summary.apply(&event(read(r#"{"event":"warning","message":"a"}"#)));
    let push = r#"{"event":"push.ended","branch":"b","head":null,"pushed":false,"detail":"no"}"#;
    summary.apply(&event(read(push)));
    let value = serde_json::to_value(&summary).unwrap();
    let absent = [
        "/warning_topics",
        "/push/cause",
        "/push/pull_request_error",
        "/tasks/0/refused_by_hook",
    ];
    for place in absent {
        assert!(value.pointer(place).is_none(), "{place}");
    }
    let mut again: RunSummary = serde_json::from_value(value).unwrap();
    again.current.clone_from(&summary.current);
    assert_eq!(again, summary);
    summary.apply(&event(read(
        r#"{"event":"commit.rejected","reason":"no","by_hook":true}"#,
    )));
    assert_eq!(summary.tasks[0].refused_by_hook, Some(true));
}

#[test]
fn a_resumed_run_is_not_ended_by_the_error_before_it() {
    let mut summary = begun();
    summary.facts.run_id = "r".into();
    let error = WarningTopic::Error {
        remedies: vec!["free some space".into()],
    };
    summary.warn("the disk is full".into(), Some(error));
    summary.warn("a.log is left".into(), Some(WarningTopic::CheckArtifacts));
    let resumed = RunStarted {
        resumed: true,
        ..RunStarted::default()
    };
    summary.apply(&event(EventKind::RunStarted(Box::new(resumed))));
    assert_eq!(summary.topic_of(0), None);
    assert_eq!(summary.topic_of(1), Some(&WarningTopic::CheckArtifacts));
}

#[test]
fn attempts_of_several_phases_are_told_apart_and_a_review_belongs_to_the_one_it_judges() {
    let rows = crate::attempt::phases(crate::attempt::PhasesAsked {
        tdd: true,
        review: true,
        ..crate::attempt::PhasesAsked::default()
    });
    let state = serde_json::json!({ "head": null, "tree": null, "dirty": null });
    let turn = |(at, attempt): (usize, u32)| -> TurnSummary {
        let place = rows[at].name();
        serde_json::from_value(serde_json::json!({
            "turn": 1, "attempt": attempt, "purpose": place.phase.as_str(), "role": place.role, "cycle": place.cycle,
            "phase": place.phase, "assessment": "changed", "indicators": [], "detail": "", "before": state,
            "after": state, "exit": "code 0", "elapsed_ms": 1,
        }))
        .unwrap()
    };
    let mut task = begun().tasks.remove(0);
    let ran = [(0, 1), (1, 1), (1, 2), (2, 1), (3, 1), (4, 1), (5, 1)];
    task.turns = ran.map(turn).into();
    let attempts = task.attempts_in_order();
    let names: Vec<String> = attempts.iter().map(|it| it.name.to_string()).collect();
    let red_green = ["1 of red", "1 of green", "2 of green"];
    assert_eq!(names[..3], red_green);
    assert_eq!(names[3..], ["1 of refactor", "1 of fix in round 2"]);
    let reviews = attempts.iter().map(|it| it.reviews.len());
    assert_eq!(reviews.collect::<Vec<_>>(), [0, 0, 0, 1, 1]);
    let of_review = task.counted_place(rows[5].name());
    assert_eq!(of_review, rows[4].name());
}
