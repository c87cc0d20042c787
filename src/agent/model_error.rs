//! Errors of a model's API, and the possible reactions to them.

use serde::Serialize;
use sprag_domain::agent::ApiError;
pub use sprag_domain::api_error::ModelErrorKind;
use sprag_domain::api_error::{self, ERROR_CHARS};
use sprag_domain::text::cap_chars;
use sprag_domain::wait::WaitPolicy;

/// The waits of a session, from two seconds to five minutes. Every request contains the whole conversation,
/// so waiting is cheaper than starting another session.
pub const WAITS: WaitPolicy = WaitPolicy {
    first_ms: 2_000,
    factor: 2,
    longest_ms: 300_000,
};

/// The possible reaction to an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remedy {
    /// Wait, then repeat the request.
    Wait,
    /// Repeat the request once: another sample may pass.
    Once,
    /// Repeat the request with less content.
    Shrink,
    /// Nothing.
    Stop,
}

/// An error of a model's API.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct ModelError {
    /// The kind of error.
    pub kind: ModelErrorKind,
    /// The HTTP status, if there was one.
    pub status: Option<u16>,
    /// The provider's text.
    pub message: String,
    /// How long the provider asked to wait, in milliseconds.
    pub retry_after_ms: Option<u64>,
}

impl ModelError {
    /// Reads an error from the status and body of a response. `retry_after_ms` is the wait from its headers
    /// (see [`retry_after`]); without one, the wait from the body is used.
    pub fn of_answer(status: u16, body: &str, retry_after_ms: Option<u64>) -> Self {
        Self::read(Some(status), body, retry_after_ms)
    }

    /// Reads an error that arrived in a stream, without a status of its own.
    pub fn of_stream(text: &str) -> Self {
        Self::read(None, text, None)
    }

    /// A connection that failed, or a response that broke off.
    pub fn network(message: &str) -> Self {
        Self {
            kind: ModelErrorKind::Network,
            status: None,
            message: cap_chars(message.trim(), ERROR_CHARS).into_owned(),
            retry_after_ms: None,
        }
    }

    /// A connection that is impossible until a setting is changed.
    pub fn setup(message: &str) -> Self {
        Self {
            kind: ModelErrorKind::Setup,
            ..Self::network(message)
        }
    }

    fn read(status: Option<u16>, text: &str, header_ms: Option<u64>) -> Self {
        let known = api_error::read(status, text);
        Self {
            kind: known.map_or(ModelErrorKind::Rejected, |known| known.kind),
            status: status.or(known.and_then(|known| known.status)),
            message: cap_chars(text.trim(), ERROR_CHARS).into_owned(),
            retry_after_ms: header_ms.or(known.and_then(|known| known.retry_after_ms)),
        }
    }

    /// Whether its text contains one of these words, in lower case.
    pub(super) fn says(&self, words: &[&str]) -> bool {
        let text = self.message.to_lowercase();
        words.iter().any(|word| text.contains(word))
    }

    /// The possible reaction to this error.
    pub fn remedy(&self) -> Remedy {
        use ModelErrorKind as K;
        match self.kind {
            K::RateLimit | K::Overloaded | K::Server | K::Network => Remedy::Wait,
            K::ContentFilter => Remedy::Once,
            K::ContextTooLong => Remedy::Shrink,
            K::Login | K::Permission | K::UnknownModel | K::Quota | K::Setup | K::Rejected => {
                Remedy::Stop
            }
        }
    }

    /// The wait before the request is repeated, in milliseconds, after `failures` consecutive failures
    /// including this one. The caller adds jitter.
    pub fn wait_ms(&self, failures: u32) -> u64 {
        WAITS.wait_ms(failures, self.retry_after_ms)
    }

    /// The error in the vocabulary of all agents.
    pub fn api_error(&self) -> ApiError {
        let class = self.kind.class();
        ApiError {
            status: self.status,
            message: self.message.clone(),
            retry_after_ms: self
                .retry_after_ms
                .filter(|_| class == sprag_domain::agent::ApiErrorClass::Transient),
            class,
        }
    }
}

/// The wait that a `Retry-After` header asks for, in milliseconds: a number of seconds, or a date (RFC 9110)
/// relative to `now`.
pub fn retry_after(header: &str, now: jiff::Timestamp) -> Option<u64> {
    let header = header.trim();
    if let Ok(seconds) = header.parse::<f64>() {
        let milliseconds = (seconds * 1_000.0).ceil();
        return (0.0..=1e15)
            .contains(&milliseconds)
            .then_some(milliseconds as u64);
    }
    let at = jiff::fmt::rfc2822::parse(header).ok()?.timestamp();
    let wait = at.as_millisecond().saturating_sub(now.as_millisecond());
    Some(u64::try_from(wait).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use sprag_domain::agent::ApiErrorClass;

    fn kind(status: u16, body: &str) -> (ModelErrorKind, Remedy) {
        let error = match status {
            0 => ModelError::of_stream(body),
            _ => ModelError::of_answer(status, body, None),
        };
        (error.kind, error.remedy())
    }

    #[test]
    fn every_error_has_its_kind_and_its_remedy() {
        use ModelErrorKind as K;
        use Remedy::*;
        let too_large = r#"{"error":{"message":"Request too large for m in organization o on tokens per min (TPM)","code":"rate_limit_exceeded"}}"#;
        let cases = [
            (
                401,
                r#"{"error":{"message":"Incorrect API key provided"}}"#,
                K::Login,
                Stop,
            ),
            (401, "", K::Login, Stop),
            (
                403,
                r#"{"type":"error","error":{"type":"permission_error"}}"#,
                K::Permission,
                Stop,
            ),
            (
                404,
                r#"{"error":{"code":"model_not_found"}}"#,
                K::UnknownModel,
                Stop,
            ),
            (404, "page not found", K::UnknownModel, Stop),
            (410, "closed", K::UnknownModel, Stop),
            (402, "", K::Quota, Stop),
            (
                429,
                r#"{"error":{"code":"insufficient_quota"}}"#,
                K::Quota,
                Stop,
            ),
            (400, "Your credit balance is too low", K::Quota, Stop),
            (
                429,
                r#"{"error":{"code":"rate_limit_exceeded"}}"#,
                K::RateLimit,
                Wait,
            ),
            (429, "", K::RateLimit, Wait),
            (429, too_large, K::ContextTooLong, Shrink),
            (503, "", K::Overloaded, Wait),
            (
                529,
                r#"{"error":{"type":"overloaded_error"}}"#,
                K::Overloaded,
                Wait,
            ),
            (500, "", K::Server, Wait),
            (502, "<html>Bad Gateway</html>", K::Server, Wait),
            (408, "", K::Network, Wait),
            (
                400,
                r#"{"error":{"code":"context_length_exceeded"}}"#,
                K::ContextTooLong,
                Shrink,
            ),
            (
                400,
                "prompt is too long: 210000 tokens > 200000 maximum",
                K::ContextTooLong,
                Shrink,
            ),
            (
                413,
                r#"{"error":{"code":"tokens_limit_reached"}}"#,
                K::ContextTooLong,
                Shrink,
            ),
            (
                400,
                "input length and `max_tokens` exceed context limit: 190000 + 16000 > 200000",
                K::ContextTooLong,
                Shrink,
            ),
            (
                400,
                "This model's maximum prompt length is 131072 but the request contains 537812 tokens",
                K::ContextTooLong,
                Shrink,
            ),
            (
                400,
                r#"{"error":{"code":"content_filter"}}"#,
                K::ContentFilter,
                Once,
            ),
            (
                400,
                r#"{"error":{"type":"invalid_request_error"}}"#,
                K::Rejected,
                Stop,
            ),
            (422, "", K::Rejected, Stop),
            (
                0,
                r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
                K::Overloaded,
                Wait,
            ),
            (0, "rate limit reached", K::RateLimit, Wait),
            (0, "connection reset by peer", K::Network, Wait),
            (0, "internal server error", K::Server, Wait),
            (0, "invalid api key", K::Login, Stop),
            (0, "unknown model x", K::UnknownModel, Stop),
            (0, "something else", K::Rejected, Stop),
        ];
        for (status, body, expected, remedy) in cases {
            assert_eq!(kind(status, body), (expected, remedy), "{status} {body}");
        }
        assert_eq!(ModelError::network("broke off").remedy(), Wait);
        assert_eq!(ModelError::setup("no certificate").remedy(), Stop);
    }

    #[test]
    fn a_wait_is_what_the_provider_asks_for_or_grows_and_is_bounded() {
        let error = |retry_after_ms| ModelError {
            retry_after_ms,
            ..ModelError::network("x")
        };
        let waits: Vec<u64> = (1..=5).map(|n| error(None).wait_ms(n)).collect();
        assert_eq!(waits, [2_000, 4_000, 8_000, 16_000, 32_000]);
        assert_eq!(error(Some(7_500)).wait_ms(3), 7_500);
        assert_eq!(error(Some(u64::MAX)).wait_ms(1), WAITS.longest_ms);
        assert_eq!(error(None).wait_ms(u32::MAX), WAITS.longest_ms);
    }

    #[test]
    fn the_header_goes_before_the_text() {
        let error = ModelError::of_answer(429, "try again in 20s", Some(3_000));
        assert_eq!(error.retry_after_ms, Some(3_000));
        let error = ModelError::of_answer(429, "try again in 20s", None);
        assert_eq!(error.retry_after_ms, Some(20_000));
        assert_eq!(error.api_error().retry_after_ms, Some(20_000));
        assert_eq!(error.api_error().class, ApiErrorClass::Transient);
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let now: jiff::Timestamp = "2025-01-01T00:00:00Z".parse().unwrap();
        let cases = [
            ("30", Some(30_000)),
            (" 0.5 ", Some(500)),
            ("Wed, 01 Jan 2025 00:01:00 GMT", Some(60_000)),
            ("Tue, 31 Dec 2024 23:00:00 GMT", Some(0)),
            ("-5", None),
            ("inf", None),
            ("soon", None),
            ("", None),
        ];
        for (header, expected) in cases {
            assert_eq!(retry_after(header, now), expected, "{header}");
        }
    }

    proptest! {
        #[test]
        fn what_can_be_waited_out_is_what_all_agents_call_transient(
            status in 400u16..600,
            body in "[a-z _]{0,30}",
        ) {
            let error = ModelError::of_answer(status, &body, None);
            let transient = error.api_error().class == ApiErrorClass::Transient;
            prop_assert_eq!(error.remedy() == Remedy::Wait, transient);
        }
    }
}
