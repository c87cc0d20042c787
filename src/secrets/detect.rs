//! Known secrets found in what is about to be committed.

use crate::secrets::redact::{forms, secrets_apart};
use aho_corasick::AhoCorasick;
use std::collections::BTreeSet;
use std::fmt;
use std::io::{self, Read};

/// Shortest secret that is looked for, in bytes. Shorter values are words too often, such as the
/// password of a database that lives as long as a test.
pub const SHORTEST: usize = 12;

/// Finds secrets in the forms in which they are usually written, in time linear in what is read and
/// in memory that does not grow with it.
#[derive(Clone, Default)]
pub struct Detector {
    known: Option<AhoCorasick>,
    /// By pattern: what the secret is called, and the pattern.
    patterns: Vec<Seen>,
}

/// A secret that was found.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seen {
    /// The variable that holds it.
    pub name: String,
    /// What stands there.
    pub form: String,
}

impl fmt::Debug for Seen {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Seen({})", self.name)
    }
}

impl fmt::Debug for Detector {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Detector({} patterns)", self.patterns.len())
    }
}

impl Detector {
    /// Looks for these secrets, each with the name of the variable that holds it.
    pub fn new<'a>(secrets: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut patterns = BTreeSet::new();
        for (name, secret) in secrets {
            let parts = secrets_apart(secret.trim());
            for part in parts.filter(|part| part.len() >= SHORTEST) {
                patterns.extend(forms(part).into_iter().map(|form| Seen {
                    name: name.to_owned(),
                    form,
                }));
            }
        }
        patterns.retain(|seen: &Seen| seen.form.len() >= SHORTEST);
        let patterns: Vec<Seen> = patterns.into_iter().collect();
        let texts = patterns.iter().map(|seen| &seen.form);
        Self {
            known: (!patterns.is_empty())
                .then(|| AhoCorasick::new(texts).ok())
                .flatten(),
            patterns,
        }
    }

    /// Whether there is nothing to look for.
    pub fn is_idle(&self) -> bool {
        self.known.is_none()
    }

    /// The secrets in what is read, each once for every form.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn find(&self, from: &mut dyn Read) -> io::Result<BTreeSet<Seen>> {
        let mut seen = BTreeSet::new();
        let Some(known) = &self.known else {
            return Ok(seen);
        };
        for found in known.stream_find_iter(from) {
            seen.extend(self.patterns.get(found?.pattern().as_usize()).cloned());
        }
        Ok(seen)
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
        ]);
        let found = detector.find(&mut &*text).unwrap();
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

    #[test]
    fn what_is_short_or_cut_is_none() {
        assert_eq!(names(b"postgres short t0ken-of-a-job"), [""; 0]);
        assert!(Detector::new([("A_TOKEN", "short")]).is_idle());
        assert!(!format!("{:?}", Detector::new([("A", TOKEN)])).contains("t0ken"));
    }
}
