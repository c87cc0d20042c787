use super::super::settings::TriggerSettings;
use super::super::tests::{
    SHA, but, candidate, check_suite, comment, event, labelled_issue, labelled_pull, push, review,
    review_comment, triaged, user, workflow_run,
};
use super::{CommentRef, Needs, Triage, triage};
use serde_json::{Value, json};

fn ended(triage: Triage) -> String {
    match triage {
        Triage::Nothing { reason } => format!("nothing: {reason}"),
        Triage::Refused { refusal, .. } => {
            format!("{}: {refusal}", refusal.status().as_str())
        }
        Triage::Candidate(candidate) => format!("{:?}", candidate.request),
    }
}

fn told(name: &str, payload: &Value) -> String {
    ended(triaged(name, payload))
}

#[test]
fn comments() {
    let plain = comment("/sprag fix it");
    let is = |payload: Value, expected: &str| assert_eq!(told("issue_comment", &payload), expected);
    is(plain.clone(), "Instruction(\"fix it\")");
    is(
        comment("nice"),
        "nothing: no line of the comment begins with `/sprag`",
    );
    is(
        comment("> /sprag fix"),
        "nothing: no line of the comment begins with `/sprag`",
    );
    is(comment("/sprag stop"), "Stop");
    is(comment("/sprag run plans/a.yaml"), "Plan(\"plans/a.yaml\")");
    is(
        comment("/sprag run ../a.yaml"),
        "invalid: the path `../a.yaml` leads out of its directory with `..`",
    );
    is(
        comment("/sprag run /etc/a"),
        "invalid: the path `/etc/a` is not relative to the repository",
    );
    is(
        comment("<!-- sprag:state v1 e30= -->\n/sprag fix"),
        "nothing: the comment is one of Sprag's own",
    );
    for action in ["edited", "deleted"] {
        let payload = but(plain.clone(), "/action", json!(action));
        is(
            payload,
            &format!("nothing: the comment was {action}, and only a new one starts anything"),
        );
    }
    let bot = but(plain, "/comment/user", user("some[bot]"));
    is(
        bot,
        "nothing: some[bot] is a bot that `allowed-bots` does not list",
    );
    is(
        but(comment("/sprag fix"), "/comment/user", Value::Null),
        "nothing: the account that asked does not exist any more",
    );
}

#[test]
fn a_comments_candidate_says_who_where_and_what_is_needed() {
    let asked = candidate("issue_comment", &comment("/sprag fix it"));
    let asker = asked.asker.expect("somebody asked");
    assert_eq!(
        (asker.login.as_str(), asker.association.as_deref()),
        ("ann", Some("MEMBER"))
    );
    assert_eq!(asked.comment, Some(CommentRef::Issue(99)));
    assert_eq!(asked.answer_key.as_deref(), Some("comment:99"));
    let needs = Needs {
        permission: true,
        pull_request: true,
        comments: true,
        ..Needs::default()
    };
    assert_eq!(asked.needs, needs);
    let on_issue = but(comment("/sprag fix"), "/issue/pull_request", Value::Null);
    assert!(!candidate("issue_comment", &on_issue).needs.pull_request);
    let on_lines = candidate("pull_request_review_comment", &review_comment("/sprag fix"));
    assert_eq!(on_lines.comment, Some(CommentRef::Review(98)));
    assert_eq!(on_lines.head_sha.as_deref(), Some(SHA));
    assert_eq!(on_lines.place.expect("a place").path, "a.rs");
}

#[test]
fn sprag_does_not_answer_itself_and_listed_bots_are_machines() {
    let settings = TriggerSettings {
        own_login: Some("sprag-app[bot]".into()),
        rules: crate::settings::Resolved {
            allowed_bots: vec!["renovate".into(), "sprag-app".into()],
            ..Default::default()
        },
        ..TriggerSettings::default()
    };
    let by = |login: &str| {
        let payload = but(comment("/sprag fix"), "/comment/user", user(login));
        triage(&event("issue_comment", &payload), &settings)
    };
    assert_eq!(
        ended(by("sprag-app[bot]")),
        "nothing: sprag-app[bot] is the account that Sprag itself works with"
    );
    let Triage::Candidate(asked) = by("Renovate[bot]") else {
        panic!("a listed bot may ask");
    };
    assert!(asked.by_machine && !asked.needs.permission);
}

#[test]
fn labels() {
    assert_eq!(told("issues", &labelled_issue("Sprag")), "IssuePlan");
    assert_eq!(
        told("issues", &labelled_issue("bug")),
        "nothing: the label is `bug`, not `sprag`"
    );
    assert_eq!(
        told(
            "issues",
            &but(labelled_issue("sprag"), "/action", json!("opened"))
        ),
        "nothing: the action `opened` starts nothing, only the label `sprag` does"
    );
    assert_eq!(
        told(
            "issues",
            &but(labelled_issue("sprag"), "/issue/state", json!("closed"))
        ),
        "nothing: #7 is closed"
    );
    assert_eq!(told("pull_request", &labelled_pull("sprag")), "IssuePlan");
    let key = candidate("pull_request", &labelled_pull("sprag")).answer_key;
    assert_eq!(key.as_deref(), Some("label:7:2026-01-31T10:00:00Z"));
}

#[test]
fn pull_request_target_is_refused_unless_opted_in() {
    let name = "pull_request_target";
    let reason =
        "invalid: `pull_request_target` gives the pull request's code the repository's secrets";
    assert_eq!(told(name, &labelled_pull("sprag")), reason);
    assert_eq!(
        told(name, &labelled_pull("bug")),
        "nothing: the label is `bug`, not `sprag`"
    );
    let settings = TriggerSettings {
        rules: crate::settings::Resolved {
            allow_pull_request_target: true,
            ..Default::default()
        },
        ..TriggerSettings::default()
    };
    assert_eq!(
        ended(triage(&event(name, &labelled_pull("sprag")), &settings)),
        "IssuePlan"
    );
}

#[test]
fn reviews() {
    let name = "pull_request_review";
    let asked = review("changes_requested", "Please");
    assert_eq!(
        told(name, &asked),
        "nothing: the pull request has no label `sprag` and is not from a branch of Sprag's"
    );
    let labelled = but(
        asked.clone(),
        "/pull_request/labels",
        json!([{"name": "sprag"}]),
    );
    assert_eq!(told(name, &labelled), "Review { review_id: 97 }");
    let own = but(asked, "/pull_request/head/ref", json!("sprag/a"));
    assert_eq!(told(name, &own), "Review { review_id: 97 }");
    let fork = but(own, "/pull_request/head/repo/full_name", json!("eve/tool"));
    assert!(told(name, &fork).starts_with("nothing: "));
    assert_eq!(
        told(name, &review("approved", "")),
        "nothing: no line of the review begins with `/sprag`"
    );
    let said = review("commented", "/sprag fix these");
    assert_eq!(told(name, &said), "Instruction(\"fix these\")");
}

#[test]
fn failures() {
    let name = "workflow_run";
    let failed = workflow_run("failure");
    let is = |payload: Value, expected: &str| assert_eq!(told(name, &payload), expected);
    is(failed.clone(), "FixRun { run_id: 55 }");
    is(workflow_run("timed_out"), "FixRun { run_id: 55 }");
    is(
        workflow_run("success"),
        "nothing: the workflow run has not failed",
    );
    is(
        workflow_run("cancelled"),
        "nothing: the workflow run has not failed",
    );
    is(
        but(failed.clone(), "/action", json!("requested")),
        "nothing: the workflow run has not failed",
    );
    let at =
        |part: &str, value: Value| but(failed.clone(), &format!("/workflow_run/{part}"), value);
    is(
        at("head_repository", json!({"full_name": "eve/tool"})),
        "nothing: the workflow run is from a fork",
    );
    is(
        at("head_repository", Value::Null),
        "nothing: the workflow run is of a repository that is gone",
    );
    is(
        at("head_branch", json!("main")),
        "nothing: the workflow run is of the default branch",
    );
    is(
        at("head_branch", json!("--upload-pack=x")),
        "invalid: the branch name `--upload-pack=x` begins with `-`",
    );
    is(
        at("head_branch", json!("7/merge")),
        "invalid: the branch name `7/merge` is reserved for refs that GitHub creates for pull requests",
    );
    let candidate = candidate(name, &failed);
    assert!(candidate.by_machine && candidate.needs.jobs && candidate.needs.pull_request);
    assert_eq!(candidate.answer_key.as_deref(), Some("workflow-run:55:2"));
    for own in ["CI", ".github/workflows/ci.yml"] {
        let settings = TriggerSettings {
            own_workflow: Some(own.into()),
            ..TriggerSettings::default()
        };
        let own = ended(triage(&event(name, &failed), &settings));
        assert_eq!(
            own,
            "nothing: the workflow that failed is the one that runs Sprag"
        );
    }
    assert_eq!(
        told("check_suite", &check_suite("failure")),
        "FixSuite { suite_id: 54 }"
    );
    let fork = but(
        check_suite("failure"),
        "/check_suite/head_branch",
        Value::Null,
    );
    assert_eq!(
        told("check_suite", &fork),
        "nothing: the check suite is of a branch of another repository"
    );
}

#[test]
fn sources_of_the_step() {
    let dispatch = |inputs: Value| {
        told(
            "workflow_dispatch",
            &json!({"ref": "refs/heads/main", "inputs": inputs}),
        )
    };
    assert_eq!(dispatch(Value::Null), "Configured");
    assert_eq!(dispatch(json!({"prompt": "  ", "plan": 3})), "Configured");
    assert_eq!(
        dispatch(json!({"prompt": "Do <!-- leak --> it"})),
        "Dispatch { plan: None, prompt: Some(\"Do  it\"), queue: None }"
    );
    assert_eq!(
        dispatch(json!({"plan": "-x"})),
        "invalid: the path `-x` begins with `-`"
    );
    assert_eq!(
        dispatch(json!({"plan": "a", "queue": "b"})),
        "invalid: the event has more than one of `plan`, `prompt` and `queue`"
    );
    let remote = json!({"branch": "main", "client_payload": {"queue": "plans"}});
    assert_eq!(
        told("repository_dispatch", &remote),
        "Dispatch { plan: None, prompt: None, queue: Some(\"plans\") }"
    );
    let merge = json!({"ref": "refs/pull/7/merge"});
    assert!(told("workflow_dispatch", &merge).starts_with("invalid: the branch name"));
    assert_eq!(
        told("schedule", &json!({"schedule": "0 3 * * *"})),
        "Configured"
    );
    let settings = TriggerSettings {
        queue: Some("plans".into()),
        ..TriggerSettings::default()
    };
    assert_eq!(
        ended(triage(&event("schedule", &json!({})), &settings)),
        "Queue(\"plans\")"
    );
    assert_eq!(
        told("fork", &json!({})),
        "nothing: the event `fork` starts nothing, but `workflow_dispatch`, `schedule` and `push` do"
    );
}

#[test]
fn pushes() {
    assert_eq!(told("push", &push()), "Configured");
    assert_eq!(
        told("push", &but(push(), "/ref", json!("refs/tags/v1"))),
        "nothing: the push was not to a branch"
    );
    assert_eq!(
        told("push", &but(push(), "/deleted", json!(true))),
        "nothing: the push deleted a branch"
    );
    let own = but(
        push(),
        "/head_commit/message",
        json!("Words\n\nSprag-Run: 1\n"),
    );
    assert_eq!(
        told("push", &own),
        "nothing: the last commit of the push is one of Sprag's own"
    );
}
