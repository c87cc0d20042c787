//! Decides whether a request is carried out, and where, from the candidate and the fetched facts.

use super::marker::{Begin, State};
use super::payload::Subject;
use super::settings::TriggerSettings;
use super::triage::{Candidate, checked_branch};
use super::{Refusal, Request, clean};

/// The fetched facts. A fact that [`super::triage::Needs`] does not name keeps its default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// The asker's permission; `None` if it could not be determined.
    pub access: Option<Access>,
    /// Why the permission could not be determined.
    pub access_error: String,
    /// The pull request; `None` if it could not be read.
    pub pull: Option<PullFacts>,
    /// The state in Sprag's own comment; `None` if there is none.
    pub state: Option<State>,
    /// Why Sprag's own comment could not be read, if it could not.
    pub state_error: Option<String>,
    /// The current day (UTC, `2026-01-31`).
    pub now_day: String,
    /// The repository's default branch, if the event does not contain it.
    pub default_branch: Option<String>,
    /// The attempt of the workflow run, from 1: a person who reruns a job wants the request repeated.
    pub run_attempt: u64,
    /// Whether the failed commit is one of Sprag's own, according to its trailer.
    pub head_is_own: bool,
}

/// A permission level on a repository, by GitHub's word in `permission` or `role_name`. A custom role of an organisation
/// has no level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, strum::EnumString)]
#[strum(serialize_all = "lowercase")]
pub enum Access {
    /// No more than everybody has.
    None,
    /// Read it.
    #[strum(serialize = "read", serialize = "pull")]
    Read,
    /// Manage issues and pull requests.
    Triage,
    /// Push to it.
    #[strum(serialize = "write", serialize = "push")]
    Write,
    /// Manage it.
    Maintain,
    /// Everything.
    Admin,
}

/// The current state of a pull request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PullFacts {
    /// Its title.
    pub title: String,
    /// Its text.
    pub body: String,
    /// Whether it is open.
    pub open: bool,
    /// Its head branch.
    pub head_ref: String,
    /// The head branch's commit.
    pub head_sha: String,
    /// `owner/name` of the head repository; `None` if it was deleted.
    pub head_repository: Option<String>,
    /// Its base branch.
    pub base_ref: String,
    /// `owner/name` of the base repository.
    pub base_repository: String,
}

/// An authorised request, and where to carry it out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authorised {
    /// The request, completed: it has the branch's newest commit, a title and text even if the event omits
    /// them, and all notes.
    pub candidate: Candidate,
    /// The existing branch to work on; `None` means a new branch from the base.
    pub branch: Option<String>,
    /// The target branch of the work.
    pub base_ref: Option<String>,
    /// Whether nothing may be pushed, because the branch belongs to a fork.
    pub report_only: bool,
    /// The current state, for `retry`, `continue` and `status`.
    pub state: State,
    /// The state to write while the run is in progress.
    pub next_state: State,
}

/// Why a candidate is not carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Declined {
    /// There is nothing to do.
    Nothing {
        /// The reason, in one sentence.
        reason: String,
    },
    /// The request is refused.
    Refused(Refusal),
}

impl From<Refusal> for Declined {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// Decides whether a candidate is carried out.
///
/// # Errors
/// The reason why not: nothing to do, or a refusal.
pub fn authorise(
    candidate: &Candidate,
    facts: &Facts,
    settings: &TriggerSettings,
) -> Result<Authorised, Declined> {
    may_ask(candidate, facts, settings)?;
    if let Some(why) = facts.state_error.clone() {
        return Err(Refusal::HistoryUnknown { why }.into());
    }
    let mut authorised = placed(candidate, facts)?;
    let state = facts.state.clone().unwrap_or_default();
    authorised.next_state = state.clone();
    if candidate.request.is_work() {
        open(candidate, facts)?;
        within_limits(candidate, facts, &state, settings)?;
        has_run_before(candidate, facts)?;
        authorised.next_state = authorised.next_state.begin(&Begin {
            day: &facts.now_day,
            answers: candidate.answer_key.as_deref(),
            by_machine: candidate.by_machine,
            request: &candidate.request,
        });
    } else {
        let next = &mut authorised.next_state;
        next.note_answered(candidate.answer_key.as_deref());
        authorised.next_state = authorised.next_state.bounded();
    }
    authorised.state = state;
    Ok(authorised)
}

/// Whether the asker may make requests at all. A person who may not does not learn of other problems.
///
/// # Errors
/// The reason why not.
pub fn may_ask(
    candidate: &Candidate,
    facts: &Facts,
    settings: &TriggerSettings,
) -> Result<(), Declined> {
    let key = candidate.answer_key.as_deref();
    let state = facts.state.as_ref();
    let is_answered = key.is_some_and(|key| state.is_some_and(|state| state.has_answered(key)));
    if is_answered && facts.run_attempt <= 1 {
        let reason = "this request was already handled; rerun the job to repeat it".to_owned();
        return Err(Declined::Nothing { reason });
    }
    Ok(allowed(candidate, facts, settings)?)
}

fn allowed(
    candidate: &Candidate,
    facts: &Facts,
    settings: &TriggerSettings,
) -> Result<(), Refusal> {
    let asker = candidate.asker.as_ref();
    let Some(asker) = asker.filter(|_| candidate.needs.permission) else {
        return Ok(());
    };
    if settings.lists_user(&asker.login) {
        return Ok(());
    }
    let login = clean::clean_line(&asker.login, 100);
    let Some(access) = facts.access else {
        let why = facts.access_error.clone();
        return Err(Refusal::PermissionUnknown { login, why });
    };
    if access < Access::Write {
        return Err(Refusal::NoWriteAccess { login });
    }
    if !association_fits(asker.association.as_deref(), settings) {
        return Err(Refusal::AssociationNotListed { login });
    }
    Ok(())
}

/// Whether the asker's association is allowed. A person with write access is an owner, a member or a
/// collaborator whatever the event says: GitHub shows private members of an organisation to others as
/// `CONTRIBUTOR` or `NONE`.
fn association_fits(association: Option<&str>, settings: &TriggerSettings) -> bool {
    let listed = |word: &str| {
        let mut words = settings.rules.allowed_associations.iter();
        words.any(|listed| listed.trim().eq_ignore_ascii_case(word))
    };
    match association {
        None => true,
        Some(word) if listed(word) => true,
        Some("OWNER" | "MEMBER" | "COLLABORATOR") => false,
        Some(_) => listed("MEMBER") || listed("COLLABORATOR"),
    }
}

/// Determines where the work is done.
fn placed(candidate: &Candidate, facts: &Facts) -> Result<Authorised, Refusal> {
    let default_branch = candidate
        .default_branch
        .clone()
        .or_else(|| facts.default_branch.clone());
    if let Some(name) = &default_branch {
        checked_branch(name)?;
    }
    let mut authorised = Authorised {
        candidate: candidate.clone(),
        branch: None,
        base_ref: default_branch,
        report_only: false,
        state: State::default(),
        next_state: State::default(),
    };
    if candidate.needs.pull_request {
        let Some(pull) = &facts.pull else {
            let number = candidate.number().unwrap_or_default();
            return Err(Refusal::PullRequestUnknown { number });
        };
        on_pull(&mut authorised, pull)?;
    } else if let Some(head) = &candidate.head_ref {
        // Failed checks and configured sources are worked on where they are. A queue uses the branch as its base.
        let is_queue = matches!(
            candidate.request,
            Request::Queue(_) | Request::Dispatch { queue: Some(_), .. }
        );
        if is_queue {
            authorised.base_ref = Some(head.clone());
        } else {
            authorised.branch = Some(head.clone());
        }
    }
    Ok(authorised)
}

fn on_pull(authorised: &mut Authorised, pull: &PullFacts) -> Result<(), Refusal> {
    let candidate = &mut authorised.candidate;
    checked_branch(&pull.head_ref)?;
    checked_branch(&pull.base_ref)?;
    let same = |head: &str| head.eq_ignore_ascii_case(&pull.base_repository);
    if pull.head_repository.is_none() && candidate.request.is_work() {
        return Err(Refusal::ForkIsGone);
    }
    authorised.report_only = !pull.head_repository.as_deref().is_some_and(same);
    let known = candidate.head_sha.as_ref();
    if known.is_some_and(|sha| *sha != pull.head_sha) {
        let note = "The pull request has newer commits than the request; the run uses the newest.";
        candidate.notes.push(note.to_owned());
    }
    if let Some(subject) = candidate.subject.as_mut().filter(|it| it.title.is_empty()) {
        subject.title.clone_from(&pull.title);
        subject.body.clone_from(&pull.body);
    }
    candidate.head_sha = Some(pull.head_sha.clone());
    authorised.branch = Some(pull.head_ref.clone());
    authorised.base_ref = Some(pull.base_ref.clone());
    Ok(())
}

fn open(candidate: &Candidate, facts: &Facts) -> Result<(), Declined> {
    let subject = candidate.subject.as_ref();
    let pull_is_open = facts.pull.as_ref().is_none_or(|pull| pull.open);
    if pull_is_open && subject.is_none_or(Subject::is_open) {
        return Ok(());
    }
    let what = subject.map_or("issue", Subject::kind);
    if candidate.asker.is_none() {
        let reason = format!("the {what} is closed");
        return Err(Declined::Nothing { reason });
    }
    Err(Refusal::Closed { what }.into())
}

/// Checks the loop guard and the limit on runs.
fn within_limits(
    candidate: &Candidate,
    facts: &Facts,
    state: &State,
    settings: &TriggerSettings,
) -> Result<(), Declined> {
    if candidate.by_machine && state.depth >= settings.rules.max_depth {
        let runs = state.depth;
        return Err(Refusal::TooManyMachineRuns { runs }.into());
    }
    let uncounted = candidate.subject.is_none() && candidate.needs.jobs;
    if uncounted && facts.head_is_own {
        let reason =
            "the commit that failed is one of Sprag's own, and no pull request counts the runs";
        return Err(Declined::Nothing {
            reason: reason.to_owned(),
        });
    }
    let runs = state.runs_on(&facts.now_day);
    if candidate.subject.is_some() && runs >= settings.rules.max_runs_per_day {
        return Err(Refusal::TooManyRunsToday { runs }.into());
    }
    Ok(())
}

fn has_run_before(candidate: &Candidate, facts: &Facts) -> Result<(), Refusal> {
    let state = facts.state.as_ref();
    let asks = state.is_some_and(|state| state.asks);
    let ran = state.is_some_and(|state| state.last_status.is_some() || state.asked.is_some());
    match candidate.request {
        Request::Answer(_) if !asks => Err(Refusal::NoQuestion),
        // Unfinished work is found by its reference, also if the earlier run left no comment.
        Request::Continue if candidate.subject.is_some() => Ok(()),
        Request::Retry | Request::Continue if !ran => {
            let why = String::new();
            Err(Refusal::NoEarlierRun { why })
        }
        Request::Rebase if !candidate.is_pull() => Err(Refusal::NotAPullRequest),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
