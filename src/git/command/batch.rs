//! A `git cat-file --batch` that answers one question after another.

use crate::git::command::limits::{Stop, limit_memory};
use crate::git::command::pipes::{Bounds, Drained, Pipes};
use crate::git::command::{Call, STDERR_KEPT, TIMEOUT, cut_off, kill_group};
use crate::git::error::{GitError, Result};
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Stdio};
use std::time::Instant;

const COMMAND: &str = "cat-file";

/// The process. It ends when this value is dropped: a child that stays would look like one that an agent left.
pub(crate) struct Batch {
    child: Child,
    questions: ChildStdin,
    answers: Pipes,
    stderr: Vec<u8>,
    watched: Vec<PathBuf>,
    stop: Stop,
}

impl Call<'_> {
    /// Starts the process in the place of this command, which has no arguments.
    pub(crate) fn batch(self) -> Result<Batch> {
        let call = self.args([COMMAND, "--batch=%(objecttype) %(objectsize)"]);
        if call.git.stop.is_over() {
            return Err(cut_off(COMMAND, Drained::Cancelled, TIMEOUT));
        }
        let (mut child, _) = call.spawn(Stdio::piped())?;
        limit_memory(&child);
        let questions = child.stdin.take().ok_or_else(|| ended(&mut child, ""))?;
        Ok(Batch {
            answers: Pipes::of(&mut child),
            child,
            questions,
            stderr: Vec::new(),
            watched: call.watched,
            stop: call.git.stop.clone(),
        })
    }
}

impl Batch {
    /// Asks for an object, and passes the answer on until `takes_more` returns `false`, which it must at the end of
    /// the answer. After an error, or if the answer was not read to its end, nothing else can be asked.
    pub(crate) fn ask(
        &mut self,
        id: &str,
        takes_more: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Result<()> {
        // A process that has ended does not read: its output says why.
        let _ = writeln!(self.questions, "{id}");
        let bounds = Bounds {
            deadline: Instant::now() + TIMEOUT,
            watched: &self.watched,
            cancel: None,
            stop: &self.stop,
            stderr_kept: STDERR_KEPT,
        };
        let stderr = &mut self.stderr;
        match self.answers.drain(&bounds, takes_more, stderr) {
            Drained::Flooded => Ok(()),
            Drained::Whole => {
                let said = String::from_utf8_lossy(stderr).trim().to_owned();
                Err(ended(&mut self.child, &said))
            }
            other => Err(cut_off(COMMAND, other, TIMEOUT)),
        }
    }
}

fn ended(child: &mut Child, said: &str) -> GitError {
    GitError::Failed {
        command: COMMAND.to_owned(),
        status: child.wait().ok().and_then(|status| status.code()),
        stderr: said.to_owned(),
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        kill_group(&mut self.child);
        let _ = self.child.wait();
    }
}
