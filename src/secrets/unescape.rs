//! Escape sequences of URLs, source code and markup.

/// The named character references of markup.
const NAMED: [(&[u8], u8); 5] = [
    (b"&amp;", b'&'),
    (b"&lt;", b'<'),
    (b"&gt;", b'>'),
    (b"&quot;", b'"'),
    (b"&apos;", b'\''),
];

/// Maximum number of digits in an escape sequence with an end: `\u{1F980}` and `&#x0001F980;` have fewer.
const MAX_DIGITS: usize = 12;

/// The length of an escape sequence, and the bytes that it stands for.
pub(super) type Meant = (usize, Vec<u8>);

/// Whether a byte may start an escape sequence.
pub(super) fn is_start(byte: &u8) -> bool {
    matches!(byte, b'%' | b'=' | b'\\' | b'&')
}

/// The escape sequence at the start of the bytes: `%74`, `=74`, `\x74`, `\u0074`, `\u{74}`, `\U00000074`, `\164`,
/// `\/`, `&#116;`, `&#x74;` and similar ones. A sequence that is escaped itself, as in `%2574`, stands for another.
pub(super) fn escape(rest: &[u8]) -> Option<Meant> {
    match rest {
        [b'%' | b'=', digits @ ..] => number(1, digits, 16, Some(2)),
        [b'\\', b'x', digits @ ..] => number(2, digits, 16, Some(2)),
        [b'\\', b'u', b'{', ..] => number(3, rest.get(3..)?, 16, None),
        [b'\\', b'u', digits @ ..] => number(2, digits, 16, Some(4)),
        [b'\\', b'U', digits @ ..] => number(2, digits, 16, Some(8)),
        [b'\\', b'0'..=b'7', ..] => number(1, rest.get(1..)?, 8, Some(3)),
        [b'\\', b'n' | b'r', ..] => Some((2, vec![b'\n'])),
        [b'\\', b't', ..] => Some((2, vec![b'\t'])),
        // In nested text, escape sequences are themselves escaped.
        [b'\\', b'\\', ..] => Some((1, Vec::new())),
        // The character of the next sequence may be a part of this one.
        [b'\\', next @ ..] if next.first().is_some_and(is_start) && escape(next).is_some() => None,
        [b'\\', c, ..] if c.is_ascii_punctuation() => Some((2, vec![*c])),
        [b'&', b'#', b'x' | b'X', digits @ ..] => number(3, digits, 16, None),
        [b'&', b'#', digits @ ..] => number(2, digits, 10, None),
        _ => {
            let (name, meant) = NAMED.iter().find(|(name, _)| rest.starts_with(name))?;
            Some((name.len(), vec![*meant]))
        }
    }
}

/// A number with this many digits or, without one, up to its end, `before` bytes after the start of the sequence.
fn number(before: usize, digits: &[u8], radix: u32, count: Option<usize>) -> Option<Meant> {
    let is_digit = |byte: &&u8| char::from(**byte).is_digit(radix);
    let most = digits.iter().take(count.unwrap_or(MAX_DIGITS));
    let length = most.take_while(is_digit).count();
    let is_whole = match count {
        Some(count) => length == count,
        None => matches!(digits.get(length), Some(b'}' | b';')),
    };
    let text = std::str::from_utf8(digits.get(..length)?).ok()?;
    let number = u32::from_str_radix(text, radix).ok().filter(|_| is_whole)?;
    let whole = before + length + usize::from(count.is_none());
    // Two or three digits are a byte, and more are a character.
    let byte = u8::try_from(number)
        .ok()
        .filter(|_| count.is_some_and(|count| count < 4));
    let meant = match byte {
        Some(byte) => vec![byte],
        None => char::from_u32(number)?.to_string().into_bytes(),
    };
    Some((whole, meant))
}

#[cfg(test)]
mod tests {
    use crate::secrets::views::View;

    #[test]
    fn escapes_of_every_kind_mean_their_characters_however_deep_they_are() {
        for (text, expected) in [
            (
                "%74=74\\x74\\u0074\\u{74}\\U00000074\\164&#116;&#x74;",
                "ttttttttt",
            ),
            ("a\\/b&amp;&lt;c", "a/b&<c"),
            ("\\u00fc%C3%BC\\xc3\\xbc&#252;", "\u{fc}\u{fc}\u{fc}\u{fc}"),
            ("\\\\u0074\\\\\\\"", "t\""),
            (
                "100% = a & b \\uZZ &#; &x; %",
                "100% = a & b \\uZZ &#; &x; %",
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
            let views = View::all(text.as_bytes(), false);
            let meant = views.last().map(|view| view.bytes.as_slice());
            assert_eq!(meant, Some(expected.as_bytes()), "{text}");
        }
    }
}
