use super::*;

#[test]
fn a_plan_is_registered_and_worked_off() {
    let played = play(&[
        text(&plan(&[A, B])),
        with("", vec![edit("src/a.rs")]),
        with(FINAL, vec![edit("src/b.rs")]),
    ]);
    assert_eq!(played.exit, SessionExit::Submitted);
    assert_eq!(
        played.list(),
        format!("- [x] {A}\n- [x] {B}"),
        "the edit that came with FINAL counts"
    );
    assert_eq!(
        played.telemetry(),
        Telemetry {
            exit: SessionExit::Submitted,
            plan_items: 2,
            plan_finished: 2,
            plan_update_count: 0,
            final_suppressed: 0,
            repair_turns: 0,
            stagnation_score_max: 0,
            forced_mode_steps: 0,
            fix_slice_count: 0,
            tool_calls: 2,
            read_only_steps: 1,
            tokens: None,
            completion_kind: CompletionKind::CompleteUnverified,
        }
    );
}

#[test]
fn final_with_items_left_is_suppressed_once_with_remaining_and_next() {
    let played = play(&[with(&plan(&[A, B]), vec![edit("src/c.rs")]), text(FINAL)]);
    assert_eq!(played.asks.len(), 3);
    assert_eq!(
        played.asks[2].notes,
        [Note::FinalSuppressed {
            why: Suppressed::ItemsLeft,
            remaining: 2,
            next: Some(A.into()),
            unchanged: false,
        }]
    );
    let note = texts::note(&played.asks[2].notes[0]);
    assert!(note.contains(&format!("remaining=2 next={A}")), "{note}");
    assert_eq!(
        (
            played.exit,
            played.kind(),
            played.telemetry().final_suppressed
        ),
        (SessionExit::Submitted, CompletionKind::Partial, 1)
    );
}

#[test]
fn the_closure_hint_comes_with_one_item_left_and_what_it_asks_for_ends_the_session() {
    let hint = |played: &Played, n: usize| texts::note(&played.asks[n - 1].notes[0]);
    let two = play(&[with(&plan(&[A, B]), vec![edit("src/c.rs")]), text(FINAL)]);
    assert!(!hint(&two, 3).contains("send exactly this"));
    let begin = with(&plan(&[A]), vec![edit("src/c.rs")]);
    let one = play(&[begin.clone(), text(FINAL)]);
    let said = hint(&one, 3);
    let (_, exactly) = said.split_once("send exactly this:\n").unwrap();
    let closed = play(&[begin, text(FINAL), text(exactly)]);
    assert_eq!(closed.list(), format!("- [=] {A}"));
    assert_eq!(
        (closed.exit, closed.asks.len(), closed.kind()),
        (
            SessionExit::Submitted,
            3,
            CompletionKind::CompleteUnverified
        )
    );
}

#[test]
fn final_with_nothing_changed_and_nothing_satisfied_is_refused_once() {
    let played = play(&[text(FINAL)]);
    assert!(played.said(2, |note| matches!(
        note,
        Note::FinalSuppressed {
            why: Suppressed::NothingChanged,
            ..
        }
    )));
    assert_eq!(
        (played.exit, played.asks.len(), played.kind()),
        (SessionExit::Submitted, 2, CompletionKind::Partial)
    );
}

#[test]
fn final_after_a_failed_edit_of_the_same_response_is_refused_once() {
    let played = play(&[
        with("", vec![edit("src/a.rs")]),
        with(FINAL, vec![bad_edit("src/b.rs")]),
        text(FINAL),
    ]);
    assert!(played.said(3, |note| matches!(
        note,
        Note::FinalSuppressed {
            why: Suppressed::EditFailed,
            ..
        }
    )));
    assert_eq!(
        (played.exit, played.asks.len()),
        (SessionExit::Submitted, 3)
    );
}

#[test]
fn the_forms_for_no_change_and_for_failure_are_accepted_at_once() {
    let satisfied = "ALREADY_SATISFIED: the parser is there";
    let failed = "FAILED: there is no grammar";
    for (said, kind) in [
        (satisfied, CompletionKind::CompleteUnverified),
        (failed, CompletionKind::Blocked),
    ] {
        let forms = [
            text(&format!("```SPRAG_FINAL\n{said}\n```")),
            text(said),
            with("", vec![call("finish", json!({"summary": said}))]),
        ];
        for form in forms {
            let played = play(&[form]);
            assert_eq!(
                (played.exit, played.asks.len(), played.kind()),
                (SessionExit::Submitted, 1, kind)
            );
            assert_eq!(played.session.state().final_message(), Some(said));
        }
    }
    let played = play(&[text(&format!(
        "{}```SPRAG_FINAL\n{failed}\n```",
        plan(&[A])
    ))]);
    assert_eq!(played.asks.len(), 1, "failure is not held up by items left");
}

#[test]
fn tool_calls_for_plan_and_final_are_what_their_blocks_are() {
    let item = |text: &str, state: &str| json!({"text": text, "state": state});
    let played = play(&[
        with(
            "",
            vec![
                call(
                    "update_plan",
                    json!({"items": [item(A, "pending"), item(B, "pending")]}),
                ),
                edit("src/a.rs"),
            ],
        ),
        with(
            "",
            vec![call("update_plan", json!({"items": [item(B, "done")]}))],
        ),
        with("", vec![call("finish", json!({"summary": "Done."}))]),
    ]);
    assert_eq!(played.exit, SessionExit::Submitted);
    assert_eq!(played.list(), format!("- [x] {A}\n- [=] {B}"));
    assert_eq!(played.telemetry().plan_update_count, 1);
    let answer = |text: &str| Message::ToolResult {
        id: "update_plan-1".into(),
        name: "update_plan".into(),
        ok: true,
        output: text.into(),
    };
    assert_eq!(
        played.asks[1].answers,
        [answer(&format!("finished=0 remaining=2 next={A}"))]
    );
    assert_eq!(
        played.asks[2].answers,
        [answer("finished=2 remaining=0 next=none")]
    );
}

#[test]
fn two_updates_of_one_response_are_two() {
    let both = format!("{}{}", check(&[A]), check(&[B]));
    let played = play(&[text(&plan(&[A, B])), text(&both), text(FINAL)]);
    assert_eq!(played.telemetry().plan_update_count, 2);
}

#[test]
fn closing_everything_without_a_change_is_complete_but_unverified() {
    let played = play(&[
        with(&plan(&[A, B]), vec![read("src/a.rs")]),
        text(&format!("{}{FINAL}", check(&[A, B]))),
    ]);
    assert_eq!(
        (played.exit, played.kind()),
        (SessionExit::Submitted, CompletionKind::CompleteUnverified)
    );
}

#[test]
fn with_nothing_left_a_response_without_a_call_is_final() {
    let played = play(&[
        with(&plan(&[A]), vec![edit("src/a.rs")]),
        text("Added the parser.\nSUGGESTED_COMMIT_MESSAGE: Add a parser"),
    ]);
    assert_eq!(
        (played.exit, played.asks.len()),
        (SessionExit::Submitted, 2)
    );
    assert_eq!(
        played.session.state().final_message(),
        Some("Added the parser.\nSUGGESTED_COMMIT_MESSAGE: Add a parser")
    );
}

#[test]
fn words_end_a_session_that_is_to_end_with_words() {
    let limits = Limits {
        words_suffice: true,
        ..Limits::default()
    };
    let script = [
        text("Let me look at the file first."),
        with("", vec![read("src/a.rs")]),
        text("It is read in one place."),
    ];
    let played = play_with(&limits, &script, |_| SliceEnded::default());
    assert_eq!(
        (played.exit, played.asks.len()),
        (SessionExit::Submitted, 3)
    );
    let said = played.session.state().final_message();
    assert_eq!(said, Some("It is read in one place."));
}

#[test]
fn every_completion_kind_is_reached_by_its_rule() {
    use CompletionKind as K;
    let complete = play(&[with(
        &format!("{}{FINAL}", plan(&[A])),
        vec![edit("src/a.rs")],
    )]);
    let unplanned = play(&[with(FINAL, vec![edit("src/a.rs")])]);
    let limits = Limits {
        steps: 2,
        ..Limits::default()
    };
    let nothing = |_: &Slice| SliceEnded::default();
    let exhausted = play_with(
        &limits,
        &[text(&plan(&[A])), with("", vec![read("src/a.rs")])],
        nothing,
    );
    let complete_at_limit = play_with(
        &limits,
        &[text(&plan(&[A])), with("", vec![edit("src/a.rs")])],
        nothing,
    );
    let blocked = check(&[B]).replace("[x]", "[!]");
    let blocked = play(&[
        with(&plan(&[A, B]), vec![edit("src/a.rs")]),
        text(&format!("{blocked}{FINAL}")),
    ]);
    let partial = play(&[text(&plan(&[A])), text(FINAL)]);
    let kinds = |played: &Played| {
        [None, Some(true), Some(false)].map(|verified| {
            let mut telemetry = played.telemetry();
            if let Some(passed) = verified {
                telemetry.judge(passed);
            }
            telemetry.completion_kind
        })
    };
    let done = [K::CompleteUnverified, K::CompleteVerified, K::Partial];
    assert_eq!(kinds(&complete), done);
    assert_eq!(kinds(&unplanned), done);
    let at_limit = done.map(|kind| {
        if kind == K::Partial {
            K::Exhausted
        } else {
            kind
        }
    });
    assert_eq!(kinds(&complete_at_limit), at_limit);
    assert_eq!(kinds(&exhausted), [K::Exhausted; 3]);
    assert_eq!(kinds(&blocked), [K::Blocked; 3]);
    assert_eq!(kinds(&partial), [K::Partial; 3]);
}
