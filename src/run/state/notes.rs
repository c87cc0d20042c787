//! Notes for later tasks: read from final messages, saved in the run directory, loaded from earlier
//! runs.

use crate::context::Context;
use crate::domain::notes::{Note, Notebook, notes_of};
use crate::github::request::RunRequest;
use crate::run::state::directory::RunDir;
use crate::run::state::layout::RunFile;
use crate::run::state::past_runs::past_runs;
use crate::run::state::plan_state::PlanState;
use std::fs;
use std::path::Path;

/// The notes that the tasks of a run get.
#[derive(Debug)]
pub struct Notes {
    book: Notebook,
    run_id: String,
}

impl Notes {
    /// Loads the notes of the run directory.
    pub fn of(run_dir: &RunDir, run_id: &str, plan: &PlanState) -> Self {
        let mut key = plan_key(plan);
        // The author of a fork's pull request has a say in its notes, so they stay with it.
        let request = run_dir.read_json::<RunRequest>(RunFile::Request);
        if let Some(request) = request.filter(|request| request.context.report_only) {
            key = format!("pull request {:?} of a fork: {key}", request.number);
        }
        let kept = run_dir.read(RunFile::Notes);
        let book = kept.and_then(|bytes| Notebook::read(&bytes, &key));
        Self {
            book: book.unwrap_or_else(|| Notebook::of(key)),
            run_id: run_id.to_owned(),
        }
    }

    /// Adds the notes of earlier runs of the same plan: from the newest run on this machine that has
    /// any, and those that were saved elsewhere.
    ///
    /// # Errors
    /// When they cannot be saved.
    pub fn load(
        &mut self,
        context: &Context,
        work_tree: &Path,
        run_dir: &RunDir,
        elsewhere: Option<Vec<u8>>,
    ) -> anyhow::Result<()> {
        let key = self.book.plan.clone();
        let file = RunFile::Notes.path();
        let here = past_runs(context, work_tree).into_iter().find_map(|run| {
            let bytes = fs::read(run.dir.join(&*file)).ok()?;
            Notebook::read(&bytes, &key)
        });
        let elsewhere = elsewhere.and_then(|bytes| Notebook::read(&bytes, &key));
        for book in [here, elsewhere].into_iter().flatten() {
            self.book.merge(book);
        }
        if self.book.is_empty() {
            Ok(())
        } else {
            run_dir.write_json(RunFile::Notes, &self.book)
        }
    }

    /// Adds the notes in a final message and returns their texts, and whether they could be saved. Secrets are
    /// redacted.
    pub fn take(
        &mut self,
        run_dir: &RunDir,
        task: &str,
        message: &str,
    ) -> (Vec<String>, anyhow::Result<()>) {
        let (redactor, mut texts) = (run_dir.redactor(), notes_of(message));
        let at = jiff::Timestamp::now()
            .strftime("%Y-%m-%dT%H:%M:%SZ")
            .to_string();
        for text in &mut texts {
            *text = redactor.redact(text).into_owned();
            let (task, at, text) = (task.to_owned(), at.clone(), text.clone());
            self.book.add(&self.run_id, Note { task, at, text });
        }
        if texts.is_empty() {
            return (texts, Ok(()));
        }
        (texts, run_dir.write_json(RunFile::Notes, &self.book))
    }

    /// Whether this run has added notes.
    pub fn has_own(&self) -> bool {
        self.book.has_some_of(&self.run_id)
    }

    /// The notes as the agent of a task reads them.
    pub fn shown(&self, task: &str) -> String {
        self.book.shown(&self.run_id, task)
    }
}

/// The key that identifies the plan: the path of its file, or its title without a file.
fn plan_key(plan: &PlanState) -> String {
    match (plan.in_tree(), &plan.file) {
        (Some(path), _) => String::from_utf8_lossy(path).into_owned(),
        (None, Some(file)) => file.path.display().to_string(),
        (None, None) => plan.plan.title.clone(),
    }
}
