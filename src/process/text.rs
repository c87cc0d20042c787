//! Converts program output to text for people and prompts.

use std::io::{self, Write};

/// How much of a line is held back until its end arrives.
const MAX_LINE: usize = 64 << 10;

/// Output as plain text: invalid UTF-8 is replaced, escape sequences and control characters are removed,
/// and every line ends with `\n`.
///
/// A lone `\r` also ends a line, because a terminal would overwrite the line then. If successive states
/// differ only in figures and bars, as in a progress bar, only the last one is kept.
pub fn clean_text(bytes: &[u8]) -> String {
    if bytes
        .iter()
        .all(|byte| matches!(byte, b'\n' | b'\t' | b' '..=b'~'))
    {
        return String::from_utf8_lossy(bytes).into_owned();
    }
    let text = String::from_utf8_lossy(bytes);
    let mut clean = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let (line, end) = match line.strip_suffix('\n') {
            Some(line) => (line.trim_end_matches('\r'), "\n"),
            None => (line, ""),
        };
        push_line(&mut clean, line);
        clean.push_str(end);
    }
    clean
}

/// Writes program output to `W` as [`clean_text`], whole lines at a time. Only the beginning of a very long line
/// is written before its end arrives.
#[derive(Debug)]
pub struct CleanLines<W> {
    out: W,
    line: Vec<u8>,
}

impl<W: Write> CleanLines<W> {
    /// Creates a stream that writes to `out`.
    pub fn new(out: W) -> Self {
        Self {
            out,
            line: Vec::new(),
        }
    }

    /// Writes the text after the last line end, and returns the underlying writer.
    ///
    /// # Errors
    /// Those of the underlying writer.
    pub fn finish(mut self) -> io::Result<W> {
        self.release(self.line.len())?;
        Ok(self.out)
    }

    fn release(&mut self, length: usize) -> io::Result<()> {
        let lines = self.line.get(..length).unwrap_or_default();
        self.out.write_all(clean_text(lines).as_bytes())?;
        self.line.drain(..length);
        Ok(())
    }
}

impl<W: Write> Write for CleanLines<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.line.extend_from_slice(bytes);
        if let Some(end) = memchr::memrchr(b'\n', &self.line) {
            self.release(end + 1)?;
        } else if self.line.len() > MAX_LINE {
            // A character that is cut here would be lost.
            let whole = match std::str::from_utf8(&self.line) {
                Err(error) if error.error_len().is_none() => error.valid_up_to(),
                _ => self.line.len(),
            };
            self.release(whole)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Adds one line that may have been overwritten several times.
fn push_line(clean: &mut String, line: &str) {
    let mut states = line
        .split('\r')
        .map(plain)
        .filter(|state| !state.trim().is_empty());
    let Some(mut current) = states.next() else {
        // Only spaces, which may be significant, or escape sequences, which are not.
        clean.push_str(&plain(line));
        return;
    };
    for next in states {
        if !letters(&current).eq(letters(&next)) {
            clean.push_str(&current);
            clean.push('\n');
        }
        current = next;
    }
    clean.push_str(&current);
}

/// The letters of a text, which are the same in all states of one progress bar.
fn letters(text: &str) -> impl Iterator<Item = char> {
    text.chars().filter(|c| c.is_alphabetic())
}

/// A piece of a line without escape sequences and control characters. Each piece is parsed separately,
/// so that an unterminated sequence hides at most the rest of its line.
fn plain(piece: &str) -> String {
    let mut plain = Plain(String::with_capacity(piece.len()));
    if piece.contains(|c: char| c.is_control()) {
        vte::Parser::new().advance(&mut plain, piece.as_bytes());
    } else {
        plain.0.push_str(piece);
    }
    plain.0
}

struct Plain(String);

impl vte::Perform for Plain {
    fn print(&mut self, c: char) {
        if !c.is_control() {
            self.0.push(c);
        }
    }

    fn execute(&mut self, byte: u8) {
        if byte == b'\t' {
            self.0.push('\t');
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn text_is_cleaned() {
        let cases: [(&[u8], &str); 18] = [
            (b"", ""),
            (b"a\n\n b\n", "a\n\n b\n"),
            (b"\x1b[31;1merror\x1b[0m: x\n", "error: x\n"),
            (
                b"\x1b]0;title\x07a\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\",
                "alink",
            ),
            (b"a\tb\0c\x08d\x7fe", "a\tbcde"),
            ("x\u{85}y\u{9b}z".as_bytes(), "xyz"),
            (b"caf\xc3\xa9 \xff\xfe", "caf\u{e9} \u{fffd}\u{fffd}"),
            (b"cut \xe2\x82", "cut \u{fffd}"),
            (b"a\r\nb\r\r\nc", "a\nb\nc"),
            (b" 10%\r 50%\r100%\ndone\n", "100%\ndone\n"),
            (b"[=>  ] 1/9\r\x1b[K[==> ] 2/9\r\n", "[==> ] 2/9\n"),
            (
                b"Building 1/2\rerror: no\rBuilding 2/2",
                "Building 1/2\nerror: no\nBuilding 2/2",
            ),
            (b"first\rsecond\r", "first\nsecond"),
            (b"spin |\rspin /\r      \r", "spin /"),
            (b"  \n\x1b[2K\r\n", "  \n\n"),
            (b"bad \x1b]never ends\nnext line\n", "bad \nnext line\n"),
            (b"bad \x1bPnever ends\nnext line\n", "bad \nnext line\n"),
            (b"tail \x1b[3", "tail "),
        ];
        for (bytes, expected) in cases {
            assert_eq!(clean_text(bytes), expected, "{}", bytes.escape_ascii());
        }
    }

    fn streamed(parts: &[&[u8]]) -> String {
        let mut stream = CleanLines::new(Vec::new());
        for part in parts {
            stream.write_all(part).unwrap();
        }
        String::from_utf8(stream.finish().unwrap()).unwrap()
    }

    #[test]
    fn a_stream_is_cleaned_like_its_whole_text() {
        let parts: [&[u8]; 4] = [b"a\x1b[3", b"1mb\x1b[0m\r", b"\nc\xc3", b"\xa9"];
        assert_eq!(streamed(&parts), "ab\nc\u{e9}");
    }

    #[test]
    fn a_long_line_is_written_before_it_ends_and_loses_no_character() {
        let line = "\u{e9}".repeat(MAX_LINE);
        let bytes = line.as_bytes();
        let mut stream = CleanLines::new(Vec::new());
        for part in bytes.chunks(999) {
            stream.write_all(part).unwrap();
            assert!(stream.line.len() <= MAX_LINE + 999);
        }
        assert_eq!(String::from_utf8(stream.finish().unwrap()).unwrap(), line);
    }

    proptest! {
        #[test]
        fn nothing_but_newlines_and_tabs_controls_the_terminal(
            bytes in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            let clean = clean_text(&bytes);
            prop_assert!(!clean.chars().any(|c| c.is_control() && c != '\n' && c != '\t'));
            prop_assert_eq!(clean_text(clean.as_bytes()), clean);
        }

        #[test]
        fn plain_text_stays_as_it_is(text in "[a-zäß0-9 .\t\n]{0,80}") {
            prop_assert_eq!(clean_text(text.as_bytes()), text);
        }
    }
}
