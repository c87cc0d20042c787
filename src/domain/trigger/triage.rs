//! Determines what an event requests, from the event alone.

use super::payload::{Actor, CheckedRun, DiffLines, Event, Subject};
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
#[derive(Debug, Clone, Default, PartialEq, Eq)]
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

impl CommentRef {
    /// Its id.
    pub fn id(self) -> u64 {
        let (Self::Issue(id) | Self::Review(id)) = self;
        id
    }
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
    let result = match event.name.as_str() {
        "issue_comment" => said(event, "comment", settings),
        "pull_request_review_comment" => said(event, "review-comment", settings),
        "pull_request_review" => said(event, "review", settings),
        "issues" | "pull_request" | "pull_request_target" => labelled(event, settings),
        "workflow_run" | "check_suite" => checked(event, settings),
        "schedule" => Ok(candidate(event, source(settings))),
        "workflow_dispatch" | "repository_dispatch" => dispatch(event, settings),
        "push" => push(event, settings),
        name => Err(nothing(format!(
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
fn candidate(event: &Event, request: Request) -> Candidate {
    let repository = event.repository.as_ref();
    Candidate {
        default_branch: repository.and_then(|repository| repository.default_branch.clone()),
        request,
        ..Candidate::default()
    }
}

/// A candidate on an issue or a pull request, requested by somebody.
fn on_subject(event: &Event, request: Request, subject: &Subject, asker: Requester) -> Candidate {
    let head = subject.head.as_ref();
    Candidate {
        by_machine: asker.is_bot,
        needs: Needs {
            permission: !asker.is_bot,
            pull_request: subject.is_pull,
            comments: true,
            ..Needs::default()
        },
        asker: Some(asker),
        head_ref: head.map(|head| head.branch.clone()),
        head_sha: head.map(|head| head.sha.clone()),
        subject: Some(subject.clone()),
        ..candidate(event, request)
    }
}

/// The asker. Sprag itself and bots that are not listed start nothing.
fn asker(
    actor: Option<&Actor>,
    association: Option<&str>,
    settings: &TriggerSettings,
) -> Result<Requester, Triage> {
    let actor = actor.cloned().unwrap_or_default();
    let is_bot = actor.is_bot();
    let login = clean::clean_line(&actor.login, 100);
    if login.is_empty() {
        return Err(nothing("the account that asked does not exist any more"));
    }
    if settings.is_own(&actor.login) {
        let reason = format!("{login} is the account that Sprag itself works with");
        return Err(nothing(reason));
    }
    if is_bot && !settings.lists_bot(&actor.login) {
        let reason = format!("{login} is a bot that `allowed-bots` does not list");
        return Err(nothing(reason));
    }
    let association = association.filter(|word| !word.is_empty());
    Ok(Requester {
        login: actor.login,
        association: association.map(str::to_owned),
        is_bot,
    })
}

/// The request of a comment or a review of this kind.
fn said(event: &Event, kind: &str, settings: &TriggerSettings) -> Result<Candidate, Triage> {
    let is_review = kind == "review";
    let (what, wanted, item) = if is_review {
        ("review", "submitted", &event.review)
    } else {
        ("comment", "created", &event.comment)
    };
    let subject = event.pull_request.as_ref().or(event.issue.as_ref());
    let (Some(item), Some(subject)) = (item, subject) else {
        return Err(nothing(format!("the event has no {what}")));
    };
    let action = event.action.as_deref().unwrap_or_default();
    if action != wanted {
        let action = clean::clean_line(action, 40);
        let reason = format!("the {what} was {action}, and only a new one starts anything");
        return Err(nothing(reason));
    }
    if marker::is_marked(&item.body) {
        return Err(nothing(format!("the {what} is one of Sprag's own")));
    }
    let phrase = &settings.rules.trigger_phrase;
    let state = item.state.as_deref().unwrap_or_default();
    let request = match phrase::find(&item.body, phrase) {
        Some(request) => request,
        None if !is_review || !state.eq_ignore_ascii_case("changes_requested") => {
            let reason = format!("no line of the {what} begins with `{phrase}`");
            return Err(nothing(reason));
        }
        None if !is_ours(subject, settings) => {
            let reason = format!(
                "the pull request has no label `{}` and is not from a branch of Sprag's",
                settings.rules.trigger_label
            );
            return Err(nothing(reason));
        }
        None => Request::Review { review_id: item.id },
    };
    let association = item.author_association.as_deref();
    let asker = asker(item.user.as_ref(), association, settings)?;
    Ok(Candidate {
        comment: match kind {
            "comment" => Some(CommentRef::Issue(item.id)),
            "review-comment" => Some(CommentRef::Review(item.id)),
            _ => None,
        },
        place: (kind == "review-comment").then(|| item.place()),
        review_body: is_review.then(|| item.body.clone()),
        answer_key: Some(format!("{kind}:{}", item.id)),
        asked_at: item.submitted_at.clone().or(item.created_at.clone()),
        ..on_subject(event, request, subject, asker)
    })
}

fn labelled(event: &Event, settings: &TriggerSettings) -> Result<Candidate, Triage> {
    let Some(subject) = event.pull().or(event.issue.as_ref()) else {
        return Err(nothing("the event is about no issue"));
    };
    let wanted = &settings.rules.trigger_label;
    let action = event.action.as_deref().unwrap_or_default();
    if action != "labeled" {
        let action = clean::clean_line(action, 40);
        let reason =
            format!("the action `{action}` starts nothing, only the label `{wanted}` does");
        return Err(nothing(reason));
    }
    let label = event.label.as_ref().and_then(|label| label.name.as_deref());
    let label = label.unwrap_or_default();
    if wanted.is_empty() || !label.eq_ignore_ascii_case(wanted) {
        let label = clean::clean_line(label, 60);
        return Err(nothing(format!("the label is `{label}`, not `{wanted}`")));
    }
    if !subject.is_open() {
        return Err(nothing(format!("#{} is closed", subject.number)));
    }
    let asker = asker(event.sender.as_ref(), None, settings)?;
    if event.is_target() && !settings.rules.allow_pull_request_target {
        return Err(refused(Refusal::PullRequestTarget));
    }
    let changed = subject.updated_at.clone();
    let at = changed.as_deref().unwrap_or_default();
    Ok(Candidate {
        answer_key: Some(format!("label:{}:{at}", subject.number)),
        asked_at: changed,
        ..on_subject(event, Request::IssuePlan, subject, asker)
    })
}

/// Whether Sprag works on this pull request.
fn is_ours(subject: &Subject, settings: &TriggerSettings) -> bool {
    let wanted = &settings.rules.trigger_label;
    let head = subject.head.as_ref();
    let is_own_branch = head.is_some_and(|head| head.branch.starts_with(OWN_BRANCHES));
    let mut labels = subject.label_names();
    labels.any(|label| label.eq_ignore_ascii_case(wanted))
        || (is_own_branch && !subject.is_of_fork())
}

/// The branch whose failure is to be fixed, or why there is nothing to do.
fn branch_to_fix<'e>(
    event: &'e Event,
    run: &'e CheckedRun,
    settings: &TriggerSettings,
) -> Result<&'e str, String> {
    let is_run = event.name == "workflow_run";
    let what = event.name.replace('_', " ");
    let failed = matches!(run.conclusion.as_deref(), Some("failure" | "timed_out"));
    if event.action.as_deref() != Some("completed") || !failed {
        return Err(format!("the {what} has not failed"));
    }
    let own = settings.own_workflow.as_deref();
    if own.is_some_and(|own| {
        !own.is_empty() && [run.path.as_deref(), name_of(run)].contains(&Some(own))
    }) {
        return Err("the workflow that failed is the one that runs Sprag".to_owned());
    }
    let Some(branch) = run.head_branch.as_deref() else {
        return Err(format!("the {what} is of a branch of another repository"));
    };
    let repository = event.repository.as_ref();
    let of_head = run.head_repository.as_ref();
    let of_head = of_head.and_then(|head| head.full_name.as_deref());
    match of_head {
        None if is_run => {
            return Err("the workflow run is of a repository that is gone".to_owned());
        }
        Some(_) if of_head != repository.and_then(|own| own.full_name.as_deref()) => {
            return Err(format!("the {what} is from a fork"));
        }
        _ => {}
    }
    if repository.and_then(|own| own.default_branch.as_deref()) == Some(branch) {
        return Err(format!("the {what} is of the default branch"));
    }
    Ok(branch)
}

/// The name of a workflow, or of the app of a check suite.
fn name_of(run: &CheckedRun) -> Option<&str> {
    let app = run.app.as_ref().and_then(|app| app.name.as_deref());
    run.name.as_deref().or(app)
}

fn checked(event: &Event, settings: &TriggerSettings) -> Result<Candidate, Triage> {
    let Some(run) = event.workflow_run.as_ref().or(event.check_suite.as_ref()) else {
        return Err(nothing("the event is about no checks"));
    };
    let branch = branch_to_fix(event, run, settings).map_err(nothing)?;
    let request = if event.name == "workflow_run" {
        Request::FixRun { run_id: run.id }
    } else {
        Request::FixSuite { suite_id: run.id }
    };
    let pulls = run.pull_requests.as_deref().unwrap_or_default();
    let subject = pulls.first().map(|pull| Subject {
        number: pull.number,
        is_pull: true,
        ..Subject::default()
    });
    let note = format!(
        "The branch has {} pull requests; this is about the first.",
        pulls.len()
    );
    let name = clean::clean_line(name_of(run).unwrap_or_default(), 100);
    let (kind, attempt) = (event.name.replace('_', "-"), run.run_attempt.unwrap_or(1));
    Ok(Candidate {
        by_machine: true,
        needs: Needs {
            pull_request: subject.is_some(),
            comments: subject.is_some(),
            jobs: true,
            ..Needs::default()
        },
        subject,
        notes: Vec::from_iter((pulls.len() > 1).then_some(note)),
        head_ref: Some(branch.to_owned()),
        head_sha: Some(run.head_sha.clone()),
        checks_name: Some(name).filter(|name| !name.is_empty()),
        answer_key: Some(format!("{kind}:{}:{attempt}", run.id)),
        asked_at: run.updated_at.clone(),
        ..candidate(event, request)
    })
}

/// The queue in the settings, otherwise the source that the step configures.
fn source(settings: &TriggerSettings) -> Request {
    let queue = settings.queue.clone().filter(|queue| !queue.is_empty());
    queue.map_or(Request::Configured, Request::Queue)
}

fn dispatch(event: &Event, settings: &TriggerSettings) -> Result<Candidate, Triage> {
    let [plan, prompt, queue] = ["plan", "prompt", "queue"].map(|name| event.input(name));
    let request = match [&plan, &prompt, &queue].into_iter().flatten().count() {
        0 => source(settings),
        1 => Request::Dispatch {
            plan,
            prompt: prompt.as_deref().map(clean::clean),
            queue,
        },
        _ => return Err(refused(Refusal::SeveralSources)),
    };
    let asker = event.sender.as_ref().map(|sender| Requester {
        login: sender.login.clone(),
        association: None,
        is_bot: sender.is_bot(),
    });
    let branch = event.reference.as_deref().or(event.branch.as_deref());
    let branch = branch.filter(|name| !name.starts_with("refs/tags/"));
    let branch = branch.map(|name| name.strip_prefix("refs/heads/").unwrap_or(name));
    Ok(Candidate {
        asker,
        head_ref: branch.map(str::to_owned),
        ..candidate(event, request)
    })
}

fn push(event: &Event, settings: &TriggerSettings) -> Result<Candidate, Triage> {
    if event.deleted == Some(true) {
        return Err(nothing("the push deleted a branch"));
    }
    let reference = event.reference.as_deref().unwrap_or_default();
    let Some(branch) = reference.strip_prefix("refs/heads/") else {
        return Err(nothing("the push was not to a branch"));
    };
    let commit = event.head_commit.as_ref();
    let mut lines = commit.into_iter().flat_map(|last| last.message.lines());
    if lines.any(|line| line.starts_with("Sprag-Run: ")) {
        return Err(nothing("the last commit of the push is one of Sprag's own"));
    }
    if event.sender.is_some() {
        asker(event.sender.as_ref(), None, settings)?;
    }
    Ok(Candidate {
        head_ref: Some(branch.to_owned()),
        head_sha: event.after.clone(),
        ..candidate(event, source(settings))
    })
}

/// Checks the branch names and paths from the event.
fn checked_names(candidate: &Candidate) -> Result<(), Refusal> {
    let paths = match &candidate.request {
        Request::Plan(path) | Request::Queue(path) => vec![path],
        Request::Dispatch { plan, queue, .. } => plan.iter().chain(queue).collect(),
        _ => Vec::new(),
    };
    for path in paths {
        refname::check_path(path).map_err(|what| Refusal::InvalidPath {
            path: clean::clean_line(path, 100).replace('`', "'"),
            what: what.to_owned(),
        })?;
    }
    let base = candidate
        .subject
        .as_ref()
        .and_then(|pull| pull.base.as_ref());
    let names = candidate
        .head_ref
        .iter()
        .chain(base.map(|base| &base.branch));
    names.map(String::as_str).try_for_each(checked_branch)
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
