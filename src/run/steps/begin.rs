//! The beginning of a task, new or taken up again.

use super::{Journal, Performer, TaskRun};
use crate::domain::agent::Usage;
use crate::domain::attempt::{Observation, Record};
use crate::domain::event::EventKind;
use crate::domain::plan::Task;
use crate::run::layout::RunFile;
use crate::settings::TaskConfig;
use serde::{Deserialize, Serialize};

/// An agent's session that a further turn can continue.
#[derive(Debug, Serialize, Deserialize)]
struct Session {
    id: String,
    /// What it had used up at the end of the last turn, where the agent tells that and not the turn's.
    used: Option<Usage>,
}

/// What a task begins with.
#[derive(Debug, Clone)]
pub struct TaskStart {
    /// Its settings.
    pub config: TaskConfig,
    /// Its history, when it was begun by an earlier process of this run.
    pub earlier: Vec<Record>,
    /// The commits that the agent made in it under an earlier process of this run.
    pub agent_commits: Vec<String>,
}

impl Performer<'_> {
    /// Begins a task, or takes it up where it stopped.
    ///
    /// # Errors
    /// When the run's own state cannot be read or written.
    pub fn begin_task<'t>(
        &mut self,
        task: &'t Task,
        start: &TaskStart,
    ) -> anyhow::Result<TaskRun<'t>> {
        let journal = Journal::new(task.id.as_str(), self.run_dir.history()?, &start.earlier);
        let mut run = TaskRun {
            task,
            config: start.config.clone(),
            policy: self.policy(&start.config),
            journal,
            final_message: None,
            session: None,
            token: None,
            failed_on: None,
            agent_commits: Vec::new(),
            began_ms: self.emit.elapsed_ms(),
        };
        self.emit.at(Some(task.id.as_str()), None, None);
        if run.journal.state.task_start.is_none() {
            self.forget_words()?;
            let (_, start) = self.last_look();
            self.forget_other_trees(&start);
            let elapsed_ms = self.emit.elapsed_ms();
            run.journal
                .observe(Observation::TaskStarted { start, elapsed_ms })?;
            self.emit.emit(EventKind::TaskStarted {
                title: task.title.clone(),
            });
        } else {
            self.take_up(&mut run, start)?;
        }
        Ok(run)
    }

    /// Finds out how far the dead process came with the task.
    fn take_up(&mut self, run: &mut TaskRun<'_>, start: &TaskStart) -> anyhow::Result<()> {
        self.recover_commit(run)?;
        if run.journal.state.key.is_none() {
            // It was only just begun, or it failed and is taken again with fresh counts.
            self.forget_words()?;
            self.emit.emit(EventKind::TaskStarted {
                title: run.task.title.clone(),
            });
        } else {
            run.final_message = self.word(RunFile::FinalMessage);
            run.agent_commits.clone_from(&start.agent_commits);
            let session = self.word(RunFile::Session);
            let session = session.and_then(|text| serde_json::from_str::<Session>(&text).ok());
            if let Some(Session { id, used }) = session {
                self.session_usage
                    .extend(used.map(|used| (id.clone(), used)));
                run.session = Some(id);
            }
        }
        run.journal.observe(Observation::Resumed)
    }

    /// What an agent said in an earlier task is none of the next one's.
    fn forget_words(&self) -> anyhow::Result<()> {
        for file in [RunFile::FinalMessage, RunFile::Session] {
            self.keep_word(file, "")?;
        }
        Ok(())
    }

    /// What is there already is not written again.
    fn keep_word(&self, file: RunFile<'_>, text: &str) -> anyhow::Result<()> {
        if self.word(file).unwrap_or_default() != text {
            self.run_dir.write(file, text.as_bytes())?;
        }
        Ok(())
    }

    fn word(&self, file: RunFile<'_>) -> Option<String> {
        let text = String::from_utf8(self.run_dir.read(file)?).ok()?;
        (!text.is_empty()).then_some(text)
    }

    /// Keeps what the agent said last, for the report and for a process that takes the run up, and
    /// its session.
    pub(super) fn keep_final_message(&mut self, run: &TaskRun<'_>, number: u32) {
        let text = run.final_message.clone().unwrap_or_default();
        let kept = self
            .run_dir
            .write(RunFile::TurnMessage(number), text.as_bytes())
            .and_then(|_| self.keep_word(RunFile::FinalMessage, &text));
        if let Err(error) = kept {
            self.warn(format!("{error:#}"));
        }
        self.keep_session(run);
    }

    /// Keeps which session goes on and what it has used up, for a process that takes the run up.
    pub(super) fn keep_session(&mut self, run: &TaskRun<'_>) {
        let session = run.session.clone().map(|id| Session {
            used: self.session_usage.get(&id).copied(),
            id,
        });
        let session = session
            .and_then(|session| serde_json::to_string(&session).ok())
            .unwrap_or_default();
        if let Err(error) = self.keep_word(RunFile::Session, &session) {
            self.warn(format!("{error:#}"));
        }
    }
}
