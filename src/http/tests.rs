//! Tests of proxy selection, trusted certificates, and error messages.

use super::*;

type Set<'a> = &'a [(&'a str, &'a str)];

fn network(set: Set<'_>) -> Network {
    Network::of(|name| {
        let found = set.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| OsString::from(value))
    })
}

/// `PROXY by VARIABLE`, `-` for none, or the error.
fn route(set: Set<'_>, to: &str) -> String {
    match network(set).via(&to.parse().unwrap()) {
        Ok(None) => "-".to_owned(),
        Ok(Some(via)) => format!("{} by {}", via.proxy, via.variable),
        Err(fault) => fault.to_string(),
    }
}

#[test]
fn the_variables_decide_as_with_curl() {
    let https = ("HTTPS_PROXY", "http://p:3128");
    let cases: &[(Set<'_>, &str, &str)] = &[
        (&[], "https://api.example.com/v1", "-"),
        (
            &[https],
            "https://api.example.com/v1",
            "http://p:3128 by HTTPS_PROXY",
        ),
        (&[https], "http://api.example.com/v1", "-"),
        (
            &[("HTTP_PROXY", "p:1")],
            "http://api.example.com",
            "http://p:1 by HTTP_PROXY",
        ),
        (
            &[https, ("https_proxy", "q:1")],
            "https://api.example.com",
            "http://q:1 by https_proxy",
        ),
        (
            &[https, ("https_proxy", "")],
            "https://api.example.com",
            "http://p:3128 by HTTPS_PROXY",
        ),
        (
            &[("ALL_PROXY", "https://p")],
            "https://api.example.com",
            "https://p by ALL_PROXY",
        ),
        (
            &[("all_proxy", "p:2"), https],
            "http://api.example.com",
            "http://p:2 by all_proxy",
        ),
        (
            &[https, ("NO_PROXY", "example.com")],
            "https://api.example.com",
            "-",
        ),
        (
            &[https, ("NO_PROXY", "*.example.com x")],
            "https://api.example.com",
            "-",
        ),
        (
            &[https, ("no_proxy", "other.com,10.0.0.0/8")],
            "https://10.1.2.3",
            "-",
        ),
        (&[https, ("NO_PROXY", "*")], "https://api.example.com", "-"),
        (
            &[https, ("NO_PROXY", "ample.com")],
            "https://api.example.com",
            "http://p:3128 by HTTPS_PROXY",
        ),
        (
            &[("HTTPS_PROXY", "http://user:secret@p:3128/x")],
            "https://h",
            "http://p:3128 by HTTPS_PROXY",
        ),
    ];
    for (set, to, expected) in cases {
        assert_eq!(route(set, to), *expected, "{set:?} {to}");
    }
}

#[test]
fn this_machine_is_reached_directly() {
    let set = &[("ALL_PROXY", "http://p:3128")];
    for host in [
        "localhost:1",
        "LOCALHOST",
        "127.0.0.1:8080",
        "127.1.2.3",
        "[::1]:1",
        "0.0.0.0",
    ] {
        for scheme in ["http", "https"] {
            assert_eq!(route(set, &format!("{scheme}://{host}/v1")), "-", "{host}");
        }
    }
    assert_ne!(route(set, "http://localhost.example.com"), "-");
}

#[test]
fn a_proxy_that_cannot_be_used_is_told_where_it_would_be_and_no_password_with_it() {
    for bad in [
        "socks5://u:secret@p:1",
        "http://u:secret@",
        "http://u:se cret@p",
        "://",
        "/p",
        "http://u:secret@h@p",
    ] {
        let set = &[("HTTPS_PROXY", bad), ("NO_PROXY", "example.org")];
        let told = route(set, "https://api.example.com");
        assert!(
            told.starts_with("HTTPS_PROXY is not the address"),
            "{bad}: {told}"
        );
        assert!(!told.contains("cret"), "{told}");
        assert_eq!(route(set, "https://example.org"), "-");
        assert_eq!(route(set, "http://api.example.com"), "-");
    }
    let chosen = network(&[("ALL_PROXY", "http://u:secret@p")])
        .rules
        .proxy_for(&"https://h".parse().unwrap());
    assert!(!format!("{chosen:?}").contains("secret"));
}

#[test]
fn a_login_goes_into_requests_over_plain_http_alone() {
    let network = network(&[("ALL_PROXY", "http://us%65r:p%40ss@p")]);
    let login = |to: &str| network.proxy_authorization(&to.parse().unwrap());
    assert_eq!(
        login("http://api.example.com").unwrap(),
        "Basic dXNlcjpwQHNz"
    );
    assert_eq!(login("https://api.example.com"), None);
    assert_eq!(login("http://127.0.0.1"), None);
}

#[test]
fn certificates_come_from_the_variables_or_from_the_machine() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    let machine = network(&[]).trusted().unwrap();
    assert!(machine.built_in > 100 && machine.variables.is_empty());
    let empty = path("empty.pem");
    std::fs::write(&empty, "nothing\n").unwrap();
    for (set, words) in [
        ([("SSL_CERT_FILE", path("none.pem"))], "SSL_CERT_FILE="),
        (
            [("SSL_CERT_FILE", empty)],
            "there is no certificate in PEM format",
        ),
        ([("SSL_CERT_DIR", path("none"))], "SSL_CERT_DIR="),
    ] {
        let set = set.each_ref().map(|(name, value)| (*name, value.as_str()));
        let network = network(&set);
        let told = network.trusted().unwrap_err().to_string();
        assert!(told.contains(words), "{told}");
    }
    let place = dir.path().display().to_string();
    let found = network(&[("SSL_CERT_DIR", &format!(":{place}:{place}"))])
        .trusted()
        .unwrap();
    assert_eq!(
        (found.added, found.variables.as_slice()),
        (0, ["SSL_CERT_DIR"].as_slice())
    );
}

#[tokio::test]
async fn a_connection_that_fails_is_told_without_the_words_of_the_client() {
    // A port that was given back may be another test's by now.
    let to = "http://127.0.0.1:1/";
    let request = hyper::Request::get(to).body(http_body_util::Full::default());
    let client = Client::new(&Network::direct(), None);
    let sent = client
        .send(request.unwrap(), Duration::from_secs(600))
        .await;
    let Err(TransportError::Unsent(text)) = sent else {
        panic!("{sent:?}");
    };
    assert!(text.contains("refused"), "{text}");
    assert!(!text.contains("client error"), "{text}");
}

#[test]
fn what_is_told_of_an_error_says_everything_once_and_what_to_do() {
    use rustls::{CertificateError as C, Error as E};
    use std::io;
    let wrapped = |why| {
        io::Error::other(io::Error::new(
            io::ErrorKind::InvalidData,
            E::InvalidCertificate(why),
        ))
    };
    let (text, is_fault) = describe_error(&wrapped(C::UnknownIssuer));
    assert!(
        is_fault && text.contains("SSL_CERT_FILE") && text.ends_with("UnknownIssuer"),
        "{text}"
    );
    let (text, is_fault) = describe_error(&wrapped(C::Expired));
    assert!(is_fault && !text.contains("SSL_CERT_FILE"), "{text}");
    let reset = io::Error::other(io::Error::from(io::ErrorKind::ConnectionReset));
    assert_eq!(
        describe_error(&reset),
        ("connection reset".to_owned(), false)
    );
    let fault = io::Error::other(Fault("set it right".to_owned()));
    assert_eq!(describe_error(&fault), ("set it right".to_owned(), true));
}
