//! What is kept of a run that is not completely done, and the next steps for a person.

use super::sentence::short_id;
use super::text;
use crate::domain::attempt::{Blame, EvidenceKind};
use crate::domain::continuation::{Continuation, Directories};
use crate::domain::event::{ClosedPull, PushLine, WarningTopic};
use crate::domain::outcome::{Reason, RunStatus, TaskEnd};
use crate::domain::settings;
use crate::domain::summary::{NO_AGENT, RunSummary, TaskSummary};
use crate::domain::trigger::approval::plan_to_approve;

/// How many characters of a run's id are shown: its random end, which differs between runs of the same minute.
pub const SHOWN_ID: usize = 8;

/// The remedies of the error that ended the run.
fn remedies(summary: &RunSummary) -> Vec<String> {
    let remedies = summary
        .last_error()
        .map_or(&[][..], |(_, remedies)| remedies);
    if !remedies.is_empty() {
        return remedies.to_vec();
    }
    let of_closed = summary.push.as_ref().and_then(of_closed);
    vec![of_closed.unwrap_or_else(|| match undelivered(summary) {
        Some(why) => format!("remove this cause: {}", text::line(&why)),
        None => "fix the problem named above, then continue".into(),
    })]
}

/// What to do about work for a pull request that was closed during the run.
fn of_closed(push: &PushLine) -> Option<String> {
    let branch = push.rescue.as_deref().unwrap_or("the commits");
    let another = format!("open another pull request for {branch}");
    Some(match push.closed? {
        ClosedPull::Merged => another,
        ClosedPull::Closed => format!("reopen the pull request, or {another}"),
    })
}

/// Why the work did not reach its branch or has no pull request.
fn undelivered(summary: &RunSummary) -> Option<String> {
    let push = summary.push.as_ref()?;
    if !push.pushed {
        return Some(push.cause.as_ref().unwrap_or(&push.detail).clone());
    }
    let why = push.pull_request_error.as_ref()?;
    Some(format!("no pull request: {why}"))
}

/// What is kept of a run that is not completely done, one sentence each. The reports have the ids of the commits
/// with their tasks.
pub fn kept(summary: &RunSummary) -> Vec<String> {
    let mut kept = Vec::new();
    if !summary.commits.is_empty() {
        let on = |branch: &String| format!(" on {branch}");
        let place = match summary.push.as_ref().filter(|push| !push.pushed) {
            Some(push) => push
                .rescue
                .as_ref()
                .map_or(", not on the remote".into(), on),
            None => summary.facts.branch.as_ref().map_or_else(String::new, on),
        };
        let commits = text::count(summary.commits.len() as u64, "commit");
        kept.push(format!("{commits}{place}"));
    }
    let more = if summary.facts.allow_dirty {
        " and everything else that was not committed"
    } else {
        ""
    };
    kept.extend(undone_patches(summary).map(|(task, patch)| {
        let path = patch_path(summary, patch);
        format!("the work of {}{more} as a patch: {path}", task.id)
    }));
    let left = left_in_tree(summary).filter(|_| summary.facts.continuation.is_here());
    kept.extend(left.map(|task| {
        let id = &task.id;
        format!("the changes of {id} are still in the work tree, not committed")
    }));
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
    /// A command that applies work of a job to a clean checkout.
    Patch {
        /// The task whose unfinished work it is; `None` for the commits of the run.
        task: Option<String>,
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

    /// The words before what is to be typed, this text, and the words behind it.
    pub fn parts(&self) -> (String, Option<&str>, String) {
        match self {
            Self::Advice(what) => (what.clone(), None, String::new()),
            Self::Command { what, command } => (format!("{what}:"), Some(command), String::new()),
            // This reader has no link to the artifact.
            Self::Patch { task, command } => {
                let what = match task {
                    Some(task) => format!("the unfinished work of {task} is"),
                    None => "the commits are".to_owned(),
                };
                let words = format!(
                    "{what} in the run directory, which the output run-dir names. In a clean checkout:"
                );
                (words, Some(command), String::new())
            }
            Self::Comment { text, what } => ("comment".into(), Some(text), format!(" to {what}")),
        }
    }
}

/// The next steps for a person, the most useful first. Empty if everything is done and verified.
pub fn next_steps(summary: &RunSummary) -> Vec<NextStep> {
    steps(summary, &summary.facts.continuation)
}

/// The text with the inputs of the action instead of the flags of settings.
fn with_inputs(text: &str) -> String {
    let is_setting = |input: &str| {
        let mut names = settings::NAMES.iter();
        names.any(|(key, _)| settings::input_name(key) == input)
    };
    let words = text.split(' ').map(|word| {
        let flag = word.trim_matches(|c: char| !c.is_ascii_alphanumeric() && c != '-');
        match flag.strip_prefix("--") {
            Some(input) if is_setting(input) => word.replace(flag, &format!("the input {input}")),
            _ => word.to_owned(),
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

/// The next steps for a person who can continue the run in this way.
pub fn steps(summary: &RunSummary, continuation: &Continuation) -> Vec<NextStep> {
    let mut steps = at_the_root(summary, continuation);
    let Directories { root, chosen } = &summary.facts.directories;
    for step in &mut steps {
        let NextStep::Command { command, .. } = step else {
            continue;
        };
        for (program, directory) in [("git ", root), ("sprag ", chosen)] {
            if let (Some(rest), Some(directory)) = (command.strip_prefix(program), directory) {
                *command = format!("{program}-C {} {rest}", quoted(directory));
            }
        }
    }
    steps
}

/// The next steps with commands for a shell at the root of the repository.
fn at_the_root(summary: &RunSummary, continuation: &Continuation) -> Vec<NextStep> {
    let is_here = continuation.is_here();
    let advise = |text: &str| match continuation {
        Continuation::Job { .. } => NextStep::Advice(with_inputs(text)),
        Continuation::Here | Continuation::Anew => NextStep::Advice(text.to_owned()),
    };
    let answer = to_answer(summary, continuation);
    let has_answer = answer.is_some();
    let first = answer.or_else(|| advice(summary).map(advise));
    let mut steps: Vec<NextStep> = first.into_iter().collect();
    steps.extend(held(summary));
    steps.extend(name_commits(summary).filter(|_| is_here));
    steps.extend(commits_for_fork(summary));
    steps.extend(to_approve(summary));
    match summary.status.filter(|_| !has_answer) {
        None | Some(RunStatus::Success | RunStatus::Answered | RunStatus::NoWork) => return steps,
        Some(RunStatus::Invalid) if is_here => return steps,
        Some(RunStatus::Invalid) => steps.push(advise("correct the configuration or the plan")),
        Some(RunStatus::Unverified) => {
            steps.extend(to_verify(summary, is_here));
            return steps;
        }
        Some(RunStatus::Environment) => {
            steps.extend(remedies(summary).iter().map(|remedy| advise(remedy)));
        }
        Some(_) => {}
    }
    match continuation {
        Continuation::Here => {
            steps.push(NextStep::command("continue from here", resume(summary)));
            steps.extend(patches(summary));
        }
        Continuation::Anew => steps.extend(anew(summary).map(NextStep::Advice)),
        Continuation::Job {
            phrase,
            merges_base,
        } => {
            steps.extend(again(summary, phrase.as_deref(), *merges_base));
            steps.extend(
                undone_patches(summary)
                    .next()
                    .map(|(task, patch)| NextStep::Patch {
                        task: Some(task.id.clone()),
                        command: format!("git apply {}", quoted(patch)),
                    }),
            );
        }
    }
    steps
}

/// How to have work verified that no check confirms, unless the reports say why.
fn to_verify(summary: &RunSummary, is_here: bool) -> Vec<NextStep> {
    let any = |wanted: fn(&TaskSummary) -> bool| summary.tasks.iter().any(wanted);
    if any(has_idle_checks) {
        let what = "make the checks run a test, or name a check that judges the work";
        return vec![NextStep::Advice(what.into())];
    }
    if any(|task| !task.proofs.is_empty()) || summary.reason == Some(Reason::NeedsPermission) {
        return Vec::new();
    }
    let what = "add a check to .sprag/config.yaml, so that work is verified";
    let check = "verify: [{ name: test, run: <command>, kind: test }]";
    let single = "or name one for a single run, with --verify 'COMMAND'";
    let single = is_here.then(|| NextStep::Advice(single.into()));
    std::iter::once(NextStep::command(what, check))
        .chain(single)
        .collect()
}

/// Whether checks of a task passed and ran no test.
fn has_idle_checks(task: &TaskSummary) -> bool {
    let mut lines = task.work.evidence.iter();
    lines.any(|line| line.kind == EvidenceKind::NoTestRan)
}

/// How to approve the plan that the run has drafted.
pub fn to_approve(summary: &RunSummary) -> Option<NextStep> {
    plan_to_approve(summary).map(|shown| NextStep::Comment {
        text: shown.command,
        what: "run exactly this plan".to_owned(),
    })
}

/// How to answer the question with which the run ended, where the run can go on with the answer.
fn to_answer(summary: &RunSummary, continuation: &Continuation) -> Option<NextStep> {
    let command = match continuation {
        _ if summary.reason != Some(Reason::NeedsAnswer) => return None,
        Continuation::Here => format!("{} --answer '…'", resume(summary)),
        Continuation::Job { phrase, .. } => format!("{} answer …", phrase.as_ref()?),
        Continuation::Anew => return None,
    };
    Some(NextStep::command("answer it", command))
}

/// What is left to do for a run that cannot be continued.
fn anew(summary: &RunSummary) -> Option<String> {
    let Some(last) = summary.commits.last() else {
        return Some("start the same command again; nothing was changed here".into());
    };
    if summary.pull_request().is_some() {
        return None;
    }
    let push = summary.push.as_ref();
    let there = push.and_then(|push| push.pushed.then_some(&push.branch).or(push.rescue.as_ref()));
    let (own, last) = (
        summary.facts.branch.as_deref().unwrap_or("HEAD"),
        short_id(last),
    );
    Some(match there {
        Some(branch) => format!("open a pull request for the branch {branch}"),
        None => format!(
            "push {own}, which has the commit {last}, or start the same command again in a new checkout"
        ),
    })
}

/// How to continue a run of a job.
fn again(summary: &RunSummary, phrase: Option<&str>, merges_base: bool) -> Option<NextStep> {
    let push = summary.push.as_ref();
    let told = summary.topics().find_map(|topic| match topic {
        WarningTopic::PullRequestClosed { how } => Some(*how),
        _ => None,
    });
    let once = match push.and_then(|push| push.closed).or(told) {
        Some(ClosedPull::Merged) => return None,
        Some(ClosedPull::Closed) => ", once the pull request is open again",
        None => "",
    };
    // No later job can continue the run if its work is nowhere else.
    let is_elsewhere = push.is_some_and(|push| push.pushed || push.rescue.is_some());
    let is_only_in_job = !is_elsewhere && summary.has_warned(&WarningTopic::OnlyInJob);
    let (word, what) = match summary.status? {
        RunStatus::Failed | RunStatus::Partial | RunStatus::Blocked | RunStatus::Invalid => {
            ("retry", "try the unfinished tasks again, with new retries")
        }
        _ if merges_base => ("continue", "have the merge repeated"),
        _ if is_only_in_job => ("retry", "have the work done again"),
        _ => ("continue", "continue where this run stopped"),
    };
    let what = format!("{what}{once}");
    if let Some(phrase) = phrase {
        let text = format!("{phrase} {word}");
        return Some(NextStep::Comment { text, what });
    }
    // Commits that are only in the job are lost with it.
    let kept = if push.is_some_and(|push| push.pushed) {
        ": tasks that are done are not repeated"
    } else {
        ""
    };
    Some(NextStep::Advice(format!(
        "start the workflow again to {what}{kept}"
    )))
}

/// How to apply the commits of a run that may not push them, because the pull request is from a fork.
pub fn commits_for_fork(summary: &RunSummary) -> Option<NextStep> {
    let is_over = summary.status.is_some() && !summary.commits.is_empty();
    (is_over && summary.has_warned(&WarningTopic::FromFork)).then(|| NextStep::Patch {
        task: None,
        command: "git apply commits.patch".to_owned(),
    })
}

/// What to do with the changes of protected paths that were taken out of the work.
fn held(summary: &RunSummary) -> Option<NextStep> {
    let mut held = summary.tasks.iter().flat_map(|task| &task.work.held);
    let patch = &held.next()?.patch;
    Some(NextStep::command(
        "look at the changes of protected paths and apply them yourself, or take the paths out of `protected_paths`",
        format!("git apply {}", quoted(&patch_path(summary, patch))),
    ))
}

/// How to apply or discard the unfinished work on this machine.
fn patches(summary: &RunSummary) -> impl Iterator<Item = NextStep> {
    let path = |patch: &str| quoted(&patch_path(summary, patch));
    let first = undone_patches(summary).next().map(|(_, patch)| {
        let what = "apply the unfinished work to a clean checkout";
        NextStep::command(what, format!("git apply {}", path(patch)))
    });
    let left = left_in_tree(summary).and_then(|task| task.work.patch.as_ref());
    // With `allow_dirty`, the patch has changes that somebody else made before the run, too.
    let left = left.filter(|_| !summary.facts.allow_dirty).map(|patch| {
        let what = "discard the unfinished work here; the patch keeps it";
        NextStep::command(what, format!("git apply -R {}", path(patch)))
    });
    first.into_iter().chain(left)
}

fn undone_patches(summary: &RunSummary) -> impl Iterator<Item = (&TaskSummary, &String)> {
    let undone = summary.undone();
    undone.filter_map(|task| Some((task, task.work.patch.as_ref()?)))
}

/// How to keep commits that are on no branch.
fn name_commits(summary: &RunSummary) -> Option<NextStep> {
    let is_detached = summary.facts.branch.is_none() && summary.push.is_none();
    let last = summary.commits.last().filter(|_| is_detached)?;
    let (place, command) = if summary.has_warned(&WarningTopic::NoBookmark) {
        ("bookmark", "jj bookmark create NAME -r")
    } else {
        ("branch", "git branch NAME")
    };
    Some(NextStep::command(
        format!("the commits are not on a {place}; create one for them"),
        format!("{command} {}", short_id(last)),
    ))
}

/// The remedy for the reason of the run's end.
fn advice(summary: &RunSummary) -> Option<&'static str> {
    let undone = || summary.undone();
    // Only if no unfinished task changed anything does `if_no_changes` change the end of the run.
    let changed_nothing = undone().all(|task| task.work.changed_files.is_empty());
    let all = |wanted: fn(&TaskSummary) -> bool| summary.tasks.iter().all(wanted);
    Some(match summary.reason? {
        Reason::PlanningOnly | Reason::NoProgress
            if undone().any(|task| task.question().is_some()) =>
        {
            "answer the agent's question in the task, then run it again"
        }
        Reason::NoProgress | Reason::RepeatingFailure | Reason::VerificationFailed
            if undone().all(failed_before) && !changed_nothing =>
        {
            let mut tests = undone().flat_map(|task| &task.work.failing_tests);
            if tests.all(|test| test.test.is_some()) {
                "unless the task is to mend what failed before it, fix that first, or use --known-failures tolerate to commit work beside it"
            } else {
                "unless the task is to mend what failed before it, fix that first"
            }
        }
        Reason::PlanningOnly | Reason::NoProgress
            if summary.status == Some(RunStatus::NoWork) || !changed_nothing =>
        {
            "say in the task which files to change and how, or try another model"
        }
        Reason::PlanningOnly | Reason::NoProgress => {
            "say in the task which files to change and how, or try another model; if \
             nothing needs to change, use --if-no-changes ok"
        }
        Reason::NeedsAnswer => "answer the agent's question in the task, then run it again",
        Reason::FailedReport => {
            "do what the report asks for, or change the task, then run it again"
        }
        Reason::ChangedExpectations => {
            "look at the changes of the files named above before you take the patch or accept the commit; if one of them is the product and no test, name it in the setting `product`"
        }
        Reason::UnstableChecks => {
            "make the checks leave the work tree unchanged, or commit what they write"
        }
        Reason::PolicyViolation => "read what the agent did before you run the task again",
        Reason::ReviewFindings if all(|task| task.findings.is_empty()) => {
            "read the reviewer's final message in the run directory, then review again, if need be with another agent"
        }
        Reason::ReviewFindings if summary.facts.continuation == Continuation::Anew => {
            "commit fixes of the findings, or say in the prompt why the change is right"
        }
        Reason::ReviewFindings => {
            "fix the findings of the review, or say in the task why the work is right"
        }
        Reason::OutputMismatch => "make the output schema require only what the task can provide",
        Reason::TddViolation => {
            "say in the task what a test can observe, or run it without --tdd if no test can"
        }
        Reason::VerificationFailed if all(|task| task.checks.is_empty()) => {
            "say more exactly what is wanted, or try another model"
        }
        Reason::VerificationFailed if undone().all(|it| it.failing_checks() == Some(0)) => {
            "make the new tests fail without the work, or do without them"
        }
        Reason::RepeatingFailure | Reason::VerificationFailed => {
            "look at the failing check: its log is in the run directory"
        }
        // If git could not commit, the message of the task names the cause.
        Reason::CommitRejected if all(|task| task.refused_by_hook != Some(false)) => {
            "make the commit hook pass, or change its rules"
        }
        // No agent works where the work of several jobs is brought together.
        Reason::Conflict if summary.facts.agent == NO_AGENT => {
            "resolve the conflict on the current branch, or run the task again there; the commits of each job are in its run directory or branch"
        }
        Reason::Conflict => {
            "merge the two branches by hand and push the result: nothing was changed here"
        }
        Reason::MissingShard => "run the remaining tasks: sprag matrix prints their rows",
        Reason::Budget => "raise --max-tokens or --max-cost-usd",
        Reason::Deadline | Reason::TurnTimeout => {
            "give it more time (--deadline, --turn-timeout) or split the task"
        }
        _ => return None,
    })
}

/// Whether everything that keeps a task from being done failed before it began.
fn failed_before(task: &TaskSummary) -> bool {
    let mut tests = task.work.failing_tests.iter().map(|test| test.blame);
    tests.len() > 0 && tests.all(|blame| blame == Blame::WasRedBefore)
}

fn resume(summary: &RunSummary) -> String {
    let (id, dir) = (&summary.facts.run_id, &summary.facts.run_dir);
    if dir.is_empty() {
        "sprag run --resume".into()
    } else if dir.ends_with(id) {
        let at = id
            .char_indices()
            .nth_back(SHOWN_ID - 1)
            .map_or(0, |(at, _)| at);
        format!("sprag run --resume {}", &id[at..])
    } else {
        format!("sprag run --resume --run-dir {}", quoted(dir))
    }
}

fn patch_path(summary: &RunSummary, patch: &str) -> String {
    if summary.facts.run_dir.is_empty() || summary.facts.continuation.is_here() {
        path_in(&summary.facts.run_dir, patch)
    } else {
        // The machine with the path is gone.
        format!("{patch} in the run directory")
    }
}

/// The path of a file of the run directory.
pub fn path_in(run_dir: &str, file: &str) -> String {
    match run_dir {
        "" => file.to_owned(),
        dir => format!("{}/{file}", dir.trim_end_matches('/')),
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
    let mut worked = summary.tasks.iter().rev().filter(|task| task.attempts > 0);
    let last = worked.next()?;
    let is_left = last.status != TaskEnd::Done && !last.work.changed_files.is_empty();
    (is_left && !worked.any(TaskSummary::is_undone)).then_some(last)
}

#[cfg(test)]
mod tests;
