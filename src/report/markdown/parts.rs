//! The common parts of the texts on GitHub: the checklist, the commits, what to do next, and links.

use super::context::{ReportContext, link};
use super::escape::{code, inline};
use super::{Limits, headed, joined, upper_first};
use crate::domain::agent::{TodoItem, TodoStatus};
use crate::domain::event::PushLine;
use crate::domain::outcome::{RunStatus, TaskEnd};
use crate::domain::summary::{RunSummary, Standing, TaskSummary};
use crate::report::text::first_of;
use crate::report::{next_steps, sentence, text};

/// Maximum number of items of the agent's own list.
const MAX_TODO_ITEMS: usize = 20;

/// Every task with a box that is ticked when it is done, and below the current one the agent's own list.
pub(super) fn checklist(summary: &RunSummary, around: &ReportContext, limits: &Limits) -> String {
    let lines = summary.tasks.iter().map(|task| {
        // The last task stays the current one while its work is delivered.
        let is_current = summary.status.is_none()
            && task.reason.is_none()
            && summary.current.as_ref() == Some(&task.id);
        let item = item(summary, task, is_current, around);
        let todo = is_current.then(|| todo(&summary.todo));
        std::iter::once(item)
            .chain(todo.into_iter().flatten())
            .collect::<Vec<_>>()
            .join("\n")
    });
    let rest = |more| format!("\n… and {} more.", text::count(more, "task"));
    first_of(lines, limits.rows, rest).join("\n")
}

fn item(
    summary: &RunSummary,
    task: &TaskSummary,
    is_current: bool,
    around: &ReportContext,
) -> String {
    let standing = task.standing();
    let is_done = matches!(standing, Standing::Verified | Standing::DoneBefore);
    let tick = if is_done { "x" } else { " " };
    let id = code(&task.id, 60);
    let id = around.plan_line(&id, summary.plan.path.as_deref(), task.line);
    let title = inline(&task.title, 120);
    let mut facts = Vec::new();
    if is_current {
        facts.push(format!("**in progress**, {}", attempt(task)));
    } else if task.status == TaskEnd::Done {
        let commit = task.commit.as_deref().filter(|_| is_on_remote(summary));
        facts.extend(commit.map(|id| around.commit(id)));
        if !is_done {
            facts.push(where_it_stands(task));
        }
    } else if summary.status.is_some() || task.reason.is_some() || !task.selected {
        facts.push(where_it_stands(task));
    }
    if !is_current && task.attempts > 1 {
        let attempts = text::count(u64::from(task.attempts), "attempt");
        facts.push(format!("after {attempts}"));
    }
    let facts = if facts.is_empty() {
        String::new()
    } else {
        format!(" · {}", facts.join(" "))
    };
    format!("- [{tick}] {id} {title}{facts}")
}

fn where_it_stands(task: &TaskSummary) -> String {
    match task.reason {
        Some(reason) => format!(
            "{} **{}**: {} (`{}`)",
            super::task_icon(task.standing()),
            task.standing().as_str(),
            sentence::reason(reason),
            reason.as_str()
        ),
        None => inline(&task.message, 200),
    }
}

/// `attempt 2 of at most 4`.
pub(super) fn attempt(task: &TaskSummary) -> String {
    let most = task.max_retries.saturating_add(1);
    format!("attempt {} of at most {most}", task.attempts.max(1))
}

fn todo(items: &[TodoItem]) -> Vec<String> {
    let lines = items.iter().map(|item| {
        let text = inline(&item.text, 120);
        match item.status {
            TodoStatus::Completed => format!("  - [x] {text}"),
            TodoStatus::InProgress => format!("  - [ ] **{text}**"),
            TodoStatus::Pending => format!("  - [ ] {text}"),
        }
    });
    first_of(lines, MAX_TODO_ITEMS, |more| {
        format!("  - … and {more} more")
    })
}

/// Whether the run's commits were read back from the remote.
fn is_on_remote(summary: &RunSummary) -> bool {
    let push = summary.push.as_ref();
    push.is_some_and(|push| push.head.is_some() && (push.pushed || push.rescue.is_some()))
}

/// The commits and where they are: on the remote, as read back, or only in the job.
pub(super) fn commits(summary: &RunSummary, around: &ReportContext, limits: &Limits) -> String {
    let push = summary.push.as_ref();
    if summary.commits.is_empty() && push.is_none() {
        return String::new();
    }
    let on_remote = is_on_remote(summary);
    let mut lines: Vec<String> = push.into_iter().map(|push| arrived(push, around)).collect();
    if push.is_none() && summary.status.is_some() {
        lines.push("Nothing was pushed: the commits are in the job's checkout only.".into());
    }
    let commits = summary.commits.iter().map(|id| {
        let commit = if on_remote {
            around.commit(id)
        } else {
            code(&sentence::short_id(id), 12)
        };
        format!("- {commit}{}", task_of(summary, id))
    });
    let rest = |more| format!("\n… and {} more.", text::count(more, "commit"));
    lines.push(first_of(commits, limits.lines, rest).join("\n"));
    joined(&lines)
}

fn arrived(push: &PushLine, around: &ReportContext) -> String {
    let head = push.head.as_deref().map(|id| around.commit(id));
    let detail = upper_first(&inline(&push.detail, 400));
    match (push.pushed, &push.rescue, head) {
        (true, _, Some(head)) => {
            let pushed = format!(
                "Pushed to {}, whose head on the remote is {head}.",
                around.branch(&push.branch)
            );
            // Recreated commits are not those that the log mentions.
            if push.rebased.is_empty() {
                pushed
            } else {
                format!("{pushed} {detail}.")
            }
        }
        (false, Some(rescue), Some(head)) => format!(
            "The work is not on {}, but on {}, whose head on the remote is {head}. {detail}",
            around.branch(&push.branch),
            around.branch(rescue)
        ),
        _ => format!("The commits are **not on the remote**. {detail}"),
    }
}

fn task_of(summary: &RunSummary, commit: &str) -> String {
    let of = |task: &&TaskSummary| task.commit.as_deref() == Some(commit);
    summary.tasks.iter().find(of).map_or(String::new(), |task| {
        format!(" {} {}", code(&task.id, 60), inline(&task.title, 120))
    })
}

/// The next steps for a person, as a list.
pub(super) fn next(summary: &RunSummary, around: &ReportContext) -> String {
    let mut steps = Vec::new();
    let is_success = summary.status == Some(RunStatus::Success);
    let told = if is_success {
        let fork = next_steps::commits_for_fork(summary).into_iter();
        fork.chain(next_steps::to_approve(summary)).collect()
    } else {
        next_steps::steps(summary, &around.continuation())
    };
    let artifact = around.artifact_url.as_deref();
    steps.extend(told.iter().map(|step| super::next_step(step, artifact)));
    let pull = summary
        .push
        .as_ref()
        .and_then(|push| push.pull_request.as_ref());
    if let Some(pull) = pull.filter(|_| is_success) {
        let shown = format!("pull request {}", pull.number);
        steps.push(format!("review {}", link(&shown, &pull.url)));
    }
    super::next_list(steps.into_iter())
}

/// Notes about CI on the pushed commits, and the other notes.
pub(super) fn notes(summary: &RunSummary, around: &ReportContext, limits: &Limits) -> String {
    let mut notes = Vec::new();
    let pushed = summary
        .push
        .as_ref()
        .is_some_and(|push| push.head.is_some());
    let started: Vec<String> = around
        .dispatched
        .iter()
        .map(|name| code(name, 100))
        .collect();
    match (around.ci_will_not_start && pushed, started.is_empty()) {
        (true, true) => notes.push(
            "CI does not start on a push with the job's token. Push with the token of an app or a person, name the workflows in `dispatch-workflows`, or close and reopen the pull request.".to_owned(),
        ),
        (_, false) => notes.push(format!(
            "CI does not start on a push with the job's token, so Sprag started {} for it.",
            started.join(", ")
        )),
        (false, true) => {}
    }
    let foreign = around.notes.iter().chain(&summary.warnings);
    let foreign = foreign.map(|note| upper_first(&inline(note, 500)));
    notes.extend(first_of(foreign, limits.lines, |more| {
        format!("… and {more} more")
    }));
    let notes: Vec<String> = notes.iter().map(|note| format!("- {note}")).collect();
    headed("**Notes**", notes.join("\n"))
}

/// Links to the other places that report the run, on one line.
pub(super) fn places(summary: &RunSummary, around: &ReportContext) -> String {
    let mut places: Vec<String> = Vec::new();
    let pull = summary
        .push
        .as_ref()
        .and_then(|push| push.pull_request.as_ref());
    places.extend(pull.map(|pull| link(&format!("Pull request {}", pull.number), &pull.url)));
    for (shown, url) in [
        ("Check run", &around.check_url),
        ("Comment", &around.comment_url),
        ("Workflow run", &around.place.run_url()),
        ("Run directory (artifact)", &around.artifact_url),
    ] {
        places.extend(url.as_deref().map(|url| link(shown, url)));
    }
    places.extend(
        around
            .asked_by
            .as_deref()
            .map(|login| format!("requested by {}", code(login, 60))),
    );
    places.extend(summary.limits.as_deref().map(|limits| inline(limits, 300)));
    if places.is_empty() {
        String::new()
    } else {
        format!("<sub>{}</sub>", places.join(" · "))
    }
}
