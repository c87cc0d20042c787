//! The entries of a request's messages, as far as several APIs have them alike.

use super::{RequestInputs, pictures};
use crate::context::Message;
use serde_json::{Value, json};

/// The entries of all messages: `entry` makes those of a group of messages, each of which `joins` the next. The first
/// entry of the task gets its pictures.
pub(super) fn entries(
    inputs: &RequestInputs<'_>,
    joins: impl Fn(&Message, &Message) -> bool,
    entry: impl Fn(&[&Message]) -> Vec<Value>,
) -> Vec<Value> {
    let mut entries = Vec::new();
    for group in inputs.messages.chunk_by(|first, next| joins(first, next)) {
        let mut of_group = entry(group);
        let is_task = matches!(group, [Message::Task { .. }, ..]);
        if let Some(first) = of_group.first_mut()
            && is_task
            && !inputs.pictures.is_empty()
        {
            pictures::add(inputs.access.wire, first, inputs.pictures);
        }
        entries.append(&mut of_group);
    }
    entries
}

/// Whether two messages are of the same speaker, in formats in which these must alternate.
pub(super) fn is_of_same_speaker(first: &Message, next: &Message) -> bool {
    is_of_model(first) == is_of_model(next)
}

/// `None` for the system prompt, which is no message in these formats.
fn is_of_model(message: &Message) -> Option<bool> {
    match message {
        Message::System { .. } => None,
        other => Some(matches!(other, Message::Assistant { .. })),
    }
}

/// The entry of a speaker's messages, with these parts of them in a field. `model` is the name of the model's role.
pub(super) fn entry_of_speaker(
    group: &[&Message],
    model: &str,
    field: &str,
    parts: Vec<Value>,
) -> Vec<Value> {
    let speaker = group.first().and_then(|first| is_of_model(first));
    let entry = speaker.map(|is_model| {
        let role = if is_model { model } else { "user" };
        json!({"role": role, field: parts})
    });
    entry.into_iter().collect()
}
