use super::*;

fn is_repair(note: &Note) -> bool {
    matches!(note, Note::Repair { .. })
}

/// Reads the same file repeatedly, with different lines each time, which stalls a plan without a loop.
fn stalled(items: &[&str]) -> Vec<Response> {
    let look = |n: u32| {
        let lines = json!({"path": "src/a.rs", "start": n});
        with("", vec![call("read_file", lines)])
    };
    let begin = with(&plan(items), vec![read("src/a.rs")]);
    std::iter::once(begin).chain((1..8).map(look)).collect()
}

fn until_repair(items: &[&str]) -> usize {
    let played = play(&stalled(items));
    played.position(is_repair).unwrap()
}

/// A stalled session whose response to the repair message is `last`.
fn repaired(items: &[&str], last: Response) -> Played {
    let asked = until_repair(items);
    let mut script = stalled(items);
    let filler = script.last().unwrap().clone();
    script.resize(asked, filler);
    script.push(last);
    play(&script)
}

#[test]
fn read_only_steps_raise_the_score_and_force_an_edit() {
    let look = |n: u32| with("", vec![read(&format!("src/f{n}.rs"))]);
    let script: Vec<Response> = std::iter::once(text(&plan(&[A])))
        .chain((0..4).map(look))
        .chain([with("", vec![edit("src/a.rs")]), text(FINAL)])
        .collect();
    let played = play(&script);
    let forced = Note::Forced {
        next: Some(A.into()),
    };
    let notes: Vec<&[Note]> = played
        .asks
        .iter()
        .map(|request| &request.notes[..])
        .collect();
    let go_on = Note::GoOn {
        next: Some(A.into()),
    };
    assert_eq!(notes, [&[][..], &[go_on], &[], &[], &[], &[forced], &[]]);
    let telemetry = played.telemetry();
    assert_eq!(
        (
            telemetry.stagnation_score_max,
            telemetry.forced_mode_steps,
            telemetry.read_only_steps,
        ),
        (2, 1, 6)
    );
}

#[test]
fn a_persistent_stall_is_given_up_after_exactly_one_call_behind_the_repair_message() {
    let played = play(&stalled(&[A, B]));
    let asked = played.position(is_repair).unwrap();
    assert_eq!(played.asks.len(), asked + 1);
    assert_eq!(
        played.asks[asked].notes,
        [Note::Repair {
            open: vec![A.into(), B.into()],
            unchanged: true,
        }]
    );
    assert_eq!(
        (played.exit, played.kind(), played.telemetry().repair_turns),
        (SessionExit::Stalled, CompletionKind::Partial, 1)
    );
    assert_eq!(asked, 8, "eight steps without a change");
    assert_eq!(played.telemetry().stagnation_score_max, 4);
}

#[test]
fn an_edit_in_the_repair_turn_is_applied() {
    let played = repaired(&[A, B], with("", vec![edit("src/a.rs")]));
    assert_eq!(played.list(), format!("- [x] {A}\n- [ ] {B}"));
    assert!(played.session.state().changed.contains("src/a.rs"));
    assert_eq!(
        (played.exit, played.kind()),
        (SessionExit::Stalled, CompletionKind::Partial)
    );
    let played = repaired(&[A], with("", vec![edit("src/a.rs")]));
    assert_eq!(
        (played.exit, played.kind()),
        (SessionExit::Submitted, CompletionKind::CompleteUnverified)
    );
}

#[test]
fn the_repair_turn_may_retire_but_not_add() {
    let more = plan(&["src/c.rs: more"]).replace("SPRAG_PLAN", "SPRAG_PLAN_UPDATE");
    let played = repaired(&[A], text(&format!("{}{more}", check(&[A]))));
    assert_eq!(played.list(), format!("- [=] {A}"));
    assert_eq!(played.exit, SessionExit::Submitted);
}

/// This bug must never occur: the session is given up on the turn that checks off the last item.
#[test]
fn a_late_update_with_final_and_an_edit_counts_on_the_turn_on_which_the_session_is_given_up() {
    let last = format!("{}{}{FINAL}", check(&[A]), check(&[B]));
    let played = repaired(&[A, B], with(&last, vec![edit("src/b.rs")]));
    assert_eq!(played.list(), format!("- [=] {A}\n- [x] {B}"));
    assert!(played.session.state().changed.contains("src/b.rs"));
    let telemetry = played.telemetry();
    assert_eq!(
        (
            played.exit,
            telemetry.completion_kind,
            telemetry.plan_update_count,
            telemetry.plan_finished,
        ),
        (
            SessionExit::Submitted,
            CompletionKind::CompleteUnverified,
            2,
            2
        )
    );
}

#[test]
fn a_late_update_with_final_and_no_edit_is_already_satisfied_and_not_partial() {
    let last = format!("{}{}{FINAL}", check(&[A]), check(&[B]));
    for last in [last.clone(), last.replace(FINAL, "")] {
        let played = repaired(&[A, B], text(&last));
        assert_eq!(played.list(), format!("- [=] {A}\n- [=] {B}"));
        assert_eq!(played.session.state().changed.len(), 0);
        let telemetry = played.telemetry();
        assert_eq!(
            (
                played.exit,
                telemetry.completion_kind,
                telemetry.plan_update_count
            ),
            (
                SessionExit::Submitted,
                CompletionKind::CompleteUnverified,
                2
            )
        );
    }
}

/// The same turn without an earlier repair message: the score alone would cause one.
#[test]
fn work_on_the_turn_that_would_bring_the_repair_message_counts_first() {
    let asked = until_repair(&[A]);
    let mut script = stalled(&[A]);
    let filler = script.last().unwrap().clone();
    script.resize(asked - 1, filler);
    script.push(with(
        &format!("{}{FINAL}", check(&[A])),
        vec![edit("src/a.rs")],
    ));
    let played = play(&script);
    assert_eq!(played.list(), format!("- [x] {A}"));
    assert_eq!(
        (
            played.exit,
            played.asks.len(),
            played.telemetry().repair_turns
        ),
        (SessionExit::Submitted, asked, 0)
    );
}

#[test]
fn nothing_hangs_with_one_item_left() {
    let restate = plan(&["src/a.rs: still add the parser"]).replace("PLAN", "PLAN_UPDATE");
    let cases = [
        with("", vec![read("src/a.rs")]),
        with("", vec![call("run_command", json!({"command": "true"}))]),
        text(&restate),
        text(&plan(&[A])),
        text("I will now add the parser."),
        text(FINAL),
        with("", vec![bad_edit("src/a.rs")]),
        with("", vec![edit("src/elsewhere.rs")]),
        with("", vec![call("update_plan", json!({"items": []}))]),
    ];
    for last in cases {
        let played = play(&[text(&plan(&[A])), last.clone()]);
        assert!(
            played.asks.len() <= 12,
            "{last:?}: {} requests",
            played.asks.len()
        );
        assert_eq!(played.session.state().ledger.finished(), 0);
    }
}

#[test]
fn three_failed_edits_of_a_file_bring_a_session_on_it_alone() {
    let begin = with(&plan(&[A, B]), vec![bad_edit("src/a.rs")]);
    let script = [
        begin,
        with("", vec![bad_edit("src/a.rs"), bad_edit("./src/b.rs")]),
        with("", vec![bad_edit("src/a.rs")]),
        with(FINAL, vec![edit("src/b.rs")]),
    ];
    let usage = Usage {
        tokens_out: Some(7),
        ..Usage::default()
    };
    let fixed = play_with(&Limits::default(), &script, |slice| SliceEnded {
        changed: vec![slice.file.clone()],
        steps: 4,
        tool_calls: 6,
        usage,
        ..SliceEnded::default()
    });
    let slices: Vec<_> = fixed
        .slices
        .iter()
        .map(|it| (&it.file[..], &it.items[..]))
        .collect();
    assert_eq!(slices, [("src/a.rs", &[A.to_owned()][..])]);
    assert_eq!(
        (
            fixed.slices[0].limits.steps,
            fixed.slices[0].limits.fix_slices
        ),
        (10, 0)
    );
    assert!(fixed.said(4, |note| matches!(
        note,
        Note::SliceEnded { changed: true, .. }
    )));
    let telemetry = fixed.telemetry();
    assert_eq!(
        (
            fixed.list(),
            telemetry.fix_slice_count,
            telemetry.tool_calls,
            telemetry.tokens,
            telemetry.completion_kind,
        ),
        (
            format!("- [x] {A}\n- [x] {B}"),
            1,
            11,
            Some(7),
            CompletionKind::CompleteUnverified
        )
    );

    let failed = play_with(&Limits::default(), &script, |_| SliceEnded::default());
    assert_eq!(failed.list(), format!("- [!] {A}\n- [x] {B}"));
    assert_eq!(
        (failed.exit, failed.kind()),
        (SessionExit::Submitted, CompletionKind::Blocked)
    );
}

#[test]
fn sessions_on_one_file_are_bounded() {
    let files: Vec<String> = (0..9).map(|n| format!("src/f{n}.rs")).collect();
    let edits: Vec<ToolCall> = files.iter().map(|file| bad_edit(file)).collect();
    let varied = |n: usize| with("", edits[..9 - n % 4].to_vec());
    let script: Vec<Response> = (0..40).map(varied).collect();
    let played = play_with(&Limits::default(), &script, |_| SliceEnded::default());
    let sliced: Vec<&str> = played.slices.iter().map(|slice| &slice.file[..]).collect();
    assert_eq!(sliced, ["src/f0.rs", "src/f1.rs", "src/f2.rs"]);
}

#[test]
fn an_edit_that_succeeds_ends_a_row_of_failures() {
    let played = play(&[
        with("", vec![bad_edit("src/a.rs")]),
        with("", vec![bad_edit("src/a.rs"), edit("src/a.rs")]),
        with("", vec![bad_edit("src/a.rs"), bad_edit("src/a.rs")]),
        with(FINAL, vec![edit("src/a.rs")]),
    ]);
    assert_eq!(played.slices, []);
}

#[test]
fn loops_are_warned_of_and_then_ended_behind_a_repair_message() {
    let test = || {
        with(
            "",
            vec![call("run_command", json!({"command": "make test"}))],
        )
    };
    let played = play(&[with("", vec![edit("src/a.rs")]), test()]);
    let kind = LoopKind::IdenticalCalls;
    let notes: Vec<&[Note]> = played
        .asks
        .iter()
        .skip(4)
        .map(|request| &request.notes[..])
        .collect();
    assert_eq!(
        notes,
        [
            &[Note::LoopWarning {
                kind,
                strong: false
            }][..],
            &[Note::LoopWarning { kind, strong: true }],
            &[Note::Repair {
                open: Vec::new(),
                unchanged: false
            }],
        ]
    );
    assert_eq!(played.exit, SessionExit::Stalled);
}
