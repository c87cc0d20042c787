//! The body of a request: all messages of the session, in the form of one API.

use super::{RequestInputs, anthropic, chat, gemini, responses};
use crate::access::WireFormat;

/// The body of a request. It begins with the messages, which begin with those of the session's last request, as far
/// as nothing was shortened since, so that the provider's cache holds most of it.
pub(super) fn write(inputs: &RequestInputs<'_>) -> Vec<u8> {
    let body = match inputs.access.wire {
        WireFormat::Chat => chat::body(inputs),
        WireFormat::Responses => responses::body(inputs),
        WireFormat::Messages => anthropic::body(inputs),
        WireFormat::Gemini => gemini::body(inputs),
    };
    body.to_string().into_bytes()
}
