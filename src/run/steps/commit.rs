//! One commit: the verified tree and the plan's status, made by Sprag.

use crate::checks::permit_unchecked;
use crate::commit_policy::{Held, Messages, Policy, violations};
use crate::domain::attempt::{Grounds, Observation};
use crate::domain::commit_message::{
    SuggestedMessage, compose, suggested_by_commit, suggested_commit_message,
};
use crate::domain::event::EventKind;
use crate::domain::outcome::NOT_COMMITTED;
use crate::domain::plan::{StatusUpdate, TaskStatus};
use crate::domain::settings::AgentCommits;
use crate::domain::snapshot::{RevId, Snapshot};
use crate::error::machine_fault;
use crate::git::{LandingIntent, RawSnapshot};
use crate::permit::Committable;
use crate::run::accounts::Accounts;
use crate::run::emitter::Emitter;
use crate::run::identity::identity_of_commits;
use crate::run::layout::RunFile;
use crate::run::setup::Setup;
use crate::run::steps::hooks::{Hooked, ask_hooks};
use crate::run::steps::landing::{
    Forbidden, identity, land, name_leftovers, plan_name, stage, violation,
};
use crate::run::steps::policy::secrets_in;
use crate::run::task::TaskRun;
use crate::run::work_tree::{WorkTree, changed_paths, head_of};
use anyhow::anyhow;
use std::sync::Arc;

const UNREAD: &str = "the state of the repository could not be read";

/// Commits the tree as it stands, on these grounds.
///
/// # Errors
/// When the run's own state cannot be written, or the machine takes no more.
pub async fn commit(
    setup: &Setup,
    tree: &mut WorkTree,
    accounts: &mut Accounts,
    emit: &mut Emitter<'_>,
    run: &mut TaskRun<'_>,
    grounds: Grounds,
) -> anyhow::Result<Observation> {
    let observation = match try_commit(setup, tree, accounts, emit, run, grounds).await {
        Ok(observation) => observation,
        // Nothing that an agent could do about it, and the work is good: the run stops here and
        // goes on here, on whichever side of the commit point it stopped.
        Err(error) if machine_fault(&error).is_some() => return Err(error),
        Err(error) => match violation(&error) {
            Some(what) => Observation::Violated { what },
            None => Observation::CommitFailed {
                message: format!("{NOT_COMMITTED}{error:#}"),
            },
        },
    };
    if let Observation::CommitFailed { message } | Observation::HookRejected { message } =
        &observation
    {
        emit.emit(EventKind::CommitRejected {
            reason: message.clone(),
        });
    }
    Ok(observation)
}

async fn try_commit(
    setup: &Setup,
    tree: &mut WorkTree,
    accounts: &mut Accounts,
    emit: &mut Emitter<'_>,
    run: &mut TaskRun<'_>,
    grounds: Grounds,
) -> anyhow::Result<Observation> {
    // What somebody whom Sprag has not started changed since is not in it: what is staged is compared
    // with what this snapshot read, from the staged blobs themselves.
    let (raw, state) = tree.last_snapshot(emit);
    let raw = raw.ok_or_else(|| match state {
        // As a cause of its own, so that a full disk is known for one.
        Snapshot::Unknown { why } => anyhow!(why).context(UNREAD),
        Snapshot::Known(_) => anyhow!(UNREAD),
    })?;
    // Checks may change files that are committed, too.
    let has_commits = !run.agent_commits.is_empty();
    Forbidden::unless_empty(secrets_in(setup, tree, &raw, has_commits))?;
    Forbidden::unless_empty(merge_problem(tree, &raw))?;
    let permit = match grounds {
        Grounds::Unchecked => permit_unchecked(&run.config.checks, raw.fingerprint()),
        Grounds::Passed => run.permit.take(),
        Grounds::KnownFailures => run.failed_on.take().map(Committable::known_failures),
    };
    let permit = permit.ok_or_else(|| anyhow!("no verification permits it"))?;
    let squashed = own_commits_to_squash(setup, tree, emit, run, &raw);
    let parent = match &squashed {
        Some(_) => tree.repo.base(),
        None => head_of(&raw),
    };
    let done = done_status(run);
    let plan = tree.plan.content(Some((&run.task.id, &done)))?;
    let protected = Arc::clone(&run.config.protected_paths);
    let (permit, policy) = ((permit, raw.as_ref()), (setup, protected.as_ref()));
    let Some(staged) = stage(tree, permit, policy, plan, parent)? else {
        return nothing_to_commit(tree, accounts, run, (&raw, squashed.is_some()));
    };
    let message = message(setup, tree, run, squashed.as_ref());
    let message = match ask_hooks(setup, tree, emit, run, (&staged, &raw), message).await? {
        Hooked::Agreed(message) => message,
        Hooked::Ended(observation) => return Ok(observation),
    };
    let identity = identity(setup, tree, emit);
    let intent = tree.repo.commit_tree(staged, &message, &identity)?;
    setup.run_dir.write_json(RunFile::Landing, &intent)?;
    run.journal.observe(Observation::CommitPrepared {
        commit: intent.commit.clone(),
    })?;
    if let Some(by) = setup.interruption() {
        return Ok(Observation::interrupted(by));
    }
    land(tree, emit, &intent)?;
    mark_done(tree, run)?;
    landed(tree, accounts, emit, run, (&intent, changed_paths(&raw)));
    Ok(Observation::Committed {
        commit: Some(intent.commit),
    })
}

/// What keeps the tree from being the result of the merge that it is to be, whatever the checks say.
fn merge_problem(tree: &WorkTree, raw: &RawSnapshot) -> Vec<String> {
    let merging = tree.merging.as_ref();
    let problem = merging.and_then(|it| it.problem(&tree.repo, raw));
    problem.into_iter().collect()
}

/// The last of the agent's own commits where they become one of Sprag's: as the settings say, or since
/// one of them is not what Sprag could have made, which is told.
fn own_commits_to_squash(
    setup: &Setup,
    tree: &WorkTree,
    emit: &mut Emitter<'_>,
    run: &TaskRun<'_>,
    raw: &RawSnapshot,
) -> Option<RevId> {
    let head = head_of(raw).filter(|head| Some(head) != tree.repo.base().as_ref())?;
    match run.config.settings.agent_commits {
        AgentCommits::Reject => return None,
        AgentCommits::Squash => return Some(head),
        AgentCommits::Accept => {}
    }
    let file = tree.plan.file.as_ref();
    let plan = file.and_then(|file| std::str::from_utf8(file.in_tree.as_deref()?).ok());
    let held: Held<'_> = &|commit, text| tree.repo.holds(commit, text).unwrap_or(false);
    let policy = Policy {
        protected: &run.config.protected_paths,
        plan,
        identities: &[identity_of_commits(setup.in_actions, &tree.repo)],
        messages: Messages::Harmless,
        secrets: setup.detector.as_ref().map(|detector| (detector, held)),
    };
    let read = |commit: &RevId, path: &[u8]| tree.repo.file_of(commit, path).ok().flatten();
    let refused = match tree.repo.commits_since_base(&head) {
        Ok(Ok(line)) => violations(&line, &policy, &read),
        Ok(Err(no_line)) => vec![no_line.to_string()],
        Err(error) => vec![error.to_string()],
    };
    if refused.is_empty() {
        return None;
    }
    emit.warn(format!(
        "the agent's own commits become one of Sprag's: {}",
        refused.join("; ")
    ));
    Some(head)
}

/// The agent's own commits hold everything already, or the plan is elsewhere and nothing is
/// left: the task is done without a commit of Sprag's. Commits that were to become one and come to
/// nothing leave the branch.
fn nothing_to_commit(
    tree: &mut WorkTree,
    accounts: &mut Accounts,
    run: &TaskRun<'_>,
    (raw, squashed): (&RawSnapshot, bool),
) -> anyhow::Result<Observation> {
    if squashed {
        mark_done(tree, run)?;
        return Ok(Observation::Committed { commit: None });
    }
    if let Some(head) = head_of(raw).filter(|head| Some(head) != tree.repo.base().as_ref()) {
        tree.repo.change().advance_base(&head)?;
        accounts.changed_files.extend(changed_paths(raw));
    }
    mark_done(tree, run)?;
    Ok(Observation::Committed { commit: None })
}

/// The bookkeeping after the commit point.
fn landed(
    tree: &mut WorkTree,
    accounts: &mut Accounts,
    emit: &mut Emitter<'_>,
    run: &TaskRun<'_>,
    (intent, files): (&LandingIntent, Vec<String>),
) {
    tree.plan.saved();
    carry_verdict(tree, accounts, run);
    accounts.changed_files.extend(files.iter().cloned());
    // What is said of the commit is what can be read back of it. Its parent may be a commit of
    // the agent's, so that is not all that the task changed.
    let files = tree
        .repo
        .read_back(&intent.commit)
        .map_or(files, |seen| seen.files);
    emit.emit(EventKind::CommitCreated {
        commit: intent.commit.0.clone(),
        subject: intent.subject.clone(),
        files,
    });
    name_leftovers(tree, emit);
}

fn mark_done(tree: &mut WorkTree, run: &TaskRun<'_>) -> anyhow::Result<()> {
    let status = done_status(run);
    tree.plan.set(&run.task.id, status);
    tree.plan.save_outside()
}

/// What the checks said of the tree holds for the commit of it too.
fn carry_verdict(tree: &mut WorkTree, accounts: &mut Accounts, run: &TaskRun<'_>) {
    let exempt = tree.exempt();
    let Ok(now) = tree.repo.snapshot(&exempt) else {
        return;
    };
    let judged = run.journal.state.current.as_ref();
    if let Some(judged) = judged.and_then(Snapshot::tree) {
        let now = now.fingerprint().clone();
        accounts.checks.alias(&run.config, judged, now);
    }
}

fn done_status(run: &TaskRun<'_>) -> StatusUpdate {
    StatusUpdate {
        status: TaskStatus::Done,
        attempts: Some(run.journal.state.all_attempts()),
        completed_at: Some(completed_at()),
    }
}

fn message(setup: &Setup, tree: &WorkTree, run: &TaskRun<'_>, squashed: Option<&RevId>) -> String {
    // Where others have the last word, that of those who did the work counts.
    let said = match run.keeps_messages() {
        true => run.journal.state.suggestion.as_deref(),
        false => run.final_message.as_deref(),
    };
    let mut suggested = said.and_then(suggested_commit_message).or_else(|| {
        let message = tree.repo.message_of(squashed?).ok()?;
        suggested_by_commit(&message)
    });
    if let Some(merging) = &tree.merging {
        suggested = Some(SuggestedMessage {
            subject: merging.subject.clone(),
            body: suggested.map_or(String::new(), |it| it.body),
        });
    }
    let trailers = [
        (
            "Sprag-Task".to_owned(),
            format!("{}/{}", plan_name(&tree.plan), run.task.id),
        ),
        ("Sprag-Run".to_owned(), setup.run_link()),
    ];
    let message = compose(
        suggested.as_ref(),
        run.task.id.as_str(),
        &run.task.title,
        &trailers,
    );
    setup.redactor.redact(&message).into_owned()
}

/// Finds out, after a crash, whether the commit that was about to land did; if so the task is
/// done.
///
/// # Errors
/// When the run's own state cannot be read or written.
pub(crate) fn recover_commit(
    setup: &Setup,
    tree: &mut WorkTree,
    accounts: &mut Accounts,
    emit: &mut Emitter<'_>,
    run: &mut TaskRun<'_>,
) -> anyhow::Result<()> {
    let Some(commit) = run.journal.state.prepared.clone() else {
        return Ok(());
    };
    let Some(bytes) = setup.run_dir.read(RunFile::Landing) else {
        return Ok(());
    };
    let intent: LandingIntent = serde_json::from_slice(&bytes)?;
    if intent.commit != commit || tree.repo.base() != Some(commit.clone()) {
        return Ok(());
    }
    let files = run.journal.state.changes.clone();
    // The plan that was committed says so, and when it was done.
    if !tree.plan.is_done(&run.task.id) {
        mark_done(tree, run)?;
    }
    landed(tree, accounts, emit, run, (&intent, files));
    run.journal.observe(Observation::Committed {
        commit: Some(commit),
    })
}

/// Now, to the second, in UTC.
pub(crate) fn completed_at() -> String {
    let now = jiff::Timestamp::now();
    let rounded = now.round(jiff::Unit::Second).unwrap_or(now);
    rounded.to_string()
}
