//! The parts of responses that a provider requires back: the signatures of calls, and the reasoning before
//! them, which is signed or encrypted and sent back unmodified.

use super::assembly::Reply;
use serde_json::Value;
use std::collections::HashMap;

/// The parts of a session's responses that are sent back.
#[derive(Debug, Default)]
pub(super) struct ReasoningState {
    /// By call id.
    signatures: HashMap<String, String>,
    /// By the id of a response's first call, oldest first.
    thoughts: Vec<(String, Vec<Value>)>,
    /// Size of the reasoning in bytes.
    size: usize,
}

impl ReasoningState {
    /// Stores what the next request needs. If the reasoning exceeds `most` bytes, the oldest is dropped down
    /// to half of that: providers accept requests without old reasoning, and a request must fit the window.
    pub(super) fn keep(&mut self, reply: &mut Reply, most: usize) {
        for (call, signature) in reply.calls.iter().zip(&reply.signatures) {
            if let Some(signature) = signature {
                self.signatures.insert(call.id.clone(), signature.clone());
            }
        }
        let thoughts = std::mem::take(&mut reply.thoughts);
        let first = reply.calls.first().filter(|_| !thoughts.is_empty());
        let Some(first) = first else { return };
        self.size = self.size.saturating_add(size(&thoughts));
        self.thoughts.push((first.id.clone(), thoughts));
        if self.size <= most {
            return;
        }
        // The newest reasoning stays, whatever its size: without it the next request is refused.
        while self.size > most / 2 && self.thoughts.len() > 1 {
            let (_, gone) = self.thoughts.remove(0);
            self.size = self.size.saturating_sub(size(&gone));
        }
    }

    /// Whether there is anything to send back.
    pub(super) fn any(&self) -> bool {
        !self.signatures.is_empty() || !self.thoughts.is_empty()
    }

    /// Drops everything, so that nothing is sent back.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    pub(super) fn signature(&self, call: &str) -> Option<&str> {
        self.signatures.get(call).map(String::as_str)
    }

    /// The reasoning before the calls that start with this one.
    pub(super) fn thoughts(&self, first_call: Option<&str>) -> &[Value] {
        let mut kept = self.thoughts.iter().rev();
        let found = kept.find(|(id, _)| Some(id.as_str()) == first_call);
        found.map_or(&[], |(_, thoughts)| thoughts)
    }
}

fn size(thoughts: &[Value]) -> usize {
    thoughts
        .iter()
        .map(|thought| thought.to_string().len())
        .sum()
}
