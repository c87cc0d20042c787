//! `sprag publish`: the part of a run that may write to the repository. Another job, which may not, has
//! done the work. No project code and no agent runs here.
//!
//! Only this job's own event, settings and checkout are trusted. They decide the repository and branch
//! of the work, where it is reported, and what it may change. The run directory only describes the work,
//! and is read as untrusted input.

mod event_request;

use crate::cli::{Output, PublishArgs};
use crate::commit_policy::{self, LineLookup, Messages, Policy};
use crate::context::Context;
use crate::domain::commit_message::{reviewed, run_value};
use crate::domain::event::{EventKind, RebasedLine};
use crate::domain::outcome::{Reason, RunStatus, short};
use crate::domain::protected_paths::ProtectedPaths;
use crate::domain::settings::branch::prefix_of;
use crate::domain::settings::{Report, Resolved, Settings};
use crate::domain::snapshot::RevId;
use crate::domain::spend::believed;
use crate::domain::summary::RunSummary;
use crate::domain::text::count;
use crate::domain::trigger::run_name::RunName;
use crate::error::{Error, Result};
use crate::git::{
    ANCESTORS, BranchName, BundleError, CommitLine, RETRY_PAUSES, Real, Remote, Repo, display_path,
};
use crate::github::actions_environment::ActionsEnvironment;
use crate::github::delivery::{self, AfterPush, Delivered, FOLLOW_UP_TIMEOUT, end_of};
use crate::github::lookup;
use crate::github::queue;
use crate::github::request::{RunRequest, WorkBranch};
use crate::github::review_comments::{Reviewed, post};
use crate::process::{self, Cancel, CancelReason};
use crate::run::begin::prepare;
use crate::run::begin::reviewed_change::{ReviewedChange, reviewed_change};
use crate::run::deliver::cost_limits;
use crate::run::deliver::push_failure::{Destination, PushEnd, PushFailure};
use crate::run::deliver::reporting::Reporting;
use crate::run::state::directory::RunDir;
use crate::run::state::emitter::Emitter;
use crate::run::state::layout::{BUNDLE, Folder, SUMMARY};
use crate::run::state::untrusted_run::{self, UntrustedRun};
use crate::run::state::{past_runs, places};
use crate::run::steps::identity::identity_of_commits;
use crate::secrets::sources::detector;
use crate::settings::{self, Sources};
use event_request::not_asked;
use std::collections::BTreeSet;
use std::io::stdout;
use std::path::Path;
use std::sync::Arc;

const NOTE: &str = "The work was done in another job, which could not write to the repository: policy checked here, verified there. Results, reasons and costs are what that job says.";

const MOVED: &str = "the branch has moved, and this job runs no code of the project, so it cannot verify the work on top of the new commits";

/// Publishes a run and returns the process's exit code, which is the run's.
///
/// # Errors
/// When the run directory is damaged or does not belong to this workflow run, or publishing is
/// impossible in this environment.
pub fn command(context: &Context, args: &PublishArgs) -> Result<u8> {
    let mut actions = ActionsEnvironment::of(context).ok_or_else(|| {
        Error::environment("sprag publish needs GitHub, and there is no access to it")
            .hint("give the step the input github-token, or set GITHUB_REPOSITORY and GITHUB_TOKEN")
    })?;
    let redactor = crate::secrets::sources::redactor(&context.env);
    let handed = untrusted_run::read(&past_runs::directory(context, &args.run_dir)?, &redactor)?;
    let real = crate::run::begin::repository::repository(context)?;
    let set = JobSettings::of(context, args, &real)?;
    if let Some(name) = name(context, &set, &handed.summary) {
        actions.place.name = name;
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(anyhow::Error::from)?;
    let summary = &handed.summary;
    let asked = event_request::find(context, &actions, &set.settings, &real, summary, args);
    let (mut request, plan) = match runtime.block_on(asked) {
        Ok(found) => found,
        Err(no_run) => return not_asked(no_run).report(context, &mut stdout()),
    };
    request.resolve(&set.resolved, context.in_actions(), true);
    request.context.notes.push(NOTE.to_owned());
    request.context.verified_elsewhere = true;
    let own = places::create_run_dir(context, real.work_tree(), None)?;
    let summary = start_summary(&handed.summary, &request, &own);
    let mut reporting = Reporting::open(
        context,
        &set.resolved,
        Output::default(),
        &own,
        real.work_tree(),
        Some(&summary),
    )?;
    reporting.publish(context, &request, &summary.facts.run_id, false);
    let job = Job {
        context,
        actions: &actions,
        real: &real,
        request: &request,
        summary: &summary,
        worked_on: handed.summary.facts.branch.as_deref(),
        set: &set,
        plan: plan.as_deref(),
        cancel: Cancel::new(),
    };
    let ended = runtime.block_on(job.publish(&handed, &mut reporting));
    if let Err(error) = &ended {
        reporting.record_error(error);
    }
    reporting.finish(context);
    ended
}

/// This job's own flags, inputs and configuration.
struct JobSettings {
    settings: Settings,
    resolved: Resolved,
    protected: Arc<ProtectedPaths>,
}

impl JobSettings {
    fn of(context: &Context, args: &PublishArgs, real: &Real) -> Result<Self> {
        let flags = args.settings.0.clone().and([("push", true.to_string())]);
        let above = settings::above(context, &flags)?;
        let file = prepare::config_file(context, &args.common, real.work_tree(), None)?;
        let settings = above
            .clone()
            .or(lookup::without_rights(context, file.settings.clone()));
        let sources = Sources::new(context, above, file.settings)?;
        let mut resolved = settings::run_config(&sources, Vec::new())?.settings;
        if resolved.report == Report::Auto {
            resolved.report = Report::Github;
        }
        Ok(Self {
            settings,
            resolved,
            protected: settings::protected_paths(&sources)?,
        })
    }
}

/// The name set for this job, else that of the job that did the work, because the comment with this name
/// holds the state to continue from. `None` if neither is known.
fn name(context: &Context, set: &JobSettings, handed: &RunSummary) -> Option<RunName> {
    if let Some(name) = &set.settings.name {
        return Some(RunName::chosen(name));
    }
    RunName::of_other_job(
        context.var("GITHUB_WORKFLOW")?,
        handed.facts.name.as_deref()?,
    )
}

/// The summary as reported here, without the run's statements about the remote and about paths on its
/// machine.
fn start_summary(summary: &RunSummary, request: &RunRequest, own: &RunDir) -> RunSummary {
    let mut summary = summary.clone();
    summary.push = None;
    summary.facts.continuation = request.context.continuation();
    summary.facts.branch = request.branch.as_ref().map(|branch| branch.name.clone());
    summary.facts.run_dir = own.root().display().to_string();
    summary
}

/// Why the commits are not pushed.
enum Refused {
    /// They violate the policy, one violation per line.
    Policy(Vec<String>),
    /// The directory is damaged, or something required is missing.
    Broken(Error),
}

impl Refused {
    /// The warnings about it, and how the run ends; the error if nobody has stopped the job.
    fn end(self, cancel: &Cancel) -> Result<(Vec<String>, RunStatus, Reason)> {
        match self {
            Self::Policy(lines) => Ok((lines, RunStatus::Blocked, Reason::PolicyViolation)),
            Self::Broken(error) if cancel.reason().is_none() => Err(error),
            Self::Broken(error) => {
                let lines = vec![error.to_string()];
                Ok((lines, RunStatus::Cancelled, Reason::Cancelled))
            }
        }
    }
}

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        Self::Broken(error)
    }
}

/// Commits that were imported into the repository and meet the policy.
struct ImportedCommits {
    facts: CommitLine,
    /// The last commit, after the messages were cleaned.
    head: RevId,
    rebased: Vec<RebasedLine>,
    /// The commit of the branch; `None` if the branch does not exist.
    at: Option<RevId>,
    /// Whether they continue the branch at its current commit.
    fits: bool,
}

/// State that is the same for the whole job.
struct Job<'a> {
    context: &'a Context,
    actions: &'a ActionsEnvironment,
    real: &'a Real,
    request: &'a RunRequest,
    summary: &'a RunSummary,
    /// The branch that the run was on, according to its summary.
    worked_on: Option<&'a str>,
    set: &'a JobSettings,
    plan: Option<&'a str>,
    cancel: Cancel,
}

impl Job<'_> {
    async fn publish(&self, handed: &UntrustedRun, reporting: &mut Reporting) -> Result<u8> {
        process::listen(&self.cancel).map_err(anyhow::Error::from)?;
        self.real
            .stop_with(&self.cancel, self.context.times_after_signal());
        let mut sink = |event| reporting.take(event);
        let mut emit = Emitter::new(&mut sink, 0, self.summary.elapsed_ms);
        let bundle = handed
            .bundle
            .as_deref()
            .filter(|_| self.request.delivery.push);
        let (delivered, facts) = match bundle {
            None => (Delivered::Not, None),
            Some(path) => match self.deliver(path, &mut emit).await {
                Ok((delivered, facts)) => (delivered, Some(facts)),
                Err(refused) => {
                    let (lines, status, reason) = refused.end(&self.cancel)?;
                    for line in lines {
                        emit.warn(format!("nothing is pushed: {line}"));
                    }
                    return Ok(self.end(&mut emit, status, reason, None));
                }
            },
        };
        let ended = (
            self.summary.status.unwrap_or(RunStatus::Environment),
            self.summary.reason.unwrap_or(Reason::Environment),
        );
        if self.request.queued.is_some() {
            let run_id = &self.summary.facts.run_id;
            let uncounted = queue::count_run(self.context, self.request, ended.0, run_id).await;
            uncounted.into_iter().for_each(|why| emit.warn(why));
        }
        self.count_cost(&mut emit).await;
        self.post_review(&mut emit).await;
        let stopped = self.cancel.reason().is_some();
        let (status, reason) = end_of(ended, delivered, stopped);
        Ok(self.end(&mut emit, status, reason, facts.as_ref()))
    }

    /// Adds the cost in the run's summary to the spend of the day.
    async fn count_cost(&self, emit: &mut Emitter<'_>) {
        let usd = believed(self.summary.usage.cost_usd, self.set.resolved.max_cost_usd);
        let head = self.request.context.head.as_deref();
        let is_limited = self.set.resolved.max_cost_usd_per_day.is_some();
        if let Some(head) = head.filter(|_| is_limited && usd > 0.0) {
            let run = self.summary.facts.run_id.clone();
            let spent = [(run.clone(), usd)];
            let uncounted =
                cost_limits::add(self.context, &run, &spent, head, FOLLOW_UP_TIMEOUT).await;
            uncounted.into_iter().for_each(|why| emit.warn(why));
        }
    }

    /// Posts the findings as a review on the pull request. This job determines itself which lines the
    /// diff contains.
    async fn post_review(&self, emit: &mut Emitter<'_>) {
        let set = &self.set.resolved;
        if !(set.review_only && set.review_comments && self.request.delivery.report) {
            return;
        }
        let on_github = Some((self.actions, self.request));
        let base = set.base.as_deref();
        let posted = async {
            let change = reviewed_change(self.context, on_github, self.real, base).await?;
            let Some(change) = change else {
                return Ok(Vec::new());
            };
            let reviewed = Reviewed {
                head: &change.to.0,
                patch: &self.patch_of(&change)?,
            };
            let patience = FOLLOW_UP_TIMEOUT;
            Ok(post(self.actions, self.request, self.summary, reviewed, patience).await)
        };
        let troubles = posted.await.unwrap_or_else(|error: Error| {
            vec![format!("the findings are not posted as a review: {error}")]
        });
        troubles.into_iter().for_each(|why| emit.warn(why));
    }

    fn patch_of(&self, change: &ReviewedChange) -> Result<Vec<u8>> {
        let (_place, repo) = self.repo()?;
        let patch = repo.patch_between(&change.from, &change.to);
        patch.map_err(|error| Error::environment(error.to_string()))
    }

    /// The repository, in a place that is removed with the first value.
    fn repo(&self) -> Result<(tempfile::TempDir, Repo)> {
        let place = self.context.place_for_a_moment("sprag-publish-")?;
        let repo = Repo::create(self.real.clone(), &place.path().join(Folder::Git.name()));
        let repo = repo.map_err(|error| Error::environment(error.to_string()))?;
        Ok((place, repo))
    }

    fn end(
        &self,
        emit: &mut Emitter<'_>,
        status: RunStatus,
        reason: Reason,
        facts: Option<&CommitLine>,
    ) -> u8 {
        let is_own = Some(status) == self.summary.status;
        let exit_code = self
            .summary
            .exit_code
            .filter(|_| is_own)
            .unwrap_or_else(|| {
                status.exit_code(self.cancel.reason().and_then(CancelReason::signal))
            });
        let changed = facts.map(|facts| {
            let changes = facts.commits.iter().flat_map(|commit| &commit.changed);
            let paths = changes.map(|change| display_path(&change.path));
            BTreeSet::from_iter(paths).into_iter().collect()
        });
        emit.emit(EventKind::RunEnded {
            status,
            reason,
            exit_code,
            head: self.summary.head.clone(),
            changed_files: changed.unwrap_or_else(|| self.summary.changed_files.clone()),
        });
        exit_code
    }

    async fn deliver(
        &self,
        bundle: &Path,
        emit: &mut Emitter<'_>,
    ) -> Result<(Delivered, CommitLine), Refused> {
        let branch = self.branch()?;
        let (_place, repo) = self.repo()?;
        let remote = lookup::remote(self.context, self.actions)
            .map_err(|error| Error::config(error.to_string()))?;
        let taken = self.take(&repo, &remote, branch, bundle)?;
        let to = Destination {
            remote: &remote,
            branch: BranchName::parse(&branch.name)
                .map_err(|error| Error::config(error.to_string()))?,
            closed: delivery::closed_meanwhile(self.actions, self.request).await,
            pauses: &RETRY_PAUSES,
            cancel: self.cancel.clone(),
        };
        let is_there = |at: &&RevId| !taken.fits && repo.contains_commit(at, &taken.head);
        let ended = match taken.at.as_ref().filter(is_there) {
            Some(at) => PushEnd::Pushed(at.clone()),
            None if taken.fits || to.closed.is_some() => {
                to.push(&repo, &taken.head, taken.at.as_ref()).await
            }
            None => PushEnd::Moved(taken.head.clone()),
        };
        let run_id = &self.summary.facts.run_id;
        let mut push = match ended {
            PushEnd::Pushed(head) => {
                to.pushed(head, count(taken.facts.commits.len() as u64, "commit"))
            }
            PushEnd::Failed(failure) => to.keep(&repo, run_id, &taken.head, failure).await,
            // The result of a rebase would have to be verified by running the project's own code.
            PushEnd::Moved(_) => {
                let failure = PushFailure::here(MOVED);
                to.keep(&repo, run_id, &taken.head, failure).await
            }
        };
        if !push.pushed && push.rescue.is_none() {
            push.detail += "; the commits are in the bundle of the job that made them";
        }
        if self.request.delivery.via_api {
            emit.warn("the commits are pushed without GitHub's signature: `sprag publish` does not create commits through the API");
        }
        push.rebased = taken.rebased;
        let after = AfterPush {
            actions: self.actions,
            request: self.request,
            branch,
            summary: self.summary,
            patience: FOLLOW_UP_TIMEOUT,
        };
        let (done, troubles) = after.follow_up(&mut push).await;
        troubles.into_iter().for_each(|why| emit.warn(why));
        emit.emit(EventKind::PushEnded(Box::new(push)));
        Ok((Delivered::of(done), taken.facts))
    }

    /// The branch of the work according to this job's event, which must be the branch that the run was
    /// on, or a new branch for work on the base branch.
    fn branch(&self) -> Result<&WorkBranch> {
        let request = self.request;
        let is_new = |branch: &WorkBranch| {
            branch
                .name
                .starts_with(prefix_of(&self.set.resolved.branch))
                && !request.is_pull
                && request.number.is_none()
                && request.queued.is_none()
                && request.base_ref.as_deref() == self.worked_on
        };
        match &self.request.branch {
            None => Err(Error::config("this event has no branch for the work")
                .hint("give sprag publish the --issue or --queue of the run")),
            Some(branch) if self.worked_on == Some(branch.name.as_str()) => Ok(branch),
            Some(branch) if is_new(branch) => Ok(branch),
            Some(branch) => {
                let worked_on = self.worked_on.unwrap_or("no branch");
                let worked_on = crate::report::text::line(worked_on);
                Err(Error::config(format!(
                    "the run worked on {worked_on}, and this event's work goes to {}",
                    branch.name
                ))
                .hint("give sprag publish the --issue or --queue of the run, and the run a token that may read"))
            }
        }
    }

    /// Imports the commits and applies the policy to them.
    fn take(
        &self,
        repo: &Repo,
        remote: &Remote,
        branch: &WorkBranch,
        bundle: &Path,
    ) -> Result<ImportedCommits, Refused> {
        let at = branch.at.clone().map(RevId);
        let tip = at.clone().or_else(|| repo.base());
        let tip = tip.ok_or_else(|| Error::config("the checkout has no commit"))?;
        let unasked = |error: crate::git::RemoteError| {
            Error::environment(format!("{} cannot be fetched: {error}", branch.name))
                .hint("give the job's token `contents: write`")
        };
        if at.is_some() {
            repo.fetch_for(remote, &tip, &self.cancel)
                .map_err(unasked)?;
        }
        let start = Repo::bundle_base(bundle).map_err(not_taken)?;
        let is_tip = start == tip;
        if !is_tip {
            repo.fetch(remote, &tip.0, Some(ANCESTORS), &self.cancel)
                .map_err(unasked)?;
            if !repo.contains_commit(&tip, &start) {
                return Err(Refused::Policy(vec![format!(
                    "the work continues {}, which is not in the history of {}",
                    short(&start),
                    short(&tip)
                )]));
            }
        }
        let facts = repo.unbundle(bundle, &start).map_err(not_taken)?;
        self.check(repo, &facts)?;
        let (head, rebased) = harmless(repo, &start, &facts)?;
        Ok(ImportedCommits {
            fits: is_tip || at.is_none(),
            facts,
            head,
            rebased,
            at,
        })
    }

    fn check(&self, repo: &Repo, facts: &CommitLine) -> Result<(), Refused> {
        let ids: BTreeSet<&str> = facts.commits.iter().map(|it| it.id.0.as_str()).collect();
        let mut listed = self.summary.commits.iter();
        if let Some(stray) = listed.find(|id| !ids.contains(id.as_str())) {
            let what = format!("{SUMMARY} lists commit {stray}, which {BUNDLE} does not have");
            return Err(Error::config(what).into());
        }
        let page = self
            .actions
            .place
            .run_url()
            .filter(|_| self.context.in_actions());
        let secrets = detector(&self.context.env, &[]);
        let held: LineLookup<'_> = &|commit, text| repo.holds(commit, text).unwrap_or(false);
        let policy = Policy {
            protected: &self.set.protected,
            plan: self.plan,
            identities: &[identity_of_commits(self.context.in_actions(), repo)],
            messages: Messages::OfRun(&run_value(page, &self.summary.facts.run_id)),
            secrets: secrets.as_ref().map(|detector| (detector, held)),
        };
        let read = |commit: &RevId, path: &[u8]| repo.file_of(commit, path).ok().flatten();
        let lines = commit_policy::violations(facts, &policy, &read);
        if lines.is_empty() {
            Ok(())
        } else {
            Err(Refused::Policy(lines))
        }
    }
}

/// Cleans the messages again, by the rules for an agent's suggestions.
fn harmless(
    repo: &Repo,
    start: &RevId,
    facts: &CommitLine,
) -> Result<(RevId, Vec<RebasedLine>), Refused> {
    let mut messages = Vec::new();
    for commit in &facts.commits {
        let message = String::from_utf8_lossy(&commit.message);
        let clean = reviewed(&message).map(|read| read.text);
        let clean = clean.unwrap_or_else(|| message.into_owned());
        messages.push((commit.id.clone(), clean.into_bytes()));
    }
    let made = repo
        .reword(start, &messages)
        .map_err(|error| Error::environment(error.to_string()))?;
    let line = |commit: crate::git::Rewritten| RebasedLine {
        old: commit.old.0,
        new: commit.new.map(|id| id.0),
    };
    Ok((made.head, made.commits.into_iter().map(line).collect()))
}

fn not_taken(error: BundleError) -> Error {
    match error {
        BundleError::Git(error) => Error::environment(error.to_string()),
        error => Error::config(format!("{BUNDLE}: {error}")),
    }
}
