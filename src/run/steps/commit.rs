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
use crate::run::state::parts::{Parts, TaskRun};
use crate::run::state::plan_state::completed_at;
use crate::run::state::work_tree::{WorkTree, changed_paths, head_of};
use crate::run::steps::hooks::{Hooked, ask_hooks};
use crate::run::steps::identity::identity_of_commits;
use crate::run::steps::landing::{
    Forbidden, land, last_landing, plan_name, prepare_landing, stage, violation,
    warn_of_remaining_changes,
};
use crate::run::steps::policy::{new_tokens, secrets_in};
use anyhow::anyhow;
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
    let tried = try_commit(parts, run, grounds).await;
    let by_hook = tried.is_ok();
    let observation = match tried {
        Ok(observation) => observation,
        // The work is good and an agent cannot fix the machine: the run stops here. When it resumes, it
        // continues from here, whether or not the commit was made.
        Err(error) if machine_fault(&error).is_some() => return Err(error),
        // A signal has ended git, and the step is repeated when the run resumes.
        Err(error) if parts.tree.repo.real().is_stopped() => return Err(error),
        Err(error) => {
            let message = format!("nothing was committed: {}", with_causes(&error));
            match (violation(&error), error.downcast_ref()) {
                (Some(what), _) => Observation::Violated { what },
                // The agent can change or remove what it wrote.
                (None, Some(CommitError::Unreadable(_))) => Observation::HookRejected {
                    message,
                    of_message: false,
                },
                (None, _) => Observation::CommitFailed { message },
            }
        }
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
    // Whatever the checks say, the tree must be a valid result of the current merge.
    let merging = parts.tree.merging.as_ref();
    let problem = merging.and_then(|merging| merging.problem(&parts.tree.repo, &raw));
    Forbidden::unless_empty(Vec::from_iter(problem))?;
    // It can be used once.
    let permit = match grounds {
        Grounds::Unchecked => permit_unchecked(&run.config.checks, raw.fingerprint()),
        Grounds::Passed => run.permit.take(),
        Grounds::KnownFailures => run.failed_on.take().map(Committable::known_failures),
    };
    let permit = permit.ok_or_else(|| no_permit(run.journal.state.current.as_ref()))?;
    let squashed = own_commits_to_squash(parts, run, &raw);
    let parent = match &squashed {
        Some(_) => parts.tree.repo.base(),
        None => head_of(&raw),
    };
    let done = done_status(run);
    let plan = &mut parts.tree.plan;
    plan.add_changed_files(&run.journal.state.changes);
    let plan = plan.content(Some((&run.task.id, &done)))?;
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
    let intent = prepare_landing(parts, staged, &message)?;
    run.journal.observe(Observation::CommitPrepared {
        commit: intent.commit.clone(),
    })?;
    if let Some(by) = parts.setup.interruption() {
        return Ok(Observation::interrupted(by));
    }
    land(parts, &intent)?;
    if !tokens.is_empty() {
        parts.warn(format!(
            "what looks like a token or a private key is committed in {}: revoke it if it is real",
            tokens.join(", ")
        ));
    }
    submodules.into_iter().for_each(|one| parts.warn(one));
    mark_done(&mut parts.tree, run)?;
    landed(parts, run, &intent, changed_paths(&raw));
    Ok(Observation::Committed {
        commit: Some(intent.commit),
    })
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
    let (setup, repo) = (&parts.setup, &parts.tree.repo);
    let plan = parts.tree.plan.in_tree();
    let held: LineLookup<'_> = &|commit, text| repo.holds(commit, text).unwrap_or(false);
    let detector = setup.detector.as_ref();
    let policy = Policy {
        protected: &run.config.protected_paths,
        plan: plan.and_then(|path| std::str::from_utf8(path).ok()),
        identities: &[identity_of_commits(setup.in_actions, repo)],
        messages: Messages::Harmless,
        secrets: detector.map(|detector| (detector, held)),
    };
    let read = |commit: &RevId, path: &[u8]| repo.file_of(commit, path).ok().flatten();
    let refused = match repo.commits_since_base(&head) {
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
    if let Some(head) = agents_head(&parts.tree, raw).filter(|_| !squashed) {
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
    let start = parts.setup.start_commit();
    let of_run = parts.tree.repo.commits_up_to(start.as_ref(), head);
    let of_run = of_run.unwrap_or_default();
    for made in &run.agent_commits {
        let id = RevId(made.split(' ').next().unwrap_or_default().to_owned());
        if of_run.contains(&id) {
            parts.tree.report_commit(&id, &mut parts.emit);
        }
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
    let ignored = parts.tree.uncommitted.ignored_at_start(&files);
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
    tree.plan.set(&run.task.id, done_status(run));
    tree.save_plan()
}

/// Reuses the verdict on the tree for the commit of the same tree.
fn carry_verdict(parts: &mut Parts<'_>, run: &TaskRun<'_>) {
    let exempt = parts.tree.exempt();
    let now = parts.tree.repo.snapshot(&exempt).ok();
    let judged = run.journal.state.current.as_ref();
    if let Some((judged, now)) = judged.and_then(Snapshot::tree).zip(now) {
        let now = now.fingerprint();
        parts.accounts.checks.alias(&run.config, judged, now);
    }
}

/// The status of the task once it is done.
pub(super) fn done_status(run: &TaskRun<'_>) -> StatusUpdate {
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
    let (id, title) = (run.task.id.as_str(), &run.task.title);
    let plan = plan_name(&parts.tree.plan);
    let mut subject = suggested.as_ref().map(|it| it.subject.clone());
    if let Some(merging) = &parts.tree.merging {
        subject = Some(merging.subject.clone());
    }
    if let Some(form) = run.config.settings.commit_message.as_deref() {
        let facts = MessageFacts {
            subject: subject.as_ref().unwrap_or(title),
            task: id,
            title,
            plan: &plan,
            changes: &run.journal.state.changes,
        };
        subject = Some(formed(form, &facts));
    }
    if let Some(subject) = subject {
        let body = suggested.map_or(String::new(), |it| it.body);
        suggested = Some(SuggestedMessage { subject, body });
    }
    let mut trailers = vec![
        ("Sprag-Task".to_owned(), task_value(&plan, id)),
        ("Sprag-Run".to_owned(), parts.setup.run_link()),
    ];
    if parts.setup.config.settings.signoff {
        let author = identity_of_commits(parts.setup.in_actions, &parts.tree.repo);
        let author = format!("{} <{}>", author.name, author.email);
        trailers.push(("Signed-off-by".to_owned(), author));
    }
    let message = compose(suggested.as_ref(), id, title, &trailers);
    parts.setup.redactor.redact(&message).into_owned()
}

/// After a crash, determines whether the commit that was about to land did. If so, the task is done.
///
/// # Errors
/// When the run's own state cannot be read or written.
pub(crate) fn recover_commit(parts: &mut Parts<'_>, run: &mut TaskRun<'_>) -> anyhow::Result<()> {
    let prepared = run.journal.state.prepared.clone();
    let landing = last_landing(&parts.setup.run_dir)?;
    let Some((commit, intent)) = prepared.zip(landing) else {
        return Ok(());
    };
    if intent.commit != commit || parts.tree.repo.base().as_ref() != Some(&commit) {
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
