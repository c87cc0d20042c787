//! Translates ECMAScript regular expressions to the syntax of the `regex` crate.

use std::iter::Peekable;
use std::str::Chars;

/// `source` with the constructs rewritten that both write differently. Constructs that the crate lacks
/// (look-around, back references) stay, so that compilation reports them.
pub(super) fn translated(source: &str) -> String {
    let mut text = String::with_capacity(source.len());
    let mut chars = source.chars().peekable();
    let mut in_class = false;
    while let Some(c) = chars.next() {
        match c {
            '\\' => escape(&mut chars, in_class, &mut text),
            '[' if in_class => text.push_str(r"\["),
            '[' => in_class = class(&mut chars, &mut text),
            ']' => {
                in_class = false;
                text.push(']');
            }
            '&' | '~' if in_class => text.extend(['\\', c]),
            '{' if !in_class && !is_quantifier(chars.clone()) => text.push_str(r"\{"),
            _ => text.push(c),
        }
    }
    text
}

/// Translates the beginning of a class and returns whether it continues. `[]` matches nothing and `[^]`
/// anything.
fn class(chars: &mut Peekable<Chars<'_>>, text: &mut String) -> bool {
    let negated = chars.next_if_eq(&'^').is_some();
    if chars.next_if_eq(&']').is_some() {
        text.push_str(if negated { r"[\s\S]" } else { r"[^\s\S]" });
        return false;
    }
    text.push_str(if negated { "[^" } else { "[" });
    true
}

fn escape(chars: &mut Peekable<Chars<'_>>, in_class: bool, text: &mut String) {
    let Some(c) = chars.next() else {
        text.push('\\');
        return;
    };
    match c {
        'b' if in_class => text.push_str(r"\x08"),
        '0' => text.push_str(r"\x00"),
        '<' | '>' => text.push(c),
        'c' => match chars.next_if(char::is_ascii_alphabetic) {
            Some(letter) => text.push_str(&format!(r"\x{:02x}", u32::from(letter) % 32)),
            None => text.push_str(r"\\c"),
        },
        _ if "dDwWsSbBnrtvfxuk123456789".contains(c) => text.extend(['\\', c]),
        _ if c.is_alphanumeric() || !c.is_ascii() => text.push(c),
        _ => text.extend(['\\', c]),
    }
}

/// Whether the text after a brace makes it a quantifier.
fn is_quantifier(mut rest: Peekable<Chars<'_>>) -> bool {
    let mut digits = 0;
    while rest.next_if(char::is_ascii_digit).is_some() {
        digits += 1;
    }
    if rest.next_if_eq(&',').is_some() {
        while rest.next_if(char::is_ascii_digit).is_some() {}
    }
    digits > 0 && rest.next() == Some('}')
}

#[cfg(test)]
mod tests {
    use super::translated;
    use regex::Regex;

    #[test]
    fn what_is_written_differently_means_the_same() {
        for (source, matching, other) in [
            (r"^\/a\:b$", "/a:b", "a:b"),
            (r"^[[]x[^]]$", "[xy]", "x"),
            (r"^[^]$", "y", ""),
            (r"^{x}$", "{x}", "x"),
            (r"^a{2}b{1,}c{,2}$", "aabc{,2}", "ab"),
            (r"^\<\p\-[&&~]$", "<p-&", "<p-x"),
            (r"^[\b]\cA\0\x41\u0042$", "\u{8}\u{1}\0AB", "AB"),
            (r"^(?<file>\S+)\s+\d$", "a 1", "a"),
            (r"^[\w\-\]]+$", "a-]", "a b"),
        ] {
            let regex = Regex::new(&translated(source)).unwrap_or_else(|why| panic!("{why}"));
            assert!(regex.is_match(matching), "{source}");
            assert!(!regex.is_match(other), "{source}");
        }
    }

    #[test]
    fn what_cannot_be_translated_does_not_compile() {
        for source in [r"(a)\1", "(?=a)", "(?<!a)b", r"(?<x>a)\k<x>", "(", r"a\"] {
            assert!(Regex::new(&translated(source)).is_err(), "{source}");
        }
    }
}
