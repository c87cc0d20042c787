//! A run that drafts a plan, from the command line to the written file.

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
use crate::process;
use crate::run::begin::beginning::{Beginning, Ready};
use crate::run::begin::draft_request::{DraftRequest, Written, plan_of_draft};
use crate::run::begin::isolation::filters_before_the_run;
use crate::run::begin::prepare::{Asked, Source, config_file, directory, prepare};
use crate::run::begin::repository::repository;
use crate::run::begin::source::{no_access, of_issue, source_text};
use crate::run::begin::start::runtime;
use crate::run::begin::work::Work;
use crate::run::execute::execute;
use crate::run::state::lock::{RunLock, lock};
use crate::settings;
use std::cell::RefCell;
use std::io::stdout;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use tokio::runtime::Runtime;

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
