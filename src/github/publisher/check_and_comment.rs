//! What a run has on GitHub: the check run on the head that the request was for, the final one on the pushed
//! head, the comment and the reactions.

use super::check_fields::{annotated, completed, plain_output, replacement, with_outcome};
use crate::domain::outcome::{Reason, RunStatus, TaskEnd};
use crate::domain::summary::{RunSummary, TaskSummary};
use crate::domain::trigger::marker::State;
use crate::domain::trigger::run_name::RunName;
use crate::github::api::{
    Annotation, CheckRun, CheckStatus, CheckUpdate, Comment, Conclusion, Error, Identity,
    NewCheckRun, Reaction, Repo,
};
use crate::github::request::{Page, RunRequest};
use crate::report::check_annotation::check_annotations;
use crate::report::markdown::{self, ReportContext};
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// What a run has on GitHub, stored for a process that resumes it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Known {
    /// The check run on the head that the request was for.
    pub check: Option<Page>,
    /// The check run on the pushed head.
    pub final_check: Option<Page>,
    /// The comment.
    pub comment: Option<Page>,
    /// Whether the 👀 reaction was added.
    pub taken: bool,
}

/// Properties of the end of a run.
pub struct End {
    /// The workflows that were started for the pushed commits.
    pub dispatched: Vec<String>,
    /// Whether GitHub starts no workflow for the push, because the job's token made it.
    pub ci_will_not_start: bool,
    /// The new head of the pull request, if the run has pushed one.
    pub pushed: Option<String>,
    /// The time by which publishing must have stopped.
    pub until: Instant,
    /// Whether that is so soon that there is no time for pauses between the writes.
    pub hurried: bool,
}

/// The final state of what was published.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Published {
    /// The URL of the check run.
    pub check_url: Option<String>,
    /// The URL of the comment.
    pub comment_url: Option<String>,
    /// Whether everything was published.
    pub complete: bool,
    /// Whether the check run has the annotations, so that the log need not contain them.
    pub annotated: bool,
    /// Messages for the user about problems.
    pub incidents: Vec<String>,
}

/// What to publish, what exists already, and the problems, each reported once.
pub struct CheckAndComment {
    /// The request of the run: where it is reported, and the context of the texts.
    request: RunRequest,
    /// The key of the run in its check runs.
    external_id: String,
    known: Known,
    resumed: bool,
    keep: Box<dyn FnMut(&Known) + Send>,
    no_checks: bool,
    no_comment: bool,
    incidents: Vec<String>,
    incomplete: bool,
    annotated: bool,
    /// Whether there may be more than `known` contains: a request was abandoned before its response.
    unsure: bool,
    /// Whether a completed check run was reopened.
    reopened: bool,
    identity: Option<Identity>,
}

impl CheckAndComment {
    /// What to publish. If the run is `resumed`, an earlier process may have created more than `known` contains. `keep`
    /// is called with every change of it.
    pub fn new(
        request: RunRequest,
        external_id: String,
        known: Known,
        resumed: bool,
        keep: impl FnMut(&Known) + Send + 'static,
    ) -> Self {
        Self {
            request,
            external_id,
            known,
            resumed,
            keep: Box::new(keep),
            no_checks: false,
            no_comment: false,
            incidents: Vec::new(),
            incomplete: false,
            annotated: false,
            unsure: resumed,
            reopened: false,
            identity: None,
        }
    }

    fn note_incident(&mut self, what: &str, error: &Error) {
        self.incomplete = true;
        let needed = match what {
            _ if !error.is_forbidden() => "",
            "no reaction" | "no comment" => {
                "; the job needs `issues: write`, or on a pull request `pull-requests: write`"
            }
            "no check run" => "; the job needs `checks: write`",
            _ => "",
        };
        let line = format!("{what}: {error}{needed}");
        if !self.incidents.contains(&line) {
            self.incidents.push(line);
        }
    }

    /// Publishes the present state of the run. The comment is updated only if `comment`.
    pub(crate) async fn show(&mut self, repo: &Repo, summary: &RunSummary, comment: bool) {
        if self.unsure {
            self.find_created(repo).await;
        }
        self.unsure = true;
        if !self.known.taken {
            self.react(repo, Reaction::Eyes).await;
            self.known.taken = true;
            (self.keep)(&self.known);
        }
        let mut state = self.request.state.clone();
        let has_check = !self.no_checks && self.request.context.head.is_some();
        match summary.status {
            None if has_check => self.show_check(repo, summary).await,
            None => {}
            Some(status) => {
                state = state.end(status);
                if has_check {
                    self.put_check(repo, self.concluded(summary)).await;
                }
            }
        }
        if comment {
            self.show_comment(repo, summary, &state).await;
        }
        self.unsure = false;
    }

    /// Publishes the end of the run, and leaves no check run open.
    pub(crate) async fn end(&mut self, repo: &Repo, summary: &RunSummary, end: &End) {
        let context = &mut self.request.context;
        context.dispatched.clone_from(&end.dispatched);
        context.ci_will_not_start = end.ci_will_not_start;
        // Earlier failures are repaired now, unless they are permanent.
        self.incomplete = self.no_checks || self.no_comment;
        if self.unsure {
            self.find_created(repo).await;
        }
        self.end_checks(repo, summary, end).await;
        let status = summary.status.unwrap_or(RunStatus::Environment);
        let mut state = self.request.state.clone().end(status);
        state.asks |= summary.reason == Some(Reason::NeedsAnswer);
        if end.pushed.is_some() {
            // Tasks that somebody else had done before do not count as Sprag's.
            let before = &self.request.state;
            let is_own = |task: &&TaskSummary| task.reason.is_some() || before.is_done(&task.title);
            let tasks = summary.tasks.iter();
            let done = tasks.filter(|task| task.status == TaskEnd::Done);
            state.note_done(done.filter(is_own).map(|task| task.title.as_str()));
        }
        let known = &self.known;
        let last_check = known.final_check.as_ref().or(known.check.as_ref());
        state.check_run_id = last_check.map(|check| check.id);
        self.show_comment(repo, summary, &state).await;
        let reaction = if status.is_complete() {
            Reaction::Rocket
        } else {
            Reaction::Confused
        };
        self.react(repo, reaction).await;
    }

    /// The final state of what was published.
    pub(crate) fn published(self, repo: &Repo) -> Published {
        let context = self.context();
        let mut incidents = self.incidents;
        let mut of_calls = repo.client.take_incidents();
        of_calls.retain(|call| !incidents.iter().any(|told| told.contains(call)));
        incidents.extend(of_calls);
        Published {
            check_url: context.check_url,
            comment_url: context.comment_url,
            complete: !self.incomplete,
            annotated: self.annotated,
            incidents,
        }
    }

    /// The context of the texts, including the URL of the check run with the full report, once it exists.
    fn context(&self) -> ReportContext {
        let url = |page: &Option<Page>| page.as_ref().map(|page| page.url.clone());
        let known = &self.known;
        ReportContext {
            check_url: url(&known.final_check).or_else(|| url(&known.check)),
            comment_url: url(&known.comment),
            ..self.request.context.clone()
        }
    }

    fn name(&self) -> &RunName {
        &self.request.context.place.name
    }

    async fn react(&mut self, repo: &Repo, reaction: Reaction) {
        if let Some(target) = self.request.react_to
            && let Err(error) = repo.react(target, reaction).await
        {
            self.note_incident("no reaction", &error);
        }
    }

    async fn show_check(&mut self, repo: &Repo, summary: &RunSummary) {
        let is_closed = self.resumed && !self.reopened || self.known.check.is_none();
        let text = markdown::check_run(summary, &self.context());
        let state = CheckUpdate {
            status: is_closed.then_some(CheckStatus::InProgress),
            output: Some(plain_output(&text)),
            ..CheckUpdate::default()
        };
        self.reopened |= self.put_check(repo, state).await.is_some();
    }

    /// Updates or creates the check run of the head that the request was for.
    async fn put_check(&mut self, repo: &Repo, state: CheckUpdate) -> Option<CheckRun> {
        let known = self.known.check.as_ref().map(|page| page.id);
        let head = self.request.context.head.clone().unwrap_or_default();
        match self.put(repo, known, head, state).await {
            Ok(check) => {
                self.record(|known| &mut known.check, check.id, &check.html_url);
                Some(check)
            }
            Err(error) => {
                // A token without the permission to write checks is expected: annotations and summary go to the log.
                self.no_checks |= error.is_permission() || error.is_not_found();
                self.note_incident("no check run", &error);
                None
            }
        }
    }

    async fn put(
        &self,
        repo: &Repo,
        known: Option<u64>,
        head_sha: String,
        state: CheckUpdate,
    ) -> Result<CheckRun, Error> {
        if let Some(id) = known {
            return repo.update_check_run(id, &state).await;
        }
        let details_url = self.request.context.place.run_url();
        let new = NewCheckRun {
            name: self.name().as_str().to_owned(),
            head_sha,
            external_id: self.external_id.clone(),
            state: CheckUpdate {
                details_url,
                ..state
            },
        };
        repo.create_check_run(&new).await
    }

    async fn show_comment(&mut self, repo: &Repo, summary: &RunSummary, state: &State) {
        let is_wanted = self.request.delivery.comment && !self.no_comment;
        let Some(number) = self.request.number.filter(|_| is_wanted) else {
            return;
        };
        let context = ReportContext {
            state_line: Some(state.encode(self.name())),
            ..self.context()
        };
        let body = markdown::comment(summary, &context);
        let shown = match self.known.comment.as_ref().map(|page| page.id) {
            Some(id) => match repo.update_comment(id, &body).await {
                // Somebody has deleted the comment. Only the end of the run is worth another one.
                Err(error) if error.is_not_found() && summary.status.is_none() => return,
                Err(error) if error.is_not_found() => self.new_comment(repo, number, &body).await,
                updated => updated,
            },
            None => self.new_comment(repo, number, &body).await,
        };
        match shown {
            Ok(comment) => {
                self.record(|known| &mut known.comment, comment.id, &comment.html_url);
            }
            Err(error) => {
                self.no_comment |= error.is_permission();
                self.note_incident("no comment", &error);
            }
        }
    }

    async fn new_comment(
        &mut self,
        repo: &Repo,
        number: u64,
        body: &str,
    ) -> Result<Comment, Error> {
        let identity = self.identity(repo).await?;
        let marker = self.name().marker();
        if let Some(comment) = repo.own_comment(number, &marker, &identity).await? {
            return repo.update_comment(comment.id, body).await;
        }
        let made = repo
            .create_comment(number, body, &marker, &identity)
            .await?;
        // Two runs that start at once do not see each other's comment. The first comment stays.
        match repo.own_comment(number, &marker, &identity).await {
            Ok(Some(first)) if first.id != made.id => {
                repo.delete_comment(made.id).await?;
                repo.update_comment(first.id, body).await
            }
            _ => Ok(made),
        }
    }

    async fn identity(&mut self, repo: &Repo) -> Result<Identity, Error> {
        if self.identity.is_none() {
            self.identity = Some(repo.identity().await?);
        }
        Ok(self.identity.clone().unwrap_or_default())
    }

    fn record(&mut self, of: fn(&mut Known) -> &mut Option<Page>, id: u64, url: &str) {
        let url = url.to_owned();
        let page = Some(Page { id, url });
        let known = of(&mut self.known);
        if *known != page {
            *known = page;
            (self.keep)(&self.known);
        }
    }

    /// Looks for what abandoned requests created: a second check run would stay open.
    async fn find_created(&mut self, repo: &Repo) {
        if let (None, Some(head)) = (&self.known.check, &self.request.context.head)
            && let Some(check) = self.own_check(repo, head).await
        {
            self.record(|known| &mut known.check, check.id, &check.html_url);
        }
        if let (None, Some(number)) = (&self.known.comment, self.request.number)
            && let Ok(identity) = self.identity(repo).await
            && let Ok(Some(comment)) = repo
                .own_comment(number, &self.name().marker(), &identity)
                .await
        {
            self.record(|known| &mut known.comment, comment.id, &comment.html_url);
        }
    }

    async fn own_check(&self, repo: &Repo, head: &str) -> Option<CheckRun> {
        let there = repo.check_runs(head, self.name().as_str()).await.ok()?;
        let own = |check: &CheckRun| check.external_id == self.external_id;
        there.into_iter().find(own)
    }

    /// Ends the check runs. A pull request shows the checks of its head, so the pushed commit gets its own
    /// check run with the full report, and the first one links to it.
    async fn end_checks(&mut self, repo: &Repo, summary: &RunSummary, end: &End) {
        let first = self.request.context.head.as_ref();
        if self.no_checks || (first.is_none() && end.pushed.is_none()) {
            return;
        }
        let Some(head) = end.pushed.clone().filter(|new| Some(new) != first) else {
            return self.conclude(repo, summary).await;
        };
        let there = if self.resumed {
            self.own_check(repo, &head).await
        } else {
            None
        };
        let there = there.map(|check| check.id);
        match self.put(repo, there, head, self.concluded(summary)).await {
            Ok(check) => {
                self.record(|known| &mut known.final_check, check.id, &check.html_url);
                self.annotate(repo, &check, summary).await;
                self.supersede(repo, summary, &check).await;
            }
            Err(error) => {
                self.note_incident("no check run on the pushed head", &error);
                self.conclude(repo, summary).await;
            }
        }
    }

    /// Ends the check run of the head that the request was for, with everything that belongs to it.
    async fn conclude(&mut self, repo: &Repo, summary: &RunSummary) {
        if let Some(check) = self.put_check(repo, self.concluded(summary)).await {
            self.annotate(repo, &check, summary).await;
            self.replace_earlier(repo, &check).await;
        }
    }

    /// Takes the verdict from the check run of the run before, if it is on the same commit. Its report stays.
    async fn replace_earlier(&mut self, repo: &Repo, by: &CheckRun) {
        let Some(id) = self.request.earlier_check.filter(|id| *id != by.id) else {
            return;
        };
        let replaced = async {
            if let Some(update) = replacement(&repo.check_run(id).await?, by) {
                repo.update_check_run(id, &update).await?;
            }
            Ok(())
        };
        if let Err(error) = replaced.await {
            self.note_incident("the earlier check run keeps its verdict", &error);
        }
    }

    fn concluded(&self, summary: &RunSummary) -> CheckUpdate {
        let text = markdown::check_run(summary, &self.context());
        let conclusion = text.conclusion.unwrap_or(Conclusion::Failure);
        completed(conclusion, with_outcome(plain_output(&text), summary))
    }

    async fn supersede(&mut self, repo: &Repo, summary: &RunSummary, by: &CheckRun) {
        let Some(page) = &self.known.check else {
            return;
        };
        let mut context = self.context();
        context.superseded_by = Some(by.html_url.clone());
        let output = plain_output(&markdown::check_run(summary, &context));
        let update = completed(Conclusion::Neutral, output);
        if let Err(error) = repo.update_check_run(page.id, &update).await {
            self.note_incident("the first check run stays open", &error);
        }
    }

    async fn annotate(&mut self, repo: &Repo, check: &CheckRun, summary: &RunSummary) {
        let (notes, _) = check_annotations(summary);
        let notes: Vec<Annotation> = notes.iter().map(annotated).collect();
        let output = plain_output(&markdown::check_run(summary, &self.context()));
        let output = with_outcome(output, summary);
        let there = check.output.annotations_count;
        match repo.add_annotations(check.id, &output, &notes, there).await {
            Ok(_) => self.annotated = true,
            Err(error) => self.note_incident("not every annotation is there", &error),
        }
    }
}
