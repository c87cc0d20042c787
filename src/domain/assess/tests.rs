use super::*;
use crate::snapshot::{Fingerprint, Head, KnownSnapshot, RevId};

fn state(head: &str, tree: &str) -> Snapshot {
    Snapshot::Known(std::sync::Arc::new(KnownSnapshot {
        head: Head::At(RevId(head.into())),
        branch: None,
        tree: Fingerprint(tree.into()),
        dirty: false,
    }))
}

fn report(message: &str) -> AgentReport {
    AgentReport {
        final_message: (!message.is_empty()).then(|| message.to_owned()),
        ..AgentReport::default()
    }
}

fn api_error(class: ApiErrorClass, message: &str) -> AgentReport {
    AgentReport {
        api_error: Some(ApiError {
            status: None,
            message: message.into(),
            retry_after_ms: Some(1500),
            class,
        }),
        ..AgentReport::default()
    }
}

fn judge(changed: bool, exit: TurnExit, report: &AgentReport, violations: &[String]) -> Assessment {
    let before = state("h", "t0");
    let after = state("h", if changed { "t1" } else { "t0" });
    assess(&TurnFacts {
        before: &before,
        after: &after,
        exit: &exit,
        report,
        agent: "codex",
        violations,
    })
}

fn kind(changed: bool, exit: TurnExit, report: &AgentReport) -> AssessmentKind {
    judge(changed, exit, report, &[]).kind
}

#[test]
fn an_agent_that_fails_with_an_api_error_on_stderr_is_not_a_crash() {
    use AssessmentKind as K;
    let error = |class| AgentReport {
        exit_error: api_error(class, "429").api_error,
        ..report("")
    };
    let said = |class, message| AgentReport {
        final_message: Some(message),
        ..error(class)
    };
    let failed = || TurnExit::Code(1);
    let transient = error(ApiErrorClass::Transient);
    assert_eq!(kind(false, failed(), &transient), K::AgentTransient);
    let unavailable = error(ApiErrorClass::Unavailable);
    assert_eq!(kind(false, failed(), &unavailable), K::AgentUnavailable);
    let chatty = said(ApiErrorClass::Unavailable, "Version 3.1".into());
    assert_eq!(kind(false, failed(), &chatty), K::AgentUnavailable);
    // What the agent did or said counts for more.
    assert_eq!(kind(true, failed(), &transient), K::Changed);
    let report = said(ApiErrorClass::Transient, "FAILED: no network".into());
    assert_eq!(kind(false, failed(), &report), K::FailedReport);
}

#[test]
fn every_class_has_its_rule() {
    use AssessmentKind as K;
    let ok = || TurnExit::Code(0);
    let table = [
        (
            kind(false, TurnExit::NotFound, &report("")),
            K::AgentUnavailable,
        ),
        (
            kind(false, TurnExit::Code(127), &report("")),
            K::AgentUnavailable,
        ),
        (
            kind(false, TurnExit::Code(126), &report("")),
            K::AgentUnavailable,
        ),
        (
            kind(false, TurnExit::NotStarted { why: "x".into() }, &report("")),
            K::AgentUnavailable,
        ),
        (
            kind(true, ok(), &api_error(ApiErrorClass::Unavailable, "401")),
            K::AgentUnavailable,
        ),
        (
            kind(true, ok(), &api_error(ApiErrorClass::Transient, "429")),
            K::AgentTransient,
        ),
        (
            kind(true, TurnExit::Stalled { after_ms: 1 }, &report("")),
            K::AgentTransient,
        ),
        (
            kind(true, ok(), &api_error(ApiErrorClass::Rejected, "400")),
            K::AgentCrashed,
        ),
        (
            kind(true, TurnExit::Signal(11), &report("Done.")),
            K::AgentCrashed,
        ),
        (kind(true, TurnExit::Code(3), &report("")), K::Changed),
        (kind(false, TurnExit::Code(3), &report("")), K::AgentCrashed),
        (
            kind(false, TurnExit::Code(127), &report("Plan: x")),
            K::PlanningOnly,
        ),
        (kind(true, TurnExit::Code(127), &report("")), K::Changed),
        (
            kind(true, TurnExit::TimedOut { after_ms: 1 }, &report("Done.")),
            K::TurnTimeout,
        ),
        (
            kind(true, ok(), &report("FAILED: no access")),
            K::FailedReport,
        ),
        (
            kind(true, ok(), &report("Plan: I will edit it")),
            K::Changed,
        ),
        (
            kind(true, TurnExit::Code(3), &report("Plan: I will edit it")),
            K::Changed,
        ),
        (
            kind(false, ok(), &report("Shall I go ahead?")),
            K::AwaitingInput,
        ),
        (
            kind(false, ok(), &report("ALREADY_SATISFIED: it is there")),
            K::AlreadySatisfied,
        ),
        (kind(false, ok(), &report("Done")), K::ClaimsDone),
        (
            kind(false, ok(), &report("Plan: I will edit it")),
            K::PlanningOnly,
        ),
        (kind(false, ok(), &report("")), K::Empty),
        (
            kind(false, ok(), &report("FAILED tests/x.py::test_a")),
            K::NoChange,
        ),
    ];
    for (number, (found, expected)) in table.into_iter().enumerate() {
        assert_eq!(found, expected, "row {number}");
    }
}

#[test]
fn a_violation_wins_over_words_and_changes_but_not_over_a_crash() {
    let violations = ["HEAD was switched".to_owned()];
    let found = judge(true, TurnExit::Code(0), &report("FAILED: x"), &violations);
    assert_eq!(found.kind, AssessmentKind::PolicyViolation);
    assert_eq!(found.detail, "HEAD was switched");
    let crashed = judge(true, TurnExit::Signal(9), &report(""), &violations);
    assert_eq!(crashed.kind, AssessmentKind::AgentCrashed);
}

#[test]
fn a_state_that_could_not_be_read_is_never_unchanged() {
    let before = state("h", "t");
    let after = Snapshot::Unknown {
        why: "git failed".into(),
    };
    let report = report("Plan: I will edit it");
    let facts = TurnFacts {
        before: &before,
        after: &after,
        exit: &TurnExit::Code(0),
        report: &report,
        agent: "codex",
        violations: &[],
    };
    assert_eq!(assess(&facts).kind, AssessmentKind::Unknown);
}

#[test]
fn a_moved_head_with_the_same_tree_is_a_change() {
    let (before, after) = (state("h0", "t"), state("h1", "t"));
    let report = report("Plan: I will edit it");
    let facts = TurnFacts {
        before: &before,
        after: &after,
        exit: &TurnExit::Code(0),
        report: &report,
        agent: "codex",
        violations: &[],
    };
    assert_eq!(assess(&facts).kind, AssessmentKind::Changed);
}

#[test]
fn a_turn_whose_last_words_are_an_api_error_is_transient() {
    let words = "API Error: 529 overloaded_error";
    for changed in [false, true] {
        assert_eq!(
            kind(changed, TurnExit::Code(1), &report(words)),
            AssessmentKind::AgentTransient
        );
    }
}

#[test]
fn the_time_to_wait_and_the_remedy_come_through() {
    let waited = judge(
        false,
        TurnExit::Code(1),
        &api_error(ApiErrorClass::Transient, "429"),
        &[],
    );
    assert_eq!(waited.retry_after_ms, Some(1500));
    let missing = judge(false, TurnExit::NotFound, &report(""), &[]);
    assert_eq!(
        missing.detail,
        "codex was not found; install it or name another agent with --agent or --agent-command"
    );
}

#[test]
fn the_last_error_line_says_why_an_agent_gave_no_result() {
    let report = AgentReport {
        last_error_line: Some("agent: line 3: no such module".into()),
        ..report("")
    };
    let detail = |code| judge(false, TurnExit::Code(code), &report, &[]).detail;
    assert_eq!(
        [detail(3), detail(126), detail(127)],
        [
            "codex exited with code 3 and no result: agent: line 3: no such module",
            "codex is not executable (exit 126): agent: line 3: no such module; install it or name another agent with --agent or --agent-command",
            "codex was not found (exit 127): agent: line 3: no such module; install it or name another agent with --agent or --agent-command",
        ]
    );
}

#[test]
fn a_refusal_below_the_banner_of_an_agent_that_ends_with_0_is_one() {
    use AssessmentKind as K;
    let banner = "Aider v0.86.2\nModel: openai/m with whole edit format\nRepo-map: disabled\n\n";
    for (error, expected) in [
        (
            "litellm.AuthenticationError: AuthenticationError: OpenAIException - no \nfrom m\nThe API provider is not able to authenticate you. Check your API key.\n",
            K::AgentUnavailable,
        ),
        (
            "litellm.RateLimitError: RateLimitError: OpenAIException - slow down\nRetrying in 0.2 seconds...\nlitellm.RateLimitError: RateLimitError: OpenAIException - slow down\nThe API provider has rate limited you.\n",
            K::AgentTransient,
        ),
    ] {
        let judged = judge(
            false,
            TurnExit::Code(0),
            &report(&format!("{banner}{error}")),
            &[],
        );
        assert_eq!(judged.kind, expected, "{judged:?}");
        assert!(format!("{judged:?}").contains("litellm."), "{judged:?}");
        assert!(!format!("{judged:?}").contains("Aider"), "{judged:?}");
    }
    for about in [
        "The client raises litellm.RateLimitError.",
        "litellm.RateLimitError is raised there:\n1\n2\n3\n4\n5\nAll callers catch it.",
    ] {
        assert_eq!(library_error(about), None, "{about}");
    }
}

#[test]
fn a_changed_turn_that_ends_in_an_error_of_the_model_is_cut_off() {
    use AssessmentKind as K;
    for (last, expected) in [
        (
            "You've hit your session limit · resets 3:10am (UTC)",
            K::AgentTransient,
        ),
        ("Error: 429 Too Many Requests", K::AgentTransient),
        ("Credit balance is too low", K::AgentUnavailable),
        ("Error: context window exceeded", K::AgentCrashed),
        (
            "Claude usage limit reached. Your limit will reset at 3am (UTC).",
            K::AgentTransient,
        ),
        (
            "openai.APIConnectionError: Connection error.",
            K::AgentTransient,
        ),
        (
            "Traceback (most recent call last):\n  File \"a.py\", line 3, in <module>\nlitellm.exceptions.RateLimitError: RateLimitError: OpenAIException - 429",
            K::AgentTransient,
        ),
        ("TypeError: fetch failed", K::AgentTransient),
        (
            "prompt is too long: 213462 tokens > 200000 maximum",
            K::AgentCrashed,
        ),
        (
            "[API Error: You have exhausted your daily quota on this model.]",
            K::AgentUnavailable,
        ),
        (
            "[API Error: You have exhausted your capacity on this model. Your quota will reset after 3h.]",
            K::AgentTransient,
        ),
        (
            "I fixed total. You exceeded your current quota, please check your plan and billing details.",
            K::AgentUnavailable,
        ),
        (
            "Done with half. prompt is too long: 210000 tokens > 200000 maximum",
            K::AgentCrashed,
        ),
        (
            "I have changed it. Stopping here: weekly limit reached, resets Mon 10am.",
            K::AgentTransient,
        ),
        ("Reached max turns (30)", K::AgentCrashed),
        ("Error: max output tokens reached (32000)", K::AgentCrashed),
        (
            "node:events:497\n      throw er; // Unhandled\n\nError: read ECONNRESET\n    at A.b (node:c:1:2)\n\nNode.js v20.20.2",
            K::AgentTransient,
        ),
        (
            "panic: runtime error: index out of range [1]\n\ngoroutine 1 [running]:\nmain.main()",
            K::AgentCrashed,
        ),
        (
            "Traceback (most recent call last):\n  File \"a.py\", line 1, in <module>\nKeyError: 'x'",
            K::AgentCrashed,
        ),
        (
            "thread 'main' (7) panicked at src/main.rs:4:5:\ncalled `Option::unwrap()` on a `None` value\nstack backtrace:\n   0: rust_begin_unwind\n             at /rustc/5980/library/std/src/panicking.rs:689:5\nnote: run with `RUST_BACKTRACE=full` for a verbose backtrace.",
            K::AgentCrashed,
        ),
        (
            "thread 'main' panicked at 'boom', src/main.rs:2:5",
            K::AgentCrashed,
        ),
        // These only speak of an error.
        (
            "I fixed it. Clients over the rate limit get 429 Too Many Requests.",
            K::Changed,
        ),
        (
            "Fixed. Note: the message \"context length exceeded\" is now shown to the user.",
            K::Changed,
        ),
        (
            "It was:\n\n    Traceback (most recent call last):\n      File \"x.py\", line 1\n    IndexError: list index out of range",
            K::Changed,
        ),
        (
            "It was:\n```\npanic: x\n\ngoroutine 1 [running]:\nmain.main()\n```",
            K::Changed,
        ),
        (
            "Traceback (most recent call last):\nIndexError: x\n\nThe bounds are checked there.",
            K::Changed,
        ),
        (
            "The limiter already answers 429, nothing to change.",
            K::Changed,
        ),
        ("Added a retry for error code 503.", K::Changed),
        ("Fixed the 500 error that the API returned.", K::Changed),
        ("All 12 tests pass.", K::Changed),
    ] {
        for before in ["", "I wrote the parser.\n\n"] {
            let text = format!("{before}{last}\n");
            for exit in [TurnExit::Code(0), TurnExit::Code(1)] {
                assert_eq!(kind(true, exit, &report(&text)), expected, "{text}");
            }
        }
    }
}

#[test]
fn the_cause_of_a_rust_panic_is_told() {
    let text = "Done.\nthread 'main' panicked at src/main.rs:4:5:\ncalled `Option::unwrap()` on a `None` value\nnote: run with `RUST_BACKTRACE=1` environment variable to display a backtrace";
    let judged = judge(true, TurnExit::Code(101), &report(text), &[]);
    let told =
        "thread 'main' panicked at src/main.rs:4:5: called `Option::unwrap()` on a `None` value";
    assert!(judged.detail.ends_with(told), "{judged:?}");
}
