//! Who speaks in a message.

use crate::context::Message;

/// Whose message it is, in formats in which that must alternate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Speaker {
    Model,
    User,
}

/// `None` for the system prompt, which is no message in these formats.
pub(super) fn speaker(message: &Message) -> Option<Speaker> {
    match message {
        Message::System { .. } => None,
        Message::Assistant { .. } => Some(Speaker::Model),
        Message::Task { .. } | Message::Note { .. } | Message::ToolResult { .. } => {
            Some(Speaker::User)
        }
    }
}
