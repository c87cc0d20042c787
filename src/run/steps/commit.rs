//! Makes one commit from the verified tree and the plan's status.

use crate::checks::permit_unchecked;
use crate::commit_policy::{LineLookup, Messages, Policy, violations};
use crate::domain::attempt::{Grounds, Observation};
use crate::domain::commit_message::{
    MessageFacts, SuggestedMessage, compose, formed, suggested_by_commit, suggested_commit_message,
    task_value,
};
use crate::domain::event::EventKind;
use crate::domain::outcome::short_id;
use crate::domain::plan::{StatusUpdate, TaskStatus};
use crate::domain::settings::AgentCommits;
use crate::domain::snapshot::{RevId, Snapshot};
use crate::error::{machine_fault, with_causes};
use crate::git::{
    ChangedPath, CommitError, GITLINK, LandingIntent, RawSnapshot, Staged, display_path,
    display_paths,
};
use crate::permit::Committable;
use crate::run::state::emitter::Emitter;
use crate::run::state::layout::RunFile;
use crate::run::state::parts::{Parts, TaskRun};
use crate::run::state::plan_state::completed_at;
use crate::run::state::work_tree::{WorkTree, changed_paths, head_of};
use crate::run::steps::hooks::{Hooked, ask_hooks};
use crate::run::steps::identity::identity_of_commits;
use crate::run::steps::landing::{
    Forbidden, identity, land, last_landing, plan_name, stage, violation, warn_of_remaining_changes,
};
use crate::run::steps::policy::{new_tokens, secrets_in};
use anyhow::anyhow;
use std::collections::BTreeSet;
use std::sync::Arc;

const UNREAD: &str = "the state of the repository could not be read";

/// Commits the current tree, on these grounds.
///
/// # Errors
/// When the run's own state cannot be written, or the machine is out of resources such as disk space.
pub async fn commit(
    parts: &mut Parts<'_>,
    run: &mut TaskRun<'_>,
    grounds: Grounds,
) -> anyhow::Result<Observation> {
    let mut by_hook = true;
    let observation = match try_commit(parts, run, grounds).await {
        Ok(observation) => observation,
        // The work is good and an agent cannot fix the machine: the run stops here. When it resumes, it
        // continues from here, whether or not the commit was made.
        Err(error) if machine_fault(&error).is_some() => return Err(error),
        // A signal has ended git, and the step is repeated when the run resumes.
        Err(error) if parts.tree.repo.real().is_stopped() => return Err(error),
        Err(error) => match violation(&error) {
            Some(what) => Observation::Violated { what },
            None => {
                let message = format!("nothing was committed: {}", with_causes(&error));
                by_hook = false;
                if matches!(error.downcast_ref(), Some(CommitError::Unreadable(_))) {
                    // The agent can change or remove what it wrote.
                    Observation::HookRejected {
                        message,
                        of_message: false,
                    }
                } else {
                    Observation::CommitFailed { message }
                }
            }
        },
    };
    if let Observation::CommitFailed { message } | Observation::HookRejected { message, .. } =
        &observation
    {
        parts.emit.emit(EventKind::CommitRejected {
            reason: message.clone(),
            by_hook,
        });
    }
    Ok(observation)
}

async fn try_commit(
    parts: &mut Parts<'_>,
    run: &mut TaskRun<'_>,
    grounds: Grounds,
) -> anyhow::Result<Observation> {
    // A process that Sprag did not start may have changed files since. Its changes are not committed,
    // because the staged blobs are compared with what this snapshot read.
    let (raw, state) = parts.last_snapshot();
    let raw = raw.ok_or_else(|| match state {
        // As a cause of its own, so that a full disk is recognised.
        Snapshot::Unknown { why } => anyhow!(why).context(UNREAD),
        Snapshot::Known(_) => anyhow!(UNREAD),
    })?;
    // Checks may change files that are then committed.
    let has_commits = !run.agent_commits.is_empty();
    Forbidden::unless_empty(secrets_in(parts, &raw, has_commits))?;
    Forbidden::unless_empty(merge_problem(&parts.tree, &raw))?;
    let permit = take_permit(run, grounds, &raw)
        .ok_or_else(|| no_permit(run.journal.state.current.as_ref()))?;
    let squashed = own_commits_to_squash(parts, run, &raw);
    let parent = match &squashed {
        Some(_) => parts.tree.repo.base(),
        None => head_of(&raw),
    };
    let done = done_status(run);
    parts
        .tree
        .plan
        .add_changed_files(&run.journal.state.changes);
    let plan = parts.tree.plan.content(Some((&run.task.id, &done)))?;
    let protected = Arc::clone(&run.config.protected_paths);
    let Some(staged) = stage(parts, permit, &raw, protected.as_ref(), plan, parent)? else {
        return nothing_to_commit(parts, run, &raw, squashed.is_some());
    };
    let message = message(parts, run, squashed.as_ref());
    let message = match ask_hooks(parts, run, &staged, &raw, message).await? {
        Hooked::Agreed(message) => message,
        Hooked::Ended(observation) => return Ok(observation),
    };
    let tokens = new_tokens(&parts.tree, &staged);
    let submodules = submodules_moved(&staged);
    let identity = identity(parts);
    let intent = parts.tree.repo.commit_tree(staged, &message, &identity)?;
    parts.setup.run_dir.write_json(RunFile::Landing, &intent)?;
    run.journal.observe(Observation::CommitPrepared {
        commit: intent.commit.clone(),
    })?;
    if let Some(by) = parts.setup.interruption() {
        return Ok(Observation::interrupted(by));
    }
    land(parts, &intent)?;
    warn_of_tokens(&mut parts.emit, &tokens);
    for warning in submodules {
        parts.warn(warning);
    }
    mark_done(&mut parts.tree, run)?;
    landed(parts, run, &intent, changed_paths(&raw));
    Ok(Observation::Committed {
        commit: Some(intent.commit),
    })
}

/// The permit for this tree, which can be used once.
fn take_permit(run: &mut TaskRun<'_>, grounds: Grounds, raw: &RawSnapshot) -> Option<Committable> {
    match grounds {
        Grounds::Unchecked => permit_unchecked(&run.config.checks, raw.fingerprint()),
        Grounds::Passed => run.permit.take(),
        Grounds::KnownFailures => run.failed_on.take().map(Committable::known_failures),
    }
}

/// Why there is no permit for the tree that was judged. If that could not be read, nobody knows what the checks judged,
/// even if it can be read by now.
fn no_permit(judged: Option<&Snapshot>) -> anyhow::Error {
    match judged {
        Some(Snapshot::Unknown { why }) => anyhow!(why.clone())
            .context("the state of the repository could not be read after the checks"),
        Some(Snapshot::Known(_)) | None => anyhow!("no verification permits it"),
    }
}

/// A warning for each submodule that the work puts on another commit, which only this checkout may have.
fn submodules_moved(staged: &Staged) -> Vec<String> {
    let all = staged.changed().iter();
    let moved = all.filter(|entry| entry.after == GITLINK);
    let warning = |entry: &ChangedPath| {
        let path = display_path(&entry.path);
        let commit = short_id(&entry.oid);
        format!(
            "the submodule {path} is at the commit {commit} now; a fresh checkout needs that commit in the submodule's own repository"
        )
    };
    moved.map(warning).collect()
}

fn warn_of_tokens(emit: &mut Emitter<'_>, paths: &[String]) {
    if !paths.is_empty() {
        emit.warn(format!(
            "what looks like a token or a private key is committed in {}: revoke it if it is real",
            paths.join(", ")
        ));
    }
}

/// Why the tree is not a valid result of the current merge, regardless of the checks.
fn merge_problem(tree: &WorkTree, raw: &RawSnapshot) -> Vec<String> {
    let merging = tree.merging.as_ref();
    let problem = merging.and_then(|it| it.problem(&tree.repo, raw));
    problem.into_iter().collect()
}

/// The last of the agent's own commits; `None` if there is none.
fn agents_head(tree: &WorkTree, raw: &RawSnapshot) -> Option<RevId> {
    head_of(raw).filter(|head| Some(head) != tree.repo.base().as_ref())
}

/// The last of the agent's own commits if Sprag squashes them: because of the settings, or with a
/// warning because one of them violates the policy.
fn own_commits_to_squash(
    parts: &mut Parts<'_>,
    run: &TaskRun<'_>,
    raw: &RawSnapshot,
) -> Option<RevId> {
    let head = agents_head(&parts.tree, raw)?;
    match run.config.settings.agent_commits {
        AgentCommits::Reject => return None,
        AgentCommits::Squash => return Some(head),
        AgentCommits::Accept => {}
    }
    let file = parts.tree.plan.file.as_ref();
    let plan = file.and_then(|file| std::str::from_utf8(file.in_tree.as_deref()?).ok());
    let held: LineLookup<'_> = &|commit, text| parts.tree.repo.holds(commit, text).unwrap_or(false);
    let policy = Policy {
        protected: &run.config.protected_paths,
        plan,
        identities: &[identity_of_commits(
            parts.setup.in_actions,
            &parts.tree.repo,
        )],
        messages: Messages::Harmless,
        secrets: parts
            .setup
            .detector
            .as_ref()
            .map(|detector| (detector, held)),
    };
    let read = |commit: &RevId, path: &[u8]| parts.tree.repo.file_of(commit, path).ok().flatten();
    let refused = match parts.tree.repo.commits_since_base(&head) {
        Ok(Ok(line)) => violations(&line, &policy, &read),
        Ok(Err(no_line)) => vec![no_line.to_string()],
        Err(error) => vec![error.to_string()],
    };
    if refused.is_empty() {
        return None;
    }
    parts.warn(format!(
        "the agent's own commits become one of Sprag's: {}",
        refused.join("; ")
    ));
    Some(head)
}

/// The agent's own commits contain everything, or the plan is outside the repository and nothing is left
/// to commit: the task is done without a commit by Sprag. Commits to squash that change nothing in total
/// are left out of the branch.
fn nothing_to_commit(
    parts: &mut Parts<'_>,
    run: &TaskRun<'_>,
    raw: &RawSnapshot,
    squashed: bool,
) -> anyhow::Result<Observation> {
    if squashed {
        mark_done(&mut parts.tree, run)?;
        return Ok(Observation::Committed { commit: None });
    }
    if let Some(head) = agents_head(&parts.tree, raw) {
        parts.tree.repo.change().advance_base(&head)?;
        report_kept(parts, run, &head);
        parts.accounts.changed_files.extend(changed_paths(raw));
    }
    mark_done(&mut parts.tree, run)?;
    Ok(Observation::Committed { commit: None })
}

/// Reports the agent's own commits that are on the branch, whose last commit is `head`.
fn report_kept(parts: &mut Parts<'_>, run: &TaskRun<'_>, head: &RevId) {
    if run.agent_commits.is_empty() {
        return;
    }
    let of_run = parts
        .tree
        .repo
        .commits_up_to(parts.setup.start_commit().as_ref(), head);
    let of_run: BTreeSet<RevId> = of_run.unwrap_or_default().into_iter().collect();
    let made = run.agent_commits.iter();
    let ids = made
        .filter_map(|it| it.split(' ').next())
        .map(|id| RevId(id.to_owned()));
    for id in ids.filter(|id| of_run.contains(id)) {
        parts.tree.report_commit(&id, &mut parts.emit);
    }
}

/// The bookkeeping after the commit has landed.
fn landed(parts: &mut Parts<'_>, run: &TaskRun<'_>, intent: &LandingIntent, files: Vec<String>) {
    parts.tree.plan.saved();
    carry_verdict(parts, run);
    parts.accounts.changed_files.extend(files.iter().cloned());
    report_kept(parts, run, &intent.commit);
    // Reports the files that are read back from the commit. Its parent may be a commit of the agent, so
    // they may not be all that the task changed.
    let files = parts.tree.repo.files_of(&intent.commit).unwrap_or(files);
    let ignored = parts.tree.ignored_at_start(&files);
    parts.emit.emit(EventKind::CommitCreated {
        commit: intent.commit.0.clone(),
        subject: intent.subject.clone(),
        files,
    });
    if !ignored.is_empty() {
        let names = display_paths(&ignored);
        parts.warn(format!(
            "the commit of task {} contains what git ignored when the task started: {names}",
            run.task.id
        ));
    }
    warn_of_remaining_changes(parts);
}

fn mark_done(tree: &mut WorkTree, run: &TaskRun<'_>) -> anyhow::Result<()> {
    let status = done_status(run);
    tree.plan.set(&run.task.id, status);
    tree.save_plan()
}

/// Reuses the verdict on the tree for the commit of the same tree.
fn carry_verdict(parts: &mut Parts<'_>, run: &TaskRun<'_>) {
    let exempt = parts.tree.exempt();
    let Ok(now) = parts.tree.repo.snapshot(&exempt) else {
        return;
    };
    let judged = run.journal.state.current.as_ref();
    if let Some(judged) = judged.and_then(Snapshot::tree) {
        let now = now.fingerprint().clone();
        parts.accounts.checks.alias(&run.config, judged, now);
    }
}

fn done_status(run: &TaskRun<'_>) -> StatusUpdate {
    StatusUpdate {
        status: TaskStatus::Done,
        attempts: Some(run.journal.state.all_attempts()),
        completed_at: Some(completed_at()),
    }
}

fn message(parts: &Parts<'_>, run: &TaskRun<'_>, squashed: Option<&RevId>) -> String {
    // If other roles had the last turn, use the message of those who did the work.
    let said = if run.keeps_messages() {
        run.journal.state.suggestion.as_deref()
    } else {
        run.final_message.as_deref()
    };
    let mut suggested = said.and_then(suggested_commit_message).or_else(|| {
        let message = parts.tree.repo.message_of(squashed?).ok()?;
        suggested_by_commit(&message)
    });
    if let Some(merging) = &parts.tree.merging {
        suggested = Some(SuggestedMessage {
            subject: merging.subject.clone(),
            body: suggested.map_or(String::new(), |it| it.body),
        });
    }
    let plan = plan_name(&parts.tree.plan);
    if let Some(form) = run.config.settings.commit_message.as_deref() {
        let subject = suggested.as_ref().map_or(&run.task.title, |it| &it.subject);
        let facts = MessageFacts {
            subject,
            task: run.task.id.as_str(),
            title: &run.task.title,
            plan: &plan,
            changes: &run.journal.state.changes,
        };
        let subject = formed(form, &facts);
        let body = suggested.map_or(String::new(), |it| it.body);
        suggested = Some(SuggestedMessage { subject, body });
    }
    let mut trailers = vec![
        (
            "Sprag-Task".to_owned(),
            task_value(&plan, run.task.id.as_str()),
        ),
        ("Sprag-Run".to_owned(), parts.setup.run_link()),
    ];
    if parts.setup.config.settings.signoff {
        let author = identity_of_commits(parts.setup.in_actions, &parts.tree.repo);
        let author = format!("{} <{}>", author.name, author.email);
        trailers.push(("Signed-off-by".to_owned(), author));
    }
    let message = compose(
        suggested.as_ref(),
        run.task.id.as_str(),
        &run.task.title,
        &trailers,
    );
    parts.setup.redactor.redact(&message).into_owned()
}

/// After a crash, determines whether the commit that was about to land did. If so, the task is done.
///
/// # Errors
/// When the run's own state cannot be read or written.
pub(crate) fn recover_commit(parts: &mut Parts<'_>, run: &mut TaskRun<'_>) -> anyhow::Result<()> {
    let Some(commit) = run.journal.state.prepared.clone() else {
        return Ok(());
    };
    let Some(intent) = last_landing(&parts.setup.run_dir)? else {
        return Ok(());
    };
    if intent.commit != commit || parts.tree.repo.base() != Some(commit.clone()) {
        return Ok(());
    }
    let files = run.journal.state.changes.clone();
    // The committed plan may contain the status and the time already.
    if !parts.tree.plan.is_done(&run.task.id) {
        mark_done(&mut parts.tree, run)?;
    }
    landed(parts, run, &intent, files);
    run.journal.observe(Observation::Committed {
        commit: Some(commit),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_that_could_not_be_read_after_the_checks_is_the_reason() {
        let judged = Snapshot::Unknown {
            why: "cannot list src".to_owned(),
        };
        assert_eq!(
            with_causes(&no_permit(Some(&judged))),
            "the state of the repository could not be read after the checks: cannot list src"
        );
    }
}
