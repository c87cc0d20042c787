//! Unfinished work at the end of a run: saves what was not delivered on GitHub, and removes saved work
//! that was.

use crate::context::Context;
use crate::domain::event::{ClosedPull, WarningTopic};
use crate::domain::kept_work::is_outdated;
use crate::domain::outcome::RunStatus;
use crate::git::{KEPT_WORK_REFS, RawSnapshot};
use crate::github::actions_environment::ActionsEnvironment;
use crate::github::delivery::Delivered;
use crate::process::{Cancel, CancelReason};
use crate::run::deliver::work_keeper::WorkKeeper;
use crate::run::state::parts::Parts;
use crate::run::steps::secrets_in;
use std::time::{Duration, Instant};

/// How long saving may take while the job is being cancelled.
const CANCELLED_SAVE_TIMEOUT: Duration = Duration::from_secs(3);

/// How long GitHub may take to list the saved work.
const LIST_TIMEOUT: Duration = Duration::from_secs(20);

/// The most outdated references that one run checks.
const MAX_CHECKED: usize = 5;

/// At the end of a run: saves undelivered work, or removes the saved copy of delivered work.
pub(crate) async fn save_or_remove(
    context: &Context,
    parts: &mut Parts<'_>,
    status: RunStatus,
    asks: bool,
    delivered: Delivered,
    trigger: Option<&str>,
) {
    let Some(mut keeper) = parts.keeper.take() else {
        return;
    };
    let has_landed = status.is_complete() && matches!(delivered, Delivered::Not | Delivered::Done);
    let (raw, _) = parts.snapshot();
    let dirty = raw.filter(|raw| !raw.changes.is_empty());
    let base = parts.tree.repo.base();
    let has_commits = base != parts.setup.start_commit() && delivered != Delivered::Done;
    let stopped = parts.setup.cancel.beyond_deadline();
    let cancel = match stopped.reason() {
        Some(_) => ends_after(context.after_signal(CANCELLED_SAVE_TIMEOUT)),
        None => stopped.clone(),
    };
    // An answer needs the question, which a comment cannot keep: other workflows write with the same account.
    let has_words = parts.notes.has_own() || asks;
    if has_landed || (dirty.is_none() && !has_commits && !has_words) {
        if stopped.reason().is_none() {
            remove_outdated(context, &mut keeper, parts, &cancel).await;
        }
        return;
    }
    let clean = dirty.filter(|raw| may_be_saved(parts, raw));
    if clean.is_none() && !has_commits && !has_words {
        return;
    }
    let ended = parts.emit.last();
    let kept = keeper.keep(
        &parts.setup,
        &mut parts.tree,
        clean.as_deref(),
        ended,
        &cancel,
    );
    match kept {
        Ok(()) => parts.warn(format!(
            "the unfinished work is kept for 30 days as {}{}",
            keeper.name.full(),
            how_to_continue(delivered, trigger)
        )),
        Err(why) => parts.emit.warn_about(
            WarningTopic::OnlyInJob,
            format!("the unfinished work is only in this job: {why}"),
        ),
    }
}

/// Whether the work tree contains no secret. Warns if it does.
fn may_be_saved(parts: &mut Parts<'_>, raw: &RawSnapshot) -> bool {
    let secrets = secrets_in(parts, raw, true);
    if secrets.is_empty() {
        return true;
    }
    let secrets = secrets.join("; ");
    parts.warn(format!("the work tree is not saved on GitHub: {secrets}"));
    false
}

fn how_to_continue(delivered: Delivered, trigger: Option<&str>) -> String {
    match (delivered, trigger) {
        (Delivered::Closed(ClosedPull::Merged), _) => String::new(),
        (Delivered::Closed(ClosedPull::Closed), _) => {
            ": a rerun of the job continues it once the pull request is open again".to_owned()
        }
        (_, Some(phrase)) => format!(": `{phrase} continue`, or a rerun of the job, continues it"),
        (_, None) => {
            ": a rerun of the job, or `sprag run --resume --from-remote`, continues it".to_owned()
        }
    }
}

/// Removes the saved copy of delivered work, and saved work of any request that is too old.
async fn remove_outdated(
    context: &Context,
    keeper: &mut WorkKeeper,
    parts: &mut Parts<'_>,
    cancel: &Cancel,
) {
    let Some(actions) = ActionsEnvironment::of(context) else {
        return;
    };
    let client = actions
        .client()
        .map(|it| it.with_deadline(Instant::now() + LIST_TIMEOUT));
    let Ok(repo) = client.and_then(|client| client.repo(&actions.place.repository)) else {
        return;
    };
    let there = repo.refs_below(KEPT_WORK_REFS).await;
    // If the list cannot be read, the next run tries again.
    let there = there.unwrap_or_default();
    keeper.is_there |= there.iter().any(|(name, _)| name == keeper.name.full());
    if keeper.is_there
        && let Err(why) = keeper.remove(&parts.tree, cancel)
    {
        let name = keeper.name.full();
        parts.warn(format!("{name} could not be removed: {why}"));
    }
    let now = jiff::Timestamp::now().as_second();
    let others = there.iter().filter(|(name, _)| name != keeper.name.full());
    for (name, commit) in others.take(MAX_CHECKED) {
        let facts = repo.git_commit(commit).await;
        if facts.is_ok_and(|facts| is_outdated(&facts.message, now)) {
            // If this fails, a later run tries again.
            let _ = repo.delete_ref(name).await;
        }
    }
}

/// A cancellation that triggers itself after `patience`, or at once if nothing can wait for that.
fn ends_after(patience: Duration) -> Cancel {
    let cancel = Cancel::new();
    let raised = cancel.clone();
    let waiting = std::thread::Builder::new().spawn(move || {
        std::thread::sleep(patience);
        raised.trigger(CancelReason::Terminate);
    });
    if waiting.is_err() {
        cancel.trigger(CancelReason::Terminate);
    }
    cancel
}
