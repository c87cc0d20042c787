//! Determines what an event requests, from the event alone.

use super::payload::{
    Actor, CheckedEvent, CommentEvent, Common, DiffLines, DispatchEvent, Event, PullRefs,
    PushEvent, ReviewEvent, Subject, SubjectEvent,
};
use super::settings::TriggerSettings;
use super::{Refusal, Request, clean, marker, phrase, refname};

/// The prefix of the branches that Sprag creates for its own pull requests.
pub const OWN_BRANCHES: &str = "sprag/";

/// Whether only a person with write access, or the repository itself, can cause an event with this name.
pub fn is_of_a_writer(event_name: &str) -> bool {
    let writers = [
        "push",
        "schedule",
        "workflow_dispatch",
        "repository_dispatch",
    ];
    writers.contains(&event_name)
}

/// The result of the triage of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Triage {
    /// There is no request.
    Nothing {
        /// The reason, in one sentence.
        reason: String,
    },
    /// The request is refused.
    Refused {
        /// The reason.
        refusal: Refusal,
        /// The request, if the asker is known: see [`super::authorise::may_ask`].
        candidate: Option<Box<Candidate>>,
    },
    /// There is a request: see [`super::authorise::authorise`].
    Candidate(Box<Candidate>),
}

/// A request, with its asker and place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// The repository's default branch, if the event contains it.
    pub default_branch: Option<String>,
    /// The asker; `None` if the workflow itself (`schedule`, `push`) or a failure is the cause.
    pub asker: Option<Requester>,
    /// Whether no person asked: a bot or a failed check did.
    pub by_machine: bool,
    /// The request.
    pub request: Request,
    /// The issue or pull request.
    pub subject: Option<Subject>,
    /// The comment, which receives the reactions.
    pub comment: Option<CommentRef>,
    /// The event's commit.
    pub head_sha: Option<String>,
    /// The event's branch, checked by [`refname::check_branch`].
    pub head_ref: Option<String>,
    /// The location of the comment in the diff.
    pub place: Option<DiffLines>,
    /// The review's text.
    pub review_body: Option<String>,
    /// The name of the workflow or app whose checks failed.
    pub checks_name: Option<String>,
    /// The facts that must be fetched before the request is decided or carried out.
    pub needs: Needs,
    /// Distinguishes this request from others, for [`marker::State::has_answered`].
    pub answer_key: Option<String>,
    /// The time of the request, in GitHub's format. Text that was written or changed later is ignored.
    pub asked_at: Option<String>,
    /// Notes for the reader of the report.
    pub notes: Vec<String>,
}

impl Candidate {
    /// The number of the issue or pull request.
    pub fn number(&self) -> Option<u64> {
        self.subject.as_ref().map(|subject| subject.number)
    }

    /// Whether it is about a pull request.
    pub fn is_pull(&self) -> bool {
        self.subject.as_ref().is_some_and(|subject| subject.is_pull)
    }
}

/// The account that asked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Requester {
    /// The login.
    pub login: String,
    /// The association as GitHub words it, if the event contains it.
    pub association: Option<String>,
    /// Whether it is an app or a bot; only listed bots become askers.
    pub is_bot: bool,
}

/// A comment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommentRef {
    /// A comment on an issue or in a pull request's conversation.
    Issue(u64),
    /// A comment on lines of a pull request.
    Review(u64),
}

/// The facts that must be fetched.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Needs {
    /// The asker's permission on the repository.
    pub permission: bool,
    /// The pull request.
    pub pull_request: bool,
    /// The comments of the issue or pull request, one of which contains Sprag's own state.
    pub comments: bool,
    /// The failed jobs and their logs.
    pub jobs: bool,
}

/// Determines what an event requests.
pub fn triage(event: &Event, settings: &TriggerSettings) -> Triage {
    let result = match event {
        Event::IssueComment(event) => comment(event, settings),
        Event::ReviewComment(event) => comment(event, settings),
        Event::Issue(event) => labelled(event, settings),
        Event::PullRequest { target, event } => pull_request(*target, event, settings),
        Event::Review(event) => review(event, settings),
        Event::WorkflowRun(event) => checked(event, "workflow_run", settings),
        Event::CheckSuite(event) => checked(event, "check_suite", settings),
        Event::Schedule(common) => Ok(configured(common, settings)),
        Event::WorkflowDispatch(event) => dispatch(event, settings),
        Event::RepositoryDispatch(event) => dispatch(event, settings),
        Event::Push(event) => push(event, settings),
        Event::Other(name) => Err(nothing(format!(
            "the event `{name}` starts nothing, but `workflow_dispatch`, `schedule` and `push` do"
        ))),
    };
    match result {
        Ok(candidate) => match checked_names(&candidate) {
            Ok(()) => Triage::Candidate(Box::new(candidate)),
            Err(refusal) => Triage::Refused {
                refusal,
                candidate: Some(Box::new(candidate)),
            },
        },
        Err(triage) => triage,
    }
}

fn refused(refusal: Refusal) -> Triage {
    Triage::Refused {
        refusal,
        candidate: None,
    }
}

fn nothing(reason: impl Into<String>) -> Triage {
    Triage::Nothing {
        reason: reason.into(),
    }
}

/// A candidate with the fields that all events have.
fn candidate(common: &Common, request: Request) -> Candidate {
    Candidate {
        default_branch: common.default_branch.clone(),
        asker: None,
        by_machine: false,
        request,
        subject: None,
        comment: None,
        head_sha: None,
        head_ref: None,
        place: None,
        review_body: None,
        checks_name: None,
        needs: Needs::default(),
        answer_key: None,
        asked_at: None,
        notes: Vec::new(),
    }
}

/// A candidate on an issue or a pull request, requested by somebody.
fn on_subject(mut from: Candidate, subject: &Subject, asker: Requester) -> Candidate {
    from.by_machine = asker.is_bot;
    from.needs = Needs {
        permission: !asker.is_bot,
        pull_request: subject.is_pull,
        comments: true,
        ..Needs::default()
    };
    from.asker = Some(asker);
    if let Some(PullRefs {
        head_ref, head_sha, ..
    }) = &subject.pull
    {
        (from.head_ref, from.head_sha) = (Some(head_ref.clone()), Some(head_sha.clone()));
    }
    from.subject = Some(subject.clone());
    from
}

/// The asker. Sprag itself and bots that are not listed start nothing.
fn asker(
    actor: &Actor,
    association: Option<&str>,
    settings: &TriggerSettings,
) -> Result<Requester, Triage> {
    let login = clean::clean_line(&actor.login, 100);
    if login.is_empty() {
        return Err(nothing("the account that asked does not exist any more"));
    }
    if settings.is_own(&actor.login) {
        return Err(nothing(format!(
            "{login} is the account that Sprag itself works with"
        )));
    }
    if actor.is_bot && !settings.lists_bot(&actor.login) {
        return Err(nothing(format!(
            "{login} is a bot that `allowed-bots` does not list"
        )));
    }
    Ok(Requester {
        login: actor.login.clone(),
        association: association
            .map(str::to_owned)
            .filter(|word| !word.is_empty()),
        is_bot: actor.is_bot,
    })
}

fn comment(event: &CommentEvent, settings: &TriggerSettings) -> Result<Candidate, Triage> {
    if event.common.action != "created" {
        let action = clean::clean_line(&event.common.action, 40);
        return Err(nothing(format!(
            "the comment was {action}, and only a new one starts anything"
        )));
    }
    if marker::is_marked(&event.body) {
        return Err(nothing("the comment is one of Sprag's own"));
    }
    let request = phrase::find(&event.body, &settings.rules.trigger_phrase)
        .ok_or_else(|| nothing(no_phrase("comment", settings)))?;
    let asker = asker(&event.author, Some(&event.association), settings)?;
    let mut candidate = on_subject(candidate(&event.common, request), &event.subject, asker);
    let (id, is_review) = (event.id, event.place.is_some());
    candidate.comment = Some(if is_review {
        CommentRef::Review(id)
    } else {
        CommentRef::Issue(id)
    });
    let kind = if is_review {
        "review-comment"
    } else {
        "comment"
    };
    candidate.answer_key = Some(format!("{kind}:{id}"));
    candidate.place.clone_from(&event.place);
    candidate.asked_at.clone_from(&event.created_at);
    Ok(candidate)
}

fn no_phrase(what: &str, settings: &TriggerSettings) -> String {
    format!(
        "no line of the {what} begins with `{}`",
        settings.rules.trigger_phrase
    )
}

fn labelled(event: &SubjectEvent, settings: &TriggerSettings) -> Result<Candidate, Triage> {
    let wanted = format!("`{}`", settings.rules.trigger_label);
    if event.common.action != "labeled" {
        let action = clean::clean_line(&event.common.action, 40);
        let reason = format!("the action `{action}` starts nothing, only the label {wanted} does");
        return Err(nothing(reason));
    }
    let label = event.label.as_deref().unwrap_or_default();
    if settings.rules.trigger_label.is_empty()
        || !label.eq_ignore_ascii_case(&settings.rules.trigger_label)
    {
        let label = clean::clean_line(label, 60);
        return Err(nothing(format!("the label is `{label}`, not {wanted}")));
    }
    if !event.subject.open {
        return Err(nothing(format!("#{} is closed", event.subject.number)));
    }
    let sender = event.common.sender.clone().unwrap_or_default();
    let asker = asker(&sender, None, settings)?;
    let mut candidate = on_subject(
        candidate(&event.common, Request::IssuePlan),
        &event.subject,
        asker,
    );
    let changed = event.subject.updated_at.clone();
    let at = changed.as_deref().unwrap_or_default();
    candidate.answer_key = Some(format!("label:{}:{at}", event.subject.number));
    candidate.asked_at = changed;
    Ok(candidate)
}

fn pull_request(
    target: bool,
    event: &SubjectEvent,
    settings: &TriggerSettings,
) -> Result<Candidate, Triage> {
    let candidate = labelled(event, settings)?;
    if target && !settings.rules.allow_pull_request_target {
        return Err(refused(Refusal::PullRequestTarget));
    }
    Ok(candidate)
}

fn review(event: &ReviewEvent, settings: &TriggerSettings) -> Result<Candidate, Triage> {
    if event.common.action != "submitted" {
        let action = clean::clean_line(&event.common.action, 40);
        return Err(nothing(format!(
            "the review was {action}, and only a new one starts anything"
        )));
    }
    if marker::is_marked(&event.body) {
        return Err(nothing("the review is one of Sprag's own"));
    }
    let subject = &event.subject;
    let said = phrase::find(&event.body, &settings.rules.trigger_phrase);
    let request = match said {
        Some(request) => request,
        None if event.state != "changes_requested" => {
            return Err(nothing(no_phrase("review", settings)));
        }
        None if !is_ours(subject, settings) => {
            let reason = format!(
                "the pull request has no label `{}` and is not from a branch of Sprag's",
                settings.rules.trigger_label
            );
            return Err(nothing(reason));
        }
        None => Request::Review {
            review_id: event.id,
        },
    };
    let asker = asker(&event.author, Some(&event.association), settings)?;
    let mut candidate = on_subject(candidate(&event.common, request), subject, asker);
    candidate.review_body = Some(event.body.clone());
    candidate.answer_key = Some(format!("review:{}", event.id));
    candidate.asked_at.clone_from(&event.submitted_at);
    Ok(candidate)
}

/// Whether Sprag works on this pull request.
fn is_ours(subject: &Subject, settings: &TriggerSettings) -> bool {
    let labelled = subject
        .labels
        .iter()
        .any(|label| label.eq_ignore_ascii_case(&settings.rules.trigger_label));
    let pull = subject.pull.as_ref();
    let own_branch =
        pull.is_some_and(|pull| pull.head_ref.starts_with(OWN_BRANCHES) && !pull.is_of_fork());
    labelled || own_branch
}

/// The branch whose failure is to be fixed, or why there is nothing to do.
fn branch_to_fix<'e>(
    event: &'e CheckedEvent,
    name: &str,
    settings: &TriggerSettings,
) -> Result<&'e str, String> {
    let what = match name {
        "workflow_run" => "workflow run",
        _ => "check suite",
    };
    let failed = matches!(event.conclusion.as_deref(), Some("failure" | "timed_out"));
    if event.common.action != "completed" || !failed {
        return Err(format!("the {what} has not failed"));
    }
    let own = settings.own_workflow.as_deref();
    let own = own.filter(|own| !own.is_empty());
    if own.is_some_and(|own| event.path.as_deref() == Some(own) || event.name == own) {
        return Err("the workflow that failed is the one that runs Sprag".to_owned());
    }
    let Some(branch) = event.head_branch.as_deref() else {
        return Err(format!("the {what} is of a branch of another repository"));
    };
    if event.head_repository.is_some() && event.head_repository != event.common.repository {
        return Err(format!("the {what} is from a fork"));
    }
    if name == "workflow_run" && event.head_repository.is_none() {
        return Err("the workflow run is of a repository that is gone".to_owned());
    }
    let is_default = event.common.default_branch.as_deref() == Some(branch);
    if is_default {
        return Err(format!("the {what} is of the default branch"));
    }
    Ok(branch)
}

fn checked(
    event: &CheckedEvent,
    name: &'static str,
    settings: &TriggerSettings,
) -> Result<Candidate, Triage> {
    let branch = branch_to_fix(event, name, settings).map_err(nothing)?;
    let request = match name {
        "workflow_run" => Request::FixRun { run_id: event.id },
        _ => Request::FixSuite { suite_id: event.id },
    };
    let mut candidate = candidate(&event.common, request);
    candidate.by_machine = true;
    let pull = event.pulls.first().copied();
    candidate.subject = pull.map(|number| Subject {
        number,
        is_pull: true,
        open: true,
        ..Subject::default()
    });
    candidate.needs = Needs {
        pull_request: pull.is_some(),
        comments: pull.is_some(),
        jobs: true,
        ..Needs::default()
    };
    if event.pulls.len() > 1 {
        let note = format!(
            "The branch has {} pull requests; this is about the first.",
            event.pulls.len()
        );
        candidate.notes.push(note);
    }
    candidate.head_ref = Some(branch.to_owned());
    candidate.head_sha = Some(event.head_sha.clone());
    candidate.checks_name =
        Some(clean::clean_line(&event.name, 100)).filter(|name| !name.is_empty());
    candidate.answer_key = Some(format!(
        "{}:{}:{}",
        name.replace('_', "-"),
        event.id,
        event.attempt
    ));
    candidate.asked_at.clone_from(&event.updated_at);
    Ok(candidate)
}

/// The queue in the settings, otherwise the source that the step configures.
fn source(settings: &TriggerSettings) -> Request {
    let queue = settings.queue.clone().filter(|queue| !queue.is_empty());
    queue.map_or(Request::Configured, Request::Queue)
}

fn configured(common: &Common, settings: &TriggerSettings) -> Candidate {
    candidate(common, source(settings))
}

fn dispatch(event: &DispatchEvent, settings: &TriggerSettings) -> Result<Candidate, Triage> {
    let given = [&event.plan, &event.prompt, &event.queue];
    let request = match given.into_iter().flatten().count() {
        0 => source(settings),
        1 => Request::Dispatch {
            plan: event.plan.clone(),
            prompt: event.prompt.as_deref().map(clean::clean),
            queue: event.queue.clone(),
        },
        _ => {
            return Err(refused(Refusal::SeveralSources));
        }
    };
    let mut candidate = candidate(&event.common, request);
    let sender = event.common.sender.as_ref();
    candidate.asker = sender.map(|sender| Requester {
        login: sender.login.clone(),
        association: None,
        is_bot: sender.is_bot,
    });
    let branch = event.reference.as_deref();
    let tag = branch.is_some_and(|name| name.starts_with("refs/tags/"));
    candidate.head_ref = branch
        .filter(|_| !tag)
        .map(|name| name.strip_prefix("refs/heads/").unwrap_or(name).to_owned());
    Ok(candidate)
}

fn push(event: &PushEvent, settings: &TriggerSettings) -> Result<Candidate, Triage> {
    if event.deleted {
        return Err(nothing("the push deleted a branch"));
    }
    let Some(branch) = event.reference.strip_prefix("refs/heads/") else {
        return Err(nothing("the push was not to a branch"));
    };
    if event
        .message
        .lines()
        .any(|line| line.starts_with("Sprag-Run: "))
    {
        return Err(nothing("the last commit of the push is one of Sprag's own"));
    }
    let sender = event.common.sender.as_ref();
    if let Some(sender) = sender.filter(|sender| !sender.login.is_empty()) {
        asker(sender, None, settings)?;
    }
    let mut candidate = configured(&event.common, settings);
    candidate.head_ref = Some(branch.to_owned());
    candidate.head_sha = Some(event.after.clone());
    Ok(candidate)
}

/// Checks the branch names and paths from the event.
fn checked_names(candidate: &Candidate) -> Result<(), Refusal> {
    let wrong_path = match &candidate.request {
        Request::Plan(path) | Request::Queue(path) => {
            refname::check_path(path).err().map(|what| (path, what))
        }
        Request::Dispatch { plan, queue, .. } => plan
            .iter()
            .chain(queue)
            .find_map(|path| refname::check_path(path).err().map(|what| (path, what))),
        _ => None,
    };
    if let Some((path, what)) = wrong_path {
        return Err(Refusal::InvalidPath {
            path: clean::clean_line(path, 100).replace('`', "'"),
            what: what.to_owned(),
        });
    }
    let base = candidate
        .subject
        .as_ref()
        .and_then(|subject| subject.pull.as_ref());
    for name in candidate
        .head_ref
        .iter()
        .chain(base.map(|pull| &pull.base_ref))
    {
        checked_branch(name)?;
    }
    Ok(())
}

/// Checks a branch name that somebody else chose.
pub(super) fn checked_branch(name: &str) -> Result<(), Refusal> {
    refname::check_branch(name).map_err(|what| Refusal::InvalidBranch {
        name: clean::clean_line(name, 100).replace('`', "'"),
        what: what.to_owned(),
    })
}

#[cfg(test)]
mod tests;
