//! The front door: a run from its command line to its exit code.

use crate::cli::{PlanArgs, RunArgs, SettingFlags};
use crate::context::Context;
use crate::domain::draft::stem;
use crate::domain::plan::{self, Plan};
use crate::domain::settings::branch::prefix_of;
use crate::domain::settings::{PullRequest, Settings};
use crate::domain::text::first_line;
use crate::error::{Error, Result};
use crate::git::Real;
use crate::github::actions_environment::ActionsEnvironment;
use crate::github::api::Repo as GithubRepo;
use crate::github::lookup::{self, NoRun};
use crate::github::request::{RunRequest, WorkBranch};
use crate::print::print;
use crate::process;
use crate::run::begin::beginning::{Beginning, Ready};
use crate::run::begin::described::dry_run;
use crate::run::begin::draft_request::{DraftRequest, Written, plan_of_draft};
use crate::run::begin::isolation::filters_before_the_run;
use crate::run::begin::prepare::{Asked, Prepared, Source, config_file, directory, prepare};
use crate::run::begin::reopen::{find, reopen};
use crate::run::begin::repository::repository;
use crate::run::begin::restore::restore;
use crate::run::begin::resume::{give_answer, take_over};
use crate::run::begin::source::{
    self, PreparedSource, no_access, of_issue, report_not_started, source_text,
};
use crate::run::begin::work::Work;
use crate::run::execute::execute;
use crate::run::state::lock::{RunLock, lock};
use crate::settings::inputs::with_inputs;
use crate::settings::{self, set_in_plan};
use std::cell::RefCell;
use std::io::stdout;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use tokio::runtime::Runtime;

/// Starts or resumes a run. Returns the process's exit code.
///
/// # Errors
/// When the run cannot start, or Sprag itself fails.
pub fn start(context: &Context, args: &RunArgs) -> Result<u8> {
    process::hide_from_same_user().map_err(anyhow::Error::from)?;
    let args = &with_inputs(context, args)?;
    let runtime = runtime()?;
    let mut ready = if args.resume && !args.from_remote {
        let left = find(context, args)?;
        reopen(context, args, left)?
    } else {
        let source = match source::decide(context, args, &runtime) {
            Ok(source) => source,
            Err(no_run) => return no_run.report(context, &mut stdout()),
        };
        let restored = restore(context, args, &source).inspect_err(|error| {
            report_not_started(context, source.request.as_ref(), error, &runtime);
        })?;
        match restored {
            Some(run_dir) => reopen(context, args, source.continued_in(context, run_dir)?)?,
            None => prepare_new(context, args, source, &runtime)?,
        }
    };
    give_answer(args, &mut ready)?;
    if args.dry_run {
        print(context, &dry_run(&ready.prepared))?;
        return Ok(0);
    }
    let warning = take_over(&mut ready).inspect_err(|error| {
        report_not_started(context, ready.request.as_ref(), error, &runtime);
    })?;
    ready.prepared.warnings.extend(warning);
    execute(context, args, ready, runtime)
}

fn prepare_new(
    context: &Context,
    args: &RunArgs,
    source: PreparedSource,
    runtime: &Runtime,
) -> Result<Ready> {
    let mut request = source.request;
    let directory = directory(context, &args.common, source.real.work_tree());
    let is_foreign = request.as_ref().is_some_and(|it| it.context.report_only);
    let asked = Asked {
        above: source.above,
        file: source.file,
        source: source.source,
        real: source.real,
        work: source.work,
        tasks: &args.tasks,
        only_shown: args.dry_run,
        directory,
        is_foreign,
        open: None,
    };
    let mut prepared = prepare(context, asked)
        .and_then(|prepared| reviews_or_works(&prepared).map(|()| prepared))
        .inspect_err(|error| report_not_started(context, request.as_ref(), error, runtime))?;
    prepared.warnings.extend(source.warnings);
    if prepared.work.is_draft() {
        prepared.drafts_only();
    }
    prepared.trusted = source.trusted;
    if args.dry_run
        && let Some(schema) = &prepared.output_schema
    {
        schema.load(context, &prepared.real, request.as_ref(), None)?;
    }
    if let Some(request) = &mut request {
        let token = ActionsEnvironment::of(context).is_some();
        request.resolve(&prepared.run.settings, context.in_actions(), token);
    }
    let lock = match source.lock {
        Some(lock) => Some(lock),
        None if args.dry_run => None,
        None => Some(lock(context, &prepared.real)?),
    };
    Ok(Ready {
        prepared,
        request,
        beginning: Beginning::New,
        lock,
    })
}

/// Only trusted sources may turn a run into a review: the plan that it runs may not.
fn reviews_or_works(prepared: &Prepared) -> Result<()> {
    if prepared.run.settings.review_only == prepared.work.reviewed().is_some() {
        Ok(())
    } else {
        Err(set_in_plan("review_only"))
    }
}

/// The single-threaded runtime of a run.
///
/// # Errors
/// When the system cannot create it.
pub(crate) fn runtime() -> Result<Runtime> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(anyhow::Error::from)?;
    runtime
        .block_on(async { process::survive_file_size_limit() })
        .map_err(anyhow::Error::from)?;
    Ok(runtime)
}

/// How many branch names to try before giving up.
const BRANCHES: u32 = 50;

/// The result of drafting a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drafted {
    /// The process's exit code.
    pub code: u8,
    /// The plan, if one was written.
    pub written: Option<Written>,
}

/// Lets the agent draft a plan and writes it to a new file.
///
/// # Errors
/// When the run cannot start, or Sprag itself fails.
pub fn draft(context: &Context, args: &PlanArgs) -> Result<Drafted> {
    process::hide_from_same_user().map_err(anyhow::Error::from)?;
    let runtime = runtime()?;
    let mut real = repository(context)?;
    let output = output(context, args)?;
    let given = args.settings.settings()?.pull_request;
    let above = settings::above(context, &args.settings)?;
    real.confine_filters(filters_before_the_run(context, &real, &above));
    if above.allow_dirty == Some(true) {
        return Err(Error::usage("--allow-dirty cannot be used with sprag plan")
            .hint("commit or stash your changes: the agent's changes are undone, and yours would be lost too"));
    }
    let kind = given.filter(|kind| *kind != PullRequest::None);
    let text = match input_of(context, &real, args, &above, &runtime) {
        Ok(text) => text,
        Err(no_run) => {
            return Ok(Drafted {
                code: no_run.report(context, &mut stdout())?,
                written: None,
            });
        }
    };
    let name = match args.issue {
        Some(number) => format!("issue-{number}"),
        None => stem(&text),
    };
    if let Some(path) = output.as_ref().filter(|_| kind.is_some()) {
        require_in_repository(&real, path)?;
    }
    let file = config_file(context, &args.common, real.work_tree(), None)?;
    let set = above.or(file.settings.clone());
    let named = format!("{}plan-{name}", prefix_of(set.branch_template()));
    let (mut request, lock) = match kind {
        Some(_) => {
            let (request, lock) = on_a_branch(context, args, &real, &named, &runtime)?;
            (Some(request), lock)
        }
        None => (None, lock(context, &real)?),
    };
    let push = ("push", kind.is_some().to_string());
    let flags = args
        .settings
        .clone()
        .and([push, ("report", "none".to_owned())]);
    let run = run_args(args, flags);
    let written: Rc<RefCell<Option<Written>>> = Rc::default();
    let draft = DraftRequest {
        request: text.clone(),
        output,
        only_shown: false,
        commits: kind.is_some(),
        written: Rc::clone(&written),
    };
    let directory = directory(context, &run.common, real.work_tree());
    let about = match args.issue {
        Some(number) => format!("issue {number}: {}", first_line(&text)),
        None => first_line(&text).to_owned(),
    };
    let asked = Asked {
        above: settings::above(context, &run.settings)?,
        file,
        source: Source::Text(plan_of_draft(&about, &text)),
        real,
        work: Work::Draft(draft),
        tasks: &[],
        only_shown: false,
        directory,
        is_foreign: false,
        open: None,
    };
    let mut prepared = prepare(context, asked)?;
    prepared.drafts_only();
    if let Some(request) = &mut request {
        request.resolve(&prepared.run.settings, context.in_actions(), true);
    }
    let ready = Ready {
        prepared,
        request,
        beginning: Beginning::New,
        lock: Some(lock),
    };
    let code = execute(context, &run, ready, runtime)?;
    let written = written.borrow().clone();
    Ok(Drafted { code, written })
}

/// The path given with `--output`, which must be a new file.
fn output(context: &Context, args: &PlanArgs) -> Result<Option<PathBuf>> {
    let Some(path) = &args.output_file else {
        return Ok(None);
    };
    let path = context.cwd.join(path);
    if path.symlink_metadata().is_ok() {
        let message = format!("--output {}: this file already exists", path.display());
        return Err(Error::usage(message).hint("name a new file, or remove that one"));
    }
    let name = path.file_name().map(|name| name.to_string_lossy());
    if !name.is_some_and(|name| name.ends_with(".yaml") || name.ends_with(".yml")) {
        let message = format!("--output {}: a plan is a YAML file", path.display());
        return Err(Error::usage(message).hint("name a file that ends in .yaml"));
    }
    Ok(Some(path))
}

fn require_in_repository(real: &Real, path: &Path) -> Result<()> {
    if real.contains(path) && !real.ignores(path) {
        Ok(())
    } else {
        Err(Error::usage(format!(
            "--output {}: a plan for a pull request lies in the repository and is not ignored",
            path.display()
        )))
    }
}

/// The text to plan from.
fn input_of(
    context: &Context,
    real: &Real,
    args: &PlanArgs,
    above: &Settings,
    runtime: &Runtime,
) -> Result<String, NoRun> {
    let prompt = args.words.as_ref().or(args.prompt.as_ref());
    match (prompt, args.issue) {
        (Some(text), None) if !text.trim().is_empty() => Ok(text.trim().to_owned()),
        (None, Some(number)) => {
            let actions = github(context, "--issue")?;
            let found = runtime.block_on(of_issue(context, &actions, above, number))?;
            let wanted = found.placed(context, real);
            let text = source_text(&wanted.source).unwrap_or_default();
            let read = plan::parse("issue.yaml", text.as_bytes()).map_err(settings::located)?;
            Ok(words(&read.value))
        }
        (Some(_), Some(_)) => Err(Error::usage("--prompt and --issue were given together")
            .hint("give exactly one of --prompt TEXT, --issue N")
            .into()),
        _ => Err(Error::usage("nothing to plan: no prompt was given")
            .hint("give exactly one of --prompt TEXT, --issue N")
            .into()),
    }
}

/// The text of an issue that was parsed as a plan.
fn words(plan: &Plan) -> String {
    let mut parts = vec![plan.title.clone(), plan.details.clone()];
    let is_one = plan.tasks.len() == 1 && plan.tasks[0].title == plan.title;
    for task in &plan.tasks {
        if is_one {
            parts.push(task.description.clone())
        } else {
            parts.push(format!("- {}\n  {}", task.title, task.description))
        }
    }
    parts.retain(|part| !part.trim().is_empty());
    parts.join("\n\n")
}

fn github(context: &Context, flag: &str) -> Result<ActionsEnvironment> {
    ActionsEnvironment::of(context).ok_or_else(|| no_access(context, flag))
}

/// Checks out a new branch for the plan.
fn on_a_branch(
    context: &Context,
    args: &PlanArgs,
    real: &Real,
    name: &str,
    runtime: &Runtime,
) -> Result<(RunRequest, RunLock)> {
    let actions = github(context, "--pull-request")?;
    let request = runtime.block_on(async {
        let client = actions.client()?;
        let repo = client.repo(&actions.place.repository)?;
        let mut request = lookup::at_the_ref(context, actions.place.clone());
        if request.base_ref.is_none() {
            request.base_ref = Some(repo.default_branch().await?);
        }
        request.branch = Some(WorkBranch {
            name: new_branch(&repo, name).await?,
            at: None,
        });
        if let Some(number) = args.issue {
            request.context.notes = vec![format!("This is a plan for issue {number}.")];
        }
        Ok::<_, Error>(request)
    })?;
    let lock = lock(context, real)?;
    let checkout = lookup::Checkout {
        context,
        actions: &actions,
        real,
    };
    checkout.switch_to(&request)?;
    Ok((request, lock))
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

/// The command line of `sprag run` with the same settings.
fn run_args(args: &PlanArgs, settings: SettingFlags) -> RunArgs {
    RunArgs {
        common: args.common.clone(),
        output: args.output,
        settings,
        ..RunArgs::default()
    }
}
