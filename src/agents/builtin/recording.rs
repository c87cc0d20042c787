//! A recording that replaces the model: its responses are returned in order, and their tool calls are carried
//! out.

use crate::domain::builtin::context::Budget;
use crate::domain::builtin::model_error::ModelError;
use crate::domain::builtin::session::Response;
use crate::domain::builtin::trajectory::Recording;
use crate::domain::text::count;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The responses of a recording.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelRecording {
    path: PathBuf,
    model: String,
    budget: Option<Budget>,
    sessions: Vec<Vec<Response>>,
}

impl ModelRecording {
    /// Takes the responses from the recording in this file.
    pub fn new(path: PathBuf, recording: &Recording) -> Self {
        let first = recording.sessions.first().map(|session| &session.header);
        let sessions = recording.sessions.iter();
        Self {
            path,
            model: first.map_or_else(String::new, |it| it.model.clone()),
            budget: first.map(|it| it.budget),
            sessions: sessions
                .map(|session| session.responses().into_iter().cloned().collect())
                .collect(),
        }
    }

    /// A description for people: the file, and the number of responses.
    pub fn describe(&self) -> String {
        let responses = self.sessions.iter().map(Vec::len).sum::<usize>();
        format!(
            "the responses in {}: {}, {}",
            self.path.display(),
            count(self.sessions.len() as u64, "session"),
            count(responses as u64, "response")
        )
    }

    /// The name of the recorded model.
    pub(super) fn model(&self) -> &str {
        &self.model
    }

    /// The budget of the recorded requests.
    pub(super) fn budget(&self) -> Option<Budget> {
        self.budget
    }
}

/// Plays one session of a recording for one turn.
#[derive(Debug)]
pub struct Player {
    recording: Arc<ModelRecording>,
    /// The number of the turn in the run, from 1. It selects the session with this number.
    turn: u32,
    next: usize,
    pace: Duration,
}

impl Player {
    pub(super) fn new(recording: Arc<ModelRecording>, turn: u32, pace: Duration) -> Self {
        Self {
            recording,
            turn,
            next: 0,
            pace,
        }
    }

    /// The next response.
    ///
    /// # Errors
    /// When there is none.
    pub(super) async fn ask(&mut self) -> Result<Response, ModelError> {
        let index = usize::try_from(self.turn)
            .unwrap_or(usize::MAX)
            .checked_sub(1);
        let session = index.and_then(|index| self.recording.sessions.get(index));
        let response = session.and_then(|session| session.get(self.next));
        let Some(response) = response.cloned() else {
            return Err(ModelError::not_recorded(&self.nothing_left(session)));
        };
        self.next += 1;
        tokio::time::sleep(self.pace).await;
        Ok(response)
    }

    fn nothing_left(&self, session: Option<&Vec<Response>>) -> String {
        let (path, turn) = (self.recording.path.display(), self.turn);
        match session {
            Some(session) => format!(
                "the recording {path} has no further response: its session {turn} has {}, and one more was requested",
                count(session.len() as u64, "response")
            ),
            None => format!(
                "the recording {path} has no further session: it has {}, and turn {turn} of the run started",
                count(self.recording.sessions.len() as u64, "session")
            ),
        }
    }
}
