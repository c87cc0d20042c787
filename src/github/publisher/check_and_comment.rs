//! What a run has on GitHub: the check run on the head that the request was for, the final one on the pushed
//! head, the comment and the reactions.

use super::check_fields::{annotated, ending, plain_output, replacement, with_outcome};
use crate::domain::outcome::{Reason, RunStatus, TaskEnd};
use crate::domain::summary::{RunSummary, TaskSummary};
use crate::domain::trigger::marker::State;
use crate::domain::trigger::run_name::RunName;
use crate::github::api::{
    Annotation, CheckRun, CheckStatus, CheckUpdate, Client, Comment, Conclusion, Error, Identity,
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
    /// The number of requests that were sent.
    pub requests: u64,
}

/// What to publish, and what exists already.
pub struct CheckAndComment {
    /// The request of the run: where it is reported, and the context of the texts.
    pub request: RunRequest,
    /// The key of the run in its check runs.
    pub external_id: String,
    /// What exists already.
    pub known: Known,
    /// Whether an earlier process of the run may have created more than `known` contains.
    pub resumed: bool,
    /// Called with every change of `known`.
    pub keep: Box<dyn FnMut(&Known) + Send>,
    /// What could not be published.
    pub trouble: PublishProblems,
}

/// The problems with publishing, each reported once.
#[derive(Debug, Clone, Default)]
pub struct PublishProblems {
    no_checks: bool,
    no_comment: bool,
    incidents: Vec<String>,
    incomplete: bool,
    annotated: bool,
    /// A request was abandoned before its response: what it creates may exist.
    unsure: bool,
    /// Whether the leftovers of an earlier process were searched for.
    looked: bool,
    /// Whether a completed check run was reopened.
    reopened: bool,
    identity: Option<Identity>,
}

impl PublishProblems {
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
}

impl CheckAndComment {
    /// Publishes the present state of the run. The comment is updated only if `comment`.
    pub(crate) async fn show(&mut self, client: &Client, summary: &RunSummary, comment: bool) {
        let Some(repo) = self.repo(client) else {
            return;
        };
        if self.resumed && !self.trouble.looked {
            self.find_created(client, &repo).await;
        }
        self.trouble.unsure = true;
        if !self.known.taken {
            self.react(&repo, Reaction::Eyes).await;
            self.known.taken = true;
            (self.keep)(&self.known);
        }
        let mut state = self.request.state.clone();
        match summary.status {
            None => self.show_check(&repo, summary).await,
            Some(status) => {
                state = state.end(status);
                if !self.trouble.no_checks && self.request.context.head.is_some() {
                    self.complete(&repo, summary).await;
                }
            }
        }
        if comment {
            self.show_comment(client, &repo, summary, &state).await;
        }
        self.trouble.unsure = false;
    }

    /// Publishes the end of the run, and leaves no check run open.
    pub(crate) async fn end(&mut self, client: &Client, summary: &RunSummary, end: &End) {
        let Some(repo) = self.repo(client) else {
            return;
        };
        let context = &mut self.request.context;
        context.dispatched.clone_from(&end.dispatched);
        context.ci_will_not_start = end.ci_will_not_start;
        // Earlier failures are repaired now, unless they are permanent.
        self.trouble.incomplete = self.trouble.no_checks || self.trouble.no_comment;
        if self.trouble.unsure || (self.resumed && !self.trouble.looked) {
            self.find_created(client, &repo).await;
        }
        self.end_checks(&repo, summary, end).await;
        let status = summary.status.unwrap_or(RunStatus::Environment);
        let mut state = self.request.state.clone().end(status);
        state.asks |= summary.reason == Some(Reason::NeedsAnswer);
        if end.pushed.is_some() {
            let tasks = summary.tasks.iter();
            // Tasks that somebody else had done before do not count as Sprag's.
            let before = self.request.state.clone();
            let is_own = |task: &&TaskSummary| task.reason.is_some() || before.is_done(&task.title);
            let done = tasks.filter(|task| task.status == TaskEnd::Done);
            state.note_done(done.filter(is_own).map(|task| task.title.as_str()));
        }
        let last_check = self
            .known
            .final_check
            .as_ref()
            .or(self.known.check.as_ref());
        state.check_run_id = last_check.map(|check| check.id);
        self.show_comment(client, &repo, summary, &state).await;
        let reaction = if status.is_complete() {
            Reaction::Rocket
        } else {
            Reaction::Confused
        };
        self.react(&repo, reaction).await;
    }

    /// The final state of what was published.
    pub(crate) fn published(&mut self, client: &Client) -> Published {
        let mut incidents = std::mem::take(&mut self.trouble.incidents);
        let mut of_calls = client.take_incidents();
        of_calls.retain(|call| !incidents.iter().any(|told| told.contains(call)));
        incidents.extend(of_calls);
        let context = self.context();
        Published {
            check_url: context.check_url,
            comment_url: context.comment_url,
            complete: !self.trouble.incomplete,
            annotated: self.trouble.annotated,
            incidents,
            requests: client.requests(),
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

    fn repo(&mut self, client: &Client) -> Option<Repo> {
        match client.repo(&self.request.context.place.repository) {
            Ok(repo) => Some(repo),
            Err(error) => {
                self.trouble.note_incident("nothing is published", &error);
                None
            }
        }
    }

    async fn react(&mut self, repo: &Repo, reaction: Reaction) {
        let Some(target) = self.request.react_to else {
            return;
        };
        if let Err(error) = repo.react(target, reaction).await {
            self.trouble.note_incident("no reaction", &error);
        }
    }

    async fn show_check(&mut self, repo: &Repo, summary: &RunSummary) {
        let Some(head) = self
            .request
            .context
            .head
            .clone()
            .filter(|_| !self.trouble.no_checks)
        else {
            return;
        };
        let text = markdown::check_run(summary, &self.context());
        let output = plain_output(&text);
        let shown = match &self.known.check {
            Some(page) => {
                let again = self.resumed && !self.trouble.reopened;
                let update = CheckUpdate {
                    status: again.then_some(CheckStatus::InProgress),
                    output: Some(output),
                    ..CheckUpdate::default()
                };
                repo.update_check_run(page.id, &update).await
            }
            None => {
                let new = NewCheckRun {
                    name: self.name().as_str().to_owned(),
                    head_sha: head,
                    external_id: self.external_id.clone(),
                    state: CheckUpdate {
                        status: Some(CheckStatus::InProgress),
                        details_url: self.request.context.place.run_url(),
                        output: Some(output),
                        conclusion: None,
                    },
                };
                repo.create_check_run(&new).await
            }
        };
        match shown {
            Ok(check) => {
                self.trouble.reopened = true;
                self.record_check(&check);
            }
            Err(error) => self.check_not_created(&error),
        }
    }

    fn record_check(&mut self, check: &CheckRun) {
        self.record(|known| &mut known.check, page(check.id, &check.html_url));
    }

    /// A token without the permission to write checks is expected: annotations and summary go to the log.
    fn check_not_created(&mut self, error: &Error) {
        let lasting = error.is_permission() || error.is_not_found();
        self.trouble.no_checks |= lasting;
        self.trouble.note_incident("no check run", error);
    }

    async fn show_comment(
        &mut self,
        client: &Client,
        repo: &Repo,
        summary: &RunSummary,
        state: &State,
    ) {
        let Some(number) = self
            .request
            .number
            .filter(|_| self.request.delivery.comment && !self.trouble.no_comment)
        else {
            return;
        };
        let context = ReportContext {
            state_line: Some(state.encode(self.name())),
            ..self.context()
        };
        let body = markdown::comment(summary, &context);
        let known = self.known.comment.as_ref().map(|page| page.id);
        let updated = match known {
            Some(id) => Some(repo.update_comment(id, &body).await),
            None => None,
        };
        let shown = match updated {
            // Somebody has deleted the comment. Only the end of the run is worth another one.
            Some(Err(error)) if error.is_not_found() => match summary.status {
                None => return,
                Some(_) => self.new_comment(client, repo, number, &body).await,
            },
            Some(updated) => updated,
            None => self.new_comment(client, repo, number, &body).await,
        };
        match shown {
            Ok(comment) => self.record_comment(&comment),
            Err(error) => {
                self.trouble.no_comment |= error.is_permission();
                self.trouble.note_incident("no comment", &error);
            }
        }
    }

    async fn new_comment(
        &mut self,
        client: &Client,
        repo: &Repo,
        number: u64,
        body: &str,
    ) -> Result<Comment, Error> {
        let identity = self.identity(client).await?;
        let marker = self.name().marker();
        match repo.own_comment(number, &marker, &identity).await? {
            Some(comment) => repo.update_comment(comment.id, body).await,
            None => {
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
        }
    }

    async fn identity(&mut self, client: &Client) -> Result<Identity, Error> {
        if let Some(identity) = &self.trouble.identity {
            return Ok(identity.clone());
        }
        let identity = client.identity().await?;
        self.trouble.identity = Some(identity.clone());
        Ok(identity)
    }

    fn record_comment(&mut self, comment: &Comment) {
        self.record(
            |known| &mut known.comment,
            page(comment.id, &comment.html_url),
        );
    }

    fn record(&mut self, of: fn(&mut Known) -> &mut Option<Page>, page: Page) {
        let known = of(&mut self.known);
        if known.as_ref() != Some(&page) {
            *known = Some(page);
            (self.keep)(&self.known);
        }
    }

    /// Looks for what abandoned requests created: a second check run would stay open.
    async fn find_created(&mut self, client: &Client, repo: &Repo) {
        self.trouble.looked = true;
        if let (None, Some(head)) = (&self.known.check, &self.request.context.head)
            && let Some(check) = self.own_check(repo, head).await
        {
            self.record_check(&check);
        }
        if let (None, Some(number)) = (&self.known.comment, self.request.number)
            && let Ok(identity) = self.identity(client).await
            && let Ok(Some(comment)) = repo
                .own_comment(number, &self.name().marker(), &identity)
                .await
        {
            self.record_comment(&comment);
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
        if self.trouble.no_checks || (self.request.context.head.is_none() && end.pushed.is_none()) {
            return;
        }
        let moved = end
            .pushed
            .clone()
            .filter(|new| Some(new) != self.request.context.head.as_ref());
        let Some(head) = moved else {
            return self.conclude(repo, summary).await;
        };
        let new = NewCheckRun {
            head_sha: head,
            ..self.concluded(summary)
        };
        let there = if self.resumed {
            self.own_check(repo, &new.head_sha).await
        } else {
            None
        };
        let shown = match there {
            Some(check) => repo.update_check_run(check.id, &ending(&new)).await,
            None => repo.create_check_run(&new).await,
        };
        match shown {
            Ok(check) => {
                self.record(
                    |known| &mut known.final_check,
                    page(check.id, &check.html_url),
                );
                self.annotate(repo, check.id, check.output.annotations_count, summary)
                    .await;
                self.supersede(repo, summary, &check).await;
            }
            Err(error) => {
                self.trouble
                    .note_incident("no check run on the pushed head", &error);
                self.conclude(repo, summary).await;
            }
        }
    }

    /// Ends the check run of the head that the request was for, with everything that belongs to it.
    async fn conclude(&mut self, repo: &Repo, summary: &RunSummary) {
        if let Some(check) = self.complete(repo, summary).await {
            self.annotate(repo, check.id, check.output.annotations_count, summary)
                .await;
            self.replace_earlier(repo, &check).await;
        }
    }

    /// Completes the check run of the head that the request was for, or creates a completed one.
    async fn complete(&mut self, repo: &Repo, summary: &RunSummary) -> Option<CheckRun> {
        let new = self.concluded(summary);
        let ended = match &self.known.check {
            Some(page) => repo.update_check_run(page.id, &ending(&new)).await,
            None => repo.create_check_run(&new).await,
        };
        match &ended {
            Ok(check) => self.record_check(check),
            Err(error) => self.check_not_created(error),
        }
        ended.ok()
    }

    /// Takes the verdict from the check run of the run before, if it is on the same commit. Its report stays.
    async fn replace_earlier(&mut self, repo: &Repo, by: &CheckRun) {
        let Some(id) = self.request.earlier_check.filter(|id| *id != by.id) else {
            return;
        };
        let replaced = match repo.check_run(id).await {
            Ok(earlier) => match replacement(&earlier, by) {
                Some(update) => repo.update_check_run(id, &update).await.map(drop),
                None => Ok(()),
            },
            Err(error) => Err(error),
        };
        if let Err(error) = replaced {
            self.trouble
                .note_incident("the earlier check run keeps its verdict", &error);
        }
    }

    fn concluded(&self, summary: &RunSummary) -> NewCheckRun {
        let text = markdown::check_run(summary, &self.context());
        NewCheckRun {
            name: self.name().as_str().to_owned(),
            head_sha: self.request.context.head.clone().unwrap_or_default(),
            external_id: self.external_id.clone(),
            state: CheckUpdate {
                status: Some(CheckStatus::Completed),
                conclusion: text.conclusion.or(Some(Conclusion::Failure)),
                details_url: self.request.context.place.run_url(),
                output: Some(with_outcome(plain_output(&text), summary)),
            },
        }
    }

    async fn supersede(&mut self, repo: &Repo, summary: &RunSummary, by: &CheckRun) {
        let Some(page) = &self.known.check else {
            return;
        };
        let mut context = self.context();
        context.superseded_by = Some(by.html_url.clone());
        let update = CheckUpdate {
            status: Some(CheckStatus::Completed),
            conclusion: Some(Conclusion::Neutral),
            output: Some(plain_output(&markdown::check_run(summary, &context))),
            details_url: None,
        };
        if let Err(error) = repo.update_check_run(page.id, &update).await {
            self.trouble
                .note_incident("the first check run stays open", &error);
        }
    }

    async fn annotate(&mut self, repo: &Repo, check: u64, there: usize, summary: &RunSummary) {
        let (notes, _) = check_annotations(summary);
        let notes: Vec<Annotation> = notes.iter().map(annotated).collect();
        if notes.is_empty() {
            self.trouble.annotated = true;
            return;
        }
        let output = plain_output(&markdown::check_run(summary, &self.context()));
        let output = with_outcome(output, summary);
        match repo.add_annotations(check, &output, &notes, there).await {
            Ok(_) => self.trouble.annotated = true,
            Err(error) => self
                .trouble
                .note_incident("not every annotation is there", &error),
        }
    }
}

fn page(id: u64, url: &str) -> Page {
    let url = url.to_owned();
    Page { id, url }
}
