//! Text as it is meant, read piece by piece: escapes of addresses, of source code and of markup become the
//! characters that they stand for.

/// The longest escape, in bytes: `\U0001F980` and `&#x0001F980;` are shorter.
const LONGEST: usize = 14;

/// What stands for itself after an `&`.
const NAMED: [(&[u8], u8); 5] = [
    (b"&amp;", b'&'),
    (b"&lt;", b'<'),
    (b"&gt;", b'>'),
    (b"&quot;", b'"'),
    (b"&apos;", b'\''),
];

/// What the beginning of some bytes is.
enum Found {
    /// An escape of so many bytes for this character.
    Character(usize, char),
    /// An escape of so many bytes for this byte.
    Byte(usize, u8),
    /// So many bytes that stand for nothing.
    Nothing(usize),
    /// No escape.
    Plain,
    /// More bytes decide.
    Open,
}

/// Replaces `%74`, `=74`, `\x74`, `\u0074`, `\u{74}`, `\U00000074`, `\164`, `\/`, `&#116;`, `&#x74;` and the like,
/// one after the other, in any mixture. What is no escape stays.
#[derive(Debug, Clone, Default)]
pub(super) struct Unescape {
    open: Vec<u8>,
}

impl Unescape {
    /// Whether there may be an escape among these bytes.
    pub(super) fn concerns(bytes: &[u8]) -> bool {
        memchr::memchr3(b'%', b'\\', b'&', bytes).is_some() || memchr::memchr(b'=', bytes).is_some()
    }

    /// Appends to `out` what the next bytes mean. `is_end` says that no more come.
    pub(super) fn push(&mut self, bytes: &[u8], is_end: bool, out: &mut Vec<u8>) {
        let joined = [std::mem::take(&mut self.open).as_slice(), bytes].concat();
        let mut rest = joined.as_slice();
        while let Some(first) = rest.first() {
            let found = match first {
                b'%' | b'=' | b'\\' | b'&' => escape(rest),
                _ => Found::Plain,
            };
            let length = match found {
                Found::Character(length, meant) => {
                    out.extend_from_slice(meant.encode_utf8(&mut [0; 4]).as_bytes());
                    length
                }
                Found::Byte(length, meant) => {
                    out.push(meant);
                    length
                }
                Found::Nothing(length) => length,
                Found::Open if !is_end && rest.len() < LONGEST => {
                    self.open = rest.to_vec();
                    return;
                }
                Found::Open | Found::Plain => {
                    out.push(*first);
                    1
                }
            };
            rest = rest.get(length..).unwrap_or_default();
        }
    }
}

fn escape(rest: &[u8]) -> Found {
    match rest {
        [b'%' | b'=', digits @ ..] => number(1, digits, 16, 2),
        [b'\\', b'x', digits @ ..] => number(2, digits, 16, 2),
        [b'\\', b'u', b'{', digits @ ..] => ended(3, digits, 16, b'}'),
        [b'\\', b'u'] => Found::Open,
        [b'\\', b'u', digits @ ..] => number(2, digits, 16, 4),
        [b'\\', b'U', digits @ ..] => number(2, digits, 16, 8),
        [b'\\', b'0'..=b'7', ..] => number(1, rest.get(1..).unwrap_or_default(), 8, 3),
        // Text in text has its escapes escaped.
        [b'\\', b'\\', ..] => Found::Nothing(1),
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

/// A number of so many digits, `before` bytes after the beginning of the escape.
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

/// A number up to `end`.
fn ended(before: usize, digits: &[u8], radix: u32, end: u8) -> Found {
    let length = digits
        .iter()
        .take_while(|byte| char::from(**byte).is_digit(radix))
        .count();
    match digits.get(length) {
        None if length < LONGEST => Found::Open,
        Some(byte) if *byte == end => meant(before + length + 1, digits, length, radix),
        _ => Found::Plain,
    }
}

fn meant(whole: usize, digits: &[u8], length: usize, radix: u32) -> Found {
    let digits = digits.get(..length).unwrap_or_default();
    let number = std::str::from_utf8(digits)
        .ok()
        .and_then(|digits| u32::from_str_radix(digits, radix).ok());
    // Two or three digits are a byte, and more a character.
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
        ] {
            for cut in 1..=text.len() {
                assert_eq!(meant_by(text, cut), expected, "{text} in pieces of {cut}");
            }
        }
    }
}
