use super::*;
use ApiErrorClass::{Rejected, Transient, Unavailable};
use proptest::prelude::*;

/// Class, status and milliseconds to wait.
type Classified = Option<(ApiErrorClass, Option<u16>, Option<u64>)>;

fn told(text: &str) -> Classified {
    classify(None, text).map(|e| (e.class, e.status, e.retry_after_ms))
}

#[test]
fn only_a_person_can_help() {
    let unavailable = |status| Some((Unavailable, status, None));
    for (text, expected) in [
        (
            "unexpected status 401 Unauthorized: bad key, url: http://127.0.0.1:41231/v1/responses",
            Some(401),
        ),
        (
            "Failed to authenticate. API Error: 401 no such key",
            Some(401),
        ),
        ("API Error: 403 this key may not use the API", Some(403)),
        ("Not logged in · Please run /login", None),
        ("Invalid API key · Fix external API key", None),
        (
            "Incorrect API key provided: sk-abc***. You can find your API key at …",
            None,
        ),
        ("Missing environment variable: `FAKE_KEY`.", None),
        ("OAuth token has expired. Please obtain a new token", None),
        (
            "The model `gpt-99` does not exist or you do not have access to it.",
            None,
        ),
        (
            "There's an issue with the selected model (x). It may not exist or …",
            None,
        ),
        ("Error: the model gpt-99 does not exist", None),
        ("model \"llama9:70b\" not found, try pulling it first", None),
        ("models/gemini-99 is not found for API version v1beta", None),
        (
            "{\"error\":{\"type\":\"invalid_request_error\",\"code\":\"model_not_found\"}}",
            None,
        ),
        (
            "The 'x' model is not supported when using Codex with a ChatGPT account.",
            None,
        ),
        ("404 Not Found: no such route", Some(404)),
        (
            "Your credit balance is too low to access the Anthropic API",
            None,
        ),
        (
            "429 Too Many Requests: You exceeded your current quota",
            Some(429),
        ),
        (
            "--dangerously-skip-permissions cannot be used with root/sudo privileges",
            None,
        ),
    ] {
        assert_eq!(told(text), unavailable(expected), "{text}");
    }
}

#[test]
fn waiting_helps() {
    let transient = |status, wait| Some((Transient, status, wait));
    for (text, expected) in [
        (
            "exceeded retry limit, last status: 429 Too Many Requests",
            transient(Some(429), None),
        ),
        (
            "API Error: Request rejected (429) · slow down",
            transient(Some(429), None),
        ),
        (
            "We’re currently experiencing high demand, which may cause temporary errors.",
            transient(None, None),
        ),
        (
            "API Error: 529 {\"type\":\"overloaded_error\"}",
            transient(Some(529), None),
        ),
        (
            "HTTP/1.1 503 Service Unavailable\nretry-after: 3",
            transient(Some(503), Some(3_000)),
        ),
        (
            "stream disconnected before completion: error sending request",
            transient(None, None),
        ),
        ("API Error: Connection error.", transient(None, None)),
        (
            "Rate limit reached for gpt-x: Please try again in 1.5s.",
            transient(None, Some(1_500)),
        ),
        (
            "Rate limit reached, try again in 6m0s",
            transient(None, Some(360_000)),
        ),
        ("rate_limit: try again in 200ms", transient(None, Some(200))),
        (
            "You've hit your usage limit. Upgrade, or try again in 3 days 2 hours 5 minutes.",
            transient(None, Some(266_700_000)),
        ),
        (
            "You’ve hit your session limit · resets 3pm (UTC)",
            transient(None, None),
        ),
        ("5-hour limit reached ∙ resets 3pm", transient(None, None)),
        (
            "Claude usage limit reached. Your limit resets in 1h and 30m",
            transient(None, Some(5_400_000)),
        ),
        (
            "429: You exceeded your current quota. Please retry in 34.07s.",
            transient(None, Some(34_070)),
        ),
        (
            "error 500, try again in a moment",
            transient(Some(500), None),
        ),
        (
            "status 429, \"retry_after\": 7, url …",
            transient(Some(429), Some(7_000)),
        ),
        (
            "status 429, retry-after-ms: 250",
            transient(Some(429), Some(250)),
        ),
        ("status 408", transient(Some(408), None)),
    ] {
        assert_eq!(told(text), expected, "{text}");
    }
}

#[test]
fn the_request_itself_was_refused() {
    for (text, status) in [
        (
            "API Error: 400 messages: at least one message is required",
            Some(400),
        ),
        (
            "{\"error\":{\"message\":\"no\",\"type\":\"invalid_request_error\"}}",
            None,
        ),
        ("Your input exceeds the context window of this model.", None),
        (
            "API Error: 429 Prompt is too long, try again in 3s",
            Some(429),
        ),
        ("error 413", Some(413)),
    ] {
        assert_eq!(told(text), Some((Rejected, status, None)), "{text}");
    }
}

#[test]
fn unknown_words_are_not_guessed_at() {
    for text in [
        "",
        "Reached maximum number of turns (1)",
        "thread 'main' panicked at src/main.rs:500:13",
        "listening on 127.0.0.1:429",
        "429 files were read",
        "error 42",
        "error 4000",
    ] {
        assert_eq!(told(text), None, "{text}");
    }
}

#[test]
fn the_status_that_is_reported_apart_wins() {
    assert_eq!(
        classify(Some(500), " the gateway said status 404 \n"),
        Some(ApiError {
            status: Some(500),
            message: "the gateway said status 404".into(),
            retry_after_ms: None,
            class: Transient,
        })
    );
}

#[test]
fn a_final_error_of_unknown_words_is_a_failed_attempt() {
    assert_eq!(
        classify_final(None, "it did not work"),
        ApiError {
            status: None,
            message: "it did not work".into(),
            retry_after_ms: None,
            class: Rejected,
        }
    );
}

#[test]
fn the_remedy_is_given_for_a_login_only() {
    let message = |text| classify(None, text).map(|error| with_remedy(error, "set X").message);
    assert_eq!(message("status 401"), Some("status 401 (set X)".into()));
    assert_eq!(
        message("Not logged in"),
        Some("Not logged in (set X)".into())
    );
    assert_eq!(message("unknown model"), Some("unknown model".into()));
    assert_eq!(message("status 429"), Some("status 429".into()));
}

#[test]
fn a_wait_that_is_nonsense_is_no_wait() {
    assert_eq!(
        told("overloaded, try again in 99999 days"),
        Some((Transient, None, None))
    );
    assert_eq!(
        told("overloaded, try again in 1.2.3s"),
        Some((Transient, None, None))
    );
}

proptest! {
    #[test]
    fn any_text_is_told_without_panic(status in proptest::option::of(any::<u16>()), text in "\\PC{0,300}") {
        if let Some(error) = classify(status, &text) {
            prop_assert!(error.message.chars().count() <= ERROR_CHARS);
            prop_assert!(error.retry_after_ms.is_none() || error.class == Transient);
        }
    }

    #[test]
    fn every_wait_in_seconds_is_read(seconds in 0_u64..100_000) {
        let expected = Some((Transient, Some(429), Some(seconds * 1_000)));
        prop_assert_eq!(told(&format!("status 429; try again in {seconds}s")), expected);
        prop_assert_eq!(told(&format!("status: 429, Retry-After: {seconds}")), expected);
    }
}
