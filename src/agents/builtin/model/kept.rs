//! What a provider wants to see again with the calls of a response: signatures of its calls, and the
//! thoughts before them, which are signed or encrypted and go back as they came.

use super::assembly::Reply;
use serde_json::Value;
use std::collections::HashMap;

/// What is kept of the responses of a session.
#[derive(Debug, Default)]
pub(super) struct Kept {
    /// By the id of a call.
    signatures: HashMap<String, String>,
    /// By the id of a response's first call, oldest first.
    thoughts: Vec<(String, Vec<Value>)>,
    /// Bytes of the thoughts.
    size: usize,
}

impl Kept {
    /// Keeps what is of use in the next request. From `most` bytes of thoughts on, the older half
    /// goes: providers do without old ones, and a request must fit.
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
        // The newest stay, whatever their size: the request after them is refused without.
        while self.size > most / 2 && self.thoughts.len() > 1 {
            let (_, gone) = self.thoughts.remove(0);
            self.size = self.size.saturating_sub(size(&gone));
        }
    }

    /// Whether anything is to be given back.
    pub(super) fn any(&self) -> bool {
        !self.signatures.is_empty() || !self.thoughts.is_empty()
    }

    /// Gives nothing of it back any more.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    pub(super) fn signature(&self, call: &str) -> Option<&str> {
        self.signatures.get(call).map(String::as_str)
    }

    /// The thoughts before the calls of which this is the first.
    pub(super) fn thoughts(&self, first_call: Option<&str>) -> &[Value] {
        let mut kept = self.thoughts.iter().rev();
        let found = kept.find(|(id, _)| Some(id.as_str()) == first_call);
        found.map_or(&[], |(_, thoughts)| thoughts)
    }
}

fn size(thoughts: &[Value]) -> usize {
    thoughts.iter().map(|it| it.to_string().len()).sum()
}
