//! GitHub's event payloads: a field of the wrong type is an error and never a panic, texts are limited in length, and
//! unused fields are ignored.

use super::{clean, head, refname};
use serde::de::{Error, IgnoredAny};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

/// The maximum length of a text that is kept, in bytes. GitHub allows 65,536 characters.
pub const MAX_TEXT_BYTES: usize = 4 * 65_536;

/// A GitHub event: the parts of its payload that are read. Which of them there are depends on its name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Event {
    /// The value of `GITHUB_EVENT_NAME`.
    #[serde(skip)]
    pub name: String,
    /// The action, such as `created`.
    pub action: Option<String>,
    /// The repository.
    pub repository: Option<Repository>,
    /// The account that caused the event.
    pub sender: Option<Actor>,
    /// The issue; a pull request too if the event is a comment in its conversation.
    pub issue: Option<Subject>,
    /// The pull request.
    pub pull_request: Option<Subject>,
    /// The label, if one was added or removed.
    pub label: Option<Named>,
    /// The comment.
    pub comment: Option<Comment>,
    /// The review.
    pub review: Option<Comment>,
    /// The workflow run.
    pub workflow_run: Option<CheckedRun>,
    /// The check suite.
    pub check_suite: Option<CheckedRun>,
    /// The branch or tag, as a full ref or a name.
    #[serde(rename = "ref")]
    pub reference: Option<String>,
    /// The branch of a `repository_dispatch`.
    pub branch: Option<String>,
    /// The inputs of a `workflow_dispatch`.
    pub inputs: Option<Map<String, Value>>,
    /// The payload of a `repository_dispatch`.
    pub client_payload: Option<Map<String, Value>>,
    /// The ref's new commit.
    pub after: Option<String>,
    /// Whether the ref was deleted.
    pub deleted: Option<bool>,
    /// The last commit of a push.
    pub head_commit: Option<HeadCommit>,
}

/// A repository.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Repository {
    /// `owner/name`.
    pub full_name: Option<String>,
    /// The default branch.
    pub default_branch: Option<String>,
}

/// A GitHub account.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct Actor {
    /// The login.
    pub login: String,
    /// Its type, such as `User`.
    #[serde(rename = "type")]
    pub kind: Option<String>,
}

impl Actor {
    /// Whether it is an app or a bot.
    pub fn is_bot(&self) -> bool {
        self.kind.as_deref() == Some("Bot") || self.login.ends_with("[bot]")
    }
}

/// Something that has a name, such as a label.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Named {
    /// The name.
    pub name: Option<String>,
}

/// An issue or a pull request, as the event describes it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct Subject {
    /// Its number.
    pub number: u64,
    /// Whether it is a pull request.
    #[serde(default, rename = "pull_request", deserialize_with = "is_there")]
    pub is_pull: bool,
    /// Its title.
    #[serde(default, deserialize_with = "text")]
    pub title: String,
    /// Its text.
    #[serde(default, deserialize_with = "text")]
    pub body: String,
    /// Its state, such as `closed`.
    pub state: Option<String>,
    /// Its author.
    pub user: Option<Actor>,
    /// Its labels.
    #[serde(default)]
    pub labels: Vec<Named>,
    /// When it was last changed, in GitHub's format.
    pub updated_at: Option<String>,
    /// The head of a pull request.
    pub head: Option<PullEnd>,
    /// The base of a pull request.
    pub base: Option<PullEnd>,
}

impl Subject {
    /// Whether it is not closed.
    pub fn is_open(&self) -> bool {
        self.state.as_deref() != Some("closed")
    }

    /// The word for it.
    pub fn kind(&self) -> &'static str {
        if self.is_pull {
            "pull request"
        } else {
            "issue"
        }
    }

    /// The names of its labels.
    pub fn label_names(&self) -> impl Iterator<Item = &str> {
        self.labels.iter().filter_map(|label| label.name.as_deref())
    }

    /// Whether the head branch of a pull request is not one of the base repository. Both names are of the moment of
    /// the event: the repository may have another name by now.
    pub fn is_of_fork(&self) -> bool {
        let [head, base] = [&self.head, &self.base].map(|end| end.as_ref()?.repository());
        head.is_none() || head != base
    }
}

/// The head or the base of a pull request. Names are unchecked: see [`super::refname`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct PullEnd {
    /// The branch.
    #[serde(rename = "ref")]
    pub branch: String,
    /// Its commit.
    #[serde(deserialize_with = "commit")]
    pub sha: String,
    repo: Option<Repository>,
}

impl PullEnd {
    /// `owner/name` of its repository; `None` if that was deleted.
    pub fn repository(&self) -> Option<&str> {
        self.repo.as_ref()?.full_name.as_deref()
    }
}

/// A comment or a review.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct Comment {
    /// Its id.
    pub id: u64,
    /// Its text.
    #[serde(default, deserialize_with = "text")]
    pub body: String,
    /// Its author.
    pub user: Option<Actor>,
    /// The author's association, as GitHub words it.
    pub author_association: Option<String>,
    /// When a comment was written, in GitHub's format.
    pub created_at: Option<String>,
    /// When a review was submitted, in GitHub's format.
    pub submitted_at: Option<String>,
    /// The state of a review: `approved`, `changes_requested`, `commented` or `dismissed`.
    pub state: Option<String>,
    path: Option<String>,
    line: Option<u64>,
    original_line: Option<u64>,
    #[serde(default, deserialize_with = "text")]
    diff_hunk: String,
}

impl Comment {
    /// The location in the diff of a comment on lines.
    pub fn place(&self) -> DiffLines {
        DiffLines {
            path: self.path.clone().unwrap_or_default(),
            line: self.line.or(self.original_line),
            hunk: self.diff_hunk.clone(),
        }
    }
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

/// A workflow run or a check suite.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct CheckedRun {
    /// Its id.
    pub id: u64,
    /// The number of the attempt of a workflow run, from 1.
    pub run_attempt: Option<u64>,
    /// The name of the workflow.
    pub name: Option<String>,
    /// The app of a check suite.
    pub app: Option<Named>,
    /// The workflow's file.
    pub path: Option<String>,
    /// Its conclusion; `None` while it runs.
    pub conclusion: Option<String>,
    /// The commit.
    #[serde(deserialize_with = "commit")]
    pub head_sha: String,
    /// The branch; `None` for a branch of another repository.
    pub head_branch: Option<String>,
    /// The repository of the commit of a workflow run.
    pub head_repository: Option<Repository>,
    /// The pull requests from that branch.
    pub pull_requests: Option<Vec<PullNumber>>,
    /// When it ended, in GitHub's format.
    pub updated_at: Option<String>,
}

/// A pull request of a workflow run or a check suite.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct PullNumber {
    /// Its number.
    pub number: u64,
}

/// The last commit of a push.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct HeadCommit {
    /// Its message.
    #[serde(default, deserialize_with = "text")]
    pub message: String,
}

/// Reads an event. `event_name` is the value of `GITHUB_EVENT_NAME`.
///
/// # Errors
/// When the payload lacks a field that GitHub always sends, or has it in another format.
pub fn parse(event_name: &str, payload: &Value) -> Result<Event, String> {
    let needed: &[&str] = match event_name {
        "issue_comment" => &["comment", "issue"],
        "issues" => &["issue"],
        "pull_request" | "pull_request_target" => &["pull_request.head", "pull_request.base"],
        "pull_request_review" => &["review", "pull_request.head", "pull_request.base"],
        "pull_request_review_comment" => &["comment", "pull_request.head", "pull_request.base"],
        "workflow_run" | "check_suite" => &[event_name],
        "push" => &["ref", "after"],
        "schedule" | "workflow_dispatch" | "repository_dispatch" => &[],
        other => {
            let name = clean::clean_line(other, 100);
            let event = Event::default();
            return Ok(Event { name, ..event });
        }
    };
    let is_missing = |path: &&&str| {
        let found = path.split('.').try_fold(payload, |at, part| at.get(part));
        found.is_none_or(Value::is_null)
    };
    if let Some(path) = needed.iter().find(is_missing) {
        return Err(format!("the {event_name} event has no {path}"));
    }
    let mut event: Event = serde_path_to_error::deserialize(payload)
        .map_err(|error| format!("the {event_name} event cannot be read: {error}"))?;
    event_name.clone_into(&mut event.name);
    let after = event.after.as_deref();
    if after.is_some_and(|id| !refname::is_commit_id(id)) {
        return Err(format!(
            "the {event_name} event's after is not a commit's id"
        ));
    }
    if let Some(pull) = &mut event.pull_request {
        pull.is_pull = true;
    }
    Ok(event)
}

impl Event {
    /// The pull request that the event itself is about.
    pub fn pull(&self) -> Option<&Subject> {
        let is_of_pull = matches!(&*self.name, "pull_request" | "pull_request_target");
        self.pull_request.as_ref().filter(|_| is_of_pull)
    }

    /// Whether it is `pull_request_target`.
    pub fn is_target(&self) -> bool {
        self.name == "pull_request_target"
    }

    /// The text of an input or of a field of the payload of a dispatch. Other senders use other payloads: a value that
    /// is blank or not a text is not meant for Sprag.
    pub fn input(&self, name: &str) -> Option<String> {
        let given = self.inputs.as_ref().or(self.client_payload.as_ref())?;
        let text = given.get(name)?.as_str()?.trim();
        (!text.is_empty()).then(|| head(text, MAX_TEXT_BYTES).to_owned())
    }
}

/// A text, cut to its maximum length; null is empty.
fn text<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let text = Option::<String>::deserialize(from)?.unwrap_or_default();
    Ok(head(&text, MAX_TEXT_BYTES).to_owned())
}

fn is_there<'de, D: Deserializer<'de>>(from: D) -> Result<bool, D::Error> {
    Ok(Option::<IgnoredAny>::deserialize(from)?.is_some())
}

fn commit<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let id = String::deserialize(from)?;
    if refname::is_commit_id(&id) {
        Ok(id)
    } else {
        Err(D::Error::custom("not a commit's id"))
    }
}

#[cfg(test)]
mod tests;
