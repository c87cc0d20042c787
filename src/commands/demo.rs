//! `sprag demo`: a complete run in a temporary repository, with a shell script as the agent.

use crate::cli::{DemoArgs, RunArgs};
use crate::context::Context;
use crate::domain::summary::RunSummary;
use crate::error::{Error, Result};
use crate::print::print;
use crate::report::Format;
use crate::report::markdown::{self, ReportContext};
use crate::run::begin::start::start;
use crate::run::state::directory::RunDir;
use crate::run::state::layout::{Folder, RunFile};
use anyhow::Context as _;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

/// The project of the demo: a shell function and its tests, so that it needs only `sh`.
const PROJECT: &[(&str, &str)] = &[
    ("slug.sh", include_str!("demo/slug.sh")),
    ("test.sh", include_str!("demo/test.sh")),
    ("plan.yaml", include_str!("demo/plan.yaml")),
];

/// The agent of the demo, next to the repository.
const AGENT: (&str, &str) = ("agent.sh", include_str!("demo/agent.sh"));

/// The pause in seconds before every action of the agent in a terminal, so that a person can follow.
const PAUSE: &str = "0.6";

/// Variables of a runner, which are removed: the demo is not a step of the job that runs it.
const RUNNER: &[&str] = &["GITHUB_", "RUNNER_", "ACTIONS_", "INPUT_", "SPRAG_"];

/// The files for what the run would post on GitHub, next to the repository.
const CHECK_RUN: &str = "check-run.md";
const COMMENT: &str = "comment.md";

/// Runs the demo and returns the process's exit code.
///
/// # Errors
/// When the temporary repository cannot be created, or the run cannot start.
pub fn command(context: &Context, args: &DemoArgs) -> Result<u8> {
    let place = place(context, args)?;
    let repository = place.join("repository");
    make_repository(&repository)?;
    write_files(&place, &[AGENT])?;
    let run_dir = place.join("run");
    let title = format!(
        "A throw-away repository, and a script as the agent: no model, no key, no network.\n\n  {}\n\n",
        repository.display()
    );
    print(context, &title)?;
    let pause = if context.stdout_is_terminal {
        PAUSE
    } else {
        "0"
    };
    let around = surroundings(context, &place, repository);
    let code = start(&around, &arguments(pause, &run_dir, args))?;
    let run_dir = RunDir::open(&run_dir, std::sync::Arc::default())?;
    print(context, &on_github(&place, &run_dir)?)?;
    print(context, &closing(&place, &run_dir))?;
    Ok(code)
}

/// Writes the check run and the comment that the run would post on GitHub to files. Returns the comment
/// as text.
fn on_github(place: &Path, run_dir: &RunDir) -> anyhow::Result<String> {
    let summary: RunSummary =
        serde_json::from_slice(&fs::read(run_dir.path(RunFile::Report(Format::Json)))?)?;
    let around = ReportContext {
        trigger_phrase: Some("/sprag".into()),
        ..ReportContext::default()
    };
    let check = markdown::check_run(&summary, &around);
    let comment = markdown::comment(&summary, &around);
    let page = format!("# {}\n\n{}\n\n{}\n", check.title, check.summary, check.text);
    write_files(place, &[(CHECK_RUN, &page), (COMMENT, &comment)])?;
    let quoted = comment
        .lines()
        .map(|line| format!("  | {line}").trim_end().to_owned() + "\n");
    let quoted: String = quoted.collect();
    Ok(format!(
        "\nOn a pull request it would write this comment:\n{quoted}"
    ))
}

fn place(context: &Context, args: &DemoArgs) -> Result<PathBuf> {
    let Some(dir) = &args.dir else {
        let made = tempfile::Builder::new().prefix("sprag-demo-").tempdir();
        return Ok(made.context("no temporary directory can be made")?.keep());
    };
    let dir = context.cwd.join(dir);
    let hint = "name a directory that does not exist yet";
    let taken = fs::read_dir(&dir).is_ok_and(|mut entries| entries.next().is_some());
    if taken {
        return Err(Error::usage(format!("{} is not empty", dir.display())).hint(hint));
    }
    let made = fs::create_dir_all(&dir).and_then(|()| fs::canonicalize(&dir));
    made.map_err(|error| {
        Error::usage(format!("--dir {}: {error}", dir.display()))
            .hint(format!("{hint}, where you may write"))
    })
}

fn write_files(dir: &Path, files: &[(&str, &str)]) -> anyhow::Result<()> {
    fs::create_dir_all(dir).with_context(|| format!("{} cannot be made", dir.display()))?;
    for (name, text) in files {
        let path = dir.join(name);
        fs::write(&path, text).with_context(|| format!("{} cannot be written", path.display()))?;
    }
    Ok(())
}

/// Creates a repository with one commit. It has an identity of its own, so the user's configuration is
/// neither needed nor changed.
fn make_repository(path: &Path) -> anyhow::Result<()> {
    write_files(path, PROJECT)?;
    let mut options = git2::RepositoryInitOptions::new();
    options.initial_head("main").external_template(false);
    let repository = git2::Repository::init_opts(path, &options)?;
    let mut config = repository.config()?;
    config.set_str("user.name", "sprag demo")?;
    config.set_str("user.email", "demo@localhost")?;
    let mut index = repository.index()?;
    for (name, _) in PROJECT {
        index.add_path(Path::new(name))?;
    }
    index.write()?;
    let tree = repository.find_tree(index.write_tree()?)?;
    let author = git2::Signature::now("sprag demo", "demo@localhost")?;
    let message = "Slugs for titles";
    repository.commit(Some("HEAD"), &author, &author, message, &tree, &[])?;
    Ok(())
}

fn surroundings(context: &Context, place: &Path, cwd: PathBuf) -> Context {
    let of_runner = |name: &OsString| {
        let name = name.to_string_lossy();
        RUNNER.iter().any(|prefix| name.starts_with(prefix))
    };
    let mut env = context.env.clone();
    env.retain(|(name, _)| !of_runner(name) && name != "XDG_STATE_HOME");
    env.push(("XDG_STATE_HOME".into(), place.join("state").into()));
    Context {
        cwd,
        cwd_is_chosen: false,
        env,
        ..context.clone()
    }
}

fn arguments(pause: &str, run_dir: &Path, args: &DemoArgs) -> RunArgs {
    RunArgs {
        plan: Some("plan.yaml".into()),
        settings: args.settings.0.clone().and([
            ("agent", "command".to_owned()),
            ("agent_command", format!("sh ../{} {pause}", AGENT.0)),
            ("run_dir", run_dir.display().to_string()),
        ]),
        output: args.output,
        ..RunArgs::default()
    }
}

fn closing(place: &Path, run_dir: &RunDir) -> String {
    let repository = place.join("repository");
    format!(
        "\nLook at it:\n  the commits  git -C {} log --stat\n  the report   {}\n  check run    {}\n  comment      {}\n  the events   {}\n  the prompts  {}\n  the turns    {}\nThrow it away:\n  rm -r {}\n",
        repository.display(),
        run_dir.path(RunFile::Report(Format::Html)).display(),
        place.join(CHECK_RUN).display(),
        place.join(COMMENT).display(),
        run_dir.path(RunFile::Events).display(),
        run_dir.folder(Folder::Prompts).display(),
        run_dir.folder(Folder::Turns).display(),
        place.display(),
    )
}
