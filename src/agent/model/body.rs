//! The body of a request: all messages of the session, in the form of one API.

use super::speaker::speaker;
use super::{RequestInputs, anthropic, chat, gemini, pictures, responses};
use crate::access::WireFormat;
use crate::context::Message;
use serde::Serialize;
use serde_json::{Error, Value, to_value, to_vec, to_writer};
use std::sync::Arc;

/// The serialized body of a request. It begins with the body of the session's last request, as far as nothing was
/// shortened since, so that the provider's cache holds most of it.
pub(super) fn write(inputs: &RequestInputs<'_>) -> Result<Vec<u8>, Error> {
    let mut body = Vec::new();
    match inputs.access.wire {
        WireFormat::Chat => {
            begin(&mut body, &chat::start(inputs), "messages")?;
            for group in groups(inputs, chat::joins) {
                let entry = chat::entry(group, inputs);
                add(&mut body, with_pictures(inputs, group, entry)?)?;
            }
            end(&mut body, &chat::rest(inputs))?;
        }
        WireFormat::Responses => {
            begin(&mut body, &responses::start(inputs), "input")?;
            for message in inputs.messages {
                let group = std::slice::from_ref(message);
                let items = responses::items(message, inputs).into_iter();
                for item in items {
                    add(&mut body, with_pictures(inputs, group, Some(item))?)?;
                }
            }
            end(&mut body, &responses::rest(inputs))?;
        }
        WireFormat::Messages => {
            begin(&mut body, &anthropic::start(inputs), "messages")?;
            let groups = groups(inputs, is_of_same_speaker);
            for (at, group) in groups.iter().enumerate() {
                let is_newest = at + 1 == groups.len();
                let entry = anthropic::entry(group, is_newest, inputs);
                add(&mut body, with_pictures(inputs, group, entry)?)?;
            }
            end(&mut body, &anthropic::rest(inputs))?;
        }
        WireFormat::Gemini => {
            begin(&mut body, &gemini::START, "contents")?;
            for group in groups(inputs, is_of_same_speaker) {
                let entry = gemini::entry(group, inputs);
                add(&mut body, with_pictures(inputs, group, entry)?)?;
            }
            end(&mut body, &gemini::rest(inputs))?;
        }
    }
    Ok(body)
}

/// Opens an object with these fields and a list.
fn begin(body: &mut Vec<u8>, fields: &impl Serialize, list: &str) -> Result<(), Error> {
    body.extend(to_vec(fields)?);
    body.pop();
    if body.len() > 1 {
        body.push(b',');
    }
    body.extend_from_slice(format!("\"{list}\":[").as_bytes());
    Ok(())
}

/// Adds elements to the list.
fn add<T: Serialize>(
    body: &mut Vec<u8>,
    elements: impl IntoIterator<Item = T>,
) -> Result<(), Error> {
    for element in elements {
        if !body.ends_with(b"[") {
            body.push(b',');
        }
        to_writer(&mut *body, &element)?;
    }
    Ok(())
}

/// An entry as it is sent: that of the task with its pictures.
fn with_pictures<T: Serialize>(
    inputs: &RequestInputs<'_>,
    group: &[&Arc<Message>],
    entry: Option<T>,
) -> Result<Option<Sent<T>>, Error> {
    let is_task = matches!(
        group.first().map(|first| &***first),
        Some(Message::Task { .. })
    );
    let Some(entry) = entry else { return Ok(None) };
    if !is_task || inputs.pictures.is_empty() {
        return Ok(Some(Sent::Plain(entry)));
    }
    let mut value = to_value(&entry)?;
    pictures::add(inputs.access.wire, &mut value, inputs.pictures);
    Ok(Some(Sent::WithPictures(value)))
}

/// An entry of the list.
#[derive(Serialize)]
#[serde(untagged)]
enum Sent<T> {
    Plain(T),
    WithPictures(Value),
}

/// Closes the list, and the object with these further fields.
fn end(body: &mut Vec<u8>, fields: &impl Serialize) -> Result<(), Error> {
    body.push(b']');
    let fields = to_vec(fields)?;
    let fields = fields.strip_prefix(b"{").unwrap_or_default();
    if fields != b"}" {
        body.push(b',');
    }
    body.extend_from_slice(fields);
    Ok(())
}

/// The messages in groups, each of which becomes one entry.
fn groups<'i, 'a>(
    inputs: &'i RequestInputs<'a>,
    joins: fn(&Message, &Message) -> bool,
) -> Vec<&'i [&'a Arc<Message>]> {
    let mut groups = Vec::with_capacity(inputs.messages.len());
    let mut left = inputs.messages;
    while let Some((first, others)) = left.split_first() {
        let joined = others.iter().take_while(|next| joins(first, next)).count();
        let (group, rest) = left.split_at(1 + joined);
        groups.push(group);
        left = rest;
    }
    groups
}

/// Whether a message belongs to the entry that begins with `first`.
fn is_of_same_speaker(first: &Message, next: &Message) -> bool {
    speaker(next).is_none_or(|next| speaker(first) == Some(next))
}
