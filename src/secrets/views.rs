//! Texts without what interrupts or escapes their characters, and where these characters stand in the text.

use crate::secrets::unescape::{Unescape, first_meant, is_start};
use std::ops::Range;

/// The longest title or address in a control sequence of a terminal, in bytes.
const MAX_STRING_BYTES: usize = 4096;

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
        Unescape::concerns(text) || text.iter().any(may_be_unseen)
    }

    /// The views of a text in which a secret can be found that is interrupted or escaped there.
    pub(super) fn all(text: &[u8], has_places: bool) -> Vec<Self> {
        let whole = Self {
            bytes: text.to_vec(),
            places: if has_places {
                (0..text.len()).map(|at| at..at + 1).collect()
            } else {
                Vec::new()
            },
        };
        let shown = whole.shown();
        let meant = Unescape::concerns(text).then(|| shown.unescaped().shown());
        std::iter::once(shown).chain(meant).collect()
    }

    /// The same without the characters that nobody sees: line breaks with the white space around them,
    /// control characters and sequences of terminals, and characters without a width.
    pub(super) fn shown(&self) -> Self {
        let mut view = Self::default();
        let mut at = 0;
        while let Some(rest) = self.bytes.get(at..).filter(|rest| !rest.is_empty()) {
            let seen = rest.iter().position(may_be_unseen).unwrap_or(rest.len());
            view.copy(self, at..at + seen);
            at += seen;
            let rest = rest.get(seen..).unwrap_or_default();
            if matches!(rest, [b'\n' | b'\r', ..]) {
                view.drop_spaces();
            }
            match unseen(rest) {
                0 => {
                    view.copy(self, at..at + 1);
                    at += 1;
                }
                length => at += length,
            }
        }
        view
    }

    /// The same with the character of each escape sequence in its place.
    fn unescaped(&self) -> Self {
        let mut view = Self::default();
        let mut at = 0;
        while let Some(rest) = self.bytes.get(at..).filter(|rest| !rest.is_empty()) {
            let plain = rest
                .iter()
                .copied()
                .position(is_start)
                .unwrap_or(rest.len());
            view.copy(self, at..at + plain);
            at += plain;
            match first_meant(rest.get(plain..).unwrap_or_default()) {
                Some((length, meant)) => {
                    view.add(self, at..at + length, &meant);
                    at += length;
                }
                None => {
                    view.copy(self, at..at + 1);
                    at += 1;
                }
            }
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

/// The number of bytes at the start that show nothing.
fn unseen(rest: &[u8]) -> usize {
    match rest {
        [b'\n' | b'\r', rest @ ..] => {
            let is_space = |byte: &&u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
            1 + rest.iter().take_while(is_space).count()
        }
        [0x1b, rest @ ..] => 1 + of_sequence(rest),
        [b'\t', ..] => 0,
        [0..b' ' | 0x7f, ..] => 1,
        // Control characters, and the soft hyphen.
        [0xc2, 0x80..=0x9f | 0xad, ..] => 2,
        [0xe2, 0x80, 0x8b..=0x8f | 0xa8..=0xae, ..] | [0xe2, 0x81, 0xa0..=0xa4, ..] => 3,
        [0xef, 0xbb, 0xbf, ..] => 3,
        _ => 0,
    }
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
