//! Determines the work of a run, its request and its branch from flags, inputs and the GitHub event.

use crate::cli::RunArgs;
use crate::context::Context;
use crate::domain::config_file::ConfigFile;
use crate::domain::settings::branch::prefix_of;
use crate::domain::settings::{Approve, Group, Report, Settings, keys};
use crate::domain::trigger::issue;
use crate::domain::trigger::marker::Begin;
use crate::domain::trigger::{Request, refname};
use crate::error::{Error, Result};
use crate::git::{Real, path_in_tree, path_within};
use crate::github::actions_environment::{self, ActionsEnvironment};
use crate::github::api::Repo as GithubRepo;
use crate::github::lookup::{
    self, Checkout, JobEnd, NoRun, OwnWork, Purpose, RequestedWork, WorkSource,
};
use crate::github::queue;
use crate::github::request::{RunRequest, WorkBranch};
use crate::report::actions_log::print_warning;
use crate::report::buffered_output::Time;
use crate::run::begin::draft_request::{DraftRequest, plan_of_draft};
use crate::run::begin::isolation::filters_before_the_run;
use crate::run::begin::prepare::{self, Source};
use crate::run::begin::reopen::LeftRun;
use crate::run::begin::repository::{for_others, repository};
use crate::run::begin::reviewed_change::review;
use crate::run::begin::work::Work;
use crate::run::state::directory::RunDir;
use crate::run::state::lock::{RunLock, lock};
use crate::settings;
use crate::settings::flags::SettingFlags;
use std::path::{Path, PathBuf};
use tokio::runtime::Runtime;

/// The source and request of a run. Its branch is checked out.
pub(crate) struct PreparedSource {
    pub(crate) source: Source,
    pub(crate) real: Real,
    pub(crate) work: Work,
    pub(crate) request: Option<RunRequest>,
    /// Flags, inputs and variables.
    pub(crate) above: Settings,
    /// The configuration that the run trusts.
    pub(crate) file: ConfigFile,
    /// Its text, if the work tree was switched to another branch.
    pub(crate) trusted: Option<String>,
    /// Held if the work tree was switched to another branch.
    pub(crate) lock: Option<RunLock>,
    /// Warnings for the user.
    pub(crate) warnings: Vec<String>,
}

impl PreparedSource {
    /// The run in this directory, restored from another machine, which this job continues.
    pub(crate) fn continued_in(self, context: &Context, run_dir: RunDir) -> Result<LeftRun> {
        Ok(LeftRun {
            lock: self.lock.map_or_else(|| lock(context, &self.real), Ok)?,
            real: self.real,
            run_dir,
            request: self.request,
            elsewhere: Some(self.file),
        })
    }
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
/// When there is nothing to run, the command line names no work or too much, or the work is not possible in this
/// environment.
pub(crate) fn decide(
    context: &Context,
    args: &RunArgs,
    runtime: &Runtime,
) -> Result<PreparedSource, NoRun> {
    let given = given_source(context, args)?;
    let mut real = repository(context)?;
    let configured = settings::above(context, &args.settings).and_then(|above| {
        let config = ConfigText::read(context, args, &real)?;
        let file = config.parse()?;
        Ok((above, config, file))
    });
    let (above, config, file) =
        configured.inspect_err(|error| answer(context, args, &real, error, runtime))?;
    let settings = above
        .clone()
        .or(lookup::without_rights(context, file.settings.clone()));
    real.confine_filters(filters_before_the_run(context, &real, &settings));
    let actions = ActionsEnvironment::named(context, settings.name.as_deref());
    let only_reviews = settings.review_only == Some(true);
    let given = match (given, only_reviews) {
        (given, true) => to_be_reviewed(given)?,
        (GivenSource::Nothing, false) => return Err(prepare::nothing_asked().into()),
        (given, false) => given,
    };
    let wanted = runtime.block_on(wanted(context, actions.as_ref(), &settings, &real, given))?;
    let mut ready = PreparedSource {
        source: Source::Prompt(String::new()),
        real,
        work: match &args.shards[..] {
            [] => Work::Tasks,
            shards => Work::Integration(shards.to_vec()),
        },
        request: None,
        above,
        file,
        trusted: None,
        lock: None,
        warnings: Vec::new(),
    };
    match wanted {
        Wanted::Here(source, notes) => {
            ready.source = source;
            ready.warnings = notes;
            ready.warnings.extend(without_effect(&args.settings));
        }
        Wanted::There(source, mut request) => {
            if let Some(text) = &request.drafts {
                ready.work = Work::Draft(DraftRequest::to_be_shown(text));
            }
            request.may_tell(&settings, context.in_actions() && !args.dry_run);
            ready.source = source;
            if let Some(actions) = actions.as_ref().filter(|_| !args.dry_run) {
                switch_branch(context, actions, config, &request, &mut ready, runtime)
                    .inspect_err(|error| report_refusal(context, &request, error, runtime))?;
            }
            ready.request = Some(*request);
        }
    }
    if only_reviews {
        let words = match &ready.source {
            Source::Prompt(words) => words.as_str(),
            _ => "",
        };
        let on_github = actions.as_ref().zip(ready.request.as_ref());
        let base = settings.base.as_deref();
        let found = runtime.block_on(review(context, on_github, &ready.real, base, words));
        let found = found.inspect_err(|error| {
            report_not_started(context, ready.request.as_ref(), error, runtime);
        })?;
        let Some((plan, change)) = found else {
            let why = "there is nothing to review: the base already has every commit";
            return Err(JobEnd::nothing(why).into());
        };
        ready.source = Source::Text(plan);
        ready.work = Work::Review(change);
    }
    Ok(ready)
}

/// The configuration as it is before the work tree is switched to another branch.
struct ConfigText {
    places: Vec<PathBuf>,
    name: String,
    text: Vec<u8>,
}

impl ConfigText {
    fn read(context: &Context, args: &RunArgs, real: &Real) -> Result<Self> {
        let path = prepare::config_path(context, &args.common, real.work_tree());
        Ok(Self {
            name: path_within(&path, real.work_tree()),
            text: prepare::config_text(context, &args.common, real.work_tree(), None)?,
            places: prepare::config_places(context, &args.common, real.work_tree()),
        })
    }

    fn parse(&self) -> Result<ConfigFile> {
        prepare::parse_config(&self.name, &self.text)
    }
}

/// Checks out the branch of a request. The configuration stays as it was before the switch or, if a fork's code may
/// be checked out, is that of the default branch: neither whoever may change the work branch nor whoever may choose an
/// old branch as its base chooses the commands that run there.
fn switch_branch(
    context: &Context,
    actions: &ActionsEnvironment,
    mut config: ConfigText,
    request: &RunRequest,
    ready: &mut PreparedSource,
    runtime: &Runtime,
) -> Result<()> {
    let real = &ready.real;
    let checkout = Checkout {
        context,
        actions,
        real,
    };
    let inside = |path: &PathBuf| {
        path.strip_prefix(real.work_tree())
            .ok()
            .map(Path::to_path_buf)
    };
    let places: Vec<PathBuf> = config.places.iter().filter_map(inside).collect();
    if !places.is_empty() && request.branch.is_some() {
        if request.context.report_only {
            config.text.clear();
            let client = actions.client()?;
            let repo = client.repo(&actions.place.repository)?;
            let base = runtime.block_on(repo.default_branch())?;
            // A fork may add a nearer file, which does not count.
            for place in &places {
                let text = checkout.file_of_branch(&base, place)?;
                if let Some(text) = text {
                    config.text = text;
                    break;
                }
            }
            ready.file = config.parse()?;
            if request.base_ref.as_ref() != Some(&base) {
                ready.warnings.push(format!(
                    "the configuration is that of {base}: people without write access may choose another base"
                ));
            }
        }
        ready.trusted = Some(String::from_utf8_lossy(&config.text).into_owned());
    }
    ready.lock = Some(lock(context, real)?);
    checkout.switch_to(request)
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

/// Reports to whoever requested the run, if somebody did, that it cannot start.
pub(crate) fn report_not_started(
    context: &Context,
    request: Option<&RunRequest>,
    error: &Error,
    runtime: &Runtime,
) {
    if let Some(request) = request {
        report_refusal(context, request, error, runtime);
    }
}

/// Reports to whoever requested a run with an event that its settings are wrong. Who may ask is decided by the
/// defaults.
fn answer(context: &Context, args: &RunArgs, real: &Real, error: &Error, runtime: &Runtime) {
    let settings = Settings::default();
    let actions = ActionsEnvironment::named(context, None);
    let Ok(given) = given_source(context, args) else {
        return;
    };
    let wanted = wanted(context, actions.as_ref(), &settings, real, given);
    if let Ok(Wanted::There(_, mut request)) = runtime.block_on(wanted) {
        request.may_tell(&settings, context.in_actions() && !args.dry_run);
        report_refusal(context, &request, error, runtime);
    }
}

/// Reports to whoever requested a run that it cannot start.
fn report_refusal(context: &Context, request: &RunRequest, error: &Error, runtime: &Runtime) {
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

enum Wanted {
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
) -> Result<Wanted, NoRun> {
    let has_event = context.in_actions() && actions_environment::event(context).is_some();
    let is_explicit = matches!(given, GivenSource::Source(_) | GivenSource::Queue(_));
    let Some(actions) = actions else {
        return without_github(context, settings, real, given);
    };
    let wants = context.in_actions() || reaches_out(settings);
    if has_event && awaits_approval(context, settings) {
        return to_approve(context, actions, settings, &given).await;
    }
    let found = match &given {
        GivenSource::Source(source) if !wants => {
            return Ok(Wanted::Here(source.clone(), Vec::new()));
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
        _ => RequestedWork::configured(context, actions),
    };
    let RequestedWork {
        source,
        mut request,
    } = found.placed(context, real);
    let queue = match (&given, &source) {
        (GivenSource::Queue(dir), _) => Some(dir.clone()),
        (_, WorkSource::Queue(dir)) => Some(dir.clone()),
        _ => None,
    };
    let checkout = Checkout {
        context,
        actions,
        real,
    };
    if let Some(dir) = queue {
        request.branch = None;
        let path = queue::choose(checkout, settings, &dir, &mut request).await?;
        return Ok(Wanted::There(Source::File(path), Box::new(request)));
    }
    if let WorkSource::Draft(text) = &source {
        request.drafts = Some(text.clone());
    }
    let source = source_of_tasks(given, source, real)?;
    let path;
    let work = match &source {
        Source::File(file) | Source::Known { path: file, .. } => {
            path = path_in_tree(&context.cwd.join(file), real.work_tree());
            OwnWork::Plan(&path)
        }
        Source::Prompt(text) | Source::Text(text) => OwnWork::Text(text),
    };
    // The work gets a branch of its own if it would otherwise be on the base branch.
    lookup::give_own_branch(checkout, settings, work, &mut request).await?;
    Ok(Wanted::There(source, Box::new(request)))
}

/// Whether the work of this job must be approved, and no thread asks for it.
fn awaits_approval(context: &Context, settings: &Settings) -> bool {
    let event = actions_environment::event(context);
    let is_schedule = event.is_some_and(|(name, _)| name == "schedule");
    is_schedule && settings.approve == Some(Approve::Required)
}

/// Drafts a plan for the prompt of a schedule, in an issue of its own where somebody approves it.
async fn to_approve(
    context: &Context,
    actions: &ActionsEnvironment,
    settings: &Settings,
    given: &GivenSource,
) -> Result<Wanted, NoRun> {
    let GivenSource::Source(Source::Prompt(text)) = given else {
        let message = "with `approve: required` a schedule drafts a plan from a prompt, and it has a plan or a queue";
        let hint = "give the step the input prompt, or let `environment` of the job ask a person";
        return Err(Error::config(message).hint(hint).into());
    };
    let client = actions.client()?;
    let repo = client.repo(&actions.place.repository)?;
    let identity = client.identity().await?;
    let title = format!("Plan of {}", actions.place.name.as_str());
    let text_of_issue = "The comment below shows a plan that nobody has approved yet.";
    let number = repo.own_issue(&title, text_of_issue, &identity).await;
    let number = number.map_err(|error| {
        let message = format!("the plan cannot be shown in an issue: {error}");
        Error::environment(message).hint("give the job the permission `issues: write`")
    })?;
    let mut request = request_of_issue(context, actions, settings, &repo, number).await?;
    request.context.trigger_phrase = Some(settings.clone().resolve(true).trigger_phrase);
    let lookup = lookup::EventLookup {
        repo: &repo,
        identity: Ok(&identity),
        name: &actions.place.name,
        branch: settings.branch_template(),
    };
    lookup.recall(&mut request).await;
    let day = jiff::Timestamp::now().strftime("%Y-%m-%d").to_string();
    request.state = request.state.begin(&Begin {
        day: &day,
        answers: None,
        by_machine: true,
        request: &Request::Draft(text.clone()),
    });
    request.drafts = Some(text.clone());
    let plan = plan_of_draft("the schedule", text);
    Ok(Wanted::There(Source::Text(plan), Box::new(request)))
}

/// The source of work that is not a queue. What an event asks for takes precedence over what is given.
fn source_of_tasks(given: GivenSource, requested: WorkSource, real: &Real) -> Result<Source> {
    match (given, requested) {
        (_, WorkSource::Plan(path)) => Ok(Source::File(real.work_tree().join(path))),
        (_, WorkSource::Prompt(text)) => Ok(Source::Prompt(text)),
        (_, WorkSource::PlanText(text)) => Ok(Source::Text(text)),
        (_, WorkSource::Draft(text)) => Ok(Source::Text(plan_of_draft("the request", &text))),
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

/// The warning about flags that only a run for GitHub uses.
fn without_effect(flags: &SettingFlags) -> Option<String> {
    let keys = keys().into_iter();
    let of_github = keys.filter(|key| key.group == Group::Delivery && key.name != "branch");
    let given: Vec<String> = of_github
        .filter(|key| flags.has(key.name))
        .map(|key| format!("--{}", key.flag()))
        .collect();
    (!given.is_empty()).then(|| {
        format!(
            "this run does not reach GitHub, so these have no effect: {}",
            given.join(", ")
        )
    })
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
) -> Result<Wanted, NoRun> {
    let missing = |what: &str| NoRun::from(no_access(context, what));
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
        GivenSource::Source(source) => Ok(Wanted::Here(source, Vec::new())),
        GivenSource::Queue(dir) => {
            let (path, blocked) = queue::choose_here(real, &dir)?;
            Ok(Wanted::Here(Source::File(path), blocked))
        }
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
) -> Result<RequestedWork, NoRun> {
    let client = actions.client()?;
    let repo = client.repo(&actions.place.repository)?;
    if context.in_actions() {
        let mut triggers = lookup::trigger_settings(settings, context);
        triggers.own_login = client.identity().await.ok().map(|identity| identity.login);
        lookup::refuse_stranger(context, &repo, &triggers, true).await?;
    }
    let found = repo.issue(number).await?;
    if found.pull_request.is_some() {
        let error = Error::usage(format!("#{number} is a pull request, not an issue"));
        return Err(error.hint("comment on it, or give --prompt").into());
    }
    if found.state != "open" {
        return Err(JobEnd::nothing(format!("issue #{number} is closed")).into());
    }
    let mut request = request_of_issue(context, actions, settings, &repo, number).await?;
    request.context.trigger_phrase = Some(settings.clone().resolve(false).trigger_phrase);
    let identity = client.identity().await;
    let lookup = lookup::EventLookup {
        repo: &repo,
        identity: identity.as_ref(),
        name: &actions.place.name,
        branch: settings.branch_template(),
    };
    lookup.recall(&mut request).await;
    let before = request.state.clone();
    let is_own = |title: &str| before.is_done(title);
    let mut plan = issue::plan(&found.title, &found.body, is_own);
    let resolved = lookup.resolve_references(&mut plan.plan, None).await;
    resolved.map_err(|refusal| Error::usage(refusal.to_string()).hint(refusal.remedy()))?;
    request.context.notes = plan.notes;
    lookup.pictures(&found.body, &mut request).await;
    let day = jiff::Timestamp::now().strftime("%Y-%m-%d").to_string();
    request.state = request.state.begin(&Begin {
        day: &day,
        answers: Some(&format!("label:{number}:")),
        by_machine: false,
        request: &Request::IssuePlan,
    });
    lookup::note_own(&mut request.state, &plan.plan, is_own);
    let source = WorkSource::PlanText(plan.plan.texts());
    Ok(RequestedWork::new(source, request))
}

/// The request for work on an issue, on the branch of the issue.
async fn request_of_issue(
    context: &Context,
    actions: &ActionsEnvironment,
    settings: &Settings,
    repo: &GithubRepo,
    number: u64,
) -> Result<RunRequest> {
    let mut request = lookup::at_the_ref(context, actions.place.clone());
    let name = format!("{}issue-{number}", prefix_of(settings.branch_template()));
    let at = repo.branch(&name).await?;
    request.branch = Some(WorkBranch { name, at });
    if request.base_ref.is_none() {
        request.base_ref = Some(repo.default_branch().await?);
    }
    request.number = Some(number);
    Ok(request)
}
