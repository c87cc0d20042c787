//! Writes all agent sessions of a run to one file that can be shared: `--record`.

use crate::domain::builtin::trajectory::Line;
use crate::secrets::redact::Redactor;
use anyhow::Context as _;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// Writes trajectories without secrets.
pub struct Recorder {
    path: PathBuf,
    file: File,
    redactor: Redactor,
    /// Whether a secret was removed from the current session.
    altered: bool,
    lost: Option<String>,
}

impl Recorder {
    /// Creates the file, readable only by its owner.
    ///
    /// # Errors
    /// When the path exists already, or the file cannot be created.
    pub fn create(path: &Path, redactor: Redactor) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        // `create_new` fails on a link of any kind, so nothing is written through one.
        let file = options
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)?;
        Ok(Self {
            path: path.to_owned(),
            file,
            redactor,
            altered: false,
            lost: None,
        })
    }

    /// Removes the file again, if the run did not start.
    pub fn discard(self) {
        // An empty file that stays does no harm.
        let _ = fs::remove_file(&self.path);
    }

    /// Writes a line. After a failure nothing more is written.
    pub fn write(&mut self, line: &Line) {
        if self.lost.is_some() {
            return;
        }
        if let Err(error) = self.try_write(line) {
            self.lost = Some(format!("{error:#}"));
        }
    }

    /// Why the recording is incomplete. Returned only once.
    pub fn lost(&mut self) -> Option<String> {
        let why = self.lost.as_mut().filter(|why| !why.is_empty())?;
        let why = std::mem::take(why);
        Some(format!(
            "the recording {} is incomplete: {why}",
            self.path.display()
        ))
    }

    fn try_write(&mut self, line: &Line) -> anyhow::Result<()> {
        if matches!(line, Line::Session(header) if header.slice.is_none()) {
            self.altered = false;
        }
        let mut value = serde_json::to_value(line)?;
        self.altered |= self.redactor.redact_json(&mut value);
        // The digest is of the original texts: nobody could verify it, and it would reveal something
        // about the secret.
        if let (true, Some(fields)) = (self.altered, value.as_object_mut()) {
            fields.shift_remove("request");
        }
        let mut text = serde_json::to_vec(&value)?;
        text.push(b'\n');
        self.file.write_all(&text).context("it cannot be written")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::builtin::session::{Observation, Response, Step};
    use crate::domain::builtin::trajectory::Request;
    use std::os::unix::fs::PermissionsExt as _;

    fn redactor() -> Redactor {
        Redactor::new(["hunter22"])
    }

    fn asked() -> Line {
        Line::Intent {
            intent: Step::AskModel(Default::default()),
            request: Some(Request::of(&[])),
        }
    }

    fn said(text: &str) -> Line {
        Line::Observed {
            observation: Observation::ModelResponded(Response {
                text: text.into(),
                ..Response::default()
            }),
        }
    }

    #[test]
    fn nobody_else_reads_it_and_nothing_is_written_over() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("r.jsonl");
        drop(Recorder::create(&path, redactor()).unwrap());
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let error = Recorder::create(&path, redactor()).err().unwrap();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
    }

    #[test]
    fn a_digest_goes_with_the_secret_that_it_was_made_of() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("r.jsonl");
        let mut recorder = Recorder::create(&path, redactor()).unwrap();
        for line in [asked(), said("it is \"hunter22\""), asked()] {
            recorder.write(&line);
        }
        assert_eq!(recorder.lost(), None);
        let text = fs::read_to_string(&path).unwrap();
        let lines: Vec<Line> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert!(matches!(
            &lines[0],
            Line::Intent {
                request: Some(_),
                ..
            }
        ));
        assert_eq!(lines[1], said("it is \"***\""));
        assert!(matches!(&lines[2], Line::Intent { request: None, .. }));
    }
}
