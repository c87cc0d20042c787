//! Keeps the start and the end of a stream of any length.

use crate::process::text::clean_text;
use std::collections::VecDeque;

/// The last bytes of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tail {
    cap: usize,
    kept: VecDeque<u8>,
    dropped: u64,
}

impl Tail {
    /// The last `cap` bytes.
    pub fn new(cap: usize) -> Self {
        Self {
            cap,
            kept: VecDeque::new(),
            dropped: 0,
        }
    }

    /// Adds more of the stream.
    pub fn push(&mut self, bytes: &[u8]) {
        self.push_and_take(bytes, |_| ());
    }

    /// As [`Self::push`]; `take` receives the bytes that are no longer kept, in order.
    fn push_and_take(&mut self, bytes: &[u8], mut take: impl FnMut(&[u8])) {
        let skipped = bytes.len().saturating_sub(self.cap);
        let (gone, bytes) = bytes.split_at(skipped);
        let surplus = (self.kept.len() + bytes.len()).saturating_sub(self.cap);
        if surplus > 0 {
            let (front, back) = self.kept.as_slices();
            let of_front = surplus.min(front.len());
            take(front.get(..of_front).unwrap_or_default());
            take(back.get(..surplus - of_front).unwrap_or_default());
            self.kept.drain(..surplus);
        }
        take(gone);
        self.kept.extend(bytes);
        self.dropped += (skipped + surplus) as u64;
    }

    /// The number of bytes before those that are kept.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Removes the last byte if it is this one. Returns whether it was.
    pub fn pop_if(&mut self, byte: u8) -> bool {
        self.kept.pop_back_if(|last| *last == byte).is_some()
    }

    /// The kept bytes.
    pub fn as_slice(&mut self) -> &[u8] {
        self.kept.make_contiguous()
    }

    /// The kept bytes.
    pub fn into_bytes(self) -> Vec<u8> {
        self.kept.into()
    }
}

/// The first and the last bytes of a stream, and the number of bytes in between.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeadTail {
    head_cap: usize,
    head: Vec<u8>,
    tail: Tail,
}

impl HeadTail {
    /// The first `head` and the last `tail` bytes.
    pub fn new(head: usize, tail: usize) -> Self {
        Self {
            head_cap: head,
            head: Vec::new(),
            tail: Tail::new(tail),
        }
    }

    /// Adds more of the stream.
    pub fn push(&mut self, bytes: &[u8]) {
        self.push_and_take(bytes, |_| ());
    }

    /// As [`Self::push`]; `take` receives the bytes in between that are no longer kept, in order.
    pub fn push_and_take(&mut self, bytes: &[u8], take: impl FnMut(&[u8])) {
        let room = self.head_cap.saturating_sub(self.head.len());
        let (head, rest) = bytes.split_at(room.min(bytes.len()));
        self.head.extend_from_slice(head);
        self.tail.push_and_take(rest, take);
    }

    /// The number of bytes that are missing in the middle.
    pub fn omitted(&self) -> u64 {
        self.tail.dropped()
    }

    /// The first and the last bytes, without overlap. If nothing was omitted, together they are the
    /// whole stream.
    pub fn into_parts(self) -> (Vec<u8>, Vec<u8>) {
        (self.head, self.tail.into_bytes())
    }

    /// Both as plain text.
    pub fn into_text(self) -> String {
        let (head, tail) = self.into_parts();
        clean_text(&[head, tail].concat())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_first_and_the_last_bytes_are_kept_however_they_arrive(
            chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..9), 0..12),
            head in 0_usize..12,
            tail in 0_usize..12,
        ) {
            let text = chunks.concat();
            let mut kept = HeadTail::new(head, tail);
            let mut gone = Vec::new();
            for chunk in &chunks {
                kept.push_and_take(chunk, |bytes| gone.extend_from_slice(bytes));
            }

            let from = text.len().min(head);
            let to = from.max(text.len().saturating_sub(tail));
            prop_assert_eq!(kept.omitted(), (to - from) as u64);
            prop_assert_eq!(gone, text[from..to].to_vec());
            prop_assert!(kept.tail.kept.capacity() <= 2 * tail.next_power_of_two().max(4));
            prop_assert_eq!(kept.into_parts(), (text[..from].to_vec(), text[to..].to_vec()));
        }
    }

    #[test]
    fn a_tail_counts_what_it_drops() {
        let mut tail = Tail::new(3);
        tail.push(b"abc");
        assert_eq!(tail.dropped(), 0);
        tail.push(b"d");
        assert_eq!(tail.dropped(), 1);
        assert_eq!(tail.into_bytes(), b"bcd");
    }
}
