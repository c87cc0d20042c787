//! Determines the work of a run, its request and its branch from flags, inputs and the GitHub event.

use crate::cli::RunArgs;
use crate::context::Context;
use crate::domain::draft::stem;
use crate::domain::plan::{self, Plan};
use crate::domain::settings::branch::prefix_of;
use crate::domain::settings::{Approve, Group, Report, Settings, keys};
use crate::domain::text::first_line;
use crate::domain::trigger::Request;
use crate::domain::trigger::issue;
use crate::domain::trigger::marker::Begin;
use crate::error::{Error, Result};
use crate::git::{Real, path_in_tree};
use crate::github::actions_environment::{self, ActionsEnvironment};
use crate::github::api::Repo as GithubRepo;
use crate::github::lookup::{
    self, Checkout, JobEnd, NoRun, OwnWork, Purpose, RequestedWork, WorkSource,
};
use crate::github::queue;
use crate::github::request::{RunRequest, WorkBranch};
use crate::report::actions_log::print_warning;
use crate::report::buffered_output::Time;
use crate::run::begin::isolation::filters_before_the_run;
use crate::run::begin::prepare::{self, Asked, ConfigText, parse_config};
use crate::run::begin::repository::{for_others, repository};
use crate::run::begin::reviewed_change::review;
use crate::run::begin::work::{DraftRequest, Given, Source, Work, nothing_asked, plan_of_draft};
use crate::run::state::lock::lock;
use crate::settings;
use crate::settings::flags::SettingFlags;
use std::path::Path;
use tokio::runtime::Runtime;

/// How many branch names to try before giving up.
const BRANCHES: u32 = 50;

/// Determines what to do and checks out the branch for it. With `draft`, that is to draft a plan. `asker` becomes the
/// request that hears of a run that cannot start.
///
/// # Errors
/// When there is nothing to run, the command line names no work or too much, or the work is not possible in this
/// environment.
pub(crate) fn decide(
    context: &Context,
    args: &RunArgs,
    mut draft: Option<DraftRequest>,
    runtime: &Runtime,
    asker: &mut Option<RunRequest>,
) -> Result<Asked, NoRun> {
    let given = Given::of(context, args)?;
    let mut real = repository(context)?;
    let configured = settings::above(context, &args.settings).and_then(|above| {
        let config = prepare::config_text(context, &args.common, real.work_tree(), None)?;
        Ok((above, config.parse()?, config))
    });
    let tells = context.in_actions() && !args.dry_run;
    let (above, file, config) = match configured {
        Ok(configured) => configured,
        Err(error) => {
            // Who may ask is decided by the defaults if the settings are wrong.
            let set = Settings::default();
            let actions = ActionsEnvironment::named(context, None);
            let job = Job::of(context, actions.as_ref(), &set, &real);
            if draft.is_none()
                && let Ok(wanted) = runtime.block_on(job.wanted(given))
            {
                *asker = wanted.request;
                asker.iter_mut().for_each(|it| it.may_tell(&set, tells));
            }
            return Err(error.into());
        }
    };
    let settings = above
        .clone()
        .or(lookup::without_rights(context, file.settings.clone()));
    real.confine_filters(filters_before_the_run(context, &real, &settings));
    let actions = ActionsEnvironment::named(context, settings.name.as_deref());
    let only_reviews = settings.review_only == Some(true) && draft.is_none();
    let given = match given {
        given if only_reviews => given.for_review()?,
        Given::Nothing => return Err(nothing_asked().into()),
        given => given,
    };
    let job = Job::of(context, actions.as_ref(), &settings, &real);
    let mut wanted = match &mut draft {
        Some(_) if above.allow_dirty == Some(true) => {
            let error = Error::usage("--allow-dirty cannot be used with sprag plan");
            let hint = "commit or stash your changes: the agent's changes are undone, and yours would be lost too";
            return Err(error.hint(hint).into());
        }
        Some(draft) => runtime.block_on(job.drafted(given, draft))?,
        None => runtime.block_on(job.wanted(given))?,
    };
    let mut work = Work::of_shards(&args.shards);
    match &mut wanted.request {
        Some(request) => {
            if let Some(text) = &request.drafts {
                work = Work::Draft(DraftRequest {
                    request: text.clone(),
                    only_shown: true,
                    ..DraftRequest::default()
                });
            }
            request.may_tell(&settings, tells);
            *asker = Some(request.clone());
        }
        None if draft.is_none() => wanted.warnings.extend(without_effect(&args.settings)),
        None => {}
    }
    let mut asked = Asked {
        work: draft.map_or(work, Work::Draft),
        above,
        file,
        source: wanted.source,
        real,
        request: wanted.request,
        tasks: args.tasks.clone(),
        only_shown: args.dry_run,
        directory: String::new(),
        trusted: None,
        lock: None,
        warnings: wanted.warnings,
        place: None,
        earlier: None,
    };
    if let Some(actions) = actions.as_ref().filter(|_| !args.dry_run) {
        switch_branch(context, args, actions, config, &mut asked, runtime)?;
    }
    if only_reviews {
        let base = settings.base.as_deref();
        review_instead(context, actions.as_ref(), base, &mut asked, runtime)?;
    }
    asked.directory = prepare::directory(context, &args.common, asked.real.work_tree());
    Ok(asked)
}

/// Makes the work a review of the branch that is checked out.
fn review_instead(
    context: &Context,
    actions: Option<&ActionsEnvironment>,
    base: Option<&str>,
    asked: &mut Asked,
    runtime: &Runtime,
) -> Result<(), NoRun> {
    let words = match &asked.source {
        Source::Prompt(words) => words.trim(),
        _ => "",
    };
    let on_github = actions.zip(asked.request.as_ref());
    let found = runtime.block_on(review(context, on_github, &asked.real, base, words))?;
    let Some((plan, change)) = found else {
        let why = "there is nothing to review: the base already has every commit";
        return Err(JobEnd::nothing(why).into());
    };
    asked.source = Source::Text(plan);
    asked.work = Work::Review(change);
    Ok(())
}

/// Checks out the branch of a request. The configuration stays as it was before the switch or, if a fork's code may
/// be checked out, is that of the default branch: neither whoever may change the work branch nor whoever may choose an
/// old branch as its base chooses the commands that run there.
fn switch_branch(
    context: &Context,
    args: &RunArgs,
    actions: &ActionsEnvironment,
    config: ConfigText,
    asked: &mut Asked,
    runtime: &Runtime,
) -> Result<()> {
    let (Some(request), real) = (&asked.request, &asked.real) else {
        return Ok(());
    };
    let ConfigText { name, mut text } = config;
    let checkout = Checkout::of(context, actions, real);
    let places = prepare::config_places(context, &args.common, real.work_tree());
    let inside = places
        .iter()
        .filter_map(|path| path.strip_prefix(real.work_tree()).ok());
    let inside: Vec<&Path> = inside.collect();
    if !inside.is_empty() && request.branch.is_some() {
        if request.context.report_only {
            text.clear();
            let base = runtime.block_on(async { actions.repo()?.default_branch().await })?;
            // A fork may add a nearer file, which does not count.
            for place in inside {
                if let Some(found) = checkout.file_of_branch(&base, place)? {
                    text = found;
                    break;
                }
            }
            asked.file = parse_config(&name, &text)?;
            if request.base_ref.as_ref() != Some(&base) {
                asked.warnings.push(format!(
                    "the configuration is that of {base}: people without write access may choose another base"
                ));
            }
        }
        asked.trusted = Some(String::from_utf8_lossy(&text).into_owned());
    }
    asked.lock = Some(lock(context, real)?);
    checkout.switch_to(request)
}

/// Reports to whoever requested the run, if somebody did, that it cannot start.
pub(crate) fn report_not_started(
    context: &Context,
    request: Option<&RunRequest>,
    error: &Error,
    runtime: &Runtime,
) {
    let Some(request) = request else { return };
    let error = for_others(context, error);
    for incident in runtime.block_on(lookup::report_not_started(context, request, &error)) {
        print_warning(&format!("GitHub: {incident}"), Time::Enough);
    }
}

/// The work of a run, who requested it on GitHub, and warnings for the user.
struct Wanted {
    source: Source,
    request: Option<RunRequest>,
    warnings: Vec<String>,
}

impl Wanted {
    fn here(source: Source) -> Self {
        Self {
            source,
            request: None,
            warnings: Vec::new(),
        }
    }

    fn there(source: Source, request: RunRequest) -> Self {
        Self {
            request: Some(request),
            ..Self::here(source)
        }
    }
}

/// What decides where the work of a run comes from.
struct Job<'a> {
    context: &'a Context,
    actions: Option<&'a ActionsEnvironment>,
    settings: &'a Settings,
    real: &'a Real,
}

impl<'a> Job<'a> {
    fn of(
        context: &'a Context,
        actions: Option<&'a ActionsEnvironment>,
        settings: &'a Settings,
        real: &'a Real,
    ) -> Self {
        Self {
            context,
            actions,
            settings,
            real,
        }
    }

    async fn wanted(&self, given: Given) -> Result<Wanted, NoRun> {
        let (context, settings, real) = (self.context, self.settings, self.real);
        let Some(actions) = self.actions else {
            return self.without_github(given);
        };
        let event = actions_environment::event(context).filter(|_| context.in_actions());
        // Whether the settings require GitHub outside of GitHub Actions.
        let reaches_out = settings.report == Some(Report::Github) || settings.push == Some(true);
        let is_schedule = event.as_ref().is_some_and(|(name, _)| name == "schedule");
        // No thread asks for the work of a schedule.
        if is_schedule && settings.approve == Some(Approve::Required) {
            return self.to_approve(actions, &given).await;
        }
        let found = match &given {
            Given::Source(source) if !context.in_actions() && !reaches_out => {
                return Ok(Wanted::here(source.clone()));
            }
            Given::Issue(number) => of_issue(context, actions, settings, *number).await?,
            Given::Event => lookup::decide(context, actions, settings, Purpose::Event).await?,
            // A source of the command line only has its place from the event.
            _ if event.is_some() => {
                lookup::decide(context, actions, settings, Purpose::Place).await?
            }
            _ => RequestedWork::configured(context, actions),
        };
        let RequestedWork {
            source,
            mut request,
        } = found.placed(context, real);
        let checkout = Checkout::of(context, actions, real);
        let source = match (given, source) {
            (Given::Queue(dir), _) | (_, WorkSource::Queue(dir)) => {
                request.branch = None;
                let path = queue::choose(checkout, settings, &dir, &mut request).await?;
                return Ok(Wanted::there(Source::File(path), request));
            }
            // What an event asks for takes precedence over what is given.
            (_, WorkSource::Plan(path)) => Source::File(real.work_tree().join(path)),
            (_, WorkSource::Prompt(text)) => Source::Prompt(text),
            (_, WorkSource::PlanText(text)) => Source::Text(text),
            (_, WorkSource::Draft(text)) => {
                let plan = plan_of_draft("the request", &text);
                request.drafts = Some(text);
                Source::Text(plan)
            }
            (Given::Source(source), WorkSource::Configured) => source,
            (_, WorkSource::Configured) => {
                let error = Error::usage("nothing to do: the event names no plan and no prompt");
                let hint = "give the step the input plan, prompt, prompt-file or queue";
                return Err(error.hint(hint).into());
            }
        };
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
        Ok(Wanted::there(source, request))
    }

    /// Drafts a plan for the prompt of a schedule, in an issue of its own where somebody approves it.
    async fn to_approve(
        &self,
        actions: &ActionsEnvironment,
        given: &Given,
    ) -> Result<Wanted, NoRun> {
        let (context, settings) = (self.context, self.settings);
        let Given::Source(Source::Prompt(text)) = given else {
            let message = "with `approve: required` a schedule drafts a plan from a prompt, and it has a plan or a queue";
            let hint =
                "give the step the input prompt, or let `environment` of the job ask a person";
            return Err(Error::config(message).hint(hint).into());
        };
        let repo = actions.repo()?;
        let identity = repo.identity().await?;
        let title = format!("Plan of {}", actions.place.name.as_str());
        let text_of_issue = "The comment below shows a plan that nobody has approved yet.";
        let number = repo.own_issue(&title, text_of_issue, &identity).await;
        let number = number.map_err(|error| {
            let message = format!("the plan cannot be shown in an issue: {error}");
            Error::environment(message).hint("give the job the permission `issues: write`")
        })?;
        let mut request = request_of_issue(context, actions, settings, &repo, number).await?;
        request.context.trigger_phrase = Some(settings.clone().resolve(true).trigger_phrase);
        let lookup = lookup::EventLookup::of(&repo, Ok(&identity), actions, settings);
        lookup.recall(&mut request).await;
        request.state = request.state.begin(&Begin {
            day: &today(),
            answers: None,
            by_machine: true,
            request: &Request::Draft(text.clone()),
        });
        request.drafts = Some(text.clone());
        let plan = plan_of_draft("the schedule", text);
        Ok(Wanted::there(Source::Text(plan), request))
    }

    /// The work of a run that has no access to GitHub.
    fn without_github(&self, given: Given) -> Result<Wanted, NoRun> {
        let (context, settings) = (self.context, self.settings);
        let missing = |what: &str| NoRun::from(no_access(context, what));
        match given {
            Given::Issue(_) => Err(missing("--issue")),
            // In a job, work on the checked-out branch would be lost.
            Given::Queue(_) if context.in_actions() => Err(missing("--queue")),
            Given::Source(_) | Given::Queue(_) if settings.push == Some(true) => {
                Err(missing("--push"))
            }
            Given::Source(_) | Given::Queue(_) if settings.report == Some(Report::Github) => {
                Err(missing("--report github"))
            }
            Given::Source(source) => Ok(Wanted::here(source)),
            Given::Queue(dir) => {
                let (path, warnings) = queue::choose_here(self.real, &dir)?;
                Ok(Wanted {
                    warnings,
                    ..Wanted::here(Source::File(path))
                })
            }
            Given::Event | Given::Nothing => Err(missing("--event")),
        }
    }

    /// The plan of a run that drafts one. Its text goes into `draft`.
    async fn drafted(&self, given: Given, draft: &mut DraftRequest) -> Result<Wanted, NoRun> {
        let (context, settings, real) = (self.context, self.settings, self.real);
        let github = |flag: &str| self.actions.ok_or_else(|| no_access(context, flag));
        let number = match given {
            Given::Issue(number) => Some(number),
            _ => None,
        };
        draft.request = match given {
            Given::Source(Source::Prompt(text)) => text.trim().to_owned(),
            Given::Issue(number) => {
                let found = of_issue(context, github("--issue")?, settings, number).await?;
                match &found.source {
                    WorkSource::PlanText(text) => words_of_issue(text)?,
                    _ => String::new(),
                }
            }
            _ => return Err(nothing_asked().into()),
        };
        let first = first_line(&draft.request);
        let (about, name) = match number {
            Some(number) => (
                format!("issue {number}: {first}"),
                format!("issue-{number}"),
            ),
            None => (first.to_owned(), stem(&draft.request)),
        };
        let source = Source::Text(plan_of_draft(&about, &draft.request));
        if !draft.commits {
            return Ok(Wanted::here(source));
        }
        if let Some(path) = &draft.output
            && (!real.contains(path) || real.ignores(path))
        {
            let message = format!(
                "--output {}: a plan for a pull request lies in the repository and is not ignored",
                path.display()
            );
            return Err(Error::usage(message).into());
        }
        let actions = github("--pull-request")?;
        let repo = actions.repo()?;
        let mut request = lookup::at_the_ref(context, actions.place.clone());
        if request.base_ref.is_none() {
            request.base_ref = Some(repo.default_branch().await?);
        }
        let name = format!("{}plan-{name}", prefix_of(settings.branch_template()));
        let name = new_branch(&repo, &name).await?;
        request.branch = Some(WorkBranch { name, at: None });
        if let Some(number) = number {
            request.context.notes = vec![format!("This is a plan for issue {number}.")];
        }
        Ok(Wanted::there(source, request))
    }
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
fn no_access(context: &Context, what: &str) -> Error {
    let error = Error::environment(format!("{what} needs GitHub, and there is no access to it"));
    let remedy = match actions_environment::place(context) {
        Some(_) => "give the step the input github-token, or set GITHUB_TOKEN",
        None => "set GITHUB_REPOSITORY (OWNER/NAME) and GITHUB_TOKEN",
    };
    error.hint(remedy)
}

/// The text of an issue that was made a plan.
fn words_of_issue(text: &str) -> Result<String> {
    let plan = plan::parse("issue.yaml", text.as_bytes()).map_err(settings::located)?;
    let Plan {
        title,
        details,
        tasks,
        ..
    } = plan.value;
    let mut parts = vec![title, details];
    match &tasks[..] {
        [only] if only.title == parts[0] => parts.push(only.description.clone()),
        tasks => parts.extend(
            tasks
                .iter()
                .map(|task| format!("- {}\n  {}", task.title, task.description)),
        ),
    }
    parts.retain(|part| !part.trim().is_empty());
    Ok(parts.join("\n\n"))
}

/// The name of a branch that does not exist yet.
async fn new_branch(repo: &GithubRepo, name: &str) -> Result<String> {
    for n in 1..=BRANCHES {
        let branch = match n {
            1 => name.to_owned(),
            n => format!("{name}-{n}"),
        };
        if repo.branch(&branch).await?.is_none() {
            return Ok(branch);
        }
    }
    Err(
        Error::environment(format!("{BRANCHES} branches like {name} already exist"))
            .hint("remove those that are no longer needed"),
    )
}

fn today() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%d").to_string()
}

/// `--issue N`: a task for each item of the checklist or each heading, else one task for the whole
/// issue.
pub(crate) async fn of_issue(
    context: &Context,
    actions: &ActionsEnvironment,
    settings: &Settings,
    number: u64,
) -> Result<RequestedWork, NoRun> {
    let repo = actions.repo()?;
    let identity = repo.identity().await;
    if context.in_actions() {
        let mut triggers = lookup::trigger_settings(settings, context);
        triggers.own_login = identity
            .as_ref()
            .ok()
            .map(|identity| identity.login.clone());
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
    let lookup = lookup::EventLookup::of(&repo, identity.as_ref(), actions, settings);
    lookup.recall(&mut request).await;
    let before = request.state.clone();
    let is_own = |title: &str| before.is_done(title);
    let mut plan = issue::plan(&found.title, &found.body, is_own);
    let resolved = lookup.resolve_references(&mut plan.plan, None).await;
    resolved.map_err(|refusal| Error::usage(refusal.to_string()).hint(refusal.remedy()))?;
    request.context.notes = plan.notes;
    lookup.pictures(&found.body, &mut request).await;
    request.state = request.state.begin(&Begin {
        day: &today(),
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
