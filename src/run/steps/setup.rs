//! What runs once before the first turn.

use super::Performer;
use crate::domain::outcome::Outcome;
use crate::error::{Error, Result};
use crate::process::{CommandSpec, Exit, HeadTail, Input, Limits, clean_text, run_keeping};
use crate::run::layout::RunFile;
use std::time::Duration;

/// The longest that a setup command may run.
const SETUP_TIMEOUT: Duration = Duration::from_secs(30 * 60);

/// The time that what setup commands left running gets between SIGTERM and SIGKILL, and what is left
/// of it when the run has to end.
const SERVICE_GRACE: Duration = Duration::from_secs(5);
const SERVICE_GRACE_CANCELLED: Duration = Duration::from_millis(500);

/// How much of the end of a setup command's output an error shows.
const SHOWN: usize = 4 << 10;

impl Performer<'_> {
    /// Runs the setup commands, unless there is nothing to do or an earlier process of the run did.
    /// Files that they create are no work of the agent's. What they leave running lives until
    /// [`Performer::end_services`].
    ///
    /// # Errors
    /// When a command fails: nothing was begun then.
    pub async fn setup(&mut self, has_work: bool) -> Result<Option<Outcome>> {
        if !has_work || !self.has_setup_to_do() {
            return Ok(None);
        }
        let (before, _) = self.last_look();
        self.note_untracked(before.as_deref())?;
        let env = self.scrubbed(&[]);
        for command in self.config.setup.clone() {
            let spec = CommandSpec {
                program: "sh".into(),
                args: vec!["-c".into(), command.clone().into()],
                cwd: self.repo.real().work_tree().to_path_buf(),
                env: env.clone(),
                stdin: Input::Null,
                limits: Limits {
                    timeout: Some(SETUP_TIMEOUT),
                    ..Limits::default()
                },
            };
            let mut kept = HeadTail::new(0, SHOWN);
            let (ended, service) =
                run_keeping(&spec, &self.cancel, &mut |_, chunk: &[u8]| kept.push(chunk)).await;
            self.services.extend(service);
            match ended.exit {
                Exit::Code(0) => {}
                Exit::Cancelled(reason) => {
                    return Ok(Some(match super::interruption(reason) {
                        crate::domain::attempt::Interruption::Cancel { signal } => {
                            Outcome::Cancelled { signal }
                        }
                        crate::domain::attempt::Interruption::Deadline => Outcome::Deadline,
                    }));
                }
                exit => {
                    let said = clean_text(&kept.into_parts().1);
                    let message = format!(
                        "the setup command `{command}` ended with {exit}:\n{}",
                        said.trim()
                    );
                    return Err(Error::environment(message)
                        .hint("no agent was started; mend the command or remove it from `setup`"));
                }
            }
        }
        self.settle(before.as_deref());
        // Services end with this process: whoever takes the run up has to start them again.
        if self.services.is_empty() {
            self.run_dir.write(RunFile::SetupDone, b"")?;
        }
        Ok(None)
    }

    /// Ends what the setup commands left running for the run.
    pub async fn end_services(&mut self) {
        let grace = match self.cancel.reason() {
            Some(_) => SERVICE_GRACE_CANCELLED,
            None => SERVICE_GRACE,
        };
        let ends = std::mem::take(&mut self.services)
            .into_iter()
            .map(|service| tokio::spawn(service.end(grace)));
        for end in ends.collect::<Vec<_>>() {
            let _ = end.await;
        }
    }

    /// Whether there are setup commands that have not run to their end.
    pub(super) fn has_setup_to_do(&self) -> bool {
        !self.config.setup.is_empty() && !self.run_dir.has(RunFile::SetupDone)
    }
}
