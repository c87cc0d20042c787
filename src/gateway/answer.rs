//! The gateway's own responses, in the provider's format for errors.

use super::body::Passing;
use crate::agents::gateway::{Provider, plain_error};
use http_body_util::{Either, Full};
use hyper::body::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};

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
