//! Redacts a stream of lines.

use crate::secrets::redact::Redactor;
use std::io::{self, ErrorKind, Write};
use std::sync::Arc;

/// Maximum length in bytes of a line that is buffered completely. In a longer line, a secret across a cut
/// could pass.
const MAX_LINE_BYTES: usize = 1 << 20;

/// Writes complete lines without secrets. Text after the last line end is written when the stream is finished
/// or dropped.
#[derive(Debug)]
pub struct Redacting<W: Write> {
    /// `Some` until the stream is finished.
    out: Option<W>,
    redactor: Arc<Redactor>,
    line: Vec<u8>,
}

impl<W: Write> Redacting<W> {
    /// Creates a stream that writes the redacted text to `out`.
    pub fn new(out: W, redactor: Arc<Redactor>) -> Self {
        Self {
            out: Some(out),
            redactor,
            line: Vec::new(),
        }
    }

    /// Writes the text after the last line end, and returns the underlying writer.
    ///
    /// # Errors
    /// Those of the underlying writer.
    pub fn finish(mut self) -> io::Result<W> {
        self.release(self.line.len())?;
        self.out.take().ok_or_else(|| ErrorKind::BrokenPipe.into())
    }

    fn release(&mut self, length: usize) -> io::Result<()> {
        let lines = self.line.get(..length).unwrap_or_default();
        if let Some(out) = &mut self.out {
            out.write_all(&self.redactor.redact_bytes(lines))?;
        }
        self.line.drain(..length);
        Ok(())
    }
}

impl<W: Write> Write for Redacting<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.line.extend_from_slice(bytes);
        if let Some(end) = memchr::memrchr(b'\n', &self.line) {
            self.release(end + 1)?;
        } else if self.line.len() > MAX_LINE_BYTES {
            self.release(self.line.len())?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.as_mut().map_or(Ok(()), Write::flush)
    }
}

impl<W: Write> Drop for Redacting<W> {
    fn drop(&mut self) {
        // Nobody is left to report a failure to.
        let _ = self.release(self.line.len());
        let _ = self.flush();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(parts: &[&[u8]]) -> String {
        let redactor = Arc::new(Redactor::new(["canary-secret-1234"]));
        let mut out = Vec::new();
        let mut stream = Redacting::new(&mut out, redactor);
        for part in parts {
            stream.write_all(part).unwrap();
            stream.flush().unwrap();
        }
        drop(stream);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_secret_that_comes_in_pieces_does_not_pass() {
        let parts: [&[u8]; 3] = [b"a canary-se", b"cret-1234 b\nnext ", b"canary-secret-1234"];
        assert_eq!(written(&parts), "a *** b\nnext ***");
    }

    #[test]
    fn what_is_no_secret_passes_as_it_is() {
        let text = "one\ntwo\r\n\u{1F980} three";
        assert_eq!(written(&[text.as_bytes()]), text);
    }

    #[test]
    fn bytes_that_are_no_text_hide_nothing() {
        let told = written(&[b"\xff canary-secret-1234\n"]);
        assert!(told.ends_with(" ***\n"), "{told:?}");
        let mut out = Vec::new();
        let mut stream = Redacting::new(&mut out, Arc::default());
        stream.write_all(b"\xff is kept\n").unwrap();
        assert_eq!(stream.finish().unwrap(), b"\xff is kept\n");
    }

    #[test]
    fn a_line_without_an_end_is_not_kept_for_ever() {
        let redactor = Arc::new(Redactor::new(["canary-secret-1234"]));
        let mut stream = Redacting::new(Vec::new(), redactor);
        stream.write_all(&vec![b'x'; MAX_LINE_BYTES + 1]).unwrap();
        assert!(stream.line.is_empty());
    }
}
