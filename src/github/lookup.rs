//! Decides what a GitHub event asks for: nothing, an answer, a refusal, or a run.

mod again;
mod answer;
mod approval;
mod fetch;
mod place;

use crate::context::Context;
use crate::domain::plan::{Plan, Task, TaskKind, TaskStatus};
use crate::domain::settings::{Approve, Report, Scope, Settings};
use crate::domain::trigger::authorise::{Authorised, Declined, Facts, authorise, may_ask};
use crate::domain::trigger::clean::clean_line;
use crate::domain::trigger::marker::{Begin, State};
use crate::domain::trigger::review::{self, ThreadOfTask};
use crate::domain::trigger::settings::TriggerSettings;
use crate::domain::trigger::triage::{self, Candidate, Triage};
use crate::domain::trigger::{Refusal, Request, context as words, issue, payload};
use crate::error::{Error, Result};
use crate::git::Real;
use crate::github::actions_environment::{self, ActionsEnvironment};
use crate::github::api::Access;
use crate::github::api::ReactTo;
use crate::github::request::{Page, Review, RunRequest};
use crate::plain_file;
use crate::settings::inputs;
pub use answer::{JobEnd, NoRun, report_not_started};
use approval::{approved, with_earlier_plan};
pub use fetch::EventLookup;
pub use place::{Checkout, OwnWork, PlanBranches, at_the_ref, give_own_branch, remote};
use serde_json::{Value, json};
use std::fs::File;
use std::path::Path;

/// Maximum size in bytes of a payload that is read. GitHub's own limit is 25 MB.
const MAX_PAYLOAD: u64 = 32 << 20;

/// What the event is read for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// The event determines the work.
    Event,
    /// The step's settings determine the work. The event says who asked, and on which branch.
    Place,
    /// This job publishes the work of another job of the workflow run. The run is not counted twice.
    Publish,
}

/// The requested work.
pub struct RequestedWork {
    /// The plan or the prompt.
    pub source: WorkSource,
    /// Who requested it, and where the work and the report go.
    pub request: RunRequest,
}

impl RequestedWork {
    /// The work that the step itself configures, on the branch of the workflow run.
    pub fn configured(context: &Context, actions: &ActionsEnvironment) -> Self {
        let request = at_the_ref(context, actions.place.clone());
        Self::new(WorkSource::Configured, request)
    }

    /// The work of a request.
    pub fn new(source: WorkSource, request: RunRequest) -> Self {
        Self { source, request }
    }

    /// The same work on the branch that is checked out if the event places it on none. If no head commit is known, it
    /// is that of the workflow run.
    #[must_use]
    pub fn placed(mut self, context: &Context, real: &Real) -> Self {
        if self.request.branch.is_none() && context.in_actions() {
            place::at_the_checkout(context, real, &mut self.request);
        }
        let head = &mut self.request.context.head;
        if head.is_none() {
            *head = context.var("GITHUB_SHA").map(str::to_owned);
        }
        self
    }
}

/// The source of the work. A path refers to the branch that is checked out later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkSource {
    /// The settings of the step.
    Configured,
    /// A plan file, relative to the work tree.
    Plan(String),
    /// The description of a task.
    Prompt(String),
    /// The text of a plan without a file.
    PlanText(String),
    /// What to draft a plan from.
    Draft(String),
    /// The next plan of a directory, relative to the work tree.
    Queue(String),
}

/// The settings that say who may start what. They come from the workflow and from the repository's
/// checked-out configuration, never from the event.
pub fn trigger_settings(settings: &Settings, context: &Context) -> TriggerSettings {
    TriggerSettings {
        rules: settings.clone().resolve(context.in_actions()),
        queue: inputs::queue(context).map(str::to_owned),
        own_login: None,
        own_workflow: context.var("GITHUB_WORKFLOW").map(str::to_owned),
    }
}

/// The part of a configuration file that applies. If anybody can cause the event, the checkout may be theirs
/// too; then only the workflow decides who may start runs.
pub fn without_rights(context: &Context, file: Settings) -> Settings {
    if actions_environment::event(context).is_none() || is_of_a_writer(context) {
        file
    } else {
        file.without(Scope::Trigger)
    }
}

/// Why the sender of the event may not start anything, if no candidate was judged. This applies to a bot that
/// is not listed, Sprag's own account, and, if `needs_access`, anybody without write access.
pub async fn refuse_stranger(
    context: &Context,
    repo: &crate::github::api::Repo,
    triggers: &TriggerSettings,
    needs_access: bool,
) -> Result<(), NoRun> {
    let Some((_, path)) = actions_environment::event(context).filter(|_| !is_of_a_writer(context))
    else {
        return Ok(());
    };
    let payload = payload_of(&path)?;
    let sender = &payload["sender"];
    let login = sender["login"].as_str().unwrap_or_default();
    let shown = clean_line(login, 100);
    let is_bot = sender["type"] == "Bot" || login.ends_with("[bot]");
    if triggers.is_own(login) || (is_bot && !triggers.lists_bot(login)) {
        let why = format!("{shown} is a bot or Sprag's own account, which cannot start a run");
        return Err(JobEnd::nothing(why).into());
    }
    if !needs_access || is_bot || triggers.lists_user(login) {
        return Ok(());
    }
    let refusal = match repo.access_of(login).await {
        Ok(access) if access >= Access::Write => return Ok(()),
        Ok(_) => Refusal::NoWriteAccess { login: shown },
        Err(error) => Refusal::PermissionUnknown {
            login: shown,
            why: error.to_string(),
        },
    };
    Err(JobEnd::refused(&refusal).into())
}

/// Reads the event of this workflow run.
///
/// # Errors
/// When the job has no event, or it cannot be read.
pub fn read(context: &Context) -> Result<payload::Event> {
    let Some((name, path)) = actions_environment::event(context) else {
        return Err(Error::usage("there is no GitHub event here").hint(
            "--event needs GITHUB_EVENT_NAME and GITHUB_EVENT_PATH, which GitHub Actions sets",
        ));
    };
    let json = payload_of(&path)?;
    payload::parse(&name, &json).map_err(|error| Error::config(error.to_string()))
}

/// Whether only people with write access can have caused the event of this job.
fn is_of_a_writer(context: &Context) -> bool {
    actions_environment::event(context).is_some_and(|(name, _)| triage::is_of_a_writer(&name))
}

fn payload_of(path: &Path) -> Result<Value> {
    let shown = path.display();
    let read = File::open(path).and_then(|file| plain_file::content_of(file, MAX_PAYLOAD));
    let bytes = read.map_err(|error| {
        Error::environment(format!("the event file {shown} cannot be read: {error}"))
            .hint("GITHUB_EVENT_PATH names it, which GitHub Actions sets")
    })?;
    serde_json::from_slice(&bytes).map_err(|error| {
        Error::config(format!("the event file {shown} is not valid JSON: {error}"))
    })
}

/// Decides what the event of this workflow run asks for.
///
/// # Errors
/// When the event cannot be read or there is no token for GitHub.
pub async fn decide(
    context: &Context,
    actions: &ActionsEnvironment,
    settings: &Settings,
    purpose: Purpose,
) -> Result<RequestedWork, NoRun> {
    let explicit = purpose != Purpose::Event;
    let event = match read(context) {
        Ok(event) => event,
        // Anybody who can push or dispatch may start a run, even if the payload cannot be read.
        Err(_) if explicit && is_of_a_writer(context) => {
            return Ok(RequestedWork::configured(context, actions));
        }
        Err(error) => return Err(error.into()),
    };
    let mut triggers = trigger_settings(settings, context);
    if purpose == Purpose::Place {
        triggers.queue = None;
    }
    let repo = actions.repo()?;
    let identity = repo.identity().await;
    let own = identity.as_ref().ok();
    triggers.own_login = own.map(|identity| identity.login.clone());
    let lookup = EventLookup::of(&repo, identity.as_ref(), actions, settings);
    let (candidate, unfit) = match triage::triage(&event, &triggers) {
        Triage::Candidate(candidate) => (candidate, None),
        Triage::Refused {
            refusal,
            candidate: Some(candidate),
        } => (candidate, Some(refusal)),
        Triage::Refused { refusal, .. } => {
            return Err(JobEnd::refused(&refusal).into());
        }
        Triage::Nothing { reason } => {
            let is_closed = event.pull().is_some_and(|pull| !pull.is_open());
            let request = place::of_pull_event(&event, &actions.place, explicit, &triggers)?;
            return match request {
                None => Err(JobEnd::nothing(reason).into()),
                Some(_) if is_closed && pushes(settings, purpose) => {
                    let what = "pull request";
                    Err(JobEnd::refused(&Refusal::Closed { what }).into())
                }
                // The work that the step configures, on the branch of the pull request that the event is about.
                Some(mut request) => {
                    let name = context.var("GITHUB_EVENT_NAME");
                    let is_target = name == Some("pull_request_target");
                    refuse_stranger(context, &repo, &triggers, is_target).await?;
                    lookup.recall(&mut request).await;
                    Ok(RequestedWork::new(WorkSource::Configured, request))
                }
            };
        }
    };
    let handling = RequestHandling {
        actions,
        lookup,
        triggers: &triggers,
        comment: None,
        is_silent: settings.report == Some(Report::None),
    };
    handling.decide(context, *candidate, unfit, purpose).await
}

/// Whether this job adds commits to the branch of the event. What another job has done already is kept on a
/// branch of its own.
fn pushes(settings: &Settings, purpose: Purpose) -> bool {
    purpose == Purpose::Place && settings.push != Some(false) && settings.review_only != Some(true)
}

/// Changes the facts to what they were before the earlier job whose work this job publishes.
fn show_as_before_this_run(facts: &mut Facts, candidate: &Candidate) {
    let begin = Begin {
        day: &facts.now_day,
        answers: candidate.answer_key.as_deref(),
        by_machine: candidate.by_machine,
        request: &candidate.request,
    };
    facts.state = facts.state.take().map(|state| state.before(&begin));
    // The work is there, and a pull request that was closed since then says where it goes.
    facts.pull.iter_mut().for_each(|pull| pull.open = true);
}

/// Records which tasks of an issue Sprag had done when a run begins.
pub(crate) fn note_own(state: &mut State, plan: &Plan, is_own: impl Fn(&str) -> bool) {
    let is_done = |task: &&Task| task.status == TaskStatus::Done && is_own(&task.title);
    let done = plan.tasks.iter().filter(is_done);
    state.note_done(done.map(|task| task.title.as_str()));
}

/// The title of the work: the first line of the instruction, or a description of what to fix.
fn title(candidate: &Candidate) -> String {
    let at = match (candidate.number(), candidate.is_pull()) {
        (Some(number), true) => format!(" of pull request {number}"),
        (Some(number), false) => format!(" of issue {number}"),
        (None, _) => String::new(),
    };
    match &candidate.request {
        Request::Instruction(text) | Request::Ask(text) => {
            clean_line(text.lines().next().unwrap_or_default(), 72)
        }
        Request::Review { .. } => format!("Do what the review{at} asks for"),
        _ => {
            let name = candidate.checks_name.as_deref();
            let name = clean_line(name.unwrap_or("the failed jobs"), 60);
            format!("Make {name} pass")
        }
    }
}

/// A plan of one task.
pub(crate) fn one_task(title: &str, task: &str, kind: TaskKind) -> String {
    let task = json!({ "id": "t1", "title": title, "description": task, "kind": kind });
    json!({ "title": title, "tasks": [task] }).to_string()
}

/// The source if the request names a file or a directory of the repository.
fn of_repository(request: &Request) -> Option<WorkSource> {
    match request {
        Request::Plan(path)
        | Request::Dispatch {
            plan: Some(path), ..
        } => Some(WorkSource::Plan(path.clone())),
        Request::Queue(dir)
        | Request::Dispatch {
            queue: Some(dir), ..
        } => Some(WorkSource::Queue(dir.clone())),
        _ => None,
    }
}

/// What it takes to carry out the decision about a request.
struct RequestHandling<'a> {
    actions: &'a ActionsEnvironment,
    lookup: EventLookup<'a>,
    triggers: &'a TriggerSettings,
    comment: Option<Page>,
    is_silent: bool,
}

impl RequestHandling<'_> {
    /// Decides about a request by the facts that it depends on. An unfit one is
    /// refused as unfit only if its sender may ask at all.
    async fn decide(
        mut self,
        context: &Context,
        candidate: Candidate,
        unfit: Option<Refusal>,
        purpose: Purpose,
    ) -> Result<RequestedWork, NoRun> {
        let mut found = self.lookup.facts(context, &candidate).await;
        if purpose == Purpose::Publish {
            show_as_before_this_run(&mut found.facts, &candidate);
        }
        self.comment = found.comment;
        let facts = found.facts;
        let decided = match unfit {
            None => authorise(&candidate, &facts, self.triggers),
            Some(refusal) => {
                may_ask(&candidate, &facts, self.triggers).and(Err(Declined::Refused(refusal)))
            }
        };
        match decided {
            Ok(authorised) => self.work(authorised, purpose).await,
            Err(declined) => {
                let target = self.reply_target(&candidate, facts.state.unwrap_or_default());
                Err(target.declined(&declined).await.into())
            }
        }
    }

    async fn work(
        self,
        mut authorised: Authorised,
        purpose: Purpose,
    ) -> Result<RequestedWork, NoRun> {
        if !authorised.candidate.request.is_work() {
            let state = authorised.next_state.clone();
            let target = self.reply_target(&authorised.candidate, state);
            return Err(target.answer(&authorised, self.triggers).await.into());
        }
        let asked = authorised.candidate.request.clone();
        let is_again = asked == Request::Retry || asked.continues();
        if is_again
            && purpose != Purpose::Place
            && let Err(declined) = self.lookup.read_again(&mut authorised, self.triggers).await
        {
            let target = self.reply_target(&authorised.candidate, authorised.state);
            return Err(target.declined(&declined).await.into());
        }
        let request = match authorised.candidate.request.clone() {
            Request::Answer(_) => Request::Continue,
            Request::IssuePlan if self.triggers.rules.approve == Approve::Required => {
                Request::Draft(String::new())
            }
            // The plan is kept with the work.
            Request::Approve(_) if asked.continues() => Request::Continue,
            request => request,
        };
        let mut run = place::request(self.actions, &authorised, self.triggers);
        run.comment.clone_from(&self.comment);
        run.continues = asked.continues();
        run.earlier_check = authorised.state.check_run_id.filter(|_| is_again);
        if let Request::Answer(answer) = &asked {
            run.answer = Some(answer.clone());
        }
        run.context.merges_base = request == Request::Rebase;
        let source = match (purpose, of_repository(&request)) {
            (Purpose::Event | Purpose::Publish, Some(source)) => Ok(source),
            (Purpose::Event, None) => self.source(&authorised, &asked, &request, &mut run).await,
            _ => Ok(WorkSource::Configured),
        };
        let source = match source {
            Ok(source) => source,
            Err(declined) => {
                let target = self.reply_target(&authorised.candidate, authorised.state);
                let ended = match declined {
                    Declined::Nothing { reason } => target.nothing(&reason).await,
                    refused @ Declined::Refused(_) => target.declined(&refused).await,
                };
                return Err(ended.into());
            }
        };
        if let (Purpose::Event, Some(subject)) = (purpose, &authorised.candidate.subject) {
            self.lookup.pictures(&subject.body, &mut run).await;
        }
        let branch = place::work_branch(&self.lookup, &authorised, &request).await;
        run.branch = branch.map_err(place::unread)?.or(run.branch);
        Ok(RequestedWork::new(source, run))
    }

    /// The source of the work. `asked` is the request as the event has it. The error says why there is nothing to
    /// do.
    async fn source(
        &self,
        authorised: &Authorised,
        asked: &Request,
        request: &Request,
        run: &mut RunRequest,
    ) -> std::result::Result<WorkSource, Declined> {
        Ok(match request {
            Request::Dispatch {
                prompt: Some(text), ..
            } => WorkSource::Prompt(text.clone()),
            Request::Rebase => {
                let base = authorised.base_ref.as_deref().unwrap_or("the base branch");
                let title = format!("Merge {base}");
                WorkSource::PlanText(one_task(&title, "", TaskKind::Work))
            }
            Request::IssuePlan => {
                let subject = authorised.candidate.subject.clone().unwrap_or_default();
                let is_own = |title: &str| authorised.state.is_done(title);
                let mut read = issue::plan(&subject.title, &subject.body, is_own);
                let asked_at = authorised.candidate.asked_at.as_deref();
                self.lookup
                    .resolve_references(&mut read.plan, asked_at)
                    .await?;
                let of_run = |task: &Task| is_own(&task.title);
                match asked {
                    Request::Continue | Request::Answer(_) => {
                        read.plan.set_status(TaskStatus::Done, of_run);
                    }
                    Request::Retry => read.plan.set_status(TaskStatus::Pending, of_run),
                    _ => {}
                }
                note_own(&mut run.state, &read.plan, is_own);
                run.context.notes.extend(read.notes.iter().cloned());
                WorkSource::PlanText(read.plan.texts())
            }
            Request::Approve(_) => {
                let comment = self.comment.as_ref();
                WorkSource::PlanText(approved(&self.lookup, authorised, comment, request).await?)
            }
            Request::Instruction(_)
            | Request::Ask(_)
            | Request::Draft(_)
            | Request::FixRun { .. }
            | Request::FixSuite { .. }
            | Request::Review { .. } => {
                let candidate = Candidate {
                    request: request.clone(),
                    ..authorised.candidate.clone()
                };
                let mut context = self.lookup.context(&candidate, run).await;
                if let Request::Review { review_id } = request {
                    let is_again = asked != request;
                    if let Some(number) = candidate.number().filter(|_| is_again) {
                        self.lookup.drop_resolved(number, &mut context, run).await;
                    }
                    let source = self.of_review(*review_id, &candidate, &context, run);
                    let reason = if is_again {
                        "the review has no text, and all of its threads are resolved"
                    } else {
                        "the review has neither a text nor comments on lines"
                    };
                    let reason = reason.to_owned();
                    return source.ok_or(Declined::Nothing { reason });
                }
                let task = words::prompt(&candidate, &context);
                if let Request::Draft(_) = request {
                    let comment = self.comment.as_ref();
                    let text = with_earlier_plan(self.lookup.repo, comment, task).await;
                    return Ok(WorkSource::Draft(text));
                }
                let kind = match request {
                    Request::Ask(_) => TaskKind::Ask,
                    _ => TaskKind::Work,
                };
                WorkSource::PlanText(one_task(&title(&candidate), &task, kind))
            }
            // The plan is kept with the work.
            Request::Continue => WorkSource::Prompt("Continue the unfinished work".to_owned()),
            _ => WorkSource::Configured,
        })
    }

    /// Converts a review to tasks, with the threads that they answer. `None` if it asks for nothing.
    fn of_review(
        &self,
        id: u64,
        candidate: &Candidate,
        context: &words::Context,
        run: &mut RunRequest,
    ) -> Option<WorkSource> {
        let tasks = review::tasks(candidate, context, self.triggers.rules.review_threads);
        if tasks.is_empty() {
            return None;
        }
        let threads = tasks.iter().flat_map(|task| {
            let of_task = |thread: &u64| ThreadOfTask {
                thread: *thread,
                task: task.id.clone(),
            };
            task.threads.iter().map(of_task)
        });
        let first = context.review_comments.first();
        run.review = Some(Review {
            id,
            author: first.map_or(String::new(), |comment| comment.author.clone()),
            threads: threads.collect(),
        });
        let entry = |it: &review::ReviewTask| json!({"id": it.id, "title": it.title, "description": it.description});
        let tasks = Value::from_iter(tasks.iter().map(entry));
        let plan = json!({ "title": title(candidate), "tasks": tasks });
        Some(WorkSource::PlanText(plan.to_string()))
    }

    fn reply_target(&self, candidate: &Candidate, state: State) -> answer::ReplyTarget<'_> {
        answer::ReplyTarget {
            repo: self.lookup.repo,
            identity: self.lookup.identity.ok(),
            place: &self.actions.place,
            react_to: ReactTo::of(candidate.comment, None),
            number: candidate.number(),
            comment: self.comment.clone(),
            state,
            is_silent: self.is_silent,
        }
    }
}
