//! Forwards an agent's request to the provider.

use super::account::{Account, Request as Counted};
use super::answer::{Answer, kept, own, passed, refusal};
use super::body::Passing;
use super::provider_side::confined;
use super::shared::Shared;
use crate::agents::gateway::{Endpoint, KeyHeader};
use crate::http::{BoundedBody, TransportError};
use http_body_util::{BodyExt as _, Either, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{
    ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue,
};
use hyper::{Method, Request, Response, StatusCode, Uri};
use serde::Deserialize;
use serde_json::Value;
use sprag_agent::access::WireFormat;
use sprag_agent::model::Meter;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;

/// The longest request, in bytes.
const MAX_REQUEST_BYTES: usize = 64 << 20;

/// The longest error response that is passed on, in bytes.
const MAX_ERROR_BYTES: usize = 1 << 20;

/// How long a provider may take to start its response. The agent gives up before that.
const MAX_WAIT: Duration = Duration::from_secs(60 * 60);

/// The parts of a request body that the gateway reads, of any type.
#[derive(Deserialize, Default)]
#[serde(default)]
struct RequestFields {
    model: Value,
    stream: Value,
}

/// Forwards a request, or refuses it.
pub(super) async fn forward(request: Request<Incoming>, shared: &Shared) -> Answer {
    if matches!(*request.method(), Method::HEAD | Method::GET) && request.uri().path() == "/" {
        // Agents test whether the server is reachable.
        return own(StatusCode::OK, "text/plain", "");
    }
    let Some(account) = account(request.headers(), shared) else {
        let why = "the request shows no token of this run";
        return refusal(None, StatusCode::UNAUTHORIZED, why);
    };
    let provider = account.route.provider;
    if !account.ledger.is_open() {
        let why = "the token is valid only during a turn of an agent";
        return refusal(Some(provider), StatusCode::UNAUTHORIZED, why);
    }
    let method = request.method().clone();
    let path = request.uri().path().to_owned();
    // Absolute addresses are for proxies, and this is not one.
    let is_asked =
        request.uri().authority().is_none() && matches!(method, Method::GET | Method::POST);
    let Some(endpoint) = provider.endpoint(&path).filter(|_| is_asked) else {
        let why = format!("{method} {path} is not a request that it forwards");
        return refusal(Some(provider), StatusCode::NOT_FOUND, &why);
    };
    if let Some(why) = endpoint.wire.and_then(|_| account.ledger.refusal()) {
        return refusal(Some(provider), StatusCode::BAD_REQUEST, &why);
    }
    let Ok(permit) = Arc::clone(&shared.requests).acquire_owned().await else {
        return refusal(Some(provider), StatusCode::BAD_GATEWAY, "the run is over");
    };
    match pass(request, &account, endpoint, permit, shared).await {
        Ok(answer) => answer,
        Err((status, why)) => refusal(Some(provider), status, &why),
    }
}

/// The account of the token in a request.
fn account(headers: &HeaderMap, shared: &Shared) -> Option<Arc<Account>> {
    let accounts = shared.accounts();
    KeyHeader::ALL.into_iter().find_map(|header| {
        let token = header.key(headers.get(header.name())?.to_str().ok()?)?;
        let mut known = accounts.iter();
        known.find(|account| account.token == token).cloned()
    })
}

type Failed = (StatusCode, String);

async fn pass(
    request: Request<Incoming>,
    account: &Arc<Account>,
    endpoint: Endpoint<'_>,
    permit: OwnedSemaphorePermit,
    shared: &Shared,
) -> Result<Answer, Failed> {
    let (head, body) = request.into_parts();
    if head.headers.contains_key(CONTENT_ENCODING) {
        let why = "the request is compressed, so that nobody can count it";
        return Err((StatusCode::UNSUPPORTED_MEDIA_TYPE, why.to_owned()));
    }
    let mut body = whole_body(body).await?;
    if let (Some(allow), false) = (&shared.allow, body.is_empty()) {
        body = confined(&body, allow).map_err(|why| (StatusCode::FORBIDDEN, why))?;
    }
    let asked = requested(&body, &endpoint)?;
    if endpoint.wire == Some(WireFormat::Chat) && asked.stream == true {
        body = with_usage(body, &account.route.upstream);
    }
    let model = endpoint.model.or(asked.model.as_str());
    let model = model.unwrap_or_default().to_owned();
    let mut counted = endpoint
        .wire
        .map(|_| Counted::new(account, model, body.len()));
    let address = address(account, endpoint.path, head.uri.query())?;
    let mut forwarded = Request::new(Full::new(body));
    *forwarded.method_mut() = head.method;
    *forwarded.uri_mut() = address;
    *forwarded.headers_mut() = sent_headers(&head.headers, account);
    let answer = match shared.client.send(forwarded, MAX_WAIT).await {
        Ok(answer) => answer,
        Err(error) => {
            if matches!(error, TransportError::Unsent(_)) {
                counted.into_iter().for_each(Counted::forget);
            }
            let why = error.text_or("it does not answer");
            let why = format!("the provider cannot be reached: {why}");
            return Err((StatusCode::BAD_GATEWAY, why));
        }
    };
    let status = answer.status();
    if status.is_redirection() {
        let why =
            format!("the provider answers with a redirection ({status}), which is not followed");
        return Err((StatusCode::BAD_GATEWAY, why));
    }
    if !status.is_success() {
        counted.into_iter().for_each(Counted::forget);
        return Ok(error_of(answer, account).await);
    }
    let kind = answer.headers().get(CONTENT_TYPE);
    let streams = kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
    if let (Some(counted), Some(wire)) = (&mut counted, endpoint.wire) {
        counted.meter(Meter::new(wire, streams));
    }
    let (head, body) = answer.into_parts();
    let _permit = Some(permit);
    let body = Either::Right(Passing {
        body,
        request: counted,
        _permit,
    });
    Ok(passed(&head, body))
}

async fn whole_body(body: Incoming) -> Result<Bytes, Failed> {
    let body = Limited::new(body, MAX_REQUEST_BYTES).collect().await;
    let body = body.map_err(|error| {
        let why = format!("the request cannot be read, or is too long: {error}");
        (StatusCode::PAYLOAD_TOO_LARGE, why)
    })?;
    Ok(body.to_bytes())
}

/// The fields of a request that decide how it is counted.
fn requested(body: &[u8], endpoint: &Endpoint<'_>) -> Result<RequestFields, Failed> {
    let is_object = body.trim_ascii_start().starts_with(b"{");
    match serde_json::from_slice::<RequestFields>(body) {
        // A field is there twice: a provider could take another of two models than the one that is counted.
        Err(error) if error.is_data() && is_object && endpoint.wire.is_some() => {
            let why = format!("the request is ambiguous: {error}");
            Err((StatusCode::BAD_REQUEST, why))
        }
        asked => Ok(asked.unwrap_or_default()),
    }
}

/// Adds the option that makes the provider report usage at the end of a stream, as all other formats do
/// by default.
fn with_usage(body: Bytes, upstream: &str) -> Bytes {
    // Mistral always reports usage, and rejects the option.
    if upstream.contains("mistral.ai") {
        return body;
    }
    let Ok(Value::Object(mut fields)) = serde_json::from_slice(&body) else {
        return body;
    };
    let options = fields.entry("stream_options").or_insert(Value::Null);
    match options {
        Value::Object(options) => drop(options.insert("include_usage".into(), true.into())),
        other => *other = serde_json::json!({"include_usage": true}),
    }
    serde_json::to_vec(&fields).map_or(body, Bytes::from)
}

fn address(account: &Account, path: &str, query: Option<&str>) -> Result<Uri, Failed> {
    let mut whole = format!("{}{path}", account.route.upstream);
    let pairs = query.unwrap_or_default().split('&');
    let pairs = pairs.filter(|pair| !pair.is_empty() && !pair.starts_with("key="));
    for (number, pair) in pairs.enumerate() {
        whole.push(if number == 0 { '?' } else { '&' });
        whole.push_str(pair);
    }
    whole.parse().map_err(|error| {
        let why = format!("the address of the provider cannot be used: {error}");
        (StatusCode::BAD_GATEWAY, why)
    })
}

/// The headers for the provider: with the key in place of the agent's token, and requesting an
/// uncompressed response, so that it can be counted on the way.
fn sent_headers(headers: &HeaderMap, account: &Account) -> HeaderMap {
    let mut sent = kept(headers);
    for header in KeyHeader::ALL {
        let name = HeaderName::from_static(header.name());
        let shown = sent.remove(&name);
        let shown = shown.as_ref().and_then(|value| value.to_str().ok());
        let is_shown = shown.and_then(|value| header.key(value)) == Some(&account.token);
        let mut keys = account.route.keys.iter();
        // A provider accepts each of its keys only in the header for that key.
        let key = keys.find(|(_, known, _)| *known == header);
        if let (true, Some((_, _, key))) = (is_shown, key)
            && let Ok(mut value) = HeaderValue::from_str(&header.value(key.reveal()))
        {
            value.set_sensitive(true);
            sent.insert(name, value);
        }
    }
    sent.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    sent
}

/// An error response of the provider. Keys in it are replaced, because some providers repeat the key.
async fn error_of(answer: Response<Incoming>, account: &Account) -> Answer {
    let (head, body) = answer.into_parts();
    let mut text = Vec::new();
    let mut body = BoundedBody::new(body, MAX_ERROR_BYTES);
    // If the body cannot be read completely, the rest is left out: the status is enough.
    while let Ok(Some(chunk)) = body.chunk(MAX_WAIT).await {
        text.extend_from_slice(&chunk);
    }
    if head.headers.contains_key(CONTENT_ENCODING) {
        text.clear();
    }
    let text = String::from_utf8_lossy(&text).into_owned();
    let keys = account.route.keys.iter();
    let text = keys.fold(text, |text, (_, _, key)| {
        text.replace(key.reveal(), &account.token)
    });
    let mut answer = passed(&head, Either::Left(Full::new(Bytes::from(text))));
    answer.headers_mut().remove(CONTENT_ENCODING);
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_of_chat_completions_is_asked_for_its_usage() {
        let asked = |body: &str, upstream| {
            let body = with_usage(Bytes::from(body.to_owned()), upstream);
            String::from_utf8(body.to_vec()).unwrap()
        };
        let openai = "https://api.openai.com/v1";
        assert_eq!(
            asked(r#"{"model":"m","stream":true}"#, openai),
            r#"{"model":"m","stream":true,"stream_options":{"include_usage":true}}"#
        );
        assert_eq!(
            asked(
                r#"{"stream_options":{"a":1,"include_usage":false}}"#,
                openai
            ),
            r#"{"stream_options":{"a":1,"include_usage":true}}"#
        );
        let plain = r#"{"model":"m"}"#;
        assert_eq!(asked(plain, "https://api.mistral.ai/v1"), plain);
        assert_eq!(asked("no json", openai), "no json");
    }
}
