//! Determines the work of a run, its request and its branch from flags, inputs and the GitHub event.

use crate::cli::RunArgs;
use crate::context::Context;
use crate::domain::settings::{Report, Settings};
use crate::domain::trigger::issue;
use crate::domain::trigger::marker::Begin;
use crate::domain::trigger::{Request, refname};
use crate::error::{Error, Result};
use crate::git::{Real, path_in_tree};
use crate::github::actions_environment::{self, ActionsEnvironment};
use crate::github::api::Repo as GithubRepo;
use crate::github::lookup::{
    self, EventDecision, JobEnd, OwnWork, Purpose, RequestedWork, WorkSource,
};
use crate::github::queue::{self, Selection};
use crate::github::request::{RunRequest, WorkBranch};
use crate::report::actions_log::print_warning;
use crate::report::buffered_output::Time;
use crate::run::begin::isolation::filters_before_the_run;
use crate::run::begin::prepare::{self, Source};
use crate::run::begin::repository::for_others;
use crate::run::begin::reviewed_change::{ReviewedChange, review};
use crate::run::state::lock::{RunLock, lock};
use crate::settings;
use std::path::{Path, PathBuf};
use tokio::runtime::Runtime;

/// The result of evaluating a command line.
pub(crate) enum Start {
    /// There is nothing to run: the job ends here.
    Over(JobEnd),
    /// A run starts.
    Run(Box<PreparedSource>),
}

/// The source and request of a run. Its branch is checked out.
pub(crate) struct PreparedSource {
    pub(crate) source: Source,
    pub(crate) real: Real,
    pub(crate) request: Option<RunRequest>,
    /// A copy of the configuration file as it was before the switch to the run's branch, if that file
    /// differs.
    pub(crate) config: Option<PathBuf>,
    /// Held if the work tree was switched to another branch.
    pub(crate) lock: Option<RunLock>,
    /// The change to review, if the run only reviews.
    pub(crate) reviewed: Option<ReviewedChange>,
    /// Warnings for the user.
    pub(crate) warnings: Vec<String>,
}

/// The request in the command line or the inputs.
enum GivenSource {
    Source(Source),
    Issue(u64),
    Queue(String),
    Event,
    Nothing,
}

/// Determines what to do and checks out the branch for it.
///
/// # Errors
/// When the command line names no work or too much, or the work is not possible in this environment.
pub(crate) fn decide(context: &Context, args: &RunArgs, runtime: &Runtime) -> Result<Start> {
    let given = given_source(context, args)?;
    let above = settings::above(context, &args.settings)?;
    let mut real = crate::run::begin::repository::repository(context)?;
    let file = prepare::config_file(context, &args.common, real.work_tree(), None)?;
    let settings = above.or(lookup::without_rights(context, file.settings));
    real.confine_filters(filters_before_the_run(context, &real, &settings));
    let actions = ActionsEnvironment::named(context, settings.name.as_deref());
    let only_reviews = settings.review_only == Some(true);
    let given = match (given, only_reviews) {
        (given, true) => to_be_reviewed(given)?,
        (GivenSource::Nothing, false) => return Err(prepare::nothing_asked()),
        (given, false) => given,
    };
    let wanted = runtime.block_on(wanted(context, actions.as_ref(), &settings, &real, given))?;
    let mut warnings = Vec::new();
    let (source, request, held) = match wanted {
        Found::Over(ended) => return Ok(Start::Over(ended)),
        Found::Here(source, notes) => {
            warnings = notes;
            (source, None, None)
        }
        Found::There(source, mut request) => {
            request.may_tell(&settings, context.in_actions() && !args.dry_run);
            let refused = |error: &Error| report_refusal(context, &request, error, runtime);
            let on_github = actions.as_ref().filter(|_| !args.dry_run);
            let held = on_github
                .map(|actions| on_branch(context, args, actions, &real, &request))
                .transpose()
                .inspect_err(refused)?;
            (source, Some(*request), held)
        }
    };
    let (lock, config) = held.unzip();
    let (mut source, mut reviewed) = (source, None);
    if only_reviews {
        let base = settings.base.as_deref();
        let words = match &source {
            Source::Prompt(words) => words.as_str(),
            _ => "",
        };
        let asked = (actions.as_ref(), request.as_ref());
        let found = change_to_review(context, asked, &real, base, words, runtime)?;
        let Some((plan, change)) = found else {
            let why = "there is nothing to review: the base already has every commit";
            return Ok(Start::Over(JobEnd::nothing(why)));
        };
        (source, reviewed) = (Source::Text(plan), Some(change));
    }
    Ok(Start::Run(Box::new(PreparedSource {
        source,
        real,
        request,
        config: config.flatten(),
        lock,
        reviewed,
        warnings,
    })))
}

/// The change that a review is about, with the plan of the review. `None` if there is nothing to review.
fn change_to_review(
    context: &Context,
    (actions, request): (Option<&ActionsEnvironment>, Option<&RunRequest>),
    real: &Real,
    base: Option<&str>,
    words: &str,
    runtime: &Runtime,
) -> Result<Option<(String, ReviewedChange)>> {
    let on_github = actions.zip(request);
    let found = runtime.block_on(review(context, on_github, real, base, words));
    found.inspect_err(|error| {
        if let Some(request) = request {
            report_refusal(context, request, error, runtime);
        }
    })
}

/// A review looks at the pull request of the event or at the current branch, whatever else the event
/// requests. A prompt says what to look for.
fn to_be_reviewed(given: GivenSource) -> Result<GivenSource> {
    match given {
        GivenSource::Source(Source::Prompt(words)) => Ok(GivenSource::Source(Source::Prompt(words))),
        GivenSource::Event | GivenSource::Nothing => Ok(GivenSource::Source(Source::Prompt(String::new()))),
        GivenSource::Source(_) | GivenSource::Issue(_) | GivenSource::Queue(_) => Err(Error::usage(
            "review_only reviews a pull request or a branch; it does not run a plan, an issue or a queue",
        )
        .hint("leave out the plan, the issue or the queue; a prompt can say what to look for")),
    }
}

/// The configuration for a run on another branch.
enum Trusted {
    /// It lies outside of the work tree, or the work tree is not switched.
    Elsewhere,
    /// This text, or no file.
    Text(Option<Vec<u8>>),
}

/// The configuration as checked out before the switch or, if a fork's code may be checked out, as it is
/// on the base branch. Whoever may change the work branch must not choose the commands that run there.
fn trusted_config(
    context: &Context,
    actions: &ActionsEnvironment,
    real: &Real,
    request: &RunRequest,
    path: &Path,
) -> Result<Trusted> {
    let inside = path.strip_prefix(real.work_tree()).ok();
    let Some(inside) = inside.filter(|_| request.branch.is_some()) else {
        return Ok(Trusted::Elsewhere);
    };
    Ok(Trusted::Text(
        match (request.context.report_only, &request.base_ref) {
            (true, Some(base)) => lookup::file_of_branch(context, actions, real, base, inside)?,
            (true, None) => None,
            (false, _) if path.exists() => Some(settings::read_file(path, "configuration file")?),
            (false, _) => None,
        },
    ))
}

impl Trusted {
    /// Writes a copy to read instead of the file, if the file differs after the switch.
    fn kept(self, context: &Context, path: &Path) -> Result<Option<PathBuf>> {
        let Self::Text(text) = self else {
            return Ok(None);
        };
        let now = match path.symlink_metadata() {
            Ok(_) => settings::read_file(path, "configuration file").ok(),
            Err(_) => None,
        };
        if now == text {
            return Ok(None);
        }
        let place = context.place_for_a_moment("sprag-config-")?.keep();
        let copy = place.join("config.yaml");
        let text = text.as_deref().unwrap_or(b"{}\n");
        std::fs::write(&copy, text).map_err(anyhow::Error::from)?;
        Ok(Some(copy))
    }
}

/// Checks out the branch of a request. Also returns the configuration to read instead of that of the branch.
fn on_branch(
    context: &Context,
    args: &RunArgs,
    actions: &ActionsEnvironment,
    real: &Real,
    request: &RunRequest,
) -> Result<(RunLock, Option<PathBuf>)> {
    let path = prepare::config_path(context, &args.common, real.work_tree());
    let trusted = trusted_config(context, actions, real, request, &path)?;
    let held = lock(context, real)?;
    lookup::on_branch(context, actions, real, request)?;
    Ok((held, trusted.kept(context, &path)?))
}

/// Reports to whoever requested a run that it cannot start.
pub(crate) fn report_refusal(
    context: &Context,
    request: &RunRequest,
    error: &Error,
    runtime: &Runtime,
) {
    let error = for_others(context, error);
    for incident in runtime.block_on(lookup::report_not_started(context, request, &error)) {
        print_warning(&format!("GitHub: {incident}"), Time::Enough);
    }
}

/// The one request in the command line.
fn given_source(context: &Context, args: &RunArgs) -> Result<GivenSource> {
    let named = [
        args.issue.map(|_| "--issue"),
        args.queue.as_ref().map(|_| "--queue"),
        args.event.then_some("--event"),
    ];
    let named: Vec<&str> = named.into_iter().flatten().collect();
    let has_source = prepare::has_source(args);
    if named.len() + usize::from(has_source) > 1 {
        let all = if has_source {
            format!("{} and a plan or prompt", named.join(" and "))
        } else {
            named.join(" and ")
        };
        return Err(Error::usage(format!("{all} were given together")).hint(prepare::CHOICES));
    }
    if let Some(number) = args.issue {
        return Ok(GivenSource::Issue(number));
    }
    if let Some(dir) = &args.queue {
        let dir = dir.display().to_string().trim_end_matches('/').to_owned();
        refname::check_path(&dir).map_err(|why| Error::usage(format!("--queue {dir}: {why}")))?;
        return Ok(GivenSource::Queue(dir));
    }
    let is_event = args.event
        || (!has_source && context.in_actions() && actions_environment::event(context).is_some());
    match (is_event, has_source) {
        (true, _) => Ok(GivenSource::Event),
        (false, true) => Ok(GivenSource::Source(prepare::source(context, args)?)),
        (false, false) => Ok(GivenSource::Nothing),
    }
}

enum Found {
    Over(JobEnd),
    /// A run without GitHub, and warnings for the user.
    Here(Source, Vec<String>),
    There(Source, Box<RunRequest>),
}

async fn wanted(
    context: &Context,
    actions: Option<&ActionsEnvironment>,
    settings: &Settings,
    real: &Real,
    given: GivenSource,
) -> Result<Found> {
    let has_event = context.in_actions() && actions_environment::event(context).is_some();
    let is_explicit = matches!(given, GivenSource::Source(_) | GivenSource::Queue(_));
    let Some(actions) = actions else {
        return without_github(context, settings, real, given);
    };
    let wants = context.in_actions() || reaches_out(settings);
    let found = match &given {
        GivenSource::Source(source) if !wants => {
            return Ok(Found::Here(source.clone(), Vec::new()));
        }
        GivenSource::Issue(number) => of_issue(context, actions, settings, *number).await?,
        GivenSource::Event => lookup::decide(context, actions, settings, Purpose::Event).await?,
        _ if has_event => {
            let purpose = if is_explicit {
                Purpose::Place
            } else {
                Purpose::Event
            };
            lookup::decide(context, actions, settings, purpose).await?
        }
        _ => EventDecision::configured(context, actions),
    };
    let RequestedWork {
        source,
        mut request,
    } = match found.into_work(context, real) {
        Ok(wanted) => wanted,
        Err(ended) => return Ok(Found::Over(ended)),
    };
    let queue = match (&given, &source) {
        (GivenSource::Queue(dir), _) => Some(dir.clone()),
        (_, WorkSource::Queue(dir)) => Some(dir.clone()),
        _ => None,
    };
    if let Some(dir) = queue {
        request.branch = None;
        return Ok(
            match queue::choose(context, actions, real, &dir, &mut request).await? {
                Selection::Over(ended) => Found::Over(ended),
                Selection::Plan(path) => Found::There(Source::File(path), Box::new(request)),
            },
        );
    }
    let source = source_of_tasks(given, source, real)?;
    give_own_branch((context, actions, real), settings, &source, &mut request).await?;
    Ok(Found::There(source, Box::new(request)))
}

/// Gives the work a branch of its own if it would otherwise be on the base branch.
async fn give_own_branch(
    (context, actions, real): (&Context, &ActionsEnvironment, &Real),
    settings: &Settings,
    source: &Source,
    request: &mut RunRequest,
) -> Result<()> {
    let path;
    let work = match source {
        Source::File(file) | Source::Known { path: file, .. } => {
            path = path_in_tree(&context.cwd.join(file), real.work_tree());
            OwnWork::Plan(&path)
        }
        Source::Prompt(text) | Source::Text(text) => OwnWork::Text(text),
    };
    lookup::give_own_branch((context, actions, real), settings, work, request).await
}

/// The source of work that is not a queue. What an event asks for takes precedence over what is given.
fn source_of_tasks(given: GivenSource, requested: WorkSource, real: &Real) -> Result<Source> {
    match (given, requested) {
        (_, WorkSource::Plan(path)) => Ok(Source::File(real.work_tree().join(path))),
        (_, WorkSource::Prompt(text)) => Ok(Source::Prompt(text)),
        (_, WorkSource::PlanText(text)) => Ok(Source::Text(text)),
        (GivenSource::Source(source), _) => Ok(source),
        _ => Err(
            Error::usage("nothing to do: the event names no plan and no prompt")
                .hint("give the step the input plan, prompt, prompt-file or queue"),
        ),
    }
}

/// Whether settings require GitHub outside of GitHub Actions.
fn reaches_out(settings: &Settings) -> bool {
    settings.report == Some(Report::Github) || settings.push == Some(true)
}

/// The error if `what` needs GitHub and there is no access to it.
pub(crate) fn no_access(context: &Context, what: &str) -> Error {
    let error = Error::environment(format!("{what} needs GitHub, and there is no access to it"));
    let remedy = match actions_environment::place(context) {
        Some(_) => "give the step the input github-token, or set GITHUB_TOKEN",
        None => "set GITHUB_REPOSITORY (OWNER/NAME) and GITHUB_TOKEN",
    };
    error.hint(remedy)
}

fn without_github(
    context: &Context,
    settings: &Settings,
    real: &Real,
    given: GivenSource,
) -> Result<Found> {
    let missing = |what: &str| no_access(context, what);
    match given {
        GivenSource::Issue(_) => Err(missing("--issue")),
        // In a job, work on the checked-out branch would be lost.
        GivenSource::Queue(_) if context.in_actions() => Err(missing("--queue")),
        GivenSource::Source(_) | GivenSource::Queue(_) if settings.push == Some(true) => {
            Err(missing("--push"))
        }
        GivenSource::Source(_) | GivenSource::Queue(_)
            if settings.report == Some(Report::Github) =>
        {
            Err(missing("--report github"))
        }
        GivenSource::Source(source) => Ok(Found::Here(source, Vec::new())),
        GivenSource::Queue(dir) => Ok(match queue::choose_here(real, &dir)? {
            (Selection::Over(ended), _) => Found::Over(ended),
            (Selection::Plan(path), blocked) => Found::Here(Source::File(path), blocked),
        }),
        GivenSource::Event | GivenSource::Nothing => Err(missing("--event")),
    }
}

/// The text of a source that is a plan without a file.
pub(crate) fn source_text(source: &WorkSource) -> Option<&str> {
    match source {
        WorkSource::PlanText(text) => Some(text),
        _ => None,
    }
}

/// `--issue N`: a task for each item of the checklist or each heading, else one task for the whole
/// issue.
pub(crate) async fn of_issue(
    context: &Context,
    actions: &ActionsEnvironment,
    settings: &Settings,
    number: u64,
) -> Result<EventDecision> {
    let client = actions.client()?;
    let repo = client.repo(&actions.place.repository)?;
    if context.in_actions() {
        let mut triggers = lookup::trigger_settings(settings, context);
        triggers.own_login = client.identity().await.ok().map(|identity| identity.login);
        if let Some(ended) = lookup::refuse_stranger(context, &repo, &triggers, true).await? {
            return Ok(EventDecision::Over(ended));
        }
    }
    let found = repo.issue(number).await?;
    if found.is_pull {
        return Err(
            Error::usage(format!("#{number} is a pull request, not an issue"))
                .hint("comment on it, or give --prompt"),
        );
    }
    if found.state != "open" {
        return Ok(EventDecision::Over(JobEnd::nothing(format!(
            "issue #{number} is closed"
        ))));
    }
    let mut request = request_of_issue(context, actions, &repo, number).await?;
    request.context.trigger_phrase = Some(settings.clone().resolve(false).trigger_phrase);
    let identity = client.identity().await;
    let lookup = lookup::EventLookup {
        repo: &repo,
        identity: identity.as_ref(),
        name: &actions.place.name,
    };
    lookup.recall(&mut request).await;
    let before = request.state.clone();
    let is_own = |title: &str| before.is_done(title);
    let mut plan = issue::plan(&found.title, &found.body, is_own);
    let resolved = lookup.resolve_references(&mut plan.plan, None).await;
    resolved.map_err(|refusal| Error::usage(refusal.to_string()).hint(refusal.remedy()))?;
    request.context.notes = plan.notes;
    let day = jiff::Timestamp::now().strftime("%Y-%m-%d").to_string();
    request.state = request.state.begin(&Begin {
        day: &day,
        answers: None,
        by_machine: false,
        request: &Request::IssuePlan,
    });
    lookup::note_own(&mut request.state, &plan.plan, is_own);
    let source = WorkSource::PlanText(plan.plan.texts());
    Ok(EventDecision::work(source, request))
}

/// The request for work on an issue, on the branch of the issue.
async fn request_of_issue(
    context: &Context,
    actions: &ActionsEnvironment,
    repo: &GithubRepo,
    number: u64,
) -> Result<RunRequest> {
    let mut request = lookup::at_the_ref(context, actions.place.clone());
    let name = format!("sprag/issue-{number}");
    let at = repo.branch(&name).await?;
    request.branch = Some(WorkBranch {
        name,
        at: at.map(|branch| branch.sha),
    });
    if request.base_ref.is_none() {
        request.base_ref = Some(repo.default_branch().await?);
    }
    request.number = Some(number);
    Ok(request)
}
