//! Finds known secrets in content that is about to be committed.

use crate::secrets::redact::{automaton, forms, secrets_apart};
use crate::secrets::views::View;
use aho_corasick::{AhoCorasick, MatchKind};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Minimum length in bytes of a detected secret. Shorter values are often ordinary words, such as the
/// password of a test database.
pub const MIN_SECRET_BYTES: usize = 12;

/// How many bytes are searched at a time.
const CHUNK: usize = 256 * 1024;

/// The most bytes of an escaped text for one byte of a secret.
const MAX_ESCAPE_BYTES: usize = 14;

/// Finds secrets in clear text and in the usual encodings, whatever the character encoding and the escapes of
/// the text. The time is linear in the length of the text, and the memory does not grow with it. A reversed,
/// compressed or encrypted secret is not found.
#[derive(Clone, Default)]
pub struct Detector {
    known: Option<AhoCorasick>,
    /// For each pattern, the variable and the form of the secret.
    patterns: Vec<DetectedSecret>,
    /// Length in bytes of the longest pattern.
    longest: usize,
}

/// A secret that was found.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct DetectedSecret {
    /// The variable with the secret.
    pub name: String,
    /// The matched form, after unescaping.
    pub form: String,
}

impl fmt::Debug for Detector {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Detector({} patterns)", self.patterns.len())
    }
}

impl Detector {
    /// Creates a detector for these secrets, each with the name of its variable. If several variables share one, the
    /// first by name is told.
    pub fn new<'a>(secrets: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut patterns: BTreeMap<Vec<u8>, DetectedSecret> = BTreeMap::new();
        for (name, secret) in secrets {
            let parts = secrets_apart(secret.trim()).filter(|part| part.len() >= MIN_SECRET_BYTES);
            for form in parts.flat_map(forms) {
                let seen = DetectedSecret {
                    name: name.to_owned(),
                    form: form.clone(),
                };
                for bytes in encodings(&form) {
                    let all = readings(bytes).into_iter();
                    for pattern in all.filter(|it| it.len() >= MIN_SECRET_BYTES) {
                        let known = patterns.entry(pattern).or_insert_with(|| seen.clone());
                        if seen.name < known.name {
                            known.clone_from(&seen);
                        }
                    }
                }
            }
        }
        let longest = patterns.keys().map(Vec::len).max();
        Self {
            known: automaton(patterns.keys(), MatchKind::Standard),
            patterns: patterns.into_values().collect(),
            longest: longest.unwrap_or_default(),
        }
    }

    /// Whether there are no secrets to detect.
    pub fn is_idle(&self) -> bool {
        self.known.is_none()
    }

    /// Starts a search in content that arrives in chunks.
    pub fn search(&self) -> Search<'_> {
        Search {
            detector: self,
            seen: BTreeSet::new(),
            bytes: Vec::new(),
        }
    }

    /// The secrets in the content, each once for every form.
    pub fn find(&self, bytes: &[u8]) -> BTreeSet<DetectedSecret> {
        let mut search = self.search();
        search.read(bytes);
        search.end()
    }
}

/// The ways to read a text: as it is, without white space, as needed for wrapped Base64, and as its views.
fn readings(bytes: Vec<u8>) -> Vec<Vec<u8>> {
    let is_blank = |byte: &u8| *byte == 0 || byte.is_ascii_whitespace();
    let mut joined = bytes.clone();
    joined.retain(|byte| !is_blank(byte));
    let views = View::all(&bytes, false).into_iter().map(|view| view.bytes);
    views.chain([joined, bytes]).collect()
}

/// A text in the encodings whose bytes differ from UTF-8 even if NUL bytes are left out, as between the ASCII
/// characters of UTF-16 and UTF-32.
fn encodings(text: &str) -> Vec<Vec<u8>> {
    let mut all = vec![text.as_bytes().to_vec()];
    if !text.is_ascii() {
        let utf_16: Vec<u16> = text.encode_utf16().collect();
        all.push(utf_16.iter().flat_map(|unit| unit.to_le_bytes()).collect());
        all.push(utf_16.iter().flat_map(|unit| unit.to_be_bytes()).collect());
        let latin = text.chars().map(|c| u8::try_from(c).ok());
        all.extend(latin.collect::<Option<Vec<u8>>>());
    }
    all
}

/// A search in progress.
pub struct Search<'d> {
    detector: &'d Detector,
    seen: BTreeSet<DetectedSecret>,
    /// The last bytes, which may be the start of a secret.
    bytes: Vec<u8>,
}

impl Search<'_> {
    /// Processes the next bytes.
    pub fn read(&mut self, bytes: &[u8]) {
        let keep = self.detector.longest * MAX_ESCAPE_BYTES;
        for chunk in bytes.chunks(CHUNK) {
            self.bytes.extend_from_slice(chunk);
            if self.bytes.len() > keep + CHUNK {
                self.collect();
                self.bytes.drain(..self.bytes.len() - keep);
            }
        }
    }

    /// Ends the search and returns the secrets found.
    pub fn end(mut self) -> BTreeSet<DetectedSecret> {
        self.collect();
        self.seen
    }

    fn collect(&mut self) {
        let Some(known) = &self.detector.known else {
            return;
        };
        for bytes in readings(self.bytes.clone()) {
            let hits = known.find_overlapping_iter(&bytes);
            let patterns = &self.detector.patterns;
            let seen = hits.filter_map(|hit| patterns.get(hit.pattern().as_usize()).cloned());
            self.seen.extend(seen);
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
        let found = detector.find(text);
        let mut search = detector.search();
        text.chunks(7).for_each(|chunk| search.read(chunk));
        assert!(search.end() == found, "in pieces");
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
