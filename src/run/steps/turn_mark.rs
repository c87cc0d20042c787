//! The refs and HEAD before a turn, which survive a crash during it.

use crate::domain::attempt::{Last, TurnKey};
use crate::git::{GitError, TurnMark};
use crate::run::state::layout::RunFile;
use crate::run::state::parts::{Parts, TaskRun};
use serde::{Deserialize, Serialize};

/// The mark of a turn in the run directory.
#[derive(Serialize, Deserialize)]
struct KeptMark {
    /// Task and turn.
    of_turn: (String, u32),
    mark: TurnMark,
    /// Whether the turn's changes of refs have been undone. Later changes are somebody else's.
    is_inspected: bool,
}

impl KeptMark {
    fn read(parts: &Parts<'_>) -> Option<Self> {
        parts.setup.run_dir.read_json(RunFile::TurnMark)
    }

    fn keep(&self, parts: &Parts<'_>) -> anyhow::Result<()> {
        parts.setup.run_dir.write_json(RunFile::TurnMark, self)
    }
}

/// Records that what an interrupted turn did to the refs has been undone.
pub(super) fn save_inspected(parts: &mut Parts<'_>) {
    if let Some(mut mark) = KeptMark::read(parts) {
        mark.is_inspected = true;
        let kept = mark.keep(parts);
        parts.emit.warn_unless_stored(kept);
    }
}

/// HEAD and refs at the start of the turn. A turn that a crash interrupted is judged from its start, and one that
/// a signal interrupted from its HEAD at the start and from the present refs.
///
/// # Errors
/// When they cannot be stored: without them, a later process could not tell what the turn did.
pub(super) fn turn_mark(
    parts: &Parts<'_>,
    run: &TaskRun<'_>,
    key: TurnKey,
) -> anyhow::Result<Result<TurnMark, GitError>> {
    let of_turn = (run.task.id.to_string(), key.turn);
    let is_resumed = matches!(run.journal.state.last, Last::Resumed(_));
    let kept = KeptMark::read(parts).filter(|kept| is_resumed && kept.of_turn == of_turn);
    let now = || parts.tree.repo.mark_turn();
    let mark = match kept {
        Some(kept) if !kept.is_inspected => return Ok(Ok(kept.mark)),
        Some(kept) => now().map(|now| kept.mark.with_refs_of(now)),
        None => now(),
    };
    if let Ok(mark) = &mark {
        let kept = KeptMark {
            of_turn,
            mark: mark.clone(),
            is_inspected: false,
        };
        kept.keep(parts)?;
    }
    Ok(mark)
}
