//! The request of a run on GitHub: who asked, where its work goes, and where it is reported.

use crate::domain::event::PullRequestLine;
use crate::domain::settings::branch::prefix_of;
use crate::domain::settings::{CommitVia, PullRequest, Report, Resolved, ReviewFindings, Settings};
use crate::domain::trigger::marker::State;
use crate::domain::trigger::place::Place;
use crate::domain::trigger::review::ThreadOfTask;
use crate::github::api::ReactTo;
use crate::report::markdown::ReportContext;
use serde::{Deserialize, Serialize};

/// The request of a run on GitHub.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunRequest {
    /// The context of the texts on GitHub.
    pub context: ReportContext,
    /// The issue or pull request.
    pub number: Option<u64>,
    /// Whether it is a pull request.
    pub is_pull: bool,
    /// What gets the reactions.
    pub react_to: Option<ReactTo>,
    /// The branch that the work goes to.
    pub branch: Option<WorkBranch>,
    /// The base branch of the work.
    pub base_ref: Option<String>,
    /// The state that the comment's first line keeps.
    pub state: State,
    /// The comment, if it exists already.
    pub comment: Option<Page>,
    /// The check run of the run before, which this one replaces if it is on the same commit.
    pub earlier_check: Option<u64>,
    /// The plan of a queue.
    pub queued: Option<String>,
    /// Whether it asks to continue unfinished work.
    pub continues: bool,
    /// The answer to the question with which the last run ended. It is kept with the task.
    #[serde(skip)]
    pub answer: Option<String>,
    /// The pictures in the text of the issue. They are kept in the run directory.
    #[serde(skip)]
    pub pictures: Vec<Vec<u8>>,
    /// The text to draft a plan from, if the run only shows one.
    pub drafts: Option<String>,
    /// The review that requested the work, whose threads are answered.
    pub review: Option<Review>,
    /// How the work is delivered. Fixed when the run begins.
    pub delivery: Delivery,
}

/// A review that requested work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Review {
    /// Its id.
    pub id: u64,
    /// The login of its author.
    pub author: String,
    /// Its threads, each with the task that answers it.
    pub threads: Vec<ThreadOfTask>,
}

/// Whether and how the work leaves this machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Delivery {
    /// Whether it is pushed.
    pub push: bool,
    /// The kind of pull request for it.
    pub pull_request: PullRequest,
    /// Whether GitHub creates the commits itself.
    pub via_api: bool,
    /// What the settings say of a new pull request.
    pub proposal: Proposal,
    /// The workflows to start on the pushed commits.
    pub dispatch: Vec<String>,
    /// Whether the run is reported on GitHub.
    pub report: bool,
    /// Whether it is also reported in a comment.
    pub comment: bool,
}

/// What the settings say of a new pull request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proposal {
    /// The branch that it is for.
    pub base: Option<String>,
    /// Its title, with `{title}` for that of the plan.
    pub title: Option<String>,
    /// Labels.
    pub labels: Vec<String>,
    /// Logins, and `ORG/TEAM` for teams.
    pub reviewers: Vec<String>,
    /// Logins.
    pub assignees: Vec<String>,
}

/// A resource on GitHub that has its own page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Page {
    /// Its id.
    pub id: u64,
    /// Its URL.
    pub url: String,
}

/// A branch of the remote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkBranch {
    /// Its short name.
    pub name: String,
    /// Its commit when the run began, or `None` if the branch did not exist.
    pub at: Option<String>,
}

impl RunRequest {
    /// A request of which only the place is known.
    pub fn at(place: Place) -> Self {
        let mut request = Self::default();
        request.context.place = place;
        request
    }

    /// Decides before the plan is read whether to report on GitHub that the run cannot start.
    pub fn may_tell(&mut self, settings: &Settings, in_actions: bool) {
        let set = settings.clone().resolve(in_actions);
        self.delivery.report = reports(&set, in_actions);
        self.delivery.comment = set.status_comment;
    }

    /// Decides where the work goes: as configured, otherwise as fits the environment. `token` says whether
    /// there is a token.
    pub fn resolve(&mut self, set: &Resolved, in_actions: bool, token: bool) {
        let can_push =
            token && self.branch.is_some() && !self.context.report_only && !set.review_only;
        self.context.neutral_findings =
            set.review_only && set.review_findings == ReviewFindings::Neutral;
        let on_own_branch = self.branch.as_ref().is_some_and(|branch| {
            branch.name.starts_with(prefix_of(&set.branch))
                && Some(&branch.name) != self.base_ref.as_ref()
        });
        let opens = on_own_branch && !self.is_pull && !set.review_only;
        self.delivery = Delivery {
            push: can_push && set.push.unwrap_or(in_actions),
            pull_request: match (set.pull_request, set.draft) {
                (None, _) if !opens => PullRequest::None,
                (Some(PullRequest::None), _) => PullRequest::None,
                (_, Some(true)) | (None, None) => PullRequest::Draft,
                (_, Some(false)) => PullRequest::Ready,
                (Some(kind), None) => kind,
            },
            proposal: Proposal {
                base: set.base.clone().filter(|_| !set.review_only),
                title: set.pull_request_title.clone(),
                labels: set.labels.clone(),
                reviewers: set.reviewers.clone(),
                assignees: set.assignees.clone(),
            },
            via_api: set.commit_via == CommitVia::Api,
            dispatch: set.dispatch_workflows.clone(),
            report: token && reports(set, in_actions),
            comment: set.status_comment,
        };
    }

    /// The pull request that the run works on.
    pub fn pull_request(&self) -> Option<PullRequestLine> {
        let number = self.number.filter(|_| self.is_pull)?;
        let place = &self.context.place;
        Some(PullRequestLine {
            number,
            url: format!("{}/{}/pull/{number}", place.server_url, place.repository),
            opened: false,
        })
    }
}

fn reports(set: &Resolved, in_actions: bool) -> bool {
    match set.report {
        Report::None => false,
        Report::Github => true,
        Report::Auto => in_actions,
    }
}
