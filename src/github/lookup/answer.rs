//! Answers for a job in which no run starts: nothing to do, a refusal, or the answer to a question.

use crate::context::Context;
use crate::domain::outcome::{Reason, RunStatus};
use crate::domain::trigger::authorise::{Authorised, Declined};
use crate::domain::trigger::marker::{MARKER, State};
use crate::domain::trigger::place::Place;
use crate::domain::trigger::settings::TriggerSettings;
use crate::domain::trigger::{Refusal, RefusalReply, Request};
use crate::error;
use crate::github::actions_environment::ActionsEnvironment;
use crate::github::api::{Error, ErrorKind, Identity, ReactTo, Reaction, Repo};
use crate::github::refusal;
use crate::github::request::{Page, RunRequest};
use crate::report::actions_log::neutral;
use crate::report::annotation::{Annotation, Level};
use crate::report::markdown::{self, ReportContext};
use crate::report::outputs::ReportStatus;
use crate::report::text;
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::Write;
use std::time::Duration;

/// The time limit for reporting that a run cannot start.
const REPORT_TIMEOUT: Duration = Duration::from_secs(30);

/// The end of a job in which no run starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobEnd {
    /// Its status.
    pub status: RunStatus,
    /// Its reason code.
    pub reason: Reason,
    /// Why, in one sentence.
    pub why: String,
    /// What the user can do about it.
    pub remedy: Option<String>,
    /// What could not be reported on GitHub.
    pub incidents: Vec<String>,
}

/// Why no run starts.
#[derive(Debug)]
pub enum NoRun {
    /// The job ends without one.
    Over(JobEnd),
    /// None can start.
    Failed(error::Error),
}

impl From<JobEnd> for NoRun {
    fn from(ended: JobEnd) -> Self {
        Self::Over(ended)
    }
}

impl<E: Into<error::Error>> From<E> for NoRun {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

impl NoRun {
    /// Reports the end of the job without a run, and returns the exit code.
    ///
    /// # Errors
    /// When no run can start.
    pub fn report(self, context: &Context, out: &mut impl Write) -> error::Result<u8> {
        match self {
            Self::Over(end) => Ok(ended(context, &end, out)),
            Self::Failed(error) => Err(error),
        }
    }
}

impl JobEnd {
    /// There is nothing to do.
    pub fn nothing(why: impl Into<String>) -> Self {
        Self::new(RunStatus::NoWork, Reason::NoWork, why.into(), None)
    }

    /// An end about which everything could be reported.
    pub fn new(status: RunStatus, reason: Reason, why: String, remedy: Option<String>) -> Self {
        Self {
            status,
            reason,
            why,
            remedy,
            incidents: Vec::new(),
        }
    }

    /// The request is refused.
    pub fn refused(refusal: &Refusal) -> Self {
        let (why, remedy) = (refusal.to_string(), refusal.remedy().to_owned());
        Self::new(refusal.status(), refusal.reason(), why, Some(remedy))
    }

    /// The reason and the remedy.
    fn told(&self) -> impl Iterator<Item = &str> {
        let told = std::iter::once(&self.why).chain(&self.remedy);
        told.map(String::as_str)
    }
}

/// Reports the end to the job of the step and returns the exit code. `out` is the log.
fn ended(context: &Context, ended: &JobEnd, out: &mut impl Write) -> u8 {
    let is_refusal = ended.reason != Reason::NoWork;
    let in_actions = context.in_actions();
    let line = format!("{}: {}", ended.status.as_str(), text::line(&ended.why));
    let line = if in_actions { neutral(&line) } else { line };
    let _ = writeln!(out, "{line}");
    for hint in ended.remedy.iter().chain(&ended.incidents) {
        let _ = writeln!(out, "  {}", neutral(&text::line(hint)));
    }
    let note = (in_actions && is_refusal).then(|| note(ended));
    let summary = if is_refusal {
        let remedy = ended.remedy.as_deref();
        markdown::refusal_comment(&ended.why, remedy, &ReportContext::default())
    } else {
        format!("⚪ Nothing to do: {}\n", markdown::escaped(&ended.why))
    };
    let report_status = match ended.incidents.as_slice() {
        [] => ReportStatus::Ok,
        _ => ReportStatus::Degraded,
    };
    let end = (ended.status, ended.reason);
    refusal::tell(context, note, &summary, end, &ended.why, report_status, out);
    ended.status.exit_code(None)
}

fn note(ended: &JobEnd) -> Annotation {
    let lines: Vec<&str> = ended.told().collect();
    Annotation {
        // A stranger's request must not look like a failure of the repository.
        level: match ended.status {
            RunStatus::NoWork => Level::Notice,
            _ => Level::Error,
        },
        path: ".github".to_owned(),
        title: "Sprag did not start".to_owned(),
        message: text::block(&lines.join("\n")),
        ..Annotation::default()
    }
}

/// The destination of the answer to a request.
pub struct ReplyTarget<'a> {
    /// The repository.
    pub repo: &'a Repo,
    /// The account of the token.
    pub identity: Option<&'a Identity>,
    /// GitHub.
    pub place: &'a Place,
    /// What gets the reaction.
    pub react_to: Option<ReactTo>,
    /// The issue or pull request.
    pub number: Option<u64>,
    /// Sprag's comment there.
    pub comment: Option<Page>,
    /// The state that the comment's first line keeps.
    pub state: State,
    /// Whether nothing may be reported on GitHub.
    pub is_silent: bool,
}

/// A comment with the reason and the remedy below it, once.
fn with_note(text: &str, ended: &JobEnd) -> String {
    let told: Vec<&str> = ended.told().collect();
    let told = markdown::escaped(&text::upper_first(&told.join(". ")));
    if text.contains(&told) {
        text.to_owned()
    } else {
        format!("{}\n\n---\n\n{told}\n", text.trim_end())
    }
}

impl ReplyTarget<'_> {
    /// Reports a decision against a run, as far as the decision allows.
    pub async fn declined(&self, declined: &Declined) -> JobEnd {
        match declined {
            Declined::Nothing { reason } => JobEnd::nothing(reason),
            Declined::Refused(refusal) => {
                let mut ended = JobEnd::refused(refusal);
                self.refused(refusal.reply(), &mut ended).await;
                ended
            }
        }
    }

    /// Reports that there is nothing to do. Whoever asked with a comment gets a reaction.
    pub async fn nothing(&self, why: &str) -> JobEnd {
        let mut ended = JobEnd::nothing(why);
        self.react(Reaction::Rocket, &mut ended).await;
        ended
    }

    async fn refused(&self, reply: RefusalReply, ended: &mut JobEnd) {
        if reply >= RefusalReply::Reaction {
            self.react(Reaction::Confused, ended).await;
        }
        let text = match reply {
            RefusalReply::Nothing | RefusalReply::Reaction => return,
            RefusalReply::Note => {
                let before = self.before().await.unwrap_or_default();
                with_note(&self.with_state(&before), ended)
            }
            RefusalReply::Comment => {
                let remedy = ended.remedy.as_deref();
                markdown::refusal_comment(&ended.why, remedy, &self.context())
            }
        };
        self.comment(text, ended).await;
    }

    /// The text of the comment as it is, below the line with the present state.
    fn with_state(&self, before: &str) -> String {
        let line = self.state.encode(&self.place.name);
        let rest = before.split_once('\n').map_or("", |(_, rest)| rest);
        format!("{line}\n{}", rest.trim_end())
    }

    /// Answers a request that needs no agent.
    pub async fn answer(&self, authorised: &Authorised, triggers: &TriggerSettings) -> JobEnd {
        let context = ReportContext {
            trigger_phrase: Some(triggers.rules.trigger_phrase.clone()),
            ..self.context()
        };
        let mut ended = match authorised.candidate.request {
            Request::Stop => self.stop(authorised, triggers).await,
            Request::Status => {
                let state = &authorised.state;
                JobEnd::nothing(match (state.workflow_run, state.last_status) {
                    (Some(id), _) => {
                        format!("workflow run {id} works here, and has not told how it ended")
                    }
                    (None, Some(status)) => format!("the last run here ended {}", status.as_str()),
                    (None, None) => "no finished run is known here".to_owned(),
                })
            }
            _ => JobEnd::nothing("the commands are explained in the comment"),
        };
        let failed = ended.status != RunStatus::NoWork;
        let reaction = if failed {
            Reaction::Confused
        } else {
            Reaction::Rocket
        };
        self.react(reaction, &mut ended).await;
        let mut text = match (&authorised.candidate.request, self.before().await) {
            (Request::Help, None) => markdown::help_comment(&context),
            (_, None) => markdown::status_comment(None, &context),
            (request, Some(before)) => {
                let kept = self.with_state(&before);
                let help = without_marker(&markdown::help_comment(&context));
                match request {
                    Request::Help if !kept.contains(help.trim()) => {
                        format!("{kept}\n\n---\n\n{help}")
                    }
                    _ => kept,
                }
            }
        };
        if failed {
            text = with_note(&text, &ended);
        }
        self.comment(text, &mut ended).await;
        ended
    }

    /// Cancels the workflow run that the comment names, if it is one of this workflow, and those that have an open
    /// check run on the pull request's head.
    async fn stop(&self, authorised: &Authorised, triggers: &TriggerSettings) -> JobEnd {
        let mut open = BTreeSet::new();
        if let Some(id) = self.state.workflow_run {
            // Other workflows can have written the comment that names the run.
            let told = self.repo.get(&format!("/actions/runs/{id}")).await;
            let told: Value = told.unwrap_or_default();
            let is_own = |field: &str| told[field].as_str() == triggers.own_workflow.as_deref();
            let is_unnamed = told["name"].as_str().is_none_or(str::is_empty);
            open.extend((is_unnamed || is_own("name") || is_own("path")).then_some(id));
        }
        if let Some(head) = &authorised.candidate.head_sha {
            match self.repo.check_runs(head, self.place.name.as_str()).await {
                Ok(there) => {
                    let there = there.iter().filter(|check| check.status != "completed");
                    open.extend(there.filter_map(|check| workflow_run(&check.details_url)));
                }
                Err(error) if open.is_empty() => {
                    return not_answered("the runs could not be found", &error);
                }
                Err(_) => {}
            }
        }
        let (mut stopped, mut failed) = (0_u64, None);
        for run in &open {
            match self.repo.cancel_workflow_run(*run).await {
                Ok(()) => stopped += 1,
                // The run has ended without closing its check run.
                Err(error) if error.kind == ErrorKind::Conflict => {}
                Err(error) => failed = Some(error),
            }
        }
        match (failed, stopped) {
            (Some(error), _) => not_answered("a run could not be cancelled", &error),
            (None, 0) => JobEnd::nothing("no run is active here"),
            _ => JobEnd::nothing(format!("{} asked to stop", text::count(stopped, "run"))),
        }
    }

    fn context(&self) -> ReportContext {
        ReportContext {
            place: self.place.clone(),
            state_line: Some(self.state.encode(&self.place.name)),
            ..ReportContext::default()
        }
    }

    async fn before(&self) -> Option<String> {
        let comment = self.repo.comment(self.comment.as_ref()?.id).await;
        comment.ok().map(|comment| comment.body)
    }

    async fn react(&self, reaction: Reaction, ended: &mut JobEnd) {
        let Some(target) = self.react_to.filter(|_| !self.is_silent) else {
            return;
        };
        if let Err(error) = self.repo.react(target, reaction).await {
            ended.incidents.push(format!("no reaction: {error}"));
        }
    }

    async fn comment(&self, text: String, ended: &mut JobEnd) {
        let Some(number) = self.number.filter(|_| !self.is_silent) else {
            return;
        };
        let said = match (&self.comment, self.identity) {
            (Some(page), _) => self.repo.update_comment(page.id, &text).await,
            (None, Some(identity)) => {
                let marker = self.place.name.marker();
                self.repo
                    .create_comment(number, &text, &marker, identity)
                    .await
            }
            (None, None) => return,
        };
        if let Err(error) = said {
            ended.incidents.push(format!("no comment: {error}"));
        }
    }
}

/// Reports to whoever asked for a run why it cannot start, such as a missing plan or agent. Returns what could
/// not be reported.
pub async fn report_not_started(
    context: &Context,
    request: &RunRequest,
    error: &error::Error,
) -> Vec<String> {
    let Some(actions) = ActionsEnvironment::of(context).filter(|_| request.delivery.report) else {
        return Vec::new();
    };
    let repo = match actions.repo() {
        Ok(repo) => repo.within(REPORT_TIMEOUT),
        Err(error) => return vec![error.to_string()],
    };
    let (status, reason) = refusal::end_of(error.kind);
    let identity = repo.identity().await;
    let told = ReplyTarget {
        repo: &repo,
        identity: identity.as_ref().ok(),
        place: &request.context.place,
        react_to: request.react_to,
        number: request.number.filter(|_| request.react_to.is_some()),
        comment: request.comment.clone(),
        state: request.state.clone().end(status),
        is_silent: false,
    };
    let remedy = (!error.hints.is_empty()).then(|| error.hints.join("; "));
    let mut ended = JobEnd::new(status, reason, error.message.clone(), remedy);
    let in_comment = request.delivery.comment;
    let answer = if in_comment {
        RefusalReply::Comment
    } else {
        RefusalReply::Reaction
    };
    told.refused(answer, &mut ended).await;
    ended.incidents
}

fn not_answered(what: &str, error: &Error) -> JobEnd {
    let remedy = "Give the job's token `actions: write` and `checks: read`.".to_owned();
    let why = format!("{what}: {error}");
    let (status, reason) = (RunStatus::Environment, Reason::Environment);
    JobEnd::new(status, reason, why, Some(remedy))
}

/// The id in a workflow run's URL, such as `https://github.com/o/r/actions/runs/1`.
fn workflow_run(url: &str) -> Option<u64> {
    let (_, rest) = url.split_once("/actions/runs/")?;
    rest.split('/').next()?.parse().ok()
}

fn without_marker(text: &str) -> String {
    match text.split_once('\n') {
        Some((first, rest)) if first.starts_with(MARKER) => rest.trim_start().to_owned(),
        _ => text.to_owned(),
    }
}
