use super::*;

#[test]
fn every_limit_ends_the_session_after_what_was_answered_is_applied() {
    let usage = Usage {
        tokens_in: Some(60),
        tokens_cached: None,
        tokens_out: Some(40),
        cost_usd: Some(0.5),
    };
    let base = Limits::default();
    let cases = [
        (
            SessionExit::StepLimit,
            Limits {
                steps: 1,
                ..base.clone()
            },
        ),
        (
            SessionExit::StepLimit,
            Limits {
                tool_calls: 1,
                ..base.clone()
            },
        ),
        (
            SessionExit::TokenLimit,
            Limits {
                tokens: Some(100),
                ..base.clone()
            },
        ),
        (
            SessionExit::CostLimit,
            Limits {
                cost_usd: Some(0.5),
                ..base.clone()
            },
        ),
        (SessionExit::TimeLimit, Limits { time_ms: 9, ..base }),
    ];
    for (exit, limits) in cases {
        let response = Response {
            usage,
            elapsed_ms: 9,
            ..with(&check(&[B]), vec![edit("src/a.rs"), edit("src/c.rs")])
        };
        let played = play_with(&limits, &[response], |_| SliceEnded::default());
        assert_eq!((played.exit, played.asks.len()), (exit, 1));
        let changed: Vec<&String> = played.session.state().changed.iter().collect();
        assert_eq!(changed, ["src/a.rs", "src/c.rs"]);
        assert_eq!(played.telemetry().plan_update_count, 1);
        assert_eq!(played.telemetry().tokens, Some(100));
    }
}

#[test]
fn a_session_without_leave_for_a_step_asks_nothing() {
    let limits = Limits {
        steps: 0,
        ..Limits::default()
    };
    assert_eq!(
        decide(&limits, &State::new(&limits)),
        Step::End {
            exit: SessionExit::StepLimit
        }
    );
}

#[test]
fn responses_that_cannot_be_carried_out_are_named_and_bounded() {
    let idle = text("I will look into it.");
    let cut = Response {
        stop: StopReason::Length,
        ..text("I will look into")
    };
    let bad = with("", vec![call("grep", json!({}))]);
    let played = play(&[idle.clone(), cut, bad.clone()]);
    let whys: Vec<&[Note]> = played.asks[1..]
        .iter()
        .map(|request| &request.notes[..])
        .collect();
    let note = |why| [Note::FormatError { why }];
    assert_eq!(
        whys,
        [&note(FormatError::NoAction)[..], &note(FormatError::CutOff)]
    );
    assert_eq!(played.exit, SessionExit::RepeatedFormatError);

    let good = with("", vec![read("src/a.rs"), call("grep", json!({}))]);
    let played = play(&[idle.clone(), bad, good, idle]);
    assert_eq!(
        played.asks.len(),
        6,
        "what can be carried out begins the row anew"
    );
    assert!(matches!(
        played.asks[2].answers[0],
        Message::ToolResult { ok: false, .. }
    ));
}

#[test]
fn plain_text_ends_a_session_that_has_done_something() {
    let worked = with("", vec![edit("src/a.rs")]);
    let done = text("Done: src/a.rs says hello now.");
    let played = play(&[worked.clone(), done.clone()]);
    assert_eq!(
        (played.exit, played.asks.len()),
        (SessionExit::Submitted, 2)
    );

    let more = text("Next, I will add the tests.");
    let tests = with("", vec![edit("tests/a.rs")]);
    let played = play(&[worked, more, tests, done]);
    assert_eq!(
        (played.exit, played.asks.len()),
        (SessionExit::Submitted, 4)
    );
    let note = Note::FormatError {
        why: FormatError::NoAction,
    };
    assert_eq!(played.asks[2].notes, [note]);
}

#[test]
fn a_model_that_only_talks_has_the_last_word_after_three_responses() {
    let planned = text("Plan:\n1. Read the file.\n2. I will fix it.");
    let played = play(&[text(""), planned.clone(), planned.clone()]);
    assert_eq!(played.exit, SessionExit::Submitted);
    assert_eq!(played.asks.len(), 3);
    let said = played.session.state().final_message();
    assert_eq!(said, Some(planned.text.as_str()));

    let played = play(&[planned.clone(), planned, text("")]);
    assert_eq!(played.exit, SessionExit::RepeatedFormatError);
}

#[test]
fn plain_text_beside_the_last_update_ends_the_session() {
    let begun = with(&plan(&[A]), vec![edit("src/a.rs")]);
    let done = text(&format!("Done. src/a.rs is changed.\n{}", check(&[A])));
    let played = play(&[begun.clone(), done]);
    assert_eq!(
        (played.exit, played.asks.len()),
        (SessionExit::Submitted, 2)
    );

    let update = text(&check(&[A]));
    let played = play(&[begun, update, text(FINAL)]);
    assert_eq!(
        (played.exit, played.asks.len()),
        (SessionExit::Submitted, 3)
    );
    assert_eq!(played.asks[2].notes, [Note::GoOn { next: None }]);
}

#[test]
fn the_same_words_without_a_call_are_a_loop_however_short() {
    let more = plan(&[A]).replace("SPRAG_PLAN", "SPRAG_PLAN_UPDATE");
    let played = play(&vec![text(&more); 60]);
    assert_eq!(played.exit, SessionExit::Stalled);
    assert!(played.asks.len() < 12, "{}", played.asks.len());
}

#[test]
fn a_finish_without_a_summary_ends_with_what_is_said_beside_it() {
    let said = "I changed it.\nSUGGESTED_COMMIT_MESSAGE: Change a";
    let calls = vec![edit("src/a.rs"), call("finish", json!({}))];
    let played = play(&[with(said, calls)]);
    assert_eq!(played.exit, SessionExit::Submitted);
    assert_eq!(played.session.state().final_message(), Some(said));
}

fn failing(limits: &Limits, error: &ModelError, after: usize) -> (Vec<Step>, SessionExit) {
    let mut session = Session::new(limits.clone(), Budget::default(), String::new());
    let mut steps = Vec::new();
    loop {
        let step = session.next_step();
        let observation = match &step {
            Step::AskModel(_) if steps.len() < after => Observation::ModelFailed {
                error: error.clone(),
                elapsed_ms: 0,
            },
            Step::AskModel(_) => Observation::ModelResponded(text("FAILED: over")),
            Step::Wait { .. } => Observation::Waited { elapsed_ms: 0 },
            Step::End { exit } => return (steps, *exit),
            other => panic!("{other:?}"),
        };
        steps.push(step);
        session.observe(&observation);
    }
}

#[test]
fn failures_of_the_api_are_waited_out_shrunk_or_end_the_session() {
    let error = |kind| ModelError {
        kind,
        ..ModelError::network("x")
    };
    let waits = |steps: &[Step]| -> Vec<u64> {
        let waits = steps.iter().filter_map(|step| match step {
            Step::Wait { ms } => Some(*ms),
            _ => None,
        });
        waits.collect()
    };
    let limits = Limits::default();
    let (steps, exit) = failing(&limits, &error(ModelErrorKind::Overloaded), usize::MAX);
    assert_eq!(exit, SessionExit::ModelError);
    assert_eq!(waits(&steps), [2_000, 4_000, 8_000, 16_000, 32_000]);
    let (steps, exit) = failing(&limits, &error(ModelErrorKind::Overloaded), 3);
    assert_eq!((waits(&steps).len(), exit), (2, SessionExit::Submitted));
    let (steps, exit) = failing(&limits, &error(ModelErrorKind::ContentFilter), usize::MAX);
    assert_eq!(
        (waits(&steps), exit),
        (vec![2_000], SessionExit::ModelError)
    );
    let (steps, exit) = failing(&limits, &error(ModelErrorKind::Login), usize::MAX);
    assert_eq!((steps.len(), exit), (1, SessionExit::ModelError));
    let (steps, exit) = failing(&limits, &error(ModelErrorKind::ContextTooLong), usize::MAX);
    let refusals: Vec<u32> = steps
        .iter()
        .map(|step| match step {
            Step::AskModel(request) => request.refusals,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(
        (refusals, exit),
        (vec![0, 1, 2, 3], SessionExit::ModelError)
    );
    let short = Limits {
        time_ms: 2_000,
        ..limits
    };
    let (steps, exit) = failing(&short, &error(ModelErrorKind::RateLimit), usize::MAX);
    assert_eq!(
        (steps.len(), exit),
        (1, SessionExit::ModelError),
        "no wait past the end"
    );
}

#[test]
fn a_cancel_ends_the_session_whatever_is_open() {
    let limits = Limits::default();
    let mut session = Session::new(limits, Budget::default(), String::new());
    session.next_step();
    session.observe(&Observation::ModelResponded(with(
        FINAL,
        vec![edit("src/a.rs")],
    )));
    assert!(matches!(session.next_step(), Step::ApplyTools { .. }));
    session.observe(&Observation::Cancelled);
    assert_eq!(
        session.next_step(),
        Step::End {
            exit: SessionExit::Cancelled
        }
    );
}

#[test]
fn the_transcript_holds_results_before_notes_and_fits_the_budget() {
    let begin = vec![
        call("update_plan", json!({"items": [{"text": A}]})),
        read("src/a.rs"),
    ];
    let played = play(&[with("", begin), text(FINAL), text("FAILED: no")]);
    let roles: Vec<String> = played
        .session
        .messages()
        .map(|message| match message {
            Message::ToolResult { name, ok, .. } => format!("{name} {ok}"),
            Message::Note { text } => text.lines().next().unwrap().to_owned(),
            other => serde_json::to_value(other).unwrap()["role"]
                .as_str()
                .unwrap()
                .to_owned(),
        })
        .collect();
    let note = format!("FINAL is not accepted yet: remaining=1 next={A}");
    assert_eq!(
        roles,
        [
            "system",
            "task",
            "assistant",
            "read_file true",
            "update_plan true",
            "assistant",
            &note,
            "assistant",
        ]
    );
    let sent = played.session.request();
    assert!(played.session.messages().eq(sent.into_iter()));
}
