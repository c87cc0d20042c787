//! Unescapes text in chunks: escape sequences of URLs, source code and markup become their characters.

/// Maximum length of an escape sequence in bytes: `\U0001F980` and `&#x0001F980;` are shorter.
const MAX_ESCAPE_BYTES: usize = 14;

/// The named character references of markup.
const NAMED: [(&[u8], u8); 5] = [
    (b"&amp;", b'&'),
    (b"&lt;", b'<'),
    (b"&gt;", b'>'),
    (b"&quot;", b'"'),
    (b"&apos;", b'\''),
];

/// What some bytes start with.
enum Found {
    /// An escape sequence of this length for this character.
    Character(usize, char),
    /// An escape sequence of this length for this byte.
    Byte(usize, u8),
    /// This many bytes that stand for nothing.
    Nothing(usize),
    /// No escape sequence.
    Plain,
    /// Not decidable without more bytes.
    Open,
}

/// Replaces `%74`, `=74`, `\x74`, `\u0074`, `\u{74}`, `\U00000074`, `\164`, `\/`, `&#116;`, `&#x74;` and
/// similar sequences, in any mixture, until none is left. This includes sequences that are themselves
/// escaped, as in `%2574` and `\u005cu0074`. All other text is unchanged.
#[derive(Debug, Clone, Default)]
pub(super) struct Unescape {
    /// The bytes read: first unescaped ones that may still become the start of a sequence, then undecided
    /// ones.
    buffer: Vec<u8>,
    /// Length of the first part.
    plain: usize,
}

impl Unescape {
    /// Whether these bytes may contain an escape sequence.
    pub(super) fn concerns(bytes: &[u8]) -> bool {
        bytes.iter().copied().any(is_start)
    }

    /// Unescapes a complete text.
    pub(super) fn all(text: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        Self::default().push(text, true, &mut out);
        out
    }

    /// Appends the unescaped form of the next bytes to `out`. `is_end` means that no more follow.
    pub(super) fn push(&mut self, bytes: &[u8], is_end: bool, out: &mut Vec<u8>) {
        self.buffer.extend_from_slice(bytes);
        let (mut plain, mut next) = (self.plain, self.plain);
        while let Some(first) = self.buffer.get(next).copied() {
            let rest = self.buffer.get(next..).unwrap_or_default();
            let rest = rest.get(..MAX_ESCAPE_BYTES).unwrap_or(rest);
            let (length, meant) = match escape(rest, is_end) {
                Found::Open if !is_end && rest.len() < MAX_ESCAPE_BYTES => break,
                Found::Open | Found::Plain => {
                    if let Some(place) = self.buffer.get_mut(plain) {
                        *place = first;
                    }
                    (plain, next) = (plain + 1, next + 1);
                    continue;
                }
                Found::Character(length, meant) => {
                    (length, meant.encode_utf8(&mut [0; 4]).as_bytes().to_vec())
                }
                Found::Byte(length, meant) => (length, vec![meant]),
                Found::Nothing(length) => (length, Vec::new()),
            };
            next += length;
            self.put_back(&mut next, &meant);
            // The character may complete a sequence that starts before it.
            let open = self
                .buffer
                .get(..plain)
                .unwrap_or_default()
                .get(plain.saturating_sub(MAX_ESCAPE_BYTES - 1)..)
                .unwrap_or_default();
            if let Some(at) = open.iter().copied().position(is_start) {
                let again = open.get(at..).unwrap_or_default().to_vec();
                plain -= again.len();
                self.put_back(&mut next, &again);
            }
        }
        let settled = if is_end {
            plain
        } else {
            plain.saturating_sub(MAX_ESCAPE_BYTES - 1)
        };
        out.extend_from_slice(self.buffer.get(..settled).unwrap_or_default());
        self.buffer.drain(plain..next);
        self.buffer.drain(..settled);
        self.plain = plain - settled;
    }

    /// Inserts these bytes to be read next. They are not longer than the bytes that were already read and
    /// removed.
    fn put_back(&mut self, next: &mut usize, bytes: &[u8]) {
        let from = next.saturating_sub(bytes.len());
        if let Some(place) = self.buffer.get_mut(from..*next) {
            place.copy_from_slice(bytes);
        }
        *next = from;
    }
}

/// The length of the escape sequence at the start of the bytes, and the bytes that it stands for. Line breaks
/// as in JSON count as sequences, too.
pub(super) fn first_meant(rest: &[u8]) -> Option<(usize, Vec<u8>)> {
    if let [b'\\', b'n' | b'r', ..] = rest {
        return Some((2, vec![b'\n']));
    }
    match escape(rest.get(..MAX_ESCAPE_BYTES).unwrap_or(rest), true) {
        Found::Character(length, meant) => {
            Some((length, meant.encode_utf8(&mut [0; 4]).as_bytes().to_vec()))
        }
        Found::Byte(length, meant) => Some((length, vec![meant])),
        Found::Nothing(length) => Some((length, Vec::new())),
        Found::Open | Found::Plain => None,
    }
}

/// Whether a byte may start an escape sequence.
pub(super) fn is_start(byte: u8) -> bool {
    matches!(byte, b'%' | b'=' | b'\\' | b'&')
}

/// Determines what the bytes start with. `is_end` means that no more follow.
fn escape(rest: &[u8], is_end: bool) -> Found {
    match rest {
        [b'%' | b'=', digits @ ..] => number(1, digits, 16, 2),
        [b'\\', b'x', digits @ ..] => number(2, digits, 16, 2),
        [b'\\', b'u', b'{', digits @ ..] => ended(3, digits, 16, b'}'),
        [b'\\', b'u'] => Found::Open,
        [b'\\', b'u', digits @ ..] => number(2, digits, 16, 4),
        [b'\\', b'U', digits @ ..] => number(2, digits, 16, 8),
        [b'\\', b'0'..=b'7', ..] => number(1, rest.get(1..).unwrap_or_default(), 8, 3),
        // In nested text, escape sequences are themselves escaped.
        [b'\\', b'\\', ..] => Found::Nothing(1),
        // The character of the next sequence may be a part of this one.
        [b'\\', next @ ..] if next.first().copied().is_some_and(is_start) => {
            match escape(next, is_end) {
                Found::Open if !is_end => Found::Open,
                Found::Open | Found::Plain => Found::Byte(2, next[0]),
                _ => Found::Plain,
            }
        }
        [b'\\', c, ..] if c.is_ascii_punctuation() => Found::Byte(2, *c),
        [b'&', b'#', b'x' | b'X', digits @ ..] => ended(3, digits, 16, b';'),
        [b'&', b'#'] => Found::Open,
        [b'&', b'#', digits @ ..] => ended(2, digits, 10, b';'),
        [b'\\' | b'&'] => Found::Open,
        [b'&', ..] => named(rest),
        _ => Found::Plain,
    }
}

fn named(rest: &[u8]) -> Found {
    for (name, meant) in NAMED {
        if rest.starts_with(name) {
            return Found::Byte(name.len(), meant);
        }
        if name.starts_with(rest) {
            return Found::Open;
        }
    }
    Found::Plain
}

/// A number with this many digits, `before` bytes after the start of the sequence.
fn number(before: usize, digits: &[u8], radix: u32, count: usize) -> Found {
    let length = digits
        .iter()
        .take(count)
        .take_while(|byte| char::from(**byte).is_digit(radix))
        .count();
    match length {
        _ if length < count && length == digits.len() => Found::Open,
        _ if length < count => Found::Plain,
        _ => meant(before + length, digits, length, radix),
    }
}

/// A number that is terminated by `end`.
fn ended(before: usize, digits: &[u8], radix: u32, end: u8) -> Found {
    let length = digits
        .iter()
        .take_while(|byte| char::from(**byte).is_digit(radix))
        .count();
    match digits.get(length) {
        None if length < MAX_ESCAPE_BYTES => Found::Open,
        Some(byte) if *byte == end => meant(before + length + 1, digits, length, radix),
        _ => Found::Plain,
    }
}

fn meant(whole: usize, digits: &[u8], length: usize, radix: u32) -> Found {
    let digits = digits.get(..length).unwrap_or_default();
    let number = std::str::from_utf8(digits)
        .ok()
        .and_then(|digits| u32::from_str_radix(digits, radix).ok());
    // Two or three digits are a byte, and more are a character.
    let byte = number.and_then(|number| u8::try_from(number).ok());
    match (
        byte.filter(|_| length < 4 && radix != 10),
        number.and_then(char::from_u32),
    ) {
        (Some(byte), _) => Found::Byte(whole, byte),
        (None, Some(meant)) => Found::Character(whole, meant),
        (None, None) => Found::Plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meant_by(text: &str, cut: usize) -> String {
        let mut unescape = Unescape::default();
        let mut out = Vec::new();
        for chunk in text.as_bytes().chunks(cut) {
            unescape.push(chunk, false, &mut out);
        }
        unescape.push(b"", true, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn escapes_of_every_kind_mean_their_characters_however_they_come() {
        for (text, expected) in [
            (
                "%74=74\\x74\\u0074\\u{74}\\U00000074\\164&#116;&#x74;",
                "ttttttttt",
            ),
            ("a\\/b&amp;&lt;c", "a/b&<c"),
            ("\\u00fc%C3%BC\\xc3\\xbc&#252;", "\u{fc}\u{fc}\u{fc}\u{fc}"),
            ("\\\\u0074\\\\\\\"", "t\""),
            (
                "100% = a & b \\n \\uZZ &#; &x; %",
                "100% = a & b \\n \\uZZ &#; &x; %",
            ),
            ("\\u{110000}", "\\u{110000}"),
            ("\\", "\\"),
            // Escaped escapes at any depth, and escapes of a part of one.
            ("%2574 %25252574 &amp;#116; &#38;#x74;", "t t t t"),
            ("\\u005cu0074 %5Cu0074 \\x5cx74 \\134164", "t t t t"),
            ("\\u00%374 %3%37 &#1%316; \\u%30074", "t 7 t t"),
            ("%255C%750074 a\\=b\\&c\\%", "t a=b&c%"),
            ("%25 %2525 a%25z %%%", "% % a%z %%%"),
        ] {
            for cut in 1..=text.len() {
                assert_eq!(meant_by(text, cut), expected, "{text} in pieces of {cut}");
            }
        }
    }
}
