//! The end of a run: its status from the outcomes of its tasks and their delivery, and what is said at once if it is
//! cancelled.

use crate::domain::event::{EventKind, WarningTopic};
use crate::domain::outcome::{Outcome, Reason, RunStatus, run_end};
use crate::domain::plan::Plan;
use crate::domain::settings::OnFinding;
use crate::domain::summary::RunSummary;
use crate::error::with_causes;
use crate::git::display_paths;
use crate::github::delivery::{Delivered, end_of};
use crate::github::publisher::Latest;
use crate::process::{Cancel, CancelReason};
use crate::report::actions_log::print_warning;
use crate::report::buffered_output::Time;
use crate::report::html::SOURCES_BYTES;
use crate::report::{Format, render};
use crate::run::state::directory::RunDir;
use crate::run::state::layout::RunFile;
use crate::run::state::orderly_end::save_orderly_end;
use crate::run::state::parts::Parts;
use crate::run::state::work_tree::head_of;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::thread;
use tokio::sync::watch;

/// Emits the end of the run. Returns the exit code.
pub(crate) fn end(
    parts: &mut Parts<'_>,
    outcomes: &BTreeMap<String, Outcome>,
    no_changes: OnFinding,
    delivered: Delivered,
) -> u8 {
    let outcomes = in_plan_order(&parts.tree.plan.plan, outcomes);
    let late = parts.setup.cancel.reason().and_then(CancelReason::signal);
    let (status, reason) = end_of(run_end(&outcomes, no_changes), delivered, late.is_some());
    let signal = outcomes.iter().find_map(|outcome| match outcome {
        Outcome::Cancelled { signal } => Some(*signal),
        _ => None,
    });
    let exit_code = status.exit_code(signal.or(late));
    let is_idle = |outcome: &&Outcome| outcome.run_status(no_changes) == RunStatus::NoWork;
    if no_changes == OnFinding::Warn && outcomes.iter().any(is_idle) {
        parts.warn("a task changed nothing");
    }
    save_orderly_end(&parts.setup, &mut parts.tree, &mut parts.emit);
    name_check_artifacts(parts);
    keep_commits(parts);
    let head = parts.last_snapshot().0.and_then(|raw| head_of(&raw));
    let changed_files = parts.accounts.changed_files.iter().cloned().collect();
    parts.emit.at(None, None, None);
    parts.emit.emit(EventKind::RunEnded {
        status,
        reason,
        exit_code,
        head: head.map(|id| id.0),
        changed_files,
    });
    exit_code
}

/// Directories that tools create. `.gitignore` should list them as a whole.
const OF_TOOLS: &str =
    ".mypy_cache .nyc_output .pytest_cache .ruff_cache .tox __pycache__ build coverage dist
    node_modules target";

/// Stores the changes of the run's commits for the report, up to the size that the report shows.
fn keep_commits(parts: &mut Parts<'_>) {
    let start = parts.setup.start_commit();
    let head = parts.tree.repo.base();
    let Some(head) = head.filter(|head| Some(head) != start.as_ref()) else {
        return;
    };
    let mut text = Vec::new();
    let mut keep = |piece: &[u8]| {
        let room = SOURCES_BYTES.saturating_sub(text.len());
        text.extend_from_slice(&piece[..piece.len().min(room)]);
    };
    let written = (parts.tree.repo).write_commits(start.as_ref(), &head, &mut keep);
    let kept = written.map_err(anyhow::Error::from);
    if let Err(error) = kept.and_then(|()| parts.setup.run_dir.write(RunFile::Commits, &text)) {
        let why = with_causes(&error);
        parts.warn(format!("the report does not show the commits: {why}"));
    }
}

/// Warns about files that only setup commands and checks created. A run never commits them.
fn name_check_artifacts(parts: &mut Parts<'_>) {
    let (Some(raw), _) = parts.last_snapshot() else {
        return;
    };
    if raw.check_artifacts.is_empty() {
        return;
    }
    let shown = raw.check_artifacts.iter().map(|path| ignored_as(path));
    let shown: BTreeSet<Vec<u8>> = shown.collect();
    let names = display_paths(&Vec::from_iter(shown));
    parts.emit.warn_about(
        WarningTopic::CheckArtifacts,
        format!("files that only the checks left behind were not committed: {names}; commit them or add them to .gitignore"),
    );
}

/// The `.gitignore` entry for a file: the tool's directory that contains it, or the file itself.
fn ignored_as(path: &[u8]) -> Vec<u8> {
    let mut end = 0;
    for part in path.split_inclusive(|byte| *byte == b'/') {
        end += part.len();
        let name = part.strip_suffix(b"/");
        let is_of_tool = |name: &[u8]| {
            OF_TOOLS
                .split_whitespace()
                .any(|tool| tool.as_bytes() == name)
                || name.ends_with(b".egg-info")
        };
        if name.is_some_and(is_of_tool) {
            return path[..end].to_vec();
        }
    }
    path.to_vec()
}

/// The outcomes in the order of the plan. Outcomes without a task come first.
pub(crate) fn in_plan_order<'o>(
    plan: &Plan,
    outcomes: &'o BTreeMap<String, Outcome>,
) -> Vec<&'o Outcome> {
    let order = plan.tasks.iter().enumerate();
    let places: HashMap<&str, usize> = order.map(|(at, task)| (task.id.as_str(), at)).collect();
    let mut ordered: Vec<(&String, &Outcome)> = outcomes.iter().collect();
    ordered.sort_by_key(|(id, _)| places.get(id.as_str()));
    ordered.into_iter().map(|(_, outcome)| outcome).collect()
}

/// Records that the run has ended and was reported up to event `last`. A run that dies before this is
/// resumed to report its end.
pub(crate) fn save_ended(run_dir: &RunDir, code: u8, last: u64) {
    let noted = run_dir
        .write(RunFile::Ended, last.to_string().as_bytes())
        .and_then(|_| match code {
            0 => run_dir.write(RunFile::Finished, b"").map(drop),
            _ => Ok(()),
        });
    // The run itself is complete and its exit code stands, so a failure here is only a warning.
    if let Err(error) = noted {
        print_warning(&format!("{error:#}"), Time::Enough);
    }
}

/// After a signal, writes the summary and has the run shown as cancelled, unless it has told its end by then: saving
/// what it leaves can take longer than a runner waits after its signal, and then nobody would be told.
pub(super) fn say_on(cancel: &Cancel, latest: &watch::Sender<Latest>, run_dir: &RunDir) {
    let (cancel, latest, run_dir) = (cancel.clone(), latest.clone(), run_dir.clone());
    let say = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let Ok(by) = runtime.map(|runtime| runtime.block_on(cancel.cancelled())) else {
            return;
        };
        latest.send_if_modified(|latest| {
            if latest.is_over || latest.summary.facts.run_id.is_empty() {
                return false;
            }
            let status = RunStatus::Cancelled;
            let summary = RunSummary {
                status: Some(status),
                reason: Some(Reason::Cancelled),
                exit_code: Some(status.exit_code(by.signal())),
                current: None,
                ..RunSummary::clone(&latest.summary)
            };
            let text = render(&summary, &Vec::new(), Format::Json);
            // If this fails, the end of the run says why.
            let _ = run_dir.write(RunFile::Report(Format::Json), text.as_bytes());
            latest.summary = Arc::new(summary);
            true
        });
    };
    // Without a thread, the run is told of at its end, as any other.
    let _ = thread::Builder::new().name("last words".into()).spawn(say);
}
