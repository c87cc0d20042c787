//! What is kept of a run that is not completely done, and the next steps for a person.

use super::sentence::{has_proofs, is_undone, short_id};
use super::text;
use crate::domain::continuation::Continuation;
use crate::domain::event::{ClosedPull, PushLine, WarningTopic};
use crate::domain::outcome::{Reason, RunStatus, TaskEnd};
use crate::domain::summary::{NO_AGENT, RunSummary, TaskSummary};

/// The remedies of the error that ended the run.
pub fn remedies(summary: &RunSummary) -> Vec<String> {
    let mut topics = summary.warning_topics.iter().rev();
    let last = topics.find_map(|line| match &line.topic {
        WarningTopic::Error { remedies } => Some(remedies),
        _ => None,
    });
    let closed = summary.push.as_ref().and_then(of_closed);
    match last.filter(|remedies| !remedies.is_empty()) {
        Some(remedies) => remedies.iter().map(|it| text::line(it)).collect(),
        None if closed.is_some() => closed.into_iter().collect(),
        None => vec![match undelivered(summary) {
            Some(why) => format!("remove this cause: {}", text::line(&why)),
            None => "remove the cause that the message above names".into(),
        }],
    }
}

/// What to do about work for a pull request that was closed during the run.
fn of_closed(push: &PushLine) -> Option<String> {
    let branch = text::short_line(push.rescue.as_deref().unwrap_or("the commits"), 100);
    let another = format!("open another pull request for {branch}");
    Some(match push.closed? {
        ClosedPull::Merged => another,
        ClosedPull::Closed => format!("reopen the pull request, or {another}"),
    })
}

/// Why the work did not reach its branch or has no pull request.
fn undelivered(summary: &RunSummary) -> Option<String> {
    let push = summary.push.as_ref()?;
    let why = push.pull_request_error.as_ref();
    match push.pushed {
        false => push.cause.clone().or_else(|| Some(push.detail.clone())),
        true => why.map(|why| format!("no pull request: {why}")),
    }
}

/// What is kept of a run that is not completely done, one sentence each.
pub fn kept(summary: &RunSummary) -> Vec<String> {
    let mut kept = Vec::new();
    if !summary.commits.is_empty() {
        let ids: Vec<String> = summary.commits.iter().map(|id| short_id(id)).collect();
        let refused = summary.push.as_ref().filter(|push| !push.pushed);
        let branch = match refused {
            Some(push) => push.rescue.as_deref(),
            None => summary.branch.as_deref(),
        };
        let on = match branch {
            Some(branch) => format!(" on {}", text::short_line(branch, 100)),
            None if refused.is_some() => ", not on the remote".to_owned(),
            None => String::new(),
        };
        let commits = text::count(ids.len() as u64, "commit");
        kept.push(format!("{commits}{on}: {}", text::some_of(&ids, 8)));
    }
    for task in summary.tasks.iter().filter(|task| is_undone(task)) {
        if let Some(patch) = &task.patch {
            let id = text::short_line(&task.id, 60);
            kept.push(format!(
                "the work of {id} as a patch: {}",
                patch_path(summary, patch)
            ));
        }
    }
    if let Some(task) = left_in_tree(summary).filter(|_| summary.continuation.is_here()) {
        let id = text::short_line(&task.id, 60);
        kept.push(format!(
            "the changes of {id} are still in the work tree, not committed"
        ));
    }
    kept
}

/// A next step for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NextStep {
    /// In words.
    Advice(String),
    /// A command to type.
    Command {
        /// Its purpose, as a fragment that the command follows.
        what: String,
        /// The command.
        command: String,
    },
    /// A command that applies the unfinished work of a job to a clean checkout.
    Patch {
        /// The task whose work it is.
        task: String,
        /// The command, with a path in the run directory.
        command: String,
    },
    /// A comment to write on the issue or pull request.
    Comment {
        /// The comment.
        text: String,
        /// Its purpose, as a fragment that follows `to`.
        what: String,
    },
}

impl NextStep {
    fn command(what: impl Into<String>, command: impl Into<String>) -> Self {
        Self::Command {
            what: what.into(),
            command: command.into(),
        }
    }
}

/// The next steps for a person, the most useful first. Empty if everything is done and verified.
pub fn next_steps(summary: &RunSummary) -> Vec<NextStep> {
    steps(summary, &summary.continuation)
}

/// The next steps for a person who can continue the run in this way.
pub fn steps(summary: &RunSummary, continuation: &Continuation) -> Vec<NextStep> {
    let is_here = continuation.is_here();
    let advice = advice(summary).map(str::to_owned).map(NextStep::Advice);
    let mut steps: Vec<NextStep> = advice.into_iter().collect();
    steps.extend(name_commits(summary).filter(|_| is_here));
    match summary.status {
        None | Some(RunStatus::Success | RunStatus::NoWork) => return steps,
        Some(RunStatus::Invalid) if is_here => return steps,
        Some(RunStatus::Invalid) => {
            let what = "correct the configuration or the plan";
            steps.push(NextStep::Advice(what.into()));
        }
        Some(RunStatus::Unverified) if summary.tasks.iter().any(has_proofs) => return steps,
        Some(RunStatus::Unverified) => {
            let what = "add a check to .sprag/config.yaml, so that work is verified";
            let check = "verify: [{ name: test, run: <command>, kind: test }]";
            steps.push(NextStep::command(what, check));
            let single = "or name one for a single run";
            let command = "sprag run --verify '<command>'";
            steps.extend(is_here.then(|| NextStep::command(single, command)));
            return steps;
        }
        Some(RunStatus::Environment) => {
            steps.extend(remedies(summary).into_iter().map(NextStep::Advice));
        }
        Some(_) => {}
    }
    match continuation {
        Continuation::Here => {
            steps.push(NextStep::command("continue from here", resume(summary)));
            steps.extend(patches(summary));
        }
        Continuation::Anew => {
            steps.extend(anew(summary).map(NextStep::Advice));
        }
        Continuation::Job {
            phrase,
            merges_base,
        } => {
            steps.extend(again(summary, phrase.as_deref(), *merges_base));
            steps.extend(patch_of_job(summary));
        }
    }
    steps
}

/// What is left to do for a run that cannot be continued.
fn anew(summary: &RunSummary) -> Option<String> {
    let Some(last) = summary.commits.last() else {
        return Some("start the same command again; nothing was changed here".into());
    };
    let push = summary.push.as_ref();
    if push.is_some_and(|push| push.pull_request.is_some()) {
        return None;
    }
    let there = push.and_then(|push| push.pushed.then_some(&push.branch).or(push.rescue.as_ref()));
    let own = summary.branch.as_deref().unwrap_or("HEAD");
    let shown = |branch: &str| text::short_line(branch, 100);
    Some(match there {
        Some(branch) => format!("open a pull request for the branch {}", shown(branch)),
        None => format!(
            "push {}, which has the commit {}, or start the same command again in a new checkout",
            shown(own),
            short_id(last)
        ),
    })
}

/// How to continue a run of a job.
fn again(summary: &RunSummary, phrase: Option<&str>, merges_base: bool) -> Option<NextStep> {
    if summary.push.as_ref().and_then(|push| push.closed) == Some(ClosedPull::Merged) {
        return None;
    }
    let (word, what) = match summary.status? {
        RunStatus::Failed | RunStatus::Partial | RunStatus::Blocked | RunStatus::Invalid => {
            ("retry", "try the unfinished tasks again, with new retries")
        }
        _ if merges_base => ("continue", "have the merge repeated"),
        _ if is_only_in_job(summary) => ("retry", "have the work done again"),
        _ => ("continue", "continue where this run stopped"),
    };
    Some(match phrase {
        Some(phrase) => NextStep::Comment {
            text: format!("{phrase} {word}"),
            what: what.into(),
        },
        None => {
            // Commits that are only in the job are lost with it.
            let kept = match summary.push.as_ref().is_some_and(|push| push.pushed) {
                true => ": tasks that are done are not repeated",
                false => "",
            };
            NextStep::Advice(format!("start the workflow again to {what}{kept}"))
        }
    })
}

/// Whether no later job can continue the run, because its work is nowhere else.
fn is_only_in_job(summary: &RunSummary) -> bool {
    let push = summary.push.as_ref();
    let is_elsewhere = push.is_some_and(|push| push.pushed || push.rescue.is_some());
    let mut topics = summary.warning_topics.iter();
    !is_elsewhere && topics.any(|line| line.topic == WarningTopic::OnlyInJob)
}

/// How to apply the unfinished work of a job elsewhere.
fn patch_of_job(summary: &RunSummary) -> Option<NextStep> {
    let (task, patch) = undone_patches(summary).next()?;
    Some(NextStep::Patch {
        task: text::short_line(&task.id, 60),
        command: format!("git apply {}", quoted(&text::line(patch))),
    })
}

/// Where the patch of a task is and what its command needs, for a reader without a link to the artifact.
pub fn place_of_patch(task: &str) -> String {
    format!(
        "the unfinished work of {task} is in the run directory, which the output run-dir names. In a clean checkout"
    )
}

/// How to apply or discard the unfinished work on this machine.
fn patches(summary: &RunSummary) -> Vec<NextStep> {
    let path = |patch: &str| quoted(&patch_path(summary, patch));
    let first = undone_patches(summary).next().map(|(_, patch)| {
        let what = "apply the unfinished work to a clean checkout";
        NextStep::command(what, format!("git apply {}", path(patch)))
    });
    let left = left_in_tree(summary).and_then(|task| task.patch.as_ref());
    let left = left.map(|patch| {
        let what = "discard the unfinished work here; the patch keeps it";
        NextStep::command(what, format!("git apply -R {}", path(patch)))
    });
    first.into_iter().chain(left).collect()
}

fn undone_patches(summary: &RunSummary) -> impl Iterator<Item = (&TaskSummary, &String)> {
    let undone = summary.tasks.iter().filter(|task| is_undone(task));
    undone.filter_map(|task| Some((task, task.patch.as_ref()?)))
}

/// How to keep commits that are on no branch.
fn name_commits(summary: &RunSummary) -> Option<NextStep> {
    let is_detached = summary.branch.is_none() && summary.push.is_none();
    let last = summary.commits.last().filter(|_| is_detached)?;
    Some(NextStep::command(
        "the commits are not on a branch; create one for them",
        format!("git branch NAME {}", short_id(last)),
    ))
}

/// The remedy for the reason of the run's end.
pub fn advice(summary: &RunSummary) -> Option<&'static str> {
    match summary.reason? {
        Reason::PlanningOnly | Reason::NoProgress
            if summary.status == Some(RunStatus::NoWork) || !changed_nothing(summary) =>
        {
            Some("say in the task which files to change and how, or try another model")
        }
        Reason::PlanningOnly | Reason::NoProgress => Some(
            "say in the task which files to change and how, or try another model; if \
                 nothing needs to change, use --if-no-changes ok",
        ),
        Reason::FailedReport => {
            Some("do what the report asks for, or change the task, then run it again")
        }
        Reason::ChangedExpectations => Some(
            "find out what became of the tests and check definitions, and what the commit lacks, before you accept the work",
        ),
        Reason::UnstableChecks => {
            Some("make the checks leave the work tree unchanged, or commit what they write")
        }
        Reason::PolicyViolation => Some("read what the agent did before you run the task again"),
        Reason::ReviewFindings => {
            Some("fix the findings of the review, or say in the task why the work is right")
        }
        Reason::OutputMismatch => {
            Some("make the output schema require only what the task can provide")
        }
        Reason::TddViolation => {
            Some("say in the task what a test can observe, or run it without --tdd if no test can")
        }
        Reason::VerificationFailed if summary.tasks.iter().all(|task| task.checks.is_empty()) => {
            Some("say more exactly what is wanted, or try another model")
        }
        Reason::RepeatingFailure | Reason::VerificationFailed => {
            Some("look at the failing check: its log is in the run directory")
        }
        // If git could not commit, the message of the task names the cause.
        Reason::CommitRejected => summary
            .tasks
            .iter()
            .all(|task| task.refused_by_hook != Some(false))
            .then_some("make the commit hook pass, or change its rules"),
        // No agent works where the work of several jobs is brought together.
        Reason::Conflict if summary.agent == NO_AGENT => Some(
            "resolve the conflict on the current branch, or run the task again there; the commits of each job are in its run directory or branch",
        ),
        Reason::Conflict => {
            Some("merge the two branches by hand and push the result: nothing was changed here")
        }
        Reason::MissingShard => Some("run the remaining tasks: sprag matrix prints their rows"),
        Reason::Budget => Some("raise --max-tokens or --max-cost-usd"),
        Reason::Deadline | Reason::TurnTimeout => {
            Some("give it more time (--deadline, --turn-timeout) or split the task")
        }
        _ => None,
    }
}

/// Whether no unfinished task changed anything: only then does `if_no_changes` change the end of the run.
fn changed_nothing(summary: &RunSummary) -> bool {
    let mut undone = summary.tasks.iter().filter(|task| is_undone(task));
    undone.all(|task| task.changed_files.is_empty())
}

fn resume(summary: &RunSummary) -> String {
    match summary.run_dir.is_empty() {
        true => "sprag run --resume".into(),
        false => format!(
            "sprag run --resume --run-dir {}",
            quoted(&text::line(&summary.run_dir))
        ),
    }
}

fn patch_path(summary: &RunSummary, patch: &str) -> String {
    let patch = text::line(patch);
    match (summary.run_dir.is_empty(), summary.continuation.is_here()) {
        (true, _) => patch,
        // The machine with the path is gone.
        (false, false) => format!("{patch} in the run directory"),
        (false, true) => format!(
            "{}/{patch}",
            text::line(&summary.run_dir).trim_end_matches('/')
        ),
    }
}

/// A word for a shell, in quotes where it needs them.
#[must_use]
pub fn quoted(word: &str) -> String {
    shlex::try_quote(word).map_or_else(|_| word.to_owned(), std::borrow::Cow::into_owned)
}

/// The last task whose failed work the run left in the tree. A run that continued after a failed task
/// (`keep_going`) restores the tree, so it has none.
fn left_in_tree(summary: &RunSummary) -> Option<&TaskSummary> {
    let worked = |task: &&TaskSummary| task.attempts > 0;
    let last = summary.tasks.iter().rfind(worked)?;
    let mut others = summary
        .tasks
        .iter()
        .filter(worked)
        .filter(|task| task.id != last.id);
    if others.any(is_undone) {
        return None;
    }
    (last.status != TaskEnd::Done && !last.changed_files.is_empty()).then_some(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::samples;

    fn commands(summary: &RunSummary) -> Vec<String> {
        let steps = next_steps(summary).into_iter();
        let commands = steps.filter_map(|step| match step {
            NextStep::Command { command, .. } => Some(command),
            _ => None,
        });
        commands.collect()
    }

    #[test]
    fn every_run_that_is_not_a_success_names_a_command() {
        for (name, summary) in samples::all() {
            assert_eq!(commands(&summary).is_empty(), name == "success", "{name}");
        }
    }

    #[test]
    fn a_job_names_no_command_for_a_machine_that_is_gone() {
        let job = |phrase: Option<&str>| Continuation::Job {
            phrase: phrase.map(str::to_owned),
            merges_base: false,
        };
        for (name, mut summary) in samples::all() {
            summary.continuation = job(Some("/sprag"));
            let steps = next_steps(&summary);
            let told = format!("{steps:?} {:?}", kept(&summary));
            assert!(!told.contains("sprag run"), "{name}: {told}");
            assert!(!told.contains("still in the work tree"), "{name}: {told}");
            let done = matches!(
                summary.status,
                None | Some(RunStatus::Success | RunStatus::Unverified)
            );
            let comments = |step: &NextStep| matches!(step, NextStep::Comment { .. });
            assert_eq!(!done, steps.iter().any(comments), "{name}: {told}");
            summary.continuation = job(None);
            let told = format!("{:?}", next_steps(&summary));
            assert_eq!(
                !done,
                told.contains("start the workflow again"),
                "{name}: {told}"
            );
            summary.continuation = Continuation::Anew;
            let told = format!("{:?}", next_steps(&summary));
            assert!(!told.contains("--resume"), "{name}: {told}");
        }
    }

    #[test]
    fn a_draft_whose_commit_did_not_arrive_is_not_said_to_have_changed_nothing() {
        let mut summary = samples::planning_only();
        summary.continuation = Continuation::Anew;
        let told = |summary: &RunSummary| format!("{:?}", next_steps(summary));
        assert!(told(&summary).contains("nothing was changed here"));
        summary.status = Some(RunStatus::Environment);
        summary.commits = vec!["9b1e44c0aa27ffff".into()];
        summary.branch = Some("sprag/plan-csv".into());
        let mut push = PushLine {
            branch: "sprag/plan-csv".into(),
            detail: "refused\n  by a rule".into(),
            ..PushLine::default()
        };
        summary.push = Some(push.clone());
        let here = told(&summary);
        let own = "push sprag/plan-csv, which has the commit 9b1e44c0aa27,";
        assert!(here.contains(own), "{here}");
        assert!(here.contains("cause: refused   by a rule\""), "{here}");
        assert!(!here.contains("nothing was changed"), "{here}");
        push.rescue = Some("sprag/rescue".into());
        summary.push = Some(push.clone());
        let rescued = told(&summary);
        assert!(rescued.contains("pull request for the branch sprag/rescue"));
        push.pushed = true;
        summary.push = Some(push);
        let pushed = told(&summary);
        assert!(pushed.contains("pull request for the branch sprag/plan-csv"));
    }

    #[test]
    fn only_pushed_work_of_a_job_is_said_to_last() {
        let mut summary = samples::partial();
        summary.continuation = Continuation::Job {
            phrase: None,
            merges_base: false,
        };
        let lasts =
            |summary: &RunSummary| format!("{:?}", next_steps(summary)).contains("not repeated");
        assert!(!summary.commits.is_empty() && !lasts(&summary));
        for is_pushed in [false, true] {
            let push = samples::pushed();
            summary.push = Some(PushLine {
                pushed: is_pushed,
                ..push
            });
            assert_eq!(lasts(&summary), is_pushed);
        }
    }

    #[test]
    fn work_that_is_only_in_its_job_is_neither_on_the_branch_nor_continued() {
        let mut summary = samples::partial();
        summary.status = Some(RunStatus::Environment);
        let told = |summary: &mut RunSummary, phrase: Option<&str>| {
            summary.continuation = Continuation::Job {
                phrase: phrase.map(str::to_owned),
                merges_base: false,
            };
            format!("{:?} {:?}", next_steps(summary), kept(summary))
        };
        summary.push = Some(PushLine {
            pushed: false,
            rescue: None,
            detail: "refused; the commits are in work.bundle of the run directory".into(),
            cause: Some("refused".into()),
            ..samples::pushed()
        });
        let kept_on_github = told(&mut summary, Some("/sprag"));
        assert!(kept_on_github.contains("/sprag continue"));
        assert!(kept_on_github.contains("remove this cause: refused\""));
        assert!(kept_on_github.contains("1 commit, not on the remote: 9b1e44c0aa27"));
        let only_here = "GitHub did not take the work: refused".to_owned();
        summary.warn(only_here, Some(WarningTopic::OnlyInJob));
        let lost = told(&mut summary, Some("/sprag"));
        assert!(lost.contains("/sprag retry") && lost.contains("have the work done again"));
        let lost = told(&mut summary, None);
        assert!(lost.contains("start the workflow again to have the work done again"));

        let push = summary.push.as_mut().unwrap();
        push.rescue = Some("sprag/rescue/1".into());
        let rescued = told(&mut summary, None);
        assert!(rescued.contains("1 commit on sprag/rescue/1: 9b1e44c0aa27"));
        assert!(rescued.contains("continue where this run stopped"));
    }

    #[test]
    fn a_hook_is_named_only_if_it_refused_the_commit() {
        let mut summary = samples::partial();
        summary.reason = Some(Reason::CommitRejected);
        let task = summary.tasks.len() - 1;
        for (by_hook, is_named) in [(None, true), (Some(true), true), (Some(false), false)] {
            summary.tasks[task].refused_by_hook = by_hook;
            let told = format!("{:?}", next_steps(&summary));
            assert_eq!(told.contains("commit hook"), is_named, "{by_hook:?}");
        }
    }

    #[test]
    fn paths_are_quoted_for_the_shell() {
        let mut summary = samples::partial();
        summary.run_dir = "/runs/a b/$(x)".into();
        assert_eq!(
            commands(&summary),
            [
                "sprag run --resume --run-dir '/runs/a b/$(x)'",
                "git apply '/runs/a b/$(x)/patches/t2.patch'",
                "git apply -R '/runs/a b/$(x)/patches/t2.patch'"
            ]
        );
    }

    #[test]
    fn what_is_kept_is_only_what_is_there() {
        assert_eq!(kept(&samples::planning_only()), Vec::<String>::new());
        let mut summary = samples::partial();
        assert_eq!(
            kept(&summary),
            [
                "1 commit on feature/csv: 9b1e44c0aa27",
                "the work of t2 as a patch: /runs/01H-run/patches/t2.patch",
                "the changes of t2 are still in the work tree, not committed",
            ]
        );
        // The run continued after a failed task, so it restored the tree.
        summary.tasks[0].status = TaskEnd::Failed;
        assert!(
            kept(&summary)
                .iter()
                .all(|entry| !entry.contains("work tree"))
        );
    }

    #[test]
    fn what_is_missing_comes_before_going_on() {
        let mut summary = samples::planning_only();
        summary.status = Some(RunStatus::Environment);
        summary.reason = Some(Reason::AgentUnavailable);
        let steps = next_steps(&summary);
        let general = "remove the cause that the message above names";
        assert!(steps.contains(&NextStep::Advice(general.into())));
        assert!(
            matches!(steps.last(), Some(NextStep::Command { .. })),
            "{steps:?}"
        );
        let remedies = ["install it: npm install codex", "or use another agent"];
        let topic = WarningTopic::Error {
            remedies: remedies.map(str::to_owned).to_vec(),
        };
        summary.warn("codex was not found".into(), Some(topic));
        summary.warn("the log\n  is incomplete".into(), None);
        let steps = next_steps(&summary);
        assert_eq!(
            steps[..2],
            remedies.map(|what| NextStep::Advice(what.into()))
        );
    }
}
