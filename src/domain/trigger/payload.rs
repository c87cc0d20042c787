//! GitHub's event payloads, read defensively: a field of the wrong type is an error and never a panic, texts
//! are limited in length, and unused fields are ignored.

mod read;

use read::Fields;
use serde_json::Value;

/// The maximum length of a text that is kept, in bytes. GitHub allows 65,536 characters.
pub const MAX_TEXT_BYTES: usize = 4 * 65_536;

/// A GitHub event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// `issue_comment`: a comment on an issue or a pull request.
    IssueComment(CommentEvent),
    /// `pull_request_review_comment`: a comment on lines of a pull request.
    ReviewComment(CommentEvent),
    /// `issues`.
    Issue(SubjectEvent),
    /// `pull_request` and `pull_request_target`.
    PullRequest {
        /// Whether it is `pull_request_target`.
        target: bool,
        /// The action and its pull request.
        event: SubjectEvent,
    },
    /// `pull_request_review`.
    Review(ReviewEvent),
    /// `workflow_run`.
    WorkflowRun(CheckedEvent),
    /// `check_suite`.
    CheckSuite(CheckedEvent),
    /// `schedule`.
    Schedule(Common),
    /// `workflow_dispatch`.
    WorkflowDispatch(DispatchEvent),
    /// `repository_dispatch`.
    RepositoryDispatch(DispatchEvent),
    /// `push`.
    Push(PushEvent),
    /// An event that starts nothing, by its name.
    Other(String),
}

/// The fields that all events have.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Common {
    /// The action, such as `created`.
    pub action: String,
    /// `owner/name` of the repository.
    pub repository: Option<String>,
    /// The repository's default branch.
    pub default_branch: Option<String>,
    /// The account that caused the event.
    pub sender: Option<Actor>,
}

/// A GitHub account.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Actor {
    /// The login.
    pub login: String,
    /// Whether it is an app or a bot.
    pub is_bot: bool,
}

/// An issue or a pull request, as the event describes it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Subject {
    /// Its number.
    pub number: u64,
    /// Whether it is a pull request.
    pub is_pull: bool,
    /// Its title.
    pub title: String,
    /// Its text.
    pub body: String,
    /// Whether it is open.
    pub open: bool,
    /// The login of its author.
    pub author: String,
    /// Names of its labels.
    pub labels: Vec<String>,
    /// When it was last changed, in GitHub's format.
    pub updated_at: Option<String>,
    /// The pull request's branches and commits, if the event contains them.
    pub pull: Option<PullRefs>,
}

/// The head and base of a pull request. Names are unchecked: see [`super::refname`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PullRefs {
    /// The head branch.
    pub head_ref: String,
    /// The head branch's commit.
    pub head_sha: String,
    /// `owner/name` of the head repository; `None` if it was deleted.
    pub head_repository: Option<String>,
    /// The base branch.
    pub base_ref: String,
    /// `owner/name` of the base repository.
    pub base_repository: Option<String>,
}

impl PullRefs {
    /// Whether the head branch is not one of the base repository. Both names are of the moment of the event: the
    /// repository may have another name by now.
    pub fn is_of_fork(&self) -> bool {
        self.head_repository.is_none() || self.head_repository != self.base_repository
    }
}

/// An event about a comment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommentEvent {
    /// The fields that all events have.
    pub common: Common,
    /// The issue or pull request of the comment.
    pub subject: Subject,
    /// The comment's id.
    pub id: u64,
    /// Its text.
    pub body: String,
    /// Its author.
    pub author: Actor,
    /// The author's association, as GitHub words it.
    pub association: String,
    /// When it was written, in GitHub's format.
    pub created_at: Option<String>,
    /// Its location in the diff, for a comment on lines.
    pub place: Option<DiffLines>,
}

/// Lines of a pull request's diff.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DiffLines {
    /// The file.
    pub path: String,
    /// The last of the lines in the file, if it still exists there.
    pub line: Option<u64>,
    /// The diff hunk, as GitHub shows it.
    pub hunk: String,
}

/// An event about an issue or a pull request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubjectEvent {
    /// The fields that all events have.
    pub common: Common,
    /// The issue or pull request.
    pub subject: Subject,
    /// The label, if one was added or removed.
    pub label: Option<String>,
}

/// An event about a review.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReviewEvent {
    /// The fields that all events have.
    pub common: Common,
    /// The pull request.
    pub subject: Subject,
    /// The review's id.
    pub id: u64,
    /// `approved`, `changes_requested`, `commented` or `dismissed`.
    pub state: String,
    /// Its text.
    pub body: String,
    /// Its author.
    pub author: Actor,
    /// The author's association, as GitHub words it.
    pub association: String,
    /// When it was submitted, in GitHub's format.
    pub submitted_at: Option<String>,
}

/// An event about a workflow run or a check suite.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckedEvent {
    /// The fields that all events have.
    pub common: Common,
    /// Its id.
    pub id: u64,
    /// The number of the attempt, from 1.
    pub attempt: u64,
    /// The name of the workflow or the app.
    pub name: String,
    /// The workflow's file, if the event contains it.
    pub path: Option<String>,
    /// Its conclusion; `None` while it runs.
    pub conclusion: Option<String>,
    /// The commit.
    pub head_sha: String,
    /// The branch; `None` for a branch of another repository.
    pub head_branch: Option<String>,
    /// `owner/name` of the commit's repository, if the event contains it.
    pub head_repository: Option<String>,
    /// The numbers of the pull requests from that branch.
    pub pulls: Vec<u64>,
    /// When it ended, in GitHub's format.
    pub updated_at: Option<String>,
}

/// A dispatch event, which requests a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DispatchEvent {
    /// The fields that all events have.
    pub common: Common,
    /// The branch or tag, as a full ref or a name.
    pub reference: Option<String>,
    /// The input or payload `plan`.
    pub plan: Option<String>,
    /// The input or payload `prompt`.
    pub prompt: Option<String>,
    /// The input or payload `queue`.
    pub queue: Option<String>,
}

/// A push event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushEvent {
    /// The fields that all events have.
    pub common: Common,
    /// The full ref.
    pub reference: String,
    /// The ref's new commit.
    pub after: String,
    /// Whether the ref was deleted.
    pub deleted: bool,
    /// The message of the last commit.
    pub message: String,
}

/// Reads an event. `event_name` is the value of `GITHUB_EVENT_NAME`.
///
/// # Errors
/// When the payload lacks a field that GitHub always sends, or has it in another format.
pub fn parse(event_name: &str, payload: &Value) -> Result<Event, String> {
    let root = Fields::root(event_name, payload);
    Ok(match event_name {
        "issue_comment" => Event::IssueComment(comment(&root, "issue")?),
        "pull_request_review_comment" => Event::ReviewComment(comment(&root, "pull_request")?),
        "issues" => Event::Issue(subject_event(&root, "issue")?),
        "pull_request" | "pull_request_target" => Event::PullRequest {
            target: event_name == "pull_request_target",
            event: subject_event(&root, "pull_request")?,
        },
        "pull_request_review" => Event::Review(review(&root)?),
        "workflow_run" => Event::WorkflowRun(workflow_run(&root)?),
        "check_suite" => Event::CheckSuite(check_suite(&root)?),
        "schedule" => Event::Schedule(common(&root)?),
        "workflow_dispatch" => Event::WorkflowDispatch(dispatch(&root, "inputs")?),
        "repository_dispatch" => Event::RepositoryDispatch(dispatch(&root, "client_payload")?),
        "push" => Event::Push(push(&root)?),
        other => Event::Other(super::clean::clean_line(other, 100)),
    })
}

fn common(root: &Fields<'_>) -> Result<Common, String> {
    Ok(Common {
        action: root.name("action")?.unwrap_or_default(),
        repository: root.name_in("repository", "full_name")?,
        default_branch: root.name_in("repository", "default_branch")?,
        sender: actor(root, "sender")?,
    })
}

/// An account; `None` if it was deleted.
fn actor(of: &Fields<'_>, name: &str) -> Result<Option<Actor>, String> {
    let Some(user) = of.child(name)? else {
        return Ok(None);
    };
    let login = user.need(user.name("login")?, "login")?;
    let is_bot = user.name("type")?.as_deref() == Some("Bot") || login.ends_with("[bot]");
    Ok(Some(Actor { login, is_bot }))
}

fn subject(root: &Fields<'_>, name: &str) -> Result<Subject, String> {
    let item = root.need(root.child(name)?, name)?;
    let is_pull = name == "pull_request";
    let labels = item.list("labels")?;
    let labels: Result<Vec<_>, _> = labels.iter().map(|label| label.name("name")).collect();
    Ok(Subject {
        number: item.need(item.id("number")?, "number")?,
        is_pull: is_pull || item.has("pull_request"),
        title: item.text("title")?,
        body: item.text("body")?,
        open: item.name("state")?.as_deref() != Some("closed"),
        author: actor(&item, "user")?.unwrap_or_default().login,
        labels: labels?.into_iter().flatten().collect(),
        updated_at: item.name("updated_at")?,
        pull: if is_pull {
            Some(pull_refs(&item)?)
        } else {
            None
        },
    })
}

fn pull_refs(pull: &Fields<'_>) -> Result<PullRefs, String> {
    let end = |name: &str| -> Result<_, String> {
        let end = pull.need(pull.child(name)?, name)?;
        let repository = end.name_in("repo", "full_name")?;
        let reference = end.need(end.name("ref")?, "ref")?;
        Ok((reference, end.commit("sha")?, repository))
    };
    let (head_ref, head_sha, head_repository) = end("head")?;
    let (base_ref, _, base_repository) = end("base")?;
    Ok(PullRefs {
        head_ref,
        head_sha,
        head_repository,
        base_ref,
        base_repository,
    })
}

fn comment(root: &Fields<'_>, on: &str) -> Result<CommentEvent, String> {
    let item = root.need(root.child("comment")?, "comment")?;
    let place = match on {
        "pull_request" => Some(DiffLines {
            path: item.name("path")?.unwrap_or_default(),
            line: item.id("line")?.or(item.id("original_line")?),
            hunk: item.text("diff_hunk")?,
        }),
        _ => None,
    };
    Ok(CommentEvent {
        common: common(root)?,
        subject: subject(root, on)?,
        id: item.need(item.id("id")?, "id")?,
        body: item.text("body")?,
        author: actor(&item, "user")?.unwrap_or_default(),
        association: item.name("author_association")?.unwrap_or_default(),
        created_at: item.name("created_at")?,
        place,
    })
}

fn subject_event(root: &Fields<'_>, name: &str) -> Result<SubjectEvent, String> {
    Ok(SubjectEvent {
        common: common(root)?,
        subject: subject(root, name)?,
        label: root.name_in("label", "name")?,
    })
}

fn review(root: &Fields<'_>) -> Result<ReviewEvent, String> {
    let item = root.need(root.child("review")?, "review")?;
    Ok(ReviewEvent {
        common: common(root)?,
        subject: subject(root, "pull_request")?,
        id: item.need(item.id("id")?, "id")?,
        state: item.name("state")?.unwrap_or_default().to_ascii_lowercase(),
        body: item.text("body")?,
        author: actor(&item, "user")?.unwrap_or_default(),
        association: item.name("author_association")?.unwrap_or_default(),
        submitted_at: item.name("submitted_at")?,
    })
}

fn workflow_run(root: &Fields<'_>) -> Result<CheckedEvent, String> {
    let run = root.need(root.child("workflow_run")?, "workflow_run")?;
    let path = run.name("path")?.or(root.name_in("workflow", "path")?);
    let of_head = run.name_in("head_repository", "full_name")?;
    checked(root, &run, run.name("name")?, path, of_head)
}

fn check_suite(root: &Fields<'_>) -> Result<CheckedEvent, String> {
    let suite = root.need(root.child("check_suite")?, "check_suite")?;
    checked(root, &suite, suite.name_in("app", "name")?, None, None)
}

fn checked(
    root: &Fields<'_>,
    item: &Fields<'_>,
    name: Option<String>,
    path: Option<String>,
    head_repository: Option<String>,
) -> Result<CheckedEvent, String> {
    let pulls = item.list("pull_requests")?;
    let pulls: Result<Vec<_>, _> = pulls.iter().map(|pull| pull.id("number")).collect();
    Ok(CheckedEvent {
        common: common(root)?,
        id: item.need(item.id("id")?, "id")?,
        attempt: item.id("run_attempt")?.unwrap_or(1),
        name: name.unwrap_or_default(),
        path,
        conclusion: item.name("conclusion")?,
        head_sha: item.commit("head_sha")?,
        head_branch: item.name("head_branch")?,
        head_repository,
        pulls: pulls?.into_iter().flatten().collect(),
        updated_at: item.name("updated_at")?,
    })
}

fn dispatch(root: &Fields<'_>, inputs: &str) -> Result<DispatchEvent, String> {
    let given = root.child(inputs)?;
    // Other senders use other payloads: a value that is not a text is not meant for Sprag.
    let input = |name: &str| given.as_ref().and_then(|given| given.input(name));
    Ok(DispatchEvent {
        common: common(root)?,
        reference: root.name("ref")?.or(root.name("branch")?),
        plan: input("plan"),
        prompt: input("prompt"),
        queue: input("queue"),
    })
}

fn push(root: &Fields<'_>) -> Result<PushEvent, String> {
    let message = match root.child("head_commit")? {
        Some(commit) => commit.text("message")?,
        None => String::new(),
    };
    Ok(PushEvent {
        common: common(root)?,
        reference: root.need(root.name("ref")?, "ref")?,
        after: root.commit("after")?,
        deleted: root.truth("deleted"),
        message,
    })
}

#[cfg(test)]
mod tests;
