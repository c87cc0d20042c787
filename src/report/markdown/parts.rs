//! The common parts of the texts on GitHub: the checklist, the commits, what to do next, and links.

use super::context::{ReportContext, link};
use super::escape::{code, inline};
use super::{Limits, joined, list, upper_first};
use crate::domain::agent::{TodoItem, TodoStatus};
use crate::domain::event::PushLine;
use crate::domain::outcome::RunStatus;
use crate::domain::summary::{Hue, RunSummary, TaskSummary};
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
        let mut lines = vec![item(summary, task, is_current, around)];
        if is_current {
            lines.extend(todo(&summary.todo));
        }
        lines.join("\n")
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
    let is_done = task.standing().hue() == Hue::Green;
    let tick = if is_done { "x" } else { " " };
    let path = summary.facts.plan.path.as_deref();
    let id = around.plan_line(&code(&task.id, 60), path, task.line);
    let mut facts = Vec::new();
    if is_current {
        facts.push(format!("**in progress**, {}", attempt(task)));
    } else {
        facts.extend(task.commit.as_deref().map(|id| commit(summary, around, id)));
        let is_over = summary.status.is_some() || task.reason.is_some() || !task.selected;
        if !is_done && is_over {
            facts.push(where_it_stands(task));
        }
        if task.attempts > 1 {
            let attempts = text::count(u64::from(task.attempts), "attempt");
            facts.push(format!("after {attempts}"));
        }
    }
    let facts = text::behind(" · ", &facts.join(" "));
    format!("- [{tick}] {id} {}{facts}", inline(&task.title, 120))
}

fn where_it_stands(task: &TaskSummary) -> String {
    let Some(reason) = task.reason else {
        return inline(&task.message, 200);
    };
    let (standing, code) = (task.standing(), reason.as_str());
    let (icon, word) = (super::task_icon(standing), standing.as_str());
    format!("{icon} **{word}**: {} (`{code}`)", sentence::reason(reason))
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

/// A commit, as a link if it was read back from the remote.
pub(super) fn commit(summary: &RunSummary, around: &ReportContext, id: &str) -> String {
    let push = summary.push.as_ref();
    let is_there = |push: &PushLine| push.head.is_some() && (push.pushed || push.rescue.is_some());
    if push.is_some_and(is_there) {
        around.commit(id)
    } else {
        code(&sentence::short_id(id), 12)
    }
}

/// Where the commits are: on the remote, as read back, or only in the job. Those of tasks are shown with their task.
pub(super) fn commits(summary: &RunSummary, around: &ReportContext, limits: &Limits) -> String {
    let arrived = summary.push.as_ref().map(|push| arrived(push, around));
    let is_lost = summary.status.is_some() && !summary.commits.is_empty();
    let lost = || "Nothing was pushed: the commits are in the job's checkout only.".to_owned();
    let arrived = arrived.or_else(|| is_lost.then(lost));
    let of_tasks = summary.tasks.iter().filter_map(|task| task.commit.as_ref());
    let of_tasks: Vec<&String> = of_tasks.collect();
    let others = summary.commits.iter().filter(|id| !of_tasks.contains(id));
    let others = others.map(|id| commit(summary, around, id));
    let others = list("", others, limits.lines, "commit");
    joined(&[arrived.unwrap_or_default(), others])
}

fn arrived(push: &PushLine, around: &ReportContext) -> String {
    let detail = upper_first(&inline(&push.detail, 400));
    let branch = around.branch(&push.branch);
    let head = push.head.as_deref().map(|id| around.commit(id));
    match (head, &push.rescue) {
        // Recreated commits are not those that the log mentions.
        (Some(head), _) if push.pushed => {
            let detail = match push.rebased.as_slice() {
                [] => String::new(),
                _ => format!(" {detail}."),
            };
            format!("Pushed to {branch}, whose head on the remote is {head}.{detail}")
        }
        (Some(head), Some(rescue)) => format!(
            "The work is not on {branch}, but on {}, whose head on the remote is {head}. {detail}",
            around.branch(rescue)
        ),
        _ => format!("The commits are **not on the remote**. {detail}"),
    }
}

/// The next steps for a person, as a list.
pub(super) fn next(summary: &RunSummary, around: &ReportContext) -> String {
    let is_success = summary.status == Some(RunStatus::Success);
    let steps = if is_success {
        let fork = next_steps::commits_for_fork(summary).into_iter();
        fork.chain(next_steps::to_approve(summary)).collect()
    } else {
        next_steps::steps(summary, &around.continuation())
    };
    let artifact = around.artifact_url.as_deref();
    let steps = steps.iter().map(|step| super::next_step(step, artifact));
    let pull = summary.pull_request().filter(|_| is_success);
    let pull = pull.map(|pull| format!("review {}", super::pull_request_link(pull)));
    super::next_list(steps.chain(pull))
}

/// Notes about CI on the pushed commits, and the other notes.
pub(super) fn notes(summary: &RunSummary, around: &ReportContext, limits: &Limits) -> String {
    let push = summary.push.as_ref();
    let is_pushed = push.is_some_and(|push| push.head.is_some());
    let started = around.dispatched.iter().map(|name| code(name, 100));
    let started = text::joined(", ", started);
    let of_ci = if !started.is_empty() {
        Some(format!(
            "CI does not start on a push with the job's token, so Sprag started {started} for it."
        ))
    } else if around.ci_will_not_start && is_pushed {
        Some("CI does not start on a push with the job's token. Push with the token of an app or a person, name the workflows in `dispatch-workflows`, or close and reopen the pull request.".to_owned())
    } else {
        None
    };
    let foreign = around.notes.iter().chain(&summary.warnings);
    let foreign = foreign.map(|note| upper_first(&inline(note, 500)));
    let most = limits.lines + usize::from(of_ci.is_some());
    list("**Notes**", of_ci.into_iter().chain(foreign), most, "note")
}

/// Links to the other places that report the run, on one line.
pub(super) fn places(summary: &RunSummary, around: &ReportContext) -> String {
    let pull = summary.pull_request();
    let pull = pull.map(|pull| link(&format!("Pull request {}", pull.number), &pull.url));
    let run_url = around.place.run_url();
    let links = [
        ("Check run", &around.check_url),
        ("Comment", &around.comment_url),
        ("Workflow run", &run_url),
        ("Run directory (artifact)", &around.artifact_url),
    ];
    let links = links.into_iter();
    let links = links.filter_map(|(shown, url)| Some(link(shown, url.as_deref()?)));
    let asked_by = around.asked_by.as_ref();
    let asked_by = asked_by.map(|login| format!("requested by {}", code(login, 60)));
    let limits = summary.facts.limits.as_ref();
    let limits = limits.map(|limits| inline(limits, 300));
    let places = pull.into_iter().chain(links).chain(asked_by).chain(limits);
    match text::joined(" · ", places) {
        places if places.is_empty() => places,
        places => format!("<sub>{places}</sub>"),
    }
}
