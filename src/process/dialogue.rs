//! What is said to a child while it runs, in answer to what it prints.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The most that is kept for a child which does not read what it is told, in bytes.
const MOST: usize = 16 << 20;

/// A child's standard input that stays open: whoever reads the child's output says something by this, and the child
/// is told it as soon as it reads. Clones are the same dialogue.
#[derive(Debug, Clone, Default)]
pub struct Dialogue(Arc<Mutex<Said>>);

#[derive(Debug, Default)]
struct Said {
    unwritten: Vec<u8>,
    farewell: Option<Vec<u8>>,
    is_over: bool,
}

/// What there is to be written.
pub(super) enum Next {
    /// These bytes.
    Say(Vec<u8>),
    /// Nothing now.
    Wait,
    /// Nothing any more.
    Over,
}

impl Dialogue {
    /// Says something. What a child that reads nothing would let grow without bound ends the dialogue instead.
    pub fn say(&self, bytes: &[u8]) {
        let mut said = self.lock();
        if said.unwritten.len().saturating_add(bytes.len()) > MOST {
            said.is_over = true;
        } else if !said.is_over {
            said.unwritten.extend_from_slice(bytes);
        }
    }

    /// What the child is told where it is to end before the dialogue has: after that it gets a part of its grace to end
    /// the dialogue by itself.
    pub fn set_farewell(&self, bytes: Vec<u8>) {
        self.lock().farewell = Some(bytes);
    }

    /// Ends the dialogue: once everything is written the child's standard input ends, and the child is expected to.
    pub fn end(&self) {
        self.lock().is_over = true;
    }

    /// Whether nothing more will be said.
    pub fn is_over(&self) -> bool {
        self.lock().is_over
    }

    /// Says the farewell. Returns whether there is one, and somebody to hear it.
    pub(super) fn say_farewell(&self) -> bool {
        let mut said = self.lock();
        let farewell = said.farewell.take().filter(|_| !said.is_over);
        let Some(farewell) = farewell else {
            return false;
        };
        said.unwritten.extend_from_slice(&farewell);
        true
    }

    /// What was said since it was last taken up.
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

    fn lock(&self) -> MutexGuard<'_, Said> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PartialEq for Dialogue {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Dialogue {}
