//! The gateway's own responses, in the provider's format for errors.

use super::body::Passing;
use crate::agents::gateway::{Provider, plain_error};
use http_body_util::{Either, Full};
use hyper::body::Bytes;
use hyper::header::{CONNECTION, CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::http::response::Parts;
use hyper::{Response, StatusCode};

/// Headers of a single connection, and headers that the gateway sets itself.
const DROPPED: &str = "connection te trailer transfer-encoding upgrade host content-length cookie set-cookie \
                       keep-alive proxy-connection proxy-authorization";

/// The prefix of every message of the gateway itself.
pub const REFUSAL: &str = "Sprag's gateway:";

/// A response of the gateway: its own, or one of a provider that passes through.
pub(super) type Answer = Response<Either<Full<Bytes>, Passing>>;

/// A response with this text.
pub(super) fn own(status: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Either::Left(Full::new(body.into())));
    *answer.status_mut() = status;
    let kind = HeaderValue::from_static(kind);
    answer.headers_mut().insert(CONTENT_TYPE, kind);
    answer
}

/// A refusal in the provider's format.
pub(super) fn refusal(provider: Option<&Provider>, status: StatusCode, message: &str) -> Answer {
    let message = format!("{REFUSAL} {message}");
    let body = match provider {
        Some(provider) => provider.error(status.as_u16(), &message),
        None => plain_error(status.as_u16(), &message),
    };
    own(status, "application/json", body.to_string())
}

/// A response of a provider or a host with this body.
pub(super) fn passed(head: &Parts, body: Either<Full<Bytes>, Passing>) -> Answer {
    let mut answer = Response::new(body);
    *answer.status_mut() = head.status;
    *answer.headers_mut() = kept(&head.headers);
    answer
}

/// Headers without those of the connection.
pub(super) fn kept(headers: &HeaderMap) -> HeaderMap {
    let mut kept = headers.clone();
    let of_connection = headers.get_all(CONNECTION).iter();
    let of_connection = of_connection.filter_map(|value| value.to_str().ok());
    let names = of_connection.flat_map(|names| names.split(','));
    for name in names.chain(DROPPED.split(' ')) {
        kept.remove(name.trim());
    }
    kept
}
