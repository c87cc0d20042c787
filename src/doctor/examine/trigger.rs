//! What the event of this job would start.

use crate::doctor::facts::Trigger;
use crate::doctor::finding::Finding;
use crate::domain::text::one_line;
use crate::domain::trigger::Request;
use crate::domain::trigger::payload::{Event, PullRefs};
use crate::domain::trigger::settings::TriggerSettings;
use crate::domain::trigger::triage::{Candidate, Needs, Triage, triage};

/// Maximum length in characters of foreign text that is shown.
const SHOWN: usize = 60;

/// Interprets an event, as far as its payload alone allows.
pub fn read(name: &str, event: &Event, settings: &TriggerSettings) -> Trigger {
    let name = name.to_owned();
    match triage(event, settings) {
        Triage::Nothing { reason } => Trigger::Nothing {
            event: name,
            reason,
        },
        Triage::Refused { refusal, .. } => Trigger::Refused {
            event: name,
            reason: refusal.to_string(),
            remedy: refusal.remedy().to_owned(),
        },
        Triage::Candidate(candidate) => Trigger::Asks {
            event: name,
            who: candidate.asker.as_ref().map(|asker| asker.login.clone()),
            what: what(&candidate),
            needs_hub: candidate.needs != Needs::default(),
            of_fork: is_of_fork(event),
        },
    }
}

fn what(candidate: &Candidate) -> String {
    match &candidate.request {
        Request::Instruction(text) => format!("a task: {}", one_line(text, SHOWN)),
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
    let Event::PullRequest {
        target: false,
        event,
    } = event
    else {
        return false;
    };
    let pull = event.subject.pull.as_ref();
    pull.is_some_and(PullRefs::is_of_fork)
}

pub(super) fn finding(trigger: &Trigger) -> Option<Finding> {
    const CHECK: &str = "trigger";
    Some(match trigger {
        Trigger::None => return None,
        Trigger::Unreadable(why) => Finding::warn(
            CHECK,
            why,
            "name a plan or a prompt in the step, or pass the job's event to it",
        ),
        Trigger::Nothing { event, reason } => Finding::warn(
            CHECK,
            format!("{event} starts nothing: {reason}"),
            "nothing to fix if this run should do nothing; otherwise name a plan or a prompt in the step",
        ),
        Trigger::Refused {
            event,
            reason,
            remedy,
        } => Finding::fail(CHECK, format!("{event} is refused: {reason}"), remedy),
        Trigger::Asks {
            event,
            who,
            what,
            needs_hub,
            of_fork,
        } => {
            let by = match who {
                Some(who) => format!(" by {}", one_line(who, SHOWN)),
                None => String::new(),
            };
            let may = if *needs_hub {
                ", if that is permitted"
            } else {
                ""
            };
            let found = format!("{event}{by} asks for {what}{may}");
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
    })
}
