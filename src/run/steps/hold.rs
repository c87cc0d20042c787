//! Removes changes of protected paths from the work and saves them as a patch, so that the rest of the
//! work is not lost.

use crate::commit_policy::entries::is_protected;
use crate::domain::attempt::HeldBack;
use crate::domain::settings::{AgentCommits, OnProtected};
use crate::domain::text::some_of;
use crate::git::{RawSnapshot, display_path};
use crate::run::state::layout::RunFile;
use crate::run::state::parts::{Parts, TaskRun};
use crate::run::state::work_tree::{SnapshotPair, head_of};
use crate::run::steps::policy::rules;
use std::collections::BTreeSet;
use std::path::Path;

/// How many ignored paths are named.
const IGNORED_NAMED: usize = 20;

/// Removes changes of protected paths from the work of a turn. Returns the new state and what was removed. If they
/// cannot be removed, everything stays, which is a violation. `number` is the one in the names of the turn's files.
pub(crate) fn hold_protected(
    parts: &mut Parts<'_>,
    run: &TaskRun<'_>,
    number: u32,
    seen: SnapshotPair,
) -> (SnapshotPair, Option<HeldBack>) {
    let (Some(raw), after) = seen else {
        return (seen, None);
    };
    let settings = &run.config.settings;
    // Changes inside the agent's own commits, where these are kept, are not removed.
    let keeps_commits =
        settings.agent_commits == AgentCommits::Accept && head_of(&raw) != parts.tree.repo.base();
    if settings.on_protected == OnProtected::Block || keeps_commits {
        return ((Some(raw), after), None);
    }
    let rules = rules(parts, &run.config.protected_paths);
    let changed = raw.changed_paths().into_iter();
    let protected = changed.filter(|entry| is_protected(entry, &rules));
    let mut paths: BTreeSet<Vec<u8>> = protected.map(|entry| entry.path).collect();
    let own = parts.tree.uncommitted.own.iter();
    paths.extend(own.map(|(path, _)| path.clone()));
    paths.retain(|path| !parts.tree.is_as_started(&raw, path));
    if paths.is_empty() {
        return ((Some(raw), after), None);
    }
    let taken = taken_out(parts, run, number, &raw, &paths);
    if let Err(why) = &taken {
        parts.warn(format!(
            "changes of protected paths could not be removed: {why:#}"
        ));
    }
    (parts.snapshot(), taken.ok())
}

fn taken_out(
    parts: &mut Parts<'_>,
    run: &TaskRun<'_>,
    number: u32,
    raw: &RawSnapshot,
    paths: &BTreeSet<Vec<u8>>,
) -> anyhow::Result<HeldBack> {
    let held = raw.only(|path| paths.contains(path));
    let patch = parts.tree.repo.patch(&held)?;
    let name = format!("{}-held-{number:02}", run.task.id);
    let file = RunFile::Patch(&name);
    parts.setup.run_dir.write(file, &patch)?;
    // What somebody had changed before the task started stays.
    let start = parts.tree.uncommitted.start.clone();
    let start = start.unwrap_or_else(|| parts.tree.repo.base_tree());
    let repo = parts.tree.repo.change();
    repo.restore_from_tree(&held, &start, |path| paths.contains(path))?;
    let names: Vec<String> = paths.iter().map(|path| display_path(path)).collect();
    let patch = file.path().into_owned();
    parts.warn(format!(
        "protected paths were changed; the changes were removed from task {} and kept as {patch}: {}",
        run.task.id,
        names.join(", ")
    ));
    Ok(HeldBack {
        patch,
        paths: names,
    })
}

/// Names what the agent has made and git ignores, and takes away the part that programs execute by themselves.
pub(crate) fn tell_ignored(parts: &mut Parts<'_>, run: &TaskRun<'_>, raw: &RawSnapshot) {
    let name = format!("{}-held-ignored", run.task.id);
    let place = Path::new(&*RunFile::Patch(&name).path()).with_extension("");
    let to = parts.setup.run_dir.root().join(&place);
    let protected = &run.config.protected_paths;
    let (left, held) = parts.tree.hold_ignored(raw, protected, &to);
    if !held.is_empty() {
        parts.warn(format!(
            "protected paths that git ignores were made; they were removed from the work tree (kept in {} if \
             possible): {}",
            place.display(),
            some_of(&held, IGNORED_NAMED)
        ));
    }
    if !left.is_empty() {
        parts.warn_once(&format!(
            "task {}: the agent has made or changed what no commit contains, since git ignores it or cannot read it: {}",
            run.task.id,
            some_of(&left, IGNORED_NAMED)
        ));
    }
}
