//! `--queue DIR`: selects the next ready plan of a directory. Each plan is worked on in its own branch.

use crate::context::Context;
use crate::domain::outcome::{Reason, RunStatus};
use crate::domain::plan::{self, Plan, Priority, TaskStatus, without_owned_keys};
use crate::domain::queue::{
    Choice, MAX_FAILED_RUNS, Next, PassedOver, Progress, QueuedPlan, can_be_plan, name_of, next,
};
use crate::domain::settings::Settings;
use crate::domain::snapshot::RevId;
use crate::error::{Error, Result};
use crate::git::{Real, path_in_tree};
use crate::github::actions_environment::ActionsEnvironment;
use crate::github::api::Repo as Remote;
use crate::github::lookup::{Checkout, JobEnd, NoRun, PlanBranches};
use crate::github::request::{RunRequest, WorkBranch};
use crate::settings;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Prefix of the refs that count the failed runs of a plan: `<slug>/<digest of the plan>-<run>`. They need no
/// branch, pull request or issue. Since the digest changes when a plan is edited, the plan is then tried
/// again.
const FAILED: &str = "refs/sprag/queue/";

/// Time limit for counting a run on GitHub.
const COUNT_TIMEOUT: Duration = Duration::from_secs(20);

/// A plan file and the state of its work.
struct Entry {
    path: PathBuf,
    digest: String,
    branch: WorkBranch,
    queued: QueuedPlan,
}

/// Selects the next plan, sets the branch of the request, and records why every other plan was passed over. Returns its
/// path relative to the work tree.
///
/// # Errors
/// When there is none, or the directory or GitHub cannot be read.
pub async fn choose(
    checkout: Checkout<'_>,
    settings: &Settings,
    dir: &str,
    request: &mut RunRequest,
) -> Result<PathBuf, NoRun> {
    let Checkout { actions, real, .. } = checkout;
    let github = actions.repo()?;
    let base_ref = match &request.base_ref {
        Some(name) => name.clone(),
        None => github.default_branch().await?,
    };
    let branches = PlanBranches::read(checkout, settings.branch_template()).await?;
    let failed = github.refs_below(FAILED).await?;
    let mut entries = entries(real, dir, |path| branches.of(path))?;
    for entry in &mut entries {
        if entry.look(checkout, &failed, &github, &base_ref).await? {
            let (name, branch) = (&entry.queued.name, &entry.branch.name);
            request.context.notes.push(format!(
                "queue: {name}: its branch has another version of the plan than {base_ref}, and that version is used; merge {base_ref} into {branch} to change it",
            ));
        }
    }
    let choice = next(&plans(&entries));
    let passed_over = passed_over(&choice);
    let notes = passed_over.iter().map(|one| format!("queue: {one}"));
    request.context.notes.extend(notes);
    request.base_ref = Some(base_ref);
    let entry = chosen(dir, &choice, &entries)?;
    request.branch = Some(entry.branch.clone());
    request.queued = Some(failed_prefix(entry));
    Ok(entry.path.clone())
}

/// Selects the next plan without GitHub. All plans are worked on in the checked-out branch, whose files alone
/// say how far each has come. Also returns why plans need a person before they continue.
///
/// # Errors
/// When there is none, or the directory cannot be read.
pub fn choose_here(real: &Real, dir: &str) -> Result<(PathBuf, Vec<String>), NoRun> {
    let (name, at) = (String::new(), None);
    let no_branch = WorkBranch { name, at };
    let entries = entries(real, dir, |_| Ok(no_branch.clone()))?;
    let choice = next(&plans(&entries));
    let blocked = blocked(&choice).into_iter();
    let entry = chosen(dir, &choice, &entries)?;
    let notes = blocked.map(|one| format!("queue: {one}"));
    Ok((entry.path.clone(), notes.collect()))
}

fn plans(entries: &[Entry]) -> Vec<QueuedPlan> {
    entries.iter().map(|entry| entry.queued.clone()).collect()
}

/// Why each plan that was not selected was passed over.
fn passed_over(choice: &Choice) -> Vec<String> {
    choice.passed_over.iter().map(shown).collect()
}

/// Why plans need a person before they continue.
fn blocked(choice: &Choice) -> Vec<String> {
    let all = choice.passed_over.iter();
    all.filter(|one| one.why.needs_person())
        .map(shown)
        .collect()
}

fn shown(one: &PassedOver) -> String {
    format!("{}: {}", one.name, one.why)
}

/// The selected plan, or how the job ends without one.
fn chosen<'a>(dir: &str, choice: &Choice, entries: &'a [Entry]) -> Result<&'a Entry, JobEnd> {
    let why = passed_over(choice).join("; ");
    match &choice.next {
        Next::Nothing { reason } if why.is_empty() => Err(JobEnd::nothing(reason)),
        Next::Nothing { reason } => Err(JobEnd::nothing(format!("{reason} ({why})"))),
        Next::NeedsPerson { .. } => Err(needs_person(dir, &blocked(choice).join("; "))),
        Next::Run { index, .. } => {
            let found = entries.get(*index);
            found.ok_or_else(|| JobEnd::nothing("there is no plan"))
        }
    }
}

fn needs_person(dir: &str, why: &str) -> JobEnd {
    let why = format!("no plan of {dir} can continue without a person: {why}");
    let remedy = format!(
        "Look at the last run of each. A plan that gave up after {MAX_FAILED_RUNS} failed runs is tried again once its file is edited."
    );
    JobEnd::new(RunStatus::Blocked, Reason::Refused, why, Some(remedy))
}

/// Records a failed run of a queue's plan for the next run. A successful run resets the count. Returns what
/// could not be recorded.
pub async fn count_run(
    context: &Context,
    request: &RunRequest,
    status: RunStatus,
    run_id: &str,
) -> Option<String> {
    let prefix = request.queued.as_ref()?;
    let actions = ActionsEnvironment::of(context)?;
    let counted = async {
        let github = actions.repo()?.within(COUNT_TIMEOUT);
        match status {
            status if status.is_complete() => {
                for (name, _) in github.refs_below(prefix).await? {
                    github.delete_ref(&name).await?;
                }
            }
            // These ends do not depend on the plan, which is tried again.
            RunStatus::Cancelled | RunStatus::Environment | RunStatus::Deadline => {}
            _ => {
                if let Some(head) = &request.context.head {
                    github
                        .create_ref(&format!("{prefix}{run_id}"), head)
                        .await?;
                }
            }
        }
        Ok::<_, crate::github::api::Error>(())
    };
    let error = counted.await.err()?;
    Some(format!("the failed run could not be counted: {error}"))
}

fn failed_prefix(entry: &Entry) -> String {
    let slug = &entry.branch.name;
    let slug = slug.strip_prefix("sprag/").unwrap_or(slug);
    format!("{FAILED}{slug}/{}-", entry.digest)
}

fn entries(
    real: &Real,
    dir: &str,
    branch_of: impl Fn(&str) -> Result<WorkBranch>,
) -> Result<Vec<Entry>> {
    let at = real.work_tree().join(dir);
    let listed = std::fs::read_dir(&at).map_err(|error| {
        Error::config(format!("the queue {dir} cannot be read: {error}"))
            .hint("--queue takes a directory of plan files, relative to the work tree")
    })?;
    let mut entries = Vec::new();
    for file in listed {
        let path = file.map_err(anyhow::Error::from)?.path();
        let shown = path_in_tree(&path, real.work_tree());
        let name = name_of(&shown).to_owned();
        let is_plan = path.to_str().is_some() && can_be_plan(&shown) && path.is_file();
        if !is_plan || name.eq_ignore_ascii_case("readme") || real.ignores(&path) {
            continue;
        }
        let bytes = settings::read_file(&path, "plan")?;
        let plan = plan::parse(&shown, &bytes).map_err(settings::located);
        let (plan, invalid) = match plan {
            Ok(plan) => (plan.value, None),
            Err(error) => (Plan::default(), Some(error.message)),
        };
        let is_merged = invalid.is_none() && is_done(&plan);
        let branch = branch_of(&shown)?;
        entries.push(Entry {
            digest: digest(&shown, &bytes),
            queued: QueuedPlan {
                path: shown,
                name,
                branch: branch.name.clone(),
                id: plan.id,
                priority: plan.priority.unwrap_or(Priority::Medium),
                depends_on: plan.depends_on,
                progress: if is_merged {
                    Progress::Merged
                } else {
                    Progress::Open
                },
                failed_runs: 0,
                open_pull: false,
                invalid,
            },
            path,
            branch,
        });
    }
    entries.sort_by(|one, other| one.queued.name.cmp(&other.queued.name));
    Ok(entries)
}

impl Entry {
    /// Completes the state of the plan by what GitHub has of it. Returns whether its branch has a different version.
    async fn look(
        &mut self,
        checkout: Checkout<'_>,
        failed: &[(String, String)],
        github: &Remote,
        base: &str,
    ) -> Result<bool> {
        let prefix = failed_prefix(self);
        let plan = &mut self.queued;
        let runs = failed.iter().filter(|(name, _)| name.starts_with(&prefix));
        plan.failed_runs = u32::try_from(runs.count()).unwrap_or(u32::MAX);
        let is_open = plan.progress == Progress::Open && plan.invalid.is_none();
        let Some(head) = self.branch.at.as_ref().filter(|_| is_open) else {
            return Ok(false);
        };
        let there = on_branch(checkout, &plan.path, head)?;
        let has_done = there.as_ref().is_some_and(|(plan, _)| is_done(plan));
        let differs = there.is_some_and(|(_, digest)| digest != self.digest);
        let pulls = github.open_pulls_of(&self.branch.name, base).await;
        let has_none = pulls.as_ref().is_ok_and(Vec::is_empty);
        plan.open_pull = pulls.is_ok_and(|pulls| !pulls.is_empty());
        if has_done {
            let is_edited = differs && has_none;
            plan.progress = if is_edited {
                Progress::DoneBeforeEdit
            } else {
                Progress::Done
            };
        }
        Ok(differs)
    }
}

/// A digest that changes if the plan is edited, but not if the states of its tasks change.
fn digest(name: &str, bytes: &[u8]) -> String {
    let own = without_owned_keys(name, bytes);
    let digest = blake3::hash(format!("{own:?}").as_bytes()).to_hex();
    digest.chars().take(12).collect()
}

fn is_done(plan: &Plan) -> bool {
    let mut tasks = plan.tasks.iter();
    tasks.all(|task| task.status == TaskStatus::Done)
}

/// The version of the plan in its own branch, and its digest.
fn on_branch(checkout: Checkout<'_>, path: &str, head: &str) -> Result<Option<(Plan, String)>> {
    let what = format!("the branch of {path}");
    let head = RevId(head.to_owned());
    let bytes = checkout.fetched(&what, |_, _| Ok(head), Path::new(path))?;
    Ok(bytes.and_then(|bytes| {
        let parsed = plan::parse(path, &bytes).ok()?;
        Some((parsed.value, digest(path, &bytes)))
    }))
}
