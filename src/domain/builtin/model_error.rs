//! Errors of a model's API: what they are, and what can be done about them.

use crate::agent::{ApiError, ApiErrorClass};
use crate::api_error::{ERROR_CHARS, classify};
use crate::text::cap_chars;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The longest single wait, in milliseconds (five minutes).
pub const LONGEST_WAIT_MS: u64 = 300_000;

/// The first wait, in milliseconds; each further one is twice as long.
pub const FIRST_WAIT_MS: u64 = 2_000;

/// What an error of a model's API is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ModelErrorKind {
    /// The key is missing, wrong or expired (401).
    Login,
    /// The key may not do this (403).
    Permission,
    /// There is no such model, or no such address (404), or not any more (410).
    UnknownModel,
    /// The account is spent (402).
    Quota,
    /// Too many requests for now (429).
    RateLimit,
    /// The provider has no capacity (503, 529).
    Overloaded,
    /// The provider failed (5xx).
    Server,
    /// The connection failed.
    Network,
    /// The connection cannot be made until a setting is changed: a proxy, a certificate.
    Setup,
    /// The request does not fit the model's window (400, 413).
    ContextTooLong,
    /// A filter refused the request or the response.
    ContentFilter,
    /// The request was refused for another reason.
    Rejected,
    /// A recording stands in for the model, and it has no further response.
    NotRecorded,
}

/// What can be done about an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remedy {
    /// Wait, then ask again.
    Wait,
    /// Ask once more: another sample may pass.
    Once,
    /// Ask again with less.
    Shrink,
    /// Nothing.
    Stop,
}

/// An error of a model's API.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct ModelError {
    /// What it is.
    pub kind: ModelErrorKind,
    /// The HTTP status, where there was one.
    pub status: Option<u16>,
    /// The provider's text.
    pub message: String,
    /// How long the provider asked to wait, in milliseconds.
    pub retry_after_ms: Option<u64>,
}

impl ModelError {
    /// Reads an error from the status and the body of an answer. `retry_after_ms` is what its
    /// headers ask for (see [`retry_after`]); where they do not, the body may.
    pub fn of_answer(status: u16, body: &str, retry_after_ms: Option<u64>) -> Self {
        Self::read(Some(status), body, retry_after_ms)
    }

    /// Reads an error that came inside of a stream, without a status of its own.
    pub fn of_stream(text: &str) -> Self {
        Self::read(None, text, None)
    }

    /// A connection that failed, or an answer that broke off.
    pub fn network(message: &str) -> Self {
        Self {
            kind: ModelErrorKind::Network,
            status: None,
            message: cap_chars(message.trim(), ERROR_CHARS).into_owned(),
            retry_after_ms: None,
        }
    }

    /// A recording has no further response.
    pub fn not_recorded(message: &str) -> Self {
        Self {
            kind: ModelErrorKind::NotRecorded,
            ..Self::network(message)
        }
    }

    /// A connection that cannot be made until a setting is changed.
    pub fn setup(message: &str) -> Self {
        Self {
            kind: ModelErrorKind::Setup,
            ..Self::network(message)
        }
    }

    fn read(status: Option<u16>, text: &str, header_ms: Option<u64>) -> Self {
        let known = classify(status, text);
        let status = status.or(known.as_ref().and_then(|error| error.status));
        let lower = text.to_lowercase();
        let kind = kind_of(status, &lower, known.as_ref().map(|error| error.class));
        let text_ms = known.and_then(|error| error.retry_after_ms);
        Self {
            kind,
            status,
            message: cap_chars(text.trim(), ERROR_CHARS).into_owned(),
            retry_after_ms: header_ms.or(text_ms),
        }
    }

    /// What can be done about it.
    pub fn remedy(&self) -> Remedy {
        use ModelErrorKind as K;
        match self.kind {
            K::RateLimit | K::Overloaded | K::Server | K::Network => Remedy::Wait,
            K::ContentFilter => Remedy::Once,
            K::ContextTooLong => Remedy::Shrink,
            K::Login
            | K::Permission
            | K::UnknownModel
            | K::Quota
            | K::Setup
            | K::Rejected
            | K::NotRecorded => Remedy::Stop,
        }
    }

    /// How long to wait before the request is made again, in milliseconds, after `failures` failures
    /// in a row, this one included. Whoever waits adds some jitter.
    pub fn wait_ms(&self, failures: u32) -> u64 {
        let doubled = 1u64
            .checked_shl(failures.saturating_sub(1))
            .unwrap_or(u64::MAX);
        let own = FIRST_WAIT_MS.saturating_mul(doubled);
        self.retry_after_ms.unwrap_or(own).min(LONGEST_WAIT_MS)
    }

    /// The error in the vocabulary of all agents.
    pub fn api_error(&self) -> ApiError {
        use ModelErrorKind as K;
        let class = match self.kind {
            K::RateLimit | K::Overloaded | K::Server | K::Network => ApiErrorClass::Transient,
            K::Login | K::Permission | K::UnknownModel | K::Quota | K::Setup | K::NotRecorded => {
                ApiErrorClass::Unavailable
            }
            K::ContextTooLong | K::ContentFilter | K::Rejected => ApiErrorClass::Rejected,
        };
        ApiError {
            status: self.status,
            message: self.message.clone(),
            retry_after_ms: self
                .retry_after_ms
                .filter(|_| class == ApiErrorClass::Transient),
            class,
        }
    }
}

/// What a `Retry-After` header asks for, in milliseconds: a number of seconds, or a date (RFC 9110)
/// as seen from `now`.
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

const CONTEXT: &[&str] = &[
    "context window",
    "context length",
    "context_length",
    "context size",
    "maximum context",
    "exceed context limit",
    "maximum prompt length",
    "ran out of room",
    "prompt is too long",
    "input is too long",
    "reduce the length",
    "exceeds the maximum number of tokens",
    "tokens_limit_reached",
    "too many input tokens",
    "request too large",
    "request_too_large",
    "request body too large",
];

const FILTER: &[&str] = &[
    "content_filter",
    "content filter",
    "content management policy",
    "content_policy",
    "content policy",
    "responsibleaipolicy",
    "prohibited_content",
    "violate our usage policy",
    "flagged as potentially violating",
    "blocked by safety",
    "safety settings",
];

fn kind_of(status: Option<u16>, lower: &str, class: Option<ApiErrorClass>) -> ModelErrorKind {
    use ModelErrorKind as K;
    let has = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    let refusal = matches!(status, None | Some(400 | 403 | 413 | 422 | 429));
    let by_status = status.and_then(kind_of_status);
    match class {
        _ if status == Some(413) || (refusal && has(CONTEXT)) => K::ContextTooLong,
        _ if refusal && status != Some(429) && has(FILTER) => K::ContentFilter,
        Some(ApiErrorClass::Transient) => by_status
            .filter(|kind| matches!(kind, K::RateLimit | K::Overloaded | K::Server))
            .unwrap_or_else(|| transient(lower)),
        Some(ApiErrorClass::Unavailable) => by_status
            .filter(|kind| {
                let named = matches!(kind, K::Login | K::Permission | K::UnknownModel | K::Quota);
                named && !has(&["quota", "billing", "credit"])
            })
            .unwrap_or_else(|| unavailable(lower)),
        Some(ApiErrorClass::Rejected) | None => K::Rejected,
    }
}

fn kind_of_status(status: u16) -> Option<ModelErrorKind> {
    use ModelErrorKind as K;
    match status {
        401 => Some(K::Login),
        402 => Some(K::Quota),
        403 => Some(K::Permission),
        404 | 410 => Some(K::UnknownModel),
        429 => Some(K::RateLimit),
        503 | 529 => Some(K::Overloaded),
        500..=599 => Some(K::Server),
        _ => None,
    }
}

fn transient(lower: &str) -> ModelErrorKind {
    let has = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    if has(&["limit", "too many requests", "quota"]) {
        ModelErrorKind::RateLimit
    } else if has(&["overloaded", "capacity", "high demand"]) {
        ModelErrorKind::Overloaded
    } else if has(&["server", "gateway", "service"]) {
        ModelErrorKind::Server
    } else {
        ModelErrorKind::Network
    }
}

fn unavailable(lower: &str) -> ModelErrorKind {
    let has = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    if has(&["quota", "billing", "credit"]) {
        ModelErrorKind::Quota
    } else if has(&["model"]) {
        ModelErrorKind::UnknownModel
    } else if has(&["key", "login", "logged in", "auth", "token", "bearer"]) {
        ModelErrorKind::Login
    } else {
        ModelErrorKind::Permission
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
        assert_eq!(error(Some(u64::MAX)).wait_ms(1), LONGEST_WAIT_MS);
        assert_eq!(error(None).wait_ms(u32::MAX), LONGEST_WAIT_MS);
    }

    #[test]
    fn a_recording_that_is_over_is_final_and_leaves_no_agent() {
        let error = ModelError::not_recorded("the recording is over");
        assert_eq!(error.remedy(), Remedy::Stop);
        let told = error.api_error();
        assert_eq!(told.class, ApiErrorClass::Unavailable);
        assert_eq!(
            (told.status, told.message.as_str()),
            (None, "the recording is over")
        );
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
