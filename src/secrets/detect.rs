//! Finds known secrets in content that is about to be committed.

use crate::secrets::redact::{forms, hexadecimal, secrets_apart};
use crate::secrets::unescape::Unescape;
use aho_corasick::{AhoCorasick, AhoCorasickKind};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::{self, ErrorKind, Read};

/// Minimum length in bytes of a detected secret. Shorter values are often ordinary words, such as the
/// password of a test database.
pub const MIN_SECRET_BYTES: usize = 12;

const CHUNK: usize = 64 * 1024;

/// Finds secrets in clear text and in the usual encodings, whatever the character encoding and the escapes of
/// the text. The time is linear in the length of the text, and the memory does not grow with it. A reversed,
/// compressed or encrypted secret is not found.
#[derive(Clone, Default)]
pub struct Detector {
    /// Patterns that must match exactly, and hexadecimal digits in any letter case.
    known: Vec<Known>,
    /// Length in bytes of the longest pattern.
    longest: usize,
}

#[derive(Clone)]
struct Known {
    automaton: AhoCorasick,
    /// For each pattern, the variable and the form of the secret.
    patterns: Vec<DetectedSecret>,
}

/// A secret that was found.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct DetectedSecret {
    /// The variable with the secret.
    pub name: String,
    /// The matched form, after unescaping.
    pub form: String,
}

impl fmt::Debug for DetectedSecret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Seen({})", self.name)
    }
}

impl fmt::Debug for Detector {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let patterns: usize = self.known.iter().map(|known| known.patterns.len()).sum();
        write!(out, "Detector({patterns} patterns)")
    }
}

impl Detector {
    /// Creates a detector for these secrets, each with the name of its variable.
    pub fn new<'a>(secrets: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let (mut exact, mut hex) = (BTreeMap::new(), BTreeMap::new());
        for (name, secret) in secrets {
            let parts = secrets_apart(secret.trim());
            for part in parts.filter(|part| part.len() >= MIN_SECRET_BYTES) {
                for form in forms(part) {
                    if !form.is_ascii() {
                        for bytes in encodings(&form) {
                            note(&mut exact, bytes, name, &form);
                        }
                    }
                    // A secret that looks like an escape sequence is also detected by its unescaped form.
                    let meant = Unescape::all(form.as_bytes());
                    note(&mut exact, meant, name, &form);
                    let joined: String = form.split_ascii_whitespace().collect();
                    note(&mut exact, joined.into_bytes(), name, &form);
                    note(&mut exact, form.clone().into_bytes(), name, &form);
                }
                let digits = hexadecimal(part);
                note(&mut hex, digits.clone().into_bytes(), name, &digits);
            }
        }
        let longest = exact.keys().chain(hex.keys()).map(Vec::len).max();
        let known = [(exact, false), (hex, true)].into_iter();
        Self {
            known: known
                .filter_map(|(patterns, any_case)| Known::of(patterns, any_case))
                .collect(),
            longest: longest.unwrap_or_default(),
        }
    }

    /// Whether there are no secrets to detect.
    pub fn is_idle(&self) -> bool {
        self.known.is_empty()
    }

    /// Starts a search in content that arrives in chunks.
    pub fn search(&self) -> Search<'_> {
        Search {
            detector: self,
            seen: BTreeSet::new(),
            views: [
                View::new(false, Reading::Plain),
                View::new(true, Reading::Plain),
                View::new(false, Reading::Escapes(Unescape::default())),
                View::new(true, Reading::Escapes(Unescape::default())),
                View::new(true, Reading::Joined),
            ],
        }
    }

    /// The secrets in the content, each once for every form.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn find(&self, from: &mut dyn Read) -> io::Result<BTreeSet<DetectedSecret>> {
        let mut search = self.search();
        if self.is_idle() {
            return Ok(search.end());
        }
        let mut chunk = vec![0; CHUNK];
        loop {
            match from.read(&mut chunk) {
                Ok(0) => return Ok(search.end()),
                Ok(length) => search.read(chunk.get(..length).unwrap_or_default()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn collect(&self, bytes: &[u8], seen: &mut BTreeSet<DetectedSecret>) {
        for Known {
            automaton,
            patterns,
        } in &self.known
        {
            let found = automaton.find_overlapping_iter(bytes);
            seen.extend(found.filter_map(|hit| patterns.get(hit.pattern().as_usize()).cloned()));
        }
    }
}

/// Secrets by pattern.
type Patterns = BTreeMap<Vec<u8>, DetectedSecret>;

/// Adds a pattern for a form of a variable's secret. If several variables share it, the first by name is
/// kept.
fn note(patterns: &mut Patterns, bytes: Vec<u8>, name: &str, form: &str) {
    if bytes.len() < MIN_SECRET_BYTES {
        return;
    }
    let seen = DetectedSecret {
        name: name.to_owned(),
        form: form.to_owned(),
    };
    let known = patterns.entry(bytes).or_insert_with(|| seen.clone());
    if seen.name < known.name {
        *known = seen;
    }
}

impl Known {
    fn of(patterns: Patterns, any_case: bool) -> Option<Self> {
        let automaton = AhoCorasick::builder()
            .kind(Some(AhoCorasickKind::ContiguousNFA))
            .ascii_case_insensitive(any_case)
            .build(patterns.keys())
            .ok()
            .filter(|_| !patterns.is_empty())?;
        Some(Self {
            automaton,
            patterns: patterns.into_values().collect(),
        })
    }
}

/// A non-ASCII text in the encodings whose bytes differ from UTF-8. ASCII characters in these encodings are
/// found by leaving out the NUL bytes.
fn encodings(text: &str) -> Vec<Vec<u8>> {
    let utf_16: Vec<u16> = text.encode_utf16().collect();
    let without_nul = |bytes: Vec<u8>| bytes.into_iter().filter(|byte| *byte != 0).collect();
    let mut all: Vec<Vec<u8>> = vec![
        without_nul(utf_16.iter().flat_map(|unit| unit.to_le_bytes()).collect()),
        without_nul(utf_16.iter().flat_map(|unit| unit.to_be_bytes()).collect()),
    ];
    let latin: Option<Vec<u8>> = text.chars().map(|c| u8::try_from(c).ok()).collect();
    all.extend(latin);
    all
}

/// A search in progress.
#[derive(Debug)]
pub struct Search<'d> {
    detector: &'d Detector,
    seen: BTreeSet<DetectedSecret>,
    views: [View; 5],
}

impl Search<'_> {
    /// Processes the next bytes.
    pub fn read(&mut self, bytes: &[u8]) {
        if !self.detector.is_idle() {
            self.take(bytes, false);
        }
    }

    /// Ends the search and returns the secrets found.
    pub fn end(mut self) -> BTreeSet<DetectedSecret> {
        self.take(b"", true);
        self.seen
    }

    fn take(&mut self, bytes: &[u8], is_end: bool) {
        let keep = self.detector.longest.saturating_sub(1);
        let [plain, ..] = &self.views;
        let before = plain.tail.clone();
        for view in &mut self.views {
            // While a view equals the text itself, it would find the same again.
            if !view.differs {
                if view.is_plain(bytes) {
                    continue;
                }
                view.differs = true;
                view.tail.clone_from(&before);
            }
            view.take(bytes, is_end);
            self.detector.collect(&view.tail, &mut self.seen);
            let cut = view.tail.len().saturating_sub(keep);
            view.tail.drain(..cut);
        }
    }
}

/// One way to read the content.
#[derive(Debug)]
struct View {
    /// Whether NUL bytes are ignored, as between ASCII characters in UTF-16 and UTF-32.
    without_nul: bool,
    reading: Reading,
    /// Whether the view differs from the bytes themselves.
    differs: bool,
    /// The last bytes, which may be the start of a secret.
    tail: Vec<u8>,
}

#[derive(Debug)]
enum Reading {
    Plain,
    /// Escape sequences are replaced by their characters.
    Escapes(Unescape),
    /// White space is removed, as needed for wrapped Base64.
    Joined,
}

impl View {
    fn new(without_nul: bool, reading: Reading) -> Self {
        let differs = !without_nul && matches!(reading, Reading::Plain);
        Self {
            without_nul,
            reading,
            differs,
            tail: Vec::new(),
        }
    }

    /// Whether this view leaves these bytes unchanged.
    fn is_plain(&self, bytes: &[u8]) -> bool {
        let has_nul = || memchr::memchr(0, bytes).is_some();
        match &self.reading {
            Reading::Plain => !has_nul(),
            Reading::Escapes(_) if self.without_nul => !has_nul(),
            Reading::Escapes(_) => !Unescape::concerns(bytes),
            Reading::Joined => !bytes.iter().any(u8::is_ascii_whitespace),
        }
    }

    fn take(&mut self, bytes: &[u8], is_end: bool) {
        let bytes: Cow<'_, [u8]> = if self.without_nul {
            bytes.iter().copied().filter(|byte| *byte != 0).collect()
        } else {
            Cow::Borrowed(bytes)
        };
        match &mut self.reading {
            Reading::Plain => self.tail.extend_from_slice(&bytes),
            Reading::Escapes(unescape) => unescape.push(&bytes, is_end, &mut self.tail),
            Reading::Joined => self
                .tail
                .extend(bytes.iter().filter(|byte| !byte.is_ascii_whitespace())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "t0ken-of-a-job/with+signs";

    fn names(text: &[u8]) -> Vec<String> {
        let detector = Detector::new([
            ("JOB_TOKEN", TOKEN),
            ("DB_PASSWORD", "postgres"),
            ("KEY", "short\na line of the key that is long\n"),
            ("LOGIN_PASSWORD", "pässwörd-ünd-möre"),
        ]);
        let found = detector.find(&mut &*text).unwrap();
        let mut search = detector.search();
        text.chunks(7).for_each(|chunk| search.read(chunk));
        assert_eq!(search.end(), found, "in pieces");
        let names: BTreeSet<String> = found.into_iter().map(|seen| seen.name).collect();
        names.into_iter().collect()
    }

    #[test]
    fn a_secret_is_found_in_every_form_and_anywhere() {
        for form in forms(TOKEN) {
            let text = ["x".repeat(100_000).as_bytes(), form.as_bytes(), b"\0\xff"].concat();
            assert_eq!(names(&text), ["JOB_TOKEN"], "{form}");
        }
        let text = format!("> a line of the key that is long\n{TOKEN}");
        assert_eq!(names(text.as_bytes()), ["JOB_TOKEN", "KEY"]);
    }

    /// A secret with some of its characters escaped.
    fn escaped(secret: &str, escape: impl Fn(char) -> String, every: usize) -> String {
        let chars = secret.chars().enumerate();
        let text = chars.map(|(at, c)| match at % every {
            0 => escape(c),
            _ => c.to_string(),
        });
        text.collect()
    }

    #[test]
    fn escapes_hide_nothing_however_many_characters_they_stand_for() {
        let kinds: [fn(char) -> String; 6] = [
            |c| format!("%{:02X}", u32::from(c)),
            |c| format!("\\u{:04x}", u32::from(c)),
            |c| format!("\\x{:02x}", u32::from(c)),
            |c| format!("\\u{{{:x}}}", u32::from(c)),
            |c| format!("\\{:03o}", u32::from(c)),
            |c| format!("&#{};", u32::from(c)),
        ];
        for escape in kinds {
            for every in 1..5 {
                let text = format!("a = \"{}\"", escaped(TOKEN, escape, every));
                assert_eq!(names(text.as_bytes()), ["JOB_TOKEN"], "{text}");
            }
        }
        let deep: fn(char) -> String = |c| format!("%25{:02x}", u32::from(c));
        let deeper = |c: char| deep(c).chars().map(kinds[1]).collect::<String>();
        for text in [escaped(TOKEN, deep, 1), escaped(TOKEN, deeper, 1)] {
            assert_eq!(names(text.as_bytes()), ["JOB_TOKEN"], "{text}");
        }
        let mixed = "%74\\u0030\\x6ben-of&#45;a-job\\/with+signs";
        assert_eq!(names(mixed.as_bytes()), ["JOB_TOKEN"]);
    }

    #[test]
    fn another_encoding_of_the_text_hides_nothing() {
        for secret in [TOKEN, "pässwörd-ünd-möre"] {
            let text = format!("key: {secret}\n");
            let utf_16: Vec<u16> = text.encode_utf16().collect();
            let utf_32: Vec<u32> = text.chars().map(u32::from).collect();
            let mut encoded: Vec<Vec<u8>> = vec![
                utf_16.iter().flat_map(|unit| unit.to_le_bytes()).collect(),
                utf_16.iter().flat_map(|unit| unit.to_be_bytes()).collect(),
                utf_32.iter().flat_map(|unit| unit.to_le_bytes()).collect(),
                utf_32.iter().flat_map(|unit| unit.to_be_bytes()).collect(),
            ];
            encoded.extend(
                text.chars()
                    .map(|c| u8::try_from(c).ok())
                    .collect::<Option<_>>(),
            );
            for bytes in encoded {
                assert_eq!(names(&bytes).len(), 1, "{bytes:?}");
            }
        }
        // Escape sequences in such a text.
        let text = escaped(TOKEN, |c| format!("\\u{:04x}", u32::from(c)), 3);
        let bytes: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(names(&bytes), ["JOB_TOKEN"]);
    }

    #[test]
    fn lines_that_are_wrapped_hide_nothing() {
        for form in forms(TOKEN) {
            let wrapped: Vec<u8> = form.bytes().flat_map(|byte| [byte, b'\r', b'\n']).collect();
            assert_eq!(names(&wrapped), ["JOB_TOKEN"], "{form}");
        }
    }

    #[test]
    fn what_is_short_or_cut_is_none() {
        assert_eq!(names(b"postgres short t0ken-of-a-job"), [""; 0]);
        assert_eq!(names(b"t0ken-of-a-job %2 \\u00 &# with+signs"), [""; 0]);
        assert!(Detector::new([("A_TOKEN", "short")]).is_idle());
        assert!(!format!("{:?}", Detector::new([("A", TOKEN)])).contains("t0ken"));
    }
}
