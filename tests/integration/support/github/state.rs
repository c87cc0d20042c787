//! What the model knows: one repository and what hangs on it.

use super::auth::ACTIONS;
use crate::support::http::{Request, Response};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

/// Everything.
pub struct State {
    /// Whether this is a GitHub Enterprise Server: the API is below `/api/v3`, GraphQL is at `/api/graphql`, and
    /// answers have no field but those that the model itself sets.
    pub enterprise: bool,
    /// The name that the repository had before it was renamed.
    pub former_name: Option<String>,
    /// The repository.
    pub repository: Repository,
    /// The bare repository behind it; the fields `refs` and `commits` are not used with one.
    pub bare: Option<PathBuf>,
    /// Full names (`refs/heads/main`) and what they point to.
    pub refs: BTreeMap<String, String>,
    /// Commits by SHA.
    pub commits: BTreeMap<String, Commit>,
    /// A file that GitHub adds to every commit that it makes, as no GitHub does.
    pub added_file: Option<String>,
    /// The commits that GitHub signed.
    pub signed: BTreeSet<String>,
    /// The active rules of a branch by its short name, as GitHub shows them.
    pub rules: BTreeMap<String, Vec<Value>>,
    /// Whether the job's token bypasses a ruleset, by its id: GitHub's word, or none if it does not say.
    pub bypasses: BTreeMap<u64, Option<String>>,
    /// Branches on which nobody may push.
    pub protected: BTreeSet<String>,
    /// Role names (`admin`, `maintain`, `write`, `triage`, `read`, `none`) by login. Who is not
    /// listed is no account.
    pub roles: BTreeMap<String, String>,
    /// Check runs, oldest first.
    pub checks: Vec<CheckRun>,
    /// Issues by number.
    pub issues: BTreeMap<u64, Issue>,
    /// Pull requests by number; each has an issue of its number.
    pub pulls: BTreeMap<u64, Pull>,
    /// Comments on issues and pull requests, oldest first.
    pub comments: Vec<Comment>,
    /// Reviews of pull requests, oldest first.
    pub reviews: Vec<Review>,
    /// Comments on lines of pull requests, oldest first.
    pub review_comments: Vec<Comment>,
    /// The heads of pull requests when comments on their lines were written, by comment.
    pub written_at: BTreeMap<u64, String>,
    /// Threads that are resolved, by their first comments.
    pub resolved: BTreeSet<u64>,
    /// Who is asked to review, by pull request.
    pub reviewers: BTreeMap<u64, Vec<String>>,
    /// Reactions, oldest first.
    pub reactions: Vec<Reaction>,
    /// Workflow runs by id.
    pub runs: BTreeMap<u64, WorkflowRun>,
    /// Files under `.github/workflows` that have `workflow_dispatch`.
    pub dispatchable: BTreeSet<String>,
    /// Dispatches of workflows, oldest first.
    pub dispatches: Vec<Dispatch>,
    /// Whether a job's token may open pull requests, a setting of the repository.
    pub actions_may_open_pulls: bool,
    /// The primary rate limit.
    pub rate: Rate,
    /// Files of users on the pages' host, by path.
    pub files: BTreeMap<String, Response>,
    /// The requests for them.
    pub file_requests: Vec<Request>,
    /// Seconds by which GitHub's clock is ahead of this machine's.
    pub clock_ahead: i64,
    last_id: u64,
}

/// The repository.
#[derive(Debug, Clone)]
pub struct Repository {
    /// `owner/name`.
    pub full_name: String,
    /// Its default branch.
    pub default_branch: String,
    /// Whether it takes a token to read it.
    pub private: bool,
    /// Whether it is a fork of another.
    pub fork: bool,
    /// Whether it has issues.
    pub has_issues: bool,
}

/// A commit as the model knows it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Commit {
    pub sha: String,
    pub tree: String,
    pub parents: Vec<String>,
    pub message: String,
    pub author: String,
    pub email: String,
    /// RFC 3339.
    pub date: String,
}

/// A check run.
#[derive(Debug, Clone, Default)]
pub struct CheckRun {
    pub id: u64,
    pub name: String,
    pub head_sha: String,
    /// `queued`, `in_progress` or `completed`.
    pub status: String,
    pub conclusion: Option<String>,
    pub started_at: Option<String>,
    pub completed_at: Option<String>,
    pub details_url: Option<String>,
    pub external_id: Option<String>,
    pub title: Option<String>,
    pub summary: Option<String>,
    pub text: Option<String>,
    /// Those of every request together: an update appends.
    pub annotations: Vec<Value>,
    /// The account that created it and alone may update it.
    pub creator: String,
    /// The body of every request that was performed, the creation first.
    pub updates: Vec<Value>,
}

/// An issue, or the side of a pull request that is one.
#[derive(Debug, Clone, Default)]
pub struct Issue {
    pub title: String,
    pub body: String,
    pub author: String,
    /// `OWNER`, `MEMBER`, `COLLABORATOR`, `CONTRIBUTOR`, `NONE` …
    pub association: String,
    /// `open` or `closed`.
    pub state: String,
    pub labels: Vec<String>,
}

/// A pull request, beside what its issue says.
#[derive(Debug, Clone, Default)]
pub struct Pull {
    /// The branch it comes from.
    pub head: String,
    /// The fork it comes from; none when it is the repository itself.
    pub fork: Option<String>,
    /// The head commit; of an open one from the repository itself, its branch says it.
    pub head_sha: String,
    /// The branch it goes to.
    pub base: String,
    pub draft: bool,
    pub merged: bool,
    /// Whether the maintainers of the base may push to the head of the fork.
    pub maintainer_can_modify: bool,
}

/// A comment on an issue, a pull request, or a line of one.
#[derive(Debug, Clone, Default)]
pub struct Comment {
    pub id: u64,
    /// Of the issue or pull request.
    pub number: u64,
    pub author: String,
    pub association: String,
    pub body: String,
    /// Every body it ever had, this one last.
    pub bodies: Vec<String>,
    pub created_at: String,
    pub updated_at: String,
    /// Of a line: where.
    pub line: Option<Line>,
}

/// Where a review comment stands.
#[derive(Debug, Clone, Default)]
pub struct Line {
    pub path: String,
    pub line: u64,
    pub diff_hunk: String,
    pub review: Option<u64>,
    pub in_reply_to: Option<u64>,
}

/// A review.
#[derive(Debug, Clone, Default)]
pub struct Review {
    pub id: u64,
    pub number: u64,
    pub author: String,
    /// `APPROVED`, `CHANGES_REQUESTED`, `COMMENTED` …
    pub state: String,
    pub body: String,
    pub association: String,
}

/// What a reaction is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    Issue(u64),
    Comment(u64),
    ReviewComment(u64),
}

/// A reaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reaction {
    pub id: u64,
    pub subject: Subject,
    pub login: String,
    /// `eyes`, `rocket`, `confused` …
    pub content: String,
}

/// A workflow run.
#[derive(Debug, Clone, Default)]
pub struct WorkflowRun {
    pub name: String,
    /// `.github/workflows/ci.yml`.
    pub path: String,
    pub event: String,
    pub head_branch: String,
    pub head_sha: String,
    pub status: String,
    pub conclusion: Option<String>,
    pub attempt: u64,
    pub jobs: Vec<Job>,
    /// The numbers of its pull requests.
    pub pulls: Vec<u64>,
}

/// A job of a workflow run.
#[derive(Debug, Clone, Default)]
pub struct Job {
    pub id: u64,
    pub name: String,
    pub conclusion: Option<String>,
    /// Names and conclusions.
    pub steps: Vec<(String, String)>,
    /// `None` when it has been deleted.
    pub log: Option<String>,
}

/// A dispatch of a workflow.
#[derive(Debug, Clone, PartialEq)]
pub struct Dispatch {
    /// The file's name or the workflow's id, as it was given.
    pub workflow: String,
    pub git_ref: String,
    pub inputs: Value,
}

/// A rate limit.
#[derive(Debug, Clone, Copy)]
pub struct Rate {
    pub limit: u64,
    pub remaining: u64,
    /// Seconds from now to its reset.
    pub reset_in: u64,
}

impl Default for State {
    fn default() -> Self {
        Self {
            repository: Repository {
                full_name: "acme/widget".to_owned(),
                default_branch: "main".to_owned(),
                private: false,
                fork: false,
                has_issues: true,
            },
            bare: None,
            refs: BTreeMap::new(),
            added_file: None,
            commits: BTreeMap::new(),
            signed: BTreeSet::new(),
            rules: BTreeMap::new(),
            bypasses: BTreeMap::new(),
            protected: BTreeSet::new(),
            enterprise: false,
            former_name: None,
            roles: [(ACTIONS.to_owned(), "write".to_owned())].into(),
            checks: Vec::new(),
            issues: BTreeMap::new(),
            pulls: BTreeMap::new(),
            comments: Vec::new(),
            reviews: Vec::new(),
            review_comments: Vec::new(),
            written_at: BTreeMap::new(),
            resolved: BTreeSet::new(),
            reviewers: BTreeMap::new(),
            reactions: Vec::new(),
            runs: BTreeMap::new(),
            dispatchable: BTreeSet::new(),
            dispatches: Vec::new(),
            actions_may_open_pulls: true,
            rate: Rate {
                limit: 1000,
                remaining: 1000,
                reset_in: 2400,
            },
            files: BTreeMap::new(),
            file_requests: Vec::new(),
            clock_ahead: 0,
            last_id: 1000,
        }
    }
}

impl State {
    /// An id that nothing has yet.
    pub fn new_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    /// The number of the next issue or pull request.
    pub fn next_number(&self) -> u64 {
        self.issues.keys().next_back().map_or(1, |last| last + 1)
    }

    /// Opens an issue and returns its number.
    pub fn open_issue(&mut self, author: &str, title: &str, body: &str) -> u64 {
        let number = self.next_number();
        let issue = Issue {
            title: title.to_owned(),
            body: body.to_owned(),
            author: author.to_owned(),
            association: self.association(author),
            state: "open".to_owned(),
            labels: Vec::new(),
        };
        self.issues.insert(number, issue);
        number
    }

    /// Opens a pull request of the repository itself and returns its number.
    pub fn open_pull(&mut self, author: &str, title: &str, head: &str, base: &str) -> u64 {
        let number = self.open_issue(author, title, "");
        let head_sha = self.sha_of(&format!("refs/heads/{head}"));
        let pull = Pull {
            head: head.to_owned(),
            head_sha: head_sha.unwrap_or_default(),
            base: base.to_owned(),
            ..Pull::default()
        };
        self.pulls.insert(number, pull);
        number
    }

    /// Writes a comment on an issue or pull request and returns its id.
    pub fn comment(&mut self, number: u64, author: &str, body: &str) -> u64 {
        let comment = self.new_comment(number, author, body);
        self.comments.push(comment);
        self.last_id
    }

    /// Writes the review of a collaborator and returns its id.
    pub fn review(&mut self, number: u64, author: &str, state: &str, body: &str) -> u64 {
        let id = self.new_id();
        self.reviews.push(Review {
            id,
            number,
            author: author.to_owned(),
            state: state.to_owned(),
            body: body.to_owned(),
            association: "COLLABORATOR".to_owned(),
        });
        id
    }

    /// Writes a comment on a line of a pull request and returns its id.
    pub fn review_comment(&mut self, number: u64, author: &str, body: &str, line: Line) -> u64 {
        let mut comment = self.new_comment(number, author, body);
        comment.line = Some(line);
        self.written_at.insert(comment.id, self.head_of(number));
        self.review_comments.push(comment);
        self.last_id
    }

    fn new_comment(&mut self, number: u64, author: &str, body: &str) -> Comment {
        let now = self.now();
        Comment {
            id: self.new_id(),
            number,
            author: author.to_owned(),
            association: self.association(author),
            body: body.to_owned(),
            bodies: vec![body.to_owned()],
            created_at: now.clone(),
            updated_at: now,
            line: None,
        }
    }

    /// Gives an account a role.
    pub fn role(&mut self, login: &str, role: &str) {
        self.roles.insert(login.to_owned(), role.to_owned());
    }

    /// The reactions on this, as logins and contents.
    pub fn reactions_on(&self, subject: Subject) -> Vec<(&str, &str)> {
        let all = self.reactions.iter();
        let on = all.filter(|reaction| reaction.subject == subject);
        on.map(|reaction| (reaction.login.as_str(), reaction.content.as_str()))
            .collect()
    }

    /// GitHub's time in seconds of the Unix epoch.
    pub fn epoch(&self) -> i64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        i64::try_from(since.as_secs()).unwrap() + self.clock_ahead
    }

    /// GitHub's time as RFC 3339.
    pub fn now(&self) -> String {
        jiff::Timestamp::from_second(self.epoch())
            .unwrap()
            .to_string()
    }

    /// An account as GitHub shows it; `null` for none.
    pub fn user(login: &str) -> Value {
        if login.is_empty() {
            return Value::Null;
        }
        let bot = login.ends_with("[bot]");
        let id: u64 = login
            .bytes()
            .fold(7, |id, byte| (id * 31 + u64::from(byte)) % 1_000_003);
        json!({
            "login": login,
            "id": if login == ACTIONS { 41_898_282 } else { id },
            "type": if bot { "Bot" } else { "User" },
        })
    }

    fn association(&self, login: &str) -> String {
        let role = self.roles.get(login).map_or("none", String::as_str);
        let association = match role {
            "admin" => "OWNER",
            "maintain" | "write" | "triage" => "COLLABORATOR",
            _ => "NONE",
        };
        association.to_owned()
    }
}
