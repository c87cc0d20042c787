use super::*;

fn every_outcome() -> Vec<Outcome> {
    let id = || RevId("0123456789abcdef".into());
    let text = || String::from("why");
    vec![
        Outcome::Verified { commit: Some(id()) },
        Outcome::Verified { commit: None },
        Outcome::Unverified {
            commit: Some(id()),
            accepted: true,
        },
        Outcome::Unverified {
            commit: None,
            accepted: false,
        },
        Outcome::KnownFailures {
            commit: Some(id()),
            tests: vec![text()],
        },
        Outcome::ChangedExpectations {
            only_with: None,
            commit: Some(id()),
            accepted: true,
            files: vec![text()],
            not_committed: true,
            tests: vec![text()],
            unknown: None,
        },
        Outcome::ChangedExpectations {
            only_with: None,
            commit: None,
            accepted: false,
            files: Vec::new(),
            not_committed: false,
            tests: Vec::new(),
            unknown: Some(text()),
        },
        Outcome::UnprovenTests {
            tests: vec![text()],
            unknown: None,
        },
        Outcome::UnstableChecks {
            files: vec![text()],
        },
        Outcome::CheckCannotStart {
            check: text(),
            program: text(),
        },
        Outcome::NeedsPermission {
            held: HeldBack {
                patch: text(),
                paths: vec![text()],
            },
        },
        Outcome::CheckRefused {
            check: text(),
            path: text(),
        },
        Outcome::AlreadySatisfied { verified: true },
        Outcome::AlreadySatisfied { verified: false },
        Outcome::NoProgress {
            message: text(),
            preflight: true,
            untouched: false,
        },
        Outcome::NoProgress {
            message: text(),
            preflight: false,
            untouched: true,
        },
        Outcome::PlanningOnly,
        Outcome::Acceptable,
        Outcome::VerificationFailed,
        Outcome::RepeatingFailure { times: 3 },
        Outcome::FailedReport { summary: text() },
        Outcome::PolicyViolation { what: text() },
        Outcome::AgentUnavailable { message: text() },
        Outcome::AgentCrashed { message: text() },
        Outcome::TurnTimeout,
        Outcome::CommitRejected { message: text() },
        Outcome::Budget { message: text() },
        Outcome::Deadline,
        Outcome::Cancelled { signal: 15 },
        Outcome::DependencyFailed { on: "t1".into() },
        in_shard(TaskEnd::Done, Reason::Unverified),
        in_shard(TaskEnd::Blocked, Reason::Conflict),
        in_shard(TaskEnd::Pending, Reason::MissingShard),
        in_shard(TaskEnd::Pending, Reason::Cancelled),
        in_shard(TaskEnd::Failed, Reason::AgentUnavailable),
    ]
}

fn in_shard(end: TaskEnd, reason: Reason) -> Outcome {
    Outcome::WithoutAgent {
        end,
        reason,
        message: "why".into(),
        commit: None,
    }
}

/// Whether a task is done or only waits for a permission.
fn is_no_failure(outcome: &Outcome) -> bool {
    outcome.task_end() == TaskEnd::Done || outcome.reason() == Reason::NeedsPermission
}

#[test]
fn exit_zero_means_that_no_task_failed_and_nothing_else_does() {
    for outcome in every_outcome() {
        let (status, _) = run_end(&[&outcome], OnFinding::Fail);
        assert_eq!(
            status.exit_code(None) == 0,
            is_no_failure(&outcome),
            "{outcome:?}"
        );
    }
}

#[test]
fn the_graver_end_wins_in_any_order() {
    for a in every_outcome() {
        for b in every_outcome() {
            let one = run_end(&[&a, &b], OnFinding::Fail).0;
            let other = run_end(&[&b, &a], OnFinding::Fail).0;
            assert_eq!(one, other, "{a:?} {b:?}");
            if !is_no_failure(&a) || !is_no_failure(&b) {
                assert_ne!(one.exit_code(None), 0, "{a:?} {b:?}");
            }
        }
    }
}

#[test]
fn a_failed_task_beside_a_committed_one_is_partial() {
    let done = Outcome::Verified { commit: None };
    assert_eq!(
        run_end(&[&done, &Outcome::VerificationFailed], OnFinding::Fail),
        (RunStatus::Partial, Reason::VerificationFailed)
    );
}

#[test]
fn nothing_changed_is_no_failure_where_the_policy_says_so() {
    assert_eq!(
        run_end(&[&Outcome::PlanningOnly], OnFinding::Warn),
        (RunStatus::NoWork, Reason::PlanningOnly)
    );
}

#[test]
fn the_reason_is_the_one_that_says_most() {
    let failed = [
        &Outcome::DependencyFailed { on: "t2".into() },
        &Outcome::TurnTimeout,
        &Outcome::VerificationFailed,
    ];
    assert_eq!(
        run_end(&failed, OnFinding::Fail),
        (RunStatus::Failed, Reason::TurnTimeout)
    );
    let done = [
        &Outcome::AlreadySatisfied { verified: true },
        &Outcome::Verified { commit: None },
    ];
    assert_eq!(
        run_end(&done, OnFinding::Fail),
        (RunStatus::Success, Reason::Verified)
    );
}

#[test]
fn no_task_is_no_work() {
    assert_eq!(
        run_end(&[], OnFinding::Fail),
        (RunStatus::NoWork, Reason::NoWork)
    );
}

#[test]
fn exit_codes_and_conclusions_are_those_of_the_contract() {
    use RunStatus as S;
    let table = [
        (S::Success, 0, Conclusion::Success),
        (S::Unverified, 0, Conclusion::Neutral),
        (S::NoWork, 0, Conclusion::Neutral),
        (S::Failed, 1, Conclusion::Failure),
        (S::Partial, 1, Conclusion::Failure),
        (S::Invalid, 2, Conclusion::Failure),
        (S::Blocked, 3, Conclusion::ActionRequired),
        (S::Environment, 4, Conclusion::Failure),
        (S::Budget, 5, Conclusion::TimedOut),
        (S::Deadline, 5, Conclusion::TimedOut),
        (S::Cancelled, 130, Conclusion::Cancelled),
    ];
    for (status, code, conclusion) in table {
        assert_eq!(
            (status.exit_code(None), status.conclusion()),
            (code, conclusion)
        );
        let json = serde_json::to_value(status).unwrap();
        assert_eq!(json, serde_json::json!(status.as_str()));
    }
    assert_eq!(S::Cancelled.exit_code(Some(15)), 143);
}

#[test]
fn words_in_json_are_the_words_in_reports() {
    for outcome in every_outcome() {
        let reason = outcome.reason();
        assert_eq!(
            serde_json::to_value(reason).unwrap(),
            serde_json::json!(reason.as_str())
        );
        let end = outcome.task_end();
        assert_eq!(
            serde_json::to_value(end).unwrap(),
            serde_json::json!(end.as_str())
        );
        assert!(!outcome.message().is_empty());
    }
}
