use super::super::tests::*;
use super::*;
use serde_json::{Value, json};

const DAY: &str = "2026-01-31";

fn facts() -> Facts {
    Facts {
        access: Some(Access::Write),
        pull: Some(PullFacts {
            title: "Fetched".into(),
            open: true,
            head_ref: "topic".into(),
            head_sha: SHA.into(),
            head_repository: Some("octo/tool".into()),
            base_ref: "main".into(),
            base_repository: "Octo/tool".into(),
            ..PullFacts::default()
        }),
        access_error: "no answer".into(),
        now_day: DAY.into(),
        run_attempt: 1,
        ..Facts::default()
    }
}

fn pulled(change: impl FnOnce(&mut PullFacts)) -> Facts {
    let mut facts = facts();
    change(facts.pull.as_mut().expect("a pull request"));
    facts
}

fn ended(result: &Result<Authorised, Declined>) -> String {
    match result {
        Ok(done) => format!("{:?} on {:?}", done.candidate.request, done.branch),
        Err(Declined::Nothing { reason }) => format!("nothing: {reason}"),
        Err(Declined::Refused(refusal)) => {
            format!("{}: {refusal}", refusal.status().as_str())
        }
    }
}

fn go(name: &str, payload: &Value, facts: &Facts) -> Result<Authorised, Declined> {
    authorise(
        &candidate(name, payload),
        facts,
        &TriggerSettings::default(),
    )
}

fn told(body: &str, facts: &Facts) -> String {
    ended(&go("issue_comment", &comment(body), facts))
}

#[test]
fn work_is_done_on_the_pull_requests_head() {
    let done = go("issue_comment", &comment("/sprag fix"), &facts()).expect("it is done");
    assert_eq!(
        (done.branch.as_deref(), done.candidate.head_sha.as_deref()),
        (Some("topic"), Some(SHA))
    );
    assert_eq!(
        (
            done.base_ref.as_deref(),
            done.candidate.number(),
            done.report_only
        ),
        (Some("main"), Some(7), false)
    );
    let subject = done.candidate.subject.expect("a pull request");
    assert_eq!(subject.title, "A title");
    assert!(done.next_state.has_answered("comment:99"));
    assert_eq!(
        (done.next_state.depth, done.next_state.runs_on(DAY)),
        (0, 1)
    );
    let issue = but(comment("/sprag fix"), "/issue/pull_request", Value::Null);
    let done = go(
        "issue_comment",
        &issue,
        &Facts {
            pull: None,
            ..facts()
        },
    )
    .expect("it is done");
    assert_eq!(
        (done.branch, done.base_ref.as_deref()),
        (None, Some("main"))
    );
}

#[test]
fn who_may_ask() {
    let with = |access: Option<Access>| told("/sprag fix", &Facts { access, ..facts() });
    let yes = "Instruction(\"fix\") on Some(\"topic\")";
    for access in [Access::Write, Access::Maintain, Access::Admin] {
        assert_eq!(with(Some(access)), yes);
    }
    for access in [Access::None, Access::Read, Access::Triage] {
        assert_eq!(
            with(Some(access)),
            "no_work: ann has no write access to this repository"
        );
    }
    assert_eq!(
        with(None),
        "environment: could not determine ann's permission on this repository: no answer"
    );
    assert_eq!("maintain".parse(), Ok(Access::Maintain));
    assert!("security-manager".parse::<Access>().is_err());
    let candidate = candidate("issue_comment", &comment("/sprag fix"));
    let listed = TriggerSettings {
        rules: crate::settings::Resolved {
            allowed_users: vec!["@Ann".into()],
            ..Default::default()
        },
        ..TriggerSettings::default()
    };
    let reader = Facts {
        access: Some(Access::Read),
        ..facts()
    };
    assert_eq!(ended(&authorise(&candidate, &reader, &listed)), yes);
}

#[test]
fn associations_narrow_who_may() {
    let with = |association: &str, listed: &[&str]| {
        let payload = but(
            comment("/sprag fix"),
            "/comment/author_association",
            json!(association),
        );
        let settings = TriggerSettings {
            rules: crate::settings::Resolved {
                allowed_associations: listed.iter().map(|&word| word.to_owned()).collect(),
                ..Default::default()
            },
            ..TriggerSettings::default()
        };
        authorise(&candidate("issue_comment", &payload), &facts(), &settings).is_ok()
    };
    assert!(with("OWNER", &["OWNER"]) && with("MEMBER", &["owner", "member"]));
    assert!(!with("MEMBER", &["OWNER"]) && !with("COLLABORATOR", &["OWNER", "MEMBER"]));
    assert!(
        with("CONTRIBUTOR", &["OWNER", "MEMBER"]),
        "a private member with write access"
    );
    assert!(!with("NONE", &["OWNER"]));
}

#[test]
fn forks_are_only_reported_on() {
    let done = go(
        "issue_comment",
        &comment("/sprag fix"),
        &pulled(|pull| pull.head_repository = Some("eve/tool".into())),
    );
    let done = done.expect("it is done");
    assert!(done.report_only);
    let gone = pulled(|pull| pull.head_repository = None);
    assert_eq!(
        told("/sprag fix", &gone),
        "blocked: the fork that the pull request comes from is gone"
    );
    assert_eq!(told("/sprag status", &gone), "Status on Some(\"topic\")");
}

#[test]
fn the_pull_request_as_it_is_now() {
    let closed = pulled(|pull| pull.open = false);
    assert_eq!(
        told("/sprag fix", &closed),
        "blocked: the pull request is closed"
    );
    assert_eq!(told("/sprag help", &closed), "Help on Some(\"topic\")");
    let fix = go("workflow_run", &workflow_run("failure"), &closed);
    assert_eq!(ended(&fix), "nothing: the pull request is closed");
    let none = Facts {
        pull: None,
        ..facts()
    };
    assert_eq!(
        told("/sprag fix", &none),
        "environment: could not determine the state of pull request #7"
    );
    let hostile = pulled(|pull| pull.head_ref = "--upload-pack=x".into());
    assert_eq!(
        told("/sprag fix", &hostile),
        "invalid: the branch name `--upload-pack=x` begins with `-`"
    );
    let moved = go(
        "pull_request_review_comment",
        &review_comment("/sprag fix"),
        &pulled(|pull| pull.head_sha = BASE.into()),
    )
    .expect("it is done");
    assert_eq!(moved.candidate.head_sha.as_deref(), Some(BASE));
    assert!(
        moved.candidate.notes[0].contains("newer commits"),
        "{:?}",
        moved.candidate.notes
    );
}

#[test]
fn what_was_answered_is_not_answered_twice() {
    let mut state = State::default();
    state.note_answered(Some("comment:99"));
    let answered = Facts {
        state: Some(state),
        ..facts()
    };
    assert_eq!(
        told("/sprag fix", &answered),
        "nothing: this request was already handled; rerun the job to repeat it"
    );
    let again = Facts {
        run_attempt: 2,
        ..answered
    };
    assert_eq!(
        told("/sprag fix", &again),
        "Instruction(\"fix\") on Some(\"topic\")"
    );
}

#[test]
fn runs_that_nobody_asked_for_end() {
    let failed = workflow_run("failure");
    let mut facts = facts();
    for depth in 1..=2 {
        let done = go(
            "workflow_run",
            &failed,
            &Facts {
                run_attempt: 2,
                ..facts.clone()
            },
        )
        .expect("it is done");
        assert_eq!(done.next_state.depth, depth);
        facts.state = Some(done.next_state);
    }
    let more = but(failed.clone(), "/workflow_run/id", json!(56));
    assert_eq!(
        ended(&go("workflow_run", &more, &facts)),
        "blocked: the last 2 runs were all started by machines"
    );
    let person = go("issue_comment", &comment("/sprag fix"), &facts).expect("a person may");
    assert_eq!(person.next_state.depth, 0);
    let alone = but(failed, "/workflow_run/pull_requests", json!([]));
    let own = Facts {
        head_is_own: true,
        state: None,
        ..facts
    };
    assert!(
        ended(&go("workflow_run", &alone, &own))
            .starts_with("nothing: the commit that failed is one of Sprag's own")
    );
}

#[test]
fn runs_of_a_day_are_limited() {
    let mut state = State::default();
    state.runs_by_day.insert(DAY.into(), 20);
    let mut facts = Facts {
        state: Some(state),
        ..facts()
    };
    assert_eq!(
        told("/sprag fix", &facts),
        "blocked: 20 runs were started here today, the limit of `max-runs-per-day`"
    );
    assert_eq!(told("/sprag stop", &facts), "Stop on Some(\"topic\")");
    facts.now_day = "2026-02-01".into();
    assert_eq!(
        told("/sprag fix", &facts),
        "Instruction(\"fix\") on Some(\"topic\")"
    );
}

#[test]
fn retry_needs_a_run() {
    assert_eq!(
        told("/sprag retry", &facts()),
        "invalid: there is no earlier run here to retry or continue"
    );
    let state = State {
        asked: Some("comment:1".into()),
        ..State::default()
    };
    assert_eq!(
        told(
            "/sprag retry",
            &Facts {
                state: Some(state),
                ..facts()
            }
        ),
        "Retry on Some(\"topic\")"
    );
}

#[test]
fn where_other_sources_work() {
    let at = |name: &str, payload: Value| {
        let done = go(name, &payload, &facts()).expect("it is done");
        (done.branch, done.base_ref)
    };
    let main = || Some("main".to_owned());
    let topic = || Some("topic".to_owned());
    assert_eq!(at("push", push()), (topic(), main()));
    let repository = json!({"full_name": "octo/tool", "default_branch": "main"});
    let dispatch = |inputs: Value| json!({"ref": "refs/heads/topic", "inputs": inputs, "repository": repository});
    assert_eq!(
        at("workflow_dispatch", dispatch(json!({"prompt": "x"}))),
        (topic(), main())
    );
    assert_eq!(
        at("workflow_dispatch", dispatch(json!({"queue": "plans"}))),
        (None, topic())
    );
    let alone = but(
        workflow_run("failure"),
        "/workflow_run/pull_requests",
        json!([]),
    );
    assert_eq!(at("workflow_run", alone), (topic(), main()));
}
