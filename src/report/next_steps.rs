//! What is kept of a run that is not completely done, and the next steps for a person.

use super::sentence::{has_proofs, is_undone, short_id};
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
pub fn remedies(summary: &RunSummary) -> Vec<String> {
    let mut topics = summary.warning_topics.iter().rev();
    let last = topics.find_map(|line| match &line.topic {
        WarningTopic::Error { remedies } => Some(remedies),
        _ => None,
    });
    let closed = summary.push.as_ref().and_then(of_closed);
    match last.filter(|remedies| !remedies.is_empty()) {
        Some(remedies) => remedies.iter().map(|remedy| text::line(remedy)).collect(),
        None if closed.is_some() => closed.into_iter().collect(),
        None => vec![match undelivered(summary) {
            Some(why) => format!("remove this cause: {}", text::line(&why)),
            None => "fix the problem named above, then continue".into(),
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
    if push.pushed {
        why.map(|why| format!("no pull request: {why}"))
    } else {
        push.cause.clone().or_else(|| Some(push.detail.clone()))
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
            let what = if summary.allow_dirty {
                format!("the work of {id} and everything else that was not committed")
            } else {
                format!("the work of {id}")
            };
            let path = patch_path(summary, patch);
            kept.push(format!("{what} as a patch: {path}"));
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
}

/// The next steps for a person, the most useful first. Empty if everything is done and verified.
pub fn next_steps(summary: &RunSummary) -> Vec<NextStep> {
    steps(summary, &summary.continuation)
}

/// The text with the inputs of the action instead of the flags of settings.
fn with_inputs(text: &str) -> String {
    let is_setting = |input: &str| {
        settings::NAMES
            .iter()
            .any(|(key, _)| settings::input_name(key) == input)
    };
    let words = text.split(' ').map(|word| {
        let flag = word.trim_matches(|c: char| !c.is_ascii_alphanumeric() && c != '-');
        let input = flag.strip_prefix("--").filter(|input| is_setting(input));
        input.map_or_else(
            || word.to_owned(),
            |input| word.replace(flag, &format!("the input {input}")),
        )
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Whether checks of a task passed and ran no test.
fn has_idle_checks(task: &TaskSummary) -> bool {
    let mut lines = task.evidence.iter();
    lines.any(|line| line.kind == EvidenceKind::NoTestRan)
}

/// The next steps for a person who can continue the run in this way.
pub fn steps(summary: &RunSummary, continuation: &Continuation) -> Vec<NextStep> {
    let mut steps = at_the_root(summary, continuation);
    let Directories { root, chosen } = &summary.directories;
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
    let words = |text: &str| match continuation {
        Continuation::Job { .. } => with_inputs(text),
        Continuation::Here | Continuation::Anew => text.to_owned(),
    };
    let answer = to_answer(summary, continuation);
    let has_answer = answer.is_some();
    let advice = advice(summary).map(|advice| NextStep::Advice(words(advice)));
    let mut steps: Vec<NextStep> = answer.or(advice).into_iter().collect();
    steps.extend(held(summary));
    steps.extend(name_commits(summary).filter(|_| is_here));
    steps.extend(commits_for_fork(summary));
    steps.extend(to_approve(summary));
    if has_answer {
        return steps;
    }
    match summary.status {
        None | Some(RunStatus::Success | RunStatus::Answered | RunStatus::NoWork) => return steps,
        Some(RunStatus::Invalid) if is_here => return steps,
        Some(RunStatus::Invalid) => {
            let what = "correct the configuration or the plan";
            steps.push(NextStep::Advice(what.into()));
        }
        Some(RunStatus::Unverified) if summary.tasks.iter().any(has_idle_checks) => {
            let what = "make the checks run a test, or name a check that judges the work";
            steps.push(NextStep::Advice(what.into()));
            return steps;
        }
        Some(RunStatus::Unverified)
            if summary.tasks.iter().any(has_proofs)
                || summary.reason == Some(Reason::NeedsPermission) =>
        {
            return steps;
        }
        Some(RunStatus::Unverified) => {
            let what = "add a check to .sprag/config.yaml, so that work is verified";
            let check = "verify: [{ name: test, run: <command>, kind: test }]";
            steps.push(NextStep::command(what, check));
            let single = "or name one for a single run, with --verify 'COMMAND'";
            steps.extend(is_here.then(|| NextStep::Advice(single.into())));
            return steps;
        }
        Some(RunStatus::Environment) => {
            let remedies = remedies(summary).into_iter();
            steps.extend(remedies.map(|remedy| NextStep::Advice(words(&remedy))));
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

/// How to approve the plan that the run has drafted.
pub fn to_approve(summary: &RunSummary) -> Option<NextStep> {
    plan_to_approve(summary).map(|shown| NextStep::Comment {
        text: shown.command,
        what: "run exactly this plan".to_owned(),
    })
}

/// How to answer the question with which the run ended, where the run can go on with the answer.
fn to_answer(summary: &RunSummary, continuation: &Continuation) -> Option<NextStep> {
    let what = "answer it";
    match continuation {
        _ if summary.reason != Some(Reason::NeedsAnswer) => None,
        Continuation::Here => {
            let command = format!("{} --answer '…'", resume(summary));
            Some(NextStep::command(what, command))
        }
        Continuation::Job { phrase, .. } => {
            let command = format!("{} answer …", phrase.as_ref()?);
            Some(NextStep::command(what, command))
        }
        Continuation::Anew => None,
    }
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
    let closed = closed(summary);
    if closed == Some(ClosedPull::Merged) {
        return None;
    }
    let once = match closed {
        Some(ClosedPull::Closed) => ", once the pull request is open again",
        _ => "",
    };
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
            what: format!("{what}{once}"),
        },
        None => {
            // Commits that are only in the job are lost with it.
            let kept = if summary.push.as_ref().is_some_and(|push| push.pushed) {
                ": tasks that are done are not repeated"
            } else {
                ""
            };
            NextStep::Advice(format!("start the workflow again to {what}{once}{kept}"))
        }
    })
}

/// How the pull request was closed during the run.
fn closed(summary: &RunSummary) -> Option<ClosedPull> {
    let of_push = summary.push.as_ref().and_then(|push| push.closed);
    let mut topics = summary.warning_topics.iter();
    let told = topics.find_map(|line| match line.topic {
        WarningTopic::PullRequestClosed { how } => Some(how),
        _ => None,
    });
    of_push.or(told)
}

/// How to apply the commits of a run that may not push them, because the pull request is from a fork.
pub fn commits_for_fork(summary: &RunSummary) -> Option<NextStep> {
    let mut topics = summary.warning_topics.iter();
    let is_of_fork = topics.any(|line| line.topic == WarningTopic::FromFork);
    let is_over = is_of_fork && summary.status.is_some() && !summary.commits.is_empty();
    is_over.then(|| NextStep::Patch {
        task: None,
        command: "git apply commits.patch".to_owned(),
    })
}

/// Whether no later job can continue the run, because its work is nowhere else.
fn is_only_in_job(summary: &RunSummary) -> bool {
    let push = summary.push.as_ref();
    let is_elsewhere = push.is_some_and(|push| push.pushed || push.rescue.is_some());
    !is_elsewhere && has_warned(summary, &WarningTopic::OnlyInJob)
}

fn has_warned(summary: &RunSummary, topic: &WarningTopic) -> bool {
    let mut lines = summary.warning_topics.iter();
    lines.any(|line| line.topic == *topic)
}

/// How to apply the unfinished work of a job elsewhere.
fn patch_of_job(summary: &RunSummary) -> Option<NextStep> {
    let (task, patch) = undone_patches(summary).next()?;
    Some(NextStep::Patch {
        task: Some(text::short_line(&task.id, 60)),
        command: format!("git apply {}", quoted(&text::line(patch))),
    })
}

/// Where a patch is and what its command needs, for a reader without a link to the artifact.
pub fn place_of_patch(task: Option<&str>) -> String {
    let what = match task {
        Some(task) => format!("the unfinished work of {task} is"),
        None => "the commits are".to_owned(),
    };
    format!("{what} in the run directory, which the output run-dir names. In a clean checkout")
}

/// What to do with the changes of protected paths that were taken out of the work.
fn held(summary: &RunSummary) -> Option<NextStep> {
    let mut held = summary.tasks.iter().flat_map(|task| &task.held);
    let patch = &held.next()?.patch;
    Some(NextStep::command(
        "look at the changes of protected paths and apply them yourself, or take the paths out of `protected_paths`",
        format!("git apply {}", quoted(&patch_path(summary, patch))),
    ))
}

/// How to apply or discard the unfinished work on this machine.
fn patches(summary: &RunSummary) -> Vec<NextStep> {
    let path = |patch: &str| quoted(&patch_path(summary, patch));
    let first = undone_patches(summary).next().map(|(_, patch)| {
        let what = "apply the unfinished work to a clean checkout";
        NextStep::command(what, format!("git apply {}", path(patch)))
    });
    let left = left_in_tree(summary).and_then(|task| task.patch.as_ref());
    // With `allow_dirty`, the patch has changes that somebody else made before the run, too.
    let left = left.filter(|_| !summary.allow_dirty).map(|patch| {
        let what = "discard the unfinished work here; the patch keeps it";
        NextStep::command(what, format!("git apply -R {}", path(patch)))
    });
    first.into_iter().chain(left).collect()
}

fn undone_patches(summary: &RunSummary) -> impl Iterator<Item = (&TaskSummary, &String)> {
    undone(summary).filter_map(|task| Some((task, task.patch.as_ref()?)))
}

/// How to keep commits that are on no branch.
fn name_commits(summary: &RunSummary) -> Option<NextStep> {
    let is_detached = summary.branch.is_none() && summary.push.is_none();
    let last = summary.commits.last().filter(|_| is_detached)?;
    let (place, command) = if has_warned(summary, &WarningTopic::NoBookmark) {
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
pub fn advice(summary: &RunSummary) -> Option<&'static str> {
    match summary.reason? {
        Reason::PlanningOnly | Reason::NoProgress
            if undone(summary).any(|task| task.question().is_some()) =>
        {
            Some("answer the agent's question in the task, then run it again")
        }
        Reason::NoProgress | Reason::RepeatingFailure | Reason::VerificationFailed
            if failed_before(summary) && !changed_nothing(summary) =>
        {
            let mut tests = undone(summary).flat_map(|task| &task.failing_tests);
            Some(if tests.all(|test| test.test.is_some()) {
                "unless the task is to mend what failed before it, fix that first, or use --known-failures tolerate to commit work beside it"
            } else {
                "unless the task is to mend what failed before it, fix that first"
            })
        }
        Reason::PlanningOnly | Reason::NoProgress
            if summary.status == Some(RunStatus::NoWork) || !changed_nothing(summary) =>
        {
            Some("say in the task which files to change and how, or try another model")
        }
        Reason::PlanningOnly | Reason::NoProgress => Some(
            "say in the task which files to change and how, or try another model; if \
                 nothing needs to change, use --if-no-changes ok",
        ),
        Reason::NeedsAnswer => Some("answer the agent's question in the task, then run it again"),
        Reason::FailedReport => {
            Some("do what the report asks for, or change the task, then run it again")
        }
        Reason::ChangedExpectations => Some(
            "look at the changes of the files named above before you take the patch or accept the commit; if one of them is the product and no test, name it in the setting `product`",
        ),
        Reason::UnstableChecks => {
            Some("make the checks leave the work tree unchanged, or commit what they write")
        }
        Reason::PolicyViolation => Some("read what the agent did before you run the task again"),
        Reason::ReviewFindings if summary.tasks.iter().all(|it| it.findings.is_empty()) => Some(
            "read the reviewer's final message in the run directory, then review again, if need be with another agent",
        ),
        Reason::ReviewFindings if summary.continuation == Continuation::Anew => {
            Some("commit fixes of the findings, or say in the prompt why the change is right")
        }
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
        Reason::VerificationFailed if undone(summary).all(|it| it.failing_checks() == Some(0)) => {
            Some("make the new tests fail without the work, or do without them")
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

fn undone(summary: &RunSummary) -> impl Iterator<Item = &TaskSummary> {
    summary.tasks.iter().filter(|task| is_undone(task))
}

/// Whether everything that keeps a task from being done failed before it began.
fn failed_before(summary: &RunSummary) -> bool {
    undone(summary).all(|task| {
        let mut tests = task.failing_tests.iter();
        !task.failing_tests.is_empty() && tests.all(|test| test.blame == Blame::WasRedBefore)
    })
}

/// Whether no unfinished task changed anything: only then does `if_no_changes` change the end of the run.
fn changed_nothing(summary: &RunSummary) -> bool {
    undone(summary).all(|task| task.changed_files.is_empty())
}

fn resume(summary: &RunSummary) -> String {
    let id = text::line(&summary.run_id);
    if summary.run_dir.is_empty() {
        "sprag run --resume".into()
    } else if summary.run_dir.ends_with(&id) {
        let at = id.char_indices().rev().take(SHOWN_ID).last();
        let at = at.map_or(0, |(at, _)| at);
        format!("sprag run --resume {}", &id[at..])
    } else {
        format!(
            "sprag run --resume --run-dir {}",
            quoted(&text::line(&summary.run_dir))
        )
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
mod tests;
