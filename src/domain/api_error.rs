//! Classifies an error of a model's API from its status and text.
//!
//! Agents report the errors of a dozen providers, mostly as prose and often without the status. The texts
//! here are those that the supported agents and their providers print. An unknown text gives `None`, because
//! waiting for a permanent error, or giving up on a temporary one, is worse than an ordinary failed attempt.

use super::agent::{ApiError, ApiErrorClass};
use super::pattern::Pattern;
use super::text::cap_chars;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The maximum length of an error message, in characters.
pub const ERROR_CHARS: usize = 4_000;

/// The kind of an error from a model's API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ModelErrorKind {
    /// The key is missing, wrong or expired (401).
    Login,
    /// The key may not do this (403).
    Permission,
    /// The model or the address does not exist (404), or no longer exists (410).
    UnknownModel,
    /// The account has no credit left (402).
    Quota,
    /// A rate limit was reached (429).
    RateLimit,
    /// The provider has no capacity (503, 529).
    Overloaded,
    /// The provider had an internal error (5xx).
    Server,
    /// The connection failed.
    Network,
    /// A connection is impossible until a setting is changed: a proxy or a certificate.
    Setup,
    /// The request exceeds the model's window (400, 413).
    ContextTooLong,
    /// A content filter refused the request or the response.
    ContentFilter,
    /// The request was refused for another reason.
    Rejected,
}

impl ModelErrorKind {
    /// The possible reaction to it.
    pub fn class(self) -> ApiErrorClass {
        match self {
            Self::RateLimit | Self::Overloaded | Self::Server | Self::Network => {
                ApiErrorClass::Transient
            }
            Self::Login | Self::Permission | Self::UnknownModel | Self::Quota | Self::Setup => {
                ApiErrorClass::Unavailable
            }
            Self::ContextTooLong | Self::ContentFilter | Self::Rejected => ApiErrorClass::Rejected,
        }
    }
}

/// What an error's status and text say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// The kind of error.
    pub kind: ModelErrorKind,
    /// The HTTP status, either given or named in the text.
    pub status: Option<u16>,
    /// The wait that the text names, in milliseconds.
    pub retry_after_ms: Option<u64>,
}

/// Reads an error of a model's API, as reported by any agent. `None` for an unknown text.
pub fn read(status: Option<u16>, text: &str) -> Option<Reading> {
    let lower = normalise(text);
    let status = status.or_else(|| status_in(&lower));
    let retry_after_ms = retry_after_in(&lower);
    let kind = kind_of(status, &lower, retry_after_ms.is_some())?;
    Some(Reading {
        kind,
        status,
        retry_after_ms: retry_after_ms.filter(|_| kind.class() == ApiErrorClass::Transient),
    })
}

/// Classifies an error text of an agent or a model's API. `None` for an unknown text.
///
/// The status, unless the agent reports it separately, and the wait are taken from the text if it names them. Use
/// this only for text from an agent's error channel: prose *about* a rate limit would be mistaken for one.
pub fn classify(status: Option<u16>, text: &str) -> Option<ApiError> {
    let reading = read(status, text)?;
    Some(ApiError {
        status: reading.status,
        message: cap_chars(&plain(text), ERROR_CHARS).into_owned(),
        retry_after_ms: reading.retry_after_ms,
        class: reading.kind.class(),
    })
}

/// The error of a turn that failed permanently. An unknown text counts as a failed attempt.
pub fn classify_final(status: Option<u16>, text: &str) -> ApiError {
    classify(status, text).unwrap_or_else(|| ApiError {
        status,
        message: cap_chars(&plain(text), ERROR_CHARS).into_owned(),
        retry_after_ms: None,
        class: ApiErrorClass::Rejected,
    })
}

/// The readable part of an error's text: if it contains JSON, the message in that JSON.
pub fn plain(text: &str) -> String {
    let text = text.trim();
    let Some(start) = text.find(['{', '[']) else {
        return text.to_owned();
    };
    let (before, json) = text.split_at(start);
    let mut values = serde_json::Deserializer::from_str(json).into_iter::<Value>();
    let Some(Ok(value)) = values.next() else {
        return text.to_owned();
    };
    let after = json.get(values.byte_offset()..).unwrap_or_default();
    match message_in(&value) {
        Some(message) => format!("{before}{}{after}", message.trim()),
        None => text.to_owned(),
    }
}

/// The message in an API's error response.
fn message_in(value: &Value) -> Option<&str> {
    const PLACES: &[&str] = &[
        "/error/message",
        "/error/error/message",
        "/0/error/message",
        "/errors/0/message",
        "/message",
        "/detail",
        "/error",
    ];
    let mut texts = PLACES
        .iter()
        .filter_map(|place| value.pointer(place)?.as_str());
    texts.find(|text| !text.trim().is_empty())
}

/// Appends `remedy` to the message of an error about a missing or rejected login.
pub fn with_remedy(mut error: ApiError, remedy: &str) -> ApiError {
    let refused = matches!(error.status, Some(401 | 403))
        || contains_any(&normalise(&error.message), CREDENTIALS);
    if error.class == ApiErrorClass::Unavailable && refused {
        error.message = format!("{} ({remedy})", error.message);
    }
    error
}

/// Phrases about a missing, wrong or expired login.
const CREDENTIALS: &str = "\
    not logged in|please run /login|invalid api key|incorrect api key|invalid_api_key|invalid x-api-key|\
    api key not valid|missing api key|no api key|api key is missing|authentication_error|authenticationerror|\
    authentication failed|authentication_failed|failed to authenticate|oauth token has|oauth token is|\
    refresh token|access token could not be refreshed|missing environment variable|missing bearer";

/// Phrases about problems that only a person can fix, other than the login.
const PERSON: &str = "\
    permission_error|permissiondeniederror|credit balance is too low|billing_error|billing hard limit|\
    organization has been disabled|model_not_found|model not found|unknown model|\
    does not exist or you do not have access|issue with the selected model|model is not supported when using|\
    unsupported_country_region_territory|country, region, or territory not supported|cannot be used with root/sudo";

/// Phrases about an exhausted account. Some providers use them for a limit per minute, and then say when to
/// retry.
const QUOTA: &str = "insufficient_quota|insufficient quota|exceeded your current quota|exhausted your|quota exceeded";

/// Phrases about a request that exceeds the model's context window.
const CONTEXT: &str = "\
    context window|context length|context_length|context size|maximum context|exceed context limit|\
    maximum prompt length|ran out of room|prompt is too long|input is too long|reduce the length|\
    exceeds the maximum number of tokens|tokens_limit_reached|too many input tokens|request too large|\
    request_too_large|request body too large";

/// Phrases about a content filter's refusal.
const FILTER: &str = "\
    content_filter|content filter|content management policy|content_policy|content policy|responsibleaipolicy|\
    prohibited_content|violate our usage policy|flagged as potentially violating|blocked by safety|safety settings";

/// Other phrases about a request that would be refused again, or a limit that the agent has set itself.
const REJECTED: &str = "invalid prompt|max turns|max output tokens|no conversation found with session id|no rollout found for thread id";

/// Phrases about temporary problems.
const TRANSIENT: &str = "\
    overloaded|high demand|at capacity|rate limit|rate_limit|ratelimiterror|apiconnectionerror|\
    internalservererror|serviceunavailableerror|too many requests|usage limit|session limit|weekly limit|\
    5-hour limit|hit your limit|internal server error|server_error|bad gateway|service unavailable|\
    gateway timeout|stream disconnected|connection reset|connection refused|connection closed|connection error|\
    connection failed|connection timed out|unable to connect|error sending request|socket hang up|fetch failed|\
    request timed out|econnreset|econnrefused|etimedout|enotfound|eai_again|epipe";

/// The first matching rule wins. Specific phrases come before the status, which says less, and the status
/// comes before phrases that many errors contain.
fn kind_of(status: Option<u16>, lower: &str, says_when: bool) -> Option<ModelErrorKind> {
    use ModelErrorKind as K;
    let has = |words: &str| contains_any(lower, words);
    let refused = matches!(status, None | Some(400 | 403 | 413 | 422 | 429));
    if status == Some(413) || (refused && has(CONTEXT)) {
        return Some(K::ContextTooLong);
    }
    if refused && status != Some(429) && has(FILTER) {
        return Some(K::ContentFilter);
    }
    let spent = has(QUOTA);
    if has(CREDENTIALS) || has(PERSON) || lacks_model(lower) || (spent && !says_when) {
        return Some(unavailable(status, lower));
    }
    if spent {
        return Some(transient(status, lower));
    }
    if has(REJECTED) || has(CONTEXT) || has(FILTER) {
        return Some(K::Rejected);
    }
    match status {
        Some(401..=404 | 410) => Some(unavailable(status, lower)),
        Some(408 | 409 | 425 | 429 | 500..=599) => Some(transient(status, lower)),
        Some(400..=499) => Some(K::Rejected),
        _ if has(TRANSIENT) => Some(transient(status, lower)),
        _ => has("invalid_request_error").then_some(K::Rejected),
    }
}

/// Whether the text says of a model, by its name, that it does not exist.
fn lacks_model(lower: &str) -> bool {
    static LACKS: Pattern = Pattern::new(
        r#"\bmodels?[\s:/]+["'`]?[\w.:/@-]+["'`]?,?\s+(?:(?:was|is) )?(?:not found|not_found|does not exist|doesn't exist)\b"#,
    );
    LACKS.is_match(lower)
}

fn transient(status: Option<u16>, lower: &str) -> ModelErrorKind {
    use ModelErrorKind as K;
    let has = |words: &str| contains_any(lower, words);
    match status {
        Some(429) => K::RateLimit,
        Some(503 | 529) => K::Overloaded,
        Some(500..=599) => K::Server,
        _ if has("limit|too many requests|quota") => K::RateLimit,
        _ if has("overloaded|capacity|high demand") => K::Overloaded,
        _ if has("server|gateway|service") => K::Server,
        _ => K::Network,
    }
}

fn unavailable(status: Option<u16>, lower: &str) -> ModelErrorKind {
    use ModelErrorKind as K;
    let has = |words: &str| contains_any(lower, words);
    match status {
        _ if has("quota|billing|credit") => K::Quota,
        Some(401) => K::Login,
        Some(402) => K::Quota,
        Some(403) => K::Permission,
        Some(404 | 410) => K::UnknownModel,
        _ if has("model") => K::UnknownModel,
        _ if has("key|login|logged in|auth|token|bearer") => K::Login,
        _ => K::Permission,
    }
}

fn normalise(text: &str) -> String {
    cap_chars(text, ERROR_CHARS)
        .to_lowercase()
        .replace('’', "'")
}

fn contains_any(text: &str, words: &str) -> bool {
    words.split('|').any(|word| text.contains(word))
}

/// An HTTP error status: three digits next to a word that marks them as a status, so that a port, a line
/// number or a count is not mistaken for one.
fn status_in(lower: &str) -> Option<u16> {
    static STATUS: Pattern = Pattern::new(concat!(
        "(?:^|[^a-z0-9])(?:(?:status|error|http|code|rejected|statuscode)[^a-z0-9]+([45][0-9]{2})|([45][0-9]{2})[^a-z0-9]+",
        "(?:bad|conflict|forbidden|gateway|internal|not|overloaded|payload|payment|request|service|too|unauthorized|",
        "unprocessable))(?:$|[^a-z0-9])",
    ));
    let found = STATUS.captures(lower)?;
    found.get(1).or(found.get(2))?.as_str().parse().ok()
}

/// The wait that a text names, in milliseconds.
fn retry_after_in(lower: &str) -> Option<u64> {
    const PHRASES: &str = "again in|retry in|resets in|reset in|reset after|wait";
    const HEADERS: &str = "retry-after|retry after|retry_after|retrydelay";
    let after = |phrase: &str| lower.split_once(phrase).map(|(_, rest)| rest);
    let header = HEADERS.split('|').filter_map(after).find_map(header_value);
    let phrase = || PHRASES.split('|').filter_map(after).find_map(duration_at);
    header.or_else(phrase).and_then(whole_milliseconds)
}

/// The value after `retry-after`: a duration, or a bare number of seconds (of milliseconds after
/// `retry-after-ms`).
fn header_value(rest: &str) -> Option<f64> {
    let milliseconds = rest
        .strip_prefix(['-', '_'])
        .and_then(|rest| rest.strip_prefix("ms"));
    let bare = |text, unit| leading_number(separated(text)).map(|(number, _)| number * unit);
    match milliseconds {
        Some(rest) => bare(rest, 1.0),
        None => duration_at(rest).or_else(|| bare(rest, 1_000.0)),
    }
}

/// A duration at the beginning of `text`, in milliseconds: `20s`, `1.5 seconds`, `6m0s`,
/// `3 days 2 hours and 5 minutes`.
fn duration_at(text: &str) -> Option<f64> {
    let mut total = None;
    let mut rest = separated(text);
    while let Some((number, after)) = leading_number(rest) {
        let after = after.trim_start_matches(' ');
        let unit_end = after
            .find(|c: char| !c.is_ascii_alphabetic())
            .unwrap_or(after.len());
        let Some(unit) = unit_in_milliseconds(&after[..unit_end]) else {
            break;
        };
        total = Some(total.unwrap_or(0.0) + number * unit);
        rest = after[unit_end..].trim_start_matches([' ', ',']);
        rest = rest.strip_prefix("and ").unwrap_or(rest);
    }
    total
}

fn separated(text: &str) -> &str {
    text.trim_start_matches([' ', ':', '=', '"', '\'', '\\', '(', '~'])
}

fn leading_number(text: &str) -> Option<(f64, &str)> {
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let number = text[..end].trim_end_matches('.').parse().ok()?;
    Some((number, &text[end..]))
}

fn unit_in_milliseconds(unit: &str) -> Option<f64> {
    match unit {
        "ms" | "millisecond" | "milliseconds" => Some(1.0),
        "s" | "sec" | "secs" | "second" | "seconds" => Some(1_000.0),
        "m" | "min" | "mins" | "minute" | "minutes" => Some(60_000.0),
        "h" | "hr" | "hrs" | "hour" | "hours" => Some(3_600_000.0),
        "d" | "day" | "days" => Some(86_400_000.0),
        _ => None,
    }
}

/// Rounds up, and rejects waits of more than a year as implausible.
fn whole_milliseconds(milliseconds: f64) -> Option<u64> {
    const YEAR: f64 = 366.0 * 86_400_000.0;
    (0.0..=YEAR)
        .contains(&milliseconds)
        .then(|| milliseconds.ceil() as u64)
}

#[cfg(test)]
mod tests;
