//! Undoes changes that a phase may not make, and the work of an optional phase whose checks fail: both
//! go back to the start of the phase.

use crate::domain::attempt::{Observation, TurnKey, Writes};
use crate::domain::snapshot::RevId;
use crate::error::with_causes;
use crate::git::{
    RawSnapshot, SwapError, TreeId, TurnReport, display_path, display_paths, holds_ignore_rules,
};
use crate::run::state::directory::RunDir;
use crate::run::state::layout::RunFile;
use crate::run::state::parts::{Parts, TaskRun};
use crate::run::state::setup::Setup;
use crate::run::state::work_tree::{WorkTree, changed_paths, head_of};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The state at the start of a phase.
#[derive(Debug, Serialize, Deserialize)]
struct PhaseStart {
    task: String,
    phase: usize,
    /// The turn, if it alone may change nothing.
    turn: Option<u32>,
    tree: TreeId,
    head: Option<RevId>,
}

/// Removes the recorded phase start of an earlier task.
pub(crate) fn forget(run_dir: &RunDir) {
    run_dir.remove(RunFile::PhaseStart);
}

/// Records the start of a phase, or of a turn, whose changes may have to be undone. Further turns of a phase keep
/// the start of its first turn.
pub(crate) fn keep_phase_start(parts: &mut Parts<'_>, run: &TaskRun<'_>, key: TurnKey) {
    let may_be_undone = run.writes(key) != Writes::Anything || run.row(key).optional;
    if !may_be_undone || phase_start(&parts.setup, run, key).is_some() {
        return;
    }
    let (Some(raw), _) = parts.last_snapshot() else {
        return;
    };
    let tree = parts.tree.repo.write_snapshot_tree(&raw);
    let kept = tree.map_err(Into::into).and_then(|tree| {
        let start = PhaseStart {
            task: run.task.id.to_string(),
            phase: key.phase,
            turn: turn_alone(run, key),
            tree,
            head: head_of(&raw),
        };
        parts.setup.run_dir.write_json(RunFile::PhaseStart, &start)
    });
    parts.emit.warn_unless_stored(kept);
}

fn phase_start(setup: &Setup, run: &TaskRun<'_>, key: TurnKey) -> Option<PhaseStart> {
    let start: PhaseStart = setup.run_dir.read_json(RunFile::PhaseStart)?;
    let is_it = (start.task.as_str(), start.phase, start.turn)
        == (run.task.id.as_str(), key.phase, turn_alone(run, key));
    is_it.then_some(start)
}

/// The number of a turn that may change nothing although its phase may.
fn turn_alone(run: &TaskRun<'_>, key: TurnKey) -> Option<u32> {
    (run.writes(key) != run.row(key).writes).then_some(key.turn)
}

/// Undoes changes that the phase does not allow, including commits, which are also removed from `report`. Returns
/// the paths of the files.
pub(crate) fn undo_what_may_not_change(
    parts: &mut Parts<'_>,
    run: &TaskRun<'_>,
    key: TurnKey,
    report: Option<&mut TurnReport>,
) -> Vec<String> {
    let writes = run.writes(key);
    let start = phase_start(&parts.setup, run, key).filter(|_| writes != Writes::Anything);
    let Some((start, raw)) = start.and_then(|start| Some((start, parts.snapshot().0?))) else {
        return Vec::new();
    };
    let state = &run.journal.state;
    let began = match start.turn {
        Some(_) => state.turn_start.as_ref(),
        None => state.phase_start.as_ref(),
    };
    let is_unchanged = began.and_then(|began| began.tree()) == Some(raw.fingerprint());
    if is_unchanged && head_of(&raw) == start.head {
        return Vec::new();
    }
    let tests = match writes {
        Writes::Tests => {
            let tests = parts.tree.check_changes(&raw, &run.config).tests;
            tests.changed.into_iter().chain(tests.added).collect()
        }
        Writes::Anything | Writes::Nothing => BTreeSet::new(),
    };
    let may_change = |path: &[u8]| tests.contains(&display_path(path));
    let undone = restore_from_tree(&mut parts.tree, &raw, &start, may_change);
    let who = format!("the {} of task {}", run.row(key).role.as_str(), run.task.id);
    let undone = match undone {
        Ok(undone) => undone,
        Err(error) => {
            let why = with_causes(&error);
            parts.warn(format!("{who} made changes that are not allowed in this phase, and they could not be undone: {why}"));
            return Vec::new();
        }
    };
    let made = report.map(|report| std::mem::take(&mut report.agent_commits));
    let made = made.into_iter().flatten().map(|commit| commit.id.0);
    let made = made.collect::<Vec<_>>().join(", ");
    if !made.is_empty() {
        parts.warn(format!(
            "{who} made commits, which is not allowed in this phase; they were removed from the branch: {made}"
        ));
    }
    if !undone.is_empty() {
        parts.warn(format!(
            "{who} changed files that it may not change in this phase; the changes were undone: {}",
            display_paths(&undone)
        ));
    }
    undone.iter().map(|path| display_path(path)).collect()
}

/// Restores the state at the start of the phase.
pub fn undo(parts: &mut Parts<'_>, run: &TaskRun<'_>, key: TurnKey) -> Observation {
    let (raw, _) = parts.snapshot();
    if let (Some(raw), Some(start)) = (raw, phase_start(&parts.setup, run, key)) {
        let undone = restore_from_tree(&mut parts.tree, &raw, &start, |_| false);
        parts.warn(match undone {
            Ok(undone) => format!(
                "the last turn of task {} did not pass and was undone: {}",
                run.task.id,
                display_paths(&undone)
            ),
            Err(error) => {
                format!("the last turn could not be undone: {}", with_causes(&error))
            }
        });
    }
    let (raw, after) = parts.snapshot();
    let raw = raw.as_deref();
    let tests = raw.map(|raw| parts.tree.check_changes(raw, &run.config).tests);
    Observation::Undone {
        after,
        changes: raw.map(changed_paths).unwrap_or_default(),
        tests: tests.unwrap_or_default().into(),
    }
}

/// Restores files except the plan, which other code validates and corrects.
fn restore_from_tree(
    tree: &mut WorkTree,
    raw: &RawSnapshot,
    start: &PhaseStart,
    may_change: impl Fn(&[u8]) -> bool,
) -> anyhow::Result<Vec<Vec<u8>>> {
    let plan = tree.plan.in_tree().map(<[u8]>::to_vec);
    let goes_back = |path: &[u8]| Some(path) != plan.as_deref() && !may_change(path);
    // A file that the rules of the phase's start ignore is not new, whatever became of the rules.
    let is_rule = |path: &[u8]| holds_ignore_rules(path) && goes_back(path);
    let exempt = tree.exempt();
    let repo = tree.repo.change();
    let mut undone = match repo.restore_from_tree(raw, &start.tree, is_rule) {
        Err(SwapError::InTheWay(_)) => Vec::new(),
        restored => restored?,
    };
    let by_rules;
    let raw = if undone.is_empty() {
        raw
    } else {
        by_rules = repo.snapshot(&exempt)?;
        &by_rules
    };
    undone.extend(repo.restore_from_tree(raw, &start.tree, goes_back)?);
    undone.sort();
    repo.put_head_back(start.head.as_ref())?;
    // If the phase started on a clean tree, the index was clean, too.
    if start.head == repo.base() && start.tree == repo.base_tree() {
        repo.put_index_back()?;
    }
    Ok(undone)
}
