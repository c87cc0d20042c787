//! Fetches what must be known from GitHub before work on an event starts.

use crate::context::Context;
use crate::domain::plan::{Plan, TaskStatus};
use crate::domain::settings::Settings;
use crate::domain::trigger::authorise::{Facts, PullFacts};
use crate::domain::trigger::context as words;
use crate::domain::trigger::marker::{self, State};
use crate::domain::trigger::payload::DiffLines;
use crate::domain::trigger::run_name::RunName;
use crate::domain::trigger::triage::Candidate;
use crate::domain::trigger::{Refusal, Request, clean, issue, job_log, picture};
use crate::github::actions_environment::ActionsEnvironment;
use crate::github::api::{
    Author, ChangedFile, CheckRun, Comment, Error, Identity, PullFacts as Pull, PullRepo, Repo,
    ReviewComment,
};
use crate::github::request::{Page, RunRequest};

/// Maximum number of failed jobs, bytes read of each log, and bytes shown of it.
const JOBS: usize = 5;
const LOG_BYTES: usize = 256 << 10;
const LOG_SHOWN: usize = 12_000;

/// Queries GitHub about an event.
#[derive(Clone, Copy)]
pub struct EventLookup<'a> {
    /// The repository.
    pub repo: &'a Repo,
    /// The account of the token, or why it is unknown.
    pub identity: Result<&'a Identity, &'a Error>,
    /// The name under which the run is reported.
    pub name: &'a RunName,
    /// The template of new branches.
    pub branch: &'a str,
}

impl<'a> EventLookup<'a> {
    /// Queries about an event in this job.
    pub fn of(
        repo: &'a Repo,
        identity: Result<&'a Identity, &'a Error>,
        actions: &'a ActionsEnvironment,
        settings: &'a Settings,
    ) -> Self {
        Self {
            repo,
            identity,
            name: &actions.place.name,
            branch: settings.branch_template(),
        }
    }
}

/// The results of the queries.
#[derive(Default)]
pub struct Found {
    /// The facts for the decision.
    pub facts: Facts,
    /// Sprag's own comment.
    pub comment: Option<Page>,
}

impl EventLookup<'_> {
    /// Gives the open tasks that only refer to an issue its title and its text. What a stranger may have changed
    /// after the request is not read.
    ///
    /// # Errors
    /// The first reference that cannot be followed.
    pub async fn resolve_references(
        &self,
        plan: &mut Plan,
        asked_at: Option<&str>,
    ) -> Result<(), Refusal> {
        let tasks = plan.tasks.iter_mut();
        for task in tasks.filter(|task| task.status != TaskStatus::Done) {
            let Some(reference) = issue::reference(&task.title) else {
                continue;
            };
            let refused = |what: &str| Refusal::InvalidReference {
                reference: reference.to_string(),
                what: what.to_owned(),
            };
            let name = reference.repository.as_deref();
            let found = self.repo.issue_of(name, reference.number).await;
            let found =
                found.map_err(|error| refused(&format!("that could not be read: {error}")))?;
            if found.pull_request.is_some() {
                return Err(refused("that is a pull request"));
            }
            let is_known = ["OWNER", "MEMBER", "COLLABORATOR"].contains(&&*found.association);
            if !is_known && asked_at.is_some_and(|asked| found.updated_at.as_str() > asked) {
                return Err(refused("that was changed after the request"));
            }
            issue::resolve(task, &reference, &found.title, &found.body);
            if found.state == "closed" {
                task.status = TaskStatus::Done;
            }
        }
        Ok(())
    }

    /// Fetches what a candidate needs. What cannot be determined stays unknown, and the decision takes that
    /// into account.
    pub async fn facts(&self, context: &Context, candidate: &Candidate) -> Found {
        let needs = candidate.needs;
        let number = candidate.number();
        let attempt = context.var("GITHUB_RUN_ATTEMPT");
        let mut found = Found::default();
        found.facts.now_day = jiff::Timestamp::now().strftime("%Y-%m-%d").to_string();
        found.facts.run_attempt = attempt.and_then(|n| n.parse().ok()).unwrap_or(1);
        self.permission(candidate, &mut found.facts).await;
        if let Some(number) = number.filter(|_| needs.pull_request) {
            found.facts.pull = self.repo.pull(number).await.ok().map(pull_facts);
        }
        if let Some(number) = number.filter(|_| needs.comments) {
            match self.own_comment(number).await {
                Ok(Some((state, page))) => {
                    found.facts.state = state;
                    found.comment = Some(page);
                }
                Ok(None) => {}
                Err(why) => found.facts.state_error = Some(why),
            }
        }
        if candidate.default_branch.is_none() {
            found.facts.default_branch = self.repo.default_branch().await.ok();
        }
        if let Some(head) = candidate.head_sha.as_ref().filter(|_| needs.jobs) {
            let commit = self.repo.git_commit(head).await;
            let is_own = |line: &str| line.starts_with("Sprag-Run: ");
            found.facts.head_is_own = commit.is_ok_and(|it| it.message.lines().any(is_own));
        }
        found
    }

    /// Fetches the permission of whoever asked.
    pub(super) async fn permission(&self, candidate: &Candidate, facts: &mut Facts) {
        let asker = candidate.asker.as_ref();
        if let Some(asker) = asker.filter(|_| candidate.needs.permission) {
            match self.repo.access_of(&asker.login).await {
                Ok(access) => facts.access = Some(access),
                Err(error) => facts.access_error = error.to_string(),
            }
        }
    }

    /// Sprag's own comment on an issue or pull request, and the state that it keeps.
    async fn own_comment(&self, number: u64) -> Result<Option<(Option<State>, Page)>, String> {
        let identity = self.identity.map_err(|error| {
            format!("could not determine the account that the token belongs to: {error}")
        })?;
        let marker = self.name.marker();
        let found = self.repo.own_comment(number, &marker, identity).await;
        let own = found.map_err(|error| error.to_string())?;
        Ok(own.map(|own| {
            let (id, url) = (own.id, own.html_url);
            (marker::decode(&own.body, self.name), Page { id, url })
        }))
    }

    /// Adds the existing comment and its state to a request.
    pub async fn recall(&self, request: &mut RunRequest) {
        if let Some(number) = request.number
            && let Ok(Some((state, page))) = self.own_comment(number).await
        {
            request.state = state.unwrap_or_default();
            request.comment = Some(page);
        }
    }

    /// What the agent needs to know about the issue or pull request. What cannot be read becomes a note.
    pub async fn context(&self, candidate: &Candidate, request: &mut RunRequest) -> words::Context {
        let mut context = words::Context::default();
        let notes = &mut request.context.notes;
        if let Some(number) = candidate.number().filter(|_| candidate.needs.comments) {
            let comments = self.repo.comments(number).await;
            let what = "The conversation could not be read";
            context.comments = self.thread(or_note(what, comments, notes));
        }
        let jobs = match (&candidate.request, candidate.number(), &candidate.head_sha) {
            (Request::Review { review_id }, Some(number), _) => {
                let comments = self.repo.review_comments(number, *review_id).await;
                context.review_unread = comments.is_err();
                let what = "The comments of the review could not be read";
                let comments = or_note(what, comments, notes).into_iter();
                context.review_comments = comments.map(on_lines).collect();
                return context;
            }
            (Request::FixRun { run_id }, ..) => self.repo.jobs(*run_id).await,
            (Request::FixSuite { suite_id }, ..) => self.repo.jobs_of_suite(*suite_id).await,
            (Request::Ask(_), Some(number), Some(head)) if candidate.is_pull() => {
                let files = self.repo.changed_files(number).await;
                let what = "The diff of the pull request could not be read";
                context.diff = diff_of(&or_note(what, files, notes));
                let jobs = self.repo.jobs_of_commit(head).await;
                let is_other = |job: &CheckRun| job.name != self.name.as_str();
                jobs.map(|jobs| jobs.into_iter().filter(is_other).collect())
            }
            _ => return context,
        };
        let jobs = or_note("The failed jobs could not be read", jobs, notes);
        context.jobs = self.logs(jobs).await;
        context
    }

    /// Fetches the pictures in the text of an issue. What is left out becomes a note.
    pub async fn pictures(&self, text: &str, request: &mut RunRequest) {
        let server = request.context.place.server_url.clone();
        for (count, address) in picture::addresses(text).into_iter().enumerate() {
            let fetched = if count >= picture::MAX_PICTURES {
                Err("there are more than eight".to_owned())
            } else if picture::is_on_github(&address, &server) {
                self.picture(&address).await
            } else {
                Err("it is not on a host of GitHub".to_owned())
            };
            match fetched {
                Ok(bytes) => request.pictures.push(bytes),
                Err(why) => {
                    let address = clean::clean_line(&address, 200);
                    let note = format!("The picture {address} is left out: {why}");
                    request.context.notes.push(note);
                }
            }
        }
    }

    async fn picture(&self, address: &str) -> Result<Vec<u8>, String> {
        let fetched = self.repo.file(address, picture::MAX_PICTURE_BYTES).await;
        let bytes = fetched.map_err(|error| error.to_string())?;
        match picture::media_type(&bytes) {
            Some(_) => Ok(bytes),
            None => Err("it is no PNG, JPEG, GIF or WebP".to_owned()),
        }
    }

    /// Leaves out the comments of threads that are resolved by now. If that cannot be determined, nothing is
    /// left out.
    pub async fn drop_resolved(
        &self,
        number: u64,
        context: &mut words::Context,
        request: &mut RunRequest,
    ) {
        let threads = self.repo.review_threads(number).await;
        let what = "Which threads are resolved could not be read";
        let threads = or_note(what, threads, &mut request.context.notes);
        let is_resolved = |comment: &words::ReviewComment| {
            let mut own = threads.iter();
            own.any(|thread| thread.is_resolved && thread.first == comment.thread())
        };
        context
            .review_comments
            .retain(|comment| !is_resolved(comment));
    }

    fn thread(&self, comments: Vec<Comment>) -> Vec<words::ThreadComment> {
        let comments = comments.into_iter().map(|comment| words::ThreadComment {
            id: comment.id,
            is_own: self
                .identity
                .is_ok_and(|own| own.is(comment.author.as_ref())),
            author: login(comment.author),
            body: comment.body,
            created_at: comment.created_at,
            updated_at: comment.updated_at,
        });
        comments.collect()
    }

    async fn logs(&self, jobs: Vec<CheckRun>) -> Vec<words::FailedJob> {
        const FAILURES: [&str; 3] = ["failure", "timed_out", "startup_failure"];
        let has_failed = |conclusion: &Option<String>| {
            let conclusion = conclusion.as_deref().unwrap_or_default();
            FAILURES.contains(&conclusion)
        };
        let mut found = Vec::new();
        let failed = jobs.into_iter().filter(|job| has_failed(&job.conclusion));
        for job in failed.take(JOBS) {
            let log = match self.repo.job_log(job.id, LOG_BYTES).await {
                Ok(log) => job_log::failed_step(&log, LOG_SHOWN),
                Err(_) if !job.output.summary.is_empty() => job.output.summary,
                Err(error) => format!("(the log could not be read: {error})"),
            };
            let mut steps = job.steps.into_iter();
            let step = steps.find(|step| has_failed(&step.conclusion));
            found.push(words::FailedJob {
                name: job.name,
                step: step.map(|step| step.name),
                log,
            });
        }
        found
    }
}

/// What was read. What could not be read becomes a note.
fn or_note<T: Default>(what: &str, read: Result<T, Error>, notes: &mut Vec<String>) -> T {
    read.unwrap_or_else(|error| {
        notes.push(format!("{what}: {error}"));
        T::default()
    })
}

/// The files of a pull request as one diff. GitHub gives no patch for binary and for very large files.
fn diff_of(files: &[ChangedFile]) -> String {
    let one = |file: &ChangedFile| {
        let (name, how) = (&file.filename, &file.status);
        let patch = file.patch.as_deref().unwrap_or("(no text to show)");
        format!("{name} ({how})\n{patch}\n")
    };
    files.iter().map(one).collect()
}

fn pull_facts(pull: Pull) -> PullFacts {
    let repository = |repo: Option<PullRepo>| repo.map(|repo| repo.full_name);
    PullFacts {
        title: pull.title,
        body: pull.body,
        open: pull.state == "open",
        head_ref: pull.head.branch,
        head_sha: pull.head.sha,
        head_repository: repository(pull.head.repo),
        base_ref: pull.base.branch,
        base_repository: repository(pull.base.repo).unwrap_or_default(),
    }
}

fn login(author: Option<Author>) -> String {
    author.map(|author| author.login).unwrap_or_default()
}

fn on_lines(comment: ReviewComment) -> words::ReviewComment {
    words::ReviewComment {
        id: comment.id,
        reply_to: comment.in_reply_to_id,
        author: login(comment.author),
        place: DiffLines {
            path: comment.path,
            line: comment.line.map(u64::from),
            hunk: comment.diff_hunk,
        },
        body: comment.body,
    }
}
