//! What the event of this job would start.

use crate::context::Context;
use crate::doctor::configuration::Configured;
use crate::doctor::finding::Finding;
use crate::domain::text::one_line;
use crate::domain::trigger::Request;
use crate::domain::trigger::payload::{Event, Subject};
use crate::domain::trigger::settings::TriggerSettings;
use crate::domain::trigger::triage::{Candidate, Needs, Triage, triage};
use crate::error::Result;
use crate::github::{actions_environment, lookup};

/// Maximum length in characters of foreign text that is shown.
const SHOWN: usize = 60;

/// An event, and what its payload alone shows of the request.
pub(super) struct Trigger {
    name: String,
    of_fork: bool,
    triage: Triage,
}

impl Trigger {
    pub(super) fn new(name: String, event: &Event, settings: &TriggerSettings) -> Self {
        Self {
            name,
            of_fork: is_of_fork(event),
            triage: triage(event, settings),
        }
    }

    /// Whether GitHub must be asked before the work starts; `None` if no work is requested.
    pub(super) fn asks(&self) -> Option<bool> {
        match &self.triage {
            Triage::Candidate(candidate) => Some(candidate.needs != Needs::default()),
            _ => None,
        }
    }
}

/// The event of this job, if there is one.
pub(super) fn read(context: &Context, configured: Option<&Configured>) -> Option<Result<Trigger>> {
    let (name, _) = actions_environment::event(context).filter(|_| context.in_actions())?;
    let settings = configured.map(|configured| configured.settings.clone());
    let settings = lookup::trigger_settings(&settings.unwrap_or_default(), context);
    Some(lookup::read(context).map(|event| Trigger::new(name, &event, &settings)))
}

pub(super) fn finding(trigger: &Result<Trigger>) -> Finding {
    const CHECK: &str = "trigger";
    let Trigger {
        name,
        of_fork,
        triage,
    } = match trigger {
        Ok(trigger) => trigger,
        Err(error) => {
            return Finding::warn(
                CHECK,
                &error.message,
                "name a plan or a prompt in the step, or pass the job's event to it",
            );
        }
    };
    let candidate = match triage {
        Triage::Nothing { reason } => {
            return Finding::warn(
                CHECK,
                format!("{name} starts nothing: {reason}"),
                "nothing to fix if this run should do nothing; otherwise name a plan or a prompt in the step",
            );
        }
        Triage::Refused { refusal, .. } => {
            let found = format!("{name} is refused: {refusal}");
            return Finding::fail(CHECK, found, refusal.remedy());
        }
        Triage::Candidate(candidate) => candidate,
    };
    let by = match &candidate.asker {
        Some(asker) => format!(" by {}", one_line(&asker.login, SHOWN)),
        None => String::new(),
    };
    let condition = if candidate.needs == Needs::default() {
        ""
    } else {
        ", if that is permitted"
    };
    let found = format!("{name}{by} asks for {}{condition}", requested(candidate));
    if *of_fork {
        Finding::warn(
            CHECK,
            format!("{found}; for a fork, the job's token can only read"),
            "the result is in the log and the step summary; a job triggered by a comment has a token that can write",
        )
    } else {
        Finding::ok(CHECK, found)
    }
}

fn requested(candidate: &Candidate) -> String {
    match &candidate.request {
        Request::Instruction(text) => format!("a task: {}", one_line(text, SHOWN)),
        Request::Ask(text) => format!("an answer to: {}", one_line(text, SHOWN)),
        Request::Answer(text) => format!("work with the answer: {}", one_line(text, SHOWN)),
        Request::Draft(_) => "a plan".to_owned(),
        Request::Approve(code) => format!("approval of the plan {}", one_line(code, SHOWN)),
        Request::Plan(path) => format!("the plan {}", one_line(path, SHOWN)),
        Request::Retry => "the last work again".to_owned(),
        Request::Continue => "the last run to be continued".to_owned(),
        Request::Rebase => "the base branch to be merged".to_owned(),
        Request::Stop => "all active runs to stop".to_owned(),
        Request::Status => "the status of active runs".to_owned(),
        Request::Help => "help".to_owned(),
        Request::IssuePlan => match &candidate.subject {
            Some(subject) => format!("the work that #{} describes", subject.number),
            None => "the work that it describes".to_owned(),
        },
        Request::FixRun { .. } | Request::FixSuite { .. } => {
            let name = candidate.checks_name.as_deref().unwrap_or("checks");
            format!("a fix of what failed in {}", one_line(name, SHOWN))
        }
        Request::Review { .. } => "the changes that a review requests".to_owned(),
        Request::Queue(dir) => format!("the next plan of {}", one_line(dir, SHOWN)),
        Request::Dispatch { plan, queue, .. } => match (plan, queue) {
            (Some(plan), _) => format!("the plan {}", one_line(plan, SHOWN)),
            (_, Some(queue)) => format!("the next plan of {}", one_line(queue, SHOWN)),
            _ => "a task".to_owned(),
        },
        Request::Configured => "the work that the step names".to_owned(),
    }
}

/// Whether the event is of a fork's pull request. GitHub gives such jobs a read-only token.
fn is_of_fork(event: &Event) -> bool {
    !event.is_target() && event.pull().is_some_and(Subject::is_of_fork)
}
