//! Faults that a test plans, and how the model fails under them.

use super::*;
use crate::support::github::{Fault, Trouble};
use crate::support::proc::HUNG;
use std::time::Duration;

#[test]
fn faults_strike_the_requests_they_are_planned_for() {
    let (github, mut client) = github();
    let comments = format!("{REPO}/issues/1/comments");
    let body = json!({ "body": "Hello" });
    let plan = |trouble| {
        github.fault(Fault::next(
            1,
            "POST",
            "/repos/*/*/issues/*/comments",
            trouble,
        ))
    };
    for (trouble, status) in [
        (Trouble::unauthorized(), 401),
        (Trouble::forbidden(), 403),
        (Trouble::status(404, "Not Found"), 404),
        (Trouble::status(409, "Conflict"), 409),
        (Trouble::status(422, "Validation Failed"), 422),
        (Trouble::status(500, "Server Error"), 500),
        (Trouble::bad_gateway(), 502),
        (Trouble::redirect(307, "http://127.0.0.1:1/"), 307),
    ] {
        plan(trouble);
        assert_eq!(client.get(&comments).status, 200, "another method");
        assert_eq!(client.post(&comments, &body).status, status);
    }
    plan(Trouble::secondary(403, 7));
    assert_eq!(client.post(&comments, &body).header("retry-after"), "7");
    plan(Trouble::rate_limit(429, 1_800_000_000));
    let limited = client.post(&comments, &body);
    assert_eq!(limited.header("x-ratelimit-remaining"), "0");
    assert_eq!(limited.header("x-ratelimit-reset"), "1800000000");
    assert!(github.state().comments.is_empty());

    github.fault(Fault::nth(
        2,
        "*",
        "/repos/**",
        Trouble::status(503, "Down"),
    ));
    let statuses = [(); 3].map(|()| client.get(REPO).status);
    assert_eq!(statuses, [200, 503, 200]);
    github.fault(Fault::every(
        "GET",
        "/repos/**",
        Trouble::status(503, "Down"),
    ));
    assert_eq!([(); 3].map(|()| client.get(REPO).status), [503; 3]);
    github.heal();
    assert_eq!(client.get(REPO).status, 200);
}

#[test]
fn an_answer_gets_lost_and_the_deed_stays() {
    let (github, mut client) = github();
    let comments = format!("{REPO}/issues/1/comments");
    let body = json!({ "body": "Hello" });
    for (trouble, performed) in [(Trouble::Lost, 1), (Trouble::Torn, 2), (Trouble::Down, 2)] {
        github.fault(Fault::next(1, "POST", "/repos/**", trouble));
        assert!(client.send("POST", &comments, &body).is_err());
        assert_eq!(github.state().comments.len(), performed);
    }
    let statuses: Vec<_> = github
        .requests()
        .iter()
        .map(|request| request.status)
        .collect();
    assert_eq!(statuses, [None, Some(201), None]);
    github.fault(Fault::next(
        1,
        "POST",
        "/repos/**",
        Trouble::Drip(Duration::from_micros(100)),
    ));
    assert_eq!(client.post(&comments, &body).json["body"], "Hello");
}

#[test]
fn a_server_hangs_and_goes_away() {
    let (github, mut client) = github();
    github.fault(Fault::next(1, "GET", "/repos/**", Trouble::Hang));
    client.limit_silence(Duration::from_secs(5));
    assert!(client.send("GET", REPO, &Value::Null).is_err());
    client.limit_silence(HUNG);
    assert_eq!(
        client.get(REPO).status,
        200,
        "others are answered meanwhile"
    );
    github.shut_down();
    assert!(client.send("GET", REPO, &Value::Null).is_err());
    assert!(client.send("GET", REPO, &Value::Null).is_err());
}

#[test]
fn requests_come_in_parallel() {
    let (github, _) = github();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let mut client = Client::with_token(&github.url(), TOKEN);
                for _ in 0..5 {
                    let body = json!({ "body": "Hello" });
                    let answer = client.post(&format!("{REPO}/issues/1/comments"), &body);
                    assert_eq!(answer.status, 201);
                }
            });
        }
    });
    assert_eq!(github.state().comments.len(), 40);
    let requests = github.requests();
    assert_eq!(requests.len(), 40);
    let authorization = format!("Bearer {TOKEN}");
    assert_eq!(
        requests[0].header("authorization"),
        Some(authorization.as_str())
    );
}

#[test]
fn the_rate_limit_runs_out_and_the_clock_may_be_wrong() {
    let (github, mut client) = github();
    github.state().rate.remaining = 1;
    github.state().clock_ahead = -3600;
    let last = client.get(REPO);
    assert_eq!(
        (last.status, last.header("x-ratelimit-remaining")),
        (200, "0")
    );
    assert!(last.header("date").ends_with(" GMT"));
    assert_eq!(client.get(REPO).status, 403);
    let rate = client.get("/rate_limit");
    assert_eq!(
        (rate.status, &rate.json["rate"]["remaining"]),
        (200, &json!(0))
    );
    let reset = rate.json["rate"]["reset"].as_i64().unwrap();
    assert_eq!(rate.header("x-ratelimit-reset"), reset.to_string());
}
