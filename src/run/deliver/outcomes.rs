//! The results of Sprag's work in a repository, collected from its history, from the runs recorded on
//! this machine, and from the check runs on GitHub if there is access.

use crate::context::Context;
use crate::domain::commit_message::RUN_TRAILER;
use crate::domain::duration;
use crate::domain::outcomes::{HistoryCommit, Outcomes, RunLine, outcomes};
use crate::error::{Error, Result};
use crate::git::{self, Real};
use crate::github::actions_environment::ActionsEnvironment;
use crate::report::text;
use crate::run::begin::repository::repository;
use crate::run::begin::start::runtime;
use crate::run::state::past_runs::past_runs;
use jiff::{Timestamp, civil};
use std::time::Duration;

/// How many commits' check runs are requested. The newest come first.
const ASKED: usize = 300;

/// How long all requests to GitHub may take together.
const REQUESTS_TIMEOUT: Duration = Duration::from_secs(120);

/// The results, and what could not be read.
#[derive(Debug)]
pub struct Gathered {
    /// The collected results.
    pub outcomes: Outcomes,
    /// What is missing in the results, one line each.
    pub missing: Vec<String>,
}

/// Collects everything since `since`, a day or a duration such as `2026-01-31` or `30d`. Work counts as
/// merged when it is on `branch`, by default the default branch of the remote, else the current branch.
///
/// # Errors
/// When the time is invalid, there is no repository, or the branch does not exist.
pub fn gather(context: &Context, since: &str, branch: Option<&str>) -> Result<Gathered> {
    let since = beginning(since)?;
    let real = repository(context)?;
    let failed =
        |error: git::GitError| Error::environment(format!("the history cannot be read: {error}"));
    let target = match branch {
        Some(named) => named.to_owned(),
        None => git::merge_target(&real).map_err(failed)?,
    };
    let texts = [RUN_TRAILER.trim_end(), "This reverts commit"];
    let history = git::history(&real, &since.to_string(), &target, &texts);
    let history = history.map_err(|error| match branch {
        Some(named) => Error::usage(format!("--branch {named}: {error}"))
            .hint("name a branch that `git branch --all` lists"),
        None => failed(error),
    })?;
    let mut missing = Vec::new();
    if git::checkout(&real).is_ok_and(|it| it.depth.is_some()) {
        missing.push(
            "the history of this checkout is incomplete, so the numbers are too: fetch all of it (fetch-depth: 0)".to_owned(),
        );
    }
    let mut runs = recorded(context, &real, since);
    match checked(context, &history, &mut missing) {
        Some(checked) => runs.extend(checked),
        None => missing.push(
            "check runs on GitHub are not read: set GITHUB_REPOSITORY and GITHUB_TOKEN".to_owned(),
        ),
    }
    let name = target.trim_start_matches("refs/heads/");
    let name = name.trim_start_matches("refs/remotes/").to_owned();
    let outcomes = outcomes(since.to_string(), name, &history, runs);
    Ok(Gathered { outcomes, missing })
}

/// The point in time that a day or a duration before now names.
fn beginning(since: &str) -> Result<Timestamp> {
    let now = Timestamp::now();
    let ago = duration::parse(since).ok();
    let ago = ago.and_then(|ago| now.checked_sub(ago).ok());
    let day = || {
        let day: civil::Date = since.parse().ok()?;
        let midnight = day.to_zoned(jiff::tz::TimeZone::UTC).ok()?;
        Some(midnight.timestamp())
    };
    let at = ago.or_else(day).or_else(|| since.parse().ok());
    at.filter(|at| *at <= now).ok_or_else(|| {
        Error::usage(format!("--since {since}: not a time in the past"))
            .hint("give a day such as 2026-01-31, or how long ago, such as 30d")
    })
}

/// The runs recorded on this machine.
fn recorded(context: &Context, real: &Real, since: Timestamp) -> Vec<RunLine> {
    let runs = past_runs(context, real.work_tree()).into_iter();
    let is_later = |id: &str| text::moment_of_id(id).is_some_and(|at| at >= since);
    let later = runs.filter(|run| is_later(&run.manifest.run_id));
    later
        .filter_map(|run| Some(RunLine::of(&run.summary()?)))
        .collect()
}

/// The results in Sprag's check runs on the commits of the history. `None` without access to GitHub.
fn checked(
    context: &Context,
    history: &[HistoryCommit],
    missing: &mut Vec<String>,
) -> Option<Vec<RunLine>> {
    let actions = ActionsEnvironment::of(context)?;
    let own: Vec<&HistoryCommit> = history
        .iter()
        .filter(|commit| commit.message.contains(RUN_TRAILER))
        .collect();
    if own.len() > ASKED {
        missing.push(format!(
            "check runs are read only for the newest {ASKED} of {} commits: give a later --since",
            own.len()
        ));
    }
    let mut found = Vec::new();
    let mut ask = async || -> Result<()> {
        let repo = actions.repo()?.within(REQUESTS_TIMEOUT);
        for commit in own.iter().take(ASKED) {
            let runs = repo.all_check_runs(&commit.id).await?;
            let lines = runs
                .iter()
                .filter_map(|run| RunLine::read(&run.output.text));
            found.extend(lines);
        }
        Ok(())
    };
    let asked = runtime().and_then(|runtime| runtime.block_on(ask()));
    if let Err(why) = asked {
        let why = why.without_hints();
        missing.push(format!("not all check runs on GitHub could be read: {why}"));
    }
    Some(found)
}
