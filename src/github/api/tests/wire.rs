//! Faults over the wire: statuses, limits, silence, redirections, URLs.

use super::super::*;
use super::server::{Say, Server, TOKEN, json as answer, limits, waits, with};
use crate::http::Network;
use serde_json::json;
use std::time::Duration;

const REPO: &str = "/repos/octo/hello";

fn facts() -> Say {
    answer(
        200,
        json!({ "full_name": "octo/hello", "default_branch": "main", "unheard_of": {} }),
    )
}

/// Gives the scripted responses one after another, then the repository's facts.
fn script(mut says: Vec<Say>) -> Server {
    Server::start(move |_| {
        if says.is_empty() {
            facts()
        } else {
            says.remove(0)
        }
    })
}

#[tokio::test]
async fn reading_survives_faults_of_the_server_and_of_the_network() {
    let server = script(vec![
        answer(500, json!({})),
        answer(502, json!({})),
        Say::HangUp,
    ]);
    let client = server.client();
    let found = client.repo("octo/hello").unwrap().facts().await.unwrap();
    assert_eq!(found.default_branch, "main");
    assert_eq!(server.asked().len(), 4);
    let (waits, incidents) = (waits(&client), client.take_incidents());
    assert_eq!((waits.len(), incidents.len()), (3, 3));
    assert!(
        waits.is_sorted() && waits[2] <= Duration::from_secs(5),
        "{waits:?}"
    );
    assert!(incidents[0].starts_with("GET /repos/octo/hello: GitHub cannot be reached: 500: "));
    assert!(client.take_incidents().is_empty());
}

#[tokio::test]
async fn refusals_are_told_in_githubs_words_and_never_repeated() {
    let invalid = json!({ "message": "Validation Failed", "errors": [{ "resource": "Issue", "field": "title", "code": "missing_field" }] });
    let rows = [
        (
            401,
            json!({ "message": "Bad credentials" }),
            "GET /repos/octo/hello: GitHub does not accept the token (401), which is wrong, revoked or expired; that of a \
             job ends with the job: Bad credentials",
        ),
        (
            403,
            json!({ "message": "Resource not accessible by integration" }),
            "GET /repos/octo/hello: GitHub does not permit this (403): Resource not accessible by integration",
        ),
        (
            403,
            json!({ "message": "Unable to create comment because issue is locked." }),
            "GET /repos/octo/hello: GitHub does not permit this (403): Unable to create comment because issue is locked.",
        ),
        (
            404,
            json!({ "message": "Not Found" }),
            "GET /repos/octo/hello: not found, or not visible to this token: Not Found",
        ),
        (
            409,
            json!({ "message": "Git Repository is empty." }),
            "GET /repos/octo/hello: conflict with the current state (409): Git Repository is empty.",
        ),
        (
            422,
            invalid,
            "GET /repos/octo/hello: GitHub refused the request (422): Validation Failed (Issue.title is missing field)",
        ),
    ];
    for (status, body, text) in rows {
        let server = script(vec![answer(status, body)]);
        let error = server.repo().facts().await.unwrap_err();
        assert_eq!(error.to_string(), text);
        assert_eq!(server.asked().len(), 1, "{status}");
        assert_eq!(error.is_permission(), matches!(status, 401 | 403));
        let lacks = status == 403 && !text.contains("locked");
        assert_eq!(error.is_forbidden(), lacks, "{text}");
    }
}

#[tokio::test]
async fn a_limit_holds_for_other_clients_when_the_one_that_met_it_is_abandoned() {
    let server = script(vec![with(429, &["retry-after: 3000"], json!({}))]);
    let patient = Limits {
        longest_wait: Duration::from_secs(3600),
        ..limits()
    };
    let live = Client::new(
        Settings {
            api_url: server.url.clone(),
            server_url: String::new(),
            token: TOKEN.into(),
            limits: patient,
        },
        &Network::direct(),
    )
    .unwrap()
    .repo("octo/hello")
    .unwrap();
    tokio::select! {
        _ = live.facts() => panic!("the wait was not kept"),
        () = async {
            while live.client.inner.held().is_none() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        } => {}
    }
    let last = server.client_with(patient);
    last.repo("octo/hello").unwrap().facts().await.unwrap();
    let waited = waits(&last);
    assert_eq!(waited.len(), 1);
    assert!(waited[0] > Duration::from_secs(2000), "{waited:?}");
    assert_eq!(server.asked().len(), 2);

    let first = live.client.inner.hold(Duration::from_secs(1000));
    live.client.inner.hold(Duration::from_secs(3000));
    last.inner.released(first);
    let now = std::time::Instant::now();
    let soon = last.repo("octo/hello").unwrap();
    let soon = soon.until(now + Duration::from_secs(2000));
    let refused = soon.facts().await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Deadline, "{refused}");
    assert_eq!(server.asked().len(), 2, "there is no time for the wait");
    soon.hurried(true).facts().await.unwrap();
    assert_eq!(server.asked().len(), 3);
}

#[tokio::test]
async fn what_nobody_can_look_for_is_sent_once() {
    for say in [Say::HangUp, answer(502, json!({}))] {
        let server = script(vec![say]);
        let repo = server.repo();
        assert!(
            repo.create_ref("refs/heads/x", "0")
                .await
                .unwrap_err()
                .is_temporary()
        );
        assert_eq!(server.asked().len(), 1);
    }
}

#[tokio::test]
async fn a_log_is_fetched_from_another_host_without_the_token() {
    let log =
        Server::start(|_| Say::Answer(200, Vec::new(), format!("{}\u{e9}nd", "x".repeat(100_000))));
    let to = format!("location: {}/blob?sig=1", log.url);
    let server = Server::start(move |_| with(302, &[&to], ""));
    let repo = server.repo();
    assert_eq!(repo.job_log(3, 5).await.unwrap(), "x\u{e9}nd");
    assert_eq!(repo.job_log(3, 3).await.unwrap(), "nd");
    assert!(
        server.asked()[0]
            .headers
            .contains(&format!("authorization: bearer {TOKEN}"))
    );
    assert!(
        !log.asked()[0].headers.contains("authorization"),
        "{}",
        log.asked()[0].headers
    );
}

#[tokio::test]
async fn a_renamed_repository_is_followed_and_writes_go_to_no_other_host() {
    let mut moved = false;
    let server = Server::start(move |_| {
        if std::mem::replace(&mut moved, true) {
            facts()
        } else {
            with(301, &["location: /repositories/1"], "")
        }
    });
    server.repo().facts().await.unwrap();
    assert!(server.asked()[1].headers.contains(TOKEN));
    for status in [301, 302, 307, 308] {
        let mut moved = false;
        let server = Server::start(move |_| {
            if std::mem::replace(&mut moved, true) {
                answer(201, json!({ "id": 1 }))
            } else {
                with(status, &["location: /repositories/1/x"], "")
            }
        });
        server.repo().create_ref("refs/heads/x", "0").await.unwrap();
        let asked = server.asked();
        assert!(asked[1].is("POST", "/repositories/1/x"), "{status}");
        assert!(asked[1].headers.contains(TOKEN) && asked[1].body == asked[0].body);
    }
    let done = Server::start(|_| with(303, &["location: /x"], ""));
    done.repo()
        .create_ref("refs/heads/x", "0")
        .await
        .unwrap_err();
    assert_eq!(done.asked().len(), 1);
    let other = script(Vec::new());
    let to = format!("location: {}/x", other.url);
    let server = Server::start(move |_| with(307, &[&to], ""));
    let error = server.repo().update_comment(1, "b").await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Protocol, "{error}");
    assert!(other.asked().is_empty());
    let plain = Server::start(|_| with(302, &["location: http://192.0.2.1/x"], ""));
    assert!(matches!(
        plain.repo().facts().await,
        Err(Error {
            kind: ErrorKind::Protocol,
            ..
        })
    ));
}

#[tokio::test]
async fn an_answer_that_is_too_large_or_no_json_is_an_error() {
    let server = Server::start(|_| Say::Answer(200, Vec::new(), " ".repeat(17 << 20)));
    let error = server.repo().facts().await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "GET /repos/octo/hello: the response is larger than 16 MiB"
    );
    let server = Server::start(|_| Say::Answer(200, Vec::new(), "<html>".to_owned()));
    assert!(matches!(
        server.repo().facts().await,
        Err(Error {
            kind: ErrorKind::Protocol,
            ..
        })
    ));
}

#[tokio::test]
async fn writes_are_spaced() {
    let server = Server::start(|_| answer(200, json!({ "id": 1 })));
    let hour = Duration::from_secs(3600);
    let client = server.client_with(Limits {
        spacing: hour,
        ..limits()
    });
    let repo = client.repo("octo/hello").unwrap();
    repo.update_comment(1, "a").await.unwrap();
    repo.facts().await.unwrap_err();
    assert!(waits(&client).is_empty());
    repo.update_comment(1, "b").await.unwrap();
    let waits = waits(&client);
    assert!(waits.len() == 1 && waits[0] <= hour, "{waits:?}");
}

#[tokio::test]
async fn nothing_listens_there() {
    // A port that was given back may be another test's by now.
    let api_url = "http://127.0.0.1:1".to_owned();
    let limits = Limits {
        attempts: 2,
        first_wait: Duration::ZERO,
        ..limits()
    };
    let client = Client::new(
        Settings {
            api_url,
            server_url: String::new(),
            token: TOKEN.into(),
            limits,
        },
        &Network::direct(),
    )
    .unwrap();
    let error = client
        .repo("octo/hello")
        .unwrap()
        .create_ref("refs/heads/x", "0")
        .await
        .unwrap_err();
    assert!(error.to_string().contains("onnection refused"), "{error}");
    assert_eq!(client.take_incidents().len(), 2);
}

#[tokio::test]
async fn the_token_is_in_no_message() {
    let echo = json!({ "message": format!("what is {TOKEN}?") });
    let server = Server::start(move |_| answer(500, &echo));
    let client = server.client();
    let error = client
        .repo("octo/hello")
        .unwrap()
        .facts()
        .await
        .unwrap_err();
    let told = format!("{error} {error:?} {:?} {client:?}", client.take_incidents());
    assert!(
        told.contains("what is ***?") && !told.contains(TOKEN),
        "{told}"
    );
}

#[test]
fn a_token_goes_over_https_or_to_this_machine() {
    let new = |api_url: &str| {
        let api_url = api_url.to_owned();
        Client::new(
            Settings {
                api_url,
                server_url: String::new(),
                token: TOKEN.into(),
                limits: limits(),
            },
            &Network::direct(),
        )
        .map(|_| ())
    };
    for good in [
        "https://api.github.com",
        "https://ghe.example/api/v3/",
        "http://127.0.0.1:1",
        "http://[::1]:1",
        "http://localhost:1",
    ] {
        assert_eq!(new(good), Ok(()), "{good}");
    }
    for bad in [
        "http://api.github.com",
        "http://localhost.example",
        "http://127.0.0.1.example",
        "ftp://localhost",
        "",
        "https://user@api.github.com",
    ] {
        assert!(new(bad).is_err(), "{bad}");
    }
    assert!(
        Client::new(
            Settings {
                api_url: "https://api.github.com".to_owned(),
                server_url: String::new(),
                token: "a\nb".into(),
                limits: limits()
            },
            &Network::direct()
        )
        .is_err()
    );
}

#[test]
fn a_repository_is_named_by_owner_and_name() {
    let server = script(Vec::new());
    for bad in [
        "octo",
        "octo/",
        "/hello",
        "octo/hello/x",
        "octo/..",
        "octo/he llo",
        "octo/h?x",
    ] {
        assert!(server.client().repo(bad).is_err(), "{bad}");
    }
    assert_eq!(format!("/repos/{}", server.repo().full_name()), REPO);
}

#[tokio::test]
async fn https_goes_through_the_proxy_and_not_for_hosts_without_one() {
    let proxy = Server::start(|_| with(407, &[], ""));
    let with_network = |none_for: &str| {
        let limits = Limits {
            attempts: 1,
            ..limits()
        };
        let settings = Settings {
            api_url: "https://github.invalid".to_owned(),
            server_url: String::new(),
            token: TOKEN.into(),
            limits,
        };
        let https = proxy.url.replace("http://", "http://user:pass@");
        let network = Network::of(|name| match name {
            "HTTPS_PROXY" => Some(https.clone().into()),
            "NO_PROXY" => Some(none_for.into()),
            _ => None,
        });
        Client::new(settings, &network).unwrap()
    };
    let error = with_network("")
        .repo("octo/hello")
        .unwrap()
        .facts()
        .await
        .unwrap_err();
    assert!(!error.is_temporary(), "{error}");
    assert!(
        error
            .to_string()
            .contains("requires a valid user and password"),
        "{error}"
    );
    let asked = proxy.asked();
    assert_eq!(asked.len(), 1);
    assert!(asked[0].is("CONNECT", "github.invalid:443"));
    assert!(
        asked[0]
            .headers
            .contains("proxy-authorization: basic dxnlcjpwyxnz")
    );
    assert!(!asked[0].headers.contains(TOKEN));
    with_network("github.invalid")
        .repo("octo/hello")
        .unwrap()
        .facts()
        .await
        .unwrap_err();
    assert_eq!(proxy.asked().len(), 1);
}
