//! Texts without what interrupts or escapes their characters, and where these characters stand in the text.

use crate::secrets::unescape::{Meant, escape, is_start};
use std::ops::Range;

/// The longest title or address in a control sequence of a terminal, in bytes.
const MAX_STRING_BYTES: usize = 4096;

/// How deep escape sequences may be escaped.
const MAX_DEPTH: usize = 16;

/// Bytes that stand for a text, and their places in it.
#[derive(Debug, Default)]
pub(super) struct View {
    /// The bytes.
    pub(super) bytes: Vec<u8>,
    /// For each of them, its place in the text; empty if places were not asked for.
    places: Vec<Range<usize>>,
}

impl View {
    /// Whether a view of this text differs from the text.
    pub(super) fn concerns(text: &[u8]) -> bool {
        let text = text.trim_ascii_end();
        text.iter()
            .any(|byte| is_start(byte) || may_be_unseen(byte))
    }

    /// The views of a text in which a secret can be found that is interrupted or escaped there, however deep.
    pub(super) fn all(text: &[u8], has_places: bool) -> Vec<Self> {
        let places = has_places.then(|| (0..text.len()).map(|at| at..at + 1));
        let whole = Self {
            bytes: text.to_vec(),
            places: places.into_iter().flatten().collect(),
        };
        let mut views = vec![whole.read(may_be_unseen, unseen)];
        // Escape sequences may stand for parts of others.
        while let Some(last) = views.last().filter(|_| views.len() <= MAX_DEPTH) {
            let meant = last.read(is_start, escape);
            if meant.bytes.len() == last.bytes.len() {
                break;
            }
            views.push(meant.read(may_be_unseen, unseen));
        }
        views
    }

    /// The same with what sequences of bytes stand for in their place.
    fn read(&self, may_start: fn(&u8) -> bool, meant: fn(&[u8]) -> Option<Meant>) -> Self {
        let mut view = Self::default();
        let mut at = 0;
        while let Some(rest) = self.bytes.get(at..).filter(|rest| !rest.is_empty()) {
            let plain = rest.iter().position(may_start).unwrap_or(rest.len());
            let rest = rest.get(plain..).unwrap_or_default();
            view.copy(self, at..at + plain);
            at += plain;
            if matches!(rest, [b'\n' | b'\r', ..]) {
                view.drop_spaces();
            }
            let length = match meant(rest) {
                Some((length, meant)) => {
                    view.add(self, at..at + length, &meant);
                    length
                }
                None => {
                    view.copy(self, at..at + 1);
                    1
                }
            };
            at += length;
        }
        view
    }

    /// The place in the text of a range of this view.
    pub(super) fn place(&self, range: &Range<usize>) -> Option<Range<usize>> {
        let first = self.places.get(range.start)?;
        let last = self.places.get(range.end.checked_sub(1)?)?;
        Some(first.start..last.end)
    }

    /// Adds a range of another view, as far as it has one.
    fn copy(&mut self, from: &Self, range: Range<usize>) {
        let bytes = from.bytes.get(range.start..range.end.min(from.bytes.len()));
        self.bytes.extend_from_slice(bytes.unwrap_or_default());
        let places = from
            .places
            .get(range.start..range.end.min(from.places.len()));
        self.places.extend_from_slice(places.unwrap_or_default());
    }

    /// Adds bytes that stand for a range of another view.
    fn add(&mut self, from: &Self, range: Range<usize>, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        if let Some(place) = from.place(&range) {
            self.places.extend(bytes.iter().map(|_| place.clone()));
        }
    }

    fn drop_spaces(&mut self) {
        while let Some(b' ' | b'\t') = self.bytes.last() {
            self.bytes.pop();
            self.places.pop();
        }
    }
}

/// Whether a byte may be the first of those that show nothing.
fn may_be_unseen(byte: &u8) -> bool {
    *byte < b' ' && *byte != b'\t' || matches!(byte, 0x7f | 0xc2 | 0xe2 | 0xef)
}

/// The bytes at the start that nobody sees: line breaks with the white space around them, control characters and
/// sequences of terminals, and characters without a width.
fn unseen(rest: &[u8]) -> Option<Meant> {
    let length = match rest {
        [b'\n' | b'\r', rest @ ..] => {
            let is_space = |byte: &&u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0);
            1 + rest.iter().take_while(is_space).count()
        }
        [0x1b, rest @ ..] => 1 + of_sequence(rest),
        [b'\t', ..] => return None,
        [0..b' ' | 0x7f, ..] => {
            let is_control =
                |byte: &&u8| matches!(byte, 0..=8 | 11 | 12 | 14..=26 | 28..=31 | 0x7f);
            rest.iter().take_while(is_control).count()
        }
        // Control characters, and the soft hyphen.
        [0xc2, 0x80..=0x9f | 0xad, ..] => 2,
        [0xe2, 0x80, 0x8b..=0x8f | 0xa8..=0xae, ..] | [0xe2, 0x81, 0xa0..=0xa4, ..] => 3,
        [0xef, 0xbb, 0xbf, ..] => 3,
        _ => return None,
    };
    Some((length, Vec::new()))
}

/// The length of a control sequence of a terminal, without the escape character in front.
fn of_sequence(rest: &[u8]) -> usize {
    let until = |start: usize, is_end: &dyn Fn(u8) -> bool| {
        let string = rest.get(start..).unwrap_or_default().iter();
        let end = string.take(MAX_STRING_BYTES).position(|byte| is_end(*byte));
        end.map_or(0, |end| start + end + 1)
    };
    match rest {
        [b'[', ..] => until(1, &|byte| (0x40..0x7f).contains(&byte)),
        // The end is BEL, or an escape character with a backslash, which is a sequence of its own.
        [b']' | b'P' | b'X' | b'^' | b'_', ..] => {
            match until(1, &|byte| matches!(byte, 7 | 0x1b)) {
                0 => 1,
                length => length - usize::from(rest.get(length - 1) == Some(&0x1b)),
            }
        }
        [b' '..0x7f, ..] => 1,
        _ => 0,
    }
}
