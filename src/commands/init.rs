//! The commands that look at a repository before its first run: `sprag init` writes the first files, and `sprag doctor`
//! says what a run would find.

use crate::cli::{DoctorArgs, InitArgs};
use crate::context::Context;
use crate::doctor::{could_work, examine};
use crate::domain::settings::Color;
use crate::error::{Error, Result};
use crate::init::{
    CONFIG, EXAMPLE_PLAN, Form, Proposal, WORKFLOW, Written, installs_for_the_machine, list,
    on_github, propose, write_new,
};
use crate::print::print;
use crate::report::console::is_colored;
use crate::report::doctor::{json, text};
use crate::report::next_steps::quoted;
use crate::run::begin::repository::repository;
use crate::run::begin::start::runtime;
use crate::run::begin::trial::Trial;
use crate::settings::args::Common;
use crate::settings::flags::SettingFlags;
use crate::{git, settings};
use std::path::Path;
use std::time::Duration;

/// The longest list of commands that are not proposed, in lines.
const MAX_LEFT_OUT: usize = 8;

/// The variable with the key that the written workflow passes to the agent.
const KEY: &str = "OPENAI_API_KEY";

/// Writes the first files and returns the process's exit code.
///
/// # Errors
/// When a file cannot be written.
pub fn init(context: &Context, args: &InitArgs) -> Result<u8> {
    let real = repository(context)?;
    let root = real.work_tree();
    let unreadable = |error| Error::environment(format!("cannot list {}: {error}", root.display()));
    let paths = git::upper_paths(&real)?;
    let listing = list(root, &paths).map_err(unreadable)?;
    let proposal = propose(&listing);
    let form = if args.two_jobs {
        Form::TwoJobs
    } else {
        Form::OneJob
    };
    if root.join(CONFIG).exists() {
        let kept = format!("{CONFIG} exists and stays as it is; a new one would have this:\n");
        print(context, &kept)?;
    }
    print(context, &found(&proposal, args.r#try))?;
    let written = write_new(root, &proposal, form)
        .map_err(|error| Error::environment(format!("{error:#}")))?;
    let root_shown = is_elsewhere(context, root).then_some(root);
    print(context, &files(&written, root_shown))?;
    let trial = Trial {
        context,
        real: &real,
        common: &Common::default(),
        flags: &SettingFlags::default(),
        installs: installs_for_the_machine,
    };
    // Once it is written, the configuration is what a run uses, whoever wrote it.
    let mut text = String::new();
    if args.r#try {
        match trial.run()? {
            Ok(failed) if failed.is_empty() => {}
            Ok(failed) => {
                text += &format!(
                    "first fix the failed commands, or correct or remove them in {CONFIG}: {}\n",
                    failed.join(", ")
                );
            }
            Err(reason) => return Ok(reason.exit_code()),
        }
    }
    if proposal.checks.is_empty() && written.created.iter().any(|path| path == Path::new(CONFIG)) {
        text += &format!(
            "first name a check under `verify` in {CONFIG}: without one, work is committed as `unverified`\n"
        );
    }
    let origin = real.origin();
    let name = origin.as_deref().and_then(on_github);
    let looks_public = name.is_some() && listing.has_licence();
    text += &left_to_do(name, form, looks_public, root_shown);
    print(context, &text)?;
    Ok(0)
}

/// Whether the person's shell is in another directory than the root of the repository.
fn is_elsewhere(context: &Context, root: &Path) -> bool {
    let is_root = context.cwd.canonicalize().is_ok_and(|cwd| cwd == root);
    context.cwd_is_chosen || !is_root
}

/// The proposal, the source of each part, what is not proposed, and what was not found.
fn found(proposal: &Proposal, is_tried: bool) -> String {
    let mut text = String::new();
    let mut section = |title: &str, lines: Vec<String>| {
        if !lines.is_empty() {
            text += &format!("{title}\n");
            lines.iter().for_each(|line| text += &format!("  {line}\n"));
        }
    };
    let line = |what: &str, from: &str| format!("{what}    ({from})");
    let setup = proposal.setup.iter().map(|it| line(&it.what, &it.from));
    section("setup, once before the first turn:", setup.collect());
    let checks = proposal.checks.iter().map(|it| {
        let (name, kind) = (&it.what.name, it.what.kind.as_str());
        let kind = if name == kind {
            String::new()
        } else {
            format!(" [{kind}]")
        };
        line(&format!("{name}{kind}: {}", it.what.run), &it.from)
    });
    let title = "checks, which decide whether a task is done:";
    section(title, checks.collect());
    let left_out = proposal.left_out.iter().map(|it| line(&it.what, &it.from));
    let mut left_out: Vec<String> = left_out.collect();
    if left_out.len() > MAX_LEFT_OUT {
        let more = left_out.len() - MAX_LEFT_OUT;
        left_out.truncate(MAX_LEFT_OUT);
        left_out.push(format!("and {more} more"));
    }
    section("not proposed:", left_out);
    section("not found:", proposal.not_found.clone());
    if !is_tried && !proposal.checks.is_empty() {
        text +=
            "nothing was run: `sprag init --try` runs each command once and prints the results\n";
    }
    text
}

/// `root` is given if the paths are not relative to the directory of the person's shell.
fn files(written: &Written, root: Option<&Path>) -> String {
    let mut text = String::new();
    let shown = |path: &Path| root.unwrap_or(Path::new("")).join(path);
    for path in &written.created {
        text += &format!("wrote {}\n", shown(path).display());
    }
    for path in &written.kept {
        text += &format!("kept {}: it already exists\n", shown(path).display());
    }
    text
}

/// What is left to do on GitHub and on this machine. `repository` is the repository's path on the host,
/// if known, and `root` is the directory to change to first, if there is one.
fn left_to_do(
    repository: Option<&str>,
    form: Form,
    looks_public: bool,
    root: Option<&Path>,
) -> String {
    let there = root
        .map(|root| format!("cd {} && ", quoted(&root.to_string_lossy())))
        .unwrap_or_default();
    let page = match repository {
        Some(name) => format!("https://github.com/{name}/settings/actions"),
        None => "the repository's page, Settings > Actions > General".to_owned(),
    };
    let mut text = format!(
        "left to do, so that a comment with `/sprag fix the flaky test` starts work:\n  \
         1. gh secret set {KEY}\n  \
         2. {page}: tick \"Allow GitHub Actions to create and approve pull requests\"\n  \
         3. {there}git add {CONFIG} {EXAMPLE_PLAN} {WORKFLOW} && git commit -m 'Add Sprag' && git push\n\
         on this machine, once that is committed: sprag doctor --agent NAME, then sprag run 'fix the flaky test' --agent NAME\n"
    );
    if looks_public && form == Form::OneJob {
        text += &format!(
            "this looks like a public repository: there, let the agent work in a job that can write \
             nothing ({there}rm {WORKFLOW} && sprag init --two-jobs)\n"
        );
    }
    text
}

/// Prints what a run would find here and returns the process's exit code: 4 if no run could work.
///
/// # Errors
/// When the findings cannot be printed.
pub fn doctor(context: &Context, args: &DoctorArgs) -> Result<u8> {
    let runtime = runtime()?;
    let examined = runtime.block_on(examine(context, args));
    runtime.shutdown_timeout(Duration::from_millis(200));
    let findings = match examined? {
        Ok(findings) => findings,
        Err(reason) => return Ok(reason.exit_code()),
    };
    let shown = if args.json {
        json(&findings)
    } else {
        text(&findings, color(context, args))
    };
    print(context, &shown)?;
    let mut code = 0;
    if args.r#try {
        code = try_once(context, args)?;
    }
    Ok(if could_work(&findings) { code } else { 4 })
}

/// Runs the setup commands and the checks once. Returns 1 if one of them fails.
fn try_once(context: &Context, args: &DoctorArgs) -> Result<u8> {
    let real = repository(context)?;
    let trial = Trial {
        context,
        real: &real,
        common: &args.common,
        flags: &args.settings,
        installs: installs_for_the_machine,
    };
    Ok(match trial.run()? {
        Ok(failed) if failed.is_empty() => 0,
        Ok(failed) => {
            let told = format!("fix these first: {}\n", failed.join(", "));
            print(context, &told)?;
            1
        }
        Err(reason) => reason.exit_code(),
    })
}

fn color(context: &Context, args: &DoctorArgs) -> bool {
    // Unreadable settings are reported as a finding, so the default applies here.
    let given = settings::above(context, &args.settings).unwrap_or_default();
    is_colored(
        given.color.unwrap_or(Color::Auto),
        context.stdout_is_terminal && context.var("TERM") != Some("dumb"),
        context.wants_color(),
    )
}
