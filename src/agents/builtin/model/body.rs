//! The body of a request. A session sends all its messages with every request, so a body is written over the last
//! one from the first message on that differs.

use super::speaker::speaker;
use super::{RequestInputs, anthropic, chat, gemini, responses};
use crate::agents::builtin::access::WireFormat;
use crate::domain::builtin::context::Message;
use crate::domain::builtin::model_error::ModelError;
use crate::domain::builtin::tool::ToolCall;
use hyper::body::Bytes;
use serde::Serialize;
use serde_json::{Error, Value, to_vec, to_writer};
use std::sync::Arc;

/// The body of the last request, and what it was written from.
#[derive(Debug, Default)]
pub(super) struct Body {
    bytes: Bytes,
    frame: Frame,
    entries: Vec<Entry>,
}

/// What surrounds the messages in a body, and the values that change it. All others are the same for all requests of
/// a model.
#[derive(Debug, Default)]
struct Frame {
    system: Option<Arc<Message>>,
    tools: Option<Arc<Value>>,
    encrypted: bool,
    before: Vec<u8>,
    after: Vec<u8>,
}

/// What was written of one or more messages. They cannot change while they are referred to here, so a message that
/// is the same value has the same content.
#[derive(Debug)]
struct Entry {
    messages: Vec<Arc<Message>>,
    /// Whether the cache breakpoint of the newest message is in it.
    is_marked: bool,
    /// Its end in the body, in bytes.
    end: usize,
}

impl Body {
    /// The serialized body of a request.
    pub(super) fn write(&mut self, inputs: &RequestInputs<'_>) -> Result<Bytes, ModelError> {
        let last = std::mem::take(self);
        *self = last.updated(inputs).map_err(|error| {
            ModelError::setup(&format!("the request cannot be written as JSON: {error}"))
        })?;
        Ok(self.bytes.clone())
    }

    /// Forgets what was written of the messages, because something else that it depends on has changed.
    pub(super) fn forget(&mut self) {
        self.entries.clear();
    }

    /// Forgets what was written from the first message on that has a call with one of these ids: what is sent back
    /// with calls is found by their ids, which some servers use again.
    pub(super) fn forget_calls(&mut self, calls: &[ToolCall]) {
        let is_one = |known: &ToolCall| calls.iter().any(|call| call.id == known.id);
        let has_one = |message: &Arc<Message>| match &**message {
            Message::Assistant { calls, .. } => calls.iter().any(is_one),
            _ => false,
        };
        let mut entries = self.entries.iter();
        if let Some(first) = entries.position(|entry| entry.messages.iter().any(has_one)) {
            self.entries.truncate(first);
        }
    }

    fn updated(self, inputs: &RequestInputs<'_>) -> Result<Self, Error> {
        let frame = self.frame.updated(inputs)?;
        let mut entries = self.entries;
        let mut memory: Vec<u8> = self.bytes.into();
        if !memory.starts_with(&frame.before) {
            entries.clear();
        }
        let groups = groups(inputs);
        let marked = match inputs.access.wire {
            WireFormat::Messages => groups.len().checked_sub(1),
            _ => None,
        };
        let both = entries.iter().zip(&groups).enumerate();
        let same = both
            .take_while(|(at, (entry, group))| entry.is_of(group, marked == Some(*at)))
            .count();
        entries.truncate(same);
        match entries.last() {
            Some(last) => memory.truncate(last.end),
            None => memory.clone_from(&frame.before),
        }
        for (at, group) in groups.iter().enumerate().skip(same) {
            let is_marked = marked == Some(at);
            let mut list = List {
                is_empty: memory.len() == frame.before.len(),
                memory: &mut memory,
            };
            list.add_entry(group, is_marked, inputs)?;
            entries.push(Entry {
                messages: group.iter().map(|message| Arc::clone(message)).collect(),
                is_marked,
                end: memory.len(),
            });
        }
        memory.extend_from_slice(&frame.after);
        Ok(Self {
            bytes: memory.into(),
            frame,
            entries,
        })
    }
}

impl Entry {
    fn is_of(&self, messages: &[&Arc<Message>], is_marked: bool) -> bool {
        let mut both = self.messages.iter().zip(messages);
        self.is_marked == is_marked
            && self.messages.len() == messages.len()
            && both.all(|(written, message)| Arc::ptr_eq(written, message))
    }
}

impl Frame {
    /// The frame of a request: this one, if nothing of it has changed.
    fn updated(self, inputs: &RequestInputs<'_>) -> Result<Self, Error> {
        let system = match inputs.messages.first() {
            Some(first) if matches!(***first, Message::System { .. }) => Some(*first),
            _ => None,
        };
        let is_current = !self.before.is_empty()
            && self.encrypted == inputs.encrypted
            && self.system.as_ref().map(Arc::as_ptr) == system.map(Arc::as_ptr)
            && self.tools.as_ref().map(Arc::as_ptr) == inputs.tools.map(Arc::as_ptr);
        if is_current {
            return Ok(self);
        }
        let (before, after) = match inputs.access.wire {
            WireFormat::Chat => surround(&chat::start(inputs), "messages", &chat::rest(inputs)),
            WireFormat::Responses => {
                surround(&responses::start(inputs), "input", &responses::rest(inputs))
            }
            WireFormat::Messages => surround(
                &anthropic::start(inputs),
                "messages",
                &anthropic::rest(inputs),
            ),
            WireFormat::Gemini => surround(&gemini::START, "contents", &gemini::rest(inputs)),
        }?;
        Ok(Self {
            system: system.map(Arc::clone),
            tools: inputs.tools.map(Arc::clone),
            encrypted: inputs.encrypted,
            before,
            after,
        })
    }
}

/// An object with the fields of `start`, this list, and the fields of `rest`: what is before the elements of the
/// list, and what is after them.
fn surround(
    start: &impl Serialize,
    list: &str,
    rest: &impl Serialize,
) -> Result<(Vec<u8>, Vec<u8>), Error> {
    let mut before = to_vec(start)?;
    before.pop();
    if before.len() > 1 {
        before.push(b',');
    }
    before.extend_from_slice(format!("\"{list}\":[").as_bytes());
    let rest = to_vec(rest)?;
    let fields = rest.strip_prefix(b"{").unwrap_or_default();
    let mut after = vec![b']'];
    if fields != b"}" {
        after.push(b',');
    }
    after.extend_from_slice(fields);
    Ok((before, after))
}

/// The messages in groups, each of which becomes one entry.
fn groups<'i, 'a>(inputs: &'i RequestInputs<'a>) -> Vec<&'i [&'a Arc<Message>]> {
    let joins = match inputs.access.wire {
        WireFormat::Chat => chat::joins,
        WireFormat::Responses => |_: &Message, _: &Message| false,
        WireFormat::Messages | WireFormat::Gemini => is_of_same_speaker,
    };
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

/// The list of messages in a body.
struct List<'m> {
    memory: &'m mut Vec<u8>,
    is_empty: bool,
}

impl List<'_> {
    fn add_entry(
        &mut self,
        messages: &[&Arc<Message>],
        is_marked: bool,
        inputs: &RequestInputs<'_>,
    ) -> Result<(), Error> {
        match inputs.access.wire {
            WireFormat::Chat => self.add(chat::entry(messages, inputs)),
            WireFormat::Responses => {
                let items = messages
                    .iter()
                    .flat_map(|one| responses::items(one, inputs));
                self.add(items)
            }
            WireFormat::Messages => self.add(anthropic::entry(messages, is_marked, inputs)),
            WireFormat::Gemini => self.add(gemini::entry(messages, inputs)),
        }
    }

    fn add<T: Serialize>(&mut self, elements: impl IntoIterator<Item = T>) -> Result<(), Error> {
        for element in elements {
            if !self.is_empty {
                self.memory.push(b',');
            }
            self.is_empty = false;
            to_writer(&mut *self.memory, &element)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Body {
    /// Replaces a text of the body by another one of the same length.
    pub(super) fn replace(&mut self, text: &str, other: &str) {
        let body = String::from_utf8_lossy(&self.bytes).replace(text, other);
        self.bytes = body.into_bytes().into();
    }
}
