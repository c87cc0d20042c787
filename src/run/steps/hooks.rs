//! Runs the repository's own hooks, as they were when the run started.

use crate::domain::attempt::Observation;
use crate::domain::commit_message::without_own_trailers;
use crate::error::{Error, Result};
use crate::git::{Hook, RawSnapshot, Repo, Staged};
use crate::process::{CommandSpec, Exit, HeadTail, Input, Limits, find_program, run};
use crate::run::begin::isolation::Purpose;
use crate::run::state::parts::{Parts, TaskRun};
use crate::run::state::setup::{Setup, interruption};
use std::time::Duration;

/// The timeout of a commit hook.
const HOOK_TIMEOUT: Duration = Duration::from_secs(5 * 60);

/// How many bytes of the start and of the end of a hook's output are kept.
const HOOK_OUTPUT: usize = 16 << 10;

/// The result of the hooks for a commit.
pub(crate) enum Hooked {
    /// They accept the commit, with this message.
    Agreed(String),
    /// There is no commit.
    Ended(Observation),
}

/// Requires the interpreters of the commit hooks: without one, no work could be committed. Whether a hook accepts
/// a commit is not known before there is one.
///
/// # Errors
/// When an interpreter is missing.
pub(crate) fn require_interpreters(setup: &Setup, repo: &Repo) -> Result<()> {
    if !setup.commits() {
        return Ok(());
    }
    let mut env = setup.env.iter();
    let search_path = env.find(|(name, _)| *name == "PATH");
    let search_path = search_path.map_or_else(Default::default, |(_, value)| value.clone());
    let work_tree = repo.real().work_tree();
    for (name, line) in repo.hook_beginnings() {
        let Some(program) = interpreter(&line) else {
            continue;
        };
        if find_program(program.as_ref(), &search_path, work_tree).is_none() {
            let why = format!(
                "the {name} hook of the repository needs `{program}`, which is not installed"
            );
            return Err(Error::environment(why)
                .hint("install it before this run or in `setup`, or remove the hook"));
        }
    }
    Ok(())
}

/// The program that a script's first line names.
fn interpreter(line: &str) -> Option<&str> {
    let mut words = line.strip_prefix("#!")?.split_whitespace();
    let first = words.next()?;
    match first.rsplit('/').next() {
        // `env` sets variables and has options that this does not interpret.
        Some("env") => words
            .find(|word| *word != "-S")
            .filter(|word| !word.starts_with('-') && !word.contains('=')),
        _ => Some(first),
    }
}

/// Runs pre-commit and commit-msg. A message that is refused is tried once more without Sprag's own trailers.
///
/// # Errors
/// When a hook cannot be prepared or the run's own state cannot be written.
pub(crate) async fn ask_hooks(
    parts: &mut Parts<'_>,
    task: &TaskRun<'_>,
    staged: &Staged,
    raw: &RawSnapshot,
    message: String,
) -> anyhow::Result<Hooked> {
    if let Hooked::Ended(end) = run_hook(parts, task, staged, raw, Hook::PreCommit).await? {
        return Ok(Hooked::Ended(end));
    }
    let hook = Hook::CommitMsg { message: &message };
    let asked = run_hook(parts, task, staged, raw, hook).await?;
    if !matches!(asked, Hooked::Ended(Observation::HookRejected { .. })) {
        return Ok(asked);
    }
    let bare = without_own_trailers(&message);
    let hook = Hook::CommitMsg { message: &bare };
    let again = run_hook(parts, task, staged, raw, hook).await?;
    if matches!(again, Hooked::Ended(Observation::HookRejected { .. })) {
        return Ok(asked);
    }
    if matches!(again, Hooked::Agreed(_)) {
        parts.warn(
            "the commit-msg hook refuses the lines `Sprag-Task` and `Sprag-Run`, so the commit is without them",
        );
    }
    Ok(again)
}

async fn run_hook(
    parts: &mut Parts<'_>,
    task: &TaskRun<'_>,
    staged: &Staged,
    raw: &RawSnapshot,
    hook: Hook<'_>,
) -> anyhow::Result<Hooked> {
    let message = match hook {
        Hook::PreCommit => String::new(),
        Hook::CommitMsg { message } => message.to_owned(),
    };
    let Some(prepared) = parts.tree.repo.prepare_hook(&hook, staged)? else {
        return Ok(Hooked::Agreed(message));
    };
    parts.tree.save_untracked(Some(raw))?;
    let mark = parts.tree.repo.mark_turn()?;
    let passed = &task.config.settings.verify_env;
    let mut env = (parts.setup).environment(Purpose::Check, passed, &mut parts.emit);
    env.extend(prepared.env.iter().cloned());
    let confined = parts.setup.isolation.policy(Purpose::Check);
    let spec = CommandSpec {
        program: prepared.program.clone().into(),
        args: prepared.args.clone(),
        cwd: prepared.cwd.clone(),
        env,
        stdin: Input::Null,
        limits: Limits::within(HOOK_TIMEOUT),
        sandbox: confined.map(|policy| policy.and_write(prepared.writes())),
    };
    let mut kept = HeadTail::new(HOOK_OUTPUT, HOOK_OUTPUT);
    let mut on_output = |_, chunk: &[u8]| kept.push(chunk);
    let ended = run(&spec, &parts.setup.cancel, &mut on_output).await;
    parts.setup.report_denied_hosts(&mut parts.emit);
    for warning in parts.tree.repo.change().undo_moved_refs(&mark, "a hook")? {
        parts.warn_once(&warning);
    }
    if let Exit::Cancelled(reason) = ended.exit {
        let by = interruption(reason);
        return Ok(Hooked::Ended(Observation::interrupted(by)));
    }
    let violations = parts.setup.violations();
    if !violations.is_empty() {
        let what = violations.join("; ");
        return Ok(Hooked::Ended(Observation::Violated { what }));
    }
    let (_, after) = parts.tree.collect_artifacts(Some(raw), &mut parts.emit);
    let changed = after.tree().is_some_and(|tree| tree != raw.fingerprint());
    let may_change = !task.journal.state.hook_changed;
    if changed && (may_change || ended.exit.is_success()) {
        return Ok(Hooked::Ended(Observation::HookChangedTree { after }));
    }
    if !ended.exit.is_success() {
        return Ok(Hooked::Ended(refusal(hook, &ended.exit, kept)));
    }
    Ok(Hooked::Agreed(match hook {
        Hook::PreCommit => message,
        Hook::CommitMsg { .. } => prepared.message()?,
    }))
}

fn refusal(hook: Hook<'_>, exit: &Exit, output: HeadTail) -> Observation {
    let (name, of_message) = match hook {
        Hook::PreCommit => ("pre-commit", false),
        Hook::CommitMsg { .. } => ("commit-msg", true),
    };
    let output = output.into_text();
    let output = output.trim();
    let colon = if output.is_empty() { "" } else { ":\n" };
    Observation::HookRejected {
        message: format!("the {name} hook refused the commit ({exit}){colon}{output}"),
        of_message,
    }
}

#[cfg(test)]
mod tests {
    use super::interpreter;

    #[test]
    fn the_interpreter_is_read_from_the_first_line() {
        for (line, expected) in [
            ("#!/bin/sh", Some("/bin/sh")),
            ("#! /bin/sh -e", Some("/bin/sh")),
            ("#!/usr/bin/env node", Some("node")),
            ("#!/usr/bin/env -S deno run", Some("deno")),
            ("#!/usr/bin/env -i python3", None),
            ("#!/usr/bin/env A=1 python3", None),
            ("echo no", None),
            ("#!", None),
        ] {
            assert_eq!(interpreter(line), expected, "{line}");
        }
    }
}
