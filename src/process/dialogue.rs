//! Input that is sent to a child while it runs, in answer to its output.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The most unread input that is kept for a child, in bytes.
const MAX_UNREAD_BYTES: usize = 16 << 20;

/// A child's standard input that stays open: the reader of the child's output queues answers here, and
/// they are written as soon as the child reads. Clones share the dialogue.
#[derive(Debug, Clone, Default)]
pub struct Dialogue(Arc<Mutex<DialogueState>>);

#[derive(Debug, Default)]
struct DialogueState {
    unwritten: Vec<u8>,
    farewell: Option<Vec<u8>>,
    is_over: bool,
}

/// The next step of writing.
pub(super) enum Next {
    /// Write these bytes.
    Say(Vec<u8>),
    /// Wait: there is nothing to write now.
    Wait,
    /// Close the input: there is nothing more to write.
    Over,
}

impl Dialogue {
    /// Queues bytes. If a child does not read and the queue would exceed its limit, the dialogue ends
    /// instead.
    pub fn say(&self, bytes: &[u8]) {
        let mut said = self.lock();
        if said.unwritten.len().saturating_add(bytes.len()) > MAX_UNREAD_BYTES {
            said.is_over = true;
        } else if !said.is_over {
            said.unwritten.extend_from_slice(bytes);
        }
    }

    /// Sets the last message for a child that is ended before its dialogue is over. The child then gets
    /// part of its grace period to finish the dialogue.
    pub fn set_farewell(&self, bytes: Vec<u8>) {
        self.lock().farewell = Some(bytes);
    }

    /// Ends the dialogue: once all is written, the child's standard input is closed and the child should
    /// exit.
    pub fn end(&self) {
        self.lock().is_over = true;
    }

    /// Whether the dialogue has ended.
    pub fn is_over(&self) -> bool {
        self.lock().is_over
    }

    /// Queues the last message. Returns whether there is one and the dialogue is not over.
    pub(super) fn say_farewell(&self) -> bool {
        let mut said = self.lock();
        let farewell = said.farewell.take().filter(|_| !said.is_over);
        let Some(farewell) = farewell else {
            return false;
        };
        said.unwritten.extend_from_slice(&farewell);
        true
    }

    /// Takes the bytes queued since the last call.
    pub fn take(&self) -> Vec<u8> {
        std::mem::take(&mut self.lock().unwritten)
    }

    pub(super) fn next(&self) -> Next {
        let said = self.take();
        match (said.is_empty(), self.is_over()) {
            (false, _) => Next::Say(said),
            (true, false) => Next::Wait,
            (true, true) => Next::Over,
        }
    }

    fn lock(&self) -> MutexGuard<'_, DialogueState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PartialEq for Dialogue {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Dialogue {}
