//! What is kept of a run that is not completely done, and the next steps for a person.

use super::sentence::{has_proofs, is_undone, short_id};
use super::text;
use crate::domain::outcome::{NOT_COMMITTED, Reason, RunStatus, TaskEnd};
use crate::domain::summary::{NO_AGENT, RunSummary, TaskSummary};

/// The remedies of the error that ended the run.
pub fn remedies(summary: &RunSummary) -> Vec<String> {
    let last = summary.warnings.last().map(String::as_str);
    let lines = last.unwrap_or_default().lines().skip(1);
    let told = lines.filter_map(|line| line.strip_prefix("  "));
    // An indented line below another one is output that the error quotes.
    let told: Vec<String> = told.map(|line| line.trim_end().to_owned()).collect();
    match told.iter().all(|line| !line.starts_with(' ')) && !told.is_empty() {
        true => told,
        false => vec!["install or grant what the message above names".into()],
    }
}

/// What is kept of a run that is not completely done, one sentence each.
pub fn kept(summary: &RunSummary) -> Vec<String> {
    let mut kept = Vec::new();
    if !summary.commits.is_empty() {
        let ids: Vec<String> = summary.commits.iter().map(|id| short_id(id)).collect();
        let on = summary.branch.as_deref().map_or(String::new(), |branch| {
            format!(" on {}", text::short_line(branch, 100))
        });
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
    if let Some(task) = left_in_tree(summary) {
        let id = text::short_line(&task.id, 60);
        kept.push(format!(
            "the changes of {id} are still in the work tree, not committed"
        ));
    }
    kept
}

/// A next step for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NextStep {
    /// Its purpose, as a fragment that the command, if any, follows.
    pub what: String,
    /// The command to type.
    pub command: Option<String>,
}

/// The next steps for a person, the most useful first. Empty if everything is done and verified.
pub fn next_steps(summary: &RunSummary) -> Vec<NextStep> {
    let step = |what: &str, command: String| NextStep {
        what: what.into(),
        command: Some(command),
    };
    let mut steps: Vec<NextStep> = advice(summary)
        .into_iter()
        .map(|what| NextStep {
            what: what.into(),
            command: None,
        })
        .collect();
    steps.extend(name_commits(summary));
    match summary.status {
        None | Some(RunStatus::Success | RunStatus::NoWork | RunStatus::Invalid) => return steps,
        Some(RunStatus::Unverified) if summary.tasks.iter().any(has_proofs) => return steps,
        Some(RunStatus::Unverified) => {
            let check = "verify: [{ name: test, run: <command>, kind: test }]";
            steps.push(step(
                "add a check to .sprag/config.yaml, so that work is verified",
                check.into(),
            ));
            steps.push(step(
                "or name one for a single run",
                "sprag run --verify '<command>'".into(),
            ));
            return steps;
        }
        Some(RunStatus::Environment) => {
            let what = remedies(summary).into_iter();
            steps.extend(what.map(|what| NextStep {
                what,
                command: None,
            }));
        }
        Some(_) => {}
    }
    steps.push(step("continue from here", resume(summary)));
    let patches = summary.tasks.iter().filter(|task| is_undone(task));
    if let Some(patch) = patches.filter_map(|task| task.patch.as_ref()).next() {
        let command = format!("git apply {}", quoted(&patch_path(summary, patch)));
        steps.push(step(
            "apply the unfinished work to a clean checkout",
            command,
        ));
    }
    let left = left_in_tree(summary).and_then(|task| task.patch.as_ref());
    if let Some(patch) = left {
        let command = format!("git apply -R {}", quoted(&patch_path(summary, patch)));
        steps.push(step(
            "discard the unfinished work here; the patch keeps it",
            command,
        ));
    }
    steps
}

/// How to keep commits that are on no branch.
fn name_commits(summary: &RunSummary) -> Option<NextStep> {
    let is_detached = summary.branch.is_none() && summary.push.is_none();
    let last = summary.commits.last().filter(|_| is_detached)?;
    Some(NextStep {
        what: "the commits are not on a branch; create one for them".into(),
        command: Some(format!("git branch NAME {}", short_id(last))),
    })
}

/// The remedy for the reason of the run's end.
pub fn advice(summary: &RunSummary) -> Option<&'static str> {
    match summary.reason? {
        Reason::PlanningOnly | Reason::NoProgress if summary.status == Some(RunStatus::NoWork) => {
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
            "find out what became of the tests and check definitions before you accept the work",
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
            .all(|task| !task.message.starts_with(NOT_COMMITTED))
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
    match summary.run_dir.is_empty() {
        true => patch,
        false => format!(
            "{}/{patch}",
            text::line(&summary.run_dir).trim_end_matches('/')
        ),
    }
}

fn quoted(word: &str) -> String {
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
        next_steps(summary)
            .into_iter()
            .filter_map(|step| step.command)
            .collect()
    }

    #[test]
    fn every_run_that_is_not_a_success_names_a_command() {
        for (name, summary) in samples::all() {
            assert_eq!(commands(&summary).is_empty(), name == "success", "{name}");
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
        let place = |what: &str| steps.iter().position(|step| step.what == what);
        let general = "install or grant what the message above names";
        assert!(place(general).is_some() && place(general) < place("continue from here"));
        let told = "codex was not found\n  install it: npm install codex\n  or use another agent";
        summary.warnings.push(told.into());
        let steps = next_steps(&summary);
        let whats: Vec<&str> = steps.iter().map(|step| step.what.as_str()).collect();
        assert_eq!(
            whats[..2],
            ["install it: npm install codex", "or use another agent"]
        );
    }
}
