//! The results of Sprag's work in a period, folded from the commits of the history and from the records of
//! runs.

use crate::commit_message::{RUN_TRAILER, TASK_TRAILER};
use crate::outcome::{Reason, RunStatus};
use crate::summary::RunSummary;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

const REVERTS: &str = "This reverts commit ";
const MARKER: &str = "<!-- sprag:outcome ";
const CLOSE: &str = " -->";
/// The maximum number of commits in a marker.
const MARKED_COMMITS: usize = 50;

/// A commit of the history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryCommit {
    /// Its id.
    pub id: String,
    /// Its message.
    pub message: String,
    /// Whether the default branch contains it.
    pub is_merged: bool,
}

/// A run's own record: on its check run, or on this machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunLine {
    /// Its id.
    pub run_id: String,
    /// Its status.
    pub status: Option<RunStatus>,
    /// The number of tasks that it worked on.
    pub tasks: u32,
    /// The number of tasks that ended verified.
    pub verified: u32,
    /// Retries.
    pub retries: u32,
    /// Nudges.
    pub nudges: u32,
    /// The cost in US dollars; `None` if unknown.
    pub cost_usd: Option<f64>,
    /// Its commits as they are on the branch, at most 50.
    pub commits: Vec<String>,
}

/// The outcomes of Sprag's work in a period. `null` means unknown.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Outcomes {
    /// Version of this format.
    pub v: u32,
    /// The beginning of the period, RFC 3339.
    pub since: String,
    /// The branch that counts as the default branch.
    pub branch: String,
    /// Runs that made a commit or left a record.
    pub runs: u32,
    /// Of these, runs that left a record; status, tasks, verified tasks, retries, nudges and cost are known only for them.
    pub runs_known: u32,
    /// The number of runs for each status.
    pub statuses: BTreeMap<String, u32>,
    /// Tasks that were worked on.
    pub tasks: Option<u32>,
    /// Tasks that ended verified.
    pub tasks_verified: Option<u32>,
    /// Tasks with a commit on any branch.
    pub tasks_committed: u32,
    /// Tasks with a commit on the default branch.
    pub tasks_merged: u32,
    /// Tasks of which a commit on the default branch was reverted there.
    pub tasks_reverted: u32,
    /// Sprag's commits on any branch.
    pub commits: u32,
    /// Sprag's commits on the default branch.
    pub commits_merged: u32,
    /// Sprag's commits that were reverted on the default branch.
    pub commits_reverted: u32,
    /// Retries.
    pub retries: Option<u32>,
    /// Nudges.
    pub nudges: Option<u32>,
    /// US dollars of the runs whose cost is known.
    pub cost_usd: Option<f64>,
    /// Runs whose cost is known.
    pub runs_with_cost: u32,
    /// US dollars of the runs whose cost is known, per task of theirs that is on the default branch.
    pub cost_usd_per_merged_task: Option<f64>,
}

impl RunLine {
    /// The record of a completed run.
    pub fn of(summary: &RunSummary) -> Self {
        let worked = summary.tasks.iter().filter(|task| task.reason.is_some());
        let is_verified = |reason| matches!(reason, Reason::Verified | Reason::AlreadySatisfied);
        let verified = summary
            .done()
            .filter(|task| task.reason.is_some_and(is_verified));
        let commits = summary.commits.iter().take(MARKED_COMMITS);
        Self {
            run_id: summary.facts.run_id.clone(),
            status: summary.status,
            tasks: number(worked.count()),
            verified: number(verified.count()),
            retries: summary.totals.retries,
            nudges: summary.totals.nudges,
            cost_usd: summary.usage.cost_usd,
            commits: commits.cloned().collect(),
        }
    }

    /// The record as an invisible Markdown comment.
    pub fn marker(&self) -> String {
        let json = serde_json::to_string(self).unwrap_or_default();
        // Nothing in the JSON can end the comment.
        format!("{MARKER}{}{CLOSE}", json.replace('>', "\\u003e"))
    }

    /// The last such comment in a text.
    pub fn read(text: &str) -> Option<Self> {
        let (_, after) = text.rsplit_once(MARKER)?;
        let (json, _) = after.split_once(CLOSE)?;
        let line: Self = serde_json::from_str(json).ok()?;
        let is_sum = |usd: f64| usd.is_finite() && usd >= 0.0;
        line.cost_usd.is_none_or(is_sum).then_some(line)
    }
}

/// The run and tasks that a commit of Sprag's names.
struct Work {
    run: String,
    tasks: BTreeSet<String>,
}

/// The trailers of a commit. They need not be at its end, because GitHub concatenates the messages of several
/// commits when it squashes them. `None` for a commit that is not Sprag's.
fn work(message: &str) -> Option<Work> {
    let values = |trailer: &'static str| {
        let lines = message
            .lines()
            .map(|line| line.trim_start_matches(['*', ' ']));
        lines.filter_map(move |line| Some(line.strip_prefix(trailer)?.trim().to_owned()))
    };
    Some(Work {
        run: values(RUN_TRAILER).next()?,
        tasks: values(TASK_TRAILER).collect(),
    })
}

/// The commits that a commit reverts.
fn reverted(message: &str) -> impl Iterator<Item = &str> {
    let ids = message.split(REVERTS).skip(1).filter_map(|rest| {
        let id = rest.split(|c: char| !c.is_ascii_hexdigit());
        id.into_iter().next()
    });
    ids.filter(|id| id.len() >= 7)
}

/// Sprag's own commits of a period.
struct OwnCommits<'a>(Vec<(&'a HistoryCommit, Work)>);

impl<'a> OwnCommits<'a> {
    fn of(history: &'a [HistoryCommit]) -> Self {
        let own = |commit: &'a HistoryCommit| Some((commit, work(&commit.message)?));
        Self(history.iter().filter_map(own).collect())
    }

    fn kept(
        &self,
        keep: impl Fn(&HistoryCommit) -> bool,
    ) -> impl Iterator<Item = &(&'a HistoryCommit, Work)> {
        self.0.iter().filter(move |(commit, _)| keep(commit))
    }

    fn count(&self, keep: impl Fn(&HistoryCommit) -> bool) -> u32 {
        number(self.kept(keep).count())
    }

    /// The tasks of the commits, each with the name of its run.
    fn tasks(&self, keep: impl Fn(&HistoryCommit) -> bool) -> BTreeSet<(&str, &str)> {
        let tasks = self.kept(keep).flat_map(|(_, work)| {
            let tasks = work.tasks.iter();
            tasks.map(|task| (work.run.as_str(), task.as_str()))
        });
        tasks.collect()
    }

    /// The name by which the commits of a run call it: its page, or its id outside GitHub Actions.
    fn name_of(&self, run: &RunLine) -> Option<&str> {
        let mut own = self.0.iter();
        let (_, work) =
            own.find(|(commit, work)| work.run == run.run_id || run.commits.contains(&commit.id))?;
        Some(&work.run)
    }
}

/// Folds the commits of a period, on every branch, and the records of runs. A run with two records counts
/// once.
pub fn outcomes(
    since: String,
    branch: String,
    history: &[HistoryCommit],
    runs: impl IntoIterator<Item = RunLine>,
) -> Outcomes {
    let own = OwnCommits::of(history);
    let merged = history.iter().filter(|commit| commit.is_merged);
    let taken_back: Vec<&str> = merged
        .flat_map(|commit| reverted(&commit.message))
        .collect();
    let is_reverted = |commit: &HistoryCommit| {
        commit.is_merged && taken_back.iter().any(|id| commit.id.starts_with(id))
    };
    let lines = runs.into_iter().map(|line| (line.run_id.clone(), line));
    let lines: BTreeMap<String, RunLine> = lines.collect();
    let named: BTreeSet<&str> = own.0.iter().map(|(_, work)| work.run.as_str()).collect();
    let unnamed = lines.values().filter(|line| own.name_of(line).is_none());
    let merged = own.tasks(|commit| commit.is_merged);
    let known = |value: u32| (!lines.is_empty()).then_some(value);
    let sum = |value: fn(&RunLine) -> u32| known(lines.values().map(value).sum());
    let mut statuses = BTreeMap::new();
    for status in lines.values().filter_map(|line| line.status) {
        *statuses.entry(status.as_str().to_owned()).or_default() += 1;
    }
    let paid: Vec<&RunLine> = lines.values().filter(|it| it.cost_usd.is_some()).collect();
    let cost = (!paid.is_empty()).then(|| paid.iter().filter_map(|it| it.cost_usd).sum::<f64>());
    let of_paid: BTreeSet<&str> = paid.iter().filter_map(|it| own.name_of(it)).collect();
    let is_of_paid = |(run, _): &&(&str, &str)| of_paid.contains(run);
    let merged_of_paid = number(merged.iter().filter(is_of_paid).count());
    let cost_of_one = cost.filter(|_| merged_of_paid > 0);
    Outcomes {
        v: 1,
        since,
        branch,
        runs: number(named.len() + unnamed.count()),
        runs_known: number(lines.len()),
        statuses,
        tasks: sum(|line| line.tasks),
        tasks_verified: sum(|line| line.verified),
        tasks_committed: number(own.tasks(|_| true).len()),
        tasks_merged: number(merged.len()),
        tasks_reverted: number(own.tasks(is_reverted).len()),
        commits: own.count(|_| true),
        commits_merged: own.count(|commit| commit.is_merged),
        commits_reverted: own.count(is_reverted),
        retries: sum(|line| line.retries),
        nudges: sum(|line| line.nudges),
        cost_usd: cost,
        runs_with_cost: number(paid.len()),
        cost_usd_per_merged_task: cost_of_one.map(|cost| cost / f64::from(merged_of_paid)),
    }
}

fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commit(id: &str, message: &str, is_merged: bool) -> HistoryCommit {
        HistoryCommit {
            id: id.to_owned(),
            message: message.to_owned(),
            is_merged,
        }
    }

    fn of_sprag(id: &str, task: &str, run: &str, is_merged: bool) -> HistoryCommit {
        let message = format!("Do {task}\n\nSprag-Task: plan/{task}\nSprag-Run: {run}\n");
        commit(id, &message, is_merged)
    }

    fn line(run_id: &str, cost_usd: Option<f64>, commits: &[&str]) -> RunLine {
        RunLine {
            run_id: run_id.to_owned(),
            status: Some(RunStatus::Success),
            tasks: 2,
            verified: 1,
            retries: 3,
            nudges: 1,
            cost_usd,
            commits: commits.iter().map(|&id| id.to_owned()).collect(),
        }
    }

    fn of(history: &[HistoryCommit], runs: Vec<RunLine>) -> Outcomes {
        outcomes("2026-01-01T00:00:00Z".into(), "main".into(), history, runs)
    }

    #[test]
    fn the_history_alone_tells_commits_and_tasks_and_no_more() {
        let history = [
            of_sprag("aaaaaaaa", "one", "r1", true),
            of_sprag("bbbbbbbb", "two", "r1", true),
            of_sprag("cccccccc", "one", "r2", false),
            commit("dddddddd", "Somebody else's work", true),
            commit(
                "eeeeeeee",
                "Revert it\n\nThis reverts commit bbbbbbbb.\n",
                true,
            ),
            commit(
                "ffffffff",
                "Revert it\n\nThis reverts commit aaaaaaaa.\n",
                false,
            ),
        ];
        let told = of(&history, Vec::new());
        assert_eq!((told.runs, told.runs_known), (2, 0));
        assert_eq!(
            (told.commits, told.commits_merged, told.commits_reverted),
            (3, 2, 1)
        );
        assert_eq!(
            (told.tasks_committed, told.tasks_merged, told.tasks_reverted),
            (3, 2, 1)
        );
        assert_eq!(
            (told.tasks, told.retries, told.cost_usd),
            (None, None, None)
        );
    }

    #[test]
    fn squashed_commits_count_by_their_tasks() {
        let message = "Both (#7)\n\n* One\n\nSprag-Task: p/one\nSprag-Run: r1\n\n* Two\n\nSprag-Task: p/two\nSprag-Run: r1\n";
        let told = of(&[commit("aaaaaaaa", message, true)], Vec::new());
        assert_eq!((told.commits_merged, told.tasks_merged), (1, 2));
    }

    #[test]
    fn a_run_counts_once_by_whatever_it_is_named_and_what_it_cost_by_its_merged_tasks() {
        let history = [
            of_sprag("aaaaaaaa", "one", "https://example.invalid/runs/1", true),
            of_sprag("bbbbbbbb", "two", "r2", false),
        ];
        let runs = vec![
            line("r1", Some(0.5), &["aaaaaaaa"]),
            line("r1", Some(0.5), &["aaaaaaaa"]),
            line("r2", None, &[]),
            line("r3", Some(1.0), &[]),
        ];
        let told = of(&history, runs);
        assert_eq!((told.runs, told.runs_known, told.runs_with_cost), (3, 3, 2));
        assert_eq!((told.tasks, told.tasks_verified), (Some(6), Some(3)));
        assert_eq!((told.retries, told.nudges), (Some(9), Some(3)));
        assert_eq!(told.cost_usd, Some(1.5));
        assert_eq!(told.cost_usd_per_merged_task, Some(1.5));
        assert_eq!(told.statuses.get("success"), Some(&3));
    }

    #[test]
    fn what_a_run_says_is_read_back_from_a_text() {
        let said = line("r-->1", Some(0.25), &["aaaaaaaa"]);
        let text = format!("Report\n\n{}\n", said.marker());
        assert_eq!(text.matches("-->").count(), 1);
        assert_eq!(RunLine::read(&text), Some(said));
        assert_eq!(RunLine::read("Report"), None);
        assert_eq!(RunLine::read("<!-- sprag:outcome {} -->"), None);
        let negative = line("r1", Some(-1.0), &[]);
        assert_eq!(RunLine::read(&negative.marker()), None);
    }
}
