//! Whole jobs of GitHub Actions, with GitHub's API and its git server on this machine.

mod agent_config;
mod answers;
mod api_faults;
mod approvals;
mod attacks;
mod branch_rules;
mod cancelled;
mod checks;
mod closed_meanwhile;
mod comments;
mod costs;
mod counts;
mod enterprise;
mod fan_out;
mod kept_work;
mod killed_machines;
mod labels;
mod mcp;
mod moves;
mod names;
mod outcomes;
mod partial_clones;
mod pictures;
mod plans;
mod pushes;
mod questions;
mod queues;
mod rebases;
mod refusals;
mod reports;
mod review_only;
mod review_threads;
mod rights;
mod secrets;
mod steps;
mod stories;
mod structured_output;
mod two_jobs;
mod via_api;
mod words;

use crate::support::events;
use crate::support::github::Line;
use crate::support::runner::Runner;

/// An agent that mends `a.txt` and names its commit.
const FIX: &str = "printf fixed > a.txt\necho 'SUGGESTED_COMMIT_MESSAGE: Say fixed'";
/// The check that it passes.
const IS_FIXED: &str = "grep -q fixed a.txt";

/// A repository with `a.txt`, a branch `feature` with a pull request onto `main` (number 1), and
/// grace, who has write access.
fn with_pull() -> Runner {
    with_pull_over(&[("a.txt", "broken")])
}

/// The same with these files on `main`.
fn with_pull_over(files: &[(&str, &str)]) -> Runner {
    let runner = Runner::new(files);
    runner.branch("feature", "b.txt", "feature");
    {
        let mut state = runner.github.state();
        state.role("grace", "write");
        state.role("ada", "write");
        state.open_pull("ada", "Add b", "feature", "main");
    }
    runner
}

/// What a user who may not write would see of a run.
fn own_comments(runner: &Runner) -> usize {
    let state = runner.github.state();
    let own = |author: &str| author == "github-actions[bot]";
    state
        .comments
        .iter()
        .filter(|comment| own(&comment.author))
        .count()
}

/// A review that requests changes on these lines of a pull request that Sprag works on, as the event of the
/// job: its id, and those of its comments.
fn request_changes(runner: &mut Runner, body: &str, threads: &[(&str, &str)]) -> (u64, Vec<u64>) {
    runner.merge_ref(1);
    let (id, comments) = {
        let mut github = runner.github.state();
        github.issues.get_mut(&1).unwrap().labels = vec!["sprag".to_owned()];
        let id = github.review(1, "grace", "CHANGES_REQUESTED", body);
        let comment = |(path, text): &(&str, &str)| {
            let line = Line {
                path: (*path).to_owned(),
                line: 1,
                diff_hunk: "@@ -0,0 +1 @@\n+feature".to_owned(),
                review: Some(id),
                in_reply_to: None,
            };
            github.review_comment(1, "grace", text, line)
        };
        let comments: Vec<u64> = threads.iter().map(comment).collect();
        (id, comments)
    };
    let event = events::review(&runner.github.state(), id);
    runner.event("pull_request_review", "refs/pull/1/merge", &event);
    (id, comments)
}
