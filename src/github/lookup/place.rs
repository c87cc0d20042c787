//! Determines the branch for an event's work, and checks it out.

use crate::context::Context;
use crate::domain::plan::{self, TaskStatus};
use crate::domain::queue;
use crate::domain::settings::branch::prefix_of;
use crate::domain::settings::{PullRequest, Settings};
use crate::domain::snapshot::RevId;
use crate::domain::trigger::authorise::Authorised;
use crate::domain::trigger::payload::Event;
use crate::domain::trigger::place::Place;
use crate::domain::trigger::refname;
use crate::domain::trigger::settings::TriggerSettings;
use crate::domain::trigger::{Request, clean};
use crate::error::{Error, Result};
use crate::git::{self, BranchName, Credential, Real, Remote, Repo};
use crate::github::actions_environment::ActionsEnvironment;
use crate::github::api::ReactTo;
use crate::github::lookup::fetch::EventLookup;
use crate::github::request::{RunRequest, WorkBranch};
use crate::process::Cancel;
use anyhow::Context as _;
use std::collections::BTreeMap;
use std::path::Path;

/// The run request for an authorised event, before its branch is known.
pub fn request(
    actions: &ActionsEnvironment,
    authorised: &Authorised,
    triggers: &TriggerSettings,
) -> RunRequest {
    let candidate = &authorised.candidate;
    let number = candidate.number();
    let mut run = RunRequest::at(actions.place.clone());
    run.context.head.clone_from(&candidate.head_sha);
    run.context.report_only = authorised.report_only;
    run.context.asked_by = candidate.asker.as_ref().map(|asker| asker.login.clone());
    run.context.trigger_phrase = number.map(|_| triggers.rules.trigger_phrase.clone());
    run.context.notes.clone_from(&candidate.notes);
    run.number = number;
    run.is_pull = candidate.is_pull();
    run.react_to = ReactTo::of(candidate.comment, number);
    run.base_ref.clone_from(&authorised.base_ref);
    run.state = authorised.next_state.clone();
    run
}

/// The error if GitHub does not say whether a branch exists.
pub fn unread(error: crate::github::api::Error) -> Error {
    let is_forbidden = error.is_forbidden();
    let error = Error::environment(error.to_string());
    if is_forbidden {
        error.hint("give the job the permission `contents: write`, or `read` if it pushes nothing")
    } else {
        error
    }
}

/// The branch of a request: the existing one, or a new one of Sprag's. A queue sets its own branch once it knows its
/// plan.
///
/// # Errors
/// When GitHub cannot be asked for a branch.
pub async fn work_branch(
    lookup: &EventLookup<'_>,
    authorised: &Authorised,
    request: &Request,
) -> Result<Option<WorkBranch>, crate::github::api::Error> {
    if let Request::Queue(_) | Request::Dispatch { queue: Some(_), .. } = request {
        return Ok(None);
    }
    let candidate = &authorised.candidate;
    let new = |slug: &str| format!("{}{slug}", prefix_of(lookup.branch));
    let name = match (&authorised.branch, candidate.number()) {
        // A fork's branch may have the same name as one of this repository.
        (Some(_), Some(number)) if authorised.report_only => format!("sprag/pull-{number}"),
        (Some(name), ..) => name.clone(),
        (None, Some(number)) => new(&format!("issue-{number}")),
        (None, None) => return Ok(None),
    };
    let at = match (&authorised.branch, &candidate.head_sha) {
        (Some(_), Some(head)) if candidate.is_pull() => Some(head.clone()),
        (Some(_), head) => match lookup.repo.branch(&name).await {
            // The event has the commit, and the push fails if the branch has moved.
            Err(error) if error.is_temporary() && head.is_some() => head.clone(),
            asked => asked?,
        },
        _ => lookup.repo.branch(&name).await?,
    };
    Ok(Some(WorkBranch { name, at }))
}

/// The commit that work on the request starts from: the head of its branch or, if it has none yet, of the base.
pub async fn start_of_work(
    lookup: &EventLookup<'_>,
    authorised: &Authorised,
    request: &Request,
) -> Result<String, crate::github::api::Error> {
    let branch = work_branch(lookup, authorised, request).await?;
    if let Some(at) = branch.and_then(|branch| branch.at) {
        return Ok(at);
    }
    let base = match &authorised.base_ref {
        Some(base) => base.clone(),
        None => lookup.repo.default_branch().await?,
    };
    Ok(lookup.repo.branch(&base).await?.unwrap_or_default())
}

/// The run request for a step that configures its own work, on the branch of the workflow run.
pub fn at_the_ref(context: &Context, place: Place) -> RunRequest {
    let mut request = RunRequest::at(place);
    request.context.head = context.var("GITHUB_SHA").map(str::to_owned);
    let full = context.var("GITHUB_REF").unwrap_or_default();
    if let Some(name) = full.strip_prefix("refs/heads/")
        && refname::check_branch(name).is_ok()
    {
        request.base_ref = Some(name.to_owned());
        request.branch = Some(WorkBranch {
            name: name.to_owned(),
            at: request.context.head.clone(),
        });
    }
    request
}

/// Sets the branch of a request that no event places anywhere: the one that is checked out, if the remote is
/// known to have it. With a detached HEAD it is the branch of the workflow run, if its commit is the one that
/// is checked out.
pub fn at_the_checkout(context: &Context, real: &Real, request: &mut RunRequest) {
    let Ok(there) = git::checkout(real) else {
        return;
    };
    let of_workflow = at_the_ref(context, request.context.place.clone());
    let at = there.commit.map(|commit| commit.0);
    let Some(name) = there.branch else {
        request.branch = of_workflow.branch.filter(|branch| branch.at == at);
        return;
    };
    let of_remote = |full: &String| {
        let remote = full.strip_prefix("refs/remotes/");
        let short = remote.and_then(|remote| remote.split_once('/'));
        short.is_some_and(|(_, short)| short == name)
    };
    let is_known = of_workflow.branch.is_some_and(|branch| branch.name == name)
        || there.refs.iter().any(of_remote);
    if is_known && refname::check_branch(&name).is_ok() {
        request.context.head.clone_from(&at);
        request.branch = Some(WorkBranch { name, at });
    }
}

/// The checkout of a job, and where on GitHub it comes from.
#[derive(Clone, Copy)]
pub struct Checkout<'a> {
    /// The environment of the step.
    pub context: &'a Context,
    /// What GitHub Actions says about the job.
    pub actions: &'a ActionsEnvironment,
    /// The repository that is checked out.
    pub real: &'a Real,
}

impl<'a> Checkout<'a> {
    /// The checkout of this job.
    pub fn of(context: &'a Context, actions: &'a ActionsEnvironment, real: &'a Real) -> Self {
        Self {
            context,
            actions,
            real,
        }
    }
}

/// The plan files of a checkout, and the branches of Sprag on GitHub.
pub struct PlanBranches<'a> {
    checkout: Checkout<'a>,
    template: &'a str,
    files: Vec<String>,
    branches: BTreeMap<String, String>,
}

impl<'a> PlanBranches<'a> {
    /// Reads both. The template is that of the branches.
    ///
    /// # Errors
    /// When git or GitHub does not list them.
    pub async fn read(checkout: Checkout<'a>, template: &'a str) -> Result<Self> {
        let Checkout { actions, real, .. } = checkout;
        let repo = actions.repo().map_err(unread)?;
        let below = format!("refs/heads/{}", prefix_of(template));
        let branches = repo.refs_below(&below).await.map_err(unread)?;
        let files = real.tracked_files().map_err(anyhow::Error::from)?;
        let files = files.into_iter().filter(|file| queue::can_be_plan(file));
        Ok(Self {
            checkout,
            template,
            files: files.collect(),
            branches: branches.into_iter().collect(),
        })
    }

    /// The branch of the plan at this path from the root of the tree: `sprag/<plan>`, or one with a digest if
    /// other files have the name. A branch with work on this plan stays its branch.
    ///
    /// # Errors
    /// When a branch cannot be read.
    pub fn of(&self, path: &str) -> Result<WorkBranch> {
        let has_work = |branch: &str| self.has_work_on(path, branch);
        branch_of_plan(self.template, path, &self.files, &self.branches, has_work)
    }

    /// Whether more tasks of the plan are done on the branch than in the checkout.
    fn has_work_on(&self, path: &str, branch: &str) -> Result<bool> {
        let done = |bytes: Option<Vec<u8>>| {
            let parsed = bytes.and_then(|bytes| plan::parse(path, &bytes).ok());
            let tasks = parsed.map_or(Vec::new(), |parsed| parsed.value.tasks);
            let is_done = |task: &&plan::Task| task.status == TaskStatus::Done;
            tasks.iter().filter(is_done).count()
        };
        let there = self.checkout.file_of_branch(branch, path.as_ref())?;
        let here = std::fs::read(self.checkout.real.work_tree().join(path)).ok();
        Ok(done(there) > done(here))
    }
}

/// The branch of a plan, given the files that can be plans, the branches with their commits, and whether a
/// branch has work on the plan.
fn branch_of_plan(
    template: &str,
    path: &str,
    files: &[String],
    branches: &BTreeMap<String, String>,
    has_work: impl FnOnce(&str) -> Result<bool>,
) -> Result<WorkBranch> {
    let branch = |name: String| WorkBranch {
        at: branches.get(&format!("refs/heads/{name}")).cloned(),
        name,
    };
    let name = queue::name_of(path);
    let own = branch(queue::branch_of_path(template, path));
    let plain = branch(queue::branch_of(template, name));
    let is_other = |file: &String| file != path && queue::name_of(file) == name;
    let takes_own = own.at.is_some()
        || (files.iter().any(is_other) && (plain.at.is_none() || !has_work(&plain.name)?));
    Ok(if takes_own { own } else { plain })
}

/// The work that gets a branch of its own.
#[derive(Debug, Clone, Copy)]
pub enum OwnWork<'a> {
    /// A plan file, by its path from the root of the tree.
    Plan(&'a str),
    /// A task or a plan without a file, by its text.
    Text(&'a str),
    /// A run of another job of the workflow run: its id, and the branch that it was on.
    Run(&'a str, Option<&'a str>),
}

impl OwnWork<'_> {
    /// The branch: that of the plan, which later runs continue, or one of the workflow run, which a rerun of
    /// the job continues. Different work of one workflow run has different branches.
    async fn branch(
        self,
        checkout: Checkout<'_>,
        place: &Place,
        template: &str,
    ) -> Result<Option<WorkBranch>> {
        if let Self::Plan(path) = self {
            let branches = PlanBranches::read(checkout, template).await?;
            return branches.of(path).map(Some);
        }
        let Some(name) = self.of_workflow_run(place, template) else {
            return Ok(None);
        };
        let repo = checkout.actions.repo().map_err(unread)?;
        let at = repo.branch(&name).await.map_err(unread)?;
        Ok(Some(WorkBranch { name, at }))
    }

    fn of_workflow_run(self, place: &Place, template: &str) -> Option<String> {
        let run = place.run.as_ref();
        let of_run = run.map(|run| queue::branch_of(template, &format!("run-{}", run.id)));
        let text = match self {
            Self::Plan(_) => return None,
            Self::Run(_, Some(branch)) if is_numbered(branch, of_run.as_deref()?) => {
                return Some(branch.to_owned());
            }
            Self::Text(text) | Self::Run(text, _) => text,
        };
        let digest = blake3::hash(format!("{}\0{text}", place.name.as_str()).as_bytes()).to_hex();
        Some(format!("{}-{}", of_run?, digest.get(..DIGEST)?))
    }
}

const DIGEST: usize = 8;

/// Whether this is a branch of [`OwnWork`] with this beginning.
fn is_numbered(branch: &str, of_run: &str) -> bool {
    let rest = branch.strip_prefix(of_run);
    let digest = rest.and_then(|rest| rest.strip_prefix('-'));
    digest.is_some_and(|text| {
        text.len() == DIGEST && text.chars().all(|c| matches!(c, '0'..='9' | 'a'..='f'))
    })
}

/// Gives work a branch of its own if it would be on the branch that its pull request is for.
///
/// # Errors
/// When GitHub cannot be asked for the branch.
pub async fn give_own_branch(
    checkout: Checkout<'_>,
    settings: &Settings,
    work: OwnWork<'_>,
    request: &mut RunRequest,
) -> Result<()> {
    // A job that does not push can be the first of two.
    let opens = settings.review_only != Some(true)
        && !matches!(settings.pull_request, None | Some(PullRequest::None));
    let branch = request.branch.as_ref().map(|branch| &branch.name);
    if !opens || request.is_pull || branch.is_none() || branch != request.base_ref.as_ref() {
        return Ok(());
    }
    let template = settings.branch_template();
    let own = work.branch(checkout, &request.context.place, template);
    if let Some(own) = own.await? {
        request.branch = Some(own);
    }
    Ok(())
}

/// The run request for a step that configures its own work, on the pull request of the event: on its head
/// branch and never on the merge ref.
///
/// # Errors
/// The event must not start a run.
pub fn of_pull_event(
    event: &Event,
    place: &Place,
    explicit: bool,
    triggers: &TriggerSettings,
) -> Result<Option<RunRequest>> {
    let Some(pull) = event.pull().filter(|_| explicit) else {
        return Ok(None);
    };
    let (Some(head), Some(base)) = (&pull.head, &pull.base) else {
        return Ok(None);
    };
    if event.is_target() && !triggers.rules.allow_pull_request_target {
        return Err(Error::config(
            "`pull_request_target` gives the pull request's code the repository's secrets",
        )
        .hint("use `pull_request`, or set `allow-pull-request-target` if this is intended"));
    }
    for name in [&head.branch, &base.branch] {
        refname::check_branch(name).map_err(|why| {
            let name = clean::clean_line(name, 100);
            Error::config(format!("the branch `{name}` {why}"))
        })?;
    }
    let is_own = !pull.is_of_fork();
    let number = pull.number;
    let mut request = RunRequest::at(place.clone());
    request.number = Some(number);
    request.is_pull = true;
    request.context.head = Some(head.sha.clone());
    request.base_ref = Some(base.branch.clone());
    request.context.report_only = !is_own;
    request.branch = Some(WorkBranch {
        name: if is_own {
            head.branch.clone()
        } else {
            format!("sprag/pull-{number}")
        },
        at: Some(head.sha.clone()),
    });
    Ok(Some(request))
}

impl Checkout<'_> {
    /// Checks out the branch for the work, unless it is checked out already.
    ///
    /// # Errors
    /// When the work tree is not clean, or the branch cannot be fetched.
    pub fn switch_to(self, request: &RunRequest) -> Result<()> {
        let Some(branch) = &request.branch else {
            return Ok(());
        };
        let name =
            BranchName::parse(&branch.name).map_err(|error| Error::config(error.to_string()))?;
        if request.number.is_none() && is_checked_out(self.real, branch) {
            return Ok(());
        }
        let private = self.context.place_for_a_moment("sprag-switch-")?;
        let switch = || -> anyhow::Result<Option<String>> {
            let mut repo = Repo::create(self.real.clone(), &private.path().join("git"))?;
            let Some(to) = branch.at.clone().map(RevId).or(repo.base()) else {
                return Ok(None);
            };
            let remote = remote(self.context, self.actions)?;
            if branch.at.is_none()
                && let Some(other) = repo.branch_in_the_way(&remote, &name, &Cancel::new())
            {
                return Ok(Some(other));
            }
            repo.switch_to(&remote, &name, &to, &Cancel::new())?;
            Ok(None)
        };
        match switch() {
            Ok(None) => Ok(()),
            Ok(Some(other)) => {
                let name = &branch.name;
                let why =
                    format!("git cannot make the branch `{name}` beside the branch `{other}`");
                Err(Error::config(why).hint(format!("rename or remove the branch `{other}`")))
            }
            Err(error) => {
                let why = format!("{} cannot be checked out: {error}", branch.name);
                let remedy =
                    "start from a clean checkout, and give the job's token `contents: read`";
                Err(Error::environment(why).hint(remedy))
            }
        }
    }

    /// The content of a file in a branch of the remote, or `None` if the branch does not have it.
    ///
    /// # Errors
    /// When the branch cannot be fetched.
    pub fn file_of_branch(self, branch: &str, path: &Path) -> Result<Option<Vec<u8>>> {
        let head = |repo: &Repo, remote: &Remote| {
            let name = BranchName::parse(branch)?;
            let head = repo.ls_remote(remote, &name.full(), &Cancel::new())?;
            head.context("there is no such branch")
        };
        let what = format!("{} of {branch}", path.display());
        self.fetched(&what, head, path)
    }

    /// The content of a file in a commit of the remote. `what` is its name in messages.
    pub(crate) fn fetched(
        self,
        what: &str,
        head: impl FnOnce(&Repo, &Remote) -> anyhow::Result<RevId>,
        path: &Path,
    ) -> Result<Option<Vec<u8>>> {
        let private = self.context.place_for_a_moment("sprag-read-")?;
        let read = || -> anyhow::Result<Option<Vec<u8>>> {
            let repo = Repo::create(self.real.clone(), &private.path().join("git"))?;
            let remote = remote(self.context, self.actions)?;
            let head = head(&repo, &remote)?;
            repo.fetch_for(&remote, &head, &Cancel::new())?;
            Ok(repo.file_of(&head, path.as_os_str().as_encoded_bytes())?)
        };
        read().map_err(|error| Error::environment(format!("{what} cannot be read: {error}")))
    }
}

/// Whether HEAD is on this branch, at this commit. Then the remote need not have the commit.
fn is_checked_out(real: &Real, branch: &WorkBranch) -> bool {
    git::checkout(real).is_ok_and(|there| {
        there.branch.as_ref() == Some(&branch.name)
            && branch.at.is_some()
            && there.commit.map(|commit| commit.0) == branch.at
    })
}

/// The repository on GitHub, with the step's own token and without any credentials of the checkout.
///
/// # Errors
/// An invalid URL.
pub fn remote(context: &Context, actions: &ActionsEnvironment) -> Result<Remote, git::RemoteError> {
    let credential = Credential::token(actions.token.clone());
    let variables = context.env.iter();
    let variables = variables
        .filter_map(|(name, value)| Some((name.to_str()?.to_owned(), value.to_str()?.to_owned())));
    Ok(Remote::new(&actions.place.git_url(), Some(credential))?.with_network(variables))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_of_one_name_have_branches_of_their_own_and_keep_the_ones_with_their_work() {
        let (here, there) = ("specs/1/tasks.md", "specs/2/tasks.md");
        let template = "sprag/{slug}";
        let (plain, own) = ("sprag/tasks", queue::branch_of_path(template, here));
        let branch = |files: &[&str], known: &[&str], has_work: bool| {
            let files: Vec<String> = files.iter().map(|file| (*file).to_owned()).collect();
            let known = known
                .iter()
                .map(|name| (format!("refs/heads/{name}"), (*name).to_owned()));
            let found = branch_of_plan(template, here, &files, &known.collect(), |name| {
                assert_eq!(name, plain);
                Ok(has_work)
            })
            .unwrap();
            assert!(found.at.is_none_or(|at| at == found.name));
            found.name
        };
        let (alone, both) = ([here, "notes.md"], [here, there]);
        for known in [&[][..], &[plain]] {
            assert_eq!(branch(&alone, known, false), plain);
        }
        assert_eq!(branch(&both, &[], true), own);
        assert_eq!(branch(&both, &[plain], false), own);
        assert_eq!(branch(&both, &[plain], true), plain);
        for files in [alone, both] {
            assert_eq!(branch(&files, &[plain, &own], true), own);
        }
    }
}
